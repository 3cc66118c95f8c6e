/* ring.h: slots that cycle through the states free -> filling -> ready -> leased -> free. Steps are numbered from 0
 * over all epochs. Each step takes any free slot, so that a batch held for a long time occupies only its own slot.
 * Steps are delivered in order.
 *
 * The ring does not depend on the contents of slots. Work on a slot is divided into phases of tiles: `begin` prepares a
 * step and returns the number of tiles in phase 0. Any number of workers then call `tile`, once per tile. When the last
 * tile of a phase is done, `phase_end` either opens the next phase (lengths first, then bytes) or completes the slot.
 *
 * The lock-free part is one counter per slot, `tiles_left`. A worker claims a tile with "decrement if positive"
 * (acquire), which pairs with the release store that opens a phase after all data that the tiles need has been written.
 * A worker with a stale pointer to a slot that has been reused claims a tile of the slot's current step, which is
 * harmless: step, phase and tile number are read only after the claim, and a slot cannot be reused while a claimed tile
 * is running. `tiles_pending` counts unfinished tiles (acq_rel); the thread that decrements it to 0 sees the writes of
 * all others. Everything else is guarded by `lock`, which threads try for about a microsecond before they sleep. No
 * wait for another event spins, and every wait has a deadline or is ended by stki_ring_stop.
 *
 * The consumer may help (stki_ring_let_help): while the step it waits for is not ready, it acts as a worker, one tile
 * at a time, and checks the step, the deadline and the stop flag between tiles. To keep the number of running threads
 * at the number of processors, surplus workers then park. They are unparked when the consumer sleeps in stki_ring_next,
 * when it does not call stki_ring_next for a while, and when it is found to use less than half a processor. A worker
 * parks only while another one is awake, and an awake worker looks for work before it sleeps or parks, so no work is
 * left undone. */
#ifndef STKI_RING_H
#define STKI_RING_H

#include "counter.h"
#include "thread.h"

typedef struct stki_ring stki_ring;
typedef struct stki_ring_slot stki_ring_slot;

/* Embedded as the first member of the caller's slot. */
struct stki_ring_slot {
    _Atomic int64_t tiles_left;    /* number of tiles not yet claimed */
    _Atomic int64_t tiles_pending; /* number of tiles not yet finished */
    /* Written by the thread that opens a phase, before its release store; read by claimants. */
    int64_t step, tile_count;
    int64_t generation; /* the ring's generation when the step was opened; steps of an older generation are discarded */
    int phase;
    int opener;           /* the worker that opened the step */
    stki_ring_slot *next; /* in a list of the worker that has the slot */
};

/* One worker's clocks. Only that worker writes them; any thread may read them. */
typedef struct stki_ring_clocks {
    stki_counter wait_slot_ns, wait_work_ns, tiles;
    stki_counter parked_since_ns; /* 0: not parked; the time parked is added to wait_slot_ns when it ends */
} stki_ring_clocks;

/* The time spent waiting for a slot, including that of a worker that is parked now. */
static inline int64_t stki_ring_wait_slot_ns(const stki_ring_clocks *clocks, int64_t now_ns)
{
    const int64_t since = stki_counted(&clocks->parked_since_ns);

    return stki_counted(&clocks->wait_slot_ns) + (since > 0 && now_ns > since ? now_ns - since : 0);
}

typedef struct stki_ring_work {
    void *context;
    /* Prepares slot->step. Returns the number of tiles in phase 0 (0: phase_end is called at once). */
    int64_t (*begin)(void *context, stki_ring_slot *slot, int worker);
    void (*tile)(void *context, stki_ring_slot *slot, int64_t tile, int worker);
    /* Called when phase slot->phase is finished. Returns the number of tiles in the next phase; -1: the slot is
     * complete. */
    int64_t (*phase_end)(void *context, stki_ring_slot *slot, int worker);
    /* Called under the ring's lock. False: the slot's memory is still in use, so it is not refilled yet. NULL: always
     * clear. */
    bool (*is_clear)(stki_ring_slot *slot);
} stki_ring_work;

/* How the consumer helps. */
typedef struct stki_ring_help {
    int worker; /* its worker number, which no worker has */
    stki_ring_clocks *clocks;
    int processors;             /* number of threads that should run at once, including the consumer */
    int64_t longest_ns;         /* steps with longer tiles are left to the workers */
    bool (*may)(void *context); /* called with the work's context in each stki_ring_next that has to wait */
    bool (*may_open)(void *context,
                     int64_t step); /* called under the ring's lock; false: a worker opens it; NULL: always */
    const _Atomic bool *leave;      /* set to true to make the consumer stop helping; may be NULL */
} stki_ring_help;

/* `end`: number of steps (INT64_MAX: endless). The caller owns the slots, which must outlive the ring. */
stk_status stki_ring_create(stki_ring_slot *const *slots, int slot_count, int64_t end, const stki_ring_work *work,
                            stki_ring **out, stk_error *err);
void stki_ring_destroy(stki_ring *ring); /* no thread may be in a function of the ring */

/* The body of a worker thread: fills slots until stki_ring_stop. */
void stki_ring_run(stki_ring *ring, int worker, stki_ring_clocks *clocks);
/* Without worker threads: the caller works until the next step is ready or the deadline has passed; it reads the clock
 * between tiles. */
void stki_ring_run_inline(stki_ring *ring, int worker, stki_ring_clocks *clocks, int64_t deadline_ns);

/* Call before any thread uses the ring. */
void stki_ring_let_help(stki_ring *ring, const stki_ring_help *help);

/* Waits for the next step in order and leases it. STK_END: all steps delivered. STK_E_TIMEOUT: not ready by the
 * deadline. STK_E_CLOSED: stopped. Adds the time spent waiting or helping to *waited_ns. With a deadline of 0 the
 * caller never helps. While it helps, STK_E_TIMEOUT may be late by one tile, or early if `leave` is set. One thread at
 * a time. */
stk_status stki_ring_next(stki_ring *ring, int64_t deadline_ns, stki_ring_slot **out, int64_t *waited_ns);
/* Ends a lease. Any thread, in any order, also after stop. */
void stki_ring_release(stki_ring *ring, stki_ring_slot *slot);

/* Stops the ring: no more work is started, and every thread in the ring returns after its current tile. Any thread; may
 * be called more than once. */
void stki_ring_stop(stki_ring *ring);
/* Whether stki_ring_stop has been called. Any thread. */
bool stki_ring_stopping(const stki_ring *ring);
/* Opens no more steps, but delivers those that are ready. To be called after the error of `slot`, which is leased: the
 * run is over, but the handles still work. Has no effect if the ring was restarted after that slot was opened. */
void stki_ring_finish(stki_ring *ring, const stki_ring_slot *slot);

/* Continues at `step`. Steps that are open or ready but not leased are discarded (running tiles still finish), leases
 * are unaffected, and stki_ring_finish is undone. Returns the generation of the steps from here on. Any thread. */
int64_t stki_ring_restart(stki_ring *ring, int64_t step);
/* If all steps have been delivered, waits for a restart, a stop or the deadline. */
void stki_ring_await_restart(stki_ring *ring, int64_t deadline_ns);

typedef struct stki_ring_view {
    int slots, ready, leased, filling, free;
    int64_t next_step; /* the next step to be delivered */
} stki_ring_view;

void stki_ring_look(stki_ring *ring, stki_ring_view *out);

#endif
