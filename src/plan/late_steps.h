/* late_steps.h: the transforms that operate on finished rows: erasing a part, mixing two rows, turning a label into a
 * row (one-hot). This module parses them and draws their random values for a row. Names and parameters follow
 * torchvision. */
#ifndef STKI_LATE_STEPS_H
#define STKI_LATE_STEPS_H

#include "document.h"
#include "draw.h"
#include <stoker/status.h>

enum { STKI_LATE_CHANNELS = 16 };

/* random_erasing, cutout. */
typedef struct stki_erase {
    const stki_node *node; /* NULL: no erasing */
    uint64_t draw;
    bool inside; /* cutout: a box of `height` x `width` inside the row, at a uniformly drawn position */
    int64_t height, width;
    double p, scale[2], ratio[2];
    bool random;     /* fill with normal random numbers instead of a value */
    int value_count; /* number of values: 1, or one per channel */
    double value[STKI_LATE_CHANNELS];
    /* the folded arithmetic before the step, per channel; `value` is in the units of its result */
    int before_count;
    double before_a[STKI_LATE_CHANNELS], before_b[STKI_LATE_CHANNELS];
} stki_erase;

/* mixup, cutmix. */
typedef struct stki_mix {
    const stki_node *node; /* NULL: no mixing */
    uint64_t draw;
    double mixup, cutmix; /* alpha of each operation; 0: not in the list */
    bool by_pair;         /* one draw per pair of rows instead of one per global batch */
    double p;
    const char *labels; /* the label field that is also mixed; NULL: none */
} stki_mix;

/* one_hot, label_smoothing. */
typedef struct stki_one_hot {
    const stki_node *node; /* NULL: not a one-hot field */
    int64_t classes;
    bool smooths; /* the config sets label_smoothing */
    double smoothing;
} stki_one_hot;

typedef struct stki_rectangle {
    int64_t top, left, height, width;
} stki_rectangle;

stk_status stki_erase_read(stki_erase *erase, const char *operation, const stki_node *node, const char *draw,
                           stk_error *err);
stk_status stki_mix_read(stki_mix *mix, const char *operation, const stki_node *node, const char *draw, stk_error *err);
stk_status stki_one_hot_read(stki_one_hot *one_hot, const char *operation, const stki_node *node, stk_error *err);

/* Draws the box to erase in a row. Returns false if the row is not erased. `draw` then yields the numbers for
 * `random`. */
bool stki_erase_draw(const stki_erase *erase, const stki_occasion *occasion, int64_t height, int64_t width,
                     stki_draw *draw, stki_rectangle *out);

/* How a row is combined with its partner: as a weighted sum (mixup), or with a box taken from the partner (cutmix). */
typedef struct stki_mixing {
    bool mixes, cuts;
    float share, rest; /* weights of the row and its partner; if `cuts`, only of their labels */
    stki_rectangle box;
} stki_mixing;

void stki_mix_draw(const stki_mix *mix, const stki_occasion *occasion, int64_t height, int64_t width, stki_mixing *out);

#endif
