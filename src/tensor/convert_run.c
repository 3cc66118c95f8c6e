/* convert_run.c: running a compiled conversion: a whole sample, a part of one, or a gather list of many. The definition
 * asks for round to nearest even and kept subnormals, so all of it runs under the default floating-point control.
 */
#include "convert_internal.h"
#include "float_control.h"
#include <string.h>

static void walk(const stki_convert *convert, const stki_axis *axes, uint8_t *dst, const uint8_t *src, int64_t channel)
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

void stki_store_fence(void)
{
#if defined(__x86_64__)
    _mm_sfence();
#else
    __asm__ volatile("dmb ishst" : : : "memory");
#endif
}

/* Rows of a gather list are fetched into the second-level cache that far ahead; of long ones only the start, the
 * hardware follows from there. */
enum { LINE = 64, FETCH_DISTANCE = 8192, FETCH_AT_MOST = 4096, ROWS_AHEAD_AT_MOST = 16 };

void stki_convert_run(const stki_convert *convert, void *dst, const void *src)
{
    if (convert->empty)
        return;
    stki_float_control control = stki_float_enter();
    walk(convert, convert->axes, (uint8_t *)dst + convert->dst_offset, (const uint8_t *)src + convert->src_offset, 0);
    stki_float_leave(control);
}

int64_t stki_convert_units(const stki_convert *convert)
{
    return convert->units;
}

void stki_convert_run_part(const stki_convert *convert, void *dst, const void *src, int64_t first, int64_t last)
{
    stki_axis axes[STK_MAX_DIMS + 2];

    if (convert->empty || first >= last)
        return;
    memcpy(axes, convert->axes, (size_t)convert->axis_count * sizeof axes[0]);
    stki_axis *cut = &axes[convert->cut_axis];
    int64_t low = first * convert->cut_step, high = last * convert->cut_step;
    if (high > cut->n)
        high = cut->n;
    cut->n = high - low;
    int64_t channel = low * cut->channel_step;
    if (convert->lane.period) /* the only axis with a channel step is then one that repeats them */
        channel %= convert->lane.period;
    stki_float_control control = stki_float_enter();
    walk(convert, axes, (uint8_t *)dst + convert->dst_offset + low * cut->dst_stride,
         (const uint8_t *)src + convert->src_offset + low * cut->src_stride, channel);
    stki_float_leave(control);
}

static void fetch_sample(const stki_convert *convert, const void *src)
{
    const uint8_t *from = (const uint8_t *)src + convert->prefetch_offset;
    int64_t bytes = convert->prefetch_bytes < FETCH_AT_MOST ? convert->prefetch_bytes : FETCH_AT_MOST;
    int64_t before = (int64_t)((uintptr_t)from % LINE); /* a row that begins inside a line ends in one more */

    for (int64_t i = -before; i < bytes; i += LINE)
        __builtin_prefetch(from + i, 0, 2);
}

static int64_t rows_ahead(const stki_convert *convert)
{
    int64_t bytes = convert->prefetch_bytes;
    int64_t rows = bytes > 0 ? (FETCH_DISTANCE + bytes - 1) / bytes : 0;

    return rows < ROWS_AHEAD_AT_MOST ? rows : ROWS_AHEAD_AT_MOST;
}

/* Sample i by converts[i * step]: step 0 is one conversion for all. */
static inline void run_list(const stki_convert *const *converts, int64_t step, uint8_t *to, int64_t dst_stride,
                            const void *const *src, int64_t count)
{
    const int64_t ahead = count > 0 ? rows_ahead(converts[0]) : 0;

    for (int64_t i = 0; i < ahead && i < count; i++)
        fetch_sample(converts[i * step], src[i]);
    stki_float_control control = stki_float_enter();
    for (int64_t i = 0; i < count; i++, to += dst_stride) {
        const stki_convert *convert = converts[i * step];

        if (i + ahead < count)
            fetch_sample(converts[(i + ahead) * step], src[i + ahead]);
        if (!convert->empty)
            walk(convert, convert->axes, to + convert->dst_offset, (const uint8_t *)src[i] + convert->src_offset, 0);
    }
    stki_float_leave(control);
}

/* Rows that lie one behind another, in the source as in the destination, are one long row. */
static void run_in_line(const stki_convert *convert, uint8_t *to, const void *const *src, int64_t count)
{
    const int64_t ahead = rows_ahead(convert), bytes = convert->bytes_read;
    const uint8_t *const *rows = (const uint8_t *const *)src;
    stki_axis axis = convert->axes[0];
    int64_t fetched = 0;

    stki_float_control control = stki_float_enter();
    for (int64_t i = 0, n; i < count; i += n, to += n * convert->bytes_written) {
        for (n = 1; i + n < count && rows[i + n] == rows[i] + n * bytes; n++)
            ;
        for (; fetched < count && fetched < i + n + ahead; fetched++) /* the hardware follows long rows by itself */
            if (fetched == 0 || rows[fetched] != rows[fetched - 1] + bytes)
                fetch_sample(convert, rows[fetched]);
        axis.n = n * convert->axes[0].n;
        convert->inner(convert, &axis, to, rows[i], 0);
    }
    stki_float_leave(control);
}

void stki_convert_run_many(const stki_convert *convert, void *dst, int64_t dst_stride, const void *const *src,
                           int64_t count)
{
    if (convert->in_line && dst_stride == convert->bytes_written)
        run_in_line(convert, dst, src, count);
    else
        run_list(&convert, 0, dst, dst_stride, src, count);
}

void stki_convert_run_each(const stki_convert *const *converts, void *dst, int64_t dst_stride, const void *const *src,
                           int64_t count)
{
    run_list(converts, 1, dst, dst_stride, src, count);
}

bool stki_convert_streams(const stki_convert *convert)
{
    return convert->lane.streaming;
}

int64_t stki_convert_bytes_read(const stki_convert *convert)
{
    return convert->bytes_read;
}

int64_t stki_convert_bytes_written(const stki_convert *convert)
{
    return convert->bytes_written;
}

const char *stki_convert_name(const stki_convert *convert)
{
    return convert->name;
}
