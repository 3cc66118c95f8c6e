/* row_error.c: counts and records a failed row of a batch; see core.h. */
#include "failed.h"

void stki_row_fails(stki_worker *worker, int64_t row, const stk_error *error)
{
    stki_core *core = worker->core;
    stk_batch *batch = worker->batch;
    const uint8_t before = atomic_exchange_explicit(&batch->row_failed[row], STKI_ROW_FAILED, memory_order_relaxed);

    if (before != STKI_ROW_FAILED) {
        stki_count(&core->failed_samples, 1);
        stki_count(&batch->failed_rows, before == STKI_ROW_FINE);
        stki_failed_note(core, batch, row, false, error);
    }
    stki_slot_fail(batch, row, error);
}

void stki_row_fails_with_partner(stki_worker *worker, int64_t row, const stk_error *error)
{
    stki_core *core = worker->core;
    stk_batch *batch = worker->batch;
    uint8_t before = STKI_ROW_FINE;

    if (atomic_compare_exchange_strong_explicit(&batch->row_failed[row], &before, STKI_ROW_FAILED_WITH_PARTNER,
                                                memory_order_relaxed, memory_order_relaxed)) {
        stki_count(&batch->failed_rows, 1);
        stki_failed_note(core, batch, row, true, error);
    }
    stki_slot_fail(batch, row, error);
}
