/* loadbench_steady.c: least squares, with the standard error of the slope from the residuals. */
#include "loadbench_steady.h"
#include "loadbench_statistics.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *const lb_steady_words[] = {
    [LB_STEADY_UNKNOWN] = "unknown",
    [LB_STEADY_SETTLED] = "settled",
    [LB_STEADY_DRIFTS] = "drifts",
    [LB_STEADY_NOISY] = "noisy",
};

static struct lb_steady judge_once(const double *x, const double *y, int n)
{
    struct lb_steady out = {.intervals = n, .settled_after_s = -1};
    double mean_x = 0, mean_y = 0, xx = 0, xy = 0, residual = 0, scatter = 0;

    if (n < LB_STEADY_LEAST)
        return out;
    for (int i = 0; i < n; i++) {
        mean_x += x[i] / n;
        mean_y += y[i] / n;
    }
    for (int i = 0; i < n; i++) {
        xx += (x[i] - mean_x) * (x[i] - mean_x);
        xy += (x[i] - mean_x) * (y[i] - mean_y);
    }
    if (!(xx > 0) || !(mean_y > 0))
        return out;
    const double slope = xy / xx, span = x[n - 1] - x[0];
    for (int i = 0; i < n; i++) {
        const double off = y[i] - mean_y - slope * (x[i] - mean_x);
        residual += off * off;
        scatter += (y[i] - mean_y) * (y[i] - mean_y);
    }
    out.trend_percent = 100 * slope * span / mean_y;
    out.error_percent = 100 * 2 * sqrt(residual / (n - 2) / xx) * span / mean_y;
    out.scatter_percent = 100 * sqrt(scatter / (n - 1)) / mean_y;
    if (fabs(out.trend_percent) > LB_STEADY_TREND && fabs(out.trend_percent) > out.error_percent)
        out.kind = LB_STEADY_DRIFTS;
    else if (fabs(out.trend_percent) <= LB_STEADY_TREND && out.error_percent <= LB_STEADY_TREND)
        out.kind = LB_STEADY_SETTLED;
    else
        out.kind = LB_STEADY_NOISY;
    return out;
}

struct lb_steady lb_steady_judge(const double *at_s, const double *rates, int count)
{
    struct lb_steady out = judge_once(at_s, rates, count);

    for (int part = 1; part <= 3 && out.kind == LB_STEADY_DRIFTS && out.settled_after_s < 0; part++) {
        const int skip = count * part / 4;
        if (judge_once(at_s + skip, rates + skip, count - skip).kind == LB_STEADY_SETTLED)
            out.settled_after_s = at_s[skip] - at_s[0];
    }
    return out;
}

struct lb_steady lb_steady_of(const struct lb_marks *marks, int first)
{
    double at[LB_MARKS], rates[LB_MARKS];
    int count = 0;

    for (int i = first; first >= 0 && i + 1 < marks->count; i++) {
        const struct lb_mark *a = &marks->marks[i], *b = &marks->marks[i + 1];
        const int64_t length = b->at_ns - a->at_ns;
        /* the last interval may be short, and the rate of a few batches is meaningless */
        if (length <= 0 || (i + 2 == marks->count && 2 * length < marks->period_ns))
            continue;
        at[count] = (double)(a->at_ns + length / 2 - marks->marks[first].at_ns) / 1e9;
        rates[count++] = lb_ratio((double)(b->samples - a->samples), (double)length / 1e9);
    }
    return lb_steady_judge(at, rates, count);
}

void lb_steady_text(const struct lb_steady *steady, char *out, int size)
{
    const double half = steady->trend_percent / 2;

    if (fabs(steady->trend_percent) <= 100)
        snprintf(out, (size_t)size,
                 "from start to end, the rate changed by %+.1f %% of its mean (+- %.1f); intervals vary by %.1f %%",
                 steady->trend_percent, steady->error_percent, steady->scatter_percent);
    else
        snprintf(
            out, (size_t)size,
            "the rate changed from %.0f %% of its mean at the start to %.0f %% at the end; intervals vary by %.1f %%",
            fmax(0, 100 - half), fmax(0, 100 + half), steady->scatter_percent);
}
