/* cuda_absent.c: the provider of cuda devices in a build without CUDA, which only returns an error. STKI_CUDA_MISSING
 * is the reason. */
#include "cuda_provider.h"
#include "error.h"

static stk_status absent(stk_error *err)
{
    return stki_fail(err, STK_E_DEVICE,
                     "cuda: stoker was built without CUDA (%s); build it with -DSTOKER_CUDA=ON, or use the host "
                     "device",
                     STKI_CUDA_MISSING);
}

static stk_status absent_find(const char *name, stk_device **out, stk_error *err)
{
    (void)name;
    *out = NULL;
    return absent(err);
}

static int absent_count(stk_error *err)
{
    (void)absent(err);
    return 0;
}

int stki_cuda_context_active(int index)
{
    (void)index;
    return -1;
}

const stki_device_provider stki_cuda_provider = {.prefix = "cuda", .find = absent_find, .count = absent_count};
