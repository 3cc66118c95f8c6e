/* philox.c: Philox4x32-10 from Random123, and unbiased integers in a range. */
#include "philox.h"
#include <Random123/philox.h>

stki_philox stki_philox_draw(uint64_t key, uint64_t counter_high, uint64_t counter_low)
{
    philox4x32_ctr_t counter = {
        {(uint32_t)counter_low, (uint32_t)(counter_low >> 32), (uint32_t)counter_high, (uint32_t)(counter_high >> 32)}};
    philox4x32_key_t words = {{(uint32_t)key, (uint32_t)(key >> 32)}};
    philox4x32_ctr_t drawn = philox4x32_R(10, counter, words);

    return (stki_philox){{drawn.v[0], drawn.v[1], drawn.v[2], drawn.v[3]}};
}

static uint64_t word_pair(const stki_philox *block, int pair)
{
    return (uint64_t)block->word[2 * pair + 1] << 32 | block->word[2 * pair];
}

/* Lemire's method: 64 random bits are multiplied by the bound, and the upper half of the product is the result.
 * Products whose lower half is below 2^64 mod bound are rejected, because they would bias the result. A block of random
 * bits is enough for two attempts. If both products are rejected (probability about (bound / 2^64)^2), the block is
 * used as the next counter, so that the result remains a pure function of the arguments. */
uint64_t stki_philox_below(uint64_t key, uint64_t stream, uint64_t index, uint64_t bound)
{
    for (stki_philox block = stki_philox_draw(key, stream, index);;
         block = stki_philox_draw(key, word_pair(&block, 1), word_pair(&block, 0))) {
        for (int pair = 0; pair < 2; pair++) {
            __extension__ unsigned __int128 product = (unsigned __int128)word_pair(&block, pair) * bound;
            uint64_t low = (uint64_t)product;

            if (low >= bound || low >= (0 - bound) % bound)
                return (uint64_t)(product >> 64);
        }
    }
}
