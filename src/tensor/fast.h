/* fast.h: what the vector variants offer to copies and casts. The plain code (cast.c, strided walks) is the definition;
 * everything here gives the same bits on the same elements, only faster, and may be missing.
 *
 * Sizes of elements are indexed by their logarithm: 1, 2, 4, 8 bytes are 0, 1, 2, 3. No alignment is assumed anywhere.
 */
#ifndef STKI_FAST_H
#define STKI_FAST_H

#include "convert.h"

enum { STKI_FAST_SIZES = 4, STKI_SHUFFLE_MAX = 8 };

/* `count` adjacent elements into adjacent elements of another dtype. */
typedef void (*stki_fast_cast_fn)(char *dst, const char *src, int64_t count);

/* The same line by line of the destination, past the caches if asked. `edge` is the plain loop for what is no whole
 * line. */
typedef void (*stki_fast_lines_fn)(char *dst, const char *src, int64_t count, bool streaming, stki_fast_cast_fn edge);

/* ---- lists of rows ---- */

/* Rows of a gather list, contiguous each, which become one run in the destination. */
typedef struct stki_list {
    const uint8_t *const *rows;
    int64_t count, n; /* rows, and elements of each */
    int64_t ahead;    /* how many rows ahead the source is fetched; 0: not at all */
} stki_list;
enum { STKI_LINE = 64, STKI_FETCH_PIECE = 2048 };

/* Fetches the lines of `bytes` bytes into the second-level cache. */
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

/* Casts of a list whose rows are whole lines in the destination, which begins at a line boundary. */
typedef void (*stki_fast_list_fn)(char *dst, const stki_list *list);

typedef struct stki_fast_lines_table {
    stki_fast_lines_fn cast[STK_DTYPE_END][STK_DTYPE_END]; /* [dst][src] */
    stki_fast_list_fn list[STK_DTYPE_END][STK_DTYPE_END];
} stki_fast_lines_table;

/* A pattern of elements that repeats with every group of one vector of elements an output: output k takes its element l
 * from the vector in[j] for which bit l of own[k][j] is set, at the place pick[k][l]. Built by shuffle.c. */
typedef struct stki_shuffle {
    int size;                      /* bytes an element */
    int lanes;                     /* elements a vector */
    int inputs, outputs;           /* vectors a group, at most STKI_SHUFFLE_MAX */
    int64_t in_start;              /* bytes from the given address to the first vector */
    int64_t in_stride, out_stride; /* bytes from one vector of a group to the next */
    int64_t in_step, out_step;     /* bytes from group to group */
    uint64_t own[STKI_SHUFFLE_MAX][STKI_SHUFFLE_MAX];
    unsigned char pick[STKI_SHUFFLE_MAX][64]; /* integers of `size` bytes */
} stki_shuffle;

/* Streaming needs what is written to start at a multiple of 64 bytes. */
typedef void (*stki_shuffle_fn)(const stki_shuffle *shuffle, char *dst, const char *src, int64_t groups,
                                bool streaming);

/* dst[r][c] = src[c][r]: rows of adjacent elements on both sides, strides in bytes from row to row. Streaming needs
 * every row that is written to lie at a multiple of the vector size. */
typedef void (*stki_tile_fn)(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t dst_rows,
                             int64_t dst_columns, int64_t reach, bool streaming);

/* Bytes past the caches, any alignment. Before other threads may look the caller runs stki_store_fence(). */
typedef void (*stki_stream_fn)(void *dst, const void *src, int64_t bytes);

typedef struct stki_fast {
    int shuffle_bytes[STKI_FAST_SIZES]; /* vectors of the patterns, for elements of each size */
    stki_stream_fn stream;
    stki_fast_cast_fn cast[STK_DTYPE_END][STK_DTYPE_END]; /* [dst][src] */
    const stki_fast_lines_table *lines;                   /* NULL: none */
    stki_shuffle_fn shuffle[STKI_FAST_SIZES];
    stki_tile_fn tile[STKI_FAST_SIZES];
} stki_fast;

/* NULL: this variant has nothing beyond the plain code. */
const stki_fast *stki_fast_of(enum stki_isa isa);
const stki_fast *stki_fast_avx2(void);
const stki_fast *stki_fast_avx512(void);
extern const stki_fast_lines_table stki_fast_lines_avx512;

/* As stki_copy_strided, for one variant and a stated kind of stores: tests and bench. */
void stki_copy_strided_as(enum stki_isa isa, enum stki_stores stores, void *dst, stk_dtype dst_dtype,
                          const int64_t *dst_strides, const void *src, stk_dtype src_dtype, const int64_t *src_strides,
                          bool src_swapped, int ndim, const int64_t *shape);

/* ---- shuffle.c: patterns for vectors of `vector_bytes` ---- */

/* Pixels of `channels` adjacent elements out of planes `plane_stride` bytes apart. */
void stki_shuffle_interleave(stki_shuffle *shuffle, int vector_bytes, int size, int channels, int64_t plane_stride);
/* And back. */
void stki_shuffle_deinterleave(stki_shuffle *shuffle, int vector_bytes, int size, int channels, int64_t plane_stride);
/* Every `step`-th element, step from -STKI_SHUFFLE_MAX to STKI_SHUFFLE_MAX, not 0; the address is that of the element
 * that comes first. */
void stki_shuffle_every(stki_shuffle *shuffle, int vector_bytes, int size, int step);
/* How many groups may be run for `count` elements an output without reading beyond the last element. */
int64_t stki_shuffle_groups(const stki_shuffle *shuffle, int64_t count);

#endif
