/* test_device.h: a device whose memory the processor cannot access. */
#ifndef STKT_TEST_DEVICE_H
#define STKT_TEST_DEVICE_H

#include "test_device.h"
#include <stoker/device.h>

/* The first call registers the device. Copies must go through the device table. */
stk_device *stki_device_test(void);

#endif
