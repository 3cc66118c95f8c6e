/* thread.h: threads, locks and conditions with timeouts, and the fork generation. Waits take a point in time of
 * stki_now_ns (INT64_MAX: for ever). */
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
    pthread_cond_t native; /* on CLOCK_MONOTONIC */
} stki_cond;

void stki_mutex_init(stki_mutex *mutex);
void stki_mutex_fini(stki_mutex *mutex);
void stki_lock(stki_mutex *mutex);
void stki_unlock(stki_mutex *mutex);
bool stki_try_lock(stki_mutex *mutex); /* false: another thread has it */

void stki_cond_init(stki_cond *cond);
void stki_cond_fini(stki_cond *cond);
void stki_wake_one(stki_cond *cond);
void stki_wake_all(stki_cond *cond);
/* Returns false when the deadline has passed. Wakes up for no reason now and then: test the condition in a loop. */
bool stki_wait(stki_cond *cond, stki_mutex *mutex, int64_t deadline_ns);

typedef struct stki_thread stki_thread;

/* Starts `run(context)` with the signals of others blocked (not those that its own instructions raise, such as SIGBUS)
 * and `name` (15 bytes are kept) shown by the system. */
stk_status stki_thread_start(stki_thread **out, const char *name, void (*run)(void *context), void *context,
                             stk_error *err);
/* Waits for the end and frees the handle. False at the deadline: the thread still runs and the handle is still good. */
bool stki_thread_join(stki_thread *thread, int64_t deadline_ns);
/* Gives up: the thread runs on by itself and the handle frees itself at its end. */
void stki_thread_abandon(stki_thread *thread);

void stki_sleep_ns(int64_t ns);
/* From now on the calling thread's sleeps and waits end within a microsecond or so of their time; the system lets them
 * run over by 50 otherwise. For threads that look again and again. */
void stki_thread_wake_promptly(void);

/* A lock that a fork takes before and releases behind it, in parent and child, so that the child finds what it guards
 * whole. Locks added later are taken earlier: add an inner lock before the locks that are held around it. */
typedef struct stki_fork_hold {
    struct stki_fork_hold *next;
    stki_mutex *lock;
} stki_fork_hold;
void stki_fork_hold_add(stki_fork_hold *hold, stki_mutex *lock);
void stki_fork_hold_remove(stki_fork_hold *hold);

/* Grows by one in every fork of the process; a handle that remembers an older value belongs to a parent. */
int64_t stki_fork_generation(void);

/* Processors this process may use: affinity, cut down to the cgroup's CPU quota (rounded up). At least 1. */
int stki_cpu_count(void);

/* Runs `make` in the first of all calls with that flag; the others wait for it. */
typedef pthread_once_t stki_once;
#define STKI_ONCE PTHREAD_ONCE_INIT
static inline void stki_run_once(stki_once *once, void (*make)(void))
{
    (void)pthread_once(once, make);
}

#endif
