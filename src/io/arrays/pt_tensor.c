/* pt_tensor.c: a tensor is a storage with an offset, sizes and strides in elements. All numbers come from the file, so
 * the arithmetic is checked for overflow, and every element must be inside the storage. */
#include "pt_tensor.h"
#include "checked.h"
#include "error.h"
#include <inttypes.h>
#include <string.h>

struct parts {
    const stki_pt_pickle *pickle;
    const stki_pt_value *tensor;
    const char *label;
    stki_pt_tensor *out;
    stk_error *err;
    int64_t element_bytes;
};

static const stki_pt_value *argument(const struct parts *p, int32_t k)
{
    return stki_pt_item(p->pickle, p->tensor, k);
}

static stk_status fail(const struct parts *p, stk_status status, const char *what, const char *found,
                       const char *expected)
{
    return stki_fail_at(p->err, status, (stki_place){p->label, -1, -1, found, expected}, "%s", what);
}

static bool text_is(const stki_pt_value *value, const char *text)
{
    return value->kind == STKI_PT_TEXT && value->length == (int64_t)strlen(text) &&
           !memcmp(value->text, text, strlen(text));
}

static stk_status take_storage(struct parts *p)
{
    const stki_pt_value *stored = argument(p, 0), *key = stki_pt_item(p->pickle, stored, 2);
    const stki_pt_value *location = stki_pt_item(p->pickle, stored, 3);
    const stki_pt_global *class = stki_pt_item(p->pickle, stored, 1)->global;
    const stki_pt_global *dtype = p->tensor->global->role == STKI_PT_REBUILD_V3 ? argument(p, 6)->global : NULL;
    int64_t count = stki_pt_item(p->pickle, stored, 4)->integer;

    p->out->key = key->text;
    p->out->key_bytes = (int)key->length;
    p->out->location = location->text;
    p->out->location_bytes = (int)(location->length < 64 ? location->length : 64);
    p->out->dtype = dtype ? dtype->dtype : class->dtype;
    if (text_is(location, "meta"))
        return fail(p, STK_E_UNSUPPORTED, "a tensor on the 'meta' device has no data", NULL, NULL);
    if (p->out->dtype == STK_DTYPE_NONE)
        return fail(p, class->role == STKI_PT_UNTYPED && !dtype ? STK_E_CORRUPT : STK_E_UNSUPPORTED, "unsupported type",
                    dtype ? dtype->name : class->name, NULL);
    p->element_bytes = stk_dtype_size(p->out->dtype);
    if (!stki_mul(count, class->role == STKI_PT_UNTYPED ? 1 : stk_dtype_size(class->dtype), &p->out->storage_bytes))
        return fail(p, STK_E_CORRUPT, "the storage is too large", STKI_TEXT("%" PRId64 " elements", count),
                    "a size in bytes that fits in 63 bits");
    return STK_OK;
}

/* Rejects lazily conjugated or negated views, whose values would have to be changed. */
static stk_status check_metadata(const struct parts *p)
{
    int32_t last = stki_pt_item_count(p->pickle, p->tensor) - 1;
    const stki_pt_value *metadata = argument(p, last);

    if (last < (p->tensor->global->role == STKI_PT_REBUILD_V3 ? 7 : 6) || metadata->kind == STKI_PT_NONE)
        return STK_OK;
    if (metadata->kind != STKI_PT_DICT)
        return fail(p, STK_E_CORRUPT, "invalid tensor metadata", "a value of another type", "a dict");
    for (int32_t i = 0; i + 1 < metadata->count; i += 2)
        if (stki_pt_item(p->pickle, metadata, i + 1)->kind != STKI_PT_BOOL ||
            stki_pt_item(p->pickle, metadata, i + 1)->integer)
            return fail(p, STK_E_UNSUPPORTED, "lazily conjugated and negated tensors are not supported",
                        "metadata such as {'conj': True}", "a tensor saved after resolve_conj() or resolve_neg()");
    return STK_OK;
}

static stk_status fail_numbers(const struct parts *p, int axis, int64_t size, int64_t stride)
{
    return fail(p, STK_E_CORRUPT, "invalid tensor shape or strides",
                STKI_TEXT("axis %d of %" PRId64 ", stride %" PRId64, axis, size, stride),
                "non-negative numbers and a total size that fits in 63 bits");
}

/* Sets the shape, the strides in bytes, the total size of the elements and the distance from the first to the last
 * one. */
static stk_status take_geometry(struct parts *p, int64_t *reach)
{
    const stki_pt_value *sizes = argument(p, 2), *strides = argument(p, 3);
    int32_t ndim = stki_pt_item_count(p->pickle, sizes);
    int64_t total = p->element_bytes, step;
    bool empty = false;

    if (stki_pt_item_count(p->pickle, strides) != ndim)
        return fail(p, STK_E_CORRUPT, "invalid tensor shape or strides",
                    STKI_TEXT("%d sizes and %d strides", ndim, stki_pt_item_count(p->pickle, strides)),
                    "equal numbers");
    if (ndim > STK_MAX_DIMS)
        return fail(p, STK_E_UNSUPPORTED, "too many axes", STKI_TEXT("%d", ndim),
                    STKI_TEXT("at most %d", STK_MAX_DIMS));
    p->out->ndim = ndim;
    *reach = 0;
    for (int i = 0; i < ndim; i++) {
        int64_t size = stki_pt_item(p->pickle, sizes, i)->integer,
                stride = stki_pt_item(p->pickle, strides, i)->integer;

        p->out->shape[i] = size;
        empty = empty || size == 0;
        if (size < 0 || stride < 0 || !stki_mul(stride, p->element_bytes, &p->out->strides[i]) ||
            !stki_mul(total, size > 0 ? size : 1, &total) ||
            !stki_mul(size > 0 ? size - 1 : 0, p->out->strides[i], &step) || !stki_add(*reach, step, reach))
            return fail_numbers(p, i, size, stride);
    }
    p->out->data_bytes = empty ? 0 : total;
    return STK_OK;
}

static stk_status check_bounds(const struct parts *p, int64_t reach)
{
    int64_t offset = argument(p, 1)->integer, end;
    stki_pt_tensor *out = p->out;

    if (offset < 0)
        return fail(p, STK_E_CORRUPT, "invalid tensor offset", STKI_TEXT("%" PRId64, offset), "0 or more");
    out->offset = 0;
    if (out->data_bytes == 0)
        return STK_OK;
    if (!stki_mul(offset, p->element_bytes, &out->offset) || !stki_add(out->offset, reach, &end) ||
        !stki_add(end, p->element_bytes, &end) || end > out->storage_bytes)
        return fail(p, STK_E_CORRUPT, "a tensor extends beyond its storage",
                    STKI_TEXT("%" PRId64 " bytes at element %" PRId64,
                              reach < INT64_MAX - p->element_bytes ? reach + p->element_bytes : INT64_MAX, offset),
                    STKI_TEXT("a range inside %" PRId64 " bytes", out->storage_bytes));
    return STK_OK;
}

stk_status stki_pt_tensor_of(const stki_pt_pickle *pickle, const stki_pt_value *value, const char *label,
                             stki_pt_tensor *out, stk_error *err)
{
    stki_pt_tensor tensor = {0};
    struct parts p = {.pickle = pickle, .tensor = value, .label = label, .out = &tensor, .err = err};
    int64_t reach;
    stk_status status = take_storage(&p);

    if (status == STK_OK)
        status = check_metadata(&p);
    if (status == STK_OK)
        status = take_geometry(&p, &reach);
    if (status == STK_OK)
        status = check_bounds(&p, reach);
    if (status == STK_OK)
        *out = tensor;
    return status;
}
