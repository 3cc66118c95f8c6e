/* prep_phase.h: user-visible names of the phases of a job (enum stk_prep_phase). */
#ifndef STKI_PREP_PHASE_H
#define STKI_PREP_PHASE_H

#include <stdint.h>

const char *stki_prep_phase_name(int32_t phase);

#endif
