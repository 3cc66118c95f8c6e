/* hdf5_path.c: see hdf5_path.h. */
#include "hdf5_path.h"
#include "allocate.h"
#include "error.h"
#include "grow.h"
#include <inttypes.h>
#include <string.h>

enum { MOST_LINKS = 16 /* the limit in libhdf5 */ };

struct walk {
    const char *asked; /* the requested name */
    int links;         /* number of links followed */
    char link[200];    /* describes the last link, for messages */
};

void stki_hdf5_object_close(stki_hdf5_object *object)
{
    stki_hdf5_guard guard;

    if (object->id >= 0) {
        stki_hdf5_enter(&guard, false);
        (void)H5Oclose(object->id);
        stki_hdf5_leave(&guard);
    }
    stki_hdf5_file_release(object->file);
    *object = STKI_HDF5_NO_OBJECT;
}

static stk_status fail_lost(const struct walk *w, const stki_hdf5_object *at, const char *what, stk_error *err)
{
    return stki_fail_at(err, STK_E_NOT_FOUND, (stki_place){at->file->path, -1, -1, NULL, NULL}, "%s: %s%s%s", w->asked,
                        w->link, w->link[0] ? ", where " : "", what);
}

/* Reports an object that exists but cannot be opened. */
static stk_status fail_object(const struct walk *w, const stki_hdf5_object *at, stk_error *err)
{
    stk_error said;
    stk_status status = stki_hdf5_fail(&said, STK_E_CORRUPT, at->file->path, w->asked, "cannot be opened");

    if (status == STK_E_UNSUPPORTED)
        return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){at->file->path, -1, -1, NULL, NULL},
                            "%s cannot be opened: it was written by a version of HDF5 that is newer than libhdf5",
                            w->asked);
    if (err)
        *err = said;
    return status;
}

static stk_status need(const struct walk *w, stki_hdf5_object *object, stk_error *err)
{
    stk_status status;

    if (object->id >= 0)
        return STK_OK;
    status = stki_hdf5_file_need(object->file, err);
    if (status != STK_OK)
        return status;
    stki_apart_note(object->file->path, w->asked, "opening an object", 0);
    object->id = object->header == STKI_HDF5_UNDEFINED ? H5Oopen(object->file->id, "/", H5P_DEFAULT)
                                                       : H5Oopen_by_addr(object->file->id, object->header);
    return object->id < 0 ? fail_object(w, object, err) : STK_OK;
}

stk_status stki_hdf5_object_need(stki_hdf5_object *object, const char *asked, stk_error *err)
{
    const struct walk w = {.asked = asked};

    return need(&w, object, err);
}

static void root_of(stki_hdf5_file *file, stki_hdf5_object *out)
{
    *out = (stki_hdf5_object){stki_hdf5_file_retain(file),
                              stki_hdf5_file_parsed(file) ? file->super.root : STKI_HDF5_UNDEFINED, -1};
}

static stk_status walk_path(struct walk *w, const stki_hdf5_object *from, const char *path, stki_hdf5_object *out,
                            stk_error *err);

static stk_status count_link(struct walk *w, const stki_hdf5_object *at, stk_error *err)
{
    return ++w->links <= MOST_LINKS ? STK_OK : fail_lost(w, at, "the chain exceeds 16 links", err);
}

static stk_status follow_soft(struct walk *w, const stki_hdf5_object *at, const char *name, const char *target,
                              stki_hdf5_object *out, stk_error *err)
{
    char shown[80];
    stk_status status;

    stki_text(w->link, sizeof w->link, "the soft link %.80s points to %s", name,
              stki_text_end(shown, sizeof shown, target));
    status = count_link(w, at, err);
    return status == STK_OK ? walk_path(w, at, target, out, err) : status;
}

static stk_status follow_external(struct walk *w, const stki_hdf5_object *at, const stki_hdf5_link *link,
                                  stki_hdf5_object *out, stk_error *err)
{
    stki_hdf5_object other = STKI_HDF5_NO_OBJECT;
    char shown[60], shown_path[60];
    stk_status status;

    stki_text(w->link, sizeof w->link, "the external link %.40s points to %s in %s", link->name,
              stki_text_end(shown_path, sizeof shown_path, link->path),
              stki_text_end(shown, sizeof shown, link->target));
    status = count_link(w, at, err);
    if (status == STK_OK)
        status = stki_hdf5_file_open_beside(at->file, link->target, &other.file, err);
    if (status == STK_E_NOT_FOUND)
        return fail_lost(w, at, "the file does not exist", err);
    if (status != STK_OK)
        return status;
    status = walk_path(w, &other, link->path, out, err);
    stki_hdf5_object_close(&other);
    return status;
}

static stk_status follow(struct walk *w, stki_hdf5_object *at, const stki_hdf5_link *link, stki_hdf5_object *out,
                         stk_error *err);

/* ---- links through the library (called between enter and leave) ---- */

static stk_status library_link(struct walk *w, stki_hdf5_object *at, const char *name, const H5L_info_t *info,
                               stki_hdf5_object *out, stk_error *err)
{
    const size_t bytes = info->u.val_size;
    stki_hdf5_link link = {.name = name, .kind = STKI_HDF5_SOFT};
    char *value;
    unsigned flags;
    stk_status status = STK_OK;

    if (info->type != H5L_TYPE_SOFT && info->type != H5L_TYPE_EXTERNAL)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){at->file->path, -1, -1, STKI_TEXT("type %d", (int)info->type),
                                         "a hard, soft or external link"},
                            "%s: unsupported type of the link %.100s", w->asked, name);
    value = stki_zalloc((int64_t)bytes + 1);
    if (!value)
        return stki_fail_memory(err, (int64_t)bytes + 1, "a link");
    link.target = value;
    if (H5Lget_val(at->id, name, value, bytes, H5P_DEFAULT) < 0) {
        status = stki_hdf5_fail(err, STK_E_CORRUPT, at->file->path, w->asked, "a link cannot be read");
    } else if (info->type == H5L_TYPE_EXTERNAL) {
        link.kind = STKI_HDF5_EXTERN;
        if (H5Lunpack_elink_val(value, bytes, &flags, &link.target, &link.path) < 0)
            status = stki_hdf5_fail(err, STK_E_CORRUPT, at->file->path, w->asked, "an external link cannot be read");
    }
    if (status == STK_OK)
        status = follow(w, at, &link, out, err);
    stki_free(value);
    return status;
}

static stk_status library_step(struct walk *w, stki_hdf5_object *at, const char *name, stki_hdf5_object *out,
                               stk_error *err)
{
    H5L_info_t info;
    htri_t exists;
    hid_t id;
    stk_status status = need(w, at, err);

    if (status != STK_OK)
        return status;
    stki_apart_note(at->file->path, w->asked, "following a link", 0);
    if (H5Iget_type(at->id) != H5I_GROUP)
        return fail_lost(w, at, "the parent is not a group", err);
    exists = H5Lexists(at->id, name, H5P_DEFAULT);
    if (exists == 0)
        return fail_lost(w, at, "there is no object with this name", err);
    if (exists < 0 || H5Lget_info(at->id, name, &info, H5P_DEFAULT) < 0)
        return fail_object(w, at, err);
    if (info.type != H5L_TYPE_HARD)
        return library_link(w, at, name, &info, out, err);
    id = H5Oopen(at->id, name, H5P_DEFAULT);
    if (id < 0)
        return fail_object(w, at, err);
    *out = (stki_hdf5_object){stki_hdf5_file_retain(at->file), STKI_HDF5_UNDEFINED, id};
    return STK_OK;
}

/* ---- following ---- */

static stk_status follow(struct walk *w, stki_hdf5_object *at, const stki_hdf5_link *link, stki_hdf5_object *out,
                         stk_error *err)
{
    stki_hdf5_guard guard;
    stk_status status;

    switch (link->kind) {
    case STKI_HDF5_HARD:
        *out = (stki_hdf5_object){stki_hdf5_file_retain(at->file), link->header, -1};
        return STK_OK;
    case STKI_HDF5_SOFT:
        return follow_soft(w, at, link->name, link->target, out, err);
    case STKI_HDF5_EXTERN:
        return follow_external(w, at, link, out, err);
    default:
        stki_hdf5_enter(&guard, at->file->plugins);
        status = library_step(w, at, link->name, out, err);
        stki_hdf5_leave(&guard);
        return status;
    }
}

/* The result of looking up one name. Errors beyond the link are kept separate from errors in the group. */
struct step {
    struct walk *walk;
    stki_hdf5_object *at, *out;
    bool found;
    stk_status status;
    stk_error *err;
};

static stk_status on_step(void *context, const stki_hdf5_link *link, stk_error *err)
{
    struct step *step = context;

    (void)err;
    step->found = true;
    step->status = follow(step->walk, step->at, link, step->out, step->err);
    return STK_END;
}

static stk_status step(struct walk *w, stki_hdf5_object *at, const char *name, stki_hdf5_object *out, stk_error *err)
{
    const stki_hdf5_link by_name = {.name = name, .kind = STKI_HDF5_BY_NAME};
    struct step step = {w, at, out, false, STK_OK, err};
    stk_status status = STK_E_UNSUPPORTED;

    if (at->header != STKI_HDF5_UNDEFINED && stki_hdf5_file_parsed(at->file))
        status = stki_hdf5_links_visit(&at->file->super, at->header, name, on_step, &step, NULL);
    if (step.found)
        return step.status;
    return status == STK_OK ? fail_lost(w, at, "there is no object with this name", err)
                            : follow(w, at, &by_name, out, err);
}

/* Uses the library to open the object at which `path` starts: the root for an absolute path, otherwise `from`, which is
 * opened again to get another ID. */
static stk_status open_again(const struct walk *w, const stki_hdf5_object *from, const char *path,
                             stki_hdf5_object *out, stk_error *err)
{
    stki_hdf5_guard guard;
    stk_status status = STK_OK;

    stki_hdf5_enter(&guard, out->file->plugins);
    if (from->id >= 0 && path[0] != '/') {
        out->id = H5Oopen(from->id, ".", H5P_DEFAULT);
        status = out->id < 0 ? fail_object(w, out, err) : STK_OK;
    } else {
        status = need(w, out, err);
    }
    stki_hdf5_leave(&guard);
    return status;
}

/* `out` must not be `from`, which remains open. */
static stk_status walk_path(struct walk *w, const stki_hdf5_object *from, const char *path, stki_hdf5_object *out,
                            stk_error *err)
{
    char *names = stki_strdup(path), *rest = names;
    stki_hdf5_object at, next;
    stk_status status = names ? STK_OK : stki_fail_memory(err, (int64_t)strlen(path) + 1, "a path");

    if (path[0] == '/' || (from->id < 0 && from->header == STKI_HDF5_UNDEFINED))
        root_of(from->file, &at);
    else
        at = (stki_hdf5_object){stki_hdf5_file_retain(from->file), from->header, -1};
    if (at.header == STKI_HDF5_UNDEFINED && status == STK_OK)
        status = open_again(w, from, path, &at, err);
    for (char *name; status == STK_OK && (name = strsep(&rest, "/")) != NULL;) {
        if (name[0] == '\0' || !strcmp(name, "."))
            continue;
        status = step(w, &at, name, &next, err);
        if (status == STK_OK) {
            stki_hdf5_object_close(&at);
            at = next;
        }
    }
    stki_free(names);
    if (status == STK_OK)
        *out = at;
    else
        stki_hdf5_object_close(&at);
    return status;
}

stk_status stki_hdf5_object_open(stki_hdf5_file *file, const char *name, stki_hdf5_object *out, stk_error *err)
{
    struct walk w = {.asked = name};
    const stki_hdf5_object root = {file, STKI_HDF5_UNDEFINED, -1};

    return walk_path(&w, &root, name, out, err);
}

stk_status stki_hdf5_object_follow(stki_hdf5_object *group, const stki_hdf5_link *link, const char *asked,
                                   stki_hdf5_object *out, stk_error *err)
{
    struct walk w = {.asked = asked};

    return follow(&w, group, link, out, err);
}

/* ---- groups ---- */

static char *copy_text(char **at, const char *text)
{
    char *copy = *at;
    const size_t bytes = strlen(text) + 1;

    memcpy(copy, text, bytes);
    *at += bytes;
    return copy;
}

static stk_status push_link(void *context, const stki_hdf5_link *link, stk_error *err)
{
    stki_hdf5_link_list *list = context;
    const char *target = link->target ? link->target : "", *path = link->path ? link->path : "";
    const int64_t bytes = (int64_t)(strlen(link->name) + strlen(target) + strlen(path)) + 3;
    stki_hdf5_link *one;
    stk_status status =
        stki_grow(&list->links, &list->capacity, list->count + 1, sizeof *list->links, "a list of links", err);
    char *texts = status == STK_OK ? stki_zalloc(bytes) : NULL;

    if (status != STK_OK)
        return status;
    if (!texts)
        return stki_fail_memory(err, bytes, "a list of links");
    one = &list->links[list->count++];
    *one = *link;
    one->name = copy_text(&texts, link->name);
    one->target = copy_text(&texts, target);
    one->path = copy_text(&texts, path);
    return STK_OK;
}

void stki_hdf5_link_list_fini(stki_hdf5_link_list *list)
{
    for (int64_t i = 0; i < list->count; i++)
        stki_free((char *)(uintptr_t)list->links[i].name);
    stki_free(list->links);
    *list = (stki_hdf5_link_list){0};
}

struct gather {
    stki_hdf5_link_list *list;
    stk_status status;
    stk_error *err;
};

static herr_t on_link(hid_t group, const char *name, const H5L_info_t *info, void *context)
{
    const stki_hdf5_link link = {.name = name, .kind = STKI_HDF5_BY_NAME};
    struct gather *gather = context;

    (void)group, (void)info;
    gather->status = push_link(gather->list, &link, gather->err);
    return gather->status != STK_OK ? -1 : 0;
}

static stk_status library_links(stki_hdf5_object *group, const char *asked, stki_hdf5_link_list *out, stk_error *err)
{
    struct gather gather = {out, STK_OK, err};
    stk_status status = stki_hdf5_object_need(group, asked, err);
    herr_t done;

    if (status != STK_OK)
        return status;
    stki_apart_note(group->file->path, asked, "listing a group", 0);
    done = H5Literate(group->id, H5_INDEX_NAME, H5_ITER_INC, NULL, on_link, &gather);
    if (gather.status != STK_OK)
        return gather.status;
    return done < 0 ? stki_hdf5_fail(err, STK_E_CORRUPT, group->file->path, asked, "a group cannot be listed") : STK_OK;
}

stk_status stki_hdf5_object_links(stki_hdf5_object *group, const char *asked, stki_hdf5_link_list *out, stk_error *err)
{
    stki_hdf5_guard guard;
    stk_status status = STK_E_UNSUPPORTED;

    *out = (stki_hdf5_link_list){0};
    if (group->header != STKI_HDF5_UNDEFINED && stki_hdf5_file_parsed(group->file))
        status = stki_hdf5_links_visit(&group->file->super, group->header, NULL, push_link, out, err);
    if (status == STK_OK || status == STK_E_MEMORY)
        return status;
    stki_hdf5_link_list_fini(out);
    stki_hdf5_enter(&guard, group->file->plugins);
    status = library_links(group, asked, out, err);
    stki_hdf5_leave(&guard);
    return status;
}

/* ---- type of an object ---- */

static stk_status library_key(stki_hdf5_object *object, const char *asked, enum stki_hdf5_kind *kind, uint64_t *header,
                              stk_error *err)
{
    stk_status status = stki_hdf5_object_need(object, asked, err);
    H5O_type_t type;
    bool fine;
#if H5_VERSION_GE(1, 12, 0)
    H5O_info2_t info;
    haddr_t address = HADDR_UNDEF;

    if (status != STK_OK)
        return status;
    fine = H5Oget_info3(object->id, &info, H5O_INFO_BASIC) >= 0 &&
           H5VLnative_token_to_addr(object->id, info.token, &address) >= 0;
#else
    H5O_info_t info;
    haddr_t address;

    if (status != STK_OK)
        return status;
    fine = H5Oget_info2(object->id, &info, H5O_INFO_BASIC) >= 0;
    address = info.addr;
#endif
    type = info.type;
    if (!fine)
        return stki_hdf5_fail(err, STK_E_CORRUPT, object->file->path, asked,
                              "the type of the object cannot be determined");
    *kind = type == H5O_TYPE_DATASET ? STKI_HDF5_IS_DATASET
            : type == H5O_TYPE_GROUP ? STKI_HDF5_IS_GROUP
                                     : STKI_HDF5_IS_OTHER;
    *header = address;
    return STK_OK;
}

static bool parse_kind(const stki_hdf5_object *object, enum stki_hdf5_kind *kind)
{
    stki_hdf5_header header;
    bool known;

    if (object->header == STKI_HDF5_UNDEFINED || !stki_hdf5_file_parsed(object->file) ||
        stki_hdf5_header_read(&object->file->super, object->header, &header, NULL) != STK_OK)
        return false;
    known = stki_hdf5_header_kind(&object->file->super, &header, kind, NULL) == STK_OK;
    stki_hdf5_header_fini(&header);
    return known;
}

stk_status stki_hdf5_object_key(stki_hdf5_object *object, const char *asked, enum stki_hdf5_kind *kind,
                                stki_hdf5_key *out, stk_error *err)
{
    stki_hdf5_guard guard;
    stk_status status = STK_OK;

    *out = (stki_hdf5_key){(uint64_t)object->file->device, (uint64_t)object->file->inode, object->header};
    if (parse_kind(object, kind))
        return STK_OK;
    stki_hdf5_enter(&guard, object->file->plugins);
    status = library_key(object, asked, kind, &out->header, err);
    stki_hdf5_leave(&guard);
    return status;
}
