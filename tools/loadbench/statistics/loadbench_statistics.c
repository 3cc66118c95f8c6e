/* loadbench_statistics.c: medians, spread and intervals. Uses the median, because a single disturbed repeat must not
 * affect the figure. */
#include "loadbench_statistics.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double lb_ratio(double part, double whole)
{
    return whole > 0 || whole < 0 ? part / whole : 0;
}

struct lb_summary lb_summarize(double *values, int count)
{
    struct lb_summary summary = {0};

    if (count < 1)
        return summary;
    qsort(values, (size_t)count, sizeof *values, compare);
    summary.low = values[0];
    summary.high = values[count - 1];
    summary.median = count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
    summary.spread_percent = 100 * lb_ratio(summary.high - summary.low, summary.median);
    return summary;
}

/* ---- confidence interval of a ratio ---- */

enum { DRAWS = 10000 };

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double drawn_median(const double *values, int count, double *room, uint64_t *state)
{
    for (int i = 0; i < count; i++)
        room[i] = values[next(state) % (uint64_t)count];
    return lb_summarize(room, count).median;
}

static double median(const double *values, int count, double *room)
{
    memcpy(room, values, (size_t)count * sizeof *room);
    return lb_summarize(room, count).median;
}

struct lb_ratio_interval lb_bootstrap(const double *before, int before_count, const double *now, int now_count)
{
    double room[LB_BOOTSTRAP_VALUES], *ratios;
    struct lb_ratio_interval out = {0};
    uint64_t state = 1;
    int count = 0;

    before_count = before_count < LB_BOOTSTRAP_VALUES ? before_count : LB_BOOTSTRAP_VALUES;
    now_count = now_count < LB_BOOTSTRAP_VALUES ? now_count : LB_BOOTSTRAP_VALUES;
    if (before_count < 1 || now_count < 1)
        return out;
    out.ratio = lb_ratio(median(now, now_count, room), median(before, before_count, room));
    out.low = out.high = out.ratio;
    ratios = before_count > 1 && now_count > 1 ? malloc(DRAWS * sizeof *ratios) : NULL;
    if (!ratios)
        return out;
    for (int i = 0; i < DRAWS; i++) {
        const double below = drawn_median(before, before_count, room, &state);
        const double above = drawn_median(now, now_count, room, &state);
        if (below > 0 || below < 0)
            ratios[count++] = above / below;
    }
    out.known = count == DRAWS;
    if (out.known) {
        qsort(ratios, (size_t)count, sizeof *ratios, compare);
        out.low = ratios[DRAWS / 40];
        out.high = ratios[DRAWS - 1 - DRAWS / 40];
    }
    free(ratios);
    return out;
}
