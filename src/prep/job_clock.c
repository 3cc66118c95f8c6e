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

static const int64_t century_ns = 36525 * (int64_t)86400 * STKI_SECOND;

static void record(stki_job_clock *clock)
{
    const int64_t now = stki_now_ns();
    char text[TEXT];
    /* The length is fixed, so that a new text always replaces all of the old one. */
    const int length = snprintf(text, sizeof text, "%020" PRId64 " ns\n", now - clock->began_ns);

    if (clock->fd >= 0 && pwrite(clock->fd, text, (size_t)length, 0) == length)
        clock->recorded_ns = now;
}

/* Returns whether the file still exists; --restart empties the work folder. */
static bool stands(const stki_job_clock *clock)
{
    struct stat st;

    return clock->fd >= 0 && fstat(clock->fd, &st) == 0 && st.st_nlink > 0;
}

/* Makes the file readable for everyone who can read the work folder, because tasks of other users add up the times of
 * all processes. mkostemp creates files that only their owner can read. */
static void let_others_read(int fd, const char *work)
{
    struct stat st;

    if (stat(work, &st) == 0)
        (void)fchmod(fd, S_IRUSR | S_IWUSR | (st.st_mode & (S_IRGRP | S_IROTH)));
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
        status = stki_fail_errno(err, errno, path, "cannot be created");
    else {
        let_others_read(clock->fd, work);
        record(clock);
    }
    stki_free(path);
    return status;
}

void stki_job_clock_tick(stki_job_clock *clock)
{
    if (clock->fd >= 0 && stki_now_ns() - clock->recorded_ns >= STKI_SECOND)
        record(clock);
}

/* Reads the time in a file. 0: the file is gone, or has no valid time because the machine crashed. */
static int64_t time_in(int folder, const char *name)
{
    char text[TEXT] = "";
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    int64_t ns;

    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof text - 1) < 0)
        text[0] = '\0';
    (void)close(fd);
    ns = strtoll(text, NULL, 10);
    return ns < 0 || ns > century_ns ? 0 : ns;
}

stk_status stki_job_clock_sum(stki_job_clock *clock, const char *work, double *seconds, stk_error *err)
{
    DIR *folder = opendir(work);
    const struct dirent *entry;
    double ns = 0; /* cannot overflow */

    if (!folder)
        return stki_fail_errno(err, errno, work, "cannot read the folder");
    record(clock);
    while ((entry = readdir(folder)) != NULL)
        if (strncmp(entry->d_name, STKI_JOB_CLOCK_FILES, sizeof STKI_JOB_CLOCK_FILES - 1) == 0)
            ns += (double)time_in(dirfd(folder), entry->d_name);
    (void)closedir(folder);
    *seconds = ns * 1e-9;
    return STK_OK;
}

void stki_job_clock_close(stki_job_clock *clock)
{
    record(clock);
    if (clock->fd >= 0)
        (void)close(clock->fd);
    clock->fd = -1;
}
