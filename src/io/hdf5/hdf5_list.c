/* hdf5_list.c: see hdf5_list.h. Groups are visited with a list of those still to do instead of recursion; a group is
 * known by the number of its file and its address in it. */
#include "hdf5_list.h"
#include "allocate.h"
#include "error.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_GROUPS = 1 << 20, MAX_PATH = 1 << 16 };

struct key {
    unsigned long file;
    unsigned char object[16];
};

struct names {
    char **names;
    int64_t count, capacity;
};

struct listing {
    stki_hdf5_file *file;
    stk_status (*found)(void *context, const char *name, const stk_error *trouble, stk_error *err);
    void *context;
    struct names groups; /* groups.names[0, next) are done */
    int64_t next;
    struct key *seen;
    int64_t seen_count, seen_capacity;
};

static stk_status push(struct names *list, char *name, stk_error *err) /* takes over name */
{
    if (name && list->count == list->capacity) {
        int64_t more = list->capacity ? list->capacity * 2 : 16;
        char **names = stki_resize(list->names, more * (int64_t)sizeof *names);

        if (!names) {
            stki_free(name);
            name = NULL;
        } else {
            list->names = names;
            list->capacity = more;
        }
    }
    if (!name)
        return stki_fail_memory(err, list->capacity * 2 * (int64_t)sizeof *list->names, "a list of names");
    list->names[list->count++] = name;
    return STK_OK;
}

static void names_fini(struct names *list)
{
    for (int64_t i = 0; i < list->count; i++)
        stki_free(list->names[i]);
    stki_free(list->names);
    *list = (struct names){0};
}

/* ---- the library's side (inside enter and leave) ---------------------------------------------------------------- */

enum kind { KIND_DATASET, KIND_GROUP, KIND_OTHER, KIND_LOST };

static enum kind kind_of(stki_hdf5_follow *follow, const char *name, struct key *key)
{
    H5O_type_t type;

    memset(key, 0, sizeof *key);
#if H5_VERSION_GE(1, 12, 0)
    H5O_info2_t info;
    if (H5Oget_info_by_name3(follow->file->id, name, &info, H5O_INFO_BASIC, follow->links) < 0)
        return KIND_LOST;
    memcpy(key->object, &info.token, sizeof key->object);
#else
    H5O_info_t info;
    if (H5Oget_info_by_name2(follow->file->id, name, &info, H5O_INFO_BASIC, follow->links) < 0)
        return KIND_LOST;
    memcpy(key->object, &info.addr, sizeof info.addr);
#endif
    key->file = info.fileno;
    type = info.type;
    return type == H5O_TYPE_DATASET ? KIND_DATASET : type == H5O_TYPE_GROUP ? KIND_GROUP : KIND_OTHER;
}

struct gather {
    struct names names;
    const char *group;
    stk_status status;
    stk_error *err;
};

static herr_t on_link(struct gather *gather, const char *name)
{
    bool root = !strcmp(gather->group, "/");

    if (strlen(gather->group) + strlen(name) > MAX_PATH)
        gather->status = stki_fail(gather->err, STK_E_LIMIT, "a path of more than %d bytes", MAX_PATH);
    else
        gather->status = push(&gather->names, stki_format("%s/%s", root ? "" : gather->group, name), gather->err);
    return gather->status ? -1 : 0;
}

#if H5_VERSION_GE(1, 12, 0)
static herr_t on_link2(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    (void)group, (void)info;
    return on_link(context, name);
}

static herr_t iterate(hid_t group, struct gather *gather)
{
    return H5Literate2(group, H5_INDEX_NAME, H5_ITER_INC, NULL, on_link2, gather);
}
#else
static herr_t on_link1(hid_t group, const char *name, const H5L_info_t *info, void *context)
{
    (void)group, (void)info;
    return on_link(context, name);
}

static herr_t iterate(hid_t group, struct gather *gather)
{
    return H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, on_link1, gather);
}
#endif

static stk_status gather_links(stki_hdf5_follow *follow, const char *name, struct gather *gather, stk_error *err)
{
    hid_t group = H5Oopen(follow->file->id, name, follow->links);
    herr_t done;

    if (group < 0)
        return stki_hdf5_fail(err, STK_E_CORRUPT, follow->file->path, name, "a group cannot be opened");
    done = iterate(group, gather);
    (void)H5Oclose(group);
    if (gather->status)
        return gather->status;
    return done < 0 ? stki_hdf5_fail(err, STK_E_CORRUPT, follow->file->path, name, "a group cannot be listed") : STK_OK;
}

/* ---- walking ---------------------------------------------------------------------------------------------------- */

static stk_status remember(struct listing *l, const struct key *key, bool *fresh, stk_error *err)
{
    for (int64_t i = 0; i < l->seen_count; i++)
        if (!memcmp(&l->seen[i], key, sizeof *key)) {
            *fresh = false;
            return STK_OK;
        }
    if (l->seen_count == l->seen_capacity) {
        int64_t more = l->seen_capacity ? l->seen_capacity * 2 : 16;
        struct key *seen = stki_resize(l->seen, more * (int64_t)sizeof *seen);

        if (!seen)
            return stki_fail_memory(err, more * (int64_t)sizeof *seen, "a list of groups");
        l->seen = seen;
        l->seen_capacity = more;
    }
    l->seen[l->seen_count++] = *key;
    *fresh = true;
    return STK_OK;
}

struct link {
    enum kind kind;
    struct key key;
    stk_error trouble;
};

static void classify(struct listing *l, const char *name, struct link *link)
{
    stki_hdf5_guard guard;
    stki_hdf5_follow follow;

    stki_hdf5_enter(&guard, false);
    if (stki_hdf5_follow_begin(&follow, l->file, &link->trouble)) {
        link->kind = KIND_LOST;
    } else {
        link->kind = kind_of(&follow, name, &link->key);
        if (link->kind == KIND_LOST && follow.status)
            link->trouble = follow.err;
        else if (link->kind == KIND_LOST)
            (void)stki_hdf5_fail(&link->trouble, STK_E_CORRUPT, l->file->path, name, "cannot be looked at");
        stki_hdf5_follow_end(&follow);
    }
    stki_hdf5_leave(&guard);
}

static stk_status visit(struct listing *l, const char *name, stk_error *err)
{
    struct link link;
    bool fresh = false;
    stk_status status;

    classify(l, name, &link);
    if (link.kind == KIND_DATASET || link.kind == KIND_LOST)
        return l->found(l->context, name, link.kind == KIND_LOST ? &link.trouble : NULL, err);
    if (link.kind == KIND_OTHER)
        return STK_OK;
    status = remember(l, &link.key, &fresh, err);
    if (status || !fresh)
        return status;
    if (l->groups.count >= MAX_GROUPS)
        return stki_fail_at(err, STK_E_LIMIT, (stki_place){l->file->path, -1, -1, NULL, NULL}, "more than %d groups",
                            MAX_GROUPS);
    return push(&l->groups, stki_strdup(name), err);
}

static stk_status list_group(struct listing *l, const char *group, stk_error *err)
{
    struct gather gather = {.group = group, .err = err};
    stki_hdf5_guard guard;
    stki_hdf5_follow follow;
    stk_status status;

    stki_hdf5_enter(&guard, false);
    status = stki_hdf5_follow_begin(&follow, l->file, err);
    if (!status) {
        status = gather_links(&follow, group, &gather, err);
        stki_hdf5_follow_end(&follow);
    }
    stki_hdf5_leave(&guard);
    for (int64_t i = 0; i < gather.names.count && !status; i++)
        status = visit(l, gather.names.names[i], err);
    names_fini(&gather.names);
    return status;
}

stk_status stki_hdf5_list(stki_hdf5_file *file,
                          stk_status (*found)(void *context, const char *name, const stk_error *trouble,
                                              stk_error *err),
                          void *context, stk_error *err)
{
    struct listing l = {.file = file, .found = found, .context = context};
    struct link root;
    bool fresh;
    stk_status status;

    classify(&l, "/", &root);
    status = root.kind == KIND_GROUP ? remember(&l, &root.key, &fresh, err)
                                     : stki_fail_at(err, STK_E_CORRUPT, (stki_place){file->path, -1, -1, NULL, NULL},
                                                    "the root group cannot be read");
    if (!status)
        status = push(&l.groups, stki_strdup("/"), err);
    while (!status && l.next < l.groups.count)
        status = list_group(&l, l.groups.names[l.next++], err);
    names_fini(&l.groups);
    stki_free(l.seen);
    return status;
}
