/* convert_neon.c: the kernels for aarch64. NEON has no non-temporal stores worth their name, so nothing streams here.
 *
 * The unit of work is 16 elements: four vectors of f32, stored as 16, 32 or 64 bytes. The rest of a run goes through a
 * small buffer and the same code, so that there is no second arithmetic for the edges.
 *
 * Interleaved pixels: four pixels of at most four bytes are one register; a table look-up with zeroing picks a channel
 * and widens it. A mirrored row differs only in the table.
 */
#include "convert_internal.h"
#include "convert_planes.h"
#include <arm_neon.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { WIDTH = 4, UNIT = 16, GROUPS = 4 };

enum source { FROM_U8, FROM_F32, FROM_PIXELS };

/* Where elements come from. Four pixels are the 16 bytes from byte 0 of the first one on; mirrored, the 16 bytes up to
 * the last one of the first pixel. */
struct reader {
    const uint8_t *at;
    int64_t step;    /* bytes from element to element */
    int64_t lead;    /* pixels: from byte 0 of the first of four to where the load starts */
    uint8x16_t pick; /* pixels: which byte goes to which 32-bit lane */
    int64_t room;    /* pixels: how far from the last one all 16 bytes may still be read */
    int size;        /* bytes that each element surely has */
};

struct levels {
    float32x4_t zero_point, low, high;
};

struct pairs {
    float32x4_t a, b; /* one pair for all */
    const float *a_at, *b_at;
    int64_t phase, advance, period; /* pairs that repeat */
};

/* What stays the same over all runs of a call. */
struct kernel {
    struct reader reader;
    struct pairs pairs;
    struct levels levels;
};

INLINE int element_size(enum stki_convert_dst to)
{
    return to == STKI_DST_U8 || to == STKI_DST_I8 ? 1 : to == STKI_DST_F16 || to == STKI_DST_BF16 ? 2 : 4;
}

/* Elements [first, first + 16) as f32. */
INLINE float32x4x4_t load(enum source from, const struct reader *reader, int64_t first)
{
    const uint8_t *at = reader->at + first * reader->step;
    float32x4x4_t x;

    if (from == FROM_U8) {
        uint8x16_t bytes = vld1q_u8(at);
        uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_u8(vget_high_u8(bytes));
        x.val[0] = vcvtq_f32_u32(vmovl_u16(vget_low_u16(low)));
        x.val[1] = vcvtq_f32_u32(vmovl_u16(vget_high_u16(low)));
        x.val[2] = vcvtq_f32_u32(vmovl_u16(vget_low_u16(high)));
        x.val[3] = vcvtq_f32_u32(vmovl_u16(vget_high_u16(high)));
        return x;
    }
    for (int k = 0; k < GROUPS; k++)
        if (from == FROM_F32)
            x.val[k] = vreinterpretq_f32_u8(vld1q_u8(at + 16 * k));
        else
            x.val[k] = vcvtq_f32_u32(
                vreinterpretq_u32_u8(vqtbl1q_u8(vld1q_u8(at + WIDTH * k * reader->step + reader->lead), reader->pick)));
    return x;
}

/* clamp(rint(y) + zero_point, low, high); NaN counts as 0 before the zero point is added. */
INLINE int32x4_t level(float32x4_t y, const struct levels *levels)
{
    uint32x4_t number = vceqq_f32(y, y);
    float32x4_t q = vrndnq_f32(vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(y), number)));

    q = vaddq_f32(q, levels->zero_point);
    return vcvtq_s32_f32(vminq_f32(vmaxq_f32(q, levels->low), levels->high)); /* saturates */
}

/* The upper halves, rounded to nearest even by integer addition; NaN made quiet. */
INLINE uint16x4_t to_bf16(float32x4_t y)
{
    uint32x4_t bits = vreinterpretq_u32_f32(y), upper = vshrq_n_u32(bits, 16);
    uint32x4_t odd = vandq_u32(upper, vdupq_n_u32(1));
    uint32x4_t sum = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
    return vmovn_u32(vbslq_u32(vceqq_f32(y, y), vshrq_n_u32(sum, 16), vorrq_u32(upper, vdupq_n_u32(0x40))));
}

INLINE void store(enum stki_convert_dst to, uint8_t *dst, const float32x4_t *y, const struct levels *levels)
{
    int16x8_t low, high;

    switch (to) {
    case STKI_DST_U8:
    case STKI_DST_I8:
        low = vcombine_s16(vqmovn_s32(level(y[0], levels)), vqmovn_s32(level(y[1], levels)));
        high = vcombine_s16(vqmovn_s32(level(y[2], levels)), vqmovn_s32(level(y[3], levels)));
        if (to == STKI_DST_U8)
            vst1q_u8(dst, vcombine_u8(vqmovun_s16(low), vqmovun_s16(high)));
        else
            vst1q_u8(dst, vreinterpretq_u8_s8(vcombine_s8(vqmovn_s16(low), vqmovn_s16(high))));
        break;
    case STKI_DST_F16:
        for (int k = 0; k < GROUPS; k++)
            vst1_u8(dst + 8 * k, vreinterpret_u8_f16(vcvt_f16_f32(y[k])));
        break;
    case STKI_DST_BF16:
        for (int k = 0; k < GROUPS; k++)
            vst1_u8(dst + 8 * k, vreinterpret_u8_u16(to_bf16(y[k])));
        break;
    case STKI_DST_I32:
        for (int k = 0; k < GROUPS; k++)
            vst1q_u8(dst + 16 * k, vreinterpretq_u8_s32(level(y[k], levels)));
        break;
    default:
        for (int k = 0; k < GROUPS; k++)
            vst1q_u8(dst + 16 * k, vreinterpretq_u8_f32(y[k]));
        break;
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
        pairs->a = vdupq_n_f32(lane->a[channel]);
        pairs->b = vdupq_n_f32(lane->b[channel]);
    }
}

INLINE void set_levels(struct levels *levels, const stki_lane *lane)
{
    levels->zero_point = vdupq_n_f32(lane->zero_point);
    levels->low = vdupq_n_f32(lane->low);
    levels->high = vdupq_n_f32(lane->high);
}

/* Elements [first, first + 16) to dst[0, 16). */
INLINE void unit(enum source from, enum stki_convert_dst to, bool pattern, struct kernel *kernel,
                 const struct reader *reader, uint8_t *dst, int64_t first)
{
    struct pairs *pairs = &kernel->pairs;
    float32x4x4_t x = load(from, reader, first);
    float32x4_t y[GROUPS];

    for (int k = 0; k < GROUPS; k++) {
        if (pattern) {
            pairs->a = vld1q_f32(pairs->a_at + pairs->phase);
            pairs->b = vld1q_f32(pairs->b_at + pairs->phase);
            pairs->phase += pairs->advance;
            if (pairs->phase >= pairs->period)
                pairs->phase -= pairs->period;
        }
        y[k] = vfmaq_f32(pairs->b, x.val[k], pairs->a);
    }
    store(to, dst, y, &kernel->levels);
}

/* Elements [first, first + valid), at most a unit, by way of a buffer; nothing else is read or written. */
INLINE void partial(enum source from, enum stki_convert_dst to, bool pattern, struct kernel *kernel, uint8_t *dst,
                    int64_t first, int64_t valid)
{
    enum { ROOM = 4 * UNIT };
    uint8_t in[2 * ROOM] = {0}, out[ROOM];
    const uint8_t *at = kernel->reader.at + first * kernel->reader.step;
    struct reader own = kernel->reader;
    int64_t phase = kernel->pairs.phase, reach = (valid - 1) * own.step;

    own.at = own.step < 0 ? in + ROOM : in;
    if (own.step < 0)
        memcpy(in + ROOM + reach, at + reach, (size_t)(own.size - reach));
    else
        memcpy(in, at, (size_t)(reach + own.size));
    unit(from, to, pattern, kernel, &own, out, 0);
    if (pattern)
        kernel->pairs.phase = (phase + valid) % kernel->pairs.period;
    memcpy(dst, out, (size_t)(valid * element_size(to)));
}

/* `ahead` more elements follow the n in the source and may be read. */
INLINE void run(enum source from, enum stki_convert_dst to, bool pattern, struct kernel *kernel, uint8_t *dst,
                int64_t n, int64_t ahead)
{
    const int size = element_size(to);
    int64_t i = 0, beyond = ahead - kernel->reader.room, end = beyond < 0 ? n + beyond : n;

    for (; i + UNIT <= end; i += UNIT)
        unit(from, to, pattern, kernel, &kernel->reader, dst + i * size, i);
    for (; i < n; i += UNIT)
        partial(from, to, pattern, kernel, dst + i * size, i, n - i < UNIT ? n - i : UNIT);
}

INLINE void one_run(enum source from, enum stki_convert_dst to, bool pattern, const stki_lane *lane, uint8_t *dst,
                    const uint8_t *src, int64_t n, int64_t channel)
{
    const int size = from == FROM_F32 ? 4 : 1;
    struct kernel kernel = {.reader = {.at = src, .step = size, .size = size}};

    set_pairs(&kernel.pairs, pattern, lane, channel);
    set_levels(&kernel.levels, lane);
    run(from, to, pattern, &kernel, dst, n, 0);
}

/* ---- pixels -------------------------------------------------------------------------------------------------------
 */

INLINE void set_reader(struct reader *reader, const stki_lane *lane, int channel)
{
    const int step = lane->pixel_step, apart = step < 0 ? -step : step, lead = step < 0 ? lane->channels - 16 : 0;
    uint8_t pick[16];

    memset(pick, 255, sizeof pick); /* outside the table: gives 0 */
    for (int i = 0; i < WIDTH; i++)
        pick[4 * i] = (uint8_t)(i * step + channel - lead);
    *reader = (struct reader){.step = step,
                              .lead = lead,
                              .pick = vld1q_u8(pick),
                              .room = (16 - lane->channels + 2 * apart - 1) / apart - WIDTH,
                              .size = lane->channels};
}

INLINE void plane(enum stki_convert_dst to, const stki_lane *lane, uint8_t *dst, const uint8_t *src,
                  const stki_rows *rows, int channel)
{
    struct kernel kernel;

    set_pairs(&kernel.pairs, false, lane, channel);
    set_levels(&kernel.levels, lane);
    set_reader(&kernel.reader, lane, channel);
    for (int64_t r = 0; r < rows->rows; r++) {
        kernel.reader.at = src + r * rows->src_row;
        run(FROM_PIXELS, to, false, &kernel, dst + r * rows->dst_row, rows->n, rows->ahead);
    }
}

/* 16 pixels at a time by the de-interleaving loads; the last ones and rows with fewer channels one by one. */
static void split_plane(const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows, int channel)
{
    const int step = lane->pixel_step, apart = step < 0 ? -step : step;

    for (int64_t r = 0; r < rows->rows; r++) {
        const uint8_t *from = src + r * rows->src_row;
        uint8_t *to = dst + r * rows->dst_row;
        int64_t i = 0;
        for (; apart == lane->channels && i + UNIT <= rows->n; i += UNIT) {
            const uint8_t *at = from + i * step + (step < 0 ? 15 * step : 0);
            uint8x16_t bytes = apart == 3 ? vld3q_u8(at).val[channel] : vld4q_u8(at).val[channel];
            if (step < 0) {
                bytes = vrev64q_u8(bytes);
                bytes = vextq_u8(bytes, bytes, 8);
            }
            vst1q_u8(to + i, bytes);
        }
        for (; i < rows->n; i++)
            to[i] = from[i * step + channel];
    }
}

/* ---- loads --------------------------------------------------------------------------------------------------------
 */

/* Four elements a step, the last ones by way of a buffer. */
#define LOAD(name, bytes_each, from_memory)                                 \
    static void load_##name(float *dst, const uint8_t *src, int64_t n)      \
    {                                                                       \
        int64_t i = 0;                                                      \
        for (; i + WIDTH <= n; i += WIDTH) {                                \
            const uint8_t *at = src + i * bytes_each;                       \
            vst1q_f32(dst + i, from_memory);                                \
        }                                                                   \
        if (i < n) {                                                        \
            uint8_t at[WIDTH * bytes_each] = {0};                           \
            float last[WIDTH];                                              \
            memcpy(at, src + i * bytes_each, (size_t)(n - i) * bytes_each); \
            vst1q_f32(last, from_memory);                                   \
            memcpy(dst + i, last, (size_t)(n - i) * sizeof(float));         \
        }                                                                   \
    }
#define BYTES_16 vld1_u8(at)
#define BYTES_32 vld1q_u8(at)

LOAD(u16, 2, vcvtq_f32_u32(vmovl_u16(vreinterpret_u16_u8(BYTES_16))))
LOAD(i16, 2, vcvtq_f32_s32(vmovl_s16(vreinterpret_s16_u8(BYTES_16))))
LOAD(f16, 2, vcvt_f32_f16(vreinterpret_f16_u8(BYTES_16)))
LOAD(bf16, 2, vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(BYTES_16), 16)))
LOAD(i32, 4, vcvtq_f32_s32(vreinterpretq_s32_u8(BYTES_32)))
LOAD(f32, 4, vreinterpretq_f32_u8(BYTES_32))
LOAD(f64, 8,
     vcombine_f32(vcvt_f32_f64(vreinterpretq_f64_u8(BYTES_32)), vcvt_f32_f64(vreinterpretq_f64_u8(vld1q_u8(at + 16)))))

/* Left to the compiler: bytes, which the kernels mostly read themselves, and i64, which no vector instruction rounds
 * once. */
#define LOAD_EACH(name, type)                                          \
    static void load_##name(float *dst, const uint8_t *src, int64_t n) \
    {                                                                  \
        for (int64_t i = 0; i < n; i++) {                              \
            type x;                                                    \
            memcpy(&x, src + i * (int64_t)sizeof x, sizeof x);         \
            dst[i] = (float)x;                                         \
        }                                                              \
    }
LOAD_EACH(u8, uint8_t)
LOAD_EACH(i8, int8_t)
LOAD_EACH(i64, int64_t)

/* ---- the table ----------------------------------------------------------------------------------------------------
 */

#define RUN(name, from, to, pattern)                                                                      \
    static void name(const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n, int64_t channel) \
    {                                                                                                     \
        one_run(from, to, pattern, lane, dst, src, n, channel);                                           \
    }
#define KERNELS(name, to)                                                                                    \
    RUN(u8_##name, FROM_U8, to, false)                                                                       \
    RUN(u8_##name##_pattern, FROM_U8, to, true)                                                              \
    RUN(f32_##name, FROM_F32, to, false)                                                                     \
    RUN(f32_##name##_pattern, FROM_F32, to, true)                                                            \
    static void plane_##name(const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows, \
                             int channel)                                                                    \
    {                                                                                                        \
        plane(to, lane, dst, src, rows, channel);                                                            \
    }
KERNELS(u8, STKI_DST_U8)
KERNELS(i8, STKI_DST_I8)
KERNELS(i32, STKI_DST_I32)
KERNELS(f16, STKI_DST_F16)
KERNELS(bf16, STKI_DST_BF16)
KERNELS(f32, STKI_DST_F32)

const stki_convert_kernels *stki_convert_kernels_neon(void)
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
        .split_plane = split_plane,
        .join = STKI_JOINS,
        .part = STKI_PARTS,
    };
    return &kernels;
}
