/* loadbench_report.c: the page: verdict and headline figures first, then what they rest on, then everything that was
 * recorded. It is made of the result's JSON alone, so that kept results can be reported too. */
#include "loadbench_report.h"
#include "allocate.h"
#include "error.h"
#include "html.h"
#include "loadbench_output.h"
#include "loadbench_report_parts.h"
#include "loadbench_result.h"
#include "loadbench_scalars.h"
#include "loadbench_table.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WRITING "writing the report"

void lb_report_section(FILE *to, const char *title, const char *lead)
{
    fputs("<section><h2>", to);
    html_text(to, title);
    fputs("</h2>\n", to);
    if (lead) {
        fputs("<p class=\"lead\">", to);
        html_text(to, lead);
        fputs("</p>\n", to);
    }
}

/* "2026-01-31T12:00:00Z" for people. */
static void print_started(FILE *to, const char *started)
{
    if (strlen(started) == 20)
        html_textf(to, "%.10s %.5s UTC", started, started + 11);
    else
        html_text(to, started);
}

static void print_head(FILE *to, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<link rel=\"icon\" href=\"data:,\">\n<title>",
          to);
    html_text(to, title);
    fputs(" – loadbench</title>\n<style>\n", to);
    fputs(lb_report_style, to);
    fputs("</style></head>\n<body><main>\n", to);
}

static void print_foot(FILE *to, const char *version)
{
    fputs("<footer>Made by loadbench ", to);
    html_text(to, version);
    fputs(". Figures are of this machine, at this time; docs/loadbench.md says how they are measured.</footer>\n"
          "</main></body></html>\n",
          to);
}

/* The name of the config: its file without folders and ending. */
static void name_of(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    snprintf(out, size, "%.*s", dot && dot > name ? (int)(dot - name) : (int)strlen(name), name);
}

static void tile(FILE *to, const char *what, const char *value, const char *note)
{
    fputs("<div><dt>", to);
    html_text(to, what);
    fputs("</dt><dd>", to);
    html_text(to, value);
    if (*note) {
        fputs("<small>", to);
        html_text(to, note);
        fputs("</small>", to);
    }
    fputs("</dd></div>\n", to);
}

/* What others used of the processors meanwhile. Results of earlier versions do not say. */
static void tile_others(FILE *to, const json_t *tree)
{
    double used = 0, processors = 0;
    char note[96], text[32];

    if (!json_object_get(tree, "others"))
        return;
    if (!lb_scalar_at(tree, "others.used_processor_count", &used) ||
        !lb_scalar_at(tree, "others.allowed_processor_count", &processors)) {
        tile(to, "used by others", "unknown", "of the processors");
        return;
    }
    snprintf(note, sizeof note, "of %.0f processor%s: %s", processors, processors > 1.5 ? "s" : "",
             json_is_true(lb_tree_at(tree, "others.quiet")) ? "a quiet run" : "not a quiet run");
    snprintf(text, sizeof text, "%.2f", used);
    tile(to, "used by others", text, note);
}

static void print_tiles(FILE *to, const json_t *tree)
{
    double value, other = 0, repeats = 1;
    char text[64], note[160] = "";

    fputs("<dl class=\"tiles\">\n", to);
    lb_scalar_at(tree, "repeat_count", &repeats);
    if (lb_scalar_at(tree, "result.samples_per_s", &value)) {
        if (repeats > 1 && lb_scalar_at(tree, "result.samples_per_s.spread_percent", &other))
            snprintf(note, sizeof note, "median of %.0f, spread %.1f\xc2\xa0%%", repeats, other);
        tile(to, "samples a second", LB_NUMBER(value), note);
    }
    if (lb_scalar_at(tree, "limits.binding.share_percent", &value)) {
        snprintf(text, sizeof text, "%s", LB_PERCENT(value));
        snprintf(note, sizeof note, "%.100s", lb_text_at(tree, "limits.binding.name"));
        if (lb_scalar_at(tree, "limits.binding.unpacked_times_count", &other) && other >= LB_UNPACKED_AGAIN)
            snprintf(note, sizeof note, "%.60s, each chunk %s times", lb_text_at(tree, "limits.binding.name"),
                     LB_SHORT(other));
        tile(to, "of the binding limit", text, note);
    }
    if (lb_scalar_at(tree, "utilisation.au", &value) && value >= 0) {
        snprintf(text, sizeof text, "%.1f %%", 100 * value);
        tile(to, "accelerator utilisation", text, "");
    }
    if (lb_scalar_at(tree, "stages.consumer_wait_percent", &value)) {
        snprintf(text, sizeof text, "%.1f %%", value);
        tile(to, "the consumer waits", text, "of its time");
    }
    if (lb_scalar_at(tree, "wait.p99_us", &value)) {
        snprintf(text, sizeof text, value < 1000 ? "%s us" : "%s ms", LB_NUMBER(value < 1000 ? value : value / 1000));
        tile(to, "99 % of waits below", text, repeats > 1 ? "of all repeats together" : "");
    }
    if (lb_scalar_at(tree, "result.first_batch_ms", &value)) {
        snprintf(text, sizeof text, "%s ms", LB_NUMBER(value));
        tile(to, "first batch after", text, "");
    }
    tile_others(to, tree);
    fputs("</dl>\n", to);
}

/* Where and of what it was measured. */
static void print_facts(FILE *to, const json_t *tree)
{
    static const struct {
        const char *key, *title;
    } parts[] = {{"machine", "Machine"}, {"storage", "Storage"},  {"versions", "Versions"},
                 {"data", "Data"},       {"cache", "Page cache"}, {"config", "Config in effect"}};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        lb_report_facts(to, parts[i].title, json_object_get(tree, parts[i].key));
}

static void print_result(FILE *to, const json_t *tree)
{
    const char *text = lb_text_at(tree, "verdict.text");
    const json_t *note;
    char name[256];
    size_t i;

    name_of(lb_text_at(tree, "config.file"), name, sizeof name);
    print_head(to, name);
    fputs("<header><p class=\"eyebrow\">loadbench · ", to);
    print_started(to, lb_text_at(tree, "started"));
    html_textf(to, " · %s", lb_text_at(tree, "machine.cpu"));
    fputs("</p>\n<h1>", to);
    html_text(to, name);
    fputs("</h1>\n<p class=\"verdict\">", to);
    html_text(to, text);
    fputs("</p>\n", to);
    if (strcmp(lb_text_at(tree, "verdict.binds"), "unknown") != 0) {
        fputs("<p class=\"confidence\">Confidence: ", to);
        html_text(to, lb_text_at(tree, "verdict.confidence"));
        if (*lb_text_at(tree, "verdict.doubt"))
            html_textf(to, ", since %s", lb_text_at(tree, "verdict.doubt"));
        fputs("</p>\n", to);
    }
    fputs("</header>\n", to);
    print_tiles(to, tree);
    lb_report_required(to, tree);
    lb_report_predictions(to, tree);
    lb_report_stages(to, tree);
    lb_report_limits(to, tree);
    lb_report_throughput(to, tree);
    lb_report_workers(to, tree);
    lb_report_queue(to, tree);
    lb_report_latency(to, tree);
    lb_report_compared(to, tree);
    lb_report_figures(to, tree);
    if (json_array_size(json_object_get(tree, "notes")) > 0) {
        lb_report_section(to, "Notes", NULL);
        fputs("<ul class=\"notes\">\n", to);
        json_array_foreach(json_object_get(tree, "notes"), i, note)
        {
            fputs("<li>", to);
            html_text(to, lb_text_of(note));
            fputs("</li>\n", to);
        }
        fputs("</ul></section>\n", to);
    }
    print_facts(to, tree);
    print_foot(to, lb_text_at(tree, "versions.stoker"));
}

static void print_sweep(FILE *to, const json_t *tree)
{
    const json_t *facts;
    char name[256];

    name_of(lb_text_at(tree, "file"), name, sizeof name);
    print_head(to, name);
    fputs("<header><p class=\"eyebrow\">loadbench · sweep</p>\n<h1>", to);
    html_text(to, name);
    fputs("</h1>\n<p class=\"verdict\">", to);
    if (*lb_text_at(tree, "best"))
        html_textf(to, "Most samples a second: %s.", lb_text_at(tree, "best"));
    else
        html_text(to, "No point of the sweep could be run.");
    fputs("</p></header>\n", to);
    lb_report_sweep(to, tree);
    facts = lb_tree_at(tree, "sweep.first_point");
    print_facts(to, facts);
    print_foot(to, lb_text_at(tree, "version"));
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

/* In memory first, then into a file beside it. */
stk_status lb_report_write(const char *path, const json_t *tree, stk_error *err)
{
    char *part = stki_format("%s.part", path), *text = NULL;
    size_t length = 0;
    FILE *to = part ? open_memstream(&text, &length) : NULL;
    bool whole = to != NULL;
    stk_status status;

    if (to) {
        if (json_object_get(tree, "sweep"))
            print_sweep(to, tree);
        else
            print_result(to, tree);
        whole = !ferror(to);
        whole = fclose(to) == 0 && whole;
    }
    status = whole ? write_whole(path, part, text, length, err) : stki_fail_memory(err, (int64_t)length, "the report");
    free(text);
    stki_free(part);
    return status;
}
