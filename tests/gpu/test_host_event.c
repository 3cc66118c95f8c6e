/* stki-threads */
/* Tests of events of the host device: waits across streams and devices, events that are recorded again or destroyed
 * while a stream waits for them, and the time between two events. Streams are blocked where order matters. */
#include "host_faults.h"
#include "host_stream.h"
#include "host_streams.h"
#include "test_random.h"

/* ---- waits ---- */

static void a_stream_waits_for_an_event_of_another_stream_and_device(void **state)
{
    (void)state;
    for (int other = 0; other < 2; other++) { /* the same device, and another one */
        stk_stream *first = stream_of(host(0)), *second = stream_of(host(other));
        stk_event *event = event_of(host(0), false);
        char a = 0, b = 0;
        stk_error err;

        hold(first);
        copy(first, &a, "a", 1);
        assert_ok(stk_event_record(event, first, &err));
        assert_ok(stk_stream_wait(second, event, &err)); /* and the caller does not wait */
        copy(second, &b, &a, 1);
        assert_status(stk_stream_synchronize(second, 5 * MS, &err), STK_E_TIMEOUT);
        let_run(first);
        finish(second);
        assert_int_equal(b, 'a');
        stk_event_destroy(event);
        stk_stream_destroy(first);
        stk_stream_destroy(second);
    }
}

static void a_stream_may_wait_for_its_own_event_and_for_done_ones(void **state)
{
    stk_stream *stream = stream_of(host(0));
    stk_event *event = event_of(host(0), false), *of_cpu = event_of(stk_device_cpu(), false);
    char a = 0;
    stk_error err;

    (void)state;
    assert_ok(stk_event_query(event, &err)); /* a new event is done */
    assert_ok(stk_stream_wait(stream, event, &err));
    hold(stream);
    copy(stream, &a, "a", 1);
    assert_ok(stk_event_record(event, stream, &err));
    assert_ok(stk_stream_wait(stream, event, &err));
    assert_ok(stk_event_record(of_cpu, NULL, &err));
    assert_ok(stk_stream_wait(stream, of_cpu, &err));
    let_run(stream);
    finish(stream);
    assert_int_equal(a, 'a');
    assert_status(stk_event_record(of_cpu, stream, &err), STK_E_BAD_DEVICE);
    assert_says("cpu");
    assert_says("host");
    stk_event_destroy(event);
    stk_event_destroy(of_cpu);
    stk_stream_destroy(stream);
}

/* When an event is recorded again, queries see the new recording, and waiters still wait for the old one. */
static void an_event_can_be_used_again_while_it_is_waited_for(void **state)
{
    stk_stream *slow = stream_of(host(0)), *other = stream_of(host(0)), *waiter = stream_of(host(0));
    stk_event *event = event_of(host(0), false);
    char a = 0, b = 0;
    stk_error err;

    (void)state;
    hold(slow);
    copy(slow, &a, "a", 1);
    assert_ok(stk_event_record(event, slow, &err));
    assert_ok(stk_stream_wait(waiter, event, &err));
    copy(waiter, &b, &a, 1);
    assert_int_equal(stk_event_query(event, &err), STK_AGAIN);
    assert_ok(stk_event_record(event, other, &err));
    assert_ok(stk_event_synchronize(event, STK_WAIT_FOREVER, &err));
    assert_int_equal(stk_stream_query(waiter, &err), STK_AGAIN);
    let_run(slow);
    finish(waiter);
    assert_int_equal(b, 'a');
    stk_event_destroy(event);
    stk_stream_destroy(slow);
    stk_stream_destroy(other);
    stk_stream_destroy(waiter);
}

static void an_event_and_its_stream_can_be_destroyed_while_waited_for(void **state)
{
    (void)state;
    for (int timing = 0; timing < 2; timing++) {
        stk_stream *first = stream_of(host(0)), *second = stream_of(host(1));
        stk_event *event = event_of(host(0), timing != 0);
        char a = 0, b = 0;
        stk_error err;

        stkt_host_set_faults(host(0), NULL, &(stkt_host_faults){.delay_ns = STKT_HOST_HOLD});
        copy(first, &a, "a", 1);
        assert_ok(stk_event_record(event, first, &err));
        assert_ok(stk_stream_wait(second, event, &err));
        copy(second, &b, &a, 1);
        stk_event_destroy(event);
        stk_stream_destroy(first);
        assert_int_equal(stk_stream_query(second, &err), STK_AGAIN);
        stkt_host_set_faults(host(0), NULL, NULL);
        finish(second);
        assert_int_equal(b, 'a');
        stk_stream_destroy(second);
    }
}

/* ---- time ---- */

static void time_stamps_mark_the_position_of_the_recording(void **state)
{
    stk_stream *stream = stream_of(host(0));
    stk_event *from = event_of(host(0), true), *to = event_of(host(0), true), *bare = event_of(host(0), false);
    char a = 0;
    int64_t ns = -1, before = stki_now_ns();
    stk_error err;

    (void)state;
    assert_status(stk_event_elapsed(from, to, &ns, &err), STK_E_BAD_ARG); /* never recorded */
    assert_status(stk_event_elapsed(from, bare, &ns, &err), STK_E_BAD_ARG);
    hold(stream);
    assert_ok(stk_event_record(from, stream, &err));
    copy(stream, &a, "a", 1);
    assert_ok(stk_event_record(to, stream, &err));
    assert_int_equal(stk_event_elapsed(from, to, &ns, &err), STK_AGAIN);
    let_run(stream);
    assert_ok(stk_event_synchronize(to, STK_WAIT_FOREVER, &err));
    assert_ok(stk_event_elapsed(from, to, &ns, &err));
    assert_in_range(ns, 0, stki_now_ns() - before);
    assert_ok(stk_event_record(from, stream, &err)); /* recorded again, so it is now the later one */
    assert_ok(stk_event_synchronize(from, STK_WAIT_FOREVER, &err));
    assert_ok(stk_event_elapsed(from, to, &ns, &err));
    assert_true(ns <= 0);
    stk_event_destroy(from);
    stk_event_destroy(to);
    stk_event_destroy(bare);
    stk_stream_destroy(stream);
}

/* Streams of two devices pass a block on: each writes it after the event of the previous one. */
enum { RELAYS = 6, CELLS = 256, ROUNDS = 40 };

struct add_job {
    int *block, expected;
};

static stk_status add_one(void *context, stk_error *err)
{
    struct add_job *job = context;

    for (int i = 0; i < CELLS; i++)
        if (job->block[i]++ != job->expected)
            return STK_E_DEVICE;
    (void)err;
    return STK_OK;
}

static void a_ring_of_streams_passes_a_block_on(void **state)
{
    static const stki_host_work work = {.run = add_one};
    stk_stream *streams[RELAYS];
    stk_event *events[RELAYS];
    static int block[CELLS];
    stk_error err;

    (void)state;
    memset(block, 0, sizeof block);
    for (int i = 0; i < RELAYS; i++) {
        streams[i] = stream_of(host(i % 2));
        events[i] = event_of(host(i % 2), i % 3 == 0);
    }
    for (int turn = 0; turn < RELAYS * ROUNDS; turn++) {
        int at = turn % RELAYS, before = (turn + RELAYS - 1) % RELAYS;
        struct add_job job = {block, turn};
        if (turn > 0)
            assert_ok(stk_stream_wait(streams[at], events[before], &err));
        assert_ok(stki_host_submit(host(at % 2), streams[at], &work, &job, sizeof job, NULL, &err));
        assert_ok(stk_event_record(events[at], streams[at], &err));
    }
    for (int i = 0; i < RELAYS; i++)
        finish(streams[i]);
    for (int i = 0; i < CELLS; i++)
        assert_int_equal(block[i], RELAYS * ROUNDS);
    for (int i = 0; i < RELAYS; i++) {
        stk_event_destroy(events[i]);
        stk_stream_destroy(streams[i]);
    }
}

static void the_time_is_that_of_the_last_recording(void **state)
{
    stk_stream *slow = stream_of(host(0)), *quick = stream_of(host(0));
    stk_event *event = event_of(host(0), true), *later = event_of(host(0), true);
    char a = 0;
    int64_t first = -1, second = -1;
    stk_error err;

    (void)state;
    hold(slow);
    copy(slow, &a, "a", 1);
    assert_ok(stk_event_record(event, slow, &err));
    assert_ok(stk_event_record(event, quick, &err));
    assert_ok(stk_event_record(later, quick, &err));
    finish(quick);
    assert_ok(stk_event_elapsed(event, later, &first, &err));
    let_run(slow); /* the first recording gets its time stamp now */
    finish(slow);
    assert_ok(stk_event_elapsed(event, later, &second, &err));
    assert_int_equal(second, first);
    stk_event_destroy(event);
    stk_event_destroy(later);
    stk_stream_destroy(slow);
    stk_stream_destroy(quick);
}

/* ---- a random program ---- */

/* Blocks are copied and filled at random in streams of two devices, ordered by events as in a careful program: a reader
 * waits for the last writer of a block, a writer for all its users. The blocks must then have the contents that the
 * same steps give one after another. */
enum { BLOCKS = 6, BLOCK_BYTES = 3000, STREAMS = 4, STEPS = 3000 };

struct program {
    stk_stream *streams[STREAMS];
    stk_event *used[BLOCKS][STREAMS]; /* after the last use of the block in that stream */
    int writer[BLOCKS];               /* the stream that wrote it last */
    char blocks[BLOCKS][BLOCK_BYTES], expected[BLOCKS][BLOCK_BYTES];
};

static void wait_for_users(struct program *p, int stream, int block, bool writes)
{
    stk_error err;

    for (int i = 0; i < STREAMS; i++)
        if (i != stream && (writes || i == p->writer[block]))
            assert_ok(stk_stream_wait(p->streams[stream], p->used[block][i], &err));
}

static void random_step(struct program *p, uint64_t *random)
{
    int stream = (int)stkt_random_in(random, 0, STREAMS - 1), from = (int)stkt_random_in(random, 0, BLOCKS - 1),
        to = (int)stkt_random_in(random, 0, BLOCKS - 1);
    int64_t at = stkt_random_in(random, 0, BLOCK_BYTES - 1), bytes = stkt_random_in(random, 0, BLOCK_BYTES - at);
    stk_device *device = stk_stream_device(p->streams[stream]);
    char value = (char)stkt_random_in(random, 1, 100);
    stk_error err;

    wait_for_users(p, stream, to, true);
    if (from != to) {
        wait_for_users(p, stream, from, false);
        copy(p->streams[stream], p->blocks[to] + at, p->blocks[from] + at, bytes);
        memcpy(p->expected[to] + at, p->expected[from] + at, (size_t)bytes);
        assert_ok(stk_event_record(p->used[from][stream], p->streams[stream], &err));
    } else {
        assert_ok(device->ops->fill(device, p->blocks[to] + at, &value, 1, bytes, p->streams[stream], &err));
        memset(p->expected[to] + at, value, (size_t)bytes);
    }
    assert_ok(stk_event_record(p->used[to][stream], p->streams[stream], &err));
    p->writer[to] = stream;
}

static void a_program_in_many_streams_equals_sequential_execution(void **state)
{
    static struct program p;
    uint64_t random = 7;
    stk_error err;

    (void)state;
    for (int i = 0; i < STREAMS; i++) {
        p.streams[i] = stream_of(host(i % 2));
        for (int b = 0; b < BLOCKS; b++)
            p.used[b][i] = event_of(host(i % 2), (b + i) % 3 == 0);
    }
    for (int step = 0; step < STEPS; step++)
        random_step(&p, &random);
    assert_ok(stk_device_synchronize(host(0), &err));
    assert_ok(stk_device_synchronize(host(1), &err));
    assert_memory_equal(p.blocks, p.expected, sizeof p.blocks);
    for (int i = 0; i < STREAMS; i++) {
        for (int b = 0; b < BLOCKS; b++)
            stk_event_destroy(p.used[b][i]);
        stk_stream_destroy(p.streams[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_waits_for_an_event_of_another_stream_and_device),
        cmocka_unit_test(a_stream_may_wait_for_its_own_event_and_for_done_ones),
        cmocka_unit_test(an_event_can_be_used_again_while_it_is_waited_for),
        cmocka_unit_test(an_event_and_its_stream_can_be_destroyed_while_waited_for),
        cmocka_unit_test(time_stamps_mark_the_position_of_the_recording),
        cmocka_unit_test(the_time_is_that_of_the_last_recording),
        cmocka_unit_test(a_ring_of_streams_passes_a_block_on),
        cmocka_unit_test(a_program_in_many_streams_equals_sequential_execution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
