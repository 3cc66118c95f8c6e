/* caching_pool_report.c: reports on a pool: statistics, JSON, a table, and the message of a failed allocation. */
#include "allocate.h"
#include "caching_pool_internal.h"
#include "error.h"
#include "text_build.h"
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { MOST_TAGS = 12 };

static const char *const class_names[STKI_POOL_CLASSES] = {"small", "medium", "large", "exact"};
static const char *const state_names[] = {"free", "used", "waiting"};

static const char *tag_text(const stki_pool_tag *tag)
{
    return *tag->text ? tag->text : "(no tag)";
}

/* ---- statistics ---- */

typedef struct totals {
    int64_t segments[STKI_POOL_CLASSES];
    int64_t bytes[STKI_POOL_CLASSES][3]; /* size of the blocks in each state */
} totals;

static stk_device_memory_stats stats_of(const stki_caching_pool *pool, totals *sums)
{
    stk_device_memory_stats stats = pool->stats;
    int64_t free_bytes = stats.reserved_bytes - stats.active_bytes;

    memset(sums, 0, sizeof *sums);
    for (const stki_pool_segment *segment = pool->segments; segment; segment = segment->next) {
        sums->segments[segment->class]++;
        for (const stki_pool_block *block = &segment->first; block; block = block->after) {
            sums->bytes[segment->class][block->state] += block->bytes;
            if (block->state != STKI_POOL_FREE)
                continue;
            stats.largest_free = block->bytes > stats.largest_free ? block->bytes : stats.largest_free;
            stats.split_bytes += stki_pool_whole(segment) ? 0 : block->bytes;
        }
    }
    stats.fragmentation = free_bytes > 0 ? 1.0 - (double)stats.largest_free / (double)free_bytes : 0;
    return stats;
}

void stki_pool_stats_read(stki_pool *base, stk_device_memory_stats *out)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);
    totals sums;

    stki_lock(&pool->lock);
    *out = stats_of(pool, &sums);
    stki_unlock(&pool->lock);
}

static const char *kind_name(const stki_caching_pool *pool)
{
    return pool->base.kind == STK_MEMORY_PINNED ? "pinned" : "device";
}

/* ---- JSON ---- */

#define ROW(name, member)                               \
    {                                                   \
        name, offsetof(stk_device_memory_stats, member) \
    }
static const struct {
    const char *name;
    size_t offset;
} rows[] = {
    ROW("allocated_bytes", allocated_bytes),
    ROW("allocated_peak_bytes", allocated_peak),
    ROW("active_bytes", active_bytes),
    ROW("active_peak_bytes", active_peak),
    ROW("reserved_bytes", reserved_bytes),
    ROW("reserved_peak_bytes", reserved_peak),
    ROW("split_bytes", split_bytes),
    ROW("largest_free_bytes", largest_free),
    ROW("largest_bytes", largest_bytes),
    ROW("blocks", blocks),
    ROW("segments", segments),
    ROW("allocations", allocations),
    ROW("driver_allocations", driver_allocations),
    ROW("driver_frees", driver_frees),
    ROW("retries", retries),
    ROW("out_of_memory", out_of_memory),
};

static void put_block_json(stki_text_build *text, const stki_pool_block *block)
{
    int streams = 0;

    stki_putf(text, "{\"offset_bytes\": %" PRId64 ", \"bytes\": %" PRId64 ", \"state\": \"%s\"",
              (int64_t)(block->address - block->segment->address), block->bytes, state_names[block->state]);
    if (block->state == STKI_POOL_USED) {
        for (const stki_pool_use *use = block->uses; use; use = use->next)
            streams++;
        stki_putf(text, ", \"asked_bytes\": %" PRId64 ", \"other_streams\": %d, \"tag\": ", block->asked_bytes,
                  streams);
        stki_put_json(text, block->tag->text);
    } else if (block->state == STKI_POOL_WAITING) {
        stki_putf(text, ", \"events\": %" PRId64, block->waits);
    }
    stki_put(text, block->after ? "}, " : "}");
}

static void put_segment_json(stki_text_build *text, const stki_caching_pool *pool, const stki_pool_segment *segment)
{
    const stki_pool_queue *queue = pool->queues;

    stki_putf(text,
              "{\"number\": %" PRId64 ", \"address\": \"%p\", \"bytes\": %" PRId64 ", \"class\": \"%s\", \"stream\": ",
              segment->number, (void *)segment->address, segment->bytes, class_names[segment->class]);
    while (queue && queue != segment->owner)
        queue = queue->next;
    if (queue || segment->owner == &stki_pool_unowned)
        stki_put(text, "\"nobody\"");
    else if (segment->owner)
        stki_putf(text, "\"%p\"", segment->owner);
    else
        stki_put(text, "null");
    stki_put(text, ", \"blocks\": [");
    for (const stki_pool_block *block = &segment->first; block; block = block->after)
        put_block_json(text, block);
    stki_put(text, segment->next ? "]},\n  " : "]}");
}

stk_status stki_pool_snapshot(stki_pool *base, char **out, stk_error *err)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);
    stk_device_memory_stats stats;
    stki_text_build text = {0};
    totals sums;

    stki_put(&text, "{\"device\": ");
    stki_put_json(&text, base->device->name);
    stki_putf(&text, ", \"kind\": \"%s\", \"stats\": {", kind_name(pool));
    stki_lock(&pool->lock);
    stats = stats_of(pool, &sums);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        stki_putf(&text, "\"%s\": %" PRId64 ", ", rows[i].name,
                  *(const int64_t *)(const void *)((const char *)&stats + rows[i].offset));
    stki_putf(&text, "\"fragmentation\": %.6f}, \"errors\": %" PRId64 ", \"last_error\": ", stats.fragmentation,
              pool->errors);
    stki_put_json(&text, pool->last_error);
    stki_put(&text, ", \"segments\": [");
    for (const stki_pool_segment *segment = pool->segments; segment; segment = segment->next)
        put_segment_json(&text, pool, segment);
    stki_unlock(&pool->lock);
    stki_put(&text, "]}");
    return stki_text_finish(&text, "a report on a memory pool", out, err);
}

/* ---- text ---- */

typedef char cell[32];

static const char *size_text(cell to, int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double size = (double)bytes;
    int unit = 0;

    for (; size >= 1024 && unit < 4; unit++)
        size /= 1024;
    snprintf(to, sizeof(cell), unit ? "%.2f %s" : "%.0f %s", size, units[unit]);
    return to;
}

static void put_row(stki_text_build *text, const char *name, int64_t now, int64_t peak, const char *note)
{
    cell a, b = "";

    if (peak >= 0)
        size_text(b, peak);
    stki_putf(text, "%-18s %12s %12s  %s\n", name, size_text(a, now), b, note);
}

static void put_parts(stki_text_build *text, const stki_caching_pool *pool, const totals *sums)
{
    const stki_pool_tag *top[MOST_TAGS];
    int count = stki_pool_tags_top(pool, top, MOST_TAGS);
    cell a, b, c;

    stki_putf(text, "\n%-18s %12s %12s %12s %12s\n", "segments", "number", "used", "waiting", "free");
    for (int i = 0; i < STKI_POOL_CLASSES; i++)
        if (sums->segments[i] > 0)
            stki_putf(text, "%-18s %12" PRId64 " %12s %12s %12s\n", class_names[i], sums->segments[i],
                      size_text(a, sums->bytes[i][STKI_POOL_USED]), size_text(b, sums->bytes[i][STKI_POOL_WAITING]),
                      size_text(c, sums->bytes[i][STKI_POOL_FREE]));
    if (count > 0)
        stki_putf(text, "\n%-18s %12s %12s\n", "held by", "bytes", "blocks");
    for (int i = 0; i < count; i++)
        stki_putf(text, "%-18s %12s %12" PRId64 "\n", tag_text(top[i]), size_text(a, top[i]->bytes), top[i]->blocks);
}

stk_status stki_pool_summary(stki_pool *base, char **out, stk_error *err)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);
    stki_text_build text = {0};
    stk_device_memory_stats stats;
    char line[80];
    totals sums;

    stki_lock(&pool->lock);
    stats = stats_of(pool, &sums);
    snprintf(line, sizeof line, "%.20s, %s memory", base->device->name, kind_name(pool));
    stki_putf(&text, "%-22s %8s %12s\n", line, "now", "peak");
    put_row(&text, "allocated", stats.allocated_bytes, stats.allocated_peak, "requested and in use");
    put_row(&text, "active", stats.active_bytes, stats.active_peak,
            "blocks in use, and freed ones that wait for streams");
    put_row(&text, "reserved", stats.reserved_bytes, stats.reserved_peak, "taken from the driver");
    snprintf(line, sizeof line, "%.1f %% of it outside the largest block", 100 * stats.fragmentation);
    put_row(&text, "free in the cache", stats.reserved_bytes - stats.active_bytes, -1, line);
    put_row(&text, "split", stats.split_bytes, -1, "free in partly used segments: cannot be returned");
    stki_putf(&text,
              "blocks: %" PRId64 ", segments: %" PRId64 ", allocations: %" PRId64 " (by the driver: %" PRId64
              "), segments returned: %" PRId64 ", retries: %" PRId64 ", failures: %" PRId64 "\n",
              stats.blocks, stats.segments, stats.allocations, stats.driver_allocations, stats.driver_frees,
              stats.retries, stats.out_of_memory);
    if (pool->errors > 0)
        stki_putf(&text, "errors while returning memory: %" PRId64 ", the last one: %s\n", pool->errors,
                  pool->last_error);
    put_parts(&text, pool, &sums);
    stki_unlock(&pool->lock);
    return stki_text_finish(&text, "a report on a memory pool", out, err);
}

stk_status stki_pool_fail_memory(stki_caching_pool *pool, const stki_pool_request *request, const char *driver_reason,
                                 stk_error *err)
{
    stk_device_memory_stats stats;
    cell asked, allocated, reserved, free_bytes, largest, split;
    const stki_pool_tag *top[3];
    int64_t left, waiting = 0;
    char more[400];
    int count, used = 0;
    totals sums;

    stki_lock(&pool->lock);
    pool->stats.out_of_memory++;
    stats = stats_of(pool, &sums);
    count = stki_pool_tags_top(pool, top, 3);
    for (int i = 0; i < count; i++)
        used += snprintf(more + used, sizeof more - (size_t)used, "%s%s by %s",
                         i ? ", " : "; held: ", size_text(asked, top[i]->bytes), tag_text(top[i]));
    stki_unlock(&pool->lock);
    for (int i = 0; i < STKI_POOL_CLASSES; i++)
        waiting += sums.bytes[i][STKI_POOL_WAITING];
    if (waiting > 0)
        used +=
            snprintf(more + used, sizeof more - (size_t)used, "; waiting for streams: %s", size_text(asked, waiting));
    left = stats.reserved_bytes - stats.active_bytes;
    snprintf(more + used, sizeof more - (size_t)used, "%s",
             left < request->block_bytes
                 ? ""
                 : "; there is enough free memory, but it is fragmented or belongs to other streams: release large "
                   "tensors before small ones, or allocate fewer different sizes");
    return stki_fail(
        err, STK_E_MEMORY,
        "%s: out of %s memory: requested %s%s; allocated %s, reserved %s, free in the cache %s (largest block "
        "%s), %s of it in partly used segments; the driver: %.120s%s",
        pool->base.device->name, kind_name(pool), size_text(asked, request->asked_bytes),
        request->class == STKI_POOL_EXACT ? " exactly" : "", size_text(allocated, stats.allocated_bytes),
        size_text(reserved, stats.reserved_bytes), size_text(free_bytes, left), size_text(largest, stats.largest_free),
        size_text(split, stats.split_bytes), driver_reason, more);
}
