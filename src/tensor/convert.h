/* convert.h: the fused pass from a sample's view to its row in a batch: load, (multiply-add by channel), round,
 * saturate, store in another dtype and layout, each byte read once and written once. docs/internals/convert.md defines
 * the result; convert_ref.c is that definition in code; the AVX2, AVX-512 and NEON files give the same bits (NaN
 * payloads aside).
 *
 * A description is compiled once (dtypes, geometry, coefficients and variant are decided then) and run any number of
 * times from any number of threads over different samples.
 */
#ifndef STKI_CONVERT_H
#define STKI_CONVERT_H

#include "isa.h"
#include <stdbool.h>
#include <stoker/tensor.h>

enum stki_stores { STKI_STORES_AUTO, STKI_STORES_CACHED, STKI_STORES_STREAMING };

typedef struct stki_convert_desc {
    stk_dtype src_dtype, dst_dtype;
    bool src_swapped; /* source elements are in the other byte order */
    int ndim;         /* axes of one sample, in the order of the destination's logical shape */
    int64_t shape[STK_MAX_DIMS];
    int64_t src_strides[STK_MAX_DIMS]; /* bytes, any sign, may be 0 */
    int64_t dst_strides[STK_MAX_DIMS]; /* bytes; distinct indices go to distinct places */
    bool affine; /* y = fmaf(x, a[c], b[c]) in f32, then store; else an exact copy or the core's cast, any dtypes */
    int channel_axis;   /* the axis whose index picks the coefficients; -1: one pair for all */
    int64_t channels;   /* length of a and b: 1, or shape[channel_axis] */
    const float *a, *b; /* copied at compile */
    bool quantized; /* integer destination: clamp(rint(y) + zero_point, qmin, qmax); false: zero_point 0 and the dtype's
                       own range */
    int32_t zero_point, qmin, qmax;
    enum stki_stores stores;
    int64_t bytes_in_flight; /* what the ring's slots hold together: `auto` streams when that is beyond four fifths of
                                the last-level cache */
} stki_convert_desc;

typedef struct stki_convert stki_convert;

/* STK_E_BAD_DTYPE names a pair of dtypes that has no arithmetic: its sources are u8 i8 u16 i16 i32 i64 f16 bf16 f32
 * f64, its destinations u8 i8 i32 f16 bf16 f32. Without arithmetic every pair works. */
stk_status stki_convert_create(const stki_convert_desc *desc, stki_convert **out, stk_error *err);
void stki_convert_destroy(stki_convert *convert);

/* One whole sample. `src` and `dst` are the addresses of the element at index 0, 0, …. No alignment is assumed. */
void stki_convert_run(const stki_convert *convert, void *dst, const void *src);
/* The same cut in `stki_convert_units` pieces along one axis, so that several threads can share one large sample:
 * pieces [first, last). The pieces together are exactly stki_convert_run. */
int64_t stki_convert_units(const stki_convert *convert);
void stki_convert_run_part(const stki_convert *convert, void *dst, const void *src, int64_t first, int64_t last);
/* `count` samples from a gather list, `dst_stride` bytes apart in the destination; may prefetch ahead. The fast path
 * for small rows. */
void stki_convert_run_many(const stki_convert *convert, void *dst, int64_t dst_stride, const void *const *src,
                           int64_t count);
/* The same where each sample has a conversion of its own (of one size of rows): crops and flips that differ. */
void stki_convert_run_each(const stki_convert *const *converts, void *dst, int64_t dst_stride, const void *const *src,
                           int64_t count);

/* True if it uses non-temporal stores: the caller then runs stki_store_fence() before it tells other threads that the
 * bytes are there. */
bool stki_convert_streams(const stki_convert *convert);
void stki_store_fence(void);
int64_t stki_convert_bytes_read(const stki_convert *convert); /* of one sample */
int64_t stki_convert_bytes_written(const stki_convert *convert);
/* For reports: "avx512 u8>f32 hwc3-planar streaming". Lives as long as the convert. */
const char *stki_convert_name(const stki_convert *convert);

/* Tests and bench: compile for one variant whatever stki_isa says. */
stk_status stki_convert_create_isa(const stki_convert_desc *desc, enum stki_isa isa, stki_convert **out,
                                   stk_error *err);
int64_t stki_cache_bytes(void);  /* last-level cache of this machine, from sysfs; 32 MiB where it does not tell */
int64_t stki_level2_bytes(void); /* one processor's second-level cache; 256 KiB where it does not tell */

#endif
