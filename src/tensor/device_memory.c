/* device_memory.c: allocates device and pinned memory, from the device's pool if it has one, and implements the public
 * functions about that memory. */
#include "device_memory.h"
#include "error.h"
#include "record.h"
#include "stream.h"
#include "text_build.h"
#include <inttypes.h>
#include <string.h>

static stki_pool *pool_of(const stk_device *device, stk_device_memory kind)
{
    return kind == STK_MEMORY_PINNED ? device->pinned_pool : device->pool;
}

stk_status stki_device_alloc(stk_device *device, stk_device_memory kind, int64_t bytes, void **out, stk_error *err)
{
    stki_pool *pool = pool_of(device, kind);

    if (pool)
        return pool->ops->alloc(pool, bytes, stk_stream_current(device), out, err);
    return (kind == STK_MEMORY_PINNED ? device->ops->alloc_pinned : device->ops->alloc)(device, bytes, out, err);
}

stk_status stki_device_alloc_exact(stk_device *device, stk_device_memory kind, int64_t bytes, const char *what,
                                   void **out, stk_error *err)
{
    stki_pool *pool = pool_of(device, kind);
    bool untagged = !*stki_record_tag();
    stk_status status;

    if (!pool)
        return (kind == STK_MEMORY_PINNED ? device->ops->alloc_pinned : device->ops->alloc)(device, bytes, out, err);
    if (untagged)
        stk_tag_push(what);
    status = pool->ops->alloc_exact(pool, bytes, out, err);
    if (untagged)
        stk_tag_pop();
    return status;
}

void stki_device_free(stk_device *device, stk_device_memory kind, void *block, int64_t bytes)
{
    stki_pool *pool = pool_of(device, kind);

    if (pool)
        pool->ops->free(pool, block, bytes);
    else
        (kind == STK_MEMORY_PINNED ? device->ops->free_pinned : device->ops->free)(device, block, bytes);
}

void stki_device_record_stream(stk_device *device, stk_device_memory kind, void *block, stk_stream *stream)
{
    stki_pool *pool = pool_of(device, kind);

    if (pool && stream)
        pool->ops->record_stream(pool, block, stream);
}

stk_status stk_device_get_memory_stats(stk_device *device, stk_device_memory kind, stk_device_memory_stats *out,
                                       stk_error *err)
{
    stk_device_memory_stats stats = {0};
    uint32_t size = out->struct_size;
    stki_memory_stats counted;
    stki_pool *pool;

    device = device ? device : stk_device_cpu();
    if (size < sizeof size)
        return stki_fail(err, STK_E_BAD_ARG,
                         "memory stats: struct_size: found %" PRIu32 ", expected sizeof(stk_device_memory_stats)",
                         size);
    pool = pool_of(device, kind);
    if (pool) {
        pool->ops->stats(pool, &stats);
    } else if (kind == STK_MEMORY_DEVICE) {
        stki_counters_read(&device->memory, &counted);
        stats.allocated_bytes = stats.active_bytes = stats.reserved_bytes = counted.bytes;
        stats.allocated_peak = stats.active_peak = stats.reserved_peak = counted.peak_bytes;
        stats.blocks = stats.segments = counted.blocks;
        stats.allocations = stats.driver_allocations = counted.total_allocations;
    }
    memcpy(out, &stats, size < sizeof stats ? size : sizeof stats);
    out->struct_size = size;
    return STK_OK;
}

void stk_device_reset_memory_peaks(stk_device *device)
{
    device = device ? device : stk_device_cpu();
    if (device->pool)
        device->pool->ops->reset_peaks(device->pool);
    if (device->pinned_pool)
        device->pinned_pool->ops->reset_peaks(device->pinned_pool);
}

stk_status stk_device_empty_cache(stk_device *device, stk_error *err)
{
    stk_status status = STK_OK;

    device = device ? device : stk_device_cpu();
    if (device->pool)
        status = device->pool->ops->empty(device->pool, err);
    if (status == STK_OK && device->pinned_pool)
        status = device->pinned_pool->ops->empty(device->pinned_pool, err);
    return status;
}

static stk_status no_pool(const stk_device *device, stk_error *err)
{
    return stki_fail(err, STK_E_UNSUPPORTED, "%s has no memory cache", device->name);
}

stk_status stk_device_memory_snapshot(stk_device *device, char **out, stk_error *err)
{
    static const struct {
        stk_device_memory kind;
        const char *name;
    } kinds[] = {{STK_MEMORY_DEVICE, "device_memory"}, {STK_MEMORY_PINNED, "pinned_memory"}};
    stki_text_build text = {0};

    device = device ? device : stk_device_cpu();
    if (!device->pool && !device->pinned_pool)
        return no_pool(device, err);
    stki_put(&text, "{\"schema\": 1");
    for (int i = 0; i < 2; i++) {
        stki_pool *pool = pool_of(device, kinds[i].kind);
        char *part = NULL;
        stk_status status = pool ? pool->ops->snapshot(pool, &part, err) : STK_OK;
        if (status != STK_OK) {
            stki_free(text.text);
            return status;
        }
        stki_putf(&text, ",\n\"%s\": %s", kinds[i].name, part ? part : "null");
        stki_free(part);
    }
    stki_put(&text, "}\n");
    return stki_text_finish(&text, "a report", out, err);
}

stk_status stk_device_memory_summary(stk_device *device, char **out, stk_error *err)
{
    stki_text_build text = {0};

    device = device ? device : stk_device_cpu();
    if (!device->pool && !device->pinned_pool)
        return no_pool(device, err);
    for (int i = 0; i < 2; i++) {
        stki_pool *pool = pool_of(device, i ? STK_MEMORY_PINNED : STK_MEMORY_DEVICE);
        char *part = NULL;
        stk_status status = pool ? pool->ops->summary(pool, &part, err) : STK_OK;
        if (status != STK_OK) {
            stki_free(text.text);
            return status;
        }
        stki_putf(&text, "%s%s", text.length ? "\n" : "", part ? part : "");
        stki_free(part);
    }
    return stki_text_finish(&text, "a report", out, err);
}
