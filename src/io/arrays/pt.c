/* pt.c: see pt.h. All members of the archive are in one folder:
 *
 *     ROOT/data.pkl      the saved object as a pickle: its tensors and plain values (pt_pickle.h)
 *     ROOT/data/0 …      storages: raw bytes, each viewed by one or more tensors
 *     ROOT/byteorder     "little" or "big"; files without it are little-endian
 *     and others that do not affect the data
 *
 * The pickle is read at open. Tensors become members named by their paths; other values become members that are only
 * listed. Files of torch before 1.6 have the same content without an archive (pt_legacy.h).
 *
 * A tensor is a strided view of its storage's bytes in the file; deflated storages are unpacked into memory. A tensor
 * that cannot be read does not affect the others.
 */
#include "pt.h"
#include "allocate.h"
#include "error.h"
#include "pt_legacy.h"
#include "pt_tensor.h"
#include "source_common.h"
#include "text_json.h"
#include "zip.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct placed {
    const stki_zip_entry *entry; /* the storage; NULL: not a tensor */
    int64_t offset, data_bytes;  /* offset in the storage; size of all elements, counting repeated ones */
};

struct pt {
    stki_container base; /* first member */
    stki_file *file;
    stki_zip zip;
    const stki_zip_entry **by_name; /* the archive's members, sorted */
    const char *root;
    int root_bytes;
    bool big_endian;
    bool legacy;           /* the file is not an archive: `zip` lists the storages like members */
    struct placed *placed; /* one per member of the container */
};

static const struct pt *pt_of(const stki_container *base)
{
    return (const struct pt *)(const void *)base;
}

/* ---- recognizing the file ---- */

/* Whether the part after the root folder is the name of one of torch's own members. */
static bool is_torch_name(const char *name, int64_t length)
{
    static const char *const known[] = {"data.pkl", "version", "byteorder", ".format_version", ".storage_alignment"};
    const char *slash = memchr(name, '/', (size_t)length);
    int64_t rest = slash ? length - (slash - name) - 1 : 0;

    if (!slash)
        return false;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (rest == (int64_t)strlen(known[i]) && !memcmp(slash + 1, known[i], (size_t)rest))
            return true;
    return rest > 5 && !memcmp(slash + 1, "data/", 5) && slash[6] >= '0' && slash[6] <= '9';
}

bool stki_pt_matches(const char *head, int64_t length)
{
    int64_t name;

    if (stki_pt_is_legacy(head, length))
        return true;
    if (length < 30 || memcmp(head, "PK\3\4", 4) != 0)
        return false;
    name = (unsigned char)head[26] | (unsigned char)head[27] << 8;
    return 30 + name <= length && is_torch_name(head + 30, name);
}

static stk_status fail(const struct pt *pt, stk_status status, const char *what, const char *found,
                       const char *expected, stk_error *err)
{
    return stki_fail_at(err, status, (stki_place){pt->base.path, -1, -1, found, expected}, "%s", what);
}

/* Rejects older torch formats and other kinds of files that are named .pt. */
static stk_status refuse_others(struct pt *pt, stk_error *err)
{
    char head[263] = "";
    int64_t length = pt->file->size < (int64_t)sizeof head ? pt->file->size : (int64_t)sizeof head;
    stk_status status = stki_file_read(pt->file, 0, head, length, err);

    if (status != STK_OK)
        return status;
    pt->legacy = stki_pt_is_legacy(head, length);
    if (pt->legacy)
        return STK_OK;
    if (length >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5)
        return fail(pt, STK_E_UNSUPPORTED, "not an archive written by torch.save", "a bare pickle", "a zip archive",
                    err);
    if (length == (int64_t)sizeof head && !memcmp(head + 257, "ustar", 5))
        return fail(
            pt, STK_E_UNSUPPORTED,
            "the tar format of torch before 0.1.10 is not supported: load the file with torch and save it again", NULL,
            NULL, err);
    return STK_OK;
}

/* ---- members of the archive ---- */

static int by_name(const void *a, const void *b)
{
    const stki_zip_entry *x = *(const stki_zip_entry *const *)a, *y = *(const stki_zip_entry *const *)b;
    int order = strcmp(x->name, y->name);

    return order ? order : (x > y) - (x < y);
}

static stk_status sort_entries(struct pt *pt, stk_error *err)
{
    pt->by_name = stki_zalloc_array(pt->zip.count, sizeof(stki_zip_entry *));
    if (!pt->by_name)
        return stki_fail_memory(err, pt->zip.count * (int64_t)sizeof(stki_zip_entry *), pt->base.path);
    for (int64_t i = 0; i < pt->zip.count; i++)
        pt->by_name[i] = &pt->zip.entries[i];
    qsort(pt->by_name, (size_t)pt->zip.count, sizeof(stki_zip_entry *), by_name);
    return STK_OK;
}

/* Finds ROOT/NAME (the last one if there are several); NULL: there is none. */
static const stki_zip_entry *entry_named(const struct pt *pt, const char *folder, const char *name, int name_bytes)
{
    char wanted[1024];
    int64_t low = 0, high = pt->zip.count;
    int length = snprintf(wanted, sizeof wanted, "%.*s/%s%.*s", pt->root_bytes, pt->root, folder, name_bytes, name);

    if (length < 0 || length >= (int)sizeof wanted)
        return NULL;
    while (low < high) { /* upper bound */
        int64_t middle = low + (high - low) / 2;

        if (strcmp(pt->by_name[middle]->name, wanted) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && !strcmp(pt->by_name[low - 1]->name, wanted) ? pt->by_name[low - 1] : NULL;
}

static stk_status find_root(struct pt *pt, stk_error *err)
{
    for (int64_t i = 0; i < pt->zip.count; i++) {
        const char *name = pt->zip.entries[i].name, *slash = strchr(name, '/');

        if (!slash || strcmp(slash, "/data.pkl") != 0)
            continue;
        if (pt->root && (pt->root_bytes != (int)(slash - name) || memcmp(pt->root, name, (size_t)pt->root_bytes) != 0))
            return fail(pt, STK_E_CORRUPT, "the archive has two folders with a data.pkl", name, "one", err);
        pt->root = name;
        pt->root_bytes = (int)(slash - name);
    }
    if (!pt->root || pt->root_bytes > 800)
        return fail(pt, STK_E_CORRUPT, "not a file written by torch.save",
                    "an archive without a data.pkl in its folder", NULL, err);
    return STK_OK;
}

static stk_status refuse_script(const struct pt *pt, stk_error *err)
{
    char code[1024];
    int length = snprintf(code, sizeof code, "%.*s/code/", pt->root_bytes, pt->root);

    if (!entry_named(pt, "", "constants.pkl", 13))
        return STK_OK;
    for (int64_t i = 0; i < pt->zip.count; i++)
        if (!strncmp(pt->zip.entries[i].name, code, (size_t)length))
            return fail(pt, STK_E_UNSUPPORTED,
                        "TorchScript archives are not supported: save the module's state_dict instead", NULL, NULL,
                        err);
    return STK_OK;
}

static stk_status read_byteorder(struct pt *pt, stk_error *err)
{
    const stki_zip_entry *entry = entry_named(pt, "", "byteorder", 9);
    char text[8] = "";
    int64_t offset, got = 0;
    stk_status status;

    if (!entry)
        return STK_OK;
    status = stki_zip_locate(&pt->zip, entry, &offset, err);
    if (status == STK_OK)
        status = stki_zip_head(&pt->zip, entry, offset, text, 7, &got, err);
    if (status != STK_OK)
        return status;
    pt->big_endian = !strcmp(text, "big");
    if (pt->big_endian || !strcmp(text, "little"))
        return STK_OK;
    return fail(pt, STK_E_CORRUPT, "invalid byte order", text, "little or big", err);
}

/* ---- tensors ---- */

static stk_status locate(const struct pt *pt, const stki_zip_entry *entry, int64_t *offset, stk_error *err)
{
    if (!pt->legacy)
        return stki_zip_locate(&pt->zip, entry, offset, err);
    *offset = entry->header;
    return STK_OK;
}

/* Locates the storage, whose size must be exactly the size given in the pickle. */
static stk_status place(const struct pt *pt, const stki_pt_tensor *t, const char *label, const stki_zip_entry **entry,
                        int64_t *offset, stk_error *err)
{
    stk_status status;

    *entry = entry_named(pt, "data/", t->key, t->key_bytes);
    if (!*entry)
        return stki_fail_at(err, STK_E_CORRUPT, (stki_place){label, -1, -1, NULL, NULL},
                            "the archive has no storage data/%.*s", t->key_bytes, t->key);
    status = locate(pt, *entry, offset, err);
    if (status != STK_OK || (*entry)->size == t->storage_bytes)
        return status;
    return stki_zip_fail(&pt->zip, *entry, STK_E_CORRUPT, *offset, "the storage has the wrong size",
                         STKI_TEXT("%" PRId64 " bytes", (*entry)->size), STKI_TEXT("%" PRId64, t->storage_bytes), err);
}

static bool is_dense(const stki_pt_tensor *t, bool fortran)
{
    int64_t step = stk_dtype_size(t->dtype);

    for (int k = 0; k < t->ndim; k++) {
        int i = fortran ? k : t->ndim - 1 - k;

        if (t->shape[i] > 1 && t->strides[i] != step)
            return false;
        step *= t->shape[i] > 0 ? t->shape[i] : 1; /* cannot overflow, because the whole product was checked */
    }
    return true;
}

static stk_status add_tensor(struct pt *pt, const char *path, const stki_pt_tensor *t, const stki_zip_entry *entry,
                             int64_t offset, stk_error *err)
{
    stki_member *member;
    stk_status status = stki_container_add(&pt->base, path, t->ndim, t->shape, &member, err);

    if (status != STK_OK)
        return status;
    pt->placed[pt->base.member_count - 1] = (struct placed){entry, t->offset, t->data_bytes};
    member->dtype = t->dtype;
    member->swapped = pt->big_endian && stk_dtype_size(t->dtype) > 1;
    member->details =
        json_pack("{s:o, s:o, s:I}", "storage", stki_text_json_n(t->key, t->key_bytes), "location",
                  stki_text_json_n(t->location, t->location_bytes), "storage_bytes", (json_int_t)t->storage_bytes);
    member->layout = entry->method == STKI_ZIP_DEFLATED ? "deflated"
                     : is_dense(t, false)               ? "contiguous"
                     : is_dense(t, true)                ? "fortran"
                                                        : "strided";
    if (entry->method == STKI_ZIP_STORED)
        member->offset = offset + t->offset;
    return stki_member_set_strides(member, t->strides, err);
}

/* ---- other values ---- */

static json_t *json_of_float(double x)
{
    return isnan(x) ? json_string("nan") : isinf(x) ? json_string(x < 0 ? "-inf" : "inf") : json_real(x);
}

static json_t *json_of_sizes(const stki_pt_pickle *pickle, const stki_pt_value *value)
{
    json_t *list = json_array();

    for (int32_t i = 0; i < stki_pt_item_count(pickle, value); i++)
        (void)json_array_append_new(list, json_integer(stki_pt_item(pickle, value, i)->integer));
    return list;
}

static json_t *describe_value(const stki_pt_pickle *pickle, const stki_pt_value *value)
{
    switch (value->kind) {
    case STKI_PT_NONE:
        return json_pack("{s:s, s:n}", "py", "NoneType", "value");
    case STKI_PT_BOOL:
        return json_pack("{s:s, s:b}", "py", "bool", "value", (int)value->integer);
    case STKI_PT_INT:
        return json_pack("{s:s, s:I}", "py", "int", "value", (json_int_t)value->integer);
    case STKI_PT_FLOAT:
        return json_pack("{s:s, s:o}", "py", "float", "value", json_of_float(value->real));
    case STKI_PT_TEXT:
        return json_pack("{s:s, s:o}", "py", "str", "value", stki_text_json_n(value->text, value->length));
    case STKI_PT_BYTES:
        return json_pack("{s:s}", "py", "bytes");
    case STKI_PT_LONG:
        return json_pack("{s:s}", "py", "int");
    case STKI_PT_TORCH_SIZE:
        return json_pack("{s:s, s:o}", "py", "torch.Size", "value", json_of_sizes(pickle, value));
    case STKI_PT_GLOBAL:
    case STKI_PT_OTHER:
        return json_pack("{s:s, s:s}", "py", value->global->role == STKI_PT_DTYPE ? "torch.dtype" : "object", "value",
                         value->global->name);
    default:
        return NULL;
    }
}

/* Whether the value is data of an unsupported kind rather than a plain value. */
static bool is_missed(const stki_pt_value *value)
{
    return value->kind == STKI_PT_STORED || value->kind == STKI_PT_LONG ||
           (value->kind == STKI_PT_OTHER && value->global->role == STKI_PT_UNSUPPORTED);
}

static stk_status add_value(struct pt *pt, const stki_pt_pickle *pickle, const stki_pt_leaf *leaf, stk_error *err)
{
    const stki_pt_value *value = &pickle->values[leaf->value];
    stki_member *member;
    stk_error why;
    stk_status status = stki_container_add(&pt->base, leaf->path, 0, NULL, &member, err);

    if (status != STK_OK)
        return status;
    member->kind = STKI_MEMBER_OTHER;
    member->details = describe_value(pickle, value);
    if (!is_missed(value))
        return STK_OK;
    (void)stki_fail_at(&why, STK_E_UNSUPPORTED, (stki_place){pt->base.path, -1, -1, NULL, NULL},
                       "%.100s: %s%s%s is not supported", leaf->path, value->global ? value->global->module : "",
                       value->global ? "." : "",
                       value->global                 ? value->global->name
                       : value->kind == STKI_PT_LONG ? "an integer of more than 64 bits"
                                                     : "a bare storage");
    stki_member_refuse(member, &why);
    return STK_OK;
}

static stk_status refuse_tensor(struct pt *pt, const char *path, const stk_error *why, stk_error *err)
{
    stki_member *member;
    stk_status status = stki_container_add(&pt->base, path, 0, NULL, &member, err);

    if (status == STK_OK)
        stki_member_refuse(member, why);
    return status;
}

static stk_status add_leaf(struct pt *pt, const stki_pt_pickle *pickle, const stki_pt_leaf *leaf, stk_error *err)
{
    const stki_pt_value *value = &pickle->values[leaf->value];
    const stki_zip_entry *entry = NULL;
    stki_pt_tensor tensor;
    int64_t offset = 0;
    stk_error why;
    stk_status status;
    char *label;

    if (value->kind != STKI_PT_TENSOR)
        return add_value(pt, pickle, leaf, err);
    label = stki_format("%s: %.100s", pt->base.path, *leaf->path ? leaf->path : "the tensor");
    if (!label)
        return stki_fail_memory(err, (int64_t)strlen(pt->base.path) + 110, pt->base.path);
    status = stki_pt_tensor_of(pickle, value, label, &tensor, &why);
    if (status == STK_OK)
        status = place(pt, &tensor, label, &entry, &offset, &why);
    stki_free(label);
    if (status == STK_E_MEMORY || status == STK_E_IO) { /* the failure is unrelated to the tensor */
        if (err)
            *err = why;
        return status;
    }
    return status != STK_OK ? refuse_tensor(pt, leaf->path, &why, err)
                            : add_tensor(pt, leaf->path, &tensor, entry, offset, err);
}

/* ---- list of members ---- */

static int by_path(const void *a, const void *b)
{
    const stki_pt_leaf *x = *(const stki_pt_leaf *const *)a, *y = *(const stki_pt_leaf *const *)b;
    int order = strcmp(x->path, y->path);

    return order ? order : (x > y) - (x < y);
}

/* A dict may contain the same key twice, or both a number and the same number as text. The last one wins, and the
 * others are dropped. */
static stk_status drop_repeated(struct pt *pt, stki_pt_leaves *leaves, stk_error *err)
{
    stki_pt_leaf **sorted = stki_zalloc_array(leaves->count, sizeof(stki_pt_leaf *));

    if (!sorted)
        return stki_fail_memory(err, leaves->count * (int64_t)sizeof(stki_pt_leaf *), pt->base.path);
    for (int64_t i = 0; i < leaves->count; i++)
        sorted[i] = &leaves->leaves[i];
    qsort(sorted, (size_t)leaves->count, sizeof(stki_pt_leaf *), by_path);
    for (int64_t i = 0; i + 1 < leaves->count; i++) {
        if (strcmp(sorted[i]->path, sorted[i + 1]->path) != 0)
            continue;
        stki_container_warn(&pt->base, "%s: two values are named %.100s: the last one wins", pt->base.path,
                            sorted[i]->path);
        sorted[i]->value = -1;
    }
    stki_free(sorted);
    return STK_OK;
}

static stk_status list_members(struct pt *pt, const stki_pt_pickle *pickle, int64_t pickle_bytes, const char *label,
                               stk_error *err)
{
    stki_pt_leaves leaves;
    stk_status status = stki_pt_walk(pickle, pickle_bytes, label, &leaves, err);

    if (status != STK_OK)
        return status;
    pt->placed = stki_zalloc_array(leaves.count, sizeof *pt->placed);
    if (!pt->placed && leaves.count)
        status = stki_fail_memory(err, leaves.count * (int64_t)sizeof *pt->placed, pt->base.path);
    if (status == STK_OK)
        status = drop_repeated(pt, &leaves, err);
    for (int64_t i = 0; i < leaves.count && status == STK_OK; i++)
        if (leaves.leaves[i].value >= 0)
            status = add_leaf(pt, pickle, &leaves.leaves[i], err);
    stki_pt_leaves_free(&leaves);
    return status;
}

static stk_status read_pickle(struct pt *pt, const stki_zip_entry *entry, const void *bytes, stk_error *err)
{
    char *label = stki_format("%s: member %.100s", pt->base.path, entry->name);
    stki_pt_pickle pickle;
    stk_status status;

    if (!label)
        return stki_fail_memory(err, (int64_t)strlen(pt->base.path) + 110, pt->base.path);
    status = stki_pt_unpickle(bytes, entry->size, label, &pickle, err);
    if (status == STK_OK) {
        status = list_members(pt, &pickle, entry->size, label, err);
        stki_pt_pickle_free(&pickle);
    }
    stki_free(label);
    return status;
}

static int64_t pickle_limit(const stki_reader_opts *opts)
{
    return stki_header_limit(opts) > STKI_PT_PICKLE_LIMIT ? stki_header_limit(opts) : STKI_PT_PICKLE_LIMIT;
}

static stk_status load_pickle(struct pt *pt, const stki_reader_opts *opts, stk_error *err)
{
    const stki_zip_entry *entry = entry_named(pt, "", "data.pkl", 8);
    int64_t limit = pickle_limit(opts), offset;
    void *bytes;
    stk_status status = stki_zip_locate(&pt->zip, entry, &offset, err);

    if (status != STK_OK)
        return status;
    if (entry->size > limit)
        return stki_zip_fail(&pt->zip, entry, STK_E_LIMIT, offset, "the pickle is too long",
                             STKI_TEXT("%" PRId64 " bytes", entry->size),
                             STKI_TEXT("at most %" PRId64 " (header_limit)", limit), err);
    bytes = stki_resize(NULL, entry->size + 1); /* + 1, because the size must not be 0 */
    if (!bytes)
        return stki_fail_memory(err, entry->size, "a pickle");
    status = stki_zip_read(&pt->zip, entry, offset, bytes, err);
    if (status == STK_OK)
        status = read_pickle(pt, entry, bytes, err);
    stki_free(bytes);
    return status;
}

/* ---- reading ---- */

static stk_status unpack(const struct pt *pt, const struct placed *placed, int64_t offset, int64_t limit,
                         stki_array *out, stk_error *err)
{
    stk_status status;

    if (placed->entry->size > limit)
        return stki_zip_fail(&pt->zip, placed->entry, STK_E_LIMIT, -1,
                             "the storage is too large to be decompressed into memory",
                             STKI_TEXT("%" PRId64 " bytes", placed->entry->size),
                             STKI_TEXT("at most %" PRId64 " (memory_limit)", limit), err);
    status = stk_storage_create(NULL, placed->entry->size, &out->memory, err);
    if (status == STK_OK)
        status = stki_zip_read(&pt->zip, placed->entry, offset, stk_storage_data(out->memory), err);
    if (status != STK_OK)
        stk_storage_release(out->memory);
    return status;
}

/* With strides of 0, a few bytes can describe a tensor of any size, so the size is limited. */
static stk_status check_repeated(const struct pt *pt, const stki_member *member, const struct placed *placed,
                                 int64_t limit, stk_error *err)
{
    if (placed->data_bytes <= placed->entry->size || placed->data_bytes <= limit)
        return STK_OK;
    return stki_fail_at(err, STK_E_LIMIT,
                        (stki_place){pt->base.path, -1, member->offset,
                                     STKI_TEXT("%" PRId64 " bytes", placed->data_bytes),
                                     STKI_TEXT("at most %" PRId64 " (memory_limit)", limit)},
                        "%.100s: too many repeated elements", *member->name ? member->name : "the tensor");
}

static stk_status pt_array(const stki_container *container, int64_t number, const stki_reader_opts *opts,
                           stki_array *out, stk_error *err)
{
    const struct pt *pt = pt_of(container);
    const struct placed *placed = &pt->placed[number];
    const stki_member *member = &container->members[number];
    stki_array array = {.dtype = member->dtype, .swapped = member->swapped, .ndim = member->ndim};
    int64_t limit = stki_memory_limit(opts), offset;
    stk_status status = check_repeated(pt, member, placed, limit, err);

    if (status == STK_OK)
        status = locate(pt, placed->entry, &offset, err);
    if (status != STK_OK)
        return status;
    memcpy(array.shape, member->shape, sizeof *member->shape * (size_t)member->ndim);
    memcpy(array.strides, member->strides, sizeof *member->strides * (size_t)member->ndim);
    array.offset = placed->offset;
    if (placed->entry->method == STKI_ZIP_DEFLATED) {
        status = unpack(pt, placed, offset, limit, &array, err);
    } else {
        status = opts->verify && !pt->legacy ? stki_zip_check(&pt->zip, placed->entry, offset, err) : STK_OK;
        array.offset += offset;
        array.file = status != STK_OK ? NULL : stki_file_retain(pt->file);
    }
    if (status == STK_OK)
        *out = array;
    return status;
}

static stk_status pt_reader(const stki_container *container, int64_t number, const stki_reader_opts *opts,
                            stki_reader **out, stk_error *err)
{
    stki_array array;
    stk_status status = stki_container_array(container, number, opts, &array, err);

    if (status != STK_OK)
        return status;
    status = stki_array_reader(&array, "pt", container->path, opts, out, err);
    stki_array_release(&array);
    if (status == STK_OK && pt_of(container)->placed[number].entry->method == STKI_ZIP_DEFLATED)
        (*out)->note = "the storage is deflated, so it was decompressed into memory";
    return status;
}

/* ---- opening ---- */

static void pt_destroy(stki_container *container)
{
    struct pt *pt = (struct pt *)(void *)container;

    stki_zip_close(&pt->zip);
    stki_file_close(pt->file);
    stki_free(pt->by_name);
    stki_free(pt->placed);
    stki_container_free(container);
}

static const stki_container_ops pt_ops = {
    .format = "pt", .array = pt_array, .reader = pt_reader, .destroy = pt_destroy};

static stk_status open_legacy(struct pt *pt, const stki_reader_opts *opts, stk_error *err)
{
    stki_pt_legacy legacy;
    stk_status status = stki_pt_legacy_open(pt->file, pickle_limit(opts), &legacy, &pt->zip, err);

    if (status != STK_OK)
        return status;
    pt->root = STKI_PT_LEGACY_ROOT;
    pt->root_bytes = (int)strlen(pt->root);
    status = sort_entries(pt, err);
    if (status == STK_OK)
        status = list_members(pt, &legacy.pickle, legacy.pickle.bytes, pt->base.path, err);
    stki_pt_legacy_fini(&legacy);
    return status;
}

static stk_status open_archive(struct pt *pt, const stki_reader_opts *opts, stk_error *err)
{
    stk_status status = refuse_others(pt, err);

    if (status == STK_OK && pt->legacy)
        return open_legacy(pt, opts, err);
    if (status == STK_OK)
        status = stki_zip_open(pt->file, stki_header_limit(opts), &pt->zip, err);
    pt->zip.crc_optional = true;
    if (status == STK_OK)
        status = sort_entries(pt, err);
    if (status == STK_OK)
        status = find_root(pt, err);
    if (status == STK_OK)
        status = refuse_script(pt, err);
    if (status == STK_OK)
        status = read_byteorder(pt, err);
    return status != STK_OK ? status : load_pickle(pt, opts, err);
}

stk_status stki_pt_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    struct pt *pt;
    stk_status status = stki_container_create(sizeof *pt, &pt_ops, file->path, &pt, err);

    if (status != STK_OK) {
        stki_file_close(file);
        return status;
    }
    pt->file = file;
    status = open_archive(pt, opts, err);
    if (status != STK_OK)
        stki_container_release(&pt->base);
    else
        *out = &pt->base;
    return status;
}

stk_status stki_pt_container(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    stki_file *file;
    stk_status status = stki_file_open(path, opts->access, opts->pattern, &file, err);

    return status != STK_OK ? status : stki_pt_of_file(file, opts, out, err);
}
