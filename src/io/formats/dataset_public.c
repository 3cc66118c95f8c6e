/* dataset_public.c: the public names of the writers in writer.h and npy_write.h, for <stoker/dataset.h>. */
#include "error.h"
#include "npy_write.h"
#include "writers.h"
#include <inttypes.h>
#include <stoker/dataset.h>
#include <string.h>

stk_status stk_npy_create(const char *path, stk_dtype dtype, int row_ndim, const int64_t *row_shape, bool alias,
                          stk_npy_writer **out, stk_error *err)
{
    stk_status status = stki_check_given(path, "path", err);

    if (status == STK_OK)
        status = stki_check_given(out, "out", err);
    if (status == STK_OK && row_ndim < 0)
        status = stki_fail_at(
            err, STK_E_BAD_ARG,
            (stki_place){path, -1, -1, STKI_TEXT("%d", row_ndim), STKI_TEXT("0 to %d", STK_MAX_DIMS - 1)}, "row_ndim");
    if (status == STK_OK && row_ndim > 0)
        status = stki_check_given(row_shape, "row_shape", err);
    return status != STK_OK ? status : stki_npy_create(path, dtype, row_ndim, row_shape, alias, out, err);
}

stk_status stk_npy_append(stk_npy_writer *writer, const void *rows, int64_t count, stk_error *err)
{
    stk_status status = stki_check_given(writer, "writer", err);

    return status != STK_OK ? status : stki_npy_append(writer, rows, count, err);
}

stk_status stk_npy_commit(stk_npy_writer *writer, stk_error *err)
{
    stk_status status = stki_check_given(writer, "writer", err);

    return status != STK_OK ? status : stki_npy_commit(writer, err);
}

void stk_npy_abort(stk_npy_writer *writer)
{
    stki_npy_abort(writer);
}

stk_status stk_writer_create(const char *path, const char *format, const stk_writer_opts *opts, stk_writer **out,
                             stk_error *err)
{
    stk_writer_opts given = STK_WRITER_OPTS_INIT;
    stki_writer_opts own;

    if (opts && opts->struct_size < sizeof opts->struct_size)
        return stki_fail(err, STK_E_BAD_ARG,
                         "writer: opts.struct_size: found %" PRIu32 ", expected the value set by STK_WRITER_OPTS_INIT",
                         opts->struct_size);
    if (opts)
        memcpy(&given, opts, opts->struct_size < sizeof given ? opts->struct_size : sizeof given);
    own = (stki_writer_opts){
        .level = given.level, .chunk_rows = given.chunk_rows, .threads = given.threads, .alias = given.alias};
    return stki_writer_create(path, format, &own, out, err);
}

stk_status stk_writer_begin(stk_writer *writer, const char *name, stk_dtype dtype, int row_ndim,
                            const int64_t *row_shape, int64_t rows, stk_error *err)
{
    return stki_writer_begin(writer, name, dtype, row_ndim, row_shape, rows, err);
}

stk_status stk_writer_append(stk_writer *writer, const void *rows, int64_t count, stk_error *err)
{
    return stki_writer_append(writer, rows, count, err);
}

stk_status stk_writer_end(stk_writer *writer, stk_error *err)
{
    return stki_writer_end(writer, err);
}

stk_status stk_writer_add(stk_writer *writer, const char *name, const stk_tensor *tensor, stk_error *err)
{
    return stki_writer_add(writer, name, tensor, err);
}

stk_status stk_writer_commit(stk_writer *writer, stk_error *err)
{
    return stki_writer_commit(writer, err);
}

void stk_writer_abort(stk_writer *writer)
{
    stki_writer_abort(writer);
}
