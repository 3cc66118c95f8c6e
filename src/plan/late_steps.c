/* late_steps.c: see late_steps.h. */
#include "late_steps.h"
#include "error.h"
#include "float_control.h"
#include "geometry.h"
#include <math.h>
#include <string.h>

/* ---- reading ---- */

static stk_status take_draw(const stki_node *map, const char *draw, const char *operation, uint64_t *out,
                            stk_error *err)
{
    const stki_node *node = stki_node_get(map, "draw");
    const char *name = draw;
    stk_status status = node ? stki_node_text(node, &name, err) : STK_OK;

    *out = stki_draw_name(name, operation);
    return status;
}

static stk_status number(const stki_node *node, double low, double high, double *out, stk_error *err)
{
    stk_status status = node ? stki_node_double(node, out, err) : STK_OK;

    if (status == STK_OK && !(*out >= low && *out <= high))
        status = stki_fail_value(err, node, "%g to %g", low, high);
    return status;
}

static stk_status range(const stki_node *node, double *out, stk_error *err)
{
    stk_status status;

    if (!node)
        return STK_OK;
    if (node->kind != STKI_NODE_LIST || node->count != 2)
        return stki_fail_value(err, node, "[low, high]");
    if ((status = stki_node_double(node->items[0], &out[0], err)) != STK_OK ||
        (status = stki_node_double(node->items[1], &out[1], err)) != STK_OK)
        return status;
    return out[0] > 0 && out[0] <= out[1] ? STK_OK : stki_fail_value(err, node, "[low, high] with 0 < low <= high");
}

/* Parses a number, one number per channel, or `random`. */
static stk_status take_value(const stki_node *node, stki_erase *erase, stk_error *err)
{
    const bool list = node && node->kind == STKI_NODE_LIST;
    stk_status status = STK_OK;

    erase->value_count = list ? node->count : 1;
    if (!node)
        return STK_OK;
    if (node->kind == STKI_NODE_SCALAR && strcmp(node->text, "random") == 0) {
        erase->random = true;
        return STK_OK;
    }
    if (node->kind == STKI_NODE_MAP || erase->value_count < 1 || erase->value_count > STKI_LATE_CHANNELS)
        return stki_fail_value(err, node, "a number, a list of at most %d (one per channel), or random",
                               STKI_LATE_CHANNELS);
    for (int i = 0; i < erase->value_count && status == STK_OK; i++)
        status = stki_node_double(list ? node->items[i] : node, &erase->value[i], err);
    return status;
}

static stk_status read_cutout(stki_erase *erase, const stki_node *node, stk_error *err)
{
    static const char *const keys[] = {"size", "fill", "p", "draw"};
    const bool map = node->kind == STKI_NODE_MAP;
    const stki_node *size = map ? stki_node_get(node, "size") : node;
    const stki_node *sides[2] = {size, size};
    int64_t *const out[2] = {&erase->height, &erase->width};
    stk_status status = map ? stki_node_known_keys(node, keys, 4, err) : STK_OK;

    erase->inside = true;
    erase->p = 1;
    if (status == STK_OK && !size)
        return stki_fail_node(err, node, "size is missing");
    if (status == STK_OK && size->kind == STKI_NODE_LIST) {
        if (size->count != 2)
            return stki_fail_value(err, size, "a number of pixels or [height, width]");
        sides[0] = size->items[0];
        sides[1] = size->items[1];
    }
    for (int i = 0; i < 2 && status == STK_OK; i++) {
        status = stki_node_int(sides[i], out[i], err);
        if (status == STK_OK && (*out[i] < 1 || *out[i] > STKI_RESIZE_MOST))
            status = stki_fail_value(err, sides[i], "1 to %d pixels", STKI_RESIZE_MOST);
    }
    if (status == STK_OK && map)
        status = number(stki_node_get(node, "p"), 0, 1, &erase->p, err);
    return status != STK_OK ? status : take_value(map ? stki_node_get(node, "fill") : NULL, erase, err);
}

static stk_status read_erasing(stki_erase *erase, const stki_node *node, stk_error *err)
{
    static const char *const keys[] = {"p", "scale", "ratio", "value", "draw"};
    const bool map = node->kind == STKI_NODE_MAP;
    stk_status status = map ? stki_node_known_keys(node, keys, 5, err) : STK_OK;

    erase->p = 0.5;
    erase->scale[0] = 0.02;
    erase->scale[1] = 0.33;
    erase->ratio[0] = 0.3;
    erase->ratio[1] = 3.3;
    if (!map)
        return number(stki_node_is_null(node) ? NULL : node, 0, 1, &erase->p, err);
    if (status != STK_OK || (status = number(stki_node_get(node, "p"), 0, 1, &erase->p, err)) != STK_OK ||
        (status = range(stki_node_get(node, "scale"), erase->scale, err)) != STK_OK ||
        (status = range(stki_node_get(node, "ratio"), erase->ratio, err)) != STK_OK)
        return status;
    if (erase->scale[1] > 1)
        return stki_fail_value(err, stki_node_get(node, "scale"), "at most 1");
    return take_value(stki_node_get(node, "value"), erase, err);
}

stk_status stki_erase_read(stki_erase *erase, const char *operation, const stki_node *node, const char *draw,
                           stk_error *err)
{
    stk_status status;

    if (erase->node)
        return stki_fail_node(err, node, "found a second step that erases, expected at most one");
    *erase = (stki_erase){.node = node, .value_count = 1};
    status = strcmp(operation, "cutout") == 0 ? read_cutout(erase, node, err) : read_erasing(erase, node, err);
    return status != STK_OK ? status : take_draw(node, draw, operation, &erase->draw, err);
}

stk_status stki_mix_read(stki_mix *mix, const char *operation, const stki_node *node, const char *draw, stk_error *err)
{
    static const char *const keys[] = {"alpha", "labels", "lambda", "p", "draw"};
    static const char *const units[] = {"batch", "pair", NULL};
    const bool map = node->kind == STKI_NODE_MAP, second = mix->node != NULL;
    const stki_node *alpha = map ? stki_node_get(node, "alpha") : stki_node_is_null(node) ? NULL : node;
    const stki_node *labels = map ? stki_node_get(node, "labels") : NULL;
    const stki_node *unit = map ? stki_node_get(node, "lambda") : NULL;
    double *const out = strcmp(operation, "mixup") == 0 ? &mix->mixup : &mix->cutmix;
    int word = 0;
    stk_status status = map ? stki_node_known_keys(node, keys, 5, err) : STK_OK;

    if (*out != 0)
        return stki_fail_node(err, node, "found a second %s, expected at most one", operation);
    *out = 1;
    if (status != STK_OK || (alpha && (status = number(alpha, 1e-3, 1e4, out, err)) != STK_OK))
        return status;
    if (second && map && (stki_node_get(node, "p") || stki_node_get(node, "draw") || labels || unit))
        return stki_fail_node(err, node,
                              "found keys other than alpha, which belong in the earlier mixing step: one of the two "
                              "steps is drawn each time");
    if (second)
        return STK_OK;
    mix->node = node;
    mix->p = 1;
    if ((labels && (status = stki_node_text(labels, &mix->labels, err)) != STK_OK) ||
        (unit && (status = stki_node_word(unit, units, &word, err)) != STK_OK) ||
        (map && (status = number(stki_node_get(node, "p"), 0, 1, &mix->p, err)) != STK_OK))
        return status;
    mix->by_pair = word == 1;
    return take_draw(node, draw, "mix", &mix->draw, err);
}

stk_status stki_one_hot_read(stki_one_hot *one_hot, const char *operation, const stki_node *node, stk_error *err)
{
    static const char *const keys[] = {"num_classes", "label_smoothing"};
    const bool map = node->kind == STKI_NODE_MAP;
    const stki_node *classes = map ? stki_node_get(node, keys[0]) : node,
                    *smoothing = map ? stki_node_get(node, keys[1]) : NULL;
    stk_status status = map ? stki_node_known_keys(node, keys, 2, err) : STK_OK;

    if (status != STK_OK)
        return status;
    if (strcmp(operation, "label_smoothing") == 0) {
        if (!one_hot->node)
            return stki_fail_node(err, node, "found label_smoothing without one_hot, expected it after one_hot");
        if (one_hot->smooths)
            return stki_fail_node(err, node, "found a second label_smoothing, expected at most one");
        one_hot->smooths = true;
        return number(node, 0, 1, &one_hot->smoothing, err);
    }
    if (one_hot->node)
        return stki_fail_node(err, node, "found a second one_hot, expected at most one");
    if (!classes)
        return stki_fail_node(err, node, "num_classes is missing");
    one_hot->node = node;
    one_hot->smooths = smoothing != NULL;
    if ((status = stki_node_int(classes, &one_hot->classes, err)) != STK_OK)
        return status;
    if (one_hot->classes < 1 || one_hot->classes > INT64_C(1) << 24)
        return stki_fail_value(err, classes, "1 to %d classes", 1 << 24);
    return number(smoothing, 0, 1, &one_hot->smoothing, err);
}

/* ---- drawing ---- */

static double round_even(double x)
{
    const double down = floor(x), rest = x - down;

    return rest < 0.5 || (rest == 0.5 && fmod(down, 2) == 0) ? down : down + 1;
}

/* Like torchvision's RandomErasing: gives up after ten attempts. */
static bool draw_erasing(const stki_erase *erase, int64_t height, int64_t width, stki_draw *draw, stki_rectangle *out)
{
    const double area = (double)height * (double)width;

    for (int i = 0; i < 10; i++) {
        const double target = area * stki_draw_between(draw, erase->scale[0], erase->scale[1]);
        const double aspect = stki_draw_log_between(draw, erase->ratio[0], erase->ratio[1]);
        const double h = round_even(sqrt(target * aspect)), w = round_even(sqrt(target / aspect));

        if (!(h < (double)height && w < (double)width))
            continue;
        out->height = (int64_t)h;
        out->width = (int64_t)w;
        out->top = stki_draw_below(draw, height - out->height + 1);
        out->left = stki_draw_below(draw, width - out->width + 1);
        return true;
    }
    return false;
}

bool stki_erase_draw(const stki_erase *erase, const stki_occasion *occasion, int64_t height, int64_t width,
                     stki_draw *draw, stki_rectangle *out)
{
    stki_float_control control = stki_float_enter();
    bool erases;

    stki_draw_begin(draw, occasion, erase->draw);
    erases = erase->p >= 1 || stki_draw_chance(draw, erase->p);
    if (erases && erase->inside) {
        out->height = erase->height < height ? erase->height : height;
        out->width = erase->width < width ? erase->width : width;
        out->top = stki_draw_below(draw, height - out->height + 1);
        out->left = stki_draw_below(draw, width - out->width + 1);
    } else if (erases) {
        erases = draw_erasing(erase, height, width, draw, out);
    }
    stki_float_leave(control);
    return erases;
}

/* Like torchvision's CutMix, draws a box with the fraction 1 - lambda of the area around a uniformly drawn center, and
 * clips it at the edges. */
static void draw_box(double lambda, int64_t height, int64_t width, stki_draw *draw, stki_mixing *out)
{
    const int64_t x = stki_draw_below(draw, width), y = stki_draw_below(draw, height);
    const double r = 0.5 * sqrt(1 - lambda);
    const int64_t half_w = (int64_t)(r * (double)width), half_h = (int64_t)(r * (double)height);
    const int64_t left = x > half_w ? x - half_w : 0, top = y > half_h ? y - half_h : 0;
    const int64_t right = x + half_w < width ? x + half_w : width, bottom = y + half_h < height ? y + half_h : height;
    const double rest = (double)((right - left) * (bottom - top)) / ((double)height * (double)width);

    out->box = (stki_rectangle){top, left, bottom - top, right - left};
    out->share = (float)(1 - rest);
    out->rest = (float)rest;
}

void stki_mix_draw(const stki_mix *mix, const stki_occasion *occasion, int64_t height, int64_t width, stki_mixing *out)
{
    stki_float_control control = stki_float_enter();
    stki_draw draw;
    double lambda;

    *out = (stki_mixing){.share = 1};
    stki_draw_begin(&draw, occasion, mix->draw);
    out->mixes = mix->p >= 1 || stki_draw_chance(&draw, mix->p);
    if (out->mixes) {
        out->cuts = mix->cutmix > 0 && (mix->mixup == 0 || stki_draw_below(&draw, 2) == 1);
        lambda = stki_draw_beta(&draw, out->cuts ? mix->cutmix : mix->mixup, out->cuts ? mix->cutmix : mix->mixup);
        out->share = (float)lambda;
        out->rest = (float)(1 - lambda);
        if (out->cuts)
            draw_box(lambda, height, width, &draw, out);
    }
    stki_float_leave(control);
}
