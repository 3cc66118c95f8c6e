/* files.c: files that are one sample each; see files.h. A sample is a tensor whose storage keeps its file mapped, so
 * that a file can be evicted from the cache while a worker still reads it. The cache is direct-mapped by sample number.
 *
 * A file that cannot be read affects only its own sample. Such files are skipped at open: the first readable file
 * determines the dtype and the number of axes, and all readable files together determine the largest shape. Errors of
 * the other files are reported when their samples are read. */
#include "files.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "thread.h"
#include "thread_pool.h"
#include <inttypes.h>
#include <string.h>

enum { CACHE = 64, SCANNERS = 8, FEW = 64 /* up to this number of files, one thread is faster */ };

struct files {
    stki_reader base; /* first member */
    stki_file_list list;
    stki_open_fn *open;
    stki_reader_opts opts;
    char *name;      /* copy of opts.name */
    int64_t first;   /* the first file that could be read */
    int64_t *shapes; /* count * ndim sizes; -1 on axis 0: unreadable at open; NULL: all have the reader's shape */
    char *note;      /* base.note */
    stki_mutex lock; /* guards the cache */
    struct {
        int64_t index; /* index of the file plus 1; 0: empty slot */
        stk_tensor tensor;
    } cache[CACHE];
};

bool stki_file_is_at_fault(stk_status status)
{
    return status < 0 && status != STK_E_MEMORY && status != STK_E_RESOURCE && status != STK_E_CONFIG &&
           status != STK_E_BAD_ARG;
}

/* ---- one file ---- */

static stk_status open_sample(const struct files *f, int64_t index, stk_tensor *out, stk_error *err)
{
    const char *path = f->list.paths[index];
    stki_container *container;
    stki_array array;
    stk_tensor found;
    int64_t member;
    stk_status status = f->open(path, &f->opts, &container, err);

    if (status != STK_OK)
        return status;
    status = stki_container_find(container, &f->opts, &member, err);
    if (status == STK_OK)
        status = stki_container_array(container, member, &f->opts, &array, err);
    stki_container_release(container);
    if (status != STK_OK)
        return status;
    status = stki_array_tensor(&array, path, &found, err);
    stki_array_release(&array);
    if (status != STK_OK)
        return status;
    status = stk_tensor_contiguous(&found, out, err);
    if (status == STK_OK && stki_array_file(&found) &&
        !stki_array_file(out)) { /* the sample is a copy, so later checks cannot find the file */
        status = stki_file_intact(stki_array_file(&found), -1, err);
        if (status != STK_OK)
            stk_tensor_release(out);
    }
    stk_tensor_release(&found);
    return status;
}

static void shape_text(stk_dtype dtype, int ndim, const int64_t *shape, char *buffer, size_t size)
{
    size_t used = (size_t)snprintf(buffer, size, "%s [", stk_dtype_name(dtype));

    for (int i = 0; i < ndim && used < size; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%" PRId64, i ? ", " : "", shape[i]);
    if (used < size)
        snprintf(buffer + used, size - used, "]");
}

/* Returns the shape found at open; NULL: the file could not be read. */
static const int64_t *known_shape(const struct files *f, int64_t index)
{
    const int64_t *shape = f->shapes ? f->shapes + index * f->base.ndim : f->base.shape;

    return shape[0] < 0 ? NULL : shape;
}

/* Checks the sample's dtype and number of axes against the first file, and its shape against the one found at open, or
 * against the largest shape if this file could not be read then. */
static stk_status check_sample(const struct files *f, int64_t index, const stk_tensor *t, stk_error *err)
{
    const stki_reader *base = &f->base;
    const int64_t *known = known_shape(f, index), *expected = known ? known : base->shape;
    bool same = t->dtype == base->dtype && t->ndim == base->ndim;
    char found[128], wanted[128];

    for (int i = 0; same && i < t->ndim; i++)
        same = known ? t->shape[i] == known[i] : t->shape[i] <= base->shape[i];
    if (same)
        return STK_OK;
    shape_text(t->dtype, t->ndim, t->shape, found, sizeof found);
    shape_text(base->dtype, base->ndim, expected, wanted, sizeof wanted);
    return stki_fail_at(err, STK_E_MISMATCH, (stki_place){f->list.paths[index], index, -1, found, wanted},
                        f->shapes && known ? "the file changed since it was opened"
                                           : "the sample differs from the first one, %s",
                        f->list.paths[f->first]);
}

/* ---- the reader ---- */

static struct files *files_of(const stki_reader *base)
{
    return (struct files *)(uintptr_t)base;
}

static bool cached(struct files *f, int64_t index, stk_tensor *out)
{
    bool found;

    stki_lock(&f->lock);
    found = f->cache[index % CACHE].index == index + 1;
    if (found) {
        *out = f->cache[index % CACHE].tensor;
        stk_tensor_retain(out);
    }
    stki_unlock(&f->lock);
    return found;
}

static void keep(struct files *f, int64_t index, const stk_tensor *tensor)
{
    stk_tensor old;

    stk_tensor_retain(tensor);
    stki_lock(&f->lock);
    old = f->cache[index % CACHE].tensor;
    f->cache[index % CACHE].tensor = *tensor;
    f->cache[index % CACHE].index = index + 1;
    stki_unlock(&f->lock);
    stk_tensor_release(&old); /* outside the lock, because this may unmap a file */
}

/* Reads a sample that is not in the cache. */
static stk_status load(struct files *f, int64_t index, stk_tensor *out, stk_error *err)
{
    stk_status status = open_sample(f, index, out, err);

    if (status != STK_OK)
        return stki_fail_record(err, status, index);
    status = check_sample(f, index, out, err);
    if (status != STK_OK)
        stk_tensor_release(out);
    else
        keep(f, index, out);
    return status;
}

static stk_status files_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                             stk_tensor *out, stk_error *err)
{
    struct files *f = files_of(base);
    stk_status status;

    (void)want, (void)scratch;
    status = stki_reader_check_index(base, index, err);
    if (status != STK_OK)
        return status;
    return cached(f, index, out) ? STK_OK : load(f, index, out, err);
}

static stk_status files_shape(const stki_reader *base, int64_t index, int64_t *shape, stk_error *err)
{
    struct files *f = files_of(base);
    const int64_t *known = known_shape(f, index);
    stk_tensor sample;
    stk_status status;

    if (known) {
        memcpy(shape, known, (size_t)base->ndim * sizeof *shape);
        return STK_OK;
    }
    status = load(f, index, &sample, err);
    if (status != STK_OK)
        return status;
    memcpy(shape, sample.shape, (size_t)base->ndim * sizeof *shape);
    stk_tensor_release(&sample);
    return STK_OK;
}

static bool files_path(const stki_reader *base, int64_t index, char *buffer, int64_t size)
{
    const struct files *f = files_of(base);

    return index >= 0 && index < base->count && snprintf(buffer, (size_t)size, "%s", f->list.paths[index]) < size;
}

static void files_destroy(stki_reader *base)
{
    struct files *f = files_of(base);

    for (int i = 0; i < CACHE; i++)
        stk_tensor_release(&f->cache[i].tensor);
    stki_mutex_fini(&f->lock);
    stki_file_list_fini(&f->list);
    stki_free(f->shapes);
    stki_free(f->note);
    stki_free(f->name);
    stki_free(base->path);
    stki_free(f);
}

static const stki_reader_ops files_ops = {
    .format = "files", .read = files_read, .shape = files_shape, .path = files_path, .destroy = files_destroy};

/* ---- opening ---- */

struct scan {
    struct files *files;
    stki_mutex lock;          /* guards the members below */
    int64_t failures, failed; /* number of files that failed; index of the first one (the file count if none) */
    stk_error error;          /* error of the first failed file */
};

static stk_status scan_one(struct files *f, int64_t index, stk_error *err)
{
    stki_reader *base = &f->base;
    stk_tensor t;
    char found[128], wanted[128];
    stk_status status = open_sample(f, index, &t, err);

    if (status != STK_OK)
        return status;
    if (t.dtype == base->dtype && t.ndim == base->ndim) {
        memcpy(f->shapes + index * base->ndim, t.shape, (size_t)base->ndim * sizeof *t.shape);
    } else {
        shape_text(t.dtype, t.ndim, t.shape, found, sizeof found);
        shape_text(base->dtype, base->ndim, base->shape, wanted, sizeof wanted);
        status = stki_fail_at(err, STK_E_MISMATCH, (stki_place){f->list.paths[index], -1, -1, found, wanted},
                              "the sample's dtype or number of axes differs from those of the first one, %s",
                              f->list.paths[f->first]);
    }
    stk_tensor_release(&t);
    return status;
}

static void note_failure(struct scan *scan, int64_t index, const stk_error *error)
{
    struct files *f = scan->files;

    stki_lock(&scan->lock);
    if (index < scan->failed) {
        scan->failed = index;
        scan->error = *error;
    }
    scan->failures++;
    stki_unlock(&scan->lock);
    if (f->base.ndim > 0)
        f->shapes[index * f->base.ndim] = -1;
}

static stk_status scan_part(void *context, void *task, int64_t index, int worker, stk_error *err)
{
    struct scan *scan = context;
    stk_error error;
    stk_status status = scan_one(scan->files, index, &error);

    (void)task, (void)worker;
    if (status == STK_OK)
        return STK_OK;
    if (stki_file_is_at_fault(status)) {
        note_failure(scan, index, &error);
        return STK_OK;
    }
    *err = error; /* not an error in the file, so the open fails */
    return status;
}

static stk_status scan_all(struct files *f, stk_error *err)
{
    struct scan scan = {.files = f, .failed = f->list.count};
    const int threads = f->list.count <= FEW ? 0 : stki_cpu_count() < SCANNERS ? stki_cpu_count() : SCANNERS;
    stk_status status;

    f->shapes = stki_zalloc_array(f->list.count * (f->base.ndim + 1), sizeof *f->shapes);
    if (!f->shapes)
        return stki_fail_memory(err, f->list.count * f->base.ndim * (int64_t)sizeof *f->shapes,
                                "the shapes of the arrays");
    stki_mutex_init(&scan.lock);
    status = stki_thread_pool_run("stoker-scan", threads, f->list.count, scan_part, &scan, err);
    stki_mutex_fini(&scan.lock);
    if (status != STK_OK || scan.failures == 0)
        return status;
    f->note = stki_format("%" PRId64 " of %" PRId64 " files cannot be read; the first error: %s", scan.failures,
                          f->list.count, scan.error.message);
    f->base.note = f->note;
    return f->note ? STK_OK : stki_fail_memory(err, (int64_t)sizeof scan.error.message, "a note");
}

/* Sets the largest size of each axis. Frees the table of shapes if all are equal. */
static void settle_shapes(struct files *f)
{
    stki_reader *base = &f->base;

    for (int64_t i = 0; i < f->list.count; i++) {
        const int64_t *shape = known_shape(f, i);

        for (int axis = 0; shape && axis < base->ndim; axis++) {
            base->variable = base->variable || shape[axis] != f->shapes[f->first * base->ndim + axis];
            base->shape[axis] = shape[axis] > base->shape[axis] ? shape[axis] : base->shape[axis];
        }
    }
    if (!base->variable) {
        stki_free(f->shapes);
        f->shapes = NULL;
    }
}

/* Opens the first readable file. If there is none, fails with the error of the first file. */
static stk_status open_first(struct files *f, stk_tensor *out, stk_error *err)
{
    stk_error other;
    stk_status status = open_sample(f, 0, out, err), next = status;

    while (stki_file_is_at_fault(next) && ++f->first < f->list.count)
        next = open_sample(f, f->first, out, &other);
    if (next == STK_OK || stki_file_is_at_fault(next))
        return next == STK_OK ? STK_OK : status;
    if (f->first > 0 && err)
        *err = other;
    return next;
}

static stk_status describe(struct files *f, stk_error *err)
{
    stki_reader *base = &f->base;
    stki_array sample = {0};
    stk_tensor first;
    stk_status status;

    if (f->list.count == 0)
        return stki_fail(err, STK_E_EMPTY, "no files to read samples from");
    status = open_first(f, &first, err);
    if (status != STK_OK)
        return status;
    base->count = f->list.count;
    base->dtype = first.dtype;
    base->ndim = first.ndim;
    memcpy(base->shape, first.shape, sizeof base->shape);
    stk_tensor_release(&first);
    status = scan_all(f, err);
    if (status != STK_OK)
        return status;
    settle_shapes(f);
    sample.dtype = base->dtype;
    sample.ndim = base->ndim;
    memcpy(sample.shape, base->shape, sizeof sample.shape);
    status = stki_array_row_major(&sample, &base->max_bytes, base->path, err);
    memcpy(base->strides, sample.strides, sizeof base->strides);
    return status == STK_OK ? stki_reader_check_size(base, f->opts.max_bytes, err) : status;
}

stk_status stki_files_open(const stki_file_list *list, stki_open_fn *open, const stki_reader_opts *opts,
                           stki_reader **out, stk_error *err)
{
    struct files *f = stki_zalloc(sizeof *f);
    stk_status status = STK_OK;

    if (!f)
        return stki_fail_memory(err, sizeof *f, "a list of files");
    stki_mutex_init(&f->lock);
    f->base.ops = &files_ops;
    f->base.access = "mmap";
    f->base.file_bytes = f->base.data_offset = -1;
    f->base.copies = true; /* each sample has its own file, so rows are not divided into parts */
    f->open = open;
    f->opts = *opts;
    f->name = opts->name ? stki_strdup(opts->name) : NULL;
    f->opts.name = f->name;
    f->opts.prefer = NULL;
    f->base.path = stki_strdup(list->count ? list->paths[0] : "");
    if (!f->base.path || (opts->name && !f->name))
        status = stki_fail_memory(err, 64, "a list of files");
    for (int64_t i = 0; i < list->count && status == STK_OK; i++)
        status = stki_file_list_add(&f->list, list->paths[i], err);
    if (status == STK_OK)
        status = describe(f, err);
    if (status != STK_OK)
        files_destroy(&f->base);
    else
        *out = &f->base;
    return status;
}
