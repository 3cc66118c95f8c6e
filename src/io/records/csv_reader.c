/* csv_reader.c: readers of columns; see csv.h. Numbers are parsed into an array in memory; strings are read from the
 * file cell by cell. */
#include "allocate.h"
#include "csv.h"
#include "dtype.h"
#include "error.h"
#include "image_set.h"
#include "npy_header.h"
#include "storage.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SMALL = 8 << 10 };

/* ---- numbers ---- */

typedef struct numbers {
    const stki_csv *csv;
    const int *columns; /* columns that form a row, in this order */
    int count;
    bool picked;        /* by source.columns */
    stk_dtype integers; /* stki_reader_opts.integers */
    int64_t *whole;     /* `whole` or `real` is used, depending on the dtype */
    double *real;
} numbers;

/* Parses a cell that is not missing. 3.0 counts as an integer if the field casts to an integer dtype. */
static bool parse_number(const numbers *n, const stki_csv_cell *cell, int64_t at)
{
    double real;

    if (n->real)
        return stki_csv_number(cell, &n->real[at]);
    return stki_csv_whole(cell, &n->whole[at]) ||
           (n->integers != STK_DTYPE_NONE && stki_csv_number(cell, &real) && stki_whole_of(real, &n->whole[at]));
}

/* Whether the field's dtype can represent the number. */
static bool is_held(const numbers *n, int64_t at)
{
    int64_t whole;

    if (n->integers == STK_DTYPE_NONE)
        return true;
    if (n->real)
        return stki_whole_of(n->real[at], &whole) && stki_dtype_holds(n->integers, whole);
    return stki_dtype_holds(n->integers, n->whole[at]);
}

static stk_status take_number(const numbers *n, int column, int64_t record, const stki_csv_cell *cell, int64_t at,
                              stk_error *err)
{
    const stki_csv_missing *missing = &n->csv->missing;

    if (stki_csv_is_missing(missing, cell)) {
        if ((n->integers != STK_DTYPE_NONE || !n->real) && !(missing->given && missing->whole))
            return stki_csv_fail(n->csv, column, record, STK_E_CORRUPT, cell,
                                 "an integer (source.missing sets one for missing cells)", err);
        if (n->real)
            n->real[at] = missing->given ? missing->real : (double)NAN;
        else
            n->whole[at] = missing->value;
        if (is_held(n, at))
            return STK_OK;
    } else if (parse_number(n, cell, at) && is_held(n, at)) {
        return STK_OK;
    }
    return stki_csv_fail(n->csv, column, record, STK_E_CORRUPT, cell,
                         n->integers != STK_DTYPE_NONE ? STKI_TEXT("an integer that fits in %s (the field's dtype)",
                                                                   stk_dtype_long_name(n->integers))
                         : n->whole                    ? "a 64-bit integer (source.dtype)"
                                                       : "a number (source.dtype)",
                         err);
}

static stk_status take_one(void *context, int64_t record, const stki_csv_cell *cell, stk_error *err)
{
    const numbers *n = context;

    return take_number(n, n->columns[0], record, cell, record, err);
}

static stk_status take_several(void *context, int64_t record, const stki_csv_cell *cells, stk_error *err)
{
    const numbers *n = context;
    stk_status status = STK_OK;

    for (int i = 0; i < n->count && status == STK_OK; i++)
        status = take_number(n, n->columns[i], record, &cells[n->columns[i]], record * n->count + i, err);
    return status;
}

static stk_status number_array(const stki_csv *csv, const int *columns, int count, bool several, stk_dtype dtype,
                               stk_dtype integers, stki_array *out, stk_error *err)
{
    stk_storage *storage;
    numbers n = {.csv = csv, .columns = columns, .count = count, .integers = integers};
    /* The array takes at most 8 times the size of the file, because even a missing cell takes one byte. */
    const int64_t bytes = csv->count * count * 8;
    stk_status status = stk_storage_create(NULL, bytes > 0 ? bytes : 8, &storage, err);

    if (status != STK_OK)
        return status;
    if (dtype == STK_I64)
        n.whole = stk_storage_data(storage);
    else
        n.real = stk_storage_data(storage);
    status =
        stki_csv_walk_run(&(stki_csv_walk){csv, several ? -1 : columns[0], &n, several ? take_several : take_one}, err);
    if (status != STK_OK) {
        stk_storage_release(storage);
        return status;
    }
    *out = (stki_array){.memory = storage, .dtype = dtype, .ndim = 1, .shape = {csv->count}, .strides = {8}};
    if (several) {
        out->ndim = 2;
        out->shape[1] = count;
        out->strides[0] = 8 * (int64_t)count;
        out->strides[1] = 8;
    }
    return STK_OK;
}

/* Returns the dtype of the column, which is that of its cells unless source.dtype overrides it or the field needs
 * integers. */
static stk_status dtype_of(const stki_csv *csv, int column, const stki_reader_opts *opts, stk_dtype *out,
                           stk_error *err)
{
    static const stk_dtype found[] = {[STKI_CSV_WHOLE] = STK_I64, [STKI_CSV_REAL] = STK_F64, [STKI_CSV_TEXT] = STK_U8};

    *out = opts->alias_dtype != STK_DTYPE_NONE ? opts->alias_dtype : found[csv->columns[column].kind];
    if (opts->alias_dtype == STK_DTYPE_NONE && opts->integers != STK_DTYPE_NONE && *out == STK_F64)
        *out = STK_I64;
    if (*out == STK_I64 || *out == STK_F64 || *out == STK_U8)
        return STK_OK;
    return stki_fail_at(err, STK_E_MISMATCH,
                        (stki_place){csv->base.path, -1, -1, STKI_TEXT("%s (source.dtype)", stk_dtype_long_name(*out)),
                                     "int64, float64, or uint8 for text (the field's dtype casts to others)"},
                        "column %s: unsupported dtype", csv->columns[column].name);
}

static stk_status refuse_text(const stki_csv *csv, int column, bool picked, stk_dtype integers, stk_error *err);

/* Reads the columns of the option `columns` with a common dtype, which is the same as with numpy.result_type. */
static stk_status picked_array(const stki_csv *csv, const stki_reader_opts *opts, const int *picked, int count,
                               stki_array *out, stk_error *err)
{
    stk_dtype dtype = STK_I64, own = STK_I64;
    stk_status status = STK_OK;

    for (int i = 0; i < count && status == STK_OK; i++) {
        if (csv->columns[picked[i]].kind == STKI_CSV_TEXT && csv->count > 0)
            status = refuse_text(csv, picked[i], true, opts->integers, err);
        if (status == STK_OK)
            status = dtype_of(csv, picked[i], opts, &own, err);
        dtype = own == STK_I64 ? dtype : own;
    }
    if (status == STK_OK && dtype == STK_U8)
        status = stki_fail_at(err, STK_E_CONFIG, (stki_place){csv->base.path, -1, -1, "uint8", "int64 or float64"},
                              "invalid source.dtype for source.columns");
    return status == STK_OK ? number_array(csv, picked, count, true, dtype, opts->integers, out, err) : status;
}

stk_status stki_csv_array(const stki_container *base, int64_t member, const stki_reader_opts *opts, stki_array *out,
                          stk_error *err)
{
    const stki_csv *csv = (const stki_csv *)(const void *)base;
    int *picked = stki_zalloc_array(csv->column_count, sizeof *picked), count;
    const int one = (int)member;
    stk_dtype dtype;
    stk_status status = picked ? stki_csv_pick(csv, opts, picked, &count, err)
                               : stki_fail_memory(err, csv->column_count * (int64_t)sizeof *picked, "columns");

    if (status == STK_OK && count > 0)
        status = picked_array(csv, opts, picked, count, out, err);
    stki_free(picked);
    if (status != STK_OK || count > 0)
        return status;
    status = dtype_of(csv, (int)member, opts, &dtype, err);
    if (status == STK_OK && (dtype == STK_U8 || stki_csv_listed(opts) != STKI_LISTED_NOTHING))
        status = stki_fail_at(err, STK_E_UNSUPPORTED,
                              (stki_place){base->path, -1, -1, "samples of different sizes", "one array"},
                              "%s cannot be read as an array", base->members[member].name);
    return status != STK_OK ? status : number_array(csv, &one, 1, false, dtype, opts->integers, out, err);
}

/* Finds the first cell that is not a number, for the error if numbers were requested. */
static stk_status find_text(void *context, int64_t record, const stki_csv_cell *cell, stk_error *err)
{
    const numbers *n = context;
    double real;
    bool large; /* an integer that exceeds 64 bits */
    char text[256];
    stk_status status;

    if (record < n->csv->columns[n->columns[0]].first_text)
        return STK_OK;
    large = stki_csv_number(cell, &real);
    status = stki_csv_fail(n->csv, n->columns[0], record, STK_E_MISMATCH, cell,
                           large ? "an integer of at most 64 bits" : "a number", err);
    if (err) {
        const size_t used = strlen(err->message);
        const char *advice = "set source: {classes: sorted} to number the class names, or source: {dtype: uint8} to "
                             "get the characters";

        if (n->picked) {
            snprintf(err->message + used, sizeof err->message - used,
                     ", because source.columns reads numbers: correct the cell, or leave the column out");
            return status;
        }
        stki_npy_printable(text, sizeof text, cell->at, cell->length < 255 ? cell->length : 255);
        if (large && n->integers == STK_DTYPE_NONE)
            advice = "or set source: {dtype: float64}, which rounds it";
        else if (stki_image_name(text))
            advice = "or set source: {files: images} to read the images that the cells name";
        snprintf(err->message + used, sizeof err->message - used,
                 ", because the field has a dtype or transforms: correct the cell, remove them, %s", advice);
    }
    return status;
}

static stk_status refuse_text(const stki_csv *csv, int column, bool picked, stk_dtype integers, stk_error *err)
{
    numbers n = {.csv = csv, .columns = &column, .count = 1, .picked = picked, .integers = integers};

    return stki_csv_walk_run(&(stki_csv_walk){csv, column, &n, find_text}, err);
}

/* ---- strings ---- */

struct cells {
    stki_reader base; /* first member */
    const stki_csv *csv;
    int column;
    int64_t max_bytes; /* limit set by the option; 0: none */
};

static const struct cells *cells_of(const stki_reader *base)
{
    return (const struct cells *)(const void *)base;
}

/* Finds the cell in a record whose bytes are in memory. */
static stk_status find_cell(const struct cells *c, int64_t index, const char *bytes, stki_csv_cell *out, stk_error *err)
{
    stk_status status = stki_csv_cell_of(c->csv, c->column, index, bytes, out, err);

    if (status != STK_OK || c->max_bytes == 0 || stki_csv_bytes(out) <= c->max_bytes)
        return status;
    return stki_csv_fail(c->csv, c->column, index, STK_E_LIMIT, out,
                         STKI_TEXT("at most %" PRId64 " bytes (max_bytes)", c->max_bytes), err);
}

static stk_status cells_shape(const stki_reader *base, int64_t index, int64_t *shape, stk_error *err)
{
    const struct cells *c = cells_of(base);
    const stki_file *file = c->csv->file;
    char small[SMALL], *block = NULL;
    const char *bytes = small;
    stki_csv_cell cell = {0};
    stk_status status = stki_reader_check_index(base, index, err);
    int64_t at, count;

    if (status != STK_OK)
        return status;
    stki_places_pair(&c->csv->start, index, &at, &count);
    count -= at;
    if (file->map) {
        bytes = (const char *)file->map + at;
    } else {
        if (count > SMALL && !(block = stki_zalloc(count)))
            return stki_fail_memory(err, count, "a record of a table");
        status = stki_fail_record(err, stki_file_read(file, at, block ? block : small, count, err), index);
        bytes = block ? block : small;
    }
    if (status == STK_OK)
        status = find_cell(c, index, bytes, &cell, err);
    shape[0] = stki_csv_bytes(&cell);
    stki_free(block);
    return status;
}

static int cells_place(const stki_reader *base, int64_t index, stki_range *out)
{
    int64_t at, end;

    stki_places_pair(&cells_of(base)->csv->start, index, &at, &end);
    out[0] = (stki_range){at, end - at};
    return 1;
}

static stk_status cells_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                             stk_tensor *out, stk_error *err)
{
    const struct cells *c = cells_of(base);
    const stki_file *file = c->csv->file;
    const char *bytes;
    stki_scratch *raw;
    stki_csv_cell cell;
    stk_status status = stki_reader_check_index(base, index, err);
    int64_t at, count;

    (void)want;
    if (status != STK_OK)
        return status;
    stki_places_pair(&c->csv->start, index, &at, &count);
    count -= at;
    bytes = file->map ? (const char *)file->map + at : NULL;
    if (!bytes) {
        if ((status = stki_scratch_second(scratch, &raw, err)) != STK_OK ||
            (status = stki_scratch_reserve(raw, count, err)) != STK_OK)
            return status;
        status = stki_fail_record(err, stki_file_read(file, at, raw->data, count, err), index);
        bytes = raw->data;
    }
    if (status == STK_OK)
        status = find_cell(c, index, bytes, &cell, err);
    if (status == STK_OK && cell.quotes > 0)
        status = stki_scratch_reserve(scratch, stki_csv_bytes(&cell), err);
    if (status != STK_OK)
        return status;
    if (cell.quotes > 0)
        stki_csv_text(&cell, scratch->data);
    *out = (stk_tensor){.data = cell.quotes > 0 ? scratch->data : (void *)(uintptr_t)cell.at,
                        .dtype = STK_U8,
                        .ndim = 1,
                        .flags = STK_TENSOR_READONLY,
                        .shape = {stki_csv_bytes(&cell)},
                        .strides = {1}};
    return STK_OK;
}

static void cells_where(const stki_reader *base, int64_t index, char *buffer, int size)
{
    const struct cells *c = cells_of(base);
    char shown[96];

    snprintf(buffer, (size_t)size, "line %" PRId64 ", column %d (%s)", stki_csv_line(c->csv, index), c->column + 1,
             stki_text_end(shown, sizeof shown, c->csv->columns[c->column].name));
}

static void cells_destroy(stki_reader *base)
{
    struct cells *c = (struct cells *)(void *)base;

    stki_container_release((stki_container *)(uintptr_t)&c->csv->base);
    stki_free(base->path);
    stki_free(c);
}

static const stki_reader_ops cell_ops = {
    .format = "csv", .read = cells_read, .shape = cells_shape, .where = cells_where, .destroy = cells_destroy};

static stk_status text_reader(const stki_csv *csv, int column, const stki_reader_opts *opts, stki_reader **out,
                              stk_error *err)
{
    struct cells *c = stki_zalloc(sizeof *c);
    stki_reader *base;

    if (!c)
        return stki_fail_memory(err, sizeof *c, csv->base.path);
    base = &c->base;
    c->csv = csv;
    c->column = column;
    c->max_bytes = opts->max_bytes;
    (void)stki_container_retain(&csv->base);
    *base = (stki_reader){.ops = &cell_ops,
                          .count = csv->count,
                          .dtype = STK_U8,
                          .ending = "txt",
                          .ndim = 1,
                          .strides = {1},
                          .variable = true,
                          .copies = true,
                          .access = csv->file->access,
                          .note = csv->file->note,
                          .held_bytes = stki_places_bytes(&csv->start),
                          .file_bytes = csv->file->size,
                          .data_offset = -1,
                          .file = csv->file,
                          .place = cells_place,
                          .placer = base};
    base->shape[0] = base->max_bytes = opts->max_bytes > 0 ? opts->max_bytes : csv->columns[column].longest;
    base->path = stki_strdup(csv->base.path);
    if (!base->path) {
        cells_destroy(base);
        return stki_fail_memory(err, (int64_t)strlen(csv->base.path) + 1, csv->base.path);
    }
    *out = base;
    return STK_OK;
}

/* ---- open ---- */

stk_status stki_csv_reader(const stki_csv *csv, int column, const stki_reader_opts *opts, stki_reader **out,
                           stk_error *err)
{
    stki_array array;
    stk_dtype dtype = STK_F64;
    stk_status status;

    if (!csv->picked && stki_csv_listed(opts) != STKI_LISTED_NOTHING)
        return stki_csv_files(csv, column, opts, out, err);
    status = csv->picked ? STK_OK : dtype_of(csv, column, opts, &dtype, err);
    if (status == STK_OK && dtype == STK_U8 && opts->numbers && opts->alias_dtype == STK_DTYPE_NONE && csv->count > 0)
        return refuse_text(csv, column, false, opts->integers, err);
    if (status == STK_OK && dtype == STK_U8)
        return text_reader(csv, column, opts, out, err);
    if (status == STK_OK)
        status = stki_csv_array(&csv->base, column, opts, &array, err);
    if (status != STK_OK)
        return status;
    status = stki_array_reader(&array, "csv", csv->base.path, opts, out, err);
    if (status == STK_OK)
        (*out)->remedy = STKI_NUMBERS_REMEDY;
    stki_array_release(&array); /* the numbers are in memory, so the table is no longer needed */
    if (status == STK_OK)
        (*out)->held_bytes += (*out)->count * (*out)->max_bytes;
    return status;
}
