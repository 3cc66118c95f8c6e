/* device_copies.c: hides copies to a device behind training steps. The program copies the same batches twice: first
 * each before its step, then each during the previous step, with two streams, two slots and events.
 *     device_copies [DEVICE]         "host", which works on every machine (default), or "cuda:0"
 */
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <time.h>

enum { SLOTS = 2, STEPS = 20, FLOATS = 4 << 20 };
#define STEP_NS 10000000 /* duration of a step */

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
    stk_tensor pinned, there; /* in page-locked host memory, and on the device */
    stk_event *copied, *used; /* recorded after the copy, and after the step */
} slot;

/* Fills the batch with the number of the step. */
static void make_batch(stk_tensor *batch, int step)
{
    check(stk_tensor_fill(batch, stk_real(step), &err));
}

/* Emulates a training step: takes some time and reads the batch. */
static void train(const stk_tensor *batch, stk_tensor *seen, stk_stream *stream)
{
    check(stk_stream_spin(stream, STEP_NS, &err));
    check(stk_tensor_copy_on(seen, batch, stream, true, &err));
}

static double in_sequence(slot *slots, stk_tensor *seen, stk_stream *stream)
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

static double overlapped(slot *slots, stk_tensor *seen, stk_stream *copies, stk_stream *steps)
{
    double start = now();

    for (int step = 0; step < STEPS; step++) {
        slot *slot = &slots[step % SLOTS];

        /* The slot's previous copy must have read the pinned memory before it is overwritten. */
        check(stk_event_synchronize(slot->copied, STK_WAIT_FOREVER, &err));
        make_batch(&slot->pinned, step);
        /* The slot's previous step must be done with the device memory; only the copy stream waits for that. */
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

    plain = in_sequence(slots, &seen, steps);
    hidden = overlapped(slots, &seen, copies, steps);
    check(stk_tensor_get(&seen, 1, (int64_t[]){FLOATS - 1}, &last, &err));
    printf("%s: %d steps of %d ms: %.0f ms with copies between the steps, %.0f ms with copies during the steps\n", name,
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
