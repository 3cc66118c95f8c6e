/* providers.c: the kinds of devices beside the processor. */
#include "cuda_provider.h"
#include "device_table.h"
#include <stddef.h>

const stki_device_provider *const stki_device_providers[] = {&stki_cuda_provider, NULL};
