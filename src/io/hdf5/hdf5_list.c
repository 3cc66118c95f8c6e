/* hdf5_list.c: see hdf5_list.h. Groups are visited with a list of those still to do instead of recursion. Each knows
 * the one that it was found in, so that a group on its own path is recognized, by its file and its address there. */
#include "hdf5_list.h"
#include "allocate.h"
#include "error.h"
#include "hdf5_path.h"
#include <fnmatch.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_GROUPS = 1 << 20,
    MAX_ALIASES = 1 << 16, /* groups entered again by another path: a few links to links make very many paths */
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
    int depth; /* components of the pattern */
    stki_hdf5_found found;
    void *context;
    struct node *nodes; /* [0, next) are done */
    int64_t count, capacity, next, aliases;
    json_t *seen; /* keys of objects: the first path to each; NULL with a pattern */
};

struct names {
    char **names;
    int64_t count, capacity;
};

static stk_status push_name(struct names *list, const char *name, stk_error *err)
{
    char *copy = stki_strdup(name);

    if (copy && list->count == list->capacity) {
        int64_t more = list->capacity ? list->capacity * 2 : 16;
        char **names = stki_resize(list->names, more * (int64_t)sizeof *names);

        if (!names) {
            stki_free(copy);
            copy = NULL;
        } else {
            list->names = names;
            list->capacity = more;
        }
    }
    if (!copy)
        return stki_fail_memory(err, list->capacity * 2 * (int64_t)sizeof *list->names, "a list of names");
    list->names[list->count++] = copy;
    return STK_OK;
}

static void names_fini(struct names *list)
{
    for (int64_t i = 0; i < list->count; i++)
        stki_free(list->names[i]);
    stki_free(list->names);
    *list = (struct names){0};
}

/* ---- patterns ---- */

static int components(const char *path)
{
    int count = path[0] != '\0' && path[0] != '/';

    for (; *path; path++)
        count += path[0] == '/' && path[1] != '/' && path[1] != '\0';
    return count;
}

/* Does the path fit as many components of the pattern as it has? */
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

/* ---- the library's side (inside enter and leave) ---- */

struct gather {
    struct names names;
    stk_status status;
    stk_error *err;
};

static herr_t on_link(hid_t group, const char *name, const H5L_info_t *info, void *context)
{
    struct gather *gather = context;

    (void)group, (void)info;
    gather->status = push_name(&gather->names, name, gather->err);
    return gather->status != STK_OK ? -1 : 0;
}

static stk_status gather_links(const stki_hdf5_object *group, const char *name, struct gather *gather, stk_error *err)
{
    herr_t done = H5Literate(group->id, H5_INDEX_NAME, H5_ITER_INC, NULL, on_link, gather);

    if (gather->status != STK_OK)
        return gather->status;
    return done < 0 ? stki_hdf5_fail(err, STK_E_CORRUPT, group->file->path, name, "a group cannot be listed") : STK_OK;
}

enum kind { KIND_DATASET, KIND_GROUP, KIND_OTHER, KIND_LOST };

struct child {
    enum kind kind;
    stki_hdf5_key key;
    stk_error trouble;
};

static enum kind kind_of(H5O_type_t type)
{
    return type == H5O_TYPE_DATASET ? KIND_DATASET : type == H5O_TYPE_GROUP ? KIND_GROUP : KIND_OTHER;
}

static void classify(const stki_hdf5_object *object, const char *name, struct child *child)
{
    H5O_type_t type;

    if (stki_hdf5_object_key(object, &type, &child->key)) {
        child->kind = kind_of(type);
        return;
    }
    child->kind = KIND_LOST;
    (void)stki_hdf5_fail(&child->trouble, STK_E_CORRUPT, object->file->path, name, "cannot be looked at");
}

static void look(const stki_hdf5_object *group, const char *name, const char *path, struct child *child)
{
    stki_hdf5_object object;

    if (stki_hdf5_object_step(group, name, path, &object, &child->trouble) != STK_OK) {
        child->kind = KIND_LOST;
        return;
    }
    classify(&object, path, child);
    stki_hdf5_object_close(&object);
}

/* ---- walking ---- */

static stk_status push_group(struct listing *l, char *name, int64_t parent, const stki_hdf5_key *key, stk_error *err)
{
    if (name && l->count == l->capacity) {
        int64_t more = l->capacity ? l->capacity * 2 : 16;
        struct node *nodes = stki_resize(l->nodes, more * (int64_t)sizeof *nodes);

        if (!nodes) {
            stki_free(name);
            name = NULL;
        } else {
            l->nodes = nodes;
            l->capacity = more;
        }
    }
    if (!name)
        return stki_fail_memory(err, (l->capacity + 16) * (int64_t)sizeof *l->nodes, "a list of groups");
    l->nodes[l->count++] = (struct node){name, parent, *key};
    return STK_OK;
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

/* *first: the path by which the object was met before; NULL: it was not. */
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
                            l->aliases > MAX_ALIASES
                                ? "more than %d paths to groups that other paths lead to, too: name "
                                  "the data set or a pattern"
                                : "more than %d groups",
                            l->aliases > MAX_ALIASES ? MAX_ALIASES : MAX_GROUPS);
    return push_group(l, stki_strdup(name), parent, key, err);
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

    switch (child->kind) {
    case KIND_LOST:
        return lost(l, name, &child->trouble, err);
    case KIND_DATASET:
        if (!leaf)
            return STK_OK;
        status = remember(l, &child->key, name, &first, err);
        return status != STK_OK ? status : l->found(l->context, name, first, NULL, err);
    case KIND_GROUP:
        return l->pattern && leaf ? STK_OK : enter_group(l, parent, name, &child->key, err);
    default:
        return STK_OK;
    }
}

/* The names in a group, and what is behind each that is wanted. `path` is the group's. */
static stk_status list_group(struct listing *l, int64_t node, stk_error *err)
{
    const char *path = l->nodes[node].name;
    struct gather gather = {.err = err};
    stki_hdf5_object group = {NULL, -1};
    stki_hdf5_guard guard;
    stk_error trouble;
    stk_status status, opened;

    stki_hdf5_enter(&guard, false);
    stki_apart_note(l->file->path, path, "listing a group", 0);
    opened = stki_hdf5_object_open(l->file, path, &group, &trouble);
    if (opened == STK_OK)
        opened = gather_links(&group, path, &gather, &trouble);
    stki_hdf5_leave(&guard);
    status =
        opened == STK_OK || gather.status != STK_OK ? gather.status : l->found(l->context, path, NULL, &trouble, err);
    for (int64_t i = 0; i < gather.names.count && status == STK_OK; i++) {
        char *name = stki_format("%s/%s", path[1] ? path : "", gather.names.names[i]);
        struct child child = {.kind = KIND_OTHER};

        if (!name) {
            status = stki_fail_memory(err, (int64_t)strlen(path) + 2, "a path");
            break;
        }
        if (l->pattern && !fits_begin(l, name, components(name))) {
            stki_free(name);
            continue;
        }
        if (strlen(name) > MAX_PATH) {
            child.kind = KIND_LOST;
            (void)stki_fail_at(&child.trouble, STK_E_LIMIT, (stki_place){l->file->path, -1, -1, NULL, NULL},
                               "a path of more than %d bytes: %.100s…", MAX_PATH, name);
        } else {
            stki_hdf5_enter(&guard, false);
            stki_apart_note(l->file->path, name, "following a link", 0);
            look(&group, gather.names.names[i], name, &child);
            stki_hdf5_leave(&guard);
        }
        status = take_child(l, node, name, &child, err);
        stki_free(name);
    }
    if (group.file) {
        stki_hdf5_enter(&guard, false);
        stki_hdf5_object_close(&group);
        stki_hdf5_leave(&guard);
    }
    names_fini(&gather.names);
    return status;
}

static stk_status push_root(struct listing *l, stk_error *err)
{
    stki_hdf5_object root;
    struct child child;
    const char *first;
    stki_hdf5_guard guard;
    stk_status status;

    stki_hdf5_enter(&guard, false);
    stki_apart_note(l->file->path, "/", "opening a group", 0);
    status = stki_hdf5_object_open(l->file, "/", &root, &child.trouble);
    if (status == STK_OK) {
        classify(&root, "/", &child);
        stki_hdf5_object_close(&root);
    }
    stki_hdf5_leave(&guard);
    if (status != STK_OK || child.kind == KIND_LOST) {
        if (err)
            *err = child.trouble;
        return child.trouble.status;
    }
    if (child.kind != KIND_GROUP)
        return stki_fail_at(err, STK_E_CORRUPT, (stki_place){l->file->path, -1, -1, NULL, NULL},
                            "the root group is no group");
    status = remember(l, &child.key, "/", &first, err);
    return status != STK_OK ? status : push_group(l, stki_strdup("/"), -1, &child.key, err);
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
