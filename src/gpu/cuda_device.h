/* cuda_device.h: a GPU as a stk_device: what cuda_provider.c makes and cuda_device.c works on. */
#ifndef STKI_CUDA_DEVICE_H
#define STKI_CUDA_DEVICE_H

#include "cuda_calls.h"
#include "device_table.h"

typedef struct stki_cuda_device {
    stk_device device; /* fixed after it was made, but for its counters */
    char name[16];
    CUcontext context;       /* the primary one of this GPU, kept for good */
    int numa_node;           /* of the host memory next to it; -1: none */
    cudaStream_t memory;     /* in which memory comes and goes; NULL: the device has no pool */
    int64_t fork_generation; /* of the process that made it: nobody else can use it */
} stki_cuda_device;

/* Fills the device's part: `cuda` has its context and nothing else. */
void stki_cuda_device_init(stki_cuda_device *cuda, int index);

/* Memory comes from the device's own pool from now on, if it has one. */
stk_status stki_cuda_use_pool(stki_cuda_device *cuda, stk_error *err);

/* The context of the device becomes the current one, and what the thread had before comes back: every call into CUDA
 * lies between the two. A process that was forked after CUDA was used is refused by enter: the driver hangs in it. */
stk_status stki_cuda_enter(stki_cuda_device *cuda, const char *doing, stk_error *err);
void stki_cuda_leave(void);

/* STK_E_DEVICE with the error's name and text, or STK_E_MEMORY where CUDA says so; bytes -1: not about bytes. The
 * runtime forgets the error, so that it does not turn up in somebody else's check. cudaSuccess gives STK_OK. */
stk_status stki_cuda_check(stki_cuda_device *cuda, cudaError_t error, const char *doing, int64_t bytes, stk_error *err);

#endif
