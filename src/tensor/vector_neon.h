/* vector_neon.h: vectors of NEON (aarch64), under the names that the *_body.h files use.
 *
 * A unit is 16 elements: four vectors of f32, stored as 16, 32 or 64 bytes. NEON has no effective non-temporal stores,
 * so streaming stores are ordinary stores.
 */
#ifndef STKI_VECTOR_NEON_H
#define STKI_VECTOR_NEON_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define STKI_MASKED 0 /* partial vectors go through a buffer */

enum { WIDTH = 4, UNIT = 16, LINE = 16 };
#define PER_UNIT(size) UNIT

typedef float32x4_t vf; /* WIDTH f32 */
typedef int32x4_t vi;   /* WIDTH i32 */
typedef struct vunit {
    uint8x16_t part[4]; /* only those that the elements need are used */
} vunit;

INLINE vf vf_load(const void *at)
{
    return vreinterpretq_f32_u8(vld1q_u8(at));
}

INLINE void vf_store(void *to, vf x)
{
    vst1q_u8(to, vreinterpretq_u8_f32(x));
}

INLINE void store_unit(void *to, vunit x, int64_t bytes, bool streaming)
{
    (void)streaming;
    for (int k = 0; k < bytes / 16; k++)
        vst1q_u8((uint8_t *)to + 16 * k, x.part[k]);
}

INLINE void copy_line(void *to, const void *from, bool streaming)
{
    (void)streaming;
    memcpy(to, from, LINE);
}

/* Stores less than a line. */
INLINE void copy_some(void *to, const void *from, int64_t bytes)
{
    memcpy(to, from, (size_t)bytes);
}

/* ---- arithmetic ---- */

#define vf_all vdupq_n_f32
#define vf_add vaddq_f32
#define vf_min vminq_f32
#define vf_max vmaxq_f32
#define vi_of_f32 vcvtq_s32_f32 /* saturates */
#define vi_of_f32_saturated vcvtq_s32_f32
#define vi_bits_of vreinterpretq_s32_f32

INLINE vf vf_fma(vf a, vf b, vf c)
{
    return vfmaq_f32(c, a, b);
}

/* Rounds to nearest even; NaN becomes 0. */
INLINE vf vf_rint(vf x)
{
    return vrndnq_f32(vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(x), vceqq_f32(x, x))));
}

/* ---- packing ---- */

/* The upper halves, rounded to nearest even by integer addition; NaN made quiet. */
INLINE uint16x4_t round_bf16(vf x)
{
    uint32x4_t bits = vreinterpretq_u32_f32(x), upper = vshrq_n_u32(bits, 16);
    uint32x4_t odd = vandq_u32(upper, vdupq_n_u32(1));
    uint32x4_t sum = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);

    return vmovn_u32(vbslq_u32(vceqq_f32(x, x), vshrq_n_u32(sum, 16), vorrq_u32(upper, vdupq_n_u32(0x40))));
}

INLINE vunit pack_bf16(const vf *x, bool shortcut, bool tame)
{
    vunit unit;

    (void)shortcut, (void)tame;
    for (int k = 0; k < 2; k++)
        unit.part[k] = vreinterpretq_u8_u16(vcombine_u16(round_bf16(x[2 * k]), round_bf16(x[2 * k + 1])));
    return unit;
}

INLINE vunit pack_f16(const vf *x)
{
    vunit unit;

    for (int k = 0; k < 2; k++)
        unit.part[k] = vreinterpretq_u8_f16(vcombine_f16(vcvt_f16_f32(x[2 * k]), vcvt_f16_f32(x[2 * k + 1])));
    return unit;
}

/* Packs four vectors of i32 into bytes, with saturation. */
INLINE vunit pack_bytes(bool is_signed, const vi *x)
{
    int16x8_t low = vcombine_s16(vqmovn_s32(x[0]), vqmovn_s32(x[1]));
    int16x8_t high = vcombine_s16(vqmovn_s32(x[2]), vqmovn_s32(x[3]));
    vunit unit;

    unit.part[0] = is_signed ? vreinterpretq_u8_s8(vcombine_s8(vqmovn_s16(low), vqmovn_s16(high)))
                             : vcombine_u8(vqmovun_s16(low), vqmovun_s16(high));
    return unit;
}

INLINE vunit pack_i32(const vi *x)
{
    vunit unit;

    for (int k = 0; k < 4; k++)
        unit.part[k] = vreinterpretq_u8_s32(x[k]);
    return unit;
}

#endif
