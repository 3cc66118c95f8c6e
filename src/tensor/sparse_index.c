/* sparse_index.c: the index arrays of sparse tensors: conversion from and to int64, checks, sorting; and memory use. */
#include "allocate.h"
#include "cast.h"
#include "checked.h"
#include "device_table.h"
#include "dtype.h"
#include "error.h"
#include "sparse_internal.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <string.h>

/* ---- checks ---- */

stk_status stki_sparse_check_index_dtype(stk_dtype dtype, stk_error *err)
{
    if (dtype == STK_I32 || dtype == STK_I64)
        return STK_OK;
    return stki_fail(err, STK_E_BAD_DTYPE, "the indices of a sparse tensor are %s, but must be i32 or i64",
                     stk_dtype_name(dtype));
}

static stk_status check_host(const stk_tensor *tensor, stk_error *err)
{
    const stk_device *device = stki_tensor_device(tensor);

    if (device->host_memory)
        return STK_OK;
    return stki_fail(err, STK_E_UNSUPPORTED, "sparse tensors must be in CPU memory, not on %s", device->name);
}

stk_status stki_sparse_check_values(const stk_tensor *values, stk_error *err)
{
    stk_status status = stki_dtype_check(values->dtype, err);

    if (status != STK_OK)
        return status;
    if (stki_dtype_category(values->dtype) == STKI_CATEGORY_COMPLEX)
        return stki_fail(err, STK_E_BAD_DTYPE,
                         "the values of a sparse tensor are %s, but must be real, integer or bool",
                         stk_dtype_name(values->dtype));
    return check_host(values, err);
}

stk_status stki_indices_check(const int64_t *indices, int64_t count, int64_t size, const char *what, stk_error *err)
{
    for (int64_t i = 0; i < count; i++)
        if (indices[i] < 0 || indices[i] >= size)
            return stki_fail(err, STK_E_BAD_INDEX, "entry %" PRId64 ": %s %" PRId64 " is outside [0, %" PRId64 ")", i,
                             what, indices[i], size);
    return STK_OK;
}

/* ---- load and store ---- */

stk_status stki_indices_load(const stk_tensor *indices, int64_t **out, stk_error *err)
{
    int64_t row[STK_MAX_DIMS], bytes;
    stk_status status = stki_sparse_check_index_dtype(indices->dtype, err);

    status = status != STK_OK ? status : check_host(indices, err);
    status = status != STK_OK ? status : stki_row_major(STK_I64, indices->ndim, indices->shape, row, &bytes, err);
    if (status != STK_OK)
        return status;
    *out = stki_zalloc(bytes);
    if (!*out)
        return stki_fail_memory(err, bytes, "indices");
    stki_copy_strided(*out, STK_I64, row, indices->data, indices->dtype, indices->strides,
                      (indices->flags & STK_TENSOR_SWAPPED) != 0, indices->ndim, indices->shape);
    return STK_OK;
}

stk_status stki_indices_store(const int64_t *indices, int ndim, const int64_t *shape, stk_dtype dtype, stk_tensor *out,
                              stk_error *err)
{
    stk_tensor made;
    stki_cast cast;
    int64_t count;
    stk_status status = stki_sparse_check_index_dtype(dtype, err);

    status = status != STK_OK ? status : stk_tensor_empty(dtype, ndim, shape, NULL, &made, err);
    if (status != STK_OK)
        return status;
    count = stk_tensor_numel(&made);
    for (int64_t i = 0; dtype == STK_I32 && i < count; i++)
        if (indices[i] > INT32_MAX) {
            stk_tensor_release(&made);
            return stki_fail(err, STK_E_BAD_VALUE, "index %" PRId64 " does not fit in i32", indices[i]);
        }
    stki_cast_init(&cast, dtype, STK_I64, false);
    stki_cast_row(&cast, made.data, stk_dtype_size(dtype), indices, sizeof *indices, count);
    *out = made;
    return STK_OK;
}

/* ---- order ---- */

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* One pass of a stable radix sort: sorts the entries of `from` by DIGIT_BITS bits of their key into `to`. */
static void sort_by_digit(const int64_t *keys, int shift, const int64_t *from, int64_t *to, int64_t count)
{
    int64_t starts[DIGITS] = {0}, sum = 0;

    for (int64_t k = 0; k < count; k++)
        starts[keys[k] >> shift & (DIGITS - 1)]++;
    for (int digit = 0; digit < DIGITS; digit++) {
        int64_t here = starts[digit];
        starts[digit] = sum;
        sum += here;
    }
    for (int64_t k = 0; k < count; k++)
        to[starts[keys[from[k]] >> shift & (DIGITS - 1)]++] = from[k];
}

void stki_sparse_order(const int64_t *indices, int axes, const int64_t *shape, int64_t count, int64_t *order,
                       int64_t *spare)
{
    int64_t *from = order, *to = spare;

    for (int64_t k = 0; k < count; k++)
        order[k] = k;
    for (int axis = axes - 1; axis >= 0; axis--)
        for (int shift = 0; shift < 63 && shape[axis] > 1 && (shape[axis] - 1) >> shift > 0; shift += DIGIT_BITS) {
            int64_t *swap = from;
            sort_by_digit(indices + axis * count, shift, from, to, count);
            from = to;
            to = swap;
        }
    if (from != order && count > 0)
        memcpy(order, from, (size_t)count * sizeof *order);
}

/* ---- sums ---- */

stk_dtype stki_sparse_wide(stk_dtype dtype)
{
    if (dtype == STK_F64 || dtype == STK_U64)
        return dtype;
    return stki_dtype_category(dtype) == STKI_CATEGORY_REAL ? STK_F32 : STK_I64;
}

/* ---- memory use ---- */

int64_t stk_coo_bytes(const stk_coo *coo)
{
    return stk_tensor_nbytes(&coo->indices) + stk_tensor_nbytes(&coo->values);
}

int64_t stk_csr_bytes(const stk_csr *csr)
{
    return stk_tensor_nbytes(&csr->row_starts) + stk_tensor_nbytes(&csr->columns) + stk_tensor_nbytes(&csr->values);
}

/* The maximum number of entries for which `fixed` bytes plus `each` bytes per entry are fewer than `dense` bytes. */
static int64_t worth(int64_t dense, int64_t fixed, int64_t each)
{
    return dense > fixed && each > 0 ? (dense - fixed - 1) / each : 0;
}

int64_t stk_coo_worth(int ndim, int64_t elements, stk_dtype index_dtype, stk_dtype dtype)
{
    int64_t value = stk_dtype_size(dtype), dense;

    if (ndim < 0 || elements < 0 || !stki_mul(elements, value, &dense))
        return 0;
    return worth(dense, 0, ndim * stk_dtype_size(index_dtype) + value);
}

int64_t stk_csr_worth(int64_t rows, int64_t columns, stk_dtype index_dtype, stk_dtype dtype)
{
    int64_t value = stk_dtype_size(dtype), index = stk_dtype_size(index_dtype), dense, fixed;

    if (rows < 0 || columns < 0 || !stki_mul(rows, columns, &dense) || !stki_mul(dense, value, &dense) ||
        !stki_add(rows, 1, &fixed) || !stki_mul(fixed, index, &fixed))
        return 0;
    return worth(dense, fixed, index + value);
}
