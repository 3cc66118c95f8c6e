/* slot.h: the memory of one batch. One block holds, field by field, the rows (64-byte aligned), a varying field's
 * offsets, then sample indices, mask, positions and row states. Allocated and touched once, used for every batch that
 * comes through. */
#ifndef STKI_SLOT_H
#define STKI_SLOT_H

#include "allocate.h"
#include "order.h"
#include "plan.h"
#include "ring.h"
#include <stoker/loader.h>

typedef struct stki_core stki_core;

/* Where everything lies in a slot's block. */
typedef struct stki_slot_layout {
    int64_t max_rows;
    int64_t bytes;
    int64_t indices, mask, positions, failed, sources; /* offsets */
} stki_slot_layout;

/* A batch is its slot. */
struct stk_batch {
    stki_ring_slot ring; /* first: the ring knows this part only */
    stki_core *core;
    stki_counter holds; /* lease and DLPack exports; 0 sends the slot back */

    /* fixed after create */
    const stki_allocator *allocator;
    char *memory;
    int64_t *indices;
    int32_t *sources;
    uint8_t *mask;
    stki_position *positions;
    _Atomic uint8_t *row_failed;

    /* written by whoever opens or completes the step; read by the lease */
    int64_t epoch, step, rows, valid;
    uint64_t draw_key; /* of the epoch's random transforms */
    bool last_of_epoch;
    stki_counter failed_rows;

    stki_mutex error_lock; /* guards the two below while tiles run */
    int64_t error_row;     /* -1: none. The lowest row's error is kept, so that it does not depend on timing. */
    stk_error error;
};

/* Lays the plans' fields out for `max_rows` and sets their offsets. STK_E_LIMIT: does not fit in 63 bits. */
stk_status stki_slot_plan(stki_field_plan *plans, int plan_count, int64_t max_rows, stki_slot_layout *out,
                          stk_error *err);
stk_status stki_slot_create(stki_core *core, const stki_slot_layout *layout, stk_batch **out, stk_error *err);
void stki_slot_destroy(stk_batch *slot, const stki_slot_layout *layout);

static inline char *stki_slot_values(const stk_batch *slot, const stki_field_plan *plan)
{
    return slot->memory + plan->slot_offset;
}

static inline int64_t *stki_slot_offsets(const stk_batch *slot, const stki_field_plan *plan)
{
    return (int64_t *)(void *)(slot->memory + plan->offsets_offset);
}

/* Padded fields: 1 where a row has a value of its own. The first of the offsets is then the rows' common length, and
 * each row's own length follows. */
static inline uint8_t *stki_slot_pad_mask(const stk_batch *slot, const stki_field_plan *plan)
{
    return (uint8_t *)slot->memory + plan->mask_offset;
}

static inline int64_t stki_padded_length(const stk_batch *slot, const stki_field_plan *plan)
{
    return stki_slot_offsets(slot, plan)[0];
}

void stki_slot_fail(stk_batch *slot, int64_t row, const stk_error *error);
/* Closes the gaps of rows with row_failed set, in every field, keeping the order. Only with no tile running. */
void stki_slot_compact(stk_batch *slot, const stki_field_plan *plans, int plan_count);

#endif
