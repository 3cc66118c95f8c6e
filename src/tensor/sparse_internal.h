/* sparse_internal.h: shared by the sparse formats: index arrays as plain int64, the wide types used for sums, and the
 * stable order of entries. */
#ifndef STKI_SPARSE_INTERNAL_H
#define STKI_SPARSE_INTERNAL_H

#include <stoker/sparse.h>

/* STK_E_BAD_DTYPE: the dtype is neither i32 nor i64. */
stk_status stki_sparse_check_index_dtype(stk_dtype dtype, stk_error *err);
/* Checks the values of a sparse tensor: float, integer or bool, in host memory. */
stk_status stki_sparse_check_values(const stk_tensor *values, stk_error *err);

/* Loads an index tensor (any strides) in row-major order as int64 into new memory, which the caller frees with
 * stki_free. */
stk_status stki_indices_load(const stk_tensor *indices, int64_t **out, stk_error *err);
/* Stores indices in a new tensor of `dtype`; STK_E_BAD_VALUE: an index does not fit. */
stk_status stki_indices_store(const int64_t *indices, int ndim, const int64_t *shape, stk_dtype dtype, stk_tensor *out,
                              stk_error *err);
/* Fails with STK_E_BAD_INDEX unless all indices are in [0, size); the message names `what`. */
stk_status stki_indices_check(const int64_t *indices, int64_t count, int64_t size, const char *what, stk_error *err);

/* Sorts entries stably: order[k] is the k-th of `count` entries in order of their indices (`axes` arrays of `count`,
 * the first one most significant). `spare` has the same size as `order`. */
void stki_sparse_order(const int64_t *indices, int axes, const int64_t *shape, int64_t count, int64_t *order,
                       int64_t *spare);

/* The dtype used for sums of `dtype`: i64, u64, f32 or f64. */
stk_dtype stki_sparse_wide(stk_dtype dtype);

/* sparse_coo.c: checks the tensor and loads its indices. The caller frees *out_indices with stki_free. */
stk_status stki_coo_open(const stk_coo *coo, int64_t **out_indices, stk_error *err);
/* Makes a dense tensor of zeros and stores entry k of `count` at offsets[k], in elements. */
stk_status stki_sparse_scatter(const stk_tensor *values, int ndim, const int64_t *shape, const int64_t *offsets,
                               stk_tensor *out, stk_error *err);

#endif
