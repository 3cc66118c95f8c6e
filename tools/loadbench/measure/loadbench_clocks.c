/* loadbench_clocks.c: a worker's times are updated when an activity ends, so an activity that started before the span
 * is counted in full. Time in excess of the workers' total was spent before the span. It is subtracted from waits
 * first, because these are long, and then from work. */
#include "loadbench_clocks.h"

#define SUBTRACT(member, key) stats->member -= before->member;

void lb_stats_since(stk_loader_stats *stats, const stk_loader_stats *before)
{
    stats->batches -= before->batches;
    stats->rows -= before->rows;
    stats->batch_bytes -= before->batch_bytes;
    stats->bytes_read -= before->bytes_read;
    stats->bytes_written -= before->bytes_written;
    stats->tiles -= before->tiles;
    stats->unpacked_bytes -= before->unpacked_bytes;
    stats->packed_bytes -= before->packed_bytes;
    LB_WORKER_CLOCKS(SUBTRACT)
    stats->helped_ns -= before->helped_ns;
    stats->wait_next_ns -= before->wait_next_ns;
    stats->errors -= before->errors;
    stats->warnings -= before->warnings;
    stats->device_batches -= before->device_batches;
    stats->device_bytes -= before->device_bytes;
    stats->device_copy_ns -= before->device_copy_ns;
    stats->device_convert_ns -= before->device_convert_ns;
    stats->device_exposed_ns -= before->device_exposed_ns;
    stats->device_wait_batch_ns -= before->device_wait_batch_ns;
    stats->device_wait_slot_ns -= before->device_wait_slot_ns;
}

static void take_from(int64_t *clock, int64_t *excess)
{
    const int64_t part = *clock < *excess ? *clock : *excess;

    if (part <= 0)
        return;
    *clock -= part;
    *excess -= part;
}

static void take_from_larger_first(int64_t *one, int64_t *other, int64_t *excess)
{
    take_from(*one >= *other ? one : other, excess);
    take_from(*one >= *other ? one : other, excess);
}

void lb_stats_fit(stk_loader_stats *stats, int64_t elapsed_ns)
{
    const int64_t whole = elapsed_ns * (stats->workers > 0 ? stats->workers : 1) + stats->helped_ns;
    int64_t excess =
        stats->order_ns + stats->read_ns + stats->convert_ns + stats->wait_slot_ns + stats->wait_work_ns - whole;

    take_from_larger_first(&stats->wait_slot_ns, &stats->wait_work_ns, &excess);
    take_from_larger_first(&stats->read_ns, &stats->convert_ns, &excess);
    take_from(&stats->order_ns, &excess);
    if (stats->wait_next_ns > elapsed_ns)
        stats->wait_next_ns = elapsed_ns;
}
