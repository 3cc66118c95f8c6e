/* tensor_internal.h: functions outside the public header that the files of src/tensor and the readers share. */
#ifndef STKI_TENSOR_INTERNAL_H
#define STKI_TENSOR_INTERNAL_H

#include <stoker/tensor.h>

/* Computes the byte strides and the size of a row-major tensor (each stride is the product of max(size, 1) to its right
 * times the element size). STK_E_BAD_SHAPE: a size is negative, or the number of bytes, with empty axes counted as 1,
 * does not fit in 63 bits; STK_E_UNSUPPORTED: more than STK_MAX_DIMS axes. */
stk_status stki_row_major(stk_dtype dtype, int ndim, const int64_t *shape, int64_t *strides, int64_t *out_bytes,
                          stk_error *err);

/* dst[i…] = cast(src[i…]) over `shape`, any strides (source: 0 allowed), no overlap; docs/reference/tensor.md has the
 * rules of the cast. `src_swapped`: the source's elements are in the opposite byte order. Never fails, because every
 * pair of dtypes is supported. */
void stki_copy_strided(void *dst, stk_dtype dst_dtype, const int64_t *dst_strides, const void *src, stk_dtype src_dtype,
                       const int64_t *src_strides, bool src_swapped, int ndim, const int64_t *shape);

/* Conversions of single values; they define the casts. */
uint16_t stki_f32_to_f16(float x);
float stki_f16_to_f32(uint16_t x);
uint16_t stki_f32_to_bf16(float x);
float stki_bf16_to_f32(uint16_t x);

/* Computes the shape that both broadcast to; fails with STK_E_BAD_BROADCAST if there is none. `shape` has room for
 * STK_MAX_DIMS; it may be one of the inputs. */
stk_status stki_broadcast_shape(int a_ndim, const int64_t *a_shape, int b_ndim, const int64_t *b_shape, int *out_ndim,
                                int64_t *shape, stk_error *err);
/* Computes the byte strides and the size in bytes of a dense tensor in a layout other than KEEP. STK_E_BAD_DIM:
 * channels-last needs four axes. */
stk_status stki_layout_strides(stk_dtype dtype, int ndim, const int64_t *shape, stk_layout layout, int64_t *strides,
                               int64_t *out_bytes, stk_error *err);

/* The device of a tensor, never NULL. */
stk_device *stki_tensor_device(const stk_tensor *tensor);

/* Computes the range of bytes that a tensor's elements occupy: [*out_low, *out_high) relative to its data address; both
 * are 0 if there are no elements. STK_E_BAD_SHAPE: the range does not fit in 63 bits. */
stk_status stki_byte_span(stk_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides, int64_t *out_low,
                          int64_t *out_high, stk_error *err);
/* Whether the tensor covers a block of memory exactly once, with its axes in any order. */
bool stki_tensor_is_dense(const stk_tensor *tensor);

/* Wraps a negative dimension; a tensor without axes accepts 0 and -1. STK_E_BAD_DIM names `what`. */
stk_status stki_wrap_dim(int dim, int ndim, const char *what, int *out, stk_error *err);
/* Sets *out to a view of `base` at `data` with this geometry (strides in bytes) and retains the storage. `out` may be a
 * copy of `base`. */
void stki_view_of(const stk_tensor *base, void *data, int ndim, const int64_t *shape, const int64_t *strides,
                  stk_tensor *out);
/* "[2, 3]", truncated with … if necessary, in a buffer that lives as long as the caller's block. */
#define STKI_SHAPE(ndim, shape) stki_shape_text((char[96]){0}, 96, ndim, shape)
const char *stki_shape_text(char *buffer, int size, int ndim, const int64_t *shape);

/* Creates a tensor with the given byte strides, which must be dense (`bytes` in total). */
stk_status stki_tensor_new(stk_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides, int64_t bytes,
                           stk_device *device, stk_tensor *out, stk_error *err);
/* Like stki_tensor_new, in host memory pinned for `device`. */
stk_status stki_tensor_new_pinned(stk_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides,
                                  int64_t bytes, stk_device *device, stk_tensor *out, stk_error *err);
/* Fills a tensor with one element; arguments are not checked. */
struct stki_element;
stk_status stki_tensor_fill_element(const stk_tensor *tensor, const struct stki_element *element, stk_error *err);
/* Copies elements of `src` to `dst`, which has the same shape; any two dtypes and devices, no overlap. Arguments are
 * not checked. transfer.h has the version with streams. */
stk_status stki_tensor_transfer(const stk_tensor *dst, const stk_tensor *src, stk_error *err);

/* Check a tensor before it is written. STK_E_BAD_ARG: it is read-only. STK_E_UNSUPPORTED: it is in the opposite byte
 * order. stki_check_writable also returns STK_E_BAD_OVERLAP if an axis longer than 1 has stride 0, so that two indices
 * share an address. */
stk_status stki_check_may_fill(const stk_tensor *out, stk_error *err);
stk_status stki_check_writable(const stk_tensor *out, stk_error *err);
/* Fails with STK_E_BAD_OVERLAP if both cover a block of memory exactly once, the blocks overlap, and they are not the
 * same block with the same strides. Like torch, it does not detect other overlaps. */
stk_status stki_check_overlap(const stk_tensor *out, const stk_tensor *in, stk_error *err);

/* Element `first + i` of a sequence for i < count, in its own dtype (STK_I64 or STK_F64). `first` is a multiple of 4.
 */
typedef void (*stki_sequence_fn)(const void *context, int64_t first, int64_t count, void *out);
/* Creates a tensor whose elements, in row-major order, come from a sequence. */
stk_status stki_tensor_of_sequence(stk_dtype dtype, int ndim, const int64_t *shape, stk_dtype own,
                                   stki_sequence_fn next, const void *context, stk_device *device, stk_tensor *out,
                                   stk_error *err);

#endif
