/* sparse_internal.h: what the sparse forms share: index arrays as plain int64, the wide types that sums run in, the
 * stable order of entries. */
#ifndef STKI_SPARSE_INTERNAL_H
#define STKI_SPARSE_INTERNAL_H

#include <stoker/sparse.h>

/* STK_E_BAD_DTYPE unless i32 or i64. */
stk_status stki_sparse_check_index_dtype(stk_dtype dtype, stk_error *err);
/* Values of a sparse tensor: real, whole or bool, in ordinary memory. */
stk_status stki_sparse_check_values(const stk_tensor *values, stk_error *err);

/* The elements of a tensor of indices (any strides) in row-major order as int64, in fresh memory: stki_free it. */
stk_status stki_indices_load(const stk_tensor *indices, int64_t **out, stk_error *err);
/* A fresh tensor of `dtype`; STK_E_BAD_VALUE: one does not fit. */
stk_status stki_indices_store(const int64_t *indices, int ndim, const int64_t *shape, stk_dtype dtype, stk_tensor *out,
                              stk_error *err);
/* STK_E_BAD_INDEX names `what` unless all are in [0, size). */
stk_status stki_indices_check(const int64_t *indices, int64_t count, int64_t size, const char *what, stk_error *err);

/* order[k] = the k-th of `count` entries in the order of their indices (`axes` arrays of `count`, the first one counts
 * most), equal ones in the order in which they stand. `spare` is of the same size. */
void stki_sparse_order(const int64_t *indices, int axes, const int64_t *shape, int64_t count, int64_t *order,
                       int64_t *spare);

/* The type that sums of `dtype` run in: i64, u64, f32 or f64. */
stk_dtype stki_sparse_wide(stk_dtype dtype);

/* coo.c: checks, and loads the indices: stki_free them. */
stk_status stki_coo_open(const stk_coo *coo, int64_t **out_indices, stk_error *err);
/* Zero everywhere but at `count` places: entry k goes to offsets[k], in elements. */
stk_status stki_sparse_scatter(const stk_tensor *values, int ndim, const int64_t *shape, const int64_t *offsets,
                               stk_tensor *out, stk_error *err);

#endif
