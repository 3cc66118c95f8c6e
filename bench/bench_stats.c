/* bench_stats.c: statistics and calibration in a job, compared with reading the same bytes.
 *
 *     bench_stats [--file FILE.npy] [--bytes 1024] [--threads 2] [--rounds 5]
 *
 * FILE is created if it does not exist: f32, rows of 1024, --bytes MiB; it is in the page cache. These alternate:
 *
 *   - plain threads that read it, with pread(2) into a buffer of 1 MiB each, or from a mapping
 *   - jobs that only compute statistics
 *   - jobs that quantize it to int8 after a calibration pass; their limit is reading the file twice and writing a
 *     quarter of the bytes
 *
 * The program prints median wall times, bytes/s, CPU time, and the ratio to the limit.
 */
#include "bench_support.h"
#include "limit_kernels.h"
#include <fcntl.h>
#include <stoker/stoker.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROW = 1024, BLOCK = 1 << 20, MOST_THREADS = 16 };

static const char *file_path = "/tmp/bench_stats.npy";
static int64_t bytes = INT64_C(1) << 30, threads = 2;
static stk_error err;

static void must(stk_status status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "bench_stats: %s\n", err.message);
    exit(1);
}

static void make_file(void)
{
    stk_npy_writer *writer;
    float *rows = malloc(BLOCK);
    uint64_t state = 1;
    struct stat st;

    if (stat(file_path, &st) == 0) {
        bytes = st.st_size / (ROW * 4) * (ROW * 4);
        free(rows);
        return;
    }
    must(stk_npy_create(file_path, STK_F32, 1, (const int64_t[]){ROW}, false, &writer, &err));
    for (int64_t at = 0; at < bytes; at += BLOCK) {
        for (int i = 0; i < BLOCK / 4; i++) { /* sums of four uniform numbers are roughly normal */
            float sum = 0;

            for (int k = 0; k < 4; k++) {
                state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                sum += (float)(state >> 40) * 0x1p-24f - 0.5f;
            }
            rows[i] = sum;
        }
        must(stk_npy_append(writer, rows, BLOCK / (ROW * 4), &err));
    }
    must(stk_npy_commit(writer, &err));
    free(rows);
}

/* ---- the limits ---- */

typedef struct part {
    int64_t first, end;
    bool mapped;
    uint64_t sum;
    pthread_t thread;
} part;

static void *read_part(void *context)
{
    part *p = context;
    int fd = open(file_path, O_RDONLY);
    char *buffer = malloc(BLOCK);

    if (p->mapped) {
        const char *map = mmap(NULL, (size_t)p->end, PROT_READ, MAP_SHARED, fd, 0);

        for (int64_t at = p->first; at + BLOCK <= p->end; at += BLOCK)
            p->sum += limit_read(map + at, BLOCK);
        munmap((void *)(uintptr_t)map, (size_t)p->end);
    } else {
        for (int64_t at = p->first; at < p->end; at += BLOCK)
            if (pread(fd, buffer, BLOCK, at) < 0)
                perror(file_path);
    }
    free(buffer);
    close(fd);
    return NULL;
}

static void read_all(bool mapped)
{
    part parts[MOST_THREADS];
    const int64_t blocks = bytes / BLOCK;

    for (int64_t i = 0; i < threads; i++) {
        parts[i] =
            (part){.first = blocks * i / threads * BLOCK, .end = blocks * (i + 1) / threads * BLOCK, .mapped = mapped};
        if (pthread_create(&parts[i].thread, NULL, read_part, &parts[i]))
            abort();
    }
    for (int64_t i = 0; i < threads; i++)
        pthread_join(parts[i].thread, NULL);
}

/* Writes as many bytes as a quantized file has: a quarter. */
static void write_quarter(void)
{
    char *buffer = calloc(1, BLOCK), path[600];
    int fd;

    snprintf(path, sizeof path, "%s.written", file_path);
    fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0666);
    for (int64_t at = 0; at < bytes / 4; at += BLOCK)
        if (write(fd, buffer, BLOCK) < 0)
            perror(path);
    if (fdatasync(fd))
        perror(path);
    close(fd);
    unlink(path);
    free(buffer);
}

/* ---- jobs ---- */

static void job(const char *transforms, const char *rest)
{
    char text[2000];
    stk_prep_opts opts = STK_PREP_OPTS_INIT;
    stk_prep *prep;

    snprintf(text, sizeof text, "dataset: {fields: {x: {path: %s, transforms: [%s]}}}\nprep: {num_workers: %lld}\n%s\n",
             file_path, transforms, (long long)threads, rest);
    opts.force = true;
    must(stk_prep_open_text(text, NULL, NULL, 0, &opts, &prep, &err));
    must(stk_prep_run(prep, &err));
    stk_prep_destroy(prep);
}

static void statistics(const char *options)
{
    char rest[900];

    snprintf(rest, sizeof rest, "stats: {path: %s.stats.json, fields: {x: {%s}}}", file_path, options);
    job("", rest);
}

static void quantized(const char *method)
{
    char rest[900], transforms[100];

    snprintf(rest, sizeof rest, "output: {path: %s.int8.npy}", file_path);
    snprintf(transforms, sizeof transforms, "{quantize: {calibrate: %s}}", method);
    job(transforms, rest);
}

enum { READ, MAP, WRITE, MOMENTS, HISTOGRAM, MINMAX, MSE, WAYS };
static const char *const names[] = {"read(2)",          "a mapping",           "writing a quarter, synced",
                                    "mean std min max", "with calibrate: mse", "to int8, minmax",
                                    "to int8, mse"};

static void run_way(int way)
{
    switch (way) {
    case READ:
    case MAP:
        read_all(way == MAP);
        break;
    case WRITE:
        write_quarter();
        break;
    case MOMENTS:
        statistics("");
        break;
    case HISTOGRAM:
        statistics("calibrate: mse");
        break;
    default:
        quantized(way == MINMAX ? "minmax" : "mse");
    }
}

static double cpu_seconds(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

static int compare(const void *a, const void *b)
{
    const double p = *(const double *)a, q = *(const double *)b;

    return p < q ? -1 : p > q;
}

int main(int argc, char **argv)
{
    static double seconds[WAYS][BENCH_MAX_ROUNDS];
    double median[WAYS], cpu[WAYS] = {0}, limit, write_limit;
    int rounds = 5;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--file") == 0)
            file_path = argv[i + 1];
        else if (strcmp(argv[i], "--bytes") == 0)
            bytes = atoll(argv[i + 1]) << 20;
        else if (strcmp(argv[i], "--threads") == 0)
            threads = atoll(argv[i + 1]);
        else if (strcmp(argv[i], "--rounds") == 0)
            rounds = atoi(argv[i + 1]);
    }
    make_file();
    for (int round = -1; round < rounds; round++)
        for (int way = 0; way < WAYS; way++) {
            const int64_t begin = stki_now_ns();
            const double before = cpu_seconds();

            run_way(way);
            if (round < 0)
                continue;
            seconds[way][round] = (double)(stki_now_ns() - begin) * 1e-9;
            cpu[way] += (cpu_seconds() - before) / rounds;
        }
    for (int way = 0; way < WAYS; way++) {
        qsort(seconds[way], (size_t)rounds, sizeof(double), compare);
        median[way] = seconds[way][rounds / 2];
    }
    limit = median[READ] < median[MAP] ? median[READ] : median[MAP];
    write_limit = 2 * limit + median[WRITE];
    printf("%lld MiB of f32, %lld threads\n", (long long)bytes >> 20, (long long)threads);
    for (int way = 0; way < WAYS; way++) {
        printf("%-28s %8.3f s  %7.2f GB/s  %7.3f CPU s", names[way], median[way], (double)bytes / median[way] * 1e-9,
               cpu[way]);
        if (way >= MOMENTS)
            printf("  %5.1f %% of %s", 100 * (way >= MINMAX ? write_limit : limit) / median[way],
                   way >= MINMAX ? "two readings and a writing" : "reading");
        printf("\n");
    }
    return 0;
}
