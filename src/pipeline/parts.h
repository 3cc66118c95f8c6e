/* parts.h: the tensors of a batch by name. A field is one, "image", or several: "text.values" and "text.offsets" of a
 * field whose rows differ in length, and "image.shapes" of images in shapes of their own; "text", "text.mask" and
 * "text.lengths" where they are padded; "label", "label_mix" and "mix_lambda" of labels of mixed rows that are not
 * mixed themselves. Views (views.h) are further names for parts of a field. */
#ifndef STKI_PARTS_H
#define STKI_PARTS_H

#include "core.h"

enum stki_batch_tensor_kind {
    STKI_PART_WHOLE,
    STKI_PART_VALUES,
    STKI_PART_OFFSETS,
    STKI_PART_SHAPES,
    STKI_PART_MASK,
    STKI_PART_LENGTHS,
    STKI_PART_PARTNER,
    STKI_PART_SHARE
};

typedef struct stki_batch_tensor {
    const stki_field_plan *plan;
    enum stki_batch_tensor_kind kind;
    const stki_view *view; /* narrows WHOLE and MASK; NULL: all of it */
} stki_batch_tensor;

/* How many there are, and which is number i in [0, count): the fields in order, each with its parts, then the views.
 * The name is written into `name`. */
int stki_part_count(const stki_core *core);
void stki_part_at(const stki_core *core, int i, stki_batch_tensor *out, char *name, int size);
bool stki_part_find(const stki_core *core, const char *name, stki_batch_tensor *out);
/* STK_E_NOT_FOUND, with the names there are. */
stk_status stki_part_missing(const stki_core *core, const char *name, stk_error *err);
/* Borrowed from the batch. */
void stki_part_tensor(const stk_batch *batch, const stki_batch_tensor *part, stk_tensor *out);
/* Of all of a field's parts in this batch. */
int64_t stki_plan_bytes(const stk_batch *batch, const stki_field_plan *plan);

#endif
