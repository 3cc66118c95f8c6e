/* cuda_device.h: a GPU as a stk_device, created by cuda_provider.c and implemented by cuda_device.c. */
#ifndef STKI_CUDA_DEVICE_H
#define STKI_CUDA_DEVICE_H

#include "cuda_calls.h"
#include "device_table.h"

typedef struct stki_cuda_device {
    stk_device device; /* constant after creation, except for its counters */
    char name[16];
    CUcontext context;       /* the GPU's primary context, retained permanently */
    int numa_node;           /* the closest NUMA node; -1: none */
    cudaStream_t memory;     /* stream in which memory is allocated and freed; NULL: the device has no memory pool */
    int64_t fork_generation; /* fork generation of the process that created it; other processes cannot use it */
} stki_cuda_device;

/* Initializes `device`, in which the context must already be set. */
void stki_cuda_device_init(stki_cuda_device *cuda, int index);

/* Uses the device's own memory pool from now on, if it has one. */
stk_status stki_cuda_use_pool(stki_cuda_device *cuda, stk_error *err);

/* stki_cuda_enter makes the device's context current, and stki_cuda_leave restores the thread's previous one; every
 * CUDA call is made between the two. stki_cuda_enter fails in a process that was forked after CUDA had been used,
 * because the driver would hang. */
stk_status stki_cuda_enter(stki_cuda_device *cuda, const char *doing, stk_error *err);
void stki_cuda_leave(void);

/* Fails with STK_E_DEVICE and the error's name and text, or with STK_E_MEMORY if CUDA reports that; `bytes` -1: the
 * call has no size. Clears the runtime's last error, so that it does not show up in other code's checks. Returns STK_OK
 * for cudaSuccess. */
stk_status stki_cuda_check(stki_cuda_device *cuda, cudaError_t error, const char *doing, int64_t bytes, stk_error *err);

#endif
