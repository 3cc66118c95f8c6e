/* erase_row.c: see erase_row.h. */
#include "erase_row.h"
#include "float_control.h"
#include "tensor_internal.h"
#include <string.h>

static void erase_with_value(const stki_field_plan *plan, const int64_t *shape, uint8_t *to)
{
    int h, w, c;
    int64_t from[STK_MAX_DIMS] = {0};

    stki_plan_image_axes(plan, &h, &w, &c);
    from[c] = stk_dtype_size(plan->dtype);
    stki_copy_strided(to, plan->dtype, plan->strides, plan->erased, plan->dtype, from, false, 3, shape);
}

/* Every element a normal number, channel by channel and line by line. */
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
                stki_draw_normals(draw, plan->erased_a[k], plan->erased_b[k], block, n);
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
    if (!stki_erase_draw(plan->erase, occasion, shape[h], shape[w], &draw, &box))
        return;
    shape[h] = box.height;
    shape[w] = box.width;
    row += box.top * plan->strides[h] + box.left * plan->strides[w];
    stki_store_fence(); /* the row may still be on its way past the caches */
    stki_float_control control = stki_float_enter();
    if (plan->erase->random)
        erase_with_noise(plan, shape, &draw, row);
    else
        erase_with_value(plan, shape, row);
    stki_float_leave(control);
}
