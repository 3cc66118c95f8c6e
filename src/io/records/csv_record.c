/* csv_record.c: parses one record of a table and the values of its cells; see csv.h. */
#include "checked.h"
#include "csv.h"
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct reading {
    const char *begin, *at, *end;
    bool last;
    char delimiter;
    int count; /* number of cells so far */
    stki_csv_problem *problem;
} reading;

static enum stki_csv_result broken(const reading *r, const char *at, const char *found, const char *expected)
{
    *r->problem = (stki_csv_problem){at - r->begin, r->count, found, expected};
    return STKI_CSV_BROKEN;
}

/* Consumes the delimiter or line terminator after a cell. A line terminator is LF or CR LF; a CR without LF is an
 * error. */
static enum stki_csv_result cell_end(reading *r, bool *line_end)
{
    *line_end = true;
    if (r->at == r->end)
        return r->last ? STKI_CSV_RECORD_READ : STKI_CSV_MORE;
    if (*r->at == r->delimiter) {
        *line_end = false;
        r->at++;
        return STKI_CSV_RECORD_READ;
    }
    if (*r->at == '\r') {
        if (r->at + 1 == r->end && !r->last)
            return STKI_CSV_MORE;
        if (r->at + 1 == r->end || r->at[1] != '\n')
            return broken(r, r->at, "a carriage return with no line feed after it",
                          "a carriage return only inside quotes");
        r->at++;
    }
    if (*r->at != '\n')
        return broken(r, r->at, "a character after the closing quote", "the delimiter or the end of the line");
    r->at++;
    return STKI_CSV_RECORD_READ;
}

/* Reads a quoted cell, starting at the byte after the opening quote. */
static enum stki_csv_result read_quoted(reading *r, stki_csv_cell *cell)
{
    const char *opening = r->at - 1;

    cell->at = r->at;
    for (;;) {
        const char *quote = memchr(r->at, '"', (size_t)(r->end - r->at));

        if (!quote)
            return r->last ? broken(r, opening, "an unclosed quote", "a closing quote") : STKI_CSV_MORE;
        if (quote + 1 == r->end && !r->last)
            return STKI_CSV_MORE; /* this may be the first half of an escaped quote */
        r->at = quote + 1;
        if (r->at < r->end && *r->at == '"') {
            cell->quotes++;
            r->at++;
            continue;
        }
        cell->length = quote - cell->at;
        return memchr(cell->at, '\0', (size_t)cell->length)
                   ? broken(r, memchr(cell->at, '\0', (size_t)cell->length), "a NUL byte", "text")
                   : STKI_CSV_RECORD_READ;
    }
}

static enum stki_csv_result read_plain(reading *r, stki_csv_cell *cell)
{
    const char delimiter = r->delimiter;

    cell->at = r->at;
    while (r->at < r->end && *r->at != delimiter && *r->at != '\n' && *r->at != '\r') {
        if (*r->at == '"')
            return broken(r, r->at, "a quote inside a cell without quotes",
                          "the cell in quotes, with quotes inside it doubled");
        if (*r->at == '\0')
            return broken(r, r->at, "a NUL byte", "text");
        r->at++;
    }
    cell->length = r->at - cell->at;
    return STKI_CSV_RECORD_READ;
}

enum stki_csv_result stki_csv_read(const char *bytes, int64_t count, bool last, char delimiter,
                                   const stki_csv_want *want, int *cell_count, int64_t *used, stki_csv_problem *problem)
{
    reading r = {bytes, bytes, bytes + count, last, delimiter, 0, problem};
    stki_csv_cell other;
    bool line_end = false;

    while (!line_end) {
        stki_csv_cell *cell = want->only < 0 ? &want->cells[r.count] : r.count == want->only ? want->cells : &other;
        enum stki_csv_result result;

        if (r.count == want->most) {
            *problem = (stki_csv_problem){r.at - bytes, r.count, NULL, NULL};
            return STKI_CSV_TOO_MANY;
        }
        *cell = (stki_csv_cell){0};
        if (r.at < r.end && *r.at == '"') {
            r.at++;
            result = read_quoted(&r, cell);
        } else {
            result = read_plain(&r, cell);
        }
        if (result == STKI_CSV_RECORD_READ)
            result = cell_end(&r, &line_end);
        if (result != STKI_CSV_RECORD_READ)
            return result;
        r.count++;
    }
    *cell_count = r.count;
    *used = r.at - bytes;
    return STKI_CSV_RECORD_READ;
}

void stki_csv_text(const stki_csv_cell *cell, char *to)
{
    const char *at = cell->at, *end = at + cell->length;

    while (at < end) {
        const char *quote = cell->quotes ? memchr(at, '"', (size_t)(end - at)) : NULL;
        const size_t run = (size_t)((quote ? quote + 1 : end) - at);

        memcpy(to, at, run);
        to += run;
        at += run + (quote != NULL);
    }
}

/* ---- numbers ---- */

static void without_blanks(const stki_csv_cell *cell, const char **at, const char **end)
{
    *at = cell->at;
    *end = cell->at + cell->length;
    while (*at < *end && (**at == ' ' || **at == '\t'))
        ++*at;
    while (*end > *at && ((*end)[-1] == ' ' || (*end)[-1] == '\t'))
        --*end;
}

bool stki_csv_whole(const stki_csv_cell *cell, int64_t *out)
{
    const char *at, *end;
    int64_t value = 0;
    bool minus;

    without_blanks(cell, &at, &end);
    minus = at < end && *at == '-';
    at += at < end && (*at == '-' || *at == '+');
    if (at == end)
        return false;
    for (; at < end; at++) {
        const int digit = *at - '0';

        if (digit < 0 || digit > 9 || !stki_mul(value, 10, &value) || !stki_add(value, minus ? -digit : digit, &value))
            return false;
    }
    *out = value;
    return true;
}

static bool is_word(const char *at, const char *end, const char *word)
{
    return (size_t)(end - at) == strlen(word) && strncasecmp(at, word, (size_t)(end - at)) == 0;
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

/* Whether the text consists of digits with an optional decimal point and exponent. strtod would also accept hexadecimal
 * numbers. */
static bool is_decimal(const char *at, const char *end)
{
    const char *point = skip_digits(at, end), *stop = point;
    int64_t digits = point - at;

    if (stop < end && *stop == '.') {
        stop = skip_digits(point + 1, end);
        digits += stop - point - 1;
    }
    if (digits == 0)
        return false;
    if (stop < end && (*stop == 'e' || *stop == 'E')) {
        const char *exponent = stop + 1;

        exponent += exponent < end && (*exponent == '+' || *exponent == '-');
        stop = skip_digits(exponent, end);
        if (stop == exponent)
            return false;
    }
    return stop == end;
}

/* Does not depend on the program's locale, in which the decimal point may be a comma. */
double stki_decimal(const char *text)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const double value = plain ? strtod_l(text, NULL, plain) : strtod(text, NULL);

    if (plain)
        freelocale(plain);
    return value;
}

bool stki_csv_number(const stki_csv_cell *cell, double *out)
{
    const char *at, *end, *first;
    char text[512];

    without_blanks(cell, &at, &end);
    first = at + (at < end && (*at == '-' || *at == '+'));
    if (end - at >= (int64_t)sizeof text || first == end)
        return false;
    if (!is_decimal(first, end) && !is_word(first, end, "nan") && !is_word(first, end, "inf") &&
        !is_word(first, end, "infinity"))
        return false;
    memcpy(text, at, (size_t)(end - at));
    text[end - at] = '\0';
    *out = stki_decimal(text);
    return true;
}
