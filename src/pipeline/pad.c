/* pad.c: see pad.h. */
#include "pad.h"
#include <string.h>

void stki_pad_batch(stk_batch *batch, const stki_field_plan *plan)
{
    int64_t *offsets = stki_slot_offsets(batch, plan), longest = 0;

    for (int64_t r = 0; r < batch->rows; r++)
        longest = offsets[r + 1] > longest ? offsets[r + 1] : longest;
    offsets[0] = plan->pad.to ? plan->pad.to : longest;
}

/* `count` bytes of repeated elements of `size` bytes, by doubling. */
static void repeat(char *to, int64_t count, const char *element, int64_t size)
{
    int64_t done = size;

    if (count == 0)
        return;
    memcpy(to, element, (size_t)size);
    for (; done < count; done *= 2)
        memcpy(to + done, to, (size_t)(done < count - done ? done : count - done));
}

void stki_pad_row(const stk_batch *batch, const stki_field_plan *plan, int64_t row)
{
    int64_t common = stki_padded_length(batch, plan), length = stki_slot_offsets(batch, plan)[row + 1];
    uint8_t *mask = stki_slot_pad_mask(batch, plan) + row * common;

    repeat(stki_padded_row(batch, plan, row) + length * plan->item_bytes, (common - length) * plan->item_bytes,
           plan->pad.element, stk_dtype_size(plan->dtype));
    memset(mask, 1, (size_t)length);
    memset(mask + length, 0, (size_t)(common - length));
}
