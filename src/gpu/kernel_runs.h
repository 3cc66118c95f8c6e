/* kernel_runs.h: conversions with arithmetic, contiguous on both sides, in rows that may have gaps between them: bytes
 * or floats to the dtypes of batches, with one pair of coefficients, one pair per row, or pairs that repeat along the
 * row (channels last). A thread handles 16 bytes of the wider side (a strip), so that a warp reads and writes
 * contiguous memory. */
#ifndef STKI_KERNEL_RUNS_H
#define STKI_KERNEL_RUNS_H

#include "kernel_map.h"

typedef struct stki_runs_args {
    uint8_t *dst;
    const uint8_t *src;
    uint32_t strips; /* total */
    uint32_t row_strips;
    stki_divisor by_row_strips;
    int64_t row; /* elements */
    int64_t first_channel;
    int64_t period; /* number of pairs that repeat along a row; 0: one pair per row */
    stki_levels levels;
    stki_map_table table;
    stki_nest nest; /* the axes of the rows */
} stki_runs_args;

/* Elements of a strip. */
STKI_KERNEL_FN int stki_runs_strip(int dst, int src)
{
    const int size = stki_kernel_size(dst), other = stki_kernel_size(src);

    return 16 / (size > other ? size : other);
}

/* The part of a row that belongs to a strip. */
typedef struct stki_runs_part {
    int64_t first; /* index of an element in the row */
    int count;     /* 0: there is none */
    stki_offsets at;
} stki_runs_part;

STKI_KERNEL_FN stki_runs_part stki_runs_part_of(const stki_runs_args *args, uint32_t strip, int elements)
{
    stki_runs_part part;
    uint32_t row;

    part.count = 0;
    part.first = 0;
    if (strip >= args->strips)
        return part;
    row = stki_quotient(args->by_row_strips, strip);
    part.first = (int64_t)(strip - row * args->row_strips) * elements;
    part.count = args->row - part.first < elements ? (int)(args->row - part.first) : elements;
    part.at = stki_nest_at(&args->nest, 0, row, STKI_KERNEL_SIDES);
    return part;
}

/* Loads `bytes` (2, 4, 8 or 16) at once; the other bytes are 0. */
STKI_KERNEL_FN stki_words stki_strip_load(const uint8_t *from, int bytes)
{
    stki_words words;
    uint64_t two;

    if (bytes == 16)
        return stki_load_words(from);
    words.w[0] = words.w[1] = words.w[2] = words.w[3] = 0;
    if (bytes == 8) {
        two = stki_load_64(from);
        words.w[0] = (uint32_t)two;
        words.w[1] = (uint32_t)(two >> 32);
    } else if (bytes == 4) {
        words.w[0] = stki_load_32(from);
    } else {
        words.w[0] = stki_load_16(from);
    }
    return words;
}

STKI_KERNEL_FN void stki_strip_store(uint8_t *to, stki_words words, int bytes)
{
    if (bytes == 16)
        stki_store_words(to, words);
    else if (bytes == 8)
        stki_store_64(to, words.w[0] | (uint64_t)words.w[1] << 32);
    else if (bytes == 4)
        stki_store_32(to, words.w[0]);
    else
        stki_store_16(to, (uint16_t)words.w[0]);
}

/* Returns element i of a strip; elements have 1, 2 or 4 bytes. */
STKI_KERNEL_FN uint32_t stki_strip_get(const stki_words *words, int size, int i)
{
    const int at = i * size;

    return size == 4 ? words->w[i] : words->w[at / 4] >> at % 4 * 8 & (size == 1 ? 0xff : 0xffff);
}

/* Returns byte `at` of a word as f32: the byte is inserted in the low bits of the float 2^23, which is then subtracted.
 */
STKI_KERNEL_FN float stki_strip_byte(uint32_t word, int at)
{
#ifdef __CUDA_ARCH__
    const uint32_t bits = __byte_perm(word, 0x4b000000, 0x7650 + (uint32_t)at);
#else
    const uint32_t bits = 0x4b000000 | (word >> 8 * at & 0xff);
#endif
    return stki_f32_of_bits(bits) - 8388608.0f;
}

/* Converts the results of a strip to the destination's dtype; halves are converted in pairs. */
STKI_KERNEL_FN stki_words stki_strip_pack(int dst, stki_levels levels, int tame, const float *y, int count)
{
    stki_words words;

    words.w[0] = words.w[1] = words.w[2] = words.w[3] = 0;
    STKI_UNROLL
    for (int i = 0; i < 16; i++) {
        if (i >= count)
            break;
        switch (dst) {
        case STK_U8:
        case STK_I8:
            words.w[i / 4] |= stki_kernel_level_8(levels, tame, y[i]) << i % 4 * 8;
            break;
        case STK_F16:
            if (i % 2 == 0)
                words.w[i / 2 % 4] = stki_kernel_pair_f16(y[i], y[i + 1]);
            break;
        case STK_BF16:
            if (i % 2 == 0)
                words.w[i / 2 % 4] = stki_kernel_pair_bf16(y[i], y[i + 1]);
            break;
        default:
            words.w[i % 4] = (uint32_t)stki_kernel_store(dst, levels, y[i]);
            break;
        }
    }
    return words;
}

/* `dst`, `src` and `pattern` (the pairs repeat along the row) are compile-time constants. */
STKI_KERNEL_FN void stki_runs_whole(const stki_runs_args *args, int dst, int src, int pattern, stki_runs_part part,
                                    stki_words words)
{
    const int elements = stki_runs_strip(dst, src), size = stki_kernel_size(src);
    uint8_t *to = args->dst + part.at.side[STKI_MAP_DST] + part.first * stki_kernel_size(dst);
    int64_t channel = pattern ? part.first % args->period : args->first_channel + part.at.side[STKI_MAP_CHANNEL];
    float a = stki_map_f32(&args->table, 0, channel), b = stki_map_f32(&args->table, 1, channel);
    float y[16];

    STKI_UNROLL
    for (int i = 0; i < 16; i++) {
        if (i >= elements)
            break;
        float x = src == STK_U8 ? stki_strip_byte(words.w[i / 4], i % 4)
                                : stki_kernel_load(src, stki_strip_get(&words, size, i));
        y[i] = stki_kernel_fma(x, a, b);
        if (pattern) {
            channel = channel + 1 == args->period ? 0 : channel + 1;
            a = stki_map_f32(&args->table, 0, channel);
            b = stki_map_f32(&args->table, 1, channel);
        }
    }
    stki_strip_store(to, stki_strip_pack(dst, args->levels, 0, y, elements), elements * stki_kernel_size(dst));
}

/* Converts the end of a row element by element. */
STKI_KERNEL_FN void stki_runs_rest(const stki_runs_args *args, int dst, int src, int pattern, stki_runs_part part)
{
    const int size = stki_kernel_size(src), dst_size = stki_kernel_size(dst);

    STKI_ROLL
    for (int i = 0; i < part.count; i++) {
        int64_t at = part.first + i;
        int64_t channel = pattern ? at % args->period : args->first_channel + part.at.side[STKI_MAP_CHANNEL];
        float x = stki_kernel_load(src, stki_load_bits(args->src + part.at.side[STKI_MAP_SRC] + at * size, size));
        x = stki_kernel_fma(x, stki_map_f32(&args->table, 0, channel), stki_map_f32(&args->table, 1, channel));
        stki_store_bits(args->dst + part.at.side[STKI_MAP_DST] + at * dst_size, stki_kernel_store(dst, args->levels, x),
                        dst_size);
    }
}

STKI_KERNEL_FN void stki_runs(const stki_runs_args *args, int dst, int src, int pattern, stki_spot spot)
{
    const int elements = stki_runs_strip(dst, src), size = stki_kernel_size(src);
    const stki_runs_part part = stki_runs_part_of(args, spot.block * STKI_BLOCK_THREADS + spot.thread, elements);

    if (part.count == elements)
        stki_runs_whole(args, dst, src, pattern, part,
                        stki_strip_load(args->src + part.at.side[STKI_MAP_SRC] + part.first * size, elements * size));
    else if (part.count > 0)
        stki_runs_rest(args, dst, src, pattern, part);
}

#endif
