/* vocabulary.h: the tokens of a byte-pair encoding: which bytes each id stands for, which neighbours are joined first,
 * and what happens to a text before that. Read from a file once, then immutable; any thread.
 *
 * Two kinds of files say the second in two ways:
 *
 *     by bytes   (.tiktoken) two neighbours are joined where their bytes together are a token; the lowest id first
 *     by pairs   (merges.txt, tokenizer.json) two neighbours are joined where this pair of tokens is listed; the first
 * in the list first
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
    uint32_t at, length; /* of its bytes in `bytes` */
    uint32_t id;
    bool alone; /* a piece of text that is these bytes becomes this one token */
} stki_token;

/* Neighbours (left, right) that are joined. */
typedef struct stki_token_pair {
    uint64_t key; /* left << 32 | right; UINT64_MAX: a free place */
    uint32_t rank, id;
} stki_token_pair;

typedef struct stki_vocabulary {
    char *path;
    uint8_t *bytes; /* of all tokens, one after the other */
    int64_t byte_count, byte_room;
    stki_token *tokens;
    int64_t count, room;
    uint32_t longest, largest; /* bytes of a token; id, special ones included */
    /* Tokens by their bytes: a hash table, linear probing. */
    struct stki_token_place {
        uint32_t tag, token; /* token: its place in `tokens` + 1; 0: free */
    } * table;
    uint32_t mask;
    /* Joining begins with the characters of a text, as in vocabularies of SentencePiece, not with its bytes. A
     * character that is no token becomes its bytes. */
    bool by_characters;
    bool utf8_only;        /* bytes that no text in UTF-8 has (0xc0, 0xc1, 0xf5 to 0xff) may be no token */
    uint32_t of_byte[256]; /* id of each single byte */
    uint32_t *two_bytes;   /* 65536: the rank of joining bytes a and b, by a << 8 | b; STKI_NO_TOKEN: never */
    /* By pairs alone. */
    bool by_pairs;
    stki_token_pair *pairs; /* a hash table, linear probing */
    uint64_t pair_mask;
    uint32_t *joined; /* by rank: the token that comes of it */
    int64_t pair_count;
    int added_count;
    stki_added_token *added;
    /* What the file says of texts before joining; `first` happens before added tokens are looked for in its result. */
    stki_token_steps first, then;
    uint64_t digest; /* XXH3-64 of the file, or files */
} stki_vocabulary;

/* By the file's name and content: lines of base64 and a rank (.tiktoken), a tokenizer.json, or a vocab.json with the
 * list of its merges beside it in `merges`. STK_E_CORRUPT, STK_E_UNSUPPORTED, STK_E_LIMIT name file and line or key. */
stk_status stki_vocabulary_open(const char *path, const char *merges, stki_vocabulary **out, stk_error *err);
/* The same of texts in memory; `path` is for messages, `merges` NULL where there is none. */
stk_status stki_vocabulary_read(const char *path, const char *text, int64_t length, const char *merges,
                                int64_t merges_length, stki_vocabulary **out, stk_error *err);
/* The 256 bytes as tokens 0 to 255, which nothing joins. */
stk_status stki_vocabulary_bytes(stki_vocabulary **out, stk_error *err);
void stki_vocabulary_destroy(stki_vocabulary *vocabulary); /* NULL is fine */

/* NULL: these bytes are no token. */
const stki_token *stki_vocabulary_find(const stki_vocabulary *vocabulary, const uint8_t *bytes, uint32_t length);
/* The rank of joining two neighbours, of whose bytes `length` begin at `bytes`; STKI_NO_TOKEN: they stay apart. */
uint32_t stki_vocabulary_rank(const stki_vocabulary *vocabulary, const uint8_t *bytes, uint32_t length, uint32_t left,
                              uint32_t right);
/* What is joined at that rank becomes this token. */
static inline uint32_t stki_vocabulary_joined(const stki_vocabulary *vocabulary, uint32_t rank)
{
    return vocabulary->by_pairs ? vocabulary->joined[rank] : rank;
}
/* The id of an added token of that name, or of the token that is this text; -1: there is none. */
int64_t stki_vocabulary_named(const stki_vocabulary *vocabulary, const char *name);

/* ---- for those who make one: vocabulary_open.c, vocabulary_tiktoken.c, vocabulary_json.c ---- */

stk_status stki_vocabulary_create(const char *path, stki_vocabulary **out, stk_error *err);
/* Further tokens; their order is that in which they are added. STK_E_CORRUPT: the bytes or the id are there already
 * (checked at the end by stki_vocabulary_finish). */
stk_status stki_vocabulary_add(stki_vocabulary *vocabulary, const uint8_t *bytes, int64_t length, int64_t id,
                               stk_error *err);
/* An id that no text comes to. */
stk_status stki_vocabulary_reserve_id(stki_vocabulary *vocabulary, int64_t id, stk_error *err);
/* The token of a byte that is of no other one; by characters alone. */
stk_status stki_vocabulary_add_byte(stki_vocabulary *vocabulary, uint8_t byte, int64_t id, stk_error *err);
/* Copies the name. */
stk_status stki_vocabulary_add_added(stki_vocabulary *vocabulary, const stki_added_token *token, stk_error *err);
/* Makes the tables for tokens, once all are added. STK_E_UNSUPPORTED: one of the 256 bytes is no token; STK_E_CORRUPT:
 * twice the same. */
stk_status stki_vocabulary_finish(stki_vocabulary *vocabulary, stk_error *err);
/* Then, by pairs: room for the list, each pair, and the end of it. */
stk_status stki_vocabulary_pairs(stki_vocabulary *vocabulary, int64_t count, stk_error *err);
stk_status stki_vocabulary_add_pair(stki_vocabulary *vocabulary, const uint8_t *left, int64_t left_bytes,
                                    const uint8_t *right, int64_t right_bytes, int64_t line, stk_error *err);
/* The table two_bytes; then, in token_join.c, which tokens stand alone: all of them, or those that joining their bytes
 * comes to. */
stk_status stki_vocabulary_two_bytes(stki_vocabulary *vocabulary, stk_error *err);
stk_status stki_vocabulary_settle(stki_vocabulary *vocabulary, bool all_alone, stk_error *err);

stk_status stki_vocabulary_tiktoken(const char *text, int64_t length, stki_vocabulary *vocabulary, stk_error *err);
stk_status stki_vocabulary_json(const char *text, int64_t length, const char *merges, int64_t merges_length,
                                stki_vocabulary *vocabulary, stk_error *err);
/* In vocabulary_steps.c: `first` and `then` of a tokenizer.json's normalizer and pre_tokenizer. `bytes`: a step turns
 * bytes into the characters that stand for them. */
stk_status stki_vocabulary_steps(const json_t *root, stki_vocabulary *vocabulary, bool *bytes, stk_error *err);

#endif
