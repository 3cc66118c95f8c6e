/* copy_internal.h: a strided copy once it is decided: what happens to a run of adjacent elements, and which of the
 * source's patterns the inner axes form (copy_pattern.c).
 */
#ifndef STKI_COPY_INTERNAL_H
#define STKI_COPY_INTERNAL_H

#include "cast.h"
#include "fast.h"
#include "strided.h"

enum stki_copy_pattern {
    STKI_PATTERN_ROWS,         /* one axis: any strides, element by element */
    STKI_PATTERN_SHORT_ROWS,   /* two axes, the last short: the same, along the longer one in blocks */
    STKI_PATTERN_BLOCKS,       /* two axes: the same in pieces of rows, where the source is tighter across them */
    STKI_PATTERN_RUNS,         /* one axis, adjacent on both sides */
    STKI_PATTERN_EVERY,        /* one axis: every k-th element, also backwards, to adjacent ones */
    STKI_PATTERN_INTERLEAVE,   /* two axes: planes to pixels */
    STKI_PATTERN_DEINTERLEAVE, /* two axes: pixels to planes */
    STKI_PATTERN_TILES         /* two axes: rows to columns */
};

typedef struct stki_copy {
    stki_strided plan; /* operand 0 is written; the inner axes are last */
    stki_cast cast;
    const stki_fast *fast;      /* NULL: plain code only */
    stki_fast_cast_fn adjacent; /* the cast of adjacent elements; NULL: cast */
    stki_fast_lines_fn lines;   /* the same by cache lines; NULL: not there */
    bool streaming;
    int64_t dst_size, src_size;
    enum stki_copy_pattern pattern;
    stki_shuffle shuffle;
    stki_tile_fn tile;
} stki_copy;

/* Decides pattern, order of the inner axes and streaming. */
void stki_copy_decide(stki_copy *copy, enum stki_stores stores);
/* Axes that the pattern takes. */
int stki_copy_inner(const stki_copy *copy);
/* The inner axes of one place. */
void stki_copy_block(const stki_copy *copy, char *dst, const char *src);
/* Adjacent elements to adjacent elements. */
void stki_copy_run(const stki_copy *copy, char *dst, const char *src, int64_t count);

#endif
