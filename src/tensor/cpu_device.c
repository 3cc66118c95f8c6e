/* cpu_device.c: host memory as a device. All work is done immediately in the calling thread, so its streams and events
 * need no state (sync_device.h). */
#include "allocate.h"
#include "convert.h"
#include "device_table.h"
#include "error.h"
#include "sync_device.h"
#include <string.h>

/* Large blocks are aligned to huge pages and use them, which makes the first access several times faster. */
enum { CPU_ALIGNMENT = 64, HUGE_PAGE = 2 << 20, HUGE_FROM = 4 << 20 };

static int64_t alignment_for(int64_t bytes)
{
    return bytes >= HUGE_FROM ? HUGE_PAGE : CPU_ALIGNMENT;
}

static stk_status cpu_alloc(stk_device *device, int64_t bytes, void **out, stk_error *err)
{
    void *block = stki_block_alloc(NULL, bytes, alignment_for(bytes));

    (void)device;
    if (!block)
        return stki_fail_memory(err, bytes, "a tensor");
    if (bytes >= HUGE_FROM)
        stki_block_prefer_huge(block, bytes);
    *out = block;
    return STK_OK;
}

static void cpu_free(stk_device *device, void *block, int64_t bytes)
{
    (void)device;
    stki_block_free(NULL, block, bytes, alignment_for(bytes));
}

static stk_status cpu_copy(stk_device *device, void *dst, bool dst_on_device, const void *src, bool src_on_device,
                           int64_t bytes, stk_stream *stream, stk_error *err)
{
    (void)device, (void)dst_on_device, (void)src_on_device, (void)stream, (void)err;
    if (bytes > 0)
        memmove(dst, src, (size_t)bytes);
    return STK_OK;
}

static stk_status cpu_fill(stk_device *device, void *dst, const void *pattern, int64_t pattern_bytes, int64_t count,
                           stk_stream *stream, stk_error *err)
{
    (void)device, (void)stream, (void)err;
    stki_fill_bytes(dst, pattern, pattern_bytes, count);
    return STK_OK;
}

static stk_status cpu_convert(stk_device *device, const struct stki_convert *convert, void *dst, int64_t dst_stride,
                              const void *src, int64_t src_stride, int64_t count, stk_stream *stream, stk_error *err)
{
    (void)device, (void)stream, (void)err;
    for (int64_t i = 0; i < count; i++)
        stki_convert_run(convert, (char *)dst + i * dst_stride, (const char *)src + i * src_stride);
    if (stki_convert_streams(convert))
        stki_store_fence();
    return STK_OK;
}

static const stki_device_ops cpu_ops = {
    .alloc = cpu_alloc,
    .free = cpu_free,
    .alloc_pinned = cpu_alloc,
    .free_pinned = cpu_free,
    .copy = cpu_copy,
    .fill = cpu_fill,
    .convert = cpu_convert,
    STKI_SYNC_DEVICE_OPS,
};

static stk_device cpu = {.ops = &cpu_ops, .kind = STK_DEVICE_CPU, .index = 0, .name = "cpu", .host_memory = true};

stk_device *stk_device_cpu(void)
{
    return &cpu;
}
