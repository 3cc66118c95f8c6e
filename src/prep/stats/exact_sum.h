/* exact_sum.h: sums without rounding errors, which do not depend on the order of additions or on how they are divided
 * among threads: the total is an integer multiple of 2^-2240 and is rounded to double once, at the end. Up to 2^60
 * doubles, squares of doubles, or 128-bit integers can be added.
 *
 * A sum consists of 32-bit digits, each in a 64-bit word, so that carries can be deferred until 2^30 terms have been
 * added to a digit (the "small superaccumulator" of R. M. Neal, Fast exact summation using small and large
 * superaccumulators, arXiv:1505.05571). Bits below the last unit are dropped. */
#ifndef STKI_EXACT_SUM_H
#define STKI_EXACT_SUM_H

#include <stdbool.h>
#include <stdint.h>

enum { STKI_EXACT_DIGITS = 140, STKI_EXACT_LOWEST = -2240 };

__extension__ typedef __int128 stki_i128;
__extension__ typedef unsigned __int128 stki_u128_word;

/* All zeros is an empty sum. */
typedef struct stki_exact {
    int64_t digit[STKI_EXACT_DIGITS]; /* digit i counts units of 2^(32 i - 2240) */
    int64_t pending;                  /* terms since the last carry propagation */
} stki_exact;

/* sum += value * 2^exponent */
void stki_exact_add_whole(stki_exact *sum, stki_i128 value, int exponent);
/* sum += value * 2^exponent; value must be finite. */
void stki_exact_add(stki_exact *sum, double value, int exponent);
void stki_exact_merge(stki_exact *sum, const stki_exact *other);
/* sum += other * factor; factor must be finite. */
void stki_exact_add_product(stki_exact *sum, const stki_exact *other, double factor);
/* Propagates the carries. Equal sums then have equal digits; all except the last are in [0, 2^32). */
void stki_exact_settle(stki_exact *sum);
/* Returns f such that the sum is f * 2^*exponent, rounded to nearest even; |f| <= 1. The sum may exceed the range of
 * double. */
double stki_exact_fraction(const stki_exact *sum, int *exponent);

/* Splits a finite double into integer * 2^exponent. */
int64_t stki_exact_split(double value, int *exponent);

#endif
