/* plan_convert.c: compiles the conversions of a plan, one for every storage format among its shards and every possible
 * orientation. If rows pass through a worker's memory, they are converted in strips of lines. See plan.h. */
#include "allocate.h"
#include "error.h"
#include "plan.h"
#include "tensor_internal.h"
#include <math.h>
#include <string.h>

/* Parameters shared by all conversions of a plan. */
typedef struct making {
    const float *a, *b;
    enum stki_stores stores;
    int64_t bytes_in_flight;
} making;

/* Computes the strides along the sample's axes for reading a sample in this orientation. `from`: the sample's own
 * strides. */
static void turn_strides(const stki_field_plan *plan, stki_orientation o, const int64_t *from, int64_t *to)
{
    const int y = plan->image.height_axis, x = plan->image.width_axis;

    for (int i = 0; i < plan->ndim; i++)
        to[i] = from[i];
    if (y == x) /* not an image */
        return;
    to[o.transpose ? x : y] = o.flip_u ? -from[y] : from[y];
    to[o.transpose ? y : x] = o.flip_v ? -from[x] : from[x];
}

/* Describes the conversion of samples of this shard, or, if `shard` is NULL, of the block. */
static void describe(const stki_field_plan *plan, const stki_reader *shard, const making *m, stki_orientation o,
                     stki_convert_desc *desc)
{
    const stki_fold *fold = plan->fold;
    int64_t strides[STK_MAX_DIMS];

    *desc = (stki_convert_desc){
        .src_dtype = plan->field->dtype,
        .dst_dtype = plan->dtype,
        .src_swapped = shard && shard->swapped,
        .ndim = plan->ndim,
        .affine = fold->arithmetic,
        .channel_axis = fold->channels > 1 ? (plan->layout == STKI_LAYOUT_NHWC ? 2 : 0) : -1,
        .channels = fold->channels,
        .a = m->a,
        .b = m->b,
        .quantized = fold->quantized,
        .zero_point = fold->zero_point,
        .stores = m->stores,
        .bytes_in_flight = m->bytes_in_flight,
    };
    if (plan->device.convert) { /* the device does the arithmetic, so samples are only copied */
        desc->affine = false;
        desc->channel_axis = -1;
        desc->channels = 1;
        desc->quantized = false;
        desc->zero_point = 0;
    }
    if (desc->quantized) {
        desc->qmin = plan->dtype == STK_I8 ? INT8_MIN : plan->dtype == STK_U8 ? 0 : INT32_MIN;
        desc->qmax = plan->dtype == STK_I8 ? INT8_MAX : plan->dtype == STK_U8 ? UINT8_MAX : INT32_MAX;
    }
    turn_strides(plan, o, shard ? shard->strides : plan->image.block_strides, strides);
    for (int i = 0; i < plan->ndim; i++) {
        desc->shape[i] = plan->shape[i];
        desc->src_strides[i] = strides[plan->source_axis[i]];
        desc->dst_strides[i] = plan->strides[i];
    }
}

static bool same_geometry(const stki_field_plan *plan, const stki_reader *x, const stki_reader *y)
{
    if (plan->image.resample)
        return true;
    return x->swapped == y->swapped && memcmp(x->strides, y->strides, (size_t)x->ndim * sizeof x->strides[0]) == 0;
}

/* Compiles the conversion of `lines` lines of the block to the same number of lines in the row. */
static stk_status compile_strip(stki_field_plan *plan, stki_convert_desc desc, int64_t lines, stki_convert **out,
                                stk_error *err)
{
    desc.shape[plan->layout == STKI_LAYOUT_NHWC ? 0 : 1] = lines;
    return stki_convert_create(&desc, out, err);
}

/* Non-temporal stores are limited by memory bandwidth, so resizing or padding between them costs no extra time. */
static stk_status compile_strips(stki_field_plan *plan, const making *m, stk_error *err)
{
    enum { STRIP_BYTES = 12 << 10, LINES = 4 };
    int64_t lines, strip;
    stk_status status = STK_OK;

    if (!plan->image.geometry || plan->image.height_axis != 0 ||
        (!plan->image.geometry->resizes && !plan->image.geometry->pads))
        return STK_OK;
    lines = plan->shape[plan->layout == STKI_LAYOUT_NHWC ? 0 : 1];
    strip = STRIP_BYTES / plan->image.block_strides[0] / LINES * LINES;
    strip = strip < LINES ? LINES : strip;
    if (strip >= lines)
        return STK_OK;
    plan->image.strip_rows = strip;
    plan->image.strip_bytes = strip * plan->image.block_strides[0];
    for (int n = 0; n < 4 && status == STK_OK; n++) {
        stki_convert_desc desc;

        if (!(plan->image.orientations & 1u << n))
            continue;
        describe(plan, NULL, m, stki_orientation_of(n), &desc);
        status = compile_strip(plan, desc, strip, &plan->image.strips[n], err);
        if (status == STK_OK && lines % strip != 0)
            status = compile_strip(plan, desc, lines % strip, &plan->image.last_strips[n], err);
    }
    return status;
}

/* Describes the conversion of `lines` lines from contiguous f32 planes of `high` lines each. */
static void describe_planes(const stki_field_plan *plan, const making *m, int64_t lines, int64_t high,
                            stki_convert_desc *desc)
{
    const int h = plan->layout == STKI_LAYOUT_NHWC ? 0 : 1, c = h == 0 ? 2 : 0;
    const int64_t width = plan->shape[h + 1], size = sizeof(float);

    describe(plan, NULL, m, (stki_orientation){0}, desc);
    desc->src_dtype = STK_F32;
    desc->shape[h] = lines;
    desc->src_strides[h] = width * size;
    desc->src_strides[h + 1] = size;
    desc->src_strides[c] = high * width * size;
}

/* Compiles the conversions of rows with color steps, which run in f32 before the conversion. */
static stk_status compile_colors(stki_field_plan *plan, const making *m, stk_error *err)
{
    enum { STRIP_BYTES = 24 << 10 };
    const int h = plan->layout == STKI_LAYOUT_NHWC ? 0 : 1;
    const int64_t lines = plan->shape[h], line = plan->shape[h + 1] * plan->shape[h == 0 ? 2 : 0] * 4;
    int64_t strip = STRIP_BYTES / (line > 0 ? line : 1);
    stki_convert_desc desc;
    stk_status status;

    strip = strip < 1 ? 1 : strip > lines ? lines : strip;
    plan->image.strip_rows = strip;
    plan->image.strip_bytes = strip * line;
    describe_planes(plan, m, lines, lines, &desc);
    status = stki_convert_create(&desc, &plan->convert.turned[0], err); /* for descriptions of the whole row */
    if (status != STK_OK)
        return status;
    plan->convert.count = 1;
    describe_planes(plan, m, strip, strip, &desc);
    status = stki_convert_create(&desc, &plan->image.strips[0], err);
    if (status != STK_OK || lines == 0 || lines % strip == 0)
        return status;
    describe_planes(plan, m, lines % strip, strip, &desc);
    return stki_convert_create(&desc, &plan->image.last_strips[0], err);
}

/* Compiles the conversions of this shard's samples, or, if `shard` is NULL, of the block, in every possible
 * orientation. */
static stk_status compile_turned(const stki_field_plan *plan, const stki_reader *shard, const making *m,
                                 stki_convert **out, stk_error *err)
{
    stk_status status = STK_OK;

    for (int n = 0; n < STKI_ORIENTATIONS && status == STK_OK; n++) {
        stki_convert_desc desc;

        if (!(plan->image.orientations & 1u << n))
            continue;
        describe(plan, shard, m, stki_orientation_of(n), &desc);
        status = stki_convert_create(&desc, &out[n], err);
    }
    return status;
}

static stk_status compile_all(stki_field_plan *plan, const making *m, stk_error *err)
{
    const stki_field *field = plan->field;
    stk_status status = STK_OK;

    if (plan->image.colors)
        return compile_colors(plan, m, err);
    for (int i = 0; i < field->shard_count && status == STK_OK; i++) {
        stki_convert **turned = &plan->convert.turned[plan->convert.count * STKI_ORIENTATIONS];
        int same = 0;

        while (same < i && !same_geometry(plan, field->shards[same], field->shards[i]))
            same++;
        if (same < i) {
            plan->convert.of_shard[i] = plan->convert.of_shard[same];
            continue;
        }
        plan->convert.of_shard[i] = plan->convert.count++;
        status = compile_turned(plan, plan->image.resample ? NULL : field->shards[i], m, turned, err);
    }
    if (status == STK_OK)
        status = compile_strips(plan, m, err);
    if (status == STK_OK && plan->image.geometry && plan->image.geometry->pads && !plan->image.resample)
        status = compile_turned(plan, NULL, m, plan->image.padded, err);
    return status;
}

static stk_status compile_shards(stki_field_plan *plan, const making *m, stk_error *err)
{
    stk_error cause = {0};
    stk_status status = compile_all(plan, m, &cause);

    return status == STK_OK ? STK_OK : stki_fail_field(err, plan->config, status, "%s", cause.message);
}

stk_status stki_plan_coefficients(const stki_field_plan *plan, float **out, stk_error *err)
{
    const stki_fold *fold = plan->fold;
    float *a = stki_zalloc_array(2 * fold->channels, sizeof *a);
    stk_status status = STK_OK;

    if (!a)
        return stki_fail_memory(err, 2 * fold->channels * (int64_t)sizeof *a, "coefficients");
    /* the only place where coefficients are rounded to f32 */
    for (int64_t c = 0; c < fold->channels && status == STK_OK; c++) {
        a[c] = (float)fold->a[c];
        a[fold->channels + c] = (float)fold->b[c];
        if (!isfinite(a[c]) || !isfinite(a[fold->channels + c]))
            status =
                stki_fail_field(err, plan->config, STK_E_CONFIG,
                                "the transforms amount to x * %g + %g in channel %lld, which float32 cannot represent",
                                fold->a[c], fold->b[c], (long long)c);
    }
    if (status == STK_OK)
        *out = a;
    else
        stki_free(a);
    return status;
}

void stki_plan_describe(const stki_field_plan *plan, const float *coefficients, stki_convert_desc *desc)
{
    const making m = {.a = coefficients, .b = coefficients + plan->fold->channels};

    describe(plan, plan->field->shards[0], &m, stki_orientation_of(0), desc);
}

stk_status stki_conversions_compile(stki_field_plan *plan, enum stki_stores stores, int64_t bytes_in_flight,
                                    stk_error *err)
{
    stki_conversions *convert = &plan->convert;
    const int64_t shards = plan->field->shard_count;
    float *a;
    stk_status status;

    convert->turned = stki_zalloc_array(shards * (int64_t)STKI_ORIENTATIONS, sizeof *convert->turned);
    convert->of_shard = stki_zalloc_array(shards, sizeof *convert->of_shard);
    if (!convert->turned || !convert->of_shard)
        return stki_fail_memory(err, shards * (int64_t)(STKI_ORIENTATIONS * sizeof *convert->turned), "a plan");
    if ((status = stki_plan_coefficients(plan, &a, err)) != STK_OK)
        return status;
    status = compile_shards(
        plan, &(making){.a = a, .b = a + plan->fold->channels, .stores = stores, .bytes_in_flight = bytes_in_flight},
        err);
    stki_free(a);
    convert->units = INT64_MAX;
    for (int i = 0; status == STK_OK && i < convert->count * STKI_ORIENTATIONS; i++) {
        int64_t units = convert->turned[i] ? stki_convert_units(convert->turned[i]) : INT64_MAX;

        convert->units = units < convert->units ? units : convert->units;
    }
    return status;
}

void stki_conversions_fini(stki_field_plan *plan)
{
    stki_conversions *convert = &plan->convert;

    for (int i = 0; convert->turned && i < convert->count * STKI_ORIENTATIONS; i++)
        stki_convert_destroy(convert->turned[i]);
    for (int n = 0; n < 4; n++) {
        stki_convert_destroy(plan->image.strips[n]);
        stki_convert_destroy(plan->image.last_strips[n]);
    }
    for (int n = 0; n < STKI_ORIENTATIONS; n++)
        stki_convert_destroy(plan->image.padded[n]);
    stki_free(convert->turned);
    stki_free(convert->of_shard);
}
