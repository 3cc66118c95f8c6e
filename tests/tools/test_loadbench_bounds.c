/* stki-threads */
/* Tests of the limits of reading and decompressing: each limit is measured, or the reason why it cannot be is given,
 * and the resulting bounds equal those computed by hand. */
#include "allocate.h"
#include "codec_limit.h"
#include "faults.h"
#include "loadbench_bounds.h"
#include "loadbench_consumer.h"
#include "loadbench_predict.h"
#include "loadbench_result.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/dataset.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/stoker_bounds_XXXXXX";

/* ---- codecs ---- */

static void photos_are_decoded(void **state)
{
    const char *path = STKT_TESTS_DIR "/data/photos";
    struct codec_ask ask = {.threads = 2,
                            .time_ns = 20000000,
                            .paths = &path,
                            .path_count = 1,
                            .source = "{decode: none}",
                            .name = "image"};
    struct codec_limit limit;
    stk_error err;

    (void)state;
    assert_int_equal(codec_jpeg(&ask, &limit, &err), STK_OK);
    assert_string_equal(limit.missing, "");
    assert_true(limit.items > 1 && limit.samples_per_s > 0);
    assert_true(limit.bytes_per_s > limit.samples_per_s * 1000); /* RGB images of more than a thousand bytes */
    assert_true(limit.packed_bytes > 1000);
    assert_non_null(strstr(codec_jpeg_version(), "libjpeg"));
}

static void files_that_are_not_jpeg(void **state)
{
    char path[600];
    const char *paths[] = {path};
    struct codec_ask ask = {
        .threads = 1, .time_ns = 1000000, .paths = paths, .path_count = 1, .source = "{decode: none}", .name = "image"};
    struct codec_limit limit;
    stk_error err;

    (void)state;
    snprintf(path, sizeof path, "%s/nowhere", folder);
    assert_int_equal(codec_jpeg(&ask, &limit, &err), STK_OK);
    assert_non_null(strstr(limit.missing, "nowhere"));
    assert_true(limit.samples_per_s <= 0);
}

/* A data set of 64 rows in chunks of 16, deflated at `level` or not compressed. */
static void write_hdf5(const char *path, int level)
{
    const int64_t shape[1] = {512};
    stk_writer_opts opts = STK_WRITER_OPTS_INIT;
    stk_writer *writer;
    stk_error err;
    static unsigned char rows[64 * 512];

    for (size_t i = 0; i < sizeof rows; i++)
        rows[i] = (unsigned char)(i / 100);
    opts.level = level;
    opts.chunk_rows = level ? 16 : 0;
    assert_int_equal(stk_writer_create(path, "hdf5", &opts, &writer, &err), STK_OK);
    assert_int_equal(stk_writer_begin(writer, "data", STK_U8, 1, shape, 64, &err), STK_OK);
    assert_int_equal(stk_writer_append(writer, rows, 64, &err), STK_OK);
    assert_int_equal(stk_writer_end(writer, &err), STK_OK);
    assert_int_equal(stk_writer_commit(writer, &err), STK_OK);
}

static void chunks_are_unpacked(void **state)
{
    char path[600];
    const char *paths[] = {path};
    struct codec_ask ask = {.threads = 2, .time_ns = 20000000, .paths = paths, .path_count = 1, .name = "data"};
    struct codec_limit limit;
    stk_error err;

    (void)state;
    snprintf(path, sizeof path, "%s/packed.h5", folder);
    write_hdf5(path, 4);
    for (int named = 0; named < 2; named++) { /* once by name, and once as the only data set */
        ask.name = named ? "data" : "image";
        assert_int_equal(codec_inflate(&ask, &limit, &err), STK_OK);
        assert_string_equal(limit.missing, "");
        assert_int_equal(limit.items, 4);
        assert_true(limit.packed_bytes > 0 && limit.packed_bytes < 64 * 512);
        /* a chunk has 16 samples of 512 bytes */
        assert_true(fabs(limit.samples_per_s * 512 / limit.bytes_per_s - 1) < 0.6); /* separate medians */
    }
    snprintf(path, sizeof path, "%s/plain.h5", folder);
    write_hdf5(path, 0);
    assert_int_equal(codec_inflate(&ask, &limit, &err), STK_OK);
    assert_non_null(strstr(limit.missing, "not stored in chunks compressed with deflate"));
    snprintf(path, sizeof path, "%s/none.h5", folder);
    assert_int_equal(codec_inflate(&ask, &limit, &err), STK_OK);
    assert_non_null(strstr(limit.missing, "none.h5"));
}

/* ---- reading ---- */

static void files_are_read(void **state)
{
    char path[600];
    struct lb_files files = {0};
    struct lb_read_limit limit;
    stk_error err;
    static char block[65536];

    (void)state;
    assert_int_equal(lb_read_limit_measure(&files, 2, 1000000, &limit, &err), STK_OK);
    assert_non_null(strstr(limit.cached_missing, "not in files"));
    assert_non_null(strstr(limit.cold_missing, "not in files"));
    snprintf(path, sizeof path, "%s/data", folder);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 50; i++) /* not a multiple of the block size */
        assert_true(fwrite(block, 1, sizeof block, file) == sizeof block);
    fclose(file);
    assert_int_equal(lb_files_add(&files, path, &err), STK_OK);
    assert_int_equal(lb_read_limit_measure(&files, 2, 5000000, &limit, &err), STK_OK);
    assert_true(limit.cached_bytes_per_s > 0);
    assert_int_equal(limit.threads, 2);
    if (limit.cold_missing[0]) /* for example, on a file system that keeps its pages */
        assert_true(limit.cold_bytes_per_s <= 0);
    else
        assert_true(limit.cold_bytes_per_s > 0 && limit.cold_bytes <= 50 * (int64_t)sizeof block &&
                    limit.cold_bytes > 0);
    lb_files_fini(&files);
    /* too few bytes to measure a disk */
    snprintf(path, sizeof path, "%s/small", folder);
    file = fopen(path, "w");
    fputs("a few bytes", file);
    fclose(file);
    assert_int_equal(lb_files_add(&files, path, &err), STK_OK);
    assert_int_equal(lb_read_limit_measure(&files, 2, 1000000, &limit, &err), STK_OK);
    assert_non_null(strstr(limit.cold_missing, "11 bytes are too few"));
    lb_files_fini(&files);
}

/* ---- out of memory ---- */

/* Each measurement with the n-th allocation failing, for every n: nothing leaks, and the error is reported. */
static void no_memory(void **state)
{
    char path[600], packed[600];
    const char *paths[] = {packed};
    struct codec_ask ask = {.threads = 2, .time_ns = 1000000, .paths = paths, .path_count = 1, .name = "data"};
    struct codec_limit codec;
    struct lb_read_limit read;
    struct lb_marks *marks;
    stki_memory_stats before, after;
    stk_error err;
    bool failed = true;

    (void)state;
    snprintf(path, sizeof path, "%s/data", folder);
    snprintf(packed, sizeof packed, "%s/packed.h5", folder);
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int64_t n = 1; failed && n < 2000; n++) {
        struct lb_files files = {0};
        stki_memory_fail_at(n);
        stk_status status = lb_files_add(&files, path, &err);
        if (status == STK_OK)
            status = lb_read_limit_measure(&files, 2, 200000, &read, &err);
        failed = status != STK_OK;
        if (failed)
            assert_int_equal(status, STK_E_MEMORY);
        stki_memory_fail_at(0);
        lb_files_fini(&files);
    }
    assert_false(failed);
    failed = true;
    for (int64_t n = 1; failed && n < 100; n++) {
        stki_memory_fail_at(n);
        failed = lb_marks_create(3, 10, &marks, &err) != STK_OK;
        stki_memory_fail_at(0);
        if (!failed)
            lb_marks_destroy(marks);
    }
    assert_false(failed);
    failed = true;
    for (int64_t n = 1; failed && n < 2000; n++) {
        stki_memory_fail_at(n);
        const stk_status status = codec_inflate(&ask, &codec, &err);
        failed = status != STK_OK || codec.missing[0];
        stki_memory_fail_at(0);
    }
    assert_false(failed);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(after.bytes, before.bytes);
}

/* ---- bounds ---- */

static const struct lb_bound *find(const struct lb_bound *bounds, int count, enum lb_bound_kind kind)
{
    for (int i = 0; i < count; i++)
        if (bounds[i].kind == kind)
            return &bounds[i];
    return NULL;
}

/* 1000 samples in one second; each reads 100 bytes and writes 400, from files with 60 bytes per sample. */
static void bounds_by_hand(void **state)
{
    struct lb_run run = {.elapsed_ns = 1000000000, .samples = 1000, .batches = 100};
    struct lb_limit limit = {.gather = {1e6, "plain"}, .memcpy = {2e6, "plain"}, .write = {1e6, "plain"}};
    struct lb_config config = {.bench = {.consumer = LB_CONSUMER_STEP, .step_time = 5000000}};
    struct lb_result result = {.config = &config, .runs = &run, .run_count = 1, .limits = &limit, .limit_count = 1};
    struct lb_bound bounds[LB_BOUND_KINDS];

    (void)state;
    result.facts.samples = 1000;
    result.facts.data.bytes = 60000;
    run.stats.bytes_read = 100 * 1000;
    run.stats.bytes_written = 400 * 1000;
    run.usage.disk_bytes = 0;
    result.once.measured = true;
    result.once.read.cached_bytes_per_s = 600000;
    result.once.read.cold_bytes_per_s = 30000;
    result.once.decode.samples_per_s = 1250;
    int count = lb_result_bounds(&result, bounds);
    assert_int_equal(count, 6);
    assert_true(fabs(find(bounds, count, LB_BOUND_MEMORY)->samples_per_s - 1e6 / 500) < 1e-6);
    assert_true(fabs(find(bounds, count, LB_BOUND_WRITE)->samples_per_s - 1e6 / 400) < 1e-6);
    assert_true(fabs(find(bounds, count, LB_BOUND_CACHED)->samples_per_s - 600000 / 60.0) < 1e-6);
    assert_true(fabs(find(bounds, count, LB_BOUND_DISK)->samples_per_s - 30000 / 60.0) < 1e-6);
    assert_true(fabs(find(bounds, count, LB_BOUND_STEP)->samples_per_s - 10 / 0.005) < 1e-6);
    for (int i = 1; i < count; i++)
        assert_true(bounds[i - 1].samples_per_s <= bounds[i].samples_per_s);
    /* the disk permits 500 samples/s, but nothing was read from it: the decoder is the limit, and 80 % of it was
     * reached */
    assert_int_equal(bounds[0].kind, LB_BOUND_DISK);
    assert_false(bounds[0].applies);
    assert_true(fabs(bounds[0].share_percent - 200) < 1e-6);
    assert_int_equal(lb_bound_binding(bounds, count)->kind, LB_BOUND_DECODE);
    assert_true(fabs(lb_bound_binding(bounds, count)->share_percent - 80) < 1e-6);
    run.usage.disk_bytes = 60 * 1000;
    count = lb_result_bounds(&result, bounds);
    assert_int_equal(lb_bound_binding(bounds, count)->kind, LB_BOUND_DISK);
    run.usage.disk_bytes = 120 * 1000; /* whole pages were read: the disk permits half as many samples */
    count = lb_result_bounds(&result, bounds);
    assert_true(fabs(find(bounds, count, LB_BOUND_DISK)->samples_per_s - 30000 / 120.0) < 1e-6);
    run.usage.disk_bytes = 60 * 1000;
    count = lb_result_bounds(&result, bounds);
    assert_null(lb_bound_binding(bounds, 0));
    /* four times as many batches were made as delivered, because slots were filled in advance, so each took a quarter
     * of the time */
    run.made_batches = 4 * run.batches;
    count = lb_result_bounds(&result, bounds);
    assert_true(fabs(find(bounds, count, LB_BOUND_MEMORY)->samples_per_s - 4 * 1e6 / 500) < 1e-6);
    assert_true(fabs(find(bounds, count, LB_BOUND_WRITE)->samples_per_s - 4 * 1e6 / 400) < 1e-6);
}

/* The library alone decompresses 10,000 samples/s. The run decompressed each chunk 50 times, once, or almost never. */
static void unpacking_again_counts(void **state)
{
    struct lb_run run = {.elapsed_ns = 1000000000, .samples = 100, .batches = 100};
    struct lb_config config = {.bench = {.consumer = 0}};
    struct lb_result result = {.config = &config, .runs = &run, .run_count = 1};
    struct lb_bound bounds[LB_BOUND_KINDS];

    (void)state;
    result.once = (struct lb_once){.measured = true, .inflate = {.samples_per_s = 10000, .items = 1}};
    run.stats.packed_bytes = 1000, run.stats.unpacked_bytes = 50000;
    int count = lb_result_bounds(&result, bounds);
    assert_int_equal(count, 2);
    assert_float_equal(find(bounds, count, LB_BOUND_INFLATE)->samples_per_s, 200, 1e-9);
    assert_float_equal(find(bounds, count, LB_BOUND_INFLATE)->share_percent, 50, 1e-9);
    assert_float_equal(find(bounds, count, LB_BOUND_INFLATE)->unpacked, 50, 1e-9);
    assert_non_null(strstr(find(bounds, count, LB_BOUND_INFLATE)->basis, "1 chunk, each 50 times"));
    assert_float_equal(find(bounds, count, LB_BOUND_INFLATE_ONCE)->samples_per_s, 10000, 1e-9);
    assert_int_equal(lb_bound_binding(bounds, count)->kind, LB_BOUND_INFLATE);
    assert_false(find(bounds, count, LB_BOUND_INFLATE_ONCE)->applies);
    run.stats.unpacked_bytes = 1100;
    count = lb_result_bounds(&result, bounds);
    assert_int_equal(count, 1);
    assert_float_equal(bounds[0].samples_per_s, 10000, 1e-9);
    run.stats.unpacked_bytes = 100; /* nine of ten chunks were still cached */
    count = lb_result_bounds(&result, bounds);
    assert_int_equal(count, 1);
    assert_float_equal(bounds[0].samples_per_s, 100000, 1e-6);
    assert_true(bounds[0].applies);
    run.stats.unpacked_bytes = 0;
    count = lb_result_bounds(&result, bounds);
    assert_int_equal(count, 1);
    assert_float_equal(bounds[0].samples_per_s, 10000, 1e-9);
    assert_false(bounds[0].applies);
    run.stats.packed_bytes = 0; /* read by libhdf5, whose decompression is not counted */
    count = lb_result_bounds(&result, bounds);
    assert_true(count == 1 && bounds[0].applies);
}

/* One second on four processors, of which other processes used up to three. The process could have had the processors
 * that were left, its fair share, or those that it did use. */
static void available_processors(void **state)
{
    struct lb_run run = {.elapsed_ns = 1000000000, .samples = 100, .batches = 100};
    struct lb_config config = {.bench = {.consumer = 0}};
    struct lb_marks *marks[1] = {NULL};
    struct lb_result result = {.config = &config, .runs = &run, .run_count = 1, .marks = marks};

    (void)state;
    result.machine.cores_allowed = 4;
    run.usage.user_ns = 400000000, run.usage.system_ns = 100000000;
    assert_float_equal(lb_result_shares(&result).cores, 4, 1e-9); /* other processes unknown: all processors */
    run.others = (struct lb_others){.known = true, .processors = 4, .used = 1, .span_ns = 1000000000};
    assert_float_equal(lb_result_shares(&result).cores, 3, 1e-9);
    run.others.used = 3;
    assert_float_equal(lb_result_shares(&result).cores, 2, 1e-9); /* its fair share, since it did not demand more */
    run.others.queued = 1.5;
    run.usage.voluntary_switches = 100, run.usage.involuntary_switches = 50; /* preempted when waking up */
    assert_float_equal(lb_result_shares(&result).cores, 2, 1e-9);
    run.usage.involuntary_switches = 500; /* preempted in the middle of its work */
    assert_float_equal(lb_result_shares(&result).cores, 1, 1e-9);
    run.usage.user_ns = 1400000000;
    assert_float_equal(lb_result_shares(&result).cores, 1.5, 1e-9); /* never less than the process used */
    run.others.queued = 0.2;
    assert_float_equal(lb_result_shares(&result).cores, 2, 1e-9);
    result.machine.cpu_quota = 1.75;
    assert_float_equal(lb_result_shares(&result).cores, 1.5, 1e-9);
    assert_float_equal(lb_result_shares(&result).cpu_s, 1.5, 1e-9);
}

/* Two workers read all the time. A third would read half as much again, but the disk gives only a fifth more. */
static void predictions_of_a_slow_disk(void **state)
{
    struct lb_run runs[2];
    struct lb_config config = {.bench = {.consumer = 0}};
    struct lb_marks *marks[2] = {NULL, NULL};
    struct lb_result result = {.config = &config, .runs = runs, .run_count = 2, .marks = marks};
    struct lb_predictions found;

    (void)state;
    for (int i = 0; i < 2; i++) {
        runs[i] = (struct lb_run){.elapsed_ns = 1000000000, .samples = 1000, .batches = 100};
        runs[i].stats = (stk_loader_stats){.workers = 2,
                                           .slots = 8,
                                           .tiles = 100,
                                           .read_ns = 2000000000,
                                           .wait_next_ns = 990000000,
                                           .bytes_read = 100000};
        runs[i].usage.disk_bytes = 100000;
    }
    result.machine.cores_allowed = 4;
    result.facts.samples = 1000, result.facts.data.bytes = 100000;
    lb_predict(&result, &found);
    assert_int_equal(found.count, 2);
    assert_string_equal(found.each[0].set, "loader.num_workers=3");
    assert_float_equal(found.each[0].rate, 1500, 15);
    result.once = (struct lb_once){.measured = true, .read = {.cold_bytes_per_s = 120000}};
    lb_predict(&result, &found);
    assert_float_equal(found.each[0].rate, 1200, 12);
    /* first, twice as many slots fit in the cache; then they do not */
    assert_float_equal(found.each[1].rate, 1000, 10);
    result.machine.cache_bytes = 1000;
    runs[0].stats.slot_bytes = 501;
    lb_predict(&result, &found);
    assert_float_equal(found.each[1].rate, 0, 0);
    assert_non_null(strstr(found.each[1].missing, "1.00kB"));
    runs[0].stats.slot_bytes = 500;
    lb_predict(&result, &found);
    assert_float_equal(found.each[1].rate, 1000, 10);
    runs[0].stats.slot_bytes = 1001;
    lb_predict(&result, &found);
    assert_float_equal(found.each[1].rate, 1000, 10);
    /* 1000 and 1500 are a fifth away from their median */
    runs[1].samples = 1500;
    lb_predict(&result, &found);
    assert_int_equal(found.count, 0);
    assert_non_null(strstr(found.missing, "20 % or more"));
}

/* A share of more than 100 % must be explained. */
static void more_than_a_limit_is_explained(void **state)
{
    struct lb_bound bound = {.kind = LB_BOUND_INFLATE, .share_percent = 109};

    (void)state;
    assert_string_equal(lb_bound_excess(NULL, true), "");
    assert_string_equal(lb_bound_excess(&bound, false), "");
    bound.share_percent = 243;
    assert_non_null(strstr(lb_bound_excess(&bound, false), "other programs used the processors"));
    assert_null(strstr(lb_bound_excess(&bound, true), "other programs"));
    bound.kind = LB_BOUND_DECODE;
    assert_non_null(strstr(lb_bound_excess(&bound, true), "a part of each image"));
    assert_non_null(strstr(lb_bound_excess(&bound, false), "other programs used the processors"));
}

static void units_that_suit(void **state)
{
    const struct lb_figure figure = {.key = "slot_memory_mb", .label = "slot memory, MB"},
                           plain = {.key = "samples_per_s", .label = "samples/s"};
    char label[64];

    (void)state;
    assert_float_equal(lb_figure_scale(&figure, 77, label, sizeof label), 1, 0);
    assert_string_equal(label, "slot memory, MB");
    assert_float_equal(lb_figure_scale(&figure, 0.0814, label, sizeof label), 1000, 0);
    assert_string_equal(label, "slot memory, kB");
    assert_float_equal(lb_figure_scale(&figure, 0.000064, label, sizeof label), 1000000, 0);
    assert_string_equal(label, "slot memory, B");
    assert_float_equal(lb_figure_scale(&figure, 0, label, sizeof label), 1, 0);
    assert_string_equal(label, "slot memory, MB");
    assert_float_equal(lb_figure_scale(&plain, 0.01, label, sizeof label), 1, 0);
    assert_string_equal(label, "samples/s");
    assert_string_equal(LB_GAIN(2, 3), "+50 %");
    assert_string_equal(LB_GAIN(2, 1), "-50 %");
    assert_string_equal(LB_GAIN(2, 224), "112 times");
}

static int begin(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : 1;
}

static int end(void **state)
{
    char command[700];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(photos_are_decoded),
        cmocka_unit_test(files_that_are_not_jpeg),
        cmocka_unit_test(chunks_are_unpacked),
        cmocka_unit_test(files_are_read),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(bounds_by_hand),
        cmocka_unit_test(unpacking_again_counts),
        cmocka_unit_test(available_processors),
        cmocka_unit_test(predictions_of_a_slow_disk),
        cmocka_unit_test(more_than_a_limit_is_explained),
        cmocka_unit_test(units_that_suit),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
