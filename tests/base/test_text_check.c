/* Tests of UTF-8 decoding for every code point, and of the characters that are allowed in files, values and keys. */
#include "cmocka_all.h"
#include "text_check.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The definition of UTF-8 as a table of bit patterns. */
static int encode(uint32_t code, char *to)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xc0 | code >> 6);
        to[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (char)(0xe0 | code >> 12);
        to[1] = (char)(0x80 | (code >> 6 & 0x3f));
        to[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | code >> 18);
    to[1] = (char)(0x80 | (code >> 12 & 0x3f));
    to[2] = (char)(0x80 | (code >> 6 & 0x3f));
    to[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

static void every_code_point(void **state)
{
    uint32_t code, back;

    (void)state;
    for (code = 0; code < 0x1fffff; code++) {
        char bytes[8] = {0};
        int length = encode(code, bytes), left;
        bool valid = code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);

        if (stki_utf8_next(bytes, length, &back) != (valid ? length : 0) || (valid && back != code))
            fail_msg("U+%04X", code);
        for (left = 0; left < length; left++)
            if (stki_utf8_next(bytes, left, &back) != 0)
                fail_msg("U+%04X truncated to %d bytes", code, left);
    }
}

static void invalid_bytes(void **state)
{
    static const char *const bad[] = {"\x80",
                                      "\xbf",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xe0\x80\x80",
                                      "\xe0\x9f\xbf",
                                      "\xf0\x80\x80\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf8\x88\x80\x80\x80",
                                      "\xff",
                                      "\xfe",
                                      "\xc3(",
                                      "\xe2\x82(",
                                      "\xf0\x9f\x98(",
                                      "\xed\xa0\x80"};
    uint32_t code;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(stki_utf8_next(bad[i], (int64_t)strlen(bad[i]), &code), 0);
}

static void assert_rule(const char *text, int64_t length, int64_t file, int64_t value, int64_t key, const char *what)
{
    char found[48] = "";

    assert_int_equal(stki_text_check(text, length, STKI_TEXT_FILE, found), file);
    assert_int_equal(stki_text_check(text, length, STKI_TEXT_VALUE, found), value);
    assert_int_equal(stki_text_check(text, length, STKI_TEXT_KEY, found), key);
    assert_string_equal(found, what);
}

static void the_rules(void **state)
{
    (void)state;
    assert_rule("", 0, -1, -1, -1, "");
    assert_rule("plain \xc3\xa4 \xf0\x9f\x98\x80", 13, -1, -1, -1, "");
    assert_rule("a\nb", 3, -1, -1, 1, "control character U+000A");
    assert_rule("a\tb", 3, -1, -1, 1, "control character U+0009");
    assert_rule("ab\r\n", 4, -1, 2, 2, "control character U+000D");
    assert_rule("a\0b", 3, 1, 1, 1, "a NUL byte");
    assert_rule("\x1b[0m", 4, 0, 0, 0, "control character U+001B");
    assert_rule("a\x7f", 2, 1, 1, 1, "control character U+007F");
    assert_rule("a\xc2\x85", 3, 1, 1, 1, "control character U+0085");
    assert_rule("a\xc2\xa0", 3, -1, -1, -1, "");
    assert_rule("a\xe2\x80\xa8", 4, 1, 1, 1, "character U+2028");
    assert_rule("\xef\xbb\xbf", 3, 0, 0, 0, "character U+FEFF");
    assert_rule("\xef\xb7\x90", 3, 0, 0, 0, "character U+FDD0");
    assert_rule("\xf0\x9f\xbf\xbe", 4, 0, 0, 0, "character U+1FFFE");
    assert_rule("abc\xff", 4, 3, 3, 3, "byte 0xff is not valid UTF-8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point),
        cmocka_unit_test(invalid_bytes),
        cmocka_unit_test(the_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
