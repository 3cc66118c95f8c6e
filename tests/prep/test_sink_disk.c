/* A disk fills up while a job writes: the error names the file, and when there is space again the job continues from
 * its last mark and ends with the same bytes. Row P12. */
#include "sink_rows.h"
#include "small_disk.h"

enum { ROW = 64 << 10, ROWS = 12, BATCH = 2 };

static const char *disk;
static unsigned char rows[ROWS][ROW];
static stki_sink_value values[ROWS];
static stk_error err;

static const stki_sink_field field = {
    .name = "x", .kind = STKI_SINK_RAGGED, .dtype = STK_U16, .ndim = 1, .shape = {ROW / 2}};
static const stki_sink_field bytes_field = {.name = "x", .kind = STKI_SINK_BYTES, .dtype = STK_U8, .ndim = 1};

struct numbers {
    int64_t a, b;
};

static const struct {
    const char *format, *path;
    struct numbers options;
} ways[] = {{"npy", "x.npy", {0}},       {"raw", "x.raw", {0}},
            {"tar", "x.tar", {0}},       {"tokens", "x.bin", {0}},
            {"tokens", "y.idx", {2, 0}}, {"beton", "x.beton", {2 << 20, 0}},
            {"npz", "x.npz", {0}},       {"hdf5", "x.h5", {4, 1}},
            {"pt", "x.pt", {0}},         {"safetensors", "x.safetensors", {0}}};

/* Uses all free space except `left` bytes. */
static void fill_disk(int64_t left)
{
    static const char zeros[4096];
    char path[600];
    FILE *file;

    snprintf(path, sizeof path, "%s/filler", disk);
    file = fopen(path, "wb");
    assert_non_null(file);
    setvbuf(file, NULL, _IONBF, 0);
    while (fwrite(zeros, sizeof zeros, 1, file) == 1)
        ;
    assert_int_equal(ftruncate(fileno(file), ftell(file) - left), 0);
    fclose(file);
}

static stk_status run(const stki_sink_ops *ops, const stki_sink_opts *opts, json_t **reached, stki_sink_file *files,
                      int *count, stki_sink **out)
{
    int64_t row = *reached ? json_integer_value(json_object_get(*reached, "rows")) : 0;
    stki_sink *sink = NULL;
    stk_status status = ops->open(opts, *reached, &sink, &err);

    for (; row < ROWS && !status; row += BATCH) {
        json_t *mark = NULL;

        status = ops->append(sink, values + row, BATCH, &err);
        if (!status && ops->mark)
            status = ops->mark(sink, &mark, &err);
        if (!status && ops->mark) {
            status = ops->sync(sink, &err);
            json_decref(*reached);
            *reached = mark;
        }
    }
    if (!status)
        status = ops->finish(sink, &err);
    if (!status)
        *count = ops->files(sink, files, STKT_SINK_FILES);
    *out = sink;
    return status;
}

static void remove_file(const char *folder, const char *name)
{
    char path[700];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)unlink(path);
}

static void test_continues_after_a_full_disk(void **state)
{
    const char *whole = stkt_path("whole");

    (void)state;
    assert_int_equal(mkdir(whole, 0700), 0);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        stki_sink_opts opts = {.path = ways[i].path,
                               .folder = whole,
                               .fields = !strcmp(ways[i].format, "beton") ? &bytes_field : &field,
                               .field_count = 1,
                               .most_rows = ROWS,
                               .threads = 1};
        stki_sink_file expected[STKT_SINK_FILES], files[STKT_SINK_FILES];
        json_t *reached = NULL;
        const stki_sink_ops *ops;
        stki_sink *first, *sink;
        stk_status status;
        int count;

        assert_ok(stki_sink_find(ways[i].format, NULL, &ops, &err));
        opts.options = ops->table ? &ways[i].options : NULL;
        assert_ok(run(ops, &opts, &reached, expected, &count, &first));
        json_decref(reached);
        reached = NULL;
        opts.folder = disk;
        fill_disk(400 << 10);
        status = run(ops, &opts, &reached, files, &count, &sink);
        if (status != STK_E_IO || !strstr(err.message, "No space left"))
            fail_msg("%s: %s: %s", ways[i].path, stk_status_name(status), status ? err.message : "");
        ops->destroy(sink);
        remove_file(disk, "filler");
        assert_true(!ops->resumes || reached);
        assert_ok(run(ops, &opts, &reached, files, &count, &sink));
        for (int k = 0; k < count; k++) {
            stkt_same_files(files[k].temporary, expected[k].temporary);
            unlink(files[k].temporary);
        }
        remove_file(disk, "x.beton.sizes");
        remove_file(disk, "y.idx.lengths");
        ops->destroy(sink);
        ops->destroy(first);
        json_decref(reached);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_continues_after_a_full_disk)};
    int failed;

    for (int i = 0; i < ROWS; i++) {
        stkt_noise(rows[i], ROW, (uint32_t)i + 1);
        values[i] = (stki_sink_value){.bytes = rows[i], .size = ROW, .length = ROW / 2};
    }
    disk = stkt_small_disk("8m");
    if (!disk) {
        print_message("skipped: this system does not permit mounting a small disk (%s)\n", strerror(errno));
        return 77;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (umount(disk)) /* the folder is removed at exit */
        perror("umount");
    return failed;
}
