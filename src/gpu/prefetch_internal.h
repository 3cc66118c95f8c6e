/* prefetch_internal.h: the prefetcher's state, for prefetch.c and its tests. */
#ifndef STKI_PREFETCH_INTERNAL_H
#define STKI_PREFETCH_INTERNAL_H

#include "counter.h"
#include "prefetch.h"
#include "stream_guards.h"
#include "thread.h"

enum stki_prefetch_state { STKI_PREFETCH_FREE, STKI_PREFETCH_FILLING, STKI_PREFETCH_QUEUED, STKI_PREFETCH_HELD };

/* One fill of a slot, from its copies until the watching thread has seen them complete. */
typedef struct stki_prefetch_flight {
    int slot;                  /* constant after creation */
    stk_event *begin, *copied; /* recorded before and after the copies, in the copy stream */
    stk_event *ready;          /* recorded after the conversions; equals `copied` if there are none */

    /* owned by the copying thread, and by the watching thread while in flight */
    void *held; /* the host memory; NULL: it was returned after `copied` had completed */
    int64_t bytes;

    /* guarded by the lock */
    bool in_flight;     /* `ready` is not known to be complete */
    stk_event *reached; /* recorded in the consumer's stream when next was first called for this batch */
    bool was_reached;   /* `reached` was recorded for this batch (next was called with a stream) */
} stki_prefetch_flight;

/* A slot is refilled in stream order, after its last uses, possibly before the host knows that its previous fill is
 * complete. It therefore has two fills, used alternately. */
typedef struct stki_prefetch_slot {
    char *block;
    stki_stream_guards guards; /* events are added while the slot is held, and read when it is free again */
    stki_prefetch_flight flights[2];
    int turn; /* the newest fill; changes while the copying thread owns the slot */

    /* guarded by the lock */
    enum stki_prefetch_state state;
} stki_prefetch_slot;

static inline stki_prefetch_flight *stki_prefetch_newest(stki_prefetch_slot *slot)
{
    return &slot->flights[slot->turn];
}

/* A FIFO. */
typedef struct stki_prefetch_queue {
    int slot[STKI_PREFETCH_MAX_DEPTH];
    int first, count;
} stki_prefetch_queue;

typedef struct stki_prefetch_flights {
    stki_prefetch_flight *flight[2 * STKI_PREFETCH_MAX_DEPTH];
    int first, count;
} stki_prefetch_flights;

struct stki_prefetch {
    stki_counter refs; /* references: the handle, the copying thread and every held slot */

    /* constant after creation */
    stk_device *device;
    int depth, part_count;
    int64_t slot_bytes;
    stki_prefetch_part *parts;
    stki_prefetch_upstream upstream;
    stk_stream *copy_stream, *convert_stream; /* convert_stream exists only if parts are converted */
    stki_prefetch_slot *slots;
    stki_thread *thread;  /* queues copies; NULL: closed */
    stki_thread *watcher; /* waits for copies; `thread` joins it */

    /* private to the copying thread */
    stki_prefetch_load *loads;

    stki_mutex lock; /* guards everything below; a leaf lock: no device or upstream function is called under it */
    stki_cond slot_cond, ready_cond, flight_cond;
    stki_prefetch_queue free, queued;
    stki_prefetch_flights in_flight; /* not known to be complete, oldest first */
    bool all_queued;                 /* nothing more will be in flight */
    bool stopping;
    stk_status outcome; /* if not STK_OK, no batches follow those in the queue */
    bool copy_failed;   /* the outcome is a failed copy, and takes precedence */
    stk_error error;

    /* private to the consumer */
    stk_event *spare;   /* an unused event, to be exchanged for the `reached` of a fill */
    stk_event **spares; /* all 2 * depth + 1 events of this kind */
    bool spare_marked;
    bool stuck; /* close has abandoned the thread */

    stki_counter batches, bytes, copy_ns, convert_ns, exposed_ns, wait_upstream_ns, wait_slot_ns, wait_next_ns;
};

#endif
