/* color_steps.h: the color steps of a list of transforms: their configuration, and the operations (color.h) they
 * produce for one sample. They follow the steps that move pixels and precede arithmetic. */
#ifndef STKI_COLOR_STEPS_H
#define STKI_COLOR_STEPS_H

#include "color.h"
#include "document.h"
#include "draw.h"
#include "operation.h"

enum stki_color_operation {
    STKI_OP_ADJUST,    /* one kind of adjustment, with a fixed factor */
    STKI_OP_JITTER,    /* up to four kinds of adjustment, with random factors in random order */
    STKI_OP_GRAYSCALE, /* with probability p */
    STKI_OP_SWAP,      /* permutes the channels */
    STKI_OP_RANDOM_PERMUTATION
};

enum { STKI_COLOR_OPERATIONS = 8 };

typedef struct stki_color_operation_step {
    enum stki_color_operation operation;
    const stki_node *node;
    uint64_t draw; /* 0: nothing is drawn */
    enum stki_color_kind kind;
    bool has[4]; /* JITTER: which of brightness, contrast, saturation and hue the config sets */
    double low[4], high[4];
    double p;
    uint8_t from[3];
} stki_color_operation_step;

typedef struct stki_colors {
    int count;
    stki_color_operation_step steps[STKI_COLOR_OPERATIONS];
} stki_colors;

bool stki_colors_know(const char *operation);
const stki_operation *stki_colors_operation(int index); /* NULL after the last one */
stk_status stki_colors_read(stki_colors *colors, const char *operation, const stki_node *node, const char *draw,
                            stk_error *err);
/* Draws the parameters for one sample. Writes at most STKI_COLOR_STEPS steps and returns their number. */
int stki_colors_draw(const stki_colors *colors, const stki_occasion *occasion, stki_color_step *out);

#endif
