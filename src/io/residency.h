/* residency.h: decides whether to advise the kernel to read samples ahead. Checking the residency of every sample would
 * cost as much as gathering them, so one sample per batch is checked. A resident sample suppresses further checks for
 * STKI_WARM_FOR_NS. If the data is larger than memory, part of it is always resident, so after a missing sample, advice
 * is given for STKI_COLD_FOR_NS even if other samples are resident. */
#ifndef STKI_RESIDENCY_H
#define STKI_RESIDENCY_H

#include "counter.h"
#include <stdbool.h>

/* Initialize with zeros. Any thread may use it. */
typedef struct stki_residency {
    stki_counter warm_until_ns; /* no checks before this time; 0: the last check led to advice, or there was none */
    stki_counter cold_until_ns; /* advice is given for all samples until this time */
} stki_residency;

/* All times are those of stki_now_ns or stki_coarse_ns. During STKI_COLD_FOR_NS, every batch is checked and each
 * missing sample restarts the period, so it can be short. */
#define STKI_WARM_FOR_NS INT64_C(2000000)
#define STKI_COLD_FOR_NS INT64_C(100000000)

/* Whether to check a sample. */
static inline bool stki_residency_due(const stki_residency *residency, int64_t now)
{
    return now >= stki_counted(&residency->warm_until_ns);
}

/* Records the result of a check. Returns whether to give advice. */
static inline bool stki_residency_found(stki_residency *residency, bool resident, int64_t now)
{
    const bool cold = !resident || now < stki_counted(&residency->cold_until_ns);

    if (!resident)
        stki_count_set(&residency->cold_until_ns, now + STKI_COLD_FOR_NS);
    stki_count_set(&residency->warm_until_ns, cold ? 0 : now + STKI_WARM_FOR_NS);
    return cold;
}

#endif
