/* loadbench_run.c: the measuring loop. It reads the clock four times per batch: before and after stk_loader_next, after
 * the consumer, and after the release. The rest of the elapsed time is the overhead of this program. All other
 * statistics of the loader and the system are read before the measurement, after it, and at the ends of intervals.
 *
 * A measurement starts at the first batch boundary after the ramp (with `epochs`, at the first epoch boundary) and ends
 * at a batch boundary, so that rates are computed from whole batches and their time. */
#include "loadbench_run.h"
#include "allocate.h"
#include "cgroup.h"
#include "clock.h"
#include "error.h"
#include "loadbench_clocks.h"
#include "loadbench_consumer.h"
#include "loadbench_device.h"
#include "loadbench_prepare.h"
#include "loadbench_source.h"
#include "loadbench_statistics.h"
#include "loadbench_stop.h"
#include <jansson.h>
#include <string.h>

/* Longest wait in ns per call to `next`, which bounds the delay of Ctrl-C and of updates of the live line. */
#define SLICE_NS (STKI_SECOND / 4)

const char *const lb_ending_words[] = {
    [LB_END_TIME] = "run_time",   [LB_END_EPOCHS] = "epochs",    [LB_END_BATCHES] = "batches",
    [LB_END_SAMPLES] = "samples", [LB_END_DATA] = "end_of_data", [LB_END_SIGNAL] = "signal",
};

const char *lb_ending_text(enum lb_ending ending)
{
    static const char *const texts[] = {
        [LB_END_TIME] = "the run time",
        [LB_END_EPOCHS] = "the number of epochs",
        [LB_END_BATCHES] = "the number of batches",
        [LB_END_SAMPLES] = "the number of samples",
        [LB_END_DATA] = "the end of the data (loader.num_epochs)",
        [LB_END_SIGNAL] = "a signal",
    };
    return texts[ending];
}

/* A running repeat. */
struct session {
    const struct lb_bench *bench;
    const struct lb_facts *facts;
    struct lb_live *live;
    struct lb_source *source;
    const struct lb_consumer *consumer;
    struct lb_consumer_state consumed;
    const char *names[2 * LB_FIELDS];
    char part_names[2 * LB_FIELDS][80];
    int64_t timeout_ns;
    int64_t batches, samples, epochs, next_ns, consume_ns, release_ns, record_ns; /* totals since the opening */
    int64_t last_ns;            /* time at which the previous batch was received; 0: none */
    int64_t first_end_ns;       /* end of the very first step */
    int64_t begin_first_end_ns; /* end of the first measured step; 0: not yet */
    int64_t last_take_ns;       /* start of the last step */
    bool measuring;
    struct lb_mark open, begin;           /* `begin` is `open` until the measurement begins */
    struct lb_load open_load, begin_load; /* load of the whole machine at those times */
    /* Data of the intervals. `last` is the mark at which the next line of the log starts. */
    struct lb_marks *marks;
    struct lb_mark last;
    stk_worker_stats *workers, *last_workers;
    struct lb_log *log;
    int repeat;
};

/* ---- the loader of a config as a source ---- */

struct loader_source {
    struct lb_source base;
    const struct lb_config *config;
    struct lb_facts *facts;
};

static stk_status open_loader(struct lb_source *source, stk_error *err)
{
    const struct loader_source *of = (struct loader_source *)source;

    return lb_prepare_loader(of->config, of->facts, &source->loader, err);
}

static stk_status close_loader(struct lb_source *source, stk_error *err)
{
    return stk_loader_close(source->loader, err);
}

static stk_status next_of_loader(struct lb_source *source, stk_stream *stream, int64_t timeout_ns, struct lb_taken *out,
                                 stk_error *err)
{
    stk_batch *batch = NULL;
    const stk_status status = stk_loader_next_on(source->loader, stream, timeout_ns, &batch, err);

    if (status == STK_OK)
        *out = (struct lb_taken){batch, stk_batch_valid_rows(batch), stk_batch_last_of_epoch(batch)};
    return status;
}

static void release_to_loader(struct lb_source *source, const struct lb_taken *taken, stk_stream *stream)
{
    (void)source;
    stk_batch_release_on(taken->batch, stream);
}

static void stats_of_loader(const struct lb_source *source, stk_loader_stats *out)
{
    if (stk_loader_get_stats(source->loader, out, NULL) != STK_OK)
        memset(out, 0, sizeof *out);
}

/* ---- the measurement ---- */

static stk_loader_stats read_stats(const struct lb_source *source)
{
    stk_loader_stats stats = {.struct_size = sizeof stats};

    source->stats(source, &stats);
    return stats;
}

/* Sets a mark to the totals so far. The clock is read last, so that reading the totals is not part of the span that
 * follows. */
static void set_mark(const struct session *session, struct lb_mark *mark)
{
    mark->batches = session->batches;
    mark->samples = session->samples;
    mark->epochs = session->epochs;
    mark->next_ns = session->next_ns;
    mark->consume_ns = session->consume_ns;
    mark->release_ns = session->release_ns;
    mark->record_ns = session->record_ns;
    mark->stats = read_stats(session->source);
    lb_usage_read(&mark->usage);
    mark->at_ns = stki_now_ns();
}

/* Blocks until the work that the consumer has queued for earlier batches is done. */
static stk_status settle(struct session *session, stk_error *err)
{
    return session->consumer->settle ? session->consumer->settle(&session->consumed, err) : STK_OK;
}

/* Blocks until the last steps of a run are done. Counts as the consumer's time. */
static stk_status settle_last(struct session *session, stk_error *err)
{
    const int64_t begin = stki_now_ns();
    const stk_status status = settle(session, err);

    session->consume_ns += stki_now_ns() - begin;
    return status;
}

/* Ends an interval at `mark`, and logs it if there is a log. `begins`: the measurement starts at this mark. */
static void end_interval(struct session *session, const struct lb_mark *mark, bool begins)
{
    struct lb_marks *marks = session->marks;
    const size_t bytes = (size_t)marks->worker_count * sizeof *session->workers;

    if (session->source->loader)
        lb_marks_ask(session->source->loader, marks->worker_count, session->workers);
    lb_marks_add(marks, mark, session->workers, begins);
    if (session->log && mark->at_ns > session->last.at_ns)
        lb_marks_log(session->log, session->repeat, begins || !session->measuring, session->open.at_ns, &session->last,
                     mark, marks->worker_count, session->last_workers, session->workers);
    session->last = *mark;
    memcpy(session->last_workers, session->workers, bytes);
}

static stk_status begin_measuring(struct session *session, stk_error *err)
{
    stk_status status = settle(session, err);
    struct lb_mark mark;

    if (status != STK_OK)
        return status;
    set_mark(session, &mark);
    end_interval(session, &mark, true);
    session->measuring = true;
    session->last_ns = 0;
    lb_load_read(&session->begin_load);
    set_mark(session, &session->begin); /* set again, so that recording the interval is not measured */
    return STK_OK;
}

static void beat(struct session *session)
{
    struct lb_mark mark;

    set_mark(session, &mark);
    end_interval(session, &mark, false);
}

static void show_progress(struct session *session, int64_t now)
{
    const struct lb_bench *bench = session->bench;
    const double batches = (double)(session->batches - session->begin.batches);
    const double elapsed = (double)(now - session->open.at_ns);
    struct lb_progress progress = {.now_ns = now, .samples = session->samples, .done = -1, .left_ns = -1};

    progress.ramp = !session->measuring;
    if (bench->run_time > 0)
        progress.done = elapsed / (double)(bench->ramp + bench->run_time);
    else if (bench->batches > 0)
        progress.done = batches / (double)bench->batches;
    else if (bench->samples > 0)
        progress.done = (double)(session->samples - session->begin.samples) / (double)bench->samples;
    else if (bench->epochs > 0)
        progress.done = lb_ratio(batches, (double)(bench->epochs * session->facts->steps_per_epoch));
    if (progress.done > 0.01) {
        const double whole = elapsed / progress.done, left = whole > elapsed ? whole - elapsed : 0;
        progress.left_ns = (int64_t)(left + whole * (session->live->repeats - session->live->repeat));
    }
    stk_loader_stats stats = read_stats(session->source);

    lb_live_draw(session->live, &progress, &stats);
}

/* Requests the next batch with short timeouts, and updates the live line between them. STK_AGAIN: stopped without a
 * batch. */
static stk_status next_batch(struct session *session, int64_t before, struct lb_taken *taken, stk_error *err)
{
    const int64_t deadline = session->timeout_ns < 0 ? INT64_MAX : before + session->timeout_ns;
    int64_t left = deadline - before;

    for (;;) {
        const stk_status status = session->source->next(session->source, session->consumed.stream,
                                                        left < SLICE_NS ? left : SLICE_NS, taken, err);
        if (status != STK_E_TIMEOUT)
            return status;
        const int64_t now = stki_now_ns();
        left = deadline - now;
        if (lb_stop_asked)
            return STK_AGAIN;
        if (left <= 0)
            return status;
        if (now >= session->live->due_ns)
            show_progress(session, now);
    }
}

/* Whether the run ends here, without requesting another batch. */
static bool is_over(const struct session *session, int64_t now, enum lb_ending *ending)
{
    const struct lb_bench *bench = session->bench;

    if (lb_stop_asked)
        *ending = LB_END_SIGNAL;
    else if (!session->measuring)
        return false;
    else if (bench->run_time > 0 && now - session->begin.at_ns >= bench->run_time)
        *ending = LB_END_TIME;
    else if (bench->epochs > 0 && session->epochs - session->begin.epochs >= bench->epochs)
        *ending = LB_END_EPOCHS;
    else if (bench->batches > 0 && session->batches - session->begin.batches >= bench->batches)
        *ending = LB_END_BATCHES;
    else if (bench->samples > 0 && session->samples - session->begin.samples >= bench->samples)
        *ending = LB_END_SAMPLES;
    else
        return false;
    return true;
}

/* Passes a batch to the consumer and releases it. `after` is the time at which the batch was received. */
static stk_status take(struct session *session, const struct lb_taken *taken, int64_t after, stk_error *err)
{
    const bool steps = session->source->step && session->bench->consumer == LB_CONSUMER_STEP;

    if (steps)
        session->source->step(session->source, true);
    const stk_status status = session->consumer->take(&session->consumed, taken->batch, err);
    if (steps)
        session->source->step(session->source, false);
    const int64_t consumed = stki_now_ns();

    session->batches++;
    session->samples += taken->samples;
    session->epochs += taken->last_of_epoch;
    session->source->release(session->source, taken, session->consumed.stream);
    session->last_take_ns = after;
    session->consume_ns += consumed - after;
    const int64_t released = stki_now_ns();
    session->release_ns += released - consumed;
    if (session->first_end_ns == 0)
        session->first_end_ns = released;
    if (session->begin_first_end_ns == 0 && session->measuring)
        session->begin_first_end_ns = released;
    return status;
}

static void note_next(struct session *session, struct lb_repeat *repeat, int64_t before, int64_t after)
{
    const bool measuring = session->measuring;

    stki_histogram_add(measuring ? &repeat->steady_waits : &repeat->whole_waits, after - before);
    if (session->last_ns != 0)
        stki_histogram_add(measuring ? &repeat->steady_gaps : &repeat->whole_gaps, after - session->last_ns);
    session->last_ns = after;
    session->next_ns += after - before;
    if (repeat->steady.first_batch_ns == 0)
        repeat->steady.first_batch_ns = after - session->open.at_ns;
}

static stk_status loop(struct session *session, struct lb_repeat *repeat, stk_error *err)
{
    const int64_t ramp_end = session->open.at_ns + session->bench->ramp;
    struct lb_run *out = &repeat->steady;
    bool boundary = true;

    for (;;) {
        struct lb_taken taken;
        int64_t before = stki_now_ns();
        stk_status status = STK_OK;
        if (!session->measuring && before >= ramp_end && (boundary || session->bench->epochs == 0)) {
            status = begin_measuring(session, err);
            before = session->begin.at_ns;
        } else if (before >= session->marks->due_ns) {
            const int64_t begin = before;
            beat(session);
            before = stki_now_ns();
            session->record_ns += before - begin;
        }
        if (status != STK_OK)
            return status;
        if (is_over(session, before, &out->ending))
            return STK_OK;
        if (before >= session->live->due_ns) {
            const int64_t begin = before;
            show_progress(session, before);
            before = stki_now_ns(); /* drawing does not count as waiting for a batch */
            session->record_ns += before - begin;
        }
        status = next_batch(session, before, &taken, err);
        if (status == STK_END || status == STK_AGAIN) {
            out->ending = status == STK_END ? LB_END_DATA : LB_END_SIGNAL;
            return STK_OK;
        }
        if (status != STK_OK)
            return status;
        const int64_t after = stki_now_ns();
        note_next(session, repeat, before, after);
        boundary = taken.last_of_epoch;
        status = take(session, &taken, after, err);
        if (status != STK_OK)
            return status;
    }
}

struct lb_waits lb_waits_of(const stki_histogram *histogram)
{
    return (struct lb_waits){
        .count = stki_counted(&histogram->count),
        .p50_ns = stki_histogram_quantile(histogram, 0.5),
        .p90_ns = stki_histogram_quantile(histogram, 0.9),
        .p99_ns = stki_histogram_quantile(histogram, 0.99),
        .p999_ns = stki_histogram_quantile(histogram, 0.999),
        .max_ns = stki_counted(&histogram->max),
    };
}

/* Returns the number of batches that are ready but not delivered. */
static int64_t ready_batches(const stk_loader_stats *stats)
{
    return stats->slots_ready + stats->device_slots_ready;
}

static void account(const struct lb_mark *from, const struct lb_mark *to, const stki_histogram *waits,
                    const stki_histogram *gaps, int64_t first_end_ns, struct lb_run *out)
{
    out->elapsed_ns = to->at_ns - from->at_ns;
    out->stats = to->stats;
    lb_stats_since(&out->stats, &from->stats);
    lb_stats_fit(&out->stats, out->elapsed_ns);
    out->usage = lb_usage_since(&to->usage, &from->usage);
    out->batches = to->batches - from->batches;
    out->made_batches = out->batches + ready_batches(&to->stats) - ready_batches(&from->stats);
    out->samples = to->samples - from->samples;
    out->epochs = to->epochs - from->epochs;
    out->next_ns = to->next_ns - from->next_ns;
    out->consume_ns = to->consume_ns - from->consume_ns;
    out->release_ns = to->release_ns - from->release_ns;
    out->record_ns = to->record_ns - from->record_ns;
    out->own_ns = out->elapsed_ns - out->next_ns - out->consume_ns - out->release_ns - out->record_ns;
    out->waits = lb_waits_of(waits);
    out->gaps = lb_waits_of(gaps);
    out->au_steps = first_end_ns > 0 ? out->batches - 1 : 0;
    out->au_span_ns = first_end_ns > 0 ? to->at_ns - first_end_ns : 0;
}

/* Excludes a step that a signal has interrupted. */
static void leave_out_cut_step(const struct session *session, const struct lb_mark *end, struct lb_run *out)
{
    if (!session->consumed.cut || out->au_steps < 1)
        return;
    out->au_steps--;
    out->au_span_ns -= end->at_ns - session->last_take_ns;
}

/* Sets the figures that are unknown for sources other than a loader to -1. */
static void set_unknown(struct lb_run *run)
{
    run->usage.allocations = -1;
    run->stats.slot_bytes = -1;
}

static void finish(struct session *session, struct lb_repeat *out)
{
    const int64_t end_ns = stki_now_ns();
    struct lb_load end_load;
    struct lb_mark end;

    set_mark(session, &end);
    /* for a run that ended before the first batch after the ramp, only the ramp can be reported */
    const bool measured = session->measuring && end.batches > session->begin.batches;
    lb_load_read(&end_load);
    const double quota = stki_cgroup_cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    end.at_ns = end_ns; /* the span ends before the other values are read */
    end_interval(session, &end, false);
    lb_memory_read(&out->steady.memory);
    out->steady.within_ramp = !measured;
    out->steady.checksum = session->consumed.checksum;
    if (!session->source->loader || stk_loader_digest(session->source->loader, &out->steady.digest, NULL) != STK_OK)
        out->steady.digest.end_step = -1;
    out->whole = out->steady;
    stki_histogram_merge(&out->whole_waits, &out->steady_waits);
    stki_histogram_merge(&out->whole_gaps, &out->steady_gaps);
    account(&session->open, &end, &out->whole_waits, &out->whole_gaps, session->first_end_ns, &out->whole);
    lb_others_between(&session->open_load, &end_load, quota, &out->whole.others);
    out->whole.steady = lb_steady_of(session->marks, 0);
    out->steady.ramp_ns = session->begin.at_ns - session->open.at_ns;
    if (measured) {
        account(&session->begin, &end, &out->steady_waits, &out->steady_gaps, session->begin_first_end_ns,
                &out->steady);
        lb_others_between(&session->begin_load, &end_load, quota, &out->steady.others);
        out->steady.steady = lb_steady_of(session->marks, session->marks->first);
    } else {
        const int64_t ramp_ns = out->steady.ramp_ns;
        out->steady = out->whole;
        out->steady.ramp_ns = ramp_ns;
    }
    leave_out_cut_step(session, &end, &out->steady);
    leave_out_cut_step(session, &end, &out->whole);
    if (!session->source->loader) {
        set_unknown(&out->steady);
        set_unknown(&out->whole);
    }
}

/* Lists the names of a batch's tensors. A field of varying shape has two tensors. */
static void name_tensors(struct session *session)
{
    for (int i = 0; i < session->facts->field_count; i++) {
        const struct lb_field *field = &session->facts->fields[i];
        for (int k = 0; k < (field->varies ? 2 : 1); k++) {
            const int n = session->consumed.field_count++;
            snprintf(session->part_names[n], sizeof session->part_names[n], "%s%s", field->name,
                     !field->varies ? ""
                     : k == 0       ? ".values"
                                    : ".offsets");
            session->names[n] = session->part_names[n];
        }
    }
    session->consumed.field_names = session->names;
}

/* Returns the length of an interval. The default is a sixtieth of the run time, between 10 ms and 1 s; 0.1 s if there
 * is no run time. */
static int64_t interval_of(const struct lb_bench *bench)
{
    const int64_t least = STKI_SECOND / 100, wanted = bench->run_time / 60;

    if (bench->interval >= 0)
        return bench->interval;
    if (bench->run_time == 0)
        return STKI_SECOND / 10;
    return wanted < least ? least : wanted > STKI_SECOND ? STKI_SECOND : wanted;
}

static stk_status prepare_intervals(struct session *session, stk_error *err)
{
    const int workers = session->open.stats.workers > 0 ? (int)session->open.stats.workers : 1;
    stk_status status = lb_marks_create(workers, interval_of(session->bench), &session->marks, err);

    if (status != STK_OK)
        return status;
    session->workers = stki_zalloc_array(workers, sizeof *session->workers);
    session->last_workers = stki_zalloc_array(workers, sizeof *session->workers);
    if (!session->workers || !session->last_workers)
        return stki_fail_memory(err, workers * (int64_t)sizeof *session->workers, "the intervals");
    end_interval(session, &session->open, false);
    return STK_OK;
}

static stk_status open_session(const struct lb_config *config, struct lb_facts *facts, struct session *session,
                               stk_error *err)
{
    struct lb_usage usage;
    int64_t open_ns, allocations;
    stk_status status;

    lb_load_read(&session->open_load);
    lb_usage_read(&usage); /* read before opening, which may also read from the disk */
    open_ns = stki_now_ns();
    status = session->source->open(session->source, err);

    if (status != STK_OK)
        return status;
    session->timeout_ns = session->source->loader ? facts->effective.timeout_ns : -1;
    name_tensors(session);
    session->consumed.step_ns = config->bench.step_time;
    snprintf(session->consumed.device, sizeof session->consumed.device, "%s", facts->effective.device);
    if (session->consumer->begin && (status = session->consumer->begin(&session->consumed, err)) != STK_OK)
        return status;
    set_mark(session, &session->open);
    allocations = session->open.usage.allocations; /* excludes those of opening, because only opening should allocate */
    session->open.usage = usage;
    session->open.usage.allocations = allocations;
    session->open.at_ns = open_ns;
    session->begin = session->last = session->open;
    session->begin_load = session->open_load;
    return prepare_intervals(session, err);
}

/* Returns the error for a run without batches. If an epoch has steps but the data ended immediately, the run was
 * resumed at its end. */
static stk_status no_batch(const struct lb_config *config, const struct session *session, enum lb_ending ending,
                           stk_error *err)
{
    if (ending == LB_END_SIGNAL)
        return STK_END;
    if (ending == LB_END_DATA && session->batches == 0 && session->facts->steps_per_epoch > 0)
        return stki_fail(err, STK_E_EMPTY,
                         "%s: the loader delivered no batch, because the state in loader.resume_from is at the end of "
                         "the run; remove this key to start again, or raise loader.num_epochs",
                         config->path);
    return stki_fail(err, STK_E_EMPTY, "%s: the loader delivered no batch", config->path);
}

static void end_session(struct session *session, struct lb_facts *facts, struct lb_repeat *out)
{
    lb_facts_add_notes(facts, session->source->loader);
    stk_loader_destroy(session->source->loader);
    session->source->loader = NULL;
    if (session->consumer->end)
        session->consumer->end(&session->consumed);
    out->marks = session->marks;
    stki_free(session->workers);
    stki_free(session->last_workers);
    stki_free(session);
}

stk_status lb_run(const struct lb_config *config, struct lb_live *live, struct lb_facts *facts, int repeat,
                  struct lb_log *intervals, struct lb_repeat *out, stk_error *err)
{
    struct loader_source of_config = {
        .base = {open_loader, close_loader, next_of_loader, release_to_loader, stats_of_loader, NULL, NULL},
        .config = config,
        .facts = facts};
    struct session *session = stki_zalloc(sizeof *session);
    stk_status status = STK_OK;

    memset(out, 0, sizeof *out);
    stki_histogram_init(&out->steady_waits);
    stki_histogram_init(&out->whole_waits);
    stki_histogram_init(&out->steady_gaps);
    stki_histogram_init(&out->whole_gaps);
    if (!session)
        return stki_fail_memory(err, sizeof *session, "a run");
    session->bench = &config->bench;
    session->source = config->source ? config->source : &of_config.base;
    session->facts = facts;
    session->live = live;
    session->log = intervals;
    session->repeat = repeat;
    session->consumer = &lb_consumers[config->bench.consumer];
    if (!config->source && !facts->data_known)
        status = lb_prepare_files(config, facts, err);
    if (status == STK_OK && !config->source)
        status = lb_prepare_cache(config, facts, &out->steady.before, err);
    if (status == STK_OK && lb_stop_asked)
        status = STK_END;
    lb_memory_reset_peak();
    if (status == STK_OK)
        status = open_session(config, facts, session, err);
    if (status == STK_OK)
        status = loop(session, out, err);
    if (status == STK_OK)
        status = settle_last(session, err);
    if (status == STK_OK)
        finish(session, out);
    if (status == STK_OK && out->steady.batches == 0)
        status = no_batch(config, session, out->steady.ending, err);
    lb_live_clear(live);
    if (status == STK_OK)
        status = session->source->close(session->source, err); /* it is an error if a worker does not stop */
    if (status == STK_OK && !config->source)
        status = lb_residency_read(&facts->data, &out->steady.after, err);
    out->whole.after = out->steady.after;
    end_session(session, facts, out);
    return status;
}
