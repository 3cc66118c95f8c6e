/* quant_calibrate.c: parameters from a range, and ranges from the smallest and largest element, per tensor and per
 * channel, or from the mean squared error. */
#include "allocate.h"
#include "error.h"
#include "float_control.h"
#include "profile_scope.h"
#include "quant_internal.h"
#include "quant_samples.h"
#include <inttypes.h>
#include <math.h>

/* ---- a range becomes a scale and a zero point -------------------------------------------------------------------- */

void stki_quant_parameters(stk_qdtype qdtype, stk_qscheme scheme, stki_qrange range, double *scale, int64_t *zero_point)
{
    const float smallest = 0x1p-23f;
    float low = (float)(range.low < 0 ? range.low : 0), high = (float)(range.high > 0 ? range.high : 0);
    double qmin = (double)stki_quant_min(qdtype), qmax = (double)stki_quant_max(qdtype), zero;
    float step;

    if (scheme == STK_QUANT_SYMMETRIC) {
        step = (-low > high ? -low : high) / (float)((qmax - qmin) / 2);
        *scale = (double)(step > smallest ? step : smallest);
        *zero_point = qdtype == STK_QUINT8 ? 128 : 0;
        return;
    }
    step = (high - low) / (float)(qmax - qmin);
    step = step > smallest ? step : smallest;
    zero = qmin - (double)rintf(low / step);
    *scale = (double)step;
    *zero_point = (int64_t)(zero < qmin ? qmin : zero > qmax ? qmax : zero);
}

stk_status stki_quant_from_ranges(stk_qdtype qdtype, stk_qscheme scheme, int axis, int64_t count,
                                  const stki_qrange *ranges, stk_quant **out, stk_error *err)
{
    double *scales = stki_zalloc_array(count, sizeof *scales);
    int64_t *zero_points = stki_zalloc_array(count, sizeof *zero_points);
    stk_quant *quant = NULL;
    stki_float_control control;
    stk_status status = STK_OK;

    if (!scales || !zero_points)
        status = stki_fail_memory(err, count, "calibration");
    control = stki_float_enter();
    for (int64_t i = 0; !status && i < count; i++)
        stki_quant_parameters(qdtype, scheme, ranges[i], &scales[i], &zero_points[i]);
    stki_float_leave(control);
    status = status ? status : stk_quant_create(qdtype, axis, count, scales, zero_points, &quant, err);
    for (int64_t i = 0; !status && i < count; i++) {
        quant->low[i] = ranges[i].low;
        quant->high[i] = ranges[i].high;
    }
    stki_free(scales);
    stki_free(zero_points);
    if (!status)
        *out = quant;
    return status;
}

/* ---- smallest and largest ---------------------------------------------------------------------------------------- */

static stk_status minmax(const stk_tensor *tensor, int axis, stk_qdtype qdtype, stk_qscheme scheme, stk_quant **out,
                         stk_error *err)
{
    stki_samples samples;
    stki_qrange *ranges;
    stk_status status = stki_quant_check(qdtype, scheme, err);

    status = status ? status : stki_samples_begin(&samples, tensor, axis, err);
    if (status)
        return status;
    ranges = stki_zalloc_array(samples.channels, sizeof *ranges);
    status = ranges ? stki_samples_range(&samples, ranges, err)
                    : stki_fail_memory(err, samples.channels, "the channels' ranges");
    status = status ? status : stki_quant_from_ranges(qdtype, scheme, axis, samples.channels, ranges, out, err);
    stki_free(ranges);
    stki_samples_end(&samples);
    return status;
}

stk_status stk_quant_minmax(const stk_tensor *samples, stk_qdtype qdtype, stk_qscheme scheme, stk_quant **out,
                            stk_error *err)
{
    STKI_PROFILE("quant_minmax");
    return minmax(samples, STK_QUANT_PER_TENSOR, qdtype, scheme, out, err);
}

stk_status stk_quant_minmax_channels(const stk_tensor *samples, int axis, stk_qdtype qdtype, stk_qscheme scheme,
                                     stk_quant **out, stk_error *err)
{
    STKI_PROFILE("quant_minmax_channels");
    if (axis < 0)
        return stki_fail(err, STK_E_BAD_DIM, "calibration along axis %d: must not be negative", axis);
    return minmax(samples, axis, qdtype, scheme, out, err);
}

/* ---- mean squared error ------------------------------------------------------------------------------------------ */

struct error_pass {
    const stk_quant *quant;
    const stki_quant_kernels *kernels;
    double sum;
};

static void add_errors(void *context, const double *values, int64_t n, int64_t channel, int64_t channel_step)
{
    struct error_pass *pass = context;
    float x[STKI_SAMPLES_BLOCK] = {0}, back[STKI_SAMPLES_BLOCK];
    int32_t integers[STKI_SAMPLES_BLOCK];
    stk_qdtype qdtype = pass->quant->qdtype;
    double sum = 0;

    (void)channel, (void)channel_step;
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)values[i];
    pass->kernels->quantize[qdtype](&pass->quant->lane, integers, x, n, 0);
    pass->kernels->dequantize[qdtype](&pass->quant->lane, back, integers, n, 0);
    for (int64_t i = 0; i < n; i++) {
        double error = values[i] - (double)back[i];
        sum += error * error;
    }
    pass->sum += sum;
}

/* The best of `steps` ranges, all inside `whole`. */
static stk_status search(const stki_samples *samples, stk_qdtype qdtype, stk_qscheme scheme, int64_t steps,
                         stki_qrange whole, stk_quant **out, double *error, stk_error *err)
{
    stk_quant *best = NULL;
    double best_sum = INFINITY;
    stk_status status = STK_OK;

    for (int64_t k = steps; !status && k >= 1; k--) {
        double share = (double)k / (double)steps;
        stki_qrange range = {.low = whole.low * share, .high = whole.high * share};
        struct error_pass pass = {.kernels = stki_quant_kernels_of(stki_isa())};
        stk_quant *quant;

        status = stki_quant_from_ranges(qdtype, scheme, STK_QUANT_PER_TENSOR, 1, &range, &quant, err);
        if (status)
            break;
        pass.quant = quant;
        stki_samples_each(samples, add_errors, &pass);
        if (pass.sum < best_sum) {
            stk_quant *worse = best;
            best = quant;
            best_sum = pass.sum;
            quant = worse;
        }
        stk_quant_release(quant);
    }
    if (status) {
        stk_quant_release(best);
        return status;
    }
    *out = best;
    if (error)
        *error = best_sum / (double)samples->count;
    return STK_OK;
}

stk_status stk_quant_mse(const stk_tensor *samples, stk_qdtype qdtype, stk_qscheme scheme, int64_t steps,
                         stk_quant **out, double *mean_squared_error, stk_error *err)
{
    STKI_PROFILE("quant_mse");
    stki_samples begun;
    stki_qrange whole;
    stk_status status = stki_quant_check(qdtype, scheme, err);

    if (!status && steps < 0)
        status = stki_fail(err, STK_E_BAD_ARG, "%" PRId64 " steps: must be at least 1, or 0 for 100", steps);
    status = status ? status : stki_samples_begin(&begun, samples, STK_QUANT_PER_TENSOR, err);
    if (status)
        return status;
    status = stki_samples_range(&begun, &whole, err);
    status = status ? status : search(&begun, qdtype, scheme, steps ? steps : 100, whole, out, mean_squared_error, err);
    stki_samples_end(&begun);
    return status;
}
