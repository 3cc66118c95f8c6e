/* Tests of creating tensors, in addition to the oracle's cases: random numbers against known moments and quantiles,
 * wrapped memory and its callback, literals, limits of scalars, element strides and layouts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "philox.h"
#include "tensor_internal.h"
#include <math.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <string.h>

static int freed;

static void count_free(void *context)
{
    assert_ptr_equal(context, &freed);
    freed++;
}

/* ---- random numbers ---- */

static void uniform_numbers(void **state)
{
    stk_tensor a, b, half, twice;
    const float *x;

    (void)state;
    assert_int_equal(stk_tensor_rand(STK_F32, STK_SHAPE(1001), 5, NULL, &a, NULL), STK_OK);
    assert_int_equal(stk_tensor_rand(STK_F32, STK_SHAPE(7, 100), 5, NULL, &b, NULL), STK_OK);
    x = a.data;
    assert_memory_equal(x, b.data, 700 * sizeof *x); /* the numbers do not depend on the shape */
    for (int i = 0; i < 1001; i++) {
        stki_philox block = stki_philox_draw(5, UINT64_C(0x73746b2e72616e64), (uint64_t)i / 4);
        assert_true(x[i] == (float)(block.word[i % 4] >> 8) / 16777216.0f);
    }
    assert_int_equal(stk_tensor_rand(STK_F16, STK_SHAPE(100000), 5, NULL, &half, NULL), STK_OK);
    assert_int_equal(stk_tensor_to(&half, STK_F64, &twice, NULL), STK_OK);
    for (int i = 0; i < 100000; i++)
        assert_true(((double *)twice.data)[i] < 1.0 && ((double *)twice.data)[i] >= 0.0); /* never rounded up to 1 */
    assert_int_equal(stk_tensor_rand(STK_I32, STK_SHAPE(3), 5, NULL, &half, NULL), STK_E_BAD_DTYPE);
    stk_tensor_release(&twice);
    stk_tensor_release(&half);
    stk_tensor_release(&b);
    stk_tensor_release(&a);
}

static int compare_doubles(const void *a, const void *b)
{
    double left, right;

    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return left < right ? -1 : left > right;
}

/* The reference for the distribution function is the C library's erfc. */
static void normal_numbers(void **state)
{
    enum { N = 200000 };
    stk_tensor a;
    double *x, worst = 0, fourth = 0;

    (void)state;
    assert_int_equal(stk_tensor_randn(STK_F64, STK_SHAPE(N), 11, NULL, &a, NULL), STK_OK);
    x = a.data;
    for (int i = 0; i < 200; i++) { /* each number is the quantile of its uniform number */
        stki_philox block = stki_philox_draw(11, UINT64_C(0x73746b2e6e6f726d), (uint64_t)i / 2);
        uint64_t word = (uint64_t)block.word[i % 2 * 2 + 1] << 32 | block.word[i % 2 * 2];
        double p = ((double)(word >> 12) + 0.5) * 0x1p-52, back = 0.5 * erfc(-x[i] / sqrt(2));
        assert_true(fabs(back - p) <= 1e-14 && fabs(back - p) <= 4e-14 * fmax(p, 1e-3));
    }
    for (int i = 0; i < N; i++)
        fourth += x[i] * x[i] * x[i] * x[i] / N;
    qsort(x, N, sizeof *x, compare_doubles);
    for (int i = 0; i < N; i++)
        worst = fmax(worst, fabs(0.5 * erfc(-x[i] / sqrt(2)) - (i + 0.5) / N));
    assert_true(worst < 1.95 / sqrt(N)); /* Kolmogorov-Smirnov test at a level of one in a thousand */
    assert_true(fabs(fourth - 3) < 0.1);
    stk_tensor_release(&a);
}

/* ---- memory of another owner ---- */

static void wrapping(void **state)
{
    unsigned char bytes[] = {9, 1, 0, 2, 0, 3, 0, 4, 0, 5};
    stk_tensor a, b;

    (void)state;
    freed = 0;
    assert_int_equal(stk_tensor_wrap(bytes + 1, STK_I16, STK_SHAPE(2, 2), NULL, count_free, &freed, &a, NULL), STK_OK);
    assert_int_equal(stk_storage_bytes(a.storage), 8);
    assert_int_equal(stk_tensor_alignment(&a) & 1, (uintptr_t)(bytes + 1) & 1 ? 1 : 0);
    assert_int_equal(stk_tensor_select(&a, 0, 1, &b, NULL), STK_OK);
    stk_tensor_release(&a);
    assert_int_equal(freed, 0);
    assert_int_equal(stk_tensor_offset_bytes(&b), 4);
    stk_tensor_release(&b);
    assert_int_equal(freed, 1);
    assert_int_equal(stk_tensor_wrap(bytes, STK_I16, STK_SHAPE(2), (int64_t[]){-2}, count_free, &freed, &a, NULL),
                     STK_E_BAD_STRIDE);
    assert_int_equal(stk_tensor_wrap(bytes, STK_I16, STK_SHAPE(2, -1), NULL, count_free, &freed, &a, NULL),
                     STK_E_BAD_SHAPE);
    assert_int_equal(stk_tensor_from_buffer(bytes, 10, STK_I16, -1, 1, count_free, &freed, &a, NULL), STK_E_BAD_ARG);
    assert_int_equal(stk_tensor_from_buffer(bytes, 10, STK_I16, -1, INT64_MIN, count_free, &freed, &a, NULL),
                     STK_E_BAD_ARG);
    assert_int_equal(stk_tensor_from_buffer(bytes, 10, STK_I16, INT64_MAX, 0, count_free, &freed, &a, NULL),
                     STK_E_BAD_ARG);
    assert_int_equal(freed, 1); /* after an error the memory still belongs to the caller */
    assert_int_equal(stk_tensor_from_buffer(bytes, 10, STK_I16, 4, 1, count_free, &freed, &a, NULL), STK_OK);
    stk_tensor_release(&a);
    assert_int_equal(freed, 2);
    assert_int_equal(stk_tensor_from_buffer(bytes, 10, STK_U8, -1, 3, NULL, NULL, &a, NULL), STK_OK);
    assert_true(a.storage == NULL && a.shape[0] == 7);
}

static void storages(void **state)
{
    stk_storage *storage;
    stk_tensor a, b;

    (void)state;
    assert_int_equal(stk_storage_create(NULL, 40, &storage, NULL), STK_OK);
    assert_int_equal((uintptr_t)stk_storage_data(storage) % 64, 0);
    assert_ptr_equal(stk_storage_device(storage), stk_device_cpu());
    assert_int_equal(stk_tensor_from_storage(storage, 37, STK_I32, STK_SHAPE(3, 3), (int64_t[]){-12, -4}, &a, NULL),
                     STK_E_BAD_STORAGE);
    assert_int_equal(stk_tensor_from_storage(storage, 31, STK_I32, STK_SHAPE(3, 3), (int64_t[]){-12, -4}, &a, NULL),
                     STK_E_BAD_STORAGE);
    assert_int_equal(stk_tensor_from_storage(storage, 32, STK_I32, STK_SHAPE(3, 3), (int64_t[]){-12, -4}, &a, NULL),
                     STK_OK);
    assert_int_equal(stk_tensor_from_storage(storage, 41, STK_U8, STK_SHAPE(0), NULL, &b, NULL), STK_OK);
    stk_tensor_release(&b);
    assert_int_equal(
        stk_tensor_from_storage(storage, 0, STK_U8, STK_SHAPE(INT64_MAX, 3), (int64_t[]){INT64_MAX, 1}, &b, NULL),
        STK_E_BAD_SHAPE);
    assert_int_equal(stk_tensor_from_storage(storage, -4, STK_I32, STK_SHAPE(1), NULL, &b, NULL), STK_E_BAD_STORAGE);
    assert_int_equal(stk_storage_refs(storage), 2);
    stk_storage_release(storage);
    stk_tensor_release(&a);
    assert_int_equal(stk_storage_create(NULL, -1, &storage, NULL), STK_E_BAD_ARG);
}

static void literals(void **state)
{
    stk_tensor a;
    int64_t bytes;

    (void)state;
    assert_int_equal(stk_tensor_from_array(STK_VALUES(double, 1, 2, 3, 4, 5, 6), STK_SHAPE(2, 3), NULL, &a, NULL),
                     STK_OK);
    assert_int_equal(a.dtype, STK_F64);
    assert_true(((double *)a.data)[5] == 6);
    stk_tensor_release(&a);
    assert_int_equal(stk_tensor_from_array(STK_VALUES(bool, true, false), STK_SHAPE(2), NULL, &a, NULL), STK_OK);
    assert_int_equal(a.dtype, STK_BOOL);
    stk_tensor_release(&a);
    assert_int_equal(stk_tensor_from_array(STK_VALUES(uint16_t, 1, 2), STK_SHAPE(3), NULL, &a, NULL), STK_E_BAD_SHAPE);
    assert_int_equal(stki_row_major(STK_F32, 2, (int64_t[]){INT64_MAX / 4, 2}, NULL, &bytes, NULL), STK_E_BAD_SHAPE);
    assert_int_equal(stki_row_major(STK_F32, 2, (int64_t[]){INT64_MAX, 0}, NULL, &bytes, NULL), STK_E_BAD_SHAPE);
}

/* ---- scalars and elements ---- */

static void check_fit(stk_dtype dtype, stk_scalar value, bool fits)
{
    stk_tensor a;
    stk_error err;
    stk_status status = stk_tensor_full(dtype, STK_SHAPE(2), value, NULL, &a, &err);

    assert_int_equal(status, fits ? STK_OK : STK_E_BAD_VALUE);
    if (fits)
        stk_tensor_release(&a);
}

static void values_that_fit(void **state)
{
    (void)state;
    check_fit(STK_U8, stk_int(255), true);
    check_fit(STK_U8, stk_int(256), false);
    check_fit(STK_U8, stk_int(-1), false);
    check_fit(STK_U8, stk_real(255.9), true);
    check_fit(STK_U8, stk_real(-0.9), true);
    check_fit(STK_I8, stk_real(-128.9), true);
    check_fit(STK_I8, stk_real(-129.0), false);
    check_fit(STK_I32, stk_real(NAN), false);
    check_fit(STK_I64, stk_int(INT64_MIN), true);
    check_fit(STK_I64, stk_uint(UINT64_C(1) << 63), false);
    check_fit(STK_I64, stk_real(0x1p63), false);
    check_fit(STK_U64, stk_uint(UINT64_MAX), true);
    check_fit(STK_U64, stk_int(-1), false);
    check_fit(STK_U64, stk_real(0x1p64), false);
    check_fit(STK_I32, stk_int(INT64_C(2147483648)), false);
    check_fit(STK_F16, stk_real(65504), true);
    check_fit(STK_F16, stk_real(65505), false);
    check_fit(STK_F16, stk_real(-INFINITY), true);
    check_fit(STK_F16, stk_real(NAN), true);
    check_fit(STK_BF16, stk_real(3.4e38), false);
    check_fit(STK_F32, stk_real(1e39), false);
    check_fit(STK_F8_E4M3FN, stk_int(449), false);
    check_fit(STK_BOOL, stk_real(0.5), true);
    check_fit(STK_C64, stk_complex(1, 2), true);
}

static void get_and_set(void **state)
{
    stk_tensor a;
    stk_scalar value;

    (void)state;
    for (int dtype = STK_DTYPE_NONE + 1; dtype < STK_DTYPE_END; dtype++) {
        assert_int_equal(stk_tensor_zeros((stk_dtype)dtype, STK_SHAPE(2, 3), NULL, &a, NULL), STK_OK);
        assert_int_equal(stk_tensor_set(&a, STK_INDEX(-1, 1), stk_int(1), NULL), STK_OK);
        for (int64_t i = 0; i < 6; i++) {
            double got;
            assert_int_equal(stk_tensor_get(&a, STK_INDEX(i / 3, i % 3), &value, NULL), STK_OK);
            got = value.kind == STK_SCALAR_BOOL      ? value.as.b
                  : value.kind == STK_SCALAR_INT     ? (double)value.as.i
                  : value.kind == STK_SCALAR_UINT    ? (double)value.as.u
                  : value.kind == STK_SCALAR_COMPLEX ? value.as.c[0]
                                                     : value.as.f;
            assert_true(got == (i == 4));
        }
        assert_int_equal(stk_tensor_get(&a, STK_INDEX(2, 0), &value, NULL), STK_E_BAD_INDEX);
        assert_int_equal(stk_tensor_get(&a, STK_INDEX(1), &value, NULL), STK_E_BAD_DIM);
        stk_tensor_release(&a);
    }
    assert_int_equal(stk_tensor_full(STK_C128, STK_SHAPE(1), stk_complex(1.5, -2.5), NULL, &a, NULL), STK_OK);
    assert_int_equal(stk_tensor_get(&a, STK_INDEX(0), &value, NULL), STK_OK);
    assert_true(value.kind == STK_SCALAR_COMPLEX && value.as.c[0] == 1.5 && value.as.c[1] == -2.5);
    stk_tensor_release(&a);
}

static void element_strides(void **state)
{
    char records[64];
    int64_t strides[2], offset = 0;
    stk_tensor a, b;

    (void)state;
    assert_int_equal(stk_tensor_borrow(records, STK_I32, STK_SHAPE(5), (int64_t[]){10}, &a, NULL), STK_OK);
    assert_int_equal(stk_tensor_element_strides(&a, strides, &offset, NULL), STK_E_BAD_STRIDE);
    assert_int_equal(stk_tensor_zeros(STK_I32, STK_SHAPE(3, 4), NULL, &a, NULL), STK_OK);
    assert_int_equal(stk_tensor_select(&a, 0, 2, &b, NULL), STK_OK);
    assert_int_equal(stk_tensor_element_strides(&b, strides, &offset, NULL), STK_OK);
    assert_int_equal(strides[0], 1);
    assert_int_equal(offset, 8);
    stk_tensor_release(&b);
    stk_tensor_release(&a);
}

static void layouts(void **state)
{
    stk_tensor fortran, clone, last;

    (void)state;
    assert_int_equal(stk_tensor_empty_as(STK_F32, STK_SHAPE(2, 3), STK_LAYOUT_COLUMN_MAJOR, NULL, &fortran, NULL),
                     STK_OK);
    assert_int_equal(fortran.strides[0], 4);
    assert_int_equal(fortran.strides[1], 8);
    assert_true(stk_tensor_has_layout(&fortran, STK_LAYOUT_COLUMN_MAJOR));
    assert_true(stk_tensor_has_layout(&fortran, STK_LAYOUT_KEEP));
    assert_false(stk_tensor_is_contiguous(&fortran));
    assert_int_equal(stk_tensor_clone_as(&fortran, STK_LAYOUT_KEEP, &clone, NULL), STK_OK);
    assert_int_equal(clone.strides[0], 4);
    stk_tensor_release(&clone);
    assert_int_equal(stk_tensor_clone_as(&fortran, STK_LAYOUT_CHANNELS_LAST, &clone, NULL), STK_E_BAD_DIM);
    assert_int_equal(stk_tensor_contiguous_as(&fortran, STK_LAYOUT_KEEP, &clone, NULL), STK_E_BAD_ARG);
    assert_int_equal(stk_tensor_empty_as(STK_F32, STK_SHAPE(2), STK_LAYOUT_KEEP, NULL, &clone, NULL), STK_E_BAD_ARG);
    /* Row S02: with shape N, C, 1, 1 both layouts apply; the requested one must be kept. */
    assert_int_equal(stk_tensor_empty_as(STK_F32, STK_SHAPE(2, 3, 1, 1), STK_LAYOUT_CHANNELS_LAST, NULL, &last, NULL),
                     STK_OK);
    assert_true(stk_tensor_is_contiguous(&last) && stk_tensor_is_channels_last(&last));
    assert_int_equal(last.strides[2], 12);
    assert_int_equal(stk_tensor_contiguous(&last, &clone, NULL), STK_OK);
    assert_int_equal(clone.strides[2], 12); /* the same tensor */
    stk_tensor_release(&clone);
    assert_int_equal(stk_tensor_clone(&last, &clone, NULL), STK_OK);
    assert_int_equal(clone.strides[2], 4); /* canonical strides */
    stk_tensor_release(&clone);
    stk_tensor_release(&last);
    stk_tensor_release(&fortran);
}

static void dtypes(void **state)
{
    (void)state;
    for (int i = STK_DTYPE_NONE + 1; i < STK_DTYPE_END; i++) {
        assert_int_equal(stk_dtype_find(stk_dtype_name((stk_dtype)i)), i);
        assert_int_equal(stk_dtype_find(stk_dtype_long_name((stk_dtype)i)), i);
    }
    assert_int_equal(stk_dtype_find("float"), STK_DTYPE_NONE);
    assert_int_equal(stk_dtype_find(NULL), STK_DTYPE_NONE);
    assert_int_equal(stk_dtype_size(STK_DTYPE_NONE), 0);
    assert_int_equal(stk_dtype_size((stk_dtype)99), 0);
    assert_string_equal(stk_dtype_name((stk_dtype)-1), "none");
    assert_int_equal(stk_tensor_empty((stk_dtype)99, 0, NULL, NULL, NULL, NULL), STK_E_BAD_DTYPE);
}

static void ranges(void **state)
{
    stk_tensor a;

    (void)state;
    assert_int_equal(stk_tensor_arange(STK_F32, stk_real(0), stk_real(1e300), stk_real(1e-300), NULL, &a, NULL),
                     STK_E_BAD_SHAPE);
    assert_int_equal(stk_tensor_arange(STK_F32, stk_real(0), stk_real(1), stk_real(INFINITY), NULL, &a, NULL),
                     STK_E_BAD_ARG);
    assert_int_equal(stk_tensor_arange(STK_I64, stk_int(INT64_MAX - 3), stk_int(INT64_MAX), stk_int(2), NULL, &a, NULL),
                     STK_OK);
    stk_tensor_release(&a);
    assert_int_equal(stk_tensor_linspace(STK_F64, 0, 1, -1, NULL, &a, NULL), STK_E_BAD_ARG);
    assert_int_equal(stk_tensor_linspace(STK_F64, 0.1, 0.7, 7, NULL, &a, NULL), STK_OK);
    assert_true(((double *)a.data)[0] == 0.1 && ((double *)a.data)[6] == 0.7);
    stk_tensor_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_numbers), cmocka_unit_test(normal_numbers),  cmocka_unit_test(wrapping),
        cmocka_unit_test(storages),        cmocka_unit_test(literals),        cmocka_unit_test(values_that_fit),
        cmocka_unit_test(get_and_set),     cmocka_unit_test(element_strides), cmocka_unit_test(layouts),
        cmocka_unit_test(dtypes),          cmocka_unit_test(ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
