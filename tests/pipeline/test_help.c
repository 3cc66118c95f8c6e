/* stki-threads */
/* Tests of consumer_helps: a consumer makes rows while it waits, and its work is counted; it does not help where its
 * thread could block or would not survive. */
#include "file.h"
#include "ids_test.h"
#include "loader_handle.h"
#include <signal.h>

enum { COUNT = 4096, BATCH = 64 };

#define HELPED                                                                                                       \
    "{dataset: {fields: {x: {path: many.npy}}}, loader: {order: random, batch_size: 64, num_epochs: 0, tile_bytes: " \
    "1024, num_workers: 1, consumer_helps: %s%s}}"

static int64_t helped(const stk_loader *loader)
{
    stk_loader_stats stats = {.struct_size = sizeof stats};
    stk_error err;

    assert_ok(stk_loader_get_stats(loader, &stats, &err));
    return stats.helped_ns;
}

/* Takes and checks this number of whole epochs. */
static void take_epochs(stk_loader *loader, int epochs)
{
    for (int e = 0; e < epochs; e++) {
        static uint8_t seen[COUNT];

        memset(seen, 0, sizeof seen);
        for (int step = 0; step < COUNT / BATCH; step++) {
            stk_batch *batch;
            stk_tensor x;
            stk_error err;

            assert_ok(stk_loader_next(loader, &batch, &err));
            assert_ok(stk_batch_tensor(batch, "x", &x, &err));
            for (int i = 0; i < BATCH; i++)
                seen[((const int64_t *)x.data)[i]]++;
            stk_batch_release(batch);
        }
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(seen[i], 1);
    }
}

/* Takes batches until the consumer has helped. */
static void take_until_helped(stk_loader *loader)
{
    const int64_t before = helped(loader), deadline = stki_deadline_ns(60 * STKI_SECOND);

    while (helped(loader) == before && stki_now_ns() < deadline)
        take_epochs(loader, 1);
    assert_true(helped(loader) > before);
}

static void its_work_is_counted(void **state)
{
    (void)state;
    write_ids("many.npy", 0, COUNT);
    for (int automatic = 0; automatic < 2; automatic++) {
        stk_loader *loader = open_text(HELPED, automatic ? "auto" : "true", "");
        stk_loader_stats stats = {.struct_size = sizeof stats};
        stk_worker_stats worker = {.struct_size = sizeof worker};
        stk_error err;

        take_until_helped(loader);
        assert_ok(stk_loader_close(loader, &err));
        assert_ok(stk_loader_get_stats(loader, &stats, &err));
        assert_ok(stk_loader_worker(loader, 0, &worker, &err));
        assert_int_equal(stats.workers, 1);
        assert_true(worker.tiles < stats.tiles);
        assert_int_equal(stats.order_ns + stats.read_ns + stats.convert_ns,
                         worker.order_ns + worker.read_ns + worker.convert_ns + stats.helped_ns);
        stk_loader_destroy(loader);
    }
}

static void takes_no_part(stk_loader *loader, int epochs)
{
    const int64_t before = helped(loader);

    take_epochs(loader, epochs);
    assert_int_equal(helped(loader), before);
    stk_loader_destroy(loader);
}

static void not_if_sigbus_would_be_fatal(void **state)
{
    sigset_t set, before;
    stk_loader *loader;

    (void)state;
    write_ids("many.npy", 0, COUNT);
    sigemptyset(&set);
    sigaddset(&set, SIGBUS);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &set, &before), 0);
    takes_no_part(open_text(HELPED, "true", ""), 20);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);

    loader = open_text(HELPED, "true", "");
    take_until_helped(loader);
    atomic_store(&((stki_file *)(uintptr_t)loader->core->dataset->fields[0].shards[0]->file)->changed, true);
    {
        const int64_t then = helped(loader);
        stk_batch *batch;
        stk_error err;

        for (int i = 0; i < 100 && stk_loader_next(loader, &batch, &err) == STK_OK; i++)
            stk_batch_release(batch);
        assert_int_equal(helped(loader), then);
    }
    stk_loader_destroy(loader);
}

static void not_when_it_may_not_wait(void **state)
{
    stk_loader *loader;

    (void)state;
    write_ids("many.npy", 0, COUNT);
    loader = open_text(HELPED, "true", "");
    for (int taken = 0; taken < 20 * COUNT / BATCH;) {
        stk_batch *batch;

        if (stk_loader_next_timeout(loader, 0, &batch, NULL) != STK_OK)
            continue;
        stk_batch_release(batch);
        taken++;
    }
    assert_int_equal(helped(loader), 0);
    stk_loader_destroy(loader);
}

static stk_status give(void *context, const stk_transform_call *call, const stk_tensor *in, stk_tensor *out,
                       stk_error *err)
{
    (void)context, (void)call, (void)err;
    memcpy(out->data, in->data, (size_t)stk_tensor_nbytes(out));
    return STK_OK;
}

/* The consumer does not help with work that may block, even if the option requests it. */
static void never_what_may_block(void **state)
{
    static const char *const fields[] = {
        "{path: many.npy, transforms: [{call: give}]}",
        "{synthetic: {count: 4096, shape: [4], dtype: u8, read_time: 1ms}}",
        "{synthetic: {count: 4096, shape: [40], dtype: u8, min_length: 1}}",
    };
    static const char *const options[] = {", access: pread", ", device: host", ", num_workers: 0"};
    stk_transform transform = STK_TRANSFORM_INIT;
    stk_error err;

    (void)state;
    write_ids("many.npy", 0, COUNT);
    transform.name = "give";
    transform.run = give;
    assert_ok(stk_transform_register(&transform, &err));
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        stk_loader *loader = open_text(
            "{dataset: {fields: {x: %s}}, loader: {batch_size: 64, num_workers: 2, consumer_helps: true}}", fields[i]);

        assert_false(loader->core->helps);
        stk_loader_destroy(loader);
    }
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        stk_loader *loader = open_text(
            "{dataset: {fields: {x: {path: many.npy}}}, loader: {batch_size: 64, consumer_helps: true%s}}", options[i]);

        assert_false(loader->core->helps);
        stk_loader_destroy(loader);
    }
    takes_no_part(open_text(HELPED, "false", ""), 20);
}

static void cancel_soon(void *loader)
{
    stki_sleep_ns(3000000);
    stk_loader_cancel(loader);
}

static void close_soon(void *loader)
{
    stk_error err;

    stki_sleep_ns(3000000);
    assert_ok(stk_loader_close(loader, &err));
}

/* Closing and cancelling end the run in every state of the consumer. */
static void ends_from_any_state(void **state)
{
    (void)state;
    write_ids("many.npy", 0, COUNT);
    for (int turn = 0; turn < 20; turn++) {
        stk_loader *loader = open_text(HELPED, "true", turn % 4 < 2 ? "" : ", prefetch: 1");
        stki_thread *thread;
        stk_batch *batch;
        stk_error err;
        stk_status status;

        assert_ok(stki_thread_start(&thread, "end", turn % 2 ? close_soon : cancel_soon, loader, &err));
        while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK)
            stk_batch_release(batch);
        assert_int_equal(status, turn % 2 ? STK_E_CLOSED : STK_E_CANCELLED);
        assert_true(stki_thread_join(thread, INT64_MAX));
        stk_loader_destroy(loader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_work_is_counted),      cmocka_unit_test(not_if_sigbus_would_be_fatal),
        cmocka_unit_test(not_when_it_may_not_wait), cmocka_unit_test(never_what_may_block),
        cmocka_unit_test(ends_from_any_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
