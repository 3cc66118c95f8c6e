/* mix_ref.c: mixing rows, for any processor. */
#include "mix.h"
#include <math.h>

void stki_mix_ref(float *out, const float *a, const float *b, int64_t n, float share, float rest)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = fmaf(a[i], share, b[i] * rest);
}
