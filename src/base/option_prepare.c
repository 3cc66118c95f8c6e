/* option_prepare.c: checks the sections of a document and prepares it for reading (stki_sections_prepare): removes
 * overridden options, resolves paths, and rejects keys that belong to other sections. The rows of the tables determine
 * all of this. */
#include "document_build.h"
#include "error.h"
#include "option.h"
#include "option_row.h"
#include <string.h>

enum { MOST_KEYS = 256 };

typedef struct preparation {
    const stki_option_table *const *sections;
    stki_document *document;
    const char *base_dir;
    stk_error *err;
} preparation;

static stk_status drop_older_of(const preparation *s, const stki_option_table *table, stki_node *map)
{
    for (int i = map->count; i-- > 0;) {
        const stki_option *row = stki_options_find(table, map->keys[i]);
        bool counts = true;
        stk_status status = row ? stki_option_counts(table, map, row, map->items[i], &counts, s->err) : STK_OK;

        if (status != STK_OK)
            return status;
        if (!counts)
            stki_node_remove(map, i);
    }
    return STK_OK;
}

static stk_status drop_older(const preparation *s, const stki_option_table *table, stki_node *map)
{
    stk_status status = drop_older_of(s, table, map);

    for (int i = 0; status == STK_OK && table->choice && table->choice(i); i++)
        status = drop_older_of(s, table->choice(i), map);
    return status;
}

static stk_status resolve(const preparation *s, const stki_option *row, stki_node *node)
{
    stk_status status = STK_OK;

    if (node->kind == STKI_NODE_SCALAR) {
        for (int i = 0; row->words && row->words[i]; i++)
            if (strcmp(node->text, row->words[i]) == 0)
                return STK_OK;
        return stki_node_is_null(node) ? STK_OK : stki_document_resolve(s->document, node, s->base_dir, s->err);
    }
    for (int i = 0; node->kind == STKI_NODE_LIST && i < node->count && status == STK_OK; i++)
        status = stki_document_resolve(s->document, node->items[i], s->base_dir, s->err);
    return status;
}

static stk_status prepare(const preparation *s, const stki_option_table *table, stki_node *node);

static stk_status prepare_row(const preparation *s, const stki_option *row, stki_node *node)
{
    stk_status status = row->flags & STKI_PATH ? resolve(s, row, node) : STK_OK;
    stki_node *path;

    for (int i = 0; row->path_in && status == STK_OK && (path = row->path_in(node, i)); i++)
        status = stki_document_resolve(s->document, path, s->base_dir, s->err);
    if (!row->inner)
        return status;
    if (!(row->flags & STKI_NAMED))
        return prepare(s, row->inner, node);
    for (int i = 0; node->kind == STKI_NODE_MAP && i < node->count && status == STK_OK; i++)
        status = prepare(s, row->inner, node->items[i]);
    return status;
}

static int add_names(const stki_option_table *table, const char **names, int count)
{
    for (int i = 0; i < table->count && count < MOST_KEYS; i++)
        names[count++] = table->rows[i].name;
    return count;
}

/* Whether the key is a misspelled key of the table. */
static bool has_near(const stki_option_table *table, const char *key)
{
    const char *names[MOST_KEYS];
    int count = add_names(table, names, 0);

    for (int i = 0; table->choice && table->choice(i); i++)
        count = add_names(table->choice(i), names, count);
    return stki_is_near_word(key, names, count);
}

static bool has(const stki_option_table *table, const char *key)
{
    bool found = stki_options_find(table, key) != NULL;

    for (int i = 0; !found && table->choice && table->choice(i); i++)
        found = stki_options_find(table->choice(i), key) != NULL;
    return found;
}

/* Returns the row whose value is a map with format-dependent keys (`source`) and may contain the key, because such keys
 * are easily written one level too high; NULL: there is none. */
static const stki_option *find_around(const stki_option_table *table, const char *key)
{
    for (int i = 0; i < table->count; i++) {
        const stki_option_table *inner = table->rows[i].inner;

        if (inner && inner->choice && has(inner, key))
            return &table->rows[i];
    }
    return NULL;
}

/* Rejects a key that belongs in the value of another key of the table, or to another section. Other unknown keys are
 * rejected when the table is read, with the nearest key as a suggestion. */
static stk_status refuse_elsewhere(const preparation *s, const stki_option_table *table, const stki_node *node)
{
    const bool near = has_near(table, node->key);
    const stki_option *around = near ? NULL : find_around(table, node->key);
    const char *section = near || around ? NULL : stki_sections_hint(s->sections, node->key);

    if (around)
        return stki_fail_key(s->err, node, "unknown key, did you mean %s.%s?", around->name, node->key);
    return section ? stki_fail_key(s->err, node, "unknown key, did you mean %.*s.%s?", (int)strcspn(section, " "),
                                   section, node->key)
                   : STK_OK;
}

static stk_status prepare(const preparation *s, const stki_option_table *table, stki_node *node)
{
    stk_status status = STK_OK;

    if (node->kind == STKI_NODE_SCALAR)
        return table->shorthand ? prepare_row(s, stki_option_in(table, table->shorthand, NULL), node) : STK_OK;
    if (node->kind == STKI_NODE_MAP)
        status = drop_older(s, table, node);
    for (int i = 0; i < node->count && status == STK_OK; i++) {
        const stki_option *row = node->kind == STKI_NODE_MAP ? stki_option_in(table, node->keys[i], NULL) : NULL;

        if (node->kind == STKI_NODE_LIST && node->items[i]->kind == STKI_NODE_MAP)
            status = prepare(s, table, node->items[i]);
        else if (node->kind == STKI_NODE_MAP)
            status = row ? prepare_row(s, row, node->items[i]) : refuse_elsewhere(s, table, node->items[i]);
    }
    return status;
}

stk_status stki_sections_prepare(const stki_option_table *const *sections, stki_document *document,
                                 const char *base_dir, stk_error *err)
{
    const preparation s = {sections, document, base_dir, err};
    stk_status status = STK_OK;

    for (int i = 0; sections[i] && status == STK_OK; i++)
        for (int k = 0; k < document->root->count && status == STK_OK; k++)
            if (strcmp(document->root->keys[k], sections[i]->section) == 0)
                status = prepare(&s, sections[i], document->root->items[k]);
    return status;
}

static stk_status fail_section(const stki_option_table *const *sections, const char *const *names, int count,
                               const stki_node *node, stk_error *err)
{
    char list[256];
    const char *near = stki_nearest_word(node->key, names, count);
    const char *section = near ? NULL : stki_sections_hint(sections, node->key);

    if (near)
        return stki_fail_key(err, node, "unknown section, did you mean %s?", near);
    if (section)
        return stki_fail_key(err, node, "unknown section, did you mean %.*s.%s?", (int)strcspn(section, " "), section,
                             node->key);
    return stki_fail_key(err, node, "unknown section, expected %s", stki_word_list(names, count, list, sizeof list));
}

stk_status stki_sections_check(const stki_option_table *const *sections, const char *const *others,
                               const stki_node *root, stk_error *err)
{
    enum { MOST = 32 };
    const char *names[MOST];
    int count = 0;

    for (int i = 0; sections[i] && count < MOST; i++)
        names[count++] = sections[i]->section;
    for (int i = 0; others && others[i] && count < MOST; i++)
        names[count++] = others[i];
    for (int i = 0; i < root->count; i++) {
        int k = 0;

        while (k < count && strcmp(root->keys[i], names[k]) != 0)
            k++;
        if (k == count)
            return fail_section(sections, names, count, root->items[i], err);
    }
    return STK_OK;
}
