/* text_json.h: arbitrary bytes (file names, and messages that contain them) as JSON, which must be UTF-8. Valid UTF-8
 * is kept. Any other byte becomes \xNN (a backslash, an x, two hexadecimal digits), and a backslash before an x becomes
 * \x5c, so that the bytes can be restored. Thread-safe. */
#ifndef STKI_TEXT_JSON_H
#define STKI_TEXT_JSON_H

#include <jansson.h>
#include <stdint.h>

/* NULL: out of memory. */
json_t *stki_text_json(const char *text);
json_t *stki_text_json_n(const char *text, int64_t length);
/* Returns the bytes from which stki_text_json made `json`, to be freed with stki_free; NULL: `json` is not a
 * string, or out of memory. */
char *stki_text_of_json(const json_t *json);

#endif
