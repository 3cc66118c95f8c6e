/* sparse.h: sparse tensors, which store only nonzero elements. COO lists the index and value of each entry,
 * for any number of axes; CSR, for matrices, groups the entries by row. Both are plain structs of ordinary tensors in
 * ordinary memory: indices are i32 or i64, values of any real or integer dtype or bool. Only structs returned by a
 * function here may be released. Any thread may call these functions; a struct may be used by one thread at a time.
 *
 * Programs may read the tensors in these structs. Every function validates the indices before it uses them. Errors:
 *
 *     STK_E_BAD_SHAPE    the lengths do not match
 *     STK_E_BAD_INDEX    an index is outside the shape
 *     STK_E_BAD_ARG      rows or columns of a CSR are out of order
 *     STK_E_BAD_DTYPE    a dtype is not allowed
 *     STK_E_BAD_DIM      wrong number of axes
 *     STK_E_BAD_VALUE    a count or index does not fit in i32
 *     STK_E_UNSUPPORTED  a tensor is on another device
 */
#ifndef STOKER_SPARSE_H
#define STOKER_SPARSE_H

#include <stoker/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- COO ---- */

typedef struct stk_coo {
    stk_tensor indices; /* (ndim, entries) */
    stk_tensor values;  /* (entries) */
    int32_t ndim;
    bool coalesced; /* entries are sorted by index and unique */
    int64_t shape[STK_MAX_DIMS];
} stk_coo;

/* Retains both tensors. An index may occur several times; its value is the sum of these entries. */
STK_API stk_status stk_coo_create(const stk_tensor *indices, const stk_tensor *values, int ndim, const int64_t *shape,
                                  stk_coo *out, stk_error *err);
/* Stores the elements not equal to 0, including NaN but not -0.0. The result is coalesced. */
STK_API stk_status stk_coo_from_dense(const stk_tensor *dense, stk_dtype index_dtype, stk_coo *out, stk_error *err);
/* Sorts by index and sums duplicates in order (f16 and bf16 in f32, rounded once; integers wrap; bool: OR). A sum of 0
 * remains an entry. */
STK_API stk_status stk_coo_coalesce(const stk_coo *coo, stk_coo *out, stk_error *err);
STK_API stk_status stk_coo_to_dense(const stk_coo *coo, stk_tensor *out, stk_error *err);
STK_API void stk_coo_release(stk_coo *coo); /* NULL and repeated calls are allowed */
STK_API int64_t stk_coo_entries(const stk_coo *coo);

/* ---- CSR ---- */

typedef struct stk_csr {
    stk_tensor row_starts; /* (rows + 1): entries [row_starts[r], row_starts[r + 1]) belong to row r */
    stk_tensor columns;    /* (entries): ascending within a row */
    stk_tensor values;     /* (entries) */
    int64_t shape[2];
} stk_csr;

/* Retains the tensors. `row_starts` and `columns` must have the same dtype. */
STK_API stk_status stk_csr_create(const stk_tensor *row_starts, const stk_tensor *columns, const stk_tensor *values,
                                  int64_t rows, int64_t column_count, stk_csr *out, stk_error *err);
STK_API stk_status stk_csr_from_dense(const stk_tensor *dense, stk_dtype index_dtype, stk_csr *out, stk_error *err);
/* Coalesces first if necessary. */
STK_API stk_status stk_csr_from_coo(const stk_coo *coo, stk_csr *out, stk_error *err);
STK_API stk_status stk_coo_from_csr(const stk_csr *csr, stk_coo *out, stk_error *err);
STK_API stk_status stk_csr_to_dense(const stk_csr *csr, stk_tensor *out, stk_error *err);
/* Multiplies csr (rows, n) by a dense matrix (n, columns) or vector (n) of the same dtype; the result is a new
 * row-major tensor. f16 and bf16 are summed in f32 and rounded once; integers wrap. */
STK_API stk_status stk_csr_matmul(const stk_csr *csr, const stk_tensor *dense, stk_tensor *out, stk_error *err);
STK_API void stk_csr_release(stk_csr *csr); /* NULL and repeated calls are allowed */
STK_API int64_t stk_csr_entries(const stk_csr *csr);

/* ---- memory ---- */

/* Bytes of the index and value arrays, where `index` and `value` are the sizes of one element: COO takes
 * entries * (ndim * index + value) bytes, CSR takes (rows + 1) * index + entries * (index + value) bytes. */
STK_API int64_t stk_coo_bytes(const stk_coo *coo);
STK_API int64_t stk_csr_bytes(const stk_csr *csr);
/* The largest number of entries for which the sparse form takes fewer bytes than the dense tensor; 0: it never does.
 * `elements` is the number of elements of the dense tensor. */
STK_API int64_t stk_coo_worth(int ndim, int64_t elements, stk_dtype index_dtype, stk_dtype dtype);
STK_API int64_t stk_csr_worth(int64_t rows, int64_t columns, stk_dtype index_dtype, stk_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
