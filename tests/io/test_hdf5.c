/* Tests of HDF5 data sets as arrays and as samples. Rows H01 … reproduce bugs that were reported for other readers;
 * each one cites the report. The expected values are those that libhdf5 reads. */
#include "allocate.h"
#include "cmocka_all.h"
#include "container.h"
#include "error.h"
#include "faults.h"
#include "file.h"
#include "format.h"
#include "hdf5_files.h"
#include "hdf5_reader.h"
#include "io_files.h"
#include "source_opts.h"
#include "tensor_internal.h"
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static stk_error err;
static const stki_reader_opts defaults;

/* ---- making and reading ---- */

static hid_t new_file(const char *path)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);

    STKT_MUST(file);
    return file;
}

static hid_t chunked(int rank, const hsize_t *chunk)
{
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);

    STKT_MUST(plist);
    if (chunk)
        STKT_MUST(H5Pset_chunk(plist, rank, chunk));
    return plist;
}

/* Creates "x" with this type and closes plist. */
static hid_t new_dataset(hid_t file, hid_t type, int rank, const hsize_t *shape, const hsize_t *largest, hid_t plist)
{
    hid_t space = rank < 0    ? H5Screate(H5S_NULL)
                  : rank == 0 ? H5Screate(H5S_SCALAR)
                              : H5Screate_simple(rank, shape, largest);
    hid_t dataset = H5Dcreate2(file, "x", type, space, H5P_DEFAULT, plist, H5P_DEFAULT);

    STKT_MUST(dataset);
    STKT_MUST(H5Sclose(space));
    if (plist != H5P_DEFAULT)
        STKT_MUST(H5Pclose(plist));
    return dataset;
}

static void close_both(hid_t dataset, hid_t file)
{
    STKT_MUST(H5Dclose(dataset));
    STKT_MUST(H5Fclose(file));
}

/* Reads with libhdf5 into a buffer of zeros. */
static void library_read(const char *path, const char *name, hid_t type, void *to)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), dataset = H5Dopen2(file, name, H5P_DEFAULT);

    STKT_MUST(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to));
    close_both(dataset, file);
}

static stk_status open_reader(const char *path, const stki_reader_opts *opts, stki_reader **out)
{
    stki_container *container;
    int64_t member;
    stk_status status = stki_container_open(path, opts, &container, &err);

    if (status)
        return status;
    status = stki_container_find(container, opts, &member, &err);
    if (!status)
        status = stki_container_reader(container, member, opts, out, &err);
    stki_container_release(container);
    return status;
}

static stk_status whole(const char *path, const stki_reader_opts *opts, stk_tensor *out)
{
    stki_container *container;
    stki_array array;
    int64_t member;
    stk_status status = stki_container_open(path, opts, &container, &err);

    if (status)
        return status;
    status = stki_container_find(container, opts, &member, &err);
    if (!status)
        status = stki_container_array(container, member, opts, &array, &err);
    if (!status) {
        status = stki_array_tensor(&array, path, out, &err);
        stki_array_release(&array);
    }
    stki_container_release(container);
    return status;
}

/* Copies one sample to `out`, contiguous and in native byte order. */
static stk_status sample(const stki_reader *reader, int64_t index, void *out)
{
    stki_scratch scratch;
    stk_tensor t;
    int64_t strides[STK_MAX_DIMS], bytes;
    stk_status status;

    stki_scratch_init(&scratch);
    status = reader->ops->read(reader, index, NULL, &scratch, &t, &err);
    if (status == STK_OK) {
        assert_int_equal(stki_row_major(t.dtype, t.ndim, t.shape, strides, &bytes, &err), STK_OK);
        stki_copy_strided(out, t.dtype, strides, t.data, t.dtype, t.strides, (t.flags & STK_TENSOR_SWAPPED) != 0,
                          t.ndim, t.shape);
        stki_reader_done(reader, &t);
    }
    stki_scratch_fini(&scratch);
    return status;
}

/* Checks the values as a whole and by sample, mapped and read. */
static void expect_values(const char *path, const char *name, const void *expected, int64_t bytes)
{
    for (int mode = 0; mode < 2; mode++) {
        stki_reader_opts opts = {.name = name, .access = mode ? STKI_ACCESS_PREAD : STKI_ACCESS_MMAP};
        stki_reader *reader;
        stk_tensor t;
        int64_t strides[STK_MAX_DIMS], found;
        char *got = malloc((size_t)bytes + 64), *at = got;

        if (whole(path, &opts, &t))
            fail_msg("%s", err.message);
        assert_int_equal(stk_tensor_nbytes(&t), bytes);
        assert_int_equal(stki_row_major(t.dtype, t.ndim, t.shape, strides, &found, &err), STK_OK);
        stki_copy_strided(got, t.dtype, strides, t.data, t.dtype, t.strides, (t.flags & STK_TENSOR_SWAPPED) != 0,
                          t.ndim, t.shape);
        assert_memory_equal(got, expected, (size_t)bytes);
        stk_tensor_release(&t);
        memset(got, 0x5A, (size_t)bytes);
        if (open_reader(path, &opts, &reader))
            fail_msg("%s", err.message);
        assert_int_equal(reader->count * reader->max_bytes, bytes);
        for (int64_t i = 0; i < reader->count; i++, at += reader->max_bytes)
            assert_int_equal(sample(reader, i, at), STK_OK);
        assert_memory_equal(got, expected, (size_t)bytes);
        stki_reader_destroy(reader);
        free(got);
    }
}

static void expect_refused(const char *path, const char *name, stk_status status, const char *words)
{
    stki_reader_opts opts = {.name = name};
    stki_reader *reader;
    stk_tensor t;

    assert_int_equal(whole(path, &opts, &t), status);
    if (!strstr(err.message, words))
        fail_msg("no '%s' in: %s", words, err.message);
    if (open_reader(path, &opts, &reader) == STK_OK) {
        char row[4096];
        assert_int_equal(sample(reader, 0, row), status);
        stki_reader_destroy(reader);
    }
    assert_int_equal(err.status, status);
    if (!strstr(err.message, path))
        fail_msg("no file in: %s", err.message);
}

/* ---- rows H01 to H17 ---- */

/* Row H01 (h5py/h5py#1738): big-endian numbers were returned without swapping. */
static void test_big_endian(void **state)
{
    const hsize_t shape[] = {20}, chunk[] = {6};
    int32_t values[20];

    (void)state;
    for (int i = 0; i < 20; i++)
        values[i] = i * 1000003 - 5;
    for (int way = 0; way < 2; way++) {
        const char *path = stkt_path("big.h5");
        hid_t file = new_file(path),
              x = new_dataset(file, H5T_STD_I32BE, 1, shape, NULL, chunked(1, way ? chunk : NULL));
        STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
        close_both(x, file);
        expect_values(path, "x", values, sizeof values);
    }
}

/* Row H03 (CramBL/hdf5-pure#292): with fill time "never", the values of unwritten elements are undefined; here
 * libhdf5 returns zeros. */
static void test_fill_never(void **state)
{
    const hsize_t shape[] = {12}, chunk[] = {4}, start[] = {5}, count[] = {2};
    const char *path = stkt_path("never.h5");
    hid_t file = new_file(path), plist = chunked(1, chunk), x, memory, space;
    int32_t fill = 7, part[] = {100, 200}, expected[12] = {0};

    (void)state;
    STKT_MUST(H5Pset_fill_value(plist, H5T_NATIVE_INT32, &fill));
    STKT_MUST(H5Pset_fill_time(plist, H5D_FILL_TIME_NEVER));
    x = new_dataset(file, H5T_STD_I32LE, 1, shape, NULL, plist);
    memory = H5Screate_simple(1, count, NULL);
    space = H5Dget_space(x);
    STKT_MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, memory, space, H5P_DEFAULT, part));
    H5Sclose(memory), H5Sclose(space);
    close_both(x, file);
    library_read(path, "x", H5T_NATIVE_INT32, expected);
    assert_int_equal(expected[5], 100);
    assert_int_equal(expected[0], 0);
    expect_values(path, "x", expected, sizeof expected);
}

/* Row H04 (CramBL/hdf5-pure#298): extended after writing, within an existing chunk. */
static void test_extended(void **state)
{
    const hsize_t shape[] = {5}, longer[] = {8}, largest[] = {H5S_UNLIMITED}, chunk[] = {4};
    const char *path = stkt_path("extended.h5");
    hid_t file = new_file(path), plist = chunked(1, chunk), x;
    int32_t fill = 77, values[] = {1, 2, 3, 4, 5}, expected[8] = {1, 2, 3, 4, 5, 77, 77, 77};

    (void)state;
    STKT_MUST(H5Pset_fill_value(plist, H5T_NATIVE_INT32, &fill));
    x = new_dataset(file, H5T_STD_I32LE, 1, shape, largest, plist);
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    STKT_MUST(H5Dset_extent(x, longer));
    close_both(x, file);
    expect_values(path, "x", expected, sizeof expected);
}

/* Row H05 (CramBL/hdf5-pure#431): an option stores chunks at the edge without filters. */
static void test_unfiltered_edges(void **state)
{
    const hsize_t shape[] = {10}, chunk[] = {4};
    int32_t values[10];

    (void)state;
    for (int i = 0; i < 10; i++)
        values[i] = i * 77;
    for (int way = 0; way < 2; way++) {
        const char *path = stkt_path("edges.h5");
        hid_t access = H5Pcreate(H5P_FILE_ACCESS), file, plist = chunked(1, chunk), x;

        STKT_MUST(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
        file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
        STKT_MUST(way ? H5Pset_deflate(plist, 6) : H5Pset_shuffle(plist));
        STKT_MUST(H5Pset_chunk_opts(plist, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS));
        x = new_dataset(file, H5T_STD_I32LE, 1, shape, NULL, plist);
        STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
        close_both(x, file);
        STKT_MUST(H5Pclose(access));
        expect_values(path, "x", values, sizeof values);
    }
}

/* Row H08 (vargalabs/h5cpp#298): the filter is skipped for one chunk. */
static void test_filter_mask(void **state)
{
    const hsize_t shape[] = {8}, chunk[] = {4}, second[] = {4};
    const char *path = stkt_path("mask.h5");
    hid_t file = new_file(path), plist = chunked(1, chunk), x;
    int32_t values[8] = {1, 2, 3, 4, 0, 0, 0, 0}, raw[] = {50, 60, 70, 80};

    (void)state;
    STKT_MUST(H5Pset_deflate(plist, 6));
    x = new_dataset(file, H5T_STD_I32LE, 1, shape, NULL, plist);
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    STKT_MUST(H5Dwrite_chunk(x, H5P_DEFAULT, 1, second, sizeof raw, raw));
    close_both(x, file);
    memcpy(values + 4, raw, sizeof raw);
    expect_values(path, "x", values, sizeof values);
}

/* Row H09 (CramBL/hdf5-pure#331, HDFGroup/hdf5#4216): raw data in another file that is too short or missing. libhdf5
 * reads zeros if it is too short; stoker reports an error. */
static void test_external(void **state)
{
    const hsize_t shape[] = {6};
    const char *path = stkt_path("external.h5"), *beside = stkt_path("raw.bin");
    hid_t file = new_file(path), plist = H5Pcreate(H5P_DATASET_CREATE), x;
    int32_t values[] = {9, 8, 7, 6, 5, 4};

    (void)state;
    STKT_MUST(H5Pset_external(plist, "raw.bin", 8, sizeof values));
    x = new_dataset(file, H5T_STD_I32LE, 1, shape, NULL, plist);
    close_both(x, file);
    expect_refused(path, "x", STK_E_NOT_FOUND, "raw.bin");
    {
        char bytes[8 + sizeof values] = {0};
        memcpy(bytes + 8, values, sizeof values);
        stkt_write_file(beside, bytes, sizeof bytes);
    }
    expect_values(path, "x", values, sizeof values);
    assert_int_equal(truncate(beside, 20), 0);
    expect_refused(path, "x", STK_E_TRUNCATED, "too short");
}

static void add_virtual(const char *path, const char *first, const char *second)
{
    const hsize_t shape[] = {6}, half[] = {3}, start[] = {3};
    hid_t file = new_file(path), plist = H5Pcreate(H5P_DATASET_CREATE), x;
    hid_t source = H5Screate_simple(1, half, NULL), space = H5Screate_simple(1, shape, NULL);

    STKT_MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, (hsize_t[]){0}, NULL, half, NULL));
    STKT_MUST(H5Pset_virtual(plist, space, first, "x", source));
    STKT_MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, half, NULL));
    STKT_MUST(H5Pset_virtual(plist, space, second, "x", source));
    x = new_dataset(file, H5T_STD_I32LE, 1, shape, NULL, plist);
    STKT_MUST(H5Sclose(space));
    STKT_MUST(H5Sclose(source));
    close_both(x, file);
}

/* Row H10 (CramBL/hdf5-pure#111): a virtual data set, complete and with a missing source, which libhdf5 silently
 * replaces by fill values. */
static void test_virtual(void **state)
{
    const hsize_t half[] = {3};
    int32_t values[] = {1, 2, 3, 4, 5, 6};

    (void)state;
    for (int i = 0; i < 2; i++) {
        hid_t file = new_file(stkt_path(i ? "two.h5" : "one.h5")),
              x = new_dataset(file, H5T_STD_I32LE, 1, half, NULL, H5P_DEFAULT);
        STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values + 3 * i));
        close_both(x, file);
    }
    add_virtual(stkt_path("virtual.h5"), "one.h5", "two.h5");
    expect_values(stkt_path("virtual.h5"), "x", values, sizeof values);
    add_virtual(stkt_path("missing.h5"), "one.h5", "three.h5");
    expect_refused(stkt_path("missing.h5"), "x", STK_E_NOT_FOUND, "three.h5");
    add_virtual(stkt_path("outside.h5"), "one.h5", "/etc/passwd");
    expect_refused(stkt_path("outside.h5"), "x", STK_E_UNSAFE, "/etc/passwd");
    add_virtual(stkt_path("chain.h5"), "one.h5", "virtual.h5");
    expect_refused(stkt_path("chain.h5"), "x", STK_E_UNSUPPORTED, "virtual.h5");
}

/* Row H12 (h5py/h5py#281): data sets without elements. */
static void test_empty(void **state)
{
    const hsize_t none[] = {0}, none3[] = {0, 3}, three0[] = {3, 0}, largest[] = {H5S_UNLIMITED, H5S_UNLIMITED},
                  chunk[] = {4, 3};
    const hsize_t *shapes[] = {none, none3, three0};

    (void)state;
    for (int i = 0; i < 6; i++) {
        const char *path = stkt_path("empty.h5");
        int rank = i % 3 == 0 ? 1 : 2;
        bool in_chunks = i >= 3;
        hid_t file = new_file(path),
              x = new_dataset(file, H5T_STD_I32LE, rank, shapes[i % 3], in_chunks ? largest : NULL,
                              chunked(rank, in_chunks ? chunk : NULL));
        stki_reader_opts opts = {.name = "x"};
        stki_reader *reader;
        stk_tensor t;

        close_both(x, file);
        if (whole(path, &opts, &t))
            fail_msg("%s", err.message);
        assert_int_equal(t.ndim, rank);
        for (int k = 0; k < rank; k++)
            assert_int_equal(t.shape[k], shapes[i % 3][k]);
        stk_tensor_release(&t);
        if (open_reader(path, &opts, &reader))
            fail_msg("%s", err.message);
        assert_int_equal(reader->count, shapes[i % 3][0]);
        assert_int_equal(reader->max_bytes, i % 3 == 2 ? 0 : 4 * (rank == 1 ? 1 : 3));
        for (int64_t k = 0; k < reader->count; k++)
            assert_int_equal(sample(reader, k, &(int32_t){0}), STK_OK);
        assert_int_equal(sample(reader, reader->count, NULL), STK_E_RANGE);
        stki_reader_destroy(reader);
    }
}

/* Row H13 (NCAS-CMS/pyfive#100): a null dataspace is an error that names it; a scalar is a number. */
static void test_null_and_scalar(void **state)
{
    const char *path = stkt_path("null.h5");
    hid_t file = new_file(path), x = new_dataset(file, H5T_IEEE_F32LE, -1, NULL, NULL, H5P_DEFAULT);
    stki_reader_opts opts = {.name = "x"};
    stki_reader *reader;
    float value = 2.5f;
    stk_tensor t;

    (void)state;
    close_both(x, file);
    expect_refused(path, "x", STK_E_UNSUPPORTED, "null dataspace");
    file = new_file(path);
    x = new_dataset(file, H5T_IEEE_F32LE, 0, NULL, NULL, H5P_DEFAULT);
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value));
    close_both(x, file);
    assert_int_equal(whole(path, &opts, &t), STK_OK);
    assert_int_equal(t.ndim, 0);
    assert_memory_equal(t.data, &value, 4);
    stk_tensor_release(&t);
    assert_int_equal(open_reader(path, &opts, &reader), STK_E_UNSUPPORTED);
}

/* Rows H14 (h5py/h5py#735) and H17 (CramBL/hdf5-pure#438): compounds with gaps or of huge size are errors that name
 * them. */
static void test_compounds(void **state)
{
    const hsize_t shape[] = {2};
    const char *path = stkt_path("compound.h5");

    (void)state;
    for (int huge = 0; huge < 2; huge++) {
        size_t size = huge ? 70000 : 16;
        hid_t file = new_file(path), type = H5Tcreate(H5T_COMPOUND, size), x;

        STKT_MUST(H5Tinsert(type, huge ? "r" : "a", 0, huge ? H5T_IEEE_F32LE : H5T_STD_U32LE));
        STKT_MUST(H5Tinsert(type, huge ? "i" : "b", huge ? 69996 : 8, huge ? H5T_IEEE_F32LE : H5T_IEEE_F64LE));
        x = new_dataset(file, type, 1, shape, NULL, H5P_DEFAULT);
        STKT_MUST(H5Tclose(type));
        close_both(x, file);
        expect_refused(path, "x", STK_E_UNSUPPORTED, "compound");
    }
}

/* Row H16 (h5py/h5py#141): 16-bit floats that are neither half nor bfloat16. */
static void test_odd_float(void **state)
{
    static const struct {
        size_t exponent_bits, mantissa_bits, bias;
    } floats[] = {{6, 9, 31}, {5, 10, 16}}; /* other numbers of bits; half with another bias */
    const hsize_t shape[] = {2};
    const char *path = stkt_path("odd.h5");

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        hid_t file = new_file(path), type = H5Tcopy(H5T_IEEE_F32LE), x;

        STKT_MUST(
            H5Tset_fields(type, 15, floats[i].mantissa_bits, floats[i].exponent_bits, 0, floats[i].mantissa_bits));
        STKT_MUST(H5Tset_size(type, 2));
        STKT_MUST(H5Tset_ebias(type, floats[i].bias));
        x = new_dataset(file, type, 1, shape, NULL, H5P_DEFAULT);
        STKT_MUST(H5Tclose(type));
        close_both(x, file);
        expect_refused(path, "x", STK_E_UNSUPPORTED, "float type with unsupported fields");
    }
}

/* If the file has a user block, libhdf5 1.10 gives an address to data that was never written. */
static void test_never_written(void **state)
{
    const hsize_t shape[] = {4};
    const char *path = stkt_path("unwritten.h5");
    int32_t fill = 5, expected[] = {5, 5, 5, 5};

    (void)state;
    for (int block = 0; block < 2; block++) {
        hid_t create = H5Pcreate(H5P_FILE_CREATE), plist = H5Pcreate(H5P_DATASET_CREATE), file, x;

        STKT_MUST(H5Pset_userblock(create, block ? 1024 : 0));
        STKT_MUST(H5Pset_fill_value(plist, H5T_NATIVE_INT32, &fill));
        file = H5Fcreate(path, H5F_ACC_TRUNC, create, H5P_DEFAULT);
        x = new_dataset(file, H5T_STD_I32LE, 1, shape, NULL, plist);
        STKT_MUST(H5Pclose(create));
        close_both(x, file);
        expect_values(path, "x", expected, sizeof expected);
    }
}

/* Row H21 (h5py/h5py#1807): the writer was killed, or the file is truncated. */
static void test_unfinished(void **state)
{
    const hsize_t shape[] = {64}, largest[] = {H5S_UNLIMITED}, chunk[] = {16};
    const char *path = stkt_path("killed.h5");
    int32_t values[64];
    stki_container *container;
    pid_t child;
    int wait_status;
    long size;

    (void)state;
    for (int i = 0; i < 64; i++)
        values[i] = i;
    child = fork();
    if (child == 0) {
        hid_t access = H5Pcreate(H5P_FILE_ACCESS), file, x;
        STKT_MUST(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
        file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
        x = new_dataset(file, H5T_STD_I32LE, 1, shape, largest, chunked(1, chunk));
        STKT_MUST(H5Fstart_swmr_write(file));
        STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
        STKT_MUST(H5Dflush(x));
        kill(getpid(), SIGKILL);
    }
    waitpid(child, &wait_status, 0);
    assert_int_equal(stki_container_open(path, &defaults, &container, &err), STK_OK); /* opened as a SWMR reader */
    assert_int_equal(container->warning_count, 1);
    stki_container_release(container);
    expect_values(path, "x", values, sizeof values);

    { /* truncated by 100 bytes */
        hid_t file = new_file(stkt_path("cut.h5")), x = new_dataset(file, H5T_STD_I32LE, 1, shape, NULL, H5P_DEFAULT);
        struct stat about;
        STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
        close_both(x, file);
        assert_int_equal(stat(stkt_path("cut.h5"), &about), 0);
        size = (long)about.st_size;
        assert_int_equal(truncate(stkt_path("cut.h5"), size - 100), 0);
    }
    assert_int_equal(stki_container_open(stkt_path("cut.h5"), &defaults, &container, &err), STK_E_TRUNCATED);
    assert_non_null(strstr(err.message, STKI_TEXT("eof = %ld", size - 100)));
    assert_non_null(strstr(err.message, STKI_TEXT("stored_eof = %ld", size)));
}

/* ---- row H24 and the cache ---- */

/* Writes `rows` rows of `width` numbers, row i beginning with i * width, in chunks of `chunk` rows and `columns`
 * columns. */
static void make_rows(const char *path, int64_t rows, int64_t width, int64_t chunk, int64_t columns, int filters,
                      bool latest)
{
    const hsize_t shape[] = {(hsize_t)rows, (hsize_t)width}, chunks[] = {(hsize_t)chunk, (hsize_t)columns};
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), plist = chunked(2, chunks), file, x;
    int32_t *values = malloc((size_t)(rows * width) * 4);

    for (int64_t i = 0; i < rows * width; i++)
        values[i] = (int32_t)i;
    if (latest)
        STKT_MUST(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (filters) {
        STKT_MUST(H5Pset_shuffle(plist));
        STKT_MUST(H5Pset_deflate(plist, 4));
    }
    x = new_dataset(file, H5T_STD_I32LE, 2, shape, NULL, plist);
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    close_both(x, file);
    STKT_MUST(H5Pclose(access));
    free(values);
}

static void check_row(const stki_reader *reader, int64_t row, int64_t width)
{
    int32_t got[64];

    if (sample(reader, row, got))
        fail_msg("%s", err.message);
    for (int64_t k = 0; k < width; k++)
        assert_int_equal(got[k], row * width + k);
}

/* Row H24 (h5py/h5py#2526, AshleyLab/OpenMHC#16): chunks of many rows that are read row by row in any order within a
 * window are decoded once each. */
static void test_each_chunk_once(void **state)
{
    enum { ROWS = 2000, WIDTH = 8, CHUNK = 500 };
    const char *path = stkt_path("rows.h5");
    stki_reader_opts opts = {.name = "x", .pattern = STKI_PATTERN_RANDOM};
    stki_hdf5_counts counts;
    stki_reader *reader;
    uint64_t r = 3;

    (void)state;
    for (int split = 0; split < 2; split++) {
        int64_t pieces = split ? 2 : 1;

        make_rows(path, ROWS, WIDTH, CHUNK, WIDTH / pieces, 1, false);
        opts.cache_bytes = 4 * CHUNK * WIDTH * pieces; /* one band of chunks */
        assert_int_equal(open_reader(path, &opts, &reader), STK_OK);
        assert_int_equal(reader->unit_length, CHUNK);
        assert_int_equal(reader->unit_count, 4);
        assert_non_null(strstr(reader->note, "order: block"));
        assert_non_null(strstr(reader->note, "500 times"));
        for (int window = 0; window < 4; window++)
            for (int i = 0; i < CHUNK; i++) /* an odd factor makes this a permutation */
                check_row(reader, window * CHUNK + (i * 173 + (int64_t)(stkt_next(&r) % 1)) % CHUNK, WIDTH);
        assert_true(stki_hdf5_reader_counts(reader, &counts));
        assert_int_equal(counts.cache.decoded, 4 * pieces);
        assert_int_equal(counts.cache.found, (ROWS - 4) * pieces);
        assert_int_equal(counts.direct, 0);
        assert_true(counts.cache.bytes <= opts.cache_bytes);
        stki_reader_destroy(reader);
    }
    opts.cache_bytes = 0; /* 64 MiB: everything fits, so random order costs nothing */
    assert_int_equal(open_reader(path, &opts, &reader), STK_OK);
    assert_null(reader->note);
    for (int i = 0; i < 3 * ROWS; i++)
        check_row(reader, stkt_below(&r, ROWS), WIDTH);
    assert_true(stki_hdf5_reader_counts(reader, &counts));
    assert_int_equal(counts.cache.decoded, 8);
    stki_reader_destroy(reader);
}

/* Chunks without filters are views of the mapping; chunks of one row are decoded into the worker's memory. */
static void test_views_and_direct(void **state)
{
    const char *path = stkt_path("views.h5");
    stki_reader_opts opts = {.name = "x", .pattern = STKI_PATTERN_RANDOM};
    stki_hdf5_counts counts;
    stki_reader *reader;

    (void)state;
    for (int latest = 0; latest < 2; latest++) {
        make_rows(path, 100, 8, 7, 8, 0, latest != 0);
        assert_int_equal(open_reader(path, &opts, &reader), STK_OK);
        assert_false(reader->copies);
        assert_non_null(reader->unit_base);
        for (int64_t i = 0; i < 100; i++) {
            int32_t first;
            memcpy(&first, stki_reader_address(reader, i), 4);
            assert_int_equal(first, i * 8);
        }
        assert_null(reader->note);
        assert_string_equal(reader->access, "mmap");
        for (int i = 0; i < 100; i++)
            check_row(reader, 99 - i, 8);
        assert_true(stki_hdf5_reader_counts(reader, &counts));
        assert_true(counts.cache.decoded == 0 && counts.direct == 0);
        stki_reader_destroy(reader);

        make_rows(path, 100, 8, 1, 8, 1, latest != 0);
        assert_int_equal(open_reader(path, &opts, &reader), STK_OK);
        for (int i = 0; i < 100; i++)
            check_row(reader, i, 8);
        assert_true(stki_hdf5_reader_counts(reader, &counts));
        assert_true(counts.cache.decoded == 0 && counts.direct == 100);
        stki_reader_destroy(reader);
    }
}

/* Row N26 (NVIDIA/DALI#6482): if mmap fails, the file is read, and a note says so. */
static void test_no_mapping(void **state)
{
    const char *path = stkt_path("unmapped.h5");
    stki_reader_opts opts = {.name = "x"};
    stki_reader *reader;

    (void)state;
    for (int filters = 0; filters < 2; filters++) {
        make_rows(path, 50, 8, 7, 8, filters, false);
        stkt_fail_maps(8);
        assert_int_equal(open_reader(path, &opts, &reader), STK_OK);
        stkt_fail_maps(0);
        assert_string_equal(reader->access, "pread");
        assert_non_null(strstr(reader->note, "mmap failed"));
        for (int i = 0; i < 50; i++)
            check_row(reader, i, 8);
        stki_reader_destroy(reader);
    }
}

/* Row P04 (facebookresearch/spdl#268): a failed read is an error of its record, and the next one works. */
static void test_failed_read(void **state)
{
    const char *path = stkt_path("failing.h5");
    stki_reader_opts opts = {.name = "x", .access = STKI_ACCESS_PREAD};
    stki_reader *reader;
    int32_t row[8];

    (void)state;
    make_rows(path, 50, 8, 7, 8, 1, false);
    assert_int_equal(open_reader(path, &opts, &reader), STK_OK);
    stkt_fail_read(1, EIO);
    assert_int_equal(sample(reader, 20, row), STK_E_IO);
    assert_int_equal(err.record, 20);
    assert_non_null(strstr(err.message, "failing.h5: record 20: "));
    check_row(reader, 20, 8);
    stki_reader_destroy(reader);
}

/* ---- names and other files ---- */

static void test_listing(void **state)
{
    const char *path = stkt_path("listing.h5");
    const hsize_t shape[] = {3};
    hid_t file = new_file(path), group = H5Gcreate2(file, "b", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
          x = new_dataset(group, H5T_STD_I32LE, 1, shape, NULL, H5P_DEFAULT);
    static const char *const names[] = {"/a", "/gone", "/b/x"};
    stki_container *container;
    int64_t member;

    (void)state;
    STKT_MUST(H5Lcreate_hard(file, "b", group, "self", H5P_DEFAULT, H5P_DEFAULT));
    STKT_MUST(H5Lcreate_hard(file, "/", group, "up", H5P_DEFAULT, H5P_DEFAULT));
    STKT_MUST(H5Lcreate_hard(file, "b/x", file, "a", H5P_DEFAULT, H5P_DEFAULT));
    STKT_MUST(H5Lcreate_soft("/nowhere", file, "gone", H5P_DEFAULT, H5P_DEFAULT));
    STKT_MUST(H5Gclose(group));
    close_both(x, file);
    assert_int_equal(stki_container_open(path, &defaults, &container, &err), STK_OK);
    assert_int_equal(container->member_count, 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(container->members[i].name, names[i]);
    assert_int_equal(container->members[1].status, STK_E_NOT_FOUND);
    assert_int_equal(stki_container_find(container, &(stki_reader_opts){.name = "/b/x"}, &member, &err), STK_OK);
    assert_int_equal(member, 2);
    stki_container_release(container);
}

/* Samples in a mapping need no descriptor, so many files can be open at once. */
static void test_many_files(void **state)
{
    enum { FILES = 150 };
    static stki_container *containers[FILES];
    static stki_reader *readers[FILES];
    struct rlimit before, small;
    char name[32];

    (void)state;
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "many%d.h5", i);
        make_rows(stkt_path(name), 10, 8, 4, 8, i % 2, false);
    }
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    small = before;
    small.rlim_cur = 100;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
    for (int i = 0; i < FILES; i++) {
        stki_reader_opts opts = {.prefer = "x"};
        int64_t member;

        snprintf(name, sizeof name, "many%d.h5", i);
        if (stki_container_open(stkt_path(name), &opts, &containers[i], &err) ||
            stki_container_find(containers[i], &opts, &member, &err) ||
            stki_container_reader(containers[i], member, &opts, &readers[i], &err))
            fail_msg("%s", err.message);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (int i = 0; i < FILES; i++) {
        check_row(readers[i], i % 10, 8);
        stki_reader_destroy(readers[i]);
        stki_container_release(containers[i]);
    }
}

/* External links are followed only inside the folder of the file. */
static void test_external_links(void **state)
{
    const char *path = stkt_path("linking.h5");
    const hsize_t shape[] = {3};
    int32_t values[] = {4, 5, 6};
    hid_t file = new_file(stkt_path("linked.h5")), x = new_dataset(file, H5T_STD_I32LE, 1, shape, NULL, H5P_DEFAULT);
    stki_reader_opts opts = *stkt_source("{name: out, allow_external: true}");
    stk_tensor t;
    char other[] = "/tmp/stoker-other-XXXXXX", target[64];

    (void)state;
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    close_both(x, file);
    assert_non_null(mkdtemp(other));
    snprintf(target, sizeof target, "%s/out.h5", other);
    file = new_file(target);
    x = new_dataset(file, H5T_STD_I32LE, 1, shape, NULL, H5P_DEFAULT);
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    close_both(x, file);
    assert_int_equal(mkfifo(stkt_path("pipe.h5"), 0600), 0);
    file = new_file(path);
    STKT_MUST(H5Lcreate_external("linked.h5", "/x", file, "in", H5P_DEFAULT, H5P_DEFAULT));
    STKT_MUST(H5Lcreate_external(target, "/x", file, "out", H5P_DEFAULT, H5P_DEFAULT));
    STKT_MUST(H5Lcreate_external("../x.h5", "/x", file, "above", H5P_DEFAULT, H5P_DEFAULT));
    STKT_MUST(H5Lcreate_external("pipe.h5", "/x", file, "pipe", H5P_DEFAULT, H5P_DEFAULT));
    STKT_MUST(H5Fclose(file));
    expect_values(path, "in", values, sizeof values);
    expect_refused(path, "out", STK_E_UNSAFE, target);
    expect_refused(path, "above", STK_E_UNSAFE, "../x.h5");
    expect_refused(path, "pipe", STK_E_UNSUPPORTED, "not a regular file"); /* and does not block */
    assert_int_equal(whole(path, &opts, &t), STK_OK);
    assert_memory_equal(t.data, values, sizeof values);
    stk_tensor_release(&t);
    assert_int_equal(unlink(target), 0);
    assert_int_equal(rmdir(other), 0);
}

/* A file that this process is writing is read through libhdf5, whose buffers have data that is not on disk yet. */
static void test_open_for_writing(void **state)
{
    const char *path = stkt_path("writing.h5");
    const hsize_t shape[] = {16, 8}, chunk[] = {4, 8};
    hid_t file = new_file(path), x = new_dataset(file, H5T_STD_I32LE, 2, shape, NULL, chunked(2, chunk));
    int32_t values[16 * 8];
    stki_reader_opts opts = {.name = "x"};
    stki_reader *reader;

    (void)state;
    for (int i = 0; i < 16 * 8; i++)
        values[i] = i;
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    STKT_MUST(H5Fflush(file, H5F_SCOPE_LOCAL));
    if (open_reader(path, &opts, &reader))
        fail_msg("%s", err.message);
    assert_string_equal(reader->access, "library");
    assert_non_null(strstr(reader->note, "open for writing"));
    values[0] = -1;
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    {
        int32_t row[8];
        assert_int_equal(sample(reader, 0, row), STK_OK);
        assert_int_equal(row[0], -1);
    }
    stki_reader_destroy(reader);
    close_both(x, file);
}

/* Writes one chunk of a data set of 2^26 chunks, at `first`, as a SWMR writer that does not close the file. */
static void write_one_chunk(const char *path, hsize_t first)
{
    const hsize_t shape[] = {(hsize_t)1 << 30}, largest[] = {H5S_UNLIMITED}, chunk[] = {16}, many = 16;
    int how;
    pid_t child = fork();

    if (child == 0) {
        hid_t access = H5Pcreate(H5P_FILE_ACCESS), memory = H5Screate_simple(1, &many, NULL), file, x, space;
        int32_t values[16] = {7};

        STKT_MUST(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
        file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
        x = new_dataset(file, H5T_STD_I32LE, 1, shape, largest, chunked(1, chunk));
        space = H5Dget_space(x);
        STKT_MUST(H5Fstart_swmr_write(file));
        STKT_MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &many, NULL));
        STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, memory, space, H5P_DEFAULT, values));
        STKT_MUST(H5Dflush(x));
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
}

/* Unwritten rows are detected even in a file that a SWMR writer in another process has open. If the file ends before
 * the last, mostly unwritten block of its index, it is unknown which rows are unwritten. */
static void test_sparse_while_writing(void **state)
{
    static const struct {
        int64_t first, zeros_until, end;
    } cases[] = {{1 << 20, 1 << 20, 1 << 30}, {(1 << 29) + 16, 3, (1 << 29) + 32}};
    const char *path = stkt_path("sparse_live.h5");
    stki_reader_opts opts = {.name = "x"};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stki_reader *reader;
        int32_t one;

        write_one_chunk(path, (hsize_t)cases[i].first);
        if (open_reader(path, &opts, &reader))
            fail_msg("%s", err.message);
        assert_non_null(strstr(reader->note, "open for writing"));
        assert_int_equal(reader->ops->filled_until(reader, 3), cases[i].zeros_until);
        assert_int_equal(reader->ops->filled_until(reader, cases[i].first), cases[i].first);
        assert_int_equal(reader->ops->filled_until(reader, cases[i].first + 16), cases[i].end);
        assert_int_equal(sample(reader, cases[i].first, &one), STK_OK);
        assert_int_equal(one, 7);
        assert_int_equal(sample(reader, 16, &one), STK_OK);
        assert_int_equal(one, 0);
        stki_reader_destroy(reader);
    }
}

/* The same through an external link, if the file that contains the data set is not open for writing. */
static void test_sparse_from_file_in_writing(void **state)
{
    const int64_t rows = INT64_C(1) << 50;
    const char *path = stkt_path("sparse_home.h5");
    const hsize_t shape[] = {(hsize_t)rows}, chunk[] = {16}, first = 0, many = 16;
    hid_t file = new_file(stkt_path("sparse_other.h5"));
    hid_t x = new_dataset(file, H5T_STD_I32LE, 1, shape, NULL, chunked(1, chunk)), space = H5Dget_space(x);
    hid_t memory = H5Screate_simple(1, &many, NULL);
    int32_t values[16] = {7};
    stki_reader_opts opts = {.name = "x"};
    stki_reader *reader;

    (void)state;
    STKT_MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &many, NULL));
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, memory, space, H5P_DEFAULT, values));
    STKT_MUST(H5Sclose(space));
    STKT_MUST(H5Sclose(memory));
    close_both(x, file);
    file = new_file(path);
    STKT_MUST(H5Lcreate_external("sparse_other.h5", "/x", file, "x", H5P_DEFAULT, H5P_DEFAULT));
    STKT_MUST(H5Fflush(file, H5F_SCOPE_LOCAL));
    if (open_reader(path, &opts, &reader))
        fail_msg("%s", err.message);
    assert_int_equal(reader->ops->filled_until(reader, 3), 3);
    assert_int_equal(reader->ops->filled_until(reader, 16), rows);
    stki_reader_destroy(reader);
    STKT_MUST(H5Fclose(file));
}

/* Elements that this process has written, but that are not on disk yet, count when the longest one is determined. */
static void test_values_not_on_disk(void **state)
{
    const char *path = stkt_path("values_live.h5"), *texts[] = {"a", "a longer text"};
    const hsize_t shape[] = {1 << 16}, chunk[] = {16}, one = 1, places[] = {0, 40000};
    hid_t file = new_file(path), type = H5Tcopy(H5T_C_S1), x, space, memory = H5Screate_simple(1, &one, NULL);
    stki_reader_opts opts = {.name = "x"};
    stki_reader *reader;
    int64_t length;

    (void)state;
    STKT_MUST(H5Tset_size(type, H5T_VARIABLE));
    x = new_dataset(file, type, 1, shape, NULL, chunked(1, chunk));
    space = H5Dget_space(x);
    for (int i = 0; i < 2; i++) {
        STKT_MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, &places[i], NULL, &one, NULL));
        STKT_MUST(H5Dwrite(x, type, memory, space, H5P_DEFAULT, &texts[i]));
        if (i == 0)
            STKT_MUST(H5Fflush(file, H5F_SCOPE_LOCAL));
    }
    if (open_reader(path, &opts, &reader))
        fail_msg("%s", err.message);
    assert_int_equal(reader->max_bytes, 13);
    assert_int_equal(reader->ops->filled_until(reader, 40000), 40000);
    assert_int_equal(reader->ops->shape(reader, 40000, &length, &err), STK_OK);
    assert_int_equal(length, 13);
    stki_reader_destroy(reader);
    STKT_MUST(H5Sclose(space));
    STKT_MUST(H5Sclose(memory));
    STKT_MUST(H5Tclose(type));
    close_both(x, file);
}

/* ---- NetCDF/CF ---- */

static void add_attribute(hid_t x, const char *name, hid_t type, const void *value)
{
    hid_t space = H5Screate(H5S_SCALAR), attribute = H5Acreate2(x, name, type, space, H5P_DEFAULT, H5P_DEFAULT);

    STKT_MUST(H5Awrite(attribute, type, value));
    STKT_MUST(H5Aclose(attribute));
    STKT_MUST(H5Sclose(space));
}

static void test_cf(void **state)
{
    const char *path = stkt_path("cf.h5");
    const hsize_t shape[] = {3, 2}, chunk[] = {2, 2};
    hid_t file = new_file(path), x = new_dataset(file, H5T_STD_I16BE, 2, shape, NULL, chunked(2, chunk));
    int16_t values[] = {0, 100, -200, -32768, 7, 32767}, fill = -32768;
    double scale = 0.1, offset = 273.15;
    stki_reader_opts opts = *stkt_source("{name: x, cf: true}");
    stki_reader *reader;

    (void)state;
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    add_attribute(x, "scale_factor", H5T_NATIVE_DOUBLE, &scale);
    add_attribute(x, "add_offset", H5T_NATIVE_DOUBLE, &offset);
    add_attribute(x, "_FillValue", H5T_NATIVE_INT16, &fill);
    close_both(x, file);
    if (open_reader(path, &opts, &reader))
        fail_msg("%s", err.message);
    assert_int_equal(reader->dtype, STK_F32);
    assert_false(reader->swapped);
    for (int i = 0; i < 3; i++) {
        float got[2];
        assert_int_equal(sample(reader, i, got), STK_OK);
        for (int k = 0; k < 2; k++) {
            int16_t stored = values[2 * i + k];
            float expected = (float)(stored * scale + offset);
            if (stored == fill)
                assert_true(got[k] != got[k]);
            else
                assert_memory_equal(&got[k], &expected, 4);
        }
    }
    assert_int_equal(sample(reader, 3, &(float[2]){0}), STK_E_RANGE);
    stki_reader_destroy(reader);
}

/* NaN as a fill value, floats, an integer attribute, and a data set without these attributes. */
static void test_cf_more(void **state)
{
    const char *path = stkt_path("cf_more.h5");
    const hsize_t shape[] = {4};
    double values[] = {1, (double)NAN, -5, 2.5}, fill = (double)NAN, got;
    int32_t offset = 10;

    (void)state;
    for (int packed = 0; packed < 2; packed++) {
        hid_t file = new_file(path), x = new_dataset(file, H5T_IEEE_F64LE, 1, shape, NULL, H5P_DEFAULT);
        stki_reader_opts opts = *stkt_source("{name: x, cf: true}");
        stki_reader *reader;

        STKT_MUST(H5Dwrite(x, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
        if (packed) {
            add_attribute(x, "add_offset", H5T_NATIVE_INT32, &offset);
            add_attribute(x, "_FillValue", H5T_NATIVE_DOUBLE, &fill);
            fill = -5;
            add_attribute(x, "missing_value", H5T_NATIVE_DOUBLE, &fill);
        }
        close_both(x, file);
        assert_int_equal(open_reader(path, &opts, &reader), STK_OK);
        assert_int_equal(reader->dtype, STK_F64);
        assert_int_equal(reader->base != NULL, !packed); /* unchanged without attributes */
        for (int i = 0; i < 4; i++) {
            assert_int_equal(sample(reader, i, &got), STK_OK);
            if (i == 1 || (i == 2 && packed))
                assert_true(got != got);
            else
                assert_true(got == values[i] + (packed ? 10 : 0));
        }
        stki_reader_destroy(reader);
    }
}

static void add_text(hid_t x, const char *name, const char *text, bool varying)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    STKT_MUST(H5Tset_size(type, varying ? H5T_VARIABLE : strlen(text)));
    add_attribute(x, name, type, varying ? (const void *)&text : text);
    STKT_MUST(H5Tclose(type));
}

/* Values follow the NetCDF users' guide and xarray's UnsignedIntegerCoder: the bits of elements and of the fill value
 * are reinterpreted with the other sign, then multiplied by scale_factor. Chunked, contiguous, and read as a whole. */
static void test_cf_unsigned(void **state)
{
    static const struct {
        bool stored_signed, varying, scaled;
        const char *text;
        stk_dtype dtype;
        double expected[4]; /* for the bits 0, 100, 200, 255; 255 is the fill value in scaled cases */
    } cases[] = {
        {true, false, true, "true", STK_F32, {0, 2000, 4000, (double)NAN}},
        {true, true, true, "True", STK_F32, {0, 2000, 4000, (double)NAN}},
        {true, false, true, "false", STK_F32, {0, 2000, -1120, (double)NAN}},
        {false, false, true, "false", STK_F32, {0, 2000, -1120, (double)NAN}},
        {true, false, false, "true", STK_U8, {0, 100, 200, 255}},
        {false, true, false, "false", STK_I8, {0, 100, -56, -1}},
    };
    const char *path = stkt_path("unsigned.h5");
    const hsize_t shape[] = {4}, chunk[] = {3};
    const uint8_t bits[] = {0, 100, 200, 255}, fill = 255;
    const double scale = 20;

    (void)state;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        hid_t stored = cases[i / 2].stored_signed ? H5T_STD_I8LE : H5T_STD_U8LE, file = new_file(path),
              x = new_dataset(file, stored, 1, shape, NULL, i % 2 ? chunked(1, chunk) : H5P_DEFAULT);
        stki_reader_opts opts = *stkt_source("{name: x, cf: true}");
        stki_container *container;
        stki_reader *reader;
        stk_tensor all;

        STKT_MUST(H5Dwrite(x, stored, H5S_ALL, H5S_ALL, H5P_DEFAULT, bits));
        add_text(x, "_Unsigned", cases[i / 2].text, cases[i / 2].varying);
        if (cases[i / 2].scaled) {
            add_attribute(x, "scale_factor", H5T_NATIVE_DOUBLE, &scale);
            add_attribute(x, "_FillValue", stored, &fill);
        }
        close_both(x, file);
        assert_int_equal(open_reader(path, &opts, &reader), STK_OK);
        assert_int_equal(reader->dtype, cases[i / 2].dtype);
        assert_int_equal(whole(path, &opts, &all), STK_OK);
        assert_int_equal(all.dtype, cases[i / 2].dtype);
        for (int k = 0; k < 4; k++) {
            double expected = cases[i / 2].expected[k];
            char got[8] = {0};

            assert_int_equal(sample(reader, k, got), STK_OK);
            for (int way = 0; way < 2; way++) {
                const void *at = way ? (const char *)all.data + k * all.strides[0] : got;
                double value = all.dtype == STK_F32  ? (double)*(const float *)at
                               : all.dtype == STK_U8 ? *(const uint8_t *)at
                                                     : *(const int8_t *)at;

                assert_true(value == expected || (isnan(value) && isnan(expected)));
            }
        }
        stk_tensor_release(&all);
        stki_reader_destroy(reader);
        assert_int_equal(stki_container_open(path, &opts, &container, &err), STK_OK);
        assert_int_equal(container->members[0].dtype, cases[i / 2].dtype);
        assert_true(!container->members[0].strides || !cases[i / 2].scaled);
        stki_container_release(container);
    }
}

/* _Unsigned is ignored for floats; strings other than true and false are errors. */
static void test_cf_unsigned_else(void **state)
{
    const char *path = stkt_path("unsigned_else.h5");
    const hsize_t shape[] = {2};
    const float values[] = {-1, 2.5f};
    stki_reader_opts opts = *stkt_source("{name: x, cf: true}");
    stki_reader *reader;

    (void)state;
    for (int right = 0; right < 2; right++) {
        hid_t file = new_file(path), x = new_dataset(file, H5T_IEEE_F32LE, 1, shape, NULL, H5P_DEFAULT);

        STKT_MUST(H5Dwrite(x, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
        add_text(x, "_Unsigned", right ? "true" : "perhaps", false);
        close_both(x, file);
        assert_int_equal(open_reader(path, &opts, &reader), right ? STK_OK : STK_E_UNSUPPORTED);
        if (right) {
            float got;

            assert_int_equal(sample(reader, 0, &got), STK_OK);
            assert_true(got == -1);
            stki_reader_destroy(reader);
        }
    }
}

/* ---- groups as samples ---- */

/* Writes "/sN/image", u8 [4 + N, 3] (or [4, 3] if `same`) with values 10 N + element; every third one in a deflated
 * chunk. */
static void make_groups(const char *path, int count, bool same, bool chunks)
{
    hid_t file = new_file(path);

    for (int n = 0; n < count; n++) {
        const hsize_t shape[] = {(hsize_t)(same ? 4 : 4 + n), 3};
        char name[32];
        uint8_t values[64 * 3];
        hid_t group, plist = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, shape, NULL), x;

        for (size_t i = 0; i < sizeof values; i++)
            values[i] = (uint8_t)(10 * n + (int)i);
        snprintf(name, sizeof name, "s%d", n);
        group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        if (chunks && n % 3 == 1) {
            STKT_MUST(H5Pset_chunk(plist, 2, shape));
            STKT_MUST(H5Pset_deflate(plist, 5));
        }
        x = H5Dcreate2(group, "image", H5T_STD_U8LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
        STKT_MUST(H5Dwrite(x, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
        STKT_MUST(H5Dclose(x));
        x = H5Dcreate2(group, "other", H5T_STD_U8LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        STKT_MUST(H5Dclose(x));
        STKT_MUST(H5Sclose(space));
        STKT_MUST(H5Pclose(plist));
        STKT_MUST(H5Gclose(group));
    }
    STKT_MUST(H5Fclose(file));
}

static void test_groups(void **state)
{
    static const char *const patterns[] = {"s*/image", "/s?/im*"};
    const char *path = stkt_path("groups.h5");

    (void)state;
    for (int same = 0; same < 2; same++)
        for (int chunks = 0; chunks < 2; chunks++) {
            make_groups(path, 9, same != 0, chunks != 0);
            for (int k = 0; k < 4; k++) {
                stki_reader_opts opts = {.name = patterns[k % 2],
                                         .access = k < 2 ? STKI_ACCESS_MMAP : STKI_ACCESS_PREAD};
                stki_reader *reader;

                if (open_reader(path, &opts, &reader))
                    fail_msg("%s", err.message);
                assert_int_equal(reader->count, 9);
                assert_int_equal(reader->variable, !same);
                assert_int_equal(reader->copies, chunks || k >= 2);
                assert_int_equal(reader->shape[0], same ? 4 : 12);
                for (int n = 0; n < 9; n++) {
                    int64_t shape[2];
                    uint8_t got[64 * 3];

                    assert_int_equal(stki_reader_shape(reader, n, shape, &err), STK_OK);
                    assert_int_equal(shape[0], same ? 4 : 4 + n);
                    assert_int_equal(sample(reader, n, got), STK_OK);
                    for (int i = 0; i < shape[0] * 3; i++)
                        assert_int_equal(got[i], (uint8_t)(10 * n + i));
                }
                assert_int_equal(sample(reader, 9, NULL), STK_E_RANGE);
                stki_reader_destroy(reader);
            }
        }
}

static void test_groups_refused(void **state)
{
    const char *path = stkt_path("refused.h5");
    const hsize_t shape[] = {3};
    stki_reader_opts opts = {.name = "s*/image"};
    stki_reader *reader;
    hid_t file, group, x;

    (void)state;
    make_groups(path, 3, true, false);
    opts.name = "t*/image";
    assert_int_equal(open_reader(path, &opts, &reader), STK_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "t*/image"));
    opts.name = "s*/image";
    opts.axis = 1;
    assert_int_equal(open_reader(path, &opts, &reader), STK_E_CONFIG);
    opts.axis = 0;
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    group = H5Gcreate2(file, "s9", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    {
        hid_t space = H5Screate_simple(1, shape, NULL);
        x = H5Dcreate2(group, "image", H5T_STD_U8LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        STKT_MUST(H5Dclose(x));
        x = H5Dcreate2(group, "other2", H5T_STD_I16LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        STKT_MUST(H5Dclose(x));
        STKT_MUST(H5Sclose(space));
    }
    STKT_MUST(H5Gclose(group));
    STKT_MUST(H5Fclose(file));
    assert_int_equal(open_reader(path, &opts, &reader), STK_E_MISMATCH);
    assert_non_null(strstr(err.message, "number of axes"));
    opts.name = "s*/other*";
    assert_int_equal(open_reader(path, &opts, &reader), STK_E_MISMATCH);
}

/* ---- a file that changes while it is open ---- */

static struct sigaction guard_handler;

/* cmocka replaces our handler with its own in each test. */
static void note_guard(void)
{
    stki_file *file;

    (void)signal(SIGBUS, SIG_DFL); /* sanitizers also install one */
    stkt_write_file(stkt_path("guard"), "x", 1);
    if (!stki_file_open(stkt_path("guard"), STKI_ACCESS_MMAP, STKI_PATTERN_RANDOM, &file, &err))
        stki_file_close(file);
    sigaction(SIGBUS, NULL, &guard_handler);
}

/* Truncated while it is mapped: there is no signal, and the error of the record says that the file is shorter. */
static void test_cut_while_open(void **state)
{
    const char *path = stkt_path("cut_open.h5");

    (void)state;
    assert_int_equal(sigaction(SIGBUS, &guard_handler, NULL), 0);
    for (int filters = 0; filters < 2; filters++) {
        stki_reader_opts opts = {.name = "x", .cache_bytes = 1};
        stki_reader *reader;
        stk_status status;
        int32_t row[64];

        make_rows(path, 4000, 8, 100, 8, filters, false);
        assert_int_equal(open_reader(path, &opts, &reader), STK_OK);
        assert_int_equal(sample(reader, 0, row), STK_OK);
        assert_int_equal(truncate(path, 4096), 0);
        status = sample(reader, 3900, row);
        if (filters) /* zeros are not a valid stream */
            assert_int_equal(status, STK_E_TRUNCATED);
        assert_int_equal(stki_file_intact(reader->file, 3900, &err), STK_E_TRUNCATED);
        stki_reader_destroy(reader);
    }
}

/* ---- memory ---- */

static int64_t blocks(void)
{
    stki_memory_stats stats;

    stki_memory_read(STKI_MEM_HOST, &stats);
    return stats.blocks;
}

/* Each allocation fails in turn. */
static void test_without_memory(void **state)
{
    static const char *const files[] = {"memory0.h5", "memory1.h5", "memory2.h5"};
    int64_t before;

    (void)state;
    make_rows(stkt_path(files[0]), 50, 8, 7, 8, 1, false);
    make_rows(stkt_path(files[1]), 50, 8, 7, 3, 1, true);
    make_rows(stkt_path(files[2]), 50, 8, 50, 8, 0, false);
    (void)stkt_source("{cf: true}"); /* its memory is not freed, so it is allocated before counting */
    before = blocks();
    for (int f = 0; f < 3; f++)
        for (int named = 0; named < 2; named++)
            for (int64_t n = 1;; n++) {
                stki_reader_opts opts = *stkt_source("{cf: true}");
                stki_reader *reader;
                stk_tensor t;
                int32_t row[8];
                stk_status status, second;

                opts.name = named ? "x" : NULL;
                opts.pattern = STKI_PATTERN_RANDOM;
                opts.cache_bytes = 1;
                stki_memory_fail_at(n);
                status = open_reader(stkt_path(files[f]), &opts, &reader);
                if (!status) {
                    status = sample(reader, 17, row);
                    stki_reader_destroy(reader);
                }
                second = status ? status : whole(stkt_path(files[f]), &opts, &t);
                if (!second)
                    stk_tensor_release(&t);
                stki_memory_fail_at(0);
                assert_int_equal(blocks(), before);
                if (!second)
                    break;
                if (second != STK_E_MEMORY)
                    fail_msg("allocation %d: %s", (int)n, err.message);
                assert_true(n < 500);
            }
}

/* A chunk larger than the limit for unpacked data. */
static void test_limit(void **state)
{
    const char *path = stkt_path("limit.h5");
    stki_reader_opts opts = *stkt_source("{name: x, memory_limit: 100}");
    stki_reader *reader;
    stk_tensor t;

    (void)state;
    make_rows(path, 50, 8, 7, 8, 1, false);
    assert_int_equal(open_reader(path, &opts, &reader), STK_E_LIMIT);
    assert_non_null(strstr(err.message, "memory_limit"));
    opts = *stkt_source("{name: x, memory_limit: 300}");
    assert_int_equal(open_reader(path, &opts, &reader), STK_OK);
    stki_reader_destroy(reader);
    assert_int_equal(whole(path, &opts, &t), STK_E_LIMIT);
    assert_non_null(strstr(err.message, "memory_limit"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_big_endian),
        cmocka_unit_test(test_fill_never),
        cmocka_unit_test(test_extended),
        cmocka_unit_test(test_unfiltered_edges),
        cmocka_unit_test(test_filter_mask),
        cmocka_unit_test(test_external),
        cmocka_unit_test(test_virtual),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_null_and_scalar),
        cmocka_unit_test(test_compounds),
        cmocka_unit_test(test_odd_float),
        cmocka_unit_test(test_never_written),
        cmocka_unit_test(test_unfinished),
        cmocka_unit_test(test_each_chunk_once),
        cmocka_unit_test(test_views_and_direct),
        cmocka_unit_test(test_no_mapping),
        cmocka_unit_test(test_failed_read),
        cmocka_unit_test(test_listing),
        cmocka_unit_test(test_many_files),
        cmocka_unit_test(test_external_links),
        cmocka_unit_test(test_sparse_while_writing),
        cmocka_unit_test(test_sparse_from_file_in_writing),
        cmocka_unit_test(test_values_not_on_disk),
        cmocka_unit_test(test_open_for_writing),
        cmocka_unit_test(test_cf),
        cmocka_unit_test(test_cf_more),
        cmocka_unit_test(test_cf_unsigned),
        cmocka_unit_test(test_cf_unsigned_else),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_groups_refused),
        cmocka_unit_test(test_cut_while_open),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_limit),
    };

    note_guard();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
