/* Tests of the CUDA device with a fake CUDA (fake_cuda.h): errors say what is missing, every call is made in the
 * device's context and does not change the thread's, copies and fills go to the right stream, errors contain CUDA's
 * message, and a forked child is rejected. test_any_device.c tests the real driver. */
#include "allocate.h"
#include "cuda_device.h"
#include "cuda_provider.h"
#include "device_table.h"
#include "fake_cuda.h"
#include "faults.h"
#include "stream.h"
#include <stoker/device.h>
#include <sys/wait.h>
#include <unistd.h>

enum { A_SECOND = 1000000000 };

static stk_error err;
static stk_device *device; /* cuda:1 */

/* ---- missing drivers and GPUs ---- */

static void cuda_is_not_called_before_a_request(void **state)
{
    stk_device *found;

    (void)state;
    fake_reset(2);
    assert_ok(stk_device_find("cpu", &found, &err));
    assert_status(stk_device_find("unknown", &found, &err), STK_E_DEVICE);
    assert_says("cuda");
    assert_int_equal(fake.calls, 0);
}

/* Row F12: no driver, an old driver or no GPU immediately gives a status with the reason. */
static void errors_say_what_is_missing(void **state)
{
    static const struct {
        int driver, gpus;
        cudaError_t error;
        const char *visible, *says;
    } rows[] = {
        {0, 0, cudaSuccess, NULL, "no NVIDIA driver"},
        {11040, 2, cudaErrorInsufficientDriver, NULL, "too old: it supports CUDA 11.4, but stoker was built with 13.0"},
        {13000, 0, cudaErrorNoDevice, NULL, "finds no GPU"},
        {13000, 0, cudaSuccess, NULL, "finds no GPU"},
        {13000, 0, cudaErrorNoDevice, "", "CUDA_VISIBLE_DEVICES is empty"},
        {13000, 0, cudaErrorNoDevice, "-1", "CUDA_VISIBLE_DEVICES is '-1'"},
        {13000, 2, cudaErrorInitializationError, NULL, "forked"},
        {13000, 2, cudaErrorIllegalAddress, NULL, "cudaErrorIllegalAddress: an illegal memory access was encountered"},
    };
    stk_device *found;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fake_reset(rows[i].gpus);
        fake.driver_version = rows[i].driver;
        fake.count_error = rows[i].error;
        unsetenv("CUDA_VISIBLE_DEVICES");
        if (rows[i].visible)
            setenv("CUDA_VISIBLE_DEVICES", rows[i].visible, 1);
        found = stk_device_cpu();
        assert_status(stk_device_find("cuda", &found, &err), STK_E_DEVICE);
        assert_says(rows[i].says);
        assert_null(found);
        err.message[0] = 0;
        assert_int_equal(stk_cuda_device_count(&err), 0);
        assert_says(rows[i].says);
        assert_int_equal(stk_cuda_device_count(NULL), 0);
        assert_int_equal(fake.last, cudaSuccess); /* the program's own check must not find our error */
    }
    unsetenv("CUDA_VISIBLE_DEVICES");
}

static void missing_devices_are_named(void **state)
{
    static const char *const odd[] = {"cuda:", "cuda:x", "cuda:-1", "cuda:1 ", "cuda:0x1", "cuda:12345678"};
    stk_device *found;

    (void)state;
    fake_reset(2);
    assert_status(stk_device_find("cuda:2", &found, &err), STK_E_DEVICE);
    assert_says("no device 'cuda:2' here: there are cuda:0 to cuda:1");
    fake.gpus = 1;
    setenv("CUDA_VISIBLE_DEVICES", "3", 1);
    assert_status(stk_device_find("cuda:1", &found, &err), STK_E_DEVICE);
    assert_says("there is only cuda:0 (CUDA_VISIBLE_DEVICES is '3')");
    unsetenv("CUDA_VISIBLE_DEVICES");
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        assert_status(stk_device_find(odd[i], &found, &err), STK_E_DEVICE);
        assert_says(odd[i]);
    }
}

static void a_failed_creation_leaves_nothing(void **state)
{
    stk_device *found;

    (void)state;
    fake_reset(2);
    fake.no_library = true;
    assert_status(stk_device_find("cuda:1", &found, &err), STK_E_DEVICE);
    fake.no_library = false;

    fake.fail = "retain_context";
    fake.driver_error = CUDA_ERROR_OUT_OF_MEMORY;
    assert_status(stk_device_find("cuda:1", &found, &err), STK_E_DEVICE);
    assert_says("cuda:1: the driver cannot create a context on this GPU: CUDA_ERROR_OUT_OF_MEMORY");
    fake.fail = "push_context";
    assert_status(stk_device_find("cuda:1", &found, &err), STK_E_DEVICE);
    assert_says("cannot make the device's context current");
    fake.fail = "GetDeviceProperties";
    fake.error = cudaErrorIllegalAddress;
    assert_status(stk_device_find("cuda:1", &found, &err), STK_E_DEVICE);
    assert_says("cudaErrorIllegalAddress");
    fake.fail = NULL;

    fake.major = 6;
    fake.minor = 1;
    assert_status(stk_device_find("cuda:1", &found, &err), STK_E_DEVICE);
    assert_says("compute capability 6.1");
    fake.major = 8; /* neither code for 7.5 nor PTX for 9.0 runs on it */
    fake.minor = 0;
    assert_status(stk_device_find("cuda:1", &found, &err), STK_E_DEVICE);
    assert_says("compute capability 8.0");
    assert_says("7.5, 9.0 and later");
    fake.major = 9;
    assert_int_equal(fake_depth, 0);
    assert_int_equal(fake_mode, cudaStreamCaptureModeGlobal);
    for (int64_t n = 1;; n++) {
        stk_status status;

        stki_memory_fail_at(n);
        status = stk_device_find("cuda:1", &found, &err);
        stki_memory_fail_at(0);
        if (!status)
            break;
        assert_int_equal(status, STK_E_MEMORY);
        assert_int_equal(fake_depth, 0);
        assert_int_equal(fake_mode, cudaStreamCaptureModeGlobal);
    }
    device = found;
}

/* Rows G05 and W81: only the requested device is created, and nothing happens on the first one. */
static void only_the_requested_device_gets_a_context(void **state)
{
    stk_device *again, *first;

    (void)state;
    assert_int_equal(fake.contexts[0], 0);
    assert_true(fake.contexts[1] > 0);
    assert_ok(stk_device_find("cuda:1", &again, &err));
    assert_ptr_equal(again, device);
    assert_string_equal(stk_device_name(device), "cuda:1");
    assert_int_equal(stk_device_get_kind(device), STK_DEVICE_CUDA);
    assert_int_equal(stk_device_index(device), 1);
    assert_false(device->host_memory);
    assert_int_equal(stk_cuda_device_count(&err), 2);
    assert_int_equal(fake.contexts[0], 0);
    assert_ok(stk_device_find("cuda", &first, &err));
    assert_string_equal(stk_device_name(first), "cuda:0");
    assert_int_equal(fake.contexts[0], 1);
}

/* ---- every call: context, errors ---- */

/* Casts every second byte at the beginning of `memory` to f32 at offset 32, which needs a kernel. */
static stk_status cast_strided(stk_device *on, char *memory, stk_stream *stream)
{
    const stk_tensor src = {.data = memory, .device = on, .dtype = STK_U8, .ndim = 1, .shape = {8}, .strides = {2}};
    const stk_tensor dst = {
        .data = memory + 32, .device = on, .dtype = STK_F32, .ndim = 1, .shape = {8}, .strides = {4}};

    return on->ops->copy_strided(on, &dst, &src, stream, &err);
}

/* Uses every function of the device, with and without a stream. Returns the first error. */
static stk_status do_everything(stk_device *on)
{
    char host[64] = "0123456789", back[64];
    void *memory = NULL, *pinned = NULL;
    stk_stream *stream = NULL, *wrapped = NULL;
    stk_event *event = NULL, *later = NULL;
    stk_device_properties properties = {.struct_size = sizeof properties};
    int64_t ns;
    stk_status status;

    if (!(status = on->ops->alloc(on, 64, &memory, &err)) && !(status = on->ops->alloc_pinned(on, 64, &pinned, &err)) &&
        !(status = stk_stream_create(on, &stream, &err)) && !(status = stk_stream_wrap(on, NULL, &wrapped, &err)) &&
        !(status = stk_event_create(on, true, &event, &err)) && !(status = stk_event_create(on, true, &later, &err)) &&
        !(status = stk_event_record(event, stream, &err)) &&
        !(status = on->ops->copy(on, memory, true, host, false, 64, stream, &err)) &&
        !(status = on->ops->fill(on, memory, "ab", 2, 4, stream, &err)) &&
        !(status = on->ops->fill(on, memory, "\1\1", 2, 4, stream, &err)) &&
        !(status = cast_strided(on, memory, stream)) && !(status = stk_stream_spin(stream, 1000000, &err)) &&
        !(status = stk_event_record(later, stream, &err)) && !(status = stk_stream_wait(wrapped, later, &err)) &&
        !(status = stk_stream_synchronize(stream, A_SECOND, &err)) &&
        !(status = stk_event_synchronize(later, A_SECOND, &err)) &&
        !(status = stk_event_synchronize(later, STK_WAIT_FOREVER, &err)) &&
        !(status = stk_event_elapsed(event, later, &ns, &err)) &&
        !(status = on->ops->copy(on, back, false, memory, true, 64, NULL, &err)) &&
        !(status = stk_device_get_properties(on, &properties, &err)))
        status = stk_device_synchronize(on, &err);
    stk_stream_destroy(stream); /* first, because queued work points to the rest */
    stk_stream_destroy(wrapped);
    stk_event_destroy(event);
    stk_event_destroy(later);
    on->ops->free(on, memory, 64);
    on->ops->free_pinned(on, pinned, 64);
    return status;
}

static void calls_use_the_device_and_keep_the_current_one(void **state)
{
    CUcontext others = fake_context(0);

    (void)state;
    for (int round = 0; round < 2; round++) { /* a thread without a current device, and one that uses cuda:0 */
        fake_reset(2);
        if (round)
            fake_push_context(others);
        assert_ok(do_everything(device));
        assert_int_equal(fake_depth, round);
        assert_int_equal(fake_current(), round ? 0 : -1);
        assert_true(fake.calls > 20);
        for (int i = 0; i < fake.calls; i++)
            if (strcmp(fake.log[i].name, "DriverGetVersion"))
                assert_int_equal(fake.log[i].ordinal, 1);
        if (round)
            (void)fake_pop_context(&others);
    }
    assert_int_equal(fake.blocks + fake.pinned_blocks + fake.streams + fake.events, 0);
}

static void a_failure_of_any_call_is_reported_and_leaks_nothing(void **state)
{
    static const char *const calls[] = {
        "Malloc",
        "HostAlloc",
        "StreamCreateWithPriority",
        "spin",
        "launch",
        "EventCreateWithFlags",
        "MemcpyAsync",
        "fill",
        "MemsetAsync",
        "EventRecord",
        "StreamWaitEvent",
        "StreamQuery",
        "EventQuery",
        "EventSynchronize",
        "StreamSynchronize",
        "EventElapsedTime",
        "GetDeviceProperties",
        "MemGetInfo",
        "DeviceGetPCIBusId",
        "DeviceSynchronize",
    };

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        fake_reset(2);
        fake.fail = calls[i];
        fake.error = cudaErrorIllegalAddress;
        if (do_everything(device) != STK_E_DEVICE)
            fail_msg("%s failed, but no error was returned", calls[i]);
        assert_says("cuda:1: ");
        assert_says("cudaErrorIllegalAddress: an illegal memory access was encountered");
        assert_says("can no longer be used");
        assert_int_equal(fake.last, cudaSuccess);
        assert_int_equal(fake_depth, 0);
        assert_int_equal(fake_mode, cudaStreamCaptureModeGlobal);
        assert_int_equal(fake.blocks + fake.pinned_blocks + fake.streams + fake.events, 0);
    }
    fake_reset(2);
    fake.fail = "push_context";
    fake.driver_error = CUDA_ERROR_OUT_OF_MEMORY;
    assert_int_equal(do_everything(device), STK_E_DEVICE);
    assert_says("CUDA_ERROR_OUT_OF_MEMORY");
    fake_reset(2);
    fake.fail = "MemcpyAsync";
    fake.error = cudaErrorInvalidValue; /* a harmless error */
    assert_int_equal(do_everything(device), STK_E_DEVICE);
    assert_says("copying to the device (64 bytes)");
    assert_null(strstr(err.message, "no longer"));
}

static void our_own_allocations_may_fail(void **state)
{
    int64_t n = 0;
    stk_status status;

    (void)state;
    fake_reset(2);
    do {
        stki_memory_fail_at(++n);
        status = do_everything(device);
        stki_memory_fail_at(0);
        assert_true(status == STK_OK || status == STK_E_MEMORY);
        assert_int_equal(fake.blocks + fake.pinned_blocks + fake.streams + fake.events, 0);
        fake.calls = 0;
    } while (status);
    assert_int_equal(n, 5); /* two streams, two events, and success */
}

/* ---- memory ---- */

static void memory_is_exact_and_counted(void **state)
{
    stki_memory_stats device_before, pinned_before, now;
    void *block, *pinned;

    (void)state;
    fake_reset(2);
    stki_memory_read(STKI_MEM_DEVICE, &device_before);
    stki_memory_read(STKI_MEM_PINNED, &pinned_before);
    assert_ok(device->ops->alloc(device, 12345, &block, &err));
    assert_string_equal(fake_last_call(0), "Malloc");
    assert_int_equal(fake.log[fake.calls - 1].number, 12345);
    assert_ok(device->ops->alloc_pinned(device, 777, &pinned, &err));
    assert_int_equal(fake.log[fake.calls - 1].number, 777);
    stki_memory_read(STKI_MEM_DEVICE, &now);
    assert_int_equal(now.bytes - device_before.bytes, 12345);
    assert_int_equal(now.blocks - device_before.blocks, 1);
    stki_memory_read(STKI_MEM_PINNED, &now);
    assert_int_equal(now.bytes - pinned_before.bytes, 777);
    device->ops->free(device, block, 12345);
    device->ops->free_pinned(device, pinned, 777);
    stki_memory_read(STKI_MEM_DEVICE, &now);
    assert_int_equal(now.bytes, device_before.bytes);
    stki_memory_read(STKI_MEM_PINNED, &now);
    assert_int_equal(now.bytes, pinned_before.bytes);

    assert_ok(device->ops->alloc(device, 0, &block, &err)); /* a distinct address, as with other devices */
    assert_non_null(block);
    device->ops->free(device, block, 0);
    device->ops->free(device, NULL, 0);
    device->ops->free_pinned(device, NULL, 0);
}

/* A device with stream-ordered allocation: allocating waits only for the stream of the memory, freeing for nothing. */
static void memory_is_allocated_in_stream_order(void **state)
{
    stk_device *pooled;
    cudaStream_t stream;
    void *block;

    (void)state;
    fake_reset(3);
    fake.pools = 1;
    assert_ok(stk_device_find("cuda:2", &pooled, &err));
    assert_ok(pooled->ops->alloc(pooled, 12345, &block, &err));
    assert_string_equal(fake_last_call(1), "MallocAsync");
    assert_string_equal(fake_last_call(0), "StreamSynchronize");
    stream = fake.log[fake.calls - 1].stream;
    assert_int_equal(((fake_stream *)(void *)stream)->flags, cudaStreamNonBlocking);
    assert_ptr_equal(fake.log[fake.calls - 2].stream, stream);
    pooled->ops->free(pooled, block, 12345);
    assert_string_equal(fake_last_call(0), "FreeAsync");
    assert_ptr_equal(fake.log[fake.calls - 1].stream, stream);
    fake.free_bytes = 100;
    assert_status(pooled->ops->alloc(pooled, 12345, &block, &err), STK_E_MEMORY);
    fake.pools = 0;
}

static void out_of_memory_reports_sizes(void **state)
{
    void *block;

    (void)state;
    fake_reset(2);
    assert_status(device->ops->alloc(device, 5 << 20, &block, &err), STK_E_MEMORY);
    assert_says("cuda:1: out of memory: allocating: 5242880 bytes; 2097152 bytes in total, 1048576 free");
    assert_int_equal(fake.last, cudaSuccess);
    fake.fail = "HostAlloc";
    fake.error = cudaErrorMemoryAllocation;
    assert_status(device->ops->alloc_pinned(device, 4096, &block, &err), STK_E_MEMORY);
    assert_says("pinning host memory");
    assert_says("4096");
    fake.fail = "MemGetInfo"; /* the figures are unknown */
    fake.error = cudaErrorInvalidValue;
    assert_status(device->ops->alloc(device, 5 << 20, &block, &err), STK_E_MEMORY);
    assert_says("5242880 bytes");
    assert_int_equal(fake.last, cudaSuccess);
}

/* ---- copies and fills ---- */

/* Row W80: every copy is queued in a stream. If the caller gives none, it is the thread's own stream, and the call
 * waits for it. */
static void copies_have_the_right_direction(void **state)
{
    static const enum cudaMemcpyKind kinds[2][2] = {{cudaMemcpyHostToHost, cudaMemcpyDeviceToHost},
                                                    {cudaMemcpyHostToDevice, cudaMemcpyDeviceToDevice}};
    char from[8] = "1234567", to[8];
    stk_stream *stream;

    (void)state;
    fake_reset(2);
    assert_ok(stk_stream_create(device, &stream, &err));
    for (int dst = 0; dst < 2; dst++)
        for (int src = 0; src < 2; src++) {
            fake.calls = 0;
            fake.held = true;
            memset(to, 0, sizeof to);
            assert_ok(device->ops->copy(device, to, dst, from, src, 8, stream, &err));
            assert_int_equal(fake.calls, 1); /* the call did not wait */
            assert_int_equal(fake.log[0].number, kinds[dst][src]);
            assert_ptr_equal(fake.log[0].stream, stk_stream_native(stream));
            assert_int_equal(to[0], 0);
            fake.held = false;
            assert_ok(stk_stream_synchronize(stream, A_SECOND, &err));
            assert_string_equal(to, from);

            memset(to, 0, sizeof to);
            assert_ok(device->ops->copy(device, to, dst, from, src, 8, NULL, &err));
            assert_string_equal(to, from);
            assert_ptr_equal(fake.log[fake.calls - 2].stream, cudaStreamPerThread);
            assert_string_equal(fake_last_call(0), "StreamSynchronize");
            assert_ptr_equal(fake.log[fake.calls - 1].stream, cudaStreamPerThread);
        }
    fake.calls = 0;
    assert_ok(device->ops->copy(device, NULL, true, NULL, false, 0, stream, &err));
    assert_int_equal(fake.calls, 0);
    stk_stream_destroy(stream);
}

static void fills_of_one_byte_need_no_kernel(void **state)
{
    char to[12];

    (void)state;
    fake_reset(2);
    assert_ok(device->ops->fill(device, to, "\7\7\7\7", 4, 3, NULL, &err));
    assert_string_equal(fake.log[0].name, "MemsetAsync");
    assert_memory_equal(to, "\7\7\7\7\7\7\7\7\7\7\7\7", 12);
    fake.calls = 0;
    assert_ok(device->ops->fill(device, to, "abc", 3, 4, NULL, &err));
    assert_string_equal(fake.log[0].name, "fill");
    assert_memory_equal(to, "abcabcabcabc", 12);
    fake.calls = 0;
    assert_ok(device->ops->fill(device, to, "abc", 3, 0, NULL, &err));
    assert_int_equal(fake.calls, 0);
}

static void kernels_run_in_the_stream(void **state)
{
    stk_stream *stream;
    void *memory;
    float found[8];

    (void)state;
    fake_reset(2);
    assert_ok(device->ops->alloc(device, 64, &memory, &err));
    assert_ok(stk_stream_create(device, &stream, &err));
    for (int i = 0; i < 32; i++)
        ((unsigned char *)memory)[i] = (unsigned char)(200 + i);
    fake.calls = 0;
    assert_ok(cast_strided(device, memory, stream));
    assert_int_equal(fake.calls, 1);
    assert_string_equal(fake.log[0].name, "launch");
    assert_ptr_equal(fake.log[0].stream, stk_stream_native(stream));
    assert_ok(stk_stream_synchronize(stream, A_SECOND, &err));
    memcpy(found, (char *)memory + 32, sizeof found);
    for (int i = 0; i < 8; i++)
        assert_true(found[i] == 200 + 2 * (float)i);

    assert_ok(cast_strided(device, memory, NULL)); /* without a stream, it is complete on return */
    assert_string_equal(fake_last_call(0), "StreamSynchronize");
    stk_stream_destroy(stream);
    device->ops->free(device, memory, 64);
}

/* ---- streams and events ---- */

static void streams_do_not_wait_for_others(void **state)
{
    stk_stream *stream, *wrapped;
    char one = 1, to = 0;
    void *native;

    (void)state;
    fake_reset(2);
    assert_ok(stk_stream_create(device, &stream, &err));
    native = stk_stream_native(stream);
    assert_int_equal(((fake_stream *)native)->flags, cudaStreamNonBlocking);
    assert_int_equal(((fake_stream *)native)->priority, 0);
    assert_ptr_equal(stk_stream_device(stream), device);
    assert_ok(stk_stream_query(stream, &err));
    fake.held = true;
    assert_ok(device->ops->copy(device, &to, true, &one, false, 1, stream, &err));
    assert_int_equal(stk_stream_query(stream, &err), STK_AGAIN);
    assert_int_equal(fake.last, cudaSuccess); /* "not ready" does not remain as an error */
    assert_status(stk_stream_synchronize(stream, 1000000, &err), STK_E_TIMEOUT);
    fake.held = false;
    assert_ok(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err));
    assert_int_equal(fake_count_of("StreamSynchronize"), 0); /* it polls and sleeps instead */

    assert_ok(stk_stream_wrap(device, native, &wrapped, &err));
    assert_ptr_equal(stk_stream_native(wrapped), native);
    stk_stream_destroy(wrapped);
    assert_int_equal(fake_count_of("StreamDestroy"), 0); /* it belongs to the caller */
    stk_stream_destroy(stream);
    assert_int_equal(fake_count_of("StreamDestroy"), 1);
    assert_ok(stki_stream_create_urgent(device, &stream, &err));
    assert_int_equal(((fake_stream *)stk_stream_native(stream))->priority, FAKE_GREATEST_PRIORITY);
    assert_int_equal(((fake_stream *)stk_stream_native(stream))->flags, cudaStreamNonBlocking);
    stk_stream_destroy(stream);

    assert_ok(stk_stream_wrap(device, NULL, &wrapped, &err)); /* the legacy default stream by its name */
    assert_null(stk_stream_native(wrapped));
    assert_ok(device->ops->copy(device, &to, true, &one, false, 1, wrapped, &err));
    assert_ptr_equal(fake.log[fake.calls - 1].stream, cudaStreamLegacy);
    assert_ok(stk_stream_synchronize(wrapped, A_SECOND, &err));
    stk_stream_destroy(wrapped);
}

static void events_mark_and_order(void **state)
{
    stk_stream *first, *second;
    stk_event *plain, *from, *to;
    char a = 'a', b = 'b', place = 0;
    int64_t ns;

    (void)state;
    fake_reset(2);
    assert_ok(stk_stream_create(device, &first, &err));
    assert_ok(stk_stream_create(device, &second, &err));
    assert_ok(stk_event_create(device, false, &plain, &err));
    assert_int_equal(fake.log[fake.calls - 1].number, cudaEventBlockingSync | cudaEventDisableTiming);
    assert_ok(stk_event_create(device, true, &from, &err));
    assert_int_equal(fake.log[fake.calls - 1].number, cudaEventBlockingSync);
    assert_ok(stk_event_create(device, true, &to, &err));
    assert_ok(stk_event_query(plain, &err)); /* a new event is done */

    /* Row G02: the second stream's work comes after the first's, although the host did not wait. */
    fake.held = true;
    assert_ok(device->ops->copy(device, &place, true, &a, false, 1, first, &err));
    assert_ok(stk_event_record(plain, first, &err));
    assert_ok(stk_stream_wait(second, plain, &err));
    assert_ok(device->ops->copy(device, &place, true, &b, false, 1, second, &err));
    assert_int_equal(stk_event_query(plain, &err), STK_AGAIN);
    assert_int_equal(fake.last, cudaSuccess);
    fake.held = false;
    assert_int_equal(stk_stream_query(second, &err), STK_AGAIN);
    assert_int_equal(place, 0);
    assert_ok(stk_stream_synchronize(first, A_SECOND, &err));
    assert_ok(stk_stream_synchronize(second, A_SECOND, &err));
    assert_int_equal(place, 'b');
    assert_ok(stk_event_synchronize(plain, A_SECOND, &err));

    assert_status(stk_event_elapsed(from, plain, &ns, &err), STK_E_BAD_ARG);
    assert_status(stk_event_elapsed(from, to, &ns, &err), STK_E_DEVICE); /* never recorded */
    assert_ok(stk_event_record(from, first, &err));
    assert_ok(stk_stream_spin(first, 2000000, &err));
    assert_ok(stk_event_record(to, first, &err));
    assert_int_equal(stk_event_elapsed(from, to, &ns, &err), STK_AGAIN);
    assert_ok(stk_stream_synchronize(first, A_SECOND, &err));
    assert_ok(stk_event_elapsed(from, to, &ns, &err));
    assert_int_equal(ns, 2250000); /* 2 ms of work and one tick */

    stk_event_destroy(plain);
    stk_event_destroy(from);
    stk_event_destroy(to);
    stk_stream_destroy(first);
    stk_stream_destroy(second);
}

/* The driver does not know events of other devices, so the caller waits. */
static void events_of_other_devices_block_the_caller(void **state)
{
    stk_stream *stream;
    stk_event *event;

    (void)state;
    fake_reset(2);
    assert_ok(stk_stream_create(device, &stream, &err));
    assert_ok(stk_event_create(stk_device_cpu(), false, &event, &err));
    assert_ok(stk_event_record(event, NULL, &err));
    assert_ok(stk_stream_wait(stream, event, &err));
    assert_int_equal(fake_count_of("StreamWaitEvent"), 0);
    stk_event_destroy(event);
    stk_stream_destroy(stream);
}

static void properties_come_from_the_device(void **state)
{
    stk_device_properties properties = {.struct_size = sizeof properties};

    (void)state;
    fake_reset(2);
    assert_ok(stk_device_get_properties(device, &properties, &err));
    assert_string_equal(properties.model, "Fake GPU 1");
    assert_string_equal(properties.bus, "0000:41:00.0");
    assert_int_equal(properties.total_bytes, 2 << 20);
    assert_int_equal(properties.free_bytes, 1 << 20);
    assert_int_equal(properties.compute_major, 9);
    assert_int_equal(properties.compute_minor, 0);
    assert_int_equal(properties.processors, 132);
    assert_int_equal(properties.copy_engines, 3);
    assert_int_equal(properties.driver_version, 13000);
    assert_int_equal(properties.runtime_version, 13000);
    assert_true(properties.pins);
}

/* ---- fork ---- */

static int in_the_child(void)
{
    stk_device *found;
    void *block;

    fake.calls = 0;
    if (stk_device_find("cuda:0", &found, &err) == STK_OK && found->ops->alloc(found, 8, &block, &err) == STK_OK)
        return 1;
    if (!strstr(err.message, "forked"))
        return 2;
    if (stk_cuda_device_count(&err) != 0 || !strstr(err.message, "forked"))
        return 3;
    if (stki_cuda_provider.find("cuda:1", &found, &err) != STK_E_FORKED || !strstr(err.message, "forked"))
        return 4;
    if (do_everything(device) != STK_E_FORKED || !strstr(err.message, "forked"))
        return 5;
    return fake.calls ? 6 : 0; /* CUDA was not called, which would hang */
}

/* Row P19: CUDA does not survive a fork; the child gets an error and does not hang in the driver. */
static void a_forked_child_is_refused(void **state)
{
    int status;
    pid_t child;

    (void)state;
    fake_reset(2);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(in_the_child());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_ok(do_everything(device)); /* the parent continues */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuda_is_not_called_before_a_request),
        cmocka_unit_test(errors_say_what_is_missing),
        cmocka_unit_test(missing_devices_are_named),
        cmocka_unit_test(a_failed_creation_leaves_nothing),
        cmocka_unit_test(only_the_requested_device_gets_a_context),
        cmocka_unit_test(calls_use_the_device_and_keep_the_current_one),
        cmocka_unit_test(a_failure_of_any_call_is_reported_and_leaks_nothing),
        cmocka_unit_test(our_own_allocations_may_fail),
        cmocka_unit_test(memory_is_exact_and_counted),
        cmocka_unit_test(memory_is_allocated_in_stream_order),
        cmocka_unit_test(out_of_memory_reports_sizes),
        cmocka_unit_test(copies_have_the_right_direction),
        cmocka_unit_test(fills_of_one_byte_need_no_kernel),
        cmocka_unit_test(kernels_run_in_the_stream),
        cmocka_unit_test(streams_do_not_wait_for_others),
        cmocka_unit_test(events_mark_and_order),
        cmocka_unit_test(events_of_other_devices_block_the_caller),
        cmocka_unit_test(properties_come_from_the_device),
        cmocka_unit_test(a_forked_child_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
