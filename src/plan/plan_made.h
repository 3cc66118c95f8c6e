/* plan_made.h: the part of a plan for rows that are more than a conversion (late_steps.h): what is checked, allocated
 * and compiled for them. */
#ifndef STKI_PLAN_MADE_H
#define STKI_PLAN_MADE_H

#include "plan.h"

enum { STKI_MADE_BLOCK = 4096 /* elements of a row that are mixed and rounded while they are in the cache */ };

/* Of a plan that is resolved otherwise. */
stk_status stki_made_resolve(stki_field_plan *plan, stk_error *err);
/* Fields that are mixed along. */
stk_status stki_made_link(stki_field_plan *plans, int count, stk_error *err);
/* Conversions of the made rows; the plan's own and those of the plans in it are compiled. */
stk_status stki_made_compile(stki_field_plan *plan, enum stki_stores stores, stk_error *err);
void stki_made_fini(stki_field_plan *plan); /* not of the plans in it */
/* Rows are mixed: the image's or its labels'. */
static inline const stki_mix *stki_plan_mix(const stki_field_plan *plan)
{
    return plan->mix ? plan->mix : plan->mixed_by ? plan->mixed_by->mix : NULL;
}

#endif
