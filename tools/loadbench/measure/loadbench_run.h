/* loadbench_run.h: one repeat: a loader is opened, runs in for a while, is measured, and is closed. */
#ifndef LOADBENCH_RUN_H
#define LOADBENCH_RUN_H

#include "histogram.h"
#include "loadbench_cache.h"
#include "loadbench_config.h"
#include "loadbench_effective.h"
#include "loadbench_live.h"
#include "loadbench_machine.h"
#include "loadbench_marks.h"
#include "loadbench_others.h"
#include "loadbench_steady.h"
#include "notes.h"
#include <stoker/loader.h>

enum lb_ending { LB_END_TIME, LB_END_EPOCHS, LB_END_BATCHES, LB_END_SAMPLES, LB_END_DATA, LB_END_SIGNAL };

/* "run_time", "epochs", … for machines, and for people. */
extern const char *const lb_ending_words[];
const char *lb_ending_text(enum lb_ending ending);

struct lb_waits {
    int64_t count, p50_ns, p90_ns, p99_ns, p999_ns, max_ns;
};
struct lb_waits lb_waits_of(const stki_histogram *histogram);

struct lb_run {
    enum lb_ending ending;
    bool within_ramp;       /* it ended before the ramp did */
    int64_t first_batch_ns; /* from the call that opens the loader to the first batch in hand */
    int64_t ramp_ns, elapsed_ns;
    int64_t batches, samples, epochs; /* delivered while measured; padding is no sample; epochs that ended */
    int64_t made_batches;             /* by the workers meanwhile: more where more lie ready at the end than before */
    int64_t next_ns;                  /* of elapsed: inside stk_loader_next */
    int64_t consume_ns, release_ns;   /* of elapsed: in the consumer; in giving batches back */
    int64_t record_ns;                /* of elapsed: in recording intervals, and in the live line */
    int64_t own_ns;                   /* of elapsed: the rest, which is this program itself */
    struct lb_waits waits;            /* of single calls of stk_loader_next */
    struct lb_waits gaps;             /* from one batch in hand to the next */
    /* Of the steps of a consumer that has some: without the first one and what came before its end. */
    int64_t au_steps, au_span_ns;
    struct lb_usage usage;   /* while measured */
    struct lb_others others; /* while measured */
    struct lb_memory memory;
    uint64_t checksum;      /* of the consumer, over the whole repeat */
    stk_digest_info digest; /* of the stream, over the whole repeat; end_step -1: not asked for */
    /* Counters: what was added while measured, times no longer than that. The rest: as at the end. */
    stk_loader_stats stats;
    struct lb_steady steady;           /* of the measured span */
    struct lb_residency before, after; /* of the data, as the repeat began and when it had ended */
};

/* One repeat, counted in two ways: from the end of the ramp (from the opening if it ended before), and from the call
 * that opens the loader. */
struct lb_repeat {
    struct lb_run steady, whole;
    stki_histogram steady_waits, whole_waits; /* of single calls; the steady ones are empty if it ended in the ramp */
    stki_histogram steady_gaps, whole_gaps;   /* from one batch in hand to the next, in the same way */
    struct lb_marks *marks;                   /* the caller's to destroy */
};

enum { LB_FIELDS = 64 };

/* What holds for all repeats; texts are copies, since the loader's end with it. */
struct lb_facts {
    struct lb_effective effective;
    int64_t samples, steps_per_epoch;
    int field_count;
    struct lb_field {
        char name[64], shape[1024], layout[16], kernel[96], access[32];
        stk_dtype source_dtype, dtype;
        bool varies; /* from sample to sample; such an axis is "varying" in the shape and -1 in the lengths */
        int ndim;
        int64_t lengths[STK_MAX_DIMS];
        int64_t sample_bytes; /* in the file; 0: varies */
    } fields[LB_FIELDS];
    stki_notes notes; /* of all repeats */
    int file_count;
    struct lb_file { /* as it was before the first repeat */
        char *path;
        bool missing;
        int64_t device, inode, size_bytes, changed_ns;
    } * files; /* the config and those of the fields */
    bool data_known;
    struct lb_files data; /* all there are of the data, those in folders too */
};

/* Asked to stop (loadbench_stop.h) it ends at the next batch, or within a quarter of a second. `repeat` counts from 1;
 * `intervals` (NULL: none) gets a line of JSON an interval. Fills `facts` on the first call (all zero before);
 * lb_facts_fini. STK_END: stopped by a signal before anything was measured. STK_E_CONFIG: on the first call, the config
 * and the data do not go together. STK_E_MISMATCH: on a later one, the data are no longer those of the first. */
stk_status lb_run(const struct lb_config *config, struct lb_live *live, struct lb_facts *facts, int repeat,
                  struct lb_log *intervals, struct lb_repeat *out, stk_error *err);
/* Fills `facts`, which is all zero; also after a failure lb_facts_fini. */
stk_status lb_facts_read(const stk_loader *loader, const char *config_path, struct lb_facts *facts, stk_error *err);
/* Adds what the loader has noted since; NULL is fine. */
void lb_facts_add_notes(struct lb_facts *facts, const stk_loader *loader);
/* Are these still the facts, of the files and of a loader that was opened again (NULL: of the files alone)?
 * STK_E_MISMATCH: names what has changed. */
stk_status lb_facts_check(const stk_loader *loader, const struct lb_facts *facts, stk_error *err);
void lb_facts_fini(struct lb_facts *facts);

#endif
