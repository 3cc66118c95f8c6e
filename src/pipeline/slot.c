/* slot.c: see slot.h. */
#include "slot.h"
#include "checked.h"
#include "clock.h"
#include "core.h"
#include "device_memory.h"
#include "error.h"
#include "failed.h"
#include "row_maker.h"
#include <string.h>

#define AWAIT_NS (STKI_SECOND / 20)  /* interval in ns for checking whether the ring has been stopped */
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

/* Reserves max_rows rows of the plan's late tensors, or of all its other tensors. */
static bool reserve_tensors(stki_field_plan *plan, bool late, int64_t max_rows, int64_t *used)
{
    bool fits = true;

    for (int i = 0; i < plan->tensor_count; i++) {
        stki_row_tensor *tensor = &plan->tensors[i];
        const bool counts = tensor->extent == STKI_OFFSETS || tensor->extent == STKI_LENGTHS;

        if (tensor->late == late)
            fits = fits && reserve(used, max_rows + counts, tensor->row_bytes, STKI_DEVICE_ALIGNMENT, &tensor->offset);
    }
    return fits;
}

stk_status stki_slot_plan(stki_field_plan *plans, int plan_count, int64_t max_rows, stki_slot_layout *out,
                          stk_error *err)
{
    int64_t used = 0;
    bool fits = true;

    *out = (stki_slot_layout){.max_rows = max_rows};
    for (int i = 0; i < plan_count; i++) {
        out->pairs = out->pairs || plans[i].maker->pairs;
        out->windows = out->windows || plans[i].config->row_samples > 0;
        if (!reserve_tensors(&plans[i], false, max_rows, &used))
            return stki_fail(err, STK_E_LIMIT,
                             "dataset.fields.%s: %lld rows of %lld bytes are more than memory can hold", plans[i].name,
                             (long long)max_rows, (long long)plans[i].row_bytes);
    }
    fits = reserve(&used, 0, 0, STKI_DEVICE_ALIGNMENT, &out->rest);
    for (int i = 0; i < plan_count && fits; i++)
        fits = reserve_tensors(&plans[i], true, max_rows, &used);
    if (!fits || !reserve(&used, max_rows, sizeof(int64_t), 64, &out->indices) ||
        !reserve(&used, out->windows ? max_rows : 0, sizeof(int64_t), 64, &out->samples) ||
        !reserve(&used, max_rows, 1, 64, &out->mask) || !reserve(&used, max_rows, 1, 64, &out->failed) ||
        !reserve(&used, max_rows, sizeof(int32_t), 64, &out->sources) ||
        !reserve(&used, max_rows, sizeof(stki_position), 64, &out->positions) ||
        !reserve(&used, out->pairs ? max_rows : 0, sizeof(stki_position), 64, &out->partners))
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
    slot->partners = layout->pairs ? (stki_position *)(void *)(slot->memory + layout->partners) : NULL;
}

stk_status stki_slot_create(stki_core *core, const stki_slot_layout *layout, stk_device *pin, stk_batch **out,
                            stk_error *err)
{
    stk_batch *slot = stki_zalloc(sizeof *slot);
    stk_status status;

    if (!slot)
        return stki_fail_memory(err, sizeof *slot, "a slot");
    stki_mutex_init(&slot->error_lock);
    stki_guards_init(&slot->guards);
    slot->core = core;
    slot->allocator = layout->bytes >= HUGE_FROM ? &stki_huge_pages : &stki_slot_heap;
    slot->pinned = pin;
    slot->device_slot = -1;
    status = take_memory(slot, layout->bytes, err);
    if (status != STK_OK) {
        stki_slot_destroy(slot, layout);
        return status;
    }
    /* Touches every page, so that no page faults occur later. Skipped for huge pages of an idle loader, which may never
     * make rows. */
    if (!core->config->idle || pin || slot->allocator != &stki_huge_pages)
        memset(slot->memory, 0, (size_t)layout->bytes);
    stki_slot_point(slot, layout);
    *out = slot;
    return STK_OK;
}

bool stki_slot_has_passed(stk_batch *slot, int64_t deadline_ns)
{
    return stki_guards_wait(&slot->guards, stki_left_ns(deadline_ns), NULL) != STK_E_TIMEOUT;
}

void stki_slot_destroy(stk_batch *slot, const stki_slot_layout *layout)
{
    if (!slot)
        return;
    stki_failed_forget(slot);
    stki_mutex_fini(&slot->error_lock);
    if (!stki_slot_has_passed(slot, 0))
        slot->memory = NULL; /* leaked, because a stream still uses it */
    stki_guards_fini(&slot->guards);
    if (!slot->pinned)
        stki_block_free(slot->allocator, slot->memory, layout->bytes, 4096);
    else if (slot->memory)
        stki_device_free(slot->pinned, STK_MEMORY_PINNED, slot->memory, layout->bytes);
    stki_free(slot);
}

bool stki_slot_await(stk_batch *slot)
{
    if (!stki_guards_any(&slot->guards))
        return true;
    while (stki_guards_wait(&slot->guards, AWAIT_NS, NULL) == STK_E_TIMEOUT)
        if (stki_ring_stopping(slot->core->ring))
            return false;
    stki_guards_clear(&slot->guards);
#ifdef STKI_POISON
    memset(slot->memory, 0xA5,
           (size_t)slot->core->layout.bytes); /* poison the memory, so that use after release is detected */
#endif
    return true;
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

static void compact_offsets(int64_t *offsets, const _Atomic uint8_t *failed, int64_t count)
{
    int64_t kept = 0, at = 0;

    for (int64_t r = 0; r < count; r++) {
        int64_t length = offsets[r + 1] - offsets[r];

        if (failed[r])
            continue;
        offsets[kept++] = at; /* since kept <= r, offsets that are still needed are not overwritten */
        at += length;
    }
    offsets[kept] = at;
}

/* The offsets follow the entries in the list of tensors, so they are compacted after the entries that they locate. */
static void compact(stk_batch *slot, const stki_field_plan *plan, const stki_row_tensor *tensor)
{
    int64_t bytes;
    char *to = NULL;

    if (tensor->extent == STKI_OFFSETS) {
        compact_offsets(stki_row_counts(plan, slot->memory), slot->row_failed, slot->rows);
        return;
    }
    for (int64_t r = 0; r < slot->rows; r++) {
        char *from = stki_tensor_row(plan, tensor, slot->memory, r, &bytes);

        to = r == 0 ? from : to;
        if (slot->row_failed[r])
            continue;
        if (to != from)
            memmove(to, from, (size_t)bytes);
        to += bytes;
    }
}

void stki_slot_compact(stk_batch *slot, const stki_field_plan *plans, int plan_count)
{
    int64_t kept = 0, valid = 0;

    for (int i = 0; i < plan_count; i++)
        for (int k = 0; k < plans[i].tensor_count; k++)
            compact(slot, &plans[i], &plans[i].tensors[k]);
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
