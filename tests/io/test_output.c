/* stki-threads: test_output.c: files in the writing: parts in any order and from several threads, and nothing left of
 * what failed. (What a full disk does is in test_npy_write.c, whose writer is made of this.) */
#include "io_files.h"
#include "output.h"
#include "stk_test.h"
#include "thread.h"
#include <dirent.h>
#include <errno.h>
#include <string.h>

static stk_error err;

static void file_is(const char *path, const void *bytes, size_t count)
{
    char found[1 << 16];
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    assert_int_equal(fread(found, 1, sizeof found, file), count);
    fclose(file);
    assert_memory_equal(found, bytes, count);
}

static int files_beginning(const char *name)
{
    DIR *dir = opendir(stkt_dir);
    struct dirent *entry;
    int count = 0;

    while ((entry = readdir(dir)))
        count += strncmp(entry->d_name, name, strlen(name)) == 0;
    closedir(dir);
    return count;
}

static void parts_in_any_order(void **state)
{
    const char *path = stkt_path("parts");
    stki_output *o;

    (void)state;
    assert_int_equal(stki_output_create(path, &o, &err), STK_OK);
    assert_string_equal(stki_output_path(o), path);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(stki_output_temporary(o), F_OK), 0);
    assert_int_equal(stki_output_append(o, "abc", 3, &err), STK_OK);
    assert_int_equal(stki_output_position(o), 3);
    assert_int_equal(stki_output_pad(o, 8, &err), STK_OK);
    assert_int_equal(stki_output_pad(o, 8, &err), STK_OK); /* nothing is missing */
    assert_int_equal(stki_output_position(o), 8);
    assert_int_equal(stki_output_seek(o, 1, &err), STK_OK); /* what is buffered is written first */
    assert_int_equal(stki_output_append(o, "XY", 2, &err), STK_OK);
    assert_int_equal(stki_output_write_at(o, 10, "end", 3, &err), STK_OK);
    assert_int_equal(stki_output_append(o, "Z", 1, &err), STK_OK);
    assert_int_equal(stki_output_commit(o, &err), STK_OK);
    file_is(path, "aXYZ\0\0\0\0\0\0end", 13);
    assert_int_equal(files_beginning("parts"), 1);
}

struct writer {
    stki_output *output;
    int number;
    stk_status status;
};

enum { WRITERS = 4, PIECES = 200, PIECE = 64 };

static void write_pieces(void *context)
{
    struct writer *w = context;
    char piece[PIECE];
    stk_error error;

    for (int i = w->number; i < PIECES && w->status == STK_OK; i += WRITERS) {
        memset(piece, i, sizeof piece);
        w->status = stki_output_write_at(w->output, (int64_t)i * PIECE, piece, PIECE, &error);
    }
}

static void threads_write_at_once(void **state)
{
    const char *path = stkt_path("threads");
    static char expected[PIECES * PIECE];
    struct writer writers[WRITERS];
    stki_thread *threads[WRITERS];
    stki_output *o;

    (void)state;
    for (int i = 0; i < PIECES; i++)
        memset(expected + i * PIECE, i, PIECE);
    for (int fails = 0; fails < 2; fails++) {
        assert_int_equal(stki_output_create(path, &o, &err), STK_OK);
        if (fails)
            stki_output_test_fail(STKI_OUTPUT_WRITE, PIECES / 2, ENOSPC);
        for (int i = 0; i < WRITERS; i++) {
            writers[i] = (struct writer){.output = o, .number = i};
            assert_int_equal(stki_thread_start(&threads[i], "writer", write_pieces, &writers[i], &err), STK_OK);
        }
        for (int i = 0; i < WRITERS; i++)
            assert_true(stki_thread_join(threads[i], INT64_MAX));
        assert_int_equal(stki_output_commit(o, &err), fails ? STK_E_IO : STK_OK);
        if (fails)
            assert_non_null(strstr(err.message, "an earlier write failed"));
        file_is(path, expected, sizeof expected); /* the second time the older file stays */
        assert_int_equal(files_beginning("threads"), 1);
    }
}

static void giving_up_leaves_nothing(void **state)
{
    stki_output *o;

    (void)state;
    assert_int_equal(stki_output_create(stkt_path("gone"), &o, &err), STK_OK);
    assert_int_equal(stki_output_append(o, "abc", 3, &err), STK_OK);
    assert_int_equal(stki_output_append(o, "", -1, &err), STK_E_BAD_SHAPE);
    stki_output_abort(o);
    stki_output_abort(NULL);
    assert_int_equal(files_beginning("gone"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_in_any_order),
        cmocka_unit_test(threads_write_at_once),
        cmocka_unit_test(giving_up_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
