/* plan_image.h: the part of a plan that is about images: what the steps that move pixels and those that change colors
 * come to for a field. */
#ifndef STKI_PLAN_IMAGE_H
#define STKI_PLAN_IMAGE_H

#include "plan.h"

/* Of a plan whose axes, transforms and dtype are known. *shape: of what a row is made of, in the order of the sample's
 * axes. */
stk_status stki_plan_image_resolve(stki_field_plan *plan, int64_t *shape, stk_error *err);
/* Finds the field that holds the samples' boxes. */
stk_status stki_plan_image_link(stki_field_plan *plan, const stki_field_plan *plans, int count, stk_error *err);
/* What is beside the image, in the samples' dtype. */
stk_status stki_plan_image_fill(stki_field_plan *plan, stk_error *err);

#endif
