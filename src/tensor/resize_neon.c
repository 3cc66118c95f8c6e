/* resize_neon.c: both passes with 32-bit products. Horizontal: one output pixel at a time, one channel per lane (three
 * or four channels). Vertical: 16 bytes at a time. */
#include "resize_internal.h"
#include <arm_neon.h>
#include <string.h>

enum { BYTES = 16 };

static uint8x8_t bytes_of(int32x4_t low, int32x4_t high)
{
    const int16x8_t words =
        vcombine_s16(vqmovn_s32(vshrq_n_s32(low, STKI_RESIZE_BITS)), vqmovn_s32(vshrq_n_s32(high, STKI_RESIZE_BITS)));
    return vqmovun_s16(words);
}

static int32x4_t pixel(const uint8_t *in, int channels)
{
    uint32_t word = 0;

    memcpy(&word, in, (size_t)channels);
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(word)))));
}

static inline void row_of_pixels(const stki_resizer *resizer, const uint8_t *in, uint8_t *out, int channels)
{
    const stki_resize_axis *x = &resizer->x;

    for (int64_t i = 0; i < x->out; i++) {
        const uint8_t *from = in + (int64_t)x->first[i] * channels;
        const int32_t *k = x->k + i * x->taps;
        int32x4_t sum = vdupq_n_s32(STKI_RESIZE_HALF);
        uint8_t bytes[8];

        for (int32_t t = 0; t < x->count[i]; t++)
            sum = vmlaq_n_s32(sum, pixel(from + t * channels, channels), k[t]);
        vst1_u8(bytes, bytes_of(sum, sum));
        memcpy(out + i * channels, bytes, (size_t)channels);
    }
}

static void horizontal(const stki_resizer *resizer, const uint8_t *const *in, uint8_t *const *out)
{
    for (int r = 0; r < STKI_RESIZE_ROWS; r++) {
        if (r > 0 && out[r] == out[r - 1])
            return;
        if (resizer->channels == 3)
            row_of_pixels(resizer, in[r], out[r], 3);
        else if (resizer->channels == 4)
            row_of_pixels(resizer, in[r], out[r], 4);
        else
            stki_resize_ref_row(resizer, in[r], out[r], 0);
    }
}

static void vertical(uint8_t *out, const uint8_t *const *rows, const int32_t *k, int64_t taps, int64_t n)
{
    int64_t at = 0;

    for (; at + BYTES <= n; at += BYTES) {
        int32x4_t sum[4];

        for (int i = 0; i < 4; i++)
            sum[i] = vdupq_n_s32(STKI_RESIZE_HALF);
        for (int64_t t = 0; t < taps; t++) {
            const uint8x16_t bytes = vld1q_u8(rows[t] + at);
            const uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_u8(vget_high_u8(bytes));

            sum[0] = vmlaq_n_s32(sum[0], vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(low))), k[t]);
            sum[1] = vmlaq_n_s32(sum[1], vreinterpretq_s32_u32(vmovl_u16(vget_high_u16(low))), k[t]);
            sum[2] = vmlaq_n_s32(sum[2], vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(high))), k[t]);
            sum[3] = vmlaq_n_s32(sum[3], vreinterpretq_s32_u32(vmovl_u16(vget_high_u16(high))), k[t]);
        }
        vst1q_u8(out + at, vcombine_u8(bytes_of(sum[0], sum[1]), bytes_of(sum[2], sum[3])));
    }
    stki_resize_ref_column(out, rows, k, taps, at, n);
}

const stki_resize_kernels stki_resize_neon = {.horizontal = horizontal, .vertical = vertical};
