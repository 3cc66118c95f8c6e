/* loadbench_sweep.h: --sweep runs every combination of the values of several keys. */
#ifndef LOADBENCH_SWEEP_H
#define LOADBENCH_SWEEP_H

#include "loadbench_range.h"
#include <jansson.h>
#include <stdio.h>

enum { LB_SWEEP_KEYS = 6, LB_SWEEP_POINTS = 10000, LB_SWEEP_COLUMNS = 8 };

/* A table column after those of the keys: a number at this path of the point's JSON; NULL: the bottleneck. */
struct lb_sweep_column {
    const char *head, *path;
};
extern const struct lb_sweep_column lb_sweep_columns[LB_SWEEP_COLUMNS];

struct lb_sweep {
    struct lb_range ranges[LB_SWEEP_KEYS];
    int count;
    int64_t points; /* number of combinations */
    int64_t failed; /* number of points that failed */
    json_t *tree;   /* points measured so far */
    json_t *facts;  /* machine, versions, data and config of the first point that ran */
};

/* `texts`: the values of the option --sweep, each "KEY=VALUES". STK_E_CONFIG: one is invalid, or there are too many
 * keys or combinations. */
stk_status lb_sweep_init(const char *const *texts, int count, struct lb_sweep *out, stk_error *err);
void lb_sweep_fini(struct lb_sweep *sweep);

/* Runs all combinations, the last key varying fastest, with a line on `progress` (may be NULL) after each. A point that
 * fails becomes a row with its message. STK_E_CONFIG: no combination is a valid config. Any other error: all points
 * failed. `err` is the error of the first point that failed. After a signal, the tree has the points measured so
 * far. */
stk_status lb_sweep_run(struct lb_sweep *sweep, const char *path, const char *const *sets, int set_count,
                        FILE *progress, stk_error *err);

/* Returns the conclusion from {"keys", "points"}: the point with the most samples/s and those within its noise, or that
 * no point differs; "" if no point ran. Free it with free(). NULL: out of memory. Sets *within_noise to the number of
 * points within the noise of the best. */
char *lb_sweep_conclusion(const json_t *sweep, int *within_noise);
/* Prints the table and the conclusion. */
void lb_sweep_print(const struct lb_sweep *sweep, const char *conclusion, FILE *to);

#endif
