/* count_pass.c: see count_pass.h. */
#include "count_pass.h"
#include "allocate.h"
#include "clock.h"
#include "digest.h"
#include "error.h"
#include "filter.h"
#include "output.h"
#include "prep_file.h"
#include "prep_inputs.h"
#include "thread.h"
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define BATCH_BYTES (INT64_C(1) << 20)
#define LOOK_NS (STKI_SECOND / 10)
enum { BATCH_MOST = 4096, SLOTS = 8 };

typedef struct pass {
    stki_prep_run *run;
    stki_count_field *fields;
    int field_count;
    stki_count_pool *pool;
    stki_tally **total, **unit;    /* one per field */
    int64_t batch_rows, row_bytes; /* bytes of all fields' rows at one position */
    int64_t steps, unit_steps, units;
    int64_t unit_bytes;
    int64_t at;       /* the next step of the loader */
    bool mapped;      /* rows are counted in place, without the loader */
    bool *merged;     /* [units] */
    uint64_t key;     /* hash of everything that determines the tallies; part of their file names */
    stki_u128 inputs; /* hash of the inputs' sizes and modification times */
} pass;

/* ---- the loader ---- */

/* Chooses a power of two of rows per batch, so that batches stay in the cache between the loader's threads and the
 * counting threads. */
static stk_status arrange(void *context, struct stki_core *core, stk_error *err)
{
    pass *p = context;
    const int64_t most = p->unit_bytes / 4 < BATCH_BYTES ? p->unit_bytes / 4 : BATCH_BYTES;
    stki_loader_config *config = core->config;
    stki_filter_counts ignored = {0};
    stk_status status = stki_filter_apply(p->run->job->prep.filter, core, p->run->cancelled, &ignored, err);

    for (int i = 0; i < config->field_count && status == STK_OK; i++) {
        stki_field_plan plan = {0};

        status = stki_plan_resolve(&config->fields[i], &core->dataset->fields[i], &plan, err);

        p->row_bytes += plan.row_bytes;
        stki_plan_fini(&plan);
    }
    for (p->batch_rows = 1; p->batch_rows < BATCH_MOST && 2 * p->batch_rows * p->row_bytes <= most;)
        p->batch_rows *= 2;
    config->batch_size = p->batch_rows;
    config->prefetch = SLOTS;
    return status;
}

static stk_status open_loader(pass *p, stki_loader_config *config, stk_error *err)
{
    stk_status status;

    config->arrange = arrange;
    config->job_context = p;
    status = stki_loader_open_config(config, &p->run->loader, err);
    if (status == STK_OK)
        p->run->core = p->run->loader->core;
    return status;
}

static stk_status find_field(const pass *p, stki_count_field *field, stk_error *err)
{
    const stki_core *core = p->run->core;
    stki_sink_field described;

    for (int i = 0; i < core->plan_count; i++)
        if (strcmp(core->plans[i].name, field->name) == 0)
            field->plan = &core->plans[i];
    if (!field->plan)
        return stki_fail(err, STK_E_NOT_FOUND, "statistics of field %s: no such field", field->name);
    stki_prep_describe(field->plan, &described);
    return stki_stats_form(&field->opts, &described, field->node, &field->form, err);
}

/* ---- files of units ---- */

static uint64_t key_of(const pass *p, const char *text)
{
    stki_u128 print = stki_core_fingerprint(p->run->core, "");

    stki_fingerprint_text(&print, text);
    stki_fingerprint_number(&print, (int64_t)p->inputs.low);
    stki_fingerprint_number(&print, (int64_t)p->inputs.high);
    stki_fingerprint_number(&print, p->batch_rows);
    stki_fingerprint_number(&print, p->unit_steps);
    return print.low;
}

static char *path_of(const pass *p, int64_t unit, const char *ending)
{
    return stki_format("%s/count-%016" PRIx64 "-%05" PRId64 ".%s", p->run->job->work, p->key, unit, ending);
}

static stk_status write_unit(const pass *p, const char *path, stk_error *err)
{
    stki_output *output;
    stk_status status = stki_output_create(path, &output, err);

    if (status != STK_OK)
        return status;
    for (int i = 0; i < p->field_count && status == STK_OK; i++) {
        char *bytes;
        int64_t size;

        status = stki_tally_save(p->unit[i], &p->fields[i].form, &bytes, &size, err);
        if (status != STK_OK)
            break;
        status = stki_output_append(output, &size, sizeof size, err);
        if (status == STK_OK)
            status = stki_output_append(output, bytes, size, err);
        stki_free(bytes);
    }
    return stki_output_end(output, status, err);
}

static void drop(stki_tally **tallies, int count)
{
    for (int i = 0; tallies && i < count; i++) {
        stki_tally_destroy(tallies[i]);
        tallies[i] = NULL;
    }
}

/* Reads a file into `unit`. STK_E_CORRUPT: the unit must be counted again. */
static stk_status read_unit(pass *p, const char *path, stk_error *err)
{
    char *bytes;
    int64_t size, at = 0;
    stk_status status = stki_prep_read_file(path, &bytes, &size, err);

    if (status != STK_OK)
        return status;
    drop(p->unit, p->field_count);
    for (int i = 0; i < p->field_count && status == STK_OK; i++) {
        int64_t part = -1;

        if (size - at >= (int64_t)sizeof part)
            memcpy(&part, bytes + at, sizeof part);
        at += (int64_t)sizeof part;
        if (part < 0 || part > size - at)
            status = stki_fail_at(err, STK_E_CORRUPT, (stki_place){path, -1, at, NULL, NULL}, "damaged");
        else
            status = stki_tally_load(&p->fields[i].form, bytes + at, part, &p->unit[i], err);
        at += part;
    }
    stki_free(bytes);
    return status;
}

/* ---- counting ---- */

static stk_status next_batch(pass *p, stk_batch **batch, stk_error *err)
{
    for (;;) {
        stk_status status = stk_loader_next_timeout(p->run->loader, LOOK_NS, batch, err);

        if (status != STK_E_TIMEOUT)
            return status;
        if ((status = stki_prep_tick(p->run, false, err)) != STK_OK)
            return status;
    }
}

/* Returns whether position i is sample i and no sample is skipped. */
static bool in_place(const pass *p)
{
    const stki_loader_config *config = p->run->core->config;
    bool may = config->order == STK_ORDER_SEQUENTIAL && !config->indices && !config->split && !config->index_list &&
               config->dataset_count == 0 && config->epoch_length == 0 && config->on_error == STK_ON_ERROR_FAIL &&
               stk_loader_samples(p->run->loader) == p->run->core->dataset->count;

    for (int i = 0; i < p->field_count; i++)
        may = may && stki_count_pool_may_map(&p->fields[i]);
    return may;
}

static stk_status count_mapped(pass *p, int64_t first, int64_t end, stk_error *err)
{
    const int64_t samples = p->run->core->dataset->count;
    stk_status status = STK_OK;

    for (int64_t step = first; step < end && status == STK_OK; step++) {
        const int64_t from = step * p->batch_rows;
        const int64_t rows = samples - from < p->batch_rows ? samples - from : p->batch_rows;

        status = stki_count_pool_push_rows(p->pool, from, rows, err);
        p->run->progress.rows += rows;
        if (status == STK_OK)
            status = stki_prep_tick(p->run, false, err);
    }
    return status;
}

static stk_status count_steps(pass *p, int64_t first, int64_t end, stk_error *err)
{
    stk_status status = STK_OK;

    if (p->mapped)
        return count_mapped(p, first, end, err);

    if (p->at != first)
        status = stk_loader_seek(p->run->loader, 0, first, err);
    for (p->at = first; p->at < end && status == STK_OK; p->at++) {
        stk_batch *batch;
        int64_t rows;

        if ((status = next_batch(p, &batch, err)) != STK_OK)
            return status;
        rows = batch->rows;
        status = stki_count_pool_push(p->pool, batch, err);
        p->run->progress.rows += rows;
        if (status == STK_OK)
            status = stki_prep_tick(p->run, false, err);
    }
    return status;
}

static stk_status fresh(const pass *p, stki_tally **tallies, stk_error *err)
{
    stk_status status = STK_OK;

    drop(tallies, p->field_count);
    for (int i = 0; i < p->field_count && status == STK_OK; i++)
        status = stki_tally_create(&p->fields[i].form, stki_isa(), &tallies[i], err);
    return status;
}

static stk_status merge_unit(pass *p, int64_t unit, stk_error *err)
{
    stk_status status = STK_OK;

    p->run->progress.pieces++;

    for (int i = 0; i < p->field_count && status == STK_OK; i++)
        status = stki_tally_merge(p->total[i], &p->fields[i].form, p->unit[i], err);
    p->merged[unit] = status == STK_OK;
    return status;
}

static stk_status make_unit(pass *p, int64_t unit, const char *path, stk_error *err)
{
    const int64_t first = unit * p->unit_steps;
    const int64_t end = p->steps - first < p->unit_steps ? p->steps : first + p->unit_steps;
    stk_status status = fresh(p, p->unit, err);

    if (status == STK_OK && (status = count_steps(p, first, end, err)) == STK_OK &&
        (status = stki_count_pool_take(p->pool, p->unit, err)) == STK_OK)
        status = write_unit(p, path, err);
    return status;
}

/* Reads the unit if it exists; otherwise counts it unless another task is doing so. */
static stk_status get_unit(pass *p, int64_t unit, stk_error *err)
{
    char *path = path_of(p, unit, "tally"), *lock_path = path_of(p, unit, "lock");
    stk_error cause;
    int lock = -1;
    stk_status status = path && lock_path ? STK_OK : stki_fail_memory(err, 256, "a path");

    if (status == STK_OK && !stki_prep_exists(path)) {
        status = stki_prep_lock_file(lock_path, &lock, &cause);
        if (status == STK_E_BUSY) {
            stki_free(path);
            stki_free(lock_path);
            return STK_OK;
        }
        if (status != STK_OK && err)
            *err = cause;
    }
    if (status == STK_OK) {
        status = stki_prep_exists(path) ? read_unit(p, path, &cause) : STK_E_NOT_FOUND;
        if (status == STK_OK) {
            p->run->progress.resumed_rows += p->unit[0]->rows;
            p->run->progress.rows += p->unit[0]->rows;
        } else if (status == STK_E_CORRUPT || status == STK_E_NOT_FOUND) {
            status = make_unit(p, unit, path, err);
        } else if (err) {
            *err = cause;
        }
    }
    if (status == STK_OK)
        status = merge_unit(p, unit, err);
    if (lock >= 0)
        (void)close(lock);
    stki_free(path);
    stki_free(lock_path);
    return status;
}

static stk_status get_units(pass *p, stk_error *err)
{
    const stk_prep_opts *opts = p->run->opts;
    const int64_t first = opts->tasks > 1 ? (int64_t)((stki_i128)p->units * opts->task / opts->tasks) : 0;
    int64_t missing = p->units;
    stk_status status = STK_OK;

    while (missing > 0 && status == STK_OK) {
        missing = 0;
        for (int64_t i = 0; i < p->units && status == STK_OK; i++) {
            const int64_t unit = (first + i) % p->units;

            if (p->merged[unit])
                continue;
            status = get_unit(p, unit, err);
            missing += !p->merged[unit];
        }
        if (missing > 0 && status == STK_OK && (status = stki_prep_tick(p->run, false, err)) == STK_OK)
            stki_sleep_ns(LOOK_NS);
    }
    return status;
}

/* ---- whole pass ---- */

static stk_status prepare(pass *p, stki_loader_config *config, const char *text, stk_error *err)
{
    stk_status status = open_loader(p, config, err);

    if (status == STK_OK)
        status = stki_prep_inputs_see(p->run, true, &p->inputs, err);
    if (status == STK_OK)
        status = stki_prep_check_targets(p->run, NULL, err);
    for (int i = 0; i < p->field_count && status == STK_OK; i++)
        status = find_field(p, &p->fields[i], err);
    if (status != STK_OK)
        return status;
    p->mapped = in_place(p);
    p->steps = stk_loader_steps_per_epoch(p->run->loader);
    p->unit_steps = p->unit_bytes / (p->batch_rows * (p->row_bytes > 0 ? p->row_bytes : 1)) + 1;
    p->units = stki_ceil_div(p->steps, p->unit_steps);
    p->key = key_of(p, text);
    p->total = stki_zalloc_array(p->field_count, sizeof(stki_tally *));
    p->unit = stki_zalloc_array(p->field_count, sizeof(stki_tally *));
    p->merged = stki_zalloc_array(p->units + 1, sizeof(bool));
    if (!p->total || !p->unit || !p->merged)
        return stki_fail_memory(err, p->units, "statistics");
    stki_prep_phase(p->run, STK_PREP_COUNTING, stk_loader_samples(p->run->loader), p->units);
    status = fresh(p, p->total, err);
    if (status == STK_OK)
        status = stki_work_claim(p->run->job, err);
    if (status == STK_OK && p->run->job->format)
        status = stki_job_clock_open(p->run->clock, p->run->job->work, err);
    return status == STK_OK
               ? stki_count_pool_create(p->fields, p->field_count, p->run->core->worker_count, SLOTS / 2, &p->pool, err)
               : status;
}

static stk_status report(const pass *p, json_t **out, stk_error *err)
{
    json_t *all = json_object();
    stk_status status = all ? STK_OK : stki_fail_memory(err, 256, "statistics");

    for (int i = 0; i < p->field_count && status == STK_OK; i++) {
        json_t *one = NULL;

        status = stki_fail_place(err, stki_stats_report(p->total[i], &p->fields[i].form, &p->fields[i].opts, &one, err),
                                 NULL, -1, p->fields[i].name);
        if (status == STK_OK)
            stki_classes_report(p->run->core, (int)(p->fields[i].plan - p->run->core->plans), one);
        if (status == STK_OK && json_object_set_new(all, p->fields[i].name, one) != 0)
            status = stki_fail_memory(err, 256, "statistics");
    }
    if (status != STK_OK) {
        json_decref(all);
        return status;
    }
    *out = all;
    return STK_OK;
}

stk_status stki_count_pass(stki_prep_run *run, stki_loader_config *config, stki_count_field *fields, int field_count,
                           const char *text, int64_t unit_bytes, json_t **inputs, json_t **reports, stk_error *err)
{
    pass p = {.run = run, .fields = fields, .field_count = field_count, .unit_bytes = unit_bytes};
    stk_status status = prepare(&p, config, text, err);

    if (status == STK_OK && (status = get_units(&p, err)) == STK_OK &&
        (status = stki_prep_inputs_see(run, false, NULL, err)) == STK_OK)
        status = report(&p, reports, err);
    if (status == STK_OK && inputs && (status = stki_prep_describe_inputs(run, false, inputs, err)) != STK_OK)
        json_decref(*reports);
    stki_count_pool_destroy(p.pool);
    drop(p.total, field_count);
    drop(p.unit, field_count);
    stki_free(p.total);
    stki_free(p.unit);
    stki_free(p.merged);
    stki_prep_close_loader(run);
    return status;
}
