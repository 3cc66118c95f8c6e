/* outlet.c: see outlet.h. The main thread appends rows and sets marks. Slow work (syncing, finishing files, their
 * checksums, journal lines) is done by tasks of the flusher, a thread pool with one thread. Tasks run in order, and not
 * at all after one has failed, so a journal line is never written before its data is on disk. A full sink stays open
 * until its task has run. If the task queue is full, the main thread blocks, which bounds the amount of unsynced data.
 *
 * Lines of the journal: {"piece", "mark", "sums", "shard", …} when a piece is on disk, {"finished": shard, "files":
 * […]} when a shard is complete, {"done": true} when all shards are. */
#include "outlet.h"
#include "allocate.h"
#include "error.h"
#include "path.h"
#include "prep_file.h"
#include "running_sums.h"
#include "thread_pool.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct stki_flusher {
    stki_thread_pool *pool;
    int depth;
    int64_t submitted;
    stki_flush **tasks; /* task n is tasks[n % depth]; NULL: discarded */
};

static stk_status run(void *context, void *task, int64_t part, int worker, stk_error *err)
{
    stki_flush **flush = task;
    stk_status status = (*flush)->run(*flush, err);

    (void)context, (void)part, (void)worker;
    (*flush)->drop(*flush);
    *flush = NULL;
    return status;
}

stk_status stki_flusher_create(int depth, stki_flusher **out, stk_error *err)
{
    stki_flusher *flusher = stki_zalloc(sizeof *flusher);
    const stki_thread_pool_opts opts = {
        .name = "stoker-flush", .threads = 1, .depth = depth, .caller_runs_none = true, .run = run};
    stk_status status;

    if (!flusher)
        return stki_fail_memory(err, sizeof *flusher, "the syncing thread");
    flusher->depth = depth;
    flusher->tasks = stki_zalloc_array(depth, sizeof(stki_flush *));
    status = flusher->tasks ? stki_thread_pool_create(&opts, &flusher->pool, err)
                            : stki_fail_memory(err, depth * (int64_t)sizeof(stki_flush *), "the syncing thread");
    if (status == STK_OK)
        *out = flusher;
    else
        stki_flusher_destroy(flusher);
    return status;
}

/* Waits for the oldest task. STK_END: none. */
static stk_status take(stki_flusher *flusher, stk_error *err)
{
    void *task = NULL;
    stk_status status = stki_thread_pool_next(flusher->pool, INT64_MAX, &task, err);
    stki_flush **flush = task;

    if (flush && *flush) /* an earlier task failed */
        (*flush)->drop(*flush);
    return status;
}

void stki_flusher_destroy(stki_flusher *flusher)
{
    if (!flusher)
        return;
    while (flusher->pool && take(flusher, NULL) != STK_END)
        ;
    stki_thread_pool_destroy(flusher->pool);
    stki_free(flusher->tasks);
    stki_free(flusher);
}

stk_status stki_flusher_put(stki_flusher *flusher, stki_flush *flush, stk_error *err)
{
    stki_flush **task = &flusher->tasks[flusher->submitted % flusher->depth];
    stk_status status = STK_OK;

    while (status == STK_OK && !stki_thread_pool_has_room(flusher->pool))
        status = take(flusher, err);
    if (status == STK_OK) {
        *task = flush;
        status = stki_thread_pool_submit(flusher->pool, task, 1, err);
    }
    if (status == STK_OK)
        flusher->submitted++;
    else
        flush->drop(flush);
    return status;
}

stk_status stki_flusher_wait(stki_flusher *flusher, stk_error *err)
{
    stk_status status = STK_OK, taken;

    while ((taken = take(flusher, status == STK_OK ? err : NULL)) != STK_END)
        status = status == STK_OK ? taken : status;
    return status;
}

int64_t stki_flusher_waited_ns(const stki_flusher *flusher)
{
    stki_thread_pool_stats stats;

    stki_thread_pool_read_stats(flusher->pool, &stats);
    return stats.wait_ns;
}

enum { CLOSING = 8, FILES = 256 };

struct closing {
    stki_sink *sink;
    stki_running_sums *sums; /* NULL: none */
    int64_t shard;
    char *path;
};

struct stki_outlet {
    stki_outlet_opts opts;
    stki_flusher *flusher;
    stki_journal *journal;
    stki_sink *sink;
    stki_running_sums *sums; /* checksums of its files, used by the flusher; NULL: the files are read at the end */
    char *path;
    int64_t shard;
    stki_sink_opts sink_opts;
    stki_sink_size size;             /* size of the sink's rows */
    int64_t bytes, closed_bytes;     /* size of its files if finished now; size of the files of earlier shards */
    int64_t found_bytes;             /* bytes that existed when the outlet was opened */
    int64_t done_rows;               /* rows of earlier shards */
    struct closing closing[CLOSING]; /* full sinks that have not been passed to the flusher */
    int closing_count;
    bool alike;   /* all rows have the same sizes */
    json_t *line; /* for formats without marks: the journal line of the only piece, written at the end */
};

/* A task of the flusher. */
struct flush {
    stki_flush flush;
    stki_journal *journal;
    bool close_journal; /* after writing {"done": true} */
    stki_sink *sink;    /* sink to sync */
    stki_running_sums *sums;
    json_t *line;
    struct closing closing[CLOSING];
    int closing_count;
};

char *stki_outlet_path(const stki_job *job, int64_t shard)
{
    return shard < 0 ? stki_strdup(job->path) : stki_format("%s-%05" PRId64 "%s", job->stem, shard, job->ending);
}

/* ---- the flusher ---- */

static stk_status describe_file(stki_running_sums *sums, int index, const stki_sink_file *file, json_t *files,
                                stk_error *err)
{
    char text[24];
    uint64_t sum;
    int64_t bytes;
    stk_status status = sums ? stki_running_sums_finish(sums, index, &sum, &bytes, err)
                             : stki_prep_digest_file(file->temporary, &sum, &bytes, err);
    json_t *json;

    if (status != STK_OK)
        return status;
    snprintf(text, sizeof text, "%016" PRIx64, sum);
    json = json_pack("{s:s, s:s, s:I, s:I, s:s}", "temporary", stki_base_name(file->temporary), "final",
                     stki_base_name(file->final), "rows", (json_int_t)file->rows, "bytes", (json_int_t)bytes, "xxh3",
                     text);
    return json && json_array_append_new(files, json) == 0 ? STK_OK : stki_fail_memory(err, 256, "a journal");
}

static stk_status finish_sink(struct flush *flush, struct closing *closing, stk_error *err)
{
    stki_sink_file *files = stki_zalloc_array(FILES, sizeof *files);
    json_t *list = json_array(), *line = NULL;
    stk_status status = files && list ? closing->sink->ops->finish(closing->sink, err)
                                      : stki_fail_memory(err, FILES * (int64_t)sizeof *files, "files");
    int count = status == STK_OK ? closing->sink->ops->files(closing->sink, files, FILES) : 0;

    if (status == STK_OK && count > FILES)
        status = stki_fail(err, STK_E_LIMIT, "%s: the output would consist of %d files, expected at most %d",
                           closing->path, count, FILES);
    for (int i = 0; i < count && status == STK_OK; i++)
        status = describe_file(closing->sums, i, &files[i], list, err);
    if (status == STK_OK)
        line = json_pack("{s:I, s:O}", "finished", (json_int_t)closing->shard, "files", list);
    if (status == STK_OK)
        status = line ? stki_journal_append(flush->journal, line, err) : stki_fail_memory(err, 256, "a journal");
    json_decref(line);
    json_decref(list);
    stki_free(files);
    return status;
}

static stk_status run_flush(stki_flush *base, stk_error *err)
{
    struct flush *flush = (struct flush *)(void *)base;
    stk_status status = STK_OK;
    int closed = 0;

    /* Shards that became full before the end of the piece are finished before its journal line is written, and the
     * shard that contains the end is finished after it. */
    for (; closed < flush->closing_count && flush->closing[closed].sink != flush->sink && status == STK_OK; closed++)
        status = finish_sink(flush, &flush->closing[closed], err);
    if (status == STK_OK && flush->line) {
        if (flush->sink && flush->sink->ops->sync)
            status = flush->sink->ops->sync(flush->sink, err);
        if (status == STK_OK && flush->sums)
            status = stki_running_sums_go_on(flush->sums, flush->line, err);
        if (status == STK_OK)
            status = stki_journal_append(flush->journal, flush->line, err);
    }
    for (; closed < flush->closing_count && status == STK_OK; closed++)
        status = finish_sink(flush, &flush->closing[closed], err);
    if (status == STK_OK && flush->close_journal) {
        json_t *done = json_pack("{s:b}", "done", 1);

        status = done ? stki_journal_append(flush->journal, done, err) : stki_fail_memory(err, 64, "a journal");
        json_decref(done);
    }
    return status;
}

static void drop_closing(struct closing *closing)
{
    stki_running_sums_destroy(closing->sums);
    closing->sink->ops->destroy(closing->sink);
    stki_free(closing->path);
}

static void drop_flush(stki_flush *base)
{
    struct flush *flush = (struct flush *)(void *)base;

    for (int i = 0; i < flush->closing_count; i++)
        drop_closing(&flush->closing[i]);
    if (flush->close_journal)
        stki_journal_close(flush->journal);
    json_decref(flush->line);
    stki_free(flush);
}

/* ---- sinks ---- */

static stk_status open_sink(stki_outlet *outlet, const json_t *mark, stk_error *err)
{
    const stki_outlet_opts *o = &outlet->opts;
    const stki_sink_ops *ops = o->job->format;
    const int64_t left = o->most_rows - outlet->done_rows;
    stk_status status;

    outlet->sink_opts = (stki_sink_opts){.path = outlet->path,
                                         .folder = o->making,
                                         .fields = o->fields,
                                         .field_count = o->field_count,
                                         .most_rows = o->shard_bytes > 0 && o->shard_most < left ? o->shard_most : left,
                                         .may_skip = o->may_skip || o->shard_bytes > 0,
                                         .first_row = o->first_row + outlet->done_rows,
                                         .options = o->job->format_options,
                                         .threads = o->threads};
    status = ops->open(&outlet->sink_opts, mark, &outlet->sink, err);
    if (status == STK_OK) {
        outlet->bytes = ops->measure(&outlet->sink_opts, NULL, 0, &outlet->size);
        outlet->found_bytes = mark ? outlet->bytes : outlet->found_bytes;
    }
    return status == STK_OK ? stki_running_sums_create(outlet->sink, &outlet->sums, err) : status;
}

static stk_status begin_shard(stki_outlet *outlet, int64_t shard, const json_t *mark, stk_error *err)
{
    outlet->shard = shard;
    outlet->path = stki_outlet_path(outlet->opts.job, shard);
    if (!outlet->path)
        return stki_fail_memory(err, 256, "a path");
    return open_sink(outlet, mark, err);
}

/* Returns the last line of a piece; NULL: there is none. */
static const json_t *last_piece(const json_t *lines)
{
    for (size_t i = json_array_size(lines); i > 0; i--)
        if (json_object_get(json_array_get(lines, i - 1), "piece"))
            return json_array_get(lines, i - 1);
    return NULL;
}

bool stki_outlet_done(const json_t *lines)
{
    return json_is_true(json_object_get(json_array_get(lines, json_array_size(lines) - 1), "done"));
}

static stk_status go_on(stki_outlet *outlet, const json_t *line, stk_error *err)
{
    stk_error cause;
    stk_status status;

    outlet->size.rows = json_integer_value(json_object_get(line, "shard_rows"));
    outlet->size.bytes = json_integer_value(json_object_get(line, "shard_bytes"));
    outlet->done_rows = json_integer_value(json_object_get(line, "done_rows"));
    status =
        begin_shard(outlet, json_integer_value(json_object_get(line, "shard")), json_object_get(line, "mark"), &cause);
    if (status == STK_E_NOT_FOUND || status == STK_E_TRUNCATED) /* another program modified an unfinished file */
        return stki_fail(err, status, "%s; start again with the option restart", cause.message);
    if (status == STK_OK && outlet->sums)
        stki_running_sums_expect(outlet->sums, line);
    if (status != STK_OK && err)
        *err = cause;
    return status;
}

static stk_status open_at_end(stki_outlet *outlet, bool restart, json_t **lines, stk_error *err)
{
    const json_t *line = last_piece(*lines);

    if (stki_outlet_done(*lines))
        return STK_OK;
    if (line && !restart && outlet->opts.job->format->resumes)
        return go_on(outlet, line, err);
    if (json_array_size(*lines) > 0) { /* starts the shards again */
        stk_status status = stki_journal_clear(outlet->journal, err);

        if (status != STK_OK)
            return status;
        json_array_clear(*lines);
    }
    return begin_shard(outlet, outlet->opts.shard_bytes > 0 ? 0 : outlet->opts.shard, NULL, err);
}

stk_status stki_outlet_open(const stki_outlet_opts *opts, bool restart, stki_flusher *flusher, stki_outlet **out,
                            json_t **lines, stk_error *err)
{
    stki_outlet *outlet = stki_zalloc(sizeof *outlet);
    stk_status status;

    *lines = NULL;
    *out = NULL;
    if (!outlet)
        return stki_fail_memory(err, sizeof *outlet, "an output");
    outlet->opts = *opts;
    outlet->flusher = flusher;
    outlet->alike = true;
    for (int i = 0; i < opts->field_count; i++)
        outlet->alike = outlet->alike && opts->fields[i].kind == STKI_SINK_ARRAY;
    status = stki_journal_open(opts->journal, &outlet->journal, lines, err);
    if (status != STK_OK)
        *lines = NULL;
    if (status == STK_OK)
        status = open_at_end(outlet, restart, lines, err);
    if (status == STK_OK && outlet->sink) {
        *out = outlet;
        return STK_OK;
    }
    stki_outlet_drop(outlet);
    if (status != STK_OK) {
        json_decref(*lines);
        *lines = NULL;
    }
    return status;
}

void stki_outlet_drop(stki_outlet *outlet)
{
    if (!outlet)
        return;
    for (int i = 0; i < outlet->closing_count; i++)
        drop_closing(&outlet->closing[i]);
    json_decref(outlet->line);
    stki_running_sums_destroy(outlet->sums);
    if (outlet->sink)
        outlet->sink->ops->destroy(outlet->sink);
    stki_journal_close(outlet->journal);
    stki_free(outlet->path);
    stki_free(outlet);
}

/* ---- rows ---- */

static struct flush *new_flush(stki_outlet *outlet, json_t *line, stk_error *err)
{
    struct flush *flush = stki_zalloc(sizeof *flush);

    if (!flush) {
        json_decref(line);
        (void)stki_fail_memory(err, sizeof *flush, "a task");
        return NULL;
    }
    flush->flush = (stki_flush){.run = run_flush, .drop = drop_flush};
    flush->journal = outlet->journal;
    flush->line = line;
    memcpy(flush->closing, outlet->closing, (size_t)outlet->closing_count * sizeof *flush->closing);
    flush->closing_count = outlet->closing_count;
    outlet->closing_count = 0;
    return flush;
}

/* Starts the next shard, because the sink is full. */
static stk_status roll(stki_outlet *outlet, stk_error *err)
{
    outlet->closing[outlet->closing_count++] =
        (struct closing){outlet->sink, outlet->sums, outlet->shard, outlet->path};
    outlet->sink = NULL;
    outlet->sums = NULL;
    outlet->path = NULL;
    outlet->done_rows += outlet->size.rows;
    outlet->closed_bytes += outlet->bytes;
    outlet->size = (stki_sink_size){0};
    if (outlet->closing_count == CLOSING - 1) { /* one slot is reserved for the last shard */
        struct flush *flush = new_flush(outlet, NULL, err);
        stk_status status = flush ? stki_flusher_put(outlet->flusher, &flush->flush, err) : STK_E_MEMORY;

        if (status != STK_OK)
            return status;
    }
    return begin_shard(outlet, outlet->shard + 1, NULL, err);
}

/* Returns the number of rows that fit into the shard: all if shards are unlimited, at least one if it is empty. Counts
 * them. */
static int64_t take_rows(stki_outlet *outlet, const stki_sink_value *values, int64_t rows)
{
    const stki_outlet_opts *o = &outlet->opts;
    int64_t taken = 0;

    for (int64_t n; taken < rows; taken += n) {
        const stki_sink_value *row = values + taken * o->field_count;
        stki_sink_size size = outlet->size;
        int64_t bytes;

        n = outlet->alike && o->shard_bytes == 0 ? rows - taken : 1;
        bytes = o->job->format->measure(&outlet->sink_opts, row, n, &size);
        if (o->shard_bytes > 0 && outlet->size.rows > 0 &&
            (bytes > o->shard_bytes || size.rows > outlet->sink_opts.most_rows))
            break;
        outlet->size = size;
        outlet->bytes = bytes;
    }
    return taken;
}

stk_status stki_outlet_append(stki_outlet *outlet, const stki_sink_value *values, int64_t rows, stk_error *err)
{
    stk_status status = STK_OK;

    for (int64_t n; rows > 0 && status == STK_OK; rows -= n, values += n * outlet->opts.field_count) {
        n = take_rows(outlet, values, rows);
        status = n > 0 ? outlet->sink->ops->append(outlet->sink, values, n, err) : roll(outlet, err);
    }
    return status;
}

int64_t stki_outlet_written(const stki_outlet *outlet)
{
    return outlet->closed_bytes + outlet->bytes - outlet->found_bytes;
}

static stk_status add_state(stki_outlet *outlet, json_t *line, stk_error *err)
{
    json_t *mark = NULL;
    stk_status status = STK_OK;

    if (outlet->opts.job->format->resumes)
        status = outlet->sink->ops->mark(outlet->sink, &mark, err);
    if (status == STK_OK && mark)
        json_object_set_new(line, "mark", mark);
    if (status == STK_OK && outlet->sums &&
        json_object_set_new(line, "ends", stki_running_sums_ends(outlet->sums)) != 0)
        status = stki_fail_memory(err, 256, "a journal");
    json_object_set_new(line, "shard", json_integer(outlet->shard));
    json_object_set_new(line, "shard_rows", json_integer(outlet->size.rows));
    json_object_set_new(line, "shard_bytes", json_integer(outlet->size.bytes));
    json_object_set_new(line, "done_rows", json_integer(outlet->done_rows));
    return status;
}

stk_status stki_outlet_mark(stki_outlet *outlet, json_t *line, stk_error *err)
{
    struct flush *flush;
    stk_status status = add_state(outlet, line, err);

    if (status != STK_OK) {
        json_decref(line);
        return status;
    }
    if (!outlet->opts.job->format->resumes) {
        json_decref(outlet->line);
        outlet->line = line;
        return STK_OK;
    }
    flush = new_flush(outlet, line, err);
    if (!flush)
        return STK_E_MEMORY;
    flush->sink = outlet->sink;
    flush->sums = outlet->sums;
    return stki_flusher_put(outlet->flusher, &flush->flush, err);
}

stk_status stki_outlet_finish(stki_outlet *outlet, stk_error *err)
{
    struct flush *flush = new_flush(outlet, outlet->line, err);
    stk_status status = STK_E_MEMORY;

    outlet->line = NULL;
    if (flush) {
        flush->closing[flush->closing_count++] =
            (struct closing){outlet->sink, outlet->sums, outlet->shard, outlet->path};
        flush->close_journal = true;
        outlet->sink = NULL;
        outlet->sums = NULL;
        outlet->path = NULL;
        outlet->journal = NULL;
        status = stki_flusher_put(outlet->flusher, &flush->flush, err);
    } else { /* earlier tasks still use the discarded objects */
        (void)stki_flusher_wait(outlet->flusher, NULL);
    }
    stki_outlet_drop(outlet);
    return status;
}

stk_status stki_outlet_files(const json_t *lines, json_t *files, stk_error *err)
{
    const size_t n = json_array_size(lines);
    bool *counts = stki_zalloc_array((int64_t)n + 1, sizeof *counts);
    int64_t lowest = INT64_MAX;
    stk_status status = counts ? STK_OK : stki_fail_memory(err, (int64_t)n, "the list of files");

    /* If a shard was finished twice because of an interruption, the last line applies. After an interruption all shards
     * from the resumed one on are finished again. */
    for (size_t i = n; i > 0 && status == STK_OK; i--) {
        const json_t *shard = json_object_get(json_array_get(lines, i - 1), "finished");

        counts[i - 1] = shard && json_integer_value(shard) < lowest;
        if (counts[i - 1])
            lowest = json_integer_value(shard);
    }
    for (size_t i = 0; i < n && status == STK_OK; i++)
        if (counts[i] && json_array_extend(files, json_object_get(json_array_get(lines, i), "files")) != 0)
            status = stki_fail_memory(err, 256, "the list of files");
    stki_free(counts);
    return status;
}
