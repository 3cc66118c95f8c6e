/* make_converted.c: rows that are views of samples of one shape and are converted. The addresses of rows are collected,
 * and one call to a kernel converts many rows; if the file is mapped, nothing is read before that. There are three
 * makers:
 *
 *     plain    all rows show the same part of their samples: one address per row, one conversion for all
 *     placed   each row has its own placement (random crops and flips): an address and a conversion per row
 *     erased   part of each row is erased while the row is in the cache: one row at a time
 *
 * Plain and placed share the source of their loops, which is compiled for each (`random` is a constant).
 */
#include "late_rows.h"
#include "pad_pixels.h"
#include "row_maker.h"

enum { MOST_PINNED = 32 };

/* ---- many rows ---- */

static stk_status draw_placement(const stki_field_plan *plan, const stki_occasion *occasion, stki_placement *out,
                                 stk_error *err)
{
    const int64_t *shape = plan->image.sample_shape;

    return stki_geometry_apply(plan->image.geometry, shape[plan->image.height_axis], shape[plan->image.width_axis],
                               NULL, occasion, out, err);
}

/* Adds a row to the worker's list: the address of its element 0, 0, … and its conversion. Returns false if the row must
 * be made separately. If placements are not random, all rows of a list share conversion and strides, so the offset of a
 * row in its sample is computed only for the first one. */
static inline bool list_row(stki_worker *worker, const stki_field_plan *plan, int64_t row, int shard,
                            const char *address, int64_t n, const bool random, int64_t *offset)
{
    const int64_t *strides = plan->field->shards[shard]->strides;

    if (random) {
        const stki_occasion occasion = stki_occasion_of(worker->batch, row);
        stki_placement own;

        if (draw_placement(plan, &occasion, &own, NULL) != STK_OK || own.padded)
            return false;
        *offset = stki_plan_view_offset(plan, &own, strides);
        worker->converts[n] = stki_plan_convert(plan, shard, own.orientation);
    } else if (n == 0) {
        *offset = stki_plan_view_offset(plan, &plan->image.placement, strides);
        worker->converts[0] = stki_plan_convert(plan, shard, plan->image.placement.orientation);
    }
    worker->pointers[n] = address + *offset;
    return true;
}

/* Converts `n` rows of the list, starting with `row`. */
static inline void convert_list(stki_worker *worker, const stki_field_plan *plan, int64_t row, int64_t n,
                                const bool random)
{
    char *to = stki_slot_values(worker->batch, plan) + row * plan->row_bytes;
    const stki_convert *first = worker->converts[0];

    if (random)
        stki_convert_run_each(worker->converts, to, plan->row_bytes, worker->pointers, n);
    else
        stki_convert_run_many(first, to, plan->row_bytes, worker->pointers, n);
    stki_count_own(&worker->bytes_read, n * stki_convert_bytes_read(first));
    stki_count_own(&worker->bytes_written, n * stki_convert_bytes_written(first));
}

/* Converts the rows from `row` on, up to the first that is not mapped or needs another conversion. Returns their
 * number; 0: the reader must read the row. */
static inline int64_t fill_mapped(stki_worker *worker, const stki_field_plan *plan, int64_t row, int64_t last,
                                  const bool random)
{
    const stk_batch *batch = worker->batch;
    const stki_field *field = plan->field;
    int64_t within, offset = 0, n = 0;
    const stki_reader *used = NULL;
    stki_paging paging;
    int convert = 0;

    for (; row + n < last; n++) {
        int shard = stki_field_shard(field, batch->samples[row + n], &within);
        const stki_reader *reader = field->shards[shard];
        const char *address = stki_reader_address(reader, within);

        if (!address || (n > 0 && reader != used &&
                         (plan->convert.of_shard[shard] != convert || stki_watch_is_full(worker, plan, reader))))
            break;
        convert = plan->convert.of_shard[shard];
        if (!list_row(worker, plan, row + n, shard, address, n, random, &offset))
            break;
        if (reader != used)
            stki_watch_use(worker, plan, reader, batch->samples[row + n], NULL);
        used = reader;
    }
    if (n == 0)
        return 0;
    stki_worker_does_mapped(worker, field, batch->samples[row], worker->read_at);
    stki_convert_begin(worker, &paging);
    convert_list(worker, plan, row, n, random);
    stki_convert_end(worker, &paging);
    return n;
}

/* Like fill_mapped, for rows in decompressed chunks, which must remain pinned during the conversion. All rows are from
 * one reader, and there are at most MOST_PINNED. */
static inline int64_t fill_pinned(stki_worker *worker, const stki_field_plan *plan, int64_t row, int64_t last,
                                  const bool random)
{
    const stk_batch *batch = worker->batch;
    int64_t first, within, offset = 0, n = 0;
    int number = stki_field_shard(plan->field, batch->samples[row], &first);
    const stki_reader *reader = plan->field->shards[number];
    stk_storage *kept[MOST_PINNED];
    stk_error error;
    stk_status status = STK_OK;

    if (!reader->ops->pin)
        return 0;
    stki_worker_does(worker, STKI_STAGE_READ, reader->path, first, worker->read_at);
    for (within = first; row + n < last && n < MOST_PINNED; n++) {
        const char *address;

        if (n > 0 && stki_field_locate(plan->field, batch->samples[row + n], &within) != reader)
            break;
        kept[n] = NULL;
        status = reader->ops->pin(reader, within, &worker->scratch, &address, &kept[n], &error);
        if (status != STK_OK)
            break;
        if (!list_row(worker, plan, row + n, number, address, n, random, &offset)) {
            stk_storage_release(kept[n]);
            status = STK_AGAIN;
            break;
        }
        if (n == 0)
            stki_watch_use(worker, plan, reader, batch->samples[row], NULL);
    }
    stki_worker_spent(worker, &worker->read_ns);
    if (n == 0 && status != STK_AGAIN) {
        stki_read_fails(worker, reader, first, row, &error);
        return 1;
    }
    if (n == 0)
        return 0;
    stki_worker_does(worker, STKI_STAGE_CONVERT, reader->path, first, worker->read_at);
    convert_list(worker, plan, row, n, random);
    for (int64_t i = 0; i < n; i++)
        stk_storage_release(kept[i]);
    stki_worker_spent(worker, &worker->convert_ns);
    return n;
}

/* ---- one row ---- */

static stk_status placement_of(const stki_field_plan *plan, const stki_occasion *occasion, stki_placement *own,
                               const stki_placement **out, stk_error *err)
{
    *out = plan->image.random ? own : &plan->image.placement;
    return plan->image.random ? draw_placement(plan, occasion, own, err) : STK_OK;
}

static stk_status convert_part(const stki_field_plan *plan, const stki_placement *placement, const stki_reading *r,
                               void *to, int64_t part, int64_t parts, stki_worker *worker, stk_error *err)
{
    const stki_convert *convert = stki_plan_convert(plan, r->shard_number, placement->orientation);
    const char *from = r->sample.data;
    const int64_t *strides = r->shard->strides, units = stki_convert_units(convert);

    if (part == 0) {
        stki_count_own(&worker->bytes_read,
                       placement->padded ? stki_pad_pixels_read(plan, placement) : stki_convert_bytes_read(convert));
        stki_count_own(&worker->bytes_written, stki_convert_bytes_written(convert));
    }
    if (placement->padded)
        return stki_pad_pixels(plan, placement, convert, from, strides, to, &worker->resamplers[plan->number].block,
                               err);
    stki_convert_run_part(convert, to, from + stki_plan_view_offset(plan, placement, strides), units * part / parts,
                          units * (part + 1) / parts);
    return STK_OK;
}

/* Whether a padded row must be made from a copy of its window. */
static bool needs_copy(const stki_field_plan *plan, const stki_placement *placement, int64_t index)
{
    int64_t within;
    const int shard = stki_field_shard(plan->field, index, &within);

    return !stki_pads_pixels(plan, placement, stki_plan_convert(plan, shard, placement->orientation),
                             plan->field->shards[shard]->strides);
}

static stk_status make_part(stki_worker *worker, const stki_field_plan *plan, const stki_making_of *of, int64_t part,
                            int64_t parts, stk_error *err)
{
    const stki_placement *placement;
    stki_placement own;
    stki_reading r;
    stk_status status = placement_of(plan, &of->occasion, &own, &placement, err);

    if (status != STK_OK)
        return status;
    if (placement->padded && part > 0)
        return STK_OK;
    if (placement->padded && needs_copy(plan, placement, of->index))
        return stki_make_resampled.make(worker, plan, of, err);
    stki_reading_begin(worker, plan, of, &r);
    if ((status = stki_reading_read(worker, &r, NULL, STK_OK, err)) != STK_OK)
        return status;
    status = convert_part(plan, placement, &r, of->to, part, parts, worker, err);
    stki_reading_end(worker, plan, of, &r);
    if (status == STK_OK && plan->erase.step) {
        stki_erase_row(plan, &of->occasion, of->to);
        stki_worker_spent(worker, &worker->convert_ns);
    }
    return status;
}

static stk_status make(stki_worker *worker, const stki_field_plan *plan, const stki_making_of *of, stk_error *err)
{
    return make_part(worker, plan, of, 0, 1, err);
}

static inline int64_t fill(stki_worker *worker, const stki_field_plan *plan, int64_t row, int64_t last,
                           const bool random)
{
    int64_t n = fill_mapped(worker, plan, row, last, random);

    if (n > 0)
        return n;
    if (stki_sample_has_failed(worker->batch, row))
        return 1;
    n = fill_pinned(worker, plan, row, last, random);
    if (n > 0)
        return n;
    stki_make_part(worker, plan, row, 0, 1);
    return 1;
}

/* ---- the makers ---- */

static int64_t fill_plain(stki_worker *worker, const stki_field_plan *plan, int64_t row, int64_t last)
{
    return fill(worker, plan, row, last, false);
}

static int64_t fill_placed(stki_worker *worker, const stki_field_plan *plan, int64_t row, int64_t last)
{
    return fill(worker, plan, row, last, true);
}

static bool is_erased(const stki_field_plan *plan)
{
    return plan->erase.step;
}

static bool is_random(const stki_field_plan *plan)
{
    return plan->image.random;
}

static bool takes_all(const stki_field_plan *plan)
{
    (void)plan;
    return true;
}

const stki_row_maker stki_make_erased = {.takes = is_erased, .make = make};
const stki_row_maker stki_make_placed = {
    .takes = is_random, .fill = fill_placed, .make = make, .make_part = make_part, .placement = placement_of};
const stki_row_maker stki_make_plain = {
    .takes = takes_all, .fill = fill_plain, .make = make, .make_part = make_part, .placement = placement_of};
