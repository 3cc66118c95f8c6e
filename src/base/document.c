/* document.c: the tree of a config: memory and limits, building, lookup, and error messages with positions. Nodes and
 * strings are allocated from blocks (an arena), since a config is parsed once and freed as a whole. */
#include "document.h"
#include "allocate.h"
#include "checked.h"
#include "document_build.h"
#include "error.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BLOCK_BYTES 8192

struct stki_document_block {
    struct stki_document_block *next;
    int64_t used, bytes;
    _Alignas(16) char memory[];
};

/* ---- memory ---- */

void *stki_document_alloc(stki_document *document, int64_t bytes, stk_error *err)
{
    struct stki_document_block *block = document->blocks;
    int64_t rounded = stki_round_up(bytes, 16);
    void *memory;

    if (!block || block->bytes - block->used < rounded) {
        int64_t size = rounded > BLOCK_BYTES ? rounded : BLOCK_BYTES;

        block = stki_zalloc((int64_t)sizeof *block + size);
        if (!block) {
            stki_fail_memory(err, size, "a config");
            return NULL;
        }
        block->bytes = size;
        block->next = document->blocks;
        document->blocks = block;
    }
    memory = block->memory + block->used;
    block->used += rounded;
    return memory;
}

stk_status stki_document_text(stki_document *document, const char *text, int64_t length, const stki_location *location,
                              const char **out, stk_error *err)
{
    char *copy;

    if (length > STKI_DOCUMENT_BYTES - document->text_bytes)
        return stki_fail_location(err, STK_E_LIMIT, location, "the config has more than %d bytes of text",
                                  STKI_DOCUMENT_BYTES);
    copy = stki_document_alloc(document, length + 1, err);
    if (!copy)
        return STK_E_MEMORY;
    document->text_bytes += length;
    memcpy(copy, text, (size_t)length);
    *out = copy;
    return STK_OK;
}

stk_status stki_document_create(stki_document **out, stk_error *err)
{
    *out = stki_zalloc(sizeof **out);
    return *out ? STK_OK : stki_fail_memory(err, sizeof **out, "a config");
}

void stki_document_destroy(stki_document *document)
{
    if (!document)
        return;
    while (document->blocks) {
        struct stki_document_block *block = document->blocks;

        document->blocks = block->next;
        stki_free(block);
    }
    stki_free(document);
}

const stki_node *stki_document_root(const stki_document *document)
{
    return document->root;
}

/* ---- building ---- */

stk_status stki_node_create(stki_document *document, enum stki_node_kind kind, const stki_location *location,
                            stki_node **out, stk_error *err)
{
    stki_node *node;

    if (location->depth > STKI_DOCUMENT_DEPTH)
        return stki_fail_location(err, STK_E_LIMIT, location, "nested more than %d levels deep", STKI_DOCUMENT_DEPTH);
    if (document->node_count >= STKI_DOCUMENT_NODES)
        return stki_fail_location(err, STK_E_LIMIT, location,
                                  "the config has more than %d values, including those from aliases and includes",
                                  STKI_DOCUMENT_NODES);
    node = stki_document_alloc(document, sizeof *node, err);
    if (!node)
        return STK_E_MEMORY;
    document->node_count++;
    *node = (stki_node){.kind = kind,
                        .file = location->file,
                        .line = location->line,
                        .column = location->column,
                        .text = "",
                        .parent = location->parent,
                        .key = location->key,
                        .key_line = location->key_line,
                        .key_column = location->key_column,
                        .layer = document->layer};
    *out = node;
    return STK_OK;
}

static stk_status grow(stki_document *document, stki_node *parent, stk_error *err)
{
    int capacity = parent->capacity ? parent->capacity * 2 : 4;
    stki_node **items = stki_document_alloc(document, capacity * (int64_t)sizeof *items, err);
    const char **keys = NULL;

    if (items && parent->kind == STKI_NODE_MAP)
        keys = stki_document_alloc(document, capacity * (int64_t)sizeof *keys, err);
    if (!items || (parent->kind == STKI_NODE_MAP && !keys))
        return STK_E_MEMORY;
    if (parent->count)
        memcpy(items, parent->items, (size_t)parent->count * sizeof *items);
    if (parent->count && keys)
        memcpy(keys, parent->keys, (size_t)parent->count * sizeof *keys);
    parent->items = items;
    parent->keys = keys;
    parent->capacity = capacity;
    return STK_OK;
}

stk_status stki_node_append(stki_document *document, stki_node *parent, stki_node *child, stk_error *err)
{
    stk_status status;

    if (parent->kind == STKI_NODE_MAP && parent->count >= STKI_DOCUMENT_KEYS) {
        stki_fail_node(err, parent, "the map has more than %d keys", STKI_DOCUMENT_KEYS);
        if (err)
            err->status = STK_E_LIMIT;
        return STK_E_LIMIT;
    }
    if (parent->count == parent->capacity && (status = grow(document, parent, err)) != STK_OK)
        return status;
    child->parent = parent;
    parent->items[parent->count] = child;
    if (parent->kind == STKI_NODE_MAP)
        parent->keys[parent->count] = child->key;
    parent->count++;
    return STK_OK;
}

stk_status stki_node_copy(stki_document *document, const stki_node *from, const stki_location *location,
                          stki_node **out, stk_error *err)
{
    stki_node *copy;
    stki_location below = *location;
    stk_status status = stki_node_create(document, from->kind, location, &copy, err);
    int i;

    if (status != STK_OK)
        return status;
    copy->file = from->file;
    copy->line = from->line;
    copy->column = from->column;
    copy->quoted = from->quoted;
    copy->opened = from->opened;
    copy->text = from->text;
    below.parent = copy;
    below.depth++;
    for (i = 0; i < from->count; i++) {
        stki_node *child;

        below.key = from->items[i]->key;
        below.key_line = from->items[i]->key_line;
        below.key_column = from->items[i]->key_column;
        status = stki_node_copy(document, from->items[i], &below, &child, err);
        if (status == STK_OK)
            status = stki_node_append(document, copy, child, err);
        if (status != STK_OK)
            return status;
    }
    *out = copy;
    return STK_OK;
}

void stki_node_remove(stki_node *map, int index)
{
    const size_t after = (size_t)(map->count - index - 1);

    memmove(&map->items[index], &map->items[index + 1], after * sizeof map->items[0]);
    memmove(&map->keys[index], &map->keys[index + 1], after * sizeof map->keys[0]);
    map->count--;
}

/* ---- lookup ---- */

int stki_node_index(const stki_node *map, const char *key)
{
    int i = 0;

    while (i < map->count && strcmp(map->keys[i], key) != 0)
        i++;
    return i;
}

const stki_node *stki_node_get(const stki_node *map, const char *key)
{
    const int i = map && map->kind == STKI_NODE_MAP ? stki_node_index(map, key) : 0;

    return map && map->kind == STKI_NODE_MAP && i < map->count ? map->items[i] : NULL;
}

const stki_node *stki_node_at(const stki_node *list, int index)
{
    return list && list->kind == STKI_NODE_LIST && index >= 0 && index < list->count ? list->items[index] : NULL;
}

bool stki_node_is_null(const stki_node *node)
{
    return !node || (node->kind == STKI_NODE_SCALAR && !node->quoted && node->text[0] == '\0');
}

const char *stki_node_kind_name(const stki_node *node)
{
    if (stki_node_is_null(node))
        return "nothing";
    return node->kind == STKI_NODE_MAP ? "a map" : node->kind == STKI_NODE_LIST ? "a list" : "a string";
}

/* ---- messages ---- */

static int index_in_parent(const stki_node *node)
{
    int i;

    for (i = 0; i < node->parent->count; i++)
        if (node->parent->items[i] == node)
            return i;
    return node->parent->count; /* not appended yet */
}

const char *stki_node_path(const stki_node *node, char *buffer, int size)
{
    const stki_node *chain[STKI_DOCUMENT_DEPTH];
    int depth = 0, used = 0;

    buffer[0] = '\0';
    for (; node && node->parent && depth < STKI_DOCUMENT_DEPTH; node = node->parent)
        chain[depth++] = node;
    while (depth-- > 0 && used < size) {
        const char *dot = used ? "." : "";

        if (chain[depth]->parent->kind == STKI_NODE_MAP && !chain[depth]->key)
            continue; /* its key has not been read yet */
        if (chain[depth]->key)
            used += snprintf(buffer + used, (size_t)(size - used), "%s%s", dot, chain[depth]->key);
        else
            used += snprintf(buffer + used, (size_t)(size - used), "%s%d", dot, index_in_parent(chain[depth]));
    }
    return buffer;
}

struct spot {
    const char *file;
    int line, column;
};

/* found, expected: NULL if unknown. An assignment to the node itself is omitted, because the message names the node. */
static stk_status fail_in(stk_error *err, stk_status status, struct spot spot, const stki_node *node, const char *what,
                          const char *found, const char *expected)
{
    char path[256], where[24] = "", file[200] = "";
    const bool has_line = spot.line > 0; /* otherwise, spot.file is an assignment */
    size_t length;

    if (!err)
        return status;
    stki_node_path(node, path, sizeof path);
    length = strlen(path);
    if (has_line)
        snprintf(where, sizeof where, ":%d", spot.line);
    if (has_line || length == 0 || strncmp(spot.file, path, length) != 0 ||
        spot.file[length + (spot.file[length] == '?')] != '=')
        stki_text_end(file, sizeof file, spot.file);
    stki_fail(err, status, "%s%s%s%s%s%s", file, where, file[0] ? ": " : "", path, path[0] ? ": " : "", what);
    stki_error_facts(err, (stki_place){has_line ? spot.file : NULL, has_line ? spot.line : -1,
                                       has_line ? spot.column : -1, found, expected});
    return status;
}

static struct spot spot_of(const stki_node *node)
{
    return (struct spot){node->file, node->line, node->column};
}

#define FORMAT_ARGS(buffer, format)                     \
    do {                                                \
        va_list args;                                   \
        va_start(args, format);                         \
        vsnprintf(buffer, sizeof buffer, format, args); \
        va_end(args);                                   \
    } while (0)

stk_status stki_fail_location(stk_error *err, stk_status status, const stki_location *location, const char *format, ...)
{
    const stki_node stand_in = {.parent = location->parent, .key = location->key};
    char what[512];

    FORMAT_ARGS(what, format);
    return fail_in(err, status, (struct spot){location->file, location->line, location->column}, &stand_in, what, NULL,
                   NULL);
}

stk_status stki_fail_node(stk_error *err, const stki_node *node, const char *format, ...)
{
    char what[512];

    FORMAT_ARGS(what, format);
    return fail_in(err, STK_E_CONFIG, spot_of(node), node, what, NULL, NULL);
}

stk_status stki_fail_key(stk_error *err, const stki_node *node, const char *format, ...)
{
    char what[512];

    FORMAT_ARGS(what, format);
    return fail_in(err, STK_E_CONFIG, (struct spot){node->file, node->key_line, node->key_column}, node, what, NULL,
                   NULL);
}

/* Writes "[a, b, ...]", truncated to the buffer; nested lists and maps become "[...]" and "{...}". */
static void show_list(const stki_node *list, char *buffer, size_t size)
{
    size_t used = 1;

    snprintf(buffer, size, "[");
    for (int i = 0; i < list->count; i++) {
        const stki_node *item = list->items[i];
        const char *text = item->kind == STKI_NODE_LIST  ? "[...]"
                           : item->kind == STKI_NODE_MAP ? "{...}"
                           : stki_node_is_null(item)     ? "null"
                                                         : item->text;
        const char *quote = item->kind == STKI_NODE_SCALAR && item->quoted ? "\"" : "";
        const size_t length = strlen(text) + 2 * strlen(quote) + (i > 0 ? 2 : 0);

        if (used + length + sizeof ", ...]" > size) {
            snprintf(buffer + used, size - used, "%s...", i > 0 ? ", " : "");
            used += strlen(buffer + used);
            break;
        }
        snprintf(buffer + used, size - used, "%s%s%s%s", i > 0 ? ", " : "", quote, text, quote);
        used += length;
    }
    snprintf(buffer + used, size - used, "]");
}

stk_status stki_fail_value(stk_error *err, const stki_node *node, const char *expected_format, ...)
{
    char expected[256], what[512];
    const char *found = stki_node_kind_name(node);
    char shown[64];

    if (node->kind == STKI_NODE_SCALAR && !stki_node_is_null(node)) {
        bool cut = strlen(node->text) > 40;

        snprintf(shown, sizeof shown, "%s%.40s%s%s", node->quoted ? "\"" : "", node->text, cut ? "..." : "",
                 node->quoted ? "\"" : "");
        found = shown;
    } else if (node->kind == STKI_NODE_LIST && node->count > 0) {
        char items[48];

        show_list(node, items, sizeof items);
        snprintf(shown, sizeof shown, "a list %s", items);
        found = shown;
    } else if (node->kind == STKI_NODE_LIST) {
        found = "an empty list";
    }
    FORMAT_ARGS(expected, expected_format);
    snprintf(what, sizeof what, "found %s, expected %s", found, expected);
    return fail_in(err, STK_E_CONFIG, spot_of(node), node, what, found, expected);
}

bool stki_node_equal(const stki_node *a, const stki_node *b)
{
    if (!a || !b || a->kind != b->kind || a->count != b->count || a->quoted != b->quoted)
        return a == b;
    if (a->kind == STKI_NODE_SCALAR)
        return strcmp(a->text, b->text) == 0;
    for (int i = 0; i < a->count; i++)
        if ((a->kind == STKI_NODE_MAP && strcmp(a->keys[i], b->keys[i]) != 0) ||
            !stki_node_equal(a->items[i], b->items[i]))
            return false;
    return true;
}
