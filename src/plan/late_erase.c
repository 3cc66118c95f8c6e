/* late_erase.c: random_erasing and cutout: fill a box in a finished row with a value or noise. See late_rows.h. */
#include "allocate.h"
#include "convert_internal.h"
#include "error.h"
#include "float_control.h"
#include "late_rows.h"
#include "tensor_internal.h"
#include <math.h>
#include <string.h>

static const stki_node *step(const stki_field_plan *plan)
{
    return plan->erase.step ? plan->erase.step->node : NULL;
}

/* Rejects a box that does not fit into the rows. Any box is accepted for rows without pixels. */
static stk_status check_cutout(const stki_field_plan *plan, stk_error *err)
{
    const stki_erase *erase = plan->erase.step;
    const int h = plan->layout == STKI_LAYOUT_NHWC ? 0 : 1;
    const int64_t height = plan->shape[h], width = plan->shape[h + 1];

    if (!erase->inside || height == 0 || width == 0 || (erase->height <= height && erase->width <= width))
        return STK_OK;
    return stki_fail_node(err, erase->node,
                          "found a box of %lld x %lld (height x width) for images of %lld x %lld, expected one that "
                          "fits inside",
                          (long long)erase->height, (long long)erase->width, (long long)height, (long long)width);
}

static stk_status resolve(stki_field_plan *plan, stk_error *err)
{
    const stki_erase *erase = &plan->fold->erase;
    const int64_t channels = plan->image.sample_shape[plan->image.channel_axis];

    if (!erase->node)
        return STK_OK;
    if (plan->source_layout == STKI_LAYOUT_NONE)
        return stki_fail_node(
            err, erase->node,
            "the axes of height and width are unknown; specify the layout of the samples: source: {layout: "
            "nhwc} or {layout: nchw}");
    if (channels > STKI_LATE_CHANNELS)
        return stki_fail_node(err, erase->node, "found samples with %lld channels, expected at most %d",
                              (long long)channels, STKI_LATE_CHANNELS);
    if (erase->value_count > 1 && erase->value_count != channels)
        return stki_fail_node(err, erase->node, "found %d values, expected 1 or %lld, one per channel",
                              erase->value_count, (long long)channels);
    if (erase->random && !stki_is_real(plan->dtype))
        return stki_fail_node(err, erase->node, "found value: random for rows of %s, expected f16, bf16, f32 or f64",
                              stk_dtype_name(plan->dtype));
    plan->erase.step = erase;
    return check_cutout(plan, err);
}

/* Stores a value in the way a conversion does. */
static void store(const stki_field_plan *plan, float y, uint8_t *to)
{
    const stki_fold *fold = plan->fold;
    const int64_t none = 0, one = 1;
    stki_lane lane = {.zero_point = fold->quantized ? (float)fold->zero_point : 0};

    if (stki_is_real(plan->dtype) || !fold->arithmetic || stki_convert_dst_of(plan->dtype) == STKI_DST_KINDS) {
        stki_copy_strided(to, plan->dtype, &none, &y, STK_F32, &none, false, 1, &one);
        return;
    }
    lane.low = plan->dtype == STK_U8 ? 0 : plan->dtype == STK_I8 ? INT8_MIN : -0x1p31f;
    lane.high = plan->dtype == STK_U8 ? UINT8_MAX : plan->dtype == STK_I8 ? INT8_MAX : 0x1p31f;
    stki_convert_store(stki_convert_dst_of(plan->dtype), &lane, to, y);
}

/* Computes the arithmetic that follows the erasing step, *a * value + *b, by removing the arithmetic before the step
 * from the total. */
static void erased_affine(const stki_field_plan *plan, int64_t c, double *a, double *b)
{
    const stki_fold *fold = plan->fold;
    const stki_erase *erase = plan->erase.step;
    const int64_t at = fold->channels > 1 ? c : 0, before = erase->before_count > 1 ? c : 0;

    *a = erase->before_a[before] != 0 ? fold->a[at] / erase->before_a[before] : 0;
    *b = fold->b[at] - *a * erase->before_b[before];
}

/* Returns the largest value of an integer dtype. */
static double largest_of(stk_dtype dtype)
{
    const int bits = 8 * (int)stk_dtype_size(dtype);
    const bool is_signed = dtype == STK_I8 || dtype == STK_I16 || dtype == STK_I32 || dtype == STK_I64;

    return dtype == STK_BOOL ? 1 : ldexp(1, bits - is_signed) - 1;
}

static double least_of(stk_dtype dtype)
{
    const bool is_signed = dtype == STK_I8 || dtype == STK_I16 || dtype == STK_I32 || dtype == STK_I64;

    return is_signed ? -largest_of(dtype) - 1 : 0;
}

/* Rejects a value that rows cannot represent. If rows are quantized, the value is clamped instead. */
static stk_status check_erased(const stki_field_plan *plan, double value, double y, stk_error *err)
{
    const double low = least_of(plan->dtype), high = largest_of(plan->dtype);

    if (plan->fold->quantized || !stki_is_whole(plan->dtype) || (y >= low && y <= high))
        return STK_OK;
    return y == value
               ? stki_fail_node(err, plan->erase.step->node, "found the value %g, expected %g to %g: rows are %s",
                                value, low, high, stk_dtype_long_name(plan->dtype))
               : stki_fail_node(err, plan->erase.step->node,
                                "found the value %g, which the following steps change to %g, expected a result from %g "
                                "to %g: rows are %s",
                                value, y, low, high, stk_dtype_long_name(plan->dtype));
}

static stk_status compile(stki_field_plan *plan, enum stki_stores stores, stk_error *err)
{
    const int64_t channels = plan->image.sample_shape[plan->image.channel_axis], size = stk_dtype_size(plan->dtype);

    (void)stores;
    plan->erase.pixel = stki_zalloc_array(channels, size);
    if (!plan->erase.pixel)
        return stki_fail_memory(err, channels * size, "an erased pixel");
    for (int64_t c = 0; c < channels; c++) {
        const double value = plan->erase.step->value[plan->erase.step->value_count > 1 ? c : 0];
        double a, b;
        stk_status status;

        erased_affine(plan, c, &a, &b);
        plan->erase.a[c] = a;
        plan->erase.b[c] = b;
        if ((status = check_erased(plan, value, a * value + b, err)) != STK_OK)
            return status;
        store(plan, (float)(a * value + b), plan->erase.pixel + c * size);
    }
    return STK_OK;
}

static void fini(stki_field_plan *plan)
{
    stki_free(plan->erase.pixel);
}

const stki_late_ops stki_late_erase = {step, resolve, compile, fini};

/* ---- a row ---- */

static void erase_with_value(const stki_field_plan *plan, const int64_t *shape, uint8_t *to)
{
    int h, w, c;
    int64_t from[STK_MAX_DIMS] = {0};

    stki_plan_image_axes(plan, &h, &w, &c);
    from[c] = stk_dtype_size(plan->dtype);
    stki_copy_strided(to, plan->dtype, plan->strides, plan->erase.pixel, plan->dtype, from, false, 3, shape);
}

/* Fills every element with a normal number, channel by channel and line by line. */
static void erase_with_noise(const stki_field_plan *plan, const int64_t *shape, stki_draw *draw, uint8_t *to)
{
    enum { BLOCK = 256 };
    const int64_t size = sizeof(float);
    float block[BLOCK];
    int h, w, c;

    stki_plan_image_axes(plan, &h, &w, &c);
    for (int64_t k = 0; k < shape[c]; k++)
        for (int64_t y = 0; y < shape[h]; y++)
            for (int64_t x = 0, n; x < shape[w]; x += n) {
                n = shape[w] - x < BLOCK ? shape[w] - x : BLOCK;
                stki_draw_normals(draw, plan->erase.a[k], plan->erase.b[k], block, n);
                stki_copy_strided(to + k * plan->strides[c] + y * plan->strides[h] + x * plan->strides[w], plan->dtype,
                                  &plan->strides[w], block, STK_F32, &size, false, 1, &n);
            }
}

void stki_erase_row(const stki_field_plan *plan, const stki_occasion *occasion, uint8_t *row)
{
    int64_t shape[STK_MAX_DIMS];
    stki_rectangle box;
    stki_draw draw;
    int h, w, c;

    stki_plan_image_axes(plan, &h, &w, &c);
    memcpy(shape, plan->shape, sizeof shape);
    if (!stki_erase_draw(plan->erase.step, occasion, shape[h], shape[w], &draw, &box))
        return;
    shape[h] = box.height;
    shape[w] = box.width;
    row += box.top * plan->strides[h] + box.left * plan->strides[w];
    stki_store_fence(); /* the row may have been written with non-temporal stores */
    stki_float_control control = stki_float_enter();
    if (plan->erase.step->random)
        erase_with_noise(plan, shape, &draw, row);
    else
        erase_with_value(plan, shape, row);
    stki_float_leave(control);
}
