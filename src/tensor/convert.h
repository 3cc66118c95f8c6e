/* convert.h: the fused pass from a view of a sample to its row in a batch: load, optional multiply-add by channel,
 * round, saturate, store in another dtype and layout. Each byte is read and written once. docs/internals/convert.md
 * defines the result and convert_ref.c implements the definition; the AVX2, AVX-512 and NEON files produce
 * bit-identical results (except NaN payloads). A description is compiled once, which fixes dtypes, geometry,
 * coefficients and variant; the result may be run any number of times, from any number of threads, over different
 * samples. */
#ifndef STKI_CONVERT_H
#define STKI_CONVERT_H

#include "isa.h"
#include <stdbool.h>
#include <stoker/tensor.h>

enum stki_stores { STKI_STORES_AUTO, STKI_STORES_CACHED, STKI_STORES_STREAMING };

typedef struct stki_convert_desc {
    stk_dtype src_dtype, dst_dtype;
    bool src_swapped; /* source elements have the opposite byte order */
    int ndim;         /* axes of one sample, in the order of the destination's logical shape */
    int64_t shape[STK_MAX_DIMS];
    int64_t src_strides[STK_MAX_DIMS]; /* bytes, any sign, may be 0 */
    int64_t dst_strides[STK_MAX_DIMS]; /* bytes; distinct indices must have distinct addresses */
    bool affine;      /* y = fmaf(x, a[c], b[c]) in f32, then store; if false, an exact copy, or a cast between any two
                         dtypes */
    int channel_axis; /* the axis whose index selects the coefficients; -1: one pair for all */
    int64_t channels; /* length of a and b: 1, or shape[channel_axis] */
    const float *a, *b; /* copied by stki_convert_create */
    bool quantized; /* integer destination: clamp(rint(y) + zero_point, qmin, qmax); false: zero_point 0 and the dtype's
                       own range */
    int32_t zero_point, qmin, qmax;
    enum stki_stores stores;
    int64_t bytes_in_flight; /* total size of the ring's slots; `auto` uses streaming stores if it exceeds four fifths
                                of the last-level cache, except with kernels for which ordinary stores are faster */
} stki_convert_desc;

typedef struct stki_convert stki_convert;

/* STK_E_BAD_DTYPE: arithmetic is not supported for these dtypes. It is supported from u8 i8 u16 i16 i32 i64 f16 bf16
 * f32 f64 to u8 i8 i32 f16 bf16 f32. Without arithmetic, all pairs of dtypes are supported. */
stk_status stki_convert_create(const stki_convert_desc *desc, stki_convert **out, stk_error *err);
void stki_convert_destroy(stki_convert *convert);

/* Converts one sample. `src` and `dst` are the addresses of element 0, 0, …. No alignment is required. */
void stki_convert_run(const stki_convert *convert, void *dst, const void *src);
/* The work on one sample can be divided into `stki_convert_units` units along one axis, so that several threads can
 * share a large sample. stki_convert_run_part runs units [first, last); all units together do exactly what
 * stki_convert_run does. */
int64_t stki_convert_units(const stki_convert *convert);
void stki_convert_run_part(const stki_convert *convert, void *dst, const void *src, int64_t first, int64_t last);
/* Converts `count` samples from a gather list to rows that are `dst_stride` bytes apart, and may prefetch. This is the
 * fast path for small rows. */
void stki_convert_run_many(const stki_convert *convert, void *dst, int64_t dst_stride, const void *const *src,
                           int64_t count);
/* Like stki_convert_run_many, with a separate conversion for each sample (all with the same row size), for crops and
 * flips that differ. */
void stki_convert_run_each(const stki_convert *const *converts, void *dst, int64_t dst_stride, const void *const *src,
                           int64_t count);

/* Whether the conversion writes interleaved bytes to planes line by line, so that any rectangle can be converted
 * separately. */
bool stki_convert_takes_rectangles(const stki_convert *convert);
/* Converts a rectangle of any size, if stki_convert_takes_rectangles is true. `src` and `dst` are the addresses of its
 * first pixel, src_line and dst_line the bytes from line to line; src_line may be 0. */
void stki_convert_run_rectangle(const stki_convert *convert, void *dst, int64_t dst_line, const void *src,
                                int64_t src_line, int64_t lines, int64_t pixels);

/* Whether the conversion uses non-temporal stores. If so, the caller must call stki_store_fence() before it publishes
 * the bytes to other threads. */
bool stki_convert_streams(const stki_convert *convert);
void stki_store_fence(void);
int64_t stki_convert_bytes_read(const stki_convert *convert); /* per sample */
int64_t stki_convert_bytes_written(const stki_convert *convert);
/* For reports: "avx512 u8>f32 hwc3-planar streaming". Valid until the conversion is destroyed. */
const char *stki_convert_name(const stki_convert *convert);

/* For tests and benchmarks: compiles for the given instruction set instead of the selected one. */
stk_status stki_convert_create_isa(const stki_convert_desc *desc, enum stki_isa isa, stki_convert **out,
                                   stk_error *err);
int64_t stki_cache_bytes(void);  /* size of the last-level cache, from sysfs; 32 MiB if unknown */
int64_t stki_level2_bytes(void); /* size of one core's L2 cache; 256 KiB if unknown */

#endif
