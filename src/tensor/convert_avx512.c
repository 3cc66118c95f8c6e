/* convert_avx512.c: the kernels for AVX-512 with byte permutes (F, BW, DQ, VL, VBMI: Ice Lake, Zen 4 and later).
 *
 * Interleaved pixels: 16 pixels of at most 4 bytes are at most 64 bytes, one register; one byte permute with zeroing
 * picks the bytes of a channel out of it and widens them to 32 bits in the same step. A mirrored row differs only in
 * the permutation.
 */
#include "convert_avx512.h"

enum { ALIGNS = true, TURNS = true };

enum source { FROM_U8, FROM_F32, FROM_PIXELS };

/* Sixteen pixels are the 64 bytes from byte 0 of the first one on; mirrored, the 64 bytes up to the last one of the
 * first pixel. */
struct reader {
    const uint8_t *at;
    int64_t lead, step, room;
    int size;
    bool alone;
    vi pick; /* pixels: which of the 64 bytes goes to which 32-bit lane */
};

INLINE vi load_pixels(const struct reader *reader, const uint8_t *at, int64_t valid, bool tight)
{
    const int64_t step = reader->step, size = reader->size;
    vi bytes;

    if (!tight)
        bytes = vi_load(at);
    else if (step > 0)
        bytes = _mm512_maskz_loadu_epi8(low_bits((valid - 1) * step + size), at);
    else
        bytes = _mm512_maskz_loadu_epi8(~low_bits(UNIT - size + (valid - 1) * step), at);
    return _mm512_maskz_permutexvar_epi8(0x1111111111111111, reader->pick, bytes);
}

INLINE vf load(enum source from, const struct reader *reader, int64_t first, int k, int64_t valid, bool tight)
{
    const uint8_t *at = reader->at + (first + k * WIDTH) * reader->step;

    if (from == FROM_PIXELS)
        return vf_of_i32(load_pixels(reader, at, valid, tight));
    if (from == FROM_F32)
        return tight ? vf_load_some(at, valid) : vf_load(at);
    return vf_of_i32(_mm512_cvtepu8_epi32(tight ? _mm_maskz_loadu_epi8((__mmask16)low_bits(valid), at) : bytes_16(at)));
}

INLINE void set_reader(struct reader *reader, const stki_lane *lane, int channel)
{
    const int step = lane->pixel_step, apart = step < 0 ? -step : step, lead = step < 0 ? lane->channels - UNIT : 0;
    const vi lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

    *reader = (struct reader){.step = step,
                              .size = lane->channels,
                              .room = (UNIT - lane->channels + 2 * apart - 1) / apart - WIDTH,
                              .lead = lead,
                              .pick = _mm512_add_epi32(_mm512_mullo_epi32(lanes, _mm512_set1_epi32(step)),
                                                       _mm512_set1_epi32(channel - lead))};
}

/* The processor may have an instruction for bf16. */
INLINE bool has_shortcut(enum source from, enum stki_convert_dst to, const stki_lane *lane)
{
    (void)from;
    return to == STKI_DST_BF16 && lane->native_bf16;
}

#define HALVES(convert, load, at, lanes) \
    vf_join(convert(load((__mmask8)(lanes), at)), convert(load((__mmask8)((lanes) >> 8), (at) + UNIT)))
#define F32_OF_u8(at, lanes) vf_of_i32(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(lanes, at)))
#define F32_OF_i8(at, lanes) vf_of_i32(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(lanes, at)))
#define F32_OF_u16(at, lanes) vf_of_i32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, at)))
#define F32_OF_i16(at, lanes) vf_of_i32(_mm512_cvtepi16_epi32(_mm256_maskz_loadu_epi16(lanes, at)))
#define F32_OF_f16(at, lanes) _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, at))
#define F32_OF_bf16(at, lanes) \
    vf_of_bits(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, at)), 16))
#define F32_OF_i32(at, lanes) vf_of_i32(_mm512_maskz_loadu_epi32(lanes, at))
#define F32_OF_f32(at, lanes) _mm512_maskz_loadu_ps(lanes, at)
#define F32_OF_i64(at, lanes) HALVES(_mm512_cvtepi64_ps, _mm512_maskz_loadu_epi64, at, lanes)
#define F32_OF_f64(at, lanes) HALVES(_mm512_cvtpd_ps, _mm512_maskz_loadu_pd, at, lanes)

#include "convert_body.h"

const stki_convert_kernels *stki_convert_kernels_avx512(void)
{
    static const stki_convert_kernels kernels = {
        STKI_CONVERT_BODY,
        .table_u8 = stki_avx512_table_u8,
        .table_plane = stki_avx512_table_plane,
        .split_plane = stki_avx512_split_plane,
    };
    return &kernels;
}
