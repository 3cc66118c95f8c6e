/* jsonl.c: determines the type of a key's values in lines of JSON; see text.h. Strings are found when their line is
 * read. For numbers and lists of numbers, all lines are scanned at open: integers are i64, others f64, and lists of
 * equal length become rows. A null among numbers is NaN, and makes them f64. */
#include "allocate.h"
#include "error.h"
#include "npy_header.h"
#include "text.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

static stk_status fail_value(const stki_text_file *text, int64_t index, int64_t at, const char *found,
                             const char *expected, stk_error *err)
{
    return stki_fail_at(err, STK_E_MISMATCH, (stki_place){text->base.path, index, at, found, expected},
                        "line %" PRId64 ": unexpected value of \"%s\"", stki_text_line(text, index), text->key);
}

static stk_status fail_json(const stki_text_file *text, int64_t index, int64_t at, const char *line, int64_t bytes,
                            const stki_json_problem *problem, stk_error *err)
{
    const int64_t left = bytes - problem->at;
    char shown[48];

    return stki_fail_at(
        err, STK_E_CORRUPT,
        (stki_place){text->base.path, index, at + problem->at,
                     left > 0 ? stki_npy_printable(shown, sizeof shown, line + problem->at, left < 16 ? left : 16)
                              : "the end of the line",
                     problem->what},
        "line %" PRId64 ", byte %" PRId64 ": invalid JSON", stki_text_line(text, index), problem->at + 1);
}

static const char *const kind_names[] = {"a string", "a number", "a list"};

static enum stki_jsonl_kind kind_of(enum stki_json_found found)
{
    return found == STKI_JSON_NUMBER ? STKI_JSONL_NUMBER : found == STKI_JSON_LIST ? STKI_JSONL_LIST : STKI_JSONL_TEXT;
}

static bool is_null(enum stki_json_found found, const stki_json_problem *problem)
{
    return found == STKI_JSON_OTHER && strcmp(problem->what, "null") == 0;
}

/* Reads the next number of a value. False: it is not a number, or it is out of range (see *number). */
static bool next_number(const stki_text_file *text, const char **at, const char *end, stki_json_number *number)
{
    *number = (stki_json_number){0};
    if (text->kind == STKI_JSONL_NUMBER && **at == 'n') { /* the value is null */
        number->real = (double)NAN;
        *at = end;
        return true;
    }
    return stki_json_next(at, end, number) && (text->reals || !number->too_large);
}

stk_status stki_jsonl_find(const stki_text_file *text, int64_t index, int64_t at, const char *line, int64_t bytes,
                           stki_json_span *out, stk_error *err)
{
    stki_json_problem problem = {0};
    enum stki_json_found found = stki_json_find(line, bytes, text->key, out, &problem);

    if (found == STKI_JSON_BROKEN)
        return fail_json(text, index, at, line, bytes, &problem, err);
    if (found == STKI_JSON_MISSING && text->kind != STKI_JSONL_TEXT)
        return fail_value(text, index, at, "no object with this key", kind_names[text->kind], err);
    if (found == STKI_JSON_MISSING)
        return stki_fail_at(err, STK_E_NOT_FOUND, (stki_place){text->base.path, index, at, NULL, NULL},
                            "line %" PRId64 ": not an object with the key \"%s\" (source.key)",
                            stki_text_line(text, index), text->key);
    if (text->kind == STKI_JSONL_NUMBER && is_null(found, &problem))
        return STK_OK;
    if (found == STKI_JSON_OTHER || kind_of(found) != text->kind)
        return fail_value(text, index, at, found == STKI_JSON_TEXT ? "a string" : problem.what, kind_names[text->kind],
                          err);
    return STK_OK;
}

stk_status stki_jsonl_numbers(const stki_text_file *text, stk_dtype dtype, int64_t index, int64_t at,
                              const stki_json_span *value, void *to, int64_t *count, stk_error *err)
{
    const char *end = value->at + value->length, *next = value->at;
    stki_json_number number;

    if (text->kind == STKI_JSONL_LIST)
        next = stki_json_list(value, &end);
    for (*count = 0; next < end; ++*count) {
        if (!next_number(text, &next, end, &number))
            return number.too_large
                       ? fail_value(text, index, at, "an integer beyond 64 bits",
                                    "smaller integers, or source.dtype: float64, which rounds them", err)
                       : fail_value(text, index, at, *next == '[' ? "a nested list" : "an item that is not a number",
                                    "numbers", err);
        if (to && (*count >= (text->kind == STKI_JSONL_LIST ? text->most : 1) || (dtype == STK_I64 && !number.whole)))
            return fail_value(text, index, at, "another value", "the value at the time of opening", err);
        if (to && dtype == STK_I64)
            ((int64_t *)to)[*count] = number.value;
        else if (to)
            ((double *)to)[*count] = number.real;
    }
    if (to && text->width >= 0 && *count != (text->kind == STKI_JSONL_LIST ? text->width : 1))
        return fail_value(text, index, at, "another value", "the value at the time of opening", err);
    return STK_OK;
}

/* ---- all lines ---- */

/* Returns a line that is in the mapping, or has been read into *block. */
static stk_status read_line(const stki_text_file *text, int64_t index, char **block, int64_t *room, const char **line,
                            int64_t *at, int64_t *bytes, stk_error *err)
{
    stk_status status = stki_text_sample(text, index, at, bytes, err);

    if (status != STK_OK)
        return status;
    if (text->file->map) {
        *line = (const char *)text->file->map + *at;
        return STK_OK;
    }
    if (*bytes > *room) {
        stki_free(*block);
        *block = stki_zalloc(2 * *bytes);
        *room = *block ? 2 * *bytes : 0;
        if (!*block)
            return stki_fail_memory(err, 2 * *bytes, "a line of JSON");
    }
    *line = *block;
    return stki_file_read(text->file, *at, *block, *bytes, err);
}

/* Merges the type and length of a valid value. */
static void take_facts(stki_text_file *text, const stki_json_span *value, int64_t count, bool first)
{
    const char *end = value->at + value->length, *next = value->at;
    stki_json_number number;

    if (text->kind == STKI_JSONL_LIST)
        next = stki_json_list(value, &end);
    while (text->dtype == STK_I64 && next < end && next_number(text, &next, end, &number))
        if (!number.whole)
            text->dtype = STK_F64;
    text->width = first || text->width == count ? count : -1;
    text->most = count > text->most ? count : text->most;
}

static stk_status look_at_all(stki_text_file *text, stk_error *err)
{
    char *block = NULL;
    int64_t room = 0, at, bytes, count;
    const char *line;
    stki_json_span value;
    stk_status status = STK_OK;

    text->dtype = text->reals ? STK_F64 : STK_I64;
    for (int64_t i = 0; i < text->index.count && status == STK_OK; i++) {
        status = read_line(text, i, &block, &room, &line, &at, &bytes, err);
        if (status == STK_OK)
            status = stki_jsonl_find(text, i, at, line, bytes, &value, err);
        if (status == STK_OK)
            status = stki_jsonl_numbers(text, text->dtype, i, at, &value, NULL, &count, err);
        if (status == STK_OK)
            take_facts(text, &value, count, i == 0);
        if (status != STK_OK)
            (void)stki_fail_record(err, status, i);
    }
    stki_free(block);
    return status;
}

stk_status stki_jsonl_look(stki_text_file *text, const char *named, const char *field, stk_error *err)
{
    char *block = NULL, *key = NULL;
    int64_t room = 0, at, bytes;
    const char *line;
    stki_json_span value;
    stki_json_problem problem;
    enum stki_json_found found = STKI_JSON_MISSING;
    stk_status status;

    if (text->index.count == 0)
        return STK_OK;
    status = read_line(text, 0, &block, &room, &line, &at, &bytes, err);
    if (status == STK_OK && !named && field &&
        stki_json_find(line, bytes, field, &value, &problem) != STKI_JSON_MISSING && !(key = stki_strdup(field)))
        status = stki_fail_memory(err, (int64_t)strlen(field), "a key");
    if (key) {
        stki_free(text->key);
        text->key = key;
    }
    if (status == STK_OK)
        found = stki_json_find(line, bytes, text->key, &value, &problem);
    for (int64_t i = 1; status == STK_OK && is_null(found, &problem) && i < text->index.count; i++)
        if ((status = read_line(text, i, &block, &room, &line, &at, &bytes, err)) == STK_OK)
            found = stki_json_find(line, bytes, text->key, &value, &problem);
    stki_free(block);
    text->kind = kind_of(found);
    return status == STK_OK && text->kind != STKI_JSONL_TEXT ? look_at_all(text, err) : status;
}
