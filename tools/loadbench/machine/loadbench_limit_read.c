/* loadbench_limit_read.c: threads claim blocks from a shared counter until a deadline. The page cache is not changed.
 * Reads through it use only resident blocks, repeatedly and without readahead. The device is read with O_DIRECT, and
 * each block only once, because the host of a virtual machine may cache what was read. */
#include "loadbench_limit_read.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "grow.h"
#include "loadbench_stop.h"
#include "thread.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { MAX_THREADS = 256, PAGE = 4096 };
#define MOST_COLD (INT64_C(256) << 20) /* maximum number of distinct bytes to read */
#define MOST_CACHED (INT64_C(4) << 30)
#define LEAST_COLD (INT64_C(1) << 20) /* with fewer bytes, system calls would be measured instead of the device */

struct block {
    int64_t file, offset, bytes;
};

struct work {
    const struct lb_files *files;
    struct block *blocks;
    int64_t block_count, room, bytes;
    int flags; /* flags of open: O_DIRECT or 0 */
    int64_t end_ns;
    _Atomic int64_t next;
};

struct reader {
    struct work *work;
    char *buffer;
    int64_t bytes, end_ns;
    int failed; /* errno */
    stki_thread *thread;
};

/* Adds the blocks of a file until the list has `most` bytes. Adds only resident blocks unless the reads are direct. */
static stk_status add_blocks(struct work *work, int64_t file, int fd, int64_t size, int64_t most, stk_error *err)
{
    const char *path = work->files->paths[file];

    for (int64_t at = 0; at < size && work->bytes < most && !lb_stop_asked; at += LB_READ_BLOCK) {
        const int64_t left = size - at, bytes = left < LB_READ_BLOCK ? left : LB_READ_BLOCK;
        struct lb_residency there = {.known = true};
        if (!(work->flags & O_DIRECT)) {
            const stk_status status = lb_residency_of(fd, path, at, bytes, &there, err);
            if (status != STK_OK)
                return status;
            if (!there.known || there.resident_bytes < there.bytes)
                continue;
        }
        const stk_status status = stki_grow(&work->blocks, &work->room, work->block_count + 1, sizeof *work->blocks,
                                            "the list of blocks", err);
        if (status != STK_OK)
            return status;
        work->blocks[work->block_count++] = (struct block){file, at, bytes};
        work->bytes += bytes;
    }
    return STK_OK;
}

static stk_status list_blocks(struct work *work, int64_t most, stk_error *err)
{
    stk_status status = STK_OK;

    for (int64_t i = 0; i < work->files->count && work->bytes < most && status == STK_OK && !lb_stop_asked; i++) {
        const int fd = open(work->files->paths[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct stat about;
        if (fd >= 0 && (work->flags & O_DIRECT))
            (void)fdatasync(fd); /* otherwise direct reads would first write back dirty pages */
        if (fd >= 0 && fstat(fd, &about) == 0)
            status = add_blocks(work, i, fd, about.st_size, most, err);
        if (fd >= 0)
            close(fd);
    }
    return status;
}

/* Reads a block. Returns 0 or an errno. */
static int read_block(const struct work *work, const struct block *block, int *descriptor, int64_t *open_file,
                      char *buffer, int64_t *bytes)
{
    /* direct reads must request whole pages; at the end of a file they return fewer bytes */
    const int64_t wanted = (work->flags & O_DIRECT) ? (block->bytes + PAGE - 1) / PAGE * PAGE : block->bytes;
    ssize_t got;

    if (*open_file != block->file) {
        if (*descriptor >= 0)
            close(*descriptor);
        *descriptor = open(work->files->paths[block->file], O_RDONLY | O_CLOEXEC | work->flags);
        *open_file = *descriptor < 0 ? -1 : block->file;
        if (*descriptor < 0)
            return errno;
        (void)posix_fadvise(*descriptor, 0, 0, POSIX_FADV_RANDOM);
    }
    do
        got = pread(*descriptor, buffer, (size_t)wanted, block->offset);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno;
    *bytes += got;
    return 0;
}

static void run(void *context)
{
    struct reader *reader = context;
    struct work *work = reader->work;
    int descriptor = -1;
    int64_t open_file = -1;

    do { /* reads at least one block, even if this thread starts after the deadline */
        const int64_t n = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed);
        if ((work->flags & O_DIRECT) && n >= work->block_count)
            break;
        reader->failed = read_block(work, &work->blocks[n % work->block_count], &descriptor, &open_file, reader->buffer,
                                    &reader->bytes);
    } while (reader->failed == 0 && !lb_stop_asked && stki_now_ns() < work->end_ns);
    reader->end_ns = stki_now_ns();
    if (descriptor >= 0)
        close(descriptor);
}

/* Sets *failed to the errno of a failed read, or to 0. */
static stk_status time_reads(struct work *work, int threads, int64_t time_ns, double *rate, int64_t *bytes, int *failed,
                             stk_error *err)
{
    struct reader readers[MAX_THREADS] = {{0}};
    const int64_t begin = stki_now_ns();
    int64_t end = begin;
    stk_status status = STK_OK;
    int started = 0;

    *bytes = 0;
    *failed = 0;
    work->end_ns = begin + time_ns;
    atomic_store_explicit(&work->next, 0, memory_order_relaxed);
    for (; started < threads && status == STK_OK; started++) {
        readers[started].work = work;
        readers[started].buffer = stki_block_alloc(&stki_heap, LB_READ_BLOCK, PAGE);
        status = readers[started].buffer
                     ? stki_thread_start(&readers[started].thread, "limit", run, &readers[started], err)
                     : stki_fail_memory(err, LB_READ_BLOCK, "reading the data");
        if (status != STK_OK) {
            stki_block_free(&stki_heap, readers[started].buffer, LB_READ_BLOCK, PAGE);
            break;
        }
    }
    for (int i = 0; i < started; i++) {
        stki_thread_join(readers[i].thread, INT64_MAX);
        stki_block_free(&stki_heap, readers[i].buffer, LB_READ_BLOCK, PAGE);
        *bytes += readers[i].bytes;
        end = readers[i].end_ns > end ? readers[i].end_ns : end;
        *failed = readers[i].failed ? readers[i].failed : *failed;
    }
    *rate = end > begin ? (double)*bytes * 1e9 / (double)(end - begin) : 0;
    return status;
}

static stk_status measure_cached(const struct lb_files *files, int threads, int64_t time_ns, struct lb_read_limit *out,
                                 stk_error *err)
{
    struct lb_residency there;
    struct work work = {.files = files};
    int64_t bytes;
    int failed = 0;
    stk_status status = lb_residency_read(files, &there, err);

    if (status != STK_OK)
        return status;
    if (!there.known || lb_residency_share(&there) < 0.9) {
        if (there.known)
            snprintf(out->cached_missing, sizeof out->cached_missing, "only %.0f %% of the data is in memory",
                     100 * lb_residency_share(&there));
        else
            snprintf(out->cached_missing, sizeof out->cached_missing, "%.250s", there.why);
        return STK_OK;
    }
    status = list_blocks(&work, MOST_CACHED, err);
    if (status == STK_OK && work.block_count > 0)
        status = time_reads(&work, threads, time_ns, &out->cached_bytes_per_s, &bytes, &failed, err);
    if (failed) {
        out->cached_bytes_per_s = 0;
        snprintf(out->cached_missing, sizeof out->cached_missing, "%s", strerror(failed));
    }
    stki_free(work.blocks);
    return status;
}

static bool lives_in_memory(const struct lb_files *files)
{
    struct statfs about;

    return statfs(files->paths[0], &about) == 0 &&
           (about.f_type == TMPFS_MAGIC || (unsigned)about.f_type == RAMFS_MAGIC);
}

static stk_status measure_cold(const struct lb_files *files, int threads, int64_t time_ns, struct lb_read_limit *out,
                               stk_error *err)
{
    struct work work = {.files = files, .flags = O_DIRECT};
    int failed = 0;
    stk_status status = list_blocks(&work, MOST_COLD, err);

    if (status == STK_OK && work.bytes < LEAST_COLD)
        snprintf(out->cold_missing, sizeof out->cold_missing, "%lld bytes are too few for a measurement",
                 (long long)work.bytes);
    else if (status == STK_OK && lives_in_memory(files))
        snprintf(out->cold_missing, sizeof out->cold_missing, "the file system of the data is in memory");
    else if (status == STK_OK)
        status = time_reads(&work, threads, time_ns, &out->cold_bytes_per_s, &out->cold_bytes, &failed, err);
    if (failed) {
        out->cold_bytes_per_s = 0;
        out->cold_bytes = 0;
        snprintf(out->cold_missing, sizeof out->cold_missing, "%s",
                 failed == EINVAL || failed == EOPNOTSUPP ? "the file system of the data does not support O_DIRECT"
                                                          : strerror(failed));
    }
    stki_free(work.blocks);
    return status;
}

stk_status lb_read_limit_measure(const struct lb_files *files, int threads, int64_t time_ns, struct lb_read_limit *out,
                                 stk_error *err)
{
    const int count = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
    stk_status status;

    memset(out, 0, sizeof *out);
    out->threads = count;
    if (files->count == 0) {
        snprintf(out->cached_missing, sizeof out->cached_missing, "the data is not in files");
        snprintf(out->cold_missing, sizeof out->cold_missing, "the data is not in files");
        return STK_OK;
    }
    status = measure_cached(files, count, time_ns, out, err);
    if (status == STK_OK && !lb_stop_asked)
        status = measure_cold(files, count, 5 * time_ns, out, err);
    if (!lb_stop_asked)
        return status;
    *out = (struct lb_read_limit){.threads = count, .cached_missing = LB_STOPPED, .cold_missing = LB_STOPPED};
    return STK_OK;
}
