/* permutation_body.h: a pass of the network over VECTORS vectors of LANES values at a time, used by the computed orders
 * of large data sets, and the draws of a shuffle; included once per instruction set. They are the same functions as in
 * permutation.c and order_shuffle.c. Each half is in the low 32 bits of a 64-bit lane, where the 32 x 32 -> 64 bit
 * vector multiplication reads it. Four vectors are interleaved to hide the latency of the multiplications.
 *
 * The including file defines `lanes`, a vector of LANES 64-bit values, and its operations. */
enum { VECTORS = 4 };

/* Computes hi ^ lo of each product in the lower half of its lane; the upper half is ignored. */
static inline lanes multiply_fold(lanes x, lanes factor)
{
    lanes product = multiply(x, factor);

    return xor_of(product, shift_right(product, 32));
}

static inline lanes change(lanes changed, lanes other, lanes key0, lanes key1, lanes mask)
{
    lanes mixed = multiply_fold(xor_of(other, key0), all(STKI_MIX_FACTOR_0));

    mixed = multiply_fold(add_32(mixed, key1), all(STKI_MIX_FACTOR_1));
    return xor_masked(changed, mixed, mask);
}

static inline void change_all(lanes *changed, const lanes *other, const uint32_t *keys, lanes mask)
{
    const lanes key0 = all(keys[0]), key1 = all(keys[1]);

    for (int v = 0; v < VECTORS; v++)
        changed[v] = change(changed[v], other[v], key0, key1, mask);
}

int PASS(const stki_permutation *permutation, uint64_t *restrict values, int32_t *restrict place, int count,
         uint64_t *restrict out)
{
    const __m128i half_bits = _mm_cvtsi32_si128(permutation->half_bits);
    const lanes mask = all((UINT64_C(1) << permutation->half_bits) - 1);
    const lanes exchange = all(permutation->exchange);

    for (int i = 0; i < count; i += LANES * VECTORS) {
        lanes left[VECTORS], right[VECTORS];

        for (int v = 0; v < VECTORS; v++) {
            lanes value = load(values + i + v * LANES);

            left[v] = shift_all_right(value, half_bits);
            right[v] = and_of(value, mask);
        }
        for (int round = 0; round < permutation->rounds; round += 2) {
            change_all(left, right, permutation->keys[round], mask);
            change_all(right, left, permutation->keys[round + 1], mask);
        }
        for (int v = 0; v < VECTORS; v++) {
            lanes value = or_of(shift_all_left(left[v], half_bits), right[v]);

            store(values + i + v * LANES, exchanged(value, exchange));
        }
    }
    return stki_permutation_settle(permutation->n, values, place, count, out);
}

/* Like of_lanes, with the upper half of each lane cleared. */
static inline lanes of_lanes_64(const uint32_t *table, lanes which)
{
    return and_of(of_lanes(table, which), all(UINT32_MAX));
}

int PASSES(const stki_permutations *set, uint64_t *restrict values, uint64_t *restrict which, int32_t *restrict place,
           int count, uint64_t *restrict out)
{
    for (int i = 0; i < count; i += LANES * VECTORS) {
        lanes left[VECTORS], right[VECTORS], number[VECTORS], mask[VECTORS];

        for (int v = 0; v < VECTORS; v++) {
            lanes value = load(values + i + v * LANES);

            number[v] = load(which + i + v * LANES);
            mask[v] = of_lanes_64(set->masks, number[v]);
            left[v] = shift_each_right(value, of_lanes_64(set->half_bits, number[v]));
            right[v] = and_of(value, mask[v]);
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
            lanes half_bits = of_lanes_64(set->half_bits, number[v]);
            lanes value = or_of(shift_each_left(left[v], half_bits), right[v]);

            store(values + i + v * LANES, exchanged(value, of_lanes_64(set->exchange, number[v])));
        }
    }
    return stki_permutations_settle(set->n, values, which, place, count, out);
}

/* ---- the draws of a shuffle (order_shuffle.h): Philox4x32-10, as in philox.c ---- */

/* Only the lower halves of the lanes are used. */
static inline void philox_round(lanes *counter, lanes key0, lanes key1)
{
    const lanes product0 = multiply(counter[0], all(UINT32_C(0xd2511f53)));
    const lanes product1 = multiply(counter[2], all(UINT32_C(0xcd9e8d57)));

    counter[0] = xor_of(xor_of(shift_right(product1, 32), counter[1]), key0);
    counter[1] = product1;
    counter[2] = xor_of(xor_of(shift_right(product0, 32), counter[3]), key1);
    counter[3] = product0;
}

void DRAW(uint64_t key, uint64_t stream, uint64_t first, int count, uint64_t *products)
{
    uint64_t numbers[LANES];

    for (int k = 0; k < LANES; k++)
        numbers[k] = first + (uint64_t)k;
    for (int i = 0; i < count; i += LANES * VECTORS) {
        lanes counters[VECTORS][4];
        uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);

        for (int v = 0; v < VECTORS; v++) {
            counters[v][0] = add_64(load(numbers), all(i + v * LANES));
            counters[v][1] = all(0);
            counters[v][2] = all(stream);
            counters[v][3] = all(stream >> 32);
        }
        for (int round = 0; round < 10; round++, key0 += UINT32_C(0x9e3779b9), key1 += UINT32_C(0xbb67ae85))
            for (int v = 0; v < VECTORS; v++)
                philox_round(counters[v], all(key0), all(key1));
        for (int v = 0; v < VECTORS; v++) {
            const lanes bound = add_64(load(numbers), all(i + v * LANES + 1));

            store(products + i + v * LANES,
                  add_64(multiply(counters[v][1], bound), shift_right(multiply(counters[v][0], bound), 32)));
        }
    }
}
