/* token_split.h: text cut into the pieces that are encoded by themselves, by a regular expression. Immutable once made;
 * any thread, each with its own finder. */
#ifndef STKI_TOKEN_SPLIT_H
#define STKI_TOKEN_SPLIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_token_split stki_token_split;
typedef struct stki_token_finder stki_token_finder; /* one thread's */

/* The patterns that are known by name; NULL: no such name. */
const char *stki_token_pattern(const char *name);
/* "gpt2, cl100k or o200k"; with a `last` name after them where it is not NULL. Returns the buffer. */
enum { STKI_TOKEN_PATTERN_LIST = 64 };
const char *stki_token_pattern_list(const char *last, char *buffer, int size);

/* \s in it means the characters of Unicode's White_Space property, as in the libraries these patterns were written for.
 * `ruby`: it is written for Oniguruma with the syntax of Ruby, as those of a tokenizer.json are: ^ and $ are the ends
 * of lines. STK_E_CONFIG: it is no regular expression; the message says where. STK_E_UNSUPPORTED: `ruby`, and it has a
 * set inside another one. */
stk_status stki_token_split_create(const char *pattern, bool ruby, stki_token_split **out, stk_error *err);
void stki_token_split_destroy(stki_token_split *split); /* NULL is fine */
stk_status stki_token_finder_create(const stki_token_split *split, stki_token_finder **out, stk_error *err);
void stki_token_finder_destroy(stki_token_finder *finder); /* NULL is fine */

/* The end of the piece that begins at `at`, which is below length: of the match there (*matched), or of the text before
 * the next match. The text is valid UTF-8. STK_E_LIMIT: the expression takes too long, or too much memory. */
stk_status stki_token_split_next(const stki_token_split *split, stki_token_finder *finder, const uint8_t *text,
                                 int64_t length, int64_t at, int64_t *end, bool *matched, stk_error *err);

/* "10.42 2022-12-11": of PCRE2, which is running. */
const char *stki_token_split_version(char buffer[64]);

#endif
