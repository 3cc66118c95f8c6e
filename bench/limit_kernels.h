/* limit_kernels.h: plain loops, written without the library, for comparison: copies, and conversions of an image's
 * bytes to planes with one multiply-add. They are compiled for this machine (-march=native), so they show what a
 * careful program achieves with a compiler and a few intrinsics. Loops with non-temporal stores end with a store fence.
 */
#ifndef STKB_LIMIT_KERNELS_H
#define STKB_LIMIT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

void limit_copy_streaming(void *dst, const void *src, size_t bytes);
void limit_copy_plain(void *dst, const void *src, size_t bytes); /* vector loads and stores, both 64-byte aligned */
void limit_fetch(const void *src, size_t bytes);                 /* one prefetch per cache line */
uint64_t limit_read(const void *src, size_t bytes);
void limit_write_plain(void *dst, size_t bytes, int value);
void limit_write_streaming(void *dst, size_t bytes, int value);

/* Convert `pixels` pixels of three interleaved bytes to three consecutive planes. */
void limit_norm_simple(float *dst, const uint8_t *src, size_t pixels);
void limit_norm_blocked(float *dst, const uint8_t *src, size_t pixels);
void limit_norm_blocked_streaming(float *dst, const uint8_t *src, size_t pixels);
void limit_half_blocked(uint16_t *dst, const uint8_t *src, size_t pixels);
void limit_quant_blocked(int8_t *dst, const uint8_t *src, size_t pixels);
void limit_tokens(int64_t *dst, const uint16_t *src, size_t count);

/* Convert rows to f32, with one multiply-add. */
void limit_row_u16(float *dst, const uint16_t *src, size_t count);
void limit_row_i32(float *dst, const int32_t *src, size_t count);
void limit_row_i64(float *dst, const int64_t *src, size_t count);
void limit_row_f32(float *dst, const float *src, size_t count);
void limit_row_f64(float *dst, const double *src, size_t count);

extern const float limit_a[3], limit_b[3];

#endif
