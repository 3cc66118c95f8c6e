/* loadbench_device.h: for loaders that deliver to a device: a consumer that keeps a stream busy like a training step,
 * and the rate of plain copies of the same size over the bus. */
#ifndef LOADBENCH_DEVICE_H
#define LOADBENCH_DEVICE_H

#include "loadbench_consumer.h"

/* The device consumer: its stream, from open to close of a repeat. */
stk_status lb_device_begin(struct lb_consumer_state *state, stk_error *err);
stk_status lb_device_take(struct lb_consumer_state *state, const stk_batch *batch, stk_error *err);
/* Waits for all queued steps. */
stk_status lb_device_settle(struct lb_consumer_state *state, stk_error *err);
void lb_device_end(struct lb_consumer_state *state);

struct lb_transfer {
    int64_t bytes; /* size of a copy */
    double pinned_bytes_per_s, pageable_bytes_per_s;
};

/* Measures consecutive copies of `bytes` to the device in one stream: queued ones from pinned memory, and blocking ones
 * from pageable memory. `blocks`: number of blocks used in turn, so that no cache makes the copies faster than the
 * loader's. */
stk_status lb_transfer_measure(const char *device, int64_t bytes, int blocks, int64_t time_ns, struct lb_transfer *out,
                               stk_error *err);

#endif
