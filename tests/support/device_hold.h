/* device_hold.h: the device that STOKER_TEST_DEVICE names (the host device where it names none), and a stream of it
 * that stands still until the test lets it go: by the host device's faults, or by a kernel on a GPU that waits for a
 * flag. What is queued before the hold may or may not have run.
 */
#ifndef STKT_DEVICE_HOLD_H
#define STKT_DEVICE_HOLD_H

#include "cuda_provider.h"
#include "device_table.h"
#include "host_faults.h"
#include "stk_test.h"

#define STKT_A_WHILE INT64_C(60000000000) /* ns; what waits for a test that died goes on then */

/* NULL, with the reason printed: there is none. */
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
    int *flag; /* pinned, seen by the GPU while it changes; NULL on the host device */
} stkt_hold;

static inline stkt_hold stkt_hold_stream(stk_stream *stream)
{
    stk_device *device = stk_stream_device(stream);
    const stkt_host_faults held = {.delay_ns = STKT_HOST_HOLD};
    stkt_hold hold = {.stream = stream};
    void *flag;
    stk_error err;

    if (stk_device_get_kind(device) == STK_DEVICE_HOST) {
        stkt_host_set_faults(device, stream, &held);
        return hold;
    }
    assert_ok(device->ops->alloc_pinned(device, sizeof *hold.flag, &flag, &err));
    hold.flag = flag;
    __atomic_store_n(hold.flag, 0, __ATOMIC_RELEASE);
    assert_ok(stki_cuda_hold_stream(stream, hold.flag, STKT_A_WHILE, &err));
    return hold;
}

/* Before anything that waits for the stream. */
static inline void stkt_let_go(stkt_hold *hold)
{
    stk_device *device = stk_stream_device(hold->stream);
    stk_error err;

    if (!hold->flag) {
        stkt_host_set_faults(device, hold->stream, NULL);
        return;
    }
    __atomic_store_n(hold->flag, 1, __ATOMIC_RELEASE);
    assert_ok(stk_stream_synchronize(hold->stream, STKT_A_WHILE, &err)); /* the kernel reads the flag until then */
    device->ops->free_pinned(device, hold->flag, sizeof *hold->flag);
    hold->flag = NULL;
}

#endif
