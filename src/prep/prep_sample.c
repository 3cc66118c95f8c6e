/* prep_sample.c: how long does a job take, and how large does its output become? Some batches at a few places of the
 * job are made and finished as all will be, and thrown away. The first batch of a place is waited for until the loader
 * is on its way; its rows count for the size, and for the time only where no other comes. */
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "prep_run.h"

enum { PLACES = 4, MOST_BATCHES = 64 };

struct sampler {
    stki_prep_run *run;
    stki_finish_pool *pool;
    stki_finish_source *sources;
    stk_prep_estimate *sum;
    int64_t bytes;                /* of the rows */
    int64_t timed_rows, timed_ns; /* behind the first batch of a place */
    int64_t first_rows, first_ns; /* those */
};

static stk_status make_pool(struct sampler *s, stk_error *err)
{
    stki_prep_run *run = s->run;

    s->sources = stki_zalloc_array(run->field_count, sizeof *s->sources);
    if (!s->sources)
        return stki_fail_memory(err, run->field_count * (int64_t)sizeof *s->sources, "fields");
    return stki_prep_finish_pool(run, 1, false, NULL, &s->pool, err);
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
    for (int64_t i = 0; i < finished.rows * run->field_count; i++)
        s->bytes += finished.values[i].size;
    s->sum->sampled_rows += finished.rows;
    s->sum->failed_rows += finished.failed;
    if (finished.failed > 0 && run->job->prep.on_error != STKI_JOB_SKIP) {
        if (err)
            *err = finished.failures[0].error;
        status = finished.failures[0].error.status;
    }
    stki_finish_pool_release(s->pool);
    return status;
}

/* One batch below position `until`; *end: it was the last one. */
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

/* Counted rows times what one comes to, without overflow. */
static int64_t scale(int64_t sum, int64_t of, int64_t to)
{
    const double value = of > 0 ? (double)sum / (double)of * (double)to : -1;

    return value > 9e18 ? INT64_MAX : (int64_t)value;
}

stk_status stki_prep_sample(stki_prep_run *run, int64_t most_ns, stk_prep_estimate *out, stk_error *err)
{
    struct sampler s = {.run = run, .sum = out};
    const int64_t begin = stki_now_ns(), batches = stki_ceil_div(run->cuts.positions, run->batch_rows);
    const int64_t places = batches < PLACES ? batches : PLACES;
    stk_status status = make_pool(&s, err);

    for (int64_t i = 0; i < places && status == STK_OK && stki_now_ns() - begin < most_ns; i++)
        status = look_at_place(&s, batches * i / places * run->batch_rows,
                               i + 1 < places ? batches * (i + 1) / places * run->batch_rows : run->cuts.positions,
                               most_ns / places, err);
    out->output_bytes = scale(s.bytes, out->sampled_rows, run->cuts.positions);
    out->total_ns = s.timed_rows >= run->batch_rows
                        ? scale(s.timed_ns, s.timed_rows, run->cuts.positions)
                        : scale(s.first_ns + s.timed_ns, s.first_rows + s.timed_rows, run->cuts.positions);
    stki_finish_pool_destroy(s.pool);
    stki_free(s.sources);
    return status;
}
