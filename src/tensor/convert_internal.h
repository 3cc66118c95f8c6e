/* convert_internal.h: the compiled form of a conversion, and the interface of the inner kernels of each variant (ref,
 * AVX2, AVX-512, NEON). A compiled conversion is a nest of axes. The outer axes are iterated one index at a time
 * (convert_run.c); the inner ones (one or two, by kind) are passed to an inner function. Kernels work on runs of
 * elements and do not depend on the shape. */
#ifndef STKI_CONVERT_INTERNAL_H
#define STKI_CONVERT_INTERNAL_H

#include "convert.h"
#include "device_tables.h"
#include "fast.h"

/* The dtypes that arithmetic reads and writes; indices into the kernel tables. */
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
    STKI_SRC_KINDS,                  /* number of kinds; as a kind: no arithmetic for this dtype */
    STKI_SRC_PIXELS = STKI_SRC_KINDS /* kernels only: interleaved u8 */
};

/* Whether kernels read u8. All possible results are then known at creation. */
static inline bool stki_convert_from_u8(enum stki_convert_src from)
{
    return from == STKI_SRC_U8 || from == STKI_SRC_PIXELS;
}

enum stki_convert_dst {
    STKI_DST_U8,
    STKI_DST_I8,
    STKI_DST_I32,
    STKI_DST_F16,
    STKI_DST_BF16,
    STKI_DST_F32,
    STKI_DST_KINDS /* number of kinds; as a kind: no arithmetic for this dtype */
};

enum stki_convert_src stki_convert_src_of(stk_dtype dtype);
enum stki_convert_dst stki_convert_dst_of(stk_dtype dtype);

enum {
    STKI_LANE_PAD =
        64, /* number of coefficients repeated after the last one, so that a kernel may load a vector at any of them */
    STKI_CONVERT_BLOCK = 512 /* elements of a block, which fits in the L1 cache */
};

/* The parameters of a kernel; constant after creation. Element i of a run uses coefficient pair `channel` if period is
 * 0, otherwise pair (channel + i) mod period. */
typedef struct stki_lane {
    const float *a, *b;
    int64_t period;
    float zero_point, low, high; /* integer destinations */
    const uint8_t *table;        /* 8-bit to 8-bit: 256 results per channel, otherwise NULL */
    bool streaming;
    bool downwards;   /* mirrored pixels: start with the last one, so that the source is read at ascending addresses */
    bool native_bf16; /* the CPU has an instruction for bf16 */
    bool tame;        /* proven at creation for 8-bit sources: every result is zero or normal, and below 2^30 */
    /* interleaved pixels to planes */
    int pixel_step; /* bytes from pixel to pixel in the source: 3, 4, -3, -4 */
    int channels;   /* number of planes to write, at most 4; their source bytes are adjacent */
    int64_t plane_stride;
    uint8_t pick[64]; /* shuffle indices: pick[i] is the position of channel 0 of pixel i in the bytes of 64 pixels.
                         These start at byte 0 of the first pixel or, if mirrored, end with its last channel. */
} stki_lane;

/* Multiplies, adds, rounds and stores `n` elements from contiguous `src` to contiguous `dst`. 0 <= channel < period. */
typedef void (*stki_run_fn)(const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n, int64_t channel);
/* `rows` rows of `n` pixels; strides in bytes. After the n pixels of a row, `ahead` more may be read. */
typedef struct stki_rows {
    int64_t n, rows, ahead, src_row, dst_row;
} stki_rows;
/* Converts one channel of interleaved pixels to its plane. `src` is byte 0 of pixel 0, `dst` the plane's first element.
 */
typedef void (*stki_plane_fn)(const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows,
                              int channel);
typedef void (*stki_list_fn)(const stki_lane *lane, uint8_t *dst, const stki_list *list);
/* Converts contiguous elements in native byte order to f32 with one rounding. */
typedef void (*stki_load_fn)(float *dst, const uint8_t *src, int64_t n);

/* Interleaves or deinterleaves contiguous planes of `n` elements each. */
typedef void (*stki_interleave_fn)(uint8_t *to, const uint8_t *const *planes, int64_t n);
typedef void (*stki_deinterleave_fn)(uint8_t *const *planes, const uint8_t *from, int64_t n);

typedef struct stki_convert_kernels {
    stki_load_fn load[STKI_SRC_KINDS];
    /* [0] one pair, [1] pairs with a period. All are present for f32; those for u8 avoid the intermediate block. */
    stki_run_fn run_f32[STKI_DST_KINDS][2];
    stki_run_fn run_u8[STKI_DST_KINDS][2];
    stki_run_fn table_u8;                 /* uses lane->table; one channel per run. NULL: none */
    stki_run_fn run_wide[STKI_SRC_KINDS]; /* for other sources, to f32, with one pair. NULL: none */
    /* The kernels above for lists of rows, with one pair for all elements. */
    stki_list_fn list_f32[STKI_DST_KINDS], list_u8[STKI_DST_KINDS], list_table_u8, list_wide[STKI_SRC_KINDS];
    stki_list_fn list_bytes;             /* copies bytes; n counts bytes. NULL: none */
    stki_plane_fn plane[STKI_DST_KINDS]; /* u8 pixels. NULL: none */
    stki_plane_fn table_plane;           /* uses lane->table. NULL: none */
    stki_plane_fn split_plane;           /* copies bytes to byte planes. NULL: none */
    /* [log2 of the element size][number of planes - 3], for 3 and 4 planes */
    stki_interleave_fn interleave[3][2];
    stki_deinterleave_fn deinterleave[4][2];
} stki_convert_kernels;

const stki_convert_kernels *stki_convert_kernels_avx2(void);
const stki_convert_kernels *stki_convert_kernels_avx512(void);
const stki_convert_kernels *stki_convert_kernels_neon(void);

typedef struct stki_axis {
    int64_t n, src_stride, dst_stride; /* bytes */
    int64_t channel_step;              /* step between coefficient pairs per index: 0 or 1 */
} stki_axis;

/* The coefficients of the description, channel by channel; without arithmetic, the identity pair. */
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
    int64_t src_offset, dst_offset; /* from element 0, 0, … to the nest's first element */
    stki_inner_fn inner;
    const stki_convert_kernels *kernels;
    stki_lane lane, cached; /* `cached`: the same as `lane`, but with ordinary stores */
    /* used by the inner functions, selected at creation */
    stki_run_fn run; /* NULL: elements are copied */
    stki_plane_fn plane;
    stki_load_fn load;   /* NULL: `run` reads the source dtype itself */
    stki_stream_fn copy; /* NULL: ordinary stores */
    stki_list_fn list;   /* for elements that are contiguous on both sides and all use the same pair; otherwise NULL */
    stki_fast_list_fn cast_list; /* the same for casts to whole lines of the destination; otherwise NULL */
    int64_t list_n;              /* length of a row in the units of `list` */
    stki_interleave_fn interleave;
    stki_deinterleave_fn deinterleave;
    enum stki_convert_src src_kind;
    enum stki_convert_dst dst_kind;
    stk_dtype src_dtype, dst_dtype;
    int src_size, dst_size;
    bool src_swapped;
    bool empty, arithmetic;
    int cut_axis; /* stki_convert_run_part divides this axis, every cut_step indices */
    int64_t cut_step, units;
    bool fetches_ahead; /* pixels: before each plane of a piece, prefetches a share of the next piece */
    int64_t prefetch_offset,
        prefetch_bytes; /* the sample's bytes relative to its element 0, 0, …; 0 bytes: not contiguous */
    int64_t bytes_read, bytes_written;
    float *coefficients; /* a and b with padding, as in `lane`, followed by the arrays of `pairs` */
    uint8_t *table;
    /* Input for planning the conversion on a device (src/gpu/kernel_plan_convert.c), and tables in device memory */
    stki_axis described[STK_MAX_DIMS];
    int described_count;
    stki_convert_pairs pairs;
    stki_device_tables device_tables;
    char name[96];
};

bool stki_native_bf16(void); /* isa.c */

enum { STKI_TABLE_CHANNELS = 16 }; /* with more channels, tables would not stay in the cache, so they are not used */

/* convert_plan.c: merges and orders the axes and selects the inner function and kernels for `isa`. */
void stki_convert_plan(stki_convert *convert, const stki_convert_desc *desc, enum stki_isa isa);

/* Inner functions. They take one inner axis, except pixels (rows, pixels) and blocks (run, beside), which take two, and
 * the tensor core's copy, which takes all. */
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

/* convert_blocks.c: converts up to STKI_CONVERT_BLOCK elements, `src_stride` bytes apart, to contiguous `to`. */
void stki_convert_block(const stki_convert *convert, const stki_lane *lane, int64_t src_stride, uint8_t *to,
                        const uint8_t *src, int64_t n, int64_t channel);

/* convert_ref.c: converts one element, as defined. */
float stki_convert_load(enum stki_convert_src kind, const uint8_t *src, bool swapped);
void stki_convert_store(enum stki_convert_dst kind, const stki_lane *lane, uint8_t *dst, float y);

#endif
