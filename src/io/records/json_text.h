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
    STKI_JSON_TEXT, /* *out is the value, as for the next two */
    STKI_JSON_NUMBER,
    STKI_JSON_LIST,
    STKI_JSON_BROKEN,  /* invalid JSON; see *problem */
    STKI_JSON_MISSING, /* an object without this key, or not an object */
    STKI_JSON_OTHER    /* another type of value, named by problem->what */
};

/* Finds the value of `key` in the line's object; the last one wins. "a.b" also matches key b in the object at key a. */
enum stki_json_found stki_json_find(const char *line, int64_t length, const char *key, stki_json_span *out,
                                    stki_json_problem *problem);
/* Writes span->bytes bytes. The span must come from stki_json_find. */
void stki_json_unescape(const stki_json_span *span, char *to);

/* A number, or an element of a list. */
typedef struct stki_json_number {
    bool whole;     /* an integer of 64 bits, in `value` */
    bool too_large; /* an integer beyond 64 bits */
    int64_t value;
    double real; /* always set */
} stki_json_number;

/* Parses the number at *at in a span from stki_json_find, and advances *at past the number and its separator. False:
 * not a number (*at is unchanged), or the end of the list. Start with stki_json_list. */
bool stki_json_next(const char **at, const char *end, stki_json_number *out);
/* Returns the first item of a list; *end: the end of the list. */
const char *stki_json_list(const stki_json_span *list, const char **end);

#endif
