/* chunk_cache.c: see chunk_cache.h. All chunks are in one hash table under one lock, which is held for a few
 * instructions and for allocating or freeing a block, but not while a chunk is decoded. Each chunk has a storage, to
 * which the cache holds one reference. New references are taken only under the lock, so a chunk whose storage has one
 * reference is unused.
 *
 * The chunks also form an eviction list. A requested chunk moves to the end. A chunk that has delivered all its samples
 * moves to the front: if samples are read chunk by chunk, its block is reused while it is still in the CPU cache, and
 * chunks of earlier passes are kept. */
#include "chunk_cache.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "read_clock.h"
#include "storage.h"
#include "thread.h"
#include <inttypes.h>
#include <string.h>

enum { FIRST_BUCKETS = 256, FAILED = 8 };
#define DEFAULT_BUDGET (INT64_C(64) << 20)
#define PATIENCE_NS (120 * STKI_SECOND)

struct entry {
    struct entry *next; /* next entry in the bucket */
    struct entry *before, *after;
    stki_chunk_user *user;
    int64_t number, served;
    stk_storage *storage;
    int64_t bytes;
    bool filling;
};

struct cache {
    stki_mutex lock;
    stki_cond filled;
    int64_t generation;
    stki_chunk_user *users;
    int64_t budget, bytes;
    struct entry **buckets;
    int64_t bucket_count, entry_count;
    struct entry ends; /* both ends of the eviction list; ends.after is evicted next */
};

struct stki_chunk_user {
    struct cache *cache;
    stki_chunk_user *next, *before; /* list of the cache's users */
    int64_t budget, chunk_bytes;
    int64_t salt; /* makes chunks of different users hash differently */
    struct failed {
        stk_error why;
        int64_t number;
    } failed[FAILED]; /* chunks that could not be decoded, which are not tried again for each sample */
    int failed_count;
    stki_counter decoded, found, waited;
};

/* The process-wide cache, which exists while it has users. */
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cache *the_cache;
static int64_t next_salt;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- fork: the child starts without a cache ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&cache_lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&cache_lock);
}

static void after_fork_child(void)
{
    the_cache = NULL;
    pthread_mutex_unlock(&cache_lock);
}

static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, after_fork_child);
}

/* ---- the list and the table ---- */

static void unlink_entry(struct entry *entry)
{
    entry->before->after = entry->after;
    entry->after->before = entry->before;
}

static void link_behind(struct entry *place, struct entry *entry)
{
    entry->before = place;
    entry->after = place->after;
    place->after->before = entry;
    place->after = entry;
}

static struct entry **bucket_of(struct cache *cache, const stki_chunk_user *user, int64_t number)
{
    uint64_t hash = ((uint64_t)number + (uint64_t)user->salt) * UINT64_C(0x9E3779B97F4A7C15);

    return &cache->buckets[(hash >> 32) % (uint64_t)cache->bucket_count];
}

static struct entry *find(struct cache *cache, const stki_chunk_user *user, int64_t number)
{
    struct entry *entry = *bucket_of(cache, user, number);

    while (entry && (entry->user != user || entry->number != number))
        entry = entry->next;
    return entry;
}

static void put_in_bucket(struct cache *cache, struct entry *entry)
{
    struct entry **bucket = bucket_of(cache, entry->user, entry->number);

    entry->next = *bucket;
    *bucket = entry;
}

static void take_from_bucket(struct cache *cache, struct entry *entry)
{
    struct entry **at = bucket_of(cache, entry->user, entry->number);

    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
}

/* Doubles the number of buckets; does nothing if out of memory. */
static void grow(struct cache *cache)
{
    struct entry **wider = stki_zalloc_array(cache->bucket_count * 2, sizeof *wider);

    if (!wider)
        return;
    stki_free(cache->buckets);
    cache->buckets = wider;
    cache->bucket_count *= 2;
    for (struct entry *e = cache->ends.after; e != &cache->ends; e = e->after)
        put_in_bucket(cache, e);
}

static void drop(struct cache *cache, struct entry *entry)
{
    take_from_bucket(cache, entry);
    unlink_entry(entry);
    cache->bytes -= entry->bytes;
    cache->entry_count--;
}

static void free_entry(struct entry *entry)
{
    stk_storage_release(entry->storage);
    stki_free(entry);
}

/* ---- memory ---- */

static struct entry *next_to_go(struct cache *cache)
{
    for (struct entry *e = cache->ends.after; e != &cache->ends; e = e->after)
        /* The acquire pairs with the release by the last user, because the block is overwritten next. */
        if (!e->filling && atomic_load_explicit(&e->storage->refs, memory_order_acquire) == 1)
            return e;
    return NULL;
}

/* Returns an entry with a block of `bytes` bytes, which is reused from an evicted chunk if that has the same size. */
static stk_status make_room(struct cache *cache, int64_t bytes, struct entry **out, stk_error *err)
{
    struct entry *entry = NULL;
    stk_status status;

    while (cache->bytes > cache->budget - bytes) {
        struct entry *going = next_to_go(cache);

        if (!going)
            break; /* all chunks are in use, so the budget is exceeded */
        drop(cache, going);
        if (going->bytes == bytes) {
            *out = going;
            return STK_OK;
        }
        free_entry(going);
    }
    entry = stki_zalloc(sizeof *entry);
    if (!entry)
        return stki_fail_memory(err, sizeof *entry, "a chunk");
    status = stk_storage_create(NULL, bytes, &entry->storage, err);
    if (status != STK_OK) {
        stki_free(entry);
        return status;
    }
    entry->bytes = bytes;
    *out = entry;
    return STK_OK;
}

static stk_status begin_entry(stki_chunk_user *user, int64_t number, struct entry **out, stk_error *err)
{
    struct cache *cache = user->cache;
    struct entry *entry;
    stk_status status = make_room(cache, user->chunk_bytes, &entry, err);

    if (status != STK_OK)
        return status;
    entry->user = user;
    entry->number = number;
    entry->served = 0;
    entry->filling = true;
    if (cache->entry_count >= cache->bucket_count)
        grow(cache);
    put_in_bucket(cache, entry);
    link_behind(cache->ends.before, entry);
    cache->bytes += entry->bytes;
    cache->entry_count++;
    *out = entry;
    return STK_OK;
}

/* ---- lookup ---- */

static void serve(struct cache *cache, struct entry *entry, int64_t uses, stk_storage **out)
{
    unlink_entry(entry);
    if (++entry->served >= uses) {
        entry->served = 0;
        link_behind(&cache->ends, entry);
    } else {
        link_behind(cache->ends.before, entry);
    }
    stk_storage_retain(entry->storage);
    *out = entry->storage;
}

/* The functions below are called with the lock held. They keep a record of chunks that cannot be decoded, so that no
 * worker tries them again. */
static const stk_error *find_failed(const stki_chunk_user *user, int64_t number)
{
    for (int i = 0; i < FAILED && i < user->failed_count; i++)
        if (user->failed[i].number == number)
            return &user->failed[i].why;
    return NULL;
}

static void note_failed(stki_chunk_user *user, int64_t number, const stk_error *why)
{
    if (why->status == STK_E_CORRUPT || why->status == STK_E_UNSUPPORTED || why->status == STK_E_LIMIT)
        user->failed[user->failed_count++ % FAILED] = (struct failed){*why, number};
    if (user->failed_count == 2 * FAILED)
        user->failed_count = FAILED;
}

/* Called with the lock held; releases it while decoding, and returns with it held. */
static stk_status fill_entry(struct cache *cache, struct entry *entry, stki_chunk_fill fill, const void *context,
                             stk_error *err)
{
    stk_error why;
    stk_status status;

    stki_unlock(&cache->lock);
    status = fill(context, entry->number, stk_storage_data(entry->storage), &why);
    stki_lock(&cache->lock);
    entry->filling = false;
    stki_wake_all(&cache->filled);
    if (status != STK_OK) {
        note_failed(entry->user, entry->number, &why);
        if (err)
            *err = why;
        drop(cache, entry);
        free_entry(entry);
        return status;
    }
    stki_count(&entry->user->decoded, 1);
    return STK_OK;
}

static stk_status get_locked(stki_chunk_user *user, int64_t number, int64_t uses, stki_chunk_fill fill,
                             const void *context, const char *path, stk_storage **out, stk_error *err)
{
    struct cache *cache = user->cache;
    struct entry *entry = find(cache, user, number);
    int64_t deadline = 0, began = 0;
    const stk_error *failed;
    stk_status status;

    while (entry && entry->filling) {
        if (deadline == 0) {
            deadline = stki_deadline_ns(PATIENCE_NS);
            stki_count(&user->waited, 1);
            began = stki_read_work_begin(STKI_READ_INFLATE, false);
        }
        if (!stki_wait(&cache->filled, &cache->lock, deadline))
            return stki_fail_at(err, STK_E_TIMEOUT, (stki_place){path, -1, -1, NULL, NULL},
                                "another thread has not decoded chunk %" PRId64 " within %d s", number,
                                (int)(PATIENCE_NS / STKI_SECOND));
        entry = find(cache, user, number);
    }
    stki_read_work_end(STKI_READ_INFLATE, began);
    if (entry) {
        stki_count(&user->found, 1);
        serve(cache, entry, uses, out);
        return STK_OK;
    }
    failed = find_failed(user, number);
    if (failed) {
        if (err)
            *err = *failed;
        return failed->status;
    }
    status = begin_entry(user, number, &entry, err);
    if (status == STK_OK)
        status = fill_entry(cache, entry, fill, context, err);
    if (status == STK_OK)
        serve(cache, entry, uses, out);
    return status;
}

stk_status stki_chunk_get(stki_chunk_user *user, int64_t number, int64_t uses, stki_chunk_fill fill,
                          const void *context, const char *path, stk_storage **out, stk_error *err)
{
    struct cache *cache = user->cache;
    stk_status status;

    if (cache->generation != stki_fork_generation())
        return STK_AGAIN;
    stki_lock(&cache->lock);
    status = get_locked(user, number, uses, fill, context, path, out, err);
    stki_unlock(&cache->lock);
    return status;
}

void stki_chunk_read_counts(const stki_chunk_user *user, stki_chunk_counts *out)
{
    *out =
        (stki_chunk_counts){stki_counted(&user->decoded), stki_counted(&user->found), stki_counted(&user->waited), 0};
    if (user->cache->generation != stki_fork_generation())
        return;
    stki_lock(&user->cache->lock);
    out->bytes = user->cache->bytes;
    stki_unlock(&user->cache->lock);
}

/* ---- users ---- */

static stk_status create_cache(struct cache **out, stk_error *err)
{
    struct cache *cache = stki_zalloc(sizeof *cache);

    if (!cache)
        return stki_fail_memory(err, sizeof *cache, "the cache of chunks");
    cache->buckets = stki_zalloc_array(FIRST_BUCKETS, sizeof *cache->buckets);
    if (!cache->buckets) {
        stki_free(cache);
        return stki_fail_memory(err, FIRST_BUCKETS * (int64_t)sizeof *cache->buckets, "the cache of chunks");
    }
    cache->bucket_count = FIRST_BUCKETS;
    cache->generation = stki_fork_generation();
    cache->ends.before = cache->ends.after = &cache->ends;
    stki_mutex_init(&cache->lock);
    stki_cond_init(&cache->filled);
    *out = cache;
    return STK_OK;
}

static void destroy_cache(struct cache *cache)
{
    stki_cond_fini(&cache->filled);
    stki_mutex_fini(&cache->lock);
    stki_free(cache->buckets);
    stki_free(cache);
}

/* Sets the budget to the largest one of all users. Called with the lock held. */
static void set_budget(struct cache *cache)
{
    cache->budget = 0;
    for (const stki_chunk_user *u = cache->users; u; u = u->next)
        cache->budget = u->budget > cache->budget ? u->budget : cache->budget;
}

static void attach(struct cache *cache, stki_chunk_user *user)
{
    stki_lock(&cache->lock);
    user->cache = cache;
    user->salt = next_salt += INT64_C(0x51ED270B1);
    user->next = cache->users;
    if (user->next)
        user->next->before = user;
    cache->users = user;
    set_budget(cache);
    stki_unlock(&cache->lock);
}

stk_status stki_chunk_user_create(int64_t budget, int64_t chunk_bytes, stki_chunk_user **out, stk_error *err)
{
    stki_chunk_user *user = stki_zalloc(sizeof *user);
    stk_status status = STK_OK;

    if (!user)
        return stki_fail_memory(err, sizeof *user, "the cache of chunks");
    user->budget = budget > 0 ? budget : DEFAULT_BUDGET;
    user->chunk_bytes = chunk_bytes;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&cache_lock);
    if (!the_cache)
        status = create_cache(&the_cache, err);
    if (status == STK_OK)
        attach(the_cache, user);
    pthread_mutex_unlock(&cache_lock);
    if (status != STK_OK) {
        stki_free(user);
        return status;
    }
    *out = user;
    return STK_OK;
}

static void detach(stki_chunk_user *user)
{
    struct cache *cache = user->cache;
    struct entry *e, *after;

    stki_lock(&cache->lock);
    for (e = cache->ends.after; e != &cache->ends; e = after) {
        after = e->after;
        if (e->user == user) {
            drop(cache, e);
            free_entry(e);
        }
    }
    if (user->before)
        user->before->next = user->next;
    else
        cache->users = user->next;
    if (user->next)
        user->next->before = user->before;
    set_budget(cache);
    stki_unlock(&cache->lock);
}

void stki_chunk_user_destroy(stki_chunk_user *user)
{
    if (!user)
        return;
    if (user->cache->generation == stki_fork_generation()) {
        pthread_mutex_lock(&cache_lock);
        detach(user);
        if (!user->cache->users) {
            destroy_cache(user->cache);
            the_cache = NULL;
        }
        pthread_mutex_unlock(&cache_lock);
    }
    stki_free(user);
}
