/* convert_bytes_avx512.c: bytes to bytes with AVX-512: runs and channels of pixels as they are, or through a table. The
 * 256 possible results of a channel are four registers, and a permute looks up 64 bytes at once.
 */
#include "convert_avx512.h"

/* A run of bytes, or one channel of pixels: then 64 of them are the 64 * |step| bytes from byte 0 of the first one on,
 * or, mirrored, those up to the last byte of the first one. */
struct byte_kernel {
    const stki_lane *lane;
    __m512i table[4], pick;
    const uint8_t *at;
    bool pixels, looked_up;
};

INLINE struct byte_kernel byte_kernel(const stki_lane *lane, bool pixels, bool looked_up, int64_t channel)
{
    struct byte_kernel kernel = {.lane = lane, .pixels = pixels, .looked_up = looked_up};

    for (int k = 0; looked_up && k < 4; k++)
        kernel.table[k] = _mm512_loadu_si512(lane->table + 256 * channel + 64 * k);
    if (pixels)
        kernel.pick = _mm512_add_epi8(_mm512_loadu_si512(lane->pick), _mm512_set1_epi8((char)channel));
    return kernel;
}

/* Bytes [64 k, 64 k + 64) of a window, those outside [low, high) left out. */
INLINE __m512i load_part(const uint8_t *window, int k, int64_t low, int64_t high, bool tight)
{
    int64_t from = low - 64 * k, to = high - 64 * k;

    if (!tight)
        return _mm512_loadu_si512(window + 64 * k);
    return _mm512_maskz_loadu_epi8((to <= 0 ? 0 : low_bits(to)) & ~(from <= 0 ? 0 : low_bits(from)), window + 64 * k);
}

/* One channel of pixels [first, first + valid); 1 <= valid <= 64. */
INLINE __m512i split(const struct byte_kernel *kernel, int64_t first, int64_t valid, bool tight)
{
    const int64_t step = kernel->lane->pixel_step, channels = kernel->lane->channels;
    const bool four = step == 4 || step == -4;
    const int64_t window = four ? 256 : 192;
    const int64_t low = step < 0 ? window - channels + (valid - 1) * step : 0;
    const int64_t high = step < 0 ? window : (valid - 1) * step + channels;
    const uint8_t *at = kernel->at + first * step;
    __m512i part2 = load_part(at, 2, low, high, tight);
    __m512i part3 = four ? load_part(at, 3, low, high, tight) : part2;

    return _mm512_mask_blend_epi8(
        _mm512_movepi8_mask(kernel->pick),
        _mm512_permutex2var_epi8(load_part(at, 0, low, high, tight), kernel->pick, load_part(at, 1, low, high, tight)),
        _mm512_permutex2var_epi8(part2, kernel->pick, part3));
}

INLINE __m512i byte_line(const struct byte_kernel *kernel, int64_t first, int64_t valid, bool tight)
{
    __m512i x;

    if (kernel->pixels)
        x = split(kernel, first, valid, tight);
    else
        x = tight ? _mm512_maskz_loadu_epi8(low_bits(valid), kernel->at + first)
                  : _mm512_loadu_si512(kernel->at + first);
    if (!kernel->looked_up)
        return x;
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(x),
                                  _mm512_permutex2var_epi8(kernel->table[0], x, kernel->table[1]),
                                  _mm512_permutex2var_epi8(kernel->table[2], x, kernel->table[3]));
}

INLINE void bytes(const struct byte_kernel *kernel, uint8_t *dst, int64_t n, int64_t ahead)
{
    const int64_t step = kernel->lane->pixel_step;
    const bool ragged = kernel->pixels && kernel->lane->channels != (step < 0 ? -step : step) && ahead == 0;
    const int64_t free = ragged ? n - 1 : n; /* the last pixel's other bytes need not exist */
    int64_t i = (int64_t)(-(uintptr_t)dst % LINE);

    if (i > n)
        i = n;
    if (i > 0)
        _mm512_mask_storeu_epi8(dst, low_bits(i), byte_line(kernel, 0, i, true));
    const int64_t count = free > i ? (free - i) / LINE : 0;
    const bool down = kernel->pixels && kernel->lane->downwards;
    for (int64_t k = 0; k < count; k++) {
        int64_t at = i + (down ? count - 1 - k : k) * LINE;
        if (kernel->lane->streaming)
            store_unit(dst + at, byte_line(kernel, at, LINE, false), LINE, true);
        else
            store_unit(dst + at, byte_line(kernel, at, LINE, false), LINE, false);
    }
    i += count * LINE;
    if (i < n)
        _mm512_mask_storeu_epi8(dst + i, low_bits(n - i), byte_line(kernel, i, n - i, true));
}

INLINE void byte_plane(bool looked_up, const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows,
                       int channel)
{
    struct byte_kernel kernel = byte_kernel(lane, true, looked_up, channel);

    if (lane->pixel_step < 0)
        src += lane->channels + 64 * lane->pixel_step;
    for (int64_t r = 0; r < rows->rows; r++) {
        kernel.at = src + r * rows->src_row;
        bytes(&kernel, dst + r * rows->dst_row, rows->n, rows->ahead);
    }
}

void stki_avx512_table_u8(const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n, int64_t channel)
{
    struct byte_kernel kernel = byte_kernel(lane, false, true, channel);

    kernel.at = src;
    bytes(&kernel, dst, n, 0);
}

void stki_avx512_table_plane(const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows,
                             int channel)
{
    byte_plane(true, lane, dst, src, rows, channel);
}

void stki_avx512_split_plane(const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows,
                             int channel)
{
    byte_plane(false, lane, dst, src, rows, channel);
}
