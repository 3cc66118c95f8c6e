/* Tests of the numbers and times on the progress line, and of when it has colors. */
#include "live_line.h"
#include "stk_test.h"
#include <stdlib.h>

static void test_numbers(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},         {3, "3"},          {999, "999"},      {1000, "1.00k"}, {9830, "9.83k"},
                 {98300, "98.3k"}, {999600, "1.00M"}, {1.46e9, "1.46G"}, {2e15, "2.00P"}, {3e18, "3000P"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(LIVE_SHORT(cases[i].value), cases[i].text);
}

static void test_times(void **state)
{
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{0, "0s"},         {0.4, "0s"},       {59.4, "59s"},   {59.6, "1m00s"},
                 {250, "4m10s"},    {3599.7, "1h00m"}, {7500, "2h05m"}, {86400, "1d00h"},
                 {273600, "3d04h"}, {-1, "?"},         {1e12, "?"},     {0.0 / 0.0, "?"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(LIVE_TIME(cases[i].seconds), cases[i].text);
}

/* A test's stderr may be a terminal or not; with an empty TERM or "dumb" it never gets colors. */
static void test_environment(void **state)
{
    (void)state;
    setenv("TERM", "dumb", 1);
    assert_false(live_is_terminal(2));
    unsetenv("TERM");
    assert_false(live_is_terminal(2));
    assert_false(live_takes_color(2));
    assert_true(live_columns() >= 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_times),
                                       cmocka_unit_test(test_environment)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
