/* llmc.c: token shards of llm.c: 256 little-endian i32 (magic, version, number of tokens, zeros), then the tokens. As
 * in llm.c, the file must have exactly the size given by the header. */
#include "error.h"
#include "tokens.h"
#include <inttypes.h>
#include <string.h>

static const struct shard {
    int32_t magic, version;
    stk_dtype dtype;
} shards[] = {
    {20240520, 1, STK_U16}, /* GPT-2 */
    {20240801, 7, STK_U32}, /* Llama 3 */
};
enum { SHARDS = sizeof shards / sizeof shards[0], EVALUATION = 20240522 };

static int32_t load(const void *bytes)
{
    int32_t value;

    memcpy(&value, bytes, sizeof value);
    return value;
}

bool stki_llmc_matches(const char *head, int64_t length)
{
    if (length < STKI_LLMC_READ)
        return false;
    for (int i = 0; i < SHARDS; i++)
        if (load(head) == shards[i].magic)
            return true;
    return load(head) == EVALUATION;
}

static stk_status find_shard(const char *head, const char *path, const struct shard **out, stk_error *err)
{
    int32_t magic = load(head), version = load(head + 4);

    if (magic == EVALUATION)
        return stki_fail_at(
            err, STK_E_UNSUPPORTED,
            (stki_place){path, -1, 0, STKI_TEXT("magic %d (an evaluation set)", magic), "a token shard"},
            "multiple-choice evaluation files are not supported");
    for (int i = 0; i < SHARDS; i++) {
        if (magic != shards[i].magic)
            continue;
        *out = &shards[i];
        if (version == shards[i].version)
            return STK_OK;
        return stki_fail_at(
            err, STK_E_UNSUPPORTED,
            (stki_place){path, -1, 4, STKI_TEXT("version %d", version), STKI_TEXT("version %d", shards[i].version)},
            "unsupported version of llm.c's token files");
    }
    return stki_fail_at(err, STK_E_CORRUPT,
                        (stki_place){path, -1, 0, STKI_TEXT("magic %d", magic), "20240520 or 20240801"},
                        "not a token shard of llm.c");
}

stk_status stki_llmc_read_header(const void *head, int64_t file_bytes, const char *path, stk_dtype *dtype,
                                 int64_t *count, stk_error *err)
{
    const struct shard *shard;
    int64_t tokens, expected;
    stk_status status;

    if (file_bytes < STKI_LLMC_HEADER)
        return stki_fail_at(
            err, STK_E_TRUNCATED,
            (stki_place){path, -1, -1, STKI_TEXT("%" PRId64 " bytes", file_bytes), "a header of 1024 bytes"},
            "the file ends inside its header");
    status = find_shard(head, path, &shard, err);
    if (status != STK_OK)
        return status;
    tokens = load((const char *)head + 8);
    if (tokens < 0)
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){path, -1, 8, STKI_TEXT("%" PRId64, tokens), "0 to 2147483647"},
                            "invalid number of tokens");
    expected = STKI_LLMC_HEADER + tokens * stk_dtype_size(shard->dtype);
    if (file_bytes != expected)
        return stki_fail_at(err, file_bytes < expected ? STK_E_TRUNCATED : STK_E_CORRUPT,
                            (stki_place){path, -1, 8, STKI_TEXT("%" PRId64 " bytes", file_bytes),
                                         STKI_TEXT("%" PRId64 " for %" PRId64 " tokens", expected, tokens)},
                            "unexpected file size");
    *dtype = shard->dtype;
    *count = tokens;
    return STK_OK;
}

stk_status stki_llmc_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    char head[STKI_LLMC_READ] = {0};
    stki_array array = {.offset = STKI_LLMC_HEADER, .ndim = 1};
    stki_file *file;
    int64_t bytes;
    stk_status status = stki_file_open(path, opts->access, opts->pattern, &file, err);

    if (status != STK_OK)
        return status;
    array.file = file;
    status = stki_file_read(file, 0, head, file->size < STKI_LLMC_READ ? file->size : STKI_LLMC_READ, err);
    if (status == STK_OK)
        status = stki_llmc_read_header(head, file->size, path, &array.dtype, &array.shape[0], err);
    if (status == STK_OK && opts->alias_dtype != STK_DTYPE_NONE && opts->alias_dtype != array.dtype)
        status = stki_fail_at(err, STK_E_MISMATCH,
                              (stki_place){path, -1, -1, stk_dtype_long_name(array.dtype),
                                           STKI_TEXT("%s (source.dtype)", stk_dtype_long_name(opts->alias_dtype))},
                              "the token type in the file differs from the configured one");
    if (status == STK_OK)
        status = stki_array_row_major(&array, &bytes, path, err);
    if (status == STK_OK)
        return stki_one_array(path, "llmc", &array, out, err);
    stki_file_close(file);
    return status;
}
