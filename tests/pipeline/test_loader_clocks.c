/* stki-threads */
/* Tests of the clocks of workers: the stages of reading have separate clocks, and those of each worker can be read. */
#include "advise.h"
#include "file.h"
#include "hdf5_type.h"
#include "io_files.h"
#include "late_rows.h"
#include "loader_test.h"
#include "mix.h"
#include "resample.h"
#include "thread.h"

static stk_status sleep_a_little(void *context, const stk_transform_call *call, const stk_tensor *in, stk_tensor *out,
                                 stk_error *err)
{
    (void)context, (void)call, (void)err;
    stki_sleep_ns(1000000);
    memcpy(out->data, in->data, (size_t)stk_tensor_nbytes(out));
    return STK_OK;
}

/* The program is linked with --wrap=stki_advise: on a slow disk, or if memory is short, advice blocks. */
static int64_t advice_ns;

void __wrap_stki_advise(stki_core *core, const stk_batch *batch, stki_worker *worker);
void __wrap_stki_advise(stki_core *core, const stk_batch *batch, stki_worker *worker)
{
    (void)core, (void)batch, (void)worker;
    if (advice_ns > 0)
        stki_sleep_ns(advice_ns);
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

/* 40 samples with 1 ms of reading and 1 ms in the caller's function, on any thread. A sleep is never shorter than
 * requested. */
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

/* Ten batches: 10 ms of advice, 40 ms of reading. */
static void advice_is_reading(void **state)
{
    (void)state;
    advice_ns = 1000000;
    for (int workers = 0; workers <= 2; workers++) {
        stk_loader *loader = opened(workers);
        stk_loader_stats stats = {.struct_size = sizeof stats};
        stk_error err;

        take_all(loader);
        assert_ok(stk_loader_get_stats(loader, &stats, &err));
        assert_true(stats.read_ns - stats.call_ns >= 50000000);
        stk_loader_destroy(loader);
    }
    advice_ns = 0;
}

/* Delays that --wrap adds to late steps of the conversion and to checks of files. */
static int64_t step_ns, check_ns;
static int views_before_slow; /* number of calls to stki_resample_view before the one that computes for 60 ms */

void __real_stki_erase_row(const stki_field_plan *plan, const stki_occasion *occasion, uint8_t *row);
void __wrap_stki_erase_row(const stki_field_plan *plan, const stki_occasion *occasion, uint8_t *row);
void __wrap_stki_erase_row(const stki_field_plan *plan, const stki_occasion *occasion, uint8_t *row)
{
    stki_sleep_ns(step_ns);
    __real_stki_erase_row(plan, occasion, row);
}

stki_mix_fn __real_stki_mix_of(enum stki_isa isa);
stki_mix_fn __wrap_stki_mix_of(enum stki_isa isa);
stki_mix_fn __wrap_stki_mix_of(enum stki_isa isa)
{
    stki_sleep_ns(step_ns);
    return __real_stki_mix_of(isa);
}

stk_status __real_stki_resample_view(const stki_field_plan *plan, stki_resampler *resampler, const stki_reader *shard,
                                     int64_t within, const stk_tensor *sample, const stk_tensor **out, stk_error *err);
stk_status __wrap_stki_resample_view(const stki_field_plan *plan, stki_resampler *resampler, const stki_reader *shard,
                                     int64_t within, const stk_tensor *sample, const stk_tensor **out, stk_error *err);
stk_status __wrap_stki_resample_view(const stki_field_plan *plan, stki_resampler *resampler, const stki_reader *shard,
                                     int64_t within, const stk_tensor *sample, const stk_tensor **out, stk_error *err)
{
    if (views_before_slow-- == 0) /* a sleep could count as waiting for a page of a mapped file */
        for (const int64_t end = stki_thread_cpu_ns() + 60000000; stki_thread_cpu_ns() < end;)
            ;
    return __real_stki_resample_view(plan, resampler, shard, within, sample, out, err);
}

static int checks;
stk_status __real_stki_file_intact(const stki_file *file, int64_t record, stk_error *err);
stk_status __wrap_stki_file_intact(const stki_file *file, int64_t record, stk_error *err);
stk_status __wrap_stki_file_intact(const stki_file *file, int64_t record, stk_error *err)
{
    checks += check_ns > 0;
    if (check_ns > 0)
        stki_sleep_ns(check_ns);
    return __real_stki_file_intact(file, record, err);
}

/* Delivers all batches of a loader without workers; returns its statistics, and the time from open to the end. */
static stk_loader_stats stats_inline(const char *fields, int64_t *wall_ns)
{
    stk_loader_stats stats = {.struct_size = sizeof stats};
    stk_loader *loader = NULL;
    stk_error err;

    *wall_ns = stki_now_ns();
    assert_ok(stkt_open(
        &loader, "{dataset: {fields: {%s}}, loader: {batch_size: 20, num_workers: 0, tile_bytes: 10000000}}", fields));
    take_all(loader);
    assert_ok(stk_loader_get_stats(loader, &stats, &err));
    stk_loader_destroy(loader);
    *wall_ns = stki_now_ns() - *wall_ns;
    return stats;
}

/* 40 rows, each with a late step of 2 ms after its sample was converted. */
static void late_steps_are_converting(void **state)
{
    static const char *const fields[] = {
        "x: {synthetic: {count: 40, shape: [8, 8, 3], dtype: u8}, transforms: [{scale: unit}, {mixup: {p: 1}}]}",
        "x: {synthetic: {count: 40, shape: [8, 8, 3], dtype: u8}, source: {layout: nhwc}, transforms: [{scale: unit}, "
        "{random_erasing: 1}]}",
        "x: {synthetic: {count: 40, shape: [8, 8, 3], dtype: u8}, source: {layout: nhwc}, transforms: [{resize: 4}, "
        "{scale: unit}, {random_erasing: 1}]}"};

    (void)state;
    step_ns = 2000000;
    for (int f = 0; f < 3; f++) {
        int64_t wall;
        const stk_loader_stats stats = stats_inline(fields[f], &wall);

        assert_true(stats.convert_ns >= 40 * step_ns);
        assert_true(stats.order_ns > 0);
        assert_true(stats.order_ns + stats.read_ns + stats.convert_ns <= wall);
    }
    step_ns = 0;
}

/* Rows are measured and then copied. Both steps check the file, and each check is counted once. */
static void checks_are_reading(void **state)
{
    const char *path = stkt_path("lists.jsonl");
    stk_loader_stats stats;
    char text[40 * 32] = "", field[400];
    int64_t wall;

    (void)state;
    for (int i = 0; i < 40; i++)
        snprintf(text + strlen(text), 32, "{\"x\": [1%s]}\n", i % 2 ? ", 2" : "");
    stkt_write_file(path, text, strlen(text));
    snprintf(field, sizeof field, "x: {path: '%s', source: {key: x}}", path);
    check_ns = 50000000;
    checks = 0;
    stats = stats_inline(field, &wall);
    assert_true(checks >= 4);
    assert_true(stats.read_ns >= 4 * check_ns);
    assert_true(stats.order_ns + stats.read_ns + stats.convert_ns <= wall);
    check_ns = 0;
}

/* The table of watched files is full when row 64 has been converted. */
static void a_full_table_of_files_does_not_stop_the_clock(void **state)
{
    char field[400];

    (void)state;
    for (int i = 0; i < 70; i++) {
        static const unsigned char image[8 * 8 * 3];
        char name[32];

        snprintf(name, sizeof name, "image%02d.npy", i);
        stkt_write_npy(stkt_path(name), "|u1", "False", "(8, 8, 3)", 64, image, sizeof image);
    }
    snprintf(field, sizeof field,
             "x: {path: '%s/image*.npy', source: {sample_per_file: true, layout: hwc}, transforms: [{resize: 4}]}",
             stkt_dir);
    for (int i = 62; i < 67; i++) {
        stk_loader_stats stats = {.struct_size = sizeof stats};
        stk_loader *loader = NULL;
        stk_error err;

        views_before_slow = i;
        assert_ok(stkt_open(&loader,
                            "{dataset: {fields: {%s}}, loader: {batch_size: 70, num_workers: 0, tile_bytes: 10000000}}",
                            field));
        take_all(loader);
        assert_true(views_before_slow < 0);
        assert_ok(stk_loader_get_stats(loader, &stats, &err));
        assert_true(stats.convert_ns >= 50000000);
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

/* ---- chunks that are decompressed repeatedly ---- */

enum { ROWS = 60, LENGTH = 32, CHUNK_ROWS = 8, ROW_BYTES = LENGTH * 4 };

/* 60 rows in chunks of 8; half of the last chunk is unused. */
static void make_packed(const char *path)
{
    const hsize_t shape[2] = {ROWS, LENGTH}, chunk[2] = {CHUNK_ROWS, LENGTH};
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(2, shape, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    float values[ROWS * LENGTH];

    for (int i = 0; i < ROWS * LENGTH; i++)
        values[i] = (float)i;
    assert_true(H5Pset_chunk(how, 2, chunk) >= 0 && H5Pset_shuffle(how) >= 0 && H5Pset_deflate(how, 1) >= 0);
    const hid_t set = H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(set);
    H5Pclose(how);
    H5Sclose(space);
    H5Fclose(file);
}

static stk_loader_stats stats_of_packed(const char *order, int workers, int cache_bytes, int epochs)
{
    stk_loader_stats stats = {.struct_size = sizeof stats};
    stk_loader *loader = NULL;
    stk_error err;

    assert_int_equal(stkt_open(&loader,
                               "{dataset: {fields: {x: {path: %s}}}, loader: {batch_size: 4, order: %s, "
                               "num_workers: %d, cache_bytes: %d, num_epochs: %d}}",
                               stkt_path("packed.h5"), order, workers, cache_bytes, epochs),
                     STK_OK);
    take_all(loader);
    assert_ok(stk_loader_close(loader, &err));
    assert_ok(stk_loader_get_stats(loader, &stats, &err));
    stk_loader_destroy(loader);
    return stats;
}

static void chunks_that_are_unpacked_again_are_counted(void **state)
{
    const int64_t whole = ROWS * ROW_BYTES;
    const int one_chunk = CHUNK_ROWS * ROW_BYTES;
    stk_loader_stats stats;

    (void)state;
    make_packed(stkt_path("packed.h5"));
    for (int workers = 0; workers <= 1; workers++) {
        stats = stats_of_packed("sequential", workers, one_chunk, 1);
        assert_int_equal(stats.packed_bytes, whole);
        assert_int_equal(stats.unpacked_bytes, whole); /* without the unused rows of the last chunk */
        stats = stats_of_packed("block", workers, 2 * one_chunk, 1);
        assert_int_equal(stats.packed_bytes, whole);
        assert_int_equal(stats.unpacked_bytes, whole);
        stats = stats_of_packed("random", workers, one_chunk, 1);
        assert_int_equal(stats.packed_bytes, whole);
        assert_true(stats.unpacked_bytes > 4 * whole && stats.unpacked_bytes <= CHUNK_ROWS * whole);
        stats = stats_of_packed("random", workers, 16 * one_chunk, 3); /* all of them are cached, for three epochs */
        assert_int_equal(stats.packed_bytes, 3 * whole);
        assert_int_equal(stats.unpacked_bytes, whole);
    }
}

/* Data that is not compressed counts as neither. */
static void plain_data_has_no_packed_bytes(void **state)
{
    stk_loader *loader = opened(1);
    stk_loader_stats stats = {.struct_size = sizeof stats};
    stk_error err;

    (void)state;
    take_all(loader);
    assert_ok(stk_loader_get_stats(loader, &stats, &err));
    assert_int_equal(stats.packed_bytes, 0);
    assert_int_equal(stats.unpacked_bytes, 0);
    stk_loader_destroy(loader);
}

/* A worker waits for only one thing at a time, and for no longer than the run takes. */
static void waits_are_within_the_run(void **state)
{
    const int64_t begin = stki_now_ns();
    stk_loader *loader;
    stk_loader_stats stats = {.struct_size = sizeof stats};
    stk_batch *batch;
    stk_error err;

    (void)state;
    assert_int_equal(stkt_open(&loader, "{dataset: {fields: {x: {synthetic: {count: 60, shape: [4], dtype: u8}}}}, "
                                        "loader: {batch_size: 4, num_workers: 2, prefetch: 1}}"),
                     STK_OK);
    while (stk_loader_next(loader, &batch, &err) == STK_OK) {
        stki_sleep_ns(10000000); /* the workers fill all slots and wait */
        stk_batch_release(batch);
    }
    assert_ok(stk_loader_get_stats(loader, &stats, &err));
    assert_true(stats.wait_slot_ns + stats.wait_work_ns > 0);
    for (int i = 0; i < 2; i++) {
        stk_worker_stats one = {.struct_size = sizeof one};

        assert_ok(stk_loader_worker(loader, i, &one, &err));
        assert_true(one.wait_slot_ns >= 0 && one.wait_work_ns >= 0);
        assert_true(one.wait_slot_ns + one.wait_work_ns <= stki_now_ns() - begin);
    }
    assert_true(stats.wait_next_ns >= 0 && stats.wait_next_ns <= stki_now_ns() - begin);
    stk_loader_destroy(loader);
}

static void invalid_workers(void **state)
{
    stk_loader *loader = opened(0);
    stk_worker_stats one = {.struct_size = sizeof one}, small = {.struct_size = 4};
    stk_error err;

    (void)state;
    assert_ok(stk_loader_worker(loader, 0, &one, &err)); /* the caller's thread */
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
        cmocka_unit_test(advice_is_reading),
        cmocka_unit_test(late_steps_are_converting),
        cmocka_unit_test(checks_are_reading),
        cmocka_unit_test(a_full_table_of_files_does_not_stop_the_clock),
        cmocka_unit_test(workers_add_up),
        cmocka_unit_test(chunks_that_are_unpacked_again_are_counted),
        cmocka_unit_test(plain_data_has_no_packed_bytes),
        cmocka_unit_test(waits_are_within_the_run),
        cmocka_unit_test(invalid_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
