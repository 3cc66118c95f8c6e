/* loadbench_verdict.h: states in one sentence which stage limits the rate, and with what confidence. */
#ifndef LOADBENCH_VERDICT_H
#define LOADBENCH_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

/* Stages of the workers, in the order of all lists: STAGE(suffix of the enum lb_bottleneck, member of struct lb_shares,
 * name in the report, whether it is listed even with zero time, what workers do in it). */
#define LB_STAGES(STAGE)                                                      \
    STAGE(ORDER, order, "order", true, "working out which samples come next") \
    STAGE(STORAGE, storage, "storage", true, "reading files")                 \
    STAGE(DECODE, decode, "decode", false, "decoding images")                 \
    STAGE(INFLATE, inflate, "inflate", false, "decompressing data")           \
    STAGE(CALL, call, "own transforms", false, "in custom transforms")        \
    STAGE(CONVERT, convert, "convert", true, "converting")

#define LB_STAGE_SHARE(name, member, ...) double member;
#define LB_STAGE_BOTTLENECK(name, ...) LB_BOTTLENECK_##name,

/* Shares of time, 0 to 1. Shares of the workers are relative to the elapsed time times the number of workers (inline:
 * to the elapsed time), those of the copy thread and of the consumer to the elapsed time. */
struct lb_shares {
    int64_t workers; /* 0: inline */
    LB_STAGES(LB_STAGE_SHARE)
    double wait_slot, wait_work;
    double page;      /* part of `storage` that was blocked on page faults of mapped files */
    double hand_over; /* the rest of the workers' time: claiming work, sleeping, waking up */
    double copy;      /* copies and conversions in the streams of the device */
    double copy_wait; /* the copy thread waiting for a batch */
    double wait_next;
    double take;     /* the consumer taking and releasing batches, without waiting */
    double ready;    /* mean share of slots that were ready when sampled; < 0: not sampled */
    double unpacked; /* mean decompressions per compressed chunk in an epoch; 0: nothing is compressed */
    bool random;     /* the order is random: chunks are revisited */
    double elapsed_s, worker_s;
    int repeats; /* number of repeats that elapsed, batches and samples cover */
    int64_t batches, samples, slots, tiles;
    double limit; /* share of the memory limit that was reached; 0: not measured */
    double disk;  /* share of the disk limit; 0: not measured, or data came from memory */
    double cpu_s; /* CPU time of all threads */
    double cores; /* available to this process: its limit minus the use of others; 0: unknown */
    int64_t device_slots;
    double throttled; /* share of periods in which the cgroup was throttled */
};

enum lb_bottleneck {
    LB_BOTTLENECK_CONSUMER,
    LB_STAGES(LB_STAGE_BOTTLENECK) LB_BOTTLENECK_MEMORY, /* conversion at the machine's memory bandwidth */
    LB_BOTTLENECK_RING, /* no stage is busy: too few slots, or hand-over costs more than the work */
    LB_BOTTLENECK_COPY,
    LB_BOTTLENECK_PROCESSORS, /* the CPU quota of the cgroup throttles the process */
    LB_BOTTLENECK_UNKNOWN     /* cannot be judged; the text says why */
};

enum lb_confidence { LB_CONFIDENCE_LOW, LB_CONFIDENCE_MEDIUM, LB_CONFIDENCE_HIGH };

struct lb_verdict {
    enum lb_bottleneck bottleneck;
    enum lb_confidence confidence; /* low if the bottleneck is unknown */
    double busy;                   /* busy share of the bottleneck, 0 to 1 */
    bool by_handing_over;          /* the bottleneck is the cost of hand-overs, not too few slots */
    char text[640];
    char doubt[200]; /* why the confidence was lowered, or "" */
};

struct lb_quiet;

extern const char *const lb_bottleneck_words[];
extern const char *const lb_confidence_words[]; /* "low", "medium", "high" */
void lb_verdict(const struct lb_shares *shares, struct lb_verdict *out);
/* Judges each repeat on its own, and lowers the confidence of `out` if some have a different bottleneck. */
void lb_verdict_agree(const struct lb_shares *each, int count, struct lb_verdict *out);
/* Lowers the confidence of `out` according to the CPU time that other programs used, because stage times are
 * wall-clock times and include time in which other programs ran. */
void lb_verdict_quiet(const struct lb_quiet *quiet, struct lb_verdict *out);
/* Writes, for example, "other programs used 1.30 of 2 processors". */
void lb_quiet_text(const struct lb_quiet *quiet, char *out, int size);
/* With at least this many decompressions per chunk and epoch, chunks were used again after the cache had evicted
 * them. */
#define LB_UNPACKED_AGAIN 1.25
/* Share of the workers' time in all stages together. */
double lb_busy(const struct lb_shares *shares);

#endif
