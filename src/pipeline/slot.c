/* slot.c: see slot.h. */
#include "slot.h"
#include "checked.h"
#include "device_memory.h"
#include "error.h"
#include "failed.h"
#include "own_shapes.h"
#include <string.h>

#define HUGE_FROM (INT64_C(4) << 20) /* smaller blocks gain nothing from 2 MiB pages */

/* Reserves `count` times `each` bytes at the next multiple of `alignment`. */
static bool reserve(int64_t *used, int64_t count, int64_t each, int64_t alignment, int64_t *offset)
{
    int64_t bytes;

    if (*used > INT64_MAX - alignment || !stki_mul(count, each, &bytes))
        return false;
    *offset = stki_round_up(*used, alignment);
    return stki_add(*offset, bytes, used);
}

stk_status stki_slot_plan(stki_field_plan *plans, int plan_count, int64_t max_rows, stki_slot_layout *out,
                          stk_error *err)
{
    int64_t used = 0;
    bool fits = true;

    *out = (stki_slot_layout){.max_rows = max_rows};
    for (int i = 0; i < plan_count; i++) {
        stki_field_plan *plan = &plans[i];

        fits = fits && reserve(&used, max_rows, plan->row_bytes, STKI_DEVICE_ALIGNMENT, &plan->slot_offset);
        if (plan->pad.padded)
            fits = fits && reserve(&used, max_rows, plan->shape[0], STKI_DEVICE_ALIGNMENT, &plan->mask_offset);
        if (plan->has_partners)
            fits = fits && reserve(&used, max_rows, plan->row_bytes, STKI_DEVICE_ALIGNMENT, &plan->partner_offset) &&
                   reserve(&used, max_rows, sizeof(float), STKI_DEVICE_ALIGNMENT, &plan->share_offset);
        out->mixes = out->mixes || plan->mix;
        out->windows = out->windows || plan->each;
        if (!fits)
            return stki_fail(err, STK_E_LIMIT,
                             "dataset.fields.%s: %lld rows of %lld bytes are more than memory can hold", plan->name,
                             (long long)max_rows, (long long)plan->row_bytes);
    }
    fits = reserve(&used, 0, 0, STKI_DEVICE_ALIGNMENT, &out->rest);
    for (int i = 0; i < plan_count && fits; i++) {
        if (plans[i].ragged)
            fits = reserve(&used, max_rows + 1, sizeof(int64_t), STKI_DEVICE_ALIGNMENT, &plans[i].offsets_offset);
        if (plans[i].own_shapes)
            fits =
                fits && reserve(&used, max_rows, STKI_OWN_SHAPE_BYTES, STKI_DEVICE_ALIGNMENT, &plans[i].shapes_offset);
    }
    if (!fits || !reserve(&used, max_rows, sizeof(int64_t), 64, &out->indices) ||
        !reserve(&used, out->windows ? max_rows : 0, sizeof(int64_t), 64, &out->samples) ||
        !reserve(&used, max_rows, 1, 64, &out->mask) || !reserve(&used, max_rows, 1, 64, &out->failed) ||
        !reserve(&used, max_rows, sizeof(int32_t), 64, &out->sources) ||
        !reserve(&used, max_rows, sizeof(stki_position), 64, &out->positions) ||
        !reserve(&used, out->mixes ? max_rows : 0, sizeof(stki_position), 64, &out->partners))
        return stki_fail(err, STK_E_LIMIT, "loader.batch_size: %lld rows are more than memory can hold",
                         (long long)max_rows);
    out->bytes = used;
    return STK_OK;
}

static stk_status take_memory(stk_batch *slot, int64_t bytes, stk_error *err)
{
    void *block = NULL;
    stk_status status;

    if (slot->pinned) {
        status = stki_device_alloc_exact(slot->pinned, STK_MEMORY_PINNED, bytes, "batch slots", &block, err);
        slot->memory = block;
        return status;
    }
    slot->memory = stki_block_alloc(slot->allocator, bytes, 4096);
    return slot->memory ? STK_OK : stki_fail_memory(err, bytes, "a batch slot");
}

void stki_slot_point(stk_batch *slot, const stki_slot_layout *layout)
{
    slot->indices = (int64_t *)(void *)(slot->memory + layout->indices);
    slot->samples = layout->windows ? (int64_t *)(void *)(slot->memory + layout->samples) : slot->indices;
    slot->sources = (int32_t *)(void *)(slot->memory + layout->sources);
    slot->mask = (uint8_t *)slot->memory + layout->mask;
    slot->row_failed = (_Atomic uint8_t *)(void *)(slot->memory + layout->failed);
    slot->positions = (stki_position *)(void *)(slot->memory + layout->positions);
    slot->partners = layout->mixes ? (stki_position *)(void *)(slot->memory + layout->partners) : NULL;
}

stk_status stki_slot_create(stki_core *core, const stki_slot_layout *layout, stk_device *pin, stk_batch **out,
                            stk_error *err)
{
    stk_batch *slot = stki_zalloc(sizeof *slot);
    stk_status status;

    if (!slot)
        return stki_fail_memory(err, sizeof *slot, "a slot");
    stki_mutex_init(&slot->error_lock);
    slot->core = core;
    slot->allocator = layout->bytes >= HUGE_FROM ? &stki_huge_pages : &stki_slot_heap;
    slot->pinned = pin;
    slot->device_slot = -1;
    status = take_memory(slot, layout->bytes, err);
    if (status != STK_OK) {
        stki_slot_destroy(slot, layout);
        return status;
    }
    memset(slot->memory, 0, (size_t)layout->bytes); /* every page is touched here and never again for the first time */
    stki_slot_point(slot, layout);
    *out = slot;
    return STK_OK;
}

void stki_slot_destroy(stk_batch *slot, const stki_slot_layout *layout)
{
    if (!slot)
        return;
    stki_failed_forget(slot);
    stki_mutex_fini(&slot->error_lock);
    if (!slot->pinned)
        stki_block_free(slot->allocator, slot->memory, layout->bytes, 4096);
    else if (slot->memory)
        stki_device_free(slot->pinned, STK_MEMORY_PINNED, slot->memory, layout->bytes);
    stki_free(slot);
}

void stki_slot_fail(stk_batch *slot, int64_t row, const stk_error *error)
{
    stki_lock(&slot->error_lock);
    if (slot->error_row < 0 || row < slot->error_row) {
        slot->error_row = row;
        slot->error = *error;
    }
    stki_unlock(&slot->error_lock);
}

static void compact_fixed(char *rows, int64_t row_bytes, const _Atomic uint8_t *failed, int64_t count)
{
    int64_t kept = 0;

    for (int64_t r = 0; r < count; r++) {
        if (failed[r])
            continue;
        if (kept != r)
            memmove(rows + kept * row_bytes, rows + r * row_bytes, (size_t)row_bytes);
        kept++;
    }
}

static void compact_ragged(char *values, int64_t *offsets, int64_t item_bytes, const _Atomic uint8_t *failed,
                           int64_t count)
{
    int64_t kept = 0, at = 0;

    for (int64_t r = 0; r < count; r++) {
        int64_t from = offsets[r], length = offsets[r + 1] - from;

        if (failed[r])
            continue;
        memmove(values + at * item_bytes, values + from * item_bytes, (size_t)(length * item_bytes));
        offsets[kept++] = at; /* kept <= r: the offsets still to be read lie behind */
        at += length;
    }
    offsets[kept] = at;
}

static void compact_padded(stk_batch *slot, const stki_field_plan *plan)
{
    int64_t *lengths = stki_slot_offsets(slot, plan) + 1, length = stki_padded_length(slot, plan);

    compact_fixed(stki_slot_values(slot, plan), length * plan->item_bytes, slot->row_failed, slot->rows);
    compact_fixed((char *)stki_slot_pad_mask(slot, plan), length, slot->row_failed, slot->rows);
    compact_fixed((char *)lengths, (int64_t)sizeof *lengths, slot->row_failed, slot->rows);
}

void stki_slot_compact(stk_batch *slot, const stki_field_plan *plans, int plan_count)
{
    int64_t kept = 0, valid = 0;

    for (int i = 0; i < plan_count; i++) {
        const stki_field_plan *plan = &plans[i];

        if (plan->pad.padded)
            compact_padded(slot, plan);
        else if (plan->ragged)
            compact_ragged(stki_slot_values(slot, plan), stki_slot_offsets(slot, plan), plan->item_bytes,
                           slot->row_failed, slot->rows);
        else
            compact_fixed(stki_slot_values(slot, plan), plan->row_bytes, slot->row_failed, slot->rows);
        if (plan->own_shapes)
            compact_fixed(slot->memory + plan->shapes_offset, STKI_OWN_SHAPE_BYTES, slot->row_failed, slot->rows);
        if (plan->has_partners) {
            compact_fixed(slot->memory + plan->partner_offset, plan->row_bytes, slot->row_failed, slot->rows);
            compact_fixed(slot->memory + plan->share_offset, sizeof(float), slot->row_failed, slot->rows);
        }
    }
    for (int64_t r = 0; r < slot->rows; r++) {
        if (slot->row_failed[r])
            continue;
        slot->indices[kept] = slot->indices[r];
        slot->samples[kept] = slot->samples[r];
        slot->sources[kept] = slot->sources[r];
        slot->positions[kept] = slot->positions[r];
        slot->mask[kept] = slot->mask[r];
        valid += slot->mask[r];
        kept++;
    }
    slot->rows = kept;
    slot->valid = valid;
}
