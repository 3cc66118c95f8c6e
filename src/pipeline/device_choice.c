/* device_choice.c: see device_choice.h. */
#include "device_choice.h"
#include "error.h"
#include <stdio.h>
#include <string.h>

static stk_status too_few(const stki_ranks *ranks, int count, stk_error *err)
{
    return stki_fail(
        err, STK_E_DEVICE,
        "cuda: %s is %lld, but %d GPUs are visible, cuda:0 to cuda:%d: start one process per GPU, or name the "
        "device",
        ranks->local_rank_variable, (long long)ranks->local_rank, count, count - 1);
}

stk_status stki_find_device(stki_loader_config *config, const char *name, stk_device **out, stk_error *err)
{
    const stki_ranks *ranks = &config->ranks;
    const int count = name && strcmp(name, "cuda") == 0 ? stk_cuda_device_count(NULL) : 0;
    char chosen[32];
    stk_status status;

    *out = NULL;
    if (count < 2 || ranks->local_rank < 0)
        return stk_device_find(name, out, err);
    if (ranks->local_rank >= count)
        return too_few(ranks, count, err);
    snprintf(chosen, sizeof chosen, "cuda:%d", (int)ranks->local_rank);
    status = stk_device_find(chosen, out, err);
    if (status == STK_OK)
        stki_config_fact(config, "device cuda: %s of %d GPUs (%s, %s in the environment)", chosen, count, ranks->source,
                         ranks->local_rank_variable);
    return status;
}
