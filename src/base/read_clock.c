/* read_clock.c: see read_clock.h. */
#include "read_clock.h"
#include <stddef.h>
#include <sys/resource.h>
#include <sys/time.h>

enum { SHORT_NS = 2000, SAMPLED = 16 };

static _Thread_local stki_read_clocks *mine;

void stki_read_clocks_set(stki_read_clocks *clocks)
{
    mine = clocks;
}

static void set_running(enum stki_read_work work, int64_t now)
{
    stki_count_set(&mine->running_since, now);
    atomic_store_explicit(&mine->running, (int)work + 1, memory_order_release);
}

static void set_stopped(void)
{
    atomic_store_explicit(&mine->running, 0, memory_order_relaxed);
}

int64_t stki_read_work_begin(enum stki_read_work work, bool maps)
{
    int64_t now;

    if (!mine)
        return 0;
    mine->paging.watched = false;
    if (maps)
        stki_paging_begin(mine, &mine->paging);
    now = stki_now_ns();
    set_running(work, now);
    return now;
}

void stki_read_work_end(enum stki_read_work work, int64_t began)
{
    if (began == 0)
        return;
    const int64_t ns = stki_now_ns() - began;

    set_stopped();
    stki_count_own(&mine->ns[work], ns - stki_paging_end(mine, &mine->paging, ns));
}

int64_t stki_read_call_begin(void)
{
    int64_t now;

    if (!mine)
        return 0;
    now = mine->skip > 0 ? stki_coarse_ns() : stki_now_ns();
    set_running(STKI_READ_CALL, now);
    if (mine->skip > 0) {
        mine->skip--;
        return 0;
    }
    return now;
}

/* Multiplies the time by `weight`, to account for the calls that were skipped before this one. */
void stki_read_call_end(int64_t began)
{
    if (mine)
        set_stopped();
    if (began == 0)
        return;
    const int64_t ns = stki_now_ns() - began;

    stki_count_own(&mine->ns[STKI_READ_CALL], ns * (mine->weight > 0 ? mine->weight : 1));
    mine->weight = ns < SHORT_NS ? SAMPLED : 1;
    mine->skip = mine->weight - 1;
}

void stki_read_waits(bool waits)
{
    if (mine && waits)
        set_running(STKI_READ_WAIT, stki_now_ns());
    else if (mine)
        set_stopped();
}

void stki_read_unpacked(int64_t bytes)
{
    if (mine)
        stki_count_own(&mine->unpacked_bytes, bytes);
}

void stki_read_wanted(int64_t bytes)
{
    if (mine)
        stki_count_own(&mine->wanted_bytes, bytes);
}

static int64_t time_ns(struct timeval time)
{
    return (int64_t)time.tv_sec * STKI_SECOND + (int64_t)time.tv_usec * 1000;
}

void stki_paging_look(stki_paging *out)
{
    struct rusage usage;

    if (getrusage(RUSAGE_THREAD, &usage) != 0) {
        out->watched = false;
        return;
    }
    /* Blocking on a page that read-ahead is already loading is a minor fault with a voluntary context switch. Nothing
     * else in a conversion blocks, so those switches are also counted as page faults. */
    out->waits = usage.ru_majflt + usage.ru_nvcsw;
    out->cpu_ns = time_ns(usage.ru_utime) + time_ns(usage.ru_stime);
}

int64_t stki_paging_waited(const stki_paging *before, int64_t wall_ns)
{
    stki_paging now = {.watched = true};
    int64_t waited;

    stki_paging_look(&now);
    if (!now.watched || now.waits == before->waits)
        return 0;
    waited = wall_ns - (now.cpu_ns - before->cpu_ns);
    return waited < 0 ? 0 : waited > wall_ns ? wall_ns : waited;
}
