/* permutation.h: the keyed bijection on [0, n) with its keys worked out, for runs of indices. A plain value; any number
 * of threads may read one. */
#ifndef STKI_PERMUTATION_H
#define STKI_PERMUTATION_H

#include <stdint.h>

enum { STKI_PERMUTATION_MAX_ROUNDS = 24 };

/* changed[i] ^= mix(other[i], keys[0], keys[1]) & mask for i < count, and for up to 7 elements more. */
typedef void stki_permutation_round(uint32_t *restrict changed, const uint32_t *restrict other, int count,
                                    const uint32_t *keys, uint32_t mask);

typedef struct stki_permutation {
    uint64_t n;
    int half_bits; /* the network works on twice as many bits: 4^half_bits >= n */
    int rounds;
    stki_permutation_round *round; /* the fastest this machine has; all give the same bits */
    uint32_t keys[STKI_PERMUTATION_MAX_ROUNDS][2];
    uint64_t exchange; /* 1: images 0 and 1 change places, else 0 */
} stki_permutation;

/* n >= 1. */
void stki_permutation_init(stki_permutation *permutation, uint64_t seed, uint64_t epoch, uint64_t n);
/* out[i] = image of first + i, for i < count; all must be inside [0, n). */
void stki_permutation_run(const stki_permutation *permutation, uint64_t first, int64_t count, uint64_t *out);
/* values[i] becomes its image; all must be inside [0, n). */
void stki_permutation_map(const stki_permutation *permutation, uint64_t *values, int64_t count);

#define STKI_MIX_FACTOR_0 UINT32_C(0xd2b74407) /* odd, their bits well spread */
#define STKI_MIX_FACTOR_1 UINT32_C(0xcaf649a9)

stki_permutation_round stki_permutation_round_plain;
#if defined(__x86_64__)
stki_permutation_round stki_permutation_round_avx2;
#endif

/* The key of everything about the order of one epoch: a hash of both, so that neighbouring seeds and epochs have
 * nothing in common, and (1, 0) is not (0, 1). */
uint64_t stki_order_key(uint64_t seed, uint64_t epoch);

/* What is drawn with that key; the stream of the draws. */
enum {
    STKI_KEY_SHUFFLE = 0,
    STKI_KEY_ROUNDS = 1,
    STKI_KEY_UNITS = 2,
    STKI_KEY_WEIGHTED = 3,
    STKI_KEY_SOURCE = 4,
    STKI_KEY_BUCKETS = 5,
    STKI_KEY_SHIFT = 6
};

#endif
