/* stats_report.c: converts a tally to the content of NAME.stats.json (format in docs/reference/statistics.md). The
 * order of keys is fixed; lists have one entry per channel if results are per channel. */
#include "allocate.h"
#include "error.h"
#include "float_control.h"
#include "stats_options.h"
#include <math.h>
#include <stoker/version.h>
#include <string.h>

enum { FORMAT = 1, LENGTH_BINS = 64, BYTE_BINS = 256, MOST_NUMBERS = 20000 };

typedef struct report {
    const stki_tally *tally;
    const stki_tally_form *form;
    const stki_stats_opts *opts;
    json_t *map;
    stki_numbers *channel, all; /* [channels] */
    stk_error *err;
    stk_status status;
} report;

static stk_status no_memory(stk_error *err)
{
    return stki_fail_memory(err, 4096, "a report of statistics");
}

static void set(report *r, json_t *map, const char *key, json_t *value)
{
    if (json_object_set_new(map, key, value) != 0 && r->status == STK_OK)
        r->status = no_memory(r->err);
}

static void append(report *r, json_t *list, json_t *value)
{
    if (json_array_append_new(list, value) != 0 && r->status == STK_OK)
        r->status = no_memory(r->err);
}

/* ---- numbers ---- */

static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *whole(stki_i128 x)
{
    return x >= INT64_MIN && x <= INT64_MAX ? json_integer((json_int_t)x) : json_real((double)x);
}

enum member { MEAN, STD, MIN, MAX };

static json_t *member_of(const stki_numbers *n, enum member which)
{
    if (!n->count)
        return json_null();
    if (n->whole && (which == MIN || which == MAX))
        return whole(which == MIN ? n->least : n->most);
    return number(which == MEAN ? n->mean : which == STD ? n->std : which == MIN ? n->min : n->max);
}

static void set_member(report *r, json_t *map, const char *key, const stki_numbers *numbers, int64_t count, bool list,
                       enum member which)
{
    json_t *values;

    if (!list) {
        set(r, map, key, member_of(numbers, which));
        return;
    }
    values = json_array();
    for (int64_t i = 0; i < count; i++)
        append(r, values, member_of(&numbers[i], which));
    set(r, map, key, values);
}

static bool by_channel(const report *r)
{
    return r->form->channels > 1;
}

static void say_numbers(report *r)
{
    const stki_numbers *n = by_channel(r) ? r->channel : &r->all;

    set(r, r->map, "count", json_integer(r->all.count));
    set(r, r->map, "zeros", json_integer(r->all.zeros));
    if (!r->all.whole) {
        set(r, r->map, "nan", json_integer(r->all.nan));
        set(r, r->map, "infinite", json_integer(r->all.infinite[0] + r->all.infinite[1]));
    }
    set_member(r, r->map, "mean", n, r->form->channels, by_channel(r), MEAN);
    set_member(r, r->map, "std", n, r->form->channels, by_channel(r), STD);
    if (r->all.whole)
        set(r, r->map, "scale", json_integer(1));
    set_member(r, r->map, "min", n, r->form->channels, by_channel(r), MIN);
    set_member(r, r->map, "max", n, r->form->channels, by_channel(r), MAX);
    if (by_channel(r)) {
        json_t *tensor = json_object();

        set_member(r, tensor, "mean", &r->all, 1, false, MEAN);
        set_member(r, tensor, "std", &r->all, 1, false, STD);
        set_member(r, tensor, "min", &r->all, 1, false, MIN);
        set_member(r, tensor, "max", &r->all, 1, false, MAX);
        set(r, r->map, "tensor", tensor);
    }
}

/* ---- histograms ---- */

/* Returns the bin of x among `count` equal-width bins from low to high. The last bin includes its upper edge, as in
 * numpy.histogram. */
static int64_t place_of(double x, double low, double high, int64_t count)
{
    const double place = (x - low) / (high - low) * (double)count;
    int64_t at;

    if (!(high > low) || !(place > 0)) /* all values are equal, or the range overflows double */
        return 0;
    at = place >= (double)count ? count - 1 : (int64_t)place;
    if (at > 0 && x < low + (double)at * ((high - low) / (double)count))
        at--;
    else if (at < count - 1 && x >= low + (double)(at + 1) * ((high - low) / (double)count))
        at++;
    return at;
}

static json_t *histogram(report *r, const stki_bins *bins, double low, double high, int64_t count)
{
    json_t *map = json_object(), *list = json_array();
    uint64_t *sums = stki_zalloc_array(count, sizeof *sums);

    if (!sums && r->status == STK_OK)
        r->status = no_memory(r->err);
    for (int64_t i = 0; sums && i < bins->count; i++)
        sums[place_of(bins->bin[i].middle, low, high, count)] += bins->bin[i].count;
    for (int64_t i = 0; sums && i < count; i++)
        append(r, list, json_integer((json_int_t)sums[i]));
    stki_free(sums);
    set(r, map, "low", number(low));
    set(r, map, "high", number(high));
    set(r, map, "counts", list);
    return map;
}

static json_t *histogram_of(report *r, int64_t channel, const stki_numbers *n)
{
    const bool bytes = r->opts->histogram < 0;
    const double first = r->form->dtype == STK_I8 ? -128 : 0;
    stki_bins bins;
    json_t *map;

    if (r->status == STK_OK)
        r->status = stki_counts_bins(&r->tally->counts, channel, &bins, r->err);
    if (r->status != STK_OK)
        return json_null();
    map = bytes      ? histogram(r, &bins, first, first + BYTE_BINS, BYTE_BINS)
          : n->count ? histogram(r, &bins, n->min, n->max, r->opts->histogram)
                     : json_null();
    stki_bins_fini(&bins);
    return map;
}

static void say_histogram(report *r)
{
    const bool auto_bytes = r->opts->histogram < 0 && (r->form->dtype == STK_U8 || r->form->dtype == STK_I8);
    const int64_t bins = auto_bytes ? BYTE_BINS : r->opts->histogram;
    json_t *list;

    if (bins <= 0)
        return;
    if (!by_channel(r) || r->form->channels * bins > MOST_NUMBERS) {
        set(r, r->map, "histogram", histogram_of(r, -1, &r->all));
        return;
    }
    list = json_array();
    for (int64_t c = 0; c < r->form->channels; c++)
        append(r, list, histogram_of(r, c, &r->channel[c]));
    set(r, r->map, "histogram", list);
}

/* ---- classes and lengths ---- */

static void say_classes(report *r)
{
    json_t *map, *values, *counts;
    stki_value_count *list;

    if (!r->form->classes || r->status != STK_OK ||
        (r->status = stki_values_list(&r->tally->values, &list, r->err)) != STK_OK)
        return;
    map = json_object();
    values = json_array();
    counts = json_array();
    for (int64_t i = 0; i < r->tally->values.used; i++) {
        append(r, values, json_integer(list[i].value));
        append(r, counts, json_integer(list[i].count));
    }
    stki_free(list);
    set(r, map, "values", values);
    set(r, map, "counts", counts);
    set(r, r->map, "classes", map);
}

static void say_lengths(report *r)
{
    stki_numbers n;
    stki_bins bins;
    json_t *map;

    if (!r->form->ragged || r->status != STK_OK)
        return;
    stki_moments_numbers(&r->tally->lengths, true, &n);
    r->status = stki_counts_bins(&r->tally->length_counts, -1, &bins, r->err);
    if (r->status != STK_OK)
        return;
    map = json_object();
    set_member(r, map, "mean", &n, 1, false, MEAN);
    set_member(r, map, "std", &n, 1, false, STD);
    set_member(r, map, "min", &n, 1, false, MIN);
    set_member(r, map, "max", &n, 1, false, MAX);
    if (n.count)
        set(r, map, "histogram", histogram(r, &bins, n.min, n.max, LENGTH_BINS));
    stki_bins_fini(&bins);
    set(r, r->map, "lengths", map);
}

/* ---- calibration ---- */

typedef struct calibrated {
    double *scale, *low, *high, *error;
    int64_t *zero;
} calibrated;

static stk_status calibrate_one(report *r, int method, int64_t at, int64_t channel, const stki_numbers *n,
                                calibrated *out)
{
    const stki_calibrate_opts opts = {.method = method,
                                      .qdtype = stki_stats_qdtype(r->opts),
                                      .scheme = stki_stats_scheme(r->opts),
                                      .percent = r->opts->percentile};
    stki_bins bins = {0};
    stki_qrange range = {0, 0};
    stki_float_control control;
    stk_status status = STK_OK;

    out->error[at] = (double)NAN;
    if (n->count && !r->tally->counts.page_of) { /* only the extremes were counted, which is enough */
        range = (stki_qrange){n->min, n->max};
    } else if (n->count) { /* a channel without elements has the range [0, 0] */
        status = stki_counts_bins(&r->tally->counts, channel, &bins, r->err);
        if (status == STK_OK)
            status = stki_calibrate(&opts, &bins, n->min, n->max, &range, &out->error[at], r->err);
        stki_bins_fini(&bins);
    }
    control = stki_float_enter();
    stki_quant_parameters(opts.qdtype, opts.scheme, range, &out->scale[at], &out->zero[at]);
    stki_float_leave(control);
    out->low[at] = range.low;
    out->high[at] = range.high;
    return status;
}

static json_t *numbers_of(report *r, const double *values, int64_t count, bool list)
{
    json_t *array;

    if (!list)
        return number(values[0]);
    array = json_array();
    for (int64_t i = 0; i < count; i++)
        append(r, array, number(values[i]));
    return array;
}

/* Writes a single zero point if all are equal, because loaders only accept one. */
static json_t *zeros_of(report *r, const int64_t *zero, int64_t count)
{
    bool same = true;
    json_t *array;

    for (int64_t i = 1; i < count; i++)
        same = same && zero[i] == zero[0];
    if (same)
        return json_integer(zero[0]);
    array = json_array();
    for (int64_t i = 0; i < count; i++)
        append(r, array, json_integer(zero[i]));
    return array;
}

static json_t *method_map(report *r, int method, const calibrated *found, int64_t count)
{
    json_t *map = json_object();
    const bool list = count > 1;

    set(r, map, "dtype", json_string(stki_stats_qdtype(r->opts) == STK_QINT8 ? "int8" : "uint8"));
    set(r, map, "symmetric", json_boolean(stki_stats_scheme(r->opts) == STK_QUANT_SYMMETRIC));
    if (method == STKI_CALIBRATE_PERCENTILE)
        set(r, map, "percentile", number(r->opts->percentile));
    set(r, map, "scale", numbers_of(r, found->scale, count, list));
    set(r, map, "zero_point", zeros_of(r, found->zero, count));
    set(r, map, "low", numbers_of(r, found->low, count, list));
    set(r, map, "high", numbers_of(r, found->high, count, list));
    if (r->tally->counts.page_of)
        set(r, map, "mean_squared_error", numbers_of(r, found->error, count, list));
    return map;
}

static void say_method(report *r, json_t *quantize, int method)
{
    const bool each = by_channel(r) && stki_stats_calibrates_channels(r->opts);
    const int64_t count = each ? r->form->channels : 1;
    calibrated found = {.scale = stki_zalloc_array(4 * count, sizeof(double)),
                        .zero = stki_zalloc_array(count, sizeof(int64_t))};

    if (!found.scale || !found.zero) {
        r->status = no_memory(r->err);
    } else {
        found.low = found.scale + count;
        found.high = found.low + count;
        found.error = found.high + count;
        for (int64_t c = 0; c < count && r->status == STK_OK; c++)
            r->status = calibrate_one(r, method, c, each ? c : -1, each ? &r->channel[c] : &r->all, &found);
        if (r->status == STK_OK)
            set(r, quantize, stki_calibration_words[method], method_map(r, method, &found, count));
    }
    stki_free(found.scale);
    stki_free(found.zero);
}

static void say_calibration(report *r)
{
    json_t *quantize;

    if (!r->opts->methods || r->status != STK_OK)
        return;
    if (!r->all.count) {
        r->status = stki_fail(r->err, STK_E_EMPTY_REDUCE, "calibration: no finite element");
        return;
    }
    quantize = json_object();
    for (int method = 0; method < STKI_CALIBRATIONS && r->status == STK_OK; method++)
        if (r->opts->methods & 1U << method)
            say_method(r, quantize, method);
    set(r, r->map, "quantize", quantize);
}

/* ---- whole report ---- */

static void collect(report *r)
{
    const int64_t count = r->form->channels;

    r->channel = stki_zalloc_array(count, sizeof *r->channel);
    if (!r->channel) {
        r->status = no_memory(r->err);
        return;
    }
    for (int64_t c = 0; by_channel(r) && c < count && r->status == STK_OK; c++)
        r->status = stki_tally_numbers(r->tally, r->form, c, &r->channel[c], r->err);
    if (r->status == STK_OK)
        r->status = stki_tally_numbers(r->tally, r->form, -1, &r->all, r->err);
}

stk_status stki_stats_report(const stki_tally *tally, const stki_tally_form *form, const stki_stats_opts *opts,
                             json_t **out, stk_error *err)
{
    report r = {.tally = tally, .form = form, .opts = opts, .map = json_object(), .err = err};

    if (!r.map)
        return no_memory(err);
    if (!form->opaque)
        set(&r, r.map, "dtype", json_string(stk_dtype_long_name(form->dtype)));
    set(&r, r.map, "rows", json_integer(tally->rows));
    if (!form->opaque) {
        set(&r, r.map, "per", json_string(by_channel(&r) ? "channel" : "tensor"));
        collect(&r);
        if (r.status == STK_OK) {
            say_numbers(&r);
            say_histogram(&r);
            say_classes(&r);
            say_calibration(&r);
        }
    }
    say_lengths(&r);
    stki_free(r.channel);
    if (r.status != STK_OK) {
        json_decref(r.map);
        return r.status;
    }
    *out = r.map;
    return STK_OK;
}

json_t *stki_stats_document(int64_t rows, json_t *fields)
{
    json_t *root = json_object();

    if (!root || json_object_set_new(root, "stoker_stats", json_integer(FORMAT)) ||
        json_object_set_new(root, "version", json_string(STK_VERSION_STRING)) ||
        json_object_set_new(root, "rows", json_integer(rows)) || json_object_set(root, "fields", fields)) {
        json_decref(root);
        json_decref(fields);
        return NULL;
    }
    json_decref(fields);
    return root;
}
