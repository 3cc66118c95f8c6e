/* Tests of the public functions for element-wise operations: their variants, layouts of results, rejected arguments
 * that leave everything unchanged, failing allocations, and threads that flush subnormals. */
#include "allocate.h"
#include "device_table.h"
#include "faults.h"
#include "float_control.h"
#include "ops_test.h"
#include "test_device.h"

static stk_tensor floats(int64_t count, const float *values)
{
    stk_tensor tensor;
    stk_error err;

    assert_ok(stk_tensor_from_array(STK_F32, values, count * 4, 1, &count, NULL, &tensor, &err));
    return tensor;
}
#define FLOATS(...) floats((int64_t)(sizeof((float[]){__VA_ARGS__}) / 4), (float[]){__VA_ARGS__})

static float at(const stk_tensor *tensor, int64_t n)
{
    float x;

    memcpy(&x, stkt_element(tensor, n), sizeof x);
    return x;
}

/* ---- forms ---- */

static void test_forms(void **unused)
{
    stk_tensor a = FLOATS(1, 2, 3), b = FLOATS(10, 20, 30), out;
    const stk_scalar low = stk_real(1.5), high = stk_int(2);
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_add(&a, &b, &out, &err));
    assert_true(at(&out, 0) == 11 && at(&out, 1) == 22 && at(&out, 2) == 33);
    assert_ok(stk_tensor_sub_scalar_into(&a, stk_int(1), &out, &err));
    assert_true(at(&out, 0) == 0 && at(&out, 2) == 2);
    assert_ok(stk_tensor_mul_into(&a, &b, &a, &err)); /* in place */
    assert_true(at(&a, 0) == 10 && at(&a, 1) == 40 && at(&a, 2) == 90);
    assert_ok(stk_tensor_clamp_into(&out, &low, &high, &out, &err));
    assert_true(at(&out, 0) == 1.5f && at(&out, 1) == 1.5f && at(&out, 2) == 2);
    stk_tensor_release(&out);
    assert_ok(stk_tensor_binary(STK_SUB, stk_operand_scalar(stk_int(1)), stk_operand_tensor(&b), &out, &err));
    assert_true(at(&out, 0) == -9 && at(&out, 2) == -29);
    stk_tensor_release(&out);
    assert_ok(stk_tensor_binary(STK_GT, stk_operand_scalar(stk_real(20)), stk_operand_tensor(&b), &out, &err));
    assert_int_equal(out.dtype, STK_BOOL);
    assert_memory_equal(out.data, "\1\0\0", 3);
    stk_tensor_release(&out);
    assert_ok(stk_tensor_ge_scalar(&b, stk_int(20), &out, &err));
    assert_memory_equal(out.data, "\0\1\1", 3);
    stk_tensor_release(&out);
    assert_ok(
        stk_tensor_binary(STK_ADD, stk_operand_scalar(stk_bool(true)), stk_operand_scalar(stk_int(2)), &out, &err));
    assert_int_equal(out.ndim, 0);
    assert_int_equal(out.dtype, STK_I64);
    assert_int_equal(*(int64_t *)out.data, 3);
    stk_tensor_release(&out);
    stk_tensor_release(&a);
    stk_tensor_release(&b);
}

/* If all operands share a dense layout, the result has it; otherwise it is row-major. */
static void test_layouts(void **unused)
{
    const int64_t shape[4] = {2, 3, 1, 5};
    stk_tensor nhwc, row, one, column, out;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_empty_as(STK_F32, 4, shape, STK_LAYOUT_CHANNELS_LAST, NULL, &nhwc, &err));
    assert_ok(stk_tensor_zero(&nhwc, &err));
    assert_ok(stk_tensor_zeros(STK_F32, 4, shape, NULL, &row, &err));
    assert_ok(stk_tensor_zeros(STK_F32, 1, (const int64_t[]){1}, NULL, &one, &err));
    assert_ok(stk_tensor_lt(&nhwc, &nhwc, &out, &err));
    assert_true(stk_tensor_is_channels_last(&out));
    assert_int_equal(out.dtype, STK_BOOL);
    assert_int_equal(out.strides[1], 1);
    stk_tensor_release(&out);
    assert_ok(stk_tensor_add(&nhwc, &one, &out, &err)); /* a broadcast operand does not matter */
    assert_true(stk_tensor_is_channels_last(&out));
    stk_tensor_release(&out);
    assert_ok(stk_tensor_add(&row, &nhwc, &out, &err));
    assert_true(stk_tensor_is_contiguous(&out) && !stk_tensor_is_channels_last(&out));
    stk_tensor_release(&out);
    assert_ok(stk_tensor_add(&nhwc, &row, &out, &err));
    assert_true(stk_tensor_is_contiguous(&out));
    stk_tensor_release(&out);
    assert_ok(stk_tensor_empty_as(STK_F32, 4, shape, STK_LAYOUT_COLUMN_MAJOR, NULL, &column, &err));
    assert_ok(stk_tensor_zero(&column, &err));
    assert_ok(stk_tensor_add(&nhwc, &column, &out, &err)); /* two layouts, neither of them row-major */
    assert_true(stk_tensor_is_contiguous(&out));
    stk_tensor_release(&out);
    stk_tensor_release(&nhwc);
    stk_tensor_release(&row);
    stk_tensor_release(&one);
    stk_tensor_release(&column);
}

/* Bools in foreign memory may have byte values other than 0 and 1. Results never do. */
static void test_bool_bytes(void **unused)
{
    uint8_t bytes[40], other[40];
    stk_tensor a, b, out;
    const int64_t shape[1] = {40};
    stk_error err;

    (void)unused;
    for (int i = 0; i < 40; i++) {
        bytes[i] = (uint8_t)(i % 4);
        other[i] = (uint8_t)(i / 4 % 3 * 2);
    }
    assert_ok(stk_tensor_borrow(bytes, STK_BOOL, 1, shape, NULL, &a, &err));
    assert_ok(stk_tensor_borrow(other, STK_BOOL, 1, shape, NULL, &b, &err));
    assert_ok(stk_tensor_empty(STK_BOOL, 1, shape, NULL, &out, &err));
    for (int op = STK_ADD; op < STK_BINARY_OPS; op++) {
        if (op >= STK_SUB && op <= STK_TRUNC_DIV && op != STK_MUL)
            continue;
        assert_ok(
            stk_tensor_binary_into((stk_binary_op)op, stk_operand_tensor(&a), stk_operand_tensor(&b), &out, &err));
        for (int i = 0; i < 40; i++) {
            bool x = bytes[i] != 0, y = other[i] != 0;
            bool expected = op == STK_ADD   ? x || y
                            : op == STK_MUL ? x && y
                            : op == STK_EQ  ? x == y
                            : op == STK_NE  ? x != y
                            : op == STK_LT  ? x < y
                            : op == STK_LE  ? x <= y
                            : op == STK_GT  ? x > y
                                            : x >= y;
            assert_int_equal(((uint8_t *)out.data)[i], expected);
        }
    }
    stk_tensor_release(&out);
}

/* ---- rejected arguments ---- */

/* Row N28 (pytorch/pytorch#35151): an in-place operation on read-only memory. */
static void test_read_only(void **unused)
{
    stk_tensor a = FLOATS(1, 2, 3), out, view;
    stk_error err;

    (void)unused;
    a.flags |= STK_TENSOR_READONLY;
    assert_status(stk_tensor_add_scalar_into(&a, stk_int(1), &a, &err), STK_E_BAD_ARG);
    assert_says("read-only");
    assert_ok(stk_tensor_slice(&a, 0, 0, 2, 1, &view, &err)); /* a view is also read-only */
    assert_status(stk_tensor_mul_into(&view, &view, &view, &err), STK_E_BAD_ARG);
    assert_status(stk_tensor_clamp_into(&a, NULL, &(stk_scalar){STK_SCALAR_INT, {.i = 1}}, &a, &err), STK_E_BAD_ARG);
    assert_status(stk_tensor_sum_into(&a, 0, (const int[1]){0}, false, &a, &err), STK_E_BAD_ARG);
    assert_true(at(&a, 0) == 1 && at(&a, 1) == 2 && at(&a, 2) == 3);
    assert_ok(stk_tensor_add(&a, &a, &out, &err)); /* reading is allowed */
    assert_true(at(&out, 2) == 6 && !(out.flags & STK_TENSOR_READONLY));
    stk_tensor_release(&out);
    stk_tensor_release(&view);
    stk_tensor_release(&a);
}

static void test_refusals(void **unused)
{
    stk_tensor a = FLOATS(1, 2, 3), b = FLOATS(1, 2), out, other;
    const stk_dtype copy_only[] = {STK_C64, STK_C128, STK_F8_E4M3FN, STK_F8_E5M2};
    int64_t three[1] = {3};
    stk_error err;

    (void)unused;
    memset(&out, 0x33, sizeof out);
    other = out;
    assert_status(stk_tensor_add(&a, &b, &out, &err), STK_E_BAD_BROADCAST);
    assert_status(stk_tensor_binary((stk_binary_op)99, stk_operand_tensor(&a), stk_operand_tensor(&a), &out, &err),
                  STK_E_BAD_ARG);
    assert_status(stk_tensor_clamp(&a, NULL, NULL, &out, &err), STK_E_BAD_ARG);
    assert_status(stk_tensor_add_scalar(&a, stk_complex(1, 2), &out, &err), STK_E_UNSUPPORTED);
    assert_memory_equal(&out, &other, sizeof out);
    for (int i = 0; i < 4; i++) {
        assert_ok(stk_tensor_zeros(copy_only[i], 1, three, NULL, &other, &err));
        assert_status(stk_tensor_add(&a, &other, &out, &err), STK_E_UNSUPPORTED);
        assert_status(stk_tensor_add_into(&a, &a, &other, &err), STK_E_UNSUPPORTED);
        assert_status(stk_tensor_sum(&other, 0, NULL, false, STK_DTYPE_NONE, &out, &err), STK_E_UNSUPPORTED);
        assert_status(stk_tensor_sum(&a, 0, NULL, false, copy_only[i], &out, &err), STK_E_UNSUPPORTED);
        assert_status(stk_tensor_matmul(&other, &other, &out, &err), STK_E_UNSUPPORTED);
        assert_status(stk_tensor_amax(&other, 0, NULL, false, &out, &err), STK_E_UNSUPPORTED);
        stk_tensor_release(&other);
    }
    other = a;
    other.flags |= STK_TENSOR_SWAPPED;
    assert_status(stk_tensor_add(&a, &other, &out, &err), STK_E_UNSUPPORTED);
    assert_status(stk_tensor_add_into(&a, &a, &other, &err), STK_E_UNSUPPORTED);
    stk_tensor_release(&a);
    stk_tensor_release(&b);
}

/* All divisors are checked before anything is written. */
static void test_division_by_zero(void **unused)
{
    int32_t values[1000], old[1000], divisors[1000];
    stk_tensor a, b, row;
    const int64_t shape[1] = {1000};
    stk_error err;

    (void)unused;
    for (int i = 0; i < 1000; i++)
        values[i] = old[i] = divisors[i] = i + 1;
    divisors[999] = 0;
    assert_ok(stk_tensor_borrow(values, STK_I32, 1, shape, NULL, &a, &err));
    assert_ok(stk_tensor_borrow(divisors, STK_I32, 1, shape, NULL, &b, &err));
    assert_status(stk_tensor_floor_div_into(&a, &b, &a, &err), STK_E_DIV_ZERO);
    assert_status(stk_tensor_trunc_div_into(&a, &b, &a, &err), STK_E_DIV_ZERO);
    assert_status(stk_tensor_floor_div_scalar_into(&a, stk_int(0), &a, &err), STK_E_DIV_ZERO);
    assert_memory_equal(values, old, sizeof old);
    assert_ok(stk_tensor_slice(&b, 0, 0, 999, 1, &row, &err));
    a.shape[0] = 999;
    assert_ok(stk_tensor_floor_div_into(&a, &row, &a, &err));
    assert_int_equal(values[998], 1);
    /* the scalar 256 is converted to i8, in which it is 0 */
    assert_ok(stk_tensor_full(STK_I8, 1, (const int64_t[]){2}, stk_int(5), NULL, &a, &err));
    assert_status(stk_tensor_floor_div_scalar(&a, stk_int(256), &b, &err), STK_E_DIV_ZERO);
    stk_tensor_release(&a);
}

/* Interleaved views of one block are accepted; shifted overlapping ones are not. */
static void test_overlap(void **unused)
{
    stk_tensor base, left, right, upper, lower;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_arange(STK_F32, stk_int(0), stk_int(16), stk_int(1), NULL, &base, &err));
    assert_ok(stk_tensor_view(&base, 2, (const int64_t[]){4, 4}, &left, &err));
    stkt_replace(&base, left);
    assert_ok(stk_tensor_narrow(&base, 1, 0, 2, &left, &err));
    assert_ok(stk_tensor_narrow(&base, 1, 2, 2, &right, &err));
    assert_ok(stk_tensor_narrow(&base, 0, 0, 3, &upper, &err));
    assert_ok(stk_tensor_narrow(&base, 0, 1, 3, &lower, &err));
    assert_status(stk_tensor_add_into(&lower, &upper, &lower, &err), STK_E_BAD_OVERLAP);
    assert_true(at(&base, 15) == 15 && at(&base, 4) == 4);
    assert_ok(stk_tensor_add_into(&left, &right, &left, &err));
    for (int64_t i = 0; i < 4; i++)
        assert_true(at(&base, 4 * i) == (float)(8 * i + 2) && at(&base, 4 * i + 2) == (float)(4 * i + 2));
    stk_tensor_release(&left);
    stk_tensor_release(&right);
    stk_tensor_release(&upper);
    stk_tensor_release(&lower);
    stk_tensor_release(&base);
}

/* ---- allocations and floating-point control ---- */

/* Fails the n-th allocation for every n; nothing may leak. */
static void test_allocation(void **unused)
{
    stk_tensor a = FLOATS(1, 2, 3), other, out;
    stki_memory_stats before, after;
    stk_error err;
    int64_t failures = 0;

    (void)unused;
    assert_ok(stk_tensor_to_device(&a, stki_device_test(), &other, &err));
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int64_t n = 1;; n++) {
        stki_memory_fail_at(n);
        memset(&err, 0, sizeof err);
        stk_status status = stk_tensor_add(&other, &other, &out, &err);
        stki_memory_fail_at(0);
        if (status == STK_OK)
            break;
        assert_int_equal(status, STK_E_MEMORY);
        assert_true(err.message[0] != 0);
        stki_memory_read(STKI_MEM_HOST, &after);
        assert_int_equal(after.bytes, before.bytes);
        failures++;
    }
    assert_true(failures >= 4); /* storage, device memory, and copies of both tensors */
    stk_tensor_release(&out);
    stk_tensor_release(&other);
    stk_tensor_release(&a);
}

/* Results are the same if the thread flushes subnormals to 0. */
static void test_float_control(void **unused)
{
    stk_tensor a = FLOATS(1e-40f, 0x1p-126f, 1), out;
    stk_error err;

    (void)unused;
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
    assert_ok(stk_tensor_div_scalar(&a, stk_int(2), &out, &err));
#if defined(__x86_64__)
    assert_int_equal(_mm_getcsr() & 0x8040, 0x8040);
    _mm_setcsr(_mm_getcsr() & ~0x8040u);
#endif
    assert_true(at(&out, 0) > 0 && at(&out, 1) == 0x1p-127f && at(&out, 2) == 0.5f);
    stk_tensor_release(&out);
    stk_tensor_release(&a);
}

static void test_result_dtype(void **unused)
{
    stk_tensor f16, i32, f64_alone, boolean;
    stk_dtype dtype = STK_DTYPE_NONE;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_zeros(STK_F16, 1, (const int64_t[]){2}, NULL, &f16, &err));
    assert_ok(stk_tensor_zeros(STK_I32, 1, (const int64_t[]){2}, NULL, &i32, &err));
    assert_ok(stk_tensor_zeros(STK_F64, 0, NULL, NULL, &f64_alone, &err));
    assert_ok(stk_tensor_zeros(STK_BOOL, 1, (const int64_t[]){2}, NULL, &boolean, &err));
    assert_ok(stk_result_dtype(
        (stk_operand[]){stk_operand_tensor(&f16), stk_operand_tensor(&i32), stk_operand_tensor(&f64_alone)}, 3, &dtype,
        &err));
    assert_int_equal(dtype, STK_F16);
    assert_ok(
        stk_result_dtype((stk_operand[]){stk_operand_tensor(&i32), stk_operand_tensor(&f64_alone)}, 2, &dtype, &err));
    assert_int_equal(dtype, STK_F64);
    assert_ok(stk_result_dtype((stk_operand[]){stk_operand_tensor(&boolean), stk_operand_scalar(stk_uint(7))}, 2,
                               &dtype, &err));
    assert_int_equal(dtype, STK_I64);
    stk_tensor_release(&f16);
    stk_tensor_release(&i32);
    stk_tensor_release(&f64_alone);
    stk_tensor_release(&boolean);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_read_only),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_overlap),      cmocka_unit_test(test_division_by_zero),
        cmocka_unit_test(test_allocation),   cmocka_unit_test(test_float_control),
        cmocka_unit_test(test_result_dtype), cmocka_unit_test(test_bool_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
