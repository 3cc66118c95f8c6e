/* ops_tile.c: see ops_tile.h. */
#include "ops_tile.h"
#include "ops_unaligned.h"
#include <string.h>

/* The inner loop runs along the axis on which the source is contiguous, if there is one. The scattered accesses are
 * then those to the destination, which stays in the L1 cache. */
#define COPY(bits)                                                                                                \
    static void copy_##bits(stki_tile dst, stki_tile src, int64_t rows, int64_t columns)                          \
    {                                                                                                             \
        const int64_t size = bits / 8;                                                                            \
        char *to = dst.data;                                                                                      \
        const char *from = src.data;                                                                              \
        if (src.row_stride == size && dst.column_stride == size)                                                  \
            for (int64_t j = 0; j < columns; j++)                                                                 \
                for (int64_t i = 0; i < rows; i++)                                                                \
                    *(stki_u##bits *)(void *)(to + i * dst.row_stride + j * size) =                               \
                        *(const stki_u##bits *)(const void *)(from + i * size + j * src.column_stride);           \
        else                                                                                                      \
            for (int64_t i = 0; i < rows; i++)                                                                    \
                for (int64_t j = 0; j < columns; j++)                                                             \
                    *(stki_u##bits *)(void *)(to + i * dst.row_stride + j * dst.column_stride) =                  \
                        *(const stki_u##bits *)(const void *)(from + i * src.row_stride + j * src.column_stride); \
    }
COPY(8)
COPY(16)
COPY(32)
COPY(64)

static void copy(stki_tile dst, stki_tile src, int64_t size, int64_t rows, int64_t columns)
{
    if (size == 1)
        copy_8(dst, src, rows, columns);
    else if (size == 2)
        copy_16(dst, src, rows, columns);
    else if (size == 4)
        copy_32(dst, src, rows, columns);
    else
        copy_64(dst, src, rows, columns);
}

#if defined(__x86_64__)
static stki_tile moved(stki_tile tile, int64_t row, int64_t column)
{
    return (stki_tile){(char *)tile.data + row * tile.row_stride + column * tile.column_stride, tile.row_stride,
                       tile.column_stride};
}
#endif

/* Transposes whole squares in registers, and the rest on the right and at the bottom element by element. */
static void turn(stki_tile dst, stki_tile src, int64_t size, int64_t rows, int64_t columns)
{
#if defined(__x86_64__)
    int64_t side = STKI_TILE_SQUARE / size, whole_rows = rows / side * side, whole_columns = columns / side * side;

    stki_tile_turn_avx2(dst, src, size, rows, columns);
    copy(moved(dst, 0, whole_columns), moved(src, 0, whole_columns), size, rows, columns - whole_columns);
    copy(moved(dst, whole_rows, 0), moved(src, whole_rows, 0), size, rows - whole_rows, whole_columns);
#else
    copy(dst, src, size, rows, columns);
#endif
}

void stki_tile_copy(enum stki_isa isa, stki_tile dst, stki_tile src, int64_t size, int64_t rows, int64_t columns)
{
    bool wide = (isa == STKI_ISA_AVX2 || isa == STKI_ISA_AVX512) && (size == 4 || size == 8);

    if (dst.column_stride == size && src.column_stride == size)
        for (int64_t i = 0; i < rows; i++)
            memcpy((char *)dst.data + i * dst.row_stride, (const char *)src.data + i * src.row_stride,
                   (size_t)(columns * size));
    else if (wide && dst.column_stride == size && src.row_stride == size)
        turn(dst, src, size, rows, columns);
    else
        copy(dst, src, size, rows, columns);
}
