/* permutation_avx2.c: passes of the permutation network, and the draws of a shuffle, for AVX2. */
#include "order_shuffle.h"
#include "permutation.h"
#include <immintrin.h>

enum { LANES = 4 };
typedef __m256i lanes;

#define all(x) _mm256_set1_epi64x((int64_t)(x))
#define multiply _mm256_mul_epu32
#define add_32 _mm256_add_epi32
#define add_64 _mm256_add_epi64
#define and_of _mm256_and_si256
#define or_of _mm256_or_si256
#define xor_of _mm256_xor_si256
#define xor_masked(x, y, mask) _mm256_xor_si256(x, _mm256_and_si256(y, mask))
#define shift_right _mm256_srli_epi64
#define shift_all_right _mm256_srl_epi64
#define shift_all_left _mm256_sll_epi64
#define shift_each_right _mm256_srlv_epi64
#define shift_each_left _mm256_sllv_epi64

static inline lanes load(const void *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

static inline void store(void *to, lanes value)
{
    _mm256_storeu_si256((__m256i *)to, value);
}

/* XORs lanes whose value is 0 or 1 with `exchange`. */
static inline lanes exchanged(lanes value, lanes exchange)
{
    lanes small = _mm256_cmpeq_epi64(_mm256_srli_epi64(value, 1), _mm256_setzero_si256());

    return xor_masked(value, small, exchange);
}

/* Looks up the table entry of each lane's permutation in the lower half of the lane; the upper half is undefined. */
static inline lanes of_lanes(const uint32_t *table, lanes which)
{
    return _mm256_permutevar8x32_epi32(load(table), which);
}

#define PASS stki_permutation_pass_avx2
#define PASSES stki_permutations_pass_avx2
#define DRAW stki_shuffle_draw_avx2
#include "permutation_body.h"
