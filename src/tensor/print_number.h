/* print_number.h: formats floats in decimal: the fewest digits that identify the number within its dtype, or a
 * requested precision, correctly rounded. Independent of the locale. */
#ifndef STKI_PRINT_NUMBER_H
#define STKI_PRINT_NUMBER_H

#include <stoker/tensor.h>

enum { STKI_MAX_DIGITS = 17, STKI_MAX_PRECISION = 60, STKI_NUMBER_SIZE = 512 };

/* |x| = 0.DIGITS * 10^point; "0" and 1 for zero. */
typedef struct stki_decimal {
    char digits[STKI_MAX_DIGITS + 1];
    int count, point;
} stki_decimal;

/* x must be finite and representable in the dtype. */
void stki_decimal_shortest(stk_dtype dtype, double x, stki_decimal *out);

/* Writes "-12.5": at most `precision` digits after the point, fewer if they are exact; always with a point. Returns the
 * number of digits after the point. `out` has STKI_NUMBER_SIZE bytes; |x| < about 10^17. */
int stki_number_plain(stk_dtype dtype, double x, int precision, char *out);
/* Like stki_number_plain, for the part of scientific notation before the "e", with at least `least` digits after the
 * point. *exponent receives the exponent. */
int stki_number_scientific(stk_dtype dtype, double x, int precision, int least, char *out, int *exponent);

#endif
