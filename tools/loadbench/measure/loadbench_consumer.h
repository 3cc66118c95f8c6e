/* loadbench_consumer.h: the consumers of batches, one table row each. */
#ifndef LOADBENCH_CONSUMER_H
#define LOADBENCH_CONSUMER_H

#include <stoker/loader.h>

/* The state of a consumer. */
struct lb_consumer_state {
    int field_count;
    const char *const *field_names;
    uint64_t checksum;  /* sum of everything read; 0 if nothing is read */
    char device[32];    /* the device that the loader delivers to; "": ordinary memory */
    int64_t step_ns;    /* bench.step_time */
    stk_stream *stream; /* batches are requested and released on this stream; NULL: on the host */
    int timer_slack;    /* step consumer: this thread's previous timer slack in ns */
    bool cut;           /* a signal interrupted the step */
};

struct lb_consumer {
    const char *name, *help;
    /* Uses a batch, which is released afterwards. */
    stk_status (*take)(struct lb_consumer_state *state, const stk_batch *batch, stk_error *err);
    /* `begin` and `end` are called once per repeat. `settle` blocks until the work queued for previous batches is done.
     * Each may be NULL. */
    stk_status (*begin)(struct lb_consumer_state *state, stk_error *err);
    stk_status (*settle)(struct lb_consumer_state *state, stk_error *err);
    void (*end)(struct lb_consumer_state *state);
};

extern const struct lb_consumer lb_consumers[];
enum { LB_CONSUMER_NULL, LB_CONSUMER_TOUCH, LB_CONSUMER_DEVICE, LB_CONSUMER_STEP }; /* indexes into the table */
/* The names, NULL-terminated, in the order of the table. */
extern const char *const lb_consumer_words[];

/* Reads every byte of a tensor with any strides and returns the sum of its 8-byte words (little-endian, in memory
 * order, the last one padded with zeros; modulo 2^64). Non-contiguous tensors are divided into their longest contiguous
 * runs, each of which is summed in this way, in memory order. */
uint64_t lb_tensor_sum(const stk_tensor *tensor);

#endif
