/* fill_made.c: see fill_made.h.
 *
 * Mixing. The partner of row p of the global batch is row p xor 1; an odd last row has none and stays as it is. Both
 * rows are made in f32, before they are rounded, and mixed on their way into the batch, some elements at a time. Where
 * a worker has both rows of a pair in its tile it makes them together, each sample read once. A rank whose rows end
 * inside a pair reads the partner's sample too.
 *
 * A row that the draw does not mix knows nothing of its partner: only its own sample is read. A row that is mixed is
 * lost where either sample fails. So what becomes of a row follows from its samples and the draw, and is the same
 * whichever rank or worker makes it.
 */
#include "fill_made.h"
#include "allocate.h"
#include "error.h"
#include "float_control.h"
#include "mix.h"
#include "plan_made.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <string.h>

/* ---- erasing ------------------------------------------------------------------------------------------------------
 */

/* Where a row's lines, pixels and channels are. */
static void axes_of(const stki_field_plan *plan, int *h, int *w, int *c)
{
    *h = plan->layout == STKI_LAYOUT_NHWC ? 0 : 1;
    *w = *h + 1;
    *c = *h == 0 ? 2 : 0;
}

static void erase_with_value(const stki_field_plan *plan, const int64_t *shape, uint8_t *to)
{
    int h, w, c;
    int64_t from[STK_MAX_DIMS] = {0};

    axes_of(plan, &h, &w, &c);
    from[c] = stk_dtype_size(plan->dtype);
    stki_copy_strided(to, plan->dtype, plan->strides, plan->erased, plan->dtype, from, false, 3, shape);
}

/* Every element a normal number, channel by channel and line by line. */
static void erase_with_noise(const stki_field_plan *plan, const int64_t *shape, stki_draw *draw, uint8_t *to)
{
    enum { BLOCK = 256 };
    const int64_t size = sizeof(float);
    float block[BLOCK];
    int h, w, c;

    axes_of(plan, &h, &w, &c);
    for (int64_t k = 0; k < shape[c]; k++)
        for (int64_t y = 0; y < shape[h]; y++)
            for (int64_t x = 0, n; x < shape[w]; x += n) {
                n = shape[w] - x < BLOCK ? shape[w] - x : BLOCK;
                stki_draw_normals(draw, plan->erased_a[k], plan->erased_b[k], block, n);
                stki_copy_strided(to + k * plan->strides[c] + y * plan->strides[h] + x * plan->strides[w], plan->dtype,
                                  &plan->strides[w], block, STK_F32, &size, false, 1, &n);
            }
}

void stki_made_erase(const stki_field_plan *plan, const stki_occasion *occasion, uint8_t *row)
{
    int64_t shape[STK_MAX_DIMS];
    stki_rectangle box;
    stki_draw draw;
    int h, w, c;

    axes_of(plan, &h, &w, &c);
    memcpy(shape, plan->shape, sizeof shape);
    if (!stki_erase_draw(plan->erase, occasion, shape[h], shape[w], &draw, &box))
        return;
    shape[h] = box.height;
    shape[w] = box.width;
    row += box.top * plan->strides[h] + box.left * plan->strides[w];
    stki_store_fence(); /* the row may still be on its way past the caches */
    stki_float_control control = stki_float_enter();
    if (plan->erase->random)
        erase_with_noise(plan, shape, &draw, row);
    else
        erase_with_value(plan, shape, row);
    stki_float_leave(control);
}

/* ---- labels -------------------------------------------------------------------------------------------------------
 */

static stki_making_of of_row(const stk_batch *batch, int64_t row, void *to)
{
    return (stki_making_of){batch->samples[row], {batch->draw_key, batch->positions[row].draw}, to, row};
}

/* For the row, or for itself if it is the next one. */
static stki_making_of of_partner(const stk_batch *batch, int64_t row, bool itself, void *to)
{
    const stki_position *partner = &batch->partners[row];

    return (stki_making_of){partner->sample, {batch->draw_key, partner->draw}, to, row + itself};
}

/* ---- pairs --------------------------------------------------------------------------------------------------------
 */

/* Row `row` of this rank in the global batch, and its partner there: itself, if it has none. */
static int64_t partner_of(const stk_batch *batch, int64_t row, int64_t *own)
{
    const int64_t p = batch->first_global_row + row, partner = p ^ 1;

    *own = p;
    return partner < batch->global_rows ? partner : p;
}

stk_status stki_made_begin(stki_core *core, stk_batch *batch, stk_error *err)
{
    stk_status status = STK_OK;

    for (int64_t r = 0; r < batch->rows && status == STK_OK; r++) {
        int64_t own;
        const int64_t partner = partner_of(batch, r, &own), local = r + partner - own;

        if (local >= 0 && local < batch->rows)
            batch->partners[r] = batch->positions[local];
        else
            status = stki_order_eval(core->order, batch->epoch,
                                     (batch->step * core->batching.global_batch + partner) % core->batching.length, 1,
                                     &batch->partners[r], err);
    }
    return status;
}

static stki_mixing mixing_of(const stki_core *core, const stk_batch *batch, const stki_field_plan *plan, int64_t row)
{
    const stki_field_plan *image = plan->mix ? plan : plan->mixed_by;
    int64_t own, height = 1, width = 1;
    const int64_t partner = partner_of(batch, row, &own);
    const int64_t start = batch->step * core->batching.global_batch + (image->mix->by_pair ? own & ~INT64_C(1) : 0);
    const stki_occasion occasion = {batch->draw_key, start % core->batching.length};
    stki_mixing mixing = {.share = 1};

    if (image->source_layout != STKI_LAYOUT_NONE) {
        const int h = image->layout == STKI_LAYOUT_NHWC ? 0 : 1;

        height = image->shape[h];
        width = image->shape[h + 1];
    }
    if (partner != own)
        stki_mix_draw(image->mix, &occasion, height, width, &mixing);
    return mixing;
}

bool stki_made_mixes(const stki_core *core, const stk_batch *batch, const stki_field_plan *plan, int64_t row)
{
    const stki_field_plan *whole = &core->plans[plan->number];

    return (whole->mix || whole->mixed_by) && mixing_of(core, batch, whole, row).mixes;
}

/* One row of f32, or its share and the partner's rest, rounded into the batch. */
static void store_mixed(const stki_field_plan *plan, const stki_mixing *mixing, const float *a, const float *b,
                        char *row)
{
    const int64_t size = stk_dtype_size(plan->dtype), elements = plan->row_bytes / size;
    const bool mixes = mixing->mixes && !mixing->cuts;
    const stki_mix_fn mix = stki_mix_of(stki_isa());
    _Alignas(64) float block[STKI_MADE_BLOCK];

    for (int64_t i = 0; i < elements; i += STKI_MADE_BLOCK) {
        const int64_t n = elements - i < STKI_MADE_BLOCK ? elements - i : STKI_MADE_BLOCK;

        if (mixes)
            mix(block, a + i, b + i, n, mixing->share, mixing->rest);
        stki_convert_run(n == STKI_MADE_BLOCK ? plan->round : plan->round_rest, row + i * size, mixes ? block : a + i);
    }
}

static void take_over(float *a, float *b, int64_t n, bool both)
{
    for (int64_t i = 0; i < n; i++) {
        const float kept = a[i];

        a[i] = b[i];
        b[i] = both ? kept : b[i];
    }
}

/* The box of both, exchanged; or (`both` false) the box of `a` from `b`. A line of it lies in one piece, of one channel
 * or of all. */
static void cut_box(const stki_field_plan *plan, const stki_rectangle *box, bool both, float *a, float *b)
{
    const int64_t size = sizeof(float), *s = plan->unrounded->strides;
    int h, w, c;

    axes_of(plan, &h, &w, &c);
    const bool planar = s[w] == size;
    const int64_t lines = planar ? plan->shape[c] : 1, n = planar ? box->width : box->width * plan->shape[c];

    for (int64_t k = 0; k < lines; k++)
        for (int64_t y = box->top; y < box->top + box->height; y++) {
            const int64_t at = (k * s[c] + y * s[h] + box->left * s[w]) / size;

            take_over(a + at, b + at, n, both);
        }
}

/* What came of the samples of a row and of its partner; an error is set where the status says so. */
typedef struct stki_pair {
    stk_status own, partner;
    stk_error own_error, partner_error;
} stki_pair;

/* True: the row can be made, and with `both` the next one. Else those that cannot are failed, and that is all of them:
 * each holds a part of both samples. */
static bool pair_is_fine(stki_core *core, stk_batch *batch, int64_t row, bool both, const stki_pair *pair)
{
    if (pair->own != STK_OK)
        stki_row_fails(core, batch, row, &pair->own_error);
    else if (pair->partner != STK_OK)
        stki_row_fails_with_partner(core, batch, row, &pair->partner_error);
    if (both && pair->partner != STK_OK)
        stki_row_fails(core, batch, row + 1, &pair->partner_error);
    else if (both && pair->own != STK_OK)
        stki_row_fails_with_partner(core, batch, row + 1, &pair->own_error);
    return pair->own == STK_OK && pair->partner == STK_OK;
}

/* A row, and with `both` the next one, which is its partner: mixed in f32 and rounded. */
static void fill_mixed(stki_core *core, stk_batch *batch, const stki_field_plan *plan, int64_t row, bool both,
                       stki_mixing mixing, stki_make_row_fn *make, stki_worker *worker)
{
    const stki_field_plan *f32 = plan->unrounded;
    const int64_t bytes = (f32->row_bytes + 63) / 64 * 64;
    char *values = stki_slot_values(batch, plan) + row * plan->row_bytes;
    stki_pair pair = {.partner = STK_OK};
    stki_making_of of;
    float *a, *b;

    pair.own = stki_scratch_reserve(&worker->mixed, 2 * bytes, &pair.own_error);
    a = worker->mixed.data;
    b = a ? a + bytes / (int64_t)sizeof *a : NULL;
    if (pair.own == STK_OK) {
        of = of_row(batch, row, a);
        pair.own = make(core, batch, f32, &of, worker, &pair.own_error);
        if (both || (mixing.mixes && pair.own == STK_OK)) {
            of = of_partner(batch, row, both, b);
            pair.partner = make(core, batch, f32, &of, worker, &pair.partner_error);
        }
    }
    if (!pair_is_fine(core, batch, row, both, &pair))
        return;
    stki_float_control control = stki_float_enter();
    if (mixing.cuts && plan->mix)
        cut_box(plan, &mixing.box, both, a, b);
    else
        mixing.cuts = false; /* labels mix by the share of the area */
    store_mixed(plan, &mixing, a, b, values);
    if (both)
        store_mixed(plan, &mixing, b, a, values + plan->row_bytes);
    stki_float_leave(control);
    stki_count(&worker->bytes_written, (1 + both) * plan->row_bytes);
}

/* The label, the label of the partner that the row is mixed with, or its own, and the share of the first. */
static void fill_labels(stki_core *core, stk_batch *batch, const stki_field_plan *plan, int64_t row,
                        stki_make_row_fn *make, stki_worker *worker)
{
    const stki_mixing mixing = mixing_of(core, batch, plan, row);
    char *values = stki_slot_values(batch, plan) + row * plan->row_bytes,
         *partners = batch->memory + plan->tensors[1].offset + row * plan->row_bytes;
    stki_pair pair = {.partner = STK_OK};
    stki_making_of of = of_row(batch, row, values);

    pair.own = make(core, batch, plan, &of, worker, &pair.own_error);
    if (pair.own == STK_OK && mixing.mixes) {
        of = of_partner(batch, row, false, partners);
        pair.partner = make(core, batch, plan, &of, worker, &pair.partner_error);
    }
    if (!pair_is_fine(core, batch, row, false, &pair))
        return;
    if (!mixing.mixes)
        memcpy(partners, values, (size_t)plan->row_bytes);
    ((float *)(void *)(batch->memory + plan->tensors[2].offset))[row] = mixing.share;
}

int64_t stki_made_fill(stki_core *core, stk_batch *batch, const stki_field_plan *plan, int64_t row, int64_t last,
                       stki_make_row_fn *make, stki_worker *worker)
{
    stki_making_of of;
    stk_error error;
    int64_t own;

    if (stki_sample_has_failed(batch, row))
        return 1;
    if (plan->unrounded) {
        const stki_mixing mixing = mixing_of(core, batch, plan, row);
        const bool both = mixing.mixes && row + 1 < last && partner_of(batch, row, &own) == own + 1 &&
                          !stki_sample_has_failed(batch, row + 1);

        fill_mixed(core, batch, plan, row, both, mixing, make, worker);
        return 1 + both;
    }
    if (plan->has_partners) {
        fill_labels(core, batch, plan, row, make, worker);
        return 1;
    }
    of = of_row(batch, row, stki_slot_values(batch, plan) + row * plan->row_bytes);
    if (make(core, batch, plan, &of, worker, &error) != STK_OK)
        stki_row_fails(core, batch, row, &error);
    return 1;
}
