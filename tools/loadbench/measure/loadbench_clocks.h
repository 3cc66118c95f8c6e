/* loadbench_clocks.h: the loader's counters over a measured span. */
#ifndef LOADBENCH_CLOCKS_H
#define LOADBENCH_CLOCKS_H

#include <stoker/loader.h>

/* The times that workers account for, as ROW(member, key). stk_loader_stats and stk_worker_stats both have each member.
 * The code for spans, intervals and the stages of a repeat is generated from this list. */
#define LB_WORKER_CLOCKS(ROW)             \
    ROW(order_ns, "order_work_ns")        \
    ROW(read_ns, "read_work_ns")          \
    ROW(decode_ns, "decode_work_ns")      \
    ROW(inflate_ns, "inflate_work_ns")    \
    ROW(call_ns, "call_work_ns")          \
    ROW(page_ns, "page_wait_ns")          \
    ROW(convert_ns, "convert_work_ns")    \
    ROW(wait_slot_ns, "wait_for_slot_ns") \
    ROW(wait_work_ns, "wait_for_work_ns")

/* Subtracts the counters of `before` from those of `stats`. */
void lb_stats_since(stk_loader_stats *stats, const stk_loader_stats *before);
/* Clamps the times of a span of elapsed_ns: the sum of the workers' times to the time available to them, and the
 * consumer's wait to elapsed_ns. */
void lb_stats_fit(stk_loader_stats *stats, int64_t elapsed_ns);

#endif
