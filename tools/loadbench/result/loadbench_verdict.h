/* loadbench_verdict.h: which stage binds, in one sentence, and how sure that is. */
#ifndef LOADBENCH_VERDICT_H
#define LOADBENCH_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

/* The stages of the workers' work, in the order in which they are listed everywhere, as STAGE(of enum lb_binding,
 * member of struct lb_shares and name, name in the report, whether it is listed when it took no time, what workers do
 * in it). */
#define LB_STAGES(STAGE)                                                      \
    STAGE(ORDER, order, "order", true, "working out which samples come next") \
    STAGE(STORAGE, storage, "storage", true, "reading files")                 \
    STAGE(DECODE, decode, "decode", false, "decoding images")                 \
    STAGE(INFLATE, inflate, "inflate", false, "unpacking compressed data")    \
    STAGE(CALL, call, "own transforms", false, "in transforms of your own")   \
    STAGE(CONVERT, convert, "convert", true, "converting")

#define LB_STAGE_SHARE(binding, member, ...) double member;
#define LB_STAGE_BINDING(binding, ...) LB_BINDS_##binding,

/* Where the time went, as shares from 0 to 1: of the workers' time (elapsed times workers; inline: elapsed), of the
 * copying thread's and of the consumer's (elapsed). */
struct lb_shares {
    int64_t workers; /* 0: inline */
    LB_STAGES(LB_STAGE_SHARE)
    double wait_slot, wait_work;
    double page;      /* of storage: off the processor until pages of mapped files had come */
    double hand_over; /* the rest of the workers' time: claiming work, falling asleep, waking up */
    double copy;      /* of a device: copies and conversions in its streams; 0 without one */
    double copy_wait; /* of the copying thread: for a batch */
    double wait_next;
    double take;     /* of the consumer: taking batches that are ready and giving them back, waits left out */
    double ready;    /* of the slots: ready when the consumer asked for one, on average; < 0: not looked at */
    double unpacked; /* how often each packed chunk was unpacked in a pass over the data; 0: nothing is packed */
    bool random;     /* the order takes samples from anywhere: chunks are come back to */
    double elapsed_s, worker_s;
    int repeats; /* which elapsed, batches and samples are of */
    int64_t batches, samples, slots, tiles;
    double limit; /* share of the memory's limit that was reached; 0: not measured */
    double disk;  /* the same of the disk; 0: not measured, or the data came from memory */
    double cpu_s; /* processor time of all threads */
    double cores; /* that were there for this process: what it may use without what others used of it; 0: unknown */
    int64_t device_slots;
    double throttled; /* share of the periods in which the control group had used up its quota of processor time */
};

enum lb_binding {
    LB_BINDS_CONSUMER,
    LB_STAGES(LB_STAGE_BINDING) LB_BINDS_MEMORY, /* converting, at the limit of the machine's memory */
    LB_BINDS_RING, /* nobody is busy: slots are too few, or handing over costs more than the work */
    LB_BINDS_COPY,
    LB_BINDS_PROCESSORS, /* a quota of the control group stops the process */
    LB_BINDS_UNKNOWN     /* the text says why it cannot be judged */
};

enum lb_confidence { LB_CONFIDENCE_LOW, LB_CONFIDENCE_MEDIUM, LB_CONFIDENCE_HIGH };

struct lb_verdict {
    enum lb_binding binds;
    enum lb_confidence confidence; /* low where it is unknown */
    double busy;                   /* how much of its time the binding stage is busy, 0 to 1 */
    bool by_handing_over;          /* the ring binds, and not for want of slots */
    char text[640];
    char doubt[200]; /* why the confidence is lower than the clocks alone make it; "" */
};

struct lb_quiet;

extern const char *const lb_binding_words[];
extern const char *const lb_confidence_words[]; /* "low", "medium", "high" */
void lb_verdict(const struct lb_shares *shares, struct lb_verdict *out);
/* Several repeats judged one by one: where they do not agree, the confidence of `out` is low. */
void lb_verdict_agree(const struct lb_shares *each, int count, struct lb_verdict *out);
/* Clocks on the wall count the time that other programs had the processors for as our own work: the confidence of `out`
 * falls with what they used. */
void lb_verdict_quiet(const struct lb_quiet *quiet, struct lb_verdict *out);
/* "other programs used 1.3 of 2 processors", of a run that was not quiet. */
void lb_quiet_text(const struct lb_quiet *quiet, char *out, int size);
/* More than once a pass: chunks were come back to that the cache had let go. */
#define LB_UNPACKED_AGAIN 1.25
/* Work of the workers, all stages together. */
double lb_busy(const struct lb_shares *shares);

#endif
