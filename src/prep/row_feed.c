/* row_feed.c: see row_feed.h. */
#include "row_feed.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "grow.h"
#include <string.h>

enum { TICK_NS = 100000000 };

/* ---- skipped samples ---- */

static void add_skipped(stki_skipped_list *list, int64_t position, int64_t sample, const stk_error *error)
{
    if (stki_grow(&list->items, &list->room, list->count + 1, sizeof *list->items, "", NULL) == STK_OK)
        list->items[list->count++] = (stki_skipped){position, sample, *error};
    else
        list->failed = true;
}

void stki_skipped_fini(stki_skipped_list *list)
{
    stki_free(list->items);
    *list = (stki_skipped_list){0};
}

void stki_row_feed_left_out(void *context, int64_t position, int64_t sample, const stk_error *error)
{
    stki_row_feed *rows = context;

    add_skipped(&rows->left_out, position, sample, error);
}

/* Moves the skipped samples at positions below `end` to `to`. */
static stk_status hand_out(stki_row_feed *rows, int64_t end, stki_skipped_list *to, stk_error *err)
{
    stki_skipped_list *from = &rows->left_out;
    int64_t n = 0;

    for (; n < from->count && from->items[n].position < end; n++)
        if (from->items[n].position >= rows->at)
            add_skipped(to, from->items[n].position, from->items[n].sample, &from->items[n].error);
    from->count -= n;
    if (n > 0)
        memmove(from->items, from->items + n, (size_t)from->count * sizeof *from->items);
    return from->failed || to->failed ? stki_fail_memory(err, (int64_t)sizeof *to->items, "the list of failed samples")
                                      : STK_OK;
}

/* ---- batches ---- */

stk_status stki_row_feed_init(stki_row_feed *rows, stk_loader *loader, int most, stk_error *err)
{
    rows->loader = loader;
    rows->held_count = most + 1;
    rows->held = stki_zalloc_array(rows->held_count, sizeof *rows->held);
    return rows->held ? STK_OK : stki_fail_memory(err, rows->held_count * (int64_t)sizeof *rows->held, "a job");
}

void stki_row_feed_fini(stki_row_feed *rows)
{
    for (int i = 0; rows->held && i < rows->held_count; i++)
        if (rows->held[i].uses > 0)
            stk_batch_release(rows->held[i].batch);
    stki_free(rows->held);
    rows->held = NULL;
    stki_skipped_fini(&rows->left_out);
}

void stki_row_feed_done(stki_row_feed *rows, stki_held *held)
{
    (void)rows;
    if (held && --held->uses == 0)
        stk_batch_release(held->batch);
}

int stki_row_feed_held(const stki_row_feed *rows)
{
    int held = 0;

    for (int i = 0; i < rows->held_count; i++)
        held += rows->held[i].uses > 0;
    return held;
}

static void let_go(stki_row_feed *rows)
{
    stki_row_feed_done(rows, rows->current);
    rows->current = NULL;
    rows->row = 0;
}

void stki_row_feed_seek(stki_row_feed *rows, int64_t position)
{
    if (position == rows->at && !rows->seeks)
        return;
    let_go(rows);
    rows->at = position;
    rows->seeks = true;
    rows->left_out.count = 0;
}

static stk_status wait_for_batch(stki_row_feed *rows, stk_batch **out, stk_error *err)
{
    for (;;) {
        const int64_t begin = stki_now_ns();
        stk_status status = stk_loader_next_timeout(rows->loader, TICK_NS, out, err);

        rows->wait_ns += stki_now_ns() - begin;
        if (atomic_load_explicit(rows->cancelled, memory_order_relaxed)) {
            if (status == STK_OK)
                stk_batch_release(*out);
            return stki_fail(err, STK_E_CANCELLED, "the job was stopped; run it again to resume");
        }
        if (status != STK_E_TIMEOUT)
            return status;
        if (rows->tick)
            rows->tick(rows->tick_context);
    }
}

/* Fetches the batch that contains position `at`, and skips its earlier rows. */
static stk_status fetch(stki_row_feed *rows, stk_error *err)
{
    stki_held *held = rows->held;
    stk_batch *batch;
    stk_status status = STK_OK;

    if (rows->seeks)
        status = stk_loader_seek(rows->loader, 0, rows->at / rows->batch_rows, err);
    rows->seeks = false;
    if (status == STK_OK && !rows->started)
        status = stki_workers_start(rows->core, err);
    rows->started = true;
    if (status == STK_OK)
        status = wait_for_batch(rows, &batch, err);
    if (status == STK_END)
        return stki_fail(err, STK_E_MISMATCH, "the data set ended at position %lld, expected %lld positions",
                         (long long)rows->at, (long long)rows->positions);
    if (status != STK_OK)
        return status;
    while (held->uses > 0)
        held++;
    *held = (stki_held){batch, 1};
    rows->current = held;
    for (rows->row = 0; rows->row < batch->rows && batch->positions[rows->row].draw < rows->at;)
        rows->row++;
    return STK_OK;
}

stk_status stki_row_feed_next(stki_row_feed *rows, int64_t end, stki_run_of_rows *out, stki_skipped_list *left_out,
                              stk_error *err)
{
    const int64_t batch_end = (rows->at / rows->batch_rows + 1) * rows->batch_rows;
    const stk_batch *batch;
    stk_status status = rows->current ? STK_OK : fetch(rows, err);

    if (status != STK_OK)
        return status;
    batch = rows->current->batch;
    *out = (stki_run_of_rows){.held = rows->current, .first = rows->row, .from = rows->at};
    out->end = end < batch_end ? end : batch_end;
    out->end = out->end < rows->positions ? out->end : rows->positions;
    while (rows->row < batch->rows && batch->positions[rows->row].draw < out->end)
        rows->row++;
    out->count = rows->row - out->first;
    out->held->uses++;
    status = hand_out(rows, out->end, left_out, err);
    rows->at = out->end;
    if (out->end == batch_end || out->end == rows->positions)
        let_go(rows);
    return status;
}
