/* isa.h: the instruction sets that kernels are compiled for, and the one that is used on this CPU. */
#ifndef STKI_ISA_H
#define STKI_ISA_H

#include <stdbool.h>

/* "ref", "avx2", "avx512", "neon". Selected once: the best one the CPU supports, or STOKER_ISA if the CPU supports it
 * (otherwise the best one is used and stki_isa_note reports it). */
enum stki_isa { STKI_ISA_REF, STKI_ISA_AVX2, STKI_ISA_AVX512, STKI_ISA_NEON };
enum stki_isa stki_isa(void);
const char *stki_isa_name(enum stki_isa isa);
const char *stki_isa_note(void); /* NULL: no note */
bool stki_isa_usable(enum stki_isa isa);

#endif
