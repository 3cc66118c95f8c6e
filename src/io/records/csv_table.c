/* csv_table.c: scans the records of a table, and parses its options; see csv.h. A mapped file is scanned in place.
 * Other files are read chunk by chunk into a buffer, where each chunk follows the unconsumed rest of the previous
 * one. */
#include "allocate.h"
#include "csv.h"
#include "dtype.h"
#include "error.h"
#include "npy_header.h"
#include "source_common.h"
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

enum { PIECE = 1 << 20, NAME_MOST = 255 };

/* ---- scanning records ---- */

typedef struct scan {
    const stki_csv *csv;
    const char *data;
    char *buffer;             /* used if the file is not mapped; `data` points to it */
    int64_t room, from, have; /* from: file offset of `data`; have: its size */
    int64_t next;             /* offset of the next record in data */
    int64_t line, next_line;  /* line numbers of the current and the next record, from 1 */
    int64_t start;            /* file offset of the current record */
} scan;

static stk_status scan_init(scan *s, const stki_csv *csv, int64_t from, stk_error *err)
{
    *s = (scan){.csv = csv, .from = from, .next_line = 1};
    if (csv->file->map) {
        s->data = (const char *)csv->file->map + from;
        s->have = csv->file->size - from;
        return STK_OK;
    }
    s->room = PIECE;
    s->data = s->buffer = stki_zalloc(s->room);
    return s->buffer ? STK_OK : stki_fail_memory(err, s->room, "a piece of a table");
}

static void scan_fini(scan *s)
{
    stki_free(s->buffer);
}

static bool is_last(const scan *s)
{
    return s->from + s->have == s->csv->file->size;
}

/* Moves the unconsumed rest to the front of the buffer and reads more data after it. */
static stk_status read_more(scan *s, stk_error *err)
{
    const int64_t rest = s->have - s->next;
    int64_t more;
    stk_status status;

    memmove(s->buffer, s->buffer + s->next, (size_t)rest);
    s->from += s->next;
    s->have = rest;
    s->next = 0;
    if (rest > s->room / 2) {
        char *larger = s->room < STKI_CSV_RECORD ? stki_resize(s->buffer, 2 * s->room) : NULL;

        if (s->room >= STKI_CSV_RECORD)
            return stki_fail_at(err, STK_E_LIMIT, (stki_place){s->csv->base.path, -1, s->from, NULL, "at most 64 MiB"},
                                "line %" PRId64 ": the record is too long (is a quote left open?)", s->next_line);
        if (!larger)
            return stki_fail_memory(err, 2 * s->room, "a record of a table");
        s->data = s->buffer = larger;
        s->room *= 2;
    }
    more = s->csv->file->size - s->from - s->have;
    more = more < s->room - s->have ? more : s->room - s->have;
    status = stki_file_read(s->csv->file, s->from + s->have, s->buffer + s->have, more, err);
    s->have += more;
    return status;
}

static stk_status fail_record(const scan *s, const stki_csv_problem *problem, stk_error *err)
{
    const stki_csv *csv = s->csv;
    const bool named = problem->column < csv->column_count;
    char shown[96];

    return stki_fail_at(
        err, STK_E_CORRUPT, (stki_place){csv->base.path, -1, s->start + problem->at, problem->found, problem->expected},
        "line %" PRId64 ", column %d%s%s%s", s->line, problem->column + 1, named ? " (" : "",
        named ? stki_text_end(shown, sizeof shown, csv->columns[problem->column].name) : "", named ? ")" : "");
}

static int64_t lines_in(const char *at, int64_t count)
{
    const char *end = at + count;
    int64_t lines = 0;

    while (at < end && (at = memchr(at, '\n', (size_t)(end - at)))) {
        lines++;
        at++;
    }
    return lines;
}

static bool is_empty_line(const char *at, int64_t bytes)
{
    return bytes > 0 && (*at == '\n' || (bytes == 2 && *at == '\r'));
}

/* Reads the next record that is not an empty line. *count: its number of cells; 0: the end of the file. */
static stk_status scan_next(scan *s, const stki_csv_want *want, int *count, stk_error *err)
{
    for (;;) {
        const char *at = s->data + s->next;
        stki_csv_problem problem;
        int64_t used;
        enum stki_csv_result result;

        *count = 0;
        if (s->next == s->have && is_last(s))
            return STK_OK;
        result = stki_csv_read(at, s->have - s->next, is_last(s), s->csv->delimiter, want, count, &used, &problem);
        s->start = s->from + s->next;
        s->line = s->next_line;
        if (result == STKI_CSV_TOO_MANY) {
            *count = want->most + 1;
            return STK_OK;
        }
        if (result == STKI_CSV_BROKEN) {
            s->line += lines_in(at, problem.at);
            return fail_record(s, &problem, err);
        }
        if (result == STKI_CSV_MORE) {
            stk_status status = read_more(s, err);

            if (status != STK_OK)
                return status;
            continue;
        }
        s->next += used;
        s->next_line += lines_in(at, used);
        if (!is_empty_line(at, used))
            return STK_OK;
    }
}

/* ---- random access ---- */

int64_t stki_csv_line(const stki_csv *csv, int64_t record)
{
    const int64_t start = stki_places_at(&csv->start, record);
    int64_t line = 1;
    char block[4096];

    for (int64_t at = 0; at < start;) {
        const int64_t left = start - at;
        const int64_t count = left < (int64_t)sizeof block ? left : (int64_t)sizeof block;

        if (stki_file_read(csv->file, at, block, count, NULL) != STK_OK)
            return 0;
        line += lines_in(block, count);
        at += count;
    }
    return line;
}

stk_status stki_csv_fail(const stki_csv *csv, int column, int64_t record, stk_status status, const stki_csv_cell *found,
                         const char *expected, stk_error *err)
{
    char shown[96], cell[64];

    return stki_fail_at(err, status,
                        (stki_place){csv->base.path, record, stki_places_at(&csv->start, record),
                                     found->length == 0 ? "an empty cell"
                                                        : stki_npy_printable(cell, sizeof cell, found->at,
                                                                             found->length < 40 ? found->length : 40),
                                     expected},
                        "line %" PRId64 ", column %d (%s)", stki_csv_line(csv, record), column + 1,
                        stki_text_end(shown, sizeof shown, csv->columns[column].name));
}

stk_status stki_csv_cell_of(const stki_csv *csv, int column, int64_t record, const char *bytes, stki_csv_cell *out,
                            stk_error *err)
{
    const stki_csv_want want = {out, csv->column_count, column};
    stki_csv_problem problem;
    int64_t used, from, to;
    int count = 0;

    stki_places_pair(&csv->start, record, &from, &to);
    if (stki_csv_read(bytes, to - from, true, csv->delimiter, &want, &count, &used, &problem) == STKI_CSV_RECORD_READ &&
        count == csv->column_count)
        return STK_OK;
    return stki_fail_at(
        err, STK_E_CORRUPT,
        (stki_place){csv->base.path, record, from, "another record", "the one that was there when the file was opened"},
        "the record changed");
}

stk_status stki_csv_walk_run(const stki_csv_walk *walk, stk_error *err)
{
    const stki_csv *csv = walk->csv;
    stki_csv_cell *cells = stki_zalloc_array(csv->column_count, sizeof *cells);
    const stki_csv_want want = {cells, csv->column_count, walk->column};
    scan s;
    stk_status status = scan_init(&s, csv, stki_places_at(&csv->start, 0), err);

    if (status == STK_OK && !cells)
        status = stki_fail_memory(err, csv->column_count * (int64_t)sizeof *cells, "the cells of a record");
    for (int64_t i = 0; i < csv->count && status == STK_OK; i++) {
        int count;

        status = scan_next(&s, &want, &count, err);
        if (status == STK_OK && (count != csv->column_count || s.start != stki_places_at(&csv->start, i)))
            status = stki_fail_at(err, STK_E_CORRUPT,
                                  (stki_place){csv->base.path, i, s.start, "another record",
                                               "the one that was there when the file was opened"},
                                  "the table changed");
        if (status == STK_OK)
            status = walk->take(walk->context, i, cells, err);
    }
    stki_free(cells);
    scan_fini(&s);
    return status;
}

/* ---- the header ---- */

static stk_status fail_header(const stki_csv *csv, int column, const char *found, const char *expected, stk_error *err)
{
    return stki_fail_at(err, STK_E_CORRUPT, (stki_place){csv->base.path, -1, -1, found, expected},
                        "invalid column %d of the header line", column + 1);
}

static stk_status take_name(stki_csv *csv, int column, const stki_csv_cell *cell, stk_error *err)
{
    const int64_t bytes = stki_csv_bytes(cell);
    char *name;

    if (csv->header && bytes > NAME_MOST)
        return fail_header(csv, column, STKI_TEXT("%" PRId64 " bytes", bytes), "a name of at most 255 bytes", err);
    if (!csv->header)
        name = stki_format("%d", column);
    else if (bytes == 0) /* pandas' name for an unnamed column, such as the index column of its to_csv */
        name = stki_format("Unnamed: %d", column);
    else
        name = stki_zalloc(bytes + 1);
    csv->columns[column].name = name;
    if (!name)
        return stki_fail_memory(err, bytes + 1, "the name of a column");
    if (csv->header && bytes > 0)
        stki_csv_text(cell, name);
    csv->column_count = column + 1;
    for (int i = 0; i < column; i++)
        if (strcmp(csv->columns[i].name, name) == 0)
            return fail_header(csv, column, STKI_TEXT("%s a second time", name), "unique names", err);
    return STK_OK;
}

/* Warns about a single column whose name contains another common delimiter. */
static void warn_of_delimiter(stki_csv *csv)
{
    const char *name = csv->columns[0].name, *other = strpbrk(name, ";\t|,");

    if (other && *other != csv->delimiter)
        stki_container_warn(&csv->base,
                            "the only column is named \"%s\": does the table use another delimiter "
                            "(source.delimiter: \"%s\")?",
                            name, *other == '\t' ? "\\t" : STKI_TEXT("%c", *other));
}

static stk_status read_header(stki_csv *csv, scan *s, stki_csv_cell *cells, stk_error *err)
{
    const stki_csv_want want = {cells, STKI_CSV_COLUMNS, -1};
    bool numbers = true;
    int count;
    double number;
    stk_status status = scan_next(s, &want, &count, err);

    if (status == STK_OK && count == 0)
        status = stki_fail_at(err, STK_E_CORRUPT, (stki_place){csv->base.path, -1, -1, "no lines", "a header line"},
                              "no column names");
    if (status == STK_OK && count > STKI_CSV_COLUMNS)
        status = stki_fail_at(err, STK_E_LIMIT, (stki_place){csv->base.path, -1, -1, NULL, "at most 4096"},
                              "too many columns in the header line");
    if (status != STK_OK)
        return status;
    csv->columns = stki_zalloc_array(count, sizeof *csv->columns);
    if (!csv->columns)
        return stki_fail_memory(err, count * (int64_t)sizeof *csv->columns, "the columns of a table");
    for (int i = 0; i < count && status == STK_OK; i++) {
        numbers = numbers && stki_csv_number(&cells[i], &number);
        status = take_name(csv, i, &cells[i], err);
    }
    if (status == STK_OK && numbers && csv->header)
        stki_container_warn(&csv->base,
                            "all column names are numbers: is the header line missing (source.header: false)?");
    if (status == STK_OK && count == 1 && csv->header)
        warn_of_delimiter(csv);
    return status;
}

/* ---- types of columns ---- */

static bool is_all_digits(const stki_csv_cell *cell)
{
    for (int64_t i = 0; i < cell->length; i++)
        if (!strchr("0123456789+- \t", cell->at[i]))
            return false;
    return true;
}

/* Integers that do not fit in i64 are text, because a double would lose digits. */
static enum stki_csv_kind kind_of(const stki_csv_cell *cell, int64_t *whole)
{
    double number;

    if (stki_csv_whole(cell, whole))
        return STKI_CSV_WHOLE;
    return !is_all_digits(cell) && stki_csv_number(cell, &number) ? STKI_CSV_REAL : STKI_CSV_TEXT;
}

static void look_at(const stki_csv_missing *missing, stki_csv_column *column, const stki_csv_cell *cell, int64_t record)
{
    const int64_t bytes = stki_csv_bytes(cell);

    column->longest = bytes > column->longest ? bytes : column->longest;
    if (stki_csv_is_missing(missing, cell)) {
        column->missing++;
        return;
    }
    if (column->kind != STKI_CSV_TEXT) {
        int64_t whole;
        const enum stki_csv_kind kind = kind_of(cell, &whole);

        if (kind == STKI_CSV_WHOLE && column->rounded == 0 && stki_is_rounded(whole)) {
            column->rounded = whole;
            column->first_rounded = record;
        }
        column->kind = kind > column->kind ? kind : column->kind;
        column->first_text = record;
    }
}

/* Integer columns with missing cells become f64, with NaN for missing cells, unless an integer replaces them. */
static void end_columns(stki_csv *csv)
{
    for (int i = 0; i < csv->column_count; i++) {
        stki_csv_column *column = &csv->columns[i];

        if (column->kind == STKI_CSV_WHOLE && column->missing > 0 && !(csv->missing.given && csv->missing.whole))
            column->kind = STKI_CSV_REAL;
    }
}

static stk_status read_records(stki_csv *csv, scan *s, stki_csv_cell *cells, stk_error *err)
{
    const stki_csv_want want = {cells, csv->column_count, -1};
    stk_status status;
    int count;

    while ((status = scan_next(s, &want, &count, err)) == STK_OK && count > 0) {
        if (count != csv->column_count)
            return stki_fail_at(err, STK_E_CORRUPT,
                                (stki_place){csv->base.path, csv->count, s->start,
                                             count > csv->column_count
                                                 ? "more cells"
                                                 : STKI_TEXT("%d cell%s", count, count == 1 ? "" : "s"),
                                             STKI_TEXT("%d, as in the header line", csv->column_count)},
                                "line %" PRId64, s->line);
        for (int i = 0; i < count; i++)
            look_at(&csv->missing, &csv->columns[i], &cells[i], csv->count);
        if ((status = stki_places_add(&csv->start, s->start, err)) != STK_OK)
            return status;
        csv->count++;
    }
    if (status == STK_OK)
        status = stki_places_add(&csv->start, csv->file->size, err);
    return status == STK_OK ? stki_places_end(&csv->start, err) : status;
}

stk_status stki_csv_read_all(stki_csv *csv, int64_t begins, stk_error *err)
{
    stki_csv_cell *cells = stki_zalloc_array(STKI_CSV_COLUMNS, sizeof *cells);
    scan s;
    stk_status status = scan_init(&s, csv, begins, err);

    if (status == STK_OK && !cells)
        status = stki_fail_memory(err, STKI_CSV_COLUMNS * (int64_t)sizeof *cells, "the cells of a record");
    if (status == STK_OK)
        status = read_header(csv, &s, cells, err);
    if (status == STK_OK && !csv->header) { /* the file has no header: keep the first record */
        scan_fini(&s);
        status = scan_init(&s, csv, begins, err);
    }
    if (status == STK_OK)
        status = read_records(csv, &s, cells, err);
    if (status == STK_OK)
        end_columns(csv);
    scan_fini(&s);
    stki_free(cells);
    return status;
}

/* ---- missing cells ---- */

bool stki_csv_is_missing(const stki_csv_missing *missing, const stki_csv_cell *cell)
{
    /* pandas.read_csv, na_values */
    static const char *const usual[] = {"",     "#N/A",   "#N/A N/A", "#NA",  "-1.#IND", "-1.#QNAN", "-NaN",
                                        "-nan", "1.#IND", "1.#QNAN",  "<NA>", "N/A",     "NA",       "NULL",
                                        "NaN",  "None",   "n/a",      "nan",  "null"};
    const int count = missing->words ? missing->words->count : (int)(sizeof usual / sizeof usual[0]);
    const char *at = cell->at;

    if (cell->quotes > 0 || (!missing->words && cell->length > 0 && *at >= '2' && *at <= '9'))
        return false; /* a shortcut for most numbers */
    for (int i = 0; i < count; i++) {
        const char *word = missing->words ? missing->words->items[i]->text : usual[i];
        const size_t length = strlen(word);

        if (length == (size_t)cell->length && (length == 0 || memcmp(word, at, length) == 0))
            return true;
    }
    return false;
}

/* ---- options ---- */

typedef struct csv_options {
    const char *delimiter;
    int files;
    bool header;
    const stki_node *columns, *missing, *missing_words;
    stki_csv_missing rule; /* parsed from `missing` and `missing_words` */
} csv_options;

static const char *const files_words[] = {"none", "images", "arrays", "bytes",
                                          NULL}; /* same values as enum stki_listed */

static const stki_option csv_rows[] = {
    STKI_ENUM(csv_options, files, none, files_words,
              "The files at the paths in the cells, relative to the table's folder, are the samples: images, arrays "
              "(one per .npy file, for example) or bytes; none: the cells are the samples"),
    STKI_STRING(csv_options, delimiter, NULL,
                "The character between cells; by default a comma, or a tab for .tsv files",
                .examples = STKI_EXAMPLES(",", ";")),
    STKI_BOOL(csv_options, header, true,
              "Whether the first line names the columns; false: columns are named by their number, from 0"),
    STKI_NODE(csv_options, columns,
              "Names or patterns (*, ?) of numeric columns that form one tensor, in this order; columns that match a "
              "pattern are in the order of the file",
              .examples = STKI_EXAMPLES("[n]", "[n, 'm*']")),
    STKI_NODE(csv_options, missing,
              "Value of missing cells; by default NaN, which turns a column of integers into one of floats",
              .examples = STKI_EXAMPLES("0", "-1")),
    STKI_NODE(
        csv_options, missing_words,
        "Strings that mark a cell as missing; by default those of pandas: the empty string, NA, NaN, null and others",
        .examples = STKI_EXAMPLES("['']", "['?', '-']")),
};
static const stki_option_table csv_table = STKI_SOURCE_TABLE("tables of text", csv_rows);

static stk_status check_csv(const stki_node *map, void *values, stk_error *err)
{
    csv_options *csv = values;
    const char *word;
    stk_status status = STK_OK;

    (void)map;
    if (csv->columns && (csv->columns->kind != STKI_NODE_LIST || csv->columns->count == 0))
        return stki_fail_value(err, csv->columns, "a list of names and patterns");
    for (int i = 0; csv->columns && i < csv->columns->count && status == STK_OK; i++)
        status = stki_node_text(csv->columns->items[i], &word, err);
    if (status == STK_OK && csv->missing_words && csv->missing_words->kind != STKI_NODE_LIST)
        return stki_fail_value(err, csv->missing_words, "a list of strings");
    for (int i = 0; csv->missing_words && i < csv->missing_words->count && status == STK_OK; i++)
        status = csv->missing_words->items[i]->kind == STKI_NODE_SCALAR
                     ? STK_OK
                     : stki_fail_value(err, csv->missing_words->items[i], "a string");
    csv->rule.words = csv->missing_words;
    csv->rule.given = csv->missing != NULL;
    csv->rule.whole = csv->missing && stki_node_int(csv->missing, &csv->rule.value, NULL) == STK_OK;
    if (status == STK_OK && csv->missing)
        status = stki_node_double(csv->missing, &csv->rule.real, err);
    if (status != STK_OK)
        return status;
    if (csv->delimiter && (strlen(csv->delimiter) != 1 || strchr("\"\n\r", *csv->delimiter)))
        return stki_fail_value(err, stki_node_get(map, "delimiter"),
                               "one character other than a quote or a line break");
    return STK_OK;
}

const stki_source_group stki_csv_source = {&csv_table, sizeof(csv_options), check_csv, NULL};

enum stki_listed stki_csv_listed(const stki_reader_opts *opts)
{
    csv_options csv;

    stki_source_values(opts, &stki_csv_source, &csv);
    return (enum stki_listed)csv.files;
}

/* Determines the delimiter from the option or, if it is not set, from the file's extension. */
static char delimiter_of(const char *path, const stki_reader_opts *opts)
{
    const size_t length = strlen(path);
    csv_options csv;

    stki_source_values(opts, &stki_csv_source, &csv);
    if (csv.delimiter)
        return *csv.delimiter;
    return length > 4 && strcasecmp(path + length - 4, ".tsv") == 0 ? '\t' : ',';
}

void stki_csv_set_options(stki_csv *csv, const stki_reader_opts *opts)
{
    csv_options options;

    stki_source_values(opts, &stki_csv_source, &options);
    csv->delimiter = delimiter_of(csv->file->path, opts);
    csv->header = options.header;
    csv->missing = options.rule;
}

stk_status stki_csv_pick(const stki_csv *csv, const stki_reader_opts *opts, int *picked, int *count, stk_error *err)
{
    csv_options options;

    stki_source_values(opts, &stki_csv_source, &options);
    *count = 0;
    for (int k = 0; options.columns && k < options.columns->count; k++) {
        const char *pattern = options.columns->items[k]->text;
        bool fits = false;

        for (int i = 0; i < csv->column_count; i++) {
            const char *name = csv->columns[i].name;
            bool known = false;

            if (strcmp(name, pattern) != 0 && fnmatch(pattern, name, 0) != 0)
                continue;
            fits = true;
            for (int n = 0; n < *count; n++)
                known = known || picked[n] == i;
            if (!known)
                picked[(*count)++] = i;
        }
        if (!fits)
            return stki_fail_at(
                err, STK_E_NOT_FOUND,
                (stki_place){csv->base.path, -1, -1, pattern, "a name or pattern that matches a column"},
                "source.columns: no column matches");
    }
    return STK_OK;
}
