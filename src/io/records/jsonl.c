/* jsonl.c: determines the type of a key's values in JSON Lines files; see text.h. Strings are located only when their
 * line is read. For numbers and lists of numbers, all lines are scanned at open: integers become i64, other numbers
 * f64, and lists of equal length become rows. A null among numbers becomes NaN, which makes all of them f64. One scan
 * serves all fields that read the same file; errors are stored and returned when their field is opened. */
#include "allocate.h"
#include "dtype.h"
#include "error.h"
#include "nearest_word.h"
#include "npy_header.h"
#include "text.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define DEFAULT_KEY "text" /* if the first record does not have the name of the field */

static const stki_option jsonl_rows[] = {
    STKI_STRING(stki_jsonl_options, key, NULL,
                "The key of the sample's value, a.b for nested objects; by default the name of the field if the first "
                "record has it, otherwise text",
                .examples = STKI_EXAMPLES("text", "title")),
};
static const stki_option_table jsonl_table = STKI_SOURCE_TABLE("JSON lines", jsonl_rows);

const stki_source_group stki_jsonl_source = {&jsonl_table, sizeof(stki_jsonl_options), NULL, NULL};

static stk_status fail_value(const stki_text_file *text, const stki_jsonl_column *column, int64_t index, int64_t at,
                             const char *found, const char *expected, stk_error *err)
{
    return stki_fail_at(err, STK_E_MISMATCH, (stki_place){text->base.path, index, at, found, expected},
                        "line %" PRId64 ": unexpected value of \"%s\"", stki_text_line(text, index), column->key);
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

/* Reads the next number of a value. Returns false if it is not a number or is out of range (see *number). */
static bool next_number(const stki_jsonl_column *column, const char **at, const char *end, stki_json_number *number)
{
    *number = (stki_json_number){0};
    if (column->kind == STKI_JSONL_NUMBER && **at == 'n') { /* the value is null */
        number->real = (double)NAN;
        *at = end;
        return true;
    }
    return stki_json_next(at, end, number) && (column->reals || !number->too_large);
}

/* Whether the field's dtype can represent the number. 3.0 becomes an integer. */
static bool is_held(const stki_jsonl_column *column, stki_json_number *number)
{
    if (!number->whole)
        number->whole = stki_whole_of(number->real, &number->value);
    return number->whole && stki_dtype_holds(column->integers, number->value);
}

static stk_status fail_held(const stki_text_file *text, const stki_jsonl_column *column, int64_t index, int64_t at,
                            const char *found, const char *end, stk_error *err)
{
    int length = 0;
    char shown[48];

    while (length < 40 && found + length < end && !strchr(", \t\r\n", found[length]))
        length++;
    return fail_value(
        text, column, index, at, stki_npy_printable(shown, sizeof shown, found, length),
        STKI_TEXT("an integer that fits in %s (the field's dtype)", stk_dtype_long_name(column->integers)), err);
}

/* Returns the keys of a line, a new reference. NULL: it is not an object, or exceeds 1 MiB. */
static json_t *keys_of(const char *line, int64_t bytes)
{
    json_t *object = bytes <= 1 << 20 ? json_loadb(line, (size_t)bytes, 0, NULL) : NULL, *keys = NULL, *value;
    const char *key;

    if (json_is_object(object))
        keys = json_array();
    json_object_foreach(object, key, value) json_array_append_new(keys, json_string(key));
    json_decref(object);
    return keys;
}

static stk_status fail_missing(const stki_text_file *text, const stki_jsonl_column *column, int64_t index, int64_t at,
                               const char *line, int64_t bytes, stk_error *err)
{
    const char *names[64], *near;
    char list[64] = "";
    json_t *keys = keys_of(line, bytes);
    int count = 0;
    stk_status status;

    for (; count < (int)json_array_size(keys) && count < 64; count++)
        names[count] = json_string_value(json_array_get(keys, (size_t)count));
    near = stki_nearest_word(column->key, names, count);
    status = stki_fail_at(
        err, STK_E_NOT_FOUND,
        (stki_place){text->base.path, index, at, NULL,
                     count > 0 ? STKI_TEXT("one of its keys: %s", stki_word_list(names, count, list, sizeof list))
                               : NULL},
        "line %" PRId64 ": not an object with the key \"%s\" (source.key)%s%s%s", stki_text_line(text, index),
        column->key, near ? ", did you mean " : "", near ? near : "",
        near ? "?"
        : strcmp(column->key, DEFAULT_KEY) == 0
            ? ", the default if the first record does not have the name of the field"
            : "");
    json_decref(keys);
    return status;
}

/* Checks what was found for the key of a column. */
static stk_status check_found(const stki_text_file *text, const stki_jsonl_column *column, int64_t index, int64_t at,
                              const char *line, int64_t bytes, const stki_json_want *want, stk_error *err)
{
    if (want->found == STKI_JSON_BROKEN)
        return fail_json(text, index, at, line, bytes, &want->problem, err);
    if (want->found == STKI_JSON_MISSING && column->kind != STKI_JSONL_TEXT)
        return fail_value(text, column, index, at, "no object with this key", kind_names[column->kind], err);
    if (want->found == STKI_JSON_MISSING)
        return fail_missing(text, column, index, at, line, bytes, err);
    if (column->kind == STKI_JSONL_NUMBER && is_null(want->found, &want->problem))
        return STK_OK;
    if (want->found == STKI_JSON_OTHER)
        return fail_value(text, column, index, at, want->problem.what,
                          STKI_TEXT("%s%s",
                                    column->kind == STKI_JSONL_TEXT ? "a string, a number or a list of numbers"
                                                                    : kind_names[column->kind],
                                    strcmp(want->problem.what, "a boolean") == 0 ? " (store booleans as 0 and 1)" : ""),
                          err);
    if (kind_of(want->found) != column->kind)
        return fail_value(text, column, index, at, want->found == STKI_JSON_TEXT ? "a string" : want->problem.what,
                          kind_names[column->kind], err);
    return STK_OK;
}

stk_status stki_jsonl_find(const stki_text_file *text, int64_t index, int64_t at, const char *line, int64_t bytes,
                           stki_json_span *out, stk_error *err)
{
    stki_json_want want = {.key = text->column.key};

    stki_json_find_all(line, bytes, &want, 1);
    *out = want.value;
    return check_found(text, &text->column, index, at, line, bytes, &want, err);
}

/* Facts about the numbers of a value. */
typedef struct facts {
    bool whole;      /* all are integers */
    int64_t rounded; /* the first integer that F64 cannot represent; 0: none */
} facts;

/* Like stki_jsonl_numbers, for any column. */
static stk_status numbers(const stki_text_file *text, const stki_jsonl_column *column, stk_dtype dtype, int64_t index,
                          int64_t at, const stki_json_span *value, void *to, int64_t *count, facts *about,
                          stk_error *err)
{
    const bool list = column->kind == STKI_JSONL_LIST;
    const char *end = value->at + value->length, *next = value->at;
    stki_json_number number;

    if (list)
        next = stki_json_list(value, &end);
    *about = (facts){.whole = true};
    for (*count = 0; next < end; ++*count) {
        const char *begin = next;

        if (!next_number(column, &next, end, &number))
            return number.too_large
                       ? fail_value(text, column, index, at, "an integer beyond 64 bits",
                                    "smaller integers, or source.dtype: float64, which rounds them", err)
                       : fail_value(text, column, index, at,
                                    *next == '[' ? "a nested list" : "an item that is not a number", "numbers", err);
        if (column->integers != STK_DTYPE_NONE && !is_held(column, &number))
            return fail_held(text, column, index, at, begin, next, err);
        about->whole = about->whole && number.whole;
        if (!to && number.whole && about->rounded == 0 && stki_is_rounded(number.value))
            about->rounded = number.value;
        if (to && (*count >= (list ? column->most : 1) || (dtype == STK_I64 && !number.whole)))
            return fail_value(text, column, index, at, "another value",
                              "the value that was there when the file was opened", err);
        if (to && dtype == STK_I64)
            ((int64_t *)to)[*count] = number.value;
        else if (to)
            ((double *)to)[*count] = number.real;
    }
    if (to && column->width >= 0 && *count != (list ? column->width : 1))
        return fail_value(text, column, index, at, "another value", "the value that was there when the file was opened",
                          err);
    return STK_OK;
}

stk_status stki_jsonl_numbers(const stki_text_file *text, stk_dtype dtype, int64_t index, int64_t at,
                              const stki_json_span *value, void *to, int64_t *count, stk_error *err)
{
    facts about;

    return numbers(text, &text->column, dtype, index, at, value, to, count, &about, err);
}

/* ---- all lines ---- */

/* Returns a line, either in the mapping or after reading it into *block. */
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

enum { NO_WIDTH = -2 }; /* no list has been read */

/* Updates the column's dtype and length for the value in line `index`. */
static stk_status take_facts(const stki_text_file *text, stki_jsonl_column *column, int64_t index, int64_t at,
                             const char *line, int64_t bytes, const stki_json_want *want, stk_error *err)
{
    int64_t count;
    facts about;
    stk_status status = check_found(text, column, index, at, line, bytes, want, err);

    if (status == STK_OK)
        status = numbers(text, column, column->dtype, index, at, &want->value, NULL, &count, &about, err);
    if (status != STK_OK)
        return stki_fail_record(err, status, index);
    if (!about.whole)
        column->dtype = STK_F64;
    if (about.rounded != 0 && column->rounded == 0) {
        column->rounded = about.rounded;
        column->rounded_line = index;
    }
    column->width = column->width == NO_WIDTH || column->width == count ? count : -1;
    column->most = count > column->most ? count : column->most;
    return STK_OK;
}

/* Stores the error of a column. Fails only if out of memory. */
static stk_status keep(stki_jsonl_column *column, const stk_error *cause, stk_error *err)
{
    column->error = stki_zalloc(sizeof *column->error);
    if (!column->error)
        return stki_fail_memory(err, sizeof *column->error, column->key);
    *column->error = *cause;
    return STK_OK;
}

/* Scans all lines for up to STKI_JSON_WANTS columns of numbers or lists. Skips lines that are not JSON, which fail when
 * they are read. */
static stk_status look_at_all(const stki_text_file *text, stki_jsonl_column *const *columns, int count, stk_error *err)
{
    stki_json_want wants[STKI_JSON_WANTS];
    char *block = NULL;
    int64_t room = 0, at, bytes;
    const char *line;
    int left = count;
    stk_status status = STK_OK;

    for (int k = 0; k < count; k++) {
        wants[k] = (stki_json_want){.key = columns[k]->key};
        columns[k]->dtype = columns[k]->reals ? STK_F64 : STK_I64;
        columns[k]->width = NO_WIDTH;
    }
    for (int64_t i = 0; i < text->index.count && left > 0 && status == STK_OK; i++) {
        status = stki_fail_record(err, read_line(text, i, &block, &room, &line, &at, &bytes, err), i);
        if (status != STK_OK)
            break;
        stki_json_find_all(line, bytes, wants, count);
        for (int k = 0; k < count && status == STK_OK; k++) {
            stk_error cause;

            if (columns[k]->error || wants[k].found == STKI_JSON_BROKEN ||
                take_facts(text, columns[k], i, at, line, bytes, &wants[k], &cause) == STK_OK)
                continue;
            status = keep(columns[k], &cause, err);
            left--;
        }
    }
    stki_free(block);
    return status;
}

/* Determines the type of the values from the first one that is not null, in a line that is not broken. */
static stk_status look_at_first(const stki_text_file *text, stki_jsonl_column *column, stk_error *err)
{
    char *block = NULL;
    int64_t room = 0, at, bytes;
    const char *line;
    stki_json_want want = {.key = column->key, .found = STKI_JSON_OTHER, .problem = {0, "null"}};
    stk_status status = STK_OK;

    for (int64_t i = 0; status == STK_OK && i < text->index.count &&
                        (want.found == STKI_JSON_BROKEN || is_null(want.found, &want.problem));
         i++)
        if ((status = read_line(text, i, &block, &room, &line, &at, &bytes, err)) == STK_OK)
            stki_json_find_all(line, bytes, &want, 1);
    stki_free(block);
    column->kind = kind_of(want.found);
    return status;
}

/* ---- columns ---- */

/* Returns the key and type that a field requests. `line`: the first record; NULL: there is none. */
static stki_jsonl_column column_of(const stki_reader_opts *opts, const char *line, int64_t bytes)
{
    const char *field = opts->name ? opts->name : opts->prefer;
    stki_jsonl_options lines;
    stki_json_want want = {.key = field, .found = STKI_JSON_MISSING};

    stki_source_values(opts, &stki_jsonl_source, &lines);
    if (!lines.key && field && line)
        stki_json_find_all(line, bytes, &want, 1);
    return (stki_jsonl_column){.key = (char *)(uintptr_t)(lines.key                         ? lines.key
                                                          : want.found != STKI_JSON_MISSING ? field
                                                                                            : DEFAULT_KEY),
                               .reals = opts->alias_dtype == STK_F64,
                               .integers = opts->integers};
}

static const stki_jsonl_column *column_in(const stki_text_file *text, const stki_jsonl_column *like)
{
    for (int k = 0; k < text->column_count; k++)
        if (text->columns[k].reals == like->reals && text->columns[k].integers == like->integers &&
            strcmp(text->columns[k].key, like->key) == 0)
            return &text->columns[k];
    return NULL;
}

static stk_status add_column(stki_text_file *text, stki_jsonl_column column, stk_error *err)
{
    stki_jsonl_column *all;

    if (column_in(text, &column))
        return STK_OK;
    all = stki_resize(text->columns, (text->column_count + 1) * (int64_t)sizeof *all);
    text->columns = all ? all : text->columns;
    column.key = all ? stki_strdup(column.key) : NULL;
    if (!column.key)
        return stki_fail_memory(err, (int64_t)sizeof *all, "a key");
    all[text->column_count++] = column;
    return STK_OK;
}

/* Warns if F64, the dtype of the column, rounds integers that the file has. */
static void warn_of_rounding(stki_text_file *text, const stki_jsonl_column *column)
{
    if (column->dtype == STK_F64 && !column->reals && column->rounded != 0)
        stki_container_warn(&text->base,
                            "line %" PRId64 ", key %s: %" PRId64
                            " is rounded to float64, because there are nulls or fractions; store integers only, or "
                            "set source: {dtype: float64} to round them",
                            stki_text_line(text, column->rounded_line), column->key, column->rounded);
}

/* Adds the columns of all fields that are opened together, the requested one first, and determines their types. */
static stk_status add_columns(stki_text_file *text, const stki_reader_opts *opts, const stki_jsonl_column *own,
                              const char *line, int64_t bytes, stk_error *err)
{
    stki_jsonl_column *some[STKI_JSON_WANTS];
    int count = 0;
    stk_status status = add_column(text, *own, err);

    for (int i = 0; i < opts->together_count && !text->lender && status == STK_OK; i++)
        status = add_column(text, column_of(&opts->together[i], line, bytes), err);
    for (int k = 0; k < text->column_count && line && status == STK_OK; k++) {
        status = look_at_first(text, &text->columns[k], err);
        if (text->columns[k].kind != STKI_JSONL_TEXT)
            some[count++] = &text->columns[k];
        if (status == STK_OK && count > 0 && (count == STKI_JSON_WANTS || k == text->column_count - 1)) {
            status = look_at_all(text, some, count, err);
            while (count > 0)
                warn_of_rounding(text, some[--count]);
        }
    }
    return status;
}

json_t *stki_jsonl_keys(const stki_text_file *text)
{
    json_t *keys = NULL;
    char *block = NULL;
    int64_t room = 0, at, bytes;
    const char *line;
    stk_error ignored;

    if (text->index.count > 0 && read_line(text, 0, &block, &room, &line, &at, &bytes, &ignored) == STK_OK)
        keys = keys_of(line, bytes);
    stki_free(block);
    return keys;
}

stk_status stki_jsonl_look(stki_text_file *text, const stki_reader_opts *opts, stk_error *err)
{
    const stki_text_file *lender = (const stki_text_file *)(const void *)text->lender;
    const stki_jsonl_column *found;
    stki_jsonl_column own;
    char *block = NULL;
    int64_t room = 0, at, bytes = 0;
    const char *line = NULL;
    stk_status status = STK_OK;

    if (text->index.count > 0)
        status = read_line(text, 0, &block, &room, &line, &at, &bytes, err);
    if (status == STK_OK) {
        own = column_of(opts, line, bytes);
        found = lender ? column_in(lender, &own) : NULL;
        if (!found && (status = add_columns(text, opts, &own, line, bytes, err)) == STK_OK)
            found = column_in(text, &own);
        if (found)
            text->column = *found;
    }
    stki_free(block);
    if (status != STK_OK || !text->column.error)
        return status;
    if (err)
        *err = *text->column.error;
    return text->column.error->status;
}

void stki_jsonl_fini(stki_text_file *text)
{
    for (int k = 0; k < text->column_count; k++) {
        stki_free(text->columns[k].key);
        stki_free(text->columns[k].error);
    }
    stki_free(text->columns);
}
