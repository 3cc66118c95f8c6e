/* Tests of the two forms of a saved position. This file writes the blob byte by byte as docs/reference/resume.md
 * describes it. Every flipped bit and every truncation of either form must be detected or must change a visible
 * value. */
#include "allocate.h"
#include "faults.h"
#include "state.h"
#include "stk_test.h"

static const stki_state sample = {
    .version = 2,
    .parts = STKI_STATE_ALL | STKI_STATE_OWN,
    .epoch = 3,
    .step = 1234567890123,
    .seed = INT64_MAX,
    .order = 1,
    .order_version = 1,
    .last_batch = 2,
    .positions = 1000000000,
    .global_batch = 4096,
    .sections = {1, 0, 3, UINT32_MAX, [15] = 0x01020304},
    .rank = 3,
    .world_size = 8,
    .digest_kind = 2,
    .digest = {7, 8},
    .digest_from = 9,
    .failed = 10,
    .epoch_failed = 4,
    .epoch_left_out = 3,
};

static void check_equal(const stki_state *a, const stki_state *b)
{
    assert_int_equal(a->parts, b->parts);
    assert_int_equal(a->epoch, b->epoch);
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->seed, b->seed);
    assert_int_equal(a->order, b->order);
    assert_int_equal(a->order_version, b->order_version);
    assert_int_equal(a->last_batch, b->last_batch);
    assert_int_equal(a->positions, b->positions);
    assert_int_equal(a->global_batch, b->global_batch);
    assert_memory_equal(a->sections, b->sections, sizeof a->sections);
    if (!(a->parts & STKI_STATE_OWN))
        return;
    assert_int_equal(a->rank, b->rank);
    assert_int_equal(a->world_size, b->world_size);
    assert_int_equal(a->digest_kind, b->digest_kind);
    assert_true(stki_u128_equal(a->digest, b->digest));
    assert_int_equal(a->digest_from, b->digest_from);
    assert_int_equal(a->failed, b->failed);
    assert_int_equal(a->epoch_failed, b->epoch_failed);
    assert_int_equal(a->epoch_left_out, b->epoch_left_out);
}

static void put(uint8_t *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

/* Writes bytes 16 to 79 of the blob of `sample`. */
static void put_numbers(uint8_t *blob)
{
    put(blob + 16, 3, 8);
    put(blob + 24, 1234567890123, 8);
    put(blob + 32, INT64_MAX, 8);
    put(blob + 40, 1000000000, 8);
    put(blob + 48, 4096, 8);
    put(blob + 56, 1, 4);
    put(blob + 60, 1, 2);
    put(blob + 62, 2, 2);
    put(blob + 64, 0x201, 4);
}

/* Writes the rank's own part of the blob. */
static void put_own(uint8_t *own)
{
    put(own, 7, 8), put(own + 8, 8, 8);
    put(own + 16, 9, 8);
    put(own + 24, 10, 8);
    put(own + 32, 4, 8);
    put(own + 40, 3, 4), put(own + 44, 8, 4);
    put(own + 48, 3, 8);
}

static void the_blob_is_as_documented(void **state)
{
    uint8_t blob[STKI_STATE_BYTES], expected[STKI_STATE_BYTES] = {0};

    (void)state;
    memcpy(expected, "STKSTATE", 8);
    put(expected + 8, 2, 4);
    put(expected + 12, 208, 4);
    put_numbers(expected);
    put(expected + 80, 1, 4), put(expected + 88, 3, 4), put(expected + 92, UINT32_MAX, 4);
    put(expected + 140, 0x01020304, 4);
    put_own(expected + 144);
    put(expected + 200, stki_digest_64(expected, 200), 8);
    assert_int_equal(stki_state_write(&sample, blob), 208);
    assert_memory_equal(blob, expected, 208);
    assert_true(STKI_STATE_BYTES <= STK_STATE_MAX);
}

/* Version 1 had three fingerprints of 16 bytes in place of the sections. */
static void version_1_is_read(void **state)
{
    static const char text[] = "{\"stoker_state\": 1, \"epoch\": 2, \"step\": 7, \"dataset\": "
                               "\"0123456789abcdef0123456789abcdef\", \"checksum\": \"0000000000000000\"}";
    uint8_t blob[192] = "STKSTATE";
    stki_state read, expected = sample;
    stk_error err;

    (void)state;
    put(blob + 8, 1, 4);
    put(blob + 12, 192, 4);
    put_numbers(blob);
    put(blob + 80, 5, 8);
    put_own(blob + 128);
    put(blob + 184, stki_digest_64(blob, 184), 8);
    assert_ok(stki_state_read(blob, sizeof blob, NULL, &read, &err));
    assert_int_equal(read.version, 1);
    expected.parts = (sample.parts & ~(unsigned)STKI_STATE_HASHES) | STKI_STATE_OLD;
    memset(expected.sections, 0, sizeof expected.sections);
    check_equal(&expected, &read);
    assert_ok(stki_state_read(text, sizeof text - 1, NULL, &read, &err));
    assert_int_equal(read.version, 1);
    assert_int_equal(read.parts, STKI_STATE_OLD);
    assert_int_equal(read.step, 7);
}

static void both_forms_read_back(void **state)
{
    (void)state;
    for (int own = 0; own <= 1; own++) {
        uint8_t blob[STKI_STATE_BYTES];
        stki_state given = sample, read;
        stk_error err;
        char *text;
        int bytes;

        if (!own)
            given.parts = STKI_STATE_ALL;
        bytes = stki_state_write(&given, blob);
        assert_int_equal(bytes, own ? 208 : 152);
        assert_ok(stki_state_read(blob, bytes, NULL, &read, &err));
        check_equal(&given, &read);
        text = stk_state_json(blob, bytes, &err);
        assert_non_null(text);
        assert_ok(stki_state_read(text, (int64_t)strlen(text), NULL, &read, &err));
        check_equal(&given, &read);
        stk_text_free(text);
    }
}

/* States with a valid checksum that no loader can have written. Computing with their numbers would overflow or give a
 * step before the first. */
static void impossible_numbers_are_refused(void **state)
{
    const struct {
        int64_t global_batch, failed, epoch_failed, epoch_left_out;
        const char *says;
    } cases[] = {
        {0, 10, 4, 3, "rows of a global batch"},
        {-5, 10, 4, 3, "rows of a global batch"},
        {INT64_MIN, 10, 4, 3, "rows of a global batch"},
        {4096, INT64_MAX, 4, 3, "failed samples"},
        {4096, -1, 4, 3, "failed samples"},
        {4096, 10, 11, 3, "failed samples"},
        {4096, 10, 4, INT64_MAX, "rows skipped"},
        {4096, 10, 4, -1, "rows skipped"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t blob[STKI_STATE_BYTES];
        stki_state given = sample, read;
        stk_error err;
        int bytes;

        given.global_batch = cases[i].global_batch;
        given.failed = cases[i].failed;
        given.epoch_failed = cases[i].epoch_failed;
        given.epoch_left_out = cases[i].epoch_left_out;
        bytes = stki_state_write(&given, blob);
        assert_status(stki_state_read(blob, bytes, NULL, &read, &err), STK_E_CORRUPT);
        assert_says(cases[i].says);
    }
}

static void damage_is_noticed(void **state)
{
    uint8_t blob[STKI_STATE_BYTES];
    int bytes = stki_state_write(&sample, blob);
    stki_state read;
    stk_error err;
    char *text;

    (void)state;
    for (int bit = 0; bit < 8 * bytes; bit++) {
        stk_status status;

        blob[bit / 8] ^= (uint8_t)(1 << bit % 8);
        status = stki_state_read(blob, bytes, NULL, &read, &err);
        assert_int_equal(status, bit / 8 >= 8 && bit / 8 < 12 ? STK_E_UNSUPPORTED : STK_E_CORRUPT);
        blob[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (int cut = 0; cut < bytes; cut++)
        assert_status(stki_state_read(blob, cut, NULL, &read, &err), STK_E_CORRUPT);
    text = stk_state_json(blob, bytes, &err);
    for (int64_t i = 0; text[i]; i++) { /* one digit more or fewer gives another number, which the checksum detects */
        const char kept = text[i];

        if (kept < '0' || kept > '9')
            continue;
        text[i] = kept == '0' ? '1' : (char)(kept - 1);
        assert_true(stki_state_read(text, (int64_t)strlen(text), NULL, &read, &err) < 0);
        text[i] = kept;
    }
    for (int64_t cut = 0; cut < (int64_t)strlen(text); cut++)
        assert_true(stki_state_read(text, cut, NULL, &read, &err) < 0);
    stk_text_free(text);
}

static void json_by_hand(void **state)
{
    static const char enough[] = " \n{\"stoker_state\": 2, \"epoch\": 2, \"step\": 100}",
                      some[] = "{\"stoker_state\": 2, \"step\": 7, \"seed\": 0, \"order\": \"random\"}";
    static const struct {
        const char *text, *says;
        stk_status status;
    } wrong[] = {
        {"", "found nothing, expected STKSTATE, or { (JSON)", STK_E_CORRUPT},
        {"epoch: 1", "expected STKSTATE, or { (JSON)", STK_E_CORRUPT},
        {"{}", "stoker_state: 2 is missing", STK_E_CONFIG},
        {"{\"stoker_state\": 3}", "found 3, expected 1 or 2", STK_E_UNSUPPORTED},
        {"{\"stoker_state\": 2, \"dataset\": \"0123456789abcdef0123456789abcdef\"}", "version 1", STK_E_CONFIG},
        {"{\"stoker_state\": 1, \"sections\": {}}", "version 2", STK_E_CONFIG},
        {"{\"stoker_state\": 2, \"sections\": {\"pax\": \"00000000\"}}", "unknown section", STK_E_CONFIG},
        {"{\"stoker_state\": 2, \"sections\": {\"pad\": \"0000000g\"}}", "8 hexadecimal digits", STK_E_CONFIG},
        {"{\"stoker_state\": 2, \"options\": [\"a\"]}", "PATH=VALUE", STK_E_CONFIG},
        {"{\"stoker_state\": 1, \"epoc\": 1}", "did you mean epoch?", STK_E_CONFIG},
        {"{\"stoker_state\": 1, \"epoch\": -1}", "epoch: found -1", STK_E_CONFIG},
        {"{\"stoker_state\": 1, \"epoch\": 1.5}", "epoch: found 1.5", STK_E_CONFIG},
        {"{\"stoker_state\": 1, \"order\": \"rando\"}", "random", STK_E_CONFIG},
        {"{\"stoker_state\": 2, \"digest\": \"xyz\"}", "digest: found \"xyz\", expected 32 hexadecimal digits",
         STK_E_CONFIG},
        {"{\"stoker_state\": 2, \"epoch\": 1, \"checksum\": \"0000000000000000\"}", "remove checksum", STK_E_CORRUPT},
        {"{\"stoker_state\": 1, ", "state:2: not YAML", STK_E_CONFIG},
    };
    stki_state read;
    stk_error err;

    (void)state;
    assert_ok(stki_state_read(enough, sizeof enough - 1, NULL, &read, &err));
    assert_int_equal(read.epoch, 2);
    assert_int_equal(read.step, 100);
    assert_int_equal(read.parts, 0);
    assert_ok(stki_state_read(some, sizeof some - 1, NULL, &read, &err));
    assert_int_equal(read.epoch, 0);
    assert_int_equal(read.parts, STKI_STATE_SEED | STKI_STATE_ORDER);
    assert_int_equal(read.order, 1);
    stki_state_fini(&read);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_status(stki_state_read(wrong[i].text, (int64_t)strlen(wrong[i].text), NULL, &read, &err),
                      wrong[i].status);
        assert_says(wrong[i].says);
        stki_state_fini(&read);
    }
}

static void memory_may_run_out(void **state)
{
    static const char text[] =
        "{\"stoker_state\": 2, \"epoch\": 2, \"order\": \"random\", \"options\": [\"a=1\", \"b=2\"]}";
    stki_state read;
    stk_error err;
    stk_status status = STK_E_MEMORY;

    (void)state;
    for (int n = 1; status == STK_E_MEMORY && n < 1000; n++) {
        stki_memory_fail_at(n);
        status = stki_state_read(text, sizeof text - 1, NULL, &read, &err);
        stki_memory_fail_at(0);
        stki_state_fini(&read);
    }
    assert_int_equal(status, STK_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_blob_is_as_documented), cmocka_unit_test(version_1_is_read),
        cmocka_unit_test(both_forms_read_back),      cmocka_unit_test(impossible_numbers_are_refused),
        cmocka_unit_test(damage_is_noticed),         cmocka_unit_test(json_by_hand),
        cmocka_unit_test(memory_may_run_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
