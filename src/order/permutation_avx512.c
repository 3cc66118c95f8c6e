/* permutation_avx512.c: passes of the permutation network, and the draws of a shuffle, for AVX-512. */
#include "order_shuffle.h"
#include "permutation.h"
#include <immintrin.h>

enum { LANES = 8 };
typedef __m512i lanes;

#define all(x) _mm512_set1_epi64((int64_t)(x))
#define multiply _mm512_mul_epu32
#define add_32 _mm512_add_epi32
#define add_64 _mm512_add_epi64
#define and_of _mm512_and_si512
#define or_of _mm512_or_si512
#define xor_of _mm512_xor_si512
#define xor_masked(x, y, mask) _mm512_ternarylogic_epi64(x, y, mask, 0x78)
#define shift_right _mm512_srli_epi64
#define shift_all_right _mm512_srl_epi64
#define shift_all_left _mm512_sll_epi64
#define shift_each_right _mm512_srlv_epi64
#define shift_each_left _mm512_sllv_epi64
#define load _mm512_loadu_si512
#define store _mm512_storeu_si512

/* XORs lanes whose value is 0 or 1 with `exchange`. */
static inline lanes exchanged(lanes value, lanes exchange)
{
    return _mm512_mask_xor_epi64(value, _mm512_cmplt_epu64_mask(value, all(2)), value, exchange);
}

/* Looks up the table entry of each lane's permutation in the lower half of the lane; the upper half is undefined. */
static inline lanes of_lanes(const uint32_t *table, lanes which)
{
    const __m256i eight = _mm256_loadu_si256((const __m256i *)(const void *)table);

    return _mm512_permutexvar_epi32(which, _mm512_castsi256_si512(eight));
}

#define PASS stki_permutation_pass_avx512
#define PASSES stki_permutations_pass_avx512
#define DRAW stki_shuffle_draw_avx512
#include "permutation_body.h"
