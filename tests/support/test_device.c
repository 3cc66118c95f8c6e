/* test_device.c: a device with a second memory space, so that code for devices can be tested without a GPU. Its
 * addresses are reserved but neither readable nor writable, so that any access other than through the device table
 * crashes at once. The bytes are in a shadow block elsewhere. */
#include "test_device.h"
#include "allocate.h"
#include "checked.h"
#include "convert.h"
#include "device_table.h"
#include "error.h"
#include "sync_device.h"
#include "thread.h"
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

struct block {
    struct block *next;
    char *address; /* the address that was returned */
    char *shadow;
    int64_t bytes, reserved;
};

static stki_mutex lock = {PTHREAD_MUTEX_INITIALIZER};
static struct block *blocks; /* guarded by lock */

static stk_status test_alloc(stk_device *device, int64_t bytes, void **out, stk_error *err)
{
    struct block *block = stki_zalloc(sizeof *block);
    void *address;

    if (!block || bytes < 0 || bytes > INT64_MAX / 4)
        goto no_memory;
    block->bytes = bytes;
    block->reserved = stki_round_up(bytes ? bytes : 1, 4096);
    block->shadow = stki_zalloc(bytes);
    if (!block->shadow)
        goto no_memory;
    address = mmap(NULL, (size_t)block->reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED)
        goto no_memory;
    block->address = address;
    stki_device_note(device, bytes, 1);
    stki_lock(&lock);
    block->next = blocks;
    blocks = block;
    stki_unlock(&lock);
    *out = address;
    return STK_OK;

no_memory:
    if (block)
        stki_free(block->shadow);
    stki_free(block);
    return stki_fail_memory(err, bytes, "the test device");
}

static void test_free(stk_device *device, void *address, int64_t bytes)
{
    struct block *found = NULL;

    if (!address)
        return;
    stki_lock(&lock);
    for (struct block **at = &blocks; *at; at = &(*at)->next) {
        if ((*at)->address == (char *)address) {
            found = *at;
            *at = found->next;
            break;
        }
    }
    stki_unlock(&lock);
    if (!found)
        return;
    stki_device_note(device, -bytes, -1);
    munmap(found->address, (size_t)found->reserved);
    stki_free(found->shadow);
    stki_free(found);
}

/* The shadow of `bytes` bytes at a device address, or NULL if they are not all in one block. */
static char *shadow_of(const void *address, int64_t bytes)
{
    char *shadow = NULL;

    stki_lock(&lock);
    for (struct block *block = blocks; block && !shadow; block = block->next) {
        uintptr_t offset = (uintptr_t)address - (uintptr_t)block->address;
        if ((uintptr_t)address >= (uintptr_t)block->address && stki_inside((int64_t)offset, bytes, block->bytes))
            shadow = block->shadow + offset;
    }
    stki_unlock(&lock);
    return shadow;
}

static stk_status no_such_memory(const void *address, int64_t bytes, stk_error *err)
{
    return stki_fail(err, STK_E_DEVICE, "test device: %p has not %" PRId64 " bytes here", address, bytes);
}

static stk_status test_copy(stk_device *device, void *dst, bool dst_on_device, const void *src, bool src_on_device,
                            int64_t bytes, stk_stream *stream, stk_error *err)
{
    void *to = dst;
    const void *from = src;

    (void)device, (void)stream;
    if (bytes == 0)
        return STK_OK;
    if (dst_on_device && !(to = shadow_of(dst, bytes)))
        return no_such_memory(dst, bytes, err);
    if (src_on_device && !(from = shadow_of(src, bytes)))
        return no_such_memory(src, bytes, err);
    memmove(to, from, (size_t)bytes);
    return STK_OK;
}

static stk_status test_fill(stk_device *device, void *dst, const void *pattern, int64_t pattern_bytes, int64_t count,
                            stk_stream *stream, stk_error *err)
{
    char *to = shadow_of(dst, pattern_bytes * count);

    (void)device, (void)stream;
    if (pattern_bytes * count == 0)
        return STK_OK;
    if (!to)
        return no_such_memory(dst, pattern_bytes * count, err);
    stki_fill_bytes(to, pattern, pattern_bytes, count);
    return STK_OK;
}

static stk_status test_alloc_pinned(stk_device *device, int64_t bytes, void **out, stk_error *err)
{
    (void)device;
    *out = stki_block_alloc(NULL, bytes, 64);
    return *out ? STK_OK : stki_fail_memory(err, bytes, "host memory of the test device");
}

static void test_free_pinned(stk_device *device, void *block, int64_t bytes)
{
    (void)device;
    stki_block_free(NULL, block, bytes, 64);
}

static stk_status test_convert(stk_device *device, const struct stki_convert *convert, void *dst, int64_t dst_stride,
                               const void *src, int64_t src_stride, int64_t count, stk_stream *stream, stk_error *err)
{
    (void)device, (void)stream;
    for (int64_t i = 0; i < count; i++) {
        const char *from = (const char *)src + i * src_stride;
        char *to = (char *)dst + i * dst_stride;
        const char *from_shadow = shadow_of(from, 1);
        char *to_shadow = shadow_of(to, 1);
        if (!from_shadow || !to_shadow)
            return no_such_memory(from_shadow ? to : from, 1, err);
        stki_convert_run(convert, to_shadow, from_shadow);
    }
    if (stki_convert_streams(convert))
        stki_store_fence();
    return STK_OK;
}

static const stki_device_ops test_ops = {
    .alloc = test_alloc,
    .free = test_free,
    .alloc_pinned = test_alloc_pinned,
    .free_pinned = test_free_pinned,
    .copy = test_copy,
    .fill = test_fill,
    .convert = test_convert,
    STKI_SYNC_DEVICE_OPS,
};

static stk_device test = {.ops = &test_ops, .kind = STK_DEVICE_TEST, .index = 0, .name = "test", .host_memory = false};
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void register_once(void)
{
    (void)stki_device_register(&test, NULL); /* fails only if 64 devices are already registered */
}

stk_device *stki_device_test(void)
{
    pthread_once(&once, register_once);
    return &test;
}
