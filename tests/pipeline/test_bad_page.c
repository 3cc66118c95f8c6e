/* stki-threads */
/* One page of a mapped file cannot be read. Exactly the records on that page must fail, and all others must be correct,
 * with any number of workers. The page is replaced by a mapping of an empty file, so that accessing it raises SIGBUS as
 * a bad disk block does. */
#include "file.h"
#include "io_files.h"
#include "loader_handle.h"
#include "loader_test.h"
#include "tar_build.h"
#include <signal.h>
#include <sys/mman.h>

enum { RECORDS = 600, BYTES = 1000, PAGE = 4096, BAD_PAGE = 90, EPOCHS = 2 };

static unsigned char value(int64_t record, int64_t at)
{
    return (unsigned char)('a' + (record * 7 + at) % 25);
}

static void make_bad(const stki_file *file)
{
    const int empty = memfd_create("empty", MFD_CLOEXEC);
    char *at = (char *)(uintptr_t)file->map + BAD_PAGE * PAGE;

    assert_true(empty >= 0 && file->map && file->size > (BAD_PAGE + 1) * PAGE);
    assert_true(mmap(at, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, empty, 0) == at);
    close(empty);
}

/* For each test, cmocka installs a SIGBUS handler that does not call the previous one. Reinstalls the library's
 * handler. */
static int guard_on(void)
{
    static struct sigaction ours;
    stki_file *file;
    stk_error err;

    if (!ours.sa_sigaction) {
        (void)signal(SIGBUS, SIG_DFL);
        stkt_write_file(stkt_path("first"), "x", 1);
        assert_ok(stki_file_open(stkt_path("first"), STKI_ACCESS_AUTO, STKI_PATTERN_RANDOM, &file, &err));
        stki_file_close(file);
        sigaction(SIGBUS, NULL, &ours);
    }
    return sigaction(SIGBUS, &ours, NULL);
}

/* Record i has `bytes` bytes from first + i * step of the file. */
struct layout {
    const char *field;
    int64_t first, step, bytes;
};

static bool is_on_page(const struct layout *layout, int64_t record)
{
    const int64_t from = layout->first + record * layout->step, end = from + layout->bytes;

    return from < (BAD_PAGE + 1) * PAGE && end > BAD_PAGE * PAGE;
}

static void check_rows(const stk_batch *batch, const struct layout *layout, int *seen)
{
    stk_tensor x;
    stk_error err;

    assert_ok(stk_batch_tensor(batch, "x", &x, &err));
    for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
        const int64_t record = stk_batch_indices(batch)[r];
        const unsigned char *row = (const unsigned char *)x.data + r * x.strides[0];

        assert_false(is_on_page(layout, record));
        seen[record]++;
        for (int64_t k = 0; k < BYTES; k++)
            if (row[k] != value(record, k))
                fail_msg("record %d, byte %d: %d", (int)record, (int)k, row[k]);
    }
}

static void run(const struct layout *layout, int workers)
{
    stk_loader_stats stats = {.struct_size = sizeof stats};
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    stk_status status;
    int seen[RECORDS] = {0}, bad = 0;

    assert_ok(stkt_open(&loader,
                        "{dataset: {fields: {x: {%s}}}, loader: {batch_size: 8, num_workers: %d, prefetch: 2, "
                        "tile_bytes: 3000, num_epochs: %d, on_error: skip, max_error_fraction: 1, timeout: 60s}}",
                        layout->field, workers, EPOCHS));
    make_bad(loader->core->dataset->fields[0].shards[0]->file);
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        if (stk_batch_rows(batch) > 0)
            check_rows(batch, layout, seen);
        stk_batch_release(batch);
    }
    assert_status(status, STK_END);
    for (int i = 0; i < RECORDS; i++) {
        bad += is_on_page(layout, i);
        if (seen[i] != (is_on_page(layout, i) ? 0 : EPOCHS))
            fail_msg("%s, %d workers: record %d came %d times", layout->field, workers, i, seen[i]);
    }
    assert_true(bad >= 3 && bad <= 6);
    assert_ok(stk_loader_get_stats(loader, &stats, &err));
    assert_int_equal(stats.skipped, EPOCHS * bad);
    assert_int_equal(stk_loader_failed(loader, STK_E_IO), EPOCHS * bad);
    stk_loader_destroy(loader);
}

static void each_number_of_workers(const struct layout *layout)
{
    assert_int_equal(guard_on(), 0);
    for (int workers = 0; workers <= 4; workers += 2)
        run(layout, workers);
}

static void arrays(void **state)
{
    static unsigned char data[RECORDS * BYTES];
    struct layout layout = {"path: x.npy", 0, BYTES, BYTES};

    (void)state;
    for (int64_t i = 0; i < RECORDS * BYTES; i++)
        data[i] = value(i / BYTES, i % BYTES);
    stkt_write_npy("x.npy", "|u1", "False", "(600, 1000)", 64, data, sizeof data);
    layout.first = stkt_file_bytes("x.npy") - RECORDS * BYTES;
    each_number_of_workers(&layout);
    stkt_write_file("x.raw", data, sizeof data);
    layout = (struct layout){"path: x.raw, source: {format: raw, dtype: u8, shape: [1000]}", 0, BYTES, BYTES};
    each_number_of_workers(&layout);
}

static void texts(void **state)
{
    FILE *lines = fopen("x.txt", "w");

    (void)state;
    assert_non_null(lines);
    for (int64_t i = 0; i < RECORDS; i++) {
        for (int64_t k = 0; k < BYTES; k++)
            fputc(value(i, k), lines);
        fputc('\n', lines);
    }
    fclose(lines);
    each_number_of_workers(&(const struct layout){"path: x.txt, pad: {to: 1000}", 0, BYTES + 1, BYTES + 1});
}

static void tables(void **state)
{
    FILE *cells = fopen("x.csv", "w");

    (void)state;
    assert_non_null(cells);
    fputs("x\n", cells);
    for (int64_t i = 0; i < RECORDS; i++) {
        for (int64_t k = 0; k < BYTES; k++)
            fputc(value(i, k), cells);
        fputc('\n', cells);
    }
    fclose(cells);
    each_number_of_workers(&(const struct layout){"path: x.csv, pad: {to: 1000}", 2, BYTES + 1, BYTES + 1});
}

static void archives(void **state)
{
    struct stkt_tar tar = {0};

    (void)state;
    for (int64_t i = 0; i < RECORDS; i++) {
        unsigned char bytes[BYTES];
        char name[32];

        for (int64_t k = 0; k < BYTES; k++)
            bytes[k] = value(i, k);
        snprintf(name, sizeof name, "%04d.bin", (int)i);
        stkt_tar_put(&tar, '0', name, bytes, sizeof bytes);
    }
    (void)stkt_tar_grow(&tar, 1024);
    stkt_write_file("x.tar", tar.bytes, tar.size);
    free(tar.bytes);
    each_number_of_workers(
        &(const struct layout){"path: x.tar, source: {name: bin}, pad: {to: 1000}", 512, 1536, BYTES});
}

static int go_there(void **state)
{
    (void)state;
    stkt_write_file(stkt_path("first"), "x", 1);
    return chdir(stkt_dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays),
        cmocka_unit_test(texts),
        cmocka_unit_test(tables),
        cmocka_unit_test(archives),
    };

    return cmocka_run_group_tests(tests, go_there, NULL);
}
