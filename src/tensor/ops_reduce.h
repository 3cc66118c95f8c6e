/* ops_reduce.h: the traversal of a tensor's elements shared by all reductions. Reduced and kept axes are sorted by the
 * input's strides, regardless of their order in the shape, so that memory is read sequentially. Results are computed
 * for up to STKI_REDUCE_CELLS output elements at a time, in a state owned by the reducer. */
#ifndef STKI_OPS_REDUCE_H
#define STKI_OPS_REDUCE_H

#include <stoker/tensor.h>

typedef struct stki_reducer {
    void *state;
    int64_t max_cells; /* number of results that the state can hold */
    /* Starts `cells` new results. */
    void (*begin)(void *state, int64_t cells);
    /* Adds `n` elements to each result: cell c gets those at x + c * cell_step + i * step. */
    void (*add)(void *state, const char *x, int64_t cells, int64_t cell_step, int64_t n, int64_t step);
    void (*end)(void *state, char *out, int64_t out_step, int64_t cells);
} stki_reducer;

/* Sets reduced[i] for each axis i to be reduced. `dims` NULL: all. STK_E_BAD_DIM: the message names `what`. */
stk_status stki_reduce_axes(const stk_tensor *tensor, int dim_count, const int *dims, bool *reduced, const char *what,
                            stk_error *err);
/* The shape of the result; reduced axes are kept with length 1 if `keep`. */
int stki_reduce_shape(const stk_tensor *tensor, const bool *reduced, bool keep, int64_t *shape);
/* Number of elements per result; 0 if a reduced axis is empty. */
int64_t stki_reduce_count(const stk_tensor *tensor, const bool *reduced);

/* Reduces `in`, which has at least one element, to `out`, which has the shape of the result. Both are in host
 * memory. */
void stki_reduce_run(const stki_reducer *reducer, const stk_tensor *out, const stk_tensor *in, const bool *reduced,
                     bool keep);

#endif
