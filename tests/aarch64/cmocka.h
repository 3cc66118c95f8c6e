/* cmocka.h: the few calls of cmocka that the tests of the conversion kernels use, for a statically linked aarch64
 * program (scripts/test-aarch64) where there is no cmocka to link. The first failure ends the program.
 */
#ifndef STKT_AARCH64_CMOCKA_H
#define STKT_AARCH64_CMOCKA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};

#define cmocka_unit_test(function) \
    {                              \
#function, function        \
    }

#define fail_msg(...) (printf("%s:%d: ", __FILE__, __LINE__), printf(__VA_ARGS__), printf("\n"), exit(1))
#define fail() fail_msg("failed")
#define assert_true(x) ((x) ? (void)0 : fail_msg("%s", #x))
#define assert_false(x) assert_true(!(x))
#define assert_null(x) assert_true((x) == NULL)
#define assert_non_null(x) assert_true((x) != NULL)
#define assert_int_equal(a, b) \
    ((long long)(a) == (long long)(b) ? (void)0 : fail_msg("%s is %lld, not %lld", #a, (long long)(a), (long long)(b)))
#define assert_string_equal(a, b) \
    (strcmp(a, b) == 0 ? (void)0 : fail_msg("%s is \"%s\", not \"%s\"", #a, (const char *)(a), (const char *)(b)))
#define assert_memory_equal(a, b, size) assert_true(memcmp(a, b, size) == 0)

static inline int stkt_run(const struct CMUnitTest *tests, size_t count, int (*setup)(void **),
                           int (*teardown)(void **))
{
    void *state = NULL;

    if (setup && setup(&state))
        return 1;
    for (size_t i = 0; i < count; i++) {
        tests[i].run(&state);
        printf("[       OK ] %s\n", tests[i].name);
    }
    return teardown ? teardown(&state) : 0;
}
#define cmocka_run_group_tests(tests, setup, teardown) \
    stkt_run(tests, sizeof(tests) / sizeof(tests)[0], setup, teardown)

#endif
