/* stki-threads */
/* Tests of the prefetcher with a fake source, on the host device, whose streams are threads that can be blocked, slowed
 * down and made to fail. */
#include "faults.h"
#include "host_faults.h"
#include "prefetch_fake.h"

static void set_faults(stk_stream *stream, stkt_host_faults faults)
{
    stkt_host_set_faults(host_device(), stream, &faults);
}

static void no_faults(void)
{
    stkt_host_set_faults(host_device(), NULL, NULL);
}

static stk_stream *new_stream(void)
{
    stk_stream *stream;
    stk_error err;

    assert_ok(stk_stream_create(host_device(), &stream, &err));
    return stream;
}

/* Waits until a copy has been queued in the copy stream, which a fault blocks. */
static void wait_until_copying(stki_prefetch *prefetch)
{
    stk_error err;
    int slot;

    do
        assert_status(stki_prefetch_next(prefetch, NULL, 10000000, &slot, &err), STK_E_TIMEOUT);
    while (!strstr(err.message, "not finished"));
}

/* A source that, while it fills batch 1, makes the prefetcher record that the copies of an earlier batch have
 * failed. */
typedef struct losing {
    fake f; /* first member */
    stki_prefetch *_Atomic prefetch;
} losing;

static stk_status losing_next(void *context, int slot, int64_t deadline_ns, stki_prefetch_load *loads, void **held,
                              stk_error *err)
{
    losing *l = context;
    stk_status status = fake_next(&l->f, slot, deadline_ns, loads, held, err);

    if (status == STK_OK && l->f.next == 2) {
        stki_lock(&l->prefetch->lock);
        l->prefetch->outcome = STK_E_DEVICE;
        (void)stki_fail(&l->prefetch->error, STK_E_DEVICE, "a copy failed");
        stki_unlock(&l->prefetch->lock);
    }
    return status;
}

/* Takes the next batch without a stream and checks it. */
static void take(stki_prefetch *prefetch, const fake *f, int64_t batch)
{
    stk_error err;
    int slot;

    assert_ok(stki_prefetch_next(prefetch, NULL, 60 * STKI_SECOND, &slot, &err));
    check_bytes(f, batch, stki_prefetch_place(prefetch, slot, 0), stki_prefetch_place(prefetch, slot, 1));
    stki_prefetch_release(prefetch, slot);
}

static void finish(stki_prefetch *prefetch, fake *f)
{
    stk_error err;

    assert_ok(stki_prefetch_close(prefetch, 60 * STKI_SECOND, &err));
    stki_prefetch_destroy(prefetch);
    assert_true(f->ended);
    assert_int_equal(f->released, f->next);
    fake_fini(f);
}

/* Row P01: nothing is lost at the end, for any depth and any number of batches. */
static void p01_all_batches_are_delivered_for_every_depth(void **state)
{
    (void)state;
    for (int depth = 1; depth <= 8; depth++)
        for (int64_t batches = 0; batches <= 19; batches += 1 + batches / 5)
            for (int buffers = 1; buffers <= 3; buffers++) {
                stki_prefetch *prefetch;
                stki_prefetch_stats stats;
                stk_error err;
                fake f;
                int slot;

                fake_init(&f, batches, buffers, 257);
                prefetch = fake_start(&f, depth);
                for (int64_t i = 0; i < batches; i++)
                    take(prefetch, &f, i);
                for (int i = 0; i < 3; i++)
                    assert_int_equal(stki_prefetch_next(prefetch, NULL, STKI_SECOND * 60, &slot, &err), STK_END);
                stki_prefetch_read_stats(prefetch, &stats);
                assert_int_equal(stats.batches, batches);
                assert_int_equal(stats.bytes, batches * (257 + FAKE_SMALL));
                assert_int_equal(stats.held, 0);
                finish(prefetch, &f);
            }
}

typedef struct reading {
    char *first, *second; /* where the consumer's stream copies a batch, as a kernel would read it */
    int slot;
} reading;

/* Queues the reading of the next batch in the stream. */
static void read_next(stki_prefetch *prefetch, const fake *f, stk_stream *stream, reading *r)
{
    const stki_device_ops *ops = host_device()->ops;
    stk_error err;

    assert_ok(stki_prefetch_next(prefetch, stream, 60 * STKI_SECOND, &r->slot, &err));
    r->first = calloc(1, (size_t)f->bytes);
    r->second = calloc(1, FAKE_SMALL);
    assert_ok(ops->copy(host_device(), r->first, false, stki_prefetch_place(prefetch, r->slot, 0), true, f->bytes,
                        stream, &err));
    assert_ok(ops->copy(host_device(), r->second, false, stki_prefetch_place(prefetch, r->slot, 1), true, FAKE_SMALL,
                        stream, &err));
}

static void check_reading(const fake *f, int64_t batch, reading *r)
{
    check_bytes(f, batch, r->first, r->second);
    free(r->first);
    free(r->second);
}

/* Row G01: host memory is not overwritten while a copy from it is running. A ring of two buffers, overwritten on
 * release, with a slow copy stream, for 1000 batches. */
static void g01_host_memory_outlives_its_copy(void **state)
{
    stki_prefetch *prefetch;
    fake f;

    (void)state;
    fake_init(&f, 1000, 2, 4096);
    prefetch = fake_start(&f, 4);
    set_faults(prefetch->copy_stream, (stkt_host_faults){.delay_ns = 100000});
    for (int64_t i = 0; i < 1000; i++)
        take(prefetch, &f, i);
    finish(prefetch, &f);
}

/* The same while the copy is blocked for any time. */
static void host_memory_is_kept_while_the_copy_is_held(void **state)
{
    stki_prefetch *prefetch;
    fake f;

    (void)state;
    fake_init(&f, 6, 2, 1000);
    f.stall_at = 0;
    prefetch = fake_start(&f, 4);
    set_faults(prefetch->copy_stream, (stkt_host_faults){.delay_ns = STKT_HOST_HOLD});
    fake_wake(&f);
    wait_until_copying(prefetch);
    stki_lock(&f.lock);
    assert_int_equal(f.released, 0);
    stki_unlock(&f.lock);
    set_faults(prefetch->copy_stream, (stkt_host_faults){0});
    for (int64_t i = 0; i < 6; i++)
        take(prefetch, &f, i);
    finish(prefetch, &f);
}

/* Row G02: a stream that requested a batch finds it complete, although the host did not wait for its copy. */
static void g02_the_consumers_stream_waits_for_the_copy(void **state)
{
    stk_stream *stream = new_stream();
    stki_prefetch *prefetch;
    stk_error err;
    reading r;
    fake f;

    (void)state;
    fake_init(&f, 1, 1, 1 << 20);
    f.stall_at = 0;
    prefetch = fake_start(&f, 2);
    set_faults(prefetch->copy_stream, (stkt_host_faults){.delay_ns = STKT_HOST_HOLD});
    fake_wake(&f);
    read_next(prefetch, &f, stream, &r); /* returns although nothing has been copied */
    assert_int_equal(stk_stream_query(stream, &err), STK_AGAIN);
    set_faults(prefetch->copy_stream, (stkt_host_faults){0});
    stki_prefetch_guard(prefetch, r.slot, stream);
    stki_prefetch_release(prefetch, r.slot);
    assert_ok(stk_stream_synchronize(stream, 60 * STKI_SECOND, &err));
    check_reading(&f, 0, &r);
    finish(prefetch, &f);
    stk_stream_destroy(stream);
}

/* Row G03: slots are released immediately while the reader is far behind; they are not overwritten before it has read
 * them. */
static void g03_a_slot_waits_for_the_stream_that_released_it(void **state)
{
    enum { BATCHES = 24 };

    (void)state;
    for (int depth = 1; depth <= 3; depth++) {
        stk_stream *stream = new_stream();
        reading readings[BATCHES];
        stki_prefetch *prefetch;
        stk_error err;
        fake f;

        fake_init(&f, BATCHES, BATCHES, 1 << 14);
        prefetch = fake_start(&f, depth);
        set_faults(stream, (stkt_host_faults){.delay_ns = 1000000});
        for (int64_t i = 0; i < BATCHES; i++) {
            read_next(prefetch, &f, stream, &readings[i]);
            stki_prefetch_guard(prefetch, readings[i].slot, stream);
            stki_prefetch_release(prefetch, readings[i].slot);
        }
        assert_ok(stk_stream_synchronize(stream, 60 * STKI_SECOND, &err));
        for (int64_t i = 0; i < BATCHES; i++)
            check_reading(&f, i, &readings[i]);
        finish(prefetch, &f);
        stk_stream_destroy(stream);
    }
}

/* The same with stki_prefetch_guard, with which another user of the slot registers its stream. */
static void a_slot_also_waits_for_guarding_streams(void **state)
{
    stk_stream *stream = new_stream();
    stki_prefetch *prefetch;
    stk_error err;
    reading r;
    fake f;

    (void)state;
    fake_init(&f, 3, 3, 1 << 14);
    prefetch = fake_start(&f, 1);
    set_faults(stream, (stkt_host_faults){.delay_ns = 20000000});
    read_next(prefetch, &f, stream, &r);
    stki_prefetch_guard(prefetch, r.slot, stream);
    stki_prefetch_release(prefetch, r.slot);
    take(prefetch, &f, 1);
    take(prefetch, &f, 2);
    assert_ok(stk_stream_synchronize(stream, 60 * STKI_SECOND, &err));
    check_reading(&f, 0, &r);
    finish(prefetch, &f);
    stk_stream_destroy(stream);
}

/* Several batches are held at once and released in any order; held ones do not change. */
static void held_slots_are_left_alone(void **state)
{
    static const int order[] = {2, 0, 3, 1};
    stki_prefetch *prefetch;
    stk_error err;
    int slots[4], one;
    fake f;

    (void)state;
    fake_init(&f, 12, 2, 1000);
    prefetch = fake_start(&f, 4);
    for (int64_t i = 0; i < 12; i += 4) {
        for (int k = 0; k < 4; k++)
            assert_ok(stki_prefetch_next(prefetch, NULL, 60 * STKI_SECOND, &slots[k], &err));
        assert_status(stki_prefetch_next(prefetch, NULL, 0, &one, &err), STK_E_TIMEOUT);
        assert_says("all 4 slots");
        for (int k = 0; k < 4; k++)
            check_bytes(&f, i + k, stki_prefetch_place(prefetch, slots[k], 0),
                        stki_prefetch_place(prefetch, slots[k], 1));
        for (int k = 0; k < 4; k++)
            stki_prefetch_release(prefetch, slots[order[k]]);
    }
    assert_int_equal(stki_prefetch_next(prefetch, NULL, 60 * STKI_SECOND, &one, &err), STK_END);
    finish(prefetch, &f);
}

/* Row G07: of a batch with few rows only these are copied. */
static void g07_a_short_batch_copies_only_its_rows(void **state)
{
    stki_prefetch *prefetch;
    stki_prefetch_stats stats;
    stk_error err;
    const char *first;
    fake f;
    int slot;

    (void)state;
    fake_init(&f, 3, 1, 4000);
    f.short_bytes = 1000;
    prefetch = fake_start(&f, 1);
    take(prefetch, &f, 0);
    take(prefetch, &f, 1);
    assert_ok(stki_prefetch_next(prefetch, NULL, 60 * STKI_SECOND, &slot, &err));
    first = stki_prefetch_place(prefetch, slot, 0);
    check_bytes(&f, 2, first, stki_prefetch_place(prefetch, slot, 1));
    for (int64_t i = 1000; i < 4000; i++) /* unchanged from the previous batch */
        assert_int_equal(first[i], fake_byte(1, 0, i));
    stki_prefetch_release(prefetch, slot);
    assert_int_equal(stki_prefetch_next(prefetch, NULL, 60 * STKI_SECOND, &slot, &err), STK_END);
    stki_prefetch_read_stats(prefetch, &stats);
    assert_int_equal(stats.bytes, 2 * 4000 + 1000 + 3 * FAKE_SMALL);
    finish(prefetch, &f);
}

/* ---- errors ---- */

/* Row P04: an error of the source is returned after the batches before it, is not reported as an end, and persists. */
static void errors_of_the_source_keep_their_position(void **state)
{
    (void)state;
    for (int64_t bad = 0; bad < 7; bad++)
        for (int depth = 1; depth <= 3; depth++) {
            stki_prefetch *prefetch;
            stk_error err;
            fake f;
            int slot;

            fake_init(&f, 7, 2, 100);
            f.error_at = bad;
            prefetch = fake_start(&f, depth);
            for (int64_t i = 0; i < bad; i++)
                take(prefetch, &f, i);
            for (int i = 0; i < 3; i++) {
                assert_status(stki_prefetch_next(prefetch, NULL, 60 * STKI_SECOND, &slot, &err), STK_E_CORRUPT);
                assert_says("is bad");
            }
            finish(prefetch, &f);
        }
}

/* Row P04 (copy): any operation of the device fails, with and without a stream: complete batches are delivered first,
 * then the error, which is not reported as an end and persists; no host buffer is lost. */
static void p04_a_failed_copy_is_an_error(void **state)
{
    enum { BATCHES = 6 };

    (void)state;
    for (int by_stream = 0; by_stream < 2; by_stream++)
        for (int64_t bad = 1; bad <= BATCHES; bad++)
            for (int depth = 1; depth <= 3; depth++) {
                stki_prefetch *prefetch;
                stk_stream *stream = by_stream ? new_stream() : NULL;
                stk_error err = {0}, again;
                stk_status status;
                int64_t taken = 0;
                fake f;
                int slot;

                fake_init(&f, BATCHES, 2, 5000);
                f.stall_at = 0;
                prefetch = fake_start(&f, depth);
                set_faults(prefetch->copy_stream, (stkt_host_faults){.fail_at = bad, .delay_ns = 50000});
                fake_wake(&f);
                while ((status = stki_prefetch_next(prefetch, stream, 60 * STKI_SECOND, &slot, &err)) == STK_OK) {
                    if (!stream)
                        check_bytes(&f, taken, stki_prefetch_place(prefetch, slot, 0),
                                    stki_prefetch_place(prefetch, slot, 1));
                    stki_prefetch_guard(prefetch, slot, stream);
                    stki_prefetch_release(prefetch, slot);
                    taken++;
                }
                assert_true(status < 0 && status != STK_E_TIMEOUT);
                assert_true(err.message[0]);
                assert_true(stream ? taken <= BATCHES : taken == bad - 1); /* one copy per batch */
                assert_int_equal(stki_prefetch_next(prefetch, NULL, 60 * STKI_SECOND, &slot, &again), status);
                assert_string_equal(again.message, err.message);
                finish(prefetch, &f);
                stk_stream_destroy(stream);
            }
}

/* The failure is detected while a later batch is being queued. That batch is then not delivered. */
static void no_batch_follows_one_that_was_lost(void **state)
{
    const stki_prefetch_part parts[] = {{.copy_bytes = 257}, {.copy_offset = 512, .copy_bytes = FAKE_SMALL}};
    losing l = {.prefetch = NULL};
    const stki_prefetch_opts opts = {.device = host_device(),
                                     .depth = 3,
                                     .slot_bytes = 1024,
                                     .parts = parts,
                                     .part_count = 2,
                                     .upstream = {&l, losing_next, fake_release, fake_ended}};
    stki_prefetch *prefetch;
    stk_error err;
    int slot;

    (void)state;
    fake_init(&l.f, 5, 3, 257);
    l.f.stall_at = 0;
    assert_ok(stki_prefetch_create(&opts, &prefetch, &err));
    l.prefetch = prefetch;
    fake_wake(&l.f);
    fake_wait_ended(&l.f);
    take(prefetch, &l.f, 0);
    assert_status(stki_prefetch_next(prefetch, NULL, 60 * STKI_SECOND, &slot, &err), STK_E_DEVICE);
    finish(prefetch, &l.f);
    assert_int_equal(l.f.next, 2);
}

/* The last copy fails before anything else is requested: the error is returned before the end. */
static void the_end_waits_for_the_last_copy(void **state)
{
    stk_stream *stream = new_stream();
    stki_prefetch *prefetch;
    stk_error err;
    fake f;
    int slot;

    (void)state;
    fake_init(&f, 1, 1, 5000);
    f.stall_at = 0;
    prefetch = fake_start(&f, 2);
    set_faults(prefetch->copy_stream, (stkt_host_faults){.fail_at = 1, .delay_ns = 20000000});
    fake_wake(&f);
    assert_ok(stki_prefetch_next(prefetch, stream, 60 * STKI_SECOND, &slot, &err));
    stki_prefetch_guard(prefetch, slot, stream);
    stki_prefetch_release(prefetch, slot);
    assert_status(stki_prefetch_next(prefetch, stream, 60 * STKI_SECOND, &slot, &err), STK_E_DEVICE);
    finish(prefetch, &f);
    stk_stream_destroy(stream);
}

/* At the end, settling waits for all copies and reports one that failed. */
static void settling_waits_for_the_copies(void **state)
{
    stk_stream *stream = new_stream();
    stki_prefetch *prefetch;
    stk_error err;
    fake f;
    int slot;

    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        fake_init(&f, 3, 3, 5000);
        f.stall_at = 0;
        prefetch = fake_start(&f, 2);
        assert_ok(stki_prefetch_settle(prefetch, 0, &err));
        set_faults(prefetch->copy_stream, (stkt_host_faults){.delay_ns = STKT_HOST_HOLD});
        stki_lock(&f.lock);
        f.stall_at = 1;
        stki_wake_all(&f.cond);
        stki_unlock(&f.lock);
        assert_ok(stki_prefetch_next(prefetch, stream, 60 * STKI_SECOND, &slot, &err));
        stki_prefetch_guard(prefetch, slot, stream);
        stki_prefetch_release(prefetch, slot);
        assert_status(stki_prefetch_settle(prefetch, 1000000, &err), STK_E_TIMEOUT);
        set_faults(prefetch->copy_stream, (stkt_host_faults){.fail_at = fails});
        if (fails)
            assert_status(stki_prefetch_settle(prefetch, 60 * STKI_SECOND, &err), STK_E_DEVICE);
        else
            assert_ok(stki_prefetch_settle(prefetch, 60 * STKI_SECOND, &err));
        fake_wake(&f);
        finish(prefetch, &f);
    }
    stk_stream_destroy(stream);
}

/* A stream of another device cannot wait for ours. */
static void a_stream_of_another_device_is_refused(void **state)
{
    stki_prefetch *prefetch;
    stk_stream *stream;
    stk_device *other;
    stk_error err;
    fake f;
    int slot;

    (void)state;
    assert_ok(stk_device_find("host:1", &other, &err));
    assert_ok(stk_stream_create(other, &stream, &err));
    fake_init(&f, 2, 2, 100);
    prefetch = fake_start(&f, 2);
    assert_status(stki_prefetch_next(prefetch, stream, 0, &slot, &err), STK_E_BAD_DEVICE);
    take(prefetch, &f, 0);
    assert_ok(stki_prefetch_next(prefetch, NULL, 60 * STKI_SECOND, &slot, &err));
    stki_prefetch_guard(prefetch, slot, stream); /* the host waits for it instead */
    stki_prefetch_release(prefetch, slot);
    assert_int_equal(stki_prefetch_next(prefetch, NULL, 60 * STKI_SECOND, &slot, &err), STK_END);
    finish(prefetch, &f);
    stk_stream_destroy(stream);
}

static void timeouts_name_the_cause_and_do_not_persist(void **state)
{
    stki_prefetch *prefetch;
    stk_error err;
    fake f;
    int slot;

    (void)state;
    fake_init(&f, 2, 2, 100);
    f.stall_at = 1;
    prefetch = fake_start(&f, 2);
    take(prefetch, &f, 0);
    assert_status(stki_prefetch_next(prefetch, NULL, 20000000, &slot, &err), STK_E_TIMEOUT);
    assert_says("no batch has arrived");
    assert_status(stki_prefetch_next(prefetch, NULL, 0, &slot, &err), STK_E_TIMEOUT);
    fake_wake(&f);
    take(prefetch, &f, 1);
    finish(prefetch, &f);
}

/* The consumer is ahead of its blocked stream. A slot may be filled again in stream order before the host has seen that
 * its last copy is done, but only once. */
static void timeouts_name_copies_that_do_not_end(void **state)
{
    stk_stream *stream = new_stream();
    stki_prefetch *prefetch;
    stk_error err;
    fake f;
    int slot;

    (void)state;
    fake_init(&f, 5, 5, 100);
    prefetch = fake_start(&f, 1);
    set_faults(stream, (stkt_host_faults){.delay_ns = STKT_HOST_HOLD});
    for (int i = 0; i < 3; i++) { /* the second batch's copy waits for the stream's use of the first, and so on */
        assert_ok(stki_prefetch_next(prefetch, stream, 60 * STKI_SECOND, &slot, &err));
        assert_ok(stk_stream_spin(stream, 1000, &err));
        stki_prefetch_guard(prefetch, slot, stream);
        stki_prefetch_release(prefetch, slot);
    }
    assert_status(stki_prefetch_next(prefetch, stream, 20000000, &slot, &err), STK_E_TIMEOUT);
    assert_says("2 copies to host of delivered batches are unfinished");
    set_faults(stream, (stkt_host_faults){0});
    for (int i = 3; i < 5; i++)
        take(prefetch, &f, i);
    finish(prefetch, &f);
    stk_stream_destroy(stream);
}

/* ---- close ---- */

/* Row P05: closing works in any state: with no batch taken, some taken, some held, or at the end. Held batches remain
 * valid. */
static void closing_early_loses_nothing(void **state)
{
    (void)state;
    for (int taken = 0; taken <= 5; taken++)
        for (int held = 0; held <= 2; held++) {
            stki_prefetch *prefetch;
            stk_error err;
            int slots[2] = {-1, -1}, slot;
            fake f;

            fake_init(&f, 7, 2, 300);
            prefetch = fake_start(&f, 3);
            for (int i = 0; i < taken; i++)
                take(prefetch, &f, i);
            for (int i = 0; i < held; i++)
                assert_ok(stki_prefetch_next(prefetch, NULL, 60 * STKI_SECOND, &slots[i], &err));
            assert_ok(stki_prefetch_close(prefetch, 60 * STKI_SECOND, &err));
            assert_ok(stki_prefetch_close(prefetch, 0, &err));
            assert_status(stki_prefetch_next(prefetch, NULL, STKI_SECOND, &slot, &err), STK_E_CLOSED);
            for (int i = 0; i < held; i++)
                check_bytes(&f, taken + i, stki_prefetch_place(prefetch, slots[i], 0),
                            stki_prefetch_place(prefetch, slots[i], 1));
            stki_prefetch_destroy(prefetch);
            for (int i = 0; i < held; i++)
                stki_prefetch_release(prefetch, slots[i]);
            assert_true(f.ended);
            assert_int_equal(f.released, f.next);
            fake_fini(&f);
        }
}

/* A copy that does not end is abandoned with the host memory it reads; both are freed when it ends. */
static void closing_does_not_wait_forever(void **state)
{
    stki_prefetch *prefetch;
    stk_stream *copies;
    stk_error err;
    fake f;

    (void)state;
    fake_init(&f, 3, 2, 300);
    f.stall_at = 0;
    prefetch = fake_start(&f, 2);
    copies = prefetch->copy_stream;
    set_faults(copies, (stkt_host_faults){.delay_ns = STKT_HOST_HOLD});
    fake_wake(&f);
    wait_until_copying(prefetch);
    assert_status(stki_prefetch_close(prefetch, 20000000, &err), STK_E_TIMEOUT);
    assert_false(f.ended);
    assert_int_equal(f.released, 0);
    set_faults(copies, (stkt_host_faults){0}); /* the thread still holds its reference */
    stki_prefetch_destroy(prefetch);
    fake_wait_ended(&f);
    assert_int_equal(f.released, f.next);
    fake_fini(&f);
}

/* ---- converting ---- */

enum { ROWS = 8, ROW = 48 };

static stki_convert *u8_to_f32(void)
{
    static const float a = 0.25f, b = -3;
    const stki_convert_desc desc = {.src_dtype = STK_U8,
                                    .dst_dtype = STK_F32,
                                    .ndim = 1,
                                    .shape = {ROW},
                                    .src_strides = {1},
                                    .dst_strides = {4},
                                    .affine = true,
                                    .channel_axis = -1,
                                    .channels = 1,
                                    .a = &a,
                                    .b = &b,
                                    .stores = STKI_STORES_CACHED};
    stki_convert *convert;
    stk_error err;

    assert_ok(stki_convert_create(&desc, &convert, &err));
    return convert;
}

/* Batches of ROWS rows of ROW bytes. The fake counts bytes, so the number of rows is computed here. */
static stk_status rows_next(void *context, int slot, int64_t deadline_ns, stki_prefetch_load *loads, void **held,
                            stk_error *err)
{
    stk_status status = fake_next(context, slot, deadline_ns, loads, held, err);

    if (status == STK_OK)
        loads[0].rows = loads[0].bytes / ROW;
    return status;
}

static void rows_are_converted_on_the_device(void **state)
{
    static float own[3][ROWS * ROW]; /* the caller's memory */
    void *const buffers[] = {own[0], own[1], own[2]};

    (void)state;
    for (int with_buffers = 0; with_buffers < 2; with_buffers++)
        for (int64_t fail_at = 0; fail_at <= 4; fail_at++) {
            stki_convert *convert = u8_to_f32();
            stki_prefetch_part parts[] = {
                {.copy_offset = 0,
                 .copy_bytes = ROWS * ROW,
                 .convert = convert,
                 .src_stride = ROW,
                 .dst_stride = ROW * 4,
                 .offset = 1024,
                 .bytes = ROWS * ROW * 4,
                 .buffers = with_buffers ? buffers : NULL},
                {.copy_offset = ROWS * ROW + FAKE_GAP, .copy_bytes = FAKE_SMALL},
            };
            fake f;
            stki_prefetch_opts opts = {.device = host_device(),
                                       .depth = 3,
                                       .slot_bytes = 1024 + (with_buffers ? 0 : ROWS * ROW * 4),
                                       .part_count = 2,
                                       .parts = parts,
                                       .upstream = {&f, rows_next, fake_release, fake_ended}};
            stki_prefetch *prefetch;
            stk_status status;
            stk_error err;
            int64_t batch = 0;
            int slot;

            fake_init(&f, 5, 2, ROWS * ROW);
            f.short_bytes = 3 * ROW;
            f.stall_at = 0;
            assert_ok(stki_prefetch_create(&opts, &prefetch, &err));
            if (fail_at)
                set_faults(prefetch->convert_stream, (stkt_host_faults){.fail_at = fail_at});
            fake_wake(&f);
            while ((status = stki_prefetch_next(prefetch, NULL, 60 * STKI_SECOND, &slot, &err)) == STK_OK) {
                const float *rows = stki_prefetch_place(prefetch, slot, 0);

                if (with_buffers)
                    assert_ptr_equal(rows, buffers[slot]);
                for (int64_t i = 0; i < fake_length(&f, batch); i++)
                    assert_true(rows[i] == (float)(unsigned char)fake_byte(batch, 0, i) * 0.25f - 3);
                stki_prefetch_release(prefetch, slot);
                batch++;
            }
            assert_int_equal(status, fail_at ? STK_E_DEVICE : STK_END);
            assert_int_equal(batch, fail_at ? fail_at - 1 : 5);
            finish(prefetch, &f);
            stki_convert_destroy(convert);
        }
}

/* If the caller has memory for a part, the part is copied there, and its address does not change. */
static void parts_are_copied_to_the_callers_memory(void **state)
{
    static char own[2][512];
    void *const buffers[] = {own[0], own[1]};
    const stki_prefetch_part parts[] = {{.copy_bytes = 500, .buffers = buffers},
                                        {.copy_offset = 0, .copy_bytes = FAKE_SMALL}};
    fake f;
    const stki_prefetch_opts opts = {.device = host_device(),
                                     .depth = 2,
                                     .slot_bytes = FAKE_SMALL,
                                     .part_count = 2,
                                     .parts = parts,
                                     .upstream = {&f, fake_next, fake_release, fake_ended}};
    stki_prefetch *prefetch;
    stk_error err;

    (void)state;
    fake_init(&f, 9, 2, 500);
    assert_ok(stki_prefetch_create(&opts, &prefetch, &err));
    assert_ptr_equal(stki_prefetch_place(prefetch, 1, 0), own[1]);
    for (int64_t i = 0; i < 9; i++)
        take(prefetch, &f, i);
    finish(prefetch, &f);
}

/* ---- create ---- */

static void create_survives_every_failed_allocation(void **state)
{
    stki_convert *convert = u8_to_f32();
    stki_prefetch_part parts[] = {{.copy_bytes = ROWS * ROW,
                                   .convert = convert,
                                   .src_stride = ROW,
                                   .dst_stride = ROW * 4,
                                   .offset = 1024,
                                   .bytes = ROWS * ROW * 4},
                                  {.copy_offset = ROWS * ROW + FAKE_GAP, .copy_bytes = FAKE_SMALL}};
    stk_status status = STK_E_MEMORY;

    (void)state;
    for (int64_t n = 1; status != STK_OK; n++) {
        fake f;
        stki_prefetch_opts opts = {.device = host_device(),
                                   .depth = 2,
                                   .slot_bytes = 1024 + ROWS * ROW * 4,
                                   .part_count = 2,
                                   .parts = parts,
                                   .upstream = {&f, rows_next, fake_release, fake_ended}};
        stki_prefetch *prefetch = NULL;
        stk_error err = {0};

        assert_true(n < 200);
        fake_init(&f, 2, 2, ROWS * ROW);
        f.stall_at = 0;
        stki_memory_fail_at(n);
        status = stki_prefetch_create(&opts, &prefetch, &err);
        stki_memory_fail_at(0);
        if (status == STK_OK) {
            finish(prefetch, &f);
        } else {
            assert_int_equal(status, STK_E_MEMORY);
            assert_true(err.message[0]);
            fake_fini(&f);
        }
    }
    stki_convert_destroy(convert);
}

static void create_rejects_invalid_options(void **state)
{
    fake f;
    stki_prefetch_part parts[] = {{.copy_bytes = 100}, {.copy_offset = 100, .copy_bytes = 24}};
    stki_prefetch_opts opts = {.device = host_device(),
                               .depth = 0,
                               .slot_bytes = 124,
                               .part_count = 2,
                               .parts = parts,
                               .upstream = {&f, fake_next, fake_release, NULL}};
    stki_prefetch *prefetch;
    stk_error err;

    (void)state;
    assert_status(stki_prefetch_create(&opts, &prefetch, &err), STK_E_BAD_ARG);
    opts.depth = STKI_PREFETCH_MAX_DEPTH + 1;
    assert_status(stki_prefetch_create(&opts, &prefetch, &err), STK_E_BAD_ARG);
    opts.depth = 2;
    opts.part_count = 0;
    assert_status(stki_prefetch_create(&opts, &prefetch, &err), STK_E_BAD_ARG);
    opts.part_count = 2;
    opts.slot_bytes = 123;
    assert_status(stki_prefetch_create(&opts, &prefetch, &err), STK_E_BAD_ARG);
    assert_says("part 1");
}

/* Copy time during which the consumer waits is exposed; all other copy time is hidden. */
static void exposed_time_is_the_wait_of_the_consumer(void **state)
{
    stk_stream *stream = new_stream();
    stki_prefetch_stats stats;
    stki_prefetch *prefetch;
    stk_error err;
    fake f;
    int slot;

    (void)state;
    for (int early = 0; early < 2; early++) {
        fake_init(&f, 1, 1, 5000);
        f.stall_at = 0;
        prefetch = fake_start(&f, 2);
        set_faults(prefetch->copy_stream, (stkt_host_faults){.delay_ns = early ? STKT_HOST_HOLD : 1000000});
        fake_wake(&f);
        if (!early)
            do { /* until the batch has been copied and counted */
                stki_sleep_ns(100000);
                stki_prefetch_read_stats(prefetch, &stats);
            } while (stats.batches == 0);
        assert_ok(stki_prefetch_next(prefetch, stream, 60 * STKI_SECOND, &slot, &err));
        assert_ok(stk_event_synchronize(stki_prefetch_newest(&prefetch->slots[slot])->reached, 60 * STKI_SECOND, &err));
        set_faults(prefetch->copy_stream, (stkt_host_faults){0});
        stki_prefetch_guard(prefetch, slot, stream);
        stki_prefetch_release(prefetch, slot);
        assert_int_equal(stki_prefetch_next(prefetch, stream, 60 * STKI_SECOND, &slot, &err), STK_END);
        stki_prefetch_read_stats(prefetch, &stats);
        assert_true(stats.copy_ns > 0);
        assert_true(early ? stats.exposed_ns > 0 : stats.exposed_ns == 0);
        assert_true(stats.exposed_ns <= stats.copy_ns);
        finish(prefetch, &f);
    }
    stk_stream_destroy(stream);
}

static int leave_no_faults(void **state)
{
    (void)state;
    no_faults();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p01_all_batches_are_delivered_for_every_depth),
        cmocka_unit_test(g01_host_memory_outlives_its_copy),
        cmocka_unit_test(host_memory_is_kept_while_the_copy_is_held),
        cmocka_unit_test(g02_the_consumers_stream_waits_for_the_copy),
        cmocka_unit_test(g03_a_slot_waits_for_the_stream_that_released_it),
        cmocka_unit_test(a_slot_also_waits_for_guarding_streams),
        cmocka_unit_test(held_slots_are_left_alone),
        cmocka_unit_test(g07_a_short_batch_copies_only_its_rows),
        cmocka_unit_test(errors_of_the_source_keep_their_position),
        cmocka_unit_test(p04_a_failed_copy_is_an_error),
        cmocka_unit_test(no_batch_follows_one_that_was_lost),
        cmocka_unit_test(the_end_waits_for_the_last_copy),
        cmocka_unit_test(settling_waits_for_the_copies),
        cmocka_unit_test(a_stream_of_another_device_is_refused),
        cmocka_unit_test(timeouts_name_the_cause_and_do_not_persist),
        cmocka_unit_test(timeouts_name_copies_that_do_not_end),
        cmocka_unit_test(closing_early_loses_nothing),
        cmocka_unit_test(closing_does_not_wait_forever),
        cmocka_unit_test(rows_are_converted_on_the_device),
        cmocka_unit_test(parts_are_copied_to_the_callers_memory),
        cmocka_unit_test(create_survives_every_failed_allocation),
        cmocka_unit_test(create_rejects_invalid_options),
        cmocka_unit_test(exposed_time_is_the_wait_of_the_consumer),
    };

    return cmocka_run_group_tests(tests, NULL, leave_no_faults);
}
