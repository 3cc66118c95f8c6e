/* mix.h: mixes two rows of f32 before they are rounded: y = fmaf(a, share, b * rest). All variants produce
 * bit-identical results. */
#ifndef STKI_MIX_H
#define STKI_MIX_H

#include "convert.h"

typedef void (*stki_mix_fn)(float *out, const float *a, const float *b, int64_t n, float share, float rest);

/* `out` may be `a` or `b`. */
stki_mix_fn stki_mix_of(enum stki_isa isa);
void stki_mix_ref(float *out, const float *a, const float *b, int64_t n, float share, float rest);
void stki_mix_avx2(float *out, const float *a, const float *b, int64_t n, float share, float rest);
void stki_mix_avx512(float *out, const float *a, const float *b, int64_t n, float share, float rest);

#endif
