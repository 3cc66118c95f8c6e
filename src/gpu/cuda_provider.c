/* cuda_provider.c: finds GPUs, and reports what is missing if there is none. A device is created once and never
 * destroyed; the lock guards the list. CUDA is first called when a cuda device or the number of devices is requested.
 */
#include "cuda_provider.h"
#include "allocate.h"
#include "caching_pool.h"
#include "cuda_device.h"
#include "cuda_launches.h"
#include "error.h"
#include "numa.h"
#include "thread.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_GPUS = 64 };

static stki_mutex lock = {PTHREAD_MUTEX_INITIALIZER};
static stki_cuda_device *made[MAX_GPUS];
static int64_t user_generation =
    -1; /* fork generation of the process that first called CUDA; -1: CUDA has not been called */

/* ---- what is missing ---- */

static stk_status no_driver(stk_error *err)
{
    return stki_fail(err, STK_E_DEVICE,
                     "cuda: no NVIDIA driver found (libcuda.so.1 does not exist or is not a driver); install the "
                     "driver, or use the host device");
}

static stk_status old_driver(int driver, stk_error *err)
{
    int needed = 0;

    (void)stki_cuda->RuntimeGetVersion(&needed);
    return stki_fail(err, STK_E_DEVICE,
                     "cuda: the driver is too old: it supports CUDA %d.%d, but stoker was built with %d.%d; update the "
                     "driver, or use the host device",
                     driver / 1000, driver % 1000 / 10, needed / 1000, needed % 1000 / 10);
}

static stk_status no_gpu(stk_error *err)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    if (visible && !*visible)
        return stki_fail(err, STK_E_DEVICE, "cuda: no GPU is visible: CUDA_VISIBLE_DEVICES is empty");
    if (visible)
        return stki_fail(err, STK_E_DEVICE, "cuda: no GPU is visible: CUDA_VISIBLE_DEVICES is '%s'", visible);
    return stki_fail(err, STK_E_DEVICE, "cuda: the driver finds no GPU");
}

/* Counts the GPUs; fails if there is none. Lock held. */
static stk_status count_gpus(int *out, stk_error *err)
{
    int driver = 0;
    cudaError_t error;

    if (user_generation >= 0 && user_generation != stki_fork_generation())
        return stki_fail(err, STK_E_FORKED,
                         "cuda: this process was forked from one that used CUDA, which CUDA does not support: use the "
                         "device in the parent, or open it only after the fork");
    if (stki_cuda->DriverGetVersion(&driver) || driver == 0) {
        (void)stki_cuda->GetLastError();
        return no_driver(err);
    }
    error = stki_cuda->GetDeviceCount(out);
    if (error)
        (void)stki_cuda->GetLastError();
    if (error == cudaErrorInsufficientDriver)
        return old_driver(driver, err);
    if (error == cudaErrorNoDevice || (!error && *out == 0))
        return no_gpu(err);
    if (error == cudaErrorInitializationError)
        return stki_fail(err, STK_E_DEVICE,
                         "cuda: the driver cannot be initialized in this process: cudaErrorInitializationError (it may "
                         "have been forked from one that used CUDA, which CUDA does not support)");
    if (error)
        return stki_fail(err, STK_E_DEVICE, "cuda: cannot count the GPUs: %s: %s", stki_cuda->GetErrorName(error),
                         stki_cuda->GetErrorString(error));
    user_generation = stki_fork_generation();
    return STK_OK;
}

static stk_status no_such_gpu(int index, int count, stk_error *err)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    char there[48];

    if (count == 1)
        stki_text(there, sizeof there, "there is only cuda:0");
    else
        stki_text(there, sizeof there, "there are cuda:0 to cuda:%d", count - 1);
    return stki_fail(err, STK_E_DEVICE, "no device 'cuda:%d' here: %s%s%s%s", index, there,
                     visible ? " (CUDA_VISIBLE_DEVICES is '" : "", visible ? visible : "", visible ? "')" : "");
}

/* ---- create a device ---- */

/* The architectures that the kernels were compiled for, in ascending order. Code runs on GPUs of the same major version
 * with at least its minor version; the driver compiles the PTX of the last one for all later GPUs. */
static const int architectures[] = {STKI_CUDA_ARCHITECTURES};
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

static bool has_code_for(int major, int minor)
{
    for (int i = 0; i < ARCHITECTURES; i++)
        if (architectures[i] / 10 == major && architectures[i] % 10 <= minor)
            return true;
    return major * 10 + minor >= architectures[ARCHITECTURES - 1];
}

static stk_status check_architecture(const stki_cuda_device *cuda, const struct cudaDeviceProp *found, stk_error *err)
{
    char known[16 * ARCHITECTURES] = "";

    if (has_code_for(found->major, found->minor))
        return STK_OK;
    for (int i = 0; i < ARCHITECTURES; i++) {
        size_t used = strlen(known);

        stki_text(known + used, (int)(sizeof known - used), "%s%d.%d", i ? ", " : "", architectures[i] / 10,
                  architectures[i] % 10);
    }
    return stki_fail(err, STK_E_DEVICE,
                     "%s: the %.100s has compute capability %d.%d, but stoker's kernels were compiled for %s and "
                     "later: build with %d%d in STOKER_CUDA_ARCHITECTURES",
                     cuda->name, found->name, found->major, found->minor, known, found->major, found->minor);
}

static stk_status examine(stki_cuda_device *cuda, int index, stk_error *err)
{
    static const char doing[] = "querying its properties";
    struct cudaDeviceProp found;
    char bus[32] = "";
    cudaError_t error;
    stk_status status = stki_cuda_enter(cuda, doing, err);

    if (status != STK_OK)
        return status;
    error = stki_cuda->GetDeviceProperties(&found, index);
    error = error ? error : stki_cuda->DeviceGetPCIBusId(bus, (int)sizeof bus, index);
    status = stki_cuda_check(cuda, error, doing, -1, err);
    stki_cuda_leave();
    cuda->numa_node = status != STK_OK ? -1 : stki_numa_node_of_pci(bus);
    return status != STK_OK ? status : check_architecture(cuda, &found, err);
}

static stk_status load_kernels(stki_cuda_device *cuda, int index, stk_error *err)
{
    static const char doing[] = "loading the kernels";
    stk_status status = stki_cuda_enter(cuda, doing, err);

    if (status != STK_OK)
        return status;
    status = stki_cuda_check(cuda, (cudaError_t)stki_cuda_launcher->load(index), doing, -1, err);
    stki_cuda_leave();
    return status;
}

static stk_status make(int index, stki_cuda_device **out, stk_error *err)
{
    stki_cuda_device *cuda;
    CUresult result;
    stk_status status = stki_cuda->load_driver(err);

    if (status != STK_OK)
        return status;
    cuda = stki_zalloc(sizeof *cuda);
    if (!cuda)
        return stki_fail_memory(err, sizeof *cuda, "a cuda device");
    stki_cuda_device_init(cuda, index);
    result = stki_cuda->retain_context(&cuda->context, index);
    if (result)
        status = stki_fail(err, STK_E_DEVICE, "%s: the driver cannot create a context on this GPU: %s", cuda->name,
                           stki_cuda->driver_error_name(result));
    if (status == STK_OK)
        status = examine(cuda, index, err);
    if (status == STK_OK)
        status = load_kernels(cuda, index, err);
    if (status == STK_OK)
        status = stki_cuda_use_pool(cuda, err);
    if (status == STK_OK)
        status = stki_caching_pools_attach(&cuda->device, err);
    if (status == STK_OK)
        status = stki_device_register(&cuda->device, err);
    if (status != STK_OK) {
        stki_caching_pools_detach(&cuda->device);
        stki_free(cuda);
        return status;
    }
    *out = cuda;
    return STK_OK;
}

/* ---- the provider ---- */

/* Parses "cuda" (the first device) or "cuda:N". */
static stk_status read_name(const char *name, int *index, stk_error *err)
{
    const char *digits = name + strlen("cuda");

    *index = 0;
    if (!*digits)
        return STK_OK;
    digits++;
    if (!*digits || strspn(digits, "0123456789") != strlen(digits) || strlen(digits) > 6)
        return stki_fail(err, STK_E_DEVICE, "no device '%s': a cuda device is named cuda, cuda:0, cuda:1, …", name);
    *index = atoi(digits);
    return STK_OK;
}

static stk_status find_locked(int index, stk_device **out, stk_error *err)
{
    int count = 0;
    stk_status status = count_gpus(&count, err);

    if (status == STK_OK && index >= (count < MAX_GPUS ? count : MAX_GPUS))
        status = no_such_gpu(index, count, err);
    if (status == STK_OK && !made[index])
        status = make(index, &made[index], err);
    if (status == STK_OK)
        *out = &made[index]->device;
    return status;
}

static stk_status cuda_find(const char *name, stk_device **out, stk_error *err)
{
    int index;
    stk_status status = read_name(name, &index, err);

    *out = NULL;
    if (status != STK_OK)
        return status;
    stki_lock(&lock);
    status = find_locked(index, out, err);
    stki_unlock(&lock);
    return status;
}

static int cuda_count(stk_error *err)
{
    int count = 0;
    stk_status status;

    stki_lock(&lock);
    status = count_gpus(&count, err);
    stki_unlock(&lock);
    return status != STK_OK ? 0 : count;
}

int stki_cuda_context_active(int index)
{
    int active = 0;

    return stki_cuda->load_driver(NULL) != STK_OK || stki_cuda->context_state(index, &active) ? -1 : active;
}

const stki_device_provider stki_cuda_provider = {.prefix = "cuda", .find = cuda_find, .count = cuda_count};
