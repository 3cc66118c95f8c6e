/* resize_axis.c: the filters, and the coefficients along one axis. The window of an output pixel consists of the input
 * pixels whose centers are within the filter's reach of its own center; when the image shrinks, the reach grows by the
 * ratio. Everything is computed in double, in the same order of operations as in Pillow so that the results are the
 * same, and rounded to fixed point at the end. */
#include "allocate.h"
#include "error.h"
#include "resize_internal.h"
#include <math.h>
#include <string.h>

static double weigh_box(double x)
{
    return x > -0.5 && x <= 0.5 ? 1 : 0;
}

static double weigh_bilinear(double x)
{
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

static double weigh_hamming(double x)
{
    x = fabs(x);
    if (x == 0)
        return 1;
    if (x >= 1)
        return 0;
    x *= M_PI;
    return sin(x) / x * ((double)0.54f + (double)0.46f * cos(x)); /* single-precision constants, as in Pillow */
}

static double weigh_bicubic(double x)
{
    const double a = -0.5;

    x = fabs(x);
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2)
        return (((x - 5) * x + 8) * x - 4) * a;
    return 0;
}

static double sinc(double x)
{
    if (x == 0)
        return 1;
    x *= M_PI;
    return sin(x) / x;
}

static double weigh_lanczos(double x)
{
    return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

const char *const stki_filter_words[] = {"nearest", "box", "bilinear", "hamming", "bicubic", "lanczos", NULL};

static const struct filter {
    double reach; /* in input pixels, if the image does not shrink */
    double (*weigh)(double x);
} filters[STKI_FILTERS] = {
    [STKI_FILTER_NEAREST] = {0, NULL},
    [STKI_FILTER_BOX] = {0.5, weigh_box},
    [STKI_FILTER_BILINEAR] = {1, weigh_bilinear},
    [STKI_FILTER_HAMMING] = {1, weigh_hamming},
    [STKI_FILTER_BICUBIC] = {2, weigh_bicubic},
    [STKI_FILTER_LANCZOS] = {3, weigh_lanczos},
};

stk_status stki_resize_grow(stki_resize_memory *memory, int64_t bytes, stk_error *err)
{
    void *data;

    if (bytes <= memory->capacity)
        return STK_OK;
    bytes += bytes / 2; /* random crops have many sizes; this avoids most reallocations */
    data = stki_block_alloc(NULL, bytes, 64);
    if (!data)
        return stki_fail_memory(err, bytes, "resizing");
    stki_block_free(NULL, memory->data, memory->capacity, 64);
    *memory = (stki_resize_memory){data, bytes};
    return STK_OK;
}

void stki_resize_axis_fini(stki_resize_axis *axis)
{
    stki_block_free(NULL, axis->numbers.data, axis->numbers.capacity, 64);
    stki_block_free(NULL, axis->weight_memory.data, axis->weight_memory.capacity, 64);
    *axis = (stki_resize_axis){0};
}

/* Whether output i is input low + i. */
static bool is_shift(const stki_resize_line *line)
{
    return line->low == floorf(line->low) && (double)line->high - (double)line->low == (double)line->whole;
}

/* Input pixels per output pixel. */
static double scale_of(const stki_resize_line *line)
{
    return (double)(line->high - line->low) / (double)line->whole;
}

/* Computes the window of one output pixel. */
static void window(int64_t in, double center, double reach, int64_t *first, int64_t *count)
{
    int64_t low = (int64_t)(center - reach + 0.5), high = (int64_t)(center + reach + 0.5);

    low = low < 0 ? 0 : low;
    high = high > in ? in : high;
    *first = low;
    *count = high - low;
}

static int32_t fixed(double weight)
{
    const double scaled = weight * (1 << STKI_RESIZE_BITS);

    return (int32_t)(weight < 0 ? scaled - 0.5 : scaled + 0.5);
}

static void weigh_all(const struct filter *filter, double *weights, int64_t first, int64_t count, double center,
                      double shrink)
{
    double sum = 0;

    for (int64_t t = 0; t < count; t++) {
        weights[t] = filter->weigh(((double)(t + first) - center + 0.5) * shrink);
        sum += weights[t];
    }
    if (sum == 0)
        return;
    for (int64_t t = 0; t < count; t++)
        weights[t] /= sum;
}

static void compute(stki_resize_axis *axis)
{
    const int32_t narrow = 127 << 16;
    const stki_resize_line *line = &axis->line;
    const struct filter *filter = &filters[line->filter];
    const double scale = scale_of(line), grow = scale < 1 ? 1 : scale, reach = filter->reach * grow;

    axis->most = 0;
    axis->narrow = true;
    for (int64_t i = 0; i < axis->out; i++) {
        const double center = (double)line->low + ((double)(line->skip + i) + 0.5) * scale;
        int32_t *k = axis->k + i * axis->taps;
        int64_t first, count;

        window(line->in, center, reach, &first, &count);
        weigh_all(filter, axis->weights, first, count, center, 1 / grow);
        for (int64_t t = 0; t < count; t++) {
            k[t] = fixed(axis->weights[t]);
            axis->narrow = axis->narrow && k[t] < narrow && k[t] > -narrow;
        }
        memset(k + count, 0, (size_t)(axis->taps - count) * sizeof *k);
        axis->first[i] = (int32_t)first;
        axis->count[i] = (int32_t)count;
        axis->most = count > axis->most ? count : axis->most;
    }
}

/* Positions are accumulated instead of multiplied, as in Pillow, so that rounding selects the same pixels. */
static void compute_nearest(stki_resize_axis *axis)
{
    const stki_resize_line *line = &axis->line;
    const double scale = scale_of(line);
    double at = (double)line->low + scale * 0.5;

    for (int64_t i = -line->skip; i < axis->out; i++, at += scale) {
        int64_t pixel = (int64_t)at;

        if (i < 0)
            continue;
        axis->first[i] = (int32_t)(pixel < line->in ? pixel : line->in - 1);
        axis->count[i] = 1;
    }
    axis->most = 1;
}

/* Makes `first` relative to the first input used. `first` is ascending, so the support ends with the last window. */
static void set_support(stki_resize_axis *axis)
{
    const int64_t last = axis->out - 1, first = axis->first[0];

    axis->support_first = first;
    axis->support_length = axis->first[last] + axis->count[last] - first;
    for (int64_t i = 0; i <= last; i++)
        axis->first[i] -= (int32_t)first;
}

static stk_status make_room(stki_resize_axis *axis, stk_error *err)
{
    const int64_t out = axis->out;
    stk_status status;

    if ((status = stki_resize_grow(&axis->numbers, out * (axis->taps + 2) * (int64_t)sizeof(int32_t), err)) != STK_OK ||
        (status = stki_resize_grow(&axis->weight_memory, axis->taps * (int64_t)sizeof(double), err)) != STK_OK)
        return status;
    axis->k = axis->numbers.data;
    axis->first = axis->k + out * axis->taps;
    axis->count = axis->first + out;
    axis->weights = axis->weight_memory.data;
    return STK_OK;
}

static bool same_line(const stki_resize_line *a, const stki_resize_line *b)
{
    return a->in == b->in && a->low == b->low && a->high == b->high && a->whole == b->whole && a->skip == b->skip &&
           a->out == b->out && a->filter == b->filter;
}

stk_status stki_resize_axis_set(stki_resize_axis *axis, const stki_resize_line *line, bool *changed, stk_error *err)
{
    stk_status status;
    double reach;

    if (axis->known && same_line(&axis->line, line))
        return STK_OK;
    *changed = true;
    axis->known = false;
    axis->line = *line;
    axis->out = line->out;
    axis->plain = is_shift(line);
    axis->narrow = true;
    if (axis->plain) {
        axis->support_first = (int64_t)line->low + line->skip;
        axis->support_length = line->out;
        axis->taps = axis->most = 1;
        axis->known = true;
        return STK_OK;
    }
    reach = filters[line->filter].reach * fmax(1, scale_of(line));
    axis->taps = ((int64_t)ceil(reach) * 2 + 1 + STKI_RESIZE_TAPS - 1) / STKI_RESIZE_TAPS * STKI_RESIZE_TAPS;
    if ((status = make_room(axis, err)) != STK_OK)
        return status;
    if (line->filter == STKI_FILTER_NEAREST)
        compute_nearest(axis);
    else
        compute(axis);
    set_support(axis);
    axis->known = true;
    return STK_OK;
}
