/* loadbench_verdict.c: two queues meet at the ring. Where the consumer is the slower side, the workers wait for slots;
 * where the loader is, the consumer waits for batches. On the loader's side the stage with the most working time binds,
 * unless all of them together work less than half of it: then claiming and waking up cost more than the work. */
#include "loadbench_verdict.h"
#include <stdbool.h>
#include <stdio.h>

/* From here on the memory counts as the reason for whatever moves bytes. */
#define NEAR_LIMIT 0.8

static const char *const names[] = {
    [LB_BINDS_CONSUMER] = "consumer", [LB_BINDS_ORDER] = "order",   [LB_BINDS_READ] = "read",
    [LB_BINDS_CONVERT] = "convert",   [LB_BINDS_MEMORY] = "memory", [LB_BINDS_HANDOVER] = "hand_over",
};

const char *lb_binding_name(enum lb_binding binding)
{
    return names[binding];
}

static enum lb_binding largest_stage(const struct lb_shares *shares)
{
    if (shares->read >= shares->convert && shares->read >= shares->order)
        return LB_BINDS_READ;
    return shares->convert >= shares->order ? LB_BINDS_CONVERT : LB_BINDS_ORDER;
}

static double share_of(const struct lb_shares *shares, enum lb_binding stage)
{
    return stage == LB_BINDS_READ ? shares->read : stage == LB_BINDS_CONVERT ? shares->convert : shares->order;
}

static enum lb_binding verdict_inline(const struct lb_shares *shares, char *text, int size)
{
    const enum lb_binding stage = largest_stage(shares);
    const double busy = shares->order + shares->read + shares->convert;

    if (busy < 0.5) {
        snprintf(text, (size_t)size,
                 "The consumer binds: its thread, which does the loader's work too, spends %.0f %% of its time on it.",
                 100 * busy);
        return LB_BINDS_CONSUMER;
    }
    snprintf(text, (size_t)size,
             "%s binds: the consumer's thread, which does the loader's work too, spends %.0f %% of its time on it.",
             stage == LB_BINDS_READ      ? "Reading"
             : stage == LB_BINDS_CONVERT ? "Converting"
                                         : "The order",
             100 * share_of(shares, stage));
    return stage;
}

enum lb_binding lb_verdict(const struct lb_shares *shares, char *text, int size)
{
    const enum lb_binding stage = largest_stage(shares);
    const double busy = shares->order + shares->read + shares->convert;

    if (shares->workers == 0)
        return verdict_inline(shares, text, size);
    if (shares->wait_slot > shares->wait_next) {
        snprintf(
            text, (size_t)size,
            "The consumer binds: the workers wait %.0f %% of their time for it to give a slot back, it waits %.1f %% "
            "of its time for a batch.",
            100 * shares->wait_slot, 100 * shares->wait_next);
        return LB_BINDS_CONSUMER;
    }
    if (shares->wait_work + shares->wait_slot + shares->hand_over > busy) {
        snprintf(text, (size_t)size,
                 "The hand-over binds: the consumer waits %.0f %% of its time, and the workers work only %.0f %% of "
                 "theirs; larger batches or fewer workers may help.",
                 100 * shares->wait_next, 100 * busy);
        return LB_BINDS_HANDOVER;
    }
    const bool memory = shares->limit >= NEAR_LIMIT && stage != LB_BINDS_ORDER;
    snprintf(text, (size_t)size,
             "The consumer waits for the loader, %.0f %% of its time: %s binds, %.0f %% of the workers' time%s.",
             100 * shares->wait_next, names[stage], 100 * share_of(shares, stage),
             memory ? ", and memory is its limit" : "");
    return memory ? LB_BINDS_MEMORY : stage;
}
