/* plan_window.h: rows that are windows: samples of one shape, each made like a row of its own, one behind the other.
 * The plan of such a field holds that of one sample (`each`) and has one axis more. */
#ifndef STKI_PLAN_WINDOW_H
#define STKI_PLAN_WINDOW_H

#include "plan.h"

/* Of a field whose config has row_samples. STK_E_UNSUPPORTED: its samples do not have one shape, or are mixed. */
stk_status stki_window_resolve(const stki_field_config *config, const stki_field *field, stki_field_plan *plan,
                               stk_error *err);

/* What a sample goes through: the plan of one sample of a window, or the plan itself. */
static inline const stki_field_plan *stki_plan_of_sample(const stki_field_plan *plan)
{
    return plan->each ? plan->each : plan;
}

#endif
