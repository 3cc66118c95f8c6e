/* bench_support.h: shared by the benchmarks. Several variants ("ways") of the same work alternate, with one pass of
 * each per round, so that drift of the machine affects all of them equally. The median of the rounds is printed. */
#ifndef STKB_BENCH_SUPPORT_H
#define STKB_BENCH_SUPPORT_H

#include "clock.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BENCH_MAX_WAYS = 256, BENCH_MAX_ROUNDS = 1001 };

typedef struct bench_way {
    const char *name;
    void (*pass)(const struct bench_way *way, int thread, int threads);
    const void *context;
    int option;
    double units, bytes; /* of one pass, over all threads */
    const char *unit;
    int round; /* differs in each pass of the program; the same for all threads of a pass */
    double seconds[BENCH_MAX_ROUNDS];
} bench_way;

/* ---- a team of threads: all run the pass; the wall time until the last one ends is measured ---- */

typedef struct bench_team {
    int threads;
    pthread_barrier_t start, end;
    const bench_way *way;
    bool stop;
    pthread_t handle[16];
    int next_id;
} bench_team;

static inline void *bench_member(void *context)
{
    bench_team *team = context;
    int id = __atomic_add_fetch(&team->next_id, 1, __ATOMIC_RELAXED);

    for (;;) {
        pthread_barrier_wait(&team->start);
        if (team->stop)
            return NULL;
        team->way->pass(team->way, id, team->threads);
        pthread_barrier_wait(&team->end);
    }
}

static inline void bench_team_init(bench_team *team, int threads)
{
    *team = (bench_team){.threads = threads};
    pthread_barrier_init(&team->start, NULL, (unsigned)threads);
    pthread_barrier_init(&team->end, NULL, (unsigned)threads);
    for (int i = 1; i < threads; i++)
        if (pthread_create(&team->handle[i], NULL, bench_member, team))
            abort();
}

static inline void bench_team_fini(bench_team *team)
{
    team->stop = true;
    pthread_barrier_wait(&team->start);
    for (int i = 1; i < team->threads; i++)
        pthread_join(team->handle[i], NULL);
    pthread_barrier_destroy(&team->start);
    pthread_barrier_destroy(&team->end);
}

static inline double bench_team_pass(bench_team *team, const bench_way *way)
{
    team->way = way;
    int64_t begin = stki_now_ns();
    pthread_barrier_wait(&team->start);
    way->pass(way, 0, team->threads);
    pthread_barrier_wait(&team->end);
    return (double)(stki_now_ns() - begin) * 1e-9;
}

/* ---- rounds ---- */

static inline int bench_ascending(const void *a, const void *b)
{
    double x, y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Returns the median time of the rounds, and in *best the 10th percentile. */
static inline double bench_median(const bench_way *way, int rounds, double *best)
{
    double sorted[BENCH_MAX_ROUNDS];

    memcpy(sorted, way->seconds, (size_t)rounds * sizeof sorted[0]);
    qsort(sorted, (size_t)rounds, sizeof sorted[0], bench_ascending);
    *best = sorted[rounds / 10];
    return sorted[rounds / 2];
}

/* Reads more memory than the caches hold, so that the next pass does not pay for writing back dirty lines of the
 * previous one. */
static inline void bench_settle(void)
{
    enum { BYTES = 64 << 20 };
    static uint8_t *block;
    uint64_t sum = 0;

    if (!block) {
        block = malloc(BYTES);
        if (!block)
            abort();
        memset(block, 1, BYTES);
    }
    for (int64_t i = 0; i < BYTES; i += 64)
        sum += *(volatile uint8_t *)(block + i);
    (void)sum;
}

/* Runs one round to warm up and `rounds` measured ones. Prints a line for each way, beginning with `label`: the rate at
 * the median and at the 10th percentile of the times ("best tenth"). The gap between the two shows the effect of other
 * programs.
 */
static inline void bench_run(const char *label, bench_way *ways, int count, int threads, int rounds)
{
    bench_team team;

    bench_team_init(&team, threads);
    for (int round = -1; round < rounds; round++)
        for (int i = 0; i < count; i++) {
            ways[i].round = (round + 1) * count + i; /* each pass uses different rows than the previous one */
            bench_settle();
            double seconds = bench_team_pass(&team, &ways[i]);
            if (round >= 0)
                ways[i].seconds[round] = seconds;
        }
    bench_team_fini(&team);
    for (int i = 0; i < count; i++) {
        double best, seconds = bench_median(&ways[i], rounds, &best);
        printf("%s %-46s %d %12.0f %-9s", label, ways[i].name, threads, ways[i].units / seconds, ways[i].unit);
        if (ways[i].bytes > 0)
            printf(" %8.2f GB/s", ways[i].bytes / seconds * 1e-9);
        printf("  best tenth %12.0f\n", ways[i].units / best);
    }
    fflush(stdout);
}

/* ---- memory and order ---- */

/* Memory that has been touched, in huge pages if the system provides them. */
static inline void *bench_memory(int64_t bytes)
{
    const int64_t page = INT64_C(2) << 20;
    void *block = NULL;

    bytes = (bytes + page - 1) / page * page;
    if (posix_memalign(&block, (size_t)page, (size_t)bytes))
        abort();
    madvise(block, (size_t)bytes, MADV_HUGEPAGE);
    memset(block, 1, (size_t)bytes);
    return block;
}

static inline uint64_t bench_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline uint32_t *bench_shuffled(int64_t n)
{
    uint32_t *order = malloc((size_t)n * sizeof *order);
    uint64_t state = 1;

    if (!order)
        abort();
    for (int64_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t k = (int64_t)(bench_random(&state) % (uint64_t)(i + 1));
        uint32_t swap = order[i];
        order[i] = order[k];
        order[k] = swap;
    }
    return order;
}

#endif
