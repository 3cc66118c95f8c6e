/* quant_avx512.c: the rows of quantising for AVX-512. The unit of work is one cache line of the destination; a run
 * begins with a partial line up to the next line boundary, goes on with whole lines, and ends with a partial one, all
 * through the same code under a mask. */
#include "quant_internal.h"
#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

enum { WIDTH = 16, LINE = 64 };

INLINE __mmask64 low_bits(int64_t n)
{
    return n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

/* Where in the arrays of pairs the next vector begins. */
struct phase {
    int64_t at, advance, period;
};

INLINE struct phase phase_at(const stki_quant_lane *lane, int64_t channel)
{
    return (struct phase){.at = channel, .advance = lane->period ? WIDTH % lane->period : 0, .period = lane->period};
}

INLINE void step(struct phase *phase, int64_t elements)
{
    phase->at += elements == WIDTH ? phase->advance : elements % phase->period;
    if (phase->at >= phase->period)
        phase->at -= phase->period;
}

/* ---- to integers ------------------------------------------------------------------------------------------------ */

/* Where the pairs of a vector come from. Loading two vectors of them for every vector of elements costs a fifth of the
 * bandwidth of memory, so they stay in registers where the channels repeat every line. */
enum pairs { ONE_PAIR, HELD, LOADED };

enum { HELD_VECTORS = 4 };

struct quantizer {
    __m512 inverse, zero, high;
    __m512 held_inverse[HELD_VECTORS], held_zero[HELD_VECTORS];
    struct phase phase;
};

INLINE void hold(struct quantizer *q, const stki_quant_lane *lane)
{
    struct phase phase = q->phase;

    for (int k = 0; k < HELD_VECTORS; k++) {
        q->held_inverse[k] = _mm512_loadu_ps(lane->inverse + phase.at);
        q->held_zero[k] = _mm512_loadu_ps(lane->zero_float + phase.at);
        step(&phase, WIDTH);
    }
}

/* rint(x * inverse) + zero, not above `high`, as i32; what is below -2^31 becomes that. NaN counts as 0 before the zero
 * point is added. */
INLINE __m512i whole(__m512 x, const struct quantizer *q)
{
    __m512 y = _mm512_mul_ps(x, q->inverse);

    y = _mm512_maskz_roundscale_ps(_mm512_cmp_ps_mask(y, y, _CMP_ORD_Q), y,
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_add_ps(y, q->zero), q->high));
}

/* 2^31 itself does not fit: the conversion made it -2^31, which only it and what is far below zero become. */
INLINE __m512i whole_i32(__m512 x, const struct quantizer *q)
{
    __m512 y = _mm512_mul_ps(x, q->inverse);

    y = _mm512_maskz_roundscale_ps(_mm512_cmp_ps_mask(y, y, _CMP_ORD_Q), y,
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    y = _mm512_add_ps(y, q->zero);
    return _mm512_mask_mov_epi32(_mm512_cvtps_epi32(y), _mm512_cmp_ps_mask(y, _mm512_set1_ps(0x1p31f), _CMP_GE_OQ),
                                 _mm512_set1_epi32(INT32_MAX));
}

/* Elements [first, first + valid) as one line. */
INLINE __m512i quantized_line(stk_qdtype to, enum pairs pairs, const stki_quant_lane *lane, struct quantizer *q,
                              const char *src, int64_t first, int64_t valid)
{
    const int groups = to == STK_QINT32 ? 1 : 4;
    __m512i y[4];

    for (int k = 0; k < groups; k++) {
        int64_t here = valid - k * WIDTH < WIDTH ? valid - k * WIDTH : WIDTH;
        const char *at = src + 4 * (first + k * WIDTH);
        y[k] = _mm512_setzero_si512();
        if (here <= 0)
            continue;
        __m512 x = here == WIDTH ? _mm512_loadu_ps(at) : _mm512_maskz_loadu_ps((__mmask16)low_bits(here), at);
        if (pairs == HELD) {
            q->inverse = q->held_inverse[k];
            q->zero = q->held_zero[k];
        } else if (pairs == LOADED) {
            q->inverse = _mm512_loadu_ps(lane->inverse + q->phase.at);
            q->zero = _mm512_loadu_ps(lane->zero_float + q->phase.at);
            step(&q->phase, here);
        }
        y[k] = to == STK_QINT32 ? whole_i32(x, q) : whole(x, q);
    }
    if (to == STK_QINT32)
        return y[0];
    __m512i low = _mm512_packs_epi32(y[0], y[1]), high = _mm512_packs_epi32(y[2], y[3]);
    __m512i bytes = to == STK_QUINT8 ? _mm512_packus_epi16(low, high) : _mm512_packs_epi16(low, high);
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), bytes);
}

INLINE void quantize(stk_qdtype to, enum pairs pairs, const stki_quant_lane *lane, char *dst, const char *src,
                     int64_t n, int64_t channel)
{
    const int size = to == STK_QINT32 ? 4 : 1;
    const int64_t per_line = LINE / size, behind = (int64_t)((uintptr_t)dst % LINE);
    const bool aligned = behind % size == 0;
    const enum pairs at_edges = pairs == ONE_PAIR ? ONE_PAIR : LOADED;
    struct quantizer q = {.high = _mm512_set1_ps(to == STK_QUINT8 ? 255 : 127), .phase = phase_at(lane, channel)};
    int64_t i = 0;

    if (pairs == ONE_PAIR) {
        q.inverse = _mm512_set1_ps(lane->inverse[channel]);
        q.zero = _mm512_set1_ps(lane->zero_float[channel]);
    }
    if (aligned && behind && n > 0) {
        i = (LINE - behind) / size;
        i = i > n ? n : i;
        _mm512_mask_storeu_epi8(dst, low_bits(i * size), quantized_line(to, at_edges, lane, &q, src, 0, i));
    }
    if (pairs == HELD)
        hold(&q, lane); /* a whole line leaves the phase where it is */
    if (lane->streaming && aligned)
        for (; i + per_line <= n; i += per_line)
            _mm512_stream_si512((__m512i *)(void *)(dst + i * size),
                                quantized_line(to, pairs, lane, &q, src, i, per_line));
    else
        for (; i + per_line <= n; i += per_line)
            _mm512_storeu_si512(dst + i * size, quantized_line(to, pairs, lane, &q, src, i, per_line));
    if (i < n)
        _mm512_mask_storeu_epi8(dst + i * size, low_bits((n - i) * size),
                                quantized_line(to, at_edges, lane, &q, src, i, n - i));
}

/* ---- and back --------------------------------------------------------------------------------------------------- */

enum product {
    IN_FLOAT, /* one pair, or f32 scales */
    CHANNELS, /* in double, by the definition */
    PROVEN    /* in f32 with a scale of two parts */
};

struct dequantizer {
    __m512 scale_float, scale_rest, zero_float;
    __m512d scale[2], zero[2]; /* lanes 0 to 7, and 8 to 15 */
    struct phase phase;
};

INLINE __m512i load_integers(stk_qdtype from, const char *src, int64_t first, int64_t valid)
{
    __mmask16 lanes = (__mmask16)low_bits(valid);

    if (from == STK_QINT32)
        return _mm512_maskz_loadu_epi32(lanes, src + 4 * first);
    __m128i bytes = valid == WIDTH ? _mm_loadu_si128((const __m128i *)(const void *)(src + first))
                                   : _mm_maskz_loadu_epi8(lanes, src + first);
    return from == STK_QINT8 ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
}

INLINE __m512 join(__m256 low, __m256 high)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

/* The differences of 8-bit numbers are exact in f32, those of i32 are not. */
INLINE __m512 dequantized_line(stk_qdtype from, enum product product, bool pattern, const stki_quant_lane *lane,
                               struct dequantizer *d, const char *src, int64_t first, int64_t valid)
{
    __m512i q = load_integers(from, src, first, valid);

    if (from != STK_QINT32 && product != CHANNELS) {
        if (pattern) {
            d->scale_float = _mm512_loadu_ps(lane->scale_float + d->phase.at);
            d->zero_float = _mm512_loadu_ps(lane->zero_float + d->phase.at);
            if (product == PROVEN)
                d->scale_rest = _mm512_loadu_ps(lane->scale_rest + d->phase.at);
            step(&d->phase, valid);
        }
        __m512 difference = _mm512_sub_ps(_mm512_cvtepi32_ps(q), d->zero_float);
        if (product == IN_FLOAT)
            return _mm512_mul_ps(difference, d->scale_float);
        return _mm512_fmadd_ps(difference, d->scale_float, _mm512_mul_ps(difference, d->scale_rest));
    }
    if (pattern) {
        for (int k = 0; k < 2; k++) {
            d->scale[k] = _mm512_loadu_pd(lane->scale + d->phase.at + 8 * k);
            d->zero[k] = _mm512_loadu_pd(lane->zero_double + d->phase.at + 8 * k);
        }
        step(&d->phase, valid);
    }
    __m512d low = _mm512_sub_pd(_mm512_cvtepi32_pd(_mm512_castsi512_si256(q)), d->zero[0]);
    __m512d high = _mm512_sub_pd(_mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(q, 1)), d->zero[1]);
    if (product == IN_FLOAT)
        return _mm512_mul_ps(join(_mm512_cvtpd_ps(low), _mm512_cvtpd_ps(high)), d->scale_float);
    return join(_mm512_cvtpd_ps(_mm512_mul_pd(low, d->scale[0])), _mm512_cvtpd_ps(_mm512_mul_pd(high, d->scale[1])));
}

INLINE void dequantize(stk_qdtype from, enum product product, bool pattern, const stki_quant_lane *lane, char *dst,
                       const char *src, int64_t n, int64_t channel)
{
    const int64_t behind = (int64_t)((uintptr_t)dst % LINE);
    const bool aligned = behind % 4 == 0;
    struct dequantizer d = {.phase = phase_at(lane, channel)};
    int64_t i = 0;

    if (!pattern) {
        d.scale_float = _mm512_set1_ps(lane->scale_float[channel]);
        d.scale_rest = _mm512_set1_ps(lane->scale_rest[channel]);
        d.zero_float = _mm512_set1_ps(lane->zero_float[channel]);
        d.scale[0] = d.scale[1] = _mm512_set1_pd(lane->scale[channel]);
        d.zero[0] = d.zero[1] = _mm512_set1_pd(lane->zero_double[channel]);
    }
    if (aligned && behind && n > 0) {
        i = (LINE - behind) / 4;
        i = i > n ? n : i;
        _mm512_mask_storeu_ps(dst, (__mmask16)low_bits(i),
                              dequantized_line(from, product, pattern, lane, &d, src, 0, i));
    }
    if (lane->streaming && aligned)
        for (; i + WIDTH <= n; i += WIDTH)
            _mm512_stream_ps((float *)(void *)(dst + 4 * i),
                             dequantized_line(from, product, pattern, lane, &d, src, i, WIDTH));
    else
        for (; i + WIDTH <= n; i += WIDTH)
            _mm512_storeu_ps(dst + 4 * i, dequantized_line(from, product, pattern, lane, &d, src, i, WIDTH));
    if (i < n)
        _mm512_mask_storeu_ps(dst + 4 * i, (__mmask16)low_bits(n - i),
                              dequantized_line(from, product, pattern, lane, &d, src, i, n - i));
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

#define ROWS(name, qdtype)                                                                                             \
    static void quantize_##name(const stki_quant_lane *lane, void *dst, const void *src, int64_t n, int64_t channel)   \
    {                                                                                                                  \
        if (lane->period && qdtype != STK_QINT32 && LINE % lane->period == 0)                                          \
            quantize(qdtype, HELD, lane, dst, src, n, channel);                                                        \
        else if (lane->period)                                                                                         \
            quantize(qdtype, LOADED, lane, dst, src, n, channel);                                                      \
        else                                                                                                           \
            quantize(qdtype, ONE_PAIR, lane, dst, src, n, channel);                                                    \
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

const stki_quant_kernels stki_quant_avx512 = {
    .quantize = {[STK_QINT8] = quantize_i8, [STK_QUINT8] = quantize_u8, [STK_QINT32] = quantize_i32},
    .dequantize = {[STK_QINT8] = dequantize_i8, [STK_QUINT8] = dequantize_u8, [STK_QINT32] = dequantize_i32},
};
