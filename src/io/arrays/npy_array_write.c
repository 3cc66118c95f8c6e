/* npy_array_write.c: writes an .npy file through the interface of writer.h: one array, whose name is not stored. */
#include "allocate.h"
#include "array_writers.h"
#include "error.h"
#include "npy_write.h"

struct npy_array {
    stki_writer base; /* first member */
    char *path;
    bool alias;
    stki_npy_writer *npy; /* NULL until the array is started */
};

static struct npy_array *array_of(stki_writer *base)
{
    return (struct npy_array *)(void *)base;
}

static stk_status array_begin(stki_writer *base, const char *name, stk_dtype dtype, int row_ndim,
                              const int64_t *row_shape, int64_t rows, stk_error *err)
{
    struct npy_array *a = array_of(base);

    (void)rows;
    if (a->npy)
        return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){a->path, -1, -1, name, "one array"},
                            "an .npy file contains only one array");
    return stki_npy_create(a->path, dtype, row_ndim, row_shape, a->alias, &a->npy, err);
}

static stk_status array_append(stki_writer *base, const void *rows, int64_t count, stk_error *err)
{
    return stki_npy_append(array_of(base)->npy, rows, count, err);
}

static stk_status array_end(stki_writer *base, stk_error *err)
{
    (void)base, (void)err;
    return STK_OK;
}

static void array_free(struct npy_array *a)
{
    stki_free(a->path);
    stki_free(a);
}

static stk_status array_commit(stki_writer *base, stk_error *err)
{
    struct npy_array *a = array_of(base);
    stk_status status = a->npy ? stki_npy_commit(a->npy, err)
                               : stki_fail_at(err, STK_E_BAD_ARG, (stki_place){a->path, -1, -1, "no array", "one"},
                                              "the file cannot be finished");

    array_free(a);
    return status;
}

static void array_abort(stki_writer *base)
{
    stki_npy_abort(array_of(base)->npy);
    array_free(array_of(base));
}

static const stki_writer_ops array_ops = {.format = "npy",
                                          .begin = array_begin,
                                          .append = array_append,
                                          .end = array_end,
                                          .commit = array_commit,
                                          .abort = array_abort};

stk_status stki_npy_array_writer(const char *path, const stki_writer_opts *opts, stki_writer **out, stk_error *err)
{
    struct npy_array *a;

    if (opts && opts->level)
        return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){path, -1, -1, STKI_TEXT("level %d", opts->level), "0"},
                            ".npy files cannot be compressed");
    a = stki_zalloc(sizeof *a);
    if (!a)
        return stki_fail_memory(err, sizeof *a, path);
    a->base.ops = &array_ops;
    a->alias = opts && opts->alias;
    a->path = stki_strdup(path);
    if (!a->path) {
        array_free(a);
        return stki_fail_memory(err, 1, path);
    }
    *out = &a->base;
    return STK_OK;
}
