/* stoker_prep_report.c: see stoker_prep_report.h. */
#include "stoker_prep_report.h"
#include "clock.h"
#include "live_line.h"
#include "stoker_json.h"
#include "stoker_shown.h"
#include "text_json.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- plan ---- */

static void print_share(const stk_prep_plan *plan, const stki_task *task)
{
    const bool shards = plan->shards > 1;
    const int64_t units = shards ? plan->shards : plan->pieces;
    const int64_t first = units * task->task / task->tasks, end = units * (task->task + 1) / task->tasks;

    printf("task      %" PRId64 " of %" PRId64 ": %s%s%s%s; ", task->task, task->tasks, task->source,
           *task->why ? " (" : "", task->why, *task->why ? ")" : "");
    if (end > first)
        printf("%ss %" PRId64 " to %" PRId64 "\n", shards ? "shard" : "piece", first, end - 1);
    else
        printf("nothing: there are more tasks than %ss\n", shards ? "shard" : "piece");
}

static void print_shards(const stk_prep_plan *plan)
{
    if (plan->shards < 0)
        printf(", in as many shards as needed");
    else if (plan->shards > 1)
        printf(", in %" PRId64 " shards", plan->shards);
}

static void print_size(const stk_prep_plan *plan, const stk_prep_estimate *estimate)
{
    const bool known = !plan->output_exact && estimate->sampled_rows > 0;

    printf("output    %s%sB", plan->output_exact ? "" : "about ",
           LIVE_SHORT((double)(known ? estimate->output_bytes : plan->output_bytes)));
    print_shards(plan);
    printf("%s\n", plan->output_exists ? "; already exists: --force replaces it" : "");
}

/* Prints the time for this task's share, excluding finished parts. */
static void print_time(const stk_prep_plan *plan, const stki_task *task, const stk_prep_estimate *estimate)
{
    const int64_t left = plan->positions / task->tasks - plan->resumed_rows;
    const double seconds = left > 0 ? (double)estimate->total_ns / 1e9 * (double)left / (double)plan->positions : 0;

    if (estimate->sampled_rows <= 0 || estimate->total_ns < 0)
        return;
    if (seconds < 1)
        printf("time      less than 1s");
    else
        printf("time      about %s", LIVE_TIME(seconds));
    printf(", estimated from %" PRId64 " trial rows; writing to the disk may take longer\n", estimate->sampled_rows);
}

static void print_notes(const stk_prep *job, stk_status status, const stk_prep_estimate *estimate)
{
    if (status == STK_OK && estimate->failed_rows > 0)
        printf("note      of the trial rows, %" PRId64 " failed and would be skipped\n", estimate->failed_rows);
    for (int i = 0; i < stk_prep_note_count(job); i++)
        printf("note      %s\n", st_shown(stk_prep_note(job, i)));
}

static void print_making(const stk_prep_plan *plan, const stk_prep_estimate *estimate, const stki_task *task)
{
    printf("pieces    %" PRId64 " of %" PRId64 " rows%s\n", plan->pieces, plan->piece_rows,
           plan->spooled ? ", written separately and joined at the end" : "");
    print_size(plan, estimate);
    print_time(plan, task, estimate);
    if (plan->work_bytes > 0)
        printf("work      about %sB of temporary files until the job ends\n", LIVE_SHORT((double)plan->work_bytes));
    if (plan->resumed_rows > 0)
        printf("resumes   %" PRId64 " rows have already been written\n", plan->resumed_rows);
    if (task->tasks > 1)
        print_share(plan, task);
}

stk_status st_prep_report_plan(stk_prep *job, const char *name, const stki_task *task, stk_error *err)
{
    stk_prep_plan plan = {.struct_size = sizeof plan};
    stk_prep_estimate estimate = {.struct_size = sizeof estimate};
    stk_status status = stk_prep_get_plan(job, &plan, err);

    if (status != STK_OK)
        return status;
    printf("job       %s\n", st_shown(name));
    printf("rows      %" PRId64 " of %" PRId64 " samples\n", plan.positions, plan.samples);
    if (plan.pieces > 0) {
        status = stk_prep_get_estimate(job, 0, &estimate, err);
        print_making(&plan, &estimate, task);
    } else {
        printf("output    statistics only%s\n", plan.output_exists ? "; already exist: --force replaces them" : "");
    }
    print_notes(job, status, &estimate);
    return status;
}

/* ---- result ---- */

static void print_incomplete(const stk_prep_result *result)
{
    if (result->missing_pieces == 0) {
        puts("this task's share is done; another task is joining the pieces");
        return;
    }
    printf("this task's share is done; %" PRId64
           " piece%s of other tasks %s still missing: the task that writes the last piece joins all pieces\n",
           result->missing_pieces, result->missing_pieces == 1 ? "" : "s", result->missing_pieces == 1 ? "is" : "are");
}

void st_prep_report_text(const stk_prep *job, const struct st_prep_show *show)
{
    stk_prep_result result = {.struct_size = sizeof result};
    const double seconds = (double)(stki_now_ns() - show->began_ns) / 1e9;

    if (stk_prep_get_result(job, &result, NULL) != STK_OK)
        return;
    for (int i = 0; i < stk_prep_note_count(job); i++)
        printf("note      %s\n", st_shown(stk_prep_note(job, i)));
    if (!result.complete) {
        print_incomplete(&result);
        return;
    }
    printf("%" PRId64 " row%s", result.rows, result.rows == 1 ? "" : "s");
    if (result.skipped > 0)
        printf(", %" PRId64 " skipped (%s)", result.skipped, st_shown(result.skipped_path ? result.skipped_path : ""));
    printf("; %sB in %" PRId64 " file%s; %.1f s", LIVE_SHORT((double)result.bytes), result.files,
           result.files == 1 ? "" : "s", seconds);
    if (result.resumed_rows > 0)
        printf(", %" PRId64 " of the rows written by an earlier run", result.resumed_rows);
    putchar('\n');
    if (result.manifest_path)
        printf("%s\n", st_shown(result.manifest_path));
    if (result.stats_path)
        printf("%s\n", st_shown(result.stats_path));
}

static json_t *text_or_null(const char *text)
{
    return text ? stki_text_json(text) : json_null();
}

void st_prep_report_json(const stk_prep *job, stk_status status, int code, const stk_error *err)
{
    stk_prep_result result = {.struct_size = sizeof result};
    json_t *line = json_pack("{s:s, s:s, s:i}", "event", "end", "status", stk_status_name(status), "exit_status", code),
           *notes = json_array();
    char *text;

    for (int i = 0; i < stk_prep_note_count(job); i++)
        json_array_append_new(notes, stki_text_json(stk_prep_note(job, i)));
    json_object_set_new(line, "notes", notes);
    if (status != STK_OK)
        json_object_set_new(line, "message", stki_text_json(err->message));
    else if (stk_prep_get_result(job, &result, NULL) == STK_OK) {
        json_object_set_new(line, "complete", json_boolean(result.complete));
        json_object_set_new(line, "rows", json_integer(result.rows));
        json_object_set_new(line, "skipped", json_integer(result.skipped));
        json_object_set_new(line, "files", json_integer(result.files));
        json_object_set_new(line, "bytes", json_integer(result.bytes));
        json_object_set_new(line, "missing_pieces", json_integer(result.missing_pieces));
        json_object_set_new(line, "resumed_rows", json_integer(result.resumed_rows));
        json_object_set_new(line, "manifest", text_or_null(result.manifest_path));
        json_object_set_new(line, "skipped_list", text_or_null(result.skipped_path));
        json_object_set_new(line, "statistics", text_or_null(result.stats_path));
    }
    text = json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII);
    if (text)
        puts(text);
    free(text);
    json_decref(line);
}

void st_prep_report_stopped(const stk_prep *job, int signal_number)
{
    stk_prep_result result = {.struct_size = sizeof result};
    const char *folder = stk_prep_get_result(job, &result, NULL) == STK_OK ? result.work_folder : NULL;
    const char *name = signal_number == SIGINT ? "Ctrl-C" : signal_number == SIGTERM ? "SIGTERM" : "a signal";

    fprintf(stderr, "stoker prep: stopped by %s; the same command resumes from %s, --restart discards it\n", name,
            folder ? st_shown(folder) : "the work folder");
}
