/* providers.c: the kinds of devices beside the processor. */
#include "cuda_provider.h"
#include "host_device.h"
#include <stddef.h>

const stki_device_provider *const stki_device_providers[] = {
    &stki_host_provider,
    &stki_cuda_provider,
    NULL,
};
