/* geometry.c: see geometry.h. */
#include "geometry.h"
#include "checked.h"
#include "error.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- reading -----------------------------------------------------------------------------------------------------
 */

static stk_status pixels(const stki_node *node, int64_t least, int64_t *out, stk_error *err)
{
    stk_status status = stki_node_int(node, out, err);

    if (status == STK_OK && (*out < least || *out > STKI_RESIZE_MOST))
        status = stki_fail_value(err, node, "%d to %d pixels", (int)least, STKI_RESIZE_MOST);
    return status;
}

/* N or [height, width]. */
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

static stk_status read_crop(stki_geometry *geometry, stki_geometry_step *step, stk_error *err)
{
    static const char *const keys[] = {"top", "left", "height", "width", "field"};
    const stki_node *node = step->node, *field = stki_node_get(node, "field");
    int64_t *const numbers[] = {&step->top, &step->left, &step->height, &step->width};
    stk_status status = stki_node_known_keys(node, keys, 5, err);

    if (status != STK_OK)
        return status;
    if (field) {
        if (node->count > 1)
            return stki_fail_node(err, node,
                                  "found field and other keys, expected field alone or top, left, height, width");
        if (geometry->count > 0)
            return stki_fail_node(err, node,
                                  "found a step before crop: {field: …}, expected it to come first: the "
                                  "boxes are of the stored image");
        step->kind = STKI_CROP_BY_FIELD;
        return stki_node_text(field, &geometry->box_field, err);
    }
    for (int i = 0; i < 4; i++) {
        const stki_node *number = stki_node_get(node, keys[i]);

        if (!number)
            return stki_fail_node(err, node, "%s is missing", keys[i]);
        if ((status = pixels(number, i < 2 ? 0 : 1, numbers[i], err)) != STK_OK)
            return status;
    }
    return STK_OK;
}

static stk_status read_box(const stki_node *node, double *box, stk_error *err)
{
    stk_status status = STK_OK;

    if (node->kind != STKI_NODE_LIST || node->count != 4)
        return stki_fail_value(err, node, "[left, top, right, bottom]");
    for (int i = 0; i < 4 && status == STK_OK; i++)
        status = stki_node_double(node->items[i], &box[i], err);
    if (status == STK_OK && !(box[0] >= 0 && box[1] >= 0 && box[2] > box[0] && box[3] > box[1]))
        status = stki_fail_value(err, node, "left < right and top < bottom, none below 0");
    return status;
}

static stk_status read_resize(stki_geometry *geometry, stki_geometry_step *step, stk_error *err)
{
    static const char *const keys[] = {"size", "filter", "box"};
    static const char *const filters[] = {"nearest", "box", "bilinear", "hamming", "bicubic", "lanczos", NULL};
    const stki_node *node = step->node, *filter = stki_node_get(node, "filter"), *box = stki_node_get(node, "box");
    const stki_node *side = node->kind == STKI_NODE_MAP ? stki_node_get(node, "size") : node;
    int word = STKI_FILTER_BILINEAR;
    stk_status status;

    if (geometry->resizes)
        return stki_fail_node(err, node, "found a second resize, expected at most one");
    geometry->resizes = true;
    if (node->kind == STKI_NODE_MAP && (status = stki_node_known_keys(node, keys, 3, err)) != STK_OK)
        return status;
    if (!side)
        return stki_fail_node(err, node, "size is missing");
    if ((status = size(side, &step->height, &step->width, err)) != STK_OK ||
        (filter && (status = stki_node_word(filter, filters, &word, err)) != STK_OK) ||
        (box && (status = read_box(box, step->box, err)) != STK_OK))
        return status;
    geometry->filter = (enum stki_filter)word;
    step->has_box = box != NULL;
    return STK_OK;
}

stk_status stki_geometry_read(stki_geometry *geometry, const char *operation, const stki_node *node, stk_error *err)
{
    stki_geometry_step *step = &geometry->steps[geometry->count];
    stk_status status;

    if (geometry->count == STKI_GEOMETRY_STEPS)
        return stki_fail_node(err, node, "found more than %d steps of crop, center_crop and resize",
                              STKI_GEOMETRY_STEPS);
    *step = (stki_geometry_step){.node = node};
    if (strcmp(operation, "resize") == 0) {
        step->kind = STKI_RESIZE;
        status = read_resize(geometry, step, err);
    } else if (geometry->box_field && !geometry->resizes) {
        return stki_fail_node(err, node,
                              "found %s after crop: {field: …}, expected resize: the boxes have sizes of "
                              "their own",
                              operation);
    } else if (strcmp(operation, "center_crop") == 0) {
        step->kind = STKI_CENTER_CROP;
        status = size(node, &step->height, &step->width, err);
        step->width = step->width ? step->width : step->height;
    } else {
        step->kind = STKI_CROP;
        status = read_crop(geometry, step, err);
    }
    geometry->count++;
    return status;
}

/* ---- sizes -------------------------------------------------------------------------------------------------------
 */

/* The shorter side becomes `shorter`; the longer one is rounded down. */
static void keep_aspect(int64_t shorter, double height, double width, int64_t *out_height, int64_t *out_width)
{
    const bool tall = width <= height;
    const double longer = (double)shorter * (tall ? height : width) / (tall ? width : height);
    const int64_t other = longer > STKI_RESIZE_MOST ? STKI_RESIZE_MOST + 1 : (int64_t)longer;

    *out_height = tall ? other : shorter;
    *out_width = tall ? shorter : other;
}

bool stki_geometry_size(const stki_geometry *geometry, int64_t height, int64_t width, int64_t *out_height,
                        int64_t *out_width, const stki_geometry_step **why)
{
    *why = NULL;
    for (int i = 0; i < geometry->count; i++) {
        const stki_geometry_step *step = &geometry->steps[i];

        if (step->kind == STKI_CROP_BY_FIELD) {
            height = width = 0;
            *why = step;
        } else if (step->kind != STKI_RESIZE || step->width) {
            height = step->height;
            width = step->width;
        } else if (step->has_box) {
            keep_aspect(step->height, step->box[3] - step->box[1], step->box[2] - step->box[0], &height, &width);
        } else if (height > 0 && width > 0) {
            keep_aspect(step->height, (double)height, (double)width, &height, &width);
        } else {
            *why = step;
        }
    }
    *out_height = height;
    *out_width = width;
    return height > 0 && width > 0;
}

/* ---- one image ---------------------------------------------------------------------------------------------------
 */

/* What the steps so far have come to. */
typedef struct frame {
    int64_t top, left, height, width; /* of the image: what crops before resize leave */
    double box[4];                    /* in it: left, top, right, bottom */
    bool resized;
    int64_t out_height, out_width;
    int64_t window_top, window_left, window_height, window_width; /* of the result, behind resize */
} frame;

static void box_is_whole(frame *f)
{
    f->box[0] = f->box[1] = 0;
    f->box[2] = (double)f->width;
    f->box[3] = (double)f->height;
}

/* Halves are rounded to even, as everywhere in Python. */
static int64_t half(int64_t difference)
{
    return difference / 2 + (difference % 2 && difference / 2 % 2);
}

#define NOWHERE NULL, -1, -1

static stk_status too_large(const stki_geometry_step *step, int64_t height, int64_t width, stk_error *err)
{
    const char *found = STKI_TEXT("%" PRId64 " x %" PRId64 " pixels (height x width)", height, width);

    if (step->kind == STKI_CENTER_CROP)
        return stki_fail_at(err, STK_E_BAD_SHAPE,
                            (stki_place){NOWHERE, found,
                                         STKI_TEXT("at least %" PRId64 " x %" PRId64 " (nothing is padded)",
                                                   step->height, step->width)},
                            "center_crop");
    return stki_fail_at(err, STK_E_BAD_SHAPE,
                        (stki_place){NOWHERE, found,
                                     STKI_TEXT("at least %" PRId64 " x %" PRId64 " for top %" PRId64 ", left %" PRId64
                                               ", height %" PRId64 ", width %" PRId64,
                                               step->top + step->height, step->left + step->width, step->top,
                                               step->left, step->height, step->width)},
                        "crop");
}

static stk_status apply_crop(const stki_geometry_step *step, frame *f, stk_error *err)
{
    int64_t *const at[] = {f->resized ? &f->window_top : &f->top, f->resized ? &f->window_left : &f->left};
    int64_t *const size[] = {f->resized ? &f->window_height : &f->height, f->resized ? &f->window_width : &f->width};
    int64_t top = step->top, left = step->left;

    if (step->kind == STKI_CENTER_CROP && step->height <= *size[0] && step->width <= *size[1]) {
        top = half(*size[0] - step->height);
        left = half(*size[1] - step->width);
    }
    if (top + step->height > *size[0] || left + step->width > *size[1])
        return too_large(step, *size[0], *size[1], err);
    *at[0] += top;
    *at[1] += left;
    *size[0] = step->height;
    *size[1] = step->width;
    if (!f->resized)
        box_is_whole(f);
    return STK_OK;
}

/* The pixels that the box touches, and the box in them. */
static stk_status apply_field(const double *box, frame *f, stk_error *err)
{
    /* Not >=: a NaN is no box. */
    if (!(box[0] >= 0 && box[1] >= 0 && box[2] > 0 && box[3] > 0 && box[0] + box[2] <= (double)f->height &&
          box[1] + box[3] <= (double)f->width))
        return stki_fail_at(
            err, STK_E_BAD_SHAPE,
            (stki_place){NOWHERE,
                         STKI_TEXT("the box top %g, left %g, height %g, width %g", box[0], box[1], box[2], box[3]),
                         STKI_TEXT("one with area inside %" PRId64 " x %" PRId64 " pixels (height x width)", f->height,
                                   f->width)},
            "crop");
    f->top = (int64_t)floor(box[0]);
    f->left = (int64_t)floor(box[1]);
    f->height = (int64_t)ceil(box[0] + box[2]) - f->top;
    f->width = (int64_t)ceil(box[1] + box[3]) - f->left;
    f->box[0] = box[1] - (double)f->left;
    f->box[1] = box[0] - (double)f->top;
    f->box[2] = f->box[0] + box[3];
    f->box[3] = f->box[1] + box[2];
    return STK_OK;
}

static stk_status apply_resize(const stki_geometry_step *step, frame *f, stk_error *err)
{
    const double *box = step->box, width = f->box[2] - f->box[0], height = f->box[3] - f->box[1];

    if (step->has_box) {
        if (box[2] > width || box[3] > height)
            return stki_fail_at(err, STK_E_BAD_SHAPE,
                                (stki_place){NOWHERE, STKI_TEXT("%g x %g pixels (height x width)", height, width),
                                             STKI_TEXT("at least %g x %g for the box", box[3], box[2])},
                                "resize");
        f->box[2] = f->box[0] + box[2];
        f->box[3] = f->box[1] + box[3];
        f->box[0] += box[0];
        f->box[1] += box[1];
    }
    f->out_height = step->height;
    f->out_width = step->width;
    if (!step->width)
        keep_aspect(step->height, f->box[3] - f->box[1], f->box[2] - f->box[0], &f->out_height, &f->out_width);
    f->resized = true;
    f->window_height = f->out_height;
    f->window_width = f->out_width;
    return STK_OK;
}

static stki_placing placing_of(const stki_geometry *geometry, const frame *f)
{
    stki_placing p = {.top = f->top,
                      .left = f->left,
                      .job = {.in_height = f->height,
                              .in_width = f->width,
                              .out_height = f->resized ? f->out_height : f->height,
                              .out_width = f->resized ? f->out_width : f->width,
                              .filter = geometry->filter,
                              .window_top = f->window_top,
                              .window_left = f->window_left,
                              .window_height = f->window_height,
                              .window_width = f->window_width}};

    for (int i = 0; i < 4; i++)
        p.job.box[i] = f->box[i];
    return p;
}

stk_status stki_geometry_apply(const stki_geometry *geometry, int64_t height, int64_t width, const double *box,
                               stki_placing *out, stk_error *err)
{
    frame f = {.width = width, .height = height};
    stk_status status = STK_OK;

    box_is_whole(&f);
    for (int i = 0; i < geometry->count && status == STK_OK; i++) {
        const stki_geometry_step *step = &geometry->steps[i];

        if (step->kind == STKI_RESIZE)
            status = apply_resize(step, &f, err);
        else if (step->kind == STKI_CROP_BY_FIELD)
            status = apply_field(box, &f, err);
        else
            status = apply_crop(step, &f, err);
    }
    if (status == STK_OK)
        *out = placing_of(geometry, &f);
    return status;
}
