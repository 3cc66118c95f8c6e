/* tokenize.c: see tokenize.h. Added tokens are found in the text, and again in the normalized text between them; the
 * rest is split into pieces (token_steps.c). Most pieces are tokens themselves and take one lookup; the bytes of others
 * are merged into tokens (token_join.c). */
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
    bool bytes;                          /* no vocabulary: tokens are bytes */
    stki_token_steps own;                /* replaces the vocabulary's steps */
    const stki_token_steps *steps;       /* the steps in effect */
    stki_token_program *first, *then;    /* compiled normalizer and `steps`; NULL: none */
    stki_added_finder *raw, *normalized; /* NULL: none */
    char **names;                        /* names of added tokens in normalized form */
};

struct stki_token_scratch {
    stki_token_joiner joiner;
    stki_token_run *first, *then;
    uint32_t *ids;
    int64_t count, room;
};

/* ---- open and destroy ---- */

static stk_status no_such_split(const char *found, stk_error *err)
{
    char words[STKI_TOKEN_PATTERN_LIST];

    return stki_fail(err, STK_E_CONFIG, "split: found %s, expected %s", found,
                     stki_token_pattern_list("none", words, sizeof words));
}

/* Sets the pattern that replaces that of the file; *out stays NULL if text is not split. */
static stk_status choose_pattern(const stki_tokenizer_opts *opts, const char **out, stk_error *err)
{
    *out = NULL;
    if (opts->pattern && opts->split)
        return stki_fail(err, STK_E_CONFIG, "found both split and pattern, expected only one of them");
    if (opts->pattern)
        *out = opts->pattern;
    else if (strcmp(opts->split, "none") != 0 && !(*out = stki_token_pattern(opts->split)))
        return no_such_split(opts->split, err);
    return STK_OK;
}

static stk_status choose_steps(stki_tokenizer *t, const stki_tokenizer_opts *opts, stk_error *err)
{
    const stki_vocabulary *v = t->vocabulary;
    char words[STKI_TOKEN_PATTERN_LIST];
    const char *pattern;
    stk_status status;

    t->steps = &v->then;
    if (!opts->split && !opts->pattern)
        return v->by_pairs
                   ? STK_OK
                   : stki_fail(err, STK_E_CONFIG,
                               "%s does not specify how text is split before encoding: set split: %s, or a pattern",
                               v->path, stki_token_pattern_list("none", words, sizeof words));
    if (v->by_characters)
        return stki_fail(err, STK_E_CONFIG,
                         "%s: found %s, which is not supported with a vocabulary of characters, because its own steps "
                         "mark spaces; remove it",
                         opts->split ? "split" : "pattern", v->path);
    t->steps = &t->own;
    if ((status = choose_pattern(opts, &pattern, err)) != STK_OK || !pattern)
        return status;
    return stki_token_steps_add(&t->own, &(stki_token_step){.kind = STKI_TOKEN_SPLIT, .text = pattern}, err);
}

/* Stores the normalized form of a name. */
static stk_status keep_name(void *context, const uint8_t *piece, int64_t length, bool starts, stk_error *err)
{
    char **name = context;

    (void)starts;
    stki_free(*name);
    *name = stki_zalloc(length + 1);
    if (!*name)
        return stki_fail_memory(err, length + 1, "added tokens");
    memcpy(*name, piece, (size_t)length);
    return STK_OK;
}

static stk_status normalize_names(stki_tokenizer *t, stk_error *err)
{
    const stki_vocabulary *v = t->vocabulary;
    stki_token_run *run = NULL;
    stk_status status = STK_OK;

    t->names = stki_zalloc_array(v->added_count ? v->added_count : 1, sizeof *t->names);
    if (!t->names)
        return stki_fail_memory(err, v->added_count * (int64_t)sizeof *t->names, "added tokens");
    if (t->first)
        status = stki_token_run_create(t->first, &run, err);
    for (int i = 0; i < v->added_count && status == STK_OK; i++) {
        const uint8_t *name = (const uint8_t *)v->added[i].name;

        t->names[i] = stki_strdup(v->added[i].name);
        if (!t->names[i])
            status = stki_fail_memory(err, (int64_t)strlen(v->added[i].name), "added tokens");
        else if (t->first && v->added[i].normalized)
            status = stki_token_program_run(t->first, run, name, (int64_t)strlen(v->added[i].name), true, keep_name,
                                            &t->names[i], err);
    }
    stki_token_run_destroy(run);
    return status;
}

static stk_status open_steps(stki_tokenizer *t, const stki_tokenizer_opts *opts, stk_error *err)
{
    const stki_vocabulary *v = t->vocabulary;
    stk_status status = choose_steps(t, opts, err);

    if (status == STK_OK && v->first.count)
        status = stki_token_program_create(&v->first, &t->first, err);
    if (status == STK_OK && t->steps->count)
        status = stki_token_program_create(t->steps, &t->then, err);
    if (status == STK_OK)
        status = normalize_names(t, err);
    if (status == STK_OK)
        status = stki_added_finder_create(v->added, v->added_count, t->names, false, opts->special, &t->raw, err);
    if (status == STK_OK)
        status = stki_added_finder_create(v->added, v->added_count, t->names, true, opts->special, &t->normalized, err);
    return status;
}

stk_status stki_tokenizer_open(const stki_tokenizer_opts *opts, stki_tokenizer **out, stk_error *err)
{
    stki_tokenizer *t;
    stk_status status;

    if (!opts->vocabulary && (opts->merges || opts->split || opts->pattern))
        return stki_fail(err, STK_E_CONFIG, "%s: only used with a vocabulary; without one, every byte is a token",
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
        status = open_steps(t, opts, err);
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
    stki_token_program_destroy(t->first);
    stki_token_program_destroy(t->then);
    stki_added_finder_destroy(t->raw);
    stki_added_finder_destroy(t->normalized);
    for (int i = 0; t->names && i < t->vocabulary->added_count; i++)
        stki_free(t->names[i]);
    stki_free(t->names);
    stki_token_steps_fini(&t->own);
    stki_vocabulary_destroy(t->vocabulary);
    stki_free(t);
}

const stki_vocabulary *stki_tokenizer_vocabulary(const stki_tokenizer *t)
{
    return t->vocabulary;
}

const stki_token_steps *stki_tokenizer_steps(const stki_tokenizer *t)
{
    return t->steps;
}

/* Returns whether any step splits texts into word-like pieces. */
static bool cuts(const stki_tokenizer *t)
{
    for (int i = 0; t->steps && i < t->steps->count; i++)
        if (t->steps->step[i].kind == STKI_TOKEN_SPLIT)
            return true;
    return t->bytes;
}

int64_t stki_token_scratch_bytes(const stki_tokenizer *t, int64_t length)
{
    const int64_t first = stki_token_steps_growth(&t->vocabulary->first);
    const int64_t then = t->steps ? stki_token_steps_growth(t->steps) : 1;

    if (length > INT64_MAX / (64 * first * then))
        return INT64_MAX;
    /* The normalized text (utf8proc uses four bytes per character), the output of the other steps, and the token
     * ids. */
    return (t->vocabulary->first.count ? 4 * length * first : 0) + (then > 1 ? length * first * then : 0) +
           (cuts(t) ? length * (int64_t)sizeof(uint32_t) : stki_token_join_bytes(length * first * then));
}

stk_status stki_token_scratch_create(const stki_tokenizer *t, stki_token_scratch **out, stk_error *err)
{
    stki_token_scratch *scratch = stki_zalloc(sizeof *scratch);
    stk_status status = scratch ? STK_OK : stki_fail_memory(err, (int64_t)sizeof *scratch, "a tokenizer");

    if (status == STK_OK && t->first)
        status = stki_token_run_create(t->first, &scratch->first, err);
    if (status == STK_OK && t->then)
        status = stki_token_run_create(t->then, &scratch->then, err);
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
    stki_token_run_destroy(scratch->first);
    stki_token_run_destroy(scratch->then);
    stki_token_joiner_fini(&scratch->joiner);
    stki_free(scratch->ids);
    stki_free(scratch);
}

/* ---- encoding a text ---- */

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

/* Returns the offset of the first byte that is not valid UTF-8; -1: there is none. */
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

/* A text being encoded. */
typedef struct encoding {
    const stki_tokenizer *t;
    stki_token_scratch *scratch;
} encoding;

static stk_status join_piece(void *context, const uint8_t *piece, int64_t length, bool starts, stk_error *err)
{
    encoding *e = context;

    (void)starts;
    return add_piece(e->t, e->scratch, piece, length, err);
}

/* Passes the pieces of `text` between added tokens to `each`. */
static stk_status between_added(encoding *e, const stki_added_finder *finder, const uint8_t *text, int64_t length,
                                bool starts, stki_token_piece_fn *each, stk_error *err)
{
    int64_t used = 0, from = 0, begin, end;
    bool found = true;
    uint32_t id = 0;
    stk_status status = STK_OK;

    while (found && status == STK_OK) {
        found = finder && stki_added_finder_next(finder, text, length, &from, used, &begin, &end, &id);
        if (!found)
            begin = end = length;
        if (begin > used)
            status = each(e, text + used, begin - used, starts && used == 0, err);
        if (status == STK_OK && begin < end && found && (status = reserve(e->scratch, 1, err)) == STK_OK)
            e->scratch->ids[e->scratch->count++] = id;
        used = end;
    }
    return status;
}

static stk_status cut_text(void *context, const uint8_t *text, int64_t length, bool starts, stk_error *err)
{
    encoding *e = context;

    return e->t->then ? stki_token_program_run(e->t->then, e->scratch->then, text, length, starts, join_piece, e, err)
                      : join_piece(e, text, length, starts, err);
}

static stk_status cut_normalized(void *context, const uint8_t *text, int64_t length, bool starts, stk_error *err)
{
    encoding *e = context;

    return between_added(e, e->t->normalized, text, length, starts, cut_text, err);
}

static stk_status normalize(void *context, const uint8_t *text, int64_t length, bool starts, stk_error *err)
{
    encoding *e = context;

    return e->t->first
               ? stki_token_program_run(e->t->first, e->scratch->first, text, length, starts, cut_normalized, e, err)
               : cut_normalized(e, text, length, starts, err);
}

static stk_status by_pieces(const stki_tokenizer *t, stki_token_scratch *scratch, const uint8_t *text, int64_t length,
                            stk_error *err)
{
    encoding e = {t, scratch};
    const int64_t wrong = first_wrong_byte(text, length);

    if (wrong >= 0)
        return stki_fail(err, STK_E_CORRUPT,
                         "the text is not UTF-8: found 0x%02x at byte %" PRId64
                         "; convert the text, or remove the vocabulary, because byte tokens accept any bytes",
                         text[wrong], wrong);
    return between_added(&e, t->raw, text, length, true, normalize, err);
}

/* Encodes a text that is not split. Such texts can be long, so the ids are not copied. */
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
    else if (t->then || t->first || t->raw || t->normalized || t->vocabulary->utf8_only)
        status = by_pieces(t, scratch, text, length, err);
    else if (length > 0)
        return as_one(t, scratch, text, length, ids, count, err);
    *ids = scratch->ids;
    *count = scratch->count;
    return status;
}
