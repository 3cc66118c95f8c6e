/* hdf5_values.c: reads one-dimensional data sets whose elements vary in length: fixed and variable-length strings, and
 * variable-length lists of numbers. A sample is one element, read through the library under its lock. The type of fixed
 * strings states their maximum length. For other types, all elements are read once at open to determine it. */
#include "allocate.h"
#include "error.h"
#include "hdf5_reader.h"
#include <inttypes.h>
#include <string.h>

enum { AT_ONCE = 256 /* number of elements per read */ };

struct values {
    stki_reader base; /* first member */
    stki_hdf5_dataset *dataset;
    stki_hdf5_samples samples;
    stki_hdf5_written written;
    stki_counter broken; /* 1 + the number of the last chunk that could not be decoded */
    int64_t max_bytes;   /* limit set by the option; 0: none */
};

static const struct values *values_of(const stki_reader *base)
{
    return (const struct values *)(const void *)base;
}

/* Returns the length of a fixed string without its padding. */
static int64_t fixed_bytes(const char *text, int64_t size, enum stki_hdf5_padding padding)
{
    int64_t bytes = padding == STKI_HDF5_TERMINATED ? (int64_t)strnlen(text, (size_t)size) : size;

    while (bytes > 0 && ((padding == STKI_HDF5_NULLS && text[bytes - 1] == '\0') ||
                         (padding == STKI_HDF5_SPACES && text[bytes - 1] == ' ')))
        bytes--;
    return bytes;
}

static int64_t element_room(const stki_hdf5_dataset *d)
{
    return d->type.varying == STKI_HDF5_FIXED ? d->type.bytes : (int64_t)sizeof(hvl_t);
}

/* Returns the number of bytes that the library may have to read for `count` elements, which is at least a whole
 * chunk. */
static int64_t touched_bytes(const stki_hdf5_dataset *d, int64_t count)
{
    const int64_t chunk = d->layout == STKI_HDF5_CHUNKED ? d->grid.chunk_bytes : 0;

    return chunk > count * element_room(d) ? chunk : count * element_room(d);
}

static void note(const stki_hdf5_dataset *d, int64_t bytes)
{
    stki_apart_note(d->path, d->name, "reading elements", bytes);
}

/* Reads elements [start, start + count) in the library's form: fixed strings or pointers. Sets *chunk if their chunk
 * cannot be decoded. Called between enter and leave. */
static stk_status read_elements(const stki_hdf5_dataset *d, int64_t start, int64_t count, void *to, hid_t *memory,
                                bool *chunk, stk_error *err)
{
    const hsize_t first = (hsize_t)start, many = (hsize_t)count;
    hid_t space = H5Dget_space(d->id);
    stk_status status = STK_OK;

    *memory = H5Screate_simple(1, &many, NULL);
    if (space < 0 || *memory < 0 || H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &many, NULL) < 0 ||
        H5Dread(d->id, d->memory_type, *memory, space, H5P_DEFAULT, to) < 0)
        status = stki_hdf5_fail_elements(err, d->path, d->name, chunk);
    if (space >= 0)
        (void)H5Sclose(space);
    return status;
}

/* Frees the memory that the library allocated for these elements. */
static void free_elements(const stki_hdf5_dataset *d, hid_t memory, void *elements)
{
    if (memory >= 0 && d->type.varying != STKI_HDF5_FIXED)
        (void)H5Dvlen_reclaim(d->memory_type, memory, H5P_DEFAULT, elements);
    if (memory >= 0)
        (void)H5Sclose(memory);
}

/* Returns the address and size of an element. */
static const void *element(const stki_hdf5_dataset *d, const void *elements, int64_t i, int64_t *bytes)
{
    const char *at;

    switch (d->type.varying) {
    case STKI_HDF5_FIXED:
        at = (const char *)elements + i * d->type.bytes;
        *bytes = fixed_bytes(at, d->type.bytes, d->type.padding);
        return at;
    case STKI_HDF5_STRING:
        at = ((char *const *)elements)[i];
        *bytes = at ? (int64_t)strlen(at) : 0;
        return at;
    default:
        at = ((const hvl_t *)elements)[i].p;
        *bytes = (int64_t)((const hvl_t *)elements)[i].len * stk_dtype_size(d->type.dtype);
        return at;
    }
}

/* Reads one element into the scratch memory, or only its size if `scratch` is NULL. */
static stk_status read_one(const struct values *v, int64_t index, stki_scratch *scratch, int64_t *bytes, stk_error *err)
{
    const stki_hdf5_dataset *d = v->dataset;
    char *one = stki_zalloc(element_room(d));
    hid_t memory = -1;
    bool chunk = false;
    stki_hdf5_guard guard;
    const void *from;
    stk_error changed;
    stk_status status = stki_hdf5_check_fork(d->file->generation, d->path, err);

    if (status == STK_OK && !one)
        status = stki_fail_memory(err, element_room(d), d->name);
    if (status != STK_OK) {
        stki_free(one);
        return status;
    }
    stki_hdf5_enter(&guard, d->file->plugins);
    note(d, touched_bytes(d, 1));
    status = read_elements(d, index, 1, one, &memory, &chunk, err);
    if (chunk && d->layout == STKI_HDF5_CHUNKED)
        stki_count_set((stki_counter *)(uintptr_t)&v->broken, 1 + index / d->grid.chunk[0]);
    if (status == STK_OK) {
        from = element(d, one, 0, bytes);
        note(d, *bytes);
        if (v->max_bytes > 0 && *bytes > v->max_bytes)
            status = stki_fail_at(err, STK_E_LIMIT,
                                  (stki_place){d->path, index, -1, STKI_TEXT("%" PRId64 " bytes", *bytes),
                                               STKI_TEXT("at most %" PRId64 " (max_bytes)", v->max_bytes)},
                                  "%s: the element is too long", d->name);
        if (status == STK_OK && scratch)
            status = stki_scratch_reserve(scratch, *bytes + 1, err);
        if (status == STK_OK && scratch && *bytes > 0)
            memcpy(scratch->data, from, (size_t)*bytes);
    }
    free_elements(d, memory, one);
    stki_hdf5_leave(&guard);
    stki_free(one);
    if (stki_hdf5_dataset_intact(d, &changed) == STK_OK)
        return stki_fail_record(err, status, index);
    if (err)
        *err = changed;
    return stki_fail_record(err, changed.status, index);
}

static stk_status values_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                              stk_tensor *out, stk_error *err)
{
    int64_t bytes = 0;
    stk_status status = stki_reader_check_index(base, index, err);

    (void)want;
    if (status == STK_OK)
        status = read_one(values_of(base), index, scratch, &bytes, err);
    if (status != STK_OK)
        return status;
    *out = (stk_tensor){.data = scratch->data,
                        .dtype = base->dtype,
                        .ndim = 1,
                        .flags = STK_TENSOR_READONLY,
                        .shape = {bytes / stk_dtype_size(base->dtype)},
                        .strides = {stk_dtype_size(base->dtype)}};
    return STK_OK;
}

static stk_status values_shape(const stki_reader *base, int64_t index, int64_t *shape, stk_error *err)
{
    int64_t bytes = 0;
    stk_status status = stki_reader_check_index(base, index, err);

    if (status == STK_OK)
        status = read_one(values_of(base), index, NULL, &bytes, err);
    shape[0] = bytes / stk_dtype_size(base->dtype);
    return status;
}

static void values_destroy(stki_reader *base)
{
    struct values *v = (struct values *)(void *)base;

    stki_hdf5_written_fini(&v->written);
    stki_hdf5_dataset_release(v->dataset);
    stki_free(base->path);
    stki_free(v);
}

static int64_t values_filled_until(const stki_reader *base, int64_t index)
{
    return stki_hdf5_filled_until(&values_of(base)->samples, &values_of(base)->written, index);
}

/* If the chunk of the sample could not be decoded, the following samples in the chunk fail too. Other failures affect a
 * single element. */
static int64_t values_fails_until(const stki_reader *base, int64_t index)
{
    const struct values *v = values_of(base);
    const stki_hdf5_grid *grid = &v->dataset->grid;

    return v->dataset->layout == STKI_HDF5_CHUNKED && stki_counted(&v->broken) == 1 + index / grid->chunk[0]
               ? stki_hdf5_band_end(&v->samples, grid, index)
               : index + 1;
}

static const stki_reader_ops ops = {.format = "hdf5",
                                    .read = values_read,
                                    .shape = values_shape,
                                    .filled_until = values_filled_until,
                                    .fails_until = values_fails_until,
                                    .destroy = values_destroy};

/* ---- opening ---- */

/* Finds the size of the longest element. Elements that were never written are all equal, so only one of them is read.
 * Unreadable elements are skipped here and fail when they are read as samples. */
static stk_status find_longest(const stki_hdf5_dataset *d, const stki_hdf5_written *written, int64_t *longest,
                               stk_error *err)
{
    const int64_t elements = d->shape[0];
    bool fill_read = false;
    stki_hdf5_guard guard;
    hvl_t *some;
    stk_status status = stki_hdf5_check_fork(d->file->generation, d->path, err);

    *longest = 0;
    if (status != STK_OK)
        return status;
    some = stki_zalloc_array(AT_ONCE, sizeof *some);
    if (!some)
        return stki_fail_memory(err, AT_ONCE * (int64_t)sizeof *some, d->name);
    for (int64_t at = 0, count; at < elements; at += count) {
        const int64_t next = stki_hdf5_written_from(written, at);
        int64_t all = 0;
        hid_t memory = -1;
        bool chunk = false;

        if (next > at && fill_read) {
            count = next < elements ? next - at : elements - at;
            continue;
        }
        fill_read = fill_read || next > at;
        count = next > at ? 1 : elements - at < AT_ONCE ? elements - at : AT_ONCE;

        stki_hdf5_enter(&guard, d->file->plugins);
        note(d, touched_bytes(d, count));
        memset(some, 0, AT_ONCE * sizeof *some);
        if (read_elements(d, at, count, some, &memory, &chunk, NULL) == STK_OK)
            for (int64_t i = 0; i < count; i++) {
                int64_t bytes;

                (void)element(d, some, i, &bytes);
                *longest = bytes > *longest ? bytes : *longest;
                all += bytes;
            }
        note(d, all);
        free_elements(d, memory, some);
        stki_hdf5_leave(&guard);
        if (chunk && d->layout == STKI_HDF5_CHUNKED) { /* skip the rest of the chunk */
            const int64_t rest = d->grid.chunk[0] - at % d->grid.chunk[0];

            count = rest > count ? (rest < elements - at ? rest : elements - at) : count;
        }
    }
    stki_free(some);
    return STK_OK;
}

static stk_status check(const stki_hdf5_dataset *d, const stki_reader_opts *opts, stk_error *err)
{
    if (d->rank != 1)
        return stki_fail_at(
            err, STK_E_UNSUPPORTED,
            (stki_place){d->path, -1, -1, STKI_TEXT("%d axes", d->rank), "one axis, along which samples are counted"},
            "%s: a data set with elements of different lengths must be one-dimensional", d->name);
    if (opts->axis != 0 || opts->window_length > 0)
        return stki_fail_at(err, STK_E_CONFIG, (stki_place){d->path, -1, -1, NULL, NULL},
                            "%s: source.axis and source.window are not supported for elements of different lengths",
                            d->name);
    if (d->filter_missing[0])
        return stki_hdf5_dataset_read(d, NULL, NULL, NULL, 0, err);
    if (d->layout == STKI_HDF5_VIRTUAL || d->layout == STKI_HDF5_EXTERNAL)
        return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){d->path, -1, -1, NULL, NULL},
                            "%s: elements of different lengths are not supported in virtual or external data sets",
                            d->name);
    return stki_hdf5_dataset_check_room(d, err);
}

stk_status stki_hdf5_values_reader(stki_hdf5_dataset *d, const stki_reader_opts *opts, stki_reader **out,
                                   stk_error *err)
{
    struct values *v;
    int64_t longest = d->type.bytes;
    stki_hdf5_written written = {.all = true};
    stki_hdf5_table table = {0};
    stk_status status = check(d, opts, err);

    if (status == STK_OK)
        status = stki_hdf5_dataset_written(d, 0, &written, &table, err);
    stki_hdf5_table_fini(&table);
    if (status == STK_OK && opts->max_bytes > 0)
        longest = opts->max_bytes;
    else if (status == STK_OK && d->type.varying != STKI_HDF5_FIXED)
        status = find_longest(d, &written, &longest, err);
    v = status == STK_OK ? stki_zalloc(sizeof *v) : NULL;
    if (!v) {
        stki_hdf5_written_fini(&written);
        return status != STK_OK ? status : stki_fail_memory(err, sizeof *v, d->name);
    }
    v->samples = (stki_hdf5_samples){.count = d->shape[0], .step = 1, .length = {1}};
    v->written = written;
    v->dataset = stki_hdf5_dataset_retain(d);
    v->max_bytes = opts->max_bytes;
    v->base = (stki_reader){.ops = &ops,
                            .path = stki_strdup(d->path),
                            .count = d->shape[0],
                            .dtype = d->type.dtype,
                            .ndim = 1,
                            .ending = d->type.varying == STKI_HDF5_VLEN ? NULL : "txt",
                            .variable = true,
                            .copies = true,
                            .access = "library",
                            .note = "read through libhdf5, under its lock: elements of different lengths",
                            .max_bytes = longest,
                            .held_bytes = stki_hdf5_written_bytes(&written),
                            .file_bytes = -1,
                            .data_offset = -1};
    v->base.strides[0] = stk_dtype_size(d->type.dtype);
    v->base.shape[0] = longest / v->base.strides[0];
    if (!v->base.path) {
        values_destroy(&v->base);
        return stki_fail_memory(err, (int64_t)strlen(d->path) + 1, d->path);
    }
    *out = &v->base;
    return STK_OK;
}
