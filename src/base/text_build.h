/* text_build.h: texts that grow. A failure to allocate is remembered, so that it is asked for once, at the end. */
#ifndef STKI_TEXT_BUILD_H
#define STKI_TEXT_BUILD_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_text_build {
    char *text; /* NULL, or ends in a NUL */
    int64_t length, room;
    bool failed;
} stki_text_build; /* starts as {0} */

void stki_put(stki_text_build *build, const char *text);
void stki_put_bytes(stki_text_build *build, const char *bytes, int64_t count);
void stki_put_many(stki_text_build *build, char c, int64_t count);
void stki_putf(stki_text_build *build, const char *format, ...) STK_PRINTF(2, 3);
/* As a string of JSON, in quotes; what is not UTF-8 becomes U+FFFD. */
void stki_put_json(stki_text_build *build, const char *text);
/* "12", "1.50 KiB", "3.00 GiB" */
void stki_put_size(stki_text_build *build, int64_t bytes);
/* The text, which stki_free or stk_text_free ends, or NULL and nothing is left over. Starts anew. */
char *stki_text_take(stki_text_build *build);
/* The same for functions that return a text; `what` it is, for the error. */
stk_status stki_text_finish(stki_text_build *build, const char *what, char **out, stk_error *err);

#endif
