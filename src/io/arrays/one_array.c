/* one_array.c: a container for formats that hold a single array; see tokens.h. */
#include "error.h"
#include "tokens.h"
#include <string.h>

struct one_array {
    stki_container base; /* first member */
    stki_array array;
};

static const struct one_array *one_of(const stki_container *base)
{
    return (const struct one_array *)(const void *)base;
}

static stk_status one_get(const stki_container *base, int64_t member, const stki_reader_opts *opts, stki_array *out,
                          stk_error *err)
{
    (void)member, (void)opts, (void)err;
    *out = one_of(base)->array;
    (void)stki_file_retain(out->file);
    return STK_OK;
}

static void one_destroy(stki_container *base)
{
    stki_file_close(one_of(base)->array.file);
    stki_container_free(base);
}

static const stki_container_ops raw_ops = {.format = "raw", .array = one_get, .destroy = one_destroy};
static const stki_container_ops llmc_ops = {.format = "llmc", .array = one_get, .destroy = one_destroy};

static stk_status add_member(struct one_array *one, stk_error *err)
{
    const stki_array *array = &one->array;
    stki_member *member;
    stk_status status = stki_container_add(&one->base, "", array->ndim, array->shape, &member, err);

    if (status != STK_OK)
        return status;
    member->kind = STKI_MEMBER_ARRAY;
    member->dtype = array->dtype;
    member->swapped = array->swapped;
    member->count = array->shape[0];
    member->layout = "contiguous";
    member->offset = array->offset;
    return stki_member_set_strides(member, array->strides, err);
}

stk_status stki_one_array(const char *path, const char *format, const stki_array *array, stki_container **out,
                          stk_error *err)
{
    struct one_array *one;
    stk_status status = stki_array_check(array, path, err);

    if (status == STK_OK)
        status = stki_container_create(sizeof *one, strcmp(format, "llmc") ? &raw_ops : &llmc_ops, path, &one, err);
    if (status != STK_OK) {
        stki_file_close(array->file);
        return status;
    }
    one->array = *array;
    status = add_member(one, err);
    if (status != STK_OK)
        one_destroy(&one->base);
    else
        *out = &one->base;
    return status;
}
