/* thread.h: threads, mutexes and condition variables with timeouts, and the fork generation. Waits take a deadline on
 * the clock of stki_now_ns (INT64_MAX: no limit). */
#ifndef STKI_THREAD_H
#define STKI_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_mutex {
    pthread_mutex_t native;
} stki_mutex;

typedef struct stki_cond {
    pthread_cond_t native; /* uses CLOCK_MONOTONIC */
} stki_cond;

void stki_mutex_init(stki_mutex *mutex);
void stki_mutex_fini(stki_mutex *mutex);
void stki_lock(stki_mutex *mutex);
void stki_unlock(stki_mutex *mutex);
bool stki_try_lock(stki_mutex *mutex); /* false: held by another thread */

void stki_cond_init(stki_cond *cond);
void stki_cond_fini(stki_cond *cond);
void stki_wake_one(stki_cond *cond);
void stki_wake_all(stki_cond *cond);
/* Returns false if the deadline has passed. Spurious wakeups happen: test the condition in a loop. */
bool stki_wait(stki_cond *cond, stki_mutex *mutex, int64_t deadline_ns);

typedef struct stki_thread stki_thread;

/* Starts a thread that runs `run(context)`. Signals are blocked in it, except those raised by its own instructions
 * (such as SIGBUS). `name` is shown by the system, truncated to 15 bytes. */
stk_status stki_thread_start(stki_thread **out, const char *name, void (*run)(void *context), void *context,
                             stk_error *err);
/* Waits for the thread to end and frees the handle. False at the deadline: the thread is still running and the handle
 * stays valid. */
bool stki_thread_join(stki_thread *thread, int64_t deadline_ns);
/* Detaches the thread; the handle is freed when it ends. */
void stki_thread_abandon(stki_thread *thread);

void stki_sleep_ns(int64_t ns);

/* A lock that is acquired before a fork and released after it, in parent and child, so that the data it guards is
 * consistent in the child. Locks are acquired in the reverse order of their registration: add inner locks before the
 * locks that enclose them. */
typedef struct stki_fork_hold {
    struct stki_fork_hold *next;
    stki_mutex *lock;
} stki_fork_hold;
void stki_fork_hold_add(stki_fork_hold *hold, stki_mutex *lock);
void stki_fork_hold_remove(stki_fork_hold *hold);

/* Incremented in the child by every fork; a handle with an older value belongs to a parent process. */
int64_t stki_fork_generation(void);

/* Number of processors that this process may use: affinity, limited by the cgroup's CPU quota (rounded up). At least 1.
 */
int stki_cpu_count(void);

/* The first call with a given flag runs `make`; concurrent calls wait for it. */
typedef pthread_once_t stki_once;
#define STKI_ONCE PTHREAD_ONCE_INIT
static inline void stki_run_once(stki_once *once, void (*make)(void))
{
    (void)pthread_once(once, make);
}

#endif
