/* order_tables.c: see order_tables.h. */
#include "order_tables.h"

enum { LEAST_UNITS = 256, RETRY_NS = 1000 };

static const uint64_t NO_TABLE = UINT64_MAX;

void stki_tables_init(stki_tables *t, stki_table_build *build, void *context)
{
    t->build = build;
    t->context = context;
    t->building = -1;
    t->taken_key = NO_TABLE;
    for (int i = 0; i < STKI_TABLES; i++)
        atomic_init(&t->keys[i], NO_TABLE);
    stki_mutex_init(&t->lock);
}

void stki_tables_fini(stki_tables *t)
{
    stki_mutex_fini(&t->lock);
}

/* ---- readers ---- */

/* Returns the counter of a table's users in the calling thread's group. */
static stki_counter *my_users(stki_tables *t, int number)
{
    static stki_counter threads;
    static _Thread_local int group = -1;

    if (group < 0)
        group = (int)(atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % STKI_TABLE_GROUPS);
    return &t->groups[group].users[number];
}

static bool has_users(const stki_tables *t, int number)
{
    for (int g = 0; g < STKI_TABLE_GROUPS; g++)
        if (atomic_load((stki_counter *)(uintptr_t)&t->groups[g].users[number]) > 0)
            return true;
    return false;
}

bool stki_tables_have(const stki_tables *t, uint64_t key)
{
    for (int i = 0; i < STKI_TABLES; i++)
        if (atomic_load_explicit(&t->keys[i], memory_order_relaxed) == key)
            return true;
    return false;
}

/* Returns the number of the table, or -1 if no table has this key. */
static int try_acquire(stki_tables *t, uint64_t key)
{
    for (int i = 0; i < STKI_TABLES; i++) {
        if (atomic_load_explicit(&t->keys[i], memory_order_relaxed) != key)
            continue;
        atomic_fetch_add(my_users(t, i), 1);
        if (atomic_load(&t->keys[i]) == key)
            return i;
        stki_tables_release(t, i);
    }
    return -1;
}

void stki_tables_release(stki_tables *t, int number)
{
    atomic_fetch_sub_explicit(my_users(t, number), 1, memory_order_release);
}

/* ---- builders, under the lock ---- */

/* Selects the oldest table that has no readers. Returns false if all have readers at the moment. */
static bool begin(stki_tables *t, uint64_t key, uint64_t keep, uint64_t keep_too)
{
    int best = -1;

    for (int i = 0; i < STKI_TABLES; i++) {
        const uint64_t its = atomic_load_explicit(&t->keys[i], memory_order_relaxed);

        if ((its != NO_TABLE && (its == keep || its == keep_too)) || has_users(t, i))
            continue;
        if (best < 0 || t->made[i] < t->made[best])
            best = i;
    }
    if (best < 0)
        return false;
    const uint64_t before = atomic_exchange(&t->keys[best], NO_TABLE);

    if (has_users(t, best)) { /* a reader has acquired the table meanwhile */
        atomic_store(&t->keys[best], before);
        return false;
    }
    t->made[best] = ++t->builds;
    t->building = best;
    t->begun = false;
    t->key = key;
    t->left = 1;
    return true;
}

static void build(stki_tables *t, int64_t units)
{
    t->left = t->build(t->context, t->building, t->key, !t->begun, units);
    t->begun = true;
    if (t->left > 0)
        return;
    atomic_store(&t->keys[t->building], t->key);
    t->building = -1;
}

int stki_tables_acquire(stki_tables *t, uint64_t key)
{
    int number = try_acquire(t, key);

    if (number >= 0)
        return number;
    stki_lock(&t->lock);
    while ((number = try_acquire(t, key)) < 0) {
        if (t->building < 0 || t->key != key) {
            while (!begin(t, key, NO_TABLE, NO_TABLE)) /* a thread was preempted while reading */
                stki_sleep_ns(RETRY_NS);
        }
        while (t->building >= 0)
            build(t, INT64_MAX);
    }
    stki_unlock(&t->lock);
    return number;
}

/* Returns the number of steps to build after `advance` positions have been taken from the current table, which has
 * `rest` positions left. This is twice the proportional share of the remaining steps, so that the next table is
 * complete in time, or all of them if no positions are left. */
static int64_t slice(const stki_tables *t, int64_t advance, int64_t rest)
{
    const double units = 2.0 * (double)t->left * (double)advance / (double)rest;

    return rest <= 0 || units >= (double)t->left ? INT64_MAX : units < LEAST_UNITS ? LEAST_UNITS : (int64_t)units;
}

void stki_tables_ahead(stki_tables *t, uint64_t key, uint64_t keep, int64_t taken, int64_t n, int64_t size)
{
    if (stki_tables_have(t, key + 1) || !stki_try_lock(&t->lock))
        return; /* the holder of the lock is building */
    if (!stki_tables_have(t, key + 1)) {
        const int64_t advance = t->taken_key == key && taken > t->taken ? taken - t->taken : n;

        t->taken_key = key;
        t->taken = taken;
        if ((t->building >= 0 && t->key == key + 1) || begin(t, key + 1, key, keep)) {
            if (!t->begun)
                build(t, 0);
            if (t->building >= 0)
                build(t, slice(t, advance, size - taken));
        }
    }
    stki_unlock(&t->lock);
}
