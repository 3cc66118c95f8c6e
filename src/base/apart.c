/* apart.c: see apart.h. Parent and child share a struct through a memfd, whose descriptor is passed to the child in an
 * environment variable. The time limit applies to the thread's CPU time (timer_create), so time spent waiting for a
 * slow disk does not count. The timer's signal terminates the process.
 *
 * A call may take a few seconds plus a time proportional to its amount of data. The few seconds are granted only once
 * for all calls together, because a damaged file can make each of many calls slow. */
#include "apart.h"
#include "clock.h"
#include "error.h"
#include "thread.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SECONDS = 4, /* seconds allowed for each call and, once, for all calls together; both limits are extended by: */
    NS_PER_CALL = 100000, /* ns for each call */
    NS_PER_BYTE = 125,    /* ns for each byte that is decompressed or converted: 8 MB/s */
    TIMEOUT_SIGNAL = SIGVTALRM
};

static const char variable[] = "STOKER_APART";

struct notes {
    bool trial;        /* the child runs a trial (stki_apart_try) */
    atomic_int inside; /* number of the child's threads that are inside the library */
    atomic_bool done;  /* the child of a trial has finished its task */
    int64_t seconds;   /* the limit for the last call, or for all calls if that is lower */
    char path[1024], name[1024], doing[64];
};

static struct {
    char **argv;
    stki_apart_report *report;
    void *context;
    struct notes *notes; /* in the child; NULL: this is not the child */
    bool is_trial;       /* in the child: it exits as soon as the plan has been computed */
    stki_mutex lock;     /* held by the thread that waits for the child */
} apart = {.lock = {PTHREAD_MUTEX_INITIALIZER}};

/* Needs no lock, because only one thread at a time is inside a library. */
static struct {
    timer_t timer;
    bool timed;
    int64_t since;      /* the thread's CPU time up to which the budget has been charged */
    int64_t used, left; /* ns that all calls together have used, and may still use */
} budget = {.left = SECONDS * STKI_SECOND};

/* ---- the child ---- */

/* NULL: the variable is not valid; the process then runs without isolation. */
static struct notes *find_notes(void)
{
    struct stat about;
    struct notes *notes = MAP_FAILED;
    int fd = -1, parent = 0;

    if (sscanf(getenv(variable), "%d:%d", &fd, &parent) != 2)
        fd = -1;
    if (!fstat(fd, &about) && about.st_size == (off_t)sizeof *notes) {
        notes = mmap(NULL, sizeof *notes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        (void)close(fd);
    }
    (void)unsetenv(variable);
    if (notes == MAP_FAILED)
        return NULL;
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM, 0UL, 0UL, 0UL); /* exit with the parent, which reports the result */
    if (getppid() != parent)                               /* the parent exited before prctl */
        _exit(128 + SIGTERM);
    return notes;
}

static void charge_budget(void)
{
    const int64_t now = stki_thread_cpu_ns();

    budget.used += now - budget.since;
    budget.left -= now - budget.since;
    budget.since = now;
}

/* Extends the budget by the time that an operation on `bytes` bytes should need, and restarts the timer. */
static void extend_budget(int64_t bytes)
{
    const int64_t most = INT64_MAX / NS_PER_BYTE / 4;
    const int64_t needed = NS_PER_CALL + (bytes < most ? bytes : most) * NS_PER_BYTE;
    int64_t ns = SECONDS * STKI_SECOND + needed;
    struct itimerspec end = {0};

    if (budget.left < INT64_MAX / 2)
        budget.left += needed;
    apart.notes->seconds = (ns < budget.left ? ns : budget.used + budget.left) / STKI_SECOND;
    ns = ns < budget.left ? ns : budget.left;
    ns = ns > 0 ? ns : 1; /* 0 would disarm the timer */
    end.it_value.tv_sec = ns / STKI_SECOND;
    end.it_value.tv_nsec = ns % STKI_SECOND;
    if (budget.timed)
        (void)timer_settime(budget.timer, 0, &end, NULL);
}

void stki_apart_enter(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = TIMEOUT_SIGNAL};

    if (!apart.notes)
        return;
    atomic_fetch_add(&apart.notes->inside, 1);
    budget.timed = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &budget.timer) == 0;
    budget.since = stki_thread_cpu_ns();
    extend_budget(0);
}

void stki_apart_leave(void)
{
    if (!apart.notes)
        return;
    atomic_fetch_sub(&apart.notes->inside, 1);
    if (budget.timed)
        (void)timer_delete(budget.timer);
    budget.timed = false;
    charge_budget();
}

void stki_apart_note(const char *path, const char *name, const char *doing, int64_t bytes)
{
    if (!apart.notes)
        return;
    stki_text(apart.notes->path, sizeof apart.notes->path, "%s", path);
    stki_text(apart.notes->name, sizeof apart.notes->name, "%s", name ? name : "");
    stki_text(apart.notes->doing, sizeof apart.notes->doing, "%s", doing);
    charge_budget();
    extend_budget(bytes);
}

/* ---- the parent ---- */

void stki_apart_begin(char **argv, stki_apart_report *report, void *context)
{
    if (getenv(variable)) {
        apart.notes = find_notes();
        apart.is_trial = apart.notes && apart.notes->trial;
        return;
    }
    apart.argv = argv;
    apart.report = report;
    apart.context = context;
}

/* The environment of this process plus one variable. The caller frees the array. */
static char **environment_with(char *one)
{
    int64_t count = 0;
    char **all;

    while (environ[count])
        count++;
    all = calloc((size_t)count + 2, sizeof *all);
    if (all) {
        memcpy(all, environ, (size_t)count * sizeof *all);
        all[count] = one;
    }
    return all;
}

/* Sets the descriptors, the process group and the signal mask of the child. */
static int set_up(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes, const int *fds, int count,
                  bool quiet)
{
    short flags = POSIX_SPAWN_SETSIGMASK;
    sigset_t none;
    int error = 0;

    for (int i = 0; i < count && !error; i++)
        error = posix_spawn_file_actions_adddup2(actions, fds[i], fds[i]); /* clears FD_CLOEXEC in the child */
    for (int fd = 0; fd < 3 && quiet && !error; fd++)
        error = posix_spawn_file_actions_addopen(actions, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
    if (quiet)
        flags |= POSIX_SPAWN_SETPGROUP; /* Ctrl-C is sent to this process only, which then terminates the child */
    sigemptyset(&none);                 /* regardless of this thread's signal mask */
    if (!error)
        error = posix_spawnattr_setsigmask(attributes, &none);
    return error ? error : posix_spawnattr_setflags(attributes, flags);
}

/* Starts the child. `fds`: the descriptors that it inherits, the one for the notes first. Returns 0 or an errno
 * value. */
static int start(const char *program, char *const *argv, const int *fds, int count, bool quiet, pid_t *pid)
{
    char assignment[32];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char **environment;
    int error = posix_spawn_file_actions_init(&actions);

    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    stki_text(assignment, sizeof assignment, "%s=%d:%d", variable, fds[0], (int)getpid());
    environment = environment_with(assignment);
    error = environment ? set_up(&actions, &attributes, fds, count, quiet) : ENOMEM;
    if (!error)
        error = posix_spawn(pid, program, &actions, &attributes, argv, environment);
    free(environment);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Whether the signal is a request to stop, sent by a user or another program, so that the file is not to blame. */
static bool is_request_to_stop(int signal_number)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (signal_number == numbers[i])
            return true;
    return false;
}

/* Fails with the reason why the child was terminated. */
static stk_status describe_end(const struct notes *notes, const char *path, const char *library, int signal_number,
                               stk_error *err)
{
    const stki_place place = {notes->path[0] ? notes->path : path, -1, -1, NULL, NULL};
    const char *between = notes->name[0] ? ": " : "", *doing = notes->doing[0] ? notes->doing : "opening it";

    if (signal_number == SIGKILL || is_request_to_stop(signal_number)) /* does not mean that the file is damaged */
        return stki_fail_at(err, STK_E_RESOURCE, place, "the process that was reading the file was killed");
    if (atomic_load(&notes->inside) == 0)
        return stki_fail_at(err, STK_E_RESOURCE, place,
                            "internal error: stoker crashed (%s) while reading the file, outside of %s; please report "
                            "this",
                            strsignal(signal_number), library);
    if (signal_number == TIMEOUT_SIGNAL)
        return stki_fail_at(err, STK_E_CORRUPT, place,
                            "%.300s%s%s did not finish within %" PRId64 " s of CPU time while %s: the file is damaged",
                            notes->name, between, library, notes->seconds, doing);
    return stki_fail_at(err, STK_E_CORRUPT, place, "%.300s%s%s crashed (%s) while %s: the file is damaged", notes->name,
                        between, library, strsignal(signal_number), doing);
}

/* Called after a signal has terminated the child. Returns the exit status, or does not return if it raises the same
 * signal. */
static int report_signal(const struct notes *notes, const char *path, const char *library, int signal_number)
{
    stk_error err;

    if (is_request_to_stop(signal_number)) {
        (void)signal(signal_number, SIG_DFL);
        (void)raise(signal_number);
        return 128 +
               signal_number; /* the signal is blocked in this thread: return the status that a shell would report */
    }
    (void)describe_end(notes, path, library, signal_number, &err);
    return apart.report(apart.context, &err);
}

/* Creates a memory file whose descriptor is not 0, 1 or 2, even if this process has closed those, because the child
 * reopens them. Returns 0 or an errno value. */
static int make_memory_file(const char *name, int *fd)
{
    const int low = memfd_create(name, MFD_CLOEXEC);
    int error;

    *fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, 3);
    error = *fd < 0 ? errno : 0;
    if (low >= 0)
        (void)close(low);
    return error;
}

/* Creates the notes, shared with the child through *fd. Returns 0 or an errno value. */
static int make_notes(struct notes **notes, int *fd)
{
    const int error = make_memory_file("stoker", fd);

    if (error)
        return error;
    if (ftruncate(*fd, sizeof **notes))
        return errno;
    *notes = mmap(NULL, sizeof **notes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    return *notes == MAP_FAILED ? errno : 0;
}

static int run_apart(const char *path, const char *library)
{
    struct notes *notes;
    stk_error err;
    pid_t pid = -1;
    int fd, state = 0, error = make_notes(&notes, &fd);

    if (!error)
        error = start("/proc/self/exe", apart.argv, &fd, 1, false, &pid);
    if (error) {
        (void)stki_fail_errno(&err, error, path, "cannot start the process that reads this file");
        return apart.report(apart.context, &err);
    }
    while (waitpid(pid, &state, 0) < 0 && errno == EINTR)
        ;
    return WIFSIGNALED(state) ? report_signal(notes, path, library, WTERMSIG(state)) : WEXITSTATUS(state);
}

/* ---- trials ---- */

static _Thread_local stki_apart_trial *trial;

void stki_apart_try(stki_apart_trial *one)
{
    trial = one;
}

void stki_apart_end_trial(void)
{
    if (apart.is_trial) {
        atomic_store(&apart.notes->done, true);
        _exit(0);
    }
}

/* Whether the path is a program other than this one. */
static bool is_other_program(const char *path)
{
    struct stat a, b;

    return !stat(path, &a) && S_ISREG(a.st_mode) && !access(path, X_OK) &&
           (stat("/proc/self/exe", &b) != 0 || a.st_dev != b.st_dev || a.st_ino != b.st_ino);
}

/* Finds the `stoker` program that belongs to the library: in the library's folder (builds), below it (the Python
 * package), or in the usual folders of an installation. */
static bool find_program(char *out, size_t size)
{
    static const char *const places[] = {"stoker", "bin/stoker", "../bin/stoker", "../../bin/stoker"};
    const char *named = getenv("STOKER_HELPER");
    char library[PATH_MAX];
    Dl_info about;

    if (named && named[0])
        return (size_t)snprintf(out, size, "%s", named) < size;
    if (!dladdr(places, &about) || !about.dli_fname || !realpath(about.dli_fname, library))
        return false;
    *(strrchr(library, '/') + 1) = '\0';
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if ((size_t)snprintf(out, size, "%s%s", library, places[i]) < size && is_other_program(out))
            return true;
    return false;
}

/* Waits for the child. False: the job was cancelled and the child killed. */
static bool wait_for(const stki_apart_trial *t, pid_t pid, int *state)
{
    const int handle = (int)syscall(SYS_pidfd_open, pid, 0U);
    struct pollfd ends = {.fd = handle, .events = POLLIN};
    bool cancelled = false;
    pid_t ended;

    while ((ended = waitpid(pid, state, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        if (t->wait)
            t->wait(t->context);
        if (!cancelled && t->cancelled && t->cancelled(t->context))
            cancelled = kill(pid, SIGKILL) == 0;    /* SIGKILL: the child writes nothing, and may block SIGTERM */
        (void)poll(&ends, 1, handle < 0 ? 5 : 100); /* polled more often without pidfd_open (before Linux 5.3) */
    }
    if (handle >= 0)
        (void)close(handle);
    if (ended < 0) /* other code has reaped the child: its status is not known */
        *state = 0;
    return !cancelled;
}

static stk_status run_trial(const stki_apart_trial *t, const char *path, const char *library, stk_error *err)
{
    char program[PATH_MAX], job[32];
    char *const argv[] = {(char *)(uintptr_t) "stoker",
                          (char *)(uintptr_t) "prep",
                          job,
                          (char *)(uintptr_t) "--dry-run",
                          (char *)(uintptr_t) "--launcher=none",
                          NULL};
    const size_t length = strlen(t->job);
    struct notes *notes = MAP_FAILED;
    int fds[2] = {-1, -1}, state = 0, error = 0;
    pid_t pid = -1;
    stk_status status = STK_OK;

    if (find_program(program, sizeof program)) {
        error = make_memory_file("job", &fds[1]);
        if (!error)
            error = make_notes(&notes, &fds[0]);
        if (!error && write(fds[1], t->job, length) != (ssize_t)length)
            error = errno ? errno : EIO;
        if (!error) {
            notes->trial = true;
            stki_text(job, sizeof job, "/proc/self/fd/%d", fds[1]);
            error = start(program, argv, fds, 2, true, &pid);
        }
        if (error)
            status = stki_fail_errno(err, error, program, "cannot start the program that test-reads HDF5 files");
        else if (!wait_for(t, pid, &state))
            status = stki_fail(err, STK_E_CANCELLED, "the job was stopped");
        else if (WIFSIGNALED(state))
            status = describe_end(notes, path, library, WTERMSIG(state), err);
        else if (!atomic_load(&notes->done))
            status = stki_fail_at(err, STK_E_IO,
                                  (stki_place){program, -1, -1, STKI_TEXT("exit status %d", WEXITSTATUS(state)), NULL},
                                  "the program that test-reads HDF5 files exited before it had read %s", path);
    }
    if (notes != MAP_FAILED)
        (void)munmap(notes, sizeof *notes);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    return status;
}

stk_status stki_apart_need(const char *path, const char *library, stk_error *err)
{
    int code;

    if (!apart.argv) {
        if (!trial || trial->made || apart.notes)
            return STK_OK;
        trial->made = true;
        return trial->job ? run_trial(trial, path, library, err) : STK_OK;
    }
    stki_lock(&apart.lock); /* never released: other threads block until the process exits */
    code = run_apart(path, library);
    _exit(code);
}
