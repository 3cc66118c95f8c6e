/* Tests of the string builder: appending, and allocation failures that are reported when the string is taken. */
#include "allocate.h"
#include "faults.h"
#include "stk_test.h"
#include "text_build.h"

static void test_growing(void **unused)
{
    stki_text_build build = {0};
    char *text, expected[4096] = "";

    (void)unused;
    for (int i = 0; i < 300; i++) {
        stki_putf(&build, "%d,", i);
        sprintf(expected + strlen(expected), "%d,", i);
    }
    stki_put_many(&build, 'x', 5);
    stki_put_many(&build, 'y', 0);
    stki_put_many(&build, 'y', -3);
    stki_put_bytes(&build, "abcdef", 3);
    stki_put(&build, "!");
    strcat(expected, "xxxxxabc!");
    assert_int_equal(build.length, strlen(expected));
    text = stki_text_take(&build);
    assert_string_equal(text, expected);
    stk_text_free(text);
    text = stki_text_take(&build); /* the builder is empty again */
    assert_string_equal(text, "");
    stk_text_free(text);
    stk_text_free(NULL);
}

static void test_failing(void **unused)
{
    stki_memory_stats before, after;
    stki_text_build build = {0};

    (void)unused;
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int n = 1; n <= 3; n++) {
        stki_memory_fail_at(n);
        for (int i = 0; i < 1000; i++)
            stki_put(&build, "text");
        stki_memory_fail_at(0);
        assert_true(build.failed);
        assert_null(stki_text_take(&build));
        stki_memory_read(STKI_MEM_HOST, &after);
        assert_int_equal(after.blocks, before.blocks);
    }
    stki_put_bytes(&build, "", INT64_MAX);
    assert_null(stki_text_take(&build));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_growing), cmocka_unit_test(test_failing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
