/* json_text.h: one value out of one line of JSON, without making anything of the rest. The whole line is checked: RFC
 * 8259 to the letter, in UTF-8, nested no deeper than STKI_JSON_DEPTH; but NaN, Infinity and -Infinity are numbers,
 * which Python writes. Pure; any thread. */
#ifndef STKI_JSON_TEXT_H
#define STKI_JSON_TEXT_H

#include <stdbool.h>
#include <stdint.h>

enum { STKI_JSON_DEPTH = 128 };

/* A string between its quotes, or a number or list as it stands. */
typedef struct stki_json_span {
    const char *at;
    int64_t length; /* as it stands */
    int64_t bytes;  /* of the text that it means; of others 0 */
} stki_json_span;

typedef struct stki_json_problem {
    int64_t at;       /* byte of the line; its length: the line ends too early */
    const char *what; /* static text: what was expected there, or what is wrong with it */
} stki_json_problem;

enum stki_json_found {
    STKI_JSON_TEXT, /* *out is the value; of the next two as well */
    STKI_JSON_NUMBER,
    STKI_JSON_LIST,
    STKI_JSON_BROKEN,  /* no JSON; *problem says where and why */
    STKI_JSON_MISSING, /* an object without this key, or no object */
    STKI_JSON_OTHER    /* the key's value is something else; problem->what says what it is */
};

/* The value of `key` in the object that the line is; of several the last one's. "a.b" is also the key b of the object
 * that a is. */
enum stki_json_found stki_json_find(const char *line, int64_t length, const char *key, stki_json_span *out,
                                    stki_json_problem *problem);
/* Writes span->bytes bytes. The span is one that stki_json_find gave. */
void stki_json_unescape(const stki_json_span *span, char *to);

/* A number, or one inside a list. */
typedef struct stki_json_number {
    bool whole;     /* a whole number of 64 bits: `value` is it */
    bool too_large; /* a whole number that does not fit */
    int64_t value;
    double real; /* always */
} stki_json_number;

/* The number that begins at *at, of a span that stki_json_find gave; *at moves behind it and what separates it from the
 * next one of a list. False: something else stands there (*at stays), or the list ends. Begin with stki_json_list. */
bool stki_json_next(const char **at, const char *end, stki_json_number *out);
/* The first item of a list, *end: its end. */
const char *stki_json_list(const stki_json_span *list, const char **end);

#endif
