/* bench_prep.c: runs one preparation job and shows where its time is spent.
 *
 *     bench_prep JOB.yaml [KEY=VALUE …]
 *
 * Prints wall and CPU seconds, bytes, and the clocks of the main thread: waiting for rows, for encoders and for the
 * disk, and writing. bench/prep.py compares it with cp, decoders and other tools. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <sys/resource.h>
#include <time.h>

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu_seconds(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

struct clocks {
    stk_prep_progress phases[STK_PREP_DONE + 1];
    double began[STK_PREP_DONE + 2];
};

static void look(void *context, const stk_prep_progress *at)
{
    struct clocks *c = context;

    if (c->began[at->phase] == 0)
        c->began[at->phase] = now();
    c->phases[at->phase] = *at;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"opening", "counting", "making", "joining", "committing"};
    struct clocks clocks = {0};
    stk_prep_opts opts = STK_PREP_OPTS_INIT;
    stk_prep_result result = {.struct_size = sizeof result};
    stk_error err;
    stk_prep *job;
    double begin, wall, cpu, until;

    if (argc < 2) {
        fprintf(stderr, "usage: bench_prep JOB.yaml [KEY=VALUE ...]\n");
        return 2;
    }
    opts.force = true;
    opts.progress = look;
    opts.progress_context = &clocks;
    opts.progress_interval_ns = 20000000;
    if (stk_prep_open_file(argv[1], (const char *const *)&argv[2], argc - 2, &opts, &job, &err) != STK_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    begin = now();
    cpu = cpu_seconds();
    if (stk_prep_run(job, &err) != STK_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    until = now();
    wall = until - begin;
    cpu = cpu_seconds() - cpu;
    (void)stk_prep_get_result(job, &result, NULL);
    printf("seconds %.3f cpu %.3f rows %" PRId64 " bytes %" PRId64 " MB_per_s %.1f\n", wall, cpu, result.rows,
           result.bytes, (double)result.bytes * 1e-6 / wall);
    for (int p = STK_PREP_COMMITTING; p >= 0; p--) {
        const stk_prep_progress *at = &clocks.phases[p];

        if (clocks.began[p] == 0)
            continue;
        printf("%-10s %.3f s  rows %.3f  finish %.3f  write %.3f  sync %.3f\n", names[p], until - clocks.began[p],
               (double)at->wait_rows_ns * 1e-9, (double)at->wait_finish_ns * 1e-9, (double)at->write_ns * 1e-9,
               (double)at->wait_sync_ns * 1e-9);
        until = clocks.began[p];
    }
    stk_prep_destroy(job);
    return 0;
}
