/* quant.c: the parameters of quantized tensors: immutable, reference-counted, and stored as one array per parameter, so
 * that the row functions load vectors of them. */
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "float_control.h"
#include "quant_internal.h"
#include <inttypes.h>
#include <math.h>

enum {
    ALIGNMENT = 64,
    PARAMETER_BYTES = 5 * 8 + 5 * 4 /* per channel: five 64-bit and five 32-bit numbers */
};

static const struct qdtype_row {
    const char *name;
    stk_dtype integers;
    int64_t min, max;
} rows[] = {
    [STK_QINT8] = {"qint8", STK_I8, INT8_MIN, INT8_MAX},
    [STK_QUINT8] = {"quint8", STK_U8, 0, UINT8_MAX},
    [STK_QINT32] = {"qint32", STK_I32, INT32_MIN, INT32_MAX},
};

static bool known(stk_qdtype qdtype)
{
    return (int)qdtype >= STK_QINT8 && (int)qdtype <= STK_QINT32;
}

const char *stk_qdtype_name(stk_qdtype qdtype)
{
    return known(qdtype) ? rows[qdtype].name : "none";
}

stk_dtype stk_qdtype_integers(stk_qdtype qdtype)
{
    return known(qdtype) ? rows[qdtype].integers : STK_DTYPE_NONE;
}

int64_t stki_quant_min(stk_qdtype qdtype)
{
    return rows[qdtype].min;
}

int64_t stki_quant_max(stk_qdtype qdtype)
{
    return rows[qdtype].max;
}

stk_status stki_quant_check(stk_qdtype qdtype, stk_qscheme scheme, stk_error *err)
{
    if (!known(qdtype))
        return stki_fail(err, STK_E_BAD_ARG, "%d is not a quantized dtype (qint8, quint8, qint32)", (int)qdtype);
    if (scheme != STK_QUANT_AFFINE && scheme != STK_QUANT_SYMMETRIC)
        return stki_fail(err, STK_E_BAD_ARG, "%d is not a quantization scheme (affine, symmetric)", (int)scheme);
    return STK_OK;
}

static stk_status check_pair(stk_qdtype qdtype, int64_t index, double scale, int64_t zero_point, stk_error *err)
{
    float as_float = (float)scale;

    if (!(as_float > 0) || !isfinite(as_float))
        return stki_fail(err, STK_E_BAD_ARG, "scale %" PRId64 " is %g: must be positive and finite as f32", index,
                         scale);
    if (zero_point < rows[qdtype].min || zero_point > rows[qdtype].max)
        return stki_fail(err, STK_E_BAD_ARG, "zero point %" PRId64 " is %" PRId64 ": %s holds %" PRId64 " to %" PRId64,
                         index, zero_point, rows[qdtype].name, rows[qdtype].min, rows[qdtype].max);
    return STK_OK;
}

/* The arrays of a stk_quant follow it in the same block, each aligned to a cache line. */
struct arrays {
    double *scale, *zero_double, *low, *high;
    int64_t *zero_points;
    float *inverse, *zero_float, *scale_float, *scale_rest;
    int32_t *zero;
};

static stk_quant *allocate(int64_t count, struct arrays *out)
{
    const int64_t head = stki_round_up((int64_t)sizeof(stk_quant), ALIGNMENT);
    int64_t padded, bytes;
    stk_quant *quant;

    if (!stki_add(count, STKI_QUANT_PAD + ALIGNMENT, &padded) || !stki_mul(padded, PARAMETER_BYTES, &bytes) ||
        !stki_add(bytes, head, &bytes))
        return NULL;
    padded = stki_round_up(count + STKI_QUANT_PAD, ALIGNMENT / 4);
    quant = stki_block_alloc(NULL, bytes, ALIGNMENT);
    if (!quant)
        return NULL;
    *quant = (stk_quant){.bytes = bytes};
    out->scale = (double *)(void *)((char *)quant + head);
    out->zero_double = out->scale + padded;
    out->low = out->zero_double + padded;
    out->high = out->low + padded;
    out->zero_points = (int64_t *)(void *)(out->high + padded);
    out->inverse = (float *)(void *)(out->zero_points + padded);
    out->zero_float = out->inverse + padded;
    out->scale_float = out->zero_float + padded;
    out->scale_rest = out->scale_float + padded;
    out->zero = (int32_t *)(void *)(out->scale_rest + padded);
    return quant;
}

static bool all_floats(int64_t count, const double *scales)
{
    for (int64_t i = 0; i < count; i++)
        if ((double)(float)scales[i] != scales[i])
            return false;
    return true;
}

static void fill(const struct arrays *to, int64_t count, const double *scales, const int64_t *zero_points)
{
    stki_float_control control = stki_float_enter();

    for (int64_t i = 0; i < count + STKI_QUANT_PAD; i++) {
        double scale = scales[i % count];
        int64_t zero = zero_points[i % count];

        to->scale[i] = scale;
        to->scale_float[i] = (float)scale;
        to->scale_rest[i] = (float)(scale - (double)(float)scale);
        to->inverse[i] = 1.0f / (float)scale;
        to->zero_points[i] = zero;
        to->zero_double[i] = (double)zero;
        to->zero_float[i] = (float)zero;
        to->zero[i] = (int32_t)zero;
        to->low[i] = to->high[i] = NAN;
    }
    stki_float_leave(control);
}

stk_status stk_quant_create(stk_qdtype qdtype, int axis, int64_t count, const double *scales,
                            const int64_t *zero_points, stk_quant **out, stk_error *err)
{
    struct arrays arrays;
    stk_quant *quant;
    stk_status status = stki_quant_check(qdtype, STK_QUANT_AFFINE, err);

    if (status != STK_OK)
        return status;
    if (axis < STK_QUANT_PER_TENSOR || axis >= STK_MAX_DIMS)
        return stki_fail(err, STK_E_BAD_DIM, "axis %d: must be 0 to %d, or -1 for one pair of parameters", axis,
                         STK_MAX_DIMS - 1);
    if (count < 0 || (axis == STK_QUANT_PER_TENSOR && count != 1))
        return stki_fail(err, STK_E_BAD_SHAPE, "%" PRId64 " pairs of parameters%s", count,
                         count < 0 ? "" : " for a whole tensor: must be 1");
    for (int64_t i = 0; i < count; i++) {
        status = check_pair(qdtype, i, scales[i], zero_points[i], err);
        if (status != STK_OK)
            return status;
    }
    quant = allocate(count, &arrays);
    if (!quant)
        return stki_fail_memory(err, count * PARAMETER_BYTES, "parameters of a quantized tensor");
    if (count > 0)
        fill(&arrays, count, scales, zero_points);
    stki_count_set(&quant->refs, 1);
    quant->qdtype = qdtype;
    quant->axis = axis;
    quant->count = count;
    quant->low = arrays.low;
    quant->high = arrays.high;
    quant->zero_points = arrays.zero_points;
    quant->lane = (stki_quant_lane){
        .inverse = arrays.inverse,
        .zero_float = arrays.zero_float,
        .scale_float = arrays.scale_float,
        .scale_rest = arrays.scale_rest,
        .scale = arrays.scale,
        .zero_double = arrays.zero_double,
        .zero = arrays.zero,
        .per_channel = axis != STK_QUANT_PER_TENSOR,
        .exact = qdtype != STK_QINT32 && all_floats(count, scales),
    };
    *out = quant;
    return STK_OK;
}

void stk_quant_retain(stk_quant *quant)
{
    if (quant)
        stki_ref(&quant->refs);
}

void stk_quant_release(stk_quant *quant)
{
    if (!quant || !stki_unref(&quant->refs))
        return;
    stki_device_tables_fini(&quant->device_tables);
    stki_block_free(NULL, quant, quant->bytes, ALIGNMENT);
}

stk_qdtype stk_quant_dtype(const stk_quant *quant)
{
    return quant->qdtype;
}

int stk_quant_axis(const stk_quant *quant)
{
    return quant->axis;
}

int64_t stk_quant_count(const stk_quant *quant)
{
    return quant->count;
}

double stk_quant_scale(const stk_quant *quant, int64_t index)
{
    return quant->lane.scale[index];
}

int64_t stk_quant_zero_point(const stk_quant *quant, int64_t index)
{
    return quant->zero_points[index];
}

double stk_quant_low(const stk_quant *quant, int64_t index)
{
    return quant->low[index];
}

double stk_quant_high(const stk_quant *quant, int64_t index)
{
    return quant->high[index];
}
