/* stats_loops.h: the innermost loops of statistics: what a run of adjacent elements of one channel comes to. Sums of
 * floats are taken in a fixed way (element i goes to lane i mod 16, lanes are added in pairs), so that every
 * instruction set gives the same bits; stats_loops_ref.c is the definition.
 *
 * A run has at most STKI_RUN elements.
 */
#ifndef STKI_STATS_LOOPS_H
#define STKI_STATS_LOOPS_H

#include "isa.h"
#include <stdint.h>
#include <stoker/tensor.h>

enum { STKI_RUN = 4096, STKI_COUNT_RUN = 16384 };

/* Of floats. d is an element (of f64: times a scale) less the pivot. */
typedef struct stki_run_look {
    double min, max;    /* of the elements themselves; 0 for -0 */
    double sum, square; /* of d, and of d * d */
    int64_t zeros;
    bool strange; /* the sum is infinite or NaN: an element is, or (f64) it ran over; the rest means nothing then */
} stki_run_look;

/* Of whole numbers, exact. Their squares are square_high * 2^32 + square_low. */
typedef struct stki_run_whole {
    int64_t min, max, sum, zeros;
    uint64_t square_low, square_high;
} stki_run_whole;

typedef struct stki_stats_loops {
    void (*look_f32)(const void *x, int64_t n, double pivot, stki_run_look *out);
    void (*look_f64)(const void *x, int64_t n, double scale, double pivot, stki_run_look *out);
    void (*whole_i32)(const void *x, int64_t n, stki_run_whole *out);
    void (*whole_u32)(const void *x, int64_t n, stki_run_whole *out);
    /* counts[x[i]]++; at most STKI_COUNT_RUN elements. */
    void (*count_u8)(const void *x, int64_t n, uint64_t *counts);
    /* Every `step`-th element of 1, 2, 4 or 8 bytes, to lie side by side. */
    void (*gather)(void *dst, const void *src, int64_t n, int64_t step, int64_t bytes);
} stki_stats_loops;

extern const stki_stats_loops stki_stats_loops_ref, stki_stats_loops_avx2, stki_stats_loops_avx512;
const stki_stats_loops *stki_stats_loops_of(enum stki_isa isa);

#endif
