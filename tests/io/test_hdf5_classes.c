/* Tests of the status that is returned for errors of libhdf5: for the error numbers that it pushes, and for damaged
 * files, where the kind of damage determines the expected status. */
#include "cmocka_all.h"
#include "container.h"
#include "format.h"
#include "hdf5_dataset.h"
#include "hdf5_files.h"
#include "io_files.h"
#include "source_opts.h"
#include <sys/wait.h>
#include <unistd.h>

static stk_error err;
static const stki_reader_opts defaults;

/* ---- error numbers ---- */

static void push(hid_t major, hid_t minor)
{
    STKT_MUST(H5Epush2(H5E_DEFAULT, "f.c", "f", 1, H5E_ERR_CLS, major, minor, "words that say nothing"));
}

static void test_numbers(void **state)
{
    const struct {
        hid_t major, minor, next_minor;
        stk_status status;
    } cases[] = {
        {H5E_FILE, H5E_TRUNCATED, H5E_READERROR, STK_E_TRUNCATED},
        {H5E_OHDR, H5E_VERSION, H5E_CANTLOAD, STK_E_UNSUPPORTED},
        {H5E_DATATYPE, H5E_CANTLOAD, H5E_CANTDECODE, STK_E_UNSUPPORTED},
        {H5E_OHDR, H5E_CANTLOAD, H5E_CANTDECODE, STK_E_UNSUPPORTED},
        {H5E_OHDR, H5E_CANTLOAD, H5E_CANTINIT, STK_E_CORRUPT},
        {H5E_PLINE, H5E_NOFILTER, H5E_READERROR, STK_E_UNSUPPORTED},
        {H5E_PLUGIN, H5E_CANTOPENFILE, H5E_CANTGET, STK_E_UNSUPPORTED},
        {H5E_SYM, H5E_NOTFOUND, H5E_CALLBACK, STK_E_NOT_FOUND},
        {H5E_OHDR, H5E_NOTFOUND, H5E_READERROR, STK_E_CORRUPT}, /* a header message, not a path */
        {H5E_LINK, H5E_NLINKS, H5E_TRAVERSE, STK_E_NOT_FOUND},
        {H5E_LINK, H5E_CANTOPENFILE, H5E_TRAVERSE, STK_E_NOT_FOUND},
        {H5E_FILE, H5E_CANTOPENFILE, H5E_CANTOPENFILE, STK_E_CORRUPT},
        {H5E_IO, H5E_READERROR, H5E_READERROR, STK_E_IO},
        {H5E_ARGS, H5E_OVERFLOW, H5E_READERROR, STK_E_CORRUPT},
        {H5E_CACHE, H5E_READERROR, H5E_CANTPROTECT, STK_E_CORRUPT},
        {H5E_FILE, H5E_READERROR, H5E_TRUNCATED, STK_E_CORRUPT}, /* the deepest error counts */
    };
    stki_hdf5_guard guard;

    (void)state;
    stki_hdf5_enter(&guard, false);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        push(cases[i].major, cases[i].minor);
        push(H5E_DATASET, cases[i].next_minor);
        if (stki_hdf5_fail(&err, STK_E_CORRUPT, "f.h5", "x", "what") != cases[i].status)
            fail_msg("case %d: %s", (int)i, stk_status_name(err.status));
        assert_int_equal(err.status, cases[i].status);
        assert_int_equal(H5Eget_num(H5E_DEFAULT), 0);
    }
    assert_int_equal(stki_hdf5_fail(&err, STK_E_LIMIT, "f.h5", NULL, "what"), STK_E_LIMIT); /* no error was pushed */
    stki_hdf5_leave(&guard);
}

/* ---- damaged files ---- */

/* Writes one contiguous data set of 16 i32 in the oldest format, whose headers have no checksums. */
static void make_file(const char *path)
{
    const hsize_t shape = 16;
    int32_t values[16] = {0};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), space = H5Screate_simple(1, &shape, NULL),
          x = H5Dcreate2(file, "x", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

    STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Sclose(space));
    STKT_MUST(H5Fclose(file));
}

static char bytes[1 << 16];

static size_t read_bytes(const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t size = fread(bytes, 1, sizeof bytes, file);

    fclose(file);
    assert_true(size < sizeof bytes);
    return size;
}

/* The offset of the message of this type in the data set's header. A message begins with its type, size, flags and
 * three zeros; its data begins with `body`. */
static size_t find_message(size_t size, int type, const char *body, size_t length)
{
    for (size_t at = 0; at + 8 + length <= size; at++)
        if (bytes[at] == (char)type && bytes[at + 1] == 0 && bytes[at + 5] == 0 && bytes[at + 6] == 0 &&
            bytes[at + 7] == 0 && !memcmp(bytes + at + 8, body, length))
            return at;
    fail_msg("no message of type %d", type);
    return 0;
}

/* The status with which the only data set, or the file, is rejected. */
static stk_status refused(const char *path)
{
    stki_container *container;
    stk_status status = stki_container_open(path, &defaults, &container, &err);

    if (status != STK_OK)
        return status;
    status = container->member_count > 0 ? container->members[0].status : STK_OK;
    stki_container_release(container);
    return status;
}

static void test_superblock(void **state)
{
    const char *path = stkt_path("superblock.h5");
    size_t size;

    (void)state;
    make_file(path);
    size = read_bytes(path);
    assert_int_equal(refused(path), STK_OK);
    stkt_write_file(path, bytes, size - 100);
    assert_int_equal(refused(path), STK_E_TRUNCATED);
    bytes[8] = 9; /* the version of the superblock */
    stkt_write_file(path, bytes, size);
    assert_int_equal(refused(path), STK_E_UNSUPPORTED);
    assert_non_null(strstr(err.found, "version 9"));
}

static void test_messages(void **state)
{
    static const struct {
        int type;
        const char *body;
        size_t length, changed; /* from the beginning of the message */
        char to;
        stk_status status;
    } cases[] = {
        {8, "\3\1", 2, 8, 9, STK_E_UNSUPPORTED},              /* version of the layout message (3, contiguous) */
        {3, "\x10\x08", 2, 8, (char)0x90, STK_E_UNSUPPORTED}, /* version of the type message (1, class 0, signed) */
        {8, "\3\1", 2, 2, 0x19, STK_E_CORRUPT},               /* the length is not a multiple of 8 */
        {8, "\3\1", 2, 9, 7, STK_E_UNSUPPORTED},              /* a layout class that libhdf5 does not know */
    };
    const char *path = stkt_path("message.h5");

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t size, at;
        stk_status status;

        make_file(path);
        size = read_bytes(path);
        at = find_message(size, cases[i].type, cases[i].body, cases[i].length);
        bytes[at + cases[i].changed] = cases[i].to;
        stkt_write_file(path, bytes, size);
        status = refused(path);
        if (status != cases[i].status)
            fail_msg("case %d: %s: %s", (int)i, stk_status_name(status), err.message);
    }
}

/* Names that cannot be resolved, for different reasons. */
static void test_names(void **state)
{
    static const char *const names[] = {"nothing", "nothing/x", "x/y", "soft", "round", "outside"};
    const char *path = stkt_path("names.h5");
    stki_hdf5_file *opened;
    hid_t file;

    (void)state;
    make_file(path);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    STKT_MUST(H5Lcreate_soft("/gone", file, "soft", H5P_DEFAULT, H5P_DEFAULT));
    STKT_MUST(H5Lcreate_soft("/round", file, "round", H5P_DEFAULT, H5P_DEFAULT));
    STKT_MUST(H5Lcreate_external("no_such.h5", "/x", file, "outside", H5P_DEFAULT, H5P_DEFAULT));
    STKT_MUST(H5Fclose(file));
    assert_int_equal(stki_hdf5_file_open(path, stkt_source("{allow_external: true}"), &opened, &err), STK_OK);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        stki_hdf5_dataset *dataset;

        if (stki_hdf5_dataset_open(opened, names[i], &dataset, &err) != STK_E_NOT_FOUND)
            fail_msg("%s: %s", names[i], err.message);
    }
    stki_hdf5_file_release(opened);
}

/* A writer that ended without closing the file, in a format that records it. */
static void test_not_closed(void **state)
{
    const char *path = stkt_path("open.h5");
    pid_t child = fork();
    int how;

    (void)state;
    if (child == 0) {
        hid_t access = H5Pcreate(H5P_FILE_ACCESS), file;

        STKT_MUST(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
        file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
        STKT_MUST(H5Fflush(file, H5F_SCOPE_GLOBAL));
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    assert_int_equal(refused(path), STK_E_BUSY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),    cmocka_unit_test(test_superblock), cmocka_unit_test(test_messages),
        cmocka_unit_test(test_not_closed), cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
