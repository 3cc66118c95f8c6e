/* token_normalize.h: normalization forms of Unicode. */
#ifndef STKI_TOKEN_NORMALIZE_H
#define STKI_TOKEN_NORMALIZE_H

#include "token_steps.h"

/* One thread's memory. Starts as {0}. */
typedef struct stki_normalized {
    int32_t *codes;
    int64_t room;
} stki_normalized;

/* *out: `text` itself if it is in that form, or the memory of `to`. The text is valid UTF-8. */
stk_status stki_token_normalize(enum stki_token_form form, stki_normalized *to, const uint8_t *text, int64_t length,
                                const uint8_t **out, int64_t *out_length, stk_error *err);
void stki_normalized_fini(stki_normalized *normalized);
/* "2.7.0": of utf8proc, which is running. */
const char *stki_token_normalize_version(void);

#endif
