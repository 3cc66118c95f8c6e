/* Tests of checksums of records in a separate file: writing, verifying, damaged files, and files that belong to other
 * data. */
#include "allocate.h"
#include "config.h"
#include "faults.h"
#include "format.h"
#include "io_files.h"
#include "loader_test.h"
#include "packed.h"
#include "sums.h"

enum { RECORDS = 50, LENGTH = 33 };

static unsigned char values[RECORDS * LENGTH];
static stk_error err;

static const char *data_file(void)
{
    for (int i = 0; i < RECORDS * LENGTH; i++)
        values[i] = (unsigned char)(i * 7 + i / 100);
    stkt_write_npy(stkt_path("x.npy"), "|u1", "False", "(50, 33)", 64, values, sizeof values);
    return stkt_path("x.npy");
}

static stk_tensor bytes_tensor(const void *data, int64_t count)
{
    stk_tensor t = {.data = (void *)(uintptr_t)data, .dtype = STK_U8, .ndim = 1};

    t.shape[0] = count;
    t.strides[0] = 1;
    return t;
}

/* The published values of XXH3-64 with seed 0. */
static void known_answers(void **state)
{
    stk_tensor empty = bytes_tensor("", 0), abc = bytes_tensor("abc", 3);

    (void)state;
    assert_true(stki_sums_of(&empty) == UINT64_C(0x2d06800538d394c2));
    assert_true(stki_sums_of(&abc) == UINT64_C(0x78af5f94892f3950));
}

struct gathered {
    unsigned char bytes[1 << 20];
    int64_t count;
};

static void gather(void *context, const void *bytes, int64_t count)
{
    struct gathered *g = context;

    memcpy(g->bytes + g->count, bytes, (size_t)count);
    g->count += count;
}

/* The sum depends on the values, not on their layout in memory. */
static void any_layout_has_the_sum_of_its_values(void **state)
{
    static uint32_t plain[70][90], swapped[70][90], fortran[90][70], wide[70][200];
    static struct gathered g;
    stk_tensor t = {.dtype = STK_U32, .ndim = 2, .shape = {70, 90}}, line = {.dtype = STK_U32, .ndim = 1};
    unsigned char truths[40000], ones[40000];
    uint64_t expected;

    (void)state;
    for (int i = 0; i < 70; i++)
        for (int k = 0; k < 90; k++) {
            plain[i][k] = fortran[k][i] = wide[i][2 * k] = (uint32_t)(i * 12345 + k * 1000003);
            swapped[i][k] = __builtin_bswap32(plain[i][k]);
        }
    t.data = plain, t.strides[0] = 360, t.strides[1] = 4;
    expected = stki_sums_of(&t);
    t.data = fortran, t.strides[0] = 4, t.strides[1] = 280;
    assert_true(stki_sums_of(&t) == expected);
    stki_packed_each(&t, gather, &g);
    assert_int_equal(g.count, sizeof plain);
    assert_memory_equal(g.bytes, plain, sizeof plain);
    t.data = wide, t.strides[0] = 800, t.strides[1] = 8;
    assert_true(stki_sums_of(&t) == expected);
    t.data = swapped, t.strides[0] = 360, t.strides[1] = 4;
    assert_true(stki_sums_of(&t) != expected);
    t.flags = STK_TENSOR_SWAPPED;
    assert_true(stki_sums_of(&t) == expected);
    line.data = swapped, line.shape[0] = 6300, line.strides[0] = 4, line.flags = STK_TENSOR_SWAPPED;
    assert_true(stki_sums_of(&line) == expected); /* one axis that is longer than a piece */
    for (int i = 0; i < 40000; i++) {
        ones[i] = i % 3 == 0;
        truths[i] = (unsigned char)(ones[i] * (1 + i % 255));
    }
    line = bytes_tensor(truths, 40000);
    line.dtype = STK_BOOL;
    t = bytes_tensor(ones, 40000);
    assert_true(stki_sums_of(&line) == stki_sums_of(&t));
}

static stki_reader *open_x(bool sums)
{
    stki_reader_opts opts = {.sums = sums};
    stki_reader *reader;

    assert_ok(stki_reader_open(stkt_path("x.npy"), &opts, &reader, &err));
    return reader;
}

static void write_sums_of_x(void)
{
    stki_reader *reader = open_x(false);
    uint64_t sums[RECORDS];
    char how[STKI_SUMS_HOW];
    stki_scratch scratch;

    stki_scratch_init(&scratch);
    for (int i = 0; i < RECORDS; i++) {
        stk_tensor sample;

        assert_ok(reader->ops->read(reader, i, NULL, &scratch, &sample, &err));
        sums[i] = stki_sums_of(&sample);
        stki_reader_done(reader, &sample);
    }
    stki_sums_how(reader, &(stki_reader_opts){0}, how);
    assert_string_equal(how, "uint8 [33]");
    assert_ok(stki_sums_write(stkt_path("x.npy"), &(stki_sums_member){"", how, RECORDS, sums}, 1, &err));
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
}

static void flip(const char *name, long at)
{
    FILE *file = fopen(stkt_path(name), "r+b");
    int byte;

    assert_non_null(file);
    fseek(file, at, SEEK_SET);
    byte = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(byte ^ 0x10, file);
    fclose(file);
}

static void one_byte_is_one_record(void **state)
{
    stki_scratch scratch;

    (void)state;
    data_file();
    write_sums_of_x();
    stki_scratch_init(&scratch);
    for (int bad = 0; bad < RECORDS; bad += 7) {
        stki_reader *reader;
        stk_tensor sample;

        flip("x.npy", 128 + bad * LENGTH + bad % LENGTH);
        reader = open_x(true);
        assert_null(reader->base);
        assert_string_equal(reader->ops->format, "npy");
        for (int i = 0; i < RECORDS; i++) {
            if (i == bad) {
                assert_status(reader->ops->read(reader, i, NULL, &scratch, &sample, &err), STK_E_CORRUPT);
                assert_int_equal(err.record, bad);
                assert_says("x.npy: record ");
                assert_says("x.npy.sums: found ");
                assert_int_equal(strlen(err.found), 16);
                assert_int_equal(strlen(err.expected), 16);
                continue;
            }
            assert_ok(reader->ops->read(reader, i, NULL, &scratch, &sample, &err));
            assert_memory_equal(sample.data, values + i * LENGTH, LENGTH);
            stki_reader_done(reader, &sample);
        }
        assert_status(reader->ops->read(reader, RECORDS, NULL, &scratch, &sample, &err), STK_E_RANGE);
        stki_reader_destroy(reader);
        flip("x.npy", 128 + bad * LENGTH + bad % LENGTH);
    }
    stki_scratch_fini(&scratch);
}

/* In a loader, with workers, for an epoch, with failed samples skipped. */
static void in_a_loader(void **state)
{
    (void)state;
    data_file();
    write_sums_of_x();
    for (int workers = 0; workers <= 2; workers++)
        for (int bad = -1; bad < RECORDS; bad += 25) {
            stk_loader *loader;
            stk_batch *batch;
            stk_status status;
            int64_t rows = 0;

            if (bad >= 0)
                flip("x.npy", 128 + bad * LENGTH);
            assert_ok(stkt_open_faulty(&loader, NULL, true, &err,
                                       "{dataset: {fields: {x: {path: '%s', source: {sums: true}}}}, loader: "
                                       "{batch_size: 8, num_workers: %d, order: random}}",
                                       stkt_path("x.npy"), workers));
            while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
                for (int64_t r = 0; r < stk_batch_rows(batch); r++)
                    assert_int_not_equal(stk_batch_indices(batch)[r], bad);
                rows += stk_batch_rows(batch);
                stk_batch_release(batch);
            }
            assert_int_equal(status, STK_END);
            assert_int_equal(rows, RECORDS - (bad >= 0));
            stk_loader_destroy(loader);
            if (bad >= 0)
                flip("x.npy", 128 + bad * LENGTH);
        }
}

static void refused(stki_reader_opts opts, stk_status status, const char *says)
{
    stki_reader *reader;

    opts.sums = true;
    assert_status(stki_reader_open(stkt_path("x.npy"), &opts, &reader, &err), status);
    assert_says(says);
}

static void sums_of_other_data(void **state)
{
    stk_loader *loader;

    (void)state;
    data_file();
    (void)unlink(stkt_path("x.npy.sums"));
    refused((stki_reader_opts){0}, STK_E_NOT_FOUND, "x.npy.sums");
    write_sums_of_x();
    refused((stki_reader_opts){.axis = 1}, STK_E_MISMATCH, "found uint8 [33], expected uint8 [50]; axis 1");
    refused((stki_reader_opts){.window_length = 3, .window_stride = 2}, STK_E_MISMATCH,
            "expected uint8 [3, 33]; windows of 3 every 2");
    stkt_append_file(stkt_path("x.npy"), "x", 1);
    refused((stki_reader_opts){0}, STK_E_MISMATCH,
            "the checksums were computed for a file whose size differs from that of");
    assert_says("found a file of 1778 bytes, expected a file of 1779");
    data_file();
    assert_ok(
        stki_sums_write(stkt_path("x.npy"), &(stki_sums_member){"", "uint8 [33]", 49, (uint64_t[49]){0}}, 1, &err));
    refused((stki_reader_opts){0}, STK_E_MISMATCH,
            "unexpected number of records with checksums: found 49, expected 50");
    assert_ok(stki_sums_write(stkt_path("x.npy"), &(stki_sums_member){"y", "uint8 [33]", 0, NULL}, 1, &err));
    refused((stki_reader_opts){0}, STK_E_NOT_FOUND, "the file has no checksums for this member");
    assert_ok(stki_sums_write(stkt_path("x.npy"), NULL, 0, &err));
    refused((stki_reader_opts){0}, STK_E_NOT_FOUND, "the file has no checksums for this member");
    assert_int_equal(stk_loader_open_text("{dataset: {fields: {x: {path: 'x*.npy', source: {sums: true, "
                                          "sample_per_file: true}}}}}",
                                          stkt_dir, NULL, 0, &loader, &err),
                     STK_E_CONFIG);
    assert_says("sums");
    assert_says("sample_per_file");
}

/* Options in `source` that can change values are part of the text, in canonical form and without defaults. */
static void options_that_change_values(void **state)
{
    static const struct {
        const char *source, *how;
    } rows[] = {
        {"{}", "uint8 [33]"},
        {"{unit: line, decode: exact, cf: false, offset: 0}", "uint8 [33]"},
        {"{key: text}", "uint8 [33]; source.key=\"text\""},
        {"{memory_limit: 1GiB, verify: true, on_warning: accept}", "uint8 [33]"}, /* these affect only errors */
        {"{sums: true, name: x, classes: [a]}", "uint8 [33]"},                    /* these are applied by other code */
        {"{cf: true}", "uint8 [33]; source.cf=true"},
        {"{offset: 1KiB, key: title}", "uint8 [33]; source.key=\"title\"; source.offset=1024"},
    };
    stki_reader *reader;

    (void)state;
    data_file();
    write_sums_of_x();
    reader = open_x(false);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stki_field_config field = {.name = NULL};
        stki_document *document;
        char how[STKI_SUMS_HOW];

        assert_ok(stki_document_parse(rows[i].source, (int64_t)strlen(rows[i].source), "text", NULL, &document, &err));
        assert_ok(stki_config_source(stki_document_root(document), document, &field, &err));
        stki_sums_how(reader, &field.source, how);
        assert_string_equal(how, rows[i].how);
        stki_document_destroy(document);
    }
    stki_reader_destroy(reader);
}

/* Older versions wrote options as words of their own, and scaled `_Unsigned` data as signed data under the word
 * "cf". */
static void sums_of_an_older_version(void **state)
{
    static const char *const words[] = {"uint8 [33]; cf", "uint8 [33]; gray; upright", "uint8 [33]; key title"};
    static const char *const now[] = {"uint8 [33]; source.cf=true",
                                      "uint8 [33]; source.color=\"gray\"; source.orientation=\"upright\"",
                                      "uint8 [33]; source.key=\"title\""};
    static const uint64_t values_of[RECORDS];
    stki_sums *sums;
    int64_t first;

    (void)state;
    data_file();
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        assert_ok(stki_sums_write(stkt_path("x.npy"), &(stki_sums_member){"", words[i], RECORDS, values_of}, 1, &err));
        assert_ok(stki_sums_open(stkt_path("x.npy"), &sums, &err));
        assert_status(stki_sums_find(sums, "", now[i], RECORDS, &first, &err), STK_E_MISMATCH);
        assert_says("stoker verify --write-sums");
        assert_string_equal(err.found, words[i]);
        stki_sums_close(sums);
    }
}

/* Several members with names of all lengths; of two with one name the last one wins. */
static void many_members(void **state)
{
    enum { MEMBERS = 40 };
    stki_sums_member members[MEMBERS];
    static char names[MEMBERS][64];
    static uint64_t sums[MEMBERS][MEMBERS];
    stki_sums *open;
    int64_t first;

    (void)state;
    data_file();
    for (int i = 0; i < MEMBERS; i++) {
        memset(names[i], 'a' + i % 26, (size_t)i);
        for (int k = 0; k < i; k++)
            sums[i][k] = (uint64_t)(i * 1000 + k);
        members[i] = (stki_sums_member){names[i], "float32 []", i, sums[i]};
    }
    members[30].name = names[7];
    assert_ok(stki_sums_write(stkt_path("x.npy"), members, MEMBERS, &err));
    assert_true(stki_sums_exist(stkt_path("x.npy")));
    assert_ok(stki_sums_open(stkt_path("x.npy"), &open, &err));
    for (int i = 0; i < MEMBERS; i++) {
        int is = i == 7 ? 30 : i;

        if (i == 30) {
            assert_status(stki_sums_find(open, names[i], "float32 []", i, &first, &err), STK_E_NOT_FOUND);
            continue;
        }
        assert_ok(stki_sums_find(open, names[i], "float32 []", is, &first, &err));
        for (int k = 0; k < is; k++) {
            assert_ok(stki_sums_check(open, first, k, (uint64_t)(is * 1000 + k), "p", &err));
            assert_status(stki_sums_check(open, first, k, (uint64_t)(is * 1000 + k + 1), "p", &err), STK_E_CORRUPT);
        }
    }
    assert_status(stki_sums_check(open, first, 1 << 20, 0, "p", &err), STK_E_RANGE);
    stki_sums_close(open);
    stki_sums_close(NULL);
}

static unsigned char whole[4096];

static int64_t read_sums(void)
{
    FILE *file = fopen(stkt_path("x.npy.sums"), "rb");
    size_t n;

    assert_non_null(file);
    n = fread(whole, 1, sizeof whole, file);
    fclose(file);
    return (int64_t)n;
}

/* Truncated anywhere, or with any byte changed, the file must be rejected with a status for damaged files. */
static void damaged(void **state)
{
    int64_t n;

    (void)state;
    data_file();
    write_sums_of_x();
    n = read_sums();
    assert_int_equal(n, 40 + 24 + 16 + 8 * RECORDS);
    assert_ok(stki_sums_validate(whole, n, "p", &err));
    for (int64_t cut = 0; cut < n; cut++) {
        unsigned char *exact = malloc(cut ? (size_t)cut : 1);

        memcpy(exact, whole, (size_t)cut);
        assert_status(stki_sums_validate(exact, cut, "p", &err), STK_E_TRUNCATED);
        free(exact);
    }
    for (int64_t at = 0; at < n; at++) {
        stk_status status;

        whole[at] ^= 0x81;
        status = stki_sums_validate(whole, n, "p", &err);
        if (at >= 16 && at < 24)
            assert_int_equal(status, STK_OK); /* the size of the data, which is compared with the data later */
        else
            assert_true(status == STK_E_CORRUPT || status == STK_E_TRUNCATED || status == STK_E_UNSUPPORTED);
        whole[at] ^= 0x81;
    }
    stkt_write_file(stkt_path("x.npy.sums"), whole, 0);
    refused((stki_reader_opts){0}, STK_E_TRUNCATED, "x.npy.sums: the file is truncated");
    stkt_write_file(stkt_path("x.npy.sums"), values, sizeof values);
    refused((stki_reader_opts){0}, STK_E_CORRUPT, "not a checksum file");
    whole[20] ^= 1;
    stkt_write_file(stkt_path("x.npy.sums"), whole, (size_t)n);
    refused((stki_reader_opts){0}, STK_E_MISMATCH, "a file whose size differs");
}

static void cut_while_open(void **state)
{
    stki_sums *sums;
    int64_t first;

    (void)state;
    data_file();
    write_sums_of_x();
    assert_ok(stki_sums_open(stkt_path("x.npy"), &sums, &err));
    assert_ok(stki_sums_find(sums, "", "uint8 [33]", RECORDS, &first, &err));
    assert_int_equal(truncate(stkt_path("x.npy.sums"), 60), 0);
    assert_status(stki_sums_check(sums, first, RECORDS - 1, 12345, "p", &err), STK_E_TRUNCATED);
    assert_says("x.npy.sums: record 49: the file was truncated");
    assert_int_equal(truncate(stkt_path("x.npy.sums"), 0), 0);
    stki_sums_close(sums);
}

static void every_allocation_failing(void **state)
{
    stki_memory_stats before, after;
    stk_status status = STK_E_MEMORY;
    int n = 0;

    (void)state;
    data_file();
    write_sums_of_x();
    stki_memory_read(STKI_MEM_HOST, &before);
    while (status == STK_E_MEMORY && n < 100) {
        stki_reader_opts opts = {.sums = true};
        stki_reader *reader = NULL;

        stki_memory_fail_at(++n);
        status = stki_reader_open(stkt_path("x.npy"), &opts, &reader, &err);
        stki_memory_fail_at(0);
        if (status == STK_OK)
            stki_reader_destroy(reader);
    }
    assert_int_equal(status, STK_OK);
    assert_in_range(n, 15, 40);
    status = STK_E_MEMORY;
    for (n = 0; status == STK_E_MEMORY && n < 100;) {
        stki_memory_fail_at(++n);
        status = stki_sums_write(stkt_path("x.npy"), NULL, 0, &err);
        stki_memory_fail_at(0);
    }
    assert_int_equal(status, STK_OK);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(before.bytes, after.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(any_layout_has_the_sum_of_its_values),
        cmocka_unit_test(one_byte_is_one_record),
        cmocka_unit_test(in_a_loader),
        cmocka_unit_test(sums_of_other_data),
        cmocka_unit_test(options_that_change_values),
        cmocka_unit_test(sums_of_an_older_version),
        cmocka_unit_test(many_members),
        cmocka_unit_test(damaged),
        cmocka_unit_test(cut_while_open),
        cmocka_unit_test(every_allocation_failing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
