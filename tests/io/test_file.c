/* Tests of opening files for reading: mapped and read files, files that change, descriptors, mappings, advice and
 * residency, and errors. */
#include "allocate.h"
#include "clock.h"
#include "descriptor.h"
#include "faults.h"
#include "file.h"
#include "io_files.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

static char content[100000];

static const char *make_file(const char *name, size_t bytes)
{
    const char *path = stkt_path(name);

    for (size_t i = 0; i < sizeof content; i++)
        content[i] = (char)(i * 7 + i / 256);
    stkt_write_file(path, content, bytes);
    return path;
}

static void test_mapped_and_read_agree(void **state)
{
    const char *path = make_file("plain", sizeof content);
    enum stki_access modes[] = {STKI_ACCESS_AUTO, STKI_ACCESS_MMAP, STKI_ACCESS_PREAD};
    static char got[sizeof content];

    (void)state;
    for (int i = 0; i < 3; i++) {
        stki_file *file;
        stk_error err;
        assert_int_equal(stki_file_open(path, modes[i], STKI_PATTERN_RANDOM, &file, &err), STK_OK);
        assert_string_equal(file->access, modes[i] == STKI_ACCESS_PREAD ? "pread" : "mmap");
        assert_null(file->note);
        assert_int_equal(file->size, sizeof content);
        assert_int_equal(stki_file_read(file, 123, got, 99000, &err), STK_OK);
        assert_memory_equal(got, content + 123, 99000);
        assert_int_equal(stki_file_read(file, 0, got, 0, &err), STK_OK);
        assert_int_equal(stki_file_read(file, sizeof content, got, 0, &err), STK_OK);
        if (file->map)
            assert_memory_equal(file->map, content, sizeof content);
        stki_file_close(file);
    }
    stki_file_close(NULL);
}

static void test_reading_past_the_end(void **state)
{
    const char *path = make_file("end", 1000);

    (void)state;
    for (int mode = STKI_ACCESS_MMAP; mode <= STKI_ACCESS_PREAD; mode++) {
        static const int64_t ranges[][2] = {{999, 2}, {1001, 0}, {2000, 10}, {-1, 1}, {0, -1}, {INT64_MAX, INT64_MAX}};
        stki_file *file;
        stk_error err;
        char got[16];
        assert_int_equal(stki_file_open(path, (enum stki_access)mode, STKI_PATTERN_SEQUENTIAL, &file, &err), STK_OK);
        for (int i = 0; i < 6; i++)
            assert_int_equal(stki_file_read(file, ranges[i][0], got, ranges[i][1], &err), STK_E_TRUNCATED);
        assert_int_equal(stki_file_read(file, 999, got, 2, &err), STK_E_TRUNCATED);
        assert_string_equal(err.found, "1");
        assert_string_equal(err.expected, "2 bytes");
        assert_int_equal(err.offset, 999);
        assert_non_null(strstr(err.message, path));
        stki_file_close(file);
    }
}

static void test_cut_while_open(void **state)
{
    const char *path = make_file("cut", 10000);
    stki_file *file;
    stk_error err;
    char got[5000];

    (void)state;
    assert_int_equal(stki_file_open(path, STKI_ACCESS_PREAD, STKI_PATTERN_RANDOM, &file, &err), STK_OK);
    assert_int_equal(truncate(path, 6000), 0);
    assert_int_equal(stki_file_read(file, 1000, got, 5000, &err), STK_OK);
    assert_int_equal(stki_file_read(file, 2000, got, 5000, &err), STK_E_TRUNCATED);
    assert_string_equal(err.found, "4000");
    stki_file_close(file);
}

static void refused(const char *path, stk_status status, const char *says)
{
    stki_file *file = NULL;
    stk_error err;

    assert_int_equal(stki_file_open(path, STKI_ACCESS_AUTO, STKI_PATTERN_RANDOM, &file, &err), status);
    assert_null(file);
    assert_non_null(strstr(err.message, path));
    if (!strstr(err.message, says))
        fail_msg("message: %s, expected in it: %s", err.message, says);
}

static void test_only_regular_files(void **state)
{
    const char *fifo = stkt_path("fifo");

    (void)state;
    assert_int_equal(mkfifo(fifo, 0600), 0);
    refused(fifo, STK_E_UNSUPPORTED, "found a FIFO, expected a regular file"); /* and does not wait for a writer */
    refused("/tmp", STK_E_UNSUPPORTED, "found a directory");
    refused("/dev/null", STK_E_UNSUPPORTED, "found a character device");
    refused(stkt_path("missing"), STK_E_NOT_FOUND, "No such file");
    refused(stkt_path("fifo/below"), STK_E_NOT_FOUND, "Not a directory");
}

static void test_empty_file_is_not_mapped(void **state)
{
    const char *path = make_file("empty", 0);
    stki_file *file;
    stk_error err;

    (void)state;
    assert_int_equal(stki_file_open(path, STKI_ACCESS_MMAP, STKI_PATTERN_RANDOM, &file, &err), STK_OK);
    assert_null(file->map);
    assert_null(file->note);
    assert_int_equal(file->size, 0);
    assert_true(stki_file_resident(file, 0, 0));
    stki_file_will_need(file, 0, 0);
    stki_file_close(file);
}

static void test_failed_mapping_is_read(void **state)
{
    const char *path = make_file("nomap", 5000);
    stki_file *file;
    stk_error err;
    char got[5000];

    (void)state;
    stkt_fail_maps(1);
    assert_int_equal(stki_file_open(path, STKI_ACCESS_MMAP, STKI_PATTERN_RANDOM, &file, &err), STK_OK);
    assert_null(file->map);
    assert_string_equal(file->access, "pread");
    assert_non_null(strstr(file->note, "mmap failed"));
    assert_int_equal(stki_file_read(file, 0, got, 5000, &err), STK_OK);
    assert_memory_equal(got, content, 5000);
    stki_file_close(file);
    assert_int_equal(stki_file_open(path, STKI_ACCESS_MMAP, STKI_PATTERN_RANDOM, &file, &err), STK_OK);
    assert_string_equal(file->access, "mmap"); /* only one mapping was made to fail */
    stki_file_close(file);
}

static void test_short_reads_and_errors(void **state)
{
    const char *path = make_file("short", 1000);
    stki_file *file;
    stk_error err;
    char got[1000];

    (void)state;
    assert_int_equal(stki_file_open(path, STKI_ACCESS_PREAD, STKI_PATTERN_RANDOM, &file, &err), STK_OK);
    stkt_short_reads(7);
    assert_int_equal(stki_file_read(file, 0, got, 1000, &err), STK_OK);
    assert_memory_equal(got, content, 1000);
    stkt_fail_read(3, EIO);
    memset(got, 0, sizeof got);
    assert_int_equal(stki_file_read(file, 100, got, 500, &err), STK_E_IO);
    assert_int_equal(err.offset, 114);
    assert_non_null(strstr(err.message, "Input/output error"));
    assert_non_null(strstr(err.message, path));
    stkt_fail_read(2, EINTR); /* an interrupted read is repeated */
    assert_int_equal(stki_file_read(file, 0, got, 1000, &err), STK_OK);
    assert_memory_equal(got, content, 1000);
    stkt_short_reads(0);
    stki_file_close(file);
}

/* Related to row F09: opening never changes a file, whatever its permissions. */
static void test_a_read_only_file_stays_as_it_is(void **state)
{
    const char *path = make_file("readonly", 4096);
    struct stat before, after;
    stki_file *file;
    stk_error err;

    (void)state;
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(stki_file_open(path, STKI_ACCESS_MMAP, STKI_PATTERN_SEQUENTIAL, &file, &err), STK_OK);
    stki_file_close(file);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    assert_int_equal(before.st_blocks, after.st_blocks);
    assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim);
    assert_int_equal(before.st_mode, after.st_mode);
}

/* Uses up the descriptors of the process. Returns their number. */
static int take_all(int *taken, int room)
{
    int n = 0;

    while (n < room && (taken[n] = open("/dev/null", O_RDONLY)) >= 0)
        n++;
    assert_true(n < room && errno == EMFILE);
    return n;
}

/* Files that are mapped or read do not use up the descriptors of the process. If there are none left, the error says so
 * and gives the limit. */
static void test_descriptors(void **state)
{
    const char *path = make_file("many", 4096);
    struct rlimit old, few = {.rlim_cur = 32};
    stki_file *files[2][100] = {0}, *one = NULL;
    int taken[64], count;
    char got[100];
    stk_error err;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few.rlim_max = old.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(stki_file_open(path, STKI_ACCESS_MMAP, STKI_PATTERN_RANDOM, &files[0][i], &err), STK_OK);
        assert_int_equal(stki_file_open(path, STKI_ACCESS_PREAD, STKI_PATTERN_RANDOM, &files[1][i], &err), STK_OK);
    }
    count = take_all(taken, 64);
    assert_true(count >= 8);
    assert_int_equal(stki_file_open(path, STKI_ACCESS_PREAD, STKI_PATTERN_RANDOM, &one, &err), STK_E_RESOURCE);
    assert_string_equal(err.found, "all 32 in use");
    assert_non_null(strstr(err.message, path));
    assert_int_equal(stki_file_read(files[1][99], 1000, got, 100, &err), STK_E_RESOURCE);
    stki_file_will_need(files[1][99], 0, 4096); /* has no effect */
    close(taken[--count]);
    for (int i = 0; i < 100; i++)
        for (int k = 0; k < 2; k++) {
            assert_int_equal(stki_file_read(files[k][i], 1000 + i, got, 100, &err), STK_OK);
            assert_memory_equal(got, content + 1000 + i, 100);
            stki_file_will_need(files[k][i], 0, 4096);
            stki_file_close(files[k][i]);
        }
    while (count > 0)
        close(taken[--count]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
}

/* A file that is reopened for each read gives an error if it was replaced between two reads. */
static void test_opened_again(void **state)
{
    (void)state;
    for (int watched = 0; watched < 2; watched++) {
        const char *path = make_file("again", 4096), *other = stkt_path("other");
        stki_file *file;
        char got[100];
        stk_error err;

        stkt_write_file(other, content, 4096);
        assert_int_equal(
            stki_file_open(path, watched ? STKI_ACCESS_PREAD : STKI_ACCESS_UNWATCHED, STKI_PATTERN_RANDOM, &file, &err),
            STK_OK);
        close(file->fd); /* as if too many descriptors were in use */
        file->fd = -1;
        stki_descriptor_kept_no_more(false);
        assert_int_equal(stki_file_read(file, 1000, got, 100, &err), STK_OK);
        assert_memory_equal(got, content + 1000, 100);
        stkt_append_file(path, "more", 4);
        assert_int_equal(stki_file_read(file, 1000, got, 100, &err), watched ? STK_E_CORRUPT : STK_OK);
        assert_int_equal(rename(other, path), 0);
        assert_int_equal(stki_file_read(file, 1000, got, 100, &err), STK_E_CORRUPT);
        stki_file_close(file);
    }
}

/* For a file that a process neither owns nor may write, the kernel does not report which pages are in memory, except
 * through a descriptor. A few such files keep one open; the others do without. */
static void files_of_another_owner(void)
{
    const char *path = make_file("theirs", 4096);
    struct rlimit few = {64, 64};
    stki_file *files[200];
    char got[100];
    stk_error err;
    int held = 0;

    if (chmod(stkt_dir, 0755) || chmod(path, 0444) || setrlimit(RLIMIT_NOFILE, &few) ||
        (geteuid() == 0 && (setegid(65534) || seteuid(65534))))
        _exit(97);
    for (int i = 0; i < 200; i++) {
        if (stki_file_open(path, STKI_ACCESS_AUTO, STKI_PATTERN_RANDOM, &files[i], &err) != STK_OK || !files[i]->map)
            _exit(96);
        held += files[i]->fd >= 0;
    }
    if (held > 8)
        _exit(95);
    for (int i = 0; i < 200; i++) {
        stki_file_will_need(files[i], 0, 4096);
        if (stki_file_read(files[i], i, got, 100, &err) != STK_OK || memcmp(got, content + i, 100) != 0)
            _exit(94);
        stki_file_close(files[i]);
    }
    _exit(0);
}

static void test_files_of_another_owner(void **state)
{
    const pid_t child = fork();
    int status;

    (void)state;
    if (child == 0)
        files_of_another_owner();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* With many mappings in the process (pages of alternating protection), files are read instead of mapped from some point
 * on, so that others can still map memory. */
static void full_of_mappings(void)
{
    const int64_t page = sysconf(_SC_PAGESIZE);
    const char *path = make_file("many", 4096);
    FILE *said = fopen("/proc/sys/vm/max_map_count", "r");
    long long most = 0;
    static stki_file *files[2000];
    char *pages, got[100];
    stk_error err;
    int mapped = 0;

    if (!said || fscanf(said, "%lld", &most) != 1)
        _exit(97);
    fclose(said);
    most = most - most / 4 - 1000; /* leaves room for about 1000 more */
    pages = mmap(NULL, (size_t)(most * page), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED)
        _exit(96);
    for (int64_t i = 0; i < most; i += 2)
        if (mprotect(pages + i * page, (size_t)page, PROT_READ))
            _exit(95);
    for (int i = 0; i < 2000; i++) {
        if (stki_file_open(path, STKI_ACCESS_AUTO, STKI_PATTERN_RANDOM, &files[i], &err) != STK_OK)
            _exit(94);
        mapped += files[i]->map != NULL;
        if (!files[i]->map != (files[i]->note != NULL))
            _exit(93);
    }
    if (mapped < 64 || mapped > 1000)
        _exit(92);
    for (int i = 0; i < 2000; i++) {
        if (stki_file_read(files[i], i, got, 100, &err) != STK_OK || memcmp(got, content + i, 100) != 0)
            _exit(91);
        stki_file_close(files[i]);
    }
    _exit(0);
}

static void test_full_of_mappings(void **state)
{
    const pid_t child = fork();
    int status;

    (void)state;
    if (child == 0)
        full_of_mappings();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_residency_and_advice(void **state)
{
    const char *path = make_file("resident", sizeof content);
    static const int64_t indices[] = {3, 4, 5, 90, 0, 99, 99};
    stki_file_rows rows = {100, 900, 900};

    (void)state;
    for (int mode = STKI_ACCESS_MMAP; mode <= STKI_ACCESS_PREAD; mode++) {
        stki_file *file;
        stk_error err;
        assert_int_equal(stki_file_open(path, (enum stki_access)mode, STKI_PATTERN_RANDOM, &file, &err), STK_OK);
        assert_true(stki_file_resident(file, 0, sizeof content)); /* it was just written */
        assert_true(stki_file_resident(file, 5000, 1));
        assert_true(stki_file_resident(file, sizeof content + 5, 10)); /* beyond the end: nothing to read */
        stki_file_will_need(file, 10, 50000);
        stki_file_advise(file, 10, 50000);
        stki_file_advise(file, -5, 10);
        stki_file_advise(file, sizeof content - 1, 100);
        stki_file_will_need_rows(file, &rows, indices, 7);
        stki_file_will_need_rows(file, &rows, indices, 0);
        stki_file_close(file);
    }
}

static bool drop_pages(const char *path)
{
    int fd = open(path, O_RDONLY);
    bool dropped = fd >= 0 && !fsync(fd) && !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);

    close(fd);
    return dropped;
}

static bool becomes_resident(const stki_file *file, int64_t offset, int64_t bytes)
{
    for (int i = 0; i < 6000 && !stki_file_resident(file, offset, bytes); i++)
        usleep(10000);
    return stki_file_resident(file, offset, bytes);
}

/* Advised rows are read from the disk in the background; for a mapped file in sequential order, this is left to the
 * system. */
static void test_advice_fetches_dropped_pages(void **state)
{
    enum { ROW = 65536, ROWS = 64 };
    static char zeros[ROW];
    static const int64_t indices[] = {50, 9, 10, 11, 30};
    const char *path = stkt_path("dropped");
    stki_file_rows rows = {0, ROW, ROW};

    (void)state;
    stkt_write_file(path, zeros, 0);
    for (int i = 0; i < ROWS; i++)
        stkt_append_file(path, zeros, ROW);
    for (int mode = STKI_ACCESS_MMAP; mode <= STKI_ACCESS_PREAD; mode++)
        for (int pattern = STKI_PATTERN_SEQUENTIAL; pattern <= STKI_PATTERN_RANDOM; pattern++) {
            bool advises = mode == STKI_ACCESS_PREAD || pattern == STKI_PATTERN_RANDOM;
            stki_file *file;
            stk_error err;
            if (!drop_pages(path))
                skip();
            assert_int_equal(stki_file_open(path, (enum stki_access)mode, (enum stki_pattern)pattern, &file, &err),
                             STK_OK);
            if (stki_file_resident(file, 50 * ROW, ROW)) { /* an in-memory file system */
                stki_file_close(file);
                skip();
            }
            stki_file_will_need_rows(file, &rows, indices, 5);
            for (int i = 0; i < 5; i++)
                assert_int_equal(advises ? becomes_resident(file, indices[i] * ROW, ROW)
                                         : stki_file_resident(file, indices[i] * ROW, ROW),
                                 advises);
            assert_false(stki_file_resident(file, 60 * ROW, ROW)); /* nothing else was read */
            assert_false(stki_file_resident(file, 20 * ROW, ROW));
            stki_file_close(file);
        }
}

/* After a sample that is not in memory, advice is given for 0.1 s even if other samples are in memory; another one that
 * is not restarts this time. */
static void test_residency_over_time(void **state)
{
    const int64_t ms = 1000000;
    stki_residency residency = {0};

    (void)state;
    assert_true(stki_residency_due(&residency, ms));
    assert_false(stki_residency_found(&residency, true, ms));
    assert_false(stki_residency_due(&residency, 3 * ms - 1));
    assert_true(stki_residency_due(&residency, 3 * ms));
    assert_true(stki_residency_found(&residency, false, 3 * ms));
    for (int64_t now = 4 * ms; now < 150 * ms; now += ms) {
        assert_true(stki_residency_due(&residency, now));
        assert_true(stki_residency_found(&residency, now != 50 * ms, now));
    }
    assert_false(stki_residency_found(&residency, true, 150 * ms));
    assert_false(stki_residency_due(&residency, 151 * ms));
}

/* If data is larger than memory, some of it is always resident; the rest must still be fetched. */
static void test_advice_fetches_what_is_missing(void **state)
{
    enum { ROW = 65536, ROWS = 64 };
    static char zeros[ROW];
    static const int64_t missing[] = {60}, batches[][4] = {{9, 10, 11, 50}, {10, 52, 11, 9}, {11, 9, 54, 10}};
    const char *path = stkt_path("half");
    const stki_file_rows rows = {0, ROW, ROW};
    stki_file *file;
    stk_error err;
    int64_t start;

    (void)state;
    stkt_write_file(path, zeros, 0);
    for (int i = 0; i < ROWS; i++)
        stkt_append_file(path, zeros, ROW);
    if (!drop_pages(path))
        skip();
    assert_int_equal(stki_file_open(path, STKI_ACCESS_PREAD, STKI_PATTERN_RANDOM, &file, &err), STK_OK);
    if (stki_file_resident(file, 60 * ROW, ROW)) { /* an in-memory file system */
        stki_file_close(file);
        skip();
    }
    for (int64_t row = 9; row < 12; row++)
        assert_int_equal(stki_file_read(file, row * ROW, zeros, ROW, &err), STK_OK);
    start = stki_now_ns();
    stki_file_will_need_rows(file, &rows, missing, 1);
    for (int i = 0; i < 3; i++)
        stki_file_will_need_rows(file, &rows, batches[i], 4);
    if (stki_now_ns() - start < STKI_COLD_FOR_NS)
        for (int64_t row = 50; row < 56; row += 2)
            assert_true(becomes_resident(file, row * ROW, ROW));
    stki_file_close(file);
}

static void test_every_allocation_failing(void **state)
{
    const char *path = make_file("memory", 100);
    stki_memory_stats before, after;
    stki_file *file;
    stk_error err;
    int n = 0;

    (void)state;
    stki_memory_read(STKI_MEM_HOST, &before);
    do {
        stki_memory_fail_at(++n);
        file = NULL;
        if (stki_file_open(path, STKI_ACCESS_MMAP, STKI_PATTERN_RANDOM, &file, &err) == STK_OK)
            break;
        assert_int_equal(err.status, STK_E_MEMORY);
        assert_null(file);
    } while (n < 50);
    stki_memory_fail_at(0);
    assert_int_equal(n, 4);
    stki_file_close(file);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(before.bytes, after.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mapped_and_read_agree),
        cmocka_unit_test(test_reading_past_the_end),
        cmocka_unit_test(test_cut_while_open),
        cmocka_unit_test(test_only_regular_files),
        cmocka_unit_test(test_empty_file_is_not_mapped),
        cmocka_unit_test(test_failed_mapping_is_read),
        cmocka_unit_test(test_short_reads_and_errors),
        cmocka_unit_test(test_a_read_only_file_stays_as_it_is),
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_opened_again),
        cmocka_unit_test(test_files_of_another_owner),
        cmocka_unit_test(test_full_of_mappings),
        cmocka_unit_test(test_residency_and_advice),
        cmocka_unit_test(test_advice_fetches_dropped_pages),
        cmocka_unit_test(test_residency_over_time),
        cmocka_unit_test(test_advice_fetches_what_is_missing),
        cmocka_unit_test(test_every_allocation_failing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
