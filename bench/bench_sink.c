/* bench_sink.c: the cost of the output formats of preparation jobs, compared with writing the same bytes.
 *
 *     bench_sink [--folder DIR] [--bytes 512] [--row 196608] [--rounds 5] [--sync]
 *
 * Rows from 64 MiB of memory are written to an .npy, a .beton, a tar and a raw file in batches of 64 rows, alternating
 * with a plain loop of write(2) over the same batches. The program prints the median wall time and CPU time, and
 * their ratios to the plain loop. Without --sync, files are not synced; with it, every variant ends with its fsync,
 * including the plain loop.
 */
#include "bench_support.h"
#include "output.h"
#include "sinks.h"
#include <fcntl.h>
#include <stoker/stoker.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SOURCE = 64 << 20, BATCH = 64, WAYS = 5 };

static const char *folder = "/tmp";
static int64_t total_bytes = 512 << 20, row_bytes = 196608;
static bool synced;

/* The linker replaces the library's calls to fsync and fdatasync with these functions (--wrap). */
int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);
int __real_fsync(int fd);
int __real_fdatasync(int fd);

int __wrap_fsync(int fd)
{
    return synced ? __real_fsync(fd) : 0;
}

int __wrap_fdatasync(int fd)
{
    return synced ? __real_fdatasync(fd) : 0;
}
static char *source;
static stk_error err;

static void must(stk_status status)
{
    if (status == STK_OK)
        return;
    fprintf(stderr, "bench_sink: %s\n", err.message);
    exit(1);
}

static double cpu_seconds(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

static const char *row_at(int64_t row)
{
    return source + row % (SOURCE / row_bytes) * row_bytes;
}

static int64_t row_count(void)
{
    return total_bytes / row_bytes / BATCH * BATCH;
}

/* Writes as the simplest program would: one call per batch, or one for each contiguous part of it. */
static void plain_loop(const char *path)
{
    int64_t per_source = SOURCE / row_bytes;
    int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0666);

    for (int64_t row = 0, n; row < row_count(); row += n) {
        int64_t in_source = row % per_source;
        ssize_t done;

        n = per_source - in_source < BATCH ? per_source - in_source : BATCH;
        n = n < row_count() - row ? n : row_count() - row;
        done = write(file, row_at(row), (size_t)(n * row_bytes));
        if (done != n * row_bytes) {
            perror(path);
            exit(1);
        }
    }
    if (synced && fsync(file))
        perror(path);
    close(file);
}

static void sink_loop(const stki_sink_ops *ops, const char *path)
{
    const stki_sink_field fields[2] = {
        {.name = "x", .kind = STKI_SINK_ARRAY, .dtype = STK_U8, .ndim = 1, .shape = {row_bytes}},
        {.name = "label", .kind = STKI_SINK_ARRAY, .dtype = STK_I64}};
    const stki_sink_opts opts = {
        .path = path, .folder = folder, .fields = fields, .field_count = 2, .most_rows = row_count()};
    static stki_sink_value values[BATCH][2];
    static int64_t labels[BATCH];
    stki_sink *sink;

    must(ops->open(&opts, NULL, &sink, &err));
    for (int64_t row = 0; row < row_count(); row += BATCH) {
        for (int i = 0; i < BATCH; i++) {
            labels[i] = row + i;
            values[i][0] = (stki_sink_value){.bytes = row_at(row + i), .size = row_bytes};
            values[i][1] = (stki_sink_value){.bytes = &labels[i], .size = 8};
        }
        must(ops->append(sink, values[0], BATCH, &err));
    }
    must(ops->finish(sink, &err));
    ops->destroy(sink);
}

static void remove_files(const char *name)
{
    char command[600];

    snprintf(command, sizeof command, "rm -f %s/%s*", folder, name);
    if (system(command))
        fprintf(stderr, "bench_sink: cannot remove %s/%s\n", folder, name);
}

static void run_way(int way, double *wall, double *cpu)
{
    static const stki_sink_ops *const sinks[WAYS] = {NULL, &stki_sink_npy, &stki_sink_raw, &stki_sink_beton,
                                                     &stki_sink_tar};
    char path[500];
    int64_t begin;
    double before;

    snprintf(path, sizeof path, "%s/bench_sink%s", folder, way ? sinks[way]->endings[0] : ".plain");
    bench_settle();
    before = cpu_seconds();
    begin = stki_now_ns();
    if (way == 0)
        plain_loop(path);
    else
        sink_loop(sinks[way], path);
    *wall = (double)(stki_now_ns() - begin) * 1e-9;
    *cpu = cpu_seconds() - before;
    remove_files("bench_sink");
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, bench_ascending);
    return values[count / 2];
}

int main(int argc, char **argv)
{
    static const char *const names[WAYS] = {"plain write(2)", "npy", "raw", "beton", "tar"};
    static double wall[WAYS][BENCH_MAX_ROUNDS], cpu[WAYS][BENCH_MAX_ROUNDS];
    int rounds = 5;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--sync"))
            synced = true;
        else if (i + 1 < argc && !strcmp(argv[i], "--folder"))
            folder = argv[++i];
        else if (i + 1 < argc && !strcmp(argv[i], "--bytes"))
            total_bytes = (int64_t)atoll(argv[++i]) << 20;
        else if (i + 1 < argc && !strcmp(argv[i], "--row"))
            row_bytes = atoll(argv[++i]);
        else if (i + 1 < argc && !strcmp(argv[i], "--rounds"))
            rounds = atoi(argv[++i]);
        else
            rounds = 0;
    }
    if (rounds < 1 || rounds >= BENCH_MAX_ROUNDS || row_bytes < 1 || row_bytes > SOURCE / BATCH || row_count() < 1) {
        fprintf(stderr, "usage: bench_sink [--folder DIR] [--bytes MIB] [--row BYTES] [--rounds N] [--sync]\n");
        return 2;
    }
    source = malloc(SOURCE);
    if (!source)
        return 1;
    for (int64_t i = 0; i < SOURCE; i++)
        source[i] = (char)(i * 2654435761 >> 13);
    for (int round = -1; round < rounds; round++)
        for (int way = 0; way < WAYS; way++)
            run_way(way, &wall[way][round < 0 ? 0 : round], &cpu[way][round < 0 ? 0 : round]);
    for (int way = 0; way < WAYS; way++) {
        double w = median(wall[way], rounds), c = median(cpu[way], rounds);
        double gigabytes = (double)(row_count() * row_bytes) * 1e-9;

        printf("%-16s %7.3f s  %6.2f GB/s  %7.3f s of CPU time   speed %5.3f, processor %5.3f of plain\n", names[way],
               w, gigabytes / w, c, median(wall[0], rounds) / w, c / median(cpu[0], rounds));
    }
    free(source);
    return 0;
}
