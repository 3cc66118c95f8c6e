/* hdf5_array.c: one HDF5 data set as an array. Contiguous data is used in place; data that was never written is
 * represented by one fill value with strides of 0; everything else is decoded into memory. See hdf5_reader.h. */
#include "checked.h"
#include "error.h"
#include "hdf5_chunks.h"
#include "hdf5_reader.h"
#include "source_common.h"
#include <inttypes.h>
#include <string.h>

stk_status stki_hdf5_check_limit(const stki_hdf5_dataset *d, const stki_reader_opts *opts, int64_t bytes,
                                 const char *what, stk_error *err)
{
    int64_t limit = stki_memory_limit(opts);

    if (bytes <= limit)
        return STK_OK;
    return stki_fail_at(err, STK_E_LIMIT,
                        (stki_place){d->path, -1, -1, STKI_TEXT("%" PRId64 " bytes", bytes),
                                     STKI_TEXT("at most %" PRId64 " (memory_limit)", limit)},
                        "%s: %s is too large to be decoded into memory", d->name, what);
}

/* Creates an array whose elements all share one fill value. */
static stk_status array_of_fill(const stki_hdf5_dataset *d, stki_array *out, stk_error *err)
{
    stk_status status = stk_storage_create(NULL, d->type.bytes, &out->memory, err);

    if (status != STK_OK)
        return status;
    memcpy(stk_storage_data(out->memory), d->fill, (size_t)d->type.bytes);
    for (int i = 0; i < d->rank; i++)
        out->strides[i] = 0;
    out->fill = true;
    return STK_OK;
}

static stk_status array_of_chunks(stki_hdf5_dataset *d, stki_file *file, const stki_reader_opts *opts, void *to,
                                  stk_error *err)
{
    stki_hdf5_chunks *chunks;
    stki_scratch scratch;
    const int64_t start[STK_MAX_DIMS] = {0};
    stk_status status = stki_hdf5_chunks_open(d, file, opts, &chunks, err);

    if (status != STK_OK)
        return status;
    stki_scratch_init(&scratch);
    status = stki_scratch_reserve(&scratch, stki_hdf5_chunks_read_room(chunks), err);
    if (status == STK_OK)
        status = stki_hdf5_chunks_read(chunks, start, d->shape, false, to, scratch.data, err);
    stki_scratch_fini(&scratch);
    stki_hdf5_chunks_destroy(chunks);
    return status;
}

static stk_status array_in_memory(stki_hdf5_dataset *d, stki_file *file, const stki_reader_opts *opts, int64_t bytes,
                                  stki_array *out, stk_error *err)
{
    const int64_t start[STK_MAX_DIMS] = {0};
    stk_status status = stki_hdf5_check_limit(d, opts, bytes, "the whole data set", err);

    if (status == STK_OK)
        status = stki_hdf5_dataset_check_sources(d, err);
    if (status == STK_OK)
        status = stki_hdf5_dataset_check_room(d, err);
    if (status == STK_OK)
        status = stk_storage_create(NULL, bytes, &out->memory, err);
    if (status != STK_OK)
        return status;
    status = stki_hdf5_chunks_can(d) ? array_of_chunks(d, file, opts, stk_storage_data(out->memory), err)
                                     : STK_E_UNSUPPORTED;
    if (status == STK_E_UNSUPPORTED)
        status = stki_hdf5_dataset_read(d, start, d->shape, stk_storage_data(out->memory), bytes, err);
    if (status != STK_OK) {
        stk_storage_release(out->memory);
        out->memory = NULL;
    }
    return status;
}

stk_status stki_hdf5_array_of(stki_hdf5_dataset *d, stki_file *file, const stki_reader_opts *opts, stki_array *out,
                              stk_error *err)
{
    stki_array array = {.dtype = d->type.dtype, .swapped = d->type.swapped, .ndim = d->ndim};
    int64_t bytes;
    const bool varying = d->type.varying != STKI_HDF5_SAME;
    bool contiguous = d->layout == STKI_HDF5_CONTIGUOUS && d->type.raw && !d->live;
    stk_status status;

    if (varying)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){d->path, -1, -1, "elements of different lengths", "one array"},
                            "%s cannot be read as an array", d->name);
    memcpy(array.shape, d->shape, sizeof array.shape);
    status = stki_array_row_major(&array, &bytes, d->path, err);
    if (status != STK_OK)
        return status;
    if (contiguous && bytes > 0 && d->offset >= 0) {
        array.offset = d->offset;
        if (file)
            array.file = stki_file_retain(file);
        else
            status = stki_file_open(d->path, opts->access, opts->pattern, &array.file, err);
        if (status == STK_OK)
            status = stki_array_check(&array, d->path, err);
        if (status != STK_OK) {
            stki_file_close(array.file);
            return status;
        }
    } else {
        status = contiguous ? array_of_fill(d, &array, err) : array_in_memory(d, file, opts, bytes, &array, err);
    }
    if (status == STK_OK)
        *out = array;
    return status;
}
