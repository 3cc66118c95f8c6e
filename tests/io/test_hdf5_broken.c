/* Tests of damaged HDF5 files: whichever bit is wrong, opening must end quickly and leave no open objects in libhdf5. A
 * hang shows as a timeout of the test. */
#include "cmocka_all.h"
#include "container.h"
#include "error.h"
#include "format.h"
#include "hdf5_files.h"
#include "io_files.h"
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* libhdf5 does not free all memory of a damaged file. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__lsan_default_options(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}

static stk_error err;
static const stki_reader_opts defaults;

/* Writes a data set of 16 numbers. With `swmr` the file is not closed properly and keeps the marks of a SWMR writer. */
static void make_file(const char *path, H5F_libver_t version, bool swmr)
{
    const hsize_t shape = 16;
    int32_t values[16];
    pid_t child = fork();
    int how;

    for (int i = 0; i < 16; i++)
        values[i] = i;
    if (child == 0) {
        hid_t access = H5Pcreate(H5P_FILE_ACCESS), space = H5Screate_simple(1, &shape, NULL), file, x;

        STKT_MUST(H5Pset_libver_bounds(access, version, H5F_LIBVER_LATEST));
        file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
        x = H5Dcreate2(file, "x", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
        if (swmr) {
            STKT_MUST(H5Fstart_swmr_write(file));
            STKT_MUST(H5Fflush(file, H5F_SCOPE_GLOBAL));
            _exit(0);
        }
        STKT_MUST(H5Dclose(x));
        STKT_MUST(H5Fclose(file));
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
}

/* Opens all members and returns the first error. */
static stk_status try_file(const char *path)
{
    stki_container *container;
    stk_status status = stki_container_open(path, &defaults, &container, &err);

    for (int64_t i = 0; status == STK_OK && i < container->member_count; i++) {
        stki_reader *reader;

        if (container->members[i].status == STK_OK &&
            container->ops->reader(container, i, &defaults, &reader, &err) == STK_OK)
            stki_reader_destroy(reader);
    }
    if (status == STK_OK)
        stki_container_release(container);
    return status;
}

static void flip_each(const char *path, int64_t from, int64_t to)
{
    FILE *file = fopen(path, "r+b");

    assert_non_null(file);
    for (int64_t at = from; at < to; at++)
        for (int bit = 0; bit < 8; bit++) {
            int byte;

            fseek(file, at, SEEK_SET);
            byte = fgetc(file);
            fseek(file, at, SEEK_SET);
            fputc(byte ^ 1 << bit, file);
            fflush(file);
            (void)try_file(path);
            assert_int_equal(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
            fseek(file, at, SEEK_SET);
            fputc(byte, file);
            fflush(file);
        }
    fclose(file);
    assert_int_equal(try_file(path), STK_OK);
}

static void test_superblock(void **state)
{
    static const H5F_libver_t versions[] = {H5F_LIBVER_EARLIEST, H5F_LIBVER_V18, H5F_LIBVER_V110};
    const char *path = stkt_path("flipped.h5");

    (void)state;
    for (int v = 0; v < 3; v++) {
        make_file(path, versions[v], false);
        flip_each(path, 8, v == 0 ? 96 : 48);
    }
}

/* The same for a file that is marked as open by a SWMR writer. */
static void test_superblock_swmr(void **state)
{
    const char *path = stkt_path("flipped_swmr.h5");

    (void)state;
    make_file(path, H5F_LIBVER_V110, true);
    flip_each(path, 8, 48);
}

/* Only the superblock, or less. */
static void test_cut(void **state)
{
    const char *path = stkt_path("cut_short.h5");

    (void)state;
    for (int swmr = 0; swmr < 2; swmr++) {
        make_file(path, H5F_LIBVER_V110, swmr);
        for (int64_t bytes = 64; bytes >= 0; bytes--) {
            assert_int_equal(truncate(path, bytes), 0);
            assert_true(try_file(path) < 0);
        }
    }
}

/* With a damaged header of the root group, libhdf5 must print nothing when the program ends. */
static void test_quiet_end(void **state)
{
    const char *path = stkt_path("root.h5");
    unsigned char block[48];
    FILE *file, *said = tmpfile();
    struct stat about;
    pid_t child;
    int how;

    (void)state;
    make_file(path, H5F_LIBVER_V110, false);
    file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fread(block, 1, sizeof block, file), sizeof block);
    fseek(file, block[36] + block[37] * 256 + 10, SEEK_SET); /* a time in the header of the root group */
    fputc('?', file);
    fclose(file);
    assert_non_null(said);
    child = fork();
    if (child == 0) {
        if (dup2(fileno(said), 2) != 2 || try_file(path) != STK_E_CORRUPT)
            _exit(1);
        stkt_dir[0] = '\0'; /* the parent removes it */
        exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    assert_int_equal(fstat(fileno(said), &about), 0);
    assert_int_equal(about.st_size, 0);
    fclose(said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_superblock),
        cmocka_unit_test(test_superblock_swmr),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_quiet_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
