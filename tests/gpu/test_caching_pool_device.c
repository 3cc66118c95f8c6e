/* stki-threads */
/* Tests of the caches on the device named by STOKER_TEST_DEVICE (host, cuda:0, …; default: host): tensors that are
 * released while streams still use them must keep their values until then, whatever memory is allocated next. */
#include "caching_pool.h"
#include "device_hold.h"
#include "leak_check.h"
#include "test_random.h"
#include "thread.h"
#include <stoker/stoker.h>

#define MIB (INT64_C(1) << 20)

static stk_device *device;

static stk_stream *new_stream(void)
{
    stk_stream *stream = NULL;
    stk_error err;

    assert_ok(stk_stream_create(device, &stream, &err));
    return stream;
}

static stk_tensor tensor(int64_t count)
{
    stk_tensor made;
    stk_error err;

    assert_ok(stk_tensor_empty(STK_I32, 1, &count, device, &made, &err));
    return made;
}

static stk_device_memory_stats stats_of(stk_device_memory kind)
{
    stk_device_memory_stats stats = {.struct_size = sizeof stats};
    stk_error err;

    assert_ok(stk_device_get_memory_stats(device, kind, &stats, &err));
    return stats;
}

static void empty(void)
{
    stk_error err;

    assert_ok(stk_device_synchronize(device, &err));
    assert_ok(stk_device_empty_cache(device, &err));
}

static void it_has_caches(void **state)
{
    (void)state;
    assert_non_null(device->pool);
    assert_non_null(device->pinned_pool);
}

static void memory_is_reused_in_its_stream(void **state)
{
    stk_stream *stream = new_stream(), *other = new_stream(), *before = stk_stream_set_current(device, stream);
    stk_tensor a = tensor(1000), b;
    stk_device_memory_stats stats;
    void *first = a.data;
    stkt_hold hold;
    stk_error err;

    (void)state;
    hold = stkt_hold_stream(stream);
    assert_ok(stk_tensor_fill(&a, stk_int(1), &err));
    stk_tensor_release(&a); /* its stream may not have reached the fill yet */
    a = tensor(1000);
    assert_ptr_equal(a.data, first);
    (void)stk_stream_set_current(device, other);
    b = tensor(1000);
    assert_ptr_not_equal(b.data, first);
    (void)stk_stream_set_current(device, before);
    stkt_let_go(&hold);
    stk_tensor_release(&a);
    stk_tensor_release(&b);
    stk_stream_destroy(stream);
    stk_stream_destroy(other);
    empty();
    stats = stats_of(STK_MEMORY_DEVICE);
    assert_int_equal(stats.allocated_bytes, 0);
    assert_int_equal(stats.reserved_bytes, 0);
}

static void a_blocked_stream_keeps_its_memory(void **state)
{
    stk_stream *owner = new_stream(), *reader = new_stream(), *before = stk_stream_set_current(device, owner);
    stk_tensor a = tensor(1000), b;
    void *first = a.data;
    stkt_hold hold = stkt_hold_stream(reader);
    stk_error err;

    (void)state;
    assert_ok(stk_stream_spin(reader, 1000, &err)); /* stands for work on the tensor */
    assert_ok(stk_tensor_record_stream(&a, reader, &err));
    stk_tensor_release(&a);
    assert_true(stats_of(STK_MEMORY_DEVICE).active_bytes > 0);
    b = tensor(1000);
    assert_ptr_not_equal(b.data, first);
    (void)stk_stream_set_current(device, before);
    stk_tensor_release(&b);
    stk_stream_destroy(owner); /* the reader still uses its memory */
    b = tensor(1000);
    assert_ptr_not_equal(b.data, first);
    stk_tensor_release(&b);
    stkt_let_go(&hold);
    stk_stream_destroy(reader);
    empty();
    assert_int_equal(stats_of(STK_MEMORY_DEVICE).reserved_bytes, 0);
}

/* ---- values ---- */

enum { ROUNDS = 300, SLOTS = 8, MOST = 5000, THREADS = 3 };

typedef struct relay {
    stk_tensor out[SLOTS]; /* pinned */
    int32_t value[SLOTS];
    int64_t count[SLOTS];
    stk_stream *maker, *reader;
    stk_event *made;
    uint64_t random;
    int64_t wrong, checked;
} relay;

static void check_slots(relay *r)
{
    stk_error err;

    if (stk_stream_synchronize(r->reader, STKT_A_WHILE, &err))
        abort();
    for (int slot = 0; slot < SLOTS; slot++) {
        const int32_t *values = r->out[slot].data;
        for (int64_t i = 0; i < r->count[slot]; i++)
            r->wrong += values[i] != r->value[slot];
        r->checked += r->count[slot];
        r->count[slot] = 0;
    }
}

/* Creates and fills a tensor in one stream, copies it to the host in another one, and releases it immediately. The next
 * tensor gets the same memory as early as permitted. */
static stk_status relay_round(relay *r, int slot, int32_t value, stk_error *err)
{
    stk_stream *before = stk_stream_set_current(device, r->maker);
    int64_t count = stkt_random_in(&r->random, 1, MOST);
    stk_tensor made, part;
    stk_status status = stk_tensor_empty(STK_I32, 1, &count, device, &made, err);

    if (!status) {
        status = stk_tensor_fill(&made, stk_int(value), err);
        status = status ? status : stk_event_record(r->made, r->maker, err);
        status = status ? status : stk_stream_wait(r->reader, r->made, err);
        status = status ? status : stk_tensor_narrow(&r->out[slot], 0, 0, count, &part, err);
        if (!status) {
            status = stk_tensor_copy_on(&part, &made, r->reader, true, err); /* records the reader */
            stk_tensor_release(&part);
        }
        stk_tensor_release(&made);
    }
    (void)stk_stream_set_current(device, before);
    r->value[slot] = value;
    r->count[slot] = count;
    return status;
}

static stk_status relay_init(relay *r, uint64_t seed, stk_error *err)
{
    const int64_t most = MOST;
    stk_status status = stk_stream_create(device, &r->maker, err);

    r->random = seed;
    status = status ? status : stk_stream_create(device, &r->reader, err);
    status = status ? status : stk_event_create(device, false, &r->made, err);
    for (int i = 0; i < SLOTS && !status; i++)
        status = stk_tensor_empty_pinned(STK_I32, 1, &most, device, &r->out[i], err);
    return status;
}

static void relay_fini(relay *r)
{
    for (int i = 0; i < SLOTS; i++)
        stk_tensor_release(&r->out[i]);
    stk_event_destroy(r->made);
    stk_stream_destroy(r->maker);
    stk_stream_destroy(r->reader);
}

static void values_outlive_their_tensors(void **state)
{
    relay r = {.wrong = 0};
    stk_error err;

    (void)state;
    assert_ok(relay_init(&r, 7, &err));
    for (int round = 0; round < ROUNDS; round += SLOTS) {
        stkt_hold hold = stkt_hold_stream(r.reader); /* nothing has been read when all tensors are released */
        for (int slot = 0; slot < SLOTS; slot++)
            assert_ok(relay_round(&r, slot, round + slot + 1, &err));
        stkt_let_go(&hold);
        check_slots(&r);
    }
    assert_int_equal(r.wrong, 0);
    assert_true(r.checked > ROUNDS);
    relay_fini(&r);
}

static void run_relay(void *context)
{
    relay *r = context;
    stk_error err;

    for (int round = 0; round < ROUNDS; round++) {
        if (relay_round(r, round % SLOTS, round + 1, &err))
            abort();
        if (round % SLOTS == SLOTS - 1)
            check_slots(r);
        if (round % 100 == 50 && stk_device_empty_cache(device, &err))
            abort();
    }
    check_slots(r);
}

static void values_of_many_threads(void **state)
{
    static relay relays[THREADS];
    stki_thread *threads[THREADS];
    stk_error err;

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        relays[i] = (relay){.wrong = 0};
        assert_ok(relay_init(&relays[i], 20 + (uint64_t)i, &err));
    }
    for (int i = 0; i < THREADS; i++)
        assert_ok(stki_thread_start(&threads[i], "relay", run_relay, &relays[i], &err));
    for (int i = 0; i < THREADS; i++)
        assert_true(stki_thread_join(threads[i], INT64_MAX));
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(relays[i].wrong, 0);
        assert_true(relays[i].checked > ROUNDS);
        relay_fini(&relays[i]);
    }
    empty();
    assert_int_equal(stats_of(STK_MEMORY_DEVICE).allocated_bytes, 0);
    assert_int_equal(stats_of(STK_MEMORY_DEVICE).reserved_bytes, 0);
    assert_int_equal(stats_of(STK_MEMORY_PINNED).reserved_bytes, 0);
}

/* ---- out of memory ---- */

static void too_large_allocations_are_rejected(void **state)
{
    int64_t huge = INT64_C(1) << 46;
    stk_tensor t;
    stk_error err;

    (void)state;
    if (stk_device_get_kind(device) == STK_DEVICE_HOST)
        skip(); /* ordinary systems overcommit memory, and sanitizers end the program */
    assert_status(stk_tensor_empty(STK_U8, 1, &huge, device, &t, &err), STK_E_MEMORY);
    assert_says("out of device memory: requested 64.00 TiB; allocated ");
    assert_says(stk_device_name(device));
    t = tensor(10); /* the device still works */
    stk_tensor_release(&t);
}

/* Most of a GPU's memory is cached for one stream when another one requests as much: the cache is freed first. */
static void the_cache_is_freed_for_other_streams(void **state)
{
    stk_device_properties properties = {.struct_size = sizeof properties};
    stk_stream *first, *second, *before;
    int64_t retries, most;
    stk_tensor t;
    stk_error err;

    (void)state;
    if (stk_device_get_kind(device) == STK_DEVICE_HOST)
        skip();
    first = new_stream();
    second = new_stream();
    empty();
    assert_ok(stk_device_get_properties(device, &properties, &err));
    retries = stats_of(STK_MEMORY_DEVICE).retries;
    most = properties.free_bytes / 5 * 3;
    before = stk_stream_set_current(device, first);
    assert_ok(stk_tensor_empty(STK_U8, 1, &most, device, &t, &err));
    stk_tensor_release(&t);
    (void)stk_stream_set_current(device, second);
    assert_ok(stk_tensor_empty(STK_U8, 1, &most, device, &t, &err));
    stk_tensor_release(&t);
    (void)stk_stream_set_current(device, before);
    assert_int_equal(stats_of(STK_MEMORY_DEVICE).retries, retries + 1);
    stk_stream_destroy(first);
    stk_stream_destroy(second);
    empty();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_caches),
        cmocka_unit_test(memory_is_reused_in_its_stream),
        cmocka_unit_test(a_blocked_stream_keeps_its_memory),
        cmocka_unit_test(values_outlive_their_tensors),
        cmocka_unit_test(values_of_many_threads),
        cmocka_unit_test(too_large_allocations_are_rejected),
        cmocka_unit_test(the_cache_is_freed_for_other_streams),
    };

    device = stkt_device();
    if (!device)
        return 77;
    return cmocka_run_group_tests(tests, stkt_leak_setup, stkt_leak_teardown);
}
