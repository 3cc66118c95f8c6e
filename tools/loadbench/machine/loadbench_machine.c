/* loadbench_machine.c: reads /proc and /sys. A property that cannot be read is reported as unknown and is not an error,
 * because the result is useful without it. */
#include "loadbench_machine.h"
#include "allocate.h"
#include "cgroup.h"
#include "clock.h"
#include "thread.h"
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Finds the text after "KEY" and ':' on the first line that starts with KEY. */
static bool find_line(const char *path, const char *key, char *out, int size)
{
    char line[512];
    FILE *file = fopen(path, "re");
    bool found = false;

    while (file && !found && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, key, strlen(key)) != 0 || !colon)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(out, (size_t)size, "%s", colon);
        found = true;
    }
    if (file)
        fclose(file);
    return found;
}

/* Reads a number with its unit: "12 kB" is 12288. -1: not found. */
static int64_t find_bytes(const char *path, const char *key)
{
    char text[64], unit[8] = "";
    long long value = 0;

    if (!find_line(path, key, text, sizeof text) || sscanf(text, "%lld %7s", &value, unit) < 1)
        return -1;
    return strcmp(unit, "kB") == 0 ? value * 1024 : value;
}

static bool read_first_line(const char *path, char *out, int size)
{
    FILE *file = fopen(path, "re");
    bool found = file && fgets(out, size, file);

    if (found)
        out[strcspn(out, "\n")] = '\0';
    if (file)
        fclose(file);
    return found;
}

int64_t lb_cache_bytes(void)
{
    int64_t largest = 0;

    for (int i = 0; i < 8; i++) {
        char path[96], text[32];
        int64_t kib = 0;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        if (read_first_line(path, text, sizeof text) && sscanf(text, "%" SCNd64 "K", &kib) == 1 && kib * 1024 > largest)
            largest = kib * 1024;
    }
    return largest;
}

static void read_huge_pages(char *out, int size)
{
    char line[96] = "";
    const char *begin, *end;

    snprintf(out, (size_t)size, "unknown");
    if (!read_first_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line))
        return;
    begin = strchr(line, '['); /* "always [madvise] never" */
    end = begin ? strchr(begin, ']') : NULL;
    if (end)
        snprintf(out, (size_t)size, "%.*s", (int)(end - begin - 1), begin + 1);
}

void lb_machine_read(struct lb_machine *out)
{
    stki_cgroup_memory group;
    struct utsname names;

    memset(out, 0, sizeof *out);
    if (!find_line("/proc/cpuinfo", "model name", out->cpu, sizeof out->cpu) &&
        !find_line("/proc/cpuinfo", "Model", out->cpu, sizeof out->cpu))
        snprintf(out->cpu, sizeof out->cpu, "unknown");
    snprintf(out->kernel, sizeof out->kernel, "unknown");
    if (uname(&names) == 0) {
        snprintf(out->kernel, sizeof out->kernel, "%.40s %.80s", names.sysname, names.release);
        snprintf(out->architecture, sizeof out->architecture, "%.31s", names.machine);
    }
    read_huge_pages(out->huge_pages, sizeof out->huge_pages);
    stki_cgroup_memory_read(STKI_CGROUP_MEMBERSHIP, STKI_CGROUP_MOUNT, &group);
    out->cpu_quota = stki_cgroup_cpu_quota(STKI_CGROUP_MEMBERSHIP, STKI_CGROUP_MOUNT);
    out->memory_limit = group.limit;
    out->cores_allowed = stki_cpu_count();
    out->cores_online = sysconf(_SC_NPROCESSORS_ONLN);
    out->memory_bytes = find_bytes("/proc/meminfo", "MemTotal");
    out->memory_available_bytes = lb_memory_available();
    out->cache_bytes = lb_cache_bytes();
}

int64_t lb_memory_available(void)
{
    const int64_t bytes = find_bytes("/proc/meminfo", "MemAvailable"), left = bytes > 0 ? bytes : INT64_C(1) << 30;
    stki_cgroup_memory group;

    stki_cgroup_memory_read(STKI_CGROUP_MEMBERSHIP, STKI_CGROUP_MOUNT, &group);
    return group.free >= 0 && group.free < left ? group.free : left;
}

int64_t lb_timeval_ns(struct timeval value)
{
    return value.tv_sec * STKI_SECOND + value.tv_usec * INT64_C(1000);
}

/* Reads the line "read_bytes: N" of /proc/self/io. The file stays open, because it is read for every interval. */
static int64_t read_disk_bytes(void)
{
    static int descriptor = -2; /* -2: not yet opened; used by one thread only */
    char text[512];
    const char *line;

    if (descriptor == -2)
        descriptor = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    const ssize_t got = descriptor >= 0 ? pread(descriptor, text, sizeof text - 1, 0) : -1;
    if (got <= 0)
        return -1;
    text[got] = '\0';
    line = strstr(text, "\nread_bytes: ");
    return line ? strtoll(line + sizeof "\nread_bytes: " - 1, NULL, 10) : -1;
}

/* ---- worker processes ---- */

static bool with_children;

void lb_count_children(bool on)
{
    with_children = on;
}

enum { DEPTH = 8, PATH_BYTES = 96 };

static int64_t tree_ns(const char *process, int depth);

/* Returns the CPU time of the processes started by a thread. */
static int64_t children_of(const char *path, int depth)
{
    FILE *const file = fopen(path, "re");
    int64_t sum = 0;
    int pid;

    while (file && fscanf(file, "%d", &pid) == 1) {
        char child[PATH_BYTES];
        snprintf(child, sizeof child, "/proc/%d", pid);
        sum += tree_ns(child, depth + 1);
    }
    if (file)
        fclose(file);
    return sum;
}

/* CPU time of a process and of the children it has waited for: fields 14 to 17 of stat, after the name, which may
 * contain any characters. */
static int64_t process_ns(const char *process)
{
    char path[PATH_BYTES + 8], text[1024];
    unsigned long long user = 0, system = 0;
    long long ended_user = 0, ended_system = 0;
    const long steps = sysconf(_SC_CLK_TCK);

    snprintf(path, sizeof path, "%s/stat", process);
    if (steps < 1 || !read_first_line(path, text, sizeof text))
        return 0; /* the process has just exited */
    const char *const name_end = strrchr(text, ')');
    if (!name_end || sscanf(name_end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld", &user,
                            &system, &ended_user, &ended_system) != 4)
        return 0;
    return ((int64_t)(user + system) + ended_user + ended_system) * (STKI_SECOND / steps);
}

/* CPU time of a process and its descendants; for this process (depth 0), only the descendants. */
static int64_t tree_ns(const char *process, int depth)
{
    char path[PATH_BYTES + 8];
    int64_t sum = depth > 0 ? process_ns(process) : 0;

    snprintf(path, sizeof path, "%s/task", process);
    DIR *const tasks = depth < DEPTH ? opendir(path) : NULL;
    for (const struct dirent *task; tasks && (task = readdir(tasks)) != NULL;) {
        char list[PATH_BYTES + 300];
        if (task->d_name[0] == '.')
            continue;
        snprintf(list, sizeof list, "%s/task/%s/children", process, task->d_name);
        sum += children_of(list, depth);
    }
    if (tasks)
        closedir(tasks);
    return sum;
}

int64_t lb_children_ns(void)
{
    struct rusage ended;

    if (!with_children || getrusage(RUSAGE_CHILDREN, &ended) != 0)
        return 0;
    return lb_timeval_ns(ended.ru_utime) + lb_timeval_ns(ended.ru_stime) + tree_ns("/proc/self", 0);
}

void lb_usage_read(struct lb_usage *out)
{
    struct rusage usage;

    memset(out, 0, sizeof *out);
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        out->user_ns = lb_timeval_ns(usage.ru_utime);
        out->system_ns = lb_timeval_ns(usage.ru_stime);
        out->voluntary_switches = usage.ru_nvcsw;
        out->involuntary_switches = usage.ru_nivcsw;
        out->minor_faults = usage.ru_minflt;
        out->major_faults = usage.ru_majflt;
    }
    out->user_ns += lb_children_ns();
    out->disk_bytes = with_children ? -1 : read_disk_bytes(); /* unknown for other processes */
    for (int kind = 0; kind < STKI_MEM_KINDS; kind++) {
        stki_memory_stats stats;
        stki_memory_read((enum stki_memory_kind)kind, &stats);
        out->allocations += stats.total_allocations;
    }
}

struct lb_usage lb_usage_since(const struct lb_usage *now, const struct lb_usage *before)
{
    return (struct lb_usage){
        .user_ns = now->user_ns - before->user_ns,
        .system_ns = now->system_ns - before->system_ns,
        .voluntary_switches = now->voluntary_switches - before->voluntary_switches,
        .involuntary_switches = now->involuntary_switches - before->involuntary_switches,
        .minor_faults = now->minor_faults - before->minor_faults,
        .major_faults = now->major_faults - before->major_faults,
        .disk_bytes = now->disk_bytes < 0 || before->disk_bytes < 0 ? -1 : now->disk_bytes - before->disk_bytes,
        .allocations = now->allocations - before->allocations,
    };
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Uses the median of many short series of readings, so that series in which the thread was preempted have no effect. */
struct lb_timer lb_timer_measure(void)
{
    enum { ROWS = 201, READINGS = 100 };
    struct lb_timer out = {.resolution_ns = INT64_MAX};
    int64_t rows[ROWS];

    for (int row = 0; row < ROWS; row++) {
        const int64_t begin = stki_now_ns();
        int64_t last = begin;
        for (int i = 0; i < READINGS; i++) {
            const int64_t now = stki_now_ns();
            if (now > last && now - last < out.resolution_ns)
                out.resolution_ns = now - last;
            last = now;
        }
        rows[row] = last - begin;
    }
    qsort(rows, ROWS, sizeof rows[0], compare);
    out.overhead_ns = (double)rows[ROWS / 2] / READINGS;
    return out;
}

void lb_memory_reset_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "we");

    if (file) {
        fputs("5\n", file); /* resets only VmHWM */
        fclose(file);
    }
}

void lb_memory_read(struct lb_memory *out)
{
    out->peak_bytes = find_bytes("/proc/self/status", "VmHWM");
    out->anonymous_bytes = find_bytes("/proc/self/status", "RssAnon");
    out->file_bytes = find_bytes("/proc/self/status", "RssFile");
}
