/* order_tables.h: the few tables that an order keeps, one per epoch or per window of an epoch, each identified by a
 * key. The tables in use have consecutive keys.
 *
 * Readers take no lock. A reader counts itself as a user of a table before its final check of the key, and a builder
 * removes the key before it checks for users (both sequentially consistent), so a table is never written while it is
 * being read. Users are counted in groups of threads, each on its own cache lines, because a single counter would move
 * from processor to processor for every batch.
 *
 * Builders hold `lock`. stki_tables_ahead builds the next table in slices and never blocks on the lock. A reader whose
 * table is missing completes it under the lock, which is the only place where readers block. Thread-safe. */
#ifndef STKI_ORDER_TABLES_H
#define STKI_ORDER_TABLES_H

#include "counter.h"
#include "thread.h"
#include <stdbool.h>

enum {
    STKI_TABLES = 4
}; /* the current one, the next, the previous one for slow threads, and the one passed as `keep` */

enum { STKI_TABLE_GROUPS = 8 };

/* Performs about `units` more steps of building table `number` for `key`; `fresh`: starts from the beginning. Returns
 * the number of steps left; 0: complete. Called by one thread at a time. */
typedef int64_t stki_table_build(void *context, int number, uint64_t key, bool fresh, int64_t units);

typedef struct stki_tables {
    stki_table_build *build;
    void *context;
    _Atomic uint64_t keys[STKI_TABLES]; /* the table's key if it is complete, otherwise UINT64_MAX */
    struct {
        char apart[128];
        stki_counter users[STKI_TABLES];
    } groups[STKI_TABLE_GROUPS];
    char apart[128];
    /* guarded by `lock` */
    stki_mutex lock;
    int64_t made[STKI_TABLES]; /* value of `builds` when the table was begun */
    int64_t builds;
    int building; /* -1: none */
    bool begun;
    uint64_t key;       /* the key of the table being built */
    int64_t left;       /* steps left */
    uint64_t taken_key; /* key of the table that positions were last taken from, and … */
    int64_t taken;      /* … the number of positions taken from it */
} stki_tables;

void stki_tables_init(stki_tables *tables, stki_table_build *build, void *context);
void stki_tables_fini(stki_tables *tables);

/* Returns the number of the table of `key`, which does not change until stki_tables_release. Release it soon, in the
 * same thread, because each thread counts in its own group. */
int stki_tables_acquire(stki_tables *tables, uint64_t key);
void stki_tables_release(stki_tables *tables, int number);
/* Whether the table of `key` is complete, that is, stki_tables_acquire would not block. */
bool stki_tables_have(const stki_tables *tables, uint64_t key);

/* Builds enough of the next table that it is complete before table `key` is used up. Call it after the first `taken` of
 * the `size` positions of table `key` have been taken, the last `n` of them by the caller. Does not overwrite tables
 * `key` and `keep`. */
void stki_tables_ahead(stki_tables *tables, uint64_t key, uint64_t keep, int64_t taken, int64_t n, int64_t size);

#endif
