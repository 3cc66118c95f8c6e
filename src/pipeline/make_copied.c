/* make_copied.c: rows of varying length. Samples are copied, or cast, to their place among the batch's concatenated
 * rows. */
#include "error.h"
#include "row_maker.h"
#include "tensor_internal.h"
#include <string.h>

/* ---- lengths ---- */

/* Finds a sample whose shape differs from `shape` after the first axis; -1: there is none among the first AT_MOST
 * samples. */
static int64_t unlike(const stki_field_plan *plan, const int64_t *shape)
{
    enum { AT_MOST = 100000 };
    const stki_field *field = plan->field;
    const int64_t count = stki_field_count(field) - field->ahead;
    int64_t within, other[STK_MAX_DIMS];

    for (int64_t i = 0; i < count && i < AT_MOST; i++) {
        const stki_reader *shard = stki_field_locate(field, i, &within);

        if (stki_reader_shape(shard, within, other, NULL) == STK_OK &&
            memcmp(other + 1, shape + 1, (size_t)(plan->ndim - 1) * sizeof shape[0]) != 0)
            return i;
    }
    return -1;
}

/* Rows of a field whose first axis varies are concatenated, so the other axes of all samples must match those of the
 * plan. */
static stk_status check_trailing(const stki_field_plan *plan, const stki_reader *shard, int64_t within,
                                 const int64_t *shape, stk_error *err)
{
    int64_t other, other_within = 0, other_shape[STK_MAX_DIMS];
    char path[STKI_RECORD_PATH], other_path[STKI_RECORD_PATH];
    const stki_reader *other_shard;

    if (memcmp(shape + 1, plan->shape + 1, (size_t)(plan->ndim - 1) * sizeof shape[0]) == 0)
        return STK_OK;
    other = unlike(plan, shape);
    other_shard = other < 0 ? shard : stki_field_locate(plan->field, other, &other_within);
    if (other < 0 || stki_reader_shape(other_shard, other_within, other_shape, NULL) != STK_OK)
        return stki_fail_at(err, STK_E_MISMATCH,
                            (stki_place){stki_reader_path(shard, within, path), within, -1,
                                         STKI_SHAPE(plan->ndim, shape), STKI_SHAPE(plan->ndim, plan->shape)},
                            "%s: axes after the first", plan->name);
    return stki_fail_at(err, STK_E_MISMATCH,
                        (stki_place){stki_reader_path(shard, within, path), within, -1, STKI_SHAPE(plan->ndim, shape),
                                     STKI_SHAPE(plan->ndim, other_shape)},
                        "%s: the sample differs from record %lld of %s in more than its first axis; images need a "
                        "source layout and a resize or crop",
                        plan->name, (long long)other_within, stki_reader_path(other_shard, other_within, other_path));
}

static int64_t measure(stki_worker *worker, const stki_field_plan *plan, int64_t row)
{
    const stk_batch *batch = worker->batch;
    int64_t within, shape[STK_MAX_DIMS], length = -1;
    char path[STKI_RECORD_PATH];
    const stki_reader *shard = stki_field_locate(plan->field, batch->samples[row], &within);
    stk_error error;
    stk_status status;

    stki_worker_spent(worker, &worker->read_ns);
    stki_worker_does(worker, STKI_STAGE_READ, shard->path, within, worker->read_at);
    stki_watch_use(worker, plan, shard, batch->samples[row], NULL);
    status = stki_reader_shape(shard, within, shape, &error);
    if (status == STK_OK && plan->ndim > 1)
        status = check_trailing(plan, shard, within, shape, &error);
    if (status != STK_OK) {
        stki_read_fails(worker, shard, within, row, &error);
    } else if (shape[0] > plan->shape[0] && plan->truncates) {
        length = plan->shape[0];
    } else if (shape[0] > plan->shape[0] || shape[0] < 0) {
        stki_fail_at(&error, STK_E_LIMIT,
                     (stki_place){stki_reader_path(shard, within, path), within, -1,
                                  STKI_TEXT("%lld", (long long)shape[0]),
                                  STKI_TEXT("at most %lld", (long long)plan->shape[0])},
                     "%s: length of the sample (%s)", plan->name, plan->too_long);
        stki_read_fails(worker, shard, within, row, &error);
    } else {
        length = shape[0];
    }
    return length;
}

/* ---- rows ---- */

/* Copies or casts a sample whose length is already known from its index. */
static void copy(stki_worker *worker, const stki_field_plan *plan, const stki_reader *shard, int64_t within,
                 int64_t row, const stk_tensor *sample)
{
    const stk_batch *batch = worker->batch;
    int64_t length, shape[STK_MAX_DIMS];
    char path[STKI_RECORD_PATH];
    stki_batch_row to;
    stk_error error;

    stki_slot_row(batch, plan, row, &to);
    length = to.entries;
    if (sample->shape[0] != length && !(plan->truncates && length == plan->shape[0] && sample->shape[0] > length)) {
        stki_fail_at(&error, STK_E_CORRUPT,
                     (stki_place){stki_reader_path(shard, within, path), within, -1,
                                  STKI_TEXT("%lld", (long long)sample->shape[0]),
                                  STKI_TEXT("%lld, as in its index", (long long)length)},
                     "%s: length of the sample", plan->name);
        stki_read_fails(worker, shard, within, row, &error);
        return;
    }
    if (sample->ndim > 1 && check_trailing(plan, shard, within, sample->shape, &error) != STK_OK) {
        stki_read_fails(worker, shard, within, row, &error);
        return;
    }
    memcpy(shape, sample->shape, sizeof shape);
    shape[0] = length;
    stki_copy_strided(to.data, plan->dtype, plan->strides, sample->data, sample->dtype, sample->strides,
                      (sample->flags & STK_TENSOR_SWAPPED) != 0, sample->ndim, shape);
    if (plan->rows->complete)
        plan->rows->complete(plan, batch->memory, row);
    stki_count_own(&worker->bytes_read, stk_tensor_nbytes(sample));
    stki_count_own(&worker->bytes_written, to.bytes);
}

static stk_status make(stki_worker *worker, const stki_field_plan *plan, const stki_making_of *of, stk_error *err)
{
    stki_reading r;
    stk_status status;

    stki_reading_begin(worker, plan, of, &r);
    if ((status = stki_reading_read(worker, &r, NULL, STK_OK, err)) != STK_OK)
        return status;
    copy(worker, plan, r.shard, r.within, of->row, &r.sample);
    stki_reading_end(worker, plan, of, &r);
    return STK_OK;
}

static bool takes(const stki_field_plan *plan)
{
    return plan->rows->measured;
}

const stki_row_maker stki_make_copied = {.takes = takes, .measure = measure, .make = make};
