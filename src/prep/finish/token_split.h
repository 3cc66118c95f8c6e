/* token_split.h: splits text into pieces that are encoded separately, with a regular expression. Immutable after
 * creation; thread-safe with one finder per thread. */
#ifndef STKI_TOKEN_SPLIT_H
#define STKI_TOKEN_SPLIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_token_split stki_token_split;
typedef struct stki_token_finder stki_token_finder; /* matching state of one thread */

/* Returns a predefined pattern; NULL: unknown name. */
const char *stki_token_pattern(const char *name);
/* Lists the names: "gpt2, cl100k or o200k", followed by `last` if it is not NULL. Returns the buffer. */
enum { STKI_TOKEN_PATTERN_LIST = 64 };
const char *stki_token_pattern_list(const char *last, char *buffer, int size);

/* \s in the pattern matches Unicode's White_Space property, as in the libraries for which these patterns were written.
 * `ruby`: the pattern has Oniguruma's Ruby syntax, as in a tokenizer.json: ^ and $ match at line ends. STK_E_CONFIG:
 * not a regular expression; the message contains the position. STK_E_UNSUPPORTED: `ruby` is set and the pattern
 * contains nested sets. */
stk_status stki_token_split_create(const char *pattern, bool ruby, stki_token_split **out, stk_error *err);
void stki_token_split_destroy(stki_token_split *split); /* NULL is allowed */
stk_status stki_token_finder_create(const stki_token_split *split, stki_token_finder **out, stk_error *err);
void stki_token_finder_destroy(stki_token_finder *finder); /* NULL is allowed */

/* Finds the end of the piece at `at` < length: a match (*matched), or the text before the next match. The text must be
 * valid UTF-8. STK_E_LIMIT: matching takes too much time or memory. */
stk_status stki_token_split_next(const stki_token_split *split, stki_token_finder *finder, const uint8_t *text,
                                 int64_t length, int64_t at, int64_t *end, bool *matched, stk_error *err);

/* Returns the version of PCRE2 at run time, such as "10.42 2022-12-11". */
const char *stki_token_split_version(char buffer[64]);

#endif
