/* quant_order.c: ranges from percentiles, exact and by histogram.
 *
 * The exact ones need single elements of the sorted samples, but nothing is sorted: an element's bits become a key of
 * 64 bits that orders like the number, and each pass counts 16 more of its bits among the elements that agree with what
 * is known already. Four passes find any place in the order with half a megabyte of counters, whatever the size.
 */
#include "allocate.h"
#include "error.h"
#include "profile_scope.h"
#include "quant_internal.h"
#include "quant_samples.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- the k-th smallest ------------------------------------------------------------------------------------------- */

enum { DIGIT_BITS = 16, DIGITS = 1 << DIGIT_BITS };

static inline uint64_t key_of(double x)
{
    uint64_t bits;

    x += 0.0; /* -0 counts as 0 */
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
    uint64_t known; /* upper bits of the key that is looked for, all above `shift` + DIGIT_BITS */
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

/* Elements k and k + 1 (the last one twice) of the sorted samples. */
static void select_pair(const stki_samples *samples, int64_t *counts, int64_t k, double *at, double *after)
{
    struct digit_pass pass = {.counts = counts};
    struct next_pass next;
    int64_t rank = k, equal = 0;

    for (pass.shift = 64 - DIGIT_BITS; pass.shift >= 0; pass.shift -= DIGIT_BITS) {
        uint64_t digit = 0;
        memset(counts, 0, DIGITS * sizeof *counts);
        stki_samples_each(samples, count_digits, &pass);
        while (rank >= counts[digit])
            rank -= counts[digit++];
        equal = counts[digit];
        pass.known |= digit << pass.shift;
    }
    *at = *after = value_of(pass.known);
    if (rank + 1 < equal || k + 1 >= samples->count)
        return;
    next = (struct next_pass){.above = *at, .next = INFINITY};
    stki_samples_each(samples, find_next, &next);
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

/* ---- histogram --------------------------------------------------------------------------------------------------- */

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

/* Where the running count passes its share of all, linear inside that bin. */
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

    if (!(pass.width > 0)) { /* all equal, or so close that a bin has no width */
        *range = whole;
        return STK_OK;
    }
    pass.counts = stki_zalloc_array(bins, sizeof *pass.counts);
    if (!pass.counts)
        return stki_fail_memory(err, bins, "the bins of a histogram");
    stki_samples_each(samples, count_bins, &pass);
    range->low = read_off(&pass, percents[0], samples->count, whole.high);
    range->high = read_off(&pass, percents[1], samples->count, whole.high);
    stki_free(pass.counts);
    return STK_OK;
}

/* ---- the public calls -------------------------------------------------------------------------------------------- */

/* bins 0: exact. */
static stk_status from_percents(const stk_tensor *tensor, stk_qdtype qdtype, stk_qscheme scheme, int64_t bins,
                                const double *percents, stk_quant **out, stk_error *err)
{
    stki_samples samples;
    stki_qrange whole, range = {0};
    stk_status status = stki_quant_check(qdtype, scheme, err);

    if (status)
        return status;
    if (!(percents[0] >= 0 && percents[0] <= percents[1] && percents[1] <= 100))
        return stki_fail(err, STK_E_BAD_ARG, "percentiles %g and %g: must be rising and inside 0 to 100", percents[0],
                         percents[1]);
    status = stki_samples_begin(&samples, tensor, STK_QUANT_PER_TENSOR, err);
    if (status)
        return status;
    status = stki_samples_range(&samples, &whole, err);
    if (!status)
        status = bins ? histogram_range(&samples, bins, percents, whole, &range, err)
                      : percentile_range(&samples, percents, &range, err);
    status = status ? status : stki_quant_from_ranges(qdtype, scheme, STK_QUANT_PER_TENSOR, 1, &range, out, err);
    stki_samples_end(&samples);
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
