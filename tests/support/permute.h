/* permute.h: one image of the keyed bijection on [0, n). */
#ifndef STKT_PERMUTE_H
#define STKT_PERMUTE_H

#include "permutation.h"

static inline uint64_t stkt_permute(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t index)
{
    stki_permutation permutation;
    uint64_t image;

    stki_permutation_init(&permutation, seed, epoch, n);
    stki_permutation_run(&permutation, index, 1, &image);
    return image;
}

#endif
