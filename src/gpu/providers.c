/* providers.c: the list of device providers, and the lookup of devices by name. */
#include "cuda_provider.h"
#include "device_table.h"
#include "error.h"
#include "host_device.h"
#include <stdio.h>
#include <string.h>

static const stki_device_provider *const providers[] = {&stki_host_provider, &stki_cuda_provider};
enum { PROVIDERS = sizeof providers / sizeof providers[0], KNOWN_TEXT = 160 };

static const stki_device_provider *provider_of(const char *name)
{
    for (int i = 0; i < PROVIDERS; i++) {
        size_t length = strlen(providers[i]->prefix);

        if (!strncmp(name, providers[i]->prefix, length) && (name[length] == 0 || name[length] == ':'))
            return providers[i];
    }
    return NULL;
}

/* Appends the name of a registered device unless it was created by a provider. */
static void add_known(void *context, stk_device *device)
{
    char *known = context;
    size_t used = strlen(known);

    if (device != stk_device_cpu() && !provider_of(device->name))
        snprintf(known + used, KNOWN_TEXT - used, ", %s", device->name);
}

stk_status stk_device_find(const char *name, stk_device **out, stk_error *err)
{
    const stki_device_provider *provider;
    char known[KNOWN_TEXT] = "cpu";

    if (!name || !strcmp(name, "cpu")) {
        *out = stk_device_cpu();
        return STK_OK;
    }
    *out = stki_device_registered(name);
    if (*out)
        return STK_OK;
    provider = provider_of(name);
    if (provider)
        return provider->find(name, out, err);
    for (int i = 0; i < PROVIDERS; i++) {
        size_t used = strlen(known);

        snprintf(known + used, sizeof known - used, ", %s", providers[i]->prefix);
    }
    stki_device_each(add_known, known);
    return stki_fail(err, STK_E_DEVICE, "no device '%s' (available: %s)", name, known);
}

int stk_cuda_device_count(stk_error *err)
{
    return stki_cuda_provider.count(err);
}
