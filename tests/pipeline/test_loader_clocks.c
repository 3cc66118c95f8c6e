/* stki-threads: what the workers' time went into: parts of reads have clocks of their own, and each worker's clocks can
 * be asked for. */
#include "loader_test.h"
#include "thread.h"

static stk_status sleep_a_little(void *context, const stk_transform_call *call, const stk_tensor *in, stk_tensor *out,
                                 stk_error *err)
{
    (void)context, (void)call, (void)err;
    stki_sleep_ns(1000000);
    memcpy(out->data, in->data, (size_t)stk_tensor_nbytes(out));
    return STK_OK;
}

static stk_loader *opened(int workers)
{
    stk_transform transform = STK_TRANSFORM_INIT;
    stk_loader *loader = NULL;
    stk_error err;

    transform.name = "sleep_a_little";
    transform.run = sleep_a_little;
    assert_ok(stk_transform_register(&transform, &err));
    assert_int_equal(stkt_open(&loader,
                               "{dataset: {fields: {x: {synthetic: {count: 40, shape: [4], dtype: u8, read_time: 1ms}, "
                               "transforms: [{call: sleep_a_little}]}}}, loader: {batch_size: 4, num_workers: %d}}",
                               workers),
                     STK_OK);
    return loader;
}

static void take_all(stk_loader *loader)
{
    stk_batch *batch;
    stk_error err;
    stk_status status;

    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK)
        stk_batch_release(batch);
    assert_status(status, STK_END);
}

/* 40 samples of 1 ms of reading and 1 ms in the caller's function, whoever does it. A sleep is never shorter. */
static void a_transform_has_its_own_clock(void **state)
{
    (void)state;
    for (int workers = 0; workers <= 2; workers++) {
        stk_loader *loader = opened(workers);
        stk_loader_stats stats = {.struct_size = sizeof stats};
        stk_error err;

        take_all(loader);
        assert_ok(stk_loader_get_stats(loader, &stats, &err));
        assert_true(stats.call_ns >= 40000000);
        assert_true(stats.read_ns - stats.call_ns >= 40000000);
        assert_int_equal(stats.decode_ns, 0);
        assert_int_equal(stats.inflate_ns, 0);
        assert_int_equal(stats.page_ns, 0);
        stk_loader_destroy(loader);
    }
}

static void workers_add_up(void **state)
{
    stk_loader *loader = opened(2);
    stk_loader_stats stats = {.struct_size = sizeof stats};
    stk_worker_stats sum = {0};
    stk_error err;

    (void)state;
    take_all(loader);
    assert_ok(stk_loader_close(loader, &err));
    assert_ok(stk_loader_get_stats(loader, &stats, &err));
    for (int i = 0; i < 2; i++) {
        stk_worker_stats one = {.struct_size = sizeof one};

        assert_ok(stk_loader_worker(loader, i, &one, &err));
        sum.order_ns += one.order_ns;
        sum.read_ns += one.read_ns;
        sum.call_ns += one.call_ns;
        sum.convert_ns += one.convert_ns;
        sum.wait_slot_ns += one.wait_slot_ns;
        sum.wait_work_ns += one.wait_work_ns;
        sum.tiles += one.tiles;
    }
    assert_int_equal(sum.order_ns, stats.order_ns);
    assert_int_equal(sum.read_ns, stats.read_ns);
    assert_int_equal(sum.call_ns, stats.call_ns);
    assert_int_equal(sum.convert_ns, stats.convert_ns);
    assert_int_equal(sum.wait_slot_ns, stats.wait_slot_ns);
    assert_int_equal(sum.wait_work_ns, stats.wait_work_ns);
    assert_int_equal(sum.tiles, stats.tiles);
    assert_true(stats.tiles >= 10);
    stk_loader_destroy(loader);
}

static void wrong_questions(void **state)
{
    stk_loader *loader = opened(0);
    stk_worker_stats one = {.struct_size = sizeof one}, small = {.struct_size = 4};
    stk_error err;

    (void)state;
    assert_ok(stk_loader_worker(loader, 0, &one, &err)); /* the caller's own thread */
    assert_status(stk_loader_worker(loader, 1, &one, &err), STK_E_RANGE);
    assert_says("no worker 1: the loader has 1");
    assert_status(stk_loader_worker(loader, 0, NULL, &err), STK_E_BAD_ARG);
    assert_status(stk_loader_worker(loader, -1, &one, &err), STK_E_RANGE);
    assert_status(stk_loader_worker(loader, 0, &small, &err), STK_E_BAD_ARG);
    assert_says("struct_size");
    stk_loader_destroy(loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transform_has_its_own_clock),
        cmocka_unit_test(workers_add_up),
        cmocka_unit_test(wrong_questions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
