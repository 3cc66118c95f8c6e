/* permutation_avx2.c: a pass of the network over sixteen values at a time, for the computed orders of large data sets.
 * The same function as in permutation.c. The halves lie in 64-bit lanes, where a multiplication of 32 by 32 bits takes
 * them; four vectors go side by side, as each waits for its multiplications. */
#include "permutation.h"
#include <immintrin.h>

enum { LANES = 4, VECTORS = 4 };

/* hi ^ lo of each product ends in the lower half of its lane; what is above is not looked at. */
static inline __m256i multiply_fold(__m256i lanes, __m256i factor)
{
    __m256i product = _mm256_mul_epu32(lanes, factor);

    return _mm256_xor_si256(product, _mm256_srli_epi64(product, 32));
}

static inline __m256i change(__m256i changed, __m256i other, __m256i key0, __m256i key1, __m256i mask)
{
    const __m256i factor0 = _mm256_set1_epi64x(STKI_MIX_FACTOR_0), factor1 = _mm256_set1_epi64x(STKI_MIX_FACTOR_1);
    __m256i mixed = multiply_fold(_mm256_xor_si256(other, key0), factor0);

    mixed = multiply_fold(_mm256_add_epi32(mixed, key1), factor1);
    return _mm256_xor_si256(changed, _mm256_and_si256(mixed, mask));
}

static inline void change_all(__m256i *changed, const __m256i *other, const uint32_t *keys, __m256i mask)
{
    const __m256i key0 = _mm256_set1_epi64x(keys[0]), key1 = _mm256_set1_epi64x(keys[1]);

    for (int v = 0; v < VECTORS; v++)
        changed[v] = change(changed[v], other[v], key0, key1, mask);
}

/* Where `value` is 0 or 1, the exchange of its permutation. */
static inline __m256i exchanged(__m256i value, __m256i exchange)
{
    __m256i small = _mm256_cmpeq_epi64(_mm256_srli_epi64(value, 1), _mm256_setzero_si256());

    return _mm256_xor_si256(value, _mm256_and_si256(small, exchange));
}

static inline void store(uint64_t *to, __m256i value)
{
    _mm256_storeu_si256((__m256i *)(void *)to, value);
}

static inline __m256i load(const void *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

int stki_permutation_pass_avx2(const stki_permutation *permutation, uint64_t *restrict values, int32_t *restrict place,
                               int count, uint64_t *restrict out)
{
    const __m128i half_bits = _mm_cvtsi32_si128(permutation->half_bits);
    const __m256i mask = _mm256_set1_epi64x((int64_t)((UINT64_C(1) << permutation->half_bits) - 1));
    const __m256i exchange = _mm256_set1_epi64x((int64_t)permutation->exchange);

    for (int i = 0; i < count; i += LANES * VECTORS) {
        __m256i left[VECTORS], right[VECTORS];

        for (int v = 0; v < VECTORS; v++) {
            __m256i value = load(values + i + v * LANES);

            left[v] = _mm256_srl_epi64(value, half_bits);
            right[v] = _mm256_and_si256(value, mask);
        }
        for (int round = 0; round < permutation->rounds; round += 2) {
            change_all(left, right, permutation->keys[round], mask);
            change_all(right, left, permutation->keys[round + 1], mask);
        }
        for (int v = 0; v < VECTORS; v++) {
            __m256i value = _mm256_or_si256(_mm256_sll_epi64(left[v], half_bits), right[v]);

            store(values + i + v * LANES, exchanged(value, exchange));
        }
    }
    return stki_permutation_settle(permutation->n, values, place, count, out);
}

/* In the lower half of each lane what the table has for its permutation; the upper half is not to be looked at. */
static inline __m256i of_lanes(const uint32_t *table, __m256i which)
{
    return _mm256_permutevar8x32_epi32(load(table), which);
}

/* The same, in all of each lane. */
static inline __m256i of_lanes_64(const uint32_t *table, __m256i which)
{
    return _mm256_and_si256(of_lanes(table, which), _mm256_set1_epi64x(UINT32_MAX));
}

int stki_permutations_pass_avx2(const stki_permutations *set, uint64_t *restrict values, uint64_t *restrict which,
                                int32_t *restrict place, int count, uint64_t *restrict out)
{
    for (int i = 0; i < count; i += LANES * VECTORS) {
        __m256i left[VECTORS], right[VECTORS], number[VECTORS], mask[VECTORS];

        for (int v = 0; v < VECTORS; v++) {
            __m256i value = load(values + i + v * LANES);

            number[v] = load(which + i + v * LANES);
            mask[v] = of_lanes_64(set->masks, number[v]);
            left[v] = _mm256_srlv_epi64(value, of_lanes_64(set->half_bits, number[v]));
            right[v] = _mm256_and_si256(value, mask[v]);
        }
        for (int round = 0; round < set->rounds; round += 2) {
            for (int v = 0; v < VECTORS; v++)
                left[v] = change(left[v], right[v], of_lanes(set->keys[round][0], number[v]),
                                 of_lanes(set->keys[round][1], number[v]), mask[v]);
            for (int v = 0; v < VECTORS; v++)
                right[v] = change(right[v], left[v], of_lanes(set->keys[round + 1][0], number[v]),
                                  of_lanes(set->keys[round + 1][1], number[v]), mask[v]);
        }
        for (int v = 0; v < VECTORS; v++) {
            __m256i half_bits = of_lanes_64(set->half_bits, number[v]);
            __m256i value = _mm256_or_si256(_mm256_sllv_epi64(left[v], half_bits), right[v]);

            store(values + i + v * LANES, exchanged(value, of_lanes_64(set->exchange, number[v])));
        }
    }
    return stki_permutations_settle(set->n, values, which, place, count, out);
}
