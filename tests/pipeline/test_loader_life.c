/* stki-threads */
/* Tests of leases, exports, closing in any state, and forks. */
#include "calm.h"
#include "clock.h"
#include "loader_test.h"
#include <dlpack/dlpack.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONFIG                                                                                               \
    "{dataset: {fields: {x: {synthetic: {count: 1000, shape: [100], dtype: u8, distinct: 1000}}}}, loader: " \
    "{batch_size: 10, "                                                                                      \
    "num_workers: %d, prefetch: %d, timeout: 100ms}}"

static const stki_synthetic_opts made = {
    .count = 1000, .dtype = STK_U8, .ndim = 1, .shape = {100}, .distinct = 1000, .min_length = -1};

static void check_rows(const uint8_t *data, int64_t first)
{
    for (int64_t r = 0; r < 10; r++) {
        uint8_t expected[100];

        stki_synthetic_fill(&made, first + r, 100, expected);
        assert_memory_equal(data + r * 100, expected, 100);
    }
}

/* Row P02: if all slots are held, next waits, and the error says so. Held batches do not change. */
static void p02_a_held_batch_is_not_overwritten(void **state)
{
    (void)state;
    for (int workers = 0; workers <= 2; workers += 2)
        for (int prefetch = 1; prefetch <= 3; prefetch++) {
            stk_loader *loader;
            stk_batch *held[3], *batch;
            stk_tensor x;
            stk_error err;

            assert_int_equal(stkt_open(&loader, CONFIG, workers, prefetch), STK_OK);
            for (int i = 0; i < prefetch; i++)
                assert_ok(stk_loader_next_timeout(loader, 60 * STKI_SECOND, &held[i], &err));
            for (int i = 0; i < 2; i++) {
                assert_status(stk_loader_next(loader, &batch, &err), STK_E_TIMEOUT);
                assert_says(prefetch == 1 ? "the only slot is held by a batch" : "slots are held by batches");
            }
            for (int i = 0; i < prefetch; i++) {
                assert_ok(stk_batch_tensor(held[i], "x", &x, &err));
                check_rows(x.data, 10 * i);
            }
            stk_batch_release(held[0]);
            assert_ok(stk_loader_next_timeout(loader, 60 * STKI_SECOND, &batch, &err));
            assert_int_equal(stk_batch_step(batch), prefetch);
            assert_ok(stk_batch_tensor(batch, "x", &x, &err));
            check_rows(x.data, 10 * prefetch);
            stk_batch_release(batch);
            for (int i = 1; i < prefetch; i++)
                stk_batch_release(held[i]);
            stk_loader_destroy(loader);
        }
}

/* Row P05: leaving a loop early while all slots are full ends the loader at once. */
static void p05_leaving_early(void **state)
{
    (void)state;
    for (int workers = 0; workers <= 64; workers = workers ? workers * 4 : 1)
        for (int taken = 0; taken <= 2; taken++) {
            stk_loader *loader;
            stk_batch *batch;
            stk_error err;

            assert_int_equal(stkt_open(&loader, CONFIG, workers, 4), STK_OK);
            for (int i = 0; i < taken; i++) {
                assert_ok(stk_loader_next_timeout(loader, 60 * STKI_SECOND, &batch, &err));
                stk_batch_release(batch);
            }
            assert_ok(stk_loader_close(loader, &err)); /* fails if a worker does not return */
            assert_ok(stk_loader_close(loader, &err));
            assert_status(stk_loader_next(loader, &batch, &err), STK_E_CLOSED);
            stk_loader_cancel(loader);
            assert_status(stk_loader_next(loader, &batch, &err), STK_E_CANCELLED);
            stk_loader_destroy(loader);
        }
    stk_loader_destroy(NULL);
    stk_batch_release(NULL);
}

/* Row P05: exit without close. */
static void p05_exit_without_close(void **state)
{
    pid_t child;
    int status;

    (void)state;
    fflush(NULL);
    child = fork();
    if (child == 0) {
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;

        if (stkt_open(&loader, CONFIG, 4, 4) != STK_OK ||
            stk_loader_next_timeout(loader, 60 * STKI_SECOND, &batch, &err) != STK_OK)
            _exit(3);
        exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A batch remains valid after the loader is closed and destroyed, until it is released. */
static void a_batch_outlives_its_loader(void **state)
{
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor x;
    stk_error err;
    stki_memory_stats before, after;

    (void)state;
    stki_memory_read(STKI_MEM_SLOT, &before);
    assert_int_equal(stkt_open(&loader, CONFIG, 2, 3), STK_OK);
    assert_ok(stk_loader_next_timeout(loader, 60 * STKI_SECOND, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "x", &x, &err));
    stk_loader_destroy(loader);
    check_rows(x.data, 0);
    assert_int_equal(stk_batch_rows(batch), 10);
    stki_memory_read(STKI_MEM_SLOT, &after);
    assert_true(after.bytes > before.bytes);
    stk_batch_release(batch);
    stki_memory_read(STKI_MEM_SLOT, &after);
    assert_int_equal(after.bytes, before.bytes);
}

static void run_deleter(void *context)
{
    DLManagedTensor *managed = context;

    managed->deleter(managed);
}

/* The step at which a saved position continues. */
static int64_t position(stk_loader *loader)
{
    char state[STK_STATE_MAX], *json;
    long long step = -1;
    int64_t bytes;
    stk_error err;
    const char *at;

    assert_ok(stk_loader_save(loader, state, sizeof state, &bytes, &err));
    json = stk_state_json(state, bytes, &err);
    assert_non_null(json);
    at = strstr(json, "\"step\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"step\": %lld", &step), 1);
    stk_text_free(json);
    return step;
}

/* A slot becomes free when the batch has been released and all deleters have run, in any order, on any thread, even
 * after the loader was destroyed. */
static void dlpack_holds_the_slot(void **state)
{
    stk_loader *loader;
    stk_batch *batch, *none;
    DLManagedTensor *a, *b;
    stki_thread *thread;
    stk_error err;
    stki_memory_stats before, after;

    (void)state;
    stki_memory_read(STKI_MEM_SLOT, &before);
    assert_int_equal(stkt_open(&loader, CONFIG, 1, 1), STK_OK);
    assert_ok(stk_loader_next_timeout(loader, 60 * STKI_SECOND, &batch, &err));
    assert_ok(stk_batch_dlpack(batch, "x", &a, &err));
    assert_ok(stk_batch_dlpack(batch, "x", &b, &err));
    assert_status(stk_batch_dlpack(batch, "z", &b, &err), STK_E_NOT_FOUND);
    assert_says("it has x");
    assert_int_equal(a->dl_tensor.ndim, 2);
    assert_int_equal(a->dl_tensor.shape[0], 10);
    assert_int_equal(a->dl_tensor.shape[1], 100);
    assert_int_equal(a->dl_tensor.strides[0], 100);
    assert_int_equal(a->dl_tensor.dtype.code, kDLUInt);
    assert_int_equal(a->dl_tensor.dtype.bits, 8);
    stk_batch_release(batch);
    assert_status(stk_loader_next(loader, &none, &err), STK_E_TIMEOUT); /* the only slot is still held */
    check_rows(a->dl_tensor.data, 0);
    a->deleter(a);
    assert_status(stk_loader_next(loader, &none, &err), STK_E_TIMEOUT);
    b->deleter(b);
    assert_ok(stk_loader_next_timeout(loader, 60 * STKI_SECOND, &batch, &err));
    assert_int_equal(stk_batch_step(batch), 1);
    assert_ok(stk_batch_dlpack(batch, "x", &a, &err));
    stk_batch_release(batch);
    stk_loader_destroy(loader);
    check_rows(a->dl_tensor.data, 10);
    assert_ok(stki_thread_start(&thread, "deleter", run_deleter, a, &err));
    assert_true(stki_thread_join(thread, INT64_MAX));
    stki_memory_read(STKI_MEM_SLOT, &after);
    assert_int_equal(after.bytes, before.bytes);
}

/* A batch that is marked as used keeps its slot until every hold is released. The position advances at once, by one
 * step. */
static void retained_and_used(void **state)
{
    stk_loader *loader;
    stk_batch *batch, *none;
    stk_tensor x;
    stk_error err;
    stk_batch *null = NULL;

    (void)state;
    assert_status(stk_batch_retain(null, NULL, &err), STK_E_BAD_ARG);
    stk_batch_mark_used(NULL);
    assert_int_equal(stkt_open(&loader, CONFIG, 1, 1), STK_OK);
    for (int64_t step = 0; step < 3; step++) {
        const bool marks = step != 1;

        assert_ok(stk_loader_next_timeout(loader, 60 * STKI_SECOND, &batch, &err));
        assert_int_equal(position(loader), step);
        if (marks)
            stk_batch_mark_used(batch);
        stk_batch_mark_used(marks ? batch : NULL);
        assert_int_equal(position(loader), step + marks);
        assert_ok(stk_batch_retain(batch, NULL, &err));
        stk_batch_release(batch);
        assert_int_equal(position(loader), step + 1);
        assert_status(stk_loader_next(loader, &none, &err), STK_E_TIMEOUT);
        assert_ok(stk_batch_tensor(batch, "x", &x, &err));
        check_rows(x.data, step * 10);
        stk_batch_release(batch);
        assert_int_equal(position(loader), step + 1);
    }
    stk_loader_destroy(loader);
}

/* TSan does not support threads in a child of a multithreaded process, so the child uses no workers. */
#if defined(__SANITIZE_THREAD__)
enum { CHILD_WORKERS = 0 };
#else
enum { CHILD_WORKERS = 2 };
#endif

/* Row P19: in a child, the parent's handles are rejected, and a new loader works. */
static void p19_fork(void **state)
{
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;

    (void)state;
    assert_int_equal(stkt_open(&loader, CONFIG, 4, 4), STK_OK);
    assert_ok(stk_loader_next_timeout(loader, 60 * STKI_SECOND, &batch, &err));
    for (int i = 0; i < 8; i++) {
        pid_t child;
        int status;

        fflush(NULL);
        stkt_wait_for_calm();
        child = fork();
        if (child == 0) {
            stk_loader *own;
            stk_batch *other;
            stk_tensor x;

            alarm(240);
            if (stk_loader_next(loader, &other, &err) != STK_E_FORKED || !strstr(err.message, "parent"))
                _exit(3);
            if (stk_batch_tensor(batch, "x", &x, &err) != STK_E_FORKED ||
                stk_loader_close(loader, &err) != STK_E_FORKED)
                _exit(4);
            stk_batch_release(batch);
            stk_loader_destroy(loader);
            if (i % 2) {
                if (stkt_open(&own, CONFIG, CHILD_WORKERS, 2) != STK_OK ||
                    stk_loader_next_timeout(own, 60 * STKI_SECOND, &other, &err) != STK_OK)
                    _exit(5);
                stk_batch_release(other);
                stk_loader_destroy(own);
            }
            _exit(0);
        }
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    stk_batch_release(batch);
    assert_ok(stk_loader_next_timeout(loader, 60 * STKI_SECOND, &batch, &err)); /* the parent continues */
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* Many loops that are left early add no threads and no memory. */
static void early_breaks_leave_nothing(void **state)
{
    stki_memory_stats before, after;

    (void)state;
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int i = 0; i < 200; i++) {
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;

        assert_int_equal(stkt_open(&loader, CONFIG, 1 + i % 5, 1 + i % 4), STK_OK);
        if (i % 3) {
            assert_ok(stk_loader_next_timeout(loader, 60 * STKI_SECOND, &batch, &err));
            stk_batch_release(batch);
        }
        stk_loader_destroy(loader);
    }
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(after.blocks, before.blocks);
    assert_int_equal(after.bytes, before.bytes);
}

static void unknown_names_are_listed(void **state)
{
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor x;
    stk_error err;
    stk_field_info info;

    (void)state;
    assert_int_equal(stkt_open(&loader, "{dataset: {fields: {image: {synthetic: {count: 4}}, text: {synthetic: {count: "
                                        "4, shape: [5], min_length: 0}}}}, loader: {num_workers: 0}}"),
                     STK_OK);
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_status(stk_batch_tensor(batch, "imagee", &x, &err), STK_E_NOT_FOUND);
    assert_says("image, text.values, text.offsets");
    assert_status(stk_batch_tensor(batch, "text", &x, &err), STK_E_NOT_FOUND);
    assert_ok(stk_batch_tensor(batch, "text.offsets", &x, &err));
    assert_int_equal(x.dtype, STK_I64);
    assert_int_equal(x.shape[0], 2);
    assert_ok(stk_loader_field(loader, 1, &info, &err));
    assert_int_equal(info.shape[1], -1);
    assert_status(stk_loader_field(loader, 2, &info, &err), STK_E_RANGE);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* With a timeout of 0, each call to a loader without workers makes a part of the batch, and finally all of it. */
static void polling_without_workers_ends_with_the_batch(void **state)
{
    stk_loader *loaders[2];
    stk_batch *batches[2];
    int timeouts = 0;
    stk_status status;
    stk_error err;

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_ok(stkt_open(&loaders[i],
                            "{dataset: {fields: {x: {synthetic: {count: 256, shape: [65536], dtype: u8, distinct: "
                            "9}}}}, loader: {batch_size: 128, num_workers: %d}}",
                            i));
    for (int n = 0; n < 2; n++) {
        stk_tensor x[2];

        while ((status = stk_loader_next_timeout(loaders[0], 0, &batches[0], &err)) == STK_E_TIMEOUT)
            timeouts++;
        assert_int_equal(status, STK_OK);
        assert_ok(stk_loader_next(loaders[1], &batches[1], &err));
        for (int i = 0; i < 2; i++)
            assert_ok(stk_batch_tensor(batches[i], "x", &x[i], &err));
        assert_memory_equal(x[0].data, x[1].data, 128 * 65536);
        for (int i = 0; i < 2; i++)
            stk_batch_release(batches[i]);
    }
    assert_true(timeouts > 2); /* a batch of 8 MiB has several parts */
    assert_int_equal(stk_loader_next_timeout(loaders[0], 0, &batches[0], &err), STK_END);
    for (int i = 0; i < 2; i++)
        stk_loader_destroy(loaders[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p02_a_held_batch_is_not_overwritten),
        cmocka_unit_test(p05_leaving_early),
        cmocka_unit_test(p05_exit_without_close),
        cmocka_unit_test(a_batch_outlives_its_loader),
        cmocka_unit_test(dlpack_holds_the_slot),
        cmocka_unit_test(retained_and_used),
        cmocka_unit_test(p19_fork),
        cmocka_unit_test(early_breaks_leave_nothing),
        cmocka_unit_test(unknown_names_are_listed),
        cmocka_unit_test(polling_without_workers_ends_with_the_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
