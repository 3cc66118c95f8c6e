/* tokenize.h: texts become the ids of their tokens: a byte each, or byte-pair encoding with a given vocabulary. A
 * tokenizer is immutable; any number of threads use it, each with a scratch of its own. */
#ifndef STKI_TOKENIZE_H
#define STKI_TOKENIZE_H

#include "vocabulary.h"

typedef struct stki_tokenizer stki_tokenizer;
typedef struct stki_token_scratch stki_token_scratch;

typedef struct stki_tokenizer_opts {
    const char *vocabulary; /* a file; NULL: bytes are the tokens */
    const char *merges;     /* the list that belongs to a vocab.json; NULL: none */
    /* How text is cut before it is encoded: a name of token_split.h, "none"; NULL: as the file says, which for
     * vocab.json is gpt2 (a .tiktoken file says nothing: STK_E_CONFIG). Replaces all of a pre-tokenizer. */
    const char *split;
    const char *pattern; /* instead: a regular expression */
    bool special;        /* the names of special tokens in a text are these tokens, not text */
} stki_tokenizer_opts;

stk_status stki_tokenizer_open(const stki_tokenizer_opts *opts, stki_tokenizer **out, stk_error *err);
void stki_tokenizer_destroy(stki_tokenizer *tokenizer); /* NULL is fine */
const stki_vocabulary *stki_tokenizer_vocabulary(const stki_tokenizer *tokenizer);
/* What happens to a text before joining, behind its normalization and added tokens. */
const stki_token_steps *stki_tokenizer_steps(const stki_tokenizer *tokenizer);

/* About the memory that a scratch takes for a text of `length` bytes, beyond a few kilobytes. */
int64_t stki_token_scratch_bytes(const stki_tokenizer *tokenizer, int64_t length);
stk_status stki_token_scratch_create(const stki_tokenizer *tokenizer, stki_token_scratch **out, stk_error *err);
void stki_token_scratch_destroy(stki_token_scratch *scratch); /* NULL is fine */

/* *ids: good until the scratch is used again. STK_E_CORRUPT: not UTF-8, where anything happens to a text before
 * joining; the message names the byte. */
stk_status stki_tokenize(const stki_tokenizer *tokenizer, stki_token_scratch *scratch, const void *text, int64_t length,
                         const uint32_t **ids, int64_t *count, stk_error *err);

#endif
