/* fast.c: selects the vectorized copies and casts of an instruction set. */
#include "fast.h"

const stki_fast *stki_fast_of(enum stki_isa isa)
{
#if defined(__x86_64__)
    if (isa == STKI_ISA_AVX512)
        return stki_fast_avx512();
    if (isa == STKI_ISA_AVX2)
        return stki_fast_avx2();
#endif
    (void)isa;
    return NULL;
}
