/* device_hold.h: the device named by STOKER_TEST_DEVICE (by default the host device), and streams of it that a test can
 * block and release: through host_faults.h, or on a GPU with a host function in the stream that polls a flag. Work
 * queued before the block may or may not have run. */
#ifndef STKT_DEVICE_HOLD_H
#define STKT_DEVICE_HOLD_H

#include "clock.h"
#include "device_table.h"
#include "host_faults.h"
#include "stk_test.h"
#include "thread.h"
#include <dlfcn.h>

#define STKT_A_WHILE INT64_C(60000000000) /* ns; a stream that a failed test left blocked continues after this time */

/* Returns NULL if there is no such device, and prints the reason. */
static inline stk_device *stkt_device(void)
{
    const char *name = getenv("STOKER_TEST_DEVICE");
    stk_device *device = NULL;
    stk_error err;

    if (stk_device_find(name && *name ? name : "host", &device, &err))
        printf("%s\n", err.message);
    return device;
}

typedef struct stkt_hold {
    stk_stream *stream;
    int *flag; /* NULL on the host device */
} stkt_hold;

#if defined(STKT_SIM_CUDA)
/* From sim_cuda.h, which is not included because cmake/gpu-check leaves out programs with headers that it does not
 * have. */
void sim_hold(int gpu, void *native_stream, const int *flag, int64_t at_most_ns);

static inline void stkt_hold_gpu(stk_stream *stream, int *flag)
{
    sim_hold(stk_device_index(stk_stream_device(stream)), stk_stream_native(stream), flag, STKT_A_WHILE);
}
#else
static inline void stkt_wait_for_flag(void *flag)
{
    int64_t deadline = stki_deadline_ns(STKT_A_WHILE);

    while (!__atomic_load_n((int *)flag, __ATOMIC_ACQUIRE) && stki_now_ns() < deadline)
        stki_sleep_ns(20000);
}

/* Uses the driver's functions directly, because this file is compiled without CUDA's headers. */
static inline void stkt_hold_gpu(stk_stream *stream, int *flag)
{
    struct {
        int (*get)(int *device, int ordinal);
        int (*retain)(void **context, int device);
        int (*push)(void *context);
        int (*launch)(void *stream, void (*function)(void *), void *data);
        int (*pop)(void **context);
        int (*release)(int device);
    } call;
    static const char *const names[] = {"cuDeviceGet",      "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2",
                                        "cuLaunchHostFunc", "cuCtxPopCurrent_v2",       "cuDevicePrimaryCtxRelease_v2"};
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context, *popped;
    int device;

    assert_non_null(driver);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *found = dlsym(driver, names[i]);
        assert_non_null(found);
        memcpy((char *)&call + i * sizeof found, &found, sizeof found);
    }
    assert_int_equal(call.get(&device, stk_device_index(stk_stream_device(stream))), 0);
    assert_int_equal(call.retain(&context, device), 0);
    assert_int_equal(call.push(context), 0);
    assert_int_equal(call.launch(stk_stream_native(stream), stkt_wait_for_flag, flag), 0);
    assert_int_equal(call.pop(&popped), 0);
    assert_int_equal(call.release(device), 0);
}
#endif

static inline stkt_hold stkt_hold_stream(stk_stream *stream)
{
    stk_device *device = stk_stream_device(stream);
    const stkt_host_faults held = {.delay_ns = STKT_HOST_HOLD};
    stkt_hold hold = {.stream = stream};

    if (stk_device_get_kind(device) == STK_DEVICE_HOST) {
        stkt_host_set_faults(device, stream, &held);
        return hold;
    }
    hold.flag = calloc(1, sizeof *hold.flag);
    assert_non_null(hold.flag);
    stkt_hold_gpu(stream, hold.flag);
    return hold;
}

/* Must be called before anything that waits for the stream. */
static inline void stkt_let_go(stkt_hold *hold)
{
    stk_error err;

    if (!hold->flag) {
        stkt_host_set_faults(stk_stream_device(hold->stream), hold->stream, NULL);
        return;
    }
    __atomic_store_n(hold->flag, 1, __ATOMIC_RELEASE);
    assert_ok(stk_stream_synchronize(hold->stream, STKT_A_WHILE, &err)); /* the flag is read until then */
    free(hold->flag);
    hold->flag = NULL;
}

#endif
