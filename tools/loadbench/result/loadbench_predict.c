/* loadbench_predict.c: which changes are worthwhile, and how they would affect the rate according to the stage times of
 * the run (loadbench_foresee.h). Predictions never exceed the processors available to this process and the limits of
 * memory and disk. */
#include "loadbench_predict.h"
#include "loadbench_foresee.h"
#include "loadbench_result.h"
#include "loadbench_stop.h"
#include "loadbench_table.h"
#include "text_json.h"
#include <math.h>
#include <stdarg.h>
#include <string.h>

/* Maximum median deviation of the repeats, relative to their median; with more, changes of a few percent cannot be
 * measured. */
#define MOST_DEVIATION 0.15

/* Adds a prediction for an assignment. `factor`: predicted ratio of the rates; 0: unknown. */
static void STK_PRINTF(4, 5) add(struct lb_predictions *out, double now, double factor, const char *format, ...)
{
    struct lb_prediction *one = &out->each[out->count];
    va_list args;

    if (factor <= 0 || out->count == LB_PREDICTIONS)
        return;
    *one = (struct lb_prediction){.rate = now * factor, .now = now};
    va_start(args, format);
    vsnprintf(one->set, sizeof one->set, format, args);
    va_end(args);
    out->count++;
}

static void predict_workers(const struct lb_shares *shares, const struct lb_verdict *verdict, double now,
                            struct lb_predictions *out)
{
    struct lb_model changed = lb_foresee_model(shares);
    const double alone = lb_foresee_inline(shares);

    changed.workers++;
    if (verdict->by_handing_over && alone > 1 + LB_SAME) /* with more threads, there would be more hand-overs */
        add(out, now, alone, "loader.num_workers=0");
    else
        add(out, now, lb_foresee(shares, &changed), "loader.num_workers=%d", changed.workers);
}

/* If the model predicts no gain from twice as many slots, the real rate can be much lower, because the slots may no
 * longer fit in the last-level cache. No number is given in that case. */
static void doubt_cache(const struct lb_result *result, struct lb_prediction *one)
{
    const int64_t bytes = result->runs[0].stats.slot_bytes, cache = result->machine.cache_bytes;

    if (bytes > cache || 2 * bytes <= cache || one->rate > 1.05 * one->now)
        return;
    one->rate = 0;
    snprintf(one->missing, sizeof one->missing,
             "cannot be predicted, because the slots would no longer fit in the cache of %sB", LB_SHORT((double)cache));
}

/* The median absolute deviation of the repeats, relative to their median. */
static double typical_deviation(const struct lb_result *result)
{
    const double middle = lb_result_samples_per_s(result);
    double values[LB_REPEATS];
    int count = 0;

    for (; count < result->run_count && count < LB_REPEATS; count++)
        values[count] = fabs(lb_ratio(lb_figure_value(&lb_figures[0], &result->runs[count]), middle) - 1);
    return lb_summarize(values, count).median;
}

void lb_predict(const struct lb_result *result, struct lb_predictions *out)
{
    const struct lb_shares shares = lb_result_shares(result);
    const double now = lb_result_samples_per_s(result);
    struct lb_model changed = lb_foresee_model(&shares);
    struct lb_verdict verdict;

    *out = (struct lb_predictions){.count = 0};
    lb_result_verdict(result, &verdict);
    if (verdict.bottleneck == LB_BOTTLENECK_UNKNOWN || shares.batches < 1)
        return;
    if (typical_deviation(result) > MOST_DEVIATION) {
        snprintf(out->missing, sizeof out->missing,
                 "half of the repeats differ from their median by %.0f %% or more: the effect of a change cannot be "
                 "predicted",
                 100 * typical_deviation(result));
        return;
    }
    out->confidence = verdict.confidence;
    memcpy(out->doubt, verdict.doubt, sizeof out->doubt);
    predict_workers(&shares, &verdict, now, out);
    if (shares.workers > 0) {
        const int before = out->count;
        add(out, now, lb_foresee_deeper(&shares), "loader.prefetch=%d", 2 * changed.slots);
        if (out->count > before)
            doubt_cache(result, &out->each[before]);
    }
    if (shares.random)
        add(out, now, lb_foresee_unpacked_once(&shares), "loader.order=block");
    if (changed.device_slots > 0) {
        changed.device_slots *= 2;
        add(out, now, lb_foresee(&shares, &changed), "loader.device_prefetch=%d", changed.device_slots);
    }
}

/* Measures the rate of one run; 0: it failed with *failure. */
static stk_status run_once(const char *path, const char *const *sets, int set_count, const char *set, double *rate,
                           char *failure, size_t size)
{
    const char *const own[] = {"bench.limit=false", "bench.repeats=1", set, NULL}, *const none[] = {NULL};
    struct lb_point *point;
    stk_error err;
    const stk_status status = lb_point_measure(path, none, sets, set_count, own, &point, &err);

    *rate = 0;
    if (status == STK_OK)
        *rate = lb_result_samples_per_s(&point->result);
    else if (status != STK_END)
        snprintf(failure, size, "%.*s", (int)size - 1, err.message);
    lb_point_destroy(point);
    return status;
}

void lb_predict_check(const char *path, const char *const *sets, int set_count, int rounds,
                      struct lb_predictions *predictions)
{
    double now[LB_REPEATS], then[LB_PREDICTIONS][LB_REPEATS], gains[LB_REPEATS];
    char failure[256] = "";
    int done = 0;

    for (; done < rounds && done < LB_REPEATS; done++) {
        stk_status status = run_once(path, sets, set_count, NULL, &now[done], failure, sizeof failure);
        for (int i = 0; i < predictions->count && status != STK_END; i++) {
            struct lb_prediction *one = &predictions->each[i];
            status = run_once(path, sets, set_count, one->set, &then[i][done], one->failure, sizeof one->failure);
        }
        if (status == STK_END || lb_stop_asked)
            break; /* an incomplete round cannot be compared */
    }
    for (int i = 0; i < predictions->count && done > 0; i++) {
        struct lb_prediction *one = &predictions->each[i];
        for (int k = 0; k < done; k++)
            gains[k] = lb_ratio(then[i][k], now[k]);
        const struct lb_summary gain = lb_summarize(gains, done);
        if (failure[0] && !one->failure[0])
            memcpy(one->failure, failure, sizeof failure);
        one->checked = true;
        one->beside = lb_summarize(now, done).median;
        one->measured = one->failure[0] ? 0 : one->beside * gain.median;
        one->spread = lb_ratio(gain.high - gain.low, gain.median);
    }
}

/* Difference between measured and predicted gain, in percent. */
static double error_percent(const struct lb_prediction *one)
{
    return 100 * (lb_ratio(lb_ratio(one->measured, one->beside), lb_ratio(one->rate, one->now)) - 1);
}

static double percent(double now, double then)
{
    return 100 * (lb_ratio(then, now) - 1);
}

const char *lb_gain_text(char *buffer, int size, double now, double then)
{
    if (then >= 10 * now && now > 0)
        snprintf(buffer, (size_t)size, "%s times", LB_SHORT(then / now));
    else
        snprintf(buffer, (size_t)size, "%+.0f %%", percent(now, then));
    return buffer;
}

void lb_predict_print(const struct lb_predictions *predictions, FILE *to)
{
    if (predictions->missing[0])
        fprintf(to, "predicted  nothing: %s\n", predictions->missing);
    for (int i = 0; i < predictions->count; i++) {
        const struct lb_prediction *one = &predictions->each[i];
        const double gain = percent(one->now, one->rate);

        fprintf(to, "%s %-24s", i == 0 ? "predicted " : "          ", one->set);
        if (one->missing[0])
            fprintf(to, " %s", one->missing);
        else if (fabs(gain) < 100 * LB_SAME)
            fputs(" about the same", to);
        else
            fprintf(to, " %s samples/s (%s)", LB_NUMBER(one->rate), LB_GAIN(one->now, one->rate));
        if (one->failure[0])
            fprintf(to, "; measured: %s", one->failure);
        else if (one->checked && one->missing[0])
            fprintf(to, "; measured %s (%s)", LB_NUMBER(one->measured), LB_GAIN(one->beside, one->measured));
        else if (one->checked)
            fprintf(to, "; measured %s (%s), the prediction is off by %.0f %%%s", LB_NUMBER(one->measured),
                    LB_GAIN(one->beside, one->measured), fabs(error_percent(one)),
                    fabs(error_percent(one)) <= 100 * one->spread ? " (within the spread of the runs)" : "");
        fputc('\n', to);
    }
    if (predictions->count > 0 && predictions->confidence != LB_CONFIDENCE_HIGH)
        fprintf(to, "           (confidence: %s%s%s)\n", lb_confidence_words[predictions->confidence],
                predictions->doubt[0] ? ": " : "", predictions->doubt);
}

json_t *lb_predict_json(const struct lb_predictions *predictions)
{
    json_t *list = json_array();

    for (int i = 0; i < predictions->count; i++) {
        const struct lb_prediction *one = &predictions->each[i];
        json_t *json =
            json_pack("{s:s, s:s}", "set", one->set, "confidence", lb_confidence_words[predictions->confidence]);
        if (one->missing[0]) {
            json_object_set_new(json, "missing", stki_text_json(one->missing));
        } else {
            json_object_set_new(json, "predicted_samples_per_s", json_real(one->rate));
            json_object_set_new(json, "predicted_gain_percent", json_real(percent(one->now, one->rate)));
        }
        if (one->failure[0])
            json_object_set_new(json, "failure", stki_text_json(one->failure));
        if (one->measured > 0) {
            json_object_set_new(json, "measured_samples_per_s", json_real(one->measured));
            json_object_set_new(json, "beside_samples_per_s", json_real(one->beside));
            json_object_set_new(json, "measured_gain_percent", json_real(percent(one->beside, one->measured)));
            json_object_set_new(json, "measured_spread_percent", json_real(100 * one->spread));
            if (!one->missing[0])
                json_object_set_new(json, "error_percent", json_real(error_percent(one)));
        }
        json_array_append_new(list, json);
    }
    return list;
}
