/* print_number.h: numbers of a real dtype in decimal: the fewest digits that are this number and no other of its dtype,
 * or as many as asked for, correctly rounded. Independent of the locale. */
#ifndef STKI_PRINT_NUMBER_H
#define STKI_PRINT_NUMBER_H

#include <stoker/tensor.h>

enum { STKI_MAX_DIGITS = 17, STKI_MAX_PRECISION = 60, STKI_NUMBER_SIZE = 512 };

/* |x| = 0.DIGITS * 10^point; "0" and 1 for zero. */
typedef struct stki_decimal {
    char digits[STKI_MAX_DIGITS + 1];
    int count, point;
} stki_decimal;

/* x is finite and a number of that dtype. */
void stki_decimal_shortest(stk_dtype dtype, double x, stki_decimal *out);

/* "-12.5": at most `precision` digits behind the point, fewer where they say all; the point is always there. Returns
 * how many there are behind the point. Room for STKI_NUMBER_SIZE, |x| < 10^17 or so. */
int stki_number_plain(stk_dtype dtype, double x, int precision, char *out);
/* The part before the "e" likewise, at least `least` digits behind the point; *exponent gets what comes after. */
int stki_number_scientific(stk_dtype dtype, double x, int precision, int least, char *out, int *exponent);

#endif
