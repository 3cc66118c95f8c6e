/* document_newest.c: of two spellings of one thing (order and shuffle) the one from the later source stays: an
 * including file wins over what it includes, an assignment over both. Two in one source stay, for the reader to refuse.
 */
#include "document_build.h"
#include <string.h>

/* Two keys of one map that say the same thing. */
typedef struct spellings {
    const char *section; /* the maps they stand in; * is every item */
    const char *one, *other;
} spellings;

static const spellings pairs[] = {
    {"loader", "order", "shuffle"},
    {"loader", "last_batch", "drop_last"},
    {"loader", "batch_size", "global_batch_size"},
    {"dataset.fields.*", "path", "synthetic"},
    {"datasets.*.fields.*", "path", "synthetic"},
};

static int index_of(const stki_node *map, const char *key)
{
    int i;

    for (i = 0; i < map->count && strcmp(map->keys[i], key) != 0; i++)
        ;
    return i;
}

static void take_out(stki_node *map, int index)
{
    const size_t behind = (size_t)(map->count - index - 1);

    memmove(&map->items[index], &map->items[index + 1], behind * sizeof map->items[0]);
    memmove(&map->keys[index], &map->keys[index + 1], behind * sizeof map->keys[0]);
    map->count--;
}

/* `section`: what is left of the path below `node`. */
static void visit(stki_node *node, const char *section, const spellings *of)
{
    const size_t length = strcspn(section, ".");
    const char *rest = section + length + (section[length] == '.');
    int one, other;

    if (*section) {
        for (int i = 0; i < node->count; i++)
            if (*section == '*' || (node->kind == STKI_NODE_MAP && strlen(node->keys[i]) == length &&
                                    memcmp(node->keys[i], section, length) == 0))
                visit(node->items[i], rest, of);
        return;
    }
    if (node->kind != STKI_NODE_MAP)
        return;
    one = index_of(node, of->one);
    other = index_of(node, of->other);
    if (one == node->count || other == node->count || node->items[one]->layer == node->items[other]->layer)
        return;
    take_out(node, node->items[one]->layer < node->items[other]->layer ? one : other);
}

void stki_document_newest(stki_document *document)
{
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        visit(document->root, pairs[i].section, &pairs[i]);
}
