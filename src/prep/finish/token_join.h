/* token_join.h: byte-pair encoding of one piece of text: adjacent parts, initially bytes, are merged in the order of
 * the vocabulary's ranks (of equal ranks the leftmost first) until no two can be merged. */
#ifndef STKI_TOKEN_JOIN_H
#define STKI_TOKEN_JOIN_H

#include "vocabulary.h"

/* Memory of one thread, which grows to the size that the longest piece requires. Initialize with {0}. */
typedef struct stki_token_joiner {
    void *memory;
    int64_t room;
} stki_token_joiner;

/* *ids: tokens of the piece, valid until the next call. STK_E_LIMIT: 2^31 bytes or more. Takes O(length * log(length))
 * time. */
stk_status stki_token_join(const stki_vocabulary *vocabulary, stki_token_joiner *joiner, const uint8_t *bytes,
                           int64_t length, const uint32_t **ids, int64_t *count, stk_error *err);
/* Memory for a piece of `length` bytes, about 26 bytes each. */
int64_t stki_token_join_bytes(int64_t length);
void stki_token_joiner_fini(stki_token_joiner *joiner);

#endif
