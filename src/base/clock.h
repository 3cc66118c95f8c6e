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

/* A coarse reading of the same clock, for reports of slow operations: it takes only 5 ns but lags by a few
 * milliseconds. */
static inline int64_t stki_coarse_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return t.tv_sec * STKI_SECOND + t.tv_nsec;
}

/* CPU time of the calling thread. */
static inline int64_t stki_thread_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * STKI_SECOND + t.tv_nsec;
}

/* Converts a timeout in ns to a deadline; negative means no limit (INT64_MAX). */
static inline int64_t stki_deadline_ns(int64_t timeout_ns)
{
    int64_t now = stki_now_ns();
    return timeout_ns < 0 || timeout_ns > INT64_MAX - now ? INT64_MAX : now + timeout_ns;
}

/* Converts a deadline to the remaining ns: 0 after the deadline; -1 means no limit. */
static inline int64_t stki_left_ns(int64_t deadline_ns)
{
    int64_t left = deadline_ns == INT64_MAX ? -1 : deadline_ns - stki_now_ns();
    return left < 0 && deadline_ns != INT64_MAX ? 0 : left;
}

#endif
