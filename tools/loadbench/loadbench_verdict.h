/* loadbench_verdict.h: who waits for whom, in one sentence. */
#ifndef LOADBENCH_VERDICT_H
#define LOADBENCH_VERDICT_H

#include <stdint.h>

/* Where the time went, as shares from 0 to 1: of the workers' time (elapsed times workers; inline: elapsed), and of the
 * consumer's (elapsed). */
struct lb_shares {
    int64_t workers; /* 0: inline */
    double order, read, convert, wait_slot, wait_work;
    double hand_over; /* the rest of the workers' time: claiming work, falling asleep, waking up */
    double wait_next;
    double elapsed_s, worker_s;
    int repeats; /* which elapsed, batches and samples are of */
    int64_t batches, samples;
    double limit; /* share of the machine's limit that was reached; 0: not measured */
};

enum lb_binding {
    LB_BINDS_CONSUMER,
    LB_BINDS_ORDER,
    LB_BINDS_READ,
    LB_BINDS_CONVERT,
    LB_BINDS_MEMORY,
    LB_BINDS_HANDOVER,
    LB_BINDS_UNKNOWN /* the text says why it cannot be judged */
};

const char *lb_binding_name(enum lb_binding binding);
enum lb_binding lb_verdict(const struct lb_shares *shares, char *text, int size);

#endif
