/* sparse_csr.c: matrices in compressed sparse row format, and their products with dense matrices and vectors.
 *
 * Each row of a product is a weighted sum of rows of the dense matrix, accumulated in a wide type and cast to the
 * result's dtype once. The dense matrix is made row-major in the wide type first, so that the inner loop is contiguous.
 */
#include "allocate.h"
#include "cast.h"
#include "checked.h"
#include "error.h"
#include "profile_scope.h"
#include "sparse_internal.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <string.h>

/* ---- create ---- */

struct arrays {
    int64_t *starts, *columns;
};

static void close_arrays(struct arrays *arrays)
{
    stki_free(arrays->starts);
    stki_free(arrays->columns);
}

static stk_status check_lengths(const stk_csr *csr, stk_error *err)
{
    const stk_tensor *starts = &csr->row_starts, *columns = &csr->columns, *values = &csr->values;

    if (csr->shape[0] < 0 || csr->shape[1] < 0)
        return stki_fail(err, STK_E_BAD_SHAPE, "shape %s has a negative size", STKI_SHAPE(2, csr->shape));
    if (starts->ndim != 1 || columns->ndim != 1 || values->ndim != 1)
        return stki_fail(err, STK_E_BAD_SHAPE,
                         "row starts, columns and values of a CSR matrix must have one axis each");
    if (starts->dtype != columns->dtype)
        return stki_fail(err, STK_E_BAD_DTYPE, "row starts are %s and columns %s: they must have the same dtype",
                         stk_dtype_name(starts->dtype), stk_dtype_name(columns->dtype));
    if (starts->shape[0] - 1 != csr->shape[0])
        return stki_fail(err, STK_E_BAD_SHAPE,
                         "row starts: found %" PRId64 ", expected one more than the number of rows, %" PRId64,
                         starts->shape[0], csr->shape[0]);
    if (columns->shape[0] != values->shape[0])
        return stki_fail(err, STK_E_BAD_SHAPE, "columns: found %" PRId64 ", expected %" PRId64 ", one per value",
                         columns->shape[0], values->shape[0]);
    return STK_OK;
}

static stk_status check_rows(const struct arrays *arrays, int64_t rows, int64_t entries, stk_error *err)
{
    const int64_t *starts = arrays->starts, *columns = arrays->columns;

    if (starts[0] != 0 || starts[rows] != entries)
        return stki_fail(err, STK_E_BAD_ARG, "row starts range from %" PRId64 " to %" PRId64 ", not from 0 to %" PRId64,
                         starts[0], starts[rows], entries);
    for (int64_t row = 0; row < rows; row++)
        if (starts[row] > starts[row + 1])
            return stki_fail(err, STK_E_BAD_ARG,
                             "row %" PRId64 " starts at entry %" PRId64 " but ends at entry %" PRId64, row, starts[row],
                             starts[row + 1]);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t k = starts[row] + 1; k < starts[row + 1]; k++)
            if (columns[k - 1] >= columns[k])
                return stki_fail(err, STK_E_BAD_ARG,
                                 "row %" PRId64 ": column %" PRId64 " follows column %" PRId64
                                 ": columns must be ascending",
                                 row, columns[k], columns[k - 1]);
    return STK_OK;
}

/* Checks the matrix and loads row starts and columns, to be freed with close_arrays. */
static stk_status open_arrays(const stk_csr *csr, struct arrays *out, stk_error *err)
{
    int64_t entries;
    stk_status status = stki_sparse_check_values(&csr->values, err);

    *out = (struct arrays){0};
    status = status != STK_OK ? status : check_lengths(csr, err);
    if (status != STK_OK)
        return status;
    entries = csr->values.shape[0];
    status = stki_indices_load(&csr->row_starts, &out->starts, err);
    status = status != STK_OK ? status : stki_indices_load(&csr->columns, &out->columns, err);
    status = status != STK_OK ? status : stki_indices_check(out->columns, entries, csr->shape[1], "column", err);
    status = status != STK_OK ? status : check_rows(out, csr->shape[0], entries, err);
    if (status != STK_OK)
        close_arrays(out);
    return status;
}

stk_status stk_csr_create(const stk_tensor *row_starts, const stk_tensor *columns, const stk_tensor *values,
                          int64_t rows, int64_t column_count, stk_csr *out, stk_error *err)
{
    STKI_PROFILE("csr_create");
    stk_csr made = {.row_starts = *row_starts, .columns = *columns, .values = *values, .shape = {rows, column_count}};
    struct arrays arrays;
    stk_status status = open_arrays(&made, &arrays, err);

    if (status != STK_OK)
        return status;
    close_arrays(&arrays);
    stk_tensor_retain(row_starts);
    stk_tensor_retain(columns);
    stk_tensor_retain(values);
    *out = made;
    return STK_OK;
}

void stk_csr_release(stk_csr *csr)
{
    if (!csr)
        return;
    stk_tensor_release(&csr->row_starts);
    stk_tensor_release(&csr->columns);
    stk_tensor_release(&csr->values);
}

int64_t stk_csr_entries(const stk_csr *csr)
{
    return stk_tensor_numel(&csr->values);
}

/* ---- to and from COO ---- */

/* `coo` is coalesced and has two axes. */
static stk_status group_rows(const stk_coo *coo, stk_csr *out, stk_error *err)
{
    int64_t rows = coo->shape[0], entries = stk_coo_entries(coo), length, *indices = NULL, *starts = NULL;
    stk_csr made = {.shape = {rows, coo->shape[1]}};
    stk_status status = STK_OK;

    if (!stki_add(rows, 1, &length))
        return stki_fail(err, STK_E_BAD_SHAPE, "%" PRId64 " rows", rows);
    status = stki_coo_open(coo, &indices, err);
    if (status != STK_OK)
        return status;
    starts = stki_zalloc_array(length, sizeof *starts);
    if (!starts)
        status = stki_fail_memory(err, length * (int64_t)sizeof *starts, "row starts");
    for (int64_t k = 0; status == STK_OK && k < entries; k++)
        starts[indices[k] + 1]++;
    for (int64_t row = 0; status == STK_OK && row < rows; row++)
        starts[row + 1] += starts[row];
    status =
        status != STK_OK ? status : stki_indices_store(starts, 1, &length, coo->indices.dtype, &made.row_starts, err);
    status = status != STK_OK
                 ? status
                 : stki_indices_store(indices + entries, 1, &entries, coo->indices.dtype, &made.columns, err);
    stki_free(indices);
    stki_free(starts);
    if (status != STK_OK) {
        stk_csr_release(&made);
        return status;
    }
    made.values = coo->values;
    stk_tensor_retain(&made.values);
    *out = made;
    return STK_OK;
}

stk_status stk_csr_from_coo(const stk_coo *coo, stk_csr *out, stk_error *err)
{
    STKI_PROFILE("csr_from_coo");
    stk_coo sorted;
    stk_status status;

    if (coo->ndim != 2)
        return stki_fail(err, STK_E_BAD_DIM, "a CSR matrix needs a tensor with 2 axes, not %d", coo->ndim);
    status = stk_coo_coalesce(coo, &sorted, err);
    if (status != STK_OK)
        return status;
    status = group_rows(&sorted, out, err);
    stk_coo_release(&sorted);
    return status;
}

stk_status stk_csr_from_dense(const stk_tensor *dense, stk_dtype index_dtype, stk_csr *out, stk_error *err)
{
    STKI_PROFILE("csr_from_dense");
    stk_coo coo;
    stk_status status;

    if (dense->ndim != 2)
        return stki_fail(err, STK_E_BAD_DIM, "a CSR matrix needs a tensor with 2 axes, not %d", dense->ndim);
    status = stk_coo_from_dense(dense, index_dtype, &coo, err);
    if (status != STK_OK)
        return status;
    status = stk_csr_from_coo(&coo, out, err);
    stk_coo_release(&coo);
    return status;
}

stk_status stk_coo_from_csr(const stk_csr *csr, stk_coo *out, stk_error *err)
{
    STKI_PROFILE("coo_from_csr");
    stk_coo made = {.ndim = 2, .coalesced = true, .shape = {csr->shape[0], csr->shape[1]}};
    struct arrays arrays;
    int64_t entries, *indices;
    stk_status status = open_arrays(csr, &arrays, err);

    if (status != STK_OK)
        return status;
    entries = csr->values.shape[0];
    indices = stki_zalloc_array(entries, 2 * sizeof *indices);
    if (!indices)
        status = stki_fail_memory(err, entries, "indices");
    for (int64_t row = 0; status == STK_OK && row < csr->shape[0]; row++)
        for (int64_t k = arrays.starts[row]; k < arrays.starts[row + 1]; k++) {
            indices[k] = row;
            indices[entries + k] = arrays.columns[k];
        }
    status = status != STK_OK ? status
                              : stki_indices_store(indices, 2, (const int64_t[]){2, entries}, csr->columns.dtype,
                                                   &made.indices, err);
    stki_free(indices);
    close_arrays(&arrays);
    if (status != STK_OK)
        return status;
    made.values = csr->values;
    stk_tensor_retain(&made.values);
    *out = made;
    return STK_OK;
}

/* ---- to dense ---- */

stk_status stk_csr_to_dense(const stk_csr *csr, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("csr_to_dense");
    struct arrays arrays;
    int64_t elements;
    stk_status status = open_arrays(csr, &arrays, err);

    if (status != STK_OK)
        return status;
    if (!stki_mul(csr->shape[0], csr->shape[1], &elements))
        status = stki_fail(err, STK_E_BAD_SHAPE, "the number of elements in shape %s does not fit in 63 bits",
                           STKI_SHAPE(2, csr->shape));
    for (int64_t row = 0; status == STK_OK && row < csr->shape[0]; row++)
        for (int64_t k = arrays.starts[row]; k < arrays.starts[row + 1]; k++)
            arrays.columns[k] += row * csr->shape[1];
    status = status != STK_OK ? status : stki_sparse_scatter(&csr->values, 2, csr->shape, arrays.columns, out, err);
    close_arrays(&arrays);
    return status;
}

/* ---- products ---- */

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

ADD_ROW(whole, uint64_t) /* wraps; signed integers have the same low bits */
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

/* Prepares the product of a matrix that has been checked. */
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
    status = status != STK_OK ? status : stki_indices_load(&csr->columns, &product->columns, err);
    status = status != STK_OK ? status : stk_tensor_to(dense, product->wide, &wide, err);
    status = status != STK_OK ? status : stk_tensor_contiguous(&wide, &product->dense, err);
    stk_tensor_release(&wide);
    if (status == STK_OK) {
        product->values = stki_zalloc_array(entries, size);
        product->row = stki_zalloc_array(product->length, size);
        if (!product->values || !product->row)
            status = stki_fail_memory(err, (entries + product->length) * size, "a sparse product");
    }
    if (status != STK_OK) {
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

    if (status != STK_OK)
        return status;
    stk_csr_release(&checked);
    if (dense->dtype != csr->values.dtype)
        return stki_fail(err, STK_E_BAD_DTYPE,
                         "a sparse matrix of %s cannot be multiplied by a tensor of %s: their dtypes must be the same",
                         stk_dtype_name(csr->values.dtype), stk_dtype_name(dense->dtype));
    if (dense->ndim != 1 && dense->ndim != 2)
        return stki_fail(err, STK_E_BAD_DIM,
                         "a sparse matrix cannot be multiplied by a tensor with %d axes: it must have 1 or 2",
                         dense->ndim);
    if (dense->shape[0] != csr->shape[1])
        return stki_fail(err, STK_E_BAD_SHAPE,
                         "a sparse matrix of shape %s cannot be multiplied by a tensor of shape %s",
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

    status = status != STK_OK ? status : product_begin(&product, csr, dense, err);
    if (status != STK_OK)
        return status;
    status =
        stk_tensor_empty(dense->dtype, dense->ndim, (const int64_t[]){csr->shape[0], product.length}, NULL, &made, err);
    if (status == STK_OK) {
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
