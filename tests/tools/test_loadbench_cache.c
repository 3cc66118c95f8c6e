/* Tests of the page cache measurement: no page of an evicted file is resident, all pages of a file that was read are,
 * and for other users' files residency is unknown. A run is called cold only if this was checked. (Row C03.) */
#include "faults.h"
#include "loadbench_cache.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { BYTES = 3 << 20 };
#define TMPFS 0x01021994

static char folder[] = "/tmp/stoker_cache_XXXXXX";

static void write_file(const char *path, int64_t bytes)
{
    static char block[65536];
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    memset(block, 7, sizeof block);
    for (int64_t at = 0; at < bytes; at += (int64_t)sizeof block)
        assert_true(fwrite(block, 1, sizeof block, file) == sizeof block);
    assert_int_equal(fclose(file), 0);
}

static bool in_memory(const char *path)
{
    struct statfs about;

    return statfs(path, &about) == 0 && (unsigned long)about.f_type == TMPFS;
}

/* Under `ulimit -v` residency is unknown, without an error. */
static void no_address_space(void **state)
{
    char path[600];
    struct lb_files files = {0};
    struct lb_residency there;
    stk_error err;

    (void)state;
    snprintf(path, sizeof path, "%s/narrow", folder);
    write_file(path, BYTES);
    assert_int_equal(lb_files_add(&files, path, &err), STK_OK);
    stkt_fail_maps(1);
    assert_int_equal(lb_residency_read(&files, &there, &err), STK_OK);
    assert_false(there.known);
    assert_non_null(strstr(there.why, "address space"));
    assert_int_equal(lb_residency_read(&files, &there, &err), STK_OK);
    assert_true(there.known);
    lb_files_fini(&files);
}

/* Residency is checked after evicting and after reading. If the file system keeps pages (because it is in memory), a
 * cold run must be rejected. */
static void evicted_and_read(void **state)
{
    char path[600];
    struct lb_files files = {0};
    struct lb_residency there;
    stk_error err;

    (void)state;
    snprintf(path, sizeof path, "%s/x", folder);
    write_file(path, BYTES); /* dirty pages, which must be written first */
    assert_int_equal(lb_files_add(&files, path, &err), STK_OK);
    assert_int_equal(files.count, 1);
    assert_int_equal(files.bytes, BYTES);
    assert_int_equal(lb_residency_read(&files, &there, &err), STK_OK);
    assert_true(there.known);
    assert_int_equal(there.bytes, BYTES);
    assert_int_equal(there.resident_bytes, BYTES);
    const stk_status status = lb_cache_drop(&files, &err);
    if (in_memory(path)) {
        assert_int_equal(status, STK_E_UNSUPPORTED);
        assert_non_null(strstr(err.message, "would not be cold"));
    } else if (status == STK_OK) {
        assert_int_equal(lb_residency_read(&files, &there, &err), STK_OK);
        assert_true(there.known && lb_residency_share(&there) <= LB_COLD_SHARE);
        assert_int_equal(lb_cache_fill(&files, &err), STK_OK);
        assert_int_equal(lb_residency_read(&files, &there, &err), STK_OK);
        assert_int_equal(there.resident_bytes, BYTES);
    } else {
        assert_int_equal(status, STK_E_UNSUPPORTED); /* other file systems that keep pages */
    }
    lb_files_fini(&files);
}

/* Half of a file, selected by an explicit range. */
static void half_of_a_file(void **state)
{
    char path[600];
    struct lb_residency there = {.known = true};
    stk_error err;

    (void)state;
    snprintf(path, sizeof path, "%s/half", folder);
    write_file(path, BYTES);
    const int descriptor = open(path, O_RDONLY);
    assert_true(descriptor >= 0);
    if (!in_memory(path)) {
        fsync(descriptor);
        posix_fadvise(descriptor, 0, BYTES / 2, POSIX_FADV_DONTNEED);
        assert_int_equal(lb_residency_of(descriptor, path, 0, BYTES, &there, &err), STK_OK);
        assert_true(there.resident_bytes >= BYTES / 2 && there.bytes == BYTES);
        there = (struct lb_residency){.known = true};
        assert_int_equal(lb_residency_of(descriptor, path, BYTES / 2, BYTES / 2, &there, &err), STK_OK);
        assert_int_equal(there.resident_bytes, BYTES / 2);
    }
    close(descriptor);
}

/* Pages that a process has mapped and accessed stay resident, so a cold run is rejected. */
static void mapped_pages_stay(void **state)
{
    char path[600];
    struct lb_files files = {0};
    stk_error err;
    volatile char sum = 0;

    (void)state;
    snprintf(path, sizeof path, "%s/mapped", folder);
    write_file(path, BYTES);
    const int descriptor = open(path, O_RDONLY);
    char *map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, descriptor, 0);
    assert_true(map != MAP_FAILED);
    for (int at = 0; at < BYTES; at += 4096)
        sum = (char)(sum + map[at]);
    assert_int_equal(lb_files_add(&files, path, &err), STK_OK);
    assert_int_equal(lb_cache_drop(&files, &err), STK_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "still in memory"));
    munmap(map, BYTES);
    close(descriptor);
    lb_files_fini(&files);
}

static void in_folders(void **state)
{
    char path[600];
    struct lb_files files = {0};
    struct lb_residency there;
    stk_error err;

    (void)state;
    snprintf(path, sizeof path, "%s/set", folder);
    assert_int_equal(mkdir(path, 0777), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/set/%d", folder, i);
        assert_int_equal(mkdir(path, 0777), 0);
        snprintf(path, sizeof path, "%s/set/%d/a.jpg", folder, i);
        write_file(path, 65536);
        snprintf(path, sizeof path, "%s/set/%d/.hidden", folder, i);
        write_file(path, 65536);
    }
    snprintf(path, sizeof path, "%s/set", folder);
    assert_int_equal(lb_files_add(&files, path, &err), STK_OK);
    assert_int_equal(files.count, 3);
    assert_int_equal(files.bytes, 3 * 65536);
    assert_int_equal(lb_residency_read(&files, &there, &err), STK_OK);
    assert_int_equal(there.asked, 3);
    assert_int_equal(there.resident_bytes, 3 * 65536);
    lb_files_fini(&files);
}

/* No files, a path that does not exist, and more bytes than memory. */
static void missing_files(void **state)
{
    struct lb_files files = {0};
    struct lb_residency there;
    stk_error err;

    (void)state;
    assert_int_equal(lb_residency_read(&files, &there, &err), STK_OK);
    assert_false(there.known);
    assert_int_equal(lb_cache_drop(&files, &err), STK_E_UNSUPPORTED);
    assert_int_equal(lb_files_add(&files, "/nowhere/at/all", &err), STK_OK);
    assert_int_equal(files.count, 0);
    files.bytes = INT64_MAX / 2;
    assert_int_equal(lb_cache_fill(&files, &err), STK_E_LIMIT);
    assert_non_null(strstr(err.message, "--cache=warm"));
}

/* Runs in a child process that may only read the file. Returns 0 if residency is unknown and a cold run is rejected. */
static int ask_as_nobody(const char *path)
{
    const pid_t child = fork();
    int result = 1;

    if (child == 0) {
        struct lb_files files = {0};
        struct lb_residency there;
        if (setegid(65534) != 0 || seteuid(65534) != 0)
            _exit(77);
        if (lb_files_add(&files, path, NULL) != STK_OK || files.count != 1)
            _exit(2);
        if (lb_residency_read(&files, &there, NULL) != STK_OK || there.known || !strstr(there.why, path))
            _exit(3);
        _exit(lb_cache_drop(&files, NULL) == STK_E_UNSUPPORTED ? 0 : 4);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    return WIFEXITED(result) ? WEXITSTATUS(result) : 1000 + WTERMSIG(result);
}

static void files_of_other_users(void **state)
{
    char path[600];

    (void)state;
    if (geteuid() != 0) {
        skip();
        return;
    }
    chmod(folder, 0755);
    snprintf(path, sizeof path, "%s/others", folder);
    write_file(path, 65536);
    chmod(path, 0644);
    assert_int_equal(ask_as_nobody(path), 0);
}

static int begin(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : 1;
}

static int end(void **state)
{
    char command[700];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evicted_and_read), cmocka_unit_test(half_of_a_file), cmocka_unit_test(mapped_pages_stay),
        cmocka_unit_test(in_folders),       cmocka_unit_test(missing_files),  cmocka_unit_test(files_of_other_users),
        cmocka_unit_test(no_address_space),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
