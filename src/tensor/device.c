/* device.c: the list of devices. They are only ever added, so a reader needs no lock: the count is published after the
 * entry. */
#include "device_table.h"
#include "error.h"
#include "thread.h"
#include <stdatomic.h>
#include <stdio.h>
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
    if (!status && count == MAX_DEVICES)
        status = stki_fail(err, STK_E_LIMIT, "no room for device '%s': at most %d", device->name, MAX_DEVICES);
    if (!status) {
        devices[count] = device;
        atomic_store_explicit(&device_count, count + 1, memory_order_release);
    }
    stki_unlock(&lock);
    return status;
}

stk_status stk_device_find(const char *name, stk_device **out, stk_error *err)
{
    int count = atomic_load_explicit(&device_count, memory_order_acquire);
    char known[160] = "cpu";
    size_t used = 3;

    if (!name || !strcmp(name, "cpu")) {
        *out = stk_device_cpu();
        return STK_OK;
    }
    for (int i = 0; i < count; i++) {
        if (!strcmp(devices[i]->name, name)) {
            *out = devices[i];
            return STK_OK;
        }
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, ", %s", devices[i]->name);
    }
    return stki_fail(err, STK_E_DEVICE, "no device '%s' here (there are: %s)", name, known);
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
