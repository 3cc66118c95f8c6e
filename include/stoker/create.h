/* create.h: creating tensors from constants, ranges, random numbers and existing memory. Newly allocated tensors are
 * row-major, 64-byte aligned and on `device` (NULL: the CPU). Ownership and common errors are as in tensor.h. Any
 * thread may call these functions.
 */
#ifndef STOKER_CREATE_H
#define STOKER_CREATE_H

#include <stoker/scalar.h>
#include <stoker/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* STK_SHAPE(2, 3) stands for the two arguments `ndim, shape` of every function that takes a shape:
 *     stk_tensor_zeros(STK_F32, STK_SHAPE(2, 3), NULL, &t, &err);
 * STK_INDEX(1, -1) does the same for functions that take an index. STK_VALUES(float, 1, 2, 3) stands for `dtype, data,
 * data_bytes` of stk_tensor_from_array. They are compound literals, which are valid until the end of the enclosing
 * block and do not exist in C++. */
#ifndef __cplusplus
#define STK_SHAPE(...) (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), ((const int64_t[]){__VA_ARGS__})
#define STK_INDEX STK_SHAPE
#define STK_VALUES(type, ...) STK_DTYPE_OF(type), ((const type[]){__VA_ARGS__}), (int64_t)sizeof((type[]){__VA_ARGS__})
#define STK_DTYPE_OF(type)       \
    _Generic((type){0}, bool     \
             : STK_BOOL, uint8_t \
             : STK_U8, int8_t    \
             : STK_I8, uint16_t  \
             : STK_U16, int16_t  \
             : STK_I16, uint32_t \
             : STK_U32, int32_t  \
             : STK_I32, uint64_t \
             : STK_U64, int64_t  \
             : STK_I64, float    \
             : STK_F32, double   \
             : STK_F64)
#endif

/* ---- constants and ranges ---- */

STK_API stk_status stk_tensor_ones(stk_dtype dtype, int ndim, const int64_t *shape, stk_device *device, stk_tensor *out,
                                   stk_error *err);
/* A tensor in which every element is `value`. STK_E_BAD_VALUE: `value` does not fit the dtype (see stk_tensor_fill). */
STK_API stk_status stk_tensor_full(stk_dtype dtype, int ndim, const int64_t *shape, stk_scalar value,
                                   stk_device *device, stk_tensor *out, stk_error *err);
/* A vector of start, start + step, … up to but excluding end. For an integer dtype, start and step are truncated after
 * the number of elements has been computed. STK_E_BAD_ARG: step is 0 or points away from end, or a number is not
 * finite. */
STK_API stk_status stk_tensor_arange(stk_dtype dtype, stk_scalar start, stk_scalar end, stk_scalar step,
                                     stk_device *device, stk_tensor *out, stk_error *err);
/* A vector of `count` evenly spaced numbers, the first exactly start and the last exactly end (count 1: only start).
 * For an integer dtype, the numbers are truncated. STK_E_BAD_ARG: count is negative. */
STK_API stk_status stk_tensor_linspace(stk_dtype dtype, double start, double end, int64_t count, stk_device *device,
                                       stk_tensor *out, stk_error *err);
/* A matrix with 1 on the main diagonal and 0 elsewhere. */
STK_API stk_status stk_tensor_eye(stk_dtype dtype, int64_t rows, int64_t columns, stk_device *device, stk_tensor *out,
                                  stk_error *err);

/* ---- random numbers ---- */

/* rand is uniform in [0, 1); randn is normal with mean 0 and standard deviation 1. Element n in row-major order is a
 * pure function of seed, n and dtype (Philox4x32-10; docs/reference/tensor.md): the bits are the same on every machine
 * and device. STK_E_BAD_DTYPE: the dtype is not real. */
STK_API stk_status stk_tensor_rand(stk_dtype dtype, int ndim, const int64_t *shape, uint64_t seed, stk_device *device,
                                   stk_tensor *out, stk_error *err);
STK_API stk_status stk_tensor_randn(stk_dtype dtype, int ndim, const int64_t *shape, uint64_t seed, stk_device *device,
                                    stk_tensor *out, stk_error *err);

/* ---- existing memory ---- */

/* A CPU tensor that takes ownership of the caller's memory without copying it. `free_fn(context)` is called once, by
 * the thread that releases the last view; free_fn may be NULL. On failure the caller keeps the memory and free_fn is
 * not called. Strides are in bytes (NULL: row-major). The memory may have any alignment. STK_E_BAD_STRIDE: an element
 * would lie below `data`; to reverse an axis, use stk_tensor_flip. */
STK_API stk_status stk_tensor_wrap(void *data, stk_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides,
                                   void (*free_fn)(void *context), void *context, stk_tensor *out, stk_error *err);
/* A CPU vector of `count` elements starting at byte `offset` of the buffer, like NumPy's frombuffer. The memory is used
 * without a copy and may have any alignment. count -1: as many as the remaining bytes hold. free_fn is used as in
 * stk_tensor_wrap; if it is NULL, the tensor is borrowed. STK_E_BAD_ARG: the offset or the elements are outside the
 * buffer, or, with count -1, the remaining bytes are not a multiple of the element size. */
STK_API stk_status stk_tensor_from_buffer(void *buffer, int64_t buffer_bytes, stk_dtype dtype, int64_t count,
                                          int64_t offset, void (*free_fn)(void *context), void *context,
                                          stk_tensor *out, stk_error *err);
/* Copies `data_bytes` bytes of row-major elements in native byte order. STK_E_BAD_SHAPE: a tensor of this shape does
 * not have that many bytes.
 *     stk_tensor_from_array(STK_VALUES(float, 1, 2, 3, 4, 5, 6), STK_SHAPE(2, 3), NULL, &t, &err); */
STK_API stk_status stk_tensor_from_array(stk_dtype dtype, const void *data, int64_t data_bytes, int ndim,
                                         const int64_t *shape, stk_device *device, stk_tensor *out, stk_error *err);
/* Copies the elements to `out`, in row-major order and native byte order. The tensor may have any strides and be on any
 * device. STK_E_BAD_ARG: `bytes` differs from stk_tensor_nbytes(tensor). */
STK_API stk_status stk_tensor_to_bytes(const stk_tensor *tensor, void *out, int64_t bytes, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
