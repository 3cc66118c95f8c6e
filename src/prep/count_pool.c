/* count_pool.c: see count_pool.h. A queue under one lock, which is taken twice a batch. */
#include "count_pool.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "file.h"
#include "thread.h"
#include <string.h>

enum { HURRY_AFTER = 1 << 20 }; /* elements: the table that makes counting quicker must be worth its memory */

/* A batch, or (NULL) samples that are counted where they lie. */
struct item {
    stk_batch *batch;
    int64_t first, rows;
};

struct counter {
    stki_count_pool *pool;
    stki_thread *thread;
    stki_tally **tallies; /* one a field */
    char *gathered;       /* rows of several shards, side by side */
    int64_t gathered_bytes;
};

struct stki_count_pool {
    /* fixed after create */
    const stki_count_field *fields;
    int field_count, threads, depth, counter_count;
    struct counter *counters; /* one at least */

    stki_mutex lock; /* guards the rest */
    stki_cond work, done;
    struct item *queue; /* [depth], from `first` on */
    int first, queued, busy;
    bool stop;
    stk_status status; /* the first failure */
    stk_error error;
};

/* ---- a batch ---- */

static stk_status count_lengths(stki_tally *tally, const stki_count_field *field, const stk_batch *batch,
                                stk_error *err)
{
    const stki_field_plan *plan = field->plan;
    const int64_t *offsets = stki_slot_offsets(batch, plan);
    const int64_t channels = plan->own_shapes && !field->form.opaque ? field->form.channels : 1;
    stk_status status = STK_OK;

    for (int64_t row = 0; row < batch->rows && status == STK_OK; row++) {
        const int64_t *shape = plan->own_shapes ? stki_slot_shapes(batch, plan) + 3 * row : NULL;

        if (shape && channels > 1 && shape[2] != channels)
            return stki_fail_at(err, STK_E_BAD_SHAPE,
                                (stki_place){field->name, batch->indices[row], -1,
                                             STKI_TEXT("%lld", (long long)shape[2]),
                                             STKI_TEXT("%lld", (long long)channels)},
                                "channels (statistics by channel need as many in each row; say per: tensor)");
        status = stki_tally_length(tally, shape ? shape[0] * shape[1] : offsets[row + 1] - offsets[row], err);
    }
    return status;
}

static stk_status count_field(stki_tally *tally, const stki_count_field *field, const stk_batch *batch, stk_error *err)
{
    const stki_field_plan *plan = field->plan;
    int64_t elements = batch->rows * (plan->row_bytes / stk_dtype_size(plan->dtype));
    stk_status status = STK_OK;

    if (plan->ragged) {
        elements = stki_slot_offsets(batch, plan)[batch->rows] * (plan->item_bytes / stk_dtype_size(plan->dtype));
        status = count_lengths(tally, field, batch, err);
    }
    if (status == STK_OK)
        status = stki_tally_block(tally, &field->form, stki_slot_values(batch, plan), batch->rows, elements, err);
    return stki_fail_place(err, status, NULL, -1, field->name);
}

/* ---- rows where they lie ---- */

bool stki_count_pool_may_map(const stki_count_field *field)
{
    const stki_field_plan *plan = field->plan;

    if (plan->ragged || plan->geometry || plan->resample || !stki_plan_only_copies(plan))
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

/* Samples of several shards, one behind the other. */
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
        status = stki_file_intact(reader->file, within, err);
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

static stk_status count_item(struct counter *counter, const struct item *item, stk_error *err)
{
    const stki_count_pool *pool = counter->pool;
    stk_status status = STK_OK;

    for (int i = 0; i < pool->field_count && status == STK_OK; i++)
        status = item->batch ? count_field(counter->tallies[i], &pool->fields[i], item->batch, err)
                             : count_where_they_lie(counter, counter->tallies[i], &pool->fields[i], item->first,
                                                    item->rows, err);
    stk_batch_release(item->batch);
    return status;
}

/* ---- threads ---- */

static void note(stki_count_pool *pool, stk_status status, const stk_error *error)
{
    if (status == STK_OK || pool->status != STK_OK)
        return;
    pool->status = status;
    pool->error = *error;
}

static void run(void *context)
{
    struct counter *counter = context;
    stki_count_pool *pool = counter->pool;

    stki_lock(&pool->lock);
    for (;;) {
        struct item item;
        stk_error error;
        stk_status status = STK_OK;

        while (!pool->stop && pool->queued == 0)
            (void)stki_wait(&pool->work, &pool->lock, stki_now_ns() + STKI_SECOND);
        if (pool->stop)
            break;
        item = pool->queue[pool->first];
        pool->first = (pool->first + 1) % pool->depth;
        pool->queued--;
        pool->busy++;
        stki_unlock(&pool->lock);
        status = count_item(counter, &item, &error);
        stki_lock(&pool->lock);
        pool->busy--;
        note(pool, status, &error);
        stki_wake_all(&pool->done);
    }
    stki_unlock(&pool->lock);
}

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

static stk_status begin(stki_count_pool *pool, stk_error *err)
{
    stk_status status = STK_OK;

    pool->counters = stki_zalloc_array(pool->counter_count, sizeof *pool->counters);
    pool->queue = stki_zalloc_array(pool->depth, sizeof *pool->queue);
    if (!pool->counters || !pool->queue)
        return stki_fail_memory(err, pool->depth * (int64_t)sizeof *pool->queue, "statistics");
    for (int i = 0; i < pool->counter_count && status == STK_OK; i++) {
        struct counter *counter = &pool->counters[i];

        counter->pool = pool;
        counter->tallies = stki_zalloc_array(pool->field_count, sizeof(stki_tally *));
        status = counter->tallies ? make_tallies(pool, counter, err) : stki_fail_memory(err, 64, "statistics");
        if (status == STK_OK && pool->threads > 0)
            status = stki_thread_start(&counter->thread, "stoker-count", run, counter, err);
    }
    return status;
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
    pool->threads = threads;
    pool->counter_count = threads > 0 ? threads : 1;
    pool->depth = depth > 0 ? depth : 1;
    stki_mutex_init(&pool->lock);
    stki_cond_init(&pool->work);
    stki_cond_init(&pool->done);
    status = begin(pool, err);
    if (status != STK_OK) {
        stki_count_pool_destroy(pool);
        return status;
    }
    *out = pool;
    return STK_OK;
}

void stki_count_pool_destroy(stki_count_pool *pool)
{
    if (!pool)
        return;
    stki_lock(&pool->lock);
    pool->stop = true;
    stki_wake_all(&pool->work);
    stki_unlock(&pool->lock);
    for (int i = 0; pool->counters && i < pool->counter_count; i++) {
        if (pool->counters[i].thread)
            (void)stki_thread_join(pool->counters[i].thread, INT64_MAX);
        drop_tallies(pool, &pool->counters[i]);
        stki_free(pool->counters[i].tallies);
        stki_free(pool->counters[i].gathered);
    }
    for (; pool->queued > 0; pool->queued--, pool->first = (pool->first + 1) % pool->depth)
        stk_batch_release(pool->queue[pool->first].batch);
    stki_cond_fini(&pool->work);
    stki_cond_fini(&pool->done);
    stki_mutex_fini(&pool->lock);
    stki_free(pool->counters);
    stki_free(pool->queue);
    stki_free(pool);
}

static stk_status fail(const stki_count_pool *pool, stk_error *err)
{
    if (pool->status != STK_OK && err)
        *err = pool->error;
    return pool->status;
}

static stk_status push(stki_count_pool *pool, struct item item, stk_error *err)
{
    stk_status status;

    if (pool->threads == 0)
        return count_item(&pool->counters[0], &item, err);
    stki_lock(&pool->lock);
    while (pool->queued == pool->depth && pool->status == STK_OK)
        (void)stki_wait(&pool->done, &pool->lock, stki_now_ns() + STKI_SECOND);
    status = fail(pool, err);
    if (status == STK_OK) {
        pool->queue[(pool->first + pool->queued++) % pool->depth] = item;
        stki_wake_one(&pool->work);
    }
    stki_unlock(&pool->lock);
    if (status != STK_OK)
        stk_batch_release(item.batch);
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

    stki_lock(&pool->lock);
    while (pool->queued + pool->busy > 0 && pool->status == STK_OK)
        (void)stki_wait(&pool->done, &pool->lock, stki_now_ns() + STKI_SECOND);
    status = fail(pool, err);
    stki_unlock(&pool->lock);
    /* Nothing is on its way now, so the tallies are this thread's. */
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
