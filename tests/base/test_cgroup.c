/* Tests of CPU quotas and memory limits of control groups (versions 1 and 2), read from trees of files that the test
 * writes. The expected limits follow from the written numbers. */
#include "cgroup.h"
#include "cmocka_all.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[64];

static void write_file(const char *path, const char *text)
{
    char whole[512], *slash;
    FILE *file;

    snprintf(whole, sizeof whole, "%s/%s", root, path);
    for (slash = strchr(whole + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(whole, 0777);
        *slash = '/';
    }
    file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int fresh_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/stkt_cgroup_XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command) == 0 ? 0 : -1;
}

static void assert_quota(const char *membership, double expected)
{
    char path[128], mount[128];
    double quota;

    write_file("membership", membership);
    snprintf(path, sizeof path, "%s/membership", root);
    snprintf(mount, sizeof mount, "%s/cgroup", root);
    quota = stki_cgroup_cpu_quota(path, mount);
    if (!(quota > expected - 1e-9 && quota < expected + 1e-9))
        fail_msg("found %g, expected %g", quota, expected);
}

static void no_files_no_quota(void **state)
{
    (void)state;
    assert_quota("", 0);
    assert_quota("0::/\n", 0);
    assert_quota("0::/a/b\n", 0);
    assert_quota("nonsense\n:\n::\n0:\n", 0);
    assert_true(stki_cgroup_cpu_quota("/nonexistent/membership", "/nonexistent") <= 0);
}

static void version_2(void **state)
{
    (void)state;
    write_file("cgroup/a/b/cpu.max", "max 100000\n");
    assert_quota("0::/a/b\n", 0);
    write_file("cgroup/a/cpu.max", "350000 100000\n");
    assert_quota("0::/a/b\n", 3.5);
    write_file("cgroup/a/b/cpu.max", "50000 100000\n");
    assert_quota("0::/a/b\n", 0.5);
    assert_quota("0::/a\n", 3.5);
    assert_quota("0::/a/c\n", 3.5); /* the group itself has no files */
    write_file("cgroup/a/b/cpu.max", "800000 100000\n");
    assert_quota("0::/a/b\n", 3.5); /* the parent's quota is tighter */
}

/* In a container, the group that limits the process is the root of the mount. */
static void version_2_root_of_a_container(void **state)
{
    (void)state;
    write_file("cgroup/cpu.max", "200000 100000\n");
    assert_quota("0::/\n", 2);
    assert_quota("0::/../other/x\n", 2);
    assert_quota("0::/a/b\n", 2);
}

static void version_1(void **state)
{
    (void)state;
    write_file("cgroup/cpu/docker/x/cpu.cfs_quota_us", "-1\n");
    write_file("cgroup/cpu/docker/x/cpu.cfs_period_us", "100000\n");
    write_file("cgroup/cpu/docker/cpu.cfs_quota_us", "150000\n");
    write_file("cgroup/cpu/docker/cpu.cfs_period_us", "100000\n");
    assert_quota("12:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n1:name=systemd:/docker/x\n", 1.5);
    assert_quota("4:cpuacct,cpu:/docker/x\n", 1.5);
    assert_quota("4:cpuacct,cpuset:/docker/x\n", 0);
    write_file("cgroup/cpu/cpu.cfs_quota_us", "100000\n");
    write_file("cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_quota("4:cpu:/docker/x\n", 1);
}

static void broken_numbers_set_nothing(void **state)
{
    (void)state;
    write_file("cgroup/a/cpu.max", "");
    assert_quota("0::/a\n", 0);
    write_file("cgroup/a/cpu.max", "100000\n");
    assert_quota("0::/a\n", 0);
    write_file("cgroup/a/cpu.max", "100000 0\n");
    assert_quota("0::/a\n", 0);
    write_file("cgroup/a/cpu.max", "-5 -5\n");
    assert_quota("0::/a\n", 0);
}

static void throttling(void **state)
{
    stki_cgroup_cpu cpu;
    char path[128], mount[128];

    (void)state;
    snprintf(path, sizeof path, "%s/membership", root);
    snprintf(mount, sizeof mount, "%s/cgroup", root);
    write_file("membership", "4:cpu:/x\n");
    write_file("cgroup/cpu/x/cpu.cfs_quota_us", "50000\n");
    write_file("cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
    write_file("cgroup/cpu/x/cpu.stat", "nr_periods 200\nnr_throttled 167\nthrottled_time 8000000000\n");
    stki_cgroup_cpu_read(path, mount, &cpu);
    assert_true(cpu.quota > 0.49 && cpu.quota < 0.51);
    assert_int_equal(cpu.periods, 200);
    assert_int_equal(cpu.throttled, 167);
    assert_int_equal(cpu.throttled_ns, 8000000000);
    write_file("membership", "0::/x\n");
    write_file("cgroup/x/cpu.max", "50000 100000\n");
    write_file("cgroup/x/cpu.stat",
               "usage_usec 5\nnr_periods 20\nnr_throttled 7\nthrottled_usec 300000\nnr_bursts 0\n");
    stki_cgroup_cpu_read(path, mount, &cpu);
    assert_int_equal(cpu.throttled, 7);
    assert_int_equal(cpu.throttled_ns, 300000000);
}

/* ---- memory ---- */

#define MIB (INT64_C(1) << 20)

static void assert_memory(const char *membership, int64_t limit, int64_t left)
{
    stki_cgroup_memory memory;
    char path[128], mount[128];

    write_file("membership", membership);
    snprintf(path, sizeof path, "%s/membership", root);
    snprintf(mount, sizeof mount, "%s/cgroup", root);
    stki_cgroup_memory_read(path, mount, &memory);
    assert_int_equal(memory.limit, limit);
    assert_int_equal(memory.free, left);
}

static void write_number(const char *path, int64_t number)
{
    char text[32];

    snprintf(text, sizeof text, "%lld\n", (long long)number);
    write_file(path, text);
}

/* A group with a limit of 8 GiB that holds 7 GiB of page cache, 512 MiB of it dirty or under writeback, and 900 MiB of
 * its own memory. */
static void memory_version_2(void **state)
{
    char text[512];

    (void)state;
    assert_memory("0::/a/b\n", -1, -1);
    write_file("cgroup/a/b/memory.max", "max\n");
    write_number("cgroup/a/b/memory.current", 100 * MIB);
    assert_memory("0::/a/b\n", -1, -1);
    write_number("cgroup/a/memory.max", 8192 * MIB);
    write_number("cgroup/a/memory.current", 8068 * MIB);
    snprintf(text, sizeof text,
             "anon %lld\nfile %lld\nshmem %lld\nfile_mapped 5\nfile_dirty %lld\nfile_writeback %lld\ninactive_anon 7\n"
             "active_anon 8\ninactive_file %lld\nactive_file %lld\nunevictable 0\n",
             (long long)(900 * MIB), (long long)(7168 * MIB), (long long)(100 * MIB), (long long)(500 * MIB),
             (long long)(12 * MIB), (long long)(4000 * MIB), (long long)(3068 * MIB));
    write_file("cgroup/a/memory.stat", text);
    assert_memory("0::/a/b\n", 8192 * MIB, (8192 - 8068 + 4000 + 3068 - 512) * MIB);
    write_number("cgroup/memory.max", 4096 * MIB); /* a group above both, like the root of a container's mount */
    write_number("cgroup/memory.current", 4000 * MIB);
    assert_memory("0::/a/b\n", 4096 * MIB, 96 * MIB);
    /* memory.high applies even if memory.max is unlimited; usage already exceeds it */
    write_number("cgroup/a/b/memory.high", 50 * MIB);
    assert_memory("0::/a/b\n", 50 * MIB, 0);
    assert_memory("0::/elsewhere\n", 4096 * MIB, 96 * MIB);
}

static void memory_version_1(void **state)
{
    (void)state;
    write_file("cgroup/memory/docker/x/memory.limit_in_bytes", "9223372036854771712\n"); /* unlimited */
    write_number("cgroup/memory/docker/x/memory.usage_in_bytes", 10 * MIB);
    assert_memory("4:memory:/docker/x\n0::/\n", -1, -1);
    write_number("cgroup/memory/docker/memory.limit_in_bytes", 250 * MIB);
    write_number("cgroup/memory/docker/memory.usage_in_bytes", 245 * MIB);
    write_file("cgroup/memory/docker/memory.stat",
               "cache 1\nactive_file 4096\ninactive_file 4096\ntotal_dirty 1048576\ntotal_writeback 0\n"
               "total_inactive_file 104857600\ntotal_active_file 52428800\n");
    assert_memory("4:memory:/docker/x\n0::/\n", 250 * MIB, (5 + 150 - 1) * MIB);
    assert_memory("9:cpu,cpuacct:/y\n4:memory:/docker/x\n", 250 * MIB, (5 + 150 - 1) * MIB);
}

/* A real group of version 1, if the test may create one: a process with a limit of 64 MiB writes a file of 24 MiB,
 * whose pages are counted as used but can be reclaimed. */
static void memory_of_a_real_group(void **state)
{
    enum { LIMIT = 64, FILE_MIB = 24 };
    char group[128], path[192];
    pid_t child;
    int result, status = -1;

    (void)state;
    snprintf(group, sizeof group, "/sys/fs/cgroup/memory/stoker-test-%d", (int)getpid());
    if (mkdir(group, 0755) != 0) {
        print_message("not tested: no control group can be created here\n");
        return;
    }
    child = fork();
    if (child == 0) {
        static char block[1 << 20];
        stki_cgroup_memory memory;
        FILE *file;

        snprintf(path, sizeof path, "%s/memory.limit_in_bytes", group);
        if (!(file = fopen(path, "w")) || fprintf(file, "%lld", (long long)(LIMIT * MIB)) < 0 || fclose(file))
            _exit(90);
        snprintf(path, sizeof path, "%s/cgroup.procs", group);
        if (!(file = fopen(path, "w")) || fprintf(file, "%d", (int)getpid()) < 0 || fclose(file))
            _exit(91);
        snprintf(path, sizeof path, "%s/file", root);
        if (!(file = fopen(path, "w")))
            _exit(92);
        for (int i = 0; i < FILE_MIB; i++)
            if (fwrite(block, 1, sizeof block, file) != sizeof block)
                _exit(93);
        if (fflush(file) || fsync(fileno(file)) || fclose(file))
            _exit(94);
        stki_cgroup_memory_read(STKI_CGROUP_MEMBERSHIP, STKI_CGROUP_MOUNT, &memory);
        _exit(memory.limit != LIMIT * MIB                  ? 95
              : memory.free < (LIMIT - FILE_MIB / 2) * MIB ? 96
              : memory.free > LIMIT * MIB                  ? 97
                                                           : 0);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    status = WIFEXITED(result) ? WEXITSTATUS(result) : 1000;
    rmdir(group);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_files_no_quota, fresh_root, remove_root),
        cmocka_unit_test_setup_teardown(version_2, fresh_root, remove_root),
        cmocka_unit_test_setup_teardown(version_2_root_of_a_container, fresh_root, remove_root),
        cmocka_unit_test_setup_teardown(version_1, fresh_root, remove_root),
        cmocka_unit_test_setup_teardown(broken_numbers_set_nothing, fresh_root, remove_root),
        cmocka_unit_test_setup_teardown(throttling, fresh_root, remove_root),
        cmocka_unit_test_setup_teardown(memory_version_2, fresh_root, remove_root),
        cmocka_unit_test_setup_teardown(memory_version_1, fresh_root, remove_root),
        cmocka_unit_test_setup_teardown(memory_of_a_real_group, fresh_root, remove_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
