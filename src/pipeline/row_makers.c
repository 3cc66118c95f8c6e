/* row_makers.c: all makers of rows; see row_maker.h. */
#include "row_maker.h"

/* The first one that handles a plan makes its rows. */
static const stki_row_maker *const makers[] = {
    &stki_make_window, &stki_make_mixed,     &stki_make_paired, &stki_make_one_hot, &stki_make_image,
    &stki_make_copied, &stki_make_resampled, &stki_make_erased, &stki_make_placed,  &stki_make_plain,
};

static const stki_row_maker *const *first_of(const stki_row_maker *const *maker, const stki_field_plan *plan)
{
    while (!(*maker)->takes(plan))
        maker++;
    return maker;
}

void stki_row_makers_set(stki_field_plan *plan)
{
    const stki_row_maker *const *maker = first_of(makers, plan);

    plan->maker = *maker;
    if (plan->maker->wraps)
        plan->under = *first_of(maker + 1, plan);
    plan->may_split = plan->maker->make_part;
    for (int i = 0; i < plan->field->shard_count; i++)
        plan->may_split = plan->may_split && !plan->field->shards[i]->copies;
    if (plan->inner)
        stki_row_makers_set(plan->inner);
}
