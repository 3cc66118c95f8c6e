/* array.h: an array in a file or in memory, with any strides. Used for .npy, stored zip members, .pt, safetensors, raw
 * data, token files and contiguous HDF5 data sets: the parser of a format fills in the struct, and array.c does the
 * rest. */
#ifndef STKI_ARRAY_H
#define STKI_ARRAY_H

#include "file.h"
#include "reader.h"

typedef struct stki_array {
    stki_file
        *file; /* the file with the data; NULL: the data is in `memory`. Retained by tensors and readers made from it */
    stk_storage *memory; /* host memory that contains the data */
    int64_t offset;      /* byte offset of the element (0, 0, …) in the file or in `memory` */
    stk_dtype dtype;
    bool swapped;
    bool fill; /* nothing was ever written to the array: every element is the single fill value in `memory` */
    int ndim;
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS]; /* strides in bytes, >= 0 */
} stki_array;

/* Checks that every element is inside the file or memory. STK_E_TRUNCATED reports the found and the expected size. The
 * arithmetic is overflow-safe, so this can be called with unchecked numbers from a file, and must be called before any
 * other function. */
stk_status stki_array_check(const stki_array *array, const char *path, stk_error *err);
/* Sets row-major strides for `shape` and stores the total size in *bytes. STK_E_CORRUPT: the size exceeds 63 bits. */
stk_status stki_array_row_major(stki_array *array, int64_t *bytes, const char *path, stk_error *err);
/* Returns the whole array, read-only: a view of the mapping or memory, which the tensor keeps alive, or a copy if the
 * file is not mapped. */
stk_status stki_array_tensor(const stki_array *array, const char *path, stk_tensor *out, stk_error *err);
/* Releases the file and the memory. */
void stki_array_release(stki_array *array);
/* Returns the file of a tensor made by stki_array_tensor, or of a view of it; NULL: it has no file. */
const stki_file *stki_array_file(const stk_tensor *tensor);
/* Creates a reader of samples, or windows, along opts->axis. `format` is a static string; `path` is copied. */
stk_status stki_array_reader(const stki_array *array, const char *format, const char *path,
                             const stki_reader_opts *opts, stki_reader **out, stk_error *err);

#endif
