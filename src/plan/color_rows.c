/* color_rows.c: see color_rows.h. */
#include "color_rows.h"
#include "float_control.h"

/* The pixels of the window, in the orientation of the row. */
typedef struct canvas {
    const stki_color_loops *loops;
    const uint8_t *first;       /* address of its first pixel */
    int64_t down, right, apart; /* bytes to the next line, pixel and channel */
    int channels;
    int64_t lines, width, step; /* step: number of lines converted at a time */
    float *planes[3];
} canvas;

static void describe(const stki_field_plan *plan, const stki_placement *placement, const uint8_t *window,
                     const int64_t *strides, float *planes, canvas *c)
{
    const int h = plan->layout == STKI_LAYOUT_NHWC ? 0 : 1;
    const stki_orientation o = placement->orientation;
    const int64_t u = o.flip_u ? -strides[plan->image.height_axis] : strides[plan->image.height_axis];
    const int64_t v = o.flip_v ? -strides[plan->image.width_axis] : strides[plan->image.width_axis];

    *c = (canvas){.loops = stki_color_loops_of(stki_isa()),
                  .first = window + stki_plan_turn_offset(plan, o, strides),
                  .down = o.transpose ? v : u,
                  .right = o.transpose ? u : v,
                  .apart = strides[plan->image.channel_axis],
                  .channels = (int)plan->image.sample_shape[plan->image.channel_axis],
                  .lines = plan->shape[h],
                  .width = plan->shape[h + 1],
                  .step = plan->image.strip_rows};
    for (int k = 0; k < c->channels; k++)
        c->planes[k] = planes + k * c->step * c->width;
}

static void load(const canvas *c, int64_t line, int64_t count)
{
    const bool backwards = c->right < 0;

    for (int64_t y = 0; y < count; y++) {
        const uint8_t *from = c->first + (line + y) * c->down + (backwards ? (c->width - 1) * c->right : 0);
        float *planes[3];

        for (int k = 0; k < c->channels; k++)
            planes[k] = c->planes[k] + y * c->width;
        c->loops->load(planes, from, backwards ? -c->right : c->right, c->apart, c->channels, c->width, backwards);
    }
}

/* Computes the gray mean of the image after the first `count` steps. */
static float mean_of(const canvas *c, const stki_color_step *steps, int count, const float *means)
{
    const bool color = c->channels == 3;
    stki_color_sum sum = 0;

    for (int64_t y = 0; y < c->lines; y += c->step) {
        const int64_t n = c->step < c->lines - y ? c->step : c->lines - y;

        load(c, y, n);
        stki_color_run(c->loops, steps, count, means, c->planes, c->channels, n * c->width);
        sum += c->loops->sum(c->planes[0], color ? c->planes[1] : NULL, color ? c->planes[2] : NULL, n * c->width);
    }
    return stki_color_mean(sum, c->lines * c->width);
}

stk_status stki_color_store(const stki_field_plan *plan, stki_resampler *resampler, const uint8_t *window,
                            const int64_t *strides, void *row, stk_error *err)
{
    const int64_t stride = stki_plan_line_stride(plan);
    stki_color_step steps[STKI_COLOR_STEPS];
    float means[STKI_COLOR_STEPS];
    int count, mean_count = 0;
    canvas c;
    stk_status status = stki_scratch_reserve(&resampler->planes, plan->image.strip_bytes, err);

    if (status != STK_OK)
        return status;
    describe(plan, &resampler->placement, window, strides, resampler->planes.data, &c);
    count = stki_colors_draw(plan->image.colors, &resampler->occasion, steps);
    stki_float_control control = stki_float_enter();
    for (int i = 0; i < count; i++)
        if (steps[i].kind == STKI_COLOR_CONTRAST) {
            means[mean_count] = mean_of(&c, steps, i, means);
            mean_count++;
        }
    for (int64_t y = 0; y < c.lines; y += c.step) {
        const int64_t n = c.step < c.lines - y ? c.step : c.lines - y;

        load(&c, y, n);
        stki_color_run(c.loops, steps, count, means, c.planes, c.channels, n * c.width);
        stki_convert_run(n == c.step ? plan->image.strips[0] : plan->image.last_strips[0], (uint8_t *)row + y * stride,
                         c.planes[0]);
    }
    stki_float_leave(control);
    return STK_OK;
}
