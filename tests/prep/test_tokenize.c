/* Tests of tokenizing texts: the ids of tiktoken and of tokenizers for a corpus of difficult texts, joining against its
 * definition, rejected vocabularies, rows of a job's field, and failing allocations. */
#include "allocate.h"
#include "faults.h"
#include "finish.h"
#include "io_files.h"

#include "stk_test.h"
#include "test_random.h"
#include "token_join.h"
#include "token_normalize.h"
#include "token_split.h"
#include "tokenize.h"

static const char *golden(const char *name)
{
    static char paths[16][512];
    static int next;
    char *path = paths[next++ % 16];

    snprintf(path, sizeof paths[0], "%s/prep/goldens/%s", STKT_TESTS_DIR, name);
    return path;
}

static char *read_file(const char *path, int64_t *bytes)
{
    FILE *from = fopen(path, "rb");
    char *text = malloc(1 << 20);

    assert_non_null(from);
    *bytes = (int64_t)fread(text, 1, 1 << 20, from);
    assert_int_equal(fclose(from), 0);
    return text;
}

/* ---- against the other libraries ---- */

static void check_case(const stki_tokenizer_opts *opts, const char *texts, const char *name)
{
    char file[64];
    int64_t bytes, id_bytes, at = 0, wanted_at = 0, document = 0;
    char *corpus = read_file(golden(texts), &bytes), *wanted_text;
    const uint16_t *wanted;
    stki_tokenizer *tokenizer;
    stki_token_scratch *scratch;
    stk_error err;

    snprintf(file, sizeof file, "tokens_%s.ids", name);
    wanted_text = read_file(golden(file), &id_bytes);
    wanted = (const uint16_t *)(const void *)wanted_text;
    assert_ok(stki_tokenizer_open(opts, &tokenizer, &err));
    assert_ok(stki_token_scratch_create(tokenizer, &scratch, &err));
    for (; at < bytes; document++) {
        const int64_t length = (int64_t)strlen(corpus + at), expected = wanted[wanted_at++];
        const uint32_t *ids;
        int64_t count;

        assert_ok(stki_tokenize(tokenizer, scratch, corpus + at, length, &ids, &count, &err));
        for (int64_t i = 0; i < count && i < expected; i++)
            if (ids[i] != wanted[wanted_at + i])
                fail_msg("%s: document %d, token %d: found %u, expected %u", name, (int)document, (int)i, ids[i],
                         wanted[wanted_at + i]);
        if (count != expected)
            fail_msg("%s: document %d: found %d tokens, expected %d", name, (int)document, (int)count, (int)expected);
        wanted_at += expected;
        at += length + 1;
    }
    assert_int_equal(wanted_at * 2, id_bytes);
    assert_true(document > 20);
    stki_token_scratch_destroy(scratch);
    stki_tokenizer_destroy(tokenizer);
    free(corpus);
    free(wanted_text);
}

static void as_tiktoken(void **unused)
{
    const char *file = golden("tokens_small.tiktoken");

    (void)unused;
    check_case(&(stki_tokenizer_opts){.vocabulary = file, .split = "gpt2"}, "tokens_corpus.txt", "tiktoken_gpt2");
    check_case(&(stki_tokenizer_opts){.vocabulary = file, .split = "cl100k"}, "tokens_corpus.txt", "tiktoken_cl100k");
    check_case(&(stki_tokenizer_opts){.vocabulary = file, .split = "o200k"}, "tokens_corpus.txt", "tiktoken_o200k");
    check_case(&(stki_tokenizer_opts){.vocabulary = file, .split = "none"}, "tokens_corpus.txt", "tiktoken_none");
    check_case(&(stki_tokenizer_opts){.vocabulary = file, .pattern = "(?s:.+)"}, "tokens_corpus.txt", "tiktoken_none");
}

static void as_tokenizers(void **unused)
{
    const char *corpus = "tokens_corpus.txt";

    (void)unused;
    check_case(&(stki_tokenizer_opts){.vocabulary = golden("tokens_gpt2.json")}, corpus, "gpt2");
    check_case(&(stki_tokenizer_opts){.vocabulary = golden("tokens_split.json")}, corpus, "split");
    check_case(&(stki_tokenizer_opts){.vocabulary = golden("tokens_vocab.json"), .merges = golden("tokens_merges.txt")},
               corpus, "gpt2");
}

/* The steps of published models, inserted into a small vocabulary. */
static void as_published_models(void **unused)
{
    json_t *cases = json_load_file(golden("tokens_cases.json"), 0, NULL), *one;
    size_t i;

    (void)unused;
    assert_true(json_array_size(cases) >= 14);
    json_array_foreach(cases, i, one)
    {
        static const char *const keys[] = {"normalizer", "pre_tokenizer", "added_tokens"};
        const char *path = stkt_path("tokenizer.json");
        json_t *full = json_load_file(golden(json_string_value(json_object_get(one, "base"))), 0, NULL);

        assert_non_null(full);
        for (int k = 0; k < 3; k++)
            assert_int_equal(json_object_set(full, keys[k], json_object_get(one, keys[k])), 0);
        assert_int_equal(
            json_object_set(json_object_get(full, "model"), "ignore_merges", json_object_get(one, "ignore_merges")), 0);
        assert_int_equal(json_dump_file(full, path, 0), 0);
        check_case(&(stki_tokenizer_opts){.vocabulary = path, .special = json_is_true(json_object_get(one, "special"))},
                   "tokens_steps.txt", json_string_value(json_object_get(one, "name")));
        json_decref(full);
    }
    json_decref(cases);
}

/* ---- joining against its definition ---- */

/* Repeatedly joins the leftmost neighbors with the lowest rank, searching from the start each time. */
static int64_t join_plainly(const stki_vocabulary *v, const uint8_t *bytes, int length, uint32_t *ids)
{
    int start[512], count = length;

    for (int i = 0; i <= length; i++)
        start[i] = i;
    for (int i = 0; i < length; i++)
        ids[i] = stki_vocabulary_find(v, bytes + i, 1)->id;
    for (;;) {
        uint32_t best = STKI_NO_TOKEN;
        int at = -1;

        for (int i = 0; i + 1 < count; i++) {
            uint32_t rank = STKI_NO_TOKEN;

            if (v->by_pairs) {
                for (uint64_t k = 0; k <= v->pair_mask; k++)
                    if (v->pairs[k].key == ((uint64_t)ids[i] << 32 | ids[i + 1]))
                        rank = v->pairs[k].rank;
            } else {
                for (int64_t k = 0; k < v->count; k++)
                    if (v->tokens[k].length == (uint32_t)(start[i + 2] - start[i]) &&
                        memcmp(v->bytes + v->tokens[k].at, bytes + start[i], v->tokens[k].length) == 0)
                        rank = v->tokens[k].id;
            }
            if (rank < best)
                best = rank, at = i;
        }
        if (at < 0)
            return count;
        ids[at] = v->by_pairs ? v->joined[best] : best;
        count--;
        for (int i = at + 1; i < count; i++)
            ids[i] = ids[i + 1];
        for (int i = at + 1; i <= count; i++)
            start[i] = start[i + 1];
    }
}

static void joins_as_defined(void **unused)
{
    static const char *const files[] = {"tokens_small.tiktoken", "tokens_gpt2.json"};
    stki_token_joiner joiner = {0};
    uint64_t state = 9;
    stk_error err;

    (void)unused;
    for (int f = 0; f < 2; f++) {
        stki_vocabulary *v;

        assert_ok(stki_vocabulary_open(golden(files[f]), NULL, &v, &err));
        assert_int_equal(v->by_pairs, f == 1);
        for (int round = 0; round < 60; round++) {
            const int length = (int)stkt_random_in(&state, 1, round < 30 ? 110 : 220);
            const uint8_t first = round % 3 == 0 ? 'e' : ' ';
            uint8_t bytes[256];
            uint32_t wanted[256];
            const uint32_t *ids;
            int64_t count, expected;

            for (int i = 0; i < length; i++)
                bytes[i] = (uint8_t)(first + stkt_random_in(&state, 0, round % 2 ? 4 : 90));
            expected = join_plainly(v, bytes, length, wanted);
            assert_ok(stki_token_join(v, &joiner, bytes, length, &ids, &count, &err));
            assert_int_equal(count, expected);
            assert_memory_equal(ids, wanted, (size_t)count * sizeof *ids);
        }
        stki_vocabulary_destroy(v);
    }
    stki_token_joiner_fini(&joiner);
}

/* ---- rejected vocabularies and patterns ---- */

/* Lines for all 256 bytes, followed by `then`. */
static char *all_bytes(const char *then)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc(16384), *to = text;

    for (int b = 0; b < 256; b++)
        to += sprintf(to, "%c%c== %d\n", digits[b >> 2], digits[(b & 3) << 4], b);
    strcpy(to, then);
    return text;
}

/* A line of a .tiktoken file: `first` followed by this number of letters a. */
static size_t put_token(char *to, const char *first, int letters, int id)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char token[128], *at = to;
    const int length = snprintf(token, sizeof token, "%s%.*s", first, letters,
                                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");

    for (int i = 0; i < length; i += 3) {
        const int left = length - i,
                  bits = token[i] << 16 | (left > 1 ? token[i + 1] << 8 : 0) | (left > 2 ? token[i + 2] : 0);

        for (int k = 0; k < 4; k++)
            *at++ = k <= left ? digits[bits >> (18 - 6 * k) & 63] : '=';
    }
    return (size_t)(at - to) + (size_t)sprintf(at, " %d\n", id);
}

/* A c joins the letters a after it one by one. Each time, the preceding b could also join them, but with a higher rank,
 * and so could two letters a. The queue of candidates therefore exceeds its capacity and must be cleaned up. */
static void stale_candidates_are_cleaned_up(void **unused)
{
    enum { LENGTH = 480, LONGEST = 30 };
    char lines[8000], *text;
    stki_token_joiner joiner = {0};
    stki_vocabulary *v;
    uint64_t state = 5;
    size_t used = 0;
    stk_error err;

    (void)unused;
    for (int k = 1; k <= LONGEST; k++)
        used += put_token(lines + used, "c", k, 400 - k);
    for (int k = 0; k <= LONGEST; k++)
        used += put_token(lines + used, "bc", k, 500 + k);
    used += put_token(lines + used, "", 2, 900);
    text = all_bytes(lines);
    stkt_write_file(stkt_path("letters.tiktoken"), text, strlen(text));
    free(text);
    assert_ok(stki_vocabulary_open(stkt_path("letters.tiktoken"), NULL, &v, &err));
    for (int round = 0; round < 12; round++) {
        uint8_t bytes[LENGTH];
        uint32_t wanted[LENGTH];
        const uint32_t *ids;
        int64_t count, expected;

        for (int i = 0; i < LENGTH; i++) {
            const int64_t within = round < 3 ? i % (LONGEST - round) : stkt_random_in(&state, 0, 3 * round);

            bytes[i] = within < 2 ? (uint8_t) "bc"[within] : 'a';
        }
        expected = join_plainly(v, bytes, LENGTH, wanted);
        assert_ok(stki_token_join(v, &joiner, bytes, LENGTH, &ids, &count, &err));
        assert_int_equal(count, expected);
        assert_memory_equal(ids, wanted, (size_t)count * sizeof *ids);
    }
    stki_vocabulary_destroy(v);
    stki_token_joiner_fini(&joiner);
}

static void tiktoken_files_that_are_refused(void **unused)
{
    static const struct {
        const char *then, *says;
        stk_status status;
    } wrong[] = {
        {"QUI=\n", "line 257", STK_E_CORRUPT},
        {"QUI= 256 x\n", "line 257", STK_E_CORRUPT},
        {"QUI= -1\n", "line 257", STK_E_CORRUPT},
        {"QUI= 0256\n", "line 257", STK_E_CORRUPT},
        {"QUI= 2147483647\n", "id of a token", STK_E_CORRUPT},
        {"QUI= 99999999999\n", "line 257", STK_E_CORRUPT},
        {"QUJ= 256\n", "line 257", STK_E_CORRUPT}, /* bits after the end */
        {"QU=I 256\n", "line 257", STK_E_CORRUPT},
        {"QUI 256\n", "line 257", STK_E_CORRUPT},
        {"QU!= 256\n", "line 257", STK_E_CORRUPT},
        {"==== 256\n", "line 257", STK_E_CORRUPT},
        {" 256\n", "line 257", STK_E_CORRUPT},
        {"QUI= 256\nQUI= 257\n", "two tokens", STK_E_CORRUPT},
        {"QUI= 65\n", "id 65 twice", STK_E_CORRUPT},
    };
    /* the last line is an empty token, as in Whisper's files */
    char *text = all_bytes("QUI= 256\r\n\nQUJD 300\n= 301\n");
    stki_vocabulary *v;
    stk_error err;

    (void)unused;
    assert_ok(stki_vocabulary_read("v", text, (int64_t)strlen(text), NULL, 0, &v, &err));
    assert_int_equal(v->count, 258);
    assert_int_equal(v->largest, 301);
    assert_int_equal(stki_vocabulary_find(v, (const uint8_t *)"ABC", 3)->id, 300);
    assert_null(stki_vocabulary_find(v, (const uint8_t *)"BC", 2));
    stki_vocabulary_destroy(v);
    *strstr(text, "/w== 255") = '\0'; /* the last byte is missing, which never occurs in UTF-8 */
    assert_ok(stki_vocabulary_read("v", text, (int64_t)strlen(text), NULL, 0, &v, &err));
    assert_true(v->utf8_only);
    stki_vocabulary_destroy(v);
    *strstr(text, "9A== 244") = '\0'; /* 0xf4 */
    assert_status(stki_vocabulary_read("v", text, (int64_t)strlen(text), NULL, 0, &v, &err), STK_E_UNSUPPORTED);
    assert_says("no token for byte 0xf4");
    assert_status(stki_vocabulary_read("v", "", 0, NULL, 0, &v, &err), STK_E_UNSUPPORTED);
    free(text);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        text = all_bytes(wrong[i].then);
        assert_status(stki_vocabulary_read("v", text, (int64_t)strlen(text), NULL, 0, &v, &err), wrong[i].status);
        assert_says(wrong[i].says);
        assert_says("v: ");
        free(text);
    }
}

/* Reads a tokenizer.json in which `from` is replaced by `to`. */
static stk_status read_changed(const char *file, const char *from, const char *to, stki_vocabulary **v, stk_error *err)
{
    int64_t bytes;
    char *text = read_file(golden(file), &bytes), *changed = calloc(1, (size_t)bytes + 400), *at;
    stk_status status;

    text[bytes] = '\0';
    at = strstr(text, from);
    assert_non_null(at);
    sprintf(changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    status = stki_vocabulary_read("t.json", changed, (int64_t)strlen(changed), NULL, 0, v, err);
    free(text);
    free(changed);
    return status;
}

static void tokenizer_files_that_are_refused(void **unused)
{
    static const struct {
        const char *file, *from, *to, *says;
        stk_status status;
    } wrong[] = {
        {"tokens_gpt2.json", "\"BPE\"", "\"Unigram\"", "Unigram", STK_E_UNSUPPORTED},
        {"tokens_gpt2.json", "\"dropout\":null", "\"dropout\":0.1", "dropout", STK_E_UNSUPPORTED},
        {"tokens_characters.json", "\"byte_fallback\":true", "\"byte_fallback\":false", "byte_fallback",
         STK_E_UNSUPPORTED},
        {"tokens_characters.json", "\"<0x41>\":", "\"<0x4100>\":", "no token for byte 0x41", STK_E_UNSUPPORTED},
        {"tokens_gpt2.json", "\"end_of_word_suffix\":null", "\"end_of_word_suffix\":\"</w>\"", "end_of_word_suffix",
         STK_E_UNSUPPORTED},
        {"tokens_gpt2.json", "\"normalizer\":null", "\"normalizer\":{\"type\":\"Lowercase\"}", "Lowercase",
         STK_E_UNSUPPORTED},
        {"tokens_gpt2.json", "\"normalizer\":null",
         "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a\"},\"content\":\"b\"}", "String",
         STK_E_UNSUPPORTED},
        {"tokens_gpt2.json", "\"truncation\":null", "\"truncation\":{\"max_length\":512}", "truncation",
         STK_E_UNSUPPORTED},
        {"tokens_gpt2.json", "\"id\":0", "\"id\":7", "id 7", STK_E_CORRUPT}, /* the vocabulary says 0 */
        {"tokens_gpt2.json", "\"ByteLevel\"", "\"BertPreTokenizer\"", "BertPreTokenizer", STK_E_UNSUPPORTED},
        {"tokens_gpt2.json", "\"ByteLevel\"", "\"Metaspace\"", "replacement", STK_E_UNSUPPORTED},
        {"tokens_characters.json",
         "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":"
         "\"always\"",
         "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"\"},"
         "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":\"first\"",
         "prepend_scheme first", STK_E_UNSUPPORTED},
        {"tokens_characters.json",
         "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":"
         "\"always\",\"split\":true}",
         "\"normalizer\":{\"type\":\"NFKC\"},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["
         "{\"type\":\"Digits\",\"individual_digits\":true},"
         "{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":\"first\",\"split\":true}]}",
         "prepend_scheme first", STK_E_UNSUPPORTED},
        {"tokens_split.json", "\"Isolated\"", "\"Doubled\"", "Doubled", STK_E_UNSUPPORTED},
        {"tokens_split.json", "\"pretokenizers\":[", "\"pretokenizers\":[{\"type\":\"ByteLevel\"},",
         "Split after ByteLevel", STK_E_UNSUPPORTED},
        {"tokens_gpt2.json", "\"vocab\":{", "\"vocab\":{\"xyzzyq\":1,", "id 1 twice", STK_E_CORRUPT},
        {"tokens_gpt2.json", "\"vocab\":{", "\"vocab\":{\"xyzzyq\":-1,", "id of a token", STK_E_CORRUPT},
        {"tokens_gpt2.json", "\"vocab\":{", "\"vocab\":{\"xyzzyq\":\"1\",", "integers as ids", STK_E_CORRUPT},
        {"tokens_gpt2.json", "\"vocab\":{", "\"vocab\":{\"<|endoftext|>\":1,", "line 1", STK_E_CORRUPT}, /* twice */
        {"tokens_gpt2.json", "\"merges\":[", "\"merges\":[[\"q\",\"zqzq\"],", "merge 0", STK_E_CORRUPT},
        {"tokens_gpt2.json", "\"merges\":[", "\"merges\":[[\"q\"],", "LEFT RIGHT", STK_E_CORRUPT},
        {"tokens_gpt2.json", "\"merges\":[", "\"merges\":[\"qq\",", "merge 0", STK_E_CORRUPT},
        /* zq is not a token */
        {"tokens_gpt2.json", "\"merges\":[", "\"merges\":[[\"z\",\"q\"],", "merge 0", STK_E_CORRUPT},
        {"tokens_gpt2.json", "\"merges\":[", "\"merges\":{", "JSON", STK_E_CORRUPT},
    };
    stki_vocabulary *v;
    stk_error err;

    (void)unused;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        memset(&err, 0, sizeof err);
        if (read_changed(wrong[i].file, wrong[i].from, wrong[i].to, &v, &err) != wrong[i].status)
            fail_msg("case %d: %s", (int)i, err.message);
        assert_says(wrong[i].says);
        assert_says("t.json: ");
    }
    assert_ok(read_changed("tokens_gpt2.json", "\"vocab\":{", "\"vocab\":{\"\\u2581x\":2000,", &v, &err));
    assert_int_equal(v->largest, 2000); /* it has an id, but no text contains it */
    stki_vocabulary_destroy(v);
    assert_ok(stki_vocabulary_open(golden("tokens_gpt2.json"), NULL, &v, &err));
    assert_int_equal(stki_vocabulary_named(v, "<|endoftext|>"), 0);
    assert_int_equal(stki_vocabulary_named(v, "<|other|>"), -1);
    stki_vocabulary_destroy(v);
    assert_ok(stki_vocabulary_open(golden("tokens_vocab.json"), golden("tokens_merges.txt"), &v, &err));
    assert_int_equal(stki_vocabulary_named(v, "<|endoftext|>"), 0); /* in this file it is an ordinary token */
    stki_vocabulary_destroy(v);
    assert_status(stki_vocabulary_open(golden("tokens_vocab.json"), NULL, &v, &err), STK_E_CONFIG);
    assert_says("merges.txt");
    assert_status(stki_vocabulary_open(golden("tokens_gpt2.json"), golden("tokens_merges.txt"), &v, &err),
                  STK_E_CONFIG);
    assert_status(stki_vocabulary_open(golden("tokens_small.tiktoken"), golden("tokens_merges.txt"), &v, &err),
                  STK_E_CONFIG);
    assert_status(stki_vocabulary_open(golden("no_such_file.json"), NULL, &v, &err), STK_E_NOT_FOUND);
}

/* Vowel signs of Tamil and other scripts combine with the preceding letter although their combining class is 0. */
static void marks_are_composed(void **unused)
{
    static const struct {
        const char *text, *nfc;
    } cases[] = {{"\u0bc6\u0bbe", "\u0bca"}, {"\u09c7\u09be", "\u09cb"}, {"\u1025\u102e", "\u1026"},
                 {"e\u0301", "\u00e9"},      {"\u0bca", "\u0bca"},       {"\u4e2d\u6587", "\u4e2d\u6587"}};
    stki_normalized normalized = {0};
    stk_error err;

    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint8_t *out;
        int64_t length;

        assert_ok(stki_token_normalize(STKI_TOKEN_NFC, &normalized, (const uint8_t *)cases[i].text,
                                       (int64_t)strlen(cases[i].text), &out, &length, &err));
        assert_int_equal(length, strlen(cases[i].nfc));
        assert_memory_equal(out, cases[i].nfc, (size_t)length);
    }
    stki_normalized_fini(&normalized);
}

static void steps_that_enlarge_the_text(void **unused)
{
    enum { LONGEST = 1024 };
    stki_token_steps steps = {0};
    char text[LONGEST + 2];
    stki_token_step nfkc = {.kind = STKI_TOKEN_NORMALIZE, .form = STKI_TOKEN_NFKC},
                    replace = {.kind = STKI_TOKEN_REPLACE, .from = "a", .text = text};
    stk_error err;

    (void)unused;
    memset(text, 'b', sizeof text);
    text[LONGEST + 1] = '\0';
    assert_status(stki_token_steps_add(&steps, &replace, &err), STK_E_LIMIT);
    replace.kind = STKI_TOKEN_PREFIX;
    assert_status(stki_token_steps_add(&steps, &replace, &err), STK_E_LIMIT);
    replace.kind = STKI_TOKEN_REPLACE;
    text[LONGEST] = '\0';
    for (int i = 0; i < 3; i++)
        assert_ok(stki_token_steps_add(&steps, &nfkc, &err));
    assert_ok(stki_token_steps_add(&steps, &replace, &err));
    assert_true(stki_token_steps_growth(&steps) == 11 * 11 * 11 * (LONGEST + 1));
    while (steps.count < STKI_TOKEN_MOST_STEPS)
        assert_ok(stki_token_steps_add(&steps, &replace, &err));
    assert_true(stki_token_steps_growth(&steps) == 1 << 24);
    stki_token_steps_fini(&steps);
}

static void invalid_options(void **unused)
{
    const char *file = golden("tokens_small.tiktoken");
    stki_tokenizer *tokenizer;
    stk_error err;

    (void)unused;
    assert_status(stki_tokenizer_open(&(stki_tokenizer_opts){.split = "gpt2"}, &tokenizer, &err), STK_E_CONFIG);
    assert_status(stki_tokenizer_open(&(stki_tokenizer_opts){.vocabulary = file}, &tokenizer, &err), STK_E_CONFIG);
    assert_says("cl100k");
    assert_status(stki_tokenizer_open(&(stki_tokenizer_opts){.vocabulary = file, .split = "gpt3"}, &tokenizer, &err),
                  STK_E_CONFIG);
    assert_says("gpt3");
    assert_says("o200k or none");
    assert_status(stki_tokenizer_open(&(stki_tokenizer_opts){.vocabulary = file, .split = "gpt2", .pattern = "."},
                                      &tokenizer, &err),
                  STK_E_CONFIG);
    assert_status(stki_tokenizer_open(&(stki_tokenizer_opts){.vocabulary = file, .pattern = "a(b"}, &tokenizer, &err),
                  STK_E_CONFIG);
    assert_says("at character 3");
}

/* Text that the pattern does not match is not lost. An expression that takes too long causes an error for the text. */
static void patterns_of_the_user(void **unused)
{
    const char *file = golden("tokens_small.tiktoken");
    char hard[200];
    stki_tokenizer *tokenizer;
    stki_token_scratch *scratch;
    const uint32_t *ids, *again;
    int64_t count;
    stk_error err;

    (void)unused;
    assert_ok(
        stki_tokenizer_open(&(stki_tokenizer_opts){.vocabulary = file, .pattern = "[a-z]+|x*"}, &tokenizer, &err));
    assert_ok(stki_token_scratch_create(tokenizer, &scratch, &err));
    assert_ok(stki_tokenize(tokenizer, scratch, "\xc3\xa4 1 zqj9", 9, &ids, &count, &err));
    assert_int_equal(count > 0, true);
    {
        const stki_vocabulary *v = stki_tokenizer_vocabulary(tokenizer);
        char text[64];
        uint32_t used = 0;

        for (int64_t i = 0; i < count; i++)
            for (int64_t t = 0; t < v->count; t++)
                if (v->tokens[t].id == ids[i]) {
                    memcpy(text + used, v->bytes + v->tokens[t].at, v->tokens[t].length);
                    used += v->tokens[t].length;
                }
        assert_int_equal(used, 9);
        assert_memory_equal(text, "\xc3\xa4 1 zqj9", 9);
    }
    assert_status(stki_tokenize(tokenizer, scratch, "abc\xff", 4, &again, &count, &err), STK_E_CORRUPT);
    assert_says("0xff at byte 3");
    stki_token_scratch_destroy(scratch);
    stki_tokenizer_destroy(tokenizer);

    memset(hard, 'a', sizeof hard);
    assert_ok(
        stki_tokenizer_open(&(stki_tokenizer_opts){.vocabulary = file, .pattern = "(a+a+)+[bc]"}, &tokenizer, &err));
    assert_ok(stki_token_scratch_create(tokenizer, &scratch, &err));
    assert_status(stki_tokenize(tokenizer, scratch, hard, sizeof hard, &again, &count, &err), STK_E_LIMIT);
    stki_token_scratch_destroy(scratch);
    stki_tokenizer_destroy(tokenizer);
}

static int64_t first_piece_of(const char *pattern, bool ruby, const char *text)
{
    stki_token_split *split;
    stki_token_finder *finder;
    int64_t end;
    bool matched;
    stk_error err;

    assert_ok(stki_token_split_create(pattern, ruby, &split, &err));
    assert_ok(stki_token_finder_create(split, &finder, &err));
    assert_ok(
        stki_token_split_next(split, finder, (const uint8_t *)text, (int64_t)strlen(text), 0, &end, &matched, &err));
    stki_token_finder_destroy(finder);
    stki_token_split_destroy(split);
    return end;
}

static int64_t first_piece(const char *pattern, const char *text)
{
    return first_piece_of(pattern, false, text);
}

/* White space is that of Unicode, and $ matches only at the end of the text. */
static void pieces(void **unused)
{
    stki_token_split *split;
    stk_error err;

    (void)unused;
    assert_int_equal(first_piece("xa$|.", "xa"), 2);
    assert_int_equal(first_piece("xa$|.", "xa\n"), 1);
    assert_int_equal(first_piece("\\s+", " \xe1\xa0\x8e"), 1); /* U+180E */
    assert_int_equal(first_piece("\\S+", "\xe1\xa0\x8e"), 3);
    assert_int_equal(first_piece("[^\\s]+", "a\xe1\xa0\x8e z"), 4);
    assert_int_equal(first_piece("[\\sa]+", "a\xc2\x85\xe3\x80\x80\xe2\x80\xa8z"), 9); /* U+0085, U+3000, U+2028 */
    assert_int_equal(first_piece("[]\\s]+", "] ]z"), 3);
    assert_int_equal(first_piece("[^]\\s]+", "ab]"), 2);
    assert_int_equal(first_piece("\\\\s+", "\\sss "), 4); /* a backslash, then s */
    assert_int_equal(first_piece("b", "aab"), 2);
    assert_int_equal(first_piece("b", "aa"), 2);
    assert_int_equal(first_piece("x*", "\xc3\xa4x"), 2);
    assert_int_equal(first_piece("\\w+", "a\xcc\x81_\xe2\x85\xa7 "), 7); /* a mark, a connector, U+2167 */
    assert_int_equal(first_piece("[^\\w]+", "-\xc2\xbd\xcc\x81"), 3);    /* U+00BD is not a letter, U+0301 is a mark */
    assert_int_equal(first_piece_of("xa$|.", true, "xa\n"), 2);          /* in Ruby, also at the end of a line */
    assert_int_equal(first_piece_of("[[:alpha:]1]+", true, "a1b-"), 3);
    assert_status(stki_token_split_create("[a-z&&[^b]]", true, &split, &err), STK_E_UNSUPPORTED);
    assert_status(stki_token_split_create("[a[bc]]", true, &split, &err), STK_E_UNSUPPORTED);
}

/* A token that no merge produces is found only if merges are ignored. */
static void tokens_that_no_merge_produces(void **unused)
{
    static const char *const files[] = {"tokens_gpt2.json", "tokens_split.json"};
    stki_vocabulary *v;
    const stki_token *token;
    stk_error err;

    (void)unused;
    for (int i = 0; i < 2; i++) {
        assert_ok(read_changed(files[i], "\"vocab\":{", "\"vocab\":{\"xqzj\":5000,", &v, &err));
        token = stki_vocabulary_find(v, (const uint8_t *)"xqzj", 4);
        assert_non_null(token);
        assert_int_equal(token->id, 5000);
        assert_int_equal(token->alone, i == 1);
        token = stki_vocabulary_find(v, (const uint8_t *)" the", 4);
        assert_non_null(token);
        assert_true(token->alone);
        stki_vocabulary_destroy(v);
    }
}

/* ---- rows of a field ---- */

static stk_status create(const char *text, stki_sink_field *out, stki_finisher **finisher, stk_error *err)
{
    static const stki_sink_field in = {.name = "text", .kind = STKI_SINK_BYTES, .dtype = STK_U8, .ndim = 1};
    char full[700];
    const char *at = strchr(text, '@'); /* the vocabulary */
    stki_document *document;
    stk_status status;

    snprintf(full, sizeof full, "%.*s%s%s", at ? (int)(at - text) : (int)strlen(text), text,
             at ? golden("tokens_gpt2.json") : "", at ? at + 1 : "");
    *out = in;
    status = stki_document_parse(full, (int64_t)strlen(full), "text", STKI_NO_INCLUDE, &document, err);
    if (status != STK_OK)
        return status;
    status = stki_finisher_find("tokens")->create(stki_document_root(document), &in, out, finisher, err);
    stki_document_destroy(document);
    return status;
}

static void check_row(const char *options, const char *text, stk_dtype dtype, int count, const uint32_t *wanted)
{
    stki_row row = {.bytes = text, .size = (int64_t)strlen(text), .dtype = STK_U8, .ndim = 1};
    stki_bytes to = {0};
    stki_sink_field out;
    stki_sink_value value;
    stki_finisher *finisher;
    void *scratch;
    json_t *about;
    stk_error err;

    row.shape[0] = row.size;
    assert_ok(create(options, &out, &finisher, &err));
    assert_int_equal(out.kind, STKI_SINK_RAGGED);
    assert_int_equal(out.dtype, dtype);
    assert_int_equal(out.ndim, 1);
    assert_ok(finisher->ops->scratch(finisher, &scratch, &err));
    for (int round = 0; round < 2; round++) {
        const int64_t at = to.used;

        assert_ok(finisher->ops->run(finisher, scratch, &row, &to, &value, &err));
        assert_null(value.bytes);
        assert_int_equal(value.length, count);
        assert_int_equal(value.size, count * stk_dtype_size(dtype));
        assert_int_equal(to.used, at + value.size);
        for (int i = 0; i < count; i++) {
            uint32_t wide;
            uint16_t narrow;

            memcpy(&wide, to.bytes + at + 4 * i * (dtype == STK_U32), 4);
            memcpy(&narrow, to.bytes + at + 2 * i, 2);
            assert_int_equal(dtype == STK_U32 ? wide : narrow, wanted[i]);
        }
    }
    about = finisher->ops->describe(finisher);
    assert_non_null(json_object_get(about, "vocabulary"));
    json_decref(about);
    finisher->ops->scratch_destroy(scratch);
    finisher->ops->destroy(finisher);
    stki_bytes_fini(&to);
}

static void rows_of_a_field(void **unused)
{
    static const struct {
        const char *options, *says;
    } wrong[] = {
        {"{encode: tokens, end: 65536, dtype: uint16}", "uint32: the largest id of bytes with begin and end is 65536"},
        {"{encode: tokens, dtype: int32}", "uint16 or uint32"},
        {"{encode: tokens, end: '<|endoftext|>'}", "the text of a token in bytes"},
        {"{encode: tokens, special_tokens: tokens}", "vocabulary"},
        {"{encode: tokens, end: -1}", "the id or the text of a token in"},
        {"{encode: tokens, end: 2147483647}", "an id of at most"},
        {"{encode: tokens, split: gpt2}", "vocabulary"},
        {"{encode: tokens, vocab: x}", "vocabulary"},
        {"{encode: tokens, vocabulary: '@', split: gpt4}", "output.fields.text: split: found gpt4"},
        {"{encode: tokens, vocabulary: '@', begin: '<|begin|>'}", "the text of a token in"},
    };
    stki_sink_field out, in = {.name = "x", .kind = STKI_SINK_ARRAY, .dtype = STK_F32, .ndim = 1, .shape = {4}};
    stki_finisher *finisher;
    stk_error err;

    (void)unused;
    check_row("{encode: tokens}", "aB\n", STK_U16, 3, (const uint32_t[]){'a', 'B', '\n'});
    check_row("{encode: tokens, end: 256}", "aB", STK_U16, 3, (const uint32_t[]){'a', 'B', 256});
    check_row("{encode: tokens, begin: 5, end: 70000}", "", STK_U32, 2, (const uint32_t[]){5, 70000});
    check_row("{encode: tokens, end: 256, dtype: uint32}", "x", STK_U32, 2, (const uint32_t[]){'x', 256});
    check_row("{encode: tokens}", "", STK_U16, 0, NULL);
    check_row("{encode: tokens, vocabulary: '@', end: '<|endoftext|>'}", "", STK_U16, 1, (const uint32_t[]){0});
    check_row("{encode: tokens, vocabulary: '@', special_tokens: tokens}", "<|endoftext|>", STK_U16, 1,
              (const uint32_t[]){0});
    /* a token given by its text */
    check_row("{encode: tokens, end: 'B'}", "a", STK_U16, 2, (const uint32_t[]){'a', 'B'});
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_status(create(wrong[i].options, &out, &finisher, &err), STK_E_CONFIG);
        assert_says(wrong[i].says);
    }
    assert_status(stki_finisher_find("tokens")->create(NULL, &in, &out, &finisher, &err), STK_E_CONFIG);
    assert_says("output.fields.x: ");
}

/* ---- memory that runs out ---- */

static stk_status open_and_use(const stki_tokenizer_opts *opts, stk_error *err)
{
    char text[400];
    stki_tokenizer *tokenizer;
    stki_token_scratch *scratch;
    const uint32_t *ids;
    int64_t count;
    stk_status status = stki_tokenizer_open(opts, &tokenizer, err);

    if (status != STK_OK)
        return status;
    memset(text, 'x', sizeof text);
    memcpy(text, "some words and then ", 20);
    status = stki_token_scratch_create(tokenizer, &scratch, err);
    if (status == STK_OK) {
        status = stki_tokenize(tokenizer, scratch, text, sizeof text, &ids, &count, err);
        stki_token_scratch_destroy(scratch);
    }
    stki_tokenizer_destroy(tokenizer);
    return status;
}

static void memory_runs_out(void **unused)
{
    const stki_tokenizer_opts opts[] = {
        {.vocabulary = golden("tokens_small.tiktoken"), .split = "cl100k"},
        {.vocabulary = golden("tokens_split.json")},
        {.vocabulary = NULL},
    };
    stk_error err;

    (void)unused;
    for (int i = 0; i < 3; i++) {
        int64_t failures = 0;

        /* Every merge of a list causes allocations, so only every 97th of these fails. All others fail one by one. */
        for (int64_t n = 1;; n += n > 60 && i == 1 ? 97 : 1) {
            stk_status status;

            stki_memory_fail_at(n);
            status = open_and_use(&opts[i], &err);
            stki_memory_fail_at(0);
            if (status == STK_OK)
                break;
            assert_int_equal(status, STK_E_MEMORY);
            failures++;
        }
        assert_true(failures > (i == 2 ? 5 : 15));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_tiktoken),
        cmocka_unit_test(as_tokenizers),
        cmocka_unit_test(as_published_models),
        cmocka_unit_test(joins_as_defined),
        cmocka_unit_test(stale_candidates_are_cleaned_up),
        cmocka_unit_test(tiktoken_files_that_are_refused),
        cmocka_unit_test(tokenizer_files_that_are_refused),
        cmocka_unit_test(marks_are_composed),
        cmocka_unit_test(steps_that_enlarge_the_text),
        cmocka_unit_test(invalid_options),
        cmocka_unit_test(patterns_of_the_user),
        cmocka_unit_test(pieces),
        cmocka_unit_test(tokens_that_no_merge_produces),
        cmocka_unit_test(rows_of_a_field),
        cmocka_unit_test(memory_runs_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
