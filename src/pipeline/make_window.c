/* make_window.c: rows that are windows: several samples, each made by the plan of a single sample. */
#include "row_maker.h"

/* Converts the samples of a window, starting with sample k, up to the first that is not mapped or needs another
 * conversion. Returns their number; 0: the reader must read sample k. */
static int64_t convert_window(stki_worker *worker, const stki_field_plan *plan, const stki_making_of *of, int64_t k)
{
    const stki_field_plan *each = plan->inner;
    const stki_field *field = each->field;
    const int64_t most = STKI_WINDOW_TOGETHER, dilation = plan->config->window.dilation;
    const stki_convert *convert = NULL;
    const stki_placement *placement;
    stki_paging paging;
    stki_placement own;
    int64_t n = 0;

    if (!each->maker->placement || each->maker->placement(each, &of->occasion, &own, &placement, NULL) != STK_OK ||
        placement->padded)
        return 0;
    for (; n < most && k + n < plan->shape[0]; n++) {
        int64_t within;
        const int shard = stki_field_shard(field, of->index + (k + n) * dilation, &within);
        const stki_reader *reader = field->shards[shard];
        const char *address = stki_reader_address(reader, within);

        if (!address || (convert && stki_plan_convert(each, shard, placement->orientation) != convert) ||
            (n > 0 && stki_watch_is_full(worker, each, reader)))
            break;
        convert = stki_plan_convert(each, shard, placement->orientation);
        worker->pointers[n] = address + stki_plan_view_offset(each, placement, reader->strides);
        stki_watch_use(worker, each, reader, of->index + (k + n) * dilation, NULL);
    }
    if (n == 0)
        return 0;
    stki_worker_does_mapped(worker, field, of->index + k * dilation, worker->read_at);
    stki_convert_begin(worker, &paging);
    stki_convert_run_many(convert, (char *)of->to + k * each->row_bytes, each->row_bytes, worker->pointers, n);
    stki_count_own(&worker->bytes_read, n * stki_convert_bytes_read(convert));
    stki_count_own(&worker->bytes_written, n * stki_convert_bytes_written(convert));
    stki_convert_end(worker, &paging);
    return n;
}

static stk_status make(stki_worker *worker, const stki_field_plan *plan, const stki_making_of *of, stk_error *err)
{
    const stki_field_plan *each = plan->inner;
    stk_status status = STK_OK;

    for (int64_t k = 0, n; k < plan->shape[0] && status == STK_OK; k += n) {
        const stki_making_of sample = {of->index + k * plan->config->window.dilation, of->occasion,
                                       (char *)of->to + k * each->row_bytes, of->row};

        n = convert_window(worker, plan, of, k);
        if (n > 0)
            continue;
        n = 1;
        status = each->maker->make(worker, each, &sample, err);
    }
    return status;
}

static bool takes(const stki_field_plan *plan)
{
    return stki_plan_is_window(plan);
}

static void explain(const stki_field_plan *plan, FILE *to)
{
    fprintf(to, "  %-10s %lld samples, %lld apart, with one draw of the random steps\n", "window",
            (long long)plan->shape[0], (long long)plan->config->window.dilation);
}

const stki_row_maker stki_make_window = {.takes = takes, .explain = explain, .make = make};
