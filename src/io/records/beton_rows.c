/* beton_rows.c: writes one sample of a .beton file: its regions to a page, and its row to the row buffer.
 *
 * With threads, a page is assembled in memory, and one of the threads writes it. Without threads, regions are written
 * consecutively, long ones without copying, and the rest of a page is filled with zeros.
 *
 * An empty region occupies one byte, because FFCV looks up lengths by pointer, so no two allocations may have the same
 * pointer. */
#include "beton_write.h"
#include "error.h"
#include <inttypes.h>
#include <string.h>

bool stki_beton_place_sample(stki_beton_cursor *cursor, int64_t page_bytes, const uint32_t *sizes, int regions,
                             int64_t *total)
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

int64_t stki_beton_place_region(stki_beton_cursor *cursor, const stki_beton_layout *layout, uint32_t size)
{
    int64_t pointer = layout->data_start + cursor->page * layout->page_bytes + cursor->used;

    cursor->used += size > 0 ? size : 1;
    return pointer;
}

/* ---- pages ---- */

stk_status stki_beton_end_page(stk_beton_writer *w, const stki_beton_cursor *end, stk_error *err)
{
    char *full = w->page;

    if (end->page < 0)
        return STK_OK;
    if (!w->pages)
        return stki_output_pad(w->output, w->layout.page_bytes, err);
    if (!full)
        return STK_OK;
    w->page = NULL;
    memset(full + end->used, 0, (size_t)(w->layout.page_bytes - end->used));
    return stki_page_put(w->pages, full, w->layout.data_start + end->page * w->layout.page_bytes, err);
}

static stk_status begin_page(stk_beton_writer *w, stk_error *err)
{
    void *page;
    stk_status status;

    if (!w->pages) /* seeks only before the first page */
        return w->cursor.page > 0 ? STK_OK : stki_output_seek(w->output, w->layout.data_start, err);
    status = stki_page_take(w->pages, &page, err);
    if (status == STK_OK)
        w->page = page;
    return status;
}

/* Computes the sizes of all regions, and starts a new page if they do not fit in the current one. */
static stk_status make_room(stk_beton_writer *w, const stk_beton_value *values, stk_error *err)
{
    const stki_beton_place place = {stki_output_path(w->output), w->done, w->layout.page_bytes};
    stki_beton_cursor before = w->cursor;
    int64_t total, size, wanted = 0;
    stk_status status = STK_OK;

    for (int i = 0, region = 0; i < w->layout.field_count && status == STK_OK; i++) {
        if (!stki_beton_has_region(w->fields[i].kind))
            continue;
        status = stki_beton_check_value(&place, &w->fields[i], &values[i], &size, err);
        w->sizes[region++] = (uint32_t)size; /* at most a page plus one byte */
        wanted += values[i].size > INT64_MAX - wanted - 1 ? 0 : values[i].size + (w->fields[i].kind == STKI_BETON_JSON);
    }
    if (status != STK_OK)
        return status;
    if (!stki_beton_place_sample(&w->cursor, w->layout.page_bytes, w->sizes, w->regions, &total))
        return stki_fail_at(err, STK_E_LIMIT,
                            (stki_place){stki_output_path(w->output), w->done, -1,
                                         STKI_TEXT("%" PRId64 " bytes", wanted > total ? wanted : total),
                                         STKI_TEXT("at most %" PRId64 " (page_bytes)", w->layout.page_bytes)},
                            "the sample does not fit in a page");
    if (w->cursor.page == before.page)
        return STK_OK;
    status = stki_beton_end_page(w, &before, err);
    return status != STK_OK ? status : begin_page(w, err);
}

/* ---- regions ---- */

/* Stores the bytes of a region. `size` includes the NUL after a JSON text. */
static stk_status put_region(stk_beton_writer *w, const stk_beton_value *value, uint32_t size, stk_error *err)
{
    bool nul = value->size < (int64_t)size || size == 0; /* the NUL of a JSON text, or the byte of an empty region */
    char *to = w->pages ? w->page + w->cursor.used : NULL;
    stk_status status = STK_OK;

    if (to) {
        if (value->size > 0)
            memcpy(to, value->bytes, (size_t)value->size);
        if (nul)
            to[value->size] = '\0';
        return STK_OK;
    }
    if (value->size > 0)
        status = stki_output_lend(w->output, value->bytes, value->size, err);
    return status != STK_OK || !nul ? status : stki_output_append(w->output, "", 1, err);
}

static void fill_row(const stki_beton_field *field, const stk_beton_value *value, int64_t pointer, uint32_t size,
                     char *row)
{
    uint16_t width = (uint16_t)value->width, height = (uint16_t)value->height;
    uint64_t length = size;

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

/* ---- rows ---- */

stk_status stki_beton_flush_rows(stk_beton_writer *w, stk_error *err)
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

static stk_status put_fields(stk_beton_writer *w, const stk_beton_value *values, stk_error *err)
{
    char *row = w->rows + w->rows_held * w->layout.row_bytes;
    int region = 0;
    stk_status status = STK_OK;

    for (int i = 0; i < w->layout.field_count && status == STK_OK; i++) {
        const stki_beton_field *field = &w->fields[i];

        if (field->kind == STKI_BETON_FLOAT) {
            memcpy(row + field->row_offset, &values[i].real, 8);
        } else if (field->kind == STKI_BETON_INT) {
            memcpy(row + field->row_offset, &values[i].integer, 8);
        } else {
            uint32_t size = w->sizes[region++];

            status = put_region(w, &values[i], size, err);
            fill_row(field, &values[i], stki_beton_place_region(&w->cursor, &w->layout, size), size,
                     row + field->row_offset);
        }
    }
    return status;
}

stk_status stki_beton_append_one(stk_beton_writer *w, const stk_beton_value *values, stk_error *err)
{
    stk_status status = STK_OK;

    if (w->done >= w->layout.sample_count)
        return stki_fail_at(err, STK_E_RANGE,
                            (stki_place){stki_output_path(w->output), w->done, -1, "one more sample",
                                         STKI_TEXT("%" PRId64, w->layout.sample_count)},
                            "too many samples");
    if (w->regions > 0)
        status = make_room(w, values, err);
    if (status == STK_OK && w->regions > 0)
        status = stki_spill_append(w->spill, w->sizes, w->regions * (int64_t)sizeof *w->sizes, err);
    if (status == STK_OK)
        status = put_fields(w, values, err);
    if (status != STK_OK)
        return status;
    w->done++;
    w->rows_held++;
    return w->rows_held == w->row_room ? stki_beton_flush_rows(w, err) : STK_OK;
}
