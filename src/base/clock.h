/* clock.h: monotonic nanoseconds. */
#ifndef STKI_CLOCK_H
#define STKI_CLOCK_H

#include <stdint.h>
#include <time.h>

#define STKI_SECOND INT64_C(1000000000)

static inline int64_t stki_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * STKI_SECOND + t.tv_nsec;
}

/* The same clock, read in 5 ns and a few milliseconds behind: for reports of what takes long. */
static inline int64_t stki_coarse_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return t.tv_sec * STKI_SECOND + t.tv_nsec;
}

/* Processor time of the calling thread. */
static inline int64_t stki_thread_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * STKI_SECOND + t.tv_nsec;
}

/* A timeout in ns from now as a point in time; negative means for ever. */
static inline int64_t stki_deadline_ns(int64_t timeout_ns)
{
    int64_t now = stki_now_ns();
    return timeout_ns < 0 || timeout_ns > INT64_MAX - now ? INT64_MAX : now + timeout_ns;
}

#endif
