/* added_tokens.h: the added tokens of a tokenizer.json, which are found in a text before anything else happens to it:
 * the leftmost first, of those that begin there the longest. */
#ifndef STKI_ADDED_TOKENS_H
#define STKI_ADDED_TOKENS_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_added_token {
    const char *name; /* "<|endoftext|>"; copied by stki_vocabulary_add_added */
    uint32_t id;
    bool special;                      /* in texts, only where the names of special tokens are asked for */
    bool normalized;                   /* found in the normalized text, as its own name is when normalized */
    bool single_word;                  /* only where no letter, digit or underscore touches it */
    bool strips_before, strips_behind; /* takes the white space on that side with it */
} stki_added_token;

typedef struct stki_added_finder stki_added_finder;

/* Of those of `tokens` that are or are not `normalized`, and are found as `names`: their contents. `special`: those are
 * found too. *out is NULL if a text can hold none. `tokens` must outlive it. */
stk_status stki_added_finder_create(const stki_added_token *tokens, int count, char *const *names, bool normalized,
                                    bool special, stki_added_finder **out, stk_error *err);
void stki_added_finder_destroy(stki_added_finder *finder); /* NULL is fine */

/* The next one in text[from, length): true, and the text before it ends at *begin and goes on at *end. */
bool stki_added_finder_next(const stki_added_finder *finder, const uint8_t *text, int64_t length, int64_t from,
                            int64_t *begin, int64_t *end, uint32_t *id);

#endif
