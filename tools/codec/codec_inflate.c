/* codec_inflate.c: measures libdeflate alone on chunks sampled from an entire HDF5 data set. The shuffle and checksum
 * filters, which stoker also decodes, are excluded, so that the figure is only the decompression that every loader has
 * to do. */
#include "codec_run.h"
#include "error.h"
#include "file.h"
#include "hdf5_chunks.h"
#include "hdf5_container.h"
#include "hdf5_dataset.h"
#include "hdf5_file.h"
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *codec_deflate_version(void)
{
    return "libdeflate " LIBDEFLATE_VERSION_STRING;
}

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *codec_hdf5_version(void)
{
    return "HDF5 " TEXT(H5_VERS_MAJOR) "." TEXT(H5_VERS_MINOR) "." TEXT(H5_VERS_RELEASE);
}

static void *begin(void)
{
    return libdeflate_alloc_decompressor();
}

static bool unpack(void *state, const struct codec_item *item, void *to)
{
    size_t got = 0;

    return libdeflate_zlib_decompress(state, item->bytes, (size_t)item->count, to, (size_t)item->unpacked, &got) ==
               LIBDEFLATE_SUCCESS &&
           got == (size_t)item->unpacked;
}

static void end(void *state)
{
    libdeflate_free_decompressor(state);
}

static const struct codec_kind deflate_kind = {begin, unpack, end};

/* Whether deflate is the last filter of the pipeline. */
static bool is_deflated(const stki_hdf5_pipeline *pipeline)
{
    return pipeline->count > 0 && pipeline->filters[pipeline->count - 1].id == STKI_HDF5_DEFLATE;
}

static stk_status add_chunk(const stki_file *file, const stki_hdf5_grid *grid, const stki_hdf5_chunk *chunk,
                            struct codec_items *items, stk_error *err)
{
    void *bytes = malloc(chunk->bytes > 0 ? chunk->bytes : 1);
    stk_status status = bytes ? stki_file_read(file, chunk->address, bytes, chunk->bytes, err)
                              : stki_fail_memory(err, chunk->bytes, "a chunk");

    if (status == STK_OK)
        status = codec_items_add(items, bytes, chunk->bytes, grid->chunk_bytes, err);
    free(bytes);
    return status;
}

static stk_status collect(const struct codec_ask *ask, const stki_hdf5_chunks *chunks, const char *path,
                          struct codec_items *items, struct codec_limit *out, stk_error *err)
{
    const int64_t step = (chunks->table.count + CODEC_ITEMS - 1) / CODEC_ITEMS;
    int64_t unpacked = 0;
    stki_file *file = NULL;
    stk_status status;

    if (chunks->table.count == 0) {
        snprintf(out->missing, sizeof out->missing, "%.180s: no chunks of the data set have been written", path);
        return STK_OK;
    }
    status = stki_file_open(path, STKI_ACCESS_PREAD, STKI_PATTERN_RANDOM, &file, err);
    for (int64_t i = 0;
         i < chunks->table.count && status == STK_OK && unpacked < codec_most_bytes(ask) && !codec_stopped(ask, out);
         i += step) {
        const stki_hdf5_chunk *chunk = &chunks->table.chunks[i];
        if (chunk->mask != 0)
            continue; /* a filter was skipped for this chunk */
        unpacked += chunks->grid.chunk_bytes;
        status = add_chunk(file, &chunks->grid, chunk, items, err);
    }
    stki_file_close(file);
    if (status == STK_OK && items->count == 0 && !out->missing[0])
        snprintf(out->missing, sizeof out->missing, "none of the sampled chunks is compressed with deflate");
    return status;
}

/* Returns the number of samples per chunk. Samples are the rows of axis 0. If a row spans several chunks along the
 * other axes, each chunk counts as a fraction of a sample. */
static double samples_a_chunk(const stki_hdf5_grid *grid)
{
    double samples = (double)grid->chunk[0];

    for (int i = 1; i < grid->ndim; i++)
        samples /= (double)grid->per[i];
    return samples;
}

static stk_status measure(stki_hdf5_dataset *dataset, const struct codec_ask *ask, struct codec_items *items,
                          struct codec_limit *out, stk_error *err)
{
    const stki_reader_opts opts = {0};
    stki_hdf5_chunks *chunks = NULL;
    double chunks_per_s = 0;
    stk_status status;

    if (dataset->layout != STKI_HDF5_CHUNKED || !is_deflated(&dataset->pipeline) || !stki_hdf5_chunks_can(dataset)) {
        snprintf(out->missing, sizeof out->missing, "%.100s is not stored in chunks compressed with deflate",
                 dataset->name);
        return STK_OK;
    }
    status = stki_hdf5_chunks_open(dataset, NULL, &opts, &chunks, err);
    if (status != STK_OK)
        return status;
    status = collect(ask, chunks, dataset->path, items, out, err);
    if (status == STK_OK && !out->missing[0])
        status = codec_time(items, &deflate_kind, ask, &chunks_per_s, out, err);
    out->samples_per_s = chunks_per_s * samples_a_chunk(&chunks->grid);
    stki_hdf5_chunks_destroy(chunks);
    return status;
}

/* Opens the data set `name`. If it does not exist and the file has only one data set, opens that one, as the loader
 * does for a field. */
static stk_status open_dataset(stki_hdf5_file *file, const char *path, const char *name, stki_hdf5_dataset **out,
                               stk_error *err)
{
    const stki_reader_opts opts = {0};
    stki_container *all = NULL;
    stk_status status = stki_hdf5_dataset_open(file, name, out, err);

    if (status != STK_E_NOT_FOUND || stki_hdf5_container_open(path, &opts, &all, NULL) != STK_OK)
        return status;
    if (all->member_count == 1)
        status = stki_hdf5_dataset_open(file, all->members[0].name, out, err);
    stki_container_release(all);
    return status;
}

stk_status codec_inflate(const struct codec_ask *ask, struct codec_limit *out, stk_error *err)
{
    struct codec_items *items = calloc(1, sizeof *items);
    const stki_reader_opts opts = {0};
    stki_hdf5_file *file = NULL;
    stki_hdf5_dataset *dataset = NULL;
    stk_error why;
    stk_status status;

    memset(out, 0, sizeof *out);
    if (!items)
        return stki_fail_memory(err, sizeof *items, "chunks to unpack");
    status = stki_hdf5_file_open(ask->paths[0], &opts, &file, &why);
    if (status == STK_OK)
        status = open_dataset(file, ask->paths[0], ask->name, &dataset, &why);
    if (status == STK_OK)
        status = measure(dataset, ask, items, out, &why);
    stki_hdf5_dataset_release(dataset);
    stki_hdf5_file_release(file);
    codec_items_fini(items);
    free(items);
    if (status == STK_E_MEMORY) {
        if (err)
            *err = why;
        return status;
    }
    if (status != STK_OK)
        snprintf(out->missing, sizeof out->missing, "%.255s", why.message);
    return STK_OK;
}
