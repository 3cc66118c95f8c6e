/* thread.c: see thread.h. A thread sets `ended` under its lock before it exits, and join waits for that flag before it
 * calls pthread_join. A join can therefore time out without the non-portable pthread_timedjoin_np. */
#include "thread.h"
#include "allocate.h"
#include "cgroup.h"
#include "clock.h"
#include "counter.h"
#include "error.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void stki_mutex_init(stki_mutex *mutex)
{
    pthread_mutexattr_t kind;

    pthread_mutexattr_init(&kind);
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP /* glibc: spins for about a microsecond before sleeping */
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
    pthread_mutex_init(&mutex->native, &kind);
    pthread_mutexattr_destroy(&kind);
}

void stki_mutex_fini(stki_mutex *mutex)
{
    pthread_mutex_destroy(&mutex->native);
}

void stki_lock(stki_mutex *mutex)
{
    pthread_mutex_lock(&mutex->native);
}

void stki_unlock(stki_mutex *mutex)
{
    pthread_mutex_unlock(&mutex->native);
}

bool stki_try_lock(stki_mutex *mutex)
{
    return pthread_mutex_trylock(&mutex->native) == 0;
}

void stki_cond_init(stki_cond *cond)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&cond->native, &attributes);
    pthread_condattr_destroy(&attributes);
}

void stki_cond_fini(stki_cond *cond)
{
    pthread_cond_destroy(&cond->native);
}

void stki_wake_one(stki_cond *cond)
{
    pthread_cond_signal(&cond->native);
}

void stki_wake_all(stki_cond *cond)
{
    pthread_cond_broadcast(&cond->native);
}

bool stki_wait(stki_cond *cond, stki_mutex *mutex, int64_t deadline_ns)
{
    struct timespec at;

    if (deadline_ns == INT64_MAX) {
        pthread_cond_wait(&cond->native, &mutex->native);
        return true;
    }
    if (deadline_ns < 0) /* with EINVAL the wait would return immediately, and the caller's loop would spin */
        deadline_ns = 0;
    at.tv_sec = deadline_ns / STKI_SECOND;
    at.tv_nsec = deadline_ns % STKI_SECOND;
    return pthread_cond_timedwait(&cond->native, &mutex->native, &at) != ETIMEDOUT;
}

void stki_sleep_ns(int64_t ns)
{
    struct timespec t = {.tv_sec = ns / STKI_SECOND, .tv_nsec = ns % STKI_SECOND};

    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
        ;
}

struct stki_thread {
    pthread_t native;
    void (*run)(void *context);
    void *context;
    char name[16];
    stki_mutex lock; /* guards the two flags */
    stki_cond ended_cond;
    bool ended, abandoned;
};

static void thread_free(stki_thread *thread)
{
    stki_cond_fini(&thread->ended_cond);
    stki_mutex_fini(&thread->lock);
    stki_free(thread);
}

static void *thread_main(void *argument)
{
    stki_thread *thread = argument;
    bool abandoned;

    pthread_setname_np(pthread_self(), thread->name);
    thread->run(thread->context);
    stki_lock(&thread->lock);
    thread->ended = true;
    abandoned = thread->abandoned;
    stki_wake_all(&thread->ended_cond);
    stki_unlock(&thread->lock);
    if (abandoned)
        thread_free(thread);
    return NULL;
}

/* The signals that the library's threads block: those sent to the process, which the program's own threads handle.
 * Signals raised by a thread's own instructions must not be blocked: a blocked SIGBUS (a mapped file was truncated)
 * terminates the process even if there is a handler. */
static void asynchronous_signals(sigset_t *set)
{
    static const int synchronous[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    size_t i;

    sigfillset(set);
    for (i = 0; i < sizeof synchronous / sizeof synchronous[0]; i++)
        sigdelset(set, synchronous[i]);
}

stk_status stki_thread_start(stki_thread **out, const char *name, void (*run)(void *context), void *context,
                             stk_error *err)
{
    stki_thread *thread = stki_zalloc(sizeof *thread);
    sigset_t blocked, before;
    int failed;

    if (!thread)
        return stki_fail_memory(err, sizeof *thread, "a thread");
    thread->run = run;
    thread->context = context;
    snprintf(thread->name, sizeof thread->name, "%s", name);
    stki_mutex_init(&thread->lock);
    stki_cond_init(&thread->ended_cond);
    asynchronous_signals(&blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    failed = pthread_create(&thread->native, NULL, thread_main, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        thread_free(thread);
        return stki_fail(err, STK_E_MEMORY, "cannot start thread %s: %s%s", name, strerror(failed),
                         failed == EAGAIN ? ": use fewer workers, or raise the limit on threads (ulimit -u, pids.max)"
                                          : "");
    }
    *out = thread;
    return STK_OK;
}

bool stki_thread_join(stki_thread *thread, int64_t deadline_ns)
{
    bool ended;

    stki_lock(&thread->lock);
    while (!thread->ended && stki_wait(&thread->ended_cond, &thread->lock, deadline_ns))
        ;
    ended = thread->ended;
    stki_unlock(&thread->lock);
    if (!ended)
        return false;
    pthread_join(thread->native, NULL);
    thread_free(thread);
    return true;
}

void stki_thread_abandon(stki_thread *thread)
{
    bool ended;

    stki_lock(&thread->lock);
    ended = thread->ended;
    thread->abandoned = true;
    if (!ended)
        pthread_detach(thread->native);
    stki_unlock(&thread->lock);
    if (ended) { /* the thread has read `abandoned` as false and does not free itself */
        pthread_join(thread->native, NULL);
        thread_free(thread);
    }
}

/* ---- forks ---- */

static stki_counter fork_generation;
static stki_mutex holds_lock = {PTHREAD_MUTEX_INITIALIZER};
static stki_fork_hold *holds; /* guarded by holds_lock */

static void before_fork(void)
{
    stki_lock(&holds_lock);
    for (const stki_fork_hold *hold = holds; hold; hold = hold->next)
        stki_lock(hold->lock);
}

static void after_fork(void)
{
    for (const stki_fork_hold *hold = holds; hold; hold = hold->next)
        stki_unlock(hold->lock);
    stki_unlock(&holds_lock);
}

static void after_fork_in_child(void)
{
    after_fork();
    stki_count(&fork_generation, 1);
}

void stki_fork_hold_add(stki_fork_hold *hold, stki_mutex *lock)
{
    stki_lock(&holds_lock);
    *hold = (stki_fork_hold){.next = holds, .lock = lock};
    holds = hold;
    stki_unlock(&holds_lock);
}

void stki_fork_hold_remove(stki_fork_hold *hold)
{
    stki_fork_hold **at = &holds;

    stki_lock(&holds_lock);
    while (*at != hold)
        at = &(*at)->next;
    *at = hold->next;
    stki_unlock(&holds_lock);
}

int64_t stki_fork_generation(void)
{
    return stki_counted(&fork_generation);
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

int stki_cpu_count(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    double quota = stki_cgroup_cpu_quota(STKI_CGROUP_MEMBERSHIP, STKI_CGROUP_MOUNT);

    if (quota > 0 && quota < count)
        count = (int)quota + (quota > (int)quota);
    return count < 1 ? 1 : count;
}
