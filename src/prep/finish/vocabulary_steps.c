/* vocabulary_steps.c: converts the normalizer and pre_tokenizer of a tokenizer.json to steps. It supports the kinds of
 * steps that published byte-pair vocabularies use. */
#include "allocate.h"
#include "error.h"
#include "token_split.h"
#include "vocabulary.h"
#include <stdio.h>
#include <string.h>

typedef struct reading {
    stki_vocabulary *v;
    bool bytes; /* ByteLevel was found */
    stk_error *err;
} reading;

typedef stk_status step_fn(reading *r, const json_t *step);

/* A kind of step. `read` NULL: a sequence of steps in `members`. */
typedef struct step_kind {
    const char *type;
    step_fn *read;
    const char *members;
} step_kind;

static stk_status refuse(const reading *r, const char *what, const char *found, const char *expected)
{
    return stki_fail_at(r->err, STK_E_UNSUPPORTED, (stki_place){r->v->path, -1, -1, found, expected}, "%s", what);
}

static const char *text_of(const json_t *step, const char *key)
{
    return json_string_value(json_object_get(step, key));
}

static stk_status add(reading *r, stki_token_steps *to, stki_token_step step)
{
    const stk_status status = stki_token_steps_add(to, &step, r->err);

    return status == STK_OK ? status : stki_fail_place(r->err, status, r->v->path, -1, NULL);
}

/* Adds a step for every literal occurrence of `text`. */
static stk_status add_literal(reading *r, const char *text, stki_token_step step)
{
    char *pattern = stki_token_literal(text);
    stk_status status;

    if (!pattern)
        return stki_fail_memory(r->err, (int64_t)strlen(text), "a pattern");
    step.kind = STKI_TOKEN_SPLIT;
    step.text = pattern;
    status = add(r, &r->v->then, step);
    stki_free(pattern);
    return status;
}

/* ---- normalizers ---- */

static stk_status read_form(reading *r, const json_t *step)
{
    static const char *const forms[] = {
        [STKI_TOKEN_NFC] = "NFC", [STKI_TOKEN_NFD] = "NFD", [STKI_TOKEN_NFKC] = "NFKC", [STKI_TOKEN_NFKD] = "NFKD"};
    int form = 0;

    while (strcmp(forms[form], text_of(step, "type")) != 0)
        form++;
    return add(r, &r->v->first, (stki_token_step){.kind = STKI_TOKEN_NORMALIZE, .form = (enum stki_token_form)form});
}

static stk_status read_prepend(reading *r, const json_t *step)
{
    const char *text = text_of(step, "prepend");

    if (!text)
        return refuse(r, "normalizer", "a Prepend without a string", "`prepend`");
    return *text ? add(r, &r->v->first, (stki_token_step){.kind = STKI_TOKEN_PREFIX, .text = text}) : STK_OK;
}

static stk_status read_replace(reading *r, const json_t *step)
{
    const char *from = text_of(json_object_get(step, "pattern"), "String"), *text = text_of(step, "content");

    if (!from || !*from || !text)
        return refuse(r, "normalizer", "a Replace of something other than a String", "a String and its replacement");
    return add(r, &r->v->first, (stki_token_step){.kind = STKI_TOKEN_REPLACE, .from = from, .text = text});
}

static const step_kind normalizers[] = {
    {"Sequence", NULL, "normalizers"}, {"NFC", read_form, NULL},  {"NFD", read_form, NULL},
    {"NFKC", read_form, NULL},         {"NFKD", read_form, NULL}, {"Prepend", read_prepend, NULL},
    {"Replace", read_replace, NULL},   {NULL, NULL, NULL},
};

/* ---- pre-tokenizers ---- */

static stk_status read_byte_level(reading *r, const json_t *step)
{
    stk_status status = STK_OK;

    r->bytes = true;
    if (!json_is_false(json_object_get(step, "add_prefix_space"))) /* default: true */
        status = add(r, &r->v->then,
                     (stki_token_step){.kind = STKI_TOKEN_PREFIX, .prefix = STKI_PREFIX_UNLESS_THERE, .text = " "});
    if (status == STK_OK && !json_is_false(json_object_get(step, "use_regex")))
        status = add(r, &r->v->then, (stki_token_step){.kind = STKI_TOKEN_SPLIT, .text = stki_token_pattern("gpt2")});
    return status;
}

static stk_status find_behavior(reading *r, const json_t *step, enum stki_token_behavior *out)
{
    static const char *const behaviors[] = {[STKI_SPLIT_ISOLATED] = "Isolated",
                                            [STKI_SPLIT_REMOVED] = "Removed",
                                            [STKI_SPLIT_CONTIGUOUS] = "Contiguous",
                                            [STKI_SPLIT_WITH_PREVIOUS] = "MergedWithPrevious",
                                            [STKI_SPLIT_WITH_NEXT] = "MergedWithNext"};
    const char *name = text_of(step, "behavior");

    for (size_t i = 0; name && i < sizeof behaviors / sizeof behaviors[0]; i++)
        if (strcmp(behaviors[i], name) == 0) {
            *out = (enum stki_token_behavior)i;
            return STK_OK;
        }
    return refuse(r, "pre_tokenizer", name ? STKI_TEXT("behavior %.40s", name) : "no behavior",
                  "Isolated, Removed, Contiguous, MergedWithPrevious or MergedWithNext");
}

static stk_status read_split(reading *r, const json_t *step)
{
    const json_t *pattern = json_object_get(step, "pattern");
    const char *literal = text_of(pattern, "String");
    stki_token_step split = {.kind = STKI_TOKEN_SPLIT,
                             .inverted = json_is_true(json_object_get(step, "invert")),
                             .multiline = true,
                             .text = text_of(pattern, "Regex")};
    stk_status status = find_behavior(r, step, &split.behavior);

    if (status != STK_OK)
        return status;
    if (literal && *literal)
        return add_literal(r, literal, split);
    return split.text ? add(r, &r->v->then, split)
                      : refuse(r, "pre_tokenizer", "a Split by something else", "a Split by a Regex or a String");
}

static stk_status read_digits(reading *r, const json_t *step)
{
    const bool each = json_is_true(json_object_get(step, "individual_digits"));

    return add(r, &r->v->then, (stki_token_step){.kind = STKI_TOKEN_SPLIT, .text = each ? "\\p{N}" : "\\p{N}+"});
}

static stk_status read_punctuation(reading *r, const json_t *step)
{
    stki_token_step split = {.kind = STKI_TOKEN_SPLIT, .text = "[\\p{P}$+<=>^`|~]"};
    stk_status status = json_object_get(step, "behavior") ? find_behavior(r, step, &split.behavior) : STK_OK;

    return status == STK_OK ? add(r, &r->v->then, split) : status;
}

/* The tokenizers library recognizes the first piece by its offset in the text before normalization, which is 0. Returns
 * whether several pieces, or none, may have this offset. */
static bool loses_start(const stki_vocabulary *v)
{
    bool drops = false;

    for (int i = 0; i < v->first.count; i++)
        drops = drops || (v->first.step[i].kind == STKI_TOKEN_REPLACE && !*v->first.step[i].text);
    return drops || (v->first.count > 0 && v->then.count > 0);
}

static stk_status read_metaspace(reading *r, const json_t *step)
{
    const char *mark = text_of(step, "replacement");
    const char *scheme = text_of(step, "prepend_scheme");
    const bool never = scheme ? strcmp(scheme, "never") == 0 : json_is_false(json_object_get(step, "add_prefix_space"));
    stk_status status;

    if (!mark || !*mark)
        return refuse(r, "pre_tokenizer", "a Metaspace without a replacement", "a character");
    if (scheme && !never && strcmp(scheme, "always") != 0 && strcmp(scheme, "first") != 0)
        return refuse(r, "pre_tokenizer", STKI_TEXT("prepend_scheme %.40s", scheme), "always, first or never");
    if (scheme && strcmp(scheme, "first") == 0 && loses_start(r->v))
        return refuse(r, "pre_tokenizer", "prepend_scheme first after a normalizer that removes text, or after a split",
                      "always or never");
    status = add(r, &r->v->then, (stki_token_step){.kind = STKI_TOKEN_REPLACE, .from = " ", .text = mark});
    if (status == STK_OK && !never)
        status =
            add(r, &r->v->then,
                (stki_token_step){.kind = STKI_TOKEN_PREFIX,
                                  .prefix = scheme && strcmp(scheme, "first") == 0 ? STKI_PREFIX_UNLESS_THERE_AT_START
                                                                                   : STKI_PREFIX_UNLESS_THERE,
                                  .text = mark});
    if (status == STK_OK && !json_is_false(json_object_get(step, "split")))
        status = add_literal(r, mark, (stki_token_step){.behavior = STKI_SPLIT_WITH_NEXT});
    return status;
}

static const step_kind pre_tokenizers[] = {
    {"Sequence", NULL, "pretokenizers"},
    {"ByteLevel", read_byte_level, NULL},
    {"Split", read_split, NULL},
    {"Digits", read_digits, NULL},
    {"Metaspace", read_metaspace, NULL},
    {"Punctuation", read_punctuation, NULL},
    {NULL, NULL, NULL},
};

/* ---- both ---- */

static stk_status read_step(reading *r, const char *what, const step_kind *kinds, const json_t *step, int depth);

static stk_status read_sequence(reading *r, const char *what, const step_kind *kinds, const json_t *list, int depth)
{
    stk_status status = STK_OK;

    if (!json_is_array(list) || depth > 4)
        return refuse(r, what, depth > 4 ? "sequences nested too deep" : "a Sequence without its list",
                      "a list of steps");
    for (size_t i = 0; i < json_array_size(list) && status == STK_OK; i++)
        status = read_step(r, what, kinds, json_array_get(list, i), depth + 1);
    return status;
}

static stk_status read_step(reading *r, const char *what, const step_kind *kinds, const json_t *step, int depth)
{
    const char *type = text_of(step, "type");
    char known[200] = "";

    for (const step_kind *kind = kinds; kind->type; kind++) {
        if (type && strcmp(kind->type, type) == 0) {
            if (!kind->read)
                return read_sequence(r, what, kinds, json_object_get(step, kind->members), depth);
            return r->bytes ? refuse(r, what, STKI_TEXT("%s after ByteLevel", type), "ByteLevel as the last step")
                            : kind->read(r, step);
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", *known ? ", " : "one of ", kind->type);
    }
    return refuse(r, what, type ? STKI_TEXT("%.40s", type) : "a step without a type", known);
}

stk_status stki_vocabulary_steps(const json_t *root, stki_vocabulary *v, bool *bytes, stk_error *err)
{
    const json_t *normalizer = json_object_get(root, "normalizer"),
                 *pre_tokenizer = json_object_get(root, "pre_tokenizer");
    reading r = {v, false, err};
    stk_status status = STK_OK;

    if (json_is_object(normalizer))
        status = read_step(&r, "normalizer", normalizers, normalizer, 0);
    if (status == STK_OK && json_is_object(pre_tokenizer))
        status = read_step(&r, "pre_tokenizer", pre_tokenizers, pre_tokenizer, 0);
    *bytes = r.bytes;
    return status;
}
