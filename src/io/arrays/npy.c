/* npy.c: an .npy file is one array; Fortran order only changes the strides. */
#include "npy.h"
#include "allocate.h"
#include "container.h"
#include "error.h"
#include "npy_header.h"
#include "source_common.h"
#include <string.h>

static stk_status read_header(const stki_file *file, const stki_reader_opts *opts, stki_npy_header *out, stk_error *err)
{
    char head[STKI_NPY_PREFIX] = {0}, *text;
    stki_npy_prefix prefix;
    stk_status status;

    status = stki_file_read(file, 0, head, file->size < STKI_NPY_PREFIX ? file->size : STKI_NPY_PREFIX, err);
    if (status == STK_OK)
        status = stki_npy_read_prefix(head, file->size, stki_header_limit(opts), file->path, &prefix, err);
    if (status != STK_OK)
        return status;
    text = stki_zalloc(prefix.text_bytes);
    if (!text)
        return stki_fail_memory(err, prefix.text_bytes, "an npy header");
    status = stki_file_read(file, prefix.text_offset, text, prefix.text_bytes, err);
    if (status == STK_OK)
        status = stki_npy_read_header(&prefix, text, file->size, opts->alias_dtype, file->path, out, err);
    stki_free(text);
    return status;
}

/* The array takes ownership of the file. */
static stk_status open_array(const char *path, const stki_reader_opts *opts, stki_array *out, bool *fortran,
                             stk_error *err)
{
    stki_npy_header header;
    stki_file *file;
    stk_status status = stki_file_open(path, opts->access, opts->pattern, &file, err);

    if (status != STK_OK)
        return status;
    status = read_header(file, opts, &header, err);
    if (status != STK_OK) {
        stki_file_close(file);
        return status;
    }
    *out = (stki_array){.file = file,
                        .offset = header.data_offset,
                        .dtype = header.dtype,
                        .swapped = header.swapped,
                        .ndim = header.ndim};
    memcpy(out->shape, header.shape, sizeof header.shape);
    memcpy(out->strides, header.strides, sizeof header.strides);
    *fortran = header.fortran;
    return STK_OK;
}

struct npy {
    stki_container base; /* first member */
    stki_array array;
};

static stk_status npy_array(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                            stki_array *out, stk_error *err)
{
    const struct npy *npy = (const struct npy *)(const void *)container;

    (void)member, (void)opts, (void)err;
    *out = npy->array;
    (void)stki_file_retain(out->file);
    return STK_OK;
}

static void npy_destroy(stki_container *container)
{
    stki_array_release(&((struct npy *)(void *)container)->array);
    stki_container_free(container);
}

static const stki_container_ops npy_ops = {.format = "npy", .array = npy_array, .destroy = npy_destroy};

stk_status stki_npy_container(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    struct npy *npy;
    stki_member *member;
    bool fortran;
    stk_status status = stki_container_create(sizeof *npy, &npy_ops, path, &npy, err);

    if (status != STK_OK)
        return status;
    status = open_array(path, opts, &npy->array, &fortran, err);
    if (status == STK_OK)
        status = stki_container_add(&npy->base, "", npy->array.ndim, npy->array.shape, &member, err);
    if (status == STK_OK)
        status = stki_member_set_strides(member, npy->array.strides, err);
    if (status != STK_OK) {
        stki_container_release(&npy->base);
        return status;
    }
    member->dtype = npy->array.dtype;
    member->swapped = npy->array.swapped;
    member->layout = fortran ? "fortran" : "contiguous";
    member->offset = npy->array.offset;
    *out = &npy->base;
    return STK_OK;
}
