/* geometry.c: computes the placement of one image from the geometry steps; see geometry.h.
 *
 * A frame accumulates the effect of the steps. It is a window of the canvas (the image, or after a resize the resized
 * image) and the orientation in which the window is viewed. A crop makes the window smaller, a flip changes the
 * orientation, and a padding step records the current window as the region that has pixels. */
#include "geometry.h"
#include "error.h"
#include "float_control.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- orientations ---- */

static stki_orientation flipped(stki_orientation o, bool vertical)
{
    if (o.transpose != vertical)
        o.flip_u = !o.flip_u;
    else
        o.flip_v = !o.flip_v;
    return o;
}

/* A quarter turn counterclockwise is a horizontal flip followed by a transposition. */
static stki_orientation turned(stki_orientation o, int quarters)
{
    for (int i = 0; i < quarters; i++) {
        o = flipped(o, false);
        o.transpose = !o.transpose;
    }
    return o;
}

unsigned stki_geometry_orientations(const stki_geometry *geometry)
{
    unsigned set = 1;

    for (int i = 0; i < geometry->count; i++) {
        const stki_geometry_step *step = &geometry->steps[i];
        unsigned next = 0;

        if (step->kind != STKI_FLIP && step->kind != STKI_ROTATE)
            continue;
        for (int n = 0; n < STKI_ORIENTATIONS; n++) {
            const stki_orientation o = stki_orientation_of(n);

            if (!(set & 1u << n))
                continue;
            if (step->kind == STKI_FLIP) {
                next |= step->p < 1 ? 1u << n : 0;
                next |= step->p > 0 ? 1u << stki_orientation_number(flipped(o, step->vertical)) : 0;
            }
            for (int k = 0; step->kind == STKI_ROTATE && k < 4; k++)
                next |= step->turns & 1 << k ? 1u << stki_orientation_number(turned(o, k)) : 0;
        }
        set = next;
    }
    return set;
}

/* ---- sizes ---- */

/* Sets one side to the length in the step and the other in proportion, rounded down as in torchvision, but to at least
 * one pixel. */
static void keep_aspect(const stki_geometry_step *step, double height, double width, int64_t *out_height,
                        int64_t *out_width)
{
    const bool tall = width <= height;
    const double most = (double)step->longest, high = tall ? height : width, low = tall ? width : height;
    double shorter = (double)step->height, longer = most;

    if (step->height)
        longer = floor(shorter * high / low);
    else
        shorter = floor(most * low / high);
    if (step->longest && longer > most) {
        shorter = floor(most * shorter / longer);
        longer = most;
    }
    shorter = shorter < 1 ? 1 : shorter;
    longer = longer > STKI_RESIZE_MOST ? STKI_RESIZE_MOST + 1 : longer;
    *out_height = (int64_t)(tall ? longer : shorter);
    *out_width = (int64_t)(tall ? shorter : longer);
}

static bool is_quarter(int turns) /* whether any possible turn swaps height and width */
{
    return (turns & (1 << 1 | 1 << 3)) != 0;
}

static void size_of_turned(const stki_geometry_step *step, int64_t *height, int64_t *width,
                           const stki_geometry_step **why)
{
    const int64_t before = *height;
    const bool whole = (step->turns & (1 << 0 | 1 << 2)) != 0;

    if (!is_quarter(step->turns) || *height == *width)
        return;
    if (whole) { /* the size depends on the turn drawn */
        *height = *width = 0;
        *why = step;
        return;
    }
    *height = *width;
    *width = before;
}

bool stki_geometry_size(const stki_geometry *geometry, int64_t height, int64_t width, int64_t *out_height,
                        int64_t *out_width, const stki_geometry_step **why)
{
    *why = NULL;
    for (int i = 0; i < geometry->count; i++) {
        const stki_geometry_step *step = &geometry->steps[i];
        const bool known = height > 0 && width > 0;

        switch (step->kind) {
        case STKI_FLIP:
        case STKI_TRANSLATE:
        case STKI_RANDOM_TRANSLATE:
            break;
        case STKI_ROTATE:
            size_of_turned(step, &height, &width, why);
            break;
        case STKI_PAD:
            if (step->height) {
                height = step->height;
                width = step->width;
            } else if (known) {
                height += step->pad[1] + step->pad[3];
                width += step->pad[0] + step->pad[2];
            }
            break;
        case STKI_CROP_BY_FIELD:
            height = width = 0;
            *why = step;
            break;
        case STKI_RESIZE:
            if (step->width) {
                height = step->height;
                width = step->width;
            } else if (step->has_box) {
                keep_aspect(step, step->box[3] - step->box[1], step->box[2] - step->box[0], &height, &width);
            } else if (known) {
                keep_aspect(step, (double)height, (double)width, &height, &width);
            } else {
                *why = step;
            }
            break;
        default:
            height = step->height;
            width = step->width;
        }
    }
    *out_height = height;
    *out_width = width;
    return height > 0 && width > 0;
}

/* ---- one image ---- */

typedef struct rectangle {
    int64_t top, left, height, width;
} rectangle;

/* The combined effect of the steps so far. */
typedef struct frame {
    rectangle part; /* region of the image that is the input of the resize */
    double box[4];  /* input of the resize within the part: left, top, right, bottom */
    bool whole_box; /* the box is the whole part */
    bool resized;
    rectangle canvas; /* part of the canvas that has pixels */
    int64_t out_height, out_width;
    rectangle window; /* region of the canvas */
    stki_orientation o;
} frame;

static int64_t seen_height(const frame *f)
{
    return f->o.transpose ? f->window.width : f->window.height;
}

static int64_t seen_width(const frame *f)
{
    return f->o.transpose ? f->window.height : f->window.width;
}

/* Returns half of the difference, rounded half to even, as in Python. */
static int64_t half(int64_t difference)
{
    return difference / 2 + (difference % 2 && difference / 2 % 2);
}

static double round_even(double x)
{
    const double down = floor(x), rest = x - down;

    if (rest != 0.5)
        return rest < 0.5 ? down : down + 1;
    return fmod(down, 2) == 0 ? down : down + 1;
}

/* Sets the window to a region given in the current orientation. It may extend beyond the canvas. */
static void cut(frame *f, int64_t top, int64_t left, int64_t height, int64_t width)
{
    const int64_t u_length = f->o.transpose ? width : height, v_length = f->o.transpose ? height : width;
    int64_t u = f->o.transpose ? left : top, v = f->o.transpose ? top : left;

    if (f->o.flip_u)
        u = f->window.height - u - u_length;
    if (f->o.flip_v)
        v = f->window.width - v - v_length;
    f->window = (rectangle){f->window.top + u, f->window.left + v, u_length, v_length};
}

#define NOWHERE NULL, -1, -1

static const char *const operation_of[] = {
    [STKI_CROP] = "crop",
    [STKI_CROP_BY_FIELD] = "crop",
    [STKI_CENTER_CROP] = "center_crop",
    [STKI_RESIZE] = "resize",
    [STKI_PAD] = "pad",
    [STKI_TRANSLATE] = "translate",
    [STKI_RANDOM_CROP] = "random_crop",
    [STKI_RANDOM_TRANSLATE] = "random_translate",
};

static stk_status too_small(const stki_geometry_step *step, int64_t height, int64_t width, stk_error *err)
{
    const char *found = STKI_TEXT("%" PRId64 " x %" PRId64 " pixels (height x width)", height, width);

    if (step->kind == STKI_CROP)
        return stki_fail_at(err, STK_E_BAD_SHAPE,
                            (stki_place){NOWHERE, found,
                                         STKI_TEXT("at least %" PRId64 " x %" PRId64 " for top %" PRId64
                                                   ", left %" PRId64 ", height %" PRId64 ", width %" PRId64,
                                                   step->top + step->height, step->left + step->width, step->top,
                                                   step->left, step->height, step->width)},
                            "crop");
    return stki_fail_at(err, STK_E_BAD_SHAPE,
                        (stki_place){NOWHERE, found,
                                     STKI_TEXT("at least %" PRId64 " x %" PRId64 " (%s)", step->height, step->width,
                                               step->kind == STKI_CENTER_CROP
                                                   ? "center_crop does not pad"
                                                   : "including its padding; pad_if_needed: true adds more")},
                        "%s", operation_of[step->kind]);
}

static stk_status apply_crop(const stki_geometry_step *step, frame *f, stk_error *err)
{
    const int64_t height = seen_height(f), width = seen_width(f);
    int64_t top = step->top, left = step->left;

    if (step->kind == STKI_CENTER_CROP && step->height <= height && step->width <= width) {
        top = half(height - step->height);
        left = half(width - step->width);
    }
    if (top + step->height > height || left + step->width > width)
        return too_small(step, height, width, err);
    cut(f, top, left, step->height, step->width);
    return STK_OK;
}

/* Sets the window to the pixels that the box touches, and stores the box, relative to the window, in f->box. */
static stk_status apply_field(const double *box, frame *f, stk_error *err)
{
    rectangle *w = &f->window;

    /* The comparison is negated, so that a NaN fails. */
    if (!(box[0] >= 0 && box[1] >= 0 && box[2] > 0 && box[3] > 0 && box[0] + box[2] <= (double)w->height &&
          box[1] + box[3] <= (double)w->width))
        return stki_fail_at(
            err, STK_E_BAD_SHAPE,
            (stki_place){NOWHERE,
                         STKI_TEXT("the box top %g, left %g, height %g, width %g", box[0], box[1], box[2], box[3]),
                         STKI_TEXT("a nonempty box inside %" PRId64 " x %" PRId64 " pixels (height x width)", w->height,
                                   w->width)},
            "crop");
    w->top = (int64_t)floor(box[0]);
    w->left = (int64_t)floor(box[1]);
    w->height = (int64_t)ceil(box[0] + box[2]) - w->top;
    w->width = (int64_t)ceil(box[1] + box[3]) - w->left;
    f->box[0] = box[1] - (double)w->left;
    f->box[1] = box[0] - (double)w->top;
    f->box[2] = f->box[0] + box[3];
    f->box[3] = f->box[1] + box[2];
    f->whole_box = false;
    return STK_OK;
}

/* Converts the box of a resize step from the current orientation to the window. */
static stk_status take_box(const stki_geometry_step *step, frame *f, stk_error *err)
{
    const double *box = step->box, width = f->box[2] - f->box[0], height = f->box[3] - f->box[1];
    const stki_orientation o = f->o;
    double u[2] = {box[o.transpose ? 0 : 1], box[o.transpose ? 2 : 3]},
           v[2] = {box[o.transpose ? 1 : 0], box[o.transpose ? 3 : 2]};

    if (v[1] > width || u[1] > height)
        return stki_fail_at(err, STK_E_BAD_SHAPE,
                            (stki_place){NOWHERE,
                                         STKI_TEXT("%g x %g pixels (height x width)", o.transpose ? width : height,
                                                   o.transpose ? height : width),
                                         STKI_TEXT("at least %g x %g for the box", box[3], box[2])},
                            "resize");
    if (o.flip_u) {
        const double end = height - u[0];
        u[0] = height - u[1];
        u[1] = end;
    }
    if (o.flip_v) {
        const double end = width - v[0];
        v[0] = width - v[1];
        v[1] = end;
    }
    f->box[2] = f->box[0] + v[1];
    f->box[3] = f->box[1] + u[1];
    f->box[0] += v[0];
    f->box[1] += u[0];
    return STK_OK;
}

static stk_status apply_resize(const stki_geometry_step *step, frame *f, stk_error *err)
{
    int64_t height = step->height, width = step->width;
    stk_status status;

    f->part = f->window;
    if (f->whole_box) {
        f->box[0] = f->box[1] = 0;
        f->box[2] = (double)f->part.width;
        f->box[3] = (double)f->part.height;
    }
    if (step->has_box && (status = take_box(step, f, err)) != STK_OK)
        return status;
    if (!width) {
        const double u = f->box[3] - f->box[1], v = f->box[2] - f->box[0];

        keep_aspect(step, f->o.transpose ? v : u, f->o.transpose ? u : v, &height, &width);
    }
    f->out_height = f->o.transpose ? width : height;
    f->out_width = f->o.transpose ? height : width;
    f->resized = true;
    f->window = f->canvas = (rectangle){0, 0, f->out_height, f->out_width};
    return STK_OK;
}

/* ---- padding ---- */

/* Records the current window as the region that has pixels. Everything outside is padding. most_y, most_x: the largest
 * padding on one side. */
static stk_status begin_padding(const stki_geometry *geometry, const stki_geometry_step *step, frame *f, int64_t most_y,
                                int64_t most_x, stk_error *err)
{
    const int64_t height = seen_height(f), width = seen_width(f), spare = geometry->padding == STKI_PAD_REFLECT;

    f->canvas = f->window;
    if (geometry->padding < STKI_PAD_REFLECT || (most_y + spare <= height && most_x + spare <= width))
        return STK_OK;
    return stki_fail_at(err, STK_E_BAD_SHAPE,
                        (stki_place){NOWHERE,
                                     STKI_TEXT("%" PRId64 " x %" PRId64 " pixels (height x width)", height, width),
                                     STKI_TEXT("at least %" PRId64 " x %" PRId64 " to mirror the padding from",
                                               most_y + spare, most_x + spare)},
                        "%s", operation_of[step->kind]);
}

static int64_t larger(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

static stk_status apply_pad(const stki_geometry *geometry, const stki_geometry_step *step, frame *f, stk_error *err)
{
    const int64_t height = seen_height(f), width = seen_width(f), down = step->height - height,
                  right = step->width - width;
    /* for padding to a given size; an odd pixel goes to the end, as in torchvision */
    const int64_t around[4] = {right / 2, down / 2, right - right / 2, down - down / 2};
    const int64_t *pad = step->height ? around : step->pad;
    stk_status status;

    if (step->height && (down < 0 || right < 0))
        return stki_fail_at(
            err, STK_E_BAD_SHAPE,
            (stki_place){NOWHERE, STKI_TEXT("%" PRId64 " x %" PRId64 " pixels (height x width)", height, width),
                         STKI_TEXT("at most %" PRId64 " x %" PRId64 " (add resize: {longer: N} before it)",
                                   step->height, step->width)},
            "pad");
    status = begin_padding(geometry, step, f, larger(pad[1], pad[3]), larger(pad[0], pad[2]), err);

    cut(f, -pad[1], -pad[0], height + pad[1] + pad[3], width + pad[0] + pad[2]);
    return status;
}

static stk_status apply_translate(const stki_geometry *geometry, const stki_geometry_step *step,
                                  const stki_occasion *occasion, frame *f, stk_error *err)
{
    const int64_t height = seen_height(f), width = seen_width(f);
    int64_t down = step->top, right = step->left;
    stk_status status;

    if (step->kind == STKI_RANDOM_TRANSLATE) {
        const double y = step->most_down * (double)height, x = step->most_right * (double)width;
        stki_draw draw;

        stki_draw_begin(&draw, occasion, step->draw);
        right = (int64_t)round_even(stki_draw_between(&draw, -x, x));
        down = (int64_t)round_even(stki_draw_between(&draw, -y, y));
    }
    status = begin_padding(geometry, step, f, 0, 0, err);
    cut(f, -down, -right, height, width);
    return status;
}

/* ---- random crops ---- */

static stk_status apply_random_crop(const stki_geometry *geometry, const stki_geometry_step *step,
                                    const stki_occasion *occasion, frame *f, stk_error *err)
{
    int64_t pad_top = step->pad[1], pad_left = step->pad[0];
    int64_t height = seen_height(f) + pad_top + step->pad[3], width = seen_width(f) + pad_left + step->pad[2];
    stki_draw draw;
    stk_status status = STK_OK;

    if (step->pad_if_needed && width < step->width) { /* torchvision pads both sides by the full difference */
        pad_left += step->width - width;
        width += 2 * (step->width - width);
    }
    if (step->pad_if_needed && height < step->height) {
        pad_top += step->height - height;
        height += 2 * (step->height - height);
    }
    if (height < step->height || width < step->width)
        return too_small(step, height, width, err);
    if (stki_geometry_step_pads(step))
        status = begin_padding(geometry, step, f, larger(pad_top, step->pad[3]), larger(pad_left, step->pad[2]), err);
    stki_draw_begin(&draw, occasion, step->draw);
    const int64_t top = stki_draw_below(&draw, height - step->height + 1);
    const int64_t left = stki_draw_below(&draw, width - step->width + 1);
    cut(f, top - pad_top, left - pad_left, step->height, step->width);
    return status;
}

/* Like torchvision's RandomResizedCrop: ten attempts, then a center crop. */
static void draw_resized_crop(const stki_geometry_step *step, stki_draw *draw, int64_t height, int64_t width,
                              rectangle *out)
{
    const double area = (double)height * (double)width, in_ratio = (double)width / (double)height;
    int64_t h = height, w = width;

    for (int i = 0; i < 10; i++) {
        const double target = area * stki_draw_between(draw, step->scale[0], step->scale[1]);
        const double aspect = stki_draw_log_between(draw, step->ratio[0], step->ratio[1]);
        const double try_w = round_even(sqrt(target * aspect)), try_h = round_even(sqrt(target / aspect));

        if (try_w > 0 && try_w <= (double)width && try_h > 0 && try_h <= (double)height) {
            out->height = (int64_t)try_h;
            out->width = (int64_t)try_w;
            out->top = stki_draw_below(draw, height - out->height + 1);
            out->left = stki_draw_below(draw, width - out->width + 1);
            return;
        }
    }
    if (in_ratio < step->ratio[0])
        h = (int64_t)round_even((double)w / step->ratio[0]);
    else if (in_ratio > step->ratio[1])
        w = (int64_t)round_even((double)h * step->ratio[1]);
    h = h < 1 ? 1 : h > height ? height : h; /* a side of less than one pixel rounds to 0 */
    w = w < 1 ? 1 : w > width ? width : w;
    *out = (rectangle){(height - h) / 2, (width - w) / 2, h, w};
}

static stk_status apply_random_resized_crop(const stki_geometry_step *step, const stki_occasion *occasion, frame *f,
                                            stk_error *err)
{
    rectangle part;
    stki_draw draw;

    stki_draw_begin(&draw, occasion, step->draw);
    draw_resized_crop(step, &draw, seen_height(f), seen_width(f), &part);
    cut(f, part.top, part.left, part.height, part.width);
    return apply_resize(step, f, err);
}

/* ---- flips and turns ---- */

static void apply_flip(const stki_geometry_step *step, const stki_occasion *occasion, frame *f)
{
    stki_draw draw;
    bool flip = step->p >= 1;

    if (step->p > 0 && step->p < 1) {
        stki_draw_begin(&draw, occasion, step->draw);
        flip = stki_draw_chance(&draw, step->p);
    }
    if (flip)
        f->o = flipped(f->o, step->vertical);
}

static void apply_rotate(const stki_geometry_step *step, const stki_occasion *occasion, frame *f)
{
    int choices = 0, chosen = 0;
    stki_draw draw;

    for (int k = 0; k < 4; k++)
        choices += step->turns >> k & 1;
    if (choices > 1) {
        stki_draw_begin(&draw, occasion, step->draw);
        chosen = (int)stki_draw_below(&draw, choices);
    }
    for (int k = 0; k < 4; k++)
        if (step->turns >> k & 1 && chosen-- == 0)
            f->o = turned(f->o, k);
}

/* ---- the result ---- */

/* Describes `length` pixels from `start` on along an axis of n pixels. Pixels outside [0, n) are padding. Pixels [*low,
 * *high) are needed. Returns whether there is padding. */
static bool pad_axis(enum stki_padding padding, int64_t n, int64_t start, int64_t length, stki_pad_axis *out,
                     int64_t *low, int64_t *high)
{
    const int64_t end = start + length, first = start > 0 ? start : 0, last = end < n ? end : n;
    const int64_t before = (end < 0 ? end : 0) - start, behind = end - (start > n ? start : n);
    const bool edge = padding == STKI_PAD_EDGE, mirrors = padding >= STKI_PAD_REFLECT;
    const int64_t shift = padding == STKI_PAD_SYMMETRIC;
    struct stki_pad_run *run = out->runs;

    *out = (stki_pad_axis){.length = length};
    if (before > 0 && (edge || mirrors))
        *run++ = (struct stki_pad_run){0, edge ? 0 : -start - shift, before, edge ? 0 : -1};
    if (last > first)
        *run++ = (struct stki_pad_run){first - start, first, last - first, 1};
    if (behind > 0 && (edge || mirrors)) {
        const int64_t from = end - behind;

        *run++ = (struct stki_pad_run){from - start, edge ? n - 1 : 2 * (n - 1) - from + shift, behind, edge ? 0 : -1};
    }
    out->count = (int)(run - out->runs);
    *low = n;
    *high = 0;
    for (int i = 0; i < out->count; i++) {
        const struct stki_pad_run *r = &out->runs[i];
        const int64_t other = r->from + r->step * (r->length - 1);

        *low = r->from < *low ? r->from : *low;
        *low = other < *low ? other : *low;
        *high = larger(*high, larger(r->from, other) + 1);
    }
    if (out->count == 0) { /* everything has the fill value, but a job needs at least one pixel */
        *low = 0;
        *high = 1;
    }
    for (int i = 0; i < out->count; i++)
        out->runs[i].from -= *low;
    return before > 0 || behind > 0;
}

static void place(const stki_geometry *geometry, const frame *f, stki_placement *out)
{
    rectangle need = f->window;

    *out = (stki_placement){.orientation = f->o};
    if (geometry->pads) {
        const rectangle *c = &f->canvas, *w = &f->window;
        int64_t low_y, high_y, low_x, high_x;
        const bool y = pad_axis(geometry->padding, c->height, w->top - c->top, w->height, &out->pad_y, &low_y, &high_y);
        const bool x = pad_axis(geometry->padding, c->width, w->left - c->left, w->width, &out->pad_x, &low_x, &high_x);

        out->padded = y || x;
        need = (rectangle){c->top + low_y, c->left + low_x, high_y - low_y, high_x - low_x};
    }
    if (f->resized) {
        out->top = f->part.top;
        out->left = f->part.left;
        out->job = (stki_resize_job){.in_height = f->part.height,
                                     .in_width = f->part.width,
                                     .box = {f->box[0], f->box[1], f->box[2], f->box[3]},
                                     .out_height = f->out_height,
                                     .out_width = f->out_width,
                                     .filter = geometry->filter,
                                     .window_top = need.top,
                                     .window_left = need.left,
                                     .window_height = need.height,
                                     .window_width = need.width};
        return;
    }
    out->top = need.top;
    out->left = need.left;
    out->job = (stki_resize_job){.in_height = need.height,
                                 .in_width = need.width,
                                 .box = {0, 0, (double)need.width, (double)need.height},
                                 .out_height = need.height,
                                 .out_width = need.width,
                                 .filter = geometry->filter,
                                 .window_height = need.height,
                                 .window_width = need.width};
}

static stk_status apply(const stki_geometry *geometry, const stki_geometry_step *step, const double *box,
                        const stki_occasion *occasion, frame *f, stk_error *err)
{
    switch (step->kind) {
    case STKI_RESIZE:
        return apply_resize(step, f, err);
    case STKI_CROP_BY_FIELD:
        return apply_field(box, f, err);
    case STKI_PAD:
        return apply_pad(geometry, step, f, err);
    case STKI_TRANSLATE:
    case STKI_RANDOM_TRANSLATE:
        return apply_translate(geometry, step, occasion, f, err);
    case STKI_RANDOM_CROP:
        return apply_random_crop(geometry, step, occasion, f, err);
    case STKI_RANDOM_RESIZED_CROP:
        return apply_random_resized_crop(step, occasion, f, err);
    case STKI_FLIP:
        apply_flip(step, occasion, f);
        return STK_OK;
    case STKI_ROTATE:
        apply_rotate(step, occasion, f);
        return STK_OK;
    default:
        return apply_crop(step, f, err);
    }
}

stk_status stki_geometry_apply(const stki_geometry *geometry, int64_t height, int64_t width, const double *box,
                               const stki_occasion *occasion, stki_placement *out, stk_error *err)
{
    static const stki_occasion nobody = {0, 0};
    const rectangle whole = {0, 0, height, width};
    frame f = {.whole_box = true, .canvas = whole, .window = whole};
    stki_float_control control = stki_float_enter();
    stk_status status = STK_OK;

    for (int i = 0; i < geometry->count && status == STK_OK; i++)
        status = apply(geometry, &geometry->steps[i], box, occasion ? occasion : &nobody, &f, err);
    if (status == STK_OK)
        place(geometry, &f, out);
    stki_float_leave(control);
    return status;
}
