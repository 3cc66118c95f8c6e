/* prep_ask.c: what a job is asked for: its plan, an estimate, its result, its text. */
#include "allocate.h"
#include "count_job.h"
#include "error.h"
#include "prep_file.h"
#include "prep_handle.h"
#include <stdlib.h>
#include <string.h>

/* ---- answers -------------------------------------------------------------------------------------------------------
 */

/* What every question begins with. `size`: of the caller's struct, its first member; NULL: there is no struct. */
static stk_status check_asked(const stk_prep *prep, const uint32_t *size, const char *type, stk_error *err)
{
    if (!prep || !size)
        return stki_check_given(prep ? (const void *)size : prep, prep ? "out" : "job", err);
    if (*size < sizeof *size)
        return stki_fail(err, STK_E_BAD_ARG, "out.struct_size: found %u, expected sizeof(%s)", *size, type);
    return STK_OK;
}

/* As much of the answer as the caller's struct has room for. */
static void give(void *out, uint32_t size, const void *answer, size_t bytes)
{
    memcpy(out, answer, size < bytes ? size : bytes);
    memcpy(out, &size, sizeof size);
}

stk_status stk_prep_get_result(const stk_prep *prep, stk_prep_result *out, stk_error *err)
{
    stk_status status = check_asked(prep, out ? &out->struct_size : NULL, "stk_prep_result", err);

    if (status == STK_OK)
        give(out, out->struct_size, &prep->result, sizeof *out);
    return status;
}

static stk_status fill_plan(stk_prep *prep, stki_prep_run *run, bool pretended, stk_prep_plan *plan, stk_error *err)
{
    stki_prep_missing missing;
    int64_t first, end, left = 0;
    bool found = false;
    stk_status status = pretended ? STK_OK : stki_work_look(run, &found, err);

    if (status != STK_OK)
        return status;
    stki_prep_share(run, &first, &end);
    if (found && !prep->opts.restart)
        status = stki_prep_count_missing(run, first, end, &missing, &left, err);
    plan->resumed_rows = -left;
    plan->spooled = run->mode == STKI_PREP_SPOOLED;
    plan->samples = run->core->dataset->count;
    plan->positions = run->cuts.positions;
    plan->batch_rows = run->batch_rows;
    plan->pieces = run->cuts.pieces;
    plan->piece_rows = run->cuts.piece_rows;
    plan->shards = prep->job.output.shard_bytes > 0 ? -1 : run->cuts.shards;
    plan->output_bytes = stki_prep_output_bytes(run, &plan->output_exact);
    plan->work_bytes = plan->spooled ? plan->output_bytes : 0;
    plan->output_exists = stki_prep_exists(prep->manifest_path);
    return status;
}

/* Of a job without output. */
static stk_status fill_plan_alone(stk_prep *prep, stk_prep_plan *plan, stk_error *err)
{
    stki_loader_config *config;
    stki_prep_run run = stki_prep_begin(prep);
    stk_status status = stki_job_loader(&prep->job, NULL, NULL, &config, err);

    if (status == STK_OK && (status = stki_loader_open_config(config, &run.loader, err)) == STK_OK) {
        plan->samples = run.loader->core->dataset->count;
        plan->positions = stk_loader_samples(run.loader);
        plan->output_exists = stki_prep_exists(prep->stats_path);
    }
    stki_prep_close_loader(&run);
    return status;
}

static stk_status look_at(stk_prep *prep, bool pretended, stk_prep_plan *plan, stk_error *err)
{
    stki_prep_run run;
    stk_status status;

    if (!prep->job.format)
        return fill_plan_alone(prep, plan, err);
    status = stki_prep_run_open(prep, &run, err);
    if (status == STK_OK)
        status = fill_plan(prep, &run, pretended, plan, err);
    stki_prep_close(&run);
    return status;
}

stk_status stk_prep_get_plan(stk_prep *prep, stk_prep_plan *out, stk_error *err)
{
    stki_job real;
    stk_prep_plan plan = {0};
    stk_status status = check_asked(prep, out ? &out->struct_size : NULL, "stk_prep_plan", err);

    if (status != STK_OK)
        return status;
    status = stki_prep_begin_look(prep, &real, err);
    if (status == STK_OK)
        status = look_at(prep, prep->job.document != real.document, &plan, err);
    stki_prep_end_look(prep, &real);
    give(out, out->struct_size, &plan, sizeof plan);
    return status;
}

static stk_status sample_job(stk_prep *prep, int64_t most_ns, stk_prep_estimate *out, stk_error *err)
{
    stki_prep_run run;
    stk_status status = stki_prep_run_open(prep, &run, err);

    if (status == STK_OK)
        status = stki_prep_sample(&run, most_ns, out, err);
    stki_prep_close(&run);
    return status;
}

stk_status stk_prep_get_estimate(stk_prep *prep, int64_t most_ns, stk_prep_estimate *out, stk_error *err)
{
    stk_prep_estimate estimate = {.total_ns = -1};
    stki_job real;
    stk_status status = check_asked(prep, out ? &out->struct_size : NULL, "stk_prep_estimate", err);

    if (status != STK_OK)
        return status;
    if (!prep->job.format)
        return stki_fail(err, STK_E_UNSUPPORTED, "a job without output makes no rows that could be sampled");
    status = stki_prep_begin_look(prep, &real, err);
    if (status == STK_OK)
        status = sample_job(prep, most_ns > 0 ? most_ns : 2 * STKI_SECOND, &estimate, err);
    stki_prep_end_look(prep, &real);
    give(out, out->struct_size, &estimate, sizeof estimate);
    return status;
}

static stk_status write_job(const stk_prep *prep, FILE *to)
{
    return stki_document_write_absolute(prep->job.document, to, NULL);
}

static stk_status write_help(const stk_prep *prep, FILE *to)
{
    (void)prep;
    stki_sections_help(stki_job_sections, to);
    return STK_OK;
}

static char *text_by(stk_status (*write)(const stk_prep *prep, FILE *to), const stk_prep *prep)
{
    char *text = NULL, *copy = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    stk_status status;

    if (!to)
        return NULL;
    status = write(prep, to);
    if (fclose(to) == 0 && status == STK_OK)
        copy = stki_strdup(text);
    free(text);
    return copy;
}

char *stk_prep_job_text(const stk_prep *prep)
{
    return prep ? text_by(write_job, prep) : NULL;
}

char *stk_prep_options_help(void)
{
    return text_by(write_help, NULL);
}

char *stk_prep_options_tables(void)
{
    json_t *json = stki_sections_json(stki_job_sections);
    char *text = json_dumps(json, JSON_COMPACT), *counted = text ? stki_strdup(text) : NULL;

    json_decref(json);
    free(text);
    return counted;
}
