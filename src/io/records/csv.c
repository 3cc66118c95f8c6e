/* csv.c: a table of text as a container; see csv.h. */
#include "csv.h"
#include "allocate.h"
#include "decode.h"
#include "error.h"
#include "foreign_file.h"
#include "source_common.h"
#include "text.h"
#include "text_check.h"
#include "text_json.h"
#include <inttypes.h>
#include <string.h>

enum { HEAD = STKI_KIND_BYTES };

/* ---- container operations ---- */

static stki_csv *csv_of(const stki_container *base)
{
    return (stki_csv *)(uintptr_t)base;
}

static stk_status csv_reader(const stki_container *base, int64_t member, const stki_reader_opts *opts,
                             stki_reader **out, stk_error *err)
{
    return stki_csv_reader(csv_of(base), (int)member, opts, out, err);
}

static void csv_destroy(stki_container *base)
{
    stki_csv *csv = csv_of(base);

    for (int i = 0; i < csv->column_count; i++)
        stki_free(csv->columns[i].name);
    stki_free(csv->columns);
    stki_places_fini(&csv->start);
    stki_file_close(csv->file);
    stki_container_free(base);
}

static const stki_container_ops ops = {
    .format = "csv", .array = stki_csv_array, .reader = csv_reader, .destroy = csv_destroy};

/* ---- opening ---- */

static const stki_source_group *const cell_groups[] = {&stki_csv_source, &stki_dtype_source, NULL},
                                      *const image_groups[] = {&stki_csv_source, STKI_IMAGE_GROUPS, NULL},
                                      *const byte_groups[] = {&stki_csv_source, NULL},
                                      *const *const groups_of[] = {[STKI_LISTED_NOTHING] = cell_groups,
                                                                   [STKI_LISTED_IMAGES] = image_groups,
                                                                   [STKI_LISTED_ARRAYS] = byte_groups,
                                                                   [STKI_LISTED_BYTES] = byte_groups};

static stk_status add_members(stki_csv *csv, enum stki_listed listed, stk_error *err)
{
    const int64_t all[1] = {csv->count}, varying[1] = {-1};
    stk_status status = STK_OK;

    for (int i = 0; i < csv->column_count && status == STK_OK; i++) {
        const stki_csv_column *column = &csv->columns[i];
        const bool text = column->kind == STKI_CSV_TEXT;
        stki_member *member;

        status = stki_container_add(&csv->base, column->name, 1, text ? varying : all, &member, err);
        if (status != STK_OK)
            break;
        member->kind = text ? STKI_MEMBER_RECORDS : STKI_MEMBER_ARRAY;
        member->dtype = text ? STK_U8 : column->kind == STKI_CSV_REAL ? STK_F64 : STK_I64;
        member->count = csv->count;
        member->inferred = !text;
        member->layout = "records";
        member->groups = groups_of[listed];
        member->names_files = listed == STKI_LISTED_ARRAYS;
        member->details =
            json_pack("{s:s, s:I}", "column", text ? "texts" : "numbers", "most_bytes", (json_int_t)column->longest);
    }
    return status;
}

static bool asks_for(const stki_reader_opts *opts, const char *name)
{
    return stki_text_equal(opts->name ? opts->name : opts->prefer, name);
}

/* Warns if F64, the dtype of the column's array, rounds integers that the table has. */
static void warn_of_rounding(stki_csv *csv, const stki_csv_column *column, const stki_reader_opts *opts)
{
    if (column->rounded != 0 && opts->alias_dtype == STK_DTYPE_NONE)
        stki_container_warn(&csv->base,
                            "line %" PRId64 ", column %s: %" PRId64
                            " is rounded to float64, because there are missing cells or fractions; set source: "
                            "{missing: -1} to keep integers, or source: {dtype: float64} to round them",
                            stki_csv_line(csv, column->first_rounded), column->name, column->rounded);
}

/* Warns about the columns of all fields that are opened together. */
static void warn_of_columns(stki_csv *csv, const stki_reader_opts *opts)
{
    for (int i = 0; i < csv->column_count; i++) {
        const stki_csv_column *column = &csv->columns[i];
        bool asked = asks_for(opts, column->name);

        for (int k = 0; k < opts->together_count; k++)
            asked = asked || asks_for(&opts->together[k], column->name);
        if (asked && column->kind == STKI_CSV_REAL)
            warn_of_rounding(csv, column, opts);
    }
}

/* With the option `columns`, the selected columns together are the only member. */
static stk_status add_picked(stki_csv *csv, const stki_reader_opts *opts, stk_error *err)
{
    int *picked = stki_zalloc_array(csv->column_count, sizeof *picked), count;
    stki_member *member;
    json_t *names;
    stk_status status = picked ? stki_csv_pick(csv, opts, picked, &count, err)
                               : stki_fail_memory(err, csv->column_count * (int64_t)sizeof *picked, "columns");
    bool real = false;

    if (status != STK_OK || count == 0) {
        stki_free(picked);
        warn_of_columns(csv, opts);
        return status != STK_OK ? status : add_members(csv, stki_csv_listed(opts), err);
    }
    csv->picked = true;
    if (stki_csv_listed(opts) != STKI_LISTED_NOTHING)
        status = stki_fail_at(err, STK_E_CONFIG, (stki_place){csv->base.path, -1, -1, NULL, NULL},
                              "source.columns and source.files are mutually exclusive");
    if (status == STK_OK)
        status = stki_container_add(&csv->base, "columns", 2, (const int64_t[]){csv->count, count}, &member, err);
    if (status == STK_OK) {
        names = json_array();
        for (int i = 0; i < count; i++) {
            json_array_append_new(names, stki_text_json(csv->columns[picked[i]].name));
            real = real || csv->columns[picked[i]].kind != STKI_CSV_WHOLE;
        }
        for (int i = 0; i < count && real; i++)
            warn_of_rounding(csv, &csv->columns[picked[i]], opts);
        member->kind = STKI_MEMBER_ARRAY;
        member->dtype = real ? STK_F64 : STK_I64;
        member->count = csv->count;
        member->inferred = true;
        member->layout = "records";
        member->groups = cell_groups;
        member->details = json_pack("{s:o}", "columns", names);
    }
    stki_free(picked);
    return status;
}

static stk_status check_head(const stki_csv *csv, int64_t *begins, stk_error *err)
{
    const int64_t count = csv->file->size < HEAD ? csv->file->size : HEAD;
    char head[HEAD];
    const char *what, *advice;
    stk_status status = stki_file_read(csv->file, 0, head, count, err);

    if (status != STK_OK)
        return status;
    what = stki_text_refuse(head, count, false, begins, &advice);
    return what ? stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){csv->base.path, -1, -1, what, "a table of text"},
                               "%s", advice)
                : STK_OK;
}

stk_status stki_csv_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    stki_csv *csv;
    int64_t begins = 0;
    stk_status status = stki_container_create(sizeof *csv, &ops, file->path, &csv, err);

    if (status != STK_OK) {
        stki_file_close(file);
        return status;
    }
    csv->file = file;
    stki_csv_set_options(csv, opts);
    status = check_head(csv, &begins, err);
    if (status == STK_OK)
        status = stki_csv_read_all(csv, begins, err);
    if (status == STK_OK)
        status = stki_file_intact(file, -1, err);
    if (status == STK_OK)
        status = add_picked(csv, opts, err);
    if (status != STK_OK)
        csv_destroy(&csv->base);
    else
        *out = &csv->base;
    return status;
}

stk_status stki_csv_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    stki_file *file;
    stk_status status = stki_file_open(path, opts->access, opts->pattern, &file, err);

    return status != STK_OK ? status : stki_csv_of_file(file, opts, out, err);
}
