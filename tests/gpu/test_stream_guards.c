/* Tests of guards for memory that streams use, on a device whose streams advance on request and whose events can fail.
 * Adding a guard never blocks: if the event for a stream cannot be created or recorded, or its handle was destroyed,
 * the guard keeps the stream and queries it, and the memory is not reused before its work is done. */
#include "fake_device.h"
#include "faults.h"
#include "stk_test.h"
#include "stream.h"
#include "stream_guards.h"

static fake_device fake;
static stk_error err;

static int setup(void **state)
{
    (void)state;
    fake_init(&fake, "fake");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(stki_counted(&fake.events), 0);
    fake_fini(&fake);
    return 0;
}

static stk_stream *new_stream(void)
{
    stk_stream *stream;

    assert_ok(stk_stream_create(&fake.base, &stream, &err));
    return stream;
}

static bool is_clear(stki_stream_guards *guards)
{
    stk_status status = stki_guards_wait(guards, 0, &err);

    assert_true(status == STK_OK || status == STK_E_TIMEOUT);
    return status == STK_OK;
}

static void test_events(void **state)
{
    stk_stream *a = new_stream(), *b = new_stream();
    stki_stream_guards guards = {0};

    (void)state;
    stki_guards_init(&guards);
    fake_queue(a, 1);
    fake_queue(b, 1);
    assert_ok(stki_guards_add(&guards, a, &err));
    assert_ok(stki_guards_add(&guards, b, &err));
    fake_queue(b, 1); /* not guarded */
    assert_ok(stki_guards_add(&guards, a, &err));
    assert_int_equal(guards.count, 2);
    stki_count_set(&fake_engine_of(b)->done, 1);
    assert_false(is_clear(&guards));
    fake_finish(a);
    assert_true(is_clear(&guards));
    stki_guards_clear(&guards);
    assert_false(stki_guards_any(&guards));
    stki_guards_fini(&guards);
    stk_stream_destroy(a);
    stk_stream_destroy(b);
}

/* The stream has endless work, so waiting for it would not return. */
static void test_no_events(void **state)
{
    stk_stream *stream = new_stream();
    stki_stream_guards guards = {0};

    (void)state;
    stki_guards_init(&guards);
    fake_queue(stream, 1);
    stki_count_set(&fake.fail_events, 1);
    assert_ok(stki_guards_add(&guards, stream, &err));
    assert_false(is_clear(&guards));
    stki_count_set(&fake.fail_records, 1);
    /* returns an error, but the memory is guarded nevertheless */
    assert_status(stki_guards_add(&guards, stream, &err), STK_E_DEVICE);
    assert_false(is_clear(&guards));
    assert_ok(stki_guards_add(&guards, stream, &err)); /* this one has an event again */
    fake_queue(stream, 1);
    stki_count_set(&fake_engine_of(stream)->done, 1);
    assert_true(is_clear(&guards));
    stki_count_set(&fake.fail_records, 1);
    assert_status(stki_guards_add(&guards, stream, &err), STK_E_DEVICE);
    stk_stream_destroy(stream); /* the guard keeps a reference to it */
    assert_false(is_clear(&guards));
    fake_finish(stream);
    assert_true(is_clear(&guards));
    stki_guards_fini(&guards);
}

/* After the handle of a wrapped stream was destroyed, only the event after its last work is queried. */
static void test_destroyed_handle(void **state)
{
    (void)state;
    for (int unrecorded = 0; unrecorded < 2; unrecorded++) {
        stki_stream_guards guards = {0};
        fake_engine *engine;
        stk_stream *stream;

        stki_guards_init(&guards);
        assert_ok(stk_stream_wrap(&fake.base, NULL, &stream, &err));
        engine = fake_engine_of(stream);
        fake_queue(stream, 1);
        stki_stream_retain(stream); /* a deleter's reference */
        if (unrecorded) {
            stki_count_set(&fake.fail_records, 1);
            assert_status(stki_guards_add(&guards, stream, &err), STK_E_DEVICE);
        }
        stk_stream_destroy(stream);
        stki_count(&engine->queued, 1); /* the caller's work continues after it */
        assert_ok(stki_guards_add(&guards, stream, &err));
        stki_stream_release(stream);
        assert_false(is_clear(&guards));
        stki_count_set(&engine->done, 1);
        assert_true(is_clear(&guards));
        stki_guards_fini(&guards);
    }
}

/* There is no memory for the guard, and the stream does not finish during the wait: the memory is never reused. */
static void test_stuck(void **state)
{
    stk_stream *stream = new_stream(), *other = new_stream();
    const int64_t patience = stki_counted(&stki_stream_patience_ns);
    stki_stream_guards guards = {0};

    (void)state;
    stki_guards_init(&guards);
    fake_queue(stream, 1);
    stki_count_set(&stki_stream_patience_ns, 1000000);
    stki_memory_fail_at(1);
    assert_status(stki_guards_add(&guards, stream, &err), STK_E_TIMEOUT);
    stki_memory_fail_at(0);
    assert_true(stki_guards_any(&guards));
    fake_finish(stream);
    assert_false(is_clear(&guards));
    assert_status(stki_guards_wait_in(&guards, other, &err), STK_E_TIMEOUT);
    stki_count_set(&stki_stream_patience_ns, patience);
    stki_guards_fini(&guards);
    stk_stream_destroy(stream);
    stk_stream_destroy(other);
}

/* The handle of a wrapped stream is destroyed, no event can be created after its last work, and the work does not
 * finish during the wait. The stream may not exist any more, so it is not queried again: its memory is never reused. */
static void test_lost(void **state)
{
    const int64_t patience = stki_counted(&stki_stream_patience_ns);
    stki_stream_guards guards = {0};
    fake_engine *engine;
    stk_stream *stream;

    (void)state;
    stki_guards_init(&guards);
    assert_ok(stk_stream_wrap(&fake.base, NULL, &stream, &err));
    engine = fake_engine_of(stream);
    fake_queue(stream, 1);
    stki_stream_retain(stream); /* a deleter's reference */
    stki_count_set(&stki_stream_patience_ns, 1000000);
    stki_count_set(&fake.fail_events, 1);
    stk_stream_destroy(stream);
    stki_count_set(&stki_stream_patience_ns, patience);
    assert_ok(stki_guards_add(&guards, stream, &err));
    stki_stream_release(stream);
    assert_false(is_clear(&guards));
    fake_finish_engine(engine);
    assert_false(is_clear(&guards));
    stki_guards_fini(&guards);
}

/* A failed stream no longer accesses memory. */
static void test_failed_stream(void **state)
{
    stk_stream *stream = new_stream();
    stki_stream_guards guards = {0};

    (void)state;
    stki_guards_init(&guards);
    fake_queue(stream, 1);
    assert_ok(stki_guards_add(&guards, stream, &err));
    assert_false(is_clear(&guards));
    fake_engine_of(stream)->broken = true;
    assert_true(is_clear(&guards));
    stki_guards_fini(&guards);
    stk_stream_destroy(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_events, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_events, setup, teardown),
        cmocka_unit_test_setup_teardown(test_destroyed_handle, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stuck, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failed_stream, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
