/* calibrate.c: see calibrate.h. */
#include "calibrate.h"
#include "allocate.h"
#include "error.h"
#include "float_control.h"
#include <math.h>
#include <stdlib.h>

const char *const stki_calibration_words[] = {"minmax", "percentile", "mse", NULL};

/* ---- percentiles ---- */

/* Returns element k in sorted order. The elements of a bin are assumed to be evenly spaced. */
static double element(const stki_bins *bins, int64_t k, double min, double max)
{
    int64_t before = 0, i = 0;
    const stki_bin *bin;
    double at;

    for (; i < bins->count - 1 && before + (int64_t)bins->bin[i].count <= k; i++)
        before += (int64_t)bins->bin[i].count;
    bin = &bins->bin[i];
    at = bin->low + (bin->high - bin->low) * (((double)(k - before) + 0.5) / (double)bin->count);
    return at < min ? min : at > max ? max : at;
}

/* Returns the quantile at `place` in [0, total - 1], linearly interpolated between neighbors and inside a bin. */
static double value_at(const stki_bins *bins, double place, double min, double max)
{
    const int64_t k = (int64_t)place, last = bins->total - 1;
    const double share = place - (double)k;
    double here, next;

    if (place <= 0)
        return min;
    if (k >= last)
        return max;
    here = element(bins, k, min, max);
    next = element(bins, k + 1, min, max);
    return here + (next - here) * share;
}

static int by_middle(const void *a, const void *b)
{
    const stki_bin *p = a, *q = b;

    return p->middle < q->middle ? -1 : p->middle > q->middle;
}

/* Computes the bins of the absolute values. */
static stk_status fold(const stki_bins *bins, stki_bins *out, stk_error *err)
{
    *out = (stki_bins){.count = bins->count, .total = bins->total};
    out->bin = stki_zalloc_array(bins->count, sizeof *out->bin);
    if (!out->bin)
        return stki_fail_memory(err, bins->count * (int64_t)sizeof *out->bin, "a histogram");
    for (int64_t i = 0; i < bins->count; i++) {
        const stki_bin *bin = &bins->bin[i];
        const bool negative = bin->middle < 0;

        out->bin[i] = (stki_bin){.low = negative ? -bin->high : bin->low,
                                 .high = negative ? -bin->low : bin->high,
                                 .middle = fabs(bin->middle),
                                 .count = bin->count};
    }
    qsort(out->bin, (size_t)out->count, sizeof *out->bin, by_middle);
    return STK_OK;
}

static stk_status percentile(const stki_calibrate_opts *opts, const stki_bins *bins, double min, double max,
                             stki_qrange *out, stk_error *err)
{
    const double last = (double)(bins->total - 1), rest = (100 - opts->percent) / 100;
    stki_bins folded;
    stk_status status;
    double at;

    if (opts->scheme != STK_QUANT_SYMMETRIC) {
        *out = (stki_qrange){.low = value_at(bins, rest / 2 * last, min, max),
                             .high = value_at(bins, (1 - rest / 2) * last, min, max)};
        return STK_OK;
    }
    status = fold(bins, &folded, err);
    if (status != STK_OK)
        return status;
    at = value_at(&folded, (1 - rest) * last, 0, -min > max ? -min : max);
    *out = (stki_qrange){.low = -at, .high = at};
    stki_bins_fini(&folded);
    return STK_OK;
}

/* ---- mean squared error ---- */

typedef struct search {
    const stki_calibrate_opts *opts;
    const stki_bins *bins;
    double min, max; /* range of the elements */
    double best_error;
    stki_qrange best;
} search;

/* Returns the sum of squared errors of the bin centers, in a fixed order. */
static double error_of(const search *s, stki_qrange range)
{
    const double low = (double)stki_quant_min(s->opts->qdtype), high = (double)stki_quant_max(s->opts->qdtype);
    double sum = 0, scale, zero;
    int64_t zero_point;
    float inverse;

    stki_quant_parameters(s->opts->qdtype, s->opts->scheme, range, &scale, &zero_point);
    zero = (double)zero_point;
    inverse = 1.0f / (float)scale;
    for (int64_t i = 0; i < s->bins->count; i++) {
        const double middle = s->bins->bin[i].middle, x = middle < s->min ? s->min : middle > s->max ? s->max : middle;
        const double level = (double)rintf((float)x * inverse) + zero;
        const double kept = level < low ? low : level > high ? high : level;
        const double error = x - (kept - zero) * scale;

        sum += (double)s->bins->bin[i].count * (error * error);
    }
    return sum;
}

/* Keeps the best range, the first one if several are equally good; candidates are tried starting from the widest. */
static void try_range(search *s, stki_qrange range)
{
    const double error = error_of(s, range);

    if (error < s->best_error) {
        s->best_error = error;
        s->best = range;
    }
}

enum { COARSE = 160, PER_OCTAVE = 16, FINE = 32 };

/* Returns 2^(-j/16), from a table, because math libraries differ in the last bit. */
static double factor_of(int j)
{
    static const double inside[PER_OCTAVE] = {
        0x1.0000000000000p+0, 0x1.ea4afa2a490dap-1, 0x1.d5818dcfba487p-1, 0x1.c199bdd85529cp-1,
        0x1.ae89f995ad3adp-1, 0x1.9c49182a3f090p-1, 0x1.8ace5422aa0dbp-1, 0x1.7a11473eb0187p-1,
        0x1.6a09e667f3bcdp-1, 0x1.5ab07dd485429p-1, 0x1.4bfdad5362a27p-1, 0x1.3dea64c123422p-1,
        0x1.306fe0a31b715p-1, 0x1.2387a6e756238p-1, 0x1.172b83c7d517bp-1, 0x1.0b5586cf9890fp-1};

    return ldexp(inside[j % PER_OCTAVE], -(j / PER_OCTAVE));
}

/* Shrinks the chosen ends of the best range: by 160 factors 2^(-j/16), then in 32 equal steps between the neighbors of
 * the best factor. */
static void shrink(search *s, bool low, bool high)
{
    const stki_qrange from = s->best;
    double wide = 1, narrow = factor_of(1), before = s->best_error;

    for (int j = 1; j < COARSE; j++) {
        const double factor = factor_of(j);

        try_range(s, (stki_qrange){low ? from.low * factor : from.low, high ? from.high * factor : from.high});
        if (s->best_error < before) {
            before = s->best_error;
            wide = factor_of(j - 1);
            narrow = factor_of(j + 1);
        }
    }
    for (int i = 1; i < FINE; i++) {
        const double factor = wide + (narrow - wide) * ((double)i / FINE);

        try_range(s, (stki_qrange){low ? from.low * factor : from.low, high ? from.high * factor : from.high});
    }
}

static void mse(search *s, double min, double max)
{
    stki_qrange whole = {.low = min < 0 ? min : 0, .high = max > 0 ? max : 0};

    if (s->opts->scheme == STK_QUANT_SYMMETRIC) {
        whole.high = -whole.low > whole.high ? -whole.low : whole.high;
        whole.low = -whole.high;
    }
    try_range(s, whole);
    shrink(s, true, true);
    if (s->opts->scheme == STK_QUANT_SYMMETRIC)
        return;
    shrink(s, false, true);
    shrink(s, true, false);
}

stk_status stki_calibrate(const stki_calibrate_opts *opts, const stki_bins *bins, double min, double max,
                          stki_qrange *out, double *error, stk_error *err)
{
    search s = {
        .opts = opts, .bins = bins, .min = min, .max = max, .best_error = INFINITY, .best = {.low = min, .high = max}};
    const stki_float_control control = stki_float_enter();
    stk_status status = STK_OK;

    if (opts->method == STKI_CALIBRATE_PERCENTILE)
        status = percentile(opts, bins, min, max, &s.best, err);
    else if (opts->method == STKI_CALIBRATE_MSE)
        mse(&s, min, max);
    if (status == STK_OK)
        s.best_error = error_of(&s, s.best);
    stki_float_leave(control);
    *out = s.best;
    *error = s.best_error / (double)bins->total;
    return status;
}
