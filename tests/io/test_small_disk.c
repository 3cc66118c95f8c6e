/* Every writer on a disk that fills up (an in-memory file system of one megabyte): the result is an error that names
 * the file, without a signal or remaining files. Row P12 (FirebirdSQL/firebird#8048). */
#include "small_disk.h"
#include "stk_test.h"
#include <dirent.h>
#include <errno.h>
#include <stoker/dataset.h>
#include <unistd.h>

enum { ROW = 64 << 10, ROWS = 40 /* 2.5 MB */ };

static const char *disk;

static void expect_empty_disk(const char *what)
{
    DIR *folder = opendir(disk);
    struct dirent *entry;

    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.' || strlen(entry->d_name) > 2)
            fail_msg("%s left %s", what, entry->d_name);
    closedir(folder);
}

static void test_arrays(void **state)
{
    static const struct {
        const char *name, *format;
        int32_t level;
        int64_t chunk_rows;
    } ways[] = {{"x.npy", "npy", 0, 0}, {"x.raw", "raw", 0, 0}, {"x.npz", "npz", 0, 0},
                {"y.npz", "npz", 6, 0}, {"x.pt", "pt", 0, 0},   {"x.safetensors", "safetensors", 0, 0},
                {"x.h5", "hdf5", 0, 0}, {"y.h5", "hdf5", 6, 0}, {"z.h5", "hdf5", 0, 3}};
    static const int64_t shape[1] = {ROW};
    static unsigned char row[ROW];

    (void)state;
    stkt_noise(row, ROW, 12345);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        stk_writer_opts opts = STK_WRITER_OPTS_INIT;
        stk_writer *w;
        stk_error err;
        stk_status status;
        char path[512];

        snprintf(path, sizeof path, "%s/%s", disk, ways[i].name);
        opts.level = ways[i].level;
        opts.chunk_rows = ways[i].chunk_rows;
        assert_ok(stk_writer_create(path, ways[i].format, &opts, &w, &err));
        status = stk_writer_begin(w, "x", STK_U8, 1, shape, ROWS, &err);
        for (int n = 0; n < ROWS && !status; n++)
            status = stk_writer_append(w, row, 1, &err);
        status = status ? status : stk_writer_end(w, &err);
        if (status)
            stk_writer_abort(w);
        else
            status = stk_writer_commit(w, &err);
        if (status != STK_E_IO || !strstr(err.message, "No space left") || !strstr(err.message, ways[i].name))
            fail_msg("%s: %s: %s", ways[i].name, stk_status_name(status), status ? err.message : "");
        expect_empty_disk(ways[i].name);
    }
}

static void test_beton(void **state)
{
    static const uint32_t threads[] = {1, 3};
    static const stk_beton_field field = {.name = "x", .kind = STK_BETON_BYTES};
    static unsigned char row[ROW];

    (void)state;
    stkt_noise(row, ROW, 12345);
    for (size_t i = 0; i < 2; i++) {
        stk_beton_opts opts = STK_BETON_OPTS_INIT;
        stk_beton_value value = {.bytes = row, .size = ROW};
        stk_beton_writer *w;
        stk_error err;
        stk_status status;
        char path[512];

        snprintf(path, sizeof path, "%s/x.beton", disk);
        opts.threads = threads[i];
        status = stk_beton_create(path, &field, 1, ROWS, &opts, &w, &err);
        if (!status) {
            for (int n = 0; n < ROWS && !status; n++)
                status = stk_beton_append(w, &value, 1, &err);
            if (status)
                stk_beton_abort(w);
            else
                status = stk_beton_commit(w, &err);
        }
        if (status != STK_E_IO || !strstr(err.message, "No space left") || !strstr(err.message, "x.beton"))
            fail_msg("%u threads: %s: %s", threads[i], stk_status_name(status), status ? err.message : "");
        expect_empty_disk("beton");
    }
}

static void test_records(void **state)
{
    static unsigned char row[ROW];

    (void)state;
    stkt_noise(row, ROW, 12345);
    for (int format = -1; format <= STK_TOKENS_MEGATRON; format++) { /* -1: tar */
        stk_tokens_writer *tokens;
        stk_tar_writer *tar;
        char path[512], key[16];
        stk_error err;
        stk_status status = STK_OK;

        snprintf(path, sizeof path, "%s/x.bin", disk);
        assert_ok(format < 0 ? stk_tar_create(path, &tar, &err)
                             : stk_tokens_create(path, (stk_tokens_format)format, STK_U16, &tokens, &err));
        for (int n = 0; n < ROWS && !status; n++) {
            snprintf(key, sizeof key, "%d", n);
            status = format < 0 ? stk_tar_append(tar, key, &(stk_tar_file){"bin", row, ROW}, 1, &err)
                                : stk_tokens_append(tokens, row, ROW / 2, &err);
        }
        if (format < 0)
            stk_tar_abort(tar);
        else
            stk_tokens_abort(tokens);
        if (status != STK_E_IO || !strstr(err.message, "No space left") || !strstr(err.message, "x.bin"))
            fail_msg("format %d: %s: %s", format, stk_status_name(status), status ? err.message : "");
        expect_empty_disk("records");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_arrays), cmocka_unit_test(test_beton),
                                       cmocka_unit_test(test_records)};
    int failed;

    disk = stkt_small_disk("1m");
    if (!disk) {
        print_message("skipped: this system does not permit mounting a small disk (%s)\n", strerror(errno));
        return 77;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (umount(disk)) /* the folder is removed at exit */
        perror("umount");
    return failed;
}
