/* prep_join.c: copies the spooled pieces of a job, in order, to its files. An interrupted join starts over: it is a
 * single copy of the data, and its journal only records the files. */
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "prep_file.h"
#include "prep_run.h"
#include "spool.h"

enum { AT_ONCE = 64 };

static stk_status join_piece(stki_prep_run *run, stki_outlet *outlet, int64_t piece, stki_sink_value *values,
                             stk_error *err)
{
    char *path = stki_work_piece(run, piece);
    stki_spool *spool = NULL;
    stk_status status =
        path ? stki_spool_open(path, run->field_count, &spool, err) : stki_fail_memory(err, 256, "a path");
    int64_t left = status == STK_OK ? stki_spool_rows(spool) : 0;

    while (left > 0 && status == STK_OK) {
        const int64_t n = left < AT_ONCE ? left : AT_ONCE;

        status = stki_spool_next(spool, values, n, err);
        if (status == STK_OK)
            status = stki_outlet_append(outlet, values, n, err);
        run->progress.bytes_out = stki_outlet_written(outlet);
        run->progress.rows += n;
        left -= n;
        if (status == STK_OK)
            status = stki_prep_tick(run, false, err);
    }
    run->progress.pieces++;
    stki_spool_close(spool);
    stki_free(path);
    return status;
}

static stk_status join_all(stki_prep_run *run, stki_outlet *outlet, stk_error *err)
{
    stki_sink_value *values = stki_zalloc_array(AT_ONCE * run->field_count, sizeof *values);
    stk_status status = values ? STK_OK : stki_fail_memory(err, AT_ONCE * (int64_t)sizeof *values, "rows");

    for (int64_t piece = 0; piece < run->cuts.pieces && status == STK_OK; piece++)
        status = join_piece(run, outlet, piece, values, err);
    stki_free(values);
    return status;
}

/* Counts all rows, because the sink needs their number. */
static stk_status count_rows(const stki_prep_run *run, int64_t *rows, stk_error *err)
{
    stk_status status = STK_OK;

    *rows = 0;
    for (int64_t piece = 0; piece < run->cuts.pieces && status == STK_OK; piece++) {
        json_t *pieces = json_array();

        status = stki_prep_unit_pieces(run, piece, pieces, err);
        *rows += json_integer_value(json_object_get(json_array_get(pieces, 0), "rows"));
        json_decref(pieces);
    }
    return status;
}

stk_status stki_prep_join(stki_prep_run *run, stk_error *err)
{
    char *journal = stki_work_file(run, "join.journal");
    stki_outlet *outlet = NULL;
    json_t *lines = NULL;
    /* Formats that can resume get the same arguments as when they are written without pieces, so that the output is
     * byte-identical. */
    const bool goes_on = run->job->format->resumes;
    int64_t rows;
    stk_status status = journal ? count_rows(run, &rows, err) : stki_fail_memory(err, 256, "a path"), flushed;

    if (status == STK_OK && rows == 0)
        status = stki_fail(err, STK_E_EMPTY, "%s: all %lld samples failed and were skipped", run->job->path,
                           (long long)run->cuts.positions);
    if (status == STK_OK)
        status = stki_flusher_create(2, &run->flusher, err);
    if (status == STK_OK)
        status = stki_outlet_open(&(stki_outlet_opts){.job = run->job,
                                                      .fields = run->sink_fields,
                                                      .field_count = run->field_count,
                                                      .making = run->making,
                                                      .shard = -1,
                                                      .shard_bytes = run->job->output.shard_bytes,
                                                      .shard_most = stki_prep_shard_most(run),
                                                      .most_rows = goes_on ? run->cuts.positions : rows,
                                                      .may_skip = goes_on && run->job->prep.on_error == STKI_JOB_SKIP,
                                                      .first_row = 0,
                                                      .threads = run->threads,
                                                      .journal = journal},
                                  true, run->flusher, &outlet, &lines, err);
    if (status == STK_OK && outlet) { /* otherwise the files have already been joined */
        status = join_all(run, outlet, err);
        if (status == STK_OK) {
            status = stki_outlet_finish(outlet, err);
            outlet = NULL;
        }
        flushed = stki_flusher_wait(run->flusher, status == STK_OK ? err : NULL);
        run->progress.wait_sync_ns = stki_flusher_waited_ns(run->flusher);
        status = status == STK_OK ? flushed : status;
    }
    stki_flusher_destroy(run->flusher);
    run->flusher = NULL;
    stki_outlet_drop(outlet);
    json_decref(lines);
    stki_free(journal);
    return status;
}
