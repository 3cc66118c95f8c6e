/* fill.c: the callbacks of the ring. Phase 0 measures the rows of fields with varying shapes (it has no tiles if there
 * are none); phase 1 makes the rows. A tile of phase 1 is a run of rows, with all their fields, that produce about
 * tile_bytes of output. If a row is many tiles long and its sample need not be read or decoded, a tile is part of a
 * row. An error in one row does not affect the rest of the tile. The slot keeps the error of the lowest row, and the
 * consumer gets that error instead of the batch. */
#include "advise.h"
#include "failed.h"
#include "log.h"
#include "partners.h"
#include "row_maker.h"
#include "tensor_internal.h"

static stk_batch *batch_of(stki_ring_slot *slot)
{
    return (stk_batch *)(void *)slot;
}

/* ---- begin ---- */

static int64_t byte_tiles(const stki_core *core, const stk_batch *batch)
{
    if (core->tiles_per_row > 1)
        return batch->rows * core->tiles_per_row;
    return (batch->rows + core->rows_per_tile - 1) / core->rows_per_tile;
}

/* Returns the number of rows in the step on all ranks together. */
static int64_t global_rows(const stki_core *core, int64_t step)
{
    const stki_batching *b = &core->batching;
    const int64_t left = b->length - step * b->global_batch;

    return b->last == STKI_LAST_PAD || left > b->global_batch ? b->global_batch : left;
}

static int64_t begin(void *context, stki_ring_slot *slot, int number)
{
    stki_core *core = context;
    stki_worker *worker = &core->workers[number];
    stk_batch *batch = batch_of(slot);
    int64_t before = stki_worker_time(worker);
    stki_batch_rows rows;
    stk_error error;
    stk_status status = STK_OK;

    stki_worker_does(worker, STKI_STAGE_ORDER, NULL, slot->step, before);
    if (!stki_slot_await(batch)) { /* the loader was closed meanwhile, so this batch will not be delivered */
        batch->rows = batch->valid = 0;
        return 0;
    }
    batch->epoch = slot->step / core->steps;
    batch->draw_key = stki_draw_key((uint64_t)core->config->seed, batch->epoch);
    batch->step = slot->step % core->steps;
    batch->last_of_epoch = batch->step == core->steps - 1;
    batch->error_row = -1;
    stki_count_set(&batch->failed_rows, 0);
    batch->digest = (stki_u128){0};
    batch->left_out = 0;
    stki_failed_forget(batch);
    rows = stki_batching_rows(&core->batching, batch->step);
    batch->rows = rows.rows;
    batch->valid = rows.valid;
    for (int64_t r = 0; r < rows.rows && status == STK_OK;) {
        /* Padding wraps around the end of the epoch, so the rows are evaluated in two or more runs. */
        int64_t first = (rows.first + r) % core->batching.length, n = core->batching.length - first;

        n = n < rows.rows - r ? n : rows.rows - r;
        status = stki_order_eval(core->order, batch->epoch, first, n, batch->positions + r, &error);
        /* not in a consumer that helps, because that would delay it */
        if (first == rows.first && (number == 0 || number < core->worker_count))
            stki_order_ahead(core->order, batch->epoch, first, n, core->end / core->steps);
        r += n;
    }
    batch->first_global_row = rows.first_row;
    batch->global_rows = global_rows(core, batch->step);
    if (status == STK_OK && batch->partners)
        status = stki_partners_begin(core, batch, &error);
    if (status != STK_OK) {
        batch->rows = batch->valid = 0;
        stki_slot_fail(batch, 0, &error);
    }
    for (int64_t r = 0; r < batch->rows; r++) {
        batch->indices[r] = batch->positions[r].sample;
        batch->sources[r] = batch->positions[r].source;
        batch->mask[r] = r < batch->valid;
        atomic_store_explicit(&batch->row_failed[r], STKI_ROW_FINE, memory_order_relaxed);
    }
    for (int64_t r = 0; core->layout.windows && r < batch->rows; r++)
        batch->samples[r] = stki_dataset_sample(core->dataset, batch->indices[r]);
    stki_log(STKI_LOG_ring, "worker %d opens epoch %lld step %lld: %lld rows", number, (long long)batch->epoch,
             (long long)batch->step, (long long)batch->rows);
    stki_worker_spent(worker, &worker->order_ns);
    /* counted as reading, because it may block on the disk or while pages are allocated */
    stki_advise(core, batch, worker);
    stki_worker_spent(worker, &worker->read_ns);
    stki_worker_does(worker, STKI_STAGE_IDLE, NULL, -1, before);
    return core->measures ? (batch->rows + core->rows_per_tile - 1) / core->rows_per_tile : 0;
}

/* ---- phase 0: lengths ---- */

static void measure_rows(stki_worker *worker, const stki_field_plan *plan, int64_t first, int64_t last)
{
    int64_t *counts = stki_row_counts(plan, worker->batch->memory);

    for (int64_t row = first; row < last; row++) {
        const int64_t length = plan->maker->measure(worker, plan, row);

        counts[row + 1] = length < 0 ? 0 : length;
    }
}

static void measure_tile(stki_worker *worker, int64_t tile)
{
    const stki_core *core = worker->core;
    const stk_batch *batch = worker->batch;
    int64_t first = tile * core->rows_per_tile, last = first + core->rows_per_tile;

    last = last < batch->rows ? last : batch->rows;
    stki_watch_begin(worker, first, last);
    for (int f = 0; f < core->plan_count; f++)
        if (core->plans[f].maker->measure)
            measure_rows(worker, &core->plans[f], first, last);
    stki_worker_spent(worker, &worker->read_ns);
    stki_watch_end(worker);
}

/* ---- phase 1: rows ---- */

static void fill_part(stki_worker *worker, int64_t tile)
{
    const stki_core *core = worker->core;
    const int64_t parts = core->tiles_per_row, row = tile / parts, part = tile % parts;

    stki_watch_begin(worker, row, row + 1);
    for (int f = 0; f < core->plan_count; f++) {
        const stki_field_plan *plan = &core->plans[f];

        if (plan->may_split && plan->convert.units >= parts)
            stki_make_part(worker, plan, row, part, parts);
        else if (part == 0)
            stki_make_rows(worker, plan, row, row + 1);
    }
}

static void tile_of_phase(void *context, stki_ring_slot *slot, int64_t tile, int number)
{
    stki_core *core = context;
    stki_worker *worker = &core->workers[number];
    stk_batch *batch = batch_of(slot);

    worker->batch = batch;
    stki_worker_time(worker);
    stki_read_clocks_set(&worker->parts);
    if (slot->phase == 0) {
        measure_tile(worker, tile);
    } else if (core->tiles_per_row > 1) {
        fill_part(worker, tile);
    } else {
        int64_t first = tile * core->rows_per_tile, last = first + core->rows_per_tile;

        last = last < batch->rows ? last : batch->rows;
        stki_watch_begin(worker, first, last);
        for (int f = 0; f < core->plan_count; f++)
            stki_make_rows(worker, &core->plans[f], first, last);
    }
    if (slot->phase != 0)
        stki_watch_end(worker);
    if (core->streams)
        stki_store_fence(); /* the ring's release does not order non-temporal stores */
    stki_read_clocks_set(NULL);
    stki_worker_does(worker, STKI_STAGE_IDLE, NULL, -1, 0);
}

static int64_t end_phase(stki_worker *worker, int phase)
{
    const stki_core *core = worker->core;
    stk_batch *batch = worker->batch;

    if (batch->failures) {
        stki_worker_time(worker);
        stki_failed_settle(worker, phase != 0);
    }
    if (phase == 0) {
        for (int f = 0; f < core->plan_count; f++)
            if (core->plans[f].rows->settle)
                core->plans[f].rows->settle(&core->plans[f], batch->memory, batch->rows);
        return byte_tiles(core, batch);
    }
    if (core->config->digest != STK_DIGEST_NONE && batch->error_row < 0)
        batch->digest = stki_digest_rows(core, batch);
    return -1;
}

static int64_t phase_end(void *context, stki_ring_slot *slot, int number)
{
    stki_core *core = context;
    stki_worker *worker = &core->workers[number];
    int64_t tiles;

    stki_worker_does(worker, STKI_STAGE_FINISH, NULL, slot->step, worker->read_at);
    stki_read_clocks_set(&worker->parts);
    worker->batch = batch_of(slot);
    tiles = end_phase(worker, slot->phase);
    stki_read_clocks_set(NULL);
    stki_worker_does(worker, STKI_STAGE_IDLE, NULL, -1, 0);
    return tiles;
}

static bool is_clear(stki_ring_slot *slot)
{
    stki_stream_guards *guards = &batch_of(slot)->guards;

    return !stki_guards_any(guards) || stki_guards_wait(guards, 0, NULL) != STK_E_TIMEOUT;
}

const stki_ring_work stki_fill_work = {
    .begin = begin, .is_clear = is_clear, .tile = tile_of_phase, .phase_end = phase_end};
