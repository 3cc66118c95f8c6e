/* stoker_json.c: see stoker_json.h. */
#include "stoker_json.h"
#include "allocate.h"
#include "text_build.h"
#include <stdio.h>

json_t *st_text_json(const char *text)
{
    json_t *j = json_string(text);
    stki_text_build b = {0};
    char *quoted;

    if (j)
        return j;
    stki_put_json(&b, text); /* with U+FFFD for what is no UTF-8 */
    quoted = stki_text_take(&b);
    j = quoted ? json_loads(quoted, JSON_DECODE_ANY, NULL) : NULL;
    stki_free(quoted);
    return j ? j : json_null();
}

json_t *st_error_json(stk_status status, const char *message)
{
    return json_pack("{s:s, s:o}", "class", stk_status_name(status), "message", st_text_json(message));
}

void st_json_print(json_t *json)
{
    json_dumpf(json, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(json);
}
