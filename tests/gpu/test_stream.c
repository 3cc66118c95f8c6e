/* stki-threads */
/* Tests of streams on the host device: order within a stream and none between streams, timeouts, persistent errors,
 * forks and failing allocations. Streams are blocked where order matters, so the tests do not depend on timing. Events
 * are tested in test_host_event.c. */
#include "allocate.h"
#include "calm.h"
#include "faults.h"
#include "host_faults.h"
#include "host_stream.h"
#include "host_streams.h"
#include "thread.h"
#include <sys/wait.h>
#include <unistd.h>

/* ---- order ---- */

/* A job that records its position in the order of execution. */
struct turn {
    int *next, *at;
};

static stk_status take_turn(void *context, stk_error *err)
{
    struct turn *turn = context;

    (void)err;
    *turn->at = (*turn->next)++;
    return STK_OK;
}

static void work_is_done_in_order_while_the_queue_grows(void **state)
{
    enum { COUNT = 3000 };
    static const stki_host_work work = {.run = take_turn};
    stk_stream *stream = stream_of(host(0));
    static int turns[COUNT];
    int next = 0;
    stk_error err;

    (void)state;
    for (int round = 0; round < 3; round++) {
        int64_t place = 0, before = 0;
        next = 0;
        if (round != 1) /* queued in a blocked stream, and in a running one */
            hold(stream);
        for (int i = 0; i < COUNT; i++) {
            char job[STKI_HOST_JOB_MAX] = {0};
            struct turn turn = {&next, &turns[i]};
            /* sizes that reach the end of the ring at many offsets */
            int64_t bytes = (int64_t)sizeof turn + i * 37 % 900;
            memcpy(job, &turn, sizeof turn);
            assert_ok(stki_host_submit(host(0), stream, &work, job, bytes, &place, &err));
            assert_true(i == 0 || place == before + 1);
            before = place;
        }
        let_run(stream);
        finish(stream);
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(turns[i], i);
    }
    stk_stream_destroy(stream);
}

static void a_job_that_is_too_large_is_refused(void **state)
{
    static const stki_host_work work = {.run = take_turn};
    static char job[STKI_HOST_JOB_MAX + 1];
    stk_stream *stream = stream_of(host(0));
    stk_error err;

    (void)state;
    assert_status(stki_host_submit(host(0), stream, &work, job, sizeof job, NULL, &err), STK_E_LIMIT);
    assert_status(stki_host_submit(host(1), stream, &work, job, 16, NULL, &err), STK_E_BAD_DEVICE);
    assert_says("host:1");
    finish(stream);
    stk_stream_destroy(stream);
}

static void copies_see_earlier_copies(void **state)
{
    enum { LINKS = 200, BYTES = 1000 };
    static char chain[LINKS + 1][BYTES];
    stk_stream *stream = stream_of(host(0));

    (void)state;
    memset(chain, 0, sizeof chain);
    memset(chain[0], 42, BYTES);
    for (int i = 0; i < LINKS; i++)
        copy(stream, chain[i + 1], chain[i], BYTES);
    finish(stream);
    assert_memory_equal(chain[LINKS], chain[0], BYTES);
    stk_stream_destroy(stream);
}

static void two_streams_run_concurrently(void **state)
{
    stk_stream *slow = stream_of(host(0)), *quick = stream_of(host(0));
    stk_event *of_slow = event_of(host(0), false), *of_quick = event_of(host(0), false);
    char a = 0, b = 0;
    stk_error err;

    (void)state;
    hold(slow);
    copy(slow, &a, "a", 1);
    copy(quick, &b, "b", 1);
    assert_ok(stk_event_record(of_slow, slow, &err));
    assert_ok(stk_event_record(of_quick, quick, &err));
    assert_ok(stk_event_synchronize(of_quick, STK_WAIT_FOREVER, &err));
    assert_int_equal(b, 'b'); /* while the other one is still blocked */
    assert_int_equal(stk_event_query(of_slow, &err), STK_AGAIN);
    assert_int_equal(stk_stream_query(slow, &err), STK_AGAIN);
    assert_int_equal(stk_stream_query(quick, &err), STK_OK);
    let_run(slow);
    assert_ok(stk_event_synchronize(of_slow, STK_WAIT_FOREVER, &err));
    assert_int_equal(a, 'a');
    stk_event_destroy(of_slow);
    stk_event_destroy(of_quick);
    stk_stream_destroy(slow);
    stk_stream_destroy(quick);
}

static void without_a_stream_it_is_done_at_return(void **state)
{
    stk_device *device = host(0);
    stk_event *event = event_of(device, true), *later = event_of(device, true);
    char at[9] = {0};
    int64_t ns = -1;
    stk_error err;

    (void)state;
    assert_ok(device->ops->copy(device, at, true, "abcd", false, 4, NULL, &err));
    assert_string_equal(at, "abcd");
    assert_ok(device->ops->fill(device, at, "xy", 2, 4, NULL, &err));
    assert_string_equal(at, "xyxyxyxy");
    assert_ok(stk_event_record(event, NULL, &err));
    assert_ok(stk_event_record(later, NULL, &err));
    assert_ok(stk_event_query(event, &err));
    assert_ok(stk_event_elapsed(event, later, &ns, &err));
    assert_true(ns >= 0);
    assert_ok(stk_stream_query(NULL, &err));
    assert_ok(stk_stream_synchronize(NULL, 0, &err));
    assert_status(stk_stream_wait(NULL, event, &err), STK_E_BAD_ARG);
    stk_event_destroy(event);
    stk_event_destroy(later);
}

static void a_destroyed_stream_finishes_what_is_queued(void **state)
{
    enum { COUNT = 50 };
    stk_stream *stream = stream_of(host(0));
    char at[COUNT] = {0};
    stk_error err;

    (void)state;
    stkt_host_set_faults(host(0), NULL, &(stkt_host_faults){.delay_ns = STKT_HOST_HOLD});
    for (int i = 0; i < COUNT; i++)
        copy(stream, &at[i], "x", 1);
    stk_stream_destroy(stream);
    assert_int_equal(at[0], 0);
    stkt_host_set_faults(host(0), NULL, NULL);
    assert_ok(stk_device_synchronize(host(0), &err)); /* also waits for it */
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(at[i], 'x');
    stk_stream_destroy(NULL);
    stk_event_destroy(NULL);
}

static void synchronize_waits_only_for_streams_of_its_device(void **state)
{
    enum { STREAMS = 4 };
    stk_stream *streams[STREAMS], *elsewhere = stream_of(host(1));
    char at[STREAMS] = {0}, other = 0;
    stk_error err;

    (void)state;
    hold(elsewhere);
    copy(elsewhere, &other, "o", 1);
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = stream_of(host(0));
        copy(streams[i], &at[i], "x", 1);
    }
    assert_ok(stk_device_synchronize(host(0), &err));
    for (int i = 0; i < STREAMS; i++) {
        assert_int_equal(at[i], 'x');
        stk_stream_destroy(streams[i]);
    }
    assert_int_equal(stk_stream_query(elsewhere, &err), STK_AGAIN);
    let_run(elsewhere);
    assert_ok(stk_device_synchronize(host(1), &err));
    assert_int_equal(other, 'o');
    stk_stream_destroy(elsewhere);
}

static void a_wait_ends_at_its_timeout_and_can_be_repeated(void **state)
{
    stk_stream *stream = stream_of(host(0));
    stk_event *event = event_of(host(0), false);
    stkt_host_faults slow = {.delay_ns = 3600 * STKI_SECOND};
    char a = 0;
    stk_error err;

    (void)state;
    stkt_host_set_faults(host(0), stream, &slow);
    copy(stream, &a, "a", 1);
    assert_ok(stk_event_record(event, stream, &err));
    assert_status(stk_stream_synchronize(stream, 2 * MS, &err), STK_E_TIMEOUT);
    assert_says("not finished");
    assert_status(stk_event_synchronize(event, 0, &err), STK_E_TIMEOUT);
    assert_int_equal(a, 0);
    stkt_host_set_faults(host(0), stream, NULL); /* takes effect on the running delay */
    assert_ok(stk_event_synchronize(event, STK_WAIT_FOREVER, &err));
    assert_ok(stk_stream_synchronize(stream, 0, &err)); /* finished work counts as done, whatever the timeout */
    assert_int_equal(a, 'a');
    stk_event_destroy(event);
    stk_stream_destroy(stream);
}

static void delays_are_part_of_the_time(void **state)
{
    stk_stream *stream = stream_of(host(0));
    stk_event *from = event_of(host(0), true), *to = event_of(host(0), true);
    stkt_host_faults faults = {.delay_ns = 3 * MS};
    static char big[1 << 20];
    int64_t ns = 0;
    stk_error err;

    (void)state;
    stkt_host_set_faults(host(0), stream, &faults);
    assert_ok(stk_event_record(from, stream, &err));
    copy(stream, big, big, sizeof big);
    copy(stream, big, big, 1);
    assert_ok(stk_event_record(to, stream, &err));
    finish(stream);
    assert_ok(stk_event_elapsed(from, to, &ns, &err));
    assert_true(ns >= 6 * MS); /* two operations; time stamps do not count */
    stkt_host_set_faults(host(0), NULL, &faults);
    ns = stki_now_ns();
    assert_ok(host(0)->ops->copy(host(0), big, true, big, true, 1 << 20, NULL, &err));
    assert_true(stki_now_ns() - ns >= 3 * MS);
    stkt_host_set_faults(host(0), NULL, NULL);
    stk_event_destroy(from);
    stk_event_destroy(to);
    stk_stream_destroy(stream);
}

/* ---- errors ---- */

static void errors_persist_and_reach_waiting_callers(void **state)
{
    stkt_host_faults third = {.fail_at = 3};
    stk_stream *stream = stream_of(host(0)), *second = stream_of(host(1));
    stk_event *good = event_of(host(0), false), *bad = event_of(host(0), true);
    char a = 0, b = 0, c = 0, d = 0, e = 0;
    stk_error err;

    (void)state;
    stkt_host_set_faults(host(0), stream, &third);
    copy(stream, &a, "a", 1);
    copy(stream, &b, "b", 1);
    assert_ok(stk_event_record(good, stream, &err));
    third.delay_ns = STKT_HOST_HOLD;
    third.fail_at = 0;
    (void)stk_event_synchronize(good, STK_WAIT_FOREVER, &err);
    stkt_host_set_faults(host(0), stream, &(stkt_host_faults){.delay_ns = STKT_HOST_HOLD, .fail_at = 1});
    copy(stream, &c, "c", 1); /* this one fails */
    copy(stream, &d, "d", 1);
    assert_ok(stk_event_record(bad, stream, &err));
    assert_ok(stk_stream_wait(second, bad, &err));
    copy(second, &e, &c, 1);
    stkt_host_set_faults(host(0), stream, &(stkt_host_faults){.fail_at = 1});
    assert_status(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err), STK_E_DEVICE);
    assert_says("made to fail");
    assert_ok(stk_event_query(good, &err)); /* work before the failure is done */
    assert_status(stk_event_query(bad, &err), STK_E_DEVICE);
    assert_status(stk_stream_synchronize(second, STK_WAIT_FOREVER, &err), STK_E_DEVICE);
    assert_says("made to fail");
    assert_memory_equal(((char[]){a, b, c, d, e}), ((char[]){'a', 'b', 0, 0, 0}), 5);
    /* the error persists: for queries, new work and new recordings */
    assert_status(stk_stream_query(stream, &err), STK_E_DEVICE);
    assert_status(host(0)->ops->copy(host(0), &a, true, &b, true, 1, stream, &err), STK_E_DEVICE);
    assert_status(stk_event_record(good, stream, &err), STK_E_DEVICE);
    assert_status(stk_device_synchronize(host(0), &err), STK_E_DEVICE);
    stk_event_destroy(good);
    stk_event_destroy(bad);
    stk_stream_destroy(stream);
    stk_stream_destroy(second);
    (void)stk_device_synchronize(host(0), NULL);
    (void)stk_device_synchronize(host(1), NULL);
}

static stk_status fail_silently(void *context, stk_error *err)
{
    (void)context, (void)err;
    return STK_E_LIMIT;
}

static void failures_without_a_message_get_one(void **state)
{
    static const stki_host_work work = {.run = fail_silently};
    stk_stream *stream = stream_of(host(0));
    stk_error err;

    (void)state;
    assert_ok(stki_host_submit(host(0), stream, &work, "", 1, NULL, &err));
    assert_status(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err), STK_E_LIMIT);
    assert_says("host");
    stk_stream_destroy(stream);
    (void)stk_device_synchronize(host(0), NULL);
}

static void the_nth_operation_of_a_device_fails_in_any_stream(void **state)
{
    stk_stream *one = stream_of(host(2)), *two = stream_of(host(2));
    char a = 0;
    stk_error err;

    (void)state;
    stkt_host_set_faults(host(2), NULL, &(stkt_host_faults){.fail_at = 4});
    copy(one, &a, "a", 1);
    finish(one);
    copy(two, &a, "b", 1);
    finish(two);
    assert_ok(host(2)->ops->copy(host(2), &a, true, "c", false, 1, NULL, &err));
    assert_status(host(2)->ops->copy(host(2), &a, true, "d", false, 1, NULL, &err), STK_E_DEVICE);
    assert_ok(host(2)->ops->copy(host(2), &a, true, "e", false, 1, NULL, &err)); /* the error was reported once */
    assert_int_equal(a, 'e');
    stkt_host_set_faults(host(2), NULL, &(stkt_host_faults){.fail_at = 1});
    copy(two, &a, "f", 1);
    assert_status(stk_stream_synchronize(two, STK_WAIT_FOREVER, &err), STK_E_DEVICE);
    finish(one);
    assert_int_equal(a, 'e');
    /* even if nothing follows the failed operation */
    assert_status(stk_device_synchronize(host(2), &err), STK_E_DEVICE);
    assert_says("made to fail");
    stkt_host_set_faults(host(2), NULL, NULL);
    stk_stream_destroy(one);
    stk_stream_destroy(two);
    (void)stk_device_synchronize(host(2), NULL);
}

/* ---- memory ---- */

static int64_t host_allocations(void)
{
    stki_memory_stats stats;

    stki_memory_read(STKI_MEM_HOST, &stats);
    return stats.total_allocations;
}

static void nothing_is_allocated_once_it_is_warm(void **state)
{
    stk_stream *stream = stream_of(host(0)), *other = stream_of(host(0));
    stk_event *event = event_of(host(0), true);
    char at[64] = {0};
    int64_t before = 0;
    stk_error err;

    (void)state;
    for (int round = 0; round < 20; round++) {
        if (round == 1)
            before = host_allocations();
        hold(stream);
        for (int i = 0; i < 100; i++) {
            copy(stream, at, "abc", 3);
            assert_ok(host(0)->ops->fill(host(0), at, "z", 1, 64, stream, &err));
            assert_ok(stk_event_record(event, stream, &err));
            assert_ok(stk_stream_wait(other, event, &err));
        }
        let_run(stream);
        finish(other);
    }
    assert_int_equal(host_allocations(), before);
    stk_event_destroy(event);
    stk_stream_destroy(stream);
    stk_stream_destroy(other);
}

static void every_failing_allocation_is_an_error_and_nothing_else(void **state)
{
    int failures = 0;
    bool more = true;

    (void)state;
    for (int64_t n = 1; more; n++) {
        stk_stream *stream = NULL;
        stk_event *event = NULL;
        char at[4] = {0};
        stk_status status;
        stk_error err = {0};

        stki_memory_fail_at(n);
        status = stk_stream_create(host(0), &stream, &err);
        status = status ? status : stk_event_create(host(0), true, &event, &err);
        status = status ? status : host(0)->ops->copy(host(0), at, true, "abc", false, 3, stream, &err);
        status = status ? status : stk_event_record(event, stream, &err);
        status = status ? status : stk_event_synchronize(event, STK_WAIT_FOREVER, &err);
        stki_memory_fail_at(0);
        more = status != STK_OK;
        if (more) {
            assert_int_equal(status, STK_E_MEMORY);
            assert_true(err.message[0] != 0);
            failures++;
        } else {
            assert_string_equal(at, "abc");
        }
        if (stream)
            finish(stream); /* a failure in the caller is not an error of the stream */
        stk_event_destroy(event);
        stk_stream_destroy(stream);
    }
    assert_true(failures >= 4); /* stream, thread, event, queue */
}

/* ---- forks ---- */

/* In the child. Returns 0, or the line of the failure. */
static int use_in_child(stk_stream *stream, stk_event *event)
{
    stk_device *device = host(0);
    stk_stream *fresh = NULL;
    char a = 0;

    if (stk_stream_query(stream, NULL) != STK_E_FORKED)
        return __LINE__;
    if (stk_stream_synchronize(stream, STK_WAIT_FOREVER, NULL) != STK_E_FORKED)
        return __LINE__;
    if (device->ops->copy(device, &a, true, "a", false, 1, stream, NULL) != STK_E_FORKED)
        return __LINE__;
    if (stk_event_query(event, NULL) != STK_E_FORKED || stk_event_record(event, NULL, NULL) != STK_E_FORKED)
        return __LINE__;
    if (stk_device_synchronize(device, NULL) != STK_OK)
        return __LINE__;
#if defined(__SANITIZE_THREAD__) /* does not start threads in a child of a process with threads */
    return 0;
#endif
    if (stk_stream_create(device, &fresh, NULL) != STK_OK)
        return __LINE__;
    if (stk_stream_wait(fresh, event, NULL) != STK_E_FORKED)
        return __LINE__;
    if (device->ops->copy(device, &a, true, "b", false, 1, fresh, NULL) != STK_OK)
        return __LINE__;
    if (stk_stream_synchronize(fresh, STK_WAIT_FOREVER, NULL) != STK_OK || a != 'b')
        return __LINE__;
    stk_event_destroy(event);
    stk_stream_destroy(stream);
    stk_stream_destroy(fresh);
    return stk_device_synchronize(device, NULL) == STK_OK ? 0 : __LINE__;
}

static void a_child_process_has_only_its_own_streams(void **state)
{
    stk_stream *stream = stream_of(host(0));
    stk_event *event = event_of(host(0), false);
    char a = 0;
    int how = 0;
    pid_t child;
    stk_error err;

    (void)state;
    hold(stream);
    copy(stream, &a, "a", 1);
    assert_ok(stk_event_record(event, stream, &err));
    stkt_wait_for_calm();
    child = fork();
    if (child == 0) {
        alarm(60);
        _exit(use_in_child(stream, event) != 0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    let_run(stream);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    finish(stream);
    assert_int_equal(a, 'a');
    stk_event_destroy(event);
    stk_stream_destroy(stream);
}

/* ---- many threads ---- */

/* Many threads share a stream and an event, create and destroy their own streams, and synchronize the device. */
struct crowd {
    stk_stream *shared;
    stk_event *event;
    char cells[64];
    int number;
    stk_status status;
    stki_thread *thread;
};

static void crowd_main(void *context)
{
    struct crowd *one = context;
    stk_device *device = stk_stream_device(one->shared);

    for (int i = 0; i < 50 && !one->status; i++) {
        stk_stream *mine = NULL;
        char value = (char)(i + 1);
        one->status = stk_stream_create(device, &mine, NULL);
        if (one->status)
            return;
        one->status = device->ops->fill(device, one->cells, &value, 1, 64, one->shared, NULL);
        if (!one->status)
            one->status = stk_event_record(one->event, one->shared, NULL);
        if (!one->status)
            one->status = stk_stream_wait(mine, one->event, NULL);
        if (!one->status)
            one->status = device->ops->copy(device, one->cells, true, one->cells + 32, true, 32, mine, NULL);
        if (!one->status && i % 4 == one->number % 4)
            one->status = stk_device_synchronize(device, NULL);
        if (!one->status)
            one->status = stk_stream_synchronize(mine, STK_WAIT_FOREVER, NULL);
        stk_stream_destroy(mine);
    }
}

static void many_threads_may_use_one_stream_and_one_event(void **state)
{
    enum { CROWD = 4 };
    static struct crowd crowd[CROWD];
    stk_stream *shared = stream_of(host(0));
    stk_event *event = event_of(host(0), true);
    stk_error err;

    (void)state;
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = (struct crowd){.shared = shared, .event = event, .number = i};
        assert_ok(stki_thread_start(&crowd[i].thread, "crowd", crowd_main, &crowd[i], &err));
    }
    for (int i = 0; i < CROWD; i++) {
        assert_true(stki_thread_join(crowd[i].thread, INT64_MAX));
        assert_int_equal(crowd[i].status, STK_OK);
        assert_int_equal(crowd[i].cells[0], 50);
    }
    stk_event_destroy(event);
    stk_stream_destroy(shared);
}

/* ---- the current stream ---- */

static void the_current_stream_is_the_threads_and_the_devices(void **state)
{
    stk_stream *a = stream_of(host(0)), *b = stream_of(host(1)), *wrapped = NULL;
    stk_error err;

    (void)state;
    assert_status(stk_stream_wrap(host(0), &a, &wrapped, &err), STK_E_UNSUPPORTED);
    assert_says("host");
    assert_null(wrapped);
    assert_null(stk_stream_current(host(0)));
    assert_null(stk_stream_set_current(host(0), a));
    assert_null(stk_stream_set_current(host(1), b));
    assert_ptr_equal(stk_stream_current(host(0)), a);
    assert_ptr_equal(stk_stream_current(host(1)), b);
    assert_null(stk_stream_current(NULL));
    assert_ptr_equal(stk_stream_set_current(host(0), NULL), a);
    assert_null(stk_stream_current(host(0)));
    stk_stream_destroy(b);
    assert_null(stk_stream_current(host(1)));
    stk_stream_destroy(a);
    assert_ptr_equal(stk_stream_device(NULL), stk_device_cpu());
    assert_null(stk_stream_native(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_done_in_order_while_the_queue_grows),
        cmocka_unit_test(a_job_that_is_too_large_is_refused),
        cmocka_unit_test(copies_see_earlier_copies),
        cmocka_unit_test(two_streams_run_concurrently),
        cmocka_unit_test(without_a_stream_it_is_done_at_return),
        cmocka_unit_test(a_destroyed_stream_finishes_what_is_queued),
        cmocka_unit_test(synchronize_waits_only_for_streams_of_its_device),
        cmocka_unit_test(a_wait_ends_at_its_timeout_and_can_be_repeated),
        cmocka_unit_test(delays_are_part_of_the_time),
        cmocka_unit_test(errors_persist_and_reach_waiting_callers),
        cmocka_unit_test(failures_without_a_message_get_one),
        cmocka_unit_test(the_nth_operation_of_a_device_fails_in_any_stream),
        cmocka_unit_test(nothing_is_allocated_once_it_is_warm),
        cmocka_unit_test(every_failing_allocation_is_an_error_and_nothing_else),
        cmocka_unit_test(a_child_process_has_only_its_own_streams),
        cmocka_unit_test(many_threads_may_use_one_stream_and_one_event),
        cmocka_unit_test(the_current_stream_is_the_threads_and_the_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
