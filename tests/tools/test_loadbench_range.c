/* Tests of the values of a sweep: lists, ranges with additive and multiplicative steps, units, strings with commas, and
 * errors. */
#include "allocate.h"
#include "faults.h"
#include "loadbench_range.h"
#include "loadbench_sweep.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The values, separated by spaces. */
static const char *values_of(const char *text)
{
    static char joined[4096];
    struct lb_range range;
    stk_error err;
    size_t used = 0;

    joined[0] = '\0';
    if (lb_range_read("--sweep", text, &range, &err) != STK_OK) {
        snprintf(joined, sizeof joined, "%s", err.message);
    } else {
        for (int i = 0; i < range.count; i++)
            used += (size_t)snprintf(joined + used, sizeof joined - used, "%s%s", i ? " " : "", range.values[i]);
    }
    lb_range_fini(&range);
    return joined;
}

static void lists_and_ranges(void **state)
{
    static const struct {
        const char *text, *values;
    } cases[] = {
        {"a.b=0,1,2,4", "0 1 2 4"},
        {"a.b=7", "7"},
        {"a.b=2..4", "2 3 4"},
        {"a.b=2..8+2", "2 4 6 8"},
        {"a.b=2..9+3", "2 5 8"},
        {"a.b=64..1024*2", "64 128 256 512 1024"},
        {"a.b=64..1000*2", "64 128 256 512"},
        {"a.b=1..2*1.5", "1 1.5"},
        {"a.b=0.1..0.7+0.1", "0.1 0.2 0.3 0.4 0.5 0.6 0.7"}, /* the last value is not lost by rounding */
        {"a.b=-2..2+2", "-2 0 2"},
        {"a.b=5..5", "5"},
        {"a.b=1,8..10,100", "1 8 9 10 100"},
        {"a.b=64KiB..1MiB*4", "64KiB 256KiB 1024KiB"},
        {"a.b=64KiB..256KiB+64KiB", "64KiB 128KiB 192KiB 256KiB"},
        {"a.b=1ms..4ms*2", "1ms 2ms 4ms"},
        {"a.b=500us..1ms+250us", "500us 750us 1000us"},
        {"a.b=mmap,pread", "mmap pread"},
        {"a.b=../x.npy,y..z", "../x.npy y..z"}, /* two dots do not always mean a range */
        {"a.b=[1, 2],{x: [3, 4]},\"5,6\"", "[1, 2] {x: [3, 4]} \"5,6\""},
        {"a.b=x=1,y=2", "x=1 y=2"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(values_of(cases[i].text), cases[i].values);
}

static void errors_say_what_is_wrong(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "expected KEY=VALUES"},
        {"a.b", "found \"a.b\", expected KEY=VALUES"},
        {"=1", "expected KEY=VALUES"},
        {"a.b=", "expected KEY=VALUES"},
        {"a.b=1,", "a value is missing"},
        {"a.b=,1", "a value is missing"},
        {"a.b=1,,2", "a value is missing"},
        {"a.b=1..", "expected numbers before and after"},
        {"a.b=1..x", "expected numbers before and after"},
        {"a.b=1..4+", "expected a number after + or *"},
        {"a.b=1..4*x", "expected a number after + or *"},
        {"a.b=4..1", "ends below its start"},
        {"a.b=1..4+0", "the step must be larger than 0"},
        {"a.b=1..4+-1", "the step must be larger than 0"},
        {"a.b=1..4*1", "the factor must be larger than 1"},
        {"a.b=0..4*2", "must start above 0"},
        {"a.b=1ms..4MiB*2", "different units"},
        {"a.b=1..4ms", "different units"},
        {"a.b=1ms..4ms+1MiB", "different units"},
        {"a.b=1ms..4ms*2ms", "different units"},
        {"a.b=0..1000000", "more than 1000 values"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *message = values_of(cases[i].text);
        if (!strstr(message, cases[i].message) || strncmp(message, "--sweep: ", 9) != 0)
            fail_msg("%s: %s", cases[i].text, message);
    }
}

/* Each allocation fails in turn: the error says so, and nothing leaks. */
static void memory_runs_out(void **state)
{
    static const char *const texts[] = {"a.b=1,2..4", "c.d=x,y"};
    bool done = false;

    (void)state;
    for (int64_t n = 1; !done; n++) {
        struct lb_sweep sweep;
        stk_error err;
        stki_memory_fail_at(n);
        const stk_status status = lb_sweep_init(texts, 2, &sweep, &err);
        stki_memory_fail_at(0);
        assert_true(status == STK_OK || status == STK_E_MEMORY);
        done = status == STK_OK;
        assert_true(!done || sweep.points == 8);
        lb_sweep_fini(&sweep);
        assert_true(n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_and_ranges),
        cmocka_unit_test(errors_say_what_is_wrong),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
