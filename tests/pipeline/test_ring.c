/* stki-threads */
/* Tests of the ring of slots with 1 to 64 workers: every tile of every phase of every step runs exactly once, steps
 * come out in order, and the ring can be stopped in any state. */
#include "allocate.h"
#include "calm.h"
#include "clock.h"
#include "faults.h"
#include "ring.h"
#include "stk_test.h"
#include "test_random.h"
#include "thread.h"

enum { MAX_SLOTS = 16, MAX_WORKERS = 64, MAX_TILES = 24 };

/* A slot that records its operations. Tiles write plain (non-atomic) memory, so that TSan detects races when a slot
 * changes threads. */
typedef struct toy_slot {
    stki_ring_slot ring;
    int64_t step_seen;
    int phases_ended;
    int looks; /* number of calls to toy_is_clear since its step began */
    int runs[3][MAX_TILES];
    int64_t sum;
} toy_slot;

typedef struct toy {
    toy_slot slots[MAX_SLOTS];
    stki_ring *ring;
    stki_thread *threads[MAX_WORKERS];
    stki_ring_clocks clocks[MAX_WORKERS + 1]; /* the last one is the consumer's */
    int workers, phases;
    int64_t slow_step, slow_ns;
} toy;

/* How the consumer helps: not at all, in every call, or in some of them; and the number of processors. */
enum helping { ALONE, ALWAYS, SOMETIMES };
static enum helping helping;
static int processors = 2;

static int64_t stop_tile;        /* > 0: the ring is stopped by this tile */
static int64_t restart_in_begin; /* > 0: the ring is restarted at this step once, while the next step begins */

static stki_ring_view *view_in_tile; /* not NULL: each tile stores a view here */
static _Atomic int *most_filling;    /* not NULL: the largest number of slots being filled when a step began */

static int looks_needed; /* number of checks before a slot is clear */
static _Atomic int64_t every_tile_ns;

static bool toy_is_clear(stki_ring_slot *ring_slot)
{
    toy_slot *slot = (void *)ring_slot;

    return slot->looks++ >= looks_needed;
}

static int64_t tiles_of(int64_t step, int phase)
{
    return (step * 7 + phase * 5) % MAX_TILES; /* sometimes 0, for empty phases and empty steps */
}

static int64_t toy_begin(void *context, stki_ring_slot *ring_slot, int worker)
{
    toy *t = context;
    toy_slot *slot = (void *)ring_slot;
    int64_t restart = restart_in_begin;

    (void)worker;
    if (restart > 0) {
        restart_in_begin = 0; /* used only without other threads */
        stki_ring_restart(t->ring, restart);
    }
    slot->step_seen = slot->looks > looks_needed ? slot->ring.step : -1;
    slot->looks = 0;
    slot->phases_ended = 0;
    memset(slot->runs, 0, sizeof slot->runs);
    slot->sum = 0;
    if (most_filling) {
        stki_ring_view view;

        stki_ring_look(t->ring, &view);
        if (view.filling > *most_filling)
            *most_filling = view.filling;
    }
    return tiles_of(slot->ring.step, 0);
}

static void toy_tile(void *context, stki_ring_slot *ring_slot, int64_t tile, int worker)
{
    toy *t = context;
    toy_slot *slot = (void *)ring_slot;

    (void)worker;
    if (slot->ring.step == t->slow_step)
        stki_sleep_ns(t->slow_ns);
    if (every_tile_ns > 0)
        stki_sleep_ns(every_tile_ns);
    if (stop_tile > 0 && tile == stop_tile)
        stki_ring_stop(t->ring);
    slot->runs[slot->ring.phase][tile]++;
    if (view_in_tile)
        stki_ring_look(t->ring, view_in_tile);
}

static int64_t toy_phase_end(void *context, stki_ring_slot *ring_slot, int worker)
{
    toy *t = context;
    toy_slot *slot = (void *)ring_slot;

    (void)worker;
    for (int64_t i = 0; i < MAX_TILES; i++)
        slot->sum += slot->runs[slot->ring.phase][i];
    slot->phases_ended++;
    return slot->ring.phase + 1 < t->phases ? tiles_of(slot->ring.step, slot->ring.phase + 1) : -1;
}

static bool toy_may(void *context)
{
    static uint64_t random = 5;

    (void)context;
    return helping == ALWAYS || stkt_random_in(&random, 0, 1) == 1;
}

static void let_help(toy *t, int worker, const _Atomic bool *leave)
{
    stki_ring_let_help(t->ring, &(stki_ring_help){.worker = worker,
                                                  .clocks = &t->clocks[worker],
                                                  .processors = processors,
                                                  .longest_ns = 3600 * STKI_SECOND,
                                                  .may = toy_may,
                                                  .leave = leave});
}

static void worker_main(void *context)
{
    struct {
        toy *t;
        int number;
    } *start = context;

    stki_ring_run(start->t->ring, start->number, &start->t->clocks[start->number]);
    free(start);
}

static void start(toy *t, int slots, int workers, int phases, int64_t end)
{
    stki_ring_slot *pointers[MAX_SLOTS];
    stki_ring_work work = {t, toy_begin, toy_tile, toy_phase_end, toy_is_clear};
    stk_error err;

    memset(t, 0, sizeof *t);
    t->workers = workers;
    t->phases = phases;
    t->slow_step = -1;
    for (int i = 0; i < slots; i++)
        pointers[i] = &t->slots[i].ring;
    assert_ok(stki_ring_create(pointers, slots, end, &work, &t->ring, &err));
    if (helping != ALONE && workers > 0)
        let_help(t, workers, NULL);
    for (int i = 0; i < workers; i++) {
        struct {
            toy *t;
            int number;
        } *s = malloc(sizeof *s);

        s->t = t;
        s->number = i;
        assert_ok(stki_thread_start(&t->threads[i], "toy", worker_main, s, &err));
    }
}

static void stop(toy *t)
{
    stki_ring_stop(t->ring);
    for (int i = 0; i < t->workers; i++)
        assert_true(stki_thread_join(t->threads[i], stki_deadline_ns(60 * STKI_SECOND)));
    stki_ring_destroy(t->ring);
}

static stk_status take(toy *t, toy_slot **out, int64_t timeout_ns)
{
    stki_ring_slot *slot = NULL;
    int64_t waited = 0, deadline = timeout_ns ? stki_deadline_ns(timeout_ns) : 0;
    stk_status status;

    if (t->workers == 0)
        stki_ring_run_inline(t->ring, 0, &t->clocks[0], INT64_MAX);
    status = stki_ring_next(t->ring, deadline, &slot, &waited);
    *out = (void *)slot;
    return status;
}

static void check(const toy *t, const toy_slot *slot, int64_t step)
{
    int64_t total = 0;

    assert_int_equal(slot->ring.step, step);
    assert_int_equal(slot->step_seen, step);
    assert_int_equal(slot->phases_ended, t->phases);
    for (int phase = 0; phase < t->phases; phase++) {
        for (int64_t tile = 0; tile < MAX_TILES; tile++)
            assert_int_equal(slot->runs[phase][tile], tile < tiles_of(step, phase) ? 1 : 0);
        total += tiles_of(step, phase);
    }
    assert_int_equal(slot->sum, total);
}

static void run_all(int slots, int workers, int phases, int64_t steps)
{
    toy *t = malloc(sizeof *t);
    toy_slot *slot;
    int64_t tiles = 0, expected = 0;

    start(t, slots, workers, phases, steps);
    for (int64_t step = 0; step < steps; step++) {
        assert_int_equal(take(t, &slot, 60 * STKI_SECOND), STK_OK);
        check(t, slot, step);
        stki_ring_release(t->ring, &slot->ring);
        for (int phase = 0; phase < phases; phase++)
            expected += tiles_of(step, phase);
    }
    assert_int_equal(take(t, &slot, 60 * STKI_SECOND), STK_END);
    assert_int_equal(take(t, &slot, 0), STK_END);
    stop(t);
    for (int i = 0; i <= MAX_WORKERS; i++)
        tiles += stki_counted(&t->clocks[i].tiles);
    assert_int_equal(tiles, expected);
    free(t);
}

static void every_step_in_order(void **state)
{
    static const int workers[] = {0, 1, 2, 3, 8, 64};

    (void)state;
    for (size_t w = 0; w < sizeof workers / sizeof workers[0]; w++)
        for (int slots = 1; slots <= 8; slots += slots < 3 ? 1 : 5)
            for (int phases = 1; phases <= 3; phases++)
                run_all(slots, workers[w], phases, 100);
}

/* Slots whose memory is still in use for a while after their release. No step begins in such a slot before it is clear,
 * and a worker checks repeatedly until it is. */
static void slots_that_clear_later(void **state)
{
    (void)state;
    looks_needed = 5;
    for (int workers = 1; workers <= 8; workers *= 2)
        for (int slots = 1; slots <= 4; slots++)
            run_all(slots, workers, 2, 60);
    looks_needed = 0;
}

/* Takes the next step, which this worker opens. */
static toy_slot *taken_by(toy *t, int worker)
{
    stki_ring_slot *slot = NULL;
    int64_t waited = 0;

    stki_ring_run_inline(t->ring, worker, &t->clocks[worker], INT64_MAX);
    assert_int_equal(stki_ring_next(t->ring, 0, &slot, &waited), STK_OK);
    return (void *)slot;
}

/* A worker gets the slot that it filled last, or else the most recently used one. No other slot is checked. */
static void workers_keep_their_slots(void **state)
{
    toy *t = malloc(sizeof *t);
    toy_slot *slots[3];

    (void)state;
    start(t, 3, 0, 1, INT64_MAX);
    for (int worker = 0; worker < 3; worker++)
        slots[worker] = taken_by(t, worker);
    for (int last = 0; last < 3; last++)
        for (int worker = 0; worker < 4; worker++) {
            toy_slot *const expected = slots[worker < 3 ? worker : last];

            for (int i = 1; i <= 3; i++)
                stki_ring_release(t->ring, &slots[(last + i) % 3]->ring);
            for (int i = 0; i < 3; i++)
                slots[i]->looks = 0;
            assert_ptr_equal(taken_by(t, worker), expected);
            for (int i = 0; i < 3 && worker == 3; i++)
                assert_int_equal(slots[i]->looks, 0);
            if (worker == 3) { /* back to its worker */
                stki_ring_release(t->ring, &expected->ring);
                assert_ptr_equal(taken_by(t, last), expected);
            }
            for (int i = 0; i < 3; i++)
                if (slots[i] != expected)
                    assert_ptr_equal(taken_by(t, i), slots[i]);
        }
    stop(t);
    free(t);
}

/* All slots are leased at once and released in a different order. */
static void leases_in_any_order(void **state)
{
    toy *t = malloc(sizeof *t);
    toy_slot *held[4], *slot;

    (void)state;
    start(t, 4, 3, 2, 200);
    for (int64_t step = 0; step < 200; step += 4) {
        for (int i = 0; i < 4; i++)
            assert_int_equal(take(t, &held[i], 60 * STKI_SECOND), STK_OK);
        assert_int_equal(take(t, &slot, 1000000), step + 4 < 200 ? STK_E_TIMEOUT : STK_END);
        for (int i = 0; i < 4; i++)
            check(t, held[i], step + i);
        stki_ring_release(t->ring, &held[2]->ring);
        stki_ring_release(t->ring, &held[0]->ring);
        stki_ring_release(t->ring, &held[3]->ring);
        stki_ring_release(t->ring, &held[1]->ring);
    }
    stop(t);
    free(t);
}

/* One lease held to the end blocks only its slot. */
static void a_long_lease_blocks_one_slot(void **state)
{
    toy *t = malloc(sizeof *t);
    toy_slot *first, *slot;

    (void)state;
    start(t, 3, 2, 1, 100);
    assert_int_equal(take(t, &first, 60 * STKI_SECOND), STK_OK);
    for (int64_t step = 1; step < 100; step++) {
        assert_int_equal(take(t, &slot, 60 * STKI_SECOND), STK_OK);
        check(t, slot, step);
        stki_ring_release(t->ring, &slot->ring);
    }
    check(t, first, 0);
    stki_ring_release(t->ring, &first->ring);
    stop(t);
    free(t);
}

/* A timeout does not end the run: the same step is delivered later. */
static void timeout_is_not_sticky(void **state)
{
    toy *t = malloc(sizeof *t);
    toy_slot *slot;

    (void)state;
    start(t, 2, 1, 1, 10);
    stop(t);
    start(t, 2, 0, 1, 10);
    t->workers = 0;
    t->slow_step = 1; /* tiles_of(1, 0) is 7 */
    t->slow_ns = 20000000;
    assert_int_equal(take(t, &slot, 60 * STKI_SECOND), STK_OK);
    stki_ring_release(t->ring, &slot->ring);
    {
        stki_ring_slot *none = NULL;
        int64_t waited = 0;

        stki_ring_run_inline(t->ring, 0, &t->clocks[0], stki_deadline_ns(25000000));
        assert_int_equal(stki_ring_next(t->ring, 0, &none, &waited), STK_E_TIMEOUT);
        assert_null(none);
    }
    assert_int_equal(take(t, &slot, 60 * STKI_SECOND), STK_OK);
    check(t, slot, 1);
    stki_ring_release(t->ring, &slot->ring);
    stop(t);
    free(t);
}

/* A stop waits for the tiles that are running, not for the rest of their batch. */
static void stop_between_tiles(void **state)
{
    toy *t = malloc(sizeof *t);
    toy_slot *slot;

    (void)state;
    stop_tile = 2;
    start(t, 1, 1, 1, 3); /* step 0 has no tiles, step 1 has 7 */
    assert_int_equal(take(t, &slot, 60 * STKI_SECOND), STK_OK);
    stki_ring_release(t->ring, &slot->ring);
    assert_int_equal(take(t, &slot, 60 * STKI_SECOND), STK_E_CLOSED);
    stop(t);
    stop_tile = 0;
    for (int64_t tile = 0; tile < tiles_of(1, 0); tile++)
        assert_in_range(t->slots[0].runs[0][tile], tile <= 2, tile <= 2 || (helping != ALONE && tile == 3));
    free(t);
}

static void stop_from_any_state(void **state)
{
    (void)state;
    for (int held = 0; held <= 3; held++)
        for (int workers = 1; workers <= 8; workers *= 2) {
            toy *t = malloc(sizeof *t);
            toy_slot *slots[3], *none;

            start(t, 3, workers, 2, INT64_MAX);
            for (int i = 0; i < held; i++)
                assert_int_equal(take(t, &slots[i], 60 * STKI_SECOND), STK_OK);
            stki_ring_stop(t->ring);
            assert_int_equal(take(t, &none, 60 * STKI_SECOND), STK_E_CLOSED);
            for (int i = 0; i < held; i++)
                stki_ring_release(t->ring, &slots[i]->ring);
            stop(t);
            free(t);
        }
}

static void finish_delivers_what_is_begun(void **state)
{
    toy *t = malloc(sizeof *t);
    toy_slot *slot;
    stki_ring_view view;

    (void)state;
    start(t, 4, 2, 1, INT64_MAX);
    assert_int_equal(take(t, &slot, 60 * STKI_SECOND), STK_OK);
    stki_ring_finish(t->ring, &slot->ring);
    stki_ring_release(t->ring, &slot->ring);
    for (;;) {
        stki_ring_look(t->ring, &view);
        if (view.filling == 0)
            break;
        stki_sleep_ns(1000000);
    }
    for (int i = 0; i < view.ready; i++) {
        assert_int_equal(take(t, &slot, 60 * STKI_SECOND), STK_OK);
        check(t, slot, i + 1);
    }
    assert_int_equal(take(t, &slot, 1000000), STK_E_TIMEOUT);
    stop(t);
    free(t);
}

/* Restarts at random steps, with held leases and slots in every state. All following steps are delivered completely,
 * and no slot is lost. */
static void restarts_lose_nothing(void **state)
{
    static const int workers[] = {0, 1, 2, 8};
    uint64_t random = 7;

    (void)state;
    for (size_t w = 0; w < sizeof workers / sizeof workers[0]; w++)
        for (int slots = 1; slots <= 5; slots += 2)
            for (int phases = 1; phases <= 3; phases++) {
                toy *t = malloc(sizeof *t);
                toy_slot *held = NULL, *slot;
                int64_t step = 0, held_step = 0;

                start(t, slots, workers[w], phases, INT64_MAX);
                for (int turn = 0; turn < 60; turn++) {
                    int64_t takes = stkt_random_in(&random, 0, 6);

                    for (int64_t i = 0; i < takes; i++) {
                        assert_int_equal(take(t, &slot, 60 * STKI_SECOND), STK_OK);
                        check(t, slot, step);
                        if (slots > 1 && !held) {
                            held = slot;
                            held_step = step;
                        } else {
                            stki_ring_release(t->ring, &slot->ring);
                        }
                        step++;
                    }
                    if (turn % 7 == 3)
                        stki_sleep_ns(200000); /* all slots are full */
                    if (turn % 9 == 5 && takes > 0)
                        stki_ring_finish(t->ring, &slot->ring); /* the restart undoes this */
                    step = stkt_random_in(&random, 0, 1000);
                    stki_ring_restart(t->ring, step);
                    if (held && turn % 3 == 0) {
                        check(t, held, held_step);
                        stki_ring_release(t->ring, &held->ring);
                        held = NULL;
                    }
                }
                if (held)
                    stki_ring_release(t->ring, &held->ring);
                for (int i = 0; i < slots; i++) /* no slot was lost */
                    assert_int_equal(take(t, &slot, 60 * STKI_SECOND), STK_OK);
                assert_int_equal(take(t, &slot, 1000000), STK_E_TIMEOUT);
                stop(t);
                free(t);
            }
}

/* The caller's thread does the work and is interrupted in the middle of a step. */
static void restart_of_half_a_step(void **state)
{
    toy *t = malloc(sizeof *t);
    toy_slot *slot;

    (void)state;
    start(t, 1, 0, 2, 100);
    t->slow_step = 1;
    t->slow_ns = 5000000;
    assert_int_equal(take(t, &slot, 60 * STKI_SECOND), STK_OK);
    stki_ring_release(t->ring, &slot->ring);
    stki_ring_run_inline(t->ring, 0, &t->clocks[0], stki_deadline_ns(1));
    stki_ring_restart(t->ring, 50);
    for (int64_t step = 50; step < 100; step++) {
        assert_int_equal(take(t, &slot, 60 * STKI_SECOND), STK_OK);
        check(t, slot, step);
        stki_ring_release(t->ring, &slot->ring);
    }
    assert_int_equal(take(t, &slot, 0), STK_END);
    stki_ring_restart(t->ring, 100);
    assert_int_equal(take(t, &slot, 0), STK_END);
    stop(t);
    free(t);
}

/* Without workers, another thread restarts the ring while the caller begins a step, and the caller's time ends before
 * the step is complete. The slot must not be lost. */
static void restart_while_a_step_is_opened(void **state)
{
    toy *t = malloc(sizeof *t);
    stki_ring_view view;
    toy_slot *slot;

    (void)state;
    start(t, 1, 0, 1, 100);
    assert_int_equal(take(t, &slot, 60 * STKI_SECOND), STK_OK); /* step 0 has no tiles */
    stki_ring_release(t->ring, &slot->ring);
    restart_in_begin = 7;
    stki_ring_run_inline(t->ring, 0, &t->clocks[0], 1);
    for (int64_t step = 7; step < 100; step++) {
        assert_int_equal(take(t, &slot, 0), STK_OK);
        check(t, slot, step);
        stki_ring_release(t->ring, &slot->ring);
    }
    stki_ring_look(t->ring, &view);
    assert_int_equal(view.free, 1);
    stop(t);
    free(t);
}

static void a_view_counts_the_slots(void **state)
{
    toy *t = malloc(sizeof *t);
    toy_slot *first, *second;
    stki_ring_view view;

    (void)state;
    start(t, 4, 0, 1, 100);
    assert_int_equal(take(t, &first, 0), STK_OK);
    view_in_tile = &view;
    stki_ring_run_inline(t->ring, 0, &t->clocks[0], INT64_MAX);
    view_in_tile = NULL;
    assert_int_equal(view.slots, 4);
    assert_int_equal(view.leased, 1);
    assert_int_equal(view.filling, 1);
    assert_int_equal(view.ready, 0);
    assert_int_equal(view.free, 2);
    stki_ring_look(t->ring, &view);
    assert_int_equal(view.filling, 0);
    assert_int_equal(view.ready, 1);
    assert_int_equal(view.next_step, 1);
    assert_int_equal(take(t, &second, 0), STK_OK);
    stki_ring_release(t->ring, &first->ring);
    stki_ring_look(t->ring, &view);
    assert_int_equal(view.leased, 1);
    assert_int_equal(view.ready, 0);
    assert_int_equal(view.free, 3);
    stop(t);
    free(t);
}

static void await_restart_waits_after_the_last_step(void **state)
{
    toy *t = malloc(sizeof *t);
    toy_slot *slot;
    int64_t deadline;

    (void)state;
    start(t, 1, 0, 1, 1);
    stki_ring_await_restart(t->ring, INT64_MAX); /* a step has not been delivered yet, so the call does not wait */
    assert_int_equal(take(t, &slot, 0), STK_OK);
    stki_ring_release(t->ring, &slot->ring);
    deadline = stki_deadline_ns(2000000);
    stki_ring_await_restart(t->ring, deadline);
    assert_true(stki_now_ns() >= deadline);
    stop(t);
    free(t);
}

/* ---- one step by two workers ---- */

/* One step of two tiles, each of which ends when both have started. */
typedef struct pair {
    stki_ring_slot slot;
    stki_ring *ring;
    stki_mutex lock;
    stki_cond cond;
    int begun, numbers[2];
    bool together;
} pair;

/* The other worker has found nothing to do and sleeps. */
static int64_t pair_begin(void *context, stki_ring_slot *slot, int worker)
{
    (void)context, (void)slot, (void)worker;
    stkt_wait_for_calm();
    return 2;
}

static void pair_tile(void *context, stki_ring_slot *slot, int64_t tile, int worker)
{
    pair *p = context;
    const int64_t deadline = stki_deadline_ns(20 * STKI_SECOND);

    (void)slot;
    stki_lock(&p->lock);
    p->numbers[tile] = worker;
    p->begun++;
    stki_wake_all(&p->cond);
    while (p->begun < 2 && stki_wait(&p->cond, &p->lock, deadline))
        ;
    if (tile == 0)
        p->together = p->begun == 2;
    stki_unlock(&p->lock);
}

static int64_t pair_end(void *context, stki_ring_slot *slot, int worker)
{
    (void)context, (void)slot, (void)worker;
    return -1;
}

static void pair_main(void *context)
{
    static _Atomic int next;
    stki_ring_clocks clocks = {0};

    stki_ring_run(((pair *)context)->ring, next++ % 2, &clocks);
}

/* A sleeping worker is woken for the second tile of a step that another worker begins. */
static void a_sleeper_takes_the_second_tile(void **state)
{
    static pair p;
    stki_ring_slot *const slots[] = {&p.slot};
    const stki_ring_work work = {&p, pair_begin, pair_tile, pair_end};
    stki_thread *threads[2];
    stki_ring_slot *slot;
    int64_t waited = 0;
    stk_error err;

    (void)state;
    stki_mutex_init(&p.lock);
    stki_cond_init(&p.cond);
    assert_ok(stki_ring_create(slots, 1, 1, &work, &p.ring, &err));
    for (int i = 0; i < 2; i++)
        assert_ok(stki_thread_start(&threads[i], "pair", pair_main, &p, &err));
    assert_ok(stki_ring_next(p.ring, stki_deadline_ns(60 * STKI_SECOND), &slot, &waited));
    assert_true(p.together);
    assert_int_not_equal(p.numbers[0], p.numbers[1]);
    stki_ring_release(p.ring, slot);
    stki_ring_stop(p.ring);
    for (int i = 0; i < 2; i++)
        assert_true(stki_thread_join(threads[i], stki_deadline_ns(60 * STKI_SECOND)));
    stki_ring_destroy(p.ring);
    stki_cond_fini(&p.cond);
    stki_mutex_fini(&p.lock);
}

static void create_survives_every_allocation_failure(void **state)
{
    stki_ring_slot slot, *pointer = &slot;
    stki_ring_work work = {NULL, toy_begin, toy_tile, toy_phase_end};
    stki_ring *ring = NULL;
    stk_error err;
    int n = 0;

    (void)state;
    do {
        stki_memory_fail_at(++n);
        memset(&err, 0, sizeof err);
    } while (stki_ring_create(&pointer, 1, 1, &work, &ring, &err) == STK_E_MEMORY && err.message[0] && n < 100);
    stki_memory_fail_at(0);
    assert_true(n > 1 && n < 100);
    stki_ring_destroy(ring);
}

/* ---- a consumer that helps ---- */

/* Restarts by another thread at any time: every delivered step is complete. */
static void restart_now_and_then(void *context)
{
    toy *t = context;
    uint64_t random = 11;

    for (int i = 0; i < 80; i++) {
        stki_sleep_ns(stkt_random_in(&random, 1, 200000));
        stki_ring_restart(t->ring, stkt_random_in(&random, 0, 100000));
    }
    stki_ring_stop(t->ring);
}

static void restarts_by_another_thread(void **state)
{
    static const int workers[] = {1, 2, 8, 64};

    (void)state;
    for (size_t w = 0; w < sizeof workers / sizeof workers[0]; w++)
        for (int slots = 1; slots <= 5; slots += 2) {
            toy *t = malloc(sizeof *t);
            stki_thread *thread;
            toy_slot *slot;
            stk_error err;
            stk_status status;

            start(t, slots, workers[w], 2, INT64_MAX);
            assert_ok(stki_thread_start(&thread, "restart", restart_now_and_then, t, &err));
            while ((status = take(t, &slot, 60 * STKI_SECOND)) == STK_OK) {
                check(t, slot, slot->step_seen);
                stki_ring_release(t->ring, &slot->ring);
            }
            assert_int_equal(status, STK_E_CLOSED);
            assert_true(stki_thread_join(thread, INT64_MAX));
            stop(t);
            free(t);
        }
}

static void stop_soon(void *context)
{
    toy *t = context;

    stki_sleep_ns(2000000);
    stki_ring_stop(t->ring);
}

static void stop_while_it_helps(void **state)
{
    (void)state;
    for (int turn = 0; turn < 40; turn++) {
        toy *t = malloc(sizeof *t);
        stki_thread *thread;
        toy_slot *slot;
        stk_error err;
        stk_status status;

        start(t, 1 + turn % 4, 1 + turn % 3, 2, INT64_MAX);
        assert_ok(stki_thread_start(&thread, "stop", stop_soon, t, &err));
        while ((status = take(t, &slot, 60 * STKI_SECOND)) == STK_OK)
            stki_ring_release(t->ring, &slot->ring);
        assert_int_equal(status, STK_E_CLOSED);
        assert_true(stki_thread_join(thread, INT64_MAX));
        stop(t);
        free(t);
    }
}

/* Slots are released by another thread while the consumer helps or sleeps. */
typedef struct giver {
    toy *t;
    stki_mutex lock;
    stki_cond cond;
    toy_slot *queue[MAX_SLOTS];
    int count;
    bool over;
} giver;

static void give_back_slots(void *context)
{
    giver *g = context;

    stki_lock(&g->lock);
    while (!g->over || g->count > 0) {
        toy_slot *slot = g->count > 0 ? g->queue[--g->count] : NULL;

        if (!slot) {
            stki_wait(&g->cond, &g->lock, INT64_MAX);
            continue;
        }
        stki_unlock(&g->lock);
        stki_ring_release(g->t->ring, &slot->ring);
        stki_lock(&g->lock);
    }
    stki_unlock(&g->lock);
}

static void releases_by_another_thread(void **state)
{
    static const int workers[] = {1, 2, 8, 64};

    (void)state;
    for (size_t w = 0; w < sizeof workers / sizeof workers[0]; w++)
        for (int slots = 1; slots <= 9; slots += 4) {
            giver g = {.t = malloc(sizeof *g.t)};
            stki_thread *thread;
            toy_slot *slot;
            stk_error err;

            stki_mutex_init(&g.lock);
            stki_cond_init(&g.cond);
            start(g.t, slots, workers[w], 2, 1000);
            assert_ok(stki_thread_start(&thread, "giver", give_back_slots, &g, &err));
            for (int64_t step = 0; step < 1000; step++) {
                assert_int_equal(take(g.t, &slot, 60 * STKI_SECOND), STK_OK);
                check(g.t, slot, step);
                stki_lock(&g.lock);
                g.queue[g.count++] = slot;
                stki_unlock(&g.lock);
                stki_wake_one(&g.cond);
                if (step % 100 == 50)
                    stki_sleep_ns(3000000); /* the consumer is busy elsewhere */
            }
            stki_lock(&g.lock);
            g.over = true;
            stki_unlock(&g.lock);
            stki_wake_one(&g.cond);
            assert_true(stki_thread_join(thread, INT64_MAX));
            stop(g.t);
            stki_cond_fini(&g.cond);
            stki_mutex_fini(&g.lock);
            free(g.t);
        }
}

/* Without workers, the consumer does all the work. It stops on request, and otherwise after the tile during which its
 * time ends. */
static void leaves_in_time(void **state)
{
    static _Atomic bool leave;
    toy *t = malloc(sizeof *t);
    stki_ring_slot *out = NULL;
    toy_slot *slot;
    int64_t waited = 0, ran = 0;

    (void)state;
    start(t, 1, 0, 1, INT64_MAX);
    let_help(t, 0, &leave);
    for (int step = 0; step < 2; step++) { /* step 1 has tiles, after which their duration is known */
        assert_int_equal(take(t, &slot, 0), STK_OK);
        stki_ring_release(t->ring, &slot->ring);
    }
    helping = ALWAYS;
    leave = true;
    assert_int_equal(stki_ring_next(t->ring, INT64_MAX, &out, &waited), STK_E_TIMEOUT);
    leave = false;
    assert_int_equal(stki_ring_next(t->ring, INT64_MAX, &out, &waited), STK_OK);
    check(t, (void *)out, 2);
    stki_ring_release(t->ring, out);
    t->slow_step = 3; /* with 21 tiles */
    t->slow_ns = 20000000;
    assert_int_equal(stki_ring_next(t->ring, stki_deadline_ns(30000000), &out, &waited), STK_E_TIMEOUT);
    for (int tile = 0; tile < 21; tile++)
        ran += t->slots[0].runs[0][tile];
    assert_in_range(ran, 1, 2);
    t->slow_ns = 0;
    assert_int_equal(stki_ring_next(t->ring, INT64_MAX, &out, &waited), STK_OK);
    check(t, (void *)out, 3);
    stki_ring_release(t->ring, out);
    helping = ALONE;
    stop(t);
    free(t);
}

static int parked(const toy *t)
{
    int count = 0;

    for (int i = 0; i < t->workers; i++)
        count += stki_counted(&t->clocks[i].parked_since_ns) > 0;
    return count;
}

/* A consumer that helps parks workers. They must run again if the consumer only polls from then on. */
static void poll_with(int workers)
{
    const int64_t deadline = stki_deadline_ns(60 * STKI_SECOND);
    toy *t = malloc(sizeof *t);
    toy_slot *slot;

    start(t, 8, workers, 1, INT64_MAX);
    while (parked(t) == 0 && stki_now_ns() < deadline) {
        assert_int_equal(take(t, &slot, 60 * STKI_SECOND), STK_OK);
        stki_ring_release(t->ring, &slot->ring);
    }
    every_tile_ns = 5000000;
    while (parked(t) > 0 && stki_now_ns() < deadline) {
        if (take(t, &slot, 0) == STK_OK)
            stki_ring_release(t->ring, &slot->ring);
        stki_sleep_ns(200000);
    }
    assert_int_equal(parked(t), 0);
    every_tile_ns = 0;
    stop(t);
    free(t);
}

static void polling_keeps_no_worker_parked(void **state)
{
    (void)state;
    poll_with(2); /* one of them parks */
    poll_with(4);
}

/* While the consumer helps with very short steps, a worker takes several slots at once, so more slots are being filled
 * than there are threads. Steps are still delivered in order, and restarts and a stop in such a run lose nothing. */
static void very_short_steps_are_opened_in_runs(void **state)
{
    const int64_t deadline = stki_deadline_ns(60 * STKI_SECOND);
    _Atomic int most = 0;
    toy *t = malloc(sizeof *t);
    stki_thread *thread;
    toy_slot *slot;
    stk_error err;
    stk_status status;

    (void)state;
    most_filling = &most;
    start(t, MAX_SLOTS, 1, 1, INT64_MAX);
    for (int64_t step = 0; step < 1000 || (most <= 2 && stki_now_ns() < deadline); step++) {
        assert_int_equal(take(t, &slot, 60 * STKI_SECOND), STK_OK);
        check(t, slot, step);
        stki_ring_release(t->ring, &slot->ring);
    }
    assert_in_range(most, 3, 5); /* a run of four and the consumer's step */
    assert_ok(stki_thread_start(&thread, "restart", restart_now_and_then, t, &err));
    while ((status = take(t, &slot, 60 * STKI_SECOND)) == STK_OK) {
        check(t, slot, slot->step_seen);
        stki_ring_release(t->ring, &slot->ring);
    }
    assert_int_equal(status, STK_E_CLOSED);
    assert_true(stki_thread_join(thread, INT64_MAX));
    stop(t);
    most_filling = NULL;
    free(t);
}

static int run_with(enum helping how, int of, const struct CMUnitTest *tests, size_t count, const char *name)
{
    helping = how;
    processors = of;
    return _cmocka_run_group_tests(name, tests, count, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_step_in_order),
        cmocka_unit_test(slots_that_clear_later),
        cmocka_unit_test(workers_keep_their_slots),
        cmocka_unit_test(leases_in_any_order),
        cmocka_unit_test(a_long_lease_blocks_one_slot),
        cmocka_unit_test(timeout_is_not_sticky),
        cmocka_unit_test(stop_between_tiles),
        cmocka_unit_test(stop_from_any_state),
        cmocka_unit_test(finish_delivers_what_is_begun),
        cmocka_unit_test(a_view_counts_the_slots),
        cmocka_unit_test(await_restart_waits_after_the_last_step),
        cmocka_unit_test(restarts_lose_nothing),
        cmocka_unit_test(restart_of_half_a_step),
        cmocka_unit_test(restart_while_a_step_is_opened),
        cmocka_unit_test(a_sleeper_takes_the_second_tile),
        cmocka_unit_test(create_survives_every_allocation_failure),
        cmocka_unit_test(leaves_in_time),
        cmocka_unit_test(restarts_by_another_thread),
        cmocka_unit_test(releases_by_another_thread),
    };
    const struct CMUnitTest helped[] = {
        cmocka_unit_test(every_step_in_order),
        cmocka_unit_test(leases_in_any_order),
        cmocka_unit_test(slots_that_clear_later),
        cmocka_unit_test(a_long_lease_blocks_one_slot),
        cmocka_unit_test(stop_between_tiles),
        cmocka_unit_test(stop_from_any_state),
        cmocka_unit_test(finish_delivers_what_is_begun),
        cmocka_unit_test(restarts_lose_nothing),
        cmocka_unit_test(restarts_by_another_thread),
        cmocka_unit_test(releases_by_another_thread),
        cmocka_unit_test(stop_while_it_helps),
    };
    const struct CMUnitTest two_processors[] = {
        cmocka_unit_test(polling_keeps_no_worker_parked),
        cmocka_unit_test(very_short_steps_are_opened_in_runs),
    };
    const size_t n = sizeof helped / sizeof *helped;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    failed += run_with(ALWAYS, 1, helped, n, "helping, one processor");
    failed += run_with(ALWAYS, 64, helped, n, "helping, many processors");
    failed += run_with(SOMETIMES, 2, helped, n, "helping now and then");
    failed += run_with(ALWAYS, 2, two_processors, 2, "helping, two processors");
    return failed;
}
