/* stki-threads */
/* Tests of the cache of decoded chunks: each chunk is decoded by one thread, the budget is kept, and chunks that have
 * served all their samples are evicted first. */
#include "allocate.h"
#include "chunk_cache.h"
#include "cmocka_all.h"
#include "error.h"
#include "faults.h"
#include "thread.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 4096 };

static stk_error err;
static stki_counter fills, slow_ns, fail_from;

static stk_status fill(const void *context, int64_t number, void *to, stk_error *error)
{
    int64_t n;

    (void)context;
    n = atomic_fetch_add(&fills, 1);
    if (stki_counted(&slow_ns) > 0)
        stki_sleep_ns(stki_counted(&slow_ns));
    if (stki_counted(&fail_from) > 0 && n >= stki_counted(&fail_from) - 1)
        return stki_fail(error, STK_E_CORRUPT, "chunk %d is broken", (int)number);
    memset(to, (int)(number % 251), BYTES);
    return STK_OK;
}

static stki_chunk_user *new_user(int64_t chunks)
{
    stki_chunk_user *user;

    stki_count_set(&fills, 0);
    stki_count_set(&slow_ns, 0);
    stki_count_set(&fail_from, 0);
    assert_int_equal(stki_chunk_user_create(chunks * BYTES, BYTES, &user, &err), STK_OK);
    return user;
}

static stk_storage *get(stki_chunk_user *user, int64_t number, int64_t uses)
{
    stk_storage *out = NULL;

    if (stki_chunk_get(user, number, uses, fill, NULL, "a file", &out, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < BYTES; i += 512)
        assert_int_equal(((unsigned char *)stk_storage_data(out))[i], number % 251);
    return out;
}

static void use(stki_chunk_user *user, int64_t number, int64_t uses)
{
    stk_storage_release(get(user, number, uses));
}

static int64_t decoded(const stki_chunk_user *user)
{
    stki_chunk_counts counts;

    stki_chunk_read_counts(user, &counts);
    return counts.decoded;
}

static void test_least_recent_goes(void **state)
{
    stki_chunk_user *user = new_user(3);

    (void)state;
    for (int64_t n = 0; n < 3; n++)
        use(user, n, 100);
    use(user, 0, 100); /* 1 is now the oldest */
    use(user, 3, 100);
    assert_int_equal(decoded(user), 4);
    use(user, 0, 100);
    use(user, 2, 100);
    use(user, 3, 100);
    assert_int_equal(decoded(user), 4);
    use(user, 1, 100);
    assert_int_equal(decoded(user), 5);
    stki_chunk_user_destroy(user);
}

/* The block of a chunk that has served all its samples is reused first; older chunks stay. */
static void test_served_goes_first(void **state)
{
    stki_chunk_user *user = new_user(3);
    const void *block;
    stk_storage *kept;

    (void)state;
    use(user, 0, 2);
    use(user, 1, 2);
    use(user, 2, 2);
    kept = get(user, 2, 2); /* the second and last use */
    block = stk_storage_data(kept);
    stk_storage_release(kept);
    kept = get(user, 3, 2);
    assert_ptr_equal(stk_storage_data(kept), block);
    stk_storage_release(kept);
    use(user, 0, 2);
    use(user, 1, 2);
    assert_int_equal(decoded(user), 4);
    stki_chunk_user_destroy(user);
}

/* Chunks in use are not evicted, even if they exceed the budget, and remain valid after their user is destroyed. */
static void test_in_use(void **state)
{
    stki_chunk_user *user = new_user(1);
    stki_chunk_counts counts;
    stk_storage *held[3];

    (void)state;
    for (int64_t n = 0; n < 3; n++)
        held[n] = get(user, n, 1);
    stki_chunk_read_counts(user, &counts);
    assert_int_equal(counts.bytes, 3 * BYTES);
    for (int n = 0; n < 3; n++)
        assert_int_equal(*(unsigned char *)stk_storage_data(held[n]), n);
    stk_storage_release(held[0]);
    use(user, 7, 1); /* reuses the block of 0; the others are still in use */
    stki_chunk_read_counts(user, &counts);
    assert_int_equal(counts.bytes, 3 * BYTES);
    stki_chunk_user_destroy(user);
    assert_int_equal(*(unsigned char *)stk_storage_data(held[2]), 2);
    stk_storage_release(held[1]);
    stk_storage_release(held[2]);
}

/* Two readers share one budget, the larger of the two. */
static void test_shared_budget(void **state)
{
    stki_chunk_user *small = new_user(2), *large = new_user(5);
    stki_chunk_counts counts;

    (void)state;
    for (int64_t n = 0; n < 20; n++) {
        use(small, n, 100);
        use(large, n, 100);
    }
    stki_chunk_read_counts(small, &counts);
    assert_int_equal(counts.bytes, 5 * BYTES);
    stki_chunk_user_destroy(large);
    stki_chunk_read_counts(small, &counts);
    assert_true(counts.bytes <= 3 * BYTES);
    use(small, 100, 100);
    stki_chunk_read_counts(small, &counts);
    assert_true(counts.bytes <= 2 * BYTES);
    stki_chunk_user_destroy(small);
}

/* ---- threads ---- */

struct member {
    stki_chunk_user *user;
    int id, count;
    stk_status status;
    stk_error err;
};

static void same_chunk(void *context)
{
    struct member *m = context;
    stk_storage *out;

    m->status = stki_chunk_get(m->user, 42, 100, fill, NULL, "a file", &out, &m->err);
    if (!m->status)
        stk_storage_release(out);
}

static void run_all(struct member *members, int count, void (*run)(void *))
{
    stki_thread *threads[8];

    for (int i = 0; i < count; i++)
        assert_int_equal(stki_thread_start(&threads[i], "test", run, &members[i], &err), STK_OK);
    for (int i = 0; i < count; i++)
        assert_true(stki_thread_join(threads[i], INT64_MAX));
}

/* Eight threads request one chunk that takes a while to decode; it is decoded once. */
static void test_single_flight(void **state)
{
    stki_chunk_user *user = new_user(4);
    struct member members[8];
    stki_chunk_counts counts;

    (void)state;
    stki_count_set(&slow_ns, 20000000);
    for (int i = 0; i < 8; i++)
        members[i] = (struct member){.user = user};
    run_all(members, 8, same_chunk);
    for (int i = 0; i < 8; i++)
        assert_int_equal(members[i].status, STK_OK);
    assert_int_equal(stki_counted(&fills), 1);
    stki_chunk_read_counts(user, &counts);
    assert_int_equal(counts.decoded, 1);
    assert_int_equal(counts.found, 7);
    stki_chunk_user_destroy(user);
}

/* If a chunk cannot be decoded, all threads that wait for it get the error. */
static void test_failure_in_flight(void **state)
{
    stki_chunk_user *user = new_user(4);
    struct member members[8];

    (void)state;
    stki_count_set(&slow_ns, 2000000);
    stki_count_set(&fail_from, 1);
    for (int i = 0; i < 8; i++)
        members[i] = (struct member){.user = user};
    run_all(members, 8, same_chunk);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(members[i].status, STK_E_CORRUPT);
        assert_string_equal(members[i].err.message, "chunk 42 is broken");
    }
    assert_int_equal(stki_counted(&fills), 1); /* the other threads got the same error */
    stki_count_set(&fail_from, 0);
    use(user, 43, 1);
    stki_chunk_user_destroy(user);
}

static void many_chunks(void *context)
{
    struct member *m = context;
    uint64_t x = (uint64_t)m->id * 77 + 1;

    for (int i = 0; i < m->count && !m->status; i++) {
        int64_t number;
        stk_storage *out;

        x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
        number = (int64_t)(x >> 33) % 40;
        m->status = stki_chunk_get(m->user, number, 5, fill, NULL, "a file", &out, &m->err);
        if (m->status)
            break;
        for (int k = 0; k < BYTES; k += 64)
            if (((unsigned char *)stk_storage_data(out))[k] != number)
                m->status = STK_E_CORRUPT;
        stk_storage_release(out);
    }
}

static void test_many_threads(void **state)
{
    stki_chunk_user *users[2] = {new_user(6), new_user(9)};
    struct member members[8];
    stki_chunk_counts counts;

    (void)state;
    for (int i = 0; i < 8; i++)
        members[i] = (struct member){.user = users[i % 2], .id = i, .count = 4000};
    run_all(members, 8, many_chunks);
    for (int i = 0; i < 8; i++)
        assert_int_equal(members[i].status, STK_OK);
    stki_chunk_read_counts(users[0], &counts);
    assert_true(counts.bytes <= (9 + 8) * BYTES);
    stki_chunk_user_destroy(users[0]);
    stki_chunk_user_destroy(users[1]);
}

/* A child process does not touch the parent's chunks, and has a working cache of its own. */
static void test_fork(void **state)
{
    stki_chunk_user *user = new_user(4);
    int wait_status;
    pid_t child;

    (void)state;
    use(user, 1, 100);
    child = fork();
    if (child == 0) {
        stk_storage *out;
        stki_chunk_user *own;
        bool fine = stki_chunk_get(user, 1, 100, fill, NULL, "a file", &out, NULL) == STK_AGAIN;

        stki_chunk_user_destroy(user);
        fine = fine && stki_chunk_user_create(0, BYTES, &own, NULL) == STK_OK &&
               stki_chunk_get(own, 1, 100, fill, NULL, "a file", &out, NULL) == STK_OK;
        if (fine) {
            stk_storage_release(out);
            stki_chunk_user_destroy(own);
        }
        _exit(fine ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &wait_status, 0), child);
    assert_int_equal(wait_status, 0);
    use(user, 1, 100);
    assert_int_equal(decoded(user), 1);
    stki_chunk_user_destroy(user);
}

static void test_without_memory(void **state)
{
    stki_memory_stats before, after;

    (void)state;
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int64_t n = 1;; n++) {
        stki_chunk_user *user;
        stk_status status;

        stki_count_set(&slow_ns, 0);
        stki_memory_fail_at(n);
        status = stki_chunk_user_create(0, BYTES, &user, &err);
        if (!status) {
            for (int64_t k = 0; k < 600 && !status; k++) { /* more than the first table can hold */
                stk_storage *out;
                status = stki_chunk_get(user, k, 9, fill, NULL, "a file", &out, &err);
                if (!status)
                    stk_storage_release(out);
            }
            stki_chunk_user_destroy(user);
        }
        stki_memory_fail_at(0);
        stki_memory_read(STKI_MEM_HOST, &after);
        assert_int_equal(after.blocks, before.blocks);
        if (!status && n > 2000)
            break;
        assert_true(!status || status == STK_E_MEMORY);
        n += n > 20 ? 97 : 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least_recent_goes),
        cmocka_unit_test(test_served_goes_first),
        cmocka_unit_test(test_in_use),
        cmocka_unit_test(test_shared_budget),
        cmocka_unit_test(test_single_flight),
        cmocka_unit_test(test_failure_in_flight),
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
