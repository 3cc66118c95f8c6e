/* geometry.h: the transforms that move pixels: they determine which part of an image becomes a row, and in which size
 * and orientation. Any number of steps reduces to one part of the image, one size that it is scaled to, one window of
 * the result (which may extend past its edges) and one of eight orientations, so that only visible pixels are computed.
 * The result has the same bytes as if the steps were executed one by one: pixels removed by a crop do not influence a
 * later resize. (There is one exception: a flip or rotation before a resize is done after it.) Sizes and draws follow
 * torchvision.
 *
 *     geometry_steps.c  reads the config     geometry.c  one image     docs/reference/transforms.md  the definitions */
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
    uint64_t draw;         /* stki_draw_name; 0: no draw */
    int64_t top, left;     /* CROP: position; TRANSLATE: number of pixels down and to the right */
    int64_t height, width; /* RESIZE: width 0: the shorter side becomes `height`, keeping the aspect ratio; height also
                              0: the longer side becomes `longest`. PAD: size of the result; 0: determined by `pad` */
    int64_t longest;       /* RESIZE of one side: limit for the longer side; 0: none */
    bool has_box;
    double box[4];                /* RESIZE: left, top, right, bottom, in the result of the previous steps */
    int64_t pad[4];               /* PAD, RANDOM_CROP: left, top, right, bottom */
    bool pad_if_needed;           /* RANDOM_CROP */
    bool vertical;                /* FLIP */
    double p;                     /* FLIP: probability; 1: always */
    int turns;                    /* ROTATE: bit k allows k counterclockwise quarter turns */
    double scale[2], ratio[2];    /* RANDOM_RESIZED_CROP */
    double most_down, most_right; /* RANDOM_TRANSLATE: fractions of height and width */
} stki_geometry_step;

/* Whether the window may extend past the edges of the image. */
static inline bool stki_geometry_step_pads(const stki_geometry_step *step)
{
    return step->kind == STKI_PAD || step->kind == STKI_TRANSLATE || step->kind == STKI_RANDOM_TRANSLATE ||
           step->pad_if_needed || (step->pad[0] | step->pad[1] | step->pad[2] | step->pad[3]) != 0;
}

enum { STKI_FILL_CHANNELS = 16 };

typedef struct stki_geometry {
    int count; /* 0: the image is unchanged */
    stki_geometry_step steps[STKI_GEOMETRY_STEPS];
    bool resizes;
    bool random; /* the placement varies between samples of the same shape */
    bool pads;   /* a window may extend past the image's edges */
    enum stki_padding padding;
    int fill_count; /* CONSTANT: 0: zeros; 1: the same for all channels; otherwise one per channel */
    double fill[STKI_FILL_CHANNELS];
    enum stki_filter filter;
    const char *box_field; /* the field that holds the boxes (top, left, height, width); NULL: none */
} stki_geometry;

/* Whether this is the name of a geometry step. */
bool stki_geometry_knows(const char *operation);
/* NULL after the last one. */
const stki_operation *stki_geometry_operation(int index);
/* Parses one step with its parameters and appends it to `geometry`. `draw`: the default name of its draw. */
stk_status stki_geometry_read(stki_geometry *geometry, const char *operation, const stki_node *node, const char *draw,
                              stk_error *err);

/* Computes the size of the result for an image of this size; 0: unknown. Returns false if the result depends on an
 * unknown size or varies from sample to sample, in which case *why is the step that causes this, if there is one. */
bool stki_geometry_size(const stki_geometry *geometry, int64_t height, int64_t width, int64_t *out_height,
                        int64_t *out_width, const stki_geometry_step **why);

/* An orientation: pixel (y, x) of the row is pixel (u, v) of the window, where (u, v) is (x, y) if `transpose`,
 * otherwise (y, x), and `flip_u` or `flip_v` count that coordinate from the other end. As a number, the members are
 * bits 4, 2 and 1. */
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

/* Returns a set in which bit n means that orientation n is possible. */
unsigned stki_geometry_orientations(const stki_geometry *geometry);

/* One axis of a padded window: runs of pixels copied from the image; pixels that no run covers have the fill value. */
typedef struct stki_pad_axis {
    int64_t length; /* length of the window */
    int count;
    struct stki_pad_run {
        int64_t to, from, length; /* `to`: index in the window; `from`: counted from the first needed pixel */
        int step;                 /* from one pixel of the image to the next: 1, -1, or 0 to repeat one pixel */
    } runs[3];
} stki_pad_axis;

/* The combined effect of the steps on one image. */
typedef struct stki_placement {
    int64_t top, left;   /* position of the job's input in the image, in pixels */
    stki_resize_job job; /* all members except `channels`; only copies pixels if no step resizes */
    bool padded; /* the window extends past the edges: the job makes only the pixels that are needed, and pad_y and
                    pad_x place them in the window */
    stki_pad_axis pad_y, pad_x;
    stki_orientation orientation; /* maps the window to the row */
} stki_placement;

/* Computes the placement for an image of this size. `box`: the sample's own box (top, left, height, width) if there is
 * a box_field; a box with fractional edges includes partial pixels. `occasion`: for the draws of random steps; NULL:
 * the same draws for every image, for checks. The message of STK_E_BAD_SHAPE has the step, the size found and the size
 * expected, but no file. */
stk_status stki_geometry_apply(const stki_geometry *geometry, int64_t height, int64_t width, const double *box,
                               const stki_occasion *occasion, stki_placement *out, stk_error *err);

#endif
