/* descriptor.c: see descriptor.h. */
#include "descriptor.h"
#include "clock.h"
#include "counter.h"
#include "error.h"
#include "read_clock.h"
#include "thread.h"
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/resource.h>

enum { RESERVED = 64, OPTIONAL = 64 };

static _Thread_local const stki_patience *mine;
static stki_counter kept, kept_optional;

void stki_patience_set(const stki_patience *patience)
{
    mine = patience;
}

int stki_descriptor_try(const char *path, int flags)
{
    int fd;

    do {
        fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

static int wait_and_open(const char *path, int flags)
{
    const int64_t deadline = stki_deadline_ns(mine->ns), longest = STKI_SECOND / 20;
    int64_t pause = STKI_SECOND / 1000;
    int fd, error;

    do {
        stki_sleep_ns(pause);
        pause = pause * 2 < longest ? pause * 2 : longest;
        fd = stki_descriptor_try(path, flags);
        error = errno;
    } while (fd < 0 && stki_is_scarce(error) && stki_now_ns() < deadline &&
             !(mine->given_up && mine->given_up(mine->context)));
    errno = error;
    return fd;
}

int stki_descriptor_open(const char *path, int flags)
{
    int fd = stki_descriptor_try(path, flags);

    if (fd >= 0 || !mine || !stki_is_scarce(errno))
        return fd;
    stki_read_waits(true);
    fd = wait_and_open(path, flags);
    stki_read_waits(false);
    return fd;
}

static int64_t most_kept(void)
{
    struct rlimit limit;
    int64_t all;

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > INT32_MAX)
        return INT64_MAX;
    all = (int64_t)limit.rlim_cur;
    if (all < 2 * RESERVED)
        return all / 4;
    return all / 4 > RESERVED ? all - all / 4 : all - RESERVED;
}

static bool take(stki_counter *count, int64_t most)
{
    if (atomic_fetch_add_explicit(count, 1, memory_order_relaxed) < most)
        return true;
    stki_count(count, -1);
    return false;
}

bool stki_descriptor_keep(bool optional)
{
    const int64_t most = most_kept();

    if (optional && !take(&kept_optional, most / 8 < OPTIONAL ? most / 8 : OPTIONAL))
        return false;
    if (take(&kept, most))
        return true;
    stki_count(&kept_optional, optional ? -1 : 0);
    return false;
}

void stki_descriptor_kept_no_more(bool optional)
{
    stki_count(&kept, -1);
    stki_count(&kept_optional, optional ? -1 : 0);
}
