/* npy_write.h: writes .npy files by appending rows. The file gets its final name only after everything has been
 * written, synced and checked; until then it is NAME.tmp.PID.N in the same folder, and it is removed on failure.
 * The header has version 1.0 if it fits, and data starts at a multiple of 64. Not thread-safe. */
#ifndef STKI_NPY_WRITE_H
#define STKI_NPY_WRITE_H

#include <stoker/tensor.h>

typedef struct stki_npy_writer stki_npy_writer;

/* Writes rows of this dtype and shape. The file's shape is the row count followed by row_shape; row_ndim -1: a scalar.
 * bf16 and f8 are rejected unless `alias` is set, which writes bf16 as V2, f8_e4m3fn as V1 and f8_e5m2 as f1. */
stk_status stki_npy_create(const char *path, stk_dtype dtype, int row_ndim, const int64_t *row_shape, bool alias,
                           stki_npy_writer **out, stk_error *err);
/* Appends whole rows in C order, little-endian. */
stk_status stki_npy_append(stki_npy_writer *writer, const void *rows, int64_t count, stk_error *err);
/* Finishes and renames the file; frees the writer in any case. On failure there is no new file with the final name. */
stk_status stki_npy_commit(stki_npy_writer *writer, stk_error *err);
void stki_npy_abort(stki_npy_writer *writer); /* NULL is allowed */

#endif
