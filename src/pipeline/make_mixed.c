/* make_mixed.c: rows that are mixed with their partners (partners.h), and their labels.
 *
 *     mixed     both rows are made in f32 before they are rounded, and are mixed while being stored, a block
 *               of elements at a time; if a worker has both rows of a pair in its tile, it makes them together
 *               and reads each sample once
 *     paired    labels that are not one_hot: the label, the partner's label, and the share of the row's own label
 *
 * A mixed row is lost if either sample fails. */
#include "error.h"
#include "float_control.h"
#include "late_rows.h"
#include "mix.h"
#include "partners.h"
#include "row_maker.h"
#include <string.h>

static stki_making_of of_row(const stk_batch *batch, int64_t row, void *to)
{
    return (stki_making_of){batch->samples[row], stki_occasion_of(batch, row), to, row};
}

/* Describes how to make the partner of a row: from the partner's sample with the partner's draws, as the row itself or,
 * if `itself`, as the next row, which is the partner. */
static stki_making_of of_partner(const stk_batch *batch, int64_t row, bool itself, void *to)
{
    const stki_position *partner = &batch->partners[row];

    return (stki_making_of){partner->sample, {batch->draw_key, partner->draw}, to, row + itself};
}

/* Rounds the f32 row `a`, or the weighted sum of `a` and `b`, into the batch. */
static void store_mixed(const stki_field_plan *plan, const stki_mixing *mixing, const float *a, const float *b,
                        char *row)
{
    const int64_t size = stk_dtype_size(plan->dtype), elements = plan->row_bytes / size;
    const bool mixes = mixing->mixes && !mixing->cuts;
    const stki_mix_fn mix = stki_mix_of(stki_isa());
    _Alignas(64) float block[STKI_MIX_BLOCK];

    for (int64_t i = 0; i < elements; i += STKI_MIX_BLOCK) {
        const int64_t n = elements - i < STKI_MIX_BLOCK ? elements - i : STKI_MIX_BLOCK;

        if (mixes)
            mix(block, a + i, b + i, n, mixing->share, mixing->rest);
        stki_convert_run(n == STKI_MIX_BLOCK ? plan->mix.round : plan->mix.round_rest, row + i * size,
                         mixes ? block : a + i);
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

/* If `both`, exchanges the box between the rows; otherwise copies the box of `b` to `a`. A line of the box is
 * contiguous, in one channel (planar) or in all channels. */
static void cut_box(const stki_field_plan *plan, const stki_rectangle *box, bool both, float *a, float *b)
{
    const int64_t size = sizeof(float), *s = plan->inner->strides;
    int h, w, c;

    stki_plan_image_axes(plan, &h, &w, &c);
    const bool planar = s[w] == size;
    const int64_t lines = planar ? plan->shape[c] : 1, n = planar ? box->width : box->width * plan->shape[c];

    for (int64_t k = 0; k < lines; k++)
        for (int64_t y = box->top; y < box->top + box->height; y++) {
            const int64_t at = (k * s[c] + y * s[h] + box->left * s[w]) / size;

            take_over(a + at, b + at, n, both);
        }
}

/* The results for the samples of a row and of its partner. Each error is set only if its status is not STK_OK. */
typedef struct stki_pair {
    stk_status own, partner;
    stk_error own_error, partner_error;
} stki_pair;

/* Returns true if both samples could be made. Otherwise fails the row and, with `both`, the next one, because each
 * contains part of both samples. */
static bool pair_is_fine(stki_worker *worker, int64_t row, bool both, const stki_pair *pair)
{
    if (pair->own != STK_OK)
        stki_row_fails(worker, row, &pair->own_error);
    else if (pair->partner != STK_OK)
        stki_row_fails_with_partner(worker, row, &pair->partner_error);
    if (both && pair->partner != STK_OK)
        stki_row_fails(worker, row + 1, &pair->partner_error);
    else if (both && pair->own != STK_OK)
        stki_row_fails_with_partner(worker, row + 1, &pair->own_error);
    return pair->own == STK_OK && pair->partner == STK_OK;
}

/* Makes a row and, with `both`, the next one, which is its partner. They are mixed in f32, then rounded. */
static void make_mixed(stki_worker *worker, const stki_field_plan *plan, int64_t row, bool both, stki_mixing mixing)
{
    const stk_batch *batch = worker->batch;
    const stki_field_plan *f32 = plan->inner;
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
        pair.own = f32->maker->make(worker, f32, &of, &pair.own_error);
        if (both || (mixing.mixes && pair.own == STK_OK)) {
            of = of_partner(batch, row, both, b);
            pair.partner = f32->maker->make(worker, f32, &of, &pair.partner_error);
        }
    }
    if (!pair_is_fine(worker, row, both, &pair))
        return;
    stki_float_control control = stki_float_enter();
    if (mixing.cuts && plan->mix.step)
        cut_box(plan, &mixing.box, both, a, b);
    else
        mixing.cuts = false; /* labels are mixed in proportion to the area */
    store_mixed(plan, &mixing, a, b, values);
    if (both)
        store_mixed(plan, &mixing, b, a, values + plan->row_bytes);
    stki_float_leave(control);
    stki_count_own(&worker->bytes_written, (1 + both) * plan->row_bytes);
    stki_worker_spent(worker, &worker->convert_ns);
}

/* Writes the row's label, the partner's label (if the row is not mixed, its own label again), and the share of the
 * row's label. */
static void make_labels(stki_worker *worker, const stki_field_plan *plan, int64_t row)
{
    const stk_batch *batch = worker->batch;
    const stki_mixing mixing = stki_mixing_of(worker, plan, row);
    char *values = stki_slot_values(batch, plan) + row * plan->row_bytes,
         *partners = batch->memory + plan->tensors[1].offset + row * plan->row_bytes;
    stki_pair pair = {.partner = STK_OK};
    stki_making_of of = of_row(batch, row, values);

    pair.own = plan->under->make(worker, plan, &of, &pair.own_error);
    if (pair.own == STK_OK && mixing.mixes) {
        of = of_partner(batch, row, false, partners);
        pair.partner = plan->under->make(worker, plan, &of, &pair.partner_error);
    }
    if (!pair_is_fine(worker, row, false, &pair))
        return;
    if (!mixing.mixes)
        memcpy(partners, values, (size_t)plan->row_bytes);
    ((float *)(void *)(batch->memory + plan->tensors[2].offset))[row] = mixing.share;
}

static int64_t fill_mixed(stki_worker *worker, const stki_field_plan *plan, int64_t row, int64_t last)
{
    const stk_batch *batch = worker->batch;
    stki_mixing mixing;
    int64_t own;
    bool both;

    if (stki_sample_has_failed(batch, row))
        return 1;
    mixing = stki_mixing_of(worker, plan, row);
    both = mixing.mixes && row + 1 < last && stki_partner_of(batch, row, &own) == own + 1 &&
           !stki_sample_has_failed(batch, row + 1);
    make_mixed(worker, plan, row, both, mixing);
    return 1 + both;
}

static int64_t fill_paired(stki_worker *worker, const stki_field_plan *plan, int64_t row, int64_t last)
{
    (void)last;
    if (!stki_sample_has_failed(worker->batch, row))
        make_labels(worker, plan, row);
    return 1;
}

static bool is_mixed(const stki_field_plan *plan)
{
    return plan->inner; /* the maker of windows precedes this one in the list */
}

static bool has_partners(const stki_field_plan *plan)
{
    return plan->mix.paired;
}

static const char no_job[] =
    "transforms: mixup and cutmix combine pairs of rows of a batch: use them in the loader that reads the output";

static void explain(const stki_field_plan *plan, FILE *to)
{
    if (plan->mix.image)
        fprintf(to, "  %-10s with field %s\n", "mixed", plan->mix.image->name);
}

const stki_row_maker stki_make_mixed = {
    .takes = is_mixed,
    .pairs = true,
    .no_job = no_job,
    .pass = "made in f32 in the worker's memory, mixed and rounded into the row; ",
    .explain = explain,
    .fill = fill_mixed,
};
const stki_row_maker stki_make_paired = {
    .takes = has_partners,
    .wraps = true,
    .pairs = true,
    .no_job = no_job,
    .explain = explain,
    .fill = fill_paired,
};
