/* Tests of quantized tensors: whole tensors with any strides against single elements, known bugs of other libraries,
 * rejected arguments, layouts, other devices, and failing allocations. */
#include "allocate.h"
#include "device_table.h"
#include "faults.h"
#include "leak_check.h"
#include "quant_internal.h"
#include "stk_test.h"
#include "tensor_model.h"
#include "test_device.h"
#include <math.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static uint64_t state = 7;

static stk_tensor floats(int ndim, const int64_t *shape, const float *values)
{
    stk_tensor tensor;
    stk_error err;

    assert_ok(stk_tensor_empty(STK_F32, ndim, shape, NULL, &tensor, &err));
    if (stk_tensor_numel(&tensor) > 0)
        memcpy(tensor.data, values, (size_t)stk_tensor_nbytes(&tensor));
    return tensor;
}

static stk_quant *one_pair(stk_qdtype qdtype, double scale, int64_t zero_point)
{
    stk_quant *quant = NULL;
    stk_error err;

    assert_ok(stk_quant_create(qdtype, STK_QUANT_PER_TENSOR, 1, &scale, &zero_point, &quant, &err));
    return quant;
}

static int64_t integer_at(const stk_tensor *tensor, int64_t n)
{
    const char *at = stkt_element(tensor, n);
    int32_t wide;

    if (tensor->dtype == STK_I8)
        return *(const int8_t *)at;
    if (tensor->dtype == STK_U8)
        return *(const uint8_t *)at;
    memcpy(&wide, at, sizeof wide);
    return wide;
}

/* ---- known answers ---- */

static void quantizes_to(double scale, int64_t zero_point, stk_qdtype qdtype, int count, const float *values,
                         const int64_t *expected)
{
    stk_tensor source = floats(1, (const int64_t[]){count}, values);
    stk_quant *quant = one_pair(qdtype, scale, zero_point);
    stk_qtensor quantized;
    stk_error err;

    assert_ok(stk_quantize(&source, quant, &quantized, &err));
    for (int i = 0; i < count; i++)
        if (integer_at(&quantized.integers, i) != expected[i])
            fail_msg("%g at scale %g: %lld, expected %lld", (double)values[i], scale,
                     (long long)integer_at(&quantized.integers, i), (long long)expected[i]);
    stk_qtensor_release(&quantized);
    stk_qtensor_release(&quantized);
    stk_quant_release(quant);
    stk_tensor_release(&source);
}

/* Row Q02 (apache/tvm#9558): values are clamped before they are converted. */
static void test_q02_extremes_saturate(void **unused)
{
    const float values[] = {NAN, INFINITY, -INFINITY, 1e20f, -1e20f};

    (void)unused;
    quantizes_to(1.0, 0, STK_QINT8, 5, values, (const int64_t[]){0, 127, -128, 127, -128});
    quantizes_to(1.0, -7, STK_QINT8, 5, values, (const int64_t[]){-7, 127, -128, 127, -128});
    quantizes_to(1.0, 200, STK_QUINT8, 5, values, (const int64_t[]){200, 255, 0, 255, 0});
    quantizes_to(1.0, 5, STK_QINT32, 5, values, (const int64_t[]){5, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN});
}

/* Row Q03 (ROCm/aiter#4637): values are clamped and rounded half to even. */
static void test_q03_half_to_even(void **unused)
{
    (void)unused;
    quantizes_to(1.0, 0, STK_QINT8, 6, (const float[]){127.6f, -128.6f, 0.5f, 1.5f, 2.5f, -0.5f},
                 (const int64_t[]){127, -128, 0, 2, 2, 0});
}

/* Quantizing multiplies by the reciprocal of the scale; a division would give 127. */
static void test_reciprocal(void **unused)
{
    (void)unused;
    quantizes_to(0.00214854861, 0, STK_QUINT8, 1, (const float[]){0.273939937f}, (const int64_t[]){128});
}

/* With parameters per channel the product is computed in double; with parameters per tensor, in f32. */
static void test_dequantize_products(void **unused)
{
    const double scale = 0.1;
    const int64_t zero = 0;
    stk_qtensor quantized;
    stk_tensor integers, whole, by_channel;
    stk_quant *channels = NULL, *tensor = one_pair(STK_QINT8, scale, zero);
    stk_error err;
    int differ = 0;

    (void)unused;
    assert_ok(stk_tensor_empty(STK_I8, 2, (const int64_t[]){1, 256}, NULL, &integers, &err));
    for (int i = 0; i < 256; i++)
        ((int8_t *)integers.data)[i] = (int8_t)(i - 128);
    assert_ok(stk_quant_create(STK_QINT8, 0, 1, &scale, &zero, &channels, &err));
    assert_ok(stk_qtensor_of(&integers, tensor, &quantized, &err));
    assert_ok(stk_dequantize(&quantized, &whole, &err));
    stk_qtensor_release(&quantized);
    assert_ok(stk_qtensor_of(&integers, channels, &quantized, &err));
    assert_ok(stk_dequantize(&quantized, &by_channel, &err));
    stk_qtensor_release(&quantized);
    for (int i = 0; i < 256; i++) {
        float x = (float)(i - 128) * 0.1f, y = (float)((double)(i - 128) * 0.1);
        assert_memory_equal((char *)whole.data + 4 * i, &x, 4);
        assert_memory_equal((char *)by_channel.data + 4 * i, &y, 4);
        differ += memcmp(&x, &y, 4) != 0;
    }
    assert_true(differ > 0);
    stk_tensor_release(&whole);
    stk_tensor_release(&by_channel);
    stk_tensor_release(&integers);
    stk_quant_release(channels);
    stk_quant_release(tensor);
}

/* ---- any view, element by element ---- */

/* A random chain of views of `tensor`, which is released. */
static stk_tensor random_view(stk_tensor tensor)
{
    stk_error err;

    for (int64_t left = stkt_random_in(&state, 0, 4); left > 0; left--) {
        stk_tensor next;
        int dims[STK_MAX_DIMS], axis = (int)stkt_random_in(&state, 0, tensor.ndim - 1);
        int64_t size = tensor.shape[axis], start = stkt_random_in(&state, 0, size > 0 ? size - 1 : 0);
        switch (stkt_random_in(&state, 0, 3)) {
        case 0:
            assert_ok(stk_tensor_flip(&tensor, axis, &next, &err));
            break;
        case 1:
            assert_ok(stk_tensor_slice(&tensor, axis, start / 2, size, stkt_random_in(&state, 1, 3), &next, &err));
            break;
        case 2:
            for (int i = 0; i < tensor.ndim; i++)
                dims[i] = i;
            for (int i = tensor.ndim - 1; i > 0; i--) {
                int k = (int)stkt_random_in(&state, 0, i), swap = dims[i];
                dims[i] = dims[k];
                dims[k] = swap;
            }
            assert_ok(stk_tensor_permute(&tensor, dims, &next, &err));
            break;
        default:
            assert_ok(stk_tensor_unsqueeze(&tensor, axis, &next, &err));
        }
        stk_tensor_release(&tensor);
        tensor = next;
    }
    return tensor;
}

static stk_tensor random_tensor(stk_dtype dtype, int64_t most)
{
    int64_t shape[4];
    int ndim = (int)stkt_random_in(&state, 1, 4);
    stk_tensor tensor;
    stk_error err;

    for (int i = 0; i < ndim; i++)
        shape[i] = stkt_random_in(&state, stkt_random_in(&state, 0, 8) == 0 ? 0 : 1, most);
    if (ndim > 1 && stkt_random_in(&state, 0, 3) == 0)
        shape[stkt_random_in(&state, 0, ndim - 1)] = stkt_random_in(&state, 300, 700);
    assert_ok(stk_tensor_empty(dtype, ndim, shape, NULL, &tensor, &err));
    for (int64_t n = 0; n < stk_tensor_numel(&tensor); n++) {
        float x = (float)stkt_random_in(&state, -3000, 3000) / 8.0f;
        int64_t whole = stkt_random_in(&state, -1000, 1000);
        memcpy(stkt_element(&tensor, n), dtype == STK_F32 ? (void *)&x : (void *)&whole, (size_t)stk_dtype_size(dtype));
    }
    return tensor;
}

static stk_quant *random_parameters(const stk_tensor *tensor, stk_qdtype qdtype)
{
    int axis = tensor->ndim ? (int)stkt_random_in(&state, -1, tensor->ndim - 1) : -1;
    int64_t count = axis < 0 ? 1 : tensor->shape[axis], zeros[1024];
    double scales[1024];
    stk_quant *quant = NULL;
    stk_error err;

    assert_true(count <= 1024);
    for (int64_t i = 0; i < count; i++) {
        scales[i] = (double)stkt_random_in(&state, 1, 40) / 7.0;
        zeros[i] = stkt_random_in(&state, qdtype == STK_QUINT8 ? 0 : -128, 127);
    }
    assert_ok(stk_quant_create(qdtype, axis, count, scales, zeros, &quant, &err));
    return quant;
}

static int64_t channel_of(const stk_tensor *tensor, const stk_quant *quant, int64_t n)
{
    int64_t index[STK_MAX_DIMS];

    stkt_unravel(tensor->ndim, tensor->shape, n, index);
    return quant->axis < 0 ? 0 : index[quant->axis];
}

static void check_elements(const stk_tensor *source, const stk_quant *quant, const stk_tensor *integers,
                           const stk_tensor *back)
{
    int64_t size = stk_dtype_size(integers->dtype);

    assert_int_equal(integers->ndim, source->ndim);
    assert_memory_equal(integers->shape, source->shape, sizeof source->shape[0] * (size_t)source->ndim);
    for (int64_t n = 0; n < stk_tensor_numel(source); n++) {
        int64_t channel = channel_of(source, quant, n);
        char q[4];
        float x;
        stki_quant_ref.quantize[quant->qdtype](&quant->lane, q, stkt_element(source, n), 1, channel);
        assert_memory_equal(q, stkt_element(integers, n), (size_t)size);
        stki_quant_ref.dequantize[quant->qdtype](&quant->lane, &x, q, 1, channel);
        assert_memory_equal(&x, stkt_element(back, n), 4);
    }
}

static void test_any_view(void **unused)
{
    stk_error err;

    (void)unused;
    for (int round = 0; round < 600; round++) {
        stk_tensor source = random_view(random_tensor(STK_F32, 7)), back, own;
        stk_qdtype qdtype = (stk_qdtype)stkt_random_in(&state, STK_QINT8, STK_QINT32);
        stk_quant *quant = random_parameters(&source, qdtype);
        stk_qtensor quantized;

        assert_ok(stk_quantize(&source, quant, &quantized, &err));
        assert_ok(stk_dequantize(&quantized, &back, &err));
        check_elements(&source, quant, &quantized.integers, &back);
        assert_ok(stk_int_repr(&quantized, &own, &err));
        assert_true(own.data != quantized.integers.data || stk_tensor_numel(&own) == 0);
        for (int64_t n = 0; n < stk_tensor_numel(&own); n++)
            assert_int_equal(integer_at(&own, n), integer_at(&quantized.integers, n));
        stk_tensor_release(&own);
        stk_tensor_release(&back);
        stk_qtensor_release(&quantized);
        stk_quant_release(quant);
        stk_tensor_release(&source);
    }
}

/* Outputs that are views: every second element of a larger block, reversed, transposed. */
static void test_into_any_view(void **unused)
{
    stk_error err;

    (void)unused;
    for (int round = 0; round < 300; round++) {
        stk_qdtype qdtype = (stk_qdtype)stkt_random_in(&state, STK_QINT8, STK_QINT32);
        stk_tensor integers = random_view(random_tensor(stk_qdtype_integers(qdtype), 7)), source, back;
        stk_quant *quant = random_parameters(&integers, qdtype);

        assert_ok(stk_tensor_empty(STK_F32, integers.ndim, integers.shape, NULL, &source, &err));
        for (int64_t n = 0; n < stk_tensor_numel(&source); n++)
            ((float *)source.data)[n] = (float)stkt_random_in(&state, -3000, 3000) / 8.0f;
        assert_ok(stk_tensor_clone(&source, &back, &err));
        assert_ok(stk_quantize_into(&source, quant, &integers, &err));
        assert_ok(stk_dequantize_into(&integers, quant, &back, &err));
        check_elements(&source, quant, &integers, &back);
        stk_tensor_release(&integers);
        stk_tensor_release(&source);
        stk_tensor_release(&back);
        stk_quant_release(quant);
    }
}

/* Both sides are reversed along the channel axis. The loop runs in the other direction and must also reverse the
 * channels. */
static void test_both_sides_reversed(void **unused)
{
    stk_tensor floats_there, integers_there, source, integers, back;
    stk_quant *quant;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_empty(STK_F32, 2, (const int64_t[]){9, 3}, NULL, &floats_there, &err));
    assert_ok(stk_tensor_empty(STK_I8, 2, (const int64_t[]){9, 3}, NULL, &integers_there, &err));
    for (int i = 0; i < 27; i++)
        ((float *)floats_there.data)[i] = (float)i;
    assert_ok(stk_tensor_flip(&floats_there, 1, &source, &err));
    assert_ok(stk_tensor_flip(&integers_there, 1, &integers, &err));
    assert_ok(stk_tensor_clone(&source, &back, &err));
    assert_ok(stk_quant_create(STK_QINT8, 1, 3, (double[]){1, 2, 3}, (int64_t[]){0, 10, 20}, &quant, &err));
    assert_ok(stk_quantize_into(&source, quant, &integers, &err));
    assert_ok(stk_dequantize_into(&integers, quant, &back, &err));
    check_elements(&source, quant, &integers, &back);
    stk_quant_release(quant);
    stk_tensor_release(&back);
    stk_tensor_release(&integers);
    stk_tensor_release(&source);
    stk_tensor_release(&integers_there);
    stk_tensor_release(&floats_there);
}

/* Large enough for non-temporal stores, with channels on the first and on the last axis. */
static void test_large(void **unused)
{
    const int64_t rows = 8192, columns = (2 * stki_cache_bytes() / 5 / rows + 64) | 1;
    stk_error err;
    stk_tensor source;

    (void)unused;
    assert_ok(stk_tensor_empty(STK_F32, 2, (const int64_t[]){rows, columns}, NULL, &source, &err));
    for (int64_t n = 0; n < rows * columns; n++)
        ((float *)source.data)[n] = (float)(n % 4001 - 2000) / 8.0f;
    for (int axis = 0; axis < 2; axis++) {
        int64_t count = source.shape[axis];
        double *scales = malloc((size_t)count * sizeof *scales);
        int64_t *zeros = malloc((size_t)count * sizeof *zeros);
        stk_quant *quant;
        stk_qtensor quantized;
        stk_tensor back;
        for (int64_t i = 0; i < count; i++) {
            scales[i] = 1.0 + (double)(i % 13);
            zeros[i] = i % 200 - 100;
        }
        assert_ok(stk_quant_create(STK_QINT8, axis, count, scales, zeros, &quant, &err));
        assert_ok(stk_quantize(&source, quant, &quantized, &err));
        assert_ok(stk_dequantize(&quantized, &back, &err));
        for (int64_t n = 0; n < rows * columns; n += 997) {
            int64_t channel = axis == 0 ? n / columns : n % columns;
            int8_t q;
            float x;
            stki_quant_ref.quantize[STK_QINT8](&quant->lane, &q, (float *)source.data + n, 1, channel);
            stki_quant_ref.dequantize[STK_QINT8](&quant->lane, &x, &q, 1, channel);
            assert_int_equal(q, ((int8_t *)quantized.integers.data)[n]);
            assert_memory_equal(&x, (float *)back.data + n, 4);
        }
        stk_tensor_release(&back);
        stk_qtensor_release(&quantized);
        stk_quant_release(quant);
        free(scales);
        free(zeros);
    }
    stk_tensor_release(&source);
}

/* With many elements per channel, the product in double is replaced by a faster one if a check shows that the results
 * are equal. For the last of these scales they differ, at the integer -128. */
static void test_products_for_many(void **unused)
{
    enum { CHANNELS = 3, EACH = 1 << 16 };
    const double scales[] = {0.1, 1.0 / 3, 0x1.215b816a13cd6p-2};
    const int64_t zeros[] = {-5, 100, 53};
    stk_error err;

    (void)unused;
    for (int count = 1; count <= CHANNELS; count++)
        for (int last = 0; last < 2; last++) {
            stk_tensor integers, back;
            stk_quant *quant;
            stk_qtensor quantized;
            assert_ok(stk_tensor_empty(STK_I8, 2, (const int64_t[]){last ? EACH : count, last ? count : EACH}, NULL,
                                       &integers, &err));
            for (int64_t n = 0; n < count * EACH; n++)
                ((int8_t *)integers.data)[n] = (int8_t)stkt_random(&state);
            assert_ok(stk_quant_create(STK_QINT8, last, count, scales, zeros, &quant, &err));
            assert_ok(stk_qtensor_of(&integers, quant, &quantized, &err));
            assert_ok(stk_dequantize(&quantized, &back, &err));
            if (stki_isa() != STKI_ISA_REF)
                assert_int_equal(stki_counted(&quant->proof), count == 3 ? STKI_PROOF_FAILS : STKI_PROOF_HOLDS);
            for (int64_t n = 0; n < count * EACH; n++) {
                int64_t channel = last ? n % count : n / EACH;
                double q = ((int8_t *)integers.data)[n];
                float x = (float)((q - (double)zeros[channel]) * scales[channel]);
                if (memcmp(&x, (float *)back.data + n, sizeof x) != 0)
                    fail_msg("channel %lld: %g", (long long)channel, q);
            }
            stk_tensor_release(&back);
            stk_qtensor_release(&quantized);
            stk_quant_release(quant);
            stk_tensor_release(&integers);
        }
}

/* The results are the same if the thread rounds up and flushes subnormals. */
static void test_any_float_control(void **unused)
{
#if defined(__x86_64__)
    const float values[] = {0.5f, 0.7f, 1e-40f, -1e-40f, 3.3f, -2.2f, 1e-38f, 100};
    stk_tensor source = floats(1, (const int64_t[]){8}, values), back[2];
    stk_qtensor quantized[2];
    stk_error err;

    (void)unused;
    for (int strange = 0; strange < 2; strange++) {
        stk_quant *quant;
        unsigned control = _mm_getcsr();
        if (strange)
            _mm_setcsr(control | 0x8040 | 0x4000); /* subnormals count as 0, rounding upwards */
        quant = one_pair(STK_QINT32, 0x1p-126, 7);
        assert_ok(stk_quantize(&source, quant, &quantized[strange], &err));
        assert_ok(stk_dequantize(&quantized[strange], &back[strange], &err));
        _mm_setcsr(control);
        stk_quant_release(quant);
    }
    assert_memory_equal(quantized[0].integers.data, quantized[1].integers.data, 8 * 4);
    assert_memory_equal(back[0].data, back[1].data, 8 * 4);
    for (int i = 0; i < 2; i++) {
        stk_tensor_release(&back[i]);
        stk_qtensor_release(&quantized[i]);
    }
    stk_tensor_release(&source);
#else
    (void)unused;
#endif
}

/* Inside the range, the error of an element is at most half a step. */
static void test_error_bound(void **unused)
{
    stk_tensor source = floats(1, (const int64_t[]){0}, NULL);
    stk_quant *quant = one_pair(STK_QINT8, 0.03, -20);
    stk_qtensor quantized;
    stk_tensor back;
    stk_error err;

    (void)unused;
    stk_tensor_release(&source);
    assert_ok(stk_tensor_empty(STK_F32, 1, (const int64_t[]){1000}, NULL, &source, &err));
    for (int i = 0; i < 1000; i++)
        ((float *)source.data)[i] = -108 * 0.03f + (float)i / 999 * 255 * 0.03f;
    assert_ok(stk_quantize(&source, quant, &quantized, &err));
    assert_ok(stk_dequantize(&quantized, &back, &err));
    for (int i = 0; i < 1000; i++)
        assert_true(fabsf(((float *)source.data)[i] - ((float *)back.data)[i]) <= 0.015f * 1.0001f);
    stk_tensor_release(&back);
    stk_qtensor_release(&quantized);
    stk_quant_release(quant);
    stk_tensor_release(&source);
}

/* A channels-last tensor keeps its layout; one with gaps becomes row-major. */
static void test_layout_is_kept(void **unused)
{
    stk_tensor nhwc, nchw, gaps;
    stk_quant *quant = one_pair(STK_QINT8, 1, 0);
    stk_qtensor quantized;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_zeros(STK_F32, 4, (const int64_t[]){2, 4, 5, 3}, NULL, &nhwc, &err));
    assert_ok(stk_tensor_permute(&nhwc, (const int[]){0, 3, 1, 2}, &nchw, &err));
    assert_ok(stk_quantize(&nchw, quant, &quantized, &err));
    assert_true(stk_tensor_is_channels_last(&quantized.integers));
    stk_qtensor_release(&quantized);
    assert_ok(stk_tensor_slice(&nchw, 2, 0, 4, 2, &gaps, &err));
    assert_ok(stk_quantize(&gaps, quant, &quantized, &err));
    assert_true(stk_tensor_is_contiguous(&quantized.integers));
    stk_qtensor_release(&quantized);
    stk_tensor_release(&gaps);
    stk_tensor_release(&nchw);
    stk_tensor_release(&nhwc);
    stk_quant_release(quant);
}

/* A view of the integers that is combined with the parameters again keeps both alive. */
static void test_view_of_quantized(void **unused)
{
    const float values[] = {0, 1, 2, 3, 4, 5};
    stk_tensor source = floats(2, (const int64_t[]){2, 3}, values), turned, back;
    stk_quant *quant = one_pair(STK_QINT8, 0.5, 3);
    stk_qtensor quantized, view;
    stk_error err;

    (void)unused;
    assert_ok(stk_quantize(&source, quant, &quantized, &err));
    assert_ok(stk_tensor_transpose(&quantized.integers, 0, 1, &turned, &err));
    assert_ok(stk_qtensor_of(&turned, quant, &view, &err));
    stk_tensor_release(&turned);
    stk_qtensor_release(&quantized);
    stk_quant_release(quant);
    assert_int_equal(stk_storage_refs(view.integers.storage), 1);
    assert_ok(stk_dequantize(&view, &back, &err));
    for (int64_t n = 0; n < 6; n++) {
        float x;
        memcpy(&x, stkt_element(&back, n), 4);
        assert_true(x == values[n % 2 * 3 + n / 2]);
    }
    stk_tensor_release(&back);
    stk_qtensor_release(&view);
    stk_tensor_release(&source);
}

static void test_other_device(void **unused)
{
    const float values[] = {0.5f, 1.5f, -3, 200};
    stk_device *device = stki_device_test();
    stk_tensor source = floats(1, (const int64_t[]){4}, values), there, back, home;
    stk_quant *quant = one_pair(STK_QINT8, 1, 0);
    stk_qtensor quantized;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_empty(STK_F32, 1, (const int64_t[]){4}, device, &there, &err));
    assert_ok(stk_tensor_copy(&there, &source, &err));
    assert_ok(stk_quantize(&there, quant, &quantized, &err));
    assert_ptr_equal(quantized.integers.device, device);
    assert_ok(stk_dequantize(&quantized, &back, &err));
    assert_ok(stk_tensor_empty(STK_F32, 1, (const int64_t[]){4}, NULL, &home, &err));
    assert_ok(stk_tensor_copy(&home, &back, &err));
    for (int i = 0; i < 4; i++)
        assert_true(((float *)home.data)[i] == ((const float[]){0, 2, -3, 127})[i]);
    assert_status(stk_quantize_into(&source, quant, &quantized.integers, &err), STK_E_BAD_DEVICE);
    stk_tensor_release(&home);
    stk_tensor_release(&back);
    stk_qtensor_release(&quantized);
    stk_quant_release(quant);
    stk_tensor_release(&there);
    stk_tensor_release(&source);
}

/* ---- rejected arguments ---- */

static void test_refused_parameters(void **unused)
{
    stk_quant *quant;
    stk_error err;
    const double bad_scales[] = {0.0, -1.0, NAN, INFINITY, 1e-60, 1e60};
    const struct {
        stk_qdtype qdtype;
        int64_t zero;
    } bad_zeros[] = {
        {STK_QINT8, 128}, {STK_QINT8, -129}, {STK_QUINT8, -1}, {STK_QUINT8, 256}, {STK_QINT32, INT64_C(1) << 31}};

    (void)unused;
    for (size_t i = 0; i < sizeof bad_scales / sizeof bad_scales[0]; i++)
        assert_status(stk_quant_create(STK_QINT8, -1, 1, &bad_scales[i], &(int64_t){0}, &quant, &err), STK_E_BAD_ARG);
    for (size_t i = 0; i < sizeof bad_zeros / sizeof bad_zeros[0]; i++)
        assert_status(stk_quant_create(bad_zeros[i].qdtype, -1, 1, &(double){1}, &bad_zeros[i].zero, &quant, &err),
                      STK_E_BAD_ARG);
    assert_status(stk_quant_create((stk_qdtype)0, -1, 1, &(double){1}, &(int64_t){0}, &quant, &err), STK_E_BAD_ARG);
    assert_status(stk_quant_create(STK_QINT8, -2, 1, &(double){1}, &(int64_t){0}, &quant, &err), STK_E_BAD_DIM);
    assert_status(stk_quant_create(STK_QINT8, -1, 2, (double[]){1, 1}, (int64_t[]){0, 0}, &quant, &err),
                  STK_E_BAD_SHAPE);
    assert_status(stk_quant_create(STK_QINT8, 0, -1, NULL, NULL, &quant, &err), STK_E_BAD_SHAPE);
    assert_string_equal(stk_qdtype_name((stk_qdtype)9), "none");
    assert_int_equal(stk_qdtype_integers((stk_qdtype)9), STK_DTYPE_NONE);
}

static void test_refused_tensors(void **unused)
{
    const float values[6] = {0};
    stk_tensor source = floats(2, (const int64_t[]){2, 3}, values), other, wide;
    stk_quant *quant = one_pair(STK_QINT8, 1, 0), *channels = NULL, *far = NULL;
    stk_qtensor quantized;
    stk_error err;

    (void)unused;
    assert_ok(stk_quant_create(STK_QINT8, 0, 3, (double[]){1, 1, 1}, (int64_t[]){0, 0, 0}, &channels, &err));
    assert_ok(stk_quant_create(STK_QINT8, 2, 3, (double[]){1, 1, 1}, (int64_t[]){0, 0, 0}, &far, &err));
    assert_status(stk_quantize(&source, channels, &quantized, &err), STK_E_BAD_SHAPE);
    assert_status(stk_quantize(&source, far, &quantized, &err), STK_E_BAD_DIM);
    assert_ok(stk_tensor_to(&source, STK_F64, &other, &err));
    assert_status(stk_quantize(&other, quant, &quantized, &err), STK_E_BAD_DTYPE);
    assert_status(stk_qtensor_of(&other, quant, &quantized, &err), STK_E_BAD_DTYPE);
    stk_tensor_release(&other);
    source.flags = STK_TENSOR_SWAPPED;
    assert_status(stk_quantize(&source, quant, &quantized, &err), STK_E_UNSUPPORTED);
    source.flags = 0;
    assert_ok(stk_tensor_zeros(STK_I8, 2, (const int64_t[]){3, 2}, NULL, &other, &err));
    assert_status(stk_quantize_into(&source, quant, &other, &err), STK_E_BAD_SHAPE);
    stk_tensor_release(&other);
    assert_ok(stk_tensor_zeros(STK_U8, 2, (const int64_t[]){2, 3}, NULL, &other, &err));
    assert_status(stk_quantize_into(&source, quant, &other, &err), STK_E_BAD_DTYPE);
    stk_tensor_release(&other);
    assert_ok(stk_tensor_zeros(STK_I8, 2, (const int64_t[]){1, 3}, NULL, &other, &err));
    assert_ok(stk_tensor_expand(&other, 2, (const int64_t[]){2, 3}, &wide, &err));
    assert_status(stk_quantize_into(&source, quant, &wide, &err), STK_E_BAD_OVERLAP);
    stk_tensor_release(&wide);
    stk_tensor_release(&other);
    assert_ok(stk_tensor_zeros(STK_I8, 2, (const int64_t[]){2, 3}, NULL, &other, &err));
    other.flags = STK_TENSOR_READONLY;
    assert_status(stk_quantize_into(&source, quant, &other, &err), STK_E_BAD_ARG);
    other.flags = 0;
    assert_status(stk_dequantize_into(&other, quant, &other, &err), STK_E_BAD_DTYPE);
    assert_ok(stk_dequantize_into(&other, quant, &source, &err));
    stk_tensor_release(&other);
    stk_quant_release(quant);
    stk_quant_release(channels);
    stk_quant_release(far);
    stk_tensor_release(&source);
    stk_quant_release(NULL);
    stk_qtensor_release(NULL);
}

static void test_failing_allocations(void **unused)
{
    const float values[6] = {1, 2, 3, 4, 5, 6};
    stk_tensor source = floats(2, (const int64_t[]){2, 3}, values);
    stki_memory_stats before, after;
    int64_t n = 1;
    stk_status status;
    stk_error err;

    (void)unused;
    stk_memory_record_stop(); /* otherwise the recorder's own allocations would fail */
    stki_memory_read(STKI_MEM_HOST, &before);
    do {
        stk_quant *quant = NULL;
        stk_qtensor quantized = {0};
        stk_tensor back = {0};
        stki_memory_fail_at(n);
        status = stk_quant_create(STK_QINT8, 1, 3, (double[]){1, 2, 3}, (int64_t[]){0, 1, 2}, &quant, &err);
        status = status ? status : stk_quantize(&source, quant, &quantized, &err);
        status = status ? status : stk_dequantize(&quantized, &back, &err);
        stki_memory_fail_at(0);
        stk_tensor_release(&back);
        stk_qtensor_release(&quantized);
        stk_quant_release(quant);
        assert_true(status == STK_OK || status == STK_E_MEMORY);
        stki_memory_read(STKI_MEM_HOST, &after);
        assert_int_equal(after.blocks, before.blocks);
        n++;
    } while (status);
    assert_true(n > 4);
    stk_tensor_release(&source);
    stk_memory_record_start();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_q02_extremes_saturate),
        cmocka_unit_test(test_q03_half_to_even),
        cmocka_unit_test(test_reciprocal),
        cmocka_unit_test(test_dequantize_products),
        cmocka_unit_test(test_any_view),
        cmocka_unit_test(test_into_any_view),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_any_float_control),
        cmocka_unit_test(test_both_sides_reversed),
        cmocka_unit_test(test_products_for_many),
        cmocka_unit_test(test_error_bound),
        cmocka_unit_test(test_layout_is_kept),
        cmocka_unit_test(test_view_of_quantized),
        cmocka_unit_test(test_other_device),
        cmocka_unit_test(test_refused_parameters),
        cmocka_unit_test(test_refused_tensors),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, stkt_leak_setup, stkt_leak_teardown);
}
