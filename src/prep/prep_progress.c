/* prep_progress.c: reports progress to the caller at intervals and checks for cancellation, also while it waits for a
 * lock; see prep_run.h. */
#include "clock.h"
#include "error.h"
#include "prep_file.h"
#include "prep_phase.h"
#include "prep_run.h"
#include "thread.h"

const char *stki_prep_phase_name(int32_t phase)
{
    static const char *const names[] = {"opening", "statistics", "rows", "joining", "finishing", "done"};
    const bool known = phase >= 0 && phase < (int32_t)(sizeof names / sizeof names[0]);

    return known ? names[phase] : "working";
}

void stki_prep_phase(stki_prep_run *run, stk_prep_phase phase, int64_t row_total, int64_t piece_total)
{
    run->progress = (stk_prep_progress){.struct_size = sizeof run->progress,
                                        .phase = (int32_t)phase,
                                        .row_total = row_total,
                                        .piece_total = piece_total,
                                        .bytes_in = run->progress.bytes_in,
                                        .resumed_rows = run->progress.resumed_rows,
                                        .failed_rows = run->progress.failed_rows};
    run->began_ns = stki_now_ns();
    (void)stki_prep_tick(run, true, NULL);
}

void stki_prep_done(stki_prep_run *run, const stki_prep_totals *totals)
{
    const stk_prep_progress before = run->progress;

    run->progress = (stk_prep_progress){.struct_size = sizeof run->progress,
                                        .phase = STK_PREP_DONE,
                                        .row_total = totals->rows + totals->skipped,
                                        .rows = totals->rows + totals->skipped,
                                        .piece_total = run->cuts.pieces,
                                        .pieces = run->cuts.pieces,
                                        .bytes_in = before.bytes_in,
                                        .bytes_out = totals->bytes,
                                        .resumed_rows = before.resumed_rows,
                                        .failed_rows = before.failed_rows};
    run->began_ns = run->clock->began_ns;
    (void)stki_prep_tick(run, true, NULL);
}

stk_status stki_prep_tick(stki_prep_run *run, bool now, stk_error *err)
{
    const int64_t time = stki_now_ns();

    stki_job_clock_tick(run->clock);
    if (run->opts->progress && (now || time - run->ticked_ns >= run->opts->progress_interval_ns)) {
        stk_loader_stats stats = {.struct_size = sizeof stats};

        run->ticked_ns = time;
        if (run->loader && stk_loader_get_stats(run->loader, &stats, NULL) == STK_OK)
            run->progress.bytes_in = stats.bytes_read;
        run->progress.elapsed_ns = time - run->began_ns;
        run->opts->progress(run->opts->progress_context, &run->progress);
    }
    if (atomic_load_explicit(run->cancelled, memory_order_relaxed))
        return stki_fail(err, STK_E_CANCELLED, "the job was stopped; run it again to resume");
    return STK_OK;
}

stk_status stki_prep_wait_lock(stki_prep_run *run, const char *path, int *fd, stk_error *err)
{
    stk_status status = stki_prep_lock_file(path, fd, err);

    if (status == STK_E_BUSY)
        stki_prep_phase(run, STK_PREP_JOINING, 0, 0);
    while (status == STK_E_BUSY && (status = stki_prep_tick(run, false, err)) == STK_OK) {
        stki_sleep_ns(STKI_SECOND / 100);
        status = stki_prep_lock_file(path, fd, err);
    }
    return status;
}
