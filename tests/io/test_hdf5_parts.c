/* Tests of virtual data sets and external raw data, which stoker assembles itself. The expected values are those that
 * libhdf5 reads from the same file, or computed. Environment variables are set that would make libhdf5 lock files and
 * search a folder with files of the same names. */
#include "allocate.h"
#include "format.h"
#include "hdf5_files.h"
#include "io_files.h"
#include "source_opts.h"
#include "stk_test.h"
#include "tensor_internal.h"
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { ROWS = 24, COLUMNS = 10 };

static stk_error err;
static const char *decoys; /* the folder that the variables name */

static void make_source(const char *path, H5F_libver_t version, hid_t type, int rows, int columns, int first)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), file, space, x;
    const hsize_t shape[] = {(hsize_t)rows, (hsize_t)columns};
    int32_t *values = malloc((size_t)rows * (size_t)columns * sizeof *values);

    for (int i = 0; i < rows * columns; i++)
        values[i] = first + i;
    STKT_MUST(H5Pset_libver_bounds(access, version, H5F_LIBVER_LATEST));
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    STKT_MUST(file);
    space = H5Screate_simple(2, shape, NULL);
    x = H5Dcreate2(file, "x", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Sclose(space));
    STKT_MUST(H5Fclose(file));
    STKT_MUST(H5Pclose(access));
    free(values);
}

static void map(hid_t plist, hid_t here, const hsize_t *start, const hsize_t *stride, const hsize_t *count,
                const char *file, hid_t there)
{
    STKT_MUST(H5Sselect_hyperslab(here, H5S_SELECT_SET, start, stride, count, NULL));
    STKT_MUST(H5Pset_virtual(plist, here, file, "x", there));
}

/* Writes a virtual data set of 24 x 10: every second row of 0 to 19 from one file, parts of the other rows from a file
 * with another dtype, and a corner from a data set of the same file. The rest of rows 20 to 23 is filled with -7. */
static void make_virtual(const char *path)
{
    const hsize_t shape[] = {ROWS, COLUMNS}, ten[] = {10, COLUMNS}, corner[] = {2, 3};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), plist = H5Pcreate(H5P_DATASET_CREATE);
    hid_t here = H5Screate_simple(2, shape, NULL), there = H5Screate_simple(2, ten, NULL),
          small = H5Screate_simple(2, corner, NULL), x;
    const int32_t fill = -7, own[] = {901, 902, 903, 904, 905, 906};

    STKT_MUST(file);
    STKT_MUST(H5Pset_fill_value(plist, H5T_NATIVE_INT32, &fill));
    map(plist, here, (hsize_t[]){0, 0}, (hsize_t[]){2, 1}, (hsize_t[]){10, COLUMNS}, "one.h5", there);
    STKT_MUST(
        H5Sselect_hyperslab(there, H5S_SELECT_SET, (hsize_t[]){0, 1}, (hsize_t[]){1, 2}, (hsize_t[]){10, 5}, NULL));
    map(plist, here, (hsize_t[]){1, 5}, (hsize_t[]){2, 1}, (hsize_t[]){10, 5}, "two.h5", there);
    STKT_MUST(H5Sselect_hyperslab(here, H5S_SELECT_SET, (hsize_t[]){22, 7}, NULL, corner, NULL));
    STKT_MUST(H5Pset_virtual(plist, here, ".", "own", small));
    x = H5Dcreate2(file, "own", H5T_STD_I32LE, small, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, own));
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Sselect_all(here));
    x = H5Dcreate2(file, "v", H5T_STD_I32BE, here, H5P_DEFAULT, plist, H5P_DEFAULT);
    STKT_MUST(x);
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Sclose(here));
    STKT_MUST(H5Sclose(there));
    STKT_MUST(H5Sclose(small));
    STKT_MUST(H5Pclose(plist));
    STKT_MUST(H5Fclose(file));
}

static int32_t expected(int row, int column)
{
    if (row < 20 && row % 2 == 0)
        return 1000 + row / 2 * COLUMNS + column;
    if (row < 20 && column >= 5)
        return 100 + row / 2 * COLUMNS + 1 + 2 * (column - 5);
    return row >= 22 && column >= 7 ? 901 + (row - 22) * 3 + column - 7 : -7;
}

static stk_status open_reader(const char *path, const char *name, int axis, stki_reader **out)
{
    stki_reader_opts opts = {.name = name, .axis = axis};
    stki_container *container;
    stk_status status = stki_container_open(path, &opts, &container, &err);

    if (status != STK_OK)
        return status;
    status = stki_container_reader(container, 0, &opts, out, &err);
    stki_container_release(container);
    return status;
}

static stk_status read_sample(const stki_reader *reader, int64_t index, int32_t *out)
{
    stki_scratch scratch;
    int64_t strides[STK_MAX_DIMS], bytes;
    stk_tensor t;
    stk_status status;

    stki_scratch_init(&scratch);
    status = reader->ops->read(reader, index, NULL, &scratch, &t, &err);
    if (status == STK_OK) {
        assert_ok(stki_row_major(STK_I32, t.ndim, t.shape, strides, &bytes, &err));
        stki_copy_strided(out, STK_I32, strides, t.data, t.dtype, t.strides, (t.flags & STK_TENSOR_SWAPPED) != 0,
                          t.ndim, t.shape);
        stki_reader_done(reader, &t);
    }
    stki_scratch_fini(&scratch);
    return status;
}

static void make_sources(H5F_libver_t version)
{
    make_source(stkt_path("one.h5"), version, H5T_STD_I32LE, 10, COLUMNS, 1000);
    make_source(stkt_path("two.h5"), version, H5T_STD_I16BE, 10, COLUMNS, 100);
    make_virtual(stkt_path("v.h5"));
}

static void check_virtual(void)
{
    stki_reader *reader;
    int32_t got[ROWS];

    assert_ok(open_reader(stkt_path("v.h5"), "v", 0, &reader));
    for (int row = ROWS - 1; row >= 0; row--) {
        assert_ok(read_sample(reader, row, got));
        for (int k = 0; k < COLUMNS; k++)
            assert_int_equal(got[k], expected(row, k));
    }
    stki_reader_destroy(reader);
    assert_ok(open_reader(stkt_path("v.h5"), "v", 1, &reader));
    for (int k = 0; k < COLUMNS; k++) {
        assert_ok(read_sample(reader, k, got));
        for (int row = 0; row < ROWS; row++)
            assert_int_equal(got[row], expected(row, k));
    }
    stki_reader_destroy(reader);
}

static void test_virtual(void **state)
{
    (void)state;
    make_sources(H5F_LIBVER_EARLIEST);
    check_virtual();
    make_sources(H5F_LIBVER_LATEST);
    check_virtual();
}

/* Elements without a source read as zeros if the fill value is undefined. */
static void test_undefined_fill(void **state)
{
    const hsize_t shape[] = {3, COLUMNS}, two[] = {2, COLUMNS};
    hid_t file = H5Fcreate(stkt_path("u.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE), here = H5Screate_simple(2, shape, NULL),
          there = H5Screate_simple(2, two, NULL), x;
    stki_reader *reader;
    int32_t got[COLUMNS];

    (void)state;
    make_source(stkt_path("small.h5"), H5F_LIBVER_EARLIEST, H5T_STD_I32LE, 2, COLUMNS, 500);
    STKT_MUST(H5Pset_fill_value(plist, H5T_NATIVE_INT32, NULL));
    map(plist, here, (hsize_t[]){0, 0}, NULL, two, "small.h5", there);
    STKT_MUST(H5Sselect_all(here));
    x = H5Dcreate2(file, "v", H5T_STD_I32LE, here, H5P_DEFAULT, plist, H5P_DEFAULT);
    STKT_MUST(x);
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Sclose(here));
    STKT_MUST(H5Sclose(there));
    STKT_MUST(H5Pclose(plist));
    STKT_MUST(H5Fclose(file));
    assert_ok(open_reader(stkt_path("u.h5"), "v", 0, &reader));
    for (int row = 0; row < 3; row++) {
        assert_ok(read_sample(reader, row, got));
        for (int k = 0; k < COLUMNS; k++)
            assert_int_equal(got[k], row < 2 ? 500 + row * COLUMNS + k : 0);
    }
    stki_reader_destroy(reader);
}

/* Sources can be opened while another process holds locks on them, and while a reader is open, another process can lock
 * every file. */
static void test_locks(void **state)
{
    static const char *const names[] = {"one.h5", "two.h5", "v.h5"};
    stki_reader *reader;
    int32_t got[COLUMNS];

    (void)state;
    make_sources(H5F_LIBVER_LATEST);
    for (int early = 0; early < 2; early++) {
        int ready[2], done[2], how;
        pid_t child;
        char byte = 0;

        if (early == 0)
            assert_ok(open_reader(stkt_path("v.h5"), "v", 0, &reader));
        assert_int_equal(pipe(ready) + pipe(done), 0);
        child = fork();
        if (child == 0) {
            bool fine = true;

            for (int i = 0; i < 3; i++)
                fine = fine && flock(open(stkt_path(names[i]), O_RDWR), LOCK_EX | LOCK_NB) == 0;
            fine = fine && write(ready[1], "r", 1) == 1 && read(done[0], &byte, 1) == 1;
            _exit(fine ? 0 : 1);
        }
        assert_int_equal(read(ready[0], &byte, 1), 1);
        if (early == 1)
            assert_ok(open_reader(stkt_path("v.h5"), "v", 0, &reader));
        assert_ok(read_sample(reader, 3, got));
        assert_int_equal(got[9], expected(3, 9));
        assert_int_equal(write(done[1], "d", 1), 1);
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_int_equal(how, 0);
        stki_reader_destroy(reader);
        close(ready[0]), close(ready[1]), close(done[0]), close(done[1]);
    }
}

/* More sources than descriptors. */
static void test_many_sources(void **state)
{
    enum { SOURCES = 200, LIMIT = 64 };
    const hsize_t shape[] = {SOURCES, 4}, row[] = {1, 4};
    hid_t file = H5Fcreate(stkt_path("many.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE), here = H5Screate_simple(2, shape, NULL),
          there = H5Screate_simple(2, row, NULL), x;
    struct rlimit before, few;
    stki_reader *reader;
    int32_t got[4];

    (void)state;
    for (int i = 0; i < SOURCES; i++) {
        char name[32];

        snprintf(name, sizeof name, "part%d.h5", i);
        make_source(stkt_path(name), H5F_LIBVER_EARLIEST, H5T_STD_I32LE, 1, 4, 10 * i);
        STKT_MUST(H5Sselect_hyperslab(here, H5S_SELECT_SET, (hsize_t[]){(hsize_t)i, 0}, NULL, row, NULL));
        STKT_MUST(H5Pset_virtual(plist, here, name, "x", there));
    }
    STKT_MUST(H5Sselect_all(here));
    x = H5Dcreate2(file, "v", H5T_STD_I32LE, here, H5P_DEFAULT, plist, H5P_DEFAULT);
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Sclose(here));
    STKT_MUST(H5Sclose(there));
    STKT_MUST(H5Pclose(plist));
    STKT_MUST(H5Fclose(file));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = LIMIT;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_ok(open_reader(stkt_path("many.h5"), "v", 0, &reader));
    for (int i = 0; i < SOURCES; i++) {
        assert_ok(read_sample(reader, (i * 77) % SOURCES, got));
        for (int k = 0; k < 4; k++)
            assert_int_equal(got[k], (i * 77) % SOURCES * 10 + k);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    stki_reader_destroy(reader);
}

/* A source that is smaller than its mapping is an error; it is not completed with fill values. */
static void test_other_shapes(void **state)
{
    stki_reader *reader;
    int32_t got[COLUMNS];

    (void)state;
    make_sources(H5F_LIBVER_EARLIEST);
    make_source(stkt_path("one.h5"), H5F_LIBVER_EARLIEST, H5T_STD_I32LE, 9, COLUMNS, 1000);
    assert_status(open_reader(stkt_path("v.h5"), "v", 0, &reader), STK_E_MISMATCH);
    make_sources(H5F_LIBVER_EARLIEST);
    /* larger than its mapping, which is allowed */
    make_source(stkt_path("two.h5"), H5F_LIBVER_EARLIEST, H5T_STD_I32LE, 12, COLUMNS, 100);
    assert_ok(open_reader(stkt_path("v.h5"), "v", 0, &reader));
    assert_ok(read_sample(reader, 19, got));
    assert_int_equal(got[9], expected(19, 9));
    stki_reader_destroy(reader);
    make_sources(H5F_LIBVER_EARLIEST);
    assert_int_equal(unlink(stkt_path("two.h5")), 0); /* the folder in the environment has such a file */
    assert_status(open_reader(stkt_path("v.h5"), "v", 0, &reader), STK_E_NOT_FOUND);
    assert_says("v: a source of this virtual data set does not exist: found no x in two.h5");
}

/* An unlimited selection: the size depends on the sources. */
static void test_unlimited(void **state)
{
    const hsize_t shape[] = {0, 4}, largest[] = {H5S_UNLIMITED, 4};
    hid_t file = H5Fcreate(stkt_path("endless.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE), here = H5Screate_simple(2, shape, largest), x;
    stki_reader *reader;

    (void)state;
    STKT_MUST(H5Sselect_hyperslab(here, H5S_SELECT_SET, (hsize_t[]){0, 0}, NULL, (hsize_t[]){1, 1},
                                  (hsize_t[]){H5S_UNLIMITED, 4}));
    STKT_MUST(H5Pset_virtual(plist, here, "one.h5", "x", here));
    x = H5Dcreate2(file, "v", H5T_STD_I32LE, here, H5P_DEFAULT, plist, H5P_DEFAULT);
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Sclose(here));
    STKT_MUST(H5Pclose(plist));
    STKT_MUST(H5Fclose(file));
    assert_status(open_reader(stkt_path("endless.h5"), "v", 0, &reader), STK_E_UNSUPPORTED);
}

/* 8 x 6 numbers in external files of 31, 10 and the remaining bytes, so that their boundaries are inside elements. The
 * numbers have 16 bits or, if `odd`, 24 bits in 4 bytes. */
static void make_external(const char *path, bool odd)
{
    const hsize_t shape[] = {8, 6};
    const int size = odd ? 4 : 2;
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), plist = H5Pcreate(H5P_DATASET_CREATE),
          space = H5Screate_simple(2, shape, NULL), type = H5Tcopy(odd ? H5T_STD_I32LE : H5T_STD_I16LE), x;
    unsigned char bytes[48 * 4], part[300];

    if (odd)
        STKT_MUST(H5Tset_precision(type, 24));
    STKT_MUST(H5Pset_external(plist, "first.raw", 5, 31));
    STKT_MUST(H5Pset_external(plist, "second.raw", 0, 10));
    STKT_MUST(H5Pset_external(plist, "third.raw", 3, H5F_UNLIMITED));
    x = H5Dcreate2(file, "x", type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    STKT_MUST(x);
    for (int i = 0; i < 48; i++) {
        const int value = 1000 - 40 * i;

        for (int k = 0; k < size; k++)
            bytes[i * size + k] = (unsigned char)((unsigned)value >> 8 * k);
    }
    memset(part, 0xee, sizeof part);
    memcpy(part + 5, bytes, 31);
    stkt_write_file(stkt_path("first.raw"), part, 40);
    stkt_write_file(stkt_path("second.raw"), bytes + 31, 10);
    memcpy(part + 3, bytes + 41, (size_t)(48 * size - 41));
    stkt_write_file(stkt_path("third.raw"), part, (size_t)(3 + 48 * size - 41));
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Tclose(type));
    STKT_MUST(H5Pclose(plist));
    STKT_MUST(H5Sclose(space));
    STKT_MUST(H5Fclose(file));
}

static void test_external(void **state)
{
    (void)state;
    for (int odd = 0; odd < 2; odd++)
        for (int axis = 0; axis < 2; axis++) {
            const int count = axis ? 6 : 8;
            stki_reader *reader;
            int32_t got[8];

            make_external(stkt_path("external.h5"), odd);
            assert_ok(open_reader(stkt_path("external.h5"), "x", axis, &reader));
            assert_int_equal(reader->count, count);
            for (int i = 0; i < count; i++) {
                assert_ok(read_sample(reader, i, got));
                for (int k = 0; k < 14 - count; k++)
                    assert_int_equal(got[k], 1000 - 40 * (axis ? k * 6 + i : i * 6 + k));
            }
            stki_reader_destroy(reader);
            assert_int_equal(truncate(stkt_path("third.raw"), 10), 0);
            assert_status(open_reader(stkt_path("external.h5"), "x", axis, &reader), STK_E_TRUNCATED);
        }
}

static void test_external_link(void **state)
{
    hid_t file = H5Fcreate(stkt_path("links.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    stki_reader *reader;
    int32_t got[COLUMNS];

    (void)state;
    make_sources(H5F_LIBVER_LATEST);
    STKT_MUST(H5Lcreate_external("one.h5", "/x", file, "in", H5P_DEFAULT, H5P_DEFAULT));
    STKT_MUST(H5Fclose(file));
    assert_ok(open_reader(stkt_path("links.h5"), "in", 0, &reader));
    assert_ok(read_sample(reader, 2, got));
    assert_int_equal(got[1], 1021);
    stki_reader_destroy(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_virtual),       cmocka_unit_test(test_locks),
        cmocka_unit_test(test_many_sources),  cmocka_unit_test(test_other_shapes),
        cmocka_unit_test(test_unlimited),     cmocka_unit_test(test_external),
        cmocka_unit_test(test_external_link), cmocka_unit_test(test_undefined_fill),
    };
    static const char *const names[] = {"HDF5_VDS_PREFIX", "HDF5_EXTFILE_PREFIX", "HDF5_EXT_PREFIX"};
    static char folder[600];

    snprintf(folder, sizeof folder, "%s", stkt_path("decoys"));
    decoys = folder;
    if (mkdir(decoys, 0777) != 0)
        return 1;
    for (int i = 0; i < 3; i++)
        setenv(names[i], decoys, 1);
    setenv("HDF5_USE_FILE_LOCKING", "TRUE", 1);
    for (int i = 0; i < 2; i++) {
        char path[700];

        snprintf(path, sizeof path, "%s/%s", decoys, i ? "two.h5" : "one.h5");
        make_source(path, H5F_LIBVER_EARLIEST, H5T_STD_I32LE, 10, COLUMNS, 555000);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
