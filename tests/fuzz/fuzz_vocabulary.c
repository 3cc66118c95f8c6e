/* Fuzz target: arbitrary bytes as a vocabulary. The first byte selects the kind: lines that follow those of the 256
 * bytes, the file as it is, or a vocab.json and its merges separated by a NUL. An accepted vocabulary must encode any
 * bytes into tokens that concatenate to the same bytes. */
#include "fuzz_file.h"
#include "token_join.h"
#include "vocabulary.h"
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static const stki_token *of_id(const stki_vocabulary *v, uint32_t id)
{
    for (int64_t i = 0; i < v->count; i++)
        if (v->tokens[i].id == id)
            return &v->tokens[i];
    return NULL;
}

static void check_accepted(const stki_vocabulary *v, const uint8_t *text, int64_t length)
{
    stki_token_joiner joiner = {0};
    const uint32_t *ids;
    int64_t count, at = 0;
    stk_error err;

    for (int64_t i = 0; i < v->count; i++)
        DEMAND(v->tokens[i].id <= v->largest && v->tokens[i].length <= v->longest &&
               stki_vocabulary_find(v, v->bytes + v->tokens[i].at, v->tokens[i].length) == &v->tokens[i]);
    if (v->utf8_only)
        return;
    DEMAND(stki_token_join(v, &joiner, text, length, &ids, &count, &err) == STK_OK);
    for (int64_t i = 0; i < count; i++) {
        const stki_token *token = of_id(v, ids[i]);

        DEMAND(token && token->length <= length - at);
        DEMAND(memcmp(v->bytes + token->at, text + at, token->length) == 0);
        at += token->length;
    }
    DEMAND(at == length);
    stki_token_joiner_fini(&joiner);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t tail = size > 400 ? 400 : (int64_t)size;
    char *text = malloc(size + 4096), *merges = NULL;
    size_t length = 0, merge_length = 0;
    stki_vocabulary *v;
    stk_error err;
    stk_status status;

    for (int b = 0; size > 0 && data[0] % 3 == 0 && b < 256; b++)
        length += (size_t)sprintf(text + length, "%c%c== %d\n", digits[b >> 2], digits[(b & 3) << 4], b);
    if (size > 1)
        memcpy(text + length, data + 1, size - 1);
    length += size > 0 ? size - 1 : 0;
    if (size > 0 && data[0] % 3 == 2 && (merges = memchr(text, 0, length)) != NULL) {
        *merges++ = '\n';
        merge_length = (size_t)(text + length - merges);
        length -= merge_length;
    }
    status = stki_vocabulary_read(FUZZ_PATH, text, (int64_t)length, merges, (int64_t)merge_length, &v, &err);
    if (status == STK_E_CONFIG) {
        DEMAND(data[0] % 3 != 0); /* a vocab.json without merges, or merges with another kind of file */
    } else if (status) {
        fuzz_check_failure(status, &err);
    } else {
        check_accepted(v, data + size - tail, tail);
        stki_vocabulary_destroy(v);
    }
    free(text);
    return 0;
}
