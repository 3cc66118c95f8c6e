/* windows.h: windows over the samples of a data set. A window is `length` samples that lie `dilation` apart; it never
 * leaves its group, which is a run of samples. Windows are numbered through all groups, `step` samples from one to the
 * next, so that the first sample of any window is a pure function of its number. Fixed after create; any thread. */
#ifndef STKI_WINDOWS_H
#define STKI_WINDOWS_H

#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_windows {
    int64_t length, dilation, step;      /* samples */
    int64_t count;                       /* windows */
    int64_t group_count;                 /* groups that hold a window */
    int64_t *number;                     /* of each group's first window, and `count` behind the last */
    int64_t *first;                      /* each group's first sample */
    int64_t short_groups, short_samples; /* groups that are shorter than a window, and their samples */
    int64_t longest_group;               /* samples */
} stki_windows;

/* Samples from a window's first to its last, both counted. */
static inline int64_t stki_window_span(int64_t length, int64_t dilation)
{
    return (length - 1) * dilation + 1;
}

/* Windows in `samples` neighbours. */
int64_t stki_window_count(int64_t samples, int64_t length, int64_t dilation, int64_t step);

/* Group g holds the samples [cuts[g], cuts[g + 1]); cuts rise. length, dilation, step >= 1, and the span fits. */
stk_status stki_windows_create(const int64_t *cuts, int64_t group_count, int64_t length, int64_t dilation, int64_t step,
                               stki_windows **out, stk_error *err);
void stki_windows_destroy(stki_windows *windows); /* NULL is fine */

/* The first sample of window `number`, which is inside [0, count). */
int64_t stki_windows_first(const stki_windows *windows, int64_t number);
/* Windows whose first sample lies before `sample`: from it on, the first window has this number. */
int64_t stki_windows_before(const stki_windows *windows, int64_t sample);

#endif
