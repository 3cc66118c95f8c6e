/* loadbench_verdict.c: the bottleneck is the part that is never idle. There are three parts: the workers together, the
 * copying thread of a device, and the consumer; between them are queues, mainly the ring of slots. The bottleneck makes
 * earlier parts wait for space and later parts wait for work. Among the workers, the stage that takes the most time is
 * named; claiming work and waking up is one of the stages, and if it is the largest, the ring is the bottleneck. The
 * ring is also the bottleneck if no part is busy, because there are too few slots for the variation of the work or the
 * number of workers. */
#include "loadbench_verdict.h"
#include "loadbench_foresee.h"
#include "loadbench_others.h"
#include "loadbench_table.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Stage times are updated when an activity ends, so activities that span the start or end of a repeat are counted on
 * the wrong side. Shorter repeats consist mostly of these and of batches that were ready before the start. */
#define LEAST_BATCHES 20
#define LEAST_SECONDS 0.05
/* Waits of less than this share of the time are ignored. */
#define NO_WAIT 0.01
/* A part that is busier than this is the bottleneck if all others are less busy. */
#define BUSY 0.75
/* Share of the memory limit above which memory is named as the bottleneck of stages that move bytes. */
#define NEAR_LIMIT 0.8

#define NAME(name, member, ...) [LB_BOTTLENECK_##name] = #member,
#define DOING(name, member, label, always, doing) [LB_BOTTLENECK_##name] = doing,
#define SHARE_OF(name, member, ...) \
    case LB_BOTTLENECK_##name:      \
        return shares->member;
#define PLUS_SHARE(name, member, ...) +shares->member

const char *const lb_bottleneck_words[] = {
    LB_STAGES(NAME)[LB_BOTTLENECK_CONSUMER] = "consumer",
    [LB_BOTTLENECK_MEMORY] = "memory",
    [LB_BOTTLENECK_RING] = "ring",
    [LB_BOTTLENECK_COPY] = "copy",
    [LB_BOTTLENECK_PROCESSORS] = "processors",
    [LB_BOTTLENECK_UNKNOWN] = "unknown",
};

/* The activity of each stage, after "they spend N % of their time". */
static const char *const doing[] = {LB_STAGES(DOING)[LB_BOTTLENECK_MEMORY] = "converting"};

const char *const lb_confidence_words[] = {
    [LB_CONFIDENCE_LOW] = "low", [LB_CONFIDENCE_MEDIUM] = "medium", [LB_CONFIDENCE_HIGH] = "high"};

static double share_of(const struct lb_shares *shares, enum lb_bottleneck stage)
{
    switch (stage) {
        LB_STAGES(SHARE_OF)
    default:
        return 0;
    }
}

double lb_busy(const struct lb_shares *shares)
{
    return 0 LB_STAGES(PLUS_SHARE);
}

/* Returns the stage with the largest share of the workers' time. Sets *second to the share of the next one. */
static enum lb_bottleneck largest_stage(const struct lb_shares *shares, double *second)
{
    enum lb_bottleneck largest = LB_BOTTLENECK_ORDER;

    *second = 0;
    for (enum lb_bottleneck stage = LB_BOTTLENECK_ORDER + 1; stage < LB_BOTTLENECK_MEMORY; stage++) {
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

/* Derives the confidence from the distance between the largest share and the second largest. */
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
        SAY(out, "Too short to judge: %.4g batches in %.3g s per repeat; at least %d batches and %g s are needed.",
            batches, elapsed_s, LEAST_BATCHES, LEAST_SECONDS);
    else
        return false;
    return true;
}

/* The verdict without workers: the consumer's thread does everything sequentially. */
static void judge_inline(const struct lb_shares *shares, struct lb_verdict *out)
{
    double second;
    const enum lb_bottleneck stage = largest_stage(shares, &second);
    const double share = share_of(shares, stage), busy = lb_busy(shares), own = busy < 1 ? 1 - busy : 0;

    if (own > share) {
        out->bottleneck = LB_BOTTLENECK_CONSUMER;
        out->busy = own;
        out->confidence = ahead(own, share);
        SAY(out,
            "Bottleneck: the consumer. Its thread, which also does the loader's work, spends %.0f %% of its time on "
            "its own work.",
            100 * own);
        return;
    }
    out->bottleneck = stage;
    out->busy = share;
    out->confidence = ahead(share, larger(second, own));
    SAY(out, "Bottleneck: %s. The consumer's thread, which also does the loader's work, spends %.0f %% of its time %s.",
        lb_bottleneck_words[stage], 100 * share, doing[stage]);
}

/* Predicted gain of twice as many slots above which slots are the bottleneck, even if another part is busy. If no part
 * is busy, DEEPER_AT_ALL is enough. */
#define DEEPER 1.15
#define DEEPER_AT_ALL 1.05

static void say_deeper(const struct lb_shares *shares, double deeper, struct lb_verdict *out)
{
    const size_t used = strlen(out->text);

    if (deeper >= DEEPER_AT_ALL)
        snprintf(out->text + used, sizeof out->text - used,
                 " loader.prefetch=%lld is predicted to give %.0f %% more samples/s.", (long long)(2 * shares->slots),
                 100 * (deeper - 1));
}

static void judge_slots(const struct lb_shares *shares, double most, double deeper, struct lb_verdict *out)
{
    char gain[96] = "a larger loader.prefetch may help";

    out->bottleneck = LB_BOTTLENECK_RING;
    out->busy = most;
    out->confidence = most < 0.5 ? LB_CONFIDENCE_HIGH : most < 0.65 ? LB_CONFIDENCE_MEDIUM : LB_CONFIDENCE_LOW;
    if (deeper > 0)
        snprintf(gain, sizeof gain, "loader.prefetch=%lld is predicted to give %.0f %% more samples/s",
                 (long long)(2 * shares->slots), 100 * (deeper - 1));
    SAY(out,
        "Bottleneck: slots (ring). %lld %s too few: the workers wait %.0f %% of their time for a free one, and the "
        "consumer still waits %.0f %% of its time for a batch; %s.",
        (long long)shares->slots, shares->slots == 1 ? "slot is" : "slots are", 100 * shares->wait_slot,
        100 * shares->wait_next, gain);
}

/* Writes advice against hand-over costs, with the predicted gain if there is one. */
static void handing_over_advice(const struct lb_shares *shares, char *out, size_t size)
{
    const double alone = lb_foresee_inline(shares);

    if (alone >= 2)
        snprintf(out, size,
                 "larger batches may help, and loader.num_workers=0 is predicted to give %s times as many samples/s",
                 LB_SHORT(alone));
    else if (alone >= DEEPER_AT_ALL)
        snprintf(out, size,
                 "larger batches may help, and loader.num_workers=0 is predicted to give %.0f %% more samples/s",
                 100 * (alone - 1));
    else
        snprintf(out, size, "larger batches%s may help", shares->workers > 1 ? " or fewer workers" : "");
}

static void judge_handing_over(const struct lb_shares *shares, double most, struct lb_verdict *out)
{
    const bool slots = shares->wait_slot >= shares->wait_work + shares->hand_over;
    char advice[160];

    handing_over_advice(shares, advice, sizeof advice);
    out->bottleneck = LB_BOTTLENECK_RING;
    out->busy = most;
    out->by_handing_over = true;
    out->confidence = most < 0.5 ? LB_CONFIDENCE_HIGH : most < 0.65 ? LB_CONFIDENCE_MEDIUM : LB_CONFIDENCE_LOW;
    if (slots) /* workers wait for slots although there are enough */
        out->confidence = weaker(out->confidence, LB_CONFIDENCE_MEDIUM);
    SAY(out,
        "Bottleneck: hand-over (ring). Handing over batches takes more time than making them: the consumer waits "
        "%.0f %% of its time, and the workers work only %.0f %% of theirs%s; %s.",
        100 * shares->wait_next, 100 * lb_busy(shares),
        slots ? " (more slots are predicted to gain nothing, because wake-ups take the time)" : "", advice);
}

static void judge_ring(const struct lb_shares *shares, double most, double deeper, struct lb_verdict *out)
{
    const bool waits = shares->wait_slot >= shares->wait_work + shares->hand_over;

    if (deeper > 0 ? deeper >= DEEPER_AT_ALL && (waits || deeper >= DEEPER) : waits) {
        judge_slots(shares, most, deeper, out);
        return;
    }
    judge_handing_over(shares, most, out);
    say_deeper(shares, deeper, out);
}

/* Reports how often chunks were decompressed, and how to decompress them only once. */
static void say_unpacked(const struct lb_shares *shares, struct lb_verdict *out)
{
    const size_t used = strlen(out->text);

    if (out->bottleneck == LB_BOTTLENECK_INFLATE && shares->unpacked >= LB_UNPACKED_AGAIN)
        snprintf(
            out->text + used, sizeof out->text - used,
            " Each chunk is decompressed %s times on average, because the cache evicts it before it is used again. "
            "With %s larger loader.cache_bytes, it is decompressed once.",
            LB_SHORT(shares->unpacked), shares->random ? "order: block or a" : "a");
}

static void judge_workers(const struct lb_shares *shares, double others, struct lb_verdict *out)
{
    double second;
    const enum lb_bottleneck stage = largest_stage(shares, &second);
    const double share = share_of(shares, stage);
    const bool memory = shares->limit >= NEAR_LIMIT && stage == LB_BOTTLENECK_CONVERT;

    if (shares->hand_over > share) {
        judge_handing_over(shares, lb_busy(shares), out);
        return;
    }
    out->bottleneck = memory ? LB_BOTTLENECK_MEMORY : stage;
    out->busy = lb_busy(shares);
    out->confidence = weaker(ahead(out->busy, others), ahead(share, larger(second, shares->hand_over)));
    SAY(out,
        "Bottleneck: %s. The consumer waits %.0f %% of its time for a batch, and the workers spend %.0f %% of theirs "
        "%s%s.",
        lb_bottleneck_words[stage], 100 * shares->wait_next, 100 * share, doing[stage],
        memory                                                       ? ", at the limit of the machine's memory"
        : stage == LB_BOTTLENECK_STORAGE && shares->page > share / 2 ? ", most of it waiting for pages of mapped files"
                                                                     : "");
}

/* The verdict if the consumer is the busiest part, with its own work or with taking and releasing batches. */
static void judge_consumer(const struct lb_shares *shares, double consumer, double others, struct lb_verdict *out)
{
    char advice[160];

    out->busy = consumer;
    if (shares->take > consumer / 2) {
        handing_over_advice(shares, advice, sizeof advice);
        out->bottleneck = LB_BOTTLENECK_RING;
        out->by_handing_over = true;
        out->confidence = ahead(shares->take, larger(others, consumer - shares->take));
        SAY(out,
            "Bottleneck: hand-over (ring). Taking and releasing batches, which wakes the workers, takes %.0f %% of the "
            "consumer's time, and its own work %.0f %%; %s.",
            100 * shares->take, 100 * (consumer - shares->take), advice);
        return;
    }
    out->bottleneck = LB_BOTTLENECK_CONSUMER;
    out->confidence = ahead(consumer, others);
    SAY(out,
        "Bottleneck: the consumer. It waits only %.1f %% of its time for a batch, and the workers wait %.0f %% of "
        "theirs for it to release a slot.",
        100 * shares->wait_next, 100 * shares->wait_slot);
}

static void judge_copy(const struct lb_shares *shares, double others, struct lb_verdict *out)
{
    out->bottleneck = LB_BOTTLENECK_COPY;
    out->busy = shares->copy;
    out->confidence = ahead(shares->copy, others);
    SAY(out,
        "Bottleneck: the copy to the device. It runs %.0f %% of the time, while the workers wait %.0f %% of their time "
        "for a slot and the consumer waits %.0f %% of its time for a batch.",
        100 * shares->copy, 100 * shares->wait_slot, 100 * shares->wait_next);
}

static void judge_threads(const struct lb_shares *shares, struct lb_verdict *out)
{
    const double workers = lb_busy(shares) + shares->hand_over, consumer = 1 - shares->wait_next, copy = shares->copy;
    const double most = larger(larger(workers, consumer), copy), deeper = lb_foresee_deeper(shares);

    if (most < BUSY || deeper >= DEEPER) {
        judge_ring(shares, most, deeper, out);
        return;
    }
    if (copy >= workers && copy >= consumer)
        judge_copy(shares, larger(workers, consumer), out);
    else if (consumer >= workers)
        judge_consumer(shares, consumer, larger(workers, copy), out);
    else
        judge_workers(shares, larger(consumer, copy), out);
    say_deeper(shares, deeper, out);
}

/* Share of throttled time above which the CPU quota is the bottleneck, for any stage. */
#define THROTTLED 0.1

static void judge_quota(const struct lb_shares *shares, struct lb_verdict *out)
{
    const bool named = out->bottleneck != LB_BOTTLENECK_UNKNOWN;
    char stage[sizeof out->text];

    snprintf(stage, sizeof stage, "%s", out->text + (named ? strlen("Bottleneck: ") : 0));
    out->bottleneck = LB_BOTTLENECK_PROCESSORS;
    out->busy = shares->throttled;
    out->by_handing_over = false;
    out->confidence = shares->throttled >= 0.3 ? LB_CONFIDENCE_HIGH : LB_CONFIDENCE_MEDIUM;
    SAY(out, "Bottleneck: processors. The cgroup's CPU quota throttled the process in %.0f %% of its periods. %s%.400s",
        100 * shares->throttled, named ? "Within the quota, the bottleneck is " : "", stage);
}

void lb_verdict(const struct lb_shares *shares, struct lb_verdict *out)
{
    *out = (struct lb_verdict){.bottleneck = LB_BOTTLENECK_UNKNOWN};
    if (is_too_short(shares, out))
        return;
    if (shares->workers == 0 && shares->copy <= 0)
        judge_inline(shares, out);
    else if (shares->wait_slot < NO_WAIT && shares->wait_next < NO_WAIT)
        SAY(out,
            "Cannot be judged: neither the consumer nor the workers waited even %.0f %% of their time for the other.",
            100 * NO_WAIT);
    else
        judge_threads(shares, out);
    say_unpacked(shares, out);
    if (shares->throttled >= THROTTLED)
        judge_quota(shares, out);
}

static void lower(struct lb_verdict *out, enum lb_confidence most, const char *doubt)
{
    const size_t used = strlen(out->doubt);

    if (out->bottleneck == LB_BOTTLENECK_UNKNOWN)
        return;
    out->confidence = weaker(out->confidence, most);
    snprintf(out->doubt + used, sizeof out->doubt - used, "%s%s", used > 0 ? "; " : "", doubt);
}

void lb_verdict_agree(const struct lb_shares *each, int count, struct lb_verdict *out)
{
    struct lb_verdict one;
    char doubt[80];
    int other = 0;

    for (int i = 0; i < count; i++) {
        lb_verdict(&each[i], &one);
        other += one.bottleneck != out->bottleneck;
    }
    if (other == 0)
        return;
    snprintf(doubt, sizeof doubt, "a different bottleneck in %d of %d repeats, judged separately", other, count);
    lower(out, 2 * other >= count ? LB_CONFIDENCE_LOW : LB_CONFIDENCE_MEDIUM, doubt);
}

void lb_quiet_text(const struct lb_quiet *quiet, char *out, int size)
{
    snprintf(out, (size_t)size, "other programs used %.2f of %d processor%s", quiet->used, quiet->processors,
             quiet->processors == 1 ? "" : "s");
}

void lb_verdict_quiet(const struct lb_quiet *quiet, struct lb_verdict *out)
{
    char doubt[120];

    if (quiet->loud == 0)
        return;
    lb_quiet_text(quiet, doubt, sizeof doubt);
    lower(out, 4 * quiet->most > quiet->processors ? LB_CONFIDENCE_LOW : LB_CONFIDENCE_MEDIUM, doubt);
}
