/* late_steps.h: the steps of a list of transforms that come after a row is a row: parts of it are erased, two rows are
 * mixed, a label becomes a row of its own. As they are written, and what is drawn for one row. Names and parameters are
 * torchvision's. */
#ifndef STKI_LATE_STEPS_H
#define STKI_LATE_STEPS_H

#include "document.h"
#include "draw.h"
#include <stoker/status.h>

enum { STKI_LATE_CHANNELS = 16 };

/* random_erasing, cutout. */
typedef struct stki_erase {
    const stki_node *node; /* NULL: nothing is erased */
    uint64_t draw;
    bool inside; /* cutout: a box of `height` x `width` in a uniform place */
    int64_t height, width;
    double p, scale[2], ratio[2];
    bool random;     /* normal numbers instead of a value */
    int value_count; /* 1, or one a channel */
    double value[STKI_LATE_CHANNELS];
    /* what the arithmetic before the step came to: value is in its units */
    int before_count;
    double before_a[STKI_LATE_CHANNELS], before_b[STKI_LATE_CHANNELS];
} stki_erase;

/* mixup, cutmix. */
typedef struct stki_mix {
    const stki_node *node; /* NULL: nothing is mixed */
    uint64_t draw;
    double mixup, cutmix; /* alpha of each; 0: not among the choices */
    bool by_pair;         /* each pair of rows draws for itself, not the global batch */
    double p;
    const char *labels; /* the field whose rows are mixed along; NULL: none */
} stki_mix;

/* one_hot, label_smoothing. */
typedef struct stki_one_hot {
    const stki_node *node; /* NULL: a field is not that */
    int64_t classes;
    double smoothing;
} stki_one_hot;

typedef struct stki_rectangle {
    int64_t top, left, height, width;
} stki_rectangle;

stk_status stki_erase_read(stki_erase *erase, const char *operation, const stki_node *node, const char *draw,
                           stk_error *err);
stk_status stki_mix_read(stki_mix *mix, const char *operation, const stki_node *node, const char *draw, stk_error *err);
stk_status stki_one_hot_read(stki_one_hot *one_hot, const char *operation, const stki_node *node, stk_error *err);

/* False: nothing of this row. Behind that the draw gives the numbers of `random`. */
bool stki_erase_draw(const stki_erase *erase, const stki_occasion *occasion, int64_t height, int64_t width,
                     stki_draw *draw, stki_rectangle *out);

/* How a row and its partner make one: the row's share, or the box that comes from the partner. */
typedef struct stki_mixing {
    bool mixes, cuts;
    float share, rest; /* of the row and of its partner; cuts: of the labels */
    stki_rectangle box;
} stki_mixing;

void stki_mix_draw(const stki_mix *mix, const stki_occasion *occasion, int64_t height, int64_t width, stki_mixing *out);

#endif
