/* array.c: see array.h. For any axis and any strides, a sample is a strided view of the mapping or of memory. Opening
 * checks that every element is inside the file; reading only checks the index. bool elements are left as they are in
 * the file: any non-zero byte is true, and the copy into a batch normalizes it to 1.
 *
 * Without a mapping, a sample is read into the worker's scratch memory. A packed sample takes one read. A scattered
 * sample is read as a single range if its span is short, otherwise element by element, which is correct but slow. Such
 * files should be mapped. */
#include "array.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "storage.h"
#include "windows.h"
#include <inttypes.h>
#include <string.h>

enum { READ_STRETCH = 1 << 20 /* a scattered sample that spans at most this many bytes is always read as one range */ };

/* ---- the array ---- */

static bool is_empty(int ndim, const int64_t *shape)
{
    for (int i = 0; i < ndim; i++)
        if (shape[i] == 0)
            return true;
    return false;
}

/* Computes the number of bytes from the first element to the end of the last one. Returns false if it exceeds 63
 * bits. */
static bool extent_of(stk_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides, int64_t *out)
{
    int64_t bytes = stk_dtype_size(dtype), step;

    if (is_empty(ndim, shape)) {
        *out = 0;
        return true;
    }
    for (int i = 0; i < ndim; i++)
        if (!stki_mul(shape[i] - 1, strides[i], &step) || !stki_add(bytes, step, &bytes))
            return false;
    *out = bytes;
    return true;
}

static int64_t bytes_behind(const stki_array *array)
{
    return array->file ? array->file->size : stk_storage_bytes(array->memory);
}

stk_status stki_array_check(const stki_array *array, const char *path, stk_error *err)
{
    int64_t extent, size = bytes_behind(array);

    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] < 0 || array->strides[i] < 0)
            return stki_fail_at(err, STK_E_CORRUPT,
                                (stki_place){path, -1, array->offset,
                                             STKI_TEXT("axis %d of %" PRId64 " elements, %" PRId64 " bytes apart", i,
                                                       array->shape[i], array->strides[i]),
                                             "non-negative numbers"},
                                "invalid array shape or strides");
    if (!extent_of(array->dtype, array->ndim, array->shape, array->strides, &extent))
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){path, -1, array->offset, NULL, "a size in bytes that fits in 63 bits"},
                            "the array is too large");
    if (!stki_inside(array->offset, extent, size))
        return stki_fail_at(
            err, STK_E_TRUNCATED,
            (stki_place){path, -1, array->offset,
                         STKI_TEXT("%" PRId64, array->offset < 0 || array->offset > size ? 0 : size - array->offset),
                         STKI_TEXT("%" PRId64 " bytes", extent)},
            "the data is truncated");
    return STK_OK;
}

stk_status stki_array_row_major(stki_array *array, int64_t *bytes, const char *path, stk_error *err)
{
    int64_t step = stk_dtype_size(array->dtype);

    for (int i = array->ndim - 1; i >= 0; i--) {
        array->strides[i] = step;
        if (!stki_mul(step, array->shape[i] > 0 ? array->shape[i] : 1, &step) || array->shape[i] < 0)
            return stki_fail_at(err, STK_E_CORRUPT,
                                (stki_place){path, -1, array->offset,
                                             STKI_TEXT("axis %d of %" PRId64, i, array->shape[i]),
                                             "sizes of at least 0 whose product fits in 63 bits"},
                                "invalid array shape");
    }
    *bytes = is_empty(array->ndim, array->shape) ? 0 : step;
    return STK_OK;
}

void stki_array_release(stki_array *array)
{
    stki_file_close(array->file);
    stk_storage_release(array->memory);
    *array = (stki_array){0};
}

static void close_file(void *context)
{
    stki_file_close(context);
}

/* A copy of the data in memory, together with its file, which is checked for changes like a mapped one. */
struct copy {
    stki_file *file;
    int64_t bytes; /* size of the data, which starts at COPY_AT */
};
enum { COPY_AT = 64 };
_Static_assert(sizeof(struct copy) <= COPY_AT, "the bytes follow the struct");

static void free_copy(void *context)
{
    struct copy *copy = context;

    stki_file_close(copy->file);
    stki_block_free(NULL, copy, COPY_AT + copy->bytes, COPY_AT);
}

static stk_status read_copy(const stki_array *array, int64_t extent, stk_storage **out, stk_error *err)
{
    struct copy *copy = extent <= INT64_MAX - COPY_AT ? stki_block_alloc(NULL, COPY_AT + extent, COPY_AT) : NULL;
    stk_status status;
    char *bytes;

    if (!copy)
        return stki_fail_memory(err, extent, array->file->path);
    bytes = (char *)copy + COPY_AT;
    *copy = (struct copy){stki_file_retain(array->file), extent};
    status = stki_file_read(array->file, array->offset, bytes, extent, err);
    if (status == STK_OK)
        status = stk_storage_wrap(NULL, bytes, extent, free_copy, copy, out, err);
    if (status != STK_OK)
        free_copy(copy);
    return status;
}

static stk_status storage_of(const stki_array *array, int64_t extent, stk_storage **out, int64_t *offset,
                             stk_error *err)
{
    stk_status status;

    *offset = 0;
    if (!array->file) {
        stk_storage_retain(array->memory);
        *out = array->memory;
        *offset = array->offset;
        return STK_OK;
    }
    if (array->file->map) {
        void *data = (char *)(uintptr_t)array->file->map + array->offset;
        status = stk_storage_wrap(NULL, data, extent, close_file, stki_file_retain(array->file), out, err);
        if (status != STK_OK)
            stki_file_close(array->file);
        else
            (*out)->mapping = true;
        return status;
    }
    return read_copy(array, extent, out, err);
}

const stki_file *stki_array_file(const stk_tensor *tensor)
{
    const stk_storage *storage = tensor->storage;

    if (!storage)
        return NULL;
    return storage->free_fn == close_file  ? storage->context
           : storage->free_fn == free_copy ? ((const struct copy *)storage->context)->file
                                           : NULL;
}

static uint32_t flags_of(const stki_array *array)
{
    return STK_TENSOR_READONLY | (array->swapped ? STK_TENSOR_SWAPPED : 0);
}

stk_status stki_array_tensor(const stki_array *array, const char *path, stk_tensor *out, stk_error *err)
{
    int64_t extent, offset;
    stk_storage *storage;
    stk_tensor tensor;
    stk_status status = stki_array_check(array, path, err);

    if (status != STK_OK)
        return status;
    (void)extent_of(array->dtype, array->ndim, array->shape, array->strides,
                    &extent); /* cannot fail, because stki_array_check succeeded */
    status = storage_of(array, extent, &storage, &offset, err);
    if (status != STK_OK)
        return status;
    status =
        stk_tensor_from_storage(storage, offset, array->dtype, array->ndim, array->shape, array->strides, &tensor, err);
    stk_storage_release(storage);
    if (status != STK_OK)
        return status;
    tensor.flags |= flags_of(array);
    *out = tensor;
    return STK_OK;
}

/* ---- samples ---- */

struct array_reader {
    stki_reader base; /* first member */
    stki_reader_ops ops;
    stki_array array;
    stki_file_rows rows;
    bool scattered;              /* a sample is not contiguous, so `rows` is not used */
    int64_t extent;              /* bytes from the first to the last byte of a sample */
    stk_tensor sample;           /* describes every sample, except for its address */
    bool stretch;                /* a scattered sample is read as one range, including the bytes between its elements */
    int64_t steps[STK_MAX_DIMS]; /* strides of a sample in the file; base.strides are the strides of the result */
};

static const struct array_reader *reader_of(const stki_reader *base)
{
    return (const struct array_reader *)(const void *)base;
}

static stk_status read_in_place(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                                stk_tensor *out, stk_error *err)
{
    (void)want, (void)scratch;
    if (index < 0 || index >= base->count)
        return stki_reader_check_index(base, index, err);
    *out = reader_of(base)->sample;
    out->data = (char *)(uintptr_t)base->base + index * base->sample_stride;
    return STK_OK;
}

/* Reads the elements of a sample one by one, packed row-major. */
static stk_status read_elements(const struct array_reader *r, int64_t offset, char *to, stk_error *err)
{
    const stki_reader *base = &r->base;
    int64_t size = stk_dtype_size(base->dtype), at[STK_MAX_DIMS] = {0};

    for (int64_t done = 0; done < base->max_bytes; done += size) {
        stk_status status = stki_file_read(r->array.file, offset, to + done, size, err);
        if (status != STK_OK)
            return status;
        for (int axis = base->ndim - 1; axis >= 0; axis--) { /* the next index in row-major order */
            offset += r->steps[axis];
            if (++at[axis] < base->shape[axis])
                break;
            offset -= r->steps[axis] * base->shape[axis];
            at[axis] = 0;
        }
    }
    return STK_OK;
}

static stk_status read_positional(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                                  stk_tensor *out, stk_error *err)
{
    const struct array_reader *r = reader_of(base);
    int64_t bytes = r->stretch ? r->extent : base->max_bytes, offset;
    stk_status status;

    (void)want;
    if (index < 0 || index >= base->count)
        return stki_reader_check_index(base, index, err);
    offset = r->array.offset + index * base->sample_stride;
    status = stki_scratch_reserve(scratch, bytes, err);
    if (status == STK_OK && bytes > 0)
        status = r->scattered && !r->stretch ? read_elements(r, offset, scratch->data, err)
                                             : stki_file_read(r->array.file, offset, scratch->data, bytes, err);
    if (status != STK_OK)
        return stki_fail_record(err, status, index);
    *out = r->sample;
    out->data = scratch->data;
    return STK_OK;
}

static void will_need(const stki_reader *base, const int64_t *indices, int64_t count)
{
    const struct array_reader *r = reader_of(base);

    if (!r->scattered) /* the pages of a scattered sample are spread over the file */
        stki_file_will_need_rows(r->array.file, &r->rows, indices, count);
}

static int place(const stki_reader *base, int64_t index, stki_range *out)
{
    const struct array_reader *r = reader_of(base);

    out[0] = (stki_range){r->array.offset + index * base->sample_stride, r->extent};
    return 1;
}

static void destroy(stki_reader *base)
{
    struct array_reader *r = (struct array_reader *)(void *)base;

    stki_array_release(&r->array);
    stki_free(base->path);
    stki_free(r);
}

static int64_t all_filled(const stki_reader *base, int64_t index)
{
    return index < base->count ? base->count : index;
}

static stk_status check_axis(const stki_array *array, const char *path, const stki_reader_opts *opts, stk_error *err)
{
    if (array->ndim == 0)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){path, -1, -1, "an array without axes (a scalar)",
                                         "at least one axis, along which samples are counted"},
                            "the array cannot be divided into samples");
    if (opts->axis < 0 || opts->axis >= array->ndim)
        return stki_fail_at(err, STK_E_CONFIG,
                            (stki_place){path, -1, -1, STKI_TEXT("axis %d", opts->axis),
                                         STKI_TEXT("0 to %d, because the array has %d %s", array->ndim - 1, array->ndim,
                                                   array->ndim == 1 ? "axis" : "axes")},
                            "source.axis: no such axis");
    return stki_array_check(array, path, err);
}

/* Sets the axes of a sample and the distance between samples. */
static stk_status describe_samples(struct array_reader *r, const char *path, const stki_reader_opts *opts,
                                   stk_error *err)
{
    const stki_array *array = &r->array;
    stki_reader *base = &r->base;
    const int64_t dilation = opts->window_dilation > 0 ? opts->window_dilation : 1;
    int64_t along = array->shape[opts->axis], step = 1;

    base->count = along;
    if (opts->window_length > 0) {
        base->windows = true;
        base->longest_group = along;
        step = opts->window_stride > 0 ? opts->window_stride : opts->window_length;
        base->count = stki_window_count(along, opts->window_length, dilation, step);
    }
    base->ndim = 0;
    for (int i = 0; i < array->ndim; i++) {
        if (i == opts->axis && opts->window_length <= 0)
            continue;
        base->shape[base->ndim] = i == opts->axis ? opts->window_length : array->shape[i];
        base->strides[base->ndim] = array->strides[i];
        if (i == opts->axis && base->count > 0 && opts->window_length > 1) /* otherwise the product could overflow */
            base->strides[base->ndim] *= dilation;
        base->ndim++;
    }
    if (base->count <= 1)
        step = 0; /* the step is unused, and the product below could overflow */
    if (is_empty(base->ndim, base->shape))
        step = 0; /* all empty samples have the same address */
    if (!stki_mul(step, array->strides[opts->axis], &base->sample_stride))
        return stki_fail_at(err, STK_E_CONFIG, (stki_place){path, -1, -1, NULL, NULL},
                            "source.window: the distance between two windows in bytes does not fit in 63 bits");
    return STK_OK;
}

static stk_status describe(struct array_reader *r, const char *format, const char *path, const stki_reader_opts *opts,
                           stk_error *err)
{
    const stki_array *array = &r->array;
    stki_reader *base = &r->base;
    stki_array sample = {.dtype = array->dtype};
    stk_status status = describe_samples(r, path, opts, err);
    bool packed = true;

    if (status != STK_OK)
        return status;
    sample.ndim = base->ndim;
    memcpy(sample.shape, base->shape, sizeof sample.shape);
    status = stki_array_row_major(&sample, &base->max_bytes, path, err);
    if (status != STK_OK)
        return status;
    memcpy(r->steps, base->strides, sizeof r->steps);
    for (int i = 0; i < base->ndim; i++)
        packed = packed && (base->shape[i] <= 1 || base->strides[i] == sample.strides[i]);
    if (base->count > 0) /* otherwise a window could be longer than the array */
        (void)extent_of(array->dtype, base->ndim, base->shape, base->strides, &r->extent);
    r->scattered = !packed && base->max_bytes > 0;
    r->stretch = r->scattered && (r->extent <= READ_STRETCH || r->extent / 4 <= base->max_bytes);
    r->rows = (stki_file_rows){array->offset, base->sample_stride, base->max_bytes};
    base->ops = &r->ops;
    base->dtype = array->dtype;
    base->swapped = array->swapped;
    base->access = array->file ? array->file->access : "memory";
    base->note = array->file ? array->file->note : NULL;
    base->file_bytes = array->file ? array->file->size : -1;
    base->data_offset = array->file ? array->offset : -1;
    base->copies = array->file && !array->file->map;
    if (base->copies && !r->stretch) /* every sample is returned packed */
        memcpy(base->strides, sample.strides, sizeof base->strides);
    base->file = array->file;
    base->place = place;
    base->placer = base;
    if (array->file && array->file->map)
        base->base = (const char *)array->file->map + array->offset;
    else if (!array->file)
        base->base = (const char *)stk_storage_data(array->memory) + array->offset;
    r->ops = (stki_reader_ops){.format = format,
                               .read = base->copies ? read_positional : read_in_place,
                               .will_need = array->file ? will_need : NULL,
                               .filled_until = array->fill ? all_filled : NULL,
                               .destroy = destroy};
    r->sample = (stk_tensor){.dtype = array->dtype, .ndim = base->ndim, .flags = flags_of(array)};
    memcpy(r->sample.shape, base->shape, sizeof base->shape);
    memcpy(r->sample.strides, base->strides, sizeof base->strides);
    return STK_OK;
}

stk_status stki_array_reader(const stki_array *array, const char *format, const char *path,
                             const stki_reader_opts *opts, stki_reader **out, stk_error *err)
{
    static const stki_reader_opts defaults = {0};
    struct array_reader *r;
    stk_status status;

    opts = opts ? opts : &defaults;
    status = check_axis(array, path, opts, err);
    if (status != STK_OK)
        return status;
    r = stki_zalloc(sizeof *r);
    if (!r)
        return stki_fail_memory(err, sizeof *r, path);
    r->array = *array;
    if (array->file)
        (void)stki_file_retain(array->file);
    if (array->memory)
        stk_storage_retain(array->memory);
    r->base.path = stki_strdup(path);
    status =
        r->base.path ? describe(r, format, path, opts, err) : stki_fail_memory(err, (int64_t)strlen(path) + 1, path);
    if (status != STK_OK)
        destroy(&r->base);
    else
        *out = &r->base;
    return status;
}
