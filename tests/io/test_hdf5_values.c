/* Tests of strings, lists, bitfields, committed datatypes and fields of compound types in HDF5, against what h5py reads
 * (data/hdf5/make_values.py and make_types.py). */
#include "format.h"
#include "io_files.h"
#include "sha256.h"
#include "source_opts.h"
#include "stk_test.h"
#include "tensor_internal.h"
#include <stoker/loader.h>

#define FOLDER STKT_TESTS_DIR "/data/hdf5/"
#define FILE_NAME FOLDER "values.h5"

static stk_error err;

/* Computes one checksum of all values of a member, and another of their offsets. */
static void sums_of(const char *path, const char *name, const char **dtype, int64_t *count, char *values, char *offsets)
{
    stki_reader_opts opts = {.name = name};
    stkt_sha256 bytes, begins;
    stki_container *container;
    stki_reader *reader = NULL;
    stki_scratch scratch;
    int64_t items = 0;

    if (stki_container_open(path, &opts, &container, &err) != STK_OK ||
        stki_container_reader(container, 0, &opts, &reader, &err) != STK_OK)
        fail_msg("%s", err.message);
    stki_container_release(container);
    stki_scratch_init(&scratch);
    stkt_sha256_init(&bytes);
    stkt_sha256_init(&begins);
    stkt_sha256_add(&begins, &items, 8);
    for (int64_t i = 0; i < reader->count; i++) {
        int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS], size = 0;
        unsigned char native[512]; /* little-endian, as in h5py's checksums */
        stk_tensor t;

        assert_ok(reader->ops->read(reader, i, NULL, &scratch, &t, &err));
        assert_ok(stki_reader_shape(reader, i, shape, &err));
        if (t.ndim > 0)
            assert_int_equal(shape[0], t.shape[0]);
        if (stk_tensor_numel(&t) > 0)
            assert_ok(stki_row_major(t.dtype, t.ndim, t.shape, strides, &size, &err));
        assert_true(size <= (int64_t)sizeof native);
        if (size > 0)
            stki_copy_strided(native, t.dtype, strides, t.data, t.dtype, t.strides, (t.flags & STK_TENSOR_SWAPPED) != 0,
                              t.ndim, t.shape);
        stkt_sha256_add(&bytes, native, (size_t)size);
        items += t.ndim > 0 ? t.shape[0] : 1;
        if (t.ndim > 0)
            assert_true(t.shape[0] <= reader->shape[0]);
        stkt_sha256_add(&begins, &items, 8);
        stki_reader_done(reader, &t);
    }
    *dtype = stk_dtype_name(reader->dtype);
    *count = reader->count;
    stkt_sha256_end(&bytes, values);
    stkt_sha256_end(&begins, offsets);
    stki_reader_destroy(reader);
    stki_scratch_fini(&scratch);
}

static void compare(const char *path, const char *expected, size_t count_expected)
{
    json_error_t error;
    json_t *all = json_load_file(expected, 0, &error), *one;
    const char *name;

    assert_non_null(all);
    assert_int_equal(json_object_size(all), count_expected);
    json_object_foreach(all, name, one)
    {
        const char *begins = json_string_value(json_array_get(one, 3)), *dtype;
        char values[65], offsets[65];
        int64_t count;

        sums_of(path, name, &dtype, &count, values, offsets);
        assert_string_equal(dtype, json_string_value(json_array_get(one, 0)));
        assert_int_equal(count, json_integer_value(json_array_get(one, 1)));
        if (strcmp(values, json_string_value(json_array_get(one, 2))) != 0)
            fail_msg("%s: the values differ", name);
        if (begins[0] != '-' && strcmp(offsets, begins) != 0)
            fail_msg("%s: the lengths differ", name);
    }
    json_decref(all);
}

static void test_values(void **state)
{
    (void)state;
    compare(FILE_NAME, FOLDER "values.json", 17);
}

static void test_types(void **state)
{
    (void)state;
    compare(FOLDER "types.h5", FOLDER "types.json", 25);
}

/* All members of the file, each a field of a compound type. */
static void test_listing(void **state)
{
    stki_container *container;
    int refused = 0, fields = 0;

    (void)state;
    assert_ok(stki_container_open(FILE_NAME, NULL, &container, &err));
    assert_int_equal(container->member_count, 9 + 2 * 5);
    for (int64_t i = 0; i < container->member_count; i++) {
        refused += container->members[i].status != STK_OK;
        if (strchr(container->members[i].name, '[')) {
            assert_null(container->members[i].strides); /* the values of a field are not contiguous */
            assert_int_equal(container->members[i].offset, -1);
            fields++;
        }
    }
    assert_int_equal(fields, 10);
    assert_int_equal(refused, 0);
    stki_container_release(container);
}

static void test_refused(void **state)
{
    static const struct {
        const char *path, *name;
        stk_status status;
    } cases[] = {
        {FILE_NAME, "/table[\"z\"]", STK_E_NOT_FOUND}, {FILE_NAME, "/ragged[\"x\"]", STK_E_NOT_FOUND},
        {FILE_NAME, "/none[\"x\"]", STK_E_NOT_FOUND},  {FOLDER "types.h5", "/nested[\"inner\"]", STK_E_UNSUPPORTED},
        {FILE_NAME, "/table", STK_E_UNSUPPORTED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stki_reader_opts opts = {.name = cases[i].name};
        stki_container *container;
        stki_reader *reader;
        int64_t member = 0;
        stk_status status = stki_container_open(cases[i].path, &opts, &container, &err);

        if (status == STK_OK) {
            status = stki_container_find(container, &opts, &member, &err);
            if (status == STK_OK)
                status = stki_container_reader(container, member, &opts, &reader, &err);
            stki_container_release(container);
        }
        if (status >= STK_OK || (i != 4 && status != cases[i].status))
            fail_msg("%s: %s", cases[i].name, stk_status_name(status));
    }
}

/* Strings as class names, numbered in bytewise order of the strings. */
static void test_classes(void **state)
{
    static const int64_t expected[] = {2, 1, 0}; /* dog, cat, Käse: K comes before c */
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor t;

    (void)state;
    assert_ok(stk_loader_open_text("dataset: {fields: {x: {path: " FILE_NAME
                                   ", source: {name: labels, classes: sorted}}}}\nloader: {batch_size: 15}",
                                   NULL, NULL, 0, &loader, &err));
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "x", &t, &err));
    assert_int_equal(t.dtype, STK_I64);
    for (int k = 0; k < 15; k++)
        assert_int_equal(((const int64_t *)t.data)[k], expected[k % 3]);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),  cmocka_unit_test(test_types),   cmocka_unit_test(test_listing),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_classes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
