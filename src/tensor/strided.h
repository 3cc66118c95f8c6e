/* strided.h: iteration over the elements of several strided operands at once. First the axes are planned: axes of
 * length 1 are dropped, the others are sorted by decreasing stride of the first operand, and axes that are contiguous
 * with each other in every operand are merged. A walk then visits every row (or every block of the last few axes) and
 * provides its address in each operand.
 *
 *     stki_strided plan;
 *     stki_walk walk;
 *     stki_strided_plan(&plan, 2, (const int64_t *const[]){dst_strides, src_strides}, ndim, shape, STKI_ANY_ORDER);
 *     if (stki_walk_begin(&walk, &plan, 1, (const void *const[]){dst, src}))
 *         do
 *             row(walk.at[0], plan.strides[0][plan.ndim - 1], walk.at[1], …, plan.shape[plan.ndim - 1]);
 *         while (stki_walk_next(&walk)); */
#ifndef STKI_STRIDED_H
#define STKI_STRIDED_H

#include <stoker/tensor.h>

enum { STKI_OPERANDS = 4 };

enum stki_axis_order {
    STKI_ANY_ORDER, /* axes sorted by the strides of operand 0, and reversed where those are negative */
    STKI_KEEP_ORDER /* elements are visited in row-major order of the indices */
};

typedef struct stki_strided {
    int operands;
    int ndim;                       /* at least 1; the last axis is the row */
    int64_t count;                  /* total number of elements; may be 0 */
    int64_t offsets[STKI_OPERANDS]; /* bytes from the given address to the first row of the walk */
    int64_t shape[STK_MAX_DIMS];
    int64_t strides[STKI_OPERANDS][STK_MAX_DIMS]; /* bytes */
} stki_strided;

/* `strides` has one array of byte strides per operand; all operands have the same `shape`. */
void stki_strided_plan(stki_strided *plan, int operands, const int64_t *const *strides, int ndim, const int64_t *shape,
                       enum stki_axis_order order);

/* Moves an axis inwards to the second-to-last position; the others keep their order. */
void stki_strided_second_last(stki_strided *plan, int axis);
/* For plans whose operand 2 is a table of channels. If the last axis is the channel axis and operands 0 and 1 are
 * contiguous over the last two axes, merges these axes into one row along which the channels repeat. */
void stki_strided_join_rows(stki_strided *plan);

/* Computes the strides of an input over the shape of `out`: 0 along axes that are missing or of length 1; `in` may be
 * NULL. */
void stki_broadcast_strides(const stk_tensor *out, const stk_tensor *in, int64_t *strides);
/* Computes the strides of the output of a reduction over the axes of its input: 0 along reduced axes. */
void stki_reduced_strides(const stk_tensor *out, const stk_tensor *in, const bool *reduced, bool keep,
                          int64_t *strides);

typedef struct stki_walk {
    const stki_strided *plan; /* must outlive the walk */
    int outer;                /* axes that the walk iterates over: all but the last `inner` */
    char *at[STKI_OPERANDS];  /* address of the current row; the walk itself reads and writes no elements */
    int64_t index[STK_MAX_DIMS];
} stki_walk;

/* Begins a walk; the caller iterates over the last `inner` axes (at least 1; all if the plan has fewer). False: no
 * elements. */
bool stki_walk_begin(stki_walk *walk, const stki_strided *plan, int inner, const void *const *data);

/* Advances to the next row; false after the last. */
static inline bool stki_walk_next(stki_walk *walk)
{
    const stki_strided *plan = walk->plan;

    for (int axis = walk->outer - 1; axis >= 0; axis--) {
        if (++walk->index[axis] < plan->shape[axis]) {
            for (int k = 0; k < plan->operands; k++)
                walk->at[k] += plan->strides[k][axis];
            return true;
        }
        walk->index[axis] = 0;
        for (int k = 0; k < plan->operands; k++)
            walk->at[k] -= plan->strides[k][axis] * (plan->shape[axis] - 1);
    }
    return false;
}

#endif
