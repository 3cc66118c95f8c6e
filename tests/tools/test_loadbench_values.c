/* Tests of the generated values of --make: functions of seed and position only, within their ranges, with the right
 * moments. */
#include "loadbench_values.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 1000, EACH = 37 };

static double scratch[ROWS * EACH];

static void make(const struct lb_values_ask *ask, int64_t first, int64_t count, void *out)
{
    stk_error err;

    assert_int_equal(lb_values_check(ask, &err), STK_OK);
    assert_int_equal(lb_values_fill(ask, first, count, EACH, scratch, out, &err), STK_OK);
}

/* Generating in chunks of any size gives the same bytes. */
static void pieces_agree(void **state)
{
    static const struct lb_values_ask asks[] = {
        {.kind = LB_VALUES_BYTES, .dtype = STK_U8, .seed = 3},
        {.kind = LB_VALUES_BYTES, .dtype = STK_I16, .seed = 3},
        {.kind = LB_VALUES_UNIFORM, .dtype = STK_F32, .seed = 4, .low = -1, .high = 1},
        {.kind = LB_VALUES_NORMAL, .dtype = STK_F16, .seed = 5, .std = 1},
        {.kind = LB_VALUES_LABELS, .dtype = STK_I64, .classes = 10},
    };
    static char whole[ROWS * EACH * 8], piece[ROWS * EACH * 8];

    (void)state;
    for (size_t k = 0; k < sizeof asks / sizeof asks[0]; k++) {
        const int64_t row_bytes = EACH * stk_dtype_size(asks[k].dtype);
        make(&asks[k], 0, ROWS, whole);
        for (int64_t first = 0, count = 1; first < ROWS; first += count, count = 2 * count + 1) {
            if (count > ROWS - first)
                count = ROWS - first;
            make(&asks[k], first, count, piece);
            assert_memory_equal(piece, whole + first * row_bytes, (size_t)(count * row_bytes));
        }
    }
}

static void seeds_differ(void **state)
{
    struct lb_values_ask ask = {.kind = LB_VALUES_BYTES, .dtype = STK_U8, .seed = 1};
    static unsigned char one[ROWS * EACH], two[ROWS * EACH];
    int same = 0;

    (void)state;
    make(&ask, 0, ROWS, one);
    ask.seed = 2;
    make(&ask, 0, ROWS, two);
    for (int i = 0; i < ROWS * EACH; i++)
        same += one[i] == two[i];
    assert_in_range(same, 60, 240); /* 144.5 expected, 12 standard deviations */
}

static void uniform_numbers(void **state)
{
    const struct lb_values_ask ask = {.kind = LB_VALUES_UNIFORM, .dtype = STK_F64, .seed = 1, .low = -2, .high = 6};
    static double out[ROWS * EACH];
    double sum = 0, least = 9, most = -9;

    (void)state;
    make(&ask, 0, ROWS, out);
    for (int i = 0; i < ROWS * EACH; i++) {
        sum += out[i];
        least = fmin(least, out[i]);
        most = fmax(most, out[i]);
    }
    assert_true(least >= -2 && least < -1.99 && most < 6 && most > 5.99);
    assert_true(fabs(sum / (ROWS * EACH) - 2) < 5 * 8 / sqrt(12.0 * ROWS * EACH));
}

static void uniform_whole_numbers(void **state)
{
    const struct lb_values_ask ask = {.kind = LB_VALUES_UNIFORM, .dtype = STK_I8, .seed = 1, .low = -3, .high = 3};
    static int8_t out[ROWS * EACH];
    int counts[6] = {0};

    (void)state;
    make(&ask, 0, ROWS, out);
    for (int i = 0; i < ROWS * EACH; i++) {
        assert_in_range(out[i] + 3, 0, 5);
        counts[out[i] + 3]++;
    }
    for (int i = 0; i < 6; i++)
        assert_in_range(counts[i], ROWS * EACH / 6 - 400, ROWS * EACH / 6 + 400); /* 5.6 standard deviations */
}

static void normal_numbers(void **state)
{
    const struct lb_values_ask ask = {.kind = LB_VALUES_NORMAL, .dtype = STK_F32, .seed = 1, .mean = 3, .std = 2};
    static float out[ROWS * EACH];
    const double n = ROWS * EACH;
    double sum = 0, squares = 0;
    int inside = 0;

    (void)state;
    make(&ask, 0, ROWS, out);
    for (int i = 0; i < ROWS * EACH; i++) {
        const double x = ((double)out[i] - 3) / 2;
        sum += x;
        squares += x * x;
        inside += fabs(x) < 1;
        assert_true(fabs(x) < 4.9);
    }
    assert_true(fabs(sum / n) < 5 / sqrt(n));
    assert_true(fabs(squares / n - 1) < 5 * sqrt(2 / n));
    /* 68.3 % for a normal distribution, 67.7 % for a sum of eight uniform ones */
    assert_true(fabs(inside / n - 0.68) < 0.015);
}

/* Values that do not fit in the dtype saturate and do not wrap. */
static void out_of_range_saturates(void **state)
{
    const struct lb_values_ask ask = {.kind = LB_VALUES_NORMAL, .dtype = STK_U8, .seed = 1, .mean = 0, .std = 1000};
    static uint8_t out[ROWS * EACH];
    int zeros = 0, full = 0;

    (void)state;
    make(&ask, 0, ROWS, out);
    for (int i = 0; i < ROWS * EACH; i++) {
        zeros += out[i] == 0;
        full += out[i] == 255;
    }
    assert_true(zeros > ROWS * EACH * 4 / 10 && full > ROWS * EACH * 3 / 10);
}

static void labels_and_constants(void **state)
{
    struct lb_values_ask ask = {.kind = LB_VALUES_LABELS, .dtype = STK_I32, .classes = 7};
    static int32_t out[ROWS * EACH];

    (void)state;
    make(&ask, 0, ROWS, out);
    for (int i = 0; i < ROWS * EACH; i++)
        assert_int_equal(out[i], i / EACH % 7);
    ask = (struct lb_values_ask){.kind = LB_VALUES_CONSTANT, .dtype = STK_I32, .value = -5};
    make(&ask, 0, ROWS, out);
    for (int i = 0; i < ROWS * EACH; i++)
        assert_int_equal(out[i], -5);
}

static void invalid_specifications_are_rejected(void **state)
{
    static const struct lb_values_ask asks[] = {
        {.kind = LB_VALUES_BYTES, .dtype = STK_F32},
        {.kind = LB_VALUES_LABELS, .dtype = STK_F32, .classes = 2},
        {.kind = LB_VALUES_UNIFORM, .dtype = STK_F32, .low = 1, .high = 1},
        {.kind = LB_VALUES_CONSTANT, .dtype = STK_C64},
    };
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        assert_int_not_equal(lb_values_check(&asks[i], &err), STK_OK);
        assert_true(strlen(err.message) > 10);
    }
}

/* The largest number that fits is accepted; for the next one the error names the key, the value and the range. */
static void numbers_beyond_the_dtype_are_refused(void **state)
{
    static const struct {
        struct lb_values_ask fits, does_not;
        const char *key;
    } rows[] = {
#define ROW(key_, dtype_, kind_, member, good, bad, ...)                         \
    {.fits = {.kind = kind_, .dtype = dtype_, .member = (good), __VA_ARGS__},    \
     .does_not = {.kind = kind_, .dtype = dtype_, .member = (bad), __VA_ARGS__}, \
     .key = key_}
        ROW("classes", STK_U8, LB_VALUES_LABELS, classes, 256, 257, .low = 0),
        ROW("classes", STK_I16, LB_VALUES_LABELS, classes, 32768, 32769, .low = 0),
        ROW("value", STK_BOOL, LB_VALUES_CONSTANT, value, 1, 2, .low = 0),
        ROW("value", STK_I8, LB_VALUES_CONSTANT, value, -128, -129, .low = 0),
        ROW("value", STK_U32, LB_VALUES_CONSTANT, value, 4294967295.0, 4294967296.0, .low = 0),
        ROW("value", STK_I64, LB_VALUES_CONSTANT, value, 0x1p53, 0x1.0000000000001p53, .low = 0),
        ROW("value", STK_U64, LB_VALUES_CONSTANT, value, 0, -1, .low = 0),
        ROW("value", STK_U8, LB_VALUES_CONSTANT, value, 1, 0.5, .low = 0),
        ROW("value", STK_F16, LB_VALUES_CONSTANT, value, 65504, 65505, .low = 0),
        ROW("value", STK_F32, LB_VALUES_CONSTANT, value, 3.4e38, 3.5e38, .low = 0),
        ROW("value", STK_BF16, LB_VALUES_CONSTANT, value, -3.3e38, -3.4e38, .low = 0),
        ROW("low", STK_U8, LB_VALUES_UNIFORM, low, 0, -1, .high = 3),
        ROW("high", STK_U8, LB_VALUES_UNIFORM, high, 256, 257, .low = 3),
        ROW("high", STK_BOOL, LB_VALUES_UNIFORM, high, 2, 3, .low = 0),
        ROW("high", STK_F16, LB_VALUES_UNIFORM, high, 65504, 65520, .low = 0),
        ROW("mean", STK_U8, LB_VALUES_NORMAL, mean, 0.5, -0.5, .std = 1000),
        ROW("std", STK_F16, LB_VALUES_NORMAL, std, 13368, 13369, .mean = 0),
    };
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(lb_values_check(&rows[i].fits, &err), STK_OK);
        assert_int_equal(lb_values_check(&rows[i].does_not, &err), STK_E_RANGE);
        assert_memory_equal(err.message, rows[i].key, strlen(rows[i].key));
        assert_non_null(strstr(err.message, stk_dtype_name(rows[i].does_not.dtype)));
    }
}

/* Classes in turn, with equal probabilities, or with probabilities proportional to 1 / (k + 1). The counts must
 * match. */
static void classes_are_drawn(void **state)
{
    enum { CLASSES = 5, DRAWS = 20000 };
    struct lb_values_ask ask = {.kind = LB_VALUES_LABELS, .dtype = STK_I64, .seed = 9, .classes = CLASSES};
    const double whole = 1 + 1 / 2.0 + 1 / 3.0 + 1 / 4.0 + 1 / 5.0;

    (void)state;
    for (int draw = LB_DRAW_TURNS; draw <= LB_DRAW_ZIPF; draw++) {
        int counts[CLASSES] = {0};
        ask.draw = (enum lb_draw)draw;
        for (int64_t row = 0; row < DRAWS; row++) {
            const int64_t class = lb_values_class(&ask, row);
            assert_in_range(class, 0, CLASSES - 1);
            assert_int_equal(class, lb_values_class(&ask, row));
            if (draw == LB_DRAW_TURNS)
                assert_int_equal(class, row % CLASSES);
            counts[class]++;
        }
        for (int k = 0; k < CLASSES; k++) {
            const double expected = draw == LB_DRAW_ZIPF ? DRAWS / (k + 1.0) / whole : (double)DRAWS / CLASSES;
            assert_true(fabs(counts[k] - expected) < 5 * sqrt(expected)); /* 5 standard deviations */
        }
    }
}

/* The stated part of every 4 KiB consists of zeros, wherever rows begin. */
static void bytes_pack_as_stated(void **state)
{
    enum { BYTES = 64 * 4096 };
    static unsigned char all[BYTES], parts[BYTES];
    struct lb_values_ask ask = {.kind = LB_VALUES_BYTES, .dtype = STK_U8, .seed = 4, .compressibility = 0.75};
    int zeros = 0;

    (void)state;
    assert_int_equal(lb_values_fill(&ask, 0, 1, BYTES, NULL, all, NULL), STK_OK);
    for (int i = 0; i < BYTES; i++)
        zeros += all[i] == 0;
    assert_in_range(zeros, (int)(0.75 * BYTES), (int)(0.76 * BYTES));
    for (int64_t row = 0; row < 256; row++) /* 1024 bytes each */
        assert_int_equal(lb_values_fill(&ask, row, 1, 1024, NULL, parts + 1024 * row, NULL), STK_OK);
    assert_memory_equal(all, parts, BYTES);
    ask.compressibility = 1;
    assert_int_equal(lb_values_fill(&ask, 0, 1, BYTES, NULL, all, NULL), STK_OK);
    for (int i = 0; i < BYTES; i++)
        assert_int_equal(all[i], 0);
}

/* Images have known bytes: they must be the same on every machine and in every version. */
static void pictures_are_the_same(void **state)
{
    struct lb_values_ask ask = {.kind = LB_VALUES_PICTURES, .dtype = STK_U8, .seed = 1};
    unsigned char smooth[65 * 70 * 3], noisy[65 * 70 * 3];
    int largest = 0, differ = 0;

    (void)state;
    lb_picture_fill(&ask, 5, 65, 70, 3, smooth);
    for (int y = 0; y < 65; y++)
        for (int x = 1; x < 70; x++) {
            const int step = abs(smooth[(y * 70 + x) * 3] - smooth[(y * 70 + x - 1) * 3]);
            largest = step > largest ? step : largest;
        }
    assert_in_range(largest, 1, 255 / 32 + 1); /* from corner to corner in 32 steps */
    ask.detail = 0.5;
    lb_picture_fill(&ask, 5, 65, 70, 3, noisy);
    for (size_t i = 0; i < sizeof smooth; i++) {
        assert_true(abs(noisy[i] - smooth[i]) <= 64);
        differ += noisy[i] != smooth[i];
    }
    assert_true(differ > (int)sizeof smooth * 9 / 10);
    lb_picture_fill(&ask, 6, 65, 70, 3, smooth);
    assert_memory_not_equal(smooth, noisy, sizeof smooth);
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof noisy; i++)
        sum = sum * 31 + noisy[i];
    assert_int_equal(sum, UINT64_C(0xf2816ea02644cb7d));
}

/* The mean is about 1, the spread is the stated one, and no size is out of range. */
static void sizes_spread(void **state)
{
    enum { DRAWS = 20000 };
    double sum = 0, squares = 0;

    (void)state;
    for (int64_t row = 0; row < DRAWS; row++) {
        const double factor = lb_values_spread(7, row, 0.2);
        assert_true(factor >= 0.05 && factor <= 4);
        sum += factor / DRAWS;
        squares += (factor - 1) * (factor - 1) / DRAWS;
    }
    assert_true(fabs(sum - 1) < 0.01);
    assert_true(fabs(sqrt(squares) - 0.2) < 0.01);
    assert_true(lb_values_spread(7, 3, 0) >= 1 && lb_values_spread(7, 3, 0) <= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_drawn),
        cmocka_unit_test(bytes_pack_as_stated),
        cmocka_unit_test(pictures_are_the_same),
        cmocka_unit_test(sizes_spread),
        cmocka_unit_test(pieces_agree),
        cmocka_unit_test(seeds_differ),
        cmocka_unit_test(uniform_numbers),
        cmocka_unit_test(uniform_whole_numbers),
        cmocka_unit_test(normal_numbers),
        cmocka_unit_test(out_of_range_saturates),
        cmocka_unit_test(labels_and_constants),
        cmocka_unit_test(invalid_specifications_are_rejected),
        cmocka_unit_test(numbers_beyond_the_dtype_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
