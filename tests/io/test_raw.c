/* Tests of files of raw values. */
#include "allocate.h"
#include "container.h"
#include "faults.h"
#include "format.h"
#include "io_files.h"
#include "source_opts.h"
#include "stk_test.h"
#include "tensor_internal.h"
#include "tokens.h"

static const uint16_t numbers[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static void check_open(const char *path, const char *source, stk_status expected, const char *says)
{
    const stki_reader_opts *opts;
    stki_reader *reader;
    stk_error err;
    stk_status status = stkt_source_try(source, &opts, &err);

    if (status == STK_OK)
        status = stki_reader_open(path, opts, &reader, &err);
    assert_int_equal(status, expected);
    if (expected) {
        assert_says(says);
        assert_null(strstr(err.message, "()")); /* no parentheses around missing advice */
    } else {
        stki_reader_destroy(reader);
    }
}

/* A file whose first bytes are a signature is read as raw data only if the config says so. */
static void test_other_files(void **state)
{
    static const struct {
        const char *head, *says;
        stk_status raw; /* with `format: raw` */
    } cases[] = {
        {"\x1f\x8b\x08", "gunzip", STK_OK},
        {"<!DOCTYPE html>", "HTML", STK_OK},
        {"PAR1", "Parquet", STK_OK},
        {"\x93NUMPY", "npy", STK_OK},
        {"version https://git-lfs.github.com/spec/v1", "git lfs pull", STK_E_UNSUPPORTED},
    };
    const char *path = stkt_path("other.bin");
    char bytes[64] = {0};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(bytes, 0, sizeof bytes);
        memcpy(bytes, cases[i].head, strlen(cases[i].head));
        stkt_write_file(path, bytes, sizeof bytes);
        check_open(path, "{dtype: u8}", STK_E_UNSUPPORTED, cases[i].says);
        check_open(path, "{dtype: u8, format: raw}", cases[i].raw, cases[i].says);
    }
    check_open(path, "{dtype: u8, format: raw, offset: 8}", STK_E_UNSUPPORTED, "git lfs pull");
    stkt_write_file(path, "\0\0\1\0\2\0\3\0", 8); /* could be an icon, but also plain numbers */
    check_open(path, "{dtype: u16}", STK_OK, NULL);
}

static void test_options(void **state)
{
    const char *path = stkt_path("raw.bin");

    (void)state;
    stkt_write_file(path, numbers, sizeof numbers);
    check_open(path, "{format: raw}", STK_E_CONFIG, "source.dtype");
    check_open(path, "{dtype: u16}", STK_OK, NULL);
    check_open(path, "{dtype: bf16, shape: [3]}", STK_OK, NULL);
    check_open(
        path, "{dtype: u16, shape: [5]}", STK_E_CORRUPT,
        "offset 20: the data is not a whole number of samples: found 24 bytes of data, expected a multiple of 10");
    check_open(path, "{dtype: u16, shape: [5], count: 2}", STK_OK, NULL);
    check_open(path, "{dtype: u16, shape: [5], count: 3}", STK_E_TRUNCATED,
               "found 24 bytes of data, expected 3 samples of 10 bytes");
    check_open(path, "{dtype: u16, count: 1099511627776}", STK_E_TRUNCATED, "samples");
    check_open(path, "{dtype: u16, offset: 24}", STK_OK, NULL);
    check_open(path, "{dtype: u16, offset: 25}", STK_E_TRUNCATED,
               "found 24 bytes, expected at least 25 (source.offset)");
    check_open(path, "{dtype: u16, offset: -1}", STK_E_CONFIG, "offset");
    check_open(path, "{dtype: u16, shape: [0]}", STK_E_CONFIG, "shape.0");
    check_open(path, "{dtype: u16, shape: [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}",
               STK_E_CONFIG, "at most 31 axis lengths");
    check_open(path, "{dtype: u16, shape: [1099511627776, 1073741824]}", STK_E_CONFIG, "2^63");
}

static void test_values(void **state)
{
    const char *path = stkt_path("values.raw");
    static const enum stki_access modes[] = {STKI_ACCESS_MMAP, STKI_ACCESS_PREAD};
    stki_reader *reader;
    stki_scratch scratch;
    stk_error err;

    (void)state;
    stkt_write_file(path, "head", 4);
    stkt_append_file(path, numbers, sizeof numbers);
    for (int m = 0; m < 4; m++) {
        stki_reader_opts opts = *stkt_source(m % 2 ? "{dtype: u16, shape: [2, 2], offset: 4, byte_order: big}"
                                                   : "{dtype: u16, shape: [2, 2], offset: 4}");

        opts.access = modes[m / 2];
        stki_scratch_init(&scratch);
        assert_ok(stki_reader_open(path, &opts, &reader, &err)); /* .raw selects the format */
        assert_int_equal(reader->count, 3);
        for (int64_t i = 0; i < 3; i++) {
            static const int64_t strides[2] = {4, 2};
            uint16_t got[4];
            stk_tensor sample;

            assert_ok(reader->ops->read(reader, i, NULL, &scratch, &sample, &err));
            stki_copy_strided(got, STK_U16, strides, sample.data, sample.dtype, sample.strides,
                              (sample.flags & STK_TENSOR_SWAPPED) != 0, 2, sample.shape);
            for (int k = 0; k < 4; k++)
                assert_int_equal(got[k], m % 2 ? (4 * i + k) << 8 : 4 * i + k);
            stki_reader_done(reader, &sample);
        }
        stki_reader_destroy(reader);
        stki_scratch_fini(&scratch);
    }
}

/* A shard of llm.c read as raw data would have 512 wrong tokens at the beginning. */
static void test_llmc_warning(void **state)
{
    const char *path = stkt_path("shard.bin");
    int32_t head[256] = {20240520, 1, 0};
    const stki_reader_opts *opts = stkt_source("{dtype: u16, format: raw}");
    stki_container *container;
    stk_error err;

    (void)state;
    stkt_write_file(path, head, sizeof head);
    assert_ok(stki_container_open(path, opts, &container, &err));
    assert_int_equal(container->warning_count, 1);
    assert_non_null(strstr(container->warnings[0], "llm.c"));
    stki_container_release(container);
    opts = stkt_source("{dtype: u16, format: raw, offset: 1024}");
    assert_ok(stki_container_open(path, opts, &container, &err));
    assert_int_equal(container->warning_count, 0);
    stki_container_release(container);
}

static void test_no_memory(void **state)
{
    const char *path = stkt_path("memory.raw");
    stki_memory_stats before, after;
    stk_error err;
    int64_t n;

    (void)state;
    stkt_write_file(path, numbers, sizeof numbers);
    stki_memory_read(STKI_MEM_HOST, &before);
    for (n = 1;; n++) {
        stki_reader *reader;
        stk_status status;

        stki_memory_fail_at(n);
        status = stki_reader_open(path, &(stki_reader_opts){.alias_dtype = STK_U16}, &reader, &err);
        if (!status) {
            stki_reader_destroy(reader);
            break;
        }
        assert_int_equal(status, STK_E_MEMORY);
        stki_memory_read(STKI_MEM_HOST, &after);
        assert_int_equal(before.blocks, after.blocks);
    }
    stki_memory_fail_at(0);
    assert_true(n > 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),      cmocka_unit_test(test_other_files), cmocka_unit_test(test_values),
        cmocka_unit_test(test_llmc_warning), cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
