/* prefetch_internal.h: the prefetcher's state, for prefetch.c and its tests. */
#ifndef STKI_PREFETCH_INTERNAL_H
#define STKI_PREFETCH_INTERNAL_H

#include "counter.h"
#include "prefetch.h"
#include "stream_guards.h"
#include "thread.h"

enum stki_prefetch_state { STKI_PREFETCH_FREE, STKI_PREFETCH_FILLING, STKI_PREFETCH_QUEUED, STKI_PREFETCH_HELD };

/* One filling of a slot, from the copies until the host has seen them done. */
typedef struct stki_prefetch_flight {
    int slot;                  /* fixed after create */
    stk_event *begin, *copied; /* around the copies, in the copy stream */
    stk_event *ready;          /* behind the converts; the same as `copied` where there are none */

    /* the thread's own */
    bool in_flight;  /* `ready` has not been seen done yet */
    bool has_copied; /* `copied` has, and the host memory went back */
    void *held;
    int64_t bytes;

    /* guarded by the lock */
    stk_event *reached; /* the place where the consumer's stream came to this batch … */
    bool was_reached;   /* … if it was taken by a stream */
} stki_prefetch_flight;

/* A slot is filled again in stream order, behind its last uses, while the host may not have seen the last filling done:
 * so it has two of them, in turns. */
typedef struct stki_prefetch_slot {
    char *block;
    stki_stream_guards guards; /* added to while held, looked at when free again */
    stki_prefetch_flight flights[2];
    int turn; /* the newest filling; changes while the slot is the thread's */

    /* guarded by the lock */
    enum stki_prefetch_state state;
} stki_prefetch_slot;

static inline stki_prefetch_flight *stki_prefetch_newest(stki_prefetch_slot *slot)
{
    return &slot->flights[slot->turn];
}

/* First in, first out. */
typedef struct stki_prefetch_queue {
    int slot[STKI_PREFETCH_MAX_DEPTH];
    int first, count;
} stki_prefetch_queue;

typedef struct stki_prefetch_flights {
    stki_prefetch_flight *flight[2 * STKI_PREFETCH_MAX_DEPTH];
    int first, count;
} stki_prefetch_flights;

struct stki_prefetch {
    stki_counter refs; /* the handle, the thread, every held slot */

    /* fixed after create */
    stk_device *device;
    int depth, part_count;
    int64_t slot_bytes;
    stki_prefetch_part *parts;
    stki_prefetch_upstream upstream;
    stk_stream *copy_stream, *convert_stream; /* the second one only where parts are converted */
    stki_prefetch_slot *slots;
    stki_thread *thread; /* NULL: closed */

    /* the thread's own */
    stki_prefetch_load *loads;
    stki_prefetch_flights in_flight; /* oldest copy first */

    stki_mutex lock; /* guards all below; a leaf: no call into a device or the upstream is made under it */
    stki_cond slot_cond, ready_cond;
    stki_prefetch_queue free, queued;
    int copying; /* batches handed on whose copies have not been seen done yet */
    bool stopping;
    stk_status outcome; /* not STK_OK: nothing comes behind what is queued */
    bool copy_failed;   /* the outcome is of a slot, and comes before all others */
    stk_error error;

    /* the consumer's own */
    stk_event *spare;   /* takes the place of a filling's `reached` */
    stk_event **spares; /* 2 * depth + 1 of them, wherever they are */
    bool spare_marked;
    bool stuck; /* close left the thread behind */

    stki_counter batches, bytes, copy_ns, convert_ns, exposed_ns, wait_upstream_ns, wait_slot_ns, wait_next_ns;
};

#endif
