/* cuda_calls.h: a table of all CUDA functions that the library calls outside kernel files. Tests replace the table, so
 * that cuda_device.c and cuda_provider.c are tested completely on machines without a GPU.
 *
 * Most of the functions are the runtime's, under their own names. A few are the driver's: the runtime cannot restore a
 * thread that had no current device (cudaSetDevice(0) would create a context), whereas pushing and popping the device's
 * primary context, which the runtime uses too, leaves the thread's state unchanged. The driver's functions are looked
 * up in libcuda.so.1 when the first device is created, so the library can be loaded without a driver.
 */
#ifndef STKI_CUDA_CALLS_H
#define STKI_CUDA_CALLS_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stoker/status.h>

typedef struct stki_cuda_calls {
    /* Queries that do not create a context. */
    cudaError_t (*DriverGetVersion)(int *version); /* 0: no driver */
    cudaError_t (*RuntimeGetVersion)(int *version);
    cudaError_t (*GetDeviceCount)(int *count);

    /* Primary contexts. load_driver must be called first; it looks up the others. */
    stk_status (*load_driver)(stk_error *err);
    CUresult (*retain_context)(CUcontext *out, int ordinal);
    CUresult (*push_context)(CUcontext context);
    CUresult (*pop_context)(CUcontext *out);
    CUresult (*context_state)(int ordinal, int *active); /* 1: the context exists */
    const char *(*driver_error_name)(CUresult error);

    /* For the current context. */
    cudaError_t (*GetDeviceProperties)(struct cudaDeviceProp *out, int ordinal);
    cudaError_t (*DeviceGetPCIBusId)(char *out, int size, int ordinal);
    cudaError_t (*DeviceSynchronize)(void);
    cudaError_t (*MemGetInfo)(size_t *free_bytes, size_t *total_bytes);
    cudaError_t (*DeviceGetAttribute)(int *out, enum cudaDeviceAttr attribute, int ordinal);
    cudaError_t (*Malloc)(void **out, size_t bytes);
    cudaError_t (*Free)(void *block); /* waits for the whole device */
    cudaError_t (*MallocAsync)(void **out, size_t bytes, cudaStream_t stream);
    cudaError_t (*FreeAsync)(void *block, cudaStream_t stream);
    cudaError_t (*HostAlloc)(void **out, size_t bytes, unsigned flags);
    cudaError_t (*FreeHost)(void *block);
    cudaError_t (*MemcpyAsync)(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream);
    cudaError_t (*MemsetAsync)(void *dst, int value, size_t bytes, cudaStream_t stream);
    cudaError_t (*DeviceGetStreamPriorityRange)(int *least, int *greatest);
    cudaError_t (*StreamCreateWithPriority)(cudaStream_t *out, unsigned flags, int priority);
    cudaError_t (*StreamDestroy)(cudaStream_t stream);
    cudaError_t (*StreamQuery)(cudaStream_t stream);
    cudaError_t (*StreamSynchronize)(cudaStream_t stream);
    cudaError_t (*StreamWaitEvent)(cudaStream_t stream, cudaEvent_t event, unsigned flags);
    cudaError_t (*EventCreateWithFlags)(cudaEvent_t *out, unsigned flags);
    cudaError_t (*EventDestroy)(cudaEvent_t event);
    cudaError_t (*EventRecord)(cudaEvent_t event, cudaStream_t stream);
    cudaError_t (*EventQuery)(cudaEvent_t event);
    cudaError_t (*EventSynchronize)(cudaEvent_t event);
    cudaError_t (*EventElapsedTime)(float *ms, cudaEvent_t from, cudaEvent_t to);
    cudaError_t (*ThreadExchangeStreamCaptureMode)(enum cudaStreamCaptureMode *mode);
    cudaError_t (*GetLastError)(void); /* also clears it */
    const char *(*GetErrorName)(cudaError_t error);
    const char *(*GetErrorString)(cudaError_t error);
} stki_cuda_calls;

/* The real functions. A test installs its own table before it looks up a device, and never restores the real one. */
extern const stki_cuda_calls *stki_cuda;

#endif
