/* Tests of checksums, their text forms and fingerprints. The expected hashes were computed with Python's xxhash. */
#include "digest.h"
#include "stk_test.h"

static void texts(void **state)
{
    char text[STKI_U128_TEXT];
    stki_u128 value = {UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210)}, read;
    static const char *const wrong[] = {"",
                                        "0",
                                        "fedcba98765432100123456789abcde",
                                        "fedcba98765432100123456789abcdef0",
                                        "FEDCBA98765432100123456789ABCDEF",
                                        "fedcba98765432100123456789abcdeg"};

    (void)state;
    assert_string_equal(stki_u128_text(value, text), "fedcba98765432100123456789abcdef");
    assert_true(stki_u128_read(text, &read));
    assert_true(stki_u128_equal(read, value));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(stki_u128_read(wrong[i], &read));
}

static void sums_carry(void **state)
{
    stki_u128 most = {UINT64_MAX, UINT64_MAX}, one = {1, 0}, sum;

    (void)state;
    sum = stki_u128_add((stki_u128){UINT64_MAX, 5}, one);
    assert_true(sum.low == 0 && sum.high == 6);
    sum = stki_u128_add(most, one);
    assert_true(sum.low == 0 && sum.high == 0);
}

/* xxhash.xxh3_128_hexdigest(b''), xxh3_128_hexdigest(b'stoker'), xxh3_64_hexdigest(b'stoker') */
static void hashes(void **state)
{
    char text[STKI_U128_TEXT];

    (void)state;
    assert_string_equal(stki_u128_text(stki_digest("", 0), text), "99aa06d3014798d86001c324468d497f");
    assert_string_equal(stki_u128_text(stki_digest("stoker", 6), text), "a7e7c37e9fb625b3bfcfa6131ec4526c");
    assert_true(stki_digest_64("stoker", 6) == UINT64_C(0xa8f8acdd4df52bef));
}

/* Hashing in pieces of any size gives the same result. */
static void streams(void **state)
{
    char data[5000];

    (void)state;
    for (int i = 0; i < 5000; i++)
        data[i] = (char)(i * 7);
    for (int step = 1; step < 5000; step = step * 3 + 1) {
        stki_digest_stream *stream = stki_digest_stream_create();

        assert_non_null(stream);
        assert_true(stki_digest_stream_64(stream) == stki_digest_64("", 0));
        for (int at = 0; at < 5000; at += step)
            stki_digest_stream_add(stream, data + at, at + step < 5000 ? step : 5000 - at);
        assert_true(stki_digest_stream_64(stream) == stki_digest_64(data, 5000));
        stki_digest_stream_destroy(stream);
    }
    stki_digest_stream_destroy(NULL);
}

static void records_add_up(void **state)
{
    uint64_t records[300 * 4];
    stki_u128 whole = {3, 4}, parts = {3, 4}, by_hand = {3, 4};

    (void)state;
    for (int i = 0; i < 300 * 4; i++)
        records[i] = (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15);
    stki_digest_add(&whole, records, 4, 300);
    stki_digest_add(&parts, records + 4 * 100, 4, 200);
    stki_digest_add(&parts, records, 4, 100);
    for (int i = 0; i < 300; i++)
        by_hand = stki_u128_add(by_hand, stki_digest(records + 4 * i, 32));
    assert_true(stki_u128_equal(whole, parts));
    assert_true(stki_u128_equal(whole, by_hand));
    stki_digest_add(&parts, records, 4, 0);
    assert_true(stki_u128_equal(whole, parts));
}

static stki_u128 print_of(const char *a, const char *b)
{
    stki_u128 print = {0};

    stki_fingerprint_text(&print, a);
    stki_fingerprint_text(&print, b);
    return print;
}

static void different_texts_have_different_fingerprints(void **state)
{
    stki_u128 prints[] = {print_of("a", "b"), print_of("b", "a"),   print_of("ab", ""),
                          print_of("", "ab"), print_of("ab", NULL), print_of("a", "b ")};

    (void)state;
    for (size_t i = 0; i < sizeof prints / sizeof prints[0]; i++)
        for (size_t k = 0; k < i; k++)
            assert_false(stki_u128_equal(prints[i], prints[k]));
    assert_true(stki_u128_equal(prints[0], print_of("a", "b")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),          cmocka_unit_test(sums_carry),
        cmocka_unit_test(hashes),         cmocka_unit_test(streams),
        cmocka_unit_test(records_add_up), cmocka_unit_test(different_texts_have_different_fingerprints),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
