/* convert_avx2.c: the kernels for AVX2 with FMA and F16C.
 *
 * The unit of work is half a cache line of the destination: 8, 16 or 32 elements, made from one, two or four vectors of
 * f32. Partial units, before the first line boundary and at the end, go through a small buffer and the same code, so
 * that there is no second arithmetic for the edges.
 *
 * Interleaved pixels: eight pixels come as two loads of 16 bytes, four pixels in each, placed so that together they
 * reach no further than the pixels do; one byte shuffle with zeroing picks a channel and widens it. A mirrored row
 * differs only in the shuffle.
 */
#include "convert_avx2.h"
#include "convert_planes.h"
#include <string.h>

enum { WIDTH = 8 };

enum source { FROM_U8, FROM_F32, FROM_PIXELS };

/* Where elements come from. For pixels `at` is byte 0 of pixel 0. */
struct reader {
    const uint8_t *at;
    int64_t step;         /* bytes from element to element */
    __m256i pick;         /* pixels: which byte goes to which 32-bit lane */
    int64_t half0, half1; /* pixels: where the two loads start, seen from the pixel */
    int size;             /* bytes that each element surely has */
};

struct levels {
    __m256 zero_point, low, high;
    __m256i zero_point_16, low_8, high_8;
};

struct pairs {
    __m256 a, b; /* one pair for all */
    const float *a_at, *b_at;
    int64_t phase, advance, period; /* pairs that repeat */
};

/* What stays the same over all runs of a call. */
struct kernel {
    const stki_lane *lane;
    struct reader reader;
    struct pairs pairs;
    struct levels levels;
};

INLINE int element_size(enum stki_convert_dst to)
{
    return to == STKI_DST_U8 || to == STKI_DST_I8 ? 1 : to == STKI_DST_F16 || to == STKI_DST_BF16 ? 2 : 4;
}

/* Elements [first, first + 8) as f32. */
INLINE __m256 load(enum source from, const struct reader *reader, int64_t first)
{
    const uint8_t *at = reader->at + first * reader->step;

    if (from == FROM_F32)
        return _mm256_loadu_ps((const float *)(const void *)at);
    if (from == FROM_U8)
        return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)at)));
    __m256i both =
        _mm256_inserti128_si256(_mm256_castsi128_si256(load_128(at + reader->half0)), load_128(at + reader->half1), 1);
    return _mm256_cvtepi32_ps(_mm256_shuffle_epi8(both, reader->pick));
}

/* clamp(rint(y) + zero_point, low, high); NaN counts as 0 before the zero point is added. */
INLINE __m256 level(__m256 y, const struct levels *levels)
{
    __m256 q = _mm256_round_ps(_mm256_and_ps(y, _mm256_cmp_ps(y, y, _CMP_ORD_Q)),
                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    q = _mm256_add_ps(q, levels->zero_point);
    return _mm256_min_ps(_mm256_max_ps(q, levels->low), levels->high);
}

INLINE __m256i to_i32(__m256 y, const struct levels *levels)
{
    __m256 q = level(y, levels);
    __m256i above = _mm256_castps_si256(_mm256_cmp_ps(q, _mm256_set1_ps(0x1p31f), _CMP_GE_OQ));
    return _mm256_blendv_epi8(_mm256_cvtps_epi32(q), _mm256_set1_epi32(INT32_MAX), above);
}

/* The upper halves, rounded to nearest even by integer addition, in the low 16 bits of each lane; NaN made quiet. */
INLINE __m256i to_bf16(__m256 y, bool tame)
{
    __m256i bits = _mm256_castps_si256(y), upper = _mm256_srli_epi32(bits, 16);
    __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(y, y, _CMP_UNORD_Q));
    if (tame)
        return _mm256_srli_epi32(sum, 16);
    return _mm256_blendv_epi8(_mm256_srli_epi32(sum, 16), _mm256_or_si256(upper, _mm256_set1_epi32(0x40)), nan);
}

/* Results known to be numbers below 2^30: packing saturates, so the zero point is added between the two packings and
 * the limits are applied to bytes. Out of range for 16 bits is out of range for 8 bits, whatever the zero point. */
INLINE __m256i to_bytes_tame(enum stki_convert_dst to, const __m256 *y, const struct levels *levels)
{
    __m256i low = _mm256_packs_epi32(_mm256_cvtps_epi32(y[0]), _mm256_cvtps_epi32(y[1]));
    __m256i high = _mm256_packs_epi32(_mm256_cvtps_epi32(y[2]), _mm256_cvtps_epi32(y[3]));

    low = _mm256_adds_epi16(low, levels->zero_point_16);
    high = _mm256_adds_epi16(high, levels->zero_point_16);
    if (to == STKI_DST_U8)
        return _mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(low, high), levels->low_8), levels->high_8);
    return _mm256_min_epi8(_mm256_max_epi8(_mm256_packs_epi16(low, high), levels->low_8), levels->high_8);
}

INLINE __m256i to_bytes(enum stki_convert_dst to, const __m256 *y, const struct levels *levels)
{
    __m256i low = _mm256_packs_epi32(_mm256_cvtps_epi32(level(y[0], levels)), _mm256_cvtps_epi32(level(y[1], levels)));
    __m256i high = _mm256_packs_epi32(_mm256_cvtps_epi32(level(y[2], levels)), _mm256_cvtps_epi32(level(y[3], levels)));

    return to == STKI_DST_U8 ? _mm256_packus_epi16(low, high) : _mm256_packs_epi16(low, high);
}

INLINE __m256i pack(enum stki_convert_dst to, const __m256 *y, const struct levels *levels, bool tame)
{
    switch (to) {
    case STKI_DST_U8:
    case STKI_DST_I8:
        return _mm256_permutevar8x32_epi32(tame ? to_bytes_tame(to, y, levels) : to_bytes(to, y, levels),
                                           _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    case STKI_DST_F16:
        return _mm256_setr_m128i(_mm256_cvtps_ph(y[0], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                                 _mm256_cvtps_ph(y[1], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    case STKI_DST_BF16:
        return _mm256_permute4x64_epi64(_mm256_packus_epi32(to_bf16(y[0], tame), to_bf16(y[1], tame)), 0xd8);
    case STKI_DST_I32:
        return to_i32(y[0], levels);
    default:
        return _mm256_castps_si256(y[0]);
    }
}

/* ---- runs ---------------------------------------------------------------------------------------------------------
 */

INLINE void set_pairs(struct pairs *pairs, bool pattern, const stki_lane *lane, int64_t channel)
{
    *pairs = (struct pairs){.a_at = lane->a, .b_at = lane->b, .phase = channel, .period = lane->period};
    if (pattern) {
        pairs->advance = WIDTH % lane->period;
    } else {
        pairs->a = _mm256_set1_ps(lane->a[channel]);
        pairs->b = _mm256_set1_ps(lane->b[channel]);
    }
}

INLINE void set_levels(struct levels *levels, enum stki_convert_dst to, const stki_lane *lane)
{
    if (to != STKI_DST_U8 && to != STKI_DST_I8 && to != STKI_DST_I32)
        return;
    levels->zero_point = _mm256_set1_ps(lane->zero_point);
    levels->low = _mm256_set1_ps(lane->low);
    levels->high = _mm256_set1_ps(lane->high);
    if (to == STKI_DST_I32)
        return;
    levels->zero_point_16 = _mm256_set1_epi16((int16_t)lane->zero_point);
    levels->low_8 = _mm256_set1_epi8((char)(int)lane->low);
    levels->high_8 = _mm256_set1_epi8((char)(int)lane->high);
}

/* Elements [first, first + UNIT / size) as half a line of the destination. */
INLINE __m256i unit(enum source from, enum stki_convert_dst to, bool pattern, bool tame, struct kernel *kernel,
                    const struct reader *reader, int64_t first)
{
    const int groups = UNIT / element_size(to) / WIDTH;
    struct pairs *pairs = &kernel->pairs;
    __m256 y[4];

    for (int k = 0; k < groups; k++) {
        __m256 x = load(from, reader, first + k * WIDTH);
        if (pattern) {
            pairs->a = _mm256_loadu_ps(pairs->a_at + pairs->phase);
            pairs->b = _mm256_loadu_ps(pairs->b_at + pairs->phase);
            pairs->phase += pairs->advance;
            if (pairs->phase >= pairs->period)
                pairs->phase -= pairs->period;
        }
        y[k] = _mm256_fmadd_ps(x, pairs->a, pairs->b);
    }
    return pack(to, y, &kernel->levels, tame);
}

/* Elements [first, first + valid), at most a unit, by way of a buffer; nothing else is read or written. */
INLINE void partial(enum source from, enum stki_convert_dst to, bool pattern, bool tame, struct kernel *kernel,
                    uint8_t *dst, int64_t first, int64_t valid)
{
    enum { ROOM = 4 * UNIT };
    _Alignas(UNIT) uint8_t in[ROOM + UNIT] = {0}, out[UNIT];
    const uint8_t *at = kernel->reader.at + first * kernel->reader.step;
    struct reader own = kernel->reader;
    int64_t phase = kernel->pairs.phase, reach = (valid - 1) * own.step;

    if (from == FROM_PIXELS && own.step < 0) {
        own.at = in + ROOM;
        memcpy(in + ROOM + reach, at + reach, (size_t)(own.size - reach));
    } else {
        own.at = in;
        memcpy(in, at, (size_t)(reach + own.size));
    }
    _mm256_store_si256((__m256i *)(void *)out, unit(from, to, pattern, tame, kernel, &own, 0));
    if (pattern)
        kernel->pairs.phase = (phase + valid) % kernel->pairs.period;
    memcpy(dst, out, (size_t)(valid * element_size(to)));
}

INLINE void partials(enum source from, enum stki_convert_dst to, bool pattern, bool tame, struct kernel *kernel,
                     uint8_t *dst, int64_t first, int64_t last)
{
    const int64_t whole = UNIT / element_size(to);

    for (; first < last; first += whole)
        partial(from, to, pattern, tame, kernel, dst + first * element_size(to), first,
                last - first < whole ? last - first : whole);
}

/* `ahead` more elements follow the n in the source and may be read, `before` ones come before them. */
INLINE void run(enum source from, enum stki_convert_dst to, bool pattern, bool tame, struct kernel *kernel,
                uint8_t *dst, int64_t n, int64_t ahead)
{
    const int size = element_size(to);
    const int64_t whole = UNIT / size, behind = (int64_t)((uintptr_t)dst % LINE);
    const struct reader *reader = &kernel->reader;
    const bool aligned = behind % size == 0;
    /* Pixels with bytes that nobody asked for: the last ones', at the higher address, need not exist. */
    const bool ragged = from == FROM_PIXELS && (reader->step < 0 ? -reader->step : reader->step) != reader->size;
    int64_t i = aligned && behind ? (LINE - behind) / size : 0, end = n;

    if (ragged && reader->step < 0 && i == 0)
        i = LINE / size;
    if (ragged && reader->step > 0 && ahead == 0)
        end = n - 1;
    if (i > n)
        i = n;
    partials(from, to, pattern, tame, kernel, dst, 0, i);
    const bool streaming = kernel->lane->streaming && aligned, down = from == FROM_PIXELS && kernel->lane->downwards;
    const int64_t both = 2 * whole, count = end > i ? (end - i) / both : 0;
    for (int64_t k = 0; k < count; k++) {
        int64_t first = i + (down ? count - 1 - k : k) * both;
        __m256i *at = (__m256i *)(void *)(dst + first * size);
        __m256i low = unit(from, to, pattern, tame, kernel, reader, first);
        __m256i high = unit(from, to, pattern, tame, kernel, reader, first + whole);
        if (streaming) {
            _mm256_stream_si256(at, low);
            _mm256_stream_si256(at + 1, high);
        } else {
            _mm256_storeu_si256(at, low);
            _mm256_storeu_si256(at + 1, high);
        }
    }
    i += count * both;
    for (; i + whole <= end; i += whole)
        _mm256_storeu_si256((__m256i *)(void *)(dst + i * size), unit(from, to, pattern, tame, kernel, reader, i));
    partials(from, to, pattern, tame, kernel, dst, i, n);
}

INLINE void one_run(enum source from, enum stki_convert_dst to, bool pattern, bool tame, const stki_lane *lane,
                    uint8_t *dst, const uint8_t *src, int64_t n, int64_t channel)
{
    const int size = from == FROM_F32 ? 4 : 1;
    struct kernel kernel = {.lane = lane, .reader = {.at = src, .step = size, .size = size}};

    set_pairs(&kernel.pairs, pattern, lane, channel);
    set_levels(&kernel.levels, to, lane);
    run(from, to, pattern, tame, &kernel, dst, n, 0);
}

/* ---- pixels ----------------------------------------------------------------------------------------------------- */

/* [mirrored][four bytes a pixel]: byte of channel 0 for each 32-bit lane; 0x80 gives zero. The second load of pixels of
 * three bytes starts 8 bytes behind the first, so that its fourth byte belongs to pixel 4. */
#define LANES(a, b, c, d) a, 128, 128, 128, b, 128, 128, 128, c, 128, 128, 128, d, 128, 128, 128
static const uint8_t picks[2][2][32] = {
    {{LANES(0, 3, 6, 9), LANES(4, 7, 10, 13)}, {LANES(0, 4, 8, 12), LANES(0, 4, 8, 12)}},
    {{LANES(13, 10, 7, 4), LANES(9, 6, 3, 0)}, {LANES(12, 8, 4, 0), LANES(12, 8, 4, 0)}}};

INLINE void set_reader(struct reader *reader, const stki_lane *lane, int channel)
{
    const bool mirrored = lane->pixel_step < 0, four = lane->pixel_step == 4 || lane->pixel_step == -4;
    const int64_t low = mirrored ? 7 * lane->pixel_step : 0, high = low + (four ? 16 : 8);

    reader->step = lane->pixel_step;
    reader->pick = _mm256_add_epi32(_mm256_loadu_si256((const __m256i *)(const void *)picks[mirrored][four]),
                                    _mm256_set1_epi32(channel));
    reader->half0 = mirrored ? high : low;
    reader->half1 = mirrored ? low : high;
    reader->size = lane->channels;
}

INLINE void plane(enum stki_convert_dst to, bool tame, const stki_lane *lane, uint8_t *dst, const uint8_t *src,
                  const stki_rows *rows, int channel)
{
    struct kernel kernel = {.lane = lane};

    set_pairs(&kernel.pairs, false, lane, channel);
    set_levels(&kernel.levels, to, lane);
    set_reader(&kernel.reader, lane, channel);
    for (int64_t r = 0; r < rows->rows; r++) {
        kernel.reader.at = src + r * rows->src_row;
        run(FROM_PIXELS, to, false, tame, &kernel, dst + r * rows->dst_row, rows->n, rows->ahead);
    }
}

/* ---- loads ------------------------------------------------------------------------------------------------------ */

/* Eight elements a step, the last ones by way of a buffer. */
#define LOAD(name, bytes_each, from_memory)                                 \
    static void load_##name(float *dst, const uint8_t *src, int64_t n)      \
    {                                                                       \
        int64_t i = 0;                                                      \
        for (; i + WIDTH <= n; i += WIDTH) {                                \
            const uint8_t *at = src + i * bytes_each;                       \
            _mm256_storeu_ps(dst + i, from_memory);                         \
        }                                                                   \
        if (i < n) {                                                        \
            _Alignas(UNIT) uint8_t at[WIDTH * bytes_each] = {0};            \
            float last[WIDTH];                                              \
            memcpy(at, src + i * bytes_each, (size_t)(n - i) * bytes_each); \
            _mm256_storeu_ps(last, from_memory);                            \
            memcpy(dst + i, last, (size_t)(n - i) * sizeof(float));         \
        }                                                                   \
    }
#define BYTES_8 _mm_loadl_epi64((const __m128i *)(const void *)at)
#define BYTES_16 load_128(at)
#define BYTES_32 _mm256_loadu_si256((const __m256i *)(const void *)at)

LOAD(u8, 1, _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(BYTES_8)))
LOAD(i8, 1, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(BYTES_8)))
LOAD(u16, 2, _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(BYTES_16)))
LOAD(i16, 2, _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(BYTES_16)))
LOAD(f16, 2, _mm256_cvtph_ps(BYTES_16))
LOAD(bf16, 2, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(BYTES_16), 16)))
LOAD(i32, 4, _mm256_cvtepi32_ps(BYTES_32))
LOAD(f32, 4, _mm256_castsi256_ps(BYTES_32))
LOAD(f64, 8,
     _mm256_set_m128(_mm256_cvtpd_ps(_mm256_loadu_pd((const double *)(const void *)(at + UNIT))),
                     _mm256_cvtpd_ps(_mm256_loadu_pd((const double *)(const void *)at))))

static void load_i64(float *dst, const uint8_t *src, int64_t n) /* AVX2 has no such conversion */
{
    for (int64_t i = 0; i < n; i++) {
        int64_t x;
        memcpy(&x, src + i * (int64_t)sizeof x, sizeof x);
        dst[i] = (float)x;
    }
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

#define RUN(name, from, to, pattern)                                                                      \
    static void name(const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n, int64_t channel) \
    {                                                                                                     \
        if (from == FROM_U8 && element_size(to) < 4 && lane->tame)                                        \
            one_run(from, to, pattern, true, lane, dst, src, n, channel);                                 \
        else                                                                                              \
            one_run(from, to, pattern, false, lane, dst, src, n, channel);                                \
    }
#define KERNELS(name, to)                                                                                    \
    RUN(u8_##name, FROM_U8, to, false)                                                                       \
    RUN(u8_##name##_pattern, FROM_U8, to, true)                                                              \
    RUN(f32_##name, FROM_F32, to, false)                                                                     \
    RUN(f32_##name##_pattern, FROM_F32, to, true)                                                            \
    static void plane_##name(const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows, \
                             int channel)                                                                    \
    {                                                                                                        \
        if (element_size(to) < 4 && lane->tame)                                                              \
            plane(to, true, lane, dst, src, rows, channel);                                                  \
        else                                                                                                 \
            plane(to, false, lane, dst, src, rows, channel);                                                 \
    }
KERNELS(u8, STKI_DST_U8)
KERNELS(i8, STKI_DST_I8)
KERNELS(i32, STKI_DST_I32)
KERNELS(f16, STKI_DST_F16)
KERNELS(bf16, STKI_DST_BF16)
KERNELS(f32, STKI_DST_F32)

const stki_convert_kernels *stki_convert_kernels_avx2(void)
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
        .plane = {plane_u8, plane_i8, plane_i32, plane_f16, plane_bf16, plane_f32},
        .join = STKI_JOINS,
        .part = STKI_PARTS,
        .split_plane = stki_avx2_split_plane,
        .copy_streaming = stki_avx2_copy_streaming,
    };
    return &kernels;
}
