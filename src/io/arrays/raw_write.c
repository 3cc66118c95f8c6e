/* raw_write.c: writes only the values of one array, through the interface of writer.h. The config of the reader must
 * specify dtype and shape (raw.c). */
#include "allocate.h"
#include "array_writers.h"
#include "error.h"
#include "output.h"

struct raw_writer {
    stki_writer base; /* first member */
    stki_output *output;
    bool begun;
};

static struct raw_writer *raw_of(stki_writer *base)
{
    return (struct raw_writer *)(void *)base;
}

static stk_status raw_begin(stki_writer *base, const char *name, stk_dtype dtype, int row_ndim,
                            const int64_t *row_shape, int64_t rows, stk_error *err)
{
    struct raw_writer *w = raw_of(base);

    (void)dtype, (void)row_ndim, (void)row_shape, (void)rows;
    if (w->begun)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){stki_output_path(w->output), -1, -1, name, "one array"},
                            "a raw file contains only one array");
    w->begun = true;
    return STK_OK;
}

static stk_status raw_append(stki_writer *base, const void *rows, int64_t count, stk_error *err)
{
    return stki_output_append(raw_of(base)->output, rows, count * base->row_bytes, err);
}

static stk_status raw_end(stki_writer *base, stk_error *err)
{
    (void)base, (void)err;
    return STK_OK;
}

static stk_status raw_commit(stki_writer *base, stk_error *err)
{
    struct raw_writer *w = raw_of(base);
    stk_status status = STK_OK;

    if (!w->begun)
        status = stki_fail_at(err, STK_E_BAD_ARG, (stki_place){stki_output_path(w->output), -1, -1, "no array", "one"},
                              "the file cannot be finished");
    status = stki_output_end(w->output, status, err);
    stki_free(w);
    return status;
}

static void raw_abort(stki_writer *base)
{
    stki_output_abort(raw_of(base)->output);
    stki_free(base);
}

static const stki_writer_ops raw_ops = {.format = "raw",
                                        .begin = raw_begin,
                                        .append = raw_append,
                                        .end = raw_end,
                                        .commit = raw_commit,
                                        .abort = raw_abort};

stk_status stki_raw_writer(const char *path, const stki_writer_opts *opts, stki_writer **out, stk_error *err)
{
    struct raw_writer *w;
    stk_status status;

    if (opts && opts->level)
        return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){path, -1, -1, STKI_TEXT("level %d", opts->level), "0"},
                            "raw files cannot be compressed");
    w = stki_zalloc(sizeof *w);
    if (!w)
        return stki_fail_memory(err, sizeof *w, path);
    w->base.ops = &raw_ops;
    status = stki_output_create(path, &w->output, err);
    if (status != STK_OK) {
        stki_free(w);
        return status;
    }
    *out = &w->base;
    return STK_OK;
}
