/* loadbench_device.c: see loadbench_device.h. The device consumer only queues work. The host never waits for results,
 * as in a training loop that does not read them. */
#include "loadbench_device.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "loadbench_statistics.h"
#include "loadbench_stop.h"
#include <stdio.h>
#include <stoker/create.h>
#include <string.h>

#define SETTLE_NS (120 * STKI_SECOND)

/* ---- the consumer ---- */

stk_status lb_device_begin(struct lb_consumer_state *state, stk_error *err)
{
    stk_device *device;
    stk_status status;

    if (!state->device[0])
        return stki_fail(
            err, STK_E_CONFIG,
            "bench.consumer: found device, but the loader delivers batches in ordinary memory: set loader.device "
            "(host, cuda:0)");
    status = stk_device_find(state->device, &device, err);
    return status == STK_OK ? stk_stream_create(device, &state->stream, err) : status;
}

stk_status lb_device_take(struct lb_consumer_state *state, const stk_batch *batch, stk_error *err)
{
    (void)batch;
    return state->step_ns > 0 ? stk_stream_spin(state->stream, state->step_ns, err) : STK_OK;
}

stk_status lb_device_settle(struct lb_consumer_state *state, stk_error *err)
{
    return state->stream ? stk_stream_synchronize(state->stream, SETTLE_NS, err) : STK_OK;
}

void lb_device_end(struct lb_consumer_state *state)
{
    stk_stream_destroy(state->stream);
    state->stream = NULL;
}

/* ---- plain copies ---- */

enum { MOST_BLOCKS = 16, MOST_ROUNDS = 256 };
#define MOST_BYTES (INT64_C(256) << 20) /* limit for the total size of the blocks of each kind */

/* May be zeroed, which means no blocks. */
struct blocks {
    stk_tensor pinned[MOST_BLOCKS], pageable[MOST_BLOCKS], there[MOST_BLOCKS];
    int count;
    stk_stream *stream;
    stk_event *begin, *end;
};

static void release_blocks(struct blocks *b)
{
    (void)stk_stream_synchronize(b->stream, SETTLE_NS, NULL);
    for (int i = 0; i < b->count; i++) {
        stk_tensor_release(&b->pinned[i]);
        stk_tensor_release(&b->pageable[i]);
        stk_tensor_release(&b->there[i]);
    }
    stk_event_destroy(b->begin);
    stk_event_destroy(b->end);
    stk_stream_destroy(b->stream);
}

static stk_status make_blocks(stk_device *device, int64_t bytes, int blocks, struct blocks *out, stk_error *err)
{
    const stk_scalar one = stk_int(1);
    int most = bytes > 0 ? (int)(MOST_BYTES / bytes < MOST_BLOCKS ? MOST_BYTES / bytes : MOST_BLOCKS) : 1;
    stk_status status;

    most = most < 1 ? 1 : most;
    out->count = blocks < 1 ? 1 : blocks > most ? most : blocks;
    if ((status = stk_stream_create(device, &out->stream, err)) != STK_OK ||
        (status = stk_event_create(device, true, &out->begin, err)) != STK_OK ||
        (status = stk_event_create(device, true, &out->end, err)) != STK_OK)
        return status;
    for (int i = 0; i < out->count && status == STK_OK; i++) {
        if (lb_stop_asked)
            return STK_END;
        if ((status = stk_tensor_full(STK_U8, 1, &bytes, one, NULL, &out->pageable[i], err)) == STK_OK &&
            (status = stk_tensor_empty_pinned(STK_U8, 1, &bytes, device, &out->pinned[i], err)) == STK_OK)
            status = stk_tensor_full(STK_U8, 1, &bytes, one, device, &out->there[i], err);
        if (status == STK_OK)
            memset(out->pinned[i].data, 1, (size_t)bytes);
    }
    return status;
}

/* Copies every block once, timed with events of the stream. */
static stk_status pinned_round(struct blocks *b, int64_t *ns, stk_error *err)
{
    stk_status status = stk_event_record(b->begin, b->stream, err);

    for (int i = 0; i < b->count && status == STK_OK; i++)
        status = stk_tensor_copy_on(&b->there[i], &b->pinned[i], b->stream, true, err);
    if (status != STK_OK || (status = stk_event_record(b->end, b->stream, err)) != STK_OK ||
        (status = stk_event_synchronize(b->end, SETTLE_NS, err)) != STK_OK)
        return status;
    return stk_event_elapsed(b->begin, b->end, ns, err);
}

static stk_status pageable_round(struct blocks *b, int64_t *ns, stk_error *err)
{
    const int64_t before = stki_now_ns();
    stk_status status = STK_OK;

    for (int i = 0; i < b->count && status == STK_OK; i++)
        status = stk_tensor_copy_on(&b->there[i], &b->pageable[i], b->stream, false, err);
    *ns = stki_now_ns() - before;
    return status;
}

/* Runs a warm-up round, then rounds for time_ns, but at least three. *out is the median rate. */
static stk_status rate_of(struct blocks *b, stk_status (*round)(struct blocks *, int64_t *, stk_error *), int64_t bytes,
                          int64_t time_ns, double *out, stk_error *err)
{
    const int64_t end = stki_now_ns() + time_ns;
    double rates[MOST_ROUNDS];
    int64_t ns;
    stk_status status = round(b, &ns, err);
    int count = 0;

    while (status == STK_OK && count < MOST_ROUNDS && (count < 3 || stki_now_ns() < end)) {
        if (lb_stop_asked)
            return STK_END;
        status = round(b, &ns, err);
        rates[count++] = lb_ratio((double)(bytes * b->count) * 1e9, (double)ns);
    }
    if (status == STK_OK)
        *out = lb_summarize(rates, count).median;
    return status;
}

stk_status lb_transfer_measure(const char *device_name, int64_t bytes, int blocks, int64_t time_ns,
                               struct lb_transfer *out, stk_error *err)
{
    struct blocks *b = stki_zalloc(sizeof *b);
    stk_device *device;
    stk_status status;

    *out = (struct lb_transfer){.bytes = bytes};
    if (!b)
        return stki_fail_memory(err, sizeof *b, "measuring copies");
    if ((status = stk_device_find(device_name, &device, err)) == STK_OK &&
        (status = make_blocks(device, bytes, blocks, b, err)) == STK_OK &&
        (status = rate_of(b, pinned_round, bytes, time_ns, &out->pinned_bytes_per_s, err)) == STK_OK)
        status = rate_of(b, pageable_round, bytes, time_ns, &out->pageable_bytes_per_s, err);
    release_blocks(b);
    stki_free(b);
    return status;
}
