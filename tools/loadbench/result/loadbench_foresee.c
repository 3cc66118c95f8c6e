/* loadbench_foresee.c: applies the model of loadbench_model.h to the stage times of a run. The model only uses mean
 * times, so the real run takes longer because of variation and hand-over costs. This excess is assumed to stay the same
 * after a change, except that more slots absorb variation. */
#include "loadbench_foresee.h"
#include "loadbench_statistics.h"
#include <math.h>

struct lb_model lb_foresee_model(const struct lb_shares *shares)
{
    const double batches = (double)shares->batches, own = 1 - shares->wait_next;

    if (shares->batches < 1 || shares->tiles < 1)
        return (struct lb_model){0};
    return (struct lb_model){
        .workers = (int)shares->workers,
        .slots = (int)shares->slots,
        .device_slots = (int)shares->device_slots,
        .tiles = (int)fmax(1, round((double)shares->tiles / batches)),
        .work_s = lb_busy(shares) * shares->worker_s / batches,
        .copy_s = shares->copy * shares->elapsed_s / batches,
        .consumer_s = fmax(0, shares->workers == 0 ? own - lb_busy(shares) : own) * shares->elapsed_s / batches,
        .cpu_s = shares->cpu_s / batches,
        .cores = shares->cores,
    };
}

/* Limits the factor by memory and disk. If a run already exceeds a limit, the factor is limited to 1. */
static double within_limits(const struct lb_shares *shares, double factor)
{
    const double reached = fmax(shares->limit, shares->disk);

    return reached > 0 ? fmin(factor, fmax(1, 1 / reached)) : factor;
}

/* Measured seconds per batch. */
static double batch_s(const struct lb_shares *shares)
{
    return shares->elapsed_s / (double)shares->batches;
}

static double changed_s(const struct lb_shares *shares, const struct lb_model *base, const struct lb_model *changed)
{
    const double now = batch_s(shares), before = lb_model_batch_s(base), then = lb_model_batch_s(changed);

    return now > before ? now + then - before : now * lb_ratio(then, before);
}

double lb_foresee(const struct lb_shares *shares, const struct lb_model *changed)
{
    const struct lb_model base = lb_foresee_model(shares);

    return base.tiles < 1 ? 0 : within_limits(shares, lb_ratio(batch_s(shares), changed_s(shares, &base, changed)));
}

/* Returns the cost of variation: the excess over the model, but at most the time for which stages waited for each
 * other. If a batch takes longer than all of its work done sequentially, the rest is hand-over cost, which more slots
 * cannot remove. */
static double swings_s(const struct lb_shares *shares, const struct lb_model *base)
{
    const double now = batch_s(shares), in_turn = base->work_s + base->copy_s + base->consumer_s;
    const double behind = base->device_slots > 0 ? shares->copy_wait : shares->wait_next;
    const double lost = fmin(now, in_turn) - lb_model_batch_s(base);

    return fmax(0, fmin(lost, now * fmin(shares->wait_slot, behind)));
}

/* Two stages connected by a queue lose about 1 / length of the queue to variation. */
double lb_foresee_deeper(const struct lb_shares *shares)
{
    const struct lb_model base = lb_foresee_model(shares);
    struct lb_model changed = base;

    if (base.tiles < 1 || base.workers < 1 || base.slots < 1)
        return 0;
    changed.slots *= 2;
    const double then = changed_s(shares, &base, &changed) - swings_s(shares, &base) / 2;
    /* additional slots cost no time, so a slowdown is never predicted */
    return within_limits(shares, fmax(1, lb_ratio(batch_s(shares), fmax(then, lb_model_batch_s(&changed)))));
}

/* Compressed bytes are read as often as they are decompressed, and the time for which a worker lacks a processor is
 * proportional to its work, so the total time shrinks with the work. */
double lb_foresee_unpacked_once(const struct lb_shares *shares)
{
    const struct lb_model base = lb_foresee_model(shares);
    const double again = (shares->storage + shares->inflate) * shares->worker_s / (double)shares->batches;
    struct lb_model changed = base;

    if (base.tiles < 1 || base.work_s <= 0 || shares->unpacked < LB_UNPACKED_AGAIN)
        return 0;
    changed.work_s = base.work_s - again * (1 - 1 / shares->unpacked);
    changed.cpu_s = base.cpu_s * changed.work_s / base.work_s;
    struct lb_shares once = *shares;
    once.disk /= shares->unpacked; /* chunks that are decompressed again are also read again */
    return within_limits(&once, lb_ratio(lb_model_batch_s(&base), lb_model_batch_s(&changed)));
}

double lb_foresee_inline(const struct lb_shares *shares)
{
    const struct lb_model base = lb_foresee_model(shares);

    if (base.tiles < 1 || base.workers < 1 || base.device_slots > 0)
        return 0;
    /* one thread uses at most one processor, or less if other programs leave less than one free */
    return within_limits(
        shares, lb_ratio(batch_s(shares) * (base.cores > 0 ? fmin(1, base.cores) : 1), base.work_s + base.consumer_s));
}
