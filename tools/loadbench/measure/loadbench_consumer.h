/* loadbench_consumer.h: who takes the batches. A consumer is one row of a table, so that further kinds are rows too. */
#ifndef LOADBENCH_CONSUMER_H
#define LOADBENCH_CONSUMER_H

#include <stoker/loader.h>

/* What a consumer is given at its start and adds to. */
struct lb_consumer_state {
    int field_count;
    const char *const *field_names;
    uint64_t checksum;  /* of everything read; 0 for those who read nothing */
    char device[32];    /* where the loader delivers; "" for ordinary memory */
    int64_t step_ns;    /* bench.step_time */
    stk_stream *stream; /* batches are asked for and released in it; NULL: on the host */
    int timer_slack;    /* of the step consumer: what this thread's was, ns */
    bool cut;           /* a signal ended the step early */
};

struct lb_consumer {
    const char *name, *help;
    /* Uses a batch, which is released afterwards. */
    stk_status (*take)(struct lb_consumer_state *state, const stk_batch *batch, stk_error *err);
    /* Of a repeat; any may be NULL. settle: what has been queued for the batches so far is done when it returns. */
    stk_status (*begin)(struct lb_consumer_state *state, stk_error *err);
    stk_status (*settle)(struct lb_consumer_state *state, stk_error *err);
    void (*end)(struct lb_consumer_state *state);
};

extern const struct lb_consumer lb_consumers[];
enum { LB_CONSUMER_NULL, LB_CONSUMER_TOUCH, LB_CONSUMER_DEVICE, LB_CONSUMER_STEP }; /* their places in it */
/* The names, ended by NULL, in the order of the table. */
extern const char *const lb_consumer_words[];

/* Reads every byte of a tensor of any strides and returns the sum of its 8-byte words (little-endian, in the order of
 * memory, the last one filled up with zeros; modulo 2^64). Tensors whose elements do not lie side by side count as
 * their longest runs that do, each summed so, the runs in the order of memory. */
uint64_t lb_tensor_sum(const stk_tensor *tensor);

#endif
