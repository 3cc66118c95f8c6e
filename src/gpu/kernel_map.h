/* kernel_map.h: maps elements one to one over any strides: copies and casts of all pairs of dtypes, conversions,
 * quantization and dequantization. The elements are processed
 *
 *     linear  in the order of the destination. The elements of a thread are one block of threads apart, so that a warp
 *             accesses contiguous elements of the destination
 *     tiled   if the source is contiguous along another axis: 32 x 32 elements through shared memory, read along the
 *             source's contiguous axis and written along the destination's
 */
#ifndef STKI_KERNEL_MAP_H
#define STKI_KERNEL_MAP_H

#include "kernel_element.h"

enum stki_map_kind {
    STKI_MAP_RAW,    /* copies the bits of elements of 1 to 16 bytes */
    STKI_MAP_CAST,   /* like cast.c, including complex dtypes */
    STKI_MAP_AFFINE, /* y = fmaf(x, a[c], b[c]), then store */
    STKI_MAP_QUANTIZE,
    STKI_MAP_DEQUANTIZE,
    STKI_MAP_KINDS
};

/* sides of the nest */
enum { STKI_MAP_DST, STKI_MAP_SRC, STKI_MAP_CHANNEL };

enum {
    STKI_MAP_EACH = 4,  /* elements per thread, one block apart */
    STKI_MAP_OWN = 16,  /* maximum number of coefficient pairs in the arguments; more are in device memory */
    STKI_MAP_TILE = 32, /* elements along either side of a tile */
    STKI_MAP_TILE_BYTES = STKI_MAP_TILE * (STKI_MAP_TILE + 1) * 16
};

/* Two numbers per channel: a and b of a conversion, inverse scale and zero point of quantization; scale and zero point
 * in f64 for dequantization. If `far` is set, they are far[c] and far[count + c]. */
typedef struct stki_map_table {
    const void *far;
    int64_t count;
    union {
        float f32[2][STKI_MAP_OWN];
        double f64[2][STKI_MAP_OWN];
    } own;
} stki_map_table;

typedef struct stki_map_args {
    uint8_t *dst;
    const uint8_t *src;
    uint64_t count;
    int32_t dst_dtype, src_dtype, dst_size, src_size;
    int32_t swapped; /* the source has the opposite byte order; both parts of complex elements are swapped */
    int32_t per_channel;
    int64_t first_channel;
    stki_levels levels;
    /* tiled: number of tiles along axis 1 (rows, contiguous in the source) and axis 0 (columns, contiguous in the
     * destination) */
    uint32_t tile_rows, tile_columns;
    stki_divisor by_tile_rows, by_tile_columns;
    stki_map_table table;
    stki_nest nest;
} stki_map_args;

/* ---- one element ---- */

/* An element of up to 16 bytes. */
typedef struct stki_bits {
    uint64_t low, high;
} stki_bits;

/* `wide`: the element may have 16 bytes. */
STKI_KERNEL_FN stki_bits stki_map_read(const uint8_t *from, int size, int wide)
{
    stki_bits bits;

    bits.high = 0;
    if (wide && size == 16 && (uintptr_t)from % 16 == 0) {
        stki_words words = stki_load_words(from);
        bits.low = words.w[0] | (uint64_t)words.w[1] << 32;
        bits.high = words.w[2] | (uint64_t)words.w[3] << 32;
    } else if (wide && size == 16) {
        bits.low = stki_load_bits(from, 8);
        bits.high = stki_load_bits(from + 8, 8);
    } else {
        bits.low = stki_load_bits(from, size);
    }
    return bits;
}

STKI_KERNEL_FN void stki_map_write(uint8_t *to, stki_bits bits, int size, int wide)
{
    if (wide && size == 16 && (uintptr_t)to % 16 == 0) {
        stki_words words;
        words.w[0] = (uint32_t)bits.low;
        words.w[1] = (uint32_t)(bits.low >> 32);
        words.w[2] = (uint32_t)bits.high;
        words.w[3] = (uint32_t)(bits.high >> 32);
        stki_store_words(to, words);
    } else if (wide && size == 16) {
        stki_store_bits(to, bits.low, 8);
        stki_store_bits(to + 8, bits.high, 8);
    } else {
        stki_store_bits(to, bits.low, size);
    }
}

/* Whether elements may have 16 bytes. */
STKI_KERNEL_FN int stki_map_is_wide(int kind)
{
    return kind == STKI_MAP_RAW || kind == STKI_MAP_CAST;
}

/* The dtype of the parts of a complex dtype; other dtypes are returned unchanged. */
STKI_KERNEL_FN int stki_map_part(int dtype)
{
    return dtype == STK_C64 ? STK_F32 : dtype == STK_C128 ? STK_F64 : dtype;
}

/* Complex to complex casts both parts; complex to real keeps the real part; complex to bool tests both parts; real to
 * complex sets the imaginary part to 0. */
STKI_KERNEL_FN stki_bits stki_map_cast(int to, int from, int swapped, stki_bits bits)
{
    const int part = stki_map_part(from), to_part = stki_map_part(to), part_size = stki_kernel_size(part);
    uint64_t real, imag;
    stki_bits out;

    if (part_size == 4 && part != from) { /* c64 */
        imag = bits.low >> 32;
        real = bits.low & 0xffffffff;
    } else {
        imag = bits.high;
        real = bits.low;
    }
    if (swapped) {
        real = stki_kernel_swap(real, part_size);
        imag = stki_kernel_swap(imag, part_size);
    }
    out.low = stki_kernel_cast(to_part, part, real);
    out.high = 0;
    if (to == STK_BOOL && part != from) {
        out.low |= stki_kernel_cast(STK_BOOL, part, imag);
    } else if (to_part != to) {
        imag = part != from ? stki_kernel_cast(to_part, part, imag) : 0;
        if (to == STK_C64)
            out.low = (out.low & 0xffffffff) | imag << 32;
        else
            out.high = imag;
    }
    return out;
}

STKI_KERNEL_FN float stki_map_f32(const stki_map_table *table, int which, int64_t channel)
{
    return table->far ? ((const float *)table->far)[which * table->count + channel] : table->own.f32[which][channel];
}

STKI_KERNEL_FN double stki_map_f64(const stki_map_table *table, int which, int64_t channel)
{
    return table->far ? ((const double *)table->far)[which * table->count + channel] : table->own.f64[which][channel];
}

/* `kind` is a compile-time constant. */
STKI_KERNEL_FN stki_bits stki_map_element(const stki_map_args *args, int kind, stki_bits bits, int64_t channel)
{
    const stki_map_table *table = &args->table;
    float x;

    switch (kind) {
    case STKI_MAP_CAST:
        return stki_map_cast(args->dst_dtype, args->src_dtype, args->swapped, bits);
    case STKI_MAP_AFFINE:
        if (args->swapped)
            bits.low = stki_kernel_swap(bits.low, args->src_size);
        x = stki_kernel_load(args->src_dtype, bits.low);
        x = stki_kernel_fma(x, stki_map_f32(table, 0, channel), stki_map_f32(table, 1, channel));
        bits.low = stki_kernel_store(args->dst_dtype, args->levels, x);
        return bits;
    case STKI_MAP_QUANTIZE:
        x = stki_f32_of_bits((uint32_t)bits.low);
        bits.low =
            stki_kernel_to_level(args->dst_dtype, x, stki_map_f32(table, 0, channel), stki_map_f32(table, 1, channel));
        return bits;
    case STKI_MAP_DEQUANTIZE:
        x = stki_kernel_from_level(args->src_dtype, bits.low, args->per_channel, stki_map_f64(table, 0, channel),
                                   stki_map_f64(table, 1, channel));
        bits.low = stki_f32_bits(x);
        return bits;
    default:
        return bits;
    }
}

/* ---- linear ---- */

/* A thread issues all its loads first, so that they overlap. */
STKI_KERNEL_FN void stki_map_linear(const stki_map_args *args, int kind, stki_spot spot)
{
    const uint64_t first = (uint64_t)spot.block * (STKI_BLOCK_THREADS * STKI_MAP_EACH) + spot.thread;
    stki_offsets at[STKI_MAP_EACH];
    stki_bits bits[STKI_MAP_EACH];

    STKI_UNROLL
    for (int i = 0; i < STKI_MAP_EACH; i++) {
        uint64_t index = first + (uint64_t)i * STKI_BLOCK_THREADS;
        if (index < args->count) {
            at[i] = stki_nest_at(&args->nest, 0, index, STKI_KERNEL_SIDES);
            bits[i] = stki_map_read(args->src + at[i].side[STKI_MAP_SRC], args->src_size, stki_map_is_wide(kind));
        }
    }
    STKI_UNROLL
    for (int i = 0; i < STKI_MAP_EACH; i++) {
        uint64_t index = first + (uint64_t)i * STKI_BLOCK_THREADS;
        if (index < args->count) {
            stki_bits out = stki_map_element(args, kind, bits[i], args->first_channel + at[i].side[STKI_MAP_CHANNEL]);
            stki_map_write(args->dst + at[i].side[STKI_MAP_DST], out, args->dst_size, stki_map_is_wide(kind));
        }
    }
}

/* ---- tiled ---- */

typedef struct stki_map_tile {
    int64_t row, column; /* offset of the tile's first element */
    stki_offsets at;
} stki_map_tile;

STKI_KERNEL_FN stki_map_tile stki_map_tile_of(const stki_map_args *args, uint32_t block)
{
    const uint32_t rest = stki_quotient(args->by_tile_columns, block);
    const uint32_t outer = stki_quotient(args->by_tile_rows, rest);
    stki_map_tile tile;

    tile.column = (int64_t)(block - rest * args->tile_columns) * STKI_MAP_TILE;
    tile.row = (int64_t)(rest - outer * args->tile_rows) * STKI_MAP_TILE;
    tile.at = stki_nest_at(&args->nest, 2, outer, STKI_KERNEL_SIDES);
    for (int k = 0; k < STKI_KERNEL_SIDES; k++)
        tile.at.side[k] += tile.column * args->nest.axes[0].stride[k] + tile.row * args->nest.axes[1].stride[k];
    return tile;
}

/* Phase 0: reads along the rows' axis, where the source is contiguous. */
STKI_KERNEL_FN void stki_map_tile_read(const stki_map_args *args, int kind, stki_spot spot, uint8_t *shared)
{
    const int wide = stki_map_is_wide(kind);
    const stki_map_tile tile = stki_map_tile_of(args, spot.block);
    const int64_t across = args->nest.axes[1].stride[STKI_MAP_SRC], down = args->nest.axes[0].stride[STKI_MAP_SRC];
    const int row = (int)(spot.thread % STKI_MAP_TILE), size = args->src_size;

    STKI_UNROLL
    for (int i = 0; i < STKI_MAP_TILE; i += STKI_BLOCK_THREADS / STKI_MAP_TILE) {
        int column = (int)(spot.thread / STKI_MAP_TILE) + i;
        if (tile.row + row < args->nest.axes[1].n && tile.column + column < args->nest.axes[0].n) {
            const uint8_t *from = args->src + tile.at.side[STKI_MAP_SRC] + row * across + column * down;
            stki_map_write(shared + (column * (STKI_MAP_TILE + 1) + row) * size, stki_map_read(from, size, wide), size,
                           wide);
        }
    }
}

/* Phase 1: writes along the columns' axis, where the destination is contiguous. */
STKI_KERNEL_FN void stki_map_tile_write(const stki_map_args *args, int kind, stki_spot spot, const uint8_t *shared)
{
    const stki_map_tile tile = stki_map_tile_of(args, spot.block);
    const stki_axis_of *columns = &args->nest.axes[0], *rows = &args->nest.axes[1];
    const int column = (int)(spot.thread % STKI_MAP_TILE), size = args->src_size;

    STKI_UNROLL
    for (int i = 0; i < STKI_MAP_TILE; i += STKI_BLOCK_THREADS / STKI_MAP_TILE) {
        int row = (int)(spot.thread / STKI_MAP_TILE) + i;
        if (tile.row + row < rows->n && tile.column + column < columns->n) {
            stki_bits bits =
                stki_map_read(shared + (column * (STKI_MAP_TILE + 1) + row) * size, size, stki_map_is_wide(kind));
            int64_t channel = args->first_channel + tile.at.side[STKI_MAP_CHANNEL] +
                              column * columns->stride[STKI_MAP_CHANNEL] + row * rows->stride[STKI_MAP_CHANNEL];
            uint8_t *to = args->dst + tile.at.side[STKI_MAP_DST] + column * columns->stride[STKI_MAP_DST] +
                          row * rows->stride[STKI_MAP_DST];
            stki_map_write(to, stki_map_element(args, kind, bits, channel), args->dst_size, stki_map_is_wide(kind));
        }
    }
}

#endif
