/* finish_pool.c: see finish_pool.h. A batch is a task of a thread pool with two phases: first, its parts are runs of
 * rows to encode; then there is one part per observer. Batch n is in slot n % depth from push to release.
 *
 * The caller fills a slot. Any number of workers encode its rows, each in its own memory; one of them completes the
 * slot, observers process it, and the caller takes it. A row's value is borrowed from the batch, or appended by its
 * encoder to the memory that its worker has for this slot. That memory moves when it grows, so a value is stored as an
 * offset, which is converted to an address when all rows have been encoded. The memory is reused for later batches and
 * stops growing after the largest rows. Failed rows take no memory. */
#include "finish_pool.h"
#include "allocate.h"
#include "checked.h"
#include "dtype.h"
#include "error.h"
#include "grow.h"
#include "reader.h"
#include "thread.h"
#include "thread_pool.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct stki_finish_slot {
    stki_finish_batch batch;
    stki_finish_source *sources; /* one per field */
    int64_t run_rows;            /* rows per part */
    bool observing;              /* all rows are encoded and the slot is complete */
    /* Per row and field. Each worker writes those of its rows. */
    stki_sink_value *values;
    int64_t *at; /* offset in its worker's memory; -1: borrowed */
    int *worker; /* per row */
    uint8_t *bad;
    stki_bytes *memory; /* one per worker; moves when it grows, so pointers are set at the end */
    /* Set when the slot is complete: the rows that did not fail. */
    int64_t good, *kept;
    stki_seen **seen; /* results for these rows, one per observer */

    stki_mutex lock; /* guards the members below while parts run */
    bool has_lock;
    int64_t failed, failure_room;
    stki_finish_failure *failures;
    int unseen; /* first observer that failed, or observer_count */
    stk_error unseen_error;
} stki_finish_slot;

typedef struct stki_finish_rows {
    int field_count, worker_count, observer_count;
    bool finishes; /* whether any field has an encoder */
    stki_finish_field *fields;
    stki_observer *const *observers;
    int64_t max_rows;
    void **scratch; /* per worker and field */
    stki_finish_path *path_of;
    void *context;
    const stki_sink_ops *format;
    stki_sink_opts sink;
} stki_finish_rows;

enum { ALIGNED = 16 }; /* alignment of encoded rows, so that they can be accessed as numbers */

/* ---- slots ---- */

static stk_status make_scratch(stki_finish_rows *work, stk_error *err)
{
    for (int w = 0; w < work->worker_count; w++)
        for (int f = 0; f < work->field_count; f++) {
            const stki_finisher *finisher = work->fields[f].finisher;
            stk_status status;

            if (!finisher || !finisher->ops->scratch)
                continue;
            status = finisher->ops->scratch(finisher, &work->scratch[w * work->field_count + f], err);
            if (status != STK_OK)
                return status;
        }
    return STK_OK;
}

/* The number of workers depends on whether there is anything to encode or observe. */
static stk_status init_rows(stki_finish_rows *work, const stki_finish_pool_opts *opts, stk_error *err)
{
    int worker_count;

    for (int i = 0; i < opts->field_count; i++)
        work->finishes = work->finishes || opts->fields[i].finisher;
    worker_count = work->finishes || opts->observer_count > 0 ? opts->threads + 1 : 1;
    work->field_count = opts->field_count;
    work->worker_count = worker_count;
    work->observers = opts->observers;
    work->observer_count = opts->observer_count;
    work->max_rows = opts->max_rows;
    work->path_of = opts->path_of;
    work->context = opts->context;
    work->format = opts->format;
    work->sink = opts->sink;
    work->fields = stki_zalloc_array(opts->field_count, sizeof *work->fields);
    work->scratch = stki_zalloc_array((int64_t)worker_count * opts->field_count, sizeof *work->scratch);
    if (!work->fields || !work->scratch)
        return stki_fail_memory(err, opts->field_count * (int64_t)sizeof *work->fields, "finishers");
    memcpy(work->fields, opts->fields, (size_t)opts->field_count * sizeof *work->fields);
    return make_scratch(work, err);
}

/* accepts a zeroed struct */
static void fini_rows(stki_finish_rows *work)
{
    for (int w = 0; work->scratch && work->fields && w < work->worker_count; w++)
        for (int f = 0; f < work->field_count; f++)
            if (work->scratch[w * work->field_count + f])
                work->fields[f].finisher->ops->scratch_destroy(work->scratch[w * work->field_count + f]);
    stki_free(work->scratch);
    stki_free(work->fields);
}

static stk_status init_slot(stki_finish_slot *slot, const stki_finish_rows *work, stk_error *err)
{
    int64_t values;

    if (!stki_mul(work->max_rows, work->field_count, &values))
        return stki_fail(err, STK_E_LIMIT, "%" PRId64 " rows of %d fields in one batch", work->max_rows,
                         work->field_count);
    stki_mutex_init(&slot->lock);
    slot->has_lock = true;
    slot->sources = stki_zalloc_array(work->field_count, sizeof *slot->sources);
    slot->values = stki_zalloc_array(values, sizeof *slot->values);
    slot->at = stki_zalloc_array(values, sizeof *slot->at);
    slot->worker = stki_zalloc_array(work->max_rows, sizeof *slot->worker);
    slot->bad = stki_zalloc(work->max_rows);
    slot->kept = stki_zalloc_array(work->max_rows, sizeof *slot->kept);
    slot->memory = stki_zalloc_array(work->worker_count, sizeof *slot->memory);
    slot->seen = stki_zalloc_array(work->observer_count + 1, sizeof(stki_seen *));
    if (!slot->sources || !slot->values || !slot->at || !slot->worker || !slot->bad || !slot->kept || !slot->memory ||
        !slot->seen)
        return stki_fail_memory(err, work->max_rows * (int64_t)sizeof *slot->values, "a batch of finished rows");
    return STK_OK;
}

static void drop_seen(stki_finish_slot *slot, const stki_finish_rows *work)
{
    for (int i = 0; slot->seen && i < work->observer_count; i++) {
        work->observers[i]->ops->drop(work->observers[i], slot->seen[i]);
        slot->seen[i] = NULL;
    }
}

static void fini_slot(stki_finish_slot *slot, const stki_finish_rows *work)
{
    for (int w = 0; slot->memory && w < work->worker_count; w++)
        stki_bytes_fini(&slot->memory[w]);
    drop_seen(slot, work);
    stki_free(slot->seen);
    stki_free(slot->sources);
    stki_free(slot->values);
    stki_free(slot->at);
    stki_free(slot->worker);
    stki_free(slot->bad);
    stki_free(slot->kept);
    stki_free(slot->memory);
    stki_free(slot->failures);
    if (slot->has_lock)
        stki_mutex_fini(&slot->lock);
}

static void fill_slot(stki_finish_slot *slot, const stki_finish_rows *work, const stki_finish_batch *batch,
                      int64_t run_rows)
{
    slot->batch = *batch;
    slot->run_rows = run_rows;
    slot->observing = false;
    slot->unseen = work->observer_count;
    memcpy(slot->sources, batch->sources, (size_t)work->field_count * sizeof *slot->sources);
    memset(slot->bad, 0, (size_t)batch->rows);
    slot->good = slot->failed = 0;
    for (int w = 0; w < work->worker_count; w++)
        slot->memory[w].used = 0;
}

/* ---- rows ---- */

static int64_t position_of(const stki_finish_batch *batch, int64_t row)
{
    return batch->positions ? batch->positions[row] : batch->first_position + row;
}

static int64_t sample_of(const stki_finish_batch *batch, int64_t row)
{
    return batch->samples ? batch->samples[row] : position_of(batch, row);
}

/* Finds the address and size of a field's row. */
static void find(const stki_finish_slot *slot, const stki_sink_field *in, int field, int64_t row, stki_row *out)
{
    const stki_finish_source *source = &slot->sources[field];
    const int64_t begin = source->offsets ? source->offsets[row] : row;

    out->bytes = source->bytes ? source->bytes + begin * source->step : NULL;
    out->dtype = in->dtype;
    out->ndim = in->ndim;
    for (int i = 0; i < in->ndim; i++)
        out->shape[i] = source->shapes ? source->shapes[row * in->ndim + i] : in->shape[i];
    if (source->offsets) {
        const int64_t length = source->offsets[row + 1] - begin;

        out->size = length * source->step;
        if (!source->shapes && in->ndim > 0)
            out->shape[0] = length;
    } else {
        out->size = stk_dtype_size(in->dtype);
        for (int i = 0; i < in->ndim; i++)
            out->size *= out->shape[i];
    }
    out->position = position_of(&slot->batch, row);
    out->sample = sample_of(&slot->batch, row);
}

static void borrow(const stki_sink_field *in, const stki_row *row, stki_sink_value *out)
{
    *out = (stki_sink_value){.bytes = row->bytes, .size = row->size};
    if (in->kind == STKI_SINK_RAGGED || in->kind == STKI_SINK_BYTES)
        out->length = in->ndim > 0 ? row->shape[0] : row->size;
    if (in->kind == STKI_SINK_IMAGE) {
        out->height = row->shape[0];
        out->width = row->shape[1];
        out->channels = row->shape[2];
    }
}

static stk_status finish(const stki_finish_rows *work, stki_finish_slot *slot, int worker, int64_t row, int field,
                         stk_error *err)
{
    const int64_t n = row * work->field_count + field;
    const stki_finisher *finisher = work->fields[field].finisher;
    stki_bytes *memory = &slot->memory[worker];
    const int64_t begin = stki_round_up(memory->used, ALIGNED);
    stki_sink_value *value = &slot->values[n];
    stki_row in;
    stk_status status;

    find(slot, &work->fields[field].in, field, row, &in);
    slot->at[n] = -1;
    if (!finisher) {
        borrow(&work->fields[field].in, &in, value);
        return STK_OK;
    }
    *value = (stki_sink_value){0};
    memory->used = begin;
    status = finisher->ops->run(finisher, work->scratch[worker * work->field_count + field], &in, memory, value, err);
    if (status == STK_OK && !value->bytes)
        slot->at[n] = begin;
    else
        memory->used = begin;
    return status;
}

/* Adds the row's location to the error and stores the error. */
static stk_status note_failure(const stki_finish_rows *work, stki_finish_slot *slot, int64_t row, int field,
                               const char *what, stk_status status, stk_error *error)
{
    const int64_t sample = sample_of(&slot->batch, row);
    char buffer[STKI_RECORD_PATH];
    const char *path = work->path_of ? work->path_of(work->context, field, sample, buffer) : NULL;
    stk_status kept;

    if (error->file[0] == '\0')
        stki_fail_place(error, status, path, sample, what);
    stki_lock(&slot->lock);
    kept = stki_grow(&slot->failures, &slot->failure_room, slot->failed + 1, sizeof *slot->failures, "", NULL);
    if (kept == STK_OK)
        slot->failures[slot->failed++] =
            (stki_finish_failure){.row = row, .sample = sample, .field = field, .error = *error};
    stki_unlock(&slot->lock);
    return status == STK_E_MEMORY ? status : kept;
}

/* Only STK_E_MEMORY fails the run; errors in individual rows are recorded in the slot. */
static stk_status finish_rows(const stki_finish_rows *work, stki_finish_slot *slot, int worker, int64_t first,
                              int64_t rows, stk_error *err)
{
    stk_error error = {0};

    for (int64_t row = first; row < first + rows; row++) {
        const char *what = NULL;
        int field = 0;
        stk_status status = STK_OK;

        slot->worker[row] = worker;
        for (int i = 0; i < work->field_count && status == STK_OK; i++) {
            field = i;
            status = finish(work, slot, worker, row, i, &error);
        }
        if (status != STK_OK)
            what = work->fields[field].in.name;
        else if (work->format && work->format->fits)
            status = work->format->fits(&work->sink, &slot->values[row * work->field_count], &field, &error);
        if (status == STK_OK)
            continue;
        slot->bad[row] = 1;
        status = note_failure(work, slot, row, field, what, status, &error);
        if (status != STK_OK) {
            *err = error;
            return error.status == status ? status : stki_fail_memory(err, 0, "the list of failed rows");
        }
    }
    return STK_OK;
}

/* ---- completing a batch ---- */

static int by_row(const void *a, const void *b)
{
    const stki_finish_failure *x = a, *y = b;

    return x->row < y->row ? -1 : x->row > y->row;
}

/* Called when all rows have been encoded. */
static void settle_slot(stki_finish_slot *slot, const stki_finish_rows *work)
{
    const int fields = work->field_count;

    for (int64_t row = 0; row < slot->batch.rows; row++) {
        if (slot->bad[row])
            continue;
        for (int f = 0; f < fields; f++) {
            stki_sink_value value = slot->values[row * fields + f];
            const int64_t at = slot->at[row * fields + f];

            if (at >= 0) /* no memory was allocated if all values are empty */
                value.bytes = value.size > 0 ? slot->memory[slot->worker[row]].bytes + at : "";
            slot->values[slot->good * fields + f] = value;
        }
        slot->kept[slot->good++] = row;
    }
    if (slot->failed > 1)
        qsort(slot->failures, (size_t)slot->failed, sizeof *slot->failures, by_row);
}

/* ---- observers ---- */

static stk_status see(const stki_finish_rows *work, const stki_finish_slot *slot, const stki_observer *observer,
                      stki_seen *seen, stk_error *err)
{
    enum { AT_ONCE = 64 };
    stki_row rows[AT_ONCE];
    stk_status status = STK_OK;

    for (int64_t first = 0; first < slot->good && status == STK_OK; first += AT_ONCE) {
        const int64_t n = slot->good - first < AT_ONCE ? slot->good - first : AT_ONCE;

        for (int64_t i = 0; i < n; i++)
            find(slot, &work->fields[observer->field].in, observer->field, slot->kept[first + i], &rows[i]);
        status = observer->ops->see(observer, seen, rows, n, err);
    }
    return status;
}

/* Passes the rows that did not fail to observer `number`. An error is recorded in the slot. */
static void observe_rows(const stki_finish_rows *work, stki_finish_slot *slot, int number)
{
    const stki_observer *observer = work->observers[number];
    stk_error error = {0};
    stk_status status = observer->ops->begin(observer, &slot->seen[number], &error);

    if (status == STK_OK)
        status = see(work, slot, observer, slot->seen[number], &error);
    if (status == STK_OK)
        return;
    error.status = status;
    stki_lock(&slot->lock);
    if (number < slot->unseen) {
        slot->unseen = number;
        slot->unseen_error = error;
    }
    stki_unlock(&slot->lock);
}

/* Merges the observations into `seen` (one per observer). Returns the error of the first observer that failed. */
static stk_status merge_slot(stki_finish_slot *slot, const stki_finish_rows *work, stki_seen **seen, stk_error *err)
{
    stk_status status = STK_OK;

    if (slot->unseen < work->observer_count) {
        if (err)
            *err = slot->unseen_error;
        return slot->unseen_error.status;
    }
    for (int i = 0; i < work->observer_count && status == STK_OK; i++) {
        if (seen[i]) {
            status = work->observers[i]->ops->merge(work->observers[i], seen[i], slot->seen[i], err);
        } else {
            seen[i] = slot->seen[i];
            slot->seen[i] = NULL;
        }
    }
    return status;
}

enum { DEPTH = 3, RUNS_A_WORKER = 8, MOST_ROWS_A_RUN = 64, MOST_THREADS = 1024, MOST_DEPTH = 64 };

struct stki_finish_pool {
    stki_finish_rows work;
    int depth;
    stki_finish_slot *slots;
    int64_t pushed, popped, released; /* numbers of batches; released <= popped <= pushed */
    stki_thread_pool *pool;
};

static stki_finish_slot *slot_of(const stki_finish_pool *pool, int64_t number)
{
    return &pool->slots[number % pool->depth];
}

static stk_status run(void *context, void *task, int64_t part, int worker, stk_error *err)
{
    const stki_finish_pool *pool = context;
    stki_finish_slot *slot = task;
    const int64_t first = part * slot->run_rows, left = slot->batch.rows - first;

    if (!slot->observing)
        return finish_rows(&pool->work, slot, worker, first, left < slot->run_rows ? left : slot->run_rows, err);
    observe_rows(&pool->work, slot, (int)part);
    return STK_OK;
}

static int64_t end_phase(void *context, void *task)
{
    const stki_finish_pool *pool = context;
    stki_finish_slot *slot = task;

    if (slot->observing)
        return 0;
    settle_slot(slot, &pool->work);
    slot->observing = true;
    return pool->work.observer_count;
}

/* Each worker claims rows a few times per batch, so that the wait for the last run is short. */
static int64_t rows_of_run(const stki_finish_pool *pool, int64_t rows)
{
    const int64_t most = rows / (RUNS_A_WORKER * pool->work.worker_count);

    if (!pool->work.finishes && rows > 0)
        return rows; /* rows are only inspected, not encoded */
    return most < 1 ? 1 : most > MOST_ROWS_A_RUN ? MOST_ROWS_A_RUN : most;
}

/* ---- create and destroy ---- */

static stk_status make_slots(stki_finish_pool *pool, stk_error *err)
{
    stk_status status = STK_OK;

    pool->slots = stki_zalloc_array(pool->depth, sizeof *pool->slots);
    if (!pool->slots)
        return stki_fail_memory(err, pool->depth * (int64_t)sizeof *pool->slots, "finished batches");
    for (int i = 0; i < pool->depth && status == STK_OK; i++)
        status = init_slot(&pool->slots[i], &pool->work, err);
    return status;
}

stk_status stki_finish_pool_create(const stki_finish_pool_opts *opts, stki_finish_pool **out, stk_error *err)
{
    stki_thread_pool_opts threads = {.name = "stoker-finish", .run = run, .done = end_phase};
    stki_finish_pool *pool;
    stk_status status;

    if (opts->field_count < 1 || opts->max_rows < 1 || opts->threads < 0 || opts->threads > MOST_THREADS ||
        opts->depth < 0 || opts->depth > MOST_DEPTH)
        return stki_fail(err, STK_E_BAD_ARG,
                         "a pool of finishers: %d fields, %" PRId64 " rows, %d threads, %d batches at once",
                         opts->field_count, opts->max_rows, opts->threads, opts->depth);
    pool = stki_zalloc(sizeof *pool);
    if (!pool)
        return stki_fail_memory(err, (int64_t)sizeof *pool, "a pool of finishers");
    pool->depth = threads.depth = opts->depth ? opts->depth : DEPTH;
    threads.context = pool;
    status = init_rows(&pool->work, opts, err);
    threads.threads = pool->work.worker_count - 1;
    if (status == STK_OK)
        status = make_slots(pool, err);
    if (status == STK_OK)
        status = stki_thread_pool_create(&threads, &pool->pool, err);
    if (status == STK_OK)
        *out = pool;
    else
        stki_finish_pool_destroy(pool);
    return status;
}

void stki_finish_pool_destroy(stki_finish_pool *pool)
{
    if (!pool)
        return;
    stki_thread_pool_destroy(pool->pool);
    for (int i = 0; pool->slots && i < pool->depth; i++)
        fini_slot(&pool->slots[i], &pool->work);
    fini_rows(&pool->work);
    stki_free(pool->slots);
    stki_free(pool);
}

/* ---- batches ---- */

bool stki_finish_pool_has_room(const stki_finish_pool *pool)
{
    return pool->pushed - pool->released < pool->depth && stki_thread_pool_has_room(pool->pool);
}

stk_status stki_finish_pool_push(stki_finish_pool *pool, const stki_finish_batch *batch, stk_error *err)
{
    stki_finish_slot *slot = slot_of(pool, pool->pushed);
    stk_status status;

    if (!stki_finish_pool_has_room(pool))
        return stki_fail(err, STK_E_BUSY, "%d batches are already being finished", pool->depth);
    if (batch->rows < 0 || batch->rows > pool->work.max_rows)
        return stki_fail(err, STK_E_RANGE, "a batch of rows to finish: found %" PRId64 ", expected 0 to %" PRId64,
                         batch->rows, pool->work.max_rows);
    fill_slot(slot, &pool->work, batch, rows_of_run(pool, batch->rows));
    status = stki_thread_pool_submit(pool->pool, slot, (batch->rows + slot->run_rows - 1) / slot->run_rows, err);
    pool->pushed += status == STK_OK;
    return status;
}

stk_status stki_finish_pool_pop(stki_finish_pool *pool, int64_t deadline_ns, stki_finished *out, stk_error *err)
{
    const stki_finish_slot *slot;
    void *task;
    stk_status status;

    if (pool->popped > pool->released)
        return stki_fail(err, STK_E_BUSY, "the last finished batch has not been released");
    status = stki_thread_pool_next(pool->pool, deadline_ns, &task, err);
    if (status != STK_OK)
        return status;
    slot = task;
    *out = (stki_finished){.rows = slot->good,
                           .values = slot->values,
                           .kept = slot->kept,
                           .failed = slot->failed,
                           .failures = slot->failures,
                           .lease = slot->batch.lease};
    pool->popped++;
    return STK_OK;
}

stk_status stki_finish_pool_seen(stki_finish_pool *pool, stki_seen **seen, stk_error *err)
{
    return merge_slot(slot_of(pool, pool->released), &pool->work, seen, err);
}

void stki_finish_pool_release(stki_finish_pool *pool)
{
    if (pool->popped == pool->released)
        return;
    drop_seen(slot_of(pool, pool->released), &pool->work);
    pool->released++;
}
