/* beton_write.c: writes .beton files that FFCV can read (see beton.h for the layout). The calling thread determines all
 * positions: the regions of a sample are consecutive in one page, and a sample that does not fit in the rest of a page
 * starts the next one. Positions therefore depend only on sizes, and not on which thread writes a page.
 *
 * Rows are written whenever their buffer is full. For the table of allocations, only the sizes are kept, in a temporary
 * file with 4 bytes per region; at the end, the positions are computed again and the table is written. The header
 * states that there is no table until everything else has been written.
 *
 * Memory does not grow with the number of samples. To resume after a crash, a writer needs only three numbers;
 * everything else is in the two files. */
#include "beton_write.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "thread.h"
#include <inttypes.h>
#include <string.h>

enum { ROW_BUFFER = 1 << 20, SIZES_BUFFER = 32 << 10 };
#define PAGE_LEAST (INT64_C(2) << 20)
#define PAGE_MOST (INT64_C(2) << 30)
#define PAGE_DEFAULT (INT64_C(8) << 20)

/* ---- creating ---- */

static stk_status check_given(const char *path, const stk_beton_field *fields, const stk_beton_opts *opts,
                              stk_beton_writer **out, stk_error *err)
{
    stk_status status = stki_check_given(path, "path", err);

    if (status == STK_OK)
        status = stki_check_given(fields, "fields", err);
    if (status == STK_OK)
        status = stki_check_given(out, "out", err);
    if (status == STK_OK && opts && opts->struct_size < sizeof opts->struct_size)
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
                            "invalid number of fields");
    if (sample_count < 0)
        return stki_fail_at(err, STK_E_BAD_ARG,
                            (stki_place){path, -1, -1, STKI_TEXT("%" PRId64, sample_count), "0 or more"},
                            "invalid number of samples");
    if (page_bytes < PAGE_LEAST || page_bytes > PAGE_MOST || (page_bytes & (page_bytes - 1)))
        return stki_fail_at(
            err, STK_E_BAD_ARG,
            (stki_place){path, -1, -1, STKI_TEXT("%" PRId64, page_bytes), "a power of two from 2 MiB to 2 GiB"},
            "invalid page_bytes");
    return STK_OK;
}

static stk_status fail_earlier(const stk_beton_writer *w, stk_error *err)
{
    return stki_fail_at(err, w->failed, (stki_place){stki_output_path(w->output), -1, -1, NULL, NULL},
                        "an earlier write failed");
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

    for (int i = 0; i < w->layout.field_count && status == STK_OK; i++) {
        stki_beton_write_descriptor(&w->fields[i], descriptor);
        status = stki_output_write_at(w->output, STKI_BETON_HEADER + (int64_t)i * STKI_BETON_FIELD, descriptor,
                                      sizeof descriptor, err);
    }
    return status;
}

static stk_status reserve(stk_beton_writer *w, const char *path, stk_error *err)
{
    stki_beton_layout *l = &w->layout;

    w->row_room = l->row_bytes < ROW_BUFFER ? ROW_BUFFER / l->row_bytes : 1;
    w->row_room = w->row_room < l->sample_count ? w->row_room : l->sample_count;
    w->rows = stki_zalloc_array(w->row_room, l->row_bytes);
    if (!w->rows)
        return stki_fail_memory(err, w->row_room * l->row_bytes, path);
    if (w->regions == 0)
        return STK_OK;
    w->sizes = stki_zalloc_array(w->regions, sizeof *w->sizes);
    return w->sizes ? STK_OK : stki_fail_memory(err, w->regions * (int64_t)sizeof *w->sizes, path);
}

/* Sets fields and layout without accessing files. */
static stk_status prepare(stk_beton_writer *w, const char *path, const stk_beton_field *fields, stk_error *err)
{
    stk_status status = STK_OK;

    w->fields = stki_zalloc_array(w->layout.field_count, sizeof *w->fields);
    if (!w->fields)
        return stki_fail_memory(err, w->layout.field_count * (int64_t)sizeof *w->fields, path);
    for (int i = 0; i < w->layout.field_count && status == STK_OK; i++)
        status = stki_beton_check_field(path, fields, i, w->layout.page_bytes, &w->fields[i], err);
    for (int i = 0; i < w->layout.field_count && status == STK_OK; i++)
        w->regions += stki_beton_has_region(w->fields[i].kind);
    if (status != STK_OK)
        return status;
    w->layout.rows = STKI_BETON_HEADER + (int64_t)w->layout.field_count * STKI_BETON_FIELD;
    w->layout.table = INT64_MAX / 2; /* not known yet; the table is at the end */
    status = stki_beton_lay_out(&w->layout, w->fields, INT64_MAX / 2, path, err);
    return status != STK_OK ? status : reserve(w, path, err);
}

static stk_status make(const char *path, const stk_beton_field *fields, int field_count, int64_t sample_count,
                       int64_t page_bytes, stk_beton_writer **out, stk_error *err)
{
    stk_beton_writer *w;
    stk_status status;

    page_bytes = page_bytes ? page_bytes : PAGE_DEFAULT;
    status = check_numbers(path, field_count, sample_count, page_bytes, err);
    if (status != STK_OK)
        return status;
    w = stki_zalloc(sizeof *w);
    if (!w)
        return stki_fail_memory(err, sizeof *w, path);
    w->layout.page_bytes = page_bytes;
    w->layout.field_count = field_count;
    w->layout.sample_count = sample_count;
    w->cursor = (stki_beton_cursor){-1, page_bytes};
    status = prepare(w, path, fields, err);
    if (status != STK_OK)
        stk_beton_abort(w);
    else
        *out = w;
    return status;
}

static stk_status start(stk_beton_writer *w, const char *path, int threads, stk_error *err)
{
    stk_status status = stki_output_create(path, &w->output, err);

    if (status == STK_OK)
        status = write_front(w, err);
    if (status == STK_OK && w->regions > 0)
        status = stki_spill_create(path, &w->spill, err);
    if (status == STK_OK && w->regions > 0 && threads > 1)
        status = stki_page_writer_create(w->output, w->layout.page_bytes, threads, &w->pages, err);
    return status;
}

stk_status stk_beton_create(const char *path, const stk_beton_field *fields, int field_count, int64_t sample_count,
                            const stk_beton_opts *opts, stk_beton_writer **out, stk_error *err)
{
    stk_beton_opts effective = {0};
    stk_beton_writer *w;
    stk_status status = check_given(path, fields, opts, out, err);

    if (status != STK_OK)
        return status;
    if (opts)
        memcpy(&effective, opts, opts->struct_size < sizeof effective ? opts->struct_size : sizeof effective);
    if (effective.threads == 0)
        effective.threads = (uint32_t)stki_cpu_count();
    status = make(path, fields, field_count, sample_count, effective.page_bytes, &w, err);
    if (status != STK_OK)
        return status;
    status = start(w, path, effective.threads > INT32_MAX ? INT32_MAX : (int)effective.threads, err);
    if (status != STK_OK)
        stk_beton_abort(w);
    else
        *out = w;
    return status;
}

/* ---- marks and resuming ---- */

static stk_status check_mark(const stk_beton_writer *w, const char *path, const stki_beton_mark *mark, stk_error *err)
{
    bool begun = w->regions > 0 && mark->samples > 0;

    if (mark->samples >= 0 && mark->samples <= w->layout.sample_count && (mark->cursor.page >= 0) == begun &&
        mark->cursor.page < mark->samples && mark->cursor.page < (INT64_C(1) << 61) / w->layout.page_bytes &&
        mark->cursor.used >= 0 && mark->cursor.used <= w->layout.page_bytes)
        return STK_OK;
    return stki_fail_at(err, STK_E_CORRUPT,
                        (stki_place){path, -1, -1,
                                     STKI_TEXT("sample %" PRId64 ", page %" PRId64 ", byte %" PRId64, mark->samples,
                                               mark->cursor.page, mark->cursor.used),
                                     STKI_TEXT("at most %" PRId64 " samples", w->layout.sample_count)},
                        "invalid saved position");
}

static stk_status go_on(stk_beton_writer *w, const char *path, const stki_beton_making *making, stk_error *err)
{
    const stki_beton_mark *mark = making->mark;
    int64_t keep = w->layout.rows + mark->samples * w->layout.row_bytes;
    stk_status status = check_mark(w, path, mark, err);

    if (status != STK_OK)
        return status;
    if (w->regions > 0 && mark->samples > 0) /* cannot overflow, see check_mark */
        keep = w->layout.data_start + mark->cursor.page * w->layout.page_bytes + mark->cursor.used;
    status = stki_output_hold(path, making->temporary, keep, &w->output, err);
    if (status == STK_OK && w->regions > 0) /* clear rows after the mark, because they may not be written again */
        status = stki_output_clear(w->output, w->layout.rows + mark->samples * w->layout.row_bytes,
                                   (w->layout.sample_count - mark->samples) * w->layout.row_bytes, err);
    if (status == STK_OK && w->regions > 0)
        status = stki_spill_hold(making->sizes, mark->samples * w->regions * (int64_t)sizeof *w->sizes, &w->spill, err);
    w->done = mark->samples;
    w->cursor = mark->cursor;
    return status;
}

stk_status stki_beton_hold(const char *path, const stki_beton_making *making, const stk_beton_field *fields,
                           int field_count, int64_t most, int64_t page_bytes, stk_beton_writer **out, stk_error *err)
{
    stk_beton_writer *w;
    stk_status status = make(path, fields, field_count, most, page_bytes, &w, err);

    if (status != STK_OK)
        return status;
    if (making->mark) {
        status = go_on(w, path, making, err);
    } else {
        status = stki_output_hold(path, making->temporary, -1, &w->output, err);
        if (status == STK_OK && w->regions > 0)
            status = stki_spill_hold(making->sizes, -1, &w->spill, err);
    }
    if (status == STK_OK)
        status = write_front(w, err);
    if (status != STK_OK)
        stk_beton_abort(w);
    else
        *out = w;
    return status;
}

stk_status stki_beton_mark_here(stk_beton_writer *w, stki_beton_mark *out, stk_error *err)
{
    if (w->failed)
        return fail_earlier(w, err);
    w->failed = stki_beton_flush_rows(w, err);
    if (!w->failed)
        w->failed = stki_output_flush(w->output, err);
    if (!w->failed && w->spill)
        w->failed = stki_spill_flush(w->spill, err);
    *out = (stki_beton_mark){w->done, w->cursor};
    return w->failed;
}

stk_status stki_beton_sync(stk_beton_writer *w, stk_error *err)
{
    stk_status status = w->spill ? stki_spill_sync(w->spill, err) : STK_OK;

    return status != STK_OK ? status : stki_output_sync(w->output, err);
}

/* ---- samples ---- */

stk_status stk_beton_append(stk_beton_writer *w, const stk_beton_value *values, int64_t count, stk_error *err)
{
    stk_status status = stki_check_given(w, "writer", err);

    if (status != STK_OK)
        return status;
    if (w->failed)
        return fail_earlier(w, err);
    if (count > 0)
        w->failed = stki_check_given(values, "values", err);
    if (count < 0)
        w->failed = stki_fail_at(
            err, STK_E_BAD_ARG,
            (stki_place){stki_output_path(w->output), w->done, -1, STKI_TEXT("%" PRId64, count), "at least 0"},
            "invalid number of samples to append");
    for (int64_t i = 0; i < count && !w->failed; i++)
        w->failed = stki_beton_append_one(w, values + i * w->layout.field_count, err);
    if (!w->failed)
        w->failed = stki_output_settle(w->output, err);
    return w->failed;
}

/* ---- commit ---- */

static stk_status read_sizes(stk_beton_writer *w, int64_t first, int64_t count, uint32_t *to, stk_error *err)
{
    int64_t bytes = w->regions * (int64_t)sizeof *to;

    return stki_spill_read(w->spill, first * bytes, to, count * bytes, err);
}

/* Computes the allocations of all samples again and appends the table. */
static stk_status write_table(stk_beton_writer *w, uint32_t *sizes, int64_t at_once, stk_error *err)
{
    stki_beton_cursor cursor = {-1, w->layout.page_bytes};
    int64_t total;
    stk_status status = STK_OK;

    for (int64_t i = 0; i < w->done && status == STK_OK; i++) {
        const uint32_t *own = sizes + i % at_once * w->regions;

        if (i % at_once == 0)
            status = read_sizes(w, i, at_once < w->done - i ? at_once : w->done - i, sizes, err);
        if (status != STK_OK)
            break;
        (void)stki_beton_place_sample(&cursor, w->layout.page_bytes, own, w->regions, &total);
        for (int region = 0; region < w->regions && status == STK_OK; region++) {
            uint64_t entry[3] = {(uint64_t)i, (uint64_t)stki_beton_place_region(&cursor, &w->layout, own[region]),
                                 own[region]};

            status = stki_output_append(w->output, entry, sizeof entry, err);
        }
    }
    return status;
}

static stk_status end_pages(stk_beton_writer *w, int64_t table, stk_error *err)
{
    int64_t at_once = SIZES_BUFFER / w->regions + 1;
    uint32_t *sizes;
    stk_status status = stki_beton_end_page(w, &w->cursor, err);

    if (status == STK_OK && w->pages)
        status = stki_page_writer_finish(w->pages, err);
    if (status == STK_OK)
        status = stki_output_seek(w->output, table, err);
    if (status != STK_OK)
        return status;
    sizes = stki_zalloc_array(at_once * w->regions, sizeof *sizes);
    if (!sizes)
        return stki_fail_memory(err, at_once * w->regions * (int64_t)sizeof *sizes, "a table of allocations");
    status = write_table(w, sizes, at_once, err);
    stki_free(sizes);
    return status;
}

static stk_status finish(stk_beton_writer *w, stk_error *err)
{
    int64_t table = w->layout.rows + w->done * w->layout.row_bytes;
    stk_status status = stki_beton_flush_rows(w, err);

    w->layout.sample_count = w->done;
    if (status == STK_OK && (w->regions == 0 || w->done == 0))
        return write_header(w, table, err);
    table = w->layout.data_start + (w->cursor.page + 1) * w->layout.page_bytes;
    if (status == STK_OK)
        status = end_pages(w, table, err);
    return status != STK_OK ? status : write_header(w, table, err);
}

static stk_status check_finish(const stk_beton_writer *w, bool fewer, stk_error *err)
{
    if (w->failed)
        return fail_earlier(w, err);
    if (w->done == w->layout.sample_count || (fewer && w->done > 0))
        return STK_OK;
    return stki_fail_at(
        err, STK_E_MISMATCH,
        (stki_place){stki_output_path(w->output), -1, -1, STKI_TEXT("%" PRId64, w->done),
                     fewer ? "at least 1" : STKI_TEXT("%" PRId64 ", as declared", w->layout.sample_count)},
        "wrong number of samples");
}

static void discard(stk_beton_writer *w)
{
    stki_page_writer_destroy(w->pages);
    stki_output_abort(w->output);
    stki_spill_destroy(w->spill);
    stki_free(w->sizes);
    stki_free(w->fields);
    stki_free(w->rows);
    stki_free(w);
}

static stk_status commit(stk_beton_writer *w, bool fewer, int64_t *bytes, stk_error *err)
{
    stk_status status = check_finish(w, fewer, err);

    if (status == STK_OK)
        status = finish(w, err);
    if (status == STK_OK) {
        *bytes = w->regions > 0 && w->done > 0 ? stki_output_position(w->output)
                                               : w->layout.rows + w->done * w->layout.row_bytes;
        stki_page_writer_destroy(w->pages); /* its threads use the output, which commit frees */
        w->pages = NULL;
        status = stki_output_commit(w->output, err);
        w->output = NULL;
    }
    discard(w);
    return status;
}

stk_status stki_beton_finish(stk_beton_writer *w, int64_t *bytes, stk_error *err)
{
    return commit(w, true, bytes, err);
}

stk_status stk_beton_commit(stk_beton_writer *w, stk_error *err)
{
    int64_t bytes;
    stk_status status = stki_check_given(w, "writer", err);

    return status != STK_OK ? status : commit(w, false, &bytes, err);
}

void stk_beton_abort(stk_beton_writer *w)
{
    if (w)
        discard(w);
}
