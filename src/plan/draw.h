/* draw.h: the random numbers of transforms. A draw is a pure function of (seed, epoch, position in the epoch, name of
 * the draw), so that a sample is transformed alike by any worker and after any restart, anew in every epoch, and fields
 * that name one draw share it. Philox gives the bits; everything made from them uses + - * / and square roots alone,
 * also exp and log, so that all machines get the same parameters. Callers run under the default floating-point control
 * (float_control.h).
 */
#ifndef STKI_DRAW_H
#define STKI_DRAW_H

#include <stdbool.h>
#include <stdint.h>

/* Of a seed and an epoch. */
uint64_t stki_draw_key(uint64_t seed, int64_t epoch);
/* Of a draw's name and what it is used for: two operations may share a name and still differ. */
uint64_t stki_draw_name(const char *name, const char *operation);

/* Which sample is drawn for. */
typedef struct stki_occasion {
    uint64_t key;     /* stki_draw_key */
    int64_t position; /* stki_position.draw */
} stki_occasion;

/* A stream of numbers; asking again from the start gives them again. */
typedef struct stki_draw {
    uint64_t key, next;
    uint64_t words[2];
} stki_draw;

void stki_draw_begin(stki_draw *draw, const stki_occasion *occasion, uint64_t name);
/* 64 bits to start a generator of somebody else's with. */
uint64_t stki_draw_seed(const stki_occasion *occasion, uint64_t name);
uint64_t stki_draw_bits(stki_draw *draw);
double stki_draw_unit(stki_draw *draw); /* [0, 1), multiples of 2^-53 */
double stki_draw_between(stki_draw *draw, double low, double high);
/* Uniform in the logarithm; 0 < low <= high. */
double stki_draw_log_between(stki_draw *draw, double low, double high);
/* [0, bound), bound >= 1, always from one word: fields of different sizes that share a draw get the same share of
 * theirs. Off from uniform by less than bound / 2^64. */
int64_t stki_draw_below(stki_draw *draw, int64_t bound);
bool stki_draw_chance(stki_draw *draw, double p);
double stki_draw_normal(stki_draw *draw);
/* `n` of them, times a, plus b. */
void stki_draw_normals(stki_draw *draw, double a, double b, float *out, int64_t n);
double stki_draw_beta(stki_draw *draw, double alpha, double beta); /* both above 0 */

/* Within 2 units in the last place of the true value. log: x > 0 and normal; exp: |x| <= 700, below that 0. */
double stki_draw_log(double x);
double stki_draw_exp(double x);

#endif
