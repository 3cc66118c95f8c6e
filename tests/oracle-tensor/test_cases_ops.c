/* test_cases_ops.c: element-wise operations, reductions, matrix products, cross entropy. */
#include "test_cases.h"

/* ---- element-wise ---- */

static stk_operand operand(tc *m, const char *text)
{
    return tc_is_scalar(text) ? stk_operand_scalar(tc_scalar(m, text)) : stk_operand_tensor(tc_tensor(m, text));
}

#define OPERATION(name, op)                                                                                   \
    static stk_status op_##name(tc *m, char **arg, tc_value *out, stk_error *err)                             \
    {                                                                                                         \
        return stk_tensor_binary(op, operand(m, arg[0]), operand(m, arg[1]), &out->tensor, err);              \
    }                                                                                                         \
    static stk_status op_##name##_in_place(tc *m, char **arg, tc_value *out, stk_error *err)                  \
    {                                                                                                         \
        (void)out;                                                                                            \
        return stk_tensor_binary_into(op, operand(m, arg[0]), operand(m, arg[1]), tc_tensor(m, arg[0]), err); \
    }                                                                                                         \
    static stk_status op_##name##_out(tc *m, char **arg, tc_value *out, stk_error *err)                       \
    {                                                                                                         \
        (void)out;                                                                                            \
        return stk_tensor_binary_into(op, operand(m, arg[1]), operand(m, arg[2]), tc_tensor(m, arg[0]), err); \
    }
OPERATION(add, STK_ADD)
OPERATION(sub, STK_SUB)
OPERATION(mul, STK_MUL)
OPERATION(div, STK_DIV)
OPERATION(floor_div, STK_FLOOR_DIV)
OPERATION(trunc_div, STK_TRUNC_DIV)

typedef struct bounds {
    stk_scalar value[2];
    const stk_scalar *low, *high;
} bounds;

static void read_bounds(tc *m, char **arg, bounds *out)
{
    for (int i = 0; i < 2; i++)
        if (tc_given(arg[i]))
            out->value[i] = tc_scalar(m, arg[i]);
    out->low = tc_given(arg[0]) ? &out->value[0] : NULL;
    out->high = tc_given(arg[1]) ? &out->value[1] : NULL;
}

static stk_status op_clamp(tc *m, char **arg, tc_value *out, stk_error *err)
{
    bounds b;

    read_bounds(m, arg + 1, &b);
    return stk_tensor_clamp(tc_tensor(m, arg[0]), b.low, b.high, &out->tensor, err);
}

static stk_status op_clamp_in_place(tc *m, char **arg, tc_value *out, stk_error *err)
{
    stk_tensor *tensor = tc_tensor(m, arg[0]);
    bounds b;

    (void)out;
    read_bounds(m, arg + 1, &b);
    return stk_tensor_clamp_into(tensor, b.low, b.high, tensor, err);
}

static stk_status op_clamp_out(tc *m, char **arg, tc_value *out, stk_error *err)
{
    bounds b;

    (void)out;
    read_bounds(m, arg + 2, &b);
    return stk_tensor_clamp_into(tc_tensor(m, arg[1]), b.low, b.high, tc_tensor(m, arg[0]), err);
}

/* ---- reductions ---- */

/* A list of dimensions, or "_" for all. */
typedef struct dims {
    int count, dim[STK_MAX_DIMS];
    const int *list; /* NULL: all */
} dims;

static void read_dims(tc *m, const char *text, dims *out)
{
    out->list = tc_given(text) ? out->dim : NULL;
    out->count = out->list ? tc_dims(m, text, out->dim, STK_MAX_DIMS) : 0;
}

static bool keep(tc *m, const char *text)
{
    return tc_int(m, text) != 0;
}

static stk_dtype dtype_or_none(tc *m, const char *text)
{
    return tc_given(text) ? tc_dtype(m, text) : STK_DTYPE_NONE;
}

static stk_status op_sum(tc *m, char **arg, tc_value *out, stk_error *err)
{
    dims d;

    read_dims(m, arg[1], &d);
    return stk_tensor_sum(tc_tensor(m, arg[0]), d.count, d.list, keep(m, arg[2]), dtype_or_none(m, arg[3]),
                          &out->tensor, err);
}

static stk_status op_mean(tc *m, char **arg, tc_value *out, stk_error *err)
{
    dims d;

    read_dims(m, arg[1], &d);
    return stk_tensor_mean(tc_tensor(m, arg[0]), d.count, d.list, keep(m, arg[2]), dtype_or_none(m, arg[3]),
                           &out->tensor, err);
}

static stk_status op_sum_out(tc *m, char **arg, tc_value *out, stk_error *err)
{
    dims d;

    (void)out;
    read_dims(m, arg[2], &d);
    return stk_tensor_sum_into(tc_tensor(m, arg[1]), d.count, d.list, keep(m, arg[3]), tc_tensor(m, arg[0]), err);
}

static stk_status op_amin(tc *m, char **arg, tc_value *out, stk_error *err)
{
    dims d;

    read_dims(m, arg[1], &d);
    return stk_tensor_amin(tc_tensor(m, arg[0]), d.count, d.list, keep(m, arg[2]), &out->tensor, err);
}

static stk_status op_amax(tc *m, char **arg, tc_value *out, stk_error *err)
{
    dims d;

    read_dims(m, arg[1], &d);
    return stk_tensor_amax(tc_tensor(m, arg[0]), d.count, d.list, keep(m, arg[2]), &out->tensor, err);
}

static int dim_or_all(tc *m, const char *text)
{
    return tc_given(text) ? (int)tc_int(m, text) : STK_ALL_DIMS;
}

static stk_status op_argmin(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return stk_tensor_argmin(tc_tensor(m, arg[0]), dim_or_all(m, arg[1]), keep(m, arg[2]), &out->tensor, err);
}

static stk_status op_argmax(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return stk_tensor_argmax(tc_tensor(m, arg[0]), dim_or_all(m, arg[1]), keep(m, arg[2]), &out->tensor, err);
}

static stk_status op_min(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return stk_tensor_min(tc_tensor(m, arg[0]), dim_or_all(m, arg[1]), keep(m, arg[2]), &out[0].tensor, &out[1].tensor,
                          err);
}

static stk_status op_max(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return stk_tensor_max(tc_tensor(m, arg[0]), dim_or_all(m, arg[1]), keep(m, arg[2]), &out[0].tensor, &out[1].tensor,
                          err);
}

/* ---- matrix products ---- */

static stk_status op_matmul(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return stk_tensor_matmul(tc_tensor(m, arg[0]), tc_tensor(m, arg[1]), &out->tensor, err);
}

static stk_status op_matmul_out(tc *m, char **arg, tc_value *out, stk_error *err)
{
    (void)out;
    return stk_tensor_matmul_into(tc_tensor(m, arg[1]), tc_tensor(m, arg[2]), tc_tensor(m, arg[0]), err);
}

/* ---- cross entropy ---- */

static stk_reduction reduction(tc *m, const char *text)
{
    if (!strcmp(text, "none"))
        return STK_REDUCTION_NONE;
    if (!strcmp(text, "sum"))
        return STK_REDUCTION_SUM;
    if (strcmp(text, "mean") != 0)
        tc_bad(m, "unknown reduction %s", text);
    return STK_REDUCTION_MEAN;
}

static stk_status op_xent(tc *m, char **arg, tc_value *out, stk_error *err)
{
    stk_cross_entropy_opts opts = STK_CROSS_ENTROPY_OPTS_INIT;

    opts.weight = tc_given(arg[2]) ? tc_tensor(m, arg[2]) : NULL;
    opts.has_ignore_index = true;
    opts.ignore_index = tc_int(m, arg[3]);
    opts.reduction = reduction(m, arg[4]);
    opts.label_smoothing = tc_real(m, arg[5]);
    return stk_tensor_cross_entropy(tc_tensor(m, arg[0]), tc_tensor(m, arg[1]), &opts, &out->tensor, err);
}

#define ROWS(name)                                                     \
    {#name, 2, 1, op_##name}, {#name "_", 2, 0, op_##name##_in_place}, \
    {                                                                  \
#name "_out", 3, 0, op_##name##_out                            \
    }

static const tc_op tc_ops[] = {
    ROWS(add),
    ROWS(sub),
    ROWS(mul),
    ROWS(div),
    ROWS(floor_div),
    ROWS(trunc_div),
    {"clamp", 3, 1, op_clamp},
    {"clamp_", 3, 0, op_clamp_in_place},
    {"clamp_out", 4, 0, op_clamp_out},
    {"sum", 4, 1, op_sum},
    {"mean", 4, 1, op_mean},
    {"sum_out", 4, 0, op_sum_out},
    {"amin", 3, 1, op_amin},
    {"amax", 3, 1, op_amax},
    {"argmin", 3, 1, op_argmin},
    {"argmax", 3, 1, op_argmax},
    {"min", 3, 2, op_min},
    {"max", 3, 2, op_max},
    {"matmul", 2, 1, op_matmul},
    {"xent", 6, 1, op_xent},
    {"matmul_out", 3, 0, op_matmul_out},
};

TC_NO_CHECKS

TC_REGISTER
