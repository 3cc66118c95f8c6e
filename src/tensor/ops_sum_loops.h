/* ops_sum_loops.h: the inner loops of sums. Every variant adds in the same order, so that all produce bit-identical
 * results. A row is added into 32 partial sums, element i into number i mod 32, which are then added by halves (number
 * j and j + 16, then j + 8, …). Columns are added eight rows at a time, ((0+1)+(2+3))+((4+5)+(6+7)). All sums are in
 * f64. No alignment is required. */
#ifndef STKI_OPS_SUM_LOOPS_H
#define STKI_OPS_SUM_LOOPS_H

#include "convert.h"

enum { STKI_SUM_LANES = 32 };

typedef double (*stki_sum_row_fn)(const void *x, int64_t n);
/* acc[j] += element j of each of `rows` rows, `step` bytes apart. */
typedef void (*stki_sum_columns_fn)(double *acc, const void *x, int64_t step, int64_t rows, int64_t columns);

typedef struct stki_sum_loops {
    stki_sum_row_fn row_f32, row_f64;
    stki_sum_columns_fn columns_f32, columns_f64;
} stki_sum_loops;

stki_sum_loops stki_sum_loops_of(enum stki_isa isa);

extern const stki_sum_loops stki_sum_loops_ref, stki_sum_loops_avx2, stki_sum_loops_avx512;

#endif
