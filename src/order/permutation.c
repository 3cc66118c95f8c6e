/* permutation.c: a bijection on [0, n) that needs no memory: a balanced Feistel network over the next power of four,
 * with cycle walking. An index is split into two halves. Each round changes one half by a keyed function of the other,
 * which is invertible for any function, so the network permutes [0, 4^h). An image outside [0, n) passes through the
 * network again until it is inside: following a cycle of a permutation from a point inside leads back inside, and two
 * starting points never meet. Because 4^h < 4n, this takes 4^h / n < 4 passes on average.
 *
 * Rounds. With eight rounds of independent random functions, no statistic over the pairs of a whole domain stands out
 * from noise. This holds only for functions with many outputs: over a few bits the network mixes more slowly, so small
 * domains get more rounds (which cost little there; small data sets use a table anyway).
 *
 * Parity. A round over halves of two or more bits is an even permutation, so the network alone only produces even
 * permutations, and cycle walking does not remove that bias: for five samples, even orders would be a sixth more likely
 * than odd ones. A final step therefore exchanges the values 0 and 1, or does not, depending on one bit of the key.
 *
 * Speed. All indices of a run pass through the network together, one block at a time, in vectors (permutation_avx2.c,
 * permutation_avx512.c); only those still outside go to the next pass. */
#include "permutation.h"
#include "isa.h"
#include "order.h"
#include "philox.h"
#include <assert.h>

enum { BLOCK = STKI_PERMUTATION_BLOCK, SPARE = STKI_PERMUTATION_SPARE };

static const uint64_t ORDER_TAG = UINT64_C(0x6f72646572); /* "order"; separates these draws from all others */

uint64_t stki_order_key(uint64_t seed, uint64_t epoch)
{
    stki_philox hash = stki_philox_draw(seed, epoch, ORDER_TAG);

    return (uint64_t)hash.word[1] << 32 | hash.word[0];
}

struct passes {
    stki_permutation_pass *one;
    stki_permutations_pass *several;
};

static struct passes best_passes(void)
{
#if defined(__x86_64__)
    enum stki_isa isa = stki_isa();

    if (isa == STKI_ISA_AVX512)
        return (struct passes){stki_permutation_pass_avx512, stki_permutations_pass_avx512};
    if (isa == STKI_ISA_AVX2)
        return (struct passes){stki_permutation_pass_avx2, stki_permutations_pass_avx2};
#endif
    return (struct passes){stki_permutation_pass_plain, stki_permutations_pass_plain};
}

static int half_bits_for(uint64_t n)
{
    int half_bits = 1;

    while (half_bits < 32 && n > UINT64_C(1) << 2 * half_bits)
        half_bits++;
    return half_bits;
}

static int rounds_for(int half_bits)
{
    if (half_bits <= 4)
        return STKI_PERMUTATION_MAX_ROUNDS;
    return half_bits <= 8 ? 12 : 8;
}

void stki_permutation_init(stki_permutation *permutation, uint64_t seed, uint64_t epoch, uint64_t n)
{
    uint64_t key = stki_order_key(seed, epoch);

    assert(n >= 1);
    permutation->n = n;
    permutation->half_bits = half_bits_for(n);
    permutation->rounds = rounds_for(permutation->half_bits);
    permutation->pass = best_passes().one;
    for (int round = 0; round < permutation->rounds; round += 2) {
        stki_philox drawn = stki_philox_draw(key, STKI_KEY_ROUNDS, (uint64_t)round / 2);

        permutation->keys[round][0] = drawn.word[0];
        permutation->keys[round][1] = drawn.word[1];
        permutation->keys[round + 1][0] = drawn.word[2];
        permutation->keys[round + 1][1] = drawn.word[3];
    }
    permutation->exchange = stki_philox_draw(key, STKI_KEY_ROUNDS, STKI_PERMUTATION_MAX_ROUNDS).word[0] & 1;
}

/* The round function: two keyed multiplications, each of which folds the upper half of its 64-bit product into the
 * lower, so that every input bit affects every output bit. */
static inline uint32_t mix(uint32_t half, uint32_t key0, uint32_t key1)
{
    uint64_t product = (uint64_t)(half ^ key0) * STKI_MIX_FACTOR_0;

    product = (uint64_t)(((uint32_t)product ^ (uint32_t)(product >> 32)) + key1) * STKI_MIX_FACTOR_1;
    return (uint32_t)product ^ (uint32_t)(product >> 32);
}

static void round_plain(uint32_t *restrict changed, const uint32_t *restrict other, int count, const uint32_t *keys,
                        uint32_t mask)
{
    uint32_t key0 = keys[0], key1 = keys[1];

    for (int i = 0; i < count; i++)
        changed[i] ^= mix(other[i], key0, key1) & mask;
}

int stki_permutation_pass_plain(const stki_permutation *permutation, uint64_t *restrict values, int32_t *restrict place,
                                int count, uint64_t *restrict out)
{
    uint32_t left[BLOCK], right[BLOCK];
    int half_bits = permutation->half_bits;
    uint32_t mask = (uint32_t)((UINT64_C(1) << half_bits) - 1);

    for (int i = 0; i < count; i++) {
        left[i] = (uint32_t)(values[i] >> half_bits);
        right[i] = (uint32_t)values[i] & mask;
    }
    for (int round = 0; round < permutation->rounds; round += 2) {
        round_plain(left, right, count, permutation->keys[round], mask);
        round_plain(right, left, count, permutation->keys[round + 1], mask);
    }
    for (int i = 0; i < count; i++) {
        uint64_t value = (uint64_t)left[i] << half_bits | right[i];

        values[i] = value ^ (value < 2 ? permutation->exchange : 0);
    }
    return stki_permutation_settle(permutation->n, values, place, count, out);
}

/* Sets out[i] to the image of values[i]. Destroys `values`, which must have SPARE extra entries. */
static void run_block(const stki_permutation *permutation, uint64_t *values, int count, uint64_t *out)
{
    int32_t place[BLOCK + SPARE]; /* the index in `out` of values[i] */

    for (int i = 0; i < count; i++)
        place[i] = i;
    for (int i = count; i < count + SPARE; i++) { /* padding that a pass processes together with the last values */
        place[i] = 0;
        values[i] = 0;
    }
    while (count > 0)
        count = permutation->pass(permutation, values, place, count, out);
}

void stki_permutation_run(const stki_permutation *permutation, uint64_t first, int64_t count, uint64_t *out)
{
    assert(count >= 0 && (count == 0 || (first < permutation->n && (uint64_t)count <= permutation->n - first)));
    while (count > 0) {
        int part = count < BLOCK ? (int)count : BLOCK;
        uint64_t values[BLOCK + SPARE];

        for (int i = 0; i < part; i++)
            values[i] = first + (uint64_t)i;
        run_block(permutation, values, part, out);
        first += (uint64_t)part;
        out += part;
        count -= part;
    }
}

void stki_permutation_map(const stki_permutation *permutation, uint64_t *values, int64_t count)
{
    while (count > 0) {
        int part = count < BLOCK ? (int)count : BLOCK;
        uint64_t indices[BLOCK + SPARE];

        for (int i = 0; i < part; i++) {
            assert(values[i] < permutation->n);
            indices[i] = values[i];
        }
        run_block(permutation, indices, part, values);
        values += part;
        count -= part;
    }
}

/* ---- several ---- */

bool stki_permutations_add(stki_permutations *set, const stki_permutation *permutation)
{
    int at = set->count;

    if (at == STKI_PERMUTATIONS_MOST || (at > 0 && set->rounds != permutation->rounds))
        return false;
    set->count++;
    set->rounds = permutation->rounds;
    set->pass = best_passes().several;
    set->n[at] = permutation->n;
    set->half_bits[at] = (uint32_t)permutation->half_bits;
    set->masks[at] = (uint32_t)((UINT64_C(1) << permutation->half_bits) - 1);
    set->exchange[at] = (uint32_t)permutation->exchange;
    for (int round = 0; round < permutation->rounds; round++)
        for (int i = 0; i < 2; i++)
            set->keys[round][i][at] = permutation->keys[round][i];
    return true;
}

int stki_permutations_pass_plain(const stki_permutations *set, uint64_t *restrict values, uint64_t *restrict which,
                                 int32_t *restrict place, int count, uint64_t *restrict out)
{
    for (int i = 0; i < count; i++) {
        const uint64_t number = which[i];
        const uint32_t mask = set->masks[number];
        uint32_t left = (uint32_t)(values[i] >> set->half_bits[number]), right = (uint32_t)values[i] & mask;
        uint64_t value;

        for (int round = 0; round < set->rounds; round += 2) {
            left ^= mix(right, set->keys[round][0][number], set->keys[round][1][number]) & mask;
            right ^= mix(left, set->keys[round + 1][0][number], set->keys[round + 1][1][number]) & mask;
        }
        value = (uint64_t)left << set->half_bits[number] | right;
        values[i] = value ^ (value < 2 ? set->exchange[number] : 0);
    }
    return stki_permutations_settle(set->n, values, which, place, count, out);
}

void stki_permutations_map(const stki_permutations *set, const uint8_t *which, uint64_t *values, int64_t count)
{
    while (count > 0) {
        int part = count < BLOCK ? (int)count : BLOCK, left = part;
        uint64_t indices[BLOCK + SPARE], numbers[BLOCK + SPARE];
        int32_t place[BLOCK + SPARE];

        for (int i = 0; i < part; i++) {
            assert(which[i] < set->count && values[i] < set->n[which[i]]);
            indices[i] = values[i];
            numbers[i] = which[i];
            place[i] = i;
        }
        for (int i = part; i < part + SPARE; i++) {
            place[i] = 0;
            indices[i] = numbers[i] = 0;
        }
        while (left > 0)
            left = set->pass(set, indices, numbers, place, left, values);
        values += part;
        which += part;
        count -= part;
    }
}
