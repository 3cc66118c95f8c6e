/* plan_image.h: resolves the image part of a plan: the combined effect of a field's geometry and color steps. */
#ifndef STKI_PLAN_IMAGE_H
#define STKI_PLAN_IMAGE_H

#include "plan.h"

/* Call when the plan's axes, transforms and dtype are known. *shape receives the shape of the pixels from which a row
 * is converted, in the order of the sample's axes. */
stk_status stki_plan_image_resolve(stki_field_plan *plan, int64_t *shape, stk_error *err);
/* Finds the field that has the samples' boxes. */
stk_status stki_plan_image_link(stki_field_plan *plan, const stki_field_plan *plans, int count, stk_error *err);
/* Computes the fill pixel for padding, in the samples' dtype. */
stk_status stki_plan_image_fill(stki_field_plan *plan, stk_error *err);

#endif
