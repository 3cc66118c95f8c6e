/* order_shuffle.c: see order_shuffle.h. */
#include "order_shuffle.h"
#include "isa.h"
#include "philox.h"

void stki_shuffle_draw_plain(uint64_t key, uint64_t stream, uint64_t first, int count, uint64_t *products)
{
    for (int k = 0; k < count; k++) {
        const stki_philox block = stki_philox_draw(key, stream, first + (uint64_t)k);
        const uint64_t bound = first + (uint64_t)k + 1;

        products[k] = block.word[1] * bound + (block.word[0] * bound >> 32);
    }
}

static stki_shuffle_draw *best_draw(void)
{
#if defined(__x86_64__)
    const enum stki_isa isa = stki_isa();

    if (isa == STKI_ISA_AVX512)
        return stki_shuffle_draw_avx512;
    if (isa == STKI_ISA_AVX2)
        return stki_shuffle_draw_avx2;
#endif
    return stki_shuffle_draw_plain;
}

void stki_shuffle_places(uint64_t key, uint64_t stream, uint64_t first, int count, uint64_t *places)
{
    best_draw()(key, stream, first, count, places);
    for (int k = 0; k < count; k++)
        if ((uint32_t)places[k] != 0)
            places[k] >>= 32;
        else
            places[k] = stki_philox_below(key, stream, first + (uint64_t)k, first + (uint64_t)k + 1);
}
