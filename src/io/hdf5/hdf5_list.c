/* hdf5_list.c: see hdf5_list.h. Groups are visited with a work list instead of recursion. Each group records its
 * parent, so that a group that is its own ancestor can be recognized by file and address. */
#include "hdf5_list.h"
#include "allocate.h"
#include "error.h"
#include "grow.h"
#include "hdf5_path.h"
#include <fnmatch.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_GROUPS = 1 << 20,
    MAX_ALIASES =
        1 << 16, /* limit on groups visited again by another path, because a few links can form very many paths */
    MAX_PATH = 1 << 16
};

struct node {
    char *name;
    int64_t parent; /* -1: the root */
    stki_hdf5_key key;
};

struct listing {
    stki_hdf5_file *file;
    const char *pattern;
    int depth; /* components matched */
    stki_hdf5_found found;
    void *context;
    struct node *nodes; /* nodes [0, next) have been visited */
    int64_t count, capacity, next, aliases;
    json_t *seen; /* maps the key of each object to the first path to it; NULL with a pattern */
};

/* ---- patterns ---- */

static int components(const char *path)
{
    int count = path[0] != '\0' && path[0] != '/';

    for (; *path; path++)
        count += path[0] == '/' && path[1] != '/' && path[1] != '\0';
    return count;
}

/* Whether a path of `depth` components matches the first `depth` components of the pattern. */
static bool fits_begin(const struct listing *l, const char *name, int depth)
{
    const char *end = l->pattern + (l->pattern[0] == '/');
    char *begin;
    bool fits;

    if (depth > l->depth)
        return false;
    for (int i = 0; i < depth && end; i++)
        end = strchr(end + (i > 0), '/');
    begin = end ? stki_format("%.*s", (int)(end - l->pattern), l->pattern) : stki_strdup(l->pattern);
    fits = begin && !fnmatch(begin + (begin[0] == '/'), name + 1, FNM_PATHNAME);
    stki_free(begin);
    return fits;
}

struct child {
    bool lost; /* the object cannot be accessed; `trouble` is the reason */
    enum stki_hdf5_kind kind;
    stki_hdf5_key key;
    stk_error trouble;
};

static void look(stki_hdf5_object *group, const stki_hdf5_link *link, const char *path, struct child *child)
{
    stki_hdf5_object object;

    child->lost = stki_hdf5_object_follow(group, link, path, &object, &child->trouble) != STK_OK;
    if (child->lost)
        return;
    child->lost = stki_hdf5_object_key(&object, path, &child->kind, &child->key, &child->trouble) != STK_OK;
    stki_hdf5_object_close(&object);
}

/* ---- walking ---- */

static stk_status push_group(struct listing *l, const char *name, int64_t parent, const stki_hdf5_key *key,
                             stk_error *err)
{
    stk_status status = stki_grow(&l->nodes, &l->capacity, l->count + 1, sizeof *l->nodes, "a list of groups", err);
    char *copy = status == STK_OK ? stki_strdup(name) : NULL;

    if (status == STK_OK && !copy)
        status = stki_fail_memory(err, (int64_t)strlen(name) + 1, "a list of groups");
    if (status == STK_OK)
        l->nodes[l->count++] = (struct node){copy, parent, *key};
    return status;
}

static bool same(const stki_hdf5_key *a, const stki_hdf5_key *b)
{
    return a->device == b->device && a->inode == b->inode && a->header == b->header;
}

static bool on_own_path(const struct listing *l, int64_t node, const stki_hdf5_key *key)
{
    for (; node >= 0; node = l->nodes[node].parent)
        if (same(&l->nodes[node].key, key))
            return true;
    return false;
}

/* Records that the object has been seen. Sets *first to the path by which it was seen before, or to NULL if it is
 * new. */
static stk_status remember(struct listing *l, const stki_hdf5_key *key, const char *name, const char **first,
                           stk_error *err)
{
    char text[64];
    const json_t *known;

    *first = NULL;
    if (!l->seen)
        return STK_OK;
    stki_text(text, sizeof text, "%" PRIx64 " %" PRIx64 " %" PRIx64, key->device, key->inode, key->header);
    known = json_object_get(l->seen, text);
    *first = known ? json_string_value(known) : NULL;
    if (known || !json_object_set_new_nocheck(l->seen, text, json_stringn_nocheck(name, strlen(name))))
        return STK_OK;
    return stki_fail_memory(err, (int64_t)strlen(name), "a list of objects");
}

static stk_status enter_group(struct listing *l, int64_t parent, const char *name, const stki_hdf5_key *key,
                              stk_error *err)
{
    const char *first;
    stk_status status;

    if (on_own_path(l, parent, key))
        return STK_OK;
    status = remember(l, key, name, &first, err);
    if (status != STK_OK)
        return status;
    l->aliases += first != NULL;
    if (l->count >= MAX_GROUPS || l->aliases > MAX_ALIASES)
        return stki_fail_at(err, STK_E_LIMIT, (stki_place){l->file->path, -1, -1, NULL, NULL},
                            l->aliases > MAX_ALIASES ? "more than %d paths lead to groups that are already listed "
                                                       "under another path: give the name of a data set, or a pattern"
                                                     : "the file has more than %d groups",
                            l->aliases > MAX_ALIASES ? MAX_ALIASES : MAX_GROUPS);
    return push_group(l, name, parent, key, err);
}

static stk_status lost(const struct listing *l, const char *name, const stk_error *trouble, stk_error *err)
{
    if (trouble->status != STK_E_MEMORY)
        return l->found(l->context, name, NULL, trouble, err);
    if (err)
        *err = *trouble;
    return STK_E_MEMORY;
}

static stk_status take_child(struct listing *l, int64_t parent, const char *name, const struct child *child,
                             stk_error *err)
{
    const int depth = l->pattern ? components(name) : 0;
    const bool leaf = !l->pattern || depth == l->depth;
    const char *first;
    stk_status status;

    if (child->lost)
        return lost(l, name, &child->trouble, err);
    switch (child->kind) {
    case STKI_HDF5_IS_DATASET:
        if (!leaf)
            return STK_OK;
        status = remember(l, &child->key, name, &first, err);
        return status != STK_OK ? status : l->found(l->context, name, first, NULL, err);
    case STKI_HDF5_IS_GROUP:
        return l->pattern && leaf ? STK_OK : enter_group(l, parent, name, &child->key, err);
    default:
        return STK_OK;
    }
}

/* Lists one link of the group at this node, whose path is `path`. */
static stk_status list_link(struct listing *l, int64_t node, const char *path, stki_hdf5_object *group,
                            const stki_hdf5_link *link, stk_error *err)
{
    char *name = stki_format("%s/%s", path[1] ? path : "", link->name);
    struct child child = {.lost = true};
    stk_status status = STK_OK;

    if (!name)
        return stki_fail_memory(err, (int64_t)strlen(path) + 2, "a path");
    if (!l->pattern || fits_begin(l, name, components(name))) {
        if (strlen(name) > MAX_PATH)
            (void)stki_fail_at(&child.trouble, STK_E_LIMIT, (stki_place){l->file->path, -1, -1, NULL, NULL},
                               "the path has more than %d bytes: %.100s…", MAX_PATH, name);
        else
            look(group, link, name, &child);
        status = take_child(l, node, name, &child, err);
    }
    stki_free(name);
    return status;
}

static stk_status list_group(struct listing *l, int64_t node, stk_error *err)
{
    const char *path = l->nodes[node].name;
    stki_hdf5_link_list list = {0};
    stki_hdf5_object group = STKI_HDF5_NO_OBJECT;
    stk_error trouble;
    stk_status status = stki_hdf5_object_open(l->file, path, &group, &trouble);

    if (status == STK_OK)
        status = stki_hdf5_object_links(&group, path, &list, &trouble);
    if (status != STK_OK)
        status = lost(l, path, &trouble, err);
    for (int64_t i = 0; i < list.count && status == STK_OK; i++)
        status = list_link(l, node, path, &group, &list.links[i], err);
    stki_hdf5_object_close(&group);
    stki_hdf5_link_list_fini(&list);
    return status;
}

static stk_status push_root(struct listing *l, stk_error *err)
{
    stki_hdf5_object root = STKI_HDF5_NO_OBJECT;
    enum stki_hdf5_kind kind = STKI_HDF5_IS_OTHER;
    stki_hdf5_key key;
    const char *first;
    stk_status status = stki_hdf5_object_open(l->file, "/", &root, err);

    if (status == STK_OK)
        status = stki_hdf5_object_key(&root, "/", &kind, &key, err);
    stki_hdf5_object_close(&root);
    if (status != STK_OK)
        return status;
    if (kind != STKI_HDF5_IS_GROUP)
        return stki_fail_at(err, STK_E_CORRUPT, (stki_place){l->file->path, -1, -1, NULL, NULL},
                            "the root group is not a group");
    status = remember(l, &key, "/", &first, err);
    return status != STK_OK ? status : push_group(l, "/", -1, &key, err);
}

stk_status stki_hdf5_list(stki_hdf5_file *file, const char *pattern, stki_hdf5_found found, void *context,
                          stk_error *err)
{
    struct listing l = {.file = file, .pattern = pattern, .found = found, .context = context};
    stk_status status = STK_OK;

    l.depth = pattern ? components(pattern) : 0;
    if (!pattern && !(l.seen = json_object()))
        status = stki_fail_memory(err, 64, "a list of objects");
    if (status == STK_OK)
        status = push_root(&l, err);
    while (status == STK_OK && l.next < l.count)
        status = list_group(&l, l.next++, err);
    for (int64_t i = 0; i < l.count; i++)
        stki_free(l.nodes[i].name);
    stki_free(l.nodes);
    json_decref(l.seen);
    return status;
}
