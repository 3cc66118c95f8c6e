/* hdf5_links.c: reads the links of a group. See hdf5_parse.h.
 *
 *     old groups (symbol table message, IV.A.2.r): u64 B-tree, u64 local heap
 *         node of the B-tree (III.A.1): TREE, u8 0, u8 level, u16 entries, two u64; then key, child, key, … key: a key
 *             is the offset of a name in the heap, and child i has the names above key i up to key i + 1
 *         child at level 0 (III.B): SNOD, u8 1, u8, u16 entries; an entry (III.C) is u64 name in the heap, u64 object
 *             header, u32 kind (2: a soft link), u32, 16 bytes that begin with u32 value in the heap
 *         local heap (III.D): HEAP, u8 0, 3 bytes, u64 bytes, u64 free list, u64 address of the bytes
 *     new groups (link info message, IV.A.2.c): u8 0, u8 flags, u64 if flags & 1, u64 fractal heap, u64 B-tree by
 *         name; without a heap the links are messages of the header
 *         a link (IV.A.2.g): u8 1, u8 flags, u8 kind if flags & 8, u64 if flags & 4, u8 if flags & 16, length of the
 *             name in 1 << (flags & 3) bytes, name; 0 hard: u64 object header; 1 soft: u16 length, path;
 *             64 external: u16 length, u8 0, file, NUL, path, NUL */
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "grow.h"
#include "hdf5_parse.h"
#include <stdlib.h>
#include <string.h>

enum {
    MAX_DEPTH = 32,
    MAX_NAME = 1024,    /* maximum length of a link's name in an old group */
    MAX_HEAP = 1 << 28, /* maximum size of all names in a listing */
    TREE_HEAD = 24,
    ENTRY = 40,
    SOFT = 2
};

struct links {
    const stki_hdf5_super *super;
    const char *only; /* NULL: all */
    stk_status (*visit)(void *context, const stki_hdf5_link *link, stk_error *err);
    void *context;
    int64_t left; /* number of entries and nodes that may still be read, limited by the size of the file */
};

static stk_status corrupt(const struct links *l, uint64_t address, const char *what, stk_error *err)
{
    return stki_hdf5_corrupt(l->super, address, what, err);
}

static bool is_name(const char *name)
{
    return name[0] != '\0' && !strchr(name, '/') && strcmp(name, ".") != 0;
}

/* ---- old groups ---- */

struct heap {
    uint64_t at, bytes;
    char *all;    /* all names of the heap; NULL: names are read one by one */
    int64_t left; /* with `all`: number of bytes that no name has used yet */
};

static stk_status open_heap(const struct links *l, uint64_t address, struct heap *out, stk_error *err)
{
    unsigned char head[32];
    stk_status status = stki_hdf5_copy(l->super, address, head, sizeof head, "a local heap", err);

    *out = (struct heap){0};
    if (status != STK_OK)
        return status;
    if (memcmp(head, "HEAP", 4) != 0 || head[4] != 0)
        return corrupt(l, address, "not a local heap", err);
    out->bytes = stki_hdf5_number(head + 8, 8);
    out->at = stki_hdf5_number(head + 24, 8);
    if (out->bytes > (uint64_t)l->super->file->size || out->bytes > MAX_HEAP)
        return corrupt(l, address, "a local heap is larger than the file", err);
    out->left = (int64_t)out->bytes;
    if (l->only)
        return STK_OK;
    out->all = stki_zalloc((int64_t)out->bytes + 1);
    if (!out->all)
        return stki_fail_memory(err, (int64_t)out->bytes + 1, "the names of a group");
    return stki_hdf5_copy(l->super, out->at, out->all, (int64_t)out->bytes, "the local heap of a group", err);
}

/* Returns the string at an offset of the heap, in place or in `buffer`. In a listing, strings must not overlap:
 * otherwise many entries could refer to a few bytes and make the listing arbitrarily large. */
static stk_status heap_text(const struct links *l, struct heap *heap, uint64_t offset, char buffer[MAX_NAME],
                            const char **out, stk_error *err)
{
    uint64_t room = offset < heap->bytes ? heap->bytes - offset : 0;
    const char *end;
    stk_status status = STK_OK;

    *out = heap->all ? heap->all + (room ? offset : 0) : buffer;
    if (!heap->all) {
        room = room < MAX_NAME ? room : MAX_NAME;
        status = stki_hdf5_copy(l->super, heap->at + offset, buffer, (int64_t)room, "the name of a link", err);
    }
    if (status != STK_OK)
        return status;
    end = memchr(*out, '\0', room);
    if (!end)
        return corrupt(l, heap->at, "the name of a link crosses the end of the heap", err);
    if (heap->all && (heap->left -= end - *out + 1) < 0)
        return corrupt(l, heap->at, "the names of a group overlap in the heap", err);
    return STK_OK;
}

struct old_group {
    struct heap heap;
    char last[MAX_NAME]; /* when listing all: the previous name */
};

static stk_status take_entry(struct links *l, struct old_group *g, const unsigned char *entry, uint64_t address,
                             stk_error *err)
{
    char text[MAX_NAME], value[MAX_NAME];
    stki_hdf5_link link = {.kind = STKI_HDF5_HARD, .header = stki_hdf5_number(entry + 8, 8)};
    const uint64_t cached = stki_hdf5_number(entry + 16, 4);
    stk_status status = heap_text(l, &g->heap, stki_hdf5_number(entry, 8), text, &link.name, err);

    if (status != STK_OK)
        return status;
    if (!is_name(link.name) || cached > SOFT)
        return corrupt(l, address, "invalid group entry", err);
    if (l->only && strcmp(l->only, link.name) != 0)
        return STK_OK;
    if (!l->only) { /* otherwise a lookup would not find some of the names */
        if (strcmp(g->last, link.name) >= 0)
            return corrupt(l, address, "the names of a group are not sorted", err);
        if (strlen(link.name) >= sizeof g->last)
            return stki_hdf5_unsupported(l->super, address, "a long name", err);
        strcpy(g->last, link.name);
    }
    if (cached == SOFT) {
        link.kind = STKI_HDF5_SOFT;
        status = heap_text(l, &g->heap, stki_hdf5_number(entry + 24, 4), value, &link.target, err);
    }
    return status == STK_OK ? l->visit(l->context, &link, err) : status;
}

static stk_status take_symbols(struct links *l, struct old_group *g, uint64_t address, stk_error *err)
{
    unsigned char head[8], entry[ENTRY];
    int count;
    stk_status status = stki_hdf5_copy(l->super, address, head, sizeof head, "a symbol table node", err);

    if (status != STK_OK)
        return status;
    count = (int)stki_hdf5_number(head + 6, 2);
    if (l->left-- <= 0)
        return corrupt(l, address, "more nodes than fit in the file", err);
    if (memcmp(head, "SNOD", 4) != 0 || head[4] != 1 || count > 2 * l->super->leaf_k)
        return corrupt(l, address, "not a symbol table node", err);
    for (int i = 0; i < count && status == STK_OK; i++) {
        if (l->left-- <= 0)
            return corrupt(l, address, "more links than fit in the file", err);
        status = stki_hdf5_copy(l->super, address + 8 + (uint64_t)i * ENTRY, entry, ENTRY, "a link", err);
        if (status == STK_OK)
            status = take_entry(l, g, entry, address, err);
    }
    return status;
}

struct node {
    uint64_t at; /* offset of the first key */
    int level, entries, next;
};

static stk_status open_node(struct links *l, uint64_t address, int level, struct node *out, stk_error *err)
{
    unsigned char head[TREE_HEAD];
    stk_status status = stki_hdf5_copy(l->super, address, head, sizeof head, "a B-tree node of a group", err);

    if (status != STK_OK)
        return status;
    *out = (struct node){address + TREE_HEAD, head[5], (int)stki_hdf5_number(head + 6, 2), 0};
    if (memcmp(head, "TREE", 4) != 0 || head[4] != 0 || out->level >= MAX_DEPTH ||
        (level >= 0 && out->level != level) || out->entries > 2 * l->super->internal_k || l->left-- <= 0)
        return corrupt(l, address, "not a B-tree node of a group", err);
    return STK_OK;
}

/* Selects the child that may contain the name: a child's names are greater than its key and at most the next key. */
static stk_status choose_child(const struct links *l, struct old_group *g, struct node *node, stk_error *err)
{
    int low = 0, high = node->entries;
    char text[MAX_NAME];
    const char *name;

    while (low < high) {
        const int middle = low + (high - low) / 2;
        unsigned char key[8];
        stk_status status =
            stki_hdf5_copy(l->super, node->at + 16 * ((uint64_t)middle + 1), key, 8, "a key of a B-tree", err);

        if (status == STK_OK)
            status = heap_text(l, &g->heap, stki_hdf5_number(key, 8), text, &name, err);
        if (status != STK_OK)
            return status;
        if (strcmp(l->only, name) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    node->next = low;
    if (low < node->entries)
        node->entries = low + 1; /* only this child is visited */
    return STK_OK;
}

static stk_status walk_tree(struct links *l, struct old_group *g, uint64_t root, stk_error *err)
{
    struct node stack[MAX_DEPTH];
    int depth = 1;
    stk_status status = open_node(l, root, -1, &stack[0], err);

    if (status == STK_OK && l->only)
        status = choose_child(l, g, &stack[0], err);
    while (depth > 0 && status == STK_OK) {
        struct node *node = &stack[depth - 1];
        unsigned char child[8];

        if (node->next == node->entries) {
            depth--;
            continue;
        }
        status = stki_hdf5_copy(l->super, node->at + 16 * (uint64_t)node->next++ + 8, child, 8,
                                "a child address of a B-tree", err);
        if (status == STK_OK && node->level == 0) {
            status = take_symbols(l, g, stki_hdf5_number(child, 8), err);
        } else if (status == STK_OK) { /* levels decrease, so the stack is large enough */
            status = open_node(l, stki_hdf5_number(child, 8), node->level - 1, &stack[depth], err);
            if (status == STK_OK && l->only)
                status = choose_child(l, g, &stack[depth], err);
            depth++;
        }
    }
    return status;
}

static stk_status visit_old(struct links *l, stki_hdf5_cursor message, stk_error *err)
{
    const uint64_t tree = stki_hdf5_take(&message, 8), heap = stki_hdf5_take(&message, 8);
    struct old_group *g = message.bad ? NULL : stki_zalloc(sizeof *g);
    stk_status status;

    if (!g)
        return message.bad ? corrupt(l, 0, "a symbol table message is truncated", err)
                           : stki_fail_memory(err, sizeof *g, "a group");
    status = open_heap(l, heap, &g->heap, err);
    if (status == STK_OK)
        status = walk_tree(l, g, tree, err);
    stki_free(g->heap.all);
    stki_free(g);
    return status;
}

/* ---- new groups ---- */

/* Decodes a link message. `text` has room for three bytes more than the message. */
static bool decode_link(stki_hdf5_cursor c, char *text, stki_hdf5_link *out)
{
    const int version = (int)stki_hdf5_take(&c, 1), flags = (int)stki_hdf5_take(&c, 1),
              kind = flags & 8 ? (int)stki_hdf5_take(&c, 1) : 0;
    uint64_t bytes;
    const unsigned char *from;

    (void)stki_hdf5_skip(&c, flags & 4 ? 8 : 0);
    (void)stki_hdf5_skip(&c, flags & 16 ? 1 : 0);
    bytes = stki_hdf5_take(&c, 1 << (flags & 3));
    from = bytes > INT64_MAX ? NULL : stki_hdf5_skip(&c, (int64_t)bytes);
    if (version != 1 || (flags & 0xE0) || !from || memchr(from, '\0', bytes))
        return false;
    memcpy(text, from, bytes);
    text[bytes] = '\0';
    *out = (stki_hdf5_link){.name = text};
    text += bytes + 1;
    if (kind == 0) {
        out->kind = STKI_HDF5_HARD;
        out->header = stki_hdf5_take(&c, 8);
        return !c.bad && is_name(out->name);
    }
    bytes = stki_hdf5_take(&c, 2);
    from = stki_hdf5_skip(&c, (int64_t)bytes);
    if (!from || bytes == 0 || !is_name(out->name))
        return false;
    memcpy(text, from, bytes);
    text[bytes] = '\0';
    if (kind == 1) {
        out->kind = STKI_HDF5_SOFT;
        out->target = text;
        return strlen(text) == bytes;
    }
    out->kind = STKI_HDF5_EXTERN;
    out->target = text + 1;
    out->path = out->target + strlen(out->target) + 1;
    return kind == 64 && text[0] == 0 && out->path < text + bytes && out->path + strlen(out->path) + 1 == text + bytes;
}

static stk_status take_link(struct links *l, stki_hdf5_cursor data, stk_error *err)
{
    stki_hdf5_link link;
    char *text = stki_zalloc(data.left + 3);
    stk_status status;

    if (!text)
        return stki_fail_memory(err, data.left + 3, "a link");
    if (!decode_link(data, text, &link))
        status = stki_hdf5_unsupported(l->super, 0, "an unsupported link", err);
    else
        status = l->only && strcmp(l->only, link.name) != 0 ? STK_OK : l->visit(l->context, &link, err);
    stki_free(text);
    return status;
}

static int64_t name_of(stki_hdf5_cursor c, const unsigned char **out)
{
    const int flags = c.left > 1 ? c.at[1] : 0;
    int64_t bytes;

    (void)stki_hdf5_skip(&c, 2 + (flags & 8 ? 1 : 0) + (flags & 4 ? 8 : 0) + (flags & 16 ? 1 : 0));
    bytes = (int64_t)stki_hdf5_take(&c, 1 << (flags & 3));
    *out = stki_hdf5_skip(&c, bytes);
    return *out ? bytes : 0;
}

static int by_name(const void *a, const void *b)
{
    const unsigned char *x, *y;
    const int64_t m = name_of(*(const stki_hdf5_cursor *)a, &x), n = name_of(*(const stki_hdf5_cursor *)b, &y);
    const int64_t least = m < n ? m : n;
    const int order = least > 0 ? memcmp(x, y, (size_t)least) : 0;

    return order ? order : (m > n) - (m < n);
}

/* Visits the links in the order of their names. */
static stk_status take_links(struct links *l, stki_hdf5_cursor *links, int64_t count, stk_error *err)
{
    stk_status status = STK_OK;

    if (count > 0)
        qsort(links, (size_t)count, sizeof *links, by_name);
    for (int64_t i = 1; i < count; i++)
        if (by_name(&links[i - 1], &links[i]) == 0)
            return corrupt(l, 0, "a group has two links with the same name", err);
    for (int64_t i = 0; i < count && status == STK_OK; i++)
        status = take_link(l, links[i], err);
    return status;
}

static stk_status visit_compact(struct links *l, const stki_hdf5_header *header, stk_error *err)
{
    stki_hdf5_cursor *links = stki_zalloc_array(header->count + 1, sizeof *links);
    int64_t count = 0;
    bool shared = false;
    stk_status status;

    if (!links)
        return stki_fail_memory(err, header->count * (int64_t)sizeof *links, "the links of a group");
    for (int64_t i = 0; i < header->count; i++)
        if (header->messages[i].type == STKI_HDF5_LINK) {
            shared = shared || header->messages[i].shared;
            links[count++] = header->messages[i].data;
        }
    status = shared ? stki_hdf5_unsupported(l->super, 0, "a shared link", err) : take_links(l, links, count, err);
    stki_free(links);
    return status;
}

/* ---- new groups with many links ---- */

struct heaped {
    struct links *links;
    stki_hdf5_cursor *copies; /* owned copies of the messages */
    int64_t count, capacity;
};

static stk_status on_found_link(void *context, stki_hdf5_cursor object, stk_error *err)
{
    return take_link(((struct heaped *)context)->links, object, err);
}

static stk_status on_link_object(void *context, stki_hdf5_cursor object, stk_error *err)
{
    struct heaped *h = context;
    unsigned char *bytes;
    stk_status status =
        stki_grow(&h->copies, &h->capacity, h->count + 1, sizeof *h->copies, "the links of a group", err);

    if (status != STK_OK)
        return status;
    bytes = stki_zalloc(object.left + 1);
    if (!bytes)
        return stki_fail_memory(err, object.left + 1, "the links of a group");
    memcpy(bytes, object.at, (size_t)object.left);
    h->copies[h->count++] = (stki_hdf5_cursor){bytes, object.left, false};
    return STK_OK;
}

static stk_status visit_dense(struct links *l, uint64_t heap, uint64_t tree, stk_error *err)
{
    struct heaped h = {.links = l};
    stk_status status = stki_hdf5_dense_visit(l->super, heap, tree, STKI_HDF5_LINKS_BY_NAME, l->only,
                                              l->only ? on_found_link : on_link_object, &h, err);

    if (status == STK_OK && !l->only)
        status = take_links(l, h.copies, h.count, err);
    for (int64_t i = 0; i < h.count; i++)
        stki_free((void *)(uintptr_t)h.copies[i].at);
    stki_free(h.copies);
    return status;
}

static stk_status visit_new(struct links *l, const stki_hdf5_header *header, stki_hdf5_cursor info, stk_error *err)
{
    const int version = (int)stki_hdf5_take(&info, 1), flags = (int)stki_hdf5_take(&info, 1);
    uint64_t heap, tree;

    (void)stki_hdf5_skip(&info, flags & 1 ? 8 : 0);
    heap = stki_hdf5_take(&info, 8);
    tree = stki_hdf5_take(&info, 8);
    if (version != 0 || flags > 3 || info.bad)
        return stki_hdf5_unsupported(l->super, 0, "an unsupported link info message", err);
    return heap == STKI_HDF5_UNDEFINED ? visit_compact(l, header, err) : visit_dense(l, heap, tree, err);
}

stk_status stki_hdf5_links_visit(const stki_hdf5_super *super, uint64_t group, const char *only,
                                 stk_status (*visit)(void *context, const stki_hdf5_link *link, stk_error *err),
                                 void *context, stk_error *err)
{
    struct links l = {super, only, visit, context, super->file->size / 8 + 1};
    const stki_hdf5_message *table, *info;
    stki_hdf5_header header;
    bool several = false;
    stk_status status = stki_hdf5_header_read(super, group, &header, err);

    if (status != STK_OK)
        return status;
    table = stki_hdf5_header_find(&header, STKI_HDF5_SYMBOL_TABLE, &several);
    info = stki_hdf5_header_find(&header, STKI_HDF5_LINK_INFO, &several);
    if (several || !table == !info || (table ? table->shared : info->shared))
        status =
            stki_hdf5_unsupported(super, group, "an object that is not a group of either the old or the new form", err);
    else
        status = table ? visit_old(&l, table->data, err) : visit_new(&l, &header, info->data, err);
    stki_hdf5_header_fini(&header);
    return status;
}
