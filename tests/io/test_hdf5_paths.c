/* Tests of patterns of paths in HDF5 files: every path that matches is a sample, even if several lead to the same
 * object, and cycles end. Also tests data sets that are mostly unwritten. */
#include "allocate.h"
#include "format.h"
#include "hdf5_dataset.h"
#include "hdf5_files.h"
#include "io_files.h"
#include "source_opts.h"
#include "stk_test.h"

static stk_error err;

/* Writes a data set of one number. */
static void put(hid_t where, const char *name, int32_t value)
{
    hid_t space = H5Screate(H5S_SCALAR), link = H5Pcreate(H5P_LINK_CREATE), x;

    STKT_MUST(H5Pset_create_intermediate_group(link, 1));
    x = H5Dcreate2(where, name, H5T_STD_I32LE, space, link, H5P_DEFAULT, H5P_DEFAULT);
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value));
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Pclose(link));
    STKT_MUST(H5Sclose(space));
}

static hid_t create(const char *name)
{
    hid_t file = H5Fcreate(stkt_path(name), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);

    STKT_MUST(file);
    return file;
}

static void group(hid_t file, const char *name)
{
    STKT_MUST(H5Gclose(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)));
}

static void soft(hid_t file, const char *name, const char *target)
{
    STKT_MUST(H5Lcreate_soft(target, file, name, H5P_DEFAULT, H5P_DEFAULT));
}

/* Reads the samples that match a pattern. Returns their number or the status. */
static int64_t samples(const char *path, const char *pattern, int32_t *out)
{
    stki_reader_opts opts = {.name = pattern};
    stki_container *container;
    stki_reader *reader;
    stki_scratch scratch;
    int64_t count;
    stk_status status = stki_container_open(path, &opts, &container, &err);

    if (status != STK_OK)
        return status;
    status = stki_container_reader(container, 0, &opts, &reader, &err);
    stki_container_release(container);
    if (status != STK_OK)
        return status;
    stki_scratch_init(&scratch);
    count = reader->count;
    for (int64_t i = 0; i < count; i++) {
        stk_tensor t;

        assert_ok(reader->ops->read(reader, i, NULL, &scratch, &t, &err));
        memcpy(&out[i], t.data, sizeof *out);
        stki_reader_done(reader, &t);
    }
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
    return count;
}

/* h5py/h5py#1037: visititems visits an object once, so a sample with a second name was lost. */
static void test_every_path_counts(void **state)
{
    hid_t file = create("every.h5");
    int32_t got[16];

    (void)state;
    for (int i = 0; i < 4; i++) {
        char name[32];

        snprintf(name, sizeof name, "train/%04d/image", i);
        put(file, name, i);
    }
    soft(file, "best", "/train/0002");
    group(file, "splits");
    group(file, "splits/val");
    STKT_MUST(H5Lcreate_hard(file, "train/0001", file, "splits/val/b", H5P_DEFAULT, H5P_DEFAULT));
    soft(file, "splits/val/a", "/train/0003");
    soft(file, "splits/val/c", "../val/a"); /* HDF5 does not treat ".." specially */
    soft(file, "splits/val/d", "b");
    STKT_MUST(H5Fclose(file));
    assert_int_equal(samples(stkt_path("every.h5"), "train/*/image", got), 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(got[i], i);
    assert_int_equal(samples(stkt_path("every.h5"), "/splits/val/[abd]/image", got), 3);
    assert_int_equal(got[0], 3);
    assert_int_equal(got[1], 1);
    assert_int_equal(got[2], 1);
    assert_int_equal(samples(stkt_path("every.h5"), "best/i*", got), 1);
    assert_int_equal(got[0], 2);
    /* a dangling link on the path is a missing sample */
    assert_int_equal(samples(stkt_path("every.h5"), "splits/val/*/image", got), STK_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "/splits/val/c"));
    assert_non_null(strstr(err.message, "../val/a"));
}

static void expect_members(const char *path, const char *const *names, const char *const *aliases, int count)
{
    stki_container *container;

    assert_ok(stki_container_open(path, NULL, &container, &err));
    for (int i = 0; i < count && i < container->member_count; i++) {
        const json_t *alias = json_object_get(container->members[i].details, "alias_of");

        assert_string_equal(container->members[i].name, names[i]);
        assert_int_equal(alias != NULL, aliases[i] != NULL);
        if (alias)
            assert_string_equal(json_string_value(alias), aliases[i]);
    }
    assert_int_equal(container->member_count, count);
    stki_container_release(container);
}

/* A group is not entered again on its own path. */
static void test_cycles(void **state)
{
    hid_t file = create("cycle.h5");

    (void)state;
    put(file, "x", 1);
    put(file, "a/y", 2);
    STKT_MUST(H5Lcreate_hard(file, "/a", file, "a/self", H5P_DEFAULT, H5P_DEFAULT));
    soft(file, "a/up", "/");
    soft(file, "a/loop", "/a/loop");
    STKT_MUST(H5Fclose(file));
    expect_members(stkt_path("cycle.h5"), (const char *const[]){"/x", "/a/loop", "/a/y"},
                   (const char *const[]){NULL, NULL, NULL}, 3);
}

/* The other file links back and is reopened each time; its groups are recognized by their addresses. */
static void test_external_cycle(void **state)
{
    hid_t a = create("cycle_a.h5"), b = create("cycle_b.h5");

    (void)state;
    put(a, "own", 1);
    STKT_MUST(H5Lcreate_external("cycle_b.h5", "/g", a, "to_b", H5P_DEFAULT, H5P_DEFAULT));
    put(b, "g/x", 2);
    soft(b, "g/up", "/");
    STKT_MUST(H5Lcreate_external("cycle_a.h5", "/", b, "g/back", H5P_DEFAULT, H5P_DEFAULT));
    STKT_MUST(H5Fclose(a));
    STKT_MUST(H5Fclose(b));
    /* to_b/up is the root of b, which is not on the path, but its g is */
    expect_members(stkt_path("cycle_a.h5"), (const char *const[]){"/own", "/to_b/x"}, (const char *const[]){NULL, NULL},
                   2);
}

/* Two links to the next group in each of 40 groups give 2^40 paths. */
static void test_very_many_paths(void **state)
{
    hid_t file = create("many.h5");
    char name[16], next[16], path[200] = "";
    stki_container *container;
    int32_t got[4];

    (void)state;
    for (int i = 40; i >= 0; i--) {
        snprintf(name, sizeof name, "/g%d", i);
        snprintf(next, sizeof next, "/g%d", i + 1);
        group(file, name);
        for (int k = 0; k < 2 && i < 40; k++) {
            char link[32];

            snprintf(link, sizeof link, "%s/%c", name, 'a' + k);
            STKT_MUST(H5Lcreate_hard(file, next, file, link, H5P_DEFAULT, H5P_DEFAULT));
        }
    }
    put(file, "/g40/x", 7);
    STKT_MUST(H5Fclose(file));
    assert_status(stki_container_open(stkt_path("many.h5"), NULL, &container, &err), STK_E_LIMIT);
    strcpy(path, "g0");
    for (int i = 0; i < 38; i++)
        strcat(path, i % 2 ? "/a" : "/b");
    strcat(path, "/*/*/x");
    assert_int_equal(samples(stkt_path("many.h5"), path, got), 4);
    assert_int_equal(got[3], 7);
}

/* A data set of excessive size, a path that is too long, and a link of an unknown type are errors that do not affect
 * other members. */
static void test_bad_alone(void **state)
{
    hid_t file = create("alone.h5"), plist = H5Pcreate(H5P_DATASET_CREATE), link = H5Pcreate(H5P_LINK_CREATE), space, x;
    const hsize_t huge[] = {(hsize_t)1 << 33, (hsize_t)1 << 33}, chunk[] = {16, 16};
    static char longer[70000];
    stki_container *container;
    int64_t refused = 0;

    (void)state;
    put(file, "a", 1);
    space = H5Screate_simple(2, huge, NULL);
    STKT_MUST(H5Pset_chunk(plist, 2, chunk));
    x = H5Dcreate2(file, "huge", H5T_STD_I32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    STKT_MUST(x);
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Pset_create_intermediate_group(link, 1));
    for (size_t at = 0; at < sizeof longer - 1; at++)
        longer[at] = at % 1000 == 999 ? '/' : 'n';
    x = H5Gcreate2(file, longer, link, H5P_DEFAULT, H5P_DEFAULT);
    STKT_MUST(x);
    STKT_MUST(H5Gclose(x));
    put(file, "z", 2);
    STKT_MUST(H5Sclose(space));
    STKT_MUST(H5Pclose(plist));
    STKT_MUST(H5Pclose(link));
    STKT_MUST(H5Fclose(file));
    assert_ok(stki_container_open(stkt_path("alone.h5"), NULL, &container, &err));
    assert_int_equal(container->member_count, 4);
    assert_string_equal(container->members[0].name, "/a");
    assert_string_equal(container->members[1].name, "/huge");
    assert_string_equal(container->members[2].name, "/z");
    for (int64_t i = 0; i < 4; i++)
        refused += container->members[i].status != STK_OK;
    assert_int_equal(refused, 2);
    assert_int_equal(container->members[3].status, STK_E_LIMIT);
    stki_container_release(container);
}

/* The error names both ends of a dangling link. */
static void test_dangling(void **state)
{
    hid_t file = create("dangling.h5");
    stki_hdf5_file *opened;
    stki_hdf5_dataset *d;

    (void)state;
    soft(file, "gone", "/no/where");
    STKT_MUST(H5Lcreate_external("no.h5", "/far", file, "out", H5P_DEFAULT, H5P_DEFAULT));
    STKT_MUST(H5Lcreate_external("dangling.h5", "/far", file, "in", H5P_DEFAULT, H5P_DEFAULT));
    soft(file, "a", "b");
    soft(file, "b", "a");
    STKT_MUST(H5Fclose(file));
    assert_ok(stki_hdf5_file_open(stkt_path("dangling.h5"), &(stki_reader_opts){0}, &opened, &err));
    assert_status(stki_hdf5_dataset_open(opened, "gone", &d, &err), STK_E_NOT_FOUND);
    assert_says("gone");
    assert_says("/no/where");
    assert_status(stki_hdf5_dataset_open(opened, "out", &d, &err), STK_E_NOT_FOUND);
    assert_says("out: the external link out points to /far in no.h5");
    assert_string_equal(err.file, stkt_path("dangling.h5"));
    assert_status(stki_hdf5_dataset_open(opened, "in", &d, &err), STK_E_NOT_FOUND);
    assert_says("/far in dangling.h5");
    assert_status(stki_hdf5_dataset_open(opened, "a", &d, &err), STK_E_NOT_FOUND);
    assert_status(stki_hdf5_dataset_open(opened, "neither", &d, &err), STK_E_NOT_FOUND);
    stki_hdf5_file_release(opened);
}

#define UNWRITTEN (INT64_C(1) << 40)

static void make_unwritten(hid_t file, const char *name, hid_t type, hid_t plist)
{
    const hsize_t rows = UNWRITTEN;
    hid_t space = H5Screate_simple(1, &rows, NULL),
          x = H5Dcreate2(file, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);

    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Sclose(space));
    STKT_MUST(H5Tclose(type));
}

static hid_t make_text(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    STKT_MUST(H5Tset_size(type, H5T_VARIABLE));
    return type;
}

/* A table with a number and a string. */
static hid_t make_table(void)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, 8 + sizeof(char *)), text = make_text();

    STKT_MUST(H5Tinsert(type, "n", 0, H5T_STD_I64LE));
    STKT_MUST(H5Tinsert(type, "text", 8, text));
    STKT_MUST(H5Tclose(text));
    return type;
}

/* Unwritten rows are recognized without reading them, however many there are. */
static void test_filled(void **state)
{
    enum { CHUNK = 16 };
    const hsize_t rows = (hsize_t)1 << 40, chunk = CHUNK, wide[] = {8, (hsize_t)1 << 55}, at[] = {160},
                  last[] = {rows - 16};
    hid_t file = create("filled.h5"), plist = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &rows, NULL),
          x;
    const int32_t values[CHUNK] = {1};
    stki_container *container;

    (void)state;
    STKT_MUST(H5Pset_chunk(plist, 1, &chunk));
    x = H5Dcreate2(file, "chunked", H5T_STD_I32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    STKT_MUST(H5Dwrite_chunk(x, H5P_DEFAULT, 0, at, sizeof values, values));
    STKT_MUST(H5Dwrite_chunk(x, H5P_DEFAULT, 0, last, sizeof values, values));
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Sclose(space));
    space = H5Screate_simple(2, wide, NULL);
    x = H5Dcreate2(file, "contiguous", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Sclose(space));
    make_unwritten(file, "pairs", H5Tarray_create2(H5T_STD_I32LE, 1, (hsize_t[]){2}), H5P_DEFAULT);
    make_unwritten(file, "table", make_table(), H5P_DEFAULT);
    make_unwritten(file, "tables", make_table(), plist);
    make_unwritten(file, "texts", make_text(), H5P_DEFAULT);
    STKT_MUST(H5Pclose(plist));
    STKT_MUST(H5Fclose(file));
    assert_ok(stki_container_open(stkt_path("filled.h5"), NULL, &container, &err));
    assert_int_equal(container->member_count, 8);
    for (int window = 0; window < 2; window++) {
        stki_reader_opts opts = {.window_length = window ? 4 : 0, .window_stride = window ? 3 : 0};
        const int64_t length = window ? 4 : 1, step = window ? 3 : 1, count = ((int64_t)rows - length) / step + 1;
        stki_reader *reader;

        assert_ok(stki_container_reader(container, 0, &opts, &reader, &err));
        assert_int_equal(reader->count, count);
        /* samples that end before row 160; samples that begin after row 175 and end before the last chunk */
        assert_int_equal(reader->ops->filled_until(reader, 0), (160 - length) / step + 1);
        assert_int_equal(reader->ops->filled_until(reader, 160 / step), 160 / step);
        assert_int_equal(reader->ops->filled_until(reader, (176 + step - 1) / step),
                         ((int64_t)last[0] - length) / step + 1);
        assert_int_equal(reader->ops->filled_until(reader, count - 1), count - 1);
        stki_reader_destroy(reader);
    }
    for (int64_t i = 1; i < container->member_count; i++) {
        stki_reader *reader;

        assert_ok(stki_container_reader(container, i, NULL, &reader, &err));
        assert_int_equal(reader->ops->filled_until(reader, 2), i == 1 ? 8 : UNWRITTEN);
        stki_reader_destroy(reader);
    }
    stki_container_release(container);
}

/* Data sets of 2^40 rows with four written rows in the middle, for each kind of reader: opening must not read all
 * rows. */
static void test_sparse(void **state)
{
    static const char *const files[] = {"sparse.h5", "sparse-v110.h5"};
    const int64_t rows = UNWRITTEN, at = rows / 2;
    int tried = 0;

    (void)state;
    for (int f = 0; f < 2; f++) {
        char path[512];
        stki_container *container;

        snprintf(path, sizeof path, "%s/data/hdf5/%s", STKT_TESTS_DIR, files[f]);
        assert_ok(stki_container_open(path, NULL, &container, &err));
        for (int64_t i = 0; i < container->member_count; i++) {
            const char *name = container->members[i].name;
            stki_reader_opts opts = {.axis = !strcmp(name, "/columns")};
            stki_reader *reader;

            if (!strcmp(name, "/source"))
                continue;
            assert_ok(stki_container_reader(container, i, &opts, &reader, &err));
            assert_int_equal(reader->count, rows);
            assert_int_equal(reader->ops->filled_until(reader, 0), at);
            assert_int_equal(reader->ops->filled_until(reader, at - 1), at);
            for (int k = 0; k < 4; k++)
                assert_int_equal(reader->ops->filled_until(reader, at + k), at + k);
            assert_int_equal(reader->ops->filled_until(reader, at + 4), rows);
            assert_int_equal(reader->ops->filled_until(reader, rows - 1), rows);
            if (strcmp(name, "/virtual") != 0)
                assert_int_equal(reader->ops->fails_until(reader, at + 1), at + (reader->variable ? 2 : 4));
            stki_reader_destroy(reader);
            tried++;
        }
        stki_container_release(container);
    }
    assert_int_equal(tried, 10);
}

/* Rows of 2^22 numbers, of which 16 in each of two rows are written: these are read by libhdf5, and the others are
 * filled here. */
static void test_long_rows(void **state)
{
    enum { WIDE = 1 << 22 };
    stki_container *container;
    stki_scratch scratch;
    stki_reader *reader;
    stki_reader_opts opts = {.name = "/wide"};
    char path[512];

    (void)state;
    snprintf(path, sizeof path, "%s/data/hdf5/sparse-rows.h5", STKT_TESTS_DIR);
    stki_scratch_init(&scratch);
    assert_ok(stki_container_open(path, &opts, &container, &err));
    assert_ok(stki_container_reader(container, 0, &opts, &reader, &err));
    assert_string_equal(reader->access, "library");
    assert_int_equal(reader->count, 4);
    assert_int_equal(reader->ops->filled_until(reader, 2), 4);
    for (int row = 0; row < 4; row++) {
        const int32_t *values;
        stk_tensor sample;

        assert_ok(reader->ops->read(reader, row, NULL, &scratch, &sample, &err));
        assert_int_equal(stk_tensor_nbytes(&sample), WIDE * 4);
        values = sample.data;
        for (int i = 0; i < WIDE; i++)
            if (values[i] != (row == 1 && i == 1 << 20 ? 7 : 3))
                fail_msg("row %d, column %d: %d", row, i, (int)values[i]);
        stki_reader_done(reader, &sample);
    }
    stki_reader_destroy(reader);
    stki_container_release(container);
    stki_scratch_fini(&scratch);
}

static void make_rows(hid_t file, const char *name, hsize_t length, bool written)
{
    const hsize_t shape[] = {2, length}, tile[] = {1, 8}, at[] = {1, 16};
    const uint8_t values[8] = {0, 7};
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, shape, NULL), x;

    STKT_MUST(H5Pset_chunk(plist, 2, tile));
    x = H5Dcreate2(file, name, H5T_STD_U8LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    if (written)
        STKT_MUST(H5Dwrite_chunk(x, H5P_DEFAULT, 0, at, sizeof values, values));
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Sclose(space));
    STKT_MUST(H5Pclose(plist));
}

/* Rows of a million chunks of which one is stored, and of 2^37 chunks, which cannot be allocated. */
static void test_sparse_rows(void **state)
{
    enum { LENGTH = 1 << 23 };
    hid_t file = create("sparse.h5");
    stki_container *container;
    stki_reader *reader;
    stki_scratch scratch;
    int64_t sum = 0;
    stk_tensor row;

    (void)state;
    make_rows(file, "a", LENGTH, true);
    make_rows(file, "b", (hsize_t)1 << 40, true);
    STKT_MUST(H5Fclose(file));
    assert_ok(stki_container_open(stkt_path("sparse.h5"), NULL, &container, &err));
    assert_ok(stki_container_reader(container, 0, NULL, &reader, &err));
    stki_scratch_init(&scratch);
    for (int i = 0; i < 2; i++) {
        assert_ok(reader->ops->read(reader, i, NULL, &scratch, &row, &err));
        assert_int_equal(row.shape[0], LENGTH);
        assert_int_equal(((const uint8_t *)row.data)[17], i ? 7 : 0);
        for (int64_t k = 0; k < LENGTH; k++)
            sum += ((const uint8_t *)row.data)[k];
        stki_reader_done(reader, &row);
    }
    assert_int_equal(sum, 7);
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
    assert_status(stki_container_reader(container, 1, NULL, &reader, &err), STK_E_LIMIT);
    assert_non_null(
        strstr(err.message, "/b: one sample is too large to be decoded into memory: found 1099511627776 bytes"));
    stki_container_release(container);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_path_counts),
        cmocka_unit_test(test_cycles),
        cmocka_unit_test(test_external_cycle),
        cmocka_unit_test(test_very_many_paths),
        cmocka_unit_test(test_bad_alone),
        cmocka_unit_test(test_dangling),
        cmocka_unit_test(test_filled),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_sparse_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
