/* resize_internal.h: the resizer's structs, and the two inner loops that each variant (ref, AVX2, AVX-512 with VNNI,
 * NEON) implements. Bytes are multiplied with fixed-point coefficients (22 fraction bits) and summed in 32 bits; the
 * sum is rounded, shifted back and clamped to a byte. Sums are exact, so the order of the additions does not matter.
 */
#ifndef STKI_RESIZE_INTERNAL_H
#define STKI_RESIZE_INTERNAL_H

#include "resize.h"

enum {
    STKI_RESIZE_BITS = 22,
    STKI_RESIZE_HALF = 1 << (STKI_RESIZE_BITS - 1),
    STKI_RESIZE_ROWS = 4, /* rows processed together by the horizontal pass */
    STKI_RESIZE_TAPS = 4  /* the coefficients of a pixel are padded with zeros to a multiple of this number */
};

/* A buffer that grows and is reused. */
typedef struct stki_resize_memory {
    void *data;
    int64_t capacity;
} stki_resize_memory;

/* The parameters of one direction. */
typedef struct stki_resize_line {
    int64_t in;        /* pixels of the whole input */
    float low, high;   /* limits of the box in this direction, in input pixels */
    int64_t whole;     /* output size of the whole box */
    int64_t skip, out; /* only pixels [skip, skip + out) of it are computed */
    enum stki_filter filter;
} stki_resize_line;

/* The tables of one direction. Output i is the sum over t < count[i] of k[i * taps + t] times input first[i] + t;
 * inputs are counted from the start of the support, outputs from the start of the window. */
typedef struct stki_resize_axis {
    stki_resize_line line;
    int64_t out;                           /* line.out */
    bool known;                            /* the tables below match `line` */
    bool plain;                            /* output i equals input i of the support: nothing to compute */
    bool narrow;                           /* every coefficient fits in three signed bytes */
    int64_t support_first, support_length; /* in the input */
    int64_t taps;                          /* a multiple of STKI_RESIZE_TAPS */
    int64_t most;                          /* maximum of count */
    int32_t *first, *count, *k;            /* `first` has `out` entries; it is also used by the filter `nearest` */
    stki_resize_memory numbers;
    double *weights; /* weights of one output before rounding */
    stki_resize_memory weight_memory;
} stki_resize_axis;

typedef struct stki_resize_kernels {
    /* Builds the tables of the horizontal pass in resizer->tables. NULL: none needed. *usable false: the kernel does
     * not support these sizes; use the plain one. */
    stk_status (*prepare)(stki_resizer *resizer, bool *usable, stk_error *err);
    /* Processes STKI_RESIZE_ROWS rows of the support; pointers may repeat. Output rows are padded to whole cache lines.
     */
    void (*horizontal)(const stki_resizer *resizer, const uint8_t *const *in, uint8_t *const *out);
    /* Computes `n` bytes of one output row from `taps` rows (a multiple of STKI_RESIZE_TAPS). NULL: the plain kernel is
     * as fast. */
    void (*vertical)(uint8_t *out, const uint8_t *const *rows, const int32_t *k, int64_t taps, int64_t n);
    bool needs_narrow; /* requires, for both passes, coefficients that fit in three signed bytes */
} stki_resize_kernels;

struct stki_resizer {
    int channels;
    enum stki_filter filter;
    bool ready;
    stki_resize_support support;
    stki_resize_axis x, y;
    stki_resize_memory tables;
    bool tables_known; /* `tables` match x and the channels */
    bool tables_usable;
    int64_t table_groups, table_taps; /* contents are private to the kernel */
    bool table_spread;
    bool vertical_first;
    stki_resize_memory row_memory; /* rows between the passes: a ring; if vertical comes first, rows entering and
                                      leaving the horizontal pass */
    int64_t row_count, row_bytes;
    const uint8_t *in; /* the current image, its row stride in bytes, and the progress on it: */
    int64_t in_row;
    int64_t next;         /* the next output row */
    int64_t done;         /* number of rows of the support that have been computed into the ring */
    const uint8_t **rows; /* input rows of one output row */
    stki_resize_memory pointer_memory;
    const stki_resize_kernels *variant, *kernels; /* the variant's kernels; the kernels in use */
    void (*vertical)(uint8_t *out, const uint8_t *const *rows, const int32_t *k, int64_t taps, int64_t n);
};

/* resize_axis.c */
/* *changed is set if the tables have changed. */
stk_status stki_resize_axis_set(stki_resize_axis *axis, const stki_resize_line *line, bool *changed, stk_error *err);
void stki_resize_axis_fini(stki_resize_axis *axis);
stk_status stki_resize_grow(stki_resize_memory *memory, int64_t bytes, stk_error *err); /* discards the contents */

/* resize_ref.c */
extern const stki_resize_kernels stki_resize_ref;
/* Computes output pixels [from, out) of one row. */
void stki_resize_ref_row(const stki_resizer *resizer, const uint8_t *in, uint8_t *out, int64_t from);
/* Computes bytes [from, n) of one output row. */
void stki_resize_ref_column(uint8_t *out, const uint8_t *const *rows, const int32_t *k, int64_t taps, int64_t from,
                            int64_t n);

extern const stki_resize_kernels stki_resize_avx2;
/* resize_gray_avx2.c */
stk_status stki_resize_gray_prepare(stki_resizer *resizer, bool *usable, stk_error *err);
void stki_resize_gray_horizontal(const stki_resizer *resizer, const uint8_t *const *in, uint8_t *const *out);
extern const stki_resize_kernels stki_resize_vnni;
extern const stki_resize_kernels stki_resize_neon;
bool stki_native_vnni(void); /* isa.c */

static inline uint8_t stki_resize_store(int32_t sum)
{
    int32_t value = sum >> STKI_RESIZE_BITS;

    return (uint8_t)(value < 0 ? 0 : value > UINT8_MAX ? UINT8_MAX : value);
}

#endif
