/* reader_shape.c: a reader that wraps another one and reshapes its samples. Elements must be contiguous, so nothing is
 * copied, and mapped samples are still converted without a read. */
#include "allocate.h"
#include "error.h"
#include "first_steps.h"
#include "tensor_internal.h"
#include <string.h>

struct shaped {
    stki_reader base; /* must be first */
    stki_reader_ops ops;
    stki_reader *inner;
};

static const struct shaped *shaped_of(const stki_reader *base)
{
    return (const struct shaped *)(const void *)base;
}

static bool side_by_side(int ndim, const int64_t *shape, const int64_t *strides, stk_dtype dtype)
{
    int64_t tight[STK_MAX_DIMS], bytes;

    if (stki_row_major(dtype, ndim, shape, tight, &bytes, NULL) != STK_OK)
        return false;
    for (int i = 0; i < ndim; i++)
        if (shape[i] > 1 && strides[i] != tight[i])
            return false;
    return true;
}

static stk_status shaped_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                              stk_tensor *out, stk_error *err)
{
    const struct shaped *s = shaped_of(base);
    char path[STKI_RECORD_PATH];
    stk_status status = s->inner->ops->read(s->inner, index, NULL, scratch, out, err);

    (void)want;
    if (status != STK_OK)
        return status;
    if (!side_by_side(out->ndim, out->shape, out->strides, out->dtype)) {
        stki_reader_done(s->inner, out);
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){stki_reader_path(base, index, path), index, -1, NULL, NULL},
                            "reshape: the sample's elements are not contiguous");
    }
    out->ndim = base->ndim;
    memcpy(out->shape, base->shape, sizeof base->shape);
    memcpy(out->strides, base->strides, sizeof base->strides);
    return STK_OK;
}

static stk_status shaped_pin(const stki_reader *base, int64_t index, stki_scratch *scratch, const char **address,
                             stk_storage **kept, stk_error *err)
{
    const stki_reader *inner = shaped_of(base)->inner;

    return inner->ops->pin(inner, index, scratch, address, kept, err);
}

static void shaped_done(const stki_reader *base, stk_tensor *out)
{
    stki_reader_done(shaped_of(base)->inner, out);
}

static bool shaped_path(const stki_reader *base, int64_t index, char *buffer, int64_t size)
{
    const stki_reader *inner = shaped_of(base)->inner;

    return inner->ops->path(inner, index, buffer, size);
}

static void shaped_will_need(const stki_reader *base, const int64_t *indices, int64_t count)
{
    const stki_reader *inner = shaped_of(base)->inner;

    inner->ops->will_need(inner, indices, count);
}

static void shaped_destroy(stki_reader *base)
{
    struct shaped *s = (struct shaped *)(void *)base;

    stki_reader_destroy(s->inner);
    stki_free(base->path);
    stki_free(s);
}

stk_status stki_shape_reader_open(stki_reader *inner, int ndim, const int64_t *shape, const stki_node *node,
                                  stki_reader **out, stk_error *err)
{
    struct shaped *s = NULL;
    char *path = NULL;
    int64_t bytes;
    stk_status status = STK_OK;

    if (inner->variable || !side_by_side(inner->ndim, inner->shape, inner->strides, inner->dtype))
        status = stki_fail_node(err, node, "found samples %s, expected one shape and contiguous elements",
                                inner->variable ? "of different shapes" : "whose elements are not contiguous");
    if (status == STK_OK) {
        s = stki_zalloc(sizeof *s);
        path = stki_strdup(inner->path);
        if (!s || !path)
            status = stki_fail_memory(err, sizeof *s, "a reader");
    }
    if (status != STK_OK) {
        stki_free(s);
        stki_free(path);
        stki_reader_destroy(inner);
        return status;
    }
    s->ops = (stki_reader_ops){.format = inner->ops->format,
                               .read = shaped_read,
                               .pin = inner->ops->pin ? shaped_pin : NULL,
                               .done = shaped_done,
                               .path = inner->ops->path ? shaped_path : NULL,
                               .will_need = inner->ops->will_need ? shaped_will_need : NULL,
                               .destroy = shaped_destroy};
    s->base = *inner;
    s->base.ops = &s->ops;
    s->base.path = path;
    s->base.image = false;
    s->base.ndim = ndim;
    memcpy(s->base.shape, shape, (size_t)ndim * sizeof *shape);
    (void)stki_row_major(inner->dtype, ndim, shape, s->base.strides, &bytes, NULL);
    s->inner = inner;
    *out = &s->base;
    return STK_OK;
}
