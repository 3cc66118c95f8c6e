/* pad_lines.c: see pad_lines.h. */
#include "pad_lines.h"
#include "tensor_internal.h"
#include <string.h>

/* Writes lines of the block that contain only padding. */
static void fill_lines(const stki_field_plan *plan, const stki_block *block, void *to, int64_t lines)
{
    const stk_dtype dtype = plan->field->dtype;
    const int64_t size = stk_dtype_size(dtype), channels = plan->image.sample_shape[plan->image.channel_axis];
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS] = {0};

    if (plan->image.fill_is_bytes) {
        memset(to, plan->image.fill[0],
               (size_t)(plan->image.height_axis == 0 ? lines * block->strides[0] : block->bytes));
        return;
    }
    shape[plan->image.channel_axis] = channels;
    shape[plan->image.height_axis] = lines;
    shape[plan->image.width_axis] = block->strides[plan->image.height_axis] / block->strides[plan->image.width_axis];
    strides[plan->image.channel_axis] = size;
    stki_copy_strided(to, dtype, block->strides, plan->image.fill, dtype, strides, false, 3, shape);
}

/* Whether the pixels of a line are contiguous in the view and in the block, and all bytes of the fill are equal. */
static bool pads_by_lines(const stki_field_plan *plan, const stki_block *block, const stk_tensor *view)
{
    const int x = plan->image.width_axis, c = plan->image.channel_axis;

    return plan->image.height_axis == 0 && !(view->flags & STK_TENSOR_SWAPPED) &&
           (!plan->image.fill || plan->image.fill_is_bytes) && view->strides[x] == block->strides[x] &&
           view->strides[c] == block->strides[c];
}

/* Writes one line of a window: a line of the view with padding on its left and right. */
static void pad_line(const stki_field_plan *plan, const stki_block *block, const stki_pad_axis *axis,
                     const uint8_t *line, uint8_t *to)
{
    const int64_t pixel = block->strides[plan->image.width_axis];
    int64_t done = 0;

    for (int k = 0; k < axis->count; k++) {
        const struct stki_pad_run *run = &axis->runs[k];

        if (plan->image.fill && run->to > done)
            memset(to + done * pixel, plan->image.fill[0], (size_t)((run->to - done) * pixel));
        if (run->step == 1)
            memcpy(to + run->to * pixel, line + run->from * pixel, (size_t)(run->length * pixel));
        for (int64_t i = 0; run->step != 1 && i < run->length; i++)
            memcpy(to + (run->to + i) * pixel, line + (run->from + i * run->step) * pixel, (size_t)pixel);
        done = run->to + run->length;
    }
    if (plan->image.fill && done < axis->length)
        memset(to + done * pixel, plan->image.fill[0], (size_t)((axis->length - done) * pixel));
}

static void pad_by_lines(const stki_field_plan *plan, const stki_block *block, const stki_placement *placement,
                         const stk_tensor *view, int64_t first, int64_t count, uint8_t *to)
{
    enum { AHEAD = 24 };
    const int64_t line = block->strides[0];
    const stki_pad_axis beside = {.length = placement->pad_x.length};

    for (int64_t y = first; y < first + count; y++, to += line) {
        const struct stki_pad_run *run = NULL;

        for (int i = 0; i < placement->pad_y.count; i++)
            if (y >= placement->pad_y.runs[i].to && y < placement->pad_y.runs[i].to + placement->pad_y.runs[i].length)
                run = &placement->pad_y.runs[i];
        if (run) {
            const uint8_t *from =
                (const uint8_t *)view->data + (run->from + run->step * (y - run->to)) * view->strides[0];

            if (y + AHEAD < run->to + run->length) /* prefetches a line that is copied a little later */
                for (int64_t i = 0; i < view->strides[0]; i += 64)
                    __builtin_prefetch(from + AHEAD * run->step * view->strides[0] + i, 0, 2);
            pad_line(plan, block, &placement->pad_x, from, to);
        } else {
            pad_line(plan, block, &beside, NULL, to);
        }
    }
}

/* In general, each pair of a vertical and a horizontal run is copied as a strided view. */
void stki_pad_lines(const stki_field_plan *plan, const stki_block *block, const stki_placement *placement,
                    const stk_tensor *view, int64_t first, int64_t count, uint8_t *to)
{
    const int y = plan->image.height_axis, x = plan->image.width_axis;
    const bool swapped = (view->flags & STK_TENSOR_SWAPPED) != 0;

    if (pads_by_lines(plan, block, view)) {
        pad_by_lines(plan, block, placement, view, first, count, to);
        return;
    }
    if (plan->image.fill)
        fill_lines(plan, block, to, count);
    for (int i = 0; i < placement->pad_y.count; i++)
        for (int k = 0; k < placement->pad_x.count; k++) {
            const struct stki_pad_run *down = &placement->pad_y.runs[i], *right = &placement->pad_x.runs[k];
            const int64_t low = down->to > first ? down->to : first;
            const int64_t end = down->to + down->length, high = end < first + count ? end : first + count;
            const char *from = (const char *)view->data +
                               (down->from + down->step * (low - down->to)) * view->strides[y] +
                               right->from * view->strides[x];
            int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS];

            if (low >= high)
                continue;
            memcpy(shape, view->shape, sizeof shape);
            memcpy(strides, view->strides, sizeof strides);
            shape[y] = high - low;
            shape[x] = right->length;
            strides[y] *= down->step;
            strides[x] *= right->step;
            stki_copy_strided(to + (low - first) * block->strides[y] + right->to * block->strides[x], view->dtype,
                              block->strides, from, view->dtype, strides, swapped, view->ndim, shape);
        }
}
