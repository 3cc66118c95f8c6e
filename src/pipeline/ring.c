/* ring.c: see ring.h. Lock order: the ring's lock is a leaf, and callbacks run without it. */
#include "ring.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include <assert.h>
#include <limits.h>

enum {
    CLEAR_POLL_NS = 100000,
    RUN = 4,            /* the largest number of steps that a worker opens at once */
    RUN_STEP_NS = 5000, /* the longest time such a step may take */
    APART = 128 /* alignment of what different threads write: two cache lines, which some processors fetch together */
};

struct stki_ring {
    /* constant after create */
    stki_ring_work work;
    int slot_count;
    int64_t end;

    stki_ring_help help; /* may == NULL: the consumer never helps */

    /* Written rarely, under the lock; read without it between tiles. */
    _Atomic int64_t generation; /* incremented by every restart */
    _Atomic bool stopping;

    /* The members above are read for every tile, those below are written for many. */
    _Alignas(APART) stki_counter tile_ns; /* running mean of the time per tile; 0: unknown */
    _Alignas(APART) stki_mutex lock;      /* guards everything below */
    /* What threads look for is kept here, because the slots themselves are cached by the processors that use them. */
    struct step {
        stki_ring_slot *slot;
        bool ready;
    } * inflight; /* inflight[step % slot_count] for steps in [next_deliver, next_open) */
    struct free_slot {
        stki_ring_slot *slot;
        int opener; /* the worker that opened its last step; -1: none */
    } * free_slots; /* the last one was used most recently and is probably still cached */
    int free_count, leased;
    int64_t next_open, next_deliver;
    int working, sleeping_workers, parked_workers; /* numbers of workers in three states; each is in exactly one */
    bool consumer_waits, finishing;
    bool is_blocked; /* there are free slots for the next step, but none of them is clear */
    bool is_polled;  /* a worker is polling for a slot to become clear */

    /* used if the consumer may help */
    bool consumer_helps;  /* when it last had to wait, it was allowed to help */
    bool consumer_works;  /* the consumer uses more than half a processor */
    bool consumer_inside; /* the consumer is in stki_ring_next */
    int64_t away_since;   /* when the consumer was first found to be outside; 0: not checked */
    struct consumer {
        pthread_t thread;
        int64_t since_ns, cpu_ns; /* time, and the consumer's CPU time, at the last measurement */
    } consumer;

    /* Last, so that the members that every batch changes span few cache lines. */
    stki_cond work_cond, ready_cond, park_cond;
};

stk_status stki_ring_create(stki_ring_slot *const *slots, int slot_count, int64_t end, const stki_ring_work *work,
                            stki_ring **out, stk_error *err)
{
    stki_ring *ring = stki_block_alloc(NULL, sizeof *ring, APART);

    if (!ring)
        return stki_fail_memory(err, sizeof *ring, "the ring");
    *ring = (stki_ring){.work = *work, .slot_count = slot_count, .end = end};
    stki_mutex_init(&ring->lock);
    stki_cond_init(&ring->work_cond);
    stki_cond_init(&ring->ready_cond);
    stki_cond_init(&ring->park_cond);
    ring->inflight = stki_zalloc_array(slot_count, sizeof *ring->inflight);
    ring->free_slots = stki_zalloc_array(slot_count, sizeof *ring->free_slots);
    if (!ring->inflight || !ring->free_slots) {
        stki_ring_destroy(ring);
        return stki_fail_memory(err, slot_count * (int64_t)sizeof *ring->inflight, "the ring's slots");
    }
    for (int i = slot_count - 1; i >= 0; i--)
        ring->free_slots[ring->free_count++] = (struct free_slot){slots[i], -1};
    *out = ring;
    return STK_OK;
}

void stki_ring_destroy(stki_ring *ring)
{
    if (!ring)
        return;
    stki_cond_fini(&ring->park_cond);
    stki_cond_fini(&ring->ready_cond);
    stki_cond_fini(&ring->work_cond);
    stki_mutex_fini(&ring->lock);
    stki_free(ring->inflight);
    stki_free(ring->free_slots);
    stki_block_free(NULL, ring, sizeof *ring, APART);
}

void stki_ring_let_help(stki_ring *ring, const stki_ring_help *help)
{
    ring->help = *help;
}

/* ---- how many threads work; all functions are called under the lock ---- */

#define MEASURE_NS INT64_C(2000000) /* reading a thread's CPU time is a system call */
#define AWAY_NS INT64_C(2000000)

/* Number of workers that should be working. */
static int wanted_workers(const stki_ring *ring)
{
    if (!ring->consumer_works || ring->consumer_waits)
        return INT_MAX;
    return ring->help.processors > 2 ? ring->help.processors - 1 : 1;
}

/* The condition to signal for new work; NULL: no thread that should work is asleep. */
static stki_cond *whom_to_wake(stki_ring *ring)
{
    if (ring->sleeping_workers > 0)
        return &ring->work_cond;
    return ring->parked_workers > 0 && ring->working < wanted_workers(ring) ? &ring->park_cond : NULL;
}

static void wake(stki_cond *whom)
{
    if (whom)
        stki_wake_one(whom);
}

static void rest(stki_ring *ring, int *resting, stki_cond *cond, stki_counter *ns, int64_t deadline_ns)
{
    int64_t before = stki_now_ns();

    ring->working--;
    ++*resting;
    stki_wait(cond, &ring->lock, deadline_ns);
    --*resting;
    ring->working++;
    stki_count_own(ns, stki_now_ns() - before);
}

/* Called when the consumer has to wait: measures how much CPU time it has used since the last call. */
static void measure_consumer(stki_ring *ring, int64_t now)
{
    struct consumer *c = &ring->consumer;
    const bool same = pthread_equal(c->thread, pthread_self());

    if (same && now - c->since_ns < MEASURE_NS)
        return;
    const int64_t cpu = stki_thread_cpu_ns();

    ring->consumer_works = same && c->since_ns > 0 && 2 * (cpu - c->cpu_ns) > now - c->since_ns;
    *c = (struct consumer){pthread_self(), now, cpu};
    if (!ring->consumer_works && ring->parked_workers > 0)
        stki_wake_all(&ring->park_cond);
}

/* Called by a worker while others are parked: checks whether the consumer has been outside for long. */
static void look_for_consumer(stki_ring *ring)
{
    if (ring->parked_workers == 0 || ring->consumer_inside)
        return;
    const int64_t now = stki_now_ns();

    ring->away_since = ring->away_since ? ring->away_since : now;
    if (now - ring->away_since < AWAY_NS)
        return;
    ring->consumer_works = false;
    stki_wake_all(&ring->park_cond);
}

/* ---- filling ---- */

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

/* Makes the tiles of a phase claimable and wakes as many sleepers as there are tiles besides the caller's own. */
static void open_phase(stki_ring *ring, stki_ring_slot *slot, int64_t tiles)
{
    int64_t sleepers;
    stki_cond *parked = NULL;

    slot->tile_count = tiles;
    atomic_store_explicit(&slot->tiles_pending, tiles, memory_order_relaxed);
    atomic_store_explicit(&slot->tiles_left, tiles, memory_order_release); /* pairs with the acquire in claim() */
    if (tiles < 2)
        return;
    stki_lock(&ring->lock); /* a worker checks tiles_left and goes to sleep under this lock, so no wakeup is lost */
    sleepers = ring->sleeping_workers < tiles - 1 ? ring->sleeping_workers : tiles - 1;
    if (sleepers == 0)
        parked = whom_to_wake(ring);
    stki_unlock(&ring->lock);
    while (sleepers-- > 0)
        stki_wake_one(&ring->work_cond);
    wake(parked);
}

static struct step *step_at(const stki_ring *ring, int64_t step)
{
    return &ring->inflight[step % ring->slot_count];
}

/* Called under the lock. Returns the condition to signal. */
static stki_cond *set_free(stki_ring *ring, stki_ring_slot *slot)
{
    assert(ring->free_count < ring->slot_count);
    ring->free_slots[ring->free_count++] = (struct free_slot){slot, slot->opener};
    return !ring->finishing && ring->next_open < ring->end ? whom_to_wake(ring) : NULL;
}

/* The slot is complete: makes it ready, or free if the ring was restarted after the slot was opened. Under the lock,
 * which is released while a thread is woken. */
static void publish(stki_ring *ring, stki_ring_slot *slot)
{
    stki_cond *whom = NULL;

    if (slot->generation == ring->generation) {
        step_at(ring, slot->step)->ready = true;
        if (ring->consumer_waits && slot->step == ring->next_deliver)
            whom = &ring->ready_cond;
    } else {
        whom = set_free(ring, slot);
    }
    if (!whom)
        return;
    stki_unlock(&ring->lock);
    stki_wake_one(whom);
    stki_lock(&ring->lock);
}

/* Before a phase: if the ring was restarted after the slot was opened, makes the slot free, which avoids the work of
 * the phase, and returns true. Called without the lock, and only if none of the slot's tiles is left. */
static bool give_up(stki_ring *ring, stki_ring_slot *slot)
{
    stki_cond *worker;

    if (slot->generation == atomic_load_explicit(&ring->generation, memory_order_relaxed))
        return false; /* a restart from here on is detected when the slot is published */
    stki_lock(&ring->lock);
    worker = set_free(ring, slot);
    stki_unlock(&ring->lock);
    wake(worker);
    return true;
}

/* All tiles of the current phase are done (or there were none): opens the next phase that has tiles. True: there is
 * none, so the caller publishes the slot. */
static bool advance(stki_ring *ring, stki_ring_slot *slot, int worker)
{
    for (;;) {
        int64_t tiles;

        if (give_up(ring, slot))
            return false;
        tiles = ring->work.phase_end(ring->work.context, slot, worker);
        if (tiles < 0)
            return true;
        slot->phase++;
        if (tiles > 0) {
            open_phase(ring, slot, tiles);
            return false;
        }
    }
}

/* Updates a running mean, in which an interrupted tile has little weight. A lost update is harmless. */
static void note_tile(stki_ring *ring, int64_t ns)
{
    const int64_t mean = stki_counted(&ring->tile_ns), most = 4 * ring->help.longest_ns;

    ns = ns < most ? ns : most;
    stki_count_set(&ring->tile_ns, mean ? mean + (ns - mean) / 8 : ns + 1);
}

/* Reading the clock takes as long as a few rows, so only one in eight very short tiles is timed. */
static bool is_timed(const stki_ring *ring, const stki_ring_clocks *clocks)
{
    enum { VERY_SHORT_NS = 20000 };
    const int64_t mean = stki_counted(&ring->tile_ns);

    return mean == 0 || mean > VERY_SHORT_NS || stki_counted(&clocks->tiles) % 8 == 0;
}

/* True: the slot is complete, and the caller publishes it. */
static bool run_tile(stki_ring *ring, stki_ring_slot *slot, int64_t tile, int worker, stki_ring_clocks *clocks)
{
    const int64_t before = ring->help.may && is_timed(ring, clocks) ? stki_now_ns() : 0;
    bool complete = false;

    ring->work.tile(ring->work.context, slot, tile, worker);
    stki_count_own(&clocks->tiles, 1);
    if (atomic_fetch_sub_explicit(&slot->tiles_pending, 1, memory_order_acq_rel) == 1)
        complete = advance(ring, slot, worker);
    if (before)
        note_tile(ring, stki_now_ns() - before);
    return complete;
}

/* Under the lock: finds the oldest slot with an unclaimed tile. */
static stki_ring_slot *slot_with_work(stki_ring *ring)
{
    for (int64_t step = ring->next_deliver; step < ring->next_open; step++) {
        const struct step *at = step_at(ring, step);
        if (!at->ready && atomic_load_explicit(&at->slot->tiles_left, memory_order_relaxed) > 0)
            return at->slot;
    }
    return NULL;
}

/* The number of the clear free slot that was used most recently, preferably by this worker, whose processor then still
 * has it cached. -1: there is none. */
static int choose_free(const stki_ring *ring, int worker)
{
    int chosen = -1;

    for (int i = ring->free_count - 1; i >= 0; i--) {
        const bool own = ring->free_slots[i].opener == worker;

        if ((chosen >= 0 && !own) || (ring->work.is_clear && !ring->work.is_clear(ring->free_slots[i].slot)))
            continue;
        if (own)
            return i;
        chosen = i;
    }
    return chosen;
}

/* Under the lock: takes a clear free slot for the next step. NULL: there is none. */
static stki_ring_slot *take_free(stki_ring *ring, int worker)
{
    stki_ring_slot *slot;
    int chosen;

    ring->is_blocked = false;
    if (ring->free_count == 0 || ring->finishing || ring->next_open >= ring->end)
        return NULL;
    chosen = choose_free(ring, worker);
    ring->is_blocked = chosen < 0;
    if (chosen < 0)
        return NULL;
    slot = ring->free_slots[chosen].slot;
    ring->free_count--;
    for (int i = chosen; i < ring->free_count; i++)
        ring->free_slots[i] = ring->free_slots[i + 1];
    slot->opener = worker;
    slot->step = ring->next_open;
    slot->generation = ring->generation;
    slot->phase = 0;
    *step_at(ring, ring->next_open) = (struct step){slot, false};
    ring->next_open++;
    return slot;
}

/* Called without the lock. True: the slot is complete, and the caller publishes it. */
static bool begin(stki_ring *ring, stki_ring_slot *slot, int worker)
{
    const int64_t tiles = ring->work.begin(ring->work.context, slot, worker);

    if (tiles <= 0)
        return advance(ring, slot, worker);
    open_phase(ring, slot, tiles);
    return false;
}

/* Under the lock: finds a slot with unclaimed tiles, or a new one; waits if there is neither. False: the ring has been
 * stopped. */
static bool find_work(stki_ring *ring, int worker, stki_ring_slot **slot, bool *fresh, stki_ring_clocks *clocks)
{
    while (!ring->stopping) {
        bool polls;

        if (ring->working > wanted_workers(ring) && (!ring->is_blocked || ring->is_polled)) {
            stki_count_set(&clocks->parked_since_ns, stki_now_ns());
            rest(ring, &ring->parked_workers, &ring->park_cond, &clocks->wait_slot_ns, INT64_MAX);
            stki_count_set(&clocks->parked_since_ns, 0);
            continue;
        }
        look_for_consumer(ring);
        if ((*slot = slot_with_work(ring)) != NULL)
            return true;
        *fresh = (*slot = take_free(ring, worker)) != NULL;
        if (*fresh)
            return true;
        polls = ring->is_blocked && !ring->is_polled; /* one polling worker is enough */
        ring->is_polled |= polls;
        /* If there are clear slots, all steps have been opened and their tiles claimed. */
        rest(ring, &ring->sleeping_workers, &ring->work_cond,
             ring->free_count > 0 && !ring->is_blocked ? &clocks->wait_work_ns : &clocks->wait_slot_ns,
             polls ? stki_now_ns() + CLEAR_POLL_NS : INT64_MAX);
        ring->is_polled &= !polls;
    }
    return false;
}

/* Under the lock: while the consumer helps and steps are very short, takes slots for several steps at once. The lock
 * and what it guards then move from one processor to the other once per run instead of once per step. */
static stki_ring_slot *take_run(stki_ring *ring, const stki_ring_slot *slot, int worker)
{
    const int64_t ns = stki_counted(&ring->tile_ns) * slot->tile_count; /* of the slot's previous step */
    const int share = ring->slot_count / (2 * (ring->working + 1));     /* half of the slots, divided by the threads */
    stki_ring_slot *first = NULL, **end = &first;

    if (!ring->consumer_helps || !ring->consumer_works || ring->consumer_waits || ns == 0 || ns > RUN_STEP_NS)
        return NULL;
    for (int i = 1; i < RUN && i < share && (*end = take_free(ring, worker)) != NULL; i++)
        end = &(*end)->next;
    *end = NULL;
    return first;
}

void stki_ring_run(stki_ring *ring, int worker, stki_ring_clocks *clocks)
{
    stki_ring_slot *slot = NULL, *run = NULL, *done = NULL; /* `run` is not begun yet, `done` is not published yet */
    int64_t tile;
    bool newcomer = true;

    for (;;) {
        const bool stopping = atomic_load_explicit(&ring->stopping, memory_order_relaxed);
        bool fresh = false, complete;

        if (!stopping && slot && claim(slot, &tile)) {
            complete = run_tile(ring, slot, tile, worker, clocks);
        } else if (!stopping && run) {
            slot = run;
            run = slot->next;
            complete = !give_up(ring, slot) && begin(ring, slot, worker);
        } else {
            stki_lock(&ring->lock);
            ring->working += newcomer;
            newcomer = false;
            while ((slot = done) != NULL) {
                done = slot->next;
                publish(ring, slot);
            }
            if (!find_work(ring, worker, &slot, &fresh, clocks)) {
                ring->working--;
                stki_unlock(&ring->lock);
                return;
            }
            run = fresh ? take_run(ring, slot, worker) : NULL;
            stki_unlock(&ring->lock);
            complete = fresh && begin(ring, slot, worker);
        }
        if (complete) {
            slot->next = done;
            done = slot;
            slot = NULL;
        }
    }
}

/* Whether the slot's step has been discarded. If so, no other thread will return the slot. */
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
    stki_ring_slot *complete = NULL;

    for (;;) {
        stki_ring_slot *slot = NULL;
        bool fresh = false, done, blocked = false;
        int64_t tile;

        stki_lock(&ring->lock);
        if (complete)
            publish(ring, complete);
        complete = NULL;
        done = ring->stopping || ring->next_deliver >= ring->end;
        if (!done && ring->next_deliver < ring->next_open) {
            slot = step_at(ring, ring->next_deliver)->slot;
            done = step_at(ring, ring->next_deliver)->ready;
        } else if (!done) {
            slot = take_free(ring, worker);
            fresh = slot != NULL;
            done = !slot;
            blocked = done && ring->free_count > 0 && !ring->finishing;
        }
        stki_unlock(&ring->lock);
        if (blocked && deadline_ns != INT64_MAX && stki_now_ns() < deadline_ns) { /* no slot is clear yet */
            stki_sleep_ns(CLEAR_POLL_NS);
            continue;
        }
        if (done)
            return;
        if (fresh && begin(ring, slot, worker))
            complete = slot;
        while (!complete && claim(slot, &tile)) {
            if (run_tile(ring, slot, tile, worker, clocks))
                complete = slot;
            else if (deadline_ns != INT64_MAX && stki_now_ns() >= deadline_ns && !is_stale(ring, slot))
                return;
        }
    }
}

/* ---- the consumer's side ---- */

/* Under the lock: whether the consumer opened the slot and its step has been discarded since. If so, no other thread
 * will return the slot. */
static bool left_behind(const stki_ring *ring, const stki_ring_slot *slot)
{
    return slot && slot->generation != ring->generation &&
           atomic_load_explicit(&slot->tiles_left, memory_order_relaxed) > 0;
}

/* Under the lock, which is released meanwhile: the consumer runs one tile. `at` is the slot it is working on. False:
 * there is nothing to do. */
static bool help(stki_ring *ring, stki_ring_slot **at)
{
    stki_ring_slot *slot = left_behind(ring, *at) ? *at : slot_with_work(ring);
    bool fresh = false, complete;
    int64_t tile;

    if (!slot && (!ring->help.may_open || ring->help.may_open(ring->work.context, ring->next_open)))
        fresh = (slot = take_free(ring, ring->help.worker)) != NULL;
    if (!slot)
        return false;
    stki_unlock(&ring->lock);
    complete = fresh && begin(ring, slot, ring->help.worker);
    if (!complete && claim(slot, &tile))
        complete = run_tile(ring, slot, tile, ring->help.worker, ring->help.clocks);
    stki_lock(&ring->lock);
    if (complete)
        publish(ring, slot);
    *at = slot;
    return true;
}

/* Under the lock. */
static bool is_told_to_leave(const stki_ring *ring)
{
    return ring->help.leave && atomic_load_explicit(ring->help.leave, memory_order_relaxed);
}

static bool tiles_are_short(const stki_ring *ring)
{
    const int64_t ns = stki_counted(&ring->tile_ns);

    return ns > 0 && ns < ring->help.longest_ns;
}

/* The consumer has to wait, from *since on: returns whether it may help. Called under the lock, which is released
 * during the callback. */
static bool may_help(stki_ring *ring, int64_t *since)
{
    bool may;

    stki_unlock(&ring->lock);
    *since = stki_now_ns();
    may = tiles_are_short(ring) && ring->help.may(ring->work.context);
    stki_lock(&ring->lock);
    ring->consumer_helps = may;
    measure_consumer(ring, *since);
    return may;
}

/* Under the lock: the consumer stops helping and wakes a thread that can continue its work. */
static void hand_over_work(stki_ring *ring)
{
    stki_cond *whom = whom_to_wake(ring);

    if (whom && (slot_with_work(ring) || (ring->free_count > 0 && !ring->finishing && ring->next_open < ring->end)))
        stki_wake_one(whom);
}

/* Under the lock. False: the deadline has passed. */
static bool sleep_until_ready(stki_ring *ring, int64_t deadline_ns)
{
    bool in_time;

    ring->consumer_waits = true;
    if (ring->help.may)
        hand_over_work(ring);
    in_time = stki_now_ns() < deadline_ns && stki_wait(&ring->ready_cond, &ring->lock, deadline_ns);
    ring->consumer_waits = false;
    return in_time;
}

stk_status stki_ring_next(stki_ring *ring, int64_t deadline_ns, stki_ring_slot **out, int64_t *waited_ns)
{
    stk_status status = STK_OK;
    stki_ring_slot *at = NULL;
    const bool can_help = ring->help.may && deadline_ns > 0;
    bool timed_out = false, helps = false, helped = false;
    int64_t before = 0;

    stki_lock(&ring->lock);
    if (can_help) {
        ring->consumer_inside = true;
        ring->away_since = 0;
    }
    for (;;) {
        if (ring->stopping || ring->next_deliver >= ring->end) {
            status = ring->stopping ? STK_E_CLOSED : STK_END;
            break;
        }
        if (ring->next_deliver < ring->next_open && step_at(ring, ring->next_deliver)->ready) {
            *out = step_at(ring, ring->next_deliver++)->slot;
            ring->leased++;
            break;
        }
        if (helped && deadline_ns != INT64_MAX)
            timed_out |= stki_now_ns() >= deadline_ns;
        if (timed_out) { /* check again: the slot may have become ready just before the deadline */
            status = STK_E_TIMEOUT;
            break;
        }
        if (!before && can_help) {
            helps = may_help(ring, &before);
            continue;
        }
        before = before ? before : stki_now_ns();
        if (helps && is_told_to_leave(ring)) {
            timed_out = true;
        } else {
            helped = (left_behind(ring, at) || (helps && tiles_are_short(ring))) && help(ring, &at);
            timed_out = !helped && !sleep_until_ready(ring, deadline_ns);
        }
    }
    while (!ring->stopping && left_behind(ring, at))
        (void)help(ring, &at);
    if (at)
        hand_over_work(ring);
    if (can_help)
        ring->consumer_inside = false;
    stki_unlock(&ring->lock);
    if (before)
        *waited_ns += stki_now_ns() - before;
    return status;
}

void stki_ring_release(stki_ring *ring, stki_ring_slot *slot)
{
    stki_cond *worker;

    stki_lock(&ring->lock);
    assert(ring->leased > 0);
    ring->leased--;
    worker = set_free(ring, slot);
    stki_unlock(&ring->lock);
    wake(worker);
}

void stki_ring_stop(stki_ring *ring)
{
    stki_lock(&ring->lock);
    ring->stopping = true;
    stki_unlock(&ring->lock);
    stki_wake_all(&ring->work_cond);
    stki_wake_all(&ring->park_cond);
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

/* Takes back the unclaimed tiles. True: no tile is running either, so the caller owns the slot. A worker that checked
 * before the restart may be about to open a phase; that worker keeps the slot. */
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
        const struct step *at = step_at(ring, opened);

        if (at->ready || take_back(at->slot))
            (void)set_free(ring, at->slot);
    }
    ring->next_open = ring->next_deliver = step;
    ring->finishing = false;
    stki_count_set(&ring->tile_ns, 0);
    stki_unlock(&ring->lock);
    stki_wake_all(&ring->work_cond);
    stki_wake_all(&ring->park_cond);
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
    out->free = ring->free_count;
    out->leased = ring->leased;
    for (int64_t step = ring->next_deliver; step < ring->next_open; step++)
        out->ready += step_at(ring, step)->ready;
    out->filling = out->slots - out->free - out->leased - out->ready;
    stki_unlock(&ring->lock);
}
