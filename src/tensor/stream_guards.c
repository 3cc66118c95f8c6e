/* stream_guards.c: see stream_guards.h. A guard is an event recorded after the work, or, if none could be recorded, a
 * reference to the stream, which is then queried. */
#include "stream_guards.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "stream.h"

struct stki_stream_guard {
    stk_event *event; /* NULL: not created yet */
    stk_stream *held; /* not NULL: queried instead of the event */
    const stk_device *device;
    int64_t number; /* number of the stream */
};

void stki_guards_init(stki_stream_guards *guards)
{
    stki_mutex_init(&guards->lock);
}

void stki_guards_fini(stki_stream_guards *guards)
{
    stki_guards_clear(guards);
    for (int i = 0; i < guards->room; i++)
        stk_event_destroy(guards->guards[i].event);
    stki_free(guards->guards);
    stki_mutex_fini(&guards->lock);
}

/* Returns the stream's guard, or an unused one of its device. NULL: out of memory. Lock held. */
static struct stki_stream_guard *guard_for(stki_stream_guards *guards, const stk_stream *stream)
{
    struct stki_stream_guard *grown, spare;
    int place = 0;

    while (place < guards->count && guards->guards[place].number != stream->number)
        place++;
    if (place < guards->count)
        return &guards->guards[place];
    while (place < guards->room && guards->guards[place].device != stream->device)
        place++;
    if (place == guards->room) {
        grown = stki_resize(guards->guards, (guards->room + 1) * (int64_t)sizeof *grown);
        if (!grown)
            return NULL;
        guards->guards = grown;
        grown[guards->room++] = (struct stki_stream_guard){.device = stream->device};
    }
    spare = guards->guards[place];
    guards->guards[place] = guards->guards[guards->count];
    spare.number = stream->number;
    guards->guards[guards->count] = spare;
    return &guards->guards[guards->count++];
}

/* Lock held. */
static stk_status mark(struct stki_stream_guard *guard, stk_stream *stream, stk_error *err)
{
    bool marked = false;
    stk_status status = guard->event ? STK_OK : stk_event_create(stream->device, false, &guard->event, err);

    if (status == STK_OK)
        status = stki_stream_mark(stream, guard->event, &marked, err);
    if (!marked)
        stki_stream_retain(stream);
    stki_stream_release(guard->held);
    guard->held = marked ? NULL : stream;
    return status == STK_E_MEMORY ? STK_OK : status;
}

stk_status stki_guards_add(stki_stream_guards *guards, stk_stream *stream, stk_error *err)
{
    struct stki_stream_guard *guard;
    stk_status status = STK_OK;

    stki_lock(&guards->lock);
    guard = guard_for(guards, stream);
    if (guard)
        status = mark(guard, stream, err);
    stki_unlock(&guards->lock);
    if (guard)
        return status;
    status = stki_stream_await(stream, stki_counted(&stki_stream_patience_ns), err);
    if (status == STK_E_TIMEOUT) {
        stki_lock(&guards->lock);
        guards->stuck = true;
        stki_unlock(&guards->lock);
    }
    return status;
}

static stk_status await(const struct stki_stream_guard *guard, int64_t timeout_ns, stk_error *err)
{
    return guard->held ? stki_stream_await(guard->held, timeout_ns, err)
                       : stk_event_synchronize(guard->event, timeout_ns, err);
}

stk_status stki_guards_wait_in(stki_stream_guards *guards, stk_stream *stream, stk_error *err)
{
    stk_status status = STK_OK;

    for (int i = 0; i < guards->count && status == STK_OK; i++)
        status = guards->guards[i].held ? await(&guards->guards[i], stki_counted(&stki_stream_patience_ns), err)
                                        : stk_stream_wait(stream, guards->guards[i].event, err);
    if (status == STK_OK && guards->stuck)
        return stki_fail(err, STK_E_TIMEOUT, "work in another stream has not finished, so its memory cannot be reused");
    return status;
}

stk_status stki_guards_wait(stki_stream_guards *guards, int64_t timeout_ns, stk_error *err)
{
    int64_t deadline = stki_deadline_ns(timeout_ns);

    for (int i = 0; i < guards->count; i++) {
        int64_t left = timeout_ns > 0 ? deadline - stki_now_ns() : timeout_ns;

        if (timeout_ns > 0 && left < 0)
            left = 0;
        if (await(&guards->guards[i], left, err) == STK_E_TIMEOUT)
            return STK_E_TIMEOUT;
    }
    return guards->stuck ? STK_E_TIMEOUT : STK_OK;
}

void stki_guards_clear(stki_stream_guards *guards)
{
    for (int i = 0; i < guards->count; i++) {
        stki_stream_release(guards->guards[i].held);
        guards->guards[i].held = NULL;
    }
    guards->count = 0;
}
