/* npy_form.h: builds the header of an .npy file: version 1.0, padded so that data starts at a multiple of 64. Its
 * length does not depend on the number of rows, which may only be known at the end. */
#ifndef STKI_NPY_FORM_H
#define STKI_NPY_FORM_H

#include <stdbool.h>
#include <stoker/tensor.h>

enum { STKI_NPY_FORM_MAX = 1024 };

typedef struct stki_npy_form {
    stk_dtype dtype;
    bool scalar; /* the shape is () */
    int row_ndim;
    int64_t row_shape[STK_MAX_DIMS];
    int64_t row_bytes, header_bytes;
} stki_npy_form;

/* Initializes `form` for rows of this dtype and shape. row_ndim -1: a scalar with shape (). bf16 and the 8-bit floats,
 * which .npy cannot name, are rejected unless `alias` is set. */
stk_status stki_npy_form_init(stki_npy_form *form, const char *path, stk_dtype dtype, int row_ndim,
                              const int64_t *row_shape, bool alias, stk_error *err);
/* Writes form->header_bytes bytes. */
void stki_npy_form_write(const stki_npy_form *form, int64_t rows, char *to);

#endif
