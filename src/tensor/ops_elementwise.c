/* ops_elementwise.c: see ops_elementwise.h.
 *
 * The axes are planned once (strided.h), in the order of the output's memory. They are then processed by
 *   rows   the last axis at once. The loops read contiguous operands of the compute dtype in place; others pass through
 *          a block that stays in the L1 cache: gathered, cast, computed, cast, stored.
 *   tiles  two axes at once, for operands that are contiguous along a different axis than the output (each cache line
 *          is then read once per tile), and for rows too short for a call each, which are gathered into one. */
#include "ops_elementwise.h"
#include "cast.h"
#include "fast.h"
#include "ops_stream.h"
#include "ops_tile.h"
#include "strided.h"
#include <stdlib.h>
#include <string.h>

enum {
    ROW_BLOCK = 512,       /* elements */
    TILE_BYTES = 16 << 10, /* maximum size of a tile; 64 by 64 f32 */
    TILE_COLUMNS = 64,     /* maximum number of columns in a tile */
    SHORT_ROW = 32,
    MAX_SIZE = 8
};

/* One cast, or two in a row. */
struct chain {
    stki_cast casts[2];
    int count;
    int64_t middle; /* bytes per element between the two */
    bool plain;     /* no cast is needed */
};

struct side {
    struct chain casts; /* input: to the compute dtype; output: from the dtype that the loops write */
    int64_t size;
    const void *one; /* a single value in the compute dtype, if the input is one; otherwise NULL */
    char value[MAX_SIZE];
};

struct run {
    enum stki_isa isa;
    const stki_loops *loops, *stream_loops; /* NULL: computed into a block, then copied with streaming stores */
    stki_stream_fn stream;                  /* NULL: ordinary stores */
    stki_strided plan;                      /* operand 0 is the output */
    struct side out, in[2];
    int64_t compute_size, writes_size;
    _Alignas(64) char blocks[2][TILE_BYTES]; /* inputs in the compute dtype; run_packed_tile reuses [0] for output */
    _Alignas(64) char result[TILE_BYTES];    /* gathered elements of an input before their cast; later, the result */
    _Alignas(64) char middle[TILE_BYTES];    /* elements between two casts */
    _Alignas(64) char final[ROW_BLOCK * MAX_SIZE]; /* a row in the output's dtype */
};

/* A row of an input in the form that the loops expect: contiguous elements, or a single one that is used for all. */
struct row {
    const char *at;
    bool one;
};

/* ---- casts ---- */

static void init_chain(struct chain *chain, stk_dtype from, stk_dtype via, stk_dtype to)
{
    chain->count = from != via && via != to ? 2 : 1;
    chain->middle = stk_dtype_size(via);
    /* bool is cast even to itself, because bytes from outside the library may be neither 0 nor 1 */
    chain->plain = chain->count == 1 && from == to && from != STK_BOOL;
    stki_cast_init(&chain->casts[0], chain->count == 2 ? via : to, from, false);
    if (chain->count == 2)
        stki_cast_init(&chain->casts[1], to, via, false);
}

static void run_chain(struct run *run, const struct chain *chain, void *dst, int64_t dst_step, const void *src,
                      int64_t src_step, int64_t n)
{
    if (chain->count == 1) {
        stki_cast_row(&chain->casts[0], dst, dst_step, src, src_step, n);
        return;
    }
    stki_cast_row(&chain->casts[0], run->middle, chain->middle, src, src_step, n);
    stki_cast_row(&chain->casts[1], dst, dst_step, run->middle, chain->middle, n);
}

/* ---- computing ---- */

static void compute(const stki_loops *loops, void *dst, struct row a, struct row b, int64_t n)
{
    (b.one ? loops->with_one : a.one ? loops->one_with : loops->both)(dst, a.at, b.at, n);
}

static struct row skip(struct row row, int64_t bytes)
{
    return row.one ? row : (struct row){row.at + bytes, false};
}

/* Computes the result of two inputs with a single value each, in the output's dtype. */
static void compute_one(struct run *run, void *value, const void *a, const void *b)
{
    char result[MAX_SIZE];

    run->loops->with_one(result, a, b, 1);
    run_chain(run, &run->out.casts, value, run->out.size, result, run->writes_size, 1);
}

/* Uses streaming stores for the aligned part of the output and ordinary stores before and after it. */
static void compute_streaming(const struct run *run, char *dst, struct row a, struct row b, int64_t n)
{
    int64_t size = run->out.size, over = (int64_t)((uintptr_t)dst % STKI_STREAM_ALIGNMENT);
    int64_t head = over ? (STKI_STREAM_ALIGNMENT - over) / size : 0, a_line = STKI_STREAM_ALIGNMENT / size;

    head = over % size || head > n ? n : head;
    int64_t body = (n - head) / a_line * a_line, done = head + body;
    compute(run->loops, dst, a, b, head);
    compute(run->stream_loops, dst + head * size, skip(a, head * size), skip(b, head * size), body);
    compute(run->loops, dst + done * size, skip(a, done * size), skip(b, done * size), n - done);
}

/* Computes n elements of the output from prepared inputs; n <= ROW_BLOCK unless is_direct returns true. */
static void compute_row(struct run *run, char *dst, int64_t step, struct row a, struct row b, int64_t n)
{
    bool plain = run->out.casts.plain, adjacent = step == run->out.size;

    if (plain && adjacent && !run->stream) {
        compute(run->loops, dst, a, b, n);
        return;
    }
    if (plain && adjacent && run->stream_loops) {
        compute_streaming(run, dst, a, b, n);
        return;
    }
    compute(run->loops, run->result, a, b, n);
    if (!run->stream || !adjacent) {
        run_chain(run, &run->out.casts, dst, step, run->result, run->writes_size, n);
        return;
    }
    if (!plain)
        run_chain(run, &run->out.casts, run->final, step, run->result, run->writes_size, n);
    run->stream((uint8_t *)dst, (const uint8_t *)(plain ? run->result : run->final), n * run->out.size);
}

/* Whether the loops store a row of the output directly, so that it may have any length. */
static bool is_direct(const struct run *run, int64_t step)
{
    return run->out.casts.plain && step == run->out.size && (!run->stream || run->stream_loops);
}

/* ---- rows ---- */

/* Prepares an input for a row of the plan. False: it must pass through a block. */
static bool begin_row(struct run *run, int k, const char *at, struct row *row)
{
    struct side *in = &run->in[k];
    int64_t step = run->plan.strides[k + 1][run->plan.ndim - 1];

    *row = (struct row){in->one ? in->one : at, in->one || step == 0};
    if (in->one)
        return true;
    if (step != 0)
        return in->casts.plain && step == in->size;
    run_chain(run, &in->casts, in->value, run->compute_size, at, 0, 1);
    row->at = in->value;
    return true;
}

static struct row load_block(struct run *run, int k, const char *at, int64_t first, int64_t n)
{
    int64_t step = run->plan.strides[k + 1][run->plan.ndim - 1];

    run_chain(run, &run->in[k].casts, run->blocks[k], run->compute_size, at + first * step, step, n);
    return (struct row){run->blocks[k], false};
}

static void run_row(struct run *run, const stki_walk *walk)
{
    int64_t count = run->plan.shape[run->plan.ndim - 1], step = run->plan.strides[0][run->plan.ndim - 1];
    struct row row[2];
    bool ready[2];

    for (int k = 0; k < 2; k++)
        ready[k] = begin_row(run, k, walk->at[k + 1], &row[k]);
    if (row[0].one && row[1].one) {
        char value[MAX_SIZE];
        compute_one(run, value, row[0].at, row[1].at);
        for (int64_t i = 0; i < count; i++)
            memcpy(walk->at[0] + i * step, value, (size_t)run->out.size);
        return;
    }
    int64_t block = ready[0] && ready[1] && is_direct(run, step) ? count : ROW_BLOCK;
    for (int64_t first = 0; first < count; first += block) {
        int64_t n = count - first < block ? count - first : block;
        struct row part[2];
        for (int k = 0; k < 2; k++)
            part[k] =
                ready[k] ? skip(row[k], first * run->compute_size) : load_block(run, k, walk->at[k + 1], first, n);
        compute_row(run, walk->at[0] + first * step, step, part[0], part[1], n);
    }
}

static void run_rows(struct run *run, const void *const *data)
{
    stki_walk walk;

    if (!stki_walk_begin(&walk, &run->plan, 1, data))
        return;
    do
        run_row(run, &walk);
    while (stki_walk_next(&walk));
}

/* ---- tiles ---- */

static stki_tile tile_of(const struct run *run, int operand, char *at)
{
    int last = run->plan.ndim - 1;

    return (stki_tile){at, run->plan.strides[operand][last - 1], run->plan.strides[operand][last]};
}

static bool is_adjacent(stki_tile tile, int64_t size, int64_t rows, int64_t columns)
{
    return tile.column_stride == size && (rows == 1 || tile.row_stride == columns * size);
}

static stki_tile adjacent(void *data, int64_t size, int64_t columns)
{
    return (stki_tile){data, columns * size, size};
}

/* Loads a tile of an input in the compute dtype, row by row without gaps. */
static const char *load_tile(struct run *run, int k, char *at, int64_t rows, int64_t columns)
{
    const struct side *in = &run->in[k];
    stki_tile tile = tile_of(run, k + 1, at);
    bool ready = is_adjacent(tile, in->size, rows, columns);

    if (in->one)
        return in->one;
    if (ready && in->casts.plain)
        return at;
    if (!ready) {
        char *to = in->casts.plain ? run->blocks[k] : run->result;
        stki_tile_copy(run->isa, adjacent(to, in->size, columns), tile, in->size, rows, columns);
        at = to;
    }
    if (!in->casts.plain)
        run_chain(run, &in->casts, run->blocks[k], run->compute_size, at, in->size, rows * columns);
    return run->blocks[k];
}

/* Computes a tile of short rows as one row. */
static void run_packed_tile(struct run *run, char *const *at, int64_t rows, int64_t columns)
{
    struct row a = {load_tile(run, 0, at[1], rows, columns), run->in[0].one},
               b = {load_tile(run, 1, at[2], rows, columns), run->in[1].one};
    stki_tile out = tile_of(run, 0, at[0]);
    char *block = run->result;

    if (run->out.casts.plain && is_adjacent(out, run->out.size, rows, columns)) {
        compute(run->loops, at[0], a, b, rows * columns);
        return;
    }
    compute(run->loops, run->result, a, b, rows * columns);
    if (!run->out.casts.plain) {
        run_chain(run, &run->out.casts, run->blocks[0], run->out.size, run->result, run->writes_size, rows * columns);
        block = run->blocks[0];
    }
    stki_tile_copy(run->isa, out, adjacent(block, run->out.size, columns), run->out.size, rows, columns);
}

/* Computes a tile of long rows; inputs that are contiguous along them are read in place. */
static void run_row_tile(struct run *run, char *const *at, int64_t rows, int64_t columns)
{
    stki_tile out = tile_of(run, 0, at[0]);
    int64_t stride[2];
    struct row row[2];

    for (int k = 0; k < 2; k++) {
        stki_tile tile = tile_of(run, k + 1, at[k + 1]);
        bool in_place = !run->in[k].one && run->in[k].casts.plain && tile.column_stride == run->in[k].size;
        row[k].one = run->in[k].one;
        row[k].at = in_place ? at[k + 1] : load_tile(run, k, at[k + 1], rows, columns);
        stride[k] = in_place ? tile.row_stride : columns * run->compute_size;
    }
    for (int64_t i = 0; i < rows; i++)
        compute_row(run, at[0] + i * out.row_stride, out.column_stride, skip(row[0], i * stride[0]),
                    skip(row[1], i * stride[1]), columns);
}

static void run_tile(struct run *run, char *const *at, int64_t rows, int64_t columns)
{
    if (run->in[0].one && run->in[1].one) {
        char value[MAX_SIZE];
        compute_one(run, value, run->in[0].one, run->in[1].one);
        stki_tile_copy(run->isa, tile_of(run, 0, at[0]), (stki_tile){value, 0, 0}, run->out.size, rows, columns);
    } else if (columns < SHORT_ROW) {
        run_packed_tile(run, at, rows, columns);
    } else {
        run_row_tile(run, at, rows, columns);
    }
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The number of elements in a tile that fits in each block. */
static int64_t tile_elements(const struct run *run)
{
    int64_t size = larger(larger(run->compute_size, run->writes_size), run->out.size);

    for (int k = 0; k < 2; k++)
        if (!run->in[k].one)
            size = larger(size, larger(run->in[k].size, run->in[k].casts.middle));
    return TILE_BYTES / larger(size, run->out.casts.middle);
}

static void run_tiles(struct run *run, const void *const *data)
{
    const stki_strided *plan = &run->plan;
    int down = plan->ndim - 2, across = plan->ndim - 1;
    int64_t columns = plan->shape[across] < TILE_COLUMNS ? plan->shape[across] : TILE_COLUMNS;
    int64_t rows = tile_elements(run) / columns;
    stki_walk walk;

    if (!stki_walk_begin(&walk, plan, 2, data))
        return;
    do
        for (int64_t i = 0; i < plan->shape[down]; i += rows)
            for (int64_t j = 0; j < plan->shape[across]; j += columns) {
                char *at[3];
                for (int k = 0; k < 3; k++)
                    at[k] = walk.at[k] + i * plan->strides[k][down] + j * plan->strides[k][across];
                run_tile(run, at, plan->shape[down] - i < rows ? plan->shape[down] - i : rows,
                         plan->shape[across] - j < columns ? plan->shape[across] - j : columns);
            }
    while (stki_walk_next(&walk));
}

/* The axis along which an input has the smallest stride, if that is not the output's last axis; -1: none. */
static int crossing_axis(const stki_strided *plan, int operand)
{
    int last = plan->ndim - 1, nearest = -1;
    int64_t smallest = llabs(plan->strides[operand][last]);

    if (smallest == 0)
        return -1;
    for (int axis = 0; axis < last; axis++) {
        int64_t stride = llabs(plan->strides[operand][axis]);
        if (stride != 0 && stride < smallest) {
            smallest = stride;
            nearest = axis;
        }
    }
    return nearest;
}

static bool choose_tiles(struct run *run)
{
    stki_strided *plan = &run->plan;
    int axis = -1;

    if (plan->ndim < 2 || plan->count == 0)
        return false;
    for (int k = 1; k < 3 && axis < 0; k++)
        axis = crossing_axis(plan, k);
    if (axis >= 0)
        stki_strided_second_last(plan, axis);
    return axis >= 0 || plan->shape[plan->ndim - 1] < SHORT_ROW;
}

/* ---- begin ---- */

static bool all_zero(const stki_strided *plan, int operand)
{
    for (int i = 0; i < plan->ndim; i++)
        if (plan->strides[operand][i] != 0)
            return false;
    return true;
}

static void begin_input(struct run *run, const stki_elementwise *op, int k, stki_input input)
{
    struct side *in = &run->in[k];

    in->one = input.constants;
    in->casts.plain = false;
    if (!input.tensor)
        return;
    in->size = stk_dtype_size(input.tensor->dtype);
    init_chain(&in->casts, input.tensor->dtype, op->common, op->compute);
    if (run->plan.count > 0 && all_zero(&run->plan, k + 1)) {
        run_chain(run, &in->casts, in->value, run->compute_size, input.tensor->data, 0, 1);
        in->one = in->value;
    }
}

/* When memory is the bottleneck, vectors of 32 bytes are at least as fast on AVX-512 processors: on Zen 4, adding in
 * place over 150 MB runs at 53 GB/s instead of 48. All variants produce bit-identical results. */
static enum stki_isa loops_isa(const stki_elementwise *op, const stk_tensor *out)
{
    enum { IN_CACHE = 1 << 20 };

    return op->isa == STKI_ISA_AVX512 && stk_tensor_nbytes(out) > IN_CACHE ? STKI_ISA_AVX2 : op->isa;
}

/* Streaming stores pay off if the output does not fit in the caches and is not also an input, which would be cached. */
static bool wants_streaming(const stki_elementwise *op, const stk_tensor *out, stki_input a, stki_input b)
{
    bool in_place = (a.tensor && a.tensor->data == out->data) || (b.tensor && b.tensor->data == out->data);

    return op->stores == STKI_STORES_STREAMING ||
           (op->stores == STKI_STORES_AUTO && !in_place && stk_tensor_nbytes(out) > stki_cache_bytes());
}

/* Vectors of 32 bytes are also the fastest on AVX-512 processors. */
static const stki_loops *find_stream_loops(enum stki_isa isa, enum stki_loop loop, stk_dtype dtype)
{
#if defined(__x86_64__)
    if ((isa == STKI_ISA_AVX2 || isa == STKI_ISA_AVX512) && stki_stream_loops_avx2[loop][dtype].both)
        return &stki_stream_loops_avx2[loop][dtype];
#endif
    (void)isa, (void)loop, (void)dtype;
    return NULL;
}

void stki_elementwise_run(const stki_elementwise *op, const stk_tensor *out, stki_input a, stki_input b)
{
    int64_t strides[2][STK_MAX_DIMS];
    const void *data[3] = {out->data, a.tensor ? a.tensor->data : out->data, b.tensor ? b.tensor->data : out->data};
    const stki_fast *fast = stki_fast_of(op->isa);
    struct run run;

    stki_broadcast_strides(out, a.tensor, strides[0]);
    stki_broadcast_strides(out, b.tensor, strides[1]);
    run.isa = op->isa;
    run.loops = stki_loops_find(loops_isa(op, out), op->loop, op->compute);
    run.stream = fast && wants_streaming(op, out, a, b) ? fast->stream : NULL;
    run.stream_loops = run.stream ? find_stream_loops(op->isa, op->loop, op->compute) : NULL;
    run.compute_size = stk_dtype_size(op->compute);
    run.writes_size = stk_dtype_size(op->writes);
    run.out.size = stk_dtype_size(out->dtype);
    init_chain(&run.out.casts, op->writes, op->result, out->dtype);
    stki_strided_plan(&run.plan, 3, (const int64_t *const[]){out->strides, strides[0], strides[1]}, out->ndim,
                      out->shape, STKI_ANY_ORDER);
    begin_input(&run, op, 0, a);
    begin_input(&run, op, 1, b);
    if (choose_tiles(&run))
        run_tiles(&run, data);
    else
        run_rows(&run, data);
    if (run.stream)
        stki_store_fence();
}
