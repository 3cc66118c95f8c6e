/* stki-threads */
/* Data files are truncated, written to or replaced in the middle of an epoch. Every delivered row must be correct.
 * Otherwise there must be an error that names the file and the record, never a signal. */
#include "file.h"
#include "io_files.h"
#include "loader_handle.h"
#include "loader_test.h"
#include "says.h"
#include <signal.h>
#include <sys/wait.h>

enum { RECORDS = 96, BYTES = 3000, FILES = 6 };

static const char *access_word = "auto"; /* the results do not depend on the access method */

static unsigned char data[RECORDS * BYTES];

static unsigned char value(int64_t record, int64_t at)
{
    return (unsigned char)(1 + (record * 31 + at) % 251);
}

static void write_shards(int count)
{
    int64_t each = RECORDS / count;

    for (int64_t i = 0; i < RECORDS; i++)
        for (int64_t k = 0; k < BYTES; k++)
            data[i * BYTES + k] = value(i, k);
    for (int s = 0; s < count; s++) {
        char name[32], shape[64];

        snprintf(name, sizeof name, "x%02d.npy", s);
        snprintf(shape, sizeof shape, "(%d, %d)", (int)each, BYTES);
        stkt_write_npy(stkt_path(name), "|u1", "False", shape, 64, data + s * each * BYTES, (size_t)(each * BYTES));
    }
}

/* One record per file; if `ragged`, their lengths differ. */
static void write_samples(bool ragged)
{
    for (int i = 0; i < RECORDS; i++) {
        char name[32], shape[64];
        int length = ragged ? BYTES - i : BYTES;

        snprintf(name, sizeof name, "s%03d.npy", i);
        snprintf(shape, sizeof shape, "(%d,)", length);
        for (int64_t k = 0; k < BYTES; k++)
            data[k] = value(i, k);
        stkt_write_npy(stkt_path(name), "|u1", "False", shape, 64, data, (size_t)length);
    }
}

static void cut_half(const char *path)
{
    assert_int_equal(truncate(path, stkt_file_bytes(path) / 2), 0);
}

static void cut_a_byte(const char *path)
{
    assert_int_equal(truncate(path, stkt_file_bytes(path) - 1), 0);
}

static void cut_all(const char *path)
{
    assert_int_equal(truncate(path, 0), 0);
}

static void replace(const char *path)
{
    char other[300];

    snprintf(other, sizeof other, "%s.new", path);
    stkt_write_file(other, data, sizeof data);
    assert_int_equal(rename(other, path), 0);
}

static void write_over(const char *path)
{
    const struct timespec times[2] = {{1000000000, 0}, {1000000000, 0}};
    FILE *file = fopen(path, "r+");

    assert_non_null(file);
    assert_true(fwrite("overwritten", 1, 11, file) == 11);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0); /* in case the clock of the file system is coarse */
}

static void check_row(const unsigned char *row, int64_t record, int64_t length)
{
    for (int64_t k = 0; k < length; k++)
        if (row[k] != value(record, k))
            fail_msg("record %lld, byte %lld: got %d", (long long)record, (long long)k, row[k]);
}

static void check_batch(const stk_batch *batch)
{
    stk_tensor x, offsets;
    stk_error err;

    if (stk_batch_tensor(batch, "x", &x, NULL) == STK_OK) {
        for (int64_t r = 0; r < stk_batch_rows(batch); r++)
            check_row((unsigned char *)x.data + r * BYTES, stk_batch_indices(batch)[r], BYTES);
        return;
    }
    assert_ok(stk_batch_tensor(batch, "x.values", &x, &err));
    assert_ok(stk_batch_tensor(batch, "x.offsets", &offsets, &err));
    for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
        const int64_t *at = (const int64_t *)offsets.data + r;

        assert_int_equal(at[1] - at[0], BYTES - stk_batch_indices(batch)[r]);
        check_row((unsigned char *)x.data + at[0], stk_batch_indices(batch)[r], at[1] - at[0]);
    }
}

struct change {
    void (*apply)(const char *path);
    stk_status status;
    const char *says;
};

static const struct change changes[] = {
    {cut_half, STK_E_TRUNCATED, "truncated…: found "},
    {cut_a_byte, STK_E_TRUNCATED, "truncated…: found "},
    {cut_all, STK_E_TRUNCATED, "truncated…: found 0, expected "},
    {replace, STK_E_CORRUPT, "changed…: found another file"},
    {write_over, STK_E_CORRUPT, "changed…: found "},
};
enum { CHANGES = sizeof changes / sizeof *changes };

/* Takes the first batch, changes the file `name`, and continues to the end. There must be an error for that file, and
 * every row before it must be correct. */
static void run(const char *paths, const char *more, int workers, const char *name, const struct change *change)
{
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    stk_status status;
    int64_t rows = 0;

    assert_ok(stkt_open(&loader,
                        "{dataset: {fields: {x: {path: '%s/%s'%s}}}, loader: {batch_size: 8, num_workers: %d, "
                        "prefetch: 2, tile_bytes: 6000, num_epochs: 3, access: %s, timeout: 60s}}",
                        stkt_dir, paths, more, workers, access_word));
    assert_ok(stk_loader_next(loader, &batch, &err));
    check_batch(batch);
    rows += stk_batch_rows(batch);
    stk_batch_release(batch);
    change->apply(stkt_path(name));
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        check_batch(batch);
        rows += stk_batch_rows(batch);
        stk_batch_release(batch);
    }
    if (status != change->status || !stkt_says(err.message, change->says) || !strstr(err.message, name))
        fail_msg("%d workers, %s: %s: %s", workers, paths, stk_status_name(status), err.message);
    assert_true(err.record >= 0 && err.record < RECORDS && rows < 2 * RECORDS);
    assert_int_equal(stk_loader_next(loader, &batch, &err), change->status);
    stk_loader_destroy(loader);
}

/* For each test, cmocka installs a SIGBUS handler that does not call the previous one. Reinstalls the library's
 * handler. */
static int guard_on(void **state)
{
    static struct sigaction ours;
    stki_file *file;
    stk_error err;

    (void)state;
    if (!ours.sa_sigaction) {
        (void)signal(SIGBUS, SIG_DFL);
        write_shards(1);
        assert_ok(stki_file_open(stkt_path("x00.npy"), STKI_ACCESS_AUTO, STKI_PATTERN_RANDOM, &file, &err));
        stki_file_close(file);
        sigaction(SIGBUS, NULL, &ours);
    }
    return sigaction(SIGBUS, &ours, NULL);
}

static void one_file(void **state)
{
    assert_int_equal(guard_on(state), 0);
    for (int workers = 0; workers <= 4; workers += 2)
        for (int i = 0; i < CHANGES; i++) {
            write_shards(1);
            run("x00.npy", "", workers, "x00.npy", &changes[i]);
        }
}

static void several_files(void **state)
{
    assert_int_equal(guard_on(state), 0);
    for (int workers = 0; workers <= 4; workers += 2)
        for (int i = 0; i < CHANGES; i++) {
            write_shards(FILES);
            run("x*.npy", "", workers, "x04.npy", &changes[i]);
        }
    for (int s = 1; s < FILES; s++) {
        char name[32];

        snprintf(name, sizeof name, "x%02d.npy", s);
        assert_int_equal(unlink(stkt_path(name)), 0);
    }
}

/* One tile that reads more files than are recorded individually. */
static void more_files_than_fit(void **state)
{
    assert_int_equal(guard_on(state), 0);
    for (int workers = 0; workers <= 2; workers += 2)
        for (int i = 0; i < CHANGES; i++) {
            stk_loader *loader;
            stk_batch *batch;
            stk_error err;
            stk_status status;

            write_shards(RECORDS);
            assert_ok(stkt_open(&loader,
                                "{dataset: {fields: {x: {path: '%s/x*.npy'}}}, loader: {batch_size: 96, num_workers: "
                                "%d, prefetch: 1, order: random, num_epochs: 3, tile_bytes: 10000000, access: %s, "
                                "timeout: 60s}}",
                                stkt_dir, workers, access_word));
            assert_ok(stk_loader_next(loader, &batch, &err));
            check_batch(batch);
            stk_batch_release(batch);
            changes[i].apply(stkt_path("x50.npy"));
            while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
                check_batch(batch);
                stk_batch_release(batch);
            }
            assert_int_equal(status, changes[i].status);
            assert_true(stkt_says(err.message, changes[i].says));
            assert_says("x50.npy: record 0");
            stk_loader_destroy(loader);
        }
    for (int s = 1; s < RECORDS; s++) {
        char name[32];

        snprintf(name, sizeof name, "x%02d.npy", s);
        assert_int_equal(unlink(stkt_path(name)), 0);
    }
}

static void one_file_per_sample(void **state)
{
    assert_int_equal(guard_on(state), 0);
    for (int ragged = 0; ragged < 2; ragged++)
        for (int workers = 0; workers <= 2; workers += 2) { /* files are opened when they are read */
            struct change change = {cut_half, STK_E_TRUNCATED, "expected "};

            write_samples(ragged);
            run("s*.npy", ", source: {sample_per_file: true}", workers, "s050.npy", &change);
            write_samples(ragged);
            run("s*.npy", ", source: {sample_per_file: true}", workers, "s004.npy", &change);
            for (int i = 0; i < CHANGES; i++) { /* so few files that they stay open and the change is detected */
                write_samples(ragged);
                run("s00*.npy", ", source: {sample_per_file: true}", workers, "s004.npy", &changes[i]);
            }
        }
}

/* A row of many tiles is read in parts by several workers. */
static void rows_in_parts(void **state)
{
    assert_int_equal(guard_on(state), 0);
    for (int workers = 0; workers <= 4; workers += 2)
        for (int i = 0; i < CHANGES; i++) {
            stk_loader *loader;
            stk_batch *batch;
            stk_error err;
            stk_status status;
            int64_t delivered = 0;

            write_shards(1);
            stkt_write_npy(stkt_path("big.npy"), "|u1", "False", "(8, 32, 9000)", 64, data, sizeof data);
            for (int k = 1; k < 8; k++)
                stkt_append_file(stkt_path("big.npy"), data, sizeof data);
            assert_ok(stkt_open(&loader,
                                "{dataset: {fields: {x: {path: '%s/big.npy'}}}, loader: {num_workers: %d, prefetch: 1, "
                                "tile_bytes: 2000, timeout: 60s}}",
                                stkt_dir, workers));
            assert_true(!strstr(stk_loader_options_json(loader), "\"parts_per_row\": 1,"));
            while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
                stk_tensor x;

                assert_ok(stk_batch_tensor(batch, "x", &x, &err));
                assert_memory_equal(x.data, data, sizeof data);
                stk_batch_release(batch);
                if (delivered++ == 2)
                    changes[i].apply(stkt_path("big.npy"));
            }
            assert_int_equal(status, changes[i].status);
            assert_true(stkt_says(err.message, changes[i].says));
            assert_true(delivered < 8);
            stk_loader_destroy(loader);
        }
}

/* Images that are resized, and labels that become rows: missing data would be read as zeros, which these images and
 * labels do not contain. */
static void rows_that_are_made(void **state)
{
    static const char *const fields[] = {
        ", source: {layout: hwc}, transforms: [{resize: {size: [10, 20]}}]",
        ", source: {layout: hwc}, transforms: [{random_resized_crop: {size: [10, 20]}}]",
        ", transforms: [{one_hot: 6}]"};

    assert_int_equal(guard_on(state), 0);
    for (int f = 0; f < 3; f++)
        for (int workers = 0; workers <= 2; workers += 2)
            for (int i = 0; i < CHANGES; i++) {
                stk_loader *loader;
                stk_batch *batch;
                stk_error err;
                stk_status status;

                write_shards(1);
                if (f == 2)
                    for (int r = 0; r < RECORDS; r++)
                        data[r] = 1;
                stkt_write_npy(stkt_path("x00.npy"), "|u1", "False", f == 2 ? "(96,)" : "(96, 25, 40, 3)", 64, data,
                               f == 2 ? RECORDS : sizeof data);
                assert_ok(stkt_open(&loader,
                                    "{dataset: {fields: {x: {path: '%s/x00.npy'%s}}}, loader: {batch_size: 8, "
                                    "num_workers: %d, prefetch: 1, num_epochs: 3, timeout: 60s}}",
                                    stkt_dir, fields[f], workers));
                for (int n = 0; (status = stk_loader_next(loader, &batch, &err)) == STK_OK; n++) {
                    stk_tensor x;

                    assert_ok(stk_batch_tensor(batch, "x", &x, &err));
                    assert_true(n < 24);
                    for (int64_t k = 0; f < 2 && k < stk_tensor_numel(&x); k++)
                        assert_true(((unsigned char *)x.data)[k] != 0);
                    stk_batch_release(batch);
                    if (n == 0)
                        changes[i].apply(stkt_path("x00.npy"));
                }
                assert_int_equal(status, changes[i].status);
                assert_true(stkt_says(err.message, changes[i].says));
                stk_loader_destroy(loader);
            }
}

/* A row of one file is mixed with a sample of the next file, which belongs to another rank. With p: 0 it is not
 * mixed. */
static void a_partner_in_another_file(void **state)
{
    assert_int_equal(guard_on(state), 0);
    for (int i = 0; i < 4; i++) {
        const int workers = i % 2 * 2, p = i / 2;
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;

        write_shards(32); /* shards of 3 records, so the pair of records 2 and 3 is in different files */
        assert_ok(stkt_open(&loader,
                            "{dataset: {fields: {x: {path: '%s/x*.npy', transforms: [{scale: 2}, {mixup: {p: %d}}]}}}, "
                            "loader: {num_workers: %d, prefetch: 1, global_batch_size: 2, world_size: 2, rank: 0, "
                            "timeout: 60s}}",
                            stkt_dir, p, workers));
        assert_ok(stk_loader_next(loader, &batch, &err));
        cut_all(stkt_path("x01.npy"));
        stk_batch_release(batch);
        if (p == 0) {
            assert_ok(stk_loader_next(loader, &batch, &err));
            stk_batch_release(batch);
        } else {
            assert_status(stk_loader_next(loader, &batch, &err), STK_E_TRUNCATED);
            assert_says("x01.npy: record 0");
        }
        stk_loader_destroy(loader);
    }
    for (int s = 1; s < 32; s++) {
        char name[32];

        snprintf(name, sizeof name, "x%02d.npy", s);
        assert_int_equal(unlink(stkt_path(name)), 0);
    }
}

/* Between two steps of a check by the loader's worker, another worker checks x04.npy and detects the change. */
static const stki_core *checked_core; /* NULL: nothing is done */

bool __real_stki_file_known_changed(const stki_file *file);
bool __wrap_stki_file_known_changed(const stki_file *file);
bool __wrap_stki_file_known_changed(const stki_file *file)
{
    static stki_worker other;
    const bool known = __real_stki_file_known_changed(file);
    const stki_core *core = checked_core;
    const stki_field_plan *plan = core ? &core->plans[0] : NULL;

    if (core && plan->field->shards[4]->file == file) {
        checked_core = NULL;
        other = (stki_worker){.core = (stki_core *)(uintptr_t)core, .batch = core->workers[0].batch};
        stki_watch_begin(&other, 0, 0);
        stki_watch_use(&other, plan, plan->field->shards[4], 4 * RECORDS / FILES, NULL);
        stki_watch_end(&other);
        assert_true(!known && __real_stki_file_known_changed(file));
    }
    return known;
}

static void two_workers_check_a_file(void **state)
{
    assert_int_equal(guard_on(state), 0);
    for (int i = 3; i < CHANGES; i++) { /* changes that raise no signal */
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;

        write_shards(FILES);
        assert_ok(stkt_open(&loader,
                            "{dataset: {fields: {x: {path: '%s/x*.npy'}}}, loader: {batch_size: 96, num_workers: 0, "
                            "num_epochs: 2, tile_bytes: 10000000}}",
                            stkt_dir));
        assert_ok(stk_loader_next(loader, &batch, &err));
        stk_batch_release(batch);
        changes[i].apply(stkt_path("x04.npy"));
        checked_core = loader->core;
        assert_status(stk_loader_next(loader, &batch, &err), changes[i].status);
        assert_true(!checked_core && stkt_says(err.message, changes[i].says));
        stk_loader_destroy(loader);
    }
    for (int s = 1; s < FILES; s++) {
        char name[32];

        snprintf(name, sizeof name, "x%02d.npy", s);
        assert_int_equal(unlink(stkt_path(name)), 0);
    }
}

/* With on_error: skip, the loader continues to the end with the remaining data. */
static void the_other_files_continue(void **state)
{
    assert_int_equal(guard_on(state), 0);
    for (int workers = 0; workers <= 4; workers += 2) {
        stk_loader *loader;
        stk_batch *batch;
        stk_loader_stats stats = {.struct_size = sizeof stats};
        stk_error err;
        stk_status status;
        int64_t rows = 0;

        write_shards(FILES);
        assert_ok(stkt_open_faulty(&loader, NULL, true, &err,
                                   "{dataset: {fields: {x: {path: '%s/x*.npy'}}}, loader: {batch_size: 8, num_workers: "
                                   "%d, prefetch: 1, order: random, num_epochs: 4, tile_bytes: 6000, timeout: 60s}}",
                                   stkt_dir, workers));
        for (int i = 0; (status = stk_loader_next(loader, &batch, &err)) == STK_OK; i++) {
            check_batch(batch);
            rows += stk_batch_rows(batch);
            stk_batch_release(batch);
            if (i == 12)
                cut_half(stkt_path("x01.npy"));
            if (i == 24)
                replace(stkt_path("x02.npy"));
        }
        assert_int_equal(status, STK_END);
        assert_ok(stk_loader_get_stats(loader, &stats, &err));
        assert_int_equal(rows + stats.errors, 4 * RECORDS);
        assert_in_range(stats.errors, 2 * 2 * 16, 3 * 16 + 2 * 16);
        stk_loader_destroy(loader);
    }
}

/* A loader that only uses pread raises no signal, with or without the guard. A loader without the guard installs no
 * handler. */
static void without_a_guard(void **state)
{
    pid_t child;
    int status;

    (void)state;
    write_shards(1);
    child = fork();
    if (child == 0) {
        stk_field_opts field = STK_FIELD_OPTS_INIT;
        stk_loader_opts opts = STK_LOADER_OPTS_INIT;
        char path[300];
        const char *paths[1] = {path};
        struct sigaction before, now;
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;

        snprintf(path, sizeof path, "%s/x00.npy", stkt_dir);
        field.name = "x";
        field.paths = paths;
        field.path_count = 1;
        opts.fields = &field;
        opts.field_count = 1;
        opts.batch_size = 8;
        opts.num_workers = STK_WORKERS_INLINE;
        opts.sigbus_guard = STK_GUARD_OFF;
        (void)signal(SIGBUS, SIG_DFL);
        sigaction(SIGBUS, NULL, &before);
        if (stk_loader_open(&opts, &loader, &err) || stk_loader_next(loader, &batch, &err) ||
            !strstr(stk_loader_options_json(loader), "\"sigbus_guard\": false"))
            _exit(1);
        sigaction(SIGBUS, NULL, &now);
        if (now.sa_handler != before.sa_handler)
            _exit(2);
        cut_half(path);
        while (stk_loader_next(loader, &batch, &err) == STK_OK)
            stk_batch_release(batch);
        _exit(3);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

/* When a file is replaced, its new contents are not delivered, because the open descriptor still refers to the old
 * file. */
static void the_same_with_pread(void **state)
{
    access_word = "pread";
    one_file(state);
    several_files(state);
    more_files_than_fit(state);
    one_file_per_sample(state);
    access_word = "auto";
}

/* Without the guard, nothing is checked, and a file that grows is read as it is. */
static void unwatched_with_pread(void **state)
{
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    stk_status status;

    (void)state;
    write_shards(1);
    assert_ok(stkt_open(&loader,
                        "{dataset: {fields: {x: {path: '%s/x00.npy'}}}, loader: {batch_size: 8, num_workers: 2, "
                        "prefetch: 1, access: pread, sigbus_guard: false, num_epochs: 2, timeout: 60s}}",
                        stkt_dir));
    assert_ok(stk_loader_next(loader, &batch, &err));
    stk_batch_release(batch);
    stkt_append_file(stkt_path("x00.npy"), "more", 4);
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        check_batch(batch);
        stk_batch_release(batch);
    }
    assert_int_equal(status, STK_END);
    stk_loader_destroy(loader);
}

static void wrong_values_are_refused(void **state)
{
    stk_field_opts field = STK_FIELD_OPTS_INIT;
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;
    stk_loader *loader;
    stk_error err;

    (void)state;
    field.name = "x";
    field.synthetic = "{count: 8}";
    opts.fields = &field;
    opts.field_count = 1;
    opts.sigbus_guard = (stk_guard)2;
    assert_status(stk_loader_open(&opts, &loader, &err), STK_E_CONFIG);
    assert_says("options: loader.sigbus_guard: found the value 2, expected 0 to 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_guard), /* first, because its child must be the first to map a file */
        cmocka_unit_test(one_file),
        cmocka_unit_test(several_files),
        cmocka_unit_test(more_files_than_fit),
        cmocka_unit_test(one_file_per_sample),
        cmocka_unit_test(rows_in_parts),
        cmocka_unit_test(rows_that_are_made),
        cmocka_unit_test(a_partner_in_another_file),
        cmocka_unit_test(two_workers_check_a_file),
        cmocka_unit_test(the_other_files_continue),
        cmocka_unit_test(the_same_with_pread),
        cmocka_unit_test(unwatched_with_pread),
        cmocka_unit_test(wrong_values_are_refused),
    };

    (void)stkt_path("");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
