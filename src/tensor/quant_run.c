/* quant_run.c: quantization of whole tensors, row by row. The channel is a third operand of the iteration: an index
 * into the parameters, with a stride along one axis only. Contiguous rows are passed to a kernel in place, others in
 * blocks through buffers. */
#include "cast.h"
#include "float_control.h"
#include "quant_internal.h"
#include "strided.h"
#include "tensor_internal.h"
#include <string.h>

enum { BLOCK = 512 }; /* elements; the buffers are 4 KiB */

struct pass {
    stki_quant_fn run;
    stki_quant_lane lane;
    int64_t dst_size, src_size;
    stki_cast gather, scatter;
};

/* `channel`: the channel of the first element; if the lane has a period, the channels repeat along the row. */
static void run_blocks(const struct pass *pass, char *dst, int64_t dst_step, const char *src, int64_t src_step,
                       int64_t n, int64_t channel)
{
    _Alignas(64) char in[4 * BLOCK], out[4 * BLOCK];

    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t here = n - i < BLOCK ? n - i : BLOCK;
        const char *from = src + i * src_step;
        char *to = dst + i * dst_step;
        if (src_step != pass->src_size) {
            stki_cast_row(&pass->gather, in, pass->src_size, from, src_step, here);
            from = in;
        }
        pass->run(&pass->lane, dst_step == pass->dst_size ? to : out, from, here, channel);
        if (dst_step != pass->dst_size)
            stki_cast_row(&pass->scatter, to, dst_step, out, pass->dst_size, here);
        if (pass->lane.period)
            channel = (channel + here) % pass->lane.period;
    }
}

static void run_row(const struct pass *pass, char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t n,
                    int64_t channel, int64_t channel_step)
{
    if (channel_step < 0) { /* the plan reversed the axis, but kernels need ascending channels */
        dst += (n - 1) * dst_step;
        src += (n - 1) * src_step;
        channel -= n - 1;
        dst_step = -dst_step;
        src_step = -src_step;
    }
    if (dst_step == pass->dst_size && src_step == pass->src_size)
        pass->run(&pass->lane, dst, src, n, channel);
    else
        run_blocks(pass, dst, dst_step, src, src_step, n, channel);
}

static void run_all(struct pass *pass, const stk_quant *quant, const stk_tensor *dst, const stk_tensor *src)
{
    enum { STEP = sizeof(int32_t) };
    const char *first = (const char *)quant->lane.zero;
    int64_t channel_strides[STK_MAX_DIMS] = {0};
    stki_strided plan;
    stki_walk walk;

    if (quant->axis >= 0)
        channel_strides[quant->axis] = STEP;
    stki_strided_plan(&plan, 3, (const int64_t *const[]){dst->strides, src->strides, channel_strides}, dst->ndim,
                      dst->shape, STKI_ANY_ORDER);
    stki_strided_join_rows(&plan);
    pass->dst_size = stk_dtype_size(dst->dtype);
    pass->src_size = stk_dtype_size(src->dtype);
    pass->lane.period = plan.strides[2][plan.ndim - 1] ? quant->count : 0;
    pass->lane.streaming = stk_tensor_nbytes(dst) + stk_tensor_nbytes(src) > stki_cache_bytes();
    stki_cast_init(&pass->gather, src->dtype, src->dtype, false);
    stki_cast_init(&pass->scatter, dst->dtype, dst->dtype, false);
    if (!stki_walk_begin(&walk, &plan, 1, (const void *const[]){dst->data, src->data, first}))
        return;
    do
        run_row(pass, walk.at[0], plan.strides[0][plan.ndim - 1], walk.at[1], plan.strides[1][plan.ndim - 1],
                plan.shape[plan.ndim - 1], (walk.at[2] - first) / STEP, plan.strides[2][plan.ndim - 1]);
    while (stki_walk_next(&walk));
    if (pass->lane.streaming)
        stki_store_fence();
}

/* ---- proof for the f32 kernel ---- */

/* Whether dequantization in f32 with a split scale gives the defined results for all 256 integers of every channel. */
static bool f32_is_exact(const stk_quant *quant, stki_quant_fn run)
{
    stki_quant_lane defined = quant->lane, fast = quant->lane;
    float expected[256], found[256];
    uint8_t all[256];

    fast.proven = true;
    for (int i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    for (int64_t channel = 0; channel < quant->count; channel++) {
        run(&defined, expected, all, 256, channel);
        run(&fast, found, all, 256, channel);
        if (memcmp(expected, found, sizeof found) != 0)
            return false;
    }
    return true;
}

/* Computed once per set of parameters, when there are enough elements for it to pay off. */
static bool proven(const stk_quant *quant, stki_quant_fn run, int64_t elements)
{
    enum { WORTH = 16 * 256 };
    stki_counter *proof = (stki_counter *)(uintptr_t)&quant->proof; /* the only member that changes after creation */

    if (!quant->lane.per_channel || quant->lane.exact || quant->qdtype == STK_QINT32)
        return false;
    if (stki_counted(proof) == STKI_PROOF_NONE) {
        if (elements / WORTH < quant->count)
            return false;
        stki_count_set(proof, f32_is_exact(quant, run) ? STKI_PROOF_HOLDS : STKI_PROOF_FAILS);
    }
    return stki_counted(proof) == STKI_PROOF_HOLDS;
}

/* ---- the two directions ---- */

const stki_quant_kernels *stki_quant_kernels_of(enum stki_isa isa)
{
    switch (isa) {
#if defined(__x86_64__)
    case STKI_ISA_AVX2:
        return &stki_quant_avx2;
    case STKI_ISA_AVX512:
        return &stki_quant_avx512;
#endif
    default:
        return &stki_quant_ref;
    }
}

void stki_quantize_run(const stk_quant *quant, const stk_tensor *dst, const stk_tensor *src, enum stki_isa isa)
{
    struct pass pass = {.run = stki_quant_kernels_of(isa)->quantize[quant->qdtype]};
    stki_float_control control = stki_float_enter();

    pass.lane = quant->lane;
    run_all(&pass, quant, dst, src);
    stki_float_leave(control);
}

void stki_dequantize_run(const stk_quant *quant, const stk_tensor *dst, const stk_tensor *src, enum stki_isa isa)
{
    struct pass pass = {.run = stki_quant_kernels_of(isa)->dequantize[quant->qdtype]};
    stki_float_control control = stki_float_enter();

    pass.lane = quant->lane;
    pass.lane.proven = proven(quant, pass.run, stk_tensor_numel(dst));
    run_all(&pass, quant, dst, src);
    stki_float_leave(control);
}
