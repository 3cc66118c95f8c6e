/* mix.c: selects the mixing function of an instruction set. */
#include "mix.h"

stki_mix_fn stki_mix_of(enum stki_isa isa)
{
#if defined(__x86_64__)
    if (isa == STKI_ISA_AVX2)
        return stki_mix_avx2;
    if (isa == STKI_ISA_AVX512)
        return stki_mix_avx512;
#endif
    (void)isa;
    return stki_mix_ref;
}
