/* Tests of file names as JSON strings: valid UTF-8 is unchanged, and other bytes are escaped, from which they can be
 * restored. */
#include "allocate.h"
#include "stk_test.h"
#include "text_json.h"
#include <string.h>

static void test_cases(void **unused)
{
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"", ""},
        {"a/b.npy", "a/b.npy"},
        {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x90\xa7", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x90\xa7"},
        {"line\nquote\" \\n \\", "line\nquote\" \\n \\"},
        {"caf\xe9.jpg", "caf\\xe9.jpg"},
        {"\xff\xc3\xa4", "\\xff\xc3\xa4"},
        {"\xc3", "\\xc3"},                   /* truncated */
        {"\xc0\xaf", "\\xc0\\xaf"},          /* overlong */
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"}, /* a surrogate */
        {"\\x41", "\\x5cx41"},               /* without the escape it would be read as A */
        {"\\\\x", "\\\\x5cx"},
        {"\\xe9\xe9", "\\x5cxe9\\xe9"},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *json = stki_text_json(cases[i].text);
        char *back = stki_text_of_json(json);

        assert_string_equal(json_string_value(json), cases[i].json);
        assert_string_equal(back, cases[i].text);
        stki_free(back);
        json_decref(json);
    }
}

static void test_all_pairs(void **unused)
{
    (void)unused;
    for (int a = 1; a < 256; a++)
        for (int b = 1; b < 256; b++) {
            const char text[] = {(char)a, (char)b, 'x', (char)b, (char)a, '\0'};
            json_t *json = stki_text_json(text);
            char *back = stki_text_of_json(json);

            assert_non_null(json);
            assert_string_equal(back, text);
            stki_free(back);
            json_decref(json);
        }
}

static void test_values_that_are_not_strings(void **unused)
{
    json_t *number = json_integer(7), *text = stki_text_json_n("a\0\xff", 3);

    (void)unused;
    assert_null(stki_text_of_json(number));
    assert_null(stki_text_of_json(NULL));
    assert_int_equal(json_string_length(text), 6);
    assert_memory_equal(json_string_value(text), "a\0\\xff", 7);
    json_decref(number);
    json_decref(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_all_pairs),
        cmocka_unit_test(test_values_that_are_not_strings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
