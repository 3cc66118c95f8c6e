/* ops_binary.c: element-wise operations with two operands, and clamp. All checks (broadcast, device, dtype, overlap,
 * values, in this order) come before anything is allocated or written. */
#include "cast.h"
#include "device_kernels.h"
#include "device_table.h"
#include "dtype.h"
#include "element.h"
#include "error.h"
#include "ops_elementwise.h"
#include "ops_frame.h"
#include "ops_promote.h"
#include "profile_scope.h"
#include "stream.h"
#include "strided.h"
#include "tensor_internal.h"
#include <math.h>
#include <string.h>

static const struct op_row {
    const char *name;
    enum stki_loop loop;
    bool swapped; /* the loop expects the operands in reverse order */
    bool compares;
} op_rows[STK_BINARY_OPS] = {
    [STK_ADD] = {"add", STKI_LOOP_ADD, false, false},
    [STK_SUB] = {"sub", STKI_LOOP_SUB, false, false},
    [STK_MUL] = {"mul", STKI_LOOP_MUL, false, false},
    [STK_DIV] = {"div", STKI_LOOP_DIV, false, false},
    [STK_FLOOR_DIV] = {"floor_div", STKI_LOOP_FLOOR_DIV, false, false},
    [STK_TRUNC_DIV] = {"trunc_div", STKI_LOOP_TRUNC_DIV, false, false},
    [STK_EQ] = {"eq", STKI_LOOP_EQ, false, true},
    [STK_NE] = {"ne", STKI_LOOP_NE, false, true},
    [STK_LT] = {"lt", STKI_LOOP_LT, false, true},
    [STK_LE] = {"le", STKI_LOOP_LE, false, true},
    [STK_GT] = {"gt", STKI_LOOP_LT, true, true},
    [STK_GE] = {"ge", STKI_LOOP_LE, true, true},
};

/* The values of operands that are not tensors, in the compute dtype; clamp has two values for one operand. */
struct constants {
    char bytes[2][16];
};

/* One operation, with the operands in the loop's order. */
struct call {
    const char *name;
    stki_elementwise op;
    stki_frame frame;
    stk_operand operands[2];
    struct constants constants[2];
};

/* ---- constants ---- */

/* Converts a scalar to the compute dtype. Like the elements of tensors, it is cast to the common dtype first. */
static stki_element constant_of(const stki_elementwise *op, stk_scalar scalar)
{
    stki_element common = stki_element_cast(op->common, scalar), out = {{0}};
    stki_cast cast;

    stki_cast_init(&cast, op->compute, op->common, false);
    stki_cast_row(&cast, out.bytes, 16, common.bytes, 16, 1);
    return out;
}

/* ---- checks ---- */

static stk_status check_output(const struct call *call, const stk_tensor *out, stk_error *err)
{
    stk_status status = stki_frame_accepts(&call->frame, call->op.result, out, err);

    status = status != STK_OK ? status : stki_check_writable(out, err);
    for (int i = 0; i < 2 && status == STK_OK; i++)
        if (call->operands[i].tensor)
            status = stki_check_overlap(out, call->operands[i].tensor, err);
    return status;
}

static stk_status set_loop(struct call *call, enum stki_loop loop, stk_error *err)
{
    call->op.isa = stki_isa();
    call->op.loop = loop;
    call->op.stores = STKI_STORES_AUTO;
    if (!stki_loops_find(call->op.isa, loop, call->op.compute))
        return stki_fail(err, STK_E_BAD_DTYPE, "%s: not supported for %s", call->name, stk_dtype_name(call->op.common));
    return STK_OK;
}

static void set_dtypes(struct call *call, stk_dtype common, bool compares)
{
    call->op.common = common;
    call->op.compute = stki_compute_dtype(common);
    call->op.writes = compares ? STK_BOOL : call->op.compute;
    call->op.result = compares ? STK_BOOL : common;
}

/* ---- integer division ---- */

static bool row_has_zero(const struct call *call, const stki_cast *cast, const char *at, int64_t step, int64_t count)
{
    enum { BLOCK = 256 };
    const stki_loops *equal = stki_loops_find(stki_isa(), STKI_LOOP_EQ, call->op.common);
    int64_t block[BLOCK], zero = 0, size = stk_dtype_size(call->op.common);
    char found[BLOCK];

    for (int64_t first = 0; first < count; first += BLOCK) {
        int64_t n = count - first < BLOCK ? count - first : BLOCK;
        stki_cast_row(cast, block, size, at + first * step, step, n);
        equal->with_one(found, block, &zero, n);
        if (memchr(found, 1, (size_t)n))
            return true;
    }
    return false;
}

/* Whether an element of the divisor is 0 in the common dtype. */
static bool has_zero(const struct call *call, const stk_tensor *divisor)
{
    stki_strided plan;
    stki_walk walk;
    stki_cast cast;
    int last;

    stki_cast_init(&cast, call->op.common, divisor->dtype, false);
    stki_strided_plan(&plan, 1, (const int64_t *const[]){divisor->strides}, divisor->ndim, divisor->shape,
                      STKI_ANY_ORDER);
    last = plan.ndim - 1;
    if (stki_walk_begin(&walk, &plan, 1, (const void *const[]){divisor->data}))
        do
            if (row_has_zero(call, &cast, walk.at[0], plan.strides[0][last], plan.shape[last]))
                return true;
        while (stki_walk_next(&walk));
    return false;
}

static stk_status check_divisor(void *context, const stk_tensor *const *tensors, stk_error *err)
{
    const struct call *call = context;
    const char zero[8] = {0};
    bool found = tensors[0] ? has_zero(call, tensors[0])
                            : !memcmp(call->constants[1].bytes[0], zero, (size_t)stk_dtype_size(call->op.common));

    if (found)
        return stki_fail(err, STK_E_DIV_ZERO, "%s: a divisor is 0", call->name);
    return STK_OK;
}

/* ---- running ---- */

static stk_status run_call(void *context, const stk_tensor *const *tensors, stk_error *err)
{
    const struct call *call = context;
    stki_input inputs[2];

    (void)err;
    for (int i = 0; i < 2; i++)
        inputs[i] = (stki_input){.tensor = tensors[i + 1], .constants = tensors[i + 1] ? NULL : &call->constants[i]};
    stki_elementwise_run(&call->op, tensors[0], inputs[0], inputs[1]);
    return STK_OK;
}

/* Reads a zero-dimensional CPU tensor, which may be combined with tensors of any device, as a constant. */
static void constant_of_tensor(const stki_elementwise *op, const stk_tensor *tensor, char *to)
{
    stki_element common;
    stki_cast cast;

    stki_cast_init(&cast, op->common, tensor->dtype, false);
    stki_cast_row(&cast, common.bytes, 16, tensor->data, 16, 1);
    stki_cast_init(&cast, op->compute, op->common, false);
    stki_cast_row(&cast, to, 16, common.bytes, 16, 1);
}

/* Runs the device's own kernel. STK_E_UNSUPPORTED: it has none. */
static stk_status run_on_device(const struct call *call, const stk_tensor *out, stk_error *err)
{
    const stki_elementwise *op = &call->op;
    stk_device *device = stki_tensor_device(out);
    stki_elementwise_job job = {.loop = op->loop,
                                .common = op->common,
                                .compute = op->compute,
                                .writes = op->writes,
                                .result = op->result,
                                .out = out};
    stk_status status;

    if (!device->ops->elementwise)
        return STK_E_UNSUPPORTED;
    for (int k = 0; k < 2; k++) {
        const stk_tensor *tensor = call->operands[k].tensor;
        if (tensor && stki_tensor_device(tensor) == device)
            job.in[k] = tensor;
        else if (tensor)
            constant_of_tensor(op, tensor, job.constants[k]);
        else
            memcpy(job.constants[k], call->constants[k].bytes, sizeof job.constants[k]);
    }
    status = device->ops->elementwise(device, &job, stki_stream_for(device, NULL), err);
    if (status == STK_E_UNSUPPORTED)
        stki_error_clear(err);
    return status;
}

static stk_status run_into(struct call *call, const stk_tensor *out, stk_error *err)
{
    stk_status status;

    if (stk_tensor_numel(out) == 0)
        return STK_OK;
    status = run_on_device(call, out, err);
    if (status != STK_E_UNSUPPORTED)
        return status;
    return stki_run_on_host((const stk_tensor *const[]){out, call->operands[0].tensor, call->operands[1].tensor}, 3, 1,
                            run_call, call, err);
}

static stk_status run_fresh(struct call *call, stk_tensor *out, stk_error *err)
{
    stk_tensor made;
    stk_status status = stki_frame_fresh(&call->frame, call->op.result, call->operands, 2, &made, err);

    if (status != STK_OK)
        return status;
    status = run_into(call, &made, err);
    if (status != STK_OK) {
        stk_tensor_release(&made);
        return status;
    }
    *out = made;
    return STK_OK;
}

/* ---- two operands ---- */

/* The names of operations in profiles. */
static stki_profile_row fresh_rows[STK_BINARY_OPS + 1] = {
#define STK_X(identifier, word) [identifier] = {.name = #word},
    STK_BINARY_LIST(STK_X)
#undef STK_X
        [STK_BINARY_OPS] = {.name = "binary"},
};
static stki_profile_row into_rows[STK_BINARY_OPS + 1] = {
#define STK_X(identifier, word) [identifier] = {.name = #word "_into"},
    STK_BINARY_LIST(STK_X)
#undef STK_X
        [STK_BINARY_OPS] = {.name = "binary_into"},
};

static stki_profile_row *row_of(stki_profile_row *rows, stk_binary_op op)
{
    return &rows[(int)op >= 0 && op < STK_BINARY_OPS ? op : STK_BINARY_OPS];
}

/* Checks and prepares everything that does not depend on the output. */
static stk_status begin_binary(struct call *call, stk_binary_op op, stk_operand a, stk_operand b, stk_error *err)
{
    const struct op_row *row = (int)op >= 0 && op < STK_BINARY_OPS ? &op_rows[op] : NULL;
    stk_dtype common;
    stk_status status;

    if (!row)
        return stki_fail(err, STK_E_BAD_ARG, "invalid operation %d", (int)op);
    *call = (struct call){.name = row->name, .operands = {row->swapped ? b : a, row->swapped ? a : b}};
    status = stki_frame_of(&call->frame, call->operands, 2, err);
    status = status != STK_OK ? status : stk_result_dtype(call->operands, 2, &common, err);
    if (status != STK_OK)
        return status;
    if (op == STK_DIV && stki_dtype_category(common) < STKI_CATEGORY_REAL)
        common = STK_F32;
    set_dtypes(call, common, row->compares);
    status = set_loop(call, row->loop, err);
    for (int i = 0; i < 2 && status == STK_OK; i++)
        if (!call->operands[i].tensor)
            memcpy(&call->constants[i], constant_of(&call->op, call->operands[i].scalar).bytes, 16);
    return status;
}

static stk_status check_values(struct call *call, stk_binary_op op, stk_error *err)
{
    if ((op != STK_FLOOR_DIV && op != STK_TRUNC_DIV) || stki_dtype_category(call->op.common) != STKI_CATEGORY_WHOLE)
        return STK_OK;
    return stki_run_on_host((const stk_tensor *const[]){call->operands[1].tensor}, 1, 0, check_divisor, call, err);
}

stk_status stk_tensor_binary(stk_binary_op op, stk_operand a, stk_operand b, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE_ROW(row_of(fresh_rows, op));
    struct call call;
    stk_status status = begin_binary(&call, op, a, b, err);

    status = status != STK_OK ? status : check_values(&call, op, err);
    return status != STK_OK ? status : run_fresh(&call, out, err);
}

stk_status stk_tensor_binary_into(stk_binary_op op, stk_operand a, stk_operand b, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE_ROW(row_of(into_rows, op));
    struct call call;
    stk_status status = begin_binary(&call, op, a, b, err);

    status = status != STK_OK ? status : check_output(&call, out, err);
    status = status != STK_OK ? status : check_values(&call, op, err);
    return status != STK_OK ? status : run_into(&call, out, err);
}

/* ---- clamp ---- */

/* The lowest or highest value of the dtype. */
static stki_element no_bound(stk_dtype dtype, bool low)
{
    bool real = stki_dtype_category(dtype) == STKI_CATEGORY_REAL, is_signed = stki_dtype_signed(dtype);
    stki_element element;

    if (real)
        return stki_element_cast(dtype, stk_real(low ? -HUGE_VAL : HUGE_VAL));
    memset(element.bytes, low ? 0 : 0xff, sizeof element.bytes);
    if (is_signed)
        element.bytes[stk_dtype_size(dtype) - 1] = (char)(low ? 0x80 : 0x7f);
    if (dtype == STK_BOOL)
        element.bytes[0] = !low;
    return element;
}

static stk_status begin_clamp(struct call *call, const stk_tensor *tensor, const stk_scalar *low,
                              const stk_scalar *high, stk_error *err)
{
    const stk_scalar *bounds[2] = {low, high};
    stk_operand all[3] = {stk_operand_tensor(tensor)};
    stk_dtype common;
    int count = 1;
    stk_status status;

    if (!low && !high)
        return stki_fail(err, STK_E_BAD_ARG, "clamp: a lower or an upper bound is required");
    for (int i = 0; i < 2; i++)
        if (bounds[i])
            all[count++] = stk_operand_scalar(*bounds[i]);
    *call = (struct call){.name = "clamp", .operands = {all[0], stk_operand_scalar(stk_bool(false))}};
    status = stki_frame_of(&call->frame, call->operands, 1, err);
    status = status != STK_OK ? status : stk_result_dtype(all, count, &common, err);
    if (status != STK_OK)
        return status;
    set_dtypes(call, common, false);
    for (int i = 0; i < 2; i++) {
        stki_element bound = bounds[i] ? constant_of(&call->op, *bounds[i]) : no_bound(call->op.compute, i == 0);
        int64_t size = stk_dtype_size(call->op.compute); /* the loop reads two adjacent elements */
        memcpy((char *)&call->constants[1] + i * size, bound.bytes, (size_t)size);
    }
    return set_loop(call, STKI_LOOP_CLAMP, err);
}

stk_status stk_tensor_clamp(const stk_tensor *tensor, const stk_scalar *low, const stk_scalar *high, stk_tensor *out,
                            stk_error *err)
{
    STKI_PROFILE("clamp");
    struct call call;
    stk_status status = begin_clamp(&call, tensor, low, high, err);

    return status != STK_OK ? status : run_fresh(&call, out, err);
}

stk_status stk_tensor_clamp_into(const stk_tensor *tensor, const stk_scalar *low, const stk_scalar *high,
                                 stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("clamp_into");
    struct call call;
    stk_status status = begin_clamp(&call, tensor, low, high, err);

    status = status != STK_OK ? status : check_output(&call, out, err);
    return status != STK_OK ? status : run_into(&call, out, err);
}
