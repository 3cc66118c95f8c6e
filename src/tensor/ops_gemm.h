/* ops_gemm.h: one matrix product over any strides and dtypes. */
#ifndef STKI_OPS_GEMM_H
#define STKI_OPS_GEMM_H

#include "cast.h"
#include "ops_gemm_loops.h"

/* A matrix in host memory; strides in bytes. */
typedef struct stki_matrix {
    char *data;
    int64_t row_stride, column_stride;
} stki_matrix;

/* c (rows by columns) = a (rows by depth) * b (depth by columns), all of one dtype. */
typedef struct stki_gemm {
    stk_dtype dtype;
    int64_t rows, columns, depth;
    bool no_cblas; /* for tests: does not use CBLAS */
    /* set by stki_gemm_begin: */
    const stki_gemm_loops *loops;
    int64_t size, compute_size; /* element size of the tensors and of the compute dtype, bytes */
    stki_cast load, store;
    int64_t block_rows, block_columns, block_depth;
    int64_t bytes;
    void *memory; /* packed blocks of a and b, and of c in the compute dtype */
} stki_gemm;

/* Prepares for any number of products of this size. */
stk_status stki_gemm_begin(stki_gemm *gemm, stk_error *err);
void stki_gemm_run(const stki_gemm *gemm, stki_matrix c, stki_matrix a, stki_matrix b);
void stki_gemm_end(stki_gemm *gemm);

#endif
