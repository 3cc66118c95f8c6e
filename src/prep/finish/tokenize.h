/* tokenize.h: converts texts to token ids: one per byte, or byte-pair encoding with a vocabulary. A tokenizer is
 * immutable and thread-safe with one scratch per thread. */
#ifndef STKI_TOKENIZE_H
#define STKI_TOKENIZE_H

#include "vocabulary.h"

typedef struct stki_tokenizer stki_tokenizer;
typedef struct stki_token_scratch stki_token_scratch;

typedef struct stki_tokenizer_opts {
    const char *vocabulary; /* a file; NULL: tokens are bytes */
    const char *merges;     /* the list of merges for a vocab.json; NULL: none */
    /* How text is split before encoding: a name of token_split.h, or "none"; NULL: as in the file, or gpt2 for
     * vocab.json (a .tiktoken file does not specify it: STK_E_CONFIG). Replaces a pre-tokenizer completely. */
    const char *split;
    const char *pattern; /* alternatively, a regular expression */
    bool special;        /* encodes names of special tokens in a text as these tokens instead of as text */
} stki_tokenizer_opts;

stk_status stki_tokenizer_open(const stki_tokenizer_opts *opts, stki_tokenizer **out, stk_error *err);
void stki_tokenizer_destroy(stki_tokenizer *tokenizer); /* NULL is allowed */
const stki_vocabulary *stki_tokenizer_vocabulary(const stki_tokenizer *tokenizer);
/* Returns the steps between normalization (with added tokens) and merging. */
const stki_token_steps *stki_tokenizer_steps(const stki_tokenizer *tokenizer);

/* Returns the approximate size of a scratch for a text of `length` bytes, in addition to a few kilobytes. */
int64_t stki_token_scratch_bytes(const stki_tokenizer *tokenizer, int64_t length);
stk_status stki_token_scratch_create(const stki_tokenizer *tokenizer, stki_token_scratch **out, stk_error *err);
void stki_token_scratch_destroy(stki_token_scratch *scratch); /* NULL is allowed */

/* *ids: valid until the scratch is used again. STK_E_CORRUPT: the text must be UTF-8, because it is processed before
 * merging, but is not; the message contains the offset. */
stk_status stki_tokenize(const stki_tokenizer *tokenizer, stki_token_scratch *scratch, const void *text, int64_t length,
                         const uint32_t **ids, int64_t *count, stk_error *err);

#endif
