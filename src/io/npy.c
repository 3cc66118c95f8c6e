/* npy.c: an .npy file as samples along its first axis. The file is one array, so sample i is array[i, ...]: a view of
 * the mapping, whatever the order, since Fortran order is only a matter of strides. Opening proved that every element
 * lies inside the file; the index is the only thing left to distrust. bool elements are the file's bytes: any that is
 * not 0 is true, and the copy that delivers them makes it 1.
 *
 * Without a mapping a sample is read into the worker's scratch. In C order that is one read. In Fortran order its
 * elements are as far apart as the array has samples: a small array is read whole each time, a large one element by
 * element (correct, and slow; map such files). */
#include "npy.h"
#include "allocate.h"
#include "error.h"
#include "file.h"
#include "npy_header.h"
#include "storage.h"
#include <inttypes.h>
#include <string.h>

enum { READ_WHOLE = 1 << 20 /* bytes of an array in Fortran order that are read at once for one sample */ };

struct npy {
    stki_reader base; /* first member */
    stki_file *file;
    stki_npy_header header;
    stki_rows rows;               /* C order */
    bool scattered;               /* Fortran order with more than one element a sample: rows says nothing */
    stk_tensor sample;            /* all of a sample but its address */
    int64_t packed[STK_MAX_DIMS]; /* row-major strides of one sample */
};

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static stk_status read_header(const stki_file *file, const stki_reader_opts *opts, stki_npy_header *out, stk_error *err)
{
    char head[STKI_NPY_PREFIX] = {0}, *text;
    stki_npy_prefix prefix;
    stk_status status;

    status = stki_file_read(file, 0, head, file->size < STKI_NPY_PREFIX ? file->size : STKI_NPY_PREFIX, err);
    if (!status)
        status = stki_npy_read_prefix(head, file->size, opts->header_limit, file->path, &prefix, err);
    if (status)
        return status;
    text = stki_zalloc(prefix.text_bytes);
    if (!text)
        return stki_fail_memory(err, prefix.text_bytes, "an npy header");
    status = stki_file_read(file, prefix.text_offset, text, prefix.text_bytes, err);
    if (!status)
        status = stki_npy_read_header(&prefix, text, file->size, opts->alias_dtype, file->path, out, err);
    stki_free(text);
    return status;
}

static stk_status open_file(const char *path, const stki_reader_opts *opts, stki_file **file, stki_npy_header *header,
                            stk_error *err)
{
    static const stki_reader_opts defaults = {0};
    stk_status status;

    opts = opts ? opts : &defaults;
    status = stki_file_open(path, opts->access, opts->pattern, file, err);
    if (status)
        return status;
    status = read_header(*file, opts, header, err);
    if (status) {
        stki_file_close(*file);
        *file = NULL;
    }
    return status;
}

/* ---- samples ---------------------------------------------------------------------------------------------------- */

static const struct npy *npy_of(const stki_reader *base)
{
    return (const struct npy *)(const void *)base;
}

static stk_status fail_index(const stki_reader *base, int64_t index, stk_error *err)
{
    return stki_fail_at(err, STK_E_RANGE,
                        (stki_place){base->path, index, -1, STKI_TEXT("sample %" PRId64, index),
                                     STKI_TEXT("0 to %" PRId64, base->count - 1)},
                        "no such sample");
}

static stk_status npy_read_mapped(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                                  stk_tensor *out, stk_error *err)
{
    (void)want, (void)scratch;
    if (index < 0 || index >= base->count)
        return fail_index(base, index, err);
    *out = npy_of(base)->sample;
    out->data = (char *)(uintptr_t)base->base + index * base->sample_stride;
    return STK_OK;
}

static stk_status name_record(stk_status status, int64_t index, stk_error *err)
{
    if (status && err)
        err->record = index;
    return status;
}

/* The elements of one sample, one read each, packed row-major. */
static stk_status read_elements(const struct npy *npy, int64_t index, char *to, stk_error *err)
{
    const stki_reader *base = &npy->base;
    int64_t size = stk_dtype_size(base->dtype), at[STK_MAX_DIMS] = {0};
    int64_t offset = npy->header.data_offset + index * npy->header.strides[0];

    for (int64_t done = 0; done < base->max_bytes; done += size) {
        stk_status status = stki_file_read(npy->file, offset, to + done, size, err);
        if (status)
            return status;
        for (int axis = base->ndim - 1; axis >= 0; axis--) { /* the next index in row-major order */
            offset += base->strides[axis];
            if (++at[axis] < base->shape[axis])
                break;
            offset -= base->strides[axis] * base->shape[axis];
            at[axis] = 0;
        }
    }
    return STK_OK;
}

static stk_status npy_read_positional(const stki_reader *base, int64_t index, const stki_want *want,
                                      stki_scratch *scratch, stk_tensor *out, stk_error *err)
{
    const struct npy *npy = npy_of(base);
    bool whole = npy->scattered && npy->header.data_bytes <= READ_WHOLE;
    stk_status status;

    (void)want;
    if (index < 0 || index >= base->count)
        return fail_index(base, index, err);
    status = stki_scratch_reserve(scratch, whole ? npy->header.data_bytes : base->max_bytes, err);
    if (status)
        return name_record(status, index, err);
    if (whole)
        status = stki_file_read(npy->file, npy->header.data_offset, scratch->data, npy->header.data_bytes, err);
    else if (npy->scattered)
        status = read_elements(npy, index, scratch->data, err);
    else
        status =
            stki_file_read(npy->file, npy->rows.offset + index * npy->rows.stride, scratch->data, npy->rows.bytes, err);
    if (status)
        return name_record(status, index, err);
    *out = npy->sample;
    out->data = (char *)scratch->data + (whole ? index * npy->header.strides[0] : 0);
    if (!whole)
        memcpy(out->strides, npy->packed, sizeof npy->packed);
    return STK_OK;
}

static void npy_will_need(const stki_reader *base, const int64_t *indices, int64_t count)
{
    const struct npy *npy = npy_of(base);

    if (!npy->scattered) /* else each sample touches every page of the file */
        stki_file_will_need_rows(npy->file, &npy->rows, indices, count);
}

static void npy_destroy(stki_reader *base)
{
    struct npy *npy = (struct npy *)(void *)base;

    stki_file_close(npy->file);
    stki_free(base->path);
    stki_free(npy);
}

static const stki_reader_ops mapped_ops = {
    .format = "npy", .read = npy_read_mapped, .will_need = npy_will_need, .destroy = npy_destroy};
static const stki_reader_ops positional_ops = {
    .format = "npy", .read = npy_read_positional, .will_need = npy_will_need, .destroy = npy_destroy};

static void describe(struct npy *npy)
{
    const stki_npy_header *h = &npy->header;
    stki_reader *base = &npy->base;
    int64_t size = stk_dtype_size(h->dtype), bytes = size;
    bool empty = false;

    base->ops = npy->file->map ? &mapped_ops : &positional_ops;
    base->count = h->shape[0];
    base->dtype = h->dtype;
    base->ndim = h->ndim - 1;
    base->swapped = h->swapped;
    base->copies = !npy->file->map;
    base->access = npy->file->access;
    base->note = npy->file->note;
    base->file_bytes = npy->file->size;
    base->data_offset = h->data_offset;
    for (int i = base->ndim - 1; i >= 0; i--) {
        base->shape[i] = h->shape[i + 1];
        base->strides[i] = h->strides[i + 1];
        npy->packed[i] = bytes;
        empty = empty || base->shape[i] == 0;
        bytes *= base->shape[i] ? base->shape[i] : 1; /* a part of a product that was checked */
    }
    base->max_bytes = empty ? 0 : bytes;
    base->sample_stride = empty ? 0 : h->strides[0]; /* samples without bytes all lie at the data's first byte */
    npy->scattered = h->fortran && base->max_bytes > size && base->count > 1;
    npy->rows = (stki_rows){h->data_offset, base->sample_stride, base->max_bytes};
    if (npy->file->map)
        base->base = (const char *)npy->file->map + h->data_offset;
    npy->sample = (stk_tensor){
        .dtype = h->dtype, .ndim = base->ndim, .flags = STK_TENSOR_READONLY | (h->swapped ? STK_TENSOR_SWAPPED : 0)};
    memcpy(npy->sample.shape, base->shape, sizeof base->shape);
    memcpy(npy->sample.strides, base->strides, sizeof base->strides);
}

stk_status stki_npy_open(const char *path, const stki_reader_opts *opts, stki_reader **out, stk_error *err)
{
    struct npy *npy = stki_zalloc(sizeof *npy);
    stk_status status;

    if (!npy)
        return stki_fail_memory(err, sizeof *npy, path);
    npy->base.path = stki_strdup(path);
    status = npy->base.path ? open_file(path, opts, &npy->file, &npy->header, err)
                            : stki_fail_memory(err, (int64_t)strlen(path) + 1, path);
    if (!status && npy->header.ndim == 0)
        status = stki_fail_at(
            err, STK_E_UNSUPPORTED,
            (stki_place){path, -1, -1, "an array of 0 axes (one number)", "a first axis to count samples along"},
            "no samples to read");
    if (status) {
        npy_destroy(&npy->base);
        return status;
    }
    describe(npy);
    *out = &npy->base;
    return STK_OK;
}

/* ---- whole arrays ----------------------------------------------------------------------------------------------- */

static void close_file(void *context)
{
    stki_file_close(context);
}

/* The data as a storage that owns `file` (mapped) or a copy of the data. `file` is taken over in any case. */
static stk_status make_storage(stki_file *file, const stki_npy_header *header, stk_storage **out, stk_error *err)
{
    stk_status status;

    if (file->map) {
        void *data = (char *)(uintptr_t)file->map + header->data_offset;
        status = stk_storage_wrap(NULL, data, header->data_bytes, close_file, file, out, err);
        if (status)
            stki_file_close(file);
        else
            (*out)->mapping = true;
        return status;
    }
    status = stk_storage_create(NULL, header->data_bytes, out, err);
    if (!status) {
        status = stki_file_read(file, header->data_offset, stk_storage_data(*out), header->data_bytes, err);
        if (status)
            stk_storage_release(*out);
    }
    stki_file_close(file);
    return status;
}

stk_status stki_npy_open_array(const char *path, const stki_reader_opts *opts, stk_tensor *out, stk_error *err)
{
    stki_file *file;
    stki_npy_header header;
    stk_storage *storage;
    stk_tensor tensor;
    stk_status status = open_file(path, opts, &file, &header, err);

    if (status)
        return status;
    status = make_storage(file, &header, &storage, err);
    if (status)
        return status;
    status = stk_tensor_from_storage(storage, 0, header.dtype, header.ndim, header.shape, header.strides, &tensor, err);
    stk_storage_release(storage);
    if (status)
        return status;
    tensor.flags |= STK_TENSOR_READONLY | (header.swapped ? STK_TENSOR_SWAPPED : 0);
    *out = tensor;
    return STK_OK;
}
