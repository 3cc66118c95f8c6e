/* counter.h: atomic counters for statistics and reference counts. Only stki_unref synchronizes other data. */
#ifndef STKI_COUNTER_H
#define STKI_COUNTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic int64_t stki_counter;

static inline void stki_count(stki_counter *counter, int64_t by)
{
    atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

static inline int64_t stki_counted(const stki_counter *counter)
{
    return atomic_load_explicit((stki_counter *)(uintptr_t)counter, memory_order_relaxed);
}

static inline void stki_count_set(stki_counter *counter, int64_t value)
{
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

/* Like stki_count, for a counter that only one thread writes. A locked instruction would first wait for all earlier
 * stores, and stores to a batch that another processor has cached are slow. */
static inline void stki_count_own(stki_counter *counter, int64_t by)
{
    stki_count_set(counter, stki_counted(counter) + by);
}

static inline void stki_count_max(stki_counter *counter, int64_t value)
{
    int64_t seen = atomic_load_explicit(counter, memory_order_relaxed);
    while (seen < value &&
           !atomic_compare_exchange_weak_explicit(counter, &seen, value, memory_order_relaxed, memory_order_relaxed))
        ;
}

/* Reference counts. Only a thread that holds a reference may take another one. The last release synchronizes with all
 * earlier ones, so that the thread that destroys the object sees all writes of the others. */
static inline void stki_ref(stki_counter *refs)
{
    atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
}

static inline bool stki_unref(stki_counter *refs) /* returns true for the last reference */
{
    return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

#endif
