/* host_faults.c: see host_faults.h. Once a fault has been set, each operation is queued inside a wrapper, which waits
 * and then runs the operation or fails. */
#include "host_faults.h"
#include "clock.h"
#include "error.h"
#include "host_stream.h"
#include <stdlib.h>
#include <string.h>

typedef struct stream_faults {
    const stk_device *device;
    int64_t number; /* of the stream, never reused; 0: a free slot */
    stkt_host_faults set;
} stream_faults;

enum { MOST = 64 };

static _Atomic bool in_use;
static stki_once once = STKI_ONCE;
static stki_mutex lock = {PTHREAD_MUTEX_INITIALIZER}; /* guards the variables below */
static stki_cond changed;
static stkt_host_faults device_faults[STKI_HOST_DEVICES];
static stream_faults streams[MOST]; /* faults set for one stream since faults were last set for its device */

static void make_changed(void)
{
    stki_cond_init(&changed);
}

static stkt_host_faults *of_stream(int64_t number)
{
    for (int i = 0; i < MOST; i++)
        if (streams[i].number == number)
            return &streams[i].set;
    return NULL;
}

void stkt_host_set_faults(stk_device *device, stk_stream *stream, const stkt_host_faults *faults)
{
    const stkt_host_faults set = faults ? *faults : (stkt_host_faults){0};

    stki_run_once(&once, make_changed);
    stki_lock(&lock);
    atomic_store(&in_use, true);
    if (stream) {
        const int64_t number = stki_host_stream_of(stream)->number;
        stkt_host_faults *kept = of_stream(number);
        for (int i = 0; i < MOST && !kept; i++) {
            if (streams[i].number == 0) {
                streams[i].device = device;
                streams[i].number = number;
                kept = &streams[i].set;
            }
        }
        if (!kept)
            abort(); /* a test uses more streams than there is space for */
        *kept = set;
    } else {
        device_faults[device->index] = set;
        for (int i = 0; i < MOST; i++)
            if (streams[i].device == device)
                streams[i] = (stream_faults){0};
    }
    stki_wake_all(&changed);
    stki_unlock(&lock);
}

/* Called with the lock held. */
static const stkt_host_faults *faults_of(const stk_device *device, int64_t number)
{
    const stkt_host_faults *own = number > 0 ? of_stream(number) : NULL;

    return own ? own : &device_faults[device->index];
}

static bool is_due(int64_t *left)
{
    return *left > 0 && --*left == 0;
}

/* Waits, and returns whether the operation must fail. `number` is 0 without a stream. */
static bool wait_and_fail(const stk_device *device, int64_t number)
{
    const int64_t start = stki_now_ns();
    stkt_host_faults *own;
    int64_t delay;
    bool fails;

    stki_lock(&lock);
    while ((delay = faults_of(device, number)->delay_ns) > 0 && (number > 0 || delay != STKT_HOST_HOLD)) {
        const int64_t end = delay == STKT_HOST_HOLD ? INT64_MAX : start + delay;
        if (stki_now_ns() >= end)
            break;
        (void)stki_wait(&changed, &lock, end);
    }
    own = number > 0 ? of_stream(number) : NULL;
    fails = (own && is_due(&own->fail_at)) || is_due(&device_faults[device->index].fail_at);
    stki_unlock(&lock);
    return fails;
}

static stk_status made_to_fail(const stk_device *device, stk_error *err)
{
    return stki_fail(err, STK_E_DEVICE, "%s: this operation was made to fail by a test", device->name);
}

/* ---- wrapped operations ---- */

typedef struct operation {
    stki_host_work work;
    const stk_device *device;
    int64_t number;
    _Alignas(16) char job[];
} operation;

static stk_status run_operation(void *job, stk_error *err)
{
    operation *o = *(operation **)job;
    stk_status status = wait_and_fail(o->device, o->number) ? made_to_fail(o->device, err) : o->work.run(o->job, err);

    free(o);
    return status;
}

static void drop_operation(void *job)
{
    free(*(operation **)job);
}

stk_status __real_stki_host_submit(stk_device *device, stk_stream *stream, const stki_host_work *work, const void *job,
                                   int64_t job_bytes, int64_t *out_position, stk_error *err);
stk_status __wrap_stki_host_submit(stk_device *device, stk_stream *stream, const stki_host_work *work, const void *job,
                                   int64_t job_bytes, int64_t *out_position, stk_error *err);

stk_status __wrap_stki_host_submit(stk_device *device, stk_stream *stream, const stki_host_work *work, const void *job,
                                   int64_t job_bytes, int64_t *out_position, stk_error *err)
{
    static const stki_host_work faulty = {.run = run_operation, .drop = drop_operation};
    /* Marks have no job; stamps and waits have a drop function. */
    const bool is_operation = job_bytes > 0 && job_bytes <= STKI_HOST_JOB_MAX && !work->drop;
    operation *o;
    stk_status status;

    if (!atomic_load(&in_use) || !is_operation)
        return __real_stki_host_submit(device, stream, work, job, job_bytes, out_position, err);
    if (!stream)
        return wait_and_fail(device, 0)
                   ? made_to_fail(device, err)
                   : __real_stki_host_submit(device, stream, work, job, job_bytes, out_position, err);
    o = malloc(sizeof *o + (size_t)job_bytes);
    if (!o)
        abort();
    *o = (operation){.work = *work, .device = device, .number = stki_host_stream_of(stream)->number};
    memcpy(o->job, job, (size_t)job_bytes);
    status = __real_stki_host_submit(device, stream, &faulty, &o, sizeof o, out_position, err);
    if (status != STK_OK)
        free(o);
    return status;
}
