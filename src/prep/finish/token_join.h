/* token_join.h: byte-pair encoding of one piece of text: its bytes, joined neighbour by neighbour in the order of the
 * vocabulary's ranks (of equal ranks the leftmost first) until no two can be joined. */
#ifndef STKI_TOKEN_JOIN_H
#define STKI_TOKEN_JOIN_H

#include "vocabulary.h"

/* One thread's memory; grows to the longest piece. Starts as {0}. */
typedef struct stki_token_joiner {
    void *memory;
    int64_t room;
} stki_token_joiner;

/* *ids: of the tokens that the piece comes to, good until the next call. STK_E_LIMIT: 2^31 bytes and more. Time:
 * length * log(length). */
stk_status stki_token_join(const stki_vocabulary *vocabulary, stki_token_joiner *joiner, const uint8_t *bytes,
                           int64_t length, const uint32_t **ids, int64_t *count, stk_error *err);
/* What a piece of `length` bytes takes, about 26 for each. */
int64_t stki_token_join_bytes(int64_t length);
void stki_token_joiner_fini(stki_token_joiner *joiner);

#endif
