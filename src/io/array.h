/* array.h: an array that lies in a file, or in memory, in any strides. What .npy, stored zip members, .pt, safetensors,
 * raw data, token files and contiguous HDF5 data sets have in common: the parser of a format fills in the struct,
 * and everything behind it is the same.
 */
#ifndef STKI_ARRAY_H
#define STKI_ARRAY_H

#include "file.h"
#include "reader.h"

typedef struct stki_array {
    stki_file *file;     /* holds the bytes; or NULL, and `memory` does. Retained by tensors and readers made of it */
    stk_storage *memory; /* host memory */
    int64_t offset;      /* of the element at index 0, 0, … from the start of the file or of `memory`, bytes */
    stk_dtype dtype;
    bool swapped;
    bool fill; /* it was never written: one element stands for all */
    int ndim;
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS]; /* strides in bytes, >= 0 */
} stki_array;

/* Every element inside [0, size) of the file or memory? STK_E_TRUNCATED names what is found and expected. Products are
 * overflow-safe; call it before anything else with what a file says. */
stk_status stki_array_check(const stki_array *array, const char *path, stk_error *err);
/* Row-major strides of `shape`, and the bytes of all of it. STK_E_CORRUPT: does not fit in 63 bits. */
stk_status stki_array_row_major(stki_array *array, int64_t *bytes, const char *path, stk_error *err);
/* The whole array, read-only: a view of the mapping or of the memory, which it keeps alive; of a file that is not
 * mapped a copy. */
stk_status stki_array_tensor(const stki_array *array, const char *path, stk_tensor *out, stk_error *err);
/* Lets go of the file and the memory. */
void stki_array_release(stki_array *array);
/* The file that a tensor made by stki_array_tensor (or a view of it) lies in or was read from; NULL: none. */
const stki_file *stki_array_file(const stk_tensor *tensor);
/* Samples along opts->axis, or windows along it. `format` is static text; `path` is copied. */
stk_status stki_array_reader(const stki_array *array, const char *format, const char *path,
                             const stki_reader_opts *opts, stki_reader **out, stk_error *err);

#endif
