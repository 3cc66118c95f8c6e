/* order_bucket.h: bucketing on top of any other order: samples of similar length share a batch, to minimize padding.
 * The underlying order is divided into windows of `window` global batches. The positions of a window are sorted by
 * (length of the sample, position) and divided into global batches again, which are permuted by a keyed bijection
 * (except with `sequential`). A partial batch at the end of the epoch stays there; it holds the longest samples of its
 * window. The contents of a window do not depend on ranks or workers.
 *
 * The windows in use are kept as tables, and so is the first window of the epoch, whose samples may be used as padding
 * at its end; the next window is sorted in advance (order_tables.h). The tables take 112 bytes per position of a
 * window. Thread-safe. */
#ifndef STKI_ORDER_BUCKET_H
#define STKI_ORDER_BUCKET_H

#include "order.h"
#include <stdbool.h>

typedef struct stki_buckets stki_buckets;

/* The underlying order: fills in n positions starting at `first`. Positions are requested in sequence. */
typedef void stki_order_underlying(const void *context, int64_t epoch, int64_t first, int64_t n, stki_position *out);

/* `length`: positions per epoch. Uses the options bucket_window, bucket_batch, length_of and length_context. */
stk_status stki_buckets_create(const stki_order_opts *opts, int64_t length, stki_order_underlying *underlying,
                               const void *context, stki_buckets **out, stk_error *err);
void stki_buckets_destroy(stki_buckets *buckets); /* NULL is allowed. */
void stki_buckets_eval(stki_buckets *buckets, int64_t epoch, int64_t first, int64_t n, stki_position *out);
/* Sorts part of the next window, unless that is in another epoch and this epoch is the last. Call it after the first
 * `taken` positions of the epoch have been taken, the last `n` of them by the caller. */
void stki_buckets_ahead(stki_buckets *buckets, int64_t epoch, int64_t taken, int64_t n, bool last);

/* Whether the window of a position has been sorted. */
bool stki_buckets_is_ready(const stki_buckets *buckets, int64_t epoch, int64_t position);

#endif
