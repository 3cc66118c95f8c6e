/* option_query.c: the value of an option by its dotted name, the section that has a key, and all tables as JSON. */
#include "option.h"
#include "option_row.h"
#include <string.h>

/* ---- one value ---- */

/* Moves the first part of a dotted name to `part`. False: the part is empty or too long. */
static bool next_part(const char **name, char *part, size_t size)
{
    const size_t length = strcspn(*name, ".");

    if (length == 0 || length >= size)
        return false;
    memcpy(part, *name, length);
    part[length] = '\0';
    *name += length + ((*name)[length] == '.');
    return true;
}

/* The effective value of the row; `node` is the given value, or NULL. */
static json_t *value_of(const stki_option *row, const stki_node *node)
{
    union {
        int64_t number;
        double real;
        const char *text;
    } value = {0};
    stki_option alone = *row;

    alone.offset = 0;
    if (row->alias_of)
        return NULL;
    if (row->type == STKI_OPT_NODE)
        return node ? stki_node_json(node) : json_null();
    stki_option_default(&alone, &value);
    if (node && stki_option_read(&alone, node, &value, NULL) != STK_OK)
        return NULL;
    return stki_option_json(&alone, &value);
}

static json_t *value_in(const stki_option_table *table, const stki_node *node, const char *name)
{
    char part[256];
    const stki_option *row;
    const stki_node *child;

    if (!next_part(&name, part, sizeof part))
        return NULL;
    if (node && node->kind == STKI_NODE_LIST) { /* a list of maps, one of which is selected by its index */
        int index = 0;

        for (const char *digit = part; *digit; digit++)
            index = *digit >= '0' && *digit <= '9' && index < 1000000 ? 10 * index + *digit - '0' : 1000000;
        return stki_node_at(node, index) ? value_in(table, stki_node_at(node, index), name) : NULL;
    }
    if (!(row = stki_option_in(table, part, NULL)))
        return NULL;
    child = node && node->kind == STKI_NODE_SCALAR && table->shorthand && strcmp(table->shorthand, part) == 0
                ? node
                : stki_node_get(node, part);
    if (!*name)
        return value_of(row, child);
    if (!row->inner)
        return NULL;
    if (row->flags & STKI_NAMED) {
        if (!next_part(&name, part, sizeof part) || !(child = stki_node_get(child, part)))
            return NULL;
        if (!*name)
            return stki_node_json(child);
    }
    return value_in(row->inner, child, name);
}

json_t *stki_sections_value(const stki_option_table *const *sections, const stki_node *root, const char *name)
{
    char part[64];

    if (!next_part(&name, part, sizeof part))
        return NULL;
    for (int i = 0; sections[i]; i++)
        if (strcmp(sections[i]->section, part) == 0 && *name)
            return value_in(sections[i], stki_node_get(root, part), name);
    return NULL;
}

/* ---- section of a key ---- */

typedef struct hint {
    const char *key, *section;
    int rank; /* rank of the section; lower is better */
} hint;

/* Top-level sections come first, then the maps of a field, then all others; within each group, the least nested come
 * first. */
static int rank_of(const char *section)
{
    int rank = strchr(section, '.') && !strstr(section, ".NAME") ? 100 : 0;

    for (; *section && *section != ' '; section++)
        rank += *section == '.';
    return rank;
}

static void look_for(const stki_option_table *table, void *context)
{
    hint *of = context;
    const int rank = rank_of(table->section);

    if (stki_options_find(table, of->key) && (!of->section || rank < of->rank)) {
        of->section = table->section;
        of->rank = rank;
    }
}

const char *stki_sections_hint(const stki_option_table *const *sections, const char *key)
{
    hint of = {.key = key};

    for (int i = 0; sections[i]; i++)
        stki_options_each(sections[i], look_for, &of);
    return of.section;
}

/* ---- all rows ---- */

static void add_text(json_t *json, const char *key, const char *text)
{
    if (text && *text)
        json_object_set_new(json, key, json_string(text));
}

static void add_range(json_t *json, const stki_option *row)
{
    json_t *words = json_array();

    for (int i = 0; row->words && row->words[i]; i++)
        json_array_append_new(words, json_string(row->words[i]));
    if (json_array_size(words) > 0)
        json_object_set(json, "words", words);
    json_decref(words);
    if (row->type == STKI_OPT_DOUBLE || row->type == STKI_OPT_INT || row->type == STKI_OPT_SIZE ||
        row->type == STKI_OPT_TIME) {
        json_object_set_new(json, "low", json_real(row->low));
        json_object_set_new(json, "high", json_real(row->high));
    }
}

static json_t *row_json(const stki_option *row)
{
    static const char *const types[] = {"bool", "int", "real", "size", "time", "text", "enum", "node"},
                             *const effects[] = {"samples", "failures", "ranks", "nothing"};
    json_t *json = json_object();

    add_text(json, "name", row->name);
    add_text(json, "type", types[row->type]);
    add_text(json, "alias_of", row->alias_of);
    add_text(json, "default", row->fallback);
    add_range(json, row);
    add_text(json, "unit", row->unit);
    add_text(json, "help", row->help);
    add_text(json, "affects", effects[row->effect]);
    add_text(json, "instead_of", row->instead_of);
    add_text(json, "needs", row->need ? row->need->key : NULL);
    add_text(json, "section", row->inner ? row->inner->section : NULL);
    if (row->flags & STKI_PATH)
        json_object_set_new(json, "path", json_true());
    return json;
}

static void add_table(const stki_option_table *table, void *context)
{
    json_t *json = json_object(), *rows = json_array();

    add_text(json, "section", table->section);
    add_text(json, "shorthand", table->shorthand);
    for (int i = 0; i < table->count; i++)
        json_array_append_new(rows, row_json(&table->rows[i]));
    json_object_set_new(json, "options", rows);
    json_array_append_new(context, json);
}

json_t *stki_sections_json(const stki_option_table *const *sections)
{
    json_t *tables = json_array();

    for (int i = 0; sections[i]; i++)
        stki_options_each(sections[i], add_table, tables);
    return tables;
}
