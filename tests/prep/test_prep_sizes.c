/* Tests of predicted sizes of the output: in dry runs, in progress reports, in the boundaries of shards and pieces, and
 * compared with the free disk space. The expected sizes are those of the final files. */
#include "faults.h"
#include "file_compare.h"
#include "jpeg_make.h"
#include "prep_test.h"
#include "small_disk.h"
#include <math.h>
#include <unistd.h>

enum { ROWS = 20000, BYTES = 24, LINES = 4000, IMAGES = 64, SIDE = 48 };

static stk_error err;
static char small[300], lines[300], images[300];

static int setup(void **unused)
{
    const int64_t shape[] = {SIDE, SIDE, 3};
    stk_npy_writer *writer;
    uint8_t pixels[SIDE][SIDE][3];
    FILE *file;
    uint32_t state = 1;

    (void)unused;
    snprintf(small, sizeof small, "%s", stkt_path("small"));
    stkt_prep_inputs(small, ROWS, BYTES);
    snprintf(lines, sizeof lines, "%s", stkt_path("lines.txt"));
    file = fopen(lines, "w");
    assert_non_null(file);
    for (int i = 0; i < LINES; i++) {
        for (int k = 0; k < 1 + i * 37 % 900; k++)
            fputc('a' + (int)((state = state * 1664525u + 1013904223u) >> 24) % 13, file);
        fputc('\n', file);
    }
    fclose(file);
    snprintf(images, sizeof images, "%s", stkt_path("images.npy"));
    assert_ok(stk_npy_create(images, STK_U8, 3, shape, false, &writer, &err));
    for (int i = 0; i < IMAGES; i++) {
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++)
                for (int c = 0; c < 3; c++)
                    pixels[y][x][c] = stkt_jpeg_pixel(y + i, x, c);
        assert_ok(stk_npy_append(writer, pixels, 1, &err));
    }
    assert_ok(stk_npy_commit(writer, &err));
    return 0;
}

static const char *small_job(const char *prep, const char *out, const char *output)
{
    return stkt_text("dataset: {fields: {x: {path: %s.npy}, label: {path: %s.label.npy}}}\n"
                     "prep: {num_workers: 1%s%s}\noutput: {path: %s%s%s}\n",
                     small, small, *prep ? ", " : "", prep, stkt_path(out), *output ? ", " : "", output);
}

static const char *lines_job(const char *out, const char *output)
{
    return stkt_text("dataset: {fields: {text: {path: %s}}}\nprep: {num_workers: 1, order: random}\n"
                     "output: {path: %s%s%s}\n",
                     lines, stkt_path(out), *output ? ", " : "", output);
}

static const char *images_job(const char *out, const char *output)
{
    return stkt_text("dataset: {fields: {image: {path: %s, source: {layout: nhwc}}}}\nprep: {num_workers: 1}\n"
                     "output: {path: %s%s%s}\n",
                     images, stkt_path(out), *output ? ", " : "", output);
}

/* ---- predicted sizes ---- */

struct said {
    stk_prep_plan plan;
    stk_prep_estimate estimate;
    stk_prep_result result;
    int64_t made_bytes; /* progress: the last value in the phase that writes files */
    int32_t phase;
};

static void watch(void *context, const stk_prep_progress *now)
{
    struct said *said = context;

    if (now->phase == said->phase)
        said->made_bytes = now->bytes_out;
}

/* Plans, estimates and runs the job. */
static struct said ask(const char *text)
{
    struct said said = {.plan = {.struct_size = sizeof said.plan},
                        .estimate = {.struct_size = sizeof said.estimate},
                        .result = {.struct_size = sizeof said.result}};
    const stk_prep_opts opts = {.struct_size = sizeof opts,
                                .force = true,
                                .progress = watch,
                                .progress_context = &said,
                                .progress_interval_ns = 1};
    stk_prep *job;

    assert_ok(stk_prep_open_text(text, NULL, NULL, 0, &opts, &job, &err));
    assert_ok(stk_prep_get_plan(job, &said.plan, &err));
    assert_ok(stk_prep_get_estimate(job, 0, &said.estimate, &err));
    said.phase = said.plan.spooled ? STK_PREP_JOINING : STK_PREP_MAKING;
    assert_ok(stk_prep_run(job, &err));
    assert_ok(stk_prep_get_result(job, &said.result, &err));
    stk_prep_destroy(job);
    return said;
}

/* `said` must be within `share` of `right`, plus `bytes` bytes of overhead for each array. */
static void assert_about(const char *of, int64_t said, int64_t right, double share, int64_t bytes)
{
    if (fabs((double)(said - right)) > share * (double)right + (double)bytes)
        fail_msg("%s: reported %lld bytes, but the files have %lld", of, (long long)said, (long long)right);
}

static void test_rows_of_one_size(void **unused)
{
    static const struct {
        const char *ending, *output;
        int64_t fixed; /* allowed excess in bytes; 0: exact */
    } ways[] = {
        {"npy", "", 0},
        {"npy", "shard_rows: 3000", 0},
        {"raw", "", 0},
        {"tar", "", 0},
        {"tar", "shard_rows: 6000", 0},
        {"beton", "", 0},
        {"beton", "page_bytes: 2MiB, shard_rows: 6000", 0},
        {"npz", "", 4096},
        {"npz", "shard_rows: 9000", 3 * 4096},
        {"pt", "", 4096},
        {"safetensors", "", 4096},
        {"h5", "", 12288},
        {"h5", "chunk_rows: 700", 40960},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const char *name = stkt_text("one.%s", ways[i].ending);
        const struct said said = ask(small_job("order: random", name, ways[i].output));

        print_message("%s %s: %lld bytes\n", name, ways[i].output, (long long)said.result.bytes);
        assert_true(said.plan.output_exact);
        assert_about(name, said.plan.output_bytes, said.result.bytes, 0, ways[i].fixed);
        assert_about(name, said.made_bytes, said.result.bytes, 0, ways[i].fixed);
        assert_about(name, said.estimate.output_bytes, said.result.bytes, 0, ways[i].fixed);
    }
}

static void test_other_rows(void **unused)
{
    struct {
        const char *text, *name;
        double share;
        int64_t fixed, exact; /* exact: the progress must be exact */
    } ways[] = {
        {lines_job("l.npy", ""), "l.npy", 0.01, 0, true},
        {lines_job("l.tar", ""), "l.tar", 0.01, 10240, true},
        {lines_job("l.beton", "page_bytes: 2MiB"), "l.beton", 0.01, 2 << 20, true},
        {lines_job("l.bin", "format: tokens, fields: {text: {encode: tokens}}"), "l.bin", 0.01, 0, true},
        {lines_job("l.npz", "level: 6"), "l.npz", 0.15, 4096, false},
        {images_job("i.tar", "fields: {image: {encode: jpeg}}"), "i.tar", 0.02, 10240, true},
        {images_job("p.tar", "fields: {image: {encode: png}}"), "p.tar", 0.02, 10240, true},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const struct said said = ask(ways[i].text);

        print_message("%s: %lld bytes\n", ways[i].name, (long long)said.result.bytes);
        assert_false(said.plan.output_exact);
        assert_about(ways[i].name, said.estimate.output_bytes, said.result.bytes, ways[i].share, ways[i].fixed);
        if (ways[i].exact)
            assert_int_equal(said.made_bytes, said.result.bytes);
    }
}

/* Noise does not compress, and zeros compress to almost nothing. */
static void test_compressed(void **unused)
{
    const int64_t shape[] = {256};
    unsigned char row[256] = {0};

    (void)unused;
    for (int noise = 0; noise < 2; noise++) {
        const char *path = stkt_path("compressed.npy"), *out = noise ? "noise.h5" : "zeros.h5";
        stk_npy_writer *writer;
        struct said said;

        assert_ok(stk_npy_create(path, STK_U8, 1, shape, false, &writer, &err));
        for (uint32_t i = 0; i < 8000; i++) {
            if (noise)
                stkt_noise(row, sizeof row, i);
            assert_ok(stk_npy_append(writer, row, 1, &err));
        }
        assert_ok(stk_npy_commit(writer, &err));
        said =
            ask(stkt_text("dataset: {fields: {x: {path: %s}}}\noutput: {path: %s, level: 4}\n", path, stkt_path(out)));
        print_message("%s: %lld bytes\n", out, (long long)said.result.bytes);
        assert_false(said.plan.output_exact);
        assert_in_range(said.result.bytes, noise ? 8000 * 256 : 1, noise ? 8000 * 260 : 8000 * 256 / 50);
        assert_about(out, said.estimate.output_bytes, said.result.bytes, 0.02, 20480);
    }
}

/* ---- shards and pieces ---- */

/* The size of the files NAME-00000* of one shard, or 0 if there are none. */
static int64_t shard_bytes(const char *name, int shard)
{
    char prefix[64];
    DIR *folder = opendir(stkt_path("."));
    const struct dirent *entry;
    int64_t bytes = 0;

    snprintf(prefix, sizeof prefix, "%s-%05d.", name, shard);
    while ((entry = readdir(folder)) != NULL)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && !strstr(entry->d_name, "json"))
            bytes += stkt_file_bytes(stkt_path(entry->d_name));
    closedir(folder);
    return bytes;
}

/* No shard has more bytes than requested, and no shard but the last one has space for another row. */
static void check_shards(const char *text, const char *name, int64_t most, int64_t row)
{
    const struct said said = ask(text);
    int64_t all = 0, bytes, before = most;
    int shards = 0;

    for (; (bytes = shard_bytes(name, shards)) > 0; shards++) {
        if (bytes > most || before + row <= most)
            fail_msg(
                "%s: shard %d has %lld bytes and the previous one %lld, expected at most %lld and no space for a row",
                name, shards, (long long)bytes, (long long)before, (long long)most);
        before = bytes;
        all += bytes;
    }
    print_message("%s: %d shards\n", name, shards);
    assert_in_range(shards, 3, 1000);
    assert_int_equal(all, said.result.bytes);
}

static void test_shard_bytes(void **unused)
{
    (void)unused;
    check_shards(small_job("", "s.npy", "shard_bytes: 50000"), "s", 50000, BYTES + 8);
    check_shards(small_job("", "t.tar", "shard_bytes: 2MiB"), "t", 2 << 20, 3 * 512 + 10240);
    check_shards(lines_job("u.npy", "shard_bytes: 100000"), "u", 100000, 1000 + 8);
    check_shards(lines_job("v.tar", "shard_bytes: 300000"), "v", 300000, 2048 + 10240);
    check_shards(lines_job("w.npz", "shard_bytes: 300000"), "w", 300000, 1000 + 8 + 4096);
    check_shards(lines_job("m.idx", "shard_bytes: 300000, format: tokens, token_format: megatron, "
                                    "fields: {text: {encode: tokens}}"),
                 "m", 300000, 2 * 1000 + 20);
    /* A .beton file grows by whole pages, so a shard may have almost a page of unused space. */
    check_shards(stkt_text("dataset: {fields: {x: {synthetic: {count: 40, shape: [700000], dtype: u8}}}}\n"
                           "output: {path: %s, page_bytes: 2MiB, shard_bytes: 9000000}\n",
                           stkt_path("b.beton")),
                 "b", 9000000, 2 << 20);
}

/* A limit that is smaller than a file without rows is rejected. */
static void test_small_shards(void **unused)
{
    const char *job = small_job("", "tiny.beton", "page_bytes: 2MiB, shard_bytes: 4000000");
    stk_prep_result result = {.struct_size = sizeof result};

    (void)unused;
    assert_status(stkt_prep_run(NULL, NULL, &err, job), STK_E_CONFIG); /* two pages have 4194304 bytes */
    assert_says("output.shard_bytes");
    job = small_job("", "tiny.beton", "page_bytes: 2MiB, shard_bytes: 10"); /* also less than a row */
    assert_status(stkt_prep_run(NULL, NULL, &err, job), STK_E_CONFIG);
    assert_says("output.shard_bytes");
    assert_ok(
        stkt_prep_run(NULL, &result, &err, small_job("", "tiny.beton", "page_bytes: 2MiB, shard_bytes: 5000000")));
    assert_in_range(result.files, 1, 3);
    assert_status(stkt_prep_run(NULL, NULL, &err, small_job("", "low.tar", "shard_bytes: 10000")), STK_E_CONFIG);
    assert_ok(
        stkt_prep_run(NULL, &result, &err, small_job("", "few.h5", "shard_bytes: 700000"))); /* fits a chunk and rows */
    assert_in_range(result.files, 1, 10);
}

/* Each shard reserves space for its own samples, not for those of the whole job. */
static void test_room_of_shards(void **unused)
{
    const struct said said =
        ask(stkt_text("dataset: {fields: {x: {synthetic: {count: 300000, shape: [40], dtype: u8}}}}\n"
                      "output: {path: %s, page_bytes: 2MiB, shard_bytes: 10000000}\n",
                      stkt_path("r.beton")));

    (void)unused;
    /* A sample has 8 bytes in the table of samples, 24 in the allocation table, and 40 in a page. */
    assert_in_range(said.result.files, 300000 * 72 / 10000000 + 1, 4);
    for (int i = 0; i < said.result.files; i++)
        assert_in_range(shard_bytes("r", i), 1, 10000000);
}

/* A piece takes about this number of bytes in the file, whatever the size of its rows before encoding. */
static void test_pieces(void **unused)
{
    struct said said;

    (void)unused;
    said = ask(small_job("piece_bytes: 1MiB", "pieces.tar", ""));
    assert_in_range(said.plan.pieces, said.result.bytes / (1 << 20), said.result.bytes / (1 << 20) + 20);
    said = ask(small_job("piece_bytes: 100KiB", "pieces.npy", ""));
    assert_in_range(said.plan.pieces, said.result.bytes / (100 << 10), said.result.bytes / (100 << 10) + 3);
}

/* ---- a small disk ---- */

struct stopping {
    stk_prep *job;
    int64_t bytes;
};

static void stop_at(void *context, const stk_prep_progress *now)
{
    const struct stopping *stopping = context;

    if (now->bytes_out >= stopping->bytes)
        stk_prep_cancel(stopping->job);
}

static stk_status run_on(const char *text, int64_t stop_bytes, stk_prep_result *result)
{
    struct stopping stopping = {.bytes = stop_bytes};
    const stk_prep_opts opts = {
        .struct_size = sizeof opts, .progress = stop_at, .progress_context = &stopping, .progress_interval_ns = 1};
    stk_status status;

    assert_ok(stk_prep_open_text(text, NULL, NULL, 0, &opts, &stopping.job, &err));
    status = stk_prep_run(stopping.job, &err);
    assert_ok(stk_prep_get_result(stopping.job, result, NULL));
    stk_prep_destroy(stopping.job);
    return status;
}

/* 30,000 rows take 31 MB in a tar, or in an .h5 and its pieces. A disk of 20 MB is too small, which is detected before
 * any row is made. A disk of 36 MB is enough, even for the remainder of a job that has already written 24 MB. */
static void test_small_disk(void **unused)
{
    static const char *const outputs[] = {"x.tar", "y.h5"};
    stk_prep_result result = {.struct_size = sizeof result};
    const char *disk;

    (void)unused;
    disk = stkt_small_disk("20m");
    if (!disk)
        skip();
    for (int i = 0; i < 2; i++) {
        const char *text = stkt_text("dataset: {fields: {x: {synthetic: {count: 30000, shape: [%d], dtype: u8}}}}\n"
                                     "prep: {piece_bytes: 1MiB}\noutput: {path: %s/%s}\n",
                                     i ? 500 : 24, disk, outputs[i]);
        char keep[4096];

        snprintf(keep, sizeof keep, "%s", text);
        assert_int_equal(mount("tmpfs", disk, "tmpfs", MS_REMOUNT, "size=20m"), 0);
        assert_status(run_on(keep, INT64_MAX, &result), STK_E_LIMIT);
        assert_says("the disk is too small");
        assert_int_equal(mount("tmpfs", disk, "tmpfs", MS_REMOUNT, "size=36m"), 0);
        assert_status(run_on(keep, 10 << 20, &result), STK_E_CANCELLED);
        assert_ok(run_on(keep, INT64_MAX, &result));
        assert_true(result.resumed_rows > 0);
        assert_int_equal(result.rows, 30000);
        assert_int_equal(remove(stkt_text("%s/%s", disk, outputs[i])), 0);
    }
}

/* Bytes that this process has read with system calls. */
static int64_t bytes_read(void)
{
    FILE *file = fopen("/proc/self/io", "r");
    long long bytes = -1;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "rchar: %lld", &bytes), 1);
    fclose(file);
    return bytes;
}

/* A plan reads no rows, and an estimate reads no rows larger than 256 MiB. */
static void test_large_rows(void **unused)
{
    const int64_t row = (INT64_C(256) << 20) + 1;
    stk_prep_plan plan = {.struct_size = sizeof plan};
    stk_prep_estimate estimate = {.struct_size = sizeof estimate};
    const char *file;
    stk_prep *job;
    int64_t before;

    (void)unused;
    file = stkt_path("large.bin");
    stkt_write_file(file, "", 0);
    assert_int_equal(truncate(file, 2 * row), 0);
    assert_ok(stk_prep_open_text(
        stkt_text("dataset: {fields: {x: {path: %s, source: {format: raw, dtype: uint8, shape: [%lld]}}}}\n"
                  "prep: {num_workers: 1, access: pread, memory_budget: 300MiB}\noutput: {path: %s}\n",
                  file, (long long)row, stkt_path("large.npy")),
        NULL, NULL, 0, NULL, &job, &err));
    before = bytes_read();
    assert_ok(stk_prep_get_plan(job, &plan, &err));
    assert_ok(stk_prep_get_estimate(job, 0, &estimate, &err));
    assert_in_range(bytes_read() - before, 0, 100000);
    assert_int_equal(plan.output_bytes, 128 + 2 * row);
    assert_int_equal(estimate.sampled_rows, 0);
    assert_int_equal(estimate.total_ns, -1);
    assert_int_equal(stk_prep_note_count(job), 1);
    assert_non_null(strstr(stk_prep_note(job, 0), "268435457 bytes"));
    stk_prep_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_one_size), cmocka_unit_test(test_other_rows),
        cmocka_unit_test(test_compressed),       cmocka_unit_test(test_shard_bytes),
        cmocka_unit_test(test_room_of_shards),   cmocka_unit_test(test_small_shards),
        cmocka_unit_test(test_pieces),           cmocka_unit_test(test_small_disk),
        cmocka_unit_test(test_large_rows),
    };

    stkt_skip_syncs(true);
    return cmocka_run_group_tests(tests, setup, NULL);
}
