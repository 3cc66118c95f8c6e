/* kernel_sum.h: sums and means over any axes. Floats are added in f64 with compensation (two-sum), within threads and
 * between them; integers wrap as u64. The order of additions depends only on the shapes, so the result is reproducible.
 *
 *     rows   the elements of a result are contiguous: one block per result (or part of it), with a tree reduction of
 *            the threads' sums in shared memory
 *     cells  adjacent elements belong to different results: one thread per result (or part of it)
 *
 * Parts of a result are stored in scratch memory and combined by `finish`. */
#ifndef STKI_KERNEL_SUM_H
#define STKI_KERNEL_SUM_H

#include "kernel_element.h"

enum { STKI_SUM_HALVINGS = 8 }; /* log2 of the block's threads */

typedef struct stki_sum_args {
    uint8_t *out;
    const uint8_t *in;
    uint8_t *scratch;     /* pairs of 8 bytes: [part][cell] */
    uint64_t cells, gone; /* number of results, and of elements in each */
    uint64_t part;        /* number of elements in a part */
    uint32_t parts;
    stki_divisor by_parts;
    int32_t in_dtype, via;   /* elements are cast to `via` before they are added; `via` is also the dtype of results */
    double divisor;          /* 0: a sum */
    stki_nest kept, reduced; /* sides: out, in */
} stki_sum_args;

/* A sum and its accumulated rounding error; for integers, the bits of `sum` are those of a u64. */
typedef struct stki_partial {
    double sum, rest;
} stki_partial;

STKI_KERNEL_FN int stki_sum_is_whole(const stki_sum_args *args)
{
    return !stki_kernel_is_real(args->via);
}

/* Knuth's two-sum: the old sum plus x is exactly the new sum plus the amount added to `rest`. */
STKI_KERNEL_FN stki_partial stki_partial_add(stki_partial to, double x)
{
    const double sum = to.sum + x, part = sum - to.sum;

    to.rest += (to.sum - (sum - part)) + (x - part);
    to.sum = sum;
    return to;
}

STKI_KERNEL_FN stki_partial stki_partial_join(int whole, stki_partial a, stki_partial b)
{
    if (whole) {
        a.sum = stki_f64_of_bits(stki_f64_bits(a.sum) + stki_f64_bits(b.sum));
        return a;
    }
    a = stki_partial_add(a, b.sum);
    a.rest += b.rest;
    return a;
}

STKI_KERNEL_FN stki_partial stki_partial_zero(void)
{
    stki_partial zero;

    zero.sum = zero.rest = 0;
    return zero;
}

STKI_KERNEL_FN stki_partial stki_sum_element(const stki_sum_args *args, int whole, stki_partial to, const uint8_t *from)
{
    uint64_t bits = stki_load_bits(from, stki_kernel_size(args->in_dtype));
    stki_partial one;

    bits = stki_kernel_cast(args->via, args->in_dtype, bits);
    bits = stki_kernel_cast(whole ? STK_I64 : STK_F64, args->via, bits);
    if (!whole)
        return stki_partial_add(to, stki_f64_of_bits(bits));
    one.sum = stki_f64_of_bits(bits);
    one.rest = 0;
    return stki_partial_join(1, to, one);
}

/* Stores the sum in scratch memory, or as the result if there is one part. The rounding error is not meaningful if the
 * sum is infinite or NaN. */
STKI_KERNEL_FN void stki_sum_put(const stki_sum_args *args, int whole, uint64_t cell, uint32_t part, int last,
                                 stki_partial sum)
{
    uint64_t bits;

    if (!last) {
        uint8_t *to = args->scratch + 16 * ((uint64_t)part * args->cells + cell);
        stki_store_64(to, stki_f64_bits(sum.sum));
        stki_store_64(to + 8, stki_f64_bits(sum.rest));
        return;
    }
    bits = stki_f64_bits(sum.sum);
    if (!whole) {
        double total = sum.rest - sum.rest == 0 ? sum.sum + sum.rest : sum.sum;
        bits = stki_f64_bits(args->divisor != 0 ? total / args->divisor : total);
    }
    bits = stki_kernel_cast(args->via, whole ? STK_I64 : STK_F64, bits);
    stki_store_bits(args->out + stki_nest_at(&args->kept, 0, cell, 2).side[0], bits, stki_kernel_size(args->via));
}

/* ---- rows ---- */

STKI_KERNEL_FN uint64_t stki_sum_end(const stki_sum_args *args, uint32_t part)
{
    const uint64_t end = ((uint64_t)part + 1) * args->part;

    return end < args->gone ? end : args->gone;
}

/* Phase 0: thread i mod 256 adds element i of the part. */
STKI_KERNEL_FN void stki_sum_rows(const stki_sum_args *args, stki_spot spot, stki_partial *shared)
{
    const uint32_t cell = stki_quotient(args->by_parts, spot.block), part = spot.block - cell * args->parts;
    const uint8_t *from = args->in + stki_nest_at(&args->kept, 0, cell, 2).side[1];
    const uint64_t end = stki_sum_end(args, part);
    const int whole = stki_sum_is_whole(args);
    stki_partial sum = stki_partial_zero();

    for (uint64_t i = (uint64_t)part * args->part + spot.thread; i < end; i += STKI_BLOCK_THREADS)
        sum = stki_sum_element(args, whole, sum, from + stki_nest_at(&args->reduced, 0, i, 2).side[1]);
    shared[spot.thread] = sum;
}

/* Phases 1 to 8: one level of the tree each, with `half` from 128 down to 1. */
STKI_KERNEL_FN void stki_sum_halve(const stki_sum_args *args, stki_spot spot, stki_partial *shared, uint32_t half)
{
    if (spot.thread < half)
        shared[spot.thread] =
            stki_partial_join(stki_sum_is_whole(args), shared[spot.thread], shared[spot.thread + half]);
    if (half == 1 && spot.thread == 0) {
        const uint32_t cell = stki_quotient(args->by_parts, spot.block);
        stki_sum_put(args, stki_sum_is_whole(args), cell, spot.block - cell * args->parts, args->parts == 1, shared[0]);
    }
}

/* ---- cells ---- */

STKI_KERNEL_FN void stki_sum_cells(const stki_sum_args *args, stki_spot spot)
{
    const uint32_t group = stki_quotient(args->by_parts, spot.block), part = spot.block - group * args->parts;
    const uint64_t cell = (uint64_t)group * STKI_BLOCK_THREADS + spot.thread, end = stki_sum_end(args, part);
    const int whole = stki_sum_is_whole(args);
    stki_partial sum = stki_partial_zero();
    const uint8_t *from;

    if (cell >= args->cells)
        return;
    from = args->in + stki_nest_at(&args->kept, 0, cell, 2).side[1];
    for (uint64_t i = (uint64_t)part * args->part; i < end; i++)
        sum = stki_sum_element(args, whole, sum, from + stki_nest_at(&args->reduced, 0, i, 2).side[1]);
    stki_sum_put(args, whole, cell, part, args->parts == 1, sum);
}

/* Adds the parts of each result in order. */
STKI_KERNEL_FN void stki_sum_finish(const stki_sum_args *args, stki_spot spot)
{
    const uint64_t cell = (uint64_t)spot.block * STKI_BLOCK_THREADS + spot.thread;
    const int whole = stki_sum_is_whole(args);
    stki_partial sum = stki_partial_zero();

    if (cell >= args->cells)
        return;
    for (uint32_t part = 0; part < args->parts; part++) {
        const uint8_t *from = args->scratch + 16 * ((uint64_t)part * args->cells + cell);
        stki_partial next;
        next.sum = stki_f64_of_bits(stki_load_64(from));
        next.rest = stki_f64_of_bits(stki_load_64(from + 8));
        sum = stki_partial_join(whole, sum, next);
    }
    stki_sum_put(args, whole, cell, 0, 1, sum);
}

#endif
