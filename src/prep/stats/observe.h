/* observe.h: observers of rows, which compute statistics of a field. An observer receives a field's rows as produced by
 * the loader, before encoding. Rows are divided into blocks, by position only. Each block is processed by one thread
 * from its first row to its last, and the results of blocks are merged in the order of positions. The result is
 * therefore bit-identical for any number of threads, tasks and interruptions. */
#ifndef STKI_OBSERVE_H
#define STKI_OBSERVE_H

#include "finish.h"

typedef struct stki_observer stki_observer;
typedef struct stki_seen stki_seen; /* the result for some rows, defined by the observer */

typedef struct stki_observer_ops {
    const char *name; /* "stats" */
    /* Creates an empty result. */
    stk_status (*begin)(const stki_observer *observer, stki_seen **out, stk_error *err);
    /* Adds rows that follow the previous ones. Thread-safe with one `seen` per thread. */
    stk_status (*see)(const stki_observer *observer, stki_seen *seen, const stki_row *rows, int64_t count,
                      stk_error *err);
    /* Merges `next`, the result for the rows that follow. */
    stk_status (*merge)(const stki_observer *observer, stki_seen *into, const stki_seen *next, stk_error *err);
    /* Lossless conversion to JSON and back, for lines of the journal. */
    json_t *(*save)(const stki_observer *observer, const stki_seen *seen);
    stk_status (*load)(const stki_observer *observer, const json_t *saved, stki_seen **out, stk_error *err);
    void (*drop)(const stki_observer *observer, stki_seen *seen); /* NULL is allowed */
    /* Creates the field's part of NAME.stats.json, as a new JSON value. */
    stk_status (*report)(const stki_observer *observer, const stki_seen *seen, json_t **out, stk_error *err);
    void (*destroy)(stki_observer *observer);
} stki_observer_ops;

struct stki_observer {
    const stki_observer_ops *ops; /* must be first in every observer's struct */
    int field;                    /* index of the observed field in the job */
};

/* stats*.c: creates the observers requested in the job's `stats` for these fields. *out: `*count` observers, each
 * destroyed through its table; the list is freed with stki_free. */
stk_status stki_observers_create(const stki_node *stats, const stki_sink_field *fields, int field_count,
                                 stki_observer ***out, int *count, stk_error *err);

#endif
