/* ops_sum.c: sum and mean.
 *
 * Floats are added in f64: with plain additions within runs of rows or columns (ops_sum_loops.h), and with compensation
 * (two-sum) from run to run, so that errors do not grow with the length. Integers are added as u64, which wraps.
 * Elements that are not contiguous f32, f64 or 64-bit integers are cast to a wide form in a block first. */
#include "allocate.h"
#include "cast.h"
#include "device_kernels.h"
#include "device_table.h"
#include "dtype.h"
#include "error.h"
#include "ops_frame.h"
#include "ops_promote.h"
#include "ops_reduce.h"
#include "ops_sum_loops.h"
#include "ops_unaligned.h"
#include "profile_scope.h"
#include "stream.h"
#include "tensor_internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

stki_sum_loops stki_sum_loops_of(enum stki_isa isa)
{
#if defined(__x86_64__)
    if (isa == STKI_ISA_AVX2)
        return stki_sum_loops_avx2;
    if (isa == STKI_ISA_AVX512) { /* rows use AVX2, which is faster on Zen 4: 95 GB/s instead of 60 from the cache */
        stki_sum_loops loops = stki_sum_loops_avx512;
        loops.row_f32 = stki_sum_loops_avx2.row_f32;
        loops.row_f64 = stki_sum_loops_avx2.row_f64;
        return loops;
    }
#endif
    (void)isa;
    return stki_sum_loops_ref;
}

enum {
    RUN_ROW = 4096,     /* elements of a row that are added without compensation */
    RUN_COLUMNS = 512,  /* rows whose columns are added without compensation; */
    RUN_NARROW = 32768, /* the same for f32, whose sums in f64 have precision to spare */
    BLOCK = 512,
    FEW_COLUMNS = 32,    /* rows with fewer columns are combined into long rows */
    LONG_COLUMNS = 1024, /* maximum number of elements in such a long row */
    SHORT_ROW = 8,
    CELLS = LONG_COLUMNS, /* number of results for which the struct has memory */
    MOST_CELLS = 16384    /* maximum number of results in allocated memory; large, so that long rows are read at once */
};

struct sum {
    stki_sum_loops loops;
    stk_dtype from, via, wide; /* dtype of the input; of the result, to which elements are cast first; f64 or i64 */
    stki_cast casts[2];
    int cast_count;
    bool plain; /* contiguous elements need no cast */
    int64_t size;
    stki_cast store;      /* casts from the wide form to the output's dtype */
    double divisor;       /* 0: a sum */
    int64_t block[BLOCK]; /* elements in the wide form */
    int64_t middle[BLOCK];
    double *run;        /* sums of the current run, to be added to sum[i] */
    double *sum, *rest; /* results, and the accumulated rounding errors of additions to sum[i] */
    uint64_t *whole;    /* results of integers */
    double own[4][CELLS];
    void *memory; /* NULL: `own` is used */
    int64_t bytes;
};

/* ---- memory for results ---- */

static void set_room(struct sum *s, double *memory, int64_t cells)
{
    s->run = memory;
    s->sum = memory + cells;
    s->rest = memory + 2 * cells;
    s->whole = (void *)(memory + 3 * cells);
}

/* Allocates memory for results. *cells: the number of results computed at a time. */
static stk_status make_room(struct sum *s, const stk_tensor *out, int64_t *cells, stk_error *err)
{
    int64_t wanted = stk_tensor_numel(out);

    s->memory = NULL;
    *cells = CELLS;
    set_room(s, s->own[0], CELLS);
    if (wanted <= CELLS)
        return STK_OK;
    *cells = wanted < MOST_CELLS ? wanted : MOST_CELLS;
    s->bytes = *cells * 4 * (int64_t)sizeof(double);
    s->memory = stki_block_alloc(NULL, s->bytes, 64);
    if (!s->memory)
        return stki_fail_memory(err, s->bytes, "a sum over columns");
    set_room(s, s->memory, *cells);
    return STK_OK;
}

/* ---- adding ---- */

/* Knuth's two-sum: the old sum plus x is exactly the new sum plus the amount added to `rest`. */
static void add_run(struct sum *s, int64_t cell, double x)
{
    double sum = s->sum[cell] + x, part = sum - s->sum[cell];

    s->rest[cell] += (s->sum[cell] - (sum - part)) + (x - part);
    s->sum[cell] = sum;
}

/* Returns `n` elements, at most BLOCK, in the wide form. */
static const void *load_block(struct sum *s, const char *x, int64_t step, int64_t n)
{
    if (s->cast_count == 2) {
        stki_cast_row(&s->casts[0], s->middle, stk_dtype_size(s->via), x, step, n);
        stki_cast_row(&s->casts[1], s->block, 8, s->middle, stk_dtype_size(s->via), n);
    } else {
        stki_cast_row(&s->casts[0], s->block, 8, x, step, n);
    }
    return s->block;
}

static uint64_t add_whole(const void *x, int64_t n)
{
    const stki_u64 *at = x;
    uint64_t sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += at[i];
    return sum;
}

static bool is_direct(const struct sum *s, int64_t step)
{
    return s->plain && step == s->size;
}

static void add_row(struct sum *s, int64_t cell, const char *x, int64_t n, int64_t step)
{
    bool direct = is_direct(s, step);
    int64_t longest = direct ? RUN_ROW : BLOCK;

    for (int64_t first = 0; first < n; first += longest) {
        int64_t count = n - first < longest ? n - first : longest;
        const void *at = direct ? x + first * step : load_block(s, x + first * step, step, count);
        if (s->wide == STK_I64)
            s->whole[cell] += add_whole(at, count);
        else if (direct && s->from == STK_F32)
            add_run(s, cell, s->loops.row_f32(at, count));
        else
            add_run(s, cell, s->loops.row_f64(at, count));
    }
}

/* ---- columns ---- */

static void add_whole_columns(uint64_t *acc, const void *x, int64_t columns)
{
    const stki_u64 *at = x;

    STKI_NO_OVERLAP
    for (int64_t j = 0; j < columns; j++)
        acc[j] += at[j];
}

/* Adds one row of columns that are not adjacent or need a cast. */
static void add_loaded_columns(struct sum *s, const char *x, int64_t cells, int64_t cell_step)
{
    for (int64_t first = 0; first < cells; first += BLOCK) {
        int64_t count = cells - first < BLOCK ? cells - first : BLOCK;
        const void *at = load_block(s, x + first * cell_step, cell_step, count);
        if (s->wide == STK_I64)
            add_whole_columns(s->whole + first, at, count);
        else
            s->loops.columns_f64(s->run + first, at, 0, 1, count);
    }
}

static void add_column_run(struct sum *s, const char *x, int64_t cells, int64_t cell_step, int64_t n, int64_t step)
{
    bool direct = is_direct(s, cell_step);

    if (direct && s->wide == STK_F64) {
        (s->from == STK_F32 ? s->loops.columns_f32 : s->loops.columns_f64)(s->run, x, step, n, cells);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        if (direct)
            add_whole_columns(s->whole, x + i * step, cells);
        else
            add_loaded_columns(s, x + i * step, cells, cell_step);
    }
}

static void clear_run(struct sum *s, int64_t cells)
{
    for (int64_t j = 0; j < cells; j++)
        s->run[j] = 0;
}

static int64_t longest_run(const struct sum *s)
{
    return s->from == STK_F32 && s->plain ? RUN_NARROW : RUN_COLUMNS;
}

static void add_columns(struct sum *s, const char *x, int64_t cells, int64_t cell_step, int64_t n, int64_t step)
{
    int64_t longest = longest_run(s);

    for (int64_t first = 0; first < n; first += longest) {
        int64_t count = n - first < longest ? n - first : longest;
        clear_run(s, cells);
        add_column_run(s, x + first * step, cells, cell_step, count, step);
        for (int64_t j = 0; j < cells; j++)
            add_run(s, j, s->run[j]);
    }
}

/* Adds a few contiguous columns without gaps between rows, such as channels in the last axis: several rows are treated
 * as one long row, and the sums of its columns are then combined. */
static void add_narrow_columns(struct sum *s, const char *x, int64_t cells, int64_t n, int64_t step)
{
    int64_t rows = LONG_COLUMNS / cells; /* rows of the tensor in one long row */
    int64_t long_rows = n / rows, done = long_rows * rows, longest = longest_run(s);

    for (int64_t first = 0; first < long_rows; first += longest) {
        int64_t count = long_rows - first < longest ? long_rows - first : longest;
        clear_run(s, rows * cells);
        add_column_run(s, x + first * rows * step, rows * cells, s->size, count, rows * step);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < cells; j++)
                add_run(s, j, s->run[i * cells + j]);
    }
    add_columns(s, x + done * step, cells, s->size, n - done, step);
}

/* Adds rows of a few elements, one after another. */
#define SHORT_ROWS(name)                                                                                         \
    static void add_short_rows_##name(struct sum *s, const char *x, int64_t cells, int64_t cell_step, int64_t n, \
                                      int64_t step)                                                              \
    {                                                                                                            \
        for (int64_t j = 0; j < cells; j++) {                                                                    \
            double sum = 0;                                                                                      \
            for (int64_t i = 0; i < n; i++)                                                                      \
                sum += (double)*(const stki_##name *)(const void *)(x + j * cell_step + i * step);               \
            add_run(s, j, sum);                                                                                  \
        }                                                                                                        \
    }
SHORT_ROWS(f32)
SHORT_ROWS(f64)

/* ---- the reducer ---- */

static void begin(void *state, int64_t cells)
{
    struct sum *s = state;

    for (int64_t j = 0; j < cells; j++) {
        s->sum[j] = s->rest[j] = 0;
        s->whole[j] = 0;
    }
}

static void add(void *state, const char *x, int64_t cells, int64_t cell_step, int64_t n, int64_t step)
{
    struct sum *s = state;

    if (n < SHORT_ROW && s->plain && s->wide == STK_F64) {
        (s->from == STK_F32 ? add_short_rows_f32 : add_short_rows_f64)(s, x, cells, cell_step, n, step);
        return;
    }
    if (cells > 1 && (llabs(cell_step) < llabs(step) || n < SHORT_ROW)) {
        if (cells < FEW_COLUMNS && is_direct(s, cell_step) && step == cells * cell_step && s->wide == STK_F64)
            add_narrow_columns(s, x, cells, n, step);
        else
            add_columns(s, x, cells, cell_step, n, step);
        return;
    }
    for (int64_t j = 0; j < cells; j++)
        add_row(s, j, x + j * cell_step, n, step);
}

/* The rounding error is not meaningful if the sum is infinite or NaN. */
static double total(const struct sum *s, int64_t cell)
{
    return isfinite(s->rest[cell]) ? s->sum[cell] + s->rest[cell] : s->sum[cell];
}

static void end(void *state, char *out, int64_t out_step, int64_t cells)
{
    struct sum *s = state;

    if (s->wide == STK_I64) {
        stki_cast_row(&s->store, out, out_step, s->whole, 8, cells);
        return;
    }
    for (int64_t j = 0; j < cells; j++)
        s->run[j] = s->divisor != 0 ? total(s, j) / s->divisor : total(s, j);
    stki_cast_row(&s->store, out, out_step, s->run, 8, cells);
}

/* ---- calls ---- */

struct call {
    const char *name;
    bool mean, keep;
    bool reduced[STK_MAX_DIMS];
    stk_dtype dtype; /* dtype of the result; elements are cast to it first */
    int ndim;
    int64_t shape[STK_MAX_DIMS]; /* shape of the result */
};

static void init_casts(struct sum *s, stk_dtype from, stk_dtype via)
{
    s->from = from;
    s->via = via;
    s->wide = stki_dtype_category(via) == STKI_CATEGORY_REAL ? STK_F64 : STK_I64;
    s->size = stk_dtype_size(from);
    s->plain = (from == via && (from == STK_F32 || from == s->wide)) || (from == STK_U64 && via == STK_I64);
    s->cast_count = from != via && via != s->wide ? 2 : 1;
    stki_cast_init(&s->casts[0], s->cast_count == 2 ? via : s->wide, from, false);
    stki_cast_init(&s->casts[1], s->wide, via, false);
    stki_cast_init(&s->store, via, s->wide, false);
}

static stk_status run_call(void *context, const stk_tensor *const *tensors, stk_error *err)
{
    const struct call *call = context;
    const stk_tensor *out = tensors[0], *in = tensors[1];
    struct sum s;
    stki_reducer reducer = {&s, 0, begin, add, end};
    stk_status status = make_room(&s, out, &reducer.max_cells, err);

    if (status != STK_OK)
        return status;
    init_casts(&s, in->dtype, call->dtype);
    s.loops = stki_sum_loops_of(stki_isa());
    s.divisor = call->mean ? (double)stki_reduce_count(in, call->reduced) : 0;
    stki_reduce_run(&reducer, out, in, call->reduced, call->keep);
    stki_block_free(NULL, s.memory, s.bytes, 64);
    return STK_OK;
}

/* The sum of no elements is 0, and their mean is NaN. */
static stk_status fill_empty(const struct call *call, stk_tensor *out, stk_error *err)
{
    return stk_tensor_fill(out, stk_real(call->mean ? (double)NAN : 0), err);
}

/* Runs the device's own kernel. STK_E_UNSUPPORTED: it has none. */
static stk_status run_on_device(const struct call *call, const stk_tensor *in, const stk_tensor *out, stk_error *err)
{
    stk_device *device = stki_tensor_device(in);
    stki_sum_job job = {.out = out, .in = in, .reduced = call->reduced, .keep = call->keep};
    stk_status status;

    if (!device->ops->sum)
        return STK_E_UNSUPPORTED;
    job.divisor = call->mean ? (double)stki_reduce_count(in, call->reduced) : 0;
    status = device->ops->sum(device, &job, stki_stream_for(device, NULL), err);
    if (status == STK_E_UNSUPPORTED)
        stki_error_clear(err);
    return status;
}

static stk_status run_into(struct call *call, const stk_tensor *in, stk_tensor *out, stk_error *err)
{
    stk_status status;

    if (stk_tensor_numel(in) == 0)
        return fill_empty(call, out, err);
    status = run_on_device(call, in, out, err);
    if (status != STK_E_UNSUPPORTED)
        return status;
    return stki_run_on_host((const stk_tensor *const[]){out, in}, 2, 1, run_call, call, err);
}

static stk_status run_fresh(struct call *call, const stk_tensor *in, stk_tensor *out, stk_error *err)
{
    stk_tensor made;
    stk_status status = stk_tensor_empty(call->dtype, call->ndim, call->shape, stki_tensor_device(in), &made, err);

    if (status != STK_OK)
        return status;
    status = run_into(call, in, &made, err);
    if (status != STK_OK) {
        stk_tensor_release(&made);
        return status;
    }
    *out = made;
    return STK_OK;
}

/* `dtype` NONE: floating-point dtypes are kept, the others become i64. */
static stk_status begin_call(struct call *call, const char *name, const stk_tensor *in, int dim_count, const int *dims,
                             bool keep, stk_dtype dtype, stk_error *err)
{
    stk_status status = stki_check_computable(in, name, err);

    *call = (struct call){.name = name, .keep = keep, .dtype = dtype};
    status = status != STK_OK ? status : stki_reduce_axes(in, dim_count, dims, call->reduced, name, err);
    if (status != STK_OK)
        return status;
    if (dtype == STK_DTYPE_NONE)
        call->dtype = stki_dtype_category(in->dtype) == STKI_CATEGORY_REAL ? in->dtype : STK_I64;
    else
        status = stki_check_computable(&(stk_tensor){.dtype = dtype}, name, err);
    call->ndim = stki_reduce_shape(in, call->reduced, keep, call->shape);
    return status;
}

stk_status stk_tensor_sum(const stk_tensor *tensor, int dim_count, const int *dims, bool keep, stk_dtype dtype,
                          stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("sum");
    struct call call;
    stk_status status = begin_call(&call, "sum", tensor, dim_count, dims, keep, dtype, err);

    return status != STK_OK ? status : run_fresh(&call, tensor, out, err);
}

stk_status stk_tensor_mean(const stk_tensor *tensor, int dim_count, const int *dims, bool keep, stk_dtype dtype,
                           stk_tensor *out, stk_error *err)
{
    STKI_PROFILE("mean");
    struct call call;
    stk_status status = begin_call(&call, "mean", tensor, dim_count, dims, keep, dtype, err);

    if (status != STK_OK)
        return status;
    call.mean = true;
    if (stki_dtype_category(call.dtype) != STKI_CATEGORY_REAL)
        return stki_fail(err, STK_E_BAD_DTYPE, "mean: not defined for %s; request a floating-point dtype",
                         stk_dtype_name(dtype == STK_DTYPE_NONE ? tensor->dtype : dtype));
    return run_fresh(&call, tensor, out, err);
}

/* ---- into an existing tensor ---- */

static bool same_shape(const struct call *call, const stk_tensor *out)
{
    if (out->ndim != call->ndim)
        return false;
    for (int i = 0; i < call->ndim; i++)
        if (out->shape[i] != call->shape[i])
            return false;
    return true;
}

static stk_status check_output(const struct call *call, const stk_tensor *in, const stk_tensor *out, stk_error *err)
{
    if (!same_shape(call, out))
        return stki_fail(err, STK_E_BAD_BROADCAST, "sum: the result has shape %s, but the output has shape %s",
                         STKI_SHAPE(call->ndim, call->shape), STKI_SHAPE(out->ndim, out->shape));
    stk_status status = stki_check_one_device((const stk_tensor *const[]){in, out}, 2, err);
    status = status != STK_OK ? status : stki_check_writable(out, err);
    return status != STK_OK ? status : stki_check_overlap(out, in, err);
}

stk_status stk_tensor_sum_into(const stk_tensor *tensor, int dim_count, const int *dims, bool keep, stk_tensor *out,
                               stk_error *err)
{
    STKI_PROFILE("sum_into");
    struct call call;
    stk_tensor sum;
    stk_status status = begin_call(&call, "sum", tensor, dim_count, dims, keep, out->dtype, err);

    status = status != STK_OK ? status : check_output(&call, tensor, out, err);
    if (status != STK_OK)
        return status;
    if (!stki_may_share(tensor, out))
        return run_into(&call, tensor, out, err);
    /* The memory may overlap: no element may be written before all have been read. */
    status = run_fresh(&call, tensor, &sum, err);
    if (status != STK_OK)
        return status;
    status = stk_tensor_copy(out, &sum, err);
    stk_tensor_release(&sum);
    return status;
}
