/* vocabulary.c: see vocabulary.h. There are two hash tables with open addressing, tokens by their bytes and ranks of
 * pairs, both at most half full. Entries include part of the hash or the whole key, so that failed lookups, which are
 * the majority while encoding, rarely need a second memory access. */
#include "vocabulary.h"
#include "allocate.h"
#include "checked.h"
#include "digest.h"
#include "error.h"
#include "grow.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { MOST_TOKENS = 1 << 24, MOST_PAIRS = 1 << 26 };

static uint64_t hash_bytes(const uint8_t *bytes, uint32_t length)
{
    return XXH3_64bits(bytes, length);
}

static uint64_t hash_pair(uint64_t key)
{
    key *= UINT64_C(0x9E3779B97F4A7C15);
    return key ^ key >> 29;
}

/* ---- lookups ---- */

const stki_token *stki_vocabulary_find(const stki_vocabulary *v, const uint8_t *bytes, uint32_t length)
{
    const uint64_t hash = hash_bytes(bytes, length);
    const uint32_t tag = (uint32_t)(hash >> 32);

    for (uint32_t at = (uint32_t)hash & v->mask; v->table[at].token; at = (at + 1) & v->mask) {
        const stki_token *token = &v->tokens[v->table[at].token - 1];

        if (v->table[at].tag == tag && token->length == length && memcmp(v->bytes + token->at, bytes, length) == 0)
            return token;
    }
    return NULL;
}

static const stki_token_pair *find_pair(const stki_vocabulary *v, uint32_t left, uint32_t right)
{
    const uint64_t key = (uint64_t)left << 32 | right;

    for (uint64_t at = hash_pair(key) & v->pair_mask; v->pairs[at].key != UINT64_MAX; at = (at + 1) & v->pair_mask)
        if (v->pairs[at].key == key)
            return &v->pairs[at];
    return NULL;
}

uint32_t stki_vocabulary_rank(const stki_vocabulary *v, const uint8_t *bytes, uint32_t length, uint32_t left,
                              uint32_t right)
{
    if (!v->by_characters && length > v->longest)
        return STKI_NO_TOKEN;
    if (!v->by_characters && length == 2)
        return v->two_bytes[bytes[0] << 8 | bytes[1]];
    if (v->by_pairs) {
        const stki_token_pair *pair = find_pair(v, left, right);

        return pair ? pair->rank : STKI_NO_TOKEN;
    }
    const stki_token *token = stki_vocabulary_find(v, bytes, length);

    return token ? token->id : STKI_NO_TOKEN;
}

int64_t stki_vocabulary_named(const stki_vocabulary *v, const char *name)
{
    const stki_token *token;

    for (int i = 0; i < v->added_count; i++)
        if (strcmp(v->added[i].name, name) == 0)
            return v->added[i].id;
    token = strlen(name) <= v->longest ? stki_vocabulary_find(v, (const uint8_t *)name, (uint32_t)strlen(name)) : NULL;
    return token ? (int64_t)token->id : -1;
}

/* ---- tokens ---- */

static stk_status check_id(const stki_vocabulary *v, int64_t id, stk_error *err)
{
    if (id < 0 || id > STKI_TOKEN_LARGEST)
        return stki_fail_at(
            err, STK_E_CORRUPT,
            (stki_place){v->path, -1, -1, STKI_TEXT("%" PRId64, id), STKI_TEXT("0 to %d", STKI_TOKEN_LARGEST)},
            "id of a token");
    return STK_OK;
}

stk_status stki_vocabulary_add(stki_vocabulary *v, const uint8_t *bytes, int64_t length, int64_t id, stk_error *err)
{
    stk_status status = check_id(v, id, err);

    if (status != STK_OK)
        return status;
    if (length < 1 || length > STKI_TOKEN_MOST_BYTES || v->count >= MOST_TOKENS)
        return stki_fail_at(
            err, STK_E_LIMIT,
            (stki_place){v->path, -1, -1, STKI_TEXT("%" PRId64 " bytes in token %" PRId64, length, v->count),
                         STKI_TEXT("1 to %d bytes, and at most %d tokens", STKI_TOKEN_MOST_BYTES, MOST_TOKENS)},
            "vocabulary");
    status = stki_grow(&v->bytes, &v->byte_room, v->byte_count + length, 1, "a vocabulary", err);
    if (status == STK_OK)
        status = stki_grow(&v->tokens, &v->room, v->count + 1, sizeof *v->tokens, "a vocabulary", err);
    if (status != STK_OK)
        return status;
    memcpy(v->bytes + v->byte_count, bytes, (size_t)length);
    v->tokens[v->count++] =
        (stki_token){.at = (uint32_t)v->byte_count, .length = (uint32_t)length, .id = (uint32_t)id, .alone = true};
    v->byte_count += length;
    v->longest = (uint32_t)length > v->longest ? (uint32_t)length : v->longest;
    v->largest = (uint32_t)id > v->largest ? (uint32_t)id : v->largest;
    return STK_OK;
}

stk_status stki_vocabulary_reserve_id(stki_vocabulary *v, int64_t id, stk_error *err)
{
    const stk_status status = check_id(v, id, err);

    if (status == STK_OK)
        v->largest = (uint32_t)id > v->largest ? (uint32_t)id : v->largest;
    return status;
}

stk_status stki_vocabulary_add_byte(stki_vocabulary *v, uint8_t byte, int64_t id, stk_error *err)
{
    const stk_status status = stki_vocabulary_reserve_id(v, id, err);

    if (status == STK_OK)
        v->of_byte[byte] = (uint32_t)id;
    return status;
}

stk_status stki_vocabulary_add_added(stki_vocabulary *v, const stki_added_token *token, stk_error *err)
{
    stki_added_token *grown;
    stk_status status = stki_vocabulary_reserve_id(v, token->id, err);

    if (status != STK_OK)
        return status;
    grown = stki_resize(v->added, (v->added_count + 1) * (int64_t)sizeof *grown);
    if (!grown)
        return stki_fail_memory(err, (v->added_count + 1) * (int64_t)sizeof *grown, "added tokens");
    v->added = grown;
    v->added[v->added_count] = *token;
    v->added[v->added_count].name = stki_strdup(token->name);
    if (!v->added[v->added_count].name)
        return stki_fail_memory(err, (int64_t)strlen(token->name), "added tokens");
    v->added_count++;
    return STK_OK;
}

static stk_status make_table(stki_vocabulary *v, stk_error *err)
{
    int64_t places = 1024;

    while (places < 2 * v->count)
        places *= 2;
    v->table = stki_zalloc_array(places, sizeof *v->table);
    if (!v->table)
        return stki_fail_memory(err, places * (int64_t)sizeof *v->table, "a vocabulary");
    v->mask = (uint32_t)(places - 1);
    for (int64_t i = 0; i < v->count; i++) {
        const stki_token *token = &v->tokens[i];
        const uint8_t *bytes = v->bytes + token->at;
        const uint64_t hash = hash_bytes(bytes, token->length);
        uint32_t at = (uint32_t)hash & v->mask;
        const stki_token *same = stki_vocabulary_find(v, bytes, token->length);

        if (same)
            return stki_fail_at(
                err, STK_E_CORRUPT,
                (stki_place){v->path, -1, -1, STKI_TEXT("ids %" PRIu32 " and %" PRIu32, same->id, token->id), "one id"},
                "two tokens have the same bytes");
        while (v->table[at].token)
            at = (at + 1) & v->mask;
        v->table[at] = (struct stki_token_place){(uint32_t)(hash >> 32), (uint32_t)i + 1};
    }
    return STK_OK;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static stk_status check_ids_differ(const stki_vocabulary *v, stk_error *err)
{
    uint32_t *ids = stki_zalloc_array(v->count ? v->count : 1, sizeof *ids);
    stk_status status = STK_OK;

    if (!ids)
        return stki_fail_memory(err, v->count * (int64_t)sizeof *ids, "a vocabulary");
    for (int64_t i = 0; i < v->count; i++)
        ids[i] = v->tokens[i].id;
    qsort(ids, (size_t)v->count, sizeof *ids, by_number);
    for (int64_t i = 1; i < v->count && status == STK_OK; i++)
        if (ids[i] == ids[i - 1])
            status = stki_fail_at(
                err, STK_E_CORRUPT,
                (stki_place){v->path, -1, -1, STKI_TEXT("id %" PRIu32 " twice", ids[i]), "one token per id"},
                "vocabulary");
    stki_free(ids);
    return status;
}

stk_status stki_vocabulary_finish(stki_vocabulary *v, stk_error *err)
{
    stk_status status = make_table(v, err);

    if (status == STK_OK)
        status = check_ids_differ(v, err);
    for (int b = 0; b < 256 && status == STK_OK; b++) {
        const uint8_t byte = (uint8_t)b;
        const stki_token *token = v->by_characters ? NULL : stki_vocabulary_find(v, &byte, 1);

        if (token)
            v->of_byte[b] = token->id;
        if (v->of_byte[b] != STKI_NO_TOKEN)
            continue;
        v->utf8_only = true;
        if (b != 0xc0 && b != 0xc1 && b < 0xf5)
            return stki_fail_at(err, STK_E_UNSUPPORTED,
                                (stki_place){v->path, -1, -1, STKI_TEXT("no token for byte 0x%02x", b),
                                             "a byte-level vocabulary, in which each byte of UTF-8 is a token"},
                                "vocabulary");
    }
    return status;
}

/* ---- pairs ---- */

stk_status stki_vocabulary_pairs(stki_vocabulary *v, int64_t count, stk_error *err)
{
    int64_t places = 1024;

    if (count > MOST_PAIRS)
        return stki_fail_at(
            err, STK_E_LIMIT,
            (stki_place){v->path, -1, -1, STKI_TEXT("%" PRId64, count), STKI_TEXT("at most %d", MOST_PAIRS)}, "merges");
    while (places < 2 * count)
        places *= 2;
    v->by_pairs = true;
    v->pairs = stki_zalloc_array(places, sizeof *v->pairs);
    v->joined = stki_zalloc_array(count ? count : 1, sizeof *v->joined);
    if (!v->pairs || !v->joined)
        return stki_fail_memory(err, places * (int64_t)sizeof *v->pairs, "merges");
    memset(v->pairs, 0xff, (size_t)places * sizeof *v->pairs);
    v->pair_mask = (uint64_t)places - 1;
    return STK_OK;
}

static const stki_token *member(const stki_vocabulary *v, const uint8_t *bytes, int64_t length)
{
    return length < 1 || length > v->longest ? NULL : stki_vocabulary_find(v, bytes, (uint32_t)length);
}

stk_status stki_vocabulary_add_pair(stki_vocabulary *v, const uint8_t *left, int64_t left_bytes, const uint8_t *right,
                                    int64_t right_bytes, int64_t line, stk_error *err)
{
    const stki_token *a = member(v, left, left_bytes), *b = member(v, right, right_bytes), *both = NULL;
    uint8_t *together;
    uint64_t at;

    if (a && b && left_bytes + right_bytes <= v->longest) {
        together = stki_zalloc(left_bytes + right_bytes);
        if (!together)
            return stki_fail_memory(err, left_bytes + right_bytes, "merges");
        memcpy(together, left, (size_t)left_bytes);
        memcpy(together + left_bytes, right, (size_t)right_bytes);
        both = stki_vocabulary_find(v, together, (uint32_t)(left_bytes + right_bytes));
        stki_free(together);
    }
    if (!both)
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){v->path, -1, -1, "one of its parts, or their concatenation, is not a token",
                                         "tokens of the vocabulary"},
                            "merge %" PRId64, line);
    v->joined[v->pair_count] = both->id;
    if (find_pair(v, a->id, b->id)) { /* of duplicates the first one wins, but later pairs keep their rank */
        v->pair_count++;
        return STK_OK;
    }
    at = hash_pair((uint64_t)a->id << 32 | b->id) & v->pair_mask;
    while (v->pairs[at].key != UINT64_MAX)
        at = (at + 1) & v->pair_mask;
    v->pairs[at] = (stki_token_pair){(uint64_t)a->id << 32 | b->id, (uint32_t)v->pair_count, both->id};
    v->pair_count++;
    return STK_OK;
}

stk_status stki_vocabulary_two_bytes(stki_vocabulary *v, stk_error *err)
{
    v->two_bytes = stki_zalloc_array(65536, sizeof *v->two_bytes);
    if (!v->two_bytes)
        return stki_fail_memory(err, 65536 * (int64_t)sizeof *v->two_bytes, "a vocabulary");
    for (int i = 0; i < 65536; i++) {
        const uint8_t two[2] = {(uint8_t)(i >> 8), (uint8_t)i};
        const stki_token_pair *pair = v->by_pairs ? find_pair(v, v->of_byte[two[0]], v->of_byte[two[1]]) : NULL;
        const stki_token *token = v->by_pairs ? NULL : stki_vocabulary_find(v, two, 2);

        v->two_bytes[i] = pair ? pair->rank : token ? token->id : STKI_NO_TOKEN;
    }
    return STK_OK;
}

/* ---- create and destroy ---- */

stk_status stki_vocabulary_create(const char *path, stki_vocabulary **out, stk_error *err)
{
    stki_vocabulary *v = stki_zalloc(sizeof *v);

    if (!v)
        return stki_fail_memory(err, (int64_t)sizeof *v, "a vocabulary");
    v->path = stki_strdup(path);
    if (!v->path) {
        stki_free(v);
        return stki_fail_memory(err, (int64_t)strlen(path), "a vocabulary");
    }
    memset(v->of_byte, 0xff, sizeof v->of_byte);
    *out = v;
    return STK_OK;
}

void stki_vocabulary_destroy(stki_vocabulary *v)
{
    if (!v)
        return;
    for (int i = 0; i < v->added_count; i++)
        stki_free((void *)(uintptr_t)v->added[i].name);
    stki_free(v->added);
    stki_token_steps_fini(&v->first);
    stki_token_steps_fini(&v->then);
    stki_free(v->path);
    stki_free(v->bytes);
    stki_free(v->tokens);
    stki_free(v->table);
    stki_free(v->two_bytes);
    stki_free(v->pairs);
    stki_free(v->joined);
    stki_free(v);
}
