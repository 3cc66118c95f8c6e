/* feed.c: see feed.h. */
#include "feed.h"
#include "checked.h"
#include "clock.h"
#include "core.h"
#include "error.h"
#include "failed.h"
#include "stream.h"
#include <stdio.h>
#include <string.h>

/* how long the copying thread, if it is also the worker, sleeps when no batch is available */
#define NOTHING_TO_DO_NS 100000

struct stki_feed {
    stki_core *core;
    stki_prefetch *prefetch;
    stk_batch *batches;             /* one per device slot */
    int (*parts)[STKI_ROW_TENSORS]; /* per plan: the numbers of its tensors among the parts of a device slot */
    char *memory;                   /* for all batches: the part of a slot from layout.rest on */
    int64_t memory_bytes;
    void **buffers; /* memory from the caller, `device_prefetch` entries per plan; NULL: none */
};

/* ---- the slot on the device ---- */

static void **buffers_of(const stki_feed *feed, int plan)
{
    return feed->buffers ? feed->buffers + plan * feed->core->config->device_prefetch : NULL;
}

/* Tensors that are adjacent in the host slot are adjacent on the device too and are copied together. The parts are
 * therefore in the order of the slot, late tensors last. */
static int describe_parts(const stki_feed *feed, stki_prefetch_part *parts, int64_t *slot_bytes)
{
    const stki_core *core = feed->core;
    int64_t used = 0;
    int count = 0;

    for (int late = 0; late < 2; late++)
        for (int i = 0; i < core->plan_count; i++)
            for (int k = 0; k < core->plans[i].tensor_count; k++) {
                const stki_row_tensor *tensor = &core->plans[i].tensors[k];
                void **buffers = k == 0 ? buffers_of(feed, i) : NULL;

                if (tensor->late != late)
                    continue;
                feed->parts[i][k] = count;
                parts[count++] = (stki_prefetch_part){
                    .copy_offset = tensor->offset,
                    .copy_bytes = stki_tensor_room(tensor, core->max_rows),
                    .buffers = buffers && buffers[0] ? buffers : NULL,
                };
            }
    for (int i = 0; i < count; i++) /* the device slot has the layout of a ring slot, followed by the converted parts */
        if (parts[i].copy_offset + parts[i].copy_bytes > used)
            used = parts[i].copy_offset + parts[i].copy_bytes;
    for (int i = 0; i < core->plan_count; i++) {
        const stki_field_plan *plan = &core->plans[i];
        stki_prefetch_part *part = &parts[feed->parts[i][0]];

        if (!plan->device.convert)
            continue;
        used = stki_round_up(used, STKI_DEVICE_ALIGNMENT);
        part->convert = plan->device.convert;
        part->src_stride = plan->row_bytes;
        part->dst_stride = plan->device.form.row_bytes;
        part->offset = used;
        part->bytes = core->max_rows * plan->device.form.row_bytes;
        used += part->buffers ? 0 : part->bytes;
    }
    *slot_bytes = used;
    return count;
}

/* ---- upstream: the ring ---- */

/* Copies a batch without the tensors that precede layout.rest in the slot. */
static void copy_facts(const stki_slot_layout *layout, stk_batch *to, const stk_batch *from)
{
    to->epoch = from->epoch;
    to->step = from->step;
    to->rows = from->rows;
    to->valid = from->valid;
    to->last_of_epoch = from->last_of_epoch;
    to->ring.step = from->ring.step;
    to->ring.generation = from->ring.generation;
    to->digest = from->digest;
    to->left_out = from->left_out;
    to->error_row = from->error_row;
    if (from->error_row >= 0)
        to->error = from->error;
    memcpy(to->memory + layout->rest, from->memory + layout->rest, (size_t)(layout->bytes - layout->rest));
}

static void fill_loads(const stki_feed *feed, const stk_batch *from, stki_prefetch_load *loads)
{
    const stki_core *core = feed->core;

    for (int i = 0; i < core->plan_count; i++)
        for (int k = 0; k < core->plans[i].tensor_count; k++) {
            const stki_row_tensor *tensor = &core->plans[i].tensors[k];
            const int64_t units = stki_tensor_units(&core->plans[i], tensor, from->memory, from->rows);

            loads[feed->parts[i][k]] =
                (stki_prefetch_load){from->memory + tensor->offset,
                                     (units + (tensor->extent == STKI_LENGTHS)) * tensor->unit_bytes, from->rows};
        }
}

static stk_status next_from_ring(void *context, int slot, int64_t deadline_ns, stki_prefetch_load *loads, void **held,
                                 stk_error *err)
{
    stki_feed *feed = context;
    stki_core *core = feed->core;
    stki_ring_slot *leased = NULL;
    int64_t waited = 0;
    stk_batch *batch;
    stk_status status;

    if (core->worker_count == 0)
        stki_core_work(core, deadline_ns);
    status = stki_ring_next(core->ring, core->worker_count ? deadline_ns : 0, &leased, &waited);
    if (status == STK_E_TIMEOUT && core->worker_count == 0 && stki_now_ns() < deadline_ns)
        stki_sleep_ns(NOTHING_TO_DO_NS); /* no slot is free, or the run has ended with an error */
    if (status == STK_E_CLOSED)
        return stki_fail(err, STK_E_CLOSED, "the loader is closed");
    if (status == STK_END) { /* not an error: the consumer detects the end itself and may restart the ring */
        stki_ring_await_restart(core->ring, deadline_ns);
        return STK_E_TIMEOUT;
    }
    if (status != STK_OK)
        return status;
    batch = (stk_batch *)(void *)leased;
    copy_facts(&core->layout, &feed->batches[slot], batch);
    stki_failed_forget(&feed->batches[slot]); /* left over if the previous batch was discarded */
    feed->batches[slot].failures = batch->failures;
    batch->failures = NULL;
    if (batch->error_row >= 0) { /* delivered as an error, without data; no further steps are opened */
        stki_ring_finish(core->ring, leased);
        stki_ring_release(core->ring, leased);
        *held = NULL;
        return STK_OK;
    }
    fill_loads(feed, batch, loads);
    *held = batch;
    return STK_OK;
}

static void release_to_ring(void *context, void *held)
{
    stki_feed *feed = context;
    stk_batch *batch = held;

    if (!batch)
        return;
#ifdef STKI_POISON
    memset(batch->memory, 0xA5,
           (size_t)feed->core->layout.bytes); /* poison the memory, so that use after release is detected */
#endif
    stki_ring_release(feed->core->ring, &batch->ring);
}

static void end_of_thread(void *context)
{
    stki_core_release(((stki_feed *)context)->core);
}

/* ---- creation and destruction ---- */

static stk_status make_batches(stki_feed *feed, stk_error *err)
{
    stki_core *core = feed->core;
    int64_t depth = core->config->device_prefetch;
    int64_t rest = stki_round_up(core->layout.bytes - core->layout.rest, 64);

    feed->memory_bytes = depth * rest;
    feed->batches = stki_zalloc_array(depth, sizeof *feed->batches);
    feed->parts = stki_zalloc_array(core->plan_count, sizeof *feed->parts);
    feed->memory = stki_block_alloc(NULL, feed->memory_bytes, 64);
    if (!feed->batches || !feed->parts || !feed->memory)
        return stki_fail_memory(err, feed->memory_bytes, "the batches on the device");
    for (int64_t i = 0; i < depth; i++) {
        stk_batch *batch = &feed->batches[i];

        batch->core = core;
        batch->device_slot = (int)i;
        /* The address at which a whole slot would start if its part from layout.rest on were at this place in
         * feed->memory. Only that part may be accessed. */
        batch->memory = (char *)((uintptr_t)(feed->memory + i * rest) - (uintptr_t)core->layout.rest);
        stki_slot_point(batch, &core->layout);
    }
    return STK_OK;
}

/* Gets device memory from the caller's callback. */
static stk_status ask_for_buffers(stki_feed *feed, stk_error *err)
{
    const stki_loader_config *config = feed->core->config;
    int64_t depth = config->device_prefetch;

    if (!config->device_buffer)
        return STK_OK;
    feed->buffers = stki_zalloc_array(feed->core->plan_count * depth, sizeof *feed->buffers);
    if (!feed->buffers)
        return stki_fail_memory(err, feed->core->plan_count * depth * 8, "the caller's buffers");
    for (int i = 0; i < feed->core->plan_count; i++) {
        const stki_field_plan *plan = &feed->core->plans[i];
        void **buffers = buffers_of(feed, i);
        stki_row_form form;

        stki_plan_form(plan, &form);
        for (int64_t k = 0; k < depth && !plan->rows->measured; k++) {
            buffers[k] = config->device_buffer(config->device_buffer_context, plan->name, (int)k,
                                               feed->core->max_rows * form.row_bytes);
            if (!buffers[k] != !buffers[0])
                return stki_fail(err, STK_E_BAD_ARG,
                                 "device_buffer: found memory for some of the slots of %s, expected it for all or none",
                                 plan->name);
        }
    }
    return STK_OK;
}

static stk_status start(stki_feed *feed, stk_error *err)
{
    stki_core *core = feed->core;
    stki_prefetch_part *parts = stki_zalloc_array((int64_t)STKI_ROW_TENSORS * core->plan_count, sizeof *parts);
    stki_prefetch_opts opts = {
        .device = core->device,
        .depth = (int)core->config->device_prefetch,
        .parts = parts,
        .upstream = {feed, next_from_ring, release_to_ring, end_of_thread},
    };
    stk_error cause = {0};
    stk_status status;

    if (!parts)
        return stki_fail_memory(err, STKI_ROW_TENSORS * core->plan_count * (int64_t)sizeof *parts,
                                "the parts of a slot");
    opts.part_count = describe_parts(feed, parts, &opts.slot_bytes);
    core->device_slot_bytes = opts.slot_bytes;
    stki_core_retain(core); /* the thread's reference */
    status = stki_prefetch_create(&opts, &feed->prefetch, &cause);
    stki_free(parts);
    if (status == STK_OK)
        return STK_OK;
    stki_core_release(core);
    if (status == STK_E_MEMORY)
        return stki_fail(err, status, "loader.device_prefetch: %d batches of %lld bytes on %s: %s", opts.depth,
                         (long long)opts.slot_bytes, core->device->name, cause.message);
    if (err)
        *err = cause;
    return status;
}

/* Accepts NULL. */
static void destroy(stki_feed *feed)
{
    if (!feed)
        return;
    stki_prefetch_destroy(feed->prefetch);
    for (int64_t i = 0; feed->batches && i < feed->core->config->device_prefetch; i++)
        stki_failed_forget(&feed->batches[i]);
    stki_block_free(NULL, feed->memory, feed->memory_bytes, 64);
    stki_free(feed->batches);
    stki_free(feed->parts);
    stki_free(feed->buffers);
    stki_free(feed);
}

static bool has_passed(const stki_feed *feed, int64_t deadline_ns)
{
    return !feed->prefetch || stki_prefetch_has_passed(feed->prefetch, deadline_ns);
}

stk_status stki_feed_create(stki_core *core, stki_feed **out, stk_error *err)
{
    stki_feed *feed = stki_zalloc(sizeof *feed);
    stk_status status;

    if (!feed)
        return stki_fail_memory(err, sizeof *feed, "the feed to a device");
    feed->core = core;
    *out = feed; /* the core destroys it */
    core->destroy_feed = destroy;
    core->feed_has_passed = has_passed;
    if ((status = make_batches(feed, err)) == STK_OK && (status = ask_for_buffers(feed, err)) == STK_OK)
        status = start(feed, err);
    return status;
}

stk_status stki_feed_close(stki_feed *feed, int64_t timeout_ns, stk_error *err)
{
    return feed->prefetch ? stki_prefetch_close(feed->prefetch, timeout_ns, err) : STK_OK;
}

/* ---- the consumer's side ---- */

stk_status stki_feed_next(stki_feed *feed, stk_stream *stream, int64_t timeout_ns, stk_batch **out, stk_error *err)
{
    int slot;
    stk_status status = stki_prefetch_next(feed->prefetch, stream, timeout_ns, &slot, err);

    if (status != STK_OK)
        return status;
    *out = &feed->batches[slot];
    (*out)->stream = stream;
    stki_stream_retain(stream);
    return STK_OK;
}

stk_status stki_feed_settle(stki_feed *feed, int64_t timeout_ns, stk_error *err)
{
    return stki_prefetch_settle(feed->prefetch, timeout_ns, err);
}

void *stki_feed_place(const stk_batch *batch, const stki_field_plan *plan, const stki_row_tensor *tensor)
{
    const stki_feed *feed = batch->core->feed;

    return stki_prefetch_place(feed->prefetch, batch->device_slot,
                               feed->parts[plan - batch->core->plans][tensor - plan->tensors]);
}

stk_status stki_feed_await(const stk_batch *batch, stk_stream *stream, stk_error *err)
{
    return stki_prefetch_await(batch->core->feed->prefetch, batch->device_slot, stream, err);
}

void stki_feed_guard(stk_batch *batch, stk_stream *stream)
{
    stki_prefetch_guard(batch->core->feed->prefetch, batch->device_slot, stream);
}

void stki_feed_release(stk_batch *batch)
{
    stk_stream *stream = batch->stream;

    batch->stream = NULL;
    stki_prefetch_release(batch->core->feed->prefetch, batch->device_slot);
    stki_stream_release(stream);
}

void stki_feed_stats(const stki_feed *feed, stki_prefetch_stats *out)
{
    stki_prefetch_read_stats(feed->prefetch, out);
}
