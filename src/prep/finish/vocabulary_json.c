/* vocabulary_json.c: tokenizer.json of the tokenizers library, and vocab.json with merges.txt: byte-level BPE.
 *
 * Tokens are written there as texts in which every byte is one character: the printable ones of Latin-1 are themselves,
 * the other 68 are U+0100, U+0101, … in the order of the bytes. Of a tokenizer.json everything is looked at that has a
 * say in the ids of plain text; what is not known is refused by its name, never left aside. */
#include "allocate.h"
#include "error.h"
#include "text_check.h"
#include "vocabulary.h"
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

enum { MOST_CODE = 0x144 }; /* characters that stand for bytes are below */

typedef struct reading {
    stki_vocabulary *v;
    stk_error *err;
    int16_t byte_of[MOST_CODE]; /* by character; -1: none */
    uint8_t left[STKI_TOKEN_MOST_BYTES], right[STKI_TOKEN_MOST_BYTES];
} reading;

static bool prints(int byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

static void make_map(reading *r)
{
    int next = 256;

    memset(r->byte_of, 0xff, sizeof r->byte_of);
    for (int byte = 0; byte < 256; byte++)
        r->byte_of[prints(byte) ? byte : next++] = (int16_t)byte;
}

/* The bytes that a token's text stands for; -1: it is no such text, -2: too long. */
static int64_t bytes_of(const reading *r, const char *text, int64_t length, uint8_t *to)
{
    int64_t n = 0;

    for (int64_t at = 0; at < length; n++) {
        uint32_t code;
        const int step = stki_utf8_next(text + at, length - at, &code);

        if (step == 0 || code >= MOST_CODE || r->byte_of[code] < 0)
            return -1;
        if (n == STKI_TOKEN_MOST_BYTES)
            return -2;
        to[n] = (uint8_t)r->byte_of[code];
        at += step;
    }
    return n;
}

static stk_status refuse(const reading *r, const char *what, const char *found, const char *expected)
{
    return stki_fail_at(r->err, STK_E_UNSUPPORTED, (stki_place){r->v->path, -1, -1, found, expected}, "%s", what);
}

static stk_status wrong(const reading *r, const char *what, const char *expected)
{
    return stki_fail_at(r->err, STK_E_CORRUPT, (stki_place){r->v->path, -1, -1, "something else", expected}, "%s",
                        what);
}

/* ---- tokens and merges ---- */

static bool is_special(const stki_vocabulary *v, const char *name)
{
    return stki_vocabulary_special(v, name) >= 0;
}

static stk_status read_vocabulary(reading *r, json_t *vocabulary)
{
    const char *text;
    json_t *id;
    stk_status status = STK_OK;

    if (!json_is_object(vocabulary))
        return wrong(r, "vocab", "a map from tokens to ids");
    json_object_foreach(vocabulary, text, id)
    {
        int64_t count;

        if (!json_is_integer(id))
            return wrong(r, "vocab", "whole numbers as ids");
        count = is_special(r->v, text) ? 0 : bytes_of(r, text, (int64_t)strlen(text), r->left);
        if (count == -2)
            return refuse(r, "vocab", "a token that is too long", STKI_TEXT("at most %d bytes", STKI_TOKEN_MOST_BYTES));
        if (count <= 0) /* what stands for no bytes never comes of a text, but its id must fit */
            status = is_special(r->v, text) || count == 0
                         ? STK_OK
                         : stki_vocabulary_add_special(r->v, text, json_integer_value(id), r->err);
        else
            status = stki_vocabulary_add(r->v, r->left, count, json_integer_value(id), r->err);
        if (status != STK_OK)
            return status;
    }
    return stki_vocabulary_finish(r->v, r->err);
}

static stk_status add_merge(reading *r, const char *left, int64_t left_length, const char *right, int64_t right_length,
                            int64_t number)
{
    const int64_t a = bytes_of(r, left, left_length, r->left), b = bytes_of(r, right, right_length, r->right);

    return stki_vocabulary_add_pair(r->v, r->left, a, r->right, b, number, r->err);
}

/* "LEFT RIGHT" */
static stk_status add_merge_text(reading *r, const char *text, int64_t length, int64_t number)
{
    const char *space = memchr(text, ' ', (size_t)length);

    if (!space)
        return stki_fail_at(r->err, STK_E_CORRUPT,
                            (stki_place){r->v->path, -1, -1, STKI_TEXT("%.*s", (int)(length < 40 ? length : 40), text),
                                         "two tokens with a space between them"},
                            "merge %" PRId64, number);
    return add_merge(r, text, space - text, space + 1, text + length - space - 1, number);
}

static stk_status read_merges(reading *r, const json_t *merges)
{
    const int64_t count = (int64_t)json_array_size(merges);
    stk_status status;

    if (!json_is_array(merges))
        return wrong(r, "model.merges", "a list");
    status = stki_vocabulary_pairs(r->v, count, r->err);
    for (int64_t i = 0; i < count && status == STK_OK; i++) {
        const json_t *merge = json_array_get(merges, (size_t)i), *left = json_array_get(merge, 0),
                     *right = json_array_get(merge, 1);

        if (json_is_string(merge))
            status = add_merge_text(r, json_string_value(merge), (int64_t)json_string_length(merge), i);
        else if (json_array_size(merge) == 2 && json_is_string(left) && json_is_string(right))
            status = add_merge(r, json_string_value(left), (int64_t)json_string_length(left), json_string_value(right),
                               (int64_t)json_string_length(right), i);
        else
            return wrong(r, "model.merges", "\"LEFT RIGHT\", or a list of the two");
    }
    return status;
}

/* Lines of merges.txt; one that begins with "#version" is a comment. */
static stk_status read_merge_lines(reading *r, const char *text, int64_t length)
{
    int64_t lines = 1, number = 0;
    stk_status status;

    for (int64_t i = 0; i < length; i++)
        lines += text[i] == '\n';
    status = stki_vocabulary_pairs(r->v, lines, r->err);
    for (int64_t at = 0; at < length && status == STK_OK;) {
        const char *begin = text + at, *end = memchr(begin, '\n', (size_t)(length - at));
        int64_t count = end ? end - begin : length - at;

        at += count + 1;
        if (count > 0 && begin[count - 1] == '\r')
            count--;
        if (count > 0 && !(number == 0 && count >= 8 && memcmp(begin, "#version", 8) == 0))
            status = add_merge_text(r, begin, count, number++);
    }
    return status;
}

/* ---- what else a tokenizer.json says ---- */

static stk_status read_added(reading *r, const json_t *added)
{
    stk_status status = STK_OK;

    for (size_t i = 0; i < json_array_size(added) && status == STK_OK; i++) {
        const json_t *token = json_array_get(added, i), *id = json_object_get(token, "id");
        const char *content = json_string_value(json_object_get(token, "content"));

        if (!content || !json_is_integer(id))
            return wrong(r, "added_tokens", "maps of id, content and special");
        if (!json_is_true(json_object_get(token, "special")))
            return refuse(r, "added_tokens",
                          STKI_TEXT("\"%.60s\", which is not special and would be found in texts", content),
                          "special ones alone");
        status = stki_vocabulary_add_special(r->v, content, json_integer_value(id), r->err);
    }
    return status;
}

static bool is_off(const json_t *value) /* not there, null, false or "" */
{
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_string(value) && json_string_length(value) == 0);
}

static stk_status check_model(reading *r, const json_t *model)
{
    static const char *const not_known[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
                                            "byte_fallback"};
    const char *type = json_string_value(json_object_get(model, "type"));

    if (!type || strcmp(type, "BPE") != 0)
        return refuse(r, "model.type", type ? STKI_TEXT("%.40s", type) : "none", "BPE");
    for (size_t i = 0; i < sizeof not_known / sizeof not_known[0]; i++)
        if (!is_off(json_object_get(model, not_known[i])))
            return refuse(r, STKI_TEXT("model.%s", not_known[i]), "a value", "null");
    return STK_OK;
}

static const char GPT2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static stk_status keep_pattern(reading *r, const char *pattern)
{
    if (r->v->pattern)
        return refuse(r, "pre_tokenizer", "two steps that split", "one");
    r->v->pattern = stki_strdup(pattern);
    return r->v->pattern ? STK_OK : stki_fail_memory(r->err, (int64_t)strlen(pattern), "a pattern");
}

static stk_status read_step(reading *r, const json_t *step)
{
    const char *type = json_string_value(json_object_get(step, "type")), *pattern;

    if (type && strcmp(type, "ByteLevel") == 0) {
        if (json_is_true(json_object_get(step, "add_prefix_space")))
            return refuse(r, "pre_tokenizer", "add_prefix_space: true", "false");
        return json_is_false(json_object_get(step, "use_regex")) ? STK_OK : keep_pattern(r, GPT2);
    }
    if (type && strcmp(type, "Split") == 0) {
        const char *behavior = json_string_value(json_object_get(step, "behavior"));

        pattern = json_string_value(json_object_get(json_object_get(step, "pattern"), "Regex"));
        if (!pattern || !behavior || strcmp(behavior, "Isolated") != 0 || json_is_true(json_object_get(step, "invert")))
            return refuse(r, "pre_tokenizer", "another kind of Split",
                          "one by a Regex, with behavior Isolated, not inverted");
        return keep_pattern(r, pattern);
    }
    return refuse(r, "pre_tokenizer", type ? STKI_TEXT("%.40s", type) : "none", "ByteLevel, or a Split before it");
}

static stk_status read_steps(reading *r, const json_t *steps)
{
    const char *type = json_string_value(json_object_get(steps, "type"));
    const json_t *list = json_object_get(steps, "pretokenizers");
    stk_status status = STK_OK;

    if (!type || strcmp(type, "Sequence") != 0)
        return read_step(r, steps);
    for (size_t i = 0; i < json_array_size(list) && status == STK_OK; i++)
        status = read_step(r, json_array_get(list, i));
    return status;
}

static stk_status read_tokenizer(reading *r, const json_t *root)
{
    const json_t *model = json_object_get(root, "model"), *normalizer = json_object_get(root, "normalizer");
    stk_status status = check_model(r, model);

    if (status != STK_OK)
        return status;
    if (!is_off(normalizer)) {
        const char *type = json_string_value(json_object_get(normalizer, "type"));

        return refuse(r, "normalizer", type ? STKI_TEXT("%.40s", type) : "one", "none");
    }
    if ((status = read_steps(r, json_object_get(root, "pre_tokenizer"))) != STK_OK ||
        (status = read_added(r, json_object_get(root, "added_tokens"))) != STK_OK ||
        (status = read_vocabulary(r, json_object_get(model, "vocab"))) != STK_OK ||
        (status = read_merges(r, json_object_get(model, "merges"))) != STK_OK)
        return status;
    return stki_vocabulary_settle(r->v, json_is_true(json_object_get(model, "ignore_merges")), r->err);
}

static stk_status read_pair_of_files(reading *r, json_t *root, const char *merges, int64_t merges_length)
{
    stk_status status;

    if (!merges)
        return stki_fail_at(r->err, STK_E_CONFIG,
                            (stki_place){r->v->path, -1, -1, "a vocab.json alone", "its merges.txt as `merges` too"},
                            "vocabulary");
    if ((status = read_vocabulary(r, root)) != STK_OK ||
        (status = read_merge_lines(r, merges, merges_length)) != STK_OK)
        return status;
    return stki_vocabulary_settle(r->v, false, r->err);
}

stk_status stki_vocabulary_json(const char *text, int64_t length, const char *merges, int64_t merges_length,
                                stki_vocabulary *v, stk_error *err)
{
    reading *r = stki_zalloc(sizeof *r);
    json_error_t where;
    json_t *root;
    stk_status status;

    if (!r)
        return stki_fail_memory(err, (int64_t)sizeof *r, "a vocabulary");
    r->v = v;
    r->err = err;
    make_map(r);
    root = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &where);
    if (!root)
        status = stki_fail_at(err, STK_E_CORRUPT, (stki_place){v->path, -1, where.position, where.text, "JSON"},
                              "line %d", where.line);
    else if (json_object_get(root, "model") && json_is_object(json_object_get(root, "model")))
        status = merges ? stki_fail_at(err, STK_E_CONFIG,
                                       (stki_place){v->path, -1, -1, "a tokenizer.json and `merges`", "one of the two"},
                                       "vocabulary")
                        : read_tokenizer(r, root);
    else
        status = read_pair_of_files(r, root, merges, merges_length);
    json_decref(root);
    stki_free(r);
    return status;
}
