/* safetensors_write.c: writes .safetensors files. The header precedes the data and contains the offsets of all tensors,
 * so the data is kept in an unnamed temporary file until all arrays are complete. As in the original library, tensors
 * are sorted by element size, largest first, so that each is aligned to its element size. The data starts at a multiple
 * of 64. */
#include "allocate.h"
#include "array_writers.h"
#include "checked.h"
#include "error.h"
#include "output.h"
#include "saved.h"
#include "spill.h"
#include "tensor_internal.h"
#include "text_build.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 20, LENGTH_BYTES = 8, ALIGN = 64 };

static const int64_t header_limit = 100000000; /* longest header that readers accept */

struct safetensors_writer {
    stki_writer base; /* first member */
    stki_output *output;
    stki_spill *spill;
    stki_saved_list saved;
};

static struct safetensors_writer *writer_of(stki_writer *base)
{
    return (struct safetensors_writer *)(void *)base;
}

static const char *dtype_name(stk_dtype dtype)
{
    static const char *const names[STK_DTYPE_END] = {
        [STK_BOOL] = "BOOL",      [STK_U8] = "U8",   [STK_I8] = "I8",   [STK_U16] = "U16", [STK_I16] = "I16",
        [STK_U32] = "U32",        [STK_I32] = "I32", [STK_U64] = "U64", [STK_I64] = "I64", [STK_F16] = "F16",
        [STK_BF16] = "BF16",      [STK_F32] = "F32", [STK_F64] = "F64", [STK_C64] = "C64", [STK_F8_E4M3FN] = "F8_E4M3",
        [STK_F8_E5M2] = "F8_E5M2"};

    return dtype > STK_DTYPE_NONE && dtype < STK_DTYPE_END ? names[dtype] : NULL;
}

/* ---- arrays ---- */

static stk_status safetensors_begin(stki_writer *base, const char *name, stk_dtype dtype, int row_ndim,
                                    const int64_t *row_shape, int64_t rows, stk_error *err)
{
    struct safetensors_writer *w = writer_of(base);
    stk_status status;

    (void)rows;
    if (!dtype_name(dtype) || row_ndim >= STK_MAX_DIMS || !strcmp(name, "__metadata__"))
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){stki_output_path(w->output), -1, -1,
                                         STKI_TEXT("%s, %d axes", stk_dtype_long_name(dtype), row_ndim + 1), NULL},
                            "safetensors cannot store %s", name);
    status = stki_saved_begin(&w->saved, name, dtype, row_ndim, row_shape, err);
    if (status == STK_OK)
        w->saved.items[w->saved.count - 1].waits_at = stki_spill_bytes(w->spill);
    return status;
}

static stk_status safetensors_append(stki_writer *base, const void *rows, int64_t count, stk_error *err)
{
    struct safetensors_writer *w = writer_of(base);

    return stki_spill_append(w->spill, rows, stki_saved_append(&w->saved, count), err);
}

static stk_status safetensors_end(stki_writer *base, stk_error *err)
{
    struct safetensors_writer *w = writer_of(base);
    stki_saved *saved = stki_saved_end(&w->saved);

    (void)err;
    saved->bytes = stki_spill_bytes(w->spill) - saved->waits_at;
    return STK_OK;
}

/* ---- the file ---- */

static int by_element(const void *a, const void *b)
{
    const stki_saved *x = a, *y = b;
    int64_t size_x = stk_dtype_size(x->dtype), size_y = stk_dtype_size(y->dtype);

    if (size_x != size_y)
        return size_x > size_y ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void put_header(stki_text_build *to, const struct safetensors_writer *w)
{
    stki_put(to, "{");
    for (int64_t i = 0; i < w->saved.count; i++) {
        const stki_saved *s = &w->saved.items[i];

        stki_put(to, i ? "," : "");
        stki_put_json(to, s->name);
        stki_putf(to, ":{\"dtype\":\"%s\",\"shape\":[", dtype_name(s->dtype));
        for (int k = 0; k < s->ndim; k++)
            stki_putf(to, "%s%" PRId64, k ? "," : "", s->shape[k]);
        stki_putf(to, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", s->begin, s->begin + s->bytes);
    }
    stki_put(to, "}");
    stki_put_many(to, ' ', stki_round_up(LENGTH_BYTES + to->length, ALIGN) - LENGTH_BYTES - to->length);
}

static stk_status write_header(struct safetensors_writer *w, stk_error *err)
{
    stki_text_build header = {0};
    char length[LENGTH_BYTES];
    stk_status status = STK_OK;

    put_header(&header, w);
    if (header.failed)
        status = stki_fail_memory(err, header.length, "a header");
    else if (header.length > header_limit) /* readers would reject the file */
        status = stki_fail_at(err, STK_E_LIMIT,
                              (stki_place){stki_output_path(w->output), -1, -1,
                                           STKI_TEXT("%" PRId64 " bytes", header.length),
                                           STKI_TEXT("at most %" PRId64, header_limit)},
                              "the safetensors header is too long: write fewer tensors or use shorter names");
    for (int i = 0; i < LENGTH_BYTES; i++)
        length[i] = (char)((uint64_t)header.length >> (8 * i));
    if (status == STK_OK)
        status = stki_output_append(w->output, length, LENGTH_BYTES, err);
    if (status == STK_OK)
        status = stki_output_append(w->output, header.text, header.length, err);
    stki_free(stki_text_take(&header));
    return status;
}

static stk_status copy_data(struct safetensors_writer *w, stk_error *err)
{
    char *piece = stki_resize(NULL, PIECE);
    stk_status status = piece ? STK_OK : stki_fail_memory(err, PIECE, "writing");

    for (int64_t i = 0; i < w->saved.count; i++)
        for (int64_t done = 0, n; status == STK_OK && done < w->saved.items[i].bytes; done += n) {
            n = w->saved.items[i].bytes - done < PIECE ? w->saved.items[i].bytes - done : PIECE;
            status = stki_spill_read(w->spill, w->saved.items[i].waits_at + done, piece, n, err);
            if (status == STK_OK)
                status = stki_output_append(w->output, piece, n, err);
        }
    stki_free(piece);
    return status;
}

static stk_status finish(struct safetensors_writer *w, stk_error *err)
{
    int64_t at = 0;
    stk_status status;

    if (w->saved.count)
        qsort(w->saved.items, (size_t)w->saved.count, sizeof *w->saved.items, by_element);
    for (int64_t i = 0; i < w->saved.count; i++) {
        w->saved.items[i].begin = at;
        at += w->saved.items[i].bytes;
    }
    status = write_header(w, err);
    return status != STK_OK ? status : copy_data(w, err);
}

static void writer_free(struct safetensors_writer *w)
{
    stki_saved_fini(&w->saved);
    stki_spill_destroy(w->spill);
    stki_free(w);
}

static stk_status safetensors_commit(stki_writer *base, stk_error *err)
{
    struct safetensors_writer *w = writer_of(base);
    stki_output *output = w->output;
    stk_status status = finish(w, err);

    writer_free(w);
    return stki_output_end(output, status, err);
}

static void safetensors_abort(stki_writer *base)
{
    struct safetensors_writer *w = writer_of(base);

    stki_output_abort(w->output);
    writer_free(w);
}

static const stki_writer_ops safetensors_ops = {.format = "safetensors",
                                                .begin = safetensors_begin,
                                                .append = safetensors_append,
                                                .end = safetensors_end,
                                                .commit = safetensors_commit,
                                                .abort = safetensors_abort};

stk_status stki_safetensors_writer(const char *path, const stki_writer_opts *opts, stki_writer **out, stk_error *err)
{
    struct safetensors_writer *w;
    stk_status status;

    if (opts && opts->level)
        return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){path, -1, -1, STKI_TEXT("level %d", opts->level), "0"},
                            "safetensors files cannot be compressed");
    w = stki_zalloc(sizeof *w);
    if (!w)
        return stki_fail_memory(err, sizeof *w, path);
    w->base.ops = &safetensors_ops;
    status = stki_output_begin(path, opts ? opts->temporary : NULL, &w->output, err);
    if (status == STK_OK)
        status = stki_spill_create(stki_output_temporary(w->output), &w->spill, err);
    if (status != STK_OK) {
        stki_output_abort(w->output);
        writer_free(w);
    } else {
        *out = &w->base;
    }
    return status;
}
