/* hdf5_path.c: see hdf5_path.h. */
#include "hdf5_path.h"
#include "allocate.h"
#include "error.h"
#include <inttypes.h>
#include <string.h>

enum { MOST_LINKS = 16 /* as many as libhdf5 follows */ };

struct walk {
    const char *asked; /* the name that was asked for */
    int links;         /* followed */
    char link[200];    /* the last one, for messages */
};

static void object_of(stki_hdf5_file *file, hid_t id, stki_hdf5_object *out)
{
    *out = (stki_hdf5_object){stki_hdf5_file_retain(file), id};
}

void stki_hdf5_object_close(stki_hdf5_object *object)
{
    if (object->id >= 0)
        (void)H5Oclose(object->id);
    stki_hdf5_file_release(object->file);
    *object = (stki_hdf5_object){NULL, -1};
}

static stk_status fail_lost(const struct walk *w, const stki_hdf5_object *at, const char *what, stk_error *err)
{
    return stki_fail_at(err, STK_E_NOT_FOUND, (stki_place){at->file->path, -1, -1, NULL, NULL}, "%s: %s%s%s", w->asked,
                        w->link, w->link[0] ? ", where " : "", what);
}

/* An object that is there and cannot be opened. */
static stk_status fail_object(const struct walk *w, const stki_hdf5_object *at, stk_error *err)
{
    stk_error said;
    stk_status status = stki_hdf5_fail(&said, STK_E_CORRUPT, at->file->path, w->asked, "cannot be opened");

    if (status == STK_E_UNSUPPORTED)
        return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){at->file->path, -1, -1, NULL, NULL},
                            "%s: cannot be opened: written by a newer HDF5 than the library here", w->asked);
    if (err)
        *err = said;
    return status;
}

static stk_status walk_path(struct walk *w, const stki_hdf5_object *from, const char *path, stki_hdf5_object *out,
                            stk_error *err);

static stk_status count_link(struct walk *w, const stki_hdf5_object *at, stk_error *err)
{
    return ++w->links <= MOST_LINKS ? STK_OK : fail_lost(w, at, "more than 16 links follow each other", err);
}

static stk_status follow_soft(struct walk *w, const stki_hdf5_object *at, const char *name, const char *target,
                              stki_hdf5_object *out, stk_error *err)
{
    char shown[80];
    stk_status status;

    stki_text(w->link, sizeof w->link, "the soft link %.80s leads to %s", name,
              stki_text_end(shown, sizeof shown, target));
    status = count_link(w, at, err);
    return status == STK_OK ? walk_path(w, at, target, out, err) : status;
}

static stk_status follow_external(struct walk *w, const stki_hdf5_object *at, const char *name, const char *value,
                                  size_t bytes, stki_hdf5_object *out, stk_error *err)
{
    const char *file = NULL, *path = NULL;
    unsigned flags;
    stki_hdf5_object other = {NULL, -1};
    char shown[60], shown_path[60];
    stk_status status;

    if (H5Lunpack_elink_val(value, bytes, &flags, &file, &path) < 0)
        return stki_hdf5_fail(err, STK_E_CORRUPT, at->file->path, w->asked, "an external link cannot be read");
    stki_text(w->link, sizeof w->link, "the external link %.40s leads to %s of %s", name,
              stki_text_end(shown_path, sizeof shown_path, path), stki_text_end(shown, sizeof shown, file));
    status = count_link(w, at, err);
    if (status == STK_OK)
        status = stki_hdf5_file_open_beside(at->file, file, &other.file, err);
    if (status != STK_OK)
        return status;
    other.id = H5Oopen(other.file->id, "/", H5P_DEFAULT);
    status = other.id < 0 ? fail_object(w, &other, err) : walk_path(w, &other, path, out, err);
    stki_hdf5_object_close(&other);
    return status;
}

static stk_status follow_link(struct walk *w, const stki_hdf5_object *at, const char *name, const H5L_info_t *info,
                              stki_hdf5_object *out, stk_error *err)
{
    const size_t bytes = info->u.val_size;
    char *value;
    stk_status status;

    if (info->type != H5L_TYPE_SOFT && info->type != H5L_TYPE_EXTERNAL)
        return stki_fail_at(
            err, STK_E_UNSUPPORTED,
            (stki_place){at->file->path, -1, -1, STKI_TEXT("type %d", (int)info->type), "a hard, soft or external one"},
            "%s: the link %.100s", w->asked, name);
    value = stki_zalloc((int64_t)bytes + 1);
    if (!value)
        return stki_fail_memory(err, (int64_t)bytes + 1, "a link");
    if (H5Lget_val(at->id, name, value, bytes, H5P_DEFAULT) < 0)
        status = stki_hdf5_fail(err, STK_E_CORRUPT, at->file->path, w->asked, "a link cannot be read");
    else
        status = info->type == H5L_TYPE_SOFT ? follow_soft(w, at, name, value, out, err)
                                             : follow_external(w, at, name, value, bytes, out, err);
    stki_free(value);
    return status;
}

static stk_status step(struct walk *w, const stki_hdf5_object *at, const char *name, stki_hdf5_object *out,
                       stk_error *err)
{
    H5L_info_t info;
    htri_t exists;
    hid_t id;

    if (H5Iget_type(at->id) != H5I_GROUP)
        return fail_lost(w, at, "nothing is below what is no group", err);
    exists = H5Lexists(at->id, name, H5P_DEFAULT);
    if (exists == 0)
        return fail_lost(w, at, "there is no object of this name", err);
    if (exists < 0 || H5Lget_info(at->id, name, &info, H5P_DEFAULT) < 0)
        return fail_object(w, at, err);
    if (info.type != H5L_TYPE_HARD)
        return follow_link(w, at, name, &info, out, err);
    id = H5Oopen(at->id, name, H5P_DEFAULT);
    if (id < 0)
        return fail_object(w, at, err);
    object_of(at->file, id, out);
    return STK_OK;
}

/* `out` is apart from `from`, which stays open. */
static stk_status walk_path(struct walk *w, const stki_hdf5_object *from, const char *path, stki_hdf5_object *out,
                            stk_error *err)
{
    char *names = stki_strdup(path), *rest = names;
    stki_hdf5_object at = {NULL, -1}, next;
    stk_status status = names ? STK_OK : stki_fail_memory(err, (int64_t)strlen(path) + 1, "a path");
    hid_t id = status != STK_OK ? -1
               : path[0] == '/' ? H5Oopen(from->file->id, "/", H5P_DEFAULT)
                                : H5Oopen(from->id, ".", H5P_DEFAULT);

    if (status == STK_OK && id < 0)
        status = fail_object(w, from, err);
    if (id >= 0)
        object_of(from->file, id, &at);
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
    stki_hdf5_object root = {file, H5Oopen(file->id, "/", H5P_DEFAULT)};
    stk_status status;

    if (root.id < 0)
        return fail_object(&w, &root, err);
    status = walk_path(&w, &root, name, out, err);
    (void)H5Oclose(root.id);
    return status;
}

stk_status stki_hdf5_object_step(const stki_hdf5_object *group, const char *name, const char *asked,
                                 stki_hdf5_object *out, stk_error *err)
{
    struct walk w = {.asked = asked};

    return step(&w, group, name, out, err);
}

bool stki_hdf5_object_key(const stki_hdf5_object *object, H5O_type_t *type, stki_hdf5_key *out)
{
#if H5_VERSION_GE(1, 12, 0)
    H5O_info2_t info;
    haddr_t address = HADDR_UNDEF;

    if (H5Oget_info3(object->id, &info, H5O_INFO_BASIC) < 0 ||
        H5VLnative_token_to_addr(object->id, info.token, &address) < 0)
        return false;
#else
    H5O_info_t info;
    haddr_t address;

    if (H5Oget_info2(object->id, &info, H5O_INFO_BASIC) < 0)
        return false;
    address = info.addr;
#endif
    *type = info.type;
    *out = (stki_hdf5_key){(uint64_t)object->file->device, (uint64_t)object->file->inode, address};
    return true;
}
