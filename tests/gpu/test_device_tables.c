/* stki-threads */
/* Tests of the tables that conversions and quantizers keep on devices: they are created once per device by any thread,
 * are right for kernels that read them, are freed with their owner, and leave nothing if their memory cannot be
 * allocated. */
#include "allocate.h"
#include "cmocka_all.h"
#include "convert.h"
#include "convert_internal.h"
#include "device_tables.h"
#include "faults.h"
#include "kernel_ops.h"
#include "kernel_twin.h"
#include "quant_internal.h"
#include "thread.h"
#include <string.h>

enum { CHANNELS = 100, THREADS = 6, AGAIN = 20 };

static stk_device *host;

static int find_host(void **state)
{
    (void)state;
    return stk_device_find("host", &host, NULL);
}

static stk_status run_twin(stk_device *device, const stki_launch *launch, stk_stream *stream, stk_error *err)
{
    (void)device, (void)stream, (void)err;
    stki_kernel_twin_run(launch);
    return STK_OK;
}

static stki_convert *make_convert(void)
{
    stki_convert *convert = NULL;
    float a[CHANNELS], b[CHANNELS];
    const stki_convert_desc desc = {.src_dtype = STK_U8,
                                    .dst_dtype = STK_F32,
                                    .ndim = 1,
                                    .shape = {CHANNELS},
                                    .src_strides = {1},
                                    .dst_strides = {4},
                                    .affine = true,
                                    .channels = CHANNELS,
                                    .a = a,
                                    .b = b};

    for (int c = 0; c < CHANNELS; c++) {
        a[c] = (float)c + 0.25f;
        b[c] = (float)(7 - c);
    }
    assert_int_equal(stki_convert_create(&desc, &convert, NULL), STK_OK);
    return convert;
}

static void check_convert(const stki_convert *convert)
{
    uint8_t src[CHANNELS];
    float expected[CHANNELS], found[CHANNELS];

    for (int c = 0; c < CHANNELS; c++)
        src[c] = (uint8_t)(3 * c);
    stki_convert_run(convert, expected, src);
    assert_int_equal(stki_kernel_convert(run_twin, host, convert, found, 0, src, 0, 1, NULL, NULL), STK_OK);
    assert_memory_equal(found, expected, sizeof found);
}

static int tables_of(const stki_device_tables *tables)
{
    int count = 0;

    for (const void *at = tables->first; at; at = *(const void *const *)at) /* `next` is the first member */
        count++;
    return count;
}

static int64_t bytes_on_host(void)
{
    stki_memory_stats stats;

    stki_counters_read(&host->memory, &stats);
    return stats.bytes;
}

static void one_table_per_device(void **state)
{
    const int64_t before = bytes_on_host();
    stki_convert *convert = make_convert();

    (void)state;
    assert_int_equal(tables_of(&convert->device_tables), 0);
    check_convert(convert);
    check_convert(convert);
    assert_int_equal(tables_of(&convert->device_tables), 1);
    assert_true(bytes_on_host() >= before + 8 * CHANNELS);
    stki_convert_destroy(convert);
    assert_int_equal(bytes_on_host(), before);
}

static void a_quantizer_has_one_table_per_direction(void **state)
{
    const int64_t before = bytes_on_host(), shape[1] = {CHANNELS};
    double scales[CHANNELS];
    int64_t zeros[CHANNELS];
    float x[CHANNELS], expected[CHANNELS], back[CHANNELS];
    int8_t q[CHANNELS], expected_q[CHANNELS];
    stk_tensor real, whole, host_whole, host_real;
    stk_quant *quant;

    (void)state;
    for (int c = 0; c < CHANNELS; c++) {
        scales[c] = 0.01 * (c + 1);
        zeros[c] = c - 50;
        x[c] = (float)(c % 17) - 8.0f;
    }
    assert_int_equal(stk_quant_create(STK_QINT8, 0, CHANNELS, scales, zeros, &quant, NULL), STK_OK);
    assert_int_equal(stk_tensor_borrow(x, STK_F32, 1, shape, NULL, &real, NULL), STK_OK);
    assert_int_equal(stk_tensor_borrow(q, STK_I8, 1, shape, NULL, &whole, NULL), STK_OK);
    assert_int_equal(stk_tensor_borrow(expected_q, STK_I8, 1, shape, NULL, &host_whole, NULL), STK_OK);
    assert_int_equal(stk_quantize_into(&real, quant, &host_whole, NULL), STK_OK);
    assert_int_equal(
        stki_kernel_quantize(run_twin, host, &(stki_quantize_job){quant, &whole, &real, false}, NULL, NULL), STK_OK);
    assert_memory_equal(q, expected_q, sizeof q);
    assert_int_equal(stk_tensor_borrow(back, STK_F32, 1, shape, NULL, &real, NULL), STK_OK);
    assert_int_equal(stk_tensor_borrow(expected, STK_F32, 1, shape, NULL, &host_real, NULL), STK_OK);
    assert_int_equal(stk_dequantize_into(&host_whole, quant, &host_real, NULL), STK_OK);
    assert_int_equal(stki_kernel_quantize(run_twin, host, &(stki_quantize_job){quant, &real, &whole, true}, NULL, NULL),
                     STK_OK);
    assert_memory_equal(back, expected, sizeof back);
    assert_int_equal(tables_of(&quant->device_tables), 2);
    stk_quant_release(quant);
    assert_int_equal(bytes_on_host(), before);
}

/* ---- many threads ---- */

static void convert_in_thread(void *convert)
{
    check_convert(convert);
}

static void threads_share_it(void **state)
{
    const int64_t before = bytes_on_host();

    (void)state;
    for (int again = 0; again < AGAIN; again++) {
        stki_convert *convert = make_convert();
        stki_thread *threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(stki_thread_start(&threads[i], "tables", convert_in_thread, convert, NULL), STK_OK);
        for (int i = 0; i < THREADS; i++)
            assert_true(stki_thread_join(threads[i], INT64_MAX));
        assert_int_equal(tables_of(&convert->device_tables), 1);
        stki_convert_destroy(convert);
    }
    assert_int_equal(bytes_on_host(), before);
}

/* ---- out of memory ---- */

static void failed_allocations_leave_nothing(void **state)
{
    const int64_t before = bytes_on_host();
    stki_convert *convert = make_convert();
    uint8_t src[CHANNELS] = {0};
    float dst[CHANNELS];
    stk_status status = STK_E_MEMORY;

    (void)state;
    for (int64_t n = 1; status != STK_OK; n++) {
        stk_error err = {0};
        assert_true(n < 10);
        stki_memory_fail_at(n);
        status = stki_kernel_convert(run_twin, host, convert, dst, 0, src, 0, 1, NULL, &err);
        stki_memory_fail_at(0);
        if (status == STK_OK)
            break;
        assert_int_equal(status, STK_E_MEMORY);
        assert_non_null(strstr(err.message, "out of"));
        assert_int_equal(tables_of(&convert->device_tables), 0);
        assert_int_equal(bytes_on_host(), before);
    }
    check_convert(convert);
    stki_convert_destroy(convert);
    assert_int_equal(bytes_on_host(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_table_per_device),
        cmocka_unit_test(a_quantizer_has_one_table_per_direction),
        cmocka_unit_test(threads_share_it),
        cmocka_unit_test(failed_allocations_leave_nothing),
    };

    return cmocka_run_group_tests(tests, find_host, NULL);
}
