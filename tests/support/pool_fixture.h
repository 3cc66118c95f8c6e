/* pool_fixture.h: setup and teardown for tests of the caching pool: two new pools on a fake device before each test,
 * which are checked and destroyed after it. */
#ifndef STKT_POOL_FIXTURE_H
#define STKT_POOL_FIXTURE_H

#include "caching_pool.h"
#include "fake_device.h"
#include "pool_check.h"
#include "stk_test.h"

#define KIB (INT64_C(1) << 10)
#define MIB (INT64_C(1) << 20)

static fake_device fake;
static stki_pool *pool, *pinned;

static inline int setup(void **unused)
{
    stk_error err;

    (void)unused;
    fake_init(&fake, "fake");
    assert_ok(stki_caching_pools_attach(&fake.base, &err));
    pool = fake.base.pool;
    pinned = fake.base.pinned_pool;
    pool_set_patience(pool, 0);
    pool_set_patience(pinned, 0);
    return 0;
}

static inline int teardown(void **unused)
{
    (void)unused;
    pool_check(pool);
    pool_check(pinned);
    stki_caching_pools_detach(&fake.base);
    assert_int_equal(stki_counted(&fake.reserved_bytes), 0);
    assert_int_equal(stki_counted(&fake.events), 0);
    fake_fini(&fake);
    return 0;
}

static inline char *get_from(stki_pool *from, int64_t bytes, stk_stream *stream)
{
    void *block = NULL;
    stk_error err;

    assert_ok(from->ops->alloc(from, bytes, stream, &block, &err));
    assert_non_null(block);
    return block;
}

static inline char *get(int64_t bytes, stk_stream *stream)
{
    return get_from(pool, bytes, stream);
}

static inline void put(void *block, int64_t bytes)
{
    pool->ops->free(pool, block, bytes);
}

static inline stk_device_memory_stats stats_of(stki_pool *of)
{
    stk_device_memory_stats stats;

    of->ops->stats(of, &stats);
    return stats;
}

static inline stk_stream *new_stream(void)
{
    stk_stream *stream;
    stk_error err;

    assert_ok(stk_stream_create(&fake.base, &stream, &err));
    return stream;
}

static inline void empty(stki_pool *which)
{
    stk_error err;

    assert_ok(which->ops->empty(which, &err));
}

static inline int64_t reserved(void)
{
    int64_t both = stats_of(pool).reserved_bytes + stats_of(pinned).reserved_bytes;

    assert_int_equal(both, stki_counted(&fake.reserved_bytes));
    return both;
}

#define POOL_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
