/* ops_sum_body.h: the loops of ops_sum_loops.h as text, compiled once for each instruction set. The partial sums are
 * four vectors of eight, which compilers split into what the processor has.
 */
#include "ops_sum_loops.h"
#include "ops_unaligned.h"
#include <string.h>

typedef double eight_f64 __attribute__((vector_size(64)));
typedef float eight_f32 __attribute__((vector_size(32)));

static inline void add_eight_f32(eight_f64 *sum, const char *at)
{
    eight_f32 x;

    memcpy(&x, at, sizeof x);
    *sum += __builtin_convertvector(x, eight_f64);
}

static inline void add_eight_f64(eight_f64 *sum, const char *at)
{
    eight_f64 x;

    memcpy(&x, at, sizeof x);
    *sum += x;
}

static inline double fold(const eight_f64 *part)
{
    eight_f64 sum = (part[0] + part[2]) + (part[1] + part[3]);
    double lane[8];

    memcpy(lane, &sum, sizeof lane);
    for (int width = 4; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            lane[i] += lane[i + width];
    return lane[0];
}

#define ROW(name, type)                                                                   \
    static inline void add_lanes_##name(eight_f64 *part, const char *at)                  \
    {                                                                                     \
        add_eight_##name(&part[0], at);                                                   \
        add_eight_##name(&part[1], at + 8 * sizeof(type));                                \
        add_eight_##name(&part[2], at + 16 * sizeof(type));                               \
        add_eight_##name(&part[3], at + 24 * sizeof(type));                               \
    }                                                                                     \
    static double row_##name(const void *x, int64_t n)                                    \
    {                                                                                     \
        const char *at = x;                                                               \
        eight_f64 part[4] = {{0}, {0}, {0}, {0}};                                         \
        int64_t i = 0;                                                                    \
        for (; i + STKI_SUM_LANES <= n; i += STKI_SUM_LANES)                              \
            add_lanes_##name(part, at + i * (int64_t)sizeof(type));                       \
        if (i < n) {                                                                      \
            type last[STKI_SUM_LANES] = {0}; /* adding 0 is adding nothing */             \
            memcpy(last, at + i * (int64_t)sizeof(type), (size_t)(n - i) * sizeof(type)); \
            add_lanes_##name(part, (const char *)last);                                   \
        }                                                                                 \
        return fold(part);                                                                \
    }
ROW(f32, float)
ROW(f64, double)

#define COLUMNS(name)                                                                                   \
    static void columns_##name(double *acc, const void *x, int64_t step, int64_t rows, int64_t columns) \
    {                                                                                                   \
        const char *at = x;                                                                             \
        for (; rows >= 8; rows -= 8, at += 8 * step) {                                                  \
            const stki_##name *r0 = (const void *)at, *r1 = (const void *)(at + step);                  \
            const stki_##name *r2 = (const void *)(at + 2 * step), *r3 = (const void *)(at + 3 * step); \
            const stki_##name *r4 = (const void *)(at + 4 * step), *r5 = (const void *)(at + 5 * step); \
            const stki_##name *r6 = (const void *)(at + 6 * step), *r7 = (const void *)(at + 7 * step); \
            STKI_NO_OVERLAP                                                                             \
            for (int64_t j = 0; j < columns; j++)                                                       \
                acc[j] += (((double)r0[j] + (double)r1[j]) + ((double)r2[j] + (double)r3[j])) +         \
                          (((double)r4[j] + (double)r5[j]) + ((double)r6[j] + (double)r7[j]));          \
        }                                                                                               \
        for (; rows > 0; rows--, at += step) {                                                          \
            const stki_##name *row = (const void *)at;                                                  \
            STKI_NO_OVERLAP                                                                             \
            for (int64_t j = 0; j < columns; j++)                                                       \
                acc[j] += (double)row[j];                                                               \
        }                                                                                               \
    }
COLUMNS(f32)
COLUMNS(f64)

#define STKI_SUM_BODY                              \
    {                                              \
        row_f32, row_f64, columns_f32, columns_f64 \
    }
