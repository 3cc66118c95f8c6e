/* json_text.h: extracts one value from a line of JSON without building a tree. The whole line is validated strictly
 * (RFC 8259, UTF-8, nesting up to STKI_JSON_DEPTH), except that NaN, Infinity and -Infinity are accepted, because
 * Python writes them. Pure functions; thread-safe. */
#ifndef STKI_JSON_TEXT_H
#define STKI_JSON_TEXT_H

#include <stdbool.h>
#include <stdint.h>

enum { STKI_JSON_DEPTH = 128 };

/* A string without its quotes, a number or a list. */
typedef struct stki_json_span {
    const char *at;
    int64_t length; /* as stored */
    int64_t bytes;  /* of the unescaped string; 0 for others */
} stki_json_span;

typedef struct stki_json_problem {
    int64_t at;       /* offset in the line; its length if the line ends too early */
    const char *what; /* static text: what was expected, or what is wrong */
} stki_json_problem;

enum stki_json_found {
    STKI_JSON_TEXT, /* `value` is set, as for the next two */
    STKI_JSON_NUMBER,
    STKI_JSON_LIST,
    STKI_JSON_BROKEN,  /* invalid JSON; see `problem` */
    STKI_JSON_MISSING, /* an object without this key, or not an object */
    STKI_JSON_OTHER    /* another type of value, named by problem.what */
};

/* A key, and what was found for it. "a.b" also matches key b in the object at key a. */
typedef struct stki_json_want {
    const char *key;
    enum stki_json_found found;
    stki_json_span value;
    stki_json_problem problem;
} stki_json_want;

enum { STKI_JSON_WANTS = 16 };
/* Finds the values of up to STKI_JSON_WANTS keys in the line's object; the last value of a key wins. */
void stki_json_find_all(const char *line, int64_t length, stki_json_want *wants, int count);
/* Writes span->bytes bytes. The span must come from stki_json_find_all. */
void stki_json_unescape(const stki_json_span *span, char *to);

/* A number, or an element of a list. */
typedef struct stki_json_number {
    bool whole;     /* an integer of 64 bits, in `value` */
    bool too_large; /* an integer beyond 64 bits */
    int64_t value;
    double real; /* always set */
} stki_json_number;

/* Parses the number at *at in a span from stki_json_find_all, and advances *at past the number and its separator.
 * False: not a number (*at is unchanged), or the end of the list. Start with stki_json_list. */
bool stki_json_next(const char **at, const char *end, stki_json_number *out);
/* Returns the first item of a list; *end: the end of the list. */
const char *stki_json_list(const stki_json_span *list, const char **end);

#endif
