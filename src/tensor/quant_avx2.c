/* quant_avx2.c: the rows of quantising for AVX2. The unit of work is half a cache line of the destination. What is left
 * before the first boundary and after the last one goes through a small buffer and the same code. */
#include "quant_internal.h"
#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { WIDTH = 8, UNIT = 32 };

/* Where in the arrays of pairs the next vector begins. */
struct phase {
    int64_t at, advance, period;
};

INLINE struct phase phase_at(const stki_quant_lane *lane, int64_t channel)
{
    return (struct phase){.at = channel, .advance = lane->period ? WIDTH % lane->period : 0, .period = lane->period};
}

INLINE void step(struct phase *phase)
{
    phase->at += phase->advance;
    if (phase->at >= phase->period)
        phase->at -= phase->period;
}

/* The channel `elements` after `channel`. */
INLINE int64_t channel_after(const stki_quant_lane *lane, int64_t channel, int64_t elements)
{
    return lane->period ? (channel + elements) % lane->period : channel;
}

/* ---- to integers ------------------------------------------------------------------------------------------------ */

struct quantizer {
    __m256 inverse, zero, high;
    struct phase phase;
};

/* rint(x * inverse) + zero; NaN counts as 0 before the zero point is added. */
INLINE __m256 level(__m256 x, const struct quantizer *q)
{
    __m256 y = _mm256_mul_ps(x, q->inverse);

    y = _mm256_round_ps(_mm256_and_ps(y, _mm256_cmp_ps(y, y, _CMP_ORD_Q)),
                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm256_add_ps(y, q->zero);
}

/* Below -2^31 the conversion gives that, and packing saturates. */
INLINE __m256i whole(__m256 y, const struct quantizer *q)
{
    return _mm256_cvtps_epi32(_mm256_min_ps(y, q->high));
}

INLINE __m256i whole_i32(__m256 y)
{
    __m256i above = _mm256_castps_si256(_mm256_cmp_ps(y, _mm256_set1_ps(0x1p31f), _CMP_GE_OQ));

    return _mm256_blendv_epi8(_mm256_cvtps_epi32(y), _mm256_set1_epi32(INT32_MAX), above);
}

/* Elements [first, first + UNIT / size) as half a line. */
INLINE __m256i quantized_unit(stk_qdtype to, bool pattern, const stki_quant_lane *lane, struct quantizer *q,
                              const char *src, int64_t first)
{
    const int groups = to == STK_QINT32 ? 1 : 4;
    __m256i y[4];

    for (int k = 0; k < groups; k++) {
        if (pattern) {
            q->inverse = _mm256_loadu_ps(lane->inverse + q->phase.at);
            q->zero = _mm256_loadu_ps(lane->zero_float + q->phase.at);
            step(&q->phase);
        }
        __m256 level_k = level(_mm256_loadu_ps((const float *)(const void *)(src + 4 * (first + k * WIDTH))), q);
        y[k] = to == STK_QINT32 ? whole_i32(level_k) : whole(level_k, q);
    }
    if (to == STK_QINT32)
        return y[0];
    __m256i low = _mm256_packs_epi32(y[0], y[1]), high = _mm256_packs_epi32(y[2], y[3]);
    __m256i bytes = to == STK_QUINT8 ? _mm256_packus_epi16(low, high) : _mm256_packs_epi16(low, high);
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

INLINE struct quantizer quantizer_at(stk_qdtype to, bool pattern, const stki_quant_lane *lane, int64_t channel)
{
    struct quantizer q = {.high = _mm256_set1_ps(to == STK_QUINT8 ? 255 : 127), .phase = phase_at(lane, channel)};

    if (!pattern) {
        q.inverse = _mm256_set1_ps(lane->inverse[channel]);
        q.zero = _mm256_set1_ps(lane->zero_float[channel]);
    }
    return q;
}

/* `n` elements, fewer than a unit, by way of a buffer. */
INLINE void quantize_rest(stk_qdtype to, bool pattern, const stki_quant_lane *lane, char *dst, const char *src,
                          int64_t n, int64_t channel)
{
    struct quantizer q = quantizer_at(to, pattern, lane, channel);
    char in[4 * UNIT] = {0}, out[UNIT];

    memcpy(in, src, (size_t)(4 * n));
    _mm256_storeu_si256((__m256i *)(void *)out, quantized_unit(to, pattern, lane, &q, in, 0));
    memcpy(dst, out, (size_t)n * (to == STK_QINT32 ? 4 : 1));
}

INLINE void quantize(stk_qdtype to, bool pattern, const stki_quant_lane *lane, char *dst, const char *src, int64_t n,
                     int64_t channel)
{
    const int size = to == STK_QINT32 ? 4 : 1;
    const int64_t per_unit = UNIT / size, behind = (int64_t)((uintptr_t)dst % UNIT);
    const bool aligned = behind % size == 0;
    int64_t i = 0;

    if (aligned && behind) {
        i = (UNIT - behind) / size;
        i = i > n ? n : i;
        quantize_rest(to, pattern, lane, dst, src, i, channel);
    }
    struct quantizer q = quantizer_at(to, pattern, lane, channel_after(lane, channel, i));
    if (lane->streaming && aligned)
        for (; i + per_unit <= n; i += per_unit)
            _mm256_stream_si256((__m256i *)(void *)(dst + i * size), quantized_unit(to, pattern, lane, &q, src, i));
    else
        for (; i + per_unit <= n; i += per_unit)
            _mm256_storeu_si256((__m256i *)(void *)(dst + i * size), quantized_unit(to, pattern, lane, &q, src, i));
    if (i < n)
        quantize_rest(to, pattern, lane, dst + i * size, src + 4 * i, n - i, channel_after(lane, channel, i));
}

/* ---- and back --------------------------------------------------------------------------------------------------- */

enum product {
    IN_FLOAT, /* one pair, or f32 scales */
    CHANNELS, /* in double, by the definition */
    PROVEN    /* in f32 with a scale of two parts */
};

struct dequantizer {
    __m256 scale_float, scale_rest, zero_float;
    __m256d scale[2], zero[2]; /* lanes 0 to 3, and 4 to 7 */
    struct phase phase;
};

INLINE __m256i load_integers(stk_qdtype from, const char *src, int64_t first)
{
    if (from == STK_QINT32)
        return _mm256_loadu_si256((const __m256i *)(const void *)(src + 4 * first));
    __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(src + first));
    return from == STK_QINT8 ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
}

/* The differences of 8-bit numbers are exact in f32, those of i32 are not. */
INLINE __m256 dequantized_unit(stk_qdtype from, enum product product, bool pattern, const stki_quant_lane *lane,
                               struct dequantizer *d, const char *src, int64_t first)
{
    __m256i q = load_integers(from, src, first);

    if (from != STK_QINT32 && product != CHANNELS) {
        if (pattern) {
            d->scale_float = _mm256_loadu_ps(lane->scale_float + d->phase.at);
            d->zero_float = _mm256_loadu_ps(lane->zero_float + d->phase.at);
            if (product == PROVEN)
                d->scale_rest = _mm256_loadu_ps(lane->scale_rest + d->phase.at);
            step(&d->phase);
        }
        __m256 difference = _mm256_sub_ps(_mm256_cvtepi32_ps(q), d->zero_float);
        if (product == IN_FLOAT)
            return _mm256_mul_ps(difference, d->scale_float);
        return _mm256_fmadd_ps(difference, d->scale_float, _mm256_mul_ps(difference, d->scale_rest));
    }
    if (pattern) {
        for (int k = 0; k < 2; k++) {
            d->scale[k] = _mm256_loadu_pd(lane->scale + d->phase.at + 4 * k);
            d->zero[k] = _mm256_loadu_pd(lane->zero_double + d->phase.at + 4 * k);
        }
        step(&d->phase);
    }
    __m256d low = _mm256_sub_pd(_mm256_cvtepi32_pd(_mm256_castsi256_si128(q)), d->zero[0]);
    __m256d high = _mm256_sub_pd(_mm256_cvtepi32_pd(_mm256_extracti128_si256(q, 1)), d->zero[1]);
    if (product == IN_FLOAT)
        return _mm256_mul_ps(_mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low)), d->scale_float);
    return _mm256_set_m128(_mm256_cvtpd_ps(_mm256_mul_pd(high, d->scale[1])),
                           _mm256_cvtpd_ps(_mm256_mul_pd(low, d->scale[0])));
}

INLINE struct dequantizer dequantizer_at(bool pattern, const stki_quant_lane *lane, int64_t channel)
{
    struct dequantizer d = {.phase = phase_at(lane, channel)};

    if (!pattern) {
        d.scale_float = _mm256_set1_ps(lane->scale_float[channel]);
        d.scale_rest = _mm256_set1_ps(lane->scale_rest[channel]);
        d.zero_float = _mm256_set1_ps(lane->zero_float[channel]);
        d.scale[0] = d.scale[1] = _mm256_set1_pd(lane->scale[channel]);
        d.zero[0] = d.zero[1] = _mm256_set1_pd(lane->zero_double[channel]);
    }
    return d;
}

INLINE void dequantize_rest(stk_qdtype from, enum product product, bool pattern, const stki_quant_lane *lane, char *dst,
                            const char *src, int64_t n, int64_t channel)
{
    struct dequantizer d = dequantizer_at(pattern, lane, channel);
    char in[4 * WIDTH] = {0};
    float out[WIDTH];

    memcpy(in, src, (size_t)n * (from == STK_QINT32 ? 4 : 1));
    _mm256_storeu_ps(out, dequantized_unit(from, product, pattern, lane, &d, in, 0));
    memcpy(dst, out, (size_t)(4 * n));
}

INLINE void dequantize(stk_qdtype from, enum product product, bool pattern, const stki_quant_lane *lane, char *dst,
                       const char *src, int64_t n, int64_t channel)
{
    const int64_t behind = (int64_t)((uintptr_t)dst % UNIT), size = from == STK_QINT32 ? 4 : 1;
    const bool aligned = behind % 4 == 0;
    int64_t i = 0;

    if (aligned && behind) {
        i = (UNIT - behind) / 4;
        i = i > n ? n : i;
        dequantize_rest(from, product, pattern, lane, dst, src, i, channel);
    }
    struct dequantizer d = dequantizer_at(pattern, lane, channel_after(lane, channel, i));
    if (lane->streaming && aligned)
        for (; i + WIDTH <= n; i += WIDTH)
            _mm256_stream_ps((float *)(void *)(dst + 4 * i),
                             dequantized_unit(from, product, pattern, lane, &d, src, i));
    else
        for (; i + WIDTH <= n; i += WIDTH)
            _mm256_storeu_ps((float *)(void *)(dst + 4 * i),
                             dequantized_unit(from, product, pattern, lane, &d, src, i));
    if (i < n)
        dequantize_rest(from, product, pattern, lane, dst + 4 * i, src + size * i, n - i,
                        channel_after(lane, channel, i));
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

#define ROWS(name, qdtype)                                                                                             \
    static void quantize_##name(const stki_quant_lane *lane, void *dst, const void *src, int64_t n, int64_t channel)   \
    {                                                                                                                  \
        if (lane->period)                                                                                              \
            quantize(qdtype, true, lane, dst, src, n, channel);                                                        \
        else                                                                                                           \
            quantize(qdtype, false, lane, dst, src, n, channel);                                                       \
    }                                                                                                                  \
    static void dequantize_##name(const stki_quant_lane *lane, void *dst, const void *src, int64_t n, int64_t channel) \
    {                                                                                                                  \
        const bool in_float = lane->exact || !lane->per_channel;                                                       \
        if (lane->period && in_float)                                                                                  \
            dequantize(qdtype, IN_FLOAT, true, lane, dst, src, n, channel);                                            \
        else if (in_float)                                                                                             \
            dequantize(qdtype, IN_FLOAT, false, lane, dst, src, n, channel);                                           \
        else if (lane->period && lane->proven)                                                                         \
            dequantize(qdtype, PROVEN, true, lane, dst, src, n, channel);                                              \
        else if (lane->proven)                                                                                         \
            dequantize(qdtype, PROVEN, false, lane, dst, src, n, channel);                                             \
        else if (lane->period)                                                                                         \
            dequantize(qdtype, CHANNELS, true, lane, dst, src, n, channel);                                            \
        else                                                                                                           \
            dequantize(qdtype, CHANNELS, false, lane, dst, src, n, channel);                                           \
    }

ROWS(i8, STK_QINT8)
ROWS(u8, STK_QUINT8)
ROWS(i32, STK_QINT32)

const stki_quant_kernels stki_quant_avx2 = {
    .quantize = {[STK_QINT8] = quantize_i8, [STK_QUINT8] = quantize_u8, [STK_QINT32] = quantize_i32},
    .dequantize = {[STK_QINT8] = dequantize_i8, [STK_QUINT8] = dequantize_u8, [STK_QINT32] = dequantize_i32},
};
