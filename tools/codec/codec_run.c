/* codec_run.c: threads claim items from a shared counter until a common deadline. */
#include "codec_run.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "thread.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 256, ROUNDS = 3 };
#define MOST_BYTES (INT64_C(128) << 20)

struct work {
    const struct codec_items *items;
    const struct codec_kind *kind;
    const _Atomic int *stop;
    int64_t end_ns;
    _Atomic int64_t next;
};

struct worker {
    struct work *work;
    void *state, *to;
    int64_t done, bytes, end_ns;
    bool failed;
    stki_thread *thread;
};

static void run(void *context)
{
    struct worker *worker = context;
    struct work *work = worker->work;

    do {
        const int64_t n = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed);
        const struct codec_item *item = &work->items->items[n % work->items->count];
        worker->failed = !work->kind->unpack(worker->state, item, worker->to);
        worker->done++;
        worker->bytes += item->unpacked;
    } while (!worker->failed && !(work->stop && *work->stop) && stki_now_ns() < work->end_ns);
    worker->end_ns = stki_now_ns();
}

static stk_status prepare(struct worker *worker, struct work *work, stk_error *err)
{
    *worker = (struct worker){.work = work};
    worker->state = work->kind->begin();
    worker->to = stki_zalloc(work->items->largest + 64);
    if (!worker->state || !worker->to)
        return stki_fail_memory(err, work->items->largest, "unpacking");
    return STK_OK;
}

static void clean(struct worker *worker)
{
    if (worker->state)
        worker->work->kind->end(worker->state);
    stki_free(worker->to);
}

static stk_status time_once(struct work *work, int threads, int64_t time_ns, double *items_per_s, double *bytes_per_s,
                            stk_error *err)
{
    struct worker workers[MAX_THREADS];
    stk_status status = STK_OK;
    int made = 0, started = 0;
    int64_t done = 0, bytes = 0, begin, end;
    bool failed = false;

    for (; made < threads && status == STK_OK; made++)
        status = prepare(&workers[made], work, err);
    begin = end = stki_now_ns();
    work->end_ns = begin + time_ns;
    for (; started < threads && status == STK_OK; started++)
        if ((status = stki_thread_start(&workers[started].thread, "limit", run, &workers[started], err)) != STK_OK)
            break;
    for (int i = 0; i < started; i++) {
        stki_thread_join(workers[i].thread, INT64_MAX);
        done += workers[i].done;
        bytes += workers[i].bytes;
        end = workers[i].end_ns > end ? workers[i].end_ns : end;
        failed = failed || workers[i].failed;
    }
    for (int i = 0; i < made; i++)
        clean(&workers[i]);
    if (status == STK_OK && failed)
        return stki_fail(err, STK_E_CORRUPT, "an item could not be decompressed");
    if (status != STK_OK)
        return status;
    *items_per_s = (double)done * 1e9 / (double)(end - begin);
    *bytes_per_s = (double)bytes * 1e9 / (double)(end - begin);
    return STK_OK;
}

static double middle(double a, double b, double c)
{
    return a > b ? (b > c ? b : a > c ? c : a) : (a > c ? a : b > c ? c : b);
}

int64_t codec_most_bytes(const struct codec_ask *ask)
{
    return ask->most_bytes > 0 && ask->most_bytes < MOST_BYTES ? ask->most_bytes : MOST_BYTES;
}

bool codec_stopped(const struct codec_ask *ask, struct codec_limit *out)
{
    if (!ask->stop || *ask->stop == 0)
        return false;
    snprintf(out->missing, sizeof out->missing, "stopped by a signal");
    return true;
}

stk_status codec_time(const struct codec_items *items, const struct codec_kind *kind, const struct codec_ask *ask,
                      double *items_per_s, struct codec_limit *out, stk_error *err)
{
    const int threads = ask->threads < 1 ? 1 : ask->threads > MAX_THREADS ? MAX_THREADS : ask->threads;
    double rates[ROUNDS], bytes[ROUNDS];
    struct work work = {.items = items, .kind = kind, .stop = ask->stop};

    *items_per_s = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const stk_status status = time_once(&work, threads, ask->time_ns, &rates[round], &bytes[round], err);
        if (status != STK_OK || codec_stopped(ask, out))
            return status;
    }
    *items_per_s = middle(rates[0], rates[1], rates[2]);
    out->bytes_per_s = middle(bytes[0], bytes[1], bytes[2]);
    out->items = items->count;
    out->packed_bytes = items->packed_bytes;
    return STK_OK;
}

stk_status codec_items_add(struct codec_items *items, const void *bytes, int64_t count, int64_t unpacked,
                           stk_error *err)
{
    void *copy = stki_zalloc(count + 1);

    if (!copy)
        return stki_fail_memory(err, count, "an item to unpack");
    memcpy(copy, bytes, (size_t)count);
    items->items[items->count++] = (struct codec_item){copy, count, unpacked};
    items->packed_bytes += count;
    items->largest = unpacked > items->largest ? unpacked : items->largest;
    return STK_OK;
}

void codec_items_fini(struct codec_items *items)
{
    for (int i = 0; i < items->count; i++)
        stki_free(items->items[i].bytes);
    items->count = 0;
}
