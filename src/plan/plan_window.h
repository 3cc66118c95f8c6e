/* plan_window.h: plans of rows that are windows. The samples of a window have one shape and are made one after the
 * other, each like a row of its own. The plan of such a field holds the plan of one sample (`each`) and has one more
 * axis. */
#ifndef STKI_PLAN_WINDOW_H
#define STKI_PLAN_WINDOW_H

#include "plan.h"

/* Resolves the plan of one sample. */
typedef stk_status stki_resolve_fn(const stki_field_config *config, const stki_field *field, stki_field_plan *plan,
                                   stk_error *err);
/* For a field whose config has row_samples. STK_E_UNSUPPORTED: its samples differ in shape, or are mixed. */
stk_status stki_window_resolve(const stki_field_config *config, const stki_field *field, stki_resolve_fn *resolve,
                               stki_field_plan *plan, stk_error *err);

/* The plan of one sample of a window; without windows the plan itself. */
static inline const stki_field_plan *stki_plan_of_sample(const stki_field_plan *plan)
{
    return plan->each ? plan->each : plan;
}

#endif
