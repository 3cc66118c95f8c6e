/* test_cgroup.c: CPU quotas out of made-up control group trees. */
#include "cgroup.h"
#include "cmocka_all.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
    assert_quota("0::/a/c\n", 3.5); /* not there itself */
    write_file("cgroup/a/b/cpu.max", "800000 100000\n");
    assert_quota("0::/a/b\n", 3.5); /* the one above is tighter */
}

/* In a container the group that limits it is the root of the mount. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_files_no_quota, fresh_root, remove_root),
        cmocka_unit_test_setup_teardown(version_2, fresh_root, remove_root),
        cmocka_unit_test_setup_teardown(version_2_root_of_a_container, fresh_root, remove_root),
        cmocka_unit_test_setup_teardown(version_1, fresh_root, remove_root),
        cmocka_unit_test_setup_teardown(broken_numbers_set_nothing, fresh_root, remove_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
