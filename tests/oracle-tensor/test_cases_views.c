/* test_cases_views.c: views, layout, copies and casts. */
#include "test_cases.h"

/* A view function that takes a shape. */
typedef stk_status (*shape_fn)(const stk_tensor *tensor, int ndim, const int64_t *shape, stk_tensor *out,
                               stk_error *err);

static stk_status with_shape(tc *m, char **arg, tc_value *out, stk_error *err, shape_fn view)
{
    int64_t shape[STK_MAX_DIMS];
    int ndim = tc_list(m, arg[1], shape, STK_MAX_DIMS);

    return view(tc_tensor(m, arg[0]), ndim, shape, &out->tensor, err);
}

static stk_status op_view(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return with_shape(m, arg, out, err, stk_tensor_view);
}

static stk_status op_reshape(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return with_shape(m, arg, out, err, stk_tensor_reshape);
}

static stk_status op_expand(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return with_shape(m, arg, out, err, stk_tensor_expand);
}

static stk_status op_transpose(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return stk_tensor_transpose(tc_tensor(m, arg[0]), (int)tc_int(m, arg[1]), (int)tc_int(m, arg[2]), &out->tensor,
                                err);
}

static stk_status op_permute(tc *m, char **arg, tc_value *out, stk_error *err)
{
    const stk_tensor *tensor = tc_tensor(m, arg[0]);
    int dims[STK_MAX_DIMS], count = tc_dims(m, arg[1], dims, STK_MAX_DIMS);

    if (count != tensor->ndim) { /* the library expects exactly ndim of them */
        err->status = STK_E_BAD_DIM;
        snprintf(err->message, sizeof err->message, "%d dimensions named", count);
        return STK_E_BAD_DIM;
    }
    return stk_tensor_permute(tensor, dims, &out->tensor, err);
}

static stk_status op_slice(tc *m, char **arg, tc_value *out, stk_error *err)
{
    int64_t start = tc_given(arg[2]) ? tc_int(m, arg[2]) : INT64_MIN;
    int64_t end = tc_given(arg[3]) ? tc_int(m, arg[3]) : INT64_MAX;

    return stk_tensor_slice(tc_tensor(m, arg[0]), (int)tc_int(m, arg[1]), start, end, tc_int(m, arg[4]), &out->tensor,
                            err);
}

static stk_status op_select(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return stk_tensor_select(tc_tensor(m, arg[0]), (int)tc_int(m, arg[1]), tc_int(m, arg[2]), &out->tensor, err);
}

static stk_status op_narrow(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return stk_tensor_narrow(tc_tensor(m, arg[0]), (int)tc_int(m, arg[1]), tc_int(m, arg[2]), tc_int(m, arg[3]),
                             &out->tensor, err);
}

static stk_status op_squeeze(tc *m, char **arg, tc_value *out, stk_error *err)
{
    if (!tc_given(arg[1]))
        return stk_tensor_squeeze_all(tc_tensor(m, arg[0]), &out->tensor, err);
    return stk_tensor_squeeze(tc_tensor(m, arg[0]), (int)tc_int(m, arg[1]), &out->tensor, err);
}

static stk_status op_unsqueeze(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return stk_tensor_unsqueeze(tc_tensor(m, arg[0]), (int)tc_int(m, arg[1]), &out->tensor, err);
}

static stk_status op_flatten(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return stk_tensor_flatten(tc_tensor(m, arg[0]), (int)tc_int(m, arg[1]), (int)tc_int(m, arg[2]), &out->tensor, err);
}

static int64_t in_bytes(int64_t elements, int64_t size)
{
    int64_t bytes;

    return __builtin_mul_overflow(elements, size, &bytes) ? (elements < 0 ? INT64_MIN + 1 : INT64_MAX) : bytes;
}

static stk_status op_as_strided(tc *m, char **arg, tc_value *out, stk_error *err)
{
    const stk_tensor *tensor = tc_tensor(m, arg[0]);
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS], size = stk_dtype_size(tensor->dtype);
    int ndim = tc_list(m, arg[1], shape, STK_MAX_DIMS), stride_count = tc_list(m, arg[2], strides, STK_MAX_DIMS);

    if (ndim != stride_count) { /* the library takes a single count for both */
        err->status = STK_E_BAD_SHAPE;
        snprintf(err->message, sizeof err->message, "%d sizes, %d strides", ndim, stride_count);
        return STK_E_BAD_SHAPE;
    }
    for (int i = 0; i < ndim; i++)
        strides[i] = in_bytes(strides[i], size);
    return stk_tensor_as_strided(tensor, ndim, shape, strides,
                                 tc_given(arg[3]) ? in_bytes(tc_int(m, arg[3]), size) : STK_SAME_OFFSET, &out->tensor,
                                 err);
}

static stk_status op_diagonal(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return stk_tensor_diagonal(tc_tensor(m, arg[0]), tc_int(m, arg[1]), (int)tc_int(m, arg[2]), (int)tc_int(m, arg[3]),
                               &out->tensor, err);
}

static stk_status op_broadcast(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return stk_tensor_broadcast(tc_tensor(m, arg[0]), tc_tensor(m, arg[1]), &out[0].tensor, &out[1].tensor, err);
}

/* ---- layout and copies ---- */

static stk_layout layout_of(tc *m, const char *text)
{
    if (!strcmp(text, "cl"))
        return STK_LAYOUT_CHANNELS_LAST;
    if (!strcmp(text, "keep"))
        return STK_LAYOUT_KEEP;
    if (strcmp(text, "row") != 0)
        tc_bad(m, "unknown layout %s", text);
    return STK_LAYOUT_ROW_MAJOR;
}

static stk_status op_contiguous(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return stk_tensor_contiguous_as(tc_tensor(m, arg[0]), layout_of(m, arg[1]), &out->tensor, err);
}

static stk_status op_clone(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return stk_tensor_clone_as(tc_tensor(m, arg[0]), layout_of(m, arg[1]), &out->tensor, err);
}

static stk_status op_to(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return stk_tensor_to(tc_tensor(m, arg[0]), tc_dtype(m, arg[1]), &out->tensor, err);
}

static stk_status op_to_dev(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return stk_tensor_to_device(tc_tensor(m, arg[0]), tc_device(m, arg[1]), &out->tensor, err);
}

static stk_status op_copy(tc *m, char **arg, tc_value *out, stk_error *err)
{
    (void)out;
    return stk_tensor_copy(tc_tensor(m, arg[0]), tc_tensor(m, arg[1]), err);
}

static stk_status op_set(tc *m, char **arg, tc_value *out, stk_error *err)
{
    int64_t index[STK_MAX_DIMS];
    int count = tc_list(m, arg[1], index, STK_MAX_DIMS);

    (void)out;
    return stk_tensor_set(tc_tensor(m, arg[0]), count, index, tc_scalar(m, arg[2]), err);
}

static stk_status op_fill(tc *m, char **arg, tc_value *out, stk_error *err)
{
    (void)out;
    return stk_tensor_fill(tc_tensor(m, arg[0]), tc_scalar(m, arg[1]), err);
}

static stk_status op_zero(tc *m, char **arg, tc_value *out, stk_error *err)
{
    (void)out;
    return stk_tensor_zero(tc_tensor(m, arg[0]), err);
}

static const tc_op tc_ops[] = {
    {"view", 2, 1, op_view},
    {"reshape", 2, 1, op_reshape},
    {"expand", 2, 1, op_expand},
    {"transpose", 3, 1, op_transpose},
    {"permute", 2, 1, op_permute},
    {"slice", 5, 1, op_slice},
    {"select", 3, 1, op_select},
    {"narrow", 4, 1, op_narrow},
    {"squeeze", 2, 1, op_squeeze},
    {"unsqueeze", 2, 1, op_unsqueeze},
    {"flatten", 3, 1, op_flatten},
    {"as_strided", 4, 1, op_as_strided},
    {"diagonal", 4, 1, op_diagonal},
    {"broadcast", 2, 2, op_broadcast},
    {"contiguous", 2, 1, op_contiguous},
    {"clone", 2, 1, op_clone},
    {"to", 2, 1, op_to},
    {"to_dev", 2, 1, op_to_dev},
    {"copy_", 2, 0, op_copy},
    {"set", 3, 0, op_set},
    {"fill_", 2, 0, op_fill},
    {"zero_", 1, 0, op_zero},
};

TC_NO_CHECKS

TC_REGISTER
