/* loadbench_json_parts.h: parts of the JSON result, and what they are made with. A part that is left out for lack of
 * memory makes the whole incomplete. */
#ifndef LOADBENCH_JSON_PARTS_H
#define LOADBENCH_JSON_PARTS_H

#include "loadbench_result.h"
#include <jansson.h>

/* Set where something was left out: better no result than one with holes. */
extern bool lb_json_incomplete;

/* Takes over `value`. */
void lb_json_set(json_t *object, const char *key, json_t *value);
/* Rounded to what was measured: nobody needs 17 digits. */
json_t *lb_json_number(double value);
/* A text from outside, a path above all, may be no UTF-8, which JSON has to be: such bytes become U+FFFD. */
json_t *lb_json_text(const char *text);
json_t *lb_json_summary(struct lb_summary summary);
/* The text of a tree: indented, a list of numbers on one line. free() it. NULL: no memory. */
char *lb_json_dump(const json_t *tree);

/* loadbench_json_machine.c: what was measured on, with which data. */
json_t *lb_json_machine(const struct lb_machine *machine);
json_t *lb_json_storage(const struct lb_place *place);
json_t *lb_json_gpu(const struct lb_gpu *gpu);
json_t *lb_json_versions(void);
json_t *lb_json_timer(const struct lb_timer *timer);
json_t *lb_json_data(const struct lb_facts *facts);

/* loadbench_json_run.c: of one repeat. */
json_t *lb_json_steady(const struct lb_steady *steady);
json_t *lb_json_residency(const struct lb_residency *residency);
json_t *lb_json_others(const struct lb_others *others);
json_t *lb_json_usage(const struct lb_usage *usage);
json_t *lb_json_waits(const stki_histogram *waits);
/* What happened between the marks, a list a quantity. */
json_t *lb_json_intervals(const struct lb_marks *marks);

#endif
