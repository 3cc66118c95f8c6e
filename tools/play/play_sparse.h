/* play_sparse.h: size of dense and sparse formats by the share of zeros. */
#ifndef STOKER_PLAY_SPARSE_H
#define STOKER_PLAY_SPARSE_H

#include <stdio.h>
#include <stoker/tensor.h>

/* Whether a comparison is possible: the tensor is not empty, and the sizes of all formats can be computed. */
bool pl_sparse_sensible(int ndim, const int64_t *shape);
/* Prints to stdout, and to `page` if not NULL. */
stk_status pl_sparse_table(int ndim, const int64_t *shape, stk_dtype dtype, FILE *page, stk_error *err);

#endif
