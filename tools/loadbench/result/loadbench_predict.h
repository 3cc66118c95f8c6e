/* loadbench_predict.h: what another number of workers or more slots are expected to give; and what they then give. */
#ifndef LOADBENCH_PREDICT_H
#define LOADBENCH_PREDICT_H

#include "loadbench_verdict.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stoker/status.h>

struct lb_result;

enum { LB_PREDICTIONS = 4 };

struct lb_predictions {
    int count;
    enum lb_confidence confidence; /* of the verdict: both rest on the same clocks */
    char doubt[200];               /* why it is not higher; "" */
    char missing[128];             /* why there are none although the run was judged; "" */
    struct lb_prediction {
        char set[64];     /* "loader.num_workers=3" */
        double rate;      /* samples/s; 0: */
        char missing[96]; /* … why there is no number; "" */
        double now;       /* of the run it is predicted from: the median of its repeats */
        bool checked;     /* it was run, in turns with the config as it is: */
        double beside;    /* samples/s of the config as it is */
        double measured;  /* samples/s: `beside` times the median gain; 0: it failed */
        double spread;    /* of the measured gains: from the lowest to the highest, as a part of the median */
        char failure[256];
    } each[LB_PREDICTIONS];
};

/* From a result that is complete. None where the run cannot be judged, or where its repeats differ too much. */
void lb_predict(const struct lb_result *result, struct lb_predictions *out);
/* Runs the config as it is and with each change, one after the other, `rounds` times, so that a machine that drifts
 * does not count. Stops where a signal asks for it. A change that fails is noted, not an error. */
void lb_predict_check(const char *path, const char *const *sets, int set_count, int rounds,
                      struct lb_predictions *predictions);
void lb_predict_print(const struct lb_predictions *predictions, FILE *to);
/* "+50 %", "-3 %", "112 times". */
const char *lb_gain_text(char *buffer, int size, double now, double then);
#define LB_GAIN(now, then) lb_gain_text((char[48]){0}, 48, now, then)
json_t *lb_predict_json(const struct lb_predictions *predictions); /* NULL: no memory */

#endif
