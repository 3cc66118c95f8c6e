/* stats_loops_body.h: the loops of stats_loops.h, compiled once for each instruction set. */
#include "ops_unaligned.h"
#include "stats_loops.h"
#include <math.h>
#include <string.h>

enum { LANES = 16 };

/* Adds the lanes in pairs: 0 and 8, 1 and 9, …; then 0 and 4, and so on. */
static double add_lanes(double *lane)
{
    for (int width = LANES / 2; width; width /= 2)
        for (int k = 0; k < width; k++)
            lane[k] += lane[k + width];
    return lane[0];
}

#ifndef STKI_VECTORS
/* If an element is infinite or NaN, so is the sum, so the comparisons need not handle it. Adding 0 turns -0 into 0. */
#define LOOK(name, type, arguments, VALUE)                                                                           \
    static void look_##name(const void *x, int64_t n, arguments double pivot, stki_run_look *out)                    \
    {                                                                                                                \
        const stki_##name *at = x;                                                                                   \
        type min = (type)INFINITY, max = (type)-INFINITY;                                                            \
        double first[LANES] = {0}, second[LANES] = {0}, sum;                                                         \
        int64_t zeros = 0;                                                                                           \
        for (int64_t i = 0; i < n; i++) {                                                                            \
            const double d = VALUE(at[i]) - pivot;                                                                   \
            first[i % LANES] += d;                                                                                   \
            second[i % LANES] += d * d;                                                                              \
            min = at[i] < min ? at[i] : min;                                                                         \
            max = at[i] > max ? at[i] : max;                                                                         \
            zeros += at[i] == 0;                                                                                     \
        }                                                                                                            \
        sum = add_lanes(first);                                                                                      \
        *out = (stki_run_look){(double)min + 0.0, (double)max + 0.0, sum, add_lanes(second), zeros, !isfinite(sum)}; \
    }
#define NOTHING
#define SCALE double scale,
#define AS_IT_IS(element) (double)(element)
#define SCALED(element) ((element)*scale)
LOOK(f32, float, NOTHING, AS_IT_IS)
LOOK(f64, double, SCALE, SCALED)
#else
/* Like LOOK, with vectors: `vf` and `vi` have VF floats and as many counters, `vd` has VD doubles. */
enum { VF = WIDTH, VD = WIDTH / 2, F = LANES / VF, D = LANES / VD };

static void look_f32(const void *x, int64_t n, double pivot, stki_run_look *out)
{
    const stki_f32 *at = x;
    const vd pivots = vd_all(pivot);
    vd first[D], second[D];
    vf low[F], high[F];
    vi zero[F];
    double firsts[LANES], seconds[LANES], sum;
    float lows[LANES], highs[LANES], min = INFINITY, max = -INFINITY;
    int32_t zero_counts[LANES];
    int64_t i = 0, zeros = 0;

    for (int k = 0; k < D; k++)
        first[k] = second[k] = vd_all(0);
    for (int k = 0; k < F; k++) {
        low[k] = vf_all(INFINITY);
        high[k] = vf_all(-INFINITY);
        zero[k] = vi_zero();
    }
    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < F; k++) {
            const vf v = vf_load(at + i + k * VF);
            const vd d = vd_sub(vd_of_lower_f32(v), pivots), e = vd_sub(vd_of_upper_f32(v), pivots);

            low[k] = vf_min(v, low[k]);
            high[k] = vf_max(v, high[k]);
            zero[k] = vi_count_zeros(zero[k], v);
            first[2 * k] = vd_add(first[2 * k], d);
            second[2 * k] = vd_add(second[2 * k], vd_mul(d, d));
            first[2 * k + 1] = vd_add(first[2 * k + 1], e);
            second[2 * k + 1] = vd_add(second[2 * k + 1], vd_mul(e, e));
        }
    }
    memcpy(firsts, first, sizeof firsts);
    memcpy(seconds, second, sizeof seconds);
    memcpy(lows, low, sizeof lows);
    memcpy(highs, high, sizeof highs);
    memcpy(zero_counts, zero, sizeof zero_counts);
    for (int k = 0; i < n; i++, k++) {
        const double d = (double)at[i] - pivot;

        firsts[k] += d;
        seconds[k] += d * d;
        min = at[i] < min ? at[i] : min;
        max = at[i] > max ? at[i] : max;
        zeros += at[i] == 0;
    }
    for (int k = 0; k < LANES; k++) {
        min = lows[k] < min ? lows[k] : min;
        max = highs[k] > max ? highs[k] : max;
        zeros += zero_counts[k];
    }
    sum = add_lanes(firsts);
    *out = (stki_run_look){(double)min + 0.0, (double)max + 0.0, sum, add_lanes(seconds), zeros, !isfinite(sum)};
}

static void look_f64(const void *x, int64_t n, double scale, double pivot, stki_run_look *out)
{
    const stki_f64 *at = x;
    const vd pivots = vd_all(pivot), scales = vd_all(scale);
    vd first[D], second[D], low[D], high[D];
    double firsts[LANES], seconds[LANES], lows[LANES], highs[LANES], sum;
    double min = (double)INFINITY, max = -(double)INFINITY;
    int64_t i = 0, zeros = 0;

    for (int k = 0; k < D; k++) {
        first[k] = second[k] = vd_all(0);
        low[k] = vd_all((double)INFINITY);
        high[k] = vd_all(-(double)INFINITY);
    }
    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < D; k++) {
            const vd v = vd_load(at + i + k * VD), d = vd_sub(vd_mul(v, scales), pivots);

            low[k] = vd_min(v, low[k]);
            high[k] = vd_max(v, high[k]);
            zeros += vd_zeros(v);
            first[k] = vd_add(first[k], d);
            second[k] = vd_add(second[k], vd_mul(d, d));
        }
    }
    memcpy(firsts, first, sizeof firsts);
    memcpy(seconds, second, sizeof seconds);
    memcpy(lows, low, sizeof lows);
    memcpy(highs, high, sizeof highs);
    for (int k = 0; i < n; i++, k++) {
        const double d = at[i] * scale - pivot;

        firsts[k] += d;
        seconds[k] += d * d;
        min = at[i] < min ? at[i] : min;
        max = at[i] > max ? at[i] : max;
        zeros += at[i] == 0;
    }
    for (int k = 0; k < LANES; k++) {
        min = lows[k] < min ? lows[k] : min;
        max = highs[k] > max ? highs[k] : max;
    }
    sum = add_lanes(firsts);
    *out = (stki_run_look){min + 0.0, max + 0.0, sum, add_lanes(seconds), zeros, !isfinite(sum)};
}
#endif

#define WHOLE(name, type, magnitude)                                                                     \
    static void whole_##name(const void *x, int64_t n, stki_run_whole *out)                              \
    {                                                                                                    \
        const stki_##name *at = x;                                                                       \
        type min = at[0], max = at[0];                                                                   \
        int64_t sum = 0, zeros = 0;                                                                      \
        uint64_t low = 0, high = 0;                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                \
            min = at[i] < min ? at[i] : min;                                                             \
            max = at[i] > max ? at[i] : max;                                                             \
        }                                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                \
            sum += (int64_t)at[i];                                                                       \
            zeros += at[i] == 0;                                                                         \
        }                                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                \
            const uint64_t square = (uint64_t)((magnitude)at[i] * (magnitude)at[i]);                     \
            low += square & UINT32_MAX;                                                                  \
            high += square >> 32;                                                                        \
        }                                                                                                \
        *out = (stki_run_whole){                                                                         \
            .min = min, .max = max, .sum = sum, .zeros = zeros, .square_low = low, .square_high = high}; \
    }
WHOLE(i32, int32_t, int64_t)
WHOLE(u32, uint32_t, uint64_t)

/* Adjacent elements are often equal; four tables avoid the store-to-load dependency on the previous element's count. */
static void count_u8(const void *x, int64_t n, uint64_t *counts)
{
    const uint8_t *at = x;
    uint32_t table[4][256];
    int64_t i = 0;

    memset(table, 0, sizeof table);
    for (; i + 4 <= n; i += 4) {
        table[0][at[i]]++;
        table[1][at[i + 1]]++;
        table[2][at[i + 2]]++;
        table[3][at[i + 3]]++;
    }
    for (; i < n; i++)
        table[0][at[i]]++;
    for (int k = 0; k < 256; k++)
        counts[k] += (uint64_t)table[0][k] + table[1][k] + table[2][k] + table[3][k];
}

#define GATHER(name)                    \
    do {                                \
        stki_##name *to = dst;          \
        const stki_##name *from = src;  \
        STKI_NO_OVERLAP                 \
        for (int64_t i = 0; i < n; i++) \
            to[i] = from[i * step];     \
    } while (0)

/* Aligned to a cache line: the loop for bytes has few instructions and was almost half as fast when it straddled two
 * lines. */
__attribute__((aligned(64))) static void gather(void *dst, const void *src, int64_t n, int64_t step, int64_t bytes)
{
    if (bytes == 1)
        GATHER(u8);
    else if (bytes == 2)
        GATHER(u16);
    else if (bytes == 4)
        GATHER(u32);
    else
        GATHER(u64);
}

#define STKI_STATS_BODY                                                                             \
    {                                                                                               \
        .look_f32 = look_f32, .look_f64 = look_f64, .whole_i32 = whole_i32, .whole_u32 = whole_u32, \
        .count_u8 = count_u8, .gather = gather                                                      \
    }
