/* loadbench_foresee.h: predicts from the times of a run how the rate changes if one setting changes. Used by both the
 * verdict and the predictions, so that they are consistent. */
#ifndef LOADBENCH_FORESEE_H
#define LOADBENCH_FORESEE_H

#include "loadbench_model.h"
#include "loadbench_verdict.h"

#define LB_SAME 0.02 /* smaller changes of the rate count as none */

/* The run as a model; tiles is 0, and nothing can be predicted, if the shares have none. */
struct lb_model lb_foresee_model(const struct lb_shares *shares);
/* Factor on the rate; what the model leaves out (variance, hand-over) is assumed to take as long as before. Capped by
 * the limits of memory and disk. */
double lb_foresee(const struct lb_shares *shares, const struct lb_model *changed);
/* The same for twice the slots, which also absorb variance. 1: no change; 0: cannot be predicted. */
double lb_foresee_deeper(const struct lb_shares *shares);
/* The same with each compressed chunk decompressed once, as with an order by chunks. 0: already so, or nothing is
 * compressed. */
double lb_foresee_unpacked_once(const struct lb_shares *shares);
/* The same with inline loading, which has no hand-over. 0: cannot be predicted. */
double lb_foresee_inline(const struct lb_shares *shares);

#endif
