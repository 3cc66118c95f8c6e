/* job_clock.c: see job_clock.h. */
#include "job_clock.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT = 32 };

static void record(stki_job_clock *clock)
{
    const int64_t now = stki_now_ns();
    char text[TEXT];
    /* One length, so that it always replaces what is there. */
    const int length = snprintf(text, sizeof text, "%020" PRId64 " ns\n", now - clock->began_ns);

    if (clock->fd >= 0 && pwrite(clock->fd, text, (size_t)length, 0) == length)
        clock->recorded_ns = now;
}

/* Its file is still in a folder. --restart empties the work folder. */
static bool stands(const stki_job_clock *clock)
{
    struct stat st;

    return clock->fd >= 0 && fstat(clock->fd, &st) == 0 && st.st_nlink > 0;
}

stk_status stki_job_clock_open(stki_job_clock *clock, const char *work, stk_error *err)
{
    char *path;
    stk_status status = STK_OK;

    if (stands(clock))
        return STK_OK;
    stki_job_clock_close(clock);
    path = stki_format("%s/" STKI_JOB_CLOCK_FILES "XXXXXX", work);
    if (!path)
        return stki_fail_memory(err, (int64_t)strlen(work), "a path");
    clock->fd = mkostemp(path, O_CLOEXEC);
    if (clock->fd < 0)
        status = stki_fail_errno(err, errno, path, "cannot be made");
    else
        record(clock);
    stki_free(path);
    return status;
}

void stki_job_clock_tick(stki_job_clock *clock)
{
    if (clock->fd >= 0 && stki_now_ns() - clock->recorded_ns >= STKI_SECOND)
        record(clock);
}

/* 0: it has gone, or a crash of the machine left no number in it. */
static int64_t time_in(int folder, const char *name)
{
    char text[TEXT] = "";
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof text - 1) < 0)
        text[0] = '\0';
    (void)close(fd);
    return strtoll(text, NULL, 10);
}

stk_status stki_job_clock_sum(stki_job_clock *clock, const char *work, double *seconds, stk_error *err)
{
    DIR *folder = opendir(work);
    const struct dirent *entry;
    int64_t ns = 0;

    if (!folder)
        return stki_fail_errno(err, errno, work, "cannot look into the folder");
    record(clock);
    while ((entry = readdir(folder)) != NULL)
        if (strncmp(entry->d_name, STKI_JOB_CLOCK_FILES, sizeof STKI_JOB_CLOCK_FILES - 1) == 0)
            ns += time_in(dirfd(folder), entry->d_name);
    (void)closedir(folder);
    *seconds = (double)ns * 1e-9;
    return STK_OK;
}

void stki_job_clock_close(stki_job_clock *clock)
{
    record(clock);
    if (clock->fd >= 0)
        (void)close(clock->fd);
    clock->fd = -1;
}
