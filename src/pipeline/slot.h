/* slot.h: the memory of one batch. One block holds the tensors of each field's rows in turn (256-byte aligned), then
 * the late tensors of all fields, then sample indices, mask, positions and row states. It is allocated and touched once
 * and reused for every batch that passes through the slot. */
#ifndef STKI_SLOT_H
#define STKI_SLOT_H

#include "allocate.h"
#include "digest.h"
#include "order.h"
#include "plan.h"
#include "ring.h"
#include "stream_guards.h"
#include <stoker/loader.h>

typedef struct stki_core stki_core;

enum { STKI_DEVICE_ALIGNMENT = 256 }; /* alignment of a field's tensors, for device loads and required by DLPack */

/* Offsets in a slot's block. */
typedef struct stki_slot_layout {
    int64_t max_rows;
    int64_t bytes;
    int64_t rest; /* offset of the late tensors; the per-row data follows them */
    bool pairs;   /* some field's rows are mixed in pairs */
    bool windows; /* some field's rows are windows of samples */
    int64_t indices, samples, mask, positions, failed, sources, partners; /* offsets */
} stki_slot_layout;

/* Why a row is not delivered. */
enum stki_row_state {
    STKI_ROW_FINE,
    STKI_ROW_FAILED,             /* its own sample failed */
    STKI_ROW_FAILED_WITH_PARTNER /* only the sample it is mixed with failed */
};

/* A batch and its slot are the same object. The thread that fills the slot and the consumer write to different cache
 * lines. */
struct stk_batch {
    stki_ring_slot ring; /* must be first: the ring casts to it */
    /* written by the thread that opens or completes the step, read by the consumer */
    int64_t epoch, step, rows, valid;
    int64_t error_row; /* the lowest row that failed, so that the result does not depend on timing; -1: none */
    stki_u128 digest;  /* digest of the rows, if enabled */
    struct stki_failure *failures; /* sorted by row (failed.h); guarded by error_lock while tiles run */
    stki_counter failed_rows;
    int64_t left_out;  /* number of valid rows that were skipped */
    uint64_t draw_key; /* key of the epoch's random transforms */
    /* number of row 0 in the global batch, and the number of rows in that batch */
    int64_t first_global_row, global_rows;
    bool last_of_epoch;

    char apart[64];
    stki_counter holds; /* number of holds: the lease and DLPack exports; at 0 the slot returns to the ring */
    int64_t failed;     /* number of failed samples skipped or replaced; set on delivery */
    int lease;          /* lease number in core->progress */
    _Atomic bool used;  /* the lease in core->progress has ended */
    stk_stream *stream; /* on a device: the stream that requested the batch; retained */

    char apart_too[64];
    /* constant after create */
    stki_core *core;
    const stki_allocator *allocator;
    stki_stream_guards guards; /* for batches in host memory: queued work that uses the slot, which must finish before
                                  it is refilled */
    stk_device *pinned;        /* the device that pinned the memory; NULL: from the allocator */
    int device_slot;           /* device slot number; -1: the batch is in host memory */
    char *memory;              /* if the batch is on a device, only the part from layout.rest on exists */
    int64_t *indices;
    int64_t *samples; /* the samples that the fields read: the first sample of each window, or, without windows, the
                         same memory as `indices` */
    int32_t *sources;
    uint8_t *mask;
    stki_position *positions;
    stki_position *partners;     /* one per row if rows are mixed, otherwise NULL */
    _Atomic uint8_t *row_failed; /* enum stki_row_state */

    stki_mutex error_lock; /* guards `error`, `error_row` and `failures` while tiles run */
    stk_error error;
};

/* Lays out the plans' fields for `max_rows` and sets their offsets. STK_E_LIMIT: the size exceeds 63 bits. */
stk_status stki_slot_plan(stki_field_plan *plans, int plan_count, int64_t max_rows, stki_slot_layout *out,
                          stk_error *err);
/* `pin`: the device whose pinned memory is used; NULL: ordinary memory. */
stk_status stki_slot_create(stki_core *core, const stki_slot_layout *layout, stk_device *pin, stk_batch **out,
                            stk_error *err);
/* Sets the pointers into the memory. */
void stki_slot_point(stk_batch *slot, const stki_slot_layout *layout);
/* Does not wait. If streams still use the memory, it is leaked. */
void stki_slot_destroy(stk_batch *slot, const stki_slot_layout *layout);
/* Waits until the streams that use the slot's memory have finished, or until the deadline (INT64_MAX: none). Returns
 * whether they have finished. */
bool stki_slot_has_passed(stk_batch *slot, int64_t deadline_ns);
/* Call before the slot is refilled: waits for work that uses its memory and was queued in streams. Returns false if the
 * ring was stopped meanwhile. */
bool stki_slot_await(stk_batch *slot);

/* Returns the address of the field's rows or entries. */
static inline char *stki_slot_values(const stk_batch *slot, const stki_field_plan *plan)
{
    return slot->memory + plan->tensors[0].offset;
}

static inline void stki_slot_row(const stk_batch *slot, const stki_field_plan *plan, int64_t row, stki_batch_row *out)
{
    plan->rows->row(plan, slot->memory, row, out);
}

/* May be called by any thread, even while others work on the row. */
static inline bool stki_row_has_failed(const stk_batch *slot, int64_t row)
{
    return atomic_load_explicit(&slot->row_failed[row], memory_order_relaxed) != STKI_ROW_FINE;
}

/* Whether the row's own sample has failed, in which case its other fields need not be read. */
static inline bool stki_sample_has_failed(const stk_batch *slot, int64_t row)
{
    return atomic_load_explicit(&slot->row_failed[row], memory_order_relaxed) == STKI_ROW_FAILED;
}

void stki_slot_fail(stk_batch *slot, int64_t row, const stk_error *error);
/* Removes the rows with row_failed set from every field and keeps the order of the others. No tile may be running. */
void stki_slot_compact(stk_batch *slot, const stki_field_plan *plans, int plan_count);

#endif
