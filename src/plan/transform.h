/* transform.h: the list of transforms of a field, read: folded arithmetic, and the steps that move pixels, change
 * colors, or come after a row is a row. */
#ifndef STKI_TRANSFORM_H
#define STKI_TRANSFORM_H

#include "color_steps.h"
#include "field_config.h"
#include "geometry.h"
#include "late_steps.h"

/* A list of transforms folded into y = a[c] * x + b[c] and a store. */
typedef struct stki_fold {
    int64_t channels; /* 1 or the sample's channels */
    double *a, *b;
    bool cast;       /* there was a cast */
    bool arithmetic; /* there was scale, normalize or quantize, or a step that changes colours */
    bool quantized;
    int32_t zero_point;
    stki_geometry geometry;
    stki_colors colors;
    stki_erase erase;
    stki_mix mix;
    stki_one_hot one_hot;
    stk_dtype dtype; /* what the transforms leave: f32 after arithmetic, the quantised type, the last cast; else the
                        source's */
} stki_fold;

/* `channels`: how many the sample has, 0 if it has no declared channel axis (per-channel parameters are then refused).
 */
stk_status stki_fold_create(const stki_field_config *config, stk_dtype source, int64_t channels, stki_fold **out,
                            stk_error *err);
void stki_fold_destroy(stki_fold *fold);
/* Is the operation arithmetic, which the coefficients and the dtype hold completely? */
bool stki_fold_takes(const char *operation);
/* All operations that a list of transforms may hold; NULL behind the last one. */
const stki_operation *stki_fold_operation(int index);

/* The file number `index` that a list of transforms reads parameters from; NULL: there are no more. */
stki_node *stki_transforms_path(const stki_node *transforms, int index);

#endif
