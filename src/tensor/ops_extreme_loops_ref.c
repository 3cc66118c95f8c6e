/* ops_extreme_loops_ref.c: the loops of minimum and maximum for any processor. */
#include "ops_extreme_body.h"

const stki_extreme_loops stki_extreme_loops_ref[2][STK_DTYPE_END] = STKI_EXTREME_BODY;
