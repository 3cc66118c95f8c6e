/* leak_check.h: a group setup and teardown that report tensors which a test program did not release and where these
 * were created: cmocka_run_group_tests(tests, stkt_leak_setup, stkt_leak_teardown). Debug builds only. */
#ifndef STKT_LEAK_CHECK_H
#define STKT_LEAK_CHECK_H

#include "stk_test.h"
#include <stoker/profile.h>

static inline int stkt_leak_setup(void **unused)
{
    (void)unused;
#ifdef STKI_POISON
    stk_memory_record_start();
#endif
    return 0;
}

static inline int stkt_leak_teardown(void **unused)
{
    char *text = NULL;
    int64_t count = 0;
    stk_error err;

    (void)unused;
    assert_ok(stk_memory_leaks(&text, &count, &err));
    if (count > 0) {
        fprintf(stderr, "%lld storages were not released:\n%s", (long long)count, text);
        exit(1); /* after a failed teardown cmocka still returns 0 */
    }
    stk_text_free(text);
    stk_memory_record_stop();
    return 0;
}

#endif
