/* loadbench_limit.c: threads copy until a common deadline, each to its own part of the target. The rate is the total of
 * all threads. The limit is the highest rate of several copy methods.
 *
 * The blocks are allocated for each call and freed afterwards, so they do not appear in the loader's memory figures.
 * All memory is touched before timing. */
#include "loadbench_limit.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "loadbench_copy.h"
#include "loadbench_machine.h"
#include "loadbench_stop.h"
#include "thread.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_THREADS = 256,
    CHUNK_BYTES = 1 << 20,      /* bytes per memcpy, few enough that the C library uses plain stores */
    PREFETCH_ROW_BYTES = 16384, /* for longer rows, the hardware prefetcher is enough */
    AHEAD = 4                   /* number of rows chosen in advance; a power of two */
};
#define BLOCK_BYTES (INT64_C(64) << 20) /* minimum size of a block */
#define POPULATED (INT64_C(256) << 20)
#define TOUCH_BYTES (INT64_C(16) << 20) /* bytes between two checks for a stop */

struct work {
    lb_copy copy;
    bool prefetch, random, only_writes;
    const char *source;
    int64_t row_bytes, row_count; /* size and number of the source rows */
    char *target;
    int64_t part_bytes; /* bytes of the target per thread */
    int64_t begin_ns, end_ns;
};

struct worker {
    const struct work *work;
    int index, count;
    int64_t copied_bytes, end_ns;
    stki_thread *thread;
};

static int64_t next_row(const struct work *work, uint64_t *state, int64_t *position)
{
    if (!work->random) {
        *position = *position + 1 < work->row_count ? *position + 1 : 0;
        return *position;
    }
    *state ^= *state << 13; /* xorshift: costs about a nanosecond */
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (int64_t)((*state >> 32) * (uint64_t)work->row_count >> 32);
}

static void run(void *context)
{
    struct worker *worker = context;
    const struct work *work = worker->work;
    const int64_t rows_a_part = work->part_bytes / work->row_bytes, check = 1 + (256 << 10) / work->row_bytes;
    char *const target = work->target + worker->index * work->part_bytes;
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(worker->index + 1);
    int64_t position = work->row_count / worker->count * worker->index, row[AHEAD], copied = 0, slot = 0;

    for (int i = 0; i < AHEAD; i++)
        row[i] = next_row(work, &state, &position);
    stki_sleep_ns(work->begin_ns - stki_now_ns());
    do {
        for (int64_t i = 0; i < check; i++) {
            const char *from = work->source + row[copied % AHEAD] * work->row_bytes;
            const int64_t after = next_row(work, &state, &position);
            if (work->prefetch)
                lb_prefetch(work->source + row[(copied + AHEAD - 1) % AHEAD] * work->row_bytes, work->row_bytes);
            work->copy(target + slot * work->row_bytes, from, work->row_bytes);
            row[copied++ % AHEAD] = after;
            slot = slot + 1 < rows_a_part ? slot + 1 : 0;
        }
    } while (!lb_stop_asked && stki_now_ns() < work->end_ns);
    lb_copy_fence();
    worker->end_ns = stki_now_ns();
    worker->copied_bytes = copied * work->row_bytes;
}

/* Measures the bytes read and written per second by all threads together. STK_END: interrupted. */
static stk_status time_work(struct work *work, int threads, int64_t time_ns, double *out, stk_error *err)
{
    struct worker workers[MAX_THREADS] = {{0}};
    int64_t copied = 0, end = 0;
    stk_status status = STK_OK;
    int started = 0;

    work->begin_ns = stki_now_ns() + 1000000;
    work->end_ns = work->begin_ns + time_ns;
    for (; started < threads && status == STK_OK; started++) {
        workers[started].work = work;
        workers[started].index = started;
        workers[started].count = threads;
        status = stki_thread_start(&workers[started].thread, "limit", run, &workers[started], err);
        if (status != STK_OK)
            break;
    }
    for (int i = 0; i < started; i++) {
        stki_thread_join(workers[i].thread, INT64_MAX);
        copied += workers[i].copied_bytes;
        end = workers[i].end_ns > end ? workers[i].end_ns : end;
    }
    if (status == STK_OK && lb_stop_asked)
        return STK_END;
    if (status == STK_OK)
        *out = (work->only_writes ? 1 : 2) * (double)copied * 1e9 / (double)(end - work->begin_ns);
    return status;
}

static stk_status time_ways(struct work *work, const struct lb_limit_ask *ask, bool prefetch, struct lb_limit_rate *out,
                            stk_error *err)
{
    const struct {
        const char *name;
        lb_copy copy;
        bool prefetch;
    } ways[] = {
        {"plain", lb_copy_plain, false},
        {"streaming", lb_copy_streaming(), false},
        {"plain, prefetched", lb_copy_plain, true},
        {"streaming, prefetched", lb_copy_streaming(), true},
    };
    const lb_copy writes[] = {lb_write_plain, lb_write_streaming(), NULL, NULL};

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        double rate = 0;
        const lb_copy copy = work->only_writes ? writes[i] : ways[i].copy;
        if (!copy || (ways[i].prefetch && !prefetch))
            continue;
        work->copy = copy;
        work->prefetch = ways[i].prefetch;
        stk_status status = time_work(work, ask->threads, ask->time_ns, &rate, err);
        if (status != STK_OK)
            return status;
        if (rate > out->bytes_per_s)
            *out = (struct lb_limit_rate){rate, ways[i].name};
    }
    return STK_OK;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Finds the longest run of resident pages, as a range of bytes. */
static void longest_run(const unsigned char *pages, int64_t count, int64_t page, int64_t *offset, int64_t *bytes)
{
    *offset = *bytes = 0;
    for (int64_t i = 0, first = 0; i < count; i++) {
        if (!(pages[i] & 1))
            first = i + 1;
        else if ((i + 1 - first) * page > *bytes) {
            *offset = first * page;
            *bytes = (i + 1 - first) * page;
        }
    }
}

/* A mapped file whose pages are resident, because otherwise the disk would be measured. */
struct mapped {
    char *map;
    int64_t size, offset, bytes; /* file size; offset and size of the resident part, at least half of it */
};

/* Maps the file without loading any pages. */
static bool map_resident(const char *path, struct mapped *out)
{
    const int64_t page = sysconf(_SC_PAGESIZE);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat about;
    void *map = MAP_FAILED;

    *out = (struct mapped){0};
    if (fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0)
        map = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (map == MAP_FAILED)
        return false;
    const int64_t count = (about.st_size + page - 1) / page;
    unsigned char *pages = stki_zalloc(count);
    *out = (struct mapped){.map = map, .size = about.st_size};
    if (pages && mincore(map, (size_t)about.st_size, pages) == 0)
        longest_run(pages, count, page, &out->offset, &out->bytes);
    stki_free(pages);
    if (out->bytes > about.st_size - out->offset)
        out->bytes = about.st_size - out->offset;
    if (out->bytes < about.st_size / 2) {
        munmap(map, (size_t)about.st_size);
        return false;
    }
    madvise(map, (size_t)about.st_size, MADV_RANDOM); /* disables readahead on faults */
    for (int64_t at = 0; at < out->bytes && !lb_stop_asked;
         at += POPULATED) /* otherwise the first pass would time page faults */
        madvise(out->map + out->offset + at, (size_t)smaller(POPULATED, out->bytes - at), MADV_POPULATE_READ);
    return true;
}

/* Touches a block. STK_END: interrupted. */
static stk_status touch(char *block, int value, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += TOUCH_BYTES) {
        if (lb_stop_asked)
            return STK_END;
        memset(block + at, value, (size_t)(bytes - at < TOUCH_BYTES ? bytes - at : TOUCH_BYTES));
    }
    return STK_OK;
}

/* Returns the block size, by default much larger than the caches. */
static int64_t block_bytes(const struct lb_limit_ask *ask)
{
    const int64_t enough = 4 * lb_cache_bytes();

    if (ask->block_bytes > 0)
        return ask->block_bytes;
    return enough > BLOCK_BYTES ? enough : BLOCK_BYTES;
}

static stk_status measure_memcpy(const struct lb_limit_ask *ask, const char *source, char *target, int64_t bytes,
                                 struct lb_limit *out, stk_error *err)
{
    const int64_t chunk = smaller(CHUNK_BYTES, bytes / ask->threads), part = bytes / ask->threads / chunk * chunk;
    struct work work = {.source = source, .row_bytes = chunk, .row_count = part * ask->threads / chunk};

    work.target = target;
    work.part_bytes = part;
    const stk_status status = time_ways(&work, ask, false, &out->memcpy, err);
    work.only_writes = true;
    return status == STK_OK ? time_ways(&work, ask, false, &out->write, err) : status;
}

static stk_status measure_gather(const struct lb_limit_ask *ask, const char *block, int64_t block_bytes, char *target,
                                 struct lb_limit *out, stk_error *err)
{
    struct work work = {.random = ask->random, .row_bytes = out->row_bytes, .target = target};
    struct mapped file = {0};
    const bool mapped = ask->path && map_resident(ask->path, &file);

    if (mapped && file.bytes >= out->row_bytes) { /* uses whole rows from the end of the file, after its header */
        work.source = file.map + file.offset + file.bytes % out->row_bytes;
        work.row_count = file.bytes / out->row_bytes;
        out->from_file = true;
    } else {
        work.source = block;
        work.row_count = smaller(block_bytes / out->row_bytes, ask->row_count > 0 ? ask->row_count : 1);
    }
    work.part_bytes = out->target_bytes / ask->threads;
    out->source_bytes = work.row_count * out->row_bytes;
    stk_status status = time_ways(&work, ask, out->row_bytes <= PREFETCH_ROW_BYTES, &out->gather, err);
    if (mapped)
        munmap(file.map, (size_t)file.size);
    return status;
}

stk_status lb_limit_measure(const struct lb_limit_ask *asked, struct lb_limit *out, stk_error *err)
{
    struct lb_limit_ask ask = *asked;
    const int64_t room = lb_memory_available() / 8;
    stk_status status = STK_OK;

    memset(out, 0, sizeof *out);
    ask.threads = ask.threads < 1 ? 1 : ask.threads > MAX_THREADS ? MAX_THREADS : ask.threads;
    const int64_t block = smaller(block_bytes(&ask), room / 2);
    out->threads = ask.threads;
    out->random = ask.random;
    out->row_bytes = smaller(ask.row_bytes > 0 ? ask.row_bytes : 1, block / ask.threads);
    out->target_bytes = smaller(ask.slot_bytes, room);
    if (out->target_bytes < ask.threads * out->row_bytes)
        out->target_bytes = ask.threads * out->row_bytes;

    const int64_t target_block = out->target_bytes > block ? out->target_bytes : block;
    char *source = stki_block_alloc(&stki_huge_pages, block, 64);
    char *target = stki_block_alloc(&stki_huge_pages, target_block, 64);
    if (!source || !target)
        status = stki_fail_memory(err, block + target_block, "the measurement of the machine's limit");
    if (status == STK_OK && (status = touch(source, 1, block)) == STK_OK &&
        (status = touch(target, 2, target_block)) == STK_OK)
        status = measure_memcpy(&ask, source, target, block, out, err);
    if (status == STK_OK)
        status = measure_gather(&ask, source, block, target, out, err);
    stki_block_free(&stki_huge_pages, source, block, 64);
    stki_block_free(&stki_huge_pages, target, target_block, 64);
    return status;
}
