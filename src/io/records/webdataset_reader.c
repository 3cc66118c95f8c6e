/* webdataset_reader.c: the files of one extension as samples: images are decoded, .npy files are arrays, .cls files are
 * integers, all others are bytes. The index contains their locations and lengths, and the size of images in pixels.
 *
 * If all .npy files have the same size, they are assumed to have the shape of the first one, which is checked at each
 * read. Otherwise, all headers are read at open. */
#include "allocate.h"
#include "checked.h"
#include "decode.h"
#include "error.h"
#include "npy_header.h"
#include "source_common.h"
#include "tar.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CLASS_MOST = 64 /* limit of a .cls file */, ADVISE_AT_ONCE = 128, UNIT_BYTES = 4 << 20, HEAD_MOST = 64 << 10 };

/* Size limit of a sparse file if max_bytes is not set: its size is only a number in a header and may far exceed the
 * stored bytes. */
#define SPARSE_MOST (INT64_C(1) << 30)

struct files {
    stki_reader base; /* first member */
    const stki_webdataset *set;
    int extension;
    enum stki_tar_kind kind;
    stki_decode_opts decode;
    stk_dtype alias;
    int64_t max_bytes, header_limit;
    int64_t *units;
};

static const struct files *files_of(const stki_reader *base)
{
    return (const struct files *)(const void *)base;
}

static const char *name_of(const struct files *f)
{
    return f->set->index.extensions[f->extension].name;
}

static int64_t most_bytes(const struct files *f, const stki_tar_entry *entry)
{
    return f->max_bytes > 0 ? f->max_bytes : entry->sparse ? SPARSE_MOST : INT64_MAX;
}

static stk_status find(const struct files *f, int64_t index, const stki_tar_entry **out, stk_error *err)
{
    stk_status status;

    status = stki_reader_check_index(&f->base, index, err);
    if (status != STK_OK)
        return status;
    status = stki_tar_index_find(&f->set->index, f->set->file, index, f->extension, out, err);
    if (status != STK_OK || (f->kind != STKI_TAR_BYTES && !(*out)->sparse) || (*out)->size <= most_bytes(f, *out))
        return status;
    return stki_fail_at(err, STK_E_LIMIT,
                        (stki_place){f->base.path, index, (*out)->offset, STKI_TEXT("%" PRId64 " bytes", (*out)->size),
                                     STKI_TEXT("at most %" PRId64 " (source.max_bytes)", most_bytes(f, *out))},
                        "the .%s file is too long", name_of(f));
}

/* Reads the first `count` bytes of a file. */
static stk_status read_part(const struct files *f, const stki_tar_entry *entry, void *to, int64_t count, stk_error *err)
{
    return stki_tar_index_read(&f->set->index, f->set->file, entry, 0, to, count, err);
}

/* Returns a file's bytes in the mapping, or reads them into the scratch memory. */
static stk_status bytes_of(const struct files *f, int64_t index, const stki_tar_entry *entry, stki_scratch *scratch,
                           const void **out, stk_error *err)
{
    stk_status status;

    *out = stki_tar_index_mapped(f->set->file, entry);
    if (*out)
        return STK_OK;
    status = stki_scratch_reserve(scratch, entry->size > 0 ? entry->size : 1, err);
    if (status == STK_OK)
        status = read_part(f, entry, scratch->data, entry->size, err);
    *out = scratch->data;
    return stki_fail_record(err, status, index);
}

static void set_tensor(const struct files *f, const void *data, stk_tensor *out)
{
    out->data = (void *)(uintptr_t)data;
    out->storage = NULL;
    out->device = NULL;
    out->dtype = f->base.dtype;
    out->ndim = f->base.ndim;
    out->flags = STK_TENSOR_READONLY;
    out->reserved = 0;
}

enum stki_tar_kind stki_tar_kind_read(const char *extension, const stki_decode_opts *decode)
{
    enum stki_tar_kind kind = stki_tar_kind_of(extension);

    return kind == STKI_TAR_IMAGE && decode->none ? STKI_TAR_BYTES : kind;
}

/* ---- images ---- */

static stk_status read_image(const struct files *f, int64_t index, const stki_tar_entry *entry, const stki_want *want,
                             stki_scratch *scratch, stk_tensor *out, stk_error *err)
{
    const void *bytes;
    stki_decoder *decoder;
    void *room;
    stk_status status;

    bytes = stki_tar_index_mapped(f->set->file, entry);
    if (!bytes) {
        status = stki_scratch_decoder(scratch, &decoder, err);
        if (status == STK_OK)
            status = stki_decoder_room(decoder, entry->size > 0 ? entry->size : 1, &room, err);
        if (status == STK_OK)
            status = read_part(f, entry, room, entry->size, err);
        if (status != STK_OK)
            return stki_fail_record(err, status, index);
        bytes = room;
    }
    return stki_image_sample(bytes, entry->size, &f->decode, want, scratch, f->base.path, index, out, err);
}

static bool known_shape(const struct files *f, const stki_tar_entry *entry, int64_t *shape)
{
    bool turned = f->decode.upright && entry->orientation >= 5;

    shape[0] = turned ? entry->width : entry->height;
    shape[1] = turned ? entry->height : entry->width;
    shape[2] = f->base.shape[2];
    return entry->height > 0;
}

/* Reads the shape of an image that is not in the index from the image's header, or reports why that is invalid. */
static stk_status ask_shape(const struct files *f, int64_t index, const stki_tar_entry *entry, int64_t *shape,
                            stk_error *err)
{
    int64_t count = entry->size;
    const void *bytes;
    void *head = NULL;
    stk_status status = STK_OK;

    bytes = stki_tar_index_mapped(f->set->file, entry);
    if (!bytes) {
        count = count < HEAD_MOST ? count : HEAD_MOST;
        bytes = head = stki_zalloc(count + 1);
        status = head ? read_part(f, entry, head, count, err)
                      : stki_fail_memory(err, count + 1, "the beginning of an image");
    }
    if (status == STK_OK)
        status =
            stki_fail_place(err, stki_image_shape(bytes, count, &f->decode, shape, err), f->base.path, index, NULL);
    stki_free(head);
    return status;
}

/* ---- numbers ---- */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Parses decimal digits with an optional sign, surrounded by optional blanks. */
static bool parse_class(const char *text, int64_t length, int64_t *out)
{
    int64_t at = 0, value = 0;
    bool minus, any = false;

    while (at < length && is_blank(text[at]))
        at++;
    minus = at < length && text[at] == '-';
    at += at < length && (text[at] == '-' || text[at] == '+');
    for (; at < length && text[at] >= '0' && text[at] <= '9'; at++) {
        int digit = text[at] - '0';

        if (!stki_mul(value, 10, &value) || !stki_add(value, minus ? -digit : digit, &value))
            return false;
        any = true;
    }
    while (at < length && (is_blank(text[at]) || text[at] == '\0'))
        at++;
    *out = value;
    return any && at == length;
}

static stk_status read_class(const struct files *f, int64_t index, const stki_tar_entry *entry, stki_scratch *scratch,
                             stk_tensor *out, stk_error *err)
{
    char text[CLASS_MOST] = "", shown[48];
    int64_t value, count = entry->size < CLASS_MOST ? entry->size : CLASS_MOST;
    stk_status status = read_part(f, entry, text, count, err);

    if (status == STK_OK && (entry->size > CLASS_MOST || !parse_class(text, count, &value)))
        return stki_fail_at(
            err, STK_E_CORRUPT,
            (stki_place){f->base.path, index, entry->offset,
                         count == 0 ? "an empty file" : stki_npy_printable(shown, sizeof shown, text, count),
                         "an integer"},
            "invalid .%s file", name_of(f));
    if (status == STK_OK)
        status = stki_scratch_reserve(scratch, sizeof value, err);
    if (status != STK_OK)
        return stki_fail_record(err, status, index);
    memcpy(scratch->data, &value, sizeof value);
    set_tensor(f, scratch->data, out);
    return STK_OK;
}

/* ---- arrays ---- */

/* Parses the header of an .npy file at `bytes`. `size`: size of the whole file; at least the header must be at
 * `bytes`. */
static stk_status parse_npy(const struct files *f, const void *bytes, int64_t size, const char *path,
                            stki_npy_header *out, stk_error *err)
{
    stki_npy_prefix prefix;
    stk_status status = stki_npy_read_prefix(bytes, size, f->header_limit, path, &prefix, err);

    return status != STK_OK ? status
                            : stki_npy_read_header(&prefix, (const char *)bytes + prefix.text_offset, size, f->alias,
                                                   path, out, err);
}

/* Like parse_npy, but errors name the archive and the sample. The name is built only on failure. */
static stk_status npy_header(const struct files *f, int64_t index, const void *bytes, int64_t size,
                             stki_npy_header *out, stk_error *err)
{
    char path[256], shown[160];

    if (parse_npy(f, bytes, size, f->base.path, out, NULL) == STK_OK)
        return STK_OK;
    stki_text(path, sizeof path, "%s: the .%s of sample %" PRId64, stki_text_end(shown, sizeof shown, f->base.path),
              name_of(f), index);
    return stki_fail_record(err, parse_npy(f, bytes, size, path, out, err), index);
}

static stk_status fail_shape(const struct files *f, int64_t index, const stki_npy_header *h, stk_error *err)
{
    return stki_fail_at(
        err, STK_E_MISMATCH,
        (stki_place){f->base.path, index, -1,
                     STKI_TEXT("%s %s", stk_dtype_name(h->dtype), STKI_SHAPE(h->ndim, h->shape)),
                     STKI_TEXT("%s %s", stk_dtype_name(f->base.dtype), STKI_SHAPE(f->base.ndim, f->base.shape))},
        "the dtype or shape of the .%s file differs from that of the first sample", name_of(f));
}

static bool same_array(const struct files *f, const stki_npy_header *h)
{
    bool same = h->dtype == f->base.dtype && h->ndim == f->base.ndim;

    for (int i = 0; same && !f->base.variable && i < h->ndim; i++)
        same = h->shape[i] == f->base.shape[i];
    return same;
}

/* If all shapes are equal, the byte order and element order must also be equal, because all samples are converted in
 * the same way. */
static bool same_order(const struct files *f, const stki_npy_header *h)
{
    bool same = h->swapped == f->base.swapped || h->data_bytes == 0;

    for (int i = 0; same && i < h->ndim; i++)
        same = h->shape[i] <= 1 || h->strides[i] == f->base.strides[i];
    return same || f->base.variable;
}

static stk_status read_npy(const struct files *f, int64_t index, const stki_tar_entry *entry, stki_scratch *scratch,
                           stk_tensor *out, stk_error *err)
{
    stki_npy_header h;
    const void *bytes;
    stk_status status = bytes_of(f, index, entry, scratch, &bytes, err);

    if (status == STK_OK)
        status = npy_header(f, index, bytes, entry->size, &h, err);
    if (status != STK_OK)
        return status;
    if (!same_array(f, &h))
        return fail_shape(f, index, &h, err);
    if (!same_order(f, &h))
        return stki_fail_at(
            err, STK_E_MISMATCH, (stki_place){f->base.path, index, -1, "another order", "that of the first sample"},
            "the byte order or element order of the .%s file differs from that of the first sample", name_of(f));
    set_tensor(f, (const char *)bytes + h.data_offset, out);
    out->flags |= h.swapped ? STK_TENSOR_SWAPPED : 0;
    memcpy(out->shape, h.shape, sizeof h.shape);
    memcpy(out->strides, h.strides, sizeof h.strides);
    return STK_OK;
}

/* Reads only the header. */
static stk_status peek_npy(const struct files *f, int64_t index, const stki_tar_entry *entry, stki_npy_header *out,
                           stk_error *err)
{
    const void *mapped = stki_tar_index_mapped(f->set->file, entry);
    char prefix_bytes[STKI_NPY_PREFIX] = {0};
    int64_t known = entry->size < STKI_NPY_PREFIX ? entry->size : STKI_NPY_PREFIX;
    stki_npy_prefix prefix;
    stk_status status;
    char *head;

    if (mapped)
        return npy_header(f, index, mapped, entry->size, out, err);
    status = read_part(f, entry, prefix_bytes, known, err);
    if (status == STK_OK)
        status = stki_npy_read_prefix(prefix_bytes, entry->size, f->header_limit, f->base.path, &prefix, err);
    if (status != STK_OK)
        return stki_fail_record(err, status, index);
    head = stki_zalloc(prefix.text_offset + prefix.text_bytes + STKI_NPY_PREFIX);
    if (!head)
        return stki_fail_memory(err, prefix.text_bytes, "an npy header");
    status = read_part(f, entry, head, prefix.text_offset + prefix.text_bytes, err);
    if (status == STK_OK)
        status = npy_header(f, index, head, entry->size, out, err);
    stki_free(head);
    return status;
}

/* ---- reader operations ---- */

/* Adds the file's name in the archive to the message. */
static stk_status name_member(const struct files *f, int64_t index, stk_status status, stk_error *err)
{
    const stki_tar_index *tar = &f->set->index;
    char key[120], shown[80];
    size_t used;

    if (status >= STK_OK || !err || index < 0 || index >= tar->sample_count)
        return status;
    snprintf(key, sizeof key, "%.*s", (int)(tar->key_at[index + 1] - tar->key_at[index]),
             tar->keys + tar->key_at[index]);
    used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used, " (member %s.%s)",
             stki_text_end(shown, sizeof shown, key), name_of(f));
    stki_make_printable(err->message);
    return status;
}

static stk_status read_any(const struct files *f, int64_t index, const stki_want *want, stki_scratch *scratch,
                           stk_tensor *out, stk_error *err)
{
    const stki_tar_entry *entry;
    const void *bytes;
    stk_status status = find(f, index, &entry, err);

    if (status != STK_OK)
        return status;
    switch (f->kind) {
    case STKI_TAR_IMAGE:
        return read_image(f, index, entry, want, scratch, out, err);
    case STKI_TAR_NPY:
        return read_npy(f, index, entry, scratch, out, err);
    case STKI_TAR_CLASS:
        return read_class(f, index, entry, scratch, out, err);
    default:
        status = bytes_of(f, index, entry, scratch, &bytes, err);
        if (status != STK_OK)
            return status;
        set_tensor(f, bytes, out);
        out->shape[0] = entry->size;
        out->strides[0] = 1;
        return STK_OK;
    }
}

static stk_status files_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                             stk_tensor *out, stk_error *err)
{
    const struct files *f = files_of(base);

    return name_member(f, index, read_any(f, index, want, scratch, out, err), err);
}

static stk_status shape_any(const struct files *f, int64_t index, int64_t *shape, stk_error *err)
{
    const stki_tar_entry *entry;
    stki_npy_header h;
    stk_status status = find(f, index, &entry, err);

    if (status != STK_OK)
        return status;
    if (f->kind == STKI_TAR_IMAGE)
        return known_shape(f, entry, shape) ? STK_OK : ask_shape(f, index, entry, shape, err);
    if (f->kind != STKI_TAR_NPY) {
        shape[0] = entry->size;
        return STK_OK;
    }
    status = peek_npy(f, index, entry, &h, err);
    if (status == STK_OK && !same_array(f, &h))
        status = fail_shape(f, index, &h, err);
    if (status == STK_OK)
        memcpy(shape, h.shape, (size_t)h.ndim * sizeof *shape);
    return status;
}

static stk_status files_shape(const stki_reader *base, int64_t index, int64_t *shape, stk_error *err)
{
    const struct files *f = files_of(base);

    return name_member(f, index, shape_any(f, index, shape, err), err);
}

static void files_will_need(const stki_reader *base, const int64_t *indices, int64_t count)
{
    const struct files *f = files_of(base);
    stki_range ranges[ADVISE_AT_ONCE];
    int64_t n = 0;

    if (!stki_file_advice_due(f->set->file))
        return;
    for (int64_t i = 0; i < count; i++) {
        const stki_tar_entry *entry;

        if (find(f, indices[i], &entry, NULL) == STK_OK && !entry->sparse)
            ranges[n++] = (stki_range){entry->offset, entry->size};
        if (n == ADVISE_AT_ONCE || i == count - 1) {
            stki_file_will_need_ranges(f->set->file, ranges, n);
            n = 0;
        }
    }
}

static int files_place(const stki_reader *base, int64_t index, stki_range *out)
{
    const stki_tar_entry *entry;

    if (find(files_of(base), index, &entry, NULL) != STK_OK || entry->sparse)
        return 0;
    out[0] = (stki_range){entry->offset, entry->size};
    return 1;
}

static void files_destroy(stki_reader *base)
{
    struct files *f = (struct files *)(void *)base;

    stki_container_release((stki_container *)(uintptr_t)&f->set->base);
    stki_free(f->units);
    stki_free(base->path);
    stki_free(f);
}

static const stki_reader_ops fixed_ops = {
    .format = "webdataset", .read = files_read, .will_need = files_will_need, .destroy = files_destroy};
static const stki_reader_ops variable_ops = {.format = "webdataset",
                                             .read = files_read,
                                             .shape = files_shape,
                                             .will_need = files_will_need,
                                             .destroy = files_destroy};

/* ---- opening ---- */

/* Groups samples into units of a few megabytes for `order: block`. */
static stk_status make_units(struct files *f, stk_error *err)
{
    const stki_tar_index *index = &f->set->index;
    int64_t count = 0, start = 0, bytes = (f->set->file->size / UNIT_BYTES + 2) * (int64_t)sizeof *f->units;

    f->units = stki_zalloc(bytes);
    if (!f->units)
        return stki_fail_memory(err, bytes, "the units of an archive");
    for (int64_t i = 0; i < index->sample_count; i++) {
        int64_t at = index->first[i] < index->entry_count ? index->entries[index->first[i]].offset : 0;

        if (i > 0 && at - start < UNIT_BYTES)
            continue;
        if (count == f->set->file->size / UNIT_BYTES + 1)
            break; /* only a damaged index can contain more */
        f->units[count++] = i;
        start = at;
    }
    f->units[count] = index->sample_count;
    f->base.unit_first = f->units;
    f->base.unit_count = count;
    return STK_OK;
}

static void take_shape(stki_reader *base, const int64_t *shape, int ndim, bool first)
{
    for (int i = 0; i < ndim; i++) {
        base->variable = base->variable || (!first && shape[i] != base->shape[i]);
        base->shape[i] = shape[i] > base->shape[i] ? shape[i] : base->shape[i];
    }
}

static void survey_images(struct files *f)
{
    const stki_tar_index *index = &f->set->index;
    int64_t shape[3];
    bool first = true;

    f->base.ndim = 3;
    f->base.image = true;
    f->base.indices = f->decode.index;
    f->base.dtype = stki_image_dtype(&f->decode);
    f->base.shape[2] = stki_image_channels(&f->decode);
    for (int64_t i = 0; i < index->entry_count; i++) {
        const stki_tar_entry *entry = &index->entries[i];

        if (entry->extension != (uint32_t)f->extension || !known_shape(f, entry, shape))
            continue;
        take_shape(&f->base, shape, 3, first);
        first = false;
    }
}

/* Reads the headers of all samples, or only of the first if all files have the same size. Unreadable files are skipped
 * and fail when they are read. If all of them are unreadable, returns the error of an existing file, if there is one,
 * rather than STK_E_NOT_FOUND for a sample without such a file. */
static stk_status survey_npy(struct files *f, stk_error *err)
{
    const stki_tar_extension *extension = &f->set->index.extensions[f->extension];
    bool first = true, all = extension->smallest != extension->largest;
    stk_status failed = STK_OK;

    for (int64_t i = 0; i < f->base.count && (first || all); i++) {
        const stki_tar_entry *entry;
        stki_npy_header h;
        stk_error why;
        stk_status status = find(f, i, &entry, &why);

        if (status == STK_OK)
            status = peek_npy(f, i, entry, &h, &why);
        status = name_member(f, i, status, &why);
        if (status != STK_OK) {
            if (failed == STK_OK || (failed == STK_E_NOT_FOUND && status != STK_E_NOT_FOUND)) {
                failed = status;
                if (err)
                    *err = why;
            }
            continue;
        }
        if (first) {
            f->base.dtype = h.dtype;
            f->base.ndim = h.ndim;
            f->base.swapped = h.swapped;
            memcpy(f->base.strides, h.strides, sizeof h.strides);
        } else if (h.dtype != f->base.dtype || h.ndim != f->base.ndim) {
            return fail_shape(f, i, &h, err);
        }
        take_shape(&f->base, h.shape, h.ndim, first);
        first = false;
    }
    return first && failed != STK_OK ? failed : STK_OK;
}

/* Computes the size of the largest sample and the strides, which for arrays of one shape are those of the first
 * sample. */
static stk_status measure(struct files *f)
{
    int64_t strides[STK_MAX_DIMS];
    stk_status status = stki_row_major(f->base.dtype, f->base.ndim, f->base.shape, strides, &f->base.max_bytes, NULL);

    if (status == STK_OK && (f->kind != STKI_TAR_NPY || f->base.variable))
        memcpy(f->base.strides, strides, (size_t)f->base.ndim * sizeof *strides);
    return status;
}

static const char *ending_of(const char *extension)
{
    const char *dot = strrchr(extension, '.'), *last = dot ? dot + 1 : extension;

    return !strcmp(last, "txt") ? "txt" : !strcmp(last, "json") ? "json" : "bin";
}

/* Returns the size of the largest possible read. Files longer than the archive are sparse, and reading them fails if
 * they exceed SPARSE_MOST. */
static int64_t largest_read(const struct files *f)
{
    const int64_t largest = f->set->index.extensions[f->extension].largest, stored = f->set->file->size;
    const int64_t most = stored > SPARSE_MOST ? stored : SPARSE_MOST;

    return largest < most ? largest : most;
}

static stk_status describe(struct files *f, stk_error *err)
{
    const stki_file *file = f->set->file;
    stki_reader *base = &f->base;
    stk_status status = STK_OK;

    base->count = f->set->index.sample_count;
    base->access = file->access;
    base->note = file->note;
    base->file_bytes = file->size;
    base->file = file;
    base->place = files_place;
    base->placer = base;
    base->data_offset = -1;
    base->copies = !file->map || f->set->index.run_count > 0 || f->kind == STKI_TAR_IMAGE || f->kind == STKI_TAR_CLASS;
    switch (f->kind) {
    case STKI_TAR_IMAGE:
        survey_images(f);
        break;
    case STKI_TAR_NPY:
        status = survey_npy(f, err);
        break;
    case STKI_TAR_CLASS:
        base->dtype = STK_I64;
        break;
    default:
        base->dtype = STK_U8;
        base->ndim = 1;
        base->variable = true;
        base->ending = ending_of(name_of(f));
        base->shape[0] = f->max_bytes > 0 ? f->max_bytes : largest_read(f);
        break;
    }
    base->ops = base->variable ? &variable_ops : &fixed_ops;
    if (status == STK_OK && measure(f) != STK_OK)
        status = stki_fail_at(err, STK_E_CORRUPT, (stki_place){base->path, -1, -1, NULL, NULL},
                              "the largest .%s has more than 2^63 bytes", name_of(f));
    if (status == STK_OK && f->kind == STKI_TAR_NPY)
        status = stki_reader_check_size(base, f->max_bytes, err);
    if (status == STK_OK && f->kind != STKI_TAR_NPY && f->alias != STK_DTYPE_NONE && f->alias != base->dtype)
        status = stki_fail_at(err, STK_E_MISMATCH,
                              (stki_place){base->path, -1, -1, stk_dtype_long_name(base->dtype),
                                           STKI_TEXT("%s (source.dtype)", stk_dtype_long_name(f->alias))},
                              "the type of .%s differs from the configured one", name_of(f));
    return status;
}

stk_status stki_webdataset_reader(const stki_webdataset *set, int extension, const stki_reader_opts *opts,
                                  stki_reader **out, stk_error *err)
{
    struct files *f = stki_zalloc(sizeof *f);
    stk_status status;

    if (!f)
        return stki_fail_memory(err, sizeof *f, set->base.path);
    (void)stki_container_retain(&set->base);
    f->set = set;
    f->extension = extension;
    f->decode = stki_image_opts(opts);
    f->kind = stki_tar_kind_read(name_of(f), &f->decode);
    f->alias = opts->alias_dtype;
    f->max_bytes = opts->max_bytes;
    f->header_limit = stki_header_limit(opts);
    f->base.ops = &fixed_ops;
    f->base.path = stki_strdup(set->base.path);
    status =
        f->base.path ? describe(f, err) : stki_fail_memory(err, (int64_t)strlen(set->base.path) + 1, set->base.path);
    if (status == STK_OK)
        status = make_units(f, err);
    if (status != STK_OK)
        files_destroy(&f->base);
    else
        *out = &f->base;
    return status;
}
