/* windows.h: windows over the samples of a data set. A window consists of `length` samples at a distance of `dilation`
 * and does not cross the boundaries of its group, which is a run of samples. Windows start `step` samples apart and are
 * numbered consecutively across all groups, so the first sample of a window is a pure function of its number. Immutable
 * after create; thread-safe. */
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
    int64_t short_groups, short_samples; /* number of groups shorter than a window, and of their samples */
    int64_t longest_group;               /* samples */
} stki_windows;

/* Returns the number of samples from a window's first to its last, inclusive. */
static inline int64_t stki_window_span(int64_t length, int64_t dilation)
{
    return (length - 1) * dilation + 1;
}

/* Returns the number of windows in `samples` consecutive samples. */
int64_t stki_window_count(int64_t samples, int64_t length, int64_t dilation, int64_t step);

/* Creates windows over groups of samples. Group g consists of the samples [cuts[g], cuts[g + 1]). `cuts` must be
 * ascending; length, dilation and step must be at least 1, and the span must not overflow. */
stk_status stki_windows_create(const int64_t *cuts, int64_t group_count, int64_t length, int64_t dilation, int64_t step,
                               stki_windows **out, stk_error *err);
void stki_windows_destroy(stki_windows *windows); /* NULL is allowed */

/* Returns the first sample of window `number`, which must be in [0, count). */
int64_t stki_windows_first(const stki_windows *windows, int64_t number);
/* Returns how many windows start before `sample`, which is also the number of the first window that starts at or after
 * it. */
int64_t stki_windows_before(const stki_windows *windows, int64_t sample);

#endif
