/* ops_elementwise.c: see ops_elementwise.h.
 *
 * The axes are planned once (strided.h), in the order of the output's memory. Then there are two ways over them:
 *   rows   the last axis at once. Adjacent operands of the right dtype go to the loops as they lie; others pass through
 *          a block that stays in the first-level cache: gathered, cast, computed, cast, stored.
 *   tiles  two axes at once, for operands whose neighbours in memory lie along another axis than the output's (each
 *          cache line is then read once for the whole tile), and for rows too short to be worth a call each. Everything
 *          that is not adjacent is gathered into a block first.
 */
#include "ops_elementwise.h"
#include "cast.h"
#include "ops_stream.h"
#include "ops_tile.h"
#include "strided.h"
#include <stdlib.h>
#include <string.h>

enum {
    ROW_BLOCK = 512, /* elements */
    TILE_BLOCK = 2048,
    TILE_COLUMNS = 64,
    SHORT_ROW = 32,
    MAX_SIZE = 8
};

/* One cast, or two in a row. */
struct chain {
    stki_cast casts[2];
    int count;
    int64_t middle; /* bytes an element between the two */
    bool plain;     /* changes nothing */
};

struct side {
    struct chain casts; /* of an input to the compute dtype; of the output from what the loops write */
    int64_t size;
    const void *one; /* an input that is one value all along, in the compute dtype; NULL: it is not */
    char value[MAX_SIZE];
};

struct run {
    const stki_loops *loops;
    stki_strided plan; /* operand 0 is the output */
    struct side out, in[2];
    stki_stream_fn stream; /* NULL: ordinary stores */
    int64_t compute_size, writes_size;
    _Alignas(64) char blocks[2][TILE_BLOCK * MAX_SIZE]; /* the inputs in the compute dtype; [0]: later the output */
    _Alignas(64) char result[TILE_BLOCK * MAX_SIZE];    /* before that: elements as gathered */
    _Alignas(64) char scratch[TILE_BLOCK * MAX_SIZE];   /* between two casts */
};

/* ---- casts ------------------------------------------------------------------------------------------------------- */

static void init_chain(struct chain *chain, stk_dtype from, stk_dtype via, stk_dtype to)
{
    chain->count = from != via && via != to ? 2 : 1;
    chain->middle = stk_dtype_size(via);
    /* bool is cast even to itself: bytes of elsewhere may be other than 0 and 1 */
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
    stki_cast_row(&chain->casts[0], run->scratch, chain->middle, src, src_step, n);
    stki_cast_row(&chain->casts[1], dst, dst_step, run->scratch, chain->middle, n);
}

/* ---- the loops --------------------------------------------------------------------------------------------------- */

static void compute(const struct run *run, void *dst, const void *a, bool one_a, const void *b, bool one_b, int64_t n)
{
    (one_b ? run->loops->with_one : one_a ? run->loops->one_with : run->loops->both)(dst, a, b, n);
}

/* The value of two inputs that are one value each, in the output's dtype. */
static void compute_one(struct run *run, void *value, const void *a, const void *b)
{
    char result[MAX_SIZE];

    run->loops->with_one(result, a, b, 1);
    run_chain(run, &run->out.casts, value, run->out.size, result, run->writes_size, 1);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

struct row {
    const char *at[2];
    int64_t step[2];
    bool one[2], direct[2];
};

static void begin_row(struct run *run, const stki_walk *walk, struct row *row)
{
    int last = run->plan.ndim - 1;

    for (int k = 0; k < 2; k++) {
        struct side *in = &run->in[k];
        row->step[k] = run->plan.strides[k + 1][last];
        row->one[k] = in->one || row->step[k] == 0;
        row->direct[k] = in->casts.plain && row->step[k] == in->size;
        row->at[k] = walk->at[k + 1];
        if (in->one)
            row->at[k] = in->one;
        else if (row->one[k]) {
            run_chain(run, &in->casts, in->value, run->compute_size, walk->at[k + 1], 0, 1);
            row->at[k] = in->value;
        }
    }
}

/* Elements [first, first + n) of input k, ready for the loops. */
static const void *fetch_row(struct run *run, const struct row *row, int k, int64_t first, int64_t n)
{
    if (row->one[k])
        return row->at[k];
    if (row->direct[k])
        return row->at[k] + first * row->step[k];
    run_chain(run, &run->in[k].casts, run->blocks[k], run->compute_size, row->at[k] + first * row->step[k],
              row->step[k], n);
    return run->blocks[k];
}

static void stream_block(struct run *run, char *dst, int64_t n)
{
    const void *block = run->result;

    if (!run->out.casts.plain) {
        run_chain(run, &run->out.casts, run->blocks[0], run->out.size, run->result, run->writes_size, n);
        block = run->blocks[0];
    }
    run->stream((uint8_t *)dst, block, n * run->out.size);
}

static void run_row(struct run *run, const stki_walk *walk)
{
    int64_t count = run->plan.shape[run->plan.ndim - 1], step = run->plan.strides[0][run->plan.ndim - 1];
    bool direct = run->out.casts.plain && step == run->out.size && !run->stream;
    int64_t block = ROW_BLOCK;
    char *dst = walk->at[0];
    struct row row;

    begin_row(run, walk, &row);
    if (row.one[0] && row.one[1]) {
        char value[MAX_SIZE];
        compute_one(run, value, row.at[0], row.at[1]);
        for (int64_t i = 0; i < count; i++)
            memcpy(dst + i * step, value, (size_t)run->out.size);
        return;
    }
    if (direct && (row.one[0] || row.direct[0]) && (row.one[1] || row.direct[1]))
        block = count;
    for (int64_t first = 0; first < count; first += block) {
        int64_t n = count - first < block ? count - first : block;
        const void *a = fetch_row(run, &row, 0, first, n), *b = fetch_row(run, &row, 1, first, n);
        compute(run, direct ? dst + first * step : run->result, a, row.one[0], b, row.one[1], n);
        if (run->stream)
            stream_block(run, dst + first * step, n);
        else if (!direct)
            run_chain(run, &run->out.casts, dst + first * step, step, run->result, run->writes_size, n);
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

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

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

static const void *fetch_tile(struct run *run, int k, char *at, int64_t rows, int64_t columns)
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
        stki_tile_copy(adjacent(to, in->size, columns), tile, in->size, rows, columns);
        at = to;
    }
    if (!in->casts.plain)
        run_chain(run, &in->casts, run->blocks[k], run->compute_size, at, in->size, rows * columns);
    return run->blocks[k];
}

static void store_tile(struct run *run, char *at, int64_t rows, int64_t columns)
{
    stki_tile tile = tile_of(run, 0, at);
    char *block = run->result;

    if (!run->out.casts.plain) {
        run_chain(run, &run->out.casts, run->blocks[0], run->out.size, run->result, run->writes_size, rows * columns);
        block = run->blocks[0];
    }
    if (!run->stream) {
        stki_tile_copy(tile, adjacent(block, run->out.size, columns), run->out.size, rows, columns);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        run->stream((uint8_t *)at + i * tile.row_stride, (uint8_t *)block + i * columns * run->out.size,
                    columns * run->out.size);
}

static void run_tile(struct run *run, char *const *at, int64_t rows, int64_t columns)
{
    stki_tile out = tile_of(run, 0, at[0]);
    bool direct = run->out.casts.plain && !run->stream && is_adjacent(out, run->out.size, rows, columns);

    if (run->in[0].one && run->in[1].one) {
        char value[MAX_SIZE];
        compute_one(run, value, run->in[0].one, run->in[1].one);
        stki_tile_copy(out, (stki_tile){value, 0, 0}, run->out.size, rows, columns);
        return;
    }
    const void *a = fetch_tile(run, 0, at[1], rows, columns), *b = fetch_tile(run, 1, at[2], rows, columns);
    compute(run, direct ? at[0] : run->result, a, run->in[0].one, b, run->in[1].one, rows * columns);
    if (!direct)
        store_tile(run, at[0], rows, columns);
}

static void run_tiles(struct run *run, const void *const *data)
{
    const stki_strided *plan = &run->plan;
    int down = plan->ndim - 2, across = plan->ndim - 1;
    int64_t columns = plan->shape[across] < TILE_COLUMNS ? plan->shape[across] : TILE_COLUMNS;
    int64_t rows = TILE_BLOCK / columns;
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

/* Moves an axis to the last but one place. */
static void move_down(stki_strided *plan, int axis)
{
    for (; axis < plan->ndim - 2; axis++) {
        int64_t length = plan->shape[axis];
        plan->shape[axis] = plan->shape[axis + 1];
        plan->shape[axis + 1] = length;
        for (int k = 0; k < plan->operands; k++) {
            int64_t stride = plan->strides[k][axis];
            plan->strides[k][axis] = plan->strides[k][axis + 1];
            plan->strides[k][axis + 1] = stride;
        }
    }
}

/* The axis along which an input's neighbours in memory lie, if that is not the output's last one; -1: there is none. */
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
        move_down(plan, axis);
    return axis >= 0 || plan->shape[plan->ndim - 1] < SHORT_ROW;
}

/* ---- begin ------------------------------------------------------------------------------------------------------- */

/* Strides over the output's shape: none along axes that are not there or have length 1. */
static void spread(const stk_tensor *out, const stk_tensor *in, int64_t *strides)
{
    int lead = out->ndim - (in ? in->ndim : 0);

    for (int i = 0; i < out->ndim; i++)
        strides[i] = in && i >= lead && in->shape[i - lead] > 1 ? in->strides[i - lead] : 0;
}

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

/* Past the caches if the output does not fit into them anyway, and is not read as an input, which brings it there. */
static void choose_stores(struct run *run, const stk_tensor *out, stki_input a, stki_input b)
{
    bool large = stk_tensor_nbytes(out) > stki_cache_bytes();
    bool adjacent_out = run->plan.strides[0][run->plan.ndim - 1] == run->out.size;
    bool in_place = (a.tensor && a.tensor->data == out->data) || (b.tensor && b.tensor->data == out->data);

    run->stream = large && adjacent_out && !in_place ? stki_stream_copy() : NULL;
}

void stki_elementwise_run(const stki_elementwise *op, const stk_tensor *out, stki_input a, stki_input b)
{
    int64_t strides[2][STK_MAX_DIMS];
    const void *data[3] = {out->data, a.tensor ? a.tensor->data : out->data, b.tensor ? b.tensor->data : out->data};
    struct run run;

    spread(out, a.tensor, strides[0]);
    spread(out, b.tensor, strides[1]);
    run.loops = op->loops;
    run.compute_size = stk_dtype_size(op->compute);
    run.writes_size = stk_dtype_size(op->writes);
    run.out.size = stk_dtype_size(out->dtype);
    init_chain(&run.out.casts, op->writes, op->result, out->dtype);
    stki_strided_plan(&run.plan, 3, (const int64_t *const[]){out->strides, strides[0], strides[1]}, out->ndim,
                      out->shape, STKI_ANY_ORDER);
    begin_input(&run, op, 0, a);
    begin_input(&run, op, 1, b);
    choose_stores(&run, out, a, b);
    if (choose_tiles(&run))
        run_tiles(&run, data);
    else
        run_rows(&run, data);
    if (run.stream)
        stki_store_fence();
}
