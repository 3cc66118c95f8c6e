/* loadbench_verdict.c: who is never idle binds. There are three who can be busy: the workers together, the copying
 * thread of a device, and the consumer; between them lie the queues, the ring of slots above all. Whoever binds keeps
 * those before it waiting for room and those behind it waiting for work. On the workers' side the stage with the most
 * time is named; claiming and waking is one of them, and where it is the largest the ring binds. So it does where
 * nobody is busy: there are too few slots for the swings of the work or for the number of workers. */
#include "loadbench_verdict.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Clocks are read when something ends, so what lies across an end of a repeat is counted on the wrong side of it. Below
 * these a repeat is mostly such ends, and batches that were ready before it began. */
#define LEAST_BATCHES 20
#define LEAST_SECONDS 0.05
/* Below this share of the time nobody waits for anybody. */
#define NO_WAIT 0.01
/* Whoever is busier than this binds, if all others are less busy. */
#define BUSY 0.75
/* From here on the memory counts as the reason for whatever moves bytes. */
#define NEAR_LIMIT 0.8

static const char *const names[] = {
    [LB_BINDS_CONSUMER] = "consumer", [LB_BINDS_ORDER] = "order",     [LB_BINDS_STORAGE] = "storage",
    [LB_BINDS_DECODE] = "decode",     [LB_BINDS_INFLATE] = "inflate", [LB_BINDS_CALL] = "call",
    [LB_BINDS_CONVERT] = "convert",   [LB_BINDS_MEMORY] = "memory",   [LB_BINDS_RING] = "ring",
    [LB_BINDS_COPY] = "copy",         [LB_BINDS_UNKNOWN] = "unknown",
};

/* What the workers do in it, after "they spend N % of their time". */
static const char *const doing[] = {
    [LB_BINDS_ORDER] = "working out which samples come next",
    [LB_BINDS_STORAGE] = "reading files",
    [LB_BINDS_DECODE] = "decoding images",
    [LB_BINDS_INFLATE] = "unpacking compressed data",
    [LB_BINDS_CALL] = "in transforms of your own",
    [LB_BINDS_CONVERT] = "converting",
    [LB_BINDS_MEMORY] = "converting",
};

const char *lb_binding_name(enum lb_binding binding)
{
    return names[binding];
}

const char *lb_confidence_name(enum lb_confidence confidence)
{
    return confidence == LB_CONFIDENCE_HIGH ? "high" : confidence == LB_CONFIDENCE_MEDIUM ? "medium" : "low";
}

static double share_of(const struct lb_shares *shares, enum lb_binding stage)
{
    switch (stage) {
    case LB_BINDS_ORDER:
        return shares->order;
    case LB_BINDS_STORAGE:
        return shares->storage;
    case LB_BINDS_DECODE:
        return shares->decode;
    case LB_BINDS_INFLATE:
        return shares->inflate;
    case LB_BINDS_CALL:
        return shares->call;
    default:
        return shares->convert;
    }
}

double lb_busy(const struct lb_shares *shares)
{
    return shares->order + shares->storage + shares->decode + shares->inflate + shares->call + shares->convert;
}

/* The stage with the most of the workers' time, and the share of the one behind it. */
static enum lb_binding largest_stage(const struct lb_shares *shares, double *second)
{
    enum lb_binding largest = LB_BINDS_ORDER;

    *second = 0;
    for (enum lb_binding stage = LB_BINDS_STORAGE; stage <= LB_BINDS_CONVERT; stage++) {
        const double share = share_of(shares, stage);
        if (share > share_of(shares, largest)) {
            *second = share_of(shares, largest);
            largest = stage;
        } else if (share > *second) {
            *second = share;
        }
    }
    return largest;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* How far the first is ahead of the second. */
static enum lb_confidence ahead(double first, double second)
{
    if (first >= 1.5 * second && first - second >= 0.2)
        return LB_CONFIDENCE_HIGH;
    return first >= 1.15 * second && first - second >= 0.05 ? LB_CONFIDENCE_MEDIUM : LB_CONFIDENCE_LOW;
}

static enum lb_confidence weaker(enum lb_confidence a, enum lb_confidence b)
{
    return a < b ? a : b;
}

#define SAY(out, ...) snprintf((out)->text, sizeof(out)->text, __VA_ARGS__)

static bool is_too_short(const struct lb_shares *shares, struct lb_verdict *out)
{
    const double repeats = shares->repeats > 0 ? shares->repeats : 1;
    const double batches = (double)shares->batches / repeats, elapsed_s = shares->elapsed_s / repeats;

    if (shares->samples == 0)
        SAY(out, "Nothing to judge: no sample was delivered.");
    else if (batches < LEAST_BATCHES || elapsed_s < LEAST_SECONDS)
        SAY(out,
            "Too short to judge: %.4g batches in %.3g s a repeat; who waits for whom takes at least %d batches and "
            "%g s.",
            batches, elapsed_s, LEAST_BATCHES, LEAST_SECONDS);
    else
        return false;
    return true;
}

/* The consumer's thread does everything itself, one thing after the other. */
static void judge_inline(const struct lb_shares *shares, struct lb_verdict *out)
{
    double second;
    const enum lb_binding stage = largest_stage(shares, &second);
    const double share = share_of(shares, stage), busy = lb_busy(shares), own = busy < 1 ? 1 - busy : 0;

    if (own > share) {
        out->binds = LB_BINDS_CONSUMER;
        out->busy = own;
        out->confidence = ahead(own, share);
        SAY(out,
            "The consumer binds: its thread, which does the loader's work too, spends %.0f %% of its time on its own.",
            100 * own);
        return;
    }
    out->binds = stage;
    out->busy = share;
    out->confidence = ahead(share, larger(second, own));
    SAY(out, "%c%s binds: the consumer's thread, which does the loader's work too, spends %.0f %% of its time %s.",
        names[stage][0] - 'a' + 'A', names[stage] + 1, 100 * share, doing[stage]);
}

static void judge_ring(const struct lb_shares *shares, double most, struct lb_verdict *out)
{
    out->binds = LB_BINDS_RING;
    out->busy = most;
    out->confidence = most < 0.5 ? LB_CONFIDENCE_HIGH : most < 0.65 ? LB_CONFIDENCE_MEDIUM : LB_CONFIDENCE_LOW;
    if (shares->wait_slot >= shares->wait_work + shares->hand_over)
        SAY(out,
            "The ring binds: its %lld slots are too few. The workers wait %.0f %% of their time for a free one, and "
            "the "
            "consumer still waits %.0f %% of its time for a batch; a deeper prefetch may help.",
            (long long)shares->slots, 100 * shares->wait_slot, 100 * shares->wait_next);
    else
        SAY(out,
            "The ring binds: handing batches over costs more than making them. The consumer waits %.0f %% of its time, "
            "and the "
            "workers work only %.0f %% of theirs; larger batches or fewer workers may help.",
            100 * shares->wait_next, 100 * lb_busy(shares));
}

static void judge_workers(const struct lb_shares *shares, double others, struct lb_verdict *out)
{
    double second;
    const enum lb_binding stage = largest_stage(shares, &second);
    const double share = share_of(shares, stage);
    const bool memory = shares->limit >= NEAR_LIMIT && stage == LB_BINDS_CONVERT;

    if (shares->hand_over > share) {
        judge_ring(shares, lb_busy(shares), out);
        return;
    }
    out->binds = memory ? LB_BINDS_MEMORY : stage;
    out->busy = lb_busy(shares);
    out->confidence = weaker(ahead(out->busy, others), ahead(share, larger(second, shares->hand_over)));
    SAY(out,
        "%c%s binds: the consumer waits %.0f %% of its time for a batch, and the workers spend %.0f %% of theirs %s%s.",
        names[stage][0] - 'a' + 'A', names[stage] + 1, 100 * shares->wait_next, 100 * share, doing[stage],
        memory                                                  ? ", at the limit of the machine's memory"
        : stage == LB_BINDS_STORAGE && shares->page > share / 2 ? ", most of it until pages of mapped files had come"
                                                                : "");
}

void lb_verdict(const struct lb_shares *shares, struct lb_verdict *out)
{
    const double workers = lb_busy(shares) + shares->hand_over, consumer = 1 - shares->wait_next, copy = shares->copy;
    const double most = larger(larger(workers, consumer), copy);

    *out = (struct lb_verdict){.binds = LB_BINDS_UNKNOWN};
    if (is_too_short(shares, out))
        return;
    if (shares->workers == 0 && copy <= 0) {
        judge_inline(shares, out);
        return;
    }
    if (shares->wait_slot < NO_WAIT && shares->wait_next < NO_WAIT) {
        SAY(out, "Not to be judged: neither the consumer nor the workers waited %.0f %% of their time for the other.",
            100 * NO_WAIT);
        return;
    }
    if (most < BUSY) {
        judge_ring(shares, most, out);
    } else if (copy >= workers && copy >= consumer) {
        out->binds = LB_BINDS_COPY;
        out->busy = copy;
        out->confidence = ahead(copy, larger(workers, consumer));
        SAY(out,
            "The copy to the device binds: it runs %.0f %% of the time, while the workers wait %.0f %% of theirs for a "
            "slot and the consumer %.0f %% of its for a batch.",
            100 * copy, 100 * shares->wait_slot, 100 * shares->wait_next);
    } else if (consumer >= workers && shares->take > consumer / 2) {
        out->binds = LB_BINDS_RING;
        out->busy = consumer;
        out->confidence = ahead(shares->take, larger(workers, consumer - shares->take));
        SAY(out,
            "The ring binds: taking batches and giving them back, which wakes the workers, costs the consumer's thread "
            "%.0f %% of its time, its own work %.0f %%; larger batches or fewer workers may help.",
            100 * shares->take, 100 * (consumer - shares->take));
    } else if (consumer >= workers) {
        out->binds = LB_BINDS_CONSUMER;
        out->busy = consumer;
        out->confidence = ahead(consumer, larger(workers, copy));
        SAY(out,
            "The consumer binds: it waits only %.1f %% of its time for a batch, and the workers wait %.0f %% of theirs "
            "for it to give a slot back.",
            100 * shares->wait_next, 100 * shares->wait_slot);
    } else {
        judge_workers(shares, larger(consumer, copy), out);
    }
}

void lb_verdict_agree(const struct lb_shares *each, int count, struct lb_verdict *out)
{
    struct lb_verdict one;
    int other = 0;

    for (int i = 0; i < count; i++) {
        lb_verdict(&each[i], &one);
        other += one.binds != out->binds;
    }
    if (other > 0 && out->binds != LB_BINDS_UNKNOWN)
        out->confidence = 2 * other >= count ? LB_CONFIDENCE_LOW : weaker(out->confidence, LB_CONFIDENCE_MEDIUM);
}
