/* stki-threads */
/* Tests of the prefetcher on the device named by STOKER_TEST_DEVICE (host, cuda:0, …; default: host), delayed by spins
 * in its streams: the tests of test_prefetch.c that work without the host device's faults. */
#include "device_hold.h"
#include "prefetch_fake.h"

enum { ROWS = 32, ROW = 768, FLOATS = ROWS * ROW };

static stk_error err;
static stk_device *device;
static stki_prefetch *running; /* the one whose copies are delayed */
static int64_t delay_ns;

/* Queues a spin before the copy of the batch. */
static stk_status slow_next(void *context, int slot, int64_t deadline_ns, stki_prefetch_load *loads, void **held,
                            stk_error *error)
{
    stk_status status = fake_next(context, slot, deadline_ns, loads, held, error);

    if (status == STK_OK && delay_ns > 0)
        assert_ok(stk_stream_spin(running->copy_stream, delay_ns, &err));
    loads[0].rows = loads[0].bytes / ROW;
    return status;
}

/* Pinned host buffers with two parts that are copied together; with `convert`, the device converts the first part to
 * f32. */
static void start(fake *f, int64_t batches, int buffers, int depth, const stki_convert *convert)
{
    stki_prefetch_part parts[] = {{.copy_bytes = ROWS * ROW,
                                   .convert = convert,
                                   .src_stride = ROW,
                                   .dst_stride = ROW * 4,
                                   .offset = 32768,
                                   .bytes = FLOATS * 4},
                                  {.copy_offset = ROWS * ROW + FAKE_GAP, .copy_bytes = FAKE_SMALL}};
    const stki_prefetch_opts opts = {.device = device,
                                     .depth = depth,
                                     .slot_bytes = 32768 + FLOATS * 4,
                                     .part_count = 2,
                                     .parts = parts,
                                     .upstream = {f, slow_next, fake_release, fake_ended}};

    fake_init(f, batches, buffers, ROWS * ROW);
    for (int i = 0; i < buffers; i++) {
        void *block;

        free(f->memory[i]);
        assert_ok(device->ops->alloc_pinned(device, ROWS * ROW + FAKE_GAP + FAKE_SMALL, &block, &err));
        f->memory[i] = block;
    }
    f->stall_at = 0; /* the source delivers no batch before `running` is set */
    assert_ok(stki_prefetch_create(&opts, &running, &err));
    fake_wake(f);
}

static void finish(fake *f)
{
    assert_ok(stki_prefetch_close(running, 60 * STKI_SECOND, &err));
    stki_prefetch_destroy(running);
    assert_int_equal(f->released, f->next);
    for (int i = 0; i < f->buffers; i++) {
        device->ops->free_pinned(device, f->memory[i], ROWS * ROW + FAKE_GAP + FAKE_SMALL);
        f->memory[i] = NULL;
    }
    fake_fini(f);
    delay_ns = 0;
}

static stk_stream *new_stream(void)
{
    stk_stream *stream;

    assert_ok(stk_stream_create(device, &stream, &err));
    return stream;
}

/* Where a stream copies batches, as a kernel would read them. */
typedef struct readings {
    char *memory;
    int64_t each, bytes;
} readings;

static readings new_readings(int64_t batches)
{
    readings r = {.each = ROWS * ROW + FAKE_SMALL};
    void *block;

    r.bytes = r.each * batches;
    assert_ok(device->ops->alloc_pinned(device, r.bytes, &block, &err));
    r.memory = block;
    memset(block, 0, (size_t)r.bytes);
    return r;
}

static void read_slot(const readings *r, int64_t number, int slot, stk_stream *stream)
{
    char *to = r->memory + number * r->each;

    assert_ok(
        device->ops->copy(device, to, false, stki_prefetch_place(running, slot, 0), true, ROWS * ROW, stream, &err));
    assert_ok(device->ops->copy(device, to + ROWS * ROW, false, stki_prefetch_place(running, slot, 1), true, FAKE_SMALL,
                                stream, &err));
}

static void check_readings(const readings *r, const fake *f, int64_t batches)
{
    for (int64_t i = 0; i < batches; i++)
        check_bytes(f, i, r->memory + i * r->each, r->memory + i * r->each + ROWS * ROW);
    device->ops->free_pinned(device, r->memory, r->bytes);
}

/* Row G01: a ring of two host buffers that are overwritten on release, with slow copies: no wrong byte in 1000
 * batches. */
static void g01_host_memory_outlives_its_copy(void **state)
{
    enum { BATCHES = 1000 };
    stk_stream *stream = new_stream();
    readings r = new_readings(BATCHES);
    fake f;
    int slot;

    (void)state;
    delay_ns = 100000;
    start(&f, BATCHES, 2, 4, NULL);
    for (int64_t i = 0; i < BATCHES; i++) {
        assert_ok(stki_prefetch_next(running, stream, 60 * STKI_SECOND, &slot, &err));
        read_slot(&r, i, slot, stream);
        stki_prefetch_guard(running, slot, stream);
        stki_prefetch_release(running, slot);
    }
    assert_ok(stk_stream_synchronize(stream, 60 * STKI_SECOND, &err));
    assert_int_equal(stki_prefetch_next(running, stream, 60 * STKI_SECOND, &slot, &err), STK_END);
    check_readings(&r, &f, BATCHES);
    finish(&f);
    stk_stream_destroy(stream);
}

/* Row G02: the copy comes after a long spin, and the consumer's stream requests the batch immediately. */
static void g02_the_consumers_stream_waits_for_the_copy(void **state)
{
    stk_stream *stream = new_stream();
    readings r = new_readings(1);
    fake f;
    int slot;

    (void)state;
    delay_ns = 200000000;
    start(&f, 1, 1, 2, NULL);
    assert_ok(stki_prefetch_next(running, stream, 60 * STKI_SECOND, &slot, &err));
    read_slot(&r, 0, slot, stream);
    stki_prefetch_guard(running, slot, stream);
    stki_prefetch_release(running, slot);
    assert_ok(stk_stream_synchronize(stream, 60 * STKI_SECOND, &err));
    check_readings(&r, &f, 1);
    finish(&f);
    stk_stream_destroy(stream);
}

/* Row G03: slots are released immediately, while the stream that reads them is far behind. */
static void g03_a_slot_waits_for_the_stream_that_released_it(void **state)
{
    enum { BATCHES = 24 };

    (void)state;
    for (int depth = 1; depth <= 3; depth++) {
        stk_stream *stream = new_stream();
        readings r = new_readings(BATCHES);
        fake f;
        int slot;

        start(&f, BATCHES, BATCHES, depth, NULL);
        for (int64_t i = 0; i < BATCHES; i++) {
            assert_ok(stki_prefetch_next(running, stream, 60 * STKI_SECOND, &slot, &err));
            assert_ok(stk_stream_spin(stream, 2000000, &err));
            read_slot(&r, i, slot, stream);
            stki_prefetch_guard(running, slot, stream);
            stki_prefetch_release(running, slot);
        }
        assert_ok(stk_stream_synchronize(stream, 60 * STKI_SECOND, &err));
        check_readings(&r, &f, BATCHES);
        finish(&f);
        stk_stream_destroy(stream);
    }
}

/* Row P01, with a consumer without a stream, for which the host waits: for any depth, every batch arrives, and the end
 * follows the last one. */
static void p01_all_batches_are_delivered_for_every_depth(void **state)
{
    (void)state;
    for (int depth = 1; depth <= 8; depth++) {
        readings r = new_readings(13);
        fake f;
        int slot;

        start(&f, 13, 3, depth, NULL);
        for (int64_t i = 0; i < 13; i++) {
            assert_ok(stki_prefetch_next(running, NULL, 60 * STKI_SECOND, &slot, &err));
            read_slot(&r, i, slot, NULL);
            stki_prefetch_release(running, slot);
        }
        assert_int_equal(stki_prefetch_next(running, NULL, 60 * STKI_SECOND, &slot, &err), STK_END);
        check_readings(&r, &f, 13);
        finish(&f);
    }
}

/* The rows that the device converts in its second stream must equal those that the CPU converts. */
static void rows_are_converted_on_the_device(void **state)
{
    static const float a[] = {0.25f, 0.5f, 2}, b[] = {-3, 1, 0.125f};
    const stki_convert_desc desc = {.src_dtype = STK_U8,
                                    .dst_dtype = STK_F32,
                                    .ndim = 2, /* pixels of three channels to planes */
                                    .shape = {3, ROW / 3},
                                    .src_strides = {1, 3},
                                    .dst_strides = {ROW / 3 * 4, 4},
                                    .affine = true,
                                    .channel_axis = 0,
                                    .channels = 3,
                                    .a = a,
                                    .b = b,
                                    .stores = STKI_STORES_CACHED};
    static float rows[FLOATS], expected[ROW];
    stki_convert *convert;
    stk_stream *stream = new_stream();
    void *block;
    fake f;
    int slot;

    (void)state;
    assert_ok(stki_convert_create(&desc, &convert, &err));
    assert_ok(device->ops->alloc_pinned(device, sizeof rows, &block, &err));
    start(&f, 20, 2, 2, convert);
    for (int64_t i = 0; i < 20; i++) {
        assert_ok(stki_prefetch_next(running, stream, 60 * STKI_SECOND, &slot, &err));
        assert_ok(device->ops->copy(device, block, false, stki_prefetch_place(running, slot, 0), true, sizeof rows,
                                    stream, &err));
        stki_prefetch_guard(running, slot, stream);
        stki_prefetch_release(running, slot);
        assert_ok(stk_stream_synchronize(stream, 60 * STKI_SECOND, &err));
        for (int64_t row = 0; row < ROWS; row++) {
            unsigned char sample[ROW];

            for (int64_t k = 0; k < ROW; k++)
                sample[k] = (unsigned char)fake_byte(i, 0, row * ROW + k);
            stki_convert_run(convert, expected, sample);
            assert_memory_equal((char *)block + row * ROW * 4, expected, sizeof expected);
        }
    }
    finish(&f);
    device->ops->free_pinned(device, block, sizeof rows);
    stki_convert_destroy(convert);
    stk_stream_destroy(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p01_all_batches_are_delivered_for_every_depth),
        cmocka_unit_test(g01_host_memory_outlives_its_copy),
        cmocka_unit_test(g02_the_consumers_stream_waits_for_the_copy),
        cmocka_unit_test(g03_a_slot_waits_for_the_stream_that_released_it),
        cmocka_unit_test(rows_are_converted_on_the_device),
    };

    device = stkt_device();
    if (!device)
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
