/* convert_run.c: running a compiled conversion: a whole sample, a part of one, or a gather list of many.
 *
 * The definition asks for round to nearest even and kept subnormals. A program may have switched its threads to
 * something else (a library built with -ffast-math switches subnormals off), so arithmetic runs under the default
 * floating-point control and puts the caller's back.
 */
#include "convert_internal.h"
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
enum { DEFAULT_CONTROL = 0x1f80, CONTROL_BITS = 0xffc0 }; /* the rest are flags that say what happened */

static unsigned control_enter(void)
{
    unsigned control = _mm_getcsr();

    if ((control & CONTROL_BITS) != DEFAULT_CONTROL)
        _mm_setcsr(DEFAULT_CONTROL);
    return control;
}

static void control_leave(unsigned control)
{
    if ((control & CONTROL_BITS) != DEFAULT_CONTROL)
        _mm_setcsr(control);
}

void stki_store_fence(void)
{
    _mm_sfence();
}

static inline void fetch_line(const uint8_t *address)
{
    _mm_prefetch((const char *)address, _MM_HINT_T0);
}
#else
static uint64_t control_enter(void)
{
    uint64_t control;

    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    if (control != 0)
        __asm__ volatile("msr fpcr, %0" : : "r"(UINT64_C(0)));
    return control;
}

static void control_leave(uint64_t control)
{
    if (control != 0)
        __asm__ volatile("msr fpcr, %0" : : "r"(control));
}

void stki_store_fence(void)
{
    __asm__ volatile("dmb ishst" : : : "memory");
}

static inline void fetch_line(const uint8_t *address)
{
    __builtin_prefetch(address, 0, 3);
}
#endif

enum { FETCH_AHEAD = 3, FETCH_BYTES = 4096, LINE = 64 };

void stki_convert_run(const stki_convert *convert, void *dst, const void *src)
{
    if (convert->empty)
        return;
    __typeof__(control_enter()) control = control_enter();
    stki_convert_walk(convert, convert->axes, (uint8_t *)dst + convert->dst_offset,
                      (const uint8_t *)src + convert->src_offset, 0);
    control_leave(control);
}

int64_t stki_convert_units(const stki_convert *convert)
{
    return convert->units;
}

void stki_convert_run_part(const stki_convert *convert, void *dst, const void *src, int64_t first, int64_t last)
{
    stki_axis axes[STK_MAX_DIMS + 2];

    if (convert->empty || first >= last)
        return;
    memcpy(axes, convert->axes, (size_t)convert->axis_count * sizeof axes[0]);
    stki_axis *cut = &axes[convert->cut_axis];
    int64_t low = first * convert->cut_step, high = last * convert->cut_step;
    if (high > cut->n)
        high = cut->n;
    cut->n = high - low;
    int64_t channel = low * cut->channel_step;
    if (cut->channel_step && convert->lane.period && convert->cut_axis == convert->outer_count)
        channel %= convert->lane.period;
    __typeof__(control_enter()) control = control_enter();
    stki_convert_walk(convert, axes, (uint8_t *)dst + convert->dst_offset + low * cut->dst_stride,
                      (const uint8_t *)src + convert->src_offset + low * cut->src_stride, channel);
    control_leave(control);
}

static void fetch_sample(const stki_convert *convert, const void *src)
{
    const uint8_t *from = (const uint8_t *)src + convert->prefetch_offset;
    int64_t bytes = convert->prefetch_bytes < FETCH_BYTES ? convert->prefetch_bytes : FETCH_BYTES;

    for (int64_t i = 0; i < bytes; i += LINE)
        fetch_line(from + i);
}

void stki_convert_run_many(const stki_convert *convert, void *dst, int64_t dst_stride, const void *const *src,
                           int64_t count)
{
    uint8_t *to = dst;

    if (convert->empty)
        return;
    __typeof__(control_enter()) control = control_enter();
    for (int64_t i = 0; i < count; i++, to += dst_stride) {
        if (i + FETCH_AHEAD < count)
            fetch_sample(convert, src[i + FETCH_AHEAD]);
        stki_convert_walk(convert, convert->axes, to + convert->dst_offset,
                          (const uint8_t *)src[i] + convert->src_offset, 0);
    }
    control_leave(control);
}

bool stki_convert_streams(const stki_convert *convert)
{
    return convert->lane.streaming;
}

int64_t stki_convert_bytes_read(const stki_convert *convert)
{
    return convert->bytes_read;
}

int64_t stki_convert_bytes_written(const stki_convert *convert)
{
    return convert->bytes_written;
}

const char *stki_convert_name(const stki_convert *convert)
{
    return convert->name;
}
