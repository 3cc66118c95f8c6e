/* draw.h: the random numbers of transforms. A draw is a pure function of (seed, epoch, position in the epoch, name of
 * the draw), so that a sample gets the same transform in any worker and after any restart, but a different one in each
 * epoch. Fields that use the same draw name get the same values. The bits come from Philox. Everything derived from
 * them, including exp and log, uses only + - * / and square roots, so that all machines compute the same parameters.
 * Callers must run with the default floating-point control (float_control.h). */
#ifndef STKI_DRAW_H
#define STKI_DRAW_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the key of all draws with this seed in this epoch. */
uint64_t stki_draw_key(uint64_t seed, int64_t epoch);
/* Returns the number of a draw, a hash of its name and of the operation that uses it. Two operations with the same draw
 * name have different numbers. */
uint64_t stki_draw_name(const char *name, const char *operation);

/* The occasion for which numbers are drawn: an epoch and a position in it. */
typedef struct stki_occasion {
    uint64_t key;     /* stki_draw_key */
    int64_t position; /* stki_position.draw */
} stki_occasion;

/* A stream of random numbers. Restarting it yields the same numbers. */
typedef struct stki_draw {
    uint64_t key, next;
    uint64_t words[2];
} stki_draw;

void stki_draw_begin(stki_draw *draw, const stki_occasion *occasion, uint64_t name);
/* Returns 64 bits to seed another random number generator. */
uint64_t stki_draw_seed(const stki_occasion *occasion, uint64_t name);
uint64_t stki_draw_bits(stki_draw *draw);
double stki_draw_unit(stki_draw *draw); /* [0, 1), multiples of 2^-53 */
double stki_draw_between(stki_draw *draw, double low, double high);
/* Uniform in the logarithm; 0 < low <= high. */
double stki_draw_log_between(stki_draw *draw, double low, double high);
/* [0, bound), bound >= 1. Always consumes one 64-bit word, so that fields of different sizes that share a draw get the
 * same fraction of their sizes. The deviation from uniform is less than bound / 2^64. */
int64_t stki_draw_below(stki_draw *draw, int64_t bound);
bool stki_draw_chance(stki_draw *draw, double p);
double stki_draw_normal(stki_draw *draw);
/* Writes a * x + b for each of `n` normal numbers x. */
void stki_draw_normals(stki_draw *draw, double a, double b, float *out, int64_t n);
double stki_draw_beta(stki_draw *draw, double alpha, double beta); /* both > 0 */

/* Accurate to 2 ulp. log: x must be positive and normal. exp: |x| <= 700; smaller x gives 0. */
double stki_draw_log(double x);
double stki_draw_exp(double x);

#endif
