/* cmocka.h: the functions of cmocka that the tests of kernels and devices use, for machines without it: emulated
 * aarch64 (scripts/test-aarch64) and GPU machines with little software (scripts/gpu-check). It supports one source file
 * per program. A failed assertion ends its test, and the program continues with the next one; a failure on another
 * thread ends the program. */
#ifndef STKT_SMALL_CMOCKA_H
#define STKT_SMALL_CMOCKA_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
    int (*setup)(void **state);
    int (*teardown)(void **state);
};

#define cmocka_unit_test(function)      \
    {                                   \
#function, function, NULL, NULL \
    }
#define cmocka_unit_test_setup_teardown(function, setup, teardown) \
    {                                                              \
#function, function, setup, teardown                       \
    }
#define cmocka_unit_test_setup(function, setup) \
    {                                           \
#function, function, setup, NULL        \
    }
#define cmocka_unit_test_teardown(function, teardown) \
    {                                                 \
#function, function, NULL, teardown           \
    }

enum { STKT_FAILED = 1, STKT_SKIPPED = 2 };

static jmp_buf stkt_end_of_test;
static pthread_t stkt_main_thread;

static inline void stkt_end(int how) __attribute__((noreturn));
static inline void stkt_end(int how)
{
    if (!pthread_equal(pthread_self(), stkt_main_thread))
        exit(1);
    longjmp(stkt_end_of_test, how);
}

static inline void stkt_fail(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));
static inline void stkt_fail(const char *file, int line, const char *format, ...)
{
    va_list values;

    printf("%s:%d: ", file, line);
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    printf("\n");
    fflush(stdout);
    stkt_end(STKT_FAILED);
}

#define fail_msg(...) stkt_fail(__FILE__, __LINE__, __VA_ARGS__)
#define fail() fail_msg("failed")
#define skip() stkt_end(STKT_SKIPPED)
#define assert_true(x) ((x) ? (void)0 : fail_msg("%s", #x))
#define assert_false(x) assert_true(!(x))
#define assert_null(x) assert_true((x) == NULL)
#define assert_non_null(x) assert_true((x) != NULL)
#define assert_ptr_equal(a, b) ((const void *)(a) == (const void *)(b) ? (void)0 : fail_msg("%s is not %s", #a, #b))
#define assert_ptr_not_equal(a, b) ((const void *)(a) != (const void *)(b) ? (void)0 : fail_msg("%s is %s", #a, #b))
#define assert_int_equal(a, b) \
    ((long long)(a) == (long long)(b) ? (void)0 : fail_msg("%s is %lld, not %lld", #a, (long long)(a), (long long)(b)))
#define assert_int_not_equal(a, b) \
    ((long long)(a) != (long long)(b) ? (void)0 : fail_msg("%s is %lld", #a, (long long)(a)))
#define assert_in_range(value, low, high)                              \
    ((unsigned long long)(value) >= (unsigned long long)(low) &&       \
             (unsigned long long)(value) <= (unsigned long long)(high) \
         ? (void)0                                                     \
         : fail_msg("%s is %llu", #value, (unsigned long long)(value)))
#define assert_string_equal(a, b) \
    (strcmp(a, b) == 0 ? (void)0 : fail_msg("%s is \"%s\", not \"%s\"", #a, (const char *)(a), (const char *)(b)))
#define assert_string_not_equal(a, b) (strcmp(a, b) ? (void)0 : fail_msg("%s is \"%s\"", #a, (const char *)(a)))
#define assert_memory_equal(a, b, size) assert_true(memcmp(a, b, size) == 0)
#define assert_memory_not_equal(a, b, size) assert_true(memcmp(a, b, size) != 0)

static inline int stkt_run_one(const struct CMUnitTest *test, void **state)
{
    int how = setjmp(stkt_end_of_test);

    if (how == 0) {
        if (test->setup && test->setup(state))
            how = STKT_FAILED;
        else
            test->run(state);
        if (test->teardown && test->teardown(state))
            how = STKT_FAILED;
    }
    printf("[%s] %s\n", how == 0 ? "       OK " : how == STKT_SKIPPED ? "  SKIPPED " : "  FAILED  ", test->name);
    fflush(stdout);
    return how == STKT_FAILED;
}

/* If STKT_ONLY, a list of names separated by spaces, is set in the environment, only these tests run. */
static inline int stkt_is_wanted(const char *name)
{
    const char *only = getenv("STKT_ONLY"), *at = only;
    size_t length = strlen(name);

    if (!only || !*only)
        return 1;
    for (; (at = strstr(at, name)) != NULL; at++)
        if ((at == only || at[-1] == ' ') && (at[length] == '\0' || at[length] == ' '))
            return 1;
    return 0;
}

static inline int stkt_run(const struct CMUnitTest *tests, size_t count, int (*setup)(void **),
                           int (*teardown)(void **))
{
    void *state = NULL;
    int failed = 0;

    stkt_main_thread = pthread_self();
    if (setup && setup(&state))
        return 1;
    for (size_t i = 0; i < count; i++)
        if (stkt_is_wanted(tests[i].name))
            failed += stkt_run_one(&tests[i], &state);
    return (teardown && teardown(&state)) || failed;
}
#define cmocka_run_group_tests(tests, setup, teardown) \
    stkt_run(tests, sizeof(tests) / sizeof(tests)[0], setup, teardown)
#define cmocka_run_group_tests_name(name, tests, setup, teardown) cmocka_run_group_tests(tests, setup, teardown)

#endif
