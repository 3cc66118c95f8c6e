/* Tests of HDF5 files that are truncated, written to or replaced while they are read through libhdf5, which returns
 * zeros for missing data. The records must fail with every access method. */
#include "cmocka_all.h"
#include "container.h"
#include "error.h"
#include "format.h"
#include "hdf5_files.h"
#include "io_files.h"
#include <fcntl.h>
#include <unistd.h>

enum { ROWS = 4000, WIDTH = 64, CHUNK = 10, ROW_BYTES = WIDTH * 4 };
enum kind { SCALE_OFFSET, EXTENSIBLE, EXTERNAL, VIRTUAL, LINKED, KINDS };
enum change { CUT, TOUCHED, OVERWRITTEN, REPLACED, CHANGES };

static stk_error err;

static void put(hid_t file, const char *name, hid_t create, hid_t access_of)
{
    static int32_t values[ROWS][WIDTH];
    const hsize_t shape[] = {ROWS, WIDTH}, largest[] = {H5S_UNLIMITED, WIDTH};
    const bool grows = H5Pget_layout(create) == H5D_CHUNKED;
    hid_t space = H5Screate_simple(2, shape, grows ? largest : NULL), x;

    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < WIDTH; k++)
            values[i][k] = i * WIDTH + k;
    x = H5Dcreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, create, access_of);
    STKT_MUST(x);
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Sclose(space));
}

static void add_virtual(hid_t file, hid_t create)
{
    const hsize_t shape[] = {ROWS, WIDTH};
    hid_t space = H5Screate_simple(2, shape, NULL), x;

    STKT_MUST(H5Pset_virtual(create, space, "source.h5", "/x", space));
    x = H5Dcreate2(file, "x", H5T_STD_I32LE, space, H5P_DEFAULT, create, H5P_DEFAULT);
    STKT_MUST(x);
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Sclose(space));
}

/* Writes x in `path`; `changed` is the file to be changed afterwards. */
static void make_file(const char *path, enum kind kind, char *changed, size_t room)
{
    const hsize_t chunk[] = {CHUNK, WIDTH};
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_DATASET_CREATE),
          plain = H5Pcreate(H5P_DATASET_CREATE), file;
    int out;

    snprintf(changed, room, "%s", path);
    if (kind == EXTENSIBLE)
        STKT_MUST(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
    if (kind == VIRTUAL || kind == LINKED) {
        snprintf(changed, room, "%s", stkt_path("source.h5"));
        file = H5Fcreate(changed, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        if (kind == LINKED) {
            STKT_MUST(H5Pset_chunk(plain, 2, chunk));
            STKT_MUST(H5Pset_scaleoffset(plain, H5Z_SO_INT, 0));
        }
        put(file, "x", plain, H5P_DEFAULT);
        STKT_MUST(H5Fclose(file));
    }
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    STKT_MUST(file);
    if (kind == SCALE_OFFSET || kind == EXTENSIBLE) { /* a filter that only libhdf5 decodes */
        STKT_MUST(H5Pset_chunk(create, 2, chunk));
        STKT_MUST(H5Pset_scaleoffset(create, H5Z_SO_INT, 0));
    }
    if (kind == EXTERNAL) {
        hid_t beside = H5Pcreate(H5P_DATASET_ACCESS);

        snprintf(changed, room, "%s", stkt_path("beside.raw"));
        out = open(changed, O_CREAT | O_TRUNC | O_WRONLY, 0600);
        assert_true(out >= 0);
        close(out);
        STKT_MUST(H5Pset_external(create, "beside.raw", 0, (hsize_t)ROWS * ROW_BYTES));
        STKT_MUST(H5Pset_efile_prefix(beside, "${ORIGIN}"));
        put(file, "x", create, beside);
        STKT_MUST(H5Pclose(beside));
    } else if (kind == VIRTUAL) {
        add_virtual(file, create);
    } else if (kind == LINKED) {
        STKT_MUST(H5Lcreate_external("source.h5", "/x", file, "x", H5P_DEFAULT, H5P_DEFAULT));
    } else {
        put(file, "x", create, H5P_DEFAULT);
    }
    STKT_MUST(H5Fclose(file));
    STKT_MUST(H5Pclose(access));
    STKT_MUST(H5Pclose(create));
    STKT_MUST(H5Pclose(plain));
}

static stki_reader *open_reader(const char *path, enum stki_access access)
{
    stki_reader_opts opts = {.name = "x", .access = access, .cache_bytes = 1};
    stki_container *container;
    stki_reader *reader;

    if (stki_container_open(path, &opts, &container, &err) != STK_OK)
        fail_msg("%s", err.message);
    if (container->ops->reader(container, 0, &opts, &reader, &err) != STK_OK)
        fail_msg("%s", err.message);
    stki_container_release(container);
    return reader;
}

/* Returns the status and, if it is STK_OK, checks the values. */
static stk_status read_row(const stki_reader *reader, int64_t row)
{
    stki_scratch scratch;
    stk_tensor t;
    stk_status status;

    stki_scratch_init(&scratch);
    status = reader->ops->read(reader, row, NULL, &scratch, &t, &err);
    for (int k = 0; status == STK_OK && k < WIDTH; k++)
        assert_int_equal(((const int32_t *)t.data)[k], row * WIDTH + k);
    if (status == STK_OK)
        stki_reader_done(reader, &t);
    stki_scratch_fini(&scratch);
    return status;
}

static void change(const char *path, enum change how)
{
    static const char zeros[4096];
    struct stat about;
    char other[512];
    int file = open(path, O_RDWR);

    assert_true(file >= 0);
    assert_int_equal(fstat(file, &about), 0);
    if (how == CUT)
        assert_int_equal(ftruncate(file, about.st_size / 2), 0);
    if (how == OVERWRITTEN)
        for (off_t at = about.st_size / 2; at < about.st_size - 4096; at += 4096)
            assert_int_equal(pwrite(file, zeros, sizeof zeros, at), sizeof zeros);
    close(file);
    if (how == REPLACED) {
        snprintf(other, sizeof other, "%s.other", path);
        file = open(other, O_CREAT | O_WRONLY | O_TRUNC, 0600);
        assert_int_equal(ftruncate(file, about.st_size), 0);
        close(file);
        assert_int_equal(rename(other, path), 0);
    }
    if (how == TOUCHED || how == OVERWRITTEN) { /* in case the clock of the file system is coarse */
        const struct timespec times[] = {{about.st_atim.tv_sec, 0}, {about.st_mtim.tv_sec + 1, 0}};
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    }
}

static void test_changed(void **state)
{
    char path[512], changed[512];

    (void)state;
    snprintf(path, sizeof path, "%s", stkt_path("changed.h5"));
    for (int kind = 0; kind < KINDS; kind++)
        for (int how = 0; how < CHANGES; how++)
            for (int access = STKI_ACCESS_AUTO; access <= STKI_ACCESS_PREAD; access++) {
                stki_reader *reader;

                make_file(path, (enum kind)kind, changed, sizeof changed);
                reader = open_reader(path, (enum stki_access)access);
                assert_int_equal(read_row(reader, 0), STK_OK);
                change(changed, (enum change)how);
                assert_int_equal(read_row(reader, ROWS - 5), how == CUT ? STK_E_TRUNCATED : STK_E_CORRUPT);
                assert_int_equal(err.record, ROWS - 5);
                assert_non_null(strstr(err.message, "while it was open"));
                assert_non_null(strstr(err.message, strrchr(changed, '/')));
                stki_reader_destroy(reader);
            }
}

/* A missing source would be read as fill values, so it is an error; the file itself may be deleted. */
static void test_deleted(void **state)
{
    char path[512], changed[512];

    (void)state;
    snprintf(path, sizeof path, "%s", stkt_path("deleted.h5"));
    for (int kind = 0; kind < KINDS; kind++) {
        stki_reader *reader;

        make_file(path, (enum kind)kind, changed, sizeof changed);
        reader = open_reader(path, STKI_ACCESS_AUTO);
        assert_int_equal(read_row(reader, 0), STK_OK);
        assert_int_equal(unlink(changed), 0);
        assert_int_equal(read_row(reader, ROWS - 5), kind == VIRTUAL || kind == EXTERNAL ? STK_E_NOT_FOUND : STK_OK);
        stki_reader_destroy(reader);
    }
}

/* With sigbus_guard: false nothing is checked. */
static void test_unguarded(void **state)
{
    char path[512], changed[512];
    stki_reader *reader;

    (void)state;
    snprintf(path, sizeof path, "%s", stkt_path("unguarded.h5"));
    for (int kind = 0; kind < KINDS; kind++) {
        make_file(path, (enum kind)kind, changed, sizeof changed);
        reader = open_reader(path, STKI_ACCESS_UNGUARDED);
        change(changed, TOUCHED);
        assert_int_equal(read_row(reader, ROWS - 5), STK_OK);
        stki_reader_destroy(reader);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changed),
        cmocka_unit_test(test_deleted),
        cmocka_unit_test(test_unguarded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
