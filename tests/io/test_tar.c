/* Tests of tar archives as samples: headers, grouping of files, kinds of files, and the saved index. Archives written
 * by Python's tarfile are read by the oracle driver. */
#include "allocate.h"
#include "faults.h"
#include "file.h"
#include "format.h"
#include "source_opts.h"
#include "stk_test.h"
#include "tar.h"
#include "tar_build.h"
#include "tensor_internal.h"
#include <utime.h>
#include <xxhash.h>

/* ---- single headers ---- */

static void make_header(unsigned char *block, const char *name, const char *size)
{
    memset(block, 0, 512);
    memcpy(block, name, strlen(name));
    memcpy(block + 124, size, strlen(size) < 12 ? strlen(size) : 12);
    block[156] = '0';
    stkt_tar_sum(block);
}

static void test_sizes(void **state)
{
    static const struct {
        const char *text;
        int64_t size; /* -1: damaged */
    } cases[] = {
        {"00000000017", 15},
        {"        17 ", 15},
        {"17", 15},
        {"", 0},
        {"777777777777", (INT64_C(1) << 36) - 1},
        {"0000000001x", -1},
        {"00000000018", -1},
        {"-0000000017", -1},
        {"17 17", -1},
    };
    unsigned char block[512];
    stki_tar_header h;
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_header(block, "a.txt", cases[i].text);
        if (cases[i].size < 0) {
            assert_status(stki_tar_read_header(block, 1024, "t.tar", &h, &err), STK_E_CORRUPT);
            assert_int_equal(err.offset, 1024 + 124);
            continue;
        }
        assert_ok(stki_tar_read_header(block, 1024, "t.tar", &h, &err));
        assert_int_equal(h.size, cases[i].size);
        assert_int_equal(h.what, STKI_TAR_FILE);
    }
}

static void test_binary_sizes(void **state)
{
    static const struct {
        unsigned char bytes[12];
        int64_t size;
    } cases[] = {
        {{0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2}, 258},
        {{0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, INT64_MAX},
        {{0x80, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0}, -1},
        {{0x81, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, -1},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, -1},
    };
    unsigned char block[512];
    stki_tar_header h;
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_header(block, "a.txt", "");
        memcpy(block + 124, cases[i].bytes, 12);
        stkt_tar_sum(block);
        if (cases[i].size < 0) {
            assert_status(stki_tar_read_header(block, 0, "t.tar", &h, &err), STK_E_CORRUPT);
        } else {
            assert_ok(stki_tar_read_header(block, 0, "t.tar", &h, &err));
            assert_true(h.size == cases[i].size);
        }
    }
}

/* Every byte of a header is covered by the checksum. The sum of signed bytes, which old programs wrote, is also
 * accepted. */
static void test_checksum(void **state)
{
    unsigned char block[512];
    stki_tar_header h;
    stk_error err;
    int sum = 0;

    (void)state;
    make_header(block, "n\xc3\xa4me.txt", "17");
    for (int i = 0; i < 512; i++) {
        block[i] ^= 4;
        if (i < 148 || i >= 156)
            assert_status(stki_tar_read_header(block, 0, "t.tar", &h, &err), STK_E_CORRUPT);
        block[i] ^= 4;
    }
    memset(block + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += (signed char)block[i];
    snprintf((char *)block + 148, 8, "%06o", (unsigned)sum);
    assert_ok(stki_tar_read_header(block, 0, "t.tar", &h, &err));
    snprintf((char *)block + 148, 8, "%06o", (unsigned)sum + 1);
    assert_status(stki_tar_read_header(block, 0, "t.tar", &h, &err), STK_E_CORRUPT);
    assert_says("checksum");
    memset(block, 0, sizeof block);
    assert_ok(stki_tar_read_header(block, 0, "t.tar", &h, &err));
    assert_int_equal(h.what, STKI_TAR_END);
}

static void test_types(void **state)
{
    static const char kinds[] = "07123456LKxXgVDAE";
    static const enum stki_tar_what what[] = {
        STKI_TAR_FILE,       STKI_TAR_FILE,  STKI_TAR_HARD_LINK, STKI_TAR_SYMLINK,   STKI_TAR_SKIP, STKI_TAR_SKIP,
        STKI_TAR_SKIP,       STKI_TAR_SKIP,  STKI_TAR_LONG_NAME, STKI_TAR_LONG_LINK, STKI_TAR_PAX,  STKI_TAR_PAX,
        STKI_TAR_PAX_GLOBAL, STKI_TAR_OTHER, STKI_TAR_OTHER,     STKI_TAR_OTHER,     STKI_TAR_OTHER};
    unsigned char block[512];
    stki_tar_header h;
    stk_error err;

    (void)state;
    for (int type = 1; type < 256; type++) {
        const char *at = strchr(kinds, type);

        make_header(block, "a.txt", "17");
        block[156] = (unsigned char)type;
        stkt_tar_sum(block);
        if (!at) {
            assert_status(stki_tar_read_header(block, 0, "t.tar", &h, &err), STK_E_UNSUPPORTED);
            continue;
        }
        assert_ok(stki_tar_read_header(block, 0, "t.tar", &h, &err));
        assert_int_equal(h.what, what[at - kinds]);
        /* hard links in old archives have a size */
        assert_int_equal(h.size, type >= '1' && type <= '6' ? 0 : 15);
    }
}

/* ---- pax and names ---- */

static void check_pax(const char *text, stk_status expected, const char *path, int64_t size)
{
    stki_tar_pax pax = STKI_TAR_NO_PAX;
    stk_error err;

    if (stki_tar_read_pax(text, (int64_t)strlen(text), 512, "t.tar", &pax, &err) != expected)
        fail_msg("%s", text);
    if (expected)
        return;
    assert_int_equal(pax.size, size);
    if (!path) {
        assert_null(pax.path.text);
    } else {
        assert_int_equal(pax.path.bytes, strlen(path));
        assert_memory_equal(pax.path.text, path, strlen(path));
    }
}

static void test_pax(void **state)
{
    (void)state;
    check_pax("", STK_OK, NULL, -1);
    check_pax("12 path=a/b\n", STK_OK, "a/b", -1);
    check_pax("11 size=17\n12 path=a=b\n", STK_OK, "a=b", 17);
    check_pax("9 path=a\n9 path=b\n", STK_OK, "b", -1);
    check_pax("9 path=a\n8 path=\n", STK_OK, NULL, -1);
    check_pax("16 comment=path=\n", STK_E_CORRUPT, NULL, -1);
    check_pax("17 comment=path=\n", STK_OK, NULL, -1);
    check_pax("28 size=9223372036854775807\n", STK_OK, NULL, INT64_MAX);
    check_pax("28 size=9223372036854775808\n", STK_E_CORRUPT, NULL, -1);
    check_pax("11 size=-1\n", STK_E_CORRUPT, NULL, -1);
    check_pax("9 size=x\n", STK_E_CORRUPT, NULL, -1);
    check_pax("0 path=a\n", STK_E_CORRUPT, NULL, -1);
    check_pax("11 path=a\n", STK_E_CORRUPT, NULL, -1);
    check_pax("8 path=a\n", STK_E_CORRUPT, NULL, -1);
    check_pax("99999999999999999999 path=a\n", STK_E_CORRUPT, NULL, -1);
    check_pax("path=a\n", STK_E_CORRUPT, NULL, -1);
    check_pax("7 patha\n", STK_E_CORRUPT, NULL, -1);
    check_pax("3 \n", STK_E_CORRUPT, NULL, -1);
}

static void check_name(const char *name, const char *key, const char *extension)
{
    int64_t key_bytes = 0, at = 0;
    bool is = stki_tar_split_name(name, (int64_t)strlen(name), &key_bytes, &at);

    assert_int_equal(is, key != NULL);
    if (!key)
        return;
    assert_int_equal(key_bytes, strlen(key));
    assert_memory_equal(name, key, strlen(key));
    assert_string_equal(name + at, extension);
}

static void test_names(void **state)
{
    (void)state;
    check_name("a.txt", "a", "txt");
    check_name("d.v1/a.seg.PNG", "d.v1/a", "seg.PNG");
    check_name("../x.cls", "../x", "cls");
    check_name("d/._a.jpg", NULL, NULL); /* row P17: a file that a file manager leaves beside another one */
    check_name("._a.jpg", NULL, NULL);
    check_name("d/.x", NULL, NULL);
    check_name("README", NULL, NULL);
    check_name("d.v1/README", NULL, NULL);
    check_name("d.v1/", NULL, NULL);
    check_name("", NULL, NULL);
    check_name("__index__/a.txt", NULL, NULL);
    check_name("__a.txt__", NULL, NULL);
    check_name("____", NULL, NULL);
    check_name("__a.txt", "__a", "txt");
    check_name("d/__a__.txt", "d/__a__", "txt");
}

/* ---- archives ---- */

static stk_status open_kind(const char *path, const char *name, const stki_reader_opts *base, stki_reader **out,
                            stk_error *err)
{
    stki_reader_opts opts = base ? *base : (stki_reader_opts){0};
    stki_container *container;
    int64_t member;
    stk_status status;

    opts.name = name;
    status = stki_container_open(path, &opts, &container, err);
    if (status)
        return status;
    status = stki_container_find(container, &opts, &member, err);
    if (!status)
        status = stki_container_reader(container, member, &opts, out, err);
    stki_container_release(container);
    return status;
}

static const enum stki_access modes[] = {STKI_ACCESS_MMAP, STKI_ACCESS_PREAD};

static void test_classes(void **state)
{
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } cases[] = {{"0", true, 0},
                 {"17\n", true, 17},
                 {" -3 ", true, -3},
                 {"+5\r\n", true, 5},
                 {"9223372036854775807", true, INT64_MAX},
                 {"-9223372036854775808", true, INT64_MIN},
                 {"9223372036854775808", false, 0},
                 {"", false, 0},
                 {"-", false, 0},
                 {"1.5", false, 0},
                 {"1 2", false, 0},
                 {"cat", false, 0},
                 {"1                                                                              ", false, 0}};
    enum { CASES = sizeof cases / sizeof cases[0] };
    const char *path = stkt_path("classes.tar");
    char member[32];
    struct stkt_tar t = {0};
    stki_reader *reader;
    stki_scratch scratch;
    stk_error err;

    (void)state;
    for (int i = 0; i < CASES; i++) {
        char name[32];

        snprintf(name, sizeof name, "s%d.CLS", i);
        stkt_tar_file(&t, name, cases[i].text);
    }
    stkt_tar_write(&t, path);
    stki_scratch_init(&scratch);
    for (int m = 0; m < 2; m++) {
        assert_ok(open_kind(path, NULL, &(stki_reader_opts){.access = modes[m]}, &reader, &err));
        assert_int_equal(reader->dtype, STK_I64);
        assert_int_equal(reader->ndim, 0);
        assert_int_equal(reader->max_bytes, 8);
        assert_false(reader->variable);
        for (int i = 0; i < CASES; i++) {
            stk_tensor sample;

            if (!cases[i].good) {
                assert_status(reader->ops->read(reader, i, NULL, &scratch, &sample, &err), STK_E_CORRUPT);
                assert_int_equal(err.record, i);
                assert_says("invalid .cls file");
                if (!*cases[i].text)
                    assert_string_equal(err.found, "an empty file");
                snprintf(member, sizeof member, "(member s%d.cls)", i);
                assert_says(member);
                continue;
            }
            assert_ok(reader->ops->read(reader, i, NULL, &scratch, &sample, &err));
            assert_memory_equal(sample.data, &cases[i].value, 8);
        }
        stki_reader_destroy(reader);
    }
    stki_scratch_fini(&scratch);
}

/* If a sample has no file with the extension, the error names the sample. */
static void test_missing(void **state)
{
    const char *path = stkt_path("missing.tar");
    struct stkt_tar t = {0};
    stki_container *container;
    stki_reader *reader;
    stki_scratch scratch;
    stk_tensor sample;
    stk_error err;

    (void)state;
    stkt_tar_file(&t, "d/a.txt", "one");
    stkt_tar_file(&t, "d/a.cls", "1");
    stkt_tar_file(&t, "d/b\n.cls", "2");
    stkt_tar_file(&t, "d/c.cls", "3");
    stkt_tar_file(&t, "d/c.txt", "three");
    stkt_tar_file(&t, "d/._c.txt", "not data");
    stkt_tar_write(&t, path);
    stki_scratch_init(&scratch);
    assert_ok(open_kind(path, "txt", NULL, &reader, &err));
    assert_int_equal(reader->count, 3);
    assert_int_equal(reader->shape[0], 5);
    assert_ok(reader->ops->read(reader, 2, NULL, &scratch, &sample, &err));
    assert_memory_equal(sample.data, "three", 5);
    assert_status(reader->ops->read(reader, 1, NULL, &scratch, &sample, &err), STK_E_NOT_FOUND);
    assert_says("record 1: sample d/b? has no .txt file");
    assert_status(reader->ops->shape(reader, 1, sample.shape, &err), STK_E_NOT_FOUND);
    assert_status(reader->ops->read(reader, 3, NULL, &scratch, &sample, &err), STK_E_RANGE);
    stki_reader_destroy(reader);
    stki_scratch_fini(&scratch);
    assert_status(open_kind(path, "jpg", NULL, &reader, &err), STK_E_NOT_FOUND);
    assert_says("txt, cls");
    assert_status(open_kind(path, "txt", &(stki_reader_opts){.alias_dtype = STK_F32}, &reader, &err), STK_E_MISMATCH);
    assert_ok(stki_container_open(path, NULL, &container, &err));
    assert_int_equal(container->warning_count, 2);
    assert_non_null(strstr(container->warnings[0], "1 of 3 samples have no .txt file"));
    assert_non_null(strstr(container->warnings[1], "1 file is not part of a sample"));
    stki_container_release(container);
}

static void test_twice(void **state)
{
    const char *path = stkt_path("twice.tar");
    struct stkt_tar t = {0};
    stki_container *container;
    stk_error err;

    (void)state;
    stkt_tar_file(&t, "a.txt", "1");
    stkt_tar_file(&t, "b.txt", "1");
    stkt_tar_file(&t, "b.cls", "1");
    stkt_tar_file(&t, "b.TXT", "2");
    stkt_tar_write(&t, path);
    assert_status(stki_container_open(path, NULL, &container, &err), STK_E_CORRUPT);
    assert_says("record 1: offset 3584: sample b has several files with the same extension: found a second .txt");
}

static void test_max_bytes(void **state)
{
    const char *path = stkt_path("long.tar");
    struct stkt_tar t = {0};
    stki_reader *reader;
    stki_scratch scratch;
    stk_tensor sample;
    stk_error err;

    (void)state;
    stkt_tar_file(&t, "a.txt", "four");
    stkt_tar_file(&t, "b.txt", "fives");
    stkt_tar_write(&t, path);
    stki_scratch_init(&scratch);
    assert_ok(open_kind(path, "txt", &(stki_reader_opts){.max_bytes = 4}, &reader, &err));
    assert_int_equal(reader->shape[0], 4);
    assert_ok(reader->ops->read(reader, 0, NULL, &scratch, &sample, &err));
    assert_status(reader->ops->read(reader, 1, NULL, &scratch, &sample, &err), STK_E_LIMIT);
    assert_says("found 5 bytes, expected at most 4 (source.max_bytes)");
    stki_reader_destroy(reader);
    stki_scratch_fini(&scratch);
}

/* The name comes from pax, otherwise from GNU, otherwise from the header. It applies only to the next member. */
static void test_which_name(void **state)
{
    const char *path = stkt_path("names.tar");
    struct stkt_tar t = {0};
    stki_container *container;
    const stki_webdataset *set;
    static const char keys[] = "globalpaxgnupax";
    stk_error err;

    (void)state;
    stkt_tar_put(&t, 'g', "pax_global", "19 path=global.txt\n", 19);
    stkt_tar_file(&t, "own.txt", "0"); /* global.txt */
    stkt_tar_put(&t, 'x', "pax", "16 path=pax.txt\n", 16);
    stkt_tar_put(&t, 'L', "long", "gnu.txt", 8);
    stkt_tar_file(&t, "own.txt", "1"); /* pax.txt */
    stkt_tar_put(&t, 'L', "long", "gnu.txt", 8);
    stkt_tar_file(&t, "own.txt", "2"); /* gnu.txt */
    stkt_tar_put(&t, 'L', "long", "lost.txt", 9);
    stkt_tar_put(&t, '5', "folder/", NULL, 0); /* uses up the name */
    stkt_tar_put(&t, 'L', "long", "gnu.txt", 8);
    stkt_tar_put(&t, 'x', "pax", "16 path=pax.cls\n", 16);
    stkt_tar_file(&t, "own.txt", "3"); /* pax.cls */
    stkt_tar_write(&t, path);
    assert_ok(stki_container_open(path, NULL, &container, &err));
    set = (const void *)container;
    assert_int_equal(set->index.sample_count, 4);
    assert_int_equal(set->index.key_bytes, sizeof keys - 1);
    assert_memory_equal(set->index.keys, keys, sizeof keys - 1);
    assert_string_equal(set->index.extensions[1].name, "cls");
    stki_container_release(container);
}

/* A member preceded by these records of an extended header (for the whole archive if `type` is g), as the named
 * programs wrote them. If the member belongs to a sample, opening fails and names member, record and offset. */
static void test_encoded_members(void **state)
{
    static const struct {
        char type;
        const char *records, *member, *named, *found;
    } cases[] = {
        /* a format after 1.0 */
        {'x', "22 GNU.sparse.major=2\n22 GNU.sparse.minor=0\n31 GNU.sparse.realsize=1048577\n", "s1.bin", "s1.bin",
         "GNU.sparse.major"},
        {'x', "21 GNU.sparse.size=9\n", "s1.bin", "s1.bin", "GNU.sparse.size"}, /* without a map */
        /* GNU tar 1.34, the second volume of --multi-volume */
        {'g', "29 GNU.volume.filename=a.bin\n25 GNU.volume.size=30816\n27 GNU.volume.offset=29184\n",
         "GNUFileParts/a.bin.2", "GNUFileParts/a.bin.2", "GNU.volume.filename"},
        /* star */
        {'x', "12 path=k.b\n27 SCHILY.realsize=1048577\n", "x.b", "k.b", "SCHILY.realsize"},
        {'x', "19 SCHILY.offset=5\n", "x.b", "x.b", "SCHILY.offset"},
    };
    const char *path = stkt_path("encoded.tar");
    stki_container *container;
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stkt_tar t = {0};

        stkt_tar_file(&t, "first.txt", "1");
        stkt_tar_put(&t, cases[i].type, "pax", cases[i].records, strlen(cases[i].records));
        stkt_tar_file(&t, cases[i].member, "data");
        stkt_tar_write(&t, path);
        assert_status(stki_container_open(path, NULL, &container, &err), STK_E_UNSUPPORTED);
        assert_int_equal(err.offset, 5 * 512);
        assert_non_null(strstr(err.found, cases[i].found));
        assert_non_null(strstr(err.message, cases[i].named));
    }
}

/* Records without a value have no effect, and members that belong to no sample are not read. */
static void test_encoded_elsewhere(void **state)
{
    const char *path = stkt_path("plain.tar");
    struct stkt_tar t = {0};
    stki_container *container;
    stk_error err;

    (void)state;
    stkt_tar_put(&t, 'x', "pax", "20 GNU.sparse.size=\n", 20);
    stkt_tar_file(&t, "a.txt", "1");
    stkt_tar_put(&t, 'x', "pax", "21 GNU.sparse.size=9\n", 21);
    stkt_tar_file(&t, "README", "no extension");
    stkt_tar_file(&t, "b.txt", "2"); /* the records applied to README */
    stkt_tar_write(&t, path);
    assert_ok(stki_container_open(path, NULL, &container, &err));
    assert_int_equal(((const stki_webdataset *)(const void *)container)->index.sample_count, 2);
    stki_container_release(container);
}

/* ---- arrays and images ---- */

static size_t make_npy(char *out, const char *descr, const char *shape, const void *data, size_t bytes)
{
    int text = snprintf(out + 10, 200, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);

    memcpy(out, "\x93NUMPY\1\0", 8);
    memset(out + 10 + text, ' ', (size_t)(118 - 10 - text));
    out[8] = 118 - 10;
    out[9] = 0;
    memcpy(out + 118, data, bytes);
    return 118 + bytes;
}

static void put_npy(struct stkt_tar *t, const char *name, const char *descr, const char *shape, const void *data,
                    size_t bytes)
{
    char file[512];

    stkt_tar_put(t, '0', name, file, make_npy(file, descr, shape, data, bytes));
}

static const float numbers[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static void test_arrays(void **state)
{
    const char *path = stkt_path("arrays.tar");
    char noise[118 + 24];
    struct stkt_tar t = {0};
    stki_reader *reader;
    stki_scratch scratch;
    stk_tensor sample;
    stk_error err;

    (void)state;
    put_npy(&t, "a.npy", "<f4", "(2, 3)", numbers, 24);
    put_npy(&t, "b.npy", "<f4", "(2, 3)", numbers + 6, 24);
    put_npy(&t, "c.npy", "<f4", "(3, 2)", numbers, 24); /* the same size in bytes, but another shape */
    put_npy(&t, "d.npy", "<i4", "(2, 3)", numbers, 24);
    put_npy(&t, "d2.npy", ">f4", "(2, 3)", numbers, 24);
    memset(noise, 'x', sizeof noise);
    stkt_tar_put(&t, '0', "e.npy", noise, sizeof noise); /* as many bytes as the others */
    stkt_tar_write(&t, path);
    stki_scratch_init(&scratch);
    for (int m = 0; m < 2; m++) {
        assert_ok(open_kind(path, "npy", &(stki_reader_opts){.access = modes[m]}, &reader, &err));
        assert_false(reader->variable);
        assert_int_equal(reader->dtype, STK_F32);
        assert_int_equal(reader->ndim, 2);
        assert_int_equal(reader->max_bytes, 24);
        assert_ok(reader->ops->read(reader, 1, NULL, &scratch, &sample, &err));
        assert_memory_equal(sample.data, numbers + 6, 24);
        assert_int_equal(sample.strides[0], 12);
        assert_status(reader->ops->read(reader, 2, NULL, &scratch, &sample, &err), STK_E_MISMATCH);
        assert_says("found f32 [3, 2], expected f32 [2, 3]");
        assert_status(reader->ops->read(reader, 3, NULL, &scratch, &sample, &err), STK_E_MISMATCH);
        assert_status(reader->ops->read(reader, 4, NULL, &scratch, &sample, &err), STK_E_MISMATCH);
        assert_says("the byte order or element order");
        assert_status(reader->ops->read(reader, 5, NULL, &scratch, &sample, &err), STK_E_CORRUPT);
        assert_says("arrays.tar: the .npy of sample 5");
        assert_int_equal(err.record, 5);
        assert_int_equal(reader->strides[0], 12);
        assert_int_equal(reader->strides[1], 4);
        stki_reader_destroy(reader);
    }
    stki_scratch_fini(&scratch);
}

static void test_arrays_of_shapes(void **state)
{
    const char *path = stkt_path("shapes.tar");
    struct stkt_tar t = {0};
    stki_reader *reader;
    stki_scratch scratch;
    stk_tensor sample;
    stk_error err;

    (void)state;
    put_npy(&t, "a.npy", "<f4", "(2, 3)", numbers, 24);
    put_npy(&t, "b.npy", "<f4", "(1, 5)", numbers, 20);
    put_npy(&t, "c.npy", ">f4", "(0, 3)", numbers, 0);
    stkt_tar_write(&t, path);
    stki_scratch_init(&scratch);
    for (int m = 0; m < 2; m++) {
        int64_t shape[2];

        assert_ok(open_kind(path, "npy", &(stki_reader_opts){.access = modes[m]}, &reader, &err));
        assert_true(reader->variable);
        assert_int_equal(reader->shape[0], 2);
        assert_int_equal(reader->shape[1], 5);
        assert_ok(reader->ops->shape(reader, 1, shape, &err));
        assert_int_equal(shape[0], 1);
        assert_int_equal(shape[1], 5);
        assert_ok(reader->ops->read(reader, 1, NULL, &scratch, &sample, &err));
        assert_memory_equal(sample.data, numbers, 20);
        assert_ok(reader->ops->read(reader, 2, NULL, &scratch, &sample, &err));
        assert_int_equal(stk_tensor_nbytes(&sample), 0);
        assert_true(sample.flags & STK_TENSOR_SWAPPED);
        stki_reader_destroy(reader);
    }
    stki_scratch_fini(&scratch);
    put_npy(&t, "a.npy", "<f4", "(2, 3)", numbers, 24);
    put_npy(&t, "b.npy", "<f4", "(5,)", numbers, 20);
    stkt_tar_write(&t, path);
    assert_status(open_kind(path, "npy", NULL, &reader, &err), STK_E_MISMATCH);
    assert_int_equal(err.record, 1);
}

/* The index has the sizes in pixels, which are those of the decoded images. */
static void test_images(void **state)
{
    const char *path = STKT_TESTS_DIR "/oracle/webdataset/basic_pax.tar";
    stki_reader *reader;
    stki_scratch scratch;
    unsigned char first[12 * 14 * 3];
    stk_error err;

    (void)state;
    for (int m = 0; m < 2; m++) {
        stki_reader_opts opts = {.access = modes[m]};

        stki_scratch_init(&scratch);
        assert_ok(open_kind(path, "jpg", &opts, &reader, &err));
        assert_false(reader->variable);
        assert_true(reader->copies);
        assert_int_equal(reader->shape[0], 12);
        assert_int_equal(reader->shape[1], 14);
        assert_int_equal(reader->shape[2], 3);
        for (int64_t i = 0; i < reader->count; i++) {
            stk_tensor sample;

            assert_ok(reader->ops->read(reader, i, NULL, &scratch, &sample, &err));
            assert_int_equal(sample.shape[0], 12);
            assert_int_equal(sample.shape[1], 14);
            if (i == 0 && m == 0)
                memcpy(first, sample.data, sizeof first);
            else if (i == 0)
                assert_memory_equal(first, sample.data, sizeof first);
            stki_reader_done(reader, &sample);
        }
        stki_reader_destroy(reader);
        stki_scratch_fini(&scratch);
    }
    assert_ok(open_kind(path, "jpg", stkt_source("{color: gray}"), &reader, &err));
    assert_int_equal(reader->shape[2], 1);
    stki_reader_destroy(reader);
}

/* A damaged image fails when its shape or its pixels are requested; the others are not affected. */
static void test_bad_image(void **state)
{
    const char *path = stkt_path("badimage.tar");
    struct stkt_tar t = {0};
    stki_reader *reader;
    stki_scratch scratch;
    stk_tensor sample;
    stk_error err;

    (void)state;
    stkt_tar_file(&t, "a.png", "this is no image");
    stkt_tar_put(&t, '0', "b.png", NULL, 0);
    stkt_tar_write(&t, path);
    for (int m = 0; m < 2; m++) {
        stki_scratch_init(&scratch);
        assert_ok(open_kind(path, "png", &(stki_reader_opts){.access = modes[m]}, &reader, &err));
        for (int64_t i = 0; i < 2; i++) {
            assert_true(reader->ops->read(reader, i, NULL, &scratch, &sample, &err) < 0);
            assert_int_equal(err.record, i);
            assert_says("badimage.tar: record");
        }
        stki_reader_destroy(reader);
        stki_scratch_fini(&scratch);
    }
}

/* ---- the saved index ---- */

static void write_many(const char *path, int samples)
{
    struct stkt_tar t = {0};
    char name[32], text[32];

    for (int i = 0; i < samples; i++) {
        snprintf(name, sizeof name, "%06d.txt", i);
        snprintf(text, sizeof text, "text %d", i);
        stkt_tar_file(&t, name, text);
        snprintf(name, sizeof name, "%06d.cls", i);
        stkt_tar_file(&t, name, "1");
    }
    stkt_tar_write(&t, path);
}

static const stki_reader_opts *kept_in(const char *folder)
{
    char text[600];

    snprintf(text, sizeof text, "{index_cache: '%s'}", folder);
    return stkt_source(text);
}

static const char *source_of(const char *path, const stki_reader_opts *opts)
{
    stki_container *container;
    const char *source;
    stk_error err;

    assert_ok(stki_container_open(path, opts, &container, &err));
    source = strcmp(((const stki_webdataset *)(const void *)container)->index.source, "kept") ? "built" : "kept";
    stki_container_release(container);
    return source;
}

static void check_texts(const char *path, const stki_reader_opts *opts, int samples)
{
    stki_reader *reader;
    stki_scratch scratch;
    stk_error err;

    stki_scratch_init(&scratch);
    assert_ok(open_kind(path, "txt", opts, &reader, &err));
    assert_int_equal(reader->count, samples);
    for (int i = 0; i < samples; i += 7) {
        char text[32];
        stk_tensor sample;

        snprintf(text, sizeof text, "text %d", i);
        assert_ok(reader->ops->read(reader, i, NULL, &scratch, &sample, &err));
        assert_int_equal(sample.shape[0], strlen(text));
        assert_memory_equal(sample.data, text, strlen(text));
    }
    stki_reader_destroy(reader);
    stki_scratch_fini(&scratch);
}

static void test_index_beside_the_archive(void **state)
{
    const char *path = stkt_path("large.tar"), *index = stkt_path("large.tar.stoker-index");
    struct utimbuf later = {1000000000, 1000000000};
    struct stat st;

    (void)state;
    write_many(path, 100);
    assert_string_equal(source_of(path, NULL), "built");
    assert_int_equal(stat(index, &st), -1); /* too small to be saved */
    write_many(path, 5000);
    assert_string_equal(source_of(path, stkt_source("{index_cache: none}")), "built");
    assert_int_equal(stat(index, &st), -1);
    assert_string_equal(source_of(path, NULL), "built");
    assert_int_equal(stat(index, &st), 0);
    assert_string_equal(source_of(path, NULL), "kept");
    check_texts(path, NULL, 5000);
    check_texts(path, &(stki_reader_opts){.access = STKI_ACCESS_PREAD}, 5000);
    assert_string_equal(source_of(path, stkt_source("{index_cache: none}")), "built");
    assert_int_equal(utime(path, &later), 0); /* another time means another archive */
    assert_string_equal(source_of(path, NULL), "built");
    assert_string_equal(source_of(path, NULL), "kept");
    write_many(path, 5001);
    assert_int_equal(utime(path, &later), 0); /* the same time, but another size */
    assert_string_equal(source_of(path, NULL), "built");
    check_texts(path, NULL, 5001);
    assert_int_equal(unlink(index), 0);
}

static void test_index_in_a_folder(void **state)
{
    const char *path = stkt_path("small.tar"), *folder = stkt_path("cache"), *copy = stkt_path("sub/small.tar");
    const stki_reader_opts opts = *kept_in(folder);
    char command[600];
    char *where;

    (void)state;
    write_many(path, 20);
    assert_string_equal(source_of(path, &opts), "built"); /* without the folder the archive is still read */
    assert_string_equal(source_of(path, &opts), "built");
    assert_int_equal(mkdir(folder, 0755), 0);
    assert_string_equal(source_of(path, &opts), "built");
    assert_string_equal(source_of(path, &opts), "kept");
    check_texts(path, &opts, 20);
    assert_int_equal(mkdir(stkt_path("sub"), 0755), 0);
    snprintf(command, sizeof command, "cp -p '%s' '%s'", path, copy);
    assert_int_equal(system(command), 0);
    assert_string_equal(source_of(copy, &opts), "built"); /* a file of the same name in another folder */
    where = stki_tar_cache_path(path, folder);
    assert_int_equal(access(where, F_OK), 0);
    stki_free(where);
}

/* Asserts the only note about the archive, built and from the saved index; NULL: there is none. */
static void check_note(const char *path, const stki_reader_opts *opts, const char *note)
{
    stki_container *container;
    stk_error err;

    for (int i = 0; i < 2; i++) {
        assert_ok(stki_container_open(path, opts, &container, &err));
        assert_string_equal(((const stki_webdataset *)(const void *)container)->index.source, i ? "kept" : "built");
        assert_int_equal(container->warning_count, note != NULL);
        if (note && !strstr(container->warnings[0], note))
            fail_msg("%s", container->warnings[0]);
        stki_container_release(container);
    }
}

/* Notes say that data after the end of the archive is not read, and that the end is missing. */
static void test_end(void **state)
{
    const char *path = stkt_path("two.tar"), *folder = stkt_path("two");
    const stki_reader_opts opts = *kept_in(folder);
    struct stkt_tar t = {0};

    (void)state;
    assert_int_equal(mkdir(folder, 0755), 0);
    stkt_tar_file(&t, "a.txt", "1");
    stkt_tar_grow(&t, 10240 - t.size);
    stkt_tar_file(&t, "b.txt", "2");
    stkt_tar_write(&t, path);
    check_note(path, &opts, "2048 bytes of data follow the end-of-archive marker at offset 1024 and are not read");
    stkt_tar_file(&t, "a.txt", "1");
    stkt_tar_grow(&t, 100000); /* not a multiple of the size of a block */
    stkt_write_file(path, t.bytes, t.size);
    check_note(path, &opts, NULL);
    t.bytes[t.size - 1] = 'x';
    stkt_write_file(path, t.bytes, t.size - 1);
    check_note(path, &opts, NULL);
    stkt_write_file(path, t.bytes, t.size);
    check_note(path, &opts, "160 bytes of data follow the end-of-archive marker at offset 1024");
    stkt_write_file(path, t.bytes, 1024);
    check_note(path, &opts, "no end-of-archive marker: the archive may be truncated");
    free(t.bytes);
}

enum { SUM_AT = 104 }; /* in the saved index */

static void put_sum(unsigned char *bytes, size_t count)
{
    XXH64_hash_t sum;

    memset(bytes + SUM_AT, 0, 8);
    sum = XXH3_64bits(bytes, count);
    memcpy(bytes + SUM_AT, &sum, 8);
}

/* A damaged index is rebuilt. A forged one with a valid checksum is rebuilt or used; if it is used, its positions give
 * errors or lie inside the archive. */
static void test_damaged_index(void **state)
{
    const char *path = stkt_path("damaged.tar"), *folder = stkt_path("damage");
    const stki_reader_opts opts = *kept_in(folder);
    unsigned char *bytes;
    struct stat st;
    char *where;
    FILE *file;

    (void)state;
    assert_int_equal(mkdir(folder, 0755), 0);
    write_many(path, 5);
    assert_string_equal(source_of(path, &opts), "built");
    where = stki_tar_cache_path(path, folder);
    assert_int_equal(stat(where, &st), 0);
    bytes = malloc((size_t)st.st_size);
    file = fopen(where, "rb");
    assert_int_equal(fread(bytes, 1, (size_t)st.st_size, file), st.st_size);
    fclose(file);
    for (long at = 0; at < st.st_size; at++) {
        stki_reader *reader;
        stki_scratch scratch;
        stk_tensor sample;
        stk_error err;

        bytes[at] ^= 0x91;
        if (at % 11 == 0) {
            stkt_write_file(where, bytes, (size_t)st.st_size);
            assert_string_equal(source_of(path, &opts), "built");
        }
        put_sum(bytes, (size_t)st.st_size);
        stkt_write_file(where, bytes, (size_t)st.st_size);
        bytes[at] ^= 0x91;
        put_sum(bytes, (size_t)st.st_size);
        stki_scratch_init(&scratch);
        if (open_kind(path, "txt", &opts, &reader, &err) == STK_OK) {
            for (int64_t i = 0; i < reader->count; i++) {
                volatile unsigned char sum = 0;

                if (reader->ops->read(reader, i, NULL, &scratch, &sample, &err) == STK_OK)
                    for (int64_t k = 0; k < sample.shape[0]; k++)
                        sum = (unsigned char)(sum + ((unsigned char *)sample.data)[k]);
            }
            stki_reader_destroy(reader);
        }
        stki_scratch_fini(&scratch);
    }
    stkt_write_file(where, bytes, (size_t)st.st_size - 1);
    assert_string_equal(source_of(path, &opts), "built");
    assert_string_equal(source_of(path, &opts), "kept");
    stkt_write_file(where, bytes, 0);
    assert_string_equal(source_of(path, &opts), "built");
    free(bytes);
    stki_free(where);
}

/* ---- units and failures ---- */

static void test_units(void **state)
{
    const char *path = stkt_path("units.tar");
    struct stkt_tar t = {0};
    char *large = calloc(1, 3 << 20);
    stki_reader *reader;
    stk_error err;

    (void)state;
    for (int i = 0; i < 5; i++) {
        char name[16];

        snprintf(name, sizeof name, "%d.bin", i);
        stkt_tar_put(&t, '0', name, large, 3 << 20);
    }
    stkt_tar_write(&t, path);
    free(large);
    assert_ok(open_kind(path, "bin", NULL, &reader, &err));
    assert_int_equal(reader->unit_count, 3);
    assert_int_equal(reader->unit_first[0], 0);
    assert_int_equal(reader->unit_first[1], 2);
    assert_int_equal(reader->unit_first[2], 4);
    assert_int_equal(reader->unit_first[3], 5);
    stki_reader_destroy(reader);
}

/* Opens an archive and reads one sample with the n-th allocation failing, for every n. */
static void fail_allocations(const char *path, const char *name)
{
    stki_reader_opts opts = *stkt_source("{index_cache: none}");
    stki_memory_stats before, after;
    stk_error err;
    int64_t n;

    opts.access = STKI_ACCESS_PREAD;
    stki_memory_read(STKI_MEM_HOST, &before);
    for (n = 1;; n++) {
        stki_reader *reader;
        stki_scratch scratch;
        stk_tensor sample;
        stk_status status;

        stki_scratch_init(&scratch);
        stki_memory_fail_at(n);
        status = open_kind(path, name, &opts, &reader, &err);
        if (!status) {
            status = reader->ops->read(reader, 0, NULL, &scratch, &sample, &err);
            stki_reader_destroy(reader);
        }
        stki_scratch_fini(&scratch);
        if (!status)
            break;
        assert_int_equal(status, STK_E_MEMORY);
        stki_memory_read(STKI_MEM_HOST, &after);
        assert_int_equal(before.blocks, after.blocks);
    }
    stki_memory_fail_at(0);
    assert_true(n > 12);
}

static void test_no_memory(void **state)
{
    const char *path = stkt_path("nomemory.tar");
    struct stkt_tar t = {0};

    (void)state;
    stkt_tar_put(&t, 'g', "pax_global", "11 size=24\n", 11);
    stkt_tar_put(&t, 'x', "pax", "12 size=142\n", 12);
    put_npy(&t, "a.npy", "<f4", "(2, 3)", numbers, 24);
    stkt_tar_put(&t, 'x', "pax", "9 size=4\n", 9);
    stkt_tar_put(&t, 'L', "long", "a.txt", 6);
    stkt_tar_file(&t, "own", "text");
    stkt_tar_put(&t, 'x', "pax", "9 size=0\n", 9);
    stkt_tar_put(&t, '0', "a.png", NULL, 0);
    stkt_tar_write(&t, path);
    fail_allocations(path, "npy");
    fail_allocations(path, "txt");
}

static void test_reads_fail(void **state)
{
    const char *path = stkt_path("io.tar");
    stki_reader_opts opts = {.access = STKI_ACCESS_PREAD};
    stki_reader *reader;
    stki_scratch scratch;
    stk_tensor sample;
    stk_error err;

    (void)state;
    write_many(path, 3);
    for (int64_t n = 2; n < 8; n++) { /* the first read determines the kind of the file */
        stkt_fail_read(n, EIO);
        assert_status(open_kind(path, "txt", &opts, &reader, &err), STK_E_IO);
        assert_says("io.tar");
    }
    stkt_fail_read(0, 0);
    stkt_short_reads(100);
    check_texts(path, &opts, 3);
    stkt_short_reads(0);
    stki_scratch_init(&scratch);
    assert_ok(open_kind(path, "cls", &opts, &reader, &err));
    stkt_fail_read(1, EIO);
    assert_status(reader->ops->read(reader, 2, NULL, &scratch, &sample, &err), STK_E_IO);
    assert_int_equal(err.record, 2);
    stki_reader_destroy(reader);
    stki_scratch_fini(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_binary_sizes),
        cmocka_unit_test(test_checksum),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_pax),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_max_bytes),
        cmocka_unit_test(test_which_name),
        cmocka_unit_test(test_encoded_members),
        cmocka_unit_test(test_encoded_elsewhere),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_arrays_of_shapes),
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_bad_image),
        cmocka_unit_test(test_index_beside_the_archive),
        cmocka_unit_test(test_index_in_a_folder),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_damaged_index),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_reads_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
