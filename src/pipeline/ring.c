/* ring.c: see ring.h. Lock order: the ring's lock is a leaf; callbacks run outside it. */
#include "ring.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include <assert.h>

struct stki_ring {
    /* fixed after create */
    stki_ring_work work;
    int slot_count;
    stki_ring_slot **slots;
    int64_t end;

    stki_mutex lock; /* guards all below */
    stki_cond work_cond, ready_cond;
    stki_ring_slot **inflight; /* inflight[step % slot_count] for steps in [next_deliver, next_open) */
    stki_ring_slot *free_list; /* last in, first out: the slot used last is the one in the caches */
    int64_t next_open, next_deliver;
    int64_t generation; /* grows with every restart */
    int sleeping_workers;
    bool consumer_waits, finishing;
    _Atomic bool stopping; /* written under the lock; workers look at it between two tiles without */
};

stk_status stki_ring_create(stki_ring_slot *const *slots, int slot_count, int64_t end, const stki_ring_work *work,
                            stki_ring **out, stk_error *err)
{
    stki_ring *ring = stki_zalloc(sizeof *ring);

    if (!ring)
        return stki_fail_memory(err, sizeof *ring, "the ring");
    stki_mutex_init(&ring->lock);
    stki_cond_init(&ring->work_cond);
    stki_cond_init(&ring->ready_cond);
    ring->work = *work;
    ring->slot_count = slot_count;
    ring->end = end;
    ring->slots = stki_zalloc_array(slot_count, sizeof *ring->slots);
    ring->inflight = stki_zalloc_array(slot_count, sizeof *ring->inflight);
    if (!ring->slots || !ring->inflight) {
        stki_ring_destroy(ring);
        return stki_fail_memory(err, slot_count * (int64_t)sizeof *ring->slots, "the ring's slots");
    }
    for (int i = slot_count - 1; i >= 0; i--) {
        ring->slots[i] = slots[i];
        slots[i]->state = STKI_SLOT_FREE;
        slots[i]->next_free = ring->free_list;
        ring->free_list = slots[i];
    }
    *out = ring;
    return STK_OK;
}

void stki_ring_destroy(stki_ring *ring)
{
    if (!ring)
        return;
    stki_cond_fini(&ring->ready_cond);
    stki_cond_fini(&ring->work_cond);
    stki_mutex_fini(&ring->lock);
    stki_free(ring->slots);
    stki_free(ring->inflight);
    stki_free(ring);
}

/* ---- filling ----------------------------------------------------------------------------------------------------- */

static bool claim(stki_ring_slot *slot, int64_t *tile)
{
    int64_t left = atomic_load_explicit(&slot->tiles_left, memory_order_relaxed);

    while (left > 0)
        if (atomic_compare_exchange_weak_explicit(&slot->tiles_left, &left, left - 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
            *tile = slot->tile_count - left;
            return true;
        }
    return false;
}

/* Makes the tiles of a phase claimable and wakes as many sleepers as there is work for beyond the caller's own tile. */
static void open_phase(stki_ring *ring, stki_ring_slot *slot, int64_t tiles)
{
    int64_t wake = 0;

    slot->tile_count = tiles;
    atomic_store_explicit(&slot->tiles_pending, tiles, memory_order_relaxed);
    atomic_store_explicit(&slot->tiles_left, tiles, memory_order_release); /* pairs with the acquire in claim() */
    if (tiles < 2)
        return;
    stki_lock(&ring->lock); /* a worker looks at tiles_left and goes to sleep under this lock, so none is missed */
    wake = ring->sleeping_workers < tiles - 1 ? ring->sleeping_workers : tiles - 1;
    stki_unlock(&ring->lock);
    while (wake-- > 0)
        stki_wake_one(&ring->work_cond);
}

/* Under the lock. True: a worker may be waiting for it. */
static bool set_free(stki_ring *ring, stki_ring_slot *slot)
{
    slot->state = STKI_SLOT_FREE;
    slot->next_free = ring->free_list;
    ring->free_list = slot;
    return ring->sleeping_workers > 0 && !ring->finishing && ring->next_open < ring->end;
}

/* Complete: ready, or free again where the ring was restarted since the slot was opened. */
static void publish(stki_ring *ring, stki_ring_slot *slot)
{
    bool wake_consumer = false, wake_worker = false;

    stki_lock(&ring->lock);
    if (slot->generation == ring->generation) {
        slot->state = STKI_SLOT_READY;
        wake_consumer = ring->consumer_waits && slot->step == ring->next_deliver;
    } else {
        wake_worker = set_free(ring, slot);
    }
    stki_unlock(&ring->lock);
    if (wake_consumer)
        stki_wake_one(&ring->ready_cond);
    if (wake_worker)
        stki_wake_one(&ring->work_cond);
}

/* The same between two phases, to save the work of the next one. Only where none of the slot's tiles is left. */
static bool give_up(stki_ring *ring, stki_ring_slot *slot)
{
    bool stale, wake = false;

    stki_lock(&ring->lock);
    stale = slot->generation != ring->generation;
    if (stale)
        wake = set_free(ring, slot);
    stki_unlock(&ring->lock);
    if (wake)
        stki_wake_one(&ring->work_cond);
    return stale;
}

/* All tiles of the current phase are done (or there were none): on to the next phase that has tiles, or publish. */
static void advance(stki_ring *ring, stki_ring_slot *slot, int worker)
{
    for (;;) {
        int64_t tiles;

        if (give_up(ring, slot))
            return;
        tiles = ring->work.phase_end(ring->work.context, slot, worker);
        if (tiles < 0) {
            publish(ring, slot);
            return;
        }
        slot->phase++;
        if (tiles > 0) {
            open_phase(ring, slot, tiles);
            return;
        }
    }
}

static void run_tile(stki_ring *ring, stki_ring_slot *slot, int64_t tile, int worker, stki_ring_clocks *clocks)
{
    ring->work.tile(ring->work.context, slot, tile, worker);
    stki_count(&clocks->tiles, 1);
    if (atomic_fetch_sub_explicit(&slot->tiles_pending, 1, memory_order_acq_rel) == 1)
        advance(ring, slot, worker);
}

/* Under the lock: the oldest slot with an unclaimed tile. */
static stki_ring_slot *slot_with_work(stki_ring *ring)
{
    for (int64_t step = ring->next_deliver; step < ring->next_open; step++) {
        stki_ring_slot *slot = ring->inflight[step % ring->slot_count];
        if (slot->state == STKI_SLOT_FILLING && atomic_load_explicit(&slot->tiles_left, memory_order_relaxed) > 0)
            return slot;
    }
    return NULL;
}

/* Under the lock: takes a free slot for the next step, or NULL. */
static stki_ring_slot *take_free(stki_ring *ring)
{
    stki_ring_slot *slot = ring->free_list;

    if (!slot || ring->finishing || ring->next_open >= ring->end)
        return NULL;
    ring->free_list = slot->next_free;
    assert(slot->state == STKI_SLOT_FREE);
    slot->state = STKI_SLOT_FILLING;
    slot->step = ring->next_open;
    slot->generation = ring->generation;
    slot->phase = 0;
    ring->inflight[ring->next_open % ring->slot_count] = slot;
    ring->next_open++;
    return slot;
}

/* Outside the lock. */
static void begin(stki_ring *ring, stki_ring_slot *slot, int worker)
{
    int64_t tiles = ring->work.begin(ring->work.context, slot, worker);

    if (tiles > 0)
        open_phase(ring, slot, tiles);
    else
        advance(ring, slot, worker);
}

void stki_ring_run(stki_ring *ring, int worker, stki_ring_clocks *clocks)
{
    stki_ring_slot *slot = NULL;
    int64_t tile;

    for (;;) {
        bool fresh = false;

        if (slot && !atomic_load_explicit(&ring->stopping, memory_order_relaxed) && claim(slot, &tile)) {
            run_tile(ring, slot, tile, worker, clocks);
            continue;
        }
        stki_lock(&ring->lock);
        while (!ring->stopping && !(slot = slot_with_work(ring)) && !(fresh = (slot = take_free(ring)) != NULL)) {
            bool starved = ring->free_list != NULL; /* there are slots, but the steps have run out or are all claimed */
            int64_t before = stki_now_ns();

            ring->sleeping_workers++;
            stki_wait(&ring->work_cond, &ring->lock, INT64_MAX);
            ring->sleeping_workers--;
            stki_count(starved ? &clocks->wait_work_ns : &clocks->wait_slot_ns, stki_now_ns() - before);
        }
        if (ring->stopping) {
            stki_unlock(&ring->lock);
            return;
        }
        stki_unlock(&ring->lock);
        if (fresh)
            begin(ring, slot, worker);
    }
}

/* Nobody else comes back to a slot whose step is not wanted any more. */
static bool is_stale(stki_ring *ring, const stki_ring_slot *slot)
{
    bool stale;

    stki_lock(&ring->lock);
    stale = slot->generation != ring->generation;
    stki_unlock(&ring->lock);
    return stale;
}

void stki_ring_run_inline(stki_ring *ring, int worker, stki_ring_clocks *clocks, int64_t deadline_ns)
{
    for (;;) {
        stki_ring_slot *slot = NULL;
        bool fresh = false, done;
        int64_t tile;

        stki_lock(&ring->lock);
        done = ring->stopping || ring->next_deliver >= ring->end;
        if (!done && ring->next_deliver < ring->next_open) {
            slot = ring->inflight[ring->next_deliver % ring->slot_count];
            done = slot->state == STKI_SLOT_READY;
        } else if (!done) {
            slot = take_free(ring);
            fresh = slot != NULL;
            done = !slot;
        }
        stki_unlock(&ring->lock);
        if (done)
            return;
        if (fresh)
            begin(ring, slot, worker);
        while (claim(slot, &tile)) {
            run_tile(ring, slot, tile, worker, clocks);
            if (deadline_ns != INT64_MAX && stki_now_ns() >= deadline_ns && !is_stale(ring, slot))
                return;
        }
    }
}

/* ---- the consumer's side ------------------------------------------------------------------------------------------
 */

stk_status stki_ring_next(stki_ring *ring, int64_t deadline_ns, stki_ring_slot **out, int64_t *waited_ns)
{
    stk_status status = STK_OK;
    bool timed_out = false;
    int64_t before = 0;

    stki_lock(&ring->lock);
    for (;;) {
        stki_ring_slot *slot = NULL;

        if (ring->stopping || ring->next_deliver >= ring->end) {
            status = ring->stopping ? STK_E_CLOSED : STK_END;
            break;
        }
        if (ring->next_deliver < ring->next_open)
            slot = ring->inflight[ring->next_deliver % ring->slot_count];
        if (slot && slot->state == STKI_SLOT_READY) {
            slot->state = STKI_SLOT_LEASED;
            ring->next_deliver++;
            *out = slot;
            break;
        }
        if (timed_out) { /* looked once more after the deadline: it may have come at the last moment */
            status = STK_E_TIMEOUT;
            break;
        }
        if (!before)
            before = stki_now_ns();
        ring->consumer_waits = true;
        timed_out = before >= deadline_ns || !stki_wait(&ring->ready_cond, &ring->lock, deadline_ns);
        ring->consumer_waits = false;
    }
    stki_unlock(&ring->lock);
    if (before)
        *waited_ns += stki_now_ns() - before;
    return status;
}

void stki_ring_release(stki_ring *ring, stki_ring_slot *slot)
{
    bool wake;

    stki_lock(&ring->lock);
    assert(slot->state == STKI_SLOT_LEASED);
    wake = set_free(ring, slot);
    stki_unlock(&ring->lock);
    if (wake)
        stki_wake_one(&ring->work_cond);
}

void stki_ring_stop(stki_ring *ring)
{
    stki_lock(&ring->lock);
    ring->stopping = true;
    stki_unlock(&ring->lock);
    stki_wake_all(&ring->work_cond);
    stki_wake_all(&ring->ready_cond);
}

bool stki_ring_stopping(const stki_ring *ring)
{
    return atomic_load_explicit(&ring->stopping, memory_order_relaxed);
}

void stki_ring_finish(stki_ring *ring, const stki_ring_slot *slot)
{
    stki_lock(&ring->lock);
    if (slot->generation == ring->generation)
        ring->finishing = true;
    stki_unlock(&ring->lock);
}

/* Takes back the tiles that nobody has claimed. True: nobody runs one either, so that the slot is the caller's. A phase
 * that a worker is about to open, having been asked before the restart, stays with that worker. */
static bool take_back(stki_ring_slot *slot)
{
    int64_t left = atomic_exchange_explicit(&slot->tiles_left, 0, memory_order_acquire);

    return left > 0 && atomic_fetch_sub_explicit(&slot->tiles_pending, left, memory_order_acq_rel) == left;
}

int64_t stki_ring_restart(stki_ring *ring, int64_t step)
{
    int64_t generation;

    stki_lock(&ring->lock);
    generation = ++ring->generation;
    for (int64_t opened = ring->next_deliver; opened < ring->next_open; opened++) {
        stki_ring_slot *slot = ring->inflight[opened % ring->slot_count];

        if (slot->state == STKI_SLOT_READY || (slot->state == STKI_SLOT_FILLING && take_back(slot)))
            (void)set_free(ring, slot);
    }
    ring->next_open = ring->next_deliver = step;
    ring->finishing = false;
    stki_unlock(&ring->lock);
    stki_wake_all(&ring->work_cond);
    stki_wake_all(&ring->ready_cond);
    return generation;
}

void stki_ring_await_restart(stki_ring *ring, int64_t deadline_ns)
{
    stki_lock(&ring->lock);
    while (ring->next_deliver >= ring->end && !ring->stopping && stki_wait(&ring->ready_cond, &ring->lock, deadline_ns))
        ;
    stki_unlock(&ring->lock);
}

void stki_ring_look(stki_ring *ring, stki_ring_view *out)
{
    *out = (stki_ring_view){.slots = ring->slot_count};
    stki_lock(&ring->lock);
    out->next_step = ring->next_deliver;
    for (int i = 0; i < ring->slot_count; i++)
        switch (ring->slots[i]->state) {
        case STKI_SLOT_FREE:
            out->free++;
            break;
        case STKI_SLOT_FILLING:
            out->filling++;
            break;
        case STKI_SLOT_READY:
            out->ready++;
            break;
        case STKI_SLOT_LEASED:
            out->leased++;
            break;
        }
    stki_unlock(&ring->lock);
}
