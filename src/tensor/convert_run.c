/* convert_run.c: running a compiled conversion: a whole sample, a part of one, or a gather list of many. The definition
 * asks for round to nearest even and kept subnormals, so all of it runs under the default floating-point control.
 */
#include "convert_internal.h"
#include "float_control.h"
#include <string.h>

void stki_store_fence(void)
{
#if defined(__x86_64__)
    _mm_sfence();
#else
    __asm__ volatile("dmb ishst" : : : "memory");
#endif
}

enum { FETCH_AHEAD = 3, FETCH_BYTES = 4096, LINE = 64 };

void stki_convert_run(const stki_convert *convert, void *dst, const void *src)
{
    if (convert->empty)
        return;
    stki_float_control control = stki_float_enter();
    stki_convert_walk(convert, convert->axes, (uint8_t *)dst + convert->dst_offset,
                      (const uint8_t *)src + convert->src_offset, 0);
    stki_float_leave(control);
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
    stki_float_control control = stki_float_enter();
    stki_convert_walk(convert, axes, (uint8_t *)dst + convert->dst_offset + low * cut->dst_stride,
                      (const uint8_t *)src + convert->src_offset + low * cut->src_stride, channel);
    stki_float_leave(control);
}

static void fetch_sample(const stki_convert *convert, const void *src)
{
    const uint8_t *from = (const uint8_t *)src + convert->prefetch_offset;
    int64_t bytes = convert->prefetch_bytes < FETCH_BYTES ? convert->prefetch_bytes : FETCH_BYTES;

    for (int64_t i = 0; i < bytes; i += LINE)
        __builtin_prefetch(from + i, 0, 3);
}

void stki_convert_run_many(const stki_convert *convert, void *dst, int64_t dst_stride, const void *const *src,
                           int64_t count)
{
    uint8_t *to = dst;

    if (convert->empty)
        return;
    stki_float_control control = stki_float_enter();
    for (int64_t i = 0; i < count; i++, to += dst_stride) {
        if (i + FETCH_AHEAD < count)
            fetch_sample(convert, src[i + FETCH_AHEAD]);
        stki_convert_walk(convert, convert->axes, to + convert->dst_offset,
                          (const uint8_t *)src[i] + convert->src_offset, 0);
    }
    stki_float_leave(control);
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
