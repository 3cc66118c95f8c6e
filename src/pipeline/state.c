/* state.c: the two forms of a saved position; see state.h. All numbers of the blob are little-endian:
 *
 *     0  8  "STKSTATE"                         80 64  hashes of the sections' lines, 4 bytes each
 *     8  4  version, 2                         (own part, if bit 0 of the flags is set)
 *    12  4  bytes of the whole blob           144 16  digest of the stream
 *    16  8  epoch                             160  8  the step over all epochs that it begins with
 *    24  8  step                              168  8  failed samples
 *    32  8  seed                              176  8  of these in this epoch
 *    40  8  positions of an epoch             184  8  rank (4), number of ranks (4)
 *    48  8  rows of a global batch            192  8  samples left out in this epoch
 *    56  4  order algorithm version              (end of the own part)
 *    60  2  kind of the order                   n  8  XXH3-64 of all bytes before it
 *    62  2  kind of last batch
 *    64  4  flags: bit 0, own part; bits 8 to 15,
 *           kind of digest
 *    68 12  zeros
 *
 * Version 1 had three 16-byte fingerprints instead of the sections, so later fields are 16 bytes earlier.
 */
#include "state.h"
#include "allocate.h"
#include "config.h"
#include "error.h"
#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { COMMON_BYTES = 144, OLD_COMMON_BYTES = 128, OWN_BYTES = 56, SUM_BYTES = 8, HAS_OWN = 1 };

#define MOST_FAILED (INT64_C(1) << 62) /* limit for restored counts, so that they cannot overflow later */

static const char magic[8] = "STKSTATE";

/* ---- sections ---- */

const char *const stki_state_sections[STKI_STATE_SECTIONS] = {
    "loader",    "split", "weights",   "dataset",    "files", "fields", "source", "window",
    "documents", "pack",  "synthetic", "transforms", "pad",   "ragged", "views",  "failures"};

static int find_section(const char *name, size_t length)
{
    for (int i = 0; i < STKI_STATE_SECTIONS; i++)
        if (strlen(stki_state_sections[i]) == length && memcmp(stki_state_sections[i], name, length) == 0)
            return i;
    return -1;
}

/* Returns the section with the name of the line. If there is none, returns the one named by the last suitable component
 * of the path of the line's section, such as "source" in "dataset.fields.NAME.source (csv)". */
static int section_of(const stki_printed *line)
{
    int found = line->failure ? STKI_STATE_FAILURES : find_section(line->name, strlen(line->name));
    size_t end = strcspn(line->section, " ");

    while (found < 0 && end > 0) {
        size_t from = end;

        while (from > 0 && line->section[from - 1] != '.')
            from--;
        found = find_section(line->section + from, end - from);
        end = from > 0 ? from - 1 : 0;
    }
    return found < 0 ? find_section("dataset", 7) : found;
}

void stki_state_hash(const stki_print *print, uint32_t sections[STKI_STATE_SECTIONS])
{
    stki_u128 hashes[STKI_STATE_SECTIONS] = {{0, 0}};

    for (int i = 0; i < print->count; i++) {
        stki_u128 *hash = &hashes[section_of(&print->lines[i])];

        stki_fingerprint_text(hash, print->lines[i].path);
        stki_fingerprint_text(hash, print->lines[i].value);
    }
    for (int i = 0; i < STKI_STATE_SECTIONS; i++)
        sections[i] = (uint32_t)(hashes[i].low ^ hashes[i].low >> 32);
}

/* ---- blob ---- */

static void put(uint8_t *to, uint64_t value, int bytes)
{
    value = htole64(value);
    memcpy(to, &value, (size_t)bytes);
}

static uint64_t get(const uint8_t *from, int bytes)
{
    uint64_t value = 0;

    memcpy(&value, from, (size_t)bytes);
    return le64toh(value);
}

static stki_u128 get_print(const uint8_t *from)
{
    return (stki_u128){get(from, 8), get(from + 8, 8)};
}

int stki_state_write(const stki_state *state, uint8_t to[STKI_STATE_BYTES])
{
    bool own = (state->parts & STKI_STATE_OWN) != 0;
    int bytes = COMMON_BYTES + (own ? OWN_BYTES : 0) + SUM_BYTES;

    memset(to, 0, STKI_STATE_BYTES);
    memcpy(to, magic, sizeof magic);
    put(to + 8, STKI_STATE_VERSION, 4);
    put(to + 12, (uint64_t)bytes, 4);
    put(to + 16, (uint64_t)state->epoch, 8);
    put(to + 24, (uint64_t)state->step, 8);
    put(to + 32, (uint64_t)state->seed, 8);
    put(to + 40, (uint64_t)state->positions, 8);
    put(to + 48, (uint64_t)state->global_batch, 8);
    put(to + 56, (uint64_t)state->order_version, 4);
    put(to + 60, (uint64_t)state->order, 2);
    put(to + 62, (uint64_t)state->last_batch, 2);
    put(to + 64, own ? HAS_OWN | (uint64_t)state->digest_kind << 8 : 0, 4);
    for (int i = 0; i < STKI_STATE_SECTIONS; i++)
        put(to + 80 + 4 * i, state->sections[i], 4);
    if (own) {
        uint8_t *mine = to + COMMON_BYTES;

        put(mine, state->digest.low, 8);
        put(mine + 8, state->digest.high, 8);
        put(mine + 16, (uint64_t)state->digest_from, 8);
        put(mine + 24, (uint64_t)state->failed, 8);
        put(mine + 32, (uint64_t)state->epoch_failed, 8);
        put(mine + 40, (uint64_t)state->rank, 4);
        put(mine + 44, (uint64_t)state->world_size, 4);
        put(mine + 48, (uint64_t)state->epoch_left_out, 8);
    }
    put(to + bytes - SUM_BYTES, stki_digest_64(to, bytes - SUM_BYTES), SUM_BYTES);
    return bytes;
}

static stk_status damaged(stk_error *err, const char *what, const char *found, const char *expected)
{
    return stki_fail_at(err, STK_E_CORRUPT, (stki_place){NULL, -1, -1, found, expected},
                        "the saved state is damaged: %s", what);
}

/* Rejects numbers that no loader writes. */
static stk_status check(const stki_state *state, stk_error *err)
{
    if (state->epoch < 0 || state->step < 0 || state->digest_from < 0)
        return damaged(err, "epoch and step", STKI_TEXT("%" PRId64 " and %" PRId64, state->epoch, state->step),
                       "0 or more");
    if ((state->parts & STKI_STATE_GLOBAL_BATCH) && state->global_batch < 1)
        return damaged(err, "rows of a global batch", STKI_TEXT("%" PRId64, state->global_batch), "1 or more");
    if (state->epoch_failed < 0 || state->epoch_failed > state->failed || state->failed > MOST_FAILED)
        return damaged(err, "failed samples, and those of this epoch",
                       STKI_TEXT("%" PRId64 ", %" PRId64, state->failed, state->epoch_failed),
                       "the second not greater than the first");
    if (state->epoch_left_out < 0 ||
        state->epoch_left_out > MOST_FAILED) /* may exceed the number of failed samples, because a mixed row is also
                                                lost if its partner fails */
        return damaged(err, "rows skipped in this epoch", STKI_TEXT("%" PRId64, state->epoch_left_out), "0 or more");
    return STK_OK;
}

static stk_status fail_version(uint64_t found, stk_error *err)
{
    return stki_fail_at(
        err, STK_E_UNSUPPORTED,
        (stki_place){NULL, -1, -1, STKI_TEXT("%" PRIu64, found), STKI_TEXT("1 or %d", STKI_STATE_VERSION)},
        "saved state: version");
}

static void read_own(const uint8_t *from, stki_state *out)
{
    out->digest = get_print(from);
    out->digest_from = (int64_t)get(from + 16, 8);
    out->failed = (int64_t)get(from + 24, 8);
    out->epoch_failed = (int64_t)get(from + 32, 8);
    out->rank = (int64_t)get(from + 40, 4);
    out->world_size = (int64_t)get(from + 44, 4);
    out->epoch_left_out = (int64_t)get(from + 48, 8);
}

static stk_status read_blob(const uint8_t *from, int64_t bytes, stki_state *out, stk_error *err)
{
    uint64_t version;
    int64_t declared, common;
    bool own;

    if (bytes < 16)
        return damaged(err, "length", STKI_TEXT("%" PRId64 " bytes", bytes), "16 or more");
    version = get(from + 8, 4);
    if (version != 1 && version != STKI_STATE_VERSION)
        return fail_version(version, err);
    common = version == 1 ? OLD_COMMON_BYTES : COMMON_BYTES;
    declared = (int64_t)get(from + 12, 4);
    if (declared != bytes || (bytes != common + SUM_BYTES && bytes != common + OWN_BYTES + SUM_BYTES))
        return damaged(err, "length", STKI_TEXT("%" PRId64 " bytes", bytes), STKI_TEXT("%" PRId64, declared));
    if (get(from + bytes - SUM_BYTES, SUM_BYTES) != stki_digest_64(from, bytes - SUM_BYTES))
        return damaged(err, "checksum", STKI_TEXT("%016" PRIx64, stki_digest_64(from, bytes - SUM_BYTES)),
                       STKI_TEXT("%016" PRIx64, get(from + bytes - SUM_BYTES, SUM_BYTES)));
    own = (get(from + 64, 4) & HAS_OWN) != 0;
    if (own != (bytes > common + SUM_BYTES))
        return damaged(err, "flags", STKI_TEXT("%" PRIu64, get(from + 64, 4)), NULL);
    *out = (stki_state){
        .version = (int)version,
        .parts = STKI_STATE_ALL | (own ? STKI_STATE_OWN : 0u),
        .epoch = (int64_t)get(from + 16, 8),
        .step = (int64_t)get(from + 24, 8),
        .seed = (int64_t)get(from + 32, 8),
        .positions = (int64_t)get(from + 40, 8),
        .global_batch = (int64_t)get(from + 48, 8),
        .order_version = (int)get(from + 56, 4),
        .order = (int)get(from + 60, 2),
        .last_batch = (int)get(from + 62, 2),
        .digest_kind = own ? (int)(get(from + 64, 4) >> 8) : 0,
    };
    for (int i = 0; i < STKI_STATE_SECTIONS && version > 1; i++)
        out->sections[i] = (uint32_t)get(from + 80 + 4 * i, 4);
    if (version == 1)
        out->parts = (out->parts & ~(unsigned)STKI_STATE_HASHES) | STKI_STATE_OLD;
    if (own)
        read_own(from + common, out);
    return check(out, err);
}

/* ---- JSON ---- */

typedef struct text_state {
    int64_t stoker_state, epoch, step, seed, positions, global_batch_size, order_version;
    const stki_node *order, *last_batch, *digest_kind, *sections, *options, *failure_options;
    const char *dataset, *order_fingerprint, *transforms, *digest, *checksum;
    int64_t rank, world_size, digest_from, failed, epoch_failed, epoch_left_out;
} text_state;

#define MOST INT64_MAX

static const stki_option rows[] = {
    STKI_INT(text_state, stoker_state, 0, 0, MOST, "", "Version of this form"),
    STKI_INT(text_state, epoch, 0, 0, MOST, "", "Epoch to resume in"),
    STKI_INT(text_state, step, 0, 0, MOST, "", "First step of the epoch that is not complete"),
    STKI_INT(text_state, seed, 0, 0, MOST, "", "loader.seed"),
    STKI_NODE(text_state, order, "loader.order"),
    STKI_INT(text_state, order_version, 0, 0, INT32_MAX, "", "Version of the orders"),
    STKI_INT(text_state, positions, 0, 0, MOST, "", "Positions of an epoch"),
    STKI_INT(text_state, global_batch_size, 0, 0, MOST, "rows", "Rows of a step over all ranks"),
    STKI_NODE(text_state, last_batch, "loader.last_batch"),
    STKI_NODE(text_state, sections, "Hashes of the lines of sections, by name"),
    STKI_NODE(text_state, options, "Lines PATH=VALUE of the options that determine the samples"),
    STKI_NODE(text_state, failure_options, "Lines of the options that determine which samples fail"),
    STKI_STRING(text_state, dataset, NULL, "Version 1: fingerprint of the data set"),
    STKI_STRING(text_state, order_fingerprint, NULL,
                "Version 1: fingerprint of everything else that the order depends on"),
    STKI_STRING(text_state, transforms, NULL, "Version 1: fingerprint of the transforms"),
    STKI_INT(text_state, rank, 0, 0, UINT32_MAX, "", "Rank to which the following keys belong"),
    STKI_INT(text_state, world_size, 1, 1, UINT32_MAX, "", "Number of ranks"),
    STKI_NODE(text_state, digest_kind, "loader.digest"),
    STKI_STRING(text_state, digest, NULL, "Digest of the stream"),
    STKI_INT(text_state, digest_from, 0, 0, MOST, "", "First step in the digest, counted over all epochs"),
    STKI_INT(text_state, failed, 0, 0, MOST, "", "Failed samples"),
    STKI_INT(text_state, epoch_failed, 0, 0, MOST, "", "Failed samples in this epoch"),
    STKI_INT(text_state, epoch_left_out, 0, 0, MOST, "", "Rows skipped in this epoch"),
    STKI_STRING(text_state, checksum, NULL, "XXH3-64 of the equivalent blob"),
};
static const stki_option_table table = STKI_OPTION_TABLE("state", rows);

static json_t *print_json(stki_u128 print)
{
    char text[STKI_U128_TEXT];

    return json_string(stki_u128_text(print, text));
}

static json_t *word_json(const char *key, int word)
{
    const char *const *words = stki_config_words(key);
    int count = 0;

    while (words[count])
        count++;
    return word >= 0 && word < count ? json_string(words[word]) : json_null();
}

json_t *stki_state_sections_json(const uint32_t sections[STKI_STATE_SECTIONS])
{
    json_t *json = json_object();
    int failed = 0;

    for (int i = 0; i < STKI_STATE_SECTIONS; i++)
        if (sections[i])
            failed |=
                json_object_set_new(json, stki_state_sections[i], json_string(STKI_TEXT("%08" PRIx32, sections[i])));
    if (!failed)
        return json;
    json_decref(json);
    return NULL;
}

static json_t *lines_json(const stki_print *print, bool failure)
{
    json_t *list = json_array();
    int failed = 0;

    for (int i = 0; i < print->count; i++)
        if (print->lines[i].failure == failure)
            failed |= json_array_append_new(list, json_sprintf("%s=%s", print->lines[i].path, print->lines[i].value));
    if (!failed)
        return list;
    json_decref(list);
    return NULL;
}

/* Adds the lines by which the state is compared. A state of version 1 has none. */
static int add_compared(json_t *json, const stki_state *state)
{
    int failed = 0;

    if (state->parts & STKI_STATE_HASHES)
        failed |= json_object_set_new(json, "sections", stki_state_sections_json(state->sections));
    if (state->lines) {
        failed |= json_object_set_new(json, "options", lines_json(state->lines, false));
        failed |= json_object_set_new(json, "failure_options", lines_json(state->lines, true));
    }
    return failed;
}

json_t *stki_state_json(const stki_state *state)
{
    json_t *json = json_object();
    uint8_t blob[STKI_STATE_BYTES];
    int bytes = stki_state_write(state, blob);
    char sum[17];
    int failed = 0;

    failed |= json_object_set_new(json, "stoker_state", json_integer(state->version));
    failed |= json_object_set_new(json, "epoch", json_integer(state->epoch));
    failed |= json_object_set_new(json, "step", json_integer(state->step));
    failed |= json_object_set_new(json, "seed", json_integer(state->seed));
    failed |= json_object_set_new(json, "order", word_json("order", state->order));
    failed |= json_object_set_new(json, "order_version", json_integer(state->order_version));
    failed |= json_object_set_new(json, "positions", json_integer(state->positions));
    failed |= json_object_set_new(json, "global_batch_size", json_integer(state->global_batch));
    failed |= json_object_set_new(json, "last_batch", word_json("last_batch", state->last_batch));
    failed |= add_compared(json, state);
    if (state->parts & STKI_STATE_OWN) {
        failed |= json_object_set_new(json, "rank", json_integer(state->rank));
        failed |= json_object_set_new(json, "world_size", json_integer(state->world_size));
        failed |= json_object_set_new(json, "digest_kind", word_json("digest", state->digest_kind));
        failed |= json_object_set_new(json, "digest", print_json(state->digest));
        failed |= json_object_set_new(json, "digest_from", json_integer(state->digest_from));
        failed |= json_object_set_new(json, "failed", json_integer(state->failed));
        failed |= json_object_set_new(json, "epoch_failed", json_integer(state->epoch_failed));
        failed |= json_object_set_new(json, "epoch_left_out", json_integer(state->epoch_left_out));
    }
    snprintf(sum, sizeof sum, "%016" PRIx64, get(blob + bytes - SUM_BYTES, SUM_BYTES));
    if (state->version == STKI_STATE_VERSION)
        failed |= json_object_set_new(json, "checksum", json_string(sum));
    if (failed) {
        json_decref(json);
        return NULL;
    }
    return json;
}

static stk_status read_digest(const stki_node *root, const char *text, stki_state *out, stk_error *err)
{
    if (!text)
        return STK_OK;
    if (!stki_u128_read(text, &out->digest))
        return stki_fail_value(err, stki_node_get(root, "digest"), "32 hexadecimal digits");
    out->parts |= STKI_STATE_OWN;
    return STK_OK;
}

static stk_status read_sections(const stki_node *map, stki_state *out, stk_error *err)
{
    if (!map)
        return STK_OK;
    if (map->kind != STKI_NODE_MAP)
        return stki_fail_value(err, map, "a map of names and hashes");
    for (int i = 0; i < map->count; i++) {
        int section = find_section(map->keys[i], strlen(map->keys[i]));
        const stki_node *node = map->items[i];
        char *end = NULL;

        if (section < 0)
            return stki_fail_key(err, node, "unknown section");
        if (node->kind == STKI_NODE_SCALAR)
            out->sections[section] = (uint32_t)strtoul(node->text, &end, 16);
        if (!end || *end || strlen(node->text) != 8)
            return stki_fail_value(err, node, "8 hexadecimal digits");
    }
    out->parts |= STKI_STATE_HASHES;
    return STK_OK;
}

static stk_status read_lines(const stki_node *list, bool failure, stki_state *out, stk_error *err)
{
    if (!list)
        return STK_OK;
    if (list->kind != STKI_NODE_LIST)
        return stki_fail_value(err, list, "a list of lines PATH=VALUE");
    if (!out->own_lines && !(out->own_lines = stki_zalloc(sizeof *out->own_lines)))
        return stki_fail_memory(err, sizeof *out->own_lines, "a saved state");
    for (int i = 0; i < list->count; i++) {
        const stki_node *node = list->items[i];
        const char *equals = node->kind == STKI_NODE_SCALAR ? strchr(node->text, '=') : NULL;

        if (!equals)
            return stki_fail_value(err, node, "a line PATH=VALUE");
        stki_print_line(out->own_lines, node->text, equals - node->text, equals + 1, failure);
    }
    out->lines = out->own_lines;
    out->parts |= STKI_STATE_LINES;
    return stki_print_end(out->own_lines, err);
}

/* The fingerprints of version 1 can no longer be compared; only their presence is recorded. */
static stk_status read_old(const stki_node *root, const text_state *text, stki_state *out, stk_error *err)
{
    static const char *const keys[] = {"dataset", "order_fingerprint", "transforms"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const stki_node *node = stki_node_get(root, keys[i]);

        if (node && out->version > 1)
            return stki_fail_key(err, node, "a key of version 1, found in version %d", out->version);
        if (node)
            out->parts |= STKI_STATE_OLD;
    }
    if (out->version == 1 && (text->sections || text->options || text->failure_options))
        return stki_fail_node(err, root, "sections and options are keys of version %d", STKI_STATE_VERSION);
    return STK_OK;
}

static stk_status read_word(const stki_node *node, const char *key, unsigned part, stki_state *out, int *word,
                            stk_error *err)
{
    if (!node)
        return STK_OK;
    out->parts |= part;
    return stki_node_word(node, stki_config_words(key), word, err);
}

static unsigned part_if(const stki_node *root, const char *key, unsigned part)
{
    return stki_node_get(root, key) ? part : 0;
}

static stk_status check_sum(const stki_node *root, const char *text, const stki_state *state, stk_error *err)
{
    uint8_t blob[STKI_STATE_BYTES];
    int bytes;
    char sum[17];

    if (!text || state->version != STKI_STATE_VERSION)
        return STK_OK;
    bytes = stki_state_write(state, blob);
    snprintf(sum, sizeof sum, "%016" PRIx64, get(blob + bytes - SUM_BYTES, SUM_BYTES));
    if (strcmp(sum, text) == 0)
        return STK_OK;
    (void)stki_fail_value(err, stki_node_get(root, "checksum"),
                          "%s for these contents; if it was edited by hand, remove checksum", sum);
    if (err)
        err->status = STK_E_CORRUPT;
    return STK_E_CORRUPT;
}

static stk_status read_root(const stki_node *root, stki_state *out, stk_error *err)
{
    text_state text = {0};
    stk_status status;

    stki_options_defaults(&table, &text);
    *out = (stki_state){0};
    if ((status = stki_options_read(&table, root, &text, NULL, err)) != STK_OK)
        return status;
    if (!stki_node_get(root, "stoker_state"))
        return stki_fail_node(err, root, "stoker_state: %d is missing", STKI_STATE_VERSION);
    if (text.stoker_state != 1 && text.stoker_state != STKI_STATE_VERSION)
        return fail_version((uint64_t)text.stoker_state, err);
    out->version = (int)text.stoker_state;
    out->epoch = text.epoch, out->step = text.step;
    out->seed = text.seed, out->parts |= part_if(root, "seed", STKI_STATE_SEED);
    out->order_version = (int)text.order_version,
    out->parts |= part_if(root, "order_version", STKI_STATE_ORDER_VERSION);
    out->positions = text.positions, out->parts |= part_if(root, "positions", STKI_STATE_POSITIONS);
    out->global_batch = text.global_batch_size;
    out->parts |= part_if(root, "global_batch_size", STKI_STATE_GLOBAL_BATCH);
    if ((status = read_word(text.order, "order", STKI_STATE_ORDER, out, &out->order, err)) != STK_OK ||
        (status = read_word(text.last_batch, "last_batch", STKI_STATE_LAST_BATCH, out, &out->last_batch, err)) !=
            STK_OK ||
        (status = read_word(text.digest_kind, "digest", 0, out, &out->digest_kind, err)) != STK_OK ||
        (status = read_old(root, &text, out, err)) != STK_OK ||
        (status = read_sections(text.sections, out, err)) != STK_OK ||
        (status = read_lines(text.options, false, out, err)) != STK_OK ||
        (status = read_lines(text.failure_options, true, out, err)) != STK_OK ||
        (status = read_digest(root, text.digest, out, err)) != STK_OK)
        return status;
    out->rank = text.rank, out->world_size = text.world_size;
    out->digest_from = text.digest_from;
    out->failed = text.failed, out->epoch_failed = text.epoch_failed;
    out->epoch_left_out = text.epoch_left_out;
    return check_sum(root, text.checksum, out, err);
}

static stk_status read_text(const char *text, int64_t bytes, const char *origin, stki_state *out, stk_error *err)
{
    stki_document *document;
    stk_status status = stki_document_parse(text, bytes, origin ? origin : "state", STKI_NO_INCLUDE, &document, err);

    if (status != STK_OK)
        return status;
    status = read_root(stki_document_root(document), out, err);
    stki_document_destroy(document);
    return status == STK_OK ? check(out, err) : status;
}

stk_status stki_state_read(const void *data, int64_t bytes, const char *origin, stki_state *out, stk_error *err)
{
    const char *text = data;
    int64_t blank = 0;

    *out = (stki_state){0};
    if (bytes >= (int64_t)sizeof magic && memcmp(text, magic, sizeof magic) == 0)
        return read_blob(data, bytes, out, err);
    while (blank < bytes && strchr(" \t\r\n", text[blank]) && text[blank])
        blank++;
    if (blank == bytes || text[blank] != '{')
        return stki_fail_at(
            err, STK_E_CORRUPT,
            (stki_place){NULL, -1, -1, bytes == 0 ? "nothing" : STKI_TEXT("%.*s", (int)(bytes < 16 ? bytes : 16), text),
                         "STKSTATE, or { (JSON), at its beginning"},
            "not a saved state");
    return read_text(text, bytes, origin, out, err);
}

void stki_state_fini(stki_state *state)
{
    if (state->own_lines)
        stki_print_fini(state->own_lines);
    stki_free(state->own_lines);
    state->own_lines = NULL;
    state->lines = NULL;
}
