/* loadbench_device.h: loaders that deliver on a device: a consumer that keeps a stream of it busy as a training step
 * would, and what a plain copy of the same size gets over the bus. */
#ifndef LOADBENCH_DEVICE_H
#define LOADBENCH_DEVICE_H

#include "loadbench_consumer.h"

/* The device consumer: its stream, from open to close of a repeat. */
stk_status lb_device_begin(struct lb_consumer_state *state, stk_error *err);
stk_status lb_device_take(struct lb_consumer_state *state, const stk_batch *batch, stk_error *err);
/* All queued steps are done. */
stk_status lb_device_settle(struct lb_consumer_state *state, stk_error *err);
void lb_device_end(struct lb_consumer_state *state);

struct lb_transfer {
    int64_t bytes; /* of a copy */
    double pinned_bytes_per_s, pageable_bytes_per_s;
};

/* Copies of `bytes` from ordinary memory to the device, one behind the other in one stream, as many as fill the time:
 * from pinned memory, queued; and from pageable memory, waited for. `blocks`: the copies go round so many blocks, so
 * that no cache makes them faster than the loader's. */
stk_status lb_transfer_measure(const char *device, int64_t bytes, int blocks, int64_t time_ns, struct lb_transfer *out,
                               stk_error *err);

#endif
