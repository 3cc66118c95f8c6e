/* test_random.h: a small reproducible random number generator (splitmix64). */
#ifndef STKT_RANDOM_H
#define STKT_RANDOM_H

#include <stdint.h>

static inline uint64_t stkt_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* A random number in [low, high]. */
static inline int64_t stkt_random_in(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(stkt_random(state) % ((uint64_t)(high - low) + 1));
}

#endif
