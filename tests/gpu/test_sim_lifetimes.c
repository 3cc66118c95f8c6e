/* stki-threads */
/* Tests of the order in which objects are released on the simulated CUDA, whose GPUs lag behind the program: batches
 * are released, DLPack tensors deleted, and streams and loaders destroyed while work on a batch is still queued. A slot
 * that is overwritten too early gives wrong rows, and a handle that is used too late ends the program. */
#include "clock.h"
#include "device_hold.h"
#include "loader_test.h"
#include "sim_cuda.h"
#include <dlpack/dlpack.h>
#include <pthread.h>

enum { COUNT = 96, WIDTH = 500, BATCH = 8, BATCHES = COUNT / BATCH, BEHIND_NS = 2000000 };

static stk_error err;
static const enum sim_pace paces[] = {SIM_THREADS, SIM_LATE};

static stk_device *gpu(void)
{
    stk_device *device = NULL;

    assert_ok(stk_device_find("cuda:1", &device, &err));
    return device;
}

static stk_stream *stream_of(stk_device *device)
{
    stk_stream *stream = NULL;

    assert_ok(stk_stream_create(device, &stream, &err));
    return stream;
}

static stk_loader *open_loader(const char *more)
{
    stk_loader *loader = NULL;

    assert_ok(stkt_open(&loader,
                        "{dataset: {fields: {x: {synthetic: {count: %d, shape: [%d], dtype: i32, distinct: %d}}}},"
                        " loader: {batch_size: %d, num_epochs: 1, num_workers: 2, order: sequential, %s}}",
                        COUNT, WIDTH, COUNT, BATCH, more));
    return loader;
}

/* The contents of every batch, from a loader without a device. */
static const int32_t *right(int batch)
{
    static int32_t rows[BATCHES][BATCH * WIDTH];
    static bool read;

    if (!read) {
        stk_loader *loader = open_loader("device: cpu");

        for (int i = 0; i < BATCHES; i++) {
            stk_batch *b;
            stk_tensor t;

            assert_ok(stk_loader_next(loader, &b, &err));
            assert_ok(stk_batch_tensor(b, "x", &t, &err));
            memcpy(rows[i], t.data, sizeof rows[i]);
            stk_batch_release(b);
        }
        stk_loader_destroy(loader);
        read = true;
    }
    return rows[batch];
}

/* Queues a copy of the batch, or of `dlpack` if given, to `seen`, after some other work. */
static void use(stk_batch *batch, stk_stream *stream, stk_tensor *seen)
{
    stk_tensor t;

    assert_ok(stk_batch_tensor(batch, "x", &t, &err));
    assert_ok(stk_tensor_empty_pinned(STK_I32, 2, (int64_t[]){BATCH, WIDTH}, gpu(), seen, &err));
    memset(seen->data, 0xEE, BATCH * WIDTH * 4);
    assert_ok(stk_stream_spin(stream, BEHIND_NS, &err));
    assert_ok(stk_tensor_copy_on(seen, &t, stream, true, &err));
}

static void check_all(stk_tensor *seen, const char *what)
{
    for (int i = 0; i < BATCHES; i++) {
        if (memcmp(seen[i].data, right(i), BATCH * WIDTH * 4) != 0)
            fail_msg("%s: batch %d was read with wrong bytes", what, i);
        stk_tensor_release(&seen[i]);
    }
}

/* As in a Python program: the tensor is exported for the stream in which it will be used, work is queued, the tensor is
 * deleted, and the batch is released without a stream. */
static void a_deleter_guards_the_stream_of_its_export(void **state)
{
    (void)state;
    for (int pace = 0; pace < 2; pace++) {
        stk_stream *side, *user[2];
        stk_tensor seen[2][BATCHES];
        stk_loader *loader;

        sim_set_pace(paces[pace]);
        loader = open_loader("device: \"cuda:1\", device_prefetch: 2");
        side = stream_of(gpu());
        for (int k = 0; k < 2; k++)
            user[k] = stream_of(gpu());
        for (int i = 0; i < BATCHES; i++) {
            struct DLManagedTensor *exported[2];
            stk_batch *batch;

            assert_ok(stk_loader_next_on(loader, side, STK_WAIT_FOREVER, &batch, &err));
            for (int k = 0; k < 2; k++)
                assert_ok(stk_batch_dlpack_on(batch, "x", user[k], &exported[k], &err));
            for (int k = 0; k < 2; k++)
                use(batch, user[k], &seen[k][i]);
            stk_batch_release(batch);
            exported[0]->deleter(exported[0]);
            exported[1]->deleter(exported[1]);
        }
        for (int k = 0; k < 2; k++) {
            assert_ok(stk_stream_synchronize(user[k], STK_WAIT_FOREVER, &err));
            check_all(seen[k], k ? "the second stream" : "the first stream");
            stk_stream_destroy(user[k]);
        }
        stk_stream_destroy(side);
        stk_loader_destroy(loader);
    }
}

/* The same for a loader without a device and copies from its pinned slots: the host does not wait, and no slot is
 * filled while a copy from it is queued. */
static void pinned_slots_wait_for_copies_from_them(void **state)
{
    (void)state;
    for (int pace = 0; pace < 2; pace++) {
        for (int exports = 0; exports < 2; exports++) {
            stk_tensor seen[BATCHES], there[BATCHES];
            stk_loader *loader;
            stk_stream *stream;

            sim_set_pace(paces[pace]);
            loader = open_loader("device: cpu, pin_memory: true, prefetch: 2");
            stream = stream_of(gpu());
            for (int i = 0; i < BATCHES; i++) {
                struct DLManagedTensor *exported = NULL;
                stk_batch *batch;
                stk_tensor t;

                assert_ok(stk_loader_next_timeout(loader, STK_TIMEOUT_INFINITE, &batch, &err));
                assert_ok(stk_batch_tensor(batch, "x", &t, &err));
                assert_true(stk_tensor_is_pinned(&t));
                if (exports)
                    assert_ok(stk_batch_dlpack_on(batch, "x", stream, &exported, &err));
                assert_ok(stk_stream_spin(stream, BEHIND_NS, &err));
                assert_ok(stk_tensor_to_device_on(&t, gpu(), stream, true, &there[i], &err));
                if (exports) {
                    stk_batch_release(batch);
                    exported->deleter(exported);
                } else {
                    stk_batch_release_on(batch, stream);
                }
            }
            for (int i = 0; i < BATCHES; i++) {
                assert_ok(stk_tensor_to_device_on(&there[i], stk_device_cpu(), stream, false, &seen[i], &err));
                stk_tensor_release(&there[i]);
            }
            check_all(seen, exports ? "exported" : "released on a stream");
            stk_loader_destroy(loader);
            stk_stream_destroy(stream);
        }
    }
}

static void *delete_it(void *exported)
{
    ((struct DLManagedTensor *)exported)->deleter(exported);
    return NULL;
}

enum ending { DESTROYED, ENDED_FOREIGN, PER_THREAD, ENDINGS };

/* First the stream is destroyed, then the loader, then the deleter runs, in this thread or another one. */
static void deleters_may_run_last(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * ENDINGS * 2; i++) {
        const enum ending ending = (enum ending)(i / 2 % ENDINGS);
        struct DLManagedTensor *exported;
        void *native = NULL;
        stk_loader *loader;
        stk_stream *stream;
        stk_tensor seen;
        stk_batch *batch;
        pthread_t thread;

        sim_set_pace(paces[i % 2]);
        loader = open_loader("device: \"cuda:1\", device_prefetch: 2");
        if (ending == DESTROYED) {
            stream = stream_of(gpu());
        } else {
            native = ending == PER_THREAD ? (void *)cudaStreamPerThread : sim_native_stream(1, true);
            assert_ok(stk_stream_wrap(gpu(), native, &stream, &err));
        }
        assert_ok(stk_loader_next_on(loader, stream, STK_WAIT_FOREVER, &batch, &err));
        assert_ok(stk_batch_dlpack(batch, "x", &exported, &err));
        use(batch, stream, &seen);
        stk_batch_release_on(batch, stream);
        if (ending != PER_THREAD || i >= 2 * ENDINGS)
            stk_stream_destroy(stream);
        if (ending == ENDED_FOREIGN)
            sim_destroy_native_stream(native);
        if (i >= 2 * ENDINGS)
            stk_loader_destroy(loader);
        assert_int_equal(pthread_create(&thread, NULL, delete_it, exported), 0);
        pthread_join(thread, NULL);
        if (i < 2 * ENDINGS)
            stk_loader_destroy(loader);
        if (ending == PER_THREAD && i < 2 * ENDINGS)
            stk_stream_destroy(stream);
        assert_ok(stk_device_synchronize(gpu(), &err));
        assert_memory_equal(seen.data, right(0), BATCH * WIDTH * 4);
        stk_tensor_release(&seen);
    }
}

/* In the consumer's per-thread stream. More batches use the slot before another thread runs the deleter. */
static void a_per_thread_stream_is_its_threads(void **state)
{
    (void)state;
    for (int pace = 0; pace < 2; pace++) {
        stk_tensor seen[BATCHES];
        stk_loader *loader;
        stk_stream *mine;

        sim_set_pace(paces[pace]);
        loader = open_loader("device: \"cuda:1\", device_prefetch: 1");
        assert_ok(stk_stream_wrap(gpu(), cudaStreamPerThread, &mine, &err));
        for (int i = 0; i < BATCHES; i++) {
            struct DLManagedTensor *exported;
            stk_batch *batch;
            pthread_t thread;

            assert_ok(stk_loader_next_on(loader, mine, STK_WAIT_FOREVER, &batch, &err));
            assert_ok(stk_batch_dlpack(batch, "x", &exported, &err));
            use(batch, mine, &seen[i]);
            stk_batch_release(batch);
            assert_int_equal(pthread_create(&thread, NULL, delete_it, exported), 0);
            pthread_join(thread, NULL);
        }
        assert_ok(stk_stream_synchronize(mine, STK_WAIT_FOREVER, &err));
        check_all(seen, "the per-thread stream");
        stk_loader_destroy(loader);
        stk_stream_destroy(mine);
    }
}

static void a_stream_of_another_device_is_refused(void **state)
{
    struct DLManagedTensor *exported;
    stk_device *other;
    stk_loader *loader;
    stk_stream *stream, *side;
    stk_batch *batch;

    (void)state;
    sim_set_pace(SIM_THREADS);
    assert_ok(stk_device_find("cuda:0", &other, &err));
    stream = stream_of(other);
    side = stream_of(gpu());
    loader = open_loader("device: \"cuda:1\"");
    assert_ok(stk_loader_next_on(loader, side, STK_WAIT_FOREVER, &batch, &err));
    assert_status(stk_batch_dlpack_on(batch, "x", stream, &exported, &err), STK_E_BAD_DEVICE);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
    stk_stream_destroy(stream);
    stk_stream_destroy(side);
}

/* A loader opens and closes during an endless training step: its memory is allocated and freed without waiting for the
 * GPU. (This does not apply to pinned slots.) */
static void closing_does_not_wait_for_other_streams(void **state)
{
    stk_stream *training = stream_of(gpu()), *stream = stream_of(gpu());
    stk_loader *loader;
    stk_batch *batch;
    stkt_hold hold;

    (void)state;
    sim_set_pace(SIM_THREADS);
    hold = stkt_hold_stream(training);
    loader = open_loader("device: \"cuda:1\", pin_memory: false");
    for (int i = 0; i < 3; i++) {
        assert_ok(stk_loader_next_on(loader, stream, STK_WAIT_FOREVER, &batch, &err));
        stk_batch_release_on(batch, stream);
    }
    stk_loader_destroy(loader);
    assert_int_equal(stk_stream_query(training, &err), STK_AGAIN);
    assert_int_equal(sim_count().waiting_frees, 0);
    stkt_let_go(&hold);
    stk_stream_destroy(stream);
    stk_stream_destroy(training);
}

static void nothing_is_left(void **state)
{
    sim_counts now;

    (void)state;
    assert_ok(stk_device_synchronize(gpu(), &err));
    assert_ok(stk_device_empty_cache(gpu(), &err));
    now = sim_count();
    assert_int_equal(now.device_bytes, 0);
    assert_int_equal(now.pinned_bytes, 0);
    /* each context has one stream, for memory */
    assert_int_equal(now.streams, (now.contexts[0] > 0) + (now.contexts[1] > 0));
    assert_int_equal(now.events, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deleter_guards_the_stream_of_its_export),
        cmocka_unit_test(pinned_slots_wait_for_copies_from_them),
        cmocka_unit_test(deleters_may_run_last),
        cmocka_unit_test(a_per_thread_stream_is_its_threads),
        cmocka_unit_test(a_stream_of_another_device_is_refused),
        cmocka_unit_test(closing_does_not_wait_for_other_streams),
        cmocka_unit_test(nothing_is_left),
    };

    setenv("LOCAL_RANK", "1", 1); /* pinned memory is pinned for cuda:1 */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
