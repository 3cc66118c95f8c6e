/* vocabulary_open.c: opens vocabulary files of all formats, and the vocabulary of bytes. */
#include "allocate.h"
#include "digest.h"
#include "error.h"
#include "file.h"
#include "vocabulary.h"
#include <inttypes.h>
#include <string.h>

enum { MOST_FILE = 256 << 20 };

stk_status stki_vocabulary_bytes(stki_vocabulary **out, stk_error *err)
{
    stki_vocabulary *v;
    stk_status status = stki_vocabulary_create("bytes", &v, err);

    if (status != STK_OK)
        return status;
    for (int b = 0; b < 256 && status == STK_OK; b++)
        status = stki_vocabulary_add(v, &(uint8_t){(uint8_t)b}, 1, b, err);
    if (status == STK_OK && (status = stki_vocabulary_finish(v, err)) == STK_OK)
        status = stki_vocabulary_settle(v, true, err);
    if (status == STK_OK)
        *out = v;
    else
        stki_vocabulary_destroy(v);
    return status;
}

stk_status stki_vocabulary_read(const char *path, const char *text, int64_t length, const char *merges,
                                int64_t merges_length, stki_vocabulary **out, stk_error *err)
{
    stki_vocabulary *v;
    int64_t first = 0;
    bool json;
    stk_status status = stki_vocabulary_create(path, &v, err);

    if (status != STK_OK)
        return status;
    while (first < length && strchr(" \t\r\n", text[first]) && text[first])
        first++;
    json = first < length && text[first] == '{';
    v->digest = stki_digest_64(text, length);
    if (merges)
        v->digest ^= stki_digest_64(merges, merges_length) * 3;
    if (merges && !json)
        status =
            stki_fail_at(err, STK_E_CONFIG, (stki_place){path, -1, -1, "a vocabulary of another kind", "a vocab.json"},
                         "a merges file can only be used with a vocab.json");
    else
        status = json ? stki_vocabulary_json(text, length, merges, merges_length, v, err)
                      : stki_vocabulary_tiktoken(text, length, v, err);
    if (status == STK_OK)
        *out = v;
    else
        stki_vocabulary_destroy(v);
    return status;
}

/* Reads a whole file. The caller frees *out with stki_free. */
static stk_status load(const char *path, char **out, int64_t *length, stk_error *err)
{
    stki_file *file;
    stk_status status = stki_file_open(path, STKI_ACCESS_PREAD, STKI_PATTERN_SEQUENTIAL, &file, err);
    int64_t size;

    if (status != STK_OK)
        return status;
    size = file->size;
    *out = size > MOST_FILE ? NULL : stki_zalloc(size + 1);
    if (size > MOST_FILE)
        status = stki_fail_at(err, STK_E_LIMIT,
                              (stki_place){path, -1, -1, STKI_TEXT("%" PRId64 " bytes", size),
                                           STKI_TEXT("a vocabulary of at most %d", MOST_FILE)},
                              "size");
    else if (!*out)
        status = stki_fail_memory(err, size + 1, "a vocabulary");
    else
        status = stki_file_read(file, 0, *out, size, err);
    if (status != STK_OK) {
        stki_free(*out);
        *out = NULL;
    }
    *length = size;
    stki_file_close(file);
    return status;
}

stk_status stki_vocabulary_open(const char *path, const char *merges, stki_vocabulary **out, stk_error *err)
{
    char *text = NULL, *list = NULL;
    int64_t length = 0, list_length = 0;
    stk_status status = load(path, &text, &length, err);

    if (status == STK_OK && merges)
        status = load(merges, &list, &list_length, err);
    if (status == STK_OK)
        status = stki_vocabulary_read(path, text, length, list, list_length, out, err);
    stki_free(text);
    stki_free(list);
    return status;
}
