/* option_rules.c: which options of a map exclude or require each other. Of mutually exclusive options, the one from the
 * later source wins (an including file is later than what it includes, an assignment is later than both); two in one
 * source are an error. An option whose requirement is not met has no effect, which is also an error, or a note if a
 * later source removed what it requires. */
#include "error.h"
#include "option_row.h"
#include <string.h>

static const char *fact_of(const stki_option *row)
{
    return row->alias_of ? row->alias_of : row->name;
}

static bool is_named(const char *list, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = list; at && *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == length && memcmp(at, name, length) == 0)
            return true;
    return false;
}

/* Whether `row` is declared to replace the other one. */
static bool replaces(const stki_option *row, const stki_option *other)
{
    return (row->alias_of && strcmp(row->alias_of, fact_of(other)) == 0) || is_named(row->instead_of, fact_of(other));
}

/* A null in place of a string, list or map means that the option is not given. */
static bool is_given(const stki_option *row, const stki_node *node)
{
    return node && !((row->type == STKI_OPT_TEXT || row->type == STKI_OPT_NODE) && stki_node_is_null(node));
}

static stk_status fail_both(const stki_option *row, const stki_node *node, const stki_option *other,
                            const stki_node *other_node, stk_error *err)
{
    if (!row->alias_of)
        return stki_fail_key(err, node, "found both %s and %s, expected only one of them", other->name, row->name);
    if (other_node->key_line > 0 && other_node->key_line != node->key_line)
        return stki_fail_key(err, node, "alias of %s, which is given on line %d", other->name, other_node->key_line);
    return stki_fail_key(err, node, "alias of %s, which is also given: set only one of them", other->name);
}

stk_status stki_option_counts(const stki_option_table *table, const stki_node *map, const stki_option *row,
                              const stki_node *node, bool *counts, stk_error *err)
{
    *counts = true;
    for (int i = 0; i < map->count && is_given(row, node); i++) {
        const stki_node *other_node = map->items[i];
        const stki_option *other = stki_options_find(table, map->keys[i]);

        if (!other || other == row || !is_given(other, other_node))
            continue;
        if (replaces(row, other) && other_node->layer == node->layer)
            return fail_both(row, node, other, other_node, err);
        if (replaces(row, other) || replaces(other, row))
            *counts &= other_node->layer <= node->layer;
    }
    return STK_OK;
}

/* ---- needs ---- */

static bool is_word(const char *text, const char *const *words)
{
    while (text && *words && strcmp(text, *words) != 0)
        words++;
    return text && *words;
}

static bool node_is(const stki_node *node, const char *const *words)
{
    if (!node || node->kind == STKI_NODE_MAP)
        return false;
    if (node->kind == STKI_NODE_SCALAR)
        return words ? is_word(node->text, words) : !stki_node_is_null(node);
    for (int i = 0; i < node->count; i++)
        if (node_is(node->items[i], words))
            return true;
    return false;
}

/* Whether the effective value of the row is one of the words. */
static bool value_is(const stki_option *row, const stki_node *node, const void *values, const char *const *words)
{
    static const char *const truth[] = {"false", "true"};

    if (row->type == STKI_OPT_NODE)
        return node_is(node, words);
    if (row->type == STKI_OPT_TEXT)
        return is_word(stki_option_text(row, values), words);
    if (row->type == STKI_OPT_BOOL)
        return is_word(truth[stki_option_int(row, values)], words);
    return row->type != STKI_OPT_DOUBLE && is_word(stki_option_word(row, stki_option_int(row, values)), words);
}

/* The node in `map` that sets `row` under any of its names; the one from the latest source. */
static const stki_node *node_of(const stki_option_table *table, const stki_node *map, const stki_option *row)
{
    const stki_node *latest = NULL;

    for (int i = 0; i < map->count; i++) {
        const stki_option *other = stki_options_find(table, map->keys[i]);

        if (other && strcmp(fact_of(other), row->name) == 0 && (!latest || map->items[i]->layer > latest->layer))
            latest = map->items[i];
    }
    return latest;
}

/* Whether a path such as "datasets.*.on_error" below `node` has one of the words (NULL: any value). */
static bool is_met_below(const stki_node *node, const char *path, const char *const *words)
{
    const size_t length = strcspn(path, ".");
    const char *rest = path + length + (path[length] == '.');

    if (!*path)
        return words ? node_is(node, words) : !stki_node_is_null(node);
    for (int i = 0; i < node->count; i++)
        if ((*path == '*' || (node->kind == STKI_NODE_MAP && strlen(node->keys[i]) == length &&
                              memcmp(node->keys[i], path, length) == 0)) &&
            is_met_below(node->items[i], rest, words))
            return true;
    return false;
}

static bool is_met(const stki_option_table *table, const stki_node *map, const void *values, const stki_need *need)
{
    const stki_node *root = map, *node;
    const stki_option *row;

    if (*need->key == '/') {
        while (root->parent)
            root = root->parent;
        return is_met_below(root, need->key + 1, need->words);
    }
    row = stki_options_find(table, need->key);
    node = row ? node_of(table, map, row) : NULL;
    if (row && need->words)
        return value_is(row, node, values, need->words);
    return row && is_given(row, node) &&
           !(row->fallback && node->kind == STKI_NODE_SCALAR && strcmp(node->text, row->fallback) == 0);
}

/* Writes the requirement as text: "on_error: skip or substitute", "device other than cpu", "output". */
static void write_need(const stki_option_table *table, const stki_need *need, char *text, size_t size)
{
    const stki_option *row = stki_options_find(table, need->key);
    char words[128] = "";
    int count = 0;

    while (need->words && need->words[count])
        count++;
    stki_word_list(need->words, count, words, sizeof words);
    if (!count && row && row->fallback)
        snprintf(text, size, need->when ? "\"%s\" other than %s" : "%s other than %s", need->key, row->fallback);
    else
        snprintf(text, size, "%s%s%s", need->key + (*need->key == '/'), count ? ": " : "", words);
}

static stk_status fail_need(const stki_option_table *table, const stki_node *map, const stki_option *row,
                            const stki_node *node, const stki_option_notes *notes, stk_error *err)
{
    const stki_option *other = stki_options_find(table, row->need->key);
    const stki_node *master = other ? node_of(table, map, other) : NULL;
    char need[192], path[256], note[512];

    write_need(table, row->need, need, sizeof need);
    if (row->need->when)
        return stki_fail_node(err, node, "%s: %s needs %s", row->name, node->text, need);
    if (!row->need->note && (!master || master->layer <= node->layer))
        return stki_fail_key(err, node, "has no effect without %s: add it, or remove this option", need);
    snprintf(note, sizeof note, "%s has no effect without %s (%s)", stki_node_path(node, path, sizeof path), need,
             master ? master->file : node->file);
    if (notes)
        notes->add(notes->context, note);
    return STK_OK;
}

stk_status stki_option_needs(const stki_option_table *table, const stki_node *map, const void *values,
                             const stki_option *row, const stki_node *node, const stki_option_notes *notes,
                             stk_error *err)
{
    bool met = false;

    if (!row->need || !is_given(row, node) || (row->need->when && !value_is(row, node, values, row->need->when)))
        return STK_OK;
    for (const stki_need *need = row->need; need && !met; need = need->otherwise)
        met = is_met(table, map, values, need);
    return met ? STK_OK : fail_need(table, map, row, node, notes, err);
}
