/* Tests of writing .npy files: the bytes must be those that NumPy writes, and errors of the disk must leave no file. */
#include "allocate.h"
#include "array_writers.h"
#include "faults.h"
#include "io_files.h"
#include "npy_open.h"
#include "npy_write.h"
#include "output.h"
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static stk_status write_tensor(const char *path, const stk_tensor *tensor, stk_error *err)
{
    stki_writer *w;
    stk_status status = stki_npy_array_writer(path, NULL, &w, err);

    if (status)
        return status;
    status = stki_writer_add(w, "", tensor, err);
    if (!status)
        return stki_writer_commit(w, err);
    stki_writer_abort(w);
    return status;
}

static stk_error err;

static char *read_all(const char *path, size_t *bytes)
{
    int64_t size = stkt_file_bytes(path);
    FILE *file = fopen(path, "rb");
    char *content;

    assert_true(size >= 0);
    assert_non_null(file);
    content = malloc((size_t)size + 1);
    *bytes = fread(content, 1, (size_t)size, file);
    assert_int_equal(*bytes, size);
    fclose(file);
    return content;
}

/* The number of files in the program's directory whose names begin with `prefix`. */
static int files_beginning(const char *prefix)
{
    const char *dir = stkt_path("");
    DIR *handle = opendir(dir);
    struct dirent *entry;
    int count = 0;

    assert_non_null(handle);
    while ((entry = readdir(handle)))
        count += !strncmp(entry->d_name, prefix, strlen(prefix));
    closedir(handle);
    return count;
}

/* Compares the whole file: header text, padding with spaces to a multiple of 64, newline, data. */
static void file_is(const char *path, const char *text, const void *data, size_t bytes)
{
    size_t size, header;
    char *content = read_all(path, &size);

    assert_memory_equal(content, "\x93NUMPY\x01\x00", 8);
    header = 10 + (size_t)(unsigned char)content[8] + 256 * (size_t)(unsigned char)content[9];
    assert_int_equal(header % 64, 0);
    assert_int_equal(size, header + bytes);
    assert_memory_equal(content + 10, text, strlen(text));
    for (size_t i = 10 + strlen(text); i < header - 1; i++)
        assert_int_equal(content[i], ' ');
    assert_int_equal(content[header - 1], '\n');
    if (bytes > 0)
        assert_memory_equal(content + header, data, bytes);
    free(content);
}

static void test_rows(void **state)
{
    const char *path = stkt_path("rows.npy");
    static const int64_t shape[2] = {2, 3};
    float data[5 * 6];
    stki_npy_writer *w;

    (void)state;
    for (int i = 0; i < 30; i++)
        data[i] = (float)i / 3;
    assert_int_equal(stki_npy_create(path, STK_F32, 2, shape, false, &w, &err), STK_OK);
    assert_int_equal(stki_npy_append(w, data, 2, &err), STK_OK);
    assert_int_equal(stki_npy_append(w, NULL, 0, &err), STK_OK);
    assert_int_equal(stki_npy_append(w, data + 12, 3, &err), STK_OK);
    assert_int_equal(stkt_file_bytes(path), -1); /* not before it is complete */
    assert_int_equal(stki_npy_commit(w, &err), STK_OK);
    file_is(path, "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 2, 3), }", data, sizeof data);
    assert_int_equal(files_beginning("rows.npy.tmp"), 0);
}

static void test_every_dtype(void **state)
{
    static const struct {
        stk_dtype dtype;
        const char *descr;
    } types[] = {{STK_BOOL, "|b1"},    {STK_U8, "|u1"},       {STK_I8, "|i1"},  {STK_U16, "<u2"},   {STK_I16, "<i2"},
                 {STK_U32, "<u4"},     {STK_I32, "<i4"},      {STK_U64, "<u8"}, {STK_I64, "<i8"},   {STK_F16, "<f2"},
                 {STK_F32, "<f4"},     {STK_F64, "<f8"},      {STK_C64, "<c8"}, {STK_C128, "<c16"}, {STK_BF16, "<V2"},
                 {STK_F8_E5M2, "<f1"}, {STK_F8_E4M3FN, "|V1"}};
    char data[64], text[128];

    (void)state;
    memset(data, 1, sizeof data);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const char *path = stkt_path("dtype.npy");
        bool alias = types[i].dtype == STK_BF16 || types[i].dtype == STK_F8_E5M2 || types[i].dtype == STK_F8_E4M3FN;
        stki_npy_writer *w;
        stki_reader *reader;
        stki_reader_opts opts = {.alias_dtype = types[i].dtype};
        if (alias) {
            assert_int_equal(stki_npy_create(path, types[i].dtype, 0, NULL, false, &w, &err), STK_E_UNSUPPORTED);
            assert_non_null(strstr(err.message, stk_dtype_long_name(types[i].dtype)));
            assert_non_null(strstr(err.message, types[i].descr));
        }
        assert_int_equal(stki_npy_create(path, types[i].dtype, 0, NULL, alias, &w, &err), STK_OK);
        assert_int_equal(stki_npy_append(w, data, 3, &err), STK_OK);
        assert_int_equal(stki_npy_commit(w, &err), STK_OK);
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (3,), }", types[i].descr);
        file_is(path, text, data, 3 * (size_t)stk_dtype_size(types[i].dtype));
        assert_int_equal(stkt_npy_reader(path, &opts, &reader, &err), STK_OK);
        assert_int_equal(reader->dtype, types[i].dtype);
        stki_reader_destroy(reader);
    }
}

static void test_no_rows_and_empty_rows(void **state)
{
    const char *path = stkt_path("none.npy");
    static const int64_t shape[2] = {4, 0};
    stki_npy_writer *w;

    (void)state;
    assert_int_equal(stki_npy_create(path, STK_I64, 1, shape, false, &w, &err), STK_OK);
    assert_int_equal(stki_npy_commit(w, &err), STK_OK);
    file_is(path, "{'descr': '<i8', 'fortran_order': False, 'shape': (0, 4), }", NULL, 0);
    assert_int_equal(stki_npy_create(path, STK_I64, 2, shape, false, &w, &err), STK_OK);
    assert_int_equal(stki_npy_append(w, NULL, 7, &err), STK_OK);
    assert_int_equal(stki_npy_commit(w, &err), STK_OK);
    file_is(path, "{'descr': '<i8', 'fortran_order': False, 'shape': (7, 4, 0), }", NULL, 0);
}

/* Rows smaller and larger than the writer's buffer, in uneven pieces. */
static void test_many_bytes(void **state)
{
    const char *path = stkt_path("many.npy");
    enum { ROWS = 3000, ROW = 1001 };
    static const int64_t shape[1] = {ROW};
    unsigned char *data = malloc((size_t)ROWS * ROW);
    stki_npy_writer *w;
    int64_t done = 0;

    (void)state;
    for (int i = 0; i < ROWS * ROW; i++)
        data[i] = (unsigned char)(i * 31 + i / 255);
    assert_int_equal(stki_npy_create(path, STK_U8, 1, shape, false, &w, &err), STK_OK);
    for (int64_t step = 1; done < ROWS; step = step * 3 % 601) {
        int64_t n = step < ROWS - done ? step : ROWS - done;
        assert_int_equal(stki_npy_append(w, data + done * ROW, n, &err), STK_OK);
        done += n;
    }
    assert_int_equal(stki_npy_commit(w, &err), STK_OK);
    file_is(path, "{'descr': '|u1', 'fortran_order': False, 'shape': (3000, 1001), }", data, (size_t)ROWS * ROW);
    free(data);
}

static void test_an_older_file_stays_until_the_end(void **state)
{
    const char *path = stkt_path("older.npy");
    stki_npy_writer *w;

    (void)state;
    stkt_write_file(path, "old", 3);
    assert_int_equal(stki_npy_create(path, STK_U8, 0, NULL, false, &w, &err), STK_OK);
    assert_int_equal(stki_npy_append(w, "abc", 3, &err), STK_OK);
    assert_int_equal(stkt_file_bytes(path), 3);
    stki_npy_abort(w);
    assert_int_equal(stkt_file_bytes(path), 3);
    assert_int_equal(files_beginning("older.npy"), 1);
    assert_int_equal(stki_npy_create(path, STK_U8, 0, NULL, false, &w, &err), STK_OK);
    assert_int_equal(stki_npy_append(w, "abc", 3, &err), STK_OK);
    assert_int_equal(stki_npy_commit(w, &err), STK_OK);
    file_is(path, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", "abc", 3);
    stki_npy_abort(NULL);
}

static void test_two_writers_of_one_name(void **state)
{
    const char *path = stkt_path("twice.npy");
    stki_npy_writer *a, *b;

    (void)state;
    assert_int_equal(stki_npy_create(path, STK_U8, 0, NULL, false, &a, &err), STK_OK);
    assert_int_equal(stki_npy_create(path, STK_U8, 0, NULL, false, &b, &err), STK_OK);
    assert_int_equal(stki_npy_append(a, "a", 1, &err), STK_OK);
    assert_int_equal(stki_npy_append(b, "bb", 2, &err), STK_OK);
    assert_int_equal(stki_npy_commit(a, &err), STK_OK);
    assert_int_equal(stki_npy_commit(b, &err), STK_OK); /* the last commit wins */
    file_is(path, "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }", "bb", 2);
}

/* If the name of a temporary file is taken, perhaps by a link to another file, it is not used. */
static void test_taken_temporary_names(void **state)
{
    const char *path = stkt_path("taken.npy"), *victim = stkt_path("victim");
    char name[300];
    stki_npy_writer *w;

    (void)state;
    stkt_write_file(victim, "mine", 4);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "%s.tmp.%ld.%d", path, (long)getpid(), i);
        assert_int_equal(symlink(victim, name), 0);
    }
    assert_int_equal(stki_npy_create(path, STK_U8, 0, NULL, false, &w, &err), STK_OK);
    assert_int_equal(stki_npy_append(w, "abc", 3, &err), STK_OK);
    assert_int_equal(stki_npy_commit(w, &err), STK_OK);
    file_is(path, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", "abc", 3);
    assert_int_equal(stkt_file_bytes(victim), 4);
}

/* Row P14 (markean/aimz#243): the last flush, the sync or any other call fails: the result is an error and no file, but
 * after the rename the complete file is kept. */
static void test_p14_failing_calls(void **state)
{
    static const char *const names[STKT_CALLS] = {"write", "sync", "directory", "close", "rename"};
    const char *path = stkt_path("p14.npy");

    (void)state;
    for (int call = 0; call < STKT_CALLS; call++)
        for (int64_t n = 1; n <= (call == STKT_WRITE ? 3 : 1); n++) {
            stki_npy_writer *w = NULL;
            stk_status status;
            stkt_fail_call((enum stkt_call)call, n, ENOSPC);
            status = stki_npy_create(path, STK_U8, 0, NULL, false, &w, &err); /* writes the header */
            if (!status) {
                assert_int_equal(stki_npy_append(w, "abc", 3, &err), STK_OK);
                status = stki_npy_commit(w, &err); /* flushes, then writes the header again */
            }
            stkt_fail_call((enum stkt_call)call, 0, 0);
            if (status != STK_E_IO || !strstr(err.message, "No space left") || !strstr(err.message, path))
                fail_msg("%s %d: %s: %s", names[call], (int)n, stk_status_name(status), err.message);
            assert_int_equal(files_beginning("p14.npy"), call == STKT_SYNC_DIRECTORY);
            assert_int_equal(unlink(path), call == STKT_SYNC_DIRECTORY ? 0 : -1);
        }
}

/* Row P12 (FirebirdSQL/firebird#8048): a disk that fills up during a write is an error, not a signal, and the writer
 * cannot be used afterwards. */
static void test_p12_full_in_the_middle(void **state)
{
    const char *path = stkt_path("p12.npy");
    static char large[1 << 20];
    stki_npy_writer *w;

    (void)state;
    assert_int_equal(stki_npy_create(path, STK_U8, 0, NULL, false, &w, &err), STK_OK);
    stkt_fail_call(STKT_WRITE, 2, ENOSPC);
    assert_int_equal(stki_npy_append(w, large, sizeof large, &err), STK_OK);
    assert_int_equal(stki_npy_append(w, large, sizeof large, &err), STK_E_IO);
    assert_int_equal(stki_npy_append(w, large, sizeof large, &err),
                     STK_E_IO); /* the disk works again, but the file cannot be finished */
    assert_non_null(strstr(err.message, "an earlier call failed"));
    assert_int_equal(stki_npy_commit(w, &err), STK_E_IO);
    assert_int_equal(files_beginning("p12.npy"), 0);
}

/* Row P13 (tensorflow/tensorflow#8745): /dev/full accepts nothing, which must be an error. */
static void test_p13_dev_full(void **state)
{
    static char large[1 << 20];
    stki_npy_writer *w = NULL;
    stk_tensor t;
    int64_t shape[1] = {8};

    (void)state;
    assert_int_equal(stki_npy_create("/dev/full", STK_U8, 0, NULL, false, &w, &err), STK_E_IO);
    assert_non_null(strstr(err.message, "/dev/full"));
    assert_non_null(strstr(err.message, "No space left"));
    assert_int_equal(stk_tensor_borrow(large, STK_U8, 1, shape, NULL, &t, &err), STK_OK);
    assert_int_equal(write_tensor("/dev/full", &t, &err), STK_E_IO);
    /* A device that accepts everything is written directly and not replaced. */
    assert_int_equal(write_tensor("/dev/null", &t, &err), STK_OK);
    assert_int_equal(access("/dev/null", W_OK), 0);
}

static void test_paths_that_cannot_be_written(void **state)
{
    static const int64_t shape[1] = {INT64_MAX}, negative[1] = {-1};
    static const int64_t axes[32] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                     1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const char *fifo = stkt_path("fifo");
    stki_npy_writer *w = NULL;

    (void)state;
    assert_int_equal(stki_npy_create(stkt_path("no/such/dir.npy"), STK_U8, 0, NULL, false, &w, &err), STK_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "no/such/dir.npy"));
    assert_int_equal(stki_npy_create("/tmp", STK_U8, 0, NULL, false, &w, &err), STK_E_IO);
    assert_non_null(strstr(err.message, "found a directory"));
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(stki_npy_create(fifo, STK_U8, 0, NULL, false, &w, &err), STK_E_IO); /* and does not block */
    assert_int_equal(stki_npy_create(stkt_path("x.npy"), STK_F32, 1, shape, false, &w, &err), STK_E_BAD_SHAPE);
    assert_int_equal(stki_npy_create(stkt_path("x.npy"), STK_F32, 1, negative, false, &w, &err), STK_E_BAD_SHAPE);
    assert_int_equal(stki_npy_create(stkt_path("x.npy"), STK_F32, 32, axes, false, &w, &err), STK_E_UNSUPPORTED);
    assert_int_equal(stki_npy_create(stkt_path("x.npy"), (stk_dtype)99, 0, NULL, false, &w, &err), STK_E_BAD_DTYPE);
    assert_null(w);
    assert_int_equal(stki_npy_create(stkt_path("x.npy"), STK_U8, 1, shape, false, &w, &err), STK_OK);
    assert_int_equal(stki_npy_append(w, "", 2, &err), STK_E_BAD_SHAPE); /* 2^64 bytes */
    assert_int_equal(stki_npy_append(w, "", -1, &err), STK_E_BAD_SHAPE);
    stki_npy_abort(w);
    assert_int_equal(files_beginning("x.npy"), 0);
}

static void test_most_axes(void **state)
{
    const char *path = stkt_path("axes.npy");
    int64_t shape[31];
    stki_npy_writer *w;
    stki_reader *reader;

    (void)state;
    for (int i = 0; i < 31; i++)
        shape[i] = i == 7 ? INT64_C(1000000000000000000) : i == 9 ? 0 : 1;
    assert_int_equal(stki_npy_create(path, STK_U8, 31, shape, false, &w, &err), STK_OK);
    assert_int_equal(stki_npy_commit(w, &err), STK_OK);
    assert_int_equal(stkt_npy_reader(path, NULL, &reader, &err), STK_OK);
    assert_int_equal(reader->ndim, 31);
    assert_int_equal(reader->shape[7], shape[7]);
    stki_reader_destroy(reader);
}

static void test_tensors_of_any_strides(void **state)
{
    const char *path = stkt_path("tensor.npy");
    enum { A = 700, B = 3, C = 401 };
    static const int64_t shape[3] = {A, B, C};
    static const int dims[3] = {2, 0, 1};
    int16_t *data = malloc(sizeof(int16_t) * A * B * C), *expected = malloc(sizeof(int16_t) * A * B * C);
    stk_tensor t, permuted, flipped, scalar, back;

    (void)state;
    for (int i = 0; i < A * B * C; i++)
        data[i] = (int16_t)(i * 7);
    for (int c = 0; c < C; c++)
        for (int a = 0; a < A; a++)
            for (int b = 0; b < B; b++)
                expected[(c * A + a) * B + b] = data[(a * B + b) * C + (C - 1 - c)];
    assert_int_equal(stk_tensor_borrow(data, STK_I16, 3, shape, NULL, &t, &err), STK_OK);
    assert_int_equal(write_tensor(path, &t, &err), STK_OK);
    file_is(path, "{'descr': '<i2', 'fortran_order': False, 'shape': (700, 3, 401), }", data,
            sizeof(int16_t) * A * B * C);
    assert_int_equal(stk_tensor_permute(&t, dims, &permuted, &err), STK_OK);
    assert_int_equal(stk_tensor_flip(&permuted, 0, &flipped, &err), STK_OK);
    assert_int_equal(write_tensor(path, &flipped, &err), STK_OK);
    file_is(path, "{'descr': '<i2', 'fortran_order': False, 'shape': (401, 700, 3), }", expected,
            sizeof(int16_t) * A * B * C);
    assert_int_equal(stk_tensor_borrow(data + 5, STK_I16, 0, NULL, NULL, &scalar, &err), STK_OK);
    assert_int_equal(write_tensor(path, &scalar, &err), STK_OK);
    file_is(path, "{'descr': '<i2', 'fortran_order': False, 'shape': (), }", data + 5, 2);
    assert_int_equal(stkt_npy_tensor(path, NULL, &back, &err), STK_OK);
    assert_int_equal(back.ndim, 0);
    stk_tensor_release(&back);
    t.dtype = STK_BF16;
    assert_int_equal(write_tensor(stkt_path("bf16.npy"), &t, &err), STK_E_UNSUPPORTED);
    assert_int_equal(files_beginning("bf16.npy"), 0);
    free(data);
    free(expected);
}

/* Tensors that were read as big-endian, or with bools other than 0 and 1, are written in normal form. */
static void test_tensors_of_other_files(void **state)
{
    const char *from = stkt_path("from.npy"), *to = stkt_path("to.npy");
    static const unsigned char big[4] = {1, 2, 3, 4}, little[4] = {2, 1, 4, 3}, odd[4] = {0, 7, 255, 1},
                               truth[4] = {0, 1, 1, 1};
    stk_tensor t;

    (void)state;
    stkt_write_npy(from, ">u2", "False", "(2,)", 64, big, 4);
    assert_int_equal(stkt_npy_tensor(from, NULL, &t, &err), STK_OK);
    assert_int_equal(write_tensor(to, &t, &err), STK_OK);
    stk_tensor_release(&t);
    file_is(to, "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }", little, 4);
    stkt_write_npy(from, "|b1", "False", "(4,)", 64, odd, 4);
    assert_int_equal(stkt_npy_tensor(from, NULL, &t, &err), STK_OK);
    assert_int_equal(write_tensor(to, &t, &err), STK_OK);
    stk_tensor_release(&t);
    file_is(to, "{'descr': '|b1', 'fortran_order': False, 'shape': (4,), }", truth, 4);
    stkt_write_npy(from, "<f4", "False", "(2, 0, 3)", 64, "", 0);
    assert_int_equal(stkt_npy_tensor(from, NULL, &t, &err), STK_OK);
    assert_int_equal(write_tensor(to, &t, &err), STK_OK);
    stk_tensor_release(&t);
    file_is(to, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0, 3), }", NULL, 0);
}

static void test_every_allocation_failing(void **state)
{
    stki_memory_stats before, after;
    int64_t shape[1] = {8};
    char data[8] = "1234567", path[256];
    stk_status status;
    stk_tensor t;
    int n = 0;

    (void)state;
    strcpy(path, stkt_path("memory.npy")); /* copied, because files_beginning reuses the buffers of stkt_path */
    assert_int_equal(stk_tensor_borrow(data, STK_U8, 1, shape, NULL, &t, &err), STK_OK);
    stki_memory_read(STKI_MEM_HOST, &before);
    do {
        stki_memory_fail_at(++n);
        status = write_tensor(path, &t, &err);
        assert_true(status == STK_OK || status == STK_E_MEMORY);
        assert_int_equal(files_beginning("memory.npy"), status == STK_OK);
    } while (status && n < 50);
    stki_memory_fail_at(0);
    assert_int_equal(n, 9); /* both writers, path, table of names, name, output, path, temporary name */
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(before.bytes, after.bytes);
    file_is(path, "{'descr': '|u1', 'fortran_order': False, 'shape': (8,), }", data, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_every_dtype),
        cmocka_unit_test(test_no_rows_and_empty_rows),
        cmocka_unit_test(test_many_bytes),
        cmocka_unit_test(test_an_older_file_stays_until_the_end),
        cmocka_unit_test(test_two_writers_of_one_name),
        cmocka_unit_test(test_taken_temporary_names),
        cmocka_unit_test(test_p14_failing_calls),
        cmocka_unit_test(test_p12_full_in_the_middle),
        cmocka_unit_test(test_p13_dev_full),
        cmocka_unit_test(test_paths_that_cannot_be_written),
        cmocka_unit_test(test_most_axes),
        cmocka_unit_test(test_tensors_of_any_strides),
        cmocka_unit_test(test_tensors_of_other_files),
        cmocka_unit_test(test_every_allocation_failing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
