/* ops_arg.c: minima and maxima along one dimension with their index, or the index in the flattened tensor. Among equal
 * elements, the index of the first one is returned. */
#include "cast.h"
#include "error.h"
#include "ops_extreme_loops.h"
#include "ops_frame.h"
#include "ops_promote.h"
#include "ops_reduce.h"
#include "profile_scope.h"
#include "strided.h"
#include "tensor_internal.h"
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512, MAX_SIZE = 8 };

struct arg {
    const stki_extreme_loops *loops;
    stk_dtype compute;
    bool largest, plain; /* plain: contiguous elements need no cast */
    int64_t size, compute_size;
    stki_cast load, store;
    int64_t length, stride; /* length and stride of the dimension */
    int64_t index[BLOCK];
    _Alignas(64) char best[BLOCK * MAX_SIZE];
    _Alignas(64) char block[BLOCK * MAX_SIZE];
};

static void init_arg(struct arg *a, stk_dtype dtype, bool largest)
{
    a->compute = stki_compute_dtype(dtype);
    a->largest = largest;
    a->plain = a->compute == dtype && dtype != STK_BOOL;
    a->size = stk_dtype_size(dtype);
    a->compute_size = stk_dtype_size(a->compute);
    a->loops = stki_extreme_loops_of(stki_isa(), a->compute, largest);
    stki_cast_init(&a->load, a->compute, dtype, false);
    stki_cast_init(&a->store, dtype, a->compute, false);
}

/* Returns at most BLOCK elements, contiguous and in the compute dtype. */
static const void *fetch(struct arg *a, const char *x, int64_t step, int64_t n)
{
    if (a->plain && step == a->size)
        return x;
    stki_cast_row(&a->load, a->block, a->compute_size, x, step, n);
    return a->block;
}

/* ---- one row ---- */

/* Updates *best and *index, the result of the elements before position `first` (index -1: there were none). */
static void search_row(struct arg *a, char *best, int64_t *index, int64_t first, const char *x, int64_t step, int64_t n)
{
    for (int64_t done = 0; done < n; done += BLOCK) {
        int64_t count = n - done < BLOCK ? n - done : BLOCK;
        const void *at = fetch(a, x + done * step, step, count);
        char here[MAX_SIZE];
        memcpy(here, at, (size_t)a->compute_size);
        a->loops->row(here, at, count);
        if (*index >= 0 && !a->loops->beats(here, best))
            continue;
        memcpy(best, here, (size_t)a->compute_size);
        *index = first + done + a->loops->find(here, at, count);
    }
}

/* ---- many rows at a time ---- */

/* Computes at most BLOCK results that are closer to each other in memory than the elements of one result. */
static void search_columns(struct arg *a, const char *x, int64_t cells, int64_t cell_step)
{
    memcpy(a->best, fetch(a, x, cell_step, cells), (size_t)(cells * a->compute_size));
    memset(a->index, 0, sizeof a->index[0] * (size_t)cells);
    for (int64_t i = 1; i < a->length; i++)
        a->loops->columns_at(a->best, a->index, fetch(a, x + i * a->stride, cell_step, cells), cells, i);
}

static void search_rows(struct arg *a, const char *x, int64_t cells, int64_t cell_step)
{
    for (int64_t j = 0; j < cells; j++) {
        a->index[j] = -1;
        search_row(a, a->best + j * a->compute_size, &a->index[j], 0, x + j * cell_step, a->stride, a->length);
    }
}

/* ---- all results ---- */

struct call {
    const char *name;
    bool largest, keep;
    int dim; /* -1: all */
    bool reduced[STK_MAX_DIMS];
};

/* The strides of an output over the dimensions that are kept; 0 if the output is not requested. */
static void kept_strides(const stk_tensor *out, const struct call *call, int ndim, int64_t *strides)
{
    for (int i = 0, at = 0; i < ndim; i++) {
        if (i == call->dim)
            continue;
        strides[at] = out ? out->strides[call->keep || i < call->dim ? i : i - 1] : 0;
        at++;
    }
}

static stk_status run_along(void *context, const stk_tensor *const *tensors, stk_error *err)
{
    const struct call *call = context;
    const stk_tensor *values = tensors[0], *indices = tensors[1], *in = tensors[2];
    const void *data[3] = {in->data, values ? values->data : in->data, indices ? indices->data : in->data};
    int64_t shape[STK_MAX_DIMS], strides[3][STK_MAX_DIMS];
    stki_strided plan;
    stki_walk walk;
    struct arg a;
    int last;

    (void)err;
    init_arg(&a, in->dtype, call->largest);
    a.length = in->ndim > 0 ? in->shape[call->dim] : 1;
    a.stride = in->ndim > 0 ? in->strides[call->dim] : 0;
    kept_strides(values, call, in->ndim, strides[1]);
    kept_strides(indices, call, in->ndim, strides[2]);
    for (int i = 0, at = 0; i < in->ndim; i++)
        if (i != call->dim) {
            shape[at] = in->shape[i];
            strides[0][at++] = in->strides[i];
        }
    stki_strided_plan(&plan, 3, (const int64_t *const[]){strides[0], strides[1], strides[2]},
                      in->ndim > 0 ? in->ndim - 1 : 0, shape, STKI_ANY_ORDER);
    if (!stki_walk_begin(&walk, &plan, 1, data))
        return STK_OK;
    last = plan.ndim - 1;
    do
        for (int64_t first = 0; first < plan.shape[last]; first += BLOCK) {
            int64_t left = plan.shape[last] - first, cells = left < BLOCK ? left : BLOCK;
            int64_t step = plan.strides[0][last];
            bool by_columns = cells > 1 && llabs(step) < llabs(a.stride);
            (by_columns ? search_columns : search_rows)(&a, walk.at[0] + first * step, cells, step);
            if (values)
                stki_cast_row(&a.store, walk.at[1] + first * plan.strides[1][last], plan.strides[1][last], a.best,
                              a.compute_size, cells);
            for (int64_t j = 0; indices && j < cells; j++)
                memcpy(walk.at[2] + (first + j) * plan.strides[2][last], &a.index[j], sizeof a.index[j]);
        }
    while (stki_walk_next(&walk));
    return STK_OK;
}

/* Searches the flattened tensor in row-major order. */
static stk_status run_flat(void *context, const stk_tensor *const *tensors, stk_error *err)
{
    const struct call *call = context;
    const stk_tensor *indices = tensors[1], *in = tensors[2];
    char best[MAX_SIZE] = {0};
    int64_t index = -1, done = 0;
    stki_strided plan;
    stki_walk walk;
    struct arg a;

    (void)err;
    init_arg(&a, in->dtype, call->largest);
    stki_strided_plan(&plan, 1, (const int64_t *const[]){in->strides}, in->ndim, in->shape, STKI_KEEP_ORDER);
    if (!stki_walk_begin(&walk, &plan, 1, (const void *const[]){in->data}))
        return STK_OK;
    do {
        int64_t n = plan.shape[plan.ndim - 1];
        search_row(&a, best, &index, done, walk.at[0], plan.strides[0][plan.ndim - 1], n);
        done += n;
    } while (stki_walk_next(&walk));
    memcpy(indices->data, &index, sizeof index);
    return STK_OK;
}

/* ---- calls ---- */

static stk_status begin_call(struct call *call, const stk_tensor *tensor, int dim, stk_error *err)
{
    stk_status status = stki_check_computable(tensor, call->name, err);

    status = status != STK_OK
                 ? status
                 : stki_reduce_axes(tensor, 1, dim == STK_ALL_DIMS ? NULL : &dim, call->reduced, call->name, err);
    if (status != STK_OK)
        return status;
    call->dim = dim == STK_ALL_DIMS ? -1 : dim < 0 ? dim + (tensor->ndim > 0 ? tensor->ndim : 1) : dim;
    if (stki_reduce_count(tensor, call->reduced) == 0)
        return stki_fail(err, STK_E_EMPTY_REDUCE, "%s: shape %s has no elements", call->name,
                         STKI_SHAPE(tensor->ndim, tensor->shape));
    return STK_OK;
}

static stk_status find(struct call *call, const stk_tensor *tensor, int dim, stk_tensor *values, stk_tensor *indices,
                       stk_error *err)
{
    stk_tensor made[2] = {0};
    int64_t shape[STK_MAX_DIMS];
    stk_device *device = stki_tensor_device(tensor);
    stk_status status = begin_call(call, tensor, dim, err);
    int ndim;

    if (status != STK_OK)
        return status;
    ndim = stki_reduce_shape(tensor, call->reduced, call->keep, shape);
    if (values)
        status = stk_tensor_empty(tensor->dtype, ndim, shape, device, &made[0], err);
    if (status == STK_OK && indices)
        status = stk_tensor_empty(STK_I64, ndim, shape, device, &made[1], err);
    if (status == STK_OK && stk_tensor_numel(tensor) > 0)
        status =
            stki_run_on_host((const stk_tensor *const[]){values ? &made[0] : NULL, indices ? &made[1] : NULL, tensor},
                             3, 2, call->dim < 0 ? run_flat : run_along, call, err);
    if (status != STK_OK) {
        stk_tensor_release(&made[0]);
        stk_tensor_release(&made[1]);
        return status;
    }
    if (values)
        *values = made[0];
    if (indices)
        *indices = made[1];
    return STK_OK;
}

static stk_status find_along(const char *name, bool largest, const stk_tensor *tensor, int dim, bool keep,
                             stk_tensor *values, stk_tensor *indices, stk_error *err)
{
    struct call call = {.name = name, .largest = largest, .keep = keep};

    if (dim == STK_ALL_DIMS)
        return stki_fail(err, STK_E_BAD_DIM, "%s: a dimension must be given", name);
    return find(&call, tensor, dim, values, indices, err);
}

stk_status stk_tensor_min(const stk_tensor *tensor, int dim, bool keep, stk_tensor *values, stk_tensor *indices,
                          stk_error *err)
{
    STKI_PROFILE("min");
    return find_along("min", false, tensor, dim, keep, values, indices, err);
}

stk_status stk_tensor_max(const stk_tensor *tensor, int dim, bool keep, stk_tensor *values, stk_tensor *indices,
                          stk_error *err)
{
    STKI_PROFILE("max");
    return find_along("max", true, tensor, dim, keep, values, indices, err);
}

stk_status stk_tensor_argmin(const stk_tensor *tensor, int dim, bool keep, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("argmin");
    struct call call = {.name = "argmin", .keep = keep};

    return find(&call, tensor, dim, NULL, out, err);
}

stk_status stk_tensor_argmax(const stk_tensor *tensor, int dim, bool keep, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("argmax");
    struct call call = {.name = "argmax", .largest = true, .keep = keep};

    return find(&call, tensor, dim, NULL, out, err);
}
