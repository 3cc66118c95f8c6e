/* loadbench_report.c: the page is a template, report.html, which the build embeds as `lb_report_page`. The page draws
 * the JSON that is inserted here: the result or the sweep, and the labels of the text output, which are defined only
 * once, in C. */
#include "loadbench_report.h"
#include "allocate.h"
#include "error.h"
#include "loadbench_figures.h"
#include "loadbench_foresee.h"
#include "loadbench_output.h"
#include "loadbench_sweep.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WRITING "writing the report"
#define PLACE "@CARRIED@"

extern const char lb_report_page[];

static json_t *figures_json(void)
{
    json_t *list = json_array();

    for (int i = 0; i < lb_figure_count; i++)
        if (lb_figures[i].label)
            json_array_append_new(list,
                                  json_pack("{s:s, s:s}", "key", lb_figures[i].key, "label", lb_figures[i].label));
    return list;
}

#define STAGE(name, member, label, ...) {#member "_work_percent", #member, label},

static json_t *stages_json(void)
{
    static const struct {
        const char *key, *bottleneck, *label;
    } stages[] = {
        LB_STAGES(STAGE){"hand_over_work_percent", "ring", "hand over"},
        {"wait_for_slot_percent", "", "waiting for a slot"},
        {"wait_for_work_percent", "", "waiting for work"},
    };
    json_t *list = json_array();

    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "key", stages[i].key, "bottleneck",
                                              stages[i].bottleneck, "label", stages[i].label));
    return list;
}

static json_t *columns_json(void)
{
    json_t *list = json_array();

    for (int i = 0; i < LB_SWEEP_COLUMNS; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:s?}", "head", lb_sweep_columns[i].head, "path", lb_sweep_columns[i].path));
    return list;
}

static char *carried_text(const json_t *tree)
{
    json_t *carried = json_pack("{s:O, s:o, s:o, s:o, s:f, s:f}", json_object_get(tree, "sweep") ? "sweep" : "result",
                                tree, "figures", figures_json(), "stages", stages_json(), "columns", columns_json(),
                                "same_percent", 100 * LB_SAME, "unpacked_again", LB_UNPACKED_AGAIN);
    char *text = carried ? json_dumps(carried, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;

    json_decref(carried);
    return text;
}

/* Writes < as \u003c, so that it cannot end the script element. < occurs only in JSON strings, where both forms mean
 * the same character. */
static void write_carried(FILE *to, const char *text)
{
    for (; *text; text++)
        if (*text == '<')
            fputs("\\u003c", to);
        else
            fputc(*text, to);
}

/* Returns the page; NULL: out of memory. */
static char *page_of(const json_t *tree, size_t *length)
{
    const char *place = strstr(lb_report_page, PLACE);
    char *carried = carried_text(tree), *page = NULL;
    FILE *to = carried ? open_memstream(&page, length) : NULL;
    bool whole = to != NULL;

    if (to) {
        fwrite(lb_report_page, 1, (size_t)(place - lb_report_page), to);
        write_carried(to, carried);
        fputs(place + strlen(PLACE), to);
        whole = !ferror(to);
        whole = fclose(to) == 0 && whole;
    }
    free(carried);
    if (whole)
        return page;
    free(page);
    return NULL;
}

stk_status lb_report_try(const char *path, stk_error *err)
{
    return lb_output_try(path, WRITING, err);
}

static stk_status write_whole(const char *path, const char *part, const char *text, size_t length, stk_error *err)
{
    const int to = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int failed = to < 0 ? errno : 0;

    for (size_t at = 0; at < length && !failed;) {
        const ssize_t wrote = write(to, text + at, length - at);
        if (wrote < 0 && errno != EINTR)
            failed = errno;
        at += wrote > 0 ? (size_t)wrote : 0;
    }
    if (to >= 0 && close(to) != 0 && !failed)
        failed = errno;
    if (!failed && rename(part, path) != 0)
        failed = errno;
    if (failed && to >= 0)
        unlink(part);
    return failed ? stki_fail_errno(err, failed, path, WRITING) : STK_OK;
}

/* Builds the page in memory, then writes it to a temporary file and renames that. */
stk_status lb_report_write(const char *path, const json_t *tree, stk_error *err)
{
    size_t length = 0;
    char *part = stki_format("%s.part", path), *page = part ? page_of(tree, &length) : NULL;
    const stk_status status =
        page ? write_whole(path, part, page, length, err) : stki_fail_memory(err, 65536, "the report");

    free(page);
    stki_free(part);
    return status;
}
