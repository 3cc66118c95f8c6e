/* geometry.h: which part of an image becomes a row, and of which size: the steps crop, center_crop and resize of a list
 * of transforms. However many there are, they come to one part of the image, one size it is scaled to, and one window
 * of the result, so that no pixel is computed that nobody sees. The bytes are those of one step after the other: what a
 * crop has cut off is not looked at by the resize behind it. Sizes mean what torchvision's Resize and CenterCrop mean
 * by them.
 */
#ifndef STKI_GEOMETRY_H
#define STKI_GEOMETRY_H

#include "document.h"
#include "resize.h"

enum stki_geometry_kind { STKI_CROP, STKI_CROP_BY_FIELD, STKI_CENTER_CROP, STKI_RESIZE };
enum { STKI_GEOMETRY_STEPS = 16 };

typedef struct stki_geometry_step {
    enum stki_geometry_kind kind;
    const stki_node *node;
    int64_t top, left;     /* CROP */
    int64_t height, width; /* RESIZE: width 0: the shorter side becomes `height`, the other keeps the aspect */
    bool has_box;
    double box[4]; /* RESIZE: left, top, right, bottom of what the steps before have left */
} stki_geometry_step;

typedef struct stki_geometry {
    int count; /* 0: the image as it is */
    stki_geometry_step steps[STKI_GEOMETRY_STEPS];
    bool resizes;
    enum stki_filter filter;
    const char *box_field; /* whose samples are the boxes (top, left, height, width); NULL: none */
} stki_geometry;

/* transform.c: refuses keys of a map that are not among `count` keys. */
stk_status stki_node_known_keys(const stki_node *map, const char *const *keys, int count, stk_error *err);

/* "crop", "center_crop" or "resize" with its parameters, appended to `geometry`. */
stk_status stki_geometry_read(stki_geometry *geometry, const char *operation, const stki_node *node, stk_error *err);

/* What comes out for an image of this size; 0: not known. False, with *why naming the step, if the size of the result
 * depends on what is not known. */
bool stki_geometry_size(const stki_geometry *geometry, int64_t height, int64_t width, int64_t *out_height,
                        int64_t *out_width, const stki_geometry_step **why);
/* What the steps come to for one image. */
typedef struct stki_placing {
    int64_t top, left;   /* of the part of the image that is the job's input, pixels */
    stki_resize_job job; /* all but the channels; without a resize step a copy */
} stki_placing;

/* For an image of this size. `box`: the sample's own (top, left, height, width), where there is a box_field; a box that
 * cuts through pixels takes its share of them. STK_E_BAD_SHAPE names step, size found and size expected, but no file.
 */
stk_status stki_geometry_apply(const stki_geometry *geometry, int64_t height, int64_t width, const double *box,
                               stki_placing *out, stk_error *err);

#endif
