/* convert_avx512.c: the kernels for AVX-512 with byte permutes (F, BW, DQ, VL, VBMI: Ice Lake, Zen 4 and later).
 *
 * The unit of work is one cache line of the destination: 16, 32 or 64 elements, made from one, two or four vectors of
 * f32. A run begins with a partial line up to the next line boundary, goes on with whole lines, and ends with a partial
 * one, all three through the same code under a mask, so that there is no second arithmetic for the edges.
 *
 * Interleaved pixels: 16 pixels of at most 4 bytes are at most 64 bytes, one register; one byte permute with zeroing
 * picks the bytes of a channel out of it and widens them to 32 bits in the same step. A mirrored row differs only in
 * the permutation. Planes are written one after the other over a block of pixels that stays in the first-level cache,
 * so that each plane is written in long pieces.
 */
#include "convert_internal.h"
#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

enum { WIDTH = 16, LINE = 64, PIXEL_BLOCK = 1024 };

enum source { FROM_U8, FROM_F32, FROM_PIXELS };

/* Where elements come from. For pixels `at` belongs to the lowest address of the 16 pixels that start at element 0. */
struct reader {
    const uint8_t *at;
    int64_t step; /* bytes from element to element */
    __m512i pick; /* pixels: which byte goes to which 32-bit lane */
    int size;     /* pixels: bytes that each pixel surely has */
};

struct levels {
    __m512 zero_point, low, high;
};

INLINE int element_size(enum stki_convert_dst to)
{
    return to == STKI_DST_U8 || to == STKI_DST_I8 ? 1 : to == STKI_DST_F16 || to == STKI_DST_BF16 ? 2 : 4;
}

INLINE __mmask64 low_bits(int64_t n)
{
    return n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

/* Bytes of a group of 16 pixels that may be read when the first `valid` of them are there. */
INLINE __mmask64 pixel_bytes(const struct reader *reader, int64_t valid)
{
    if (reader->step > 0)
        return low_bits((valid - 1) * reader->step + reader->size);
    return low_bits(-15 * reader->step + reader->size) & ~low_bits((16 - valid) * -reader->step);
}

/* Elements [first, first + valid) as f32; lanes beyond are any value. 1 <= valid <= 16. */
INLINE __m512 load(enum source from, const struct reader *reader, int64_t first, int64_t valid)
{
    const uint8_t *at = reader->at + first * reader->step;
    const __mmask16 lanes = (__mmask16)low_bits(valid);

    switch (from) {
    case FROM_U8:
        return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(
            valid == WIDTH ? _mm_loadu_si128((const __m128i *)(const void *)at) : _mm_maskz_loadu_epi8(lanes, at)));
    case FROM_F32:
        return valid == WIDTH ? _mm512_loadu_ps(at) : _mm512_maskz_loadu_ps(lanes, at);
    case FROM_PIXELS:
    default:
        return _mm512_cvtepi32_ps(_mm512_maskz_permutexvar_epi8(
            0x1111111111111111, reader->pick, _mm512_maskz_loadu_epi8(pixel_bytes(reader, valid), at)));
    }
}

/* clamp(rint(y) + zero_point, low, high); NaN counts as 0 before the zero point is added. */
INLINE __m512 level(__m512 y, const struct levels *levels)
{
    __m512 q = _mm512_maskz_roundscale_ps(_mm512_cmp_ps_mask(y, y, _CMP_ORD_Q), y,
                                          _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    q = _mm512_add_ps(q, levels->zero_point);
    return _mm512_min_ps(_mm512_max_ps(q, levels->low), levels->high);
}

INLINE __m512i to_i32(__m512 y, const struct levels *levels)
{
    __m512 q = level(y, levels);
    __mmask16 above = _mm512_cmp_ps_mask(q, _mm512_set1_ps(0x1p31f), _CMP_GE_OQ);
    return _mm512_mask_mov_epi32(_mm512_cvtps_epi32(q), above, _mm512_set1_epi32(INT32_MAX));
}

/* The upper halves, rounded to nearest even by integer addition, in the low 16 bits of each lane; NaN made quiet. */
INLINE __m512i to_bf16(__m512 y)
{
    __m512i bits = _mm512_castps_si512(y), upper = _mm512_srli_epi32(bits, 16);
    __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    return _mm512_mask_or_epi32(_mm512_srli_epi32(sum, 16), _mm512_cmp_ps_mask(y, y, _CMP_UNORD_Q), upper,
                                _mm512_set1_epi32(0x40));
}

INLINE __m512i pack_16(__m512i q0, __m512i q1)
{
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), _mm512_packus_epi32(q0, q1));
}

INLINE __m512i pack_8(enum stki_convert_dst to, const __m512 *y, const struct levels *levels)
{
    __m512i low = _mm512_packs_epi32(_mm512_cvtps_epi32(level(y[0], levels)), _mm512_cvtps_epi32(level(y[1], levels)));
    __m512i high = _mm512_packs_epi32(_mm512_cvtps_epi32(level(y[2], levels)), _mm512_cvtps_epi32(level(y[3], levels)));
    __m512i bytes = to == STKI_DST_U8 ? _mm512_packus_epi16(low, high) : _mm512_packs_epi16(low, high);
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), bytes);
}

INLINE __m512i pack(enum stki_convert_dst to, const __m512 *y, const struct levels *levels)
{
    switch (to) {
    case STKI_DST_U8:
    case STKI_DST_I8:
        return pack_8(to, y, levels);
    case STKI_DST_F16:
        return _mm512_inserti64x4(
            _mm512_castsi256_si512(_mm512_cvtps_ph(y[0], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)),
            _mm512_cvtps_ph(y[1], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), 1);
    case STKI_DST_BF16:
        return pack_16(to_bf16(y[0]), to_bf16(y[1]));
    case STKI_DST_I32:
        return to_i32(y[0], levels);
    default:
        return _mm512_castps_si512(y[0]);
    }
}

struct pairs {
    __m512 a, b; /* one pair for all */
    const float *a_at, *b_at;
    int64_t phase, advance, period; /* pairs that repeat */
};

/* Elements [first, first + valid) as one line of the destination. */
INLINE __m512i line(enum source from, enum stki_convert_dst to, bool pattern, const struct reader *reader,
                    struct pairs *pairs, const struct levels *levels, int64_t first, int64_t valid)
{
    const int groups = LINE / element_size(to) / WIDTH;
    __m512 y[4];

    for (int k = 0; k < groups; k++) {
        int64_t here = valid - k * WIDTH;
        y[k] = _mm512_setzero_ps();
        if (here <= 0)
            continue;
        __m512 x = load(from, reader, first + k * WIDTH, here < WIDTH ? here : WIDTH);
        if (pattern) {
            pairs->a = _mm512_loadu_ps(pairs->a_at + pairs->phase);
            pairs->b = _mm512_loadu_ps(pairs->b_at + pairs->phase);
            pairs->phase += here < WIDTH ? here % pairs->period : pairs->advance;
            if (pairs->phase >= pairs->period)
                pairs->phase -= pairs->period;
        }
        y[k] = _mm512_fmadd_ps(x, pairs->a, pairs->b);
    }
    return pack(to, y, levels);
}

INLINE void run(enum source from, enum stki_convert_dst to, bool pattern, const stki_lane *lane, uint8_t *dst,
                const struct reader *reader, int64_t n, int64_t channel)
{
    const int size = element_size(to);
    const int64_t whole = LINE / size;
    const int64_t behind = (int64_t)((uintptr_t)dst % LINE);
    const bool aligned = behind % size == 0, streaming = lane->streaming && aligned;
    struct levels levels = {_mm512_set1_ps(lane->zero_point), _mm512_set1_ps(lane->low), _mm512_set1_ps(lane->high)};
    struct pairs pairs = {.a_at = lane->a, .b_at = lane->b, .phase = channel, .period = lane->period};
    int64_t i = 0;

    if (pattern) {
        pairs.advance = WIDTH % lane->period;
    } else {
        pairs.a = _mm512_set1_ps(lane->a[channel]);
        pairs.b = _mm512_set1_ps(lane->b[channel]);
    }
    if (aligned && behind && n > 0) {
        int64_t head = (LINE - behind) / size;
        if (head > n)
            head = n;
        _mm512_mask_storeu_epi8(dst, low_bits(head * size), line(from, to, pattern, reader, &pairs, &levels, 0, head));
        i = head;
    }
    if (streaming)
        for (; i + whole <= n; i += whole)
            _mm512_stream_si512((__m512i *)(void *)(dst + i * size),
                                line(from, to, pattern, reader, &pairs, &levels, i, whole));
    else
        for (; i + whole <= n; i += whole)
            _mm512_storeu_si512(dst + i * size, line(from, to, pattern, reader, &pairs, &levels, i, whole));
    if (i < n)
        _mm512_mask_storeu_epi8(dst + i * size, low_bits((n - i) * size),
                                line(from, to, pattern, reader, &pairs, &levels, i, n - i));
}

/* ---- pixels ----------------------------------------------------------------------------------------------------- */

INLINE struct reader pixel_reader(const stki_lane *lane, const uint8_t *src, int channel)
{
    const int step = lane->pixel_step;
    __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

    if (step < 0)
        lanes = _mm512_sub_epi32(_mm512_set1_epi32(15), lanes);
    return (struct reader){
        .at = src + (step < 0 ? 15 * step : 0),
        .step = step,
        .pick = _mm512_add_epi32(_mm512_mullo_epi32(lanes, _mm512_set1_epi32(step < 0 ? -step : step)),
                                 _mm512_set1_epi32(channel)),
        .size = lane->channels,
    };
}

INLINE void pixels(enum stki_convert_dst to, const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n)
{
    const int size = element_size(to);

    for (int64_t first = 0; first < n;) {
        /* Blocks of plane 0 end at a line boundary, and so do those of the other planes where they lie alike. */
        int64_t over = (int64_t)((uintptr_t)(dst + first * size) % LINE) / size;
        int64_t count = n - first < PIXEL_BLOCK - over ? n - first : PIXEL_BLOCK - over;
        for (int c = 0; c < lane->channels; c++) {
            struct reader reader = pixel_reader(lane, src + first * lane->pixel_step, c);
            run(FROM_PIXELS, to, false, lane, dst + c * lane->plane_stride + first * size, &reader, count, c);
        }
        first += count;
    }
}

/* ---- bytes to bytes --------------------------------------------------------------------------------------------- */

enum bytes_source { BYTES_RUN, BYTES_PIXELS };

struct table {
    __m512i part[4];
};

INLINE struct table load_table(const uint8_t *from)
{
    return (struct table){{_mm512_loadu_si512(from), _mm512_loadu_si512(from + 64), _mm512_loadu_si512(from + 128),
                           _mm512_loadu_si512(from + 192)}};
}

INLINE __m512i look_up(const struct table *table, __m512i x)
{
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), _mm512_permutex2var_epi8(table->part[0], x, table->part[1]),
                                  _mm512_permutex2var_epi8(table->part[2], x, table->part[3]));
}

/* Which of the 256 bytes from the lowest address of 64 pixels on go to which place, for one channel. */
INLINE __m512i wide_pick(const stki_lane *lane, int64_t channel)
{
    return _mm512_add_epi8(_mm512_loadu_si512(lane->pick), _mm512_set1_epi8((char)channel));
}

/* Bytes [64 k, 64 k + 64) of the window of 64 pixels, those outside [low, high) left out. */
INLINE __m512i load_part(const uint8_t *window, int k, int64_t low, int64_t high)
{
    int64_t from = low - 64 * k, to = high - 64 * k;
    __mmask64 mask = (to <= 0 ? 0 : low_bits(to)) & ~(from <= 0 ? 0 : low_bits(from));

    return _mm512_maskz_loadu_epi8(mask, window + 64 * k);
}

/* One channel of pixels [first, first + valid); 1 <= valid <= 64. */
INLINE __m512i split(const stki_lane *lane, const uint8_t *src, __m512i pick, int64_t first, int64_t valid)
{
    const int64_t step = lane->pixel_step, size = lane->channels;
    const int64_t low = step < 0 ? (64 - valid) * -step : 0;
    const int64_t high = step < 0 ? 63 * -step + size : (valid - 1) * step + size;
    const uint8_t *window = src + (step < 0 ? (first + 63) * step : first * step);
    __m512i v2 = load_part(window, 2, low, high);
    __m512i v3 = step == 4 || step == -4 ? load_part(window, 3, low, high) : v2;

    return _mm512_mask_blend_epi8(
        _mm512_movepi8_mask(pick),
        _mm512_permutex2var_epi8(load_part(window, 0, low, high), pick, load_part(window, 1, low, high)),
        _mm512_permutex2var_epi8(v2, pick, v3));
}

INLINE __m512i byte_line(enum bytes_source from, bool looked_up, const stki_lane *lane, const struct table *table,
                         const uint8_t *src, __m512i pick, int64_t first, int64_t valid)
{
    __m512i x;

    if (from == BYTES_PIXELS)
        x = split(lane, src, pick, first, valid);
    else
        x = _mm512_maskz_loadu_epi8(low_bits(valid), src + first);
    return looked_up ? look_up(table, x) : x;
}

INLINE void bytes(enum bytes_source from, bool looked_up, const stki_lane *lane, uint8_t *dst, const uint8_t *src,
                  int64_t n, int64_t channel)
{
    const struct table table = load_table(looked_up ? lane->table + 256 * channel : (const uint8_t[256]){0});
    const __m512i pick = wide_pick(lane, channel);
    int64_t i = 0, head = (int64_t)(-(uintptr_t)dst % LINE);

    if (head > n)
        head = n;
    if (head > 0) {
        _mm512_mask_storeu_epi8(dst, low_bits(head), byte_line(from, looked_up, lane, &table, src, pick, 0, head));
        i = head;
    }
    if (lane->streaming)
        for (; i + LINE <= n; i += LINE)
            _mm512_stream_si512((__m512i *)(void *)(dst + i),
                                byte_line(from, looked_up, lane, &table, src, pick, i, LINE));
    else
        for (; i + LINE <= n; i += LINE)
            _mm512_storeu_si512(dst + i, byte_line(from, looked_up, lane, &table, src, pick, i, LINE));
    if (i < n)
        _mm512_mask_storeu_epi8(dst + i, low_bits(n - i),
                                byte_line(from, looked_up, lane, &table, src, pick, i, n - i));
}

INLINE void byte_pixels(bool looked_up, const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n)
{
    enum { BLOCK = 4096 };

    for (int64_t first = 0; first < n;) {
        int64_t over = (int64_t)((uintptr_t)(dst + first) % LINE);
        int64_t count = n - first < BLOCK - over ? n - first : BLOCK - over;
        for (int c = 0; c < lane->channels; c++)
            bytes(BYTES_PIXELS, looked_up, lane, dst + c * lane->plane_stride + first, src + first * lane->pixel_step,
                  count, c);
        first += count;
    }
}

static void table_u8(const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n, int64_t channel)
{
    bytes(BYTES_RUN, true, lane, dst, src, n, channel);
}

static void table_pixels(const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n)
{
    byte_pixels(true, lane, dst, src, n);
}

static void split_pixels(const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n)
{
    byte_pixels(false, lane, dst, src, n);
}

static void copy_streaming(uint8_t *dst, const uint8_t *src, int64_t n)
{
    int64_t i = (int64_t)(-(uintptr_t)dst % LINE);

    if (i > n)
        i = n;
    _mm512_mask_storeu_epi8(dst, low_bits(i), _mm512_maskz_loadu_epi8(low_bits(i), src));
    for (; i + LINE <= n; i += LINE)
        _mm512_stream_si512((__m512i *)(void *)(dst + i), _mm512_loadu_si512(src + i));
    _mm512_mask_storeu_epi8(dst + i, low_bits(n - i), _mm512_maskz_loadu_epi8(low_bits(n - i), src + i));
}

/* ---- loads ------------------------------------------------------------------------------------------------------ */

/* Each reads 16 elements a step, the last ones under a mask. */
#define LOAD(name, bytes_each, from_memory)                                       \
    static void load_##name(float *dst, const uint8_t *src, int64_t n)            \
    {                                                                             \
        for (int64_t i = 0; i < n; i += WIDTH) {                                  \
            const uint8_t *at = src + i * bytes_each;                             \
            __mmask16 lanes = (__mmask16)low_bits(n - i < WIDTH ? n - i : WIDTH); \
            _mm512_mask_storeu_ps(dst + i, lanes, from_memory);                   \
        }                                                                         \
    }
#define BYTES_8 _mm_maskz_loadu_epi8(lanes, at)
#define BYTES_16 _mm256_maskz_loadu_epi16(lanes, at)

LOAD(u8, 1, _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(BYTES_8)))
LOAD(i8, 1, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(BYTES_8)))
LOAD(u16, 2, _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(BYTES_16)))
LOAD(i16, 2, _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(BYTES_16)))
LOAD(f16, 2, _mm512_cvtph_ps(BYTES_16))
LOAD(bf16, 2, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(BYTES_16), 16)))
LOAD(i32, 4, _mm512_cvtepi32_ps(_mm512_maskz_loadu_epi32(lanes, at)))
LOAD(f32, 4, _mm512_maskz_loadu_ps(lanes, at))

INLINE __m512 join(__m256 low, __m256 high)
{
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

LOAD(i64, 8,
     join(_mm512_cvtepi64_ps(_mm512_maskz_loadu_epi64((__mmask8)lanes, at)),
          _mm512_cvtepi64_ps(_mm512_maskz_loadu_epi64((__mmask8)(lanes >> 8), at + 64))))
LOAD(f64, 8,
     join(_mm512_cvtpd_ps(_mm512_maskz_loadu_pd((__mmask8)lanes, at)),
          _mm512_cvtpd_ps(_mm512_maskz_loadu_pd((__mmask8)(lanes >> 8), at + 64))))

/* ---- the table -------------------------------------------------------------------------------------------------- */

#define RUNS(name, to)                                                                                          \
    static void u8_##name(const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n, int64_t channel)  \
    {                                                                                                           \
        struct reader reader = {.at = src, .step = 1};                                                          \
        run(FROM_U8, to, false, lane, dst, &reader, n, channel);                                                \
    }                                                                                                           \
    static void u8_##name##_pattern(const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n,         \
                                    int64_t channel)                                                            \
    {                                                                                                           \
        struct reader reader = {.at = src, .step = 1};                                                          \
        run(FROM_U8, to, true, lane, dst, &reader, n, channel);                                                 \
    }                                                                                                           \
    static void f32_##name(const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n, int64_t channel) \
    {                                                                                                           \
        struct reader reader = {.at = src, .step = 4};                                                          \
        run(FROM_F32, to, false, lane, dst, &reader, n, channel);                                               \
    }                                                                                                           \
    static void f32_##name##_pattern(const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n,        \
                                     int64_t channel)                                                           \
    {                                                                                                           \
        struct reader reader = {.at = src, .step = 4};                                                          \
        run(FROM_F32, to, true, lane, dst, &reader, n, channel);                                                \
    }                                                                                                           \
    static void pixels_##name(const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n)               \
    {                                                                                                           \
        pixels(to, lane, dst, src, n);                                                                          \
    }
RUNS(u8, STKI_DST_U8)
RUNS(i8, STKI_DST_I8)
RUNS(i32, STKI_DST_I32)
RUNS(f16, STKI_DST_F16)
RUNS(bf16, STKI_DST_BF16)
RUNS(f32, STKI_DST_F32)

const stki_convert_kernels *stki_convert_kernels_avx512(void)
{
    static const stki_convert_kernels kernels = {
        .load = {load_u8, load_i8, load_u16, load_i16, load_i32, load_i64, load_f16, load_bf16, load_f32, load_f64},
        .run_f32 = {{f32_u8, f32_u8_pattern},
                    {f32_i8, f32_i8_pattern},
                    {f32_i32, f32_i32_pattern},
                    {f32_f16, f32_f16_pattern},
                    {f32_bf16, f32_bf16_pattern},
                    {f32_f32, f32_f32_pattern}},
        .run_u8 = {{u8_u8, u8_u8_pattern},
                   {u8_i8, u8_i8_pattern},
                   {u8_i32, u8_i32_pattern},
                   {u8_f16, u8_f16_pattern},
                   {u8_bf16, u8_bf16_pattern},
                   {u8_f32, u8_f32_pattern}},
        .table_u8 = table_u8,
        .pixels = {pixels_u8, pixels_i8, pixels_i32, pixels_f16, pixels_bf16, pixels_f32},
        .table_pixels = table_pixels,
        .split_pixels = split_pixels,
        .copy_streaming = copy_streaming,
    };
    return &kernels;
}
