/* dataset_public.c: the writers of <stoker/dataset.h>, which are those of this folder under their public names. */
#include "npy_write.h"
#include <stoker/dataset.h>

stk_status stk_npy_create(const char *path, stk_dtype dtype, int row_ndim, const int64_t *row_shape, bool alias,
                          stk_npy_writer **out, stk_error *err)
{
    return stki_npy_create(path, dtype, row_ndim, row_shape, alias, out, err);
}

stk_status stk_npy_append(stk_npy_writer *writer, const void *rows, int64_t count, stk_error *err)
{
    return stki_npy_append(writer, rows, count, err);
}

stk_status stk_npy_commit(stk_npy_writer *writer, stk_error *err)
{
    return stki_npy_commit(writer, err);
}

void stk_npy_abort(stk_npy_writer *writer)
{
    stki_npy_abort(writer);
}
