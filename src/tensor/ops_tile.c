/* ops_tile.c: see ops_tile.h. */
#include "ops_tile.h"
#include "ops_unaligned.h"
#include <string.h>

/* The loops go along the axis on which the source's elements are neighbours, if there is one: the scattered side is
 * then the destination, which is the one that stays in the first-level cache. */
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

void stki_tile_copy(stki_tile dst, stki_tile src, int64_t size, int64_t rows, int64_t columns)
{
    if (dst.column_stride == size && src.column_stride == size) {
        for (int64_t i = 0; i < rows; i++)
            memcpy((char *)dst.data + i * dst.row_stride, (const char *)src.data + i * src.row_stride,
                   (size_t)(columns * size));
        return;
    }
    switch (size) {
    case 1:
        copy_8(dst, src, rows, columns);
        break;
    case 2:
        copy_16(dst, src, rows, columns);
        break;
    case 4:
        copy_32(dst, src, rows, columns);
        break;
    default:
        copy_64(dst, src, rows, columns);
        break;
    }
}
