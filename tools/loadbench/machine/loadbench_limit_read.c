/* loadbench_limit_read.c: threads take one block after another from a shared counter until all are read or the time is
 * over. The page cache is read for as long as the time lasts, round and round; the device once, since a second round
 * would find everything in memory. */
#include "loadbench_limit_read.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "loadbench_stop.h"
#include "thread.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_THREADS = 256 };
#define MOST_COLD (INT64_C(256) << 20) /* let go and read again at most */
#define LEAST_COLD (INT64_C(1) << 20)  /* less would time the calls, not the device */

struct block {
    int64_t file, offset, bytes;
};

struct work {
    const struct lb_files *files;
    struct block *blocks;
    int64_t block_count, bytes;
    bool once;
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

static stk_status list_blocks(const struct lb_files *files, int64_t most, struct work *out, stk_error *err)
{
    int64_t room = 0;

    out->files = files;
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1 && !(out->blocks = stki_zalloc_array(room + 1, sizeof *out->blocks)))
            return stki_fail_memory(err, room * (int64_t)sizeof *out->blocks, "the list of blocks");
        out->bytes = out->block_count = 0;
        for (int64_t i = 0; i < files->count && out->bytes < most && !lb_stop_asked; i++) {
            struct stat about;
            if (stat(files->paths[i], &about) != 0)
                continue;
            for (int64_t at = 0; at < about.st_size && out->bytes < most; at += LB_READ_BLOCK) {
                const int64_t left = about.st_size - at, bytes = left < LB_READ_BLOCK ? left : LB_READ_BLOCK;
                if (pass == 1 && out->block_count < room)
                    out->blocks[out->block_count] = (struct block){i, at, bytes};
                out->block_count++;
                out->bytes += bytes;
            }
        }
        if (pass == 0)
            room = out->block_count;
    }
    out->block_count = out->block_count < room ? out->block_count : room;
    return STK_OK;
}

/* 0, or the errno. */
static int read_block(const struct work *work, const struct block *block, int *descriptor, int64_t *open_file,
                      char *buffer, int64_t *bytes)
{
    if (*open_file != block->file) {
        if (*descriptor >= 0)
            close(*descriptor);
        *descriptor = open(work->files->paths[block->file], O_RDONLY | O_CLOEXEC);
        *open_file = *descriptor < 0 ? -1 : block->file;
        if (*descriptor < 0)
            return errno;
    }
    for (int64_t at = 0; at < block->bytes;) {
        const ssize_t got = pread(*descriptor, buffer + at, (size_t)(block->bytes - at), block->offset + at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno;
        if (got == 0)
            break;
        at += got;
        *bytes += got;
    }
    return 0;
}

static void run(void *context)
{
    struct reader *reader = context;
    struct work *work = reader->work;
    int descriptor = -1;
    int64_t open_file = -1;

    do { /* one block at least: the time may be over before this thread runs */
        const int64_t n = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed);
        if (work->once && n >= work->block_count)
            break;
        reader->failed = read_block(work, &work->blocks[n % work->block_count], &descriptor, &open_file, reader->buffer,
                                    &reader->bytes);
    } while (reader->failed == 0 && !lb_stop_asked && stki_now_ns() < work->end_ns);
    reader->end_ns = stki_now_ns();
    if (descriptor >= 0)
        close(descriptor);
}

static stk_status time_reads(struct work *work, int threads, int64_t time_ns, double *rate, int64_t *bytes,
                             stk_error *err)
{
    struct reader readers[MAX_THREADS] = {{0}};
    const int64_t begin = stki_now_ns();
    int64_t end = begin;
    stk_status status = STK_OK;
    int started = 0;

    *bytes = 0;
    work->end_ns = begin + time_ns;
    atomic_store_explicit(&work->next, 0, memory_order_relaxed);
    for (; started < threads && status == STK_OK; started++) {
        readers[started].work = work;
        readers[started].buffer = stki_zalloc(LB_READ_BLOCK);
        status = readers[started].buffer
                     ? stki_thread_start(&readers[started].thread, "limit", run, &readers[started], err)
                     : stki_fail_memory(err, LB_READ_BLOCK, "reading the data");
        if (status != STK_OK) {
            stki_free(readers[started].buffer);
            break;
        }
    }
    for (int i = 0; i < started; i++) {
        stki_thread_join(readers[i].thread, INT64_MAX);
        stki_free(readers[i].buffer);
        *bytes += readers[i].bytes;
        end = readers[i].end_ns > end ? readers[i].end_ns : end;
        if (readers[i].failed && status == STK_OK)
            status = stki_fail_errno(err, readers[i].failed, work->files->paths[0], "reading the data");
    }
    *rate = end > begin ? (double)*bytes * 1e9 / (double)(end - begin) : 0;
    return status;
}

static stk_status measure_cached(const struct lb_files *files, int threads, int64_t time_ns, struct lb_read_limit *out,
                                 stk_error *err)
{
    struct lb_residency there;
    struct work work = {0};
    int64_t bytes;
    stk_status status = lb_residency_read(files, &there, err);

    if (status != STK_OK)
        return status;
    if (!there.known || lb_residency_share(&there) < 0.9) {
        if (there.known)
            snprintf(out->cached_missing, sizeof out->cached_missing, "only %.0f %% of the data lie in memory",
                     100 * lb_residency_share(&there));
        else
            snprintf(out->cached_missing, sizeof out->cached_missing, "%.250s", there.why);
        return STK_OK;
    }
    status = list_blocks(files, INT64_MAX, &work, err);
    if (status == STK_OK && work.block_count > 0)
        status = time_reads(&work, threads, time_ns, &out->cached_bytes_per_s, &bytes, err);
    stki_free(work.blocks);
    return status;
}

/* False, with the reason: they are still there, or nobody knows. */
static bool let_go(const struct work *work, struct lb_read_limit *out)
{
    struct lb_residency left = {.known = true};
    int descriptor = -1;

    for (int64_t i = 0, last = -1; i < work->block_count && !lb_stop_asked; i++) {
        const struct block *block = &work->blocks[i];
        if (block->file != last) {
            if (descriptor >= 0)
                close(descriptor);
            descriptor = open(work->files->paths[block->file], O_RDONLY | O_CLOEXEC);
        }
        last = block->file;
        if (descriptor < 0)
            continue;
        lb_cache_drop_range(descriptor, block->offset, block->bytes);
        if (lb_residency_of(descriptor, work->files->paths[block->file], block->offset, block->bytes, &left, NULL) !=
            STK_OK)
            left.known = false;
    }
    if (descriptor >= 0)
        close(descriptor);
    if (!left.known)
        snprintf(out->cold_missing, sizeof out->cold_missing, "nobody can tell whether they left the memory: %.250s",
                 left.why);
    else if (lb_residency_share(&left) > LB_COLD_SHARE)
        snprintf(out->cold_missing, sizeof out->cold_missing,
                 "%.0f %% of them stay in memory (their file system lives there, or somebody has them mapped)",
                 100 * lb_residency_share(&left));
    return left.known && lb_residency_share(&left) <= LB_COLD_SHARE;
}

static stk_status measure_cold(const struct lb_files *files, int threads, int64_t time_ns, struct lb_read_limit *out,
                               stk_error *err)
{
    struct work work = {.once = true};
    stk_status status = list_blocks(files, MOST_COLD, &work, err);

    if (status == STK_OK && work.bytes < LEAST_COLD)
        snprintf(out->cold_missing, sizeof out->cold_missing, "%lld bytes are too few to tell", (long long)work.bytes);
    else if (status == STK_OK && let_go(&work, out))
        status = time_reads(&work, threads, time_ns, &out->cold_bytes_per_s, &out->cold_bytes, err);
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
        snprintf(out->cached_missing, sizeof out->cached_missing, "the data are in no file");
        snprintf(out->cold_missing, sizeof out->cold_missing, "the data are in no file");
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
