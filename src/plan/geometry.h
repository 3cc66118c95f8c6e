/* geometry.h: which part of an image becomes a row, of which size, and which way up: the steps of a list of transforms
 * that move pixels. However many there are, they come to one part of the image, one size it is scaled to, one window of
 * the result, which may reach over its edge, and one of eight orientations, so that no pixel is computed that nobody
 * sees. The bytes are those of one step after the other: what a crop has cut off is not looked at by the resize behind
 * it. (But a flip or rotation before a resize is done behind it.) Sizes and draws mean what torchvision means by them.
 *
 *     geometry_steps.c  from the config     geometry.c  one image     docs/reference/transforms.md  the definitions
 */
#ifndef STKI_GEOMETRY_H
#define STKI_GEOMETRY_H

#include "document.h"
#include "draw.h"
#include "operation.h"
#include "resize.h"

enum stki_geometry_kind {
    STKI_CROP,
    STKI_CROP_BY_FIELD,
    STKI_CENTER_CROP,
    STKI_RESIZE,
    STKI_PAD,
    STKI_FLIP,
    STKI_ROTATE,
    STKI_TRANSLATE,
    STKI_RANDOM_CROP,
    STKI_RANDOM_RESIZED_CROP,
    STKI_RANDOM_TRANSLATE
};
enum { STKI_GEOMETRY_STEPS = 16 };

enum stki_padding { STKI_PAD_CONSTANT, STKI_PAD_EDGE, STKI_PAD_REFLECT, STKI_PAD_SYMMETRIC };

typedef struct stki_geometry_step {
    enum stki_geometry_kind kind;
    const stki_node *node;
    uint64_t draw;         /* stki_draw_name; 0: nothing is drawn */
    int64_t top, left;     /* CROP; TRANSLATE: pixels down and to the right */
    int64_t height, width; /* RESIZE: width 0: the shorter side becomes `height`, the other keeps the aspect; height 0
                              too: the longer side becomes `longest`. PAD: of the result; 0: as `pad` says */
    int64_t longest;       /* RESIZE to a side: the longer one is at most this; 0: as it comes */
    bool has_box;
    double box[4];                /* RESIZE: left, top, right, bottom of what the steps before have left */
    int64_t pad[4];               /* PAD, RANDOM_CROP: left, top, right, bottom */
    bool pad_if_needed;           /* RANDOM_CROP */
    bool vertical;                /* FLIP */
    double p;                     /* FLIP: its probability; 1: always */
    int turns;                    /* ROTATE: bit k: k quarter turns, counterclockwise, are among the choices */
    double scale[2], ratio[2];    /* RANDOM_RESIZED_CROP */
    double most_down, most_right; /* RANDOM_TRANSLATE: of height and width */
} stki_geometry_step;

/* A random_crop may leave the image as it is wide. */
static inline bool stki_geometry_step_pads(const stki_geometry_step *step)
{
    return step->kind == STKI_PAD || step->kind == STKI_TRANSLATE || step->kind == STKI_RANDOM_TRANSLATE ||
           step->pad_if_needed || (step->pad[0] | step->pad[1] | step->pad[2] | step->pad[3]) != 0;
}

enum { STKI_FILL_CHANNELS = 16 };

typedef struct stki_geometry {
    int count; /* 0: the image as it is */
    stki_geometry_step steps[STKI_GEOMETRY_STEPS];
    bool resizes;
    bool random; /* the placing differs from sample to sample of one shape */
    bool pads;   /* a window may reach over the image's edge */
    enum stki_padding padding;
    int fill_count; /* CONSTANT: 0: zeros; 1: for all channels; else one a channel */
    double fill[STKI_FILL_CHANNELS];
    enum stki_filter filter;
    const char *box_field; /* whose samples are the boxes (top, left, height, width); NULL: none */
} stki_geometry;

/* Is this the name of a step of geometry? */
bool stki_geometry_knows(const char *operation);
/* NULL behind the last one. */
const stki_operation *stki_geometry_operation(int index);
/* One step with its parameters, appended to `geometry`. `draw`: the default name of its draw. */
stk_status stki_geometry_read(stki_geometry *geometry, const char *operation, const stki_node *node, const char *draw,
                              stk_error *err);

/* What comes out for an image of this size; 0: not known. False, with *why naming the step, if the size of the result
 * depends on what is not known, or differs from sample to sample. */
bool stki_geometry_size(const stki_geometry *geometry, int64_t height, int64_t width, int64_t *out_height,
                        int64_t *out_width, const stki_geometry_step **why);

/* Which way up: pixel (y, x) of the row is pixel (u, v) of the window, where (u, v) is (x, y) if `transpose` and (y, x)
 * if not, counted from the other end if `flip_u` or `flip_v`. As a number: 4, 2, 1. */
typedef struct stki_orientation {
    bool transpose, flip_u, flip_v;
} stki_orientation;

enum { STKI_ORIENTATIONS = 8 };

static inline int stki_orientation_number(stki_orientation o)
{
    return (o.transpose ? 4 : 0) + (o.flip_u ? 2 : 0) + (o.flip_v ? 1 : 0);
}

static inline stki_orientation stki_orientation_of(int number)
{
    return (stki_orientation){(number & 4) != 0, (number & 2) != 0, (number & 1) != 0};
}

/* Bit n: orientation n can come out. */
unsigned stki_geometry_orientations(const stki_geometry *geometry);

/* One direction of a padded window: its pixels come in runs from the image, what no run covers is the fill. */
typedef struct stki_pad_axis {
    int64_t length; /* of the window */
    int count;
    struct stki_pad_run {
        int64_t to, from, length; /* `from`: counted from the first pixel that is needed at all */
        int step;                 /* 1, -1, or 0: one pixel again and again */
    } runs[3];
} stki_pad_axis;

/* What the steps come to for one image. */
typedef struct stki_placing {
    int64_t top, left;   /* of the part of the image that is the job's input, pixels */
    stki_resize_job job; /* all but the channels; without a resize step a copy */
    bool padded; /* the window reaches over the edge: the job makes the pixels that are needed, these the window: */
    stki_pad_axis pad_y, pad_x;
    stki_orientation orientation; /* of the window in the row */
} stki_placing;

/* For an image of this size. `box`: the sample's own (top, left, height, width), where there is a box_field; a box that
 * cuts through pixels takes its share of them. `occasion`: whom random steps draw for; NULL: for nobody, some result
 * that could be. STK_E_BAD_SHAPE names step, size found and size expected, but no file. */
stk_status stki_geometry_apply(const stki_geometry *geometry, int64_t height, int64_t width, const double *box,
                               const stki_occasion *occasion, stki_placing *out, stk_error *err);

#endif
