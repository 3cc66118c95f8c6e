/* providers.c: the kinds of devices beside the processor. */
#include "device_table.h"
#include <stddef.h>

const stki_device_provider *const stki_device_providers[] = {NULL};
