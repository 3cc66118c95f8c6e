/* order_bucket.h: bucketing, over any other order: samples of about the same length share a batch, so that little is
 * padded. The order is cut into windows of `window` global batches; a window's positions are sorted by (length of the
 * sample, position), cut into global batches again, and these are permuted by a keyed bijection (not under
 * `sequential`). A smaller batch at the end of the epoch stays there; it holds the longest samples of its window. What
 * a window holds depends on no rank and no worker.
 *
 * The windows in use are kept as tables, and the next one is sorted ahead (order_tables.h), as well as the first of the
 * epoch, whose samples may be padding at its end: 112 bytes a position. Any thread. */
#ifndef STKI_ORDER_BUCKET_H
#define STKI_ORDER_BUCKET_H

#include "order.h"
#include <stdbool.h>

typedef struct stki_buckets stki_buckets;

/* The order beneath: n positions from `first` on, which it fills. The caller asks for all of them in turn. */
typedef void stki_order_beneath(const void *context, int64_t epoch, int64_t first, int64_t n, stki_position *out);

/* `length`: positions of an epoch. The options' bucket_window, bucket_batch, length_of and length_context are used. */
stk_status stki_buckets_create(const stki_order_opts *opts, int64_t length, stki_order_beneath *beneath,
                               const void *context, stki_buckets **out, stk_error *err);
void stki_buckets_destroy(stki_buckets *buckets); /* NULL is fine */
void stki_buckets_eval(stki_buckets *buckets, int64_t epoch, int64_t first, int64_t n, stki_position *out);
/* Positions up to `taken` of the epoch are out, the last `n` by the caller: the next window is sorted ahead, unless
 * it would be of another epoch and this one is the last. */
void stki_buckets_ahead(stki_buckets *buckets, int64_t epoch, int64_t taken, int64_t n, bool last);

/* Whether the window of a position is sorted. */
bool stki_buckets_is_ready(const stki_buckets *buckets, int64_t epoch, int64_t position);

#endif
