/* tokenize.c: see tokenize.h. A text is cut into pieces (token_split.c); a piece that is a token is looked up, others
 * are joined from their bytes (token_join.c). Most pieces of most texts are tokens. */
#include "tokenize.h"
#include "allocate.h"
#include "error.h"
#include "nearest_word.h"
#include "text_check.h"
#include "token_join.h"
#include "token_split.h"
#include <inttypes.h>
#include <string.h>

struct stki_tokenizer {
    stki_vocabulary *vocabulary;
    bool bytes;              /* there is no vocabulary */
    char *pattern;           /* NULL: not cut */
    stki_token_split *split; /* NULL: not cut */
};

struct stki_token_scratch {
    stki_token_joiner joiner;
    stki_token_finder *finder;
    uint32_t *ids;
    int64_t count, room;
};

/* ---- open and destroy ---- */

static stk_status no_such_split(const char *found, stk_error *err)
{
    char words[160];
    const char *all[8];
    int count = 0;

    while (stki_token_pattern_names[count] && count < 7) {
        all[count] = stki_token_pattern_names[count];
        count++;
    }
    all[count++] = "none";
    return stki_fail(err, STK_E_CONFIG, "split: found %s, expected %s", found,
                     stki_word_list(all, count, words, sizeof words));
}

/* The expression in effect; *out stays NULL where text is not cut. */
static stk_status choose_pattern(const stki_tokenizer_opts *opts, const stki_vocabulary *v, const char **out,
                                 stk_error *err)
{
    *out = NULL;
    if (opts->pattern && opts->split)
        return stki_fail(err, STK_E_CONFIG, "found both split and pattern, expected one of them");
    if (opts->pattern) {
        *out = opts->pattern;
        return STK_OK;
    }
    if (opts->split && strcmp(opts->split, "none") == 0)
        return STK_OK;
    if (opts->split) {
        *out = stki_token_pattern(opts->split);
        return *out ? STK_OK : no_such_split(opts->split, err);
    }
    if (v->pattern)
        *out = v->pattern;
    else if (v->by_pairs && opts->merges)
        *out = stki_token_pattern("gpt2");
    else if (!v->by_pairs)
        return stki_fail(err, STK_E_CONFIG,
                         "%s does not say how text is cut before it is encoded: give split: gpt2, cl100k, o200k or "
                         "none, or a pattern",
                         v->path);
    return STK_OK;
}

static stk_status open_split(stki_tokenizer *t, const stki_tokenizer_opts *opts, stk_error *err)
{
    const char *pattern;
    stk_status status = choose_pattern(opts, t->vocabulary, &pattern, err);

    if (status != STK_OK || !pattern)
        return status;
    t->pattern = stki_strdup(pattern);
    if (!t->pattern)
        return stki_fail_memory(err, (int64_t)strlen(pattern), "a pattern");
    return stki_token_split_create(pattern, &t->split, err);
}

stk_status stki_tokenizer_open(const stki_tokenizer_opts *opts, stki_tokenizer **out, stk_error *err)
{
    stki_tokenizer *t;
    stk_status status;

    if (!opts->vocabulary && (opts->merges || opts->split || opts->pattern))
        return stki_fail(err, STK_E_CONFIG, "%s: used with a vocabulary alone; without one every byte is a token",
                         opts->merges  ? "merges"
                         : opts->split ? "split"
                                       : "pattern");
    t = stki_zalloc(sizeof *t);
    if (!t)
        return stki_fail_memory(err, (int64_t)sizeof *t, "a tokenizer");
    t->bytes = !opts->vocabulary;
    status = t->bytes ? stki_vocabulary_bytes(&t->vocabulary, err)
                      : stki_vocabulary_open(opts->vocabulary, opts->merges, &t->vocabulary, err);
    if (status == STK_OK && !t->bytes)
        status = open_split(t, opts, err);
    if (status == STK_OK)
        *out = t;
    else
        stki_tokenizer_destroy(t);
    return status;
}

void stki_tokenizer_destroy(stki_tokenizer *t)
{
    if (!t)
        return;
    stki_token_split_destroy(t->split);
    stki_vocabulary_destroy(t->vocabulary);
    stki_free(t->pattern);
    stki_free(t);
}

const stki_vocabulary *stki_tokenizer_vocabulary(const stki_tokenizer *t)
{
    return t->vocabulary;
}

const char *stki_tokenizer_pattern(const stki_tokenizer *t)
{
    return t->pattern;
}

int64_t stki_token_scratch_bytes(const stki_tokenizer *t, int64_t length)
{
    if (length > INT64_MAX / 64)
        return INT64_MAX;
    return t->bytes || t->split ? length * (int64_t)sizeof(uint32_t) : stki_token_join_bytes(length);
}

stk_status stki_token_scratch_create(const stki_tokenizer *t, stki_token_scratch **out, stk_error *err)
{
    stki_token_scratch *scratch = stki_zalloc(sizeof *scratch);
    stk_status status = scratch ? STK_OK : stki_fail_memory(err, (int64_t)sizeof *scratch, "a tokenizer");

    if (status == STK_OK && t->split)
        status = stki_token_finder_create(t->split, &scratch->finder, err);
    if (status == STK_OK)
        *out = scratch;
    else
        stki_token_scratch_destroy(scratch);
    return status;
}

void stki_token_scratch_destroy(stki_token_scratch *scratch)
{
    if (!scratch)
        return;
    stki_token_finder_destroy(scratch->finder);
    stki_token_joiner_fini(&scratch->joiner);
    stki_free(scratch->ids);
    stki_free(scratch);
}

/* ---- a text ---- */

static stk_status reserve(stki_token_scratch *scratch, int64_t more, stk_error *err)
{
    int64_t room = scratch->room ? scratch->room : 1024;
    uint32_t *grown;

    if (scratch->count + more <= scratch->room)
        return STK_OK;
    while (room < scratch->count + more)
        room += room / 2;
    grown = stki_resize(scratch->ids, room * (int64_t)sizeof *grown);
    if (!grown)
        return stki_fail_memory(err, room * (int64_t)sizeof *grown, "the tokens of a text");
    scratch->ids = grown;
    scratch->room = room;
    return STK_OK;
}

static stk_status add_piece(const stki_tokenizer *t, stki_token_scratch *scratch, const uint8_t *piece, int64_t length,
                            stk_error *err)
{
    const stki_token *token =
        length <= t->vocabulary->longest ? stki_vocabulary_find(t->vocabulary, piece, (uint32_t)length) : NULL;
    const uint32_t *ids;
    int64_t count;
    stk_status status;

    if (token && token->alone) {
        if ((status = reserve(scratch, 1, err)) == STK_OK)
            scratch->ids[scratch->count++] = token->id;
        return status;
    }
    if ((status = stki_token_join(t->vocabulary, &scratch->joiner, piece, length, &ids, &count, err)) != STK_OK ||
        (status = reserve(scratch, count, err)) != STK_OK)
        return status;
    memcpy(scratch->ids + scratch->count, ids, (size_t)count * sizeof *ids);
    scratch->count += count;
    return STK_OK;
}

/* The first byte that is not of a character; -1: all are. */
static int64_t first_wrong_byte(const uint8_t *text, int64_t length)
{
    int64_t at = 0;

    while (at < length) {
        uint64_t eight;
        uint32_t code;
        int step;

        if (at + 8 <= length) {
            memcpy(&eight, text + at, 8);
            if ((eight & UINT64_C(0x8080808080808080)) == 0) {
                at += 8;
                continue;
            }
        }
        step = stki_utf8_next((const char *)text + at, length - at, &code);
        if (step == 0)
            return at;
        at += step;
    }
    return -1;
}

static stk_status by_pieces(const stki_tokenizer *t, stki_token_scratch *scratch, const uint8_t *text, int64_t length,
                            stk_error *err)
{
    const int64_t wrong = first_wrong_byte(text, length);
    stk_status status = STK_OK;

    if (wrong >= 0)
        return stki_fail(err, STK_E_CORRUPT,
                         "the text is not UTF-8: found 0x%02x at byte %" PRId64
                         "; convert the text, or use split: none or no vocabulary, which take any bytes",
                         text[wrong], wrong);
    for (int64_t at = 0, end; at < length && status == STK_OK; at = end) {
        status = stki_token_split_next(t->split, scratch->finder, text, length, at, &end, err);
        if (status == STK_OK)
            status = add_piece(t, scratch, text + at, end - at, err);
    }
    return status;
}

/* A text that is one piece is long: its ids stay where they were joined. */
static stk_status as_one(const stki_tokenizer *t, stki_token_scratch *scratch, const uint8_t *text, int64_t length,
                         const uint32_t **ids, int64_t *count, stk_error *err)
{
    const stki_token *token =
        length <= t->vocabulary->longest ? stki_vocabulary_find(t->vocabulary, text, (uint32_t)length) : NULL;
    stk_status status;

    if (!token || !token->alone)
        return stki_token_join(t->vocabulary, &scratch->joiner, text, length, ids, count, err);
    status = add_piece(t, scratch, text, length, err);
    *ids = scratch->ids;
    *count = scratch->count;
    return status;
}

static stk_status by_bytes(stki_token_scratch *scratch, const uint8_t *text, int64_t length, stk_error *err)
{
    stk_status status = reserve(scratch, length, err);

    for (int64_t i = 0; i < length && status == STK_OK; i++)
        scratch->ids[i] = text[i];
    scratch->count = length;
    return status;
}

stk_status stki_tokenize(const stki_tokenizer *t, stki_token_scratch *scratch, const void *text, int64_t length,
                         const uint32_t **ids, int64_t *count, stk_error *err)
{
    stk_status status = STK_OK;

    scratch->count = 0;
    if (t->bytes)
        status = by_bytes(scratch, text, length, err);
    else if (t->split)
        status = by_pieces(t, scratch, text, length, err);
    else if (length > 0)
        return as_one(t, scratch, text, length, ids, count, err);
    *ids = scratch->ids;
    *count = scratch->count;
    return status;
}
