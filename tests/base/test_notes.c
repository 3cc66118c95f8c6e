/* stki-threads */
/* Tests of notes: each one is kept once, can be read while other threads add more, and those beyond the limit are
 * counted. */
#include "allocate.h"
#include "faults.h"
#include "notes.h"
#include "stk_test.h"
#include "thread.h"

static void each_text_once(void **state)
{
    stki_notes notes = {0};

    (void)state;
    assert_int_equal(stki_notes_count(&notes), 0);
    assert_null(stki_notes_get(&notes, 0));
    for (int i = 0; i < 6; i++)
        stki_notes_add(&notes, "file %d: read, not mapped", i % 2);
    assert_int_equal(stki_notes_count(&notes), 2);
    assert_string_equal(stki_notes_get(&notes, 0), "file 0: read, not mapped");
    assert_string_equal(stki_notes_get(&notes, 1), "file 1: read, not mapped");
    assert_null(stki_notes_get(&notes, -1));
    assert_null(stki_notes_get(&notes, 2));
    stki_notes_fini(&notes);
}

/* Strings that were returned stay valid and unchanged. */
static void many(void **state)
{
    stki_notes notes = {0};
    const char *before;

    (void)state;
    for (int i = 0; i < STKI_NOTES + 5; i++)
        stki_notes_add(&notes, "note %d", i);
    assert_int_equal(stki_notes_count(&notes), STKI_NOTES + 1);
    assert_string_equal(stki_notes_get(&notes, STKI_NOTES - 1), "note 31");
    before = stki_notes_get(&notes, STKI_NOTES);
    assert_string_equal(before, "5 more notes");
    assert_ptr_equal(stki_notes_get(&notes, STKI_NOTES), before);
    stki_notes_add(&notes, "note %d", 7); /* a duplicate */
    assert_ptr_equal(stki_notes_get(&notes, STKI_NOTES), before);
    stki_notes_add(&notes, "note");
    assert_string_equal(stki_notes_get(&notes, STKI_NOTES), "6 more notes");
    assert_string_equal(before, "5 more notes");
    assert_null(stki_notes_get(&notes, STKI_NOTES + 1));
    stki_notes_fini(&notes);
}

static void without_memory(void **state)
{
    stki_notes notes = {0};

    (void)state;
    stki_memory_fail_at(1);
    stki_notes_add(&notes, "lost");
    stki_memory_fail_at(0);
    assert_int_equal(stki_notes_count(&notes), 1);
    assert_string_equal(stki_notes_get(&notes, 0), "1 more note");
    stki_notes_add(&notes, "kept");
    assert_int_equal(stki_notes_count(&notes), 2);
    assert_string_equal(stki_notes_get(&notes, 0), "kept");
    assert_string_equal(stki_notes_get(&notes, 1), "1 more note");
    stki_notes_fini(&notes);
}

enum { ADDED = 2000 };

static void ask(void *context)
{
    stki_notes *notes = context;
    int count = 0;

    while (count < STKI_NOTES + 1) {
        const int now = stki_notes_count(notes);

        assert_true(now >= count);
        count = now;
        for (int i = 0; i < count; i++)
            assert_true(strncmp(stki_notes_get(notes, i), i < STKI_NOTES ? "note " : "", i < STKI_NOTES ? 5 : 0) == 0);
    }
}

static void while_other_threads_read(void **state)
{
    stki_notes notes = {0};
    stki_thread *threads[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(stki_thread_start(&threads[i], "ask", ask, &notes, NULL), STK_OK);
    for (int i = 0; i < ADDED; i++)
        stki_notes_add(&notes, "note %d", i);
    for (int i = 0; i < 3; i++)
        assert_true(stki_thread_join(threads[i], INT64_MAX));
    assert_string_equal(stki_notes_get(&notes, STKI_NOTES), "1968 more notes");
    stki_notes_fini(&notes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_text_once),
        cmocka_unit_test(many),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(while_other_threads_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
