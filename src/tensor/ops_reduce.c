/* ops_reduce.c: see ops_reduce.h. */
#include "ops_reduce.h"
#include "error.h"
#include "strided.h"
#include "tensor_internal.h"

/* ---- which axes ---- */

stk_status stki_reduce_axes(const stk_tensor *tensor, int dim_count, const int *dims, bool *reduced, const char *what,
                            stk_error *err)
{
    bool seen[STK_MAX_DIMS] = {false};

    for (int i = 0; i < tensor->ndim; i++)
        reduced[i] = !dims;
    for (int i = 0; dims && i < dim_count; i++) {
        int dim;
        stk_status status = stki_wrap_dim(dims[i], tensor->ndim, what, &dim, err);
        if (status != STK_OK)
            return status;
        if (seen[dim])
            return stki_fail(err, STK_E_BAD_DIM, "%s: dimension %d is given twice", what, dim);
        seen[dim] = true;
        if (dim < tensor->ndim)
            reduced[dim] = true;
    }
    return STK_OK;
}

int stki_reduce_shape(const stk_tensor *tensor, const bool *reduced, bool keep, int64_t *shape)
{
    int ndim = 0;

    for (int i = 0; i < tensor->ndim; i++) {
        if (!reduced[i])
            shape[ndim++] = tensor->shape[i];
        else if (keep)
            shape[ndim++] = 1;
    }
    return ndim;
}

int64_t stki_reduce_count(const stk_tensor *tensor, const bool *reduced)
{
    int64_t count = 1;

    for (int i = 0; i < tensor->ndim; i++)
        if (reduced[i] && tensor->shape[i] == 0)
            return 0;
    for (int i = 0; i < tensor->ndim; i++)
        if (reduced[i])
            count *= tensor->shape[i];
    return count;
}

/* ---- iteration ---- */

/* The reduced or the kept axes of the plan, outermost first. The last one is separate: it is passed as a whole. */
struct axes {
    int outer;
    int64_t shape[STK_MAX_DIMS], in[STK_MAX_DIMS], out[STK_MAX_DIMS];
    int64_t index[STK_MAX_DIMS];
    int64_t last_length, last_in, last_out; /* length 1 where there is no axis */
};

static void take_axes(struct axes *axes, const stki_strided *plan, bool reduced)
{
    axes->outer = -1; /* the last axis is not counted */
    axes->last_length = 1;
    axes->last_in = axes->last_out = 0;
    for (int i = 0; i < plan->ndim; i++) {
        if ((plan->strides[1][i] == 0) != reduced)
            continue;
        if (++axes->outer > 0) {
            axes->shape[axes->outer - 1] = axes->last_length;
            axes->in[axes->outer - 1] = axes->last_in;
            axes->out[axes->outer - 1] = axes->last_out;
        }
        axes->last_length = plan->shape[i];
        axes->last_in = plan->strides[0][i];
        axes->last_out = plan->strides[1][i];
    }
    axes->outer = axes->outer < 0 ? 0 : axes->outer;
    for (int i = 0; i < axes->outer; i++)
        axes->index[i] = 0;
}

/* Advances to the next index of the outer axes; after the last one it returns false and starts over. */
static bool step_axes(struct axes *axes, const char **in, char **out)
{
    for (int i = axes->outer - 1; i >= 0; i--) {
        *in += axes->in[i];
        *out += axes->out[i];
        if (++axes->index[i] < axes->shape[i])
            return true;
        axes->index[i] = 0;
        *in -= axes->in[i] * axes->shape[i];
        *out -= axes->out[i] * axes->shape[i];
    }
    return false;
}

/* Computes the results of `cells` adjacent output elements. */
static void run_cells(const stki_reducer *reducer, struct axes *reduced, const char *in, int64_t in_step, char *out,
                      int64_t out_step, int64_t cells)
{
    char *unused = out; /* reduced axes have output stride 0 */

    reducer->begin(reducer->state, cells);
    do
        reducer->add(reducer->state, in, cells, in_step, reduced->last_length, reduced->last_in);
    while (step_axes(reduced, &in, &unused));
    reducer->end(reducer->state, out, out_step, cells);
}

void stki_reduce_run(const stki_reducer *reducer, const stk_tensor *out, const stk_tensor *in, const bool *reduced,
                     bool keep)
{
    int64_t strides[STK_MAX_DIMS];
    struct axes kept, reduced_axes;
    stki_strided plan;
    stki_walk walk;

    stki_reduced_strides(out, in, reduced, keep, strides);
    stki_strided_plan(&plan, 2, (const int64_t *const[]){in->strides, strides}, in->ndim, in->shape, STKI_ANY_ORDER);
    if (!stki_walk_begin(&walk, &plan, plan.ndim, (const void *const[]){in->data, out->data}))
        return;
    take_axes(&kept, &plan, false);
    take_axes(&reduced_axes, &plan, true);
    const char *from = walk.at[0];
    char *to = walk.at[1];
    do
        for (int64_t first = 0; first < kept.last_length; first += reducer->max_cells) {
            int64_t left = kept.last_length - first, cells = left < reducer->max_cells ? left : reducer->max_cells;
            run_cells(reducer, &reduced_axes, from + first * kept.last_in, kept.last_in, to + first * kept.last_out,
                      kept.last_out, cells);
        }
    while (step_axes(&kept, &from, &to));
}
