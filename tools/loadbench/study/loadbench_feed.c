/* loadbench_feed.c: one thread per accelerator, which takes a batch, sleeps for a step and releases the batch. The
 * first step of each thread does not count. When all threads have finished theirs and the ramp is over, everything
 * counts until a common end. */
#include "loadbench_feed.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "loadbench_effective.h"
#include "loadbench_step.h"
#include "loadbench_stop.h"
#include "loadbench_table.h"
#include "thread.h"
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stoker/loader.h>
#include <string.h>

#define SLICE_NS (STKI_SECOND / 10)
#define STALL_NS (60 * STKI_SECOND) /* limit in ns for a loader that delivers nothing */

struct feed {
    const struct lb_bench *bench;
    int count;
    _Atomic int ready;        /* number of accelerators that have finished or failed their first step */
    _Atomic bool stop;        /* an accelerator has failed */
    _Atomic int64_t begin_ns; /* start of the measurement; 0: not all are ready */
    const struct lb_consumer *consumer;
};

struct accelerator {
    struct feed *feed;
    stk_loader *loader;
    stki_thread *thread;
    int64_t steps, samples, begin_ns, end_ns; /* totals and times of the measured part */
    stk_status status;
    stk_error err;
};

static bool is_stopped(const struct feed *feed)
{
    return lb_stop_asked || atomic_load_explicit(&feed->stop, memory_order_relaxed);
}

static void one_more_is_ready(struct feed *feed)
{
    if (atomic_fetch_add(&feed->ready, 1) + 1 == feed->count)
        atomic_store(&feed->begin_ns, stki_now_ns() + feed->bench->ramp);
}

/* STK_AGAIN: stopped, or the common end was reached. */
static stk_status next_batch(struct accelerator *a, stk_batch **batch)
{
    const int64_t asked = stki_now_ns();

    for (;;) {
        const stk_status status = stk_loader_next_timeout(a->loader, SLICE_NS, batch, &a->err);
        const int64_t begin = atomic_load(&a->feed->begin_ns), now = stki_now_ns();
        if (status != STK_E_TIMEOUT)
            return status;
        if (is_stopped(a->feed) || (begin > 0 && now >= begin + a->feed->bench->run_time))
            return STK_AGAIN;
        if (now - asked > STALL_NS)
            return status;
    }
}

/* Runs one step. Returns false at the end. */
static bool step(struct accelerator *a, struct lb_consumer_state *state)
{
    stk_batch *batch = NULL;

    a->status = next_batch(a, &batch);
    if (a->status != STK_OK)
        return false;
    const int64_t begin = stki_now_ns();
    (void)a->feed->consumer->take(state, batch, NULL);
    if (state->cut) { /* neither an interrupted step nor its time counts */
        a->end_ns = begin;
    } else {
        a->samples += stk_batch_valid_rows(batch);
        a->steps++;
    }
    stk_batch_release(batch);
    return !is_stopped(a->feed);
}

static void run(void *context)
{
    struct accelerator *a = context;
    struct lb_consumer_state state = {.step_ns = a->feed->bench->step_time};
    bool goes_on;

    (void)a->feed->consumer->begin(&state, NULL);
    goes_on = step(a, &state);
    one_more_is_ready(a->feed);
    while (goes_on) {
        const int64_t now = stki_now_ns(), begin = atomic_load(&a->feed->begin_ns);
        if (begin > 0 && now >= begin && a->begin_ns == 0) {
            a->begin_ns = now;
            a->steps = a->samples = 0;
        }
        if (begin > 0 && now >= begin + a->feed->bench->run_time)
            break;
        goes_on = step(a, &state);
    }
    if (!state.cut)
        a->end_ns = stki_now_ns();
    a->feed->consumer->end(&state);
    if (a->status < 0)
        atomic_store_explicit(&a->feed->stop, true, memory_order_relaxed);
}

/* Opens the loader of a rank. If the config does not set the number of workers, they are divided among the ranks. */
static stk_status open_loader(const struct lb_config *config, struct accelerator *a, int rank, stk_error *err)
{
    const stki_node *loader = stki_node_get(stki_document_root(config->document), "loader");
    const int cores = stki_cpu_count(), workers = cores / a->feed->count;
    char sets[3][64];
    const char **all = config->loader_sets;
    int count = config->loader_set_count;

    snprintf(sets[0], sizeof sets[0], "loader.rank=%d", rank);
    snprintf(sets[1], sizeof sets[1], "loader.world_size=%d", a->feed->count);
    snprintf(sets[2], sizeof sets[2], "loader.num_workers=%d", workers > 1 ? workers : 1);
    all[count++] = sets[0]; /* for this call only (LB_MORE_SETS) */
    all[count++] = sets[1];
    if (!stki_node_get(loader, "num_workers"))
        all[count++] = sets[2];
    return stk_loader_open_file(config->path, all, count, &a->loader, err);
}

static double batch_size_of(const stk_loader *loader)
{
    struct lb_effective effective;
    const double size = lb_effective_read(loader, &effective, NULL) == STK_OK ? (double)effective.batch_size : 0;

    lb_effective_fini(&effective);
    return size;
}

static void sum_up(const struct accelerator *all, const struct feed *feed, struct lb_feed *out)
{
    stk_loader_stats stats = {.struct_size = sizeof stats};
    int64_t samples = 0;

    out->least = 1;
    for (int i = 0; i < feed->count; i++) {
        const int64_t span = all[i].begin_ns > 0 ? all[i].end_ns - all[i].begin_ns : 0;
        double au = lb_utilization(all[i].steps, feed->bench->step_time, span);
        au = au < 0 ? 0 : au; /* not a single step was completed */
        out->mean += au / feed->count;
        out->least = au < out->least ? au : out->least;
        out->samples_per_s += span > 0 ? (double)all[i].samples * 1e9 / (double)span : 0;
        out->steps += all[i].steps;
        samples += all[i].samples;
    }
    out->rows = out->steps > 0 ? (double)samples / (double)out->steps : 0;
    out->batch_size = batch_size_of(all[0].loader);
    out->cut = lb_stop_asked != 0;
    out->passed = out->mean >= feed->bench->au_required;
    if (stk_loader_get_stats(all[0].loader, &stats, NULL) == STK_OK)
        out->workers = stats.workers;
}

/* Fails if an accelerator did not begin a step during the run time. */
static stk_status check_measured(const struct accelerator *all, const struct feed *feed, stk_error *err)
{
    int without = 0;

    for (int i = 0; i < feed->count; i++) {
        if (all[i].begin_ns == 0 && all[i].status == STK_END)
            return stki_fail(err, STK_E_EMPTY,
                             "the data ended before all %d accelerators had finished their first step and the ramp; "
                             "remove loader.num_epochs",
                             feed->count);
        without += all[i].begin_ns == 0;
    }
    return without == 0
               ? STK_OK
               : stki_fail(err, STK_E_EMPTY,
                           "%d of %d accelerators did not begin a step within bench.run_time (%s ms); increase it",
                           without, feed->count, LB_NUMBER((double)feed->bench->run_time / 1e6));
}

/* Returns the first failure. STK_END: interrupted before every accelerator had completed a measured step. */
static stk_status check(const struct accelerator *all, const struct feed *feed, stk_error *err)
{
    for (int i = 0; i < feed->count; i++)
        if (all[i].status < 0) {
            *err = all[i].err;
            return all[i].status;
        }
    for (int i = 0; i < feed->count; i++)
        if (lb_stop_asked && (all[i].begin_ns == 0 || all[i].steps == 0))
            return STK_END;
    return check_measured(all, feed, err);
}

stk_status lb_feed_run(void *context, int accelerators, struct lb_feed *out, stk_error *err)
{
    const struct lb_config *config = context;
    struct feed feed = {.bench = &config->bench, .count = accelerators, .consumer = &lb_consumers[LB_CONSUMER_STEP]};
    struct accelerator *all = stki_zalloc_array(accelerators, sizeof *all);
    stk_status status = STK_OK;
    int opened = 0, started = 0;

    *out = (struct lb_feed){.accelerators = accelerators};
    if (!all)
        return stki_fail_memory(err, accelerators * (int64_t)sizeof *all, "the accelerators");
    for (; opened < accelerators && status == STK_OK; opened++) {
        all[opened].feed = &feed;
        status = lb_stop_asked ? STK_END : open_loader(config, &all[opened], opened, err);
    }
    for (; started < accelerators && status == STK_OK; started++) {
        status = stki_thread_start(&all[started].thread, "accelerator", run, &all[started], err);
        if (status != STK_OK)
            break;
    }
    if (started < accelerators) /* otherwise the started threads would wait forever */
        atomic_store(&feed.stop, true);
    for (int i = 0; i < started; i++)
        stki_thread_join(all[i].thread, INT64_MAX);
    if (status == STK_OK)
        status = check(all, &feed, err);
    if (status == STK_OK)
        sum_up(all, &feed, out);
    for (int i = 0; i < opened; i++)
        stk_loader_destroy(all[i].loader);
    stki_free(all);
    return status;
}
