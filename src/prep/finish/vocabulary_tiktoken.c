/* vocabulary_tiktoken.c: reads lines of "BASE64 RANK": the bytes of a token and its id, which is also its merge rank.
 * Empty lines are skipped. A token without bytes, "= RANK", as in Whisper's files, reserves its rank. Any other line is
 * an error, reported with its number. */
#include "error.h"
#include "vocabulary.h"
#include <inttypes.h>
#include <string.h>

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes base64 to `to`. Returns -1 if it is invalid, -2 if it is too long. */
static int64_t decode(const char *text, int64_t length, uint8_t *to, int64_t room)
{
    int64_t n = 0, pads = 0;

    if (length < 4 || length % 4)
        return -1;
    while (pads < 2 && text[length - 1 - pads] == '=')
        pads++;
    for (int64_t i = 0; i < length; i += 4) {
        const int64_t last = i + 4 == length ? pads : 0;
        uint32_t bits = 0;

        for (int k = 0; k < 4; k++) {
            const int digit = k < 4 - last ? digit_of(text[i + k]) : 0;

            if (digit < 0)
                return -1;
            bits = bits << 6 | (uint32_t)digit;
        }
        if (last && bits & (last == 1 ? 0xffu : 0xffffu))
            return -1; /* non-zero padding bits */
        if (n + 3 - last > room)
            return -2;
        for (int k = 0; k < 3 - (int)last; k++)
            to[n++] = (uint8_t)(bits >> (16 - 8 * k));
    }
    return n;
}

/* Parses a non-negative integer without leading zeros. Returns -1 if it is invalid. */
static int64_t number_of(const char *text, int64_t length)
{
    int64_t value = 0;

    if (length < 1 || length > 10 || (length > 1 && text[0] == '0'))
        return -1;
    for (int64_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        value = value * 10 + (text[i] - '0');
    }
    return value;
}

static stk_status wrong(const stki_vocabulary *v, int64_t line, const char *text, int64_t length, stk_error *err)
{
    return stki_fail_at(err, STK_E_CORRUPT,
                        (stki_place){v->path, -1, -1,
                                     STKI_TEXT("%.*s", (int)(length < 40 ? length : 40), length ? text : ""),
                                     "a token in base64, a space and its rank (or a tokenizer.json)"},
                        "line %" PRId64, line);
}

static stk_status read_line(stki_vocabulary *v, int64_t line, const char *text, int64_t length, uint8_t *bytes,
                            stk_error *err)
{
    const char *space = memchr(text, ' ', (size_t)length);
    int64_t count, rank;

    if (!space)
        return wrong(v, line, text, length, err);
    count = decode(text, space - text, bytes, STKI_TOKEN_MOST_BYTES);
    rank = number_of(space + 1, text + length - space - 1);
    if (count == -2)
        return stki_fail_at(err, STK_E_LIMIT,
                            (stki_place){v->path, -1, -1, "more", STKI_TEXT("at most %d bytes", STKI_TOKEN_MOST_BYTES)},
                            "line %" PRId64 ": token", line);
    if (space - text == 1 && *text == '=' && rank >= 0)
        return stki_vocabulary_reserve_id(v, rank, err);
    if (count < 1 || rank < 0)
        return wrong(v, line, text, length, err);
    return stki_vocabulary_add(v, bytes, count, rank, err);
}

stk_status stki_vocabulary_tiktoken(const char *text, int64_t length, stki_vocabulary *v, stk_error *err)
{
    uint8_t bytes[STKI_TOKEN_MOST_BYTES];
    stk_status status = STK_OK;
    int64_t line = 0;

    for (int64_t at = 0; at < length && status == STK_OK;) {
        const char *begin = text + at, *end = memchr(begin, '\n', (size_t)(length - at));
        int64_t count = end ? end - begin : length - at;

        at += count + 1;
        line++;
        if (count > 0 && begin[count - 1] == '\r')
            count--;
        if (count > 0)
            status = read_line(v, line, begin, count, bytes, err);
    }
    if (status == STK_OK)
        status = stki_vocabulary_finish(v, err);
    return status == STK_OK ? stki_vocabulary_settle(v, true, err) : status;
}
