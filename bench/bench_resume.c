/* bench_resume.c: the cost of saved positions and of the digest of the stream.
 *
 *     bench_resume [--repeats 101]
 *
 * With a synthetic data set of 10^9 samples in random order, prints the median and longest time to save and to restore
 * positions throughout the epoch, and the time to the first batch after opening and after a restore. Then prints the
 * CPU time per sample with loader.digest none, order and bytes (alternating), for samples of 16 bytes (for which a row
 * costs least), 2 KiB and 150 KiB.
 */
#include "clock.h"
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <string.h>

enum { REPEATS_MOST = 999 };

static stk_error err;

static void must(stk_status status)
{
    if (status == STK_OK)
        return;
    fprintf(stderr, "bench_resume: %s\n", err.message);
    exit(1);
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void print_times(const char *what, int64_t *ns, int count)
{
    qsort(ns, (size_t)count, sizeof *ns, compare);
    printf("%-44s median %8.2f us, longest %8.2f us\n", what, (double)ns[count / 2] / 1e3, (double)ns[count - 1] / 1e3);
}

static stk_loader *open_text(const char *keys)
{
    char text[1024];
    stk_loader *loader;

    snprintf(text, sizeof text, "{dataset: {fields: {x: {synthetic: %s}}", keys);
    must(stk_loader_open_text(text, NULL, NULL, 0, &loader, &err));
    return loader;
}

static const char billion[] =
    "{count: 1000000000, shape: [224, 224, 3], distinct: 16}}}}, loader: {batch_size: 64, order: "
    "random, seed: 1, num_epochs: 0, num_workers: 2";

static void first_batch(stk_loader *loader)
{
    stk_batch *batch;

    must(stk_loader_next(loader, &batch, &err));
    stk_batch_release(batch);
}

static void measure_positions(int repeats)
{
    static int64_t save_ns[REPEATS_MOST], restore_ns[REPEATS_MOST], after_ns[REPEATS_MOST], open_ns[REPEATS_MOST],
        opened_ns[REPEATS_MOST];
    stk_loader *loader = open_text(billion);
    int64_t steps = stk_loader_steps_per_epoch(loader);
    uint8_t state[STK_STATE_MAX];
    int64_t bytes;

    for (int i = 0; i < repeats; i++) {
        int64_t before;

        must(stk_loader_seek(loader, i, steps / repeats * i, &err));
        first_batch(loader);
        before = stki_now_ns();
        must(stk_loader_save(loader, state, sizeof state, &bytes, &err));
        save_ns[i] = stki_now_ns() - before;
        must(stk_loader_seek(loader, 0, 0, &err));
        before = stki_now_ns();
        must(stk_loader_restore(loader, state, bytes, &err));
        restore_ns[i] = stki_now_ns() - before;
        first_batch(loader);
        after_ns[i] = stki_now_ns() - before;
    }
    stk_loader_destroy(loader);
    for (int i = 0; i < repeats / 10 + 1; i++) {
        int64_t before = stki_now_ns();

        loader = open_text(billion);
        open_ns[i] = stki_now_ns() - before;
        first_batch(loader);
        opened_ns[i] = stki_now_ns() - before - open_ns[i];
        stk_loader_destroy(loader);
    }
    printf("10^9 samples of 150 KiB, batches of 64, a state of %lld bytes\n", (long long)bytes);
    print_times("save", save_ns, repeats);
    print_times("restore", restore_ns, repeats);
    print_times("restore to first batch", after_ns, repeats);
    print_times("open", open_ns, repeats / 10 + 1);
    print_times("opened to first batch", opened_ns, repeats / 10 + 1);
}

/* CPU time of all threads; it depends little on other programs. */
static int64_t processor_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * STKI_SECOND + t.tv_nsec;
}

static double cost(const char *shape, const char *digest, int batch)
{
    char keys[512];
    stk_loader *loader;
    int64_t rows = 0, begin, cpu;

    snprintf(keys, sizeof keys,
             "{count: 1000000, shape: %s, distinct: 64}}}}, loader: {batch_size: %d, order: random, num_epochs: 0, "
             "num_workers: 2, digest: %s",
             shape, batch, digest);
    loader = open_text(keys);
    for (int i = 0; i < 8; i++)
        first_batch(loader);
    begin = stki_now_ns();
    cpu = processor_ns();
    do {
        for (int i = 0; i < 8; i++)
            first_batch(loader);
        rows += 8 * batch;
    } while (stki_now_ns() - begin < STKI_SECOND / 4);
    cpu = processor_ns() - cpu;
    stk_loader_destroy(loader);
    return (double)cpu / (double)rows;
}

static int compare_costs(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure_digest(const char *shape, int batch)
{
    static const char *const kinds[] = {"none", "order", "bytes"};
    enum { ROUNDS = 9 };
    double costs[3][ROUNDS];

    for (int round = 0; round < ROUNDS; round++)
        for (int k = 0; k < 3; k++)
            costs[k][round] = cost(shape, kinds[k], batch);
    for (int k = 0; k < 3; k++)
        qsort(costs[k], ROUNDS, sizeof costs[k][0], compare_costs);
    printf("CPU time per sample of %s:", shape);
    for (int k = 0; k < 3; k++)
        printf("%s %s %.1f ns (%+.1f %%)", k ? "," : "", kinds[k], costs[k][ROUNDS / 2],
               100 * (costs[k][ROUNDS / 2] / costs[0][ROUNDS / 2] - 1));
    printf("\n");
}

int main(int argc, char **argv)
{
    int repeats = 101;

    if (argc == 3 && strcmp(argv[1], "--repeats") == 0)
        repeats = atoi(argv[2]);
    if (repeats < 1 || repeats > REPEATS_MOST) {
        fprintf(stderr, "usage: bench_resume [--repeats 1 to %d]\n", REPEATS_MOST);
        return 2;
    }
    measure_positions(repeats);
    measure_digest("[16]", 4096);
    measure_digest("[2048]", 1024);
    measure_digest("[224, 224, 3]", 64);
    return 0;
}
