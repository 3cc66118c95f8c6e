/* quant_ref.c: quantization of rows in plain C: the reference for the vectorized versions, and the implementation where
 * there are none. */
#include "quant_internal.h"
#include <math.h>
#include <string.h>

/* NaN is treated as 0. */
static inline float rounded(float x, float inverse)
{
    float y = x * inverse;

    return isnan(y) ? 0.0f : rintf(y);
}

static inline float clamped(float q, float low, float high)
{
    return q < low ? low : q > high ? high : q;
}

/* 2^31 - 1 is not representable in f32, so the upper limit is compared before the conversion. */
static inline int32_t to_i32(float q)
{
    return q >= 0x1p31f ? INT32_MAX : q < -0x1p31f ? INT32_MIN : (int32_t)q;
}

static inline int64_t next_channel(const stki_quant_lane *lane, int64_t channel)
{
    return lane->period == 0 ? channel : channel + 1 == lane->period ? 0 : channel + 1;
}

#define QUANTIZE(name, type, expression)                                                                             \
    static void quantize_##name(const stki_quant_lane *lane, void *dst, const void *src, int64_t n, int64_t channel) \
    {                                                                                                                \
        char *to = dst;                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                            \
            float x;                                                                                                 \
            memcpy(&x, (const char *)src + 4 * i, sizeof x);                                                         \
            float q = rounded(x, lane->inverse[channel]) + lane->zero_float[channel];                                \
            type whole = (type)(expression);                                                                         \
            memcpy(to + i * (int64_t)sizeof whole, &whole, sizeof whole);                                            \
            channel = next_channel(lane, channel);                                                                   \
        }                                                                                                            \
    }

QUANTIZE(i8, int8_t, clamped(q, -128, 127))
QUANTIZE(u8, uint8_t, clamped(q, 0, 255))
QUANTIZE(i32, int32_t, to_i32(q))

/* With one pair, the difference is rounded to f32 (which matters only for i32) and multiplied. With one pair per
 * channel, everything is computed in double and rounded once at the end. Both as in torch. */
#define DEQUANTIZE(name, type)                                                                                         \
    static void dequantize_##name(const stki_quant_lane *lane, void *dst, const void *src, int64_t n, int64_t channel) \
    {                                                                                                                  \
        const char *from = src;                                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            type q;                                                                                                    \
            memcpy(&q, from + i * (int64_t)sizeof q, sizeof q);                                                        \
            double difference = (double)q - lane->zero_double[channel];                                                \
            float x = lane->per_channel ? (float)(difference * lane->scale[channel])                                   \
                                        : (float)difference * lane->scale_float[channel];                              \
            memcpy((char *)dst + 4 * i, &x, sizeof x);                                                                 \
            channel = next_channel(lane, channel);                                                                     \
        }                                                                                                              \
    }

DEQUANTIZE(i8, int8_t)
DEQUANTIZE(u8, uint8_t)
DEQUANTIZE(i32, int32_t)

const stki_quant_kernels stki_quant_ref = {
    .quantize = {[STK_QINT8] = quantize_i8, [STK_QUINT8] = quantize_u8, [STK_QINT32] = quantize_i32},
    .dequantize = {[STK_QINT8] = dequantize_i8, [STK_QUINT8] = dequantize_u8, [STK_QINT32] = dequantize_i32},
};
