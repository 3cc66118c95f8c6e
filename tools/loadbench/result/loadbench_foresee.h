/* loadbench_foresee.h: predicts from the times of a run how the rate changes if one setting changes. Used by both the
 * verdict and the predictions, so that they are consistent. */
#ifndef LOADBENCH_FORESEE_H
#define LOADBENCH_FORESEE_H

#include "loadbench_model.h"
#include "loadbench_verdict.h"

#define LB_SAME 0.02 /* smaller changes of the rate are ignored */

/* Describes the run as a model; if no tile was measured, `tiles` is 0 and nothing can be predicted. */
struct lb_model lb_foresee_model(const struct lb_shares *shares);
/* Returns the factor by which the rate changes, limited by memory and disk. The time that the model does not cover
 * (variance, hand-over) is assumed to stay the same. */
double lb_foresee(const struct lb_shares *shares, const struct lb_model *changed);
/* The same for twice as many slots, which also absorb variance. 1: no change; 0: cannot be predicted. */
double lb_foresee_deeper(const struct lb_shares *shares);
/* The same if each compressed chunk is decompressed once, as with an order by chunks. 0: this is already the case, or
 * nothing is compressed. */
double lb_foresee_unpacked_once(const struct lb_shares *shares);
/* The same with inline loading, which has no hand-over. 0: cannot be predicted. */
double lb_foresee_inline(const struct lb_shares *shares);

#endif
