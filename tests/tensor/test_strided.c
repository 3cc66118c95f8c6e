/* Tests of strided loops: each element is visited once, in row-major order if requested, and axes are merged where
 * possible. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "strided.h"
#include "tensor_model.h"
#include <stdlib.h>

enum { MAX = 4000 };

/* Random strides for `shape`: those of a padded row-major array with its axes shuffled and some of them reversed or
 * repeated. Returns the offset of the element at index 0. */
static int64_t random_strides(uint64_t *random, int ndim, const int64_t *shape, bool repeat, int64_t *strides)
{
    int order[STK_MAX_DIMS] = {0};
    int64_t step = 1, offset = 0;

    for (int i = 0; i < ndim; i++) {
        int j = (int)stkt_random_in(random, 0, i);
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < ndim; i++) {
        int axis = stkt_random_in(random, 0, 2) ? ndim - 1 - i : order[i];
        bool taken = false;
        for (int k = 0; k < i; k++)
            taken = taken || order[ndim - 1 - k] == axis;
        axis = taken || axis != order[i] ? order[i] : axis;
        strides[axis] = step;
        step *= shape[axis] ? shape[axis] : 1;
        step += stkt_random_in(random, 0, 3) ? 0 : stkt_random_in(random, 1, 2);
    }
    for (int i = 0; i < ndim; i++) {
        if (stkt_random_in(random, 0, 4) == 0) {
            offset += strides[i] * (shape[i] ? shape[i] - 1 : 0);
            strides[i] = -strides[i];
        } else if (repeat && stkt_random_in(random, 0, 5) == 0) {
            strides[i] = 0;
        }
    }
    return offset;
}

static int64_t place(int ndim, const int64_t *shape, const int64_t *strides, int64_t n)
{
    int64_t index[STK_MAX_DIMS], offset = 0;

    stkt_unravel(ndim, shape, n, index);
    for (int i = 0; i < ndim; i++)
        offset += index[i] * strides[i];
    return offset;
}

/* Compares a walk through three operands with index arithmetic. */
static void check_walk(uint64_t *random, enum stki_axis_order order)
{
    static char memory[3][1 << 20];
    static unsigned char met[MAX];
    static int64_t number_of[1 << 20];
    int ndim = (int)stkt_random_in(random, 0, 5), inner = (int)stkt_random_in(random, 1, 3);
    int64_t shape[8], strides[3][8], count, next = 0;
    const void *data[3];
    stki_strided plan;
    stki_walk walk;

    do {
        for (int i = 0; i < ndim; i++)
            shape[i] = stkt_random_in(random, 0, 20) ? stkt_random_in(random, 1, 7) : 0;
        count = stkt_count(ndim, shape);
    } while (count > MAX);
    for (int k = 0; k < 3; k++)
        data[k] = memory[k] + (1 << 19) + random_strides(random, ndim, shape, k > 0, strides[k]);
    memset(met, 0, sizeof met);
    for (int64_t n = 0; n < count; n++) /* the address in operand 0 identifies the element */
        number_of[(const char *)data[0] - memory[0] + place(ndim, shape, strides[0], n)] = n;
    stki_strided_plan(&plan, 3, (const int64_t *const[]){strides[0], strides[1], strides[2]}, ndim, shape, order);
    assert_true(plan.ndim >= 1 && plan.count == count);
    if (!stki_walk_begin(&walk, &plan, inner, data)) {
        assert_int_equal(count, 0);
        return;
    }
    do {
        int kept = plan.ndim < inner ? plan.ndim : inner;
        int64_t block = stkt_count(kept, plan.shape + plan.ndim - kept);
        for (int64_t i = 0; i < block; i++) {
            int64_t at[3], n;
            for (int k = 0; k < 3; k++)
                at[k] = walk.at[k] - (const char *)data[k] +
                        place(kept, plan.shape + plan.ndim - kept, plan.strides[k] + plan.ndim - kept, i);
            n = number_of[(const char *)data[0] - memory[0] + at[0]];
            assert_true(n >= 0 && n < count && !met[n]);
            met[n] = 1;
            if (order == STKI_KEEP_ORDER)
                assert_int_equal(n, next++);
            for (int k = 0; k < 3; k++)
                assert_int_equal(at[k], place(ndim, shape, strides[k], n));
        }
    } while (stki_walk_next(&walk));
    for (int64_t n = 0; n < count; n++)
        assert_true(met[n]);
}

static void every_element_once(void **state)
{
    uint64_t random = 3;

    (void)state;
    for (int i = 0; i < 5000; i++)
        check_walk(&random, i % 2 ? STKI_ANY_ORDER : STKI_KEEP_ORDER);
}

static void plan_one(stki_strided *plan, int ndim, const int64_t *shape, const int64_t *strides)
{
    stki_strided_plan(plan, 1, (const int64_t *const[]){strides}, ndim, shape, STKI_ANY_ORDER);
}

static void axes_merge(void **state)
{
    stki_strided plan;

    (void)state;
    plan_one(&plan, 3, (int64_t[]){2, 3, 4}, (int64_t[]){48, 16, 4}); /* row-major */
    assert_int_equal(plan.ndim, 1);
    assert_int_equal(plan.shape[0], 24);
    assert_int_equal(plan.strides[0][0], 4);
    plan_one(&plan, 3, (int64_t[]){4, 2, 3}, (int64_t[]){4, 48, 16}); /* the same with permuted axes */
    assert_int_equal(plan.ndim, 1);
    plan_one(&plan, 3, (int64_t[]){2, 3, 4}, (int64_t[]){-48, -16, -4}); /* reversed */
    assert_int_equal(plan.ndim, 1);
    assert_int_equal(plan.offsets[0], -92);
    plan_one(&plan, 4, (int64_t[]){2, 1, 3, 1}, (int64_t[]){12, 999, 4, -7}); /* axes of length 1 are ignored */
    assert_int_equal(plan.ndim, 1);
    plan_one(&plan, 3, (int64_t[]){2, 3, 2}, (int64_t[]){48, 16, 4}); /* a gap inside */
    assert_int_equal(plan.ndim, 2);
    assert_int_equal(plan.shape[0], 6);
    assert_int_equal(plan.shape[1], 2);
    /* NHWC to NCHW: H and W merge, C does not. */
    stki_strided_plan(&plan, 2,
                      (const int64_t *const[]){(int64_t[]){3 * 5 * 7, 5 * 7, 7, 1}, (int64_t[]){3 * 5 * 7, 1, 21, 3}},
                      4, (int64_t[]){2, 3, 5, 7}, STKI_ANY_ORDER);
    assert_int_equal(plan.ndim, 3);
    assert_int_equal(plan.shape[2], 35);
}

static void one_or_no_element(void **state)
{
    stki_strided plan;
    stki_walk walk;
    char byte;

    (void)state;
    plan_one(&plan, 0, NULL, NULL);
    assert_int_equal(plan.ndim, 1);
    assert_int_equal(plan.count, 1);
    assert_true(stki_walk_begin(&walk, &plan, 1, (const void *const[]){&byte}));
    assert_ptr_equal(walk.at[0], &byte);
    assert_false(stki_walk_next(&walk));
    plan_one(&plan, 2, (int64_t[]){INT64_MAX, 0}, (int64_t[]){1, 1});
    assert_int_equal(plan.count, 0);
    assert_false(stki_walk_begin(&walk, &plan, 1, (const void *const[]){NULL}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_once),
        cmocka_unit_test(axes_merge),
        cmocka_unit_test(one_or_no_element),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
