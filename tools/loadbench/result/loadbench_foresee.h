/* loadbench_foresee.h: what the clocks of a run say of the same run with one thing changed. The verdict and the
 * predictions both ask here, so that they cannot say different things of the ring. */
#ifndef LOADBENCH_FORESEE_H
#define LOADBENCH_FORESEE_H

#include "loadbench_model.h"
#include "loadbench_verdict.h"

#define LB_SAME 0.02 /* a smaller change of the rate is none */

/* The run as a model; its tiles are 0 where the shares have none, and then nothing can be foreseen. */
struct lb_model lb_foresee_model(const struct lb_shares *shares);
/* What the rate is multiplied by: what the model leaves out (swings, handing over) takes as long as before. Never more
 * than memory and disk allow. */
double lb_foresee(const struct lb_shares *shares, const struct lb_model *changed);
/* The same of twice the slots, which take up swings too. 1: they change nothing; 0: it cannot be foreseen. */
double lb_foresee_deeper(const struct lb_shares *shares);
/* The same with each packed chunk unpacked once, as an order by chunks does. 0: they are so already, or nothing is. */
double lb_foresee_unpacked_once(const struct lb_shares *shares);
/* The same without workers, so that nothing is handed over. 0: it cannot be foreseen. */
double lb_foresee_inline(const struct lb_shares *shares);

#endif
