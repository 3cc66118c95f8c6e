/* Tests of finding the file system of a path and the GPU's link, from files in the form in which the system writes
 * them. */
#include "loadbench_place.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/stoker_place_XXXXXX";

static void write_text(const char *name, const char *text)
{
    char path[600];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *at = path + strlen(folder) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(path, 0777);
        *at = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void longest_mount(void **state)
{
    char text[2000], mounts[600], data[600];
    struct lb_place place;

    (void)state;
    snprintf(text, sizeof text,
             "20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
             "21 20 0:30 / /tmp rw - tmpfs tmpfs rw\n"
             "22 21 259:2 /sub %s/the\\040data rw - xfs /dev/nvme0n1p2 rw\n"
             "23 21 259:3 / %s/the rw - ext4 /dev/other rw\n"
             "a line of another kind\n",
             folder, folder);
    write_text("mountinfo", text);
    write_text("the data/x.npy", "x");
    snprintf(mounts, sizeof mounts, "%s/mountinfo", folder);
    snprintf(data, sizeof data, "%s/the data/x.npy", folder);
    lb_place_read(data, mounts, &place);
    assert_string_equal(place.type, "xfs");
    assert_string_equal(place.source, "/dev/nvme0n1p2");
    /* a file beside the mount point belongs to the mount above */
    write_text("beside", "x");
    snprintf(data, sizeof data, "%s/beside", folder);
    lb_place_read(data, mounts, &place);
    assert_string_equal(place.type, "tmpfs");
}

static void nothing_is_found(void **state)
{
    struct lb_place place;
    struct lb_gpu gpu;

    (void)state;
    lb_place_read("/nowhere", "/proc/self/mountinfo", &place);
    assert_string_equal(place.type, "");
    lb_place_read("/", "/nowhere", &place);
    assert_string_equal(place.type, "");
    lb_place_read("/", "/proc/self/mountinfo", &place);
    assert_string_equal(place.mount, "/");
    assert_true(place.type[0]);
    lb_gpu_read("cuda:99", "/sys", &gpu);
    assert_string_equal(gpu.model, "");
    assert_int_equal(gpu.link_width, -1);
    lb_gpu_read("host", "/sys", &gpu);
    assert_true(gpu.model[0]);
    assert_string_equal(gpu.bus, "");
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
        cmocka_unit_test(longest_mount),
        cmocka_unit_test(nothing_is_found),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
