/* loadbench_run.c: the measuring loop. Two clock readings a batch, around stk_loader_next; everything else that is
 * asked of the loader or the system is asked before the measurement begins and after it has ended.
 *
 * A measurement begins at the first batch boundary after the ramp (with `epochs`, at the first epoch boundary) and ends
 * at a batch boundary, so that whole batches are divided by the time they took. */
#include "loadbench_run.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "loadbench_consumer.h"
#include "loadbench_statistics.h"
#include <jansson.h>
#include <string.h>

/* A call of next waits so long at a time: how late Ctrl-C and the live line may be when nothing comes. */
#define SLICE_NS (STKI_SECOND / 4)

volatile int lb_stop_asked;

static const struct {
    const char *name, *text;
} endings[] = {
    [LB_END_TIME] = {"run_time", "the run time"},
    [LB_END_EPOCHS] = {"epochs", "the number of epochs"},
    [LB_END_BATCHES] = {"batches", "the number of batches"},
    [LB_END_DATA] = {"end_of_data", "the end of the data (loader.num_epochs)"},
    [LB_END_SIGNAL] = {"signal", "a signal"},
};

const char *lb_ending_name(enum lb_ending ending)
{
    return endings[ending].name;
}

const char *lb_ending_text(enum lb_ending ending)
{
    return endings[ending].text;
}

/* One repeat while it runs. */
struct session {
    const struct lb_bench *bench;
    const struct lb_facts *facts;
    struct lb_live *live;
    stk_loader *loader;
    const struct lb_consumer *consumer;
    struct lb_consumer_state consumed;
    const char *names[2 * LB_FIELDS];
    char part_names[2 * LB_FIELDS][80];
    stki_histogram *waits;
    int64_t timeout_ns;
    int64_t total_samples;
    /* since the measurement began */
    bool measuring;
    int64_t open_ns, begin_ns, batches, samples, epochs, next_ns;
    struct lb_usage usage;
    stk_loader_stats stats;
};

static stk_loader_stats read_stats(const stk_loader *loader)
{
    stk_loader_stats stats = {.struct_size = sizeof stats};

    if (stk_loader_get_stats(loader, &stats, NULL) != STK_OK)
        memset(&stats, 0, sizeof stats);
    return stats;
}

/* Counters become what was added since `before`. */
static void subtract_stats(stk_loader_stats *stats, const stk_loader_stats *before)
{
    stats->batches -= before->batches;
    stats->rows -= before->rows;
    stats->batch_bytes -= before->batch_bytes;
    stats->bytes_read -= before->bytes_read;
    stats->bytes_written -= before->bytes_written;
    stats->tiles -= before->tiles;
    stats->order_ns -= before->order_ns;
    stats->read_ns -= before->read_ns;
    stats->convert_ns -= before->convert_ns;
    stats->wait_slot_ns -= before->wait_slot_ns;
    stats->wait_work_ns -= before->wait_work_ns;
    stats->wait_next_ns -= before->wait_next_ns;
    stats->errors -= before->errors;
}

static void begin_measuring(struct session *session)
{
    session->batches = session->samples = session->epochs = session->next_ns = 0;
    stki_histogram_init(session->waits);
    session->stats = read_stats(session->loader);
    lb_usage_read(&session->usage);
    session->begin_ns = stki_now_ns();
}

static void show_progress(struct session *session, int64_t now)
{
    const struct lb_bench *bench = session->bench;
    const double elapsed = (double)(now - session->open_ns);
    struct lb_progress progress = {.now_ns = now, .samples = session->total_samples, .done = -1, .left_ns = -1};

    progress.ramp = !session->measuring;
    if (bench->run_time > 0)
        progress.done = elapsed / (double)(bench->ramp + bench->run_time);
    else if (bench->batches > 0)
        progress.done = (double)session->batches / (double)bench->batches;
    else if (bench->epochs > 0)
        progress.done = lb_ratio((double)session->batches, (double)(bench->epochs * session->facts->steps_per_epoch));
    if (progress.done > 0.01) {
        const double whole = elapsed / progress.done, left = whole > elapsed ? whole - elapsed : 0;
        progress.left_ns = (int64_t)(left + whole * (session->live->repeats - session->live->repeat));
    }
    lb_live_draw(session->live, &progress, session->loader);
}

/* The library names the time of one slice; the whole time is what somebody can do something about. */
static stk_status name_whole_time(const struct session *session, stk_error *err)
{
    char what[sizeof err->message];
    const char *rest = err ? strstr(err->message, ": ") : NULL;

    if (!rest)
        return STK_E_TIMEOUT;
    snprintf(what, sizeof what, "%s", rest + 2);
    return stki_fail(err, STK_E_TIMEOUT, "no batch within %.3f s (loader.timeout): %s",
                     (double)session->timeout_ns / 1e9, what);
}

/* stk_loader_next in slices. STK_AGAIN: a signal came while nothing else did. */
static stk_status next_batch(struct session *session, int64_t before, stk_batch **batch, stk_error *err)
{
    const int64_t deadline = session->timeout_ns < 0 ? INT64_MAX : before + session->timeout_ns;
    int64_t left = deadline - before;

    for (;;) {
        const stk_status status =
            stk_loader_next_timeout(session->loader, left < SLICE_NS ? left : SLICE_NS, batch, err);
        if (status != STK_E_TIMEOUT)
            return status;
        const int64_t now = stki_now_ns();
        left = deadline - now;
        if (lb_stop_asked)
            return STK_AGAIN;
        if (left <= 0)
            return name_whole_time(session, err);
        if (now >= session->live->due_ns)
            show_progress(session, now);
    }
}

/* Is it time to stop, before the next batch is asked for? */
static bool is_over(const struct session *session, int64_t now, enum lb_ending *ending)
{
    const struct lb_bench *bench = session->bench;

    if (lb_stop_asked)
        *ending = LB_END_SIGNAL;
    else if (!session->measuring)
        return false;
    else if (bench->run_time > 0 && now - session->begin_ns >= bench->run_time)
        *ending = LB_END_TIME;
    else if (bench->epochs > 0 && session->epochs >= bench->epochs)
        *ending = LB_END_EPOCHS;
    else if (bench->batches > 0 && session->batches >= bench->batches)
        *ending = LB_END_BATCHES;
    else
        return false;
    return true;
}

static stk_status take(struct session *session, stk_batch *batch, bool *last_of_epoch, stk_error *err)
{
    const int64_t samples = stk_batch_valid_rows(batch);
    stk_status status = session->consumer->take(&session->consumed, batch, err);

    *last_of_epoch = stk_batch_last_of_epoch(batch);
    session->batches++;
    session->samples += samples;
    session->total_samples += samples;
    session->epochs += *last_of_epoch;
    stk_batch_release(batch);
    return status;
}

static stk_status loop(struct session *session, struct lb_run *out, stk_error *err)
{
    const int64_t ramp_end = session->open_ns + session->bench->ramp;
    bool boundary = true;

    for (;;) {
        stk_batch *batch = NULL;
        int64_t before = stki_now_ns();
        if (!session->measuring && before >= ramp_end && (boundary || session->bench->epochs == 0)) {
            begin_measuring(session);
            session->measuring = true;
            out->ramp_ns = session->begin_ns - session->open_ns;
            before = session->begin_ns;
        }
        if (is_over(session, before, &out->ending))
            return STK_OK;
        if (before >= session->live->due_ns)
            show_progress(session, before);

        stk_status status = next_batch(session, before, &batch, err);
        if (status == STK_END || status == STK_AGAIN) {
            out->ending = status == STK_END ? LB_END_DATA : LB_END_SIGNAL;
            return STK_OK;
        }
        if (status != STK_OK)
            return status;
        const int64_t after = stki_now_ns();
        stki_histogram_add(session->waits, after - before);
        session->next_ns += after - before;
        if (out->first_batch_ns == 0)
            out->first_batch_ns = after - session->open_ns;
        status = take(session, batch, &boundary, err);
        if (status != STK_OK)
            return status;
    }
}

static void finish(struct session *session, struct lb_run *out)
{
    const stki_histogram *waits = session->waits;
    struct lb_usage usage;

    out->elapsed_ns = stki_now_ns() - session->begin_ns;
    lb_usage_read(&usage);
    out->stats = read_stats(session->loader);
    subtract_stats(&out->stats, &session->stats);
    lb_memory_read(&out->memory);
    out->usage.user_ns = usage.user_ns - session->usage.user_ns;
    out->usage.system_ns = usage.system_ns - session->usage.system_ns;
    out->usage.disk_bytes = usage.disk_bytes < 0 ? -1 : usage.disk_bytes - session->usage.disk_bytes;
    out->within_ramp = !session->measuring;
    out->batches = session->batches;
    out->samples = session->samples;
    out->epochs = session->epochs;
    out->next_ns = session->next_ns;
    out->checksum = session->consumed.checksum;
    out->waits.p50_ns = stki_histogram_quantile(waits, 0.5);
    out->waits.p90_ns = stki_histogram_quantile(waits, 0.9);
    out->waits.p99_ns = stki_histogram_quantile(waits, 0.99);
    out->waits.max_ns = stki_counted(&waits->max);
}

/* loader.timeout in effect. */
static int64_t timeout_of(const char *options)
{
    json_t *root = json_loads(options, 0, NULL);
    const json_t *loader = json_object_get(root, "loader"), *timeout = json_object_get(loader, "timeout_ns");
    const int64_t ns = json_is_integer(timeout) ? json_integer_value(timeout) : 60 * STKI_SECOND;

    json_decref(root);
    return ns;
}

/* A field of varying shape is two tensors. */
static void name_tensors(struct session *session)
{
    for (int i = 0; i < session->facts->field_count; i++) {
        const struct lb_field *field = &session->facts->fields[i];
        const bool varies = field->sample_bytes == 0 && strstr(field->shape, "-1");
        for (int k = 0; k < (varies ? 2 : 1); k++) {
            const int n = session->consumed.field_count++;
            snprintf(session->part_names[n], sizeof session->part_names[n], "%s%s", field->name,
                     !varies  ? ""
                     : k == 0 ? ".values"
                              : ".offsets");
            session->names[n] = session->part_names[n];
        }
    }
    session->consumed.field_names = session->names;
}

static stk_status open_session(const struct lb_config *config, struct lb_facts *facts, struct session *session,
                               stk_error *err)
{
    stk_status status;

    session->open_ns = stki_now_ns();
    status = stk_loader_open_file(config->path, config->loader_sets, config->loader_set_count, &session->loader, err);
    if (status == STK_OK && !facts->options_json)
        status = lb_facts_read(session->loader, facts, err);
    if (status != STK_OK)
        return status;
    session->timeout_ns = timeout_of(facts->options_json);
    name_tensors(session);
    begin_measuring(session); /* in case the data ends before the ramp does */
    session->begin_ns = session->open_ns;
    return STK_OK;
}

stk_status lb_run(const struct lb_config *config, struct lb_live *live, struct lb_facts *facts, stki_histogram *waits,
                  struct lb_run *out, stk_error *err)
{
    struct session *session = stki_zalloc(sizeof *session);
    stk_status status = STK_OK;

    memset(out, 0, sizeof *out);
    if (session)
        session->waits = stki_zalloc(sizeof *session->waits);
    if (!session || !session->waits) {
        stki_free(session);
        return stki_fail_memory(err, sizeof *session, "a run");
    }
    session->bench = &config->bench;
    session->facts = facts;
    session->live = live;
    session->consumer = &lb_consumers[config->bench.consumer];
    lb_memory_reset_peak();
    status = open_session(config, facts, session, err);
    if (status == STK_OK)
        status = loop(session, out, err);
    if (status == STK_OK)
        finish(session, out);
    if (status == STK_OK && out->batches == 0)
        status =
            out->ending == LB_END_SIGNAL ? STK_END : stki_fail(err, STK_E_EMPTY, "%s: no batch came", config->path);
    lb_live_clear(live);
    if (status == STK_OK)
        stki_histogram_merge(waits, session->waits);
    if (status == STK_OK)
        status = stk_loader_close(session->loader, err); /* a worker that does not stop is a failure */
    stk_loader_destroy(session->loader);
    stki_free(session->waits);
    stki_free(session);
    return status;
}
