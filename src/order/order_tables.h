/* order_tables.h: the few tables that an order keeps, one an epoch or one a window of an epoch, each named by a key.
 * Tables in use follow each other by their keys.
 *
 * Readers take no lock: a reader increments a table's `users` before it checks the key for the last time, and a builder
 * removes the key before it checks `users` (both sequentially consistent), so a table is never written while it is
 * read. Builders hold `lock`. stki_tables_ahead builds the next table in slices and never waits for the lock; a reader
 * whose table is not there completes it under the lock, which is the only wait. Any thread. */
#ifndef STKI_ORDER_TABLES_H
#define STKI_ORDER_TABLES_H

#include "counter.h"
#include "thread.h"
#include <stdbool.h>

enum { STKI_TABLES = 4 }; /* the present one, the next, the last for slow threads, and the one to be kept */

/* Builds table `number` for `key` further, by about `units` steps, from the beginning if `fresh`. Returns how many are
 * left, 0: it is complete. Called by one thread at a time. */
typedef int64_t stki_table_build(void *context, int number, uint64_t key, bool fresh, int64_t units);

typedef struct stki_tables {
    stki_table_build *build;
    void *context;
    struct {
        _Atomic uint64_t key; /* of a complete table, or UINT64_MAX */
        stki_counter users;
    } tables[STKI_TABLES];
    /* guarded by lock */
    stki_mutex lock;
    int64_t made[STKI_TABLES]; /* the count of builds when it was begun */
    int64_t builds;
    int building; /* -1: none */
    bool begun;
    uint64_t key;       /* that it is built for */
    int64_t left;       /* to be built */
    uint64_t taken_key; /* of the table that positions were taken from last, and … */
    int64_t taken;      /* … up to where */
} stki_tables;

void stki_tables_init(stki_tables *tables, stki_table_build *build, void *context);
void stki_tables_fini(stki_tables *tables);

/* The number of the table of `key`, which stays as it is until it is let go of. Hold it briefly. */
int stki_tables_hold(stki_tables *tables, uint64_t key);
void stki_tables_let_go(stki_tables *tables, int number);
/* Whether the table of `key` is complete, so that stki_tables_hold would not wait. */
bool stki_tables_have(const stki_tables *tables, uint64_t key);

/* Positions up to `taken` of the `size` of table `key` have been handed out, the last `n` of them by the caller: builds
 * the next table so far that it is complete before this one ends. Tables `key` and `keep` are not given up for it. */
void stki_tables_ahead(stki_tables *tables, uint64_t key, uint64_t keep, int64_t taken, int64_t n, int64_t size);

#endif
