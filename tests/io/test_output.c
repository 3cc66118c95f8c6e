/* stki-threads */
/* Tests of output files: parts written in any order and by several threads, borrowed buffers, held files, and failures,
 * which must leave no file. A full disk is tested in test_npy_write.c. */
#include "faults.h"
#include "io_files.h"
#include "output.h"
#include "stk_test.h"
#include "test_random.h"
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
    assert_int_equal(stki_output_pad(o, 8, &err), STK_OK); /* already aligned */
    assert_int_equal(stki_output_position(o), 8);
    assert_int_equal(stki_output_seek(o, 1, &err), STK_OK); /* buffered bytes are written first */
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
            stkt_fail_call(STKT_WRITE, PIECES / 2, ENOSPC);
        for (int i = 0; i < WRITERS; i++) {
            writers[i] = (struct writer){.output = o, .number = i};
            assert_int_equal(stki_thread_start(&threads[i], "writer", write_pieces, &writers[i], &err), STK_OK);
        }
        for (int i = 0; i < WRITERS; i++)
            assert_true(stki_thread_join(threads[i], INT64_MAX));
        assert_int_equal(stki_output_commit(o, &err), fails ? STK_E_IO : STK_OK);
        if (fails)
            assert_non_null(strstr(err.message, "an earlier write failed"));
        file_is(path, expected, sizeof expected); /* the second time, the older file is kept */
        assert_int_equal(files_beginning("threads"), 1);
    }
}

static void aborting_leaves_nothing(void **state)
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

/* ---- lent bytes ---- */

enum { LENT = 3 << 20 };

/* Any mix of short and long, copied and lent pieces gives the same file as a single write. */
static void lent_and_copied_in_any_mix(void **state)
{
    static unsigned char bytes[LENT], found[LENT + 1];
    const char *path = stkt_path("lent");

    (void)state;
    for (int i = 0; i < LENT; i++)
        bytes[i] = (unsigned char)(i * 7 + (i >> 8) + (i >> 16));
    for (int round = 0; round < 30; round++) {
        uint64_t random = (uint64_t)round + 1;
        int64_t at = 0;
        stki_output *o;
        FILE *file;

        assert_int_equal(stki_output_create(path, &o, &err), STK_OK);
        while (at < LENT) {
            uint64_t draw = stkt_random(&random);
            int64_t longest = draw % 3 == 0 ? 40 : draw % 3 == 1 ? 40000 : 900000;
            int64_t n = 1 + (int64_t)(stkt_random(&random) % (uint64_t)longest);

            n = n < LENT - at ? n : LENT - at;
            assert_int_equal(draw >> 8 & 1 ? stki_output_lend(o, bytes + at, n, &err)
                                           : stki_output_append(o, bytes + at, n, &err),
                             STK_OK);
            at += n;
            assert_int_equal(stki_output_position(o), at);
            if ((draw >> 16 & 15) == 0)
                assert_int_equal(stki_output_settle(o, &err), STK_OK);
            if ((draw >> 24 & 15) == 0)
                assert_int_equal(stki_output_seek(o, at, &err), STK_OK);
        }
        assert_int_equal(stki_output_commit(o, &err), STK_OK);
        file = fopen(path, "rb");
        assert_int_equal(fread(found, 1, sizeof found, file), LENT);
        fclose(file);
        assert_memory_equal(found, bytes, LENT);
    }
}

/* Lent bytes may be overwritten once they are settled. */
static void lent_until_settled(void **state)
{
    static char lent[64 << 10], expected[64 << 10];
    const char *path = stkt_path("settled");
    stki_output *o;

    (void)state;
    memset(lent, 'a', sizeof lent);
    memset(expected, 'a', sizeof expected);
    assert_int_equal(stki_output_create(path, &o, &err), STK_OK);
    assert_int_equal(stki_output_lend(o, lent, sizeof lent / 2, &err), STK_OK);
    assert_int_equal(stki_output_settle(o, &err), STK_OK);
    memset(lent, 'b', sizeof lent);
    assert_int_equal(stki_output_append(o, expected, sizeof expected / 2 - 1, &err), STK_OK);
    assert_int_equal(stki_output_commit(o, &err), STK_OK);
    file_is(path, expected, sizeof expected - 1);
}

/* ---- held files ---- */

static void held_files_keep_their_names(void **state)
{
    const char *path = stkt_path("final"), *name = stkt_path("making");
    stki_output *o;

    (void)state;
    assert_int_equal(stki_output_hold(path, name, -1, &o, &err), STK_OK);
    assert_string_equal(stki_output_path(o), path);
    assert_string_equal(stki_output_temporary(o), name);
    assert_int_equal(stki_output_append(o, "abcdef", 6, &err), STK_OK);
    assert_int_equal(stkt_file_bytes(name), 0);
    assert_int_equal(stki_output_flush(o, &err), STK_OK);
    file_is(name, "abcdef", 6);
    assert_int_equal(stki_output_sync(o, &err), STK_OK);
    assert_int_equal(stki_output_append(o, "lost", 4, &err), STK_OK);
    stki_output_abort(o); /* as if the process had been killed */
    file_is(name, "abcdef", 6);
    stkt_append_file(name, "garbage", 7);
    assert_int_equal(stki_output_hold(path, name, 4, &o, &err), STK_OK);
    assert_int_equal(stki_output_position(o), 4);
    assert_int_equal(stki_output_append(o, "XY", 2, &err), STK_OK);
    assert_int_equal(stki_output_commit(o, &err), STK_OK);
    file_is(name, "abcdXY", 6);
    assert_int_equal(files_beginning("final"), 0);
    assert_int_equal(stki_output_hold(path, name, -1, &o, &err), STK_OK); /* from the beginning */
    assert_int_equal(stki_output_commit(o, &err), STK_OK);
    assert_int_equal(stkt_file_bytes(name), 0);
}

static void held_files_that_have_changed(void **state)
{
    const char *path = stkt_path("final"), *name = stkt_path("short");
    stki_output *o;

    (void)state;
    assert_int_equal(stki_output_hold(path, stkt_path("nothing"), 3, &o, &err), STK_E_NOT_FOUND);
    stkt_write_file(name, "abc", 3);
    assert_int_equal(stki_output_hold(path, name, 4, &o, &err), STK_E_TRUNCATED);
    assert_non_null(strstr(err.message, "found 3 bytes, expected at least the 4 that were written"));
    file_is(name, "abc", 3);
    assert_int_equal(stki_output_hold(path, stkt_path("no/folder"), -1, &o, &err), STK_E_NOT_FOUND);
}

/* After a failed sync it is unknown what was written, so the file cannot be finished. */
static void a_failed_sync_is_kept(void **state)
{
    stki_output *o;

    (void)state;
    assert_int_equal(stki_output_hold(stkt_path("final"), stkt_path("sync"), -1, &o, &err), STK_OK);
    stkt_fail_call(STKT_SYNC, 1, EIO);
    assert_int_equal(stki_output_sync(o, &err), STK_E_IO);
    assert_int_equal(stki_output_append(o, "x", 1, &err), STK_E_IO);
    assert_int_equal(stki_output_commit(o, &err), STK_E_IO);
    assert_non_null(strstr(err.message, "an earlier write failed"));
}

/* If only the sync of the folder fails, after the rename, the new file is kept, because the old one is gone. */
static void the_folder_cannot_be_synced(void **state)
{
    const char *path = stkt_path("renamed");
    stki_output *o;

    (void)state;
    stkt_write_file(path, "old", 3);
    assert_int_equal(stki_output_create(path, &o, &err), STK_OK);
    assert_int_equal(stki_output_append(o, "newer", 5, &err), STK_OK);
    stkt_fail_call(STKT_SYNC_DIRECTORY, 1, EIO);
    assert_int_equal(stki_output_commit(o, &err), STK_E_IO);
    assert_string_equal(err.file, path);
    file_is(path, "newer", 5);
    assert_int_equal(files_beginning("renamed"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_in_any_order),           cmocka_unit_test(threads_write_at_once),
        cmocka_unit_test(aborting_leaves_nothing),      cmocka_unit_test(lent_and_copied_in_any_mix),
        cmocka_unit_test(lent_until_settled),           cmocka_unit_test(held_files_keep_their_names),
        cmocka_unit_test(held_files_that_have_changed), cmocka_unit_test(a_failed_sync_is_kept),
        cmocka_unit_test(the_folder_cannot_be_synced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
