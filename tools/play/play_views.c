/* play_views.c: operations that create views. Only reshape and flatten may have to copy, and then report why. */
#include "error.h"
#include "play_ops.h"
#include "play_why.h"
#include <inttypes.h>
#include <string.h>

static stk_status op_view(struct pl_call *call, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS];
    int ndim;
    stk_status status = pl_take_ints(call->command, "the shape", STK_MAX_DIMS, shape, &ndim, err);

    status = status != STK_OK ? status : pl_take_end(call->command, err);
    if (status != STK_OK)
        return status;
    status = stk_tensor_view(call->in, ndim, shape, &call->out, err);
    if (status != STK_OK)
        pl_why_view(call->in, ndim, shape, status, call->remark, sizeof call->remark);
    return status;
}

/* Explains the copy, if `out` does not share the memory of `in`. */
static void remark_copy(struct pl_call *call)
{
    if (call->out.storage == call->in->storage)
        return;
    pl_why_copied(call->in, &call->out, call->remark, sizeof call->remark);
}

static stk_status op_reshape(struct pl_call *call, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS];
    int ndim;
    stk_status status = pl_take_ints(call->command, "the shape", STK_MAX_DIMS, shape, &ndim, err);

    status = status != STK_OK ? status : pl_take_end(call->command, err);
    status = status != STK_OK ? status : pl_afford("reshape", call->in->dtype, call->in->ndim, call->in->shape, err);
    if (status != STK_OK)
        return status;
    status = stk_tensor_reshape(call->in, ndim, shape, &call->out, err);
    if (status == STK_E_BAD_SHAPE)
        pl_why_count(call->in, ndim, shape, call->remark, sizeof call->remark);
    else if (status == STK_OK)
        remark_copy(call);
    return status;
}

static stk_status op_flatten(struct pl_call *call, stk_error *err)
{
    int dims[STK_MAX_DIMS] = {0}, count;
    stk_status status = pl_take_dims(call->command, dims, &count, err);

    status = status != STK_OK ? status : pl_take_end(call->command, err);
    if (status == STK_OK && count > 2)
        return stki_fail(err, STK_E_CONFIG, "flatten: expected flatten [FIRST [LAST]]");
    status = status != STK_OK ? status : pl_afford("flatten", call->in->dtype, call->in->ndim, call->in->shape, err);
    if (status == STK_OK)
        status = stk_tensor_flatten(call->in, count > 0 ? dims[0] : 0, count > 1 ? dims[1] : -1, &call->out, err);
    if (status == STK_OK)
        remark_copy(call);
    return status;
}

static stk_status op_transpose(struct pl_call *call, stk_error *err)
{
    int dims[STK_MAX_DIMS], count;
    stk_status status = pl_take_dims(call->command, dims, &count, err);

    status = status != STK_OK ? status : pl_take_end(call->command, err);
    if (status != STK_OK)
        return status;
    if (count == 2)
        return stk_tensor_transpose(call->in, dims[0], dims[1], &call->out, err);
    if (count != 0 || call->in->ndim > 2)
        return stki_fail(err, count ? STK_E_CONFIG : STK_E_BAD_DIM,
                         "%s: expected two of the %d axes: transpose DIM DIM", call->command->op, call->in->ndim);
    return call->in->ndim == 2 ? stk_tensor_transpose(call->in, 0, 1, &call->out, err)
                               : stk_tensor_transpose(call->in, 0, 0, &call->out, err);
}

static stk_status op_permute(struct pl_call *call, stk_error *err)
{
    int dims[STK_MAX_DIMS], count;
    stk_status status = pl_take_dims(call->command, dims, &count, err);

    status = status != STK_OK ? status : pl_take_end(call->command, err);
    if (status == STK_OK && count != call->in->ndim)
        return stki_fail(err, STK_E_BAD_DIM, "permute: found %d dimensions, expected all %d of the tensor", count,
                         call->in->ndim);
    return status != STK_OK ? status : stk_tensor_permute(call->in, dims, &call->out, err);
}

/* Rejects dimensions that do not fit in an int, the parameter type of the library's functions. */
static stk_status check_dim(const struct pl_call *call, int64_t dim, stk_error *err)
{
    if (dim >= -STK_MAX_DIMS && dim <= STK_MAX_DIMS)
        return STK_OK;
    return stki_fail(err, STK_E_BAD_DIM, "%s: the tensor has no dimension %" PRId64 "; its number of axes is %d",
                     call->command->op, dim, call->in->ndim);
}

static int64_t size_of_axis(const stk_tensor *tensor, int64_t dim)
{
    return tensor->shape[dim < 0 ? dim + tensor->ndim : dim];
}

/* Reads exactly `wanted` numbers, the first of which is a dimension. */
static stk_status take_dim_and_more(const struct pl_call *call, const char *what, int wanted, const char *usage,
                                    int64_t *numbers, stk_error *err)
{
    int count;
    stk_status status = pl_take_ints(call->command, what, wanted, numbers, &count, err);

    status = status != STK_OK ? status : pl_take_end(call->command, err);
    if (status == STK_OK && count != wanted)
        return stki_fail(err, STK_E_CONFIG, "%s: expected %s", call->command->op, usage);
    return status != STK_OK ? status : check_dim(call, numbers[0], err);
}

static stk_status op_select(struct pl_call *call, stk_error *err)
{
    int64_t numbers[2];
    stk_status status = take_dim_and_more(call, "dimension and index", 2, "select DIM INDEX", numbers, err);

    status = status != STK_OK ? status : stk_tensor_select(call->in, (int)numbers[0], numbers[1], &call->out, err);
    if (status == STK_E_BAD_INDEX)
        pl_why_index(size_of_axis(call->in, numbers[0]), call->remark, sizeof call->remark);
    return status;
}

static stk_status op_narrow(struct pl_call *call, stk_error *err)
{
    int64_t numbers[3];
    stk_status status =
        take_dim_and_more(call, "dimension, start and length", 3, "narrow DIM START LENGTH", numbers, err);

    status = status != STK_OK ? status
                              : stk_tensor_narrow(call->in, (int)numbers[0], numbers[1], numbers[2], &call->out, err);
    if (status == STK_E_BAD_INDEX)
        pl_why_index(size_of_axis(call->in, numbers[0]), call->remark, sizeof call->remark);
    return status;
}

static stk_status op_squeeze(struct pl_call *call, stk_error *err)
{
    int dims[STK_MAX_DIMS], count;
    stk_status status = pl_take_dims(call->command, dims, &count, err);

    status = status != STK_OK ? status : pl_take_end(call->command, err);
    if (status == STK_OK && count > 1)
        return stki_fail(err, STK_E_CONFIG, "squeeze: expected one dimension, or none to remove all axes of size 1");
    if (status != STK_OK)
        return status;
    if (count == 0)
        return stk_tensor_squeeze_all(call->in, &call->out, err);
    status = stk_tensor_squeeze(call->in, dims[0], &call->out, err);
    if (status == STK_OK && call->out.ndim == call->in->ndim && call->in->ndim > 0) {
        int dim = dims[0] < 0 ? dims[0] + call->in->ndim : dims[0];
        snprintf(call->remark, sizeof call->remark,
                 "axis %d has size %" PRId64 ": only axes of size 1 can be removed, so nothing changed", dims[0],
                 call->in->shape[dim]);
    }
    return status;
}

static stk_status op_unsqueeze(struct pl_call *call, stk_error *err)
{
    int64_t dim = 0;
    stk_status status = pl_take_int(call->command, "dimension", &dim, err);

    status = status != STK_OK ? status : pl_take_end(call->command, err);
    if (status == STK_OK && (dim < -64 || dim > 64))
        return stki_fail(err, STK_E_BAD_DIM, "unsqueeze: the result cannot have a dimension %" PRId64, dim);
    return status != STK_OK ? status : stk_tensor_unsqueeze(call->in, (int)dim, &call->out, err);
}

static stk_status op_expand(struct pl_call *call, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS];
    int ndim;
    stk_status status = pl_take_ints(call->command, "the shape", STK_MAX_DIMS, shape, &ndim, err);

    status = status != STK_OK ? status : pl_take_end(call->command, err);
    if (status != STK_OK)
        return status;
    status = stk_tensor_expand(call->in, ndim, shape, &call->out, err);
    if (status != STK_OK)
        pl_why_expand(call->in, ndim, shape, call->remark, sizeof call->remark);
    else if (stk_tensor_numel(&call->out) > stk_tensor_numel(call->in))
        snprintf(call->remark, sizeof call->remark,
                 "a stride of 0 reads the same cells repeatedly: %" PRId64 " elements from %" PRId64 " in memory",
                 stk_tensor_numel(&call->out), stk_tensor_numel(call->in));
    return status;
}

static stk_status op_as_strided(struct pl_call *call, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS], offset = STK_SAME_OFFSET,
                                                        size = stk_dtype_size(call->in->dtype);
    int ndim, stride_count;
    stk_status status = pl_take_group(call->command, "shape and strides", shape, &ndim, err);

    status = status != STK_OK ? status : pl_take_group(call->command, "shape and strides", strides, &stride_count, err);
    if (status == STK_OK && ndim != stride_count)
        return stki_fail(err, STK_E_CONFIG,
                         "as_strided: found %d sizes and %d strides, expected as many strides as sizes", ndim,
                         stride_count);
    if (status == STK_OK && pl_numbers_left(call->command))
        status = pl_take_int(call->command, "offset", &offset, err);
    status = status != STK_OK ? status : pl_take_end(call->command, err);
    if (status != STK_OK)
        return status;
    for (int i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(strides[i], size, &strides[i]))
            return stki_fail(err, STK_E_BAD_STORAGE, "as_strided: stride %d is out of range", i);
    if (offset != STK_SAME_OFFSET && __builtin_mul_overflow(offset, size, &offset))
        return stki_fail(err, STK_E_BAD_STORAGE, "as_strided: the offset is out of range");
    status = stk_tensor_as_strided(call->in, ndim, shape, strides, offset, &call->out, err);
    if (status != STK_OK)
        pl_why_as_strided(call->in, ndim, shape, strides, offset, call->remark, sizeof call->remark);
    return status;
}

static stk_status op_diagonal(struct pl_call *call, stk_error *err)
{
    int64_t numbers[3] = {0, 0, 1};
    int count;
    stk_status status = pl_take_ints(call->command, "offset and dimensions", 3, numbers, &count, err);

    status = status != STK_OK ? status : pl_take_end(call->command, err);
    status = status != STK_OK ? status : check_dim(call, numbers[1], err);
    status = status != STK_OK ? status : check_dim(call, numbers[2], err);
    return status != STK_OK
               ? status
               : stk_tensor_diagonal(call->in, numbers[0], (int)numbers[1], (int)numbers[2], &call->out, err);
}

static stk_status op_flip(struct pl_call *call, stk_error *err)
{
    int dims[STK_MAX_DIMS], count;
    stk_tensor view = *call->in;
    stk_status status = pl_take_dims(call->command, dims, &count, err);

    status = status != STK_OK ? status : pl_take_end(call->command, err);
    if (status == STK_OK && count == 0)
        return stki_fail(err, STK_E_CONFIG, "flip: missing dimension: flip DIM…, such as flip 0");
    stk_tensor_retain(&view);
    for (int i = 0; status == STK_OK && i < count; i++) {
        stk_tensor next;
        status = stk_tensor_flip(&view, dims[i], &next, err);
        if (status == STK_OK) {
            stk_tensor_release(&view);
            view = next;
        }
    }
    if (status != STK_OK)
        stk_tensor_release(&view);
    else
        call->out = view;
    return status;
}

const struct pl_op pl_view_ops[] = {
    {"view", "SHAPE", "another shape for the same memory; one size may be -1", true, op_view},
    {"reshape", "SHAPE", "a view if possible, otherwise a copy", true, op_reshape},
    {"flatten", "[FIRST [LAST]]", "merges these axes; copies if reshape would", true, op_flatten},
    {"transpose", "DIM DIM", "swaps two axes", true, op_transpose},
    {"t", "", "swaps rows and columns", true, op_transpose},
    {"permute", "DIM…", "reorders the axes", true, op_permute},
    {"slice", "INDEX, …", "Python's indexing: slice :, ::2 or [:, ::2]; also 1, ... and None", true, pl_op_slice},
    {"select", "DIM INDEX", "one index of an axis; removes the axis", true, op_select},
    {"narrow", "DIM START LENGTH", "part of an axis", true, op_narrow},
    {"squeeze", "[DIM]", "removes an axis of size 1, or all of them", true, op_squeeze},
    {"unsqueeze", "DIM", "adds an axis of size 1", true, op_unsqueeze},
    {"expand", "SHAPE", "repeats axes of size 1 without new memory; -1 keeps a size", true, op_expand},
    {"as_strided", "(SHAPE) (STRIDES) [OFFSET]", "any view of the storage; strides and offset in elements", true,
     op_as_strided},
    {"diagonal", "[OFFSET [DIM DIM]]", "", true, op_diagonal},
    {"flip", "DIM…", "reverses axes with a negative stride, as in NumPy", true, op_flip},
    {NULL, NULL, NULL, false, NULL},
};
