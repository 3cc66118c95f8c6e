/* color_steps.c: see color_steps.h. Names and parameters follow torchvision. */
#include "color_steps.h"
#include "error.h"
#include "float_control.h"
#include "geometry.h"
#include <string.h>

/* ---- reading ---- */

typedef struct reading {
    stki_color_operation_step *step;
    const stki_node *node;
    const char *operation, *draw;
} reading;

static const char *const adjustments[] = {"brightness", "contrast", "saturation", "hue"};
static const enum stki_color_kind adjustment_kinds[] = {STKI_COLOR_BRIGHTNESS, STKI_COLOR_CONTRAST,
                                                        STKI_COLOR_SATURATION, STKI_COLOR_HUE};

static stk_status take_draw(const reading *r, stk_error *err)
{
    const stki_node *node = r->node->kind == STKI_NODE_MAP ? stki_node_get(r->node, "draw") : NULL;
    const char *name = r->draw;
    stk_status status = node ? stki_node_text(node, &name, err) : STK_OK;

    r->step->draw = stki_draw_name(name, r->operation);
    return status;
}

static stk_status number(const stki_node *node, double low, double high, double *out, stk_error *err)
{
    stk_status status = stki_node_double(node, out, err);

    if (status == STK_OK && !(*out >= low && *out <= high))
        status = stki_fail_value(err, node, high > 1e6 ? "a number of at least 0" : "%g to %g", low, high);
    return status;
}

static stk_status read_adjustment(const reading *r, stk_error *err)
{
    int k = 0;

    while (strcmp(adjustments[k], r->operation) != 0)
        k++;
    r->step->operation = STKI_OP_ADJUST;
    r->step->kind = adjustment_kinds[k];
    return number(r->node, k == 3 ? -0.5 : 0, k == 3 ? 0.5 : 1e30, &r->step->low[0], err);
}

/* Parses [low, high], or a single x, which means [max(0, 1 - x), 1 + x], or [-x, x] for hue. */
static stk_status read_spread(const reading *r, int k, const stki_node *node, stk_error *err)
{
    const double least = k == 3 ? -0.5 : 0, most = k == 3 ? 0.5 : 1e30, middle = k == 3 ? 0 : 1;
    double x;
    stk_status status;

    if (node->kind == STKI_NODE_LIST) {
        if (node->count != 2)
            return stki_fail_value(err, node, "a number or [low, high]");
        status = number(node->items[0], least, most, &r->step->low[k], err);
        if (status == STK_OK)
            status = number(node->items[1], least, most, &r->step->high[k], err);
        if (status == STK_OK && r->step->low[k] > r->step->high[k])
            status = stki_fail_value(err, node, "low <= high");
    } else {
        status = number(node, 0, most, &x, err);
        r->step->low[k] = middle - x < least ? least : middle - x;
        r->step->high[k] = middle + x;
    }
    r->step->has[k] = r->step->low[k] != middle || r->step->high[k] != middle;
    return status;
}

static stk_status read_jitter(const reading *r, stk_error *err)
{
    static const char *const keys[] = {"brightness", "contrast", "saturation", "hue", "draw"};
    stk_status status = stki_node_known_keys(r->node, keys, 5, err);

    r->step->operation = STKI_OP_JITTER;
    for (int k = 0; k < 4 && status == STK_OK; k++)
        if (stki_node_get(r->node, adjustments[k]))
            status = read_spread(r, k, stki_node_get(r->node, adjustments[k]), err);
    return status != STK_OK ? status : take_draw(r, err);
}

static stk_status read_grayscale(const reading *r, stk_error *err)
{
    static const char *const keys[] = {"p", "draw"}, *const fixed_keys[] = {"num_output_channels"};
    const bool map = r->node->kind == STKI_NODE_MAP, random = strcmp(r->operation, "random_grayscale") == 0;
    const stki_node *p = map                          ? stki_node_get(r->node, random ? keys[0] : fixed_keys[0])
                                                  : stki_node_is_null(r->node) ? NULL
                                                      : r->node;
    int64_t channels = 3;
    stk_status status = map ? stki_node_known_keys(r->node, random ? keys : fixed_keys, random ? 2 : 1, err) : STK_OK;

    r->step->operation = STKI_OP_GRAYSCALE;
    r->step->p = random ? 0.1 : 1;
    if (status != STK_OK)
        return status;
    if (random)
        return p && (status = number(p, 0, 1, &r->step->p, err)) != STK_OK ? status : take_draw(r, err);
    if (p && (status = stki_node_int(p, &channels, err)) == STK_OK && channels != 3)
        status = stki_fail_value(err, p, "3 (to get one channel, decode images with source: {color: gray})");
    return status;
}

static stk_status read_swap(const reading *r, stk_error *err)
{
    int seen = 0;
    stk_status status = STK_OK;

    r->step->operation = STKI_OP_SWAP;
    if (r->node->kind != STKI_NODE_LIST || r->node->count != 3)
        return stki_fail_value(err, r->node, "the three channels in their new order, such as [2, 1, 0]");
    for (int c = 0; c < 3 && status == STK_OK; c++) {
        int64_t from = 0;

        status = stki_node_int(r->node->items[c], &from, err);
        if (status == STK_OK && (from < 0 || from > 2 || seen & 1 << from))
            return stki_fail_value(err, r->node, "0, 1 and 2, once each");
        seen |= 1 << from;
        r->step->from[c] = (uint8_t)from;
    }
    return status;
}

static stk_status read_permutation(const reading *r, stk_error *err)
{
    static const char *const keys[] = {"draw"};
    stk_status status = stki_node_known_keys(r->node, keys, 1, err);

    r->step->operation = STKI_OP_RANDOM_PERMUTATION;
    return status != STK_OK ? status : take_draw(r, err);
}

static const struct {
    stki_operation operation;
    stk_status (*read)(const reading *r, stk_error *err);
} operations[] = {{{"brightness", {"0.5", "1.5"}}, read_adjustment},
                  {{"channel_swap", {"[2, 1, 0]", "[1, 2, 0]"}}, read_swap},
                  {{"color_jitter", {"{brightness: 0.4}", "{brightness: 0.4, hue: 0.1}"}}, read_jitter},
                  {{"contrast", {"0.5", "1.5"}}, read_adjustment},
                  {{"grayscale", {"{}", "3"}}, read_grayscale},
                  {{"hue", {"0.1", "-0.2"}}, read_adjustment},
                  {{"random_channel_permutation", {"{}", "{draw: colors}"}}, read_permutation},
                  {{"random_grayscale", {"0.5", "{p: 0.9}"}}, read_grayscale},
                  {{"saturation", {"0.5", "1.5"}}, read_adjustment}};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

bool stki_colors_know(const char *operation)
{
    return stki_operation_find(stki_colors_operation, operation) >= 0;
}

const stki_operation *stki_colors_operation(int index)
{
    return index < OPERATIONS ? &operations[index].operation : NULL;
}

stk_status stki_colors_read(stki_colors *colors, const char *operation, const stki_node *node, const char *draw,
                            stk_error *err)
{
    reading r = {.node = node, .operation = operation, .draw = draw};

    if (colors->count == STKI_COLOR_OPERATIONS)
        return stki_fail_node(err, node, "found more than %d steps that change colors", STKI_COLOR_OPERATIONS);
    r.step = &colors->steps[colors->count++];
    *r.step = (stki_color_operation_step){.node = node};
    return operations[stki_operation_find(stki_colors_operation, operation)].read(&r, err);
}

/* ---- drawing ---- */

static stki_color_step adjustment(enum stki_color_kind kind, double factor)
{
    return (stki_color_step){.kind = kind, .factor = (float)factor, .rest = (float)(1 - factor)};
}

/* Like torchvision's ColorJitter, draws the order of the four adjustments first, then the factors of all four, even of
 * those that are not used. */
static int draw_jitter(const stki_color_operation_step *s, stki_draw *draw, stki_color_step *out)
{
    int order[4], count = 0;
    double factor[4];

    for (int i = 0; i < 4; i++) {
        const int at = (int)stki_draw_below(draw, i + 1);

        order[i] = order[at];
        order[at] = i;
    }
    for (int k = 0; k < 4; k++)
        factor[k] = stki_draw_between(draw, s->low[k], s->high[k]);
    for (int i = 0; i < 4; i++)
        if (s->has[order[i]])
            out[count++] = adjustment(adjustment_kinds[order[i]], factor[order[i]]);
    return count;
}

static int draw_one(const stki_color_operation_step *s, const stki_occasion *occasion, stki_color_step *out)
{
    static const uint8_t permutations[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    stki_draw draw;

    if (s->draw)
        stki_draw_begin(&draw, occasion, s->draw);
    switch (s->operation) {
    case STKI_OP_ADJUST:
        *out = adjustment(s->kind, s->low[0]);
        return 1;
    case STKI_OP_JITTER:
        return draw_jitter(s, &draw, out);
    case STKI_OP_GRAYSCALE:
        *out = (stki_color_step){.kind = STKI_COLOR_GRAY};
        return !s->draw || stki_draw_chance(&draw, s->p);
    case STKI_OP_SWAP:
        *out = (stki_color_step){.kind = STKI_COLOR_PERMUTE};
        memcpy(out->from, s->from, sizeof out->from);
        return 1;
    case STKI_OP_RANDOM_PERMUTATION:
        *out = (stki_color_step){.kind = STKI_COLOR_PERMUTE};
        memcpy(out->from, permutations[stki_draw_below(&draw, 6)], sizeof out->from);
        return 1;
    }
    return 0;
}

int stki_colors_draw(const stki_colors *colors, const stki_occasion *occasion, stki_color_step *out)
{
    stki_float_control control = stki_float_enter();
    int count = 0;

    for (int i = 0; i < colors->count; i++)
        count += draw_one(&colors->steps[i], occasion, out + count);
    stki_float_leave(control);
    return count;
}
