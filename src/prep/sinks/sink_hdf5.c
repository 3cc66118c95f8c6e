/* sink_hdf5.c: writes HDF5 files with one data set per array (sink_arrays.h). Chunks are deflated by threads while the
 * next rows arrive, and written in order; times are not stored. */
#include "checked.h"
#include "error.h"
#include "sink_arrays.h"
#include "sink_common.h"
#include "sinks.h"
#include "tensor_internal.h"
#include <inttypes.h>

enum {
    DATASET_MOST = 5 << 10, /* metadata of a data set, and padding up to the page at which its rows start */
    CHUNK_ENTRY = 128,      /* bytes per chunk in the index, which is half full */
    PAGE = 4096,            /* uncompressed chunks of at least this size are aligned to it */
    INDEX_MOST = 8 << 10,   /* size of an index of few chunks */
    CHUNK_BYTES = 512 << 10 /* default size of a chunk */
};
#define CHUNK_MOST ((int64_t)UINT32_MAX - 4096)

struct hdf5_options {
    int64_t level, chunk_rows;
};

static const stki_option option_rows[] = {
    STKI_INT(struct hdf5_options, level, 0, 0, 9, "", "Compression level; 0: none"),
    STKI_INT(struct hdf5_options, chunk_rows, 0, 0, INT64_MAX, "rows",
             "Rows per chunk; 0: contiguous without compression, chunks of about half a megabyte with it"),
};
static const stki_option_table option_table = STKI_OPTION_TABLE("output (hdf5)", option_rows);

/* The format stores the size of a chunk in 32 bits. */
static stk_status check_chunks(const stki_sink_opts *opts, stk_error *err)
{
    const struct hdf5_options *options = opts->options;
    int64_t strides[STK_MAX_DIMS], bytes, chunk, rows = options ? options->chunk_rows : 0;

    rows = opts->may_skip || rows < opts->most_rows ? rows : opts->most_rows;
    for (int i = 0; i < opts->field_count && rows > 0; i++) {
        const stki_sink_field *field = &opts->fields[i];
        stk_status status;

        if (field->kind != STKI_SINK_ARRAY)
            continue;
        status = stki_row_major(field->dtype, field->ndim, field->shape, strides, &bytes, err);
        if (status != STK_OK)
            return status;
        if (!stki_mul(rows, bytes, &chunk) || chunk > CHUNK_MOST)
            return stki_sink_refuse(
                opts, field, STKI_TEXT("chunks of %" PRId64 " rows of %" PRId64 " bytes", rows, bytes),
                STKI_TEXT("less than 4 GiB per chunk: output.chunk_rows of at most %" PRId64, CHUNK_MOST / bytes), err);
    }
    return STK_OK;
}

static stk_status hdf5_check(const stki_sink_opts *opts, stk_error *err)
{
    stk_status status = stki_arrays_check(opts, false, STK_DTYPE_NONE, err);

    return status != STK_OK ? status : check_chunks(opts, err);
}

static int hdf5_level(const stki_sink_opts *opts)
{
    const struct hdf5_options *options = opts->options;

    return options ? (int)options->level : 0;
}

/* Returns the largest field. Its array is written directly and is the only one that may have an unknown length
 * (sink_arrays.c). */
static int largest_field(const stki_sink_opts *opts)
{
    int64_t most = -1;
    int largest = 0;

    for (int i = 0; i < opts->field_count; i++) {
        const stki_sink_field *field = &opts->fields[i];
        int64_t strides[STK_MAX_DIMS], bytes = field->largest_bytes > 0 ? field->largest_bytes : INT64_MAX;

        if (field->kind == STKI_SINK_ARRAY)
            (void)stki_row_major(field->dtype, field->ndim, field->shape, strides, &bytes, NULL);
        if (bytes > most) {
            most = bytes;
            largest = i;
        }
    }
    return largest;
}

/* Returns the number of bytes beyond the rows: the unused part of the last chunk (zeros, which compress to nothing),
 * padding and the index of chunks. `ahead`: the field is written directly. */
static int64_t chunk_bytes(const stki_sink_opts *opts, const stki_sink_field *field, bool ahead,
                           const stki_sink_size *size)
{
    const struct hdf5_options *options = opts->options;
    const bool whole = field->kind == STKI_SINK_ARRAY, known = !ahead || (whole && !opts->may_skip);
    int64_t strides[STK_MAX_DIMS], row = 1, rows = options ? options->chunk_rows : 0, chunk, chunks, rest, gap;

    if (known && (rows == 0 || !whole) && hdf5_level(opts) == 0)
        return 0; /* contiguous */
    if (whole)
        (void)stki_row_major(field->dtype, field->ndim, field->shape, strides, &row, NULL);
    row = row > 0 ? row : 1;
    rows = whole && rows > 0 ? rows : row < CHUNK_BYTES ? CHUNK_BYTES / row : 1;
    rows = known && rows > opts->most_rows && opts->most_rows > 0 ? opts->most_rows : rows;
    rest = hdf5_level(opts) > 0 ? 0 : known ? (rows - size->rows % rows) % rows : rows - 1;
    chunk = stki_sink_times(0, rows, row);
    chunks = (whole ? size->rows / rows : size->bytes / chunk) + 1;
    gap = hdf5_level(opts) == 0 && chunk >= PAGE ? PAGE - 1 - (chunk + PAGE - 1) % PAGE : 0;
    return stki_sink_times(stki_sink_times(INDEX_MOST, rest, row), chunks, CHUNK_ENTRY + gap);
}

static int64_t hdf5_measure(const stki_sink_opts *opts, const stki_sink_value *values, int64_t count,
                            stki_sink_size *size)
{
    const int ahead = largest_field(opts);
    int64_t bytes = stki_arrays_measure(opts, DATASET_MOST, values, count, size);

    for (int i = 0; i < opts->field_count; i++)
        bytes = stki_sink_times(bytes, 1, chunk_bytes(opts, &opts->fields[i], i == ahead, size));
    return bytes;
}

static int64_t hdf5_packed(const stki_sink_opts *opts, int field, const void *bytes, int64_t size)
{
    return stki_arrays_packed(hdf5_level(opts), true, &opts->fields[field], bytes, size);
}

static stk_status hdf5_open(const stki_sink_opts *opts, const json_t *mark, stki_sink **out, stk_error *err)
{
    const struct hdf5_options *options = opts->options;
    const stki_arrays_opts own = {hdf5_level(opts), options ? options->chunk_rows : 0};

    (void)mark;
    return stki_arrays_open(&stki_sink_hdf5, opts, &own, out, err);
}

static const char *const endings[] = {".h5", ".hdf5", NULL};

const stki_sink_ops stki_sink_hdf5 = {
    .format = "hdf5",
    .endings = endings,
    .table = &option_table,
    .options_bytes = sizeof(struct hdf5_options),
    .check = hdf5_check,
    .measure = hdf5_measure,
    .packed = hdf5_packed,
    .open = hdf5_open,
    .append = stki_arrays_append,
    .finish = stki_arrays_finish,
    .files = stki_arrays_files,
    .destroy = stki_arrays_destroy,
};
