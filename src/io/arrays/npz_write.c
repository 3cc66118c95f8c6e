/* npz_write.c: writes .npz files. Each array is a member NAME.npy, stored or deflated; stored data starts at a multiple
 * of 64. The number of rows may be known only at the end, so the .npy header is written last (zip_write.h). */
#include "allocate.h"
#include "array_writers.h"
#include "error.h"
#include "npy_form.h"
#include "zip_write.h"
#include <string.h>

struct npz_writer {
    stki_writer base; /* first member */
    stki_zip_writer zip;
    stki_npy_form form;
    int64_t rows;
    int level;
    bool alias;
};

static struct npz_writer *npz_of(stki_writer *base)
{
    return (struct npz_writer *)(void *)base;
}

static stk_status npz_begin(stki_writer *base, const char *name, stk_dtype dtype, int row_ndim,
                            const int64_t *row_shape, int64_t rows, stk_error *err)
{
    struct npz_writer *w = npz_of(base);
    char *member;
    stk_status status =
        stki_npy_form_init(&w->form, stki_output_path(w->zip.output), dtype, row_ndim, row_shape, w->alias, err);

    (void)rows;
    if (status != STK_OK)
        return status;
    member = stki_format("%s.npy", name);
    if (!member)
        return stki_fail_memory(err, (int64_t)strlen(name) + 5, name);
    w->rows = 0;
    status = stki_zip_write_begin(&w->zip, member, w->form.header_bytes, w->level, err);
    stki_free(member);
    return status;
}

static stk_status npz_append(stki_writer *base, const void *rows, int64_t count, stk_error *err)
{
    struct npz_writer *w = npz_of(base);

    /* stki_writer_append has checked for overflow. */
    w->rows += count;
    return stki_zip_write_append(&w->zip, rows, count * w->form.row_bytes, err);
}

static stk_status npz_end(stki_writer *base, stk_error *err)
{
    struct npz_writer *w = npz_of(base);
    char header[STKI_NPY_FORM_MAX];

    stki_npy_form_write(&w->form, w->rows, header);
    return stki_zip_write_end(&w->zip, header, err);
}

static void npz_free(struct npz_writer *w)
{
    stki_zip_write_fini(&w->zip);
    stki_free(w);
}

static stk_status npz_commit(stki_writer *base, stk_error *err)
{
    struct npz_writer *w = npz_of(base);
    stki_output *output = w->zip.output;
    stk_status status = stki_zip_write_directory(&w->zip, err);

    npz_free(w);
    return stki_output_end(output, status, err);
}

static void npz_abort(stki_writer *base)
{
    struct npz_writer *w = npz_of(base);

    stki_output_abort(w->zip.output);
    npz_free(w);
}

static const stki_writer_ops npz_ops = {.format = "npz",
                                        .begin = npz_begin,
                                        .append = npz_append,
                                        .end = npz_end,
                                        .commit = npz_commit,
                                        .abort = npz_abort};

stk_status stki_npz_writer(const char *path, const stki_writer_opts *opts, stki_writer **out, stk_error *err)
{
    struct npz_writer *w = stki_zalloc(sizeof *w);
    stk_status status;

    if (!w)
        return stki_fail_memory(err, sizeof *w, path);
    w->base.ops = &npz_ops;
    w->level = opts ? opts->level : 0;
    w->alias = opts && opts->alias;
    status = stki_output_begin(path, opts ? opts->temporary : NULL, &w->zip.output, err);
    if (status != STK_OK)
        npz_free(w);
    else
        *out = &w->base;
    return status;
}
