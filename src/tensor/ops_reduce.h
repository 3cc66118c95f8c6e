/* ops_reduce.h: the way over a tensor's elements that every reduction takes. Axes that go and axes that stay are sorted
 * by the input's strides, whatever their order in the shape, so that memory is read as it lies. Results are made for up
 * to STKI_REDUCE_CELLS places of the output at a time, in a state that the reducer keeps.
 */
#ifndef STKI_OPS_REDUCE_H
#define STKI_OPS_REDUCE_H

#include <stoker/tensor.h>

typedef struct stki_reducer {
    void *state;
    int64_t max_cells; /* results that the state has room for */
    /* `cells` fresh results. */
    void (*begin)(void *state, int64_t cells);
    /* `n` more elements for each: cell c gets those at x + c * cell_step + i * step. */
    void (*add)(void *state, const char *x, int64_t cells, int64_t cell_step, int64_t n, int64_t step);
    void (*end)(void *state, char *out, int64_t out_step, int64_t cells);
} stki_reducer;

/* Which axes go: reduced[i] for axis i. `dims` NULL: all. STK_E_BAD_DIM names `what`. */
stk_status stki_reduce_axes(const stk_tensor *tensor, int dim_count, const int *dims, bool *reduced, const char *what,
                            stk_error *err);
/* The shape of the result; axes that go stay with length 1 if `keep`. */
int stki_reduce_shape(const stk_tensor *tensor, const bool *reduced, bool keep, int64_t *shape);
/* Elements that go into one result; 0 if a reduced axis has none. */
int64_t stki_reduce_count(const stk_tensor *tensor, const bool *reduced);

/* `out` has the shape of the result and `in` at least one element. Memory that the processor reaches. */
void stki_reduce_run(const stki_reducer *reducer, const stk_tensor *out, const stk_tensor *in, const bool *reduced,
                     bool keep);

#endif
