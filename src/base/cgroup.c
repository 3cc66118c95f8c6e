/* cgroup.c: see cgroup.h. Every group from the process's own up to the mounted root limits the process. In a container
 * the root is the container's own group, and the path in the membership file may not exist below it; files that do not
 * exist are skipped. */
#include "cgroup.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_ROOM = 4608 };

/* Called for the directory of each group. `second`: cgroup version 2. */
typedef struct group_visitor {
    const char *controller; /* version 1: the name of its hierarchy */
    void (*visit)(const char *directory, bool second, void *out);
    void *out;
} group_visitor;

static FILE *open_in(const char *directory, const char *name)
{
    char path[PATH_ROOM];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    return fopen(path, "re");
}

static bool read_line(const char *directory, const char *name, char *line, int size)
{
    FILE *file = open_in(directory, name);
    bool read = file && fgets(line, size, file);

    if (file)
        fclose(file);
    return read;
}

/* Reads the number in a file. -1: there is no such file, or it says "max". */
static int64_t read_number(const char *directory, const char *name)
{
    char line[64];
    int64_t value;

    return read_line(directory, name, line, sizeof line) && sscanf(line, "%" SCNd64, &value) == 1 && value >= 0 ? value
                                                                                                                : -1;
}

/* Reads the number after `key` in a file of lines "KEY NUMBER". 0: there is none. */
static int64_t read_keyed(const char *directory, const char *name, const char *key)
{
    char line[128];
    int64_t value = 0;
    const size_t length = strlen(key);
    FILE *file = open_in(directory, name);

    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, length) == 0 && line[length] == ' ') {
            value = strtoll(line + length, NULL, 10);
            break;
        }
    if (file)
        fclose(file);
    return value;
}

/* ---- the groups ---- */

/* Visits `group` ("/a/b") below `root` and all its ancestors, up to `root` itself. */
static void visit_above(const char *root, const char *group, bool second, const group_visitor *visitor)
{
    char left[4096], directory[4400], *slash;

    snprintf(left, sizeof left, "%s", group);
    while ((slash = strrchr(left, '/'))) {
        if (slash[1]) {
            snprintf(directory, sizeof directory, "%s%s", root, left);
            visitor->visit(directory, second, visitor->out);
        }
        *slash = '\0';
    }
    visitor->visit(root, second, visitor->out);
}

/* Whether a list such as "cpuacct,cpu" has the controller. */
static bool has_controller(const char *controllers, size_t length, const char *controller)
{
    const size_t wanted = strlen(controller);
    size_t at, word;

    for (at = 0; at < length; at += word + 1) {
        word = strcspn(controllers + at, ",:");
        if (word == wanted && strncmp(controllers + at, controller, word) == 0)
            return true;
    }
    return false;
}

/* Visits the groups of a line "HIERARCHY:CONTROLLERS:PATH". Version 2 is hierarchy 0 without controllers; if version 1
 * is in use as well, version 2 is mounted at "unified". */
static void visit_line(char *line, const char *mount, const group_visitor *visitor)
{
    char root[256];
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;

    if (!group || strlen(mount) > 200)
        return;
    controllers++;
    group++;
    group[strcspn(group, "\n")] = '\0';
    if (strncmp(line, "0::", 3) == 0) {
        visit_above(mount, group, true, visitor);
        snprintf(root, sizeof root, "%s/unified", mount);
        visit_above(root, group, true, visitor);
    } else if (has_controller(controllers, (size_t)(group - 1 - controllers), visitor->controller)) {
        snprintf(root, sizeof root, "%s/%s", mount, visitor->controller); /* may be a symbolic link to cpu,cpuacct */
        visit_above(root, group, false, visitor);
    }
}

static void visit_all(const char *membership, const char *mount, const group_visitor *visitor)
{
    char line[4096];
    FILE *file = fopen(membership, "re");

    while (file && fgets(line, sizeof line, file))
        visit_line(line, mount, visitor);
    if (file)
        fclose(file);
}

/* ---- processors ---- */

static double ratio(const char *quota, const char *period)
{
    long long q = strtoll(quota, NULL, 10), p = strtoll(period, NULL, 10); /* "max" and -1: no limit */

    return q > 0 && p > 0 ? (double)q / (double)p : 0;
}

/* Returns the quota in processors; 0: unlimited. Version 2 has "QUOTA PERIOD" in one file. */
static double quota_of(const char *directory, bool second)
{
    char quota[128], period[64];
    const char *space;

    if (second)
        return read_line(directory, "cpu.max", quota, sizeof quota) && (space = strchr(quota, ' '))
                   ? ratio(quota, space)
                   : 0;
    return read_line(directory, "cpu.cfs_quota_us", quota, sizeof quota) &&
                   read_line(directory, "cpu.cfs_period_us", period, sizeof period)
               ? ratio(quota, period)
               : 0;
}

static void visit_cpu(const char *directory, bool second, void *context)
{
    stki_cgroup_cpu *out = context;
    const double quota = quota_of(directory, second);

    if (quota <= 0 || (out->quota > 0 && quota >= out->quota))
        return;
    out->quota = quota;
    out->periods = read_keyed(directory, "cpu.stat", "nr_periods");
    out->throttled = read_keyed(directory, "cpu.stat", "nr_throttled");
    out->throttled_ns = second ? read_keyed(directory, "cpu.stat", "throttled_usec") * 1000
                               : read_keyed(directory, "cpu.stat", "throttled_time");
}

void stki_cgroup_cpu_read(const char *membership, const char *mount, stki_cgroup_cpu *out)
{
    *out = (stki_cgroup_cpu){0};
    visit_all(membership, mount, &(const group_visitor){"cpu", visit_cpu, out});
}

double stki_cgroup_cpu_quota(const char *membership, const char *mount)
{
    stki_cgroup_cpu cpu;

    stki_cgroup_cpu_read(membership, mount, &cpu);
    return cpu.quota;
}

/* ---- memory ---- */

/* Returns -1 if there is no limit, which version 1 reports as a number near 2^63. */
static int64_t limit_of(const char *directory, bool second)
{
    const int64_t none = INT64_C(1) << 62;
    int64_t most = read_number(directory, second ? "memory.max" : "memory.limit_in_bytes"), high;

    if (most >= none)
        most = -1;
    high = second ? read_number(directory, "memory.high") : -1; /* above this limit the kernel throttles the group */
    return high >= 0 && (most < 0 || high < most) ? high : most;
}

/* The clean page cache: active and inactive file pages, minus dirty pages and those under writeback. These counters do
 * not include shared memory. */
static int64_t reclaimable(const char *directory, bool second)
{
    static const char *const keys[2][4] = {
        {"total_active_file", "total_inactive_file", "total_dirty", "total_writeback"},
        {"active_file", "inactive_file", "file_dirty", "file_writeback"},
    };
    int64_t bytes = 0;

    for (int i = 0; i < 4; i++)
        bytes += (i < 2 ? 1 : -1) * read_keyed(directory, "memory.stat", keys[second][i]);
    return bytes > 0 ? bytes : 0;
}

static void visit_memory(const char *directory, bool second, void *context)
{
    stki_cgroup_memory *out = context;
    const int64_t limit = limit_of(directory, second);
    const int64_t used = read_number(directory, second ? "memory.current" : "memory.usage_in_bytes");
    int64_t left;

    if (limit < 0)
        return;
    out->limit = out->limit < 0 || limit < out->limit ? limit : out->limit;
    left = limit - (used > 0 ? used : 0) + reclaimable(directory, second);
    left = left < 0 ? 0 : left < limit ? left : limit;
    out->free = out->free < 0 || left < out->free ? left : out->free;
}

void stki_cgroup_memory_read(const char *membership, const char *mount, stki_cgroup_memory *out)
{
    *out = (stki_cgroup_memory){-1, -1};
    visit_all(membership, mount, &(const group_visitor){"memory", visit_memory, out});
}
