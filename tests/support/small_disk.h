/* small_disk.h: a small in-memory file system that can be filled up, mounted in private namespaces of this process, so
 * that it needs no privileges and disappears with the process. */
#ifndef STKT_SMALL_DISK_H
#define STKT_SMALL_DISK_H

#include "io_files.h"
#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>

static inline bool stkt_write_text(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n = file < 0 ? -1 : write(file, text, strlen(text));

    if (file >= 0)
        close(file);
    return n == (ssize_t)strlen(text);
}

/* `size` as in mount's options, such as "1m". NULL: this system does not permit mounting. */
static inline const char *stkt_small_disk(const char *size)
{
    char users[64], groups[64], options[64];
    static char disk[4096];

    snprintf(disk, sizeof disk, "%s", stkt_path("disk"));
    if (mkdir(disk, 0700) && errno != EEXIST)
        return NULL;
    snprintf(users, sizeof users, "0 %d 1", (int)getuid());
    snprintf(groups, sizeof groups, "0 %d 1", (int)getgid());
    snprintf(options, sizeof options, "size=%s", size);
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) || !stkt_write_text("/proc/self/setgroups", "deny") ||
        !stkt_write_text("/proc/self/uid_map", users) || !stkt_write_text("/proc/self/gid_map", groups))
        return NULL;
    return mount("tmpfs", disk, "tmpfs", 0, options) == 0 ? disk : NULL;
}

/* Incompressible bytes. */
static inline void stkt_noise(unsigned char *to, int64_t count, uint32_t state)
{
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        to[i] = (unsigned char)(state >> 24);
    }
}

#endif
