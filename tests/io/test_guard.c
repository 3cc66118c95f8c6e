/* stki-threads */
/* Tests of mapped files that are truncated, written to or replaced while they are open, and of other SIGBUS handlers in
 * the process. The handler is installed once per process, so each case runs in a child. */
#include "file.h"
#include "io_files.h"
#include "says.h"
#include "thread.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { PAGE = 4096, PAGES = 10, BYTES = PAGES * PAGE };

static unsigned char content[BYTES];
static volatile int called; /* number of calls to the host's handlers */

/* For child processes, in which cmocka's assertions do not work. */
#define check(condition)                                                           \
    do {                                                                           \
        if (!(condition)) {                                                        \
            fprintf(stderr, "%s:%d: false: %s\n", __FILE__, __LINE__, #condition); \
            _exit(99);                                                             \
        }                                                                          \
    } while (0)

/* Runs `body` in a child. Returns its exit status, or 1000 + the signal. */
static int ends(void (*body)(void))
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        (void)signal(SIGBUS, SIG_DFL); /* sanitizers install their own handler */
        body();
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static const char *make_file(const char *name)
{
    const char *path = stkt_path(name);

    stkt_write_file(path, content, BYTES);
    return path;
}

static stki_file *open_file(const char *path)
{
    stki_file *file;
    stk_error err;

    check(stki_file_open(path, STKI_ACCESS_AUTO, STKI_PATTERN_RANDOM, &file, &err) == STK_OK);
    check(file->map && file->guard);
    return file;
}

static unsigned char byte(const void *map, int64_t at)
{
    return ((const volatile unsigned char *)map)[at];
}

/* Calls stki_file_intact and checks the status and two parts of the message. */
static void is_changed(const stki_file *file, stk_status status, const char *says, const char *says_too)
{
    stk_error err;

    check(stki_file_intact(file, 7, &err) == status);
    check(err.record == 7 && strstr(err.message, file->path));
    if (!stkt_says(err.message, says) || !stkt_says(err.message, says_too)) {
        fprintf(stderr, "message: %s\n", err.message);
        _exit(98);
    }
}

/* ---- files that change ---- */

static void cut(void)
{
    const char *path = make_file("cut");
    stki_file *file = open_file(path);
    unsigned char got[BYTES];
    stk_error err;

    check(stki_file_intact(file, -1, &err) == STK_OK);
    check(!truncate(path, 3 * PAGE + 100));
    check(byte(file->map, 3 * PAGE + 99) == content[3 * PAGE + 99]);
    check(byte(file->map, 3 * PAGE + 100) == 0 && !stki_file_known_changed(file)); /* no signal inside a page */
    check(byte(file->map, 5 * PAGE + 17) == 0 && stki_file_known_changed(file));
    for (int i = 3 * PAGE + 100; i < BYTES; i++)
        check(byte(file->map, i) == 0);
    check(!memcmp(file->map, content, 3 * PAGE + 100));
    is_changed(file, STK_E_TRUNCATED, "record 7: …truncated…: found 12388", "expected 40960 bytes");
    check(stki_file_read(file, 0, got, 10, &err) == STK_E_TRUNCATED);
    check(!truncate(path, BYTES)); /* the size is as before, but not the contents */
    check(stki_file_intact(file, 7, &err) != STK_OK);
    stki_file_close(file);
    file = open_file(path); /* a reused slot must not be marked as broken */
    check(stki_file_read(file, 0, got, BYTES, &err) == STK_OK);
    stki_file_close(file);
}

/* The first bad page begins where the bytes end. */
static void up_to_the_first_bad_page(void)
{
    const char *path = make_file("up to");
    stki_file *file = open_file(path);
    const char *map = file->map;
    stki_guard *guard;

    check(!truncate(path, 3 * PAGE));
    check(byte(map, 3 * PAGE) == 0);
    check(stki_guard_bad(file->guard, map + 3 * PAGE, 1));
    check(!stki_guard_bad(file->guard, map, 3 * PAGE));
    check(stki_guard_bad(file->guard, map, 3 * PAGE + 1));
    stki_file_close(file);
    guard = stki_guard_add(map, PAGE);
    stki_guard_remove(guard);
    check(guard && stki_guard_add(map, PAGE) == guard); /* the table does not grow */
    stki_guard_remove(guard);
}

static void cut_inside_the_last_page(void)
{
    const char *path = make_file("tail");
    stki_file *file = open_file(path);
    unsigned char got[BYTES];
    stk_error err;

    check(!truncate(path, BYTES - 1));
    check(byte(file->map, BYTES - 1) == 0);
    check(!stki_file_known_changed(file));
    is_changed(file, STK_E_TRUNCATED, "found 40959, expected 40960 bytes", "was truncated");
    check(stki_file_known_changed(file));
    check(stki_file_read(file, 0, got, 10, &err) == STK_E_TRUNCATED);
    stki_file_close(file);
}

static void read_of_a_cut_file(void)
{
    const char *path = make_file("read");
    stki_file *file = open_file(path);
    unsigned char got[BYTES];
    stk_error err;

    check(!truncate(path, PAGE));
    check(stki_file_read(file, 0, got, BYTES, &err) == STK_E_TRUNCATED);
    stki_file_close(file);
}

static void written_to(void)
{
    const char *path = make_file("written");
    const struct timespec times[2] = {{1000000000, 5}, {1000000000, 5}};
    stki_file *file = open_file(path);

    check(!utimensat(AT_FDCWD, path, times, 0));
    is_changed(file, STK_E_CORRUPT, "changed…: found 40960 bytes written at 2001-09-09 01:46:40.000000005 UTC",
               "expected 40960 bytes written at 2");
    stki_file_close(file);
    file = open_file(path);
    stkt_append_file(path, "more", 4);
    is_changed(file, STK_E_CORRUPT, "changed…: found 40964 bytes", "expected 40960 bytes");
    stki_file_close(file);
}

static void replaced(void)
{
    const char *path = make_file("old"), *other = make_file("new");
    stki_file *file = open_file(path);
    struct stat st;

    check(!stat(path, &st)); /* give the new file the same time; the size is equal */
    check(!utimensat(AT_FDCWD, other, (struct timespec[2]){st.st_mtim, st.st_mtim}, 0));
    check(!rename(other, path));
    is_changed(file, STK_E_CORRUPT, "changed…: found another file (inode ", "expected inode ");
    check(!memcmp(file->map, content, BYTES)); /* the mapping still has the old contents */
    stki_file_close(file);
}

static void deleted_and_moved_away_from(void)
{
    const char *path = make_file("gone");
    stki_file *file = open_file(path);
    stk_error err;

    check(!unlink(path));
    check(stki_file_intact(file, -1, &err) == STK_OK);
    check(!memcmp(file->map, content, BYTES));
    stki_file_close(file);
    path = make_file("relative");
    check(!chdir(stkt_dir));
    file = open_file("relative");
    check(!chdir("/"));
    check(!truncate(path, 100)); /* detected although the working directory has changed */
    is_changed(file, STK_E_TRUNCATED, "relative: record 7", "found 100,");
    stki_file_close(file);
}

/* A page that cannot be read although the file seems unchanged. */
static void bus_error_without_a_change(void)
{
    const char *path = make_file("bad");
    stki_file *file = open_file(path);

    check(!truncate(path, 0));
    check(byte(file->map, 0) == 0);
    check(!unlink(path));
    is_changed(file, STK_E_IO, "found a bus error (SIGBUS)", "page");
    stki_file_close(file);
}

static void files_that_change(void **state)
{
    (void)state;
    assert_int_equal(ends(cut), 0);
    assert_int_equal(ends(up_to_the_first_bad_page), 0);
    assert_int_equal(ends(cut_inside_the_last_page), 0);
    assert_int_equal(ends(read_of_a_cut_file), 0);
    assert_int_equal(ends(written_to), 0);
    assert_int_equal(ends(replaced), 0);
    assert_int_equal(ends(deleted_and_moved_away_from), 0);
    assert_int_equal(ends(bus_error_without_a_change), 0);
}

/* ---- handlers of the host program ---- */

/* A mapping made by the host, of a file that is then truncated. */
static unsigned char *host_mapping(void)
{
    const char *path = make_file("host");
    int fd = open(path, O_RDONLY);
    unsigned char *map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);

    check(map != MAP_FAILED && !truncate(path, 0));
    close(fd);
    return map;
}

static stki_file *cut_file(const char *name)
{
    const char *path = make_file(name);
    stki_file *file = open_file(path);

    check(!truncate(path, 0));
    return file;
}

static void repairs(int number, siginfo_t *info, void *context)
{
    void *page = (void *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1));

    (void)context;
    called += number == SIGBUS && info->si_code > 0;
    check(mmap(page, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page);
}

static void counts(int number)
{
    called += number == SIGBUS;
}

static void leaves(int number)
{
    (void)number;
    _exit(55);
}

static struct sigaction before_host;

/* Handles its own faults and passes all others on, as a handler should. */
static const unsigned char *its_own;

static void chains(int number, siginfo_t *info, void *context)
{
    const unsigned char *at = info->si_addr;

    if (its_own && at >= its_own && at < its_own + BYTES)
        repairs(number, info, context);
    else if (before_host.sa_flags & SA_SIGINFO)
        before_host.sa_sigaction(number, info, context);
    else
        _exit(77);
}

static void install(void (*with_info)(int, siginfo_t *, void *), void (*plain)(int), int flags)
{
    struct sigaction action = {.sa_flags = flags | (with_info ? SA_SIGINFO : 0)};

    if (with_info)
        action.sa_sigaction = with_info;
    else
        action.sa_handler = plain;
    check(!sigaction(SIGBUS, &action, &before_host));
}

static void handler_before_ours(void)
{
    unsigned char *map = host_mapping();
    stki_file *file;

    install(repairs, NULL, 0);
    file = cut_file("before");
    check(byte(file->map, 100) == 0 && called == 0);
    check(byte(map, PAGE) == 0 && called == 1);
    check(byte(map, 2 * PAGE) == 0 && called == 2);
    check(byte(file->map, 2 * PAGE) == 0 && called == 2 && stki_file_known_changed(file));
    stki_file_close(file);
    check(byte(map, 3 * PAGE) == 0 && called == 3);
}

static void handler_after_ours(void)
{
    unsigned char *map = host_mapping();
    stki_file *file = cut_file("after"), *second;

    its_own = map;
    install(chains, NULL, SA_NODEFER);
    check(byte(file->map, 0) == 0 && called == 0);
    check(byte(map, 0) == 0 && called == 1);
    second = cut_file("after2"); /* must not install ours again, or the two would call each other forever */
    check(byte(map, PAGE) == 0 && called == 2);
    check(byte(second->map, 0) == 0 && called == 2 && stki_file_known_changed(second));
    stki_file_close(file);
    stki_file_close(second);
}

static void handlers_on_both_sides(void)
{
    unsigned char *first = host_mapping(), *last = host_mapping();
    stki_file *file;

    install(repairs, NULL, SA_ONSTACK);
    file = cut_file("both");
    its_own = last;
    install(chains, NULL, 0);
    check(byte(last, 0) == 0 && called == 1);
    check(byte(file->map, 0) == 0 && called == 1);
    check(byte(first, 0) == 0 && called == 2); /* through all three handlers */
    stki_file_close(file);
}

static void after_ours_and_dying(void)
{
    unsigned char *map = host_mapping();

    stki_file_close(cut_file("a"));
    install(chains, NULL, 0);
    (void)byte(map, 0); /* a mapping of the host: its handler passes the fault to ours, and ours to the system */
}

static void plain_handler(void)
{
    install(NULL, counts, 0);
    stki_file_close(open_file(make_file("plain")));
    check(!raise(SIGBUS) && called == 1);
    check(!raise(SIGBUS) && called == 2);
}

static void plain_handler_of_a_fault(void)
{
    install(NULL, leaves, 0);
    stki_file_close(open_file(make_file("plain")));
    (void)byte(host_mapping(), 0);
}

static void one_shot_handler(void)
{
    install(NULL, counts, (int)SA_RESETHAND);
    stki_file_close(open_file(make_file("once")));
    check(!raise(SIGBUS) && called == 1);
    raise(SIGBUS);
}

static void ignored(void)
{
    check(signal(SIGBUS, SIG_IGN) != SIG_ERR);
    stki_file_close(open_file(make_file("ignored")));
    check(!raise(SIGBUS));
    (void)byte(host_mapping(), 0); /* a fault cannot be ignored */
}

/* The host reset the signal, which removed our handler and its own. Ours is installed again with the next mapping and
 * no longer calls the old one. */
static void put_back_to_the_default(void)
{
    stki_file *file;

    install(NULL, counts, 0);
    stki_file_close(open_file(make_file("first")));
    check(signal(SIGBUS, SIG_DFL) != SIG_ERR);
    file = cut_file("second");
    check(byte(file->map, 0) == 0 && stki_file_known_changed(file));
    stki_file_close(file);
    check(signal(SIGBUS, SIG_IGN) != SIG_ERR);
    file = cut_file("third");
    check(byte(file->map, 0) == 0 && stki_file_known_changed(file));
    check(!raise(SIGBUS) && called == 0);
    stki_file_close(file);
    check(signal(SIGBUS, SIG_DFL) != SIG_ERR);
    stki_file_close(open_file(make_file("fourth")));
    raise(SIGBUS);
}

static void fault_of_the_host(void)
{
    stki_file_close(open_file(make_file("x")));
    (void)byte(host_mapping(), 0);
}

static void sent(void)
{
    stki_file_close(open_file(make_file("x")));
    kill(getpid(), SIGBUS);
}

static void fault_where_a_mapping_was(void)
{
    const char *path = make_file("was");
    stki_file *file = open_file(path);
    void *at = (void *)(uintptr_t)file->map;
    int fd = open(path, O_RDONLY);

    stki_file_close(file);
    check(mmap(at, BYTES, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == at);
    check(!truncate(path, 0));
    (void)byte(at, 0);
}

static void unguarded(void)
{
    const char *path = make_file("unguarded");
    struct sigaction now;
    stki_file *file;
    stk_error err;

    check(stki_file_open(path, STKI_ACCESS_UNGUARDED, STKI_PATTERN_RANDOM, &file, &err) == STK_OK);
    check(file->map && !file->guard && !strcmp(file->access, "mmap"));
    check(!sigaction(SIGBUS, NULL, &now) && now.sa_handler == SIG_DFL);
    check(!truncate(path, 0));
    check(stki_file_intact(file, -1, &err) == STK_OK);
    (void)byte(file->map, 0);
}

static void other_handlers(void **state)
{
    (void)state;
    assert_int_equal(ends(handler_before_ours), 0);
    assert_int_equal(ends(handler_after_ours), 0);
    assert_int_equal(ends(handlers_on_both_sides), 0);
    assert_int_equal(ends(after_ours_and_dying), 1000 + SIGBUS);
    assert_int_equal(ends(plain_handler), 0);
    assert_int_equal(ends(plain_handler_of_a_fault), 55);
    assert_int_equal(ends(one_shot_handler), 1000 + SIGBUS);
    assert_int_equal(ends(ignored), 1000 + SIGBUS);
    assert_int_equal(ends(put_back_to_the_default), 1000 + SIGBUS);
    assert_int_equal(ends(fault_of_the_host), 1000 + SIGBUS);
    assert_int_equal(ends(sent), 1000 + SIGBUS);
    assert_int_equal(ends(fault_where_a_mapping_was), 1000 + SIGBUS);
    assert_int_equal(ends(unguarded), 1000 + SIGBUS);
}

/* ---- many mappings, threads, forks ---- */

static void more_than_a_block_of_the_table_holds(void)
{
    enum { MANY = 2500 };
    static stki_file *files[MANY];
    const char *good = make_file("good"), *bad = make_file("bad");

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++)
            files[i] = open_file(i % 500 == 499 ? bad : good);
        check(!truncate(bad, PAGE));
        for (int i = 0; i < MANY; i++) {
            check(byte(files[i]->map, BYTES - 1) == (i % 500 == 499 ? 0 : content[BYTES - 1]));
            check(stki_file_known_changed(files[i]) == (i % 500 == 499));
        }
        for (int i = 0; i < MANY; i++)
            stki_file_close(files[i]);
        stkt_write_file(bad, content, BYTES);
    }
}

static long pages_mapped(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = -1;

    check(file && fscanf(file, "%ld", &pages) == 1);
    (void)fclose(file);
    return pages;
}

static void lists_of_bad_pages_are_freed(void)
{
    long before = 0;

    for (int i = 0; i < 300; i++) {
        stki_file *file = cut_file("again");

        check(byte(file->map, PAGE) == 0 && stki_file_known_changed(file));
        stki_file_close(file);
        if (i == 9)
            before = pages_mapped();
    }
    check(pages_mapped() < before + 100);
}

static void opens_and_closes(void *path)
{
    for (int i = 0; i < 300; i++) {
        stki_file *file = open_file(path);

        check(byte(file->map, i % BYTES) == content[i % BYTES]);
        check(!stki_file_known_changed(file));
        stki_file_close(file);
    }
}

static void cuts_and_reads(void *path)
{
    for (int i = 0; i < 300; i++) {
        stki_file *file;

        stkt_write_file(path, content, BYTES);
        file = open_file(path);
        check(!truncate(path, PAGE * (i % PAGES)));
        check(byte(file->map, BYTES - 1) == 0);
        check(stki_file_known_changed(file));
        check(!memcmp(file->map, content, (size_t)(PAGE * (i % PAGES))));
        stki_file_close(file);
    }
}

static stki_file *shared_file;

static void reads_what_all_read(void *unused)
{
    (void)unused;
    for (int at = BYTES - 1; at >= 0; at -= 511) {
        unsigned char got = byte(shared_file->map, at);

        if (got != content[at])
            /* a thread that sees zeros must also see the mark */
            check(got == 0 && stki_file_known_changed(shared_file));
    }
}

static void faults_while_others_open_and_close(void)
{
    enum { THREADS = 8 };
    stki_thread *threads[THREADS];
    char paths[THREADS][256];
    stk_error err;

    for (int i = 0; i < THREADS; i++) {
        snprintf(paths[i], sizeof paths[i], "%s-%d", stkt_path("thread"), i);
        stkt_write_file(paths[i], content, BYTES);
    }
    for (int i = 0; i < THREADS; i++)
        check(stki_thread_start(&threads[i], "t", i % 2 ? cuts_and_reads : opens_and_closes, paths[i], &err) == STK_OK);
    for (int i = 0; i < THREADS; i++)
        check(stki_thread_join(threads[i], INT64_MAX));
    for (int round = 0; round < 30; round++) {
        shared_file = open_file(paths[0]);
        for (int i = 0; i < THREADS; i++)
            check(stki_thread_start(&threads[i], "t", reads_what_all_read, NULL, &err) == STK_OK);
        check(!truncate(paths[0], PAGE));
        for (int i = 0; i < THREADS; i++)
            check(stki_thread_join(threads[i], INT64_MAX));
        stki_file_close(shared_file);
        stkt_write_file(paths[0], content, BYTES);
    }
}

static void in_a_child(void)
{
    stki_file *file = cut_file("fork"), *own;
    int status;
    pid_t child = fork();

    if (child == 0) {
        check(byte(file->map, PAGE) == 0 && stki_file_known_changed(file));
        own = cut_file("child");
        check(byte(own->map, PAGE) == 0 && stki_file_known_changed(own));
        stki_file_close(own);
        stki_file_close(file);
        _exit(0);
    }
    check(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    check(!stki_file_known_changed(file)); /* the child changed only its own table and mappings */
    check(byte(file->map, PAGE) == 0 && stki_file_known_changed(file));
    stki_file_close(file);
}

/* Forks while another thread holds the lock of the table. */
static volatile bool stop;

static void opens_until_stopped(void *path)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        stki_file_close(open_file(path));
}

static void in_children_of_a_busy_process(void)
{
    const char *path = make_file("busy");
    stki_thread *thread;
    stk_error err;

    check(stki_thread_start(&thread, "t", opens_until_stopped, (void *)(uintptr_t)path, &err) == STK_OK);
    for (int i = 0; i < 100; i++) {
        int status;
        pid_t child = fork();

        if (child == 0) {
            alarm(240);
            stki_guard_remove(stki_guard_add(content, BYTES));
            _exit(0);
        }
        check(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    check(stki_thread_join(thread, INT64_MAX));
}

static void many_at_once(void **state)
{
    (void)state;
    assert_int_equal(ends(more_than_a_block_of_the_table_holds), 0);
    assert_int_equal(ends(lists_of_bad_pages_are_freed), 0);
    assert_int_equal(ends(faults_while_others_open_and_close), 0);
    assert_int_equal(ends(in_a_child), 0);
    assert_int_equal(ends(in_children_of_a_busy_process), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_that_change),
        cmocka_unit_test(other_handlers),
        cmocka_unit_test(many_at_once),
    };

    for (int i = 0; i < BYTES; i++)
        content[i] = (unsigned char)(1 + i % 251);
    (void)stkt_path(""); /* creates the directory in the parent */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
