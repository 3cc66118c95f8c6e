/* raw.c: a file of nothing but values: their type, the shape of a sample, the bytes in front and the byte order are
 * stated by the configuration; how many samples there are follows from the file's size. Token files of nanoGPT are such
 * files. Also the container of one array, which other simple formats share. */
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "tokens.h"
#include <inttypes.h>
#include <string.h>

/* ---- one array -----------------------------------------------------------------------------------------------------
 */

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

    if (status)
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

    if (!status)
        status = stki_container_create(sizeof *one, strcmp(format, "llmc") ? &raw_ops : &llmc_ops, path, &one, err);
    if (status) {
        stki_file_close(array->file);
        return status;
    }
    one->array = *array;
    status = add_member(one, err);
    if (status)
        one_destroy(&one->base);
    else
        *out = &one->base;
    return status;
}

/* ---- raw data ------------------------------------------------------------------------------------------------------
 */

static stk_status check_options(const char *path, const stki_reader_opts *opts, stk_error *err)
{
    if (opts->alias_dtype == STK_DTYPE_NONE)
        return stki_fail_at(err, STK_E_CONFIG, (stki_place){path, -1, -1, "no type", "source.dtype"},
                            "raw data does not say what it holds");
    if (opts->raw_ndim < 0 || opts->raw_ndim >= STK_MAX_DIMS)
        return stki_fail_at(
            err, STK_E_CONFIG,
            (stki_place){path, -1, -1, STKI_TEXT("%d axes", opts->raw_ndim), STKI_TEXT("0 to %d", STK_MAX_DIMS - 1)},
            "source.shape");
    for (int i = 0; i < opts->raw_ndim; i++)
        if (opts->raw_shape[i] < 1)
            return stki_fail_at(err, STK_E_CONFIG,
                                (stki_place){path, -1, -1, STKI_TEXT("%" PRId64, opts->raw_shape[i]), "at least 1"},
                                "source.shape: axis %d", i);
    if (opts->raw_offset < 0)
        return stki_fail_at(err, STK_E_CONFIG,
                            (stki_place){path, -1, -1, STKI_TEXT("%" PRId64, opts->raw_offset), "at least 0"},
                            "source.offset");
    return STK_OK;
}

/* How many samples there are: as many as stated, or whole ones to the end of the file. */
static stk_status count_samples(const char *path, const stki_reader_opts *opts, int64_t size, int64_t *out,
                                stk_error *err)
{
    int64_t each = stk_dtype_size(opts->alias_dtype), left = size - opts->raw_offset;

    for (int i = 0; i < opts->raw_ndim; i++)
        if (!stki_mul(each, opts->raw_shape[i], &each))
            return stki_fail_at(err, STK_E_CONFIG, (stki_place){path, -1, -1, NULL, "samples of fewer than 2^63 bytes"},
                                "source.shape");
    if (left < 0)
        return stki_fail_at(err, STK_E_TRUNCATED,
                            (stki_place){path, -1, -1, STKI_TEXT("%" PRId64 " bytes", size),
                                         STKI_TEXT("at least %" PRId64 " (source.offset)", opts->raw_offset)},
                            "the file ends before its data");
    if (opts->raw_count > 0 && opts->raw_count > left / each)
        return stki_fail_at(err, STK_E_TRUNCATED,
                            (stki_place){path, -1, opts->raw_offset, STKI_TEXT("%" PRId64 " bytes of data", left),
                                         STKI_TEXT("%" PRId64 " samples of %" PRId64 " bytes", opts->raw_count, each)},
                            "the file ends before its data");
    if (opts->raw_count == 0 && left % each != 0)
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){path, -1, opts->raw_offset + left / each * each,
                                         STKI_TEXT("%" PRId64 " bytes of data", left),
                                         STKI_TEXT("a multiple of %" PRId64 ", the bytes of a sample", each)},
                            "the data is no whole number of samples");
    *out = opts->raw_count > 0 ? opts->raw_count : left / each;
    return STK_OK;
}

stk_status stki_raw_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    stki_array array = {.offset = opts->raw_offset, .dtype = opts->alias_dtype, .ndim = opts->raw_ndim + 1};
    char head[STKI_LLMC_READ] = {0};
    int64_t bytes;
    stk_status status = check_options(path, opts, err);

    if (!status)
        status = stki_file_open(path, opts->access, opts->pattern, &array.file, err);
    if (status)
        return status;
    array.swapped = opts->raw_big_endian && stk_dtype_size(array.dtype) > 1;
    memcpy(array.shape + 1, opts->raw_shape, (size_t)opts->raw_ndim * sizeof array.shape[0]);
    status = count_samples(path, opts, array.file->size, &array.shape[0], err);
    if (!status)
        status = stki_array_row_major(&array, &bytes, path, err);
    if (!status && array.file->size >= STKI_LLMC_READ)
        status = stki_file_read(array.file, 0, head, STKI_LLMC_READ, err);
    if (status) {
        stki_file_close(array.file);
        return status;
    }
    status = stki_one_array(path, "raw", &array, out, err);
    if (!status && opts->raw_offset < STKI_LLMC_HEADER && stki_llmc_matches(head, array.file->size))
        stki_container_warn(*out, "it begins like a token shard of llm.c: read as raw data, its header of 1024 bytes "
                                  "becomes values (source: {format: llmc})");
    return status;
}
