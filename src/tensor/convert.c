/* convert.c: checks the description of a conversion and compiles it (convert_plan.c). */
#include "allocate.h"
#include "checked.h"
#include "convert_internal.h"
#include "error.h"
#include "float_control.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum stki_convert_src stki_convert_src_of(stk_dtype dtype)
{
    switch (dtype) {
    case STK_U8:
        return STKI_SRC_U8;
    case STK_I8:
        return STKI_SRC_I8;
    case STK_U16:
        return STKI_SRC_U16;
    case STK_I16:
        return STKI_SRC_I16;
    case STK_I32:
        return STKI_SRC_I32;
    case STK_I64:
        return STKI_SRC_I64;
    case STK_F16:
        return STKI_SRC_F16;
    case STK_BF16:
        return STKI_SRC_BF16;
    case STK_F32:
        return STKI_SRC_F32;
    case STK_F64:
        return STKI_SRC_F64;
    default:
        return STKI_SRC_KINDS;
    }
}

enum stki_convert_dst stki_convert_dst_of(stk_dtype dtype)
{
    switch (dtype) {
    case STK_U8:
        return STKI_DST_U8;
    case STK_I8:
        return STKI_DST_I8;
    case STK_I32:
        return STKI_DST_I32;
    case STK_F16:
        return STKI_DST_F16;
    case STK_BF16:
        return STKI_DST_BF16;
    case STK_F32:
        return STKI_DST_F32;
    default:
        return STKI_DST_KINDS;
    }
}

/* NULL for the reference, which has no kernels. */
static const stki_convert_kernels *kernels_of(enum stki_isa isa)
{
    switch (isa) {
#if defined(__x86_64__)
    case STKI_ISA_AVX2:
        return stki_convert_kernels_avx2();
    case STKI_ISA_AVX512:
        return stki_convert_kernels_avx512();
#elif defined(__aarch64__)
    case STKI_ISA_NEON:
        return stki_convert_kernels_neon();
#endif
    default:
        return NULL;
    }
}

/* ---- checking ---- */

/* Checks sizes, and that the byte offsets of all elements fit in 63 bits. */
static stk_status check_axes(const stki_convert_desc *desc, int64_t *out_numel, stk_error *err)
{
    int64_t numel = 1, reach, src_reach = 0, dst_reach = 0;

    if (desc->ndim < 0 || desc->ndim > STK_MAX_DIMS)
        return stki_fail(err, STK_E_UNSUPPORTED, "convert: found %d axes, expected 0 to %d", desc->ndim, STK_MAX_DIMS);
    for (int k = 0; k < desc->ndim; k++) {
        int64_t n = desc->shape[k], ss = desc->src_strides[k], ds = desc->dst_strides[k];
        if (n < 0)
            return stki_fail(err, STK_E_BAD_SHAPE, "convert: axis %d has the negative size %" PRId64, k, n);
        if (ds == 0 && n > 1)
            return stki_fail(err, STK_E_BAD_OVERLAP,
                             "convert: axis %d would write %" PRId64 " elements to the same address", k, n);
        if (n <= 1) {
            numel *= n;
            continue;
        }
        if (ss == INT64_MIN || ds == INT64_MIN || !stki_mul(numel, n, &numel) ||
            !stki_mul(ss < 0 ? -ss : ss, n, &reach) || !stki_add(src_reach, reach, &src_reach) ||
            !stki_mul(ds < 0 ? -ds : ds, n, &reach) || !stki_add(dst_reach, reach, &dst_reach))
            return stki_fail(err, STK_E_BAD_SHAPE, "convert: axis %d: the sample does not fit in 63 bits", k);
    }
    if (!stki_mul(numel, 16, &reach))
        return stki_fail(err, STK_E_BAD_SHAPE, "convert: the sample does not fit in 63 bits");
    *out_numel = numel;
    return STK_OK;
}

static stk_status check_channels(const stki_convert_desc *desc, stk_error *err)
{
    if (!desc->a || !desc->b)
        return stki_fail(err, STK_E_BAD_ARG, "convert: no coefficients");
    if (desc->channel_axis < -1 || desc->channel_axis >= desc->ndim)
        return stki_fail(err, STK_E_BAD_DIM, "convert: channel axis %d is out of range for a %d-dimensional sample",
                         desc->channel_axis, desc->ndim);
    int64_t expected = desc->channel_axis < 0 ? 1 : desc->shape[desc->channel_axis];
    if (desc->channels != 1 && desc->channels != expected)
        return stki_fail(err, STK_E_BAD_SHAPE, "convert: %" PRId64 " coefficient pairs for %" PRId64 " channels",
                         desc->channels, expected);
    return STK_OK;
}

static void dtype_range(stk_dtype dtype, int32_t *low, int32_t *high)
{
    *low = dtype == STK_U8 ? 0 : dtype == STK_I8 ? -128 : INT32_MIN;
    *high = dtype == STK_U8 ? 255 : dtype == STK_I8 ? 127 : INT32_MAX;
}

static stk_status check_quantized(const stki_convert_desc *desc, stk_error *err)
{
    int32_t low, high;

    if (desc->dst_dtype != STK_U8 && desc->dst_dtype != STK_I8 && desc->dst_dtype != STK_I32)
        return stki_fail(err, STK_E_BAD_DTYPE, "convert: quantized to %s: expected u8, i8 or i32",
                         stk_dtype_name(desc->dst_dtype));
    dtype_range(desc->dst_dtype, &low, &high);
    if (desc->qmin > desc->qmax || desc->qmin < low || desc->qmax > high)
        return stki_fail(err, STK_E_BAD_VALUE, "convert: the range %d to %d is empty or not inside %s", desc->qmin,
                         desc->qmax, stk_dtype_name(desc->dst_dtype));
    if (desc->zero_point < low || desc->zero_point > high)
        return stki_fail(err, STK_E_BAD_VALUE, "convert: zero point %d is outside %s", desc->zero_point,
                         stk_dtype_name(desc->dst_dtype));
    return STK_OK;
}

static stk_status check(const stki_convert_desc *desc, int64_t *out_numel, stk_error *err)
{
    stk_status status = check_axes(desc, out_numel, err);

    if (status != STK_OK)
        return status;
    if (!stk_dtype_size(desc->src_dtype) || !stk_dtype_size(desc->dst_dtype))
        return stki_fail(err, STK_E_BAD_DTYPE, "convert: invalid dtypes: from %s to %s",
                         stk_dtype_name(desc->src_dtype), stk_dtype_name(desc->dst_dtype));
    if (!desc->affine)
        return desc->quantized ? stki_fail(err, STK_E_BAD_ARG, "convert: quantization needs coefficients") : STK_OK;
    if (stki_convert_src_of(desc->src_dtype) == STKI_SRC_KINDS)
        return stki_fail(err, STK_E_BAD_DTYPE, "convert: arithmetic is not supported on %s",
                         stk_dtype_name(desc->src_dtype));
    if (stki_convert_dst_of(desc->dst_dtype) == STKI_DST_KINDS)
        return stki_fail(err, STK_E_BAD_DTYPE, "convert: arithmetic cannot write %s", stk_dtype_name(desc->dst_dtype));
    status = check_channels(desc, err);
    return status == STK_OK && desc->quantized ? check_quantized(desc, err) : status;
}

/* ---- compiling ---- */

/* The limit as f32, rounded inward. INT32_MAX becomes 2^31, and the store saturates. */
static float limit(int32_t value, bool upper)
{
    float x = (float)value;

    if (upper && value != INT32_MAX && (double)x > value)
        x = nextafterf(x, 0.0f);
    if (!upper && (double)x < value)
        x = nextafterf(x, 0.0f);
    return x;
}

static void set_levels(stki_convert *convert, const stki_convert_desc *desc)
{
    int32_t low, high;

    dtype_range(desc->dst_dtype, &low, &high);
    if (desc->quantized) {
        low = desc->qmin;
        high = desc->qmax;
        convert->lane.zero_point = (float)desc->zero_point;
    }
    convert->lane.low = limit(low, false);
    convert->lane.high = limit(high, true);
}

/* Whether all channels have the same coefficients, so that one pair suffices. */
static bool same_pairs(const stki_convert_desc *desc)
{
    for (int64_t c = 1; c < desc->channels; c++)
        if (memcmp(&desc->a[c], desc->a, sizeof(float)) != 0 || memcmp(&desc->b[c], desc->b, sizeof(float)) != 0)
            return false;
    return true;
}

/* A cast to a float dtype equals x * 1 + -0.0 for all x, including -0.0, so it can use the same kernels. */
static bool cast_by_kernels(const stki_convert_desc *desc, enum stki_isa isa)
{
    bool floating = desc->dst_dtype == STK_F16 || desc->dst_dtype == STK_BF16 || desc->dst_dtype == STK_F32;

    return !desc->affine && isa != STKI_ISA_REF && floating &&
           (desc->src_dtype != desc->dst_dtype || desc->src_swapped) &&
           stki_convert_src_of(desc->src_dtype) != STKI_SRC_KINDS;
}

static int64_t source_elements(const stki_convert_desc *desc)
{
    int64_t n = 1;

    for (int k = 0; k < desc->ndim; k++)
        if (desc->src_strides[k] != 0)
            n *= desc->shape[k];
    return n;
}

/* Whether the output is too large for the last-level cache: up to about four fifths of its size, the output stays
 * cached until it is read again; the source needs the rest (measured with bench_convert auto). */
static bool beyond_cache(int64_t bytes)
{
    return bytes > stki_cache_bytes() / 5 * 4;
}

static void fill(stki_convert *convert, const stki_convert_desc *desc, int64_t numel)
{
    convert->src_dtype = desc->src_dtype;
    convert->dst_dtype = desc->dst_dtype;
    convert->src_kind = stki_convert_src_of(desc->src_dtype);
    convert->dst_kind = stki_convert_dst_of(desc->dst_dtype);
    convert->src_size = (int)stk_dtype_size(desc->src_dtype);
    convert->dst_size = (int)stk_dtype_size(desc->dst_dtype);
    convert->src_swapped = desc->src_swapped && convert->src_size > 1;
    convert->arithmetic = desc->affine;
    convert->empty = numel == 0;
    convert->bytes_read = numel == 0 ? 0 : source_elements(desc) * convert->src_size;
    convert->bytes_written = numel * convert->dst_size;
    convert->lane.streaming = desc->stores == STKI_STORES_STREAMING ||
                              (desc->stores == STKI_STORES_AUTO && beyond_cache(desc->bytes_in_flight));
    set_levels(convert, desc);
}

static bool wants_table(const stki_convert *convert, int64_t channels)
{
    return convert->arithmetic && convert->src_size == 1 && convert->dst_size == 1 && channels <= STKI_TABLE_CHANNELS;
}

/* Copies the axes and coefficients of the description, for devices. */
static void keep_description(stki_convert *convert, const stki_convert_desc *desc, float *pairs)
{
    for (int k = 0; k < desc->ndim; k++)
        convert->described[k] = (stki_axis){desc->shape[k], desc->src_strides[k], desc->dst_strides[k],
                                            desc->channels > 1 && k == desc->channel_axis};
    convert->described_count = desc->ndim;
    memcpy(pairs, desc->a, (size_t)desc->channels * sizeof(float));
    memcpy(pairs + desc->channels, desc->b, (size_t)desc->channels * sizeof(float));
    convert->pairs = (stki_convert_pairs){pairs, pairs + desc->channels, desc->channels};
}

static stk_status compile(stki_convert *convert, const stki_convert_desc *desc, enum stki_isa isa, stk_error *err)
{
    const int64_t padded = desc->channels + STKI_LANE_PAD, numbers = 2 * (padded + desc->channels);

    convert->coefficients = stki_zalloc_array(numbers, sizeof(float));
    if (!convert->coefficients)
        return stki_fail_memory(err, numbers * (int64_t)sizeof(float), "coefficients of a conversion");
    memcpy(convert->coefficients, desc->a, (size_t)desc->channels * sizeof(float));
    memcpy(convert->coefficients + padded, desc->b, (size_t)desc->channels * sizeof(float));
    keep_description(convert, desc, convert->coefficients + 2 * padded);
    convert->lane.a = convert->coefficients;
    convert->lane.b = convert->coefficients + padded;
    if (wants_table(convert, desc->channels)) {
        convert->table = stki_zalloc(256 * STKI_TABLE_CHANNELS);
        if (!convert->table)
            return stki_fail_memory(err, 256 * STKI_TABLE_CHANNELS, "tables of a conversion");
    }
    if (!convert->empty) {
        convert->kernels = kernels_of(isa);
        stki_convert_plan(convert, desc, isa);
    }
    return STK_OK;
}

stk_status stki_convert_create_isa(const stki_convert_desc *desc, enum stki_isa isa, stki_convert **out, stk_error *err)
{
    static const float one = 1.0f, minus_zero = -0.0f;
    stki_convert_desc own = *desc;
    int64_t numel = 0;
    stk_status status = check(desc, &numel, err);

    if (status != STK_OK)
        return status;
    if (!stki_isa_usable(isa))
        return stki_fail(err, STK_E_UNSUPPORTED, "convert: this processor cannot run the %s kernels",
                         stki_isa_name(isa));
    if (!own.affine || numel == 0) {
        own.a = &one;
        own.b = &minus_zero;
        own.channels = 1;
        if (cast_by_kernels(desc, isa))
            own.affine = true;
    } else if (same_pairs(&own)) {
        own.channels = 1;
    }
    stki_convert *convert = stki_zalloc(sizeof *convert);
    if (!convert)
        return stki_fail_memory(err, sizeof *convert, "a conversion");
    stki_float_control control = stki_float_enter();
    fill(convert, &own, numel);
    status = compile(convert, &own, isa, err);
    stki_float_leave(control);
    if (status != STK_OK) {
        stki_convert_destroy(convert);
        return status;
    }
    *out = convert;
    return STK_OK;
}

stk_status stki_convert_create(const stki_convert_desc *desc, stki_convert **out, stk_error *err)
{
    return stki_convert_create_isa(desc, stki_isa(), out, err);
}

void stki_convert_destroy(stki_convert *convert)
{
    if (!convert)
        return;
    stki_device_tables_fini(&convert->device_tables);
    stki_free(convert->coefficients);
    stki_free(convert->table);
    stki_free(convert);
}
