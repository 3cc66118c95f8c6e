/* loadbench_verdict.c: two queues meet at the ring. Where the consumer is the slower side, the workers wait for slots;
 * where the loader is, the consumer waits for batches. On the loader's side the stage with the most working time binds,
 * unless all of them together work less than half of it: then claiming and waking up cost more than the work. */
#include "loadbench_verdict.h"
#include <stdbool.h>
#include <stdio.h>

/* Clocks are read when something ends, so what lies across an end of a repeat is counted on the wrong side of it. Below
 * these a repeat is mostly such ends, and batches that were ready before it began. */
#define LEAST_BATCHES 20
#define LEAST_SECONDS 0.05
/* Below this share of the time nobody waits for anybody. */
#define NO_WAIT 0.01

/* From here on the memory counts as the reason for whatever moves bytes. */
#define NEAR_LIMIT 0.8

static const char *const names[] = {
    [LB_BINDS_CONSUMER] = "consumer", [LB_BINDS_ORDER] = "order",   [LB_BINDS_READ] = "read",
    [LB_BINDS_CONVERT] = "convert",   [LB_BINDS_MEMORY] = "memory", [LB_BINDS_HANDOVER] = "hand_over",
    [LB_BINDS_UNKNOWN] = "unknown",
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

static bool is_too_short(const struct lb_shares *shares, char *text, int size)
{
    const double repeats = shares->repeats > 0 ? shares->repeats : 1;
    const double batches = (double)shares->batches / repeats, elapsed_s = shares->elapsed_s / repeats;

    if (shares->samples == 0)
        snprintf(text, (size_t)size, "Nothing to judge: no sample was delivered.");
    else if (batches < LEAST_BATCHES || elapsed_s < LEAST_SECONDS)
        snprintf(
            text, (size_t)size,
            "Too short to judge: %.4g batches in %.3g s a repeat; who waits for whom takes at least %d batches and "
            "%g s.",
            batches, elapsed_s, LEAST_BATCHES, LEAST_SECONDS);
    else
        return false;
    return true;
}

enum lb_binding lb_verdict(const struct lb_shares *shares, char *text, int size)
{
    const enum lb_binding stage = largest_stage(shares);
    const double busy = shares->order + shares->read + shares->convert;

    if (is_too_short(shares, text, size))
        return LB_BINDS_UNKNOWN;
    if (shares->workers == 0)
        return verdict_inline(shares, text, size);
    if (shares->wait_slot < NO_WAIT && shares->wait_next < NO_WAIT) {
        snprintf(text, (size_t)size,
                 "Not to be judged: neither the consumer nor the workers waited %.0f %% of their time for the other.",
                 100 * NO_WAIT);
        return LB_BINDS_UNKNOWN;
    }
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
