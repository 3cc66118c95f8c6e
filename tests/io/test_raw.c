/* test_raw.c: files of nothing but values. */
#include "allocate.h"
#include "container.h"
#include "io_files.h"
#include "stk_test.h"
#include "tensor_internal.h"
#include "tokens.h"

static const uint16_t numbers[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static void check_open(const char *path, stki_reader_opts opts, stk_status expected, const char *says)
{
    stki_reader *reader;
    stk_error err;

    opts.format = "raw";
    assert_status(stki_reader_open(path, &opts, &reader, &err), expected);
    if (expected) {
        assert_says(says);
        assert_says(path);
    } else {
        stki_reader_destroy(reader);
    }
}

static void test_options(void **state)
{
    const char *path = stkt_path("raw.bin");

    (void)state;
    stkt_write_file(path, numbers, sizeof numbers);
    check_open(path, (stki_reader_opts){0}, STK_E_CONFIG, "source.dtype");
    check_open(path, (stki_reader_opts){.alias_dtype = STK_U16}, STK_OK, NULL);
    check_open(path, (stki_reader_opts){.alias_dtype = STK_BF16, .raw_ndim = 1, .raw_shape = {3}}, STK_OK, NULL);
    check_open(path, (stki_reader_opts){.alias_dtype = STK_U16, .raw_ndim = 1, .raw_shape = {5}}, STK_E_CORRUPT,
               "offset 20: the data is no whole number of samples: found 24 bytes of data, expected a multiple of 10");
    check_open(path, (stki_reader_opts){.alias_dtype = STK_U16, .raw_ndim = 1, .raw_shape = {5}, .raw_count = 2},
               STK_OK, NULL);
    check_open(path, (stki_reader_opts){.alias_dtype = STK_U16, .raw_ndim = 1, .raw_shape = {5}, .raw_count = 3},
               STK_E_TRUNCATED, "found 24 bytes of data, expected 3 samples of 10 bytes");
    check_open(path, (stki_reader_opts){.alias_dtype = STK_U16, .raw_count = INT64_MAX}, STK_E_TRUNCATED, "samples");
    check_open(path, (stki_reader_opts){.alias_dtype = STK_U16, .raw_offset = 24}, STK_OK, NULL);
    check_open(path, (stki_reader_opts){.alias_dtype = STK_U16, .raw_offset = 25}, STK_E_TRUNCATED,
               "found 24 bytes, expected at least 25 (source.offset)");
    check_open(path, (stki_reader_opts){.alias_dtype = STK_U16, .raw_offset = -1}, STK_E_CONFIG, "source.offset");
    check_open(path, (stki_reader_opts){.alias_dtype = STK_U16, .raw_ndim = 1}, STK_E_CONFIG, "source.shape: axis 0");
    check_open(path, (stki_reader_opts){.alias_dtype = STK_U16, .raw_ndim = STK_MAX_DIMS}, STK_E_CONFIG, "32 axes");
    check_open(path,
               (stki_reader_opts){.alias_dtype = STK_U16, .raw_ndim = 2, .raw_shape = {INT64_C(1) << 40, 1 << 30}},
               STK_E_CONFIG, "2^63");
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
        stki_reader_opts opts = {.access = modes[m / 2],
                                 .alias_dtype = STK_U16,
                                 .raw_ndim = 2,
                                 .raw_shape = {2, 2},
                                 .raw_offset = 4,
                                 .raw_big_endian = m % 2 == 1};

        stki_scratch_init(&scratch);
        assert_ok(stki_reader_open(path, &opts, &reader, &err)); /* .raw says what it is */
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

/* A shard of llm.c that is configured as raw data would give 512 false tokens. */
static void test_llmc_warning(void **state)
{
    const char *path = stkt_path("shard.bin");
    int32_t head[256] = {20240520, 1, 0};
    stki_reader_opts opts = {.alias_dtype = STK_U16, .format = "raw"};
    stki_container *container;
    stk_error err;

    (void)state;
    stkt_write_file(path, head, sizeof head);
    assert_ok(stki_container_open(path, &opts, &container, &err));
    assert_int_equal(container->warning_count, 1);
    assert_non_null(strstr(container->warnings[0], "llm.c"));
    stki_container_release(container);
    opts.raw_offset = 1024;
    assert_ok(stki_container_open(path, &opts, &container, &err));
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
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_llmc_warning),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
