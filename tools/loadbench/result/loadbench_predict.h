/* loadbench_predict.h: what another number of workers, more slots, or reading files in the other way is expected to
 * give; and what it then gives. */
#ifndef LOADBENCH_PREDICT_H
#define LOADBENCH_PREDICT_H

#include "loadbench_verdict.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stoker/status.h>

struct lb_result;

enum { LB_PREDICTIONS = 5 };

struct lb_predictions {
    int count;
    enum lb_confidence confidence; /* of the verdict: both rest on the same clocks */
    char doubt[200];               /* why it is not higher; "" */
    struct lb_prediction {
        char set[64];    /* "loader.num_workers=3" */
        double rate;     /* samples/s */
        double now;      /* of the run it is predicted from: the median of its repeats */
        bool checked;    /* it was run: */
        double measured; /* samples/s; 0: it failed */
        char failure[256];
    } each[LB_PREDICTIONS];
};

/* From a result that is complete. None where the run cannot be judged. */
void lb_predict(const struct lb_result *result, struct lb_predictions *out);
/* Runs each change as `config` was run and notes what came. Stops where a signal asks for it. A change that fails is
 * noted, not an error. */
void lb_predict_check(const char *path, const char *const *sets, int set_count, struct lb_predictions *predictions);
void lb_predict_print(const struct lb_predictions *predictions, FILE *to);
/* "+50 %", "-3 %", "112 times". */
const char *lb_gain_text(char *buffer, int size, double now, double then);
#define LB_GAIN(now, then) lb_gain_text((char[48]){0}, 48, now, then)
json_t *lb_predict_json(const struct lb_predictions *predictions); /* NULL: no memory */

#endif
