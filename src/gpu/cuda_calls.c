/* cuda_calls.c: the table of cuda_calls.h with the functions of the real runtime and driver. */
#include "cuda_calls.h"
#include "error.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* The driver's functions, set once by load_driver, whose callers hold a lock. */
static struct {
    void *library;
    CUresult (*init)(unsigned flags);
    CUresult (*device_get)(CUdevice *out, int ordinal);
    CUresult (*retain)(CUcontext *out, CUdevice device);
    CUresult (*state)(CUdevice device, unsigned *flags, int *active);
    CUresult (*push)(CUcontext context);
    CUresult (*pop)(CUcontext *out);
    CUresult (*error_name)(CUresult error, const char **out);
} driver;

/* ISO C has no cast from dlsym's object pointer to a function pointer. */
static bool look_up(void *function, const char *name)
{
    void *found = dlsym(driver.library, name);

    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static stk_status load_driver(stk_error *err)
{
    if (driver.library)
        return STK_OK;
    driver.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver.library)
        return stki_fail(err, STK_E_DEVICE, "cuda: the driver's library cannot be loaded: %s", dlerror());
    if (!look_up(&driver.init, "cuInit") || !look_up(&driver.device_get, "cuDeviceGet") ||
        !look_up(&driver.retain, "cuDevicePrimaryCtxRetain") || !look_up(&driver.state, "cuDevicePrimaryCtxGetState") ||
        !look_up(&driver.push, "cuCtxPushCurrent_v2") || !look_up(&driver.pop, "cuCtxPopCurrent_v2") ||
        !look_up(&driver.error_name, "cuGetErrorName")) {
        dlclose(driver.library);
        driver.library = NULL;
        return stki_fail(err, STK_E_DEVICE, "cuda: libcuda.so.1 is not the library of a CUDA driver");
    }
    return STK_OK;
}

static CUresult retain_context(CUcontext *out, int ordinal)
{
    CUdevice device;
    CUresult result = driver.init(0);

    if (!result)
        result = driver.device_get(&device, ordinal);
    return result ? result : driver.retain(out, device);
}

static CUresult push_context(CUcontext context)
{
    return driver.push(context);
}

static CUresult pop_context(CUcontext *out)
{
    return driver.pop(out);
}

static CUresult context_state(int ordinal, int *active)
{
    CUdevice device;
    unsigned flags;
    CUresult result = driver.device_get(&device, ordinal);

    return result ? result : driver.state(device, &flags, active);
}

static const char *driver_error_name(CUresult error)
{
    const char *name = NULL;

    return driver.error_name(error, &name) == CUDA_SUCCESS && name ? name : "unknown error";
}

static const stki_cuda_calls real = {
    .DriverGetVersion = cudaDriverGetVersion,
    .RuntimeGetVersion = cudaRuntimeGetVersion,
    .GetDeviceCount = cudaGetDeviceCount,
    .load_driver = load_driver,
    .retain_context = retain_context,
    .push_context = push_context,
    .pop_context = pop_context,
    .context_state = context_state,
    .driver_error_name = driver_error_name,
    .GetDeviceProperties = cudaGetDeviceProperties,
    .DeviceGetPCIBusId = cudaDeviceGetPCIBusId,
    .DeviceSynchronize = cudaDeviceSynchronize,
    .MemGetInfo = cudaMemGetInfo,
    .DeviceGetAttribute = cudaDeviceGetAttribute,
    .Malloc = cudaMalloc,
    .Free = cudaFree,
    .MallocAsync = cudaMallocAsync,
    .FreeAsync = cudaFreeAsync,
    .HostAlloc = cudaHostAlloc,
    .FreeHost = cudaFreeHost,
    .MemcpyAsync = cudaMemcpyAsync,
    .MemsetAsync = cudaMemsetAsync,
    .DeviceGetStreamPriorityRange = cudaDeviceGetStreamPriorityRange,
    .StreamCreateWithPriority = cudaStreamCreateWithPriority,
    .StreamDestroy = cudaStreamDestroy,
    .StreamQuery = cudaStreamQuery,
    .StreamSynchronize = cudaStreamSynchronize,
    .StreamWaitEvent = cudaStreamWaitEvent,
    .EventCreateWithFlags = cudaEventCreateWithFlags,
    .EventDestroy = cudaEventDestroy,
    .EventRecord = cudaEventRecord,
    .EventQuery = cudaEventQuery,
    .EventSynchronize = cudaEventSynchronize,
    .EventElapsedTime = cudaEventElapsedTime,
    .ThreadExchangeStreamCaptureMode = cudaThreadExchangeStreamCaptureMode,
    .GetLastError = cudaGetLastError,
    .GetErrorName = cudaGetErrorName,
    .GetErrorString = cudaGetErrorString,
};

const stki_cuda_calls *stki_cuda = &real;
