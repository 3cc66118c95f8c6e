/* loadbench_run.h: one repeat: a loader is opened, runs in for a while, is measured, and is closed. */
#ifndef LOADBENCH_RUN_H
#define LOADBENCH_RUN_H

#include "histogram.h"
#include "loadbench_config.h"
#include "loadbench_live.h"
#include "loadbench_machine.h"
#include <stoker/loader.h>

enum lb_ending { LB_END_TIME, LB_END_EPOCHS, LB_END_BATCHES, LB_END_DATA, LB_END_SIGNAL };

/* "run_time", "epochs", … for machines, and for people. */
const char *lb_ending_name(enum lb_ending ending);
const char *lb_ending_text(enum lb_ending ending);

struct lb_waits {
    int64_t p50_ns, p90_ns, p99_ns, max_ns;
};

struct lb_run {
    enum lb_ending ending;
    bool within_ramp;       /* the data ended before the ramp did: everything was measured, the first batch included */
    int64_t first_batch_ns; /* from the call that opens the loader to the first batch in hand */
    int64_t ramp_ns, elapsed_ns;
    int64_t batches, samples, epochs; /* delivered while measured; padding is no sample; epochs that ended */
    int64_t next_ns;                  /* of elapsed: inside stk_loader_next */
    struct lb_waits waits;            /* of single calls of stk_loader_next */
    struct lb_usage usage;            /* while measured */
    struct lb_memory memory;
    uint64_t checksum; /* of the consumer, over the whole repeat */
    /* Counters: what was added while measured. The rest: as at the end. */
    stk_loader_stats stats;
};

enum { LB_FIELDS = 64, LB_NOTES = 16 };

/* What holds for all repeats; texts are copies, since the loader's end with it. */
struct lb_facts {
    char *options_json;
    int64_t samples, steps_per_epoch;
    int field_count, note_count;
    struct lb_field {
        char name[64], shape[640], layout[16], kernel[96], access[32];
        stk_dtype source_dtype, dtype;
        int64_t sample_bytes; /* in the file; 0: varies */
    } fields[LB_FIELDS];
    char notes[LB_NOTES][256];
};

/* Set by a signal; the run ends at the next batch, or within a quarter of a second. */
extern volatile int lb_stop_asked;

/* Fills `facts` on the first call (all zero before); lb_facts_fini. `waits` receives every wait of the measurement.
 * STK_END: stopped by a signal before anything was measured. */
stk_status lb_run(const struct lb_config *config, struct lb_live *live, struct lb_facts *facts, stki_histogram *waits,
                  struct lb_run *out, stk_error *err);
/* Fills `facts`, which is all zero; also after a failure lb_facts_fini. */
stk_status lb_facts_read(const stk_loader *loader, struct lb_facts *facts, stk_error *err);
void lb_facts_fini(struct lb_facts *facts);

#endif
