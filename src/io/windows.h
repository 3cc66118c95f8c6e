/* windows.h: windows over the samples of a data set. A window has `length` samples at a distance of `dilation`; it does
 * not cross the boundaries of its group, which is a run of samples. Windows are numbered consecutively across all
 * groups, with `step` samples from one to the next, so the first sample of a window is a pure function of its number.
 * Immutable after create; thread-safe. */
#ifndef STKI_WINDOWS_H
#define STKI_WINDOWS_H

#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_windows {
    int64_t length, dilation, step;      /* samples */
    int64_t count;                       /* windows */
    int64_t group_count;                 /* groups with at least one window */
    int64_t *number;                     /* number of each group's first window, followed by `count` */
    int64_t *first;                      /* first sample of each group */
    int64_t short_groups, short_samples; /* groups shorter than a window, and their samples */
    int64_t longest_group;               /* samples */
} stki_windows;

/* Samples from a window's first to its last, inclusive. */
static inline int64_t stki_window_span(int64_t length, int64_t dilation)
{
    return (length - 1) * dilation + 1;
}

/* Number of windows in `samples` consecutive samples. */
int64_t stki_window_count(int64_t samples, int64_t length, int64_t dilation, int64_t step);

/* Group g has the samples [cuts[g], cuts[g + 1]); cuts are ascending. length, dilation, step >= 1, and the span must
 * not overflow. */
stk_status stki_windows_create(const int64_t *cuts, int64_t group_count, int64_t length, int64_t dilation, int64_t step,
                               stki_windows **out, stk_error *err);
void stki_windows_destroy(stki_windows *windows); /* NULL is allowed */

/* The first sample of window `number`, which must be in [0, count). */
int64_t stki_windows_first(const stki_windows *windows, int64_t number);
/* Number of windows whose first sample is before `sample`; it is also the number of the first window at or after it.
 */
int64_t stki_windows_before(const stki_windows *windows, int64_t sample);

#endif
