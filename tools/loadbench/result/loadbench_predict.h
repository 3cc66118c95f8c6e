/* loadbench_predict.h: predicted rates with other numbers of workers or more slots, and the check of the predictions by
 * running them. */
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
    enum lb_confidence confidence; /* confidence of the verdict, which uses the same times */
    char doubt[200];               /* why the confidence is not higher, or "" */
    char missing[128];             /* why nothing is predicted although there is a verdict, or "" */
    struct lb_prediction {
        char set[64];     /* "loader.num_workers=3" */
        double rate;      /* samples/s; 0: unknown */
        char missing[96]; /* why the rate is unknown, or "" */
        double now;       /* rate of the run on which predictions are based: the median of its repeats */
        bool checked;     /* measured, alternating with the unchanged config */
        double beside;    /* samples/s of the unchanged config */
        double measured;  /* samples/s: `beside` times the median gain; 0: the run failed */
        double spread;    /* range of the measured gains, relative to the median */
        char failure[256];
    } each[LB_PREDICTIONS];
};

/* Predictions from a complete result; none if the run cannot be judged or its repeats differ too much. */
void lb_predict(const struct lb_result *result, struct lb_predictions *out);
/* Runs the unchanged config and each change in turn, `rounds` times, so that drift of the machine cancels out. Stops on
 * a signal. If a change fails, that is recorded and is not an error. */
void lb_predict_check(const char *path, const char *const *sets, int set_count, int rounds,
                      struct lb_predictions *predictions);
void lb_predict_print(const struct lb_predictions *predictions, FILE *to);
/* "+50 %", "-3 %", "112 times". */
const char *lb_gain_text(char *buffer, int size, double now, double then);
#define LB_GAIN(now, then) lb_gain_text((char[48]){0}, 48, now, then)
json_t *lb_predict_json(const struct lb_predictions *predictions); /* NULL: out of memory */

#endif
