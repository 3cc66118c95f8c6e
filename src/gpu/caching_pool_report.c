/* caching_pool_report.c: what a pool knows, for programs (stats, JSON) and for people (a table, the message of an
 * allocation that failed). Counts are kept as things happen; what depends on the shape of the free blocks is looked for
 * when somebody asks.
 */
#include "allocate.h"
#include "caching_pool_internal.h"
#include "error.h"
#include "text_build.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_TAGS = 12 };

static const char *const class_names[STKI_POOL_CLASSES] = {"small", "medium", "large", "exact"};
static const char *const state_names[] = {"free", "used", "waiting"};

static const char *kind_name(const stki_caching_pool *pool)
{
    return pool->base.kind == STK_MEMORY_PINNED ? "pinned" : "device";
}

/* ---- statistics ---- */

static void look_at_free(const stki_caching_pool *pool, stk_device_memory_stats *out)
{
    int64_t free_bytes = out->reserved_bytes - out->active_bytes;

    for (const stki_pool_segment *segment = pool->first; segment; segment = segment->next) {
        for (const stki_pool_block *block = segment->first; block; block = block->after) {
            if (block->state != STKI_POOL_FREE)
                continue;
            out->largest_free = block->bytes > out->largest_free ? block->bytes : out->largest_free;
            out->split_bytes += stki_pool_whole(segment) ? 0 : block->bytes;
        }
    }
    out->fragmentation = free_bytes > 0 ? 1.0 - (double)out->largest_free / (double)free_bytes : 0;
}

static stk_device_memory_stats stats_of(const stki_caching_pool *pool)
{
    stk_device_memory_stats stats = pool->stats;

    look_at_free(pool, &stats);
    return stats;
}

void stki_pool_stats_read(stki_pool *base, stk_device_memory_stats *out)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);

    stki_lock(&pool->lock);
    *out = stats_of(pool);
    stki_unlock(&pool->lock);
}

static stk_status take(stki_text_build *text, char **out, stk_error *err)
{
    int64_t room = text->room;

    *out = stki_text_take(text);
    return *out ? STK_OK : stki_fail_memory(err, room, "a report on a memory pool");
}

/* ---- JSON ---- */

static void put_stats_json(stki_text_build *text, const stk_device_memory_stats *stats)
{
    const struct {
        const char *name;
        int64_t value;
    } rows[] = {
        {"allocated_bytes", stats->allocated_bytes},
        {"allocated_peak_bytes", stats->allocated_peak},
        {"active_bytes", stats->active_bytes},
        {"active_peak_bytes", stats->active_peak},
        {"reserved_bytes", stats->reserved_bytes},
        {"reserved_peak_bytes", stats->reserved_peak},
        {"split_bytes", stats->split_bytes},
        {"largest_free_bytes", stats->largest_free},
        {"largest_bytes", stats->largest_bytes},
        {"blocks", stats->blocks},
        {"segments", stats->segments},
        {"allocations", stats->allocations},
        {"driver_allocations", stats->driver_allocations},
        {"driver_frees", stats->driver_frees},
        {"retries", stats->retries},
        {"out_of_memory", stats->out_of_memory},
    };

    stki_put(text, "{");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        stki_putf(text, "\"%s\": %" PRId64 ", ", rows[i].name, rows[i].value);
    stki_putf(text, "\"fragmentation\": %.6f}", stats->fragmentation);
}

static void put_block_json(stki_text_build *text, const stki_pool_block *block)
{
    stki_putf(text, "{\"offset_bytes\": %" PRId64 ", \"bytes\": %" PRId64 ", \"state\": \"%s\"",
              (int64_t)(block->address - block->segment->address), block->bytes, state_names[block->state]);
    if (block->state == STKI_POOL_USED) {
        int64_t streams = 0;
        for (const stki_pool_use *use = block->uses; use; use = use->next)
            streams++;
        stki_putf(text, ", \"asked_bytes\": %" PRId64 ", \"other_streams\": %" PRId64 ", \"tag\": ", block->asked_bytes,
                  streams);
        stki_put_json(text, block->tag->text);
    } else if (block->state == STKI_POOL_WAITING) {
        stki_putf(text, ", \"events\": %" PRId64, block->waits);
    }
    stki_put(text, "}");
}

static void put_segment_json(stki_text_build *text, const stki_pool_segment *segment)
{
    stki_putf(text, "{\"number\": %" PRId64 ", \"address\": \"%p\", \"bytes\": %" PRId64 ", \"class\": \"%s\"",
              segment->number, (void *)segment->address, segment->bytes, class_names[segment->class]);
    if (segment->owner == &stki_pool_nobody)
        stki_put(text, ", \"stream\": \"nobody\"");
    else if (segment->owner)
        stki_putf(text, ", \"stream\": \"%p\"", segment->owner);
    else
        stki_put(text, ", \"stream\": null");
    stki_put(text, ", \"blocks\": [");
    for (const stki_pool_block *block = segment->first; block; block = block->after) {
        put_block_json(text, block);
        stki_put(text, block->after ? ", " : "]}");
    }
}

stk_status stki_pool_snapshot(stki_pool *base, char **out, stk_error *err)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);
    stk_device_memory_stats stats;
    stki_text_build text = {0};

    stki_put(&text, "{\"device\": ");
    stki_put_json(&text, base->device->name);
    stki_putf(&text, ", \"kind\": \"%s\", \"stats\": ", kind_name(pool));
    stki_lock(&pool->lock);
    stats = stats_of(pool);
    put_stats_json(&text, &stats);
    stki_putf(&text, ", \"errors\": %" PRId64 ", \"last_error\": ", pool->errors);
    stki_put_json(&text, pool->last_error);
    stki_put(&text, ", \"segments\": [");
    for (const stki_pool_segment *segment = pool->first; segment; segment = segment->next) {
        put_segment_json(&text, segment);
        stki_put(&text, segment->next ? ",\n  " : "");
    }
    stki_unlock(&pool->lock);
    stki_put(&text, "]}");
    return take(&text, out, err);
}

/* ---- a table for people ---- */

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
    cell a, b;

    stki_putf(text, "%-18s %12s %12s  %s\n", name, size_text(a, now), size_text(b, peak), note);
}

static void put_classes(stki_text_build *text, const stki_caching_pool *pool)
{
    struct {
        int64_t segments, bytes[3];
    } sums[STKI_POOL_CLASSES] = {{0}};
    cell a, b, c;

    for (const stki_pool_segment *segment = pool->first; segment; segment = segment->next) {
        sums[segment->class].segments++;
        for (const stki_pool_block *block = segment->first; block; block = block->after)
            sums[segment->class].bytes[block->state] += block->bytes;
    }
    stki_putf(text, "\n%-18s %12s %12s %12s %12s\n", "segments", "number", "used", "waiting", "free");
    for (int i = 0; i < STKI_POOL_CLASSES; i++)
        if (sums[i].segments > 0)
            stki_putf(text, "%-18s %12" PRId64 " %12s %12s %12s\n", class_names[i], sums[i].segments,
                      size_text(a, sums[i].bytes[STKI_POOL_USED]), size_text(b, sums[i].bytes[STKI_POOL_WAITING]),
                      size_text(c, sums[i].bytes[STKI_POOL_FREE]));
}

static void put_tags(stki_text_build *text, const stki_caching_pool *pool)
{
    const stki_pool_tag *top[MOST_TAGS];
    int count = stki_pool_tags_top(pool, top, MOST_TAGS);
    cell size;

    if (count > 0)
        stki_putf(text, "\n%-18s %12s %12s\n", "held by", "bytes", "blocks");
    for (int i = 0; i < count; i++)
        stki_putf(text, "%-18s %12s %12" PRId64 "\n", *top[i]->text ? top[i]->text : "(no tag)",
                  size_text(size, top[i]->bytes), top[i]->blocks);
}

stk_status stki_pool_summary(stki_pool *base, char **out, stk_error *err)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);
    stki_text_build text = {0};
    stk_device_memory_stats stats;
    char title[48];
    cell size;

    stki_lock(&pool->lock);
    stats = stats_of(pool);
    snprintf(title, sizeof title, "%.20s, %s memory", base->device->name, kind_name(pool));
    stki_putf(&text, "%-22s %8s %12s\n", title, "now", "peak");
    put_row(&text, "allocated", stats.allocated_bytes, stats.allocated_peak, "asked for and in use");
    put_row(&text, "active", stats.active_bytes, stats.active_peak,
            "their blocks, and freed ones that wait for streams");
    put_row(&text, "reserved", stats.reserved_bytes, stats.reserved_peak, "taken from the driver");
    stki_putf(&text, "%-18s %12s %12s  %.1f %% of it outside the largest block\n", "free in the cache",
              size_text(size, stats.reserved_bytes - stats.active_bytes), "", 100 * stats.fragmentation);
    stki_putf(&text, "%-18s %12s %12s  free beside blocks in use: cannot be given back\n", "split",
              size_text(size, stats.split_bytes), "");
    stki_putf(&text,
              "%" PRId64 " blocks in %" PRId64 " segments; of %" PRId64 " allocations %" PRId64
              " went to the driver, which got %" PRId64 " back; %" PRId64 " retries, %" PRId64 " failures\n",
              stats.blocks, stats.segments, stats.allocations, stats.driver_allocations, stats.driver_frees,
              stats.retries, stats.out_of_memory);
    if (pool->errors > 0)
        stki_putf(&text, "%" PRId64 " errors while giving memory back, the last one: %s\n", pool->errors,
                  pool->last_error);
    put_classes(&text, pool);
    put_tags(&text, pool);
    stki_unlock(&pool->lock);
    return take(&text, out, err);
}

/* ---- the message ---- */

static void say_holders(char *to, size_t room, const stki_caching_pool *pool)
{
    const stki_pool_tag *top[3];
    int count = stki_pool_tags_top(pool, top, 3);
    size_t used = 0;
    cell size;

    to[0] = '\0';
    for (int i = 0; i < count && used < room; i++)
        used += (size_t)snprintf(to + used, room - used, "%s%s by %s",
                                 i ? ", " : "; held: ", size_text(size, top[i]->bytes),
                                 *top[i]->text ? top[i]->text : "(no tag)");
}

static const char *advice(const stk_device_memory_stats *stats, const stki_pool_request *request)
{
    if (stats->reserved_bytes - stats->active_bytes < request->block_bytes)
        return "";
    return "; enough is free, but in pieces or of other streams: release large tensors before small ones, or ask for "
           "fewer different sizes";
}

stk_status stki_pool_fail_memory(stki_caching_pool *pool, const stki_pool_request *request, const char *driver_said,
                                 stk_error *err)
{
    stk_device_memory_stats stats;
    cell asked, allocated, reserved, free_bytes, largest, split, waiting = "";
    char holders[280], waits[64] = "";
    int64_t waiting_bytes = 0;

    stki_lock(&pool->lock);
    pool->stats.out_of_memory++;
    stats = stats_of(pool);
    say_holders(holders, sizeof holders, pool);
    for (const stki_pool_segment *segment = pool->first; segment; segment = segment->next)
        for (const stki_pool_block *block = segment->first; block; block = block->after)
            waiting_bytes += block->state == STKI_POOL_WAITING ? block->bytes : 0;
    stki_unlock(&pool->lock);
    if (waiting_bytes > 0)
        snprintf(waits, sizeof waits, ", waiting for streams %s", size_text(waiting, waiting_bytes));
    return stki_fail(err, STK_E_MEMORY,
                     "%s: out of %s memory: asked %s%s; allocated %s, reserved %s, free in the cache %s (largest block "
                     "%s), %s of it beside blocks in use%s; the driver: %.120s%s%s",
                     pool->base.device->name, kind_name(pool), size_text(asked, request->asked_bytes),
                     request->class == STKI_POOL_EXACT ? " exactly" : "", size_text(allocated, stats.allocated_bytes),
                     size_text(reserved, stats.reserved_bytes),
                     size_text(free_bytes, stats.reserved_bytes - stats.active_bytes),
                     size_text(largest, stats.largest_free), size_text(split, stats.split_bytes), waits, driver_said,
                     holders, advice(&stats, request));
}
