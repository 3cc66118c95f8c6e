/* device_choice.h: maps a device name in the config to a device in this process. */
#ifndef STKI_DEVICE_CHOICE_H
#define STKI_DEVICE_CHOICE_H

#include "config.h"
#include <stoker/device.h>

/* Like stk_device_find, but "cuda" without a number is this rank's GPU: the only visible one, or else the one whose
 * number is the launcher's local rank, or else the first. STK_E_DEVICE: the local rank is not less than the number of
 * GPUs. No context is created on any other GPU. */
stk_status stki_find_device(stki_loader_config *config, const char *name, stk_device **out, stk_error *err);

#endif
