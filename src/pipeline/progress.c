/* progress.c: see progress.h. */
#include "progress.h"
#include "allocate.h"
#include "error.h"
#include <assert.h>

struct lease {
    bool out;    /* whether the batch is still leased */
    bool counts; /* false: the batch was delivered before the last restart */
    int64_t step;
    stki_totals before;
};

struct stki_progress {
    int count;       /* constant after create */
    stki_mutex lock; /* guards the members below */
    int64_t next_step;
    stki_totals delivered;
    struct lease leases[];
};

stk_status stki_progress_create(int leases, int64_t step, stki_progress **out, stk_error *err)
{
    int64_t bytes = (int64_t)sizeof(stki_progress) + leases * (int64_t)sizeof(struct lease);
    stki_progress *progress = stki_zalloc(bytes);

    if (!progress)
        return stki_fail_memory(err, bytes, "a loader's progress");
    stki_mutex_init(&progress->lock);
    progress->count = leases;
    progress->next_step = step;
    *out = progress;
    return STK_OK;
}

void stki_progress_destroy(stki_progress *progress)
{
    if (!progress)
        return;
    stki_mutex_fini(&progress->lock);
    stki_free(progress);
}

int stki_progress_deliver(stki_progress *progress, int64_t step, const stki_totals *after)
{
    int found = 0;

    stki_lock(&progress->lock);
    while (found < progress->count && progress->leases[found].out)
        found++;
    assert(found < progress->count && step == progress->next_step);
    progress->leases[found] = (struct lease){true, true, step, progress->delivered};
    progress->next_step = step + 1;
    progress->delivered = *after;
    stki_unlock(&progress->lock);
    return found;
}

void stki_progress_release(stki_progress *progress, int lease)
{
    stki_lock(&progress->lock);
    assert(progress->leases[lease].out);
    progress->leases[lease].out = false;
    stki_unlock(&progress->lock);
}

void stki_progress_position(stki_progress *progress, int64_t *step, stki_totals *before)
{
    stki_lock(&progress->lock);
    *step = progress->next_step;
    *before = progress->delivered;
    for (int i = 0; i < progress->count; i++) {
        const struct lease *lease = &progress->leases[i];

        if (lease->out && lease->counts && lease->step < *step) {
            *step = lease->step;
            *before = lease->before;
        }
    }
    stki_unlock(&progress->lock);
}

void stki_progress_delivered(stki_progress *progress, int64_t *step, stki_totals *out)
{
    stki_lock(&progress->lock);
    *step = progress->next_step;
    *out = progress->delivered;
    stki_unlock(&progress->lock);
}

void stki_progress_restart(stki_progress *progress, int64_t step, const stki_totals *before)
{
    stki_lock(&progress->lock);
    for (int i = 0; i < progress->count; i++)
        progress->leases[i].counts = false;
    progress->next_step = step;
    progress->delivered = *before;
    stki_unlock(&progress->lock);
}
