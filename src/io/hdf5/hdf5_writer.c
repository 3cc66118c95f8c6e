/* hdf5_writer.c: writes HDF5 files, one data set at a time (writer.h). The library creates the file and all metadata;
 * elements are written without it.
 *
 * The library allocates contiguous data when the data set is created, at a multiple of 4096; elements are then written
 * directly to that part of the file. Chunks are shuffled and deflated by a thread pool (hdf5_pack.h) and passed to the
 * library in their stored form (H5Dwrite_chunk). An array of unknown length grows chunk by chunk to exactly the number
 * of rows, so the library never has to decode a chunk.
 *
 * The library writes to an output (hdf5_sink.h), which has a temporary name until it is complete. */
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "hdf5_container.h"
#include "hdf5_pack.h"
#include "hdf5_sink.h"
#include "hdf5_type.h"
#include "thread.h"
#include <inttypes.h>
#include <string.h>

enum { PAGE = 4096, CHUNK_BYTES = 512 << 10, HELD_BYTES = 256 << 10 };

struct hdf5_writer {
    stki_writer base; /* first member */
    stki_hdf5_sink sink;
    stki_writer_opts opts;
    hid_t file;
    stk_status failed; /* the first failure; nothing is written after it */
    /* the array being written */
    hid_t dataset;
    char *name;
    int ndim;                    /* number of axes, including the first; 0: a scalar */
    hsize_t shape[STK_MAX_DIMS]; /* shape[0]: number of rows so far if the array grows */
    hsize_t chunk[STK_MAX_DIMS];
    int64_t rows, expected; /* number of rows appended; number of rows expected, -1: unknown */
    int64_t row_bytes, item_bytes, offset, chunk_bytes;
    bool chunked, deflated;
    int64_t in_room; /* number of rows in the current chunk */
    int64_t written_chunks;
    char *room;               /* memory of the current chunk */
    stki_hdf5_packer *packer; /* compressed chunks */
    char *plain;              /* uncompressed: the chunk's memory; contiguous: HELD_BYTES to collect short appends */
    int64_t plain_bytes, held, placed; /* contiguous: number of bytes pending in `plain`, and number already written */
};

static struct hdf5_writer *writer_of(stki_writer *base)
{
    return (struct hdf5_writer *)(void *)base;
}

static const char *path_of(const struct hdf5_writer *w)
{
    return stki_output_path(w->sink.output);
}

/* Checks for failed writes, which the library does not report. Called after calls to the library. */
static stk_status check_sink(const struct hdf5_writer *w, stk_status status, stk_error *err)
{
    if (w->sink.status == STK_OK)
        return status;
    if (err)
        *err = w->sink.err;
    return w->sink.status;
}

static stk_status note_failure(struct hdf5_writer *w, stk_status status)
{
    if (status != STK_OK && w->failed == STK_OK)
        w->failed = status;
    return status;
}

static stk_status misuse(const struct hdf5_writer *w, const char *what, stk_error *err)
{
    return stki_fail_at(err, STK_E_BAD_ARG, (stki_place){path_of(w), -1, -1, NULL, NULL}, "%s", what);
}

static stk_status check_usable(const struct hdf5_writer *w, bool in_array, stk_error *err)
{
    if (w->failed != STK_OK)
        return stki_fail_at(err, w->failed, (stki_place){path_of(w), -1, -1, NULL, NULL}, "an earlier write failed");
    if (in_array != (w->dataset >= 0))
        return misuse(w, in_array ? "no array has been started" : "an array is not complete", err);
    return STK_OK;
}

/* ---- starting an array ---- */

/* Chooses chunks of about half a megabyte, unless the options give the number of rows. */
static int64_t choose_chunk_rows(const struct hdf5_writer *w)
{
    int64_t rows = w->base.chunk_rows > 0        ? w->base.chunk_rows
                   : w->row_bytes >= CHUNK_BYTES ? 1
                   : w->row_bytes > 0            ? CHUNK_BYTES / w->row_bytes
                                                 : 1;

    if (w->expected >= 0 && rows > w->expected)
        rows = w->expected > 0 ? w->expected : 1;
    return rows;
}

static stk_status choose_chunks(struct hdf5_writer *w, stk_error *err)
{
    int64_t rows = choose_chunk_rows(w);

    w->chunk[0] = (hsize_t)rows;
    for (int i = 1; i < w->ndim; i++)
        w->chunk[i] = w->shape[i] > 0 ? w->shape[i] : 1;
    if (!stki_mul(rows, w->row_bytes, &w->chunk_bytes) || w->chunk_bytes > UINT32_MAX - PAGE)
        return stki_fail_at(err, STK_E_LIMIT,
                            (stki_place){path_of(w), -1, -1,
                                         STKI_TEXT("%" PRId64 " rows of %" PRId64 " bytes", rows, w->row_bytes),
                                         "less than 4 GiB"},
                            "%s: the chunks are too large", w->name);
    return STK_OK;
}

static stk_status measure(struct hdf5_writer *w, stk_dtype dtype, int row_ndim, const int64_t *row_shape, int64_t rows,
                          stk_error *err)
{
    w->item_bytes = w->row_bytes = stk_dtype_size(dtype);
    w->expected = rows;
    w->ndim = row_ndim + 1;
    if (w->item_bytes == 0)
        return stki_fail_at(err, STK_E_BAD_DTYPE, (stki_place){path_of(w), -1, -1, NULL, NULL}, "%s: no such dtype",
                            w->name);
    if (row_ndim < -1 || row_ndim >= STK_MAX_DIMS)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){path_of(w), -1, -1, STKI_TEXT("%d", row_ndim),
                                         STKI_TEXT("-1 (a scalar) to %d", STK_MAX_DIMS - 1)},
                            "%s: invalid number of axes per row", w->name);
    for (int i = 0; i < row_ndim; i++) {
        w->shape[i + 1] = (hsize_t)row_shape[i];
        if (row_shape[i] < 0 || !stki_mul(w->row_bytes, row_shape[i], &w->row_bytes))
            return stki_fail_at(err, STK_E_BAD_SHAPE,
                                (stki_place){path_of(w), -1, -1, STKI_TEXT("%" PRId64 " on axis %d", row_shape[i], i),
                                             "sizes of at least 0 whose product fits in 63 bits"},
                                "%s: invalid row shape", w->name);
    }
    w->shape[0] = rows > 0 ? (hsize_t)rows : 0;
    /* Rows without elements need no chunks, but only chunked data can grow. */
    w->chunked = row_ndim >= 0 && (rows < 0 || (w->row_bytes > 0 && (w->opts.level > 0 || w->base.chunk_rows > 0)));
    w->deflated = w->chunked && w->opts.level > 0 && w->row_bytes > 0;
    return w->chunked ? choose_chunks(w, err) : STK_OK;
}

static bool set_storage(const struct hdf5_writer *w, hid_t plist)
{
    if (!w->chunked)
        return H5Pset_alloc_time(plist, H5D_ALLOC_TIME_EARLY) >= 0 &&
               H5Pset_fill_time(plist, H5D_FILL_TIME_NEVER) >= 0; /* every byte is written */
    if (H5Pset_chunk(plist, w->ndim, w->chunk) < 0)
        return false;
    return !w->deflated ||
           ((w->item_bytes == 1 || H5Pset_shuffle(plist) >= 0) && H5Pset_deflate(plist, (unsigned)w->opts.level) >= 0);
}

static hid_t make_dataset(const struct hdf5_writer *w, stk_dtype dtype)
{
    hsize_t largest[STK_MAX_DIMS];
    hid_t type = stki_hdf5_type_make(dtype), plist = H5Pcreate(H5P_DATASET_CREATE), links = H5Pcreate(H5P_LINK_CREATE);
    hid_t space, dataset = -1;

    memcpy(largest, w->shape, sizeof largest);
    if (w->expected < 0)
        largest[0] = H5S_UNLIMITED;
    space = w->ndim == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(w->ndim, w->shape, largest);
    if (type >= 0 && plist >= 0 && links >= 0 && space >= 0 && set_storage(w, plist) &&
        H5Pset_obj_track_times(plist, 0) >= 0 && /* no times, so that the same arrays produce the same file */
        H5Pset_create_intermediate_group(links, 1) >= 0)
        dataset = H5Dcreate2(w->file, w->name, type, space, links, plist, H5P_DEFAULT);
    if (type >= 0)
        (void)H5Tclose(type);
    if (plist >= 0)
        (void)H5Pclose(plist);
    if (links >= 0)
        (void)H5Pclose(links);
    if (space >= 0)
        (void)H5Sclose(space);
    return dataset;
}

static stk_status create_dataset(struct hdf5_writer *w, stk_dtype dtype, stk_error *err)
{
    stki_hdf5_guard guard;
    stk_status status = STK_OK;
    haddr_t offset = 0;

    stki_hdf5_enter(&guard, false);
    w->dataset = make_dataset(w, dtype);
    if (w->dataset < 0)
        status = stki_hdf5_fail(err, STK_E_IO, path_of(w), w->name, "cannot be created");
    else if (!w->chunked && w->row_bytes > 0 && w->expected != 0) {
        offset = H5Dget_offset(w->dataset);
        if (offset == HADDR_UNDEF || offset > INT64_MAX)
            status = stki_hdf5_fail(err, STK_E_IO, path_of(w), w->name, "no storage was allocated in the file");
    }
    w->offset = (int64_t)offset;
    stki_hdf5_leave(&guard);
    return check_sink(w, status, err);
}

static stk_status make_room(struct hdf5_writer *w, stk_error *err)
{
    int threads = w->opts.threads > 0 ? w->opts.threads : stki_cpu_count();
    stk_status status = STK_OK;

    if (w->row_bytes == 0)
        return STK_OK;
    if (w->deflated) {
        status = stki_hdf5_packer_create(w->chunk_bytes, w->item_bytes, w->opts.level, threads, &w->packer, err);
        if (status == STK_OK)
            w->room = stki_hdf5_packer_room(w->packer);
        return status;
    }
    w->plain_bytes = w->chunked ? w->chunk_bytes : HELD_BYTES;
    w->room = w->plain = stki_block_alloc(NULL, w->plain_bytes, 64);
    return w->plain ? STK_OK : stki_fail_memory(err, w->plain_bytes, "rows to write");
}

/* Closes the array, in any state. */
static stk_status close_array(struct hdf5_writer *w, stk_error *err)
{
    stki_hdf5_guard guard;
    stk_status status = STK_OK;

    if (w->dataset >= 0) {
        stki_hdf5_enter(&guard, false);
        if (H5Dclose(w->dataset) < 0)
            status = stki_hdf5_fail(err, STK_E_IO, path_of(w), w->name, "cannot be closed");
        stki_hdf5_leave(&guard);
        status = check_sink(w, status, err);
    }
    stki_hdf5_packer_destroy(w->packer);
    stki_block_free(NULL, w->plain, w->plain_bytes, 64);
    stki_free(w->name);
    w->dataset = -1;
    w->packer = NULL;
    w->plain = w->room = w->name = NULL;
    w->rows = w->in_room = w->written_chunks = w->held = w->placed = 0;
    return status;
}

static stk_status hdf5_begin(stki_writer *base, const char *name, stk_dtype dtype, int row_ndim,
                             const int64_t *row_shape, int64_t rows, stk_error *err)
{
    struct hdf5_writer *w = writer_of(base);
    stk_status status = check_usable(w, false, err);

    if (status != STK_OK)
        return status;
    w->name = stki_strdup(name);
    status = w->name ? measure(w, dtype, row_ndim, row_shape, row_ndim < 0 ? 1 : rows, err)
                     : stki_fail_memory(err, (int64_t)strlen(name) + 1, name);
    if (status == STK_OK)
        status = create_dataset(w, dtype, err);
    if (status == STK_OK)
        status = make_room(w, err);
    if (status != STK_OK)
        (void)close_array(w, NULL);
    return note_failure(w, status);
}

/* ---- rows ---- */

static stk_status write_chunk(struct hdf5_writer *w, const void *bytes, int64_t count, uint32_t mask, int64_t rows_now,
                              stk_error *err)
{
    stki_hdf5_guard guard;
    hsize_t first[STK_MAX_DIMS] = {(hsize_t)(w->written_chunks * (int64_t)w->chunk[0])};
    stk_status status = STK_OK;
    bool fine = true;

    stki_hdf5_enter(&guard, false);
    if (w->expected < 0) {
        w->shape[0] = (hsize_t)rows_now;
        fine = H5Dset_extent(w->dataset, w->shape) >= 0;
    }
    if (!fine || H5Dwrite_chunk(w->dataset, H5P_DEFAULT, mask, first, (size_t)count, bytes) < 0)
        status = stki_hdf5_fail(err, STK_E_IO, path_of(w), w->name, "a chunk cannot be written");
    stki_hdf5_leave(&guard);
    w->written_chunks++;
    return check_sink(w, status, err);
}

static int64_t rows_with(const struct hdf5_writer *w, int64_t chunks)
{
    int64_t rows = chunks * (int64_t)w->chunk[0];

    return rows < w->rows ? rows : w->rows;
}

/* Writes the oldest compressed chunk to the file. STK_END: none. */
static stk_status write_packed(struct hdf5_writer *w, stk_error *err)
{
    stki_hdf5_packed packed;
    stk_status status = stki_hdf5_packer_take(w->packer, &packed, err);
    uint32_t deflate_bit = w->item_bytes > 1 ? 2 : 1;

    if (status != STK_OK)
        return status;
    return write_chunk(w, packed.bytes, packed.count, packed.deflated ? 0 : deflate_bit,
                       rows_with(w, w->written_chunks + 1), err);
}

/* Submits or writes the current chunk, which is complete. */
static stk_status finish_chunk(struct hdf5_writer *w, stk_error *err)
{
    stk_status status = STK_OK;

    w->in_room = 0;
    if (!w->deflated)
        return write_chunk(w, w->room, w->chunk_bytes, 0, rows_with(w, w->written_chunks + 1), err);
    status = stki_hdf5_packer_submit(w->packer, err);
    while (status == STK_OK && !(w->room = stki_hdf5_packer_room(w->packer)))
        status = write_packed(w, err);
    return status;
}

static stk_status append_chunked(struct hdf5_writer *w, const char *rows, int64_t count, stk_error *err)
{
    stk_status status = STK_OK;

    if (w->row_bytes == 0) {
        w->rows += count;
        return STK_OK;
    }
    while (count > 0 && status == STK_OK) {
        int64_t many = (int64_t)w->chunk[0] - w->in_room;

        many = many < count ? many : count;
        memcpy(w->room + w->in_room * w->row_bytes, rows, (size_t)(many * w->row_bytes));
        w->in_room += many;
        w->rows += many;
        rows += many * w->row_bytes;
        count -= many;
        if (w->in_room == (int64_t)w->chunk[0])
            status = finish_chunk(w, err);
    }
    return status;
}

/* Writes pending contiguous data to the file. */
static stk_status place_held(struct hdf5_writer *w, stk_error *err)
{
    stk_status status = STK_OK;

    if (w->held > 0)
        status = stki_hdf5_sink_write(&w->sink, w->offset + w->placed, w->plain, w->held, err);
    w->placed += w->held;
    w->held = 0;
    return status;
}

static stk_status append_contiguous(struct hdf5_writer *w, const void *rows, int64_t bytes, stk_error *err)
{
    stk_status status = bytes > HELD_BYTES - w->held ? place_held(w, err) : STK_OK;

    if (status != STK_OK || bytes == 0)
        return status;
    if (bytes <= HELD_BYTES) {
        memcpy(w->plain + w->held, rows, (size_t)bytes);
        w->held += bytes;
        return STK_OK;
    }
    status = stki_hdf5_sink_write(&w->sink, w->offset + w->placed, rows, bytes, err);
    w->placed += bytes;
    return status;
}

static stk_status hdf5_append(stki_writer *base, const void *rows, int64_t count, stk_error *err)
{
    struct hdf5_writer *w = writer_of(base);
    stk_status status = check_usable(w, true, err);
    int64_t bytes;

    if (status != STK_OK)
        return status;
    if (count < 0 || (w->expected >= 0 && count > w->expected - w->rows))
        return note_failure(w, stki_fail_at(err, STK_E_RANGE,
                                            (stki_place){path_of(w), w->rows, -1, STKI_TEXT("%" PRId64 " more", count),
                                                         STKI_TEXT("%" PRId64 " rows in total", w->expected)},
                                            "%s: too many rows", w->name));
    if (w->chunked)
        return note_failure(w, append_chunked(w, rows, count, err));
    if (!stki_mul(count, w->row_bytes, &bytes))
        return note_failure(w, misuse(w, "the size in bytes does not fit in 63 bits", err));
    w->rows += count;
    return note_failure(w, append_contiguous(w, rows, bytes, err));
}

static stk_status set_rows(struct hdf5_writer *w, stk_error *err)
{
    stki_hdf5_guard guard;
    stk_status status = STK_OK;

    if (w->expected >= 0 || w->shape[0] == (hsize_t)w->rows)
        return STK_OK;
    w->shape[0] = (hsize_t)w->rows;
    stki_hdf5_enter(&guard, false);
    if (H5Dset_extent(w->dataset, w->shape) < 0)
        status = stki_hdf5_fail(err, STK_E_IO, path_of(w), w->name, "cannot be extended");
    stki_hdf5_leave(&guard);
    return check_sink(w, status, err);
}

static stk_status hdf5_end(stki_writer *base, stk_error *err)
{
    struct hdf5_writer *w = writer_of(base);
    stk_status status = check_usable(w, true, err), closed;

    if (status != STK_OK)
        return status;
    if (w->expected >= 0 && w->rows != w->expected)
        status = stki_fail_at(
            err, STK_E_RANGE,
            (stki_place){path_of(w), -1, -1, STKI_TEXT("%" PRId64, w->rows), STKI_TEXT("%" PRId64, w->expected)},
            "%s: wrong number of rows", w->name);
    if (status == STK_OK && w->in_room > 0) { /* pads the last chunk with zeros */
        memset(w->room + w->in_room * w->row_bytes, 0, (size_t)(w->chunk_bytes - w->in_room * w->row_bytes));
        status = finish_chunk(w, err);
    }
    if (status == STK_OK && !w->chunked)
        status = place_held(w, err);
    while (status == STK_OK && w->packer && (status = write_packed(w, err)) == STK_OK)
        ;
    status = status == STK_END ? STK_OK : status;
    if (status == STK_OK)
        status = set_rows(w, err);
    closed = close_array(w, status != STK_OK ? NULL : err);
    return note_failure(w, status != STK_OK ? status : closed);
}

/* ---- the file ---- */

static stk_status close_file(struct hdf5_writer *w, bool flush, stk_error *err)
{
    stki_hdf5_guard guard;
    stk_status status = STK_OK;

    if (w->file < 0)
        return STK_OK;
    stki_hdf5_enter(&guard, false);
    if (flush && w->sink.status == STK_OK && H5Fflush(w->file, H5F_SCOPE_GLOBAL) < 0)
        status = stki_hdf5_fail(err, STK_E_IO, path_of(w), NULL, "cannot be written");
    if (H5Fclose(w->file) < 0 && status == STK_OK && flush)
        status = stki_hdf5_fail(err, STK_E_IO, path_of(w), NULL, "cannot be closed");
    stki_hdf5_leave(&guard);
    w->file = -1;
    return check_sink(w, status, err);
}

static void hdf5_abort(stki_writer *base)
{
    struct hdf5_writer *w = writer_of(base);

    if (!base)
        return;
    (void)close_array(w, NULL);
    (void)close_file(w, false, NULL);
    stki_output_abort(w->sink.output);
    stki_free(w);
}

static stk_status hdf5_commit(stki_writer *base, stk_error *err)
{
    struct hdf5_writer *w = writer_of(base);
    stk_status status = check_usable(w, false, err);

    if (status == STK_OK)
        status = close_file(w, true, err);
    if (status != STK_OK) {
        hdf5_abort(base);
        return status;
    }
    status = stki_output_commit(w->sink.output, err);
    w->sink.output = NULL;
    hdf5_abort(base);
    return status;
}

static const stki_writer_ops hdf5_ops = {.format = "hdf5",
                                         .begin = hdf5_begin,
                                         .append = hdf5_append,
                                         .end = hdf5_end,
                                         .commit = hdf5_commit,
                                         .abort = hdf5_abort};

static hid_t create_id(struct hdf5_writer *w)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), id = -1;
    bool fine = access >= 0 && H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V110) >= 0;

    if (fine && w->opts.level == 0) /* data is aligned to pages, so that it can be mapped */
        fine = H5Pset_alignment(access, PAGE, PAGE) >= 0;
    if (fine)
        id = stki_hdf5_sink_create(&w->sink, access);
    if (access >= 0)
        (void)H5Pclose(access);
    return id;
}

static stk_status create_file(struct hdf5_writer *w, stk_error *err)
{
    stki_hdf5_guard guard;
    stk_status status = STK_OK;

    stki_hdf5_enter(&guard, false);
    w->file = create_id(w);
    if (w->file < 0)
        status = stki_hdf5_fail(err, STK_E_IO, path_of(w), NULL, "cannot be created");
    stki_hdf5_leave(&guard);
    return check_sink(w, status, err);
}

stk_status stki_hdf5_writer(const char *path, const stki_writer_opts *opts, stki_writer **out, stk_error *err)
{
    static const stki_writer_opts defaults;
    struct hdf5_writer *w = stki_zalloc(sizeof *w);
    stk_status status;

    if (!w)
        return stki_fail_memory(err, sizeof *w, path);
    w->base.ops = &hdf5_ops;
    w->opts = opts ? *opts : defaults;
    w->base.chunk_rows = w->opts.chunk_rows;
    w->file = w->dataset = -1;
    status = w->opts.level < 0 || w->opts.level > 9
                 ? stki_fail_at(err, STK_E_CONFIG, (stki_place){path, -1, -1, STKI_TEXT("%d", w->opts.level), "0 to 9"},
                                "compression level")
                 : stki_output_begin(path, w->opts.temporary, &w->sink.output, err);
    if (status == STK_OK)
        status = create_file(w, err);
    if (status != STK_OK) {
        hdf5_abort(&w->base);
        return status;
    }
    *out = &w->base;
    return STK_OK;
}
