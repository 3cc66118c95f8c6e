/* ops_extreme.c: minima and maxima over dimensions. f16 and bf16 are compared as f32, which holds them exactly. */
#include "cast.h"
#include "dtype.h"
#include "error.h"
#include "ops_extreme_loops.h"
#include "ops_frame.h"
#include "ops_promote.h"
#include "ops_reduce.h"
#include "profile_scope.h"
#include "sync_device.h"
#include "tensor_internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const stki_extreme_loops *stki_extreme_loops_of(enum stki_isa isa, stk_dtype dtype, bool largest)
{
#if defined(__x86_64__)
    if (isa == STKI_ISA_AVX512)
        return &stki_extreme_loops_avx512[largest][dtype];
    if (isa == STKI_ISA_AVX2)
        return &stki_extreme_loops_avx2[largest][dtype];
#endif
    (void)isa;
    return &stki_extreme_loops_ref[largest][dtype];
}

void stki_extreme_fill(void *best, stk_dtype dtype, bool largest, int64_t count)
{
    int64_t size = stk_dtype_size(dtype);
    char worst[8];

    if (dtype == STK_F32) {
        memcpy(worst, &(float){largest ? -INFINITY : INFINITY}, sizeof(float));
    } else if (dtype == STK_F64) {
        memcpy(worst, &(double){largest ? -(double)INFINITY : (double)INFINITY}, sizeof(double));
    } else {
        memset(worst, largest ? 0 : 0xff, sizeof worst);
        if (stki_dtype_signed(dtype))
            worst[size - 1] = (char)(largest ? 0x80 : 0x7f); /* the byte with the sign; little-endian */
        if (dtype == STK_BOOL)
            worst[0] = !largest;
    }
    stki_fill_bytes(best, worst, size, count);
}

enum { BLOCK = 512, CELLS = 1024, MAX_SIZE = 8 };

struct extreme {
    const stki_extreme_loops *loops;
    stk_dtype compute;
    bool largest, plain; /* plain: contiguous elements need no cast */
    int64_t size, compute_size;
    stki_cast load, store;
    _Alignas(64) char block[BLOCK * MAX_SIZE];
    _Alignas(64) char best[CELLS * MAX_SIZE];
};

/* ---- the reducer ---- */

static const void *load_block(struct extreme *e, const char *x, int64_t step, int64_t n)
{
    stki_cast_row(&e->load, e->block, e->compute_size, x, step, n);
    return e->block;
}

static void add_row(struct extreme *e, int64_t cell, const char *x, int64_t n, int64_t step)
{
    char *best = e->best + cell * e->compute_size;

    if (e->plain && step == e->size) {
        e->loops->row(best, x, n);
        return;
    }
    for (int64_t first = 0; first < n; first += BLOCK) {
        int64_t count = n - first < BLOCK ? n - first : BLOCK;
        e->loops->row(best, load_block(e, x + first * step, step, count), count);
    }
}

static void add_columns(struct extreme *e, const char *x, int64_t cells, int64_t cell_step)
{
    if (e->plain && cell_step == e->size) {
        e->loops->columns(e->best, x, cells);
        return;
    }
    for (int64_t first = 0; first < cells; first += BLOCK) {
        int64_t count = cells - first < BLOCK ? cells - first : BLOCK;
        e->loops->columns(e->best + first * e->compute_size, load_block(e, x + first * cell_step, cell_step, count),
                          count);
    }
}

static void begin(void *state, int64_t cells)
{
    struct extreme *e = state;

    stki_extreme_fill(e->best, e->compute, e->largest, cells);
}

static void add(void *state, const char *x, int64_t cells, int64_t cell_step, int64_t n, int64_t step)
{
    if (cells > 1 && (llabs(cell_step) < llabs(step) || n < 8))
        for (int64_t i = 0; i < n; i++)
            add_columns(state, x + i * step, cells, cell_step);
    else
        for (int64_t j = 0; j < cells; j++)
            add_row(state, j, x + j * cell_step, n, step);
}

static void end(void *state, char *out, int64_t out_step, int64_t cells)
{
    struct extreme *e = state;

    stki_cast_row(&e->store, out, out_step, e->best, e->compute_size, cells);
}

/* ---- calls ---- */

struct call {
    bool largest, keep;
    bool reduced[STK_MAX_DIMS];
};

static stk_status run_call(void *context, const stk_tensor *const *tensors, stk_error *err)
{
    const struct call *call = context;
    const stk_tensor *out = tensors[0], *in = tensors[1];
    struct extreme e;
    stki_reducer reducer = {&e, CELLS, begin, add, end};

    (void)err;
    e.compute = stki_compute_dtype(in->dtype);
    e.largest = call->largest;
    e.plain = e.compute == in->dtype && in->dtype != STK_BOOL;
    e.size = stk_dtype_size(in->dtype);
    e.compute_size = stk_dtype_size(e.compute);
    e.loops = stki_extreme_loops_of(stki_isa(), e.compute, call->largest);
    stki_cast_init(&e.load, e.compute, in->dtype, false);
    stki_cast_init(&e.store, in->dtype, e.compute, false);
    stki_reduce_run(&reducer, out, in, call->reduced, call->keep);
    return STK_OK;
}

static stk_status extreme(const char *name, bool largest, const stk_tensor *tensor, int dim_count, const int *dims,
                          bool keep, stk_tensor *out, stk_error *err)
{
    struct call call = {.largest = largest, .keep = keep};
    int64_t shape[STK_MAX_DIMS];
    stk_tensor made;
    stk_status status = stki_check_computable(tensor, name, err);

    status = status != STK_OK ? status : stki_reduce_axes(tensor, dim_count, dims, call.reduced, name, err);
    if (status != STK_OK)
        return status;
    if (stki_reduce_count(tensor, call.reduced) == 0)
        return stki_fail(err, STK_E_EMPTY_REDUCE, "%s: shape %s has no elements", name,
                         STKI_SHAPE(tensor->ndim, tensor->shape));
    status = stk_tensor_empty(tensor->dtype, stki_reduce_shape(tensor, call.reduced, keep, shape), shape,
                              stki_tensor_device(tensor), &made, err);
    if (status != STK_OK)
        return status;
    if (stk_tensor_numel(tensor) > 0)
        status = stki_run_on_host((const stk_tensor *const[]){&made, tensor}, 2, 1, run_call, &call, err);
    if (status != STK_OK) {
        stk_tensor_release(&made);
        return status;
    }
    *out = made;
    return STK_OK;
}

stk_status stk_tensor_amin(const stk_tensor *tensor, int dim_count, const int *dims, bool keep, stk_tensor *out,
                           stk_error *err)
{
    STKI_PROFILE("amin");
    return extreme("amin", false, tensor, dim_count, dims, keep, out, err);
}

stk_status stk_tensor_amax(const stk_tensor *tensor, int dim_count, const int *dims, bool keep, stk_tensor *out,
                           stk_error *err)
{
    STKI_PROFILE("amax");
    return extreme("amax", true, tensor, dim_count, dims, keep, out, err);
}
