/* stoker_json.h: JSON output of the subcommands. */
#ifndef STOKER_JSON_H
#define STOKER_JSON_H

#include <jansson.h>
#include <stoker/status.h>

/* {"class": "truncated", "message": …} */
json_t *st_error_json(stk_status status, const char *message);
/* Prints to stdout and drops the reference. */
void st_json_print(json_t *json);

#endif
