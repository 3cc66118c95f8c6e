/* order_shift.h: windows over token streams, at offsets that vary by epoch. In each epoch the windows of a shard,
 * `stride` apart, begin at an offset in [0, stride) drawn by a hash of seed, epoch and shard. Every token is therefore
 * used about once per epoch, and the windows are cut at different places each time. The underlying order numbers
 * windows; this module maps the numbers to starts. Immutable after creation and thread-safe. */
#ifndef STKI_ORDER_SHIFT_H
#define STKI_ORDER_SHIFT_H

#include "order.h"

typedef struct stki_shift stki_shift;

/* Number of windows in a shard with this many starts; the same for any offset. */
int64_t stki_shift_windows(int64_t starts, int64_t stride);

stk_status stki_shift_create(const stki_order_starts *starts, uint64_t seed, stki_shift **out, stk_error *err);
void stki_shift_destroy(stki_shift *shift); /* NULL is allowed. */
/* Replaces positions[i].sample, the number of a window, with the number of its start. */
void stki_shift_apply(const stki_shift *shift, int64_t epoch, stki_position *positions, int64_t count);

#endif
