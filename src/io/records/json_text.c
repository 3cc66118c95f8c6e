/* json_text.c: see json_text.h. */
#include "json_text.h"
#include "checked.h"
#include "csv.h"
#include "text_check.h"
#include <string.h>

typedef struct parser {
    const unsigned char *begin, *at, *end;
    int depth;
    const char *what; /* what was expected at `at`, or what is wrong there */
} parser;

static bool fail(parser *p, const char *what)
{
    p->what = what;
    return false;
}

static void skip_space(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

/* ---- strings ---- */

static int hex_of(unsigned char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Parses four hexadecimal digits; -1: invalid. */
static int32_t hex4(const unsigned char *at, const unsigned char *end)
{
    int32_t value = 0;

    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const int digit = hex_of(at[i]);

        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static int utf8_bytes(uint32_t code)
{
    return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

/* Decodes \uXXXX or a surrogate pair of such escapes, and sets *used to the number of bytes after the u. Returns -1 if
 * it is invalid. */
static int32_t escaped_code(const unsigned char *at, const unsigned char *end, int *used)
{
    const int32_t first = hex4(at, end);
    int32_t second;

    *used = 4;
    if (first < 0 || (first >= 0xDC00 && first < 0xE000))
        return -1;
    if (first < 0xD800 || first >= 0xE000)
        return first;
    if (end - at < 10 || at[4] != '\\' || at[5] != 'u')
        return -1;
    second = hex4(at + 6, end);
    if (second < 0xDC00 || second >= 0xE000)
        return -1;
    *used = 10;
    return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
}

static bool parse_escape(parser *p, int64_t *bytes)
{
    int used;
    int32_t code;

    if (p->at + 1 >= p->end) {
        p->at = p->end;
        return fail(p, "the end of a string");
    }
    if (p->at[1] == 'u') {
        code = escaped_code(p->at + 2, p->end, &used);
        if (code < 0)
            return fail(p, "\\u with four digits, and complete surrogate pairs");
        p->at += 2 + used;
        *bytes += utf8_bytes((uint32_t)code);
        return true;
    }
    if (!strchr("\"\\/bfnrt", p->at[1]) || !p->at[1])
        return fail(p, "one of the escapes \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u");
    p->at += 2;
    *bytes += 1;
    return true;
}

/* Parses a string, starting at the opening quote. */
static bool parse_string(parser *p, stki_json_span *out)
{
    int64_t bytes = 0;
    uint32_t code;

    out->at = (const char *)++p->at;
    while (p->at < p->end && *p->at != '"') {
        const unsigned char *run = p->at;

        while (run < p->end && *run >= 0x20 && *run < 0x80 && *run != '"' && *run != '\\')
            run++;
        bytes += run - p->at;
        p->at = run;
        if (run == p->end || *run == '"')
            break;
        if (*run == '\\') {
            if (!parse_escape(p, &bytes))
                return false;
        } else if (*run < 0x20) {
            return fail(p, "no control characters inside a string");
        } else {
            const int n = stki_utf8_next((const char *)run, p->end - run, &code);

            if (n == 0)
                return fail(p, "UTF-8");
            p->at += n;
            bytes += n;
        }
    }
    if (p->at == p->end)
        return fail(p, "the end of a string");
    out->length = (const char *)p->at++ - out->at;
    out->bytes = bytes;
    return true;
}

static char *put_utf8(char *to, uint32_t code)
{
    const int n = utf8_bytes(code);

    if (n == 1) {
        *to = (char)code;
        return to + 1;
    }
    for (int i = n - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3F));
    *to = (char)(code | (0xF00U >> n & 0xFF));
    return to + n;
}

void stki_json_unescape(const stki_json_span *span, char *to)
{
    static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
    const unsigned char *at = (const unsigned char *)span->at, *end = at + span->length;

    if (span->bytes == span->length) { /* there are no escapes, because an escape is longer than its character */
        memcpy(to, span->at, (size_t)span->length);
        return;
    }
    while (at < end) {
        const unsigned char *stop = memchr(at, '\\', (size_t)(end - at));
        const size_t run = (size_t)((stop ? stop : end) - at);
        const char *name;
        int used;

        memcpy(to, at, run);
        to += run;
        at += run;
        if (at == end)
            break;
        if (at[1] == 'u') {
            to = put_utf8(to, (uint32_t)escaped_code(at + 2, end, &used));
            at += 2 + used;
            continue;
        }
        name = strchr(names, at[1]);
        *to++ = name ? values[name - names] : (char)at[1];
        at += 2;
    }
}

/* ---- other values ---- */

static bool digits(parser *p)
{
    const unsigned char *first = p->at;

    while (p->at < p->end && *p->at >= '0' && *p->at <= '9')
        p->at++;
    return p->at > first || fail(p, "a digit");
}

static bool parse_number(parser *p)
{
    p->at += *p->at == '-';
    if (p->at < p->end && *p->at == '0')
        p->at++;
    else if (!digits(p))
        return false;
    if (p->at < p->end && *p->at == '.') {
        p->at++;
        if (!digits(p))
            return false;
    }
    if (p->at == p->end || (*p->at != 'e' && *p->at != 'E'))
        return true;
    p->at++;
    p->at += p->at < p->end && (*p->at == '+' || *p->at == '-');
    return digits(p);
}

static const char no_value[] = "a value: an object, a list, a string, a number, true, false or null";

static bool parse_word(parser *p, const char *word)
{
    const size_t length = strlen(word);

    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0)
        return fail(p, no_value);
    p->at += length;
    return true;
}

static bool parse_value(parser *p);

/* Parses what follows a value in an object or list. Sets *more to false at the end of the object or list. */
static bool parse_comma(parser *p, char close, bool *more, const char *what)
{
    skip_space(p);
    if (p->at == p->end || (*p->at != ',' && *p->at != close))
        return fail(p, what);
    *more = *p->at++ == ',';
    skip_space(p);
    return true;
}

/* Parses a key and its colon. */
static bool parse_key(parser *p, stki_json_span *key)
{
    if (p->at == p->end || *p->at != '"')
        return fail(p, "a key in quotes");
    if (!parse_string(p, key))
        return false;
    skip_space(p);
    if (p->at == p->end || *p->at != ':')
        return fail(p, "a colon");
    p->at++;
    skip_space(p);
    return true;
}

static bool parse_object(parser *p)
{
    stki_json_span key;
    bool more = true;

    p->at++;
    skip_space(p);
    if (p->at < p->end && *p->at == '}') {
        p->at++;
        return true;
    }
    while (more)
        if (!parse_key(p, &key) || !parse_value(p) || !parse_comma(p, '}', &more, "a comma or }"))
            return false;
    return true;
}

static bool parse_list(parser *p)
{
    bool more = true;

    p->at++;
    skip_space(p);
    if (p->at < p->end && *p->at == ']') {
        p->at++;
        return true;
    }
    while (more)
        if (!parse_value(p) || !parse_comma(p, ']', &more, "a comma or ]"))
            return false;
    return true;
}

static bool parse_value(parser *p)
{
    stki_json_span text;
    bool good;

    if (p->at == p->end)
        return fail(p, "a value");
    switch (*p->at) {
    case '"':
        return parse_string(p, &text);
    case 't':
        return parse_word(p, "true");
    case 'f':
        return parse_word(p, "false");
    case 'n':
        return parse_word(p, "null");
    case 'N':
        return parse_word(p, "NaN");
    case 'I':
        return parse_word(p, "Infinity");
    case '{':
    case '[':
        if (++p->depth > STKI_JSON_DEPTH)
            return fail(p, "lists and objects nested at most 128 deep");
        good = *p->at == '{' ? parse_object(p) : parse_list(p);
        p->depth--;
        return good;
    default:
        if (*p->at == '-' && p->at + 1 < p->end && p->at[1] == 'I') {
            p->at++;
            return parse_word(p, "Infinity");
        }
        if (*p->at == '-' || (*p->at >= '0' && *p->at <= '9'))
            return parse_number(p);
        return fail(p, no_value);
    }
}

/* ---- finding keys ---- */

static bool is_key(const stki_json_span *span, const char *key, int64_t length)
{
    char text[256];

    if (span->bytes != length)
        return false;
    if (span->length == span->bytes)
        return memcmp(span->at, key, (size_t)length) == 0;
    if (length > (int64_t)sizeof text)
        return false;
    stki_json_unescape(span, text);
    return memcmp(text, key, (size_t)length) == 0;
}

static const char *kind_of(unsigned char first)
{
    return first == '{'                   ? "an object"
           : first == '['                 ? "a list"
           : first == 't' || first == 'f' ? "a boolean"
           : first == 'n'                 ? "null"
                                          : "a number";
}

static enum stki_json_found found_of(unsigned char first)
{
    return first == '['                                                   ? STKI_JSON_LIST
           : first == '{' || first == 't' || first == 'f' || first == 'n' ? STKI_JSON_OTHER
                                                                          : STKI_JSON_NUMBER;
}

/* Returns the rest of the dotted key if it starts with `span` and a dot; otherwise returns NULL. */
static const char *rest_of(const stki_json_span *span, const char *key)
{
    for (const char *dot = strchr(key, '.'); dot; dot = strchr(dot + 1, '.'))
        if (is_key(span, key, dot - key))
            return dot + 1;
    return NULL;
}

/* The search in one object: the remaining part of each key; NULL: the key cannot be in this object. */
typedef struct search {
    stki_json_want *wants;
    int count;
    const char *keys[STKI_JSON_WANTS];
} search;

/* Compares the name of a member with all keys. Sets bit k of *here if it is key k. Returns whether its value, if that
 * is an object, may contain some of the keys, which are then stored in *inside. */
static bool match(const search *s, const stki_json_span *name, bool object, uint32_t *here, search *inside)
{
    bool any = false;

    *here = 0;
    for (int k = 0; k < s->count; k++) {
        const char *key = s->keys[k], *rest = NULL;

        if (key && is_key(name, key, (int64_t)strlen(key)))
            *here |= 1U << k;
        else if (key && object)
            rest = rest_of(name, key);
        if (rest && !any)
            *inside = (search){.wants = s->wants, .count = s->count};
        if (rest)
            inside->keys[k] = rest;
        any = any || rest;
    }
    return any;
}

static void take_value(const search *s, uint32_t here, enum stki_json_found found, const stki_json_span *value,
                       const char *kind)
{
    for (int k = 0; k < s->count && here; k++)
        if (here & 1U << k) {
            s->wants[k].found = found;
            s->wants[k].value = *value;
            s->wants[k].problem = (stki_json_problem){0, kind};
        }
}

/* Searches the members of an object; later matches replace earlier ones. */
static bool parse_members(parser *p, const search *s)
{
    stki_json_span name, value;
    search inside;
    uint32_t here;
    bool more = true;

    p->at++;
    skip_space(p);
    if (p->at < p->end && *p->at == '}') {
        p->at++;
        return true;
    }
    while (more) {
        const unsigned char *begin, *end;
        unsigned char first;
        bool any, good;

        if (!parse_key(p, &name))
            return false;
        begin = p->at;
        first = p->at < p->end ? *p->at : 0;
        any = match(s, &name, first == '{', &here, &inside);
        if (first == '"' && here) {
            if (!parse_string(p, &value))
                return false;
            take_value(s, here, STKI_JSON_TEXT, &value, NULL);
        } else {
            if (any) {
                if (++p->depth > STKI_JSON_DEPTH)
                    return fail(p, "lists and objects nested at most 128 deep");
                good = parse_members(p, &inside);
                p->depth--;
            } else {
                good = parse_value(p);
            }
            if (!good)
                return false;
            for (end = p->at; here && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r' || end[-1] == '\n');)
                end--; /* exclude the space that was skipped after the value */
            value = (stki_json_span){(const char *)begin, end - begin, 0};
            take_value(s, here, found_of(first), &value, kind_of(first));
        }
        if (!parse_comma(p, '}', &more, "a comma or }"))
            return false;
    }
    return true;
}

void stki_json_find_all(const char *line, int64_t length, stki_json_want *wants, int count)
{
    const unsigned char *begin = (const unsigned char *)line;
    parser p = {.begin = begin, .at = begin, .end = begin + length, .depth = 1};
    search all = {.wants = wants, .count = count};
    bool good;

    for (int k = 0; k < count; k++) {
        wants[k].found = STKI_JSON_MISSING;
        all.keys[k] = wants[k].key;
    }
    skip_space(&p);
    good = p.at < p.end && *p.at == '{' ? parse_members(&p, &all) : parse_value(&p);
    if (good) {
        skip_space(&p);
        good = p.at == p.end || fail(&p, "the end of the line after the value");
    }
    for (int k = 0; k < count && !good; k++) {
        wants[k].found = STKI_JSON_BROKEN;
        wants[k].problem = (stki_json_problem){p.at - p.begin, p.what};
    }
}

/* ---- numbers ---- */

const char *stki_json_list(const stki_json_span *list, const char **end)
{
    parser p = {.at = (const unsigned char *)list->at + 1};

    p.end = p.at + list->length - 2;
    skip_space(&p);
    *end = (const char *)p.end;
    return (const char *)p.at;
}

static void take_whole(const unsigned char *at, const unsigned char *end, stki_json_number *out)
{
    const bool minus = at < end && *at == '-';
    bool fits = true;

    out->value = 0;
    for (at += minus; at < end && fits; at++) {
        if (*at < '0' || *at > '9')
            return; /* not an integer, because it has a decimal point or exponent */
        fits = stki_mul(out->value, 10, &out->value) &&
               stki_add(out->value, minus ? '0' - (int64_t)*at : (int64_t)*at - '0', &out->value);
    }
    for (; at < end; at++)
        if (*at < '0' || *at > '9')
            return;
    out->whole = fits;
    out->too_large = !fits;
}

bool stki_json_next(const char **at, const char *end, stki_json_number *out)
{
    parser p = {.at = (const unsigned char *)*at, .end = (const unsigned char *)end};
    const unsigned char *begin = p.at;
    char text[512];
    int64_t length;

    if (p.at >= p.end || !(*p.at == '-' || *p.at == 'N' || *p.at == 'I' || (*p.at >= '0' && *p.at <= '9')) ||
        !parse_value(&p))
        return false;
    *out = (stki_json_number){0};
    take_whole(begin, p.at, out);
    length = p.at - begin;
    if (length >= (int64_t)sizeof text)
        return false;
    if (out->whole && (out->value != 0 || *begin != '-')) {
        out->real = (double)out->value;
    } else {
        memcpy(text, begin, (size_t)length);
        text[length] = '\0';
        out->real = stki_decimal(text);
    }
    skip_space(&p);
    if (p.at < p.end && *p.at == ',') {
        p.at++;
        skip_space(&p);
    }
    *at = (const char *)p.at;
    return true;
}
