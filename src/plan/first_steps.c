/* first_steps.c: see first_steps.h. */
#include "first_steps.h"
#include "error.h"
#include "geometry.h"
#include "tensor_internal.h"
#include <string.h>

static const stki_operation operations[] = {
    {"call", {"blur", "sharpen"}},
    {"reshape", {"[-1]", "[2, -1]"}},
    {"squeeze", {"{}", "[0]"}},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

bool stki_first_steps_know(const char *operation)
{
    return stki_operation_find(stki_first_steps_operation, operation) >= 0;
}

const stki_operation *stki_first_steps_operation(int index)
{
    return index < OPERATIONS ? &operations[index] : NULL;
}

/* ---- reading ---- */

/* Parses a list of lengths, one of which may be -1. */
static stk_status read_shape(const stki_node *node, int *ndim, int64_t *shape, stk_error *err)
{
    int unknown = 0;

    if (node->kind != STKI_NODE_LIST || node->count >= STK_MAX_DIMS)
        return stki_fail_value(err, node, "a list of at most %d axis lengths, one of which may be -1",
                               STK_MAX_DIMS - 1);
    *ndim = node->count;
    for (int i = 0; i < node->count; i++) {
        stk_status status = stki_node_int(node->items[i], &shape[i], err);

        if (status != STK_OK)
            return status;
        unknown += shape[i] == -1;
        if (shape[i] < -1 || unknown > 1)
            return stki_fail_value(err, node->items[i], "0 or more, or -1 at most once");
    }
    return STK_OK;
}

/* Parses an axis or a list of axes; {} or nothing: all axes of length 1. */
static stk_status read_axes(const stki_node *node, int ndim, bool *chosen, bool *all, stk_error *err)
{
    const bool list = node->kind == STKI_NODE_LIST;
    const int count = list ? node->count : 1;

    *all = stki_node_is_null(node) || (node->kind == STKI_NODE_MAP && node->count == 0);
    for (int i = 0; !*all && i < count; i++) {
        int64_t axis;
        stk_status status = stki_node_int(list ? node->items[i] : node, &axis, err);

        if (status != STK_OK)
            return status;
        if (axis < -ndim || axis >= ndim)
            return stki_fail_value(err, list ? node->items[i] : node, "an axis of the sample, %d to %d", -ndim,
                                   ndim - 1);
        chosen[axis < 0 ? axis + ndim : axis] = true;
    }
    return STK_OK;
}

stk_status stki_first_steps_check(const char *operation, const stki_node *node, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS];
    bool chosen[STK_MAX_DIMS], all;
    const char *name;
    int ndim;

    if (strcmp(operation, "reshape") == 0)
        return read_shape(node, &ndim, shape, err);
    if (strcmp(operation, "squeeze") == 0)
        return read_axes(node, STK_MAX_DIMS, chosen, &all, err);
    return stki_node_text(node, &name, err);
}

bool stki_first_steps_call(const stki_node *transforms)
{
    for (int i = 0; transforms && transforms->kind == STKI_NODE_LIST && i < transforms->count; i++)
        if (stki_node_get(transforms->items[i], "call"))
            return true;
    return false;
}

/* ---- wrapping ---- */

static stk_status reshape(stki_reader *inner, const stki_node *node, stki_reader **out, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS], known = 1, elements = 1;
    int ndim, unknown = -1;
    stk_status status = read_shape(node, &ndim, shape, err);

    for (int i = 0; i < inner->ndim; i++)
        elements *= inner->shape[i];
    for (int i = 0; status == STK_OK && i < ndim; i++) {
        if (shape[i] < 0)
            unknown = i;
        else if (__builtin_mul_overflow(known, shape[i], &known))
            status = stki_fail_value(err, node, "as many elements as a sample has");
    }
    if (status == STK_OK && unknown >= 0 && known > 0 && elements % known == 0) {
        shape[unknown] = elements / known;
        known = elements;
    }
    if (status == STK_OK && (known != elements || (unknown >= 0 && shape[unknown] < 0)))
        status = stki_fail_value(err, node, "a shape with the %lld elements of %s", (long long)elements,
                                 STKI_SHAPE(inner->ndim, inner->shape));
    if (status != STK_OK) {
        stki_reader_destroy(inner);
        return status;
    }
    return stki_shape_reader_open(inner, ndim, shape, node, out, err);
}

static stk_status squeeze(stki_reader *inner, const stki_node *node, stki_reader **out, stk_error *err)
{
    bool chosen[STK_MAX_DIMS] = {0}, all;
    int64_t shape[STK_MAX_DIMS];
    int ndim = 0;
    stk_status status = read_axes(node, inner->ndim, chosen, &all, err);

    for (int i = 0; status == STK_OK && i < inner->ndim; i++) {
        if (chosen[i] && inner->shape[i] != 1)
            status = stki_fail_value(err, node, "an axis of length 1 of %s", STKI_SHAPE(inner->ndim, inner->shape));
        if (!(all && inner->shape[i] == 1) && !chosen[i])
            shape[ndim++] = inner->shape[i];
    }
    if (status != STK_OK) {
        stki_reader_destroy(inner);
        return status;
    }
    return stki_shape_reader_open(inner, ndim, shape, node, out, err);
}

stk_status stki_first_steps_wrap(const stki_node *transforms, stki_reader **reader, stk_error *err)
{
    stk_status status = STK_OK;

    for (int i = 0; transforms && transforms->kind == STKI_NODE_LIST && i < transforms->count && status == STK_OK;
         i++) {
        const stki_node *step = transforms->items[i];
        const char *operation = step->kind == STKI_NODE_MAP && step->count == 1 ? step->keys[0] : "";
        stki_reader *inner = *reader;
        const char *name;

        if (!stki_first_steps_know(operation))
            break;
        *reader = NULL;
        if (strcmp(operation, "reshape") == 0) {
            status = reshape(inner, step->items[0], reader, err);
        } else if (strcmp(operation, "squeeze") == 0) {
            status = squeeze(inner, step->items[0], reader, err);
        } else if ((status = stki_node_text(step->items[0], &name, err)) == STK_OK) {
            status = stki_call_reader_open(inner, name, step->items[0], reader, err);
        } else {
            stki_reader_destroy(inner);
        }
    }
    return status;
}
