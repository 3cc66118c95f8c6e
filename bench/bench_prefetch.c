/* bench_prefetch.c: the cost of the prefetcher. Three pipelines alternate, each with training steps of a given time in
 * a stream of the device (host, or the first argument): batches that stay in ordinary memory; batches that the consumer
 * copies in the stream of its step; and batches that the prefetcher copies ahead. Then the host time of next and
 * release for batches that are ready.
 *
 *     bench_prefetch [DEVICE [STEP_US [ROUNDS]]]
 */
#include "bench_support.h"
#include "prefetch.h"
#include <stoker/stoker.h>
#include <sys/resource.h>

enum { BATCHES = 200, ROWS = 64, SIDE = 64, CHANNELS = 3, CALLS = 2000 };

#define CONFIG                                                                                                     \
    "{dataset: {fields: {image: {synthetic: {count: 4096, shape: [64, 64, 3], dtype: u8, distinct: 512}, source: " \
    "{layout: nhwc}, layout: nchw, dtype: f16, transforms: [{normalize: imagenet}]}}}, "                           \
    "loader: {batch_size: 64, num_epochs: 0, num_workers: 1, prefetch: 6, device: %s, convert: host}}"

static void need(stk_status status, const stk_error *err)
{
    if (status != STK_OK) {
        fprintf(stderr, "bench_prefetch: %s\n", err->message);
        exit(1);
    }
}

enum way { PLAIN, BY_HAND, PREFETCHED, WAYS };
static const char *const names[] = {"in ordinary memory", "copied by the consumer", "copied ahead"};

typedef struct setting {
    stk_device *device;
    const char *name;
    int64_t step_ns;
} setting;

/* CPU time of the process, because wall time is unreliable on a busy machine. */
static int64_t cpu_ns(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * STKI_SECOND +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * INT64_C(1000);
}

/* Queues a step. The host is at most one step ahead. */
static void step(const setting *s, stk_stream *stream, stk_event *done, int batch)
{
    stk_error err;

    if (batch > 0)
        need(stk_event_synchronize(done, STK_WAIT_FOREVER, &err), &err);
    need(stk_stream_spin(stream, s->step_ns, &err), &err);
    need(stk_event_record(done, stream, &err), &err);
}

static double run(const setting *s, enum way way, double *cpu)
{
    char text[1024];
    stk_loader *loader;
    stk_batch *batch, *held = NULL;
    stk_tensor image, there[2];
    stk_stream *stream;
    stk_event *done;
    stk_error err;
    int64_t before = 0, used = 0;

    snprintf(text, sizeof text, CONFIG, way == PREFETCHED ? s->name : "cpu");
    need(stk_loader_open_text(text, NULL, NULL, 0, &loader, &err), &err);
    need(stk_stream_create(s->device, &stream, &err), &err);
    need(stk_event_create(s->device, false, &done, &err), &err);
    for (int i = 0; i < 2; i++)
        need(stk_tensor_full(STK_F16, 4, (const int64_t[]){ROWS, CHANNELS, SIDE, SIDE}, stk_int(0), s->device,
                             &there[i], &err),
             &err);
    for (int i = 0; i < BATCHES + 20; i++) { /* the first 20 batches fill the pipeline */
        if (i == 20) {
            before = stki_now_ns();
            used = cpu_ns();
        }
        need(stk_loader_next_on(loader, way == PREFETCHED ? stream : NULL, STK_WAIT_FOREVER, &batch, &err), &err);
        if (way == BY_HAND) {
            need(stk_batch_tensor(batch, "image", &image, &err), &err);
            need(stk_tensor_copy_on(&there[i % 2], &image, stream, true, &err), &err);
        }
        step(s, stream, done, i);
        if (way == PREFETCHED)
            stk_batch_release_on(batch, stream);
        else
            stk_batch_release(held);
        held = way == PREFETCHED ? NULL : batch;
    }
    need(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err), &err);
    before = stki_now_ns() - before;
    *cpu = (double)(cpu_ns() - used) / BATCHES;
    stk_batch_release(held);
    if (way == PREFETCHED) {
        stk_loader_stats stats = {.struct_size = sizeof stats};

        need(stk_loader_get_stats(loader, &stats, &err), &err);
        if (stats.device_exposed_ns > stats.device_copy_ns / 10)
            printf("(%.0f %% of the copy time was not hidden)\n",
                   100 * (double)stats.device_exposed_ns / (double)stats.device_copy_ns);
    }
    stk_loader_destroy(loader);
    for (int i = 0; i < 2; i++)
        stk_tensor_release(&there[i]);
    stk_event_destroy(done);
    stk_stream_destroy(stream);
    return (double)before / BATCHES;
}

/* ---- host time per batch ---- */

static char ready_bytes[4096];

static stk_status next_ready(void *context, int slot, int64_t deadline_ns, stki_prefetch_load *loads, void **held,
                             stk_error *err)
{
    (void)context, (void)slot, (void)deadline_ns, (void)err;
    loads[0] = (stki_prefetch_load){ready_bytes, sizeof ready_bytes, 0};
    *held = ready_bytes;
    return STK_OK;
}

static void release_nothing(void *context, void *held)
{
    (void)context, (void)held;
}

static void measure_calls(const setting *s)
{
    const stki_prefetch_part part = {.copy_bytes = sizeof ready_bytes};
    const stki_prefetch_opts opts = {.device = s->device,
                                     .depth = 2,
                                     .slot_bytes = sizeof ready_bytes,
                                     .part_count = 1,
                                     .parts = &part,
                                     .upstream = {NULL, next_ready, release_nothing, NULL}};
    static double next_us[CALLS], release_us[CALLS];
    stki_prefetch *prefetch;
    stk_stream *stream;
    stk_error err;

    need(stk_stream_create(s->device, &stream, &err), &err);
    need(stki_prefetch_create(&opts, &prefetch, &err), &err);
    for (int i = 0; i < CALLS; i++) {
        struct timespec pause = {.tv_nsec = 300000}; /* until the next batch is ready */
        int64_t start, between, end;
        int slot;

        nanosleep(&pause, NULL);
        start = stki_now_ns();
        need(stki_prefetch_next(prefetch, stream, STK_WAIT_FOREVER, &slot, &err), &err);
        between = stki_now_ns();
        stki_prefetch_guard(prefetch, slot, stream);
        stki_prefetch_release(prefetch, slot);
        end = stki_now_ns();
        next_us[i] = (double)(between - start) * 1e-3;
        release_us[i] = (double)(end - between) * 1e-3;
    }
    qsort(next_us, CALLS, sizeof next_us[0], bench_ascending);
    qsort(release_us, CALLS, sizeof release_us[0], bench_ascending);
    printf("host time: next %.2f us, release %.2f us (medians of %d; 9 of 10 within %.2f and %.2f)\n",
           next_us[CALLS / 2], release_us[CALLS / 2], CALLS, next_us[CALLS * 9 / 10], release_us[CALLS * 9 / 10]);
    stki_prefetch_destroy(prefetch);
    stk_stream_destroy(stream);
}

int main(int argc, char **argv)
{
    setting s = {.name = argc > 1 ? argv[1] : "host", .step_ns = (argc > 2 ? atoi(argv[2]) : 3000) * INT64_C(1000)};
    int rounds = argc > 3 ? atoi(argv[3]) : 7;
    double ns[WAYS][64], cpu[WAYS][64];
    stk_error err;

    need(stk_device_find(s.name, &s.device, &err), &err);
    rounds = rounds < 1 ? 1 : rounds > 64 ? 64 : rounds;
    for (int round = 0; round < rounds; round++)
        for (int way = 0; way < WAYS; way++)
            ns[way][round] = run(&s, (enum way)way, &cpu[way][round]);
    printf("%s, batches of %d bytes, steps of %.0f us, medians of %d rounds\n", s.name,
           ROWS * SIDE * SIDE * CHANNELS * 2, (double)s.step_ns * 1e-3, rounds);
    for (int way = 0; way < WAYS; way++) {
        qsort(ns[way], (size_t)rounds, sizeof ns[way][0], bench_ascending);
        qsort(cpu[way], (size_t)rounds, sizeof cpu[way][0], bench_ascending);
    }
    for (int way = 0; way < WAYS; way++)
        printf("%-24s %9.1f us per batch, %+6.2f %% relative to the first; %7.1f us of CPU\n", names[way],
               ns[way][rounds / 2] * 1e-3, 100 * (ns[way][rounds / 2] / ns[0][rounds / 2] - 1),
               cpu[way][rounds / 2] * 1e-3);
    measure_calls(&s);
    return 0;
}
