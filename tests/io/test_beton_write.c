/* stki-threads */
/* Tests of writing .beton files. The expected digests come from an independent writer in Python, which was given the
 * same values. It follows the format's description, and FFCV reads its files. The bytes must not depend on the number
 * of threads. */
#include "allocate.h"
#include "beton.h"
#include "faults.h"
#include "format.h"
#include "io_files.h"
#include "output.h"
#include "sha256.h"
#include "stk_test.h"
#include "tensor_internal.h"
#include <stoker/dataset.h>

enum { FIELDS = 7, SAMPLES = 700, IMAGE_MOST = 130 * 135 * 3 };

#define ALL_DIGEST "4658d976bdcb234b17deb22d165b1f44c8060422ef9a5e13e74278fa8b23726c"
#define NUMBERS_DIGEST "b262571efe82ee5cb3a3fde7de9981da0e562baf6653dfe5a844609fd274c0e7"
#define EMPTY_DIGEST "75610ded7be2084c206ba5d2d574a5f34babfb737732ecafac6a72d337b6fe18"

static const int64_t nd_shape[2] = {3, 4}, tt_shape[2] = {2, 3};
static const stk_beton_field all_fields[FIELDS] = {
    {.name = "image", .kind = STK_BETON_IMAGE},
    {.name = "i", .kind = STK_BETON_INT},
    {.name = "f", .kind = STK_BETON_FLOAT},
    {.name = "by", .kind = STK_BETON_BYTES},
    {.name = "js", .kind = STK_BETON_JSON},
    {.name = "nd", .kind = STK_BETON_NDARRAY, .dtype = STK_F32, .ndim = 2, .shape = nd_shape},
    {.name = "tt", .kind = STK_BETON_TENSOR, .dtype = STK_F16, .ndim = 2, .shape = tt_shape},
};

/* The values of one sample, and the memory they refer to. */
struct sample {
    stk_beton_value values[FIELDS];
    unsigned char image[IMAGE_MOST], bytes[1000];
    char json[32];
    float nd[12];
    uint16_t tt[6];
};

static void make_sample(struct sample *s, int64_t i)
{
    int64_t height = 10 + i % 7 * 20, width = 15 + i % 5 * 30, bytes = i % 4 == 0 ? 0 : i * 37 % 1000;

    for (int64_t k = 0; k < height * width * 3; k++)
        s->image[k] = (unsigned char)(i * 31 + k * 7);
    for (int64_t k = 0; k < bytes; k++)
        s->bytes[k] = (unsigned char)(i + k);
    snprintf(s->json, sizeof s->json, "{\"id\": %d}", (int)i);
    for (int k = 0; k < 12; k++)
        s->nd[k] = (float)i + (float)k * 0.5F;
    for (int k = 0; k < 6; k++)
        s->tt[k] = stki_f32_to_f16((float)(i % 100 + k));
    memset(s->values, 0, sizeof s->values);
    s->values[0] = (stk_beton_value){.bytes = s->image, .size = height * width * 3, .height = height, .width = width};
    s->values[1].integer = i * i - 1000;
    s->values[2].real = (double)i / 3;
    s->values[3] = (stk_beton_value){.bytes = s->bytes, .size = bytes};
    s->values[4] = (stk_beton_value){.bytes = s->json, .size = (int64_t)strlen(s->json)};
    s->values[5] = (stk_beton_value){.bytes = s->nd, .size = sizeof s->nd};
    s->values[6] = (stk_beton_value){.bytes = s->tt, .size = sizeof s->tt};
}

static stk_status write_all(const char *path, uint32_t threads, stk_error *err)
{
    stk_beton_opts opts = STK_BETON_OPTS_INIT;
    struct sample *s = malloc(sizeof *s);
    stk_beton_writer *writer;
    stk_status status;

    opts.threads = threads;
    opts.page_bytes = 2 << 20;
    status = stk_beton_create(path, all_fields, FIELDS, SAMPLES, &opts, &writer, err);
    for (int64_t i = 0; i < SAMPLES && !status; i++) {
        make_sample(s, i);
        status = stk_beton_append(writer, s->values, 1, err);
        if (status)
            stk_beton_abort(writer);
    }
    free(s);
    return status ? status : stk_beton_commit(writer, err);
}

static char *read_file(const char *path, size_t *count)
{
    FILE *file = fopen(path, "rb");
    char *bytes;

    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *count = (size_t)ftell(file);
    rewind(file);
    bytes = malloc(*count + 1);
    assert_int_equal(fread(bytes, 1, *count, file), *count);
    fclose(file);
    return bytes;
}

static void check_digest(const char *path, const char *expected)
{
    size_t count;
    char *bytes = read_file(path, &count), digest[65];

    stkt_sha256_of(bytes, count, digest);
    assert_string_equal(digest, expected);
    free(bytes);
}

static void test_golden_any_threads(void **state)
{
    static const uint32_t threads[] = {1, 2, 3, 8, 0};
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        assert_ok(write_all(stkt_path("all.beton"), threads[i], &err));
        check_digest(stkt_path("all.beton"), ALL_DIGEST);
    }
}

static void test_golden_numbers(void **state)
{
    stk_beton_writer *writer;
    stk_beton_value values[5][2];
    stk_error err;

    (void)state;
    memset(values, 0, sizeof values);
    for (int64_t i = 0; i < 5; i++) {
        values[i][0].integer = i * i - 1000;
        values[i][1].real = (double)i / 3;
    }
    assert_ok(stk_beton_create(stkt_path("numbers.beton"), all_fields + 1, 2, 5, NULL, &writer, &err));
    assert_ok(stk_beton_append(writer, values[0], 2, &err));
    assert_ok(stk_beton_append(writer, values[2], 0, &err));
    assert_ok(stk_beton_append(writer, values[2], 3, &err));
    assert_ok(stk_beton_commit(writer, &err));
    /* the independent file has pages of 2 MiB; in a file without pages this changes one number in the header */
    {
        size_t count;
        char *bytes = read_file(stkt_path("numbers.beton"), &count), digest[65];
        uint32_t page = 2 << 20, found;

        memcpy(&found, bytes + 4, 4);
        assert_int_equal(found, 8 << 20); /* the default */
        memcpy(bytes + 4, &page, 4);
        stkt_sha256_of(bytes, count, digest);
        assert_string_equal(digest, NUMBERS_DIGEST);
        free(bytes);
    }
}

/* No two allocations have the same pointer, even if they are empty. */
static void test_golden_empty(void **state)
{
    stk_beton_opts opts = STK_BETON_OPTS_INIT;
    stk_beton_writer *writer;
    stk_beton_value values[3];
    stk_error err;

    (void)state;
    memset(values, 0, sizeof values);
    opts.page_bytes = 2 << 20;
    assert_ok(stk_beton_create(stkt_path("empty.beton"), all_fields + 3, 1, 3, &opts, &writer, &err));
    assert_ok(stk_beton_append(writer, values, 3, &err));
    assert_ok(stk_beton_commit(writer, &err));
    check_digest(stkt_path("empty.beton"), EMPTY_DIGEST);
}

/* ---- read back ---- */

static void check_record(const stki_reader *reader, int64_t i, stki_scratch *scratch, const void *bytes, int64_t size)
{
    stk_tensor t;
    stk_error err;

    assert_ok(reader->ops->read(reader, i, NULL, scratch, &t, &err));
    assert_int_equal(stk_tensor_nbytes(&t), size);
    if (size > 0)
        assert_memory_equal(t.data, bytes, (size_t)size);
    stki_reader_done(reader, &t);
}

static void test_read_back(void **state)
{
    const char *path = stkt_path("back.beton");
    struct sample *s = malloc(sizeof *s);
    stki_container *container;
    stki_reader *readers[FIELDS];
    stki_scratch scratch;
    stk_error err;

    (void)state;
    assert_ok(write_all(path, 2, &err));
    assert_ok(stki_container_open(path, NULL, &container, &err));
    assert_int_equal(container->member_count, FIELDS);
    for (int f = 0; f < FIELDS; f++)
        assert_ok(stki_container_reader(container, f, NULL, &readers[f], &err));
    stki_scratch_init(&scratch);
    for (int64_t i = SAMPLES - 1; i >= 0; i--) {
        make_sample(s, i);
        for (int f = 0; f < FIELDS; f++) {
            const stk_beton_value *v = &s->values[f];

            if (f == 1)
                check_record(readers[f], i, &scratch, &v->integer, 8);
            else if (f == 2)
                check_record(readers[f], i, &scratch, &v->real, 8);
            else
                check_record(readers[f], i, &scratch, v->bytes, v->size + (f == 4)); /* a string with its NUL */
        }
    }
    for (int f = 0; f < FIELDS; f++)
        stki_reader_destroy(readers[f]);
    stki_scratch_fini(&scratch);
    stki_container_release(container);
    free(s);
}

/* The JPEG from an oracle file is stored unchanged and can be decoded; its size must be the one that is stated. */
static void test_jpeg(void **state)
{
    const char *path = stkt_path("jpeg.beton");
    stk_beton_value value = {.jpeg = true, .height = 16, .width = 20};
    stk_beton_writer *writer;
    stki_container *container;
    stki_reader *reader;
    stki_scratch scratch;
    stk_tensor t;
    stk_error err;
    size_t count;
    char *file = read_file(STKT_TESTS_DIR "/oracle/beton/jpg_label.beton", &count), *jpeg;
    uint64_t table, entry[3];
    int rc;

    (void)state;
    memcpy(&table, file + 16, 8);
    memcpy(entry, file + table, sizeof entry); /* sample 0: 20 x 16 pixels */
    jpeg = file + entry[1];
    value.bytes = jpeg;
    value.size = (int64_t)entry[2];
    assert_ok(stk_beton_create(path, all_fields, 1, 2, NULL, &writer, &err));
    assert_ok(stk_beton_append(writer, &value, 1, &err));
    value.height = 17;
    assert_status(stk_beton_append(writer, &value, 1, &err), STK_E_BAD_VALUE);
    assert_int_equal(err.record, 1);
    assert_says("16 x 20 pixels in the JPEG image, expected 17 x 20");
    assert_status(stk_beton_append(writer, &value, 1, &err), STK_E_BAD_VALUE);
    assert_says("an earlier write failed");
    stk_beton_abort(writer);

    value.height = 16;
    assert_ok(stk_beton_create(path, all_fields, 1, 1, NULL, &writer, &err));
    assert_ok(stk_beton_append(writer, &value, 1, &err));
    assert_ok(stk_beton_commit(writer, &err));
    assert_ok(stki_container_open(path, NULL, &container, &err));
    assert_ok(stki_container_reader(container, 0, NULL, &reader, &err));
    stki_scratch_init(&scratch);
    assert_true(reader->copies);
    assert_ok(reader->ops->read(reader, 0, NULL, &scratch, &t, &err));
    assert_int_equal(t.shape[0], 16);
    assert_int_equal(t.shape[1], 20);
    stki_reader_done(reader, &t);
    stki_reader_destroy(reader);
    stki_container_release(container);

    /* a row with a wrong image size is detected when it is read */
    free(file);
    file = read_file(path, &count);
    file[24 + 1041 + 3]++;
    stkt_write_file(path, file, count);
    assert_ok(stki_container_open(path, NULL, &container, &err));
    assert_ok(stki_container_reader(container, 0, NULL, &reader, &err));
    rc = reader->ops->read(reader, 0, NULL, &scratch, &t, &err);
    assert_int_equal(rc, STK_E_CORRUPT);
    assert_says("a JPEG image of 16 x 20 pixels, expected 17 x 20, as in the row");
    stki_reader_destroy(reader);
    stki_container_release(container);
    stki_scratch_fini(&scratch);
    free(file);
}

/* ---- rejected fields and values ---- */

static void test_bad_fields(void **state)
{
    static const int64_t no_last[2] = {3, 0}, vast[2] = {INT64_C(1) << 40, INT64_C(1) << 40}, large[1] = {9 << 20};
    static const struct {
        stk_beton_field field;
        stk_status status;
        const char *says;
    } cases[] = {
        {{.name = "", .kind = STK_BETON_INT}, STK_E_BAD_ARG, "name"},
        {{.name = NULL, .kind = STK_BETON_INT}, STK_E_BAD_ARG, "name"},
        {{.name = "seventeen_letters", .kind = STK_BETON_INT}, STK_E_BAD_ARG, "17 bytes"},
        {{.name = "na\xc3\xafve", .kind = STK_BETON_INT}, STK_E_BAD_ARG, "ASCII"},
        {{.name = "a", .kind = (stk_beton_kind)7}, STK_E_BAD_ARG, "kind"},
        {{.name = "a", .kind = STK_BETON_NDARRAY, .dtype = STK_BF16, .ndim = 2, .shape = nd_shape},
         STK_E_UNSUPPORTED,
         "bfloat16"},
        {{.name = "a", .kind = STK_BETON_NDARRAY, .dtype = STK_F32}, STK_E_BAD_ARG, "0 axes"},
        {{.name = "a", .kind = STK_BETON_TENSOR, .dtype = STK_F32, .ndim = 2, .shape = no_last},
         STK_E_BAD_ARG,
         "last axis"},
        {{.name = "a", .kind = STK_BETON_TENSOR, .dtype = STK_F32, .ndim = 2, .shape = vast}, STK_E_BAD_ARG, "shape"},
        {{.name = "a", .kind = STK_BETON_TENSOR, .dtype = STK_U8, .ndim = 1, .shape = large},
         STK_E_LIMIT,
         "found 9437184 bytes, expected at most one page (page_bytes: 8388608)"},
    };
    stk_beton_writer *writer;
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_status(stk_beton_create(stkt_path("bad.beton"), &cases[i].field, 1, 1, NULL, &writer, &err),
                      cases[i].status);
        assert_says(cases[i].says);
        assert_says("bad.beton");
    }
    {
        stk_beton_field two[2] = {all_fields[1], all_fields[1]};

        assert_status(stk_beton_create(stkt_path("bad.beton"), two, 2, 1, NULL, &writer, &err), STK_E_BAD_ARG);
        assert_says("a unique name");
    }
    assert_status(stk_beton_create(stkt_path("bad.beton"), all_fields, 0, 1, NULL, &writer, &err), STK_E_BAD_ARG);
    assert_status(stk_beton_create(stkt_path("bad.beton"), all_fields, 65536, 1, NULL, &writer, &err), STK_E_BAD_ARG);
    assert_status(stk_beton_create(stkt_path("bad.beton"), all_fields, 1, -1, NULL, &writer, &err), STK_E_BAD_ARG);
    for (int bit = 0; bit < 40; bit++) {
        int64_t page = INT64_C(1) << bit;
        stk_beton_opts opts = {.struct_size = sizeof opts, .page_bytes = page + (page == 1 << 22)};

        if (page < 2 << 20 || page > INT64_C(2) << 30 || page == 1 << 22)
            assert_status(stk_beton_create(stkt_path("bad.beton"), all_fields, 1, 1, &opts, &writer, &err),
                          STK_E_BAD_ARG);
    }
    assert_int_equal(access(stkt_path("bad.beton"), F_OK), -1);
}

/* A file without records is valid: 16 bytes of header and the field. */
static void test_no_records(void **state)
{
    stk_beton_writer *writer;
    stki_container *c;
    stk_error err;

    (void)state;
    assert_ok(stk_beton_create(stkt_path("none.beton"), all_fields, 2, 0, NULL, &writer, &err));
    assert_ok(stk_beton_commit(writer, &err));
    assert_ok(stki_container_open(stkt_path("none.beton"), &(stki_reader_opts){0}, &c, &err));
    assert_int_equal(c->member_count, 2);
    assert_int_equal(c->members[0].count, 0);
    stki_container_release(c);
    assert_ok(stk_beton_create(stkt_path("few.beton"), all_fields, 2, 1, NULL, &writer, &err));
    assert_status(stk_beton_commit(writer, &err), STK_E_MISMATCH); /* one record was announced */
}

/* Writes a value that must be rejected. */
static void check_value(int field, stk_beton_value value, stk_status expected, const char *says)
{
    const char *path = stkt_path("value.beton");
    stk_beton_opts opts = STK_BETON_OPTS_INIT;
    stk_beton_writer *writer;
    stk_error err;

    opts.page_bytes = 2 << 20;
    assert_ok(stk_beton_create(path, all_fields + field, 1, 1, &opts, &writer, &err));
    assert_status(stk_beton_append(writer, &value, 1, &err), expected);
    assert_says(says);
    assert_int_equal(err.record, 0);
    assert_status(stk_beton_commit(writer, &err), expected);
    assert_int_equal(access(path, F_OK), -1);
}

static void test_bad_values(void **state)
{
    static const char bytes[64] = "{\"a\": }";

    (void)state;
    check_value(0, (stk_beton_value){.bytes = bytes, .size = 3, .height = 1, .width = 65536}, STK_E_BAD_VALUE,
                "1 x 65536");
    check_value(0, (stk_beton_value){.bytes = bytes, .size = 3, .height = 0, .width = 1}, STK_E_BAD_VALUE, "0 x 1");
    check_value(0, (stk_beton_value){.bytes = bytes, .size = 13, .height = 2, .width = 2}, STK_E_BAD_VALUE,
                "found 13 bytes, expected 12 for 2 x 2 pixels");
    check_value(0, (stk_beton_value){.bytes = bytes, .size = 64, .height = 2, .width = 2, .jpeg = true},
                STK_E_UNSUPPORTED, "value.beton");
    check_value(3, (stk_beton_value){.bytes = bytes, .size = -1}, STK_E_BAD_VALUE, "-1 bytes");
    check_value(4, (stk_beton_value){.bytes = bytes, .size = 7}, STK_E_BAD_VALUE, "field 'js'");
    check_value(5, (stk_beton_value){.bytes = bytes, .size = 47}, STK_E_BAD_VALUE, "found 47 bytes, expected 48");
}

/* Row F06: the error for a record larger than a page has both numbers (libffcv/ffcv#135 printed a placeholder). */
static void test_f06_larger_than_page(void **state)
{
    char *bytes = calloc(1, 4 << 20);

    (void)state;
    check_value(3, (stk_beton_value){.bytes = bytes, .size = 4 << 20}, STK_E_LIMIT,
                "found 4194304 bytes, expected at most 2097152 (page_bytes)");
    check_value(3, (stk_beton_value){.bytes = bytes, .size = (2 << 20) + 1}, STK_E_LIMIT, "found 2097153 bytes");
    free(bytes);
}

/* A region of exactly a page fits; the next sample begins the next page. */
static void test_exact_page(void **state)
{
    const char *path = stkt_path("exact.beton");
    stk_beton_opts opts = STK_BETON_OPTS_INIT;
    stk_beton_writer *writer;
    char *bytes = calloc(1, 2 << 20);
    stk_beton_value values[2] = {{.bytes = bytes, .size = 2 << 20}, {.bytes = bytes, .size = 1}};
    struct stat st;
    stk_error err;

    (void)state;
    opts.page_bytes = 2 << 20;
    assert_ok(stk_beton_create(path, all_fields + 3, 1, 2, &opts, &writer, &err));
    assert_ok(stk_beton_append(writer, values, 2, &err));
    assert_ok(stk_beton_commit(writer, &err));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 3 * (2 << 20) + 48);
    free(bytes);
}

static void test_wrong_count(void **state)
{
    const char *path = stkt_path("count.beton");
    stk_beton_value values[3];
    stk_beton_writer *writer;
    stk_error err;

    (void)state;
    memset(values, 0, sizeof values);
    assert_ok(stk_beton_create(path, all_fields + 1, 1, 2, NULL, &writer, &err));
    assert_ok(stk_beton_append(writer, values, 1, &err));
    assert_status(stk_beton_commit(writer, &err), STK_E_MISMATCH);
    assert_says("found 1, expected 2");
    assert_ok(stk_beton_create(path, all_fields + 1, 1, 2, NULL, &writer, &err));
    assert_status(stk_beton_append(writer, values, 3, &err), STK_E_RANGE);
    stk_beton_abort(writer);
    stk_beton_abort(NULL);
    assert_int_equal(access(path, F_OK), -1);
}

/* ---- failures ---- */

/* The n-th write, sync, … fails on any thread: the result is an error and no file, except after the rename. */
static void test_output_fails(void **state)
{
    const char *path = stkt_path("fails.beton");
    stki_memory_stats before, after;
    stk_error err;

    (void)state;
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int call = 0; call < STKT_CALLS; call++)
        for (int64_t n = 1; n < 30; n++) {
            stk_status status;

            stkt_fail_call((enum stkt_call)call, n, ENOSPC);
            status = write_all(path, 1 + (uint32_t)(n % 3), &err);
            stkt_fail_call((enum stkt_call)call, 0, 0);
            if (!status) {
                assert_true(n > 1);
                assert_int_equal(unlink(path), 0);
                break;
            }
            assert_int_equal(status, STK_E_IO);
            assert_int_equal(unlink(path), call == STKT_SYNC_DIRECTORY ? 0 : -1);
            stki_memory_read(STKI_MEM_HOST, &after);
            assert_int_equal(before.blocks, after.blocks);
        }
}

/* Row P12: a full disk is an error of a write, not a signal, on any thread. */
static void test_p12_full_disk(void **state)
{
    static const uint32_t threads[] = {1, 3};
    stk_error err;

    (void)state;
    if (access("/dev/full", W_OK))
        skip();
    for (size_t i = 0; i < 2; i++) {
        assert_status(write_all("/dev/full", threads[i], &err), STK_E_IO);
        assert_says("/dev/full");
        assert_says("No space left");
    }
}

static void test_no_memory(void **state)
{
    const char *path = stkt_path("nomemory.beton");
    stki_memory_stats before, after;
    stk_error err;
    int64_t n;

    (void)state;
    stki_memory_read(STKI_MEM_HOST, &before);
    for (n = 1;; n++) {
        stk_status status;

        stki_memory_fail_at(n);
        status = write_all(path, 1 + (uint32_t)(n % 3), &err);
        if (!status)
            break;
        assert_int_equal(status, STK_E_MEMORY);
        assert_int_equal(access(path, F_OK), -1);
        stki_memory_read(STKI_MEM_HOST, &after);
        assert_int_equal(before.blocks, after.blocks);
    }
    stki_memory_fail_at(0);
    assert_true(n > 6);
    check_digest(path, ALL_DIGEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_any_threads),
        cmocka_unit_test(test_golden_numbers),
        cmocka_unit_test(test_golden_empty),
        cmocka_unit_test(test_read_back),
        cmocka_unit_test(test_jpeg),
        cmocka_unit_test(test_no_records),
        cmocka_unit_test(test_bad_fields),
        cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_f06_larger_than_page),
        cmocka_unit_test(test_exact_page),
        cmocka_unit_test(test_wrong_count),
        cmocka_unit_test(test_output_fails),
        cmocka_unit_test(test_p12_full_disk),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
