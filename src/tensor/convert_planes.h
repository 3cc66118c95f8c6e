/* convert_planes.h: interleaves and deinterleaves three or four contiguous planes. Plain loops with constant bounds,
 * which the compiler turns into permutations of the instruction set that the including file is compiled for. Each
 * kernel file includes this and puts STKI_INTERLEAVES and STKI_DEINTERLEAVES in its table. */
#ifndef STKI_CONVERT_PLANES_H
#define STKI_CONVERT_PLANES_H

#include "convert_internal.h"
#include <string.h>

#define STKI_LOAD_PLANE(type, plane, i)                                        \
    (__extension__({                                                           \
        type stki_x;                                                           \
        memcpy(&stki_x, (plane) + (i) * (int64_t)sizeof(type), sizeof stki_x); \
        stki_x;                                                                \
    }))
#define STKI_STORE_PLANE(type, plane, i, value) \
    memcpy((plane) + (i) * (int64_t)sizeof(type), &(type){value}, sizeof(type))

#define STKI_DEFINE_PLANES(bits)                                                                                    \
    static void interleave3_##bits(uint8_t *restrict to, const uint8_t *const *planes, int64_t n)                   \
    {                                                                                                               \
        const uint8_t *restrict a = planes[0], *restrict b = planes[1], *restrict c = planes[2];                    \
        for (int64_t i = 0; i < n; i++) {                                                                           \
            STKI_STORE_PLANE(uint##bits##_t, to, 3 * i, STKI_LOAD_PLANE(uint##bits##_t, a, i));                     \
            STKI_STORE_PLANE(uint##bits##_t, to, 3 * i + 1, STKI_LOAD_PLANE(uint##bits##_t, b, i));                 \
            STKI_STORE_PLANE(uint##bits##_t, to, 3 * i + 2, STKI_LOAD_PLANE(uint##bits##_t, c, i));                 \
        }                                                                                                           \
    }                                                                                                               \
    static void interleave4_##bits(uint8_t *restrict to, const uint8_t *const *planes, int64_t n)                   \
    {                                                                                                               \
        const uint8_t *restrict a = planes[0], *restrict b = planes[1], *restrict c = planes[2];                    \
        const uint8_t *restrict d = planes[3];                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                           \
            STKI_STORE_PLANE(uint##bits##_t, to, 4 * i, STKI_LOAD_PLANE(uint##bits##_t, a, i));                     \
            STKI_STORE_PLANE(uint##bits##_t, to, 4 * i + 1, STKI_LOAD_PLANE(uint##bits##_t, b, i));                 \
            STKI_STORE_PLANE(uint##bits##_t, to, 4 * i + 2, STKI_LOAD_PLANE(uint##bits##_t, c, i));                 \
            STKI_STORE_PLANE(uint##bits##_t, to, 4 * i + 3, STKI_LOAD_PLANE(uint##bits##_t, d, i));                 \
        }                                                                                                           \
    }                                                                                                               \
    static void deinterleave3_##bits(uint8_t *const *planes, const uint8_t *restrict from, int64_t n)               \
    {                                                                                                               \
        uint8_t *restrict a = planes[0], *restrict b = planes[1], *restrict c = planes[2];                          \
        for (int64_t i = 0; i < n; i++) {                                                                           \
            STKI_STORE_PLANE(uint##bits##_t, a, i, STKI_LOAD_PLANE(uint##bits##_t, from, 3 * i));                   \
            STKI_STORE_PLANE(uint##bits##_t, b, i, STKI_LOAD_PLANE(uint##bits##_t, from, 3 * i + 1));               \
            STKI_STORE_PLANE(uint##bits##_t, c, i, STKI_LOAD_PLANE(uint##bits##_t, from, 3 * i + 2));               \
        }                                                                                                           \
    }                                                                                                               \
    static void deinterleave4_##bits(uint8_t *const *planes, const uint8_t *restrict from, int64_t n)               \
    {                                                                                                               \
        uint8_t *restrict a = planes[0], *restrict b = planes[1], *restrict c = planes[2], *restrict d = planes[3]; \
        for (int64_t i = 0; i < n; i++) {                                                                           \
            STKI_STORE_PLANE(uint##bits##_t, a, i, STKI_LOAD_PLANE(uint##bits##_t, from, 4 * i));                   \
            STKI_STORE_PLANE(uint##bits##_t, b, i, STKI_LOAD_PLANE(uint##bits##_t, from, 4 * i + 1));               \
            STKI_STORE_PLANE(uint##bits##_t, c, i, STKI_LOAD_PLANE(uint##bits##_t, from, 4 * i + 2));               \
            STKI_STORE_PLANE(uint##bits##_t, d, i, STKI_LOAD_PLANE(uint##bits##_t, from, 4 * i + 3));               \
        }                                                                                                           \
    }
STKI_DEFINE_PLANES(8)
STKI_DEFINE_PLANES(16)
STKI_DEFINE_PLANES(32)
static void deinterleave3_64(uint8_t *const *planes, const uint8_t *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 3; k++)
            memcpy(planes[k] + 8 * i, from + 8 * (3 * i + k), 8);
}
static void deinterleave4_64(uint8_t *const *planes, const uint8_t *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 4; k++)
            memcpy(planes[k] + 8 * i, from + 8 * (4 * i + k), 8);
}
#define STKI_DEINTERLEAVE3_32 deinterleave3_32 /* a file may define a faster one */
#define STKI_INTERLEAVES                                                  \
    {                                                                     \
        {interleave3_8, interleave4_8}, {interleave3_16, interleave4_16}, \
        {                                                                 \
            interleave3_32, interleave4_32                                \
        }                                                                 \
    }
#define STKI_DEINTERLEAVES                                                        \
    {                                                                             \
        {deinterleave3_8, deinterleave4_8}, {deinterleave3_16, deinterleave4_16}, \
            {STKI_DEINTERLEAVE3_32, deinterleave4_32},                            \
        {                                                                         \
            deinterleave3_64, deinterleave4_64                                    \
        }                                                                         \
    }

#endif
