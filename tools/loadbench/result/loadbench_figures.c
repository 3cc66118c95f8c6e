/* loadbench_figures.c: the table of figures. See loadbench_figure.h for its columns. */
#include "loadbench_figures.h"
#include "loadbench_clocks.h"
#include "loadbench_result.h"
#include "loadbench_step.h"

/* ---- computed values ---- */

static double other_processors(const void *owner)
{
    const struct lb_run *run = owner;
    return run->others.known ? run->others.used : -1;
}

static double was_quiet(const void *others)
{
    return ((const struct lb_others *)others)->used <= LB_QUIET;
}

static double all_quiet(const void *quiet)
{
    return ((const struct lb_quiet *)quiet)->loud == 0;
}

static double resident_share(const void *residency)
{
    return lb_residency_share(residency);
}

static double settled_after_s(const void *owner)
{
    const struct lb_steady *steady = owner;
    return steady->kind == LB_STEADY_DRIFTS ? steady->settled_after_s : -1;
}

static double ready_share(const void *owner)
{
    const struct lb_shares *shares = owner;
    return shares->ready > 0 ? shares->ready : 0;
}

static const char *const gather_orders[] = {"sequential", "random"}, *const gather_sources[] = {"memory", "file"};

/* ---- the table ---- */

#define PLUS(member) .plus = offsetof(struct lb_run, member)
#define PER_SECOND .over = offsetof(struct lb_run, elapsed_ns), .over_unit = 1e9
#define PER_GB .over = offsetof(struct lb_run, stats.batch_bytes), .over_unit = 1e9
#define PER_BATCH .over = offsetof(struct lb_run, batches), .over_unit = 1

const struct lb_figure lb_figures[] = {
#define REPEAT(member) .group = LB_OF_REPEAT, LB_MEMBER(struct lb_run, member)
    {"samples_per_s", "samples/s", REPEAT(samples), PER_SECOND},
    {"batches_per_s", "batches/s", REPEAT(batches), PER_SECOND},
    {"batch_mb_per_s", "MB/s of batches", REPEAT(stats.batch_bytes), LB_BYTES_AS_MB, PER_SECOND},
    {"first_batch_ms", "first batch, ms", REPEAT(first_batch_ns), LB_NS_AS_MS},
    {"wait_p50_us", "wait p50, us", REPEAT(waits.p50_ns), LB_NS_AS_US},
    {"wait_p90_us", "wait p90, us", REPEAT(waits.p90_ns), LB_NS_AS_US},
    {"wait_p99_us", "wait p99, us", REPEAT(waits.p99_ns), LB_NS_AS_US},
    {"wait_p999_us", "wait p99.9, us", REPEAT(waits.p999_ns), LB_NS_AS_US},
    {"wait_max_us", "wait max, us", REPEAT(waits.max_ns), LB_NS_AS_US},
    {"gap_p50_us", "batch to batch p50, us", REPEAT(gaps.p50_ns), LB_NS_AS_US},
    {"gap_p99_us", "batch to batch p99, us", REPEAT(gaps.p99_ns), LB_NS_AS_US},
    {"gap_max_us", "batch to batch max, us", REPEAT(gaps.max_ns), LB_NS_AS_US},
    {"cpu_s_per_gb", "CPU s/GB of batches", REPEAT(usage.user_ns), LB_NS_AS_S, PLUS(usage.system_ns), PER_GB},
    {"switches_per_batch_count", "context switches per batch", REPEAT(usage.voluntary_switches),
     PLUS(usage.involuntary_switches), PER_BATCH},
    {"faults_per_batch_count", "page faults per batch", REPEAT(usage.minor_faults), PLUS(usage.major_faults),
     PER_BATCH},
    {"allocation_count", "allocations", REPEAT(usage.allocations), LB_AS_REAL},
    {"peak_memory_mb", "peak memory, MB", REPEAT(memory.peak_bytes), LB_BYTES_AS_MB},
    {"slot_memory_mb", "slot memory, MB", REPEAT(stats.slot_bytes), LB_BYTES_AS_MB},
    {"disk_read_mb", "read from disk, MB", REPEAT(usage.disk_bytes), LB_BYTES_AS_MB},
    {"other_processor_count", "processors used by others", .group = LB_OF_REPEAT, .of = other_processors},
    {"own_ns_per_batch_ns", "loadbench itself, ns per batch", REPEAT(own_ns), PER_BATCH},
#define MOVED(member) .group = LB_OF_MOVED, LB_MEMBER(struct lb_run, member)
    {"moved_bytes_per_s", MOVED(stats.bytes_read), PLUS(stats.bytes_written), PER_SECOND},
#define RUN(member) .group = LB_OF_RUN, LB_MEMBER(struct lb_run, member)
    {"ended_by", RUN(ending), .words = lb_ending_words},
    {"within_ramp", RUN(within_ramp)},
    {"ramp_ns", RUN(ramp_ns)},
    {"elapsed_ns", RUN(elapsed_ns)},
    {"batch_count", RUN(batches)},
    {"sample_count", RUN(samples)},
    {"epoch_count", RUN(epochs)},
    {"failed_sample_count", RUN(stats.errors)},
    {"warned_sample_count", RUN(stats.warnings)},
    {"tile_count", RUN(stats.tiles)},
    {"batch_bytes", RUN(stats.batch_bytes)},
    {"read_bytes", RUN(stats.bytes_read)},
    {"unpacked_bytes", RUN(stats.unpacked_bytes)},
    {"packed_bytes", RUN(stats.packed_bytes)},
    {"written_bytes", RUN(stats.bytes_written)},
#define PROCESS(member) .group = LB_OF_PROCESS, LB_MEMBER(struct lb_run, member)
    {"usage", PROCESS(usage), .inner = LB_OF_USAGE},
    {"others", PROCESS(others), .inner = LB_OF_OTHERS},
    {"anonymous_memory_bytes", PROCESS(memory.anonymous_bytes)},
    {"file_memory_bytes", PROCESS(memory.file_bytes)},
    {"pinned_bytes", PROCESS(stats.pinned_bytes)},
    {"slot_count", PROCESS(stats.slots)},
    {"worker_count", PROCESS(stats.workers)},
    {"next_ns", PROCESS(next_ns)},
    {"consume_ns", PROCESS(consume_ns)},
    {"release_ns", PROCESS(release_ns)},
    {"record_ns", PROCESS(record_ns)},
    {"own_ns", PROCESS(own_ns)},
#define USAGE(member) .group = LB_OF_USAGE, LB_MEMBER(struct lb_usage, member)
    {"cpu_user_ns", USAGE(user_ns)},
    {"cpu_system_ns", USAGE(system_ns)},
    {"voluntary_switch_count", USAGE(voluntary_switches)},
    {"involuntary_switch_count", USAGE(involuntary_switches)},
    {"minor_fault_count", USAGE(minor_faults)},
    {"major_fault_count", USAGE(major_faults)},
    {"disk_read_bytes", USAGE(disk_bytes)},
    {"allocation_count", USAGE(allocations)},
#define OTHERS(member) .group = LB_OF_OTHERS, LB_MEMBER(struct lb_others, member)
    {"known", OTHERS(known)},
    {"why", OTHERS(why), .when = LB_IF_UNKNOWN},
    {"quiet", .group = LB_OF_OTHERS, .type = LB_BOOL, .of = was_quiet, .when = LB_IF_KNOWN},
    {"used_processor_count", OTHERS(used), .when = LB_IF_KNOWN},
#define STEPS(member) .group = LB_OF_RUN_STEPS, LB_MEMBER(struct lb_run, member)
    {"au_step_count", STEPS(au_steps)},
    {"au_span_ns", STEPS(au_span_ns)},
#define RUN_CACHE(member) .group = LB_OF_RUN_CACHE, LB_MEMBER(struct lb_run, member)
    {"cache_before", RUN_CACHE(before), .inner = LB_OF_RESIDENCY},
    {"cache_after", RUN_CACHE(after), .inner = LB_OF_RESIDENCY},
#define RESIDENCY(member) .group = LB_OF_RESIDENCY, LB_MEMBER(struct lb_residency, member)
    {"known", RESIDENCY(known)},
    {"why", RESIDENCY(why), .when = LB_IF_UNKNOWN},
    {"resident_percent", .group = LB_OF_RESIDENCY, .of = resident_share, .unit = LB_PERCENT, .when = LB_IF_KNOWN},
    {"resident_bytes", RESIDENCY(resident_bytes), .when = LB_IF_KNOWN},
    {"asked_bytes", RESIDENCY(bytes), .when = LB_IF_KNOWN},
    {"asked_file_count", RESIDENCY(asked), .when = LB_IF_KNOWN},
#define STEADY(member) .group = LB_OF_STEADY, LB_MEMBER(struct lb_steady, member)
    {"state", STEADY(kind), .words = lb_steady_words},
    {"interval_count", STEADY(intervals)},
#define TREND(member) .group = LB_OF_TREND, LB_MEMBER(struct lb_steady, member)
    {"trend_percent", TREND(trend_percent)},
    {"trend_error_percent", TREND(error_percent)},
    {"scatter_percent", TREND(scatter_percent)},
    {"settled_after_s", .group = LB_OF_TREND, .of = settled_after_s, .when = LB_IF_NOT_NEGATIVE},
#define RUN_STAGE(member) .group = LB_OF_RUN_STAGES, LB_MEMBER(stk_loader_stats, member)
#define CLOCK(member, key) {key, RUN_STAGE(member)},
    LB_WORKER_CLOCKS(CLOCK){"consumer_wait_ns", RUN_STAGE(wait_next_ns)},
#define RUN_DEVICE(member) .group = LB_OF_RUN_DEVICE, LB_MEMBER(stk_loader_stats, member)
    {"batch_count", RUN_DEVICE(device_batches)},
    {"copied_bytes", RUN_DEVICE(device_bytes)},
    {"copy_ns", RUN_DEVICE(device_copy_ns)},
    {"convert_ns", RUN_DEVICE(device_convert_ns)},
    {"exposed_ns", RUN_DEVICE(device_exposed_ns)},
    {"wait_for_batch_ns", RUN_DEVICE(device_wait_batch_ns)},
    {"wait_for_slot_ns", RUN_DEVICE(device_wait_slot_ns)},
    {"slot_count", RUN_DEVICE(device_slots)},
    {"slot_memory_bytes", RUN_DEVICE(device_slot_bytes)},
#define DIGEST(member) .group = LB_OF_RUN_DIGEST, LB_MEMBER(struct lb_run, member)
    {"digest", DIGEST(digest.text)},
    {"digest_first_step", DIGEST(digest.first_step)},
    {"digest_end_step", DIGEST(digest.end_step)},
#define RUN_LIMIT(member) .group = LB_OF_RUN_LIMIT, LB_MEMBER(struct lb_limit, member)
    {"limit_gather_bytes_per_s", RUN_LIMIT(gather.bytes_per_s)},
    {"limit_memcpy_bytes_per_s", RUN_LIMIT(memcpy.bytes_per_s)},

/* Over all repeats. */
#define WAITS(member) .group = LB_OF_WAITS, LB_MEMBER(struct lb_waits, member)
    {"call_count", WAITS(count)},
    {"p50_us", WAITS(p50_ns), LB_NS_AS_US},
    {"p90_us", WAITS(p90_ns), LB_NS_AS_US},
    {"p99_us", WAITS(p99_ns), LB_NS_AS_US},
    {"p999_us", WAITS(p999_ns), LB_NS_AS_US},
    {"max_us", WAITS(max_ns), LB_NS_AS_US},
#define QUIET(member) .group = LB_OF_QUIET, LB_MEMBER(struct lb_quiet, member)
    {"known", QUIET(known)},
    {"why", QUIET(why), .when = LB_IF_UNKNOWN},
    {"quiet", .group = LB_OF_QUIET, .type = LB_BOOL, .of = all_quiet, .when = LB_IF_KNOWN},
    {"allowed_processor_count", QUIET(processors)},
    {"loud_repeat_count", QUIET(loud)},
    {"used_processor_count", QUIET(used), .when = LB_IF_KNOWN},
#define SHARE(member) .group = LB_OF_SHARES, LB_MEMBER(struct lb_shares, member)
    {"order_work_percent", SHARE(order), LB_PERCENT},
    {"storage_work_percent", SHARE(storage), LB_PERCENT},
    {"page_wait_percent", SHARE(page), LB_PERCENT},
    {"decode_work_percent", SHARE(decode), LB_PERCENT},
    {"inflate_work_percent", SHARE(inflate), LB_PERCENT},
    {"call_work_percent", SHARE(call), LB_PERCENT},
    {"convert_work_percent", SHARE(convert), LB_PERCENT},
    {"hand_over_work_percent", SHARE(hand_over), LB_PERCENT},
    {"wait_for_slot_percent", SHARE(wait_slot), LB_PERCENT},
    {"wait_for_work_percent", SHARE(wait_work), LB_PERCENT},
    {"consumer_wait_percent", SHARE(wait_next), LB_PERCENT},
    {"copy_work_percent", SHARE(copy), LB_PERCENT, LB_IF_POSITIVE},
    {"chunk_unpacked_times_count", SHARE(unpacked), .when = LB_IF_POSITIVE},
    {"worker_time_s", SHARE(worker_s)},
    {"elapsed_s", SHARE(elapsed_s)},
#define QUEUE(member) .group = LB_OF_QUEUE, LB_MEMBER(struct lb_shares, member)
    {"slot_count", QUEUE(slots)},
    {"ready_percent", .group = LB_OF_QUEUE, .of = ready_share, .unit = LB_PERCENT},
#define LIMIT(member) .group = LB_OF_LIMIT, LB_MEMBER(struct lb_limit_summary, member)
    {"thread_count", LIMIT(first.threads)},
    {"gather_bytes_per_s", LIMIT(gather_bytes_per_s)},
    {"gather_way", LIMIT(first.gather.way)},
    {"gather_order", LIMIT(first.random), .words = gather_orders},
    {"gather_from", LIMIT(first.from_file), .words = gather_sources},
    {"gather_row_bytes", LIMIT(first.row_bytes)},
    {"gather_source_bytes", LIMIT(first.source_bytes)},
    {"gather_target_bytes", LIMIT(first.target_bytes)},
    {"memcpy_bytes_per_s", LIMIT(memcpy_bytes_per_s)},
    {"write_bytes_per_s", LIMIT(first.write.bytes_per_s)},
    {"memcpy_way", LIMIT(first.memcpy.way)},
    {"share_of_gather_percent", LIMIT(share_of_gather_percent)},
    {"share_of_memcpy_percent", LIMIT(share_of_memcpy_percent)},
#define BOUND(member) .group = LB_OF_BOUND, LB_MEMBER(struct lb_bound, member)
    {"name", BOUND(kind), .words = lb_bound_words},
    {"samples_per_s", BOUND(samples_per_s)},
    {"share_percent", BOUND(share_percent)},
    {"applies", BOUND(applies)},
    {"basis", BOUND(basis)},
    {"unpacked_times_count", BOUND(unpacked), .when = LB_IF_POSITIVE},
#define ONCE(member) .group = LB_OF_ONCE, LB_MEMBER(struct lb_once, member)
    {"page_cache_read_bytes_per_s", ONCE(read.cached_bytes_per_s)},
    {"disk_read_bytes_per_s", ONCE(read.cold_bytes_per_s)},
    {"disk_sample_bytes", ONCE(read.cold_bytes)},
    {"thread_count", ONCE(read.threads)},
#define DEVICE(member) .group = LB_OF_DEVICE, LB_MEMBER(struct lb_device_summary, member)
    {"name", DEVICE(name)},
    {"batch_bytes", DEVICE(batch_bytes)},
    {"copy_bytes_per_s", DEVICE(copy_bytes_per_s)},
    {"hidden_percent", DEVICE(hidden_percent)},
    {"convert_percent", DEVICE(convert_percent)},
#define DEVICE_STEP(member) .group = LB_OF_DEVICE_STEP, LB_MEMBER(struct lb_device_summary, member)
    {"step_ns", DEVICE_STEP(step_ns)},
    {"step_percent", DEVICE_STEP(step_percent)},
#define PLAIN_COPY(member) .group = LB_OF_PLAIN_COPY, LB_MEMBER(struct lb_device_summary, member)
    {"plain_pinned_bytes_per_s", PLAIN_COPY(pinned_bytes_per_s)},
    {"plain_pageable_bytes_per_s", PLAIN_COPY(pageable_bytes_per_s)},
    {"share_of_pinned_percent", PLAIN_COPY(share_of_pinned_percent)},
#define UTILIZATION(member) .group = LB_OF_UTILIZATION, LB_MEMBER(struct lb_bench, member)
    {"step_ns", UTILIZATION(step_time)},
    {"preset", UTILIZATION(preset), .words = lb_preset_words},
    {"required_percent", UTILIZATION(au_required), LB_PERCENT},
#define VERDICT(member) .group = LB_OF_VERDICT, LB_MEMBER(struct lb_verdict, member)
    {"bottleneck", VERDICT(bottleneck), .words = lb_bottleneck_words},
    {"confidence", VERDICT(confidence), .words = lb_confidence_words},
    {"busy_percent", VERDICT(busy), LB_PERCENT},
    {"text", VERDICT(text)},
    {"doubt", VERDICT(doubt), .when = LB_IF_TEXT},

/* The machine of the measurement. */
#define MACHINE(member) .group = LB_OF_MACHINE, LB_MEMBER(struct lb_machine, member)
    {"cpu", MACHINE(cpu)},
    {"architecture", MACHINE(architecture)},
    {"cores_allowed", MACHINE(cores_allowed)},
    {"cores_online", MACHINE(cores_online)},
    {"last_level_cache_bytes", MACHINE(cache_bytes)},
    {"memory_bytes", MACHINE(memory_bytes)},
    {"memory_available_bytes", MACHINE(memory_available_bytes)},
    {"transparent_huge_pages", MACHINE(huge_pages)},
    {"kernel", MACHINE(kernel)},
    {"cgroup_cpu_quota_cores", MACHINE(cpu_quota), .when = LB_NULL_UNLESS_POSITIVE},
    {"cgroup_memory_limit_bytes", MACHINE(memory_limit), .when = LB_NULL_UNLESS_POSITIVE},
#define STORAGE(member) .group = LB_OF_STORAGE, LB_MEMBER(struct lb_place, member)
    {"file_system", STORAGE(type)},
    {"source", STORAGE(source)},
    {"mount", STORAGE(mount)},
#define GPU(member) .group = LB_OF_GPU, LB_MEMBER(struct lb_gpu, member)
    {"model", GPU(model)},
    {"bus", GPU(bus)},
    {"link_speed", GPU(link_speed)},
    {"link_lane_count", GPU(link_width), .when = LB_IF_POSITIVE},
    {"memory_bytes", GPU(memory_bytes)},
#define TIMER(member) .group = LB_OF_TIMER, LB_MEMBER(struct lb_timer, member)
    {"reading_ns", TIMER(overhead_ns)},
    {"resolution_ns", TIMER(resolution_ns)},
#define DATA(member) .group = LB_OF_DATA, LB_MEMBER(struct lb_facts, member)
    {"sample_count", DATA(samples)},
    {"batches_per_epoch", DATA(steps_per_epoch)},
#define CACHE(member) .group = LB_OF_CACHE, LB_MEMBER(struct lb_files, member)
    {"file_count", CACHE(count)},
    {"data_bytes", CACHE(bytes)},
};
const int lb_figure_count = sizeof lb_figures / sizeof lb_figures[0];
