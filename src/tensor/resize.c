/* resize.c: creates resizers and runs both passes over an image. Between the passes, rows are kept in a small ring: the
 * horizontal pass computes only the rows that the next output row needs, so they are still in the L1 cache when the
 * vertical pass reads them. If the vertical pass comes first, its rows are passed to the horizontal pass four at a
 * time. */
#include "resize.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "resize_internal.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

static const stki_resize_kernels *kernels_of(enum stki_isa isa)
{
    switch (isa) {
#if defined(__x86_64__)
    case STKI_ISA_AVX512: /* faster than the AVX2 kernels only with byte products (VNNI) */
        return stki_native_vnni() ? &stki_resize_vnni : &stki_resize_avx2;
    case STKI_ISA_AVX2:
        return &stki_resize_avx2;
#elif defined(__aarch64__)
    case STKI_ISA_NEON:
        return &stki_resize_neon;
#endif
    default:
        return &stki_resize_ref;
    }
}

stk_status stki_resizer_create_isa(enum stki_isa isa, stki_resizer **out, stk_error *err)
{
    stki_resizer *resizer = stki_zalloc(sizeof *resizer);

    if (!resizer)
        return stki_fail_memory(err, sizeof *resizer, "a resizer");
    resizer->variant = kernels_of(isa);
    *out = resizer;
    return STK_OK;
}

stk_status stki_resizer_create(stki_resizer **out, stk_error *err)
{
    return stki_resizer_create_isa(stki_isa(), out, err);
}

void stki_resizer_destroy(stki_resizer *resizer)
{
    if (!resizer)
        return;
    stki_resize_axis_fini(&resizer->x);
    stki_resize_axis_fini(&resizer->y);
    stki_block_free(NULL, resizer->tables.data, resizer->tables.capacity, 64);
    stki_block_free(NULL, resizer->row_memory.data, resizer->row_memory.capacity, 64);
    stki_block_free(NULL, resizer->pointer_memory.data, resizer->pointer_memory.capacity, 64);
    stki_free(resizer);
}

/* ---- set ---- */

static stk_status refuse(const char *found, const char *expected, stk_error *err)
{
    return stki_fail_at(err, STK_E_BAD_SHAPE, (stki_place){NULL, -1, -1, found, expected}, "resize");
}

static bool is_side(int64_t pixels)
{
    return pixels >= 1 && pixels <= STKI_RESIZE_MOST;
}

stk_status stki_resize_check(const stki_resize_job *job, stk_error *err)
{
    const char *most = STKI_TEXT("1 to %d", STKI_RESIZE_MOST);
    const double *box = job->box;

    if (!is_side(job->in_height) || !is_side(job->in_width))
        return refuse(
            STKI_TEXT("an image of %" PRId64 " x %" PRId64 " pixels (height x width)", job->in_height, job->in_width),
            most, err);
    if (!is_side(job->out_height) || !is_side(job->out_width))
        return refuse(
            STKI_TEXT("a result of %" PRId64 " x %" PRId64 " pixels (height x width)", job->out_height, job->out_width),
            most, err);
    if (job->channels < 1 || job->channels > STKI_RESIZE_MAX_CHANNELS)
        return refuse(STKI_TEXT("%d channels", job->channels), STKI_TEXT("1 to %d", STKI_RESIZE_MAX_CHANNELS), err);
    if (job->window_height != 0 &&
        (!stki_inside(job->window_top, job->window_height, job->out_height) || job->window_height < 1 ||
         !stki_inside(job->window_left, job->window_width, job->out_width) || job->window_width < 1))
        return refuse(STKI_TEXT("the part top %" PRId64 ", left %" PRId64 ", %" PRId64 " x %" PRId64 " pixels",
                                job->window_top, job->window_left, job->window_height, job->window_width),
                      STKI_TEXT("a part of the result, which has %" PRId64 " x %" PRId64 " pixels", job->out_height,
                                job->out_width),
                      err);
    if (!((float)box[0] >= 0 && (float)box[1] >= 0 && (float)box[2] <= (float)job->in_width &&
          (float)box[3] <= (float)job->in_height && (float)box[0] < (float)box[2] && (float)box[1] < (float)box[3]))
        return refuse(STKI_TEXT("the box left %g, top %g, right %g, bottom %g", box[0], box[1], box[2], box[3]),
                      STKI_TEXT("a nonempty box inside %" PRId64 " x %" PRId64 " pixels (width x height)",
                                job->in_width, job->in_height),
                      err);
    return STK_OK;
}

/* The bytes to allocate for a row of `pixels`, with room at its end, because kernels write whole vectors. */
static int64_t row_room(const stki_resizer *resizer, int64_t pixels)
{
    return (pixels * resizer->channels + 127) / 64 * 64;
}

/* Allocates the ring: the rows of one window, and those that the horizontal pass computes beyond it. */
static stk_status make_rows(stki_resizer *resizer, stk_error *err)
{
    const stki_resize_axis *y = &resizer->y;
    const int64_t pointers = y->taps > STKI_RESIZE_TAPS ? y->taps : STKI_RESIZE_TAPS;
    stk_status status;

    status = stki_resize_grow(&resizer->pointer_memory, pointers * (int64_t)sizeof(uint8_t *), err);
    resizer->rows = resizer->pointer_memory.data;
    if (status != STK_OK || resizer->x.plain)
        return status;
    if (resizer->vertical_first) {
        int64_t in = row_room(resizer, resizer->x.support_length), out = row_room(resizer, resizer->x.out);

        resizer->row_count = 2 * STKI_RESIZE_ROWS;
        resizer->row_bytes = in > out ? in : out;
    } else {
        resizer->row_count = y->most + STKI_RESIZE_ROWS - 1;
        resizer->row_bytes = row_room(resizer, resizer->x.out);
    }
    return stki_resize_grow(&resizer->row_memory, resizer->row_count * resizer->row_bytes, err);
}

static stk_status choose_kernels(stki_resizer *resizer, stk_error *err)
{
    const stki_resize_kernels *kernels = resizer->variant;
    stk_status status = STK_OK;

    if (kernels->needs_narrow && !(resizer->x.narrow && resizer->y.narrow))
        kernels = &stki_resize_ref;
    resizer->vertical = kernels->vertical ? kernels->vertical : stki_resize_ref.vertical;
    if (kernels->prepare && !resizer->x.plain && !resizer->tables_known)
        status = kernels->prepare(resizer, &resizer->tables_usable, err);
    if (status != STK_OK)
        return status;
    resizer->kernels = kernels->prepare && !resizer->tables_usable ? &stki_resize_ref : kernels;
    resizer->tables_known = true;
    return STK_OK;
}

stk_status stki_resizer_set(stki_resizer *resizer, const stki_resize_job *job, stk_error *err)
{
    const bool whole = job->window_height == 0;
    const stki_resize_line across = {.in = job->in_width,
                                     .low = (float)job->box[0],
                                     .high = (float)job->box[2],
                                     .whole = job->out_width,
                                     .skip = whole ? 0 : job->window_left,
                                     .out = whole ? job->out_width : job->window_width,
                                     .filter = job->filter};
    const stki_resize_line down = {.in = job->in_height,
                                   .low = (float)job->box[1],
                                   .high = (float)job->box[3],
                                   .whole = job->out_height,
                                   .skip = whole ? 0 : job->window_top,
                                   .out = whole ? job->out_height : job->window_height,
                                   .filter = job->filter};
    stki_resize_axis *x = &resizer->x, *y = &resizer->y;
    bool x_changed = false, y_changed = false;
    stk_status status;

    if ((status = stki_resize_check(job, err)) != STK_OK)
        return status;
    if ((status = stki_resize_axis_set(x, &across, &x_changed, err)) == STK_OK)
        status = stki_resize_axis_set(y, &down, &y_changed, err);
    if (x_changed || resizer->channels != job->channels)
        resizer->tables_known = resizer->ready = false;
    if (y_changed)
        resizer->ready = false;
    if (status != STK_OK || resizer->ready)
        return status;
    resizer->vertical_first = !x->plain && !y->plain && job->out_height < job->in_height &&
                              2 * (job->in_width - job->out_width) < job->in_height - job->out_height;
    resizer->channels = job->channels;
    resizer->filter = job->filter;
    resizer->support = (stki_resize_support){y->support_first, x->support_first, y->support_length, x->support_length};
    if (job->filter != STKI_FILTER_NEAREST &&
        ((status = make_rows(resizer, err)) != STK_OK || (status = choose_kernels(resizer, err)) != STK_OK))
        return status;
    resizer->ready = true;
    return STK_OK;
}

const stki_resize_support *stki_resizer_support(const stki_resizer *resizer)
{
    return &resizer->support;
}

/* ---- run ---- */

static uint8_t *ring_row(const stki_resizer *resizer, int64_t row)
{
    return (uint8_t *)resizer->row_memory.data + row % resizer->row_count * resizer->row_bytes;
}

/* Runs the horizontal pass over the next rows of the support, at most STKI_RESIZE_ROWS. */
static void make_ring_rows(stki_resizer *resizer)
{
    const uint8_t *from[STKI_RESIZE_ROWS];
    uint8_t *to[STKI_RESIZE_ROWS];
    const int64_t done = resizer->done, last = resizer->support.height - 1;

    for (int r = 0; r < STKI_RESIZE_ROWS; r++) {
        int64_t row = done + r < last ? done + r : last;

        from[r] = resizer->in + row * resizer->in_row;
        to[r] = ring_row(resizer, row);
    }
    resizer->kernels->horizontal(resizer, from, to);
    resizer->done = done + STKI_RESIZE_ROWS;
}

/* Points resizer->rows at the window of output row i, in the ring or the input, padded to a multiple of
 * STKI_RESIZE_TAPS with rows whose coefficients are 0. Returns the number of rows. */
static int64_t point_at_rows(const stki_resizer *resizer, int64_t i, bool ring)
{
    const stki_resize_axis *y = &resizer->y;
    const int64_t first = y->plain ? i : y->first[i], count = y->plain ? 1 : y->count[i];
    const int64_t taps = (count + STKI_RESIZE_TAPS - 1) / STKI_RESIZE_TAPS * STKI_RESIZE_TAPS;

    for (int64_t t = 0; t < taps; t++) {
        int64_t row = first + (t < count ? t : count - 1);

        resizer->rows[t] = ring ? ring_row(resizer, row) : resizer->in + row * resizer->in_row;
    }
    return taps;
}

static void run_vertical_first(const stki_resizer *resizer, uint8_t *out, int64_t out_row, int64_t count)
{
    const stki_resize_axis *x = &resizer->x, *y = &resizer->y;
    const int64_t in_bytes = x->support_length * resizer->channels, out_bytes = x->out * resizer->channels;

    for (int64_t i = 0; i < count; i += STKI_RESIZE_ROWS) {
        const int64_t n = count - i < STKI_RESIZE_ROWS ? count - i : STKI_RESIZE_ROWS;
        const uint8_t *from[STKI_RESIZE_ROWS];
        uint8_t *to[STKI_RESIZE_ROWS];

        for (int64_t r = 0; r < STKI_RESIZE_ROWS; r++) {
            const int64_t place = r < n ? r : n - 1, row = resizer->next + i + r;

            from[r] = ring_row(resizer, place);
            to[r] = ring_row(resizer, STKI_RESIZE_ROWS + place);
            if (r < n) {
                const int64_t taps = point_at_rows(resizer, row, false);

                resizer->vertical(ring_row(resizer, r), resizer->rows, y->k + row * y->taps, taps, in_bytes);
            }
        }
        resizer->kernels->horizontal(resizer, from, to);
        for (int64_t r = 0; r < n; r++)
            memcpy(out + (i + r) * out_row, to[r], (size_t)out_bytes);
    }
}

static void run_passes(stki_resizer *resizer, uint8_t *out, int64_t out_row, int64_t count)
{
    const stki_resize_axis *x = &resizer->x, *y = &resizer->y;
    const int64_t row_bytes = x->out * resizer->channels;

    for (int64_t i = resizer->next; i < resizer->next + count; i++, out += out_row) {
        const int64_t end = y->plain ? i + 1 : y->first[i] + y->count[i];
        int64_t taps;

        while (!x->plain && resizer->done < end)
            make_ring_rows(resizer);
        taps = point_at_rows(resizer, i, !x->plain);
        if (y->plain)
            memcpy(out, resizer->rows[0], (size_t)row_bytes);
        else
            resizer->vertical(out, resizer->rows, y->k + i * y->taps, taps, row_bytes);
    }
}

static void pick_pixels(const stki_resizer *resizer, const uint8_t *in, uint8_t *out)
{
    const stki_resize_axis *x = &resizer->x;
    const int channels = resizer->channels;

    if (x->plain) {
        memcpy(out, in, (size_t)(x->out * channels));
        return;
    }
    for (int64_t i = 0; i < x->out; i++)
        for (int c = 0; c < channels; c++)
            out[i * channels + c] = in[(int64_t)x->first[i] * channels + c];
}

static void run_nearest(const stki_resizer *resizer, uint8_t *out, int64_t out_row, int64_t count)
{
    const stki_resize_axis *y = &resizer->y;
    int64_t before = -1;

    for (int64_t i = resizer->next; i < resizer->next + count; i++, out += out_row) {
        int64_t row = y->plain ? i : y->first[i];

        if (row == before)
            memcpy(out, out - out_row, (size_t)(resizer->x.out * resizer->channels));
        else
            pick_pixels(resizer, resizer->in + row * resizer->in_row, out);
        before = row;
    }
}

void stki_resizer_begin(stki_resizer *resizer, const uint8_t *in, int64_t in_row)
{
    resizer->in = in;
    resizer->in_row = in_row;
    resizer->next = resizer->done = 0;
}

void stki_resizer_next(stki_resizer *resizer, uint8_t *out, int64_t out_row, int64_t count)
{
    if (resizer->filter == STKI_FILTER_NEAREST)
        run_nearest(resizer, out, out_row, count);
    else if (resizer->vertical_first)
        run_vertical_first(resizer, out, out_row, count);
    else
        run_passes(resizer, out, out_row, count);
    resizer->next += count;
}

void stki_resizer_run(stki_resizer *resizer, const uint8_t *in, int64_t in_row, uint8_t *out, int64_t out_row)
{
    stki_resizer_begin(resizer, in, in_row);
    stki_resizer_next(resizer, out, out_row, resizer->y.out);
}
