/* beton_write.c: writing .beton files that FFCV reads (beton.h draws them). The caller's thread decides where
 * everything goes: each sample's regions lie in one page, one behind the other; a sample that does not fit the rest of
 * a page begins the next. Where a sample lands so depends on sizes alone, and not on who writes the pages.
 *
 * Rows are written as they fill a buffer. Of the table of allocations only the sizes are remembered, 4 bytes a region;
 * at the end the pages are laid out again to write it. The header says that there is no table until all else is there.
 *
 * An empty region takes a byte, so that no two allocations share a pointer: FFCV looks lengths up by pointer alone. */
#include "allocate.h"
#include "beton_check.h"
#include "checked.h"
#include "error.h"
#include "page_writer.h"
#include "thread.h"
#include <inttypes.h>
#include <string.h>

enum { ROW_BUFFER = 1 << 20, TABLE_BUFFER = 24 << 10, ALIGNMENT = 64 };
#define PAGE_LEAST (INT64_C(2) << 20)
#define PAGE_MOST (INT64_C(2) << 30)
#define PAGE_DEFAULT (INT64_C(8) << 20)

/* Where the next region goes. */
struct cursor {
    int64_t page; /* -1: none begun */
    int64_t used; /* bytes of it */
};

struct stk_beton_writer {
    stki_output *output;
    stki_page_writer *pages;
    stki_beton_layout layout;
    stki_beton_field *fields;
    int regions; /* fields that have one */
    int64_t done;
    struct cursor cursor;
    char *page; /* being filled, or NULL */
    char *rows; /* ROW_BUFFER or one row */
    int64_t row_room, rows_held;
    uint32_t *sizes; /* of every region of every sample */
    stk_status failed;
};

/* ---- creating ------------------------------------------------------------------------------------------------------
 */

static stk_status check_given(const char *path, const stk_beton_field *fields, const stk_beton_opts *opts,
                              stk_beton_writer **out, stk_error *err)
{
    stk_status status = stki_check_given(path, "path", err);

    if (!status)
        status = stki_check_given(fields, "fields", err);
    if (!status)
        status = stki_check_given(out, "out", err);
    if (!status && opts && opts->struct_size < sizeof opts->struct_size)
        status = stki_fail_at(
            err, STK_E_BAD_ARG,
            (stki_place){path, -1, -1, STKI_TEXT("%" PRIu32, opts->struct_size), "that of STK_BETON_OPTS_INIT"},
            "opts.struct_size");
    return status;
}

static stk_status check_numbers(const char *path, int field_count, int64_t sample_count, int64_t page_bytes,
                                stk_error *err)
{
    if (field_count < 1 || field_count > UINT16_MAX)
        return stki_fail_at(err, STK_E_BAD_ARG, (stki_place){path, -1, -1, STKI_TEXT("%d", field_count), "1 to 65535"},
                            "number of fields");
    if (sample_count < 1)
        return stki_fail_at(err, STK_E_BAD_ARG,
                            (stki_place){path, -1, -1, STKI_TEXT("%" PRId64, sample_count), "at least 1"},
                            "number of samples");
    if (page_bytes < PAGE_LEAST || page_bytes > PAGE_MOST || (page_bytes & (page_bytes - 1)))
        return stki_fail_at(
            err, STK_E_BAD_ARG,
            (stki_place){path, -1, -1, STKI_TEXT("%" PRId64, page_bytes), "a power of two from 2 MiB to 2 GiB"},
            "page_bytes");
    return STK_OK;
}

static stk_status write_header(stk_beton_writer *w, int64_t table, stk_error *err)
{
    char head[STKI_BETON_HEADER];
    uint16_t version = 2, fields = (uint16_t)w->layout.field_count;
    uint32_t page = (uint32_t)w->layout.page_bytes;

    memcpy(head, &version, 2);
    memcpy(head + 2, &fields, 2);
    memcpy(head + 4, &page, 4);
    memcpy(head + 8, &w->layout.sample_count, 8);
    memcpy(head + 16, &table, 8);
    return stki_output_write_at(w->output, 0, head, sizeof head, err);
}

static stk_status write_front(stk_beton_writer *w, stk_error *err)
{
    char descriptor[STKI_BETON_FIELD];
    stk_status status = write_header(w, 0, err);

    for (int i = 0; i < w->layout.field_count && !status; i++) {
        stki_beton_write_descriptor(&w->fields[i], descriptor);
        status = stki_output_write_at(w->output, STKI_BETON_HEADER + (int64_t)i * STKI_BETON_FIELD, descriptor,
                                      sizeof descriptor, err);
    }
    return status;
}

static stk_status reserve(stk_beton_writer *w, const char *path, stk_error *err)
{
    stki_beton_layout *l = &w->layout;
    int64_t bytes, regions;

    w->row_room = l->row_bytes < ROW_BUFFER ? ROW_BUFFER / l->row_bytes : 1;
    w->rows = stki_zalloc_array(w->row_room, l->row_bytes);
    if (!w->rows)
        return stki_fail_memory(err, w->row_room * l->row_bytes, path);
    if (w->regions == 0)
        return STK_OK;
    if (!stki_mul(l->sample_count, w->regions, &regions) || !stki_mul(regions, sizeof *w->sizes, &bytes))
        return stki_fail_memory(err, INT64_MAX, path);
    w->sizes = stki_block_alloc(&stki_heap, bytes, ALIGNMENT);
    return w->sizes ? STK_OK : stki_fail_memory(err, bytes, path);
}

static stk_status prepare(stk_beton_writer *w, const char *path, const stk_beton_field *fields, int threads,
                          stk_error *err)
{
    stk_status status = STK_OK;

    w->fields = stki_zalloc_array(w->layout.field_count, sizeof *w->fields);
    if (!w->fields)
        return stki_fail_memory(err, w->layout.field_count * (int64_t)sizeof *w->fields, path);
    for (int i = 0; i < w->layout.field_count && !status; i++)
        status = stki_beton_check_field(path, fields, i, w->layout.page_bytes, &w->fields[i], err);
    for (int i = 0; i < w->layout.field_count && !status; i++)
        w->regions += stki_beton_has_region(w->fields[i].kind);
    if (!status) {
        w->layout.rows = STKI_BETON_HEADER + (int64_t)w->layout.field_count * STKI_BETON_FIELD;
        w->layout.table = INT64_MAX / 2; /* it comes last */
        status = stki_beton_lay_out(&w->layout, w->fields, INT64_MAX / 2, path, err);
    }
    if (!status)
        status = reserve(w, path, err);
    if (!status)
        status = stki_output_create(path, &w->output, err);
    if (!status)
        status = write_front(w, err);
    if (!status && w->regions > 0)
        status = stki_page_writer_create(w->output, w->layout.page_bytes, threads, &w->pages, err);
    return status;
}

stk_status stk_beton_create(const char *path, const stk_beton_field *fields, int field_count, int64_t sample_count,
                            const stk_beton_opts *opts, stk_beton_writer **out, stk_error *err)
{
    stk_beton_opts effective = {0};
    stk_beton_writer *w;
    stk_status status = check_given(path, fields, opts, out, err);

    if (status)
        return status;
    if (opts)
        memcpy(&effective, opts, opts->struct_size < sizeof effective ? opts->struct_size : sizeof effective);
    if (effective.page_bytes == 0)
        effective.page_bytes = PAGE_DEFAULT;
    if (effective.threads == 0)
        effective.threads = (uint32_t)stki_cpu_count();
    status = check_numbers(path, field_count, sample_count, effective.page_bytes, err);
    if (status)
        return status;
    w = stki_zalloc(sizeof *w);
    if (!w)
        return stki_fail_memory(err, sizeof *w, path);
    w->layout.page_bytes = effective.page_bytes;
    w->layout.field_count = field_count;
    w->layout.sample_count = sample_count;
    w->cursor = (struct cursor){-1, effective.page_bytes};
    status = prepare(w, path, fields, effective.threads > INT32_MAX ? INT32_MAX : (int)effective.threads, err);
    if (status)
        stk_beton_abort(w);
    else
        *out = w;
    return status;
}

/* ---- one sample ----------------------------------------------------------------------------------------------------
 */

/* Moves the cursor to where a sample with regions of these sizes begins. False: it does not fit a page. */
static bool place_sample(struct cursor *cursor, int64_t page_bytes, const uint32_t *sizes, int regions, int64_t *total)
{
    *total = 0;
    for (int i = 0; i < regions; i++)
        *total += sizes[i] > 0 ? sizes[i] : 1;
    if (*total > page_bytes)
        return false;
    if (*total > page_bytes - cursor->used) {
        cursor->page++;
        cursor->used = 0;
    }
    return true;
}

static int64_t place_region(struct cursor *cursor, const stki_beton_layout *layout, uint32_t size)
{
    int64_t pointer = layout->data_start + cursor->page * layout->page_bytes + cursor->used;

    cursor->used += size > 0 ? size : 1;
    return pointer;
}

static stk_status end_page(stk_beton_writer *w, int64_t page, int64_t used, stk_error *err)
{
    char *full = w->page;

    if (!full)
        return STK_OK;
    w->page = NULL;
    memset(full + used, 0, (size_t)(w->layout.page_bytes - used));
    return stki_page_put(w->pages, full, w->layout.data_start + page * w->layout.page_bytes, err);
}

/* Sizes of all regions; the page they go to is w->page afterwards. */
static stk_status make_room(stk_beton_writer *w, const stk_beton_value *values, uint32_t *sizes, stk_error *err)
{
    const stki_beton_place place = {stki_output_path(w->output), w->done, w->layout.page_bytes};
    struct cursor before = w->cursor;
    int64_t total, size, wanted = 0;
    stk_status status = STK_OK;
    void *page;

    for (int i = 0, region = 0; i < w->layout.field_count && !status; i++) {
        if (!stki_beton_has_region(w->fields[i].kind))
            continue;
        status = stki_beton_check_value(&place, &w->fields[i], &values[i], &size, err);
        sizes[region++] = (uint32_t)size; /* at most a page and one */
        wanted += values[i].size > INT64_MAX - wanted - 1 ? 0 : values[i].size + (w->fields[i].kind == STKI_BETON_JSON);
    }
    if (status)
        return status;
    if (!place_sample(&w->cursor, w->layout.page_bytes, sizes, w->regions, &total))
        return stki_fail_at(err, STK_E_LIMIT,
                            (stki_place){stki_output_path(w->output), w->done, -1,
                                         STKI_TEXT("%" PRId64 " bytes", wanted > total ? wanted : total),
                                         STKI_TEXT("at most %" PRId64 " (page_bytes)", w->layout.page_bytes)},
                            "the sample does not fit a page");
    if (w->cursor.page == before.page)
        return STK_OK;
    status = end_page(w, before.page, before.used, err);
    if (!status)
        status = stki_page_take(w->pages, &page, err);
    if (!status)
        w->page = page;
    return status;
}

static void fill_region(stk_beton_writer *w, const stki_beton_field *field, const stk_beton_value *value, uint32_t size,
                        char *row)
{
    char *to = w->page + w->cursor.used;
    int64_t pointer = place_region(&w->cursor, &w->layout, size);
    uint16_t width = (uint16_t)value->width, height = (uint16_t)value->height;
    uint64_t length = size;

    if (value->size > 0)
        memcpy(to, value->bytes, (size_t)value->size);
    if (value->size < (int64_t)size || size == 0)
        to[value->size] = '\0'; /* of a JSON text, and the byte of an empty region */
    switch (field->kind) {
    case STKI_BETON_IMAGE:
        row[0] = value->jpeg ? STKI_BETON_JPEG : STKI_BETON_RAW;
        memcpy(row + 1, &width, 2);
        memcpy(row + 3, &height, 2);
        memcpy(row + 5, &pointer, 8);
        return;
    case STKI_BETON_BYTES:
    case STKI_BETON_JSON:
        memcpy(row + 8, &length, 8);
        break;
    default:
        break;
    }
    memcpy(row, &pointer, 8);
}

static stk_status flush_rows(stk_beton_writer *w, stk_error *err)
{
    int64_t row_bytes = w->layout.row_bytes, first = w->done - w->rows_held;
    stk_status status;

    if (w->rows_held == 0)
        return STK_OK;
    status =
        stki_output_write_at(w->output, w->layout.rows + first * row_bytes, w->rows, w->rows_held * row_bytes, err);
    memset(w->rows, 0, (size_t)(w->rows_held * row_bytes));
    w->rows_held = 0;
    return status;
}

static stk_status append_one(stk_beton_writer *w, const stk_beton_value *values, stk_error *err)
{
    char *row = w->rows + w->rows_held * w->layout.row_bytes;
    uint32_t *sizes = w->sizes ? w->sizes + w->done * w->regions : NULL;
    int region = 0;
    stk_status status = STK_OK;

    if (w->done >= w->layout.sample_count)
        return stki_fail_at(err, STK_E_RANGE,
                            (stki_place){stki_output_path(w->output), w->done, -1, "one sample more",
                                         STKI_TEXT("%" PRId64, w->layout.sample_count)},
                            "number of samples");
    if (w->regions > 0)
        status = make_room(w, values, sizes, err);
    if (status)
        return status;
    for (int i = 0; i < w->layout.field_count; i++) {
        const stki_beton_field *field = &w->fields[i];

        if (field->kind == STKI_BETON_FLOAT)
            memcpy(row + field->row_offset, &values[i].real, 8);
        else if (field->kind == STKI_BETON_INT)
            memcpy(row + field->row_offset, &values[i].integer, 8);
        else
            fill_region(w, field, &values[i], sizes[region++], row + field->row_offset);
    }
    w->done++;
    w->rows_held++;
    return w->rows_held == w->row_room ? flush_rows(w, err) : STK_OK;
}

static stk_status fail_earlier(const stk_beton_writer *w, stk_error *err)
{
    return stki_fail_at(err, w->failed, (stki_place){stki_output_path(w->output), -1, -1, NULL, NULL},
                        "an earlier write failed");
}

stk_status stk_beton_append(stk_beton_writer *w, const stk_beton_value *values, int64_t count, stk_error *err)
{
    stk_status status = stki_check_given(w, "writer", err);

    if (status)
        return status;
    if (w->failed)
        return fail_earlier(w, err);
    if (count > 0)
        w->failed = stki_check_given(values, "values", err);
    if (count < 0)
        w->failed = stki_fail_at(
            err, STK_E_BAD_ARG,
            (stki_place){stki_output_path(w->output), w->done, -1, STKI_TEXT("%" PRId64, count), "at least 0"},
            "number of samples to append");
    for (int64_t i = 0; i < count && !w->failed; i++)
        w->failed = append_one(w, values + i * w->layout.field_count, err);
    return w->failed;
}

/* ---- finishing -----------------------------------------------------------------------------------------------------
 */

/* The allocations of all samples, laid out once more. */
static stk_status write_table(stk_beton_writer *w, int64_t table, stk_error *err)
{
    struct cursor cursor = {-1, w->layout.page_bytes};
    uint64_t entries[TABLE_BUFFER / 8];
    int64_t total, held = 0;
    stk_status status = STK_OK;

    for (int64_t i = 0; i < w->layout.sample_count && !status; i++) {
        const uint32_t *sizes = w->sizes + i * w->regions;

        (void)place_sample(&cursor, w->layout.page_bytes, sizes, w->regions, &total);
        for (int region = 0; region < w->regions && !status; region++) {
            entries[held++] = (uint64_t)i;
            entries[held++] = (uint64_t)place_region(&cursor, &w->layout, sizes[region]);
            entries[held++] = sizes[region];
            if (held < TABLE_BUFFER / 8)
                continue;
            status = stki_output_write_at(w->output, table, entries, sizeof entries, err);
            table += (int64_t)sizeof entries;
            held = 0;
        }
    }
    if (!status && held > 0)
        status = stki_output_write_at(w->output, table, entries, held * 8, err);
    return status;
}

static stk_status finish(stk_beton_writer *w, stk_error *err)
{
    int64_t table = w->layout.rows_end;
    stk_status status;

    if (w->failed)
        return fail_earlier(w, err);
    if (w->done != w->layout.sample_count)
        return stki_fail_at(err, STK_E_MISMATCH,
                            (stki_place){stki_output_path(w->output), -1, -1, STKI_TEXT("%" PRId64, w->done),
                                         STKI_TEXT("%" PRId64 " as announced", w->layout.sample_count)},
                            "number of samples");
    status = flush_rows(w, err);
    if (!status && w->regions > 0) {
        table = w->layout.data_start + (w->cursor.page + 1) * w->layout.page_bytes;
        status = end_page(w, w->cursor.page, w->cursor.used, err);
        if (!status)
            status = stki_page_writer_finish(w->pages, err);
        if (!status)
            status = write_table(w, table, err);
    }
    return status ? status : write_header(w, table, err);
}

static void discard(stk_beton_writer *w)
{
    int64_t regions = w->layout.sample_count * w->regions;

    stki_page_writer_destroy(w->pages);
    stki_output_abort(w->output);
    if (w->sizes)
        stki_block_free(&stki_heap, w->sizes, regions * (int64_t)sizeof *w->sizes, ALIGNMENT);
    stki_free(w->fields);
    stki_free(w->rows);
    stki_free(w);
}

stk_status stk_beton_commit(stk_beton_writer *w, stk_error *err)
{
    stk_status status = stki_check_given(w, "writer", err);

    if (status)
        return status;
    status = finish(w, err);
    if (!status) {
        stki_page_writer_destroy(w->pages); /* its threads are done */
        w->pages = NULL;
        status = stki_output_commit(w->output, err);
        w->output = NULL;
    }
    discard(w);
    return status;
}

void stk_beton_abort(stk_beton_writer *w)
{
    if (w)
        discard(w);
}
