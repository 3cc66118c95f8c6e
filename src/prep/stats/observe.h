/* observe.h: what is counted while rows go by: statistics of a field. An observer sees a field's rows as the loader
 * made them, before they are finished. Rows come in blocks that are cut by position alone (a block is a piece's run of
 * `block` positions), each is looked at by one thread from its first row to its last, and what blocks come to is merged
 * in the order of positions. So the same bits come out for any number of threads, tasks and interruptions.
 */
#ifndef STKI_OBSERVE_H
#define STKI_OBSERVE_H

#include "finish.h"

typedef struct stki_observer stki_observer;
typedef struct stki_seen stki_seen; /* what some rows come to; the observer's own struct */

typedef struct stki_observer_ops {
    const char *name; /* "stats" */
    /* Nothing seen yet. */
    stk_status (*begin)(const stki_observer *observer, stki_seen **out, stk_error *err);
    /* Adds rows that follow those it has seen. Any number of threads at once, each with another `seen`. */
    stk_status (*see)(const stki_observer *observer, stki_seen *seen, const stki_row *rows, int64_t count,
                      stk_error *err);
    /* Adds what `next` saw, which came behind. */
    stk_status (*merge)(const stki_observer *observer, stki_seen *into, const stki_seen *next, stk_error *err);
    /* As JSON and back, without a loss: lines of the journal hold it. */
    json_t *(*save)(const stki_observer *observer, const stki_seen *seen);
    stk_status (*load)(const stki_observer *observer, const json_t *saved, stki_seen **out, stk_error *err);
    void (*drop)(const stki_observer *observer, stki_seen *seen); /* NULL is fine */
    /* What NAME.stats.json says of the field: new JSON. */
    stk_status (*report)(const stki_observer *observer, const stki_seen *seen, json_t **out, stk_error *err);
    void (*destroy)(stki_observer *observer);
} stki_observer_ops;

struct stki_observer {
    const stki_observer_ops *ops; /* the first member of every observer's own struct */
    int field;                    /* whose rows it sees, among the fields of the job */
};

/* stats*.c: the observers that `stats` of a job asks for, of these fields. *out: `*count` of them, each destroyed by
 * its table, the list by stki_free. */
stk_status stki_observers_create(const stki_node *stats, const stki_sink_field *fields, int field_count,
                                 stki_observer ***out, int *count, stk_error *err);

#endif
