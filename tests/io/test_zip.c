/* Tests of the parser of zip directories, with valid and damaged archives that are built byte by byte. Archives of real
 * libraries are in tests/oracle. */
#include "allocate.h"
#include "faults.h"
#include "io_files.h"
#include "stk_test.h"
#include "zip.h"
#include "zip_build.h"

static stk_error err;
static const char data_a[] = "the first member's bytes", data_b[] = "the second one's";

static const stkt_zip_member member_a = {.name = "a", .data = data_a, .bytes = sizeof data_a};
static const stkt_zip_member member_b = {.name = "b/c", .data = data_b, .bytes = sizeof data_b, .local_extra = 7};

struct opened {
    stki_file *file;
    stki_zip zip;
};

static stk_status open_bytes(const void *bytes, size_t count, struct opened *out)
{
    const char *path = stkt_path("test.zip");
    stk_status status;

    stkt_write_file(path, bytes, count);
    assert_ok(stki_file_open(path, STKI_ACCESS_AUTO, STKI_PATTERN_RANDOM, &out->file, &err));
    status = stki_zip_open(out->file, 0, &out->zip, &err);
    if (status)
        stki_file_close(out->file);
    return status;
}

static void close_opened(struct opened *o)
{
    stki_zip_close(&o->zip);
    stki_file_close(o->file);
}

static stk_status open_zip(stkt_zip *zip, struct opened *out)
{
    stk_status status = open_bytes(zip->bytes, zip->count, out);

    free(zip->bytes);
    return status;
}

static void check_member(const struct opened *o, int64_t i, const char *name, const void *data, size_t bytes)
{
    const stki_zip_entry *entry = &o->zip.entries[i];
    char read[256];
    int64_t offset, got;

    assert_string_equal(entry->name, name);
    assert_int_equal(entry->size, bytes);
    assert_ok(stki_zip_locate(&o->zip, entry, &offset, &err));
    assert_ok(stki_zip_read(&o->zip, entry, offset, read, &err));
    assert_memory_equal(read, data, bytes);
    assert_ok(stki_zip_check(&o->zip, entry, offset, &err));
    assert_ok(stki_zip_head(&o->zip, entry, offset, read, 5, &got, &err));
    assert_int_equal(got, 5);
    assert_memory_equal(read, data, 5);
}

static void check_both(struct opened *o)
{
    assert_int_equal(o->zip.count, 2);
    check_member(o, 0, "a", data_a, sizeof data_a);
    check_member(o, 1, "b/c", data_b, sizeof data_b);
    close_opened(o);
}

static void test_members(void **state)
{
    stkt_zip zip = {0};
    struct opened o;

    (void)state;
    stkt_zip_add(&zip, &member_a);
    stkt_zip_add(&zip, &member_b);
    stkt_zip_end(&zip, 0, "");
    assert_ok(open_zip(&zip, &o));
    check_both(&o);
}

static void test_bytes_in_front(void **state)
{
    stkt_zip zip = {0};
    struct opened o;

    (void)state;
    stkt_zip_bytes(&zip, "#!/bin/sh\nexit 0\n", 17);
    stkt_zip_add(&zip, &(stkt_zip_member){.name = "a", .data = data_a, .bytes = sizeof data_a});
    stkt_zip_add(&zip, &member_b);
    for (size_t i = 0, at = 0; i < 2; i++, at += 47) { /* offsets do not include the bytes before the archive */
        unsigned char *offset = zip.directory + at + 42;
        uint32_t stated = (uint32_t)(offset[0] | offset[1] << 8) - 17;

        offset[0] = (unsigned char)stated;
        offset[1] = (unsigned char)(stated >> 8);
    }
    stkt_zip_end(&zip, 17, "");
    assert_ok(open_zip(&zip, &o));
    check_both(&o);
}

/* The longest comment, full of end signatures, and a truncated comment. */
static void test_comments(void **state)
{
    static char comment[65536];
    stkt_zip zip = {0};
    struct opened o;

    (void)state;
    for (size_t i = 0; i + 4 < sizeof comment; i += 4)
        memcpy(comment + i, "PK\5\6", 4);
    memset(comment + sizeof comment - 5, '!', 4);
    stkt_zip_add(&zip, &member_a);
    stkt_zip_add(&zip, &member_b);
    stkt_zip_end(&zip, 0, comment);
    assert_ok(open_zip(&zip, &o));
    check_both(&o);

    zip = (stkt_zip){0};
    stkt_zip_add(&zip, &member_a);
    stkt_zip_end(&zip, 0, "cut");
    zip.count--;
    assert_status(open_zip(&zip, &o), STK_E_CORRUPT);
    assert_says("comment");
}

static void put_end64(stkt_zip *zip, uint64_t record_offset)
{
    uint64_t at = zip->count - zip->directory_count;

    stkt_zip_number(zip, 4, 0x06064B50);
    stkt_zip_number(zip, 8, 44);
    stkt_zip_number(zip, 4, 45);
    stkt_zip_number(zip, 8, 0);
    stkt_zip_number(zip, 8, (uint64_t)zip->members);
    stkt_zip_number(zip, 8, (uint64_t)zip->members);
    stkt_zip_number(zip, 8, zip->directory_count);
    stkt_zip_number(zip, 8, at);
    stkt_zip_number(zip, 4, 0x07064B50);
    stkt_zip_number(zip, 4, 0);
    stkt_zip_number(zip, 8, record_offset);
    stkt_zip_number(zip, 4, 1);
    stkt_zip_number(zip, 4, 0x06054B50);
    stkt_zip_number(zip, 4, 0);
    stkt_zip_number(zip, 4, 0xFFFFFFFF);
    stkt_zip_number(zip, 8, UINT64_MAX);
    stkt_zip_number(zip, 2, 0);
}

static void test_zip64(void **state)
{
    stkt_zip_member wide = member_a;
    struct opened o;

    (void)state;
    wide.wide = 1;
    for (int lie = 0; lie < 2; lie++) {
        stkt_zip zip = {0};

        stkt_zip_add(&zip, &wide);
        stkt_zip_add(&zip, &member_b);
        stkt_zip_bytes(&zip, zip.directory, zip.directory_count);
        put_end64(&zip, lie ? UINT64_MAX : zip.count);
        if (lie) {
            assert_status(open_zip(&zip, &o), STK_E_CORRUPT);
            assert_says("zip64");
        } else {
            assert_ok(open_zip(&zip, &o));
            check_both(&o);
        }
    }
}

/* The archive opens and the other member is readable; this member's error says what is wrong. */
static void refused(const stkt_zip_member *wrong, stk_status status, const char *says)
{
    stkt_zip zip = {0};
    struct opened o;
    int64_t offset;

    stkt_zip_add(&zip, &member_b);
    stkt_zip_add(&zip, wrong);
    stkt_zip_end(&zip, 0, "");
    assert_ok(open_zip(&zip, &o));
    check_member(&o, 0, "b/c", data_b, sizeof data_b);
    assert_status(stki_zip_locate(&o.zip, &o.zip.entries[1], &offset, &err), status);
    assert_says(says);
    assert_says(stkt_path("test.zip"));
    close_opened(&o);
}

static void test_refused_members(void **state)
{
    stkt_zip_member m = {.name = "wrong", .data = data_a, .bytes = sizeof data_a}, w;

    (void)state;
    w = m, w.flags = 1;
    refused(&w, STK_E_UNSUPPORTED, "encrypted");
    w = m, w.flags = 1 << 13;
    refused(&w, STK_E_UNSUPPORTED, "encrypted");
    w = m, w.method = 12;
    refused(&w, STK_E_UNSUPPORTED, "bzip2");
    w = m, w.method = 77;
    refused(&w, STK_E_UNSUPPORTED, "77");
    w = m, w.size = 5;
    refused(&w, STK_E_CORRUPT, "two sizes");
    w = m, w.wide = 2;
    refused(&w, STK_E_CORRUPT, "zip64");
    w = m, w.wide = 1, w.size = w.lie_compressed = (uint64_t)1 << 63;
    refused(&w, STK_E_CORRUPT, "63 bits");
    w = m, w.wide = 1, w.size = w.lie_compressed = (uint64_t)1 << 50;
    refused(&w, STK_E_TRUNCATED, "ends inside");
    w = m, w.size = w.lie_compressed = sizeof data_a + 10; /* extends into the directory */
    refused(&w, STK_E_CORRUPT, "directory");
    w = m, w.lie_offset = 1 << 30;
    refused(&w, STK_E_CORRUPT, "local header");
    w = m, w.local_name = "other";
    refused(&w, STK_E_CORRUPT, "different names");
    w = m, w.local_name = "wrongly";
    refused(&w, STK_E_CORRUPT, "different names");
    w = m, w.method = 8, w.size = 1 << 20; /* a higher ratio than deflate can reach */
    refused(&w, STK_E_CORRUPT, "1032");
}

static void test_signature_of_a_member(void **state)
{
    stkt_zip zip = {0};
    struct opened o;
    int64_t offset;

    (void)state;
    stkt_zip_add(&zip, &member_a);
    zip.bytes[2] = 9;
    stkt_zip_end(&zip, 0, "");
    assert_ok(open_zip(&zip, &o));
    assert_status(stki_zip_locate(&o.zip, &o.zip.entries[0], &offset, &err), STK_E_CORRUPT);
    assert_says("no local header");
    close_opened(&o);
}

/* Overlapping members, which are used for archives that unpack to petabytes. */
static void test_overlaps(void **state)
{
    stkt_zip zip = {0};
    stkt_zip_member outer = {.name = "o"};
    struct opened o;
    int64_t offset;
    size_t inner;

    (void)state;
    stkt_zip_add(&zip, &member_a);
    inner = zip.count;
    stkt_zip_add(&zip, &member_b);
    outer.data = zip.bytes;
    outer.bytes = zip.count - 31;
    stkt_zip_entry(&zip, &outer, 0); /* covers both members */
    stkt_zip_end(&zip, 0, "");
    (void)inner;
    assert_ok(open_zip(&zip, &o));
    for (int i = 0; i < 3; i++) {
        assert_status(stki_zip_locate(&o.zip, &o.zip.entries[i], &offset, &err), STK_E_CORRUPT);
        assert_says("overlaps another");
    }
    close_opened(&o);
}

static void test_wrong_directories(void **state)
{
    stkt_zip zip = {0};
    struct opened o;

    (void)state;
    assert_status(open_bytes("", 0, &o), STK_E_TRUNCATED);
    assert_status(open_bytes("PK\3\4 and no more", 16, &o), STK_E_TRUNCATED); /* row T04 */
    assert_says("16 bytes");
    assert_status(open_bytes("something else", 14, &o), STK_E_CORRUPT);

    stkt_zip_add(&zip, &(stkt_zip_member){.name = "x\0y", .name_bytes = 3, .data = data_a, .bytes = 4});
    stkt_zip_end(&zip, 0, "");
    assert_status(open_zip(&zip, &o), STK_E_CORRUPT);
    assert_says("NUL");

    zip = (stkt_zip){0};
    stkt_zip_add(&zip, &member_a);
    zip.members = 2;
    stkt_zip_end(&zip, 0, "");
    assert_status(open_zip(&zip, &o), STK_E_CORRUPT);

    zip = (stkt_zip){0};
    stkt_zip_add(&zip, &member_a);
    stkt_zip_add(&zip, &member_b);
    zip.members = 1;
    stkt_zip_end(&zip, 0, "");
    assert_status(open_zip(&zip, &o), STK_E_CORRUPT);
    assert_says("after the last entry");

    zip = (stkt_zip){0};
    stkt_zip_add(&zip, &member_a);
    zip.directory[28] = 200; /* a longer name */
    stkt_zip_end(&zip, 0, "");
    assert_status(open_zip(&zip, &o), STK_E_CORRUPT);
    assert_says("more bytes than the directory");

    zip = (stkt_zip){0};
    stkt_zip_add(&zip, &(stkt_zip_member){.name = "a", .data = data_a, .bytes = 4, .disk = 1});
    stkt_zip_end(&zip, 0, "");
    assert_status(open_zip(&zip, &o), STK_E_UNSUPPORTED);
    assert_says("split");
}

/* Deflated data: whole, its beginning, and streams that are longer or shorter than stated. */
static void test_deflate(void **state)
{
    char numbers[20000], *whole = malloc(sizeof numbers), head[100];
    size_t packed_bytes;
    int64_t offset, got;
    void *packed;

    (void)state;
    for (size_t i = 0; i < sizeof numbers; i++)
        numbers[i] = (char)(i * i / 7);
    packed = stkt_deflate(numbers, sizeof numbers, &packed_bytes);
    for (int lie = -1; lie <= 1; lie++) {
        stkt_zip zip = {0};
        struct opened o;

        stkt_zip_add(&zip, &(stkt_zip_member){.name = "d",
                                              .data = packed,
                                              .bytes = packed_bytes,
                                              .size = (uint64_t)((int64_t)sizeof numbers + lie),
                                              .crc = (uint32_t)crc32(0, (Bytef *)numbers, sizeof numbers),
                                              .method = 8});
        stkt_zip_end(&zip, 0, "");
        assert_ok(open_zip(&zip, &o));
        assert_ok(stki_zip_locate(&o.zip, o.zip.entries, &offset, &err));
        assert_ok(stki_zip_head(&o.zip, o.zip.entries, offset, head, sizeof head, &got, &err));
        assert_int_equal(got, sizeof head);
        assert_memory_equal(head, numbers, sizeof head);
        /* of exactly this size, so that sanitizers detect out-of-bounds accesses */
        whole = realloc(whole, sizeof numbers + (size_t)lie);
        if (lie) {
            assert_status(stki_zip_read(&o.zip, o.zip.entries, offset, whole, &err), STK_E_CORRUPT);
            assert_says(lie < 0 ? "found more bytes" : "found fewer bytes");
        } else {
            assert_ok(stki_zip_read(&o.zip, o.zip.entries, offset, whole, &err));
            assert_memory_equal(whole, numbers, sizeof numbers);
            o.zip.entries[0].crc++;
            assert_status(stki_zip_read(&o.zip, o.zip.entries, offset, whole, &err), STK_E_CORRUPT);
            assert_says("CRC");
            o.zip.entries[0].crc = 0;
            o.zip.crc_optional = true;
            assert_ok(stki_zip_read(&o.zip, o.zip.entries, offset, whole, &err));
        }
        close_opened(&o);
    }
    free(whole);
    free(packed);
}

static void test_memory_and_disk(void **state)
{
    const char *path = stkt_path("test.zip");
    stkt_zip zip = {0};
    stki_file *file;
    stki_zip opened;
    int failures = 0;

    (void)state;
    stkt_zip_add(&zip, &member_a);
    stkt_zip_add(&zip, &member_b);
    stkt_zip_end(&zip, 0, "");
    stkt_write_file(path, zip.bytes, zip.count);
    free(zip.bytes);
    assert_ok(stki_file_open(path, STKI_ACCESS_PREAD, STKI_PATTERN_RANDOM, &file, &err));
    for (int n = 1;; n++) {
        stki_memory_fail_at(n);
        if (!stki_zip_open(file, 0, &opened, &err))
            break;
        assert_int_equal(err.status, STK_E_MEMORY);
        failures++;
    }
    stki_memory_fail_at(0);
    assert_true(failures >= 4);
    stki_zip_close(&opened);
    for (int n = 1;; n++) {
        stkt_fail_read(n, 5 /* EIO */);
        if (!stki_zip_open(file, 0, &opened, &err))
            break;
        assert_int_equal(err.status, STK_E_IO);
    }
    stkt_fail_read(0, 0);
    stki_zip_close(&opened);
    stki_file_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),         cmocka_unit_test(test_bytes_in_front),
        cmocka_unit_test(test_comments),        cmocka_unit_test(test_zip64),
        cmocka_unit_test(test_refused_members), cmocka_unit_test(test_signature_of_a_member),
        cmocka_unit_test(test_overlaps),        cmocka_unit_test(test_wrong_directories),
        cmocka_unit_test(test_deflate),         cmocka_unit_test(test_memory_and_disk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
