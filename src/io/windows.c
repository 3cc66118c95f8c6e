/* windows.c: see windows.h. */
#include "windows.h"
#include "allocate.h"
#include "bisect.h"
#include "error.h"

int64_t stki_window_count(int64_t samples, int64_t length, int64_t dilation, int64_t step)
{
    const int64_t span = stki_window_span(length, dilation);

    return samples < span ? 0 : (samples - span) / step + 1;
}

stk_status stki_windows_create(const int64_t *cuts, int64_t group_count, int64_t length, int64_t dilation, int64_t step,
                               stki_windows **out, stk_error *err)
{
    stki_windows *w = stki_zalloc(sizeof *w);

    if (w) {
        w->number = stki_zalloc_array(group_count + 1, sizeof *w->number);
        w->first = stki_zalloc_array(group_count + 1, sizeof *w->first);
    }
    if (!w || !w->number || !w->first) {
        stki_windows_destroy(w);
        return stki_fail_memory(err, 2 * (group_count + 1) * (int64_t)sizeof *w->number, "the groups of windows");
    }
    w->length = length;
    w->dilation = dilation;
    w->step = step;
    for (int64_t g = 0; g < group_count; g++) {
        const int64_t samples = cuts[g + 1] - cuts[g], count = stki_window_count(samples, length, dilation, step);

        w->longest_group = samples > w->longest_group ? samples : w->longest_group;
        if (count == 0) {
            w->short_groups += samples > 0;
            w->short_samples += samples;
            continue;
        }
        w->first[w->group_count] = cuts[g];
        w->number[w->group_count++] = w->count;
        w->count += count;
    }
    w->number[w->group_count] = w->count;
    *out = w;
    return STK_OK;
}

void stki_windows_destroy(stki_windows *w)
{
    if (!w)
        return;
    stki_free(w->number);
    stki_free(w->first);
    stki_free(w);
}

/* Returns the last group that starts at or before `value`; -1: there is none. */
static int64_t group_of(const int64_t *begins, int64_t count, int64_t value)
{
    return stki_bisect(begins, -1, count - 1, value);
}

int64_t stki_windows_first(const stki_windows *w, int64_t number)
{
    const int64_t g = group_of(w->number, w->group_count, number);

    return w->first[g] + (number - w->number[g]) * w->step;
}

int64_t stki_windows_before(const stki_windows *w, int64_t sample)
{
    const int64_t g = group_of(w->first, w->group_count, sample);
    int64_t count, its;

    if (g < 0)
        return 0;
    its = w->number[g + 1] - w->number[g];
    count = (sample - w->first[g] + w->step - 1) / w->step;
    return w->number[g] + (count < its ? count : its);
}
