/* kernel_pixels.h: converts interleaved bytes to planes (HWC to CHW) in one pass. Rows of pixels of three or four bytes
 * may be mirrored and have gaps between them (flips, crops); each channel is multiplied, added, rounded and stored in
 * its plane. The planner ensures that results stored as bytes are not NaN. A block handles a tile of at most 4096
 * pixels:
 *
 *     phase 0  loads its bytes to shared memory, 16 at a time where the row has 16, with any alignment
 *     phase 1  each thread computes 16 bytes of each plane at a time, aligned to 16 bytes in that plane, with adjacent
 *              threads at adjacent addresses; then the few elements before and after those, one per thread
 */
#ifndef STKI_KERNEL_PIXELS_H
#define STKI_KERNEL_PIXELS_H

#include "kernel_runs.h"

enum {
    STKI_PIXELS_TILE = 4096,
    STKI_PIXELS_CHANNELS = 4,
    STKI_PIXELS_LOADS = 4,  /* number of 16-byte loads that a thread has in flight */
    STKI_PIXELS_SLACK = 48, /* a row may start at any offset modulo 16, and a few bytes after its end are read */
    STKI_PIXELS_BYTES = STKI_PIXELS_TILE * STKI_PIXELS_CHANNELS + STKI_PIXELS_SLACK
};

typedef struct stki_pixels_args {
    uint8_t *dst;       /* first pixel of channel 0 */
    const uint8_t *src; /* lowest byte of the row: that of its first pixel, or of its last one if mirrored */
    uint32_t row;       /* pixels */
    uint32_t rows, tile_rows;
    uint32_t segment, segments; /* long rows are divided into segments: pixels per segment, number of segments */
    stki_divisor by_segments;
    int32_t step, channels;          /* bytes from one pixel to the next; planes to write */
    uint32_t pitch;                  /* bytes of a row in shared memory */
    uint32_t row_chunks, row_strips; /* maximum numbers of chunks and of strips in a row of the tile */
    stki_divisor by_row_chunks, by_row_strips;
    int64_t plane[STKI_PIXELS_CHANNELS]; /* bytes from dst */
    float a[STKI_PIXELS_CHANNELS], b[STKI_PIXELS_CHANNELS];
    stki_levels levels;
    stki_nest nest; /* the axes of the rows */
} stki_pixels_args;

/* A row of the tile. */
typedef struct stki_pixels_row {
    uint32_t first, count; /* pixels of the whole row */
    const uint8_t *from;   /* lowest byte */
    uint32_t bytes, shift; /* the row starts `shift` bytes later in shared memory, so that aligned loads stay aligned */
    uint8_t *to;
} stki_pixels_row;

/* False: the tile has no such row. */
STKI_KERNEL_FN int stki_pixels_row_of(const stki_pixels_args *args, uint32_t block, uint32_t row, int size,
                                      int mirrored, stki_pixels_row *out)
{
    const uint32_t group = stki_quotient(args->by_segments, block);
    const uint32_t index = group * args->tile_rows + row;
    stki_offsets at;
    uint32_t skipped;

    if (index >= args->rows)
        return 0;
    at = stki_nest_at(&args->nest, 0, index, 2);
    out->first = (block - group * args->segments) * args->segment;
    out->count = args->row - out->first < args->segment ? args->row - out->first : args->segment;
    skipped = mirrored ? args->row - out->first - out->count : out->first;
    out->from = args->src + at.side[STKI_MAP_SRC] + (int64_t)skipped * args->step;
    out->bytes = (out->count - 1) * (uint32_t)args->step + (uint32_t)args->channels;
    out->shift = (uint32_t)((uintptr_t)out->from % 16);
    out->to = args->dst + at.side[STKI_MAP_DST] + (int64_t)out->first * size;
    return 1;
}

/* Loads a chunk of 16 bytes. Returns 0 if the row has only a part of it, which this function then copies to shared
 * memory. */
STKI_KERNEL_FN int stki_pixels_fetch(const stki_pixels_row *row, uint32_t chunk, uint8_t *shared, stki_words *out)
{
    const int64_t start = (int64_t)chunk * 16 - row->shift; /* relative to the row's first byte */

    if (start >= 0 && start + 16 <= (int64_t)row->bytes) {
        *out = stki_load_words(row->from + start);
        return 1;
    }
    STKI_ROLL
    for (int i = 0; i < 16; i++)
        if (start + i >= 0 && start + i < (int64_t)row->bytes)
            shared[chunk * 16 + (uint32_t)i] = row->from[start + i];
    return 0;
}

STKI_KERNEL_FN void stki_pixels_read(const stki_pixels_args *args, int size, int mirrored, stki_spot spot,
                                     uint8_t *shared)
{
    const uint32_t chunks = args->row_chunks * args->tile_rows;

    for (uint32_t i = spot.thread; i < chunks; i += STKI_PIXELS_LOADS * STKI_BLOCK_THREADS) {
        stki_words words[STKI_PIXELS_LOADS];
        uint32_t place[STKI_PIXELS_LOADS]; /* in shared memory; UINT32_MAX: nothing is left to store */

        STKI_UNROLL
        for (uint32_t k = 0; k < STKI_PIXELS_LOADS; k++) {
            const uint32_t at = i + k * STKI_BLOCK_THREADS, row = stki_quotient(args->by_row_chunks, at);
            const uint32_t chunk = at - row * args->row_chunks;
            stki_pixels_row from;

            place[k] = UINT32_MAX;
            words[k].w[0] = words[k].w[1] = words[k].w[2] = words[k].w[3] = 0;
            if (at < chunks && stki_pixels_row_of(args, spot.block, row, size, mirrored, &from) &&
                stki_pixels_fetch(&from, chunk, shared + row * args->pitch, &words[k]))
                place[k] = row * args->pitch + chunk * 16;
        }
        STKI_UNROLL
        for (uint32_t k = 0; k < STKI_PIXELS_LOADS; k++)
            if (place[k] != UINT32_MAX)
                stki_store_words(shared + place[k], words[k]);
    }
}

/* Computes a strip of one plane from the pixels' bytes. `dst`, `raw`, `step` and `mirrored` are compile-time constants,
 * and so is the position of every byte. */
STKI_KERNEL_FN stki_words stki_pixels_strip(const stki_pixels_args *args, int dst, int raw, int step, int mirrored,
                                            const uint32_t *word, int channel)
{
    const int pixels = 16 / stki_kernel_size(dst);
    stki_words words;
    float y[16];

    words.w[0] = words.w[1] = words.w[2] = words.w[3] = 0;
    STKI_UNROLL
    for (int i = 0; i < 16; i++) {
        if (i >= pixels)
            break;
        const int at = (mirrored ? pixels - 1 - i : i) * step + channel;
        if (raw)
            words.w[i / 4] |= (word[at / 4] >> at % 4 * 8 & 0xff) << i % 4 * 8;
        else
            y[i] = stki_kernel_fma(stki_strip_byte(word[at / 4], at % 4), args->a[channel], args->b[channel]);
    }
    return raw ? words : stki_strip_pack(dst, args->levels, 1, y, pixels);
}

STKI_KERNEL_FN uint64_t stki_pixels_one(const stki_pixels_args *args, int dst, int raw, uint8_t byte, int channel)
{
    if (raw)
        return byte;
    return stki_kernel_store(dst, args->levels,
                             stki_kernel_fma(stki_strip_byte(byte, 0), args->a[channel], args->b[channel]));
}

/* The number of pixels before the first one that is aligned to 16 bytes in the channel's plane. It may differ between
 * planes: 299 x 299 elements are not a multiple of 16 bytes. */
STKI_KERNEL_FN uint32_t stki_pixels_head(const stki_pixels_args *args, const stki_pixels_row *row, int size,
                                         int channel)
{
    const uint32_t place = (uint32_t)((uintptr_t)(row->to + args->plane[channel]) % 16);
    const uint32_t head = (16 - place) % 16 / (uint32_t)size;

    return head < row->count ? head : row->count;
}

/* Whether the plane's elements are not aligned to their size, so that no aligned 16 bytes contain only whole elements.
 */
STKI_KERNEL_FN int stki_pixels_odd(const stki_pixels_args *args, const stki_pixels_row *row, int size, int channel)
{
    return (uintptr_t)(row->to + args->plane[channel]) % (unsigned)size != 0;
}

STKI_KERNEL_FN void stki_pixels_write_one(const stki_pixels_args *args, int dst, int raw, int mirrored,
                                          const stki_pixels_row *row, uint32_t pixel, int channel,
                                          const uint8_t *shared)
{
    const uint32_t at = row->shift + (mirrored ? row->count - 1 - pixel : pixel) * (uint32_t)args->step;
    const int size = stki_kernel_size(dst);

    stki_store_bits(row->to + args->plane[channel] + (int64_t)pixel * size,
                    stki_pixels_one(args, dst, raw, shared[at + (uint32_t)channel], channel), size);
}

/* Loads the bytes of a strip that starts with pixel `first`; its first byte is the lowest of word[0]. */
STKI_KERNEL_FN void stki_pixels_words(const stki_pixels_row *row, int pixels, int step, int mirrored, uint32_t first,
                                      const uint8_t *shared, uint32_t *word)
{
    const uint32_t at = row->shift + (mirrored ? row->count - first - (uint32_t)pixels : first) * (uint32_t)step;
    const uint32_t shift = at % 4 * 8;
    const int words = pixels * step / 4;

    shared += at & ~UINT32_C(3);
    STKI_UNROLL
    for (int i = 0; i < 17; i++)
        if (i <= words)
            word[i] = stki_load_32(shared + 4 * i);
    STKI_UNROLL
    for (int i = 0; i < 16; i++)
        if (i < words)
            word[i] = (uint32_t)((word[i] | (uint64_t)word[i + 1] << 32) >> shift);
}

/* Writes 16 aligned bytes of each plane. If the alignment of planes differs, these are different pixels for each plane,
 * and their bytes are loaded again. stki_pixels_write_edge writes the elements before and after the strips. */
STKI_KERNEL_FN void stki_pixels_write_strip(const stki_pixels_args *args, int dst, int raw, int step, int mirrored,
                                            const stki_pixels_row *row, uint32_t strip, const uint8_t *shared)
{
    const int size = stki_kernel_size(dst), pixels = 16 / size;
    uint32_t word[17], loaded = UINT32_MAX;

    STKI_UNROLL
    for (int c = 0; c < 4; c++) {
        if (c >= step || c >= args->channels)
            break;
        const uint32_t first = strip * (uint32_t)pixels + stki_pixels_head(args, row, size, c);
        if (first + (uint32_t)pixels > row->count || stki_pixels_odd(args, row, size, c))
            continue;
        if (first != loaded)
            stki_pixels_words(row, pixels, step, mirrored, first, shared, word);
        loaded = first;
        stki_store_words(row->to + args->plane[c] + first * (uint32_t)size,
                         stki_pixels_strip(args, dst, raw, step, mirrored, word, c));
    }
}

/* Writes element `edge` of 2 * pixels per row: those before the first strip, then those after the last one, of each
 * plane. A plane with unaligned elements is written entirely here, `pixels` elements per iteration. */
STKI_KERNEL_FN void stki_pixels_write_edge(const stki_pixels_args *args, int dst, int raw, int mirrored,
                                           const stki_pixels_row *row, uint32_t edge, const uint8_t *shared)
{
    const int size = stki_kernel_size(dst);
    const uint32_t pixels = (uint32_t)(16 / size);

    STKI_ROLL
    for (int c = 0; c < args->channels; c++) {
        const uint32_t head = stki_pixels_head(args, row, size, c);
        const uint32_t behind = head + (row->count - head) / pixels * pixels;
        const uint32_t pixel = edge < pixels ? edge : behind + edge - pixels;

        if (stki_pixels_odd(args, row, size, c)) {
            STKI_ROLL
            for (uint32_t i = edge; i < row->count; i += 2 * pixels)
                stki_pixels_write_one(args, dst, raw, mirrored, row, i, c, shared);
        } else if (pixel < (edge < pixels ? head : row->count)) {
            stki_pixels_write_one(args, dst, raw, mirrored, row, pixel, c, shared);
        }
    }
}

STKI_KERNEL_FN void stki_pixels_write(const stki_pixels_args *args, int dst, int raw, int step, int mirrored,
                                      stki_spot spot, const uint8_t *shared)
{
    const uint32_t strips = args->row_strips * args->tile_rows;
    const uint32_t edges = 32 / (uint32_t)stki_kernel_size(dst);
    stki_pixels_row place;

    STKI_ROLL
    for (uint32_t i = spot.thread; i < strips; i += STKI_BLOCK_THREADS) {
        uint32_t row = stki_quotient(args->by_row_strips, i);
        if (stki_pixels_row_of(args, spot.block, row, stki_kernel_size(dst), mirrored, &place))
            stki_pixels_write_strip(args, dst, raw, step, mirrored, &place, i - row * args->row_strips,
                                    shared + row * args->pitch);
    }
    STKI_ROLL
    for (uint32_t i = spot.thread; i < edges * args->tile_rows; i += STKI_BLOCK_THREADS)
        if (stki_pixels_row_of(args, spot.block, i / edges, stki_kernel_size(dst), mirrored, &place))
            stki_pixels_write_edge(args, dst, raw, mirrored, &place, i % edges, shared + i / edges * args->pitch);
}

#endif
