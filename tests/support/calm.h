/* calm.h: forks of processes whose other threads are asleep. GCC 12's AddressSanitizer does not hold the locks of its
 * allocator over a fork: where another thread was inside of it, the child waits for ever. So tests that are about
 * something else fork when all threads but their own sleep, and those that are about busy threads leave it out. */
#ifndef STKT_CALM_H
#define STKT_CALM_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define STKT_FORKS_ONLY_CALM 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STKT_FORKS_ONLY_CALM 1
#endif
#endif
#ifndef STKT_FORKS_ONLY_CALM
#define STKT_FORKS_ONLY_CALM 0
#endif

/* 'S' of "12 (name) S 1 …"; a thread that has gone meanwhile sleeps too. */
static inline bool stkt_thread_sleeps(const char *number)
{
    char path[300], text[512];
    const char *end;
    size_t size;
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%s/stat", number);
    file = fopen(path, "re");
    if (!file)
        return true;
    size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    end = strrchr(text, ')');
    return !end || end[2] == 'S';
}

static inline bool stkt_others_sleep(void)
{
    DIR *folder = opendir("/proc/self/task");
    bool all = true;

    for (struct dirent *entry; folder && (entry = readdir(folder));)
        all = all && (entry->d_name[0] == '.' || atoi(entry->d_name) == (int)syscall(SYS_gettid) ||
                      stkt_thread_sleeps(entry->d_name));
    if (folder)
        closedir(folder);
    return all;
}

/* Twice in a row, a while apart: one that only waited for a moment is up again. */
static inline void stkt_wait_for_calm(void)
{
    const struct timespec a_moment = {.tv_nsec = 2000000};

    for (int calm = 0, tries = 0; calm < 3 && tries < 10000; tries++) {
        nanosleep(&a_moment, NULL);
        calm = stkt_others_sleep() ? calm + 1 : 0;
    }
}

#endif
