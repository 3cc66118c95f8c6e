/* Tests of the touch consumer, which must read every byte of any tensor exactly once. */
#include "loadbench_consumer.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static unsigned char memory[1 << 16];

static void fill(void)
{
    uint32_t state = 12345;
    for (size_t i = 0; i < sizeof memory; i++) {
        state = state * 1664525u + 1013904223u;
        memory[i] = (unsigned char)(state >> 24);
    }
}

/* The reference adds single bytes: byte i of a run is weighted with 256^(i mod 8). */
static uint64_t slow_sum(const unsigned char *bytes, int64_t count)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (uint64_t)bytes[i] << (8 * (i % 8));
    return sum;
}

static stk_tensor tensor_of(void *data, stk_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides)
{
    stk_tensor tensor = {.data = data, .dtype = dtype, .ndim = ndim};
    int64_t stride = stk_dtype_size(dtype);

    for (int i = ndim - 1; i >= 0; i--) {
        tensor.shape[i] = shape[i];
        tensor.strides[i] = strides ? strides[i] : stride;
        stride *= shape[i];
    }
    return tensor;
}

static void every_length_and_alignment(void **state)
{
    (void)state;
    fill();
    for (int64_t length = 0; length < 300; length++)
        for (int offset = 0; offset < 9; offset++) {
            const stk_tensor tensor = tensor_of(memory + offset, STK_U8, 1, &length, NULL);
            assert_true(lb_tensor_sum(&tensor) == slow_sum(memory + offset, length));
        }
}

static void order_of_axes_does_not_matter(void **state)
{
    const int64_t shape[] = {5, 7, 9, 3}, count = 5 * 7 * 9 * 3 * 4;
    const uint64_t expected = slow_sum(memory, count);
    const stk_tensor plain = tensor_of(memory, STK_F32, 4, shape, NULL);
    /* the same memory as [N, C, H, W] in channels_last, and flipped along H */
    const int64_t nchw[] = {5, 3, 7, 9}, channels_last[] = {7 * 9 * 3 * 4, 4, 9 * 3 * 4, 3 * 4};
    const int64_t flipped[] = {7 * 9 * 3 * 4, 4, -9 * 3 * 4, 3 * 4};

    (void)state;
    assert_true(lb_tensor_sum(&plain) == expected);
    stk_tensor other = tensor_of(memory, STK_F32, 4, nchw, channels_last);
    assert_true(lb_tensor_sum(&other) == expected);
    other = tensor_of(memory + 6 * 9 * 3 * 4, STK_F32, 4, nchw, flipped);
    assert_true(lb_tensor_sum(&other) == expected);
}

static void gaps_are_not_read(void **state)
{
    const int64_t shape[] = {11, 5}, strides[] = {64, 4};
    const stk_tensor tensor = tensor_of(memory, STK_F32, 2, shape, strides);
    uint64_t expected = 0;

    (void)state;
    for (int i = 0; i < 11; i++)
        expected += slow_sum(memory + 64 * i, 20);
    assert_true(lb_tensor_sum(&tensor) == expected);
}

static void one_changed_byte_changes_the_sum(void **state)
{
    const int64_t shape[] = {2, 1, 1000};
    const stk_tensor tensor = tensor_of(memory, STK_U8, 3, shape, NULL);
    const uint64_t before = lb_tensor_sum(&tensor);

    (void)state;
    for (int i = 0; i < 2000; i++) {
        memory[i] ^= 1;
        assert_true(lb_tensor_sum(&tensor) != before);
        memory[i] ^= 1;
    }
}

static void empty_and_scalar(void **state)
{
    const int64_t empty[] = {4, 0, 3};
    stk_tensor tensor = tensor_of(memory, STK_F32, 3, empty, NULL);

    (void)state;
    assert_true(lb_tensor_sum(&tensor) == 0);
    tensor = tensor_of(memory, STK_F64, 0, NULL, NULL);
    assert_true(lb_tensor_sum(&tensor) == slow_sum(memory, 8));
}

static void words_name_the_table(void **state)
{
    (void)state;
    for (int i = 0; lb_consumer_words[i]; i++)
        assert_string_equal(lb_consumer_words[i], lb_consumers[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_and_alignment), cmocka_unit_test(order_of_axes_does_not_matter),
        cmocka_unit_test(gaps_are_not_read),          cmocka_unit_test(one_changed_byte_changes_the_sum),
        cmocka_unit_test(empty_and_scalar),           cmocka_unit_test(words_name_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
