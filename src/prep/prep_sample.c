/* prep_sample.c: estimates the time and output size of a job. Some batches at a few places of the job are produced and
 * encoded as in the real run, and discarded. The first batch of each place is a warm-up: its rows count towards the
 * size, but towards the time only if there are no others.
 *
 * The size comes from the sink (sink.h), with each row counted many times, so that the fixed part of a file becomes
 * negligible. If the format compresses, samples of each field are compressed to measure the ratio.
 *
 * Rows larger than LARGEST_ROW are not sampled, because they could take longer than the time given: the estimate then
 * contains no sampled rows, and stk_prep_get_plan returns the size. */
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "prep_run.h"
#include <inttypes.h>
#include <string.h>

#define LARGEST_ROW (INT64_C(256) << 20)

enum {
    PLACES = 4,
    MOST_BATCHES = 64,
    STANDS_FOR = 1024,     /* weight of each sampled row */
    PACKED_ONCE = 1 << 19, /* bytes of a field that are compressed together */
    PACKED_TIMES = 4       /* number of such blocks */
};

/* Samples of a field, compressed to measure the ratio. */
struct packing {
    char *bytes;
    int64_t used, times;
    int64_t plain, packed; /* bytes before and after compression */
    int64_t all;           /* total bytes of all rows */
};

struct sampler {
    stki_prep_run *run;
    stki_finish_pool *pool;
    stki_finish_source *sources;
    stk_prep_estimate *sum;
    stk_error last; /* of the last failed row */
    stki_sink_opts opts;
    stki_sink_size size;          /* each row counted STANDS_FOR times */
    struct packing *packing;      /* per field; NULL: the format does not compress */
    int64_t timed_rows, timed_ns; /* excluding the first batch of each place */
    int64_t first_rows, first_ns; /* only the first batch of each place */
};

static stk_status make_pool(struct sampler *s, stk_error *err)
{
    stki_prep_run *run = s->run;

    s->sources = stki_zalloc_array(run->field_count, sizeof *s->sources);
    if (!s->sources)
        return stki_fail_memory(err, run->field_count * (int64_t)sizeof *s->sources, "fields");
    return stki_prep_finish_pool(run, 1, false, &s->pool, err);
}

static stk_status begin_packing(struct sampler *s, stk_error *err)
{
    const stki_prep_run *run = s->run;

    s->opts = stki_prep_sink_opts(run, INT64_MAX / STANDS_FOR);
    if (!stki_prep_is_packed(run))
        return STK_OK;
    s->packing = stki_zalloc_array(run->field_count, sizeof *s->packing);
    for (int f = 0; s->packing && f < run->field_count; f++)
        if (!(s->packing[f].bytes = stki_zalloc(PACKED_ONCE)))
            return stki_fail_memory(err, PACKED_ONCE, "a sample");
    return s->packing ? STK_OK : stki_fail_memory(err, run->field_count * (int64_t)sizeof *s->packing, "a sample");
}

static void pack(struct sampler *s, int field)
{
    struct packing *p = &s->packing[field];

    if (p->used == 0)
        return;
    p->packed += s->run->job->format->packed(&s->opts, field, p->bytes, p->used);
    p->plain += p->used;
    p->used = 0;
    p->times++;
}

static void measure(struct sampler *s, const stki_sink_value *row)
{
    (void)s->run->job->format->measure(&s->opts, row, STANDS_FOR, &s->size);
    for (int f = 0; s->packing && f < s->run->field_count; f++) {
        struct packing *p = &s->packing[f];
        const int64_t left = PACKED_ONCE - p->used, size = row[f].size < left ? row[f].size : left;

        p->all += row[f].size;
        if (p->times == PACKED_TIMES)
            continue;
        if (size > 0)
            memcpy(p->bytes + p->used, row[f].bytes, (size_t)size);
        p->used += size;
        if (p->used == PACKED_ONCE)
            pack(s, f);
    }
}

static stk_status finish(struct sampler *s, const stki_run_of_rows *rows, stk_error *err)
{
    stki_prep_run *run = s->run;
    stki_finished finished;
    stk_status status;

    stki_prep_sources(run, rows, s->sources);
    status = stki_finish_pool_push(s->pool,
                                   &(stki_finish_batch){.rows = rows->count,
                                                        .sources = s->sources,
                                                        .first_position = rows->from,
                                                        .samples = rows->held->batch->indices + rows->first},
                                   err);
    if (status == STK_OK)
        status = stki_finish_pool_pop(s->pool, INT64_MAX, &finished, err);
    if (status != STK_OK)
        return status;
    for (int64_t i = 0; i < finished.rows; i++)
        measure(s, finished.values + i * run->field_count);
    s->sum->sampled_rows += finished.rows;
    s->sum->failed_rows += finished.failed;
    if (finished.failed > 0)
        s->last = finished.failures[finished.failed - 1].error;
    if (finished.failed > 0 && run->job->prep.on_error != STKI_JOB_SKIP) {
        if (err)
            *err = finished.failures[0].error;
        status = finished.failures[0].error.status;
    }
    stki_finish_pool_release(s->pool);
    return status;
}

/* Processes one batch before position `until`. *end: whether it was the last one. */
static stk_status take_batch(struct sampler *s, int64_t until, int64_t *rows, bool *end, stk_error *err)
{
    stki_prep_run *run = s->run;
    stki_skipped_list left_out = {0};
    stki_run_of_rows batch;
    stk_status status = stki_row_feed_next(&run->rows, until, &batch, &left_out, err);

    if (status != STK_OK) {
        stki_skipped_fini(&left_out);
        return status;
    }
    s->sum->failed_rows += left_out.count;
    if (left_out.count > 0)
        s->last = left_out.items[left_out.count - 1].error;
    stki_skipped_fini(&left_out);
    *rows = batch.end - batch.from;
    *end = batch.end >= until;
    status = finish(s, &batch, err);
    stki_row_feed_done(&run->rows, batch.held);
    return status;
}

static stk_status look_at_place(struct sampler *s, int64_t position, int64_t until, int64_t most_ns, stk_error *err)
{
    int64_t begin = stki_now_ns(), now = begin, rows;
    const int64_t deadline = begin + most_ns;
    bool end = false;
    stk_status status;

    stki_row_feed_seek(&s->run->rows, position);
    status = take_batch(s, until, &rows, &end, err);
    if (status != STK_OK)
        return status;
    now = stki_now_ns();
    s->first_rows += rows;
    s->first_ns += now - begin;
    begin = now;
    for (int i = 0; i < MOST_BATCHES && !end && now < deadline && status == STK_OK; i++) {
        status = take_batch(s, until, &rows, &end, err);
        now = stki_now_ns();
        s->timed_rows += rows;
    }
    s->timed_ns += now - begin;
    return status == STK_OK ? stki_prep_tick(s->run, false, err) : status;
}

/* Returns the estimated size of all files minus the bytes saved by compression, extrapolated from the samples. */
static int64_t output_bytes(struct sampler *s)
{
    stki_prep_run *run = s->run;
    int64_t bytes = stki_prep_files_bytes(run, &s->size);

    for (int f = 0; s->packing && f < run->field_count; f++) {
        struct packing *p = &s->packing[f];

        pack(s, f);
        if (p->plain > 0 && p->packed < p->plain)
            bytes -= stki_prep_scale(stki_prep_scale(p->all, s->sum->sampled_rows, run->cuts.positions), p->plain,
                                     p->plain - p->packed);
    }
    return bytes > 0 ? bytes : 0;
}

static void drop_packing(struct sampler *s)
{
    for (int f = 0; s->packing && f < s->run->field_count; f++)
        stki_free(s->packing[f].bytes);
    stki_free(s->packing);
}

/* Returns the size of a row, or of the sample from which it is produced. */
static int64_t largest_row(const stki_prep_run *run)
{
    int64_t largest = stki_prep_row_bytes(run);

    for (int f = 0; f < run->field_count; f++) {
        const stki_reader *shard = run->core->dataset->fields[f].shards[0];

        if (!shard->variable && shard->max_bytes > largest)
            largest = shard->max_bytes;
    }
    return largest;
}

stk_status stki_prep_sample(stki_prep_run *run, int64_t most_ns, stk_prep_estimate *out, stk_error *err)
{
    struct sampler s = {.run = run, .sum = out};
    const int64_t begin = stki_now_ns(), batches = stki_ceil_div(run->cuts.positions, run->batch_rows);
    const int64_t places = batches < PLACES ? batches : PLACES;
    stk_status status;

    if (largest_row(run) > LARGEST_ROW) {
        stki_notes_add(run->notes,
                       "the time was not estimated, because a row of %" PRId64 " bytes is too large to sample",
                       largest_row(run));
        return STK_OK;
    }
    status = make_pool(&s, err);
    if (status == STK_OK)
        status = begin_packing(&s, err);
    for (int64_t i = 0; i < places && status == STK_OK && stki_now_ns() - begin < most_ns; i++)
        status = look_at_place(&s, batches * i / places * run->batch_rows,
                               i + 1 < places ? batches * (i + 1) / places * run->batch_rows : run->cuts.positions,
                               most_ns / places, err);
    if (status == STK_OK && out->sampled_rows > 0)
        out->output_bytes = output_bytes(&s);
    if (status == STK_OK)
        status = stki_prep_check_failed(run, out->failed_rows, &s.last, err);
    if (s.timed_rows >= run->batch_rows)
        out->total_ns = stki_prep_scale(s.timed_ns, s.timed_rows, run->cuts.positions);
    else if (s.first_rows + s.timed_rows > 0)
        out->total_ns = stki_prep_scale(s.first_ns + s.timed_ns, s.first_rows + s.timed_rows, run->cuts.positions);
    drop_packing(&s);
    stki_finish_pool_destroy(s.pool);
    stki_free(s.sources);
    return status;
}
