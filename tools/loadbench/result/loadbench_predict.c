/* loadbench_predict.c: what is worth changing, and by how much the rate would change by the clocks of the run
 * (loadbench_foresee.h). Two limits hold whatever the model says: the processors that were there for this process, and
 * what the machine's memory gives. */
#include "loadbench_predict.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "loadbench_consumer.h"
#include "loadbench_foresee.h"
#include "loadbench_result.h"
#include "loadbench_stop.h"
#include "loadbench_table.h"
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PREAD_TIME_NS 20000000 /* of measuring a positional read */
/* `factor`: what the rate is multiplied by; 0: that cannot be foreseen. */
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

/* Processor time of this thread: what other programs take meanwhile is not in it. */
static int64_t thread_ns(void)
{
    struct timespec time;

    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0 ? (int64_t)time.tv_sec * STKI_SECOND + time.tv_nsec : 0;
}

/* Seconds that one positional read of so many bytes takes, from the page cache: of a file of its own, again and again.
 * 0: not to be measured. */
static double pread_s(int64_t bytes)
{
    enum { READS = 16 }; /* between two readings of the clock */
    const int fd = memfd_create("sample", MFD_CLOEXEC);
    void *to = stki_zalloc(bytes);
    const int64_t end = stki_now_ns() + PREAD_TIME_NS;
    bool works = fd >= 0 && to && pwrite(fd, to, (size_t)bytes, 0) == bytes;
    const int64_t begun = thread_ns();
    int count = 0;

    while (works && (count == 0 || stki_now_ns() < end))
        for (int i = 0; i < READS && works; i++, count++)
            works = pread(fd, to, (size_t)bytes, 0) == bytes;
    const int64_t took = thread_ns() - begun;
    stki_free(to);
    if (fd >= 0)
        close(fd);
    return works ? (double)took / 1e9 / count : 0;
}

/* The field whose samples are the largest, if its file is read in one of the two ways. NULL: none. */
static const struct lb_field *largest_field(const struct lb_result *result)
{
    const struct lb_field *largest = NULL;

    for (int i = 0; i < result->facts.field_count; i++) {
        const struct lb_field *field = &result->facts.fields[i];
        if ((strcmp(field->access, "mmap") == 0 || strcmp(field->access, "pread") == 0) &&
            (!largest || field->sample_bytes > largest->sample_bytes))
            largest = field;
    }
    return largest && largest->sample_bytes > 0 ? largest : NULL;
}

/* Positional reads cost a call into the system and a copy for each sample, mappings cost neither once their pages are
 * there. What has to come from the disk has to come in both ways. */
static void predict_access(const struct lb_result *result, const struct lb_shares *shares, double now,
                           struct lb_predictions *out)
{
    const struct lb_model base = lb_foresee_model(shares);
    const struct lb_field *field = largest_field(result);
    struct lb_model changed = base;

    if (!field || shares->decode + shares->inflate > shares->storage)
        return;
    const double rows = (double)shares->samples / (double)shares->batches;
    const double read_s = rows * pread_s(field->sample_bytes);
    const double storage_s = shares->storage * shares->worker_s / (double)shares->batches;
    const bool mapped = strcmp(field->access, "mmap") == 0;
    const double step_s = mapped ? read_s : -fmin(read_s, storage_s);

    if (read_s <= 0)
        return;
    changed.work_s = fmax(base.work_s + step_s, base.work_s / 100);
    changed.cpu_s = fmax(base.cpu_s + step_s, base.cpu_s / 100);
    add(out, now, lb_foresee(shares, &changed), "loader.access=%s", mapped ? "pread" : "mmap");
}

static void predict_workers(const struct lb_shares *shares, const struct lb_verdict *verdict, double now,
                            struct lb_predictions *out)
{
    struct lb_model changed = lb_foresee_model(shares);
    const double alone = lb_foresee_inline(shares);

    changed.workers++;
    if (verdict->by_handing_over && alone > 1 + LB_SAME) /* more of them would hand over more */
        add(out, now, alone, "loader.num_workers=0");
    else
        add(out, now, lb_foresee(shares, &changed), "loader.num_workers=%d", changed.workers);
}

void lb_predict(const struct lb_result *result, struct lb_predictions *out)
{
    const struct lb_shares shares = lb_result_shares(result);
    const double now = lb_result_samples_per_s(result);
    struct lb_model changed = lb_foresee_model(&shares);
    struct lb_verdict verdict;

    out->count = 0;
    lb_result_verdict(result, &verdict);
    if (verdict.binds == LB_BINDS_UNKNOWN || shares.batches < 1)
        return;
    out->confidence = verdict.confidence;
    memcpy(out->doubt, verdict.doubt, sizeof out->doubt);
    predict_workers(&shares, &verdict, now, out);
    if (shares.workers > 0)
        add(out, now, lb_foresee_deeper(&shares), "loader.prefetch=%d", 2 * changed.slots);
    if (shares.random)
        add(out, now, lb_foresee_unpacked_once(&shares), "loader.order=block");
    if (changed.device_slots > 0) {
        changed.device_slots *= 2;
        add(out, now, lb_foresee(&shares, &changed), "loader.device_prefetch=%d", changed.device_slots);
    }
    predict_access(result, &shares, now, out);
}

/* Every change, run as the config says. The limits say nothing new here. */
void lb_predict_check(const char *path, const char *const *sets, int set_count, struct lb_predictions *predictions)
{
    for (int i = 0; i < predictions->count && !lb_stop_asked; i++) {
        struct lb_prediction *one = &predictions->each[i];
        const char *const own[] = {"bench.limit=false", one->set, NULL};
        struct lb_point *point;
        stk_error err;
        const stk_status status = lb_point_measure(path, &own[2], sets, set_count, own, &point, &err);

        one->checked = status != STK_END;
        if (status == STK_OK)
            one->measured = lb_result_samples_per_s(&point->result);
        else if (status != STK_END)
            snprintf(one->failure, sizeof one->failure, "%.255s", err.message);
        lb_point_destroy(point);
    }
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
    for (int i = 0; i < predictions->count; i++) {
        const struct lb_prediction *one = &predictions->each[i];
        const double gain = percent(one->now, one->rate);

        fprintf(to, "%s %-24s", i == 0 ? "predicted " : "          ", one->set);
        if (fabs(gain) < 100 * LB_SAME)
            fputs(" about the same", to);
        else
            fprintf(to, " %s samples/s (%s)", LB_NUMBER(one->rate), LB_GAIN(one->now, one->rate));
        if (one->failure[0])
            fprintf(to, "; measured: %s", one->failure);
        else if (one->checked)
            fprintf(to, "; measured %s (%s), the prediction is off by %.0f %%", LB_NUMBER(one->measured),
                    LB_GAIN(one->now, one->measured), fabs(percent(one->measured, one->rate)));
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
        json_t *json = json_pack("{s:s, s:f, s:f, s:s}", "set", one->set, "predicted_samples_per_s", one->rate,
                                 "predicted_gain_percent", percent(one->now, one->rate), "confidence",
                                 lb_confidence_words[predictions->confidence]);
        if (one->failure[0])
            json_object_set_new(json, "failure", json_string(one->failure));
        if (one->measured > 0) {
            json_object_set_new(json, "measured_samples_per_s", json_real(one->measured));
            json_object_set_new(json, "measured_gain_percent", json_real(percent(one->now, one->measured)));
            json_object_set_new(json, "error_percent", json_real(percent(one->measured, one->rate)));
        }
        json_array_append_new(list, json);
    }
    return list;
}
