/* device_choice.h: which device a name of the config means in this process. */
#ifndef STKI_DEVICE_CHOICE_H
#define STKI_DEVICE_CHOICE_H

#include "config.h"
#include <stoker/device.h>

/* As stk_device_find, but "cuda" without a number is the GPU of this rank: the only one that is visible, else the one
 * with the launcher's local rank, else the first. A local rank at or above the number of GPUs is STK_E_DEVICE. No other
 * GPU gets a context. */
stk_status stki_find_device(stki_loader_config *config, const char *name, stk_device **out, stk_error *err);

#endif
