/* convert_avx2.c: the kernels for AVX2 with FMA and F16C.
 *
 * Interleaved pixels: eight pixels are two loads of 16 bytes with four pixels each, placed so that they read nothing
 * outside the eight pixels. One byte shuffle with zeroing selects a channel and widens it to 32 bits. Mirrored rows use
 * another shuffle. Bytes that remain bytes are split into planes by shuffles of 16 bytes. */
#include "convert_internal.h"
#include "vector_avx2.h"

/* 16 pixels are three or four registers of 16 bytes. A shuffle of each keeps its bytes of one channel, and the results
 * are ORed. The two halves of a 32-byte register hold two such groups of 16 pixels. */
struct splitter {
    __m256i pick[4];
    int64_t step, low; /* low: offset of the lowest byte of 16 pixels from byte 0 of the first pixel */
    int parts;
};

INLINE struct splitter splitter(const stki_lane *lane, int channel)
{
    const int step = lane->pixel_step, parts = step < 0 ? -step : step;
    struct splitter splitter = {.step = step, .low = step < 0 ? 15 * step : 0, .parts = parts};

    for (int k = 0; k < parts; k++) {
        uint8_t pick[16];
        for (int i = 0; i < 16; i++) {
            int at = (step < 0 ? (15 - i) * -step : i * step) + channel - 16 * k;
            pick[i] = (uint8_t)(at >= 0 && at < 16 ? at : 128);
        }
        splitter.pick[k] = _mm256_broadcastsi128_si256(bytes_16(pick));
    }
    return splitter;
}

INLINE __m256i split(const struct splitter *splitter, const uint8_t *src, int64_t first, int parts)
{
    const uint8_t *at = src + first * splitter->step + splitter->low;
    const uint8_t *other = at + 16 * splitter->step;
    __m256i bytes = _mm256_setzero_si256();

    for (int k = 0; k < parts; k++) {
        __m256i part =
            _mm256_inserti128_si256(_mm256_castsi128_si256(bytes_16(at + 16 * k)), bytes_16(other + 16 * k), 1);
        bytes = _mm256_or_si256(bytes, _mm256_shuffle_epi8(part, splitter->pick[k]));
    }
    return bytes;
}

INLINE void split_singly(const struct splitter *splitter, uint8_t *dst, const uint8_t *src, int channel, int64_t first,
                         int64_t last)
{
    for (int64_t i = first; i < last; i++)
        dst[i] = src[i * splitter->step + channel];
}

INLINE void split_row(int parts, const struct splitter *splitter, const stki_lane *lane, uint8_t *dst,
                      const uint8_t *src, int64_t n, int channel)
{
    const bool ragged = parts != lane->channels;
    int64_t i = (int64_t)(-(uintptr_t)dst % LINE), end = ragged && splitter->step > 0 ? n - 1 : n;

    if (ragged && splitter->step < 0 && i == 0)
        i = LINE;
    if (i > n)
        i = n;
    split_singly(splitter, dst, src, channel, 0, i);
    for (; i + LINE <= end; i += LINE) {
        __m256i *at = (__m256i *)(void *)(dst + i);
        __m256i low = split(splitter, src, i, parts), high = split(splitter, src, i + UNIT, parts);
        if (lane->streaming) {
            _mm256_stream_si256(at, low);
            _mm256_stream_si256(at + 1, high);
        } else {
            _mm256_store_si256(at, low);
            _mm256_store_si256(at + 1, high);
        }
    }
    split_singly(splitter, dst, src, channel, i, n);
}

static void split_plane(const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows, int channel)
{
    struct splitter by = splitter(lane, channel);

    for (int64_t r = 0; r < rows->rows; r++)
        if (by.parts == 3)
            split_row(3, &by, lane, dst + r * rows->dst_row, src + r * rows->src_row, rows->n, channel);
        else
            split_row(4, &by, lane, dst + r * rows->dst_row, src + r * rows->src_row, rows->n, channel);
}

enum { ALIGNS = true, TURNS = false };

struct reader {
    const uint8_t *at;
    int64_t lead, step, room;
    int size;
    bool alone;
    vi pick;              /* pixels: which byte goes to which 32-bit lane */
    int64_t half0, half1; /* pixels: where the two loads start, relative to the pixel */
};

INLINE vi load_pixels(const struct reader *reader, const uint8_t *at)
{
    __m256i low = _mm256_castsi128_si256(bytes_16(at + reader->half0));

    return _mm256_shuffle_epi8(_mm256_inserti128_si256(low, bytes_16(at + reader->half1), 1), reader->pick);
}

INLINE vf load(enum stki_convert_src from, const struct reader *reader, int64_t first, int k, int64_t valid, bool tight)
{
    const uint8_t *at = reader->at + (first + k * WIDTH) * reader->step;

    (void)valid, (void)tight; /* always reads a whole vector */
    if (from == STKI_SRC_F32)
        return vf_load(at);
    return vf_of_i32(from == STKI_SRC_U8 ? _mm256_cvtepu8_epi32(bytes_8(at)) : load_pixels(reader, at));
}

/* [mirrored][four bytes per pixel]: the byte of channel 0 for each 32-bit lane; 0x80 gives zero. The second load of
 * three-byte pixels starts 8 bytes after the first, so that its fourth byte belongs to pixel 4. */
#define LANES(a, b, c, d) a, 128, 128, 128, b, 128, 128, 128, c, 128, 128, 128, d, 128, 128, 128
static const uint8_t picks[2][2][32] = {
    {{LANES(0, 3, 6, 9), LANES(4, 7, 10, 13)}, {LANES(0, 4, 8, 12), LANES(0, 4, 8, 12)}},
    {{LANES(13, 10, 7, 4), LANES(9, 6, 3, 0)}, {LANES(12, 8, 4, 0), LANES(12, 8, 4, 0)}}};

/* If pixels have more bytes than channels (RGBX), the extra bytes of the pixel at the highest address may be outside
 * the buffer and are not read. */
INLINE void set_reader(struct reader *reader, const stki_lane *lane, int channel)
{
    const int step = lane->pixel_step, apart = step < 0 ? -step : step;
    const bool mirrored = step < 0, four = apart == 4, ragged = apart != lane->channels;
    const int64_t low = mirrored ? 7 * step : 0, high = low + (four ? 16 : 8);

    *reader = (struct reader){.step = step,
                              .size = lane->channels,
                              .room = ragged && !mirrored,
                              .alone = ragged && mirrored,
                              .half0 = mirrored ? high : low,
                              .half1 = mirrored ? low : high,
                              .pick = _mm256_add_epi32(vi_load(picks[mirrored][four]), _mm256_set1_epi32(channel))};
}

/* The shortcut for results whose magnitude is known to be below 2^30. Packing saturates, so the zero point is added
 * between the two packings and the limits are applied to bytes: what saturates in 16 bits is out of range for 8 bits,
 * for any zero point. */
#define STKI_TAME_BYTES
struct tame_levels {
    vi zero_point, low, high;
};

INLINE struct tame_levels tame_levels(const stki_lane *lane)
{
    return (struct tame_levels){_mm256_set1_epi16((int16_t)lane->zero_point), _mm256_set1_epi8((char)(int)lane->low),
                                _mm256_set1_epi8((char)(int)lane->high)};
}

INLINE vunit pack_tame_bytes(bool is_signed, const vf *y, const struct tame_levels *levels)
{
    vi low = _mm256_packs_epi32(vi_of_f32(y[0]), vi_of_f32(y[1]));
    vi high = _mm256_packs_epi32(vi_of_f32(y[2]), vi_of_f32(y[3]));

    low = _mm256_adds_epi16(low, levels->zero_point);
    high = _mm256_adds_epi16(high, levels->zero_point);
    if (is_signed)
        return in_order(_mm256_min_epi8(_mm256_max_epi8(_mm256_packs_epi16(low, high), levels->low), levels->high));
    return in_order(_mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(low, high), levels->low), levels->high));
}

INLINE bool has_shortcut(enum stki_convert_src from, enum stki_convert_dst to, const stki_lane *lane)
{
    return from != STKI_SRC_F32 && to != STKI_DST_I32 && to != STKI_DST_F32 && lane->tame;
}

#define F32_OF_u8(at, lanes) vf_of_i32(_mm256_cvtepu8_epi32(bytes_8(at)))
#define F32_OF_i8(at, lanes) vf_of_i32(_mm256_cvtepi8_epi32(bytes_8(at)))
#define F32_OF_u16(at, lanes) vf_of_i32(_mm256_cvtepu16_epi32(bytes_16(at)))
#define F32_OF_i16(at, lanes) vf_of_i32(_mm256_cvtepi16_epi32(bytes_16(at)))
#define F32_OF_f16(at, lanes) _mm256_cvtph_ps(bytes_16(at))
#define F32_OF_bf16(at, lanes) vf_of_bits(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bytes_16(at)), 16))
#define F32_OF_i32(at, lanes) vf_of_i32(vi_load(at))
#define F32_OF_f32(at, lanes) vf_load(at)
#define F32_OF_f64(at, lanes) vf_of_f64(vd_load(at), vd_load((at) + UNIT))

#include "convert_body.h"

const stki_convert_kernels *stki_convert_kernels_avx2(void)
{
    static const stki_convert_kernels kernels = {
        STKI_CONVERT_BODY,
        .split_plane = split_plane,
    };
    return &kernels;
}
