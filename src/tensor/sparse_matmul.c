/* sparse_matmul.c: a CSR matrix times a dense matrix or vector. Each row of the result is a sum of rows of the dense
 * matrix, taken in a wide type and brought to the result's dtype once. The dense matrix is made row-major in the wide
 * type first, unless it is so already. */
#include "allocate.h"
#include "cast.h"
#include "error.h"
#include "profile_scope.h"
#include "sparse_internal.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <string.h>

struct product {
    const stk_csr *csr;
    int64_t *starts, *columns;
    void *values; /* wide */
    stk_dtype wide;
    stk_tensor dense; /* wide, row-major */
    int64_t length;   /* elements of a row of dense */
    void *row;        /* one row of the result, wide */
};

/* row += value * dense[column], for each entry of the row */
#define ADD_ROW(name, type)                                                                      \
    static void add_##name(const struct product *product, int64_t row)                           \
    {                                                                                            \
        const int64_t length = product->length;                                                  \
        type *to = product->row;                                                                 \
        memset(to, 0, (size_t)length * sizeof *to);                                              \
        for (int64_t k = product->starts[row]; k < product->starts[row + 1]; k++) {              \
            const type value = ((const type *)product->values)[k];                               \
            const type *from = (const type *)product->dense.data + product->columns[k] * length; \
            for (int64_t i = 0; i < length; i++)                                                 \
                to[i] += value * from[i];                                                        \
        }                                                                                        \
    }

ADD_ROW(whole, uint64_t) /* wraps; signed numbers have the same low bits */
ADD_ROW(f32, float)
ADD_ROW(f64, double)

static void product_end(struct product *product)
{
    stki_free(product->starts);
    stki_free(product->columns);
    stki_free(product->values);
    stki_free(product->row);
    stk_tensor_release(&product->dense);
}

/* The arrays, wide values and wide dense matrix of a CSR that has been checked. */
static stk_status product_begin(struct product *product, const stk_csr *csr, const stk_tensor *dense, stk_error *err)
{
    int64_t entries = csr->values.shape[0], size;
    stki_cast cast;
    stk_tensor wide = {0};
    stk_status status;

    *product = (struct product){.csr = csr, .wide = stki_sparse_wide(csr->values.dtype)};
    size = stk_dtype_size(product->wide);
    product->length = dense->ndim == 2 ? dense->shape[1] : 1;
    status = stki_indices_load(&csr->row_starts, &product->starts, err);
    status = status ? status : stki_indices_load(&csr->columns, &product->columns, err);
    status = status ? status : stk_tensor_to(dense, product->wide, &wide, err);
    status = status ? status : stk_tensor_contiguous(&wide, &product->dense, err);
    stk_tensor_release(&wide);
    if (!status) {
        product->values = stki_zalloc_array(entries, size);
        product->row = stki_zalloc_array(product->length, size);
        if (!product->values || !product->row)
            status = stki_fail_memory(err, (entries + product->length) * size, "a sparse product");
    }
    if (status) {
        product_end(product);
        return status;
    }
    stki_cast_init(&cast, product->wide, csr->values.dtype, (csr->values.flags & STK_TENSOR_SWAPPED) != 0);
    stki_cast_row(&cast, product->values, size, csr->values.data, csr->values.strides[0], entries);
    return STK_OK;
}

static stk_status check(const stk_csr *csr, const stk_tensor *dense, stk_error *err)
{
    stk_csr checked;
    stk_status status =
        stk_csr_create(&csr->row_starts, &csr->columns, &csr->values, csr->shape[0], csr->shape[1], &checked, err);

    if (status)
        return status;
    stk_csr_release(&checked);
    if (dense->dtype != csr->values.dtype)
        return stki_fail(err, STK_E_BAD_DTYPE, "a sparse matrix of %s times a dense one of %s: must be the same",
                         stk_dtype_name(csr->values.dtype), stk_dtype_name(dense->dtype));
    if (dense->ndim != 1 && dense->ndim != 2)
        return stki_fail(err, STK_E_BAD_DIM, "a sparse matrix times a tensor with %d axes: must be 1 or 2",
                         dense->ndim);
    if (dense->shape[0] != csr->shape[1])
        return stki_fail(err, STK_E_BAD_SHAPE, "a sparse matrix of shape %s times a dense one of shape %s",
                         STKI_SHAPE(2, csr->shape), STKI_SHAPE(dense->ndim, dense->shape));
    return stki_sparse_check_values(dense, err);
}

stk_status stk_csr_matmul(const stk_csr *csr, const stk_tensor *dense, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("csr_matmul");
    struct product product;
    stk_tensor made;
    stki_cast cast;
    stk_status status = check(csr, dense, err);

    status = status ? status : product_begin(&product, csr, dense, err);
    if (status)
        return status;
    status =
        stk_tensor_empty(dense->dtype, dense->ndim, (const int64_t[]){csr->shape[0], product.length}, NULL, &made, err);
    if (!status) {
        int64_t size = stk_dtype_size(made.dtype), wide_size = stk_dtype_size(product.wide);
        stki_cast_init(&cast, made.dtype, product.wide, false);
        for (int64_t row = 0; row < csr->shape[0]; row++) {
            (product.wide == STK_F32 ? add_f32 : product.wide == STK_F64 ? add_f64 : add_whole)(&product, row);
            stki_cast_row(&cast, (char *)made.data + row * product.length * size, size, product.row, wide_size,
                          product.length);
        }
        *out = made;
    }
    product_end(&product);
    return status;
}
