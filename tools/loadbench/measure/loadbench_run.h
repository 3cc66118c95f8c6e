/* loadbench_run.h: runs one repeat: opens a loader, runs the ramp, measures, and closes the loader. */
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

/* The names in JSON ("run_time", "epochs", …), and a phrase for text output. */
extern const char *const lb_ending_words[];
const char *lb_ending_text(enum lb_ending ending);

struct lb_waits {
    int64_t count, p50_ns, p90_ns, p99_ns, p999_ns, max_ns;
};
struct lb_waits lb_waits_of(const stki_histogram *histogram);

struct lb_run {
    enum lb_ending ending;
    bool within_ramp;       /* the repeat ended during the ramp */
    int64_t first_batch_ns; /* from the open call to the first batch received */
    int64_t ramp_ns, elapsed_ns;
    int64_t batches, samples, epochs; /* delivered while measured, samples without padding; epochs completed */
    int64_t made_batches; /* filled by the workers in that time: `batches` plus the increase of the ready queue */
    int64_t next_ns;      /* part of elapsed_ns: in stk_loader_next */
    int64_t consume_ns, release_ns; /* part of elapsed_ns: in the consumer; in releasing batches */
    int64_t record_ns;              /* part of elapsed_ns: recording intervals and printing the live line */
    int64_t own_ns;                 /* rest of elapsed_ns, which is the overhead of this program */
    struct lb_waits waits;          /* times of single calls to stk_loader_next */
    struct lb_waits gaps;           /* times from one received batch to the next */
    /* Accelerator utilization of the step consumer: steps and time after the end of the first step. */
    int64_t au_steps, au_span_ns;
    struct lb_usage usage;   /* while measured */
    struct lb_others others; /* while measured */
    struct lb_memory memory;
    uint64_t checksum;      /* the consumer's checksum of the whole repeat */
    stk_digest_info digest; /* digest of the batches of the whole repeat; end_step -1: not requested */
    /* Counters: the increase while measured, times clamped to the measured span. Other members: values at the end. */
    stk_loader_stats stats;
    struct lb_steady steady;           /* whether the rate was steady during the measurement */
    struct lb_residency before, after; /* residency of the data, at the start and after the end of the repeat */
};

/* One repeat, measured over two spans: `steady` starts at the end of the ramp (at the open call if the repeat ended
 * within the ramp), and `whole` at the open call. */
struct lb_repeat {
    struct lb_run steady, whole;
    stki_histogram steady_waits, whole_waits; /* times of single calls; steady_waits may be empty */
    stki_histogram steady_gaps, whole_gaps;   /* the same for the times from one received batch to the next */
    struct lb_marks *marks;                   /* owned by the caller */
};

enum { LB_FIELDS = 64 };

/* Properties of the loader and of the data, which are the same for all repeats. Strings are copies, because those of
 * the loader are freed with it. */
struct lb_facts {
    struct lb_effective effective;
    int64_t samples, steps_per_epoch;
    int field_count;
    struct lb_field {
        char name[64], shape[1024], layout[16], kernel[96], access[32];
        stk_dtype source_dtype, dtype;
        bool varies; /* shape varies by sample: varying axes are "varying" in `shape` and -1 in `lengths` */
        int ndim;
        int64_t lengths[STK_MAX_DIMS];
        int64_t sample_bytes; /* size of a sample in the file; 0: varies */
    } fields[LB_FIELDS];
    stki_notes notes; /* notes of all repeats */
    int file_count;
    struct lb_file { /* state before the first repeat */
        char *path;
        bool missing;
        int64_t device, inode, size_bytes, changed_ns;
    } * files; /* the config, and the files of all fields */
    bool data_known;
    struct lb_files data; /* all files of the data, including those in folders */
};

/* Runs one repeat. After a stop request (loadbench_stop.h), the repeat ends at the next batch or within a quarter of a
 * second. `repeat` counts from 1; `intervals` (NULL: none) receives one line of JSON per interval. Fills `facts` on the
 * first call (they must be zeroed before); free with lb_facts_fini. STK_END: stopped by a signal before anything was
 * measured. STK_E_CONFIG: on the first call, config and data do not match. STK_E_MISMATCH: on a later call, the data
 * changed since the first. */
stk_status lb_run(const struct lb_config *config, struct lb_live *live, struct lb_facts *facts, int repeat,
                  struct lb_log *intervals, struct lb_repeat *out, stk_error *err);
/* Fills `facts`, which must be zeroed. Call lb_facts_fini even after a failure. */
stk_status lb_facts_read(const stk_loader *loader, const char *config_path, struct lb_facts *facts, stk_error *err);
/* Adds the loader's new notes; the loader may be NULL. */
void lb_facts_add_notes(struct lb_facts *facts, const stk_loader *loader);
/* Checks that files and a reopened loader (NULL: only the files) still match the facts. STK_E_MISMATCH: the message
 * names what changed. */
stk_status lb_facts_check(const stk_loader *loader, const struct lb_facts *facts, stk_error *err);
void lb_facts_fini(struct lb_facts *facts);

#endif
