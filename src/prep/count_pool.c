/* count_pool.c: see count_pool.h. Each batch is a single-part task of a thread pool; the caller only waits. */
#include "count_pool.h"
#include "allocate.h"
#include "error.h"
#include "file.h"
#include "thread_pool.h"
#include <string.h>

enum {
    HURRY_AFTER = 1 << 20
}; /* number of elements after which a faster table, which takes more memory, is allocated and used */

/* The batch, or NULL for samples counted in place. */
struct item {
    stk_batch *batch;
    int64_t first, rows;
};

struct counter {
    stki_tally **tallies; /* one per field */
    char *gathered;       /* contiguous copy of rows from several shards */
    int64_t gathered_bytes;
};

struct stki_count_pool {
    const stki_count_field *fields;
    int field_count, counter_count, depth;
    struct counter *counters; /* per worker of the pool */
    struct item *items;       /* item n is items[n % depth] */
    int64_t submitted;
    stki_thread_pool *pool;
};

/* ---- batches ---- */

static stk_status count_lengths(stki_tally *tally, const stki_count_field *field, const stk_batch *batch,
                                stk_error *err)
{
    stk_status status = STK_OK;

    for (int64_t row = 0; row < batch->rows && status == STK_OK; row++) {
        const int64_t channels = field->form.opaque ? 1 : field->form.channels;
        stki_batch_row at;

        stki_slot_row(batch, field->plan, row, &at);
        if (at.shape && channels > 1 && at.shape[2] != channels)
            return stki_fail_at(err, STK_E_BAD_SHAPE,
                                (stki_place){field->name, batch->indices[row], -1,
                                             STKI_TEXT("%lld", (long long)at.shape[2]),
                                             STKI_TEXT("%lld", (long long)channels)},
                                "channels (per-channel statistics need the same number in each row; set per: tensor)");
        status = stki_tally_length(tally, at.shape ? at.shape[0] * at.shape[1] : at.entries, err);
    }
    return status;
}

static stk_status count_field(stki_tally *tally, const stki_count_field *field, const stk_batch *batch, stk_error *err)
{
    const stki_field_plan *plan = field->plan;
    const stki_row_tensor *values = &plan->tensors[0];
    const int64_t elements = stki_tensor_units(plan, values, batch->memory, batch->rows) *
                             (values->unit_bytes / stk_dtype_size(plan->dtype));
    stk_status status = plan->rows->measured ? count_lengths(tally, field, batch, err) : STK_OK;

    if (status == STK_OK)
        status = stki_tally_block(tally, &field->form, stki_slot_values(batch, plan), batch->rows, elements, err);
    return stki_fail_place(err, status, NULL, -1, field->name);
}

/* ---- rows in place ---- */

bool stki_count_pool_may_map(const stki_count_field *field)
{
    const stki_field_plan *plan = field->plan;

    if (plan->rows->measured || plan->image.geometry || plan->image.resample || !stki_plan_only_copies(plan))
        return false;
    for (int i = 0; i < plan->field->shard_count; i++) {
        const stki_reader *reader = plan->field->shards[i];

        if (!reader->base || !reader->file || reader->swapped ||
            (reader->count > 1 && reader->sample_stride != plan->row_bytes))
            return false;
        for (int d = 0; d < plan->ndim; d++)
            if (plan->shape[d] > 1 && reader->strides[d] != plan->strides[d])
                return false;
    }
    return true;
}

/* Copies samples of several shards to contiguous memory. */
static stk_status gather(struct counter *counter, const stki_field_plan *plan, int64_t first, int64_t rows,
                         stk_error *err)
{
    const int64_t bytes = rows * plan->row_bytes;

    if (counter->gathered_bytes < bytes) {
        char *grown = stki_resize(counter->gathered, bytes);

        if (!grown)
            return stki_fail_memory(err, bytes, "statistics");
        counter->gathered = grown;
        counter->gathered_bytes = bytes;
    }
    for (int64_t i = 0; i < rows; i++) {
        int64_t within;
        const stki_reader *reader = stki_field_locate(plan->field, first + i, &within);

        memcpy(counter->gathered + i * plan->row_bytes, stki_reader_address(reader, within), (size_t)plan->row_bytes);
    }
    return STK_OK;
}

static stk_status check_intact(const stki_field_plan *plan, int64_t first, int64_t rows, stk_error *err)
{
    int64_t within, last;
    stk_status status = STK_OK;

    for (int64_t i = first; i < first + rows && status == STK_OK; i = last) {
        const stki_reader *reader = stki_field_locate(plan->field, i, &within);

        last = i - within + reader->count;
        if (stki_file_intact(reader->file, within, NULL) == STK_OK)
            continue;
        for (int64_t k = i; k < last && k < first + rows && status == STK_OK; k++)
            status = stki_reader_intact(reader, within + k - i, err);
    }
    return status;
}

static stk_status count_where_they_lie(struct counter *counter, stki_tally *tally, const stki_count_field *field,
                                       int64_t first, int64_t rows, stk_error *err)
{
    const stki_field_plan *plan = field->plan;
    int64_t within;
    const stki_reader *reader = stki_field_locate(plan->field, first, &within);
    const char *data = stki_reader_address(reader, within);
    stk_status status = STK_OK;

    if (within + rows > reader->count) {
        status = gather(counter, plan, first, rows, err);
        data = counter->gathered;
    }
    if (status == STK_OK)
        status = stki_tally_block(tally, &field->form, data, rows,
                                  rows * (plan->row_bytes / stk_dtype_size(plan->dtype)), err);
    status = stki_fail_place(err, status, NULL, -1, field->name);
    return status == STK_OK ? check_intact(plan, first, rows, err) : status;
}

static void release(struct item *item)
{
    stk_batch_release(item->batch);
    item->batch = NULL;
}

static stk_status count_item(void *context, void *task, int64_t part, int worker, stk_error *err)
{
    const stki_count_pool *pool = context;
    struct counter *counter = &pool->counters[worker];
    struct item *item = task;
    stk_status status = STK_OK;

    (void)part;
    for (int i = 0; i < pool->field_count && status == STK_OK; i++)
        status = item->batch ? count_field(counter->tallies[i], &pool->fields[i], item->batch, err)
                             : count_where_they_lie(counter, counter->tallies[i], &pool->fields[i], item->first,
                                                    item->rows, err);
    release(item);
    return status;
}

/* ---- the pool ---- */

static stk_status make_tallies(stki_count_pool *pool, struct counter *counter, stk_error *err)
{
    stk_status status = STK_OK;

    for (int i = 0; i < pool->field_count && status == STK_OK; i++) {
        status = stki_tally_create(&pool->fields[i].form, stki_isa(), &counter->tallies[i], err);
        if (status == STK_OK)
            stki_counts_hurry(&counter->tallies[i]->counts, HURRY_AFTER);
    }
    return status;
}

static void drop_tallies(const stki_count_pool *pool, struct counter *counter)
{
    for (int i = 0; counter->tallies && i < pool->field_count; i++) {
        stki_tally_destroy(counter->tallies[i]);
        counter->tallies[i] = NULL;
    }
}

static stk_status begin(stki_count_pool *pool, int threads, stk_error *err)
{
    const stki_thread_pool_opts opts = {.name = "stoker-count",
                                        .threads = threads,
                                        .depth = pool->depth,
                                        .caller_runs_none = true,
                                        .run = count_item,
                                        .context = pool};
    stk_status status = STK_OK;

    pool->counters = stki_zalloc_array(pool->counter_count, sizeof *pool->counters);
    pool->items = stki_zalloc_array(pool->depth, sizeof *pool->items);
    if (!pool->counters || !pool->items)
        return stki_fail_memory(err, pool->depth * (int64_t)sizeof *pool->items, "statistics");
    for (int i = 0; i < pool->counter_count && status == STK_OK; i++) {
        struct counter *counter = &pool->counters[i];

        counter->tallies = stki_zalloc_array(pool->field_count, sizeof(stki_tally *));
        status = counter->tallies ? make_tallies(pool, counter, err) : stki_fail_memory(err, 64, "statistics");
    }
    return status == STK_OK ? stki_thread_pool_create(&opts, &pool->pool, err) : status;
}

stk_status stki_count_pool_create(const stki_count_field *fields, int field_count, int threads, int depth,
                                  stki_count_pool **out, stk_error *err)
{
    stki_count_pool *pool = stki_zalloc(sizeof *pool);
    stk_status status;

    if (!pool)
        return stki_fail_memory(err, sizeof *pool, "statistics");
    pool->fields = fields;
    pool->field_count = field_count;
    pool->counter_count = threads > 0 ? threads : 1; /* without threads, the calling thread is worker 0 */
    pool->depth = threads + (depth > 0 ? depth : 1);
    status = begin(pool, threads, err);
    if (status == STK_OK)
        *out = pool;
    else
        stki_count_pool_destroy(pool);
    return status;
}

void stki_count_pool_destroy(stki_count_pool *pool)
{
    if (!pool)
        return;
    stki_thread_pool_destroy(pool->pool);
    for (int i = 0; pool->counters && i < pool->counter_count; i++) {
        drop_tallies(pool, &pool->counters[i]);
        stki_free(pool->counters[i].tallies);
        stki_free(pool->counters[i].gathered);
    }
    for (int i = 0; pool->items && i < pool->depth; i++)
        release(&pool->items[i]);
    stki_free(pool->counters);
    stki_free(pool->items);
    stki_free(pool);
}

static stk_status push(stki_count_pool *pool, struct item given, stk_error *err)
{
    struct item *item = &pool->items[pool->submitted % pool->depth];
    stk_status status = STK_OK;
    void *task;

    while (status == STK_OK && !stki_thread_pool_has_room(pool->pool))
        status = stki_thread_pool_next(pool->pool, INT64_MAX, &task, err);
    if (status == STK_OK) {
        *item = given;
        pool->submitted++;
        status = stki_thread_pool_submit(pool->pool, item, 1, err);
    } else {
        release(&given);
    }
    return status;
}

stk_status stki_count_pool_push(stki_count_pool *pool, stk_batch *batch, stk_error *err)
{
    return push(pool, (struct item){.batch = batch}, err);
}

stk_status stki_count_pool_push_rows(stki_count_pool *pool, int64_t first, int64_t rows, stk_error *err)
{
    return push(pool, (struct item){.first = first, .rows = rows}, err);
}

stk_status stki_count_pool_take(stki_count_pool *pool, stki_tally *const *total, stk_error *err)
{
    stk_status status;
    void *task;

    while ((status = stki_thread_pool_next(pool->pool, INT64_MAX, &task, err)) == STK_OK)
        ;
    status = status == STK_END ? STK_OK : status;
    /* No task is running now, so this thread may access the tallies. */
    for (int i = 0; i < pool->counter_count && status == STK_OK; i++) {
        struct counter *counter = &pool->counters[i];

        for (int f = 0; f < pool->field_count && status == STK_OK; f++) {
            status = stki_counts_settle(&counter->tallies[f]->counts, err);
            if (status == STK_OK)
                status = stki_tally_merge(total[f], &pool->fields[f].form, counter->tallies[f], err);
        }
        drop_tallies(pool, counter);
        if (status == STK_OK)
            status = make_tallies(pool, counter, err);
    }
    return status;
}
