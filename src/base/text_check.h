/* text_check.h: checks which characters are allowed in configs and messages, and compares strings that may be NULL. */
#ifndef STKI_TEXT_CHECK_H
#define STKI_TEXT_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Decodes one UTF-8 character from at most `left` bytes. Returns its length, or 0 if it is invalid (overlong, a
 * surrogate, above U+10FFFF, truncated). */
int stki_utf8_next(const char *text, int64_t left, uint32_t *code);

enum stki_text_rule {
    STKI_TEXT_FILE,  /* lines may end in \r\n */
    STKI_TEXT_VALUE, /* \n and \t are allowed */
    STKI_TEXT_KEY    /* no control characters at all */
};

bool stki_text_allows(uint32_t code, enum stki_text_rule rule);

/* Returns the offset of the first byte that `rule` forbids (control characters, line separators, byte order marks,
 * noncharacters, invalid UTF-8), or -1. Writes a description of it to `what` (at least 48 bytes). */
int64_t stki_text_check(const char *text, int64_t length, enum stki_text_rule rule, char *what);

/* Whether both strings are equal; also true if both are NULL. */
static inline bool stki_text_equal(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

#endif
