/* hdf5_groups.c: groups as samples. In a file that stores each sample in data sets of its own ("/s000/image",
 * "/s001/image", …), a field is a pattern of paths: each matching data set is one sample, ordered by path. All must
 * have the same dtype and number of axes; shapes may differ.
 *
 * Contiguous data is located at open, and its samples are views of the mapping. Other data sets are opened by the
 * library at each read (a few tens of microseconds under its lock) and then decoded into the worker's memory without
 * the library. */
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "grow.h"
#include "hdf5_list.h"
#include "hdf5_reader.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct item {
    char *name;
    int64_t offset; /* offset of contiguous data in the main file; -1: opened by the library */
    int64_t *shape;
    bool swapped;
};

struct groups {
    stki_reader base; /* first member */
    stki_hdf5_file *file;
    stki_file *map;
    stki_reader_opts opts;
    struct item *items;
    int64_t capacity;
    const char *pattern; /* only valid during open */
    int64_t *first;      /* base.group_first */
};

static const struct groups *groups_of(const stki_reader *base)
{
    return (const struct groups *)(const void *)base;
}

bool stki_hdf5_is_pattern(const char *name)
{
    return strpbrk(name, "*?[") != NULL;
}

/* ---- reading ---- */

static stk_status describe_sample(const struct groups *g, const struct item *item, stk_tensor *out, stk_error *err)
{
    const stki_reader *base = &g->base;
    int64_t bytes;

    *out = (stk_tensor){.dtype = base->dtype,
                        .ndim = base->ndim,
                        .flags = STK_TENSOR_READONLY | (item->swapped ? STK_TENSOR_SWAPPED : 0)};
    if (base->ndim > 0)
        memcpy(out->shape, item->shape, (size_t)base->ndim * sizeof *out->shape);
    return stki_row_major(base->dtype, base->ndim, out->shape, out->strides, &bytes, err);
}

static int64_t bytes_of(const struct groups *g, const struct item *item)
{
    int64_t bytes = stk_dtype_size(g->base.dtype);

    for (int i = 0; i < g->base.ndim; i++)
        bytes *= item->shape[i]; /* cannot overflow, as checked at open */
    return bytes;
}

/* Decodes a data set of any layout into the worker's memory. */
static stk_status unpack(const struct groups *g, const struct item *item, char *to, stk_error *err)
{
    stki_hdf5_dataset *d;
    stki_array array;
    stk_tensor t, packed;
    stk_status status = stki_hdf5_dataset_open(g->file, item->name, &d, err);

    if (status != STK_OK)
        return status;
    status = stki_hdf5_array_of(d, strcmp(d->path, g->map->path) ? NULL : g->map, &g->opts, &array, err);
    if (status == STK_OK) {
        status = stki_array_tensor(&array, d->path, &t, err);
        stki_array_release(&array);
    }
    stki_hdf5_dataset_release(d);
    if (status != STK_OK)
        return status;
    status = describe_sample(g, item, &packed, err);
    if (status == STK_OK && (t.dtype != packed.dtype || t.ndim != packed.ndim ||
                             memcmp(t.shape, packed.shape, (size_t)t.ndim * sizeof *t.shape)))
        status = stki_fail_at(err, STK_E_MISMATCH, (stki_place){g->base.path, -1, -1, NULL, NULL},
                              "%s: the data set changed since the file was opened", item->name);
    if (status == STK_OK)
        stki_copy_strided(to, t.dtype, packed.strides, t.data, t.dtype, t.strides, false, t.ndim, t.shape);
    stk_tensor_release(&t);
    return status;
}

static stk_status groups_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                              stk_tensor *out, stk_error *err)
{
    const struct groups *g = groups_of(base);
    const struct item *item;
    stk_tensor sample;
    int64_t bytes;
    stk_status status = stki_reader_check_index(base, index, err);

    (void)want;
    if (status != STK_OK)
        return status;
    item = &g->items[index];
    bytes = bytes_of(g, item);
    status = describe_sample(g, item, &sample, err);
    if (status == STK_OK && item->offset >= 0 && g->map->map) {
        sample.data = (char *)(uintptr_t)g->map->map + item->offset;
        *out = sample;
        return STK_OK;
    }
    if (status == STK_OK)
        status = stki_scratch_reserve(scratch, bytes > 0 ? bytes : 1, err);
    if (status == STK_OK)
        status = item->offset >= 0 ? stki_file_read(g->map, item->offset, scratch->data, bytes, err)
                                   : unpack(g, item, scratch->data, err);
    if (status != STK_OK)
        return stki_fail_record(err, status, index);
    sample.data = scratch->data;
    *out = sample;
    return STK_OK;
}

static int groups_place(const stki_reader *base, int64_t index, stki_range *out)
{
    const struct groups *g = groups_of(base);

    if (g->items[index].offset < 0)
        return 0;
    out[0] = (stki_range){g->items[index].offset, bytes_of(g, &g->items[index])};
    return 1;
}

static stk_status groups_shape(const stki_reader *base, int64_t index, int64_t *shape, stk_error *err)
{
    stk_status status = stki_reader_check_index(base, index, err);

    if (status == STK_OK && base->ndim > 0)
        memcpy(shape, groups_of(base)->items[index].shape, (size_t)base->ndim * sizeof *shape);
    return status;
}

static void groups_destroy(stki_reader *base)
{
    struct groups *g = (struct groups *)(void *)base;

    for (int64_t i = 0; i < base->count; i++) {
        stki_free(g->items[i].name);
        stki_free(g->items[i].shape);
    }
    stki_free(g->first);
    stki_free(g->items);
    stki_file_close(g->map);
    stki_hdf5_file_release(g->file);
    stki_free(base->path);
    stki_free(g);
}

static const stki_reader_ops fixed_ops = {.format = "hdf5", .read = groups_read, .destroy = groups_destroy};
static const stki_reader_ops variable_ops = {
    .format = "hdf5", .read = groups_read, .shape = groups_shape, .destroy = groups_destroy};

/* ---- opening ---- */

static stk_status on_found(void *context, const char *name, const char *alias_of, const stk_error *trouble,
                           stk_error *err)
{
    struct groups *g = context;
    char *copy;
    stk_status status;

    (void)alias_of;
    if (trouble) {
        if (err)
            *err = *trouble;
        return trouble->status;
    }
    status = stki_grow(&g->items, &g->capacity, g->base.count + 1, sizeof *g->items, "a list of samples", err);
    if (status != STK_OK)
        return status;
    copy = stki_strdup(name);
    if (!copy)
        return stki_fail_memory(err, (int64_t)strlen(name) + 1, name);
    g->items[g->base.count++] = (struct item){.name = copy, .offset = -1};
    return STK_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct item *)a)->name, ((const struct item *)b)->name);
}

static stk_status fail_differs(const struct groups *g, const stki_hdf5_dataset *d, const char *what, const char *found,
                               const char *expected, stk_error *err)
{
    return stki_fail_at(err, STK_E_MISMATCH, (stki_place){g->base.path, -1, -1, found, expected},
                        "%s: the %s differs from that of %s", d->name, what, g->items[0].name);
}

/* Reads the properties of the data set and compares them with those of the first. */
static stk_status take_facts(struct groups *g, struct item *item, const stki_hdf5_dataset *d, stk_error *err)
{
    stki_reader *base = &g->base;
    int64_t bytes = d->type.bytes;

    if (d->type.varying != STKI_HDF5_SAME)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){d->path, -1, -1, "strings or lists of different lengths", "numbers"},
                            "%s: a data set that is a sample must contain numbers", d->name);
    if (item == g->items) {
        base->dtype = d->type.dtype;
        base->ndim = d->ndim;
        base->swapped = d->type.swapped;
        memcpy(base->shape, d->shape, sizeof base->shape);
    }
    if (d->type.dtype != base->dtype || d->type.swapped != base->swapped)
        return fail_differs(g, d, "type", stk_dtype_name(d->type.dtype), stk_dtype_name(base->dtype), err);
    if (d->ndim != base->ndim)
        return fail_differs(g, d, "number of axes", STKI_TEXT("%d", d->ndim), STKI_TEXT("%d", base->ndim), err);
    item->swapped = d->type.swapped;
    item->shape = stki_zalloc_array(d->ndim + 1, sizeof *item->shape);
    if (!item->shape)
        return stki_fail_memory(err, (d->ndim + 1) * (int64_t)sizeof *item->shape, "a shape");
    for (int i = 0; i < d->ndim; i++) {
        item->shape[i] = d->shape[i];
        if (i < d->rank && !stki_mul(bytes, d->shape[i], &bytes))
            return stki_fail_at(err, STK_E_LIMIT, (stki_place){d->path, -1, -1, NULL, NULL},
                                "%s: the size in bytes does not fit in 63 bits", d->name);
        base->variable = base->variable || d->shape[i] != base->shape[i];
        base->shape[i] = d->shape[i] > base->shape[i] ? d->shape[i] : base->shape[i];
    }
    base->max_bytes = bytes > base->max_bytes ? bytes : base->max_bytes;
    if (d->layout != STKI_HDF5_CONTIGUOUS || !d->type.raw || d->live || d->offset < 0 || bytes == 0 ||
        strcmp(d->path, g->map->path))
        return STK_OK;
    if (!stki_inside(d->offset, bytes, g->map->size))
        return stki_fail_at(err, STK_E_TRUNCATED,
                            (stki_place){d->path, -1, d->offset, STKI_TEXT("a file of %" PRId64 " bytes", g->map->size),
                                         STKI_TEXT("%" PRId64 " bytes", bytes)},
                            "%s: the data is truncated", d->name);
    item->offset = d->offset;
    return STK_OK;
}

static stk_status open_items(struct groups *g, stk_error *err)
{
    stk_status status = STK_OK;

    for (int64_t i = 0; i < g->base.count && status == STK_OK; i++) {
        stki_hdf5_dataset *d;

        status = stki_hdf5_dataset_open(g->file, g->items[i].name, &d, err);
        if (status != STK_OK)
            break;
        status = take_facts(g, &g->items[i], d, err);
        stki_hdf5_dataset_release(d);
    }
    return status;
}

static stk_status describe(struct groups *g, stk_error *err)
{
    stki_reader *base = &g->base;
    int64_t bytes;

    base->ops = base->variable ? &variable_ops : &fixed_ops;
    base->access = g->map->access;
    base->note = g->map->note;
    base->copies = !g->map->map;
    for (int64_t i = 0; i < base->count; i++)
        base->copies = base->copies || g->items[i].offset < 0;
    base->file = g->map;
    base->place = groups_place;
    base->placer = base;
    base->file_bytes = g->map->size;
    base->data_offset = -1;
    return stki_row_major(base->dtype, base->ndim, base->shape, base->strides, &bytes, err);
}

/* Returns the length of the part of a name before the component that matches the pattern's last wildcard. */
static size_t group_bytes(const char *name, const char *pattern)
{
    const char *wildcard = pattern, *end = name + strlen(name);
    int behind = 1; /* number of components to remove */

    for (const char *at = pattern; *at; at++)
        wildcard = strchr("*?[", *at) ? at : wildcard;
    for (const char *at = wildcard; *at; at++)
        behind += *at == '/';
    while (behind > 0 && end > name)
        behind -= *--end == '/';
    return (size_t)(end - name);
}

/* Starts a new group, which windows do not cross, wherever a component before that of the pattern's last wildcard
 * changes. */
static stk_status find_groups(struct groups *g, stk_error *err)
{
    const int64_t count = g->base.count;
    size_t length = 0;

    g->first = stki_zalloc_array(count + 1, sizeof *g->first);
    if (!g->first)
        return stki_fail_memory(err, (count + 1) * (int64_t)sizeof *g->first, "groups");
    for (int64_t i = 0; i < count; i++) {
        const char *name = g->items[i].name;
        const size_t its = group_bytes(name, g->pattern);

        if (i == 0 || its != length || memcmp(name, g->items[i - 1].name, its) != 0)
            g->first[g->base.group_count++] = i;
        length = its;
    }
    g->first[g->base.group_count] = count;
    g->base.group_first = g->first;
    return STK_OK;
}

static stk_status open_groups(struct groups *g, const char *path, const char *pattern, stk_error *err)
{
    stk_status status;

    g->base.path = stki_strdup(path);
    if (!g->base.path)
        return stki_fail_memory(err, (int64_t)strlen(path) + 1, path);
    status = stki_file_open(path, g->opts.access, g->opts.pattern, &g->map, err);
    g->pattern = pattern;
    if (status == STK_OK)
        status = stki_hdf5_list(g->file, pattern, on_found, g, err);
    if (status == STK_OK && g->base.count == 0)
        status = stki_fail_at(err, STK_E_NOT_FOUND, (stki_place){path, -1, -1, NULL, NULL},
                              "no data set matches the pattern %s", pattern);
    if (status != STK_OK)
        return status;
    qsort(g->items, (size_t)g->base.count, sizeof *g->items, by_name);
    if ((status = open_items(g, err)) != STK_OK || (status = find_groups(g, err)) != STK_OK)
        return status;
    return describe(g, err);
}

stk_status stki_hdf5_groups_reader(stki_hdf5_file *file, const char *pattern, const stki_reader_opts *opts,
                                   stki_reader **out, stk_error *err)
{
    struct groups *g = stki_zalloc(sizeof *g);
    stk_status status;

    if (!g)
        return stki_fail_memory(err, sizeof *g, pattern);
    g->base.ops = &fixed_ops;
    g->file = stki_hdf5_file_retain(file);
    g->opts = *opts;
    g->opts.name = g->opts.prefer = g->opts.format = NULL;
    g->opts.window_length = 0;
    status = opts->axis
                 ? stki_fail_at(err, STK_E_CONFIG, (stki_place){file->path, -1, -1, NULL, NULL},
                                "%s: source.axis cannot be used with a pattern, because each data set is one sample",
                                pattern)
                 : open_groups(g, file->path, pattern, err);
    if (status != STK_OK) {
        groups_destroy(&g->base);
        return status;
    }
    *out = &g->base;
    return STK_OK;
}
