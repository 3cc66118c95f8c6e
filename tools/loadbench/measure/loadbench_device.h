/* loadbench_device.h: for loaders that deliver to a device. Provides a consumer that keeps a stream busy, as a training
 * step does, and measures the rate of plain copies of the same size over the bus. */
#ifndef LOADBENCH_DEVICE_H
#define LOADBENCH_DEVICE_H

#include "loadbench_consumer.h"

/* The device consumer. Its stream exists from lb_device_begin to lb_device_end, which is one repeat. */
stk_status lb_device_begin(struct lb_consumer_state *state, stk_error *err);
stk_status lb_device_take(struct lb_consumer_state *state, const stk_batch *batch, stk_error *err);
/* Blocks until all queued steps are done. */
stk_status lb_device_settle(struct lb_consumer_state *state, stk_error *err);
void lb_device_end(struct lb_consumer_state *state);

struct lb_transfer {
    int64_t bytes; /* size of a copy */
    double pinned_bytes_per_s, pageable_bytes_per_s;
};

/* Measures consecutive copies of `bytes` to the device on one stream: queued copies from pinned memory, and blocking
 * copies from pageable memory. The copies cycle through `blocks` blocks, so that caches do not make them faster than
 * the loader's copies. */
stk_status lb_transfer_measure(const char *device, int64_t bytes, int blocks, int64_t time_ns, struct lb_transfer *out,
                               stk_error *err);

#endif
