/* parts.c: see parts.h. */
#include "parts.h"
#include "error.h"
#include "feed.h"
#include "own_shapes.h"
#include <stdio.h>
#include <string.h>

static const char *const endings[] = {"", ".values", ".offsets", ".shapes", ".mask", ".lengths", "_mix", ""};

static const enum stki_batch_tensor_kind whole[] = {STKI_PART_WHOLE}, ragged[] = {STKI_PART_VALUES, STKI_PART_OFFSETS},
                                         own[] = {STKI_PART_VALUES, STKI_PART_OFFSETS, STKI_PART_SHAPES},
                                         padded[] = {STKI_PART_WHOLE, STKI_PART_MASK, STKI_PART_LENGTHS},
                                         mixed[] = {STKI_PART_WHOLE, STKI_PART_PARTNER, STKI_PART_SHARE};

/* The parts that a field's rows come in; *count of them. */
static const enum stki_batch_tensor_kind *parts_of(const stki_field_plan *plan, int *count)
{
    *count = plan->pad.padded || plan->has_partners || plan->own_shapes ? 3 : plan->ragged ? 2 : 1;
    return plan->has_partners ? mixed
           : plan->own_shapes ? own
           : plan->pad.padded ? padded
           : plan->ragged     ? ragged
                              : whole;
}

/* A view of a padded field has a mask as well. */
static int parts_of_view(const stki_core *core, const stki_view *view)
{
    return core->plans[view->plan].pad.padded ? 2 : 1;
}

int stki_part_count(const stki_core *core)
{
    int total = 0, count;

    for (int i = 0; i < core->plan_count; i++) {
        (void)parts_of(&core->plans[i], &count);
        total += count;
    }
    for (int i = 0; i < core->view_count; i++)
        total += parts_of_view(core, &core->views[i]);
    return total;
}

/* Part number `number`, and its name in three pieces. */
static void part_at(const stki_core *core, int number, stki_batch_tensor *out, const char *pieces[3])
{
    pieces[1] = "";
    for (int i = 0, count; i < core->plan_count; i++, number -= count) {
        const enum stki_batch_tensor_kind *kinds = parts_of(&core->plans[i], &count);

        if (number < count) {
            *out = (stki_batch_tensor){.plan = &core->plans[i], .kind = kinds[number]};
            pieces[0] = kinds[number] == STKI_PART_SHARE ? "mix_lambda" : core->plans[i].name;
            pieces[2] = endings[kinds[number]];
            return;
        }
    }
    for (int i = 0; i < core->view_count; i++) {
        const stki_view *view = &core->views[i];
        int count = parts_of_view(core, view);

        if (number < count) {
            *out = (stki_batch_tensor){&core->plans[view->plan], number ? STKI_PART_MASK : STKI_PART_WHOLE, view};
            pieces[0] = view->name;
            pieces[1] = view->ending;
            pieces[2] = endings[out->kind];
            return;
        }
        number -= count;
    }
}

void stki_part_at(const stki_core *core, int number, stki_batch_tensor *out, char *name, int size)
{
    const char *pieces[3] = {"", "", ""};

    part_at(core, number, out, pieces);
    snprintf(name, (size_t)size, "%s%s%s", pieces[0], pieces[1], pieces[2]);
}

/* Asked for every tensor of every batch: nothing is written out. */
bool stki_part_find(const stki_core *core, const char *name, stki_batch_tensor *out)
{
    int count = stki_part_count(core);

    for (int i = 0; i < count; i++) {
        const char *pieces[3] = {"", "", ""}, *at = name;
        bool same = true;

        part_at(core, i, out, pieces);
        for (int k = 0; same && k < 3; k++) {
            size_t length = strlen(pieces[k]);

            same = strncmp(at, pieces[k], length) == 0;
            at += same ? length : 0;
        }
        if (same && *at == '\0')
            return true;
    }
    return false;
}

stk_status stki_part_missing(const stki_core *core, const char *name, stk_error *err)
{
    char names[320] = "", one[256];
    size_t used = 0;
    stki_batch_tensor part;

    for (int i = 0; i < stki_part_count(core) && used < sizeof names; i++) {
        int n;

        stki_part_at(core, i, &part, one, sizeof one);
        n = snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", one);
        used += n > 0 ? (size_t)n : 0;
    }
    return stki_fail(err, STK_E_NOT_FOUND, "the batch has no tensor %s: it has %s", name, names);
}

static void *place(const stk_batch *batch, const stki_field_plan *plan, enum stki_feed_part part)
{
    if (batch->device_slot >= 0)
        return stki_feed_place(batch, plan, part);
    return part == STKI_FEED_OFFSETS   ? (void *)stki_slot_offsets(batch, plan)
           : part == STKI_FEED_SHAPES  ? (void *)stki_slot_shapes(batch, plan)
           : part == STKI_FEED_MASK    ? (void *)stki_slot_pad_mask(batch, plan)
           : part == STKI_FEED_PARTNER ? (void *)stki_slot_partners(batch, plan)
           : part == STKI_FEED_SHARE   ? (void *)stki_slot_shares(batch, plan)
                                       : (void *)stki_slot_values(batch, plan);
}

/* One number a row, or one more. */
static void vector(void *data, int64_t count, stk_tensor *out)
{
    out->data = data;
    out->dtype = STK_I64;
    out->ndim = 1;
    out->shape[0] = count;
    out->strides[0] = sizeof(int64_t);
}

static void mask_of(const stk_batch *batch, const stki_field_plan *plan, stk_tensor *out)
{
    int64_t length = stki_padded_length(batch, plan);

    out->data = place(batch, plan, STKI_FEED_MASK);
    out->dtype = STK_BOOL;
    out->ndim = 2;
    out->shape[0] = batch->rows;
    out->shape[1] = length;
    out->strides[0] = length;
    out->strides[1] = 1;
}

void stki_part_tensor(const stk_batch *batch, const stki_batch_tensor *part, stk_tensor *out)
{
    const stki_field_plan *plan = part->plan;
    stki_row_form form;

    *out = (stk_tensor){.device = batch->device_slot >= 0 ? batch->core->device : stk_device_cpu()};
    if (batch->device_slot < 0 && batch->pinned)
        out->flags = STK_TENSOR_PINNED;
    stki_plan_form(plan, &form);
    switch (part->kind) {
    case STKI_PART_OFFSETS:
        vector(place(batch, plan, STKI_FEED_OFFSETS), batch->rows + 1, out);
        return;
    case STKI_PART_SHAPES:
        vector(place(batch, plan, STKI_FEED_SHAPES), batch->rows, out);
        out->ndim = 2;
        out->shape[1] = STKI_OWN_AXES;
        out->strides[0] = STKI_OWN_SHAPE_BYTES;
        out->strides[1] = sizeof(int64_t);
        return;
    case STKI_PART_LENGTHS:
        vector((int64_t *)place(batch, plan, STKI_FEED_OFFSETS) + 1, batch->rows, out);
        return;
    case STKI_PART_MASK:
        mask_of(batch, plan, out);
        break;
    case STKI_PART_VALUES:
        out->data = place(batch, plan, STKI_FEED_VALUES);
        out->dtype = form.dtype;
        out->ndim = plan->ndim;
        memcpy(out->shape, form.shape, sizeof form.shape);
        memcpy(out->strides, form.strides, sizeof form.strides);
        out->shape[0] = batch->rows ? stki_slot_offsets(batch, plan)[batch->rows] : 0;
        return;
    case STKI_PART_SHARE:
        vector(place(batch, plan, STKI_FEED_SHARE), batch->rows, out);
        out->dtype = STK_F32;
        out->strides[0] = sizeof(float);
        return;
    case STKI_PART_PARTNER:
    case STKI_PART_WHOLE:
        out->data = place(batch, plan, part->kind == STKI_PART_WHOLE ? STKI_FEED_VALUES : STKI_FEED_PARTNER);
        out->dtype = form.dtype;
        out->ndim = plan->ndim + 1;
        out->shape[0] = batch->rows;
        out->strides[0] = form.row_bytes;
        memcpy(out->shape + 1, form.shape, (size_t)plan->ndim * sizeof form.shape[0]);
        memcpy(out->strides + 1, form.strides, (size_t)plan->ndim * sizeof form.strides[0]);
        if (plan->pad.padded) {
            out->shape[1] = stki_padded_length(batch, plan);
            out->strides[0] = out->shape[1] * plan->item_bytes;
        }
        break;
    }
    if (part->view)
        stki_view_apply(part->view, out);
}

int64_t stki_plan_bytes(const stk_batch *batch, const stki_field_plan *plan)
{
    if (plan->pad.padded)
        return batch->rows * (stki_padded_length(batch, plan) * (plan->item_bytes + 1) + (int64_t)sizeof(int64_t));
    if (plan->ragged)
        return stki_slot_offsets(batch, plan)[batch->rows] * plan->item_bytes +
               (batch->rows + 1) * (int64_t)sizeof(int64_t) +
               (plan->own_shapes ? batch->rows * STKI_OWN_SHAPE_BYTES : 0);
    if (plan->has_partners)
        return batch->rows * (2 * plan->row_bytes + (int64_t)sizeof(float));
    return batch->rows * (plan->device_convert ? plan->device_form.row_bytes : plan->row_bytes);
}
