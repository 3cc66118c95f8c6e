/* npy_token.c: see npy_token.h. Reads each byte once; the only state is the position. */
#include "npy_token.h"
#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static char peek(const stki_npy_lexer *lexer, int64_t ahead)
{
    return lexer->at + ahead < lexer->length ? lexer->text[lexer->at + ahead] : '\0';
}

static stki_npy_token token(const stki_npy_lexer *lexer, enum stki_npy_kind kind, int64_t start, int64_t first,
                            int64_t last)
{
    return (stki_npy_token){.kind = kind, .text = lexer->text + first, .length = last - first, .at = start};
}

/* Returns a token of kind WRONG: the word that starts at `start`, or the byte there. */
static stki_npy_token wrong(stki_npy_lexer *lexer, int64_t start, const char *why)
{
    int64_t end = start < lexer->length ? start + 1 : start;
    stki_npy_token t;

    while (end < lexer->length &&
           (is_digit(lexer->text[end]) || is_letter(lexer->text[end]) || lexer->text[end] == '.'))
        end++;
    t = token(lexer, STKI_NPY_WRONG, start, start, end);

    t.why = why;
    return t;
}

/* Parses a string. The quote is at lexer->at; `start` is the position of a prefix u, or of the quote. */
static stki_npy_token string(stki_npy_lexer *lexer, int64_t start)
{
    char quote = peek(lexer, 0);
    int64_t first = ++lexer->at;
    bool escaped = false;
    stki_npy_token t;

    for (; lexer->at < lexer->length && peek(lexer, 0) != quote; lexer->at++) {
        char c = peek(lexer, 0);
        if (c == '\n' || c == '\r' || c == '\0')
            return wrong(lexer, lexer->at, "a line break or NUL inside a string");
        if (c == '\\') {
            escaped = true;
            lexer->at++; /* an escaped character does not close the string */
        }
    }
    if (lexer->at >= lexer->length)
        return wrong(lexer, start, "an unterminated string");
    t = token(lexer, STKI_NPY_STRING, start, first, lexer->at);
    t.escaped = escaped;
    lexer->at++;
    return t;
}

static stki_npy_token number(stki_npy_lexer *lexer)
{
    int64_t start = lexer->at;
    stki_npy_token t;

    while (is_digit(peek(lexer, 0)))
        lexer->at++;
    t = token(lexer, STKI_NPY_NUMBER, start, start, lexer->at);
    if (lexer->long_suffix && peek(lexer, 0) == 'L')
        lexer->at++;
    if (is_digit(peek(lexer, 0)) || is_letter(peek(lexer, 0)) || peek(lexer, 0) == '.')
        return wrong(lexer, start, "a number that is not a plain decimal integer");
    if (t.length > 1 && t.text[0] == '0')
        return wrong(lexer, start, "a number with a leading zero");
    return t;
}

stki_npy_token stki_npy_next(stki_npy_lexer *lexer)
{
    int64_t start;
    char c;

    while (lexer->at < lexer->length && is_blank(peek(lexer, 0)))
        lexer->at++;
    start = lexer->at;
    if (start >= lexer->length)
        return token(lexer, STKI_NPY_END, start, start, start);
    c = peek(lexer, 0);
    if (c == '\'' || c == '"')
        return string(lexer, start);
    if ((c == 'u' || c == 'U') && (peek(lexer, 1) == '\'' || peek(lexer, 1) == '"')) {
        lexer->at++;
        return string(lexer, start);
    }
    if (is_digit(c))
        return number(lexer);
    if (is_letter(c)) {
        while (is_letter(peek(lexer, 0)) || is_digit(peek(lexer, 0)))
            lexer->at++;
        return token(lexer, STKI_NPY_NAME, start, start, lexer->at);
    }
    if (c && strchr("{}()[]:,", c)) {
        lexer->at++;
        return token(lexer, STKI_NPY_MARK, start, start, lexer->at);
    }
    return wrong(lexer, start, "a character that is not allowed in a header");
}
