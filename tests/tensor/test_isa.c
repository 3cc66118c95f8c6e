/* Tests of the selection of kernels by STOKER_ISA, in child processes because each process selects them only once. */
#include "convert.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Returns the child's exit status, which is 0 if STOKER_ISA=`value` selects `isa` and the note contains `words` (NULL:
 * there must be no note). */
static int decide(const char *value, enum stki_isa isa, const char *words)
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        if (value)
            setenv("STOKER_ISA", value, 1);
        else
            unsetenv("STOKER_ISA");
        const char *note = stki_isa_note();
        bool right = stki_isa() == isa && (words ? note && strstr(note, words) : !note);
        if (!right)
            fprintf(stderr, "STOKER_ISA=%s: selected %s, note '%s'\n", value ? value : "", stki_isa_name(stki_isa()),
                    note ? note : "");
        _exit(!right);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

static enum stki_isa best(void)
{
    return stki_isa_usable(STKI_ISA_AVX512) ? STKI_ISA_AVX512
           : stki_isa_usable(STKI_ISA_AVX2) ? STKI_ISA_AVX2
           : stki_isa_usable(STKI_ISA_NEON) ? STKI_ISA_NEON
                                            : STKI_ISA_REF;
}

static void test_choice(void **unused)
{
    static const enum stki_isa all[] = {STKI_ISA_REF, STKI_ISA_AVX2, STKI_ISA_AVX512, STKI_ISA_NEON};

    (void)unused;
    assert_int_equal(decide(NULL, best(), NULL), 0);
    assert_int_equal(decide("", best(), NULL), 0);
    assert_int_equal(decide("fastest", best(), "unknown"), 0);
    for (int i = 0; i < 4; i++)
        if (stki_isa_usable(all[i]))
            assert_int_equal(decide(stki_isa_name(all[i]), all[i], NULL), 0);
        else
            assert_int_equal(decide(stki_isa_name(all[i]), best(), "not supported"), 0);
}

static void test_names_and_cache(void **unused)
{
    (void)unused;
    assert_string_equal(stki_isa_name(STKI_ISA_REF), "ref");
    assert_string_equal(stki_isa_name(STKI_ISA_NEON), "neon");
    assert_string_equal(stki_isa_name((enum stki_isa)17), "none");
    assert_false(stki_isa_usable((enum stki_isa)17));
    assert_true(stki_cache_bytes() >= 1 << 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_names_and_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
