/* device_copies.c: copies that hide behind the work on a device. Batches go to the device twice: one after the other
 * with its step, and while the step before is still running, by two streams, two slots and events.
 *     device_copies [DEVICE]         "host" runs everywhere; "cuda:0"
 */
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <time.h>

enum { SLOTS = 2, STEPS = 20, FLOATS = 4 << 20 };
#define STEP_NS 10000000 /* how long a step takes */

static stk_error err;

static void check(stk_status status)
{
    if (status == STK_OK)
        return;
    fprintf(stderr, "%s\n", err.message);
    exit(1);
}

static double now(void)
{
    struct timespec t;

    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

typedef struct slot {
    stk_tensor pinned, there; /* in memory that the device fetches from, and on the device */
    stk_event *copied, *used; /* behind the copy, and behind the step */
} slot;

/* A batch, all of whose numbers are the step's. */
static void make_batch(stk_tensor *batch, int step)
{
    check(stk_tensor_fill(batch, stk_real(step), &err));
}

/* What a model would do with it: look at the numbers, for a while. */
static void train(const stk_tensor *batch, stk_tensor *seen, stk_stream *stream)
{
    check(stk_stream_spin(stream, STEP_NS, &err));
    check(stk_tensor_copy_on(seen, batch, stream, true, &err));
}

static double one_after_the_other(slot *slots, stk_tensor *seen, stk_stream *stream)
{
    double start = now();

    for (int step = 0; step < STEPS; step++) {
        make_batch(&slots[0].pinned, step);
        check(stk_tensor_copy_on(&slots[0].there, &slots[0].pinned, stream, false, &err)); /* waits */
        train(&slots[0].there, seen, stream);
        check(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err));
    }
    return now() - start;
}

static double beside_each_other(slot *slots, stk_tensor *seen, stk_stream *copies, stk_stream *steps)
{
    double start = now();

    for (int step = 0; step < STEPS; step++) {
        slot *slot = &slots[step % SLOTS];

        /* The copy before must have read the pinned memory before it is written again, … */
        check(stk_event_synchronize(slot->copied, STK_WAIT_FOREVER, &err));
        make_batch(&slot->pinned, step);
        /* … and the step before must be done with the device's: its stream is waited for by the other, not by us. */
        check(stk_stream_wait(copies, slot->used, &err));
        check(stk_tensor_copy_on(&slot->there, &slot->pinned, copies, true, &err));
        check(stk_event_record(slot->copied, copies, &err));

        check(stk_stream_wait(steps, slot->copied, &err));
        train(&slot->there, seen, steps);
        check(stk_event_record(slot->used, steps, &err));
    }
    check(stk_stream_synchronize(steps, STK_WAIT_FOREVER, &err));
    return now() - start;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "host";
    const int64_t shape[] = {FLOATS};
    stk_stream *copies, *steps;
    stk_device *device;
    stk_tensor seen;
    stk_scalar last;
    slot slots[SLOTS];
    double plain, hidden;

    check(stk_device_find(name, &device, &err));
    check(stk_stream_create(device, &copies, &err));
    check(stk_stream_create(device, &steps, &err));
    check(stk_tensor_zeros(STK_F32, 1, shape, device, &seen, &err));
    for (int i = 0; i < SLOTS; i++) {
        check(stk_tensor_empty_pinned(STK_F32, 1, shape, device, &slots[i].pinned, &err));
        check(stk_tensor_empty(STK_F32, 1, shape, device, &slots[i].there, &err));
        check(stk_event_create(device, false, &slots[i].copied, &err));
        check(stk_event_create(device, false, &slots[i].used, &err));
    }

    plain = one_after_the_other(slots, &seen, steps);
    hidden = beside_each_other(slots, &seen, copies, steps);
    check(stk_tensor_get(&seen, 1, (int64_t[]){FLOATS - 1}, &last, &err));
    printf("%s: %d steps of %d ms: %.0f ms with the copies between them, %.0f ms with the copies behind them\n", name,
           STEPS, STEP_NS / 1000000, plain * 1e3, hidden * 1e3);
    if (last.as.f != STEPS - 1) {
        fprintf(stderr, "the last step saw batch %g\n", last.as.f);
        return 1;
    }

    for (int i = 0; i < SLOTS; i++) {
        stk_tensor_release(&slots[i].pinned);
        stk_tensor_release(&slots[i].there);
        stk_event_destroy(slots[i].copied);
        stk_event_destroy(slots[i].used);
    }
    stk_tensor_release(&seen);
    stk_stream_destroy(copies);
    stk_stream_destroy(steps);
    return 0;
}
