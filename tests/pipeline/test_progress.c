/* Tests of the prefix of released steps against a model that stores every step, with random releases and restarts. */
#include "progress.h"
#include "stk_test.h"
#include "test_random.h"
#include <stdbool.h>

enum { STEPS = 2000, OUT = 8 };

static stki_totals totals_at(int64_t step) /* of the steps before `step`, each adding its number + 1 */
{
    uint64_t sum = (uint64_t)(step * (step + 1) / 2);

    return (stki_totals){.digest = {sum, sum >> 7}, .failed = step};
}

static void check(stki_progress *progress, const bool *released, int64_t delivered)
{
    int64_t step, first = 0;
    stki_totals before, expected;

    while (first < delivered && released[first])
        first++;
    stki_progress_position(progress, &step, &before);
    assert_int_equal(step, first);
    expected = totals_at(first);
    assert_memory_equal(&before, &expected, sizeof before);
    stki_progress_delivered(progress, &step, &before);
    assert_int_equal(step, delivered);
    expected = totals_at(delivered);
    assert_memory_equal(&before, &expected, sizeof before);
}

static void the_prefix_of_released_steps(void **state)
{
    uint64_t random = 1;
    stki_progress *progress;
    bool released[STEPS] = {false};
    int64_t step_of[OUT];
    int lease_of[OUT], out = 0;
    int64_t delivered = 0;

    (void)state;
    assert_int_equal(stki_progress_create(OUT, 0, &progress, NULL), STK_OK);
    check(progress, released, 0);
    while (delivered < STEPS || out > 0) {
        if (delivered < STEPS && out < OUT && (out == 0 || stkt_random(&random) % 2)) {
            stki_totals after = totals_at(delivered + 1);

            step_of[out] = delivered;
            lease_of[out++] = stki_progress_deliver(progress, delivered++, &after);
        } else {
            int which = (int)(stkt_random(&random) % (uint64_t)out);

            stki_progress_release(progress, lease_of[which]);
            released[step_of[which]] = true;
            step_of[which] = step_of[--out];
            lease_of[which] = lease_of[out];
        }
        check(progress, released, delivered);
    }
    stki_progress_destroy(progress);
}

/* A batch that is held while a thousand others are released holds the position back, and memory does not grow. */
static void one_is_held_for_long(void **state)
{
    stki_progress *progress;
    stki_totals after = totals_at(6), before, expected = totals_at(5);
    int64_t step;
    int held;

    (void)state;
    assert_int_equal(stki_progress_create(2, 5, &progress, NULL), STK_OK);
    stki_progress_restart(progress, 5, &expected);
    held = stki_progress_deliver(progress, 5, &after);
    for (int64_t i = 6; i < 1006; i++) {
        after = totals_at(i + 1);
        stki_progress_release(progress, stki_progress_deliver(progress, i, &after));
    }
    stki_progress_position(progress, &step, &before);
    assert_int_equal(step, 5);
    assert_memory_equal(&before, &expected, sizeof before);
    stki_progress_release(progress, held);
    stki_progress_position(progress, &step, &before);
    assert_int_equal(step, 1006);
    stki_progress_destroy(progress);
    stki_progress_destroy(NULL);
}

static void a_restart_forgets_leased_steps(void **state)
{
    stki_progress *progress;
    stki_totals after = totals_at(1), from = totals_at(100), before;
    int64_t step;
    int old, new;

    (void)state;
    assert_int_equal(stki_progress_create(2, 0, &progress, NULL), STK_OK);
    old = stki_progress_deliver(progress, 0, &after);
    stki_progress_restart(progress, 100, &from);
    stki_progress_position(progress, &step, &before);
    assert_int_equal(step, 100);
    assert_memory_equal(&before, &from, sizeof before);
    after = totals_at(101);
    new = stki_progress_deliver(progress, 100, &after);
    stki_progress_release(progress, old);
    stki_progress_position(progress, &step, &before);
    assert_int_equal(step, 100);
    stki_progress_release(progress, new);
    stki_progress_position(progress, &step, &before);
    assert_int_equal(step, 101);
    stki_progress_destroy(progress);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_prefix_of_released_steps),
        cmocka_unit_test(one_is_held_for_long),
        cmocka_unit_test(a_restart_forgets_leased_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
