/* stki-threads */
/* Tests of HDF5 files written by stoker, which libhdf5 and stoker read back; failures must leave no files. */
#include "allocate.h"
#include "cmocka_all.h"
#include "container.h"
#include "dtype.h"
#include "faults.h"
#include "format.h"
#include "hdf5_container.h"
#include "hdf5_files.h"
#include "io_files.h"
#include "output.h"
#include "tensor_internal.h"
#include "writer.h"
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>

static stk_error err;

#define FINE(call)                       \
    do {                                 \
        if ((call) != STK_OK)            \
            fail_msg("%s", err.message); \
    } while (0)

static stki_writer *open_writer(const char *path, const stki_writer_opts *opts)
{
    stki_writer *w = NULL;

    FINE(stki_hdf5_writer(path, opts, &w, &err));
    return w;
}

/* The number of files in its directory that begin with this name, including temporary ones. */
static int files_like(const char *name)
{
    DIR *dir = opendir(stkt_dir);
    const struct dirent *entry;
    int count = 0;

    while ((entry = readdir(dir)))
        count += strstr(entry->d_name, name) != NULL;
    closedir(dir);
    return count;
}

/* Writes `rows` rows in pieces of different lengths. */
static void write_rows(stki_writer *w, const char *name, stk_dtype dtype, int ndim, const int64_t *shape, int64_t rows,
                       bool known, const unsigned char *values, int64_t row_bytes)
{
    uint64_t r = 9;

    FINE(w->ops->begin(w, name, dtype, ndim, shape, known ? rows : -1, &err));
    for (int64_t done = 0; done < rows;) {
        int64_t many = 1 + stkt_below(&r, 7);
        many = many < rows - done ? many : rows - done;
        FINE(w->ops->append(w, values + done * row_bytes, many, &err));
        done += many;
    }
    FINE(w->ops->end(w, &err));
}

static void expect_by_library(const char *path, const char *name, const unsigned char *values, int64_t bytes,
                              hsize_t rows)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), x = H5Dopen2(file, name, H5P_DEFAULT);
    hid_t type = H5Dget_type(x), space = H5Dget_space(x);
    unsigned char *got = malloc((size_t)bytes + 1);
    hsize_t dims[8] = {0};

    if (bytes > 0)
        STKT_MUST(H5Dread(x, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, got));
    assert_memory_equal(got, values, (size_t)bytes);
    if (H5Sget_simple_extent_dims(space, dims, NULL) > 0)
        assert_int_equal(dims[0], rows);
    free(got);
    STKT_MUST(H5Tclose(type));
    STKT_MUST(H5Sclose(space));
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Fclose(file));
}

static void expect_by_stoker(const char *path, const char *name, stk_dtype dtype, const unsigned char *values,
                             int64_t bytes)
{
    stki_reader_opts opts = {.name = name};
    stki_container *c;
    stki_array array;
    stk_tensor t;
    int64_t member;

    FINE(stki_container_open(path, &opts, &c, &err));
    FINE(stki_container_find(c, &opts, &member, &err));
    FINE(stki_container_array(c, member, &opts, &array, &err));
    FINE(stki_array_tensor(&array, path, &t, &err));
    assert_int_equal(t.dtype, dtype);
    assert_int_equal(stk_tensor_nbytes(&t), bytes);
    if (bytes > 0)
        assert_memory_equal(t.data, values, (size_t)bytes);
    stk_tensor_release(&t);
    stki_array_release(&array);
    stki_container_release(c);
}

/* Every dtype, contiguous and chunked, with a known and an unknown number of rows, in groups, and several in one
 * file. */
static void test_round_trip(void **state)
{
    static const stki_writer_opts ways[] = {
        {.level = 0}, {.chunk_rows = 4}, {.level = 4, .threads = 3}, {.level = 1, .chunk_rows = 5, .threads = 1}};
    enum { ROWS = 23 };
    const int64_t shape[] = {3, 2};
    unsigned char values[ROWS * 6 * 16];
    uint64_t r = 4;

    (void)state;
    for (size_t i = 0; i < sizeof values; i++)
        values[i] = (unsigned char)(stkt_next(&r) & 1);
    for (size_t k = 0; k < sizeof ways / sizeof ways[0]; k++)
        for (int known = 0; known < 2; known++) {
            const char *path = stkt_path("round.h5");
            stki_writer *w = open_writer(path, &ways[k]);
            char name[64];

            for (int d = STK_BOOL; d < STK_DTYPE_END; d++) {
                int64_t item = stk_dtype_size((stk_dtype)d);
                snprintf(name, sizeof name, "group/%s", stk_dtype_name((stk_dtype)d));
                write_rows(w, name, (stk_dtype)d, 2, shape, ROWS, known != 0, values, 6 * item);
            }
            write_rows(w, "flat", STK_I32, 0, NULL, ROWS, known != 0, values, 4);
            write_rows(w, "none", STK_I32, 0, NULL, 0, known != 0, values, 4);
            FINE(w->ops->begin(w, "number", STK_F64, -1, NULL, 1, &err));
            FINE(w->ops->append(w, values, 1, &err));
            FINE(w->ops->end(w, &err));
            assert_int_equal(access(path, F_OK), -1); /* not before the commit */
            FINE(w->ops->commit(w, &err));
            for (int d = STK_BOOL; d < STK_DTYPE_END; d++) {
                int64_t bytes = ROWS * 6 * stk_dtype_size((stk_dtype)d);
                snprintf(name, sizeof name, "group/%s", stk_dtype_name((stk_dtype)d));
                expect_by_library(path, name, values, bytes, ROWS);
                expect_by_stoker(path, name, (stk_dtype)d, values, bytes);
            }
            expect_by_library(path, "flat", values, ROWS * 4, ROWS);
            expect_by_library(path, "none", values, 0, 0);
            expect_by_stoker(path, "none", STK_I32, values, 0);
            expect_by_library(path, "number", values, 8, 0);
            expect_by_stoker(path, "number", STK_F64, values, 8);
            assert_int_equal(files_like("round.h5"), 1);
            assert_int_equal(unlink(path), 0);
        }
}

static char *contents(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    char *bytes;

    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    bytes = malloc(*size);
    assert_int_equal(fread(bytes, 1, *size, f), *size);
    fclose(f);
    return bytes;
}

/* The bytes do not depend on the number of threads; noise is stored shuffled but uncompressed, and reads back. */
static void test_threads_and_noise(void **state)
{
    enum { ROWS = 900, WIDTH = 64 };
    const int64_t shape[] = {WIDTH};
    unsigned char *values = malloc(ROWS * WIDTH * 4);
    uint64_t r = 11;

    (void)state;
    for (int64_t i = 0; i < ROWS * WIDTH * 4; i++)
        values[i] = (unsigned char)(i < ROWS * WIDTH * 2 ? i / 512 : (int64_t)(stkt_next(&r) & 255));
    for (int threads = 1; threads <= 5; threads++) {
        const char *path = stkt_path("threads.h5");
        stki_writer_opts opts = {.level = 6, .chunk_rows = 16, .threads = threads};
        stki_writer *w = open_writer(path, &opts);
        struct stat about;

        write_rows(w, "x", STK_F32, 1, shape, ROWS, threads % 2, values, WIDTH * 4);
        FINE(w->ops->commit(w, &err));
        expect_by_library(path, "x", values, ROWS * WIDTH * 4, ROWS);
        expect_by_stoker(path, "x", STK_F32, values, ROWS * WIDTH * 4);
        assert_int_equal(stat(path, &about), 0);
        assert_true(about.st_size < ROWS * WIDTH * 4 * 3 / 4);
    }
    free(values);
}

/* Contiguous data of known length that exceeds the write buffer, in short pieces and a long one. */
static void test_many_short_rows(void **state)
{
    enum { ROWS = 100000, LONG = 50000 };
    const char *path = stkt_path("short.h5");
    int64_t *values = malloc(ROWS * sizeof *values);
    stki_writer *w = open_writer(path, NULL);
    uint64_t r = 3;

    (void)state;
    for (int64_t i = 0; i < ROWS; i++)
        values[i] = i * 977;
    for (int many_long = 0; many_long < 2; many_long++) {
        const char *name = many_long ? "b" : "a";

        FINE(w->ops->begin(w, name, STK_I64, 0, NULL, ROWS, &err));
        for (int64_t done = 0, many; done < ROWS; done += many) {
            many = many_long && done > 20000 && done < 40000 ? LONG : 1 + stkt_below(&r, 40);
            many = many < ROWS - done ? many : ROWS - done;
            FINE(w->ops->append(w, values + done, many, &err));
        }
        FINE(w->ops->end(w, &err));
    }
    FINE(w->ops->commit(w, &err));
    expect_by_library(path, "a", (const unsigned char *)values, ROWS * 8, ROWS);
    expect_by_library(path, "b", (const unsigned char *)values, ROWS * 8, ROWS);
    free(values);
}

static void test_same_bytes(void **state)
{
    enum { ROWS = 700, WIDTH = 32 };
    const int64_t shape[] = {WIDTH};
    unsigned char *values = malloc(ROWS * WIDTH * 4);
    char *first = NULL;
    size_t first_size = 0;

    (void)state;
    for (int64_t i = 0; i < ROWS * WIDTH * 4; i++)
        values[i] = (unsigned char)(i / 100);
    for (int threads = 1; threads <= 4; threads++) {
        const char *path = stkt_path("same.h5");
        stki_writer_opts opts = {.level = 6, .chunk_rows = 16, .threads = threads};
        stki_writer *w = open_writer(path, &opts);
        size_t size;
        char *bytes;

        write_rows(w, "x", STK_F32, 1, shape, ROWS, true, values, WIDTH * 4);
        FINE(w->ops->commit(w, &err));
        bytes = contents(path, &size);
        if (first) {
            assert_int_equal(size, first_size);
            assert_memory_equal(bytes, first, size);
        }
        free(first);
        first = bytes;
        first_size = size;
    }
    free(first);
    free(values);
}

/* Contiguous data begins at a page boundary, so that it can be mapped. */
static void test_alignment(void **state)
{
    const char *path = stkt_path("aligned.h5");
    stki_writer *w = open_writer(path, NULL);
    unsigned char values[8000] = {1, 2, 3};
    stki_container *c;

    (void)state;
    write_rows(w, "a", STK_U8, 0, NULL, 5000, true, values, 1);
    write_rows(w, "b", STK_F64, 0, NULL, 1000, true, values, 8);
    FINE(w->ops->commit(w, &err));
    FINE(stki_container_open(path, NULL, &c, &err));
    assert_int_equal(c->member_count, 2);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(c->members[i].layout, "contiguous");
        assert_true(c->members[i].offset > 0 && c->members[i].offset % 4096 == 0);
    }
    stki_container_release(c);
}

/* ---- errors ---- */

static void test_misuse(void **state)
{
    const char *path = stkt_path("misuse.h5");
    stki_writer *w = open_writer(path, NULL);
    unsigned char values[64] = {0};

    (void)state;
    assert_int_equal(w->ops->append(w, values, 1, &err), STK_E_BAD_ARG);
    FINE(w->ops->begin(w, "x", STK_U8, 0, NULL, 5, &err));
    assert_int_equal(w->ops->begin(w, "y", STK_U8, 0, NULL, 5, &err), STK_E_BAD_ARG);
    assert_int_equal(w->ops->commit(w, &err), STK_E_BAD_ARG); /* frees the writer */
    assert_int_equal(files_like("misuse"), 0);

    w = open_writer(path, NULL);
    FINE(w->ops->begin(w, "x", STK_U8, 0, NULL, 5, &err));
    assert_int_equal(w->ops->append(w, values, 6, &err), STK_E_RANGE);
    assert_int_equal(w->ops->append(w, values, 1, &err), STK_E_RANGE); /* the error persists */
    assert_int_equal(w->ops->commit(w, &err), STK_E_RANGE);
    assert_int_equal(files_like("misuse"), 0);

    w = open_writer(path, NULL);
    FINE(w->ops->begin(w, "x", STK_U8, 0, NULL, 5, &err));
    FINE(w->ops->append(w, values, 4, &err));
    assert_int_equal(w->ops->end(w, &err), STK_E_RANGE);
    w->ops->abort(w);
    w = open_writer(path, NULL);
    FINE(w->ops->begin(w, "x", STK_U8, 0, NULL, 0, &err));
    FINE(w->ops->end(w, &err));
    assert_int_equal(w->ops->begin(w, "x", STK_U8, 0, NULL, 0, &err), STK_E_IO); /* the name is taken */
    w->ops->abort(w);
    assert_int_equal(stki_hdf5_writer(path, &(stki_writer_opts){.level = 10}, &w, &err), STK_E_CONFIG);
    assert_int_equal(stki_hdf5_writer(stkt_path("no/such/folder.h5"), NULL, &w, &err), STK_E_NOT_FOUND);
    assert_int_equal(files_like("misuse"), 0);
}

/* Writes a file with a possible failure at any step. Returns whether the file exists. */
static bool try_to_write(const char *path, const stki_writer_opts *opts, int64_t rows)
{
    enum { WIDTH = 512 };
    static unsigned char values[WIDTH];
    const int64_t shape[] = {WIDTH};
    stki_writer *w;
    stk_status status = stki_hdf5_writer(path, opts, &w, &err);

    for (int i = 0; i < WIDTH; i++)
        values[i] = (unsigned char)(i * i + i / 7);
    if (status)
        return false;
    status = w->ops->begin(w, "x", STK_U8, 1, shape, rows, &err);
    for (int64_t i = 0; i < rows && !status; i++)
        status = w->ops->append(w, values, 1, &err);
    if (!status)
        status = w->ops->end(w, &err);
    if (status) {
        w->ops->abort(w);
        return false;
    }
    return w->ops->commit(w, &err) == STK_OK;
}

/* Rows P13 (tensorflow/tensorflow#8745) and P14 (markean/aimz#243): a full disk, and failures of the last steps. */
static void test_full_disk(void **state)
{
    static const stki_writer_opts ways[] = {{.level = 0}, {.chunk_rows = 3}, {.level = 3, .chunk_rows = 3}};
    struct rlimit before, small;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (int k = 0; k < 3; k++) {
        small = before;
        small.rlim_cur = 9000;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        assert_false(try_to_write(stkt_path("full.h5"), &ways[k], 400));
        assert_int_equal(err.status, STK_E_IO);
        assert_non_null(strstr(err.message, "full.h5"));
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(files_like("full.h5"), 0);
        for (int call = STKT_SYNC; call < STKT_CALLS; call++) {
            stkt_fail_call((enum stkt_call)call, 1, ENOSPC);
            assert_false(try_to_write(stkt_path("full.h5"), &ways[k], 10));
            stkt_fail_call((enum stkt_call)call, 0, 0);
            assert_int_equal(files_like("full.h5"), call == STKT_SYNC_DIRECTORY); /* it is complete */
            assert_int_equal(unlink(stkt_path("full.h5")), call == STKT_SYNC_DIRECTORY ? 0 : -1);
        }
        assert_true(try_to_write(stkt_path("full.h5"), &ways[k], 10));
        assert_int_equal(unlink(stkt_path("full.h5")), 0);
    }
    stkt_fail_call(STKT_WRITE, 3, ENOSPC);
    assert_false(try_to_write(stkt_path("full.h5"), &ways[0], 10));
    stkt_fail_call(STKT_WRITE, 0, 0);
    assert_int_equal(files_like("full.h5"), 0);
}

static int64_t blocks(void)
{
    stki_memory_stats stats;

    stki_memory_read(STKI_MEM_HOST, &stats);
    return stats.blocks;
}

static void test_without_memory(void **state)
{
    static const stki_writer_opts ways[] = {
        {.level = 0}, {.chunk_rows = 3}, {.level = 3, .chunk_rows = 3, .threads = 2}};
    int64_t before = blocks();

    (void)state;
    for (int k = 0; k < 3; k++)
        for (int64_t n = 1;; n++) {
            bool written;

            assert_true(n < 200);
            stki_memory_fail_at(n);
            written = try_to_write(stkt_path("memory.h5"), &ways[k], 10);
            stki_memory_fail_at(0);
            assert_int_equal(blocks(), before);
            if (written) {
                assert_int_equal(unlink(stkt_path("memory.h5")), 0);
                break;
            }
            assert_int_equal(err.status, STK_E_MEMORY);
            if (files_like("memory.h5") != 0)
                fail_msg("allocation %d of way %d: %s", (int)n, k, err.message);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_threads_and_noise),
        cmocka_unit_test(test_same_bytes),     cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_misuse),         cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_without_memory), cmocka_unit_test(test_many_short_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
