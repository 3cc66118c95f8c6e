/* convert_avx512.c: the kernels for AVX-512 with byte permutes (F, BW, DQ, VL, VBMI: Ice Lake, Zen 4 and later).
 *
 * The unit of work is one cache line of the destination: 16, 32 or 64 elements, made from one, two or four vectors of
 * f32. A run begins with a partial line up to the next line boundary, goes on with whole lines, and ends with a partial
 * one, all three through the same code under a mask, so that there is no second arithmetic for the edges.
 *
 * Interleaved pixels: 16 pixels of at most 4 bytes are at most 64 bytes, one register; one byte permute with zeroing
 * picks the bytes of a channel out of it and widens them to 32 bits in the same step. A mirrored row differs only in
 * the permutation.
 */
#include "convert_avx512.h"
#include "convert_planes.h"

enum { WIDTH = 16 };

enum source { FROM_U8, FROM_F32, FROM_PIXELS };

/* Which coefficients a vector takes: one pair for all; three vectors in turn, for patterns whose length divides 48; or
 * any pattern, loaded where it is. */
enum pairing { PAIR_ONE, PAIR_TURNS, PAIR_WALK };

/* Where elements come from. Sixteen pixels are the 64 bytes from byte 0 of the first one on; mirrored, the 64 bytes up
 * to the last one of the first pixel. */
struct reader {
    const uint8_t *at;
    int64_t step; /* bytes from element to element */
    __m512i pick; /* pixels: which of the 64 bytes goes to which 32-bit lane */
    int channels; /* pixels: bytes that each surely has */
    int64_t room; /* elements for which all 64 bytes may be read must lie this far from the last one */
};

struct levels {
    __m512 zero_point, low, high;
};

struct pairs {
    __m512 a[3], b[3];
    const float *a_at, *b_at;
    int64_t phase, advance, period;
};

INLINE int element_size(enum stki_convert_dst to)
{
    return to == STKI_DST_U8 || to == STKI_DST_I8 ? 1 : to == STKI_DST_F16 || to == STKI_DST_BF16 ? 2 : 4;
}

/* ---- loading ------------------------------------------------------------------------------------------------------
 */

INLINE __m512 load_pixels(const struct reader *reader, int64_t first, int64_t valid, bool tight)
{
    const int64_t step = reader->step, channels = reader->channels;
    const uint8_t *at = reader->at + first * step;
    __m512i bytes;

    if (!tight)
        bytes = _mm512_loadu_si512(at);
    else if (step > 0)
        bytes = _mm512_maskz_loadu_epi8(low_bits((valid - 1) * step + channels), at);
    else
        bytes = _mm512_maskz_loadu_epi8(~low_bits(64 - channels + (valid - 1) * step), at);
    return _mm512_cvtepi32_ps(_mm512_maskz_permutexvar_epi8(0x1111111111111111, reader->pick, bytes));
}

/* Elements [first, first + valid) as f32, 1 <= valid <= 16; lanes beyond are any value. `tight`: no byte beyond theirs
 * may be read. */
INLINE __m512 load(enum source from, const struct reader *reader, int64_t first, int64_t valid, bool tight)
{
    const uint8_t *at = reader->at + first * reader->step;
    const __mmask16 lanes = (__mmask16)low_bits(valid);

    if (from == FROM_PIXELS)
        return load_pixels(reader, first, valid, tight);
    if (from == FROM_F32)
        return tight ? _mm512_maskz_loadu_ps(lanes, at) : _mm512_loadu_ps(at);
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(tight ? _mm_maskz_loadu_epi8(lanes, at)
                                                         : _mm_loadu_si128((const __m128i *)(const void *)at)));
}

/* ---- rounding and packing -----------------------------------------------------------------------------------------
 */

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
INLINE __m512i round_bf16(__m512 y)
{
    __m512i bits = _mm512_castps_si512(y), upper = _mm512_srli_epi32(bits, 16);
    __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    return _mm512_mask_or_epi32(_mm512_srli_epi32(sum, 16), _mm512_cmp_ps_mask(y, y, _CMP_UNORD_Q), upper,
                                _mm512_set1_epi32(0x40));
}

/* The instruction takes subnormals as zero and is right otherwise, so vectors with subnormals go the long way. It is
 * spelled as assembly because the rest of this file must not assume AVX512_BF16. */
INLINE __m512i to_bf16(__m512 y0, __m512 y1, bool native)
{
    enum { SUBNORMAL = 0x20 };

    if (native && !(_mm512_fpclass_ps_mask(y0, SUBNORMAL) | _mm512_fpclass_ps_mask(y1, SUBNORMAL))) {
        __m512i both;
        __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(both) : "v"(y1), "v"(y0));
        return both;
    }
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7),
                                    _mm512_packus_epi32(round_bf16(y0), round_bf16(y1)));
}

INLINE __m512i to_f16(__m512 y0, __m512 y1)
{
    return _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm512_cvtps_ph(y0, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)),
        _mm512_cvtps_ph(y1, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), 1);
}

INLINE __m512i to_bytes(enum stki_convert_dst to, const __m512 *y, const struct levels *levels)
{
    __m512i low = _mm512_packs_epi32(_mm512_cvtps_epi32(level(y[0], levels)), _mm512_cvtps_epi32(level(y[1], levels)));
    __m512i high = _mm512_packs_epi32(_mm512_cvtps_epi32(level(y[2], levels)), _mm512_cvtps_epi32(level(y[3], levels)));
    __m512i bytes = to == STKI_DST_U8 ? _mm512_packus_epi16(low, high) : _mm512_packs_epi16(low, high);
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), bytes);
}

INLINE __m512i pack(enum stki_convert_dst to, const __m512 *y, const struct levels *levels, bool native)
{
    switch (to) {
    case STKI_DST_U8:
    case STKI_DST_I8:
        return to_bytes(to, y, levels);
    case STKI_DST_F16:
        return to_f16(y[0], y[1]);
    case STKI_DST_BF16:
        return to_bf16(y[0], y[1], native);
    case STKI_DST_I32:
        return to_i32(y[0], levels);
    default:
        return _mm512_castps_si512(y[0]);
    }
}

/* ---- runs ---------------------------------------------------------------------------------------------------------
 */

/* What stays the same over all runs of a call. */
struct kernel {
    const stki_lane *lane;
    struct reader reader;
    struct pairs pairs;
    struct levels levels;
    bool native;
};

INLINE void set_pairs(struct pairs *pairs, enum pairing pairing, const stki_lane *lane, int64_t channel)
{
    *pairs = (struct pairs){.a_at = lane->a, .b_at = lane->b, .phase = channel, .period = lane->period};
    if (pairing == PAIR_ONE) {
        pairs->a[0] = _mm512_set1_ps(lane->a[channel]);
        pairs->b[0] = _mm512_set1_ps(lane->b[channel]);
    } else {
        pairs->advance = WIDTH % lane->period;
    }
}

INLINE void set_turns(struct pairs *pairs)
{
    for (int k = 0; k < 3; k++) {
        int64_t phase = (pairs->phase + k * WIDTH) % pairs->period;
        pairs->a[k] = _mm512_loadu_ps(pairs->a_at + phase);
        pairs->b[k] = _mm512_loadu_ps(pairs->b_at + phase);
    }
}

INLINE void set_levels(struct levels *levels, const stki_lane *lane)
{
    levels->zero_point = _mm512_set1_ps(lane->zero_point);
    levels->low = _mm512_set1_ps(lane->low);
    levels->high = _mm512_set1_ps(lane->high);
}

/* Elements [first, first + valid) as one line of the destination; `turn` counts vectors since set_turns. */
INLINE __m512i line(enum source from, enum stki_convert_dst to, enum pairing pairing, struct kernel *kernel,
                    int64_t first, int64_t valid, bool tight, int turn)
{
    const int groups = LINE / element_size(to) / WIDTH;
    struct pairs *pairs = &kernel->pairs;
    __m512 y[4];

    for (int k = 0; k < groups; k++) {
        int64_t here = valid - k * WIDTH < WIDTH ? valid - k * WIDTH : WIDTH;
        int set = pairing == PAIR_TURNS ? (turn + k) % 3 : 0;
        y[k] = _mm512_setzero_ps();
        if (here <= 0)
            continue;
        __m512 x = load(from, &kernel->reader, first + k * WIDTH, here, tight);
        if (pairing == PAIR_WALK) {
            pairs->a[0] = _mm512_loadu_ps(pairs->a_at + pairs->phase);
            pairs->b[0] = _mm512_loadu_ps(pairs->b_at + pairs->phase);
            pairs->phase += here < WIDTH ? here % pairs->period : pairs->advance;
            if (pairs->phase >= pairs->period)
                pairs->phase -= pairs->period;
        }
        y[k] = _mm512_fmadd_ps(x, pairs->a[set], pairs->b[set]);
    }
    return pack(to, y, &kernel->levels, kernel->native);
}

/* Whole lines from element i on, as far as elements [i, end) reach; returns where it stopped. */
INLINE int64_t lines(enum source from, enum stki_convert_dst to, enum pairing pairing, struct kernel *kernel,
                     uint8_t *dst, int64_t i, int64_t end, bool tight, bool streaming)
{
    const int size = element_size(to), groups = LINE / size / WIDTH;
    const int64_t whole = LINE / size;

    if (pairing == PAIR_WALK && 3 * WIDTH % kernel->pairs.period == 0) {
        set_turns(&kernel->pairs);
        for (; i + 3 * whole <= end; i += 3 * whole)
            for (int k = 0; k < 3; k++)
                store(dst + (i + k * whole) * size,
                      line(from, to, PAIR_TURNS, kernel, i + k * whole, whole, tight, k * groups), streaming);
    }
    const int64_t count = end > i ? (end - i) / whole : 0;
    const bool down = from == FROM_PIXELS && kernel->lane->downwards;
    for (int64_t k = 0; k < count; k++) {
        int64_t at = i + (down ? count - 1 - k : k) * whole;
        store(dst + at * size, line(from, to, pairing, kernel, at, whole, tight, 0), streaming);
    }
    return i + count * whole;
}

/* `ahead` more elements follow the n in the source and may be read. */
INLINE void run(enum source from, enum stki_convert_dst to, enum pairing pairing, struct kernel *kernel, uint8_t *dst,
                int64_t n, int64_t ahead)
{
    const int size = element_size(to);
    const int64_t behind = (int64_t)((uintptr_t)dst % LINE);
    const bool aligned = behind % size == 0;
    int64_t i = 0;

    if (aligned && behind && n > 0) {
        i = (LINE - behind) / size < n ? (LINE - behind) / size : n;
        _mm512_mask_storeu_epi8(dst, low_bits(i * size), line(from, to, pairing, kernel, 0, i, true, 0));
    }
    int64_t free = n, beyond = ahead - kernel->reader.room;
    if (from == FROM_PIXELS && beyond < 0)
        free = n + beyond;
    if (kernel->lane->streaming && aligned)
        i = lines(from, to, pairing, kernel, dst, i, free, false, true);
    else
        i = lines(from, to, pairing, kernel, dst, i, free, false, false);
    if (from == FROM_PIXELS)
        i = lines(from, to, pairing, kernel, dst, i, n, true, kernel->lane->streaming && aligned);
    if (i < n)
        _mm512_mask_storeu_epi8(dst + i * size, low_bits((n - i) * size),
                                line(from, to, pairing, kernel, i, n - i, true, 0));
}

INLINE void one_run(enum source from, enum stki_convert_dst to, enum pairing pairing, bool native,
                    const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n, int64_t channel)
{
    struct kernel kernel = {.lane = lane, .reader = {.at = src, .step = from == FROM_F32 ? 4 : 1}, .native = native};

    set_pairs(&kernel.pairs, pairing, lane, channel);
    set_levels(&kernel.levels, lane);
    run(from, to, pairing, &kernel, dst, n, 0);
}

/* ---- pixels ----------------------------------------------------------------------------------------------------- */

INLINE void set_reader(struct reader *reader, const stki_lane *lane, int channel)
{
    const int step = lane->pixel_step, channels = lane->channels, apart = step < 0 ? -step : step;
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

    reader->step = step;
    reader->channels = channels;
    reader->room = (LINE - channels + 2 * apart - 1) / apart - WIDTH;
    reader->pick = _mm512_add_epi32(_mm512_mullo_epi32(lanes, _mm512_set1_epi32(step)),
                                    _mm512_set1_epi32((step < 0 ? LINE - channels : 0) + channel));
}

INLINE void plane(enum stki_convert_dst to, bool native, const stki_lane *lane, uint8_t *dst, const uint8_t *src,
                  const stki_rows *rows, int channel)
{
    struct kernel kernel = {.lane = lane, .native = native};

    set_pairs(&kernel.pairs, PAIR_ONE, lane, channel);
    set_levels(&kernel.levels, lane);
    set_reader(&kernel.reader, lane, channel);
    if (lane->pixel_step < 0)
        src += lane->channels - LINE;
    for (int64_t r = 0; r < rows->rows; r++) {
        kernel.reader.at = src + r * rows->src_row;
        run(FROM_PIXELS, to, PAIR_ONE, &kernel, dst + r * rows->dst_row, rows->n, rows->ahead);
    }
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

#define RUN(name, from, to, pairing)                                                                      \
    static void name(const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n, int64_t channel) \
    {                                                                                                     \
        if (to == STKI_DST_BF16 && lane->native_bf16)                                                     \
            one_run(from, to, pairing, true, lane, dst, src, n, channel);                                 \
        else                                                                                              \
            one_run(from, to, pairing, false, lane, dst, src, n, channel);                                \
    }
#define KERNELS(name, to)                                                                                    \
    RUN(u8_##name, FROM_U8, to, PAIR_ONE)                                                                    \
    RUN(u8_##name##_pattern, FROM_U8, to, PAIR_WALK)                                                         \
    RUN(f32_##name, FROM_F32, to, PAIR_ONE)                                                                  \
    RUN(f32_##name##_pattern, FROM_F32, to, PAIR_WALK)                                                       \
    static void plane_##name(const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows, \
                             int channel)                                                                    \
    {                                                                                                        \
        if (to == STKI_DST_BF16 && lane->native_bf16)                                                        \
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
        .table_u8 = stki_avx512_table_u8,
        .plane = {plane_u8, plane_i8, plane_i32, plane_f16, plane_bf16, plane_f32},
        .table_plane = stki_avx512_table_plane,
        .join = STKI_JOINS,
        .part = STKI_PARTS,
        .split_plane = stki_avx512_split_plane,
        .copy_streaming = stki_avx512_copy_streaming,
    };
    return &kernels;
}
