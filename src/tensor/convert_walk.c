/* convert_walk.c: walks the outer axes of a compiled conversion and calls its inner function for each of their indices.
 */
#include "convert_internal.h"

void stki_convert_walk(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src,
                       int64_t channel)
{
    const int outer = convert->outer_count;
    int64_t index[STK_MAX_DIMS + 2] = {0};

    for (;;) {
        convert->inner(convert, axes + outer, dst, src, channel);
        int k = outer - 1;
        for (; k >= 0; k--) {
            const stki_axis *axis = &axes[k];
            if (++index[k] < axis->n) {
                src += axis->src_stride;
                dst += axis->dst_stride;
                channel += axis->channel_step;
                break;
            }
            index[k] = 0;
            src -= axis->src_stride * (axis->n - 1);
            dst -= axis->dst_stride * (axis->n - 1);
            channel -= axis->channel_step * (axis->n - 1);
        }
        if (k < 0)
            return;
    }
}
