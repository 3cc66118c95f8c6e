/* image_list.c: reads a text file that lists one image per line: "PATH", "PATH<TAB>LABEL" or "PATH LABEL" with an
 * integer label. Either all lines have a label or none does. Text after the last tab is a label. Without a tab, text
 * after the last space is a label if it is an integer; otherwise it belongs to the path. If any label after a tab is
 * not an integer, all labels are class names and must follow a tab. Empty lines are skipped. Missing files are reported
 * when their samples are read. */
#include "allocate.h"
#include "error.h"
#include "file.h"
#include "image_set.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PATH = 4096 };

static stk_status fail_line(const char *path, int64_t line, const char *found, const char *expected, const char *what,
                            stk_error *err)
{
    return stki_fail_at(err, STK_E_CORRUPT, (stki_place){path, -1, -1, found, expected}, "line %" PRId64 ": %s", line,
                        what);
}

static bool whole_number(const char *text, int64_t *out)
{
    char *end;

    if (!strchr("+-0123456789", text[0]) || !text[0])
        return false;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0' && end > text;
}

/* Removes the label from `line` if it has one. */
static bool cut_label(char *line, int64_t *label)
{
    char *tab = strrchr(line, '\t'), *at = tab ? tab : strrchr(line, ' ');

    if (!at || at == line || !whole_number(at + 1, label))
        return false;
    while (at > line && (at[-1] == ' ' || at[-1] == '\t'))
        at--;
    *at = '\0';
    return true;
}

/* Adds a line whose label is a class name. */
static stk_status take_named(stki_image_set *set, char *line, int64_t number, const char *path, stk_error *err)
{
    char *tab = strrchr(line, '\t'), *name = tab ? tab + 1 : NULL;
    int64_t label;
    stk_status status;

    if (!tab || tab == line || !*name || strlen(name) > STKI_CLASS_NAME)
        return fail_line(path, number, !tab ? "no tab" : STKI_TEXT("%s", name), "PATH<TAB>NAME, as on the other lines",
                         "invalid class name", err);
    while (tab > line && (tab[-1] == ' ' || tab[-1] == '\t'))
        tab--;
    *tab = '\0';
    if (strlen(line) >= MOST_PATH)
        return fail_line(path, number, STKI_TEXT("%zu bytes", strlen(line)), "fewer than 4096", "the path is too long",
                         err);
    status = stki_classes_add(&set->classes, name, &label, err);
    return status != STK_OK ? status : stki_image_set_add(set, "", line, label, err);
}

static stk_status take_line(stki_image_set *set, char *line, int64_t number, const char *path, bool *labeled,
                            stk_error *err)
{
    int64_t label = 0;
    bool has_label;

    if (set->name_line > 0) {
        *labeled = true;
        return take_named(set, line, number, path, err);
    }
    has_label = cut_label(line, &label);
    if (set->count == 0)
        *labeled = has_label;
    if (has_label != *labeled)
        return fail_line(path, number, has_label ? "a label" : "no label",
                         *labeled ? "a label, as on the first line" : "no label, as on the first line",
                         "inconsistent labels", err);
    if (strlen(line) >= MOST_PATH)
        return fail_line(path, number, STKI_TEXT("%zu bytes", strlen(line)), "fewer than 4096", "the path is too long",
                         err);
    return stki_image_set_add(set, "", line, label, err);
}

/* Returns the length of a line without its terminator, and sets *next to the next line. */
static size_t end_line(const char *line, char *end, char **next)
{
    char *stop = memchr(line, '\n', (size_t)(end - line));
    size_t bytes = (size_t)((stop ? stop : end) - line);

    *next = stop ? stop + 1 : end;
    return bytes > 0 && line[bytes - 1] == '\r' ? bytes - 1 : bytes;
}

/* Finds the first label after a tab that is not an integer, if any. */
static stk_status find_names(stki_image_set *set, char *text, int64_t length, stk_error *err)
{
    char *end = text + length, *next, label[32];
    int64_t number = 1, ignored;

    for (char *line = text; line < end; line = next, number++) {
        size_t bytes = end_line(line, end, &next), at = bytes;

        while (at > 0 && line[at - 1] != '\t')
            at--;
        if (at == 0)
            continue;
        snprintf(label, sizeof label, "%.*s", (int)(bytes - at < 31 ? bytes - at : 31), line + at);
        if (bytes - at < 31 && whole_number(label, &ignored))
            continue;
        set->name_line = number;
        set->name_found = stki_strdup(label);
        return set->name_found ? STK_OK : stki_fail_memory(err, sizeof label, "a label");
    }
    return STK_OK;
}

static stk_status take_lines(stki_image_set *set, char *text, int64_t length, const char *path, stk_error *err)
{
    bool labeled = false;
    int64_t number = 1;
    char *end = text + length, *next;
    stk_status status = find_names(set, text, length, err);

    for (char *line = text; line < end && status == STK_OK; line = next, number++) {
        const size_t bytes = end_line(line, end, &next);

        if (memchr(line, '\0', bytes))
            return fail_line(path, number, "a NUL", "text", "not a list of images", err);
        line[bytes] = '\0';
        if (bytes > 0)
            status = take_line(set, line, number, path, &labeled, err);
    }
    if (status == STK_OK && !labeled) {
        stki_free(set->labels);
        set->labels = NULL;
    }
    return status;
}

static stk_status read_list(stki_file *file, stki_image_set *set, stk_error *err)
{
    char *text = stki_zalloc(file->size + 1);
    stk_status status = text ? STK_OK : stki_fail_memory(err, file->size + 1, "a list of images");

    if (status == STK_OK)
        status = stki_file_read(file, 0, text, file->size, err);
    if (status == STK_OK)
        status = take_lines(set, text, file->size, file->path, err);
    stki_free(text);
    if (status == STK_OK && set->count == 0)
        status = stki_fail_at(err, STK_E_NOT_FOUND, (stki_place){file->path, -1, -1, "no line", "lines of PATH LABEL"},
                              "no images in the list");
    return status;
}

stk_status stki_image_set_list(const char *path, stki_image_set *out, stk_error *err)
{
    stki_file *file = NULL;
    stk_status status;

    *out = (stki_image_set){0};
    status = stki_image_set_root(out, path, err);
    if (status == STK_OK)
        status = stki_file_open(path, STKI_ACCESS_PREAD, STKI_PATTERN_SEQUENTIAL, &file, err);
    if (status == STK_OK)
        status = read_list(file, out, err);
    stki_file_close(file);
    if (status != STK_OK)
        stki_image_set_fini(out);
    return status;
}
