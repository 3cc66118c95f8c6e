/* loadbench_predict.c: the clocks of the run become a model of its pipeline (loadbench_model.h); the model with one
 * thing changed, against the model as it is, says by how much the rate changes. So what the model leaves out, swings
 * above all, is left out on both sides. Two limits hold whatever the model says: the processors the process may use,
 * and what the machine's memory gives. */
#include "loadbench_predict.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "loadbench_consumer.h"
#include "loadbench_model.h"
#include "loadbench_result.h"
#include "loadbench_shares.h"
#include "loadbench_stop.h"
#include "loadbench_table.h"
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define PREAD_TIME_NS 20000000 /* of measuring a positional read */
#define SAME 0.02              /* a smaller change is none */

static double processor_s(const struct lb_result *result)
{
    double sum = 0;

    for (int i = 0; i < result->run_count; i++)
        sum += (double)(result->runs[i].usage.user_ns + result->runs[i].usage.system_ns) / 1e9;
    return sum;
}

/* Processors that the process may use, in whole or by a quota. */
static double cores_of(const struct lb_machine *machine)
{
    const double allowed = (double)machine->cores_allowed;

    return machine->cpu_quota > 0 && machine->cpu_quota < allowed ? machine->cpu_quota : allowed;
}

static struct lb_model model_of(const struct lb_result *result, const struct lb_shares *shares)
{
    const struct lb_run *last = &result->runs[result->run_count - 1];
    const double batches = (double)shares->batches;
    const double own = shares->workers == 0 ? 1 - shares->wait_next - lb_busy(shares) : 1 - shares->wait_next;

    return (struct lb_model){
        .workers = (int)shares->workers,
        .slots = (int)shares->slots,
        .device_slots = (int)last->stats.device_slots,
        .tiles = (int)fmax(1, round(lb_ratio((double)shares->tiles, batches))),
        .work_s = lb_busy(shares) * shares->worker_s / batches,
        .copy_s = shares->copy * shares->elapsed_s / batches,
        .consumer_s = fmax(0, own) * shares->elapsed_s / batches,
        .cpu_s = processor_s(result) / batches,
        .cores = cores_of(&result->machine),
    };
}

/* Samples a second of a changed model. More than the memory gives is not to be had. */
static double rate_of(const struct lb_shares *shares, double now, const struct lb_model *base,
                      const struct lb_model *changed)
{
    const double rate = now * lb_ratio(lb_model_batch_s(base), lb_model_batch_s(changed));
    const double most = shares->limit > 0 ? fmax(now, now / shares->limit) : rate;

    return fmin(rate, most);
}

static struct lb_prediction *add(struct lb_predictions *out, double now, double rate)
{
    struct lb_prediction *one = &out->each[out->count++];

    *one = (struct lb_prediction){.rate = rate, .now = now};
    return one;
}

/* Seconds that one positional read of so many bytes takes, from the page cache: the same place is read again. 0: not to
 * be measured. */
static double pread_s(const char *path, int64_t bytes)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *to = stki_resize(NULL, bytes);
    int64_t begun = stki_now_ns(), now = begun;
    int count = 0;

    while (fd >= 0 && to && now - begun < PREAD_TIME_NS && pread(fd, to, (size_t)bytes, 0) == bytes) {
        now = stki_now_ns();
        count++;
        if (count == 1) /* it may have come from the disk */
            begun = now;
    }
    stki_free(to);
    if (fd >= 0)
        close(fd);
    return count > 1 ? (double)(now - begun) / 1e9 / (count - 1) : 0;
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
                           const struct lb_model *base, struct lb_predictions *out)
{
    const struct lb_field *field = largest_field(result);
    struct lb_model changed = *base;

    if (!field || result->facts.file_count < 2 || shares->decode + shares->inflate > shares->storage)
        return;
    const double rows = (double)shares->samples / (double)shares->batches;
    const double read_s = rows * pread_s(result->facts.files[1].path, field->sample_bytes);
    const double storage_s = shares->storage * shares->worker_s / (double)shares->batches;
    const bool mapped = strcmp(field->access, "mmap") == 0;
    const double step_s = mapped ? read_s : -fmin(read_s, storage_s);

    if (read_s <= 0)
        return;
    changed.work_s = fmax(base->work_s + step_s, base->work_s / 100);
    changed.cpu_s = fmax(base->cpu_s + step_s, base->cpu_s / 100);
    snprintf(add(out, now, rate_of(shares, now, base, &changed))->set, sizeof out->each[0].set, "loader.access=%s",
             mapped ? "pread" : "mmap");
}

void lb_predict(const struct lb_result *result, struct lb_predictions *out)
{
    const struct lb_shares shares = lb_result_shares(result);
    const struct lb_model base = model_of(result, &shares);
    const double now = lb_ratio((double)shares.samples, shares.elapsed_s);
    struct lb_model changed = base;
    struct lb_verdict verdict;

    out->count = 0;
    lb_verdict(&shares, &verdict);
    if (verdict.binds == LB_BINDS_UNKNOWN || shares.batches < 1)
        return;
    changed.workers++;
    snprintf(add(out, now, rate_of(&shares, now, &base, &changed))->set, sizeof out->each[0].set,
             "loader.num_workers=%d", changed.workers);
    changed = base;
    changed.slots *= 2;
    if (shares.workers > 0)
        snprintf(add(out, now, rate_of(&shares, now, &base, &changed))->set, sizeof out->each[0].set,
                 "loader.prefetch=%d", changed.slots);
    predict_access(result, &shares, now, &base, out);
}

/* One change, run as the config says. */
static stk_status run_one(const char *path, const char *const *sets, int set_count, struct lb_prediction *one,
                          stk_error *err)
{
    struct lb_result *result = stki_zalloc(sizeof *result);
    struct lb_config config = {0};
    stk_error own;
    stk_status status;

    if (!result)
        return stki_fail_memory(err, sizeof *result, "the result");
    status = lb_config_open(path, sets, set_count, false, &config, &own);
    if (status == STK_OK)
        status = lb_result_measure(&config, result, &own);
    one->checked = status != STK_END;
    if (status == STK_OK) {
        const struct lb_shares shares = lb_result_shares(result);
        one->measured = lb_ratio((double)shares.samples, shares.elapsed_s);
    } else if (status != STK_END) {
        snprintf(one->failure, sizeof one->failure, "%.255s", own.message);
    }
    lb_result_fini(result);
    stki_free(result);
    lb_config_close(&config);
    return STK_OK;
}

stk_status lb_predict_check(const char *path, const char *const *sets, int set_count,
                            struct lb_predictions *predictions, stk_error *err)
{
    const char **all = stki_zalloc_array(set_count + 2, sizeof *all);
    stk_status status = STK_OK;

    if (!all)
        return stki_fail_memory(err, set_count, "the assignments");
    for (int i = 0; i < set_count; i++)
        all[i] = sets[i];
    all[set_count] = "bench.limit=false"; /* it says nothing new here */
    for (int i = 0; i < predictions->count && status == STK_OK && !lb_stop_asked; i++) {
        all[set_count + 1] = predictions->each[i].set;
        status = run_one(path, all, set_count + 2, &predictions->each[i], err);
    }
    stki_free(all);
    return status;
}

static double percent(double now, double then)
{
    return 100 * (lb_ratio(then, now) - 1);
}

void lb_predict_print(const struct lb_predictions *predictions, FILE *to)
{
    for (int i = 0; i < predictions->count; i++) {
        const struct lb_prediction *one = &predictions->each[i];
        const double gain = percent(one->now, one->rate);

        fprintf(to, "%s %-24s", i == 0 ? "predicted " : "          ", one->set);
        if (fabs(gain) < 100 * SAME)
            fputs(" about the same", to);
        else
            fprintf(to, " %s samples/s (%+.0f %%)", LB_NUMBER(one->rate), gain);
        if (one->failure[0])
            fprintf(to, "; measured: %s", one->failure);
        else if (one->checked)
            fprintf(to, "; measured %s (%+.0f %%), the prediction is off by %.0f %%", LB_NUMBER(one->measured),
                    percent(one->now, one->measured), fabs(percent(one->measured, one->rate)));
        fputc('\n', to);
    }
}

json_t *lb_predict_json(const struct lb_predictions *predictions)
{
    json_t *list = json_array();

    for (int i = 0; i < predictions->count; i++) {
        const struct lb_prediction *one = &predictions->each[i];
        json_t *json = json_pack("{s:s, s:f, s:f}", "set", one->set, "predicted_samples_per_s", one->rate,
                                 "predicted_gain_percent", percent(one->now, one->rate));
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
