/* quant_calibrate.c: quantization parameters from a range, and ranges from samples: by minimum and maximum, per tensor
 * and per channel, by mean squared error, or by percentiles, exact or from a histogram.
 *
 * Exact percentiles are found by a radix selection, without sorting: the bits of an element become a 64-bit key with
 * the order of the numbers, and each pass counts the next 16 bits among the elements that match the bits found so far.
 * Four passes find any rank with half a megabyte of counters, for any number of samples. */
#include "allocate.h"
#include "cast.h"
#include "dtype.h"
#include "error.h"
#include "float_control.h"
#include "profile_scope.h"
#include "quant_internal.h"
#include "stage.h"
#include "strided.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { STKI_SAMPLES_BLOCK = 512 };

typedef struct stki_samples {
    stki_stage stage;
    stki_strided plan; /* operands: the tensor, and the index of the channel */
    stki_cast cast;
    int64_t element_bytes, count, channels;
} stki_samples;

/* `n` elements; element i belongs to channel `channel` + i * `channel_step`. */
typedef void (*stki_samples_fn)(void *context, const double *values, int64_t n, int64_t channel, int64_t channel_step);

/* Channels along `axis`, or a single one (STK_QUANT_PER_TENSOR). STK_E_BAD_DTYPE: not floating-point. STK_E_BAD_DIM: no
 * such axis. STK_E_EMPTY_REDUCE: no element. */
static stk_status begin_samples(stki_samples *samples, const stk_tensor *tensor, int axis, stk_error *err)
{
    int64_t channel_strides[STK_MAX_DIMS] = {0};
    stk_status status = stki_dtype_check(tensor->dtype, err);

    if (status != STK_OK)
        return status;
    if (stki_dtype_category(tensor->dtype) != STKI_CATEGORY_REAL)
        return stki_fail(err, STK_E_BAD_DTYPE, "calibration: the samples are %s, but must be real",
                         stk_dtype_name(tensor->dtype));
    if (axis != STK_QUANT_PER_TENSOR && (axis < 0 || axis >= tensor->ndim))
        return stki_fail(err, STK_E_BAD_DIM, "calibration: axis %d is out of range for a %d-dimensional tensor", axis,
                         tensor->ndim);
    samples->count = stk_tensor_numel(tensor);
    samples->channels = axis < 0 ? 1 : tensor->shape[axis];
    if (samples->count == 0)
        return stki_fail(err, STK_E_EMPTY_REDUCE, "calibration: no samples");
    if (axis >= 0)
        channel_strides[axis] = 1;
    stki_strided_plan(&samples->plan, 2, (const int64_t *const[]){tensor->strides, channel_strides}, tensor->ndim,
                      tensor->shape, STKI_ANY_ORDER);
    samples->element_bytes = stk_dtype_size(tensor->dtype);
    stki_cast_init(&samples->cast, STK_F64, tensor->dtype, (tensor->flags & STK_TENSOR_SWAPPED) != 0);
    return stki_stage_begin(&samples->stage, tensor, err);
}

static void end_samples(stki_samples *samples)
{
    stki_stage_end(&samples->stage);
}

static void each_sample(const stki_samples *samples, stki_samples_fn visit, void *context)
{
    const stki_strided *plan = &samples->plan;
    const int64_t n = plan->shape[plan->ndim - 1], step = plan->strides[0][plan->ndim - 1],
                  channel_step = plan->strides[1][plan->ndim - 1];
    static const char channels[1]; /* a base address: the offset from it is the channel; never read */
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
    int64_t nonfinite; /* number of elements that are infinite or NaN */
};

static void widen(void *context, const double *values, int64_t n, int64_t channel, int64_t channel_step)
{
    struct range_pass *pass = context;

    for (int64_t i = 0; i < n; i++) {
        stki_qrange *range = &pass->ranges[channel + i * channel_step];
        double x = values[i];
        pass->nonfinite += !isfinite(x);
        range->low = x < range->low ? x : range->low;
        range->high = x > range->high ? x : range->high;
    }
}

static stk_status range_of_samples(const stki_samples *samples, stki_qrange *ranges, stk_error *err)
{
    struct range_pass pass = {.ranges = ranges};

    for (int64_t i = 0; i < samples->channels; i++)
        ranges[i] = (stki_qrange){.low = INFINITY, .high = -INFINITY};
    each_sample(samples, widen, &pass);
    if (pass.nonfinite > 0)
        return stki_fail(err, STK_E_BAD_VALUE, "calibration: %" PRId64 " of %" PRId64 " samples are infinite or NaN",
                         pass.nonfinite, samples->count);
    return STK_OK;
}

/* ---- scale and zero point of a range ---- */

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
        status = stki_fail_memory(err, count * (int64_t)(sizeof *scales + sizeof *zero_points), "calibration");
    control = stki_float_enter();
    for (int64_t i = 0; status == STK_OK && i < count; i++)
        stki_quant_parameters(qdtype, scheme, ranges[i], &scales[i], &zero_points[i]);
    stki_float_leave(control);
    status = status != STK_OK ? status : stk_quant_create(qdtype, axis, count, scales, zero_points, &quant, err);
    for (int64_t i = 0; status == STK_OK && i < count; i++) {
        quant->low[i] = ranges[i].low;
        quant->high[i] = ranges[i].high;
    }
    stki_free(scales);
    stki_free(zero_points);
    if (status == STK_OK)
        *out = quant;
    return status;
}

/* ---- minimum and maximum ---- */

static stk_status minmax(const stk_tensor *tensor, int axis, stk_qdtype qdtype, stk_qscheme scheme, stk_quant **out,
                         stk_error *err)
{
    stki_samples samples;
    stki_qrange *ranges;
    stk_status status = stki_quant_check(qdtype, scheme, err);

    status = status != STK_OK ? status : begin_samples(&samples, tensor, axis, err);
    if (status != STK_OK)
        return status;
    ranges = stki_zalloc_array(samples.channels, sizeof *ranges);
    status = ranges ? range_of_samples(&samples, ranges, err)
                    : stki_fail_memory(err, samples.channels, "the channels' ranges");
    status =
        status != STK_OK ? status : stki_quant_from_ranges(qdtype, scheme, axis, samples.channels, ranges, out, err);
    stki_free(ranges);
    end_samples(&samples);
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
        return stki_fail(err, STK_E_BAD_DIM, "calibration along axis %d: the axis must not be negative", axis);
    return minmax(samples, axis, qdtype, scheme, out, err);
}

/* ---- mean squared error ---- */

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

/* Finds the parameters with the smallest error among `steps` ranges, which are fractions of `whole`. */
static stk_status search(const stki_samples *samples, stk_qdtype qdtype, stk_qscheme scheme, int64_t steps,
                         stki_qrange whole, stk_quant **out, double *error, stk_error *err)
{
    stk_quant *best = NULL;
    double best_sum = INFINITY;
    stk_status status = STK_OK;

    for (int64_t k = steps; status == STK_OK && k >= 1; k--) {
        double share = (double)k / (double)steps;
        stki_qrange range = {.low = whole.low * share, .high = whole.high * share};
        struct error_pass pass = {.kernels = stki_quant_kernels_of(stki_isa())};
        stk_quant *quant;

        status = stki_quant_from_ranges(qdtype, scheme, STK_QUANT_PER_TENSOR, 1, &range, &quant, err);
        if (status != STK_OK)
            break;
        pass.quant = quant;
        each_sample(samples, add_errors, &pass);
        if (pass.sum < best_sum) {
            stk_quant *worse = best;
            best = quant;
            best_sum = pass.sum;
            quant = worse;
        }
        stk_quant_release(quant);
    }
    if (status != STK_OK) {
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

    if (status == STK_OK && steps < 0)
        status = stki_fail(err, STK_E_BAD_ARG, "%" PRId64 " steps: must be at least 1, or 0 for 100", steps);
    status = status != STK_OK ? status : begin_samples(&begun, samples, STK_QUANT_PER_TENSOR, err);
    if (status != STK_OK)
        return status;
    status = range_of_samples(&begun, &whole, err);
    status = status != STK_OK
                 ? status
                 : search(&begun, qdtype, scheme, steps ? steps : 100, whole, out, mean_squared_error, err);
    end_samples(&begun);
    return status;
}

/* ---- the k-th smallest ---- */

enum { DIGIT_BITS = 16, DIGITS = 1 << DIGIT_BITS };

static inline uint64_t key_of(double x)
{
    uint64_t bits;

    x += 0.0; /* -0 is treated as 0 */
    memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static double value_of(uint64_t key)
{
    uint64_t bits = key >> 63 ? key & ~(UINT64_C(1) << 63) : ~key;
    double x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

struct digit_pass {
    int64_t *counts;
    uint64_t known; /* the bits of the key above `shift` + DIGIT_BITS, which are already known */
    int shift;
};

static void count_digits(void *context, const double *values, int64_t n, int64_t channel, int64_t channel_step)
{
    struct digit_pass *pass = context;
    const int above = pass->shift + DIGIT_BITS;

    (void)channel, (void)channel_step;
    for (int64_t i = 0; i < n; i++) {
        uint64_t key = key_of(values[i]);
        if (above == 64 || key >> above == pass->known >> above)
            pass->counts[key >> pass->shift & (DIGITS - 1)]++;
    }
}

struct next_pass {
    double above, next;
};

static void find_next(void *context, const double *values, int64_t n, int64_t channel, int64_t channel_step)
{
    struct next_pass *pass = context;

    (void)channel, (void)channel_step;
    for (int64_t i = 0; i < n; i++)
        if (values[i] > pass->above && values[i] < pass->next)
            pass->next = values[i];
}

/* Finds elements k and k + 1 of the sorted samples. If k is the last one, *after is the same element. */
static void select_pair(const stki_samples *samples, int64_t *counts, int64_t k, double *at, double *after)
{
    struct digit_pass pass = {.counts = counts};
    struct next_pass next;
    int64_t rank = k, equal = 0;

    for (pass.shift = 64 - DIGIT_BITS; pass.shift >= 0; pass.shift -= DIGIT_BITS) {
        uint64_t digit = 0;
        memset(counts, 0, DIGITS * sizeof *counts);
        each_sample(samples, count_digits, &pass);
        while (rank >= counts[digit])
            rank -= counts[digit++];
        equal = counts[digit];
        pass.known |= digit << pass.shift;
    }
    *at = *after = value_of(pass.known);
    if (rank + 1 < equal || k + 1 >= samples->count)
        return;
    next = (struct next_pass){.above = *at, .next = INFINITY};
    each_sample(samples, find_next, &next);
    *after = next.next;
}

static stk_status percentile_range(const stki_samples *samples, const double *percents, stki_qrange *range,
                                   stk_error *err)
{
    int64_t *counts = stki_zalloc_array(DIGITS, sizeof *counts);
    double *found[2] = {&range->low, &range->high};

    if (!counts)
        return stki_fail_memory(err, DIGITS * (int64_t)sizeof *counts, "percentiles");
    for (int i = 0; i < 2; i++) {
        double place = percents[i] / 100 * (double)(samples->count - 1), at, after;
        int64_t k = (int64_t)place;
        select_pair(samples, counts, k, &at, &after);
        *found[i] = at + (place - (double)k) * (after - at);
    }
    stki_free(counts);
    return STK_OK;
}

/* ---- histogram ---- */

struct bin_pass {
    int64_t *counts, bins;
    double low, width;
};

static void count_bins(void *context, const double *values, int64_t n, int64_t channel, int64_t channel_step)
{
    struct bin_pass *pass = context;

    (void)channel, (void)channel_step;
    for (int64_t i = 0; i < n; i++) {
        double place = (values[i] - pass->low) / pass->width;
        pass->counts[place >= (double)pass->bins ? pass->bins - 1 : (int64_t)place]++;
    }
}

/* The value at a percentile of the histogram, interpolated linearly within its bin. */
static double read_off(const struct bin_pass *pass, double percent, int64_t total, double high)
{
    double goal = percent / 100 * (double)total;
    int64_t before = 0;

    for (int64_t k = 0; k < pass->bins; k++) {
        int64_t here = pass->counts[k];
        if ((double)(before + here) >= goal)
            return pass->low + pass->width * (here ? (double)k + (goal - (double)before) / (double)here : (double)k);
        before += here;
    }
    return high;
}

static stk_status histogram_range(const stki_samples *samples, int64_t bins, const double *percents, stki_qrange whole,
                                  stki_qrange *range, stk_error *err)
{
    struct bin_pass pass = {.bins = bins, .low = whole.low, .width = (whole.high - whole.low) / (double)bins};

    if (!(pass.width > 0)) { /* all equal, or too close together for the number of bins */
        *range = whole;
        return STK_OK;
    }
    pass.counts = stki_zalloc_array(bins, sizeof *pass.counts);
    if (!pass.counts)
        return stki_fail_memory(err, bins, "the bins of a histogram");
    each_sample(samples, count_bins, &pass);
    range->low = read_off(&pass, percents[0], samples->count, whole.high);
    range->high = read_off(&pass, percents[1], samples->count, whole.high);
    stki_free(pass.counts);
    return STK_OK;
}

/* ---- the public calls ---- */

/* bins 0: exact. */
static stk_status from_percents(const stk_tensor *tensor, stk_qdtype qdtype, stk_qscheme scheme, int64_t bins,
                                const double *percents, stk_quant **out, stk_error *err)
{
    stki_samples samples;
    stki_qrange whole, range = {0};
    stk_status status = stki_quant_check(qdtype, scheme, err);

    if (status != STK_OK)
        return status;
    if (!(percents[0] >= 0 && percents[0] <= percents[1] && percents[1] <= 100))
        return stki_fail(err, STK_E_BAD_ARG, "percentiles %g and %g: must be ascending and inside 0 to 100",
                         percents[0], percents[1]);
    status = begin_samples(&samples, tensor, STK_QUANT_PER_TENSOR, err);
    if (status != STK_OK)
        return status;
    status = range_of_samples(&samples, &whole, err);
    if (status == STK_OK)
        status = bins ? histogram_range(&samples, bins, percents, whole, &range, err)
                      : percentile_range(&samples, percents, &range, err);
    status =
        status != STK_OK ? status : stki_quant_from_ranges(qdtype, scheme, STK_QUANT_PER_TENSOR, 1, &range, out, err);
    end_samples(&samples);
    return status;
}

stk_status stk_quant_percentile(const stk_tensor *samples, stk_qdtype qdtype, stk_qscheme scheme, double low,
                                double high, stk_quant **out, stk_error *err)
{
    STKI_PROFILE("quant_percentile");
    return from_percents(samples, qdtype, scheme, 0, (const double[]){low, high}, out, err);
}

stk_status stk_quant_histogram(const stk_tensor *samples, stk_qdtype qdtype, stk_qscheme scheme, int64_t bins,
                               double low, double high, stk_quant **out, stk_error *err)
{
    STKI_PROFILE("quant_histogram");
    if (bins < 1)
        return stki_fail(err, STK_E_BAD_ARG, "%" PRId64 " bins: must be at least 1", bins);
    return from_percents(samples, qdtype, scheme, bins, (const double[]){low, high}, out, err);
}
