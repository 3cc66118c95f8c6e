/* geometry_steps.c: parses the geometry steps of a config; see geometry.h. Steps that torchvision also has follow its
 * names and parameters. */
#include "error.h"
#include "geometry.h"
#include <math.h>
#include <string.h>

/* The step being parsed. */
typedef struct reading {
    stki_geometry *geometry;
    stki_geometry_step *step;
    const stki_node *node;
    const char *operation, *draw; /* `draw`: the default name of the step's random draw */
} reading;

/* ---- parameters ---- */

static stk_status pixels(const stki_node *node, int64_t least, int64_t *out, stk_error *err)
{
    stk_status status = stki_node_int(node, out, err);

    if (status == STK_OK && (*out < least || *out > STKI_RESIZE_MOST))
        status = stki_fail_value(err, node, "%d to %d pixels", (int)least, STKI_RESIZE_MOST);
    return status;
}

/* Parses N or [height, width]. */
static stk_status size(const stki_node *node, int64_t *height, int64_t *width, stk_error *err)
{
    stk_status status;

    if (node->kind == STKI_NODE_SCALAR) {
        *width = 0;
        return pixels(node, 1, height, err);
    }
    if (node->kind != STKI_NODE_LIST || node->count != 2)
        return stki_fail_value(err, node, "a number of pixels or [height, width]");
    status = pixels(node->items[0], 1, height, err);
    return status != STK_OK ? status : pixels(node->items[1], 1, width, err);
}

/* Like size(), but a single number means a square. */
static stk_status square(const stki_node *node, stki_geometry_step *step, stk_error *err)
{
    stk_status status = size(node, &step->height, &step->width, err);

    step->width = step->width ? step->width : step->height;
    return status;
}

/* Returns `size` of a map, or the node itself. */
static stk_status size_of(const reading *r, const stki_node **out, stk_error *err)
{
    *out = r->node->kind == STKI_NODE_MAP ? stki_node_get(r->node, "size") : r->node;
    return *out ? STK_OK : stki_fail_node(err, r->node, "size is missing");
}

static stk_status number_between(const stki_node *node, double low, double high, double *out, stk_error *err)
{
    stk_status status = stki_node_double(node, out, err);

    if (status == STK_OK && !(*out >= low && *out <= high))
        status = stki_fail_value(err, node, "%g to %g", low, high);
    return status;
}

/* Parses two numbers; `form` describes them, such as [low, high]. */
static stk_status two_numbers(const stki_node *node, const char *form, double low, double high, double *out,
                              stk_error *err)
{
    stk_status status;

    if (node->kind != STKI_NODE_LIST || node->count != 2)
        return stki_fail_value(err, node, "%s", form);
    if ((status = number_between(node->items[0], low, high, &out[0], err)) != STK_OK)
        return status;
    return number_between(node->items[1], low, high, &out[1], err);
}

static stk_status ordered_range(const stki_node *node, double low, double high, double *out, stk_error *err)
{
    stk_status status = two_numbers(node, "[low, high]", low, high, out, err);

    if (status == STK_OK && !(out[0] > 0 && out[0] <= out[1]))
        status = stki_fail_value(err, node, "[low, high] with 0 < low <= high");
    return status;
}

static stk_status take_draw(const reading *r, stk_error *err)
{
    const stki_node *node = r->node->kind == STKI_NODE_MAP ? stki_node_get(r->node, "draw") : NULL;
    const char *name = r->draw;
    stk_status status = node ? stki_node_text(node, &name, err) : STK_OK;

    r->geometry->random = true;
    r->step->draw = stki_draw_name(name, r->operation);
    return status;
}

static stk_status take_filter(const reading *r, stk_error *err)
{
    const stki_node *filter = NULL, *interpolation = NULL;
    int word = STKI_FILTER_BILINEAR;
    stk_status status = STK_OK;

    if (r->geometry->resizes)
        return stki_fail_node(err, r->node, "found a second resize, expected at most one");
    if (r->geometry->pads)
        return stki_fail_node(err, r->node, "found a resize after padding, expected it before");
    r->geometry->resizes = true;
    if (r->node->kind == STKI_NODE_MAP) {
        filter = stki_node_get(r->node, "filter");
        interpolation = stki_node_get(r->node, "interpolation");
    }
    if (filter && interpolation)
        return stki_fail_node(err, interpolation,
                              "interpolation and filter are mutually exclusive: they are equivalent");
    filter = filter ? filter : interpolation;
    if (filter)
        status = stki_node_word(filter, stki_filter_words, &word, err);
    r->geometry->filter = (enum stki_filter)word;
    return status;
}

/* ---- padding ---- */

/* Parses N, [left and right, top and bottom] or [left, top, right, bottom]. */
static stk_status take_pad(const stki_node *node, int64_t *pad, stk_error *err)
{
    static const int of[3][4] = {{0, 0, 0, 0}, {0, 1, 0, 1}, {0, 1, 2, 3}};
    const bool list = node->kind == STKI_NODE_LIST;
    const int n = list ? node->count : 1;
    stk_status status = STK_OK;

    if (node->kind == STKI_NODE_MAP || (n != 1 && n != 2 && n != 4))
        return stki_fail_value(err, node,
                               "a number of pixels, [left and right, top and bottom] or [left, top, right, "
                               "bottom]");
    for (int i = 0; i < 4 && status == STK_OK; i++)
        status = pixels(list ? node->items[of[n / 2][i]] : node, 0, &pad[i], err);
    return status;
}

static stk_status take_fill(stki_geometry *geometry, const stki_node *node, stk_error *err)
{
    const bool list = node && node->kind == STKI_NODE_LIST;
    stk_status status = STK_OK;

    geometry->fill_count = node ? list ? node->count : 1 : 0;
    if (node && (node->kind == STKI_NODE_MAP || geometry->fill_count < 1 || geometry->fill_count > STKI_FILL_CHANNELS))
        return stki_fail_value(err, node, "a number, or a list of at most %d, one per channel", STKI_FILL_CHANNELS);
    for (int i = 0; i < geometry->fill_count && status == STK_OK; i++)
        status = stki_node_double(list ? node->items[i] : node, &geometry->fill[i], err);
    return status;
}

/* Parses padding_mode and fill of a step that may pad. */
static stk_status begin_padding(const reading *r, stk_error *err)
{
    static const char *const modes[] = {"constant", "edge", "reflect", "symmetric", NULL};
    const bool map = r->node->kind == STKI_NODE_MAP;
    const stki_node *mode = map ? stki_node_get(r->node, "padding_mode") : NULL;
    const stki_node *fill = map ? stki_node_get(r->node, "fill") : NULL;
    int word = STKI_PAD_CONSTANT;
    stk_status status;

    if (r->geometry->pads)
        return stki_fail_node(err, r->node, "found a second step that pads, expected at most one");
    r->geometry->pads = true;
    if (mode && (status = stki_node_word(mode, modes, &word, err)) != STK_OK)
        return status;
    r->geometry->padding = (enum stki_padding)word;
    if (fill && word != STKI_PAD_CONSTANT)
        return stki_fail_node(err, fill, "found a fill value with padding_mode: %s, expected padding_mode: constant",
                              modes[word]);
    return take_fill(r->geometry, fill, err);
}

/* ---- steps ---- */

static stk_status read_crop(const reading *r, stk_error *err)
{
    static const char *const keys[] = {"top", "left", "height", "width", "field"};
    const stki_node *node = r->node, *field = stki_node_get(node, "field");
    stki_geometry_step *step = r->step;
    int64_t *const numbers[] = {&step->top, &step->left, &step->height, &step->width};
    stk_status status = stki_node_known_keys(node, keys, 5, err);

    if (status != STK_OK)
        return status;
    if (field) {
        if (node->count > 1)
            return stki_fail_node(err, node,
                                  "found field and other keys, expected field alone or top, left, height, width");
        if (r->geometry->count > 0)
            return stki_fail_node(err, node,
                                  "found a step before crop: {field: …}, expected it to come first, because "
                                  "the boxes refer to the stored image");
        step->kind = STKI_CROP_BY_FIELD;
        return stki_node_text(field, &r->geometry->box_field, err);
    }
    step->kind = STKI_CROP;
    for (int i = 0; i < 4; i++) {
        const stki_node *number = stki_node_get(node, keys[i]);

        if (!number)
            return stki_fail_node(err, node, "%s is missing", keys[i]);
        if ((status = pixels(number, i < 2 ? 0 : 1, numbers[i], err)) != STK_OK)
            return status;
    }
    return STK_OK;
}

static stk_status read_center_crop(const reading *r, stk_error *err)
{
    r->step->kind = STKI_CENTER_CROP;
    return square(r->node, r->step, err);
}

static stk_status read_box(const stki_node *node, double *box, stk_error *err)
{
    stk_status status = STK_OK;

    if (node->kind != STKI_NODE_LIST || node->count != 4)
        return stki_fail_value(err, node, "[left, top, right, bottom]");
    for (int i = 0; i < 4 && status == STK_OK; i++)
        status = stki_node_double(node->items[i], &box[i], err);
    if (status == STK_OK && !(box[0] >= 0 && box[1] >= 0 && box[2] > box[0] && box[3] > box[1]))
        status = stki_fail_value(err, node, "left < right, top < bottom and no negative number");
    return status;
}

/* Parses `longer: N`: the longer side gets N pixels. */
static stk_status take_longer(const reading *r, const stki_node *longer, stk_error *err)
{
    if (stki_node_get(r->node, "size") || stki_node_get(r->node, "max_size"))
        return stki_fail_node(err, longer, "longer and %s are mutually exclusive",
                              stki_node_get(r->node, "size") ? "size" : "max_size");
    return pixels(longer, 1, &r->step->longest, err);
}

/* Parses `max_size`, the upper limit for the longer side; it requires `size` to be a single number. */
static stk_status take_max_size(const reading *r, stk_error *err)
{
    const stki_node *most = stki_node_get(r->node, "max_size");
    stk_status status = most ? pixels(most, 1, &r->step->longest, err) : STK_OK;

    if (status != STK_OK || !most)
        return status;
    if (r->step->width)
        return stki_fail_node(err, most,
                              "cannot be combined with size: [height, width], expected one number: the shorter side");
    if (r->step->longest <= r->step->height)
        return stki_fail_value(err, most, "more than %d, the size of the shorter side", (int)r->step->height);
    return STK_OK;
}

static stk_status read_resize(const reading *r, stk_error *err)
{
    static const char *const keys[] = {"size", "filter", "interpolation", "box", "longer", "max_size"};
    const bool map = r->node->kind == STKI_NODE_MAP;
    const stki_node *side = NULL, *box = map ? stki_node_get(r->node, "box") : NULL;
    const stki_node *longer = map ? stki_node_get(r->node, "longer") : NULL;
    stk_status status;

    r->step->kind = STKI_RESIZE;
    r->step->has_box = box != NULL;
    if ((map && (status = stki_node_known_keys(r->node, keys, 6, err)) != STK_OK) ||
        (status = take_filter(r, err)) != STK_OK ||
        (status = longer ? take_longer(r, longer, err) : size_of(r, &side, err)) != STK_OK ||
        (side && (status = size(side, &r->step->height, &r->step->width, err)) != STK_OK) ||
        (map && (status = take_max_size(r, err)) != STK_OK))
        return status;
    return box ? read_box(box, r->step->box, err) : STK_OK;
}

static stk_status read_pad(const reading *r, stk_error *err)
{
    static const char *const keys[] = {"padding", "fill", "padding_mode", "size"};
    const bool map = r->node->kind == STKI_NODE_MAP;
    const stki_node *padding = map ? stki_node_get(r->node, "padding") : r->node;
    const stki_node *side = map ? stki_node_get(r->node, "size") : NULL;
    stk_status status;

    r->step->kind = STKI_PAD;
    if (map && (status = stki_node_known_keys(r->node, keys, 4, err)) != STK_OK)
        return status;
    if (!padding == !side)
        return stki_fail_node(err, r->node,
                              padding ? "found both padding and size, expected only one of them"
                                      : "padding or size (of the result) is missing");
    status = begin_padding(r, err);
    if (status != STK_OK || side)
        return status != STK_OK ? status : square(side, r->step, err);
    return take_pad(padding, r->step->pad, err);
}

static stk_status read_random_crop(const reading *r, stk_error *err)
{
    static const char *const keys[] = {"size", "padding", "pad_if_needed", "fill", "padding_mode", "draw"};
    const bool map = r->node->kind == STKI_NODE_MAP;
    const stki_node *side, *padding = map ? stki_node_get(r->node, "padding") : NULL;
    const stki_node *needed = map ? stki_node_get(r->node, "pad_if_needed") : NULL;
    stk_status status;

    r->step->kind = STKI_RANDOM_CROP;
    if ((map && (status = stki_node_known_keys(r->node, keys, 6, err)) != STK_OK) ||
        (status = size_of(r, &side, err)) != STK_OK || (status = square(side, r->step, err)) != STK_OK ||
        (status = take_draw(r, err)) != STK_OK ||
        (padding && !stki_node_is_null(padding) && (status = take_pad(padding, r->step->pad, err)) != STK_OK) ||
        (needed && (status = stki_node_bool(needed, &r->step->pad_if_needed, err)) != STK_OK))
        return status;
    if (!stki_geometry_step_pads(r->step))
        return map && (stki_node_get(r->node, "fill") || stki_node_get(r->node, "padding_mode"))
                   ? stki_fail_node(err, r->node, "fill and padding_mode require padding or pad_if_needed")
                   : STK_OK;
    if ((status = begin_padding(r, err)) != STK_OK)
        return status;
    if (r->step->pad_if_needed && r->geometry->padding >= STKI_PAD_REFLECT)
        return stki_fail_node(err, needed,
                              "found pad_if_needed with a padding_mode that mirrors, expected constant or edge");
    return STK_OK;
}

static stk_status read_random_resized_crop(const reading *r, stk_error *err)
{
    static const char *const keys[] = {"size", "scale", "ratio", "interpolation", "filter", "draw"};
    const bool map = r->node->kind == STKI_NODE_MAP;
    const stki_node *side, *scale = map ? stki_node_get(r->node, "scale") : NULL;
    const stki_node *ratio = map ? stki_node_get(r->node, "ratio") : NULL;
    stki_geometry_step *step = r->step;
    stk_status status;

    step->kind = STKI_RANDOM_RESIZED_CROP;
    step->scale[0] = 0.08;
    step->scale[1] = 1;
    step->ratio[0] = 3.0 / 4;
    step->ratio[1] = 4.0 / 3;
    if ((map && (status = stki_node_known_keys(r->node, keys, 6, err)) != STK_OK) ||
        (status = take_filter(r, err)) != STK_OK || (status = size_of(r, &side, err)) != STK_OK ||
        (status = square(side, step, err)) != STK_OK || (status = take_draw(r, err)) != STK_OK ||
        (scale && (status = ordered_range(scale, 0, 1e6, step->scale, err)) != STK_OK))
        return status;
    return ratio ? ordered_range(ratio, 1e-6, 1e6, step->ratio, err) : STK_OK;
}

static stk_status read_flip(const reading *r, stk_error *err)
{
    static const char *const keys[] = {"p", "draw"};
    const bool map = r->node->kind == STKI_NODE_MAP, random = strncmp(r->operation, "random_", 7) == 0;
    const stki_node *p = map ? stki_node_get(r->node, "p") : stki_node_is_null(r->node) ? NULL : r->node;
    bool flips = true;
    stk_status status = STK_OK;

    r->step->kind = STKI_FLIP;
    r->step->vertical = strstr(r->operation, "vertical") != NULL;
    r->step->p = random ? 0.5 : 1;
    if (random) {
        if ((map && (status = stki_node_known_keys(r->node, keys, 2, err)) != STK_OK) ||
            (p && (status = number_between(p, 0, 1, &r->step->p, err)) != STK_OK))
            return status;
        return take_draw(r, err);
    }
    if (map)
        return stki_node_known_keys(r->node, keys, 0, err);
    if (p)
        status = stki_node_bool(p, &flips, err);
    r->step->p = flips ? 1 : 0;
    return status;
}

static stk_status read_angle(const stki_node *node, int *turns, stk_error *err)
{
    int64_t degrees = 0;
    stk_status status = stki_node_int(node, &degrees, err);

    if (status == STK_OK && (degrees % 90 != 0 || degrees < -360 || degrees > 360))
        return stki_fail_value(err, node, "0, 90, 180 or 270 degrees counterclockwise, or -90, -180 or -270");
    *turns |= 1 << ((degrees / 90 + 4) % 4);
    return status;
}

static stk_status read_rotate(const reading *r, stk_error *err)
{
    static const char *const keys[] = {"angles", "draw"};
    const bool map = r->node->kind == STKI_NODE_MAP;
    const stki_node *angles = map ? stki_node_get(r->node, "angles") : r->node;
    stk_status status = STK_OK;

    r->step->kind = STKI_ROTATE;
    if (strcmp(r->operation, "rotate") == 0)
        return read_angle(r->node, &r->step->turns, err);
    if (map && (status = stki_node_known_keys(r->node, keys, 2, err)) != STK_OK)
        return status;
    if (!angles || stki_node_is_null(angles))
        r->step->turns = 15;
    else if (angles->kind != STKI_NODE_LIST || angles->count < 1)
        return stki_fail_value(err, angles, "a list of angles to choose from, such as [0, 90, 180, 270]");
    for (int i = 0; r->step->turns != 15 && i < angles->count && status == STK_OK; i++)
        status = read_angle(angles->items[i], &r->step->turns, err);
    return status != STK_OK ? status : take_draw(r, err);
}

static stk_status shift(const stki_node *node, int64_t *out, stk_error *err)
{
    stk_status status = node ? stki_node_int(node, out, err) : STK_OK;

    if (status == STK_OK && (*out < -STKI_RESIZE_MOST || *out > STKI_RESIZE_MOST))
        status = stki_fail_value(err, node, "%d to %d pixels", -STKI_RESIZE_MOST, STKI_RESIZE_MOST);
    return status;
}

static stk_status read_translate(const reading *r, stk_error *err)
{
    static const char *const fixed_keys[] = {"x", "y", "fill"}, *const random_keys[] = {"translate", "fill", "draw"};
    const bool random = strcmp(r->operation, "translate") != 0;
    const stki_node *most = stki_node_get(r->node, "translate");
    double fraction[2];
    stk_status status = stki_node_known_keys(r->node, random ? random_keys : fixed_keys, 3, err);

    r->step->kind = random ? STKI_RANDOM_TRANSLATE : STKI_TRANSLATE;
    if (status != STK_OK || (status = begin_padding(r, err)) != STK_OK)
        return status;
    if (!random) {
        status = shift(stki_node_get(r->node, "x"), &r->step->left, err);
        return status != STK_OK ? status : shift(stki_node_get(r->node, "y"), &r->step->top, err);
    }
    if (!most)
        return stki_fail_node(
            err, r->node, "translate is missing: [horizontal, vertical], fractions from 0 to 1 of width and height");
    status =
        two_numbers(most, "[horizontal, vertical], fractions from 0 to 1 of width and height", 0, 1, fraction, err);
    if (status != STK_OK)
        return status;
    r->step->most_right = fraction[0];
    r->step->most_down = fraction[1];
    return take_draw(r, err);
}

/* ---- table of steps ---- */

static const struct {
    stki_operation operation;
    stk_status (*read)(const reading *r, stk_error *err);
} operations[] = {
    {{"center_crop", {"4", "[6, 4]"}}, read_center_crop},
    {{"crop", {"{top: 1, left: 2, height: 4, width: 4}", "{top: 0, left: 0, height: 5, width: 4}"}}, read_crop},
    {{"horizontal_flip", {"{}", "true"}}, read_flip},
    {{"pad", {"1", "{padding: 2, fill: 7}"}}, read_pad},
    {{"random_crop", {"4", "{size: 4, padding: 2}"}}, read_random_crop},
    {{"random_horizontal_flip", {"0.5", "{p: 0.9}"}}, read_flip},
    {{"random_resized_crop", {"4", "{size: 4, scale: [0.5, 1]}"}}, read_random_resized_crop},
    {{"random_rotate", {"{angles: [0, 90, 180, 270]}", "{angles: [0, 180]}"}}, read_rotate},
    {{"random_translate", {"{translate: [0.2, 0.2]}", "{translate: [0.4, 0.1], fill: 9}"}}, read_translate},
    {{"random_vertical_flip", {"0.5", "{p: 0.9}"}}, read_flip},
    {{"resize", {"[6, 6]", "{size: [6, 6], interpolation: nearest}"}}, read_resize},
    {{"rotate", {"90", "180"}}, read_rotate},
    {{"translate", {"{x: 1, y: 2}", "{x: 1, y: 2, fill: 9}"}}, read_translate},
    {{"vertical_flip", {"{}", "true"}}, read_flip},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

bool stki_geometry_knows(const char *operation)
{
    return stki_operation_find(stki_geometry_operation, operation) >= 0;
}

const stki_operation *stki_geometry_operation(int index)
{
    return index < OPERATIONS ? &operations[index].operation : NULL;
}

stk_status stki_geometry_read(stki_geometry *geometry, const char *operation, const stki_node *node, const char *draw,
                              stk_error *err)
{
    reading r = {.geometry = geometry, .node = node, .operation = operation, .draw = draw};
    stk_status status;

    if (geometry->count == STKI_GEOMETRY_STEPS)
        return stki_fail_node(err, node, "found more than %d steps that move pixels", STKI_GEOMETRY_STEPS);
    r.step = &geometry->steps[geometry->count];
    *r.step = (stki_geometry_step){.node = node};
    if (geometry->box_field && !geometry->resizes && strcmp(operation, "resize") != 0 && !strstr(operation, "flip"))
        return stki_fail_node(
            err, node, "found %s after crop: {field: …}, expected resize: the boxes have different sizes", operation);
    status = operations[stki_operation_find(stki_geometry_operation, operation)].read(&r, err);
    geometry->count++;
    return status;
}
