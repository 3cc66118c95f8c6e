/* loadbench_model.c: a tile starts when a worker is free and its batch has a slot. A batch is copied when all its tiles
 * and the previous copy are done. The consumer takes it when the copy is done and the previous batch has been used. A
 * slot is free again when its batch has been used (with a device: copied). In the order of the batches, each of these
 * times is the maximum of known times, so one pass is enough and no event queue is needed. */
#include "loadbench_model.h"
#include <math.h>
#include <string.h>

/* The first batches fill the pipeline, so the rate is computed from the rest. */
enum { BATCHES = 600, FILL = 200, MOST_WORKERS = 1024, MOST_SLOTS = 4096, MOST_TILES = 256 };

struct run {
    double worker_free[MOST_WORKERS];
    double slot_free[MOST_SLOTS], device_free[MOST_SLOTS];
    double copied, used; /* times at which the last batch was copied and used */
};

static int within(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

static int first_free(const double *free_at, int count)
{
    int first = 0;

    for (int i = 1; i < count; i++)
        if (free_at[i] < free_at[first])
            first = i;
    return first;
}

static double batch(const struct lb_model *m, struct run *run, int number, int workers, int slots, int tiles)
{
    double *slot = &run->slot_free[number % slots];
    double ready = 0;

    for (int tile = 0; tile < tiles; tile++) {
        double *worker = &run->worker_free[first_free(run->worker_free, workers)];
        *worker = fmax(*worker, *slot) + m->work_s / tiles;
        ready = fmax(ready, *worker);
    }
    if (m->device_slots > 0) {
        double *device = &run->device_free[number % within(m->device_slots, 1, MOST_SLOTS)];
        run->copied = fmax(fmax(ready, run->copied), *device) + m->copy_s;
        *slot = run->copied;
        run->used = fmax(run->copied, run->used) + m->consumer_s;
        *device = run->used;
    } else {
        run->used = fmax(ready, run->used) + m->consumer_s;
        *slot = run->used;
    }
    return run->used;
}

double lb_model_batch_s(const struct lb_model *model)
{
    const int workers = within(model->workers, 1, MOST_WORKERS), slots = within(model->slots, 1, MOST_SLOTS),
              tiles = within(model->tiles, 1, MOST_TILES);
    const double by_cores = model->cores > 0 ? model->cpu_s / model->cores : 0;
    struct run run;
    double filled = 0, end = 0;

    if (model->workers == 0 && model->device_slots == 0)
        return fmax(model->work_s + model->consumer_s, by_cores);
    memset(&run, 0, sizeof run);
    for (int i = 0; i < BATCHES; i++) {
        end = batch(model, &run, i, workers, slots, tiles);
        if (i == FILL - 1)
            filled = end;
    }
    return fmax((end - filled) / (BATCHES - FILL), by_cores);
}
