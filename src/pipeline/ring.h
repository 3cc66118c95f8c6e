/* ring.h: slots that travel free -> filling -> ready -> leased -> free. Steps are numbered from 0 over all epochs; each
 * takes any free slot, so that a batch that is held for long blocks nothing but its own slot, and is delivered in
 * order.
 *
 * The ring knows nothing of samples. Work on a slot comes in phases of tiles: `begin` prepares a step and says how many
 * tiles phase 0 has; any number of workers then run `tile`, each tile once; when the last tile of a phase is done,
 * `phase_end` either opens the next phase (lengths first, then bytes) or says that the slot is complete.
 *
 * The lock-free part is one counter a slot: `tiles_left`. Claiming is "decrement if positive" (acquire), and pairs with
 * the release store that opens a phase after everything the tiles need has been written. A worker that holds a stale
 * pointer to a slot that has moved on simply claims a tile of what the slot now holds, which is just as good: it reads
 * step, phase and tile number only after its claim, and a slot cannot move on while a claimed tile is running.
 * `tiles_pending` counts tiles not yet finished (acq_rel): whoever brings it to 0 sees the writes of all others.
 * Everything else is under `lock`. Nobody spins; every wait has a deadline or is ended by stki_ring_stop.
 *
 * The consumer may help (stki_ring_let_help): while the step it waits for is not ready, it works as a worker does, one
 * tile at a time, and looks at the step, the deadline and the stop between tiles. It is then one of the threads that
 * work, so workers park themselves beyond as many as there are processors. They are unparked when the consumer sleeps
 * in stki_ring_next, when it stays away, and when it is seen to use less than half of a processor. A worker parks only
 * while another one is awake, and who is awake looks for work before it sleeps or parks, so no work is left lying.
 */
#ifndef STKI_RING_H
#define STKI_RING_H

#include "counter.h"
#include "thread.h"

typedef struct stki_ring stki_ring;
typedef struct stki_ring_slot stki_ring_slot;

enum stki_slot_state { STKI_SLOT_FREE, STKI_SLOT_FILLING, STKI_SLOT_READY, STKI_SLOT_LEASED };

/* Embedded as the first member of whatever a slot holds. */
struct stki_ring_slot {
    _Atomic int64_t tiles_left;    /* not yet claimed */
    _Atomic int64_t tiles_pending; /* not yet finished */
    /* Written by the one thread that opens a phase, before its release store; read by claimants. */
    int64_t step, tile_count;
    int phase;
    /* Guarded by the ring's lock. */
    enum stki_slot_state state;
    int64_t generation; /* of the ring when the step was opened: a step of another one is not wanted any more */
    stki_ring_slot *next_free;
};

/* One worker's clocks; written by that worker alone, read by anybody. */
typedef struct stki_ring_clocks {
    stki_counter wait_slot_ns, wait_work_ns, tiles;
    stki_counter parked_since_ns; /* 0: it is not; the time counts as waiting for a slot when it ends */
} stki_ring_clocks;

/* With the wait of a worker that is parked. */
static inline int64_t stki_ring_wait_slot_ns(const stki_ring_clocks *clocks, int64_t now_ns)
{
    const int64_t since = stki_counted(&clocks->parked_since_ns);

    return stki_counted(&clocks->wait_slot_ns) + (since > 0 && now_ns > since ? now_ns - since : 0);
}

typedef struct stki_ring_work {
    void *context;
    /* Prepares slot->step; returns the number of tiles of phase 0 (0: go on to phase_end at once). */
    int64_t (*begin)(void *context, stki_ring_slot *slot, int worker);
    void (*tile)(void *context, stki_ring_slot *slot, int64_t tile, int worker);
    /* Phase slot->phase is finished. Returns the tiles of the next phase, or -1: the slot is complete. */
    int64_t (*phase_end)(void *context, stki_ring_slot *slot, int worker);
    /* Under the ring's lock. False: the slot's memory is in use still, so that it is not begun yet. NULL: never. */
    bool (*is_clear)(stki_ring_slot *slot);
} stki_ring_work;

/* How the consumer may help. */
typedef struct stki_ring_help {
    int worker; /* the number that its work is done under, beside those of the workers */
    stki_ring_clocks *clocks;
    int processors;             /* threads that should work at a time, the consumer counted */
    int64_t longest_ns;         /* steps whose tiles take longer are left to the workers */
    bool (*may)(void *context); /* asked in each stki_ring_next that has to wait, with the work's context */
    bool (*may_open)(void *context, int64_t step); /* under the ring's lock; false: a worker opens it; NULL: it may */
    const _Atomic bool *leave;                     /* true: stop helping; NULL */
} stki_ring_help;

/* `end`: number of steps (INT64_MAX: endless). The slots stay the caller's and must outlive the ring. */
stk_status stki_ring_create(stki_ring_slot *const *slots, int slot_count, int64_t end, const stki_ring_work *work,
                            stki_ring **out, stk_error *err);
void stki_ring_destroy(stki_ring *ring); /* no thread may be inside */

/* A worker's whole life: fills slots until stki_ring_stop. */
void stki_ring_run(stki_ring *ring, int worker, stki_ring_clocks *clocks);
/* The caller is the worker (no threads): works until the next step is ready or the deadline has passed, looking at the
 * clock between tiles. */
void stki_ring_run_inline(stki_ring *ring, int worker, stki_ring_clocks *clocks, int64_t deadline_ns);

/* Before any thread uses the ring. */
void stki_ring_let_help(stki_ring *ring, const stki_ring_help *help);

/* Waits for the next step in order and leases it. STK_END: all steps delivered. STK_E_TIMEOUT: not by the deadline.
 * STK_E_CLOSED: stopped. `waited_ns` grows by the time spent waiting or helping. A deadline of 0
 * never helps; helping, STK_E_TIMEOUT comes late by a tile at most, and early where `leave` is set. One thread at a
 * time. */
stk_status stki_ring_next(stki_ring *ring, int64_t deadline_ns, stki_ring_slot **out, int64_t *waited_ns);
/* Ends a lease. Any thread, any order, also after stop. */
void stki_ring_release(stki_ring *ring, stki_ring_slot *slot);

/* No more work is begun; everybody inside comes out after its running tile. Any thread, more than once. */
void stki_ring_stop(stki_ring *ring);
/* Was it asked to? Any thread. */
bool stki_ring_stopping(const stki_ring *ring);
/* Opens no further steps, delivers what is ready: after the error of `slot`, which is leased, the run is over but the
 * handles still work. Nothing where the ring was restarted since that slot was opened. */
void stki_ring_finish(stki_ring *ring, const stki_ring_slot *slot);

/* Goes on at `step`: what was opened and not yet leased is given up (a running tile still ends), leases stay what they
 * are, stki_ring_finish is undone. Returns the generation of the steps from here on. Any thread. */
int64_t stki_ring_restart(stki_ring *ring, int64_t step);
/* Waits while all steps have been delivered: for a restart, a stop or the deadline. */
void stki_ring_await_restart(stki_ring *ring, int64_t deadline_ns);

typedef struct stki_ring_view {
    int slots, ready, leased, filling, free;
    int64_t next_step; /* the step that the consumer gets next */
} stki_ring_view;

void stki_ring_look(stki_ring *ring, stki_ring_view *out);

#endif
