/* beton_reader.c: the records of a .beton field: images, bytes, strings and arrays, each in its own region. Raw data is
 * a view of the mapping; JPEG images are decoded into the worker's scratch memory.
 *
 * Opening makes one pass over the rows to find the largest sizes and the runs of samples in the same page, which are
 * the units of `order: block`. If JPEG images are not decoded, it also looks up each image in the table, because rows
 * do not contain its size. A row is checked when its record is read: the table must have an allocation for this sample
 * with this pointer and the size implied by the row. */
#include "allocate.h"
#include "beton.h"
#include "checked.h"
#include "decode.h"
#include "error.h"
#include "npy_header.h"
#include "piece.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <string.h>

enum { ROW_MOST = 16 /* size of the largest kind of field in a row */, ADVISE_AT_ONCE = 128 };

struct records {
    stki_reader base; /* first member */
    const stki_beton *beton;
    const stki_beton_field *field;
    const stki_beton_table *table;
    stki_decode_opts decode;
    bool encoded;      /* samples are encoded JPEG images */
    int64_t max_bytes; /* size limit of one sample, set by the option; 0: none */
    int64_t *units;
};

/* A parsed row. */
struct row {
    uint64_t pointer;
    int64_t bytes; /* size of the region; -1: only the table contains it */
    int64_t height, width;
    bool jpeg;
};

static const struct records *records_of(const stki_reader *base)
{
    return (const struct records *)(const void *)base;
}

static uint64_t load(const void *bytes, int count)
{
    uint64_t value = 0;

    memcpy(&value, bytes, (size_t)count);
    return value;
}

static int64_t row_offset(const struct records *r, int64_t index)
{
    return r->beton->layout.rows + index * r->beton->layout.row_bytes + r->field->row_offset;
}

static stk_status fail_row(const struct records *r, int64_t index, const char *found, const char *expected,
                           const char *what, stk_error *err)
{
    return stki_fail_at(err, STK_E_CORRUPT, (stki_place){r->base.path, index, row_offset(r, index), found, expected},
                        "field '%s': %s", r->field->name, what);
}

/* ---- rows ---- */

/* Parses a row. Returns false and sets *why if the row is invalid. */
static bool parse_row(const stki_beton_field *field, int64_t page_bytes, const unsigned char *bytes, struct row *out,
                      const char **why)
{
    *out = (struct row){0};
    switch (field->kind) {
    case STKI_BETON_IMAGE:
        out->width = (int64_t)load(bytes + 1, 2);
        out->height = (int64_t)load(bytes + 3, 2);
        out->pointer = load(bytes + 5, 8);
        out->jpeg = bytes[0] == STKI_BETON_JPEG;
        out->bytes = out->jpeg ? -1 : out->height * out->width * 3;
        *why = "invalid image mode";
        if (bytes[0] != STKI_BETON_JPEG && bytes[0] != STKI_BETON_RAW)
            return false;
        break;
    case STKI_BETON_BYTES:
    case STKI_BETON_JSON:
        out->pointer = load(bytes, 8);
        out->bytes = (int64_t)(load(bytes + 8, 8) & INT64_MAX); /* values above INT64_MAX are rejected below */
        *why = "invalid size";
        if (load(bytes + 8, 8) > INT64_MAX)
            return false;
        break;
    default:
        out->pointer = load(bytes, 8);
        out->bytes = field->bytes;
        break;
    }
    *why = "the region is larger than a page";
    return out->bytes <= page_bytes;
}

static const char *describe_row(const stki_beton_field *field, const unsigned char *bytes, char *buffer, int size)
{
    if (field->kind == STKI_BETON_IMAGE)
        return stki_text(buffer, size, "mode %d, %" PRIu64 " x %" PRIu64 " pixels", bytes[0], load(bytes + 3, 2),
                         load(bytes + 1, 2));
    if (field->kind == STKI_BETON_BYTES || field->kind == STKI_BETON_JSON)
        return stki_text(buffer, size, "%" PRIu64 " bytes", load(bytes + 8, 8));
    return stki_text(buffer, size, "%" PRId64 " bytes", field->bytes);
}

static stk_status fail_parse(const struct records *r, int64_t index, const unsigned char *bytes, const char *why,
                             stk_error *err)
{
    char found[96];

    return fail_row(r, index, describe_row(r->field, bytes, found, sizeof found),
                    STKI_TEXT("%sat most one page (%" PRId64 " bytes)",
                              r->field->kind == STKI_BETON_IMAGE ? "mode 0 or 1, and " : "",
                              r->beton->layout.page_bytes),
                    why, err);
}

static stk_status fail_allocation(const struct records *r, int64_t index, const struct row *row, int64_t found,
                                  stk_error *err)
{
    if (found < 0)
        return fail_row(r, index, STKI_TEXT("pointer %" PRIu64, row->pointer), "one of the sample's allocations",
                        "the region is not allocated to this sample", err);
    return fail_row(r, index, STKI_TEXT("%" PRId64 " bytes allocated", found),
                    row->jpeg ? "at least 2" : STKI_TEXT("%" PRId64, row->bytes), "wrong region size", err);
}

static stk_status check_limit(const struct records *r, int64_t index, const struct row *row, stk_error *err)
{
    bool pixels = r->field->kind == STKI_BETON_IMAGE && !r->encoded;
    int64_t bytes = pixels ? row->height * row->width * 3 : row->bytes;

    if (r->max_bytes == 0 || bytes <= r->max_bytes)
        return STK_OK;
    return stki_fail_at(err, STK_E_LIMIT,
                        (stki_place){r->base.path, index, row_offset(r, index), STKI_TEXT("%" PRId64 " bytes", bytes),
                                     STKI_TEXT("at most %" PRId64 " (max_bytes)", r->max_bytes)},
                        "field '%s': the record is too long", r->field->name);
}

/* Finds the row of a record and checks it against the table. On success, row->bytes bytes at row->pointer are inside
 * the file. */
static stk_status locate(const struct records *r, int64_t index, struct row *row, stk_error *err)
{
    const stki_file *file = r->beton->file;
    unsigned char bytes[ROW_MOST] = {0};
    const unsigned char *at = bytes;
    int64_t size, alignment, allocated;
    const char *why;
    stk_status status = STK_OK;

    if (index < 0 || index >= r->base.count)
        return stki_reader_check_index(&r->base, index, err);
    if (file->map) {
        at = (const unsigned char *)file->map + row_offset(r, index);
    } else {
        stki_beton_row_size(r->field->kind, &size, &alignment);
        status = stki_file_read(file, row_offset(r, index), bytes, size, err);
    }
    if (status != STK_OK)
        return status;
    if (!parse_row(r->field, r->beton->layout.page_bytes, at, row, &why))
        return fail_parse(r, index, at, why, err);
    status = check_limit(r, index, row, err);
    if (status != STK_OK || row->bytes == 0) /* an empty region's pointer is meaningless */
        return status;
    status = stki_beton_table_find(r->table, index, row->pointer, &allocated, err);
    if (status != STK_OK)
        return status;
    if (allocated < 0 || (row->jpeg ? allocated < 2 : allocated != row->bytes) || row->pointer > INT64_MAX ||
        !stki_inside((int64_t)row->pointer, allocated, file->size))
        return fail_allocation(r, index, row, allocated, err);
    row->bytes = allocated;
    return r->encoded ? check_limit(r, index, row, err) : STK_OK; /* the size was not known before */
}

static void shape_of(const struct records *r, const struct row *row, int64_t *shape)
{
    switch (r->field->kind) {
    case STKI_BETON_IMAGE:
        shape[0] = r->encoded ? row->bytes : row->height;
        if (r->encoded)
            break;
        shape[1] = row->width;
        shape[2] = r->base.shape[2];
        break;
    case STKI_BETON_BYTES:
    case STKI_BETON_JSON:
        shape[0] = row->bytes;
        break;
    default:
        memcpy(shape, r->field->shape, (size_t)r->field->ndim * sizeof *shape);
        break;
    }
}

/* ---- samples ---- */

/* Returns the bytes of a region, either in the mapping or after reading them into the decoder's buffer or the
 * scratch. */
static stk_status region(const struct records *r, int64_t index, const struct row *row, stki_scratch *scratch,
                         const void **out, stk_error *err)
{
    const stki_file *file = r->beton->file;
    stki_decoder *decoder;
    void *to = NULL;
    stk_status status;

    if (file->map) {
        *out = (const char *)file->map + (row->bytes > 0 ? (int64_t)row->pointer : 0);
        return STK_OK;
    }
    if (row->jpeg) {
        status = stki_scratch_decoder(scratch, &decoder, err);
        if (status == STK_OK)
            status = stki_decoder_room(decoder, row->bytes, &to, err);
    } else {
        status = stki_scratch_reserve(scratch, row->bytes > 0 ? row->bytes : 1, err);
        to = scratch->data;
    }
    if (status == STK_OK && row->bytes > 0)
        status = stki_file_read(file, (int64_t)row->pointer, to, row->bytes, err);
    *out = to;
    return stki_fail_record(err, status, index);
}

static stk_status read_jpeg(const struct records *r, int64_t index, const struct row *row, const void *bytes,
                            const stki_want *want, stki_scratch *scratch, stk_tensor *out, stk_error *err)
{
    const unsigned char *b = bytes;
    int64_t shape[3];
    stk_status status;

    if (b[0] != 0xff || b[1] != 0xd8)
        return fail_row(r, index, STKI_TEXT("bytes %02x %02x", b[0], b[1]), "ff d8", "not a JPEG image", err);
    status = stki_image_shape(bytes, row->bytes, &r->decode, shape, err);
    if (status != STK_OK)
        return stki_fail_place(err, status, r->base.path, index, NULL);
    if (shape[0] != row->height || shape[1] != row->width)
        return fail_row(r, index, STKI_TEXT("a JPEG image of %" PRId64 " x %" PRId64 " pixels", shape[0], shape[1]),
                        STKI_TEXT("%" PRId64 " x %" PRId64 ", as in the row", row->height, row->width),
                        "wrong height or width", err);
    return stki_image_sample(bytes, row->bytes, &r->decode, want, scratch, r->base.path, index, out, err);
}

static stk_status records_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                               stk_tensor *out, stk_error *err)
{
    const struct records *r = records_of(base);
    const void *bytes;
    struct row row;
    int64_t stride = stk_dtype_size(base->dtype);
    stk_status status = locate(r, index, &row, err);

    if (status == STK_OK)
        status = region(r, index, &row, scratch, &bytes, err);
    if (status != STK_OK)
        return stki_fail_record(err, status, index);
    if (row.jpeg && !r->encoded)
        return read_jpeg(r, index, &row, bytes, want, scratch, out, err);
    if (r->field->kind == STKI_BETON_JSON && (row.bytes == 0 || ((const char *)bytes)[row.bytes - 1] != '\0'))
        return fail_row(r, index, STKI_TEXT("%" PRId64 " bytes without a NUL at the end", row.bytes),
                        "a NUL at the end", "unterminated JSON text", err);
    out->data = (void *)(uintptr_t)bytes;
    out->storage = NULL;
    out->device = NULL;
    out->dtype = base->dtype;
    out->ndim = base->ndim;
    out->flags = STK_TENSOR_READONLY | (base->swapped ? STK_TENSOR_SWAPPED : 0);
    out->reserved = 0;
    shape_of(r, &row, out->shape);
    for (int i = base->ndim - 1; i >= 0; i--) {
        out->strides[i] = stride;
        stride *= out->shape[i] > 0 ? out->shape[i] : 1; /* cannot overflow, because the product was checked */
    }
    return STK_OK;
}

static stk_status records_shape(const stki_reader *base, int64_t index, int64_t *shape, stk_error *err)
{
    const struct records *r = records_of(base);
    struct row row;
    stk_status status = locate(r, index, &row, err);

    if (status == STK_OK)
        shape_of(r, &row, shape);
    return stki_fail_record(err, status, index);
}

static void records_will_need(const stki_reader *base, const int64_t *indices, int64_t count)
{
    const struct records *r = records_of(base);
    stki_range ranges[ADVISE_AT_ONCE];
    int64_t n = 0;

    if (!stki_file_advice_due(r->beton->file))
        return;
    for (int64_t i = 0; i < count; i++) {
        struct row row;

        if (locate(r, indices[i], &row, NULL) == STK_OK && row.bytes > 0)
            ranges[n++] = (stki_range){(int64_t)row.pointer, row.bytes};
        if (n == ADVISE_AT_ONCE || i == count - 1) {
            stki_file_will_need_ranges(r->beton->file, ranges, n);
            n = 0;
        }
    }
}

/* Returns the ranges of the sample's row and region. */
static int records_place(const stki_reader *base, int64_t index, stki_range *out)
{
    const struct records *r = records_of(base);
    int64_t size, alignment;
    struct row row;

    stki_beton_row_size(r->field->kind, &size, &alignment);
    out[0] = (stki_range){row_offset(r, index), size};
    if (locate(r, index, &row, NULL) != STK_OK || row.bytes == 0)
        return 1;
    out[1] = (stki_range){(int64_t)row.pointer, row.bytes};
    return 2;
}

static void records_destroy(stki_reader *base)
{
    struct records *r = (struct records *)(void *)base;

    stki_container_release((stki_container *)(uintptr_t)&r->beton->base);
    stki_free(r->units);
    stki_free(base->path);
    stki_free(r);
}

static const stki_reader_ops fixed_ops = {
    .format = "beton", .read = records_read, .will_need = records_will_need, .destroy = records_destroy};
static const stki_reader_ops variable_ops = {.format = "beton",
                                             .read = records_read,
                                             .shape = records_shape,
                                             .will_need = records_will_need,
                                             .destroy = records_destroy};

/* ---- opening ---- */

/* Results of one pass over the rows. Invalid rows are skipped and fail when they are read. */
struct survey {
    int64_t bytes, height, width; /* the largest */
    int64_t first_height, first_width;
    bool any, differ, jpeg, raw;
    int64_t page; /* page of the previous sample */
    int64_t unit_count;
};

static stk_status add_unit(struct records *r, struct survey *s, int64_t first, stk_error *err)
{
    int64_t n = s->unit_count, room = n < 8 ? 8 : n, bytes;

    if (n == 0 || (n >= 8 && (n & (n - 1)) == 0)) {
        int64_t *units;

        bytes = (2 * room + 1) * (int64_t)sizeof *units;
        units = stki_resize(r->units, bytes);
        if (!units)
            return stki_fail_memory(err, bytes, "the pages of a file");
        r->units = units;
    }
    r->units[s->unit_count++] = first;
    return STK_OK;
}

static stk_status survey_row(struct records *r, struct survey *s, int64_t index, const unsigned char *bytes,
                             stk_error *err)
{
    const stki_beton_layout *l = &r->beton->layout;
    const char *why;
    struct row row;
    int64_t page;

    if (!parse_row(r->field, l->page_bytes, bytes, &row, &why))
        return STK_OK;
    if (!s->any) {
        s->first_height = row.height;
        s->first_width = row.width;
    }
    s->any = true;
    s->differ = s->differ || row.height != s->first_height || row.width != s->first_width;
    s->height = row.height > s->height ? row.height : s->height;
    s->width = row.width > s->width ? row.width : s->width;
    s->bytes = row.bytes > s->bytes ? row.bytes : s->bytes;
    s->jpeg = s->jpeg || row.jpeg;
    s->raw = s->raw || !row.jpeg;
    if (row.bytes == 0 || row.pointer < (uint64_t)l->data_start || row.pointer >= (uint64_t)l->table)
        return STK_OK;
    page = (int64_t)((row.pointer - (uint64_t)l->data_start) / (uint64_t)l->page_bytes);
    if (page == s->page)
        return STK_OK;
    s->page = page;
    return add_unit(r, s, s->unit_count ? index : 0, err);
}

static stk_status survey_rows(struct records *r, struct survey *s, stk_error *err)
{
    const stki_beton_layout *l = &r->beton->layout;
    stki_pieces pieces;
    const void *bytes;
    int64_t count, index = 0;
    stk_status status = stki_pieces_init(&pieces, r->beton->file, l->rows, l->row_bytes, l->sample_count, err);

    s->page = -1;
    while (status == STK_OK) {
        status = stki_pieces_next(&pieces, &bytes, &count, err);
        if (status != STK_OK || count == 0)
            break;
        for (int64_t at = r->field->row_offset; at < count && status == STK_OK; at += l->row_bytes, index++)
            status = survey_row(r, s, index, (const unsigned char *)bytes + at, err);
    }
    stki_pieces_fini(&pieces);
    if (status == STK_OK && s->unit_count > 0)
        r->units[s->unit_count] = l->sample_count;
    return status;
}

static stk_status check_options(const struct records *r, const struct survey *s, stk_error *err)
{
    const stki_beton_layout *l = &r->beton->layout;

    if (r->encoded && s->raw)
        return stki_fail_at(
            err, STK_E_UNSUPPORTED, (stki_place){r->base.path, -1, -1, "raw RGB images", "only JPEG images"},
            "field '%s': source.decode: none requires encoded images: remove the option", r->field->name);
    if (r->decode.deep && r->field->kind == STKI_BETON_IMAGE)
        return stki_fail_at(
            err, STK_E_UNSUPPORTED,
            (stki_place){r->base.path, -1, -1, "images of 8 bits, as in every .beton file", "16-bit PNG images"},
            "field '%s': source.depth: 16 is not supported", r->field->name);
    if (r->decode.gray && s->raw && r->field->kind == STKI_BETON_IMAGE)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){r->base.path, -1, -1, "raw RGB images", "only JPEG images"},
                            "field '%s': source.color: gray is not supported", r->field->name);
    if (r->field->bytes > l->page_bytes && l->sample_count > 0)
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){r->base.path, -1, -1, STKI_TEXT("%" PRId64 " bytes", r->field->bytes),
                                         STKI_TEXT("at most one page (%" PRId64 " bytes)", l->page_bytes)},
                            "field '%s': the array does not fit in a page", r->field->name);
    return STK_OK;
}

/* Finds the size of the largest region. Only the table contains the size of an encoded image. Invalid entries are
 * skipped and fail when they are read. */
static int64_t longest_region(const struct records *r)
{
    int64_t longest = 0;
    struct row row;

    for (int64_t i = 0; i < r->base.count; i++)
        if (locate(r, i, &row, NULL) == STK_OK && row.bytes > longest)
            longest = row.bytes;
    return longest;
}

static void describe(struct records *r, const struct survey *s)
{
    const stki_file *file = r->beton->file;
    stki_reader *base = &r->base;
    enum stki_beton_kind kind = r->field->kind;

    base->count = r->beton->layout.sample_count;
    base->access = file->access;
    base->note = file->note;
    base->file_bytes = file->size;
    base->file = file;
    base->place = records_place;
    base->placer = base;
    base->data_offset = r->beton->layout.data_start;
    base->copies = !file->map || (s->jpeg && !r->encoded);
    base->unit_first = r->units;
    base->unit_count = s->unit_count;
    if (r->encoded) {
        base->ndim = 1;
        base->shape[0] = base->max_bytes = r->max_bytes > 0 ? r->max_bytes : longest_region(r);
        base->variable = true;
    } else if (kind == STKI_BETON_IMAGE) {
        base->ndim = 3;
        base->image = true;
        base->shape[0] = s->height;
        base->shape[1] = s->width;
        base->shape[2] = r->decode.gray ? 1 : 3;
        base->variable = s->differ;
        base->max_bytes = s->height * s->width * base->shape[2];
    } else if (kind == STKI_BETON_BYTES || kind == STKI_BETON_JSON) {
        base->ndim = 1;
        base->shape[0] = base->max_bytes = r->max_bytes > 0 ? r->max_bytes : s->bytes;
        base->variable = true;
        base->ending = kind == STKI_BETON_JSON ? "json" : "bin";
    } else {
        base->ndim = r->field->ndim;
        memcpy(base->shape, r->field->shape, sizeof base->shape);
        base->max_bytes = r->field->bytes;
    }
    base->ops = base->variable ? &variable_ops : &fixed_ops;
    (void)stki_row_major(base->dtype, base->ndim, base->shape, base->strides, &(int64_t){0},
                         NULL); /* cannot overflow, because it fits in a page */
}

stk_status stki_beton_check_type(const stki_beton_field *field, stk_dtype named, const char *path, stk_error *err)
{
    if (named == STK_DTYPE_NONE || named == field->dtype)
        return STK_OK;
    return stki_fail_at(err, STK_E_MISMATCH,
                        (stki_place){path, -1, -1, stk_dtype_long_name(field->dtype),
                                     STKI_TEXT("%s (source.dtype)", stk_dtype_long_name(named))},
                        "the type of field '%s' differs from the configured one", field->name);
}

static stk_status set_type(struct records *r, const stki_reader_opts *opts, stk_error *err)
{
    const stki_beton_field *field = r->field;

    r->base.dtype = field->dtype;
    r->base.swapped = field->swapped;
    if (field->kind != STKI_BETON_NDARRAY && field->kind != STKI_BETON_TENSOR)
        return stki_beton_check_type(field, opts->alias_dtype, r->base.path, err);
    if (opts->alias_dtype == STK_DTYPE_NONE)
        return STK_OK;
    return stki_npy_read_descr(field->descr, opts->alias_dtype, r->base.path, field->descr_at, &r->base.dtype,
                               &r->base.swapped, err);
}

stk_status stki_beton_reader(const stki_beton *beton, int field, const stki_reader_opts *opts, stki_reader **out,
                             stk_error *err)
{
    struct records *r = stki_zalloc(sizeof *r);
    struct survey survey = {0};
    stk_status status;

    if (!r)
        return stki_fail_memory(err, sizeof *r, beton->base.path);
    r->base.ops = &fixed_ops;
    (void)stki_container_retain(&beton->base);
    r->beton = beton;
    r->field = &beton->fields[field];
    r->decode = stki_image_opts(opts);
    r->encoded = r->decode.none && r->field->kind == STKI_BETON_IMAGE;
    r->max_bytes = opts->max_bytes;
    r->base.path = stki_strdup(beton->base.path);
    status = r->base.path ? set_type(r, opts, err)
                          : stki_fail_memory(err, (int64_t)strlen(beton->base.path) + 1, beton->base.path);
    if (status == STK_OK)
        status = stki_beton_table_of(beton, &r->table, err);
    if (status == STK_OK)
        status = survey_rows(r, &survey, err);
    if (status == STK_OK)
        status = check_options(r, &survey, err);
    if (status != STK_OK) {
        records_destroy(&r->base);
        return status;
    }
    describe(r, &survey);
    *out = &r->base;
    return STK_OK;
}
