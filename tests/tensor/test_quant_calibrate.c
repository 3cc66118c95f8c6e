/* Tests of quantization parameters computed from samples, against sorting, counting and exhaustive search. */
#include "allocate.h"
#include "faults.h"
#include "leak_check.h"
#include "quant_internal.h"
#include "stk_test.h"
#include "tensor_model.h"
#include <math.h>

static uint64_t state = 3;

static stk_tensor samples_of(stk_dtype dtype, int ndim, const int64_t *shape, double spread)
{
    stk_tensor wide, tensor;
    stk_error err;

    assert_ok(stk_tensor_empty(STK_F64, ndim, shape, NULL, &wide, &err));
    for (int64_t n = 0; n < stk_tensor_numel(&wide); n++) {
        double x = (double)stkt_random_in(&state, -1000, 1000) / 1000.0;
        ((double *)wide.data)[n] = x * x * x * spread;
    }
    assert_ok(stk_tensor_to(&wide, dtype, &tensor, &err));
    stk_tensor_release(&wide);
    return tensor;
}

static int ascending(const void *a, const void *b)
{
    double x, y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* All elements as doubles in logical order. The caller frees the list. */
static double *listed(const stk_tensor *tensor)
{
    stk_tensor wide;
    stk_error err;
    int64_t count = stk_tensor_numel(tensor);
    double *list = malloc((size_t)(count ? count : 1) * sizeof *list);

    assert_ok(stk_tensor_to(tensor, STK_F64, &wide, &err));
    for (int64_t n = 0; n < count; n++)
        memcpy(&list[n], stkt_element(&wide, n), sizeof *list);
    stk_tensor_release(&wide);
    return list;
}

/* The documented rule, with the limits of each type. */
static void assert_follows_rule(const stk_quant *quant, int64_t i, stk_qscheme scheme)
{
    static const double mins[] = {0, -128, 0, -2147483648.0}, maxs[] = {0, 127, 255, 2147483647.0};
    double qmin = mins[stk_quant_dtype(quant)], qmax = maxs[stk_quant_dtype(quant)];
    float low = (float)fmin(stk_quant_low(quant, i), 0), high = (float)fmax(stk_quant_high(quant, i), 0);
    float scale;

    if (scheme == STK_QUANT_SYMMETRIC) {
        scale = fmaxf(fmaxf(-low, high) / (float)((qmax - qmin) / 2), 0x1p-23f);
        assert_int_equal(stk_quant_zero_point(quant, i), stk_quant_dtype(quant) == STK_QUINT8 ? 128 : 0);
    } else {
        scale = fmaxf((high - low) / (float)(qmax - qmin), 0x1p-23f);
        assert_int_equal(stk_quant_zero_point(quant, i),
                         (int64_t)fmin(fmax(qmin - (double)rintf(low / scale), qmin), qmax));
    }
    assert_true(stk_quant_scale(quant, i) == (double)scale);
}

static void test_minmax(void **unused)
{
    static const stk_dtype dtypes[] = {STK_F32, STK_F64, STK_F16, STK_BF16};
    stk_error err;

    (void)unused;
    for (int round = 0; round < 96; round++) {
        stk_tensor base = samples_of(dtypes[round % 4], 2, (const int64_t[]){17, 40}, 5), view;
        stk_qdtype qdtype = (stk_qdtype)(STK_QINT8 + round / 4 % 3);
        stk_qscheme scheme = (stk_qscheme)(round / 12 % 2);
        stk_quant *quant;
        double *list;
        assert_ok(stk_tensor_slice(&base, 1, 1, 40, 3, &view, &err));
        assert_ok(stk_quant_minmax(&view, qdtype, scheme, &quant, &err));
        list = listed(&view);
        qsort(list, (size_t)stk_tensor_numel(&view), sizeof *list, ascending);
        assert_true(stk_quant_low(quant, 0) == list[0]);
        assert_true(stk_quant_high(quant, 0) == list[stk_tensor_numel(&view) - 1]);
        assert_int_equal(stk_quant_axis(quant), STK_QUANT_PER_TENSOR);
        assert_int_equal(stk_quant_dtype(quant), qdtype);
        assert_follows_rule(quant, 0, scheme);
        free(list);
        stk_quant_release(quant);
        stk_tensor_release(&view);
        stk_tensor_release(&base);
    }
}

static void test_minmax_channels(void **unused)
{
    stk_tensor base = samples_of(STK_F32, 3, (const int64_t[]){4, 600, 5}, 3), view;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_flip(&base, 1, &view, &err));
    for (int axis = 0; axis < 3; axis++) {
        stk_quant *quant;
        assert_ok(stk_quant_minmax_channels(&view, axis, STK_QINT8, STK_QUANT_AFFINE, &quant, &err));
        assert_int_equal(stk_quant_count(quant), view.shape[axis]);
        assert_int_equal(stk_quant_axis(quant), axis);
        for (int64_t i = 0; i < view.shape[axis]; i++) {
            stk_tensor channel;
            stk_quant *own;
            assert_ok(stk_tensor_select(&view, axis, i, &channel, &err));
            assert_ok(stk_quant_minmax(&channel, STK_QINT8, STK_QUANT_AFFINE, &own, &err));
            assert_true(stk_quant_low(quant, i) == stk_quant_low(own, 0));
            assert_true(stk_quant_high(quant, i) == stk_quant_high(own, 0));
            assert_true(stk_quant_scale(quant, i) == stk_quant_scale(own, 0));
            assert_int_equal(stk_quant_zero_point(quant, i), stk_quant_zero_point(own, 0));
            stk_quant_release(own);
            stk_tensor_release(&channel);
        }
        stk_quant_release(quant);
    }
    stk_tensor_release(&view);
    stk_tensor_release(&base);
}

static double by_sorting(const double *sorted, int64_t count, double percent)
{
    double place = percent / 100 * (double)(count - 1);
    int64_t k = (int64_t)floor(place), next = k + 1 < count ? k + 1 : k;

    return sorted[k] + (place - (double)k) * (sorted[next] - sorted[k]);
}

static void test_percentile(void **unused)
{
    static const double percents[][2] = {{0, 100}, {1, 99},      {0.1, 99.9}, {25, 75},
                                         {50, 50}, {33.3, 66.6}, {0, 0},      {100, 100}};
    stk_error err;

    (void)unused;
    for (int64_t count = 1; count < 2000; count = count * 2 + 3)
        for (size_t p = 0; p < sizeof percents / sizeof percents[0]; p++) {
            /* in the first cases few distinct values, so many are equal, and there are zeros of both signs */
            stk_tensor tensor = samples_of(p % 2 ? STK_F32 : STK_F64, 1, &count, p < 4 ? 4 : 0x1p-130);
            double *list;
            stk_quant *quant;
            if (p % 2)
                for (int64_t i = 0; i < count; i++)
                    ((float *)tensor.data)[i] = copysignf(rintf(((float *)tensor.data)[i]), i % 2 ? -1.0f : 1.0f);
            list = listed(&tensor);
            qsort(list, (size_t)count, sizeof *list, ascending);
            assert_ok(stk_quant_percentile(&tensor, STK_QUINT8, STK_QUANT_AFFINE, percents[p][0], percents[p][1],
                                           &quant, &err));
            assert_true(stk_quant_low(quant, 0) == by_sorting(list, count, percents[p][0]));
            assert_true(stk_quant_high(quant, 0) == by_sorting(list, count, percents[p][1]));
            assert_follows_rule(quant, 0, STK_QUANT_AFFINE);
            stk_quant_release(quant);
            free(list);
            stk_tensor_release(&tensor);
        }
}

/* About p percent of the elements must lie below the bound; the histogram finds it to within one bin. */
static void test_histogram(void **unused)
{
    stk_error err;

    (void)unused;
    for (int64_t bins = 1; bins < 3000; bins = bins * 3 + 1) {
        stk_tensor tensor = samples_of(STK_F32, 2, (const int64_t[]){100, 50}, 4);
        double *list = listed(&tensor), width;
        stk_quant *quant;
        qsort(list, 5000, sizeof *list, ascending);
        width = (list[4999] - list[0]) / (double)bins;
        assert_ok(stk_quant_histogram(&tensor, STK_QINT8, STK_QUANT_SYMMETRIC, bins, 2, 97, &quant, &err));
        assert_true(fabs(stk_quant_low(quant, 0) - by_sorting(list, 5000, 2)) <= width * 1.001);
        assert_true(fabs(stk_quant_high(quant, 0) - by_sorting(list, 5000, 97)) <= width * 1.001);
        assert_follows_rule(quant, 0, STK_QUANT_SYMMETRIC);
        stk_quant_release(quant);
        free(list);
        stk_tensor_release(&tensor);
    }
}

/* A histogram that can be checked by hand: 0 0 0 1 2 3 4 4 4 8 in four bins of width 2. */
static void test_histogram_by_hand(void **unused)
{
    static const float values[] = {0, 0, 0, 1, 2, 3, 4, 4, 4, 8};
    stk_tensor tensor;
    stk_quant *quant;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_borrow((void *)(uintptr_t)values, STK_F32, 1, (const int64_t[]){10}, NULL, &tensor, &err));
    assert_ok(stk_quant_histogram(&tensor, STK_QINT8, STK_QUANT_AFFINE, 4, 20, 75, &quant, &err));
    assert_true(stk_quant_low(quant, 0) == 1.0);               /* 2 of the 4 elements in the first bin */
    assert_true(fabs(stk_quant_high(quant, 0) - 5.0) < 1e-12); /* 1.5 of the 3 elements in the third bin */
    stk_quant_release(quant);
}

static double squared_error(const stk_tensor *tensor, stk_quant *quant)
{
    stk_qtensor quantized;
    stk_tensor back;
    stk_error err;
    double sum = 0;

    assert_ok(stk_quantize(tensor, quant, &quantized, &err));
    assert_ok(stk_dequantize(&quantized, &back, &err));
    for (int64_t n = 0; n < stk_tensor_numel(tensor); n++) {
        float x, y;
        memcpy(&x, stkt_element(tensor, n), 4);
        memcpy(&y, stkt_element(&back, n), 4);
        sum += ((double)x - (double)y) * ((double)x - (double)y);
    }
    stk_tensor_release(&back);
    stk_qtensor_release(&quantized);
    return sum / (double)stk_tensor_numel(tensor);
}

static void test_mse(void **unused)
{
    const int64_t steps = 20, count = 400000;
    stk_tensor tensor = samples_of(STK_F32, 1, &count, 1);
    stk_quant *best, *whole;
    stk_error err;
    double error, smallest = INFINITY;

    (void)unused;
    /* outliers: clipping them causes less error than the larger step that they would require */
    ((float *)tensor.data)[7] = 3;
    ((float *)tensor.data)[8] = -3;
    assert_ok(stk_quant_minmax(&tensor, STK_QINT8, STK_QUANT_AFFINE, &whole, &err));
    for (int64_t k = 1; k <= steps; k++) {
        double share = (double)k / (double)steps;
        stki_qrange range = {.low = stk_quant_low(whole, 0) * share, .high = stk_quant_high(whole, 0) * share};
        stk_quant *tried;
        assert_ok(stki_quant_from_ranges(STK_QINT8, STK_QUANT_AFFINE, -1, 1, &range, &tried, &err));
        smallest = fmin(smallest, squared_error(&tensor, tried));
        stk_quant_release(tried);
    }
    assert_ok(stk_quant_mse(&tensor, STK_QINT8, STK_QUANT_AFFINE, steps, &best, &error, &err));
    assert_true(fabs(error - smallest) <= 1e-9 * smallest);
    assert_true(fabs(squared_error(&tensor, best) - smallest) <= 1e-9 * smallest);
    assert_true(error < 0.9 * squared_error(&tensor, whole));
    assert_true(stk_quant_high(best, 0) < 3);
    stk_quant_release(best);
    /* so small that all ranges have the same scale; the widest one is kept */
    for (int i = 0; i < count; i++)
        ((float *)tensor.data)[i] = (float)(i % 3) * 0x1p-23f;
    assert_ok(stk_quant_mse(&tensor, STK_QUINT8, STK_QUANT_AFFINE, 0, &best, &error, &err));
    assert_true(stk_quant_scale(best, 0) == 0x1p-23 && error == 0);
    assert_true(stk_quant_high(best, 0) == 0x1p-22);
    stk_quant_release(best);
    stk_quant_release(whole);
    stk_tensor_release(&tensor);
}

static void test_refusals(void **unused)
{
    stk_tensor empty, whole, strange = samples_of(STK_F32, 2, (const int64_t[]){2, 3}, 1);
    stk_quant *quant;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_zeros(STK_F32, 2, (const int64_t[]){3, 0}, NULL, &empty, &err));
    assert_ok(stk_tensor_zeros(STK_I32, 1, (const int64_t[]){3}, NULL, &whole, &err));
    assert_status(stk_quant_minmax(&empty, STK_QINT8, STK_QUANT_AFFINE, &quant, &err), STK_E_EMPTY_REDUCE);
    assert_status(stk_quant_minmax_channels(&empty, 0, STK_QINT8, STK_QUANT_AFFINE, &quant, &err), STK_E_EMPTY_REDUCE);
    assert_status(stk_quant_minmax(&whole, STK_QINT8, STK_QUANT_AFFINE, &quant, &err), STK_E_BAD_DTYPE);
    assert_status(stk_quant_minmax_channels(&strange, 2, STK_QINT8, STK_QUANT_AFFINE, &quant, &err), STK_E_BAD_DIM);
    assert_status(stk_quant_minmax_channels(&strange, -1, STK_QINT8, STK_QUANT_AFFINE, &quant, &err), STK_E_BAD_DIM);
    assert_status(stk_quant_minmax(&strange, (stk_qdtype)7, STK_QUANT_AFFINE, &quant, &err), STK_E_BAD_ARG);
    assert_status(stk_quant_minmax(&strange, STK_QINT8, (stk_qscheme)7, &quant, &err), STK_E_BAD_ARG);
    assert_status(stk_quant_percentile(&strange, STK_QINT8, STK_QUANT_AFFINE, 60, 40, &quant, &err), STK_E_BAD_ARG);
    assert_status(stk_quant_percentile(&strange, STK_QINT8, STK_QUANT_AFFINE, -1, 40, &quant, &err), STK_E_BAD_ARG);
    assert_status(stk_quant_percentile(&strange, STK_QINT8, STK_QUANT_AFFINE, 0, NAN, &quant, &err), STK_E_BAD_ARG);
    assert_status(stk_quant_histogram(&strange, STK_QINT8, STK_QUANT_AFFINE, 0, 1, 99, &quant, &err), STK_E_BAD_ARG);
    assert_status(stk_quant_mse(&strange, STK_QINT8, STK_QUANT_AFFINE, -1, &quant, NULL, &err), STK_E_BAD_ARG);
    ((float *)strange.data)[4] = NAN;
    assert_status(stk_quant_minmax(&strange, STK_QINT8, STK_QUANT_AFFINE, &quant, &err), STK_E_BAD_VALUE);
    assert_says("1 of 6");
    ((float *)strange.data)[4] = -INFINITY;
    assert_status(stk_quant_percentile(&strange, STK_QINT8, STK_QUANT_AFFINE, 1, 99, &quant, &err), STK_E_BAD_VALUE);
    stk_tensor_release(&strange);
    stk_tensor_release(&whole);
    stk_tensor_release(&empty);
}

static stk_status calibrate(int kind, const stk_tensor *tensor, stk_quant **quant, stk_error *err)
{
    switch (kind) {
    case 0:
        return stk_quant_minmax_channels(tensor, 0, STK_QINT8, STK_QUANT_AFFINE, quant, err);
    case 1:
        return stk_quant_percentile(tensor, STK_QINT8, STK_QUANT_AFFINE, 1, 99, quant, err);
    case 2:
        return stk_quant_histogram(tensor, STK_QINT8, STK_QUANT_AFFINE, 10, 1, 99, quant, err);
    default:
        return stk_quant_mse(tensor, STK_QINT8, STK_QUANT_AFFINE, 5, quant, NULL, err);
    }
}

static void test_failing_allocations(void **unused)
{
    stk_tensor tensor = samples_of(STK_F32, 2, (const int64_t[]){2, 30}, 1);
    stki_memory_stats before, after;
    stk_error err;

    (void)unused;
    stk_memory_record_stop(); /* otherwise the recorder's own allocations would fail */
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int kind = 0; kind < 4; kind++) {
        stk_status status = STK_E_MEMORY;
        for (int64_t n = 1; status; n++) {
            stk_quant *quant = NULL;
            stki_memory_fail_at(n);
            status = calibrate(kind, &tensor, &quant, &err);
            stki_memory_fail_at(0);
            assert_true(status == STK_OK || status == STK_E_MEMORY);
            stk_quant_release(quant);
            stki_memory_read(STKI_MEM_HOST, &after);
            assert_int_equal(after.blocks, before.blocks);
        }
    }
    stk_tensor_release(&tensor);
    stk_memory_record_start();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_minmax),     cmocka_unit_test(test_minmax_channels),
        cmocka_unit_test(test_percentile), cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_mse),        cmocka_unit_test(test_histogram_by_hand),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, stkt_leak_setup, stkt_leak_teardown);
}
