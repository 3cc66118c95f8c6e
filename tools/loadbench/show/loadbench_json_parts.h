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
/* Adds the figures of a group. Returns `object`. */
json_t *lb_json_group(json_t *object, enum lb_figure_group group, const void *owner);
/* The same of a table of one's own. */
json_t *lb_json_rows(json_t *object, const struct lb_figure *rows, int count, int group, const void *owner);
/* The text of a tree: indented, a list of numbers on one line. free() it. NULL: no memory. */
char *lb_json_dump(const json_t *tree);
/* STK_E_MEMORY: not printed. STK_E_IO: not all of it. */
stk_status lb_json_print(const json_t *tree, FILE *to, stk_error *err);

#endif
