/* json_text.h: extracts values from a line of JSON without building a tree. The whole line is validated strictly (RFC
 * 8259, UTF-8, nesting up to STKI_JSON_DEPTH), except that NaN, Infinity and -Infinity are accepted, because Python
 * writes them. Pure functions; thread-safe. */
#ifndef STKI_JSON_TEXT_H
#define STKI_JSON_TEXT_H

#include <stdbool.h>
#include <stdint.h>

enum { STKI_JSON_DEPTH = 128 };

/* A string without its quotes, a number or a list. */
typedef struct stki_json_span {
    const char *at;
    int64_t length; /* as stored */
    int64_t bytes;  /* size of the unescaped string; 0 for numbers and lists */
} stki_json_span;

typedef struct stki_json_problem {
    int64_t at;       /* offset in the line; the line's length if the line ends unexpectedly */
    const char *what; /* static text that says what was expected or what is wrong */
} stki_json_problem;

enum stki_json_found {
    STKI_JSON_TEXT, /* `value` is set for this kind and the next two */
    STKI_JSON_NUMBER,
    STKI_JSON_LIST,
    STKI_JSON_BROKEN,  /* invalid JSON; see `problem` */
    STKI_JSON_MISSING, /* the line is an object without this key, or not an object */
    STKI_JSON_OTHER    /* the value is of another type, which problem.what names */
};

/* A key, and what was found for it. The key "a.b" also matches key b in the object at key a. */
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
    bool whole;     /* an integer, stored in `value` */
    bool too_large; /* an integer that does not fit in `value` */
    int64_t value;
    double real; /* always set */
} stki_json_number;

/* Parses the number at *at in a span from stki_json_find_all, and advances *at past the number and its separator.
 * Returns false, with *at unchanged, at the end of the list or if *at is not at a number of fewer than 512 characters.
 * For a list, start with the result of stki_json_list. */
bool stki_json_next(const char **at, const char *end, stki_json_number *out);
/* Returns the start of the first item of a list, and sets *end to the end of the list. */
const char *stki_json_list(const stki_json_span *list, const char **end);

#endif
