/* Tests of synthetic samples of every form against an independent implementation of their definition. */
#include "allocate.h"
#include "clock.h"
#include "faults.h"
#include "reader.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static stk_error err;
static const enum stki_synthetic_form forms[] = {STKI_SYNTHETIC_MEMORY, STKI_SYNTHETIC_SCRATCH, STKI_SYNTHETIC_BLOCK};

/* The definition, element by element. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static unsigned char raw_byte(int64_t seed, int64_t index, int64_t at)
{
    uint64_t golden = 0x9E3779B97F4A7C15u, key = mix(mix((uint64_t)seed + golden) + (uint64_t)index);

    return (unsigned char)(mix(key + ((uint64_t)at / 8 + 1) * golden) >> (8 * (at % 8)));
}

static stki_synthetic_opts opts_of(stk_dtype dtype, int64_t count, int64_t a, int64_t b)
{
    stki_synthetic_opts opts = STKI_SYNTHETIC_OPTS_INIT;

    opts.count = count;
    opts.seed = 42;
    opts.dtype = dtype;
    opts.ndim = 2;
    opts.shape[0] = a;
    opts.shape[1] = b;
    return opts;
}

static void test_bytes_are_as_stated(void **state)
{
    stki_synthetic_opts opts = opts_of(STK_U8, 10, 3, 7);
    unsigned char got[64];

    (void)state;
    for (int64_t index = 0; index < 10; index++) {
        memset(got, 0xEE, sizeof got);
        stki_synthetic_fill(&opts, index, 3, got);
        for (int64_t i = 0; i < 21; i++)
            assert_int_equal(got[i], raw_byte(42, index, i));
        assert_int_equal(got[21], 0xEE); /* and no further bytes */
    }
    opts.seed = 43;
    stki_synthetic_fill(&opts, 0, 3, got);
    assert_int_not_equal(memcmp(got, (unsigned char[]){raw_byte(42, 0, 0), raw_byte(42, 0, 1), raw_byte(42, 0, 2)}, 3),
                         0);
}

static double value_of(stk_dtype dtype, const unsigned char *at)
{
    uint16_t h;
    float f;
    double d;

    switch (dtype) {
    case STK_F32:
    case STK_C64:
        memcpy(&f, at, 4);
        return (double)f;
    case STK_F64:
    case STK_C128:
        memcpy(&d, at, 8);
        return d;
    case STK_F16: /* exponent 15 means 1 */
        memcpy(&h, at, 2);
        return ldexp(1 + (h & 0x3FF) / 1024.0, (h >> 10 & 31) - 15) * (h >> 15 ? -1 : 1);
    case STK_BF16:
        memcpy(&h, at, 2);
        return ldexp(1 + (h & 0x7F) / 128.0, (h >> 7 & 255) - 127) * (h >> 15 ? -1 : 1);
    case STK_F8_E4M3FN:
        return ldexp(1 + (*at & 7) / 8.0, (*at >> 3 & 15) - 7) * (*at >> 7 ? -1 : 1);
    case STK_F8_E5M2:
        return ldexp(1 + (*at & 3) / 4.0, (*at >> 2 & 31) - 15) * (*at >> 7 ? -1 : 1);
    default:
        return *at;
    }
}

static void test_values_are_sane_in_every_dtype(void **state)
{
    unsigned char got[16 * 256];

    (void)state;
    for (int dtype = STK_DTYPE_NONE + 1; dtype < STK_DTYPE_END; dtype++) {
        stki_synthetic_opts opts = opts_of((stk_dtype)dtype, 3, 16, 16);
        int64_t size = stk_dtype_size(opts.dtype), part = opts.dtype == STK_C64 ? 4 : opts.dtype == STK_C128 ? 8 : size;
        double low = 1e9, high = -1e9, value;
        stki_synthetic_fill(&opts, 1, 16, got);
        if (opts.dtype >= STK_U8 && opts.dtype <= STK_I64) {
            for (int64_t i = 0; i < 256 * size; i++)
                assert_int_equal(got[i], raw_byte(42, 1, i));
            continue;
        }
        for (int64_t i = 0; i < 256 * size; i += part) {
            value = value_of(opts.dtype, got + i);
            low = value < low ? value : low;
            high = value > high ? value : high;
        }
        if (opts.dtype == STK_BOOL)
            assert_true(low == 0 && high == 1);
        else
            assert_true(low >= 1 && low < 1.3 && high > 1.7 && high < 2);
    }
}

static void check_sample(const stki_reader *reader, const stki_synthetic_opts *opts, int64_t index, int64_t source,
                         stki_scratch *scratch)
{
    int64_t length = stki_synthetic_length(opts, source), shape[STK_MAX_DIMS];
    unsigned char expected[4096];
    stk_tensor t;

    assert_int_equal(reader->ops->read(reader, index, NULL, scratch, &t, &err), STK_OK);
    assert_int_equal(t.dtype, opts->dtype);
    assert_int_equal(t.ndim, 2);
    assert_int_equal(t.shape[0], length);
    assert_int_equal(t.shape[1], opts->shape[1]);
    assert_int_equal(t.strides[1], stk_dtype_size(opts->dtype));
    assert_int_equal(t.strides[0], opts->shape[1] * t.strides[1]);
    assert_true(t.flags & STK_TENSOR_READONLY);
    assert_int_equal(t.storage != NULL, opts->form == STKI_SYNTHETIC_BLOCK);
    stki_synthetic_fill(opts, source, length, expected);
    assert_memory_equal(t.data, expected, (size_t)stk_tensor_nbytes(&t));
    if (reader->base)
        assert_ptr_equal(t.data, (const char *)reader->base + index * reader->sample_stride);
    stki_reader_done(reader, &t);
    if (reader->ops->shape) {
        assert_int_equal(reader->ops->shape(reader, index, shape, &err), STK_OK);
        assert_int_equal(shape[0], length);
        assert_int_equal(shape[1], opts->shape[1]);
    }
}

static void test_every_form(void **state)
{
    stki_scratch scratch;

    (void)state;
    stki_scratch_init(&scratch);
    for (int f = 0; f < 3; f++)
        for (int variable = 0; variable < 2; variable++) {
            stki_synthetic_opts opts = opts_of(STK_I16, 50, 9, 5);
            stki_reader *reader;
            opts.form = forms[f];
            opts.min_length = variable ? 2 : -1;
            assert_int_equal(stki_synthetic_open(&opts, &reader, &err), STK_OK);
            assert_int_equal(reader->count, 50);
            assert_int_equal(reader->variable, variable);
            assert_int_equal(reader->ops->shape != NULL, variable);
            assert_int_equal(reader->max_bytes, 90);
            assert_int_equal(reader->base != NULL, f == 0 && !variable);
            assert_int_equal(reader->copies, f != 0);
            for (int64_t i = 0; i < 50; i++)
                check_sample(reader, &opts, i, i, &scratch);
            stki_reader_destroy(reader);
        }
    stki_scratch_fini(&scratch);
}

static void test_lengths_cover_their_range(void **state)
{
    stki_synthetic_opts opts = opts_of(STK_U8, 1000, 5, 1);
    int64_t seen[6] = {0};

    (void)state;
    opts.min_length = 0;
    for (int64_t i = 0; i < 1000; i++) {
        int64_t length = stki_synthetic_length(&opts, i);
        assert_in_range(length, 0, 5);
        seen[length]++;
    }
    for (int i = 0; i < 6; i++)
        assert_in_range(seen[i], 100, 250);
    opts.min_length = 5;
    assert_int_equal(stki_synthetic_length(&opts, 3), 5);
}

static void test_few_distinct_samples(void **state)
{
    stki_synthetic_opts opts = opts_of(STK_F32, 20, 2, 3);
    stki_reader *reader;
    stki_scratch scratch;

    (void)state;
    stki_scratch_init(&scratch);
    opts.distinct = 7;
    assert_int_equal(stki_synthetic_open(&opts, &reader, &err), STK_OK);
    assert_null(reader->base); /* the samples repeat, so they have no constant stride */
    for (int64_t i = 0; i < 20; i++)
        check_sample(reader, &opts, i, i % 7, &scratch);
    stki_reader_destroy(reader);
    opts.distinct = 1;
    assert_int_equal(stki_synthetic_open(&opts, &reader, &err), STK_OK);
    assert_non_null(reader->base);
    assert_int_equal(reader->sample_stride, 0);
    check_sample(reader, &opts, 19, 0, &scratch);
    stki_reader_destroy(reader);
    opts.distinct = 100; /* limited to the number of samples */
    assert_int_equal(stki_synthetic_open(&opts, &reader, &err), STK_OK);
    check_sample(reader, &opts, 19, 19, &scratch);
    stki_reader_destroy(reader);
    opts.distinct = 0; /* as many as fit in 64 MiB */
    opts.count = INT64_C(1) << 40;
    opts.shape[0] = 1 << 20;
    assert_int_equal(stki_synthetic_open(&opts, &reader, &err), STK_OK);
    assert_null(reader->base);
    assert_int_equal(reader->count, INT64_C(1) << 40);
    stki_reader_destroy(reader);
    stki_scratch_fini(&scratch);
}

static void test_slow_reads_have_no_fast_path(void **state)
{
    stki_synthetic_opts opts = opts_of(STK_U8, 4, 2, 3);
    stki_scratch scratch;
    stki_reader *reader;
    int64_t start;

    (void)state;
    stki_scratch_init(&scratch);
    opts.read_ns = 20000000;
    assert_int_equal(stki_synthetic_open(&opts, &reader, &err), STK_OK);
    assert_null(reader->base);
    start = stki_now_ns();
    check_sample(reader, &opts, 2, 2, &scratch);
    assert_true(stki_now_ns() - start >= 20000000);
    stki_reader_destroy(reader);
    stki_scratch_fini(&scratch);
}

static void test_samples_without_axes_or_bytes(void **state)
{
    (void)state;
    for (int f = 0; f < 3; f++) {
        stki_synthetic_opts opts = opts_of(STK_I64, 5, 0, 3);
        stki_scratch scratch;
        stki_reader *reader;
        stk_tensor t;
        int64_t expected;
        stki_scratch_init(&scratch);
        opts.form = forms[f];
        assert_int_equal(stki_synthetic_open(&opts, &reader, &err), STK_OK);
        assert_int_equal(reader->max_bytes, 0);
        check_sample(reader, &opts, 4, 4, &scratch);
        stki_reader_destroy(reader);
        opts.ndim = 0;
        assert_int_equal(stki_synthetic_open(&opts, &reader, &err), STK_OK);
        assert_int_equal(reader->max_bytes, 8);
        assert_int_equal(reader->ops->read(reader, 3, NULL, &scratch, &t, &err), STK_OK);
        stki_synthetic_fill(&opts, 3, 1, &expected);
        assert_int_equal(t.ndim, 0);
        assert_memory_equal(t.data, &expected, 8);
        stki_reader_done(reader, &t);
        stki_reader_destroy(reader);
        opts.count = 0;
        assert_int_equal(stki_synthetic_open(&opts, &reader, &err), STK_OK);
        stki_reader_destroy(reader);
        stki_scratch_fini(&scratch);
    }
}

static void test_indices_outside(void **state)
{
    stki_synthetic_opts opts = opts_of(STK_U8, 4, 2, 3);
    stki_scratch scratch = {0};
    stki_reader *reader;
    int64_t shape[2];
    stk_tensor t;

    (void)state;
    opts.min_length = 1;
    assert_int_equal(stki_synthetic_open(&opts, &reader, &err), STK_OK);
    assert_int_equal(reader->ops->read(reader, 4, NULL, &scratch, &t, &err), STK_E_RANGE);
    assert_int_equal(reader->ops->read(reader, -1, NULL, &scratch, &t, &err), STK_E_RANGE);
    assert_int_equal(err.record, -1);
    assert_string_equal(err.expected, "0 to 3");
    assert_int_equal(reader->ops->shape(reader, 4, shape, &err), STK_E_RANGE);
    stki_reader_destroy(reader);
}

static void refused(stki_synthetic_opts opts, stk_status status, const char *says)
{
    stki_reader *reader = NULL;

    assert_int_equal(stki_synthetic_open(&opts, &reader, &err), status);
    assert_null(reader);
    if (!strstr(err.message, says))
        fail_msg("message: %s", err.message);
}

static void test_wrong_options(void **state)
{
    stki_synthetic_opts opts = opts_of(STK_U8, 4, 2, 3), wrong;

    (void)state;
    wrong = opts, wrong.dtype = STK_DTYPE_NONE;
    refused(wrong, STK_E_BAD_DTYPE, "dtype");
    wrong = opts, wrong.ndim = 32;
    refused(wrong, STK_E_UNSUPPORTED, "found 32 axes");
    wrong = opts, wrong.ndim = -1;
    refused(wrong, STK_E_UNSUPPORTED, "found -1 axes");
    wrong = opts, wrong.count = -1;
    refused(wrong, STK_E_RANGE, "count: found -1");
    wrong = opts, wrong.shape[1] = -2;
    refused(wrong, STK_E_BAD_SHAPE, "size -2 on axis 1");
    wrong = opts, wrong.shape[0] = wrong.shape[1] = INT64_C(1) << 40;
    refused(wrong, STK_E_BAD_SHAPE, "63 bits");
    wrong = opts, wrong.min_length = 3;
    refused(wrong, STK_E_RANGE, "min_length: found 3");
    wrong = opts, wrong.shape[0] = INT64_C(1) << 61, wrong.distinct = 1;
    refused(wrong, STK_E_MEMORY, "out of memory");
}

static void test_every_allocation_failing(void **state)
{
    (void)state;
    for (int f = 0; f < 3; f++) {
        stki_synthetic_opts opts = opts_of(STK_U8, 4, 2, 3);
        stki_memory_stats before, after;
        stk_status status;
        int n = 0;
        opts.form = forms[f];
        stki_memory_read(STKI_MEM_HOST, &before);
        do {
            stki_reader *reader = NULL;
            stki_scratch scratch;
            stk_tensor t;
            stki_scratch_init(&scratch);
            stki_memory_fail_at(++n);
            status = stki_synthetic_open(&opts, &reader, &err);
            if (!status)
                status = reader->ops->read(reader, 1, NULL, &scratch, &t, &err);
            if (!status)
                stki_reader_done(reader, &t);
            assert_true(status == STK_OK || status == STK_E_MEMORY);
            stki_reader_destroy(reader);
            stki_scratch_fini(&scratch);
        } while (status && n < 50);
        stki_memory_fail_at(0);
        assert_in_range(n, 4, 6);
        stki_memory_read(STKI_MEM_HOST, &after);
        assert_int_equal(before.bytes, after.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_are_as_stated),
        cmocka_unit_test(test_values_are_sane_in_every_dtype),
        cmocka_unit_test(test_every_form),
        cmocka_unit_test(test_lengths_cover_their_range),
        cmocka_unit_test(test_few_distinct_samples),
        cmocka_unit_test(test_slow_reads_have_no_fast_path),
        cmocka_unit_test(test_samples_without_axes_or_bytes),
        cmocka_unit_test(test_indices_outside),
        cmocka_unit_test(test_wrong_options),
        cmocka_unit_test(test_every_allocation_failing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
