/* apart.c: see apart.h. The notes lie in a page of memory that both processes map (memfd); the environment tells the
 * second process its descriptor. Time is that of the thread's own processor clock (timer_create), so that a slow disk
 * is no reason to give up, and its signal ends the process.
 *
 * A call may take a few seconds, and longer if it unpacks or converts much data. In addition, all calls together may
 * take those seconds only once beyond what each of them should need: a damaged file can make each of many calls slow.
 */
#include "apart.h"
#include "error.h"
#include "thread.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    NS_A_SECOND = 1000000000,
    SECONDS = 4,        /* for one call, and for all calls together, beyond what they should need: */
    NS_A_CALL = 100000, /* for each call */
    NS_A_BYTE = 125,    /* for data that is unpacked or converted: 8 MB a second */
    TOO_LONG = SIGVTALRM
};

static const char variable[] = "STOKER_APART";

struct notes {
    atomic_int inside; /* threads of the second process that are in the library */
    int64_t seconds;   /* that the last call, or all calls, may take */
    char path[1024], name[1024], doing[64];
};

static struct {
    char **argv;
    stki_apart_report *report;
    void *context;
    struct notes *notes; /* of the second process; NULL: this is not it */
    stki_mutex lock;     /* held by the thread that waits for the second process */
} apart = {.lock = {PTHREAD_MUTEX_INITIALIZER}};

/* One thread at a time is inside a library. */
static struct {
    timer_t timer;
    bool timed;
    int64_t since;      /* time of the thread's clock up to which CPU time is counted */
    int64_t used, left; /* ns that all calls together took, and may still take */
} budget = {.left = (int64_t)SECONDS * NS_A_SECOND};

/* ---- the second process ---- */

/* NULL: they cannot be found, and this process runs as it would without the first one. */
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
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM, 0UL, 0UL, 0UL); /* nobody would be there to be told */
    if (getppid() != parent)                               /* it ended before that */
        _exit(128 + SIGTERM);
    return notes;
}

static int64_t clock_ns(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * NS_A_SECOND + now.tv_nsec;
}

/* Counts the CPU time used so far. */
static void settle(void)
{
    const int64_t now = clock_ns();

    budget.used += now - budget.since;
    budget.left -= now - budget.since;
    budget.since = now;
}

/* Adds the time that an operation on this much data should need, and starts the timer. */
static void allow(int64_t bytes)
{
    const int64_t most = INT64_MAX / NS_A_BYTE / 4, needed = NS_A_CALL + (bytes < most ? bytes : most) * NS_A_BYTE;
    int64_t ns = (int64_t)SECONDS * NS_A_SECOND + needed;
    struct itimerspec end = {0};

    if (budget.left < INT64_MAX / 2)
        budget.left += needed;
    apart.notes->seconds = (ns < budget.left ? ns : budget.used + budget.left) / NS_A_SECOND;
    ns = ns < budget.left ? ns : budget.left;
    ns = ns > 0 ? ns : 1; /* 0 would stop the timer */
    end.it_value.tv_sec = ns / NS_A_SECOND;
    end.it_value.tv_nsec = ns % NS_A_SECOND;
    if (budget.timed)
        (void)timer_settime(budget.timer, 0, &end, NULL);
}

void stki_apart_enter(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = TOO_LONG};

    if (!apart.notes)
        return;
    atomic_fetch_add(&apart.notes->inside, 1);
    budget.timed = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &budget.timer) == 0;
    budget.since = clock_ns();
    allow(0);
}

void stki_apart_leave(void)
{
    if (!apart.notes)
        return;
    atomic_fetch_sub(&apart.notes->inside, 1);
    if (budget.timed)
        (void)timer_delete(budget.timer);
    budget.timed = false;
    settle();
}

void stki_apart_note(const char *path, const char *name, const char *doing, int64_t bytes)
{
    if (!apart.notes)
        return;
    stki_text(apart.notes->path, sizeof apart.notes->path, "%s", path);
    stki_text(apart.notes->name, sizeof apart.notes->name, "%s", name ? name : "");
    stki_text(apart.notes->doing, sizeof apart.notes->doing, "%s", doing);
    settle();
    allow(bytes);
}

/* ---- the first process ---- */

void stki_apart_begin(char **argv, stki_apart_report *report, void *context)
{
    if (getenv(variable)) {
        apart.notes = find_notes();
        return;
    }
    apart.argv = argv;
    apart.report = report;
    apart.context = context;
}

/* This process's environment and one more variable; an array to free. */
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

/* 0, or why not. The threads of this process block signals, the new one shall not. */
static int start(int fd, pid_t *pid)
{
    char assignment[32];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    char **environment;
    int error = posix_spawn_file_actions_init(&actions);

    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return error;
    }
    sigemptyset(&none);
    stki_text(assignment, sizeof assignment, "%s=%d:%d", variable, fd, (int)getpid());
    environment = environment_with(assignment);
    if (!environment)
        error = ENOMEM;
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, fd, fd); /* which lets the new program have it */
    if (!error)
        error = posix_spawnattr_setsigmask(&attributes, &none);
    if (!error)
        error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    if (!error)
        error = posix_spawn(pid, "/proc/self/exe", &actions, &attributes, apart.argv, environment);
    free(environment);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return error;
}

static bool is_for_the_program(int signal_number)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (signal_number == numbers[i])
            return true;
    return false;
}

/* What the second process did, as an error. */
static void describe_end(const struct notes *notes, const char *path, const char *library, int signal_number,
                         stk_error *err)
{
    const stki_place place = {notes->path[0] ? notes->path : path, -1, -1, NULL, NULL};
    const char *between = notes->name[0] ? ": " : "", *doing = notes->doing[0] ? notes->doing : "opening it";

    if (signal_number == SIGKILL) /* by a user, or by a system without memory: the file need not be damaged */
        (void)stki_fail_at(err, STK_E_RESOURCE, place, "the process that was reading the file was killed");
    else if (atomic_load(&notes->inside) == 0)
        (void)stki_fail_at(err, STK_E_RESOURCE, place,
                           "internal error: stoker ended by %s while reading the file, not in %s; please report this",
                           strsignal(signal_number), library);
    else if (signal_number == TOO_LONG)
        (void)stki_fail_at(err, STK_E_CORRUPT, place,
                           "%.300s%s%s did not finish within %" PRId64
                           " s of processor time while %s: the file is damaged",
                           notes->name, between, library, notes->seconds, doing);
    else
        (void)stki_fail_at(err, STK_E_CORRUPT, place, "%.300s%s%s crashed (%s) while %s: the file is damaged",
                           notes->name, between, library, strsignal(signal_number), doing);
}

/* Ends as the second process did. */
static int end_by(const struct notes *notes, const char *path, const char *library, int signal_number)
{
    stk_error err;

    if (is_for_the_program(signal_number)) {
        (void)signal(signal_number, SIG_DFL);
        (void)raise(signal_number); /* blocked in this thread: the exit status says the same to a shell */
        return 128 + signal_number;
    }
    describe_end(notes, path, library, signal_number, &err);
    return apart.report(apart.context, &err);
}

static int run_apart(const char *path, const char *library)
{
    const int fd = memfd_create("stoker", MFD_CLOEXEC);
    struct notes *notes = MAP_FAILED;
    stk_error err;
    pid_t pid = -1;
    int state = 0, error = fd < 0 || ftruncate(fd, sizeof *notes) ? errno : 0;

    if (!error) {
        notes = mmap(NULL, sizeof *notes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        error = notes == MAP_FAILED ? errno : start(fd, &pid);
    }
    if (error) {
        (void)stki_fail_errno(&err, error, path, "a process to read it in cannot be started");
        return apart.report(apart.context, &err);
    }
    while (waitpid(pid, &state, 0) < 0 && errno == EINTR)
        ;
    return WIFSIGNALED(state) ? end_by(notes, path, library, WTERMSIG(state)) : WEXITSTATUS(state);
}

void stki_apart_need(const char *path, const char *library)
{
    int code;

    if (!apart.argv)
        return;
    stki_lock(&apart.lock); /* never let go: other threads wait until the process ends */
    code = run_apart(path, library);
    _exit(code);
}
