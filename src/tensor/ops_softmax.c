/* ops_softmax.c: see ops_softmax.h; stk_tensor_log_softmax. */
#include "ops_softmax.h"
#include "dtype.h"
#include "error.h"
#include "ops_frame.h"
#include "ops_promote.h"
#include "profile_scope.h"
#include "strided.h"
#include "tensor_internal.h"
#include <math.h>

void stki_scores_init(stki_scores *scores, stk_dtype dtype, int64_t count, int64_t step)
{
    *scores = (stki_scores){.step = step, .count = count, .size = stk_dtype_size(dtype)};
    stki_cast_init(&scores->cast, STK_F64, dtype, false);
}

static int64_t load(const stki_scores *scores, double *block, int64_t first)
{
    int64_t left = scores->count - first, n = left < STKI_SOFTMAX_BLOCK ? left : STKI_SOFTMAX_BLOCK;

    stki_cast_row(&scores->cast, block, sizeof *block, scores->data + first * scores->step, scores->step, n);
    return n;
}

void stki_scores_measure(stki_scores *scores, const void *data)
{
    double block[STKI_SOFTMAX_BLOCK], largest = -(double)INFINITY, sum = 0;

    scores->data = data;
    for (int64_t first = 0, n; first < scores->count; first += n) {
        n = load(scores, block, first);
        for (int64_t i = 0; i < n; i++)
            largest = block[i] > largest ? block[i] : largest;
    }
    for (int64_t first = 0, n; first < scores->count; first += n) {
        n = load(scores, block, first);
        for (int64_t i = 0; i < n; i++)
            sum += exp(block[i] - largest);
    }
    scores->largest = largest;
    scores->log_sum = log(sum);
}

void stki_scores_log_softmax(const stki_scores *scores, double *out, int64_t first, int64_t n)
{
    stki_cast_row(&scores->cast, out, sizeof *out, scores->data + first * scores->step, scores->step, n);
    for (int64_t i = 0; i < n; i++)
        out[i] = (out[i] - scores->largest) - scores->log_sum;
}

/* ---- log_softmax ---- */

static void run_row(stki_scores *scores, const stki_cast *store, char *out, int64_t out_step, const char *in)
{
    double block[STKI_SOFTMAX_BLOCK];

    stki_scores_measure(scores, in);
    for (int64_t first = 0; first < scores->count; first += STKI_SOFTMAX_BLOCK) {
        int64_t left = scores->count - first, n = left < STKI_SOFTMAX_BLOCK ? left : STKI_SOFTMAX_BLOCK;
        stki_scores_log_softmax(scores, block, first, n);
        stki_cast_row(store, out + first * out_step, out_step, block, sizeof *block, n);
    }
}

static stk_status run_call(void *context, const stk_tensor *const *tensors, stk_error *err)
{
    const int dim = *(const int *)context;
    const stk_tensor *out = tensors[0], *in = tensors[1];
    int64_t shape[STK_MAX_DIMS], strides[2][STK_MAX_DIMS];
    stki_scores scores;
    stki_strided plan;
    stki_walk walk;
    stki_cast store;
    int ndim = 0;

    (void)err;
    for (int i = 0; i < in->ndim; i++)
        if (i != dim) {
            shape[ndim] = in->shape[i];
            strides[0][ndim] = out->strides[i];
            strides[1][ndim++] = in->strides[i];
        }
    stki_scores_init(&scores, in->dtype, in->ndim > 0 ? in->shape[dim] : 1, in->ndim > 0 ? in->strides[dim] : 0);
    stki_cast_init(&store, out->dtype, STK_F64, false);
    stki_strided_plan(&plan, 2, (const int64_t *const[]){strides[0], strides[1]}, ndim, shape, STKI_ANY_ORDER);
    if (!stki_walk_begin(&walk, &plan, 0, (const void *const[]){out->data, in->data}))
        return STK_OK;
    do
        run_row(&scores, &store, walk.at[0], in->ndim > 0 ? out->strides[dim] : 0, walk.at[1]);
    while (stki_walk_next(&walk));
    return STK_OK;
}

stk_status stk_tensor_log_softmax(const stk_tensor *tensor, int dim, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("log_softmax");
    stk_tensor made;
    stk_status status = stki_check_computable(tensor, "log_softmax", err);

    status = status != STK_OK ? status : stki_wrap_dim(dim, tensor->ndim, "log_softmax", &dim, err);
    if (status != STK_OK)
        return status;
    if (stki_dtype_category(tensor->dtype) != STKI_CATEGORY_REAL)
        return stki_fail(err, STK_E_BAD_DTYPE, "log_softmax: not defined for %s; convert it to a floating-point dtype",
                         stk_dtype_name(tensor->dtype));
    status = stk_tensor_empty(tensor->dtype, tensor->ndim, tensor->shape, stki_tensor_device(tensor), &made, err);
    if (status != STK_OK)
        return status;
    if (stk_tensor_numel(tensor) > 0)
        status = stki_run_on_host((const stk_tensor *const[]){&made, tensor}, 2, 1, run_call, &dim, err);
    if (status != STK_OK) {
        stk_tensor_release(&made);
        return status;
    }
    *out = made;
    return STK_OK;
}
