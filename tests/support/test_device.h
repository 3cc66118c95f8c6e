/* test_device.h: a device with memory of its own that the processor cannot touch. */
#ifndef STKT_TEST_DEVICE_H
#define STKT_TEST_DEVICE_H

#include "test_device.h"
#include <stoker/device.h>

/* Registered on the first call; copies go through the table of devices only. */
stk_device *stki_device_test(void);

#endif
