/* philox.h: counter-based random numbers (Philox4x32-10 of Salmon et al., SC11, from Random123): a pure function of key
 * and counter with the same result on every machine. */
#ifndef STKI_PHILOX_H
#define STKI_PHILOX_H

#include <stdint.h>

typedef struct stki_philox {
    uint32_t word[4];
} stki_philox;

stki_philox stki_philox_draw(uint64_t key, uint64_t counter_high, uint64_t counter_low);
/* An unbiased integer in [0, bound), bound >= 1; `stream` and `index` identify the draw. */
uint64_t stki_philox_below(uint64_t key, uint64_t stream, uint64_t index, uint64_t bound);

#endif
