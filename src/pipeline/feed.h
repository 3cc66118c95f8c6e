/* feed.h: a loader's batches on a device. The prefetcher (src/gpu/prefetch.h) takes the ring's batches in the place of
 * the consumer and copies them into device slots; here is what ties the two together. A batch on a device has its
 * tensors there, and its indices, mask and numbers in a small block of its own in ordinary memory, since the slot it
 * came in is being filled anew while the consumer has it.
 *
 *     ring ── feed: tensors of a slot, facts of a batch ── prefetcher ── feed: stk_batch ── consumer
 */
#ifndef STKI_FEED_H
#define STKI_FEED_H

#include "prefetch.h"
#include "slot.h"

typedef struct stki_feed stki_feed;

/* Starts the prefetcher over the core's ring; its thread holds the core until its end. The core destroys the feed. */
stk_status stki_feed_create(stki_core *core, stki_feed **out, stk_error *err);
/* Ends the prefetcher's thread; the ring has been stopped. STK_E_TIMEOUT: it was left behind. */
stk_status stki_feed_close(stki_feed *feed, int64_t timeout_ns, stk_error *err);

/* As stki_prefetch_next; the batch has one hold. */
stk_status stki_feed_next(stki_feed *feed, stk_stream *stream, int64_t timeout_ns, stk_batch **out, stk_error *err);
/* As stki_prefetch_settle. */
stk_status stki_feed_settle(stki_feed *feed, int64_t timeout_ns, stk_error *err);
/* Where a tensor of the plan is on the device. */
void *stki_feed_place(const stk_batch *batch, const stki_field_plan *plan, const stki_row_tensor *tensor);
/* What is queued in `stream` from now on comes behind the batch's bytes. */
stk_status stki_feed_await(const stk_batch *batch, stk_stream *stream, stk_error *err);
/* The slot may be reused once `stream` has passed this point; any number of streams. */
void stki_feed_guard(stk_batch *batch, stk_stream *stream);
/* The last hold has ended. */
void stki_feed_release(stk_batch *batch);
void stki_feed_stats(const stki_feed *feed, stki_prefetch_stats *out);

#endif
