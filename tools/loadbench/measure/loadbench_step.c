/* loadbench_step.c: see loadbench_step.h. The step is a sleep, as in MLPerf Storage (which sleeps for the compute
 * time that was measured on the accelerator): a spinning loop would take a core from the workers. */
#include "loadbench_step.h"
#include "clock.h"
#include "loadbench_stop.h"
#include "thread.h"
#include <sys/prctl.h>

/* Longest sleep, which bounds the delay of Ctrl-C. */
#define SLICE_NS (STKI_SECOND / 4)

/* From mlcommons/storage, configs/dlio/workload/NAME.yaml: reader.batch_size, train.computation_time,
 * dataset.record_length_bytes and …_stdev, metric.au. */
const struct lb_preset lb_presets[] = {
    {"none", 0, 0, 0, 0, 0.9, "", ""},
    {"unet3d-a100", 7, 636000000, 146600628, 68341808, 0.9, "npz", "v1.0, v2.0"},
    {"unet3d-h100", 7, 323000000, 146600628, 68341808, 0.9, "npz", "v1.0, v2.0"},
    {"unet3d-b200", 7, 162000000, 146600628, 68341808, 0.9, "npz", "later"},
    {"resnet50-a100", 400, 435000000, 114660.07, 0, 0.9, "tfrecord", "v1.0, v2.0"},
    {"resnet50-h100", 400, 224000000, 114660.07, 0, 0.9, "tfrecord", "v1.0, v2.0"},
    {"cosmoflow-a100", 1, 5510000, 2828486, 71311, 0.7, "tfrecord", "v1.0, v2.0"},
    {"cosmoflow-h100", 1, 3500000, 2828486, 71311, 0.7, "tfrecord", "v1.0, v2.0"},
    {"retinanet-b200", 24, 47550000, 322957, 0, 0.85, "jpeg", "later"},
};
const char *const lb_preset_words[] = {
    "none",          "unet3d-a100",    "unet3d-h100",    "unet3d-b200",    "resnet50-a100",
    "resnet50-h100", "cosmoflow-a100", "cosmoflow-h100", "retinanet-b200", NULL};

/* Reduces the timer slack of this thread, so that its sleeps end within about a microsecond of the requested time. Must
 * be called after the workers are started, because they would inherit the setting. */
stk_status lb_step_begin(struct lb_consumer_state *state, stk_error *err)
{
    (void)err;
    state->timer_slack = prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL);
    (void)prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL); /* ns */
    return STK_OK;
}

stk_status lb_step_take(struct lb_consumer_state *state, const stk_batch *batch, stk_error *err)
{
    const int64_t end = stki_now_ns() + state->step_ns;

    (void)batch, (void)err;
    for (int64_t left = state->step_ns; left > 0 && !lb_stop_asked; left = end - stki_now_ns())
        stki_sleep_ns(left < SLICE_NS ? left : SLICE_NS);
    state->cut = stki_now_ns() < end;
    return STK_OK;
}

void lb_step_end(struct lb_consumer_state *state)
{
    if (state->timer_slack > 0)
        (void)prctl(PR_SET_TIMERSLACK, (unsigned long)state->timer_slack, 0UL, 0UL, 0UL);
}

double lb_utilization(int64_t steps, int64_t step_ns, int64_t span_ns)
{
    if (steps < 1 || span_ns <= 0)
        return -1;
    const double share = (double)steps * (double)step_ns / (double)span_ns;
    return share < 1 ? share : 1;
}
