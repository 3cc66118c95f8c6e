/* permutation_avx2.c: one round of the network over eight halves at a time, for the computed orders of large data sets.
 * The same function as mix() in permutation.c; a multiplication of 32 by 32 bits takes every second lane, so even and
 * odd lanes go side by side and meet again at the end. */
#include "permutation.h"
#include <immintrin.h>

/* hi ^ lo of each 64-bit product ends in the lower half of its lane; the upper half is not used again. */
static inline __m256i multiply_fold(__m256i lanes, __m256i factor)
{
    __m256i product = _mm256_mul_epu32(lanes, factor);

    return _mm256_xor_si256(product, _mm256_srli_epi64(product, 32));
}

void stki_permutation_round_avx2(uint32_t *restrict changed, const uint32_t *restrict other, int count,
                                 const uint32_t *keys, uint32_t mask)
{
    __m256i key0 = _mm256_set1_epi32((int)keys[0]), key1 = _mm256_set1_epi32((int)keys[1]);
    __m256i factor0 = _mm256_set1_epi32((int)STKI_MIX_FACTOR_0), factor1 = _mm256_set1_epi32((int)STKI_MIX_FACTOR_1);
    __m256i masks = _mm256_set1_epi32((int)mask);

    for (int i = 0; i < count; i += 8) {
        __m256i even = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)(other + i)), key0);
        __m256i odd = _mm256_srli_epi64(even, 32);
        __m256i mixed, before = _mm256_loadu_si256((const __m256i *)(const void *)(changed + i));

        even = multiply_fold(_mm256_add_epi32(multiply_fold(even, factor0), key1), factor1);
        odd = multiply_fold(_mm256_add_epi32(multiply_fold(odd, factor0), key1), factor1);
        mixed = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
        _mm256_storeu_si256((__m256i *)(void *)(changed + i), _mm256_xor_si256(before, _mm256_and_si256(mixed, masks)));
    }
}
