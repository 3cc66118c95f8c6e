/* Tests of error messages: their form, the facts in stk_error, and hostile strings in names and values. */
#include "allocate.h"
#include "cmocka_all.h"
#include "error.h"
#include "text_check.h"
#include <errno.h>
#include <string.h>

static void names_and_texts_are_complete(void **state)
{
    static const stk_status all[] = {
#define STK_X(value, identifier, name, text) identifier,
        STK_STATUS_LIST(STK_X)
#undef STK_X
    };
    size_t i, k, count = sizeof all / sizeof all[0];

    (void)state;
    for (i = 0; i < count; i++) {
        assert_string_not_equal(stk_status_name(all[i]), "unknown");
        assert_string_not_equal(stk_status_text(all[i]), "unknown status");
        for (k = 0; k < i; k++)
            assert_string_not_equal(stk_status_name(all[i]), stk_status_name(all[k]));
    }
    assert_string_equal(stk_status_name(STK_E_TRUNCATED), "truncated");
    assert_int_equal(STK_OK, 0);
    assert_true(STK_END > 0 && STK_AGAIN > 0);
    assert_string_equal(stk_status_name((stk_status)-9999), "unknown");
    assert_string_equal(stk_status_text((stk_status)77), "unknown status");
}

static void the_message_alone(void **state)
{
    stk_error err;

    (void)state;
    memset(&err, 0x5a, sizeof err);
    assert_int_equal(stki_fail(&err, STK_E_RANGE, "no sample %d", 7), STK_E_RANGE);
    assert_int_equal(err.status, STK_E_RANGE);
    assert_string_equal(err.message, "no sample 7");
    assert_int_equal(err.record, -1);
    assert_int_equal(err.offset, -1);
    assert_string_equal(err.file, "");
    assert_string_equal(err.found, "");
    assert_string_equal(err.expected, "");
    assert_int_equal(stki_fail(NULL, STK_E_RANGE, "nobody listens"), STK_E_RANGE);
    stki_error_clear(NULL);
    stki_error_clear(&err);
    assert_int_equal(err.status, STK_OK);
    assert_string_equal(err.message, "");
}

static void assert_place(stki_place place, const char *message)
{
    stk_error err;

    memset(&err, 0x5a, sizeof err);
    assert_int_equal(stki_fail_at(&err, STK_E_CORRUPT, place, "wrong %s", "magic"), STK_E_CORRUPT);
    assert_string_equal(err.message, message);
    assert_int_equal(err.record, place.record);
    assert_int_equal(err.offset, place.offset);
    assert_string_equal(err.file, place.file ? place.file : "");
    assert_string_equal(err.found, place.found ? place.found : "");
    assert_string_equal(err.expected, place.expected ? place.expected : "");
}

static void places(void **state)
{
    (void)state;
    assert_place((stki_place){"a.npy", 3, 128, "x", "y"},
                 "a.npy: record 3: offset 128: wrong magic: found x, expected y");
    assert_place((stki_place){"a.npy", 0, 0, NULL, NULL}, "a.npy: record 0: offset 0: wrong magic");
    assert_place((stki_place){"a.npy", -1, -1, "x", NULL}, "a.npy: wrong magic: found x");
    assert_place((stki_place){NULL, -1, 5, NULL, "y"}, "offset 5: wrong magic: expected y");
    assert_place((stki_place){NULL, -1, -1, NULL, NULL}, "wrong magic");
    assert_place((stki_place){NULL, -1, -1, STKI_TEXT("%d", 1), STKI_TEXT("%d", 2)},
                 "wrong magic: found 1, expected 2");
    assert_int_equal(stki_fail_at(NULL, STK_E_CORRUPT, (stki_place){"f", 1, 2, "x", "y"}, "nobody"), STK_E_CORRUPT);
}

static void system_errors(void **state)
{
    stk_error err;

    (void)state;
    assert_int_equal(stki_fail_errno(&err, ENOENT, "a.npy", "can't open"), STK_E_NOT_FOUND);
    assert_string_equal(err.message, "a.npy: can't open: No such file or directory");
    assert_string_equal(err.file, "a.npy");
    assert_int_equal(stki_fail_errno(&err, ENOTDIR, "a", "can't open"), STK_E_NOT_FOUND);
    assert_int_equal(stki_fail_errno(&err, ENOMEM, "a", "can't map"), STK_E_MEMORY);
    assert_int_equal(stki_fail_errno(&err, EIO, "a", "can't read %d bytes", 5), STK_E_IO);
    assert_string_equal(err.message, "a: can't read 5 bytes: Input/output error");
    assert_int_equal(stki_fail_errno(NULL, ENOENT, "a", "x"), STK_E_NOT_FOUND);
    assert_int_equal(stki_fail_memory(&err, 4096, "a slot"), STK_E_MEMORY);
    assert_string_equal(err.message, "out of memory: 4096 bytes for a slot");
}

static void long_texts_keep_what_matters(void **state)
{
    char path[1001], found[301];
    stk_error err;

    (void)state;
    memset(path, 'p', 1000);
    memcpy(path + 990, "/the.npy", 9);
    memset(found, 'f', 300);
    found[300] = '\0';
    stki_fail_at(&err, STK_E_CORRUPT, (stki_place){path, 1, 2, found, "short"}, "wrong");
    assert_int_equal(strlen(err.file), sizeof err.file - 1);
    assert_memory_equal(err.file, "...", 3);
    assert_string_equal(err.file + strlen(err.file) - 8, "/the.npy");
    assert_int_equal(strlen(err.found), sizeof err.found - 1);
    assert_non_null(strstr(err.message, "/the.npy: record 1: offset 2: wrong: found ...fff"));
    assert_string_equal(err.message + strlen(err.message) - 16, ", expected short");
    stki_fail(&err, STK_E_CORRUPT, "%s%s", path, path);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_string_equal(err.message + strlen(err.message) - 4, "p...");
    stki_fail_at(&err, STK_E_CORRUPT, (stki_place){"f", 1, 2, found, "short"}, "%s", path);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_string_equal(err.expected, "short");
}

/* A message is one line of printable UTF-8 for any input strings. */
static void messages_are_one_clean_line(void **state)
{
    stk_error err;
    char long_text[2001], what[48];
    int i;

    (void)state;
    stki_fail_at(&err, STK_E_CORRUPT, (stki_place){"a\nb\x1b[2J.npy", -1, -1, "x\x7fy", "z\xff\xc2\x9b"}, "odd\r\n");
    assert_string_equal(err.message, "a?b?[2J.npy: odd??: found x?y, expected z???");
    assert_string_equal(err.found, "x?y");
    assert_string_equal(err.expected, "z???");
    assert_string_equal(err.file, "a\nb\x1b[2J.npy"); /* the field holds the name unchanged */
    stki_fail(&err, STK_E_CORRUPT, "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
    assert_string_equal(err.message, "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
    for (i = 0; i < 4; i++) { /* truncates at every byte of a character */
        memset(long_text, 'x', (size_t)i);
        for (int at = i; at < 1990; at += 4)
            memcpy(long_text + at, "\xf0\x9f\x98\x80", 5);
        stki_fail(&err, STK_E_CORRUPT, "%s", long_text);
        assert_int_equal(stki_text_check(err.message, (int64_t)strlen(err.message), STKI_TEXT_KEY, what), -1);
        stki_fail_at(&err, STK_E_CORRUPT, (stki_place){NULL, -1, -1, long_text, NULL}, "cut");
        assert_int_equal(stki_text_check(err.found, (int64_t)strlen(err.found), STKI_TEXT_KEY, what), -1);
    }
}

static void an_error_may_be_wrapped(void **state)
{
    stk_error err;

    (void)state;
    stki_fail_at(&err, STK_E_CORRUPT, (stki_place){"a.npy", 1, 2, "x", "y"}, "wrong");
    stki_fail(&err, STK_E_MISMATCH, "field %s: %s", "image", err.message);
    assert_string_equal(err.message, "field image: a.npy: record 1: offset 2: wrong: found x, expected y");
    stki_fail_at(&err, STK_E_CORRUPT, (stki_place){"a.npy", 1, 2, "x", "y"}, "wrong");
    stki_fail_at(&err, STK_E_CORRUPT, (stki_place){err.file, err.record + 1, -1, err.found, err.expected}, "again: %s",
                 err.message);
    assert_string_equal(err.message,
                        "a.npy: record 2: again: a.npy: record 1: offset 2: wrong: found x, expected y: found "
                        "x, expected y");
    assert_string_equal(err.found, "x");
}

static void a_record_is_added(void **state)
{
    stk_error err;
    char path[400] = "";

    (void)state;
    stki_fail_at(&err, STK_E_TRUNCATED, (stki_place){"w.npy", -1, 7, "x", "y"}, "the file is truncated");
    assert_int_equal(stki_fail_record(&err, STK_E_TRUNCATED, 3), STK_E_TRUNCATED);
    assert_string_equal(err.message, "w.npy: record 3: offset 7: the file is truncated: found x, expected y");
    assert_int_equal(err.record, 3);
    assert_int_equal(err.offset, 7);
    assert_string_equal(err.found, "x");
    stki_fail_record(&err, STK_E_TRUNCATED, 4); /* ignored: the error already names record 3 */
    assert_int_equal(err.record, 3);
    assert_null(strstr(err.message, "record 4"));

    stki_fail_memory(&err, 7, "a row");
    stki_fail_record(&err, STK_E_MEMORY, 0);
    assert_string_equal(err.message, "record 0: out of memory: 7 bytes for a row");
    assert_int_equal(err.record, 0);

    memset(path, 'x', sizeof path - 1); /* too long, and with an unprintable byte */
    path[390] = '\033';
    stki_fail_at(&err, STK_E_IO, (stki_place){path, -1, -1, NULL, NULL}, "cannot read");
    stki_fail_record(&err, STK_E_IO, 5);
    assert_non_null(strstr(err.message, "xxx?xxxxxxxx: record 5: cannot read"));

    stki_fail(&err, STK_E_CORRUPT, "nothing happened yet");
    assert_int_equal(stki_fail_record(&err, STK_OK, 5), STK_OK);
    assert_int_equal(err.record, -1);
    assert_int_equal(stki_fail_record(NULL, STK_E_IO, 5), STK_E_IO);
}

static void a_place_is_added(void **state)
{
    stk_error err;

    (void)state;
    stki_fail_at(&err, STK_E_BAD_SHAPE, (stki_place){NULL, -1, -1, "2 x 2", "at least 3 x 3"}, "crop");
    assert_int_equal(stki_fail_place(&err, STK_E_BAD_SHAPE, "a.jpg", 3, "image"), STK_E_BAD_SHAPE);
    assert_string_equal(err.message, "a.jpg: record 3: image: crop: found 2 x 2, expected at least 3 x 3");
    assert_string_equal(err.file, "a.jpg");
    assert_string_equal(err.found, "2 x 2");
    assert_string_equal(err.expected, "at least 3 x 3");
    assert_int_equal(err.record, 3);
    stki_fail_at(&err, STK_E_CORRUPT, (stki_place){NULL, -1, 9, NULL, NULL}, "marker");
    stki_fail_place(&err, STK_E_CORRUPT, "a.jpg", -1, NULL);
    assert_string_equal(err.message, "a.jpg: offset 9: marker");
    assert_int_equal(err.offset, 9);
    assert_int_equal(stki_fail_place(&err, STK_OK, "b.jpg", 3, NULL), STK_OK);
    assert_string_equal(err.file, "a.jpg");
    assert_int_equal(stki_fail_place(NULL, STK_E_IO, "b.jpg", 3, NULL), STK_E_IO);
}

static void ends_of_texts(void **state)
{
    char buffer[8];

    (void)state;
    assert_string_equal(stki_text_end(buffer, 8, "1234567"), "1234567");
    assert_string_equal(stki_text_end(buffer, 8, "12345678"), "...5678");
    assert_string_equal(stki_text_end(buffer, 8, ""), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_texts_are_complete),
        cmocka_unit_test(the_message_alone),
        cmocka_unit_test(places),
        cmocka_unit_test(system_errors),
        cmocka_unit_test(long_texts_keep_what_matters),
        cmocka_unit_test(messages_are_one_clean_line),
        cmocka_unit_test(an_error_may_be_wrapped),
        cmocka_unit_test(a_record_is_added),
        cmocka_unit_test(a_place_is_added),
        cmocka_unit_test(ends_of_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
