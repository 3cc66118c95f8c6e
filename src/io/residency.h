/* residency.h: whether samples should be announced to the kernel ahead of use. Looking at every sample would cost as
 * much as gathering it, so one is looked at for a batch. If it is in memory, that holds for a while; but of data larger
 * than memory a part is always there, so a sample that is missing outweighs those that are found. */
#ifndef STKI_RESIDENCY_H
#define STKI_RESIDENCY_H

#include "counter.h"
#include <stdbool.h>

/* Starts zeroed; any thread may use it. */
typedef struct stki_residency {
    stki_counter warm_until_ns; /* nothing needs to be announced until then; 0: announced, or not looked at */
    stki_counter cold_until_ns; /* everything is announced until then */
} stki_residency;

/* Times of stki_now_ns or stki_coarse_ns. The time for missing samples can be short, because every batch is
 * checked meanwhile, and each missing sample restarts it. */
#define STKI_WARM_FOR_NS INT64_C(2000000)
#define STKI_COLD_FOR_NS INT64_C(100000000)

/* Whether to look at a sample. */
static inline bool stki_residency_due(const stki_residency *residency, int64_t now)
{
    return now >= stki_counted(&residency->warm_until_ns);
}

/* Records a look at a sample; returns whether samples should be announced. */
static inline bool stki_residency_found(stki_residency *residency, bool resident, int64_t now)
{
    const bool cold = !resident || now < stki_counted(&residency->cold_until_ns);

    if (!resident)
        stki_count_set(&residency->cold_until_ns, now + STKI_COLD_FOR_NS);
    stki_count_set(&residency->warm_until_ns, cold ? 0 : now + STKI_WARM_FOR_NS);
    return cold;
}

#endif
