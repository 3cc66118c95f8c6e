/* token_normalize.h: normalizes texts to Unicode normalization forms. */
#ifndef STKI_TOKEN_NORMALIZE_H
#define STKI_TOKEN_NORMALIZE_H

#include "token_steps.h"

/* Memory of one thread. Initialize with {0}. */
typedef struct stki_normalized {
    int32_t *codes;
    int64_t room;
} stki_normalized;

/* *out is `text` itself if it is already normalized, otherwise memory of `to`. The text must be valid UTF-8. */
stk_status stki_token_normalize(enum stki_token_form form, stki_normalized *to, const uint8_t *text, int64_t length,
                                const uint8_t **out, int64_t *out_length, stk_error *err);
void stki_normalized_fini(stki_normalized *normalized);
/* Returns the version of utf8proc at run time, such as "2.7.0". */
const char *stki_token_normalize_version(void);

#endif
