/* tokens_write.c: see tokens_write.h. Tokens are written as they arrive. The header of llm.c contains their number and
 * is rewritten at the end. Megatron's index contains the lengths and offsets of all documents. The lengths are kept in
 * a temporary file (4 bytes each), which is read twice at the end: once for the lengths and once for the offsets. */
#include "tokens_write.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "output.h"
#include "spill.h"
#include "tokens.h"
#include <inttypes.h>
#include <string.h>

enum { LENGTHS = 4096 /* number of lengths read at once */ };
#define MOST (INT64_C(1) << 59) /* maximum number of tokens or documents, so that their size fits in 63 bits */

struct stk_tokens_writer {
    stk_tokens_format format;
    stk_dtype dtype;
    stki_output *output, *index;
    stki_spill *lengths;
    int64_t header_bytes, documents, tokens;
    stk_status failed;
};

/* ---- dtypes and limits ---- */

/* Returns the dtype code of Megatron's index; 0: there is none. */
static int megatron_code(stk_dtype dtype)
{
    switch (dtype) {
    case STK_U8:
        return 1;
    case STK_I8:
        return 2;
    case STK_I16:
        return 3;
    case STK_I32:
    case STK_U32: /* values below 2^31 have the same bytes as i32 */
        return 4;
    case STK_I64:
        return 5;
    case STK_U16:
        return 8;
    default:
        return 0;
    }
}

static bool is_whole(stk_dtype dtype)
{
    return dtype == STK_U8 || dtype == STK_I8 || dtype == STK_U16 || dtype == STK_I16 || dtype == STK_U32 ||
           dtype == STK_I32 || dtype == STK_U64 || dtype == STK_I64;
}

stk_status stki_tokens_check(const char *path, stk_tokens_format format, stk_dtype dtype, stk_error *err)
{
    const char *expected = format == STK_TOKENS_LLMC       ? "u16 or u32"
                           : format == STK_TOKENS_MEGATRON ? "u8, i8, u16, i16, u32, i32 or i64"
                                                           : "an integer type";
    bool fine = format == STK_TOKENS_LLMC       ? dtype == STK_U16 || dtype == STK_U32
                : format == STK_TOKENS_MEGATRON ? megatron_code(dtype) > 0
                                                : is_whole(dtype);

    return fine ? STK_OK
                : stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){path, -1, -1, stk_dtype_long_name(dtype), expected},
                               "unsupported token type");
}

bool stki_tokens_names(const char *path, char **data, char **index)
{
    size_t length = strlen(path);
    bool ending = length > 4 && (!strcmp(path + length - 4, ".bin") || !strcmp(path + length - 4, ".idx"));
    int stem = (int)(ending ? length - 4 : length);

    *data = stki_format("%.*s.bin", stem, path);
    *index = stki_format("%.*s.idx", stem, path);
    if (*data && *index)
        return true;
    stki_free(*data);
    stki_free(*index);
    *data = *index = NULL;
    return false;
}

/* ---- opening ---- */

static stk_status write_header(stk_tokens_writer *w, stk_error *err)
{
    int32_t header[STKI_LLMC_HEADER / 4] = {w->dtype == STK_U16 ? 20240520 : 20240801, w->dtype == STK_U16 ? 1 : 7,
                                            (int32_t)w->tokens};

    return w->header_bytes ? stki_output_write_at(w->output, 0, header, sizeof header, err) : STK_OK;
}

static stk_status open_files(stk_tokens_writer *w, const char *data, const char *index,
                             const stki_tokens_making *making, stk_error *err)
{
    const stki_tokens_mark *mark = making ? making->mark : NULL;
    int64_t bytes = mark ? w->header_bytes + w->tokens * stk_dtype_size(w->dtype) : -1;
    stk_status status = making ? stki_output_hold(data, making->temporary, bytes, &w->output, err)
                               : stki_output_create(data, &w->output, err);

    if (status == STK_OK && index)
        status = stki_output_begin(index, making ? making->index_temporary : NULL, &w->index, err);
    if (status == STK_OK && index)
        status = making ? stki_spill_hold(making->lengths, mark ? mark->documents * (int64_t)sizeof(int32_t) : -1,
                                          &w->lengths, err)
                        : stki_spill_create(data, &w->lengths, err);
    if (status == STK_OK)
        status = write_header(w, err);
    if (status == STK_OK && !mark)
        status = stki_output_seek(w->output, w->header_bytes, err);
    return status;
}

static stk_status take_mark(stk_tokens_writer *w, const char *path, const stki_tokens_mark *mark, stk_error *err)
{
    if (!mark)
        return STK_OK;
    w->documents = mark->documents;
    w->tokens = mark->tokens;
    if (mark->documents >= 0 && mark->documents <= MOST && mark->tokens >= 0 && mark->tokens <= MOST)
        return STK_OK;
    return stki_fail_at(
        err, STK_E_CORRUPT,
        (stki_place){path, -1, -1,
                     STKI_TEXT("%" PRId64 " documents, %" PRId64 " tokens", mark->documents, mark->tokens),
                     "non-negative numbers of at most 2^59"},
        "invalid saved position");
}

stk_status stki_tokens_open(const char *path, stk_tokens_format format, stk_dtype dtype,
                            const stki_tokens_making *making, stk_tokens_writer **out, stk_error *err)
{
    char *data = NULL, *index = NULL;
    stk_tokens_writer *w;
    stk_status status = stki_tokens_check(path, format, dtype, err);

    if (status != STK_OK)
        return status;
    w = stki_zalloc(sizeof *w);
    if (!w || (format == STK_TOKENS_MEGATRON && !stki_tokens_names(path, &data, &index))) {
        stki_free(w);
        return stki_fail_memory(err, sizeof *w, path);
    }
    w->format = format;
    w->dtype = dtype;
    w->header_bytes = format == STK_TOKENS_LLMC ? STKI_LLMC_HEADER : 0;
    status = take_mark(w, path, making ? making->mark : NULL, err);
    if (status == STK_OK)
        status = open_files(w, data ? data : path, index, making, err);
    stki_free(data);
    stki_free(index);
    if (status != STK_OK)
        stk_tokens_abort(w);
    else
        *out = w;
    return status;
}

/* ---- documents ---- */

static stk_status fail_earlier(const stk_tokens_writer *w, stk_error *err)
{
    return stki_fail_at(err, w->failed, (stki_place){stki_output_path(w->output), -1, -1, NULL, NULL},
                        "an earlier call failed, so the file cannot be finished");
}

static stk_status fail_limit(const stk_tokens_writer *w, int64_t found, const char *what, const char *advice,
                             stk_error *err)
{
    return stki_fail_at(
        err, STK_E_LIMIT,
        (stki_place){stki_output_path(w->output), w->documents, -1, STKI_TEXT("%" PRId64, found), "at most 2147483647"},
        "%s: %s", what, advice);
}

/* Returns the index of the first token that does not fit in i32, because Megatron has no u32; -1: none. */
static int64_t find_high(const uint32_t *tokens, int64_t count)
{
    uint32_t all = 0;

    for (int64_t i = 0; i < count; i++)
        all |= tokens[i];
    for (int64_t i = 0; all >> 31 && i < count; i++)
        if (tokens[i] >> 31)
            return i;
    return -1;
}

static stk_status check_document(const stk_tokens_writer *w, const void *tokens, int64_t count, stk_error *err)
{
    int64_t total, bytes, high;

    if (count < 0 || !stki_add(w->tokens, count, &total) || !stki_mul(total, stk_dtype_size(w->dtype), &bytes))
        return stki_fail_at(err, STK_E_BAD_ARG,
                            (stki_place){stki_output_path(w->output), w->documents, -1, STKI_TEXT("%" PRId64, count),
                                         "at least 0, and a file size that fits in 63 bits"},
                            "invalid number of tokens in a document");
    if (w->format == STK_TOKENS_LLMC && total > INT32_MAX)
        return fail_limit(w, total, "too many tokens in the file",
                          "llm.c stores the count in 31 bits; write several files", err);
    if (w->format != STK_TOKENS_MEGATRON)
        return STK_OK;
    if (count > INT32_MAX)
        return fail_limit(w, count, "too many tokens in a document",
                          "Megatron stores the count in 31 bits; split the document", err);
    high = w->dtype == STK_U32 ? find_high(tokens, count) : -1;
    return high < 0 ? STK_OK
                    : fail_limit(w, ((const uint32_t *)tokens)[high], "the token is too large",
                                 "Megatron has no u32, only i32", err);
}

static stk_status lend(stk_tokens_writer *w, const void *tokens, int64_t count, stk_error *err)
{
    int32_t length = (int32_t)count;
    stk_status status = count > 0 ? stki_check_given(tokens, "tokens", err) : STK_OK;

    if (status == STK_OK)
        status = check_document(w, tokens, count, err);
    if (status == STK_OK && count > 0)
        status = stki_output_lend(w->output, tokens, count * stk_dtype_size(w->dtype), err);
    if (status == STK_OK && w->lengths)
        status = stki_spill_append(w->lengths, &length, sizeof length, err);
    if (status != STK_OK)
        return status;
    w->documents++;
    w->tokens += count;
    return STK_OK;
}

stk_status stki_tokens_lend(stk_tokens_writer *w, const void *tokens, int64_t count, stk_error *err)
{
    return w->failed != STK_OK ? fail_earlier(w, err) : (w->failed = lend(w, tokens, count, err));
}

stk_status stki_tokens_settle(stk_tokens_writer *w, stk_error *err)
{
    return w->failed != STK_OK ? fail_earlier(w, err) : (w->failed = stki_output_settle(w->output, err));
}

stk_status stki_tokens_mark_here(stk_tokens_writer *w, stki_tokens_mark *out, stk_error *err)
{
    if (w->failed != STK_OK)
        return fail_earlier(w, err);
    w->failed = stki_output_flush(w->output, err);
    if (w->failed == STK_OK && w->lengths)
        w->failed = stki_spill_flush(w->lengths, err);
    *out = (stki_tokens_mark){w->documents, w->tokens};
    return w->failed;
}

stk_status stki_tokens_sync(stk_tokens_writer *w, stk_error *err)
{
    stk_status status = w->lengths ? stki_spill_sync(w->lengths, err) : STK_OK;

    return status != STK_OK ? status : stki_output_sync(w->output, err);
}

/* ---- Megatron's index ---- */

static stk_status put_front(stk_tokens_writer *w, stk_error *err)
{
    char front[STKI_MEGATRON_HEADER] = "MMIDIDX\0";
    uint64_t version = 1, sequences = (uint64_t)w->documents, entries = sequences + 1;

    memcpy(front + 9, &version, 8);
    front[17] = (char)megatron_code(w->dtype);
    memcpy(front + 18, &sequences, 8);
    memcpy(front + 26, &entries, 8);
    return stki_output_append(w->index, front, sizeof front, err);
}

/* Writes the lengths of the documents or, if `places` is set, their offsets. */
static stk_status put_lengths(stk_tokens_writer *w, bool places, stk_error *err)
{
    int32_t lengths[LENGTHS];
    int64_t at = 0, count;
    stk_status status = STK_OK;

    for (int64_t i = 0; i < w->documents && status == STK_OK; i += count) {
        count = w->documents - i < LENGTHS ? w->documents - i : LENGTHS;
        status = stki_spill_read(w->lengths, i * 4, lengths, count * 4, err);
        if (status == STK_OK && !places)
            status = stki_output_append(w->index, lengths, count * 4, err);
        for (int64_t k = 0; places && k < count && status == STK_OK; k++) {
            status = stki_output_append(w->index, &at, sizeof at, err);
            at += lengths[k] * stk_dtype_size(w->dtype);
        }
    }
    return status;
}

/* Writes the list of documents; every document is one sequence. */
static stk_status put_documents(stk_tokens_writer *w, stk_error *err)
{
    stk_status status = STK_OK;

    for (int64_t i = 0; i <= w->documents && status == STK_OK; i++)
        status = stki_output_append(w->index, &i, sizeof i, err);
    return status;
}

static stk_status write_index(stk_tokens_writer *w, stk_error *err)
{
    stk_status status = put_front(w, err);

    if (status == STK_OK)
        status = put_lengths(w, false, err);
    if (status == STK_OK)
        status = put_lengths(w, true, err);
    return status != STK_OK ? status : put_documents(w, err);
}

/* ---- commit ---- */

stk_status stki_tokens_finish(stk_tokens_writer *w, int64_t *bytes, int64_t *index_bytes, stk_error *err)
{
    stk_status status = w->failed != STK_OK ? fail_earlier(w, err) : write_header(w, err);

    *bytes = stki_output_position(w->output);
    if (status == STK_OK && w->index)
        status = write_index(w, err);
    *index_bytes = w->index ? stki_output_position(w->index) : 0;
    if (status == STK_OK &&
        w->index) /* everything that can fail is done before the first of the two files is renamed */
        status = stki_output_flush(w->index, err);
    if (status == STK_OK && w->index)
        status = stki_output_sync(w->index, err);
    if (status == STK_OK) {
        status = stki_output_commit(w->output, err);
        w->output = NULL;
    }
    if (status == STK_OK && w->index) { /* renamed last, because readers open the index first */
        status = stki_output_commit(w->index, err);
        w->index = NULL;
    }
    stk_tokens_abort(w);
    return status;
}

void stk_tokens_abort(stk_tokens_writer *w)
{
    if (!w)
        return;
    stki_output_abort(w->output);
    stki_output_abort(w->index);
    stki_spill_destroy(w->lengths);
    stki_free(w);
}

/* ---- public functions ---- */

stk_status stk_tokens_create(const char *path, stk_tokens_format format, stk_dtype dtype, stk_tokens_writer **out,
                             stk_error *err)
{
    stk_status status = stki_check_given(path, "path", err);

    if (status == STK_OK)
        status = stki_check_given(out, "out", err);
    if (status == STK_OK && (format < STK_TOKENS_LLMC || format > STK_TOKENS_MEGATRON))
        status = stki_fail_at(err, STK_E_BAD_ARG, (stki_place){path, -1, -1, STKI_TEXT("%d", (int)format), "0 to 2"},
                              "invalid format");
    return status != STK_OK ? status : stki_tokens_open(path, format, dtype, NULL, out, err);
}

stk_status stk_tokens_append(stk_tokens_writer *writer, const void *tokens, int64_t count, stk_error *err)
{
    stk_status status = stki_check_given(writer, "writer", err);

    if (status == STK_OK)
        status = stki_tokens_lend(writer, tokens, count, err);
    return status != STK_OK ? status : stki_tokens_settle(writer, err);
}

stk_status stk_tokens_commit(stk_tokens_writer *writer, stk_error *err)
{
    int64_t bytes, index_bytes;
    stk_status status = stki_check_given(writer, "writer", err);

    return status != STK_OK ? status : stki_tokens_finish(writer, &bytes, &index_bytes, err);
}
