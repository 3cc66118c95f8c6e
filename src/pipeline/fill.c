/* fill.c: what the workers do for the ring. Phase 0 measures the rows of fields whose shapes vary (it has no tiles
 * where there are none); phase 1 moves bytes. A tile of phase 1 is a run of rows of about tile_bytes of output with all
 * their fields, or a part of one row when a row is many tiles long and reading it costs nothing.
 *
 * Errors belong to their row: the rest of the tile goes on, the slot keeps the error of its lowest row, and the
 * consumer gets it in the place of that batch.
 */
#include "checked.h"
#include "clock.h"
#include "core.h"
#include "error.h"
#include "failed.h"
#include "file.h"
#include "fill_made.h"
#include "log.h"
#include "rows_images.h"
#include "tensor_internal.h"
#include <assert.h>
#include <inttypes.h>
#include <string.h>

static stki_counter convert_fails_in;

static const uint64_t CALL_DRAW = UINT64_C(0x63616c6c); /* "call": the name of the draw that call steps are given */

void stki_fill_test_fail_convert(int64_t n)
{
    stki_count_set(&convert_fails_in, n);
}

static stk_batch *batch_of(stki_ring_slot *slot)
{
    return (stk_batch *)(void *)slot;
}

static void doing(stki_worker *worker, enum stki_stage stage, const char *path, int64_t record, int64_t now)
{
    stki_count_set(&worker->since_ns, -1);
    atomic_store_explicit(&worker->path, path, memory_order_release);
    atomic_store_explicit(&worker->record, record, memory_order_release);
    atomic_store_explicit(&worker->stage, stage, memory_order_release);
    atomic_store_explicit(&worker->since_ns, now, memory_order_release);
}

/* Conversion of mapped samples from this one of the field on. */
static void doing_mapped(stki_worker *worker, const stki_field *field, int64_t index, int64_t now)
{
    int64_t within;
    const stki_reader *shard = stki_field_locate(field, index, &within);

    doing(worker, STKI_STAGE_MAPPED, shard->path, within, now);
}

/* What a reader says of bytes that a changed file no longer has is beside the point. */
static void read_fails(stki_core *core, stk_batch *batch, const stki_reader *shard, int64_t within, int64_t row,
                       stk_error *error)
{
    if (shard->file)
        (void)stki_file_intact(shard->file, within, error);
    stki_row_fails(core, batch, row, error);
}

/* ---- begin ----------------------------------------------------------------------------------------------------------
 */

enum { ADVISED_TOGETHER = 128 };

/* Tells the readers of one field what of them will be read by these rows, in the order of use: one call a shard, for a
 * random order changes the shard with every row. */
static void advise_rows(const stki_field *field, const int64_t *indices, int rows, stki_worker *worker)
{
    int shards[ADVISED_TOGETHER];
    int64_t within[ADVISED_TOGETHER], its[ADVISED_TOGETHER], now = stki_now_ns();

    for (int row = 0; row < rows; row++)
        shards[row] = stki_field_shard(field, indices[row], &within[row]);
    for (int row = 0; row < rows; row++) {
        const int number = shards[row];
        const stki_reader *shard = number >= 0 ? field->shards[number] : NULL;
        int n = 0;

        if (!shard || !shard->ops->will_need)
            continue;
        for (int other = row; other < rows; other++) {
            its[n] = within[other];
            n += shards[other] == number;
            shards[other] = shards[other] == number ? -1 : shards[other];
        }
        doing(worker, STKI_STAGE_ORDER, shard->path, its[0], now);
        shard->ops->will_need(shard, its, n);
    }
}

/* The same for rows that are windows, some of their samples at a time. */
static void advise_windows(const stki_field_plan *plan, const stk_batch *batch, stki_worker *worker)
{
    const int64_t length = plan->shape[0], dilation = plan->config->window.dilation;
    int64_t samples[ADVISED_TOGETHER];
    int n = 0, asked = 0;

    for (int k = 0; k < plan->field->shard_count; k++)
        asked += plan->field->shards[k]->ops->will_need != NULL;
    for (int64_t row = 0; asked > 0 && row < batch->rows; row++)
        for (int64_t k = 0; k < length; k++) {
            samples[n++] = batch->samples[row] + k * dilation;
            if (n == ADVISED_TOGETHER || (row == batch->rows - 1 && k == length - 1)) {
                advise_rows(plan->field, samples, n, worker);
                n = 0;
            }
        }
}

static void advise(stki_core *core, stk_batch *batch, stki_worker *worker)
{
    for (int f = 0; f < core->plan_count; f++) {
        const stki_field *field = core->plans[f].field;

        if (core->plans[f].each) {
            advise_windows(&core->plans[f], batch, worker);
            continue;
        }
        if (field->shard_count == 1) { /* a sample's index is its place in the one file */
            if (field->shards[0]->ops->will_need && batch->rows > 0)
                field->shards[0]->ops->will_need(field->shards[0], batch->samples, batch->rows);
            continue;
        }
        for (int64_t row = 0, n; row < batch->rows; row += n) {
            n = batch->rows - row < ADVISED_TOGETHER ? batch->rows - row : ADVISED_TOGETHER;
            advise_rows(field, batch->samples + row, (int)n, worker);
        }
    }
}

static int64_t byte_tiles(const stki_core *core, const stk_batch *batch)
{
    if (core->parts_per_row > 1)
        return batch->rows * core->parts_per_row;
    return (batch->rows + core->rows_per_tile - 1) / core->rows_per_tile;
}

/* Of all ranks together. */
static int64_t global_rows(const stki_core *core, int64_t step)
{
    const stki_batching *b = &core->batching;
    const int64_t left = b->length - step * b->global_batch;

    return b->last == STKI_LAST_PAD || left > b->global_batch ? b->global_batch : left;
}

static int64_t begin(void *context, stki_ring_slot *slot, int number)
{
    stki_core *core = context;
    stki_worker *worker = &core->workers[number];
    stk_batch *batch = batch_of(slot);
    int64_t before = stki_now_ns();
    stki_batch_rows rows;
    stk_error error;
    stk_status status = STK_OK;

    doing(worker, STKI_STAGE_ORDER, NULL, slot->step, before);
    batch->epoch = slot->step / core->steps;
    batch->draw_key = stki_draw_key((uint64_t)core->config->seed, batch->epoch);
    batch->step = slot->step % core->steps;
    batch->last_of_epoch = batch->step == core->steps - 1;
    batch->error_row = -1;
    stki_count_set(&batch->failed_rows, 0);
    batch->digest = (stki_u128){0};
    batch->left_out = 0;
    stki_failed_forget(batch);
    rows = stki_batching_rows(&core->batching, batch->step);
    batch->rows = rows.rows;
    batch->valid = rows.valid;
    for (int64_t r = 0; r < rows.rows && status == STK_OK;) {
        /* Padding wraps around the epoch's end, so it is evaluated in pieces. */
        int64_t first = (rows.first + r) % core->batching.length, n = core->batching.length - first;

        n = n < rows.rows - r ? n : rows.rows - r;
        status = stki_order_eval(core->order, batch->epoch, first, n, batch->positions + r, &error);
        if (first == rows.first)
            stki_order_ahead(core->order, batch->epoch, first, n, core->end / core->steps);
        r += n;
    }
    batch->first_global_row = rows.first_row;
    batch->global_rows = global_rows(core, batch->step);
    if (status == STK_OK && batch->partners)
        status = stki_made_begin(core, batch, &error);
    if (status != STK_OK) {
        batch->rows = batch->valid = 0;
        stki_slot_fail(batch, 0, &error);
    }
    for (int64_t r = 0; r < batch->rows; r++) {
        batch->indices[r] = batch->positions[r].sample;
        batch->sources[r] = batch->positions[r].source;
        batch->mask[r] = r < batch->valid;
        atomic_store_explicit(&batch->row_failed[r], STKI_ROW_FINE, memory_order_relaxed);
    }
    for (int64_t r = 0; core->layout.windows && r < batch->rows; r++)
        batch->samples[r] = stki_dataset_sample(core->dataset, batch->indices[r]);
    stki_log(STKI_LOG_ring, "worker %d opens epoch %lld step %lld: %lld rows", number, (long long)batch->epoch,
             (long long)batch->step, (long long)batch->rows);
    advise(core, batch, worker);
    stki_count(&worker->order_ns, stki_now_ns() - before);
    doing(worker, STKI_STAGE_IDLE, NULL, -1, before);
    return core->measures ? (batch->rows + core->rows_per_tile - 1) / core->rows_per_tile : 0;
}

/* ---- phase 0: lengths ---------------------------------------------------------------------------------------------
 */

/* A sample whose axes behind the first differ from these; -1: not found soon. */
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

/* Rows of a field whose first axis varies are put one behind the other: the other axes must be those of the row. */
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
                            "%s: axes behind the first", plan->name);
    return stki_fail_at(err, STK_E_MISMATCH,
                        (stki_place){stki_reader_path(shard, within, path), within, -1, STKI_SHAPE(plan->ndim, shape),
                                     STKI_SHAPE(plan->ndim, other_shape)},
                        "%s: the sample differs from record %lld of %s in more than its first axis; images need a "
                        "source layout and a resize or crop",
                        plan->name, (long long)other_within, stki_reader_path(other_shard, other_within, other_path));
}

static stki_occasion occasion_of(const stk_batch *batch, int64_t row)
{
    return (stki_occasion){batch->draw_key, batch->positions[row].draw};
}

/* An image in a shape of its own: the shape, and how many elements that are. -1: the row has failed. */
static int64_t measure_image(stki_core *core, stk_batch *batch, const stki_field_plan *plan, int64_t row,
                             stki_worker *worker)
{
    int64_t within, *shape = stki_image_row_shape(plan, batch->memory, row), elements;
    const stki_reader *shard = stki_field_locate(plan->field, batch->samples[row], &within);
    const stki_occasion occasion = occasion_of(batch, row);
    char path[STKI_RECORD_PATH];
    stk_error error;
    stk_status status;

    doing(worker, STKI_STAGE_READ, shard->path, within, stki_now_ns());
    stki_watch_use(worker, plan, shard, batch->samples[row], NULL);
    status = stki_resample_measure(plan, &worker->resamplers[plan->number], batch->samples[row], &occasion, shard,
                                   within, shape, &error);
    if (status == STK_OK && (!stki_mul(shape[0], shape[1], &elements) || !stki_mul(elements, shape[2], &elements) ||
                             elements > plan->shape[0]))
        status = stki_fail_at(&error, STK_E_LIMIT,
                              (stki_place){stki_reader_path(shard, within, path), within, -1,
                                           STKI_TEXT("%s as a row", STKI_SHAPE(STKI_OWN_AXES, shape)),
                                           STKI_TEXT("at most %lld bytes", (long long)plan->shape[0])},
                              "%s: size of the image (ragged: {max_bytes: …} of the field makes room for larger ones)",
                              plan->name);
    if (status == STK_OK)
        return elements;
    memset(shape, 0, STKI_OWN_SHAPE_BYTES);
    read_fails(core, batch, shard, within, row, &error);
    return -1;
}

/* -1: the row has failed. */
static int64_t measure_row(stki_core *core, stk_batch *batch, const stki_field_plan *plan, int64_t row,
                           stki_worker *worker)
{
    int64_t within, shape[STK_MAX_DIMS], length = -1;
    char path[STKI_RECORD_PATH];
    const stki_reader *shard = stki_field_locate(plan->field, batch->samples[row], &within);
    stk_error error;
    stk_status status;

    if (plan->rows->has_shapes)
        return measure_image(core, batch, plan, row, worker);
    doing(worker, STKI_STAGE_READ, shard->path, within, stki_now_ns());
    stki_watch_use(worker, plan, shard, batch->samples[row], NULL);
    status = stki_reader_shape(shard, within, shape, &error);
    if (status == STK_OK && plan->ndim > 1)
        status = check_trailing(plan, shard, within, shape, &error);
    if (status != STK_OK) {
        read_fails(core, batch, shard, within, row, &error);
    } else if (shape[0] > plan->shape[0] && plan->truncates) {
        length = plan->shape[0];
    } else if (shape[0] > plan->shape[0] || shape[0] < 0) {
        stki_fail_at(&error, STK_E_LIMIT,
                     (stki_place){stki_reader_path(shard, within, path), within, -1,
                                  STKI_TEXT("%lld", (long long)shape[0]),
                                  STKI_TEXT("at most %lld", (long long)plan->shape[0])},
                     "%s: length of the sample (%s)", plan->name, plan->too_long);
        read_fails(core, batch, shard, within, row, &error);
    } else {
        length = shape[0];
    }
    return length;
}

static int64_t measure(stki_core *core, stk_batch *batch, const stki_field_plan *plan, int64_t row, stki_worker *worker)
{
    int64_t length;

    stki_watch_begin(worker, batch, row, row + 1);
    length = measure_row(core, batch, plan, row, worker);
    stki_watch_end(worker);
    return stki_row_has_failed(batch, row) ? -1 : length;
}

static void measure_into(stki_core *core, stk_batch *batch, const stki_field_plan *plan, int64_t row,
                         stki_worker *worker)
{
    int64_t length = measure_row(core, batch, plan, row, worker);

    stki_row_counts(plan, batch->memory)[row + 1] = length < 0 ? 0 : length;
}

static void measure_tile(stki_core *core, stk_batch *batch, int64_t tile, stki_worker *worker)
{
    int64_t first = tile * core->rows_per_tile, last = first + core->rows_per_tile, before = stki_now_ns();

    last = last < batch->rows ? last : batch->rows;
    stki_watch_begin(worker, batch, first, last);
    for (int f = 0; f < core->plan_count; f++)
        for (int64_t row = first; core->plans[f].rows->measured && row < last; row++)
            measure_into(core, batch, &core->plans[f], row, worker);
    stki_watch_end(worker);
    stki_count(&worker->read_ns, stki_now_ns() - before);
}

/* ---- phase 1: bytes ------------------------------------------------------------------------------------------------
 */

/* False, with the rows failed, when a test wants this conversion to fail. */
static bool convert_may_run(stki_core *core, stk_batch *batch, const stki_field_plan *plan, int64_t row, int64_t rows)
{
    stk_error error;

    if (stki_counted(&convert_fails_in) <= 0 ||
        atomic_fetch_sub_explicit(&convert_fails_in, 1, memory_order_relaxed) != 1)
        return true;
    for (int64_t r = row; r < row + rows; r++) {
        stki_fail(&error, STK_E_DEVICE, "%s: conversion of sample %lld failed", plan->name,
                  (long long)batch->indices[r]);
        stki_row_fails(core, batch, r, &error);
    }
    return false;
}

/* Copies or casts a sample whose length its index has told before. */
static void convert_ragged(stki_core *core, stk_batch *batch, const stki_field_plan *plan, const stki_reader *shard,
                           int64_t within, int64_t row, const stk_tensor *sample, stki_worker *worker)
{
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
                                  STKI_TEXT("%lld as its index says", (long long)length)},
                     "%s: length of the sample", plan->name);
        read_fails(core, batch, shard, within, row, &error);
        return;
    }
    if (sample->ndim > 1 && check_trailing(plan, shard, within, sample->shape, &error) != STK_OK) {
        read_fails(core, batch, shard, within, row, &error);
        return;
    }
    memcpy(shape, sample->shape, sizeof shape);
    shape[0] = length;
    stki_copy_strided(to.data, plan->dtype, plan->strides, sample->data, sample->dtype, sample->strides,
                      (sample->flags & STK_TENSOR_SWAPPED) != 0, sample->ndim, shape);
    if (plan->rows->complete)
        plan->rows->complete(plan, batch->memory, row);
    stki_count(&worker->bytes_read, stk_tensor_nbytes(sample));
    stki_count(&worker->bytes_written, to.bytes);
}

/* What a row is seen through that is a view: what all are, or a placing of its own, which `own` holds. */
static stk_status placing_of(const stki_field_plan *plan, const stki_occasion *occasion, stki_placing *own,
                             const stki_placing **out, stk_error *err)
{
    const int64_t *shape = plan->sample_shape;

    *out = plan->random ? own : &plan->placing;
    if (!plan->random)
        return STK_OK;
    return stki_geometry_apply(plan->geometry, shape[plan->height_axis], shape[plan->width_axis], NULL, occasion, own,
                               err);
}

/* Puts one row into the worker's list for a conversion of many: where its element 0, 0, … is, and how it is converted.
 * False: it is made by way of a block. */
static bool list_row(const stk_batch *batch, const stki_field_plan *plan, int64_t row, int shard, const char *address,
                     stki_worker *worker, int64_t n)
{
    const stki_placing *placing;
    stki_placing own;

    const stki_occasion occasion = occasion_of(batch, row);

    if (placing_of(plan, &occasion, &own, &placing, NULL) != STK_OK || placing->padded)
        return false;
    worker->pointers[n] = address + stki_plan_view_offset(plan, placing, plan->field->shards[shard]->strides);
    worker->converts[n] = stki_plan_convert(plan, shard, placing->orientation);
    return true;
}

/* Converts `n` rows of the list, from `row` on. */
static void convert_list(stki_core *core, stk_batch *batch, const stki_field_plan *plan, int64_t row, int64_t n,
                         stki_worker *worker)
{
    char *to = stki_slot_values(batch, plan) + row * plan->row_bytes;
    const stki_convert *first = worker->converts[0];

    if (!convert_may_run(core, batch, plan, row, n))
        return;
    if (plan->random)
        stki_convert_run_each(worker->converts, to, plan->row_bytes, worker->pointers, n);
    else
        stki_convert_run_many(first, to, plan->row_bytes, worker->pointers, n);
    stki_count(&worker->bytes_read, n * stki_convert_bytes_read(first));
    stki_count(&worker->bytes_written, n * stki_convert_bytes_written(first));
}

static void convert_fixed(const stki_field_plan *plan, const stki_placing *placing, int shard_number, void *to,
                          const stk_tensor *sample, int64_t part, int64_t parts, stki_worker *worker)
{
    const stki_convert *convert = stki_plan_convert(plan, shard_number, placing->orientation);
    const char *from =
        (const char *)sample->data + stki_plan_view_offset(plan, placing, plan->field->shards[shard_number]->strides);
    int64_t units = stki_convert_units(convert);

    stki_convert_run_part(convert, to, from, units * part / parts, units * (part + 1) / parts);
    if (part == 0) {
        stki_count(&worker->bytes_read, stki_convert_bytes_read(convert));
        stki_count(&worker->bytes_written, stki_convert_bytes_written(convert));
    }
}

/* What a changed file no longer has is beside the point; else the reader's own error. */
static stk_status read_error(const stki_reader *shard, int64_t within, stk_status status, stk_error *err)
{
    stk_status changed = shard->file ? stki_file_intact(shard->file, within, err) : STK_OK;

    return changed != STK_OK ? changed : status;
}

/* For readers that run the user's own code. */
static void give_draw(const stki_reader *shard, const stki_making_of *of, stki_worker *worker)
{
    if (shard->draws)
        worker->scratch.draw = stki_draw_seed(&of->occasion, CALL_DRAW);
}

/* A conversion has ended. What it waited for pages of mapped files counts as reading. */
static void count_convert(stki_worker *worker, const stki_paging *paging, int64_t began)
{
    const int64_t ns = stki_now_ns() - began, pages = stki_paging_end(&worker->parts, paging, ns);

    stki_count(&worker->convert_ns, ns - pages);
    if (pages > 0)
        stki_count(&worker->read_ns, pages);
}

/* An image must still be what it was measured as: its row's room is of that size. */
static stk_status check_measured(const stk_batch *batch, const stki_field_plan *plan, int64_t row,
                                 const stki_resampler *resampler, const stki_reader *shard, int64_t within,
                                 stk_error *err)
{
    const int64_t *measured = stki_image_row_shape(plan, batch->memory, row);
    char path[STKI_RECORD_PATH];

    if (memcmp(resampler->row_shape, measured, STKI_OWN_SHAPE_BYTES) == 0)
        return STK_OK;
    return stki_fail_at(err, STK_E_CORRUPT,
                        (stki_place){stki_reader_path(shard, within, path), within, -1,
                                     STKI_SHAPE(STKI_OWN_AXES, resampler->row_shape),
                                     STKI_TEXT("%s as a moment ago", STKI_SHAPE(STKI_OWN_AXES, measured))},
                        "%s: shape of the sample's row", plan->name);
}

static int64_t bytes_of_row(const stk_batch *batch, const stki_field_plan *plan, int64_t row)
{
    stki_batch_row at;

    if (!plan->rows->has_shapes)
        return stki_convert_bytes_written(plan->converts[0]);
    stki_slot_row(batch, plan, row, &at);
    return at.bytes;
}

/* One row by way of the worker's own memory: an image that is resized, or has a size of its own. */
static stk_status make_resampled(stki_core *core, stk_batch *batch, const stki_field_plan *plan,
                                 const stki_making_of *of, stki_worker *worker, stk_error *err)
{
    int64_t within, before = stki_now_ns(), between;
    const stki_reader *shard = stki_field_locate(plan->field, of->index, &within);
    stki_resampler *resampler = &worker->resamplers[plan->number];
    const stki_want *want;
    stki_paging paging;
    stk_tensor sample;
    stk_status status;

    doing(worker, STKI_STAGE_READ, shard->path, within, before);
    give_draw(shard, of, worker);
    status = stki_resample_want(plan, resampler, of->index, &of->occasion, shard, within, &want, err);
    if (status == STK_OK && plan->rows->has_shapes)
        status = check_measured(batch, plan, of->row, resampler, shard, within, err);
    if (status == STK_OK)
        status = shard->ops->read(shard, within, want, &worker->scratch, &sample, err);
    between = stki_now_ns();
    stki_count(&worker->read_ns, between - before);
    if (status != STK_OK)
        return read_error(shard, within, status, err);
    doing(worker, STKI_STAGE_CONVERT, shard->path, within, between);
    stki_paging_begin(&worker->parts, &paging);
    if (convert_may_run(core, batch, plan, of->row, 1)) {
        status = stki_resample_store(plan, resampler, shard, within, &sample, of->to, err);
        stki_count(&worker->bytes_read, stk_tensor_nbytes(&sample));
        stki_count(&worker->bytes_written, bytes_of_row(batch, plan, of->row));
    }
    stki_watch_use(worker, plan, shard, of->index, &sample);
    stki_reader_done(shard, &sample);
    count_convert(worker, &paging, between);
    return status;
}

/* One row of one field through its reader; part `part` of `parts` of it. */
static stk_status make_row(stki_core *core, stk_batch *batch, const stki_field_plan *plan, const stki_making_of *of,
                           int64_t part, int64_t parts, stki_worker *worker, stk_error *err)
{
    int64_t within, before = stki_now_ns(), between;
    int shard_number = stki_field_shard(plan->field, of->index, &within);
    const stki_reader *shard = plan->field->shards[shard_number];
    const stki_placing *placing = NULL;
    stki_placing own;
    stki_paging paging;
    stk_tensor sample;
    stk_status status = plan->resample ? STK_OK : placing_of(plan, &of->occasion, &own, &placing, err);

    if (status != STK_OK)
        return status;
    if (!placing || placing->padded)
        return part == 0 ? make_resampled(core, batch, plan, of, worker, err) : STK_OK;
    doing(worker, STKI_STAGE_READ, shard->path, within, before);
    give_draw(shard, of, worker);
    status = shard->ops->read(shard, within, NULL, &worker->scratch, &sample, err);
    between = stki_now_ns();
    stki_count(&worker->read_ns, between - before);
    if (status != STK_OK)
        return read_error(shard, within, status, err);
    doing(worker, STKI_STAGE_CONVERT, shard->path, within, between);
    stki_paging_begin(&worker->parts, &paging);
    if (convert_may_run(core, batch, plan, of->row, 1)) {
        if (plan->rows->measured)
            convert_ragged(core, batch, plan, shard, within, of->row, &sample, worker);
        else
            convert_fixed(plan, placing, shard_number, of->to, &sample, part, parts, worker);
    }
    stki_watch_use(worker, plan, shard, of->index, &sample);
    stki_reader_done(shard, &sample);
    count_convert(worker, &paging, between);
    return STK_OK;
}

/* The samples of a window from number k on that are mapped and share one conversion. Returns how many there were; 0:
 * sample k has to go through its reader. */
static int64_t convert_window(const stki_field_plan *plan, const stki_making_of *of, int64_t k, stki_worker *worker)
{
    const stki_field_plan *each = plan->each;
    const stki_field *field = each->field;
    const int64_t most = STKI_WINDOW_TOGETHER, dilation = plan->config->window.dilation, before = stki_now_ns();
    const stki_convert *convert = NULL;
    const stki_placing *placing;
    stki_paging paging;
    stki_placing own;
    int64_t n = 0;

    if (!each->may_run_many || placing_of(each, &of->occasion, &own, &placing, NULL) != STK_OK || placing->padded)
        return 0;
    for (; n < most && k + n < plan->shape[0]; n++) {
        int64_t within;
        const int shard = stki_field_shard(field, of->index + (k + n) * dilation, &within);
        const stki_reader *reader = field->shards[shard];
        const char *address = stki_reader_address(reader, within);

        if (!address || (convert && stki_plan_convert(each, shard, placing->orientation) != convert) ||
            (n > 0 && stki_watch_is_full(worker, each, reader)))
            break;
        convert = stki_plan_convert(each, shard, placing->orientation);
        worker->pointers[n] = address + stki_plan_view_offset(each, placing, reader->strides);
        stki_watch_use(worker, each, reader, of->index + (k + n) * dilation, NULL);
    }
    if (n == 0)
        return 0;
    doing_mapped(worker, field, of->index + k * dilation, before);
    stki_paging_begin(&worker->parts, &paging);
    stki_convert_run_many(convert, (char *)of->to + k * each->row_bytes, each->row_bytes, worker->pointers, n);
    stki_count(&worker->bytes_read, n * stki_convert_bytes_read(convert));
    stki_count(&worker->bytes_written, n * stki_convert_bytes_written(convert));
    count_convert(worker, &paging, before);
    return n;
}

static stk_status make_whole_row(stki_core *core, stk_batch *batch, const stki_field_plan *plan,
                                 const stki_making_of *of, stki_worker *worker, stk_error *err);

static stk_status fill_window(stki_core *core, stk_batch *batch, const stki_field_plan *plan, const stki_making_of *of,
                              stki_worker *worker, stk_error *err)
{
    const stki_field_plan *each = plan->each;
    stk_status status = STK_OK;

    for (int64_t k = 0, n; k < plan->shape[0] && status == STK_OK; k += n) {
        const stki_making_of sample = {of->index + k * plan->config->window.dilation, of->occasion,
                                       (char *)of->to + k * each->row_bytes, of->row};

        n = each->made ? 0 : convert_window(plan, of, k, worker);
        if (n > 0)
            continue;
        n = 1;
        status = make_whole_row(core, batch, each, &sample, worker, err);
    }
    return status;
}

static stk_status fill_plain(stki_core *core, stk_batch *batch, const stki_field_plan *plan, const stki_making_of *of,
                             stki_worker *worker, stk_error *err)
{
    return make_row(core, batch, plan, of, 0, 1, worker, err);
}

static stk_status make_one_hot(const stki_field_plan *plan, const stki_making_of *of, stki_worker *worker,
                               stk_error *err)
{
    const int64_t size = stk_dtype_size(plan->dtype), classes = plan->one_hot->classes, one = 1, none = 0;
    int64_t within, label = -1;
    const stki_reader *shard = stki_field_locate(plan->field, of->index, &within);
    char path[STKI_RECORD_PATH];
    stk_tensor sample;
    stk_status status;

    doing(worker, STKI_STAGE_READ, shard->path, within, stki_coarse_ns());
    status = shard->ops->read(shard, within, NULL, &worker->scratch, &sample, err);
    if (status != STK_OK)
        return status;
    stki_copy_strided(&label, STK_I64, &none, sample.data, sample.dtype, &none,
                      (sample.flags & STK_TENSOR_SWAPPED) != 0, 1, &one);
    stki_watch_use(worker, plan, shard, of->index, &sample);
    stki_reader_done(shard, &sample);
    if (label < 0 || label >= classes)
        return stki_fail_at(err, STK_E_RANGE,
                            (stki_place){stki_reader_path(shard, within, path), within, -1,
                                         STKI_TEXT("%" PRId64, label), STKI_TEXT("0 to %" PRId64, classes - 1)},
                            "%s: one_hot: the label", plan->name);
    stki_copy_strided(of->to, plan->dtype, plan->strides, plan->on_off, plan->dtype, &none, false, 1, &classes);
    memcpy((char *)of->to + label * size, plan->on_off + size, (size_t)size);
    return STK_OK;
}

/* One row that is not mixed. */
static stk_status make_whole_row(stki_core *core, stk_batch *batch, const stki_field_plan *plan,
                                 const stki_making_of *of, stki_worker *worker, stk_error *err)
{
    stk_status status = plan->each      ? fill_window(core, batch, plan, of, worker, err)
                        : plan->one_hot ? make_one_hot(plan, of, worker, err)
                                        : fill_plain(core, batch, plan, of, worker, err);

    if (status == STK_OK && plan->erase)
        stki_made_erase(plan, &of->occasion, of->to);
    return status;
}

static void fill_row(stki_core *core, stk_batch *batch, const stki_field_plan *plan, int64_t row, int64_t part,
                     int64_t parts, stki_worker *worker)
{
    stki_making_of of = {batch->samples[row], occasion_of(batch, row), NULL, row};
    stki_batch_row to;
    stk_error error;

    stki_slot_row(batch, plan, row, &to);
    of.to = to.data;
    if (make_row(core, batch, plan, &of, part, parts, worker, &error) != STK_OK)
        stki_row_fails(core, batch, row, &error);
}

/* The rows from `row` on that are mapped and share one conversion: addresses are gathered, nothing is read, one call
 * converts them all. Returns how many there were; 0: the row has to go through its reader. */
static int64_t fill_mapped(stki_core *core, stk_batch *batch, const stki_field_plan *plan, int64_t row, int64_t last,
                           stki_worker *worker)
{
    const stki_field *field = plan->field;
    int64_t before, within, n = 0;
    stki_paging paging;
    int convert = 0;

    if (!plan->may_run_many)
        return 0;
    for (; row + n < last; n++) {
        int shard = stki_field_shard(field, batch->samples[row + n], &within);
        const stki_reader *reader = field->shards[shard];
        const char *address = stki_reader_address(reader, within);

        if (!address ||
            (n > 0 && (plan->convert_of_shard[shard] != convert || stki_watch_is_full(worker, plan, reader))))
            break;
        convert = plan->convert_of_shard[shard];
        if (!list_row(batch, plan, row + n, shard, address, worker, n))
            break;
        stki_watch_use(worker, plan, reader, batch->samples[row + n], NULL);
    }
    if (n == 0)
        return 0;
    before = stki_now_ns();
    doing_mapped(worker, field, batch->samples[row], before);
    stki_paging_begin(&worker->parts, &paging);
    convert_list(core, batch, plan, row, n, worker);
    count_convert(worker, &paging, before);
    return n;
}

enum { MOST_PINNED = 32 };

/* The same for rows that lie in blocks which have to be kept meanwhile (unpacked chunks): of one reader, and not too
 * many at once. */
static int64_t fill_pinned(stki_core *core, stk_batch *batch, const stki_field_plan *plan, int64_t row, int64_t last,
                           stki_worker *worker)
{
    int64_t within, n = 0, before = stki_now_ns(), between;
    int number = stki_field_shard(plan->field, batch->samples[row], &within);
    const stki_reader *reader = plan->field->shards[number];
    stk_storage *kept[MOST_PINNED];
    stk_error error;
    stk_status status = STK_OK;

    if (!plan->may_run_many || !reader->ops->pin)
        return 0;
    doing(worker, STKI_STAGE_READ, reader->path, within, before);
    for (; row + n < last && n < MOST_PINNED; n++) {
        const char *address;

        if (n > 0 && (stki_field_locate(plan->field, batch->samples[row + n], &within) != reader ||
                      stki_watch_is_full(worker, plan, reader)))
            break;
        kept[n] = NULL;
        status = reader->ops->pin(reader, within, &worker->scratch, &address, &kept[n], &error);
        if (status != STK_OK)
            break;
        if (!list_row(batch, plan, row + n, number, address, worker, n)) {
            stk_storage_release(kept[n]);
            status = STK_AGAIN;
            break;
        }
        stki_watch_use(worker, plan, reader, batch->samples[row + n], NULL);
    }
    between = stki_now_ns();
    stki_count(&worker->read_ns, between - before);
    if (n == 0 && status != STK_AGAIN) {
        read_fails(core, batch, reader, within, row, &error);
        return 1;
    }
    if (n == 0)
        return 0;
    (void)stki_field_locate(plan->field, batch->samples[row], &within);
    doing(worker, STKI_STAGE_CONVERT, reader->path, within, between);
    convert_list(core, batch, plan, row, n, worker);
    for (int64_t i = 0; i < n; i++)
        stk_storage_release(kept[i]);
    stki_count(&worker->convert_ns, stki_now_ns() - between);
    return n;
}

static void fill_rows(stki_core *core, stk_batch *batch, const stki_field_plan *plan, int64_t row, int64_t last,
                      stki_worker *worker)
{
    while (row < last) {
        int64_t n = plan->made ? stki_made_fill(core, batch, plan, row, last, make_whole_row, worker)
                               : fill_mapped(core, batch, plan, row, last, worker);

        if (n == 0 && !stki_sample_has_failed(batch, row))
            n = fill_pinned(core, batch, plan, row, last, worker);
        if (n == 0) {
            if (!stki_sample_has_failed(batch, row))
                fill_row(core, batch, plan, row, 0, 1, worker);
            n = 1;
        }
        row += n;
    }
}

static void fill_again(stki_core *core, stk_batch *batch, int64_t row, stki_worker *worker)
{
    stki_watch_begin(worker, batch, row, row + 1);
    for (int f = 0; f < core->plan_count; f++)
        fill_rows(core, batch, &core->plans[f], row, row + 1, worker);
    stki_watch_end(worker);
    if (core->streams)
        stki_store_fence();
}

static void fill_part(stki_core *core, stk_batch *batch, int64_t tile, stki_worker *worker)
{
    int64_t parts = core->parts_per_row, row = tile / parts, part = tile % parts;

    stki_watch_begin(worker, batch, row, row + 1);
    for (int f = 0; f < core->plan_count; f++) {
        const stki_field_plan *plan = &core->plans[f];

        if (plan->may_split && plan->units >= parts)
            fill_row(core, batch, plan, row, part, parts, worker);
        else if (part == 0 && plan->made)
            stki_made_fill(core, batch, plan, row, row + 1, make_whole_row, worker);
        else if (part == 0 && !stki_sample_has_failed(batch, row))
            fill_row(core, batch, plan, row, 0, 1, worker);
    }
}

static void tile_of_phase(void *context, stki_ring_slot *slot, int64_t tile, int number)
{
    stki_core *core = context;
    stki_worker *worker = &core->workers[number];
    stk_batch *batch = batch_of(slot);

    stki_read_clocks_set(&worker->parts);
    if (slot->phase == 0) {
        measure_tile(core, batch, tile, worker);
    } else if (core->parts_per_row > 1) {
        fill_part(core, batch, tile, worker);
    } else {
        int64_t first = tile * core->rows_per_tile, last = first + core->rows_per_tile;

        last = last < batch->rows ? last : batch->rows;
        stki_watch_begin(worker, batch, first, last);
        for (int f = 0; f < core->plan_count; f++)
            fill_rows(core, batch, &core->plans[f], first, last, worker);
    }
    if (slot->phase != 0)
        stki_watch_end(worker);
    if (core->streams)
        stki_store_fence(); /* non-temporal stores are not ordered by the ring's release */
    stki_read_clocks_set(NULL);
    doing(worker, STKI_STAGE_IDLE, NULL, -1, 0);
}

static int64_t end_phase(stki_core *core, stki_ring_slot *slot, int number)
{
    stk_batch *batch = batch_of(slot);

    if (batch->failures)
        stki_failed_settle(core, batch, slot->phase != 0, &(const stki_refill){fill_again, measure},
                           &core->workers[number]);
    if (slot->phase == 0) {
        for (int f = 0; f < core->plan_count; f++)
            if (core->plans[f].rows->settle)
                core->plans[f].rows->settle(&core->plans[f], batch->memory, batch->rows);
        return byte_tiles(core, batch);
    }
    if (core->config->digest != STK_DIGEST_NONE && batch->error_row < 0)
        batch->digest = stki_digest_rows(core, batch);
    return -1;
}

static int64_t phase_end(void *context, stki_ring_slot *slot, int number)
{
    stki_core *core = context;
    stki_worker *worker = &core->workers[number];
    int64_t tiles;

    doing(worker, STKI_STAGE_FINISH, NULL, slot->step, stki_coarse_ns());
    stki_read_clocks_set(&worker->parts);
    tiles = end_phase(core, slot, number);
    stki_read_clocks_set(NULL);
    doing(worker, STKI_STAGE_IDLE, NULL, -1, 0);
    return tiles;
}

const stki_ring_work stki_fill_work = {.begin = begin, .tile = tile_of_phase, .phase_end = phase_end};
