/* row_maker.c: see row_maker.h. */
#include "row_maker.h"
#include "error.h"
#include "file.h"
#include "tensor_internal.h"
#include "trace.h"

static const uint64_t CALL_DRAW = UINT64_C(0x63616c6c); /* "call": the draw name for call steps */

/* Ends the thread's current profiler range and begins the one for `stage`. */
static void trace(const stki_worker *worker, enum stki_stage stage)
{
    static const char *const names[] = {NULL,
                                        "stoker: choose samples",
                                        "stoker: read",
                                        "stoker: read and convert",
                                        "stoker: convert",
                                        "stoker: finish"};

    if (atomic_load_explicit(&worker->stage, memory_order_relaxed) != STKI_STAGE_IDLE)
        stki_trace_end();
    if (stage != STKI_STAGE_IDLE)
        stki_trace_begin(names[stage]);
}

void stki_worker_does(stki_worker *worker, enum stki_stage stage, const char *path, int64_t record, int64_t now)
{
    trace(worker, stage);
    stki_count_set(&worker->since_ns, -1);
    atomic_store_explicit(&worker->path, path, memory_order_release);
    atomic_store_explicit(&worker->record, record, memory_order_release);
    atomic_store_explicit(&worker->stage, stage, memory_order_release);
    atomic_store_explicit(&worker->since_ns, now, memory_order_release);
}

void stki_worker_does_mapped(stki_worker *worker, const stki_field *field, int64_t index, int64_t now)
{
    int64_t within;
    const stki_reader *shard = stki_field_locate(field, index, &within);

    stki_worker_does(worker, STKI_STAGE_MAPPED, shard->path, within, now);
}

/* ---- one sample ---- */

void stki_read_fails(stki_worker *worker, const stki_reader *shard, int64_t within, int64_t row, stk_error *error)
{
    if (shard->file)
        (void)stki_reader_intact(shard, within, error);
    stki_row_fails(worker, row, error);
}

void stki_convert_begin(stki_worker *worker, stki_paging *paging)
{
    stki_paging_begin(&worker->parts, paging);
    if (paging->watched) /* the elapsed time that is compared with the CPU time must begin here too */
        stki_worker_spent(worker, &worker->convert_ns);
}

void stki_convert_end(stki_worker *worker, const stki_paging *paging)
{
    const int64_t began = worker->read_at, ns = stki_worker_time(worker) - began,
                  pages = stki_paging_end(&worker->parts, paging, ns);

    stki_count_own(&worker->convert_ns, ns - pages);
    if (pages > 0)
        stki_count_own(&worker->read_ns, pages);
}

void stki_reading_begin(stki_worker *worker, const stki_field_plan *plan, const stki_making_of *of, stki_reading *r)
{
    r->shard_number = stki_field_shard(plan->field, of->index, &r->within);
    r->shard = plan->field->shards[r->shard_number];
    stki_worker_does(worker, STKI_STAGE_READ, r->shard->path, r->within, worker->read_at);
    if (r->shard->draws) /* the reader calls a custom transform */
        worker->scratch.draw = stki_draw_seed(&of->occasion, CALL_DRAW);
}

stk_status stki_reading_read(stki_worker *worker, stki_reading *r, const stki_want *want, stk_status status,
                             stk_error *err)
{
    if (status == STK_OK)
        status = r->shard->ops->read(r->shard, r->within, want, &worker->scratch, &r->sample, err);
    stki_worker_spent(worker, &worker->read_ns);
    if (status != STK_OK) {
        const stk_status changed = r->shard->file ? stki_reader_intact(r->shard, r->within, err) : STK_OK;

        return changed != STK_OK ? changed : status;
    }
    stki_worker_does(worker, STKI_STAGE_CONVERT, r->shard->path, r->within, worker->read_at);
    stki_paging_begin(&worker->parts, &r->paging);
    return STK_OK;
}

void stki_reading_end(stki_worker *worker, const stki_field_plan *plan, const stki_making_of *of, stki_reading *r)
{
    stki_convert_end(worker, &r->paging);
    stki_watch_use(worker, plan, r->shard, of->index, &r->sample); /* may check files, which counts as reading */
    stki_reader_done(r->shard, &r->sample);
}

/* ---- rows ---- */

static stki_making_of of_row(const stki_worker *worker, const stki_field_plan *plan, int64_t row)
{
    const stk_batch *batch = worker->batch;
    stki_batch_row at;

    stki_slot_row(batch, plan, row, &at);
    return (stki_making_of){batch->samples[row], stki_occasion_of(batch, row), at.data, row};
}

void stki_make_rows(stki_worker *worker, const stki_field_plan *plan, int64_t first, int64_t last)
{
    const stki_row_maker *maker = plan->maker;
    stk_error error;

    while (maker->fill && first < last)
        first += maker->fill(worker, plan, first, last);
    for (; first < last; first++) {
        stki_making_of of;

        if (stki_sample_has_failed(worker->batch, first))
            continue;
        of = of_row(worker, plan, first);
        if (maker->make(worker, plan, &of, &error) != STK_OK)
            stki_row_fails(worker, first, &error);
    }
}

void stki_make_part(stki_worker *worker, const stki_field_plan *plan, int64_t row, int64_t part, int64_t parts)
{
    const stki_making_of of = of_row(worker, plan, row);
    stk_error error;

    if (plan->maker->make_part(worker, plan, &of, part, parts, &error) != STK_OK)
        stki_row_fails(worker, row, &error);
}

void stki_make_again(stki_worker *worker, int64_t row)
{
    const stki_core *core = worker->core;

    stki_watch_begin(worker, row, row + 1);
    for (int f = 0; f < core->plan_count; f++)
        stki_make_rows(worker, &core->plans[f], row, row + 1);
    stki_watch_end(worker);
    if (core->streams)
        stki_store_fence();
}

int64_t stki_measure_again(stki_worker *worker, const stki_field_plan *plan, int64_t row)
{
    int64_t length;

    stki_watch_begin(worker, row, row + 1);
    length = plan->maker->measure(worker, plan, row);
    stki_watch_end(worker);
    return stki_row_has_failed(worker->batch, row) ? -1 : length;
}
