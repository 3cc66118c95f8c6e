/* test_writer_calls.c: calls of the public writers that change nothing, and calls that are refused: what they say, and
 * that a file which lacks what was refused is never finished. */
#include "allocate.h"
#include "container.h"
#include "io_files.h"
#include "stk_test.h"
#include <dirent.h>
#include <stoker/dataset.h>

static stk_error err;

/* Formats in their ways. */
static const struct way {
    const char *format;
    int32_t level;
    int64_t chunk_rows;
} ways[] = {{"npy", 0, 0},         {"npz", 0, 0},  {"npz", 6, 0},  {"pt", 0, 0},
            {"safetensors", 0, 0}, {"hdf5", 0, 0}, {"hdf5", 6, 0}, {"hdf5", 0, 3}};
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

/* ---- nothing at all -----------------------------------------------------------------------------------------------
 */

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

/* Every member is read, with its CRC where there is one. */
static void expect_numbers(const char *path, const char *name, int64_t rows)
{
    stki_reader_opts opts = {.name = name, .verify = true};
    stki_container *c;
    stki_array array;
    stk_tensor t;
    int64_t member;

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

/* Appends of no rows, with memory or without, leave no trace: the CRC of zip archives started over at NULL. */
static void test_no_rows_change_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < WAYS; i++) {
        char with_buffer[300], without_buffer[300];
        const char *with = named(with_buffer, "with", ways[i].format);
        const char *without = named(without_buffer, "without", ways[i].format);
        bool whole = strcmp(ways[i].format, "hdf5") != 0; /* whose library notes the time */
        int64_t a_bytes, b_bytes;
        char *a, *b;

        write_with(with, &ways[i], true);
        write_with(without, &ways[i], false);
        expect_numbers(with, strcmp(ways[i].format, "npy") ? "a" : NULL, 4);
        a = content_of(with, &a_bytes);
        b = content_of(without, &b_bytes);
        assert_int_equal(a_bytes, b_bytes);
        if (whole)
            assert_memory_equal(a, b, (size_t)a_bytes);
        free(a);
        free(b);
    }
}

/* Rows without bytes count as rows, from NULL too. */
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
        assert_ok(stki_container_open(path, &opts, &c, &err));
        assert_ok(stki_container_find(c, &opts, &member, &err));
        assert_ok(stki_container_array(c, member, &opts, &array, &err));
        assert_int_equal(array.shape[0], 7);
        stki_array_release(&array);
        stki_container_release(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_rows_change_nothing),
        cmocka_unit_test(test_rows_without_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
