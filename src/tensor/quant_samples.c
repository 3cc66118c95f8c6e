/* quant_samples.c: see quant_samples.h. */
#include "quant_samples.h"
#include "dtype.h"
#include "error.h"
#include "float_control.h"
#include "quant_internal.h"
#include <inttypes.h>
#include <math.h>

stk_status stki_samples_begin(stki_samples *samples, const stk_tensor *tensor, int axis, stk_error *err)
{
    int64_t channel_strides[STK_MAX_DIMS] = {0};
    stk_status status = stki_dtype_check(tensor->dtype, err);

    if (status)
        return status;
    if (stki_dtype_category(tensor->dtype) != STKI_CATEGORY_REAL)
        return stki_fail(err, STK_E_BAD_DTYPE, "calibration: the samples are %s, must be real",
                         stk_dtype_name(tensor->dtype));
    if (axis != STK_QUANT_PER_TENSOR && (axis < 0 || axis >= tensor->ndim))
        return stki_fail(err, STK_E_BAD_DIM, "calibration along axis %d of a tensor with %d", axis, tensor->ndim);
    samples->count = stk_tensor_numel(tensor);
    samples->channels = axis < 0 ? 1 : tensor->shape[axis];
    if (samples->count == 0)
        return stki_fail(err, STK_E_EMPTY_REDUCE, "calibration: there are no samples");
    if (axis >= 0)
        channel_strides[axis] = 1;
    stki_strided_plan(&samples->plan, 2, (const int64_t *const[]){tensor->strides, channel_strides}, tensor->ndim,
                      tensor->shape, STKI_ANY_ORDER);
    samples->element_bytes = stk_dtype_size(tensor->dtype);
    stki_cast_init(&samples->cast, STK_F64, tensor->dtype, (tensor->flags & STK_TENSOR_SWAPPED) != 0);
    return stki_stage_begin(&samples->stage, tensor, err);
}

void stki_samples_end(stki_samples *samples)
{
    stki_stage_end(&samples->stage);
}

void stki_samples_each(const stki_samples *samples, stki_samples_fn visit, void *context)
{
    const stki_strided *plan = &samples->plan;
    const int64_t n = plan->shape[plan->ndim - 1], step = plan->strides[0][plan->ndim - 1],
                  channel_step = plan->strides[1][plan->ndim - 1];
    static const char channels[1]; /* only distances from it are used */
    double values[STKI_SAMPLES_BLOCK];
    stki_float_control control;
    stki_walk walk;

    if (!stki_walk_begin(&walk, plan, 1, (const void *const[]){samples->stage.host.data, channels}))
        return;
    control = stki_float_enter();
    do {
        int64_t channel = (int64_t)((intptr_t)walk.at[1] - (intptr_t)channels);
        for (int64_t i = 0; i < n; i += STKI_SAMPLES_BLOCK) {
            int64_t here = n - i < STKI_SAMPLES_BLOCK ? n - i : STKI_SAMPLES_BLOCK;
            stki_cast_row(&samples->cast, values, sizeof values[0], walk.at[0] + i * step, step, here);
            visit(context, values, here, channel + i * channel_step, channel_step);
        }
    } while (stki_walk_next(&walk));
    stki_float_leave(control);
}

struct range_pass {
    stki_qrange *ranges;
    int64_t strange; /* elements that are infinite or NaN */
};

static void widen(void *context, const double *values, int64_t n, int64_t channel, int64_t channel_step)
{
    struct range_pass *pass = context;

    for (int64_t i = 0; i < n; i++) {
        stki_qrange *range = &pass->ranges[channel + i * channel_step];
        double x = values[i];
        pass->strange += !isfinite(x);
        range->low = x < range->low ? x : range->low;
        range->high = x > range->high ? x : range->high;
    }
}

stk_status stki_samples_range(const stki_samples *samples, stki_qrange *ranges, stk_error *err)
{
    struct range_pass pass = {.ranges = ranges};

    for (int64_t i = 0; i < samples->channels; i++)
        ranges[i] = (stki_qrange){.low = INFINITY, .high = -INFINITY};
    stki_samples_each(samples, widen, &pass);
    if (pass.strange > 0)
        return stki_fail(err, STK_E_BAD_VALUE, "calibration: %" PRId64 " of %" PRId64 " samples are infinite or NaN",
                         pass.strange, samples->count);
    return STK_OK;
}
