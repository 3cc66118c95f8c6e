/* text_check.c: see text_check.h. Control characters are refused because config values appear in messages on terminals;
 * line separators and byte order marks, because YAML parsers treat them differently; noncharacters, because variable.c
 * uses them internally. */
#include "text_check.h"
#include <stdio.h>

int stki_utf8_next(const char *text, int64_t left, uint32_t *code)
{
    const unsigned char *at = (const unsigned char *)text;
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    int bytes, i;
    uint32_t value;

    if (left < 1)
        return 0;
    if (at[0] < 0x80) {
        *code = at[0];
        return 1;
    }
    bytes = at[0] >= 0xf0 && at[0] < 0xf8   ? 4
            : at[0] >= 0xe0 && at[0] < 0xf0 ? 3
            : at[0] >= 0xc0 && at[0] < 0xe0 ? 2
                                            : 0;
    if (bytes == 0 || bytes > left)
        return 0;
    value = at[0] & (0x7fu >> bytes);
    for (i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (at[i] & 0x3fu);
    }
    if (value < smallest[bytes] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        return 0;
    *code = value;
    return bytes;
}

bool stki_text_allows(uint32_t code, enum stki_text_rule rule)
{
    if (code < 0x20)
        return rule != STKI_TEXT_KEY && (code == '\n' || code == '\t' || (code == '\r' && rule == STKI_TEXT_FILE));
    return !(code >= 0x7f && code < 0xa0) && code != 0x2028 && code != 0x2029 && code != 0xfeff &&
           (code & 0xfffe) != 0xfffe && !(code >= 0xfdd0 && code <= 0xfdef);
}

int64_t stki_text_check(const char *text, int64_t length, enum stki_text_rule rule, char *what)
{
    int64_t at = 0;

    while (at < length) {
        uint32_t code;
        int bytes = stki_utf8_next(text + at, length - at, &code);

        if (bytes == 0) {
            snprintf(what, 48, "byte 0x%02x is not valid UTF-8", (unsigned char)text[at]);
            return at;
        }
        if (!stki_text_allows(code, rule)) {
            if (code)
                snprintf(what, 48, "%scharacter U+%04X", code < 0xa0 ? "control " : "", code);
            else
                snprintf(what, 48, "a NUL byte");
            return at;
        }
        at += bytes;
    }
    return -1;
}
