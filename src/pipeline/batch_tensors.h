/* batch_tensors.h: the tensors of a batch by name: those of each field's list (row_layout.h), and the views (views.h),
 * which are further names for ranges of some of them. */
#ifndef STKI_BATCH_TENSORS_H
#define STKI_BATCH_TENSORS_H

#include "core.h"

typedef struct stki_batch_tensor {
    const stki_field_plan *plan;
    const stki_row_tensor *tensor;
    const stki_view *view; /* narrows it; NULL: all of it */
} stki_batch_tensor;

/* How many there are, and which is number i in [0, count): the fields in order, each with its tensors, then the views.
 * The name is written into `name`. */
int stki_batch_tensor_count(const stki_core *core);
void stki_batch_tensor_at(const stki_core *core, int i, stki_batch_tensor *out, char *name, int size);
bool stki_batch_tensor_find(const stki_core *core, const char *name, stki_batch_tensor *out);
/* STK_E_NOT_FOUND, with the names there are. */
stk_status stki_batch_tensor_missing(const stki_core *core, const char *name, stk_error *err);
/* Borrowed from the batch. */
void stki_batch_tensor_get(const stk_batch *batch, const stki_batch_tensor *which, stk_tensor *out);
/* Of all of a field's tensors in this batch. */
int64_t stki_plan_bytes(const stk_batch *batch, const stki_field_plan *plan);

#endif
