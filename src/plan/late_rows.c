/* late_rows.c: see late_rows.h. */
#include "late_rows.h"

/* In the order in which they are applied to a row. */
static const stki_late_ops *const steps[] = {&stki_late_one_hot, &stki_late_erase, &stki_late_mix};
enum { STEPS = sizeof steps / sizeof *steps };

stk_status stki_late_resolve(stki_field_plan *plan, stk_error *err)
{
    stk_status status = STK_OK;

    for (int i = 0; i < STEPS && status == STK_OK; i++)
        status = steps[i]->resolve(plan, err);
    return status;
}

stk_status stki_late_compile(stki_field_plan *plan, enum stki_stores stores, stk_error *err)
{
    stk_status status = STK_OK;

    for (int i = 0; i < STEPS && status == STK_OK; i++)
        if (steps[i]->step(plan))
            status = steps[i]->compile(plan, stores, err);
    return status;
}

void stki_late_fini(stki_field_plan *plan)
{
    for (int i = 0; i < STEPS; i++)
        steps[i]->fini(plan);
}

const stki_node *stki_late_step(const stki_field_plan *plan)
{
    const stki_node *node = NULL;

    for (int i = 0; i < STEPS && !node; i++)
        node = steps[i]->step(plan);
    return node;
}
