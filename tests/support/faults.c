/* faults.c: see faults.h. __wrap_NAME is called in place of NAME, and __real_NAME is NAME itself. */
#include "faults.h"
#include "allocate.h"
#include "counter.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define WRAP(type, name, ...)        \
    type __real_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__); \
    type __wrap_##name(__VA_ARGS__)

static stki_counter fail_allocation, fail_maps, short_bytes, fail_read, fail_call[STKT_ALL_CALLS], skip_syncs;
static stki_counter read_errno, call_errno;

/* Counts down and returns true for the call that must fail. */
static bool is_due(stki_counter *counter)
{
    return stki_counted(counter) > 0 && atomic_fetch_sub_explicit(counter, 1, memory_order_relaxed) == 1;
}

/* ---- memory ---- */

void stki_memory_fail_at(int64_t n)
{
    stki_count_set(&fail_allocation, n);
}

WRAP(void *, stki_block_alloc, const stki_allocator *allocator, int64_t bytes, int64_t alignment)
{
    return is_due(&fail_allocation) ? NULL : __real_stki_block_alloc(allocator, bytes, alignment);
}

WRAP(void *, stki_zalloc, int64_t bytes)
{
    return is_due(&fail_allocation) ? NULL : __real_stki_zalloc(bytes);
}

WRAP(void *, stki_zalloc_array, int64_t count, int64_t bytes_each)
{
    return is_due(&fail_allocation) ? NULL : __real_stki_zalloc_array(count, bytes_each);
}

WRAP(void *, stki_resize, void *block, int64_t bytes)
{
    return is_due(&fail_allocation) ? NULL : __real_stki_resize(block, bytes);
}

WRAP(char *, stki_strdup, const char *text)
{
    return is_due(&fail_allocation) ? NULL : __real_stki_strdup(text);
}

char *__wrap_stki_format(const char *format, ...) STK_PRINTF(1, 2);

char *__wrap_stki_format(const char *format, ...)
{
    va_list args;
    char *formatted = NULL, *text = NULL;

    if (is_due(&fail_allocation))
        return NULL;
    va_start(args, format);
    if (vasprintf(&formatted, format, args) >= 0) {
        text = __real_stki_strdup(formatted);
        free(formatted);
    }
    va_end(args);
    return text;
}

/* ---- reading ---- */

void stkt_fail_maps(int64_t n)
{
    stki_count_set(&fail_maps, n);
}

void stkt_short_reads(int64_t bytes)
{
    stki_count_set(&short_bytes, bytes);
}

void stkt_fail_read(int64_t n, int error_number)
{
    stki_count_set(&read_errno, error_number);
    stki_count_set(&fail_read, n);
}

WRAP(void *, mmap, void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (fd >= 0 && stki_counted(&fail_maps) > 0) {
        stki_count(&fail_maps, -1);
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap(at, bytes, protection, flags, fd, offset);
}

WRAP(ssize_t, pread, int fd, void *to, size_t bytes, off_t offset)
{
    const size_t at_most = (size_t)stki_counted(&short_bytes);

    if (is_due(&fail_read)) {
        errno = (int)stki_counted(&read_errno);
        return -1;
    }
    return __real_pread(fd, to, at_most > 0 && at_most < bytes ? at_most : bytes, offset);
}

/* ---- writing ---- */

void stkt_fail_call(enum stkt_call call, int64_t n, int error_number)
{
    stki_count_set(&call_errno, error_number);
    stki_count_set(&fail_call[call], n);
}

void stkt_skip_syncs(bool skip)
{
    stki_count_set(&skip_syncs, skip);
}

/* Fails like a system call: returns -1 and sets errno. */
static int failed(void)
{
    errno = (int)stki_counted(&call_errno);
    return -1;
}

static bool is_journal(int fd)
{
    char link[64], path[4096];
    ssize_t length;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 1);
    return length > 8 && !memcmp(path + length - 8, ".journal", 8);
}

static enum stkt_call write_of(int fd)
{
    struct stat stat;

    if (!fstat(fd, &stat) && stat.st_nlink == 0)
        return STKT_SPILL_WRITE;
    return is_journal(fd) ? STKT_JOURNAL_WRITE : STKT_WRITE;
}

static bool write_fails(int fd)
{
    bool any = false;

    for (int i = 0; i < STKT_ALL_CALLS; i++)
        any = any || stki_counted(&fail_call[i]) > 0;
    return any && is_due(&fail_call[write_of(fd)]);
}

WRAP(ssize_t, pwrite, int fd, const void *from, size_t bytes, off_t offset)
{
    if (!write_fails(fd))
        return __real_pwrite(fd, from, bytes, offset);
    if (is_journal(fd))
        (void)!__real_pwrite(fd, from, bytes / 2, offset);
    return failed();
}

WRAP(ssize_t, pwritev, int fd, const struct iovec *from, int count, off_t offset)
{
    return write_fails(fd) ? failed() : __real_pwritev(fd, from, count, offset);
}

static bool sync_fails(int fd)
{
    struct stat stat;

    return is_due(&fail_call[!fstat(fd, &stat) && S_ISDIR(stat.st_mode) ? STKT_SYNC_DIRECTORY : STKT_SYNC]);
}

WRAP(int, fsync, int fd)
{
    return sync_fails(fd) ? failed() : stki_counted(&skip_syncs) ? 0 : __real_fsync(fd);
}

WRAP(int, fdatasync, int fd)
{
    return sync_fails(fd) ? failed() : stki_counted(&skip_syncs) ? 0 : __real_fdatasync(fd);
}

WRAP(int, close, int fd)
{
    const bool written = stki_counted(&fail_call[STKT_CLOSE]) > 0 && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY &&
                         write_of(fd) == STKT_WRITE;
    const int status = __real_close(fd);

    return written && is_due(&fail_call[STKT_CLOSE]) ? failed() : status;
}

WRAP(int, rename, const char *from, const char *to)
{
    return is_due(&fail_call[STKT_RENAME]) ? failed() : __real_rename(from, to);
}
