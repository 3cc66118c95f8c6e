/* dataset.h: writing data sets. Reading them is the loader's business (loader.h).
 *
 *     stk_npy_writer *writer;
 *     int64_t shape[3] = {224, 224, 3};
 *     stk_status status = stk_npy_create("images.npy", STK_U8, 3, shape, false, &writer, &err);
 *     if (status == STK_OK) {
 *         … stk_npy_append(writer, rows, count, &err) as often as needed; stop at a failure …
 *         status = stk_npy_commit(writer, &err);
 *     }
 *
 * A writer belongs to one thread at a time. The file appears under its name only when everything is written, synced and
 * checked; until then a temporary file beside it is written, which goes on any failure.
 */
#ifndef STOKER_DATASET_H
#define STOKER_DATASET_H

#include <stoker/status.h>
#include <stoker/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stki_npy_writer stk_npy_writer;

/* Begins a .npy file of rows of this dtype and shape; the shape of the file is the number of rows followed by
 * `row_shape` (row_ndim 0: a vector). An existing file of this name is replaced by the commit. bf16 and the 8-bit
 * floats, which .npy cannot name, are refused unless `alias`: they are then stored as ml_dtypes stores them and read
 * back with the loader's `source: {dtype: …}`. */
STK_API stk_status stk_npy_create(const char *path, stk_dtype dtype, int row_ndim, const int64_t *row_shape, bool alias,
                                  stk_npy_writer **out, stk_error *err);
/* `count` whole rows, one after the other, row-major and little-endian. After a failure only commit (which then fails
 * too) and abort make sense. */
STK_API stk_status stk_npy_append(stk_npy_writer *writer, const void *rows, int64_t count, stk_error *err);
/* Finishes the file and frees the writer, whatever happens. On failure an older file of that name is still there. */
STK_API stk_status stk_npy_commit(stk_npy_writer *writer, stk_error *err);
/* Gives up: removes what was written and frees the writer. NULL is fine. */
STK_API void stk_npy_abort(stk_npy_writer *writer);

/* ---- HDF5 ---------------------------------------------------------------------------------------------------------
 * stoker calls libhdf5 under one lock of its own. A program that uses libhdf5 too, in a build of it that is not
 * thread-safe (H5is_library_threadsafe), wraps its own calls in this pair while stoker has HDF5 files open; with a
 * thread-safe build there is no need to. The lock is recursive: stoker may be called inside, by the same thread.
 */
STK_API void stk_hdf5_lock(void);
STK_API void stk_hdf5_unlock(void);

#ifdef __cplusplus
}
#endif
#endif
