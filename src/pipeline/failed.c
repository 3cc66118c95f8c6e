/* failed.c: see failed.h. It decides which errors may be tolerated, records failures, and accounts for them in order of
 * delivery. */
#include "failed.h"
#include "allocate.h"
#include "error.h"
#include "text_json.h"
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int stki_failed_policy(const stki_core *core, int32_t source)
{
    const stki_loader_config *config = core->config;
    int own = config->dataset_count > 0 ? config->datasets[source].on_error : -1;

    return own >= 0 ? own : config->on_error;
}

/* Whether any data set skips or replaces failed samples. */
static bool tolerates_failures(const stki_core *core)
{
    if (core->config->on_error != STK_ON_ERROR_FAIL)
        return true;
    for (int d = 0; d < core->config->dataset_count; d++)
        if (stki_failed_policy(core, d) != STK_ON_ERROR_FAIL)
            return true;
    return false;
}

bool stki_failed_may_settle(stk_status status)
{
    switch (status) {
    case STK_E_MEMORY:
    case STK_E_RESOURCE:
    case STK_E_CLOSED:
    case STK_E_FORKED:
    case STK_E_CONFIG:
    case STK_E_BAD_ARG:
    case STK_E_CANCELLED:
        return false;
    default:
        return status < 0;
    }
}

static struct stki_failure failure_of(const stk_batch *batch, int64_t row, bool with_partner, const stk_error *error)
{
    const stki_position *failed = with_partner ? &batch->partners[row] : &batch->positions[row];

    return (struct stki_failure){.row = row,
                                 .sample = batch->indices[row],
                                 .position = batch->positions[row].draw,
                                 .source = batch->positions[row].source,
                                 .with_partner = with_partner,
                                 .failed_sample = failed->sample,
                                 .failed_source = failed->source,
                                 .padding = row >= batch->valid,
                                 .substitute = -1,
                                 .error = *error};
}

void stki_failed_note(stki_core *core, stk_batch *batch, int64_t row, bool with_partner, const stk_error *error)
{
    struct stki_failure *made, *next, **at;

    if (!core->settles)
        return;
    made = stki_zalloc(sizeof *made);
    stki_lock(&batch->error_lock);
    for (at = &batch->failures; *at && (*at)->row < row; at = &(*at)->next)
        ;
    next = *at;
    if (next && next->row == row) {
        struct stki_failure *rest = next->next;

        if (next->with_partner && !with_partner)
            *next = failure_of(batch, row, false, error);
        next->next = rest;
    } else if (made) { /* if there is no memory to record the failure, nothing resolves the row, so the batch fails */
        *made = failure_of(batch, row, with_partner, error);
        made->next = next;
        *at = made;
        made = NULL;
    }
    stki_unlock(&batch->error_lock);
    stki_free(made);
}

void stki_failed_forget(stk_batch *batch)
{
    while (batch->failures) {
        struct stki_failure *failure = batch->failures;

        batch->failures = failure->next;
        stki_free(failure);
    }
}

/* ---- accounting ---- */

stk_status stki_failed_open(stki_core *core, stk_error *err)
{
    const char *path = core->config->error_list;

    core->settles = tolerates_failures(core);
    for (int i = 0; core->settles && core->layout.pairs && i < (core->source_count ? core->source_count : 1); i++)
        if (stki_failed_policy(core, i) == STK_ON_ERROR_SUBSTITUTE)
            return stki_fail(err, STK_E_UNSUPPORTED,
                             "on_error: found substitute with mixup or cutmix, expected skip or fail: a sample that "
                             "fails is part of two rows");
    if (!path)
        return STK_OK;
    core->error_list = fopen(path, "ae");
    return core->error_list ? STK_OK : stki_fail_errno(err, errno, path, "cannot open the list of failed samples");
}

void stki_failed_close(stki_core *core)
{
    if (core->error_list)
        fclose(core->error_list);
    core->error_list = NULL;
}

/* Stops listing failed samples and adds a note once. */
static void end_list(stki_core *core, int error)
{
    stki_config_note(core->config, "loader.error_list: %s: not all failed samples could be listed: %s",
                     core->config->error_list, strerror(error));
    stki_failed_close(core);
}

/* Writes one line of JSON. */
static void list(stki_core *core, const stk_batch *batch, const struct stki_failure *failure)
{
    const stk_error *error = &failure->error;
    json_t *json = json_object();
    char *text;

    json_object_set_new(json, "epoch", json_integer(batch->epoch));
    json_object_set_new(json, "step", json_integer(batch->step));
    json_object_set_new(json, "position", json_integer(failure->position));
    json_object_set_new(json, "rank", json_integer(core->batching.rank));
    json_object_set_new(json, "sample", json_integer(failure->sample));
    if (core->config->dataset_count > 0)
        json_object_set_new(json, "dataset", json_string(core->config->datasets[failure->source].name));
    json_object_set_new(json, "reason", json_string(stk_status_name(error->status)));
    json_object_set_new(json, "action",
                        json_string(failure->substitute >= 0 ? "substitute"
                                    : failure->settled       ? "skip"
                                                             : "fail"));
    if (failure->substitute >= 0)
        json_object_set_new(json, "substitute", json_integer(failure->substitute));
    if (failure->with_partner)
        json_object_set_new(json, "partner", json_integer(failure->failed_sample));
    if (error->file[0])
        json_object_set_new(json, "file", stki_text_json(error->file));
    if (error->record >= 0)
        json_object_set_new(json, "record", json_integer(error->record));
    if (error->offset >= 0)
        json_object_set_new(json, "offset", json_integer(error->offset));
    json_object_set_new(json, "message", stki_text_json(error->message));
    text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    if (!text)
        end_list(core, ENOMEM);
    else if (fprintf(core->error_list, "%s\n", text) < 0)
        end_list(core, errno);
    free(text);
}

static int reason_of(stk_status status)
{
    return status < 0 && status > -STKI_REASONS ? -status : 0;
}

/* Returns the number of valid rows of this rank in an epoch. */
static int64_t rows_of_epoch(const stki_core *core)
{
    return (core->steps - 1) * stki_batching_rows(&core->batching, 0).valid +
           stki_batching_rows(&core->batching, core->steps - 1).valid;
}

/* Compares quotients, because they are rounded like the fraction when it was parsed: 29.0 / 100 equals 0.29, but 100 *
 * 0.29 is below 29. */
int64_t stki_failed_most(double fraction, int64_t rows)
{
    int64_t most = rows > 0 ? (int64_t)(fraction * (double)rows) : 0;

    while (most > 0 && (double)most / (double)rows > fraction)
        most--;
    while (most < rows && (double)(most + 1) / (double)rows <= fraction)
        most++;
    return most;
}

static int64_t budget_of_epoch(const stki_core *core)
{
    return stki_failed_most(core->config->max_error_fraction, rows_of_epoch(core));
}

stk_status stki_failed_over(const stk_error *last, int64_t count, const char *allowed, const char *key, stk_error *err)
{
    const char *found = STKI_TEXT("%" PRId64, count);
    const stki_place place = {last->file[0] ? last->file : NULL, last->record, -1, found, allowed};

    if (!err)
        return STK_E_LIMIT;
    (void)stki_fail(
        err, STK_E_LIMIT,
        "too many failed samples: found %s, expected %s; raise %s to continue; the last one failed with: %s", found,
        allowed, key, last->message);
    stki_error_facts(err, place);
    return STK_E_LIMIT;
}

static stk_status count(stki_core *core, const struct stki_failure *failure, stki_totals *after, stk_error *err)
{
    const stki_loader_config *config = core->config;

    stki_count(failure->substitute >= 0 ? &core->substituted : &core->skipped, 1);
    /* the failure is counted for the partner's row, which may be on another rank */
    if (failure->with_partner)
        return STK_OK;
    stki_count(&core->failed_for[reason_of(failure->error.status)], 1);
    after->failed++;
    after->epoch_failed++;
    if (config->max_errors >= 0 && after->failed > config->max_errors)
        return stki_failed_over(&failure->error, after->failed, STKI_TEXT("at most %" PRId64, config->max_errors),
                                "loader.max_errors", err);
    if (after->epoch_failed > budget_of_epoch(core))
        return stki_failed_over(
            &failure->error, after->epoch_failed,
            STKI_TEXT("at most %" PRId64 " of %" PRId64 " in an epoch", budget_of_epoch(core), rows_of_epoch(core)),
            "loader.max_error_fraction", err);
    return STK_OK;
}

void stki_failed_list(stki_core *core, const stk_batch *batch)
{
    for (const struct stki_failure *failure = batch->failures; failure && core->error_list; failure = failure->next)
        if (!failure->padding)
            list(core, batch, failure);
    if (batch->failures && core->error_list && fflush(core->error_list) != 0)
        end_list(core, errno);
}

stk_status stki_failed_deliver(stki_core *core, stk_batch *batch, stki_totals *after, stk_error *err)
{
    stk_status status = STK_OK;

    batch->failed = 0;
    for (const struct stki_failure *failure = batch->failures; failure && status == STK_OK; failure = failure->next) {
        if (!failure->settled || failure->padding)
            continue;
        if (core->config->left_out)
            core->config->left_out(core->config->job_context, failure->position, failure->sample, &failure->error);
        batch->failed++;
        status = count(core, failure, after, err);
    }
    stki_failed_list(core, batch);
    after->epoch_left_out += batch->left_out;
    if (status == STK_OK && batch->last_of_epoch && after->epoch_left_out > 0 &&
        after->epoch_left_out >= rows_of_epoch(core))
        status =
            stki_fail(err, STK_E_EMPTY, "epoch %" PRId64 ": all %" PRId64 " rows were skipped because samples failed",
                      batch->epoch, rows_of_epoch(core));
    if (batch->last_of_epoch)
        after->epoch_failed = after->epoch_left_out = 0;
    stki_failed_forget(batch);
    return status;
}
