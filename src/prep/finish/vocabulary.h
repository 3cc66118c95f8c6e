/* vocabulary.h: the vocabulary of a byte-pair encoding: the bytes of each token, the order in which adjacent parts are
 * merged, and the processing of a text before merging. Immutable after reading; thread-safe.
 *
 * There are two kinds of merge rules:
 *
 *     by bytes   (.tiktoken) two adjacent parts are merged if their bytes form a token, the lowest id first
 *     by pairs   (merges.txt, tokenizer.json) two adjacent tokens are merged if their pair is listed, in the order of
 *                the list
 */
#ifndef STKI_VOCABULARY_H
#define STKI_VOCABULARY_H

#include "added_tokens.h"
#include "token_steps.h"
#include <jansson.h>

enum {
    STKI_TOKEN_LARGEST = INT32_MAX - 1, /* id */
    STKI_TOKEN_MOST_BYTES = 1 << 16     /* of one token */
};
#define STKI_NO_TOKEN UINT32_MAX

typedef struct stki_token {
    uint32_t at, length; /* location of its bytes in `bytes` */
    uint32_t id;
    bool alone; /* a piece of text with exactly these bytes becomes this token */
} stki_token;

/* A pair of adjacent tokens that are merged. */
typedef struct stki_token_pair {
    uint64_t key; /* left << 32 | right; UINT64_MAX: free slot */
    uint32_t rank, id;
} stki_token_pair;

typedef struct stki_vocabulary {
    char *path;
    uint8_t *bytes; /* of all tokens, concatenated */
    int64_t byte_count, byte_room;
    stki_token *tokens;
    int64_t count, room;
    uint32_t longest, largest; /* longest token in bytes; largest id, including special tokens */
    /* Tokens by their bytes: hash table with linear probing. */
    struct stki_token_place {
        uint32_t tag, token; /* token: index in `tokens` + 1; 0: free */
    } * table;
    uint32_t mask;
    /* Merging starts with the characters of a text instead of its bytes, as in vocabularies of SentencePiece. A
     * character without a token is replaced by its bytes. */
    bool by_characters;
    bool utf8_only;        /* bytes that do not occur in UTF-8 (0xc0, 0xc1, 0xf5 to 0xff) need no token */
    uint32_t of_byte[256]; /* id of each single byte */
    uint32_t *two_bytes;   /* 65536 entries: rank of merging bytes a and b, at a << 8 | b; STKI_NO_TOKEN: never */
    /* Only for merging by pairs. */
    bool by_pairs;
    stki_token_pair *pairs; /* hash table with linear probing */
    uint64_t pair_mask;
    uint32_t *joined; /* per rank: the resulting token */
    int64_t pair_count;
    int added_count;
    stki_added_token *added;
    /* The processing of texts before merging. Added tokens are found before `first` or, if `normalized`, after it. */
    stki_token_steps first, then;
    uint64_t digest; /* XXH3-64 of the file or files */
} stki_vocabulary;

/* Recognizes the format from the file's name and content: lines of base64 and a rank (.tiktoken), a tokenizer.json, or
 * a vocab.json with its list of merges in `merges`. STK_E_CORRUPT, STK_E_UNSUPPORTED and STK_E_LIMIT name the file and
 * the line or key. */
stk_status stki_vocabulary_open(const char *path, const char *merges, stki_vocabulary **out, stk_error *err);
/* Like stki_vocabulary_open, but for files in memory; `path` is used in messages; `merges` may be NULL. */
stk_status stki_vocabulary_read(const char *path, const char *text, int64_t length, const char *merges,
                                int64_t merges_length, stki_vocabulary **out, stk_error *err);
/* Creates the vocabulary in which each byte is a token, 0 to 255, and nothing is merged. */
stk_status stki_vocabulary_bytes(stki_vocabulary **out, stk_error *err);
void stki_vocabulary_destroy(stki_vocabulary *vocabulary); /* NULL is allowed */

/* Returns NULL if these bytes are not a token. */
const stki_token *stki_vocabulary_find(const stki_vocabulary *vocabulary, const uint8_t *bytes, uint32_t length);
/* Returns the rank of merging two adjacent parts, which together are `length` bytes at `bytes`; STKI_NO_TOKEN: not
 * merged. */
uint32_t stki_vocabulary_rank(const stki_vocabulary *vocabulary, const uint8_t *bytes, uint32_t length, uint32_t left,
                              uint32_t right);
/* Returns the token that results from merging at this rank. */
static inline uint32_t stki_vocabulary_joined(const stki_vocabulary *vocabulary, uint32_t rank)
{
    return vocabulary->by_pairs ? vocabulary->joined[rank] : rank;
}
/* Returns the id of the added token of that name, or of the token with this text; -1: none. */
int64_t stki_vocabulary_named(const stki_vocabulary *vocabulary, const char *name);

/* ---- building a vocabulary: vocabulary_open.c, vocabulary_tiktoken.c, vocabulary_json.c ---- */

stk_status stki_vocabulary_create(const char *path, stki_vocabulary **out, stk_error *err);
/* Adds a token; tokens are kept in the order in which they are added. STK_E_CORRUPT: duplicate bytes or id (checked by
 * stki_vocabulary_finish). */
stk_status stki_vocabulary_add(stki_vocabulary *vocabulary, const uint8_t *bytes, int64_t length, int64_t id,
                               stk_error *err);
/* Reserves an id that is never the result of encoding a text. */
stk_status stki_vocabulary_reserve_id(stki_vocabulary *vocabulary, int64_t id, stk_error *err);
/* Adds the token of a single byte; only with by_characters. */
stk_status stki_vocabulary_add_byte(stki_vocabulary *vocabulary, uint8_t byte, int64_t id, stk_error *err);
/* Registers an added token; the name is copied. */
stk_status stki_vocabulary_add_added(stki_vocabulary *vocabulary, const stki_added_token *token, stk_error *err);
/* Builds the tables after all tokens have been added. STK_E_UNSUPPORTED: one of the 256 bytes is not a token.
 * STK_E_CORRUPT: duplicates. */
stk_status stki_vocabulary_finish(stki_vocabulary *vocabulary, stk_error *err);
/* To be called after stki_vocabulary_finish, for merging by pairs: the first allocates the list, and the second adds a
 * pair. */
stk_status stki_vocabulary_pairs(stki_vocabulary *vocabulary, int64_t count, stk_error *err);
stk_status stki_vocabulary_add_pair(stki_vocabulary *vocabulary, const uint8_t *left, int64_t left_bytes,
                                    const uint8_t *right, int64_t right_bytes, int64_t line, stk_error *err);
/* The first builds the table two_bytes. The second (token_join.c) calls it unless by_characters is set, and, unless
 * `all_alone`, clears `alone` of the tokens that do not result from merging their bytes. */
stk_status stki_vocabulary_two_bytes(stki_vocabulary *vocabulary, stk_error *err);
stk_status stki_vocabulary_settle(stki_vocabulary *vocabulary, bool all_alone, stk_error *err);

stk_status stki_vocabulary_tiktoken(const char *text, int64_t length, stki_vocabulary *vocabulary, stk_error *err);
stk_status stki_vocabulary_json(const char *text, int64_t length, const char *merges, int64_t merges_length,
                                stki_vocabulary *vocabulary, stk_error *err);
/* vocabulary_steps.c: converts a tokenizer.json's normalizer and pre_tokenizer to `first` and `then`. *bytes: whether a
 * step maps bytes to characters. */
stk_status stki_vocabulary_steps(const json_t *root, stki_vocabulary *vocabulary, bool *bytes, stk_error *err);

#endif
