/* Tests of copies between tensors: strided on both sides, broadcast, casting, byte-swapped, across devices, to
 * read-only memory, with overlap, and with the n-th allocation failing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "allocate.h"
#include "convert.h"
#include "device_table.h"
#include "faults.h"
#include "tensor_internal.h"
#include "tensor_model.h"
#include "test_device.h"
#include <stdlib.h>
#include <stoker/create.h>

static void make(stk_dtype dtype, int ndim, const int64_t *shape, stk_tensor *out)
{
    assert_int_equal(stk_tensor_empty(dtype, ndim, shape, NULL, out, NULL), STK_OK);
}

/* A view of exactly this shape, with permuted, stepped and reversed axes, inside a larger new tensor. */
static void strided_view(uint64_t *random, stk_dtype dtype, int ndim, const int64_t *shape, stk_tensor *base,
                         stk_tensor *out)
{
    int64_t larger[STK_MAX_DIMS] = {0}, steps[STK_MAX_DIMS];
    int to_base[STK_MAX_DIMS] = {0}, dims[STK_MAX_DIMS];
    stk_tensor view, next;

    for (int i = 0; i < ndim; i++) {
        int j = (int)stkt_random_in(random, 0, i);
        to_base[i] = to_base[j];
        to_base[j] = i;
    }
    for (int i = 0; i < ndim; i++) {
        steps[i] = stkt_random_in(random, 0, 2) ? 1 : 2;
        larger[to_base[i]] = shape[i] * steps[i] + stkt_random_in(random, 0, 1);
        dims[i] = to_base[i];
    }
    make(dtype, ndim, larger, base);
    assert_int_equal(stk_tensor_permute(base, dims, &view, NULL), STK_OK);
    for (int i = 0; i < ndim; i++) {
        assert_int_equal(stk_tensor_slice(&view, i, 0, shape[i] * steps[i], steps[i], &next, NULL), STK_OK);
        stk_tensor_release(&view);
        view = next;
        if (stkt_random_in(random, 0, 3) == 0) {
            assert_int_equal(stk_tensor_flip(&view, i, &next, NULL), STK_OK);
            stk_tensor_release(&view);
            view = next;
        }
    }
    *out = view;
}

/* dst[i] = (float)src[i], and nothing else in dst's storage may change. */
static void check_strided(uint64_t *random)
{
    int ndim = (int)stkt_random_in(random, 0, 5);
    int64_t shape[8], count;
    stk_tensor src_base, dst_base, src, dst, before;

    for (int i = 0; i < ndim; i++)
        shape[i] = stkt_random_in(random, 0, 15) ? stkt_random_in(random, 1, 6) : 0;
    count = stkt_count(ndim, shape);
    strided_view(random, STK_U16, ndim, shape, &src_base, &src);
    strided_view(random, STK_F32, ndim, shape, &dst_base, &dst);
    for (int64_t i = 0; i < stk_tensor_numel(&src_base); i++)
        ((uint16_t *)src_base.data)[i] = (uint16_t)stkt_random(random);
    for (int64_t i = 0; i < stk_tensor_numel(&dst_base); i++)
        ((float *)dst_base.data)[i] = -(float)i - 1;
    assert_int_equal(stk_tensor_clone(&dst_base, &before, NULL), STK_OK);
    assert_int_equal(stk_tensor_copy(&dst, &src, NULL), STK_OK);
    for (int64_t n = 0; n < count; n++) {
        float got;
        uint16_t wanted;
        memcpy(&got, stkt_element(&dst, n), sizeof got);
        memcpy(&wanted, stkt_element(&src, n), sizeof wanted);
        assert_true(got == (float)wanted);
    }
    for (int64_t n = 0; n < count; n++) /* with the old elements restored, everything must be unchanged */
        memcpy(stkt_element(&dst, n), (char *)before.data + (stkt_element(&dst, n) - (char *)dst_base.data),
               sizeof(float));
    assert_memory_equal(dst_base.data, before.data, (size_t)stk_tensor_nbytes(&before));
    stk_tensor_release(&before);
    stk_tensor_release(&dst);
    stk_tensor_release(&src);
    stk_tensor_release(&dst_base);
    stk_tensor_release(&src_base);
}

static void strided_on_both_sides(void **state)
{
    uint64_t random = 5;

    (void)state;
    for (int i = 0; i < 5000; i++)
        check_strided(&random);
}

static void broadcast_source(void **state)
{
    stk_tensor dst, src;

    (void)state;
    make(STK_I32, 3, (int64_t[]){2, 3, 4}, &dst);
    assert_int_equal(stk_tensor_from_array(STK_VALUES(int8_t, 10, -20, 30), STK_SHAPE(3, 1), NULL, &src, NULL), STK_OK);
    assert_int_equal(stk_tensor_copy(&dst, &src, NULL), STK_OK);
    for (int i = 0; i < 24; i++)
        assert_int_equal(((int32_t *)dst.data)[i], ((int[]){10, -20, 30})[i / 4 % 3]);
    assert_int_equal(stk_tensor_copy(&src, &dst, NULL), STK_E_BAD_BROADCAST);
    stk_tensor_release(&src);
    assert_int_equal(stk_tensor_zeros(STK_I32, STK_SHAPE(1, 2, 3, 4), NULL, &src, NULL), STK_OK);
    assert_int_equal(stk_tensor_copy(&dst, &src, NULL), STK_E_BAD_BROADCAST); /* one axis too many */
    stk_tensor_release(&src);
    stk_tensor_release(&dst);
}

static void other_byte_order(void **state)
{
    unsigned char bytes[] = {0x01, 0x02, 0x03, 0x04, 0xff, 0xff, 0xff, 0xfe};
    stk_tensor big, native, wide;

    (void)state;
    assert_int_equal(stk_tensor_borrow(bytes, STK_I32, STK_SHAPE(2), NULL, &big, NULL), STK_OK);
    big.flags |= STK_TENSOR_SWAPPED;
    /* copied although it is row-major, because it is byte-swapped */
    assert_int_equal(stk_tensor_contiguous(&big, &native, NULL), STK_OK);
    assert_int_equal(native.flags, 0);
    assert_int_equal(((int32_t *)native.data)[0], 0x01020304);
    assert_int_equal(((int32_t *)native.data)[1], -2);
    stk_tensor_release(&native);
    assert_int_equal(stk_tensor_to(&big, STK_I32, &native, NULL), STK_OK);
    assert_int_equal(((int32_t *)native.data)[1], -2);
    assert_int_equal(stk_tensor_to(&big, STK_F64, &wide, NULL), STK_OK);
    assert_true(((double *)wide.data)[0] == 0x01020304 && ((double *)wide.data)[1] == -2.0);
    assert_int_equal(stk_tensor_copy(&big, &native, NULL), STK_E_UNSUPPORTED);
    stk_tensor_release(&wide);
    stk_tensor_release(&native);
}

/* Row N28: a read-only tensor can be read by all functions but not written. */
static void read_only(void **state)
{
    static const float values[] = {1, 2, 3, 4};
    stk_tensor fixed, one, copy, view;
    stk_scalar value;
    stk_error err;

    (void)state;
    assert_int_equal(stk_tensor_borrow((void *)(uintptr_t)values, STK_F32, STK_SHAPE(2, 2), NULL, &fixed, NULL),
                     STK_OK);
    fixed.flags |= STK_TENSOR_READONLY;
    assert_int_equal(stk_tensor_ones(STK_F32, STK_SHAPE(2, 2), NULL, &one, NULL), STK_OK);
    assert_int_equal(stk_tensor_transpose(&fixed, 0, 1, &view, NULL), STK_OK);
    assert_int_equal(stk_tensor_copy(&fixed, &one, &err), STK_E_BAD_ARG);
    assert_string_equal(err.message, "the tensor is read-only");
    assert_int_equal(stk_tensor_copy(&view, &one, &err), STK_E_BAD_ARG);
    assert_int_equal(stk_tensor_fill(&view, stk_real(0), &err), STK_E_BAD_ARG);
    assert_int_equal(stk_tensor_zero(&view, &err), STK_E_BAD_ARG);
    assert_int_equal(stk_tensor_set(&view, STK_INDEX(0, 0), stk_real(0), &err), STK_E_BAD_ARG);
    assert_int_equal(stk_tensor_get(&view, STK_INDEX(0, 1), &value, &err), STK_OK);
    assert_true(value.kind == STK_SCALAR_REAL && value.as.f == 3);
    assert_int_equal(stk_tensor_clone(&view, &copy, &err), STK_OK);
    assert_int_equal(copy.flags & STK_TENSOR_READONLY, 0);
    assert_int_equal(stk_tensor_copy(&copy, &one, &err), STK_OK);
    stk_tensor_release(&copy);
    stk_tensor_release(&one);
}

static void overlap(void **state)
{
    stk_tensor a, shifted, first, transposed, left, right, wide, again;

    (void)state;
    assert_int_equal(stk_tensor_zeros(STK_I32, STK_SHAPE(4, 4), NULL, &a, NULL), STK_OK);
    assert_int_equal(stk_tensor_slice(&a, 0, 1, 4, 1, &shifted, NULL), STK_OK);
    assert_int_equal(stk_tensor_slice(&a, 0, 0, 3, 1, &first, NULL), STK_OK);
    assert_int_equal(stk_tensor_transpose(&a, 0, 1, &transposed, NULL), STK_OK);
    assert_int_equal(stk_tensor_slice(&a, 1, 0, 2, 1, &left, NULL), STK_OK);
    assert_int_equal(stk_tensor_slice(&a, 1, 2, 4, 1, &right, NULL), STK_OK);
    assert_int_equal(stk_tensor_copy(&first, &shifted, NULL), STK_E_BAD_OVERLAP);
    assert_int_equal(stk_tensor_copy(&a, &transposed, NULL), STK_E_BAD_OVERLAP);
    assert_int_equal(stk_tensor_copy(&left, &right, NULL), STK_OK); /* interleaved views without common elements */
    assert_int_equal(stk_tensor_view(&a, STK_SHAPE(4, 4), &again, NULL), STK_OK);
    assert_int_equal(stk_tensor_copy(&a, &again, NULL), STK_OK); /* the same view */
    stk_tensor_release(&again);
    stk_tensor_release(&left);
    assert_int_equal(stk_tensor_slice(&a, 1, 0, 1, 1, &left, NULL), STK_OK);
    assert_int_equal(stk_tensor_expand(&left, STK_SHAPE(4, 4), &wide, NULL), STK_OK);
    assert_int_equal(stk_tensor_copy(&wide, &a, NULL), STK_E_BAD_OVERLAP);
    assert_int_equal(stk_tensor_fill(&wide, stk_int(3), NULL), STK_OK);
    stk_tensor_release(&wide);
    stk_tensor_release(&left);
    stk_tensor_release(&right);
    stk_tensor_release(&transposed);
    stk_tensor_release(&first);
    stk_tensor_release(&shifted);
    stk_tensor_release(&a);
}

/* ---- the second memory space ---- */

static void across_devices(void **state)
{
    stk_device *device = stki_device_test(), *found;
    stk_tensor here, there, view, back, other;
    stk_scalar value;
    stk_error err;

    (void)state;
    assert_int_equal(stk_device_find("test", &found, NULL), STK_OK);
    assert_ptr_equal(found, device);
    assert_int_equal(stk_tensor_arange(STK_I32, stk_int(0), stk_int(12), stk_int(1), device, &other, NULL), STK_OK);
    assert_int_equal(stk_tensor_view(&other, STK_SHAPE(3, 4), &there, NULL), STK_OK);
    assert_int_equal(stk_tensor_transpose(&there, 0, 1, &view, NULL), STK_OK);
    assert_int_equal(stk_tensor_to_device(&view, NULL, &back, NULL), STK_OK);
    assert_ptr_equal(back.device, stk_device_cpu());
    assert_int_equal(back.strides[0], 4); /* the layout is kept */
    for (int64_t n = 0; n < 12; n++)
        assert_int_equal(*(int32_t *)(void *)stkt_element(&back, n), n % 3 * 4 + n / 3);
    stk_tensor_release(&back);
    assert_int_equal(stk_tensor_contiguous(&view, &back, NULL), STK_OK); /* on the same device */
    assert_ptr_equal(back.device, device);
    stk_tensor_release(&back);
    assert_int_equal(stk_tensor_ones(STK_F32, STK_SHAPE(4, 3), NULL, &here, NULL), STK_OK);
    assert_int_equal(stk_tensor_copy(&here, &view, NULL), STK_OK); /* from the device, strided and casting */
    assert_true(((float *)here.data)[1] == 4 && ((float *)here.data)[3] == 1);
    assert_int_equal(stk_tensor_fill(&here, stk_real(2.5), NULL), STK_OK);
    assert_int_equal(stk_tensor_copy(&view, &here, NULL), STK_OK); /* to the device */
    assert_int_equal(stk_tensor_get(&there, STK_INDEX(-1, -1), &value, NULL), STK_OK);
    assert_true(value.kind == STK_SCALAR_INT && value.as.i == 2);
    assert_int_equal(stk_tensor_set(&there, STK_INDEX(0, 1), stk_int(-9), NULL), STK_OK);
    assert_int_equal(stk_tensor_get(&view, STK_INDEX(1, 0), &value, NULL), STK_OK);
    assert_int_equal(value.as.i, -9);
    stk_tensor_release(&view);
    /* a negative stride: the bytes are below the view's address */
    assert_int_equal(stk_tensor_flip(&there, 1, &view, NULL), STK_OK);
    assert_int_equal(stk_tensor_to_device(&view, NULL, &back, NULL), STK_OK);
    assert_int_equal(((int32_t *)back.data)[3], 2); /* 2.5 was truncated */
    assert_int_equal(((int32_t *)back.data)[2], -9);
    stk_tensor_release(&back);
    assert_int_equal(stk_tensor_fill(&view, stk_int(8), NULL), STK_OK);
    assert_int_equal(stk_tensor_get(&there, STK_INDEX(0, 0), &value, NULL), STK_OK);
    assert_int_equal(value.as.i, 8);
    assert_int_equal(stk_tensor_get(&there, STK_INDEX(2, 3), &value, NULL), STK_OK);
    assert_int_equal(value.as.i, 8);
    assert_int_equal(stk_device_find("fpga:9", &found, &err), STK_E_DEVICE);
    assert_non_null(strstr(err.message, "no device 'fpga:9' (available: cpu, host"));
    assert_non_null(strstr(err.message, "test)"));
    stk_tensor_release(&here);
    stk_tensor_release(&view);
    stk_tensor_release(&there);
    stk_tensor_release(&other);
}

/* Compiled conversions that run through the device table give the same bytes on both devices. */
static void conversions(void **state)
{
    static const float a[3] = {0.5f, 0.25f, 2}, b[3] = {0, 1, -1};
    stki_convert_desc desc = {.src_dtype = STK_U8,
                              .dst_dtype = STK_F32,
                              .ndim = 3,
                              .shape = {3, 4, 5},
                              .src_strides = {1, 15, 3},
                              .dst_strides = {80, 20, 4},
                              .affine = true,
                              .channels = 3,
                              .a = a,
                              .b = b};
    stk_device *device = stki_device_test(), *cpu = stk_device_cpu();
    stki_convert *convert;
    stk_tensor in, out, in_there, out_there, back;

    (void)state;
    assert_int_equal(stki_convert_create(&desc, &convert, NULL), STK_OK);
    assert_int_equal(stk_tensor_arange(STK_U8, stk_int(0), stk_int(120), stk_int(1), NULL, &in, NULL), STK_OK);
    assert_int_equal(stk_tensor_zeros(STK_F32, STK_SHAPE(2, 60), NULL, &out, NULL), STK_OK);
    assert_int_equal(stk_tensor_to_device(&in, device, &in_there, NULL), STK_OK);
    assert_int_equal(stk_tensor_zeros(STK_F32, STK_SHAPE(2, 60), device, &out_there, NULL), STK_OK);
    assert_int_equal(cpu->ops->convert(cpu, convert, out.data, 240, in.data, 60, 2, NULL, NULL), STK_OK);
    assert_int_equal(device->ops->convert(device, convert, out_there.data, 240, in_there.data, 60, 2, NULL, NULL),
                     STK_OK);
    assert_true(((float *)out.data)[0] == 0 && ((float *)out.data)[20] == 1.25f && ((float *)out.data)[119] == 237);
    assert_int_equal(stk_tensor_to_device(&out_there, NULL, &back, NULL), STK_OK);
    assert_memory_equal(back.data, out.data, 480);
    stk_tensor_release(&back);
    stk_tensor_release(&out_there);
    stk_tensor_release(&in_there);
    stk_tensor_release(&out);
    stk_tensor_release(&in);
    stki_convert_destroy(convert);
}

/* ---- failing allocations ---- */

/* Calls everything that allocates. If a call fails, no memory may remain allocated. */
static stk_status allocate_a_lot(stk_error *err)
{
    stk_device *device = stki_device_test();
    stk_tensor t[8] = {{0}};
    stk_status status = stk_tensor_arange(STK_I32, stk_int(0), stk_int(12), stk_int(1), device, &t[0], err);

    status = status ? status : stk_tensor_view(&t[0], STK_SHAPE(3, 4), &t[1], err);
    status = status ? status : stk_tensor_transpose(&t[1], 0, 1, &t[2], err);
    status = status ? status : stk_tensor_reshape(&t[2], STK_SHAPE(12), &t[3], err);
    status = status ? status : stk_tensor_to_device(&t[2], NULL, &t[4], err);
    status = status ? status : stk_tensor_to(&t[4], STK_F16, &t[5], err);
    status = status ? status : stk_tensor_fill(&t[2], stk_int(1), err);
    status = status ? status : stk_tensor_copy(&t[2], &t[5], err);
    status = status ? status : stk_tensor_eye(STK_BF16, 3, 4, device, &t[6], err);
    status = status ? status : stk_tensor_randn(STK_F32, STK_SHAPE(5), 1, device, &t[7], err);
    for (int i = 0; i < 8; i++)
        stk_tensor_release(&t[i]);
    return status;
}

static void nth_allocation_fails(void **state)
{
    stki_memory_stats before[2], after[2];
    stk_status status = STK_E_MEMORY;
    stk_error err;

    (void)state;
    assert_int_equal(allocate_a_lot(NULL), STK_OK);
    stki_memory_read(STKI_MEM_HOST, &before[0]);
    stki_memory_read(STKI_MEM_DEVICE, &before[1]);
    for (int n = 1; status != STK_OK; n++) {
        assert_true(n < 1000);
        stki_memory_fail_at(n);
        memset(&err, 0, sizeof err);
        status = allocate_a_lot(&err);
        stki_memory_fail_at(0);
        assert_true(status == STK_OK ? n > 20 : status == STK_E_MEMORY && err.message[0]);
        stki_memory_read(STKI_MEM_HOST, &after[0]);
        stki_memory_read(STKI_MEM_DEVICE, &after[1]);
        assert_int_equal(before[0].bytes, after[0].bytes);
        assert_int_equal(before[1].bytes, after[1].bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strided_on_both_sides),
        cmocka_unit_test(broadcast_source),
        cmocka_unit_test(other_byte_order),
        cmocka_unit_test(read_only),
        cmocka_unit_test(overlap),
        cmocka_unit_test(across_devices),
        cmocka_unit_test(conversions),
        cmocka_unit_test(nth_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
