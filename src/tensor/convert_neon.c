/* convert_neon.c: the kernels for aarch64.
 *
 * Interleaved pixels: four pixels of at most four bytes fit in one register; a table lookup with zeroing selects a
 * channel and widens it to 32 bits. Mirrored rows use another table.
 */
#include "convert_internal.h"
#include "vector_neon.h"
#include <string.h>

enum { ALIGNS = false, TURNS = false };

/* Four pixels are in the 16 bytes that start at byte 0 of the first pixel or, if mirrored, end with its last byte. */
struct reader {
    const uint8_t *at;
    int64_t lead, step, room;
    int size;
    bool alone;
    uint8x16_t pick; /* pixels: which byte goes to which 32-bit lane */
};

INLINE vf load(enum stki_convert_src from, const struct reader *reader, int64_t first, int k, int64_t valid, bool tight)
{
    const uint8_t *at = reader->at + first * reader->step;

    (void)valid, (void)tight; /* always reads a whole vector */
    if (from == STKI_SRC_U8) {
        uint8x16_t unit = vld1q_u8(at); /* one load for all k */
        uint16x8_t half = vmovl_u8(k < 2 ? vget_low_u8(unit) : vget_high_u8(unit));
        return vcvtq_f32_u32(vmovl_u16(k % 2 == 0 ? vget_low_u16(half) : vget_high_u16(half)));
    }
    at += k * WIDTH * reader->step;
    if (from == STKI_SRC_F32)
        return vf_load(at);
    return vcvtq_f32_u32(vreinterpretq_u32_u8(vqtbl1q_u8(vld1q_u8(at), reader->pick)));
}

INLINE void set_reader(struct reader *reader, const stki_lane *lane, int channel)
{
    const int step = lane->pixel_step, apart = step < 0 ? -step : step, lead = step < 0 ? lane->channels - 16 : 0;
    uint8_t pick[16];

    memset(pick, 255, sizeof pick); /* an index outside the table gives 0 */
    for (int i = 0; i < WIDTH; i++)
        pick[4 * i] = (uint8_t)(i * step + channel - lead);
    *reader = (struct reader){.step = step,
                              .size = lane->channels,
                              .room = (16 - lane->channels + 2 * apart - 1) / apart - WIDTH,
                              .lead = lead,
                              .pick = vld1q_u8(pick)};
}

INLINE bool has_shortcut(enum stki_convert_src from, enum stki_convert_dst to, const stki_lane *lane)
{
    (void)from, (void)to, (void)lane;
    return false;
}

/* Not defined for bytes, which `load` reads, and for i64, which no vector instruction converts with a single rounding.
 */
#define F32_OF_u16(at, lanes) vcvtq_f32_u32(vmovl_u16(vreinterpret_u16_u8(vld1_u8(at))))
#define F32_OF_i16(at, lanes) vcvtq_f32_s32(vmovl_s16(vreinterpret_s16_u8(vld1_u8(at))))
#define F32_OF_f16(at, lanes) vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(at)))
#define F32_OF_bf16(at, lanes) vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(at)), 16))
#define F32_OF_i32(at, lanes) vcvtq_f32_s32(vreinterpretq_s32_u8(vld1q_u8(at)))
#define F32_OF_f32(at, lanes) vf_load(at)
#define F32_OF_f64(at, lanes)                                      \
    vcombine_f32(vcvt_f32_f64(vreinterpretq_f64_u8(vld1q_u8(at))), \
                 vcvt_f32_f64(vreinterpretq_f64_u8(vld1q_u8((at) + 16))))

#include "convert_body.h"

/* Uses the deinterleaving loads for 16 pixels at a time; the last pixels, and rows with fewer channels, are processed
 * one by one. */
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

const stki_convert_kernels *stki_convert_kernels_neon(void)
{
    static const stki_convert_kernels kernels = {STKI_CONVERT_BODY, .split_plane = split_plane};

    return &kernels;
}
