/* variable.c: see variable.h. */
#include "variable.h"
#include "allocate.h"
#include "error.h"
#include "text_check.h"
#include <stdlib.h>
#include <string.h>

/* U+FDD0 and U+FDD1: noncharacters, which Unicode reserves for internal use. */
#define OPEN "\xef\xb7\x90"
#define CLOSE "\xef\xb7\x91"

static const char name_letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

/* The length of NAME if "${NAME}" starts at `at`, otherwise -1. */
static int64_t name_length(const char *at, int64_t left)
{
    int64_t i = 2;

    if (left < 3 || at[0] != '$' || at[1] != '{')
        return -1;
    while (i < left && at[i] && strchr(name_letters, at[i]))
        i++;
    return i < left && at[i] == '}' ? i - 2 : -1;
}

/* ---- hiding ---- */

stk_status stki_variables_hide(const char **text, int64_t *length, char **copy, stk_error *err)
{
    const char *from = *text;
    int64_t i, used = 0, variables = 0;

    for (i = 0; i < *length; i++)
        variables += name_length(from + i, *length - i) >= 0;
    if (variables == 0)
        return STK_OK;
    *copy = stki_zalloc(*length + 4 * variables);
    if (!*copy)
        return stki_fail_memory(err, *length + 4 * variables, "a config text");
    for (i = 0; i < *length; i++) {
        int64_t name = name_length(from + i, *length - i);

        (*copy)[used++] = from[i];
        if (name < 0)
            continue;
        memcpy(*copy + used, OPEN, 3);
        memcpy(*copy + used + 3, from + i + 2, (size_t)name);
        memcpy(*copy + used + 3 + name, CLOSE, 3);
        used += name + 6;
        i += name + 2;
    }
    *text = *copy;
    *length = used;
    return STK_OK;
}

int64_t stki_variables_show(char *text, int64_t length)
{
    int64_t i, used = 0;

    for (i = 0; i < length; i++) {
        bool open = length - i >= 3 && memcmp(text + i, OPEN, 3) == 0;
        bool close = length - i >= 3 && memcmp(text + i, CLOSE, 3) == 0;

        text[used++] = open ? '{' : close ? '}' : text[i];
        i += open || close ? 2 : 0;
    }
    text[used] = '\0';
    return used;
}

/* ---- expanding ---- */

struct text {
    char *bytes;
    int64_t length, capacity;
};

static stk_status put(stki_document *document, const stki_location *location, struct text *to, const char *bytes,
                      int64_t length, stk_error *err)
{
    if (length > STKI_DOCUMENT_BYTES - to->length)
        return stki_fail_location(err, STK_E_LIMIT, location, "the config has more than %d bytes of text",
                                  STKI_DOCUMENT_BYTES);
    if (to->length + length + 1 > to->capacity) {
        int64_t capacity = 2 * (to->length + length) + 64;
        char *bigger = stki_document_alloc(document, capacity, err);

        if (!bigger)
            return STK_E_MEMORY;
        if (to->length)
            memcpy(bigger, to->bytes, (size_t)to->length);
        to->bytes = bigger;
        to->capacity = capacity;
    }
    memcpy(to->bytes + to->length, bytes, (size_t)length);
    to->length += length;
    to->bytes[to->length] = '\0';
    return STK_OK;
}

static stk_status find_variable(const stki_location *location, const char *at, int64_t length, const char **value,
                                stk_error *err)
{
    char name[128], what[48];
    int shown = (int)(length < 40 ? length : 40);

    if (length == 0 || (at[0] >= '0' && at[0] <= '9') || length >= (int64_t)sizeof name)
        return stki_fail_location(err, STK_E_CONFIG, location, "\"${%.*s}\" is not a variable name", shown, at);
    memcpy(name, at, (size_t)length);
    name[length] = '\0';
    *value = getenv(name);
    if (!*value)
        return stki_fail_location(err, STK_E_CONFIG, location, "the environment variable %s is not set", name);
    if (stki_text_check(*value, (int64_t)strlen(*value), STKI_TEXT_VALUE, what) >= 0)
        return stki_fail_location(
            err, STK_E_CONFIG, location,
            "the environment variable %s contains characters that are not allowed in a config: %s", name, what);
    return STK_OK;
}

/* Expands the `$` at `at`: its first `*used` bytes are replaced with `*value`. */
static stk_status dollar(const stki_location *location, const char *at, int64_t left, int64_t *used, const char **value,
                         stk_error *err)
{
    int64_t name = name_length(at, left);

    *value = "$";
    *used = left >= 2 && at[1] == '$' ? 2 : 1;
    if (name >= 0) {
        *used = name + 3;
        return find_variable(location, at + 2, name, value, err);
    }
    if (left >= 2 && at[1] == '{')
        return stki_fail_location(err, STK_E_CONFIG, location,
                                  "found \"%.*s\", expected ${NAME} with letters, digits and _ ($$ stands for a $)",
                                  (int)(left < 40 ? left : 40), at);
    return STK_OK;
}

stk_status stki_variables_expand(stki_document *document, const stki_location *location, const char **text,
                                 int64_t *length, stk_error *err)
{
    struct text to = {0};
    int64_t at = 0;
    stk_status status = STK_OK;

    while (status == STK_OK && at < *length) {
        const char *value, *next = memchr(*text + at, '$', (size_t)(*length - at));
        int64_t plain = next ? next - *text - at : *length - at, used;

        status = put(document, location, &to, *text + at, plain, err);
        at += plain;
        if (status != STK_OK || !next)
            continue;
        status = dollar(location, next, *length - at, &used, &value, err);
        if (status == STK_OK)
            status = put(document, location, &to, value, (int64_t)strlen(value), err);
        at += used;
    }
    *text = to.bytes;
    *length = to.length;
    return status;
}
