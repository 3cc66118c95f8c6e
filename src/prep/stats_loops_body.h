/* stats_loops_body.h: the loops of stats_loops.h as text, compiled once for each instruction set. */
#include "ops_unaligned.h"
#include "stats_loops.h"
#include <math.h>
#include <string.h>

enum { LANES = 16 };

/* The lanes in pairs: 0 with 8, 1 with 9, …; then 0 with 4, and so on. */
static double add_lanes(double *lane)
{
    for (int width = LANES / 2; width; width /= 2)
        for (int k = 0; k < width; k++)
            lane[k] += lane[k + width];
    return lane[0];
}

#ifndef STKI_VECTORS
/* A sum is infinite or NaN if an element was (of f64 also if it ran over: the caller then looks closer), so that the
 * comparisons need not care. Adding 0 makes 0 of -0. */
#define LOOK(name, type)                                                                          \
    static void look_##name(const void *x, int64_t n, stki_run_look *out)                         \
    {                                                                                             \
        const stki_##name *at = x;                                                                \
        type min = (type)INFINITY, max = (type)-INFINITY;                                         \
        double lane[LANES] = {0}, sum;                                                            \
        int64_t zeros = 0;                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                         \
            lane[i % LANES] += (double)at[i];                                                     \
            min = at[i] < min ? at[i] : min;                                                      \
            max = at[i] > max ? at[i] : max;                                                      \
            zeros += at[i] == 0;                                                                  \
        }                                                                                         \
        sum = add_lanes(lane);                                                                    \
        *out = (stki_run_look){(double)min + 0.0, (double)max + 0.0, sum, zeros, !isfinite(sum)}; \
    }
LOOK(f32, float)
LOOK(f64, double)

static void spread_f32(const void *x, int64_t n, double mean, double *sum, double *square)
{
    const stki_f32 *at = x;
    double first[LANES] = {0}, second[LANES] = {0};

    for (int64_t i = 0; i < n; i++) {
        const double d = (double)at[i] - mean;

        first[i % LANES] += d;
        second[i % LANES] += d * d;
    }
    *sum = add_lanes(first);
    *square = add_lanes(second);
}

static void spread_f64(const void *x, int64_t n, double scale, double mean, double *sum, double *square)
{
    const stki_f64 *at = x;
    double first[LANES] = {0}, second[LANES] = {0};

    for (int64_t i = 0; i < n; i++) {
        const double d = at[i] * scale - mean;

        first[i % LANES] += d;
        second[i % LANES] += d * d;
    }
    *sum = add_lanes(first);
    *square = add_lanes(second);
}
#else
/* The same by vectors: `vd` holds VD doubles, `vf` and `vi` VF floats and as many counters. */
enum { D = LANES / VD, F = LANES / VF };

static void look_f32(const void *x, int64_t n, stki_run_look *out)
{
    const stki_f32 *at = x;
    vd lane[D];
    vf low[F], high[F];
    vi zero[F];
    double sums[LANES], sum;
    float lows[LANES], highs[LANES], min = INFINITY, max = -INFINITY;
    int32_t zero_counts[LANES];
    int64_t i = 0, zeros = 0;

    for (int k = 0; k < D; k++)
        lane[k] = vd_all(0);
    for (int k = 0; k < F; k++) {
        low[k] = vf_all(INFINITY);
        high[k] = vf_all(-INFINITY);
        zero[k] = vi_none();
    }
    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < F; k++) {
            const vf v = vf_load(at + i + k * VF);

            low[k] = vf_min(v, low[k]);
            high[k] = vf_max(v, high[k]);
            zero[k] = vi_count_zeros(zero[k], v);
            lane[2 * k] = vd_add(lane[2 * k], vf_lower(v));
            lane[2 * k + 1] = vd_add(lane[2 * k + 1], vf_upper(v));
        }
    }
    memcpy(sums, lane, sizeof sums);
    memcpy(lows, low, sizeof lows);
    memcpy(highs, high, sizeof highs);
    memcpy(zero_counts, zero, sizeof zero_counts);
    for (int k = 0; i < n; i++, k++) {
        sums[k] += (double)at[i];
        min = at[i] < min ? at[i] : min;
        max = at[i] > max ? at[i] : max;
        zeros += at[i] == 0;
    }
    for (int k = 0; k < LANES; k++) {
        min = lows[k] < min ? lows[k] : min;
        max = highs[k] > max ? highs[k] : max;
        zeros += zero_counts[k];
    }
    sum = add_lanes(sums);
    *out = (stki_run_look){(double)min + 0.0, (double)max + 0.0, sum, zeros, !isfinite(sum)};
}

static void look_f64(const void *x, int64_t n, stki_run_look *out)
{
    const stki_f64 *at = x;
    vd lane[D], low[D], high[D];
    double sums[LANES], lows[LANES], highs[LANES], min = (double)INFINITY, max = -(double)INFINITY, sum;
    int64_t i = 0, zeros = 0;

    for (int k = 0; k < D; k++) {
        lane[k] = vd_all(0);
        low[k] = vd_all((double)INFINITY);
        high[k] = vd_all(-(double)INFINITY);
    }
    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < D; k++) {
            const vd v = vd_load(at + i + k * VD);

            low[k] = vd_min(v, low[k]);
            high[k] = vd_max(v, high[k]);
            zeros += vd_zeros(v);
            lane[k] = vd_add(lane[k], v);
        }
    }
    memcpy(sums, lane, sizeof sums);
    memcpy(lows, low, sizeof lows);
    memcpy(highs, high, sizeof highs);
    for (int k = 0; i < n; i++, k++) {
        sums[k] += at[i];
        min = at[i] < min ? at[i] : min;
        max = at[i] > max ? at[i] : max;
        zeros += at[i] == 0;
    }
    for (int k = 0; k < LANES; k++) {
        min = lows[k] < min ? lows[k] : min;
        max = highs[k] > max ? highs[k] : max;
    }
    sum = add_lanes(sums);
    *out = (stki_run_look){min + 0.0, max + 0.0, sum, zeros, !isfinite(sum)};
}

/* The elements behind the last whole turn, and the lanes together. */
#define END_OF_SPREAD(VALUE)                 \
    memcpy(firsts, first, sizeof firsts);    \
    memcpy(seconds, second, sizeof seconds); \
    for (int k = 0; i < n; i++, k++) {       \
        const double d = VALUE - mean;       \
        firsts[k] += d;                      \
        seconds[k] += d * d;                 \
    }                                        \
    *sum = add_lanes(firsts);                \
    *square = add_lanes(seconds)

static void spread_f32(const void *x, int64_t n, double mean, double *sum, double *square)
{
    const stki_f32 *at = x;
    const vd means = vd_all(mean);
    vd first[D], second[D];
    double firsts[LANES], seconds[LANES];
    int64_t i = 0;

    for (int k = 0; k < D; k++)
        first[k] = second[k] = vd_all(0);
    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < D; k++) {
            const vd d = vd_sub(vd_load_floats(at + i + k * VD), means);

            first[k] = vd_add(first[k], d);
            second[k] = vd_add(second[k], vd_mul(d, d));
        }
    }
    END_OF_SPREAD((double)at[i]);
}

static void spread_f64(const void *x, int64_t n, double scale, double mean, double *sum, double *square)
{
    const stki_f64 *at = x;
    const vd means = vd_all(mean), scales = vd_all(scale);
    vd first[D], second[D];
    double firsts[LANES], seconds[LANES];
    int64_t i = 0;

    for (int k = 0; k < D; k++)
        first[k] = second[k] = vd_all(0);
    for (; i + LANES <= n; i += LANES) {
        for (int k = 0; k < D; k++) {
            const vd d = vd_sub(vd_mul(vd_load(at + i + k * VD), scales), means);

            first[k] = vd_add(first[k], d);
            second[k] = vd_add(second[k], vd_mul(d, d));
        }
    }
    END_OF_SPREAD(at[i] * scale);
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

/* Neighbours are often equal; four tables keep an element from waiting for its neighbour's count. */
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

static void gather(void *dst, const void *src, int64_t n, int64_t step, int64_t bytes)
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

#define STKI_STATS_BODY                                                                                 \
    {                                                                                                   \
        .look_f32 = look_f32, .look_f64 = look_f64, .spread_f32 = spread_f32, .spread_f64 = spread_f64, \
        .whole_i32 = whole_i32, .whole_u32 = whole_u32, .count_u8 = count_u8, .gather = gather          \
    }
