/* stki-threads */
/* What every device with streams must do, on the device named by STOKER_TEST_DEVICE (host, cuda:0, …; default: host):
 * memory, copies, fills, order within and between streams, reused pinned memory (row G01), a consumer with its own
 * stream (G02), reuse after a slow reader (G03), and operations and converted samples compared with the CPU. The only
 * assertions about time are that streams are busy for at least the requested time. */
#include "allocate.h"
#include "convert.h"
#include "cuda_provider.h"
#include "device_hold.h"
#include "faults.h"
#include "leak_check.h"
#include "test_random.h"
#include "thread.h"
#include <inttypes.h>
#include <math.h>
#include <stoker/stoker.h>

static stk_error err;
static stk_device *device;

static stk_stream *new_stream(void)
{
    stk_stream *stream = NULL;

    assert_ok(stk_stream_create(device, &stream, &err));
    return stream;
}

static stk_event *new_event(bool timing)
{
    stk_event *event = NULL;

    assert_ok(stk_event_create(device, timing, &event, &err));
    return event;
}

static void *on_device(int64_t bytes)
{
    void *block = NULL;

    assert_ok(device->ops->alloc(device, bytes, &block, &err));
    return block;
}

static unsigned char *pinned(int64_t bytes)
{
    void *block = NULL;

    assert_ok(device->ops->alloc_pinned(device, bytes, &block, &err));
    return block;
}

static void passed(stk_stream *stream)
{
    assert_ok(stk_stream_synchronize(stream, STKT_A_WHILE, &err));
}

static void random_bytes(void *to, int64_t bytes, uint64_t seed)
{
    for (int64_t i = 0; i < bytes; i++)
        ((unsigned char *)to)[i] = (unsigned char)stkt_random(&seed);
}

/* ---- properties ---- */

static void properties_are_reported(void **state)
{
    stk_device_properties properties = {.struct_size = sizeof properties};
    stk_device *again;

    (void)state;
    assert_ok(stk_device_get_properties(device, &properties, &err));
    assert_string_not_equal(properties.model, "");
    assert_true(properties.total_bytes > 0);
    assert_in_range(properties.free_bytes, 1, properties.total_bytes);
    assert_true(properties.processors > 0);
    assert_true(properties.pins);
    if (stk_device_get_kind(device) == STK_DEVICE_CUDA) {
        assert_true(properties.compute_major * 10 + properties.compute_minor >= 75);
        assert_true(properties.copy_engines > 0);
        assert_true(properties.driver_version >= properties.runtime_version / 1000 * 1000);
        assert_string_not_equal(properties.bus, "");
        assert_true(stk_cuda_device_count(&err) > stk_device_index(device));
    }
    printf("%s: %s, %.1f GB, compute capability %d.%d\n", stk_device_name(device), properties.model,
           (double)properties.total_bytes * 1e-9, properties.compute_major, properties.compute_minor);
    assert_ok(stk_device_find(stk_device_name(device), &again, &err));
    assert_ptr_equal(again, device);
    assert_false(device->host_memory);
    assert_ok(stk_device_synchronize(device, &err));
}

/* Row G05: nothing is created on GPUs that were not requested. */
static void other_gpus_are_left_alone(void **state)
{
    int count = stk_cuda_device_count(NULL);

    (void)state;
    if (stk_device_get_kind(device) != STK_DEVICE_CUDA || count < 2) {
        printf("not run: needs two GPUs\n");
        skip();
    }
    for (int i = 0; i < count; i++)
        assert_int_equal(stki_cuda_context_active(i), i == stk_device_index(device));
}

static void too_large_allocations_are_rejected_with_sizes(void **state)
{
    stki_memory_stats before, after;
    void *block = NULL;

    (void)state;
    stki_counters_read(&device->memory, &before);
    if (stk_device_get_kind(device) == STK_DEVICE_HOST)
        stki_memory_fail_at(1); /* sanitizers end a program that requests that much */
    assert_status(device->ops->alloc(device, INT64_C(1) << 46, &block, &err), STK_E_MEMORY);
    stki_memory_fail_at(0);
    assert_says("70368744177664");
    assert_says(stk_device_name(device));
    stki_counters_read(&device->memory, &after);
    assert_int_equal(after.bytes, before.bytes);
    block = on_device(100); /* the device still works */
    device->ops->free(device, block, 100);
}

/* ---- copies and fills ---- */

enum { ROOM = 1 << 20 };

/* Copies from `from` to `to` through `via` on the device, at odd offsets. The bytes around the copy must not change. */
static void round_trip(unsigned char *from, unsigned char *to, unsigned char *via, int64_t bytes, int64_t offset,
                       stk_stream *stream)
{
    int64_t back = (offset * 7) % 16;

    memset(to, 0xEE, (size_t)(bytes + 48));
    assert_ok(device->ops->copy(device, via + offset, true, from + back, false, bytes, stream, &err));
    assert_ok(device->ops->copy(device, via + ROOM + back, true, via + offset, true, bytes, stream, &err));
    assert_ok(device->ops->copy(device, to + 16 + offset, false, via + ROOM + back, true, bytes, stream, &err));
    if (stream)
        passed(stream);
    for (int64_t i = 0; i < 16 + offset; i++)
        assert_int_equal(to[i], 0xEE);
    assert_memory_equal(to + 16 + offset, from + back, (size_t)bytes);
    for (int64_t i = 16 + offset + bytes; i < bytes + 48; i++)
        assert_int_equal(to[i], 0xEE);
}

static void copies_in_every_direction(void **state)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 5, 15, 16, 17, 255, 4096, 4097, 65537, ROOM - 64};
    unsigned char *via = on_device(2 * ROOM), *locked[2] = {pinned(ROOM + 64), pinned(ROOM + 64)};
    unsigned char *plain[2] = {malloc(ROOM + 64), malloc(ROOM + 64)};
    stk_stream *stream = new_stream();

    (void)state;
    random_bytes(locked[0], ROOM, 1);
    random_bytes(plain[0], ROOM, 2);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int64_t offset = 0; offset<16; offset += sizes[i]> 10000 ? 5 : 1) {
            round_trip(locked[0], locked[1], via, sizes[i], offset, stream);
            round_trip(plain[0], plain[1], via, sizes[i], offset, stream);
            round_trip(offset & 1 ? plain[0] : locked[0], offset & 1 ? locked[1] : plain[1], via, sizes[i], offset,
                       NULL);
        }
    stk_stream_destroy(stream);
    for (int i = 0; i < 2; i++) {
        device->ops->free_pinned(device, locked[i], ROOM + 64);
        free(plain[i]);
    }
    device->ops->free(device, via, 2 * ROOM);
}

static void fills_write_only_their_range(void **state)
{
    static const int64_t widths[] = {1, 2, 4, 8, 16}, counts[] = {0, 1, 2, 3, 7, 16, 33, 255, 1000, 4099};
    enum { SPACE = 16 * 4099 + 64 };
    unsigned char *block = on_device(SPACE), *back = pinned(SPACE), pattern[16];
    stk_stream *stream = new_stream();

    (void)state;
    random_bytes(pattern, sizeof pattern, 3);
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (int64_t offset = 0; offset < 32; offset += widths[w]) {
                int64_t bytes = widths[w] * counts[c];

                assert_ok(device->ops->fill(device, block, "\xEE", 1, SPACE, stream, &err));
                assert_ok(device->ops->fill(device, block + offset, pattern, widths[w], counts[c], stream, &err));
                assert_ok(device->ops->copy(device, back, false, block, true, SPACE, stream, &err));
                passed(stream);
                for (int64_t i = 0; i < SPACE; i++) {
                    int expected = i < offset || i >= offset + bytes ? 0xEE : pattern[(i - offset) % widths[w]];
                    if (back[i] != expected)
                        fail_msg("%" PRId64 " times %" PRId64 " bytes at %" PRId64 ": byte %" PRId64 " is %d, not %d",
                                 counts[c], widths[w], offset, i, back[i], expected);
                }
                if (counts[c] > 100 && offset >= widths[w] * 3)
                    break;
            }
    stk_stream_destroy(stream);
    device->ops->free_pinned(device, back, SPACE);
    device->ops->free(device, block, SPACE);
}

/* ---- streams and events ---- */

static void a_blocked_stream_does_not_block_others(void **state)
{
    stk_stream *slow = new_stream(), *quick = new_stream();
    unsigned char *host = pinned(32), *block = on_device(32);
    stkt_hold hold = stkt_hold_stream(slow);

    (void)state;
    memset(host, 5, 16);
    memset(host + 16, 9, 16);
    assert_ok(device->ops->copy(device, block, true, host, false, 16, slow, &err));
    assert_ok(device->ops->copy(device, host, false, block, true, 16, slow, &err));
    assert_int_equal(stk_stream_query(slow, &err), STK_AGAIN);
    assert_status(stk_stream_synchronize(slow, 2000000, &err), STK_E_TIMEOUT);

    assert_ok(device->ops->copy(device, block + 16, true, host + 16, false, 16, quick, &err));
    passed(quick);
    assert_ok(stk_stream_query(quick, &err));
    assert_int_equal(stk_stream_query(slow, &err), STK_AGAIN);
    stkt_let_go(&hold);
    passed(slow);
    assert_ok(stk_stream_query(slow, &err));
    stk_stream_destroy(slow);
    stk_stream_destroy(quick);
    device->ops->free(device, block, 32);
    device->ops->free_pinned(device, host, 32);
}

/* Row G02: the consumer's stream starts after the copy has ended, although the host did not wait. */
static void a_consumer_waits_for_the_copy(void **state)
{
    enum { BYTES = 8 << 20 };
    unsigned char *host = pinned(BYTES), *slot = on_device(BYTES), *used = on_device(BYTES);
    stk_stream *copies = new_stream(), *consumer = new_stream();
    stk_event *copied = new_event(false);

    (void)state;
    assert_ok(stk_event_query(copied, &err)); /* a new event is done */
    for (int round = 1; round <= 5; round++) {
        stkt_hold hold;

        memset(host, round, BYTES);
        assert_ok(device->ops->fill(device, slot, "\0", 1, BYTES, NULL, &err));
        hold = stkt_hold_stream(copies);
        assert_ok(device->ops->copy(device, slot, true, host, false, BYTES, copies, &err));
        assert_ok(stk_event_record(copied, copies, &err));
        assert_int_equal(stk_event_query(copied, &err), STK_AGAIN);
        assert_ok(stk_stream_wait(consumer, copied, &err));
        assert_ok(device->ops->copy(device, used, true, slot, true, BYTES, consumer, &err));
        assert_int_equal(stk_stream_query(consumer, &err), STK_AGAIN);
        assert_status(stk_event_synchronize(copied, 1000000, &err), STK_E_TIMEOUT);
        stkt_let_go(&hold);
        assert_ok(stk_event_synchronize(copied, STKT_A_WHILE, &err));
        passed(consumer);
        memset(host, 0, BYTES);
        assert_ok(device->ops->copy(device, host, false, used, true, BYTES, NULL, &err));
        for (int64_t i = 0; i < BYTES; i++)
            if (host[i] != round)
                fail_msg("round %d: byte %" PRId64 " is %d", round, i, host[i]);
    }
    stk_event_destroy(copied);
    stk_stream_destroy(copies);
    stk_stream_destroy(consumer);
    device->ops->free(device, slot, BYTES);
    device->ops->free(device, used, BYTES);
    device->ops->free_pinned(device, host, BYTES);
}

/* Row G01: two pinned slots are filled again as soon as the event after their copy has passed, while the copy stream is
 * slowed down. No byte of 1000 batches may belong to another batch. */
static void pinned_slots_are_used_again_after_their_copy(void **state)
{
    enum { BATCHES = 1000, BYTES = 64 << 10, KEPT = 64 };
    unsigned char *slots[2] = {pinned(BYTES), pinned(BYTES)}, *batch = on_device(BYTES);
    unsigned char *kept = on_device(BATCHES * KEPT), *back = pinned(BATCHES * KEPT);
    stk_event *copied[2] = {new_event(false), new_event(false)};
    stk_stream *stream = new_stream();

    (void)state;
    for (int i = 0; i < BATCHES; i++) {
        int64_t at = (int64_t)i * 1031 % (BYTES - KEPT);

        assert_ok(stk_event_synchronize(copied[i % 2], STKT_A_WHILE, &err));
        memset(slots[i % 2], i % 251, BYTES);
        if (i % 10 == 0)
            assert_ok(stk_stream_spin(stream, 100000, &err));
        assert_ok(device->ops->copy(device, batch, true, slots[i % 2], false, BYTES, stream, &err));
        assert_ok(stk_event_record(copied[i % 2], stream, &err));
        assert_ok(device->ops->copy(device, kept + i * KEPT, true, batch + at, true, KEPT, stream, &err));
    }
    assert_ok(device->ops->copy(device, back, false, kept, true, BATCHES * KEPT, stream, &err));
    passed(stream);
    for (int64_t i = 0; i < BATCHES * KEPT; i++)
        if (back[i] != i / KEPT % 251)
            fail_msg("batch %" PRId64 " has a byte of batch %d", i / KEPT, back[i]);
    for (int i = 0; i < 2; i++) {
        stk_event_destroy(copied[i]);
        device->ops->free_pinned(device, slots[i], BYTES);
    }
    stk_stream_destroy(stream);
    device->ops->free_pinned(device, back, BATCHES * KEPT);
    device->ops->free(device, kept, BATCHES * KEPT);
    device->ops->free(device, batch, BYTES);
}

/* Row G03: the slot is released while a slow reader still has to read it; the next copy into it waits for the event of
 * the release. */
static void a_slot_is_not_overwritten_under_a_slow_reader(void **state)
{
    enum { BYTES = 1 << 20 };
    unsigned char *host = pinned(2 * BYTES), *slot = on_device(BYTES), *seen = on_device(BYTES);
    stk_stream *copies = new_stream(), *reader = new_stream();
    stk_event *given_back = new_event(false);
    stkt_hold hold;

    (void)state;
    memset(host, 1, BYTES);
    memset(host + BYTES, 2, BYTES);
    assert_ok(device->ops->copy(device, slot, true, host, false, BYTES, copies, &err));
    passed(copies);
    hold = stkt_hold_stream(reader);
    assert_ok(device->ops->copy(device, seen, true, slot, true, BYTES, reader, &err));
    assert_ok(stk_event_record(given_back, reader, &err));
    assert_ok(stk_stream_wait(copies, given_back, &err));
    assert_ok(device->ops->copy(device, slot, true, host + BYTES, false, BYTES, copies, &err));
    assert_int_equal(stk_stream_query(copies, &err), STK_AGAIN);
    stkt_let_go(&hold);
    passed(reader);
    passed(copies);
    assert_ok(device->ops->copy(device, host, false, seen, true, BYTES, NULL, &err));
    assert_ok(device->ops->copy(device, host + BYTES, false, slot, true, BYTES, NULL, &err));
    for (int64_t i = 0; i < 2 * BYTES; i++)
        assert_int_equal(host[i], i < BYTES ? 1 : 2);
    stk_event_destroy(given_back);
    stk_stream_destroy(copies);
    stk_stream_destroy(reader);
    device->ops->free(device, slot, BYTES);
    device->ops->free(device, seen, BYTES);
    device->ops->free_pinned(device, host, 2 * BYTES);
}

static void time_between_events_is_at_least_the_work(void **state)
{
    stk_stream *stream = new_stream();
    stk_event *from = new_event(true), *to = new_event(true);
    int64_t ns = 0;

    (void)state;
    assert_ok(stk_event_record(from, stream, &err));
    assert_ok(stk_stream_spin(stream, 3000000, &err));
    assert_ok(stk_event_record(to, stream, &err));
    passed(stream);
    assert_ok(stk_event_elapsed(from, to, &ns, &err));
    assert_true(ns >= 2900000); /* two clocks differ slightly */
    assert_status(stk_stream_spin(stream, -1, &err), STK_E_BAD_ARG);
    assert_status(stk_stream_spin(NULL, 1, &err), STK_E_BAD_ARG);
    stk_event_destroy(from);
    stk_event_destroy(to);
    stk_stream_destroy(stream);
}

/* Work queued in a stream still runs after the stream is destroyed, and an event stays alive for its waiters. */
static void handles_can_be_destroyed_before_their_work(void **state)
{
    unsigned char *host = pinned(8), *block = on_device(8);
    stk_stream *first = new_stream(), *second = new_stream();
    stk_event *event = new_event(false);

    (void)state;
    memset(host, 7, 8);
    assert_ok(stk_stream_spin(first, 2000000, &err));
    assert_ok(device->ops->copy(device, block, true, host, false, 4, first, &err));
    assert_ok(stk_event_record(event, first, &err));
    assert_ok(stk_stream_wait(second, event, &err));
    stk_event_destroy(event);
    stk_stream_destroy(first);
    assert_ok(device->ops->copy(device, host + 4, false, block, true, 4, second, &err));
    passed(second);
    assert_memory_equal(host, "\7\7\7\7\7\7\7\7", 8);
    stk_stream_destroy(second);
    assert_ok(stk_device_synchronize(device, &err));
    device->ops->free(device, block, 8);
    device->ops->free_pinned(device, host, 8);
}

static void native_streams_can_be_wrapped(void **state)
{
    stk_stream *own = new_stream(), *wrapped = NULL;
    unsigned char *host = pinned(8), *block = on_device(8);

    (void)state;
    if (stk_device_get_kind(device) != STK_DEVICE_CUDA) {
        assert_status(stk_stream_wrap(device, host, &wrapped, &err), STK_E_UNSUPPORTED);
        goto done;
    }
    memset(host, 3, 8);
    assert_ok(stk_stream_wrap(device, stk_stream_native(own), &wrapped, &err));
    assert_ok(device->ops->copy(device, block, true, host, false, 4, own, &err));
    assert_ok(device->ops->copy(device, host + 4, false, block, true, 4, wrapped, &err));
    passed(own); /* `own` and `wrapped` are the same stream */
    stk_stream_destroy(wrapped);
    assert_ok(stk_stream_query(own, &err)); /* the stream still exists */
    assert_ok(stk_stream_wrap(device, NULL, &wrapped, &err));
    assert_ok(device->ops->copy(device, host, false, block, true, 4, wrapped, &err));
    passed(wrapped);
    assert_memory_equal(host, "\3\3\3\3\3\3\3\3", 8);
    stk_stream_destroy(wrapped);
done:
    stk_stream_destroy(own);
    device->ops->free(device, block, 8);
    device->ops->free_pinned(device, host, 8);
}

/* Threads that have set no device and use streams of their own. */
static void one_of_many_threads(void *context)
{
    int number = *(int *)context;
    enum { BYTES = 100000 };
    unsigned char *host = malloc(BYTES);
    void *block;
    stk_stream *stream;
    stk_error mine;

    if (!host || device->ops->alloc(device, BYTES, &block, &mine) || stk_stream_create(device, &stream, &mine))
        abort();
    for (int round = 0; round < 20; round++) {
        memset(host, number + round, BYTES);
        if (device->ops->copy(device, block, true, host, false, BYTES, stream, &mine) ||
            stk_stream_synchronize(stream, STKT_A_WHILE, &mine))
            abort();
        memset(host, 0, BYTES);
        if (device->ops->copy(device, host, false, block, true, BYTES, stream, &mine) ||
            stk_stream_synchronize(stream, STKT_A_WHILE, &mine))
            abort();
        for (int i = 0; i < BYTES; i++)
            if (host[i] != number + round)
                abort();
    }
    stk_stream_destroy(stream);
    device->ops->free(device, block, BYTES);
    free(host);
}

static void many_threads_use_the_device(void **state)
{
    stki_thread *threads[4];
    int numbers[4] = {10, 50, 100, 200};

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_ok(stki_thread_start(&threads[i], "device user", one_of_many_threads, &numbers[i], &err));
    for (int i = 0; i < 4; i++)
        assert_true(stki_thread_join(threads[i], INT64_MAX));
}

/* ---- operations ---- */

/* The bytes on the device must equal those that the CPU computed; `what` is for the message. */
static void same(const char *what, const stk_tensor *found, const stk_tensor *expected)
{
    int64_t bytes = stk_tensor_nbytes(expected);
    unsigned char *a = malloc((size_t)bytes + 1), *b = malloc((size_t)bytes + 1);

    assert_int_equal(found->dtype, expected->dtype);
    assert_int_equal(found->ndim, expected->ndim);
    assert_int_equal(stk_tensor_nbytes(found), bytes);
    assert_ok(stk_tensor_to_bytes(found, a, bytes, &err));
    assert_ok(stk_tensor_to_bytes(expected, b, bytes, &err));
    for (int64_t i = 0; i < bytes; i++)
        if (a[i] != b[i])
            fail_msg("%s: byte %" PRId64 " of %" PRId64 " is %02x, not %02x", what, i, bytes, a[i], b[i]);
    free(a);
    free(b);
}

typedef stk_status (*one_to_one)(const stk_tensor *in, stk_tensor *out, stk_error *e);

static void compare(const char *what, one_to_one run, const stk_tensor *in)
{
    stk_tensor there, found, expected;

    assert_ok(stk_tensor_to_device(in, device, &there, &err));
    assert_ok(run(in, &expected, &err));
    assert_ok(run(&there, &found, &err));
    assert_ptr_equal(found.device, device);
    same(what, &found, &expected);
    stk_tensor_release(&there);
    stk_tensor_release(&found);
    stk_tensor_release(&expected);
}

static stk_status run_turned(const stk_tensor *in, stk_tensor *out, stk_error *e)
{
    stk_tensor view;
    stk_status status = stk_tensor_permute(in, (const int[]){0, 3, 1, 2}, &view, e);

    if (!status)
        status = stk_tensor_clone(&view, out, e);
    stk_tensor_release(&view);
    return status;
}

static stk_status run_flipped(const stk_tensor *in, stk_tensor *out, stk_error *e)
{
    stk_tensor cut = {0}, view = {0};
    stk_status status = stk_tensor_slice(in, 2, 1, INT64_MAX, 2, &cut, e);

    if (!status)
        status = stk_tensor_flip(&cut, 1, &view, e);
    if (!status)
        status = stk_tensor_to(&view, STK_F64, out, e);
    stk_tensor_release(&cut);
    stk_tensor_release(&view);
    return status;
}

static stk_status run_to_bf16(const stk_tensor *in, stk_tensor *out, stk_error *e)
{
    return stk_tensor_to(in, STK_BF16, out, e);
}

static stk_status run_to_i8(const stk_tensor *in, stk_tensor *out, stk_error *e)
{
    return stk_tensor_to(in, STK_I8, out, e);
}

static stk_status run_channels_last(const stk_tensor *in, stk_tensor *out, stk_error *e)
{
    return stk_tensor_clone_as(in, STK_LAYOUT_CHANNELS_LAST, out, e);
}

static stk_status run_add_broadcast(const stk_tensor *in, stk_tensor *out, stk_error *e)
{
    stk_tensor row;
    stk_status status = stk_tensor_select(in, 0, 1, &row, e);

    if (!status)
        status = stk_tensor_binary(STK_ADD, stk_operand_tensor(in), stk_operand_tensor(&row), out, e);
    stk_tensor_release(&row);
    return status;
}

static stk_status run_less(const stk_tensor *in, stk_tensor *out, stk_error *e)
{
    return stk_tensor_binary(STK_LT, stk_operand_tensor(in), stk_operand_scalar(stk_int(40)), out, e);
}

/* A sum of integers, which does not depend on the order of additions. */
static stk_status run_sum(const stk_tensor *in, stk_tensor *out, stk_error *e)
{
    stk_tensor whole = {0}, real = {0};
    stk_status status = stk_tensor_to(in, STK_I16, &whole, e);

    if (!status)
        status = stk_tensor_to(&whole, in->dtype, &real, e);
    if (!status)
        status = stk_tensor_sum(&real, 2, (const int[]){0, 2}, false, STK_DTYPE_NONE, out, e);
    stk_tensor_release(&whole);
    stk_tensor_release(&real);
    return status;
}

static stk_status run_zeroed(const stk_tensor *in, stk_tensor *out, stk_error *e)
{
    stk_tensor middle;
    stk_status status = stk_tensor_clone(in, out, e);

    if (!status)
        status = stk_tensor_narrow(out, 1, 1, 2, &middle, e);
    if (!status)
        status = stk_tensor_fill(&middle, stk_int(3), e);
    stk_tensor_release(&middle);
    return status;
}

static stk_status run_quantized(const stk_tensor *in, stk_tensor *out, stk_error *e)
{
    const double scales[] = {0.5, 0.25, 0.125, 1, 2, 3, 4};
    const int64_t zeros[] = {0, 1, 2, 3, 4, 5, 6};
    stk_quant *quant = NULL;
    stk_qtensor made = {0};
    stk_tensor real = {0};
    stk_status status = stk_tensor_to(in, STK_F32, &real, e);

    if (!status)
        status = stk_quant_create(STK_QUINT8, 3, in->shape[3], scales, zeros, &quant, e);
    if (!status)
        status = stk_quantize(&real, quant, &made, e);
    if (!status)
        status = stk_int_repr(&made, out, e);
    stk_qtensor_release(&made);
    stk_quant_release(quant);
    stk_tensor_release(&real);
    return status;
}

static void operations_equal_those_of_the_cpu(void **state)
{
    static const stk_dtype dtypes[] = {STK_U8, STK_I16, STK_I32, STK_F16, STK_BF16, STK_F32, STK_F64};
    static const int64_t shapes[][4] = {{2, 3, 5, 7}, {3, 4, 8, 3}, {2, 16, 32, 4}};
    static const struct {
        const char *name;
        one_to_one run;
    } rows[] = {{"turned", run_turned},
                {"flipped, every other, to f64", run_flipped},
                {"to bf16", run_to_bf16},
                {"to i8", run_to_i8},
                {"channels last", run_channels_last},
                {"added, broadcast", run_add_broadcast},
                {"less than", run_less},
                {"summed", run_sum},
                {"filled in part", run_zeroed},
                {"quantized", run_quantized}};

    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            int64_t count = shapes[s][0] * shapes[s][1] * shapes[s][2] * shapes[s][3];
            stk_tensor numbers, scaled, shaped, in;

            assert_ok(stk_tensor_rand(STK_F32, 1, &count, 17 + s, NULL, &numbers, &err));
            assert_ok(stk_tensor_binary(STK_MUL, stk_operand_tensor(&numbers), stk_operand_scalar(stk_int(100)),
                                        &scaled, &err));
            assert_ok(stk_tensor_view(&scaled, 4, shapes[s], &shaped, &err));
            assert_ok(stk_tensor_to(&shaped, dtypes[d], &in, &err));
            for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
                compare(rows[r].name, rows[r].run, &in);
            stk_tensor_release(&numbers);
            stk_tensor_release(&scaled);
            stk_tensor_release(&shaped);
            stk_tensor_release(&in);
        }
}

/* ---- converted samples ---- */

enum { MAX_SAMPLES = 5, HEIGHT = 13, WIDTH = 22, CHANNELS = 3, PIXELS = HEIGHT * WIDTH };

/* A batch of images with interleaved channels, converted to planes or to pixels of another dtype. */
typedef struct plan_case {
    const char *name;
    stk_dtype src, dst;
    bool planes, flipped, arithmetic, quantized;
    int64_t crop; /* lines and columns cut off on each side */
} plan_case;

static stki_convert_desc describe(const plan_case *row)
{
    static const float a[] = {0.0171F, 0.0175F, 0.0174F}, b[] = {-2.117F, -2.035F, -1.804F};
    static const float quant_a[] = {0.9F, 1.1F, 1.3F}, quant_b[] = {-100.25F, -120.5F, -90};
    int64_t src = stk_dtype_size(row->src), dst = stk_dtype_size(row->dst);
    int64_t height = HEIGHT - 2 * row->crop, width = WIDTH - 2 * row->crop;
    stki_convert_desc desc = {.src_dtype = row->src,
                              .dst_dtype = row->dst,
                              .ndim = 3,
                              .shape = {CHANNELS, height, width},
                              .src_strides = {src, WIDTH * CHANNELS * src, CHANNELS * src},
                              .channel_axis = 0,
                              .channels = row->arithmetic ? CHANNELS : 1,
                              .affine = row->arithmetic,
                              .a = row->quantized ? quant_a : a,
                              .b = row->quantized ? quant_b : b};

    if (row->planes)
        memcpy(desc.dst_strides, (int64_t[]){height * width * dst, width * dst, dst}, 3 * sizeof(int64_t));
    else
        memcpy(desc.dst_strides, (int64_t[]){dst, width * CHANNELS * dst, CHANNELS * dst}, 3 * sizeof(int64_t));
    if (row->flipped)
        desc.src_strides[2] = -desc.src_strides[2];
    if (row->quantized) {
        desc.quantized = true;
        desc.zero_point = -3;
        desc.qmin = -100;
        desc.qmax = 111;
    }
    return desc;
}

static void random_values(stk_dtype dtype, void *to, int64_t count)
{
    stk_tensor numbers, scaled, wanted;

    assert_ok(stk_tensor_rand(STK_F32, 1, &count, 5, NULL, &numbers, &err));
    assert_ok(
        stk_tensor_binary(STK_MUL, stk_operand_tensor(&numbers), stk_operand_scalar(stk_int(256)), &scaled, &err));
    assert_ok(stk_tensor_to(&scaled, dtype, &wanted, &err));
    assert_ok(stk_tensor_to_bytes(&wanted, to, count * stk_dtype_size(dtype), &err));
    stk_tensor_release(&numbers);
    stk_tensor_release(&scaled);
    stk_tensor_release(&wanted);
}

/* Converts `samples` samples, `shift` bytes off the alignment of a new block on both sides, with guard bytes around. */
static void one_plan(const plan_case *row, int64_t samples, int64_t shift, stk_stream *stream)
{
    enum { SAMPLE = PIXELS * CHANNELS * 8, BATCH = MAX_SAMPLES * SAMPLE + 64 };
    stki_convert_desc desc = describe(row);
    int64_t src_size = stk_dtype_size(row->src), dst_size = stk_dtype_size(row->dst);
    int64_t src_stride = PIXELS * CHANNELS * src_size;
    int64_t dst_stride = CHANNELS * desc.shape[1] * desc.shape[2] * dst_size;
    int64_t first = (row->crop * WIDTH + (row->flipped ? WIDTH - 1 - row->crop : row->crop)) * CHANNELS * src_size;
    unsigned char *in = calloc(1, BATCH), *out = malloc(BATCH), *expected = malloc(BATCH);
    unsigned char *there_in = on_device(BATCH), *there_out = on_device(BATCH);
    stki_convert *reference, *plan;

    random_values(row->src, in, samples * PIXELS * CHANNELS);
    memset(expected, 0xEE, BATCH);
    assert_ok(stki_convert_create_isa(&desc, STKI_ISA_REF, &reference, &err));
    assert_ok(stki_convert_create(&desc, &plan, &err));
    for (int64_t i = 0; i < samples; i++)
        stki_convert_run(reference, expected + 16 + shift + i * dst_stride, in + i * src_stride + first);

    assert_ok(device->ops->fill(device, there_out, "\xEE", 1, BATCH, stream, &err));
    assert_ok(
        device->ops->copy(device, there_in + shift * src_size, true, in, false, samples * src_stride, stream, &err));
    assert_ok(device->ops->convert(device, plan, there_out + 16 + shift, dst_stride,
                                   there_in + shift * src_size + first, src_stride, samples, stream, &err));
    assert_ok(device->ops->copy(device, out, false, there_out, true, BATCH, stream, &err));
    if (stream)
        passed(stream);
    for (int64_t i = 0; i < BATCH; i++)
        if (out[i] != expected[i])
            fail_msg("%s, %" PRId64 " samples, %" PRId64 " bytes off: byte %" PRId64 " is %02x, not %02x", row->name,
                     samples, shift, i - 16 - shift, out[i], expected[i]);
    stki_convert_destroy(reference);
    stki_convert_destroy(plan);
    device->ops->free(device, there_in, BATCH);
    device->ops->free(device, there_out, BATCH);
    free(in);
    free(out);
    free(expected);
}

/* The bits must equal those of the CPU's reference kernel for the same plan. */
static void converted_samples_have_the_reference_s_bits(void **state)
{
    static const plan_case rows[] = {
        {"u8 pixels to f32 planes, normalized", STK_U8, STK_F32, true, false, true, false, 0},
        {"u8 pixels to f16 planes, normalized", STK_U8, STK_F16, true, false, true, false, 0},
        {"u8 pixels to bf16 planes, normalized", STK_U8, STK_BF16, true, false, true, false, 0},
        {"the same, flipped and cropped", STK_U8, STK_BF16, true, true, true, false, 2},
        {"u8 pixels to f32 pixels, cropped", STK_U8, STK_F32, false, false, true, false, 1},
        {"u8 pixels to i8 planes, quantized", STK_U8, STK_I8, true, false, true, true, 0},
        {"f32 to u8 pixels, rounded", STK_F32, STK_U8, false, true, true, false, 0},
        {"i16 to i32 planes, rounded", STK_I16, STK_I32, true, false, true, false, 3},
        {"f64 to f32, normalized", STK_F64, STK_F32, false, false, true, false, 0},
        {"f16 to bf16 planes, normalized", STK_F16, STK_BF16, true, true, true, false, 1},
        {"u8 pixels to u8 planes, copied", STK_U8, STK_U8, true, false, false, false, 0},
        {"u16 to i64, cast", STK_U16, STK_I64, false, false, false, false, 0},
        {"i64 to i32 planes, cast and flipped", STK_I64, STK_I32, true, true, false, false, 1},
        {"f32 to f16 planes, cast", STK_F32, STK_F16, true, false, false, false, 0},
    };
    stk_stream *stream = new_stream();

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int64_t samples = 1; samples <= MAX_SAMPLES; samples += 2) {
            one_plan(&rows[i], samples, 0, stream);
            one_plan(&rows[i], samples, samples, samples == 1 ? NULL : stream);
        }
    stk_stream_destroy(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_gpus_are_left_alone), /* first, because other tests may create contexts */
        cmocka_unit_test(properties_are_reported),
        cmocka_unit_test(too_large_allocations_are_rejected_with_sizes),
        cmocka_unit_test(copies_in_every_direction),
        cmocka_unit_test(fills_write_only_their_range),
        cmocka_unit_test(a_blocked_stream_does_not_block_others),
        cmocka_unit_test(a_consumer_waits_for_the_copy),
        cmocka_unit_test(pinned_slots_are_used_again_after_their_copy),
        cmocka_unit_test(a_slot_is_not_overwritten_under_a_slow_reader),
        cmocka_unit_test(time_between_events_is_at_least_the_work),
        cmocka_unit_test(handles_can_be_destroyed_before_their_work),
        cmocka_unit_test(native_streams_can_be_wrapped),
        cmocka_unit_test(many_threads_use_the_device),
        cmocka_unit_test(operations_equal_those_of_the_cpu),
        cmocka_unit_test(converted_samples_have_the_reference_s_bits),
    };

    device = stkt_device();
    if (!device)
        return 77;
    return cmocka_run_group_tests(tests, stkt_leak_setup, stkt_leak_teardown);
}
