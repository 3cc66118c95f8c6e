/* prep_begin.c: what every run of a job, and every question about one, begins with; see prep_handle.h. */
#include "count_job.h"
#include "prep_handle.h"

stki_prep_run stki_prep_begin(stk_prep *prep)
{
    return (stki_prep_run){.job = &prep->job,
                           .name = &prep->name,
                           .opts = &prep->opts,
                           .cancelled = &prep->cancelled,
                           .notes = &prep->notes,
                           .lock = -1};
}

static void tick(void *context)
{
    (void)stki_prep_tick(context, false, NULL);
}

stk_status stki_prep_run_open(stk_prep *prep, stki_prep_run *run, stk_error *err)
{
    *run = stki_prep_begin(prep);
    run->rows.tick = tick;
    run->rows.tick_context = run;
    stki_prep_phase(run, STK_PREP_OPENING, 0, 0);
    return stki_prep_open(run, err);
}

stk_status stki_prep_begin_look(stk_prep *prep, stki_job *real, stk_error *err)
{
    stki_job look = {0};
    stk_status status;

    *real = prep->job;
    if (!stki_count_needed(&prep->job))
        return STK_OK;
    status = stki_job_read(real->file, real->text, real->base_dir, (const char *const *)real->sets, real->set_count,
                           &look, err);
    if (status == STK_OK)
        status = stki_count_pretend(&look, err);
    if (status == STK_OK)
        prep->job = look;
    else
        stki_job_fini(&look);
    return status;
}

void stki_prep_end_look(stk_prep *prep, stki_job *real)
{
    if (prep->job.document != real->document)
        stki_job_fini(&prep->job);
    prep->job = *real;
}
