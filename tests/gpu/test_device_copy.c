/* stki-threads */
/* Tests of copies of tensors between memories and streams: all directions, pinned and pageable memory, strided and
 * casting, in the thread's current stream or a given one. STOKER_TEST_DEVICE names the device (default: host). Tests
 * that block streams need the host device and are skipped on others. */
#include "allocate.h"
#include "calm.h"
#include "clock.h"
#include "device_table.h"
#include "faults.h"
#include "host_faults.h"
#include "leak_check.h"
#include "test_device.h"
#include "test_random.h"
#include <inttypes.h>
#include <stoker/stoker.h>
#include <sys/wait.h>
#include <unistd.h>

static const stkt_host_faults held = {.delay_ns = STKT_HOST_HOLD};

static stk_device *find(const char *name)
{
    stk_device *device = NULL;
    stk_error err;

    assert_ok(stk_device_find(name, &device, &err));
    return device;
}

static stk_device *device_under_test(void)
{
    const char *name = getenv("STOKER_TEST_DEVICE");

    return find(name && *name ? name : "host");
}

static bool is_host(void)
{
    return stk_device_get_kind(device_under_test()) == STK_DEVICE_HOST;
}

static stk_stream *stream_of(stk_device *device)
{
    stk_stream *stream = NULL;
    stk_error err;

    assert_ok(stk_stream_create(device, &stream, &err));
    return stream;
}

/* 0, 1, 2, … in a new tensor on the CPU. */
static stk_tensor counting(stk_dtype dtype, int ndim, const int64_t *shape)
{
    stk_tensor flat, out;
    int64_t count = 1;
    stk_error err;

    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    assert_ok(stk_tensor_arange(dtype, stk_int(0), stk_int(count), stk_int(1), NULL, &flat, &err));
    assert_ok(stk_tensor_reshape(&flat, ndim, shape, &out, &err));
    stk_tensor_release(&flat);
    return out;
}

static stk_status add(const stk_tensor *a, const stk_tensor *b, stk_tensor *out, stk_error *err)
{
    return stk_tensor_binary(STK_ADD, stk_operand_tensor(a), stk_operand_tensor(b), out, err);
}

static void assert_same(const stk_tensor *got, const stk_tensor *expected)
{
    int64_t bytes = stk_tensor_nbytes(expected);
    char *a = malloc((size_t)bytes + 1), *b = malloc((size_t)bytes + 1);
    stk_error err;

    assert_int_equal(got->dtype, expected->dtype);
    assert_int_equal(stk_tensor_nbytes(got), bytes);
    assert_ok(stk_tensor_to_bytes(got, a, bytes, &err));
    assert_ok(stk_tensor_to_bytes(expected, b, bytes, &err));
    assert_memory_equal(a, b, (size_t)bytes);
    free(a);
    free(b);
}

/* ---- pinned memory ---- */

static void pinned_tensors_are_on_the_cpu(void **state)
{
    stk_device *device = device_under_test();
    stk_tensor t, view, plain = counting(STK_F32, 2, (int64_t[]){3, 4}), pinned, again;
    stki_memory_stats before, now;
    stk_error err;

    (void)state;
    stki_memory_read(STKI_MEM_PINNED, &before);
    assert_ok(stk_tensor_empty_pinned(STK_F32, 2, (int64_t[]){30, 40}, device, &t, &err));
    stki_memory_read(STKI_MEM_PINNED, &now);
    assert_true(now.bytes >= before.bytes + 4800);
    assert_true(stk_tensor_is_pinned(&t));
    assert_string_equal(stk_device_name(t.device), "cpu");
    assert_ok(stk_tensor_fill(&t, stk_real(2.5), &err));
    assert_ok(stk_tensor_slice(&t, 1, 3, 9, 2, &view, &err));
    assert_true(stk_tensor_is_pinned(&view));
    stk_tensor_release(&t);
    assert_ok(stk_tensor_from_storage(view.storage, 0, STK_F32, 1, (int64_t[]){5}, NULL, &t, &err));
    assert_true(stk_tensor_is_pinned(&t));
    stk_tensor_release(&t);
    stk_tensor_release(&view);

    assert_false(stk_tensor_is_pinned(&plain));
    assert_ok(stk_tensor_pin(&plain, device, &pinned, &err));
    assert_true(stk_tensor_is_pinned(&pinned));
    assert_same(&pinned, &plain);
    assert_ok(stk_tensor_pin(&pinned, device, &again, &err));
    assert_ptr_equal(again.storage, pinned.storage);
    stk_tensor_release(&again);
    assert_ok(stk_tensor_clone(&pinned, &again, &err));
    assert_false(stk_tensor_is_pinned(&again)); /* an ordinary copy is not pinned */
    stk_tensor_release(&again);
    stk_tensor_release(&pinned);
    stk_tensor_release(&plain);
}

static void pinning_keeps_the_layout(void **state)
{
    stk_tensor base = counting(STK_I16, 4, (int64_t[]){2, 3, 4, 5}), last, row, pinned;
    stk_error err;

    (void)state;
    assert_ok(stk_tensor_clone_as(&base, STK_LAYOUT_CHANNELS_LAST, &last, &err));
    assert_ok(stk_tensor_pin(&last, device_under_test(), &pinned, &err));
    assert_true(stk_tensor_is_channels_last(&pinned));
    assert_same(&pinned, &base);
    stk_tensor_release(&pinned);
    assert_ok(stk_tensor_select(&base, 1, 1, &row, &err));
    assert_ok(stk_tensor_pin(&row, device_under_test(), &pinned, &err));
    assert_true(stk_tensor_is_contiguous(&pinned));
    assert_same(&pinned, &row);
    stk_tensor_release(&pinned);
    stk_tensor_release(&row);
    stk_tensor_release(&last);
    stk_tensor_release(&base);
}

static void tensors_that_cannot_be_pinned(void **state)
{
    stk_device *device = device_under_test();
    stk_tensor t, there, out = {0};
    stk_error err;

    (void)state;
    assert_status(stk_tensor_empty_pinned(STK_F32, 1, (int64_t[]){4}, NULL, &out, &err), STK_E_BAD_ARG);
    assert_status(stk_tensor_empty_pinned(STK_F32, 1, (int64_t[]){4}, stk_device_cpu(), &out, &err), STK_E_BAD_DEVICE);
    assert_says("cpu");
    assert_status(stk_tensor_empty_pinned(STK_F32, 1, (int64_t[]){-4}, device, &out, &err), STK_E_BAD_SHAPE);
    t = counting(STK_F32, 1, (int64_t[]){4});
    assert_ok(stk_tensor_to_device(&t, device, &there, &err));
    assert_status(stk_tensor_pin(&there, device, &out, &err), STK_E_BAD_DEVICE);
    assert_says(stk_device_name(device));
    assert_null(out.storage);
    stk_tensor_release(&t);
    stk_tensor_release(&there);
}

/* ---- non-blocking ---- */

static void from_pinned_memory_the_caller_does_not_wait(void **state)
{
    stk_device *device = device_under_test();
    stk_tensor plain, pinned, there, back;
    stk_stream *stream;
    stk_error err;

    (void)state;
    if (!is_host())
        skip();
    plain = counting(STK_F32, 2, (int64_t[]){50, 20});
    stream = stream_of(device);
    assert_ok(stk_tensor_pin(&plain, device, &pinned, &err));
    assert_ok(stk_tensor_to_device(&plain, device, &there, &err));
    assert_ok(stk_tensor_zero(&there, &err));
    stkt_host_set_faults(device, stream, &held);
    assert_ok(stk_tensor_copy_on(&there, &pinned, stream, true, &err));
    assert_int_equal(stk_stream_query(stream, &err), STK_AGAIN); /* the call returned before the copy was complete */
    stkt_host_set_faults(device, stream, NULL);
    assert_ok(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err));
    assert_same(&there, &plain);

    assert_ok(stk_tensor_empty_pinned(STK_F32, 2, plain.shape, device, &back, &err));
    assert_ok(stk_tensor_zero(&back, &err));
    stkt_host_set_faults(device, stream, &held);
    assert_ok(stk_tensor_copy_on(&back, &there, stream, true, &err));
    assert_int_equal(((float *)back.data)[1], 0);
    stkt_host_set_faults(device, stream, NULL);
    assert_ok(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err));
    assert_same(&back, &plain);
    stk_tensor_release(&back);
    stk_tensor_release(&there);
    stk_tensor_release(&pinned);
    stk_tensor_release(&plain);
    stk_stream_destroy(stream);
}

/* Row G01 (LMCache/LMCache#4830, pytorch/pytorch#126946): pinned memory that is released while the copy is still
 * running. */
static void pinned_memory_outlives_its_tensor_until_the_copy_is_done(void **state)
{
    enum { ROUNDS = 200, COUNT = 4096 };
    stk_device *device = device_under_test();
    stk_stream *stream = stream_of(device);
    stk_tensor there[4];
    int32_t *got = malloc(COUNT * sizeof *got);
    stk_error err;

    (void)state;
    if (is_host())
        stkt_host_set_faults(device, stream, &(stkt_host_faults){.delay_ns = 20000});
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 4; i++) {
            stk_tensor pinned;
            assert_ok(stk_tensor_empty_pinned(STK_I32, 1, (int64_t[]){COUNT}, device, &pinned, &err));
            for (int k = 0; k < COUNT; k++)
                ((int32_t *)pinned.data)[k] = round * 4 + i;
            assert_ok(stk_tensor_to_device_on(&pinned, device, stream, true, &there[i], &err));
            stk_tensor_release(&pinned);
        }
        assert_ok(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err));
        for (int i = 0; i < 4; i++) {
            assert_ok(stk_tensor_to_bytes(&there[i], got, COUNT * 4, &err));
            for (int k = 0; k < COUNT; k++)
                assert_int_equal(got[k], round * 4 + i);
            stk_tensor_release(&there[i]);
        }
    }
    free(got);
    stk_stream_destroy(stream);
}

static void pageable_memory_can_be_reused_immediately(void **state)
{
    enum { COUNT = 10000 };
    stk_device *device = device_under_test();
    stk_stream *stream = stream_of(device);
    stk_tensor plain = counting(STK_I32, 1, (int64_t[]){COUNT}), kept, there, back;
    stk_error err;

    (void)state;
    if (is_host())
        stkt_host_set_faults(device, stream, &(stkt_host_faults){.delay_ns = 3000000});
    assert_ok(stk_tensor_clone(&plain, &kept, &err));
    assert_ok(stk_tensor_to_device_on(&plain, device, stream, true, &there, &err));
    assert_ok(stk_tensor_zero(&plain, &err));
    assert_ok(stk_tensor_copy_on(&plain, &there, stream, true, &err));
    assert_same(&plain, &kept); /* complete on return, in both directions */
    assert_ok(stk_tensor_to_device_on(&there, stk_device_cpu(), stream, true, &back, &err));
    assert_true(stk_tensor_is_pinned(&back)); /* as in torch, so that the call need not wait */
    assert_ok(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err));
    assert_same(&back, &kept);
    stk_tensor_release(&back);
    assert_ok(stk_tensor_to_device_on(&there, NULL, stream, false, &back, &err));
    assert_false(stk_tensor_is_pinned(&back));
    assert_same(&back, &kept);
    stk_tensor_release(&back);
    stk_tensor_release(&there);
    stk_tensor_release(&kept);
    stk_tensor_release(&plain);
    stk_stream_destroy(stream);
}

/* The memory of a released tensor that a stream still uses is not reused, whatever stream it was allocated for; nor is
 * that of a temporary block. */
static void memory_that_a_stream_uses_is_not_reused(void **state)
{
    stk_device *device = device_under_test();
    stk_tensor plain, pinned, turned, dst, made, next, back, expected, others[4];
    stk_stream *stream;
    void *address;
    stk_error err;

    (void)state;
    if (!is_host())
        skip();
    plain = counting(STK_I16, 2, (int64_t[]){300, 200});
    stream = stream_of(device);
    assert_ok(stk_tensor_pin(&plain, device, &pinned, &err));
    assert_ok(stk_tensor_empty(STK_I16, 2, plain.shape, device, &made, &err));
    address = made.data;
    stkt_host_set_faults(device, stream, &held);
    assert_ok(stk_tensor_copy_on(&made, &pinned, stream, true, &err));
    stk_tensor_release(&made);
    assert_ok(stk_tensor_empty(STK_I16, 2, plain.shape, device, &next, &err));
    assert_ptr_not_equal(next.data, address);
    stkt_host_set_faults(device, stream, NULL);
    assert_ok(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err));

    /* read by the stream, and released */
    assert_ok(stk_tensor_copy(&next, &plain, &err));
    address = next.data;
    stkt_host_set_faults(device, stream, &held);
    assert_ok(stk_tensor_to_device_on(&next, NULL, stream, true, &back, &err));
    stk_tensor_release(&next);
    for (int i = 0; i < 4; i++) {
        assert_ok(stk_tensor_zeros(STK_I16, 2, plain.shape, device, &others[i], &err));
        assert_ptr_not_equal(others[i].data, address);
    }
    stkt_host_set_faults(device, stream, NULL);
    assert_ok(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err));
    assert_same(&back, &plain);
    for (int i = 0; i < 4; i++)
        stk_tensor_release(&others[i]);
    stk_tensor_release(&back);

    /* rearranged on the device, through a block that is released immediately */
    assert_ok(stk_tensor_transpose(&pinned, 0, 1, &turned, &err));
    assert_ok(stk_tensor_empty(STK_F32, 2, turned.shape, device, &dst, &err));
    stkt_host_set_faults(device, stream, &held);
    assert_ok(stk_tensor_copy_on(&dst, &turned, stream, true, &err));
    for (int i = 0; i < 4; i++) {
        assert_ok(stk_tensor_full(STK_I16, 2, plain.shape, stk_int(-1), device, &next, &err));
        stk_tensor_release(&next);
    }
    stkt_host_set_faults(device, stream, NULL);
    assert_ok(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err));
    assert_ok(stk_tensor_to(&turned, STK_F32, &expected, &err));
    assert_same(&dst, &expected);
    stk_tensor_release(&expected);
    stk_tensor_release(&dst);
    stk_tensor_release(&turned);
    stk_tensor_release(&pinned);
    stk_tensor_release(&plain);
    stk_stream_destroy(stream);
}

/* ---- the current stream ---- */

/* All steps of an operation run after the work in the current stream. */
static void operations_are_in_order_with_the_current_stream(void **state)
{
    stk_device *device = device_under_test();
    stk_stream *stream = stream_of(device);
    stk_tensor plain = counting(STK_F32, 2, (int64_t[]){64, 64}), pinned, there, sum, view, total, back;
    stk_error err;
    stk_scalar one;

    (void)state;
    if (is_host())
        stkt_host_set_faults(device, stream, &(stkt_host_faults){.delay_ns = 1000000});
    assert_ok(stk_tensor_pin(&plain, device, &pinned, &err));
    assert_null(stk_stream_set_current(device, stream));
    assert_ok(stk_tensor_to_device_on(&pinned, device, NULL, true, &there, &err)); /* in the current stream */
    assert_ok(add(&there, &there, &sum, &err));
    assert_ok(stk_tensor_transpose(&sum, 0, 1, &view, &err));
    assert_ok(stk_tensor_clone(&view, &total, &err));
    assert_ok(stk_tensor_fill(&sum, stk_real(-1), &err));
    assert_ok(stk_tensor_get(&total, 2, (int64_t[]){3, 5}, &one, &err));
    assert_true(one.as.f == 2.0 * (5 * 64 + 3));
    assert_ok(stk_tensor_get(&sum, 2, (int64_t[]){3, 5}, &one, &err));
    assert_true(one.as.f == -1);
    stk_tensor_release(&sum); /* the stream may still be using it */
    stk_tensor_release(&view);
    assert_ok(stk_tensor_to_device(&total, NULL, &back, &err));
    assert_true(((float *)back.data)[1] == 2 * 64);
    assert_ptr_equal(stk_stream_set_current(device, NULL), stream);
    stk_tensor_release(&back);
    stk_tensor_release(&total);
    stk_tensor_release(&there);
    stk_tensor_release(&pinned);
    stk_tensor_release(&plain);
    stk_stream_destroy(stream);
}

static void zeros_and_data_do_not_wait_for_other_streams(void **state)
{
    stk_device *device = device_under_test();
    stk_stream *busy, *stream;
    stk_tensor t, there, back;
    float data[3] = {1, 2, 3};
    stk_error err;

    (void)state;
    if (!is_host())
        skip();
    busy = stream_of(device);
    stream = stream_of(device);
    assert_ok(stk_tensor_zeros(STK_F32, 1, (int64_t[]){3}, device, &t, &err));
    stkt_host_set_faults(device, busy, &held);
    assert_ok(device->ops->fill(device, t.data, "", 1, 12, busy, &err));
    stk_stream_set_current(device, stream);
    assert_ok(stk_tensor_from_array(STK_F32, data, sizeof data, 1, (int64_t[]){3}, device, &there, &err));
    data[0] = 9; /* pageable memory: it was copied */
    assert_ok(stk_tensor_to_device(&there, NULL, &back, &err));
    assert_true(((float *)back.data)[0] == 1);
    assert_int_equal(stk_stream_query(busy, &err), STK_AGAIN);
    stk_stream_set_current(device, NULL);
    stkt_host_set_faults(device, busy, NULL);
    /* it writes to t, for which this use is not recorded */
    assert_ok(stk_stream_synchronize(busy, STK_WAIT_FOREVER, &err));
    stk_tensor_release(&back);
    stk_tensor_release(&there);
    stk_tensor_release(&t);
    stk_stream_destroy(busy);
    stk_stream_destroy(stream);
}

static void a_copy_to_another_device_is_in_order_with_both(void **state)
{
    stk_device *device = device_under_test(), *other = find("host:1");
    stk_stream *stream = stream_of(device), *elsewhere = stream_of(other);
    stkt_host_faults slow = {.delay_ns = 2000000};
    stk_tensor src, dst;
    stk_scalar value;
    stk_error err;

    (void)state;
    if (is_host())
        stkt_host_set_faults(device, stream, &slow);
    stk_stream_set_current(device, stream);
    stk_stream_set_current(other, elsewhere);
    assert_ok(stk_tensor_full(STK_F32, 1, (int64_t[]){9}, stk_real(1.5), device, &src, &err));
    assert_ok(stk_tensor_zeros(STK_F32, 1, (int64_t[]){9}, other, &dst, &err));
    assert_ok(stk_tensor_copy(&dst, &src, &err));
    assert_ok(stk_tensor_get(&dst, 1, (int64_t[]){8}, &value, &err));
    assert_true(value.as.f == 1.5);
    if (is_host())
        stkt_host_set_faults(device, stream, NULL);
    stkt_host_set_faults(other, elsewhere, &slow);
    assert_ok(stk_tensor_copy(&dst, &src, &err));
    assert_ok(stk_tensor_fill(&src, stk_real(7), &err)); /* the source may be overwritten immediately */
    assert_ok(stk_tensor_get(&src, 1, (int64_t[]){8}, &value, &err));
    assert_ok(stk_tensor_get(&dst, 1, (int64_t[]){8}, &value, &err));
    assert_true(value.as.f == 1.5);
    stk_stream_set_current(device, NULL);
    stk_stream_set_current(other, NULL);
    stk_tensor_release(&src);
    stk_tensor_release(&dst);
    stk_stream_destroy(stream);
    stk_stream_destroy(elsewhere);
}

/* ---- rejected copies ---- */

static void devices_are_not_mixed(void **state)
{
    stk_device *device = device_under_test(), *other = find("host:1");
    stk_stream *elsewhere = stream_of(other);
    stk_tensor a = counting(STK_F32, 1, (int64_t[]){4}), b, c, out = {0};
    stk_error err;

    (void)state;
    assert_ok(stk_tensor_to_device(&a, device, &b, &err));
    assert_ok(stk_tensor_to_device(&a, other, &c, &err));
    assert_status(add(&a, &b, &out, &err), STK_E_BAD_DEVICE);
    assert_says("cpu");
    assert_says(stk_device_name(device));
    assert_status(add(&b, &c, &out, &err), STK_E_BAD_DEVICE);
    assert_says(stk_device_name(device));
    assert_says("host:1");
    assert_status(stk_tensor_copy_on(&b, &a, elsewhere, true, &err), STK_E_BAD_DEVICE);
    assert_says("host:1");
    assert_status(stk_tensor_record_stream(&b, elsewhere, &err), STK_E_BAD_DEVICE);
    assert_says("host:1");
    assert_ok(stk_tensor_record_stream(&c, elsewhere, &err));
    assert_ok(stk_tensor_record_stream(&c, NULL, &err));
    assert_null(out.storage);
    stk_tensor_release(&a);
    stk_tensor_release(&b);
    stk_tensor_release(&c);
    stk_stream_destroy(elsewhere);
}

static void copies_that_wait_return_errors_of_the_stream(void **state)
{
    stk_device *device = device_under_test();
    stk_tensor plain, out = {0};
    stk_stream *stream;
    stk_error err;

    (void)state;
    if (!is_host())
        skip();
    plain = counting(STK_F32, 1, (int64_t[]){1000});
    stream = stream_of(device);
    stkt_host_set_faults(device, stream, &(stkt_host_faults){.fail_at = 1});
    assert_status(stk_tensor_to_device_on(&plain, device, stream, true, &out, &err), STK_E_DEVICE);
    assert_says("made to fail");
    assert_null(out.storage);
    stk_tensor_release(&plain);
    stk_stream_destroy(stream);
}

/* A consumer of DLPack would take it for memory of a real GPU. */
static void host_device_tensors_are_not_exported(void **state)
{
    struct DLManagedTensor *managed = NULL;
    stk_tensor t;
    stk_error err;

    (void)state;
    assert_ok(stk_tensor_zeros(STK_F32, 1, (int64_t[]){4}, find("host:1"), &t, &err));
    assert_status(stk_tensor_to_dlpack(&t, &managed, &err), STK_E_UNSUPPORTED);
    assert_says("host:1");
    assert_null(managed);
    stk_tensor_release(&t);
}

/* ---- forks ---- */

/* In a child process with the parent's tensors, streams and partly freed memory. Returns 0 or the number of the failed
 * step. */
static int work_in_child(stk_device *device, const stk_tensor *of_parent)
{
    stk_tensor t, back;
    stk_scalar value;

    if (stk_tensor_full(STK_F32, 1, (int64_t[]){300000}, stk_real(3), device, &t, NULL) != STK_OK)
        return 1;
    if (stk_tensor_to_device(&t, NULL, &back, NULL) != STK_OK || ((float *)back.data)[299999] != 3)
        return 2;
    if (stk_tensor_get(of_parent, 1, (int64_t[]){7}, &value, NULL) != STK_OK || value.as.f != 2)
        return 3; /* the memory was copied with the process */
    stk_tensor_release(&back);
    stk_tensor_release(&t);
    return stk_device_empty_cache(device, NULL) == STK_OK ? 0 : 4;
}

static void a_child_process_uses_a_copy_of_the_memory(void **state)
{
    stk_device *device = find("host:2");
    stk_stream *own = stream_of(device), *other = stream_of(device);
    stk_tensor t, kept;
    int how = 0;
    pid_t child;
    stk_error err;

    (void)state;
    stk_stream_set_current(device, own);
    assert_ok(stk_tensor_full(STK_F32, 1, (int64_t[]){300000}, stk_real(2), device, &kept, &err));
    assert_ok(stk_tensor_zeros(STK_F32, 1, (int64_t[]){300000}, device, &t, &err));
    assert_ok(stk_stream_synchronize(own, STK_WAIT_FOREVER, &err));
    stkt_host_set_faults(device, other, &held);
    assert_ok(device->ops->fill(device, t.data, "", 1, 1200000, other, &err));
    assert_ok(stk_tensor_record_stream(&t, other, &err));
    stk_tensor_release(&t); /* its memory waits for `other` in the cache */
    stk_stream_set_current(device, NULL);
    stkt_wait_for_calm();
    child = fork();
    if (child == 0) {
        alarm(240);
        _exit(work_in_child(device, &kept));
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    stkt_host_set_faults(device, other, NULL);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    stk_tensor_release(&kept);
    stk_stream_destroy(own);
    stk_stream_destroy(other);
}

/* ---- every direction, any layout ---- */

/* A random view of a new tensor: axes are cut, stepped, reversed or exchanged. */
static stk_tensor random_view(uint64_t *random, stk_dtype dtype, int ndim, const int64_t *shape, stk_device *device)
{
    int64_t large[4];
    stk_tensor t, next;
    int dims[4], kind[4];
    stk_error err;

    for (int i = 0; i < ndim; i++) {
        kind[i] = (int)stkt_random_in(random, 0, 3);
        dims[i] = i;
        large[i] = kind[i] == 1 ? shape[i] + 3 : kind[i] == 2 ? 2 * shape[i] : shape[i];
    }
    for (int i = ndim - 1; i > 0; i--) {
        int k = (int)stkt_random_in(random, 0, i), swap = dims[i];
        dims[i] = dims[k];
        dims[k] = swap;
    }
    {
        int64_t permuted[4];
        int back[4];
        stk_tensor made;
        for (int i = 0; i < ndim; i++) {
            permuted[i] = large[dims[i]];
            back[dims[i]] = i;
        }
        made = counting(dtype, ndim, permuted);
        assert_ok(stk_tensor_to_device(&made, device, &t, &err));
        stk_tensor_release(&made);
        assert_ok(stk_tensor_permute(&t, back, &next, &err));
        stk_tensor_release(&t);
        t = next;
    }
    for (int i = 0; i < ndim; i++) {
        if (kind[i] == 0)
            continue;
        if (kind[i] == 1)
            assert_ok(stk_tensor_narrow(&t, i, 2, shape[i], &next, &err));
        else if (kind[i] == 2)
            assert_ok(stk_tensor_slice(&t, i, 0, INT64_MAX, 2, &next, &err));
        else
            assert_ok(stk_tensor_flip(&t, i, &next, &err));
        stk_tensor_release(&t);
        t = next;
    }
    return t;
}

static stk_tensor on_cpu(const stk_tensor *t)
{
    stk_tensor out;
    stk_error err;

    assert_ok(stk_tensor_empty(t->dtype, t->ndim, t->shape, NULL, &out, &err));
    assert_ok(stk_tensor_to_bytes(t, out.data, stk_tensor_nbytes(&out), &err));
    return out;
}

static void copies_between_all_memories_equal_the_cpu(void **state)
{
    static const stk_dtype dtypes[] = {STK_F32, STK_F32, STK_U8, STK_F16, STK_I64};
    static const char *names[] = {"cpu", NULL, "host", "host:1", "test"};
    uint64_t random = 20260101;
    stk_stream *streams[5] = {NULL};
    stk_device *devices[5];
    stk_error err;

    (void)state;
    (void)stki_device_test();
    for (int i = 0; i < 5; i++) {
        devices[i] = names[i] ? find(names[i]) : device_under_test();
        streams[i] = stream_of(devices[i]);
    }
    for (int round = 0; round < 1500; round++) {
        int ndim = (int)stkt_random_in(&random, 0, 3) + 1, to = (int)stkt_random_in(&random, 0, 4),
            from = (int)stkt_random_in(&random, 0, 4);
        int64_t shape[4];
        stk_tensor src, dst, here, expected, got;
        stk_stream *stream = stkt_random_in(&random, 0, 1) ? streams[stkt_random_in(&random, 0, 1) ? to : from] : NULL;
        bool non_blocking = stkt_random_in(&random, 0, 1) != 0;
        for (int i = 0; i < ndim; i++)
            shape[i] = stkt_random_in(&random, 0, 5);
        src = random_view(&random, dtypes[stkt_random_in(&random, 0, 4)], ndim, shape, devices[from]);
        dst = random_view(&random, dtypes[stkt_random_in(&random, 0, 4)], ndim, shape, devices[to]);
        if (devices[from] == stk_device_cpu() && stkt_random_in(&random, 0, 3) == 0)
            src.flags |= STK_TENSOR_SWAPPED;
        here = on_cpu(&src);
        assert_ok(stk_tensor_to(&here, dst.dtype, &expected, &err));
        if (stream && stkt_random_in(&random, 0, 1))
            stk_stream_set_current(stk_stream_device(stream), stream);
        assert_ok(stk_tensor_copy_on(&dst, &src, stream, non_blocking, &err));
        for (int i = 0; i < 5; i++)
            assert_ok(stk_stream_synchronize(streams[i], STK_WAIT_FOREVER, &err));
        got = on_cpu(&dst);
        assert_same(&got, &expected);
        stk_tensor_release(&got);
        assert_ok(stk_tensor_to_device_on(&src, devices[to], NULL, non_blocking, &got, &err));
        for (int i = 0; i < 5; i++) {
            assert_ok(stk_stream_synchronize(streams[i], STK_WAIT_FOREVER, &err));
            stk_stream_set_current(devices[i], NULL);
        }
        stk_tensor_release(&dst);
        dst = on_cpu(&got);
        assert_same(&dst, &here);
        stk_tensor_release(&src);
        stk_tensor_release(&dst);
        stk_tensor_release(&here);
        stk_tensor_release(&expected);
        stk_tensor_release(&got);
    }
    for (int i = 0; i < 5; i++)
        stk_stream_destroy(streams[i]);
}

static void the_layout_is_kept(void **state)
{
    stk_device *device = device_under_test();
    stk_tensor base = counting(STK_U8, 4, (int64_t[]){2, 3, 4, 5}), last, there, back;
    stk_error err;

    (void)state;
    assert_ok(stk_tensor_clone_as(&base, STK_LAYOUT_CHANNELS_LAST, &last, &err));
    assert_ok(stk_tensor_to_device(&last, device, &there, &err));
    assert_true(stk_tensor_is_channels_last(&there));
    assert_ok(stk_tensor_to_device(&there, NULL, &back, &err));
    assert_true(stk_tensor_is_channels_last(&back));
    assert_same(&back, &base);
    stk_tensor_release(&back);
    stk_tensor_release(&there);
    stk_tensor_release(&last);
    stk_tensor_release(&base);
}

static void every_failing_allocation_is_an_error_and_leaves_nothing(void **state)
{
    stk_device *device = device_under_test();
    stk_stream *stream = stream_of(device);
    stk_tensor plain = counting(STK_F32, 2, (int64_t[]){40, 30}), turned;
    int failures = 0;
    stk_error err;

    (void)state;
    assert_ok(stk_tensor_transpose(&plain, 0, 1, &turned, &err));
    for (int64_t n = 1; n < 60; n++) { /* more than there are; after some failures the cache makes a second attempt */
        stk_tensor pinned = {0}, there = {0}, dense = {0}, back = {0};
        stk_status status;
        assert_ok(stk_device_empty_cache(device, &err));
        memset(&err, 0, sizeof err);
        stki_memory_fail_at(n);
        status = stk_tensor_pin(&plain, device, &pinned, &err);
        status = status ? status : stk_tensor_to_device_on(&pinned, device, stream, true, &there, &err);
        status = status ? status : stk_tensor_empty(STK_F64, 2, turned.shape, device, &dense, &err);
        status = status ? status : stk_tensor_copy_on(&dense, &turned, stream, true, &err);
        status = status ? status : stk_tensor_to_device_on(&dense, NULL, stream, true, &back, &err);
        stki_memory_fail_at(0);
        assert_ok(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err));
        if (status) {
            assert_int_equal(status, STK_E_MEMORY);
            assert_true(err.message[0] != 0);
            failures++;
        }
        stk_tensor_release(&pinned);
        stk_tensor_release(&there);
        stk_tensor_release(&dense);
        stk_tensor_release(&back);
    }
    assert_true(failures >= 4); /* a tensor each; what the stream allocates depends on its progress */
    stk_tensor_release(&turned);
    stk_tensor_release(&plain);
    stk_stream_destroy(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pinned_tensors_are_on_the_cpu),
        cmocka_unit_test(pinning_keeps_the_layout),
        cmocka_unit_test(tensors_that_cannot_be_pinned),
        cmocka_unit_test(from_pinned_memory_the_caller_does_not_wait),
        cmocka_unit_test(pinned_memory_outlives_its_tensor_until_the_copy_is_done),
        cmocka_unit_test(pageable_memory_can_be_reused_immediately),
        cmocka_unit_test(memory_that_a_stream_uses_is_not_reused),
        cmocka_unit_test(a_copy_to_another_device_is_in_order_with_both),
        cmocka_unit_test(operations_are_in_order_with_the_current_stream),
        cmocka_unit_test(zeros_and_data_do_not_wait_for_other_streams),
        cmocka_unit_test(devices_are_not_mixed),
        cmocka_unit_test(copies_that_wait_return_errors_of_the_stream),
        cmocka_unit_test(host_device_tensors_are_not_exported),
        cmocka_unit_test(a_child_process_uses_a_copy_of_the_memory),
        cmocka_unit_test(copies_between_all_memories_equal_the_cpu),
        cmocka_unit_test(the_layout_is_kept),
    };
    const struct CMUnitTest unrecorded[] = {
        /* recording leaks also allocates, and a failure of that is not an error */
        cmocka_unit_test(every_failing_allocation_is_an_error_and_leaves_nothing),
    };
    int failed = cmocka_run_group_tests(tests, stkt_leak_setup, stkt_leak_teardown);

    return failed + cmocka_run_group_tests(unrecorded, NULL, NULL);
}
