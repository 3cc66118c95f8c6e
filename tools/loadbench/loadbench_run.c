/* loadbench_run.c: the measuring loop. Two clock readings a batch, around stk_loader_next; everything else that is
 * asked of the loader or the system is asked before the measurement begins and after it has ended.
 *
 * A measurement begins at the first batch boundary after the ramp (with `epochs`, at the first epoch boundary) and ends
 * at a batch boundary, so that whole batches are divided by the time they took. */
#include "loadbench_run.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "loadbench_clocks.h"
#include "loadbench_consumer.h"
#include "loadbench_device.h"
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

/* A moment of a repeat, and what had come by then since the opening. */
struct mark {
    int64_t at_ns, batches, samples, epochs, next_ns;
    struct lb_usage usage;
    stk_loader_stats stats;
};

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
    int64_t timeout_ns;
    int64_t batches, samples, epochs, next_ns; /* since the opening */
    bool measuring;
    struct mark open, begin; /* `begin` is `open` until the measurement begins */
};

static stk_loader_stats read_stats(const stk_loader *loader)
{
    stk_loader_stats stats = {.struct_size = sizeof stats};

    if (stk_loader_get_stats(loader, &stats, NULL) != STK_OK)
        memset(&stats, 0, sizeof stats);
    return stats;
}

/* What has come until now. The clock is read last, so that the reading of the rest is before the span that begins. */
static void set_mark(const struct session *session, struct mark *mark)
{
    mark->batches = session->batches;
    mark->samples = session->samples;
    mark->epochs = session->epochs;
    mark->next_ns = session->next_ns;
    mark->stats = read_stats(session->loader);
    lb_usage_read(&mark->usage);
    mark->at_ns = stki_now_ns();
}

/* What the consumer still has in its queue belongs to the batches before. */
static stk_status settle(struct session *session, stk_error *err)
{
    return session->consumer->settle ? session->consumer->settle(&session->consumed, err) : STK_OK;
}

static stk_status begin_measuring(struct session *session, stk_error *err)
{
    const stk_status status = settle(session, err);

    session->measuring = true;
    set_mark(session, &session->begin);
    return status;
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
    else if (bench->epochs > 0)
        progress.done = lb_ratio(batches, (double)(bench->epochs * session->facts->steps_per_epoch));
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
        const stk_status status = stk_loader_next_on(session->loader, session->consumed.stream,
                                                     left < SLICE_NS ? left : SLICE_NS, batch, err);
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
    else if (bench->run_time > 0 && now - session->begin.at_ns >= bench->run_time)
        *ending = LB_END_TIME;
    else if (bench->epochs > 0 && session->epochs - session->begin.epochs >= bench->epochs)
        *ending = LB_END_EPOCHS;
    else if (bench->batches > 0 && session->batches - session->begin.batches >= bench->batches)
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
    session->epochs += *last_of_epoch;
    stk_batch_release_on(batch, session->consumed.stream);
    return status;
}

static stk_status loop(struct session *session, struct lb_repeat *repeat, stk_error *err)
{
    const int64_t ramp_end = session->open.at_ns + session->bench->ramp;
    struct lb_run *out = &repeat->steady;
    bool boundary = true;

    for (;;) {
        stk_batch *batch = NULL;
        int64_t before = stki_now_ns();
        if (!session->measuring && before >= ramp_end && (boundary || session->bench->epochs == 0)) {
            const stk_status begun = begin_measuring(session, err);
            if (begun != STK_OK)
                return begun;
            before = session->begin.at_ns;
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
        stki_histogram_add(session->measuring ? &repeat->steady_waits : &repeat->whole_waits, after - before);
        session->next_ns += after - before;
        if (out->first_batch_ns == 0)
            out->first_batch_ns = after - session->open.at_ns;
        status = take(session, batch, &boundary, err);
        if (status != STK_OK)
            return status;
    }
}

/* What came between two moments. */
static void account(const struct mark *from, const struct mark *to, const stki_histogram *waits, struct lb_run *out)
{
    out->elapsed_ns = to->at_ns - from->at_ns;
    out->stats = to->stats;
    lb_stats_since(&out->stats, &from->stats);
    lb_stats_fit(&out->stats, out->elapsed_ns);
    out->usage.user_ns = to->usage.user_ns - from->usage.user_ns;
    out->usage.system_ns = to->usage.system_ns - from->usage.system_ns;
    out->usage.disk_bytes = to->usage.disk_bytes < 0 ? -1 : to->usage.disk_bytes - from->usage.disk_bytes;
    out->batches = to->batches - from->batches;
    out->samples = to->samples - from->samples;
    out->epochs = to->epochs - from->epochs;
    out->next_ns = to->next_ns - from->next_ns;
    out->waits.p50_ns = stki_histogram_quantile(waits, 0.5);
    out->waits.p90_ns = stki_histogram_quantile(waits, 0.9);
    out->waits.p99_ns = stki_histogram_quantile(waits, 0.99);
    out->waits.max_ns = stki_counted(&waits->max);
}

static void finish(struct session *session, struct lb_repeat *out)
{
    const int64_t end_ns = stki_now_ns();
    struct mark end;

    set_mark(session, &end);
    end.at_ns = end_ns; /* the span ends before the rest is read */
    lb_memory_read(&out->steady.memory);
    out->steady.within_ramp = !session->measuring;
    out->steady.checksum = session->consumed.checksum;
    if (stk_loader_digest(session->loader, &out->steady.digest, NULL) != STK_OK)
        out->steady.digest.end_step = -1;
    out->whole = out->steady;
    stki_histogram_merge(&out->whole_waits, &out->steady_waits);
    account(&session->open, &end, &out->whole_waits, &out->whole);
    out->steady.ramp_ns = session->begin.at_ns - session->open.at_ns;
    account(&session->begin, &end, session->measuring ? &out->steady_waits : &out->whole_waits, &out->steady);
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

/* A fault that names no file is the config's, although only the data brought it to light: a batch larger than they are,
 * memory for less than a batch, indices beyond them. */
static stk_status blame(stk_error *err)
{
    const bool by_config = err->status == STK_E_EMPTY || err->status == STK_E_RANGE || err->status == STK_E_LIMIT;

    if (by_config && err->file[0] == '\0')
        err->status = STK_E_CONFIG;
    return err->status;
}

static stk_status open_loader(const struct lb_config *config, struct lb_facts *facts, stk_loader **out, stk_error *err)
{
    const bool first = !facts->options_json;
    stk_error changed;
    char convert[64] = "";
    int count = config->loader_set_count;
    stk_status status;

    if (!first)
        lb_device_convert(facts->options_json, convert, sizeof convert);
    if (convert[0])
        config->loader_sets[count++] = convert; /* there is room for it; only for this call */
    status = stk_loader_open_file(config->path, config->loader_sets, count, out, err);

    if (first)
        return status == STK_OK ? lb_facts_read(*out, config->path, facts, err) : blame(err);
    if (lb_facts_check(status == STK_OK ? *out : NULL, facts, &changed) != STK_OK) {
        *err = changed; /* also where it does not open: this is why */
        return changed.status;
    }
    return status;
}

static stk_status open_session(const struct lb_config *config, struct lb_facts *facts, struct session *session,
                               stk_error *err)
{
    const int64_t open_ns = stki_now_ns();
    stk_status status = open_loader(config, facts, &session->loader, err);

    if (status != STK_OK)
        return status;
    session->timeout_ns = timeout_of(facts->options_json);
    name_tensors(session);
    session->consumed.step_ns = config->bench.step_time;
    lb_device_name(facts->options_json, session->consumed.device, sizeof session->consumed.device);
    if (session->consumer->begin && (status = session->consumer->begin(&session->consumed, err)) != STK_OK)
        return status;
    set_mark(session, &session->open);
    session->open.at_ns = open_ns;
    session->begin = session->open;
    return STK_OK;
}

/* Where an epoch has steps and yet the end came at once, the saved position stood there. */
static stk_status no_batch(const struct lb_config *config, const struct session *session, enum lb_ending ending,
                           stk_error *err)
{
    if (ending == LB_END_SIGNAL)
        return STK_END;
    if (ending == LB_END_DATA && session->batches == 0 && session->facts->steps_per_epoch > 0)
        return stki_fail(err, STK_E_EMPTY,
                         "%s: no batch came: the state that loader.resume_from goes on from stands at the end of the "
                         "run; leave it out to begin anew, or raise loader.num_epochs",
                         config->path);
    return stki_fail(err, STK_E_EMPTY, "%s: no batch came", config->path);
}

stk_status lb_run(const struct lb_config *config, struct lb_live *live, struct lb_facts *facts, struct lb_repeat *out,
                  stk_error *err)
{
    struct session *session = stki_zalloc(sizeof *session);
    stk_status status = STK_OK;

    memset(out, 0, sizeof *out);
    stki_histogram_init(&out->steady_waits);
    stki_histogram_init(&out->whole_waits);
    if (!session)
        return stki_fail_memory(err, sizeof *session, "a run");
    session->bench = &config->bench;
    session->facts = facts;
    session->live = live;
    session->consumer = &lb_consumers[config->bench.consumer];
    lb_memory_reset_peak();
    status = open_session(config, facts, session, err);
    if (status == STK_OK)
        status = loop(session, out, err);
    if (status == STK_OK)
        status = settle(session, err);
    if (status == STK_OK)
        finish(session, out);
    if (status == STK_OK && out->steady.batches == 0)
        status = no_batch(config, session, out->steady.ending, err);
    lb_live_clear(live);
    if (status == STK_OK)
        status = stk_loader_close(session->loader, err); /* a worker that does not stop is a failure */
    stk_loader_destroy(session->loader);
    if (session->consumer->end)
        session->consumer->end(&session->consumed);
    stki_free(session);
    return status;
}
