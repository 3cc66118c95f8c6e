/* permutation.h: the keyed bijection on [0, n) with precomputed keys, for runs of indices. A permutation is a plain
 * struct that any number of threads may read. */
#ifndef STKI_PERMUTATION_H
#define STKI_PERMUTATION_H

#include <stdbool.h>
#include <stdint.h>

enum {
    STKI_PERMUTATION_MAX_ROUNDS = 24,
    STKI_PERMUTATION_BLOCK = 256, /* maximum number of values per pass … */
    STKI_PERMUTATION_SPARE = 31   /* … and how far past them a pass may write */
};

enum { STKI_PERMUTATIONS_MOST = 8 };

typedef struct stki_permutation stki_permutation;
typedef struct stki_permutations stki_permutations;

/* Runs one pass of the whole network over values[0 .. count); the result of values[i] is written to out[place[i]].
 * Results that are not below n are packed to the front of `values` and `place`. Returns their number. */
typedef int stki_permutation_pass(const stki_permutation *permutation, uint64_t *restrict values,
                                  int32_t *restrict place, int count, uint64_t *restrict out);

struct stki_permutation {
    uint64_t n;
    int half_bits; /* the network works on 2 * half_bits bits: 4^half_bits >= n */
    int rounds;
    stki_permutation_pass *pass; /* the fastest one for this machine; all give identical results */
    uint32_t keys[STKI_PERMUTATION_MAX_ROUNDS][2];
    uint64_t exchange; /* 1: exchange images 0 and 1, otherwise 0 */
};

/* Like stki_permutation_pass, for values of several permutations: values[i] belongs to permutation which[i]. `which` is
 * packed along with `values`. */
typedef int stki_permutations_pass(const stki_permutations *permutations, uint64_t *restrict values,
                                   uint64_t *restrict which, int32_t *restrict place, int count,
                                   uint64_t *restrict out);

/* Up to eight permutations whose values pass through the network together, so that a few values of each cost no more
 * passes than many values of one. All have the same number of rounds. A plain struct; a zeroed set is empty. */
struct stki_permutations {
    int count, rounds;
    stki_permutations_pass *pass;
    uint64_t n[STKI_PERMUTATIONS_MOST];
    uint32_t half_bits[STKI_PERMUTATIONS_MOST], masks[STKI_PERMUTATIONS_MOST], exchange[STKI_PERMUTATIONS_MOST];
    uint32_t keys[STKI_PERMUTATION_MAX_ROUNDS][2][STKI_PERMUTATIONS_MOST];
};

/* n >= 1. */
void stki_permutation_init(stki_permutation *permutation, uint64_t seed, uint64_t epoch, uint64_t n);
/* out[i] = image of first + i, for i < count; all must be in [0, n). */
void stki_permutation_run(const stki_permutation *permutation, uint64_t first, int64_t count, uint64_t *out);
/* Replaces values[i] with its image; all must be in [0, n). */
void stki_permutation_map(const stki_permutation *permutation, uint64_t *values, int64_t count);

/* Adds a permutation, whose number is the previous `count`. Returns false if the set is full or the number of rounds
 * differs. */
bool stki_permutations_add(stki_permutations *set, const stki_permutation *permutation);
/* Replaces values[i] with its image under permutation which[i]. */
void stki_permutations_map(const stki_permutations *set, const uint8_t *which, uint64_t *values, int64_t count);

#define STKI_MIX_FACTOR_0 UINT32_C(0xd2b74407) /* odd, with well-distributed bits */
#define STKI_MIX_FACTOR_1 UINT32_C(0xcaf649a9)

/* Ends a pass: packs the values that are not below n to the front and returns their number. Branch-free, because the
 * outcome of `value >= n` is unpredictable. */
static inline int stki_permutation_settle(uint64_t n, uint64_t *restrict values, int32_t *restrict place, int count,
                                          uint64_t *restrict out)
{
    int outside = 0;

    for (int i = 0; i < count; i++) {
        uint64_t value = values[i];
        int32_t at = place[i];

        out[at] = value;
        values[outside] = value;
        place[outside] = at;
        outside += value >= n;
    }
    return outside;
}

static inline int stki_permutations_settle(const uint64_t *n, uint64_t *restrict values, uint64_t *restrict which,
                                           int32_t *restrict place, int count, uint64_t *restrict out)
{
    int outside = 0;

    for (int i = 0; i < count; i++) {
        uint64_t value = values[i], number = which[i];
        int32_t at = place[i];

        out[at] = value;
        values[outside] = value;
        which[outside] = number;
        place[outside] = at;
        outside += value >= n[number];
    }
    return outside;
}

stki_permutation_pass stki_permutation_pass_plain;
stki_permutations_pass stki_permutations_pass_plain;
#if defined(__x86_64__)
stki_permutation_pass stki_permutation_pass_avx2, stki_permutation_pass_avx512;
stki_permutations_pass stki_permutations_pass_avx2, stki_permutations_pass_avx512;
#endif

/* The key for all draws about the order of one epoch: a hash of both values, so that adjacent seeds and epochs are
 * uncorrelated and (1, 0) differs from (0, 1). */
uint64_t stki_order_key(uint64_t seed, uint64_t epoch);

/* The purpose of a draw with that key; selects the random stream. */
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
