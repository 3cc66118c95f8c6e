/* views.h: additional names for parts of a field's rows. `views: {inputs: [0, -1], targets: [1, null]}` of rows of T +
 * 1 tokens yields two tensors of [rows, T] over the same memory: next-token targets without a copy. Ranges are along
 * the first axis of a row, with the semantics of Python slices. */
#ifndef STKI_VIEWS_H
#define STKI_VIEWS_H

#include "plan.h"

typedef struct stki_view {
    const char *name, *ending; /* joined to form the tensor's name; `name` belongs to the config */

    int plan;            /* the field's index */
    int64_t start, stop; /* along axis 0 of a row; negative: from its end, as in Python */
    bool open;           /* `stop` is not set; the range extends to the end */
} stki_view;

/* Checks the `views` of all fields without the data: each is a map of ranges, and no other field or view has the same
 * name. */
stk_status stki_views_check(const stki_field_config *fields, int field_count, stk_error *err);
/* Makes the views of all fields. The caller frees *out with stki_free. STK_E_CONFIG: a range exceeds the row. */
stk_status stki_views_make(const stki_field_plan *plans, int plan_count, stki_view **out, int *count, stk_error *err);

/* Narrows a tensor of the view's field to the range. Axis 0 of the tensor counts rows. */
void stki_view_apply(const stki_view *view, stk_tensor *tensor);

#endif
