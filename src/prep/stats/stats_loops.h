/* stats_loops.h: the innermost loops of statistics, for a run of contiguous elements of one channel. Sums of floats
 * have a fixed order (element i is added to lane i mod 16, lanes are added in pairs), so that every instruction set
 * gives the same bits; stats_loops_ref.c is the definition.
 *
 * A run has at most STKI_RUN elements. */
#ifndef STKI_STATS_LOOPS_H
#define STKI_STATS_LOOPS_H

#include "isa.h"
#include <stdint.h>
#include <stoker/tensor.h>

enum { STKI_RUN = 4096, STKI_COUNT_RUN = 16384 };

/* Results for floats. d is an element (f64: times a scale) minus the pivot. */
typedef struct stki_run_look {
    double min, max;    /* range of the elements; -0 is stored as 0 */
    double sum, square; /* sums of d and of d * d */
    int64_t zeros;
    bool strange; /* the sum is infinite or NaN because an element is, or (f64) by overflow; the other members are then
                     invalid */
} stki_run_look;

/* Exact results for integers. The sum of squares is square_high * 2^32 + square_low. */
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
    /* Copies every `step`-th element of 1, 2, 4 or 8 bytes to contiguous memory. */
    void (*gather)(void *dst, const void *src, int64_t n, int64_t step, int64_t bytes);
} stki_stats_loops;

extern const stki_stats_loops stki_stats_loops_ref, stki_stats_loops_avx2, stki_stats_loops_avx512;
const stki_stats_loops *stki_stats_loops_of(enum stki_isa isa);

#endif
