/* vocabulary_json.c: reads tokenizer.json of the tokenizers library, and vocab.json with merges.txt: BPE over bytes, or
 * over characters with byte fallback.
 *
 * Byte-level vocabularies write tokens as strings in which every byte is one character: the printable ones of Latin-1
 * represent themselves, the other 68 are U+0100, U+0101, … in the order of the bytes. Other vocabularies contain the
 * strings themselves, and "<0x0A>" is a byte of a character that has no token. Everything in a tokenizer.json that
 * affects the ids of a text is read; unknown entries are rejected by name, never ignored. */
#include "allocate.h"
#include "error.h"
#include "text_check.h"
#include "token_split.h"
#include "vocabulary.h"
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

enum { MOST_CODE = 0x144 }; /* exclusive upper bound of the code points that represent bytes */

typedef struct reading {
    stki_vocabulary *v;
    stk_error *err;
    json_t *special;            /* names of special tokens, as keys; may be NULL */
    int16_t byte_of[MOST_CODE]; /* per character; -1: none */
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

/* Converts a token's text to its bytes. Returns -1 if the text is invalid, -2 if it is too long. */
static int64_t bytes_of(const reading *r, const char *text, int64_t length, uint8_t *to)
{
    int64_t n = 0;

    if (r->v->by_characters) {
        if (length <= STKI_TOKEN_MOST_BYTES)
            memcpy(to, text, (size_t)length);
        return length <= STKI_TOKEN_MOST_BYTES ? length : -2;
    }
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

/* Returns the byte of a text like "<0x0A>", or -1 for other texts. */
static int byte_named(const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *high, *low;

    if (strlen(text) != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    high = strchr(digits, text[3]);
    low = strchr(digits, text[4]);
    return high && low ? (int)(high - digits) << 4 | (int)(low - digits) : -1;
}

static stk_status add_token(reading *r, const char *text, int64_t id)
{
    const int byte = r->v->by_characters ? byte_named(text) : -1;
    int64_t count;

    if (byte >= 0)
        return stki_vocabulary_add_byte(r->v, (uint8_t)byte, id, r->err);
    /* The name of a special token is also an ordinary token, which can result from text that is not searched for
     * special tokens. */
    count = bytes_of(r, text, (int64_t)strlen(text), r->left);
    if (count == -2 && !json_object_get(r->special, text))
        return refuse(r, "vocab", "a token that is too long", STKI_TEXT("at most %d bytes", STKI_TOKEN_MOST_BYTES));
    return count > 0 ? stki_vocabulary_add(r->v, r->left, count, id, r->err)
                     : stki_vocabulary_reserve_id(r->v, id, r->err);
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
        if (!json_is_integer(id))
            return wrong(r, "vocab", "integers as ids");
        if ((status = add_token(r, text, json_integer_value(id))) != STK_OK)
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

/* Adds a merge "LEFT RIGHT". */
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

/* Reads the lines of merges.txt; a line that starts with "#version" is a comment. */
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

/* ---- other parts of a tokenizer.json ---- */

/* For a name in the vocabulary, the tokenizers library uses the id in the vocabulary; other names get consecutive ids
 * after those of the vocabulary. `next`: the next free id. */
static stk_status check_added_id(const reading *r, const char *name, const json_t *id, const json_t *vocabulary,
                                 int64_t *next)
{
    const json_t *known = json_object_get(vocabulary, name);
    const int64_t expected = json_is_integer(known) ? json_integer_value(known) : *next;

    if (json_integer_value(id) != expected)
        return stki_fail_at(r->err, STK_E_CORRUPT,
                            (stki_place){r->v->path, -1, -1, STKI_TEXT("id %" PRId64, (int64_t)json_integer_value(id)),
                                         STKI_TEXT("%" PRId64 ", which the tokenizers library uses regardless of the "
                                                   "file",
                                                   expected)},
                            "added_tokens: \"%.60s\"", name);
    if (expected >= *next)
        *next = expected + 1;
    return STK_OK;
}

static stk_status read_added(reading *r, const json_t *added, const json_t *vocabulary)
{
    int64_t next = (int64_t)json_object_size(vocabulary);
    stk_status status = STK_OK;

    for (size_t i = 0; i < json_array_size(added) && status == STK_OK; i++) {
        const json_t *token = json_array_get(added, i), *id = json_object_get(token, "id");
        const char *content = json_string_value(json_object_get(token, "content"));
        stki_added_token found;

        if (!content || !json_is_integer(id) || json_integer_value(id) < 0 ||
            json_integer_value(id) > STKI_TOKEN_LARGEST)
            return wrong(r, "added_tokens", "maps of id, content and special");
        if (!*content)
            continue; /* like the tokenizers library */
        if ((status = check_added_id(r, content, id, vocabulary, &next)) != STK_OK)
            return status;
        found = (stki_added_token){.name = content,
                                   .id = (uint32_t)json_integer_value(id),
                                   .special = json_is_true(json_object_get(token, "special")),
                                   .normalized = json_is_true(json_object_get(token, "normalized")),
                                   .single_word = json_is_true(json_object_get(token, "single_word")),
                                   .strips_before = json_is_true(json_object_get(token, "lstrip")),
                                   .strips_behind = json_is_true(json_object_get(token, "rstrip"))};
        if (found.special && json_object_set_new(r->special, content, json_true()) != 0)
            return stki_fail_memory(r->err, 0, "added tokens");
        status = stki_vocabulary_add_added(r->v, &found, r->err);
    }
    return status;
}

static bool is_off(const json_t *value) /* missing, null, false or "" */
{
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_string(value) && json_string_length(value) == 0);
}

static stk_status check_model(reading *r, const json_t *model)
{
    static const char *const not_known[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix"};
    const char *type = json_string_value(json_object_get(model, "type"));

    if (type ? strcmp(type, "BPE") != 0 : !json_object_get(model, "merges"))
        return refuse(r, "model.type", type ? STKI_TEXT("%.40s", type) : "none", "BPE");
    for (size_t i = 0; i < sizeof not_known / sizeof not_known[0]; i++)
        if (!is_off(json_object_get(model, not_known[i])))
            return refuse(r, STKI_TEXT("model.%s", not_known[i]), "a value", "null");
    if (r->v->by_characters && !json_is_true(json_object_get(model, "byte_fallback")))
        return refuse(r, "model", "neither a ByteLevel pre-tokenizer nor byte_fallback: characters would be lost",
                      "only one of them");
    return STK_OK;
}

static stk_status read_tokenizer(reading *r, const json_t *root)
{
    const json_t *model = json_object_get(root, "model"), *padding = json_object_get(root, "padding");
    bool bytes;
    stk_status status = stki_vocabulary_steps(root, r->v, &bytes, r->err);

    if (status != STK_OK)
        return status;
    r->v->by_characters = r->v->utf8_only = !bytes;
    if ((status = check_model(r, model)) != STK_OK)
        return status;
    if (!is_off(json_object_get(root, "truncation")))
        return refuse(r, "truncation", "a length to which ids are truncated",
                      "null, because the loader's options set the length");
    if (!is_off(padding) && json_is_object(json_object_get(padding, "strategy")))
        return refuse(r, "padding", "a fixed length", "null, because the loader's options set the length");
    r->special = json_object();
    if (!r->special)
        return stki_fail_memory(r->err, 0, "added tokens");
    if ((status = read_added(r, json_object_get(root, "added_tokens"), json_object_get(model, "vocab"))) != STK_OK ||
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
                            (stki_place){r->v->path, -1, -1, "only a vocab.json", "also its merges.txt, as `merges`"},
                            "vocabulary");
    status = stki_token_steps_add(
        &r->v->then, &(stki_token_step){.kind = STKI_TOKEN_SPLIT, .text = stki_token_pattern("gpt2")}, r->err);
    if (status != STK_OK || (status = read_vocabulary(r, root)) != STK_OK ||
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
        status = merges
                     ? stki_fail_at(err, STK_E_CONFIG,
                                    (stki_place){v->path, -1, -1, "a tokenizer.json and `merges`", "only one of them"},
                                    "vocabulary")
                     : read_tokenizer(r, root);
    else
        status = read_pair_of_files(r, root, merges, merges_length);
    json_decref(r->special);
    json_decref(root);
    stki_free(r);
    return status;
}
