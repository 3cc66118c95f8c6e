/* hdf5_library.c: see hdf5_library.h. If libhdf5 was built without thread safety, only one thread at a time may be
 * inside it. Thread-safe builds serialize all calls anyway. One lock around all calls is therefore correct for both and
 * costs nothing. It is recursive: a program that holds it (stk_hdf5_lock) may call stoker.
 *
 * Fork handlers acquire the lock before a fork and release it in parent and child, so that no other thread holds it
 * or the library's lock at the fork. */
#include "hdf5_library.h"
#include "error.h"
#include "guard.h"
#include "thread.h"
#include <stdlib.h>
#include <stoker/dataset.h>
#include <string.h>

/* A plain mutex with a depth, because a recursive mutex belongs to a thread and could not be unlocked in a forked
 * child. */
static stki_mutex library_lock = {PTHREAD_MUTEX_INITIALIZER};
static _Thread_local int depth;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void hold(void)
{
    if (depth++ == 0)
        stki_lock(&library_lock);
}

static void watch_forks(void)
{
    stki_guard_watch_forks(); /* the guard's lock is acquired while this one is held, so a fork must acquire this one
                                 first */
    (void)pthread_atfork(hold, stk_hdf5_unlock, stk_hdf5_unlock);
    (void)H5dont_atexit(); /* closing objects that are still open because a file was damaged can crash; all files
                              written here are closed explicitly */
}

void stk_hdf5_lock(void)
{
    pthread_once(&once, watch_forks);
    hold();
}

void stk_hdf5_unlock(void)
{
    if (--depth == 0)
        stki_unlock(&library_lock);
}

void stki_hdf5_enter(stki_hdf5_guard *guard, bool plugins)
{
    stk_hdf5_lock();
    if (depth == 1)
        stki_apart_enter();
    *guard = (stki_hdf5_guard){0};
    (void)H5Eget_auto2(H5E_DEFAULT, &guard->print, &guard->print_context);
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    (void)H5PLget_loading_state(&guard->plugins);
    if (!plugins)
        (void)H5PLset_loading_state(0);
}

void stki_hdf5_leave(const stki_hdf5_guard *guard)
{
    (void)H5PLset_loading_state(guard->plugins);
    (void)H5Eclear2(H5E_DEFAULT);
    (void)H5Eset_auto2(H5E_DEFAULT, guard->print, guard->print_context);
    if (depth == 1)
        stki_apart_leave();
    stk_hdf5_unlock();
}

/* After a checksum error, libhdf5 1.10 leaks an object and reports that on stderr at exit ("infinite loop closing
 * library") unless error printing is off. It does so in an atexit function registered before ours, so ours runs first.
 * This does not block on the lock, because a thread that ends with the program may hold it. */
static void end_quietly(void)
{
    if (depth == 0 && !stki_try_lock(&library_lock))
        return;
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (depth == 0)
        stki_unlock(&library_lock);
}

static pthread_once_t quiet_once = PTHREAD_ONCE_INIT;

static void plan_quiet_end(void)
{
    (void)atexit(end_quietly);
}

/* ---- errors ---- */

/* The relevant parts of an error stack, which is traversed from the deepest failure to the outermost. */
struct said {
    hid_t major, minor, next_minor; /* numbers of the deepest error, and of the error that it caused */
    bool in_path, in_link;          /* the error occurred while following a path or an external link */
    bool in_filter;                 /* the error occurred while decoding a chunk */
    char deepest[160], first[160];
};

static herr_t hear(unsigned n, const H5E_error2_t *error, void *context)
{
    struct said *said = context;
    const char *text = error->desc ? error->desc : "";

    if (n == 0) {
        said->major = error->maj_num;
        said->minor = error->min_num;
        strncpy(said->deepest, text, sizeof said->deepest - 1);
    } else if (n == 1) {
        said->next_minor = error->min_num;
    }
    said->in_path |= error->maj_num == H5E_SYM && error->min_num == H5E_NOTFOUND;
    said->in_link |= error->maj_num == H5E_LINK && error->min_num == H5E_CANTOPENFILE;
    said->in_filter |= error->maj_num == H5E_PLINE;
    strncpy(said->first, text, sizeof said->first - 1);
    return 0;
}

/* Converts the library's error numbers to a status, unknown ones to `otherwise`. A header message of an unknown version
 * gives CANTLOAD followed by CANTDECODE. A damaged header also gives CANTLOAD, but fails before its messages are
 * decoded. */
static stk_status class_of(const struct said *said, stk_status otherwise)
{
    if (said->minor == H5E_TRUNCATED)
        return STK_E_TRUNCATED;
    if (said->minor == H5E_VERSION || (said->minor == H5E_CANTLOAD && said->next_minor == H5E_CANTDECODE) ||
        said->minor == H5E_NOFILTER || said->major == H5E_PLUGIN)
        return STK_E_UNSUPPORTED;
    if ((said->minor == H5E_NOTFOUND && said->in_path) || (said->minor == H5E_CANTOPENFILE && said->in_link) ||
        said->minor == H5E_NLINKS)
        return STK_E_NOT_FOUND;
    if (said->minor == H5E_NOSPACE && said->major == H5E_RESOURCE)
        return STK_E_MEMORY;
    if (said->major == H5E_IO && (said->minor == H5E_READERROR || said->minor == H5E_WRITEERROR))
        return STK_E_IO; /* a system call to read or write failed */
    return otherwise;
}

static void listen(struct said *said)
{
    *said = (struct said){.major = -1, .minor = -1, .next_minor = -1};
    pthread_once(&quiet_once, plan_quiet_end);
    (void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, hear, said);
    (void)H5Eclear2(H5E_DEFAULT);
}

static stk_status report(stk_error *err, stk_status status, const struct said *said, const char *path, const char *name,
                         const char *what)
{
    const bool two = said->first[0] && strcmp(said->first, said->deepest) != 0;

    return stki_fail_at(err, status, (stki_place){path, -1, -1, NULL, NULL}, "%s%s%s%s%s%s%s%s", name ? name : "",
                        name ? ": " : "", what, said->deepest[0] ? " (libhdf5: " : "", said->deepest, two ? "; " : "",
                        two ? said->first : "", said->deepest[0] ? ")" : "");
}

stk_status stki_hdf5_fail(stk_error *err, stk_status otherwise, const char *path, const char *name, const char *what)
{
    struct said said;

    listen(&said);
    return report(err, class_of(&said, otherwise), &said, path, name, what);
}

stk_status stki_hdf5_fail_elements(stk_error *err, const char *path, const char *name, bool *chunk)
{
    struct said said;

    listen(&said);
    *chunk = said.in_filter;
    return report(err, class_of(&said, STK_E_CORRUPT), &said, path, name, "cannot be read");
}

/* ---- version of the library ---- */

static pthread_once_t asked = PTHREAD_ONCE_INIT;
static char version[40];
static bool thread_safe;

static void ask(void)
{
    unsigned major = 0, minor = 0, release = 0;
    hbool_t safe = 0;
    stki_hdf5_guard guard;

    stki_hdf5_enter(&guard, false);
    (void)H5get_libversion(&major, &minor, &release);
    thread_safe = H5is_library_threadsafe(&safe) >= 0 && safe;
    stki_hdf5_leave(&guard);
    stki_text(version, sizeof version, "%u.%u.%u", major, minor, release);
}

const char *stki_hdf5_version(void)
{
    pthread_once(&asked, ask);
    return version;
}

bool stki_hdf5_thread_safe(void)
{
    pthread_once(&asked, ask);
    return thread_safe;
}

stk_status stki_hdf5_check_fork(int64_t generation, const char *path, stk_error *err)
{
    if (generation == stki_fork_generation())
        return STK_OK;
    return stki_fail_at(
        err, STK_E_FORKED, (stki_place){path, -1, -1, NULL, NULL},
        "this data set is read through libhdf5, whose files cannot be used after a fork: open it again in the child");
}
