/* convert_run.c: runs a compiled conversion on a whole sample, on a part of one, or on a gather list of many. Results
 * are defined with rounding to nearest even and with subnormals, so everything runs in the default floating-point mode.
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

/* Rows of a gather list are prefetched into the L2 cache this many bytes ahead. For long rows without a list kernel,
 * only the start is prefetched; the hardware prefetcher continues from there. */
enum { FETCH_DISTANCE = 8192, FETCH_AT_MOST = 4096, ROWS_AHEAD_AT_MOST = 16, LONG_RUN = 16384 };

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
    if (convert->lane.period) /* a pattern: the cut axis repeats the channels */
        channel %= convert->lane.period;
    stki_float_control control = stki_float_enter();
    walk(convert, axes, (uint8_t *)dst + convert->dst_offset + low * cut->dst_stride,
         (const uint8_t *)src + convert->src_offset + low * cut->src_stride, channel);
    stki_float_leave(control);
}

static void fetch_sample(const stki_convert *convert, const void *src)
{
    const int64_t bytes = convert->prefetch_bytes < FETCH_AT_MOST ? convert->prefetch_bytes : FETCH_AT_MOST;

    stki_fetch((const uint8_t *)src + convert->prefetch_offset, bytes);
}

static int64_t rows_ahead(const stki_convert *convert)
{
    int64_t bytes = convert->prefetch_bytes;
    int64_t rows = bytes > 0 ? (FETCH_DISTANCE + bytes - 1) / bytes : 0;

    return rows < ROWS_AHEAD_AT_MOST ? rows : ROWS_AHEAD_AT_MOST;
}

/* Converts sample i with converts[i * step]; step 0: one conversion for all. */
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

/* The number of rows at the start of the list that are contiguous with each other. */
static int64_t adjacent_rows(const uint8_t *const *rows, int64_t count, int64_t bytes)
{
    int64_t n = 1;

    while (n < count && rows[n] == rows[n - 1] + bytes)
        n++;
    return n;
}

/* The number of rows before the first long run of contiguous rows. */
static int64_t scattered_rows(const uint8_t *const *rows, int64_t count, int64_t bytes)
{
    int64_t begin = 0;

    for (int64_t i = 1; i < count; i++)
        if (rows[i] != rows[i - 1] + bytes)
            begin = i;
        else if ((i - begin + 1) * bytes >= LONG_RUN)
            return begin;
    return count;
}

/* Converts long runs of contiguous rows as one row, for which the hardware prefetcher suffices, and the others as a
 * list. */
static void run_contiguous(const stki_convert *convert, uint8_t *to, const void *const *src, int64_t count)
{
    const int64_t bytes = convert->bytes_read;
    stki_list list = {.rows = (const uint8_t *const *)src, .n = convert->list_n, .ahead = rows_ahead(convert)};

    stki_float_control control = stki_float_enter();
    while (count > 0) {
        list.count = scattered_rows(list.rows, count, bytes);
        if (list.count > 0 && convert->list) {
            convert->list(&convert->lane, to, &list);
        } else if (list.count > 0) {
            convert->cast_list((char *)to, &list);
        } else {
            stki_axis axis = convert->axes[0];
            list.count = adjacent_rows(list.rows, count, bytes);
            axis.n *= list.count;
            convert->inner(convert, &axis, to, list.rows[0], 0);
        }
        to += list.count * convert->bytes_written;
        list.rows += list.count;
        count -= list.count;
    }
    stki_float_leave(control);
}

void stki_convert_run_many(const stki_convert *convert, void *dst, int64_t dst_stride, const void *const *src,
                           int64_t count)
{
    const bool listed = convert->list || (convert->cast_list && (uintptr_t)dst % STKI_LINE == 0);

    if (listed && dst_stride == convert->bytes_written)
        run_contiguous(convert, dst, src, count);
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
