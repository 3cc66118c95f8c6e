/* stoker_json.c: see stoker_json.h. */
#include "stoker_json.h"
#include "text_json.h"
#include <stdio.h>

json_t *st_error_json(stk_status status, const char *message)
{
    return json_pack("{s:s, s:o}", "class", stk_status_name(status), "message", stki_text_json(message));
}

void st_json_print(json_t *json)
{
    json_dumpf(json, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(json);
}
