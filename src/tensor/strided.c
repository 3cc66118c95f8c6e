/* strided.c: see strided.h. */
#include "strided.h"
#include <stdlib.h>
#include <string.h>

static void move_axis(stki_strided *plan, int to, int from)
{
    plan->shape[to] = plan->shape[from];
    for (int k = 0; k < plan->operands; k++)
        plan->strides[k][to] = plan->strides[k][from];
}

static void swap_axes(stki_strided *plan, int a, int b)
{
    int64_t length = plan->shape[a];

    plan->shape[a] = plan->shape[b];
    plan->shape[b] = length;
    for (int k = 0; k < plan->operands; k++) {
        int64_t stride = plan->strides[k][a];
        plan->strides[k][a] = plan->strides[k][b];
        plan->strides[k][b] = stride;
    }
}

/* Whether axis `a` must be outside axis `b`, as decided by the first operand with different strides. */
static bool outside(const stki_strided *plan, int a, int b)
{
    for (int k = 0; k < plan->operands; k++) {
        int64_t left = llabs(plan->strides[k][a]), right = llabs(plan->strides[k][b]);
        if (left != right)
            return left > right;
    }
    return false;
}

static void sort_axes(stki_strided *plan)
{
    for (int i = 1; i < plan->ndim; i++)
        for (int j = i; j > 0 && outside(plan, j, j - 1); j--)
            swap_axes(plan, j, j - 1);
}

/* Reverses the axes along which the first operand has a negative stride. */
static void reverse_negative(stki_strided *plan)
{
    for (int i = 0; i < plan->ndim; i++) {
        if (plan->strides[0][i] >= 0)
            continue;
        for (int k = 0; k < plan->operands; k++) {
            plan->offsets[k] += plan->strides[k][i] * (plan->shape[i] - 1);
            plan->strides[k][i] = -plan->strides[k][i];
        }
    }
}

/* Whether the two axes can be merged: each step of the outer one continues where the inner one ends. */
static bool is_mergeable(const stki_strided *plan, int outer, int inner)
{
    for (int k = 0; k < plan->operands; k++)
        if (plan->strides[k][outer] != plan->strides[k][inner] * plan->shape[inner])
            return false;
    return true;
}

static void merge_axes(stki_strided *plan)
{
    int last = 0; /* axes [0, last] are done */

    for (int i = 1; i < plan->ndim; i++) {
        if (is_mergeable(plan, last, i)) {
            plan->shape[i] *= plan->shape[last];
            move_axis(plan, last, i);
        } else {
            move_axis(plan, ++last, i);
        }
    }
    plan->ndim = last + 1;
}

void stki_strided_plan(stki_strided *plan, int operands, const int64_t *const *strides, int ndim, const int64_t *shape,
                       enum stki_axis_order order)
{
    plan->operands = operands;
    plan->ndim = 0;
    plan->count = 1;
    memset(plan->offsets, 0, sizeof plan->offsets);
    for (int i = 0; i < ndim; i++)
        if (shape[i] == 0)
            plan->count = 0;
    for (int i = 0; i < ndim && plan->count; i++) {
        if (shape[i] == 1)
            continue;
        plan->count *= shape[i];
        plan->shape[plan->ndim] = shape[i];
        for (int k = 0; k < operands; k++)
            plan->strides[k][plan->ndim] = strides[k][i];
        plan->ndim++;
    }
    if (plan->ndim == 0 || plan->count == 0) { /* one element, or none */
        plan->ndim = 1;
        plan->shape[0] = plan->count;
        for (int k = 0; k < operands; k++)
            plan->strides[k][0] = 0;
        return;
    }
    if (order == STKI_ANY_ORDER) {
        reverse_negative(plan);
        sort_axes(plan);
    }
    merge_axes(plan);
}

void stki_strided_second_last(stki_strided *plan, int axis)
{
    for (; axis < plan->ndim - 2; axis++)
        swap_axes(plan, axis, axis + 1);
}

void stki_strided_join_rows(stki_strided *plan)
{
    int last = plan->ndim - 1;

    if (last == 0 || plan->strides[2][last] <= 0 || plan->strides[2][last - 1] != 0)
        return;
    for (int k = 0; k < 2; k++)
        if (plan->strides[k][last - 1] != plan->strides[k][last] * plan->shape[last])
            return;
    plan->shape[last - 1] *= plan->shape[last];
    for (int k = 0; k < 3; k++)
        plan->strides[k][last - 1] = plan->strides[k][last];
    plan->ndim--;
}

void stki_broadcast_strides(const stk_tensor *out, const stk_tensor *in, int64_t *strides)
{
    int lead = out->ndim - (in ? in->ndim : 0);

    for (int i = 0; i < out->ndim; i++)
        strides[i] = in && i >= lead && in->shape[i - lead] > 1 ? in->strides[i - lead] : 0;
}

void stki_reduced_strides(const stk_tensor *out, const stk_tensor *in, const bool *reduced, bool keep, int64_t *strides)
{
    for (int i = 0, at = 0; i < in->ndim; i++) {
        strides[i] = reduced[i] ? 0 : out->strides[at];
        at += keep || !reduced[i];
    }
}

bool stki_walk_begin(stki_walk *walk, const stki_strided *plan, int inner, const void *const *data)
{
    if (plan->count == 0)
        return false;
    walk->plan = plan;
    walk->outer = plan->ndim > inner ? plan->ndim - inner : 0;
    for (int i = 0; i < walk->outer; i++)
        walk->index[i] = 0;
    for (int k = 0; k < plan->operands; k++)
        walk->at[k] = (char *)(uintptr_t)data[k] + plan->offsets[k];
    return true;
}
