/* stoker_manifest_show.c: the words of stoker_manifest.h: what a manifest lists, and what became of checking it. */
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "live_line.h"
#include "stoker_json.h"
#include "stoker_manifest.h"
#include "stoker_shown.h"
#include "stoker_tool.h"
#include "thread.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN = 20 };

static int refuse(const char *command, bool json, const stk_error *err)
{
    if (json)
        st_json_print(json_pack("{s:o}", "error", st_error_json(err->status, err->message)));
    return stoker_finish_output(command, stoker_complain(command, err, STOKER_FAILED));
}

static int64_t rows_of(const stki_manifest *list)
{
    return json_integer_value(json_object_get(json_object_get(list->manifest, "totals"), "rows"));
}

/* ---- inspect -------------------------------------------------------------------------------------------------------
 */

static void show_parts(const stki_manifest *list)
{
    for (int i = 0; i < list->count && i < SHOWN; i++)
        printf("  %s  %" PRId64 " rows  %sB  xxh3 %016" PRIx64 "\n", st_shown(list->files[i].name), list->files[i].rows,
               LIVE_SHORT((double)list->files[i].bytes), list->files[i].xxh3);
    if (list->count > SHOWN)
        printf("  and %d more (--json has all)\n", list->count - SHOWN);
}

static void show_text(const stki_manifest *list)
{
    const json_t *inputs = json_object_get(list->manifest, "inputs"),
                 *totals = json_object_get(list->manifest, "totals");
    const json_int_t skipped = json_integer_value(json_object_get(totals, "skipped"));
    const char *version = json_string_value(json_object_get(json_object_get(list->manifest, "versions"), "stoker"));
    char print[STKI_U128_TEXT];
    double bytes = 0;

    for (int i = 0; i < list->count; i++)
        bytes += (double)list->files[i].bytes;
    printf("%s: a manifest, %" PRId64 " rows in %d file%s, %sB\n", st_shown(list->path), rows_of(list), list->count,
           list->count == 1 ? "" : "s", LIVE_SHORT(bytes));
    show_parts(list);
    if (skipped > 0)
        printf("left out     %" JSON_INTEGER_FORMAT " samples\n", skipped);
    printf("inputs       %zu\n", json_array_size(inputs));
    if (version)
        printf("made by      stoker %s\n", st_shown(version));
    printf("fingerprint  %s\n", stki_u128_text(list->fingerprint, print));
}

int st_manifest_inspect(const char *path, bool json)
{
    stki_manifest list;
    stk_error err;

    if (stki_manifest_open(path, &list, &err) != STK_OK)
        return refuse("inspect", json, &err);
    if (json)
        st_json_print(
            json_pack("{s:o, s:s, s:O}", "file", st_text_json(path), "format", "manifest", "manifest", list.manifest));
    else
        show_text(&list);
    stki_manifest_fini(&list);
    return stoker_finish_output("inspect", STOKER_FINE);
}

/* ---- verify --------------------------------------------------------------------------------------------------------
 */

static int64_t progress_from;
static bool progress_shown;

static void show_progress(const struct st_manifest_check *check)
{
    const double seconds = (double)(stki_now_ns() - progress_from) * 1e-9, done = (double)stki_counted(&check->checked),
                 all = (double)check->bytes;
    char line[160];

    snprintf(line, sizeof line, "%" PRId64 " of %" PRId64 " files, %sB of %sB, %sB/s, eta %s",
             stki_counted(&check->ended), check->file_count, LIVE_SHORT(done), LIVE_SHORT(all),
             LIVE_SHORT(done / seconds), LIVE_TIME(done > 0 ? (all - done) / (done / seconds) : -1));
    live_line_draw(line, live_columns(), false);
    progress_shown = true;
}

static void show_result(const struct st_manifest_check *check, double seconds)
{
    int64_t shown = check->fault != NULL;

    if (check->fault)
        printf("bad: %s\n", check->fault);
    for (int64_t i = 0; i < check->file_count && shown < SHOWN; i++)
        if (check->files[i].fault) {
            printf("bad: %s\n", check->files[i].fault);
            shown++;
        }
    if (stki_counted(&check->faults) > shown)
        printf("and %" PRId64 " more (--json has all)\n", stki_counted(&check->faults) - shown);
    if (check->unsummed > 0)
        printf("note: of %" PRId64 " input%s only the size is known (prep.inputs: digests keeps sums)\n",
               check->unsummed, check->unsummed == 1 ? "" : "s");
    printf("%s: manifest: %" PRId64 " file%s, %" PRId64 " bad; %sB read in %.2f s\n", st_shown(check->list->path),
           check->file_count, check->file_count == 1 ? "" : "s", stki_counted(&check->faults),
           LIVE_SHORT((double)stki_counted(&check->checked)), seconds);
}

static void show_result_json(const struct st_manifest_check *check, double seconds)
{
    json_t *bad = json_array();

    if (check->fault)
        json_array_append_new(bad, json_pack("{s:o, s:o}", "file", st_text_json(check->list->path), "message",
                                             st_text_json(check->fault)));
    for (int64_t i = 0; i < check->file_count; i++)
        if (check->files[i].fault)
            json_array_append_new(bad, json_pack("{s:o, s:o}", "file", st_text_json(check->files[i].path), "message",
                                                 st_text_json(check->files[i].fault)));
    st_json_print(json_pack("{s:o, s:s, s:I, s:I, s:I, s:f, s:o}", "file", st_text_json(check->list->path), "format",
                            "manifest", "files", (json_int_t)check->file_count, "bad_files",
                            (json_int_t)stki_counted(&check->faults), "bytes_read",
                            (json_int_t)stki_counted(&check->checked), "seconds", seconds, "bad", bad));
}

static stk_status check_all(struct st_manifest_check *check, int threads, stk_error *err)
{
    stk_status status;

    check->progress = live_is_terminal(STDERR_FILENO) ? show_progress : NULL;
    progress_from = stki_now_ns();
    status = st_manifest_run(check, threads, err);
    if (progress_shown)
        live_line_clear();
    progress_shown = false;
    return status;
}

int st_manifest_verify(const char *path, bool inputs, int threads, bool json)
{
    struct st_manifest_check check = {0};
    stki_manifest list;
    stk_error err;
    stk_status status = stki_manifest_open(path, &list, &err);
    int code;

    if (status != STK_OK)
        return refuse("verify", json, &err);
    status = st_manifest_begin(&list, inputs, &check, &err);
    if (status == STK_OK)
        status = check_all(&check, threads, &err);
    if (status != STK_OK) {
        code = refuse("verify", json, &err);
    } else {
        const double seconds = (double)(stki_now_ns() - progress_from) * 1e-9;
        const int64_t faults = stki_counted(&check.faults);

        if (json)
            show_result_json(&check, seconds);
        else
            show_result(&check, seconds);
        if (faults > 0)
            stki_fail(&err, STK_E_CORRUPT, "%s: %" PRId64 " file%s not as listed", path, faults,
                      faults == 1 ? " is" : "s are");
        code =
            stoker_finish_output("verify", faults > 0 ? stoker_complain("verify", &err, STOKER_FAILED) : STOKER_FINE);
    }
    st_manifest_end(&check);
    stki_manifest_fini(&list);
    return code;
}
