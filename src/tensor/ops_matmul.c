/* ops_matmul.c: matrix products of tensors: the shape of the result, and one product for each index of the batch axes
 * (all but the last two). */
#include "error.h"
#include "ops_frame.h"
#include "ops_gemm.h"
#include "ops_promote.h"
#include "profile_scope.h"
#include "strided.h"
#include "tensor_internal.h"
#include <inttypes.h>

/* One product. */
struct call {
    int batch_ndim;
    int64_t batch[STK_MAX_DIMS];
    int64_t rows, columns, depth;
    int ndim;
    int64_t shape[STK_MAX_DIMS]; /* shape of the result */
};

/* ---- shapes ---- */

static int batch_axes(const stk_tensor *tensor)
{
    return tensor->ndim > 2 ? tensor->ndim - 2 : 0;
}

static stk_status check_operands(const stk_tensor *a, const stk_tensor *b, stk_error *err)
{
    stk_status status = stki_check_computable(a, "matmul", err);

    status = status != STK_OK ? status : stki_check_computable(b, "matmul", err);
    if (status != STK_OK)
        return status;
    if (a->ndim == 0 || b->ndim == 0)
        return stki_fail(err, STK_E_BAD_DIM, "matmul: an operand is a scalar");
    status = stki_check_one_device((const stk_tensor *const[]){a, b}, 2, err);
    if (status != STK_OK)
        return status;
    if (a->dtype != b->dtype)
        return stki_fail(err, STK_E_BAD_DTYPE, "matmul: the operands are %s and %s; convert one of them first",
                         stk_dtype_name(a->dtype), stk_dtype_name(b->dtype));
    return STK_OK;
}

static stk_status begin_call(struct call *call, const stk_tensor *a, const stk_tensor *b, stk_error *err)
{
    stk_status status = check_operands(a, b, err);

    if (status != STK_OK)
        return status;
    call->rows = a->ndim > 1 ? a->shape[a->ndim - 2] : 1;
    call->depth = a->shape[a->ndim - 1];
    call->columns = b->ndim > 1 ? b->shape[b->ndim - 1] : 1;
    if (b->shape[b->ndim > 1 ? b->ndim - 2 : 0] != call->depth)
        return stki_fail(err, STK_E_BAD_SHAPE,
                         "matmul: shapes %s and %s: %" PRId64 " columns and %" PRId64 " rows do not match",
                         STKI_SHAPE(a->ndim, a->shape), STKI_SHAPE(b->ndim, b->shape), call->depth,
                         b->shape[b->ndim > 1 ? b->ndim - 2 : 0]);
    status =
        stki_broadcast_shape(batch_axes(a), a->shape, batch_axes(b), b->shape, &call->batch_ndim, call->batch, err);
    if (status != STK_OK)
        return status;
    call->ndim = call->batch_ndim;
    for (int i = 0; i < call->batch_ndim; i++)
        call->shape[i] = call->batch[i];
    if (a->ndim > 1)
        call->shape[call->ndim++] = call->rows;
    if (b->ndim > 1)
        call->shape[call->ndim++] = call->columns;
    return STK_OK;
}

/* ---- running ---- */

/* Strides over the batch axes; 0 where the tensor is broadcast. */
static void batch_strides(const struct call *call, const stk_tensor *tensor, int axes, int64_t *strides)
{
    int lead = call->batch_ndim - axes;

    for (int i = 0; i < call->batch_ndim; i++)
        strides[i] = i >= lead && tensor->shape[i - lead] > 1 ? tensor->strides[i - lead] : 0;
}

static stki_matrix matrix_of(const stk_tensor *tensor, bool is_column)
{
    int last = tensor->ndim - 1;

    if (tensor->ndim == 1)
        return is_column ? (stki_matrix){NULL, tensor->strides[0], 0} : (stki_matrix){NULL, 0, tensor->strides[0]};
    return (stki_matrix){NULL, tensor->strides[last - 1], tensor->strides[last]};
}

/* If an operand is a vector, the result lacks the corresponding axis. */
static stki_matrix result_matrix(const struct call *call, const stk_tensor *out, const stk_tensor *a,
                                 const stk_tensor *b)
{
    stki_matrix matrix = {0};
    int at = call->batch_ndim;

    if (a->ndim > 1)
        matrix.row_stride = out->strides[at++];
    if (b->ndim > 1)
        matrix.column_stride = out->strides[at];
    return matrix;
}

/* Batches that form one taller matrix and are multiplied by the same matrix are computed as one product. */
static void join_rows(stki_strided *plan, stki_gemm *gemm, const stki_matrix *c, const stki_matrix *a)
{
    if (plan->ndim != 1 || plan->strides[2][0] != 0 || plan->strides[0][0] != gemm->rows * c->row_stride ||
        plan->strides[1][0] != gemm->rows * a->row_stride)
        return;
    gemm->rows *= plan->shape[0];
    plan->shape[0] = 1;
}

static stk_status run_call(void *context, const stk_tensor *const *tensors, stk_error *err)
{
    const struct call *call = context;
    const stk_tensor *out = tensors[0], *a = tensors[1], *b = tensors[2];
    stki_matrix c_matrix = result_matrix(call, out, a, b), a_matrix = matrix_of(a, false),
                b_matrix = matrix_of(b, true);
    stki_gemm gemm = {.dtype = a->dtype, .rows = call->rows, .columns = call->columns, .depth = call->depth};
    int64_t strides[3][STK_MAX_DIMS];
    stki_strided plan;
    stki_walk walk;
    stk_status status;

    batch_strides(call, out, call->batch_ndim, strides[0]);
    batch_strides(call, a, batch_axes(a), strides[1]);
    batch_strides(call, b, batch_axes(b), strides[2]);
    stki_strided_plan(&plan, 3, (const int64_t *const[]){strides[0], strides[1], strides[2]}, call->batch_ndim,
                      call->batch, STKI_ANY_ORDER);
    join_rows(&plan, &gemm, &c_matrix, &a_matrix);
    if (!stki_walk_begin(&walk, &plan, 0, (const void *const[]){out->data, a->data, b->data}))
        return STK_OK;
    status = stki_gemm_begin(&gemm, err);
    if (status != STK_OK)
        return status;
    do {
        c_matrix.data = walk.at[0];
        a_matrix.data = walk.at[1];
        b_matrix.data = walk.at[2];
        stki_gemm_run(&gemm, c_matrix, a_matrix, b_matrix);
    } while (stki_walk_next(&walk));
    stki_gemm_end(&gemm);
    return STK_OK;
}

static stk_status run_into(struct call *call, const stk_tensor *a, const stk_tensor *b, stk_tensor *out, stk_error *err)
{
    if (stk_tensor_numel(out) == 0)
        return STK_OK;
    if (call->depth == 0) /* empty sums */
        return stk_tensor_zero(out, err);
    return stki_run_on_host((const stk_tensor *const[]){out, a, b}, 3, 1, run_call, call, err);
}

/* ---- calls ---- */

stk_status stk_tensor_matmul(const stk_tensor *a, const stk_tensor *b, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("matmul");
    struct call call;
    stk_tensor made;
    stk_status status = begin_call(&call, a, b, err);

    status = status != STK_OK ? status
                              : stk_tensor_empty(a->dtype, call.ndim, call.shape, stki_tensor_device(a), &made, err);
    if (status != STK_OK)
        return status;
    status = run_into(&call, a, b, &made, err);
    if (status != STK_OK) {
        stk_tensor_release(&made);
        return status;
    }
    *out = made;
    return STK_OK;
}

static stk_status check_output(const struct call *call, const stk_tensor *a, const stk_tensor *b, const stk_tensor *out,
                               stk_error *err)
{
    bool same_shape = out->ndim == call->ndim;

    if (out->dtype != a->dtype)
        return stki_fail(err, STK_E_BAD_DTYPE, "matmul: the product has dtype %s, but the output has dtype %s",
                         stk_dtype_name(a->dtype), stk_dtype_name(out->dtype));
    for (int i = 0; i < call->ndim && same_shape; i++)
        same_shape = out->shape[i] == call->shape[i];
    if (!same_shape)
        return stki_fail(err, STK_E_BAD_SHAPE, "matmul: the product has shape %s, but the output has shape %s",
                         STKI_SHAPE(call->ndim, call->shape), STKI_SHAPE(out->ndim, out->shape));
    if (stki_may_share(out, a) || stki_may_share(out, b))
        return stki_fail(err, STK_E_BAD_OVERLAP, "matmul: the output overlaps an operand");
    stk_status status = stki_check_one_device((const stk_tensor *const[]){a, out}, 2, err);
    return status != STK_OK ? status : stki_check_writable(out, err);
}

stk_status stk_tensor_matmul_into(const stk_tensor *a, const stk_tensor *b, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("matmul_into");
    struct call call;
    stk_status status = begin_call(&call, a, b, err);

    status = status != STK_OK ? status : check_output(&call, a, b, out, err);
    return status != STK_OK ? status : run_into(&call, a, b, out, err);
}
