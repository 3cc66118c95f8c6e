/* play_sparse.h: dense against sparse forms, over the share of elements that are 0. */
#ifndef STOKER_PLAY_SPARSE_H
#define STOKER_PLAY_SPARSE_H

#include <stdio.h>
#include <stoker/tensor.h>

/* Is there anything to compare: elements, and few enough that every form's bytes can be counted? */
bool pl_sparse_sensible(int ndim, const int64_t *shape);
/* To stdout, and into `page` if it is not NULL. */
stk_status pl_sparse_table(int ndim, const int64_t *shape, stk_dtype dtype, FILE *page, stk_error *err);

#endif
