/* bench_hdf5.c: the loader on HDF5 files, compared with the machine's limits for the same chunks.
 *
 *     bench_hdf5 DATA [--seconds 1] [--rounds 5] [--workers 2] [--only NAME]
 *     bench_hdf5 limit FILE.h5 [--seconds 1] [--workers 2]
 *
 * DATA is a folder made by bench/peers/make_data.py; w4/x.npy, the rows of w4/contig.h5 as .npy, is created if it does
 * not exist. Each round runs all variants one after another, each for --seconds. The program prints the median of the
 * rounds and the CPU seconds per delivered GB. `row` reads rows in random order, `blk` reads runs of 64 rows in random
 * order, and `block` reads rows in `order: block` with a cache that is much smaller than the data. For the limits, the
 * same number of threads inflate (and unshuffle) the chunks from a mapping of the file into per-thread memory, and
 * deliver nothing. */
#include "allocate.h"
#include "clock.h"
#include "container.h"
#include "format.h"
#include "hdf5_chunks.h"
#include "npy_write.h"
#include "thread.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MOST_ROUNDS = 101, MOST_THREADS = 16 };

struct limit {
    stki_hdf5_chunks *chunks;
    bool inflate_only;
};

struct way {
    const char *name, *file, *dataset, *options; /* options of the loader; NULL: measures a limit */
    int rows_per_sample;
    stk_loader *loader;
    struct limit limit;
    double rate[MOST_ROUNDS], cpu[MOST_ROUNDS]; /* rows/s; CPU seconds per GB */
};

static struct way ways[] = {
    {"npy row", "x.npy", NULL, "loader: {order: random, batch_size: 256, num_epochs: 0, cache_bytes: 16MiB}", 1},
    {"contig row", "contig.h5", "x", "loader: {order: random, batch_size: 256, num_epochs: 0, cache_bytes: 16MiB}", 1},
    {"chunk row", "chunk.h5", "x", "loader: {order: random, batch_size: 256, num_epochs: 0, cache_bytes: 16MiB}", 1},
    {"npy blk", "x.npy", NULL, "loader: {order: random, batch_size: 4, num_epochs: 0, cache_bytes: 16MiB}", 64},
    {"contig blk", "contig.h5", "x", "loader: {order: random, batch_size: 4, num_epochs: 0, cache_bytes: 16MiB}", 64},
    {"chunk blk", "chunk.h5", "x", "loader: {order: random, batch_size: 4, num_epochs: 0, cache_bytes: 16MiB}", 64},
    {"gzip blk", "gzip.h5", "x", "loader: {order: random, batch_size: 4, num_epochs: 0, cache_bytes: 16MiB}", 64},
    {"gzip block", "gzip.h5", "x", "loader: {order: block, batch_size: 256, num_epochs: 0, cache_bytes: 16MiB}", 1},
    {"gzip limit", "gzip.h5", "x", NULL, 64},
    {"img", "img.h5", "images", "loader: {order: random, batch_size: 64, num_epochs: 0, cache_bytes: 16MiB}", 1},
    {"img limit", "img.h5", "images", NULL, 1},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

static const char *data;
static double seconds = 1;
static int rounds = 5, workers = 2;

static void die(const char *what, const stk_error *err)
{
    fprintf(stderr, "bench_hdf5: %s: %s\n", what, err ? err->message : "failed");
    exit(1);
}

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* ---- through the loader ---- */

static void open_loader(struct way *w)
{
    char text[1024], source[160] = "", set[64];
    const char *sets[] = {set};
    stk_error err;

    if (w->dataset && w->rows_per_sample > 1)
        snprintf(source, sizeof source, "source: {name: %s, window: {length: %d, stride: %d}}, ", w->dataset,
                 w->rows_per_sample, w->rows_per_sample);
    else if (w->dataset)
        snprintf(source, sizeof source, "source: {name: %s}, ", w->dataset);
    else if (w->rows_per_sample > 1)
        snprintf(source, sizeof source, "source: {window: {length: %d, stride: %d}}, ", w->rows_per_sample,
                 w->rows_per_sample);
    snprintf(text, sizeof text, "%s\ndataset: {fields: {x: {path: %s/w4/%s, %s}}}\n", w->options, data, w->file,
             source);
    snprintf(set, sizeof set, "loader.num_workers=%d", workers);
    if (stk_loader_open_text(text, ".", sets, 1, &w->loader, &err))
        die(w->name, &err);
    for (int i = 0; i < stk_loader_note_count(w->loader); i++)
        printf("%s: note: %s\n", w->name, stk_loader_note(w->loader, i));
}

static int64_t run_loader(struct way *w, int64_t until, int64_t *bytes)
{
    int64_t rows = 0;

    while (stki_now_ns() < until) {
        stk_batch *batch;
        stk_tensor t;
        stk_error err;

        if (stk_loader_next(w->loader, &batch, &err) || stk_batch_tensor(batch, "x", &t, &err))
            die(w->name, &err);
        rows += stk_batch_rows(batch) * w->rows_per_sample;
        *bytes += stk_tensor_nbytes(&t);
        stk_batch_release(batch);
    }
    return rows;
}

/* ---- the limit ---- */

static void open_limit(struct way *w, const char *path)
{
    stki_reader_opts opts = {.name = w->dataset, .pattern = STKI_PATTERN_RANDOM};
    stki_hdf5_file *file = NULL;
    stki_hdf5_dataset *dataset = NULL;
    stk_error err;

    if (stki_hdf5_file_open(path, &opts, &file, &err) || stki_hdf5_dataset_open(file, w->dataset, &dataset, &err) ||
        stki_hdf5_chunks_open(dataset, NULL, &opts, &w->limit.chunks, &err))
        die(w->name, &err);
    stki_hdf5_dataset_release(dataset);
    stki_hdf5_file_release(file);
}

struct team {
    const struct way *way;
    int64_t until;
    stki_counter next, rows, bytes;
};

static void run_member(void *context)
{
    struct team *team = context;
    const stki_hdf5_chunks *c = team->way->limit.chunks;
    char *to = malloc((size_t)c->grid.chunk_bytes + 64), *room = malloc((size_t)stki_hdf5_chunks_room(c) + 64);

    while (stki_now_ns() < team->until) {
        int64_t n = atomic_fetch_add(&team->next, 1);
        int64_t chunk = (int64_t)((uint64_t)n * UINT64_C(2654435761) % (uint64_t)c->grid.count); /* far apart */

        if (stki_hdf5_chunks_load(c, chunk, to, room, NULL))
            die(team->way->name, NULL);
        stki_count(&team->rows, team->way->rows_per_sample);
        stki_count(&team->bytes, c->grid.chunk_bytes);
    }
    free(to);
    free(room);
}

static int64_t run_limit(struct way *w, int64_t until, int64_t *bytes)
{
    struct team team = {.way = w, .until = until};
    stki_thread *threads[MOST_THREADS];

    for (int i = 0; i < workers; i++)
        if (stki_thread_start(&threads[i], "limit", run_member, &team, NULL))
            die("a thread", NULL);
    for (int i = 0; i < workers; i++)
        (void)stki_thread_join(threads[i], INT64_MAX);
    *bytes += stki_counted(&team.bytes);
    return stki_counted(&team.rows);
}

/* ---- rounds ---- */

static void run_way(struct way *w, int round)
{
    int64_t start = stki_now_ns(), until = start + (int64_t)(seconds * 1e9), bytes = 0, rows;
    double cpu = cpu_seconds(), t;

    rows = w->options ? run_loader(w, until, &bytes) : run_limit(w, until, &bytes);
    t = (double)(stki_now_ns() - start) * 1e-9;
    if (round < 0)
        return;
    w->rate[round] = (double)rows / t;
    w->cpu[round] = (cpu_seconds() - cpu) / ((double)bytes * 1e-9);
}

static int ascending(const void *a, const void *b)
{
    double x, y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, (size_t)rounds, sizeof *values, ascending);
    return values[rounds / 2];
}

/* Creates x.npy with the rows of contig.h5. */
static void make_npy(void)
{
    char path[512], from[512];
    stki_reader_opts opts = {.name = "x"};
    stki_npy_writer *writer;
    stki_container *c;
    stki_array array;
    stk_tensor t;
    stk_error err;

    snprintf(path, sizeof path, "%s/w4/x.npy", data);
    snprintf(from, sizeof from, "%s/w4/contig.h5", data);
    if (!access(path, F_OK))
        return;
    if (stki_container_open(from, &opts, &c, &err) || stki_container_array(c, 0, &opts, &array, &err) ||
        stki_array_tensor(&array, from, &t, &err) ||
        stki_npy_create(path, t.dtype, t.ndim - 1, t.shape + 1, false, &writer, &err) ||
        stki_npy_append(writer, t.data, t.shape[0], &err) || stki_npy_commit(writer, &err))
        die(path, &err);
    stk_tensor_release(&t);
    stki_array_release(&array);
    stki_container_release(c);
}

static void open_way(struct way *w)
{
    char path[512];

    snprintf(path, sizeof path, "%s/w4/%s", data, w->file);
    if (w->options)
        open_loader(w);
    else
        open_limit(w, path);
}

static double rate_of(const char *name)
{
    for (int i = 0; i < WAYS; i++)
        if (!strcmp(ways[i].name, name))
            return ways[i].rate[rounds / 2];
    return 0;
}

static void compare(const char *name, const char *with)
{
    if (rate_of(name) > 0 && rate_of(with) > 0)
        printf("%-12s %6.1f %% of %s\n", name, 100 * rate_of(name) / rate_of(with), with);
}

/* Measures the limit for the first chunked data set of a file; rows are samples along axis 0. */
static int measure_limit(const char *path)
{
    struct way w = {.name = path, .rows_per_sample = 1};
    const char *slash = strrchr(path, '/'), *stem = slash ? slash + 1 : path;
    stki_container *c;
    stk_error err;

    if (stki_container_open(path, NULL, &c, &err))
        die(path, &err);
    for (int64_t i = 0; i < c->member_count && !w.limit.chunks; i++)
        if (!strcmp(c->members[i].layout, "chunked")) {
            w.dataset = c->members[i].name;
            open_limit(&w, path);
        }
    if (!w.limit.chunks)
        die(path, NULL);
    w.rows_per_sample = (int)w.limit.chunks->grid.chunk[0];
    rounds = 1;
    for (int round = -1; round < rounds; round++)
        run_way(&w, round);
    printf("limit %.*s %d %.0f rows/s, %.2f CPU s/GB\n", (int)strcspn(stem, "."), stem, workers, w.rate[0], w.cpu[0]);
    stki_hdf5_chunks_destroy(w.limit.chunks);
    stki_container_release(c);
    return 0;
}

int main(int argc, char **argv)
{
    const char *only = NULL;
    bool limit = argc > 2 && !strcmp(argv[1], "limit");

    for (int i = 1 + limit; i < argc; i++) {
        if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
            seconds = atof(argv[++i]);
        else if (!strcmp(argv[i], "--rounds") && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--workers") && i + 1 < argc)
            workers = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--only") && i + 1 < argc)
            only = argv[++i];
        else
            data = argv[i];
    }
    if (!data || rounds < 1 || rounds > MOST_ROUNDS || workers < 1 || workers > MOST_THREADS || seconds <= 0) {
        fprintf(stderr, "usage: bench_hdf5 DATA [--seconds 1] [--rounds 5] [--workers 2] [--only NAME]\n");
        return 2;
    }
    if (limit)
        return measure_limit(data);
    make_npy();
    for (int i = 0; i < WAYS; i++)
        if (!only || strstr(ways[i].name, only))
            open_way(&ways[i]);
    for (int round = -1; round < rounds; round++)
        for (int i = 0; i < WAYS; i++)
            if (ways[i].loader || ways[i].limit.chunks)
                run_way(&ways[i], round);
    printf("%-12s %12s %12s\n", "", "rows/s", "CPU s/GB");
    for (int i = 0; i < WAYS; i++)
        if (ways[i].loader || ways[i].limit.chunks)
            printf("%-12s %12.0f %12.2f\n", ways[i].name, median(ways[i].rate), median(ways[i].cpu));
    compare("contig row", "npy row");
    compare("chunk row", "npy row");
    compare("contig blk", "npy blk");
    compare("chunk blk", "npy blk");
    compare("gzip blk", "gzip limit");
    compare("gzip block", "gzip blk");
    compare("img", "img limit");
    for (int i = 0; i < WAYS; i++) {
        stk_loader_destroy(ways[i].loader);
        stki_hdf5_chunks_destroy(ways[i].limit.chunks);
    }
    return 0;
}
