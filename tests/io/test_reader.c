/* Tests of scratch memory, and of the choice of a reader by the contents of a file. */
#include "allocate.h"
#include "faults.h"
#include "format.h"
#include "io_files.h"
#include "reader.h"
#include "source_opts.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static stk_error err;

static void test_scratch_grows_and_stays(void **state)
{
    stki_memory_stats before, after;
    stki_scratch scratch;

    (void)state;
    stki_scratch_init(&scratch);
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int64_t bytes = 1; bytes < 1000000; bytes += bytes / 3 + 1) {
        assert_int_equal(stki_scratch_reserve(&scratch, bytes, &err), STK_OK);
        assert_true(scratch.capacity >= bytes);
        assert_int_equal((uintptr_t)scratch.data % 64, 0);
        memset(scratch.data, 1, (size_t)bytes);
    }
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_true(after.total_allocations - before.total_allocations < 40); /* grows in steps, not for each request */
    before = after;
    assert_int_equal(stki_scratch_reserve(&scratch, 5, &err), STK_OK);
    assert_int_equal(stki_scratch_reserve(&scratch, scratch.capacity, &err), STK_OK);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(after.total_allocations, before.total_allocations);
    stki_memory_fail_at(1);
    assert_int_equal(stki_scratch_reserve(&scratch, scratch.capacity + 1, &err), STK_E_MEMORY);
    assert_non_null(scratch.data); /* the old memory is still valid */
    memset(scratch.data, 2, (size_t)scratch.capacity);
    stki_scratch_fini(&scratch);
    stki_scratch_fini(&scratch);
    assert_int_equal(stki_scratch_reserve(&scratch, 0, &err), STK_OK);
    stki_scratch_fini(&scratch);
}

static void looks_like(const char *name, const void *content, size_t bytes, stk_status status, const char *says)
{
    const char *path = stkt_path(name);
    stki_reader *reader = NULL;

    stkt_write_file(path, content, bytes);
    assert_int_equal(stki_reader_open(path, NULL, &reader, &err), status);
    assert_null(reader);
    if (!strstr(err.message, says) || !strstr(err.message, path))
        fail_msg("message: %s, expected in it: %s", err.message, says);
}

static void test_files_of_unknown_kinds(void **state)
{
    (void)state;
    looks_like("a.x", "\x1f\x8b\x08", 3, STK_E_UNSUPPORTED, "found a gzip file");
    looks_like("a.x", "\x1f\x8b\x08", 3, STK_E_UNSUPPORTED, "unsupported file format (supported: npy, npz, ");
    looks_like("a.x", "\x28\xb5\x2f\xfd", 4, STK_E_UNSUPPORTED, "found a zstd file");
    looks_like("a.tar", "\x1f\x9d\x90", 3, STK_E_UNSUPPORTED, "uncompress");
    looks_like("a.tar", "\x89LZO\0\r\n\x1a\n", 9, STK_E_UNSUPPORTED, "lzop");
    looks_like("a.tar", "P*M\x18\4\0\0\0", 8, STK_E_UNSUPPORTED, "unzstd");
    looks_like("a.tar", "070701", 6, STK_E_UNSUPPORTED, "cpio");
    looks_like("a.x", "PAR1....", 8, STK_E_UNSUPPORTED, "found a Parquet file");
    looks_like("a.json", "[{}]", 4, STK_E_UNSUPPORTED, "jq -c");
    looks_like("train-images-idx3-ubyte", "\0\0\x08\3\0\0\0\1", 8, STK_E_UNSUPPORTED, "offset: 16, shape: [28, 28]");
    looks_like("a.tfrecord", "????", 4, STK_E_UNSUPPORTED, "found a TFRecord file");
    looks_like("a.x", "", 0, STK_E_UNSUPPORTED, "found an empty file");
    looks_like("a.x", "\xff\xd8", 2, STK_E_UNSUPPORTED, "found an unknown kind of file"); /* half of a signature */
    looks_like("a.npy", "", 0, STK_E_TRUNCATED, "found 0 bytes");
    looks_like("a.npy", "????....", 8, STK_E_CORRUPT, "not an npy file");
    looks_like("npy", "?\x93NUMPY", 7, STK_E_UNSUPPORTED, "unknown kind");
}

/* Files of other kinds, under the names of every format. */
static void test_foreign_files(void **state)
{
    static const char lfs[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 12345\n";
    static const char *const endings[] = {"npy", "npz", "pt",  "safetensors", "h5",    "tar", "beton", "idx",
                                          "jpg", "png", "csv", "tsv",         "jsonl", "lst", "txt"};
    static const struct {
        const char *bytes;
        size_t count;
        const char *found;
        bool text;
    } kinds[] = {
        {lfs, sizeof lfs - 1, "a Git LFS pointer", false},
        {"\x1f\x8b\x08\0\0\0\0\0\0\3abcdefghijk", 21, "a gzip file", false},
        {"\x28\xb5\x2f\xfd\0\0\0\0", 8, "a zstd file", false},
        {"PAR1\x15\0\x15\0\x15\0", 10, "a Parquet file", false},
        {"<!DOCTYPE html><html>not found</html>\n", 38, "an HTML page", true},
        {"RIFF\x24\0\0\0WEBPVP8 ", 16, "a WebP image", false},
    };
    stki_reader_opts opts = *stkt_source("{index_cache: none}");

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t e = 0; e < sizeof endings / sizeof endings[0]; e++) {
            char name[32];
            stki_container *container = NULL;
            stk_status status;

            if (kinds[k].text && !strcmp(endings[e], "txt"))
                continue; /* text */
            snprintf(name, sizeof name, "foreign.%s", endings[e]);
            stkt_write_file(stkt_path(name), kinds[k].bytes, kinds[k].count);
            status = stki_container_open(stkt_path(name), &opts, &container, &err);
            if (status != STK_E_UNSUPPORTED || strcmp(err.found, kinds[k].found) != 0)
                fail_msg("%s, %s: %s, found %s: %s", kinds[k].found, endings[e], stk_status_name(status), err.found,
                         err.message);
        }
    stkt_write_file(stkt_path("foreign.bin"), lfs, sizeof lfs - 1);
    {
        stki_container *container;
        stki_reader_opts raw = {.alias_dtype = STK_U8};

        assert_int_equal(stki_container_open(stkt_path("foreign.bin"), &raw, &container, &err), STK_E_UNSUPPORTED);
        assert_string_equal(err.found, "a Git LFS pointer");
    }
    /* a table may begin with letters that are a signature of another format */
    stkt_write_file(stkt_path("letters.csv"), "PAR1,PAR2\n1,2\n", 14);
    {
        stki_container *container;

        assert_int_equal(stki_container_open(stkt_path("letters.csv"), NULL, &container, &err), STK_OK);
        assert_int_equal(container->member_count, 2);
        stki_container_release(container);
    }
}

static void test_paths_that_are_not_files(void **state)
{
    static const char *const paths[] = {"s3://bucket/x.npy", "https://host/x.h5", "~/x.npy", "s-{0..1}.tar"};
    static const char *const says[] = {"URL", "URL", "~ is not expanded", "write a pattern with *"};
    stki_container *container;

    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(stki_container_open(paths[i], NULL, &container, &err), STK_E_NOT_FOUND);
        assert_non_null(strstr(err.message, says[i]));
    }
    assert_int_equal(mkdir(stkt_path("store.zarr"), 0755), 0);
    stkt_write_file(stkt_path("store.zarr/.zgroup"), "{}", 2);
    assert_int_equal(stki_container_open(stkt_path("store.zarr"), NULL, &container, &err), STK_E_UNSUPPORTED);
    assert_string_equal(err.found, "a Zarr store");
}

static void test_npy_by_content_and_by_name(void **state)
{
    static const char *const names[] = {"ok.npy", "ok.data", "ok"};
    stki_reader_opts opts = {.access = STKI_ACCESS_PREAD};
    stki_reader *reader = NULL;

    (void)state;
    for (int i = 0; i < 3; i++) {
        stkt_write_npy(stkt_path(names[i]), "|u1", "False", "(2, 3)", 64, "abcdef", 6);
        assert_int_equal(stki_reader_open(stkt_path(names[i]), &opts, &reader, &err), STK_OK);
        assert_string_equal(reader->ops->format, "npy");
        assert_string_equal(reader->access, "pread"); /* options are passed to the reader */
        stki_reader_destroy(reader);
    }
    stki_reader_destroy(NULL);
    reader = NULL;
    assert_int_equal(stki_reader_open(stkt_path("missing.npy"), NULL, &reader, &err), STK_E_NOT_FOUND);
    assert_int_equal(mkdir(stkt_path("folder"), 0755), 0);
    assert_int_equal(stki_reader_open(stkt_path("folder"), NULL, &reader, &err), STK_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "no images in the folder"));
    assert_null(reader);
}

static void test_every_allocation_failing(void **state)
{
    stki_memory_stats before, after;
    stk_status status;
    int n = 0;

    (void)state;
    stkt_write_npy(stkt_path("memory.npy"), "|u1", "False", "(2, 3)", 64, "abcdef", 6);
    stki_memory_read(STKI_MEM_HOST, &before);
    do {
        stki_reader *reader = NULL;
        stki_memory_fail_at(++n);
        status = stki_reader_open(stkt_path("memory.npy"), NULL, &reader, &err);
        assert_int_equal(status, reader ? STK_OK : STK_E_MEMORY);
        stki_reader_destroy(reader);
    } while (status && n < 50);
    stki_memory_fail_at(0);
    /* attempt 16 is the first in which no allocation fails; the others must have freed their memory */
    assert_int_equal(n, 16);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(before.bytes, after.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scratch_grows_and_stays),
        cmocka_unit_test(test_files_of_unknown_kinds),
        cmocka_unit_test(test_foreign_files),
        cmocka_unit_test(test_paths_that_are_not_files),
        cmocka_unit_test(test_npy_by_content_and_by_name),
        cmocka_unit_test(test_every_allocation_failing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
