/* Tests of the reports of a caching pool: statistics, the error message, snapshot, summary and holders of memory, and
 * what of this is visible through the public API. */
#include "faults.h"
#include "host_faults.h"
#include "pool_fixture.h"
#include "profile_scope.h"
#include "test_device.h"
#include <jansson.h>
#include <stoker/stoker.h>

static void test_statistics(void **unused)
{
    stk_device_memory_stats stats = {.struct_size = sizeof stats};
    char *a = get(1000, NULL), *b = get(600 * KIB, NULL), *c = get(300 * KIB, NULL), *d = get(12 * MIB - 512, NULL);
    stk_error err;

    (void)unused;
    put(b, 600 * KIB);
    assert_ok(stk_device_get_memory_stats(&fake.base, STK_MEMORY_DEVICE, &stats, &err));
    assert_int_equal(stats.allocated_bytes, 1000 + 300 * KIB + 12 * MIB - 512);
    assert_int_equal(stats.allocated_peak, 1000 + 900 * KIB + 12 * MIB - 512);
    assert_int_equal(stats.active_bytes, 1024 + 300 * KIB + 12 * MIB);
    assert_int_equal(stats.active_peak, 1024 + 900 * KIB + 12 * MIB);
    assert_int_equal(stats.reserved_bytes, 14 * MIB);
    assert_int_equal(stats.largest_free, 2 * MIB - 1024 - 900 * KIB);
    assert_int_equal(stats.split_bytes, 2 * MIB - 1024 - 300 * KIB);
    assert_int_equal(stats.largest_bytes, 12 * MIB - 512);
    assert_int_equal(stats.blocks, 3);
    assert_int_equal(stats.segments, 2);
    assert_int_equal(stats.allocations, 4);
    assert_int_equal(stats.driver_allocations, 2);
    assert_true(stats.fragmentation > 600.0 / (2048 - 301) - 1e-9 && stats.fragmentation < 600.0 / (2048 - 301) + 1e-9);
    put(d, 12 * MIB - 512);
    stk_device_reset_memory_peaks(&fake.base);
    stats = stats_of(pool);
    assert_int_equal(stats.allocated_peak, 1000 + 300 * KIB);
    assert_int_equal(stats.active_peak, 1024 + 300 * KIB);
    assert_int_equal(stats.reserved_peak, 14 * MIB);
    assert_int_equal(stats.blocks, 2);
    put(a, 1000);
    put(c, 300 * KIB);
}

static void test_message(void **unused)
{
    char *blocks[4], *split;
    stk_error err;
    void *out;

    (void)unused;
    stk_tag_push("net.c:10");
    blocks[0] = get(100 * MIB, NULL);
    blocks[1] = get(20 * MIB, NULL);
    stk_tag_pop();
    stk_tag_push("opt.c:7");
    blocks[2] = get(64 * MIB, NULL);
    stk_tag_pop();
    stk_tag_push("tiny");
    get(1000, NULL);
    stk_tag_pop();
    split = get(2 * MIB, NULL);
    blocks[3] = get(6 * MIB, NULL);
    put(blocks[3], 6 * MIB);
    stki_count_set(&fake.limit_bytes, 210 * MIB);
    assert_status(pool->ops->alloc(pool, 25 * MIB, NULL, &out, &err), STK_E_MEMORY);
    assert_string_equal(err.message,
                        "fake: out of device memory: requested 25.00 MiB; allocated 186.00 MiB, reserved 206.00 "
                        "MiB, free in the cache 20.00 MiB (largest block 18.00 MiB), 20.00 MiB of it in partly used "
                        "segments; the driver: fakeMalloc: no more; held: 120.00 MiB by net.c:10, 64.00 "
                        "MiB by opt.c:7, 2.00 MiB by (no tag)");
    assert_int_equal(stats_of(pool).out_of_memory, 1);
    stki_count_set(&fake.limit_bytes, 0);
    put(blocks[1], 20 * MIB);
    put(get(20 * MIB, NULL), 20 * MIB);
    {
        stk_stream *other = new_stream();
        fake_queue(other, 1);
        assert_status(pool->ops->alloc(pool, 19 * MIB, other, &out, &err), STK_E_MEMORY);
        assert_status(pool->ops->alloc(pool, 17 * MIB, other, &out, &err), STK_E_MEMORY);
        assert_says("there is enough free memory, but it is fragmented or belongs to other streams");
    }
    assert_status(pool->ops->alloc_exact(pool, 30, &out, &err), STK_E_MEMORY);
    assert_says("requested 30 B exactly");
    assert_status(pool->ops->alloc(pool, INT64_MAX - 3, NULL, &out, &err), STK_E_MEMORY);
    assert_says("no device has that much memory");
    assert_status(pinned->ops->alloc(pinned, 5, NULL, &out, &err), STK_E_MEMORY);
    assert_says("fake: out of pinned memory: requested 5 B");
    stki_count_set(&fake.broken, 1);
    assert_status(pool->ops->alloc(pool, 500 * MIB, NULL, &out, &err), STK_E_DEVICE); /* not a lack of memory */
    assert_string_equal(err.message, "the fake device is broken");
    put(split, 2 * MIB);
}

/* ---- reports ---- */

static const char *string_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static int64_t integer_of(const json_t *object, const char *name)
{
    assert_true(json_is_integer(json_object_get(object, name)));
    return json_integer_value(json_object_get(object, name));
}

static void test_snapshot(void **unused)
{
    stk_stream *stream = new_stream(), *other = new_stream();
    char *tagged, *waiting, *text;
    json_t *root, *part, *segments, *blocks;
    stk_error err;

    (void)unused;
    stk_tag_push("say \"hi\"");
    tagged = get(700, stream);
    stk_tag_pop();
    waiting = get(3000, stream);
    fake_queue(other, 1);
    pool->ops->record_stream(pool, waiting, other);
    pool->ops->record_stream(pool, tagged, other);
    put(waiting, 3000);
    (void)get_from(pinned, 5 * MIB, stream);
    assert_ok(stk_device_memory_snapshot(&fake.base, &text, &err));
    root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    stk_text_free(text);
    assert_non_null(root);
    assert_int_equal(integer_of(root, "schema"), 1);
    part = json_object_get(root, "device_memory");
    assert_string_equal(string_of(part, "device"), "fake");
    assert_string_equal(string_of(part, "kind"), "device");
    assert_int_equal(integer_of(json_object_get(part, "stats"), "allocated_bytes"), 700);
    assert_int_equal(integer_of(json_object_get(part, "stats"), "active_bytes"), 1024 + 3072);
    segments = json_object_get(part, "segments");
    assert_int_equal(json_array_size(segments), 1);
    assert_string_equal(string_of(json_array_get(segments, 0), "class"), "small");
    assert_int_equal(integer_of(json_array_get(segments, 0), "bytes"), 2 * MIB);
    assert_non_null(string_of(json_array_get(segments, 0), "stream"));
    blocks = json_object_get(json_array_get(segments, 0), "blocks");
    assert_int_equal(json_array_size(blocks), 3);
    assert_string_equal(string_of(json_array_get(blocks, 0), "state"), "used");
    assert_string_equal(string_of(json_array_get(blocks, 0), "tag"), "say \"hi\"");
    assert_int_equal(integer_of(json_array_get(blocks, 0), "asked_bytes"), 700);
    assert_int_equal(integer_of(json_array_get(blocks, 0), "other_streams"), 1);
    assert_string_equal(string_of(json_array_get(blocks, 1), "state"), "waiting");
    assert_int_equal(integer_of(json_array_get(blocks, 1), "events"), 1);
    assert_string_equal(string_of(json_array_get(blocks, 2), "state"), "free");
    assert_int_equal(integer_of(json_array_get(blocks, 2), "offset_bytes"), 4096);
    assert_int_equal(integer_of(json_array_get(blocks, 2), "bytes"), 2 * MIB - 4096);
    part = json_object_get(root, "pinned_memory");
    assert_string_equal(string_of(part, "kind"), "pinned");
    assert_true(json_is_null(json_object_get(json_array_get(json_object_get(part, "segments"), 0), "stream")));
    assert_string_equal(string_of(json_array_get(json_object_get(part, "segments"), 0), "class"), "large");
    json_decref(root);
    assert_status(stk_device_memory_snapshot(NULL, &text, &err), STK_E_UNSUPPORTED);
    for (int64_t n = 1, ok = 0; !ok; n++) {
        stki_memory_fail_at(n);
        ok = stk_device_memory_snapshot(&fake.base, &text, &err) == STK_OK;
        stki_memory_fail_at(0);
        assert_true(n < 100);
    }
    stk_text_free(text);
}

static void test_summary(void **unused)
{
    char *text;
    stk_error err;

    (void)unused;
    stk_tag_push("weights");
    (void)get(3 * MIB, NULL);
    stk_tag_pop();
    (void)get(1000, NULL);
    put(get(5 * MIB, NULL), 5 * MIB);
    assert_ok(pool->ops->summary(pool, &text, &err));
    assert_string_equal(
        text, "fake, device memory         now         peak\n"
              "allocated              3.00 MiB     8.00 MiB  requested and in use\n"
              "active                 3.00 MiB     8.00 MiB  blocks in use, and freed ones that wait for streams\n"
              "reserved              22.00 MiB    22.00 MiB  taken from the driver\n"
              "free in the cache     19.00 MiB               10.5 % of it outside the largest block\n"
              "split                 19.00 MiB               free in partly used segments: cannot be returned\n"
              "blocks: 2, segments: 2, allocations: 3 (by the driver: 2), segments returned: 0, retries: 0, "
              "failures: 0\n"
              "\n"
              "segments                 number         used      waiting         free\n"
              "small                         1     1.00 KiB          0 B     2.00 MiB\n"
              "medium                        1     3.00 MiB          0 B    17.00 MiB\n"
              "\n"
              "held by                   bytes       blocks\n"
              "weights                3.00 MiB            1\n"
              "(no tag)                 1000 B            1\n");
    stk_text_free(text);
    assert_ok(stk_device_memory_summary(&fake.base, &text, &err));
    assert_non_null(strstr(text, "fake, pinned memory"));
    stk_text_free(text);
    assert_status(stk_device_memory_summary(NULL, &text, &err), STK_E_UNSUPPORTED);
}

/* Many tags come and go, names that are too long are truncated, and the largest ones are found among hundreds. */
static void test_tags(void **unused)
{
    const stki_pool_tag *top[3];
    char *blocks[300], name[128];

    (void)unused;
    memset(name, 'x', 100);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 300; i++) {
            snprintf(name + (i % 7 == 0 ? 100 : 0), 20, "tag %d", i);
            stk_tag_push(name);
            blocks[i] = get(512 * (1 + i), NULL);
            stk_tag_pop();
            memset(name, 'x', 100);
        }
        pool_check(pool);
        assert_int_equal(stki_pool_tags_top(stki_caching_pool_of(pool), top, 3), 3);
        assert_int_equal(strlen(top[0]->text), 63); /* the long names are equal once they are truncated */
        assert_int_equal(top[0]->blocks, 43);
        assert_string_equal(top[1]->text, "tag 299");
        assert_string_equal(top[2]->text, "tag 298");
        for (int i = 0; i < 300; i++)
            put(blocks[i], 512 * (1 + i));
        assert_int_equal(stki_pool_tags_top(stki_caching_pool_of(pool), top, 3), 0);
    }
}

static void make_zeros(stk_device *device, int64_t count, stk_tensor *out)
{
    stk_error err;

    assert_ok(stk_tensor_zeros(STK_F32, 1, &count, device, out, &err));
}

/* Tensors of a device with pools, seen through the public API. */
static void test_tensors(void **unused)
{
    stk_device *device = stki_device_test();
    stk_memory_row rows[32];
    stk_tensor a, b;
    int seen = 0, count;
    char *text;
    void *first;
    stk_error err;

    (void)unused;
    assert_ok(stki_caching_pools_attach(device, &err));
    stk_profile_start();
    make_zeros(device, 1000, &a);
    make_zeros(device, 2000, &b);
    stk_profile_stop();
    first = a.data;
    count = stk_memory_read(rows, 32);
    for (int i = 0; i < count; i++) {
        if (strcmp(rows[i].device, "test") != 0)
            continue;
        seen++;
        if (strcmp(rows[i].kind, "device") != 0)
            continue;
        assert_int_equal(rows[i].allocated_bytes, 12000);
        assert_int_equal(rows[i].reserved_bytes, 2 * MIB);
        assert_int_equal(rows[i].peak_bytes, 12000);
        assert_int_equal(rows[i].largest_bytes, 8000);
        assert_int_equal(rows[i].blocks, 2);
        assert_int_equal(rows[i].allocations, 2);
    }
    assert_int_equal(seen, 2);
    assert_ok(stk_device_memory_snapshot(device, &text, &err));
    assert_non_null(strstr(text, "\"tag\": \"zeros\"")); /* without a tag, the operation, known while profiling */
    stk_text_free(text);
    stk_tensor_release(&a);
    make_zeros(device, 900, &a);
    assert_ptr_equal(a.data, first);
    stk_tensor_release(&a);
    stk_tensor_release(&b);
    stk_memory_reset_peaks();
    assert_int_equal(stats_of(device->pool).allocated_peak, 0);
    assert_ok(stk_device_empty_cache(device, &err));
    assert_int_equal(stats_of(device->pool).reserved_bytes, 0);
    stki_caching_pools_detach(device);
}

/* The host device has pools: released memory is reused, but not while a stream still works on it. */
static void test_host_device(void **unused)
{
    stk_device *device = NULL;
    stk_device_memory_stats stats = {.struct_size = sizeof stats};
    stk_stream *stream;
    stk_tensor a, b, c;
    void *first;
    stk_error err;

    (void)unused;
    assert_ok(stk_device_find("host:3", &device, &err));
    assert_ok(stk_stream_create(device, &stream, &err));
    make_zeros(device, 5000, &a);
    first = a.data;
    stk_tensor_release(&a);
    make_zeros(device, 5000, &a);
    assert_ptr_equal(a.data, first);
    /* Allocated for the NULL stream, written in another one and released: not reused before that is done. */
    make_zeros(device, 5000, &b);
    stkt_host_set_faults(device, stream, &(stkt_host_faults){.delay_ns = STKT_HOST_HOLD});
    assert_ok(stk_tensor_copy_on(&a, &b, stream, true, &err));
    stk_tensor_release(&a);
    make_zeros(device, 5000, &c);
    assert_ptr_not_equal(c.data, first);
    stk_tensor_release(&c);
    stkt_host_set_faults(device, stream, NULL);
    assert_ok(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err));
    make_zeros(device, 5000, &c);
    assert_ptr_equal(c.data, first);
    stk_tensor_release(&b);
    stk_tensor_release(&c);
    assert_ok(stk_device_get_memory_stats(device, STK_MEMORY_DEVICE, &stats, &err));
    assert_int_equal(stats.allocated_bytes, 0);
    assert_int_equal(stats.reserved_bytes, 2 * MIB);
    assert_ok(stk_device_synchronize(device, &err)); /* processes what was recorded at the release */
    stk_stream_destroy(stream);
    assert_ok(stk_device_empty_cache(device, &err));
    assert_ok(stk_device_get_memory_stats(device, STK_MEMORY_DEVICE, &stats, &err));
    assert_int_equal(stats.reserved_bytes, 0);
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        POOL_TEST(test_statistics),
        POOL_TEST(test_message),
        POOL_TEST(test_snapshot),
        POOL_TEST(test_summary),
        POOL_TEST(test_tags),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_host_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
