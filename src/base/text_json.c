/* text_json.c: see text_json.h. */
#include "text_json.h"
#include "allocate.h"
#include "text_check.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char mark[] = "\\x"; /* the two hexadecimal digits follow it */
enum { MARK = 2, ESCAPED = 4 };

static void put_escaped(char *to, unsigned char byte)
{
    char text[ESCAPED + 1];

    snprintf(text, sizeof text, "%s%02x", mark, byte);
    memcpy(to, text, ESCAPED);
}

/* Writes the escaped text, without a NUL, to `to`, which has room for ESCAPED * length bytes. Returns its length. */
static int64_t escape(const char *text, int64_t length, char *to)
{
    int64_t used = 0;

    for (int64_t at = 0; at < length;) {
        uint32_t code;
        const int bytes = stki_utf8_next(text + at, length - at, &code);
        const bool marks = length - at >= MARK && memcmp(text + at, mark, MARK) == 0;

        if (bytes == 0 || marks) {
            put_escaped(to + used, (unsigned char)text[at]);
            used += ESCAPED;
            at++;
            continue;
        }
        memcpy(to + used, text + at, (size_t)bytes);
        used += bytes;
        at += bytes;
    }
    return used;
}

json_t *stki_text_json_n(const char *text, int64_t length)
{
    char *escaped = stki_zalloc(ESCAPED * length + 1);
    json_t *json = escaped ? json_stringn(escaped, (size_t)escape(text, length, escaped)) : NULL;

    stki_free(escaped);
    return json;
}

json_t *stki_text_json(const char *text)
{
    return stki_text_json_n(text, (int64_t)strlen(text));
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *stki_text_of_json(const json_t *json)
{
    const char *text = json_string_value(json);
    char *bytes = text ? stki_strdup(text) : NULL;
    size_t used = 0;

    for (size_t at = 0; bytes && bytes[at]; used++) {
        const bool marks = strncmp(bytes + at, mark, MARK) == 0;
        const int high = marks ? digit_of(bytes[at + MARK]) : -1, low = high >= 0 ? digit_of(bytes[at + MARK + 1]) : -1;

        bytes[used] = low >= 0 ? (char)(unsigned char)(high * 16 + low) : bytes[at];
        at += low >= 0 ? ESCAPED : 1;
    }
    if (bytes)
        bytes[used] = '\0';
    return bytes;
}
