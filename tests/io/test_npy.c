/* Tests of .npy files as samples and as whole arrays. Rows N01 … N28 reproduce bugs that were reported for other
 * readers; each one cites the report. */
#include "allocate.h"
#include "faults.h"
#include "file.h"
#include "io_files.h"
#include "npy_open.h"
#include "source_opts.h"
#include "tensor_internal.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>

#include <cmocka.h>

static stk_error err;
static const enum stki_access modes[] = {STKI_ACCESS_MMAP, STKI_ACCESS_PREAD};

static stki_reader *open_ok(const char *path, enum stki_access access, stk_dtype alias)
{
    stki_reader *reader = NULL;
    stki_reader_opts opts = {.access = access, .pattern = STKI_PATTERN_RANDOM, .alias_dtype = alias};

    if (stkt_npy_reader(path, &opts, &reader, &err))
        fail_msg("%s", err.message);
    return reader;
}

/* Copies sample `index` to `out` in row-major order and native byte order. Returns its size in bytes. */
static int64_t sample(const stki_reader *reader, int64_t index, void *out)
{
    stki_scratch scratch;
    stk_tensor t;
    int64_t strides[STK_MAX_DIMS], bytes;

    stki_scratch_init(&scratch);
    assert_int_equal(reader->ops->read(reader, index, NULL, &scratch, &t, &err), STK_OK);
    assert_true(t.flags & STK_TENSOR_READONLY);
    assert_int_equal(!!(t.flags & STK_TENSOR_SWAPPED), reader->swapped);
    assert_int_equal(t.dtype, reader->dtype);
    assert_int_equal(t.ndim, reader->ndim);
    assert_int_equal(stki_row_major(t.dtype, t.ndim, t.shape, strides, &bytes, &err), STK_OK);
    assert_int_equal(bytes, reader->max_bytes);
    stki_copy_strided(out, t.dtype, strides, t.data, t.dtype, t.strides, reader->swapped, t.ndim, t.shape);
    if (reader->base && bytes > 0) { /* the fast path must return the same */
        assert_ptr_equal(t.data, (const char *)reader->base + index * reader->sample_stride);
        assert_memory_equal(t.strides, reader->strides, sizeof *t.strides * (size_t)t.ndim);
    }
    stki_reader_done(reader, &t);
    stki_scratch_fini(&scratch);
    return bytes;
}

static void all_samples(const char *path, stk_dtype alias, const void *expected, int64_t count, int64_t bytes)
{
    for (int m = 0; m < 2; m++) {
        stki_reader *reader = open_ok(path, modes[m], alias);
        char got[4096];
        assert_int_equal(reader->count, count);
        assert_int_equal(reader->max_bytes, bytes);
        assert_string_equal(reader->access, m ? "pread" : "mmap");
        assert_int_equal(reader->copies, m);
        assert_int_equal(reader->base == NULL, m);
        for (int64_t i = 0; i < count; i++) {
            memset(got, 0xA5, sizeof got);
            assert_int_equal(sample(reader, i, got), bytes);
            assert_memory_equal(got, (const char *)expected + i * bytes, (size_t)bytes);
        }
        stki_reader_destroy(reader);
    }
}

static void refused(const char *path, stk_status status, const char *says)
{
    for (int m = 0; m < 2; m++) {
        stki_reader_opts opts = {.access = modes[m]};
        stki_reader *reader = NULL;
        stk_tensor array = {.ndim = 77};
        assert_int_equal(stkt_npy_reader(path, &opts, &reader, &err), status);
        assert_null(reader);
        if (!strstr(err.message, says) || !strstr(err.message, path))
            fail_msg("message: %s, expected in it: %s", err.message, says);
        if (status != STK_E_UNSUPPORTED || !strstr(says, "samples")) {
            assert_int_equal(stkt_npy_tensor(path, &opts, &array, &err), status);
            assert_int_equal(array.ndim, 77);
        }
    }
}

/* Row N01 (NVIDIA/DALI#1958): one-byte dtypes have no byte order. */
static void test_n01_one_byte_types(void **state)
{
    const char *path = stkt_path("n01.npy");
    unsigned char data[18];

    (void)state;
    for (int i = 0; i < 18; i++)
        data[i] = (unsigned char)(i * 15);
    for (int sign = 0; sign < 2; sign++) {
        stki_reader *reader;
        stkt_write_npy(path, sign ? "|i1" : "|u1", "False", "(2, 3, 3)", 64, data, sizeof data);
        all_samples(path, STK_DTYPE_NONE, data, 2, 9);
        reader = open_ok(path, STKI_ACCESS_AUTO, STK_DTYPE_NONE);
        assert_int_equal(reader->dtype, sign ? STK_I8 : STK_U8);
        assert_int_equal(reader->ndim, 2);
        assert_int_equal(reader->shape[0], 3);
        assert_int_equal(reader->data_offset, 64 * 2);
        assert_int_equal(reader->file_bytes, 128 + 18);
        stki_reader_destroy(reader);
    }
}

/* Row N02 (NVIDIA/DALI#4744): bools can be read; a byte other than 0 and 1 is true and returned as 1. */
static void test_n02_bool(void **state)
{
    const char *path = stkt_path("n02.npy");
    static const unsigned char odd[8] = {0, 1, 2, 0x80, 0xFF, 0, 0x10, 1};
    static const unsigned char truth[8] = {0, 1, 1, 1, 1, 0, 1, 1};
    int64_t shape[1] = {8};

    (void)state;
    stkt_write_npy(path, "|b1", "False", "(2, 4)", 64, odd, sizeof odd);
    all_samples(path, STK_DTYPE_NONE, truth, 2, 4);
    for (int m = 0; m < 2; m++) {
        stki_reader_opts opts = {.access = modes[m]};
        stk_tensor array, copy, flat, whole = {0};
        float as_float[8];
        assert_int_equal(stkt_npy_tensor(path, &opts, &array, &err), STK_OK);
        assert_int_equal(stk_tensor_clone(&array, &copy, &err), STK_OK);
        assert_memory_equal(copy.data, truth, 8);
        stk_tensor_release(&copy);
        assert_int_equal(stk_tensor_view(&array, 1, shape, &flat, &err), STK_OK);
        assert_int_equal(stk_tensor_borrow(as_float, STK_F32, 1, shape, NULL, &whole, &err), STK_OK);
        assert_int_equal(stk_tensor_copy(&whole, &flat, &err), STK_OK);
        for (int i = 0; i < 8; i++)
            assert_true(as_float[i] == (float)truth[i]);
        stk_tensor_release(&flat);
        stk_tensor_release(&array);
    }
}

/* Row N04 (NVIDIA/DALI#5265): complex64 is supported. */
static void test_n04_complex(void **state)
{
    const char *path = stkt_path("n04.npy");
    static const float data[6] = {1, 2, -3, 4.5f, 0, -1};

    (void)state;
    stkt_write_npy(path, "<c8", "False", "(3,)", 64, data, sizeof data);
    all_samples(path, STK_DTYPE_NONE, data, 3, 8);
}

/* Row N05 (rogersce/cnpy#7): Fortran order is not ignored. arange(6).reshape(2, 3) is stored as 0 3 1 4 2 5. */
static void test_n05_fortran(void **state)
{
    const char *path = stkt_path("n05.npy");
    static const int64_t stored[6] = {0, 3, 1, 4, 2, 5}, expected[6] = {0, 1, 2, 3, 4, 5};
    stk_tensor array;

    (void)state;
    stkt_write_npy(path, "<i8", "True", "(2, 3)", 64, stored, sizeof stored);
    all_samples(path, STK_DTYPE_NONE, expected, 2, 24);
    assert_int_equal(stkt_npy_tensor(path, NULL, &array, &err), STK_OK);
    assert_int_equal(array.strides[0], 8);
    assert_int_equal(array.strides[1], 16);
    for (int64_t i = 0; i < 2; i++)
        for (int64_t j = 0; j < 3; j++)
            assert_int_equal(*(int64_t *)(void *)((char *)array.data + i * array.strides[0] + j * array.strides[1]),
                             3 * i + j);
    stk_tensor_release(&array);
}

/* The same for an array that is too large to be read whole for each sample. */
static void test_large_fortran_arrays_are_gathered(void **state)
{
    const char *path = stkt_path("fortran-large.npy");
    enum { N = 70000, A = 3, B = 2 };
    int32_t *stored = malloc(sizeof(int32_t) * N * A * B);
    stki_reader *reader;

    (void)state;
    for (int i = 0; i < N; i++)
        for (int a = 0; a < A; a++)
            for (int b = 0; b < B; b++)
                stored[i + N * (a + A * b)] = i * 10 + a * 2 + b;
    stkt_write_npy(path, "<i4", "True", "(70000, 3, 2)", 64, stored, sizeof(int32_t) * N * A * B);
    for (int m = 0; m < 2; m++) {
        static const int64_t some[] = {0, 1, 12345, N - 1};
        reader = open_ok(path, modes[m], STK_DTYPE_NONE);
        for (int s = 0; s < 4; s++) {
            int32_t got[A * B];
            sample(reader, some[s], got);
            for (int e = 0; e < A * B; e++)
                assert_int_equal(got[e], some[s] * 10 + e);
        }
        reader->ops->will_need(reader, some, 4);
        stki_reader_destroy(reader);
    }
    free(stored);
}

/* Row N07 (rogersce/cnpy#33): shape () is one element without axes, and has no samples. */
static void test_n07_scalar(void **state)
{
    const char *path = stkt_path("n07.npy");
    static const double pi = 3.14159;

    (void)state;
    stkt_write_npy(path, "<f8", "False", "()", 64, &pi, sizeof pi);
    for (int m = 0; m < 2; m++) {
        stki_reader_opts opts = {.access = modes[m]};
        stk_tensor array;
        double got;
        assert_int_equal(stkt_npy_tensor(path, &opts, &array, &err), STK_OK);
        assert_int_equal(array.ndim, 0);
        assert_int_equal(stk_tensor_numel(&array), 1);
        memcpy(&got, array.data, sizeof got);
        assert_true(got == pi);
        stk_tensor_release(&array);
    }
    refused(path, STK_E_UNSUPPORTED, "cannot be divided into samples");
}

/* Row N08 (rom1504/embedding-reader#37): with one axis, samples are single numbers. */
static void test_n08_one_axis(void **state)
{
    const char *path = stkt_path("n08.npy");
    uint16_t data[768];
    stki_reader *reader;

    (void)state;
    for (int i = 0; i < 768; i++)
        data[i] = (uint16_t)(i * 21);
    stkt_write_npy(path, "<f2", "False", "(768,)", 64, data, sizeof data);
    all_samples(path, STK_DTYPE_NONE, data, 768, 2);
    reader = open_ok(path, STKI_ACCESS_AUTO, STK_DTYPE_NONE);
    assert_int_equal(reader->dtype, STK_F16);
    assert_int_equal(reader->ndim, 0);
    stki_reader_destroy(reader);
}

/* Row N09 (rogersce/cnpy#77): one array in each version of the format. */
static void test_n09_versions(void **state)
{
    static const char text[] = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2), }";
    static const char utf8[] = "{'descr': [('temp\xc3\xa9rature', '<f4')], 'fortran_order': False, 'shape': (2,), }";
    static const int16_t data[4] = {1, -2, 3, -4};
    const char *path = stkt_path("n09.npy");

    (void)state;
    for (int version = 1; version <= 3; version++) {
        stkt_write_npy_raw(path, version, text, sizeof text - 1, data, sizeof data);
        all_samples(path, STK_DTYPE_NONE, data, 2, 4);
    }
    stkt_write_npy_raw(path, 3, utf8, sizeof utf8 - 1, data, sizeof data);
    refused(path, STK_E_UNSUPPORTED, "structured");
}

/* Row N11 (numpy/numpy#8784): keys in any order, and fields that are named like keys. */
static void test_n11_key_words(void **state)
{
    static const char text[] = "{\"shape\":(2,2),   'fortran_order'  : False,'descr':\"<i2\"}";
    static const char fields[] =
        "{'descr': [('shape', '<i2'), ('fortran_order', '<i2')], 'fortran_order': False, 'shape': (2,), }";
    static const int16_t data[4] = {1, -2, 3, -4};
    const char *path = stkt_path("n11.npy");

    (void)state;
    stkt_write_npy_raw(path, 1, text, sizeof text - 1, data, sizeof data);
    all_samples(path, STK_DTYPE_NONE, data, 2, 4);
    stkt_write_npy_raw(path, 1, fields, sizeof fields - 1, data, sizeof data);
    refused(path, STK_E_UNSUPPORTED, "found [('shape', '<i2'), ('fortran_order', '<i2')]");
}

/* Row N14 (numpy/numpy#13719): a bare integer is not a shape. */
static void test_n14_bare_integer(void **state)
{
    const char *path = stkt_path("n14.npy");

    (void)state;
    stkt_write_npy(path, "|u1", "False", "10", 64, "0123456789", 10);
    refused(path, STK_E_CORRUPT, "found '10', expected a tuple");
}

/* Row N15 (fortran-lang/stdlib#581): no padding, data at an odd offset, unaligned elements. */
static void test_n15_any_offset(void **state)
{
    const char *path = stkt_path("n15.npy");
    double data[40];

    (void)state;
    for (int i = 0; i < 40; i++)
        data[i] = i / 7.0;
    for (int extra = 0; extra < 17; extra++) {
        char text[128];
        int length =
            snprintf(text, sizeof text, "{'descr': '<f8', 'fortran_order': False, 'shape': (10,4,)}%*s", extra, "");
        stki_reader *reader;
        stkt_write_npy_raw(path, 2, text, (size_t)length, data, sizeof data);
        all_samples(path, STK_DTYPE_NONE, data, 10, 32);
        reader = open_ok(path, STKI_ACCESS_AUTO, STK_DTYPE_NONE);
        assert_int_equal(reader->data_offset, 12 + length);
        stki_reader_destroy(reader);
    }
}

/* Row N16 (NVIDIA/DALI#1858): all bytes of the magic must match. */
static void test_n16_magic(void **state)
{
    static const char nearly[] = "NUMPY\x01\x00\x3c\x00{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}  1";
    const char *path = stkt_path("n16.npy");

    (void)state;
    stkt_write_file(path, nearly, sizeof nearly - 1);
    refused(path, STK_E_CORRUPT, "offset 0: not an npy file: found byte 0x4e, expected 0x93");
}

/* Row N18 (numpy/numpy#28330): if half of the data is missing, opening fails with both sizes. */
static void test_n18_cut(void **state)
{
    const char *path = stkt_path("n18.npy");
    static float data[128 * 64];

    (void)state;
    stkt_write_npy(path, "<f4", "False", "(128, 64)", 64, data, sizeof data);
    assert_int_equal(truncate(path, (128 + 32768) / 2), 0);
    refused(path, STK_E_TRUNCATED,
            "offset 128: the data is truncated: found 16320 bytes, expected 32768 bytes of float32");
}

/* Row N19 (numpy/numpy#12300): the header's count is compared with the size of the file. */
static void test_n19_no_body(void **state)
{
    const char *path = stkt_path("n19.npy");
    stki_memory_stats stats;

    (void)state;
    stkt_write_npy(path, "<f8", "False", "(100000000,)", 64, "", 0);
    stki_memory_reset_peak(STKI_MEM_HOST);
    refused(path, STK_E_TRUNCATED, "found 0 bytes, expected 800000000 bytes of float64");
    stki_memory_read(STKI_MEM_HOST, &stats);
    assert_true(stats.peak_bytes < 100000);
}

/* Row N21 (rogersce/cnpy#71): a dimension beyond 2^31, in a sparse file. */
static void test_n21_more_than_2_31(void **state)
{
    const char *path = stkt_path("n21.npy");
    static const int64_t last = INT64_C(3000000000) - 1;

    (void)state;
    stkt_write_npy(path, "|u1", "False", "(3000000000,)", 64, "", 0);
    assert_int_equal(truncate(path, 128 + last), 0);
    stkt_append_file(path, "\x5a", 1);
    for (int m = 0; m < 2; m++) {
        stki_reader *reader = open_ok(path, modes[m], STK_DTYPE_NONE);
        unsigned char got;
        assert_int_equal(reader->count, last + 1);
        sample(reader, last, &got);
        assert_int_equal(got, 0x5a);
        sample(reader, INT64_C(1) << 31, &got);
        assert_int_equal(got, 0);
        stki_reader_destroy(reader);
    }
    assert_int_equal(truncate(path, 128 + last), 0);
    refused(path, STK_E_TRUNCATED, "found 2999999999 bytes, expected 3000000000 bytes");
}

/* Row N22 (pytorch/pytorch#42582): the product of the dimensions overflows. */
static void test_n22_overflow(void **state)
{
    const char *path = stkt_path("n22.npy");

    (void)state;
    stkt_write_npy(path, "<f4", "False", "(2, 2, 1, 2305843009213693952)", 64, "1234", 4);
    refused(path, STK_E_CORRUPT, "the shape overflows");
}

/* Row N24 (NVIDIA/DALI#2932): headers of different lengths, read for two epochs. */
static void test_n24_two_epochs(void **state)
{
    static const int32_t first[4] = {1, 2, 3, 4}, second[4] = {5, 6, 7, 8};
    char a[256], b[256];
    stki_reader *readers[2];

    (void)state;
    strcpy(a, stkt_path("n24a.npy"));
    strcpy(b, stkt_path("n24b.npy"));
    stkt_write_npy(a, "<i4", "False", "(2, 2)", 64, first, sizeof first);
    stkt_write_npy(b, "<i4", "False", "(2, 2)", 512, second, sizeof second);
    for (int m = 0; m < 2; m++) {
        readers[0] = open_ok(a, modes[m], STK_DTYPE_NONE);
        readers[1] = open_ok(b, modes[m], STK_DTYPE_NONE);
        for (int epoch = 0; epoch < 2; epoch++)
            for (int64_t i = 0; i < 2; i++) {
                int32_t got[2];
                sample(readers[0], i, got);
                assert_memory_equal(got, first + 2 * i, 8);
                sample(readers[1], i, got);
                assert_memory_equal(got, second + 2 * i, 8);
            }
        stki_reader_destroy(readers[0]);
        stki_reader_destroy(readers[1]);
    }
}

/* Row N25 (NVIDIA/DALI#6147): the data begins at a page boundary. */
static void test_n25_data_at_a_page(void **state)
{
    const char *path = stkt_path("n25.npy");
    int32_t data[12];
    stki_reader *reader;

    (void)state;
    for (int i = 0; i < 12; i++)
        data[i] = 1000 - i;
    stkt_write_npy(path, "<i4", "False", "(3, 4)", 4096, data, sizeof data);
    all_samples(path, STK_DTYPE_NONE, data, 3, 16);
    reader = open_ok(path, STKI_ACCESS_AUTO, STK_DTYPE_NONE);
    assert_int_equal(reader->data_offset, 4096);
    stki_reader_destroy(reader);
}

static void reads_without_a_mapping(const char *path, const int32_t *data)
{
    stki_reader *reader = open_ok(path, STKI_ACCESS_MMAP, STK_DTYPE_NONE);
    stki_scratch scratch;

    assert_string_equal(reader->access, "pread");
    assert_non_null(strstr(reader->note, "mmap failed"));
    assert_null(reader->base);
    stki_scratch_init(&scratch);
    assert_int_equal(stki_scratch_reserve(&scratch, 4096, &err), STK_OK);
    for (int64_t i = 0; i < 3; i++) {
        stk_tensor t;
        memset(scratch.data, 0xDB, 4096); /* so that stale memory cannot pass for data */
        assert_int_equal(reader->ops->read(reader, i, NULL, &scratch, &t, &err), STK_OK);
        assert_memory_equal(t.data, data + 4 * i, 16);
        stki_reader_done(reader, &t);
    }
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
}

/* Row N26 (NVIDIA/DALI#6482): a file that cannot be mapped is read, and a note says so. */
static void test_n26_no_mapping(void **state)
{
    const char *path = stkt_path("n26.npy");
    int32_t data[12];
    stk_tensor array;

    (void)state;
    for (int i = 0; i < 12; i++)
        data[i] = i * i;
    stkt_write_npy(path, "<i4", "False", "(3, 4)", 64, data, sizeof data);
    stkt_fail_maps(1);
    reads_without_a_mapping(path, data);
    stkt_fail_maps(1);
    assert_int_equal(stkt_npy_tensor(path, NULL, &array, &err), STK_OK);
    assert_memory_equal(array.data, data, sizeof data);
    stk_tensor_release(&array);
}

/* The same if the system rejects the mapping. */
static void test_n26_no_address_space(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)state;
    skip(); /* sanitizers use terabytes of address space */
#else
    const char *path = stkt_path("n26-large.npy");
    int32_t data[12] = {0};
    struct rlimit old, little;

    (void)state;
    stkt_write_npy(path, "<i4", "False", "(3, 4)", 64, data, sizeof data);
    assert_int_equal(truncate(path, INT64_C(1) << 34), 0); /* sparse; bytes after the data are allowed */
    assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
    little = (struct rlimit){.rlim_cur = (rlim_t)1 << 33, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &little), 0);
    reads_without_a_mapping(path, data);
    assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
#endif
}

/* Row N28 (pytorch/pytorch#35151): a mapped array is read-only: writing returns a status, reading works. */
static void test_n28_read_only(void **state)
{
    const char *path = stkt_path("n28.npy");
    static const int32_t data[4] = {4, 3, 2, 1};
    int64_t shape[2] = {2, 2};
    int32_t other[4] = {0};
    stk_tensor array, view, copy, plain;

    (void)state;
    stkt_write_npy(path, "<i4", "False", "(2, 2)", 64, data, sizeof data);
    assert_int_equal(stkt_npy_tensor(path, NULL, &array, &err), STK_OK);
    assert_int_equal(stk_tensor_borrow(other, STK_I32, 2, shape, NULL, &plain, &err), STK_OK);
    assert_int_not_equal(stk_tensor_copy(&array, &plain, &err), STK_OK);
    assert_int_equal(stk_tensor_select(&array, 0, 1, &view, &err), STK_OK);
    assert_true(view.flags & STK_TENSOR_READONLY); /* views are also read-only */
    assert_int_not_equal(stk_tensor_copy(&view, &plain, &err), STK_OK);
    stk_tensor_release(&array); /* the view keeps the file and the mapping */
    assert_memory_equal(view.data, data + 2, 8);
    assert_int_equal(stk_tensor_clone(&view, &copy, &err), STK_OK);
    assert_false(copy.flags & STK_TENSOR_READONLY);
    stk_tensor_release(&view);
    assert_memory_equal(copy.data, data + 2, 8);
    stk_tensor_release(&copy);
}

/* Big-endian elements are flagged, and each copy is native, with both parts of complex numbers swapped separately. */
static void test_big_endian(void **state)
{
    const char *path = stkt_path("big.npy");
    static const unsigned char u4[8] = {0x01, 0x02, 0x03, 0x04, 0xff, 0, 0, 0x10};
    static const uint32_t native[2] = {0x01020304, 0xff000010};
    static const unsigned char c8[8] = {0x3f, 0x80, 0, 0, 0xc0, 0x00, 0, 0};
    static const float one[2] = {1.0f, -2.0f};
    stk_tensor array;

    (void)state;
    stkt_write_npy(path, ">u4", "False", "(2,)", 64, u4, sizeof u4);
    all_samples(path, STK_DTYPE_NONE, native, 2, 4);
    stkt_write_npy(path, ">c8", "False", "(1,)", 64, c8, sizeof c8);
    all_samples(path, STK_DTYPE_NONE, one, 1, 8);
    stkt_write_npy(path, ">u1", "False", "(8,)", 64, u4, sizeof u4);
    assert_int_equal(stkt_npy_tensor(path, NULL, &array, &err), STK_OK);
    assert_false(array.flags & STK_TENSOR_SWAPPED);
    stk_tensor_release(&array);
}

/* Row W44 (numpy/numpy#12653): arrays without elements are valid. */
static void test_empty_arrays(void **state)
{
    const char *path = stkt_path("empty.npy");
    static const char *const shapes[] = {"(0,)", "(0, 3)", "(3, 0, 2)", "(3, 0)"};
    static const int64_t counts[] = {0, 0, 3, 3};

    (void)state;
    for (int i = 0; i < 4; i++)
        for (int fortran = 0; fortran < 2; fortran++) {
            stkt_write_npy(path, "<f4", fortran ? "True" : "False", shapes[i], 1, "", 0);
            all_samples(path, STK_DTYPE_NONE, "", counts[i], i == 0 ? 4 : i == 1 ? 12 : 0);
            for (int m = 0; m < 2; m++) {
                stki_reader_opts opts = {.access = modes[m]};
                static const int64_t indices[] = {0, 1, 2};
                stki_reader *reader = open_ok(path, modes[m], STK_DTYPE_NONE);
                stk_tensor array;
                if (counts[i])
                    reader->ops->will_need(reader, indices, 3);
                stki_reader_destroy(reader);
                assert_int_equal(stkt_npy_tensor(path, &opts, &array, &err), STK_OK);
                assert_int_equal(stk_tensor_numel(&array), 0);
                stk_tensor_release(&array);
            }
        }
}

static void test_trailing_bytes_are_ignored(void **state)
{
    const char *path = stkt_path("trailing.npy");
    static const int16_t data[2] = {7, 8};

    (void)state;
    stkt_write_npy(path, "<i2", "False", "(2,)", 64, data, sizeof data);
    stkt_append_file(path, "\x93NUMPY and more", 15);
    all_samples(path, STK_DTYPE_NONE, data, 2, 2);
}

static void test_indices_outside(void **state)
{
    const char *path = stkt_path("range.npy");
    static const int64_t outside[] = {-1, 2, INT64_MIN, INT64_MAX};

    (void)state;
    stkt_write_npy(path, "|u1", "False", "(2, 3)", 64, "abcdef", 6);
    for (int m = 0; m < 2; m++) {
        stki_reader *reader = open_ok(path, modes[m], STK_DTYPE_NONE);
        for (int i = 0; i < 4; i++) {
            stki_scratch scratch = {0};
            stk_tensor t;
            assert_int_equal(reader->ops->read(reader, outside[i], NULL, &scratch, &t, &err), STK_E_RANGE);
            assert_int_equal(err.record, outside[i]);
            assert_non_null(strstr(err.message, path));
            assert_string_equal(err.expected, "0 to 1");
        }
        stki_reader_destroy(reader);
    }
}

/* An error belongs to its record; the next read works. */
static void test_failing_reads(void **state)
{
    const char *path = stkt_path("failing.npy");

    (void)state;
    for (int fortran = 0; fortran < 2; fortran++) {
        stki_reader *reader;
        stki_scratch scratch;
        stk_tensor t;
        stkt_write_npy(path, "|u1", fortran ? "True" : "False", "(2, 3)", 64, "abcdef", 6);
        reader = open_ok(path, STKI_ACCESS_PREAD, STK_DTYPE_NONE);
        stki_scratch_init(&scratch);
        stkt_fail_read(1, EIO);
        assert_int_equal(reader->ops->read(reader, 1, NULL, &scratch, &t, &err), STK_E_IO);
        assert_int_equal(err.record, 1);
        assert_int_equal(err.offset, fortran ? 129 : 131);
        assert_non_null(strstr(err.message, path));
        stkt_short_reads(1);
        assert_int_equal(reader->ops->read(reader, 1, NULL, &scratch, &t, &err), STK_OK);
        assert_int_equal(((char *)t.data)[2 * t.strides[0]], 'f');
        stkt_short_reads(0);
        stki_reader_done(reader, &t);
        assert_int_equal(truncate(path, 132), 0); /* truncated while it is open */
        assert_int_equal(reader->ops->read(reader, 1, NULL, &scratch, &t, &err), STK_E_TRUNCATED);
        assert_int_equal(err.record, 1);
        stki_scratch_fini(&scratch);
        stki_reader_destroy(reader);
    }
}

static void test_header_limit(void **state)
{
    const char *path = stkt_path("long.npy");
    stki_reader_opts opts = *stkt_source("{header_limit: 1000}");
    stki_reader *reader = NULL;

    (void)state;
    stkt_write_npy(path, "|u1", "False", "(1,)", 2048, "x", 1);
    assert_int_equal(stkt_npy_reader(path, &opts, &reader, &err), STK_E_LIMIT);
    assert_string_equal(err.found, "2038 bytes");
    assert_string_equal(err.expected, "at most 1000 (header_limit)");
    opts = *stkt_source("{header_limit: 2038}");
    assert_int_equal(stkt_npy_reader(path, &opts, &reader, &err), STK_OK);
    stki_reader_destroy(reader);
}

/* Related to row F09: a file of mode 0444 can be opened and is not changed. */
static void test_a_file_is_never_changed(void **state)
{
    const char *path = stkt_path("mode.npy");
    struct stat before, after;

    (void)state;
    stkt_write_npy(path, "|u1", "False", "(2, 3)", 64, "abcdef", 6);
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(stat(path, &before), 0);
    all_samples(path, STK_DTYPE_NONE, "abcdef", 2, 3);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim);
}

static stk_status open_and_read(const char *path, enum stki_access access)
{
    stki_reader_opts opts = {.access = access};
    stki_reader *reader = NULL;
    stki_scratch scratch;
    stk_tensor t;
    stk_status status = stkt_npy_reader(path, &opts, &reader, &err);

    if (status) {
        assert_null(reader);
        return status;
    }
    stki_scratch_init(&scratch);
    status = reader->ops->read(reader, 0, NULL, &scratch, &t, &err);
    if (!status)
        stki_reader_done(reader, &t);
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
    return status;
}

static stk_status open_array(const char *path, enum stki_access access)
{
    stki_reader_opts opts = {.access = access};
    stk_tensor array;
    stk_status status = stkt_npy_tensor(path, &opts, &array, &err);

    if (!status)
        stk_tensor_release(&array);
    return status;
}

static void test_every_allocation_failing(void **state)
{
    const char *path = stkt_path("memory.npy");
    stki_memory_stats before, after;

    (void)state;
    stkt_write_npy(path, "|u1", "False", "(2, 3)", 64, "abcdef", 6);
    for (int m = 0; m < 2; m++)
        for (int whole = 0; whole < 2; whole++) {
            stk_status status;
            int n = 0;
            stki_memory_read(STKI_MEM_HOST, &before);
            do {
                stki_memory_fail_at(++n);
                status = whole ? open_array(path, modes[m]) : open_and_read(path, modes[m]);
                assert_true(status == STK_OK || status == STK_E_MEMORY);
            } while (status && n < 50);
            stki_memory_fail_at(0);
            assert_true(n > 3 && n < 50);
            stki_memory_read(STKI_MEM_HOST, &after);
            assert_int_equal(before.bytes, after.bytes);
            assert_int_equal(before.blocks, after.blocks);
        }
}

/* After the first samples nothing more is allocated. */
static void test_no_allocation_when_warm(void **state)
{
    const char *path = stkt_path("warm.npy");
    stki_memory_stats before, after;
    char data[3000];

    (void)state;
    memset(data, 3, sizeof data);
    stkt_write_npy(path, "|u1", "False", "(30, 100)", 64, data, sizeof data);
    for (int m = 0; m < 2; m++) {
        stki_reader *reader = open_ok(path, modes[m], STK_DTYPE_NONE);
        stki_scratch scratch;
        stki_scratch_init(&scratch);
        for (int64_t i = 0; i < 60; i++) {
            static const int64_t ahead[] = {1, 2, 29};
            stk_tensor t;
            if (i == 1)
                stki_memory_read(STKI_MEM_HOST, &before);
            reader->ops->will_need(reader, ahead, 3);
            assert_int_equal(reader->ops->read(reader, i % 30, NULL, &scratch, &t, &err), STK_OK);
            stki_reader_done(reader, &t);
        }
        stki_memory_read(STKI_MEM_HOST, &after);
        assert_int_equal(before.total_allocations, after.total_allocations);
        stki_scratch_fini(&scratch);
        stki_reader_destroy(reader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_n01_one_byte_types),
        cmocka_unit_test(test_n02_bool),
        cmocka_unit_test(test_n04_complex),
        cmocka_unit_test(test_n05_fortran),
        cmocka_unit_test(test_large_fortran_arrays_are_gathered),
        cmocka_unit_test(test_n07_scalar),
        cmocka_unit_test(test_n08_one_axis),
        cmocka_unit_test(test_n09_versions),
        cmocka_unit_test(test_n11_key_words),
        cmocka_unit_test(test_n14_bare_integer),
        cmocka_unit_test(test_n15_any_offset),
        cmocka_unit_test(test_n16_magic),
        cmocka_unit_test(test_n18_cut),
        cmocka_unit_test(test_n19_no_body),
        cmocka_unit_test(test_n21_more_than_2_31),
        cmocka_unit_test(test_n22_overflow),
        cmocka_unit_test(test_n24_two_epochs),
        cmocka_unit_test(test_n25_data_at_a_page),
        cmocka_unit_test(test_n26_no_mapping),
        cmocka_unit_test(test_n26_no_address_space),
        cmocka_unit_test(test_n28_read_only),
        cmocka_unit_test(test_big_endian),
        cmocka_unit_test(test_empty_arrays),
        cmocka_unit_test(test_trailing_bytes_are_ignored),
        cmocka_unit_test(test_indices_outside),
        cmocka_unit_test(test_failing_reads),
        cmocka_unit_test(test_header_limit),
        cmocka_unit_test(test_a_file_is_never_changed),
        cmocka_unit_test(test_every_allocation_failing),
        cmocka_unit_test(test_no_allocation_when_warm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
