/* Tests of arrays in .npz files, which are built byte by byte: their positions, the memory for unpacking, and damaged
 * files. Files written by NumPy are in tests/oracle. */
#include "allocate.h"
#include "container.h"
#include "faults.h"
#include "format.h"
#include "io_files.h"
#include "npz.h"
#include "source_opts.h"
#include "stk_test.h"
#include "zip_build.h"
#include <stoker/tensor.h>
#include <sys/wait.h>

static stk_error err;

enum { ROWS = 40, ROW = 25 };

/* An .npy with i32 rows that count from `first`; the header text has `padding` additional bytes. */
static size_t make_npy(char *to, int first, size_t padding)
{
    size_t text =
        (size_t)snprintf(to + 10, 200, "{'descr': '<i4', 'fortran_order': False, 'shape': (%d, %d), }", ROWS, ROW);

    memset(to + 10 + text, ' ', padding);
    text += padding;
    to[10 + text++] = '\n';
    memcpy(to, "\x93NUMPY\x01\x00", 8);
    to[8] = (char)(text & 0xFF);
    to[9] = (char)(text >> 8);
    for (int32_t i = 0; i < ROWS * ROW; i++) {
        int32_t number = first + i;
        memcpy(to + 10 + text + 4 * (size_t)i, &number, 4);
    }
    return 10 + text + 4 * ROWS * ROW;
}

static void add_stored(stkt_zip *zip, const char *name, const void *bytes, size_t count)
{
    stkt_zip_add(zip, &(stkt_zip_member){.name = name, .data = bytes, .bytes = count});
}

static void add_deflated(stkt_zip *zip, const char *name, const void *bytes, size_t count)
{
    size_t packed_bytes;
    void *packed = stkt_deflate(bytes, count, &packed_bytes);

    stkt_zip_add(zip, &(stkt_zip_member){.name = name,
                                         .data = packed,
                                         .bytes = packed_bytes,
                                         .size = count,
                                         .crc = (uint32_t)crc32(0, bytes, (uInt)count),
                                         .method = 8});
    free(packed);
}

static const char *finish(stkt_zip *zip)
{
    const char *path = stkt_path("test.npz");

    stkt_zip_end(zip, 0, "");
    stkt_write_file(path, zip->bytes, zip->count);
    free(zip->bytes);
    *zip = (stkt_zip){0};
    return path;
}

/* Writes "stored.npy" and three deflated arrays "one", "two" and "three" that count from 1000, 2000 and 3000. */
static const char *four_arrays(void)
{
    static char npy[10000];
    static const char *const names[] = {"stored.npy", "one.npy", "two.npy", "three.npy"};
    stkt_zip zip = {0};

    for (int i = 0; i < 4; i++) {
        size_t bytes = make_npy(npy, 1000 * i, 0);

        if (i)
            add_deflated(&zip, names[i], npy, bytes);
        else
            add_stored(&zip, names[i], npy, bytes);
    }
    return finish(&zip);
}

static void check_values(const stki_container *c, int64_t member, const stki_reader_opts *opts, int first)
{
    stki_array array;
    stk_tensor tensor;
    stki_reader *reader;
    stki_scratch scratch;

    assert_ok(stki_container_array(c, member, opts, &array, &err));
    assert_ok(stki_array_tensor(&array, c->path, &tensor, &err));
    stki_array_release(&array);
    assert_int_equal(tensor.ndim, 2);
    for (int i = 0; i < ROWS * ROW; i++) {
        int32_t number;
        memcpy(&number, (char *)tensor.data + 4 * i, 4); /* may be unaligned */
        assert_int_equal(number, first + i);
    }
    stk_tensor_release(&tensor);

    stki_scratch_init(&scratch);
    assert_ok(stki_container_reader(c, member, opts, &reader, &err));
    assert_int_equal(reader->count, ROWS);
    for (int row = ROWS - 1; row >= 0; row--) {
        int32_t number;

        assert_ok(reader->ops->read(reader, row, NULL, &scratch, &tensor, &err));
        memcpy(&number, (char *)tensor.data + 4 * (ROW - 1), 4);
        assert_int_equal(number, first + row * ROW + ROW - 1);
        stki_reader_done(reader, &tensor);
    }
    stki_reader_destroy(reader);
    stki_scratch_fini(&scratch);
}

static int64_t find(const stki_container *c, const char *name)
{
    int64_t member;

    assert_ok(stki_container_find(c, &(stki_reader_opts){.name = name}, &member, &err));
    return member;
}

/* Row N30: the last of several deflated members. Row N33: if a mapping is requested, a stored member is mapped and a
 * deflated one reports that it was copied. */
static void test_stored_and_deflated(void **state)
{
    const char *path = four_arrays();
    const enum stki_access modes[] = {STKI_ACCESS_MMAP, STKI_ACCESS_PREAD};

    (void)state;
    for (int i = 0; i < 2; i++) {
        stki_reader_opts opts = {.access = modes[i], .verify = true};
        stki_container *c;
        stki_reader *reader;

        assert_ok(stki_container_open(path, &opts, &c, &err));
        assert_string_equal(c->ops->format, "npz");
        assert_int_equal(c->member_count, 4);
        assert_string_equal(c->members[0].layout, "contiguous");
        assert_true(c->members[0].offset > 0);
        assert_non_null(c->members[0].strides);
        assert_string_equal(c->members[3].layout, "deflated");
        assert_int_equal(c->members[3].offset, -1);
        check_values(c, find(c, "stored"), &opts, 0);
        check_values(c, find(c, "three"), &opts, 3000);
        check_values(c, find(c, "one"), &opts, 1000);

        assert_ok(stki_container_reader(c, find(c, "stored"), &opts, &reader, &err));
        assert_string_equal(reader->access, i ? "pread" : "mmap");
        assert_true(i || reader->base);
        stki_reader_destroy(reader);
        assert_ok(stki_container_reader(c, find(c, "two"), &opts, &reader, &err));
        assert_string_equal(reader->access, "memory");
        assert_non_null(strstr(reader->note, "decompressed"));
        stki_container_release(c); /* readers keep what they need */
        assert_non_null(reader->base);
        stki_reader_destroy(reader);
    }
}

static void test_memory_limit(void **state)
{
    stki_reader_opts opts = *stkt_source("{memory_limit: 1000}");
    stki_container *c;
    stki_array array;

    (void)state;
    assert_ok(stki_container_open(four_arrays(), &opts, &c, &err));
    assert_status(stki_container_array(c, find(c, "two"), &opts, &array, &err), STK_E_LIMIT);
    assert_says("memory_limit");
    assert_says("1000");
    check_values(c, find(c, "stored"), &opts, 0); /* needs no unpacking */
    opts.source = NULL;
    check_values(c, find(c, "two"), &opts, 2000);
    stki_container_release(c);
}

/* The CRC of unpacked members is always verified, that of mapped ones on request. */
static void test_crc(void **state)
{
    static char npy[10000];
    size_t bytes = make_npy(npy, 0, 0);
    stki_reader_opts opts = {.verify = false};
    stkt_zip zip = {0};
    stki_container *c;
    stki_array array;

    (void)state;
    stkt_zip_add(&zip, &(stkt_zip_member){.name = "s.npy", .data = npy, .bytes = bytes, .crc = 7});
    finish(&zip);
    assert_ok(stki_container_open(stkt_path("test.npz"), &opts, &c, &err));
    check_values(c, 0, &opts, 0);
    opts.verify = true;
    assert_status(stki_container_array(c, 0, &opts, &array, &err), STK_E_CORRUPT);
    assert_says("CRC");
    assert_says("s.npy");
    stki_container_release(c);
}

/* Headers that are longer than the first read, stored and deflated, and one above the limit. */
static void test_long_headers(void **state)
{
    static char npy[80000];
    stki_reader_opts opts = {.verify = true};
    stkt_zip zip = {0};
    stki_container *c;
    stki_array array;
    size_t bytes;

    (void)state;
    bytes = make_npy(npy, 5, 30000);
    add_stored(&zip, "s.npy", npy, bytes);
    add_deflated(&zip, "d.npy", npy, bytes);
    finish(&zip);
    assert_ok(stki_container_open(stkt_path("test.npz"), &opts, &c, &err));
    check_values(c, 0, &opts, 5);
    check_values(c, 1, &opts, 5);
    stki_container_release(c);
    opts = *stkt_source("{verify: true, header_limit: 20000}");
    assert_ok(stki_container_open(stkt_path("test.npz"), &opts, &c, &err));
    assert_status(stki_container_array(c, 0, &opts, &array, &err), STK_E_LIMIT);
    assert_says("header_limit");
    stki_container_release(c);
}

static void test_names(void **state)
{
    static char npy[10000];
    size_t bytes = make_npy(npy, 0, 0);
    stkt_zip zip = {0};
    stki_container *c;
    stki_array array;

    (void)state;
    add_stored(&zip, "x.npy", npy, bytes);
    add_stored(&zip, "folder/", "", 0);
    add_stored(&zip, "notes.txt", "hello", 5);
    add_stored(&zip, "plain", npy, bytes);
    make_npy(npy, 70, 0);
    add_stored(&zip, "x", npy, bytes); /* the same name as the first member */
    add_stored(&zip, "a.npy.npy", npy, bytes);
    finish(&zip);
    assert_ok(stki_container_open(stkt_path("test.npz"), NULL, &c, &err));
    assert_int_equal(c->member_count, 5);
    assert_string_equal(c->members[0].name, "folder/");
    assert_int_equal(c->members[0].kind, STKI_MEMBER_OTHER);
    assert_int_equal(c->members[1].kind, STKI_MEMBER_OTHER);
    assert_int_equal(c->members[1].status, STK_E_UNSUPPORTED);
    assert_status(stki_container_array(c, 1, NULL, &array, &err), STK_E_UNSUPPORTED);
    check_values(c, find(c, "plain"), NULL, 0);
    check_values(c, find(c, "x"), NULL, 70);
    check_values(c, find(c, "a.npy"), NULL, 70);
    assert_int_equal(c->warning_count, 1);
    assert_non_null(strstr(c->warnings[0], "named x"));
    stki_container_release(c);
}

/* Raw bytes whose dtype the user names; the other arrays keep theirs. */
static void test_alias(void **state)
{
    static char npy[10000], raw[200];
    size_t text = (size_t)snprintf(raw + 10, 100, "{'descr': '<V2', 'fortran_order': False, 'shape': (3,), }\n");
    stki_reader_opts opts = {.alias_dtype = STK_BF16};
    stkt_zip zip = {0};
    stki_container *c;
    stki_array array;

    (void)state;
    memcpy(raw, "\x93NUMPY\x01\x00", 8);
    raw[8] = (char)text;
    add_stored(&zip, "x.npy", npy, make_npy(npy, 0, 0));
    add_deflated(&zip, "v.npy", raw, 10 + text + 6);
    finish(&zip);
    assert_ok(stki_container_open(stkt_path("test.npz"), NULL, &c, &err));
    assert_status(stki_container_array(c, 1, NULL, &array, &err), STK_E_UNSUPPORTED);
    stki_container_release(c);
    assert_ok(stki_container_open(stkt_path("test.npz"), &opts, &c, &err));
    assert_int_equal(c->members[0].dtype, STK_I32);
    assert_int_equal(c->members[1].dtype, STK_BF16);
    assert_ok(stki_container_array(c, 1, &opts, &array, &err));
    assert_int_equal(array.dtype, STK_BF16);
    stki_array_release(&array);
    assert_status(stki_container_array(c, 0, &opts, &array, &err), STK_E_MISMATCH);
    stki_container_release(c);
}

/* Row N29: files of savez_compressed, whose local headers have zip64 fields that must be ignored. */
static void test_savez_compressed(void **state)
{
    stki_container *c;
    stki_array array;

    (void)state;
    assert_ok(stki_container_open(STKT_TESTS_DIR "/oracle/npz/savez_compressed.npz", NULL, &c, &err));
    assert_int_equal(c->member_count, 6);
    for (int i = 0; i < 6; i++) {
        assert_ok(stki_container_array(c, i, NULL, &array, &err));
        stki_array_release(&array);
    }
    stki_container_release(c);
}

/* Allocations are limited by the size of the file. */
static void test_false_sizes(void **state)
{
    static const char *const files[] = {"bad_zip64_lying_size.npz", "bad_bomb_lying_size.npz",
                                        "bad_csize_past_eof.npz"};
    char path[400];

    (void)state;
    for (int i = 0; i < 3; i++) {
        stki_memory_stats before, after;
        stki_container *c;
        stki_array array;

        snprintf(path, sizeof path, "%s/oracle/npz/%s", STKT_TESTS_DIR, files[i]);
        stki_memory_reset_peak(STKI_MEM_HOST);
        stki_memory_read(STKI_MEM_HOST, &before);
        assert_ok(stki_container_open(path, NULL, &c, &err));
        assert_true(stki_container_array(c, 0, NULL, &array, &err) < 0);
        stki_container_release(c);
        stki_memory_read(STKI_MEM_HOST, &after);
        assert_true(after.peak_bytes - before.bytes < 200000);
    }
}

/* A container opened before a fork works in the child, because it does not use the file position. */
static void test_fork(void **state)
{
    const char *path = four_arrays();
    const enum stki_access modes[] = {STKI_ACCESS_MMAP, STKI_ACCESS_PREAD};

    (void)state;
    for (int i = 0; i < 2; i++) {
        stki_reader_opts opts = {.access = modes[i]};
        stki_container *c;
        int result;
        pid_t child;

        assert_ok(stki_container_open(path, &opts, &c, &err));
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            check_values(c, 0, &opts, 0);
            check_values(c, 3, &opts, 3000);
            _exit(0);
        }
        check_values(c, 2, &opts, 2000);
        check_values(c, 0, &opts, 0);
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_int_equal(result, 0);
        stki_container_release(c);
    }
}

static stk_status open_and_read(const char *path, enum stki_access access)
{
    stki_reader_opts opts = {.access = access};
    stki_container *c;
    stki_reader *reader;
    stk_status status = stki_container_open(path, &opts, &c, &err);

    if (status)
        return status;
    status = stki_container_reader(c, c->member_count - 1, &opts, &reader, &err);
    if (!status)
        stki_reader_destroy(reader);
    stki_container_release(c);
    return status;
}

static void test_memory(void **state)
{
    const char *path = four_arrays();
    stki_memory_stats before, after;
    int failures = 0;

    (void)state;
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int n = 1;; n++) {
        stki_memory_fail_at(n);
        if (!open_and_read(path, STKI_ACCESS_PREAD) && n > 40)
            break;
        failures += err.status == STK_E_MEMORY;
    }
    stki_memory_fail_at(0);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_true(failures > 20);
    assert_int_equal(before.bytes, after.bytes);
    for (int n = 1;; n++) {
        stkt_fail_read(n, 5 /* EIO */);
        if (!open_and_read(path, STKI_ACCESS_PREAD))
            break;
        assert_int_equal(err.status, STK_E_IO);
    }
    stkt_fail_read(0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stored_and_deflated),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_crc),
        cmocka_unit_test(test_long_headers),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_alias),
        cmocka_unit_test(test_savez_compressed),
        cmocka_unit_test(test_false_sizes),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
