/* loadbench_step.h: emulated training steps: the consumer sleeps for the time an accelerator would compute, then takes
 * the next batch. Also defines the workloads of MLPerf Storage. */
#ifndef LOADBENCH_STEP_H
#define LOADBENCH_STEP_H

#include "loadbench_consumer.h"

/* A workload of MLPerf Storage with an emulated accelerator; the numbers' sources are in
 * docs/reference/loadbench.md. */
struct lb_preset {
    const char *name; /* "unet3d-h100" */
    int64_t batch_size;
    int64_t step_ns;
    double record_bytes;  /* mean size of a stored sample */
    double record_spread; /* standard deviation of the size; 0: constant size */
    double au;            /* minimum accelerator utilization to pass */
    const char *format;   /* storage format in the benchmark */
    const char *edition;  /* version of the benchmark */
};

/* [0] is "none". lb_preset_words has the names, NULL-terminated. */
extern const struct lb_preset lb_presets[];
extern const char *const lb_preset_words[];

/* The step consumer. */
stk_status lb_step_begin(struct lb_consumer_state *state, stk_error *err);
stk_status lb_step_take(struct lb_consumer_state *state, const stk_batch *batch, stk_error *err);
void lb_step_end(struct lb_consumer_state *state);

/* Accelerator utilization, 0 to 1: steps * step_ns / span_ns. The first step and its read are excluded from both. A
 * step that took longer than step_ns counts as step_ns, since a real accelerator would have idled for the excess. -1:
 * no step. */
double lb_utilization(int64_t steps, int64_t step_ns, int64_t span_ns);

#endif
