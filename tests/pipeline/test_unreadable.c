/* stki-threads */
/* Tests of files that are one sample each and cannot be read, under each policy: `sample_per_file`, tables of files,
 * and texts with `unit: file`. Each value of sample i is i, so the expected rows are known. */
#include "io_files.h"
#include "loader_test.h"
#include <inttypes.h>
#include <unistd.h>

enum { COUNT = 200, BATCH = 8 };

static const int bad[] = {0, 77, 78, 199};

static bool is_bad(int64_t sample)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (bad[i] == sample)
            return true;
    return false;
}

/* u8 arrays of 3 numbers or of 1 + i % 5, and texts of three letters. The bad files are truncated; the last file does
 * not exist. A "truncated" text is UTF-16. */
static int write_files(void **state)
{
    FILE *fixed = fopen(stkt_path("fixed.csv"), "w"), *varying = fopen(stkt_path("varying.csv"), "w");

    (void)state;
    fprintf(fixed, "x\n");
    fprintf(varying, "x\n");
    for (int i = 0; i < COUNT; i++) {
        const int length = 1 + i % 5;
        char name[32], shape[16], bytes[8];

        memset(bytes, i, sizeof bytes);
        snprintf(name, sizeof name, "fx%03d.npy", i);
        fprintf(fixed, "%s\n", name);
        stkt_write_npy(stkt_path(name), "|u1", "False", "(3,)", 64, bytes, 3);
        if (is_bad(i))
            assert_int_equal(truncate(stkt_path(name), 129), 0);
        snprintf(name, sizeof name, "vx%03d.npy", i);
        fprintf(varying, "%s\n", name);
        snprintf(shape, sizeof shape, "(%d,)", length);
        stkt_write_npy(stkt_path(name), "|u1", "False", shape, 64, bytes, (size_t)length);
        if (is_bad(i))
            assert_int_equal(truncate(stkt_path(name), 100), 0);
        snprintf(name, sizeof name, "tx%03d.txt", i);
        memset(bytes, 'a' + i % 26, 3);
        stkt_write_file(stkt_path(name),
                        is_bad(i) ? "\xff\xfe"
                                    "a"
                                  : bytes,
                        3);
    }
    fclose(fixed);
    fclose(varying);
    assert_int_equal(remove(stkt_path("fx199.npy")), 0);
    assert_int_equal(symlink("nothing", stkt_path("fx199.npy")), 0); /* patterns match dangling links as well */
    return 0;
}

/* The ways in which a config can name these samples. */
static const struct {
    const char *path, *source;
    bool varying, text;
} forms[] = {
    {"fx*.npy", "sample_per_file: true", false, false},    {"vx*.npy", "sample_per_file: true", true, false},
    {"fixed.csv", "files: arrays", false, false},          {"varying.csv", "files: arrays", true, false},
    {"tx*.txt", "{format: text, unit: file}", true, true},
};
enum { FORMS = sizeof forms / sizeof forms[0] };

static STK_PRINTF(2, 3) stk_loader *open_form(int form, const char *format, ...)
{
    const bool braces = forms[form].source[0] == '{';
    char keys[512];
    stk_loader *loader = NULL;
    va_list args;

    va_start(args, format);
    vsnprintf(keys, sizeof keys, format, args);
    va_end(args);
    assert_int_equal(
        stkt_open(&loader, "{dataset: {fields: {x: {path: '%s', source: %s%s%s}}}, loader: {batch_size: %d, %s}}",
                  stkt_path(forms[form].path), braces ? "" : "{", forms[form].source, braces ? "" : "}", BATCH, keys),
        STK_OK);
    return loader;
}

static void check_row(int form, const stk_batch *batch, int64_t row, int64_t sample)
{
    const uint8_t value = (uint8_t)(forms[form].text ? 'a' + sample % 26 : sample);
    int64_t from = 3 * row, length = 3;
    stk_tensor values;
    stk_error err;

    if (forms[form].varying) {
        stk_tensor offsets;

        assert_ok(stk_batch_tensor(batch, "x.offsets", &offsets, &err));
        from = ((int64_t *)offsets.data)[row];
        length = ((int64_t *)offsets.data)[row + 1] - from;
        assert_int_equal(length, forms[form].text ? 3 : 1 + sample % 5);
    }
    assert_ok(stk_batch_tensor(batch, forms[form].varying ? "x.values" : "x", &values, &err));
    for (int64_t k = 0; k < length; k++)
        assert_int_equal(((uint8_t *)values.data)[from + k], value);
}

static void skipped(void **state)
{
    char list[256];

    (void)state;
    snprintf(list, sizeof list, "%s", stkt_path("failed.jsonl")); /* copied, because stkt_path reuses its buffers */
    for (int form = 0; form < FORMS; form++)
        for (int workers = 0; workers <= 4; workers += workers ? 3 : 1) {
            stk_loader *loader = open_form(
                form, "on_error: skip, max_error_fraction: 0.02, num_workers: %d, error_list: '%s'", workers, list);
            stk_loader_stats stats = {.struct_size = sizeof stats};
            int64_t sample = 0, lines = 0;
            char line[2048];
            stk_batch *batch;
            stk_error err;
            FILE *file;

            for (int step = 0; step < COUNT / BATCH; step++) {
                int64_t row = 0;

                assert_ok(stk_loader_next(loader, &batch, &err));
                for (; sample < (step + 1) * BATCH; sample++)
                    if (!is_bad(sample)) {
                        assert_int_equal(stk_batch_indices(batch)[row], sample);
                        check_row(form, batch, row++, sample);
                    }
                assert_int_equal(stk_batch_rows(batch), row);
                stk_batch_release(batch);
            }
            assert_status(stk_loader_next(loader, &batch, &err), STK_END);
            assert_ok(stk_loader_get_stats(loader, &stats, &err));
            assert_int_equal(stats.skipped, 4);
            assert_int_equal(stk_loader_failed(loader, STK_OK), 4);
            stk_loader_destroy(loader);
            file = fopen(list, "r");
            assert_non_null(file);
            for (; fgets(line, sizeof line, file); lines++) {
                char name[64];

                snprintf(name, sizeof name, "x%03d.", bad[lines]);
                assert_non_null(strstr(line, name));
                snprintf(name, sizeof name, "\"sample\":%d,", bad[lines]);
                assert_non_null(strstr(line, name));
            }
            assert_int_equal(lines, 4);
            fclose(file);
            assert_int_equal(remove(list), 0);
        }
}

static void substituted(void **state)
{
    (void)state;
    for (int form = 0; form < FORMS; form++) {
        int64_t instead[4] = {-1, -1, -1, -1};

        for (int workers = 0; workers <= 4; workers += workers ? 3 : 1) {
            stk_loader *loader =
                open_form(form, "on_error: substitute, max_error_fraction: 0.02, num_workers: %d", workers);
            stk_batch *batch;
            stk_error err;
            int found = 0;

            for (int64_t sample = 0; sample < COUNT; sample++) {
                int64_t row = sample % BATCH, delivered;

                if (row == 0)
                    assert_ok(stk_loader_next(loader, &batch, &err));
                assert_int_equal(stk_batch_rows(batch), BATCH);
                delivered = stk_batch_indices(batch)[row];
                if (is_bad(sample)) {
                    assert_false(is_bad(delivered));
                    if (instead[found] < 0)
                        instead[found] = delivered;
                    assert_int_equal(instead[found++], delivered);
                } else {
                    assert_int_equal(delivered, sample);
                }
                check_row(form, batch, row, delivered);
                if (row == BATCH - 1)
                    stk_batch_release(batch);
            }
            assert_status(stk_loader_next(loader, &batch, &err), STK_END);
            assert_int_equal(stk_loader_failed(loader, STK_OK), 4);
            stk_loader_destroy(loader);
        }
    }
}

/* Opening succeeds and adds a note. The error is returned in place of the batch. */
static void failed(void **state)
{
    (void)state;
    for (int form = 0; form < FORMS; form++)
        for (int workers = 0; workers <= 4; workers += workers ? 3 : 1) {
            stk_loader *loader =
                open_form(form, "num_workers: %d, indices: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 77, 11]", workers);
            bool said = false;
            stk_batch *batch;
            stk_error err;

            for (int i = 0; stk_loader_note(loader, i); i++)
                said = said || strstr(stk_loader_note(loader, i), "4 of 200 files cannot be read");
            assert_true(said);
            assert_ok(stk_loader_next(loader, &batch, &err));
            check_row(form, batch, 7, 8);
            stk_batch_release(batch);
            assert_status(stk_loader_next(loader, &batch, &err),
                          forms[form].text ? STK_E_UNSUPPORTED : STK_E_TRUNCATED);
            assert_non_null(strstr(err.file, "x077."));
            assert_int_equal(err.record, forms[form].text ? 0 : 77);
            stk_loader_destroy(loader);
        }
}

/* One failure more than the budget allows ends the run. */
static void budget(void **state)
{
    (void)state;
    for (int form = 0; form < FORMS; form++) {
        stk_loader *loader = open_form(form, "on_error: skip, max_error_fraction: 1, max_errors: 3, num_workers: 2");
        stk_status status;
        stk_batch *batch;
        stk_error err;
        int64_t rows = 0;

        while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
            rows += stk_batch_rows(batch);
            stk_batch_release(batch);
        }
        assert_int_equal(status, STK_E_LIMIT);
        assert_int_equal(rows, COUNT - BATCH - 3);
        stk_loader_destroy(loader);
    }
}

static void no_file_can_be_read(void **state)
{
    stk_loader *loader = NULL;

    (void)state;
    assert_int_equal(stkt_open(&loader,
                               "{dataset: {fields: {x: {path: ['%s', '%s/tx078.txt'], source: {format: text, unit: "
                               "file}}}}, loader: {on_error: skip}}",
                               stkt_path("tx077.txt"), stkt_path("")),
                     STK_E_UNSUPPORTED);
    assert_int_equal(
        stkt_open(&loader,
                  "{dataset: {fields: {x: {path: '%s', source: {sample_per_file: true}}}}, loader: {on_error: skip}}",
                  stkt_path("vx07[78].npy")),
        STK_E_TRUNCATED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skipped), cmocka_unit_test(substituted),         cmocka_unit_test(failed),
        cmocka_unit_test(budget),  cmocka_unit_test(no_file_can_be_read),
    };

    return cmocka_run_group_tests(tests, write_files, NULL);
}
