/* npy_token.h: the tokens of an .npy header. */
#ifndef STKI_NPY_TOKEN_H
#define STKI_NPY_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

enum stki_npy_kind {
    STKI_NPY_END,    /* end of the text */
    STKI_NPY_MARK,   /* one of { } ( ) [ ] : , which is then text[0] */
    STKI_NPY_STRING, /* text: the part between the quotes */
    STKI_NPY_NUMBER, /* decimal digits; a suffix L (Python 2) is not part of text */
    STKI_NPY_NAME,   /* letters */
    STKI_NPY_WRONG   /* invalid; `why` has the reason */
};

typedef struct stki_npy_token {
    enum stki_npy_kind kind;
    const char *text;
    int64_t length;
    int64_t at;   /* offset of the token in the header text */
    bool escaped; /* the string contains a backslash; `text` is not unescaped */
    const char *why;
} stki_npy_token;

typedef struct stki_npy_lexer {
    const char *text;
    int64_t length, at;
    bool long_suffix; /* 3L is a number, as in versions 1 and 2 */
} stki_npy_lexer;

stki_npy_token stki_npy_next(stki_npy_lexer *lexer);

#endif
