/* order_shuffle.h: the draws of an inside-out Fisher-Yates shuffle, in which entry i goes to a random place among the
 * first i + 1. */
#ifndef STKI_ORDER_SHUFFLE_H
#define STKI_ORDER_SHUFFLE_H

#include <stdint.h>

enum {
    STKI_SHUFFLE_BLOCK = 256, /* maximum number of draws per call, … */
    STKI_SHUFFLE_SPARE = 31   /* … and how far past them it may write */
};

/* places[k] = stki_philox_below(key, stream, i, i + 1) with i = first + k, for k < count <= STKI_SHUFFLE_BLOCK;
 * first + count < 2^32. */
void stki_shuffle_places(uint64_t key, uint64_t stream, uint64_t first, int count, uint64_t *places);

/* Computes the products of the first 64 random bits of each draw and its bound, without the lowest 32 bits. The upper
 * half is the place; if the lower half is 0, the draw may have to be rejected. */
typedef void stki_shuffle_draw(uint64_t key, uint64_t stream, uint64_t first, int count, uint64_t *products);

stki_shuffle_draw stki_shuffle_draw_plain;
#if defined(__x86_64__)
stki_shuffle_draw stki_shuffle_draw_avx2, stki_shuffle_draw_avx512;
#endif

#endif
