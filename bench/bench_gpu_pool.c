/* bench_gpu_pool.c: the time to allocate and free memory for a tensor, from the caching pool and from the device.
 *
 *     bench_gpu_pool [DEVICE]          default: host
 *
 * Each line shows the time of one allocation and its release in ns, at the 10th percentile of short rounds (to exclude
 * the effect of other programs): from the warm cache, and from the device without the cache. "mixed" keeps 200 blocks
 * of random sizes up to the given one and replaces a random one of them, so blocks are split and merged. "recorded"
 * records a second, idle stream for each block, so an event is recorded and queried. When a GPU's driver frees memory,
 * it also waits for the device's work; on an idle device this has no effect.
 */
#include "caching_pool.h"
#include "clock.h"
#include "device_table.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB (INT64_C(1) << 10)
#define MIB (INT64_C(1) << 20)

enum { ROUNDS = 61, CACHED = 20000, DRIVER = 40, HELD = 200 };

typedef struct subject {
    stk_device *device;
    stki_pool *pool;
    stk_stream *stream;
    int64_t bytes;
    void *held[HELD];
    uint64_t random;
} subject;

static void must(stk_status status, const stk_error *err)
{
    if (status) {
        fprintf(stderr, "bench_gpu_pool: %s\n", err->message);
        exit(1);
    }
}

static void *get(const subject *s, int64_t bytes)
{
    void *block = NULL;
    stk_error err;

    must(s->pool->ops->alloc(s->pool, bytes, NULL, &block, &err), &err);
    return block;
}

static void cached(subject *s)
{
    s->pool->ops->free(s->pool, get(s, s->bytes), s->bytes);
}

static void recorded(subject *s)
{
    void *block = get(s, s->bytes);

    s->pool->ops->record_stream(s->pool, block, s->stream);
    s->pool->ops->free(s->pool, block, s->bytes);
}

static uint64_t draw(subject *s)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    return s->random ^= s->random << 17;
}

static void mixed(subject *s)
{
    int at = (int)(draw(s) % HELD);

    s->pool->ops->free(s->pool, s->held[at], 0);
    s->held[at] = get(s, 1 + (int64_t)(draw(s) % (uint64_t)s->bytes));
}

static void driver(subject *s)
{
    void *block = NULL;
    stk_error err;

    must(s->device->ops->alloc(s->device, s->bytes, &block, &err), &err);
    s->device->ops->free(s->device, block, s->bytes);
}

static int ascending(const void *a, const void *b)
{
    double x, y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static double measure(subject *s, void (*pass)(subject *s), int count)
{
    double ns[ROUNDS];

    for (int round = -1; round < ROUNDS; round++) {
        int64_t start = stki_now_ns();
        for (int i = 0; i < count; i++)
            pass(s);
        if (round >= 0)
            ns[round] = (double)(stki_now_ns() - start) / count;
    }
    qsort(ns, ROUNDS, sizeof ns[0], ascending);
    return ns[ROUNDS / 10];
}

static double measure_mixed(subject *s)
{
    double ns;

    s->random = 88172645463325252u;
    for (int i = 0; i < HELD; i++)
        s->held[i] = get(s, 1 + (int64_t)(draw(s) % (uint64_t)s->bytes));
    ns = measure(s, mixed, CACHED);
    for (int i = 0; i < HELD; i++)
        s->pool->ops->free(s->pool, s->held[i], 0);
    return ns;
}

int main(int argc, char **argv)
{
    static const int64_t sizes[] = {4 * KIB, 64 * KIB, MIB, 4 * MIB, 16 * MIB};
    subject s = {0};
    stk_error err;

    must(stk_device_find(argc > 1 ? argv[1] : "host", &s.device, &err), &err);
    must(stk_stream_create(s.device, &s.stream, &err), &err);
    must(stki_caching_pool_create(s.device, STK_MEMORY_DEVICE, &s.pool, &err), &err);
    printf("%s: ns per allocation and release\n%10s %10s %10s %10s %12s %8s\n", s.device->name, "bytes", "cached",
           "mixed", "recorded", "the device", "times");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double own, mix, two, direct;
        s.bytes = sizes[i];
        own = measure(&s, cached, CACHED);
        mix = measure_mixed(&s);
        two = measure(&s, recorded, CACHED / 20);
        direct = measure(&s, driver, DRIVER);
        printf("%10" PRId64 " %10.0f %10.0f %10.0f %12.0f %8.0f\n", s.bytes, own, mix, two, direct, direct / own);
    }
    stki_caching_pool_destroy(s.pool);
    stk_stream_destroy(s.stream);
    return 0;
}
