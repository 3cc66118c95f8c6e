/* isa.h: which instructions this processor has, as names of the variants that kernels come in. */
#ifndef STKI_ISA_H
#define STKI_ISA_H

#include <stdbool.h>

/* "ref", "avx2", "avx512", "neon": what kernels are picked from. Decided once: the best the CPU has, or STOKER_ISA,
 * which must be one this CPU can run (else the best is used and stki_isa_note says so). */
enum stki_isa { STKI_ISA_REF, STKI_ISA_AVX2, STKI_ISA_AVX512, STKI_ISA_NEON };
enum stki_isa stki_isa(void);
const char *stki_isa_name(enum stki_isa isa);
const char *stki_isa_note(void); /* NULL: nothing to say */
bool stki_isa_usable(enum stki_isa isa);

#endif
