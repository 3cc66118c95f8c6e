/* loadbench_shares.c: stage times summed over repeats, divided by the total time of their threads. */
#include "loadbench_shares.h"
#include "loadbench_statistics.h"
#include <math.h>

#define DIVIDE(name, member, ...) sum.member = lb_ratio(sum.member, sum.worker_s);

static double seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

double lb_step_share(const struct lb_run *run, int64_t step_ns)
{
    const double share = lb_ratio((double)(run->batches * step_ns), (double)run->elapsed_ns);
    return share < 1 ? share : 1;
}

/* Decoding, decompression and transforms are timed inside reads, but end at different times, so their sum is limited to
 * the time of reads. */
static void add_read(const stk_loader_stats *stats, struct lb_shares *sum)
{
    const double read = seconds(stats->read_ns);
    double decode = seconds(stats->decode_ns), inflate = seconds(stats->inflate_ns), call = seconds(stats->call_ns);
    const double parts = decode + inflate + call, fit = parts > read ? lb_ratio(read, parts) : 1;

    decode *= fit, inflate *= fit, call *= fit;
    sum->decode += decode;
    sum->inflate += inflate;
    sum->call += call;
    sum->storage += fmax(0, read - decode - inflate - call);
    sum->page += seconds(stats->page_ns);
}

static void add(const struct lb_run *run, bool step_of_device, int64_t step_ns, struct lb_shares *sum, double *unpacked)
{
    const stk_loader_stats *stats = &run->stats;
    /* While the consumer helps, a worker without a free processor is parked, and does not count as waiting for a slot.
     */
    const int64_t parked = stats->helped_ns < stats->wait_slot_ns ? stats->helped_ns : stats->wait_slot_ns;

    sum->workers = stats->workers;
    sum->slots = stats->slots;
    sum->repeats++;
    sum->batches += run->batches;
    sum->samples += run->samples;
    sum->tiles += stats->tiles;
    unpacked[0] += (double)stats->unpacked_bytes;
    unpacked[1] += (double)stats->packed_bytes;
    sum->elapsed_s += seconds(run->elapsed_ns);
    sum->order += seconds(stats->order_ns);
    add_read(stats, sum);
    sum->convert += seconds(stats->convert_ns);
    sum->worker_s += seconds(run->elapsed_ns) * (double)(stats->workers > 0 ? stats->workers : 1) +
                     seconds(stats->helped_ns - parked);
    sum->wait_slot += seconds(stats->wait_slot_ns - parked);
    sum->wait_work += seconds(stats->wait_work_ns);
    sum->copy += seconds(stats->device_copy_ns + stats->device_convert_ns);
    sum->copy_wait += seconds(stats->device_wait_batch_ns);
    sum->wait_next +=
        step_of_device ? seconds(run->elapsed_ns) * (1 - lb_step_share(run, step_ns)) : seconds(stats->wait_next_ns);
    if (!step_of_device)
        sum->take += fmax(0, seconds(run->next_ns - stats->wait_next_ns)) + seconds(run->release_ns);
}

double lb_ready_share(const struct lb_marks *marks)
{
    double sum = 0;
    int count = 0;

    for (int i = marks && marks->first > 0 ? marks->first : 0; marks && i < marks->count; i++, count++)
        sum += lb_ratio((double)marks->marks[i].stats.slots_ready, (double)marks->marks[i].stats.slots);
    return count > 0 ? sum / count : -1;
}

struct lb_shares lb_shares_of(const struct lb_run *runs, int count, bool step_of_device, int64_t step_ns)
{
    struct lb_shares sum = {0};
    double unpacked[2] = {0};

    for (int i = 0; i < count; i++)
        add(&runs[i], step_of_device, step_ns, &sum, unpacked);
    sum.unpacked = lb_ratio(unpacked[0], unpacked[1]);
    LB_STAGES(DIVIDE)
    sum.wait_slot = lb_ratio(sum.wait_slot, sum.worker_s);
    sum.wait_work = lb_ratio(sum.wait_work, sum.worker_s);
    sum.page = fmin(lb_ratio(sum.page, sum.worker_s), sum.storage);
    sum.copy = fmin(1, lb_ratio(sum.copy, sum.elapsed_s));
    sum.copy_wait = fmin(1, lb_ratio(sum.copy_wait, sum.elapsed_s));
    sum.wait_next = lb_ratio(sum.wait_next, sum.elapsed_s);
    sum.take = fmin(1 - fmin(1, sum.wait_next), lb_ratio(sum.take, sum.elapsed_s));
    sum.ready = -1;
    if (sum.workers > 0)
        sum.hand_over = fmax(0, 1 - lb_busy(&sum) - sum.wait_slot - sum.wait_work);
    return sum;
}
