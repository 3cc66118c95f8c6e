/* option_write.c: writes effective values as JSON and in config syntax, and the rows of tables as help. */
#include "node_scalar.h"
#include "option.h"
#include "option_row.h"
#include "text_json.h"
#include <inttypes.h>
#include <string.h>

/* ---- values ---- */

json_t *stki_option_json(const stki_option *row, const void *values)
{
    const char *word;

    if (row->type == STKI_OPT_BOOL)
        return json_boolean(stki_option_int(row, values));
    if (row->type == STKI_OPT_DOUBLE) {
        json_t *real = json_real(stki_option_double(row, values));

        return real ? real : json_null(); /* JSON has no infinity */
    }
    if (row->type == STKI_OPT_TEXT) {
        const char *text = stki_option_text(row, values);
        json_t *json = text ? json_string(text) : json_null();

        return json ? json : stki_text_json(text); /* a path in a folder whose name is not UTF-8 */
    }
    word = stki_option_word(row, stki_option_int(row, values));
    return word ? json_string(word) : json_integer(stki_option_int(row, values));
}

static void key_with_unit(const stki_option *row, char *buffer, int size)
{
    const char *unit = row->type == STKI_OPT_SIZE ? "_bytes" : row->type == STKI_OPT_TIME ? "_ns" : "";
    size_t name = strlen(row->name), end = strlen(unit);

    if (name >= end && strcmp(row->name + name - end, unit) == 0)
        unit = "";
    snprintf(buffer, (size_t)size, "%s%s", row->name, unit);
}

json_t *stki_options_json(const stki_option_table *table, const void *values)
{
    json_t *whole = json_object();
    int i;

    for (i = 0; whole && i < table->count; i++) {
        char key[128];

        if (table->rows[i].alias_of || table->rows[i].type == STKI_OPT_NODE)
            continue;
        key_with_unit(&table->rows[i], key, sizeof key);
        if (json_object_set_new(whole, key, stki_option_json(&table->rows[i], values)) != 0) {
            json_decref(whole);
            return NULL;
        }
    }
    return whole;
}

static void write_value(const stki_option *row, const void *values, FILE *to)
{
    char buffer[40];
    const char *word;
    int64_t value;

    if (row->type == STKI_OPT_TEXT) {
        stki_write_text(stki_option_text(row, values), to);
        return;
    }
    if (row->type == STKI_OPT_DOUBLE) {
        fputs(stki_format_double(stki_option_double(row, values), buffer), to);
        return;
    }
    value = stki_option_int(row, values);
    word = stki_option_word(row, value);
    if (row->type == STKI_OPT_BOOL)
        fputs(value ? "true" : "false", to);
    else if (word)
        fputs(word, to);
    else if (row->type == STKI_OPT_SIZE)
        fputs(stki_format_size(value, buffer), to);
    else if (row->type == STKI_OPT_TIME)
        fputs(stki_format_time(value, buffer), to);
    else
        fprintf(to, "%" PRId64, value);
}

void stki_options_write(const stki_option_table *table, const void *values, int indent, FILE *to)
{
    int i;

    for (i = 0; i < table->count; i++) {
        const stki_option *row = &table->rows[i];

        if (row->alias_of || row->type == STKI_OPT_NODE ||
            (row->type == STKI_OPT_TEXT && !stki_option_text(row, values)))
            continue;
        fprintf(to, "%*s%s: ", indent, "", row->name);
        write_value(row, values, to);
        putc('\n', to);
    }
}

/* ---- rows ---- */

static const char *default_text(const stki_option *row)
{
    return row->alias_of ? "" : row->fallback ? row->fallback : "none";
}

static const char *range_text(const stki_option *row, char *buffer, int size)
{
    if (row->alias_of && row->type != STKI_OPT_BOOL) {
        snprintf(buffer, (size_t)size, "as %s", row->alias_of);
        return buffer;
    }
    return stki_option_range(row, buffer, size);
}

static void write_help(const stki_option_table *table, const stki_option_table *section, FILE *to)
{
    char range[256];
    int i, widest = 0;

    for (i = 0; i < table->count; i++)
        widest = (int)strlen(table->rows[i].name) > widest ? (int)strlen(table->rows[i].name) : widest;
    fprintf(to, "%s:\n", table->section);
    if (section->about)
        (void)section->about(table, to);
    for (i = 0; i < table->count; i++) {
        const stki_option *row = &table->rows[i];

        fprintf(to, "  %-*s  %s\n", widest, row->name, row->help);
        fprintf(to, "  %-*s  %s", widest, "", range_text(row, range, sizeof range));
        if (row->alias_of)
            fprintf(to, "; alias of %s\n", row->alias_of);
        else
            fprintf(to, "; default %s\n", default_text(row));
    }
}

/* ---- sections ---- */

typedef struct writing {
    const stki_option_table *section;
    FILE *to;
} writing;

static void help_of(const stki_option_table *table, void *context)
{
    const writing *w = context;

    if (ftell(w->to) > 0)
        putc('\n', w->to);
    write_help(table, w->section, w->to);
}

void stki_sections_help(const stki_option_table *const *sections, FILE *to)
{
    for (int i = 0; sections[i]; i++)
        stki_options_each(sections[i], help_of, &(writing){sections[i], to});
}
