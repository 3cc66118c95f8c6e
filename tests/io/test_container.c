/* Tests of containers: members by name, members that cannot be read, lists of files, and files that are one sample
 * each. */
#include "allocate.h"
#include "container.h"
#include "error.h"
#include "faults.h"
#include "files.h"
#include "format.h"
#include "io_files.h"
#include "stk_test.h"

static stk_error err;

static void no_destroy(stki_container *container)
{
    stki_container_free(container);
}

static const stki_container_ops empty_ops = {.format = "test", .destroy = no_destroy};

static stki_container *make(int count, const char *const *names)
{
    stki_container *c;
    stki_member *member;

    assert_int_equal(stki_container_create(sizeof *c, &empty_ops, "the/file", &c, &err), STK_OK);
    for (int i = 0; i < count; i++)
        assert_int_equal(stki_container_add(c, names[i], 1, (int64_t[]){i}, &member, &err), STK_OK);
    return c;
}

static void members_are_found_by_name(void **state)
{
    static const char *const names[] = {"a", "b", "c", "b"};
    stki_container *c = make(4, names);
    int64_t found = -1;

    (void)state;
    assert_int_equal(stki_container_find(c, &(stki_reader_opts){.name = "c"}, &found, &err), STK_OK);
    assert_int_equal(found, 2);
    assert_int_equal(stki_container_find(c, &(stki_reader_opts){.name = "b"}, &found, &err), STK_OK);
    assert_int_equal(found, 3); /* the last of two members with one name */
    assert_int_equal(stki_container_find(c, &(stki_reader_opts){.prefer = "a"}, &found, &err), STK_OK);
    assert_int_equal(found, 0);
    assert_int_equal(stki_container_find(c, &(stki_reader_opts){.name = "d", .prefer = "a"}, &found, &err),
                     STK_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "the/file: there is no member d: found a, b, c, b"));
    assert_int_equal(stki_container_find(c, &(stki_reader_opts){.prefer = "z"}, &found, &err), STK_E_CONFIG);
    assert_non_null(strstr(err.message, "source: {name:"));
    stki_container_release(c);
    c = make(0, NULL);
    assert_int_equal(stki_container_find(c, &(stki_reader_opts){0}, &found, &err), STK_E_NOT_FOUND);
    stki_container_release(c);
    c = make(1, names);
    assert_int_equal(stki_container_find(c, &(stki_reader_opts){.prefer = "z"}, &found, &err), STK_OK);
    assert_int_equal(found, 0);
    c->members[0].kind = STKI_MEMBER_OTHER;
    assert_int_equal(stki_container_find(c, &(stki_reader_opts){.prefer = "z"}, &found, &err), STK_E_NOT_FOUND);
    stki_container_release(c);
}

static void long_lists_of_members_are_shortened_in_messages(void **state)
{
    char names[300][32];
    const char *pointers[300];
    stki_container *c;
    int64_t found;

    (void)state;
    for (int i = 0; i < 300; i++) {
        snprintf(names[i], sizeof names[i], "member_number_%d", i);
        pointers[i] = names[i];
    }
    c = make(300, pointers);
    assert_int_equal(stki_container_find(c, &(stki_reader_opts){.name = "x"}, &found, &err), STK_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "and 292 more"));
    assert_int_equal(stki_container_find(c, &(stki_reader_opts){.name = "member_number_299"}, &found, &err), STK_OK);
    assert_int_equal(found, 299);
    assert_int_equal(c->members[299].shape[0], 299);
    stki_container_release(c);
}

static void rejected_members_have_a_reason(void **state)
{
    static const char *const names[] = {"a"};
    stki_container *c = make(1, names);
    stki_array array;
    stki_reader *reader;

    (void)state;
    assert_int_equal(stki_container_array(c, 0, NULL, &array, &err), STK_E_UNSUPPORTED);
    stki_fail(&err, STK_E_UNSAFE, "the/file: a: it holds objects");
    stki_member_refuse(&c->members[0], &err);
    assert_int_equal(stki_container_array(c, 0, NULL, &array, &err), STK_E_UNSAFE);
    assert_string_equal(err.message, "the/file: a: it holds objects");
    assert_int_equal(stki_container_reader(c, 0, NULL, &reader, &err), STK_E_UNSAFE);
    stki_container_warn(c, "two members named %s", "a");
    stki_container_warn(c, "and more");
    assert_int_equal(c->warning_count, 2);
    assert_string_equal(c->warnings[0], "two members named a");
    stki_container_release(c);
}

static void patterns_give_files_sorted_bytewise(void **state)
{
    stki_file_list list = {0};

    (void)state;
    for (int i = 0; i < 12; i++) { /* created in another order */
        char name[32];

        snprintf(name, sizeof name, "s%d.npy", (i * 5) % 12);
        stkt_write_file(stkt_path(name), "x", 1);
    }
    stkt_write_file(stkt_path("Z.npy"), "x", 1);
    stkt_write_file(stkt_path("s[1].npy"), "x", 1);
    assert_int_equal(stki_file_list_add(&list, stkt_path("[Zs]*[0-9Z].npy"), &err), STK_OK);
    assert_int_equal(list.count, 12);
    assert_string_equal(list.paths[0], stkt_path("s0.npy"));
    assert_string_equal(list.paths[2], stkt_path("s10.npy"));
    /* an existing file's name, not a pattern */
    assert_int_equal(stki_file_list_add(&list, stkt_path("s[1].npy"), &err), STK_OK);
    assert_string_equal(list.paths[12], stkt_path("s[1].npy"));
    /* a missing file is an error only when it is opened */
    assert_int_equal(stki_file_list_add(&list, stkt_path("no.npy"), &err), STK_OK);
    assert_int_equal(stki_file_list_add(&list, stkt_path("no*.npy"), &err), STK_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "no*.npy"));
    assert_int_equal(stki_file_list_add(&list, stkt_path("gone/*.npy"), &err), STK_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "/gone: No such file or directory"));
    assert_int_equal(list.count, 14);
    stki_file_list_fini(&list);
}

/* File i has u8 samples [length(i), 2] with the value i. */
static void write_sample(const char *name, int i, int64_t length, const char *descr, const char *fortran)
{
    char shape[32], bytes[512];

    snprintf(shape, sizeof shape, "(%d, 2)", (int)length);
    memset(bytes, i, sizeof bytes);
    stkt_write_npy(stkt_path(name), descr, fortran, shape, 64, bytes, (size_t)(2 * length * (descr[2] - '0')));
}

static stki_file_list list_of(int count, int64_t (*length)(int))
{
    stki_file_list list = {0};

    for (int i = 0; i < count; i++) {
        char name[32];

        snprintf(name, sizeof name, "f%03d.npy", i);
        write_sample(name, i, length(i), "|u1", i % 3 ? "False" : "True");
        assert_int_equal(stki_file_list_add(&list, stkt_path(name), &err), STK_OK);
    }
    return list;
}

static int64_t growing(int i)
{
    return 1 + i % 7;
}

static int64_t equal(int i)
{
    (void)i;
    return 3;
}

static void check_files(int64_t (*length)(int), bool variable)
{
    enum { COUNT = 150 }; /* more than are kept open, and enough for several threads to scan them */
    stki_file_list list = list_of(COUNT, length);
    stki_scratch scratch;
    stki_reader *reader;

    assert_int_equal(stki_files_open(&list, stki_container_open, &(stki_reader_opts){0}, &reader, &err), STK_OK);
    stki_file_list_fini(&list);
    assert_int_equal(reader->count, COUNT);
    assert_int_equal(reader->variable, variable);
    assert_int_equal(reader->shape[0], variable ? 7 : 3);
    assert_int_equal(reader->max_bytes, variable ? 14 : 6);
    stki_scratch_init(&scratch);
    for (int round = 0; round < 2; round++)
        for (int k = 0; k < COUNT; k++) {
            int i = (k * 37) % COUNT;
            int64_t shape[STK_MAX_DIMS];
            stk_tensor t;

            assert_int_equal(reader->ops->shape(reader, i, shape, &err), STK_OK);
            assert_int_equal(shape[0], length(i));
            assert_int_equal(reader->ops->read(reader, i, NULL, &scratch, &t, &err), STK_OK);
            assert_int_equal(t.shape[0], length(i));
            if (length(i) > 1)
                assert_int_equal(t.strides[0], 2);
            for (int64_t b = 0; b < 2 * length(i); b++)
                assert_int_equal(((uint8_t *)t.data)[b], i);
            stki_reader_done(reader, &t);
        }
    assert_int_equal(reader->ops->read(reader, COUNT, NULL, &scratch, &(stk_tensor){0}, &err), STK_E_RANGE);
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
}

static void files_are_samples(void **state)
{
    (void)state;
    check_files(equal, false);
    check_files(growing, true);
}

static void a_file_that_differs_is_named(void **state)
{
    stki_file_list list = list_of(5, equal);
    stki_scratch scratch;
    stki_reader *reader = NULL;
    char path[STKI_RECORD_PATH];
    stk_tensor t;

    (void)state;
    write_sample("f003.npy", 3, 3, "<u2", "False");
    assert_int_equal(stki_files_open(&list, stki_container_open, &(stki_reader_opts){0}, &reader, &err), STK_OK);
    assert_non_null(strstr(reader->note, "f003.npy"));
    stki_scratch_init(&scratch);
    assert_int_equal(reader->ops->read(reader, 3, NULL, &scratch, &t, &err), STK_E_MISMATCH);
    assert_string_equal(err.file, stkt_path("f003.npy"));
    assert_int_equal(err.record, 3);
    assert_string_equal(err.found, "u16 [3, 2]");
    assert_string_equal(err.expected, "u8 [3, 2]");
    assert_non_null(strstr(err.message, "f000.npy"));
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
    write_sample("f003.npy", 3, 3, "|u1", "False");
    assert_int_equal(stki_files_open(&list, stki_container_open, &(stki_reader_opts){0}, &reader, &err), STK_OK);
    write_sample("f003.npy", 3, 4, "|u1", "False"); /* replaced since it was scanned */
    stki_scratch_init(&scratch);
    assert_int_equal(reader->ops->read(reader, 3, NULL, &scratch, &t, &err), STK_E_MISMATCH);
    assert_int_equal(err.record, 3);
    assert_int_equal(remove(stkt_path("f004.npy")), 0);
    assert_int_equal(reader->ops->read(reader, 4, NULL, &scratch, &t, &err), STK_E_NOT_FOUND);
    assert_int_equal(err.record, 4);
    assert_non_null(strstr(err.message, "f004.npy: record 4: "));
    assert_string_equal(stki_reader_path(reader, 2, path), stkt_path("f002.npy"));
    assert_string_equal(stki_reader_path(reader, 5, path), reader->path); /* record 5 does not exist */
    /* the other records are still readable */
    assert_int_equal(reader->ops->read(reader, 1, NULL, &scratch, &t, &err), STK_OK);
    stki_reader_done(reader, &t);
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
    stki_file_list_fini(&list);
}

/* Truncated and missing files: dtype, axes and largest shape are those of the readable files. */
static void files_that_cannot_be_read(void **state)
{
    static const int64_t bad[] = {0, 6, 149};

    (void)state;
    for (int varying = 0; varying < 2; varying++) {
        stki_file_list list = list_of(150, varying ? growing : equal);
        stki_scratch scratch;
        stki_reader *reader = NULL;
        int64_t shape[STK_MAX_DIMS];
        stk_tensor t;

        assert_int_equal(truncate(list.paths[0], 90), 0);
        assert_int_equal(truncate(list.paths[6], 131), 0); /* of at least 134 bytes: the header is complete */
        assert_int_equal(remove(list.paths[149]), 0);
        assert_int_equal(stki_files_open(&list, stki_container_open, &(stki_reader_opts){0}, &reader, &err), STK_OK);
        assert_int_equal(reader->count, 150);
        assert_int_equal(reader->ndim, 2);
        assert_int_equal(reader->variable, varying);
        assert_int_equal(reader->shape[0], varying ? 7 : 3); /* file 13 has length 7, as file 6 had */
        assert_non_null(strstr(reader->note, "3 of 150"));
        assert_non_null(strstr(reader->note, list.paths[0]));
        stki_scratch_init(&scratch);
        for (int i = 0; i < 3; i++) {
            const stk_status expected = i < 2 ? STK_E_TRUNCATED : STK_E_NOT_FOUND;

            assert_int_equal(reader->ops->read(reader, bad[i], NULL, &scratch, &t, &err), expected);
            assert_int_equal(err.record, bad[i]);
            assert_string_equal(err.file, list.paths[bad[i]]);
            if (varying)
                assert_int_equal(reader->ops->shape(reader, bad[i], shape, &err), expected);
        }
        for (int i = 1; i < 149; i++) {
            if (i == 6)
                continue;
            assert_int_equal(reader->ops->read(reader, i, NULL, &scratch, &t, &err), STK_OK);
            assert_int_equal(t.shape[0], varying ? growing(i) : 3);
            assert_int_equal(((uint8_t *)t.data)[0], i);
            stki_reader_done(reader, &t);
        }
        stki_scratch_fini(&scratch);
        stki_reader_destroy(reader);
        for (int i = 0; i < 150; i++)
            if (i != 149)
                assert_int_equal(truncate(list.paths[i], 90), 0);
        assert_int_equal(stki_files_open(&list, stki_container_open, &(stki_reader_opts){0}, &reader, &err),
                         STK_E_TRUNCATED);
        assert_string_equal(err.file, list.paths[0]);
        stki_file_list_fini(&list);
    }
}

static void memory_may_run_out(void **state)
{
    stki_file_list list = list_of(3, growing);
    stki_memory_stats before, after;
    stk_status status = STK_E_MEMORY;

    (void)state;
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int64_t n = 1; status != STK_OK && n < 200; n++) {
        stki_reader *reader;

        stki_memory_fail_at(n);
        status = stki_files_open(&list, stki_container_open, &(stki_reader_opts){.name = ""}, &reader, &err);
        stki_memory_fail_at(0);
        assert_true(status == STK_OK || status == STK_E_MEMORY);
        if (status == STK_OK)
            stki_reader_destroy(reader);
    }
    assert_int_equal(status, STK_OK);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(before.bytes, after.bytes);
    stki_file_list_fini(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_found_by_name),
        cmocka_unit_test(long_lists_of_members_are_shortened_in_messages),
        cmocka_unit_test(rejected_members_have_a_reason),
        cmocka_unit_test(patterns_give_files_sorted_bytewise),
        cmocka_unit_test(files_are_samples),
        cmocka_unit_test(a_file_that_differs_is_named),
        cmocka_unit_test(files_that_cannot_be_read),
        cmocka_unit_test(memory_may_run_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
