/* bench_gpu.c: the cost of feeding a GPU, compared with the GPU's limits, which are measured alternately in the same
 * run:
 *
 *     bench_gpu [--device=NAME] [--json=FILE] [--quick]      (cuda:0)
 *
 * h2d: the transfer of batches of several sizes to the device, by a plain loop of cudaMemcpyAsync from pinned memory,
 * by the prefetcher, and by the plain loop from pageable memory.
 *
 * overlap: the prefetcher with an emulated step (a spinning kernel) that takes longer than a copy: the share of the
 * copy time that is hidden by the steps.
 *
 * convert: u8 pixels to planes of several dtypes and sizes on the device, and a copy within device memory that reads
 * and writes the same number of bytes.
 *
 * hand-over: host time of next and release for a batch that is ready.
 *
 * Figures are medians of rounds in which the variants alternate. On the host device, the program can be tested, but its
 * figures mean nothing.
 */
#include "clock.h"
#include "convert.h"
#include "device_table.h"
#include "prefetch.h"
#include "thread.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <string.h>
#ifdef STKB_CUDA
#include "cuda_device.h"
#endif

enum { DEPTH = 3, BUFFERS = DEPTH + 2, MAX_ROUNDS = 15 };

static stk_device *device;
static FILE *json;
static int rounds = 9;
static bool quick, is_cuda;
static stk_error err;

static void must(stk_status status, const char *what)
{
    if (status == STK_OK)
        return;
    fprintf(stderr, "bench_gpu: %s: %s\n", what, err.message);
    exit(1);
}
#define MUST(call) must(call, #call)

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int64_t median(int64_t *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return values[count / 2];
}

static double gb_s(int64_t bytes, int64_t ns)
{
    return (double)bytes / (double)(ns ? ns : 1);
}

static void *pinned(int64_t bytes)
{
    void *block = NULL;

    MUST(device->ops->alloc_pinned(device, bytes, &block, &err));
    memset(block, 1, (size_t)bytes);
    return block;
}

static void *on_device(int64_t bytes)
{
    void *block = NULL;

    MUST(device->ops->alloc(device, bytes, &block, &err));
    return block;
}

static stk_stream *new_stream(void)
{
    stk_stream *stream = NULL;

    MUST(stk_stream_create(device, &stream, &err));
    return stream;
}

/* Waits for the stream. On a GPU it polls without sleeping, to be accurate to a microsecond. */
static void finish(stk_stream *stream)
{
    stk_status status;

    while ((status = stk_stream_query(stream, &err)) == STK_AGAIN)
        if (!is_cuda)
            stki_sleep_ns(10000);
    must(status, "waiting for a stream");
}

/* ---- the plain loop, as in a program without this library ---- */

static int64_t plain_ns(void *const *from, void *const *to, int64_t bytes, int count, stk_stream *stream)
{
    int64_t start = stki_now_ns();

#ifdef STKB_CUDA
    if (is_cuda) {
        stki_cuda_device *cuda = (void *)device;

        MUST(stki_cuda_enter(cuda, "copying", &err));
        for (int i = 0; i < count; i++)
            if (stki_cuda->MemcpyAsync(to[i % DEPTH], from[i % BUFFERS], (size_t)bytes, cudaMemcpyHostToDevice,
                                       stk_stream_native(stream)))
                abort();
        stki_cuda_leave();
        finish(stream);
        return stki_now_ns() - start;
    }
#endif
    for (int i = 0; i < count; i++)
        MUST(device->ops->copy(device, to[i % DEPTH], true, from[i % BUFFERS], false, bytes, stream, &err));
    finish(stream);
    return stki_now_ns() - start;
}

/* ---- the prefetcher, with pinned buffers that are always full ---- */

typedef struct source {
    void *const *from;
    int64_t bytes;
    int count, next;
    _Atomic bool open; /* set to true to deliver batches */
    uint32_t held;     /* one bit per buffer that is being copied; used only by the prefetcher's thread */
} source;

static stk_status source_next(void *context, int slot, int64_t deadline_ns, stki_prefetch_load *loads, void **held,
                              stk_error *e)
{
    source *s = context;
    int buffer = 0;

    (void)slot, (void)deadline_ns, (void)e;
    if (s->next == s->count)
        return STK_END;
    while (buffer < BUFFERS && s->held & 1U << buffer)
        buffer++;
    if (buffer == BUFFERS || !atomic_load(&s->open)) {
        stki_sleep_ns(5000);
        return STK_E_TIMEOUT;
    }
    s->held |= 1U << buffer;
    s->next++;
    loads[0] = (stki_prefetch_load){.host = s->from[buffer], .bytes = s->bytes, .rows = 1};
    *held = (void *)(uintptr_t)(buffer + 1);
    return STK_OK;
}

static void source_release(void *context, void *held)
{
    source *s = context;

    s->held &= ~(1U << ((uintptr_t)held - 1));
}

static stki_prefetch *start(source *s)
{
    stki_prefetch_part part = {.copy_bytes = s->bytes, .bytes = s->bytes};
    stki_prefetch_opts opts = {.device = device,
                               .depth = DEPTH,
                               .slot_bytes = s->bytes,
                               .part_count = 1,
                               .parts = &part,
                               .upstream = {.context = s, .next = source_next, .release = source_release}};
    stki_prefetch *prefetch = NULL;

    MUST(stki_prefetch_create(&opts, &prefetch, &err));
    return prefetch;
}

/* Consumes `count` batches; queues a step of `step_ns` in the stream for each (0: none). */
static void consume(stki_prefetch *prefetch, stk_stream *stream, int count, int64_t step_ns)
{
    for (int i = 0; i < count; i++) {
        int slot;

        MUST(stki_prefetch_next(prefetch, stream, 60 * STKI_SECOND, &slot, &err));
        if (step_ns)
            MUST(stk_stream_spin(stream, step_ns, &err));
        stki_prefetch_guard(prefetch, slot, stream);
        stki_prefetch_release(prefetch, slot);
    }
}

static int64_t prefetch_ns(void *const *from, int64_t bytes, int count, stk_stream *stream)
{
    source s = {.from = from, .bytes = bytes, .count = count};
    stki_prefetch *prefetch = start(&s);
    int64_t begin = stki_now_ns(), ns;

    atomic_store(&s.open, true);
    consume(prefetch, stream, count, 0);
    finish(stream);
    ns = stki_now_ns() - begin;
    stki_prefetch_destroy(prefetch);
    return ns;
}

static void h2d_of(int64_t bytes, bool last)
{
    int64_t wanted = is_cuda ? (quick ? INT64_C(256) << 20 : INT64_C(1) << 30) : INT64_C(32) << 20;
    int count = (int)(wanted / bytes < 8 ? 8 : wanted / bytes > 2000 ? 2000 : wanted / bytes);
    void *locked[BUFFERS], *plain[BUFFERS], *to[DEPTH];
    int64_t way[3][MAX_ROUNDS], total = bytes * count, ns[3];
    stk_stream *stream = new_stream();

    for (int i = 0; i < BUFFERS; i++) {
        locked[i] = pinned(bytes);
        plain[i] = malloc((size_t)bytes);
        if (!plain[i])
            abort();
        memset(plain[i], 1, (size_t)bytes);
    }
    for (int i = 0; i < DEPTH; i++)
        to[i] = on_device(bytes);
    for (int round = -1; round < rounds; round++) { /* the first round warms up */
        int at = round < 0 ? 0 : round;

        way[0][at] = plain_ns(locked, to, bytes, count, stream);
        way[1][at] = prefetch_ns(locked, bytes, count, stream);
        way[2][at] = plain_ns(plain, to, bytes, count, stream);
    }
    for (int i = 0; i < 3; i++)
        ns[i] = median(way[i], rounds);
    printf("h2d       %7.2f MiB  plain pinned %7.2f GB/s  prefetcher %7.2f GB/s  %5.1f %%  pageable %7.2f GB/s\n",
           (double)bytes / (1 << 20), gb_s(total, ns[0]), gb_s(total, ns[1]), 100.0 * (double)ns[0] / (double)ns[1],
           gb_s(total, ns[2]));
    fprintf(json,
            "  {\"bytes\": %" PRId64 ", \"batches\": %d, \"plain_pinned_gb_s\": %.3f, \"prefetcher_gb_s\": %.3f, "
            "\"share_of_plain\": %.4f, \"pageable_gb_s\": %.3f}%s\n",
            bytes, count, gb_s(total, ns[0]), gb_s(total, ns[1]), (double)ns[0] / (double)ns[1], gb_s(total, ns[2]),
            last ? "" : ",");
    fflush(stdout);
    stk_stream_destroy(stream);
    for (int i = 0; i < BUFFERS; i++) {
        device->ops->free_pinned(device, locked[i], bytes);
        free(plain[i]);
    }
    for (int i = 0; i < DEPTH; i++)
        device->ops->free(device, to[i], bytes);
}

static void h2d(void)
{
    static const int64_t sizes[] = {64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
    int count = is_cuda ? 6 : 4;

    fprintf(json, " \"h2d\": [\n");
    for (int i = 0; i < count; i++)
        h2d_of(sizes[i], i == count - 1);
    fprintf(json, " ],\n");
}

/* ---- overlap ---- */

/* The time of the steps without copies, queued as in consume(). */
static int64_t steps_ns(stk_stream *stream, int count, int64_t step_ns)
{
    int64_t begin = stki_now_ns();

    for (int i = 0; i < count; i++)
        MUST(stk_stream_spin(stream, step_ns, &err));
    finish(stream);
    return stki_now_ns() - begin;
}

static int64_t fed_steps_ns(void *const *from, int64_t bytes, stk_stream *stream, int count, int64_t step_ns)
{
    source s = {.from = from, .bytes = bytes, .count = count + DEPTH, .open = true};
    stki_prefetch *prefetch = start(&s);
    int64_t begin, ns;

    consume(prefetch, stream, DEPTH, step_ns); /* no step can hide the first copy */
    finish(stream);
    begin = stki_now_ns();
    consume(prefetch, stream, count, step_ns);
    finish(stream);
    ns = stki_now_ns() - begin;
    stki_prefetch_destroy(prefetch);
    return ns;
}

static void overlap(void)
{
    int64_t bytes = is_cuda ? 64 << 20 : 1 << 20, alone[MAX_ROUNDS], fed[MAX_ROUNDS];
    int count = quick ? 20 : 50;
    void *from[BUFFERS], *to[DEPTH];
    stk_stream *stream = new_stream();
    int64_t copy_ns;

    for (int i = 0; i < BUFFERS; i++)
        from[i] = pinned(bytes);
    for (int i = 0; i < DEPTH; i++)
        to[i] = on_device(bytes);
    (void)plain_ns(from, to, bytes, 10, stream);
    copy_ns = plain_ns(from, to, bytes, 10, stream) / 10;
    fprintf(json, " \"overlap\": [\n");
    for (int longer = 0; longer < 2; longer++) {
        int64_t step = copy_ns * (longer ? 200 : 125) / 100, without, with;
        double exposed;

        for (int round = -1; round < rounds; round++) {
            int at = round < 0 ? 0 : round;

            alone[at] = steps_ns(stream, count, step);
            fed[at] = fed_steps_ns(from, bytes, stream, count, step);
        }
        without = median(alone, rounds);
        with = median(fed, rounds);
        exposed = (double)(with - without) / ((double)copy_ns * count);
        printf(
            "overlap   %7.2f MiB  copy %8.1f us  step %8.1f us  steps alone %8.2f ms  fed %8.2f ms  hidden %6.2f %%\n",
            (double)bytes / (1 << 20), (double)copy_ns * 1e-3, (double)step * 1e-3, (double)without * 1e-6,
            (double)with * 1e-6, 100 * (1 - exposed));
        fprintf(json,
                "  {\"bytes\": %" PRId64 ", \"batches\": %d, \"copy_us\": %.2f, \"step_us\": %.2f, \"steps_alone_ms\": "
                "%.3f, \"fed_ms\": %.3f, \"hidden_share\": %.5f}%s\n",
                bytes, count, (double)copy_ns * 1e-3, (double)step * 1e-3, (double)without * 1e-6, (double)with * 1e-6,
                1 - exposed, longer ? "" : ",");
        fflush(stdout);
    }
    fprintf(json, " ],\n");
    stk_stream_destroy(stream);
    for (int i = 0; i < BUFFERS; i++)
        device->ops->free_pinned(device, from[i], bytes);
    for (int i = 0; i < DEPTH; i++)
        device->ops->free(device, to[i], bytes);
}

/* ---- convert on the device ---- */

/* Pixels of `step` interleaved bytes, each of which becomes a plane. */
struct form {
    stk_dtype dtype;
    int side, step;
};

static stki_convert *plan_to(const struct form *form)
{
    static const float a[] = {0.0171F, 0.0175F, 0.0174F, 0.01F}, b[] = {-2.117F, -2.035F, -1.804F, 0};
    const int64_t size = stk_dtype_size(form->dtype), side = form->side, step = form->step;
    stki_convert_desc desc = {.src_dtype = STK_U8,
                              .dst_dtype = form->dtype,
                              .ndim = 3,
                              .shape = {step, side, side},
                              .src_strides = {1, side * step, step},
                              .dst_strides = {side * side * size, side * size, size},
                              .affine = form->dtype != STK_U8,
                              .channels = step,
                              .a = a,
                              .b = b,
                              .quantized = form->dtype == STK_I8,
                              .qmin = -128,
                              .qmax = 127};
    stki_convert *plan = NULL;

    desc.channel_axis = desc.affine ? 0 : -1;
    MUST(stki_convert_create(&desc, &plan, &err));
    return plan;
}

/* Uses several batches in turn, so that none is in the device's L2 cache. */
static void convert_to(const struct form *form, bool last)
{
    const int64_t samples = is_cuda ? 256 : 4, in_bytes = (int64_t)form->side * form->side * form->step;
    const int64_t out_bytes = in_bytes * stk_dtype_size(form->dtype), moved = samples * (in_bytes + out_bytes);
    const int64_t copied = moved / 2 / 16 * 16; /* read once, written once */
    const int turns = is_cuda ? (int)((INT64_C(512) << 20) / moved) + 2 : 2, repeats = is_cuda ? (quick ? 20 : 50) : 2;
    int64_t times[2][MAX_ROUNDS], ns[2];
    char *in = on_device(turns * samples * in_bytes), *out = on_device(turns * samples * out_bytes);
    char *left = on_device(turns * copied), *right = on_device(turns * copied);
    stki_convert *plan = plan_to(form);
    stk_stream *stream = new_stream();

    MUST(device->ops->fill(device, in, "\x55", 1, turns * samples * in_bytes, stream, &err));
    MUST(device->ops->fill(device, left, "\x55", 1, turns * copied, stream, &err));
    for (int round = -1; round < rounds; round++) {
        int at = round < 0 ? 0 : round;
        int64_t begin = stki_now_ns();

        for (int i = 0; i < repeats; i++)
            MUST(device->ops->convert(device, plan, out + i % turns * samples * out_bytes, out_bytes,
                                      in + i % turns * samples * in_bytes, in_bytes, samples, stream, &err));
        finish(stream);
        times[0][at] = (stki_now_ns() - begin) / repeats;
        begin = stki_now_ns();
        for (int i = 0; i < repeats; i++)
            MUST(device->ops->copy(device, right + i % turns * copied, true, left + i % turns * copied, true, copied,
                                   stream, &err));
        finish(stream);
        times[1][at] = (stki_now_ns() - begin) / repeats;
    }
    for (int i = 0; i < 2; i++)
        ns[i] = median(times[i], rounds);
    printf("convert   u8 %3d x %3d x %d to %-4s planes, %3" PRId64
           " samples: %8.1f us %8.1f GB/s  copy on the device %8.1f GB/s  %5.1f %%\n",
           form->side, form->side, form->step, stk_dtype_name(form->dtype), samples, (double)ns[0] * 1e-3,
           gb_s(moved, ns[0]), gb_s(moved, ns[1]), 100.0 * (double)ns[1] / (double)ns[0]);
    fprintf(json,
            "  {\"to\": \"%s\", \"side\": %d, \"channels\": %d, \"samples\": %" PRId64
            ", \"convert_us\": %.2f, \"convert_gb_s\": %.2f, \"device_copy_gb_s\": %.2f, \"share_of_copy\": %.4f}%s\n",
            stk_dtype_name(form->dtype), form->side, form->step, samples, (double)ns[0] * 1e-3, gb_s(moved, ns[0]),
            gb_s(moved, ns[1]), (double)ns[1] / (double)ns[0], last ? "" : ",");
    fflush(stdout);
    stk_stream_destroy(stream);
    stki_convert_destroy(plan);
    device->ops->free(device, in, turns * samples * in_bytes);
    device->ops->free(device, out, turns * samples * out_bytes);
    device->ops->free(device, left, turns * copied);
    device->ops->free(device, right, turns * copied);
}

static void convert(void)
{
    static const struct form forms[] = {
        {STK_F32, 224, 3}, {STK_F16, 224, 3}, {STK_BF16, 224, 3}, {STK_I8, 224, 3},
        {STK_U8, 224, 3},  {STK_F32, 299, 3}, {STK_F16, 299, 3},  {STK_I8, 299, 3},
        {STK_F32, 518, 3}, {STK_F16, 518, 3}, {STK_F32, 224, 4},  {STK_F16, 299, 4},
    };
    const int count = sizeof forms / sizeof *forms;

    fprintf(json, " \"convert\": [\n");
    if (!device->ops->convert)
        printf("convert   not supported by this device\n");
    for (int i = 0; device->ops->convert && i < count; i++)
        convert_to(&forms[i], i == count - 1);
    fprintf(json, " ],\n");
}

/* ---- hand-over ---- */

static void hand_over(void)
{
    enum { BYTES = 4096, BATCHES = 2000 };
    static int64_t next_ns[BATCHES], release_ns[BATCHES], both_ns[BATCHES];
    void *from[BUFFERS];
    source s = {.from = from, .bytes = BYTES, .count = BATCHES + DEPTH, .open = true};
    int count = is_cuda ? BATCHES : 200;
    stk_stream *stream = new_stream();
    stki_prefetch *prefetch;

    for (int i = 0; i < BUFFERS; i++)
        from[i] = pinned(BYTES);
    prefetch = start(&s);
    for (int i = 0; i < count; i++) {
        int64_t begin, middle;
        int slot;

        stki_sleep_ns(100000); /* until a batch is ready, to measure the call without the copy */
        begin = stki_now_ns();
        MUST(stki_prefetch_next(prefetch, stream, 60 * STKI_SECOND, &slot, &err));
        middle = stki_now_ns();
        stki_prefetch_guard(prefetch, slot, stream);
        stki_prefetch_release(prefetch, slot);
        release_ns[i] = stki_now_ns() - middle;
        next_ns[i] = middle - begin;
        both_ns[i] = release_ns[i] + next_ns[i];
    }
    finish(stream);
    stki_prefetch_destroy(prefetch);
    qsort(both_ns, (size_t)count, sizeof *both_ns, ascending);
    printf("hand-over next %.2f us, release %.2f us, both %.2f us (90 %%: %.2f us) of host time per batch\n",
           (double)median(next_ns, count) * 1e-3, (double)median(release_ns, count) * 1e-3,
           (double)both_ns[count / 2] * 1e-3, (double)both_ns[count * 9 / 10] * 1e-3);
    fprintf(
        json,
        " \"hand_over\": {\"next_us\": %.3f, \"release_us\": %.3f, \"both_us\": %.3f, \"both_90_percent_us\": %.3f}\n",
        (double)median(next_ns, count) * 1e-3, (double)median(release_ns, count) * 1e-3,
        (double)both_ns[count / 2] * 1e-3, (double)both_ns[count * 9 / 10] * 1e-3);
    stk_stream_destroy(stream);
    for (int i = 0; i < BUFFERS; i++)
        device->ops->free_pinned(device, from[i], BYTES);
}

int main(int argc, char **argv)
{
    const char *name = "cuda:0", *path = "/dev/null";
    stk_device_properties properties = {.struct_size = sizeof properties};

    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "--device=", 9)) {
            name = argv[i] + 9;
        } else if (!strncmp(argv[i], "--json=", 7)) {
            path = argv[i] + 7;
        } else if (!strcmp(argv[i], "--quick")) {
            quick = true;
            rounds = 3;
        } else {
            fprintf(stderr, "usage: bench_gpu [--device=NAME] [--json=FILE] [--quick]\n");
            return 2;
        }
    }
    MUST(stk_device_find(name, &device, &err));
    is_cuda = stk_device_get_kind(device) == STK_DEVICE_CUDA;
    json = fopen(path, "w");
    if (!json) {
        perror(path);
        return 1;
    }
    MUST(stk_device_get_properties(device, &properties, &err));
    printf("%s: %s, driver CUDA %d.%d%s\n", name, properties.model, properties.driver_version / 1000,
           properties.driver_version % 1000 / 10,
           is_cuda ? "" : "; no GPU: the figures show only that this program works");
    fprintf(json,
            "{\"schema\": 1, \"device\": \"%s\", \"model\": \"%s\", \"driver_version\": %d, \"runtime_version\": %d, "
            "\"rounds\": %d,\n",
            name, properties.model, properties.driver_version, properties.runtime_version, rounds);
    h2d();
    overlap();
    convert();
    hand_over();
    fprintf(json, "}\n");
    if (fclose(json)) {
        perror(path);
        return 1;
    }
    return 0;
}
