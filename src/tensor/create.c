/* create.c: tensors from constants and ranges, and over existing memory. Numbers are computed in double or int64, one
 * block at a time, and cast like any other row, so that all dtypes follow the same rules. */
#include "cast.h"
#include "dtype.h"
#include "element.h"
#include "error.h"
#include "profile_scope.h"
#include "record.h"
#include "stage.h"
#include "storage.h"
#include "tensor_internal.h"
#include "transfer.h"
#include "wrap.h"
#include <inttypes.h>
#include <math.h>
#include <stoker/create.h>

enum { BLOCK = 512 };

stk_status stk_tensor_full(stk_dtype dtype, int ndim, const int64_t *shape, stk_scalar value, stk_device *device,
                           stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("full");
    stk_tensor made;
    stki_element element;
    stk_status status = stki_dtype_check(dtype, err);

    status = status != STK_OK ? status : stki_element_from_scalar(dtype, value, &element, err);
    status = status != STK_OK ? status : stk_tensor_empty(dtype, ndim, shape, device, &made, err);
    if (status != STK_OK)
        return status;
    status = stki_tensor_fill_element(&made, &element, err);
    if (status != STK_OK) {
        stk_tensor_release(&made);
        return status;
    }
    *out = made;
    return STK_OK;
}

stk_status stk_tensor_ones(stk_dtype dtype, int ndim, const int64_t *shape, stk_device *device, stk_tensor *out,
                           stk_error *err)
{
    STKI_PROFILE("ones");
    return stk_tensor_full(dtype, ndim, shape, stk_int(1), device, out, err);
}

/* ---- sequences ---- */

stk_status stki_tensor_of_sequence(stk_dtype dtype, int ndim, const int64_t *shape, stk_dtype own,
                                   stki_sequence_fn next, const void *context, stk_device *device, stk_tensor *out,
                                   stk_error *err)
{
    int64_t block[BLOCK], size = stk_dtype_size(dtype), count;
    stki_stage stage;
    stki_cast cast;
    stk_tensor made;
    stk_status status = stk_tensor_empty(dtype, ndim, shape, device, &made, err);

    if (status != STK_OK)
        return status;
    count = stk_tensor_numel(&made);
    status = stki_stage_begin_write(&stage, &made, err);
    if (status == STK_OK) {
        stki_cast_init(&cast, dtype, own, false);
        for (int64_t done = 0; done < count; done += BLOCK) {
            int64_t n = count - done < BLOCK ? count - done : BLOCK;
            next(context, done, n, block);
            stki_cast_row(&cast, (char *)stage.host.data + done * size, size, block, 8, n);
        }
        status = stki_stage_commit(&stage, err);
        stki_stage_end(&stage);
    }
    if (status != STK_OK) {
        stk_tensor_release(&made);
        return status;
    }
    *out = made;
    return STK_OK;
}

struct whole_range {
    int64_t start, step;
};

static void whole_range_next(const void *context, int64_t first, int64_t count, void *out)
{
    const struct whole_range *range = context;
    int64_t *to = out;

    for (int64_t i = 0; i < count; i++) /* unsigned, because the last values may wrap if `start` was truncated */
        to[i] = (int64_t)((uint64_t)range->start + (uint64_t)(first + i) * (uint64_t)range->step);
}

struct real_range {
    double start, step;
};

static void real_range_next(const void *context, int64_t first, int64_t count, void *out)
{
    const struct real_range *range = context;
    double *to = out;

    for (int64_t i = 0; i < count; i++)
        to[i] = range->start + (double)(first + i) * range->step;
}

/* The number of elements, exact for integers, otherwise computed in double. -1: the step leads away from the end, or a
 * value is not finite. */
static double range_count(stk_scalar start, stk_scalar end, stk_scalar step)
{
    double a = stki_scalar_to_double(start), b = stki_scalar_to_double(end), s = stki_scalar_to_double(step);

    if (s == 0 || !isfinite(a) || !isfinite(b) || !isfinite(s) || (b - a) * s < 0)
        return -1;
    if (stki_scalar_is_whole(start) && stki_scalar_is_whole(end) && stki_scalar_is_whole(step)) {
        long double steps = ((long double)b - (long double)a) / (long double)s;
        return (double)ceill(steps);
    }
    return ceil((b - a) / s);
}

/* Truncates to int64 and saturates. */
static int64_t whole_of(stk_scalar value)
{
    stki_element element = stki_element_cast(STK_I64, value);
    return stki_element_to_scalar(STK_I64, element.bytes).as.i;
}

stk_status stk_tensor_arange(stk_dtype dtype, stk_scalar start, stk_scalar end, stk_scalar step, stk_device *device,
                             stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("arange");
    double count = range_count(start, end, step);
    stk_status status = stki_dtype_check(dtype, err);

    if (status != STK_OK)
        return status;
    if (count < 0)
        return stki_fail(err, STK_E_BAD_ARG, "arange: invalid range: from %g to %g in steps of %g",
                         stki_scalar_to_double(start), stki_scalar_to_double(end), stki_scalar_to_double(step));
    if (count > 0x1p62)
        return stki_fail(err, STK_E_BAD_SHAPE, "arange: %g elements are too many", count);
    if (stki_dtype_category(dtype) == STKI_CATEGORY_WHOLE) {
        struct whole_range range = {whole_of(start), whole_of(step)};
        return stki_tensor_of_sequence(dtype, 1, &(int64_t){(int64_t)count}, STK_I64, whole_range_next, &range, device,
                                       out, err);
    } else {
        struct real_range range = {stki_scalar_to_double(start), stki_scalar_to_double(step)};
        return stki_tensor_of_sequence(dtype, 1, &(int64_t){(int64_t)count}, STK_F64, real_range_next, &range, device,
                                       out, err);
    }
}

struct line {
    double start, end, step;
    int64_t count;
};

static void line_next(const void *context, int64_t first, int64_t count, void *out)
{
    const struct line *line = context;
    double *to = out;

    for (int64_t i = 0; i < count; i++)
        to[i] =
            first + i == line->count - 1 && first + i > 0 ? line->end : line->start + (double)(first + i) * line->step;
}

stk_status stk_tensor_linspace(stk_dtype dtype, double start, double end, int64_t count, stk_device *device,
                               stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("linspace");
    struct line line = {start, end, count > 1 ? (end - start) / (double)(count - 1) : 0, count};
    stk_status status = stki_dtype_check(dtype, err);

    if (status != STK_OK)
        return status;
    if (count < 0)
        return stki_fail(err, STK_E_BAD_ARG, "linspace: %" PRId64 " elements", count);
    return stki_tensor_of_sequence(dtype, 1, &count, STK_F64, line_next, &line, device, out, err);
}

stk_status stk_tensor_eye(stk_dtype dtype, int64_t rows, int64_t columns, stk_device *device, stk_tensor *out,
                          stk_error *err)
{
    STKI_PROFILE("eye");
    stk_tensor made, diagonal;
    stk_status status = stk_tensor_zeros(dtype, 2, (int64_t[]){rows, columns}, device, &made, err);

    if (status != STK_OK)
        return status;
    status = stk_tensor_diagonal(&made, 0, 0, 1, &diagonal, err);
    status = status != STK_OK ? status : stk_tensor_fill(&diagonal, stk_int(1), err);
    stk_tensor_release(&diagonal);
    if (status != STK_OK) {
        stk_tensor_release(&made);
        return status;
    }
    *out = made;
    return STK_OK;
}

/* ---- over existing memory ---- */

static void nothing(void *context)
{
    (void)context;
}

stk_status stk_tensor_wrap(void *data, stk_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides,
                           void (*free_fn)(void *context), void *context, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("wrap");
    stk_tensor made;
    int64_t low, high;
    stk_storage *storage;
    stk_status status = stk_tensor_borrow(data, dtype, ndim, shape, strides, &made, err);

    status = status != STK_OK ? status : stki_byte_span(dtype, ndim, made.shape, made.strides, &low, &high, err);
    if (status != STK_OK)
        return status;
    if (low < 0)
        return stki_fail(err, STK_E_BAD_STRIDE, "wrap: the strides reach %" PRId64 " bytes below `data`", -low);
    status = stk_storage_wrap(NULL, data, high, free_fn ? free_fn : nothing, context, &storage, err);
    if (status != STK_OK)
        return status;
    made.storage = storage;
    if (stki_watched())
        stki_record_holder(&made);
    *out = made;
    return STK_OK;
}

stk_status stk_tensor_from_buffer(void *buffer, int64_t buffer_bytes, stk_dtype dtype, int64_t count, int64_t offset,
                                  void (*free_fn)(void *context), void *context, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("from_buffer");
    int64_t size = stk_dtype_size(dtype), rest;

    if (size == 0)
        return stki_fail(err, STK_E_BAD_DTYPE, "invalid dtype %d", (int)dtype);
    if (offset < 0 || offset >= buffer_bytes)
        return stki_fail(err, STK_E_BAD_ARG, "offset %" PRId64 " is outside a buffer of %" PRId64 " bytes", offset,
                         buffer_bytes);
    rest = buffer_bytes - offset;
    if (count == -1 && rest % size)
        return stki_fail(err, STK_E_BAD_ARG, "%" PRId64 " bytes are not a multiple of the size of a %s element", rest,
                         stk_dtype_name(dtype));
    count = count == -1 ? rest / size : count;
    if (count < 0 || count > rest / size)
        return stki_fail(err, STK_E_BAD_ARG, "%" PRId64 " %s elements do not fit in %" PRId64 " bytes", count,
                         stk_dtype_name(dtype), rest);
    if (!free_fn)
        return stk_tensor_borrow(stki_address(buffer, offset), dtype, 1, &count, NULL, out, err);
    return stk_tensor_wrap(stki_address(buffer, offset), dtype, 1, &count, NULL, free_fn, context, out, err);
}

stk_status stk_tensor_from_array(stk_dtype dtype, const void *data, int64_t data_bytes, int ndim, const int64_t *shape,
                                 stk_device *device, stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("from_array");
    stk_tensor made;
    int64_t bytes;
    stk_status status = stki_row_major(dtype, ndim, shape, NULL, &bytes, err);

    if (status != STK_OK)
        return status;
    if (bytes != data_bytes)
        return stki_fail(err, STK_E_BAD_SHAPE, "shape %s of %s takes %" PRId64 " bytes, not %" PRId64,
                         STKI_SHAPE(ndim, shape), stk_dtype_name(dtype), bytes, data_bytes);
    status = stk_tensor_empty(dtype, ndim, shape, device, &made, err);
    if (status != STK_OK)
        return status;
    status = stki_device_copy_now(made.device, made.data, true, data, false, bytes, err);
    if (status != STK_OK) {
        stk_tensor_release(&made);
        return status;
    }
    *out = made;
    return STK_OK;
}

stk_status stk_tensor_to_bytes(const stk_tensor *tensor, void *out, int64_t bytes, stk_error *err)
{
    STKI_PROFILE("to_bytes");
    stk_tensor flat;
    stk_status status;

    if (bytes != stk_tensor_nbytes(tensor))
        return stki_fail(err, STK_E_BAD_ARG, "the buffer has %" PRId64 " bytes, but the tensor has %" PRId64, bytes,
                         stk_tensor_nbytes(tensor));
    status = stk_tensor_borrow(out, tensor->dtype, tensor->ndim, tensor->shape, NULL, &flat, err);
    return status != STK_OK ? status : stki_tensor_transfer(&flat, tensor, err);
}
