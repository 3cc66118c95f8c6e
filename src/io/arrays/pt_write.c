/* pt_write.c: writes .pt files that torch.load can read, even with weights_only=True: a dict of contiguous CPU tensors,
 * or a single tensor if the only array is named "". Storages are written as they arrive, followed by the pickle that
 * names them; readers find members through the archive's directory. */
#include "allocate.h"
#include "array_writers.h"
#include "error.h"
#include "saved.h"
#include "tensor_internal.h"
#include "text_build.h"
#include "zip_write.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct pt_writer {
    stki_writer base; /* first member */
    stki_zip_writer zip;
    stki_saved_list saved;
};

static struct pt_writer *pt_of(stki_writer *base)
{
    return (struct pt_writer *)(void *)base;
}

/* ---- dtypes ---- */

/* Returns the class of the typed storage that older torch versions use for this dtype; NULL: there is none, so an
 * untyped storage is written together with the dtype. */
static const char *storage_class(stk_dtype dtype)
{
    switch (dtype) {
    case STK_BOOL:
        return "BoolStorage";
    case STK_U8:
        return "ByteStorage";
    case STK_I8:
        return "CharStorage";
    case STK_I16:
        return "ShortStorage";
    case STK_I32:
        return "IntStorage";
    case STK_I64:
        return "LongStorage";
    case STK_F16:
        return "HalfStorage";
    case STK_BF16:
        return "BFloat16Storage";
    case STK_F32:
        return "FloatStorage";
    case STK_F64:
        return "DoubleStorage";
    case STK_C64:
        return "ComplexFloatStorage";
    case STK_C128:
        return "ComplexDoubleStorage";
    default:
        return NULL;
    }
}

/* ---- the pickle ---- */

static void put_u32(stki_text_build *to, uint32_t number)
{
    char bytes[4];

    for (int i = 0; i < 4; i++)
        bytes[i] = (char)(number >> (8 * i));
    stki_put_bytes(to, bytes, 4);
}

static void put_text(stki_text_build *to, const char *text)
{
    stki_put(to, "X");
    put_u32(to, (uint32_t)strlen(text)); /* names are far shorter than 4 GiB */
    stki_put(to, text);
}

static void put_integer(stki_text_build *to, int64_t number)
{
    char bytes[10] = {'\x8A', 8};

    if (number >= INT32_MIN && number <= INT32_MAX) {
        stki_put(to, "J");
        put_u32(to, (uint32_t)number);
        return;
    }
    for (int i = 0; i < 8; i++)
        bytes[2 + i] = (char)((uint64_t)number >> (8 * i));
    stki_put_bytes(to, bytes, 10);
}

static void put_numbers(stki_text_build *to, const int64_t *numbers, int count)
{
    stki_put(to, "(");
    for (int i = 0; i < count; i++)
        put_integer(to, numbers[i]);
    stki_put(to, "t");
}

/* Returns the product of the sizes and sets the strides in elements; as in torch, they are at least 1 for axes before
 * an empty one. */
static int64_t count_elements(const stki_saved *s, int64_t *strides)
{
    int64_t count = 1, step = 1;

    for (int i = s->ndim - 1; i >= 0; i--) {
        strides[i] = step;
        step *= s->shape[i] > 0 ? s->shape[i] : 1;
        count *= s->shape[i];
    }
    return count;
}

/* rebuild(('storage', class, key, 'cpu', count), 0, size, stride, False, OrderedDict()[, dtype]) */
static void put_tensor(stki_text_build *to, const stki_saved *s, int64_t number)
{
    int64_t strides[STK_MAX_DIMS], count = count_elements(s, strides);
    const char *class = storage_class(s->dtype);
    char key[24];

    snprintf(key, sizeof key, "%" PRId64, number);
    stki_putf(to, "ctorch._utils\n_rebuild_tensor_v%d\n((", class ? 2 : 3);
    put_text(to, "storage");
    if (class)
        stki_putf(to, "ctorch\n%s\n", class);
    else
        stki_put(to, "ctorch.storage\nUntypedStorage\n");
    put_text(to, key);
    put_text(to, "cpu");
    put_integer(to, class ? count : count * stk_dtype_size(s->dtype));
    stki_put(to, "tQ");
    put_integer(to, 0);
    put_numbers(to, s->shape, s->ndim);
    put_numbers(to, strides, s->ndim);
    stki_put(to, "\x89"
                 "ccollections\nOrderedDict\n)R");
    if (!class)
        stki_putf(to, "ctorch\n%s\n", stk_dtype_long_name(s->dtype));
    stki_put(to, "tR");
}

static void put_pickle(stki_text_build *to, const struct pt_writer *w)
{
    stki_put(to, "\x80\x02");
    if (w->saved.count == 1 && !*w->saved.items[0].name) {
        put_tensor(to, &w->saved.items[0], 0);
    } else {
        stki_put(to, "}(");
        for (int64_t i = 0; i < w->saved.count; i++) {
            put_text(to, w->saved.items[i].name);
            put_tensor(to, &w->saved.items[i], i);
        }
        stki_put(to, "u");
    }
    stki_put(to, ".");
}

/* ---- writer operations ---- */

static stk_status pt_begin(stki_writer *base, const char *name, stk_dtype dtype, int row_ndim, const int64_t *row_shape,
                           int64_t rows, stk_error *err)
{
    struct pt_writer *w = pt_of(base);
    char member[48];
    stk_status status;

    (void)rows;
    if (stk_dtype_size(dtype) == 0 || row_ndim >= STK_MAX_DIMS)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){stki_output_path(w->zip.output), -1, -1,
                                         STKI_TEXT("dtype number %d, %d axes", (int)dtype, row_ndim + 1), NULL},
                            "cannot write %s", name);
    status = stki_saved_begin(&w->saved, name, dtype, row_ndim, row_shape, err);
    if (status != STK_OK)
        return status;
    snprintf(member, sizeof member, "archive/data/%" PRId64, w->saved.count - 1);
    return stki_zip_write_begin(&w->zip, member, 0, 0, err);
}

static stk_status pt_append(stki_writer *base, const void *rows, int64_t count, stk_error *err)
{
    struct pt_writer *w = pt_of(base);

    return stki_zip_write_append(&w->zip, rows, stki_saved_append(&w->saved, count), err);
}

static stk_status pt_end(stki_writer *base, stk_error *err)
{
    struct pt_writer *w = pt_of(base);

    stki_saved_end(&w->saved);
    return stki_zip_write_end(&w->zip, NULL, err);
}

static void pt_free(struct pt_writer *w)
{
    stki_saved_fini(&w->saved);
    stki_zip_write_fini(&w->zip);
    stki_free(w);
}

static stk_status finish(struct pt_writer *w, stk_error *err)
{
    stki_text_build pickle = {0};
    stk_status status;

    put_pickle(&pickle, w);
    status = pickle.failed ? stki_fail_memory(err, pickle.length, "a pickle")
                           : stki_zip_write_member(&w->zip, "archive/data.pkl", pickle.text, pickle.length, err);
    stki_free(stki_text_take(&pickle));
    if (status == STK_OK)
        status = stki_zip_write_member(&w->zip, "archive/byteorder", "little", 6, err);
    if (status == STK_OK)
        status = stki_zip_write_member(&w->zip, "archive/version", "3\n", 2, err);
    return status != STK_OK ? status : stki_zip_write_directory(&w->zip, err);
}

static stk_status pt_commit(stki_writer *base, stk_error *err)
{
    struct pt_writer *w = pt_of(base);
    stki_output *output = w->zip.output;
    stk_status status = finish(w, err);

    pt_free(w);
    return stki_output_end(output, status, err);
}

static void pt_abort(stki_writer *base)
{
    struct pt_writer *w = pt_of(base);

    stki_output_abort(w->zip.output);
    pt_free(w);
}

static const stki_writer_ops pt_ops = {
    .format = "pt", .begin = pt_begin, .append = pt_append, .end = pt_end, .commit = pt_commit, .abort = pt_abort};

stk_status stki_pt_writer(const char *path, const stki_writer_opts *opts, stki_writer **out, stk_error *err)
{
    struct pt_writer *w;
    stk_status status;

    if (opts && opts->level)
        return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){path, -1, -1, STKI_TEXT("level %d", opts->level), "0"},
                            ".pt files cannot be compressed, because torch maps them");
    w = stki_zalloc(sizeof *w);
    if (!w)
        return stki_fail_memory(err, sizeof *w, path);
    w->base.ops = &pt_ops;
    status = stki_output_begin(path, opts ? opts->temporary : NULL, &w->zip.output, err);
    if (status != STK_OK)
        pt_free(w);
    else
        *out = &w->base;
    return status;
}
