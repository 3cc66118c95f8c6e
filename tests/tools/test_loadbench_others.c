/* Tests of the CPU time of other processes, computed from lines of /proc/stat in the forms that systems write,
 * and of when it is not reliable. */
#include "loadbench_others.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define STEP INT64_C(10000000) /* 100 per second */
#define SECOND INT64_C(1000000000)

/* Parses the text of a /proc/stat for the first two processors, or the second and the fourth. */
static struct lb_load parse(const char *text, const int *processors)
{
    FILE *stat = fmemopen((void *)(uintptr_t)text, strlen(text) + 1, "r");
    struct lb_load load;
    cpu_set_t set;

    assert_non_null(stat);
    CPU_ZERO(&set);
    CPU_SET((size_t)processors[0], &set);
    CPU_SET((size_t)processors[1], &set);
    lb_load_parse(stat, &set, STEP, &load);
    fclose(stat);
    return load;
}

static const int first_two[] = {0, 1}, odd_ones[] = {1, 3};

static const char four[] = "cpu  1000 100 500 80000 200 30 70 9 400 0\n"
                           "cpu0 100 10 50 8000 20 3 7 2 40 0\n"
                           "cpu1 200 20 60 9000 30 4 8 3 50 0\n"
                           "cpu2 300 30 70 7000 40 5 9 1 60 0\n"
                           "cpu3 400 40 80 6000 50 6 10 4 70 0\n"
                           "intr 12345 0 0 cpu1 7\nctxt 1\nbtime 1700000000\n";

/* Guest time is included in user and nice time, so it is not added again. */
static void lines_of_the_processors_that_may_be_used(void **state)
{
    struct lb_load load = parse(four, first_two);

    (void)state;
    assert_true(load.known);
    assert_int_equal(load.processors, 2);
    assert_int_equal(load.busy_ns, (100 + 10 + 50 + 3 + 7 + 2 + 200 + 20 + 60 + 4 + 8 + 3) * STEP);
    assert_int_equal(load.idle_ns, (8000 + 20 + 9000 + 30) * STEP);
    load = parse(four, odd_ones);
    assert_true(load.known);
    assert_int_equal(load.busy_ns, (200 + 20 + 60 + 4 + 8 + 3 + 400 + 40 + 80 + 6 + 10 + 4) * STEP);
}

/* Early kernel versions had four columns. */
static void old_and_broken_lines(void **state)
{
    struct lb_load load = parse("cpu  5 6 7 8\ncpu0 1 2 3 4\ncpu1 10 20 30 40", first_two);

    (void)state;
    assert_true(load.known);
    assert_int_equal(load.busy_ns, 66 * STEP);
    assert_int_equal(load.idle_ns, 44 * STEP);
    for (int i = 0; i < 4; i++) {
        static const char *const texts[] = {"", "cpu  5 6 7 8\n", "cpu0 1 2 3 4\n", "cpu0 1 2 3 4\ncpu1 1 2 x\n"};
        load = parse(texts[i], first_two);
        assert_false(load.known);
        assert_non_null(strstr(load.why, "of the 2 processors"));
    }
}

/* Two processors over one second: both clocks advance by 100 steps each. */
static struct lb_load later(const struct lb_load *from, double busy_s, double own_s)
{
    struct lb_load to = *from;

    to.at_ns += SECOND;
    to.own_ns += (int64_t)(own_s * 1e9);
    to.busy_ns += (int64_t)(busy_s * 1e9);
    to.idle_ns += (int64_t)((from->processors - busy_s) * 1e9);
    return to;
}

static const struct lb_load start = {.known = true,
                                     .processors = 2,
                                     .step_ns = STEP,
                                     .busy_ns = 77 * SECOND,
                                     .idle_ns = 99 * SECOND,
                                     .own_ns = SECOND / 2,
                                     .at_ns = 1000};

static void other_processes_used_the_rest(void **state)
{
    struct lb_load to = later(&start, 1.9, 0.6);
    struct lb_others others;

    (void)state;
    lb_others_between(&start, &to, 0, &others);
    assert_true(others.known);
    assert_int_equal(others.processors, 2);
    assert_float_equal(others.used, 1.3, 1e-6);
    to = later(&start, 0.98,
               1); /* busy time is rounded down to clock steps and can be less than this process's own: 0 */
    lb_others_between(&start, &to, 0, &others);
    assert_true(others.known);
    assert_float_equal(others.used, 0, 1e-9);
}

/* Runnable threads without a processor, summed from schedstat; if a thread has ended, the sum is unknown. */
static void threads_without_a_processor(void **state)
{
    struct lb_load from = start, to = later(&start, 1.9, 0.6);
    struct lb_others each[2];

    (void)state;
    from.queued_ns = 5 * SECOND, to.queued_ns = 7 * SECOND;
    lb_others_between(&from, &to, 0, &each[0]);
    assert_float_equal(each[0].queued, 2, 1e-6);
    to.queued_ns = from.queued_ns;
    lb_others_between(&from, &to, 0, &each[1]);
    assert_float_equal(each[1].queued, 0, 1e-9);
    to.queued_ns = from.queued_ns - 1;
    lb_others_between(&from, &to, 0, &each[1]);
    assert_true(each[1].known && each[1].queued < 0);
    from.queued_ns = -1;
    lb_others_between(&from, &to, 0, &each[1]);
    assert_true(each[1].queued < 0);
    to = later(&start, 2.1, 0.05); /* at most the time of all processors */
    to.idle_ns = start.idle_ns;
    lb_others_between(&start, &to, 0, &each[0]);
    assert_float_equal(each[0].used, 2, 1e-6);
}

/* With a quota of 2 of 8 processors, other processes always have 6. */
static void a_quota_leaves_room_for_others(void **state)
{
    struct lb_load from = start, to;
    struct lb_others others;

    (void)state;
    from.processors = 8;
    to = later(&from, 6.5, 1.5);
    lb_others_between(&from, &to, 2, &others);
    assert_float_equal(others.used, 0, 1e-9);
    to = later(&from, 8, 1.5);
    lb_others_between(&from, &to, 2, &others);
    assert_float_equal(others.used, 0.5, 1e-6);
    lb_others_between(&from, &to, 16, &others); /* a quota above the number of processors is no limit */
    assert_float_equal(others.used, 6.5, 1e-6);
}

static void implausible_values_are_unknown(void **state)
{
    struct lb_load to = later(&start, 1.9, 0.6), from = start;
    struct lb_others others;

    (void)state;
    from.known = false;
    strcpy(from.why, "/proc/stat cannot be read");
    lb_others_between(&from, &to, 0, &others);
    assert_false(others.known);
    assert_string_equal(others.why, "/proc/stat cannot be read");
    from = start;
    to.busy_ns = start.busy_ns, to.idle_ns = start.idle_ns; /* zeros, as in a sandbox */
    lb_others_between(&from, &to, 0, &others);
    assert_false(others.known);
    assert_non_null(strstr(others.why, "its clocks advanced by 0 s per processor"));
    to = later(&start, 0.1, 1.2); /* /proc/stat describes other processors */
    lb_others_between(&from, &to, 0, &others);
    assert_false(others.known);
    assert_non_null(strstr(others.why, "this process used 1.2 s of CPU time, but /proc/stat counts only 0.1 s"));
    to = later(&start, 1, 0.5);
    to.processors = 1;
    lb_others_between(&from, &to, 0, &others);
    assert_false(others.known);
    assert_non_null(strstr(others.why, "changed"));
    to = start;
    to.at_ns += 50000000;
    to.idle_ns += 100000000;
    lb_others_between(&from, &to, 0, &others);
    assert_false(others.known);
    assert_non_null(strstr(others.why, "0.05 s is too short for clocks with a resolution of 10 ms"));
}

static void repeats_together(void **state)
{
    struct lb_others each[3] = {
        {.known = true, .processors = 2, .used = 0.1, .span_ns = SECOND},
        {.known = true, .processors = 2, .used = 0.14, .span_ns = SECOND},
        {.known = true, .processors = 2, .used = 0.16, .span_ns = 2 * SECOND},
    };
    struct lb_quiet quiet;

    (void)state;
    lb_quiet_of(each, 2, &quiet);
    assert_true(quiet.known);
    assert_int_equal(quiet.loud, 0);
    assert_float_equal(quiet.used, 0.12, 1e-9);
    lb_quiet_of(each, 3, &quiet);
    assert_int_equal(quiet.loud, 1);
    assert_int_equal(quiet.repeats, 3);
    assert_float_equal(quiet.used, 0.14, 1e-9);
    assert_float_equal(quiet.most, 0.16, 1e-9);
    each[0] = (struct lb_others){.processors = 2, .why = "so"};
    lb_quiet_of(each, 3, &quiet);
    assert_false(quiet.known);
    assert_string_equal(quiet.why, "so");
    assert_int_equal(quiet.loud, 1); /* known nevertheless */
    lb_quiet_of(each, 0, &quiet);
    assert_false(quiet.known);
}

/* The values of this machine are unknown but must be plausible. */
static void reading(void **state)
{
    struct lb_load load;

    (void)state;
    lb_load_read(&load);
    assert_true(load.known || load.why[0]);
    if (load.known) {
        assert_true(load.processors >= 1 && load.step_ns > 0);
        assert_true(load.busy_ns >= 0 && load.own_ns >= 0 && load.at_ns > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_the_processors_that_may_be_used),
        cmocka_unit_test(old_and_broken_lines),
        cmocka_unit_test(other_processes_used_the_rest),
        cmocka_unit_test(threads_without_a_processor),
        cmocka_unit_test(a_quota_leaves_room_for_others),
        cmocka_unit_test(implausible_values_are_unknown),
        cmocka_unit_test(repeats_together),
        cmocka_unit_test(reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
