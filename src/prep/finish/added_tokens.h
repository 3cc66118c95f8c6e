/* added_tokens.h: the added tokens of a tokenizer.json, which are found in a text before anything else is done: the
 * leftmost match first, and of matches at the same position the longest. */
#ifndef STKI_ADDED_TOKENS_H
#define STKI_ADDED_TOKENS_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_added_token {
    const char *name; /* "<|endoftext|>"; copied by stki_vocabulary_add_added */
    uint32_t id;
    bool special;                      /* only found in texts if special tokens are enabled */
    bool normalized;                   /* its normalized name is found in the normalized text */
    bool single_word;                  /* only if not adjacent to a letter, digit or underscore */
    bool strips_before, strips_behind; /* the match includes the white space on that side */
} stki_added_token;

typedef struct stki_added_finder stki_added_finder;

/* Creates a finder for those `tokens` whose member `normalized` has the given value; names[i] is the text to find for
 * tokens[i]. `special`: includes special tokens. *out is NULL if there are no such tokens. `tokens` must outlive it. */
stk_status stki_added_finder_create(const stki_added_token *tokens, int count, char *const *names, bool normalized,
                                    bool special, stki_added_finder **out, stk_error *err);
void stki_added_finder_destroy(stki_added_finder *finder); /* NULL is allowed */

/* Finds the next token at or after *from and sets *from to the end of its name. Returns false if there is none. The
 * token occupies [*begin, *end), including the white space that it strips. `used` is the end of the previous token. As
 * in the tokenizers library, a name inside white space that the previous token has stripped is found too. Then *begin <
 * used, or, if this token also strips the white space before it, *begin is `used`; if the range is empty, no token is
 * added. */
bool stki_added_finder_next(const stki_added_finder *finder, const uint8_t *text, int64_t length, int64_t *from,
                            int64_t used, int64_t *begin, int64_t *end, uint32_t *id);

#endif
