/* flusher.c: the thread of outlet.h that syncs. */
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "outlet.h"

struct stki_flusher {
    stki_thread *thread;
    int depth;
    stki_mutex lock; /* guards the rest */
    stki_cond work, room;
    stki_flush *first, **last;
    int waiting; /* the running one counted */
    bool stop;
    stk_status status; /* the first one that failed */
    stk_error error;
};

static void run(void *context)
{
    stki_flusher *flusher = context;

    stki_lock(&flusher->lock);
    for (;;) {
        stki_flush *flush = flusher->first;
        stk_error error = {0};
        stk_status status = flusher->status;

        if (!flush) {
            if (flusher->stop)
                break;
            (void)stki_wait(&flusher->work, &flusher->lock, INT64_MAX);
            continue;
        }
        flusher->first = flush->next;
        if (!flusher->first)
            flusher->last = &flusher->first;
        stki_unlock(&flusher->lock);
        if (status == STK_OK)
            status = flush->run(flush, &error);
        flush->drop(flush);
        stki_lock(&flusher->lock);
        if (status != STK_OK && flusher->status == STK_OK) {
            flusher->status = status;
            flusher->error = error;
        }
        flusher->waiting--;
        stki_wake_all(&flusher->room);
    }
    stki_unlock(&flusher->lock);
}

stk_status stki_flusher_create(int depth, stki_flusher **out, stk_error *err)
{
    stki_flusher *flusher = stki_zalloc(sizeof *flusher);
    stk_status status;

    if (!flusher)
        return stki_fail_memory(err, sizeof *flusher, "a thread that syncs");
    flusher->depth = depth;
    flusher->last = &flusher->first;
    stki_mutex_init(&flusher->lock);
    stki_cond_init(&flusher->work);
    stki_cond_init(&flusher->room);
    status = stki_thread_start(&flusher->thread, "stoker-flush", run, flusher, err);
    if (status == STK_OK)
        *out = flusher;
    else
        stki_flusher_destroy(flusher);
    return status;
}

void stki_flusher_destroy(stki_flusher *flusher)
{
    if (!flusher)
        return;
    stki_lock(&flusher->lock);
    flusher->stop = true;
    stki_wake_all(&flusher->work);
    stki_unlock(&flusher->lock);
    if (flusher->thread)
        (void)stki_thread_join(flusher->thread, INT64_MAX);
    stki_cond_fini(&flusher->work);
    stki_cond_fini(&flusher->room);
    stki_mutex_fini(&flusher->lock);
    stki_free(flusher);
}

/* Until fewer than `most` wait; with the lock. */
static stk_status wait_below(stki_flusher *flusher, int most, int64_t *waited_ns, stk_error *err)
{
    const int64_t begin = stki_now_ns();

    while (flusher->waiting >= most)
        (void)stki_wait(&flusher->room, &flusher->lock, INT64_MAX);
    *waited_ns += stki_now_ns() - begin;
    if (flusher->status != STK_OK && err)
        *err = flusher->error;
    return flusher->status;
}

stk_status stki_flusher_put(stki_flusher *flusher, stki_flush *flush, int64_t *waited_ns, stk_error *err)
{
    stk_status status;

    flush->next = NULL;
    stki_lock(&flusher->lock);
    status = wait_below(flusher, flusher->depth, waited_ns, err);
    *flusher->last = flush; /* also after a failure: its thread drops it */
    flusher->last = &flush->next;
    flusher->waiting++;
    stki_wake_one(&flusher->work);
    stki_unlock(&flusher->lock);
    return status;
}

stk_status stki_flusher_wait(stki_flusher *flusher, int64_t *waited_ns, stk_error *err)
{
    stk_status status;

    stki_lock(&flusher->lock);
    status = wait_below(flusher, 1, waited_ns, err);
    stki_unlock(&flusher->lock);
    return status;
}
