/* bench_cold.c: measures what look-ahead gains for files that are not in the page cache, and what it costs for files
 * that are.
 *
 *     bench_cold [--dir DIR] [--bytes 150528] [--samples 4000] [--read 0] [--batch 64] [--ahead 4] [--threads 2]
 *                [--repeats 3] [--epochs 0]
 *
 * The program makes a file of samples and measures each combination of access (mmap, pread), order (sequential,
 * random), the access pattern passed to the kernel (the one that the reader uses for this order, or "normal": none) and
 * look-ahead (off; on: will_need is called for a batch `ahead` batches before it is read). For each, it drops the
 * file's pages and reads every sample once: `threads` threads claim samples from a counter, as the loader's workers do,
 * and copy each sample to their own memory. It prints medians of MB/s, MB read from the disk, and CPU seconds; the same
 * with all pages resident; and the cost of one call to will_need with all pages resident.
 *
 * The program cannot drop the caches of the disk itself or of a virtual machine's host, so in those only the first run
 * may be cold. It therefore shuffles the order of the runs in each repeat.
 *
 * With --epochs N, the program measures data larger than memory instead: a loader with `threads` workers reads N epochs
 * in a memory cgroup that is limited to half the file's size. The program creates this cgroup below its own. If none
 * can be created, the program prints the reason and measures nothing. For each order and access, over eight intervals
 * of each epoch after the first, it prints the median, lowest and highest MB/s, the bytes read from the disk per
 * delivered byte, and CPU seconds per delivered GB. */
#include "clock.h"
#include "format.h"
#include "philox.h"
#include "reader.h"
#include "thread.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum pattern { BY_ORDER, NORMAL };

struct setting {
    enum stki_access access;
    bool random;
    enum pattern pattern;
    bool look_ahead;
};

struct result {
    double mb_s, disk_mb, cpu_s;
};

struct job {
    const stki_reader *reader;
    const int64_t *order;
    int64_t samples, batch, ahead;
    bool look_ahead;
    _Atomic int64_t next;
    _Atomic int64_t advised;
    _Atomic int64_t failed;
};

static void die(const char *what)
{
    fprintf(stderr, "bench_cold: %s\n", what);
    exit(1);
}

static void advise_batch(struct job *job, int64_t batch)
{
    int64_t first = batch * job->batch, n = job->samples - first < job->batch ? job->samples - first : job->batch;

    if (n > 0)
        job->reader->ops->will_need(job->reader, job->order + first, n);
}

/* The thread that claims the first sample of a batch announces the batch `ahead` batches later. */
static void work(void *context)
{
    struct job *job = context;
    char *mine = malloc((size_t)job->reader->max_bytes);
    stki_scratch scratch;
    int64_t i;

    stki_scratch_init(&scratch);
    while ((i = atomic_fetch_add(&job->next, 1)) < job->samples) {
        stk_tensor t;
        if (job->look_ahead && i % job->batch == 0)
            advise_batch(job, i / job->batch + job->ahead);
        if (job->reader->ops->read(job->reader, job->order[i], NULL, &scratch, &t, NULL)) {
            atomic_fetch_add(&job->failed, 1);
            continue;
        }
        memcpy(mine, t.data, (size_t)job->reader->max_bytes);
        stki_reader_done(job->reader, &t);
    }
    stki_scratch_fini(&scratch);
    free(mine);
}

static int64_t disk_bytes(void)
{
    FILE *file = fopen("/proc/self/io", "r");
    char line[128];
    int64_t bytes = 0;

    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "read_bytes: ", 12))
            bytes = strtoll(line + 12, NULL, 10);
    if (file)
        fclose(file);
    return bytes;
}

static double cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static void drop(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
        die("can't drop the file's pages");
    close(fd);
}

static void warm(const char *path)
{
    static char buffer[1 << 20];
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    while (read(fd, buffer, sizeof buffer) > 0)
        ;
    close(fd);
}

/* Mapped readers look ahead only in random order. To measure look-ahead in sequential order too, the file is opened for
 * random order, and the access pattern is set here. */
static stki_reader *open_reader(const char *path, const struct setting *s)
{
    stki_reader_opts opts = {.access = s->access,
                             .pattern = s->random || (s->look_ahead && s->access == STKI_ACCESS_MMAP)
                                            ? STKI_PATTERN_RANDOM
                                            : STKI_PATTERN_SEQUENTIAL};
    stki_reader *reader;
    stk_error err;

    if (stki_reader_open(path, &opts, &reader, &err))
        die(err.message);
    if (reader->base && (s->pattern == NORMAL || (!s->random && s->look_ahead)))
        (void)madvise((char *)(uintptr_t)reader->base - reader->data_offset, (size_t)reader->file_bytes,
                      s->pattern == NORMAL ? MADV_NORMAL : MADV_SEQUENTIAL);
    return reader;
}

static struct result run(const char *path, const struct setting *s, struct job *plan, int threads, bool cold)
{
    stki_reader *reader;
    stki_thread *handles[64];
    int64_t start, bytes;
    double cpu, seconds;

    if (cold)
        drop(path);
    else
        warm(path);
    reader = open_reader(path, s);
    plan->reader = reader;
    plan->look_ahead = s->look_ahead;
    atomic_store(&plan->next, 0);
    bytes = disk_bytes();
    cpu = cpu_seconds();
    start = stki_now_ns();
    for (int64_t b = 0; s->look_ahead && b < plan->ahead; b++)
        advise_batch(plan, b);
    for (int i = 0; i < threads; i++)
        if (stki_thread_start(&handles[i], "cold", work, plan, NULL))
            die("can't start a thread");
    for (int i = 0; i < threads; i++)
        (void)stki_thread_join(handles[i], INT64_MAX);
    seconds = (double)(stki_now_ns() - start) * 1e-9;
    if (atomic_load(&plan->failed))
        die("a read failed");
    struct result result = {(double)(plan->samples * reader->max_bytes) * 1e-6 / seconds,
                            (double)(disk_bytes() - bytes) * 1e-6, cpu_seconds() - cpu};
    stki_reader_destroy(reader);
    return result;
}

static void make_file(const char *path, int64_t samples, int64_t bytes)
{
    FILE *file = fopen(path, "wb");
    char text[118], *sample = malloc((size_t)bytes);
    int length =
        snprintf(text, sizeof text, "{'descr': '|u1', 'fortran_order': False, 'shape': (%" PRId64 ", %" PRId64 "), }",
                 samples, bytes);

    memset(text + length, ' ', sizeof text - (size_t)length);
    text[sizeof text - 1] = '\n';
    if (!file || !sample || fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file) != 10 ||
        fwrite(text, 1, sizeof text, file) != sizeof text)
        die("can't make the file");
    for (int64_t i = 0; i < samples; i++) {
        for (int64_t at = 0; at + 16 <= bytes; at += 16) {
            stki_philox word = stki_philox_draw(1, (uint64_t)i, (uint64_t)at);
            memcpy(sample + at, &word, 16);
        }
        if (fwrite(sample, 1, (size_t)bytes, file) != (size_t)bytes)
            die("can't write the file");
    }
    if (fflush(file) || fsync(fileno(file)) || fclose(file))
        die("can't write the file");
    free(sample);
}

static int by_rate(const void *a, const void *b)
{
    const struct result *x = a, *y = b;

    return (x->mb_s > y->mb_s) - (x->mb_s < y->mb_s);
}

/* CPU ns of one call to will_need for a batch whose pages are all resident. */
static double advice_ns(const char *path, const struct setting *s, struct job *plan)
{
    stki_reader *reader;
    int64_t calls = 0;
    double start;

    warm(path);
    reader = open_reader(path, s);
    plan->reader = reader;
    start = cpu_seconds();
    while (cpu_seconds() - start < 0.2)
        for (int i = 0; i < 1000; i++)
            advise_batch(plan, calls++ % ((plan->samples + plan->batch - 1) / plan->batch));
    start = (cpu_seconds() - start) * 1e9 / (double)calls;
    stki_reader_destroy(reader);
    return start;
}

/* ---- data larger than memory ---- */

enum { PATH_ROOM = 4096, EPOCHS_MAX = 16, INTERVALS = 8 };

typedef struct group {
    char own[PATH_ROOM], made[PATH_ROOM + 32]; /* folders */
} group;

static bool write_number(const char *folder, const char *name, int64_t number)
{
    char path[PATH_ROOM + 64];
    FILE *file;
    bool written;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "we");
    written = file && fprintf(file, "%" PRId64 "\n", number) > 0;
    return file && fclose(file) == 0 && written;
}

/* Finds the folder of the process's cgroup (of version 1 if that has the memory controller). Returns the name of the
 * file that sets its limit, or NULL. */
static const char *own_group(char *folder)
{
    static const char *const names[] = {"memory.max", "memory.limit_in_bytes"};
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[PATH_ROOM - 64];
    int first = -1;

    while (file && first != 1 && fgets(line, sizeof line, file)) {
        const char *path = strstr(line, ":memory:");

        line[strcspn(line, "\n")] = '\0';
        if (path)
            snprintf(folder, PATH_ROOM, "/sys/fs/cgroup/memory%s", path + 8);
        else if (strncmp(line, "0::", 3) == 0)
            snprintf(folder, PATH_ROOM, "/sys/fs/cgroup%s", line + 3);
        first = path ? 1 : strncmp(line, "0::", 3) == 0 ? 0 : first;
    }
    if (file)
        fclose(file);
    return first < 0 ? NULL : names[first];
}

static bool enter_group(group *g, int64_t bytes)
{
    const char *limit = own_group(g->own);

    snprintf(g->made, sizeof g->made, "%s/bench_cold.%d", g->own, (int)getpid());
    if (limit && mkdir(g->made, 0755) == 0) {
        if (write_number(g->made, limit, bytes) && write_number(g->made, "cgroup.procs", getpid()))
            return true;
        limit = strerror(errno);
        rmdir(g->made);
    } else {
        limit = limit ? strerror(errno) : "there are no cgroups";
    }
    printf("no memory cgroup could be made (%s): nothing measured\n", limit);
    return false;
}

static void leave_group(const group *g)
{
    if (!write_number(g->own, "cgroup.procs", getpid()) || rmdir(g->made))
        fprintf(stderr, "bench_cold: can't remove %s\n", g->made);
}

static int by_number(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Reads all epochs; the last one ends with STK_END. */
static void read_epochs(const char *path, const char *order, const char *access, const int64_t *values)
{
    const int64_t epochs = values[7], per_epoch = (values[1] + values[2] - 1) / values[2];
    const int64_t each = per_epoch / INTERVALS > 0 ? per_epoch / INTERVALS : 1;
    double rates[EPOCHS_MAX * INTERVALS + 1], cpu = 0;
    int64_t batches = 0, start = 0, disk = 0;
    char text[PATH_ROOM + 512];
    int count = 0;
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;

    drop(path);
    snprintf(text, sizeof text,
             "{dataset: {fields: {x: {path: '%s'}}}, loader: {access: %s, order: %s, seed: 1, batch_size: "
             "%" PRId64 ", num_workers: %" PRId64 ", num_epochs: %" PRId64 "}}",
             path, access, order, values[2], values[4], epochs);
    if (stk_loader_open_text(text, NULL, NULL, 0, &loader, &err) != STK_OK)
        die(err.message);
    while (stk_loader_next(loader, &batch, &err) == STK_OK) {
        stk_batch_release(batch);
        if (++batches == per_epoch) {
            disk = disk_bytes();
            cpu = cpu_seconds();
            start = stki_now_ns();
        }
        if (batches <= per_epoch || (batches - per_epoch) % each != 0 || count >= (epochs - 1) * INTERVALS)
            continue;
        const int64_t now = stki_now_ns();
        rates[count++] = (double)(each * values[2] * values[0]) * 1e3 / (double)(now - start);
        start = now;
    }
    const double bytes = (double)((epochs - 1) * values[1] * values[0]);
    disk = disk_bytes() - disk;
    cpu = cpu_seconds() - cpu;
    stk_loader_destroy(loader);
    qsort(rates, (size_t)count, sizeof rates[0], by_number);
    printf("%-8s %-6s %9.0f %9.0f %9.0f %9.2f %9.2f\n", order, access, rates[count / 2], rates[0], rates[count - 1],
           (double)disk / bytes, cpu / bytes * 1e9);
    fflush(stdout);
}

static void measure_larger(const char *path, const int64_t *values)
{
    static const char *const orders[] = {"random", "block"}, *const accesses[] = {"mmap", "pread"};
    const int64_t half = values[0] * values[1] / 2;
    group g;

    if (!enter_group(&g, half))
        return;
    printf("%" PRId64 " samples of %" PRId64 " bytes, batches of %" PRId64 ", %" PRId64 " workers, %" PRId64
           " MB of memory, %" PRId64 " epochs\n%-8s %-6s %9s %9s %9s %9s %9s\n",
           values[1], values[0], values[2], values[4], half / 1000000, values[7], "order", "access", "MB/s", "lowest",
           "highest", "disk", "CPU s/GB");
    for (int o = 0; o < 2; o++)
        for (int a = 0; a < 2; a++)
            read_epochs(path, orders[o], accesses[a], values);
    leave_group(&g);
}

int main(int argc, char **argv)
{
    const char *dir = ".", *names[] = {"--bytes",   "--samples", "--batch", "--ahead",
                                       "--threads", "--repeats", "--read",  "--epochs"};
    int64_t values[] = {150528, 4000, 64, 4, 2, 3, 0, 0};
    struct setting settings[24];
    struct result results[24][16];
    int count = 0, repeats;
    int64_t *orders[2];
    struct job job = {0};
    char path[4096];

    for (int i = 1; i < argc; i++) {
        int known = 0;
        for (int k = 0; k < 8 && i + 1 < argc; k++)
            if (!strcmp(argv[i], names[k]))
                values[k] = strtoll(argv[++i], NULL, 10), known = 1;
        if (!known && !strcmp(argv[i], "--dir") && i + 1 < argc)
            dir = argv[++i], known = 1;
        if (!known || values[0] < 1 || values[1] < 1 || values[2] < 1 || values[4] < 1 || values[4] > 64 ||
            values[7] == 1 || values[7] > EPOCHS_MAX)
            die("wrong arguments; the first comment of bench_cold.c lists them");
    }
    repeats = values[5] < 1 ? 1 : values[5] > 16 ? 16 : (int)values[5];
    job.samples = values[1], job.batch = values[2], job.ahead = values[3];
    snprintf(path, sizeof path, "%s/bench_cold.npy", dir);
    make_file(path, job.samples, values[0]);
    if (values[7] > 0) {
        measure_larger(path, values);
        unlink(path);
        return 0;
    }
    for (int r = 0; r < 2; r++) {
        orders[r] = malloc(sizeof **orders * (size_t)job.samples);
        for (int64_t i = 0; i < job.samples; i++)
            orders[r][i] = i;
        for (int64_t i = job.samples - 1; r && i > 0; i--) {
            int64_t j = (int64_t)stki_philox_below(7, 0, (uint64_t)i, (uint64_t)i + 1), other = orders[r][i];
            orders[r][i] = orders[r][j];
            orders[r][j] = other;
        }
    }
    if (values[6] > 0 && values[6] < job.samples)
        job.samples = values[6];
    for (int random = 0; random < 2; random++)
        for (int access = STKI_ACCESS_MMAP; access <= STKI_ACCESS_PREAD; access++)
            for (int pattern = BY_ORDER; pattern <= (access == STKI_ACCESS_MMAP ? NORMAL : BY_ORDER); pattern++)
                for (int ahead = 0; ahead < 2; ahead++)
                    settings[count++] =
                        (struct setting){(enum stki_access)access, random, (enum pattern)pattern, ahead};
    printf("reading %" PRId64 " samples of %" PRId64 " bytes, batches of %" PRId64 ", %" PRId64 " ahead, %" PRId64
           " threads, medians of %d\n%-11s %-6s %-7s %-10s %9s %9s %7s | warm %9s %7s\n",
           job.samples, values[0], job.batch, job.ahead, values[4], repeats, "order", "access", "pattern", "look-ahead",
           "MB/s", "disk MB", "CPU s", "MB/s", "CPU s");
    for (int n = 0; n < repeats; n++)
        for (int k = 0; k < count; k++) {
            int i = (k * 7 + n * 5) % count; /* 7 and the count (12) are coprime */
            job.order = orders[settings[i].random];
            results[i][n] = run(path, &settings[i], &job, (int)values[4], true);
        }
    for (int i = 0; i < count; i++) {
        struct result w;
        job.order = orders[settings[i].random];
        (void)run(path, &settings[i], &job, (int)values[4], false);
        w = run(path, &settings[i], &job, (int)values[4], false);
        qsort(results[i], (size_t)repeats, sizeof results[i][0], by_rate);
        printf("%-11s %-6s %-7s %-10s %9.0f %9.0f %7.2f |      %9.0f %7.2f\n",
               settings[i].random ? "random" : "sequential", settings[i].access == STKI_ACCESS_MMAP ? "mmap" : "pread",
               settings[i].pattern == NORMAL ? "normal" : "order", settings[i].look_ahead ? "on" : "off",
               results[i][repeats / 2].mb_s, results[i][repeats / 2].disk_mb, results[i][repeats / 2].cpu_s, w.mb_s,
               w.cpu_s);
        fflush(stdout);
    }
    for (int access = STKI_ACCESS_MMAP; access <= STKI_ACCESS_PREAD; access++) {
        struct setting s = {.access = (enum stki_access)access, .random = true};
        job.order = orders[1];
        printf("will_need of a batch, all resident, %s: %.0f ns of CPU\n",
               access == STKI_ACCESS_MMAP ? "mmap" : "pread", advice_ns(path, &s, &job));
    }
    unlink(path);
    free(orders[0]);
    free(orders[1]);
    return 0;
}
