/* ops_loops_ref.c: the element-wise loops for any processor. */
#include "ops_loops_body.h"

const stki_loops stki_loops_ref[STKI_LOOPS][STK_DTYPE_END] = STKI_LOOPS_BODY;
