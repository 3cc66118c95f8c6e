/* npy_write.c: see npy_write.h. The number of rows is known only at the end, so the header is first written with room
 * for the longest number and then rewritten. */
#include "npy_write.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "npy_form.h"
#include "output.h"
#include <inttypes.h>

struct stki_npy_writer {
    stki_output *output;
    stki_npy_form form;
    int64_t rows;
    stk_status failed; /* after a failure, nothing more is written and commit fails */
};

/* ---- opening ---- */

stk_status stki_npy_create(const char *path, stk_dtype dtype, int row_ndim, const int64_t *row_shape, bool alias,
                           stki_npy_writer **out, stk_error *err)
{
    char header[STKI_NPY_FORM_MAX];
    stki_npy_writer *w = stki_zalloc(sizeof *w);
    stk_status status;

    if (!w)
        return stki_fail_memory(err, sizeof *w, path);
    status = stki_npy_form_init(&w->form, path, dtype, row_ndim, row_shape, alias, err);
    if (status == STK_OK)
        status = stki_output_create(path, &w->output, err);
    if (status == STK_OK) { /* unbuffered, so that a full disk is reported immediately */
        stki_npy_form_write(&w->form, 0, header);
        status = stki_output_write_at(w->output, 0, header, w->form.header_bytes, err);
    }
    if (status == STK_OK)
        status = stki_output_seek(w->output, w->form.header_bytes, err);
    if (status != STK_OK)
        stki_npy_abort(w);
    else
        *out = w;
    return status;
}

/* ---- writing ---- */

static stk_status fail_earlier(const stki_npy_writer *w, stk_error *err)
{
    return stki_fail_at(err, w->failed, (stki_place){stki_output_path(w->output), -1, -1, NULL, NULL},
                        "an earlier call failed, so the file cannot be finished");
}

static stk_status append(stki_npy_writer *w, const void *rows, int64_t count, stk_error *err)
{
    int64_t bytes, total, file_bytes;
    stk_status status = STK_OK;

    if (w->failed != STK_OK)
        return fail_earlier(w, err);
    if (count < 0 || !stki_mul(count, w->form.row_bytes, &bytes) || !stki_add(w->rows, count, &total) ||
        !stki_mul(total, w->form.row_bytes, &file_bytes) || !stki_add(file_bytes, w->form.header_bytes, &file_bytes))
        return stki_fail_at(err, STK_E_BAD_SHAPE,
                            (stki_place){stki_output_path(w->output), -1, -1, STKI_TEXT("%" PRId64 " more rows", count),
                                         "a file size that fits in 63 bits"},
                            "cannot append");
    if (bytes > 0)
        status = stki_check_given(rows, "rows", err);
    if (status == STK_OK)
        status = stki_output_append(w->output, rows, bytes, err);
    if (status == STK_OK)
        w->rows = total;
    return status;
}

stk_status stki_npy_append(stki_npy_writer *w, const void *rows, int64_t count, stk_error *err)
{
    stk_status status = append(w, rows, count, err);

    if (status != STK_OK && w->failed == STK_OK)
        w->failed = status;
    return status;
}

stk_status stki_npy_commit(stki_npy_writer *w, stk_error *err)
{
    char header[STKI_NPY_FORM_MAX];
    stk_error first;
    stk_status status, closed;

    if (w->failed != STK_OK) {
        status = fail_earlier(w, err);
        stki_npy_abort(w);
        return status;
    }
    stki_npy_form_write(&w->form, w->rows, header);
    status = stki_output_write_at(w->output, 0, header, w->form.header_bytes, &first);
    closed = stki_output_commit(w->output, err); /* fails after a failed write */
    if (status != STK_OK && err)
        *err = first;
    stki_free(w);
    return status != STK_OK ? status : closed;
}

void stki_npy_abort(stki_npy_writer *w)
{
    if (!w)
        return;
    stki_output_abort(w->output);
    stki_free(w);
}
