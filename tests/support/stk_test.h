/* stk_test.h: included by all tests: cmocka with its headers in order, and assertions that print the message of an
 * error. */
#ifndef STKT_TEST_H
#define STKT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/status.h>
#include <string.h>

/* Fails the test with the message of `err`, a local stk_error, unless the call succeeded. */
#define assert_ok(call)                                                                \
    do {                                                                               \
        stk_status stkt_status_ = (call);                                              \
        if (stkt_status_ != STK_OK)                                                    \
            fail_msg("%s: %s: %s", #call, stk_status_name(stkt_status_), err.message); \
    } while (0)

/* The call must return exactly this status, and an error must have a message. */
#define assert_status(call, expected)                                                                   \
    do {                                                                                                \
        stk_status stkt_status_;                                                                        \
        memset(&err, 0, sizeof err);                                                                    \
        stkt_status_ = (call);                                                                          \
        if (stkt_status_ != (expected))                                                                 \
            fail_msg("%s: got %s (%s), expected %s", #call, stk_status_name(stkt_status_), err.message, \
                     stk_status_name(expected));                                                        \
        if ((expected) < 0 && !err.message[0])                                                          \
            fail_msg("%s: %s without a message", #call, stk_status_name(stkt_status_));                 \
    } while (0)

/* The message of `err` contains this text. */
#define assert_says(text)                                                      \
    do {                                                                       \
        if (!strstr(err.message, text))                                        \
            fail_msg("message \"%s\" does not say \"%s\"", err.message, text); \
    } while (0)

/* Creates a directory under TMPDIR (or /tmp); stkt_remove_dir removes it with its contents. Returns a static buffer. */
static inline const char *stkt_make_dir(void)
{
    static char path[512];
    const char *base = getenv("TMPDIR");

    snprintf(path, sizeof path, "%s/stoker-test-XXXXXX", base ? base : "/tmp");
    return mkdtemp(path);
}

static inline void stkt_remove_dir(const char *path)
{
    char command[600];

    snprintf(command, sizeof command, "rm -rf '%s'", path);
    if (system(command) != 0)
        fprintf(stderr, "cannot remove %s\n", path);
}

#endif
