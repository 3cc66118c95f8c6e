/* Tests of overflow-checked arithmetic on sizes, at the limits of 64 bits. */
#include "checked.h"
#include "cmocka_all.h"

static void products_and_sums(void **state)
{
    int64_t out = 0;

    (void)state;
    assert_true(stki_mul(3, 5, &out) && out == 15);
    assert_true(stki_mul(INT64_C(1) << 31, INT64_C(1) << 31, &out) && out == INT64_C(1) << 62);
    assert_false(stki_mul(INT64_C(1) << 32, INT64_C(1) << 31, &out));
    assert_true(stki_mul(INT64_MAX, 1, &out) && out == INT64_MAX);
    assert_true(stki_mul(INT64_MAX, 0, &out) && out == 0);
    assert_false(stki_mul(INT64_MIN, -1, &out));
    assert_true(stki_add(INT64_MAX - 1, 1, &out) && out == INT64_MAX);
    assert_false(stki_add(INT64_MAX, 1, &out));
    assert_false(stki_add(INT64_MIN, -1, &out));
}

static void ranges_inside(void **state)
{
    (void)state;
    assert_true(stki_inside(0, 0, 0));
    assert_true(stki_inside(0, 10, 10));
    assert_true(stki_inside(10, 0, 10));
    assert_false(stki_inside(0, 11, 10));
    assert_false(stki_inside(1, 10, 10));
    assert_false(stki_inside(11, 0, 10));
    assert_false(stki_inside(-1, 1, 10));
    assert_false(stki_inside(1, -1, 10));
    assert_false(stki_inside(INT64_MAX, INT64_MAX, 10));
    assert_false(stki_inside(INT64_MAX, INT64_MAX, INT64_MAX));
    assert_true(stki_inside(INT64_MAX - 1, 1, INT64_MAX));
    assert_false(stki_inside(0, 0, -1));
}

static void rounding_up(void **state)
{
    (void)state;
    assert_int_equal(stki_round_up(0, 16), 0);
    assert_int_equal(stki_round_up(1, 16), 16);
    assert_int_equal(stki_round_up(16, 16), 16);
    assert_int_equal(stki_round_up(17, 16), 32);
    assert_int_equal(stki_round_up(5, 1), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_and_sums),
        cmocka_unit_test(ranges_inside),
        cmocka_unit_test(rounding_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
