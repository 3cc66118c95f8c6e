/* ops_sum_loops_ref.c: the loops of sums for any processor. */
#include "ops_sum_body.h"

const stki_sum_loops stki_sum_loops_ref = STKI_SUM_BODY;
