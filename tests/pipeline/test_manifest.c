/* Tests of reading the manifest of a preparation job, as loaders and `stoker verify` do: its contents, rejected
 * manifests, and a loader that compares its files with the manifest. */
#include "allocate.h"
#include "faults.h"
#include "leak_check.h"
#include "loader_test.h"
#include "manifest.h"
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static char *in_folder(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
}

/* Writes an .npy file with `rows` bytes. */
static void write_npy(const char *name, int rows)
{
    char head[129];
    FILE *file = fopen(in_folder(name), "wb");

    assert_non_null(file);
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    head[10 + snprintf(head + 10, sizeof head - 10, "{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }",
                       rows)] = ' ';
    head[127] = '\n';
    fwrite(head, 1, 128, file);
    for (int i = 0; i < rows; i++)
        fputc(i, file);
    fclose(file);
}

/* Writes a manifest of a.npy (10 rows) and b.npy (20 rows). */
static void write_manifest(const char *name, int64_t rows_of_a, int64_t bytes_of_a)
{
    stki_manifest_file parts[2] = {{.name = "a.npy", .rows = 10, .bytes = 138, .xxh3 = 0x0123456789abcdef},
                                   {.name = "b.npy", .rows = 20, .bytes = 148, .xxh3 = 0xfedcba9876543210}};
    char text[1024], print[STKI_U128_TEXT];

    stki_u128_text(stki_manifest_fingerprint(parts, 2), print);
    snprintf(text, sizeof text,
             "{\"parts\": [{\"path\": \"a.npy\", \"rows\": %lld, \"bytes\": %lld, \"xxh3\": \"0123456789abcdef\"},\n"
             "{\"path\": \"b.npy\", \"rows\": 20, \"bytes\": 148, \"xxh3\": \"fedcba9876543210\"}],\n"
             "\"fingerprint\": \"%s\"}",
             (long long)rows_of_a, (long long)bytes_of_a, print);
    write_text(name, text);
}

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/stoker_parts.XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    write_npy("a.npy", 10);
    write_npy("b.npy", 20);
    write_npy("c.npy", 30);
    write_manifest("good.json", 10, 138);
    return 0;
}

static int teardown(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void test_reads(void **state)
{
    stki_manifest list;
    stk_error err;

    (void)state;
    assert_ok(stki_manifest_open(in_folder("good.json"), &list, &err));
    assert_int_equal(list.count, 2);
    assert_string_equal(list.files[1].name, "b.npy");
    assert_string_equal(list.files[1].path, in_folder("b.npy"));
    assert_int_equal(list.files[1].rows, 20);
    assert_int_equal(list.files[1].bytes, 148);
    assert_true(list.files[1].xxh3 == 0xfedcba9876543210);
    assert_ok(stki_manifest_check(&list, &err));
    assert_ok(stki_manifest_has(&list, in_folder("b.npy"), &err));
    assert_status(stki_manifest_has(&list, in_folder("c.npy"), &err), STK_E_MISMATCH);
    assert_non_null(strstr(err.message, "c.npy: not listed in "));
    assert_non_null(strstr(err.message, ", which lists 2 files ("));
    assert_int_equal(symlink("b.npy", in_folder("link.npy")), 0);
    assert_ok(stki_manifest_has(&list, in_folder("link.npy"), &err));
    assert_status(stki_manifest_has(&list, in_folder("d.npy"), &err), STK_E_NOT_FOUND);
    stki_manifest_fini(&list);
    stki_manifest_fini(&list);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *text;
        stk_status status;
        const char *message;
    } cases[] = {
        {"", STK_E_CORRUPT, "invalid JSON"},
        {"{", STK_E_CORRUPT, "invalid JSON"},
        {"[]", STK_E_CORRUPT, "no parts"},
        {"{\"parts\": []}", STK_E_CORRUPT, "no parts"},
        {"{\"parts\": [1], \"fingerprint\": \"00000000000000000000000000000000\"}", STK_E_CORRUPT, "lacks one of"},
        {"{\"parts\": [{\"path\": \"a\", \"rows\": 1, \"bytes\": 1, \"xxh3\": \"0\"}], \"fingerprint\": "
         "\"00000000000000000000000000000000\"}",
         STK_E_CORRUPT, "lacks one of"},
        {"{\"parts\": [{\"path\": \"a\", \"rows\": -1, \"bytes\": 1, \"xxh3\": \"0123456789abcdef\"}], "
         "\"fingerprint\": "
         "\"00000000000000000000000000000000\"}",
         STK_E_CORRUPT, "lacks one of"},
        {"{\"parts\": [{\"path\": \"a\", \"rows\": 1, \"bytes\": 1, \"xxh3\": \"0123456789abcdef\"}], \"fingerprint\": "
         "\"00000000000000000000000000000000\"}",
         STK_E_CORRUPT, "fingerprint does not match its parts"},
        {"{\"parts\": [{\"path\": \"../a\", \"rows\": 1, \"bytes\": 1, \"xxh3\": \"0123456789abcdef\"}], "
         "\"fingerprint\": \"00000000000000000000000000000000\"}",
         STK_E_CORRUPT, "is outside its folder"},
        {"{\"parts\": [{\"path\": \"/a\", \"rows\": 1, \"bytes\": 1, \"xxh3\": \"0123456789abcdef\"}], "
         "\"fingerprint\": \"00000000000000000000000000000000\"}",
         STK_E_CORRUPT, "is outside its folder"},
    };
    stki_manifest list;
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_text("bad.json", cases[i].text);
        assert_status(stki_manifest_open(in_folder("bad.json"), &list, &err), cases[i].status);
        if (!strstr(err.message, cases[i].message))
            fail_msg("case %zu: \"%s\" is not in: %s", i, cases[i].message, err.message);
    }
    assert_status(stki_manifest_open(in_folder("none.json"), &list, &err), STK_E_NOT_FOUND);
    assert_status(stki_manifest_open(folder, &list, &err), STK_E_CORRUPT);
    write_manifest("rows.json", 11, 138); /* edited by hand */
    assert_status(stki_manifest_open(in_folder("rows.json"), &list, &err), STK_E_CORRUPT);
}

static stk_status open_with(const char *manifest, const char *files, stk_loader **out, stk_error *err)
{
    char text[512];

    snprintf(text, sizeof text, "dataset: {manifest: %s, fields: {x: {path: %s}}}\nloader: {batch_size: 5}\n", manifest,
             files);
    return stk_loader_open_text(text, folder, NULL, 0, out, err);
}

static void test_loader(void **state)
{
    stk_loader *loader;
    stk_error err;

    (void)state;
    assert_ok(open_with("good.json", "[b.npy, a.npy]", &loader, &err));
    stk_loader_destroy(loader);
    assert_ok(open_with("good.json", "'[ab].npy'", &loader, &err));
    stk_loader_destroy(loader);
    assert_status(open_with("good.json", "[a.npy, c.npy]", &loader, &err), STK_E_MISMATCH);
    assert_non_null(strstr(err.message, "c.npy: not listed in "));
    assert_non_null(strstr(err.message, ", which lists 2 files ("));
    assert_status(open_with("none.json", "a.npy", &loader, &err), STK_E_NOT_FOUND);
    write_npy("b.npy", 19);
    assert_status(open_with("good.json", "a.npy", &loader, &err), STK_E_MISMATCH);
    assert_non_null(strstr(err.message, "found 147 bytes, expected 148 bytes"));
    assert_int_equal(unlink(in_folder("b.npy")), 0);
    assert_status(open_with("good.json", "a.npy", &loader, &err), STK_E_NOT_FOUND);
    write_npy("b.npy", 20);
    assert_status(
        stk_loader_open_text("dataset: {manifst: a, fields: {x: {path: a.npy}}}", folder, NULL, 0, &loader, &err),
        STK_E_CONFIG);
    assert_non_null(strstr(err.message, "did you mean manifest"));
}

static stk_status open_opts(const char *manifest, const char *file, bool several, stk_loader **out, stk_error *err)
{
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;
    stk_dataset_opts dataset = STK_DATASET_OPTS_INIT;
    stk_field_opts field = STK_FIELD_OPTS_INIT;
    const char *path = in_folder(file);

    field.name = "x";
    field.paths = &path;
    field.path_count = 1;
    opts.batch_size = 5;
    if (several) {
        dataset.fields = &field;
        dataset.field_count = 1;
        dataset.weight = 1;
        dataset.manifest = manifest;
        opts.datasets = &dataset;
        opts.dataset_count = 1;
    } else {
        opts.fields = &field;
        opts.field_count = 1;
        opts.manifest = manifest;
    }
    return stk_loader_open(&opts, out, err);
}

static void test_loader_opts(void **state)
{
    stk_loader *loader;
    stk_error err;

    (void)state;
    for (int several = 0; several < 2; several++) {
        assert_ok(open_opts(in_folder("good.json"), "a.npy", several, &loader, &err));
        stk_loader_destroy(loader);
        assert_ok(open_opts(NULL, "c.npy", several, &loader, &err));
        stk_loader_destroy(loader);
        assert_status(open_opts(in_folder("good.json"), "c.npy", several, &loader, &err), STK_E_MISMATCH);
    }
}

/* Each of several data sets has its own manifest. */
static void test_mixture(void **state)
{
    const char *text = "datasets:\n  - {manifest: good.json, fields: {x: {path: a.npy}}}\n"
                       "  - {fields: {x: {path: c.npy}}}\nloader: {batch_size: 5}\n";
    const char *wrong = "datasets:\n  - {fields: {x: {path: a.npy}}}\n"
                        "  - {manifest: good.json, fields: {x: {path: c.npy}}}\nloader: {batch_size: 5}\n";
    stk_loader *loader;
    stk_error err;

    (void)state;
    assert_ok(stk_loader_open_text(text, folder, NULL, 0, &loader, &err));
    stk_loader_destroy(loader);
    assert_status(stk_loader_open_text(wrong, folder, NULL, 0, &loader, &err), STK_E_MISMATCH);
}

static void test_out_of_memory(void **state)
{
    int64_t n = 1;
    stk_status status;

    (void)state;
    for (; n < 200; n++) {
        stki_manifest list;
        stk_error err;

        stki_memory_fail_at(n);
        status = stki_manifest_open(in_folder("good.json"), &list, &err);
        stki_memory_fail_at(0);
        if (status == STK_OK) {
            stki_manifest_fini(&list);
            break;
        }
        assert_int_equal(status, STK_E_MEMORY);
        assert_null(list.files);
    }
    assert_true(n > 3 && n < 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reads),       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_loader),      cmocka_unit_test(test_mixture),
                                       cmocka_unit_test(test_loader_opts), cmocka_unit_test(test_out_of_memory)};

    return cmocka_run_group_tests(tests, setup, teardown);
}
