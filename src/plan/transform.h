/* transform.h: reads a field's list of transforms: folded arithmetic, and the steps that move pixels, change colors, or
 * operate on finished rows. */
#ifndef STKI_TRANSFORM_H
#define STKI_TRANSFORM_H

#include "color_steps.h"
#include "field_config.h"
#include "geometry.h"
#include "late_steps.h"

/* A list of transforms. Its arithmetic is folded into y = a[c] * x + b[c], followed by a store. */
typedef struct stki_fold {
    int64_t channels; /* number of coefficients: 1, or the sample's number of channels */
    double *a, *b;
    bool cast;       /* the list has a cast */
    bool arithmetic; /* the list has scale, normalize or quantize, or a color step */
    bool normalized; /* the last arithmetic is normalize */
    bool quantized;
    int32_t zero_point;
    stki_geometry geometry;
    stki_colors colors;
    stki_erase erase;
    stki_mix mix;
    stki_one_hot one_hot;
    stk_dtype dtype; /* the resulting dtype: f32 after arithmetic, the quantized type, or the last cast's; otherwise the
                        source's */
} stki_fold;

/* `channels`: the sample's number of channels; 0: the channel axis is not known, so per-channel parameters are
 * rejected. */
stk_status stki_fold_create(const stki_field_config *config, stk_dtype source, int64_t channels, stki_fold **out,
                            stk_error *err);
void stki_fold_destroy(stki_fold *fold);
/* Whether the operation is only arithmetic, which coefficients and dtype represent completely. */
bool stki_fold_takes(const char *operation);
/* Returns operation `index` of all operations that a list of transforms may have; NULL after the last one. */
const stki_operation *stki_fold_operation(int index);

/* Returns the node with the path of parameter file number `index` in a list of transforms; NULL: there are fewer. */
stki_node *stki_transforms_path(const stki_node *transforms, int index);

#endif
