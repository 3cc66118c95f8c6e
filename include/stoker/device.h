/* device.h: where memory lives. A stk_device is a handle to one memory space and the code that moves bytes in and out
 * of it. Devices are registered once in a process and never destroyed; a pointer to one stays valid for good. The plain
 * CPU device always exists. Other devices register themselves when their part of the library is built and present. Any
 * thread may call any function here.
 */
#ifndef STOKER_DEVICE_H
#define STOKER_DEVICE_H

#include <stoker/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_device stk_device;

typedef enum stk_device_kind {
    STK_DEVICE_CPU = 1, /* ordinary memory; numbered as in DLPack */
    STK_DEVICE_CUDA = 2,
    STK_DEVICE_TEST = 12 /* a second memory space that is not the CPU's, for tests */
} stk_device_kind;

/* The plain CPU device. Never NULL. */
STK_API stk_device *stk_device_cpu(void);
/* By name: "cpu", "cuda:0", … STK_E_DEVICE: no such device here; the message says which there are. */
STK_API stk_status stk_device_find(const char *name, stk_device **out, stk_error *err);
STK_API const char *stk_device_name(const stk_device *device);
STK_API stk_device_kind stk_device_get_kind(const stk_device *device);
STK_API int stk_device_index(const stk_device *device);

#ifdef __cplusplus
}
#endif
#endif
