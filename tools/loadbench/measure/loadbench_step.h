/* loadbench_step.h: training steps without an accelerator: the consumer waits, as the processor does while an
 * accelerator computes, and asks for the next batch. What MLPerf Storage asks of such a run, and its workloads. */
#ifndef LOADBENCH_STEP_H
#define LOADBENCH_STEP_H

#include "loadbench_consumer.h"

/* A workload of MLPerf Storage with an accelerator that it emulates; docs/reference/loadbench.md says where the numbers
 * are from.
 */
struct lb_preset {
    const char *name; /* "unet3d-h100" */
    int64_t batch_size;
    int64_t step_ns;
    double record_bytes;  /* mean, of a sample as it is stored */
    double record_spread; /* standard deviation of it; 0: all alike */
    double au;            /* the least accelerator utilisation that passes */
    const char *format;   /* the one that the benchmark stores it in */
    const char *edition;  /* of the benchmark */
};

/* [0] is no preset, "none". lb_preset_words has the names, ended by NULL. */
extern const struct lb_preset lb_presets[];
extern const char *const lb_preset_words[];

/* The step consumer. */
stk_status lb_step_begin(struct lb_consumer_state *state, stk_error *err);
stk_status lb_step_take(struct lb_consumer_state *state, const stk_batch *batch, stk_error *err);
void lb_step_end(struct lb_consumer_state *state);

/* Accelerator utilisation of `steps` steps of step_ns in a span of span_ns, from 0 to 1: the time that the accelerator
 * computes, by the time that passed. The first step and its reading are in neither. A step that took longer than asked
 * for counts as long as asked for: what is more is time in which an accelerator would have waited. -1: no step. */
double lb_utilisation(int64_t steps, int64_t step_ns, int64_t span_ns);

#endif
