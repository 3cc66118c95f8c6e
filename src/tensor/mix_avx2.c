/* mix_avx2.c: mixing rows, for AVX2. */
#include "mix.h"
#include <math.h>

void stki_mix_avx2(float *out, const float *a, const float *b, int64_t n, float share, float rest)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = fmaf(a[i], share, b[i] * rest);
}
