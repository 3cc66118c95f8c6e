/* convert_choice.c: see convert_choice.h. With `auto`, the choice is measured: artificial samples are converted by the
 * processor and by the device, and the samples and the converted rows are each copied to the device, a few times, which
 * takes milliseconds. With either choice, workers, bus and device work on different batches at the same time, so the
 * slowest of them limits the throughput. */
#include "convert_choice.h"
#include "allocate.h"
#include "clock.h"
#include "device_table.h"
#include "error.h"
#include "log.h"
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 4, MEASURED_BYTES = 4 << 20 };
/* The device has other work, so it does the conversion only if that is clearly faster. */
#define LEAST_GAIN 0.9
#define WAIT_NS (10 * STKI_SECOND)

static double largest(double a, double b, double c)
{
    double most = a > b ? a : b;

    return most > c ? most : c;
}

bool stki_convert_pays(const stki_convert_costs *costs, char *text, int size)
{
    double host_workers = costs->host_read + costs->host_convert, workers = costs->host_read + costs->host_copy;
    double host = largest(host_workers, costs->rows_copy, 0),
           device = largest(workers, costs->samples_copy, costs->device_convert);
    bool pays = device < LEAST_GAIN * host;

    snprintf(text, (size_t)size,
             "a batch takes %.3g ms with the samples converted on the device (workers %.3g, bus %.3g, device %.3g) and "
             "%.3g ms with the samples converted by the workers (workers %.3g, bus %.3g)",
             device * 1e-6, workers * 1e-6, costs->samples_copy * 1e-6, costs->device_convert * 1e-6, host * 1e-6,
             host_workers * 1e-6, costs->rows_copy * 1e-6);
    return pays;
}

/* ---- measuring ---- */

/* The memory for measuring one field; every member may be NULL. */
typedef struct trial {
    stk_device *device;
    stk_stream *stream;
    stk_event *begin, *end;
    void *samples, *rows; /* ordinary memory */
    void *pinned;         /* page-locked memory, large enough for the samples or the rows */
    void *there_samples, *there_rows;
    int64_t sample_bytes, row_bytes, count;
} trial;

static int64_t pinned_bytes(const trial *t)
{
    return t->count * (t->sample_bytes > t->row_bytes ? t->sample_bytes : t->row_bytes);
}

static void trial_fini(trial *t)
{
    const stki_device_ops *ops = t->device->ops;

    if (t->stream)
        (void)stk_stream_synchronize(t->stream, WAIT_NS, NULL);
    stki_block_free(NULL, t->samples, t->count * t->sample_bytes, 64);
    stki_block_free(NULL, t->rows, t->count * t->row_bytes, 64);
    if (t->pinned)
        ops->free_pinned(t->device, t->pinned, pinned_bytes(t));
    if (t->there_samples)
        ops->free(t->device, t->there_samples, t->count * t->sample_bytes);
    if (t->there_rows)
        ops->free(t->device, t->there_rows, t->count * t->row_bytes);
    stk_event_destroy(t->begin);
    stk_event_destroy(t->end);
    stk_stream_destroy(t->stream);
}

static stk_status trial_init(trial *t, stk_error *err)
{
    const stki_device_ops *ops = t->device->ops;
    int64_t samples = t->count * t->sample_bytes, rows = t->count * t->row_bytes;
    stk_status status;

    t->samples = stki_block_alloc(NULL, samples, 64);
    t->rows = stki_block_alloc(NULL, rows, 64);
    if (!t->samples || !t->rows)
        return stki_fail_memory(err, samples + rows, "measuring conversions");
    if ((status = ops->alloc_pinned(t->device, pinned_bytes(t), &t->pinned, err)) != STK_OK ||
        (status = ops->alloc(t->device, samples, &t->there_samples, err)) != STK_OK ||
        (status = ops->alloc(t->device, rows, &t->there_rows, err)) != STK_OK ||
        (status = stk_stream_create(t->device, &t->stream, err)) != STK_OK ||
        (status = stk_event_create(t->device, true, &t->begin, err)) != STK_OK ||
        (status = stk_event_create(t->device, true, &t->end, err)) != STK_OK)
        return status;
    memset(t->samples, 0, (size_t)samples); /* zeros, because NaN and subnormal numbers may be slower */
    memset(t->pinned, 0, (size_t)pinned_bytes(t));
    return STK_OK;
}

static double best_of(double best, int64_t ns)
{
    return best == 0 || (double)ns < best ? (double)ns : best;
}

/* Measures how long one thread takes to convert the samples, and how long it takes to copy them. */
static void time_host(const trial *t, const stki_convert *convert, stki_convert_costs *costs)
{
    for (int round = 0; round < ROUNDS; round++) {
        int64_t before = stki_now_ns(), between;

        for (int64_t i = 0; i < t->count; i++)
            stki_convert_run(convert, (char *)t->rows + i * t->row_bytes,
                             (const char *)t->samples + i * t->sample_bytes);
        between = stki_now_ns();
        costs->host_convert = best_of(costs->host_convert, between - before);
        memcpy(t->pinned, t->samples, (size_t)(t->count * t->sample_bytes));
        costs->host_copy = best_of(costs->host_copy, stki_now_ns() - between);
    }
}

/* Returns the mean time to decode one of the first images when they are in the page cache. Unreadable images count as
 * zero, because their batch reports the error. */
static double time_reading(const stki_field_plan *plan)
{
    enum { IMAGES = 3 };
    const int64_t count = stki_field_count(plan->field) < IMAGES ? stki_field_count(plan->field) : IMAGES;
    stki_scratch scratch;
    double sum = 0;

    if (!plan->image.resample || count == 0)
        return 0;
    stki_scratch_init(&scratch);
    for (int64_t i = 0; i < count; i++) {
        double best = 0;

        for (int round = 0; round < 2; round++) {
            int64_t within, before = stki_now_ns();
            const stki_reader *shard = stki_field_locate(plan->field, i, &within);
            stk_tensor sample;

            if (shard->ops->read(shard, within, NULL, &scratch, &sample, NULL) != STK_OK)
                break;
            best = best_of(best, stki_now_ns() - before);
            stki_reader_done(shard, &sample);
        }
        sum += best;
    }
    stki_scratch_fini(&scratch);
    return sum / (double)count;
}

enum job { COPY_SAMPLES, COPY_ROWS, CONVERT };

static stk_status time_job(const trial *t, const stki_convert *convert, enum job job, double *best, stk_error *err)
{
    const stki_device_ops *ops = t->device->ops;
    stk_status status = STK_OK;

    for (int round = 0; round < ROUNDS && status == STK_OK; round++) {
        int64_t ns = 0;

        if ((status = stk_event_record(t->begin, t->stream, err)) != STK_OK)
            return status;
        if (job == CONVERT)
            status = ops->convert(t->device, convert, t->there_rows, t->row_bytes, t->there_samples, t->sample_bytes,
                                  t->count, t->stream, err);
        else
            status = ops->copy(t->device, job == COPY_ROWS ? t->there_rows : t->there_samples, true, t->pinned, false,
                               t->count * (job == COPY_ROWS ? t->row_bytes : t->sample_bytes), t->stream, err);
        if (status == STK_OK && (status = stk_event_record(t->end, t->stream, err)) == STK_OK &&
            (status = stk_event_synchronize(t->end, WAIT_NS, err)) == STK_OK &&
            (status = stk_event_elapsed(t->begin, t->end, &ns, err)) == STK_OK)
            *best = best_of(*best, ns);
    }
    return status;
}

/* Adds the field's time per batch to the total. */
static stk_status measure(const stki_core *core, const stki_row_form *row, const stki_row_form *stored,
                          const stki_convert *convert, stki_convert_costs *total, stk_error *err)
{
    trial t = {.device = core->device, .sample_bytes = stored->row_bytes, .row_bytes = row->row_bytes};
    int64_t larger = t.sample_bytes > t.row_bytes ? t.sample_bytes : t.row_bytes;
    stki_convert_costs costs = {0};
    stk_status status;
    double batch;

    t.count = larger > 0 ? MEASURED_BYTES / larger : core->max_rows;
    t.count = t.count < 1 ? 1 : t.count > core->max_rows ? core->max_rows : t.count;
    if (larger == 0 || t.count == 0)
        return STK_OK;
    if ((status = trial_init(&t, err)) == STK_OK &&
        (status = time_job(&t, convert, COPY_SAMPLES, &costs.samples_copy, err)) == STK_OK &&
        (status = time_job(&t, convert, COPY_ROWS, &costs.rows_copy, err)) == STK_OK &&
        (status = time_job(&t, convert, CONVERT, &costs.device_convert, err)) == STK_OK)
        time_host(&t, convert, &costs);
    batch = (double)core->max_rows / (double)t.count;
    trial_fini(&t);
    total->host_convert += batch * costs.host_convert;
    total->host_copy += batch * costs.host_copy;
    total->rows_copy += batch * costs.rows_copy;
    total->samples_copy += batch * costs.samples_copy;
    total->device_convert += batch * costs.device_convert;
    return status;
}

/* ---- choosing ---- */

typedef struct candidate {
    stki_convert *convert; /* NULL: the workers convert the field */
    stki_row_form stored;
} candidate;

static stk_status refuse(const stki_field_plan *plan, const char *what, stk_error *err)
{
    return stki_fail(err, STK_E_UNSUPPORTED,
                     "loader.convert: found device, but dataset.fields.%s requires %s, which devices do not support: "
                     "expected host or auto",
                     plan->name, what);
}

/* Finds the fields that a device could convert, and their costs. */
static stk_status find_candidates(stki_core *core, candidate *candidates, stki_convert_costs *costs, int *count,
                                  stk_error *err)
{
    bool must = core->config->convert == STK_CONVERT_DEVICE;
    stk_status status = STK_OK;

    for (int i = 0; i < core->plan_count && status == STK_OK; i++) {
        const stki_field_plan *plan = &core->plans[i];
        const char *obstacle = stki_plan_device_obstacle(plan);
        stki_row_form row;

        if (stki_plan_only_copies(plan))
            continue;
        if (obstacle && must)
            return refuse(plan, obstacle, err);
        if (obstacle) {
            stki_config_fact(core->config,
                             "loader.convert: the workers make the rows of %s, because devices do not support %s",
                             plan->name, obstacle);
            continue;
        }
        stki_plan_form(plan, &row);
        status = stki_plan_second_part(plan, &candidates[i].stored, &candidates[i].convert, err);
        if (status == STK_OK) {
            (*count)++;
            status = measure(core, &row, &candidates[i].stored, candidates[i].convert, costs, err);
            costs->host_read += (double)core->max_rows * time_reading(plan);
        }
    }
    return status;
}

static bool decide(stki_core *core, const stki_convert_costs *costs, stk_status status, const stk_error *why)
{
    char text[320];
    bool pays;

    if (status != STK_OK) {
        stki_config_fact(core->config, "loader.convert: host, because the device cannot convert the rows: %s",
                         why->message);
        return false;
    }
    pays = stki_convert_pays(costs, text, sizeof text);
    stki_config_fact(core->config, "loader.convert: %s, since %s", pays ? "device" : "host", text);
    return pays;
}

static stk_status choose(stki_core *core, candidate *candidates, stk_error *err)
{
    stki_loader_config *config = core->config;
    stki_convert_costs costs = {0};
    int count = 0, workers = config->num_workers == STK_WORKERS_AUTO ? stki_cpu_count() : (int)config->num_workers;
    stk_error why = {0};
    stk_status status = find_candidates(core, candidates, &costs, &count, &why);
    bool by_device;

    if (status != STK_OK && config->convert == STK_CONVERT_DEVICE) {
        if (err)
            *err = why;
        return status;
    }
    costs.host_read /= workers > 1 ? workers : 1;
    costs.host_convert /= workers > 1 ? workers : 1;
    costs.host_copy /= workers > 1 ? workers : 1;
    by_device = config->convert == STK_CONVERT_DEVICE || (count > 0 && decide(core, &costs, status, &why));
    config->convert = by_device ? STK_CONVERT_DEVICE : STK_CONVERT_HOST;
    for (int i = 0; i < core->plan_count && by_device; i++)
        if (candidates[i].convert) {
            stki_plan_split(&core->plans[i], &candidates[i].stored, candidates[i].convert, core->device->name);
            candidates[i].convert = NULL;
        }
    return STK_OK;
}

stk_status stki_choose_convert(stki_core *core, stk_error *err)
{
    stki_loader_config *config = core->config;
    candidate *candidates;
    stk_status status;

    if (!core->device) {
        if (config->convert == STK_CONVERT_DEVICE)
            return stki_fail(err, STK_E_CONFIG,
                             "loader.convert: found device, expected host or auto, because loader.device is cpu");
        config->convert = STK_CONVERT_HOST;
    }
    if (config->digest == STK_DIGEST_BYTES && config->convert == STK_CONVERT_DEVICE)
        return stki_fail(err, STK_E_CONFIG,
                         "loader.convert: found device, expected host or auto, because digest: bytes hashes rows in "
                         "ordinary memory");
    if (config->digest == STK_DIGEST_BYTES)
        config->convert = STK_CONVERT_HOST;
    if (config->convert == STK_CONVERT_HOST)
        return STK_OK;
    candidates = stki_zalloc_array(core->plan_count, sizeof *candidates);
    if (!candidates)
        return stki_fail_memory(err, core->plan_count * (int64_t)sizeof *candidates, "the choice of loader.convert");
    status = choose(core, candidates, err);
    for (int i = 0; i < core->plan_count; i++)
        stki_convert_destroy(candidates[i].convert);
    stki_free(candidates);
    return status;
}
