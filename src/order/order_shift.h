/* order_shift.h: windows of token streams whose offsets differ from epoch to epoch: in each epoch a shard's windows,
 * `stride` apart, begin at another offset, drawn from [0, stride) by a hash of seed, epoch and shard. So every token is
 * seen about once an epoch, and windows are cut at other places each time. The order beneath counts windows; this turns
 * their numbers into starts. Fixed after create; any thread. */
#ifndef STKI_ORDER_SHIFT_H
#define STKI_ORDER_SHIFT_H

#include "order.h"

typedef struct stki_shift stki_shift;

/* Windows that a shard with so many starts has, whatever the offset. */
int64_t stki_shift_windows(int64_t starts, int64_t stride);

stk_status stki_shift_create(const stki_order_starts *starts, uint64_t seed, stki_shift **out, stk_error *err);
void stki_shift_destroy(stki_shift *shift); /* NULL is fine */
/* positions[i].sample: from the number of a window to that of its start. */
void stki_shift_apply(const stki_shift *shift, int64_t epoch, stki_position *positions, int64_t count);

#endif
