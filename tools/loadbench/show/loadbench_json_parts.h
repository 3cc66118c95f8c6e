/* loadbench_json_parts.h: the sections of the JSON result and helpers to build them. If a section cannot be built for
 * lack of memory, the whole result is marked incomplete. */
#ifndef LOADBENCH_JSON_PARTS_H
#define LOADBENCH_JSON_PARTS_H

#include "loadbench_result.h"
#include <jansson.h>

/* Set if a section is missing: an incomplete result is not printed. */
extern bool lb_json_incomplete;

/* Steals the reference to `value`. */
void lb_json_set(json_t *object, const char *key, json_t *value);
/* Returns a number rounded to six significant digits, because measurements are no more precise. */
json_t *lb_json_number(double value);
/* Adds the figures of a group. Returns `object`. */
json_t *lb_json_group(json_t *object, enum lb_figure_group group, const void *owner);
/* The same with the caller's table. */
json_t *lb_json_rows(json_t *object, const struct lb_figure *rows, int count, int group, const void *owner);
/* Serializes a tree, indented, with lists of numbers on one line. free() it. NULL: out of memory. */
char *lb_json_dump(const json_t *tree);
/* STK_E_MEMORY: nothing was printed. STK_E_IO: the output is incomplete. */
stk_status lb_json_print(const json_t *tree, FILE *to, stk_error *err);

#endif
