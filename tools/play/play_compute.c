/* play_compute.c: operations that read elements: copies, casts, arithmetic, reductions. Operations whose name ends
 * in _ work in place, so that all views of the memory change. */
#include "error.h"
#include "play_ops.h"
#include "play_why.h"
#include <inttypes.h>
#include <stoker/ops.h>
#include <string.h>

static stk_status afford_copy(struct pl_call *call, stk_dtype dtype, stk_error *err)
{
    return pl_afford(call->command->op, dtype, call->in->ndim, call->in->shape, err);
}

static stk_status op_contiguous(struct pl_call *call, stk_error *err)
{
    bool clone = strcmp(call->command->op, "clone") == 0;
    stk_status status = pl_take_end(call->command, err);

    status = status != STK_OK ? status : afford_copy(call, call->in->dtype, err);
    if (status != STK_OK)
        return status;
    return clone ? stk_tensor_clone(call->in, &call->out, err) : stk_tensor_contiguous(call->in, &call->out, err);
}

static stk_status op_channels_last(struct pl_call *call, stk_error *err)
{
    stk_status status = pl_take_end(call->command, err);

    status = status != STK_OK ? status : afford_copy(call, call->in->dtype, err);
    return status != STK_OK ? status : stk_tensor_contiguous_as(call->in, STK_LAYOUT_CHANNELS_LAST, &call->out, err);
}

static stk_status op_to(struct pl_call *call, stk_error *err)
{
    stk_dtype dtype;
    stk_status status = pl_take_dtype(call->command, STK_DTYPE_NONE, &dtype, err);

    if (status == STK_OK && dtype == STK_DTYPE_NONE) {
        const char *word = pl_take_any_word(call->command);
        return word ? pl_fail_dtype("to", word, err)
                    : stki_fail(err, STK_E_CONFIG, "to: missing dtype: expected to DTYPE, such as to f16");
    }
    status = status != STK_OK ? status : pl_take_end(call->command, err);
    status = status != STK_OK ? status : afford_copy(call, dtype, err);
    return status != STK_OK ? status : stk_tensor_to(call->in, dtype, &call->out, err);
}

/* Reads a number or the name of a tensor. */
static stk_status take_operand(struct pl_call *call, stk_operand *out, stk_error *err)
{
    stk_scalar number;
    const char *word = pl_take_any_word(call->command);
    int step = word ? pl_session_find(call->session, word) : -1;

    if (word && step < 0)
        return stki_fail(err, STK_E_CONFIG, "%s: no tensor named %s", call->command->op, word);
    if (word) {
        *out = stk_operand_tensor(&call->session->steps[step].tensor);
        return STK_OK;
    }
    if (!pl_take_number(call->command, &number))
        return stki_fail(err, STK_E_CONFIG, "%s: expected a number or the name of a tensor", call->command->op);
    *out = stk_operand_scalar(number);
    return STK_OK;
}

/* Explains STK_E_BAD_BROADCAST, and rejects results that are too large to draw. */
static stk_status check_pair(struct pl_call *call, const stk_operand *other, stk_error *err)
{
    stk_tensor a, b;
    stk_status status;

    if (!other->tensor)
        return STK_OK;
    status = stk_tensor_broadcast(call->in, other->tensor, &a, &b, err);
    if (status != STK_OK) {
        pl_why_broadcast(call->in->ndim, call->in->shape, other->tensor->ndim, other->tensor->shape, call->remark,
                         sizeof call->remark);
        return status;
    }
    status = pl_afford(call->command->op, STK_F64, a.ndim, a.shape, err);
    stk_tensor_release(&a);
    stk_tensor_release(&b);
    return status;
}

static stk_binary_op binary_named(const char *name, size_t length)
{
    static const char *const names[] = {
#define STK_X(identifier, text) [identifier] = #text,
        STK_BINARY_LIST(STK_X)
#undef STK_X
    };

    for (int i = 0; i < STK_BINARY_OPS; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return (stk_binary_op)i;
    return STK_BINARY_OPS;
}

static stk_status op_binary(struct pl_call *call, stk_error *err)
{
    const char *name = call->command->op;
    size_t length = strlen(name);
    bool in_place = name[length - 1] == '_';
    stk_operand other;
    stk_status status = take_operand(call, &other, err);

    status = status != STK_OK ? status : pl_take_end(call->command, err);
    status = status != STK_OK ? status : check_pair(call, &other, err);
    if (status != STK_OK)
        return status;
    stk_binary_op op = binary_named(name, length - in_place);
    if (!in_place)
        return stk_tensor_binary(op, stk_operand_tensor(call->in), other, &call->out, err);
    stk_tensor target = *call->in;
    status = stk_tensor_binary_into(op, stk_operand_tensor(call->in), other, &target, err);
    if (status != STK_OK) {
        pl_why_in_place(call->in, status, call->remark, sizeof call->remark);
        return status;
    }
    stk_tensor_retain(&target);
    call->out = target;
    call->in_place = true;
    return STK_OK;
}

static stk_status op_fill(struct pl_call *call, stk_error *err)
{
    stk_tensor target = *call->in;
    stk_scalar value = stk_int(0);
    stk_status status;

    if (strcmp(call->command->op, "fill_") == 0 && !pl_take_number(call->command, &value))
        return stki_fail(err, STK_E_CONFIG, "fill_: missing value: fill_ VALUE");
    status = pl_take_end(call->command, err);
    status = status != STK_OK ? status : stk_tensor_fill(&target, value, err);
    if (status != STK_OK)
        return status;
    stk_tensor_retain(&target);
    call->out = target;
    call->in_place = true;
    return STK_OK;
}

static stk_status op_reduce(struct pl_call *call, stk_error *err)
{
    const char *name = call->command->op;
    int dims[STK_MAX_DIMS], count;
    stk_dtype dtype;
    bool keep = pl_take_word(call->command, "keepdim");
    stk_status status = pl_take_dtype(call->command, STK_DTYPE_NONE, &dtype, err);

    status = status != STK_OK ? status : pl_take_dims(call->command, dims, &count, err);
    status = status != STK_OK ? status : pl_take_end(call->command, err);
    if (status != STK_OK)
        return status;
    const int *which = count ? dims : NULL;
    if (strcmp(name, "sum") == 0)
        return stk_tensor_sum(call->in, count, which, keep, dtype, &call->out, err);
    if (strcmp(name, "mean") == 0)
        status = stk_tensor_mean(call->in, count, which, keep, dtype, &call->out, err);
    else if (strcmp(name, "amin") == 0)
        status = stk_tensor_amin(call->in, count, which, keep, &call->out, err);
    else
        status = stk_tensor_amax(call->in, count, which, keep, &call->out, err);
    if (status == STK_E_BAD_DTYPE)
        snprintf(call->remark, sizeof call->remark,
                 "a mean of integers is rarely an integer: convert first (to f32) or name a dtype (mean dtype=f32)");
    return status;
}

static stk_status op_matmul(struct pl_call *call, stk_error *err)
{
    stk_operand other;
    stk_status status = take_operand(call, &other, err);

    status = status != STK_OK ? status : pl_take_end(call->command, err);
    if (status == STK_OK && !other.tensor)
        return stki_fail(err, STK_E_CONFIG, "matmul: expected the name of a tensor");
    if (status == STK_OK && call->in->ndim > 0 && other.tensor->ndim > 0) {
        int64_t shape[2] = {stk_tensor_numel(call->in), stk_tensor_numel(other.tensor)};
        shape[0] /= call->in->shape[call->in->ndim - 1] > 0 ? call->in->shape[call->in->ndim - 1] : 1;
        shape[1] /= other.tensor->ndim > 1 && other.tensor->shape[other.tensor->ndim - 2] > 0
                        ? other.tensor->shape[other.tensor->ndim - 2]
                        : 1;
        status = pl_afford("matmul", call->in->dtype, 2, shape, err);
    }
    status = status != STK_OK ? status : stk_tensor_matmul(call->in, other.tensor, &call->out, err);
    if (status == STK_E_BAD_SHAPE)
        snprintf(call->remark, sizeof call->remark,
                 "the last axis on the left (%s) must be as long as the second to last on the right (%s)",
                 PL_SHAPE(call->in->ndim, call->in->shape), PL_SHAPE(other.tensor->ndim, other.tensor->shape));
    return status;
}

const struct pl_op pl_compute_ops[] = {
    {"contiguous", "", "row-major; the tensor itself if it already is", true, op_contiguous},
    {"clone", "", "a row-major copy, always in new memory", true, op_contiguous},
    {"channels_last", "", "N, C, H, W over memory in the order N, H, W, C", true, op_channels_last},
    {"to", "DTYPE", "another dtype: f32, f16, bf16, u8, i64, …", true, op_to},
    {"add", "NUMBER|NAME", "adds a number, or a tensor, which is broadcast", true, op_binary},
    {"sub", "NUMBER|NAME", "", true, op_binary},
    {"mul", "NUMBER|NAME", "", true, op_binary},
    {"div", "NUMBER|NAME", "", true, op_binary},
    {"add_", "NUMBER|NAME", "in place, so that all views of the memory change", true, op_binary},
    {"sub_", "NUMBER|NAME", "", true, op_binary},
    {"mul_", "NUMBER|NAME", "", true, op_binary},
    {"div_", "NUMBER|NAME", "", true, op_binary},
    {"fill_", "VALUE", "one value everywhere", true, op_fill},
    {"zero_", "", "", true, op_fill},
    {"sum", "[DIM…] [keepdim] [DTYPE]", "over these axes, or all", true, op_reduce},
    {"mean", "[DIM…] [keepdim] [DTYPE]", "", true, op_reduce},
    {"amin", "[DIM…] [keepdim]", "", true, op_reduce},
    {"amax", "[DIM…] [keepdim]", "", true, op_reduce},
    {"matmul", "NAME", "matrix product", true, op_matmul},
    {NULL, NULL, NULL, false, NULL},
};
