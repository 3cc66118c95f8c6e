/* stream_guards.c: see stream_guards.h. */
#include "stream_guards.h"
#include "allocate.h"
#include "clock.h"
#include "stream.h"

#define ADD_WAIT_NS (600 * STKI_SECOND) /* for a stream in which no event can be recorded */

struct stki_stream_guard {
    stk_event *event;
    int64_t stream; /* its number */
};

void stki_guards_init(stki_stream_guards *guards)
{
    stki_mutex_init(&guards->lock);
}

void stki_guards_fini(stki_stream_guards *guards)
{
    for (int i = 0; i < guards->room; i++)
        stk_event_destroy(guards->guards[i].event);
    stki_free(guards->guards);
    stki_mutex_fini(&guards->lock);
}

/* With the lock. An event of the stream's device: the one of this stream, or one that is not in use. NULL: none can be
 * made. */
static struct stki_stream_guard *guard_for(stki_stream_guards *guards, const stk_stream *stream)
{
    struct stki_stream_guard *grown, spare;
    int place = 0;

    while (place < guards->count && guards->guards[place].stream != stream->number)
        place++;
    if (place < guards->count)
        return &guards->guards[place];
    while (place < guards->room && guards->guards[place].event->device != stream->device)
        place++;
    if (place == guards->room) {
        grown = stki_resize(guards->guards, (guards->room + 1) * (int64_t)sizeof *grown);
        if (!grown)
            return NULL;
        guards->guards = grown;
        if (stk_event_create(stream->device, false, &grown[place].event, NULL) != STK_OK)
            return NULL;
        guards->room++;
    }
    spare = guards->guards[place];
    guards->guards[place] = guards->guards[guards->count];
    spare.stream = stream->number;
    guards->guards[guards->count] = spare;
    return &guards->guards[guards->count++];
}

stk_status stki_guards_add(stki_stream_guards *guards, stk_stream *stream, stk_error *err)
{
    struct stki_stream_guard *guard;
    stk_status status = STK_E_MEMORY;

    stki_lock(&guards->lock);
    guard = guard_for(guards, stream);
    if (guard)
        status = stki_stream_mark(stream, guard->event, err);
    stki_unlock(&guards->lock);
    return status == STK_OK ? STK_OK : stk_stream_synchronize(stream, ADD_WAIT_NS, err);
}

stk_status stki_guards_wait_in(stki_stream_guards *guards, stk_stream *stream, stk_error *err)
{
    stk_status status = STK_OK;

    for (int i = 0; i < guards->count && status == STK_OK; i++)
        status = stk_stream_wait(stream, guards->guards[i].event, err);
    return status;
}

stk_status stki_guards_wait(stki_stream_guards *guards, int64_t timeout_ns, stk_error *err)
{
    for (int i = 0; i < guards->count; i++)
        if (stk_event_synchronize(guards->guards[i].event, timeout_ns, err) == STK_E_TIMEOUT)
            return STK_E_TIMEOUT;
    return STK_OK;
}

void stki_guards_clear(stki_stream_guards *guards)
{
    guards->count = 0;
}
