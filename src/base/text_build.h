/* text_build.h: growing strings. A failed allocation is remembered, so that callers check only once, at the end. */
#ifndef STKI_TEXT_BUILD_H
#define STKI_TEXT_BUILD_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_text_build {
    char *text; /* NULL, or terminated by a NUL */
    int64_t length, room;
    bool failed;
} stki_text_build; /* initialize with {0} */

void stki_put(stki_text_build *build, const char *text);
void stki_put_bytes(stki_text_build *build, const char *bytes, int64_t count);
void stki_put_many(stki_text_build *build, char c, int64_t count);
void stki_putf(stki_text_build *build, const char *format, ...) STK_PRINTF(2, 3);
/* Appends a quoted JSON string; invalid UTF-8 becomes U+FFFD. */
void stki_put_json(stki_text_build *build, const char *text);
/* Appends a size: "12", "1.50 KiB", "3.00 GiB" */
void stki_put_size(stki_text_build *build, int64_t bytes);
/* Returns the text, to be freed with stki_free or stk_text_free; NULL: memory was exhausted, and everything has been
 * freed. Resets the builder. */
char *stki_text_take(stki_text_build *build);
/* Like stki_text_take, for functions that return a string and an error; `what` describes the string in the error. */
stk_status stki_text_finish(stki_text_build *build, const char *what, char **out, stk_error *err);

#endif
