/* text_check.h: which characters a config or a message may hold, and whether two texts are the same. */
#ifndef STKI_TEXT_CHECK_H
#define STKI_TEXT_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Decodes one UTF-8 character of at most `left` bytes. Returns its bytes, or 0 if they are no valid character
 * (overlong, a surrogate, above U+10FFFF, cut off). */
int stki_utf8_next(const char *text, int64_t left, uint32_t *code);

enum stki_text_rule {
    STKI_TEXT_FILE,  /* lines may end in \r\n */
    STKI_TEXT_VALUE, /* \n and \t are fine */
    STKI_TEXT_KEY    /* no control characters at all */
};

bool stki_text_allows(uint32_t code, enum stki_text_rule rule);

/* Returns the offset of the first byte that `rule` forbids (control characters, line separators, byte order marks,
 * noncharacters, invalid UTF-8), -1 if there is none. `what` (at least 48 bytes) gets its name. */
int64_t stki_text_check(const char *text, int64_t length, enum stki_text_rule rule, char *what);

/* Also true if both are NULL. */
static inline bool stki_text_equal(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

#endif
