/* slot.h: the memory of one batch. One block holds, field by field, the tensors of its rows (256-byte aligned), the
 * late ones of all fields, then sample indices, mask, positions and row states. Allocated and touched once, used for
 * every batch that comes through. */
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

enum { STKI_DEVICE_ALIGNMENT = 256 }; /* of a field, for loads by a device, and what DLPack asks for */

/* Where everything lies in a slot's block. */
typedef struct stki_slot_layout {
    int64_t max_rows;
    int64_t bytes;
    int64_t rest; /* where the late tensors begin, and behind them what is known of each row */
    bool pairs;   /* some field's rows are made in pairs */
    bool windows; /* some field's rows are windows of samples */
    int64_t indices, samples, mask, positions, failed, sources, partners; /* offsets */
} stki_slot_layout;

/* Why a row is not delivered. */
enum stki_row_state {
    STKI_ROW_FINE,
    STKI_ROW_FAILED,             /* its own sample failed */
    STKI_ROW_FAILED_WITH_PARTNER /* only the sample that it is mixed with did */
};

/* A batch is its slot. */
struct stk_batch {
    stki_ring_slot ring; /* first: the ring knows this part only */
    stki_core *core;
    stki_counter holds; /* lease and DLPack exports; 0 sends the slot back */

    /* fixed after create */
    const stki_allocator *allocator;
    stki_stream_guards guards; /* in ordinary memory: what its users queued, which is waited for before it is filled */
    stk_device *pinned;        /* whose pinned memory it is; NULL: the allocator's */
    int device_slot;           /* its number among the batches on the device; -1: this one is in ordinary memory */
    char *memory;              /* of one on the device only what lies behind layout.rest is there */
    int64_t *indices;
    int64_t *samples; /* the fields' numbers of them: of windows the first samples, else `indices` itself */
    int32_t *sources;
    uint8_t *mask;
    stki_position *positions;
    stki_position *partners;     /* of each row, where rows are mixed; else NULL */
    _Atomic uint8_t *row_failed; /* enum stki_row_state */

    /* written by whoever opens or completes the step; read by the lease */
    int64_t epoch, step, rows, valid;
    uint64_t draw_key;                     /* of the epoch's random transforms */
    int64_t first_global_row, global_rows; /* of row 0 in the global batch, and how many that has */
    bool last_of_epoch;
    stki_counter failed_rows;
    stk_stream *stream;            /* on a device: the one that asked for the batch; held */
    stki_u128 digest;              /* of the rows, where it is asked for */
    int lease;                     /* in the core's progress */
    _Atomic bool used;             /* the lease has ended there */
    int64_t left_out;              /* samples that failed and are not in it */
    int64_t failed;                /* samples that failed and were left out or replaced; set when it is delivered */
    struct stki_failure *failures; /* by row (failed.h); guarded by error_lock while tiles run */

    stki_mutex error_lock; /* guards the two below while tiles run */
    int64_t error_row;     /* -1: none. The lowest row's error is kept, so that it does not depend on timing. */
    stk_error error;
};

/* Lays the plans' fields out for `max_rows` and sets their offsets. STK_E_LIMIT: does not fit in 63 bits. */
stk_status stki_slot_plan(stki_field_plan *plans, int plan_count, int64_t max_rows, stki_slot_layout *out,
                          stk_error *err);
/* `pin`: in pinned memory of this device; NULL: in ordinary memory. */
stk_status stki_slot_create(stki_core *core, const stki_slot_layout *layout, stk_device *pin, stk_batch **out,
                            stk_error *err);
/* Sets the pointers into the memory. */
void stki_slot_point(stk_batch *slot, const stki_slot_layout *layout);
/* Memory that streams still use at the deadline is left to the process. */
void stki_slot_destroy(stk_batch *slot, const stki_slot_layout *layout, int64_t deadline_ns);
/* Before it is filled again: waits for copies from it that its last users queued in streams. False: the ring stopped
 * meanwhile. */
bool stki_slot_await(stk_batch *slot);

/* Of the field's rows, or their entries. */
static inline char *stki_slot_values(const stk_batch *slot, const stki_field_plan *plan)
{
    return slot->memory + plan->tensors[0].offset;
}

static inline void stki_slot_row(const stk_batch *slot, const stki_field_plan *plan, int64_t row, stki_batch_row *out)
{
    plan->rows->row(plan, slot->memory, row, out);
}

/* Anybody may ask, also while others still work on the row. */
static inline bool stki_row_has_failed(const stk_batch *slot, int64_t row)
{
    return atomic_load_explicit(&slot->row_failed[row], memory_order_relaxed) != STKI_ROW_FINE;
}

/* The row's own sample has failed, so that nothing more is to be learned from its other fields. */
static inline bool stki_sample_has_failed(const stk_batch *slot, int64_t row)
{
    return atomic_load_explicit(&slot->row_failed[row], memory_order_relaxed) == STKI_ROW_FAILED;
}

void stki_slot_fail(stk_batch *slot, int64_t row, const stk_error *error);
/* Closes the gaps of rows with row_failed set, in every field, keeping the order. Only with no tile running. */
void stki_slot_compact(stk_batch *slot, const stki_field_plan *plans, int plan_count);

#endif
