/* raw.c: a file that contains only values. The config states the dtype, the shape of a sample, the offset and the byte
 * order; the number of samples follows from the file's size. nanoGPT's token files have this format. */
#include "checked.h"
#include "error.h"
#include "foreign_file.h"
#include "tokens.h"
#include <inttypes.h>
#include <string.h>

typedef struct raw_options {
    const stki_node *shape;
    int64_t count, offset;
    int byte_order;
    int ndim; /* number of axes and their sizes, parsed from `shape` */
    int64_t sizes[STK_MAX_DIMS];
} raw_options;

enum { BIG = 1 };
static const char *const byte_order_words[] = {"little", "big", NULL};

#define MOST (INT64_C(1) << 40)

static const stki_option raw_rows[] = {
    STKI_NODE(raw_options, shape, "Shape of one sample, a list; []: one number",
              .examples = STKI_EXAMPLES("[4]", "[2, 2]")),
    STKI_INT(raw_options, count, 0, 0, MOST, "samples", "Number of samples; 0: derived from the size of the file"),
    STKI_SIZE(raw_options, offset, 0, 0, INT64_MAX, "Offset of the first sample"),
    STKI_ENUM(raw_options, byte_order, little, byte_order_words, "Byte order of the values"),
};
static const stki_option_table raw_table = STKI_SOURCE_TABLE("raw data", raw_rows);

static stk_status check_shape(const stki_node *map, void *values, stk_error *err)
{
    raw_options *raw = values;
    stk_status status = STK_OK;

    (void)map;
    if (!raw->shape)
        return STK_OK;
    if (raw->shape->kind != STKI_NODE_LIST || raw->shape->count >= STK_MAX_DIMS)
        return stki_fail_value(err, raw->shape, "a list of at most %d axis lengths", STK_MAX_DIMS - 1);
    raw->ndim = raw->shape->count;
    for (int i = 0; i < raw->ndim && status == STK_OK; i++) {
        status = stki_node_int(raw->shape->items[i], &raw->sizes[i], err);
        if (status == STK_OK && raw->sizes[i] < 1)
            status = stki_fail_value(err, raw->shape->items[i], "1 or more");
    }
    return status;
}

const stki_source_group stki_raw_source = {&raw_table, sizeof(raw_options), check_shape, NULL};

/* Sets the number of samples: the configured one or, by default, the number of whole samples up to the end of the
 * file. */
static stk_status count_samples(const char *path, const raw_options *raw, stk_dtype dtype, int64_t size, int64_t *out,
                                stk_error *err)
{
    int64_t each = stk_dtype_size(dtype), left = size - raw->offset;

    for (int i = 0; i < raw->ndim; i++)
        if (!stki_mul(each, raw->sizes[i], &each))
            return stki_fail_at(err, STK_E_CONFIG, (stki_place){path, -1, -1, NULL, "fewer than 2^63 bytes"},
                                "source.shape: the sample is too large");
    if (left < 0)
        return stki_fail_at(err, STK_E_TRUNCATED,
                            (stki_place){path, -1, -1, STKI_TEXT("%" PRId64 " bytes", size),
                                         STKI_TEXT("at least %" PRId64 " (source.offset)", raw->offset)},
                            "the file ends before its data");
    if (raw->count > 0 && raw->count > left / each)
        return stki_fail_at(err, STK_E_TRUNCATED,
                            (stki_place){path, -1, raw->offset, STKI_TEXT("%" PRId64 " bytes of data", left),
                                         STKI_TEXT("%" PRId64 " samples of %" PRId64 " bytes", raw->count, each)},
                            "the data is truncated");
    if (raw->count == 0 && left % each != 0)
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){path, -1, raw->offset + left / each * each,
                                         STKI_TEXT("%" PRId64 " bytes of data", left),
                                         STKI_TEXT("a multiple of %" PRId64 ", the size of a sample", each)},
                            "the data is not a whole number of samples");
    *out = raw->count > 0 ? raw->count : left / each;
    return STK_OK;
}

/* Raw data may start with any bytes, so signatures that occur by chance are ignored. Files with other signatures are
 * rejected unless source.format or source.offset is set; Git LFS pointers are always rejected. */
static stk_status check_kind(const stki_file *file, const raw_options *raw, const stki_reader_opts *opts,
                             stk_error *err)
{
    char head[STKI_KIND_BYTES];
    const int64_t count = file->size < STKI_KIND_BYTES ? file->size : STKI_KIND_BYTES;
    const stki_file_kind *kind;
    stk_status status = stki_file_read(file, 0, head, count, err);

    if (status != STK_OK)
        return status;
    kind = stki_file_kind_of(head, count, false);
    if (!kind || kind->certainty == STKI_KIND_POSSIBLE ||
        (kind->certainty == STKI_KIND_LIKELY && (opts->format || raw->offset > 0)))
        return STK_OK;
    return stki_fail_at(
        err, STK_E_UNSUPPORTED,
        (stki_place){file->path, -1, -1, kind->what,
                     kind->certainty == STKI_KIND_SURE ? "raw data" : "raw data; source.format: raw reads it anyway"},
        "the file does not contain raw data%s", kind->advice[0] ? STKI_TEXT(" (%s)", kind->advice) : "");
}

stk_status stki_raw_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    raw_options values;
    const raw_options *raw = &values;
    stki_array array = {.dtype = opts->alias_dtype};
    char head[STKI_LLMC_READ] = {0};
    int64_t bytes;
    stk_status status;

    if (opts->alias_dtype == STK_DTYPE_NONE)
        return stki_fail_at(err, STK_E_CONFIG, (stki_place){path, -1, -1, "no type", "source.dtype"},
                            "raw data does not specify its type");
    stki_source_values(opts, &stki_raw_source, &values);
    status = stki_file_open(path, opts->access, opts->pattern, &array.file, err);
    if (status != STK_OK)
        return status;
    status = check_kind(array.file, raw, opts, err);
    if (status != STK_OK) {
        stki_file_close(array.file);
        return status;
    }
    array.offset = raw->offset;
    array.ndim = raw->ndim + 1;
    array.swapped = raw->byte_order == BIG && stk_dtype_size(array.dtype) > 1;
    memcpy(array.shape + 1, raw->sizes, (size_t)raw->ndim * sizeof array.shape[0]);
    status = count_samples(path, raw, array.dtype, array.file->size, &array.shape[0], err);
    if (status == STK_OK)
        status = stki_array_row_major(&array, &bytes, path, err);
    if (status == STK_OK && array.file->size >= STKI_LLMC_READ)
        status = stki_file_read(array.file, 0, head, STKI_LLMC_READ, err);
    if (status != STK_OK) {
        stki_file_close(array.file);
        return status;
    }
    status = stki_one_array(path, "raw", &array, out, err);
    if (status == STK_OK && raw->offset < STKI_LLMC_HEADER && stki_llmc_matches(head, array.file->size))
        stki_container_warn(*out,
                            "the file starts like a token shard of llm.c but is read as raw data, so its header of "
                            "1024 bytes becomes values (source: {format: llmc} skips the header)");
    return status;
}
