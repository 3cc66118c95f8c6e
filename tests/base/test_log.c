/* Tests of the debug log: enabling topics by call and by environment variable, and what is written to stderr. */
#include "cmocka_all.h"
#include "log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program;

/* Runs `act` in a child process and captures what it writes to stderr. */
static void capture(void (*act)(void), char *text, int size)
{
    int ends[2], status;
    ssize_t got, used = 0;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        act();
        _exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + used, (size_t)(size - 1 - used))) > 0)
        used += got;
    text[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void say(void)
{
    char long_text[3000];

    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    stki_log(STKI_LOG_io, "not on");
    if (stki_log_enable("ring,config", NULL) != STK_OK)
        _exit(1);
    stki_log(STKI_LOG_ring, "slot %d is %s", 3, "ready");
    stki_log(STKI_LOG_config, "100 %%");
    stki_log(STKI_LOG_io, "still not on");
    stki_log(STKI_LOG_ring, "%s", long_text);
}

static void topics_that_are_on_are_written(void **state)
{
    char text[4096];

    (void)state;
    capture(say, text, sizeof text);
    assert_memory_equal(text, "stoker: ring: slot 3 is ready\nstoker: config: 100 %\nstoker: ring: xxx",
                        strlen("stoker: ring: slot 3 is ready\nstoker: config: 100 %\nstoker: ring: xxx"));
    assert_int_equal(text[strlen(text) - 1], '\n');
    assert_null(strstr(text, "not on"));
}

static void unknown_topics_are_named(void **state)
{
    stk_error err;

    (void)state;
    assert_int_equal(stki_log_enable("ring,wroker", &err), STK_E_CONFIG);
    assert_string_equal(err.message,
                        "debug topic: found \"wroker\", expected all, config, io, order, ring, worker, plan or "
                        "memory; did you mean worker?");
    assert_false(stki_log_on(STKI_LOG_ring)); /* an invalid list enables nothing */
    assert_int_equal(stki_log_enable("", &err), STK_E_CONFIG);
    assert_int_equal(stki_log_enable("ring,", &err), STK_E_CONFIG);
    assert_int_equal(stki_log_enable("xyzzyxyzzy", NULL), STK_E_CONFIG);
}

static void all_means_all(void **state)
{
    (void)state;
    assert_int_equal(stki_log_enable("io", NULL), STK_OK);
    assert_true(stki_log_on(STKI_LOG_io));
    assert_false(stki_log_on(STKI_LOG_memory));
    assert_int_equal(stki_log_enable("all", NULL), STK_OK);
    assert_true(stki_log_on(STKI_LOG_config) && stki_log_on(STKI_LOG_memory));
}

static void run_with_topics(void)
{
    setenv("STOKER_DEBUG", "plan", 1);
    execl(program, program, "--speak", (char *)NULL);
    _exit(1);
}

static void run_with_wrong_topics(void)
{
    setenv("STOKER_DEBUG", "plam", 1);
    execl(program, program, "--speak", (char *)NULL);
    _exit(1);
}

static void the_environment_enables_topics(void **state)
{
    char text[1024];

    (void)state;
    capture(run_with_topics, text, sizeof text);
    assert_string_equal(text, "stoker: plan: spoken\n");
    capture(run_with_wrong_topics, text, sizeof text);
    assert_memory_equal(text, "stoker: STOKER_DEBUG: debug topic: found \"plam\"", 47);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topics_that_are_on_are_written),
        cmocka_unit_test(unknown_topics_are_named),
        cmocka_unit_test(all_means_all),
        cmocka_unit_test(the_environment_enables_topics),
    };

    program = argv[0];
    if (argc == 2 && strcmp(argv[1], "--speak") == 0) {
        stki_log(STKI_LOG_plan, "spoken");
        stki_log(STKI_LOG_ring, "silent");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
