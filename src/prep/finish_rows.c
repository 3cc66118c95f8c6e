/* finish_rows.c: see finish_rows.h. A row's values are borrowed from the batch, or put by its finisher at the end of
 * the memory that its worker has for this slot. That memory moves when it grows, so that a value notes where it begins
 * there and gets its address when all rows are done; it is kept from batch to batch, and grows no more once the largest
 * have gone through. A row that fails takes none of it. */
#include "finish_rows.h"
#include "checked.h"
#include "dtype.h"
#include "error.h"
#include "reader.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNED = 16 }; /* where finished rows begin, so that they can be used as numbers */

/* ---- create and destroy ----------------------------------------------------------------------------------------- */

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

stk_status stki_finish_rows_init(stki_finish_rows *work, const stki_finish_pool_opts *opts, stk_error *err)
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
    work->fields = stki_zalloc_array(opts->field_count, sizeof *work->fields);
    work->scratch = stki_zalloc_array((int64_t)worker_count * opts->field_count, sizeof *work->scratch);
    if (!work->fields || !work->scratch)
        return stki_fail_memory(err, opts->field_count * (int64_t)sizeof *work->fields, "finishers");
    memcpy(work->fields, opts->fields, (size_t)opts->field_count * sizeof *work->fields);
    return make_scratch(work, err);
}

void stki_finish_rows_fini(stki_finish_rows *work)
{
    for (int w = 0; work->scratch && work->fields && w < work->worker_count; w++)
        for (int f = 0; f < work->field_count; f++)
            if (work->scratch[w * work->field_count + f])
                work->fields[f].finisher->ops->scratch_destroy(work->scratch[w * work->field_count + f]);
    stki_free(work->scratch);
    stki_free(work->fields);
}

stk_status stki_finish_slot_init(stki_finish_slot *slot, const stki_finish_rows *work, stk_error *err)
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

void stki_finish_slot_fini(stki_finish_slot *slot, const stki_finish_rows *work)
{
    for (int w = 0; slot->memory && w < work->worker_count; w++)
        stki_bytes_fini(&slot->memory[w]);
    stki_finish_slot_drop_seen(slot, work);
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

void stki_finish_slot_fill(stki_finish_slot *slot, const stki_finish_rows *work, const stki_finish_batch *batch,
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

/* ---- one row ---------------------------------------------------------------------------------------------------- */

static int64_t position_of(const stki_finish_batch *batch, int64_t row)
{
    return batch->positions ? batch->positions[row] : batch->first_position + row;
}

static int64_t sample_of(const stki_finish_batch *batch, int64_t row)
{
    return batch->samples ? batch->samples[row] : position_of(batch, row);
}

/* Where a row of a field lies, and how large it is. */
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

/* The message gets what is known of the row's place; then it is kept. */
static stk_status note_failure(const stki_finish_rows *work, stki_finish_slot *slot, int64_t row, int field,
                               stk_status status, stk_error *error)
{
    const int64_t sample = sample_of(&slot->batch, row);
    char buffer[STKI_RECORD_PATH];
    const char *path = work->path_of ? work->path_of(work->context, field, sample, buffer) : NULL;
    stk_status kept = STK_OK;

    if (error->file[0] == '\0')
        stki_fail_place(error, status, path, sample, work->fields[field].in.name);
    stki_lock(&slot->lock);
    if (slot->failed == slot->failure_room) {
        int64_t room = slot->failure_room ? 2 * slot->failure_room : 4;
        stki_finish_failure *grown = stki_resize(slot->failures, room * (int64_t)sizeof *grown);

        if (grown) {
            slot->failures = grown;
            slot->failure_room = room;
        } else {
            kept = STK_E_MEMORY;
        }
    }
    if (kept == STK_OK)
        slot->failures[slot->failed++] =
            (stki_finish_failure){.row = row, .sample = sample, .field = field, .error = *error};
    stki_unlock(&slot->lock);
    return status == STK_E_MEMORY ? status : kept;
}

stk_status stki_finish_rows_run(const stki_finish_rows *work, stki_finish_slot *slot, int worker, int64_t first,
                                int64_t rows, stk_error *err)
{
    stk_error error = {0};

    for (int64_t row = first; row < first + rows; row++) {
        slot->worker[row] = worker;
        for (int field = 0; field < work->field_count; field++) {
            stk_status status = finish(work, slot, worker, row, field, &error);

            if (status == STK_OK)
                continue;
            slot->bad[row] = 1;
            status = note_failure(work, slot, row, field, status, &error);
            if (status != STK_OK) {
                *err = error;
                return error.status == status ? status : stki_fail_memory(err, 0, "the list of failed rows");
            }
            break;
        }
    }
    return STK_OK;
}

/* ---- the end of a batch ----------------------------------------------------------------------------------------- */

static int by_row(const void *a, const void *b)
{
    const stki_finish_failure *x = a, *y = b;

    return x->row < y->row ? -1 : x->row > y->row;
}

void stki_finish_slot_settle(stki_finish_slot *slot, const stki_finish_rows *work)
{
    const int fields = work->field_count;

    for (int64_t row = 0; row < slot->batch.rows; row++) {
        if (slot->bad[row])
            continue;
        for (int f = 0; f < fields; f++) {
            stki_sink_value value = slot->values[row * fields + f];
            const int64_t at = slot->at[row * fields + f];

            if (at >= 0) /* memory that nothing was put into has no address */
                value.bytes = value.size > 0 ? slot->memory[slot->worker[row]].bytes + at : "";
            slot->values[slot->good * fields + f] = value;
        }
        slot->kept[slot->good++] = row;
    }
    if (slot->failed > 1)
        qsort(slot->failures, (size_t)slot->failed, sizeof *slot->failures, by_row);
}

/* ---- observers -------------------------------------------------------------------------------------------------- */

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

void stki_finish_rows_observe(const stki_finish_rows *work, stki_finish_slot *slot, int number)
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

stk_status stki_finish_slot_merge(stki_finish_slot *slot, const stki_finish_rows *work, stki_seen **seen,
                                  stk_error *err)
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

void stki_finish_slot_drop_seen(stki_finish_slot *slot, const stki_finish_rows *work)
{
    for (int i = 0; slot->seen && i < work->observer_count; i++) {
        work->observers[i]->ops->drop(work->observers[i], slot->seen[i]);
        slot->seen[i] = NULL;
    }
}
