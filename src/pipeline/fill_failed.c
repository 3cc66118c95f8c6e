/* fill_failed.c: resolves the failed rows of a batch, in one worker, while no tile of the batch is running. A
 * substitute is drawn by (seed, sample, attempt), so that a failed sample is always replaced by the same one, before
 * and after a restart and on any rank. The substitute gets the row's random transforms, because they are drawn by
 * position. */
#include "failed.h"
#include "permutation.h"
#include "philox.h"
#include "row_maker.h"
#include <assert.h>
#include <string.h>

enum { ATTEMPTS = 8 };

#define KEY_SUBSTITUTE UINT64_C(0x7375627374697475) /* "substitu" */

/* Returns the substitute for `sample` at attempt 0, 1, …, or -1 if there is none. It is a pure function of the seed,
 * the sample and the attempt, and is drawn from the same data set and subset. */
static int64_t substitute_of(const stki_core *core, int64_t sample, int32_t source, int attempt)
{
    const uint64_t key = stki_order_key((uint64_t)core->config->seed, KEY_SUBSTITUTE);
    const uint64_t positions = (uint64_t)core->batching.length;

    if (positions == 0)
        return -1;
    for (int draw = 0; draw < 64; draw++) { /* in a mixture, repeats until the sample is from the same data set */
        uint64_t number = (uint64_t)attempt * 64 + (uint64_t)draw;
        uint64_t at = stki_philox_below(key, number, (uint64_t)sample, positions);
        stki_position position;

        if (stki_order_eval(core->order, 0, (int64_t)at, 1, &position, NULL) != STK_OK)
            return -1;
        if (position.source == source)
            return position.sample;
    }
    return -1;
}

static struct stki_failure *failure_of(stk_batch *batch, int64_t row)
{
    struct stki_failure *failure = batch->failures;

    while (failure && failure->row != row)
        failure = failure->next;
    return failure;
}

static void set_failed(stk_batch *batch, int64_t row)
{
    if (atomic_exchange_explicit(&batch->row_failed[row], STKI_ROW_FAILED, memory_order_relaxed) == STKI_ROW_FINE)
        stki_count(&batch->failed_rows, 1);
}

static void clear(stk_batch *batch, int64_t row)
{
    if (atomic_exchange_explicit(&batch->row_failed[row], STKI_ROW_FINE, memory_order_relaxed) != STKI_ROW_FINE)
        stki_count(&batch->failed_rows, -1);
}

static void take(const stki_core *core, stk_batch *batch, int64_t row, int64_t sample)
{
    batch->positions[row].sample = sample;
    batch->indices[row] = sample;
    batch->samples[row] = stki_dataset_sample(core->dataset, sample);
}

/* Measures the row's sample and stores the lengths. Returns false if it cannot be measured or does not fit in this
 * batch. */
static bool fit(stki_worker *worker, int64_t row, bool laid_out)
{
    const stki_core *core = worker->core;
    const stk_batch *batch = worker->batch;

    for (int f = 0; f < core->plan_count; f++) {
        const stki_field_plan *plan = &core->plans[f];
        int64_t length;

        if (!plan->rows->measured)
            continue;
        length = stki_measure_again(worker, plan, row);
        if (length < 0)
            return false;
        if (!laid_out)
            stki_row_counts(plan, batch->memory)[row + 1] = length;
        else if (!plan->rows->fit(plan, batch->memory, batch->rows, row, length))
            return false;
    }
    return true;
}

static bool replace(stki_worker *worker, struct stki_failure *failure, bool laid_out)
{
    const stki_core *core = worker->core;
    stk_batch *batch = worker->batch;
    int64_t row = failure->row;

    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        int64_t sample = substitute_of(core, failure->sample, failure->source, attempt);

        if (sample < 0 || sample == failure->sample)
            continue;
        clear(batch, row);
        take(core, batch, row, sample);
        if (fit(worker, row, laid_out)) {
            if (laid_out)
                stki_make_again(worker, row);
            if (!stki_row_has_failed(batch, row)) {
                failure->substitute = sample;
                return true;
            }
        }
        set_failed(batch, row);
    }
    failure->substitute = -1;
    take(core, batch, row, failure->sample);
    return false;
}

static void leave_out(const stki_core *core, stk_batch *batch)
{
    for (int64_t row = 0; row < batch->rows; row++) {
        if (!stki_row_has_failed(batch, row))
            continue;
        batch->left_out += batch->mask[row];
        if (core->batching.last == STKI_LAST_PAD) {
            for (int f = 0; f < core->plan_count; f++)
                core->plans[f].rows->clear(&core->plans[f], batch->memory, row);
            batch->valid -= batch->mask[row];
            batch->mask[row] = 0;
        }
    }
    if (core->batching.last != STKI_LAST_PAD)
        stki_slot_compact(batch, core->plans, core->plan_count);
}

/* Sets the batch's error to that of the first unresolved failure, because the slot's own error may belong to a row that
 * has been resolved. Returns false if every failure has been resolved. */
static bool find_error(stk_batch *batch)
{
    for (int64_t row = 0; row < batch->rows; row++) {
        struct stki_failure *failure;

        if (!stki_row_has_failed(batch, row))
            continue;
        failure = failure_of(batch, row);
        if (failure && failure->settled)
            continue;
        if (failure) {
            batch->error = failure->error;
            batch->error_row = row;
        }
        return true;
    }
    return false;
}

void stki_failed_settle(stki_worker *worker, bool last_phase)
{
    stki_core *core = worker->core;
    stk_batch *batch = worker->batch;

    if (!core->settles)
        return;
    for (struct stki_failure *failure = batch->failures; failure; failure = failure->next) {
        int policy = stki_failed_policy(core, failure->failed_source);

        if (!stki_row_has_failed(batch, failure->row) || !stki_failed_may_settle(failure->error.status) ||
            policy == STK_ON_ERROR_FAIL)
            continue; /* in the last phase, a substitute chosen in an earlier phase may have failed */
        failure->settled = policy == STK_ON_ERROR_SKIP || replace(worker, failure, last_phase);
    }
    if (!last_phase)
        return;
    if (find_error(batch))
        return;
    if (stki_counted(&batch->failed_rows) > 0)
        leave_out(core, batch);
    batch->error_row = -1;
}
