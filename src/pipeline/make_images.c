/* make_images.c: images that pass through a worker's scratch memory (resample.h). The reader returns the requested part
 * of an image; its pixels become a row of the common shape, or keep their own shape (rows_images.h). */
#include "checked.h"
#include "error.h"
#include "late_rows.h"
#include "row_maker.h"
#include "store_image.h"
#include "tensor_internal.h"
#include <string.h>

typedef stk_status check_fn(const stk_batch *batch, const stki_field_plan *plan, int64_t row,
                            const stki_resampler *resampler, const stki_reader *shard, int64_t within, stk_error *err);
typedef stk_status store_fn(const stki_field_plan *plan, stki_resampler *resampler, const stk_tensor *view, void *row,
                            stk_error *err);

/* Makes a row. `check` may reject it before its image is read; `store` writes it from the pixels. */
static stk_status make_by(check_fn *check, store_fn *store, stki_worker *worker, const stki_field_plan *plan,
                          const stki_making_of *of, stk_error *err)
{
    stki_resampler *resampler = &worker->resamplers[plan->number];
    const stki_want *want;
    stki_reading r;
    const stk_tensor *view;
    stk_status status;

    stki_reading_begin(worker, plan, of, &r);
    status = stki_resample_want(plan, resampler, of->index, &of->occasion, r.shard, r.within, &want, err);
    if (status == STK_OK && check)
        status = check(worker->batch, plan, of->row, resampler, r.shard, r.within, err);
    if ((status = stki_reading_read(worker, &r, want, status, err)) != STK_OK)
        return status;
    status = stki_resample_view(plan, resampler, r.shard, r.within, &r.sample, &view, err);
    if (status == STK_OK)
        status = store(plan, resampler, view, of->to, err);
    stki_count_own(&worker->bytes_read, stk_tensor_nbytes(&r.sample));
    stki_reading_end(worker, plan, of, &r);
    return status;
}

/* ---- rows of one shape ---- */

static stk_status make_resampled(stki_worker *worker, const stki_field_plan *plan, const stki_making_of *of,
                                 stk_error *err)
{
    stk_status status = make_by(NULL, stki_resample_store, worker, plan, of, err);

    stki_count_own(&worker->bytes_written, plan->row_bytes);
    if (status == STK_OK && plan->erase.step) {
        stki_erase_row(plan, &of->occasion, of->to);
        stki_worker_spent(worker, &worker->convert_ns);
    }
    return status;
}

static bool is_resampled(const stki_field_plan *plan)
{
    return plan->image.resample;
}

const stki_row_maker stki_make_resampled = {.takes = is_resampled, .make = make_resampled};

/* ---- rows with their own shapes ---- */

/* Measures an image with its own shape: stores the shape and returns the number of elements. -1: the row failed. */
static int64_t measure(stki_worker *worker, const stki_field_plan *plan, int64_t row)
{
    const stk_batch *batch = worker->batch;
    int64_t within, *shape = stki_image_row_shape(plan, batch->memory, row), elements;
    const stki_reader *shard = stki_field_locate(plan->field, batch->samples[row], &within);
    const stki_occasion occasion = stki_occasion_of(batch, row);
    char path[STKI_RECORD_PATH];
    stk_error error;
    stk_status status;

    stki_worker_spent(worker, &worker->read_ns);
    stki_worker_does(worker, STKI_STAGE_READ, shard->path, within, worker->read_at);
    stki_watch_use(worker, plan, shard, batch->samples[row], NULL);
    status = stki_resample_measure(plan, &worker->resamplers[plan->number], batch->samples[row], &occasion, shard,
                                   within, shape, &error);
    if (status == STK_OK && (!stki_mul(shape[0], shape[1], &elements) || !stki_mul(elements, shape[2], &elements) ||
                             elements > plan->shape[0]))
        status = stki_fail_at(&error, STK_E_LIMIT,
                              (stki_place){stki_reader_path(shard, within, path), within, -1,
                                           STKI_TEXT("%s as a row", STKI_SHAPE(STKI_IMAGE_AXES, shape)),
                                           STKI_TEXT("at most %lld bytes", (long long)plan->shape[0])},
                              "%s: size of the image (ragged: {max_bytes: …} of the field allows larger images)",
                              plan->name);
    if (status == STK_OK)
        return elements;
    memset(shape, 0, STKI_IMAGE_SHAPE_BYTES);
    stki_read_fails(worker, shard, within, row, &error);
    return -1;
}

/* The image must still have the measured shape, because the space for the row has that size. */
static stk_status check_measured(const stk_batch *batch, const stki_field_plan *plan, int64_t row,
                                 const stki_resampler *resampler, const stki_reader *shard, int64_t within,
                                 stk_error *err)
{
    const int64_t *measured = stki_image_row_shape(plan, batch->memory, row);
    char path[STKI_RECORD_PATH];

    if (memcmp(resampler->row_shape, measured, STKI_IMAGE_SHAPE_BYTES) == 0)
        return STK_OK;
    return stki_fail_at(err, STK_E_CORRUPT,
                        (stki_place){stki_reader_path(shard, within, path), within, -1,
                                     STKI_SHAPE(STKI_IMAGE_AXES, resampler->row_shape),
                                     STKI_TEXT("%s, as measured before", STKI_SHAPE(STKI_IMAGE_AXES, measured))},
                        "%s: shape of the sample's row", plan->name);
}

static stk_status make_image(stki_worker *worker, const stki_field_plan *plan, const stki_making_of *of, stk_error *err)
{
    stki_batch_row row;

    stki_slot_row(worker->batch, plan, of->row, &row);
    stki_count_own(&worker->bytes_written, row.bytes);
    return make_by(check_measured, stki_image_store, worker, plan, of, err);
}

static bool has_shapes(const stki_field_plan *plan)
{
    return plan->rows->has_shapes;
}

const stki_row_maker stki_make_image = {.takes = has_shapes, .measure = measure, .make = make_image};
