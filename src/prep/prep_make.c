/* prep_make.c: produces the units of a job. Rows are taken from the loader, pushed to the pool that encodes them and
 * passes them to the observers of statistics, and popped in order; the main thread then appends them while the next
 * rows are being produced.
 *
 * Several batches are in flight, even across the ends of pieces and units, so that threads remain busy. A queue records
 * the pushed runs of rows with their pieces. */
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "failed.h"
#include "prep_file.h"
#include "prep_run.h"
#include "rows_images.h"
#include "spool.h"
#include "stays.h"
#include "text_json.h"
#include <inttypes.h>
#include <string.h>

enum { FLUSHES = 2 };

/* A run of rows that has been pushed to the pool. */
struct pushed {
    stki_run_of_rows run;
    stki_skipped_list skipped; /* skipped by the loader */
    int64_t *positions;
    int64_t piece, unit;
    bool ends_piece, ends_unit;
};

struct maker {
    stki_prep_run *run;
    struct pushed queue[STKI_PREP_DEPTH + 1];
    int64_t first, count;        /* first entry and length of the queue */
    stki_finish_source *sources; /* rows of a batch, per field */

    int64_t unit, end_unit; /* next unit to push, and the end */
    int64_t piece, position, piece_end, unit_end, unit_end_piece;
    bool unit_open;

    int64_t open_unit, written; /* unit being written, -1: none; its bytes so far */
    stki_outlet *outlet;
    stki_spool_writer *spool;
    stki_seen **seen;        /* statistics of the piece */
    json_t *skipped, *stays; /* skipped and unencoded rows of the piece */
    int64_t rows, failed;    /* rows of the piece; failed samples of all units so far */
};

/* ---- limit on failed samples ---- */

static stk_status note_skipped(struct maker *m, const stki_skipped *s, stk_error *err)
{
    json_t *json =
        json_pack("{s:I, s:I, s:s, s:o}", "position", (json_int_t)s->position, "sample", (json_int_t)s->sample,
                  "reason", stk_status_name(s->error.status), "message", stki_text_json(s->error.message));

    if (json && s->error.file[0])
        json_object_set_new(json, "file", stki_text_json(s->error.file));
    if (json && s->error.record >= 0)
        json_object_set_new(json, "record", json_integer(s->error.record));
    if (!json || json_array_append_new(m->skipped, json) != 0)
        return stki_fail_memory(err, 256, "the list of failed samples");
    m->failed++;
    m->run->progress.failed_rows++;
    return stki_prep_check_failed(m->run, m->failed, &s->error, err);
}

stk_status stki_prep_check_failed(const stki_prep_run *run, int64_t failed, const stk_error *last, stk_error *err)
{
    const int64_t allowed = stki_prep_allowed(run), most = run->job->prep.max_errors;

    if (failed <= allowed)
        return STK_OK;
    return stki_failed_over(last, failed, STKI_TEXT("at most %" PRId64, allowed),
                            most >= 0 && allowed == most ? "prep.max_errors" : "prep.max_error_fraction", err);
}

int64_t stki_prep_allowed(const stki_prep_run *run)
{
    const stki_prep_section *prep = &run->job->prep;
    const int64_t share = stki_failed_most(prep->max_error_fraction, run->cuts.positions);

    return prep->max_errors >= 0 && prep->max_errors < share ? prep->max_errors : share;
}

/* ---- writing units ---- */

static void unit_range(const stki_prep_run *run, int64_t unit, int64_t *first, int64_t *end, int64_t *first_piece,
                       int64_t *end_piece)
{
    if (run->mode != STKI_PREP_SPOOLED) {
        stki_cut_of_shard(&run->cuts, run->mode == STKI_PREP_SHARDS ? unit : 0, first, end, first_piece, end_piece);
        return;
    }
    stki_cut(&run->cuts, unit, first, end);
    *first_piece = unit;
    *end_piece = unit + 1;
}

/* Checks that `position` is the first one of the unit that has not been written. The caller holds the lock of the
 * unit, but read its progress before, when another process may have been writing it. */
static stk_status check_position(const stki_prep_run *run, int64_t unit, int64_t position, stk_error *err)
{
    int64_t first, end, first_piece, end_piece, rows;
    bool done;
    stk_status status = stki_prep_unit_done(run, unit, &done, &rows, err);

    unit_range(run, unit, &first, &end, &first_piece, &end_piece);
    if (status != STK_OK || first + rows == position)
        return status;
    return stki_fail_at(err, STK_E_BUSY, (stki_place){run->work, -1, -1, NULL, NULL},
                        "another process has written rows that this one was about to write: run the job again when no "
                        "other process is running it");
}

static stk_status open_outlet(struct maker *m, int64_t unit, int64_t position, stk_error *err)
{
    stki_prep_run *run = m->run;
    int64_t first, end, first_piece, end_piece;
    char *journal = stki_work_journal(run, unit);
    json_t *lines = NULL;
    stk_status status;

    unit_range(run, unit, &first, &end, &first_piece, &end_piece);
    status = journal ? stki_outlet_open(&(stki_outlet_opts){.job = run->job,
                                                            .fields = run->sink_fields,
                                                            .field_count = run->field_count,
                                                            .making = run->making,
                                                            .shard = run->mode == STKI_PREP_SHARDS ? unit : -1,
                                                            .shard_bytes = run->job->output.shard_bytes,
                                                            .shard_most = stki_prep_shard_most(run),
                                                            .most_rows = end - first,
                                                            .first_row = first,
                                                            .may_skip = run->job->prep.on_error == STKI_JOB_SKIP,
                                                            .threads = run->threads,
                                                            .journal = journal},
                                        false, run->flusher, &m->outlet, &lines, err)
                     : stki_fail_memory(err, 256, "a path");
    stki_free(journal);
    json_decref(lines);
    return status == STK_OK ? check_position(run, unit, position, err) : status;
}

static stk_status open_spool(struct maker *m, int64_t piece, stk_error *err)
{
    char *path = stki_work_piece(m->run, piece);
    stk_status status =
        path ? stki_spool_create(path, m->run->field_count, &m->spool, err) : stki_fail_memory(err, 256, "a path");

    stki_free(path);
    return status;
}

/* position: that of the next row to be written. */
static stk_status open_unit(struct maker *m, int64_t unit, int64_t position, stk_error *err)
{
    stk_status status =
        m->run->mode == STKI_PREP_SPOOLED ? open_spool(m, unit, err) : open_outlet(m, unit, position, err);

    m->open_unit = status == STK_OK ? unit : -1;
    m->written = 0;
    return status;
}

/* Returns the total time spent waiting for the flusher, which does not count as writing. */
static int64_t sync_wait(stki_prep_run *run)
{
    run->progress.wait_sync_ns = stki_flusher_waited_ns(run->flusher);
    return run->progress.wait_sync_ns;
}

/* A task of the flusher that syncs a spooled piece. */
struct spool_flush {
    stki_flush flush;
    stki_spool_writer *spool;
    json_t *line;
};

static stk_status run_spool_flush(stki_flush *base, stk_error *err)
{
    struct spool_flush *flush = (struct spool_flush *)(void *)base;
    stki_spool_writer *spool = flush->spool;

    flush->spool = NULL;
    return stki_spool_commit(spool, flush->line, err);
}

static void drop_spool_flush(stki_flush *base)
{
    struct spool_flush *flush = (struct spool_flush *)(void *)base;

    stki_spool_abort(flush->spool);
    json_decref(flush->line);
    stki_free(flush);
}

static stk_status end_spool(struct maker *m, json_t *line, stk_error *err)
{
    struct spool_flush *flush = stki_zalloc(sizeof *flush);

    if (!flush) {
        json_decref(line);
        return stki_fail_memory(err, sizeof *flush, "a task");
    }
    *flush = (struct spool_flush){{.run = run_spool_flush, .drop = drop_spool_flush}, m->spool, line};
    m->spool = NULL;
    return stki_flusher_put(m->run->flusher, &flush->flush, err);
}

static json_t *seen_of_piece(struct maker *m)
{
    const stki_prep_run *run = m->run;
    json_t *list = json_array();

    for (int i = 0; i < run->observer_count; i++) {
        const stki_observer *observer = run->observers[i];
        json_t *saved = m->seen[i] ? observer->ops->save(observer, m->seen[i]) : json_null();

        observer->ops->drop(observer, m->seen[i]);
        m->seen[i] = NULL;
        if (!saved || json_array_append_new(list, saved) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static stk_status end_piece(struct maker *m, const struct pushed *p, stk_error *err)
{
    stki_prep_run *run = m->run;
    json_t *line = json_pack("{s:I, s:I, s:I, s:O}", "piece", (json_int_t)p->piece, "end", (json_int_t)p->run.end,
                             "rows", (json_int_t)m->rows, "skipped", m->skipped);
    const int64_t waited = sync_wait(run), begin = stki_now_ns();
    stk_status status;

    if (line && json_object_size(m->stays) > 0 && json_object_set(line, "stays", m->stays) != 0) {
        json_decref(line);
        line = NULL;
    }
    if (line && run->observer_count > 0 && json_object_set_new(line, "seen", seen_of_piece(m)) != 0) {
        json_decref(line);
        line = NULL;
    }
    if (!line)
        return stki_fail_memory(err, 256, "a journal");
    json_decref(m->skipped);
    json_decref(m->stays);
    m->skipped = json_array();
    m->stays = json_object();
    m->rows = 0;
    if (m->spool)
        status = end_spool(m, line, err);
    else
        status = stki_outlet_mark(m->outlet, line, err);
    run->progress.write_ns += stki_now_ns() - begin - (sync_wait(run) - waited);
    run->progress.pieces++;
    return status;
}

static stk_status end_unit(struct maker *m, stk_error *err)
{
    stki_outlet *outlet = m->outlet;

    m->open_unit = -1;
    m->outlet = NULL;
    return outlet ? stki_outlet_finish(outlet, err) : STK_OK;
}

/* ---- popping ---- */

static stk_status append(struct maker *m, const stki_finished *finished, stk_error *err)
{
    stki_prep_run *run = m->run;
    const int64_t begin = stki_now_ns(), waited = sync_wait(run), before = m->written;
    stk_status status = m->spool ? stki_spool_append(m->spool, finished->values, finished->rows, err)
                                 : stki_outlet_append(m->outlet, finished->values, finished->rows, err);

    m->written = m->spool ? stki_spool_written(m->spool) : stki_outlet_written(m->outlet);
    run->progress.bytes_out += m->written - before;
    run->progress.write_ns += stki_now_ns() - begin - (sync_wait(run) - waited);
    m->rows += finished->rows;
    if (status == STK_OK)
        status = stki_stays_count(m->stays, run->sink_fields, run->field_count, finished->values, finished->rows, err);
    return status;
}

/* Records failures of loader and encoders, ordered by position. */
static stk_status note_failures(struct maker *m, struct pushed *p, const stki_finished *finished, stk_error *err)
{
    const bool skips = m->run->job->prep.on_error == STKI_JOB_SKIP;
    const stk_batch *batch = p->run.held->batch;
    int64_t i = 0, k = 0;
    stk_status status = STK_OK;

    while ((i < p->skipped.count || k < finished->failed) && status == STK_OK) {
        const stki_finish_failure *f = k < finished->failed ? &finished->failures[k] : NULL;
        const int64_t position = f ? batch->positions[p->run.first + f->row].draw : INT64_MAX;

        if (i < p->skipped.count && p->skipped.items[i].position < position) {
            status = note_skipped(m, &p->skipped.items[i++], err);
            continue;
        }
        if (!skips || !stki_failed_may_settle(f->error.status)) {
            if (err)
                *err = f->error;
            return f->error.status;
        }
        status = note_skipped(m, &(stki_skipped){position, f->sample, f->error}, err);
        k++;
    }
    return status;
}

/* Appends rows from the pool to the sink. */
static stk_status take(struct maker *m, struct pushed *p, stki_finished *finished, stk_error *err)
{
    stk_status status = m->open_unit == p->unit ? STK_OK : open_unit(m, p->unit, p->run.from, err);

    if (status == STK_OK)
        status = note_failures(m, p, finished, err);
    if (status == STK_OK)
        status = append(m, finished, err);
    if (status == STK_OK)
        status = stki_finish_pool_seen(m->run->pool, m->seen, err);
    if (status == STK_OK && p->ends_piece)
        status = end_piece(m, p, err);
    if (status == STK_OK && p->ends_unit)
        status = end_unit(m, err);
    m->run->progress.rows += p->run.end - p->run.from;
    return status;
}

static stk_status pop(struct maker *m, stk_error *err)
{
    stki_prep_run *run = m->run;
    struct pushed *p = &m->queue[m->first % (STKI_PREP_DEPTH + 1)];
    stki_finished finished;
    stk_status status;

    for (;;) {
        const int64_t begin = stki_now_ns();

        status = stki_finish_pool_pop(run->pool, stki_deadline_ns(STKI_SECOND / 10), &finished, err);
        run->progress.wait_finish_ns += stki_now_ns() - begin;
        if (status != STK_AGAIN)
            break;
        status = stki_prep_tick(run, false, err);
        if (status != STK_OK)
            return status;
    }
    if (status != STK_OK)
        return status;
    status = take(m, p, &finished, err);
    stki_finish_pool_release(run->pool);
    stki_row_feed_done(&run->rows, p->run.held);
    p->skipped.count = 0;
    m->first++;
    m->count--;
    return status == STK_OK ? stki_prep_tick(run, false, err) : status;
}

/* ---- pushing ---- */

void stki_prep_sources(const stki_prep_run *run, const stki_run_of_rows *rows, stki_finish_source *sources)
{
    const stk_batch *batch = rows->held->batch;

    for (int f = 0; f < run->field_count; f++) {
        const stki_field_plan *plan = run->fields[f].plan;
        const int64_t *counts = plan->rows->measured ? stki_row_counts(plan, batch->memory) + rows->first : NULL;
        stki_batch_row first = {0};

        if (batch->rows > rows->first)
            stki_slot_row(batch, plan, rows->first, &first);
        sources[f] = (stki_finish_source){.bytes = counts ? stki_slot_values(batch, plan) : first.data,
                                          .step = plan->tensors[0].unit_bytes,
                                          .offsets = counts,
                                          .shapes = first.shape};
    }
}

static stk_status push_rows(struct maker *m, struct pushed *p, stk_error *err)
{
    const stk_batch *batch = p->run.held->batch;

    stki_prep_sources(m->run, &p->run, m->sources);
    for (int64_t r = 0; r < p->run.count; r++)
        p->positions[r] = batch->positions[p->run.first + r].draw;
    return stki_finish_pool_push(m->run->pool,
                                 &(stki_finish_batch){.rows = p->run.count,
                                                      .sources = m->sources,
                                                      .positions = p->positions,
                                                      .samples = batch->indices + p->run.first,
                                                      .lease = p},
                                 err);
}

/* Finds the next unit to produce and the position at which to resume. *found: whether there is one. */
static stk_status next_unit(struct maker *m, bool *found, stk_error *err)
{
    stki_prep_run *run = m->run;
    bool done = true;
    stk_status status = STK_OK;

    for (; m->unit < m->end_unit && status == STK_OK; m->unit++) {
        int64_t first, rows, end, first_piece;

        status = stki_prep_unit_done(run, m->unit, &done, &rows, err);
        if (status != STK_OK || done)
            continue;
        unit_range(run, m->unit, &first, &end, &first_piece, &m->unit_end_piece);
        m->position = first + rows;
        m->unit_end = end;
        m->piece = first_piece + (rows > 0 ? stki_ceil_div(rows, run->cuts.piece_rows) : 0);
        break;
    }
    *found = status == STK_OK && m->unit < m->end_unit;
    m->unit_open = *found;
    if (*found && m->position < m->unit_end)
        stki_row_feed_seek(&run->rows, m->position);
    return status;
}

/* Finishes a unit whose pieces are all on disk. */
static stk_status finish_only(struct maker *m, stk_error *err)
{
    stk_status status = open_unit(m, m->unit, m->position, err);

    if (status == STK_OK)
        status = end_unit(m, err);
    m->unit_open = false;
    m->unit++;
    return status;
}

static stk_status push(struct maker *m, stk_error *err)
{
    stki_prep_run *run = m->run;
    struct pushed *p = &m->queue[(m->first + m->count) % (STKI_PREP_DEPTH + 1)];
    int64_t first, end;
    stk_status status;

    run->began = true;
    stki_cut(&run->cuts, m->piece, &first, &end);
    run->rows.wait_ns = 0;
    status = stki_row_feed_next(&run->rows, end, &p->run, &p->skipped, err);
    run->progress.wait_rows_ns += run->rows.wait_ns;
    if (status != STK_OK)
        return status;
    m->count++;
    p->piece = m->piece;
    p->unit = m->unit;
    p->ends_piece = p->run.end == end;
    p->ends_unit = p->ends_piece && m->piece + 1 == m->unit_end_piece;
    m->position = p->run.end;
    if (p->ends_piece)
        m->piece++;
    if (p->ends_unit) {
        m->unit++;
        m->unit_open = false;
    }
    return push_rows(m, p, err);
}

/* Opens a unit before its first row is produced, so that a process that must not write it fails immediately. */
static stk_status push_opened(struct maker *m, stk_error *err)
{
    stk_status status = m->count > 0 || m->open_unit >= 0 ? STK_OK : open_unit(m, m->unit, m->position, err);

    return status == STK_OK ? push(m, err) : status;
}

/* Returns whether another batch can be pushed; the loader must keep one free slot. */
static bool may_push(const struct maker *m)
{
    const stki_prep_run *run = m->run;

    return stki_finish_pool_has_room(run->pool) &&
           (run->rows.current || stki_row_feed_held(&run->rows) < run->core->slot_count);
}

static stk_status make_units(struct maker *m, stk_error *err)
{
    bool found = true;
    stk_status status = STK_OK;

    while (status == STK_OK && (found || m->count > 0)) {
        if (found && !m->unit_open)
            status = next_unit(m, &found, err);
        if (status != STK_OK)
            break;
        if (found && m->position >= m->unit_end && m->count == 0)
            status = finish_only(m, err);
        else if (found && m->position < m->unit_end && may_push(m))
            status = push_opened(m, err);
        else if (m->count > 0)
            status = pop(m, err);
    }
    return status;
}

/* ---- whole job ---- */

static const char *path_of_sample(void *context, int field, int64_t sample, char *buffer)
{
    const stki_prep_run *run = context;
    int64_t within;
    const stki_reader *shard =
        stki_field_locate(run->fields[field].plan->field, stki_dataset_sample(run->core->dataset, sample), &within);

    return stki_reader_path(shard, within, buffer);
}

stk_status stki_prep_finish_pool(stki_prep_run *run, int depth, bool observed, stki_finish_pool **out, stk_error *err)
{
    stki_finish_field *fields = stki_zalloc_array(run->field_count, sizeof *fields);
    stk_status status;

    if (!fields)
        return stki_fail_memory(err, run->field_count * (int64_t)sizeof *fields, "fields");
    for (int i = 0; i < run->field_count; i++)
        fields[i] = (stki_finish_field){run->fields[i].finisher, run->fields[i].in};
    status = stki_finish_pool_create(&(stki_finish_pool_opts){.fields = fields,
                                                              .field_count = run->field_count,
                                                              .max_rows = run->batch_rows,
                                                              .observers = run->observers,
                                                              .observer_count = observed ? run->observer_count : 0,
                                                              .threads = run->threads,
                                                              .depth = depth,
                                                              .path_of = path_of_sample,
                                                              .context = run,
                                                              .format = run->job->format,
                                                              .sink = stki_prep_sink_opts(run, run->cuts.positions)},
                                     out, err);
    stki_free(fields);
    return status;
}

static stk_status make_pools(stki_prep_run *run, stk_error *err)
{
    stk_status status = stki_prep_finish_pool(run, run->depth, true, &run->pool, err);

    return status == STK_OK ? stki_flusher_create(FLUSHES, &run->flusher, err) : status;
}

static void drop(struct maker *m)
{
    stki_prep_run *run = m->run;

    /* Threads are stopped first, because they use what is freed below. */
    stki_finish_pool_destroy(run->pool);
    stki_flusher_destroy(run->flusher);
    run->pool = NULL;
    run->flusher = NULL;
    for (int i = 0; i <= STKI_PREP_DEPTH; i++) {
        stki_skipped_fini(&m->queue[i].skipped);
        stki_free(m->queue[i].positions);
    }
    stki_outlet_drop(m->outlet);
    stki_spool_abort(m->spool);
    for (int i = 0; m->seen && i < run->observer_count; i++)
        run->observers[i]->ops->drop(run->observers[i], m->seen[i]);
    json_decref(m->skipped);
    json_decref(m->stays);
    stki_free(m->seen);
    stki_free(m->sources);
    stki_free(m);
}

static stk_status reserve(struct maker *m, stk_error *err)
{
    const stki_prep_run *run = m->run;
    bool fits = true;

    m->sources = stki_zalloc_array(run->field_count, sizeof *m->sources);
    m->seen = stki_zalloc_array(run->observer_count + 1, sizeof(stki_seen *));
    m->skipped = json_array();
    m->stays = json_object();
    for (int i = 0; i <= STKI_PREP_DEPTH && fits; i++) {
        m->queue[i].positions = stki_zalloc_array(run->batch_rows, sizeof(int64_t));
        fits = m->queue[i].positions != NULL;
    }
    return fits && m->sources && m->seen && m->skipped && m->stays
               ? STK_OK
               : stki_fail_memory(err, run->batch_rows * 8 * STKI_PREP_DEPTH, "a job");
}

stk_status stki_prep_make(stki_prep_run *run, int64_t first, int64_t end, stk_error *err)
{
    struct maker *m = stki_zalloc(sizeof *m);
    stk_status status;

    if (!m)
        return stki_fail_memory(err, (int64_t)sizeof *m, "a job");
    m->run = run;
    m->unit = first;
    m->end_unit = end;
    m->open_unit = -1;
    if ((status = reserve(m, err)) == STK_OK &&
        (status = stki_prep_count_failed(run, first, end, &m->failed, err)) == STK_OK &&
        (status = make_pools(run, err)) == STK_OK) {
        run->progress.failed_rows = m->failed;
        status = make_units(m, err);
    }
    if (run->flusher) { /* finished units are recorded even after an error */
        const stk_status flushed = stki_flusher_wait(run->flusher, status == STK_OK ? err : NULL);

        (void)sync_wait(run);
        status = status == STK_OK ? flushed : status;
    }
    drop(m);
    return status;
}
