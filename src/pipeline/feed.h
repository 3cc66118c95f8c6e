/* feed.h: a loader's batches on a device. The ring's consumer is then the prefetcher (src/gpu/prefetch.h), which copies
 * batches into device slots. This module connects the two. The tensors of a device batch are on the device. Its
 * indices, mask and counts are in a small separate block of ordinary memory, because the host slot that the batch came
 * from is refilled while the consumer holds the batch.
 *
 *     ring ── feed: tensors and metadata of a slot ── prefetcher ── feed: stk_batch ── consumer */
#ifndef STKI_FEED_H
#define STKI_FEED_H

#include "prefetch.h"
#include "slot.h"

typedef struct stki_feed stki_feed;

/* Starts the prefetcher on the core's ring; its thread holds a reference to the core until it ends. The core destroys
 * the feed. */
stk_status stki_feed_create(stki_core *core, stki_feed **out, stk_error *err);
/* Ends the prefetcher's thread; the ring must have been stopped. STK_E_TIMEOUT: the thread was abandoned. */
stk_status stki_feed_close(stki_feed *feed, int64_t timeout_ns, stk_error *err);

/* Like stki_prefetch_next. The batch is returned with one hold. */
stk_status stki_feed_next(stki_feed *feed, stk_stream *stream, int64_t timeout_ns, stk_batch **out, stk_error *err);
/* Like stki_prefetch_settle. */
stk_status stki_feed_settle(stki_feed *feed, int64_t timeout_ns, stk_error *err);
/* Returns the device address of a tensor of the plan. */
void *stki_feed_place(const stk_batch *batch, const stki_field_plan *plan, const stki_row_tensor *tensor);
/* Makes later work in `stream` wait until the batch's bytes have been written. */
stk_status stki_feed_await(const stk_batch *batch, stk_stream *stream, stk_error *err);
/* Prevents the slot from being reused until the work queued in `stream` so far has finished. May be called for any
 * number of streams. */
void stki_feed_guard(stk_batch *batch, stk_stream *stream);
/* Called when the batch's last hold ends. Returns the device slot to the prefetcher. */
void stki_feed_release(stk_batch *batch);
void stki_feed_stats(const stki_feed *feed, stki_prefetch_stats *out);

#endif
