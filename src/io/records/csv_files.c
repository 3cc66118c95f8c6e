/* csv_files.c: a reader whose samples are the files named by a column: images, arrays (one per file), or the bytes of
 * the files. Paths are relative to the table's folder. The readers of image lists and of `sample_per_file` do the
 * work. */
#include "allocate.h"
#include "csv.h"
#include "error.h"
#include "files.h"
#include "image_reader.h"
#include <string.h>

enum { MOST_PATH = 4096 };

/* A container that holds the names for an image reader. It is not returned to callers. */
struct listed {
    stki_container base; /* first member */
    stki_image_set set;
};

typedef struct taking {
    const stki_csv *csv;
    int column;
    stki_image_set *set;
} taking;

static void listed_destroy(stki_container *base)
{
    struct listed *listed = (struct listed *)(void *)base;

    stki_image_set_fini(&listed->set);
    stki_container_free(base);
}

static const stki_container_ops listed_ops = {.format = "csv", .destroy = listed_destroy};

static stk_status take_path(void *context, int64_t record, const stki_csv_cell *cell, stk_error *err)
{
    const taking *t = context;
    const int64_t bytes = stki_csv_bytes(cell);
    char path[MOST_PATH];

    if (bytes == 0 || bytes >= MOST_PATH)
        return stki_csv_fail(t->csv, t->column, record, STK_E_CORRUPT, cell, "a path of 1 to 4095 bytes", err);
    stki_csv_text(cell, path);
    path[bytes] = '\0';
    return stki_image_set_add(t->set, "", path, 0, err);
}

/* Opens the arrays with the reader of files.h, in which each file is one sample. */
static stk_status open_arrays(const struct listed *listed, stki_open_fn *open, const stki_reader_opts *opts,
                              stki_reader **out, stk_error *err)
{
    stki_reader_opts each = *opts;
    stki_file_list list = {0};
    char path[2 * MOST_PATH];
    stk_status status = STK_OK;

    each.name = each.prefer = each.format = NULL;
    each.withheld = &stki_csv_source;
    for (int64_t i = 0; i < listed->set.count && status == STK_OK; i++) {
        if (!stki_image_set_path(&listed->set, i, path, sizeof path))
            status =
                stki_fail(err, STK_E_LIMIT, "%s: record %lld: the path is too long", listed->base.path, (long long)i);
        else
            status = stki_file_list_add_file(&list, path, err);
    }
    if (status == STK_OK)
        status = stki_files_open(&list, open, &each, out, err);
    stki_file_list_fini(&list);
    return status;
}

stk_status stki_csv_files(const stki_csv *csv, int column, const stki_reader_opts *opts, stki_reader **out,
                          stk_error *err)
{
    stki_decode_opts decode = stki_image_opts(opts);
    struct listed *listed;
    taking t = {csv, column, NULL};
    stk_status status = stki_container_create(sizeof *listed, &listed_ops, csv->base.path, &listed, err);

    if (status != STK_OK)
        return status;
    t.set = &listed->set;
    decode.none = decode.none || stki_csv_listed(opts) == STKI_LISTED_BYTES;
    status = stki_image_set_root(&listed->set, csv->base.path, err);
    if (status == STK_OK)
        status = stki_csv_walk_run(&(stki_csv_walk){csv, column, &t, take_path}, err);
    if (status == STK_OK)
        status = stki_csv_listed(opts) == STKI_LISTED_ARRAYS
                     ? open_arrays(listed, csv->base.open, opts, out, err)
                     : stki_image_reader_open(&listed->base, &listed->set, &decode, out, err);
    stki_container_release(&listed->base);
    return status;
}
