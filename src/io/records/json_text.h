/* json_text.h: one text out of one line of JSON, without making anything of the rest. The whole line is checked: RFC
 * 8259 to the letter, in UTF-8, nested no deeper than JSON_TEXT_DEPTH. Pure; any thread. */
#ifndef STKI_JSON_TEXT_H
#define STKI_JSON_TEXT_H

#include <stdbool.h>
#include <stdint.h>

enum { STKI_JSON_DEPTH = 128 };

/* A string between its quotes. */
typedef struct stki_json_span {
    const char *at;
    int64_t length; /* as it stands */
    int64_t bytes;  /* of the text that it means */
} stki_json_span;

typedef struct stki_json_problem {
    int64_t at;       /* byte of the line; its length: the line ends too early */
    const char *what; /* static text: what was expected there, or what is wrong with it */
} stki_json_problem;

enum stki_json_found {
    STKI_JSON_TEXT,    /* *out is the value */
    STKI_JSON_BROKEN,  /* no JSON; *problem says where and why */
    STKI_JSON_MISSING, /* an object without this key, or no object */
    STKI_JSON_OTHER    /* the key's value is no string; problem->what says what it is */
};

/* The value of `key` in the object that the line is; of several the last one's. */
enum stki_json_found stki_json_find(const char *line, int64_t length, const char *key, stki_json_span *out,
                                    stki_json_problem *problem);
/* Writes span->bytes bytes. The span is one that stki_json_find gave. */
void stki_json_unescape(const stki_json_span *span, char *to);

#endif
