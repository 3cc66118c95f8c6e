/* loadbench_copy.c: plain and non-temporal copies. Bytes before the first aligned vector of the target and after the
 * last whole one are copied with plain stores. */
#include "loadbench_copy.h"
#include <string.h>

void lb_copy_plain(void *restrict to, const void *restrict from, int64_t bytes)
{
    memcpy(to, from, (size_t)bytes);
}

void lb_write_plain(void *restrict to, const void *restrict from, int64_t bytes)
{
    (void)from;
    memset(to, 3, (size_t)bytes);
}

void lb_prefetch(const void *row, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += 64)
        __builtin_prefetch((const char *)row + at, 0, 3);
}

#if defined(__x86_64__)
#include <immintrin.h>

static __attribute__((target("avx2"))) void stream_wide(void *restrict to, const void *restrict from, int64_t bytes)
{
    char *target = to;
    const char *source = from;
    int64_t head = (int64_t)(-(uintptr_t)to & 31);

    if (head > bytes)
        head = bytes;
    memcpy(target, source, (size_t)head);
    for (; head + 32 <= bytes; head += 32)
        _mm256_stream_si256((__m256i *)(void *)(target + head),
                            _mm256_loadu_si256((const __m256i *)(const void *)(source + head)));
    memcpy(target + head, source + head, (size_t)(bytes - head));
}

static void stream_narrow(void *restrict to, const void *restrict from, int64_t bytes)
{
    char *target = to;
    const char *source = from;
    int64_t head = (int64_t)(-(uintptr_t)to & 15);

    if (head > bytes)
        head = bytes;
    memcpy(target, source, (size_t)head);
    for (; head + 16 <= bytes; head += 16)
        _mm_stream_si128((__m128i *)(void *)(target + head),
                         _mm_loadu_si128((const __m128i *)(const void *)(source + head)));
    memcpy(target + head, source + head, (size_t)(bytes - head));
}

static __attribute__((target("avx2"))) void fill_wide(void *restrict to, const void *restrict from, int64_t bytes)
{
    const __m256i value = _mm256_set1_epi8(3);
    char *target = to;
    int64_t head = (int64_t)(-(uintptr_t)to & 31);

    (void)from;
    if (head > bytes)
        head = bytes;
    memset(target, 3, (size_t)head);
    for (; head + 32 <= bytes; head += 32)
        _mm256_stream_si256((__m256i *)(void *)(target + head), value);
    memset(target + head, 3, (size_t)(bytes - head));
}

static void fill_narrow(void *restrict to, const void *restrict from, int64_t bytes)
{
    const __m128i value = _mm_set1_epi8(3);
    char *target = to;
    int64_t head = (int64_t)(-(uintptr_t)to & 15);

    (void)from;
    if (head > bytes)
        head = bytes;
    memset(target, 3, (size_t)head);
    for (; head + 16 <= bytes; head += 16)
        _mm_stream_si128((__m128i *)(void *)(target + head), value);
    memset(target + head, 3, (size_t)(bytes - head));
}

lb_copy lb_write_streaming(void)
{
    return __builtin_cpu_supports("avx2") ? fill_wide : fill_narrow;
}

lb_copy lb_copy_streaming(void)
{
    return __builtin_cpu_supports("avx2") ? stream_wide : stream_narrow;
}

void lb_copy_fence(void)
{
    _mm_sfence();
}
#else
lb_copy lb_copy_streaming(void)
{
    return NULL;
}

lb_copy lb_write_streaming(void)
{
    return NULL;
}

void lb_copy_fence(void)
{
}
#endif
