/* fast.h: the vector variants of copies and casts. The plain code (cast.c, strided walks) defines the results. These
 * functions are optional; they produce bit-identical results faster. Tables with one entry per element size are indexed
 * by log2 of the size in bytes, 0 to 3. No alignment is required. */
#ifndef STKI_FAST_H
#define STKI_FAST_H

#include "convert.h"

enum { STKI_FAST_SIZES = 4, STKI_SHUFFLE_MAX = 8 };

/* Casts `count` contiguous elements. */
typedef void (*stki_fast_cast_fn)(char *dst, const char *src, int64_t count);

/* Like stki_fast_cast_fn, one destination line at a time, with non-temporal stores if `streaming`. `edge` casts the
 * partial lines. */
typedef void (*stki_fast_lines_fn)(char *dst, const char *src, int64_t count, bool streaming, stki_fast_cast_fn edge);

/* ---- lists of rows ---- */

/* Contiguous rows of a gather list, which become one run in the destination. */
typedef struct stki_list {
    const uint8_t *const *rows;
    int64_t count, n; /* number of rows, and elements per row */
    int64_t ahead;    /* how many rows ahead to prefetch the source; 0: no prefetch */
} stki_list;
enum { STKI_LINE = 64, STKI_FETCH_PIECE = 2048 };

/* Prefetches the lines of `bytes` bytes into the L2 cache. */
static inline void stki_fetch(const uint8_t *from, int64_t bytes)
{
    const uint8_t *const end = from + bytes, *line = from - (uintptr_t)from % STKI_LINE;

    for (; end - line >= 4 * STKI_LINE; line += 4 * STKI_LINE) {
        __builtin_prefetch(line, 0, 2);
        __builtin_prefetch(line + STKI_LINE, 0, 2);
        __builtin_prefetch(line + 2 * STKI_LINE, 0, 2);
        __builtin_prefetch(line + 3 * STKI_LINE, 0, 2);
    }
    for (; line < end; line += STKI_LINE)
        __builtin_prefetch(line, 0, 2);
}

static inline void stki_list_begin(const stki_list *list, int64_t row_bytes)
{
    for (int64_t i = 0; i < list->ahead && i < list->count; i++)
        stki_fetch(list->rows[i], row_bytes);
}

/* Casts a list of rows that are whole lines in the destination, which begins at a line boundary. */
typedef void (*stki_fast_list_fn)(char *dst, const stki_list *list);

typedef struct stki_fast_lines_table {
    stki_fast_lines_fn cast[STK_DTYPE_END][STK_DTYPE_END]; /* [dst][src] */
    stki_fast_list_fn list[STK_DTYPE_END][STK_DTYPE_END];
} stki_fast_lines_table;

/* A repeating pattern of element moves, one vector of elements per output and group. Lane l of output k is element
 * pick[k][l] of the input vector j for which bit l of own[k][j] is set. Built by shuffle.c. */
typedef struct stki_shuffle {
    int size;                      /* bytes per element */
    int lanes;                     /* elements per vector */
    int inputs, outputs;           /* vectors per group, at most STKI_SHUFFLE_MAX */
    int64_t in_start;              /* bytes from the given address to the first vector */
    int64_t in_stride, out_stride; /* bytes from one vector of a group to the next */
    int64_t in_step, out_step;     /* bytes from group to group */
    uint64_t own[STKI_SHUFFLE_MAX][STKI_SHUFFLE_MAX];
    unsigned char pick[STKI_SHUFFLE_MAX][64]; /* integers of `size` bytes */
} stki_shuffle;

/* Streaming requires a destination aligned to 64 bytes. */
typedef void (*stki_shuffle_fn)(const stki_shuffle *shuffle, char *dst, const char *src, int64_t groups,
                                bool streaming);

/* dst[r][c] = src[c][r]. Elements of a row are contiguous on both sides; strides in bytes between rows. Streaming
 * requires every destination row to be aligned to the vector size. */
typedef void (*stki_tile_fn)(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t dst_rows,
                             int64_t dst_columns, int64_t reach, bool streaming);

/* Copies bytes with non-temporal stores, any alignment. The caller must call stki_store_fence() before it publishes the
 * bytes to other threads. */
typedef void (*stki_stream_fn)(void *dst, const void *src, int64_t bytes);

typedef struct stki_fast {
    int shuffle_bytes[STKI_FAST_SIZES]; /* bytes per vector of the patterns, for each element size */
    stki_stream_fn stream;
    stki_fast_cast_fn cast[STK_DTYPE_END][STK_DTYPE_END]; /* [dst][src] */
    const stki_fast_lines_table *lines;                   /* NULL: none */
    stki_shuffle_fn shuffle[STKI_FAST_SIZES];
    stki_tile_fn tile[STKI_FAST_SIZES];
} stki_fast;

/* NULL: this variant has only the plain code. */
const stki_fast *stki_fast_of(enum stki_isa isa);
const stki_fast *stki_fast_avx2(void);
const stki_fast *stki_fast_avx512(void);
extern const stki_fast_lines_table stki_fast_lines_avx512;

/* Like stki_copy_strided, with the given variant and kind of stores; for tests and benchmarks. */
void stki_copy_strided_as(enum stki_isa isa, enum stki_stores stores, void *dst, stk_dtype dst_dtype,
                          const int64_t *dst_strides, const void *src, stk_dtype src_dtype, const int64_t *src_strides,
                          bool src_swapped, int ndim, const int64_t *shape);

/* ---- shuffle.c: patterns for vectors of `vector_bytes` ---- */

/* Interleaves planes `plane_stride` bytes apart into pixels of `channels` adjacent elements. */
void stki_shuffle_interleave(stki_shuffle *shuffle, int vector_bytes, int size, int channels, int64_t plane_stride);
/* The inverse. */
void stki_shuffle_deinterleave(stki_shuffle *shuffle, int vector_bytes, int size, int channels, int64_t plane_stride);
/* Takes every `step`-th element; step is from -STKI_SHUFFLE_MAX to STKI_SHUFFLE_MAX, not 0. The source address is that
 * of the first element taken. */
void stki_shuffle_every(stki_shuffle *shuffle, int vector_bytes, int size, int step);
/* Number of groups that can be run for `count` elements per output without reading past the last element. */
int64_t stki_shuffle_groups(const stki_shuffle *shuffle, int64_t count);

#endif
