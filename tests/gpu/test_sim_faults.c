/* stki-threads */
/* Loaders on the simulated CUDA during failures: no memory, a kernel with an illegal access, a GPU that disappears, and
 * streams that hang. The tests also check that no context is created on other GPUs, and that graphs that another thread
 * captures are not broken. The other GPU must always continue to work. */
#include "clock.h"
#include "device_hold.h"
#include "loader_test.h"
#include "sim_cuda.h"
#include <pthread.h>

enum { COUNT = 64, WIDTH = 1000, BATCH = 8, BATCHES = COUNT / BATCH };

static stk_error err;

static stk_status open_on(stk_loader **out, const char *device, const char *more)
{
    return stkt_open(out,
                     "{dataset: {fields: {x: {synthetic: {count: %d, shape: [%d], dtype: u8, distinct: %d}, dtype: f32,"
                     " transforms: [{scale: 2}]}}}, loader: {batch_size: %d, num_epochs: 1, num_workers: 2,"
                     " order: sequential, device: %s%s}}",
                     COUNT, WIDTH, COUNT, BATCH, device, more);
}

static stk_device *gpu(int index)
{
    stk_device *device = NULL;

    assert_ok(stk_device_find(index ? "cuda:1" : "cuda:0", &device, &err));
    return device;
}

/* Takes batches until the end or an error. */
static stk_status read_all(stk_loader *loader, stk_stream *stream, int *batches)
{
    stk_status status;
    stk_batch *batch;

    *batches = 0;
    while ((status = stk_loader_next_on(loader, stream, 20 * STKI_SECOND, &batch, &err)) == STK_OK) {
        ++*batches;
        stk_batch_release_on(batch, stream);
    }
    return status;
}

/* ---- contexts ---- */

/* Must run first, because contexts are never destroyed. */
static void no_context_appears_on_another_gpu(void **state)
{
    stk_loader *loader = NULL;
    stk_stream *stream;
    int batches;

    (void)state;
    assert_ok(open_on(&loader, "cuda:1", ", convert: device"));
    assert_ok(stk_stream_create(gpu(1), &stream, &err));
    assert_int_equal(read_all(loader, stream, &batches), STK_END);
    assert_int_equal(batches, BATCHES);
    stk_loader_destroy(loader);
    stk_stream_destroy(stream);
    assert_int_equal(sim_count().contexts[0], 0);
    assert_int_equal(sim_count().contexts[1], 1);
}

/* ---- memory ---- */

static void no_device_memory_is_an_error_that_names_the_option(void **state)
{
    stk_loader *loader = NULL;

    (void)state;
    sim_set_limits(48 << 10, 0);
    assert_int_equal(open_on(&loader, "cuda:1", ""), STK_E_MEMORY);
    assert_null(loader);
    sim_set_limits(0, 0);
    assert_ok(open_on(&loader, "cuda:1", ""));
    stk_loader_destroy(loader);
}

static void no_pinned_memory_is_ordinary_memory_with_auto(void **state)
{
    stk_loader *loader = NULL;
    stk_stream *stream;
    int batches;

    (void)state;
    sim_set_limits(0, 1);
    assert_int_equal(open_on(&loader, "cuda:1", ", pin_memory: true"), STK_E_MEMORY);
    assert_ok(open_on(&loader, "cuda:1", ", pin_memory: auto"));
    assert_ok(stk_stream_create(gpu(1), &stream, &err));
    assert_int_equal(read_all(loader, stream, &batches), STK_END);
    assert_int_equal(batches, BATCHES);
    stk_loader_destroy(loader);
    stk_stream_destroy(stream);
    sim_set_limits(0, 0);
}

/* ---- a GPU that fails ---- */

static void other_gpu_works(void)
{
    stk_loader *loader = NULL;
    int batches;

    assert_ok(open_on(&loader, "cuda:0", ""));
    assert_int_equal(read_all(loader, NULL, &batches), STK_END);
    assert_int_equal(batches, BATCHES);
    stk_loader_destroy(loader);
}

/* The error is returned in place of a batch and persists, and closing takes no longer than usual. */
static void an_illegal_access_ends_the_loader(void **state)
{
    stk_loader *loader = NULL;
    stk_stream *stream;
    int batches;

    (void)state;
    assert_ok(open_on(&loader, "cuda:1", ", convert: device"));
    assert_ok(stk_stream_create(gpu(1), &stream, &err));
    sim_fail_next_kernel(1);
    assert_int_equal(read_all(loader, stream, &batches), STK_E_DEVICE);
    assert_says("cudaErrorIllegalAddress");
    assert_true(batches <= BATCHES);
    assert_int_equal(read_all(loader, stream, &batches), STK_E_DEVICE);
    assert_int_equal(batches, 0);
    other_gpu_works();
    stk_loader_destroy(loader);
    stk_stream_destroy(stream);
    sim_revive(1);
}

/* The GPU may vanish at any call: opening, taking, releasing, closing. The run ends within the time for closing. */
static void a_gpu_may_vanish_at_any_moment(void **state)
{
    (void)state;
    for (int after = 0; after <= BATCHES; after++) {
        int64_t start = stki_now_ns();
        stk_loader *loader = NULL;
        stk_stream *stream = NULL;
        stk_batch *batch, *held = NULL;
        stk_status status = STK_OK;

        assert_ok(open_on(&loader, "cuda:1", after % 2 ? ", convert: device" : ""));
        assert_ok(stk_stream_create(gpu(1), &stream, &err));
        for (int i = 0; i < after && status == STK_OK; i++) {
            status = stk_loader_next_on(loader, stream, 20 * STKI_SECOND, &batch, &err);
            assert_int_equal(status, STK_OK);
            if (!held)
                held = batch;
            else
                stk_batch_release_on(batch, stream);
        }
        sim_kill(1, cudaErrorUnknown);
        while (status == STK_OK) {
            status = stk_loader_next_on(loader, stream, 20 * STKI_SECOND, &batch, &err);
            if (status == STK_OK)
                stk_batch_release_on(batch, stream);
        }
        assert_true(status == STK_E_DEVICE || (status == STK_END && after == BATCHES));
        stk_loader_destroy(loader);
        if (held)
            stk_batch_release_on(held, stream);
        stk_stream_destroy(stream);
        assert_true(stki_now_ns() - start < 60 * STKI_SECOND); /* the close_timeout of stkt_open */
        sim_revive(1);
        if (after == 0) {
            sim_kill(1, cudaErrorUnknown);
            assert_int_equal(open_on(&loader, "cuda:1", ""), STK_E_DEVICE);
            sim_revive(1);
        }
    }
    other_gpu_works();
}

/* ---- streams that hang ---- */

enum hanging { COPIES, DEVICE_SLOTS, PINNED_SLOTS, HANGINGS };

/* Takes batches and releases them in a stream that hangs. COPIES: the next copies into their slots wait for it;
 * otherwise nothing more is copied. */
static void release_in(stk_loader *loader, stk_stream *hangs, enum hanging what)
{
    stk_batch *batch[BATCHES];
    stk_stream *stream = what == DEVICE_SLOTS ? NULL : hangs;
    const int first = what == DEVICE_SLOTS ? BATCHES - 2 : 0, last = what == DEVICE_SLOTS ? BATCHES : 2;

    for (int i = 0; i < last; i++) {
        assert_ok(stk_loader_next_on(loader, what == PINNED_SLOTS ? NULL : stream, 20 * STKI_SECOND, &batch[i], &err));
        if (i < first)
            stk_batch_release(batch[i]);
    }
    for (int i = first; i < last; i++)
        stk_batch_release_on(batch[i], hangs);
    if (what == COPIES) { /* a copy that hangs has been queued */
        assert_ok(stk_loader_next_on(loader, hangs, 20 * STKI_SECOND, &batch[0], &err));
        stk_batch_release_on(batch[0], hangs);
    }
}

/* Closing and destroying together end within close_timeout, whatever hangs. The memory that the stream uses is freed
 * when the stream continues, not before, or sim_cuda.c would end the program. */
static void closing_ends_in_time_if_a_stream_hangs(void **state)
{
    static const char *const more[HANGINGS] = {", device_prefetch: 2, close_timeout: 5s",
                                               ", device_prefetch: 3, close_timeout: 5s",
                                               ", pin_memory: true, prefetch: 2, close_timeout: 5s"};

    (void)state;
    for (enum hanging what = 0; what < HANGINGS; what++) {
        const sim_counts before = sim_count();
        const int64_t deadline = stki_deadline_ns(60 * STKI_SECOND);
        stk_loader *loader = NULL;
        stk_stream *stream;
        stkt_hold hold;
        int64_t start;

        assert_ok(stk_stream_create(gpu(1), &stream, &err));
        assert_ok(open_on(&loader, what == PINNED_SLOTS ? "cpu" : "cuda:1", more[what]));
        hold = stkt_hold_stream(stream);
        release_in(loader, stream, what);
        start = stki_now_ns();
        if (what == COPIES) {
            assert_int_equal(stk_loader_close(loader, &err), STK_E_TIMEOUT);
            assert_says("unfinished and"); /* one or two copies */
        }
        stk_loader_destroy(loader);
        /* 5 s in all; waiting for each slot separately would take 5 s more */
        assert_true(stki_now_ns() - start < 10 * STKI_SECOND);
        if (what == PINNED_SLOTS)
            assert_true(sim_count().pinned_bytes > before.pinned_bytes);
        else
            assert_true(sim_count().device_bytes > before.device_bytes);
        stkt_let_go(&hold);
        while (sim_count().device_bytes > before.device_bytes || sim_count().pinned_bytes > before.pinned_bytes) {
            assert_true(stki_now_ns() < deadline);
            stki_sleep_ns(1000000);
        }
        stk_stream_destroy(stream);
    }
}

/* A thread frees the memory later, however long the stream takes. */
static void a_release_after_destroy_does_not_wait(void **state)
{
    (void)state;
    for (int pinned = 0; pinned < 2; pinned++) {
        const sim_counts before = sim_count();
        const int64_t deadline = stki_deadline_ns(60 * STKI_SECOND);
        stk_loader *loader = NULL;
        stk_stream *stream;
        stk_batch *batch;
        stkt_hold hold;

        assert_ok(stk_stream_create(gpu(1), &stream, &err));
        assert_ok(open_on(&loader, pinned ? "cpu" : "cuda:1", ", pin_memory: true, close_timeout: infinite"));
        assert_ok(stk_loader_next_on(loader, NULL, 20 * STKI_SECOND, &batch, &err));
        stk_loader_destroy(loader);
        hold = stkt_hold_stream(stream);
        stk_batch_release_on(batch, stream);
        assert_true(sim_count().pinned_bytes > before.pinned_bytes);
        assert_true(pinned || sim_count().device_bytes > before.device_bytes);
        stkt_let_go(&hold);
        while (sim_count().device_bytes > before.device_bytes || sim_count().pinned_bytes > before.pinned_bytes) {
            assert_true(stki_now_ns() < deadline);
            stki_sleep_ns(1000000);
        }
        stk_stream_destroy(stream);
    }
}

/* ---- captures ---- */

struct capturer {
    stk_stream *stream;
    _Atomic bool capturing, stop;
    int64_t captured;
    bool whole;
};

static void *capture(void *context)
{
    struct capturer *c = context;

    sim_begin_capture(stk_stream_native(c->stream));
    c->capturing = true;
    while (!c->stop) { /* a long capture of kernels that do nothing */
        assert_ok(stk_stream_spin(c->stream, 1000, &err));
        stki_sleep_ns(100000);
    }
    c->whole = sim_end_capture(stk_stream_native(c->stream), &c->captured);
    return NULL;
}

/* A loader opens, delivers batches and closes while another thread captures a graph in global mode. */
static void loaders_do_not_affect_captures(void **state)
{
    struct capturer c = {0};
    stk_loader *loader = NULL;
    stk_stream *stream;
    pthread_t thread;
    int batches;

    (void)state;
    assert_ok(stk_stream_create(gpu(1), &c.stream, &err));
    assert_ok(stk_stream_create(gpu(1), &stream, &err));
    assert_int_equal(pthread_create(&thread, NULL, capture, &c), 0);
    while (!c.capturing)
        stki_sleep_ns(100000);
    assert_ok(open_on(&loader, "cuda:1", ", convert: device"));
    assert_int_equal(read_all(loader, stream, &batches), STK_END);
    assert_int_equal(batches, BATCHES);
    stk_loader_destroy(loader);
    c.stop = true;
    pthread_join(thread, NULL);
    assert_true(c.whole);
    assert_true(c.captured > 0);
    stk_stream_destroy(stream);
    stk_stream_destroy(c.stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_context_appears_on_another_gpu),
                                       cmocka_unit_test(no_device_memory_is_an_error_that_names_the_option),
                                       cmocka_unit_test(no_pinned_memory_is_ordinary_memory_with_auto),
                                       cmocka_unit_test(an_illegal_access_ends_the_loader),
                                       cmocka_unit_test(a_gpu_may_vanish_at_any_moment),
                                       cmocka_unit_test(closing_ends_in_time_if_a_stream_hangs),
                                       cmocka_unit_test(a_release_after_destroy_does_not_wait),
                                       cmocka_unit_test(loaders_do_not_affect_captures)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
