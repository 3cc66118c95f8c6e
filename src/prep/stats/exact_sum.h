/* exact_sum.h: sums without a rounding error, so that it does not matter in which order, by which threads and in how
 * many parts something was added up: the total is the same whole number of units of 2^-2240, and is rounded to a double
 * once, at the end. Such a sum holds what doubles, their squares and 128-bit integers come to, 2^60 of them.
 *
 * It is a number of digits of 32 bits, each in a word of 64, so that carries are put off until a digit has taken in
 * 2^30 terms (the "small superaccumulator" of R. M. Neal, Fast exact summation using small and large superaccumulators,
 * arXiv:1505.05571). Terms below the last unit are cut off.
 */
#ifndef STKI_EXACT_SUM_H
#define STKI_EXACT_SUM_H

#include <stdbool.h>
#include <stdint.h>

enum { STKI_EXACT_DIGITS = 140, STKI_EXACT_LOWEST = -2240 };

__extension__ typedef __int128 stki_i128;
__extension__ typedef unsigned __int128 stki_u128_word;

/* All zeros is the sum of nothing. */
typedef struct stki_exact {
    int64_t digit[STKI_EXACT_DIGITS]; /* digit i counts units of 2^(32 i - 2240) */
    int64_t pending;                  /* terms since the carries were last brought in */
} stki_exact;

/* sum += value * 2^exponent */
void stki_exact_add_whole(stki_exact *sum, stki_i128 value, int exponent);
/* sum += value * 2^exponent; finite. */
void stki_exact_add(stki_exact *sum, double value, int exponent);
void stki_exact_merge(stki_exact *sum, const stki_exact *other);
/* sum += other * factor; factor finite. */
void stki_exact_add_product(stki_exact *sum, const stki_exact *other, double factor);
/* Brings in the carries: equal sums then have equal digits; all but the last are in [0, 2^32). */
void stki_exact_settle(stki_exact *sum);
/* The sum is the result (at most 1, to nearest, ties to even) times 2^exponent, also where that is no double. */
double stki_exact_fraction(const stki_exact *sum, int *exponent);

/* A finite double as whole * 2^exponent. */
int64_t stki_exact_split(double value, int *exponent);

#endif
