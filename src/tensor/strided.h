/* strided.h: the one way to go over the elements of several strided operands at once. First the axes are planned: those
 * of length 1 go, the rest are ordered so that the first operand's strides fall, axes that follow on from each other in
 * every operand become one. Then a walk stops at every row (or at every block of the last few axes) and tells where it
 * starts in each operand.
 *
 *     stki_strided plan;
 *     stki_walk walk;
 *     stki_strided_plan(&plan, 2, (const int64_t *const[]){dst_strides, src_strides}, ndim, shape, STKI_ANY_ORDER);
 *     if (stki_walk_begin(&walk, &plan, 1, (const void *const[]){dst, src}))
 *         do
 *             row(walk.at[0], plan.strides[0][plan.ndim - 1], walk.at[1], …, plan.shape[plan.ndim - 1]);
 *         while (stki_walk_next(&walk));
 */
#ifndef STKI_STRIDED_H
#define STKI_STRIDED_H

#include <stoker/tensor.h>

enum { STKI_OPERANDS = 4 };

enum stki_axis_order {
    STKI_ANY_ORDER, /* axes sorted by the strides of operand 0, and turned round where those are negative */
    STKI_KEEP_ORDER /* elements are met in row-major order of the indices */
};

typedef struct stki_strided {
    int operands;
    int ndim;                       /* at least 1; the last axis is the row */
    int64_t count;                  /* elements in all; 0: there is nothing to walk over */
    int64_t offsets[STKI_OPERANDS]; /* bytes from the given address to where the walk starts */
    int64_t shape[STK_MAX_DIMS];
    int64_t strides[STKI_OPERANDS][STK_MAX_DIMS]; /* bytes */
} stki_strided;

/* Strides in bytes, one array an operand, all over `shape`. */
void stki_strided_plan(stki_strided *plan, int operands, const int64_t *const *strides, int ndim, const int64_t *shape,
                       enum stki_axis_order order);

typedef struct stki_walk {
    const stki_strided *plan; /* must outlive the walk */
    int outer;                /* axes that the walk steps over: all but the `inner` last */
    char *at[STKI_OPERANDS];  /* where the current row starts; read-only operands are the caller's business */
    int64_t index[STK_MAX_DIMS];
} stki_walk;

/* `inner` axes (at least 1; fewer than that where the plan has fewer) are left to the caller. False: no elements. */
bool stki_walk_begin(stki_walk *walk, const stki_strided *plan, int inner, const void *const *data);

/* To the next row; false after the last. */
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
