/* stoker_json.h: what the subcommands have in common when they answer in JSON. */
#ifndef STOKER_JSON_H
#define STOKER_JSON_H

#include <jansson.h>
#include <stoker/status.h>

/* {"class": "truncated", "message": …} */
json_t *st_error_json(stk_status status, const char *message);
/* Prints it to stdout and lets it go. */
void st_json_print(json_t *json);

#endif
