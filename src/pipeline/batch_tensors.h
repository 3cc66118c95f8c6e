/* batch_tensors.h: finds the tensors of a batch by name. They are the tensors in each field's list (row_layout.h) and
 * the views (views.h), which are additional names for ranges of some of these tensors. */
#ifndef STKI_BATCH_TENSORS_H
#define STKI_BATCH_TENSORS_H

#include "core.h"

typedef struct stki_batch_tensor {
    char *name;
    const stki_field_plan *plan;
    const stki_row_tensor *tensor;
    const stki_view *view; /* narrows the tensor to a range; NULL: the whole tensor */
} stki_batch_tensor;

/* Fills core->tensors: the tensors of each field in order, then the views. */
stk_status stki_batch_tensors_make(stki_core *core, stk_error *err);
void stki_batch_tensors_fini(stki_core *core);
/* The message of STK_E_NOT_FOUND lists the existing names. */
stk_status stki_batch_tensor_find(const stki_core *core, const char *name, const stki_batch_tensor **out,
                                  stk_error *err);
/* Total bytes of a field's tensors in this batch. */
int64_t stki_plan_bytes(const stk_batch *batch, const stki_field_plan *plan);

#endif
