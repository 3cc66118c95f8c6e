/* plan_device.c: what of a plan a device can do. It gets the samples' bytes as they are stored, one shape and one set
 * of strides for all, and runs one conversion over them. */
#include "plan.h"

static const char *obstacle_of_shards(const stki_field_plan *plan)
{
    const stki_field *field = plan->field;

    for (int i = 0; i < field->shard_count; i++)
        if (field->shards[i]->image)
            return "decoding";
    return plan->convert_count > 1 ? "shards that are stored in different ways" : NULL;
}

const char *stki_plan_device_obstacle(const stki_field_plan *plan)
{
    if (plan->ragged)
        return "rows of different lengths";
    for (int i = 0; plan->geometry && i < plan->geometry->count; i++) {
        const stki_geometry_step *step = &plan->geometry->steps[i];

        if (step->draw != 0 || step->kind == STKI_RESIZE || stki_geometry_step_pads(step))
            return step->node->key;
    }
    if (plan->colors)
        return plan->colors->steps[0].node->key;
    if (plan->resample)
        return "images of different shapes";
    return obstacle_of_shards(plan);
}
