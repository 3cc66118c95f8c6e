/* Tests of calls to the public writers that have no effect, and of calls that fail: these must give the right message,
 * and an incomplete file must never be finished. */
#include "allocate.h"
#include "container.h"
#include "format.h"
#include "io_files.h"
#include "source_opts.h"
#include "stk_test.h"
#include <dirent.h>
#include <stoker/dataset.h>

static stk_error err;

/* The formats and their options. */
static const struct way {
    const char *format;
    int32_t level;
    int64_t chunk_rows;
} ways[] = {{"npy", 0, 0},  {"npz", 0, 0},  {"npz", 6, 0},  {"pt", 0, 0}, {"safetensors", 0, 0},
            {"hdf5", 0, 0}, {"hdf5", 6, 0}, {"hdf5", 0, 3}, {"raw", 0, 0}};
enum { WAYS = sizeof ways / sizeof ways[0] };

static const char *named(char *buffer, const char *stem, const char *format)
{
    snprintf(buffer, 300, "%s.%s", stkt_path(stem), format);
    return buffer;
}

static stk_writer *create(const char *path, const struct way *way)
{
    stk_writer_opts opts = STK_WRITER_OPTS_INIT;
    stk_writer *w;

    opts.level = way->level;
    opts.chunk_rows = way->chunk_rows;
    assert_ok(stk_writer_create(path, way->format, &opts, &w, &err));
    return w;
}

/* ---- empty appends ---- */

static void write_with(const char *path, const struct way *way, bool nothings)
{
    static const float numbers[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const int64_t shape[1] = {3};
    stk_writer *w = create(path, way);

    assert_ok(stk_writer_begin(w, "a", STK_F32, 1, shape, -1, &err));
    for (int i = 0; i < 2; i++) {
        if (nothings) {
            assert_ok(stk_writer_append(w, NULL, 0, &err));
            assert_ok(stk_writer_append(w, numbers, 0, &err));
        }
        assert_ok(stk_writer_append(w, numbers + i * 6, 2, &err));
    }
    if (nothings)
        assert_ok(stk_writer_append(w, NULL, 0, &err));
    assert_ok(stk_writer_end(w, &err));
    assert_ok(stk_writer_commit(w, &err));
}

/* Reads every member and verifies its CRC, if it has one. */
static void expect_numbers(const char *path, const char *name, int64_t rows)
{
    bool raw = strstr(path, ".raw") != NULL;
    stki_reader_opts opts =
        raw ? *stkt_source("{format: raw, dtype: f32, shape: [3]}") : (stki_reader_opts){.verify = true};
    stki_container *c;
    stki_array array;
    stk_tensor t;
    int64_t member;

    opts.name = name;
    assert_ok(stki_container_open(path, &opts, &c, &err));
    assert_ok(stki_container_find(c, &opts, &member, &err));
    assert_ok(stki_container_array(c, member, &opts, &array, &err));
    assert_ok(stki_array_tensor(&array, c->path, &t, &err));
    assert_int_equal(t.shape[0], rows);
    for (int i = 0; i < rows * 3; i++) {
        float number;

        memcpy(&number, (char *)t.data + i / 3 * t.strides[0] + i % 3 * 4, 4);
        assert_true(number == (float)(i + 1));
    }
    stk_tensor_release(&t);
    stki_array_release(&array);
    stki_container_release(c);
}

static char *content_of(const char *path, int64_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *content;

    *bytes = stkt_file_bytes(path);
    content = malloc((size_t)*bytes + 1);
    assert_non_null(file);
    assert_int_equal(fread(content, 1, (size_t)*bytes, file), *bytes);
    fclose(file);
    return content;
}

/* Appending no rows, with or without a buffer, changes nothing (the CRC in zip archives was once reset by NULL). */
static void test_no_rows_change_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < WAYS; i++) {
        char with_buffer[300], without_buffer[300];
        const char *with = named(with_buffer, "with", ways[i].format);
        const char *without = named(without_buffer, "without", ways[i].format);
        bool whole = strcmp(ways[i].format, "hdf5") != 0; /* libhdf5 stores the time */
        bool one_array = !strcmp(ways[i].format, "npy") || !strcmp(ways[i].format, "raw");
        int64_t a_bytes, b_bytes;
        char *a, *b;

        write_with(with, &ways[i], true);
        write_with(without, &ways[i], false);
        expect_numbers(with, one_array ? NULL : "a", 4);
        a = content_of(with, &a_bytes);
        b = content_of(without, &b_bytes);
        assert_int_equal(a_bytes, b_bytes);
        if (whole)
            assert_memory_equal(a, b, (size_t)a_bytes);
        free(a);
        free(b);
    }
}

/* Rows of zero bytes are counted, even if the buffer is NULL. */
static void test_rows_without_bytes(void **state)
{
    static const int64_t shape[2] = {4, 0};

    (void)state;
    for (int i = 0; i < WAYS; i++) {
        char buffer[300];
        const char *path = named(buffer, "empty", ways[i].format);
        stk_writer *w = create(path, &ways[i]);
        stki_reader_opts opts = {.name = strcmp(ways[i].format, "npy") ? "a" : NULL, .verify = true};
        stki_container *c;
        stki_array array;
        int64_t member;

        assert_ok(stk_writer_begin(w, "a", STK_F32, 2, shape, -1, &err));
        assert_ok(stk_writer_append(w, NULL, 7, &err));
        assert_ok(stk_writer_end(w, &err));
        assert_ok(stk_writer_commit(w, &err));
        if (!strcmp(ways[i].format, "raw")) { /* rows of zero bytes cannot be stored */
            assert_int_equal(stkt_file_bytes(path), 0);
            continue;
        }
        assert_ok(stki_container_open(path, &opts, &c, &err));
        assert_ok(stki_container_find(c, &opts, &member, &err));
        assert_ok(stki_container_array(c, member, &opts, &array, &err));
        assert_int_equal(array.shape[0], 7);
        stki_array_release(&array);
        stki_container_release(c);
    }
}

/* ---- after a failure ---- */

/* The number of files in the program's directory. */
static int file_count(void)
{
    DIR *handle = opendir(stkt_path(""));
    struct dirent *entry;
    int count = 0;

    assert_non_null(handle);
    while ((entry = readdir(handle)))
        count += entry->d_name[0] != '.';
    closedir(handle);
    return count;
}

/* Calls that fail. Those from IN_ARRAY on are made after an array was begun, with three numbers per row and 4 announced
 * rows. */
enum call {
    BAD_NAME,
    SAME_NAME,
    BAD_DTYPE,
    NEGATIVE_SHAPE,
    HUGE_SHAPE,
    MANY_AXES,
    NEGATIVE_ROWS,
    NUMBERS_OF_A_NUMBER,
    APPEND_OUTSIDE,
    END_OUTSIDE,
    BROKEN_ADD,
    IN_ARRAY,
    NEGATIVE_COUNT = IN_ARRAY,
    HUGE_COUNT,
    ONE_ROW_MORE,
    EARLY_END,
    BEGIN_INSIDE,
    ADD_INSIDE,
    CALLS
};

static const float rows_of_three[15] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static stk_status fail_outside(stk_writer *w, enum call call)
{
    static const int64_t negative[2] = {3, -4}, huge[2] = {INT64_C(1) << 40, INT64_C(1) << 40}, axes[40] = {1, 1, 1};
    stk_tensor t;

    switch (call) {
    case BAD_NAME:
        return stk_writer_begin(w, "b\377", STK_F32, 0, NULL, -1, &err);
    case SAME_NAME:
        return stk_writer_begin(w, "a", STK_F32, 0, NULL, -1, &err);
    case BAD_DTYPE:
        return stk_writer_begin(w, "b", (stk_dtype)99, 0, NULL, -1, &err);
    case NEGATIVE_SHAPE:
        return stk_writer_begin(w, "b", STK_F32, 2, negative, -1, &err);
    case HUGE_SHAPE:
        return stk_writer_begin(w, "b", STK_F32, 2, huge, -1, &err);
    case MANY_AXES:
        return stk_writer_begin(w, "b", STK_F32, 33, axes, -1, &err);
    case NEGATIVE_ROWS:
        return stk_writer_begin(w, "b", STK_F32, 0, NULL, -2, &err);
    case NUMBERS_OF_A_NUMBER:
        return stk_writer_begin(w, "b", STK_F32, -1, NULL, 2, &err);
    case APPEND_OUTSIDE:
        return stk_writer_append(w, rows_of_three, 1, &err);
    case END_OUTSIDE:
        return stk_writer_end(w, &err);
    default: /* the dtype is invalid */
        assert_ok(stk_tensor_borrow((void *)(uintptr_t)rows_of_three, STK_F32, 1, (int64_t[]){3}, NULL, &t, &err));
        t.dtype = (stk_dtype)99;
        return stk_writer_add(w, "b", &t, &err);
    }
}

static stk_status fail_inside(stk_writer *w, enum call call)
{
    stk_tensor t;

    switch (call) {
    case NEGATIVE_COUNT:
        return stk_writer_append(w, rows_of_three, -1, &err);
    case HUGE_COUNT:
        return stk_writer_append(w, rows_of_three, INT64_MAX / 8, &err);
    case ONE_ROW_MORE:
        return stk_writer_append(w, rows_of_three, 5, &err);
    case EARLY_END:
        return stk_writer_end(w, &err);
    case BEGIN_INSIDE:
        return stk_writer_begin(w, "c", STK_F32, 0, NULL, -1, &err);
    default:
        assert_ok(stk_tensor_borrow((void *)(uintptr_t)rows_of_three, STK_F32, 1, (int64_t[]){3}, NULL, &t, &err));
        return stk_writer_add(w, "c", &t, &err);
    }
}

static void write_a(stk_writer *w)
{
    static const int64_t shape[1] = {3};

    assert_ok(stk_writer_begin(w, "a", STK_F32, 1, shape, 4, &err));
    assert_ok(stk_writer_append(w, rows_of_three, 4, &err));
    assert_ok(stk_writer_end(w, &err));
}

/* After any failed call, including those with invalid arguments, all later calls and the commit fail with the same
 * status, because the file would lack an array. An older file is kept. */
static void test_nothing_continues_after_a_failure(void **state)
{
    static const int64_t shape[1] = {3};

    (void)state;
    for (int i = 0; i < WAYS; i++)
        for (int call = 0; call < CALLS; call++) {
            bool one_array = !strcmp(ways[i].format, "npy") || !strcmp(ways[i].format, "raw");
            char buffer[300];
            const char *path = named(buffer, "failed", ways[i].format);
            stk_status status;
            stk_writer *w;
            int files;

            stkt_write_file(path, "older", 5);
            files = file_count();
            w = create(path, &ways[i]);
            if (call < IN_ARRAY || !one_array)
                write_a(w);
            if (call >= IN_ARRAY)
                assert_ok(stk_writer_begin(w, "b", STK_F32, 1, shape, 4, &err));
            status = call < IN_ARRAY ? fail_outside(w, (enum call)call) : fail_inside(w, (enum call)call);
            if (status >= 0)
                fail_msg("%s: call %d succeeds", ways[i].format, call);
            assert_int_equal(err.status, status);
            if (call >= IN_ARRAY) { /* calls that would otherwise be right */
                assert_int_equal(stk_writer_append(w, rows_of_three, 4, &err), status);
                assert_int_equal(stk_writer_end(w, &err), status);
            }
            assert_int_equal(stk_writer_begin(w, "other", STK_F32, 0, NULL, 0, &err), status);
            assert_says("an earlier call failed");
            if (call % 3 == 0) {
                stk_writer_abort(w);
            } else {
                assert_int_equal(stk_writer_commit(w, &err), status);
                assert_says("an earlier call failed");
            }
            assert_int_equal(stkt_file_bytes(path), 5);
            assert_int_equal(file_count(), files);
            assert_int_equal(unlink(path), 0);
        }
}

static void test_npy_keeps_failing(void **state)
{
    const char *path = stkt_path("failed.npy");
    int files = file_count();
    stk_npy_writer *w;

    (void)state;
    for (int64_t count = -1; count <= -1 || count == INT64_MAX; count = count < 0 ? INT64_MAX : 0) {
        assert_ok(stk_npy_create(path, STK_F32, 0, NULL, false, &w, &err));
        assert_ok(stk_npy_append(w, rows_of_three, 2, &err));
        assert_status(stk_npy_append(w, rows_of_three, count, &err), STK_E_BAD_SHAPE);
        assert_status(stk_npy_append(w, rows_of_three, 2, &err), STK_E_BAD_SHAPE);
        assert_says("an earlier call failed");
        assert_status(stk_npy_commit(w, &err), STK_E_BAD_SHAPE);
        assert_says("an earlier call failed");
        assert_int_equal(file_count(), files);
    }
}

static void test_beton_keeps_failing(void **state)
{
    static const stk_beton_field field = {.name = "a", .kind = STK_BETON_INT};
    stk_beton_value values[2] = {{.integer = 1}, {.integer = 2}};
    const char *path = stkt_path("failed.beton");
    int files = file_count();
    stk_beton_writer *w;

    (void)state;
    assert_ok(stk_beton_create(path, &field, 1, 2, NULL, &w, &err));
    assert_ok(stk_beton_append(w, values, 1, &err));
    assert_status(stk_beton_append(w, values, -1, &err), STK_E_BAD_ARG);
    assert_says("found -1, expected at least 0");
    assert_status(stk_beton_append(w, values + 1, 1, &err), STK_E_BAD_ARG);
    assert_status(stk_beton_commit(w, &err), STK_E_BAD_ARG);
    assert_int_equal(file_count(), files);
}

/* ---- arguments ---- */

/* The error names the argument; err may also be NULL. */
static void refused(stk_status status, stk_status expected, const char *says)
{
    if (status != expected || err.status != expected || !strstr(err.message, says))
        fail_msg("%s: %s, expected %s: %s", stk_status_name(status), err.message, stk_status_name(expected), says);
    memset(&err, 0, sizeof err);
}

static void test_null_of_writers(void **state)
{
    static const int64_t shape[1] = {3};
    const char *path = stkt_path("null.npz");
    stk_tensor t;
    stk_writer *w;

    (void)state;
    assert_ok(stk_tensor_borrow((void *)(uintptr_t)rows_of_three, STK_F32, 1, shape, NULL, &t, &err));
    refused(stk_writer_create(NULL, "npz", NULL, &w, &err), STK_E_BAD_ARG, "path: found NULL");
    refused(stk_writer_create(NULL, NULL, NULL, &w, &err), STK_E_BAD_ARG, "path: found NULL");
    refused(stk_writer_create(path, NULL, NULL, NULL, &err), STK_E_BAD_ARG, "out: found NULL");
    refused(stk_writer_begin(NULL, "a", STK_F32, 0, NULL, -1, &err), STK_E_BAD_ARG, "writer: found NULL");
    refused(stk_writer_append(NULL, rows_of_three, 1, &err), STK_E_BAD_ARG, "writer: found NULL");
    refused(stk_writer_end(NULL, &err), STK_E_BAD_ARG, "writer: found NULL");
    refused(stk_writer_add(NULL, "a", &t, &err), STK_E_BAD_ARG, "writer: found NULL");
    refused(stk_writer_commit(NULL, &err), STK_E_BAD_ARG, "writer: found NULL");
    stk_writer_abort(NULL);
    assert_int_equal(stk_writer_create(NULL, NULL, NULL, NULL, NULL), STK_E_BAD_ARG);
    assert_int_equal(stk_writer_commit(NULL, NULL), STK_E_BAD_ARG);
    for (int i = 0; i < WAYS; i++)
        for (int call = 0; call < 7; call++) {
            char buffer[300];
            stk_writer *of = create(named(buffer, "null", ways[i].format), &ways[i]);
            stk_tensor none = t;

            if (call >= 5)
                assert_ok(stk_writer_begin(of, "a", STK_F32, 1, shape, -1, &err));
            none.data = NULL;
            if (call == 0)
                refused(stk_writer_begin(of, NULL, STK_F32, 0, NULL, -1, &err), STK_E_BAD_ARG, "name: found NULL");
            else if (call == 1)
                refused(stk_writer_begin(of, "a", STK_F32, 1, NULL, -1, &err), STK_E_BAD_ARG, "row_shape: found NULL");
            else if (call == 2)
                refused(stk_writer_add(of, NULL, &t, &err), STK_E_BAD_ARG, "name: found NULL");
            else if (call == 3)
                refused(stk_writer_add(of, "a", NULL, &err), STK_E_BAD_ARG, "tensor: found NULL");
            else if (call == 4)
                refused(stk_writer_add(of, "a", &none, &err), STK_E_BAD_ARG, "tensor.data: found NULL");
            else if (call == 5)
                refused(stk_writer_append(of, NULL, 1, &err), STK_E_BAD_ARG, "rows: found NULL");
            else
                assert_int_equal(stk_writer_append(of, NULL, 1, NULL), STK_E_BAD_ARG);
            assert_int_equal(stk_writer_commit(of, NULL), STK_E_BAD_ARG);
            assert_int_equal(stkt_file_bytes(buffer), -1);
        }
}

static void test_null_of_npy(void **state)
{
    static const int64_t shape[1] = {3};
    const char *path = stkt_path("null.npy");
    stk_npy_writer *w;

    (void)state;
    refused(stk_npy_create(NULL, STK_F32, 0, NULL, false, &w, &err), STK_E_BAD_ARG, "path: found NULL");
    refused(stk_npy_create(path, STK_F32, 0, NULL, false, NULL, &err), STK_E_BAD_ARG, "out: found NULL");
    refused(stk_npy_create(path, STK_F32, 1, NULL, false, &w, &err), STK_E_BAD_ARG, "row_shape: found NULL");
    refused(stk_npy_create(path, STK_F32, -1, shape, false, &w, &err), STK_E_BAD_ARG,
            "row_ndim: found -1, expected 0 to 31");
    refused(stk_npy_append(NULL, rows_of_three, 1, &err), STK_E_BAD_ARG, "writer: found NULL");
    refused(stk_npy_commit(NULL, &err), STK_E_BAD_ARG, "writer: found NULL");
    assert_int_equal(stk_npy_create(NULL, STK_F32, 0, NULL, false, NULL, NULL), STK_E_BAD_ARG);
    stk_npy_abort(NULL);
    assert_ok(stk_npy_create(path, STK_F32, 1, shape, false, &w, &err));
    assert_ok(stk_npy_append(w, NULL, 0, &err));
    refused(stk_npy_append(w, NULL, 1, &err), STK_E_BAD_ARG, "rows: found NULL");
    assert_int_equal(stk_npy_commit(w, NULL), STK_E_BAD_ARG);
    assert_int_equal(stkt_file_bytes(path), -1);
}

/* Writes an invalid value to a field of this kind. */
static void beton_value(stk_beton_kind kind, stk_beton_value value, stk_status expected, const char *says)
{
    static const int64_t shape[1] = {3};
    const stk_beton_field field = {.name = "a", .kind = kind, .dtype = STK_F32, .ndim = 1, .shape = shape};
    stk_beton_writer *w;

    assert_ok(stk_beton_create(stkt_path("null.beton"), &field, 1, 1, NULL, &w, &err));
    refused(stk_beton_append(w, &value, 1, &err), expected, says);
    assert_int_equal(stk_beton_commit(w, NULL), expected);
}

static void test_null_of_beton(void **state)
{
    static const stk_beton_field field = {.name = "a", .kind = STK_BETON_INT};
    static const stk_beton_field array = {.name = "a", .kind = STK_BETON_NDARRAY, .dtype = STK_F32, .ndim = 1};
    stk_beton_opts no_size = {.page_bytes = 2 << 20};
    const char *path = stkt_path("null.beton");
    stk_beton_writer *w;

    (void)state;
    refused(stk_beton_create(NULL, &field, 1, 1, NULL, &w, &err), STK_E_BAD_ARG, "path: found NULL");
    refused(stk_beton_create(path, NULL, 1, 1, NULL, &w, &err), STK_E_BAD_ARG, "fields: found NULL");
    refused(stk_beton_create(path, &field, 1, 1, NULL, NULL, &err), STK_E_BAD_ARG, "out: found NULL");
    refused(stk_beton_create(path, &field, 1, 1, &no_size, &w, &err), STK_E_BAD_ARG, "struct_size: found 0");
    refused(stk_beton_create(path, &array, 1, 1, NULL, &w, &err), STK_E_BAD_ARG, "field 0: invalid shape: found NULL");
    refused(stk_beton_append(NULL, NULL, 0, &err), STK_E_BAD_ARG, "writer: found NULL");
    refused(stk_beton_commit(NULL, &err), STK_E_BAD_ARG, "writer: found NULL");
    assert_int_equal(stk_beton_create(NULL, NULL, 1, 1, NULL, NULL, NULL), STK_E_BAD_ARG);
    stk_beton_abort(NULL);
    assert_ok(stk_beton_create(path, &field, 1, 1, NULL, &w, &err));
    assert_ok(stk_beton_append(w, NULL, 0, &err));
    refused(stk_beton_append(w, NULL, 1, &err), STK_E_BAD_ARG, "values: found NULL");
    assert_int_equal(stk_beton_commit(w, NULL), STK_E_BAD_ARG);
    beton_value(STK_BETON_BYTES, (stk_beton_value){.size = 5}, STK_E_BAD_ARG, "bytes: found NULL, expected 5 bytes");
    beton_value(STK_BETON_JSON, (stk_beton_value){.size = 5}, STK_E_BAD_ARG, "bytes: found NULL");
    beton_value(STK_BETON_NDARRAY, (stk_beton_value){.size = 12}, STK_E_BAD_ARG, "bytes: found NULL");
    beton_value(STK_BETON_IMAGE, (stk_beton_value){.size = 3, .height = 1, .width = 1}, STK_E_BAD_ARG, "found NULL");
    beton_value(STK_BETON_IMAGE, (stk_beton_value){.size = 9, .height = 1, .width = 1, .jpeg = true}, STK_E_BAD_ARG,
                "bytes: found NULL");
    beton_value(STK_BETON_IMAGE, (stk_beton_value){.height = 1, .width = 1, .jpeg = true}, STK_E_TRUNCATED,
                "null.beton");
    beton_value(STK_BETON_JSON, (stk_beton_value){.size = 0}, STK_E_BAD_VALUE, "expected a JSON text");
    assert_int_equal(stkt_file_bytes(path), -1);
}

static void test_begin_says_what_it_expects(void **state)
{
    (void)state;
    for (int i = 0; i < WAYS; i++) {
        char buffer[300];
        stk_writer *w = create(named(buffer, "begin", ways[i].format), &ways[i]);

        refused(stk_writer_begin(w, "a", STK_F32, -2, NULL, 1, &err), STK_E_BAD_ARG,
                "array a: row_ndim: found -2, expected -1 (a scalar) to 31");
        stk_writer_abort(w);
        w = create(buffer, &ways[i]);
        refused(stk_writer_begin(w, "a", STK_F32, 0, NULL, -2, &err), STK_E_BAD_ARG, "array a: rows: found -2");
        stk_writer_abort(w);
        w = create(buffer, &ways[i]);
        refused(stk_writer_begin(w, "a", STK_F32, -1, NULL, 5, &err), STK_E_BAD_ARG, "found 5, expected 1 or -1");
        stk_writer_abort(w);
        w = create(buffer, &ways[i]);
        assert_ok(stk_writer_begin(w, "a", STK_F32, 0, NULL, -1, &err));
        refused(stk_writer_append(w, rows_of_three, -1, &err), STK_E_BAD_SHAPE, "found -1, expected at least 0");
        stk_writer_abort(w);
    }
}

static void test_options(void **state)
{
    static const char *const formats[] = {"npy", "npz", "pt", "safetensors", "hdf5"};

    (void)state;
    for (int f = 0; f < 5; f++) {
        stk_writer_opts level = STK_WRITER_OPTS_INIT, chunks = level, negative = level, threads = level;
        bool can_deflate = f == 1 || f == 4;
        char buffer[300];
        const char *path = named(buffer, "options", formats[f]);
        int files = file_count();
        stk_writer *w;

        level.level = 10;
        refused(stk_writer_create(path, NULL, &level, &w, &err), STK_E_BAD_ARG, "found 10, expected 0 to 9");
        level.level = 6;
        if (!can_deflate)
            refused(stk_writer_create(path, NULL, &level, &w, &err), STK_E_UNSUPPORTED, "found level 6, expected 0");
        negative.chunk_rows = -5;
        refused(stk_writer_create(path, NULL, &negative, &w, &err), STK_E_BAD_ARG, "chunk_rows: found -5");
        threads.threads = -3;
        refused(stk_writer_create(path, NULL, &threads, &w, &err), STK_E_BAD_ARG, "threads: found -3");
        chunks.chunk_rows = 7;
        if (f < 4)
            refused(stk_writer_create(path, NULL, &chunks, &w, &err), STK_E_UNSUPPORTED, "chunk_rows: found 7");
        assert_int_equal(file_count(), files);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_rows_change_nothing),
        cmocka_unit_test(test_rows_without_bytes),
        cmocka_unit_test(test_nothing_continues_after_a_failure),
        cmocka_unit_test(test_npy_keeps_failing),
        cmocka_unit_test(test_beton_keeps_failing),
        cmocka_unit_test(test_null_of_writers),
        cmocka_unit_test(test_null_of_npy),
        cmocka_unit_test(test_null_of_beton),
        cmocka_unit_test(test_begin_says_what_it_expects),
        cmocka_unit_test(test_options),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
