/* convert_ref.c: the reference implementation of a conversion with arithmetic, element by element
 * (docs/internals/convert.md). It has no fast paths and merges no axes; all kernels must produce bit-identical
 * results. */
#include "convert_internal.h"
#include "tensor_internal.h"
#include <math.h>
#include <string.h>

static void fetch(void *to, const uint8_t *src, int size, bool swapped)
{
    uint8_t *bytes = to;

    for (int i = 0; i < size; i++)
        bytes[i] = src[swapped ? size - 1 - i : i];
}

float stki_convert_load(enum stki_convert_src kind, const uint8_t *src, bool swapped)
{
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        float f32;
        double f64;
    } x;

    /* C's conversion to float rounds only once, to nearest even. */
    switch (kind) {
    case STKI_SRC_U8:
        return (float)*src;
    case STKI_SRC_I8:
        fetch(&x, src, 1, false);
        return (float)x.i8;
    case STKI_SRC_U16:
        fetch(&x, src, 2, swapped);
        return (float)x.u16;
    case STKI_SRC_I16:
        fetch(&x, src, 2, swapped);
        return (float)x.i16;
    case STKI_SRC_I32:
        fetch(&x, src, 4, swapped);
        return (float)x.i32;
    case STKI_SRC_I64:
        fetch(&x, src, 8, swapped);
        return (float)x.i64;
    case STKI_SRC_F16:
        fetch(&x, src, 2, swapped);
        return stki_f16_to_f32(x.u16);
    case STKI_SRC_BF16:
        fetch(&x, src, 2, swapped);
        return stki_bf16_to_f32(x.u16);
    case STKI_SRC_F32:
        fetch(&x, src, 4, swapped);
        return x.f32;
    case STKI_SRC_F64:
        fetch(&x, src, 8, swapped);
        return (float)x.f64;
    case STKI_SRC_KINDS:
        break;
    }
    return 0.0f;
}

/* clamp(rint(y) + zero_point, low, high), all in f32; NaN is treated as 0 before the zero point is added. */
static float level(const stki_lane *lane, float y)
{
    float q = (isnan(y) ? 0.0f : rintf(y)) + lane->zero_point;

    return q < lane->low ? lane->low : q > lane->high ? lane->high : q;
}

void stki_convert_store(enum stki_convert_dst kind, const stki_lane *lane, uint8_t *dst, float y)
{
    switch (kind) {
    case STKI_DST_U8:
        *dst = (uint8_t)level(lane, y);
        break;
    case STKI_DST_I8: {
        int8_t q = (int8_t)level(lane, y);
        memcpy(dst, &q, sizeof q);
        break;
    }
    case STKI_DST_I32: {
        float q = level(lane, y);
        int32_t whole = q >= 0x1p31f ? INT32_MAX : (int32_t)q; /* `low` is at least -2^31 */
        memcpy(dst, &whole, sizeof whole);
        break;
    }
    case STKI_DST_F16: {
        uint16_t half = stki_f32_to_f16(y);
        memcpy(dst, &half, sizeof half);
        break;
    }
    case STKI_DST_BF16: {
        uint16_t half = stki_f32_to_bf16(y);
        memcpy(dst, &half, sizeof half);
        break;
    }
    case STKI_DST_F32:
        memcpy(dst, &y, sizeof y);
        break;
    case STKI_DST_KINDS:
        break;
    }
}

void stki_convert_ref(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                      int64_t channel)
{
    const stki_lane *lane = &convert->lane;

    for (int64_t i = 0; i < axes->n; i++) {
        int64_t c = channel + i * axes->channel_step;
        float x = stki_convert_load(convert->src_kind, src + i * axes->src_stride, convert->src_swapped);
        stki_convert_store(convert->dst_kind, lane, dst + i * axes->dst_stride, fmaf(x, lane->a[c], lane->b[c]));
    }
}
