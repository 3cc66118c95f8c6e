/* print_column.h: one way of writing that all shown elements of a tensor share, so that they stand in columns. */
#ifndef STKI_PRINT_COLUMN_H
#define STKI_PRINT_COLUMN_H

#include "print_number.h"

/* Real numbers, or one part of complex ones. */
typedef struct stki_real_column {
    stk_dtype dtype;
    bool scientific, sign; /* sign: a + before what is not negative */
    int precision, least;  /* digits behind the point, of the scientific form at least `least` */
    int exponent_digits;
    int left, right; /* characters before and behind the point */
} stki_real_column;

typedef struct stki_column {
    stk_dtype dtype;
    int width; /* whole numbers */
    stki_real_column real, imaginary;
} stki_column;

/* Fits the elements, `count` of them side by side in native byte order. `precision` may be 0. */
void stki_column_fit(stki_column *column, stk_dtype dtype, const void *elements, int64_t count, int precision,
                     bool suppress_small);
/* Room for 2 * STKI_NUMBER_SIZE. Returns the length. */
int stki_column_write(const stki_column *column, const void *element, bool alone, char *out);

#endif
