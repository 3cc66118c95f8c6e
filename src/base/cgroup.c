/* cgroup.c: see cgroup.h. Every group from the process's own up to the mounted root limits it. In a container the root
 * is the container's own group, and the path in the membership file may not exist below it: missing files set nothing.
 */
#include "cgroup.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_ROOM = 4608 };

static bool read_line(const char *path, char *line, int size)
{
    FILE *file = fopen(path, "re");
    bool read = file && fgets(line, size, file);

    if (file)
        fclose(file);
    return read;
}

static double ratio(const char *quota, const char *period)
{
    long long q = strtoll(quota, NULL, 10), p = strtoll(period, NULL, 10); /* "max" and -1: no limit */

    return q > 0 && p > 0 ? (double)q / (double)p : 0;
}

/* Version 2: "QUOTA PERIOD" in one file. */
static double quota_v2(const char *directory)
{
    char path[PATH_ROOM], line[128];
    char *space;

    snprintf(path, sizeof path, "%s/cpu.max", directory);
    if (!read_line(path, line, sizeof line) || !(space = strchr(line, ' ')))
        return 0;
    return ratio(line, space);
}

static double quota_v1(const char *directory)
{
    char path[PATH_ROOM], quota[64], period[64];

    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", directory);
    if (!read_line(path, quota, sizeof quota))
        return 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
    return read_line(path, period, sizeof period) ? ratio(quota, period) : 0;
}

static void keep_smaller(double *smallest, double quota)
{
    if (quota > 0 && (*smallest <= 0 || quota < *smallest))
        *smallest = quota;
}

/* From `group` ("/a/b") up to "/", which is `root` itself. */
static double smallest_above(const char *root, char *group, double (*quota_of)(const char *directory))
{
    char directory[4400];
    double smallest = 0;
    char *slash;

    while ((slash = strrchr(group, '/'))) {
        if (slash[1]) {
            snprintf(directory, sizeof directory, "%s%s", root, group);
            keep_smaller(&smallest, quota_of(directory));
        }
        *slash = '\0';
    }
    keep_smaller(&smallest, quota_of(root));
    return smallest;
}

/* Is "cpu" among "cpuacct,cpu"? */
static bool names_cpu(const char *controllers, size_t length)
{
    size_t at, word;

    for (at = 0; at < length; at += word + 1) {
        word = strcspn(controllers + at, ",:");
        if (word == 3 && strncmp(controllers + at, "cpu", 3) == 0)
            return true;
    }
    return false;
}

/* "HIERARCHY:CONTROLLERS:PATH"; version 2 is hierarchy 0 without controllers. */
static double quota_of_line(char *line, const char *mount)
{
    char root[256];
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;

    if (!group || strlen(mount) > 200)
        return 0;
    controllers++;
    group++;
    group[strcspn(group, "\n")] = '\0';
    if (strncmp(line, "0::", 3) == 0)
        return smallest_above(mount, group, quota_v2);
    if (!names_cpu(controllers, (size_t)(group - 1 - controllers)))
        return 0;
    snprintf(root, sizeof root, "%s/cpu", mount); /* a link to cpu,cpuacct where they are one */
    return smallest_above(root, group, quota_v1);
}

double stki_cgroup_cpu_quota(const char *membership, const char *mount)
{
    char line[4096];
    double smallest = 0;
    FILE *file = fopen(membership, "re");

    while (file && fgets(line, sizeof line, file))
        keep_smaller(&smallest, quota_of_line(line, mount));
    if (file)
        fclose(file);
    return smallest;
}
