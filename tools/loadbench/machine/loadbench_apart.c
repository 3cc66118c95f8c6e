/* loadbench_apart.c: runs work in a forked child and gets the result through a pipe. The child is killed when its
 * parent exits, writes no core dump, and is the first process that the kernel kills when memory runs out. */
#include "loadbench_apart.h"
#include "error.h"
#include "loadbench_stop.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    POLL_MS = 100
}; /* polling interval, because a signal may arrive just before the call that it should interrupt */

static bool write_all(int fd, const void *bytes, int64_t count)
{
    for (int64_t at = 0; at < count;) {
        const ssize_t wrote = write(fd, (const char *)bytes + at, (size_t)(count - at));
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        at += wrote;
    }
    return true;
}

_Noreturn static void run_child(lb_apart_work *work, const void *ask, void *out, int64_t out_bytes, int to,
                                pid_t parent)
{
    const struct rlimit no_core = {0, 0};
    const int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    stk_error err = {.status = STK_OK};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGBUS, SIG_DFL);
    if (score >= 0) {
        (void)write_all(score, "1000", 4);
        close(score);
    }
    err.status = work(ask, out, &err);
    _exit(write_all(to, &err, sizeof err) && write_all(to, out, out_bytes) ? 0 : 1);
}

/* Returns false if the child ended before it had written everything. */
static bool read_all(int fd, pid_t child, bool *stopped, void *bytes, int64_t count)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    for (int64_t at = 0; at < count;) {
        if (lb_stop_asked && !*stopped) /* forwarded only once, because a second signal would kill the child */
            *stopped = kill(child, SIGTERM) == 0;
        if (poll(&ready, 1, POLL_MS) <= 0)
            continue;
        const ssize_t got = read(fd, (char *)bytes + at, (size_t)(count - at));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
    }
    return true;
}

static stk_status fail_ended(int how, stk_error *err)
{
    const int number = WIFSIGNALED(how) ? WTERMSIG(how) : 0;

    if (number == 0)
        return stki_fail(err, STK_E_RESOURCE, "the measuring process exited before it had a result");
    return stki_fail(err, STK_E_RESOURCE, "the measuring process was killed by signal %d (%s)%s", number,
                     strsignal(number),
                     number == SIGKILL  ? ": the system probably ran out of memory"
                     : number == SIGBUS ? ": a data file was truncated during the run"
                                        : "");
}

stk_status lb_apart(lb_apart_work *work, const void *ask, void *out, int64_t out_bytes, stk_error *err)
{
    const pid_t parent = getpid();
    stk_error told;
    int ends[2], how = 0;
    bool stopped = false;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return stki_fail_errno(err, errno, NULL, "creating a pipe to the measuring process");
    const pid_t child = fork();
    if (child == 0)
        run_child(work, ask, out, out_bytes, ends[1], parent);
    const int failed = errno;
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return stki_fail_errno(err, failed, NULL, "starting the measuring process");
    }
    const bool whole =
        read_all(ends[0], child, &stopped, &told, sizeof told) && read_all(ends[0], child, &stopped, out, out_bytes);
    close(ends[0]);
    while (waitpid(child, &how, 0) < 0 && errno == EINTR)
        ;
    if (!whole)
        return fail_ended(how, err);
    if (told.status != STK_OK && err)
        *err = told;
    return told.status;
}

static stk_status measure_limit(const void *ask, void *out, stk_error *err)
{
    return lb_limit_measure(ask, out, err);
}

stk_status lb_apart_limit(const struct lb_limit_ask *ask, struct lb_limit *out, stk_error *err)
{
    return lb_apart(measure_limit, ask, out, sizeof *out, err);
}
