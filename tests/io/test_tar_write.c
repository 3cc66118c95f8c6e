/* Tests of writing tar archives: the bytes of Python's tarfile (tests/data/written), reading them back, keys and sizes
 * at the limits of their fields, and failures. */
#include "allocate.h"
#include "container.h"
#include "faults.h"
#include "file_compare.h"
#include "format.h"
#include "output.h"
#include "source_opts.h"
#include "tar.h"
#include "tar_write.h"
#include <stoker/dataset.h>

static stk_error err;

static const char *repeated(char *to, char letter, int count, const char *end)
{
    memset(to, letter, (size_t)count);
    strcpy(to + count, end);
    return to;
}

/* ---- bytes of another writer ---- */

static stk_status write_golden(const char *path, stk_error *error)
{
    static char ones[600], xs[512], every[256], key96[120], key97[120], long_key[320];
    const stk_tar_file first[2] = {{"jpg", "abc", 3}, {"cls", "7", 1}},
                       second[2] = {{"jpg", ones, 600}, {"cls", "-12", 3}}, none = {"npy", NULL, 0},
                       block = {"npy", xs, 512}, picture = {"seg.png", every, 256}, text = {"txt", "long", 4};
    stk_tar_writer *w;
    stk_status status = stk_tar_create(path, &w, error);

    memset(ones, '1', sizeof ones);
    memset(xs, 'x', sizeof xs);
    for (int i = 0; i < 256; i++)
        every[i] = (char)i;
    if (status)
        return status;
    status = stk_tar_append(w, "0/000000000", first, 2, error);
    status = status ? status : stk_tar_append(w, "0/000000001", second, 2, error);
    status = status ? status : stk_tar_append(w, repeated(key96, 'k', 96, ""), &none, 1, error);
    status = status ? status : stk_tar_append(w, repeated(key97, 'k', 97, ""), &block, 1, error);
    status = status ? status : stk_tar_append(w, "gr\303\266\303\237e/bild", &picture, 1, error);
    status = status ? status : stk_tar_append(w, repeated(long_key, 'l', 300, "/m"), &text, 1, error);
    if (!status)
        return stk_tar_commit(w, error);
    stk_tar_abort(w);
    return status;
}

static void test_golden(void **state)
{
    const char *path = stkt_path("golden.tar"), *golden = STKT_TESTS_DIR "/data/written/samples.tar";

    (void)state;
    assert_ok(write_golden(path, &err));
    if (getenv("STKT_WRITE_GOLDEN")) /* then run check_written.py */
        assert_int_equal(rename(path, golden), 0);
    else
        stkt_same_files(path, golden);
}

/* ---- reading back ---- */

enum { SAMPLES = 200, MOST = 70000 };

static int64_t size_of(int64_t sample)
{
    return sample % 5 == 0 ? 0 : sample * sample * 331 % MOST;
}

static void test_read_back(void **state)
{
    static char bytes[MOST];
    const char *path = stkt_path("back.tar");
    const stki_reader_opts opts = *stkt_source("{name: bin, index_cache: none}");
    stki_container *container;
    stki_reader *reader;
    stki_scratch scratch;
    stk_tar_writer *w;
    int64_t member;

    (void)state;
    for (int i = 0; i < MOST; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    assert_ok(stk_tar_create(path, &w, &err));
    for (int64_t i = 0; i < SAMPLES; i++) {
        char key[32], label[24];
        stk_tar_file files[2] = {{"bin", bytes + i, size_of(i) - (size_of(i) > i ? i : 0)}, {"cls", label, 0}};

        snprintf(key, sizeof key, "%09d", (int)i);
        files[1].size = snprintf(label, sizeof label, "%d", (int)(i * 3 - 100));
        assert_ok(stk_tar_append(w, key, files, 2, &err));
    }
    assert_ok(stk_tar_commit(w, &err));
    assert_int_equal(stkt_file_bytes(path) % 10240, 0);
    assert_ok(stki_container_open(path, &opts, &container, &err));
    assert_int_equal(container->warning_count, 0);
    assert_ok(stki_container_find(container, &opts, &member, &err));
    assert_ok(stki_container_reader(container, member, &opts, &reader, &err));
    assert_int_equal(reader->count, SAMPLES);
    stki_scratch_init(&scratch);
    for (int64_t i = 0; i < SAMPLES; i++) {
        int64_t size = size_of(i) - (size_of(i) > i ? i : 0);
        stk_tensor sample;

        assert_ok(reader->ops->read(reader, i, NULL, &scratch, &sample, &err));
        assert_int_equal(sample.shape[0], size);
        assert_true(size == 0 || !memcmp(sample.data, bytes + i, (size_t)size));
        stki_reader_done(reader, &sample);
    }
    stki_scratch_fini(&scratch);
    reader->ops->destroy(reader);
    stki_container_release(container);
}

/* Sizes that do not fit in eleven octal digits are stored in a pax record. They are checked with the reader's parsers,
 * which are tested against other libraries. */
static void test_large_sizes(void **state)
{
    static const int64_t sizes[] = {0, (INT64_C(1) << 33) - 1, INT64_C(1) << 33, INT64_C(1) << 40, INT64_MAX};
    const char *name = stkt_path("sizes");

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        stki_tar_pax pax = STKI_TAR_NO_PAX;
        stki_tar_header header;
        stki_output *o;
        int64_t count;
        char *bytes;

        assert_ok(stki_output_hold("x.tar", name, -1, &o, &err));
        assert_ok(stki_tar_put_header(o, "key", "bin", sizes[i], &err));
        assert_ok(stki_output_commit(o, &err));
        bytes = stkt_read_whole(name, &count);
        assert_ok(stki_tar_read_header(bytes, 0, "x.tar", &header, &err));
        if (i < 2) {
            assert_int_equal(count, 512);
            assert_int_equal(header.what, STKI_TAR_FILE);
            assert_int_equal(header.size, sizes[i]);
        } else {
            assert_int_equal(count, 3 * 512);
            assert_int_equal(header.what, STKI_TAR_PAX);
            assert_ok(stki_tar_read_pax(bytes + 512, header.size, 512, "x.tar", &pax, &err));
            assert_int_equal(pax.size, sizes[i]);
            assert_null(pax.path.text);
            assert_ok(stki_tar_read_header(bytes + 1024, 1024, "x.tar", &header, &err));
            assert_int_equal(header.what, STKI_TAR_FILE);
            assert_string_equal(header.name, "key.bin");
        }
        free(bytes);
    }
}

/* The length of a pax record includes its own digits: lengths around each power of ten. */
static void test_pax_lengths(void **state)
{
    static char key[1100];
    const char *name = stkt_path("lengths");

    (void)state;
    for (int length = 97; length < 1010; length += length == 110 ? 860 : 1) {
        stki_tar_pax pax = STKI_TAR_NO_PAX;
        stki_tar_header header;
        stki_output *o;
        int64_t count;
        char *bytes;

        assert_ok(stki_output_hold("x.tar", name, -1, &o, &err));
        assert_ok(stki_tar_put_header(o, repeated(key, 'a', length, ""), "bin", 1, &err));
        assert_ok(stki_output_commit(o, &err));
        bytes = stkt_read_whole(name, &count);
        assert_ok(stki_tar_read_header(bytes, 0, "x.tar", &header, &err));
        assert_int_equal(header.what, STKI_TAR_PAX);
        assert_ok(stki_tar_read_pax(bytes + 512, header.size, 512, "x.tar", &pax, &err));
        assert_int_equal(pax.path.bytes, length + 4);
        free(bytes);
    }
}

/* ---- rejected keys and files ---- */

static void refuse(const char *key, const stk_tar_file *files, int count, const char *says)
{
    const stk_tar_file before = {"x", "1", 1};
    stk_tar_writer *w;

    assert_ok(stk_tar_create(stkt_path("refused.tar"), &w, &err));
    assert_ok(stk_tar_append(w, "before", &before, 1, &err));
    assert_status(stk_tar_append(w, key, files, count, &err), STK_E_BAD_ARG);
    assert_says(says);
    assert_status(stk_tar_append(w, "behind", &before, 1, &err), STK_E_BAD_ARG);
    assert_says("an earlier call failed");
    assert_status(stk_tar_commit(w, &err), STK_E_BAD_ARG);
    assert_int_equal(stkt_files_beginning("refused"), 0);
}

static void test_refused(void **state)
{
    static const char *const keys[] = {"",   "a.b",  "d/.hidden", ".x",    "/root",   "a/../b",
                                       "..", "dir/", "a\nb",      "a\377", "a/__b/.", "__x__/y"};
    const stk_tar_file one = {"bin", "1", 1}, twice[2] = {{"bin", "1", 1}, {"bin", "2", 1}}, upper = {"JPG", "1", 1},
                       slash = {"a/b", "1", 1}, empty = {"", "1", 1}, missing = {NULL, "1", 1}, null = {"bin", NULL, 1},
                       negative = {"bin", "1", -1};
    stk_tar_writer *w;

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        refuse(keys[i], &one, 1, "invalid sample key");
    refuse(NULL, &one, 1, "key");
    refuse("before", &one, 1, "would be read as one");
    refuse("key", NULL, 1, "files");
    refuse("key", &one, 0, "a sample without files: found 0, expected at least 1");
    refuse("key", twice, 2, "two files of the sample have the extension .bin");
    refuse("key", &upper, 1, "lower case");
    refuse("key", &slash, 1, "without a slash");
    refuse("key", &empty, 1, "extension");
    refuse("key", &missing, 1, "extension");
    refuse("key", &null, 1, "bytes");
    refuse("key", &negative, 1, "size of the .bin file: found -1");
    assert_status(stk_tar_create(NULL, &w, &err), STK_E_BAD_ARG);
    assert_status(stk_tar_create("x.tar", NULL, &err), STK_E_BAD_ARG);
    assert_status(stk_tar_append(NULL, "k", &one, 1, &err), STK_E_BAD_ARG);
    assert_status(stk_tar_commit(NULL, &err), STK_E_BAD_ARG);
    stk_tar_abort(NULL);
}

/* ---- failures ---- */

static void test_every_allocation_failing(void **state)
{
    stk_status status = STK_E_MEMORY;

    (void)state;
    for (int64_t n = 1; status; n++) {
        stki_memory_fail_at(n);
        status = write_golden(stkt_path("memory.tar"), &err);
        stki_memory_fail_at(0);
        assert_true(status == STK_OK || status == STK_E_MEMORY);
        assert_true(status == STK_OK || stkt_files_beginning("memory") == 0);
        assert_true(n < 1000);
    }
    stkt_same_files(stkt_path("memory.tar"), STKT_TESTS_DIR "/data/written/samples.tar");
}

static void test_every_call_failing(void **state)
{
    (void)state;
    for (int call = 0; call < STKT_CALLS; call++) {
        stkt_fail_call((enum stkt_call)call, 1, ENOSPC);
        assert_status(write_golden(stkt_path("calls.tar"), &err), STK_E_IO);
        assert_says("calls.tar");
        assert_int_equal(stkt_files_beginning("calls"), call == STKT_SYNC_DIRECTORY);
        assert_int_equal(unlink(stkt_path("calls.tar")), call == STKT_SYNC_DIRECTORY ? 0 : -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_read_back),
        cmocka_unit_test(test_large_sizes),
        cmocka_unit_test(test_pax_lengths),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_every_allocation_failing),
        cmocka_unit_test(test_every_call_failing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
