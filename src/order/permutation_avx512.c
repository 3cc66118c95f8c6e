/* permutation_avx512.c: as permutation_avx2.c, with vectors of eight values. */
#include "permutation.h"
#include <immintrin.h>

enum { LANES = 8, VECTORS = 4 };

static inline __m512i multiply_fold(__m512i lanes, __m512i factor)
{
    __m512i product = _mm512_mul_epu32(lanes, factor);

    return _mm512_xor_si512(product, _mm512_srli_epi64(product, 32));
}

static inline __m512i change(__m512i changed, __m512i other, __m512i key0, __m512i key1, __m512i mask)
{
    const __m512i factor0 = _mm512_set1_epi64(STKI_MIX_FACTOR_0), factor1 = _mm512_set1_epi64(STKI_MIX_FACTOR_1);
    __m512i mixed = multiply_fold(_mm512_xor_si512(other, key0), factor0);

    mixed = multiply_fold(_mm512_add_epi32(mixed, key1), factor1);
    return _mm512_ternarylogic_epi64(changed, mixed, mask, 0x78); /* changed ^ (mixed & mask) */
}

static inline void change_all(__m512i *changed, const __m512i *other, const uint32_t *keys, __m512i mask)
{
    const __m512i key0 = _mm512_set1_epi64(keys[0]), key1 = _mm512_set1_epi64(keys[1]);

    for (int v = 0; v < VECTORS; v++)
        changed[v] = change(changed[v], other[v], key0, key1, mask);
}

int stki_permutation_pass_avx512(const stki_permutation *permutation, uint64_t *restrict values,
                                 int32_t *restrict place, int count, uint64_t *restrict out)
{
    const __m128i half_bits = _mm_cvtsi32_si128(permutation->half_bits);
    const __m512i mask = _mm512_set1_epi64((int64_t)((UINT64_C(1) << permutation->half_bits) - 1));
    const __m512i exchange = _mm512_set1_epi64((int64_t)permutation->exchange);

    for (int i = 0; i < count; i += LANES * VECTORS) {
        __m512i left[VECTORS], right[VECTORS];

        for (int v = 0; v < VECTORS; v++) {
            __m512i value = _mm512_loadu_si512(values + i + v * LANES);

            left[v] = _mm512_srl_epi64(value, half_bits);
            right[v] = _mm512_and_si512(value, mask);
        }
        for (int round = 0; round < permutation->rounds; round += 2) {
            change_all(left, right, permutation->keys[round], mask);
            change_all(right, left, permutation->keys[round + 1], mask);
        }
        for (int v = 0; v < VECTORS; v++) {
            __m512i value = _mm512_or_si512(_mm512_sll_epi64(left[v], half_bits), right[v]);
            __mmask8 small = _mm512_cmplt_epu64_mask(value, _mm512_set1_epi64(2));

            _mm512_storeu_si512(values + i + v * LANES, _mm512_mask_xor_epi64(value, small, value, exchange));
        }
    }
    return stki_permutation_settle(permutation->n, values, place, count, out);
}

/* In the lower half of each lane what the table has for its permutation; the upper half is not to be looked at. */
static inline __m512i of_lanes(const uint32_t *table, __m512i which)
{
    const __m256i all = _mm256_loadu_si256((const __m256i *)(const void *)table);

    return _mm512_permutexvar_epi32(which, _mm512_castsi256_si512(all));
}

/* The same, in all of each lane. */
static inline __m512i of_lanes_64(const uint32_t *table, __m512i which)
{
    return _mm512_and_si512(of_lanes(table, which), _mm512_set1_epi64(UINT32_MAX));
}

int stki_permutations_pass_avx512(const stki_permutations *set, uint64_t *restrict values, uint64_t *restrict which,
                                  int32_t *restrict place, int count, uint64_t *restrict out)
{
    for (int i = 0; i < count; i += LANES * VECTORS) {
        __m512i left[VECTORS], right[VECTORS], number[VECTORS], mask[VECTORS];

        for (int v = 0; v < VECTORS; v++) {
            __m512i value = _mm512_loadu_si512(values + i + v * LANES);

            number[v] = _mm512_loadu_si512(which + i + v * LANES);
            mask[v] = of_lanes_64(set->masks, number[v]);
            left[v] = _mm512_srlv_epi64(value, of_lanes_64(set->half_bits, number[v]));
            right[v] = _mm512_and_si512(value, mask[v]);
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
            __m512i half_bits = of_lanes_64(set->half_bits, number[v]);
            __m512i value = _mm512_or_si512(_mm512_sllv_epi64(left[v], half_bits), right[v]);
            __mmask8 small = _mm512_cmplt_epu64_mask(value, _mm512_set1_epi64(2));

            _mm512_storeu_si512(values + i + v * LANES,
                                _mm512_mask_xor_epi64(value, small, value, of_lanes_64(set->exchange, number[v])));
        }
    }
    return stki_permutations_settle(set->n, values, which, place, count, out);
}
