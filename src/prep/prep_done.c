/* prep_done.c: what of a job is made already, by the journals and pieces of its work folder. */
#include "error.h"
#include "prep_run.h"
#include "spool.h"
#include <inttypes.h>
#include <string.h>

static stk_status read_journal(const stki_prep_run *run, int64_t unit, json_t **lines, stk_error *err)
{
    char *path = stki_work_journal(run, unit);
    stk_status status = path ? stki_journal_read(path, lines, err) : stki_fail_memory(err, 256, "a path");

    stki_free(path);
    return status;
}

static int64_t end_of(const json_t *lines)
{
    int64_t end = -1;

    for (size_t i = 0; i < json_array_size(lines); i++) {
        const json_t *at = json_object_get(json_array_get(lines, i), "end");

        if (at)
            end = json_integer_value(at);
    }
    return end;
}

static stk_status known_piece(const stki_prep_run *run, int64_t piece, json_t **out, stk_error *err)
{
    char *path = stki_work_piece(run, piece);
    stk_error cause;
    stk_status status = path ? stki_spool_known(path, out, &cause) : stki_fail_memory(err, 256, "a path");

    stki_free(path);
    if (status == STK_E_NOT_FOUND) {
        *out = NULL;
        return STK_OK;
    }
    if (status != STK_OK && path)
        *err = cause;
    return status;
}

stk_status stki_prep_unit_done(const stki_prep_run *run, int64_t unit, bool *done, int64_t *rows, stk_error *err)
{
    int64_t first, end, first_piece, end_piece;
    json_t *lines;
    stk_status status;

    *done = false;
    *rows = 0;
    if (run->mode == STKI_PREP_SPOOLED) {
        status = known_piece(run, unit, &lines, err);
        *done = status == STK_OK && lines;
        stki_cut(&run->cuts, unit, &first, &end);
        *rows = *done ? end - first : 0;
        if (status == STK_OK)
            json_decref(lines);
        return status;
    }
    status = read_journal(run, unit, &lines, err);
    if (status != STK_OK)
        return status;
    stki_cut_of_shard(&run->cuts, run->mode == STKI_PREP_SHARDS ? unit : 0, &first, &end, &first_piece, &end_piece);
    *done = stki_outlet_done(lines);
    if (*done)
        *rows = end - first;
    else if (run->job->format->resumes && end_of(lines) > first) /* else it begins anew */
        *rows = end_of(lines) - first;
    json_decref(lines);
    return STK_OK;
}

stk_status stki_prep_unit_pieces(const stki_prep_run *run, int64_t unit, json_t *pieces, stk_error *err)
{
    json_t *lines = NULL;
    stk_status status;

    if (run->mode == STKI_PREP_SPOOLED) {
        status = known_piece(run, unit, &lines, err);
        if (status == STK_OK && (!lines || json_array_append_new(pieces, lines) != 0))
            status = stki_fail(err, STK_E_NOT_FOUND, "piece %" PRId64 " is not made yet", unit);
        return status;
    }
    status = read_journal(run, unit, &lines, err);
    for (size_t i = 0; status == STK_OK && i < json_array_size(lines); i++)
        if (json_object_get(json_array_get(lines, i), "piece") &&
            json_array_append(pieces, json_array_get(lines, i)) != 0)
            status = stki_fail_memory(err, 256, "the list of pieces");
    if (status == STK_OK || lines)
        json_decref(lines);
    return status;
}

static void end_run(stki_prep_missing *m, int64_t end)
{
    const size_t used = strlen(m->text);
    char *to = m->text + used;
    const size_t room = sizeof m->text - used;
    const char *comma = used > 0 ? ", " : "";

    if (m->from < 0)
        return;
    if (room < 60)
        (void)(room > 8 && to[-1] != '.' && snprintf(to, room, ", ..."));
    else if (end - m->from > 1)
        (void)snprintf(to, room, "%s%lld to %lld", comma, (long long)m->from, (long long)end - 1);
    else
        (void)snprintf(to, room, "%s%lld", comma, (long long)m->from);
    m->from = -1;
}

stk_status stki_prep_count_missing(const stki_prep_run *run, int64_t first, int64_t end, stki_prep_missing *m,
                                   int64_t *rows, stk_error *err)
{
    stk_status status = STK_OK;

    *m = (stki_prep_missing){.from = -1};
    for (int64_t unit = first; unit < end && status == STK_OK; unit++) {
        int64_t made;
        bool done;

        status = stki_prep_unit_done(run, unit, &done, &made, err);
        m->count += !done;
        *rows -= made;
        if (done)
            end_run(m, unit);
        else if (m->from < 0)
            m->from = unit;
    }
    end_run(m, end);
    return status;
}

static int64_t failed_in(const json_t *lines)
{
    int64_t failed = 0;

    for (size_t i = 0; i < json_array_size(lines); i++)
        failed += (int64_t)json_array_size(json_object_get(json_array_get(lines, i), "skipped"));
    return failed;
}

stk_status stki_prep_count_failed(const stki_prep_run *run, int64_t first, int64_t end, int64_t *failed, stk_error *err)
{
    stk_status status = STK_OK;

    *failed = 0;
    for (int64_t unit = first; unit < end && status == STK_OK; unit++) {
        json_t *pieces = json_array();
        bool done;
        int64_t rows;

        status = run->mode == STKI_PREP_SPOOLED ? stki_prep_unit_done(run, unit, &done, &rows, err) : STK_OK;
        if (status == STK_OK && (run->mode != STKI_PREP_SPOOLED || done))
            status = stki_prep_unit_pieces(run, unit, pieces, err);
        *failed += failed_in(pieces);
        json_decref(pieces);
    }
    return status;
}

void stki_prep_share(const stki_prep_run *run, int64_t *first, int64_t *end)
{
    const int64_t n = run->opts->tasks > 0 ? run->opts->tasks : 1, r = run->opts->task;

    *first = (int64_t)((__int128)run->units * r / n);
    *end = (int64_t)((__int128)run->units * (r + 1) / n);
}
