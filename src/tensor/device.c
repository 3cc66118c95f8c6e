/* device.c: the list of devices. Devices are never removed, so readers need no lock: the count is published after the
 * entry. */
#include "device_table.h"
#include "error.h"
#include "thread.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

enum { MAX_DEVICES = 64 };

static stki_mutex lock = {PTHREAD_MUTEX_INITIALIZER};
static stk_device *devices[MAX_DEVICES];
static _Atomic int device_count; /* the release in register pairs with the acquire in find */

stk_status stki_device_register(stk_device *device, stk_error *err)
{
    int count;
    stk_status status = STK_OK;

    stki_lock(&lock);
    count = atomic_load_explicit(&device_count, memory_order_relaxed);
    for (int i = 0; i < count; i++)
        if (!strcmp(devices[i]->name, device->name))
            status = stki_fail(err, STK_E_BAD_ARG, "a device '%s' is already registered", device->name);
    if (status == STK_OK && count == MAX_DEVICES)
        status = stki_fail(err, STK_E_LIMIT, "device '%s' cannot be registered: there are already %d devices",
                           device->name, MAX_DEVICES);
    if (status == STK_OK) {
        devices[count] = device;
        atomic_store_explicit(&device_count, count + 1, memory_order_release);
    }
    stki_unlock(&lock);
    return status;
}

stk_device *stki_device_registered(const char *name)
{
    int count = atomic_load_explicit(&device_count, memory_order_acquire);

    for (int i = 0; i < count; i++)
        if (!strcmp(devices[i]->name, name))
            return devices[i];
    return NULL;
}

stk_status stk_device_get_properties(stk_device *device, stk_device_properties *out, stk_error *err)
{
    stk_device_properties found = {0};
    uint32_t size = out->struct_size;
    stk_status status;

    device = device ? device : stk_device_cpu();
    if (size < sizeof size)
        return stki_fail(err, STK_E_BAD_ARG,
                         "device properties: struct_size: found %" PRIu32 ", expected sizeof(stk_device_properties)",
                         size);
    status = device->ops->properties(device, &found, err);
    if (status != STK_OK)
        return status;
    memcpy(out, &found, size < sizeof found ? size : sizeof found);
    out->struct_size = size;
    return STK_OK;
}

stk_status stk_device_synchronize(stk_device *device, stk_error *err)
{
    device = device ? device : stk_device_cpu();
    return device->ops->synchronize(device, err);
}

const char *stk_device_name(const stk_device *device)
{
    return device ? device->name : "cpu";
}

stk_device_kind stk_device_get_kind(const stk_device *device)
{
    return device ? device->kind : STK_DEVICE_CPU;
}

int stk_device_index(const stk_device *device)
{
    return device ? device->index : 0;
}

void stki_device_note(stk_device *device, int64_t bytes, int64_t blocks)
{
    stki_counters_note(&device->memory, bytes, blocks);
    stki_memory_note(STKI_MEM_DEVICE, bytes, blocks);
}

void stki_device_each(void (*visit)(void *context, stk_device *device), void *context)
{
    int count = atomic_load_explicit(&device_count, memory_order_acquire);

    visit(context, stk_device_cpu());
    for (int i = 0; i < count; i++)
        visit(context, devices[i]);
}
