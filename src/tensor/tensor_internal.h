/* tensor_internal.h: what src/tensor's files and the readers share beyond the public header. */
#ifndef STKI_TENSOR_INTERNAL_H
#define STKI_TENSOR_INTERNAL_H

#include <stoker/tensor.h>

/* Shape and byte strides of a row-major tensor (each stride the product of max(size, 1) to its right times the element
 * size). STK_E_BAD_SHAPE: negative size, or the bytes do not fit in 63 bits even with zero axes taken as 1;
 * STK_E_UNSUPPORTED: more than STK_MAX_DIMS axes. */
stk_status stki_row_major(stk_dtype dtype, int ndim, const int64_t *shape, int64_t *strides, int64_t *out_bytes,
                          stk_error *err);

/* dst[i…] = cast(src[i…]) over `shape`, any strides (source: 0 allowed), no overlap; docs/tensor.md has the rules of
 * the cast. `src_swapped`: the source's elements are in the other byte order. Never fails: every pair of dtypes exists.
 */
void stki_copy_strided(void *dst, stk_dtype dst_dtype, const int64_t *dst_strides, const void *src, stk_dtype src_dtype,
                       const int64_t *src_strides, bool src_swapped, int ndim, const int64_t *shape);

/* Single values, the definition of the casts. */
uint16_t stki_f32_to_f16(float x);
float stki_f16_to_f32(uint16_t x);
uint16_t stki_f32_to_bf16(float x);
float stki_bf16_to_f32(uint16_t x);

#endif
