/* Tests of the model of a pipeline against times computed by hand. */
#include "loadbench_model.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS 1e-3

static void assert_ms(const struct lb_model model, double expected)
{
    const double found = 1e3 * lb_model_batch_s(&model);
    assert_true(found > expected * 0.9999 && found < expected * 1.0001);
}

/* With many slots, the slowest part determines the time. */
static void the_slowest_decides(void **state)
{
    (void)state;
    assert_ms((struct lb_model){.workers = 1, .slots = 8, .work_s = 10 * MS, .consumer_s = 1 * MS}, 10);
    assert_ms((struct lb_model){.workers = 4, .slots = 8, .work_s = 10 * MS, .consumer_s = 1 * MS}, 2.5);
    assert_ms((struct lb_model){.workers = 4, .slots = 8, .work_s = 10 * MS, .consumer_s = 7 * MS}, 7);
    assert_ms(
        (struct lb_model){
            .workers = 4, .slots = 8, .device_slots = 2, .work_s = 10 * MS, .copy_s = 9 * MS, .consumer_s = 7 * MS},
        9);
}

static void one_thread_does_one_thing_after_the_other(void **state)
{
    (void)state;
    assert_ms((struct lb_model){.workers = 0, .slots = 4, .work_s = 10 * MS, .consumer_s = 3 * MS}, 13);
}

/* With one slot, filling and using alternate. With two, one slot is filled while the other is in use. */
static void few_slots_force_alternation(void **state)
{
    (void)state;
    assert_ms((struct lb_model){.workers = 1, .slots = 1, .work_s = 5 * MS, .consumer_s = 4 * MS}, 9);
    assert_ms((struct lb_model){.workers = 1, .slots = 2, .work_s = 5 * MS, .consumer_s = 4 * MS}, 5);
    /* four workers, two slots, one tile per batch: two batches at a time */
    assert_ms((struct lb_model){.workers = 4, .slots = 2, .work_s = 8 * MS, .consumer_s = 0}, 4);
    /* with four tiles per batch, all workers are busy */
    assert_ms((struct lb_model){.workers = 4, .slots = 2, .tiles = 4, .work_s = 8 * MS, .consumer_s = 0}, 2);
}

/* With one slot on the device, copying waits until the previous batch was used. */
static void device_slots_hold_the_copy_back(void **state)
{
    const struct lb_model model = {
        .workers = 2, .slots = 4, .device_slots = 1, .work_s = 2 * MS, .copy_s = 3 * MS, .consumer_s = 4 * MS};
    struct lb_model more = model;

    (void)state;
    assert_ms(model, 7);
    more.device_slots = 2;
    assert_ms(more, 4);
}

static void processors_limit_the_rate(void **state)
{
    (void)state;
    assert_ms((struct lb_model){.workers = 8, .slots = 16, .work_s = 8 * MS, .cpu_s = 8 * MS, .cores = 2}, 4);
    assert_ms((struct lb_model){.workers = 8, .slots = 16, .work_s = 8 * MS, .cpu_s = 0.1 * MS, .cores = 2}, 1);
    assert_ms((struct lb_model){.workers = 0, .slots = 1, .work_s = 1 * MS, .cpu_s = 8 * MS, .cores = 2}, 4);
}

/* Impossible numbers are replaced by the nearest possible ones. */
static void impossible_numbers_are_replaced(void **state)
{
    (void)state;
    assert_ms((struct lb_model){.workers = -3, .slots = 0, .tiles = 0, .work_s = 2 * MS, .consumer_s = 1 * MS}, 3);
    assert_ms(
        (struct lb_model){.workers = 100000, .slots = 100000, .tiles = 1000, .work_s = 2 * MS, .consumer_s = 1 * MS},
        1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slowest_decides),         cmocka_unit_test(one_thread_does_one_thing_after_the_other),
        cmocka_unit_test(few_slots_force_alternation), cmocka_unit_test(device_slots_hold_the_copy_back),
        cmocka_unit_test(processors_limit_the_rate),   cmocka_unit_test(impossible_numbers_are_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
