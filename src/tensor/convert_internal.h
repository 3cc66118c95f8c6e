/* convert_internal.h: the compiled form of a conversion, and the inner kernels that the variants (ref, AVX2, AVX-512,
 * NEON) offer to it.
 *
 * A compiled conversion is a nest of axes. The outer ones are walked one index at a time (convert_run.c); the inner
 * ones (one or two, by kind) are given to an inner function. Kernels see only runs of elements, never a shape.
 */
#ifndef STKI_CONVERT_INTERNAL_H
#define STKI_CONVERT_INTERNAL_H

#include "convert.h"
#include "device_tables.h"
#include "fast.h"

/* The dtypes that arithmetic reads and writes, as rows of the kernel tables. */
enum stki_convert_src {
    STKI_SRC_U8,
    STKI_SRC_I8,
    STKI_SRC_U16,
    STKI_SRC_I16,
    STKI_SRC_I32,
    STKI_SRC_I64,
    STKI_SRC_F16,
    STKI_SRC_BF16,
    STKI_SRC_F32,
    STKI_SRC_F64,
    STKI_SRC_KINDS,                  /* also: no such dtype */
    STKI_SRC_PIXELS = STKI_SRC_KINDS /* of kernels: interleaved u8 */
};

enum stki_convert_dst {
    STKI_DST_U8,
    STKI_DST_I8,
    STKI_DST_I32,
    STKI_DST_F16,
    STKI_DST_BF16,
    STKI_DST_F32,
    STKI_DST_KINDS /* also: no such dtype */
};

enum stki_convert_src stki_convert_src_of(stk_dtype dtype);
enum stki_convert_dst stki_convert_dst_of(stk_dtype dtype);

enum {
    STKI_LANE_PAD = 64,      /* coefficients repeated behind the last, so that a kernel may load a vector anywhere */
    STKI_CONVERT_BLOCK = 512 /* elements of a block that stays in the first-level cache */
};

/* What a kernel needs besides addresses; fixed after create. Element i of a run takes coefficient pair `channel` where
 * period is 0, else pair (channel + i) mod period. */
typedef struct stki_lane {
    const float *a, *b;
    int64_t period;
    float zero_point, low, high; /* integer destinations */
    const uint8_t *table;        /* 8-bit to 8-bit: 256 results a channel, else NULL */
    bool streaming;
    bool downwards;   /* mirrored pixels: from the last one back, so that the source is read upwards */
    bool native_bf16; /* the processor has an instruction for it */
    bool tame;        /* proved at create, for 8-bit sources: every result is a number below 2^30 */
    /* interleaved pixels to planes */
    int pixel_step; /* bytes from pixel to pixel in the source: 3, 4, -3, -4 */
    int channels;   /* planes to write, at most 4, their source bytes side by side */
    int64_t plane_stride;
    uint8_t pick[64]; /* where channel 0 of pixel i is in the bytes of 64 pixels, counted from byte 0 of the first one
                         or, mirrored, so that its last channel is the last byte */
} stki_lane;

/* `n` elements from contiguous `src` to contiguous `dst`, multiplied, added, rounded, stored. 0 <= channel < period. */
typedef void (*stki_run_fn)(const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n, int64_t channel);
/* `rows` rows of `n` pixels, bytes from row to row; behind the n pixels of a row `ahead` more may be read. */
typedef struct stki_rows {
    int64_t n, rows, ahead, src_row, dst_row;
} stki_rows;
/* One channel of interleaved pixels to its plane. `src` is byte 0 of pixel 0, `dst` the plane's first element. */
typedef void (*stki_plane_fn)(const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows,
                              int channel);
typedef void (*stki_list_fn)(const stki_lane *lane, uint8_t *dst, const stki_list *list);
/* Contiguous elements, native byte order, to f32 with one rounding. */
typedef void (*stki_load_fn)(float *dst, const uint8_t *src, int64_t n);

/* Planes of `n` elements each, contiguous, to or from interleaved ones. */
typedef void (*stki_interleave_fn)(uint8_t *to, const uint8_t *const *planes, int64_t n);
typedef void (*stki_deinterleave_fn)(uint8_t *const *planes, const uint8_t *from, int64_t n);

typedef struct stki_convert_kernels {
    stki_load_fn load[STKI_SRC_KINDS];
    /* [0] one pair, [1] pairs with a period. From f32 every one is there; from u8 they save the block between. */
    stki_run_fn run_f32[STKI_DST_KINDS][2];
    stki_run_fn run_u8[STKI_DST_KINDS][2];
    stki_run_fn table_u8;                 /* through lane->table; one channel a run. NULL: not there */
    stki_run_fn run_wide[STKI_SRC_KINDS]; /* other sources to f32, one pair. NULL: not there */
    /* The same for lists of rows with one pair for all. */
    stki_list_fn list_f32[STKI_DST_KINDS], list_u8[STKI_DST_KINDS], list_table_u8, list_wide[STKI_SRC_KINDS];
    stki_list_fn list_bytes;             /* the bytes as they are; n counts bytes. NULL: not there */
    stki_plane_fn plane[STKI_DST_KINDS]; /* u8 pixels. NULL: not there */
    stki_plane_fn table_plane;           /* through lane->table. NULL: not there */
    stki_plane_fn split_plane;           /* the bytes as they are, to planes of bytes. NULL: not there */
    /* [log2 of the element size][planes less 3], for 3 and 4 planes */
    stki_interleave_fn interleave[3][2];
    stki_deinterleave_fn deinterleave[4][2];
} stki_convert_kernels;

const stki_convert_kernels *stki_convert_kernels_avx2(void);
const stki_convert_kernels *stki_convert_kernels_avx512(void);
const stki_convert_kernels *stki_convert_kernels_neon(void);

typedef struct stki_axis {
    int64_t n, src_stride, dst_stride; /* bytes */
    int64_t channel_step;              /* coefficient pairs from one index to the next: 0 or 1 */
} stki_axis;

/* Coefficients as they were described, channel by channel; without arithmetic the pair that changes nothing. */
typedef struct stki_convert_pairs {
    const float *a, *b;
    int64_t count; /* 1: one pair for all */
} stki_convert_pairs;

/* The inner axes start at `axes`; `channel` is the coefficient pair at their index 0. */
typedef void (*stki_inner_fn)(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                              int64_t channel);

struct stki_convert {
    stki_axis axes[STK_MAX_DIMS + 2];
    int axis_count, outer_count;
    int64_t src_offset, dst_offset; /* from the element at index 0, 0, … to the nest's first element */
    stki_inner_fn inner;
    const stki_convert_kernels *kernels;
    stki_lane lane, cached; /* the same but for stores into the cache */
    /* what the inner functions use, chosen at create */
    stki_run_fn run;
    stki_plane_fn plane;
    stki_load_fn load;   /* NULL: `run` reads the source dtype itself */
    stki_stream_fn copy; /* NULL: stores go into the cache */
    stki_list_fn list;   /* where elements lie close together on both sides and are all treated alike; else NULL */
    stki_fast_list_fn cast_list; /* the same for casts, to whole lines of the destination; else NULL */
    int64_t list_n;              /* what it counts of a row */
    stki_interleave_fn interleave;
    stki_deinterleave_fn deinterleave;
    enum stki_convert_src src_kind;
    enum stki_convert_dst dst_kind;
    stk_dtype src_dtype, dst_dtype;
    int src_size, dst_size;
    bool src_swapped;
    bool empty, arithmetic;
    int cut_axis; /* stki_convert_run_part cuts this axis, every cut_step indices */
    int64_t cut_step, units;
    int64_t prefetch_offset, prefetch_bytes; /* where a sample lies, seen from its element at 0, 0, …; 0 bytes: not in
                                                one piece */
    int64_t bytes_read, bytes_written;
    float *coefficients; /* a and b with their padding; behind them as in `pairs` */
    uint8_t *table;
    /* What devices make their own plan of (src/gpu/kernel_plan_convert.c), and tables that they keep in their memory */
    stki_axis described[STK_MAX_DIMS];
    int described_count;
    stki_convert_pairs pairs;
    stki_device_tables device_tables;
    char name[96];
};

bool stki_native_bf16(void); /* isa.c */

enum { STKI_TABLE_CHANNELS = 16 }; /* more channels than that have no tables: they would leave the cache */

/* convert_plan.c: merges and orders the axes and picks inner function and kernels for `isa`. */
void stki_convert_plan(stki_convert *convert, const stki_convert_desc *desc, enum stki_isa isa);

/* Inner functions. One inner axis, but for pixels (rows, pixels) and blocks (run, beside), which take two, and the
 * core's copy, which takes all. */
void stki_convert_ref(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                      int64_t channel);
void stki_convert_runs(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                       int64_t channel);
void stki_convert_pixels(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                         int64_t channel);
void stki_convert_pixels_assembled(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                                   int64_t channel);
void stki_convert_assembled(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                            int64_t channel);
void stki_convert_blocks(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                         int64_t channel);
void stki_convert_interleaved(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                              int64_t channel);
void stki_convert_deinterleaved(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                                int64_t channel);
void stki_convert_copies(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                         int64_t channel);
void stki_convert_core(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                       int64_t channel);

/* convert_blocks.c: one block of up to STKI_CONVERT_BLOCK elements, `src_stride` bytes apart, to contiguous `to`. */
void stki_convert_block(const stki_convert *convert, const stki_lane *lane, int64_t src_stride, uint8_t *to,
                        const uint8_t *src, int64_t n, int64_t channel);

/* convert_ref.c: one element, the definition. */
float stki_convert_load(enum stki_convert_src kind, const uint8_t *src, bool swapped);
void stki_convert_store(enum stki_convert_dst kind, const stki_lane *lane, uint8_t *dst, float y);

#endif
