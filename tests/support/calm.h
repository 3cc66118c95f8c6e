/* calm.h: waits until all other threads of the process sleep, so that it is safe to fork. GCC 12's AddressSanitizer
 * does not hold the locks of its allocator across a fork: if another thread is in the allocator, the child blocks
 * forever. Tests in which other threads must be busy cannot fork under this sanitizer. */
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

/* Returns whether the state in "12 (name) S 1 …" is 'S'. A thread that has ended counts as sleeping. */
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

/* All other threads must sleep three times in a row, 2 ms apart, because one may have blocked only for a moment. */
static inline void stkt_wait_for_calm(void)
{
    const struct timespec a_moment = {.tv_nsec = 2000000};

    for (int calm = 0, tries = 0; calm < 3 && tries < 10000; tries++) {
        nanosleep(&a_moment, NULL);
        calm = stkt_others_sleep() ? calm + 1 : 0;
    }
}

#endif
