/* finish_tokens.c: `encode: tokens`: turns texts into rows of token ids (u16 or u32). A text is one document; `begin`
 * and `end` are added around each. Opening the job checks that all possible ids fit the type. */
#include "allocate.h"
#include "error.h"
#include "finish.h"
#include "text_json.h"
#include "token_normalize.h"
#include "token_split.h"
#include "tokenize.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct token_options {
    const char *encode, *split, *pattern, *begin, *end, *dtype, *extension;
    const char *vocabulary, *merges;
    int special_tokens;
} token_options;

static const char *const special_words[] = {"text", "tokens", NULL};
static const stki_need needs_vocabulary = {.key = "vocabulary"};

static const stki_option token_rows[] = {
    STKI_STRING(token_options, encode, "tokens", "tokens: encode texts as token ids (docs/reference/encode.md)",
                .flags = STKI_GIVEN, .examples = STKI_EXAMPLES("tokens", "keep")),
    STKI_STRING(
        token_options, vocabulary, NULL,
        "A file: .tiktoken, tokenizer.json, or vocab.json (with merges); by default each byte is a token, 0 to 255",
        .flags = STKI_PATH),
    STKI_STRING(token_options, merges, NULL, "The merges.txt that belongs to a vocab.json", .flags = STKI_PATH),
    STKI_STRING(
        token_options, split, NULL,
        "How text is split before encoding: gpt2, cl100k, o200k or none; by default as the vocabulary specifies",
        .examples = STKI_EXAMPLES("gpt2", "none")),
    STKI_STRING(token_options, pattern, NULL, "Instead of split, a regular expression whose matches are the pieces",
                .instead_of = "split", .examples = STKI_EXAMPLES("\\w+|\\W", ".")),
    STKI_ENUM(
        token_options, special_tokens, text, special_words,
        "How the name of a special token in a text is encoded: as text (the tokens of its characters) or as that token",
        .need = &needs_vocabulary),
    STKI_STRING(token_options, begin, NULL,
                "Token inserted before each document: its id, a number without quotes, or its text",
                .examples = STKI_EXAMPLES("256", "1")),
    STKI_STRING(token_options, end, NULL,
                "Token inserted after each document: its id, a number without quotes, or its text",
                .examples = STKI_EXAMPLES("256", "1")),
    STKI_STRING(token_options, dtype, NULL,
                "Dtype of the ids: uint16 or uint32; by default the smaller one that can represent all ids",
                .examples = STKI_EXAMPLES("uint16", "uint32")),
    STKI_STRING(token_options, extension, NULL, "Extension of files in archives, without the dot",
                .examples = STKI_EXAMPLES("tok", "bin")),
};
static const stki_option_table token_table = STKI_OPTION_TABLE("output.fields.NAME (encode: tokens)", token_rows);

typedef struct token_finisher {
    stki_finisher base; /* first member */
    stki_tokenizer *tokenizer;
    int64_t begin, end; /* -1: none */
    bool wide;          /* u32 */
} token_finisher;

/* ---- create ---- */

/* Finds a token by id or name; -1: not given. */
static stk_status find_token(const stki_node *options, const char *key, const char *text, const stki_vocabulary *v,
                             int64_t *out, stk_error *err)
{
    const stki_node *node = stki_node_get(options, key);

    *out = -1;
    if (!text)
        return STK_OK;
    if (*text && strspn(text, "0123456789") == strlen(text) && !node->quoted) {
        stk_status status = stki_node_int(node, out, err);

        if (status != STK_OK)
            return status;
        return *out <= STKI_TOKEN_LARGEST ? STK_OK
                                          : stki_fail_value(err, node, "an id of at most %d", STKI_TOKEN_LARGEST);
    }
    *out = stki_vocabulary_named(v, text);
    return *out >= 0 ? STK_OK : stki_fail_value(err, node, "the id or the text of a token in %s", v->path);
}

static stk_status choose_dtype(token_finisher *tokens, const stki_node *options, const token_options *o, stk_error *err)
{
    const stki_vocabulary *v = stki_tokenizer_vocabulary(tokens->tokenizer);
    int64_t largest = v->largest;

    largest = tokens->begin > largest ? tokens->begin : largest;
    largest = tokens->end > largest ? tokens->end : largest;
    tokens->wide = largest > UINT16_MAX;
    if (!o->dtype)
        return STK_OK;
    switch (stk_dtype_find(o->dtype)) {
    case STK_U32:
        tokens->wide = true;
        return STK_OK;
    case STK_U16:
        return !tokens->wide
                   ? STK_OK
                   : stki_fail_value(err, stki_node_get(options, "dtype"),
                                     "uint32: the largest id of %s with begin and end is %" PRId64, v->path, largest);
    default:
        return stki_fail_value(err, stki_node_get(options, "dtype"), "uint16 or uint32");
    }
}

static void token_destroy(stki_finisher *finisher)
{
    token_finisher *tokens = (token_finisher *)(void *)finisher;

    stki_tokenizer_destroy(tokens->tokenizer);
    stki_free(tokens);
}

static stk_status prepare(token_finisher *tokens, const stki_node *options, const token_options *o, stk_error *err)
{
    const stki_vocabulary *v;
    stk_status status = stki_tokenizer_open(&(stki_tokenizer_opts){.vocabulary = o->vocabulary,
                                                                   .merges = o->merges,
                                                                   .split = o->split,
                                                                   .pattern = o->pattern,
                                                                   .special = o->special_tokens == 1},
                                            &tokens->tokenizer, err);

    if (status != STK_OK)
        return status;
    v = stki_tokenizer_vocabulary(tokens->tokenizer);
    if ((status = find_token(options, "begin", o->begin, v, &tokens->begin, err)) != STK_OK ||
        (status = find_token(options, "end", o->end, v, &tokens->end, err)) != STK_OK)
        return status;
    return choose_dtype(tokens, options, o, err);
}

static stk_status token_create(const stki_node *options, const stki_sink_field *in, stki_sink_field *out,
                               stki_finisher **finisher, stk_error *err)
{
    token_options o = {0};
    token_finisher *tokens;
    stk_status status;

    stki_options_defaults(&token_table, &o);
    status = stki_options_read(&token_table, options, &o, NULL, err);
    if (status != STK_OK)
        return status;
    if (in->dtype != STK_U8 || in->ndim != 1)
        return stki_finish_refuse(
            err, options, in,
            "encode: tokens requires texts, which are rows of bytes of varying length; field %s has rows of %s "
            "with %d axes",
            in->name, stk_dtype_name(in->dtype), in->ndim);
    tokens = stki_zalloc(sizeof *tokens);
    if (!tokens)
        return stki_fail_memory(err, (int64_t)sizeof *tokens, "a finisher");
    tokens->base.ops = &stki_finish_tokens;
    status = prepare(tokens, options, &o, err);
    if (status != STK_OK) {
        token_destroy(&tokens->base);
        return err && !err->file[0] ? stki_fail_place(err, status, NULL, -1, STKI_TEXT("output.fields.%.60s", in->name))
                                    : status;
    }
    *finisher = &tokens->base;
    out->kind = STKI_SINK_RAGGED;
    out->dtype = tokens->wide ? STK_U32 : STK_U16;
    out->ndim = 1;
    out->shape[0] = 0;
    out->largest_bytes = 0;
    out->extension = o.extension ? o.extension : out->extension;
    return STK_OK;
}

/* ---- rows ---- */

static stk_status token_scratch(const stki_finisher *finisher, void **out, stk_error *err)
{
    const token_finisher *tokens = (const token_finisher *)(const void *)finisher;
    stki_token_scratch *scratch;
    stk_status status = stki_token_scratch_create(tokens->tokenizer, &scratch, err);

    if (status == STK_OK)
        *out = scratch;
    return status;
}

static int64_t token_scratch_bytes(const stki_finisher *finisher, int64_t row_bytes)
{
    return stki_token_scratch_bytes(((const token_finisher *)(const void *)finisher)->tokenizer, row_bytes);
}

static void token_scratch_destroy(void *scratch)
{
    stki_token_scratch_destroy(scratch);
}

static char *put_narrow(char *to, const uint32_t *ids, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const uint16_t narrow = (uint16_t)ids[i];

        memcpy(to + 2 * i, &narrow, sizeof narrow);
    }
    return to + 2 * count;
}

static char *put_ids(const token_finisher *tokens, char *to, const uint32_t *ids, int64_t count)
{
    if (!tokens->wide)
        return put_narrow(to, ids, count);
    if (count > 0)
        memcpy(to, ids, (size_t)count * sizeof *ids);
    return to + count * (int64_t)sizeof *ids;
}

static stk_status token_run(const stki_finisher *finisher, void *scratch, const stki_row *in, stki_bytes *to,
                            stki_sink_value *out, stk_error *err)
{
    const token_finisher *tokens = (const token_finisher *)(const void *)finisher;
    const uint32_t begin = (uint32_t)tokens->begin, end = (uint32_t)tokens->end, *ids;
    int64_t count;
    char *at;
    stk_status status = stki_tokenize(tokens->tokenizer, scratch, in->bytes, in->size, &ids, &count, err);

    if (status != STK_OK)
        return status;
    *out = (stki_sink_value){.length = count + (tokens->begin >= 0) + (tokens->end >= 0)};
    out->size = out->length * (tokens->wide ? 4 : 2);
    status = stki_bytes_reserve(to, out->size, err);
    if (status != STK_OK)
        return status;
    if (out->size == 0) /* data may be NULL here */
        return STK_OK;
    at = to->bytes + to->used;
    if (tokens->begin >= 0)
        at = put_ids(tokens, at, &begin, 1);
    at = put_ids(tokens, at, ids, count);
    if (tokens->end >= 0)
        (void)put_ids(tokens, at, &end, 1);
    to->used += out->size;
    return STK_OK;
}

static json_t *token_describe(const stki_finisher *finisher)
{
    const token_finisher *tokens = (const token_finisher *)(const void *)finisher;
    const stki_vocabulary *v = stki_tokenizer_vocabulary(tokens->tokenizer);
    const stki_token_steps *steps = stki_tokenizer_steps(tokens->tokenizer);
    const char *pattern = NULL;
    char version[64], digest[24];

    snprintf(digest, sizeof digest, "%016" PRIx64, v->digest);
    if (v->count == 256 && !v->digest)
        return json_pack("{s:s}", "vocabulary", "bytes");
    for (int i = 0; i < steps->count && !pattern; i++)
        pattern = steps->step[i].kind == STKI_TOKEN_SPLIT ? steps->step[i].text : NULL;
    return json_pack("{s:o, s:s, s:I, s:I, s:s?, s:s, s:s}", "vocabulary", stki_text_json(v->path), "vocabulary_xxh3",
                     digest, "tokens", (json_int_t)v->count, "largest_id", (json_int_t)v->largest, "pattern", pattern,
                     "pcre2", stki_token_split_version(version), "utf8proc", stki_token_normalize_version());
}

const stki_finisher_ops stki_finish_tokens = {.name = "tokens",
                                              .most_out = 4, /* in the worst case, each byte is a u32 token */
                                              .table = &token_table,
                                              .create = token_create,
                                              .scratch = token_scratch,
                                              .scratch_destroy = token_scratch_destroy,
                                              .scratch_bytes = token_scratch_bytes,
                                              .run = token_run,
                                              .describe = token_describe,
                                              .destroy = token_destroy};
