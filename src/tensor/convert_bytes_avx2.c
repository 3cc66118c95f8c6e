/* convert_bytes_avx2.c: bytes as they are with AVX2: channels of interleaved pixels to planes. */
#include "convert_avx2.h"

/* 16 pixels are three or four registers of 16 bytes; each gives the bytes that it has of a channel, and they are
 * joined. Two such groups go side by side. */
struct splitter {
    __m256i pick[4];
    int64_t step, low; /* low: from byte 0 of the first pixel to the lowest byte of 16 */
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

void stki_avx2_split_plane(const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows, int channel)
{
    struct splitter by = splitter(lane, channel);

    for (int64_t r = 0; r < rows->rows; r++)
        if (by.parts == 3)
            split_row(3, &by, lane, dst + r * rows->dst_row, src + r * rows->src_row, rows->n, channel);
        else
            split_row(4, &by, lane, dst + r * rows->dst_row, src + r * rows->src_row, rows->n, channel);
}
