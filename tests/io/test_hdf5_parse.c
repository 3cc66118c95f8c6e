/* Tests of files that libhdf5 wrote and stoker opens without it: the contents must be what was written, and libhdf5
 * must have no file open at that time. */
#include "cmocka_all.h"
#include "container.h"
#include "format.h"
#include "hdf5_files.h"
#include "hdf5_parse.h"
#include "io_files.h"
#include "source_opts.h"
#include "tensor_internal.h"
#include <math.h>

static stk_error err;

/* The values published by the author of the checksum. */
static void test_checksum(void **state)
{
    static const char text[] = "Four score and seven years ago";

    (void)state;
    assert_int_equal(stki_hdf5_sum("", 0), 0xDEADBEEF);
    assert_int_equal(stki_hdf5_sum(text, sizeof text - 1), 0x17770551);
}

static void put_number(hid_t object, const char *name, hid_t type, double value)
{
    hid_t space = H5Screate(H5S_SCALAR), attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);

    STKT_MUST(H5Awrite(attribute, H5T_NATIVE_DOUBLE, &value));
    STKT_MUST(H5Aclose(attribute));
    STKT_MUST(H5Sclose(space));
}

/* Writes data sets n0, n1, … of one integer, their index, to /g. Each has `attributes` attributes and a
 * scale_factor. */
static void write_file(const char *path, bool latest, int count, int attributes)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), file, group, space;
    const hsize_t one = 1;

    if (latest)
        STKT_MUST(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    space = H5Screate_simple(1, &one, NULL);
    for (int i = 0; i < count; i++) {
        char name[32];
        hid_t x;

        snprintf(name, sizeof name, "n%d", i);
        x = H5Dcreate2(group, name, i % 2 ? H5T_STD_I32BE : H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT,
                       H5P_DEFAULT);
        STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &i));
        for (int k = 0; k < attributes; k++) {
            snprintf(name, sizeof name, "attribute %d", k);
            put_number(x, name, H5T_STD_I16LE, k);
        }
        put_number(x, "scale_factor", i % 3 ? H5T_IEEE_F32BE : H5T_IEEE_F64LE, 0.5);
        STKT_MUST(H5Dclose(x));
    }
    STKT_MUST(H5Sclose(space));
    STKT_MUST(H5Gclose(group));
    STKT_MUST(H5Fclose(file));
    STKT_MUST(H5Pclose(access));
}

static double value_of(const stki_container *c, int64_t member, const stki_reader_opts *opts)
{
    stki_array array;
    stk_tensor tensor;
    const int64_t strides[1] = {8};
    double value = NAN;

    assert_int_equal(stki_container_array(c, member, opts, &array, &err), STK_OK);
    assert_int_equal(stki_array_tensor(&array, c->path, &tensor, &err), STK_OK);
    assert_int_equal(stk_tensor_numel(&tensor), 1);
    stki_copy_strided(&value, STK_F64, strides, tensor.data, tensor.dtype, tensor.strides,
                      (tensor.flags & STK_TENSOR_SWAPPED) != 0, 1, tensor.shape);
    stk_tensor_release(&tensor);
    stki_array_release(&array);
    return value;
}

static void check_file(const char *path, int count)
{
    const stki_reader_opts *cf = stkt_source("{cf: true}");
    stki_container *c;
    int seen = 0;

    assert_int_equal(stki_container_open(path, cf, &c, &err), STK_OK);
    assert_int_equal(c->member_count, count);
    for (int64_t i = 0; i < c->member_count; i++) {
        int number = -1;

        assert_int_equal(sscanf(c->members[i].name, "/g/n%d", &number), 1);
        assert_int_equal(c->members[i].status, STK_OK);
        assert_true(i == 0 || strcmp(c->members[i - 1].name, c->members[i].name) < 0);
        if (number % 7 == 0) {
            assert_true(value_of(c, i, cf) == number / 2.0);
            assert_true(value_of(c, i, &(stki_reader_opts){0}) == number);
        }
        seen++;
    }
    assert_int_equal(seen, count);
    assert_int_equal(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_FILE), 0);
    stki_container_release(c);
}

static void test_groups(void **state)
{
    static const int counts[] = {0, 1, 8, 9, 60, 700, 3000};
    const char *path = stkt_path("groups.h5");

    (void)state;
    for (int latest = 0; latest < 2; latest++)
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            write_file(path, latest, counts[i], counts[i] > 100 ? 0 : 3);
            check_file(path, counts[i]);
        }
}

static void test_attributes(void **state)
{
    static const int counts[] = {0, 7, 8, 40, 300};
    const char *path = stkt_path("attributes.h5");

    (void)state;
    for (int latest = 0; latest < 2; latest++)
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            write_file(path, latest, 3, counts[i]);
            check_file(path, 3);
        }
}

/* An unlimited data set with a few written chunks: its index has super blocks, and pages that do not exist. */
static void test_sparse(void **state)
{
    enum { LENGTH = 1000000, WRITTEN = 150 };
    const char *path = stkt_path("sparse.h5");
    const hsize_t length = LENGTH, largest = H5S_UNLIMITED, chunk = 7, one = 1;
    const short fill = -3;
    short *expected = malloc(LENGTH * sizeof *expected);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_DATASET_CREATE), file, space, memory, x;
    uint64_t random = 5;
    stki_container *c;
    stki_array array;
    stk_tensor tensor;

    (void)state;
    STKT_MUST(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
    STKT_MUST(H5Pset_chunk(create, 1, &chunk));
    STKT_MUST(H5Pset_fill_value(create, H5T_NATIVE_SHORT, &fill));
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    space = H5Screate_simple(1, &length, &largest);
    memory = H5Screate_simple(1, &one, NULL);
    x = H5Dcreate2(file, "x", H5T_STD_I16LE, space, H5P_DEFAULT, create, H5P_DEFAULT);
    for (int i = 0; i < LENGTH; i++)
        expected[i] = fill;
    for (int i = 0; i < WRITTEN; i++) {
        const hsize_t at = (hsize_t)stkt_below(&random, LENGTH);

        expected[at] = (short)i;
        STKT_MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &one, NULL));
        STKT_MUST(H5Dwrite(x, H5T_NATIVE_SHORT, memory, space, H5P_DEFAULT, &expected[at]));
    }
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Sclose(memory));
    STKT_MUST(H5Sclose(space));
    STKT_MUST(H5Fclose(file));
    STKT_MUST(H5Pclose(create));
    STKT_MUST(H5Pclose(access));
    assert_int_equal(stki_container_open(path, &(stki_reader_opts){0}, &c, &err), STK_OK);
    assert_int_equal(stki_container_array(c, 0, &(stki_reader_opts){0}, &array, &err), STK_OK);
    assert_int_equal(stki_array_tensor(&array, path, &tensor, &err), STK_OK);
    assert_memory_equal(tensor.data, expected, LENGTH * sizeof *expected);
    assert_int_equal(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_FILE), 0);
    stk_tensor_release(&tensor);
    stki_array_release(&array);
    stki_container_release(c);
    free(expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_checksum), cmocka_unit_test(test_groups),
                                       cmocka_unit_test(test_attributes), cmocka_unit_test(test_sparse)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
