/* views.h: further names for parts of a field's rows: `views: {inputs: [0, -1], targets: [1, null]}` of rows of T + 1
 * tokens are two tensors of [rows, T] over the same memory, the next-token targets at no cost. Ranges along the first
 * axis of a row, as Python slices them. */
#ifndef STKI_VIEWS_H
#define STKI_VIEWS_H

#include "plan.h"

typedef struct stki_view {
    const char *name, *ending; /* one behind the other; the name belongs to the config */

    int plan;            /* of which field */
    int64_t start, stop; /* along axis 0 of a row; below 0: from its end, as in Python */
    bool open;           /* to the end */
} stki_view;

/* What can be said of the key `views` without the data: a map of ranges, names that are free. `fields`: all there are.
 */
stk_status stki_views_check(const stki_field_config *fields, int field_count, stk_error *err);
/* The views of all fields. stki_free(*out). STK_E_CONFIG: a range that a row does not have. */
stk_status stki_views_make(const stki_field_plan *plans, int plan_count, stki_view **out, int *count, stk_error *err);

/* Narrows a batch tensor of the view's field, rows first. */
void stki_view_apply(const stki_view *view, stk_tensor *tensor);

#endif
